"""How far rows are from their representatives, for few and very many of these, beside OneBatchPAM, FasterPAM and k-means.

One thread; every line is measured in one run. Distances are those of the rows that are no planted outlier, as shares of the
distance to as many random rows. OneBatchPAM is measured where ``onebatch`` can be imported; it is no extra of ours, since its
wheel installs a package that is called ``tests``.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import kmedoids
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin, pairwise_distances_argmin_min

from mosaic import MOSAIC

SIZES = (2000, 6000, 20_000, 100_000)
NUMBERS = (10, 100, 500, 1000, 1023, 1024, 1025, 2000)
#: Kinds of data and their columns.
DATA = (("cube", 2), ("cube", 8), ("blobs", 16), ("uneven", 64))
#: Larger problems are not given to methods whose time or memory grows with n², or with n·k.
MOST_OF_FASTERPAM, MOST_OF_ONEBATCH = 6000, 20_000_000

Array = NDArray[Any]


def rows_of(kind: str, n: int, d: int) -> tuple[Array, Array]:
    """Rows, and a mask of those that are planted outliers: one in a thousand, and five at the least."""
    rng = np.random.default_rng(0)
    if kind == "cube":
        X = rng.random((n, d))
    elif kind == "blobs":
        X = rng.uniform(-10.0, 10.0, (30, d))[rng.integers(30, size=n)] + rng.normal(size=(n, d))
    else:
        share = np.geomspace(1.0, 100.0, 20)
        cluster = rng.choice(20, n, p=share / share.sum())
        X = 8.0 * rng.normal(size=(20, d))[cluster] + rng.uniform(0.3, 2.0, 20)[cluster, None] * rng.normal(size=(n, d))
    far = rng.normal(size=(max(5, n // 1000), d))
    far *= 60.0 * np.sqrt(d) * rng.uniform(1.0, 3.0, (len(far), 1)) / np.linalg.norm(far, axis=1, keepdims=True)
    return np.concatenate([X, far]), np.arange(n + len(far)) >= n


def mosaic(X: Array, k: int) -> Array:
    return MOSAIC(k, n_jobs=1).fit(X).representative_indices_


def k_means(X: Array, k: int) -> Array:
    centres = MiniBatchKMeans(k, n_init=3, random_state=0).fit(X).cluster_centers_
    return np.unique(pairwise_distances_argmin(centres, X))


def faster_pam(X: Array, k: int) -> Array | None:
    if len(X) > MOST_OF_FASTERPAM:
        return None
    return np.asarray(kmedoids.fasterpam(cdist(X, X), k, random_state=0).medoids, np.intp)


def one_batch(X: Array, k: int) -> Array | None:
    if len(X) * k > MOST_OF_ONEBATCH:
        return None
    try:
        import onebatch
    except ImportError:
        return None
    return np.asarray(onebatch.OneBatchPAM(n_medoids=k, random_state=0).fit(X).medoid_indices_, np.intp)


METHODS: dict[str, Callable[[Array, int], Array | None]] = {
    "MOSAIC": mosaic, "k-means + row": k_means, "OneBatchPAM": one_batch, "FasterPAM": faster_pam,
}  # fmt: skip


def distance(X: Array, rows: Array) -> float:
    return float(pairwise_distances_argmin_min(X, rows)[1].mean())


def cells(kind: str, n: int, d: int, k: int) -> Iterator[str]:
    """Distance, planted outliers among the picks, and processor seconds of each method."""
    X, is_far = rows_of(kind, n, d)
    honest = X[~is_far]
    random = distance(honest, honest[np.random.default_rng(1).choice(n, k, replace=False)])
    for method in METHODS.values():
        start = time.process_time()
        picks = method(X, k)
        seconds = time.process_time() - start
        if picks is None:
            yield "–"
            continue
        share = distance(honest, X[picks]) / random
        yield f"{share:.3f}, {int(is_far[picks].sum())}, {seconds:.2g} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--numbers", type=int, nargs="+", default=NUMBERS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for n in given.sizes:
        for kind, d in DATA:
            for k in sorted({*given.numbers, n // 4}):
                if k <= n // 4:
                    lines.append([f"{n:,}", f"{kind}, {d}", f"{k:,}", *cells(kind, n, d, k)])
                    print(*lines[-1], sep=" | ", flush=True)
    head = ["rows", "data, columns", "picks", *METHODS]
    text = f"{__doc__}\nCells: distance, planted outliers among the picks, processor seconds.\n"
    write("many_picks.md", header("Few and many picks", ["kmedoids", "onebatch", "scikit-learn"]) + text + table(head, lines))


if __name__ == "__main__":
    main()
