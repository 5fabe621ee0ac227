"""Primal-dual interior point on η, with Mehrotra's predictor and corrector.

    minimise 2φ(η) subject to η ≥ 0;   optimality: ∇(2φ) = 1 − v = ζ,  η_j ζ_j = 0,  η, ζ ≥ 0.

A Newton step on the relaxed conditions η_j ζ_j = μ solves (∇²(2φ) + diag(ζ/η)) d = v − 1 + (σμ − correction)/η.
Neighbouring points make K nearly singular, which is why first-order methods are slow; second-order steps are not affected.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.linalg import cholesky, solve_with, sum_of_squares, with_diagonal
from mosaic.arrays.xp import asarray_like, on_host
from mosaic.program.loop import Solution, Status, run
from mosaic.program.problem import Bounds, DesignProblem, Evaluation, bounds_of

#: Most steps of a run; typical runs take about ten.
MOST_INTERIOR_STEPS = 50
#: With at least this many candidates the first steps run in single precision, at half the cost.
FEWEST_FOR_SINGLE_PRECISION = 500
#: Gap at which single precision ends. It knows values to a few 1e-6 of P(0), so down to here its steps are as good as others.
SINGLE_PRECISION_GAP = 1e-5


class State(NamedTuple):
    """η, its multipliers ζ, and the evaluation of the problem at η."""

    eta: FloatArray
    zeta: FloatArray
    at: Evaluation


@dataclass(frozen=True)
class InteriorPoint:
    """Interior point on the design form. It takes about ten steps at any conditioning.

    A step goes the share ``to_boundary`` of the way to the nearest bound at most. ``continues`` says that the start is the result
    of a run on nearly the same numbers, and is used unchanged.
    """

    to_boundary: float = 0.99
    continues: bool = False
    patience: int = 8  # typical steps divide the gap by a factor
    check_every: ClassVar[int] = 1  # every evaluation gives the gap at no extra cost

    def init(self, problem: DesignProblem, start: FloatArray | None) -> State:
        """Start from the best uniform η, or from ``start``, which is moved off the boundary unless the run continues."""
        if start is not None and self.continues:
            at = problem.evaluate(start)
            slack = 1.0 - at.v
            # ζ = slack where it is positive; elsewhere the mean slack by weight η, which is about μ/η there.
            return State(start, np.maximum(slack, float(start @ np.abs(slack)) / float(start.sum())), at)
        eta = uniform_start(problem) if start is None else np.maximum(start, 0.03 * start.mean())
        at = problem.evaluate(eta)
        return State(eta, np.maximum(1.0 - at.v, 0.1), at)

    def step(self, problem: DesignProblem, state: State) -> State:
        eta, zeta, at = state
        newton = at.curvature()
        newton *= 2.0
        factor = cholesky(with_diagonal(newton, zeta / eta))
        gradient = 1.0 - at.v
        μ = float(eta @ zeta) / len(eta)

        def direction(target: FloatArray | float) -> tuple[FloatArray, FloatArray]:
            """Solve the Newton system that aims at η ζ = target (to first order)."""
            d = np.asarray(on_host(solve_with(factor, asarray_like(factor, target / eta - gradient))), np.float64)
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
        at = state.at
        z = np.sqrt(at.v)
        return bounds_of(at.inner, at.fit, float(state.eta @ z), float(z.max()))

    def result(self, problem: DesignProblem, state: State) -> tuple[FloatArray, FloatArray]:
        return state.eta, np.asarray(state.eta * np.sqrt(state.at.v))


def run_interior_point(
    problem: DesignProblem, *, tol: float, start: FloatArray | None = None, target: float = -np.inf
) -> Solution:
    """Run interior point. Large problems begin in single precision; the bounds are always those of double precision.

    A primal value at or below ``target`` ends the run. If single precision finds the target out of reach, the run ends there.
    This proves nothing, and need not: a caller that sets a target has a solution already.
    """
    solver, steps, most = InteriorPoint(), 0, MOST_INTERIOR_STEPS
    if problem.n >= FEWEST_FOR_SINGLE_PRECISION:
        aim = max(tol, SINGLE_PRECISION_GAP)
        with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):  # some problems need more digits
            rough = run(InteriorPoint(patience=3), problem.single, tol=aim, max_iter=most, start=start, target=target)
            if np.isfinite(rough.value).all() and rough.gap < 1.0:
                if rough.dual > target > -np.inf:
                    return rough
                steps, start = rough.iterations, rough.value
                solver = InteriorPoint(continues=rough.status is Status.CONVERGED)
    found = run(solver, problem, tol=tol, max_iter=most, start=start, target=target)
    return replace(found, iterations=steps + found.iterations)


def uniform_start(problem: DesignProblem) -> FloatArray:
    """η = t·1 with t near its best, where the mean of v is 1; t ← t·√(mean v) minimises over W and t in turn."""
    # Exact for large lam and targets spread evenly over d = (tr C)²/‖C‖² dimensions; a rough height is enough.
    dimensions = float(np.trace(problem.C)) ** 2 / float(np.vdot(problem.C, problem.C))
    t = float(np.sqrt(dimensions * np.trace(problem.C) / (problem.n * sum_of_squares(problem.F))))
    v = problem.evaluate(np.full(problem.n, t)).v
    return np.full(problem.n, t * float(np.sqrt(v.mean())))


def _reach(x: FloatArray, dx: FloatArray, most: float = 1.0) -> float:
    """Largest step ≤ ``most`` that keeps x + step·dx ≥ 0."""
    negative = dx < 0
    return min(most, float((-x[negative] / dx[negative]).min())) if negative.any() else most
