"""Four ways that everybody knows: at random, k-means, farthest points, the seeds of k-means++.

k-means: Lloyd 1982; scikit-learn.
farthest point: Gonzalez, TCS 1985.
k-means++: Arthur, Vassilvitskii, SODA 2007; scikit-learn.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, kmeans_plusplus

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, check, completed, generator, points

LARGEST, LARGEST_LOT = 1_000_000, 100_000_000
#: Starts of k-means up to this many points; one beyond.
STARTS, SMALL = 10, 20_000


def at_random(X: Any, k: int, seed: int) -> Picks:
    """By lot, k rows."""
    check(X.shape[0], k, LARGEST_LOT)
    return Picks(generator(seed).choice(X.shape[0], k, replace=False))


def nearest_to(centres: FloatArray, X: FloatArray) -> IntArray:
    """argmin_i ‖x_i − c‖ for every centre in turn, among the points that no earlier centre has taken."""
    taken: list[int] = []
    for centre in centres:
        D = cdist(centre[None], X, "sqeuclidean")[0]
        D[taken] = np.inf
        taken.append(int(D.argmin()))
    return np.array(taken, dtype=np.intp)


def by_k_means(X: Any, k: int, seed: int) -> Picks:
    """The points nearest to the means of k-means, those of large clusters first."""
    X = points(X, k, LARGEST)
    state = int(generator(seed).integers(2**31))
    model = KMeans(k, n_init=STARTS if len(X) <= SMALL else 1, random_state=state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct points than clusters
        model.fit(X)
    order = np.argsort(-np.bincount(model.labels_, minlength=k), kind="stable")
    return Picks(nearest_to(model.cluster_centers_[order], X))


def farthest_points(X: Any, k: int, seed: int) -> Picks:
    """argmax_i min_{j∈S} ‖x_i − x_j‖, k − 1 times, from a random point (Gonzalez's 2-approximation of k-centre)."""
    X = points(X, k, LARGEST)
    chosen = [int(generator(seed).integers(len(X)))]
    nearest = np.full(len(X), np.inf)
    while len(chosen) < k:
        nearest = np.minimum(nearest, cdist(X[chosen[-1:]], X)[0])
        nearest[chosen[-1]] = -1.0  # a copy of a pick may be chosen, the pick itself not
        chosen.append(int(nearest.argmax()))
    return Picks(np.array(chosen, dtype=np.intp))


def by_seeding(X: Any, k: int, seed: int) -> Picks:
    """k-means++: draw x with probability proportional to its squared distance to the nearest pick, the best of a few."""
    X = points(X, k, LARGEST)
    rng = generator(seed)
    chosen = kmeans_plusplus(X, k, random_state=int(rng.integers(2**31)))[1]
    return Picks(completed(chosen, rng.permutation(len(X)), k))


SELECTORS = (
    Selector("random", "peer", at_random, largest=LARGEST_LOT),
    Selector("k-means", "peer", by_k_means, largest=LARGEST),
    Selector("farthest point", "peer", farthest_points, largest=LARGEST),
    Selector("k-means++", "peer", by_seeding, largest=LARGEST),
)
