"""``mosaic.solve``: factor the kernel, pose, solve and certify the program for the kernel itself; refine the factor if needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays import xp
from mosaic.arrays.blocks import (
    NO_ROWS,
    PRODUCT_ENTRIES,
    FloatArray,
    IntArray,
    Seed,
    in_blocks,
    row_norms_squared,
)
from mosaic.arrays.codes import EqualRows, equal_rows
from mosaic.arrays.threads import using_threads
from mosaic.arrays.xp import numpy_dtype, on_host
from mosaic.door import as_points, as_weights
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError, warn
from mosaic.kernels import Gamma, Kernel, make_kernel, to_kernel_device
from mosaic.kernels.make import Similarity
from mosaic.parameters import (
    PAIRWISE,
    check_kernel,
    check_seed,
    check_strength,
    name_of,
    one_of,
    real_number,
    whole_number,
)
from mosaic.program import RowNorm, SolverName
from mosaic.program.encoding import ALLOWED_ROUNDINGS, Certificate, DesignRows, Encoding, GivenRows
from mosaic.program.factor import Factor, factorize
from mosaic.program.problem import (
    MOST_SOLVED_WHOLE,
    DesignProblem,
    PrimalDual,
    RowProgram,
    critical_lam,
    primal_dual,
    weighted_gram,
)
from mosaic.program.solvers import FIRST_ORDER, Solution, Status, run
from mosaic.program.working_set import solve_design

#: The largest weight and value of the program that are computed with, and the inverses of the smallest ones.
LARGEST_WEIGHT = 2.0**200
LARGEST_VALUE = 2.0**500
#: Points of a program with ℓ_∞, at most: its solver keeps about six matrices of the size of R.
MOST_WITH_LINF = 12_900
EPS = float(np.finfo(np.float64).eps)


def solve(
    X: Any,
    *,
    kernel: Similarity = "rbf",
    gamma: Gamma = "scale",
    alpha: float | None = None,
    lam: float | None = None,
    row_norm: RowNorm = "l2",
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    max_rank: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: Seed = 0,
) -> Encoding:
    """Solve MOSAIC's program, min lam/2 · tr((I − R)ᵀ K (I − R)) + Σ_j ‖r_j‖, to a certified gap.

    Parameters
    ----------
    X : array or CSR matrix of points, or the similarity matrix when ``kernel="precomputed"``
    kernel : "rbf" or another of ``mosaic.kernels.KERNELS``, ``Polynomial(…)``, ``Diffusion(…)``, or a function f(A, B) of points
    gamma : bandwidth, or a rule for it: "scale", "median", EffectiveCount(m0)
    alpha : strength as a multiple of the critical one, below which nothing is selected (default 10)
    lam : strength itself, instead of alpha
    row_norm : "l2" (the paper's program) or "linf" (the program of its coverage theorem, with an n×n unknown)
    solver : "auto" (interior point with a growing working set; FISTA for "linf"), "fista", or "admm"
    tol : relative gap to certify, for the kernel as given and not only for its factor
    max_iter : largest number of steps of first-order solvers
    max_rank : columns of the kernel's factor, at most
    sample_weight : how much each point counts as a target
    random_state : seed; the same seed gives the same answer

    Returns
    -------
    Encoding

    Notes
    -----
    1. The paper leaves lam open; alpha, its multiple of the critical strength, is the usual scale-free parameter.
    2. Equal points are one point of the program, with their number as weight. They share its row evenly.
    3. Rows that must be chosen are no part of the program: ``MOSAIC.fit(X, must_include=…)`` applies them when it chooses.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic import solve
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> encoding = solve(X, alpha=5.0)
    >>> encoding.dual_gap <= 1e-4
    True
    >>> R = encoding.rows(encoding.support)
    >>> bool(np.allclose(np.linalg.norm(R, axis=1), encoding.influence[encoding.support], rtol=1e-2))
    True
    """
    real_number("tol", tol, above=0, remedy="Leave it at 1e-4.")
    whole_number("max_iter", max_iter, remedy="Leave it at 10000.")
    if max_rank is not None:
        whole_number("max_rank", max_rank, remedy="None sets no limit.")
    check_strength(alpha, lam)
    check_seed(random_state)
    one_of("solver", solver, get_args(SolverName))
    one_of("row_norm", row_norm, get_args(RowNorm))
    if row_norm == "linf" and sample_weight is not None:
        raise InvalidInputError(
            "`row_norm='linf'` takes no `sample_weight`", "Use `row_norm='l2'`."
        )
    check_kernel(kernel)
    X = as_points(to_kernel_device(X, kernel), "K" if kernel in PAIRWISE else "X")
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
    if not 1.0 / LARGEST_WEIGHT <= float(weights.max()) <= LARGEST_WEIGHT:
        fault = f"must be at most {LARGEST_WEIGHT:.0e}, and one of them more than 0; the largest is {weights.max():.3g}"
        raise InvalidInputError(
            fault,
            "Divide all by the largest; `alpha` does not depend on it.",
            parameter="sample_weight",
        )
    # The neighbour graph of a diffusion kernel has a node for each copy of a point, and copies need not have equal neighbours.
    if row_norm == "linf" or name_of(kernel) == "diffusion":
        groups = EqualRows.trivial(n)
    else:
        groups = equal_rows(X)
    # Bandwidth rules count all points, copies included.
    similarity = make_kernel(X, kernel, gamma=gamma, random_state=random_state)
    similarity.refuse_indefinite()
    with xp.work_on_devices(), using_threads():
        distinct = similarity if groups.is_trivial else similarity.take(groups.first)
        program = Program(
            distinct, groups.sums(weights), row_norm, solver, tol, max_iter, max_rank, random_state
        )
        encoding = program.encode(alpha, lam)
    if not groups.is_trivial:  # equal points share a row
        influence = (encoding.influence / np.bincount(groups.group))[groups.group]
        encoding = replace(encoding, groups=groups, influence=influence)
    if encoding.dual_gap > tol:
        text = f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {encoding.status.value}"
        warn(text, ConvergenceWarning)
    return encoding


@dataclass(frozen=True)
class PosedProblem:
    """The design problem of a factor, at strength 1, and its critical strength."""

    factor: Factor
    problem: DesignProblem
    lam_crit: float
    candidates: IntArray  # the distinct points that may be chosen
    initial: IntArray  # those that the solver begins with, best first

    def restrict(self, kept: IntArray) -> PosedProblem:
        """The same problem with fewer candidates; the solver begins with all of them."""
        return replace(
            self, problem=self.problem.restrict(kept), candidates=kept, initial=np.arange(len(kept))
        )

    def strength(self, alpha: float | None, lam: float | None) -> float:
        """lam, or alpha · lam_crit, by default 10 · lam_crit; one that leaves the range of floats is refused."""
        found = (
            float(10.0 if alpha is None else alpha) * self.lam_crit if lam is None else float(lam)
        )
        if not 1.0 / LARGEST_VALUE <= found * self.factor.trace <= LARGEST_VALUE:
            raise InvalidInputError(
                f"gives the program values near {found * self.factor.trace:.1e}, whose squares leave the range of floats",
                f"Near {self.lam_crit:.1e} the first points are selected.",
                parameter="alpha" if lam is None else "lam",
                value=alpha if lam is None else lam,
            )
        return found


@dataclass(frozen=True)
class Program:
    """``solve`` for a kernel between distinct points and their weights."""

    kernel: Kernel
    weights: FloatArray
    row_norm: RowNorm = "l2"
    solver: SolverName = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    max_rank: int | None = None
    random_state: Seed = 0
    #: Whether rows of R are left out that the tolerance does not need; else those are left out that are zero at the optimum.
    thin: bool = True

    def encode(self, alpha: float | None = None, lam: float | None = None) -> Encoding:
        """The certified encoding at a strength."""
        n = self.kernel.n
        tol = self.tol
        trace_tol = 0.25 * tol  # for the relative trace error of the factor
        if self.row_norm == "linf" and n > MOST_WITH_LINF:
            fault = f"asks for {n:,} × {n:,} numbers, and takes at most {MOST_WITH_LINF:,} points"
            raise MemoryBudgetError(
                fault, "Use 'l2', or fewer points.", parameter="row_norm", value="linf"
            )
        while True:
            posed = self.pose(trace_tol)
            factor = posed.factor
            solution, encoding = self.solve(posed, posed.strength(alpha, lam))
            if (
                encoding.dual_gap <= tol
                or factor.is_finest
                or solution.gap > tol
                or trace_tol < 1e-3 * tol
            ):
                break
            # The error of the factor takes more than its share of the gap.
            trace_tol = 0.25 * trace_tol
        if encoding.certificate.primal - solution.primal > tol * encoding.certificate.scale:
            # Rows of points that the factor approximates badly may raise the value. Rows of pivots cannot: it is exact there.
            encoding = self._better(encoding, posed.restrict(np.sort(factor.pivots)))
        if encoding.certificate.at_most > (1.0 + tol) * encoding.certificate.scale:
            encoding = self._better(encoding, posed.restrict(NO_ROWS))
        if encoding.dual_gap > tol and encoding.status in (Status.CONVERGED, Status.TRIVIAL):
            # Else rounding has taken the rest.
            is_coarse = encoding.certificate.kernel_error > 0.25 * tol
            encoding = replace(
                encoding, status=Status.KERNEL_ERROR if is_coarse else Status.STALLED
            )
        return encoding

    def pose(self, trace_tol: float, among: IntArray | None = None) -> PosedProblem:
        """The problem for distinct points with these weights and the kernel F Fᵀ, whose pivots are ``among`` some points."""
        n = self.kernel.n
        weights = self.weights
        factor = factorize(
            self.kernel,
            tol=trace_tol,
            max_rank=self.max_rank,
            weights=weights,
            among=among,
            random_state=self.random_state,
        )
        if n <= MOST_SOLVED_WHOLE or self.solver != "auto":
            factor = replace(factor, F=on_host(factor.F))
        F = factor.F
        square = isinstance(F, np.ndarray) and F.dtype == np.float64 and bool((weights == 1).all())
        problem = DesignProblem(F, weighted_gram(F, weights), 1.0, square=square)
        return PosedProblem(
            factor, problem, critical_lam(problem, self.row_norm), np.arange(n), factor.pivots
        )

    def solve(self, posed: PosedProblem, lam: float) -> tuple[Solution, Encoding]:
        """The solution for the factor, and the encoding with its certificate for the kernel itself."""
        problem = posed.problem.with_lam(lam)
        try:
            solution = self._run(problem, posed)
            return solution, self._certify(problem, posed, solution)
        except (
            np.linalg.LinAlgError
        ):  # at this strength rounding leaves nothing certain but that R = 0 is feasible
            solution = self._nothing(problem, Status.STALLED, dual=0.0)
            return solution, self._certify(problem, posed, solution)

    def _better(self, encoding: Encoding, fewer: PosedProblem) -> Encoding:
        """The encoding, or one with fewer candidates if its value is lower; the lower bound holds for both."""
        other = self.solve(fewer, encoding.lam)[1]
        if other.certificate.at_most >= encoding.certificate.at_most:
            return encoding
        first = encoding.certificate
        found = other.certificate
        # What it has more of is taken off here.
        proven = max(first.dual - max(first.slack - found.slack, 0.0), 0.0)
        return replace(
            other,
            certificate=replace(found, dual=min(proven, found.primal)),
            status=encoding.status,
        )

    def _nothing(self, problem: DesignProblem, status: Status, dual: float) -> Solution:
        value = np.zeros((problem.n, self.kernel.n) if self.row_norm == "linf" else problem.n)
        return Solution(value, np.zeros(problem.n), status, problem.scale, dual, problem.scale, 0)

    def _run(self, problem: DesignProblem, posed: PosedProblem) -> Solution:
        """Solve for η (ℓ₂) or the rows of R (ℓ_∞) at the strength of ``problem``."""
        if problem.lam <= posed.lam_crit or not problem.n:
            return self._nothing(problem, Status.TRIVIAL, dual=problem.scale)
        # No solver closes the gap that an incomplete factor leaves, so solving far below it is useless.
        missed = 0.5 * posed.factor.relative_error if posed.factor.is_finest else 0.0
        tol = 0.6 * max(self.tol, missed)  # the solver's share of the tolerance
        solver = "fista" if self.solver == "auto" and self.row_norm == "linf" else self.solver
        if solver not in FIRST_ORDER:
            found = solve_design(problem, tol=tol, initial=posed.initial, thin=self.thin)
            return found if self.thin else _without_empty_rows(problem, found)
        T = np.asarray(posed.factor.F, np.float64).T if self.row_norm == "linf" else problem.T
        program = RowProgram(
            np.asarray(problem.F, np.float64), np.ascontiguousarray(T), problem.lam, self.row_norm
        )
        found = run(FIRST_ORDER[solver], program, tol=tol, max_iter=self.max_iter)
        if self.row_norm == "linf":
            return found
        # η = ‖w_j‖ and its W(η) are at least as good: half a step of alternating minimisation over (W, η).
        eta = found.row_norms
        norms, (primal, dual) = _at(problem, eta)
        return replace(found, value=eta, row_norms=norms, primal=primal, dual=max(dual, found.dual))

    def _certify(self, problem: DesignProblem, posed: PosedProblem, solution: Solution) -> Encoding:
        """The encoding, certified for the kernel itself. If the solver's formulas lose too many digits, values are computed
        directly from the rows and from E. A lower bound above the attained value is wrong and is replaced by 0.
        """
        factor = posed.factor
        half = 0.5 * problem.lam
        used = np.flatnonzero(solution.row_norms)
        norms = solution.row_norms[used]
        members = posed.candidates[used]
        primal = solution.primal
        dual = solution.dual
        status = solution.status
        rows: DesignRows | GivenRows
        lost = 0.0
        if self.row_norm == "linf":
            rows = GivenRows(factor.F, problem.F[used], solution.value[used])
        else:
            eta = solution.value[used]
            rows = DesignRows(factor.F, problem.restrict(used), eta)
            # lam · max_j η_j ‖f_j‖², about the condition number of M: the solvers' formulas lose as many digits as it has.
            condition = problem.lam * float(
                (eta * row_norms_squared(rows.design.F)).max(initial=0.0)
            )
            lost = EPS * condition
            if lost > 1e-3 * self.tol:
                dual = lower_bound(problem, solution.value)
                lost = 0.0
                norms = np.sqrt(np.maximum(rows.gram(self.weights).diagonal(), 0.0))
                primal = half * rows.misfit() + float(norms.sum())
        scale = half * factor.trace
        eps = float(np.finfo(numpy_dtype(factor.F)).eps)
        # Σ_j k_jj ‖r_j‖² / tr K. Above 1, rounding of a pivoted factor is fitted: it counts so many times (docs/math).
        lengths = np.linalg.norm(rows.R, axis=1) if isinstance(rows, GivenRows) else norms
        load = float(self.kernel.diagonal()[members] @ lengths**2) / factor.trace
        is_fitted = load > 1.0 and len(factor.pivots) > 0
        room = (self.tol * scale - (primal - dual)) / half
        primal += half * _kernel_excess(
            self.kernel, factor, members, rows, self.weights, None if is_fitted else room
        )
        if is_fitted:
            dual = max(dual - ALLOWED_ROUNDINGS * eps * (load - 1.0) * scale, 0.0)
        slack = ALLOWED_ROUNDINGS * (max(eps, EPS * load) + lost) * scale
        if dual > primal + slack:
            dual = 0.0
            status = Status.STALLED
        influence = np.zeros(self.kernel.n)
        influence[members] = norms
        return Encoding(
            influence=influence,
            lam=problem.lam,
            alpha=problem.lam / posed.lam_crit,
            status=status,
            n_iter=solution.iterations,
            certificate=Certificate(primal, dual, scale, factor.relative_error, factor.rank, slack),
            kernel=self.kernel,
            factor=factor,
            groups=EqualRows.trivial(self.kernel.n),
            weights=self.weights,
            members=members,
            member_rows=rows,
        )


def _without_empty_rows(problem: DesignProblem, found: Solution) -> Solution:
    """The solution without the rows that a proximal step of length t leaves at zero: ‖r_j‖ + t z_j ≤ t, z_j = ‖r_j‖ / η_j.

    At the optimum these are the rows that are zero, for any t (interior point keeps all η above zero). t = n / (lam tr F Fᵀ), 1/ρ
    of the ADMM. The dual point is that of all rows.
    """
    used = np.flatnonzero(found.value)
    t = problem.n / (problem.lam * float(row_norms_squared(problem.F).sum()))
    norms = found.row_norms[used]
    kept = used[norms + t * norms / found.value[used] > t]
    if not 0 < len(kept) < len(used):
        return found
    value = np.zeros(problem.n)
    value[kept] = found.value[kept]
    norms, (primal, _) = _at(problem, value)
    return replace(found, value=value, row_norms=norms, primal=primal)


def _at(problem: DesignProblem, eta: FloatArray) -> tuple[FloatArray, PrimalDual]:
    """‖w_j‖ = η_j z_j of W(η), and the bounds there."""
    point = problem.dual_point(eta)
    z = problem.scores(point.E)
    return eta * z, primal_dual(point.inner, point.fit, float(eta @ z), float(z.max()))


def lower_bound(problem: DesignProblem, eta: FloatArray, members: IntArray | None = None) -> float:
    """The dual value of E = M⁻¹T, valid even if E is inaccurate: its z_j are known up to eps ‖E‖ ‖f_j‖, which is added."""
    point = problem.dual_point(eta, members)
    eps = float(np.finfo(numpy_dtype(problem.F)).eps)
    rounding = (
        eps * np.linalg.norm(point.E) * np.sqrt(row_norms_squared(problem.F).max(initial=0.0))
    )
    largest = problem.scores(point.E).max(initial=0.0)
    return primal_dual(point.inner, point.fit, 0.0, float(largest + rounding)).dual


def _kernel_excess(
    kernel: Kernel,
    factor: Factor,
    members: IntArray,
    rows: DesignRows | GivenRows,
    weights: FloatArray,
    room: float | None,
) -> float:
    """tr((I − R)ᵀ Δ (I − R)), Δ = K − F Fᵀ, for R with these non-zero rows, or an upper bound that fits into ``room``:
    ‖Δ^½(I − R)‖_F ≤ ‖Δ^½‖_F + ‖Δ^½ R‖_F, where the last norm needs Δ only between the non-zero rows, and vanishes for pivots.
    Without ``room``, Δ has negative eigenvalues and remains of rounding at pivots that matter, and no bound will do.
    """
    exposed = np.flatnonzero((factor.residual[members] > 0) | (room is None))
    if not len(exposed):
        return factor.error
    chosen = members[exposed]
    F_chosen = xp.host_rows(factor.F, chosen)
    Δ = kernel.block(chosen, chosen) - F_chosen @ F_chosen.T
    inside = float(np.vdot(Δ, rows.gram(weights, exposed)))
    bound = np.inf
    if room is not None:
        bound = float(np.sqrt(factor.error) + np.sqrt(max(inside, 0.0))) ** 2
        if bound <= room or factor.error > room:
            return bound

    def across(targets: slice) -> float:
        Δ = kernel.block(targets, chosen) - xp.host_rows(factor.F, targets) @ F_chosen.T
        return float(weights[targets] @ np.einsum("ij,ji->i", Δ, rows.part(exposed, targets)))

    cross = sum(in_blocks(across, kernel.n, len(exposed), PRODUCT_ENTRIES, on=kernel.X))
    return min(bound, max(factor.error - 2.0 * cross + inside, 0.0))
