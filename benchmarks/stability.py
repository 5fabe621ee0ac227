"""How much of a choice stays when nothing, or next to nothing, changes: other seeds, one row in a hundred added or taken away.

Overlap is that of the picks, |A ∩ B| / |A ∪ B| (Jaccard), beside that of k-medoids (FasterPAM, one start, its distance matrix).
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_blobs

from mosaic import MOSAIC, datasets

K, TRIALS, SHARE = 20, 5, 0.01
#: Above this number of rows k-medoids is given distances in single precision.
SINGLE = 5000
SIZES = (500, 2000, 5000, 20_000)


def ours(X: Any, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MOSAIC(K, random_state=seed).fit(X).representative_indices_


def medoids(X: Any, seed: int) -> Any:
    import kmedoids

    D = cdist(X, X) if len(X) <= SINGLE else np.sqrt(squares(X.astype(np.float32)))
    return np.asarray(kmedoids.fasterpam(D, K, random_state=seed, n_cpu=1).medoids, np.intp)


def squares(X: Any) -> Any:
    D = -2.0 * X @ X.T
    lengths = np.einsum("ij,ij->i", X, X)
    D += lengths[:, None]
    D += lengths
    return np.maximum(D, 0.0, out=D)


def overlap(a: Any, b: Any) -> float:
    """|A ∩ B| / |A ∪ B|."""
    return len(np.intersect1d(a, b)) / len(np.union1d(a, b))


def overlaps(X: Any, more: Any, method: Callable[[Any, int], Any], trials: int) -> list[float]:
    """Mean overlap with the picks of all rows and seed 0: for other seeds, with rows taken away, with rows added."""
    first, n = method(X, 0), len(X)
    seeds, fewer, added = [], [], []
    for trial in range(1, trials + 1):
        rng = np.random.default_rng(trial)
        seeds.append(overlap(first, method(X, trial)))
        kept = np.sort(rng.choice(n, n - round(SHARE * n), replace=False))
        fewer.append(overlap(first, kept[method(X[kept], 0)]))
        extra = more[rng.choice(len(more), round(SHARE * n), replace=False)]
        added.append(overlap(first, method(np.vstack([X, extra]), 0)))
    return [float(np.mean(found)) for found in (seeds, fewer, added)]


def cases(sizes: list[int]) -> dict[str, tuple[Any, Any]]:
    """Points, and points of the same kind that may be added."""
    found: dict[str, tuple[Any, Any]] = {}
    for n in sizes:
        X = make_blobs(n + n // 10 + 10, 10, centers=K, random_state=0)[0]
        found[f"blobs, {n:,} × 10"] = X[:n], X[n:]
        X = datasets.swiss_roll(n + n // 10 + 10)
        found[f"swiss roll, {n:,} × 3"] = X[:n], X[n:]
        X = np.random.default_rng(0).normal(size=(n + n // 10 + 10, 8))
        found[f"normal, {n:,} × 8"] = X[:n], X[n:]
    X = load_digits().data
    found["digits, 1,600 × 64"] = X[:1600], X[1600:]
    return found


def unchanged(X: Any) -> list[str]:
    """Whether rows in another order, columns in another order, and another power of two as unit give the same picks."""
    rng, first = np.random.default_rng(1), ours(X, 0)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
    others = [rows[ours(X[rows], 0)], ours(X[:, columns], 0), ours(1024.0 * X, 0), ours(X / 4096.0, 0)]
    same = ["yes" if set(first) == set(other) else f"{overlap(first, other):.2f}" for other in others]
    return [*same, f"{len(np.intersect1d(first, ours(X @ rotation, 0)))} of {K}"]


def main() -> None:
    """Measure and write benchmarks/results/stability.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few trials: only to see that it runs")
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    options = parser.parse_args()
    sizes = [300] if options.quick else [n for n in SIZES if n <= options.largest]
    rows, same = [], []
    for name, (X, more) in cases(sizes).items():
        trials = 1 if options.quick else TRIALS if len(X) <= SINGLE else 2
        a, b = (overlaps(X, more, method, trials) for method in (ours, medoids))
        rows.append([name, *(f"{x:.2f} / {y:.2f}" for x, y in zip(a, b, strict=True))])
        print(*rows[-1], flush=True)
        same.append([name, *unchanged(X)])
    kinds = ["another seed", "1 % of rows taken away", "1 % of rows added"]
    parts = [
        header("What of a choice stays", ["numpy", "scipy", "scikit-learn", "kmedoids"]),
        f"MOSAIC({K}) / k-medoids of {K}: mean overlap of the picks (Jaccard) with those of all rows and seed 0.\n",
        table(["data", *kinds], rows),
        "## What changes nothing\n",
        "Whether the picks are the same with rows or columns in another order, or another power of two as unit; and how\n"
        "many stay if the data is rotated.\n",
        table(["data", "rows", "columns", "× 1024", "÷ 4096", "rotated"], same),
    ]
    write("stability.md", "\n".join(parts))


if __name__ == "__main__":
    main()
