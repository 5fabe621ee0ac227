"""Functions on arrays that all modules share: checks, blocks of rows, samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic._devices import (
    is_on_device,
    namespace,
    on_host,
    squares_of_rows,
)
from mosaic._threads import each
from mosaic.exceptions import InvalidInputError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
Seed: TypeAlias = int | np.random.Generator | None
Result = TypeVar("Result")
#: Rows × columns of one temporary block: 2 MB of float64, which stays in the cache of one core.
BLOCK_ENTRIES = 1 << 18
#: The smallest weight that differs from others, as a share of the largest.
LEAST_WEIGHT = 2.0**-100


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
    alone: bool = False,
) -> list[Result]:
    """What the function returns for every slice of ``row_blocks``, in their order; in threads if there are any.

    ``alone`` calls it in this thread only: a device has cores of its own. See ``_threads.using_threads``.
    """
    blocks = row_blocks(n_rows, n_columns, entries, least)
    return [function(rows) for rows in blocks] if alone else each(function, blocks)


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
        return some, standing_for_all(weights[some].astype(np.float64), size, total)
    is_heavy = weights * size >= total
    heavy, light = np.flatnonzero(is_heavy), np.flatnonzero(~is_heavy)
    drawn = light[subsample(len(light), max(size - len(heavy), 1), random_state)]
    some = np.sort(np.concatenate([heavy, drawn]))
    return some, standing_for_all(weights[some].astype(np.float64), size, total)


def standing_for_all(weights: FloatArray, size: float, total: float) -> FloatArray:
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
        values = on_host(values)
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
