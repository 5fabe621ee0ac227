"""Settings that nobody needs to guess: bandwidth, strength, rank, and what a fit will cost.

Everything here is ours. The leads: a representative of k should resemble about n/k points, so the bandwidth is stated as
an effective count; a kernel whose rank the machine cannot carry proves nothing, so it is made as wide as the rank demands.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from mosaic._arrays import subsample
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.factor import factorize
from mosaic.kernels import RBF, EffectiveCount, Kernel, Laplacian, resolve_gamma

#: Bytes that a fit may use when nothing else is said.
DEFAULT_BUDGET = 2 * 2**30
#: Up to this many distinct points the factor may have full rank. For more, p is limited, since the support grows with it and
#: interior point costs its cube, and so is n·p², which every pass over the factor costs.
EXACT_SIZE, LARGEST_RANK, MOST_WORK = 1000, 500, 4e9
#: A factor with fewer columns is of no use.
SMALLEST_RANK = 16
#: A representative resembles at least this many points, however many are wanted: fewer say little about outliers.
SMALLEST_COUNT = 20.0
#: Without a wish for k, a point resembles this share of all.
DEFAULT_SHARE = 1 / 20
#: Strength as a multiple of the critical one. From about 100 on, points that nobody else expresses are clearly apart.
DEFAULT_ALPHA = 100.0
#: What a factor of limited rank may miss of the kernel before the kernel is made wider.
KERNEL_MISS = 0.01
#: Numbers in the similarities between targets and candidates (float64: 200 MB).
MOST_SIMILARITIES = 25_000_000


def neighbours_wanted(total: float, k: float | None) -> float:
    """m0 = n/k, the share of one representative, but at least 20 and at most half of the points."""
    share = total * DEFAULT_SHARE if k is None else total / k
    return float(max(min(max(share, SMALLEST_COUNT), 0.5 * total), 1.0 + 1e-6))


def affordable_rank(
    n: int, itemsize: int, n_features: int, memory_budget: float | None, max_rank: int | None = None
) -> int:
    """Columns of F for which n·p² stays within reason and two copies of F, X and the similarities within the budget.

    ``max_rank`` is the user's own limit, which only the budget overrules.
    """
    if isinstance(memory_budget, bool) or not isinstance(memory_budget, Real | None):
        raise InvalidInputError(f"memory_budget must be a number of bytes or None; got {memory_budget!r}.")
    budget = DEFAULT_BUDGET if memory_budget is None else float(memory_budget)
    # The largest rank whose memory the budget holds; memory grows with the rank.
    rank = bisect_right(range(1, n + 1), int(budget), key=lambda p: int(memory_needed(n, p, itemsize, n_features)))
    if rank < min(SMALLEST_RANK, n):
        needed = memory_needed(n, min(SMALLEST_RANK, n), itemsize, n_features)
        raise MemoryBudgetError(
            f"{n:,} points × {n_features:,} features need about {_mebibytes(needed)} MiB at the least (the points, and a "
            f"factor of rank {SMALLEST_RANK}); the budget is {_mebibytes(budget)} MiB. "
            "Raise memory_budget, use float32, or fit a random part of the points."
        )
    useful = useful_rank(n)
    if max_rank is not None:
        if isinstance(max_rank, bool) or not isinstance(max_rank, Integral) or max_rank < 1:
            raise InvalidInputError(f"max_rank must be a whole number >= 1 or None; got {max_rank!r}.")
        return min(n, rank, int(max_rank))
    return max(min(rank, useful), min(SMALLEST_RANK, n))


def useful_rank(n: int) -> int:
    """Columns of F that n points are given, memory aside."""
    return n if n <= EXACT_SIZE else max(min(LARGEST_RANK, int(np.sqrt(MOST_WORK / n))), SMALLEST_RANK)


def memory_needed(n: int, rank: int, itemsize: int, n_features: int) -> float:
    """Bytes at the peak: a copy of the points, two of the factor, a few vectors, and the largest of three guests.

    These are never there together: distances for the bandwidth, four matrices of the solver over its working set (about
    eight times the rank, or all points), and the similarities for choosing.
    """
    bandwidth = 3.0 * 8 * (n * min(n, 2048) if n <= 2048 else min(n, 8192) * 512)
    solver = 4.0 * 8 * min(n, max(8 * rank, 300)) ** 2
    choosing = 8.0 * min(float(n) * n, MOST_SIMILARITIES)
    kept = float(n) * n_features * itemsize + 2.0 * n * rank * itemsize + 16.0 * 8 * n
    return kept + max(bandwidth, solver, choosing)


def _mebibytes(size: float) -> str:
    """Bytes as a number of MiB: whole ones, or two digits of few."""
    return f"{size / 2**20:,.0f}" if size >= 10 * 2**20 else f"{size / 2**20:.2g}"


def fit_bandwidth(kernel: RBF | Laplacian, m0: float, max_rank: int, *, random_state: int = 0) -> float:
    """Gamma at which a typical point resembles m0 others, or, if that needs a higher rank, the largest that the rank carries."""
    if m0 >= kernel.n:
        return resolve_gamma(kernel, "median", random_state)
    gamma = resolve_gamma(kernel, EffectiveCount(m0), random_state)
    if max_rank >= kernel.n:
        return gamma
    rows = subsample(kernel.n, 4 * max_rank, random_state)
    points = kernel.X[rows]

    def miss(log_gamma: float) -> float:
        narrowed = type(kernel)(points, float(np.exp(log_gamma)))
        error = factorize(narrowed, tol=0.1 * KERNEL_MISS, max_rank=max_rank, random_state=random_state).relative_error
        return float(np.log(max(error, 1e-12) / KERNEL_MISS))

    high = float(np.log(gamma))
    if miss(high) <= 0:
        return gamma
    low = high
    for _ in range(20):
        low -= 1.0
        if miss(low) <= 0:
            return float(np.exp(brentq(miss, low, low + 1.0, xtol=0.1)))
    return float(np.exp(low))


def typical_count(kernel: Kernel, *, random_state: int = 0) -> float:
    """The median over points j of Σ_i (k_ij / k_jj)², what a typical point resembles; from a sample of many.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = RBF(np.random.default_rng(0).normal(size=(200, 2)))
    >>> typical_count(RBF(kernel.X, resolve_gamma(kernel, EffectiveCount(12.0)))).__round__(6)
    12.0
    """
    rng = np.random.default_rng(random_state)
    others = subsample(kernel.n, 8192, rng)
    centres = subsample(len(others), 2048 if kernel.n <= 2048 else 512, rng)
    K = kernel.block(others, others[centres]) / kernel.diagonal()[others[centres]]
    K[centres, np.arange(len(centres))] = 0.0
    scale = (kernel.n - 1) / max(len(others) - 1, 1)
    return float(np.median(1.0 + scale * (K**2).sum(axis=0)))


@dataclass(frozen=True)
class Estimate:
    """What a fit will do and cost, told beforehand.

    Attributes
    ----------
    strategy : "exact" (every point may be a pivot), "low-rank" or "sketch" (passes over the rows)
    n_points : distinct points; of a sketch, rows
    rank : columns of the factor, expected; of a sketch, candidates at first
    memory : bytes at the peak, beyond the data that is passed in
    seconds : rough, on one core of this machine
    """

    strategy: Literal["exact", "low-rank", "sketch"]
    n_points: int
    rank: int
    memory: float
    seconds: float

    def __str__(self) -> str:
        if self.strategy == "sketch":
            what = f"{self.n_points:,} rows, in passes (sketch with {self.rank:,} candidates)"
            return f"{what}: about {_mebibytes(self.memory)} MiB and {self.seconds:.2g} s"
        return (
            f"{self.n_points:,} distinct points, {self.strategy} (rank about {self.rank:,}): "
            f"about {_mebibytes(self.memory)} MiB and {self.seconds:.2g} s"
        )


def expected_rank(kernel: Kernel, max_rank: int, tol: float, *, random_state: int = 0) -> int:
    """Rank at which a sample's factor has reached the tolerance; where the sample is exhausted, the highest allowed."""
    rows = subsample(kernel.n, 1000, random_state)
    rank = factorize(kernel.take(rows), tol=0.25 * tol, max_rank=max_rank, random_state=random_state).rank
    if len(rows) == kernel.n or rank < len(rows) / 2:
        return min(rank, max_rank)
    return max_rank


def expected_work(n: int, rank: int) -> float:
    """Multiplications of a fit: the factor and some twenty passes over it, or the steps of interior point on all points."""
    if rank * 4 >= n:
        return 20.0 * n * float(rank) ** 2 + 4.0 * float(n) ** 3 + 1e9
    return 50.0 * n * float(rank) ** 2 + 1e10
