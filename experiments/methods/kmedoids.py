"""K-medoids by FasterPAM: picks with the least sum of distances to the nearest of them.

Schubert, Rousseeuw: FasterPAM, Inf. Systems 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

from experiments.methods import CannotRun, Picks, Selector
from experiments.methods._selecting import generator, points
from mosaic.arrays.blocks import row_blocks

LARGEST = 20_000
#: Starts, of which the one with the lowest loss counts.
STARTS = 5
#: Above this number of points distances are kept in single precision, so that they fit into 1.6 GB.
DOUBLE = 5000


def select(X: Any, k: int, seed: int, starts: int = STARTS) -> Picks:
    """min_S Σ_i min_{j∈S} ‖x_i − x_j‖ by swaps, the best of some starts; medoids by the size of their clusters. Without starts
    it is PAM, which builds its first medoids one after another and swaps the best pair.
    """
    X = points(X, k, LARGEST)
    try:
        from kmedoids import fasterpam, pam  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise CannotRun("the package kmedoids is not installed") from error
    n = len(X)
    if k == n:
        return Picks(np.arange(n))
    D = np.empty((n, n), dtype=np.float64 if n <= DOUBLE else np.float32)
    for rows in row_blocks(n, n):
        D[rows] = cdist(X[rows], X)
    if not starts:
        return Picks(np.asarray(pam(D, k).medoids, np.intp))
    seeds = generator(seed).integers(2**31, size=starts)
    found = [fasterpam(D, k, random_state=int(s), n_cpu=1) for s in seeds]
    best = min(found, key=lambda result: result.loss)
    sizes = np.bincount(np.asarray(best.labels, np.intp), minlength=k)
    medoids = np.asarray(best.medoids, np.intp)[np.argsort(-sizes, kind="stable")]
    return Picks(medoids)


def select_by_direction(X: Any, k: int, seed: int) -> Picks:
    """The same on rows of unit length."""
    return select(normalize(X), k, seed)


SELECTORS = (
    Selector("K-medoids", "paper", select, largest=LARGEST),
    Selector("K-medoids (unit rows)", "peer", select_by_direction, largest=LARGEST),
)
