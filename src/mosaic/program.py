"""From data to a certified encoding in one call: the front door of the exact layer.

``solve`` checks its input, makes the kernel and warns of a gap; ``encode`` factors the kernel, poses the problem
(``mosaic.posing``) and has it solved and certified (``mosaic.certifying``), with a finer factor where that is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import EqualRows, Seed, as_points, equal_rows
from mosaic._checks import check_seed, check_strength, one_of, real_number, whole_number
from mosaic.certifying import CertifiedRun, Progress
from mosaic.encoding import Encoding
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from mosaic.factor import factorize
from mosaic.kernels import Gamma, Kernel, make_kernel
from mosaic.posing import Posed, Roles
from mosaic.problem import RowNorm
from mosaic.solvers import SolverName
from mosaic.solvers.base import Status

__all__ = ["Progress", "encode", "solve"]

#: Multiple of the critical strength that ``solve`` uses where no strength is given.
SOLVE_ALPHA = 10.0
#: Share of the tolerance that the factor may miss of the kernel.
KERNEL_SHARE = 0.25
#: Without a budget, forms with an n×n unknown are refused above this many bytes.
LARGEST_SQUARE_BYTES = 8e9


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
    kernel : "rbf" or another of ``mosaic.kernels.KERNELS``, or a function f(A, B) of two sets of points
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
    must_include : points that are representatives whatever else is chosen (row numbers or mask), as in ``MOSAIC.fit``; they need
        not be candidates, their rows have no price, and the others are chosen to complement them
    random_state : seed; same seed, same answer
    callback : called with a Progress now and then

    Returns
    -------
    Encoding

    Notes
    -----
    1. The paper leaves lam open; the multiple alpha of the critical strength is the usual scale-free way to state it.
    2. Equal points are solved for once, with their number as weight, and share their row evenly; if some of them must be
       included, only these share it.
    3. Must-include points are always in ``support``, even if their row is zero because they express no target. ``MOSAIC.fit``
       solves its program without constraints and applies ``must_include`` when it chooses; it refuses points without weight and
       two equal points, which here may be named.

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
    real_number("tol", tol, above=0)
    whole_number("max_iter", max_iter)
    if max_rank is not None:
        whole_number("max_rank", max_rank, remedy="None sets no limit.")
    if memory_budget is not None:
        real_number("memory_budget", memory_budget, above=0, remedy="It is a number of bytes; None sets no limit.")
    check_strength(alpha, lam)
    check_seed(random_state)
    one_of("solver", solver, get_args(SolverName))
    if one_of("row_norm", row_norm, get_args(RowNorm)) == "linf":
        _check_linf(solver, sample_weight, must_include)
    X = as_points(X, "K" if kernel == "precomputed" else "X")
    roles = Roles.read(X.shape[0], sample_weight, cost, candidates, must_include)
    # The neighbour graph of a diffusion kernel has a node for each copy of a point, and copies need not have equal neighbours.
    groups = EqualRows.trivial(X.shape[0]) if row_norm == "linf" or kernel == "diffusion" else equal_rows(X)
    similarity = make_kernel(
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        n_neighbors=n_neighbors,
        time=time,
        random_state=random_state,
    )  # a bandwidth rule counts all points, copies included
    encoding = encode(
        similarity if groups.is_trivial else similarity.take(groups.first),
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
    groups: EqualRows | None = None,
    warm: Encoding | None = None,
    random_state: Seed = 0,
    callback: Callable[[Progress], None] | None = None,
) -> Encoding:
    """``solve`` for a kernel between distinct points, with checked roles, and silent about a gap above ``tol``.

    ``groups`` says which points are equal (``roles`` then speak of all of them). ``warm`` is an encoding for the same
    kernel, whose factor is used again and whose influence the solver starts from.
    """
    groups = EqualRows.trivial(kernel.n) if groups is None else groups
    roles = Roles.read(groups.n) if roles is None else roles
    if row_norm == "linf" or solver == "admm-paper":
        _check_square_budget(len(roles.allowed), kernel.n, memory_budget)
    of_points = roles.on(groups)
    trace_tol = KERNEL_SHARE * tol
    factor = None if warm is None else warm.factor
    while True:
        if factor is None:
            factor = factorize(
                kernel,
                tol=trace_tol,
                max_rank=max_rank,
                memory_budget=memory_budget,
                weights=of_points.weights,
                candidates=of_points.allowed,
                first=of_points.anchors,
                random_state=random_state,
                callback=None if callback is None else lambda rank, error: callback(Progress("factor", rank, error)),
            )
        posed = Posed.of(factor, of_points, row_norm)
        strength = float(lam) if lam is not None else float(SOLVE_ALPHA if alpha is None else alpha) * posed.lam_crit
        attempt = CertifiedRun(
            kernel, factor, groups, roles, of_points.weights, row_norm, strength, solver, tol, max_iter, callback
        )
        start = None if warm is None else warm.influence[groups.first][posed.candidates]
        solution, encoding = attempt.solve(posed, start)
        # The error of the factor may take more than its share of the gap; then a finer factor is needed.
        left = float(np.trace(posed.problem.C)) / factor.trace  # by must-include points
        is_fine = trace_tol < 1e-3 * tol * left
        if encoding.dual_gap <= tol or attempt.has_finest_factor or solution.gap > tol or is_fine:
            break
        trace_tol = min(0.25 * trace_tol, KERNEL_SHARE * tol * left)
        factor = None
    if encoding.certificate.primal - solution.primal > tol * encoding.certificate.scale:
        # Rows of points that the factor renders badly may do harm. Those of pivots cannot: the factor is exact there.
        encoding = attempt.better(encoding, posed.restrict(np.isin(posed.candidates, factor.pivots)))
    if encoding.certificate.at_most > (1.0 + tol) * encoding.certificate.scale:
        encoding = attempt.better(encoding, posed.restrict(np.zeros(len(posed.candidates), dtype=bool)))
    if encoding.dual_gap > tol and encoding.status in (Status.CONVERGED, Status.TRIVIAL):
        encoding = replace(encoding, status=Status.KERNEL_ERROR)
    return encoding


def _check_linf(solver: SolverName, sample_weight: ArrayLike | None, must_include: ArrayLike | None) -> None:
    """Refuse what the program with ℓ_∞ norms does not have."""
    if sample_weight is not None or must_include is not None:
        raise InvalidInputError(
            "`row_norm='linf'` takes no `sample_weight` and no `must_include`", "Use `row_norm='l2'`."
        )
    if solver == "interior-point":
        raise InvalidInputError(
            "`row_norm='linf'` has no interior-point solver", "Use `solver='auto'`, 'fista', 'admm' or 'reference'."
        )


def _check_square_budget(n: int, targets: int, memory_budget: float | None) -> None:
    """Forms whose unknown is R itself keep about six matrices of its size."""
    limit = LARGEST_SQUARE_BYTES if memory_budget is None else memory_budget
    needed = 6.0 * 8 * n * targets
    if needed > limit:
        raise MemoryBudgetError(
            f"this form has an unknown of {n:,} × {targets:,} and needs about {needed:,.0f} bytes; the limit is {limit:,.0f}",
            "Use `row_norm='l2'` with `solver='auto'`.",
        )
