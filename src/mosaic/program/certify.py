"""Run a solver on a posed problem, and certify its solution for the kernel itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks, row_norms_squared
from mosaic.arrays.codes import EqualRows
from mosaic.arrays.xp import (
    as_double,
    highest,
    host_rows,
    is_on_device,
    namespace,
    numpy_dtype,
    on_host,
    rows_of,
    squares_of_rows,
    to_device_of,
)
from mosaic.kernels import Kernel
from mosaic.program.algorithms import SolverName, first_order
from mosaic.program.encoding import ALLOWED_ROUNDINGS, Certificate, DesignRows, Encoding, GivenRows
from mosaic.program.factor import Factor
from mosaic.program.loop import Solution, Status, run
from mosaic.program.pose import PosedProblem, Roles
from mosaic.program.problem import DesignProblem, RowNorm, RowProgram
from mosaic.program.reference import solve_reference
from mosaic.program.working_set import solve_design

#: Share of the tolerance for the gap of the solver; the rest is for the error of the kernel's factor.
SOLVER_SHARE = 0.6
#: Share of it without thinning, where bounds for k are wanted: they gain from a finer solution, which costs a step or two.
BOUND_SHARE = 0.1
#: Share of the tolerance that rounding may take before values are computed directly from the rows and from E.
ROUNDING_SHARE = 1e-3
#: Machine precision of the solvers' arithmetic.
SOLVER_EPS = float(np.finfo(np.float64).eps)


class Progress(NamedTuple):
    """Progress of a long run: ``stage`` is "factor", "round" or "iteration"; ``gap`` is the remaining gap or error."""

    stage: str
    step: int
    gap: float


@dataclass(frozen=True)
class CertifiedRun:
    """A solver at one strength on a factor of the kernel: ``solve`` certifies for the kernel itself.

    Attributes
    ----------
    kernel, factor : the similarity between distinct points, and its factor
    groups : which points are equal
    roles, weights : roles of all points, and weights of the distinct ones
    row_norm, lam, solver, tol, max_iter, thin, callback : as in ``mosaic.program.solve.encode``
    """

    kernel: Kernel
    factor: Factor
    groups: EqualRows
    roles: Roles
    weights: FloatArray
    row_norm: RowNorm
    lam: float
    solver: SolverName
    tol: float
    max_iter: int
    thin: bool
    callback: Callable[[Progress], None] | None

    @property
    def has_finest_factor(self) -> bool:
        """Whether no finer factor is possible: rank, memory or rounding stopped it, not its tolerance."""
        return self.factor.stopped != "tolerance"

    def solve(self, posed: PosedProblem, start: FloatArray | None = None) -> tuple[Solution, Encoding]:
        """The solution for the factor, and the encoding with its certificate for the kernel itself."""
        problem = posed.problem.with_lam(self.lam)
        try:
            solution = self._run(problem, posed, start)
            return solution, self._certify(problem, posed, solution)
        except np.linalg.LinAlgError:  # at this strength rounding leaves nothing certain but that R = 0 is feasible
            solution = self._nothing(problem, Status.STALLED, dual=0.0)
            return solution, self._certify(problem, posed, solution)

    def better(self, encoding: Encoding, fewer: PosedProblem) -> Encoding:
        """The encoding, or one with fewer candidates if its value is lower; the lower bound holds for both."""
        other = self.solve(fewer)[1]
        if other.certificate.at_most >= encoding.certificate.at_most:
            return encoding
        proven = min(encoding.certificate.dual, other.certificate.primal)
        return replace(other, certificate=replace(other.certificate, dual=proven), status=encoding.status)

    def _nothing(self, problem: DesignProblem, status: Status, dual: float) -> Solution:
        """The solution R = 0 with a lower bound for the optimum."""
        value = np.zeros((problem.n, self.factor.F.shape[0]) if self.row_norm == "linf" else problem.n)
        gap = (problem.scale - dual) / problem.scale if problem.scale > 0 else 0.0
        return Solution(value, np.zeros(problem.n), status, problem.scale, dual, gap, 0, ())

    def _run(self, problem: DesignProblem, posed: PosedProblem, start: FloatArray | None) -> Solution:
        """Solve for η (ℓ₂) or the rows of R (ℓ_∞) at the strength of ``problem``; rows are scaled by cost, as in the problem."""
        if problem.lam <= posed.lam_crit or not problem.n:
            return self._nothing(problem, Status.TRIVIAL, dual=problem.scale)
        # No solver closes the gap that an incomplete factor leaves, so solving far below it is useless.
        aim = self.tol if self.thin else BOUND_SHARE * self.tol
        missed = self.factor.relative_error * (0.5 if self.thin else 2.0 * BOUND_SHARE)
        tol = SOLVER_SHARE * (max(aim, missed) if self.has_finest_factor else aim)
        solver = "fista" if self.solver == "auto" and self.row_norm == "linf" else self.solver
        if solver in ("auto", "interior-point"):
            report = self._reporter("round")
            return solve_design(problem, tol=tol, initial=posed.initial, start=start, thin=self.thin, callback=report)
        targets = self._targets(problem, solver)
        program = RowProgram(np.asarray(problem.F, np.float64), targets, problem.lam, self.row_norm)
        if solver == "reference":
            found = solve_reference(program, tol=tol)
        else:
            report = self._reporter("iteration")
            found = run(first_order(solver), program, tol=tol, max_iter=self.max_iter, callback=report)
        if self.row_norm == "linf":
            return found
        # η = ‖w_j‖ and its W(η) are at least as good: half a step of alternating minimisation over (W, η).
        eta = found.row_norms
        point = problem.dual_point(eta)
        z = problem.scores(point.E)
        primal, dual = problem.bounds(point.inner, point.fit, float(eta @ z), float(z.max()))
        dual = max(dual, found.dual)
        gap = (primal - dual) / problem.scale
        return Solution(eta, eta * z, found.status, primal, dual, gap, found.iterations, found.trace)

    def _reporter(self, stage: str) -> Callable[[Any], None] | None:
        """A function that passes records of a solver, or rounds of the working set, to the callback."""
        callback = self.callback
        if callback is None:
            return None
        return lambda record: callback(
            Progress(stage, record.number if stage == "round" else record.iteration, record.gap)
        )

    def _targets(self, problem: DesignProblem, solver: SolverName) -> FloatArray:
        """T of the row form: Fᵀ if the unknown is R, otherwise the smaller T of the design form."""
        if self.row_norm == "l2" and solver != "admm-paper":
            return np.ascontiguousarray(problem.T)
        targets = self.factor.F
        if self.row_norm == "l2":  # TTᵀ = FᵀΩF, as in the reduced form
            targets = np.sqrt(self.weights)[:, None] * targets
        return np.ascontiguousarray(np.asarray(targets, np.float64).T)

    def _certify(self, problem: DesignProblem, posed: PosedProblem, solution: Solution) -> Encoding:
        """Undo costs, share rows among equal points, and certify for the kernel itself.

        If the solver's formulas lose too many digits, values are computed directly from the rows and from E. A lower bound above
        the attained value is wrong and is replaced by 0.
        """
        factor, half = self.factor, 0.5 * problem.lam
        used = np.flatnonzero(solution.row_norms)
        prices = None if posed.cost is None else posed.cost[used]
        norms = solution.row_norms[used] if prices is None else solution.row_norms[used] / prices
        members, primal, dual, status = posed.candidates[used], solution.primal, solution.dual, solution.status
        rows: DesignRows | GivenRows
        lost = 0.0
        if self.row_norm == "linf":
            rows = GivenRows(solution.value[used] if prices is None else solution.value[used] / prices[:, None])
        else:
            rows = DesignRows(factor.F, members, problem.restrict(used), solution.value[used], prices)
            lost = SOLVER_EPS * _condition(problem, solution.value)
            if lost > ROUNDING_SHARE * self.tol:
                dual, lost = _lower_bound(problem, solution.value), 0.0
                norms = rows.norms()
                primal = half * rows.misfit() + float(norms.sum() if prices is None else prices @ norms)
        scale = half * factor.trace
        slack = ALLOWED_ROUNDINGS * (float(np.finfo(numpy_dtype(factor.F)).eps) + lost) * scale
        room = (self.tol * scale - (primal - dual)) / half
        primal += half * _kernel_excess(self.kernel, factor, members, rows, self.weights, room)
        if dual > primal + slack:
            dual, status = 0.0, Status.STALLED
        return Encoding(
            influence=self._influence(members, norms),
            lam=problem.lam,
            alpha=problem.lam / posed.lam_crit,
            row_norm=self.row_norm,
            status=status,
            n_iter=solution.iterations,
            certificate=Certificate(primal, dual, scale, factor.relative_error, factor.rank, slack),
            kernel=self.kernel,
            factor=factor,
            groups=self.groups,
            weights=self.weights,
            members=members,
            member_rows=rows,
        )

    def _influence(self, members: IntArray, norms: FloatArray) -> FloatArray:
        """‖r_j‖ of every point: equal points share the row of their group."""
        groups = self.groups
        by_group = np.zeros(len(groups.first))
        by_group[members] = norms
        if groups.is_trivial:
            return by_group
        takes = self.roles.takers(groups)
        copies = groups.sums(takes)
        return np.asarray(by_group[groups.group] * takes / np.maximum(copies[groups.group], 1.0))


def _condition(problem: DesignProblem, eta: FloatArray) -> float:
    """Approximate condition number of M, lam · max_j η_j ‖f_j‖²: the solvers' formulas lose as many digits as it has."""
    used = np.flatnonzero(eta)
    return problem.lam * highest(eta[used] * row_norms_squared(host_rows(problem.F, used)))


def _lower_bound(problem: DesignProblem, eta: FloatArray) -> float:
    """The dual value of E = M⁻¹T, valid even if E is inaccurate: any E gives a dual point once its z_j are known.

    The z_j are known up to eps ‖E‖ ‖f_j‖, which is added to them.
    """
    point = problem.dual_point(eta)
    size, eps = float(np.linalg.norm(point.E)), float(np.finfo(numpy_dtype(problem.F)).eps)
    rounding = eps * size * highest(squares_of_rows(problem.F)) ** 0.5
    return problem.bounds(point.inner, point.fit, 0.0, highest(problem.scores(point.E)) + rounding).dual


def _kernel_excess(
    kernel: Kernel,
    factor: Factor,
    members: IntArray,
    rows: DesignRows | GivenRows,
    weights: FloatArray,
    room: float,
) -> float:
    """tr((I − R)ᵀ Δ (I − R)), Δ = K − F Fᵀ, for R with these non-zero rows, or an upper bound that fits into ``room``.

    ‖Δ^½(I − R)‖_F ≤ ‖Δ^½‖_F + ‖Δ^½ R‖_F, and the last norm needs Δ only between the non-zero rows. If these are
    pivots, Δ vanishes and the bound is tr Δ. If the bound does not fit, one pass computes the cross term −2 tr(ΔR).
    """
    exposed = np.flatnonzero(factor.residual[members] > 0)
    if not len(exposed):
        return factor.error
    chosen = members[exposed]
    F_chosen = host_rows(factor.F, chosen)
    Δ = kernel.device_block(chosen, chosen)
    Δ = Δ - to_device_of(Δ, F_chosen) @ to_device_of(Δ, F_chosen.T)
    inside = max(rows.quadratic(Δ, weights, exposed), 0.0)
    bound = float((np.sqrt(factor.error) + np.sqrt(inside)) ** 2)
    if bound <= room or factor.error > room:
        return bound

    def across(targets: slice) -> float:
        Δ, F = kernel.device_block(targets, chosen), as_double(rows_of(factor.F, targets))
        F = F if is_on_device(F) else to_device_of(Δ, F)  # the factor of few points on a device is not there
        Δ = Δ - F @ to_device_of(F, F_chosen.T)
        products = Δ * rows.device_columns(F, exposed, targets)
        return float(weights[targets] @ on_host(namespace(products).sum(products, axis=1)))

    cross = sum(in_blocks(across, kernel.n, len(exposed), kernel.block_entries, serial=kernel.on_device))
    return min(bound, max(factor.error - 2.0 * cross + inside, 0.0))
