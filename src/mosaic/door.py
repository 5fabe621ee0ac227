"""The door: what may come in. Behind it numbers are finite, of a size whose squares are floats.

Rows have two dimensions, float32 or float64, and no entry that is NaN or infinite. The largest size of an entry is at most
1e100 and, in a fit, at least 1e-100 (1e30 and 1e-30 in single precision); otherwise the error says by what to divide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import (
    LARGEST,
    NO_ROWS,
    FloatArray,
    IntArray,
    check_numbers,
    check_shape,
    largest_size,
)
from mosaic.arrays.xp import Matrix, compat, is_on_device, namespace, on_host
from mosaic.exceptions import InvalidInputError


def as_points(X: Matrix, name: str = "X") -> Any:
    """Rows that may come in, as a float array or CSR matrix; float32 stays float32, all else becomes float64."""
    if is_on_device(X):
        X = points_on_device(X, name)
    else:
        if sp.issparse(X):
            X = canonical(X)
        else:
            refuse_masked(X, name)
            try:
                X = np.asarray(X)
            except ValueError as error:  # ragged lists
                raise InvalidInputError(
                    f"must be a rectangular array of numbers: {error}", parameter=name
                ) from error
        check_shape(X.shape, name)
        check_numbers(X.dtype, name)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        check_entries(X, None, name)
    check_size(X, name)
    return X


def canonical(X: Matrix) -> Any:
    """A sparse matrix as CSR without two entries for one place."""
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()  # the arrays belong to the caller and must not be sorted in place
        X.sum_duplicates()
    return X


def points_on_device(X: Matrix, name: str = "X") -> Any:
    xp = namespace(X)
    library = type(X).__module__.partition(".")[0]
    known = xp.__array_namespace_info__().dtypes(device=compat().device(X), kind="real floating")
    if library in ("jax", "jaxlib") or "float64" not in known:
        if library.startswith("jax"):
            lacks = "arrays of JAX cannot be changed in place"
        else:
            lacks = "its device has no double precision"
        raise InvalidInputError(
            f"cannot stay where it is: {lacks}", f"Pass numpy.asarray({name}).", parameter=name
        )
    check_shape(tuple(X.shape), name)
    if not xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
        raise InvalidInputError(f"must hold real numbers; got dtype {X.dtype}", parameter=name)
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    check_entries(X, None, name)
    return X


def refuse_masked(X: Matrix, name: str = "X") -> None:
    """Refuse masked entries and dates, which would otherwise be read as numbers, and arrays of records."""
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        fault = f"must be a rectangular array of numbers; got records with the fields {', '.join(map(repr, X.dtype.names))}"
        remedy = f"Use numpy.lib.recfunctions.structured_to_unstructured({name}), or a data frame."
        raise InvalidInputError(fault, remedy, parameter=name)
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        # What is missing among them is a number, too.
        remedy = "Pass a data frame, which may hold dates."
        raise InvalidInputError(f"must hold numbers; got dtype {X.dtype}", remedy, parameter=name)
    if isinstance(X, np.ma.MaskedArray) and np.any(X.mask):
        fault = f"has {int(np.sum(X.mask)):,} masked entries, which cannot be compared"
        remedy = "Fill them (numpy.ma.filled, an imputer), or leave out their rows."
        raise InvalidInputError(fault, remedy, parameter=name)


def largest_entry(X: Matrix) -> float:
    """Max |x_ij|, without a temporary array; NaN or infinite if an entry is."""
    if is_on_device(X):
        return max(float(namespace(X).max(X)), -float(namespace(X).min(X)))
    values = X.data if sp.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def check_size(X: Matrix, name: str = "X") -> None:
    """Refuse rows whose entries are all so small that their squares vanish."""
    largest = largest_entry(X)
    limit = 1.0 / largest_size(X)
    if 0 < largest < limit:
        power = int(np.floor(np.log10(largest)))
        fault = f"has no entry larger than {largest:.3g}, and squares of numbers below {limit:.0e} vanish"
        raise InvalidInputError(fault, f"Divide {name} by 1e{power}.", parameter=name)


def check_entries(
    matrix: Matrix, names: Sequence[str] | None, name: str = "X", first_row: int = 0
) -> None:
    """Refuse entries that are NaN, infinite or too large; the error counts them and names the first. ``names`` are of columns."""
    if not is_on_device(matrix):
        matrix = matrix.tocsr() if sp.issparse(matrix) else np.asarray(matrix)
        if matrix.dtype.kind != "f":
            return
    largest = largest_entry(matrix)
    limit = largest_size(matrix)
    if largest <= limit:
        return
    matrix = on_host(matrix)
    values = matrix.data if sp.issparse(matrix) else matrix
    right = (values >= -limit) & (values <= limit) if np.isfinite(largest) else np.isfinite(values)
    n_nan = int(np.isnan(values).sum())
    n_wrong = right.size - int(right.sum()) - n_nan
    first = np.unravel_index(int(np.argmin(right)), right.shape)
    if sp.issparse(matrix):
        row = int(np.searchsorted(matrix.indptr, first[0], side="right")) - 1
        column = int(matrix.indices[first[0]])
    else:
        row, column = map(int, first)
    row += first_row
    called = column if names is None else repr(str(names[column]))
    place = f"{name}[{row}, {column}] = {float(values[first]):.6g}, in `row {row}`, column {called}"
    if np.isfinite(largest):
        fault = f"has numbers larger than {limit:.0e}, whose squares overflow: {n_wrong} entries, the first is {place}"
        remedy = f"Drop these rows, or divide {name} by 1e{int(np.floor(np.log10(largest)))}."
        raise InvalidInputError(f"{fault}, counted from 0", remedy, parameter=name)
    fill = "Drop these rows or fill in the values, for example with sklearn.impute.SimpleImputer."
    kinds = (
        (n_nan, "NaN", fill),
        (n_wrong, "inf", "Replace inf by finite numbers or drop these rows."),
    )
    counts = ", ".join(f"{count} {kind}" for count, kind, _ in kinds if count)
    fault = f"must be finite; entries that are not: {counts}. The first is {place}, counted from 0"
    raise InvalidInputError(
        fault, " ".join(remedy for count, _, remedy in kinds if count), parameter=name
    )


def as_indices(indices: ArrayLike, length: int, name: str, *, may_repeat: bool = False) -> IntArray:
    """Row numbers in ``range(length)``, distinct unless they ``may_repeat``; a boolean mask is accepted too."""
    array = np.asarray(on_host(indices))
    if array.dtype == np.bool_:
        if array.shape != (length,):
            raise InvalidInputError(
                f"must have length {length} as a mask; got shape {array.shape}", parameter=name
            )
        return np.flatnonzero(array)
    if array.size == 0:
        return NO_ROWS
    if array.ndim != 1 or array.dtype.kind not in "iu":
        fault = f"must be a list of row numbers; got dtype {array.dtype}, shape {array.shape}"
    elif array.min() < 0 or array.max() >= length:
        fault = f"must lie in 0 … {length - 1}; got {int(array.min())} … {int(array.max())}"
    elif not may_repeat and (distinct := len(np.unique(array))) != len(array):
        fault = f"must not repeat a row number; {len(array)} given, {distinct} distinct"
    else:
        return array.astype(np.intp, copy=False)
    raise InvalidInputError(fault, parameter=name)


def as_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How much each of n rows counts: numbers ≥ 0. Less than 2^-100 of the largest counts as that: squares must not vanish."""
    name = "sample_weight"
    sample_weight = on_host(sample_weight)
    refuse_masked(sample_weight, name)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        fault = f"must hold numbers, one for each of {n} points: {error}"
        raise InvalidInputError(fault, "Convert them to numbers.", parameter=name) from error
    if weights.shape != (n,):
        raise InvalidInputError(
            f"must have one entry for each of {n} points; got shape {weights.shape}", parameter=name
        )
    wrong = ~((weights >= 0) & (weights <= LARGEST))
    if wrong.any():
        first = int(np.argmax(wrong))
        fault = f"must be between 0 and {LARGEST:g}; entry {first} is {weights[first]:g}"
        remedy = (
            "Only their ratios matter: divide all of them." if weights[first] > LARGEST else None
        )
        raise InvalidInputError(fault, remedy, parameter=name)
    largest = weights.max(initial=0.0)
    if 0 < largest < 1.0 / LARGEST:
        fault = f"must have an entry of at least {1.0 / LARGEST:g}; the largest is {largest:g}"
        raise InvalidInputError(
            fault, "Only their ratios matter: divide all by the largest.", parameter=name
        )
    return np.where(weights > 0, np.maximum(weights, 2.0**-100 * largest), 0.0)
