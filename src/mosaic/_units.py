"""Rows of any size: the power of two that they are divided by, and all that is done to rows before they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import BLOCK_ENTRIES, FloatArray, IntArray, row_blocks, row_norms_squared
from mosaic._devices import (
    as_double,
    block_entries,
    is_on_device,
    like,
    namespace,
    numpy_dtype,
    rows_of,
)

#: Rows are taken as they are if the size of a typical one is at most this power of two, and at least its inverse; ``unit_of``.
ORDINARY_EXPONENT = 50
#: Power of two that entries stay below: squares of differences of such rows can be added.
LARGEST_EXPONENT = 500
#: The same for the lengths of rows in single precision, whose inverse must be in its range, too.
LARGEST_IN_SINGLE = 100
#: Rows from which the size of a typical row is taken.
UNIT_ROWS = 1001


def divided(X: Any, scale: FloatArray | None) -> Any:
    """X / scale, column by column."""
    if scale is None:
        return X
    scale = np.maximum(scale, np.finfo(numpy_dtype(X)).smallest_subnormal)
    if not sp.issparse(X):
        return X / like(X, scale)
    scale = scale.astype(X.dtype)
    Y = X.copy()
    Y.data = Y.data / scale[Y.indices]  # the same quotients as in the dense case, so that known points are recognised
    return Y


def unit_of(X: Any) -> int:
    """The u for which a typical row of X, divided by 2^u, has a size near 1; 0 for rows of ordinary size.

    The door through which all rows go that are compared by distances or directions. Squares of numbers near 1e155 leave the
    range of floats, and squares of numbers near 1e-165 vanish. So x becomes x / 2^u, which is exact, and what has the unit of
    the data follows:

        γ of x / 2^u = γ · 2^(order · u),   distances of x = 2^u · distances of x / 2^u.

    The size of a row is its largest entry; the typical size is the median over rows that are not zero. Rows that are more than
    2^500 (1e150) times as large are as far from the others as can be told: ``in_unit`` divides each of them by a power of two
    of its own, so that its largest entry lies below that. What is less than 1e-150 of a typical row has no square, and rows
    that differ only by so little have the distance 0.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[3.0, 1.0], [0.0, -2.5], [0.0, 0.0]])
    >>> unit_of(X), unit_of(X * 2.0**600), in_unit(X * 2.0**600, 602).tolist()
    (0, 602, [[0.75, 0.25], [0.0, -0.625], [0.0, 0.0]])
    """
    if is_on_device(X):  # rows of another size are not left on a device
        return 0
    sizes = _row_sizes(X[:: -(-X.shape[0] // UNIT_ROWS)])
    sizes = np.sort(sizes[sizes > 0])
    exponent = int(np.frexp(sizes[len(sizes) // 2])[1]) if len(sizes) else 0
    return exponent if abs(exponent) > ORDINARY_EXPONENT else 0


def in_unit(X: Any, unit: int) -> Any:
    """Rows divided by 2^unit; of rows that are too large after that, each by a larger power of two (see ``unit_of``).

    Divided rows are in double precision, because columns that are much smaller than others leave the range of single.
    """
    if is_on_device(X) or (unit == 0 and (X.dtype == np.float32 or _size(X) < 2.0**LARGEST_EXPONENT)):
        return X
    exponents = np.frexp(_row_sizes(X))[1] - unit
    return _rows_shifted(X.astype(np.float64), -unit - np.maximum(exponents - LARGEST_EXPONENT, 0))


def with_lengths(X: Any) -> tuple[Any, FloatArray]:
    """Rows and their lengths ‖x_i‖₂ in float64; rows of which a square or inverse is no float are divided by powers of two."""
    with np.errstate(over="ignore"):
        lengths = _lengths(X)
    most = LARGEST_EXPONENT if numpy_dtype(X) == np.float64 else LARGEST_IN_SINGLE
    odd = ~((lengths > 2.0**-most) & (lengths < 2.0**most))
    if is_on_device(X):  # where no row is large; those that are nothing beside others are nothing
        return X, np.where(odd, 0.0, lengths)
    if not odd.any():
        return X, lengths
    X = _rows_shifted(X, np.where(odd, -np.frexp(_row_sizes(X))[1], 0))
    return X, _lengths(X)


def _lengths(X: Any) -> FloatArray:
    if is_on_device(X):
        blocks = row_blocks(X.shape[0], X.shape[1], block_entries(X, BLOCK_ENTRIES))
        squares = np.concatenate([row_norms_squared(as_double(rows_of(X, rows))) for rows in blocks])
        return np.asarray(np.sqrt(squares))
    X = X.astype(np.float64, copy=False)
    squares = X.power(2).sum(axis=1) if sp.issparse(X) else row_norms_squared(X)
    return np.asarray(np.sqrt(np.asarray(squares).ravel()))


def _rows_shifted(X: Any, shifts: IntArray) -> Any:
    """Row i of X times 2^shifts[i]."""
    if sp.issparse(X):
        shifted = np.ldexp(X.data, np.repeat(shifts, np.diff(X.indptr)))
        return sp.csr_array((shifted, X.indices, X.indptr), shape=X.shape)
    return np.ldexp(X, shifts[:, None])


def _size(X: Any) -> float:
    """The largest |x_ij| of all rows, without a temporary array."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _row_sizes(X: Any) -> FloatArray:
    """The largest |x_ij| of every row."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=1).todense()).ravel()
    return np.asarray(np.maximum(X.max(axis=1), -X.min(axis=1)))


@dataclass(frozen=True)
class Prepare:
    """Prepare rows for comparison: divide rows by 2^``unit``, columns by ``scale``, then rows by their length if ``directions``.

    ``unit`` is None where rows are taken in the unit that they have, whatever their size (see ``unit_of``). ``scale``
    are divisors of rows that are divided by 2^``unit``; ``divisors`` are in the unit of the data.

    Examples
    --------
    >>> import numpy as np
    >>> Prepare(np.array([1.0, 2.0]), directions=True)(np.array([[3.0, 8.0], [0.0, 0.0]])).round(9).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    scale: FloatArray | None = None
    directions: bool = False
    unit: int | None = None

    def __call__(self, X: Any) -> Any:
        """The prepared rows. Rows of zeros stay zero."""
        if self.unit is not None:
            X = in_unit(X, self.unit)
        with np.errstate(over="ignore"):
            X = divided(X, self.scale)
        if self.unit is not None and self.scale is not None:
            X = _within_range(X)
        if not self.directions:
            return X
        X, lengths = with_lengths(X)
        factor = like(X, 1.0 / np.where(lengths > 0, lengths, 1.0))
        return sp.csr_array(sp.diags_array(factor) @ X) if sp.issparse(X) else X * factor[:, None]

    @property
    def divisors(self) -> FloatArray | None:
        """The divisors of the columns in the unit of the data."""
        return None if self.scale is None else _shifted(self.scale, self.unit or 0)

    @property
    def kept_unit(self) -> int:
        """The power of two that prepared rows are still divided by: none if they were divided by spreads or lengths as well."""
        return 0 if self.scale is not None or self.directions else self.unit or 0

    def undone(self, values: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Values of prepared rows, in some columns, as the data has them."""
        values = values if self.scale is None else values * self.scale[columns]
        return values if not self.unit else _shifted(values, self.unit)


def _shifted(values: FloatArray, shift: int) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(values, shift))


def _within_range(X: Any) -> Any:
    """Entries that division by a spread took beyond the largest power of two are set to it."""
    if is_on_device(X) or X.dtype == np.float32 or _size(X) < 2.0**LARGEST_EXPONENT:
        return X
    values = np.clip(X.data if sp.issparse(X) else X, -(2.0**LARGEST_EXPONENT), 2.0**LARGEST_EXPONENT)
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else values


def has_ordinary_size(X: Any) -> bool:
    """Whether the largest number of an array on a device is so near to 1 that squares need no unit of their own."""
    largest = max(float(namespace(X).max(X)), -float(namespace(X).min(X)))
    return largest == 0 or 2.0**-ORDINARY_EXPONENT <= largest <= 2.0**ORDINARY_EXPONENT
