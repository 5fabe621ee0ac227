"""The paper's convex program solved by one algorithm each, to one relative gap: what its figure of running times compares.

All of them solve the program of MOSAIC (paper): Gaussian similarities of the same bandwidth, and a strength of 10 times the
critical one. The picks are the rows of largest norm; nothing is pruned and no outliers are looked for.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from experiments.methods import CannotRun, Picks, Selector
from experiments.methods._selecting import points, square
from mosaic import solve
from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.codes import equal_rows
from mosaic.exceptions import MosaicError
from mosaic.kernels import RBF, resolve_gamma
from mosaic.program.factor import factorize
from mosaic.program.problem import RowProgram
from mosaic.program.solvers import ADMM, run

#: (P − D) / P(0) that everybody proves, for K itself.
TOL = 1e-3
ALPHA = 10.0
#: Steps of first-order methods; what takes more is reported with the gap that it reached.
MOST_STEPS = 10_000
#: Points that forms with an n×n unknown, the others, and a generic solver can take before memory or hours run out.
LARGEST_SQUARE, LARGEST, LARGEST_GENERIC = 5000, 10_000, 100
#: Seconds after which the generic solver stops by itself, after the step that it is in: compiled code hears no alarm.
PATIENCE = 60.0


def gamma_of(X: FloatArray) -> float:
    """1 / the median squared distance between distinct rows, as in ``algorithm="paper"``."""
    return resolve_gamma(RBF(X[equal_rows(X).first]), "median")


def program_of(X: FloatArray) -> RowProgram:
    """min_R lam/2 ‖Fᵀ − Fᵀ R‖² + Σ_j ‖r_j‖, K = F Fᵀ to rounding, lam = 10 / max_j ‖K_j‖: the unknown is n×n."""
    kernel = RBF(X, gamma_of(X))
    lam = ALPHA / float(np.linalg.norm(square(kernel), axis=0).max())
    F = np.asarray(factorize(kernel, tol=0.0).F, np.float64)
    return RowProgram(F, np.ascontiguousarray(F.T), lam)


def largest_rows(norms: FloatArray, k: int, gap: float) -> Picks:
    """The k rows of largest norm, the first of equal ones; fewer where fewer are not zero."""
    if not gap <= TOL:
        raise CannotRun(f"reached a gap of {gap:.1e}, not {TOL:g}")
    ranked = np.argsort(-norms, kind="stable")[:k]
    return Picks(ranked[norms[ranked] > 0], f"gap {gap:.1e}")


def admm(X: Any, k: int, seed: int) -> Picks:
    """The paper's Algorithm on R itself, with products by K. Equal points are not merged.

    Notes
    -----
    1. Where K = F Fᵀ has a rank below n/2, the steps are the same and products are with F, which is cheaper.
    """
    program = program_of(points(X, k, LARGEST_SQUARE))
    found = run(ADMM(), program, tol=TOL, max_iter=MOST_STEPS)
    return largest_rows(found.row_norms, k, found.gap)


def by_library(X: Any, k: int, seed: int, solver: Literal["auto", "fista"], largest: int) -> Picks:
    """``mosaic.solve``: a factor of K as fine as the gap needs, and as many tasks as it has columns."""
    X = points(X, k, largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the gap is not reached is said below
        try:
            found = solve(X, gamma=gamma_of(X), alpha=ALPHA, solver=solver, tol=TOL, max_iter=MOST_STEPS, random_state=seed)
        except MosaicError as error:
            raise CannotRun(str(error)) from error
    return largest_rows(np.asarray(found.influence), k, found.dual_gap)


def fista(X: Any, k: int, seed: int) -> Picks:
    """Accelerated proximal gradient with restarts."""
    return by_library(X, k, seed, "fista", LARGEST_SQUARE)


def working_set(X: Any, k: int, seed: int) -> Picks:
    """Interior point on a growing working set, this library's default."""
    return by_library(X, k, seed, "auto", LARGEST)


def generic(X: Any, k: int, seed: int) -> Picks:
    """The program as it stands, handed to CVXPY and Clarabel: interior point, as SeDuMi of the paper's CVX is.

    Notes
    -----
    1. Clarabel stops at a tenth of the gap, since the gap is proven here anew, from its R alone.
    2. With twice as many points it takes some thirty times as long, and ten times the memory.
    """
    X = points(X, k, LARGEST_GENERIC)
    try:
        import cvxpy as cp
    except ImportError as error:
        raise CannotRun("cvxpy is not installed") from error
    program = program_of(X)
    R: Any = cp.Variable(program.shape)
    fit = 0.5 * program.lam * cp.sum_squares(program.T - program.F.T @ R)
    task = cp.Problem(cp.Minimize(fit + cp.sum(cp.norm(R, 2, axis=1))))
    limits = {"tol_gap_abs": 0.1 * TOL * program.scale, "tol_gap_rel": 0.1 * TOL, "tol_feas": 0.1 * TOL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the gap below says how much
        try:
            task.solve(solver=cp.CLARABEL, time_limit=PATIENCE, **limits)
        except cp.error.SolverError as error:
            raise CannotRun(f"Clarabel: {error}") from error
    if task.status == cp.USER_LIMIT:
        raise CannotRun(f"took more than {PATIENCE:g} s")
    if R.value is None:
        raise CannotRun(f"Clarabel ended as {task.status}")
    value = np.asarray(R.value)
    primal, dual = program.bounds(value)
    return largest_rows(program.row_norms(value), k, (primal - dual) / program.scale)


SOLVERS = (
    Selector("paper's ADMM", "ours", admm, largest=LARGEST_SQUARE),
    Selector("FISTA", "ours", fista, largest=LARGEST_SQUARE),
    Selector("working set", "ours", working_set, largest=LARGEST),
    Selector("CVX reference", "ours", generic, largest=LARGEST_GENERIC),
)
