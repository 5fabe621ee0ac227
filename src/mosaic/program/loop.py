"""The loop that runs every algorithm, its result, and the ways it can end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.program.problem import Bounds

P_contra = TypeVar("P_contra", contravariant=True)
S = TypeVar("S")

#: Primal values that differ by less than this share of P(0) differ by rounding only.
ROUNDING_OF_VALUES = 1e-13


class Status(Enum):
    """How a solver ended. The value says so and what to do, with parameters between backticks, as in an error."""

    CONVERGED = "The gap is within the tolerance."
    TRIVIAL = "Nothing is worth selecting at this strength: raise `lam` (or `alpha` above 1)."
    MAX_ITER = "The iterations ran out before the gap closed: raise `max_iter`, loosen `tol`, or use `solver='auto'`."
    STALLED = "The gap stopped shrinking at the limit of the arithmetic: loosen `tol`, lower `lam`, or pass float64 data."
    KERNEL_ERROR = (
        "The factor of the kernel is coarser than the tolerance: raise `max_rank` or `memory_budget`, "
        "pass float64 data, or loosen `tol`."
    )

    @property
    def advice(self) -> str:
        """What happened and what to change, as a sentence with parameters between backticks."""
        return self.value


class Record(NamedTuple):
    """One line of a solver's trace."""

    iteration: int
    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class Solution:
    """The result of a solver: the optimum lies between ``primal`` and ``dual``, the best values found."""

    value: FloatArray  # η (n,) from solvers of the design form, W (n×q) from solvers of the row form
    row_norms: FloatArray  # ‖w_j‖ at that value
    status: Status
    primal: float
    dual: float
    gap: float  # (primal − dual) / P(0)
    iterations: int
    trace: tuple[Record, ...]  # of every check of the gap


class Solver(Protocol[P_contra, S]):
    """An algorithm: how to start, near ``start`` if it is given, how to step, which bounds a state gives, and its unknown and
    ‖w_j‖. The gap is checked at every ``check_every``-th step; a run has stalled after ``patience`` checks without progress.
    """

    @property
    def check_every(self) -> int: ...

    @property
    def patience(self) -> int: ...

    def init(self, problem: P_contra, start: FloatArray | None) -> S: ...

    def step(self, problem: P_contra, state: S) -> S: ...

    def bounds(self, problem: P_contra, state: S) -> Bounds: ...

    def result(self, problem: P_contra, state: S) -> tuple[FloatArray, FloatArray]: ...


def run(
    solver: Solver[Any, S], problem: Any, *, tol: float, max_iter: int, start: FloatArray | None = None, target: float = -np.inf
) -> Solution:
    """Step until the relative gap is within ``tol``, the iterations run out or the gap stalls.

    A primal value at or below ``target`` also ends the run, and so does a lower bound above it, which proves the target
    out of reach. The best primal value and the best bound may come from different states.
    """
    scale, state = problem.scale, solver.init(problem, start)
    best, primal, dual = None, np.inf, -np.inf
    trace: list[Record] = []
    smallest, since, iteration = np.inf, 0, 0
    while True:
        if iteration % solver.check_every == 0 or iteration == max_iter:
            bounds = solver.bounds(problem, state)
            # Near the optimum primal values differ only by rounding; the later state then has the better dual point.
            if bounds.primal < primal + ROUNDING_OF_VALUES * scale:
                best, primal = state, bounds.primal
            dual = max(dual, bounds.dual)
            gap = (primal - dual) / scale
            trace.append(Record(iteration, primal, dual, gap))
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
    return Solution(*solver.result(problem, best), status, primal, dual, trace[-1].gap, iteration, tuple(trace))
