"""Coherence pursuit and its kernel form: points that agree in direction with few others are odd.

CoP: Rahmani, Atia: Coherence Pursuit, IEEE TSP 2017.
Kernel CoP: Sedghi, Atia, Georgiopoulos: Kernel Coherence Pursuit, Asilomar 2018 (text not seen; the natural kernel form).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import CannotRun, Detector, Scores
from experiments.methods.detect_parts import BANDWIDTHS, Floats, gaussian, points, squared_median_distance
from mosaic.arrays.blocks import row_blocks

LARGEST, LARGEST_PAIRS = 1_000_000, 100_000
WHY, WHY_PAIRS = "the points are held in memory", "all n² pairs are visited"


def coherence(X: Floats, power: int = 2) -> Floats:
    """p_i = Σ_{j≠i} |g_ij|^power with g_ij = x_iᵀx_j / (‖x_i‖‖x_j‖); a zero row has p = 0.

    For power 2 the sum is x̂_iᵀ(Σ_j x̂_j x̂_jᵀ)x̂_i − 1, which needs no pairs where there are fewer features than points.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    unit = X / np.where(lengths > 0, lengths, 1.0)[:, None]
    if power == 2 and X.shape[1] < len(X):
        sums = np.einsum("ij,ij->i", unit @ (unit.T @ unit), unit)
    else:
        sums = np.empty(len(X))
        for block in row_blocks(len(X), len(X)):
            sums[block] = (np.abs(unit[block] @ unit.T) ** power).sum(axis=1)
    return np.asarray(np.maximum(sums - (lengths > 0), 0.0))


def scores(sums: Floats) -> Scores:
    """−p_i / max p: in [−1, 0], zero for a point that agrees with nobody. Coherence pursuit has no threshold."""
    return Scores(-sums / max(float(sums.max()), np.finfo(np.float64).tiny))


def detect(X: Any, seed: int, power: int = 2) -> Scores:
    """CoP of the data as they are, not centred. Directions alone count: a point far out on a common line is not odd."""
    X = points(X, LARGEST, WHY)
    if len(X) > LARGEST_PAIRS and (power != 2 or X.shape[1] >= len(X)):
        raise CannotRun(f"{len(X):,} points, takes at most {LARGEST_PAIRS:,} with these settings: {WHY_PAIRS}")
    return scores(coherence(X, power))


def detect_kernel(X: Any, seed: int, bandwidth: float = 1.0) -> Scores:
    """Kernel CoP: p_i = Σ_{j≠i} exp(−‖x_i − x_j‖²/σ²)² with σ² = bandwidth · (median distance)².

    For this kernel the sum of absolute values is the same score at half the σ², so the power is no setting.
    """
    X = points(X, LARGEST_PAIRS, WHY_PAIRS)
    width = 0.5 * bandwidth * squared_median_distance(X, seed)
    sums = np.empty(len(X))
    for block in row_blocks(len(X), len(X)):
        sums[block] = gaussian(X[block], X, width).sum(axis=1) - 1.0
    return scores(np.maximum(sums, 0.0))


DETECTORS = (
    Detector("CoP", "paper", detect, ({"power": 2}, {"power": 1}), LARGEST),
    Detector("Kernel CoP", "paper", detect_kernel, tuple({"bandwidth": bandwidth} for bandwidth in BANDWIDTHS), LARGEST_PAIRS),
)
