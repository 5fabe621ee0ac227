"""Accelerated proximal gradient (FISTA) with adaptive restart, for row norms ℓ₂ and ℓ_∞."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from mosaic.arrays.blocks import FloatArray
from mosaic.program.problem import Bounds, RowProgram


class State(NamedTuple):
    """The point W, the extrapolated point Y, the momentum t and the step length."""

    W: FloatArray
    Y: FloatArray
    t: float
    step: float


@dataclass(frozen=True)
class FISTA:
    """W ← prox(Y − step · lam (K Y − F T)), Y extrapolates; the momentum restarts when it points uphill.

    Fast if K is well conditioned; otherwise it takes hundreds to thousands of iterations.
    """

    check_every: int = 10
    patience: int = 300

    def init(self, problem: RowProgram, start: FloatArray | None) -> State:
        """Start from zero or ``start``, with step 1 / (lam · λ_max(K))."""
        F = problem.F
        gram = problem.K if problem.K is not None else F.T @ F
        W = np.zeros(problem.shape) if start is None else start
        largest = float(eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
        return State(W, W, 1.0, 1.0 / (problem.lam * largest))

    def step(self, problem: RowProgram, state: State) -> State:
        """One proximal gradient step."""
        W, Y, t, step = state
        gradient = problem.lam * (problem.apply_K(Y) - problem.FT)
        new = problem.prox(Y - step * gradient, step)
        if float(np.vdot(Y - new, new - W)) > 0:
            t = 1.0
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        return State(new, new + ((t - 1.0) / t_next) * (new - W), t_next, step)

    def bounds(self, problem: RowProgram, state: State) -> Bounds:
        """Primal and dual value at W."""
        return problem.bounds(state.W)

    def value(self, state: State) -> FloatArray:
        """W."""
        return state.W

    def row_norms(self, problem: RowProgram, state: State) -> FloatArray:
        """Row norms of W."""
        return problem.row_norms(state.W)
