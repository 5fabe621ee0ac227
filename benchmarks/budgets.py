"""Memory against the budget and the estimate: the rise of resident memory of a fit and its certificate, on shapes of data.

Every shape is measured in a process of its own: the highest resident memory while the work runs, less that before it, with the
data of arrays in memory already, and after a fit of a small table of the same kind. A rise may be a tenth above the budget. Run
``python benchmarks/budgets.py``, or with the names of shapes.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MB = 1e6
#: Shape: rows, columns, kind of data, and memory budget in MB.
SHAPES: dict[str, tuple[int, int, str, float]] = {
    "few rows": (1_000, 10, "array", 150),
    "many rows": (200_000, 10, "array", 200),
    "many rows, default budget": (200_000, 10, "array", 2147),
    "wide": (5_000, 500, "array", 300),
    "many rows, wide": (200_000, 64, "array", 200),
    "float32": (200_000, 30, "float32", 200),
    "sparse": (20_000, 2_000, "sparse", 300),
    "mixed frame": (50_000, 12, "frame", 300),
    "CSV file": (200_000, 10, "csv", 200),
    "wide CSV file": (200_000, 64, "csv", 200),
    "mixed CSV file": (200_000, 30, "mixed", 700),
    "Parquet file": (200_000, 30, "parquet", 200),
    "wide Parquet file": (200_000, 64, "parquet", 200),
    "npy by passes": (200_000, 64, "npy", 200),
}

#: Kinds of data that are files, and their endings.
FILES = {"csv": ".csv", "mixed": ".csv", "parquet": ".parquet", "npy": ".npy"}


def make(n: int, d: int, kind: str) -> Any:
    """The data of an array or a frame."""
    import pandas as pd
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    if kind == "sparse":
        return sp.random_array((n, d), density=0.01, rng=rng, format="csr")
    X = rng.normal(size=(n, d))
    if kind == "frame":
        frame = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(d)])
        return frame.assign(kind=rng.choice(list("abcdefgh"), n), member=rng.random(n) < 0.3)
    return X.astype(np.float32) if kind == "float32" else X


def make_file(n: int, d: int, kind: str, path: Path) -> None:
    """Write the data of a file; a mixed one has numbers, ten categories, four dates, a flag, a text and gaps."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if kind == "npy":
        np.save(path, X)
        return
    frame = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(d)])
    if kind == "mixed":
        for j in range(10):
            frame[f"x{j}"] = np.array([f"level {i}" for i in range(3 + 3 * j)])[rng.integers(0, 3 + 3 * j, n)]
        for j in range(10, 14):
            frame[f"x{j}"] = (np.datetime64("2015-01-01") + rng.integers(0, 900, n)).astype(str)
        frame["x14"] = np.where(rng.random(n) < 0.4, "yes", "no")
        words = np.array(["late", "delivery", "good", "refund", "call", "vip", "returned", "paid"])
        frame["x15"] = [" ".join(some) for some in words[rng.integers(0, len(words), (n, 3))]]
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)


def resident(key: str) -> int:
    """Bytes of resident memory: now (VmRSS), or the highest since the last reset (VmHWM)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def reset() -> int:
    """Give back what is free, forget the highest value, and return what is resident now."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS:")


def measure(shape: str, folder: str) -> dict[str, float | str]:
    """The rise of memory of one shape, and the estimate, which is asked for last: it reads the file as the fit does."""
    import mosaic
    from mosaic.exceptions import MemoryBudgetError

    warnings.simplefilter("ignore")
    n, d, kind, budget = SHAPES[shape]
    # What is loaded at the first use of a kind of data is no part of the rise.
    X, small = make(n, d, kind) if kind not in FILES else Path(folder, "large" + FILES[kind]), make(60, 4, kind)
    mosaic.MOSAIC(3).fit(Path(folder, "small" + FILES[kind]) if kind in FILES else small).certificate_  # noqa: B018
    settings: dict[str, Any] = {"n_representatives": 20, "memory_budget": budget * MB}
    try:
        before = reset()
        model = mosaic.MOSAIC(**settings).fit(X)
        fit = resident("VmHWM:") - before
        reset()
        model.certificate_  # noqa: B018
        proof = resident("VmHWM:") - before
        expected = mosaic.estimate(X, **settings)
    except MemoryBudgetError as refused:
        return {"shape": shape, "way": f"refused: {refused}"}
    sizes = {"expected": expected.memory, "fit": fit, "proof": proof}
    way = "passes" if expected.passes else "memory"
    return {"shape": shape, "way": way, "budget": budget} | {k: v / MB for k, v in sizes.items()}


def measured(shape: str) -> dict[str, Any]:
    """What ``measure`` finds in a process of its own. Files are written here, so that this leaves no memory to reuse there."""
    n, d, kind, _ = SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        if kind in FILES:
            make_file(n, d, kind, Path(folder, "large" + FILES[kind]))
            make_file(60, 4, kind, Path(folder, "small" + FILES[kind]))
        done = subprocess.run([sys.executable, __file__, "--one", shape, folder], capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {"way": done.stderr.strip().splitlines()[-1]}
    return found


def main() -> None:
    """Print a table, a row for each shape."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    print("| shape | rows × columns | way | budget | estimate | fit | certificate | highest / budget |")
    print("| :-- | --: | :-- | --: | --: | --: | --: | --: |")
    for shape in sys.argv[1:] or SHAPES:
        found = measured(shape)
        n, d, _, budget = SHAPES[shape]
        cells = [f"{found[name]:.0f}" if name in found else "" for name in ("expected", "fit", "proof")]
        highest = f"{max(found['fit'], found['proof']) / budget:.2f}" if "fit" in found else ""
        print(f"| {shape} | {n:,} × {d:,} | {found['way']} | {budget:.0f} | {' | '.join(cells)} | {highest} |", flush=True)


if __name__ == "__main__":
    main()
