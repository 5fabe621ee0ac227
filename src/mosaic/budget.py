"""Memory and time: the rank of a factor within a memory budget, and the expected cost of a fit."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mosaic._arrays import subsample
from mosaic._files import readable_size
from mosaic.exceptions import MemoryBudgetError
from mosaic.factor import factorize
from mosaic.kernels import Kernel

#: Bytes that a fit may use by default.
DEFAULT_BUDGET = 2 * 2**30
#: Up to this many distinct points the factor may have full rank. For more, two limits apply: on the rank p, since the support
#: grows with it and interior point costs its cube, and on n·p², the cost of a pass over the factor.
EXACT_SIZE, LARGEST_RANK, MOST_FACTOR_WORK = 1000, 500, 4e9
#: Smallest useful number of columns of a factor.
SMALLEST_RANK = 16
#: Strength as a multiple of the critical one. From about 100 on, points that no other point expresses stand out clearly.
DEFAULT_ALPHA = 100.0
#: Largest number of distinct points that decisions are made with; of more, a random sample of this size.
DECISION_SAMPLE = 16_384
#: Largest number of similarities between targets and candidates (in single precision, 100 MB).
MOST_SIMILARITIES = 25_000_000


def affordable_rank(
    n: int, itemsize: int, n_features: int, memory_budget: float | None, max_rank: int | None = None
) -> int:
    """Columns of F, limited by n·p² and by the budget, which must hold two copies of F, X and the similarities.

    ``max_rank`` is the user's limit; only the budget overrides it.
    """
    budget = DEFAULT_BUDGET if memory_budget is None else float(memory_budget)
    # The largest rank that fits into the budget; memory grows with the rank.
    rank = bisect_right(range(1, n + 1), int(budget), key=lambda p: int(memory_needed(n, p, itemsize, n_features)))
    if rank < min(SMALLEST_RANK, n):
        needed = memory_needed(n, min(SMALLEST_RANK, n), itemsize, n_features)
        raise MemoryBudgetError(
            f"{n:,} points × {n_features:,} features need about {readable_size(needed)} at the least (the points, and a "
            f"factor of rank {SMALLEST_RANK}); the budget is {readable_size(budget)}",
            "Raise `memory_budget`, use float32, or fit a random part of the points.",
        )
    useful = useful_rank(n)
    if max_rank is not None:
        return min(n, rank, int(max_rank))
    return max(min(rank, useful), min(SMALLEST_RANK, n))


def useful_rank(n: int) -> int:
    """Columns of F for n points if memory is no limit."""
    return n if n <= EXACT_SIZE else max(min(LARGEST_RANK, int(np.sqrt(MOST_FACTOR_WORK / n))), SMALLEST_RANK)


def memory_needed(n: int, rank: int, itemsize: int, n_features: int) -> float:
    """Bytes at the peak: a copy of the points, two of the factor, a few vectors, and the largest of three items.

    These three are never in memory together: distances for the bandwidth, four matrices of the solver over its working set (about
    eight times the rank, or all points), and the similarities for choosing.
    """
    bandwidth = 3.0 * 8 * min(n, 2048) * min(n, 512)
    solver = 4.0 * 8 * min(n, max(8 * rank, 300)) ** 2
    choosing = 4.0 * min(float(n) * n, MOST_SIMILARITIES) + 16.0 * min(n, DECISION_SAMPLE) * 1024
    kept = float(n) * n_features * itemsize + 2.0 * n * rank * itemsize + 16.0 * 8 * n
    return kept + max(bandwidth, solver, choosing)


@dataclass(frozen=True)
class Estimate:
    """The expected strategy and cost of a fit.

    Attributes
    ----------
    strategy : "exact" (every point may be a pivot), "low-rank" or "sketch" (passes over the rows)
    n_points : number of distinct points; for a sketch, of rows
    rank : expected number of columns of the factor; for a sketch, of candidates at first
    memory : bytes at the peak, beyond the data that is passed in
    seconds : rough time of the fit on one core of this machine
    proof_seconds : rough time of the program that the first access to ``certificate_`` solves; 0 if the fit solves it
    """

    strategy: Literal["exact", "low-rank", "sketch"]
    n_points: int
    rank: int
    memory: float
    seconds: float
    proof_seconds: float = 0.0

    def __str__(self) -> str:
        if self.strategy == "sketch":
            what = f"{self.n_points:,} rows, in passes (sketch with {self.rank:,} candidates)"
            return f"{what}: about {readable_size(self.memory)} and {self.seconds:.2g} s"
        return (
            f"{self.n_points:,} distinct points, {self.strategy} (rank about {self.rank:,}): "
            f"about {readable_size(self.memory)} and {self.seconds:.2g} s, and {self.proof_seconds:.2g} s for the certificate"
        )


def expected_rank(kernel: Kernel, max_rank: int, tol: float, *, random_state: int = 0) -> int:
    """Rank at which the factor of a sample reaches the tolerance; if that takes half of the sample, the highest allowed rank."""
    rows = subsample(kernel.n, 1000, random_state)
    rank = factorize(kernel.take(rows), tol=0.25 * tol, max_rank=max_rank, random_state=random_state).rank
    if len(rows) == kernel.n or rank < len(rows) / 2:
        return min(rank, max_rank)
    return max_rank


def expected_work(n: int, rank: int) -> float:
    """Multiplications of the program: the factor and some twenty passes over it, or the steps of interior point on all points."""
    if rank * 4 >= n:
        return 20.0 * n * float(rank) ** 2 + 4.0 * float(n) ** 3 + 1e9
    return 50.0 * n * float(rank) ** 2 + 1e10


def work_of_choosing(n: int, n_features: int) -> float:
    """Multiplications of a fit without the program: small programs, counts of a sample, similarities and a few passes over them.

    Work on each entry of the data (checks, equal rows, their order) takes as long as 5000 multiplications in a matrix product.
    """
    sample, pairs = min(n, DECISION_SAMPLE), min(float(n) * n, float(MOST_SIMILARITIES))
    return 2e9 + sample * 1024.0 * (n_features + 300.0) + pairs * (n_features + 400.0) + 5000.0 * n * n_features
