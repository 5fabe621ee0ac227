"""What the estimators do with the data before anything else: read it, and check it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from mosaic._arrays import Prepare, points_on_device, refuse_masked, refuse_missing
from mosaic._devices import can_be_changed, is_on_device, on_host, rows_of
from mosaic._frames import column_names, id_columns, numeric_part, to_matrix, without_empty
from mosaic.choosing import Geometry, Settings, as_weights, is_auto, preparation_of
from mosaic.data.cells import cells_of
from mosaic.data.mixed import LeftOut, TableEncoder, encoder_of
from mosaic.data.opening import read_file
from mosaic.data.table import Table
from mosaic.engines.local import LocalSource
from mosaic.exceptions import InvalidInputError, SelectionWarning
from mosaic.kernels import POINT_KERNELS


class NamedRows(NamedTuple):
    """Rows in memory or a source, the names of the columns that they come from, and how these became numbers.

    ``table`` is None where columns are numbers as they are.
    """

    rows: Any
    names: list[str] | None
    table: TableEncoder | None = None


def rows_of_file(file: Any, memory_budget: float | None = None, fitted: Any = None) -> NamedRows | None:
    """The rows of a path or an open table; None for all else. They are a source where the file is large for the budget.

    ``fitted`` is a model that is asked about the rows: columns become numbers as they did in its fit.
    """
    if isinstance(file, Table):
        return NamedRows(file.X, file.feature_names, file.encoder)
    if not isinstance(file, (str, PathLike)):
        return None
    if fitted is not None:
        table = read_file(file, memory_budget, encoder=fitted.table_, numbers_only=fitted.table_ is None)
    else:
        table = read_file(file, memory_budget)
        warn_of_ids(table.left_out, f"choose the columns: mosaic.data.open_table({str(file)!r}, columns=[…])")
        if table.encoder is not None:
            warn_of_left_out(table.encoder.left_out)
    return NamedRows(table.X, table.feature_names, table.encoder)


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


def warn_of_left_out(left_out: Sequence[LeftOut]) -> None:
    """Warn of columns of a table that a user would expect to be compared, and are not."""
    surprising = [column for column in left_out if column.remedy is not None]
    if surprising:
        told = "; ".join(f"{column.name!r} {column.why} ({column.remedy})" for column in surprising)
        warnings.warn(
            f"Not compared: {told}. table_.describe() says how columns are compared.",
            SelectionWarning,
            stacklevel=2,
        )


def rows_of_frame(estimator: Any, X: Any, *, reset: bool) -> NamedRows | None:
    """The rows of a data frame as numbers; None where X is no data frame.

    Columns of numbers without missing values are taken as they are, unless there are others to compare them with. Otherwise
    every column has the rule of its kind, see ``mosaic.data.mixed``.
    """
    if column_names(X) is None:
        return None
    precomputed, table = getattr(estimator, "kernel", None) == "precomputed", None
    if not reset:
        table = getattr(estimator, "table_", None)
    elif not precomputed:
        cells = cells_of(X)
        table = encoder_of(cells)
    if table is not None:
        if not reset:
            cells = cells_of(X, table.names)
        else:
            table = table.with_texts(cells)
            warn_of_left_out(table.left_out)
        return NamedRows(table.encode(cells), table.names, table)
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    if reset and not precomputed:
        warn_of_ids(id_columns(X), "rename it, or pass an array: X.to_numpy()")
    X = numeric_part(without_empty(X) if reset else X, names=names, keep_ids=precomputed)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    found = getattr(estimator, "feature_names_in_", None)
    matrix = to_matrix(X)
    return NamedRows(_checked(matrix, column_names(X)), None if found is None else [str(name) for name in found])


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A finite float matrix, dense or CSR. ``reset`` in fit; later the features must be those of fit.

    Data frames and files give their columns as numbers; ``table_`` of the estimator says how, None if as they are.
    """
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if is_on_device(X):
        return _rows_on_device(estimator, X, reset=reset)
    if not isinstance(X, NamedRows):
        X = rows_of_file(X, fitted=None if reset else estimator) or rows_of_frame(estimator, X, reset=reset) or X
    if isinstance(X, NamedRows) and isinstance(X.rows, LocalSource):
        X = X._replace(rows=X.rows.read(0, X.rows.n))
    if isinstance(X, NamedRows):
        known = None if reset else getattr(estimator, "feature_names_in_", None)
        if known is not None and X.names is not None and list(known) != X.names:
            raise InvalidInputError(
                f"X has the columns {', '.join(map(repr, X.names))}; those of fit were {', '.join(map(repr, known))}",
                "Write them in this order, or pass a data frame, whose columns are found by their names.",
            )
        if X.table is not None and not reset:
            return X.rows
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared above
            matrix = validate_data(estimator, X.rows, reset=reset, **settings)
        if reset:
            estimator.table_ = X.table
            if X.names is not None:
                estimator.feature_names_in_ = np.array(X.names, dtype=object)
                estimator.n_features_in_ = len(X.names)
        return _checked(matrix, X.names if X.table is None else X.table.number_names)
    if not reset and getattr(estimator, "table_", None) is not None:
        names = ", ".join(map(repr, estimator.table_.names))
        raise InvalidInputError(f"X has no column names; fit was given a table with {names}", "Pass a data frame.")
    refuse_masked(X)
    matrix = validate_data(estimator, numeric_part(X), reset=reset, **settings)
    if reset:
        estimator.table_ = None
    return _checked(matrix, None)


def _rows_on_device(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows of an array that stays on its device, if the kernel computes there; otherwise as a NumPy array."""
    kernel = getattr(estimator, "kernel", "rbf")
    if not (isinstance(kernel, str) and kernel in POINT_KERNELS) or not can_be_changed(X):
        return read_rows(estimator, on_host(X), reset=reset)
    X = points_on_device(X)
    if reset:
        estimator.n_features_in_, estimator.table_ = X.shape[1], None
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        fault = f"has {X.shape[1]} features, the data of fit had {estimator.n_features_in_}"
        raise InvalidInputError(fault, "Pass the same columns.", parameter="X")
    return X


def without_scaling(settings: Settings, table: TableEncoder | None) -> Settings:
    """Columns of a table are not scaled again unless the user says so: how they became numbers says how they compare."""
    return settings if table is None or not is_auto(settings.scale) else replace(settings, scale=False)


def with_table(geometry: Geometry, table: TableEncoder | None) -> Geometry:
    """The same, with how the columns of a table are compared among the decisions."""
    if table is None:
        return geometry
    first = 0 if geometry.prepare.scale is not None else 1  # "Columns are taken as they are."
    return replace(geometry, decisions=(*table.describe(), *geometry.decisions[first:]))


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
    settings = without_scaling(settings, estimator.table_)
    if settings.kernel == "precomputed" and matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"a precomputed similarity must be square; got shape {matrix.shape}",
            "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
        )
    weights = None if sample_weight is None else as_weights(sample_weight, matrix.shape[0])
    counted = matrix
    if weights is not None and not weights.all() and weights.any():
        counted, weights = rows_of(matrix, weights > 0), weights[weights > 0]
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
