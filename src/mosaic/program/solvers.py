"""The loop that runs every algorithm, the algorithms, and the ways they can end. Interior point works on η; the paper's ADMM and
accelerated proximal gradient on the rows of W: T = Fᵀ gives the paper's n×n form (lam F T = lam K), a smaller T the reduced one.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import eigh

from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.xp import (
    asarray_like,
    cholesky,
    on_host,
    solve_with,
    sum_of_squares,
    with_diagonal,
)
from mosaic.program.problem import DesignProblem, Evaluation, PrimalDual, RowProgram, primal_dual


class Status(Enum):
    """How a solver ended. The value says so and what to do, with parameters between backticks, as in an error."""

    CONVERGED = "The gap is within the tolerance."
    TRIVIAL = "Nothing is worth selecting at this strength: raise `lam` (or `alpha` above 1)."
    MAX_ITER = "The iterations ran out before the gap closed: raise `max_iter`, loosen `tol`, or use `solver='auto'`."
    STALLED = (
        "The gap stopped shrinking at the limit of the arithmetic: loosen `tol`, or lower `lam`."
    )
    KERNEL_ERROR = (
        "The factor of the kernel is coarser than the tolerance: raise `max_rank`, or loosen `tol`."
    )


#: Steps of interior point, which needs about ten.
MOST_STEPS = 50


@dataclass(frozen=True)
class Solution:
    """The result of a solver: the optimum lies between ``primal`` and ``dual``, the best values found."""

    value: (
        FloatArray  # η (n,) from solvers of the design form, W (n×q) from solvers of the row form
    )
    row_norms: FloatArray  # ‖w_j‖ at that value
    status: Status
    primal: float
    dual: float
    scale: float  # P(0)
    iterations: int

    @property
    def gap(self) -> float:
        return (self.primal - self.dual) / self.scale if self.scale > 0 else 0.0


def run(
    solver: Any, problem: Any, *, tol: float, max_iter: int, target: float = -np.inf
) -> Solution:
    """Step until the relative gap is within ``tol``, the iterations run out or the gap stalls: init, step, bounds, result.

    A primal value at or below ``target`` also ends the run, and so does a lower bound above it, which proves the target
    out of reach. The best primal value and the best bound may come from different states. The gap is checked at every
    ``check_every``-th step of a solver; a run has stalled after ``patience`` checks without progress.
    """
    scale = problem.scale
    state = solver.init(problem)
    best = None
    primal = np.inf
    dual = -np.inf
    smallest = np.inf
    since = 0
    iteration = 0
    while True:
        if iteration % solver.check_every == 0 or iteration == max_iter:
            bounds = solver.bounds(problem, state)
            # Near the optimum primal values differ only by rounding; the later state then has the better dual point.
            if bounds.primal < primal + 1e-13 * scale:
                best = state
                primal = bounds.primal
            dual = max(dual, bounds.dual)
            gap = (primal - dual) / scale
            since = 0 if gap < 0.999 * smallest else since + 1
            smallest = min(smallest, gap)
            if gap <= tol or primal <= target:
                status = Status.CONVERGED
                break
            if dual > target > -np.inf or since >= solver.patience:
                status = Status.STALLED
                break
        if iteration == max_iter:
            status = Status.MAX_ITER
            break
        try:
            state = solver.step(problem, state)
        except np.linalg.LinAlgError:
            status = Status.STALLED
            break
        iteration += 1
    if best is None:
        raise np.linalg.LinAlgError("the program has no finite value in this arithmetic")
    value, norms = solver.result(problem, best)
    return Solution(value, norms, status, primal, dual, scale, iteration)


class State(NamedTuple):
    """η, its multipliers ζ, and the evaluation of the problem at η."""

    eta: FloatArray
    zeta: FloatArray
    at: Evaluation


@dataclass(frozen=True)
class InteriorPoint:
    """Interior point on the design form: about ten steps at any conditioning. ``start`` is η to begin with; ``continues``: it is
    the result of a run on nearly the same numbers, and is used unchanged.
    """

    start: FloatArray | None = None
    continues: bool = False
    patience: ClassVar[int] = 8  # typical steps divide the gap by a factor
    check_every: ClassVar[int] = 1  # every evaluation gives the gap at no extra cost

    def init(self, problem: DesignProblem) -> State:
        start = self.start
        if start is not None and self.continues:
            at = problem.evaluate(start)
            slack = 1.0 - at.v
            # ζ = slack where it is positive; elsewhere the mean slack by weight η, which is about μ/η there.
            return State(start, np.maximum(slack, np.average(np.abs(slack), weights=start)), at)
        # Off the boundary.
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
            d = np.asarray(
                on_host(solve_with(factor, asarray_like(factor, target / eta - gradient))),
                np.float64,
            )
            return d, (target - zeta * d) / eta - zeta

        d, dz = direction(0.0)
        reach_p = _reach(eta, d)
        reach_d = _reach(zeta, dz)
        affine = float((eta + reach_p * d) @ (zeta + reach_d * dz)) / len(eta)
        σ = (affine / μ) ** 3
        d, dz = direction(σ * μ - d * dz)
        eta = eta + min(1.0, 0.99 * _reach(eta, d, np.inf)) * d
        zeta = zeta + min(1.0, 0.99 * _reach(zeta, dz, np.inf)) * dz
        return State(eta, zeta, problem.evaluate(eta))

    def bounds(self, problem: DesignProblem, state: State) -> PrimalDual:
        at = state.at
        z = np.sqrt(at.v)
        return primal_dual(at.inner, at.fit, float(state.eta @ z), float(z.max()))

    def result(self, problem: DesignProblem, state: State) -> tuple[FloatArray, FloatArray]:
        return state.eta, np.asarray(state.eta * np.sqrt(state.at.v))


def run_interior_point(
    problem: DesignProblem, *, tol: float, start: FloatArray | None = None, target: float = -np.inf
) -> Solution:
    """Run interior point. Large problems begin in single precision; the bounds are always those of double precision."""
    solver = InteriorPoint(start)
    steps = 0
    if problem.n >= 500:  # single precision takes half the time
        # It knows values to a few 1e-6 of P(0), so down to here its steps are as good as others.
        aim = max(tol, 1e-5)
        with (
            np.errstate(all="ignore"),
            suppress(np.linalg.LinAlgError),
        ):  # some problems need more digits
            rough = run(solver, problem.single, tol=aim, max_iter=MOST_STEPS, target=target)
            if rough.gap < 1.0:
                solver = InteriorPoint(rough.value, continues=True)
                steps = rough.iterations
    found = run(solver, problem, tol=tol, max_iter=MOST_STEPS, target=target)
    return replace(found, iterations=steps + found.iterations)


def uniform_start(problem: DesignProblem) -> FloatArray:
    """η = t·1 with t near its best, where the mean of v is 1; t ← t·√(mean v) minimises over W and t in turn."""
    # Exact for large lam and targets spread evenly over d = (tr C)²/‖C‖² dimensions; a rough height is enough.
    size = float(np.trace(problem.C))
    dimensions = size**2 / sum_of_squares(problem.C)
    t = math.sqrt(dimensions * size / (problem.n * sum_of_squares(problem.F)))
    v = problem.evaluate(np.full(problem.n, t)).v
    return np.full(problem.n, t * math.sqrt(v.mean()))


def _reach(x: FloatArray, dx: FloatArray, most: float = 1.0) -> float:
    """Largest step ≤ ``most`` that keeps x + step·dx ≥ 0."""
    steepest = float((-dx / x).max())
    return min(most, 1.0 / steepest) if steepest > 0 else most


#: The first part is the sparse iterate W.
Steps: TypeAlias = tuple[Any, ...]


class _OnRows:
    """First-order methods, whose gap is checked now and then."""

    check_every: ClassVar[int] = 10
    patience: ClassVar[int] = 300

    def bounds(self, problem: RowProgram, state: Steps) -> PrimalDual:
        return problem.bounds(state[0])

    def result(self, problem: RowProgram, state: Steps) -> tuple[FloatArray, FloatArray]:
        return state[0], problem.row_norms(state[0])


class ADMM(_OnRows):
    """Alternating directions: products with a stored inverse and one shrinkage per step.

        Δ ← (lam K + ρ I)⁻¹ (lam F T + ρ (R − Q)),   R ← prox_{1/ρ}(Δ + Q),   Q ← Q + Δ − R,
        (lam K + ρ I)⁻¹ B = (B − F (FᵀF + ρ/lam I)⁻¹ Fᵀ B) / ρ.

    Notes
    -----
    1. The paper does not say how ρ is chosen. We start from ρ = lam · tr K / n and double or halve it while primal and dual
       residuals differ by more than a factor of ten, for the first hundred iterations (every change costs a new inverse).
    """

    def init(self, problem: RowProgram) -> Steps:
        nothing = np.zeros(problem.shape)
        rho = problem.lam * sum_of_squares(problem.F) / len(problem.F)
        return nothing, nothing, rho, _inverse(problem, rho), 0

    def step(self, problem: RowProgram, state: Steps) -> Steps:
        R, Q, rho, inverse, steps = state
        B = problem.lam * problem.FT + rho * (R - Q)
        Δ = (B - problem.F @ (inverse @ (problem.F.T @ B))) / rho
        new = problem.prox(Δ + Q, 1.0 / rho)
        Q = Q + Δ - new
        if steps < 100 and steps % 5 == 4:
            primal = float(np.linalg.norm(Δ - new))
            dual = rho * float(np.linalg.norm(new - R))
            factor = 2.0 if primal > 10 * dual else 0.5 if dual > 10 * primal else 1.0
            if factor != 1.0:
                rho *= factor
                Q /= factor
                inverse = _inverse(problem, rho)
        return new, Q, rho, inverse, steps + 1


def _inverse(problem: RowProgram, rho: float) -> FloatArray:
    return np.linalg.inv(with_diagonal(problem.F.T @ problem.F, rho / problem.lam))


class FISTA(_OnRows):
    """W ← prox(Y − step · lam (K Y − F T)), Y extrapolates; the momentum restarts when it points uphill."""

    def init(self, problem: RowProgram) -> Steps:
        gram = problem.F.T @ problem.F
        W = np.zeros(problem.shape)
        largest = float(eigh(gram, eigvals_only=True, subset_by_index=[len(gram) - 1] * 2)[0])
        return W, W, 1.0, 1.0 / (problem.lam * largest)

    def step(self, problem: RowProgram, state: Steps) -> Steps:
        W, Y, t, step = state
        gradient = problem.lam * (problem.apply_K(Y) - problem.FT)
        new = problem.prox(Y - step * gradient, step)
        if float(np.vdot(Y - new, new - W)) > 0:
            t = 1.0
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        return new, new + ((t - 1.0) / t_next) * (new - W), t_next, step


#: Methods by the names of ``solver``. A further one is a line here and a name in ``mosaic.program.SolverName``.
FIRST_ORDER: dict[str, _OnRows] = {"fista": FISTA(), "admm": ADMM()}
