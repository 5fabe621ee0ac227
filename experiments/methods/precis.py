"""Manifold Précis: swaps for diversity (volume) and k-means steps for representation take turns until they agree.

Shroff, Turaga, Chellappa: Manifold Précis, NIPS 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, pivots, points
from experiments.methods.manifold_kmeans import NEIGHBOURS, assigned, geodesics, lloyd
from mosaic.kernels import Precomputed

LARGEST = 3000
#: Ratio of volumes that a swap must reach, its growth from turn to turn, the number of turns, and k-means sweeps of each.
#: The authors' schedule could not be confirmed; these are ours.
FIRST_RATIO, GROWTH, TURNS, SWEEPS = 1.2, 1.5, 12, 3
#: Swaps of one turn for every pick.
SWAPS = 3


def tangent_gram(D: FloatArray) -> FloatArray:
    """Inner products at the mean, −½ H D² H without its negative part (classical scaling); H = I − 11ᵀ/n."""
    B = D**2
    B = -0.5 * (B - B.mean(axis=0) - B.mean(axis=1)[:, None] + B.mean())
    values, vectors = eigh(0.5 * (B + B.T))
    keep = values > 1e-10 * max(float(values[-1]), 0.0)
    coordinates = vectors[:, keep] * np.sqrt(values[keep])
    return np.asarray(coordinates @ coordinates.T)


def volume_ratios(G: FloatArray, chosen: IntArray) -> FloatArray:
    """β_ij = √((R₁₁⁻¹R₁₂)_ij² + ‖R₂₂e_j‖² ‖e_iᵀR₁₁⁻¹‖²), the factor by which the volume grows if j replaces pick i.

    With G = AᵀA: R₁₁⁻¹R₁₂ = G_SS⁻¹G_S:, ‖R₂₂e_j‖² = g_jj − g_jSᵀ G_SS⁻¹ g_Sj and ‖e_iᵀR₁₁⁻¹‖² = (G_SS⁻¹)_ii.
    """
    inner = G[np.ix_(chosen, chosen)]
    ridge = 1e-12 * max(float(np.trace(inner)), float(np.finfo(np.float64).tiny))  # picks may be copies of one another
    factor = cho_factor(inner + ridge * np.eye(len(chosen)))
    weights, inverse = cho_solve(factor, G[chosen]), cho_solve(factor, np.eye(len(chosen)))
    left = np.maximum(np.diagonal(G) - np.einsum("ij,ij->j", G[chosen], weights), 0.0)
    return np.asarray(np.sqrt(weights**2 + left * np.diagonal(inverse)[:, None]))


def more_diverse(G: FloatArray, chosen: IntArray, ratio: float) -> IntArray:
    """Swap the pair with the largest ratio of volumes as long as it exceeds ``ratio``."""
    chosen = chosen.copy()
    for _ in range(SWAPS * len(chosen)):
        β = volume_ratios(G, chosen)
        β[:, chosen] = 0.0
        i, j = np.unravel_index(int(β.argmax()), β.shape)
        if β[i, j] <= ratio:
            break
        chosen[i] = j
    return chosen


def select(X: Any, k: int, seed: int, n_neighbors: int = 10) -> Picks:
    """Start from pivots of the inner products; then swaps and k-means steps, the ratio for swaps growing."""
    X = points(X, k, LARGEST)
    if k == len(X) or not np.ptp(X, axis=0).any():
        return Picks(np.arange(k))
    D = geodesics(X, n_neighbors)
    G = tangent_gram(D)
    chosen = pivots(Precomputed(G), k, "greedy", seed)
    ratio = FIRST_RATIO
    for _ in range(TURNS):
        before = set(chosen.tolist())
        chosen = lloyd(D, more_diverse(G, chosen, ratio), SWEEPS)
        ratio *= GROWTH
        if set(chosen.tolist()) == before:
            break
    order = np.argsort(-np.bincount(assigned(D, chosen)[0], minlength=k), kind="stable")
    return Picks(chosen[order])


SELECTORS = (Selector("Précis", "peer", select, NEIGHBOURS, LARGEST),)
