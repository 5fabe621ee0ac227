"""What all fitted estimators have: attributes that read the selection, answers for new rows, and how they are shown and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from os import PathLike
from typing import Any, overload

import numpy as np
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_double
from mosaic.arrays.sources import Source
from mosaic.arrays.xp import on_host, rows_of, to_device_of
from mosaic.choosing import (
    ColumnReason,
    Decisions,
    Explanation,
    Question,
    Selection,
    columns_of,
    explain_rows,
    odd_columns,
)
from mosaic.choosing.answers import answers_by_pass, answers_task, places_at
from mosaic.choosing.certificate import counted
from mosaic.choosing.explain import warnings_of, why_odd
from mosaic.estimators.fit import numbers_of
from mosaic.estimators.progress import Callbacks, computing_in_threads
from mosaic.exceptions import warn
from mosaic.facts import Facts
from mosaic.parameters import PAIRWISE
from mosaic.rows import Encoder, Rows
from mosaic.rows.arrays import owner_of
from mosaic.rows.frames import cells_of
from mosaic.rows.names import RowNames, as_row
from mosaic.rows.tables import InMemory
from mosaic.text import html_card, html_table, library


class Known(property):
    """An attribute that is known without computing."""


def known(path: str) -> Any:
    """A property that reads this of the selection, where nothing is computed."""
    read = attrgetter(path)
    return Known(lambda self: read(self._found))


def found(path: str, *, per_row: bool = False) -> Any:
    """A property that reads this of the selection; ``per_row``: as an array of the library, and on the device, of the data."""
    read = attrgetter(path)

    def get(self: FittedAttributes) -> Any:
        value = read(self._found)
        return to_device_of(getattr(self._found.kernel, "X", value), value) if per_row else value

    return property(get)


@dataclass(frozen=True)
class NewRows:
    """What a model says about new rows, one entry of each for each row."""

    #: Row of the fitted data that stands for it; -1 for rejected outliers, and if the model has no representatives.
    representative: IntArray
    #: To that representative; NaN without one.
    similarity: FloatArray
    #: Share of it that the representatives cannot express; NaN if the model has none.
    representation_error: FloatArray
    #: How many rows of the data look like it, of those that it is compared with, itself included.
    effective_count: FloatArray
    is_outlier: BoolArray
    #: Why it is an outlier, None for other rows.
    reason: list[str | None]
    #: What X was, for ``to_frame``: the library of the data frame, and its index in pandas.
    frames: str = "pandas"
    index: Any = None

    def __len__(self) -> int:
        return len(self.representative)

    def __repr__(self) -> str:
        return f"{counted(len(self), 'new row')}, {counted(int(self.is_outlier.sum()), 'outlier')}; to_frame() is the table."

    def _columns(self, rows: slice = slice(None)) -> dict[str, Any]:
        return {
            each.name: getattr(self, each.name)[rows]
            for each in fields(self)
            if each.name not in ("frames", "index")
        }

    def to_frame(self) -> Any:
        """A data frame with one row for each new row: of polars if X was, otherwise of pandas, with the index of X."""
        frames = library(self.frames, "to_frame()")
        if self.frames == "polars":
            more = {"schema_overrides": {"reason": frames.String}}
        else:
            more = {"index": self.index}
        return frames.DataFrame(self._columns(), **more)

    def _repr_html_(self) -> str:
        def shown(cell: object) -> object:
            if cell is None or cell != cell:
                return ""
            return f"{cell:.3g}" if isinstance(cell, float) else cell

        most = 20
        columns = self._columns(slice(most))
        cells = (map(shown, column) for column in columns.values())
        table = html_table(
            [name.replace("_", " ") for name in columns], list(zip(*cells, strict=True))
        )
        return html_card(repr(self), table, text=[f"The first {most}:"] if len(self) > most else [])


@computing_in_threads
class FittedAttributes(Callbacks):
    """Attributes of a fitted estimator, read from its ``selection_``. None exist before ``fit``, as scikit-learn expects."""

    selection_: Selection
    encoder_: Encoder
    kernel: Any
    _facts: Facts | None = None

    # The attributes are described in the classes that have them.
    row_names_: RowNames | None = known("data.row_names")
    effective_count_: FloatArray = found("effective_count", per_row=True)
    outlier_probability_: FloatArray = found("outlier_probability", per_row=True)
    is_outlier_: BoolArray = found("outlier_mask", per_row=True)
    gamma_: float | None = known("data.geometry.gamma")
    column_scale_: FloatArray | None = known("data.geometry.prepare.scale")

    @property
    def _found(self) -> Selection:
        if not hasattr(self, "selection_"):
            raise AttributeError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
            )
        return self.selection_

    @property
    def facts_(self) -> Facts:
        """Picks, outliers, certificate, curve, map and decisions as plain data, computed when they are first read."""
        selection = self._found
        if self._facts is None or self._facts.selection is not selection:
            self._facts = Facts(self)
        return self._facts

    def save(self, path: str | PathLike[str], *, table: object = None, force: bool = False) -> None:
        """Write the fitted model to a file that ``mosaic.load`` reads, in any process: numbers and JSON, no pickle.

        Parameters
        ----------
        path : of the file, by custom ending in .mosaic; ``force`` replaces what is there
        table : the table of ``fit``, from ``mosaic.read``. Names of its rows and cells of picks and outliers are kept
            for ``mosaic explain`` and ``mosaic report``

        Notes
        -----
        1. The file holds the rows that the model has in memory. Kernels that are functions cannot be saved.
        2. After a fit by passes, ``certificate_`` and ``labels_`` are kept if they were read before; the rows are not.
        3. ``mosaic.load`` has an example.
        """
        from mosaic.estimators.saving import save  # it imports the estimators

        check_is_fitted(self)
        save(self, path, table=table, force=force)

    @overload
    def explain(self, i: None = None) -> Decisions: ...

    @overload
    def explain(self, i: int | str) -> Explanation: ...

    def explain(self, i: int | str | None = None) -> Decisions | Explanation:
        """Why row i of the data was chosen, rejected or left out; without a row, the decisions about the data, and the reasons.

        A row is given by its number or, as text, by its name (``row_names_``).

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> print(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).explain())  # doctest: +ELLIPSIS
        Columns are taken as they are.
        Bandwidth ...: so that a point in a dense place resembles 80 of 400 points, a fifth of all.
        20 representatives: the number that was given.
        Chosen so that the rows that belong are as similar as possible to the nearest representative.
        8 outliers: too few similar rows. On clean data this rule rarely flags more than 1 %.
        """
        check_is_fitted(self)
        if i is None:
            return self.selection_.decisions
        columns = columns_of(self.selection_, self.encoder_)
        return explain_rows(self.selection_, [as_row(i, self.row_names_)], columns)[0]

    def explain_new(self, X: object) -> NewRows:
        """Which representative stands for each new row, how similar it is, whether the row is an outlier, and why.

        X is as for ``predict``; large files are read in passes. There is an entry for each row in ``representative``,
        ``similarity``, ``representation_error``, ``effective_count``, ``is_outlier`` and ``reason``; notebooks show a table, and
        ``to_frame()`` gives one, of polars if X was, otherwise of pandas.

        Examples
        --------
        >>> import pandas as pd
        >>> from mosaic import MOSAIC, datasets
        >>> points = pd.DataFrame(datasets.blobs_with_gross_outliers().X, columns=["x", "y"])
        >>> new = MOSAIC(5).fit(points).explain_new(pd.DataFrame({"x": [2.5, 2.5], "y": [0.0, 99.0]}))
        >>> new.is_outlier.tolist(), int(new.representative[1])
        ([False, True], -1)
        >>> print(new.reason[1])  # doctest: +ELLIPSIS
        y 99, usual ... to .... No other row looks like it.
        """
        check_is_fitted(self)
        selection = self.selection_
        rows = Rows.of(X, memory_budget=selection.settings.memory_budget)
        numbers = numbers_of(self, rows)
        label, similarity, error, count, flagged = answers(selection, numbers, places_at).T
        is_outlier = flagged > 0
        if hasattr(self, "offset_") and selection.cut.count <= 0:
            # Only new rows that score well below all of the data are outliers.
            is_outlier = count < float(np.exp(self.offset_))
        odd = np.flatnonzero(is_outlier)
        reasons = self._odd_columns_of(rows, numbers, odd)
        reason: list[str | None] = [None] * len(count)
        for number, columns in zip(odd.tolist(), reasons, strict=True):
            said = why_odd(selection, float(count[number]), columns)
            reason[number] = said if columns else f"{said[0].upper()}{said[1:]}"
        picks = np.append(selection.rows, -1)
        owner = owner_of(X)
        return NewRows(
            picks[label.astype(np.intp)],
            similarity,
            error if len(selection.rows) else similarity,  # NaN
            count,
            is_outlier,
            reason,
            frames="polars" if owner == "polars" else "pandas",
            index=getattr(X, "index", None) if owner == "pandas" else None,
        )

    def _odd_columns_of(self, rows: Rows, numbers: Any, odd: IntArray) -> list[list[ColumnReason]]:
        """For each outlier among new rows, which have these numbers, the columns that make it one; none if they have no names."""
        selection = self.selection_
        encoder = replace(self.encoder_, texts={})
        names = encoder.names if encoder.has_rules else []
        columns = columns_of(selection, with_cells(encoder, rows, odd, names))
        if columns is None or selection.usual is None or not len(odd):
            return [[] for _ in odd]
        found = numbers.take(odd) if isinstance(numbers, Source) else rows_of(numbers, odd)
        Y = in_double(selection.data.geometry.prepare(on_host(found)))
        return odd_columns(selection, columns, Y, odd, np.full(len(odd), -1))

    def plot(self) -> Any:
        """Draw the map of neighbours beside the coverage curve, and return both axes; of a detector, the histogram of counts.

        It needs matplotlib; ``mosaic.show`` has each of the figures: ``left, right = MOSAIC(20).fit(X).plot()``.
        """
        check_is_fitted(self)
        from mosaic.show.figures import plot_model  # only figures need it

        return plot_model(self)

    def _warn(self) -> None:
        for sentence in warnings_of(self.selection_):
            warn(sentence)

    def _html_repr(self) -> str:
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "selection_"):
            return diagram
        return self.facts_.card() + diagram

    def _get_fitted_attr_html(self, doc_link: str = "") -> str:
        return ""  # the diagram would read all attributes, of which some take long; the card has what matters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel in PAIRWISE
        tags.input_tags.sparse = True
        return tags


def ask(model: FittedAttributes, X: Any, question: Question, none: Any = None) -> Any:
    """The answers of the model's selection for the rows of X, which are read in passes where they are large. ``none`` is the
    answer for no rows: with it, the answers for a Dask array are a Dask array.
    """
    is_dask_array = owner_of(X) == "dask" and hasattr(X, "map_blocks") and X.ndim == 2
    if none is None or not is_dask_array:
        return answers(model.selection_, numbers_of(model, X), question)
    from mosaic.rows.dask import answers_of_chunks

    numbers_of(model, np.zeros((1, X.shape[1])))  # refuses other columns than those of fit
    return answers_of_chunks(X, answers_task(model.selection_, question), none)


def answers(selection: Selection, numbers: Any, question: Question) -> Any:
    if not isinstance(numbers, Source):
        return question(selection, selection.data.geometry.prepare(numbers))
    return answers_by_pass(selection, question, numbers.run, numbers.names)


def explain_model(
    model: FittedAttributes, rows: Sequence[int], file: Rows | None
) -> list[Explanation]:
    """What ``model.explain`` says about some rows of fit; ``file`` is their table, which numbers and names them."""
    selection = model.selection_
    encoder = model.encoder_
    if selection.is_sampled and file is not None:  # rare values and texts are read from the file
        encoder = with_cells(encoder, file, np.array(rows, np.intp))
    return explain_rows(selection, rows, columns_of(selection, encoder), file)


def with_cells(
    encoder: Encoder, rows: Rows, numbers: IntArray, columns: Sequence[str] | None = None
) -> Encoder:
    """How columns become numbers, with the cells of some rows, by default of columns that cannot be read from their code."""
    columns = encoder.unreadable if columns is None else columns
    if not columns or not len(numbers):
        return encoder
    numbers = np.unique(numbers)
    if isinstance(rows.table, InMemory):
        return encoder.with_texts(rows.table.cells(columns).some(numbers), numbers)
    return encoder.with_texts(cells_of(rows.cells(numbers, columns)), numbers)
