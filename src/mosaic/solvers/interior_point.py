"""Primal-dual interior point on η, with Mehrotra's predictor and corrector.

    minimise 2φ(η) subject to η ≥ 0;   optimality: ∇(2φ) = 1 − v = ζ,  η_j ζ_j = 0,  η, ζ ≥ 0.

A Newton step on the relaxed conditions η_j ζ_j = μ solves (∇²(2φ) + diag(ζ/η)) d = v − 1 + (σμ − correction)/η.
Neighbouring points make K nearly singular, which is why first-order methods creep; second-order steps see through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from mosaic._arrays import FloatArray
from mosaic.problem import Bounds, DesignProblem, Evaluation


class State(NamedTuple):
    """η, its multipliers ζ, and what the problem says at η."""

    eta: FloatArray
    zeta: FloatArray
    at: Evaluation


@dataclass(frozen=True)
class InteriorPoint:
    """Interior point on the design form. About ten steps, whatever the conditioning.

    Parameters
    ----------
    to_boundary : share of the way to the nearest bound that a step may take
    """

    to_boundary: float = 0.99

    @property
    def check_every(self) -> int:
        """The gap comes with every evaluation, at no cost."""
        return 1

    @property
    def patience(self) -> int:
        """Steps gain a factor each; a few without gain have met the limit of the arithmetic."""
        return 8

    def init(self, problem: DesignProblem, start: FloatArray | None) -> State:
        """From a uniform η at its best height, or from ``start`` lifted off the boundary."""
        eta = uniform_start(problem) if start is None else np.maximum(start, 0.03 * start.mean())
        at = problem.evaluate(eta)
        zeta = np.maximum(1.0 - at.v, 0.1)
        return State(eta, zeta, at)

    def step(self, problem: DesignProblem, state: State) -> State:
        """One predictor and corrector step with a single factorisation."""
        eta, zeta, at = state
        assert at.hessian is not None
        newton = 2.0 * at.hessian
        newton[np.diag_indices_from(newton)] += zeta / eta
        factor, info = dpotrf(newton.T, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
        gradient = 1.0 - at.v
        μ = float(eta @ zeta) / len(eta)

        def direction(target: FloatArray | float) -> tuple[FloatArray, FloatArray]:
            """Solve the Newton system that aims at η ζ = target (to first order)."""
            d = np.asarray(dpotrs(factor, target / eta - gradient, lower=1)[0])
            return d, (target - zeta * d) / eta - zeta

        d, dz = direction(0.0)
        reach_p, reach_d = _reach(eta, d), _reach(zeta, dz)
        affine = float((eta + reach_p * d) @ (zeta + reach_d * dz)) / len(eta)
        σ = (affine / μ) ** 3
        d, dz = direction(σ * μ - d * dz)
        eta = eta + min(1.0, self.to_boundary * _reach(eta, d, np.inf)) * d
        zeta = zeta + min(1.0, self.to_boundary * _reach(zeta, dz, np.inf)) * dz
        return State(eta, zeta, problem.evaluate(eta))

    def bounds(self, problem: DesignProblem, state: State) -> Bounds:
        """Primal and dual value, from the evaluation that the state carries."""
        at = state.at
        z = np.sqrt(at.v)
        return problem.bounds(at.inner, at.fit, float(state.eta @ z), float(z.max()))

    def value(self, state: State) -> FloatArray:
        """η."""
        return state.eta

    def row_norms(self, problem: DesignProblem, state: State) -> FloatArray:
        """‖w_j‖ = η_j z_j."""
        return np.asarray(state.eta * np.sqrt(state.at.v))


def uniform_start(problem: DesignProblem, sweeps: int = 1) -> FloatArray:
    """η = t·1 with t near its best, where the mean of v is 1; t ← t·√(mean v) minimises over W and t in turn."""
    # Exact for a large lam and targets that fill d = (tr C)²/‖C‖² dimensions evenly; a rough height is enough.
    dimensions = float(np.trace(problem.C)) ** 2 / float(np.vdot(problem.C, problem.C))
    t = float(np.sqrt(dimensions * np.trace(problem.C) / (problem.n * np.vdot(problem.F, problem.F))))
    for _ in range(sweeps):
        v = problem.evaluate(np.full(problem.n, t), hessian=False).v
        t *= float(np.sqrt(v.mean()))
    return np.full(problem.n, t)


def _reach(x: FloatArray, dx: FloatArray, most: float = 1.0) -> float:
    """Largest step ≤ ``most`` that keeps x + step·dx ≥ 0."""
    negative = dx < 0
    return min(most, float((-x[negative] / dx[negative]).min())) if negative.any() else most
