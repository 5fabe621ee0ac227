"""What the estimators do with the data before anything else: read it, and check it."""

from __future__ import annotations

import warnings
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from mosaic._arrays import Prepare, refuse_masked, refuse_missing
from mosaic._frames import column_names, id_columns, numeric_part, to_matrix
from mosaic.choosing import Settings, as_weights, preparation_of
from mosaic.data.opening import read_file
from mosaic.engines.local import LocalSource
from mosaic.exceptions import InvalidInputError, SelectionWarning


class NamedRows(NamedTuple):
    """Rows of a file in memory, and the names of their columns."""

    rows: Any
    names: list[str] | None


def rows_of_file(path: str | PathLike[str], memory_budget: float | None = None, warn: bool = True) -> NamedRows:
    """The features of a file; the rows are a source where the file is large for the budget."""
    X, names, left_out = read_file(path, memory_budget)
    if warn:
        warn_of_ids(left_out, f"choose the columns: mosaic.data.open_table({str(path)!r}, columns=[…]).X")
    return NamedRows(X, names)


def warn_of_ids(names: list[str], remedy: str) -> None:
    """Warn of columns of numbers that are not computed with, because they are called as ids are."""
    if names:
        shown = ", ".join(map(repr, names))
        left_out = f"Column {shown} was" if len(names) == 1 else f"Columns {shown} were"
        warnings.warn(
            f"{left_out} not computed with, because of a name that ids have. If it holds a feature, {remedy}.",
            SelectionWarning,
            stacklevel=2,
        )


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A finite float matrix, dense or CSR. ``reset`` in fit; later the features must be those of fit.

    Frames and files give their features; columns of text, and those that are called as ids are, are not computed with.
    """
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if isinstance(X, (str, PathLike)):
        X = rows_of_file(X, warn=reset)
        X = X._replace(rows=X.rows.read(0, X.rows.n)) if isinstance(X.rows, LocalSource) else X
    if isinstance(X, NamedRows):
        known = None if reset else getattr(estimator, "feature_names_in_", None)
        if known is not None and X.names is not None and list(known) != X.names:
            raise InvalidInputError(
                f"X has the columns {', '.join(map(repr, X.names))}; those of fit were {', '.join(map(repr, known))}",
                "Write them in this order, or pass a data frame, whose columns are found by their names.",
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared above
            matrix = validate_data(estimator, X.rows, reset=reset, **settings)
        if reset and X.names is not None:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        return _checked(matrix, X.names)
    refuse_masked(X)
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    keep_ids = getattr(estimator, "kernel", None) == "precomputed"
    if reset and not keep_ids:
        warn_of_ids(id_columns(X), "rename it, or pass an array: X.to_numpy()")
    X = numeric_part(X, names=names, keep_ids=keep_ids)
    columns = column_names(X)
    if columns is None:
        matrix = validate_data(estimator, X, reset=reset, **settings)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        matrix = check_array(to_matrix(X), estimator=estimator, **settings)
    return _checked(matrix, columns)


def _checked(matrix: Any, columns: list[str] | None) -> Any:
    """A finite matrix; sparse ones as CSR without two entries for one place."""
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    refuse_missing(matrix, columns)
    return matrix


def read_prepared(estimator: Any, X: Any, sample_weight: ArrayLike | None, settings: Settings) -> tuple[Any, Prepare]:
    """For fit: the rows, prepared, and what was done to them."""
    matrix = read_rows(estimator, X, reset=True)
    if settings.kernel == "precomputed" and matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"a precomputed similarity must be square; got shape {matrix.shape}",
            "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
        )
    weights = None if sample_weight is None else as_weights(sample_weight, matrix.shape[0])
    counted = matrix
    if weights is not None and not weights.all() and weights.any():
        counted, weights = matrix[weights > 0], weights[weights > 0]
    prepare = preparation_of(counted, weights if weights is not None and weights.any() else None, settings)
    return prepare(matrix), prepare


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InvalidInputError(
        "must be a whole number >= 0, a generator or None", parameter="random_state", value=random_state
    )
