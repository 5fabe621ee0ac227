"""DS3 with its outlier row: a point is odd if not being represented costs it less than being represented."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import Floats, points

LARGEST = 2000
WHY = "thousands of iterations on several n×n arrays"
PENALTY, TOLERANCE, MOST_ITERATIONS = 0.1, 1e-7, 3000


@dataclass(frozen=True)
class Assignment:
    """Z (who represents whom), e (who is represented by nobody); columns of both together lie on the simplex."""

    Z: Floats
    e: Floats
    n_iter: int
    converged: bool


def largest_rho(D: Floats) -> float:
    """max_i ½‖d_i − d_*‖₁ with d_* the row of the smallest sum: from here on one representative suffices (p = ∞)."""
    best = int(np.argmin(D.sum(axis=1)))
    return float(0.5 * np.abs(D - D[best]).sum(axis=1).max())


def assign(D: Floats, outlier_cost: Floats, rho: float, max_iter: int = MOST_ITERATIONS) -> Assignment:
    """Minimise ρ Σ_i ‖z_i‖_∞ + tr(DᵀZ) + wᵀe subject to 1ᵀZ + eᵀ = 1ᵀ, Z ≥ 0, e ≥ 0, by ADMM.

    With E = [D; wᵀ] and penalty μ: Z = prox of (ρ/μ)‖·‖_∞ on the rows of C − (Λ + E)/μ, the last row as it is;
    C = projection of the columns of Z + Λ/μ on the simplex; Λ += μ(Z − C). Starts with all points at the best row.
    Below, ``scaled`` is Λ/μ. Whether to stop is asked every tenth time, since asking costs as much as a step.
    """
    E = np.vstack([D, outlier_cost]) / PENALTY
    C, scaled = np.zeros_like(E), np.zeros_like(E)
    C[int(np.argmin(D.sum(axis=1)))] = 1.0
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        Z = C - scaled
        Z -= E
        Z[:-1] = shrunk_peaks(Z[:-1], rho / PENALTY)
        scaled += Z
        before, C = C, on_simplex(scaled)
        scaled -= C
        n_iter += 1
        if n_iter % 10 == 0:
            converged = max(np.abs(Z - C).mean(), np.abs(C - before).mean()) <= TOLERANCE
    return Assignment(C[:-1], C[-1], n_iter, converged)


def on_simplex(A: Floats) -> Floats:
    """Euclidean projection of every column on {x ≥ 0, Σx = 1}: max(a − θ, 0) with θ where it sums to one."""
    above = A - level(A, 1.0, axis=0)
    return np.asarray(np.maximum(above, 0.0, out=above))


def shrunk_peaks(A: Floats, radius: float) -> Floats:
    """The prox of radius·‖·‖_∞ on rows: a clipped to ±θ where Σ max(|a| − θ, 0) = radius, zero if ‖a‖₁ ≤ radius."""
    if radius <= 0:
        return A
    size = np.abs(A)
    left = size.sum(axis=1) > radius
    result = np.zeros_like(A)
    theta = level(size[left], radius, axis=1)
    result[left] = np.clip(A[left], -theta, theta)
    return result


def level(A: Floats, total: float, axis: int) -> Floats:
    """θ with Σ max(a − θ, 0) = total along the axis, by Newton steps from below, which are finitely many.

    The function is convex and falls, so a step from below stays below; θ is (Σ_{a>θ} a − total) / #{a > θ} in the end.
    """
    theta = (A.sum(axis=axis, keepdims=True) - total) / A.shape[axis]
    theta = np.maximum(theta, A.max(axis=axis, keepdims=True, initial=-np.inf) - total)
    while True:
        above = theta < A
        new = (np.where(above, A, 0.0).sum(axis=axis, keepdims=True) - total) / above.sum(axis=axis, keepdims=True)
        if not (new > theta + 1e-15 * np.abs(theta)).any():
            return np.asarray(theta)
        theta = np.maximum(theta, new)


def detect(X: Any, seed: int, alpha: float = 0.1, beta: float = 1.0, tau: float = 1.0) -> Scores:
    """e_j at ρ = α·ρ_max, cost of standing alone w_j = β exp(−min_{i≠j} d_ij / τ'), d Euclidean over its maximum.

    τ' is tau times the median distance to the nearest neighbour. The authors leave β and τ to the user. A point is flagged
    if the outlier row is the largest entry of its column, the rule by which DS3 assigns points.
    """
    X = points(X, LARGEST, WHY)
    D = cdist(X, X)
    D /= max(D.max(), np.finfo(np.float64).tiny)
    nearest = (D + np.diag(np.full(len(D), np.inf))).min(axis=1)
    unit = float(np.median(nearest[nearest > 0])) if (nearest > 0).any() else 1.0
    found = assign(D, beta * np.exp(-nearest / (tau * unit)), alpha * largest_rho(D))
    reached = "" if found.converged else f", not converged in {found.n_iter} iterations"
    return Scores(found.e, found.e > found.Z.max(axis=0), f"{int((found.e > 0).sum())} scores are not zero{reached}")


DETECTORS = (
    Detector(
        "DS3",
        "paper",
        detect,
        tuple({"alpha": a, "beta": b, "tau": t} for a, b, t in product((0.01, 0.1), (0.3, 1.0), (1.0, 3.0))),
        LARGEST,
        "Elhamifar, Sapiro, Sastry: Dissimilarity-based Sparse Subset Selection, IEEE TPAMI 2016",
    ),
)
