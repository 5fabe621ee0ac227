"""SMRS, sparse modelling representative selection: rows of an affine self-representation, thinned by distance.

Elhamifar, Sapiro, Vidal: See all by looking at a few, CVPR 2012.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, completed, points
from mosaic import ConvergenceWarning, solve
from mosaic.choosing.choose import prune_similar

LARGEST = 50_000
#: Share of the norms that representatives hold, and share of the distances by which they are thinned (authors' values).
NORMS, DISTANCES = 0.99, 0.95
#: How far the sums of the coefficients may be from one, as an ℓ₂ norm over all points, and the gap relative to √n.
VIOLATION, GAP = 1e-2, 1e-5


def row_norms(X: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """‖c_j‖ of min Σ_j ‖c_j‖ + (μ/2) ‖Y − YC‖², 1ᵀC = 1ᵀ, and z_j = ‖μ y_jᵀ(Y − YC) + ν‖ ≤ 1.

    Y holds the points minus their mean, as columns, and μ = alpha / max_j ‖y_jᵀY‖.

    Notes
    -----
    1. The constraint is a penalty (μ c²/2) ‖1ᵀ − 1ᵀC‖², the program MOSAIC's with the kernel YᵀY + c² 11ᵀ. Optimality says
       ‖μ y_jᵀ(Y − YC) + ν‖ ≤ 1 for all j, ν = μ c² (1ᵀ − 1ᵀC); the mean over j is ‖ν‖ ≤ 1, so ‖1ᵀ − 1ᵀC‖ ≤ 1/(μ c²).
    2. The value is at least √n, as rows with the sum 1ᵀ have, which the tolerance is set by. The authors' ADMM stops by a
       mean over n² entries and leaves small rows where the program has none.
    3. z_j = 1 on the support; rows with a smaller z_j are further from being used. That orders rows that are zero.
    """
    Y = X - X.mean(axis=0)
    n = len(Y)
    mu = alpha / float(np.sqrt(np.einsum("ij,ij->i", Y @ (Y.T @ Y), Y).max()))
    lifted = np.column_stack([Y, np.full(n, 1.0 / np.sqrt(mu * VIOLATION))])
    tol = GAP * np.sqrt(n) / (0.5 * mu * float(np.vdot(lifted, lifted)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ranks need no certificate
        encoding = solve(lifted, kernel="linear", lam=mu, tol=max(tol, 1e-12))
    left = lifted - encoding.rows(encoding.support).T @ lifted[encoding.support]
    scores = mu * np.sqrt(np.maximum(np.einsum("ij,ij->i", lifted @ (left.T @ left), lifted), 0.0))
    return np.asarray(encoding.influence), np.asarray(scores)


def holding(norms: FloatArray, share: float) -> IntArray:
    """Rows by norm, the shortest prefix whose sum exceeds a share of the total (the authors' findRep)."""
    order = np.argsort(-norms, kind="stable")
    sums = np.cumsum(norms[order])
    return order[: int(np.searchsorted(sums, share * sums[-1], side="right")) + 1]


def select(X: Any, k: int, seed: int, alpha: float = 5.0) -> Picks:
    """The first k representatives; where thinning leaves fewer, the best of all other rows complete them."""
    X = points(X, k, LARGEST)
    if not np.ptp(X, axis=0).any():
        return Picks(np.arange(k))
    norms, scores = row_norms(X, alpha)
    found = holding(norms, NORMS)
    kept = found[prune_similar(cdist(X[found], X[found]), DISTANCES)]
    return Picks(completed(kept, np.lexsort((-scores, -norms)), k))


SELECTORS = (Selector("SMRS", "paper", select, tuple({"alpha": alpha} for alpha in (2.0, 5.0, 10.0, 20.0)), LARGEST),)
