"""From columns to a table: the features as numbers, groups, weights and ids; and what may be wrong with their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray
from mosaic._files import Library
from mosaic.data.faults import FileFault, unknown_name
from mosaic.data.features import (
    Layout,
    Request,
    all_different,
    check_weight,
    is_list,
    is_text,
    lay_out,
    without_categories,
)
from mosaic.data.missing import MissingNumbers, Place, kept_rows
from mosaic.data.parquet import ParquetRecords, ParquetSource, converted, matrix_of
from mosaic.data.records import Columns, InMemory, Records, place_of
from mosaic.data.scratch import Scratch
from mosaic.data.sources import SelectedRows
from mosaic.data.table import Table

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")


def table_in_memory(
    request: Request,
    records: InMemory,
    notes: Sequence[str] = (),
    check_cells: Callable[[Layout, Any], None] | None = None,
    index: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> Table:
    """A table of columns in memory.

    Parameters
    ----------
    request : what the user asks for
    records : the columns
    notes : what was assumed so far
    check_cells : of a text file, refuses text that is mostly numbers
    index, categories : columns that the file itself says name rows, and those that stand for categories
    """
    memory = records.table
    layout = lay_out(request, memory.schema, lambda name: all_different(memory.column(name)), index, categories)
    if request.id is not None:
        check_ids(request, records, memory.column(request.id))
    refuse_text(request, layout, memory, check_cells)
    seen = FeatureRows(request, layout, records.place, records.n)
    X = seen.see(memory.select(layout.features)) if layout.features else np.zeros((records.n, 0))
    dropped = seen.missing.dropped
    if len(dropped):
        X = X[kept_rows(records.n, dropped)]
    return _finished(request, records, layout, X, seen, notes)


def table_of_parquet(
    request: Request,
    records: ParquetRecords,
    layout: Layout,
    seen: FeatureRows | None = None,
    notes: Sequence[str] = (),
    scratch: Scratch | None = None,
) -> Table:
    """A table whose rows stay in Parquet files. Missing numbers are left to the fit, unless rows are to be left out.

    Parameters
    ----------
    request, records : what the user asks for, and the rows
    layout : what the columns are for
    seen : what is known about the features, if all rows were looked at already
    notes : what was assumed so far
    scratch : the temporary folder that the files are in
    """
    if request.id is not None:
        layout.notes.append(
            f"Whether the values of {request.id!r} are all different was not checked in a file of this size."
        )
    if seen is None:
        seen = FeatureRows(request, layout, records.place, records.n)
        if layout.features and (request.drop_missing or request.embedding is not None):
            for batch in records.batches(layout.features):
                seen.see(batch)
    X: Any = np.zeros((records.n, 0))
    if layout.features:
        X = ParquetSource(request.kind, records.files, layout.features, seen.width)
        X.owner = scratch
        if len(seen.missing.dropped):
            X = SelectedRows(X, seen.missing.dropped)
        if scratch is not None and 8.0 * X.n * X.n_features <= request.budget / 4:
            X = X.read(0, X.n)
    return _finished(request, records, layout, X, seen, notes, scratch)


def table_by_conversion(
    request: Request,
    layout: Layout,
    batches: Iterator[Any],
    expected: float,
    *,
    schema: Any = None,
    shown: Callable[[Any], Any] | None = None,
    line: Callable[[int], int | None] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """A table of a file that is read only from its beginning to its end: it is converted to a temporary Parquet file first.

    Parameters
    ----------
    request : what the user asks for
    layout : what the columns are for
    batches : all rows
    expected : bytes that they will take, roughly
    schema, shown : the columns as they are shown, and how they are made of those in the batches
    line : of a row number, the line in a text file
    notes : what was assumed so far
    """
    seen = FeatureRows(request, layout, lambda number: place_of(number, line))

    def looked_at() -> Iterator[Any]:
        for batch in batches:
            if layout.features and batch.num_rows:
                seen.see(batch.select(layout.features))
            yield batch

    files, scratch = converted(request, looked_at(), expected)
    try:
        records = ParquetRecords(files, schema, shown, line)
        said = f"The file is large: its {files.n:,} rows were converted to a temporary Parquet file."
        return table_of_parquet(request, records, layout, seen, [*notes, said], scratch)
    except BaseException:
        scratch.close()
        raise


class FeatureRows:
    """Looks at the features of all rows, block by block: lists must be equally long, numbers must be there.

    Attributes
    ----------
    missing : which rows are left out because numbers are missing in them
    width : length of the lists of an embedding, None without one
    """

    def __init__(self, request: Request, layout: Layout, place: Place, n: int | None = None):
        names = None if request.embedding is not None else layout.features
        self.missing = MissingNumbers(request, names, place)
        self.width: int | None = None
        self._request, self._place, self._n = request, place, n

    def see(self, data: Any) -> FloatArray:
        """The features of some rows, those after the rows that were seen before, as a matrix."""
        if self._request.embedding is not None:
            self.width = self._length(data.column(0), self._request.embedding, self.missing.seen)
        rows = matrix_of(data)
        self.missing.see(rows, self._n)
        return rows

    def _length(self, column: Any, name: str, first: int) -> int:
        """How many numbers the lists of a column hold, all of them the same number."""
        request, kind = self._request, column.type
        if not is_list(kind):
            raise FileFault(
                request.path,
                f"holds {kind}, no lists of numbers (`embedding`)",
                "Name a column of lists, or give the numbers in a file of their own with `embeddings`.",
                column=name,
            )
        if not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
            raise FileFault(
                request.path,
                f"holds lists of {kind.value_type}, not of numbers (`embedding`)",
                "Name another column.",
                column=name,
            )
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False))
        length = int(lengths[0]) if self.width is None else self.width
        odd = np.flatnonzero((lengths != length) | (lengths <= 0))
        if len(odd):
            row, found = int(odd[0]), int(lengths[odd[0]])
            said = "has no list" if found < 0 else f"has {found:,} numbers"
            raise FileFault(
                request.path,
                f"{said}, other rows have {length:,}" if found != length else f"{said} in its list",
                "All lists of an embedding must have the same length, at least 1. Compute it again for this row.",
                column=name,
                **self._place(first + row),
            )
        return length


def refuse_text(
    request: Request, layout: Layout, table: Any, check_cells: Callable[[Layout, Any], None] | None = None
) -> None:
    """Refuse columns of text that should be numbers, in text files because of a single cell; and a lack of features."""
    if check_cells is not None:
        check_cells(layout, table)
    exact = [name for name in layout.texts if name in (request.columns or ())]
    if exact:
        raise FileFault(
            request.path,
            "holds text, no numbers (`columns`)",
            "Convert it to numbers and write the file again; text needs an embedding (`embedding` or `embeddings`).",
            column=exact[0],
        )
    if layout.nothing is not None:
        raise layout.nothing


def check_ids(request: Request, records: Records, column: Any) -> None:
    """Refuse ids that the user names and that do not tell rows apart."""

    def fault(said: str, row: int) -> FileFault:
        remedy = "Correct it, or name a column whose values are all different."
        return FileFault(request.path, f"{said} (`id`)", remedy, column=request.id, **records.place(row))

    column = without_categories(column)
    missing = pc.is_null(column)
    if is_text(column.type):
        missing = pc.or_(missing, pc.equal(pc.fill_null(column, ""), ""))
    row = pc.index(missing, True).as_py()
    if row >= 0:
        raise fault("has no value", row)
    if pc.count_distinct(column).as_py() == len(column):
        return
    first_rows: dict[Any, int] = {}
    for number, value in enumerate(column.to_pylist()):
        if value in first_rows:
            first = records.place(first_rows[value])
            where = first["where"] if "where" in first else f"line {first['line']:,}"
            raise fault(f"{str(value)!r} is also the id of {where}", number)
        first_rows[value] = number


def check_beside(request: Request, table: Any, what: str, remedy: str) -> None:
    """Refuse columns beside an array that are not there, and a choice among the columns of the array.

    Parameters
    ----------
    request : what the user asks for
    table : the columns beside the array
    what : one of them is called
    remedy : where columns of the array are chosen
    """
    if request.columns is not None or request.exclude_columns is not None or request.embedding is not None:
        raise FileFault(
            request.path,
            "its numbers are an array, of which no columns are chosen (`columns`, `exclude_columns`, `embedding`)",
            remedy,
        )
    for column, parameter in request.roles.items():
        if column not in table.column_names:
            raise unknown_name(request.path, what, column, table.column_names, parameter)
    check_weight(request, {field.name: field.type for field in table.schema})
    if request.id is not None:
        check_ids(request, InMemory(table), table.column(request.id))


def add_groups_and_weights(table: Table, request: Request, records: Columns) -> None:
    """Give a table the values of the columns of groups and weights, for the rows that were not left out."""
    kept = table.numbers(np.arange(table.n)) if table.n_dropped else None
    if request.group is not None:
        groups = np.concatenate([_group_values(batch.column(0)) for batch in records.batches([request.group])])
        table.groups = groups if kept is None else groups[kept]
    if request.weight is not None:
        batches = records.batches([request.weight])
        weights = np.concatenate([matrix_of(batch).ravel().astype(np.float64) for batch in batches])
        table.weights = _checked_weights(request, records, weights, np.arange(len(weights)) if kept is None else kept)


def _group_values(column: Any) -> Any:
    """Of every row the group that it belongs to, as text; the same for 1 and 1.0."""
    whole = (int(v) if isinstance(v, float) and v.is_integer() else v for v in column.to_pylist())
    return np.array(["" if value is None else str(value) for value in whole], dtype=np.str_)


def _checked_weights(request: Request, records: Records, weights: FloatArray, kept: IntArray) -> FloatArray:
    odd = kept[~(np.isfinite(weights[kept]) & (weights[kept] >= 0))]
    if len(odd):
        row = int(odd[0])
        value = "is missing" if np.isnan(weights[row]) else f"is {weights[row]:g}"
        raise FileFault(
            request.path,
            f"a weight {value} (`weight`)",
            "Weights are finite numbers, 0 or larger. Correct it, or name another column.",
            column=request.weight,
            **records.place(row),
        )
    return weights[kept]


def _finished(
    request: Request,
    records: Columns,
    layout: Layout,
    X: Any,
    seen: FeatureRows,
    notes: Sequence[str],
    scratch: Scratch | None = None,
) -> Table:
    notes = [*notes, *layout.notes]
    names: list[str] | None = layout.features
    if request.embedding is not None:
        width = X.n_features if hasattr(X, "n_features") else X.shape[1]
        notes.append(f"The numbers are those of column {request.embedding!r}, {width:,} for each row.")
    if request.embedding is not None or request.elsewhere:
        names = None
    table = Table(
        request.path,
        request.kind,
        X,
        records,
        feature_names=names,
        id_name=layout.id_name,
        notes=[*notes, *seen.missing.notes(records.n)],
        dropped=seen.missing.dropped,
        left_out=layout.ids,
        clean=None if scratch is None else scratch.close,
    )
    add_groups_and_weights(table, request, records)
    return table
