"""Asking a fitted model about new rows, in memory or in passes: who stands for them, which are outliers, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_double
from mosaic.arrays.passes import BlockResult, PerRow, TakeRows
from mosaic.arrays.xp import on_host, rows_of
from mosaic.choosing import Explanation, RowLabels, Selection, columns_of, explain_rows, odd_columns, oddities
from mosaic.door import check_entries
from mosaic.estimators.reading import read_rows, rows_of_file
from mosaic.exceptions import InvalidInputError
from mosaic.rows import Rows, is_source, open_source
from mosaic.rows.encoder import TableEncoder
from mosaic.rows.frames import cells_of
from mosaic.sketch.sources import Source


@dataclass(frozen=True)
class Question:
    """One method of a selection that answers for prepared rows, as a function of the rows of a block."""

    selection: Selection
    name: str

    def __call__(self, rows: Any, start: int) -> BlockResult:
        """The answers for the rows of a block."""
        check_entries(rows, None, first_row=start)
        return {"answer": getattr(self.selection, self.name)(self.selection.material.geometry.prepare(rows))}


def ask(model: Any, X: Any, question: str) -> Any:
    """The answers of a method of the model's selection for the rows of X, which are read in passes where they are large."""
    source = source_of(model, X)
    if source is not None:
        return source.run(PerRow(Question(model.selection_, question)))["answer"]
    return getattr(model.selection_, question)(prepared(model, X))


def prepared(model: Any, X: Any) -> Any:
    """Rows in memory as the model compares them."""
    if isinstance(X, Rows) and model.table_ is None:
        _check_width(X.n_features, model.n_features_in_)
    return model.selection_.material.geometry.prepare(read_rows(model, X, reset=False))


def source_of(model: Any, X: Any) -> Source | None:
    """The source of rows that are read in passes, None for rows in memory. Its columns must be those of fit."""
    if isinstance(X, Rows):
        if not is_source(X.X):
            return None
        source, names = open_source(X.X, getattr(model, "n_jobs", None)), X.feature_names
    elif is_source(X):
        read = rows_of_file(X, fitted=model)
        source = open_source(X if read is None else read.rows, getattr(model, "n_jobs", None))
        names = None if source.names is None else list(source.names)
        names = names if read is None else read.names
    else:
        return None
    _check_width(source.n_features, model.n_features_in_ if model.table_ is None else model.table_.width)
    known = getattr(model, "feature_names_in_", None)
    source.names = names
    if known is not None and names is not None and list(known) != names:
        given, fitted = (", ".join(map(repr, some)) for some in (names, known))
        raise InvalidInputError(
            f"has the columns {given}; those of fit were {fitted}",
            "Write them in that order, or pass a data frame, whose columns are found by name.",
            parameter="X",
        )
    return source


def _check_width(given: int, fitted: int) -> None:
    if given != fitted:
        fault = f"has {given} columns of numbers, the data of fit had {fitted}"
        raise InvalidInputError(fault, "Pass the same columns.", parameter="X")


@dataclass(frozen=True)
class NewRows:
    """What a model says about new rows, one entry of each for each row.

    Attributes
    ----------
    representative : row of the fitted data that stands for it; -1 for rejected outliers, and if the model has no representatives
    similarity : to that representative; NaN without one
    representation_error : share of it that the representatives cannot express; NaN if the model has none
    effective_count : how many rows of the data look like it, of those that it is compared with, itself included
    is_outlier : whether it is an outlier
    reason : why it is an outlier, None for other rows
    """

    representative: IntArray
    similarity: FloatArray
    representation_error: FloatArray
    effective_count: FloatArray
    is_outlier: BoolArray
    reason: list[str | None] = field(repr=False)

    def __len__(self) -> int:
        return len(self.representative)


def explain_new(model: Any, X: Any) -> NewRows:
    """What the model says about the rows of X, see ``FittedAttributes.explain_new``."""
    check_is_fitted(model)
    selection: Selection = model.selection_
    source = source_of(model, X)
    if source is None:
        Y = prepared(model, X)
        found = selection.places_at(Y)

        def rows_at(numbers: IntArray) -> Any:
            return on_host(rows_of(Y, numbers))
    else:
        found = source.run(PerRow(Question(selection, "places_at")))["answer"]

        def rows_at(numbers: IntArray) -> Any:
            return selection.material.geometry.prepare(source.run(TakeRows(numbers))["rows"])

    label, similarity, error, count, flagged = found.T
    is_outlier = flagged > 0
    cut = selection.cut.count
    if hasattr(model, "offset_") and cut <= 0:  # only new rows that score well below all of the data are outliers
        cut = float(np.exp(model.offset_))
        is_outlier = count < cut
    picks = np.append(selection.rows, -1)
    reason: list[str | None] = [None] * len(found)
    for number, why in zip(np.flatnonzero(is_outlier), _reasons(model, X, source, rows_at, is_outlier), strict=True):
        reason[number] = f"{why}{_alike(float(count[number]), selection.material.count_total)}; the threshold is {cut:.3g}."
    return NewRows(picks[label.astype(np.intp)], similarity, error, count, is_outlier, reason)


def explain_model(model: Any, rows: Sequence[int], file: Rows | None = None) -> list[Explanation]:
    """What ``model.explain`` says about some rows of fit; ``file`` is their table, which numbers and names them."""
    selection: Selection = model.selection_
    table = model.table_
    if selection.is_sampled and file is not None:  # rare values and texts are read from the file
        table = with_cells(table, file, np.array(rows, np.intp))
    columns = columns_of(selection, table, getattr(model, "feature_names_in_", None))
    return explain_rows(selection, rows, columns, RowLabels(selection, file))


def _reasons(model: Any, X: Any, source: Source | None, rows_at: Callable[[IntArray], Any], is_outlier: BoolArray) -> list[str]:
    """For each outlier the columns in which it is odd, as the beginning of a sentence."""
    selection, odd = model.selection_, np.flatnonzero(is_outlier)
    columns = columns_of(selection, _texts(model, X, source, odd), getattr(model, "feature_names_in_", None))
    if columns is None or selection.usual is None or not len(odd):
        return [""] * len(odd)
    rows = np.asarray(in_double(rows_at(odd)))
    return [f"{oddities(some)}. " if some else "" for some in odd_columns(selection, columns, rows, odd)]


def with_cells(table: TableEncoder | None, file: Rows, rows: IntArray) -> TableEncoder | None:
    """How columns become numbers, with the cells of some rows of a file that cannot be read from their code."""
    if table is None or not table.unreadable or not len(rows):
        return table
    rows = np.unique(rows)
    return table.with_texts(cells_of(file.cells(rows)), rows)


def _texts(model: Any, X: Any, source: Source | None, odd: IntArray) -> TableEncoder | None:
    """How columns become numbers, with the cells of the new rows that cannot be read from their code."""
    table: TableEncoder | None = model.table_
    if table is None:
        return None
    if source is not None and isinstance(X, Rows):
        return with_cells(replace(table, texts={}), X, odd)
    if source is None and isinstance(X, Rows):
        return X.encoder  # type: ignore[no-any-return]
    cells = cells_of(X) if source is None else None
    if cells is not None:
        return table.with_texts(cells)
    return replace(table, texts={})


def _alike(count: float, total: float) -> str:
    shown = f"{count:.3g}"
    if shown == "1":
        return "No row of the data looks like it"
    return f"{shown} of {total:,.0f} rows look like it, itself included"
