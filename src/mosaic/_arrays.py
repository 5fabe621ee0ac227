"""Functions on arrays that all modules share: checks, blocks of rows, samples, equal rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic._devices import (
    as_double,
    as_integers,
    as_unsigned,
    beside,
    bits,
    block_entries,
    is_on_device,
    like,
    namespace,
    numpy_dtype,
    on_host,
    repeated,
    rows_of,
    shifted_right,
    squares_of_rows,
    times_power_of_two,
    whole,
    with_values,
)
from mosaic.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Seed: TypeAlias = int | np.random.Generator | None

#: Rows × columns of one temporary block: 2 MB of float64, which stays in the cache of one core.
BLOCK_ENTRIES = 1 << 18
#: Rows are taken as they are if the size of a typical one is at most this power of two, and at least its inverse; ``unit_of``.
ORDINARY_EXPONENT = 50
#: Power of two that entries stay below: squares of differences of such rows can be added.
LARGEST_EXPONENT = 500
#: The smallest weight that differs from others, as a share of the largest.
LEAST_WEIGHT = 2.0**-100
#: Rows from which the size of a typical row is taken.
UNIT_ROWS = 1001


def row_blocks(n_rows: int, n_columns: int, entries: int = BLOCK_ENTRIES) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)``, each about ``entries / n_columns`` rows long."""
    step = max(64, entries // max(n_columns, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


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
    is_heavy = weights * size >= total
    heavy, light = np.flatnonzero(is_heavy), np.flatnonzero(~is_heavy)
    drawn = light[subsample(len(light), max(size - len(heavy), 1), random_state)]
    some = np.sort(np.concatenate([heavy, drawn]))
    return some, standing_for_all(weights[some].astype(np.float64), size, total)


def standing_for_all(weights: FloatArray, size: int, total: float) -> FloatArray:
    """Weights that make a sample of about ``size`` points stand for all: light points are scaled up, heavy ones keep theirs.

    Examples
    --------
    >>> import numpy as np
    >>> standing_for_all(np.array([1.0, 96.0, 1.0]), 3, 100.0).tolist()
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
    """Rows and their lengths ‖x_i‖₂ in float64; rows whose square is no float are divided by powers of two of their own."""
    with np.errstate(over="ignore"):
        lengths = _lengths(X)
    odd = ~((lengths > 2.0**-LARGEST_EXPONENT) & (lengths < 2.0**LARGEST_EXPONENT))
    if not odd.any():
        return X, lengths
    X = _rows_shifted(X, np.where(odd, -np.frexp(_row_sizes(X))[1], 0))
    return X, _lengths(X)


def _lengths(X: Any) -> FloatArray:
    X = as_double(X) if is_on_device(X) else X.astype(np.float64, copy=False)
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


def as_points(X: Any, name: str = "X") -> Any:
    """A finite two-dimensional float array or CSR matrix; float32 stays float32, all else becomes float64."""
    if is_on_device(X):
        return points_on_device(X, name)
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()  # the arrays belong to the caller and must not be sorted in place
            X.sum_duplicates()
        values = X.data
    else:
        refuse_masked(X, name)
        try:
            X = np.asarray(X)
        except ValueError as error:  # ragged lists
            raise InvalidInputError(f"must be a rectangular array of numbers: {error}", parameter=name) from error
        if X.ndim != 2:
            raise InvalidInputError(
                f"must have two dimensions (points × features); got shape {X.shape}",
                f"For points with one feature use {name}.reshape(-1, 1).",
                parameter=name,
            )
        values = X
    if values.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"must hold real numbers; got dtype {values.dtype}",
            "Convert or drop the columns that are not numeric.",
            parameter=name,
        )
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise InvalidInputError(f"must have at least one point and one feature; got shape {X.shape}", parameter=name)
    if values.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
        values = X.data if sp.issparse(X) else X
    refuse_missing(X, None, name)
    return X


def points_on_device(X: Any, name: str = "X") -> Any:
    """A finite two-dimensional array of floats, where it is."""
    xp = namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        fault = f"must have two dimensions (points × features), with at least one of each; got shape {tuple(X.shape)}"
        raise InvalidInputError(fault, parameter=name)
    if not (xp.isdtype(X.dtype, "real floating") or xp.isdtype(X.dtype, "integral") or xp.isdtype(X.dtype, "bool")):
        raise InvalidInputError(f"must hold real numbers; got dtype {X.dtype}", parameter=name)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    refuse_missing(X, None, name)
    return X


def has_ordinary_size(X: Any) -> bool:
    """Whether the largest number of an array on a device is so near to 1 that squares need no unit of their own."""
    largest = float(namespace(X).max(abs(X)))
    return largest == 0 or 2.0**-ORDINARY_EXPONENT <= largest <= 2.0**ORDINARY_EXPONENT


def refuse_masked(X: Any, name: str = "X") -> None:
    """Raise an InvalidInputError for masked entries, which would otherwise be read as numbers, and for arrays of records."""
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise InvalidInputError(
            f"must be a rectangular array of numbers; got records with the fields {', '.join(map(repr, X.dtype.names))}",
            f"Use numpy.lib.recfunctions.structured_to_unstructured({name}), or a data frame.",
            parameter=name,
        )
    masked = int(np.asarray(X.mask).sum()) if isinstance(X, np.ma.MaskedArray) else 0
    if masked:
        raise InvalidInputError(
            f"has {masked:,} masked entries, which cannot be compared",
            "Fill them (numpy.ma.filled, an imputer), or leave out their rows.",
            parameter=name,
        )


def refuse_missing(matrix: Any, names: Sequence[str] | None, name: str = "X", first_row: int = 0) -> None:
    """Raise an InvalidInputError that counts and locates the entries that are NaN or infinite, if there are any.

    Parameters
    ----------
    matrix : dense or sparse; for a sparse matrix only stored entries are checked
    names : column names for the message
    name : name of the matrix in the message
    first_row : number of the first row, if the matrix is a block of a larger one

    Examples
    --------
    >>> refuse_missing(np.eye(2), None)
    >>> refuse_missing(np.array([[1.0, 2.0], [np.nan, 4.0]]), ["height", "age"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: X must be finite; ... X[1, 0] = nan, in row 1, column 'height', ...
    """
    if is_on_device(matrix):
        if bool(namespace(matrix).all(namespace(matrix).isfinite(matrix))):
            return
        matrix = on_host(matrix)
    matrix = matrix.tocsr() if sp.issparse(matrix) else np.asarray(matrix)
    values = matrix.data if sp.issparse(matrix) else matrix
    if values.dtype.kind != "f":
        return
    # A finite sum proves that all entries are finite, without a temporary array. Entries are examined only otherwise.
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    n_nan, n_inf, first = _non_finite(values)
    if first is None:  # the sum of large numbers has overflowed
        return
    value = float(values[first])
    if sp.issparse(matrix):
        row = int(np.searchsorted(matrix.indptr, first[0], side="right")) - 1
        column = int(matrix.indices[first[0]])
    else:
        row, column = first
    row += first_row
    counts = ", ".join(f"{count} {kind}" for count, kind in ((n_nan, "NaN"), (n_inf, "inf")) if count)
    remedies = {
        "Drop these rows or fill in the values, for example with sklearn.impute.SimpleImputer.": n_nan,
        "Replace inf by finite numbers or drop these rows.": n_inf,
    }
    raise InvalidInputError(
        f"must be finite; entries that are not: {counts}. The first is {name}[{row}, {column}] = {value}, "
        f"in `row {row}`, column {column if names is None else repr(str(names[column]))}, counted from 0",
        " ".join(remedy for remedy, count in remedies.items() if count),
        parameter=name,
    )


def _non_finite(values: FloatArray) -> tuple[int, int, tuple[int, ...] | None]:
    """Number of NaN entries, number of infinite entries, and the position of the first of either, block by block."""
    n_nan = n_inf = 0
    first: tuple[int, ...] | None = None
    for block in row_blocks(len(values), int(np.prod(values.shape[1:]))):
        finite = np.isfinite(values[block])
        if finite.all():
            continue
        if first is None:
            row, *column = np.unravel_index(int(np.argmin(finite)), finite.shape)
            first = (block.start + int(row), *map(int, column))
        nans = int(np.isnan(values[block]).sum())
        n_nan += nans
        n_inf += finite.size - int(finite.sum()) - nans
    return n_nan, n_inf, first


def as_vector(values: ArrayLike, length: int, name: str, *, minimum: float, strict: bool = False) -> FloatArray:
    """A finite float64 vector of the given length with entries ≥ (or, if strict, >) the minimum."""
    try:
        refuse_masked(values, name)
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        fault = f"must hold numbers, one for each of {length} points: {error}"
        raise InvalidInputError(fault, "Convert them to numbers.", parameter=name) from error
    if vector.shape != (length,):
        fault = f"must have one entry for each of {length} points; got shape {vector.shape}"
        raise InvalidInputError(fault, parameter=name)
    if not np.isfinite(vector).all():
        raise InvalidInputError(f"must be finite; entry {int(np.argmin(np.isfinite(vector)))} is not", parameter=name)
    wrong = vector <= minimum if strict else vector < minimum
    if wrong.any():
        first, sign = int(np.argmax(wrong)), ">" if strict else ">="
        raise InvalidInputError(f"must be {sign} {minimum:g}; entry {first} is {vector[first]:g}", parameter=name)
    return vector


def as_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How much each of n rows counts: numbers ≥ 0. Less than 2^-100 of the largest counts as that, so that squares do not vanish.

    Examples
    --------
    >>> as_weights([0.0, 1.0, 1e-300], 3).tolist()
    [0.0, 1.0, 7.888609052210118e-31]
    """
    weights = as_vector(sample_weight, n, "sample_weight", minimum=0.0)
    least = float(weights.max(initial=0.0)) * LEAST_WEIGHT
    return np.where(weights > 0, np.maximum(weights, least), 0.0)


def as_indices(indices: ArrayLike, length: int, name: str) -> IntArray:
    """Distinct row numbers in ``range(length)``; a boolean mask is accepted too."""
    array = np.asarray(indices)
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


class EqualRows(NamedTuple):
    """Groups of equal rows, by first occurrence: ``first[g]`` is the first row of group g, ``group[i]`` the group of row i.

    Examples
    --------
    >>> import numpy as np
    >>> equal = equal_rows(np.array([[3.0], [1.0], [3.0], [2.0], [1.0]]))
    >>> equal.first.tolist(), equal.group.tolist(), equal.n, equal.is_trivial
    ([0, 1, 3], [0, 1, 0, 2, 1], 5, False)
    """

    first: IntArray
    group: IntArray

    @classmethod
    def trivial(cls, n: int) -> EqualRows:
        """Groups of one row each, for n rows."""
        return cls(np.arange(n), np.arange(n))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.group)

    @property
    def is_trivial(self) -> bool:
        """Whether all rows differ."""
        return len(self.first) == len(self.group)

    def sums(self, values: FloatArray | BoolArray) -> FloatArray:
        """The sum of a value over the rows of each group."""
        return np.asarray(np.bincount(self.group, weights=values, minlength=len(self.first)), np.float64)


def equal_rows(X: Any, codes: NDArray[np.uint64] | None = None) -> EqualRows:
    """Groups of exactly equal rows: rows with equal ``row_codes`` are compared. Pass ``codes`` if they are known already."""
    n = X.shape[0]
    codes = _codes(X) if codes is None else codes
    if not len(repeated(codes)):
        return EqualRows.trivial(n)
    codes = as_unsigned(codes)
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    pairs = np.flatnonzero(same)
    for block in row_blocks(len(pairs), X.shape[1]):
        left, right = order[pairs[block]], order[pairs[block] + 1]
        same[pairs[block]] = rows_equal(rows_of(X, left), rows_of(X, right))
    group_in_order = np.concatenate([[0], np.cumsum(~same)])
    first_in_order = order[np.concatenate([[True], ~same])]  # stable sort: the smallest index of each group
    rank = np.argsort(np.argsort(first_in_order))
    group = np.empty(n, dtype=np.intp)
    group[order] = rank[group_in_order]
    return EqualRows(np.sort(first_in_order), group)


def rows_equal(A: Any, B: Any) -> BoolArray:
    """Whether a_i = b_i in all entries, for two matrices that are both dense or both sparse."""
    if sp.issparse(A):
        return np.asarray((A != B).sum(axis=1) == 0).ravel()
    return np.asarray(on_host(namespace(A).all(A == B, axis=1)))


class KnownRows(NamedTuple):
    """Rows that are recognised by their codes: ``codes`` in ascending order, and the row number of each.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownRows.of(row_codes(np.array([[3.0], [1.0]])))
    >>> known.find(row_codes(np.array([[1.0], [2.0], [3.0]]))).tolist()
    [1, -1, 0]
    """

    codes: NDArray[np.uint64]
    row: IntArray

    @classmethod
    def of(cls, codes: NDArray[np.uint64]) -> KnownRows:
        """Build from the codes of rows, in row order."""
        order = np.argsort(codes)
        return cls(codes[order], order)

    def find(self, codes: NDArray[np.uint64]) -> IntArray:
        """The number of the known row with each code, -1 if there is none."""
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.row[place], -1)


def row_codes(X: Any) -> NDArray[np.uint64]:
    """An exact 64-bit hash of every row: equal rows have equal codes."""
    return as_unsigned(_codes(X))


def _codes(X: Any) -> Any:
    """The codes of rows, where X is."""
    multipliers = _multipliers(X.shape[1])
    if sp.issparse(X):
        codes = _bits(X.data) * multipliers[X.indices]
        codes[X.data == 0] = 0
        return _sums_of_rows(codes, X.indptr)
    factors = beside(X, multipliers.view(np.int64)) if is_on_device(X) else multipliers
    return _sum_of_columns(X, lambda block: _bits(block) * factors)


def _sum_of_columns(X: Any, of: Callable[[Any], Any]) -> Any:
    """Σ_j of(x_ij) for every row of a dense matrix, where ``of`` maps a block of numbers to integers."""
    parts = [
        namespace(X).sum(of(rows_of(X, part)), axis=1)
        for part in row_blocks(X.shape[0], X.shape[1], block_entries(X, BLOCK_ENTRIES))
    ]
    return namespace(X).concat(parts)


def _sums_of_rows(values: NDArray[np.uint64], indptr: IntArray) -> NDArray[np.uint64]:
    """The sums of the entries of every row of a CSR matrix."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(sums[indptr[1:]] - sums[indptr[:-1]])


def row_priorities(X: Any) -> Any:
    """A pseudorandom number for every row that depends on its content, and hardly ever on rotation, column order or unit.

    The number is a hash of the row's length if no other row has that length: rotating the rows, permuting columns or
    multiplying by 1024 does not change it. Rows of equal length use a hash of their values, in any column order. Rows with the
    same values in different columns, such as rows of zeros and ones, use a hash of values and columns. Subsets drawn by these
    numbers hardly change when a few rows are added or removed. Numbers are uint64, or their bits as int64 on a device.
    """
    shift = _unit_shift(X)
    codes = _finalised(_rounded_lengths(X, shift))
    for finer in (_value_codes, _placed_codes):
        alike = repeated(codes)
        if not len(alike):
            break
        rows = rows_of(X, alike)
        codes = with_values(codes, alike, _finalised(finer(rows if sp.issparse(X) else on_host(rows), shift)))
    return codes


def _unit_shift(X: Any) -> int:
    """The s for which the longest row, times 2^s, has a length between ½ and 1. Rotation does not change it."""
    values, most = X.data if sp.issparse(X) else X, namespace(X).max
    blocks = row_blocks(values.shape[0], 1 if sp.issparse(X) else X.shape[1], block_entries(X, BLOCK_ENTRIES))
    largest = max((float(most(abs(rows_of(values, part)))) for part in blocks), default=0.0)
    shift = -int(np.frexp(largest)[1])  # squares stay within the range of floats
    longest = 0.0
    for part in row_blocks(X.shape[0], X.shape[1], block_entries(X, BLOCK_ENTRIES)):
        if sp.issparse(X):
            block = sp.csr_array((np.ldexp(X[part].data, shift), X[part].indices, X[part].indptr), shape=X[part].shape)
            longest = max(longest, float(block.power(2).sum(axis=1).max()))
        else:
            longest = max(longest, float(most(squares_of_rows(times_power_of_two(rows_of(X, part), shift)))))
    # Normalised rows have length 1 up to rounding, so the unit must not change at 1.
    return shift - (int(np.frexp(longest * (1.0 + 1e-6))[1]) + 1) // 2


def _rounded_lengths(X: Any, shift: int) -> Any:
    """‖2^shift x‖² ≤ 1 for every row, in steps of 2⁻³². Squares are added as integers."""
    places = 60 - int(X.shape[1]).bit_length()

    def squares(values: Any) -> Any:
        return as_integers(times_power_of_two(as_double(values) ** 2, places))

    return shifted_right(_row_sums(X, shift, squares), places - 32)


def _value_codes(X: Any, shift: int) -> Any:
    """A hash of every row: its values times 2^shift are hashed one by one and added."""
    return _row_sums(X, shift, _mixed)


def _row_sums(X: Any, shift: int, of: Callable[[Any], Any]) -> Any:
    """Σ_j of(2^shift x_j) for every row, the same for any column order; ``of`` maps 0 to 0."""
    if sp.issparse(X):
        return _sums_of_rows(of(np.ldexp(X.data, shift)), X.indptr)
    return _sum_of_columns(X, lambda block: of(times_power_of_two(block, shift)))


def _placed_codes(X: Any, shift: int) -> Any:
    """A hash of every row from its values times 2^shift and their columns."""
    if sp.issparse(X):
        return _codes(sp.csr_array((np.ldexp(X.data, shift), X.indices, X.indptr), shape=X.shape))
    return _codes(times_power_of_two(X, shift))


def _mixed(values: FloatArray) -> NDArray[np.uint64]:
    """Hashes of values. Zeros hash to 0, so that stored and missing zeros of a sparse matrix are the same."""
    mixed: NDArray[np.uint64] = _finalised(np.ascontiguousarray(values, dtype=np.float64).view(np.uint64))
    mixed[np.asarray(values) == 0] = 0
    return mixed


def _finalised(h: Any) -> Any:
    """The finaliser of splitmix64."""
    h = h + whole(0x9E3779B97F4A7C15, h)
    h = (h ^ shifted_right(h, 30)) * whole(0xBF58476D1CE4E5B9, h)
    h = (h ^ shifted_right(h, 27)) * whole(0x94D049BB133111EB, h)
    return h ^ shifted_right(h, 31)


def _bits(values: Any) -> Any:
    found = bits(values)
    return found ^ shifted_right(found, 29)  # round numbers have zero low bits; mix before multiplying


def _multipliers(count: int) -> NDArray[np.uint64]:
    rng = np.random.default_rng(0x6D6F73616963)
    return rng.integers(0, 2**63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
