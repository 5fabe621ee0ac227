"""Blocks of rows, samples of them, their lengths, and what is done to rows before they are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays import xp
from mosaic.arrays.threads import thread_map
from mosaic.arrays.xp import (
    DEVICE_BLOCK_ENTRIES,
    Matrix,
    asarray_like,
    is_on_device,
    numpy_dtype,
    on_host,
    squares_of_rows,
    with_column,
)
from mosaic.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Seed: TypeAlias = int | np.random.Generator | None
Result = TypeVar("Result")
NO_ROWS = np.zeros(0, np.intp)
#: The largest size of an entry in double and single precision, and its inverse the smallest that the largest entry of a fit may
#: have: squares of distances, and their inverses, stay far within the range of floats.
LARGEST = 1e100
LARGEST_IN_SINGLE = 1e30
#: Rows × columns of one temporary block: 512 KB of float64, so that a few of them stay in the cache of one core.
BLOCK_ENTRIES = 1 << 16
#: The same for blocks of rows that are multiplied with a matrix.
PRODUCT_ENTRIES = 1 << 18


def row_blocks(
    n_rows: int, n_columns: int, entries: int = BLOCK_ENTRIES, least: int = 64
) -> list[slice]:
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
    """What the function returns for every slice of ``row_blocks``, in their order; in threads if there are any, but in larger
    blocks in this thread if the array ``on`` is on a device, which has cores of its own.
    """
    if not is_on_device(on):
        return thread_map(function, row_blocks(n_rows, n_columns, entries, least))
    widest = max(n_columns, on.shape[1])
    return list(map(function, row_blocks(n_rows, widest, DEVICE_BLOCK_ENTRIES, least)))


def lowest_first(mask: BoolArray, values: FloatArray) -> IntArray:
    """The places of a mask, those of the lowest values first; of equal ones the first."""
    places = np.flatnonzero(mask)
    return places[np.argsort(values[places], kind="stable")]


def subsample(n: int, size: int, random_state: Seed) -> IntArray:
    """``size`` random numbers of range(n) in ascending order, or all if n ≤ ``size``."""
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, size, replace=False))


def subsample_of_weights(
    weights: FloatArray, size: int, random_state: Seed
) -> tuple[IntArray, FloatArray]:
    """A sample of about ``size`` weighted points, in ascending order, with weights that add up to the total of all points. Those
    of weight total/size or more are always in the sample and keep their weight; the others are drawn at random.
    """
    if len(weights) <= size:
        return np.arange(len(weights)), weights
    total = float(weights.sum())
    is_heavy = weights * size >= total
    heavy = np.flatnonzero(is_heavy)
    light = np.flatnonzero(~is_heavy)
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


def row_norms_squared(A: Matrix) -> FloatArray:
    return on_host(squares_of_rows(A))


def in_double(A: Matrix) -> FloatArray:
    return np.asarray(A.toarray() if sp.issparse(A) else A, np.float64)


def largest_size(X: Matrix) -> float:
    """The largest size of an entry that may come in, in the precision of X."""
    return LARGEST_IN_SINGLE if numpy_dtype(X) == np.float32 else LARGEST


def squared_lengths(X: Matrix) -> Any:
    """‖x_i‖₂² in float64 for every row, dense or CSR, on the device of X."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    return squares_of_rows(xp.as_double(X) if is_on_device(X) else X.astype(np.float64, copy=False))


def row_lengths(X: Matrix) -> FloatArray:
    """‖x_i‖₂ in float64; 0 for rows that are too short to have a direction."""
    squares = in_blocks(
        lambda rows: on_host(squared_lengths(xp.rows_of(X, rows))), X.shape[0], X.shape[1], on=X
    )
    lengths = np.sqrt(np.concatenate(squares))
    return np.where(lengths * largest_size(X) >= 1.0, lengths, 0.0)


def scaled_rows(X: Matrix, factors: FloatArray) -> Any:
    """Each row times its factor, in the precision of X."""
    values = asarray_like(X, factors)
    return sp.csr_array(sp.diags_array(values) @ X) if sp.issparse(X) else X * values[:, None]


@dataclass(frozen=True)
class Prepare:
    """Prepare rows for comparison: divide columns by ``scale``, then rows by their length if ``directions``. A row of zeros, such
    as an empty text, has no direction: one more column makes it orthogonal to all others.
    """

    scale: FloatArray | None = None
    directions: bool = False

    def __call__(self, X: Matrix) -> Any:
        if self.scale is not None:
            scale = np.maximum(self.scale, np.finfo(numpy_dtype(X)).smallest_subnormal)
            if sp.issparse(X):
                # The same quotients as in the dense case, so that known points are recognised.
                X = X.copy()
                X.data = X.data / scale.astype(X.dtype)[X.indices]
            else:
                X = X / asarray_like(X, scale)
        if not self.directions:
            return X
        lengths = row_lengths(X)
        is_zero = lengths == 0
        return with_column(scaled_rows(X, 1.0 / np.where(is_zero, 1.0, lengths)), is_zero)

    def undone(self, values: FloatArray) -> FloatArray:
        """Values of prepared rows as the data has them."""
        return values if self.scale is None else values * self.scale


def check_numbers(dtype: np.dtype[Any], name: str = "X") -> None:
    if dtype.kind not in "fiub":
        remedy = "Convert or drop the columns that are not numeric."
        raise InvalidInputError(
            f"must hold real numbers; got dtype {dtype}", remedy, parameter=name
        )


def check_shape(shape: tuple[int, ...], name: str = "X") -> None:
    if len(shape) != 2:
        fault = f"must have two dimensions (points × features); got shape {shape}"
        raise InvalidInputError(
            fault, f"For points with one feature use {name}.reshape(-1, 1).", parameter=name
        )
    if 0 in shape:
        raise InvalidInputError(
            f"must have at least one point and one feature; got shape {shape}", parameter=name
        )
