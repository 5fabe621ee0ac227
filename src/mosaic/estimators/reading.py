"""What the estimators do with the data before anything else: read it, and check it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.scaling import Prepare
from mosaic.arrays.xp import is_on_device, rows_of
from mosaic.checks import check_seed
from mosaic.choosing import Geometry, Settings, is_auto, preparation_of, row_weights
from mosaic.door import check_entries, points_on_device, refuse_masked
from mosaic.exceptions import InvalidInputError, SelectionWarning, warn
from mosaic.frames import cells_of, column_names, id_columns, n_rows, numeric_part, split_columns, to_matrix, without_empty
from mosaic.kernels import where_compared
from mosaic.rows import Rows, is_source, open_source, read
from mosaic.rows.arrays import is_stream, owner_of
from mosaic.rows.encoder import LeftOut, TableEncoder, encoder_of
from mosaic.rows.faults import close_to
from mosaic.rows.names import RowNames, names_of_frame
from mosaic.sketch.sources import LocalSource
from mosaic.text import listed

#: What a column is for that an argument of ``fit`` names.
ROLES = {"groups": "the group of each row", "sample_weight": "how often each row counts"}
#: What the reader of files calls these columns.
OPTIONS = {"groups": "group", "sample_weight": "weight"}


@dataclass(frozen=True)
class ColumnArguments:
    """Arguments of ``fit`` that are given for every row, or as the name of a column: groups and weights."""

    groups: Any = None
    sample_weight: Any = None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are named, by parameter."""
        given = {name: getattr(self, name) for name in ROLES}
        return {name: str(value) for name, value in given.items() if isinstance(value, str)}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The columns that are named; they are not compared."""
        return tuple(LeftOut(column, ROLES[name]) for name, column in self.columns.items())


NO_ARGUMENTS = ColumnArguments()


class NamedRows(NamedTuple):
    """Rows in memory or a source, the names of the columns that they come from, and how these became numbers.

    Attributes
    ----------
    rows : as numbers
    names : of the columns; None where they have none
    table : how columns became numbers; None where they are numbers as they are
    row_names : of the rows, or the open file that has them; None where rows have none
    asked : groups and weights, as values
    notes : sentences on columns that are not compared because of their role, where ``table`` does not say so
    file : the open table that the rows are in; None for rows of a data frame
    """

    rows: Any
    names: list[str] | None
    table: TableEncoder | None = None
    row_names: RowNames | Rows | None = None
    asked: ColumnArguments = NO_ARGUMENTS
    notes: tuple[str, ...] = ()
    file: Rows | None = None

    def with_roles(self, given: ColumnArguments) -> NamedRows:
        """The same, saying which columns are not compared because of their role."""
        if not given.left_out:
            return self
        if self.table is None:
            shown = listed([f"{column.name} ({column.why})" for column in given.left_out])
            return self._replace(notes=(f"Not compared: {shown}.",))
        return self._replace(table=replace(self.table, left_out=(*self.table.left_out, *given.left_out)))

    def rest(self, settings: Settings) -> Settings:
        """The settings, with what a file in memory leaves of the memory budget."""
        held = 0.0 if self.file is None else self.file.held
        if not held or settings.memory_budget is None:  # what is held is not free any more
            return settings
        return replace(settings, memory_budget=max(settings.memory_budget - held, 1.0))

    def names_of_rows(self, rows: IntArray | None = None) -> RowNames | None:
        """The names of all rows, or of some of a file."""
        return self.row_names.row_names(rows) if isinstance(self.row_names, Rows) else self.row_names


def rows_of_file(
    file: Any, memory_budget: float | None = None, fitted: Any = None, asked: ColumnArguments = NO_ARGUMENTS
) -> NamedRows | None:
    """The rows of a path, an open table or AnnData; None for all else. They are a source where the file is large for the budget.

    ``fitted`` is a model that is asked about the rows: columns become numbers as they did in its fit. ``asked`` are groups and
    weights.
    """
    if owner_of(file) == "anndata" and hasattr(file, "obs_names"):
        return _rows_of_anndata(file, asked)
    if isinstance(file, Rows):
        table = file
        known = {"groups": table.group_name, "sample_weight": table.weight_name}
        for parameter, column in asked.columns.items():
            if column != known[parameter]:
                remedy = f"Open it with mosaic.read({str(table.path)!r}, {OPTIONS[parameter]}={column!r})."
                fault = f"names the column {column!r}, which was not read for this"
                raise InvalidInputError(fault, remedy, parameter=parameter)
    elif not isinstance(file, (str, PathLike)) and not is_stream(file):
        return None
    elif fitted is not None:
        names = getattr(fitted, "feature_names_in_", None)
        known_columns = None if names is None else [str(name) for name in names]
        plain = fitted.table_ is None
        model = {"encoder": fitted.table_, "numbers_only": plain, "columns": known_columns}
        table = read(file, memory_budget=memory_budget, **model)
    else:
        columns: dict[str, Any] = {OPTIONS[name]: column for name, column in asked.columns.items()}
        table = read(file, memory_budget=memory_budget, **columns)
        called = "X" if is_stream(file) else repr(str(file))
        warn_of_ids(table.left_out, f"choose the columns: mosaic.read({called}, columns=[…])")
        if table.encoder is not None:
            warn_of_left_out(table.encoder.left_out)
    found = {"groups": table.groups, "sample_weight": table.weights}
    values = replace(asked, **{name: found[name] for name in asked.columns})
    names = table if table.has_names else None
    return NamedRows(table.X, table.feature_names, table.encoder, names, values, file=table).with_roles(asked)


def _rows_of_anndata(X: Any, asked: ColumnArguments) -> NamedRows:
    """The rows of X.X, in memory or in a file, called by obs_names; groups and weights are columns of obs."""
    _check_columns(asked, [str(name) for name in X.obs.columns])
    source = open_source(X)
    values = replace(asked, **{parameter: X.obs[column].to_numpy() for parameter, column in asked.columns.items()})
    genes = [str(name) for name in X.var_names]
    return NamedRows(source, genes, None, RowNames(tuple(map(str, X.obs_names)), "obs_names"), values)


def warn_of_ids(names: list[str], remedy: str) -> None:
    if names:
        shown = ", ".join(map(repr, names))
        left_out = f"Column {shown} was" if len(names) == 1 else f"Columns {shown} were"
        fault = f"{left_out} not computed with, because of a name that ids have"
        warn(SelectionWarning(f"{fault}. If it holds a feature, {remedy}."))


def warn_of_left_out(left_out: Sequence[LeftOut]) -> None:
    """Warn of columns of a table that a user would expect to be compared, and are not."""
    surprising = [column for column in left_out if column.remedy is not None]
    if surprising:
        told = "; ".join(f"{column.name!r} {column.why} ({column.remedy})" for column in surprising)
        warn(SelectionWarning(f"Not compared: {told}. table_.describe() says how columns are compared."))


def rows_of_frame(estimator: Any, X: Any, *, reset: bool, asked: ColumnArguments = NO_ARGUMENTS) -> NamedRows | None:
    """The rows of a data frame as numbers; None where X is no data frame.

    Columns of numbers without missing values are taken as they are, unless there are others to compare them with. Otherwise
    every column has the rule of its kind, see ``mosaic.rows.encoder``.
    """
    there = column_names(X)
    if there is None:
        return None
    precomputed, table, row_names, given = getattr(estimator, "kernel", None) == "precomputed", None, None, asked
    if asked.columns:
        _check_columns(asked, there)
        X, values = split_columns(X, list(asked.columns.values()))
        asked = replace(asked, **dict(zip(asked.columns, values, strict=True)))
    if not reset:
        table = getattr(estimator, "table_", None)
    elif precomputed:
        row_names = names_of_frame(X)
    else:
        cells = cells_of(X)
        weights = None if asked.sample_weight is None else row_weights(asked.sample_weight, n_rows(X))
        table = encoder_of(cells, weights=weights if weights is not None and weights.any() else None)
        # Without a rule for columns, those of text are not compared.
        row_names = names_of_frame(X, list(cells) if table is None else [column.name for column in table.left_out])
    if table is not None:
        if not reset:
            cells = cells_of(X, table.names)
        else:
            table = table.with_texts(cells)
            warn_of_left_out(table.left_out)
        return NamedRows(table.encode(cells), table.names, table, row_names, asked).with_roles(given)
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    if reset and not precomputed:
        warn_of_ids(id_columns(X), "rename it, or pass an array: X.to_numpy()")
    X = numeric_part(without_empty(X) if reset else X, names=names, keep_ids=precomputed)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    found = getattr(estimator, "feature_names_in_", None)
    matrix = _checked(to_matrix(X), column_names(X))
    shown = None if found is None else [str(name) for name in found]
    return NamedRows(matrix, shown, None, row_names, asked).with_roles(given)


def _check_columns(asked: ColumnArguments, there: list[str]) -> None:
    """Refuse a name of a column that is not there."""
    for parameter, column in asked.columns.items():
        if column not in there:
            fault = f"names the column {column!r}, which X does not have"
            raise InvalidInputError(fault, f"{close_to(column, there)}It has {listed(there)}.", parameter=parameter)


def read_named(estimator: Any, X: Any, memory_budget: float | None, asked: ColumnArguments = NO_ARGUMENTS) -> NamedRows | None:
    """For fit: the rows of a file or a data frame, with groups and weights that are named as columns; None for all else."""
    read = rows_of_file(X, memory_budget, asked=asked)
    if read is None and not is_source(X):
        read = rows_of_frame(estimator, X, reset=True, asked=asked)
    if read is None and asked.columns:
        parameter, column = next(iter(asked.columns.items()))
        fault = f"names the column {column!r}, but X is a {type(X).__name__}, and neither a file nor a data frame in memory"
        raise InvalidInputError(fault, "Give one value for every row.", parameter=parameter)
    return read


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
            return _checked(X.rows, X.table.number_names)
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
    X = where_compared(X, getattr(estimator, "kernel", "rbf"))
    if not is_on_device(X):
        return read_rows(estimator, X, reset=reset)
    X = points_on_device(X)
    if reset:
        estimator.n_features_in_, estimator.table_ = X.shape[1], None
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        fault = f"has {X.shape[1]} features, the data of fit had {estimator.n_features_in_}"
        raise InvalidInputError(fault, "Pass the same columns.", parameter="X")
    return X


def without_scaling(settings: Settings, table: TableEncoder | None) -> Settings:
    """Columns of a table are not scaled again unless the user says so: how they became numbers says how they compare."""
    return settings if table is None or not is_auto(settings.scale) else replace(settings, scale=False)


def with_table(geometry: Geometry, table: TableEncoder | None, notes: Sequence[str] = ()) -> Geometry:
    """The same, with how the columns of a table are compared among the decisions, and what else is told of columns."""
    if table is None:
        return replace(geometry, decisions=(*notes, *geometry.decisions)) if notes else geometry
    first = 0 if geometry.prepare.scale is not None else 1  # "Columns are taken as they are."
    return replace(geometry, decisions=(*table.describe(), *geometry.decisions[first:]))


def _checked(matrix: Any, columns: list[str] | None) -> Any:
    """A finite matrix; sparse ones as CSR without two entries for one place."""
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    check_entries(matrix, columns)
    return matrix


def prepare_for(matrix: Any, sample_weight: ArrayLike | None, settings: Settings) -> Prepare:
    """For fit: what is done to rows before they are compared."""
    if settings.kernel == "precomputed" and matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"a precomputed similarity must be square; got shape {matrix.shape}",
            "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
        )
    weights = None if sample_weight is None else row_weights(sample_weight, matrix.shape[0])
    if weights is not None and not weights.all() and weights.any():
        matrix, weights = rows_of(matrix, weights > 0), weights[weights > 0]
    return preparation_of(matrix, weights if weights is not None and weights.any() else None, settings)


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    check_seed(random_state)
    raise AssertionError("all that check_seed lets pass is read above")
