"""DS3, dissimilarity-based sparse subset selection: an assignment of all points to few, with p = ∞, by ADMM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, completed, distances, points, ranking

LARGEST = 1000
#: Penalty, tolerance and most steps of ADMM, as the authors have them.
PENALTY, TOLERANCE, STEPS = 0.1, 1e-7, 3000
#: Steps between looks at the tolerance, which cost as much as a step.
CHECK = 10
#: Rows count whose largest entry reaches this share of the largest of all.
SHARE = 0.1
#: Strengths that are tried on the way to k representatives.
TRIALS = 10
#: Weakest strength that is tried, as a share of the strongest; below it every point would be its own representative.
WEAKEST = 1e-4


@dataclass(frozen=True)
class State:
    """Where ADMM stands: the assignment, feasible, and the multiplier divided by the penalty."""

    C: FloatArray
    U: FloatArray


def threshold(V: FloatArray, total: float, guess: FloatArray) -> FloatArray:
    """θ_i with Σ_j max(v_ij − θ_i, 0) = total > 0, for every row, by Newton's method.

    The sum is convex and piecewise linear in θ: the first step lands left of the root from wherever it starts, the others
    go right and end on the root. A guess from the step before of ADMM makes them few; sorting would cost more.
    """
    θ = np.minimum(guess, V.max(axis=1) - total / V.shape[1])  # at least one entry is larger
    first = True
    while True:
        above = θ[:, None] < V
        better = (np.einsum("ij,ij->i", V, above) - total) / above.sum(axis=1)
        if not first and not (better > θ + 1e-13 * (1.0 + np.abs(θ))).any():
            return np.asarray(better)
        θ, first = better, False


def largest_strength(D: FloatArray) -> tuple[float, int]:
    """ρ_max = max_{i ≠ i*} ½ ‖d_i − d_i*‖₁, from which on i* = argmin_i Σ_j d_ij stands for all, and i*."""
    medoid = int(D.sum(axis=1).argmin())
    return float(0.5 * np.abs(D - D[medoid]).sum(axis=1).max()), medoid


def start(D: FloatArray) -> State:
    """All points assigned to the one medoid."""
    C = np.zeros_like(D)
    C[largest_strength(D)[1]] = 1.0
    return State(C, np.zeros_like(D))


def solve(D: FloatArray, strength: float, state: State, tol: float = TOLERANCE, steps: int = STEPS) -> State:
    """Minimise ρ Σ_i ‖z_i‖_∞ + tr(DᵀZ), Z ≥ 0, 1ᵀZ = 1ᵀ, by ADMM from a state.

    Rows of Z: prox of (ρ/μ)‖·‖_∞ at V = C − U − D/μ, that is V cut at ±θ with Σ_j max(|v_j| − θ, 0) = ρ/μ, zero if θ < 0.
    Columns of C: those of Z + U projected on the simplex, max(v − θ, 0) with sum 1. Then U += Z − C.
    """
    C, U, costs = state.C, state.U, D / PENALTY
    levels, shifts = np.full(len(D), np.inf), np.full(len(D), np.inf)
    for step in range(1, steps + 1):
        before = C
        V = C - U - costs
        levels = threshold(np.abs(V), strength / PENALTY, levels)
        cut = np.maximum(levels, 0.0)[:, None]
        Z = np.minimum(np.maximum(V, -cut, out=V), cut, out=V)
        columns = np.ascontiguousarray((Z + U).T)
        shifts = threshold(columns, 1.0, shifts)
        C = np.ascontiguousarray(np.maximum(columns - shifts[:, None], 0.0).T)
        U = U + Z - C
        if step % CHECK == 0 and max(np.abs(Z - C).mean(), np.abs(C - before).mean()) <= tol:
            break
    return State(C, U)


def representatives(C: FloatArray) -> IntArray:
    """Rows with a largest entry of at least 0.1 of the largest of all, by ℓ₂ norm."""
    largest = C.max(axis=1)
    ranked = np.argsort(-np.linalg.norm(C, axis=1), kind="stable")
    return np.asarray(ranked[largest[ranked] >= SHARE * largest.max()])


def reach(D: FloatArray, k: int) -> tuple[State, float]:
    """A state with k representatives, or up to a tenth more, and its ρ/ρ_max, by bisection of log ρ with warm starts."""
    strongest = largest_strength(D)[0]
    low, high = np.log(WEAKEST), 0.0
    state = best = start(D)
    best_log, best_count = high, 1
    for _ in range(TRIALS):
        if k <= best_count <= 1.1 * k:
            break
        middle = 0.5 * (low + high)
        # To the full tolerance: with a tenth of the accuracy points that are alike still share, and the count is wrong.
        state = solve(D, float(np.exp(middle)) * strongest, state)
        count = len(representatives(state.C))
        # Some too many are dropped by rank; too few would have to be completed by rows that represent nobody.
        if (count < k, abs(count - k)) < (best_count < k, abs(best_count - k)):
            best, best_log, best_count = state, middle, count
        low, high = (low, middle) if count < k else (middle, high)
    return best, float(np.exp(best_log))


def select(X: Any, k: int, seed: int, squared: bool = False) -> Picks:
    """The strength that gives k representatives; the first k by norm if it gives more, completed by norm if fewer."""
    X = points(X, k, LARGEST)
    D = distances(X) ** (2 if squared else 1)
    if not D.any():
        return Picks(ranking(np.zeros(len(X)), seed)[:k], "all points are equal")
    state, alpha = reach(D / D.max(), k)
    found = representatives(state.C)
    picks = completed(found, ranking(np.linalg.norm(state.C, axis=1), seed), k)
    return Picks(picks, f"{len(found)} at {alpha:.2g} of the largest strength")


SELECTORS = (
    Selector(
        "DS3",
        "paper",
        select,
        ({"squared": False}, {"squared": True}),
        LARGEST,
        "Elhamifar, Sapiro, Sastry: Dissimilarity-based sparse subset selection, TPAMI 2016",
    ),
)
