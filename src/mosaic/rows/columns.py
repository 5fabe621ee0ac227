"""From columns to a table: the features as numbers, groups, weights and ids; and what may be wrong with their values."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._frames import is_feature_name, row_major
from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.rows.cells import cells_of
from mosaic.rows.encoded import CellsOfTable, EncodedRows
from mosaic.rows.faults import FileFault
from mosaic.rows.features import (
    Layout,
    Request,
    all_different,
    check_names,
    check_weight,
    column_is_gone,
    is_list,
    is_text,
    lay_out,
    nothing_left,
    without_categories,
)
from mosaic.rows.mixed import LeftOut, TableEncoder, encoder_of, rule_of
from mosaic.rows.table import InMemory, Records, Table, shape_of
from mosaic.rows.writing import Scratch
from mosaic.text import Library, listed

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

#: Numbers of an array that are looked at together.
NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class TextColumns:
    """What the reader of a text file knows about its columns.

    Attributes
    ----------
    notes : what was assumed when they were read
    codes : columns of text that are no numbers, whatever they look like
    told : columns of which the notes say already that some cells are no numbers
    check : refuses those of some columns of text that are numbers but for some cells
    """

    notes: Sequence[str] = ()
    codes: Sequence[str] = ()
    told: Sequence[str] = ()
    check: Callable[[list[str]], None] = lambda names: None


NO_TEXT = TextColumns()


def table_in_memory(request: Request, records: InMemory, text: TextColumns = NO_TEXT) -> Table:
    """A table of columns in memory.

    Parameters
    ----------
    request : what the user asks for
    records : the columns
    text : of a text file, what its reader knows about the columns
    """
    memory = records.table
    layout = lay_out(request, memory.schema, lambda name: _names_rows(name, memory.column(name)))
    if request.id is not None:
        check_ids(request, records, memory.column(request.id))
    seen = FeatureRows(request, layout.features, records.place, records.n)
    if request.drop_missing and layout.features:
        seen.see_columns(memory.select(layout.features))
    plain = _plain_numbers(request, layout, memory)
    if plain is not None:
        text.check(layout.found_id)
        seen.see(plain)
        return finished_table(request, records, layout, plain, seen, text.notes)
    kept = np.delete(np.arange(records.n), seen.dropped)
    encoder = None
    if layout.compared:
        cells = CellsOfTable(memory.take(kept) if len(kept) < records.n else memory, layout, text.codes)
        weights = None
        if request.weight is not None and request.encoder is None:
            weights = _checked_weights(request, records, _weights_of(memory.select([request.weight])), kept)
        encoder = found_encoder(
            request, layout, cells, lambda row: place_name(records.place(int(kept[row]))), text=text, weights=weights
        )
    if encoder is not None:
        # Passes take no weights.
        large = 8.0 * len(kept) * encoder.width > request.budget / 4 and request.weight is None
        rows = EncodedRows(request.kind, cells, encoder) if large else encoder.encode(cells)
        return finished_table(request, records, layout, rows, seen, text.notes, encoder.with_texts(cells))
    if not layout.features and not request.elsewhere:
        text.check(layout.found_id)
        raise nothing_left(request, layout)
    X: Any = np.zeros((records.n, 0))
    if layout.features:
        numbers = memory.select(layout.features)
        X = matrix_of(numbers.take(kept)) if request.drop_missing else seen.see_columns(numbers)
    return finished_table(request, records, layout, X, seen, text.notes)


def _plain_numbers(request: Request, layout: Layout, memory: Any) -> FloatArray | None:
    """The numbers of a table in which all that is compared is numbers without gaps; None where there is more to decide.

    It looks at all columns together, which is faster than one by one where there are thousands.
    """
    if request.encoder is not None or request.drop_missing or layout.levels or not layout.compared:
        return None
    if layout.compared != layout.features:
        return None
    numbers = matrix_of(memory.select(layout.features))
    return None if np.isnan(numbers).any() else numbers


def found_encoder(
    request: Request,
    layout: Layout,
    cells: CellsOfTable,
    place: Callable[[int], str],
    gaps: Collection[str] = (),
    text: TextColumns = NO_TEXT,
    weights: FloatArray | None = None,
) -> TableEncoder | None:
    """How the columns of a file become numbers; None where they are numbers that are taken as they are.

    Parameters
    ----------
    request, layout : what the user asks for, and what columns are for; is told what is compared and what is not
    cells : of rows that decide
    place : of a row number, what the row is called in notes
    gaps : columns of numbers of which some are missing, in whatever rows
    text : of a text file, what its reader knows about the columns
    weights : how often each row counts; None for once
    """
    weights = weights if weights is not None and weights.any() else None
    if request.encoder is not None:
        for name in request.encoder.names:
            if name not in layout.compared:
                raise column_is_gone(request, name)
        return request.encoder  # type: ignore[no-any-return]
    encoder = encoder_of(cells, layout.keep, place, text.told, weights)
    if encoder is None and gaps:
        encoder = TableEncoder.of(cells, keep=layout.keep, place=place, told=text.told, weights=weights)
    features = set(layout.features)
    others = [name for name in layout.compared if name not in features]
    left_out = [rule for name in others if isinstance(rule := rule_of(name, cells[name]), LeftOut)]
    if encoder is not None:
        encoder = encoder.with_gaps(gaps)
        left_out = list(encoder.left_out)
        layout.notes += encoder.describe()
    elif left_out:
        layout.notes.append(f"Not compared: {listed([f'{column.name} ({column.why})' for column in left_out])}.")
    text.check([*(column.name for column in left_out), *layout.found_id])
    return encoder


def place_name(place: dict[str, Any]) -> str:
    """Where a row is, in a sentence."""
    return str(place["where"]) if "where" in place else f"line {place['line']:,}"


def _names_rows(name: str, column: Any) -> bool:
    """Whether all values of a column are there and different, and are not numbers or dates that are written as text."""
    if not all_different(column):
        return False
    if not is_text(column.type) or not is_feature_name(name):
        return True
    (values,) = cells_of(pa.table({name: column})).values()
    return isinstance(rule_of(name, values), LeftOut)


def finished_table(
    request: Request,
    records: Records,
    layout: Layout,
    X: Any,
    seen: FeatureRows,
    notes: Sequence[str],
    encoder: TableEncoder | None = None,
    scratch: Scratch | None = None,
) -> Table:
    """A table of columns whose features are X.

    ``encoder`` has made them, None if they are numbers as they are; ``scratch`` is the temporary folder that it reads from.
    """
    notes = [*notes, *layout.notes]
    if request.embedding is not None:
        notes.append(f"The numbers are those of column {request.embedding!r}, {shape_of(X)[1]:,} for each row.")
    table = Table(
        request.path,
        request.kind,
        X,
        records,
        feature_names=None if request.embedding is not None or request.elsewhere else layout.features,
        encoder=encoder,
        id_name=layout.id_name,
        notes=[*notes, *seen.notes],
        dropped=seen.dropped,
        left_out=layout.ids,
        clean=None if scratch is None else scratch.close,
    )
    add_groups_and_weights(table, request, records)
    return table


class FeatureRows:
    """Looks at the features of all rows, block by block: numbers must be there, the lists of an embedding equally long.

    Missing and infinite numbers are refused, or their rows are left out.

    Parameters
    ----------
    request : says which of the two (``drop_missing``)
    names : of the features, None where they have none
    place : of a row number, where it is, as arguments of a fault
    n : number of all rows, where that is known

    Attributes
    ----------
    width : length of the lists of an embedding, None without one
    gaps : of the features, those of which some are missing
    """

    def __init__(
        self,
        request: Request,
        names: Sequence[str] | None,
        place: Callable[[int], dict[str, Any]],
        n: int | None = None,
    ):
        self._request, self._place, self._n = request, place, n
        self._names = None if request.embedding is not None else names
        self._dropped: list[IntArray] = []
        self._seen = 0
        self._fault: FileFault | None = None
        self.width: int | None = None
        self.gaps: set[str] = set()

    def see_columns(self, data: Any, later: bool = False) -> FloatArray:
        """Look at the features of the rows that come after those seen before, and return them as a matrix.

        With ``later``, missing numbers are refused when ``check`` is called, if it is.
        """
        if self._request.embedding is not None:
            first = self._seen
            self.width = _list_length(self._request, data.column(0), self.width, lambda row: self._place(first + row))
        rows = matrix_of(data)
        self.see(rows, later)
        return rows

    def see(self, rows: Any, later: bool = False) -> None:
        """Look at the rows that come after those seen before."""
        bad = bad_rows(rows)
        if len(bad) and not self._request.drop_missing:
            if self._fault is None:
                number, seen = self._seen + int(bad[0]), self._seen + rows.shape[0]
                self._fault = self._refused(rows[int(bad[0])], number, len(bad), seen)
            if not later:
                raise self._fault
            gone = np.isnan(rows[bad]).any(axis=0)
            self.gaps.update(name for name, is_gone in zip(self._names or (), gone, strict=False) if is_gone)
            bad = bad[:0]
        self._dropped.append(self._seen + bad)
        self._seen += rows.shape[0]

    def check(self) -> None:
        """Refuse missing and infinite numbers that were seen."""
        if self._fault is not None:
            raise self._fault

    @property
    def dropped(self) -> IntArray:
        """Numbers of the rows that are left out, in order. Refused if no row remains."""
        dropped = np.concatenate(self._dropped) if self._dropped else np.zeros(0, np.intp)
        if len(dropped) and len(dropped) == self._seen:
            raise FileFault(
                self._request.path,
                "every row has a missing or infinite number, so that none is left",
                "Leave out the columns that are empty with `exclude_columns`.",
            )
        return dropped

    @property
    def notes(self) -> list[str]:
        """What is said of the rows that were left out."""
        dropped = len(self.dropped)
        if not dropped:
            return []
        rows = "1 row was" if dropped == 1 else f"{dropped:,} rows were"
        return [f"{rows} left out of {self._seen:,}, because of missing or infinite numbers."]

    def _refused(self, row: Any, number: int, n_bad: int, n_seen: int) -> FileFault:
        values = (row.toarray() if sp.issparse(row) else np.asarray(row)).ravel()
        j = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "a number is missing" if np.isnan(values[j]) else "a number is infinite"
        among = "" if n_seen == self._n else f" of the first {n_seen:,}"
        others = f"; {n_bad:,} rows{among} have missing or infinite numbers" if n_bad > 1 else ""
        place, column = self._place(number), None if self._names is None else self._names[j]
        if column is None:
            place["where"] = ", ".join([*([place["where"]] if "where" in place else []), f"feature {j}"])
        leave = "" if column is None else f", leave the column out with `exclude_columns={column!r}`"
        remedy = f"Fill it in{leave}, or leave such rows out with `drop_missing=True`."
        return FileFault(self._request.path, f"{what}{others}", remedy, column=column, **place)


def _list_length(request: Request, column: Any, expected: int | None, place: Callable[[int], dict[str, Any]]) -> int:
    """How many numbers the lists of the embedding hold, all of them the same number: ``expected``, if it is known.

    ``place`` says where a row is of those in the column.
    """
    name, kind = request.embedding, column.type
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
    length = int(lengths[0]) if expected is None else expected
    odd = np.flatnonzero((lengths != length) | (lengths <= 0))
    if len(odd):
        row, found = int(odd[0]), int(lengths[odd[0]])
        said = "has no list" if found < 0 else f"has {found:,} numbers"
        raise FileFault(
            request.path,
            f"{said}, other rows have {length:,}" if found != length else f"{said} in its list",
            "All lists of an embedding must have the same length, at least 1. Compute it again for this row.",
            column=name,
            **place(row),
        )
    return length


def bad_rows(X: Any) -> IntArray:
    """Numbers of the rows that hold a missing or infinite number.

    Examples
    --------
    >>> bad_rows(np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 1.0]]))
    array([1, 2])
    """
    if sp.issparse(X):
        return np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[~np.isfinite(X.data)])
    if X.dtype.kind != "f":
        return np.zeros(0, np.intp)
    found, step = [np.zeros(0, np.intp)], max(1, NUMBERS_AT_ONCE // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        finite = np.isfinite(np.asarray(X[start : start + step]))
        if not finite.all():
            found.append(start + np.flatnonzero(~finite.all(axis=1)))
        # Pages of a memory map that have been read count as memory of the process until they are handed back.
        if isinstance(X, np.memmap) and X.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
            X._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
    return np.concatenate(found)


def matrix_of(data: Any) -> FloatArray:
    """A table or batch of columns of numbers as a row-major matrix, missing values as NaN; float32 where all columns are.

    A single column of lists of equally many numbers is a matrix, too. Integers that float64 does not hold are rounded.

    Examples
    --------
    >>> import pyarrow as pa
    >>> matrix_of(pa.table({"age": [36, None], "member": [True, False]}))
    array([[36.,  1.],
           [nan,  0.]])
    >>> matrix_of(pa.table({"embedding": [[1.0, 2.0], [3.0, 4.0]]}))
    array([[1., 2.],
           [3., 4.]])
    """
    dtype = number_type([column.type for column in data.columns])
    kind = "float" if dtype == np.float32 else "double"
    if data.num_columns == 1 and is_list(data.schema.field(0).type):
        numbers = pc.list_flatten(data.column(0)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(numbers.reshape(data.num_rows, -1))
    if data.num_columns > data.num_rows > 0 and all(column_type == kind for column_type in data.schema.types):
        # Thousands of short columns: one by one they take longer than all that follows.
        batch = data if isinstance(data, pa.RecordBatch) else data.combine_chunks().to_batches()[0]
        return np.ascontiguousarray(batch.to_tensor(null_to_nan=True).to_numpy())
    return row_major(
        data.num_rows,
        data.columns,
        lambda column: column.cast(kind, safe=False).to_numpy(zero_copy_only=False),
        dtype,
    )


def number_type(kinds: Sequence[Any]) -> np.dtype[Any]:
    """The type of NumPy that holds columns of these types: float32 where all are of single precision or less."""
    inner = [kind.value_type for kind in kinds if is_list(kind)]
    if inner:
        return np.dtype(np.float32 if all(types.is_float32(k) or types.is_float16(k) for k in inner) else np.float64)
    return np.dtype(np.float32 if kinds and all(types.is_float32(kind) for kind in kinds) else np.float64)


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
    check_names(request, table.column_names, what)
    check_weight(request, {field.name: field.type for field in table.schema})
    if request.id is not None:
        check_ids(request, InMemory(table), table.column(request.id))


def add_groups_and_weights(table: Table, request: Request, records: Records) -> None:
    """Give a table the values of the columns of groups and weights, for the rows that were not left out."""
    kept = table.numbers(np.arange(table.n)) if table.n_dropped else None
    if request.group is not None:
        groups = np.concatenate([_group_values(batch.column(0)) for batch in records.batches([request.group])])
        table.groups = groups if kept is None else groups[kept]
    if request.weight is not None:
        batches = records.batches([request.weight])
        weights = np.concatenate([_weights_of(batch) for batch in batches])
        table.weights = _checked_weights(request, records, weights, np.arange(len(weights)) if kept is None else kept)


def _weights_of(batch: Any) -> FloatArray:
    """The weights in a table of one column."""
    return np.asarray(matrix_of(batch).ravel().astype(np.float64))


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
