"""First-order methods on the rows of W: the paper's ADMM, and accelerated proximal gradient, for row norms ℓ₂ and ℓ_∞.

The problem decides the form: T = Fᵀ gives the paper's n×n one (lam F T = lam K), a smaller T the reduced one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from mosaic.arrays.blocks import FloatArray
from mosaic.program.loop import Solver
from mosaic.program.problem import Bounds, RowProgram

#: Iterations during which ADMM adapts ρ; every change costs a new inverse.
BALANCING_ITERATIONS = 100


class AdmmState(NamedTuple):
    W: FloatArray
    Q: FloatArray  # scaled multiplier
    rho: float
    inverse: FloatArray  # the one that belongs to ρ
    steps: int


class FistaState(NamedTuple):
    W: FloatArray
    Y: FloatArray  # extrapolated
    t: float  # momentum
    step: float  # length


@dataclass(frozen=True)
class _OnRows:
    """What the methods share: both keep the sparse iterate, whose gap is checked now and then."""

    check_every: int = 10
    patience: int = 300

    def bounds(self, problem: RowProgram, state: AdmmState | FistaState) -> Bounds:
        return problem.bounds(state.W)

    def result(self, problem: RowProgram, state: AdmmState | FistaState) -> tuple[FloatArray, FloatArray]:
        return state.W, problem.row_norms(state.W)


@dataclass(frozen=True)
class ADMM(_OnRows):
    """Alternating directions: one product with a stored inverse and one shrinkage per step.

        Δ ← (lam K + ρ I)⁻¹ (lam F T + ρ (R − Q)),   R ← prox_{1/ρ}(Δ + Q),   Q ← Q + Δ − R.

    Notes
    -----
    1. The paper does not say how ρ is chosen. We start from ρ = lam · tr K / n and double or halve it while primal and dual
       residuals differ by more than a factor of ten, for the first hundred iterations (every change costs a new inverse).
    """

    def init(self, problem: RowProgram, start: FloatArray | None) -> AdmmState:
        R = np.zeros(problem.shape) if start is None else start
        rho = problem.lam * float(np.vdot(problem.F, problem.F)) / problem.F.shape[0]
        return AdmmState(R, np.zeros(problem.shape), rho, _inverse(problem, rho), 0)

    def step(self, problem: RowProgram, state: AdmmState) -> AdmmState:
        R, Q, rho, inverse, steps = state
        B = problem.lam * problem.FT + rho * (R - Q)
        # With a narrow F, (lam K + ρI)⁻¹ B = (B − F (FᵀF + ρ/lam I)⁻¹ Fᵀ B) / ρ.
        Δ = inverse @ B if problem.K is not None else (B - problem.F @ (inverse @ (problem.F.T @ B))) / rho
        new = problem.prox(Δ + Q, 1.0 / rho)
        Q = Q + Δ - new
        if steps < BALANCING_ITERATIONS and steps % 5 == 4:
            primal, dual = float(np.linalg.norm(Δ - new)), rho * float(np.linalg.norm(new - R))
            factor = 2.0 if primal > 10 * dual else 0.5 if dual > 10 * primal else 1.0
            if factor != 1.0:
                rho, Q = rho * factor, Q / factor
                inverse = _inverse(problem, rho)
        return AdmmState(new, Q, rho, inverse, steps + 1)


def _inverse(problem: RowProgram, rho: float) -> FloatArray:
    if problem.K is not None:
        return np.asarray(np.linalg.inv(problem.lam * problem.K + rho * np.eye(len(problem.K))))
    gram = problem.F.T @ problem.F
    return np.asarray(np.linalg.inv(gram + (rho / problem.lam) * np.eye(len(gram))))


@dataclass(frozen=True)
class FISTA(_OnRows):
    """W ← prox(Y − step · lam (K Y − F T)), Y extrapolates; the momentum restarts when it points uphill.

    Fast if K is well conditioned; otherwise it takes hundreds to thousands of iterations.
    """

    def init(self, problem: RowProgram, start: FloatArray | None) -> FistaState:
        gram = problem.K if problem.K is not None else problem.F.T @ problem.F
        W = np.zeros(problem.shape) if start is None else start
        largest = float(eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
        return FistaState(W, W, 1.0, 1.0 / (problem.lam * largest))

    def step(self, problem: RowProgram, state: FistaState) -> FistaState:
        W, Y, t, step = state
        gradient = problem.lam * (problem.apply_K(Y) - problem.FT)
        new = problem.prox(Y - step * gradient, step)
        if float(np.vdot(Y - new, new - W)) > 0:
            t = 1.0
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        return FistaState(new, new + ((t - 1.0) / t_next) * (new - W), t_next, step)


#: Methods by the names of ``solver``. A further one is a line here and a name in ``mosaic.program.SolverName``.
FIRST_ORDER: dict[str, Solver[RowProgram, Any]] = {"fista": FISTA(), "admm": ADMM(), "admm-paper": ADMM()}
