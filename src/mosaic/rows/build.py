"""From columns to rows: the features as numbers, groups, weights and ids; and what may be wrong with their values."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.choosing.budget import leaves_room
from mosaic.rows.encoder import LeftOut, TableEncoder, encoder_of, not_compared, rule_of
from mosaic.rows.faults import FileFault
from mosaic.rows.frames import Cells, cells_of, is_feature_name, row_major, tells_apart
from mosaic.rows.kinds import MISSING_CELLS, number_pattern, quoted
from mosaic.rows.roles import (
    Request,
    Roles,
    assign_roles,
    check_names,
    check_weight,
    column_is_gone,
    is_list,
    is_text,
    nothing_left,
    without,
    without_categories,
)
from mosaic.rows.rows import InMemory, Rows, shape_of
from mosaic.sketch.sources import LocalSource
from mosaic.text import Library, group_label

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

#: Numbers of an array that are looked at together.
NUMBERS_AT_ONCE = 1 << 22
#: Rows from which the rules of columns are found where not all are in memory, and the stretches of the file that they are in.
DECIDING_ROWS, STRETCHES = 50_000, 50
#: Share of the cells of a text column that are numbers, from which on the others are taken for mistakes.
MOSTLY_NUMBERS = 0.5

#: Of a row number, the line of a text file that the row begins on.
Line = Callable[[int], int | None] | None


def table_rows(request: Request, store: Any, *, notes: Sequence[str] = (), line: Line = None, decimal: str | None = None) -> Rows:
    """Rows of columns in memory or in Parquet files. Of the latter, a part of the rows decides how columns become numbers.

    ``store`` is ``InMemory`` or ``InParquet``; ``decimal`` is, of a text table, the sign before fractions.
    """
    in_memory = isinstance(store, InMemory)
    roles = assign_roles(request, store.schema, (lambda name: _names_rows(store, name)) if in_memory else None)
    if request.id is not None and in_memory:
        check_ids(request, store.table.column(request.id), line)
    elif request.id is not None:
        roles.notes.append(f"Whether the values of {request.id!r} are all different was not checked in a file of this size.")
    scan = MissingScan(request, roles.features, line, store.n)
    matrix: Any = None
    if roles.features and (in_memory or request.drop_missing or request.embedding is not None or roles.compared):
        for batch in store.batches(roles.features):
            matrix = scan.update_columns(batch)
    weights = _weights(request, store, scan.dropped, line)
    cells: Any = None
    encoder, n_left = None, store.n - len(scan.dropped)
    plain = roles.compared == roles.features and not roles.levels and not scan.gaps
    if request.encoder is not None or (roles.compared and not plain):
        sample, numbers = _deciding_rows(store, roles.compared, scan.dropped)
        cells = cells_of(sample, levels=roles.levels)
        some = weights if weights is not None and weights.any() and len(sample) == n_left else None
        encoder = _encoder(request, roles, cells, lambda row: place_name(int(numbers[row]), line), scan, some)
        if encoder is not None and len(sample) < n_left:
            roles.notes.append(f"How columns are compared was found from {len(sample):,} rows spread over the file.")
    if decimal is not None and request.encoder is None:
        _refuse_mostly_numbers(request, store, roles, encoder, decimal, line)
    if encoder is None and not request.elsewhere:
        scan.check()
        if not roles.features:
            raise nothing_left(request, roles.schema)
    X: Any = np.zeros((n_left, 0))
    if encoder is not None or roles.features:
        source: Any = TableSource(request.kind, store, roles, encoder, scan.width)
        source = SelectedRows(source, scan.dropped) if len(scan.dropped) else source
        if not in_memory:
            X = source.read(0, source.n) if store.scratch and leaves_room(*shape_of(source), request.budget) else source
        elif encoder is not None:
            # Passes take no weights.
            large = 8.0 * source.n * encoder.width > request.budget / 4 and request.weight is None
            X = source if large else encoder.encode(cells)
            encoder = encoder.with_texts(cells)
        else:
            X = np.delete(matrix, scan.dropped, axis=0) if len(scan.dropped) else matrix
    if request.embedding is not None:
        said = f"The numbers are those of column {request.embedding!r}, {shape_of(X)[1]:,} for each row."
        roles.notes.append(said)
    return Rows(
        request.path,
        request.kind,
        X,
        store,
        feature_names=None if request.embedding is not None or request.elsewhere else roles.features,
        encoder=encoder,
        id_name=roles.id_name,
        notes=[*notes, *roles.notes, *scan.notes],
        dropped=scan.dropped,
        left_out=roles.ids,
        closers=[] if getattr(store, "scratch", None) is None else [store.scratch.close],
        groups=_groups(request, store, scan.dropped),
        weights=weights,
    )


def _encoder(
    request: Request, roles: Roles, cells: Cells, place: Callable[[int], str], scan: MissingScan, weights: Any
) -> TableEncoder | None:
    """How the columns of a file become numbers; None where they are numbers that are taken as they are."""
    if request.encoder is not None:
        for name in request.encoder.names:
            if name not in roles.compared:
                raise column_is_gone(request, name)
        return request.encoder  # type: ignore[no-any-return]
    find = TableEncoder.of if scan.gaps else encoder_of
    encoder = find(cells, keep=roles.forced, place=place, weights=weights)
    if encoder is not None:
        roles.notes += encoder.describe()
        return encoder.with_gaps(scan.gaps)
    rules = [rule_of(name, cells[name]) for name in without(roles.compared, roles.features)]
    roles.notes += not_compared([rule for rule in rules if isinstance(rule, LeftOut)])
    return None


def _refuse_mostly_numbers(request: Request, store: Any, roles: Roles, encoder: Any, decimal: str, line: Line) -> None:
    """Refuse text that is numbers but for some cells and not compared: to leave such a column out is hardly what is wanted."""
    left_out = without(roles.compared, roles.features if encoder is None else encoder.names)
    for name in [*left_out, *([roles.found_id] if roles.found_id else [])]:
        if not is_text(store.schema.field(name).type):
            continue
        column = next(iter(store.batches([name]))).column(0)
        texts = pc.fill_null(pc.utf8_trim_whitespace(column.cast(pa.string())), "")
        missing = pc.is_in(texts, value_set=pa.array(sorted(MISSING_CELLS)))
        number = pc.and_(pc.match_substring_regex(texts, f"^(?:{number_pattern(decimal)})$"), pc.invert(missing))
        filled, good = len(column) - (pc.sum(missing).as_py() or 0), pc.sum(number).as_py() or 0
        row = pc.index(pc.or_(number, missing), False).as_py()
        if filled and good >= MOSTLY_NUMBERS * filled and row >= 0:
            raise FileFault(
                request.path,
                f"{quoted(column[row].as_py())} is not a number, as {good:,} of {filled:,} cells of this column are",
                "Correct the cell (a missing number is an empty cell or NA), or do not compare rows by the column: "
                f"`exclude_columns={name!r}`.",
                column=name,
                **place_of(row, line),
            )


def place_of(number: int, line: Line) -> dict[str, Any]:
    """Where a row is, as arguments of a fault: its line, if ``line`` knows it, otherwise its number."""
    found = None if line is None else line(number)
    return {"line": found} if found is not None else {"where": f"row {number:,} (counted from 0)"}


def place_name(number: int, line: Line) -> str:
    place = place_of(number, line)
    return str(place["where"]) if "where" in place else f"line {place['line']:,}"


def _names_rows(store: InMemory, name: str) -> bool:
    """Whether a column tells rows apart, and is not numbers or dates that are written as text."""
    cells = cells_of(store.table.select([name]))
    if not tells_apart(cells.columns[name]):
        return False
    by_values = is_text(store.schema.field(name).type) and is_feature_name(name)
    return not by_values or isinstance(rule_of(name, cells[name]), LeftOut)


def _deciding_rows(store: Any, columns: Sequence[str], dropped: IntArray) -> tuple[Any, IntArray]:
    """Rows from which rules are found, and their numbers: all, or stretches that are spread over a file."""
    starts, length = np.zeros(1, np.int64), store.n
    if store.n > DECIDING_ROWS and not isinstance(store, InMemory):
        length = DECIDING_ROWS // STRETCHES
        starts = np.linspace(0, store.n - length, STRETCHES).astype(np.int64)
    numbers = np.setdiff1d((starts[:, None] + np.arange(length)).ravel(), dropped)
    if isinstance(store, InMemory) and not len(dropped):
        return store.table.select(list(columns)), numbers
    return store.take(numbers, columns), numbers


class TableSource(LocalSource):
    """Columns in memory or in Parquet files as rows of numbers, made block by block; missing values are NaN.

    Without an encoder, features are numbers as they are, or lists of an embedding, ``width`` numbers long.
    """

    def __init__(self, kind: str, store: Any, roles: Roles, encoder: TableEncoder | None, width: int | None = None):
        self.kind, self.n, self._store, self._levels, self._encoder = kind, store.n, store, roles.levels, encoder
        self.files, self.buffers = getattr(store, "paths", []), getattr(store, "pages", 0.0)
        if encoder is not None:
            self._columns, self.names, self.n_features = encoder.names, encoder.number_names, encoder.width
            self._dtype = np.dtype(np.float64)
        else:
            self._columns, self.names = roles.features, roles.features if width is None else None
            self.n_features = width or len(roles.features)
            self._dtype = number_type([store.schema.field(name).type for name in self._columns])

    def stream(self) -> Iterator[tuple[int, Any]]:
        known = 0
        for start in range(0, self.n, self.n if hasattr(self._store, "paths") else BLOCK_ROWS):
            stop = self.n if hasattr(self._store, "paths") else min(start + BLOCK_ROWS, self.n)
            for batch in self._store.read(start, stop, self._columns):
                yield known, self._matrix(batch)
                known += batch.num_rows

    def read(self, start: int, stop: int) -> Any:
        rows, known = np.full((stop - start, self.n_features), np.nan, self._dtype), 0
        for batch in self._store.read(start, stop, self._columns):
            rows[known : known + batch.num_rows] = self._matrix(batch)
            known += batch.num_rows
        return rows

    def _matrix(self, batch: Any) -> FloatArray:
        return matrix_of(batch) if self._encoder is None else self._encoder.encode(cells_of(batch, levels=self._levels))


class SelectedRows(LocalSource):
    """The rows of another source, without those whose numbers, in order, are ``dropped``."""

    def __init__(self, source: LocalSource, dropped: IntArray):
        self.kind, self.names, self.n_jobs = source.kind, source.names, source.n_jobs
        self.n_features, self.buffers, self.files = source.n_features, source.buffers, source.files
        self.n, self._source, self._dropped = source.n - len(dropped), source, dropped

    def stream(self) -> Iterator[tuple[int, Any]]:
        for start, rows in self._source.stream():
            before, behind = np.searchsorted(self._dropped, [start, start + rows.shape[0]])
            left = np.delete(rows, self._dropped[before:behind] - start, axis=0)
            if left.shape[0]:
                yield start - int(before), left

    def read(self, start: int, stop: int) -> Any:
        first, last = self._number(start), self._number(stop - 1)
        inside = self._dropped[(self._dropped >= first) & (self._dropped <= last)]
        return np.delete(self._source.read(first, last + 1), inside - first, axis=0)

    def release(self, n_rows: int) -> None:
        self._source.release(self._source.n if n_rows == self.n else self._number(n_rows))

    def _number(self, row: int) -> int:
        """Number in the other source of a row that is left."""
        return row + int(np.searchsorted(self._dropped - np.arange(len(self._dropped)), row, side="right"))


class MissingScan:
    """Looks at the features of all rows, block by block: numbers must be there, the lists of an embedding equally long.

    Rows with missing and infinite numbers are left out (``drop_missing``); or ``check`` refuses the first of them. ``gaps`` are
    the features of which some are missing, ``width`` is the length of lists.
    """

    def __init__(self, request: Request, names: Sequence[str] | None, line: Line, n: int):
        self._request, self._line, self._n = request, line, n
        self._names = None if request.embedding is not None else names
        self._dropped: list[IntArray] = [np.zeros(0, np.intp)]
        self._seen = self._bad = 0
        self._first: tuple[int, FloatArray] | None = None
        self.width: int | None = None
        self.gaps: set[str] = set()

    def update_columns(self, data: Any) -> FloatArray:
        """Look at the features of the rows that come after those seen before, and return them as a matrix."""
        if self._request.embedding is not None:
            self._check_lists(data.column(0))
        rows = matrix_of(data)
        self.update(rows)
        return rows

    def update(self, rows: Any) -> None:
        bad = bad_rows(rows)
        if self._request.drop_missing:
            self._dropped.append(self._seen + bad)
        elif len(bad):
            if self._first is None:
                row = rows[int(bad[0])]
                self._first = self._seen + int(bad[0]), (row.toarray() if sp.issparse(row) else np.asarray(row)).ravel()
            self._bad += len(bad)
            if self._names is not None:
                gone = np.flatnonzero(np.isnan(rows[bad]).any(axis=0)).tolist()
                self.gaps.update(self._names[j] for j in gone)
        self._seen += rows.shape[0]

    def check(self) -> None:
        """Refuse missing and infinite numbers that were seen."""
        if self._first is None:
            return
        number, values = self._first
        j = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "a number is missing" if np.isnan(values[j]) else "a number is infinite"
        others = f"; {self._bad:,} rows have missing or infinite numbers" if self._bad > 1 else ""
        place, column = place_of(number, self._line), None if self._names is None else self._names[j]
        if column is None:
            place["where"] = ", ".join([*([place["where"]] if "where" in place else []), f"feature {j}"])
        leave = "" if column is None else f", leave the column out with `exclude_columns={column!r}`"
        remedy = f"Fill it in{leave}, or leave such rows out with `drop_missing=True`."
        raise FileFault(self._request.path, f"{what}{others}", remedy, column=column, **place)

    @property
    def dropped(self) -> IntArray:
        """Numbers of the rows that are left out, in order. Refused if no row remains."""
        dropped = np.concatenate(self._dropped)
        if len(dropped) and len(dropped) == self._n:
            fault = "every row has a missing or infinite number, so that none is left"
            raise FileFault(self._request.path, fault, "Leave out the columns that are empty with `exclude_columns`.")
        return dropped

    @property
    def notes(self) -> list[str]:
        dropped = len(self.dropped)
        if not dropped:
            return []
        rows = "1 row was" if dropped == 1 else f"{dropped:,} rows were"
        return [f"{rows} left out of {self._n:,}, because of missing or infinite numbers."]

    def _check_lists(self, column: Any) -> None:
        """Refuse lists of an embedding that hold no numbers, or not equally many."""
        path, name, kind = self._request.path, self._request.embedding, column.type
        if not is_list(kind) or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
            remedy = "Name a column of lists, or give the numbers in a file of their own with `embeddings`."
            raise FileFault(path, f"holds {kind}, no lists of numbers (`embedding`)", remedy, column=name)
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False))
        self.width = int(lengths[0]) if self.width is None else self.width
        odd = np.flatnonzero((lengths != self.width) | (lengths <= 0))
        if len(odd):
            found = int(lengths[odd[0]])
            said = "has no list" if found < 0 else f"has {found:,} numbers"
            said = f"{said}, other rows have {self.width:,}" if found != self.width else f"{said} in its list"
            remedy = "All lists of an embedding must have the same length, at least 1. Compute it again for this row."
            raise FileFault(path, said, remedy, column=name, **place_of(self._seen + int(odd[0]), self._line))


def bad_rows(X: Any) -> IntArray:
    """Numbers of the rows that hold a missing or infinite number."""
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
    """
    dtype = number_type([column.type for column in data.columns])
    kind = "float" if dtype == np.float32 else "double"
    if data.num_columns == 1 and is_list(data.schema.field(0).type):
        numbers = pc.list_flatten(data.column(0)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(numbers.reshape(data.num_rows, -1))
    if data.num_columns > data.num_rows > 0 and all(t in (kind, "int64") for t in data.schema.types):
        # Thousands of short columns: one by one they take longer than all that follows.
        batch = data if isinstance(data, pa.RecordBatch) else data.combine_chunks().to_batches()[0]
        return np.ascontiguousarray(batch.to_tensor(null_to_nan=True).to_numpy(), dtype)
    return row_major(
        data.num_rows, data.columns, lambda column: column.cast(kind, safe=False).to_numpy(zero_copy_only=False), dtype
    )


def number_type(kinds: Sequence[Any]) -> np.dtype[Any]:
    """The type of NumPy that holds columns of these types: float32 where all are, or all numbers in lists are that or less."""
    inner = [kind.value_type for kind in kinds if is_list(kind)]
    single = (pa.float16(), pa.float32()) if inner else (pa.float32(),)
    return np.dtype(np.float32 if kinds and all(kind in single for kind in inner or kinds) else np.float64)


def check_ids(request: Request, column: Any, line: Line = None) -> None:
    """Refuse ids that the user names and that do not tell rows apart."""
    column, first_rows = without_categories(column), {}
    empty = column.null_count or (is_text(column.type) and pc.index(column, "").as_py() >= 0)
    if not empty and pc.count_distinct(column).as_py() == len(column):
        return
    for row, value in enumerate(column.to_pylist()):
        if value is not None and value != "" and value not in first_rows:
            first_rows[value] = row
            continue
        known = first_rows.get(value)
        said = "has no value" if known is None else f"{str(value)!r} is also the id of {place_name(known, line)}"
        remedy = "Correct it, or name a column whose values are all different."
        raise FileFault(request.path, f"{said} (`id`)", remedy, column=request.id, **place_of(row, line))


def check_beside(request: Request, table: Any, what: str, remedy: str) -> None:
    """Refuse columns beside an array that are not there, and a choice among the columns of the array.

    ``what`` is one of the columns of ``table`` called, ``remedy`` for columns of the array that are chosen.
    """
    if request.columns is not None or request.exclude_columns is not None or request.embedding is not None:
        fault = "its numbers are an array, of which no columns are chosen (`columns`, `exclude_columns`, `embedding`)"
        raise FileFault(request.path, fault, remedy)
    check_names(request, table.column_names, what)
    check_weight(request, {field.name: field.type for field in table.schema})
    if request.id is not None:
        check_ids(request, table.column(request.id))


def add_groups_and_weights(rows: Rows, request: Request, store: Any) -> None:
    """Give rows the values of the columns of groups and weights, for those that were not left out."""
    rows.groups = _groups(request, store, rows.dropped)
    rows.weights = _weights(request, store, rows.dropped)


def _groups(request: Request, store: Any, dropped: IntArray) -> Any:
    """Of every row the group that it belongs to, as text."""
    if not request.group:
        return None
    batches = ([batch.column(name).to_pylist() for name in request.group] for batch in store.batches(list(request.group)))
    labels = [group_label(*cells) for columns in batches for cells in zip(*columns, strict=True)]
    return np.delete(np.array(labels, dtype=np.str_), dropped)


def _weights(request: Request, store: Any, dropped: IntArray, line: Line = None) -> FloatArray | None:
    if request.weight is None:
        return None
    parts = [matrix_of(batch).ravel().astype(np.float64) for batch in store.batches([request.weight])]
    weights = np.concatenate(parts)
    kept = np.delete(np.arange(len(weights)), dropped)
    odd = kept[~(np.isfinite(weights[kept]) & (weights[kept] >= 0))]
    if len(odd):
        value = "is missing" if np.isnan(weights[odd[0]]) else f"is {weights[odd[0]]:g}"
        remedy = "Weights are finite numbers, 0 or larger. Correct it, or name another column."
        place = place_of(int(odd[0]), line)
        raise FileFault(request.path, f"a weight {value} (`weight`)", remedy, column=request.weight, **place)
    return np.asarray(weights[kept])
