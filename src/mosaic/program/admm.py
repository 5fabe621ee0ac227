"""The paper's ADMM, in its own n×n form and on the reduced tasks, for row norms ℓ₂ and ℓ_∞.

    Δ ← (lam K + ρ I)⁻¹ (lam F T + ρ (R − Q)),   R ← prox_{1/ρ}(Δ + Q),   Q ← Q + Δ − R.

The problem decides the form: T = Fᵀ gives the paper's (lam F T = lam K), a smaller T the reduced one.

Notes
-----
1. The paper does not say how ρ is chosen. We start from ρ = lam · tr K / n and double or halve it while primal and dual
   residuals differ by more than a factor of ten, for the first hundred iterations (every change costs a new inverse).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.program.problem import Bounds, RowProgram

#: Iterations during which ρ is adapted; every change costs a new inverse.
BALANCING_ITERATIONS = 100


class State(NamedTuple):
    """R, the scaled multiplier Q, ρ, the inverse that belongs to ρ, and the number of steps."""

    R: FloatArray
    Q: FloatArray
    rho: float
    inverse: FloatArray
    steps: int


@dataclass(frozen=True)
class ADMM:
    """Alternating directions: one product with a stored inverse and one shrinkage per step."""

    check_every: int = 10
    patience: int = 300

    def init(self, problem: RowProgram, start: FloatArray | None) -> State:
        """Start from zero, as in the paper, or from ``start``."""
        R = np.zeros(problem.shape) if start is None else start
        rho = problem.lam * float(np.vdot(problem.F, problem.F)) / problem.F.shape[0]
        return State(R, np.zeros(problem.shape), rho, _inverse(problem, rho), 0)

    def step(self, problem: RowProgram, state: State) -> State:
        """One round of the three updates; then balance the residuals by adapting ρ."""
        R, Q, rho, inverse, steps = state
        Δ = _solve(problem, rho, inverse, problem.lam * problem.FT + rho * (R - Q))
        new = problem.prox(Δ + Q, 1.0 / rho)
        Q = Q + Δ - new
        if steps < BALANCING_ITERATIONS and steps % 5 == 4:
            primal, dual = float(np.linalg.norm(Δ - new)), rho * float(np.linalg.norm(new - R))
            factor = 2.0 if primal > 10 * dual else 0.5 if dual > 10 * primal else 1.0
            if factor != 1.0:
                rho, Q = rho * factor, Q / factor
                inverse = _inverse(problem, rho)
        return State(new, Q, rho, inverse, steps + 1)

    def bounds(self, problem: RowProgram, state: State) -> Bounds:
        """Primal and dual value at the sparse iterate R."""
        return problem.bounds(state.R)

    def value(self, state: State) -> FloatArray:
        """R."""
        return state.R

    def row_norms(self, problem: RowProgram, state: State) -> FloatArray:
        """Row norms of R."""
        return problem.row_norms(state.R)


def _inverse(problem: RowProgram, rho: float) -> FloatArray:
    """(lam K + ρI)⁻¹, or (FᵀF + ρ/lam · I)⁻¹ where F is narrow (Woodbury)."""
    if problem.K is not None:
        return np.asarray(np.linalg.inv(problem.lam * problem.K + rho * np.eye(len(problem.K))))
    gram = problem.F.T @ problem.F
    return np.asarray(np.linalg.inv(gram + (rho / problem.lam) * np.eye(len(gram))))


def _solve(problem: RowProgram, rho: float, inverse: FloatArray, B: FloatArray) -> FloatArray:
    """(lam K + ρI)⁻¹ B; with narrow F it is (B − F (FᵀF + ρ/lam I)⁻¹ Fᵀ B) / ρ."""
    if problem.K is not None:
        return np.asarray(inverse @ B)
    return np.asarray((B - problem.F @ (inverse @ (problem.F.T @ B))) / rho)
