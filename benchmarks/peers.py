"""What a fit, its certificate, its labels and a detector cost beside FasterPAM and an isolation forest, and before a change.

One thread, processor seconds, 16 columns, k = 20; the least of some repetitions. ``--before FOLDER`` measures the code of another
checkout beside this one, each in a process of its own and in turn.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = (300, 1000, 3000, 10_000, 100_000, 1_000_000)
COLUMNS, PICKS, CENTRES = 16, 20, 12
#: Largest number of rows whose distance matrix FasterPAM is given.
MOST_OF_FASTERPAM = 5000
NAMES = ("fit", "certificate", "labels", "detector", "FasterPAM", "isolation forest")


def least(call: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def measured(n: int) -> dict[str, float]:
    """Seconds of each on n rows of blobs, with what is imported here."""
    import kmedoids
    from scipy.spatial.distance import cdist
    from sklearn.datasets import make_blobs
    from sklearn.ensemble import IsolationForest

    from mosaic import MOSAIC, MOSAICOutlierDetector

    warnings.simplefilter("ignore")
    X, _ = make_blobs(n, COLUMNS, centers=CENTRES, random_state=0)
    times = 5 if n <= 3000 else 2 if n <= 100_000 else 1
    model = MOSAIC(PICKS, n_jobs=1)
    found = {"fit": least(lambda: model.fit(X), times)}
    found["certificate"] = least(lambda: str(model.certificate_), 1)
    found["labels"] = least(lambda: model.labels_, 1)
    found["detector"] = least(lambda: MOSAICOutlierDetector(n_jobs=1).fit(X).is_outlier_, times)
    if n <= MOST_OF_FASTERPAM:
        found["FasterPAM"] = least(lambda: kmedoids.fasterpam(cdist(X, X).astype("f4"), PICKS, random_state=0), times)
    found["isolation forest"] = least(lambda: IsolationForest(n_jobs=1, random_state=0).fit_predict(X), min(times, 2))
    return found


def in_process(n: int, folder: Path) -> dict[str, float]:
    here = Path(__file__).resolve()
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [sys.executable, str(here), "--measure", str(n)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(given.measure)))
        return
    here = Path(__file__).resolve().parents[1]
    lines = []
    for n in given.sizes:
        now = in_process(n, here)
        before = {} if given.before is None else in_process(n, given.before)
        cells = []
        for name in NAMES:
            was = f"{seconds(before[name])} → " if name in before and name in NAMES[:4] else ""
            cells.append(f"{was}{seconds(now[name])}" if name in now else "–")
        lines.append([f"{n:,}", *cells])
        print(*lines[-1], sep=" | ", flush=True)
    text = f"{__doc__}\n{table(['rows', *NAMES], lines)}"
    write("peers.md", header("Beside peers", ["kmedoids", "scikit-learn"]) + text)


if __name__ == "__main__":
    main()
