"""``mosaic.estimate`` against the resident memory that a fit and its certificate take.

Every case is a process of its own. The formulas were chosen with blobs and confirmed with the other data. Run
``python benchmarks/estimates.py blobs``, or with other kinds of data; without any, all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

from report import header, table, write  # first: it sets the number of threads

import numpy as np  # isort: skip
from budgets import MB, reset, resident

#: Kinds of data, and the rows × columns that are measured of each.
CASES: dict[str, list[tuple[int, int]]] = {
    "blobs": [
        (60, 4), (300, 5), (1000, 10), (1000, 200), (2000, 10), (5000, 10), (5000, 500), (20_000, 10), (50_000, 50),
        (200_000, 10),
    ],
    "float32": [(2000, 50), (50_000, 20)],
    "sparse": [(3000, 500), (20_000, 2000)],
    "mixed": [(2000, 8), (20_000, 8)],
    "swiss roll": [(100, 3), (300, 3), (1500, 3), (5000, 3), (20_000, 3), (100_000, 3)],
    "heavy tails": [(700, 20), (3000, 20), (20_000, 20), (100_000, 20)],
    "sparse topics": [(2000, 1000), (30_000, 500)],
    "mixed frame": [(1000, 12), (30_000, 12)],
}  # fmt: skip


def make(kind: str, n: int, d: int) -> Any:
    """Data of a kind."""
    import pandas as pd
    import scipy.sparse as sp

    import mosaic

    rng = np.random.default_rng(0)
    blobs = rng.normal(size=(8, d))[rng.integers(0, 8, n)] * 4 + rng.normal(size=(n, d))
    if kind in ("blobs", "float32"):
        return blobs.astype(np.float32) if kind == "float32" else blobs
    if kind == "swiss roll":
        return mosaic.datasets.swiss_roll(n)
    if kind == "heavy tails":
        return rng.standard_t(2, size=(n, d))
    if kind == "sparse":
        return sp.random_array((n, d), density=0.01, rng=rng, format="csr")
    if kind == "sparse topics":
        topics = rng.dirichlet(np.full(d, 0.02), 6)
        return sp.csr_array(rng.poisson(60 * topics[rng.integers(0, 6, n)]).astype(float))
    numbers = pd.DataFrame(blobs if kind == "mixed" else rng.standard_t(3, size=(n, d)))
    numbers.columns = [f"x{j}" for j in range(d)]
    return numbers.assign(shop=rng.choice(list("abcdefgh"), n), member=rng.random(n) < 0.3)


def measure(kind: str, n: int, d: int) -> dict[str, float]:
    """The estimate of a case, and what it takes."""
    import mosaic

    warnings.simplefilter("ignore")
    X = make(kind, n, d)
    mosaic.MOSAIC(3).fit(make(kind, 60, d)).certificate_  # noqa: B018
    expected = mosaic.estimate(X, n_representatives=20)
    before = reset()
    model = mosaic.MOSAIC(20).fit(X)
    fit = resident("VmHWM:") - before
    reset()
    model.certificate_  # noqa: B018
    proof = resident("VmHWM:") - before
    return {
        "points": expected.n_points, "rank": expected.rank, "found rank": model.certificate_.rank,
        "fit memory": fit / MB, "expected fit memory": expected.memory / MB,
        "proof memory": proof / MB, "expected proof memory": expected.proof_memory / MB,
        "least proof memory": expected.least_proof_memory / MB,
    }  # fmt: skip


def ratio(least: float, most: float, took: float) -> str:
    """The estimate divided by what was measured; of a range that holds it, 1."""
    return f"{least / took if least > took else most / took if most < took else 1:.2f}"


def main() -> None:
    """Print a table, a row for each case: what was measured, and the estimate divided by it."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
        return
    rows = []
    for kind in sys.argv[1:] or CASES:
        for n, d in CASES[kind]:
            command = [sys.executable, __file__, "--one", kind, str(n), str(d)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            cells = [kind, f"{n:,} × {d:,}", f"{found['rank']}", f"{found['found rank']}"]
            for part in ("fit", "proof"):
                took, said = found[f"{part} memory"], found[f"expected {part} memory"]
                cells += [f"{took:.0f}", ratio(found.get(f"least {part} memory", said), said, took)]
            rows.append(cells)
            print(*cells, sep="  ", flush=True)
    head = ["data", "rows × columns", "rank", "found", "fit, MB", "estimate /", "certificate, MB", "estimate /"]
    told = (
        "Rise of resident memory, and beside it what `mosaic.estimate` said, divided by it; 1 where it said a range that holds "
        "it. The formulas were chosen with the first four kinds of data and confirmed with the others."
    )
    if not sys.argv[1:]:
        write(
            "estimates.md", f"{header('Estimates', ['numpy', 'scipy', 'scikit-learn'])}\n{told}\n\n{table(head, rows)}"
        )


if __name__ == "__main__":
    main()
