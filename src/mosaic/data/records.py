"""Rows with all their columns, by their number in the file: in memory, or read again for the rows that are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic._files import Library

pa = Library("pyarrow")

#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class Records(ABC):
    """Rows of a file, by their number in it, counted from 0.

    Attributes
    ----------
    columns : their names
    """

    columns: list[str]

    @abstractmethod
    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """These rows, in that order, as a ``pyarrow.Table``; of all columns or of some."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows of some columns, as ``pyarrow.RecordBatch`` or ``pyarrow.Table``, in the order of the file."""

    def line(self, number: int) -> int | None:
        """The line of a text file that a row begins on, counted from 1; None for files without lines."""
        return None

    def place(self, number: int) -> dict[str, Any]:
        """Where a row is, as arguments of a fault: its line in a text file, otherwise its number."""
        return place_of(number, self.line)


class Columns(Records):
    """Rows whose columns can be looked through.

    Attributes
    ----------
    schema : names and types of the columns, a ``pyarrow.Schema``
    n : number of rows
    """

    schema: Any
    n: int

    def __init__(self, schema: Any, n: int, line: Callable[[int], int | None] | None = None):
        self.schema, self.columns, self.n, self._line = schema, list(schema.names), n, line

    def line(self, number: int) -> int | None:
        """The line is looked for in the text file."""
        return None if self._line is None else self._line(number)


class InMemory(Columns):
    """A ``pyarrow.Table``."""

    def __init__(self, table: Any, line: Callable[[int], int | None] | None = None):
        super().__init__(table.schema, table.num_rows, line)
        self.table = table

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """By number."""
        table = self.table if columns is None else self.table.select(list(columns))
        if not table.num_columns:  # without columns pyarrow forgets how many rows are taken
            return no_columns(len(numbers))
        return table.take(pa.array(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All of them at once."""
        yield self.table.select(list(columns))


class Bare(Records):
    """An array or a source: its features are the columns, unless there are too many without names to look at.

    Parameters
    ----------
    X : array, CSR matrix, or source of rows that stay in their file
    names : of its columns
    beside : ``pyarrow.Table`` of further columns, which come first
    """

    def __init__(self, X: Any, names: Sequence[str] | None, beside: Any = None):
        self._X, self._beside = X, beside
        width = X.shape[1] if hasattr(X, "shape") else X.n_features
        self._names = [f"x{j}" for j in range(width)] if names is None else list(names)
        others = [] if beside is None else list(beside.column_names)
        self.columns = others + [name for name in self._names if width <= SHOWN_FEATURES and name not in others]

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """A slice of the array, and rows of the table beside it."""
        names = self.columns if columns is None else list(columns)
        others = set() if self._beside is None else set(self._beside.column_names)
        features = [name for name in names if name not in others]
        table = no_columns(len(numbers))
        if others:
            table = InMemory(self._beside).take(numbers, [name for name in names if name in others])
        if features:
            rows = self._rows(np.asarray(numbers))
            for name in features:
                table = table.append_column(name, pa.array(native(rows[:, self._names.index(name)])))
        return table.select(names)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Columns of the table beside the array, one of which may name the rows."""
        yield self._beside.select(list(columns))

    def _rows(self, numbers: IntArray) -> Any:
        if hasattr(self._X, "shape"):
            rows = self._X[numbers]
            return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        empty = np.zeros((0, self._X.n_features))
        return np.concatenate([empty, *(self._X.read(int(i), int(i) + 1) for i in numbers)])


def place_of(number: int, line: Callable[[int], int | None] | None) -> dict[str, Any]:
    """Where a row is, as arguments of a fault: its line, if ``line`` knows it, otherwise its number."""
    found = None if line is None else line(number)
    return {"line": found} if found is not None else {"where": f"row {number:,} (counted from 0)"}


def no_columns(n: int) -> Any:
    """A table of n rows and no columns, to which columns can be appended."""
    return pa.table({"": np.zeros(n, bool)}).select([])


def native(values: Any) -> Any:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)
