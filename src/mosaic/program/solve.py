"""Solve MOSAIC's program from data to a certified encoding in one call.

``solve`` checks its input, makes the kernel and warns of a gap above the tolerance. ``encode`` factors the kernel, poses, solves
and certifies the problem (``certify``), and refines the factor if the gap requires it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray, Seed
from mosaic.arrays.codes import EqualRows, equal_rows
from mosaic.arrays.threads import using_threads
from mosaic.arrays.xp import on_host, work_on_devices
from mosaic.door import as_points, as_weights
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from mosaic.kernels import Gamma, Kernel, make_kernel, where_compared
from mosaic.parameters import (
    Diffusion,
    Polynomial,
    as_bytes,
    check_kernel,
    check_seed,
    check_strength,
    name_of,
    one_of,
    real_number,
    whole_number,
)
from mosaic.program import SolverName
from mosaic.program.certify import CertifiedRun, PosedProblem
from mosaic.program.encoding import Encoding
from mosaic.program.factor import factorize
from mosaic.program.loop import Status
from mosaic.program.problem import MOST_SOLVED_WHOLE, RowNorm

#: Default strength of ``solve``, as a multiple of the critical strength.
SOLVE_ALPHA = 10.0
#: Largest relative trace error of the factor, as a share of the tolerance.
KERNEL_SHARE = 0.25
#: Largest memory, in bytes, of forms with an n×n unknown if no budget is given.
LARGEST_SQUARE_BYTES = 8e9
#: The largest value of the program, and the largest weight, that is computed with, and the inverse of the smallest.
LARGEST_VALUE, LARGEST_WEIGHT = 2.0**500, 2.0**200


def solve(
    X: Any,
    *,
    kernel: str | Polynomial | Diffusion | Callable[[Any, Any], Any] = "rbf",
    gamma: Gamma = "scale",
    alpha: float | None = None,
    lam: float | None = None,
    row_norm: RowNorm = "l2",
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    max_rank: int | None = None,
    memory_budget: float | str | None = None,
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
    solver : "auto" (interior point with a growing working set; FISTA for "linf"), "interior-point", "fista", "admm",
        "admm-paper" (the paper's n×n form)
    tol : relative gap to certify, for the kernel as given and not only for its factor
    max_iter : largest number of steps of first-order solvers
    max_rank, memory_budget : limits of the factor; a budget is a number of bytes, or text such as "2GiB"
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
    check_kernel(kernel)
    one_of("solver", solver, get_args(SolverName))
    one_of("row_norm", row_norm, get_args(RowNorm))
    if row_norm == "linf" and sample_weight is not None:
        raise InvalidInputError("`row_norm='linf'` takes no `sample_weight`", "Use `row_norm='l2'`.")
    if row_norm == "linf" and solver == "interior-point":
        fault = "`row_norm='linf'` has no interior-point solver"
        raise InvalidInputError(fault, "Use `solver='auto'`, 'fista' or 'admm'.")
    X = as_points(where_compared(X, kernel), "K" if kernel == "precomputed" else "X")
    n = X.shape[0]
    weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
    if not 1.0 / LARGEST_WEIGHT <= float(weights.max()) <= LARGEST_WEIGHT:
        fault = f"must be at most {LARGEST_WEIGHT:.0e}, and one of them more than 0; the largest is {weights.max():.3g}"
        raise InvalidInputError(fault, "Divide all by the largest; `alpha` does not depend on it.", parameter="sample_weight")
    # The neighbour graph of a diffusion kernel has a node for each copy of a point, and copies need not have equal neighbours.
    groups = EqualRows.trivial(n) if row_norm == "linf" or name_of(kernel) == "diffusion" else equal_rows(X)
    # Bandwidth rules count all points, copies included.
    similarity = make_kernel(X, kernel, gamma=gamma, random_state=random_state)
    with work_on_devices(), using_threads():
        encoding = encode(
            similarity if groups.is_trivial else similarity.take(groups.first),
            alpha=alpha,
            lam=lam,
            row_norm=row_norm,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            max_rank=max_rank,
            memory_budget=as_bytes(memory_budget),
            weights=groups.sums(weights),
            groups=groups,
            random_state=random_state,
        )
    if encoding.dual_gap > tol:
        warnings.warn(
            ConvergenceWarning(
                f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {encoding.status.advice}"
            ),
            stacklevel=2,
        )
    return encoding


def encode(
    kernel: Kernel,
    *,
    alpha: float | None = None,
    lam: float | Callable[[PosedProblem], float] | None = None,
    row_norm: RowNorm = "l2",
    solver: SolverName = "auto",
    tol: float = 1e-4,
    max_iter: int = 10_000,
    max_rank: int | None = None,
    memory_budget: float | None = None,
    weights: FloatArray | None = None,
    groups: EqualRows | None = None,
    thin: bool = True,
    random_state: Seed = 0,
) -> Encoding:
    """``solve`` for a kernel between distinct points and their weights, without a warning if the gap is above ``tol``.

    ``groups`` says which rows are equal. ``lam`` may be computed from the posed problem. Without ``thin``, points that the
    certificate does not need keep their rows: faster, and ``bounds.bound_of`` is tighter.
    """
    n = kernel.n
    groups = EqualRows.trivial(n) if groups is None else groups
    weights = np.ones(n) if weights is None else weights
    if row_norm == "linf" or solver == "admm-paper":
        _check_square_budget(n, memory_budget)
    trace_tol = KERNEL_SHARE * tol
    while True:
        factor = factorize(
            kernel,
            tol=trace_tol,
            max_rank=max_rank,
            memory_budget=as_bytes(memory_budget),
            weights=weights,
            all_matter=True,
            random_state=random_state,
        )
        if n <= MOST_SOLVED_WHOLE or solver not in ("auto", "interior-point"):
            factor = replace(factor, F=on_host(factor.F))
        posed = PosedProblem.of(factor, weights, row_norm)
        if lam is None:
            strength = float(SOLVE_ALPHA if alpha is None else alpha) * posed.lam_crit
        else:
            strength = float(lam(posed) if callable(lam) else lam)
        if not 1.0 / LARGEST_VALUE <= strength * factor.trace <= LARGEST_VALUE:
            raise InvalidInputError(
                f"gives the program values near {strength * factor.trace:.1e}, whose squares leave the range of floats",
                f"Near {posed.lam_crit:.1e} the first points are selected.",
                parameter="alpha" if lam is None else "lam",
                value=alpha if lam is None else lam,
            )
        attempt = CertifiedRun(kernel, factor, groups, weights, row_norm, strength, solver, tol, max_iter, thin)
        solution, encoding = attempt.solve(posed)
        # If the error of the factor takes more than its share of the gap, a finer factor is needed.
        is_fine = trace_tol < 1e-3 * tol
        if encoding.dual_gap <= tol or attempt.has_finest_factor or solution.gap > tol or is_fine:
            break
        trace_tol = 0.25 * trace_tol
    if thin and encoding.certificate.primal - solution.primal > tol * encoding.certificate.scale:
        # Rows of points that the factor approximates badly may raise the value. Rows of pivots cannot: the factor is exact there.
        encoding = attempt.better(encoding, posed.restrict(np.sort(factor.pivots)))
    if encoding.certificate.at_most > (1.0 + tol) * encoding.certificate.scale:
        encoding = attempt.better(encoding, posed.restrict(np.zeros(0, np.intp)))
    if encoding.dual_gap > tol and encoding.status in (Status.CONVERGED, Status.TRIVIAL):
        encoding = replace(encoding, status=Status.KERNEL_ERROR)
    return encoding


def _check_square_budget(n: int, memory_budget: float | None) -> None:
    """Refuse an unknown R that is too large: the solvers keep about six matrices of its size."""
    limit = LARGEST_SQUARE_BYTES if memory_budget is None else memory_budget
    needed = 6.0 * 8 * n * n
    if needed > limit:
        raise MemoryBudgetError(
            f"this form has an unknown of {n:,} × {n:,} and needs about {needed:,.0f} bytes; the limit is {limit:,.0f}",
            "Use `row_norm='l2'` with `solver='auto'`.",
        )
