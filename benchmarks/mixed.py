"""A CSV file of 200 000 mixed rows: the command beside skrub's TableVectorizer with scikit-learn's MiniBatchKMeans.

Every run is a process of its own with one BLAS thread, from the file to the picks. Told are seconds of the processor and the
largest resident memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from report import header, table, write  # first: it sets the number of threads

import numpy as np  # isort: skip
import pyarrow as pa
import pyarrow.csv

K, MISSING = 50, 0.1
PEER = """
import sys
import numpy as np, pandas as pd
from skrub import TableVectorizer
from sklearn.cluster import MiniBatchKMeans
from sklearn.pipeline import make_pipeline
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

file, k, out = sys.argv[1:]
frame = pd.read_csv(file)
X = make_pipeline(TableVectorizer(), SimpleImputer(), StandardScaler()).fit_transform(frame)
centres = MiniBatchKMeans(int(k), random_state=0).fit(X).cluster_centers_
X = np.asarray(X)
nearest = [int(((X - centre) ** 2).sum(axis=1).argmin()) for centre in centres]
frame.iloc[nearest].to_csv(out, index=False)
"""


def make_file(path: Path, n: int, seed: int = 0) -> None:
    """Thirty columns: an id, 12 numbers, two of them amounts, 10 categories, 4 dates, 2 of yes and no, a short text."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 8, n)
    columns: dict[str, object] = {"customer_id": np.char.add("C", np.arange(n).astype(str))}
    for j in range(10):
        columns[f"number_{j}"] = np.round(rng.normal(size=8)[kind] * 3 + rng.normal(size=n), 3)
    for j in range(2):
        columns[f"amount_{j}"] = np.round(np.exp(rng.normal(6, 0.5, n) + 0.3 * kind), 2)
    for j in range(10):
        levels = np.array([f"level {i}" for i in range(3 + 3 * j)])
        columns[f"category_{j}"] = levels[(kind * (j + 1) + rng.integers(0, 1 + j, n)) % len(levels)]
    for j in range(4):
        days = np.datetime64("2015-01-01") + rng.integers(0, 900, n) + 200 * (kind % (j + 2))
        columns[f"date_{j}"] = np.datetime_as_string(days, unit="D")
    for j in range(2):
        columns[f"flag_{j}"] = np.where(rng.random(n) < 0.2 + 0.08 * kind, "yes", "no")
    words = np.array(["late", "delivery", "good", "refund", "call", "vip", "returned", "paid"])
    columns["note"] = [" ".join(some) for some in words[rng.integers(0, len(words), (n, 3))]]
    odd = rng.choice(n, n // 1000, replace=False)
    columns["number_0"][odd] = 1000 + rng.normal(size=len(odd))  # type: ignore[index]
    arrays = {}
    for name, values in columns.items():
        gaps = None if name == "customer_id" else rng.random(n) < MISSING
        arrays[name] = pa.array(values, mask=gaps) if isinstance(values, np.ndarray) else pa.array(values)
    pa.csv.write_csv(pa.table(arrays), path)


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor, and MiB of the largest process of a command."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    if code:
        raise SystemExit(f"{' '.join(command[:6])} ended with {code}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


EXPLAINED = """
import json, sys, time
from mosaic import MOSAIC
model = MOSAIC(int(sys.argv[2])).fit(sys.argv[1])
started = time.process_time()
model.explain(int(model.representative_indices_[0]))
print(json.dumps(time.process_time() - started))
"""


def main() -> None:
    """Make the file, run everybody, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--budget", default="700MiB", help="memory budget of the run that streams")
    parser.add_argument("--without-peer", action="store_true", help="skrub is not installed")
    args = parser.parse_args()
    python = sys.executable
    select = [python, "-m", "mosaic", "select", "table.csv", "-k", str(K), "-o", "picks.csv", "--force"]
    outliers = [python, "-m", "mosaic", "outliers", "table.csv", "-o", "odd.csv", "--force"]
    runs = {
        "`mosaic select`: picks": select,
        "`mosaic select --report`: picks with certificate and page": [*select, "--report", "page.html"],
        f"the same, `--memory-budget {args.budget}`, which reads the file in passes": [
            *select, "--report", "page.html", "--memory-budget", args.budget,
        ],
        "`mosaic outliers`: outliers and why": outliers,
        f"the same, `--memory-budget {args.budget}`": [*outliers, "--memory-budget", args.budget],
        "TableVectorizer, gaps filled, scaled + MiniBatchKMeans: row nearest to each centre": [
            python, "-c", PEER, "table.csv", str(K), "peer.csv",
        ],
    }  # fmt: skip
    if args.without_peer:
        runs.popitem()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_file(folder / "table.csv", args.rows)
        size = (folder / "table.csv").stat().st_size / 1e6
        for title, command in runs.items():
            processor, memory = measured(command, folder)
            rows.append([title, f"{processor:.1f}", f"{memory:,.0f}"])
            print(*rows[-1], sep="  ", flush=True)
        asked = subprocess.run(
            [python, "-c", EXPLAINED, "table.csv", str(K)], cwd=folder, check=True, capture_output=True, text=True
        )
    told = (
        f"A CSV file of {args.rows:,} rows × 30 columns ({size:.0f} MB): an id, 12 numbers, 10 categories with 3 to 30 levels, "
        f"4 dates, 2 of yes and no, a short text; {100 * MISSING:.0f} % of the cells are missing, 0.1 % of the rows outliers. "
        f"{K} picks. Each run is a process of its own, from the file to the picks. After a fit in Python, the first answer to "
        f"`model.explain(row)` took {json.loads(asked.stdout):.1f} seconds of the processor."
    )
    head = ["run", "processor, s", "peak memory, MiB"]
    packages = ["numpy", "scikit-learn", "pyarrow", "pandas", "skrub"]
    write("mixed.md", f"{header('A large mixed table', packages)}\n{told}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
