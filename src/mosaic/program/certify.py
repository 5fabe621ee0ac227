"""Run a solver on a posed problem, and certify its solution for the kernel itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks, row_blocks, row_norms_squared
from mosaic.arrays.codes import EqualRows
from mosaic.arrays.xp import as_double, host_rows, is_on_device, namespace, numpy_dtype, on_host, rows_of, to_device_of
from mosaic.kernels import Kernel
from mosaic.program import SolverName
from mosaic.program.encoding import ALLOWED_ROUNDINGS, Certificate, DesignRows, Encoding, GivenRows
from mosaic.program.factor import Factor
from mosaic.program.first_order import FIRST_ORDER
from mosaic.program.loop import Solution, Status, run
from mosaic.program.problem import (
    PRODUCT_ENTRIES,
    DesignProblem,
    RowNorm,
    RowProgram,
    critical_lam,
    critical_strength,
    weighted_gram,
)
from mosaic.program.working_set import solve_design

#: Share of the tolerance for the gap of the solver; the rest is for the error of the kernel's factor.
SOLVER_SHARE = 0.6
#: Share of it without thinning, where bounds for k are wanted: they gain from a finer solution, which costs a step or two.
BOUND_SHARE = 0.1
#: Share of the tolerance that rounding may take before values are computed directly from the rows and from E.
ROUNDING_SHARE = 1e-3
#: Machine precision of the solvers' arithmetic.
SOLVER_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PosedProblem:
    """The design problem over distinct points.

    Attributes
    ----------
    problem : the design problem, at strength 1
    lam_crit : strength below which nothing is selected
    candidates : distinct points that may be chosen
    initial : candidates that the solver begins with, best first
    """

    problem: DesignProblem
    lam_crit: float
    candidates: IntArray
    initial: IntArray

    @classmethod
    def of(cls, factor: Factor, weights: FloatArray, row_norm: RowNorm) -> PosedProblem:
        """The problem for distinct points with these weights and the kernel F Fᵀ."""
        F = factor.F
        square = isinstance(F, np.ndarray) and F.dtype == np.float64 and bool((weights == 1).all())
        problem = DesignProblem(F, weighted_gram(F, weights), 1.0, square=square)
        if row_norm == "l2":
            lam_crit = critical_lam(problem)
        else:
            blocks = row_blocks(len(F), len(F))
            lam_crit = critical_strength(np.concatenate([np.abs(F[rows] @ F.T).sum(axis=1) for rows in blocks]))
        return cls(problem, lam_crit, np.arange(F.shape[0]), factor.pivots)

    def restrict(self, kept: IntArray) -> PosedProblem:
        """The same problem with fewer candidates; the solver begins with all of them."""
        return replace(self, problem=self.problem.restrict(kept), candidates=kept, initial=np.arange(len(kept)))


@dataclass(frozen=True)
class CertifiedRun:
    """A solver at one strength on a factor of the kernel: ``solve`` certifies for the kernel itself.

    Attributes
    ----------
    kernel, factor : the similarity between distinct points, and its factor
    groups : which points are equal
    weights : how much each distinct point counts as a target
    row_norm, lam, solver, tol, max_iter, thin : as in ``mosaic.program.solve.encode``
    """

    kernel: Kernel
    factor: Factor
    groups: EqualRows
    weights: FloatArray
    row_norm: RowNorm
    lam: float
    solver: SolverName
    tol: float
    max_iter: int
    thin: bool

    @property
    def has_finest_factor(self) -> bool:
        """Whether no finer factor is possible: rank, memory or rounding stopped it, not its tolerance."""
        return self.factor.stopped != "tolerance"

    def solve(self, posed: PosedProblem) -> tuple[Solution, Encoding]:
        """The solution for the factor, and the encoding with its certificate for the kernel itself."""
        problem = posed.problem.with_lam(self.lam)
        try:
            solution = self._run(problem, posed)
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
        value = np.zeros((problem.n, self.factor.F.shape[0]) if self.row_norm == "linf" else problem.n)
        gap = (problem.scale - dual) / problem.scale if problem.scale > 0 else 0.0
        return Solution(value, np.zeros(problem.n), status, problem.scale, dual, gap, 0, ())

    def _run(self, problem: DesignProblem, posed: PosedProblem) -> Solution:
        """Solve for η (ℓ₂) or the rows of R (ℓ_∞) at the strength of ``problem``."""
        if problem.lam <= posed.lam_crit or not problem.n:
            return self._nothing(problem, Status.TRIVIAL, dual=problem.scale)
        # No solver closes the gap that an incomplete factor leaves, so solving far below it is useless.
        aim = self.tol if self.thin else BOUND_SHARE * self.tol
        missed = self.factor.relative_error * (0.5 if self.thin else 2.0 * BOUND_SHARE)
        tol = SOLVER_SHARE * (max(aim, missed) if self.has_finest_factor else aim)
        solver = "fista" if self.solver == "auto" and self.row_norm == "linf" else self.solver
        if solver not in FIRST_ORDER:
            return solve_design(problem, tol=tol, initial=posed.initial, thin=self.thin)
        targets: FloatArray
        if self.row_norm == "linf":
            targets = np.asarray(self.factor.F, np.float64).T
        elif solver == "admm-paper":  # TTᵀ = FᵀΩF, as in the reduced form
            targets = np.asarray(np.sqrt(self.weights)[:, None] * self.factor.F, np.float64).T
        else:
            targets = problem.T
        F, T = np.asarray(problem.F, np.float64), np.ascontiguousarray(targets)
        program = RowProgram(F, T, problem.lam, self.row_norm)
        found = run(FIRST_ORDER[solver], program, tol=tol, max_iter=self.max_iter)
        if self.row_norm == "linf":
            return found
        # η = ‖w_j‖ and its W(η) are at least as good: half a step of alternating minimisation over (W, η).
        eta = found.row_norms
        point = problem.dual_point(eta)
        z = problem.scores(point.E)
        primal, dual = problem.bounds(point.inner, point.fit, float(eta @ z), float(z.max()))
        dual = max(dual, found.dual)
        gap = (primal - dual) / problem.scale
        return replace(found, value=eta, row_norms=eta * z, primal=primal, dual=dual, gap=gap)

    def _certify(self, problem: DesignProblem, posed: PosedProblem, solution: Solution) -> Encoding:
        """Share rows among equal points, and certify for the kernel itself.

        If the solver's formulas lose too many digits, values are computed directly from the rows and from E. A lower bound above
        the attained value is wrong and is replaced by 0.
        """
        factor, half = self.factor, 0.5 * problem.lam
        used = np.flatnonzero(solution.row_norms)
        norms = solution.row_norms[used]
        members, primal, dual, status = posed.candidates[used], solution.primal, solution.dual, solution.status
        rows: DesignRows | GivenRows
        lost = 0.0
        if self.row_norm == "linf":
            rows = GivenRows(solution.value[used])
        else:
            eta = solution.value[used]
            rows = DesignRows(factor.F, members, problem.restrict(used), eta)
            # lam · max_j η_j ‖f_j‖², about the condition number of M: the solvers' formulas lose as many digits as it has.
            condition = problem.lam * float((eta * row_norms_squared(rows.design.F)).max(initial=0.0))
            lost = SOLVER_EPS * condition
            if lost > ROUNDING_SHARE * self.tol:
                dual, lost = _lower_bound(problem, solution.value), 0.0
                norms = rows.norms()
                primal = half * rows.misfit() + float(norms.sum())
        scale = half * factor.trace
        slack = ALLOWED_ROUNDINGS * (float(np.finfo(numpy_dtype(factor.F)).eps) + lost) * scale
        # Bounds for k are read off the dual value: for them the quick upper bound will do.
        room = (self.tol * scale - (primal - dual)) / half if self.thin else np.inf
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
        return np.asarray((by_group / np.bincount(groups.group))[groups.group])


def _lower_bound(problem: DesignProblem, eta: FloatArray) -> float:
    """The dual value of E = M⁻¹T, valid even if E is inaccurate: any E gives a dual point once its z_j are known.

    The z_j are known up to eps ‖E‖ ‖f_j‖, which is added to them.
    """
    point = problem.dual_point(eta)
    size, eps = float(np.linalg.norm(point.E)), float(np.finfo(numpy_dtype(problem.F)).eps)
    rounding = eps * size * float(row_norms_squared(problem.F).max(initial=0.0)) ** 0.5
    largest = float(problem.scores(point.E).max(initial=0.0)) + rounding
    return problem.bounds(point.inner, point.fit, 0.0, largest).dual


def _kernel_excess(
    kernel: Kernel, factor: Factor, members: IntArray, rows: DesignRows | GivenRows, weights: FloatArray, room: float
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

    cross = sum(in_blocks(across, kernel.n, len(exposed), PRODUCT_ENTRIES, on=kernel.points))
    return min(bound, max(factor.error - 2.0 * cross + inside, 0.0))
