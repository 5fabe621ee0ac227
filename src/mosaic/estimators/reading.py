"""What the estimators do with the data before anything else: read it, and check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from mosaic.arrays.blocks import IntArray, Prepare
from mosaic.arrays.sources import LocalSource, Source
from mosaic.arrays.xp import is_on_device, rows_of
from mosaic.choosing import Geometry, Settings, is_auto, preparation_of
from mosaic.door import as_weights, canonical, check_entries, points_on_device, refuse_masked
from mosaic.exceptions import InvalidInputError, SelectionWarning, warn
from mosaic.kernels import to_kernel_device
from mosaic.parameters import check_seed
from mosaic.rows import Rows, is_source, open_source, read
from mosaic.rows.arrays import owner_of
from mosaic.rows.encoder import LeftOut, TableEncoder, encoder_of, not_compared, rule_of
from mosaic.rows.faults import close_to
from mosaic.rows.frames import cells_of
from mosaic.rows.names import RowNames, names_of_frame
from mosaic.rows.roles import without
from mosaic.text import listed

#: Arguments of ``fit`` that may name a column: what the reader of files calls it, and what it is for.
ROLES = {"groups": ("group", "the group of each row"), "sample_weight": ("weight", "how often each row counts")}
#: How scikit-learn reads an array.
ARRAY = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}


@dataclass(frozen=True)
class ColumnArguments:
    """Arguments of ``fit`` that are given for every row, or as the name of a column: groups and weights."""

    groups: Any = None
    sample_weight: Any = None

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns that are named, by parameter: a list of different texts names columns, since some labels would repeat."""
        named = {name: [str(value)] for name in ROLES if isinstance(value := getattr(self, name), str)}
        some = self.groups if isinstance(self.groups, list | tuple) else []
        if len(some) and all(isinstance(text, str) for text in some) and len(set(some)) == len(some):
            named["groups"] = list(some)
        return named

    def values_in(self, columns: Mapping[str, Any]) -> ColumnArguments:
        """The values of the columns that are named; a name that is not there is refused."""
        found: dict[str, Any] = {}
        for parameter, names in self.columns.items():
            for column in names:
                if column not in columns:
                    fault = f"names the column {column!r}, which X does not have"
                    there = list(columns)
                    raise InvalidInputError(fault, f"{close_to(column, there)}It has {listed(there)}.", parameter=parameter)
            values = [columns[column].to_numpy() for column in names]
            found[parameter] = values[0] if len(values) == 1 else np.stack([each.astype(object) for each in values], axis=1)
        return replace(self, **found)


NO_ARGUMENTS = ColumnArguments()


class ReadRows(NamedTuple):
    """What X is, asked once: its rows, in memory or not, and all that is known of them.

    rows : an array, a sparse matrix, or what ``open_source`` takes
    names : names of the columns that they come from
    encoder : how these became numbers; None where they are numbers as they are
    row_names : names of the rows, or the open file that has them
    arguments : groups and weights, as values
    notes : sentences on columns that are not compared because of their role, where ``encoder`` does not say so
    file : the open file
    source : the rows as a source, where they are read in passes
    given : X
    """

    rows: Any
    names: list[str] | None = None
    encoder: TableEncoder | None = None
    row_names: RowNames | Rows | None = None
    arguments: ColumnArguments = NO_ARGUMENTS
    notes: tuple[str, ...] = ()
    file: Rows | None = None
    source: Source | None = None
    given: Any = None

    def with_roles(self, given: ColumnArguments) -> ReadRows:
        left_out = [LeftOut(column, ROLES[name][1]) for name, columns in given.columns.items() for column in columns]
        if self.encoder is None:
            return self._replace(notes=tuple(not_compared(left_out)))
        return self._replace(encoder=replace(self.encoder, left_out=(*self.encoder.left_out, *left_out)))

    def within_budget(self, settings: Settings) -> Settings:
        """The settings, with what a file in memory leaves of the memory budget."""
        held = 0.0 if self.file is None else self.file.held
        if not held or settings.memory_budget is None:  # what is held is not free any more
            return settings
        return replace(settings, memory_budget=max(settings.memory_budget - held, 1.0))

    def names_of_rows(self, rows: IntArray | None = None) -> RowNames | None:
        return self.row_names.row_names(rows) if isinstance(self.row_names, Rows) else self.row_names


def rows_of_file(
    file: Any, memory_budget: float | None = None, fitted: Any = None, asked: ColumnArguments = NO_ARGUMENTS
) -> ReadRows | None:
    """The rows of a path, an open table or AnnData; None for all else. New rows become numbers as in the fit of ``fitted``."""
    if owner_of(file) == "anndata" and hasattr(file, "obs_names"):
        # The rows of X.X, in memory or in a file, called by obs_names; groups and weights are columns of obs.
        values = asked.values_in({str(name): column for name, column in file.obs.items()})
        row_names = RowNames(tuple(map(str, file.obs_names)), "obs_names")
        return ReadRows(open_source(file), [str(name) for name in file.var_names], None, row_names, values)
    if isinstance(file, Rows):
        rows = file
        known = {"groups": rows.group_name, "sample_weight": rows.weight_name}
        for parameter, named in asked.columns.items():
            if (column := ", ".join(named)) != known[parameter]:
                remedy = f"Open it with mosaic.read({str(rows.path)!r}, {ROLES[parameter][0]}={column!r})."
                fault = f"names the column {column!r}, which was not read for this"
                raise InvalidInputError(fault, remedy, parameter=parameter)
    elif not isinstance(file, (str, PathLike)):
        return None
    elif fitted is not None:
        features = getattr(fitted, "feature_names_in_", None)
        columns = None if features is None else [str(name) for name in features]
        rows = read(file, memory_budget=memory_budget, encoder=fitted.table_, numbers_only=fitted.table_ is None, columns=columns)
    else:
        roles: dict[str, Any] = {ROLES[name][0]: names if name == "groups" else names[0] for name, names in asked.columns.items()}
        rows = read(file, memory_budget=memory_budget, **roles)
        _warn_of_left_out(rows.left_out)
    found = {"groups": rows.groups, "sample_weight": rows.weights}
    values = replace(asked, **{name: found[name] for name in asked.columns})
    names = rows if rows.has_names else None
    return ReadRows(rows.X, rows.feature_names, rows.encoder, names, values, file=rows).with_roles(asked)


def _warn_of_left_out(columns: Sequence[LeftOut]) -> None:
    surprising = [f"{column.name!r} {column.why} ({column.remedy})" for column in columns if column.remedy is not None]
    if surprising:
        warn(SelectionWarning(f"Not compared: {'; '.join(surprising)}."))


def rows_of_frame(estimator: Any, X: Any, *, reset: bool, asked: ColumnArguments = NO_ARGUMENTS) -> ReadRows | None:
    """The rows of a data frame as numbers; None where X is no data frame. ``mosaic.rows.encoder`` has the rules."""
    cells = cells_of(X)
    if cells is None:
        return None
    if not reset:
        encoder = getattr(estimator, "table_", None)
        if encoder is not None:
            return ReadRows(encoder.encode(cells.only(encoder.names)), encoder.names, encoder)
        known = getattr(estimator, "feature_names_in_", None)
        features = cells.features() if known is None else [str(name) for name in known]
        return ReadRows(cells.only(features).matrix(), None if known is None else features)
    values = asked.values_in(cells.columns)
    cells = cells.only([name for name in cells if not any(name in columns for columns in asked.columns.values())])
    if getattr(estimator, "kernel", None) == "precomputed":
        encoder, features, row_names = None, cells.numbers() or cells.features(), names_of_frame(cells)
    else:
        weights = None if values.sample_weight is None else as_weights(values.sample_weight, len(cells.frame))
        encoder = encoder_of(cells, weights=weights if weights is not None and weights.any() else None)
        # Without a rule for columns, those of text are not compared.
        row_names = names_of_frame(cells, list(cells) if encoder is None else [column.name for column in encoder.left_out])
        if encoder is not None:
            encoder = encoder.with_texts(cells)
            _warn_of_left_out(encoder.left_out)
            return ReadRows(encoder.encode(cells), encoder.names, encoder, row_names, values).with_roles(asked)
        features = cells.features()
        rules = [rule_of(name, cells[name]) for name in without(list(cells), features)]
        _warn_of_left_out([rule for rule in rules if isinstance(rule, LeftOut)])
        features = [name for name in features if not cells[name].missing.all()] or features
    named = all(isinstance(cells.columns[name].name, str) for name in features)
    matrix = cells.only(features).matrix()
    return ReadRows(matrix, features if named else None, None, row_names, values).with_roles(asked)


def read_for_fit(estimator: Any, X: Any, memory_budget: float | None, asked: ColumnArguments) -> ReadRows:
    """What X is for fit, with groups and weights that are named as columns."""
    read = rows_of_file(X, memory_budget, asked=asked)
    if read is None and not is_source(X):
        read = rows_of_frame(estimator, X, reset=True, asked=asked)
    if read is None and asked.columns:
        parameter, (column, *_) = next(iter(asked.columns.items()))
        fault = f"names the column {column!r}, but X is a {type(X).__name__}, and neither a file nor a data frame in memory"
        raise InvalidInputError(fault, "Give one value for every row.", parameter=parameter)
    return (read or ReadRows(X, arguments=asked))._replace(given=X)


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A finite float matrix, dense or CSR. ``reset`` in fit; later the features must be those of fit.

    Data frames and files give their columns as numbers; ``table_`` of the estimator says how, None if as they are.
    """
    read = X if isinstance(X, ReadRows) else rows_of_file(X, fitted=None if reset else estimator)
    read = read or rows_of_frame(estimator, X, reset=reset) or ReadRows(X)
    if is_on_device(read.rows):
        return _rows_on_device(estimator, read.rows, reset=reset)
    refuse_masked(read.rows)
    names, encoder = read.names, read.encoder
    if not reset and encoder is None and getattr(estimator, "table_", None) is not None:
        fitted = ", ".join(map(repr, estimator.table_.names))
        raise InvalidInputError(f"X has no column names; fit was given a table with {fitted}", "Pass a data frame.")
    rows = read.rows.read(0, read.rows.n) if isinstance(read.rows, LocalSource) else read.rows
    known = None if reset or names is None else getattr(estimator, "feature_names_in_", None)
    if known is not None and list(known) != names:
        raise InvalidInputError(
            f"X has the columns {', '.join(map(repr, names or ()))}; those of fit were {', '.join(map(repr, known))}",
            "Write them in this order, or pass a data frame, whose columns are found by their names.",
        )
    matrix = validate_data(estimator, rows, reset=reset, **ARRAY) if known is None else check_array(rows, **ARRAY)
    if reset:
        estimator.table_ = encoder
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
            estimator.n_features_in_ = len(names)
    matrix = canonical(matrix) if sp.issparse(matrix) else matrix
    check_entries(matrix, names if encoder is None else encoder.number_names)
    return matrix


def _rows_on_device(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows of an array that stays on its device, if the kernel computes there; otherwise as a NumPy array."""
    X = to_kernel_device(X, getattr(estimator, "kernel", "rbf"))
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


def without_scaling(settings: Settings, encoder: TableEncoder | None) -> Settings:
    """Columns of a table are not scaled again unless the user says so: how they became numbers says how they compare."""
    return settings if encoder is None or not is_auto(settings.scale) else replace(settings, scale=False)


def with_encoder(geometry: Geometry, encoder: TableEncoder | None, notes: Sequence[str] = ()) -> Geometry:
    """The same, with how the columns of a table are compared among the decisions, and what else is told of columns."""
    if encoder is None:
        return replace(geometry, decisions=(*notes, *geometry.decisions)) if notes else geometry
    first = 0 if geometry.prepare.scale is not None else 1  # "Columns are taken as they are."
    return replace(geometry, decisions=(*encoder.describe(), *geometry.decisions[first:]), mixed=True)


def prepare_for(matrix: Any, sample_weight: ArrayLike | None, settings: Settings) -> Prepare:
    """For fit: what is done to rows before they are compared."""
    if settings.kernel == "precomputed" and matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"a precomputed similarity must be square; got shape {matrix.shape}",
            "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
        )
    weights = None if sample_weight is None else as_weights(sample_weight, matrix.shape[0])
    if weights is not None and not weights.all() and weights.any():
        matrix, weights = rows_of(matrix, weights > 0), weights[weights > 0]
    return preparation_of(matrix, weights if weights is not None and weights.any() else None, settings)


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31))
    check_seed(random_state)
    return int(random_state)
