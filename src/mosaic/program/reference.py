"""Solve the program with CVXPY and Clarabel: slow and independent, to check the other solvers on small data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.program.loop import Record, Solution, Status
from mosaic.program.problem import RowProgram

#: Largest number of points for a generic conic solver.
MOST_REFERENCE_POINTS = 100


def solve_reference(problem: RowProgram, *, tol: float = 1e-9) -> Solution:
    """Solve with a generic conic solver; the gap is computed by our formulas from its W."""
    try:
        import cvxpy as cp
    except ImportError as error:
        raise MissingDependencyError(
            "`solver='reference'` needs CVXPY and Clarabel", "Run: pip install 'mosaic-select[reference]'."
        ) from error
    n, _ = problem.shape
    if n > MOST_REFERENCE_POINTS:
        raise InvalidInputError(
            f"`solver='reference'` is for at most {MOST_REFERENCE_POINTS} points; got {n}",
            "Use `solver='auto'`, which certifies its answer.",
        )
    W: Any = cp.Variable(problem.shape)
    rows = cp.norm(W, 2, axis=1) if problem.norm == "l2" else cp.max(cp.abs(W), axis=1)
    objective = 0.5 * problem.lam * cp.sum_squares(problem.T - problem.F.T @ W) + cp.sum(rows)
    program = cp.Problem(cp.Minimize(objective))
    with warnings.catch_warnings():
        # The gap below replaces the warning "may be inaccurate".
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=min(tol, 1e-9), tol_feas=1e-11)
    value = np.asarray(W.value)
    primal, dual = problem.bounds(value)
    gap = (primal - dual) / problem.scale
    status = Status.CONVERGED if gap <= tol else Status.STALLED
    iterations = int(program.solver_stats.num_iters)
    trace = (Record(iterations, primal, dual, gap),)
    return Solution(value, problem.row_norms(value), status, primal, dual, gap, iterations, trace)
