"""Tables: the cells of rows by the names of columns, wherever they are kept. ``mosaic.rows.arrow`` has those of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import NO_ROWS, IntArray
from mosaic.arrays.sources import Source
from mosaic.rows.frames import Cells, cells_of, take_rows
from mosaic.text import Library

if TYPE_CHECKING:
    import pyarrow

    from mosaic.rows.frames import Series

pa = Library("pyarrow")
types = Library("pyarrow.types")

#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class Shaped(Protocol):
    """An array of any library, or a sparse matrix."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class Table(Protocol):
    """Cells of rows; ``held`` is how many bytes of a file are in memory."""

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def n(self) -> int: ...
    @property
    def held(self) -> float: ...

    def kinds(self) -> Mapping[str, Any]:
        """The type of each column, as narwhals calls it."""

    def blocks(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Cells]:
        """The cells of consecutive rows, in their order."""

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """The cells of some rows as a ``pyarrow.Table``."""

    def texts(self, column: str, rows: IntArray | None = None) -> list[str]:
        """The cells of a column as text, of all rows or of some; missing ones are empty."""


class InMemory:
    """The cells of a data frame, ``held`` bytes of which are not the user's; ``index`` are the columns that pandas added."""

    def __init__(self, cells: Cells, *, index: Sequence[str] = (), held: float = 0.0):
        self._cells = cells
        self.columns = list(cells)
        self.n = len(cells.frame)
        self.index = list(index)
        self.held = held

    @classmethod
    def of_arrow(cls, table: pyarrow.Table) -> InMemory:
        """Of a ``pyarrow.Table`` that a file was read into."""
        index, levels = pandas_columns(table.schema)
        return cls(cells_of(table, levels=levels), index=index, held=float(table.nbytes))

    def kinds(self) -> Mapping[str, Any]:
        return self._cells.kinds

    def cells(self, columns: Sequence[str]) -> Cells:
        return self._cells.only(columns)

    def blocks(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Cells]:
        cells = self.cells(columns)
        yield cells if stop is None else cells.some(slice(start, stop))

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        return table_of(
            {name: arrow_column(self._cells.columns[name][np.asarray(rows)]) for name in columns},
            len(rows),
        )

    def texts(self, column: str, rows: IntArray | None = None) -> list[str]:
        cells = self._cells.columns[column]
        return as_texts(cells if rows is None else cells[np.asarray(rows)])


class Outside:
    """What tables have in common whose cells are not all in memory: all that ``take`` can give."""

    held: ClassVar[float] = 0.0

    def kinds(self: Table) -> Mapping[str, Any]:
        return cells_of(self.take(NO_ROWS, self.columns)).kinds

    def blocks(
        self: Table, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Cells]:
        rows = np.arange(start, self.n if stop is None else stop)
        yield cells_of(self.take(rows, columns), levels=getattr(self, "levels", ()))

    def texts(self: Table, column: str, rows: IntArray | None = None) -> list[str]:
        cells = self.take(np.arange(self.n) if rows is None else rows, [column]).column(0)
        return ["" if value is None else str(value) for value in values_of(cells)]


class InArray(Outside):
    """An array or source, whose features are shown as columns, unless they are too many to look at."""

    def __init__(self, X: Source | Shaped, names: Sequence[str] | None):
        self._X = X
        self.n, width = shape_of(X)
        self.columns: list[str] = []
        if width <= SHOWN_FEATURES:
            self.columns = [f"x{j}" for j in range(width)] if names is None else list(names)

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        values = rows_at(self._X, rows if columns else NO_ROWS)
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        return table_of(
            {name: pa.array(native(values[:, self.columns.index(name)])) for name in columns},
            len(rows),
        )


def rows_at(X: Source | Shaped, rows: IntArray) -> Any:
    """The rows of an array or a source with these numbers, in any order and repeated at will."""
    if not isinstance(X, Source):
        return take_rows(X, rows)
    numbers, back = np.unique(rows, return_inverse=True)
    return X.take(numbers)[back]


def shape_of(X: Source | Shaped) -> tuple[int, int]:
    if isinstance(X, Source):
        return X.n, X.n_features
    rows, *width = (*X.shape, 0, 0)[: max(len(X.shape), 2)]
    return int(rows), int(width[0])


def table_of(columns: Mapping[str, Any], n: int) -> Any:
    """A ``pyarrow.Table`` of n rows, also where it has no columns."""
    return pa.table(columns) if columns else pa.table({"": np.zeros(n, bool)}).select([])


def native(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def arrow_column(column: Series) -> Any:
    """A narwhals series as a column of Arrow; of objects of several kinds, their texts."""
    try:
        return column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        values = np.asarray(column.to_native())
        if values.dtype.kind in "fiub":  # pandas' sparse columns, and long doubles
            return pa.array(native(values))
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


def values_of(column: pyarrow.ChunkedArray) -> list[Any]:
    """The values of a column, as text where Python has none, as for the year 14645."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast("string").to_pylist())
