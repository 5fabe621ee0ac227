"""Functions on arrays that all modules share: blocks of rows, samples, row numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic.arrays.threads import thread_map
from mosaic.arrays.xp import (
    on_host,
    squares_of_rows,
)
from mosaic.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
Seed: TypeAlias = int | np.random.Generator | None
Result = TypeVar("Result")
#: The largest size of an entry in double and single precision, and its inverse the smallest that the largest entry of a fit may
#: have: squares of distances, and their inverses, stay far within the range of floats.
LARGEST, LARGEST_IN_SINGLE = 1e100, 1e30
#: Rows × columns of one temporary block: 512 KB of float64, so that a few of them stay in the cache of one core.
BLOCK_ENTRIES = 1 << 16


def row_blocks(n_rows: int, n_columns: int, entries: int = BLOCK_ENTRIES, least: int = 64) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)``, each about ``entries / n_columns`` rows long, and at least ``least``."""
    step = max(least, entries // max(n_columns, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def in_blocks(
    function: Callable[[slice], Result],
    n_rows: int,
    n_columns: int,
    entries: int = BLOCK_ENTRIES,
    *,
    least: int = 64,
    serial: bool = False,
) -> list[Result]:
    """What the function returns for every slice of ``row_blocks``, in their order; in threads if there are any.

    ``alone`` calls it in this thread only: a device has cores of its own. See ``_threads.using_threads``.
    """
    blocks = row_blocks(n_rows, n_columns, entries, least)
    return [function(rows) for rows in blocks] if serial else thread_map(function, blocks)


def subsample(n: int, size: int, random_state: Seed) -> IntArray:
    """``size`` random numbers of range(n) in ascending order, or all if n ≤ ``size``."""
    return np.arange(n) if n <= size else np.sort(np.random.default_rng(random_state).choice(n, size, replace=False))


def subsample_of_weights(weights: FloatArray, size: int, random_state: Seed) -> tuple[IntArray, FloatArray]:
    """A sample of about ``size`` weighted points, in ascending order, with weights that add up to the total of all points.

    Points of weight total/size or more are always in the sample and keep their weight; the others are drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> some, weights = subsample_of_weights(np.array([1.0, 1.0, 96.0, 1.0, 1.0]), 3, 0)
    >>> bool(2 in some), len(some), float(weights.sum())
    (True, 3, 100.0)
    """
    total = float(weights.sum())
    if len(weights) <= size:
        return np.arange(len(weights)), weights
    if float(weights.max()) * size < total:  # no point is heavy
        some = subsample(len(weights), size, random_state)
        return some, rescale_weights(weights[some].astype(np.float64), size, total)
    is_heavy = weights * size >= total
    heavy, light = np.flatnonzero(is_heavy), np.flatnonzero(~is_heavy)
    drawn = light[subsample(len(light), max(size - len(heavy), 1), random_state)]
    some = np.sort(np.concatenate([heavy, drawn]))
    return some, rescale_weights(weights[some].astype(np.float64), size, total)


def rescale_weights(weights: FloatArray, size: float, total: float) -> FloatArray:
    """Weights that make a sample of about ``size`` points stand for all: light points are scaled up, heavy ones keep theirs.

    Examples
    --------
    >>> import numpy as np
    >>> rescale_weights(np.array([1.0, 96.0, 1.0]), 3, 100.0).tolist()
    [2.0, 96.0, 2.0]
    """
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


def as_indices(indices: ArrayLike, length: int, name: str) -> IntArray:
    """Distinct row numbers in ``range(length)``; a boolean mask is accepted too."""
    array = np.asarray(on_host(indices))
    if array.dtype == np.bool_:
        if array.shape != (length,):
            raise InvalidInputError(f"must have length {length} as a mask; got shape {array.shape}", parameter=name)
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        fault = f"must be a list of row numbers; got dtype {array.dtype}, shape {array.shape}"
        raise InvalidInputError(fault, parameter=name)
    array = array.astype(np.intp)
    if array.min() < 0 or array.max() >= length:
        fault = f"must lie in 0 … {length - 1}; got {int(array.min())} … {int(array.max())}"
        raise InvalidInputError(fault, parameter=name)
    distinct = len(np.unique(array))
    if distinct != len(array):
        fault = f"must not repeat a row number; {len(array)} given, {distinct} distinct"
        raise InvalidInputError(fault, parameter=name)
    return array
