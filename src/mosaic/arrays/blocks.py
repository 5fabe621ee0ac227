"""Blocks of rows, samples and small conversions that all modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays.threads import thread_map
from mosaic.arrays.xp import DEVICE_BLOCK_ENTRIES, is_on_device, on_host, squares_of_rows

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Seed: TypeAlias = int | np.random.Generator | None
Result = TypeVar("Result")
#: The largest size of an entry in double and single precision, and its inverse the smallest that the largest entry of a fit may
#: have: squares of distances, and their inverses, stay far within the range of floats.
LARGEST, LARGEST_IN_SINGLE = 1e100, 1e30
#: Rows × columns of one temporary block: 512 KB of float64, so that a few of them stay in the cache of one core.
BLOCK_ENTRIES = 1 << 16


def row_blocks(n_rows: int, n_columns: int, entries: int = BLOCK_ENTRIES, least: int = 64) -> list[slice]:
    """Slices that cover ``range(n_rows)``, each about ``entries / n_columns`` rows long, and at least ``least``."""
    step = max(least, entries // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def in_blocks(
    function: Callable[[slice], Result],
    n_rows: int,
    n_columns: int,
    entries: int = BLOCK_ENTRIES,
    *,
    least: int = 64,
    on: Any = None,
) -> list[Result]:
    """What the function returns for every slice of ``row_blocks``, in their order; in threads if there are any.

    If the array ``on`` is on a device, the blocks are larger and in this thread: a device has cores of its own.
    """
    if on is None or not is_on_device(on):
        return thread_map(function, row_blocks(n_rows, n_columns, entries, least))
    return [function(rows) for rows in row_blocks(n_rows, max(n_columns, on.shape[1]), DEVICE_BLOCK_ENTRIES, least)]


def subsample(n: int, size: int, random_state: Seed) -> IntArray:
    """``size`` random numbers of range(n) in ascending order, or all if n ≤ ``size``."""
    return np.arange(n) if n <= size else np.sort(np.random.default_rng(random_state).choice(n, size, replace=False))


def subsample_of_weights(weights: FloatArray, size: int, random_state: Seed) -> tuple[IntArray, FloatArray]:
    """A sample of about ``size`` weighted points, in ascending order, with weights that add up to the total of all points.

    Points of weight total/size or more are always in the sample and keep their weight; the others are drawn at random.
    """
    total = float(weights.sum())
    if len(weights) <= size:
        return np.arange(len(weights)), weights
    is_heavy = weights * size >= total
    heavy, light = np.flatnonzero(is_heavy), np.flatnonzero(~is_heavy)
    drawn = light[subsample(len(light), max(size - len(heavy), 1), random_state)]
    some = np.sort(np.concatenate([heavy, drawn]))
    return some, rescale_weights(weights[some].astype(np.float64), size, total)


def rescale_weights(weights: FloatArray, size: float, total: float) -> FloatArray:
    """Weights that make a sample of about ``size`` points stand for all: light points are scaled up, heavy ones keep theirs."""
    rare = weights * size < total
    if not rare.any():
        return weights
    frequent = float(weights[~rare].sum())
    return np.where(rare, weights * ((total - frequent) / float(weights[rare].sum())), weights)


def row_norms_squared(A: Any) -> FloatArray:
    """‖a_i‖₂² for every row, as a NumPy array."""
    return on_host(squares_of_rows(A))


def in_double(A: Any) -> FloatArray:
    """A dense or sparse matrix as a dense float64 array."""
    return np.asarray(A.toarray() if sp.issparse(A) else A, np.float64)
