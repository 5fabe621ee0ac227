"""From data to a certified encoding in one call: the front door of the exact layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import FloatArray, IntArray, Seed, as_points, equal_rows, row_blocks
from mosaic.encoding import Certificate, DesignRows, Encoding, GivenRows, Groups
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from mosaic.factor import Factor, factorize
from mosaic.kernels import Gamma, Kernel, make_kernel
from mosaic.problem import DesignProblem, RowNorm, RowProgram, critical_lam, project_out, weighted_gram
from mosaic.solvers import ADMM, FISTA, Record, Solution, Solver, Status, run, solve_reference
from mosaic.wishes import Wishes
from mosaic.working_set import Round, solve_design

SolverName: TypeAlias = Literal["auto", "interior-point", "fista", "admm", "admm-paper", "reference"]

#: Shares of the tolerance: what the factor may miss of the kernel, and what the solver may leave of the gap.
KERNEL_SHARE, SOLVER_SHARE = 0.25, 0.6
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
    if not (np.isfinite(tol) and tol > 0):
        raise InvalidInputError(f"tol must be a finite number > 0; got {tol}.")
    if row_norm not in ("l2", "linf"):
        raise InvalidInputError(f"row_norm must be 'l2' or 'linf'; got {row_norm!r}.")
    X = as_points(X, "K" if kernel == "precomputed" else "X")
    wishes = Wishes.read(X.shape[0], sample_weight, cost, candidates, must_include)
    groups = Groups.trivial(X.shape[0])
    if row_norm == "l2":
        # A neighbour graph has a node for every copy, and copies need not have the same neighbours.
        equal = equal_rows(X) if kernel != "diffusion" else None
        if equal is not None:
            groups = Groups(*equal)
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
        wishes=wishes,
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
    wishes: Wishes | None = None,
    groups: Groups | None = None,
    warm: Encoding | None = None,
    random_state: Seed = 0,
    callback: Callable[[Progress], None] | None = None,
) -> Encoding:
    """``solve`` for a kernel between distinct points, with checked wishes, and silent about a gap above ``tol``.

    ``groups`` says which points are equal (``wishes`` then speak of all of them). ``warm`` is an encoding for the same
    kernel, whose factor is used again and whose influence the solver starts from.
    """
    groups = Groups.trivial(kernel.n) if groups is None else groups
    wishes = Wishes.read(groups.n) if wishes is None else wishes
    if row_norm == "linf" or solver == "admm-paper":
        _check_square_budget(len(wishes.allowed), kernel.n, memory_budget)
    weights = np.asarray(np.bincount(groups.group, weights=wishes.weights), np.float64)
    trace_tol = KERNEL_SHARE * tol
    factor = None if warm is None else warm.factor
    while True:
        if factor is None:
            factor = factorize(
                kernel,
                tol=trace_tol,
                max_rank=max_rank,
                memory_budget=memory_budget,
                weights=weights,
                random_state=random_state,
                callback=None if callback is None else lambda rank, error: callback(Progress("factor", rank, error)),
            )
        setting = _Setting.build(factor, weights, wishes.on(groups), row_norm)
        problem = setting.problem.with_lam(_strength(alpha, lam, setting.lam_crit))
        start = None if warm is None else warm.influence[groups.first][setting.candidates]
        limited = factor.stopped != "tolerance"
        # A factor that had to stop early leaves a gap that no solver closes; to solve far below it is lost time.
        aim = max(tol, 0.5 * factor.relative_error) if limited else tol
        solution = _run_solver(problem, setting, factor, weights, solver, row_norm, aim, max_iter, start, callback)
        encoding = _encode(problem, setting, kernel, factor, groups, wishes, weights, row_norm, solution, tol)
        # What the kernel adds may be more than its share; a finer factor settles it.
        if encoding.dual_gap <= tol or limited or solution.gap > tol or trace_tol < 1e-3 * tol:
            break
        trace_tol *= 0.25
        factor = None
    if encoding.dual_gap > tol and encoding.status in (Status.CONVERGED, Status.TRIVIAL):
        encoding = replace(encoding, status=Status.KERNEL_ERROR)
    return encoding


@dataclass(frozen=True)
class _Setting:
    """The problem over distinct points: candidates' rows, their prices, and what must-include points take away."""

    problem: DesignProblem
    lam_crit: float
    candidates: IntArray
    cost: FloatArray | None
    anchors: IntArray
    initial: IntArray

    @classmethod
    def build(cls, factor: Factor, weights: FloatArray, wishes: Wishes, row_norm: RowNorm) -> _Setting:
        F = factor.F
        if len(wishes.anchors):
            F, _ = project_out(F, wishes.anchors)
        C = weighted_gram(F, weights)
        everyone = len(wishes.allowed) == len(F)
        chosen = F if everyone else F[wishes.allowed]
        cost = None
        if wishes.cost is not None:
            cost = wishes.cost[wishes.allowed]
            chosen = chosen / cost.astype(F.dtype)[:, None]
        plain = everyone and wishes.cost is None and not len(wishes.anchors) and bool((weights == 1).all())
        problem = DesignProblem(chosen, C, 1.0, square=plain and F.dtype == np.float64)
        if row_norm == "l2":
            lam_crit = critical_lam(problem)
        else:
            lam_crit = 1.0 / max(
                float(np.abs(chosen[rows] @ F.T).sum(axis=1).max()) for rows in row_blocks(len(chosen), len(F))
            )
        place = np.full(len(F), -1, np.intp)
        place[wishes.allowed] = np.arange(len(wishes.allowed))
        initial = place[factor.pivots]
        return cls(problem, lam_crit, wishes.allowed, cost, wishes.anchors, initial[initial >= 0])


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


def _run_solver(
    problem: DesignProblem,
    setting: _Setting,
    factor: Factor,
    weights: FloatArray,
    solver: SolverName,
    row_norm: RowNorm,
    tol: float,
    max_iter: int,
    start: FloatArray | None,
    callback: Callable[[Progress], None] | None,
) -> Solution:
    """η (ℓ₂) or the rows of R (ℓ_∞) at the strength of ``problem``, scaled by cost as the problem is."""
    if solver not in ("auto", "interior-point", "fista", "admm", "admm-paper", "reference"):
        raise InvalidInputError(
            f"solver must be 'auto', 'interior-point', 'fista', 'admm', 'admm-paper' or 'reference'; got {solver!r}."
        )
    n, targets = problem.n, factor.F
    if solver == "admm-paper" and row_norm == "l2":  # TTᵀ = FᵀΩF, as in the reduced form
        targets = project_out(targets, setting.anchors)[0] if len(setting.anchors) else targets
        targets = np.sqrt(weights)[:, None] * targets
    square = row_norm == "linf" or solver == "admm-paper"
    if row_norm == "linf":
        if solver == "interior-point":
            raise InvalidInputError(
                "row_norm='linf' has no interior-point solver; use 'auto', 'fista', 'admm' or 'reference'."
            )
        solver = "fista" if solver == "auto" else solver
    if problem.lam <= setting.lam_crit:
        shape = (n, len(targets)) if row_norm == "linf" else (n,)
        value = problem.scale
        return Solution(np.zeros(shape), np.zeros(n), Status.TRIVIAL, value, value, 0.0, 0, ())
    solver_tol = SOLVER_SHARE * tol
    if solver in ("auto", "interior-point"):

        def on_round(r: Round) -> None:
            if callback is not None:
                callback(Progress("round", r.number, r.gap))

        return solve_design(problem, tol=solver_tol, initial=setting.initial, start=start, callback=on_round)
    F = np.asarray(problem.F, np.float64)
    T = np.asarray(targets, np.float64).T if square else problem.T
    program = RowProgram(F, np.ascontiguousarray(T), problem.lam, row_norm)
    if solver == "reference":
        found = solve_reference(program, tol=solver_tol)
    else:
        method: Solver[RowProgram, Any] = FISTA() if solver == "fista" else ADMM()

        def on_record(r: Record) -> None:
            if callback is not None:
                callback(Progress("iteration", r.iteration, r.gap))

        found = run(method, program, tol=solver_tol, max_iter=max_iter, callback=on_record)
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


def _encode(
    problem: DesignProblem,
    setting: _Setting,
    kernel: Kernel,
    factor: Factor,
    groups: Groups,
    wishes: Wishes,
    weights: FloatArray,
    row_norm: RowNorm,
    solution: Solution,
    tol: float,
) -> Encoding:
    """Undo costs and projections, share rows among equal points, and certify for the kernel itself."""
    used = np.flatnonzero(solution.row_norms)
    norms = solution.row_norms[used]
    prices = None if setting.cost is None else setting.cost[used]
    norms = norms if prices is None else norms / prices
    members = setting.candidates[used]
    if row_norm == "l2":
        rows: DesignRows | GivenRows = DesignRows(
            factor.F, members, problem.restrict(used), solution.value[used], prices, setting.anchors
        )
        if len(setting.anchors):
            members = np.concatenate([setting.anchors, members])
            norms = np.sqrt(np.maximum(np.diagonal(rows.products(weights, np.arange(len(members)))), 0.0))
    else:
        rows = GivenRows(solution.value[used] if prices is None else solution.value[used] / prices[:, None])
    scale = 0.5 * problem.lam * (float(np.trace(problem.C)) + factor.error)
    room = (tol * scale - (solution.primal - solution.dual)) / (0.5 * problem.lam)
    excess = _kernel_excess(kernel, factor, members, rows, weights, room)
    primal = solution.primal + 0.5 * problem.lam * excess
    certificate = Certificate(primal, solution.dual, scale, factor.relative_error, factor.rank)
    by_group = np.zeros(len(groups.first))
    by_group[members] = norms
    takes = wishes.takers(groups)
    copies = np.bincount(groups.group, weights=takes, minlength=len(groups.first))
    influence = by_group[groups.group] * takes / np.maximum(copies[groups.group], 1.0)
    return Encoding(
        influence=influence,
        lam=problem.lam,
        alpha=problem.lam / setting.lam_crit,
        row_norm=row_norm,
        status=solution.status,
        n_iter=solution.iterations,
        certificate=certificate,
        kernel=kernel,
        factor=factor,
        groups=groups,
        weights=weights,
        members=members,
        member_rows=rows,
    )


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
