"""From data to a certified encoding in one call: the front door of the exact layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import BoolArray, FloatArray, IntArray, Seed, as_points, equal_rows, row_blocks, row_norms_squared
from mosaic.encoding import FEW_ROUNDINGS, Certificate, DesignRows, Encoding, EqualPoints, GivenRows, rounding_slack
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from mosaic.factor import Factor, factorize
from mosaic.kernels import Gamma, Kernel, make_kernel
from mosaic.problem import (
    NOISE,
    DesignProblem,
    RowNorm,
    RowProgram,
    critical_lam,
    critical_strength,
    project_out,
    weighted_gram,
)
from mosaic.roles import Roles
from mosaic.solvers import ADMM, FISTA, Record, Solution, Solver, Status, run, solve_reference
from mosaic.working_set import Round, solve_design

SolverName: TypeAlias = Literal["auto", "interior-point", "fista", "admm", "admm-paper", "reference"]

#: Shares of the tolerance: what the factor may miss of the kernel, and what the solver may leave of the gap.
KERNEL_SHARE, SOLVER_SHARE = 0.25, 0.6
#: Rounding of the arithmetic that solvers work in.
EPS = float(np.finfo(np.float64).eps)
#: Share of the tolerance that may be lost to rounding before bounds are computed in a more careful way.
DELICATE = 1e-3
#: So many eps of the similarity are nothing: must-include points that leave no more have explained all.
NOTHING = 1e3
#: Without a budget, forms with an n×n unknown are refused above this many bytes.
LARGEST_SQUARE = 8e9


class Progress(NamedTuple):
    """Where a long run stands: ``stage`` is "factor", "round" or "iteration"; ``gap`` what is left to gain."""

    stage: str
    step: int
    gap: float


def solve(
    X: Any,
    *,
    kernel: str | Callable[[Any, Any], Any] = "rbf",
    gamma: Gamma = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    n_neighbors: int = 10,
    time: int = 2,
    alpha: float | None = None,
    lam: float | None = None,
    row_norm: RowNorm = "l2",
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    max_rank: int | None = None,
    memory_budget: float | None = None,
    sample_weight: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    candidates: ArrayLike | None = None,
    must_include: ArrayLike | None = None,
    random_state: Seed = 0,
    callback: Callable[[Progress], None] | None = None,
) -> Encoding:
    """Solve MOSAIC's program, min lam/2 · tr((I − R)ᵀ K (I − R)) + Σ_j c_j ‖r_j‖, to a certified gap.

    Parameters
    ----------
    X : array or CSR matrix of points, or the similarity matrix when ``kernel="precomputed"``
    kernel : "rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed" or a function f(A, B)
    gamma : bandwidth, or a rule for it: "scale", "median", EffectiveCount(m0)
    degree, coef0 : of the polynomial kernel
    n_neighbors, time : of the diffusion kernel
    alpha : strength as a multiple of the critical one, below which nothing is selected (default 10)
    lam : strength itself, instead of alpha
    row_norm : "l2" (the paper's program) or "linf" (the one of its coverage theorem; unknown of n×n)
    solver : "auto" (interior point with a growing working set; FISTA for "linf"), "interior-point", "fista", "admm",
        "admm-paper" (the paper's n×n form), "reference" (CVXPY)
    tol : relative gap to certify, for the kernel as given and not only for its factor
    max_iter : steps at most, for first-order solvers
    max_rank, memory_budget : limits of the factor; a budget that is too small is refused with the numbers
    sample_weight : how much each point counts as a target
    cost : price c_j > 0 of each point's row
    candidates : points that may be chosen (row numbers or mask); all points remain targets
    must_include : points that are in at no cost; the others are chosen to complement them
    random_state : seed; same seed, same answer
    callback : called with a Progress now and then

    Returns
    -------
    Encoding

    Notes
    -----
    1. The paper leaves lam open; the multiple alpha of the critical strength is the usual scale-free way to state it.
    2. Exactly equal points are solved for once, with their number as weight, and share their row evenly.

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
    if not (isinstance(tol, Real) and 0 < tol < np.inf):
        raise InvalidInputError(f"tol must be a finite number > 0; got {tol!r}.")
    for name, value in (("max_iter", max_iter), ("max_rank", max_rank)):
        if value is not None and not (isinstance(value, Integral) and not isinstance(value, bool) and value >= 1):
            raise InvalidInputError(f"{name} must be a whole number >= 1; got {value!r}.")
    if isinstance(random_state, str | float) or (isinstance(random_state, Integral) and random_state < 0):
        raise InvalidInputError(f"random_state must be a whole number >= 0, a generator or None; got {random_state!r}.")
    if row_norm not in ("l2", "linf"):
        raise InvalidInputError(f"row_norm must be 'l2' or 'linf'; got {row_norm!r}.")
    X = as_points(X, "K" if kernel == "precomputed" else "X")
    roles = Roles.read(X.shape[0], sample_weight, cost, candidates, must_include)
    groups = EqualPoints.trivial(X.shape[0])
    if row_norm == "l2":
        # A neighbour graph has a node for every copy, and copies need not have the same neighbours.
        equal = equal_rows(X) if kernel != "diffusion" else None
        if equal is not None:
            groups = EqualPoints(*equal)
    elif sample_weight is not None or must_include is not None:
        raise InvalidInputError("row_norm='linf' takes no sample_weight and no must_include; use row_norm='l2'.")

    similarity = make_kernel(
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        n_neighbors=n_neighbors,
        time=time,
        random_state=random_state,
    )  # a bandwidth rule sees all points, copies included
    encoding = encode(
        similarity if len(groups.first) == groups.n else similarity.take(groups.first),
        alpha=alpha,
        lam=lam,
        row_norm=row_norm,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        max_rank=max_rank,
        memory_budget=memory_budget,
        roles=roles,
        groups=groups,
        random_state=random_state,
        callback=callback,
    )
    if encoding.dual_gap > tol:
        warnings.warn(
            f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {encoding.status.advice}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return encoding


def encode(
    kernel: Kernel,
    *,
    alpha: float | None = None,
    lam: float | None = None,
    row_norm: RowNorm = "l2",
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    max_rank: int | None = None,
    memory_budget: float | None = None,
    roles: Roles | None = None,
    groups: EqualPoints | None = None,
    warm: Encoding | None = None,
    random_state: Seed = 0,
    callback: Callable[[Progress], None] | None = None,
) -> Encoding:
    """``solve`` for a kernel between distinct points, with checked roles, and silent about a gap above ``tol``.

    ``groups`` says which points are equal (``roles`` then speak of all of them). ``warm`` is an encoding for the same
    kernel, whose factor is used again and whose influence the solver starts from.
    """
    groups = EqualPoints.trivial(kernel.n) if groups is None else groups
    roles = Roles.read(groups.n) if roles is None else roles
    if row_norm == "linf" or solver == "admm-paper":
        _check_square_budget(len(roles.allowed), kernel.n, memory_budget)
    weights = np.asarray(np.bincount(groups.group, weights=roles.weights), np.float64)
    trace_tol = KERNEL_SHARE * tol
    of_points = roles.on(groups)
    factor = None if warm is None else warm.factor
    while True:
        if factor is None:
            factor = factorize(
                kernel,
                tol=trace_tol,
                max_rank=max_rank,
                memory_budget=memory_budget,
                weights=weights,
                candidates=of_points.allowed,
                first=of_points.anchors,
                random_state=random_state,
                callback=None if callback is None else lambda rank, error: callback(Progress("factor", rank, error)),
            )
        setting = _Setting.build(factor, weights, of_points, row_norm)
        task = _Task(
            kernel,
            factor,
            groups,
            roles,
            weights,
            row_norm,
            _strength(alpha, lam, setting.lam_crit),
            solver,
            tol,
            max_iter,
            callback,
        )
        start = None if warm is None else warm.influence[groups.first][setting.candidates]
        solution, encoding = task.solve(setting, start)
        # What the kernel adds may be more than its share; a finer factor settles it.
        left = float(np.trace(setting.problem.C)) / factor.trace  # by must-include points
        if encoding.dual_gap <= tol or task.is_limited or solution.gap > tol or trace_tol < 1e-3 * tol * left:
            break
        trace_tol = min(0.25 * trace_tol, KERNEL_SHARE * tol * left)
        factor = None
    if encoding.certificate.primal - solution.primal > tol * encoding.certificate.scale:
        # Rows that the factor knows little about may do harm. Those of pivots cannot: they are as good as the factor says.
        encoding = task.better(encoding, setting.restrict(np.isin(setting.candidates, factor.pivots)))
    if encoding.certificate.at_most > (1.0 + tol) * encoding.certificate.scale:
        encoding = task.better(encoding, setting.restrict(np.zeros(len(setting.candidates), dtype=bool)))
    if encoding.dual_gap > tol and encoding.status in (Status.CONVERGED, Status.TRIVIAL):
        encoding = replace(encoding, status=Status.KERNEL_ERROR)
    return encoding


@dataclass(frozen=True)
class _Setting:
    """The problem over distinct points: candidates' rows, their prices, and what must-include points take away.

    ``is_settled`` says that must-include points leave nothing that a candidate could explain, at any strength; ``hidden`` is
    what may be left, at most, of a candidate that was taken for rounding (its length over its price).
    """

    problem: DesignProblem
    lam_crit: float
    is_settled: bool
    hidden: float
    candidates: IntArray
    cost: FloatArray | None
    anchors: IntArray
    initial: IntArray

    @classmethod
    def build(cls, factor: Factor, weights: FloatArray, roles: Roles, row_norm: RowNorm) -> _Setting:
        F = factor.F
        if len(roles.anchors):
            F, _ = project_out(F, roles.anchors)
        C = weighted_gram(F, weights)
        everyone = len(roles.allowed) == len(F)
        chosen = F if everyone else F[roles.allowed]
        cost = None
        if roles.cost is not None:
            cost = roles.cost[roles.allowed]
            chosen = chosen / cost.astype(F.dtype)[:, None]
        hidden = 0.0
        if len(roles.anchors):
            lengths = NOISE * float(np.finfo(F.dtype).eps) * row_norms_squared(factor.F[roles.allowed])
            lengths[row_norms_squared(chosen) > 0] = 0.0
            hidden = float(np.sqrt(lengths if cost is None else lengths / cost**2).max())
        plain = everyone and roles.cost is None and not len(roles.anchors) and bool((weights == 1).all())
        problem = DesignProblem(chosen, C, 1.0, square=plain and F.dtype == np.float64)
        is_settled = len(roles.anchors) > 0 and not (C.any() and _resemble(chosen, C))
        if is_settled:  # a strength to speak of is that without must-include points
            everything = DesignProblem(factor.F, weighted_gram(factor.F, weights), 1.0)
            lam_crit = critical_lam(everything)
        elif row_norm == "l2":
            lam_crit = critical_lam(problem)
        else:
            blocks = row_blocks(len(chosen), len(F))
            lam_crit = critical_strength(np.concatenate([np.abs(chosen[rows] @ F.T).sum(axis=1) for rows in blocks]))
        place = np.full(len(F), -1, np.intp)
        place[roles.allowed] = np.arange(len(roles.allowed))
        initial = place[factor.pivots]
        return cls(problem, lam_crit, is_settled, hidden, roles.allowed, cost, roles.anchors, initial[initial >= 0])

    def restrict(self, kept: BoolArray) -> _Setting:
        """The same with fewer candidates, all of them good to begin with."""
        problem = self.problem.restrict(np.flatnonzero(kept))
        cost = None if self.cost is None else self.cost[kept]
        everyone = np.arange(int(kept.sum()))
        return replace(self, problem=problem, candidates=self.candidates[kept], cost=cost, initial=everyone)


def _resemble(candidates: FloatArray, C: FloatArray) -> bool:
    """Whether a candidate has anything in common with a target."""
    return any(bool((candidates[rows] @ C.astype(candidates.dtype)).any()) for rows in row_blocks(*candidates.shape))


def _check_square_budget(n: int, targets: int, memory_budget: float | None) -> None:
    """Forms whose unknown is R itself keep about six matrices of its size."""
    limit = LARGEST_SQUARE if memory_budget is None else memory_budget
    needed = 6.0 * 8 * n * targets
    if needed > limit:
        raise MemoryBudgetError(
            f"this form has an unknown of {n:,} × {targets:,} and needs about {needed:,.0f} bytes; "
            f"the limit is {limit:,.0f}. Use row_norm='l2' with solver='auto'."
        )


def _strength(alpha: float | None, lam: float | None, lam_crit: float) -> float:
    """lam, as given or as a multiple of the critical strength."""
    for name, value in (("alpha", alpha), ("lam", lam)):
        if value is not None and not isinstance(value, Real):
            raise InvalidInputError(f"{name} must be a number or None; got {value!r}.")
    if lam is not None:
        if alpha is not None:
            raise InvalidInputError(f"give alpha or lam, not both; got alpha={alpha:g} and lam={lam:g}.")
        if not (np.isfinite(lam) and lam > 0):
            raise InvalidInputError(f"lam must be a finite number > 0; got {lam}.")
        return float(lam)
    alpha = 10.0 if alpha is None else alpha
    if not (np.isfinite(alpha) and alpha > 1):
        raise InvalidInputError(
            f"alpha must be > 1 (a multiple of the critical strength); got {alpha:g}. At 1 or below nothing is selected."
        )
    return float(alpha) * lam_crit


@dataclass(frozen=True)
class _Task:
    """A factor of the kernel and a strength, with all that solving and certifying need besides."""

    kernel: Kernel
    factor: Factor
    groups: EqualPoints
    roles: Roles
    weights: FloatArray
    row_norm: RowNorm
    lam: float
    solver: SolverName
    tol: float
    max_iter: int
    callback: Callable[[Progress], None] | None

    @property
    def is_limited(self) -> bool:
        """Whether a finer factor is out of the question."""
        return self.factor.stopped != "tolerance"

    def solve(self, setting: _Setting, start: FloatArray | None) -> tuple[Solution, Encoding]:
        """What a solver finds, and what it is worth for the kernel itself."""
        problem = setting.problem.with_lam(self.lam)
        try:
            solution = self._run(problem, setting, start)
            return solution, self._encode(problem, setting, solution)
        except np.linalg.LinAlgError:  # at this strength the arithmetic can tell nothing but that R = 0 is feasible
            solution = self._nothing(problem, Status.STALLED, dual=0.0)
            return solution, self._encode(problem, setting, solution)

    def better(self, encoding: Encoding, fewer: _Setting) -> Encoding:
        """The encoding, or one with fewer candidates if its value is lower; what was proven holds for both."""
        other = self.solve(fewer, None)[1]
        if other.certificate.at_most >= encoding.certificate.at_most:
            return encoding
        proven = min(encoding.certificate.dual, other.certificate.primal)
        return replace(other, certificate=replace(other.certificate, dual=proven), status=encoding.status)

    def _nothing(self, problem: DesignProblem, status: Status, dual: float) -> Solution:
        """R = 0, and a lower bound for all others."""
        value = np.zeros((problem.n, len(self.factor.F)) if self.row_norm == "linf" else problem.n)
        gap = (problem.scale - dual) / problem.scale if problem.scale > 0 else 0.0
        return Solution(value, np.zeros(problem.n), status, problem.scale, dual, gap, 0, ())

    def _run(self, problem: DesignProblem, setting: _Setting, start: FloatArray | None) -> Solution:
        """η (ℓ₂) or the rows of R (ℓ_∞) at the strength of ``problem``, scaled by cost as the problem is."""
        solver, row_norm = self.solver, self.row_norm
        if solver not in ("auto", "interior-point", "fista", "admm", "admm-paper", "reference"):
            raise InvalidInputError(
                f"solver must be 'auto', 'interior-point', 'fista', 'admm', 'admm-paper' or 'reference'; got {solver!r}."
            )
        if row_norm == "linf":
            if solver == "interior-point":
                raise InvalidInputError(
                    "row_norm='linf' has no interior-point solver; use 'auto', 'fista', 'admm' or 'reference'."
                )
            solver = "fista" if solver == "auto" else solver
        if setting.is_settled or problem.lam <= setting.lam_crit or not problem.n:
            status = Status.NOTHING_LEFT if setting.is_settled else Status.TRIVIAL
            return self._nothing(problem, status, dual=problem.scale)
        # A factor that had to stop early leaves a gap that no solver closes; to solve far below it is lost time.
        tol = SOLVER_SHARE * (max(self.tol, 0.5 * self.factor.relative_error) if self.is_limited else self.tol)
        if solver in ("auto", "interior-point"):
            return solve_design(problem, tol=tol, initial=setting.initial, start=start, callback=self._on_round)
        program = RowProgram(
            np.asarray(problem.F, np.float64), self._targets(problem, setting, solver), problem.lam, row_norm
        )
        if solver == "reference":
            found = solve_reference(program, tol=tol)
        else:
            method: Solver[RowProgram, Any] = FISTA() if solver == "fista" else ADMM()
            found = run(method, program, tol=tol, max_iter=self.max_iter, callback=self._on_record)
        if row_norm == "linf":
            return found
        # η = ‖w_j‖ and its own W are at least as good: one more half-step of the alternating minimisation over (W, η).
        eta = found.row_norms
        point = problem.dual_point(eta)
        z = problem.scores(point.E)
        primal, dual = problem.bounds(point.inner, point.fit, float(eta @ z), float(z.max()))
        dual = max(dual, found.dual)
        gap = (primal - dual) / problem.scale
        return Solution(eta, eta * z, found.status, primal, dual, gap, found.iterations, found.trace)

    def _targets(self, problem: DesignProblem, setting: _Setting, solver: SolverName) -> FloatArray:
        """T of the row form: Fᵀ itself where the unknown is R, else the smaller one of the design form."""
        targets = self.factor.F
        if solver == "admm-paper" and self.row_norm == "l2":  # TTᵀ = FᵀΩF, as in the reduced form
            targets = project_out(targets, setting.anchors)[0] if len(setting.anchors) else targets
            targets = np.sqrt(self.weights)[:, None] * targets
        square = self.row_norm == "linf" or solver == "admm-paper"
        return np.ascontiguousarray(np.asarray(targets, np.float64).T if square else problem.T)

    def _on_round(self, r: Round) -> None:
        if self.callback is not None:
            self.callback(Progress("round", r.number, r.gap))

    def _on_record(self, r: Record) -> None:
        if self.callback is not None:
            self.callback(Progress("iteration", r.iteration, r.gap))

    def _encode(self, problem: DesignProblem, setting: _Setting, solution: Solution) -> Encoding:
        """Undo costs and projections, share rows among equal points, and certify for the kernel itself.

        Where must-include points take part, or a solver's formulas lose the digits that count, values come from the rows and
        from E themselves. A bound above what the rows attain has failed, and is taken back.
        """
        factor, anchors, half = self.factor, setting.anchors, 0.5 * problem.lam
        used = np.flatnonzero(solution.row_norms)
        prices = None if setting.cost is None else setting.cost[used]
        norms = solution.row_norms[used] if prices is None else solution.row_norms[used] / prices
        members, primal, dual, status = setting.candidates[used], solution.primal, solution.dual, solution.status
        rows: DesignRows | GivenRows
        lost = free = 0.0
        if self.row_norm == "linf":
            rows = GivenRows(solution.value[used] if prices is None else solution.value[used] / prices[:, None])
        else:
            rows = DesignRows(factor.F, members, problem.restrict(used), solution.value[used], prices, anchors)
            lost = EPS * _condition(problem, solution.value)
            delicate = lost > DELICATE * self.tol
            if delicate or setting.hidden > 0:
                dual, lost = _lower_bound(problem, solution.value, setting.hidden), 0.0
            if delicate or len(anchors):
                members = np.concatenate([anchors, members])
                squares = np.maximum(np.diagonal(rows.products(self.weights, np.arange(len(members)))), 0.0)
                norms = np.sqrt(squares)
                # Coefficients of must-include points have no price: rounding of K is multiplied by their squares.
                free = float(squares[: len(anchors)].sum() * self.kernel.diagonal().max())
                priced = norms[len(anchors) :]
                primal = half * rows.misfit(self.weights) + float(priced.sum() if prices is None else prices @ priced)
        left = float(np.trace(problem.C)) + factor.error
        scale = half * left if left > NOTHING * float(np.finfo(factor.F.dtype).eps) * factor.trace else 0.0
        slack = rounding_slack(factor.F.dtype, half * (factor.trace + free)) + FEW_ROUNDINGS * lost * scale
        room = (self.tol * scale - (primal - dual)) / half
        primal += half * _kernel_excess(self.kernel, factor, members, rows, self.weights, room)
        if dual > primal + slack and scale > 0:
            dual, status = 0.0, Status.STALLED
        return Encoding(
            influence=self._influence(members, norms),
            lam=problem.lam,
            alpha=problem.lam / setting.lam_crit,
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
        """‖r_j‖ of every point: equal ones share the row of theirs."""
        groups, takes = self.groups, self.roles.takers(self.groups)
        by_group = np.zeros(len(groups.first))
        by_group[members] = norms
        copies = np.bincount(groups.group, weights=takes, minlength=len(groups.first))
        return np.asarray(by_group[groups.group] * takes / np.maximum(copies[groups.group], 1.0))


def _condition(problem: DesignProblem, eta: FloatArray) -> float:
    """About the condition of M, lam · max_j η_j ‖f_j‖²: solvers' formulas lose as many digits as it has."""
    return problem.lam * float((eta * row_norms_squared(problem.F)).max(initial=0.0))


def _lower_bound(problem: DesignProblem, eta: FloatArray, hidden: float) -> float:
    """The dual value of E = M⁻¹T, whatever was lost on the way to E: any E is a dual point once its z_j are known.

    These are known up to eps ‖E‖ ‖f_j‖, which is added to them. Candidates of at most the length ``hidden`` are not seen.
    """
    point = problem.dual_point(eta)
    size, eps = float(np.linalg.norm(point.E)), float(np.finfo(problem.F.dtype).eps)
    rounding = eps * size * float(np.sqrt(row_norms_squared(problem.F).max(initial=0.0)))
    largest = max(float(problem.scores(point.E).max(initial=0.0)) + rounding, size * hidden)
    return problem.bounds(point.inner, point.fit, 0.0, largest).dual


def _kernel_excess(
    kernel: Kernel,
    factor: Factor,
    members: IntArray,
    rows: DesignRows | GivenRows,
    weights: FloatArray,
    room: float,
) -> float:
    """tr((I − R)ᵀ Δ (I − R)), Δ = K − F Fᵀ, for R with these non-zero rows, or a bound of it that fits into ``room``.

    ‖Δ^½(I − R)‖_F ≤ ‖Δ^½‖_F + ‖Δ^½ R‖_F, and the last norm needs Δ only between the non-zero rows. Where these are
    pivots Δ vanishes and the bound is tr Δ. If it does not fit, the cross term −2 tr(ΔR) is computed: one pass.
    """
    exposed = np.flatnonzero(factor.residual[members] > 0)
    if not len(exposed):
        return factor.error
    chosen = members[exposed]
    F_chosen = np.asarray(factor.F[chosen], np.float64)
    Δ = kernel.block(chosen, chosen) - F_chosen @ F_chosen.T
    inside = max(float(np.vdot(Δ, rows.products(weights, exposed))), 0.0)
    bound = float((np.sqrt(factor.error) + np.sqrt(inside)) ** 2)
    if bound <= room or factor.error > room:
        return bound
    cross = 0.0
    for targets in row_blocks(kernel.n, len(exposed)):
        Δ = kernel.block(targets, chosen) - factor.F[targets] @ F_chosen.T
        cross += float(np.einsum("ij,ji,i->", Δ, rows.part(exposed, targets), weights[targets]))
    return min(bound, max(factor.error - 2.0 * cross + inside, 0.0))
