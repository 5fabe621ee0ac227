"""FDR, a stand-in: points that a map of the data in few dimensions gets wrong are odd.

Stands in for: Outlier detection in the framework of dimensionality reduction, 2015 (source not found).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import Floats, joined, neighbour_graph, path_lengths, points
from mosaic.arrays.blocks import row_blocks

LARGEST = {"isomap": 5000, "lle": 100_000}
WHY = {"isomap": "shortest paths between all n² pairs, held in memory", "lle": "neighbours of every point"}
N_NEIGHBORS = 10
#: Added to the diagonal of a neighbourhood's Gram matrix, as a share of its trace; the customary value.
RIDGE = 1e-3


def classical_map(lengths: Floats, m: int, seed: int) -> Floats:
    """Classical scaling: the m leading eigenvectors of −½ H D² H, times the roots of their eigenvalues."""
    squares = -0.5 * lengths**2
    means = squares.mean(axis=0)
    squares += means.mean() - means - means[:, None]
    start = np.random.default_rng(seed).normal(size=len(squares))
    values, vectors = eigsh(squares, k=m, which="LA", v0=start)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def stress(lengths: Floats, Y: Floats) -> Floats:
    """√(mean_j (d_ij − ‖y_i − y_j‖)²) for every point."""
    values = np.empty(len(Y))
    for block in row_blocks(len(Y), len(Y)):
        values[block] = ((lengths[block] - cdist(Y[block], Y)) ** 2).mean(axis=1)
    return np.sqrt(values)


def reconstruction_error(X: Floats) -> Floats:
    """min_w ‖x_i − Σ_j w_j x_j‖ over weights of the neighbours that sum to one, the first step of LLE.

    (G + ridge·tr(G)·I) w ∝ 1 with G the Gram matrix of the neighbours seen from x_i.
    """
    k = min(N_NEIGHBORS, len(X) - 1)
    neighbours = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    values = np.empty(len(X))
    for block in row_blocks(len(X), k * X.shape[1]):
        seen = X[neighbours[block]] - X[block][:, None]
        G = seen @ seen.transpose(0, 2, 1)
        trace = np.trace(G, axis1=1, axis2=2)
        G += RIDGE * np.where(trace > 0, trace, 1.0)[:, None, None] * np.eye(k)
        weights = np.linalg.solve(G, np.ones((len(G), k, 1)))
        weights /= weights.sum(axis=1, keepdims=True)
        values[block] = np.linalg.norm((weights * seen).sum(axis=1), axis=1)
    return values


def detect(X: Any, seed: int, embedding: str = "lle", m: int = 2) -> Scores:
    """What locally linear embedding leaves of a point, or its stress in an Isomap with m dimensions.

    Classical scaling keeps long distances first, so a point far from all others gets a dimension and little stress.
    """
    X = points(X, LARGEST[embedding], WHY[embedding])
    if embedding == "lle":
        return Scores(reconstruction_error(X))
    lengths = path_lengths(joined(neighbour_graph(X, N_NEIGHBORS), X), np.arange(len(X)))
    return Scores(stress(lengths, classical_map(lengths, min(m, len(X) - 1), seed)))


DETECTORS = (
    Detector(
        "FDR (surrogate)",
        "surrogate",
        detect,
        ({"embedding": "lle"}, {"embedding": "isomap", "m": 2}, {"embedding": "isomap", "m": 5}),
        LARGEST["lle"],
    ),
)
