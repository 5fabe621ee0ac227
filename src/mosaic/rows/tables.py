"""Tables: the cells of rows by the names of columns, wherever they are kept. ``mosaic.rows.arrow`` has those of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import Source
from mosaic.rows.frames import Cells, cells_of, take_rows
from mosaic.text import Library

if TYPE_CHECKING:
    import pyarrow

    from mosaic.rows.frames import Series

pa, types = Library("pyarrow"), Library("pyarrow.types")

#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class Table(Protocol):
    """Cells of rows. ``is_whole`` says whether all are in memory, ``held`` how many bytes they take there."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def n(self) -> int: ...
    @property
    def held(self) -> float: ...
    @property
    def is_whole(self) -> bool: ...

    def kinds(self) -> Mapping[str, Any]:
        """The type of each column, as narwhals calls it."""

    def blocks(self, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Cells]:
        """The cells of consecutive rows, in their order."""

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """The cells of some rows as a ``pyarrow.Table``."""

    def texts(self, column: str, rows: IntArray | None = None) -> list[str]:
        """The cells of a column as text, of all rows or of some; missing ones are empty."""


class InMemory:
    """The cells of a data frame, ``held`` bytes of which are not the user's; ``index`` are the columns that pandas added."""

    is_whole = True

    def __init__(self, cells: Cells, *, index: Sequence[str] = (), held: float = 0.0):
        self._cells, self.columns, self.n = cells, list(cells), len(cells.frame)
        self.index, self.held = list(index), held

    @classmethod
    def of_arrow(cls, table: pyarrow.Table) -> InMemory:
        """Of a ``pyarrow.Table`` that a file was read into."""
        index, levels = pandas_columns(table.schema)
        # To ask thousands of short columns takes long, and they hold little.
        is_wide = table.num_rows < table.num_columns
        held = 8.0 * table.num_rows * table.num_columns if is_wide else float(table.nbytes)
        return cls(cells_of(table, levels=levels), index=index, held=held)

    def kinds(self) -> Mapping[str, Any]:
        return self._cells.kinds

    def cells(self, columns: Sequence[str]) -> Cells:
        return self._cells.only(columns)

    def blocks(self, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Cells]:
        cells = self.cells(columns)
        stop = self.n if stop is None else stop
        if (start, stop) == (0, self.n):
            yield cells
            return
        for first in range(start, stop, BLOCK_ROWS):
            yield cells.some(slice(first, min(first + BLOCK_ROWS, stop)))

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        if not columns:
            return no_columns(len(rows))
        return pa.table({name: arrow_column(self._cells.columns[name][np.asarray(rows)]) for name in columns})

    def texts(self, column: str, rows: IntArray | None = None) -> list[str]:
        cells = self._cells.columns[column]
        return as_texts(cells if rows is None else cells[np.asarray(rows)])


class Outside:
    """What tables have in common whose cells are not all in memory."""

    is_whole: ClassVar[bool] = False
    held: ClassVar[float] = 0.0

    def texts(self: Table, column: str, rows: IntArray | None = None) -> list[str]:
        cells = self.take(np.arange(self.n) if rows is None else rows, [column]).column(0)
        return ["" if value is None else str(value) for value in values_of(cells)]


class InArray(Outside):
    """An array or source, whose features are shown as columns, unless they are too many to look at."""

    def __init__(self, X: Any, names: Sequence[str] | None):
        self._X, self.n = X, shape_of(X)[0]
        width = shape_of(X)[1]
        names = [f"x{j}" for j in range(width)] if names is None else list(names)
        self.columns = names if width <= SHOWN_FEATURES else []

    def kinds(self) -> Mapping[str, Any]:
        return {}

    def blocks(self, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Cells]:
        yield cells_of(self.take(np.arange(self.n)[start:stop], columns))

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        table = no_columns(len(rows))
        if not columns:
            return table
        values = rows_at(self._X, rows)
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        for name in columns:
            table = table.append_column(name, pa.array(native(values[:, self.columns.index(name)])))
        return table


def rows_at(X: Any, rows: IntArray) -> Any:
    """The rows of an array or a source with these numbers, in any order and repeated at will."""
    if not isinstance(X, Source):
        return take_rows(X, rows)
    numbers, back = np.unique(rows, return_inverse=True)
    return X.take(numbers)[back]


def shape_of(X: Any) -> tuple[int, int]:
    if isinstance(X, Source):
        return X.n, X.n_features
    rows, *width = (*X.shape, 0, 0)[: max(len(X.shape), 2)]
    return int(rows), int(width[0])


def no_columns(n: int) -> Any:
    """A table of n rows and no columns, to which columns can be appended."""
    return pa.table({"": np.zeros(n, bool)}).select([])


def native(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def arrow_column(column: Series) -> Any:
    """A narwhals series as a column of Arrow; of objects of several kinds, their texts."""
    values = column.to_native()
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values
    try:
        return column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if text == "" else text for text in as_texts(column)], pa.string())


def as_texts(column: Series) -> list[str]:
    cells = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return ["" if is_null else str(cell) for cell, is_null in cells]


def pandas_columns(schema: pyarrow.Schema) -> tuple[list[str], list[str]]:
    """The columns of a file that pandas wrote as index, and those that it wrote as categories."""
    known = schema.pandas_metadata or {"index_columns": [], "columns": []}
    index = [name for name in known["index_columns"] if isinstance(name, str)]
    categories = (column for column in known["columns"] if column["pandas_type"] == "categorical")
    return index, [column["field_name"] for column in categories if column["field_name"]]


def without_categories(column: pyarrow.ChunkedArray) -> Any:
    """A column of categories as a column of their values; other columns as they are."""
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def values_of(column: pyarrow.ChunkedArray) -> list[Any]:
    """The values of a column, as text where Python has none, as for the year 14645."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast("string").to_pylist())
