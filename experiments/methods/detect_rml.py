"""RML, a stand-in: points far from the tangent planes of their neighbourhoods are odd.

Stands in for Du, Sun, Zhou, Zhao: An Outlier Detection Method for Robust Manifold Learning, BIC-TA 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import Floats, points
from mosaic.arrays.blocks import row_blocks

LARGEST = 100_000
WHY = "neighbours of every point, and a singular value decomposition at each"
N_NEIGHBORS = 10
#: Neighbourhoods that are flat to this share of their size count as if they had this thickness.
THINNEST = 1e-6


def distances_to_planes(near: Floats, m: int, others: Floats) -> tuple[Floats, Floats]:
    """Distances to the m-plane that fits ``near`` (b × k × d) best: of the near points themselves and of one other each.

    With N the centred points = W diag(s) Vᵀ, the plane is mean + span(V_1 … V_m); distance² = ‖x‖² − ‖V_mᵀx‖².
    """
    middle = near.mean(axis=1, keepdims=True)
    _, _, directions = np.linalg.svd(near - middle, full_matrices=False)
    plane = directions[:, :m]
    left = []
    for x in (near - middle, others[:, None] - middle):
        residual = x - (x @ plane.transpose(0, 2, 1)) @ plane
        left.append(np.linalg.norm(residual, axis=2))
    return left[0], left[1][:, 0]


def tangent_residuals(X: Floats, neighbours: NDArray[np.intp], m: int) -> Floats:
    """Mean over the neighbourhoods that a point is part of, its own included, of distance to plane / median distance.

    The median is over the neighbours that the plane was fitted to, the point at the centre is not among them.
    """
    n, k = neighbours.shape
    total, count = np.zeros(n), np.zeros(n)
    for block in row_blocks(n, k * X.shape[1]):
        near = X[neighbours[block]]
        inner, own = distances_to_planes(near, m, X[block])
        size = np.linalg.norm(near - X[block][:, None], axis=2).max(axis=1)
        usual = np.maximum(np.median(inner, axis=1), THINNEST * np.where(size > 0, size, 1.0))
        total[block] += own / usual
        count[block] += 1
        np.add.at(total, neighbours[block], inner / usual[:, None])
        np.add.at(count, neighbours[block], 1)
    return total / count


def detect(X: Any, seed: int, m: int = 2) -> Scores:
    """Tangent residuals with planes of m dimensions, fewer where the data have no more: m ≤ d − 1."""
    X = points(X, LARGEST, WHY)
    k = min(N_NEIGHBORS, len(X) - 1)
    neighbours = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    return Scores(tangent_residuals(X, neighbours, min(m, X.shape[1] - 1, k - 1)))


DETECTORS = (Detector("RML (surrogate)", "surrogate", detect, tuple({"m": m} for m in (1, 2, 3)), LARGEST),)
