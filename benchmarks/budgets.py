"""Memory against the budget and the estimate: the rise of resident memory of a fit and its certificate, on ten shapes of data.

Every shape is measured in a process of its own: the highest resident memory while the work runs, less that before it, with the
data of arrays in memory already. A rise may be a tenth above the budget. Run ``python benchmarks/budgets.py``, or with the names
of shapes.
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
    "Parquet file": (200_000, 30, "parquet", 200),
    "npy by passes": (200_000, 64, "npy", 200),
}


def make(n: int, d: int, kind: str, folder: Path) -> Any:
    """The data: an array, a frame, or the path of a file."""
    import pandas as pd
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    if kind == "sparse":
        return sp.random_array((n, d), density=0.01, rng=rng, format="csr")
    X = rng.normal(size=(n, d))
    path = folder / f"points.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind in ("csv", "parquet", "frame"):
        frame = pd.DataFrame(X.round(4), columns=[f"x{j}" for j in range(d)])
        if kind == "frame":
            return frame.assign(kind=rng.choice(list("abcdefgh"), n), member=rng.random(n) < 0.3)
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    else:
        return X.astype(np.float32) if kind == "float32" else X
    return path


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


def measure(shape: str) -> dict[str, float | str]:
    """The estimate and the rise of memory of one shape."""
    import mosaic
    from mosaic.exceptions import MemoryBudgetError

    warnings.simplefilter("ignore")
    n, d, kind, budget = SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        X = make(n, d, kind, Path(folder))
        mosaic.MOSAIC(3).fit(np.random.default_rng(0).normal(size=(60, 4))).certificate_  # noqa: B018
        settings: dict[str, Any] = {"n_representatives": 20, "memory_budget": budget * MB}
        try:
            expected = mosaic.estimate(X, **settings)
            before = reset()
            model = mosaic.MOSAIC(**settings).fit(X)
            fit = resident("VmHWM:") - before
            reset()
            model.certificate_  # noqa: B018
            proof = resident("VmHWM:") - before
        except MemoryBudgetError as refused:
            return {"shape": shape, "strategy": f"refused: {refused}"}
    sizes = {"expected": expected.memory, "fit": fit, "expected proof": expected.proof_memory, "proof": proof}
    return {"shape": shape, "strategy": expected.strategy, "budget": budget} | {k: v / MB for k, v in sizes.items()}


def main() -> None:
    """Print a table, a row for each shape."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    print("| shape | rows × columns | strategy | budget | estimate | fit | estimate | certificate | highest / budget |")
    print("| :-- | --: | :-- | --: | --: | --: | --: | --: | --: |")
    for shape in sys.argv[1:] or SHAPES:
        done = subprocess.run([sys.executable, __file__, "--one", shape], capture_output=True, text=True)
        found = json.loads(done.stdout) if done.returncode == 0 else {"strategy": done.stderr.strip().splitlines()[-1]}
        n, d, _, budget = SHAPES[shape]
        cells = [
            f"{found[name]:.0f}" if name in found else "" for name in ("expected", "fit", "expected proof", "proof")
        ]
        highest = f"{max(found['fit'], found['proof']) / budget:.2f}" if "fit" in found else ""
        print(
            f"| {shape} | {n:,} × {d:,} | {found['strategy']} | {budget:.0f} | {' | '.join(cells)} | {highest} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
