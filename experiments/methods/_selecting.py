"""What several selection methods share: checked points, the Gaussian kernel of the comparison, pivots, completing a set."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from experiments.methods import CannotRun
from mosaic.kernels import RBF, Kernel, resolve_gamma
from mosaic.program.factor import factorize

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Settings of methods that need a bandwidth and whose authors give no rule: σ² as a multiple of the median distance squared.
WIDTHS: tuple[dict[str, Any], ...] = tuple({"width": width} for width in (0.1, 1.0, 10.0))
#: A residual that holds less than this share of the trace is rounding; pivots chosen from it would be noise.
EXHAUSTED = 1e-10
#: Picks must not be drawn with the numbers that the data of the same seed were drawn with.
STREAM = 0x7069636B


def check(n: int, k: int, largest: int) -> None:
    """CannotRun where the method cannot take so many points or there are too few for k picks."""
    if n > largest:
        raise CannotRun(f"{n:,} points; the method takes {largest:,} at most")
    if not 1 <= k <= n:
        raise CannotRun(f"{k} picks of {n} points")


def points(X: Any, k: int, largest: int) -> FloatArray:
    """X as dense float64 rows, if the method can run."""
    check(X.shape[0], k, largest)
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def generator(seed: int) -> np.random.Generator:
    """Random numbers for the picks of a seed."""
    return np.random.default_rng((seed, STREAM))


def gaussian(X: FloatArray, width: float, seed: int) -> RBF:
    """k(x, y) = exp(−‖x − y‖² / σ²), σ² = width · (median distance)²; the median of 2000 points where there are more."""
    return RBF(X, resolve_gamma(RBF(X), "median", generator(seed)) / width)


def square(kernel: Kernel) -> FloatArray:
    """K, n × n."""
    return np.asarray(kernel.block(slice(None), np.arange(kernel.n)), np.float64)


def distances(X: FloatArray) -> FloatArray:
    """‖x_i − x_j‖₂, n × n."""
    return np.asarray(cdist(X, X))


def ranking(values: FloatArray, seed: int) -> IntArray:
    """Row numbers, the largest value first, equal ones by lot."""
    return np.lexsort((generator(seed).random(len(values)), -values))


def completed(chosen: Any, ranked: Any, k: int) -> IntArray:
    """The first k distinct numbers of ``chosen``, then of ``ranked``."""
    return np.array(list(dict.fromkeys([*map(int, chosen), *map(int, ranked)]))[:k], dtype=np.intp)


def pivots(kernel: Kernel, k: int, method: Literal["greedy", "random"], seed: int) -> IntArray:
    """The first k pivots of a Cholesky factorisation of K, equal ones by lot.

    Where the rank of K is used up before k, nothing is left of any point, and the next round starts with the points that
    have not been chosen, as if there were no others. That is ours; the methods say nothing about this case.
    """
    rng = generator(seed)
    chosen, rest = np.zeros(0, np.intp), rng.permutation(kernel.n)
    while len(chosen) < k:
        left, room = kernel.take(rest), k - len(chosen)
        if method == "greedy":
            found = _greedy_pivots(left, room)
        else:
            found = factorize(left, tol=EXHAUSTED, max_rank=room, random_state=rng).pivots
        chosen = np.concatenate([chosen, rest[found]])
        rest = np.delete(rest, found)
    return chosen


def _greedy_pivots(kernel: Kernel, k: int) -> IntArray:
    """At most k pivots, each the point of which the factor so far leaves most."""
    left, F, found = kernel.diagonal().astype(np.float64), np.zeros((k, kernel.n)), list[int]()
    trace = float(left.sum())
    while len(found) < k and float(left.sum()) > EXHAUSTED * trace:
        new, rank = int(left.argmax()), len(found)
        F[rank] = (kernel.block(slice(None), np.array([new]))[:, 0] - F[:rank].T @ F[:rank, new]) / np.sqrt(left[new])
        left = np.maximum(left - F[rank] ** 2, 0.0)
        left[new] = 0.0
        found.append(new)
    return np.array(found, np.intp)
