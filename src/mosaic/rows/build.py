"""From columns to rows: the features as numbers, groups, weights and ids; and what may be wrong with their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.sources import LocalSource
from mosaic.choosing.budget import leaves_room
from mosaic.rows.encoder import LeftOut, TableEncoder, encoder_of, not_compared, rule_of
from mosaic.rows.faults import FileFault
from mosaic.rows.frames import Cells, cells_of, is_feature_name, row_major, tells_apart
from mosaic.rows.roles import (
    Request,
    Roles,
    assign_roles,
    column_is_gone,
    is_list,
    is_text,
    nothing_left,
    without,
    without_categories,
)
from mosaic.rows.rows import InMemory, Rows, shape_of
from mosaic.text import Library, group_label

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

#: Rows from which the rules of columns are found where not all are in memory.
DECIDING_ROWS = 50_000

#: Of a row number, the line of a text file that the row begins on.
Line = Callable[[int], int | None] | None


def table_rows(request: Request, store: Any, *, notes: Sequence[str] = (), line: Line = None) -> Rows:
    """Rows of a store of columns, ``InMemory`` or ``InParquet``. Of the latter, some rows decide how columns become numbers."""
    in_memory = isinstance(store, InMemory)
    roles = assign_roles(request, store.schema, (lambda name: _names_rows(store, name)) if in_memory else None)
    if request.id is not None and in_memory:
        check_ids(request, store.table.column(request.id), line)
    elif request.id is not None:
        roles.notes.append(f"Whether the values of {request.id!r} are all different was not checked in a file of this size.")
    matrix, gaps, width = _scan(request, store, roles, line)
    weights = _weights(request, store, line)
    cells: Any = None
    encoder = None
    plain = roles.compared == roles.features and not roles.levels and not gaps
    if request.encoder is not None or (roles.compared and not plain):
        sample, numbers = _deciding_rows(store, roles.compared)
        cells = cells_of(sample, levels=roles.levels)
        some = weights if weights is not None and weights.any() and len(sample) == store.n else None
        encoder = _encoder(request, roles, cells, lambda row: place_name(int(numbers[row]), line), gaps, some)
        if encoder is not None and len(sample) < store.n:
            roles.notes.append(f"How columns are compared was found from {len(sample):,} rows spread over the file.")
    if encoder is None and not roles.features:
        raise nothing_left(request, roles.schema)
    source = TableSource(request.kind, store, roles, encoder, width)
    X: Any = matrix
    if not in_memory:
        X = source.read(0, source.n) if store.scratch and leaves_room(*shape_of(source), request.budget) else source
    elif encoder is not None:
        # Passes take no weights.
        large = 8.0 * source.n * encoder.width > request.budget / 4 and request.weight is None
        X = source if large else encoder.encode(cells)
        encoder = encoder.with_texts(cells)
    if request.embedding is not None:
        roles.notes.append(f"The numbers are those of column {request.embedding!r}, {shape_of(X)[1]:,} for each row.")
    return Rows(
        request.path,
        request.kind,
        X,
        store,
        feature_names=None if request.embedding is not None else roles.features,
        encoder=encoder,
        id_name=roles.id_name,
        notes=[*notes, *roles.notes],
        left_out=roles.left_out if encoder is None else [*roles.left_out, *encoder.left_out],
        closers=[] if getattr(store, "scratch", None) is None else [store.scratch.close],
        groups=_groups(request, store),
        weights=weights,
    )


def _scan(request: Request, store: Any, roles: Roles, line: Line) -> tuple[Any, set[str], int | None]:
    """The features of the last batch, which are all of those in memory; columns of which some are missing; length of lists."""
    matrix, gaps, width, seen = None, set[str](), None, 0
    if not roles.features or not (isinstance(store, InMemory) or request.embedding is not None or roles.compared):
        return matrix, gaps, width
    for batch in store.batches(roles.features):
        if request.embedding is not None:
            width = _length_of_lists(request, batch.column(0), width, seen, line)
        matrix = matrix_of(batch)
        if width is None:
            gaps.update(roles.features[j] for j in np.flatnonzero(np.isnan(matrix).any(axis=0)).tolist())
        seen += len(matrix)
    return matrix, gaps, width


def _length_of_lists(request: Request, column: Any, width: int | None, seen: int, line: Line) -> int:
    """The length that all lists of an embedding have; refuses other lengths, and what is no list of numbers."""
    kind, name = column.type, request.embedding
    if not is_list(kind) or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        remedy = "Name a column of lists."
        raise FileFault(request.path, f"holds {kind}, no lists of numbers (`embedding`)", remedy, column=name)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False))
    width = int(lengths[0]) if width is None else width
    odd = np.flatnonzero((lengths != width) | (lengths == 0))
    if len(odd):
        said = f"has {int(lengths[odd[0]]):,} numbers, other rows have {width:,}"
        remedy = "All lists of an embedding must have the same length, at least 1. Compute it again for this row."
        raise FileFault(request.path, said, remedy, column=name, **place_of(seen + int(odd[0]), line))
    return width


def _encoder(
    request: Request, roles: Roles, cells: Cells, place: Callable[[int], str], gaps: set[str], weights: Any
) -> TableEncoder | None:
    """How the columns of a file become numbers; None where they are numbers that are taken as they are."""
    if request.encoder is not None:
        for name in request.encoder.names:
            if name not in roles.compared:
                raise column_is_gone(request, name)
        return request.encoder  # type: ignore[no-any-return]
    find = TableEncoder.of if gaps else encoder_of
    encoder = find(cells, keep=roles.forced, place=place, weights=weights)
    if encoder is not None:
        roles.notes += encoder.describe()
        return encoder.with_gaps(gaps)
    rules = [rule_of(name, cells[name]) for name in without(roles.compared, roles.features)]
    left_out = [rule for rule in rules if isinstance(rule, LeftOut)]
    roles.left_out += left_out
    roles.notes += not_compared(left_out)
    return None


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


def _deciding_rows(store: Any, columns: Sequence[str]) -> tuple[Any, IntArray]:
    """Rows from which rules are found, and their numbers: all, or fifty stretches that are spread over a file."""
    if isinstance(store, InMemory):
        return store.table.select(list(columns)), np.arange(store.n)
    starts, length = np.zeros(1, np.int64), store.n
    if store.n > DECIDING_ROWS:
        length = DECIDING_ROWS // 50
        starts = np.linspace(0, store.n - length, 50).astype(np.int64)
    numbers = (starts[:, None] + np.arange(length)).ravel()
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
        for batch in self._store.read(0, self.n, self._columns):
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
    column, first_rows = without_categories(column), {}
    for row, value in enumerate(column.to_pylist()):
        if value is not None and value != "" and value not in first_rows:
            first_rows[value] = row
            continue
        known = first_rows.get(value)
        said = "has no value" if known is None else f"{str(value)!r} is also the id of {place_name(known, line)}"
        remedy = "Correct it, or name a column whose values are all different."
        raise FileFault(request.path, f"{said} (`id`)", remedy, column=request.id, **place_of(row, line))


def add_groups_and_weights(rows: Rows, request: Request, store: Any) -> None:
    rows.groups, rows.weights = _groups(request, store), _weights(request, store)


def _groups(request: Request, store: Any) -> Any:
    """Of every row the group that it belongs to, as text."""
    if not request.group:
        return None
    batches = ([batch.column(name).to_pylist() for name in request.group] for batch in store.batches(list(request.group)))
    return np.array([group_label(*cells) for columns in batches for cells in zip(*columns, strict=True)], dtype=np.str_)


def _weights(request: Request, store: Any, line: Line = None) -> FloatArray | None:
    if request.weight is None:
        return None
    parts = [matrix_of(batch).ravel().astype(np.float64) for batch in store.batches([request.weight])]
    weights = np.concatenate(parts)
    odd = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(odd):
        value = "is missing" if np.isnan(weights[odd[0]]) else f"is {weights[odd[0]]:g}"
        remedy = "Weights are finite numbers, 0 or larger. Correct it, or name another column."
        place = place_of(int(odd[0]), line)
        raise FileFault(request.path, f"a weight {value} (`weight`)", remedy, column=request.weight, **place)
    return np.asarray(weights)
