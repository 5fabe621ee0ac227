"""Rows with columns, in memory or in a file that is read again for the rows that are wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic._files import library

#: Bare numbers are shown as columns of a table if there are no more of them.
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

    def line(self, number: int) -> int | None:
        """The line of a text file that a row begins on, counted from 1; None for files without lines."""
        return None


class Columns(Records):
    """Rows whose columns can be looked through, one of which may name them."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows of some columns, as ``pyarrow.RecordBatch``, in the order of the file."""


class InMemory(Columns):
    """A ``pyarrow.Table``."""

    def __init__(self, table: Any, line: Callable[[int], int | None] | None = None):
        self.table, self.columns, self._line = table, list(table.column_names), line

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """By number."""
        table = self.table if columns is None else self.table.select(list(columns))
        if not table.num_columns:  # without columns pyarrow forgets how many rows are taken
            return no_columns(len(numbers))
        return table.take(library("pyarrow", "a table").array(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """As they are stored."""
        yield from self.table.select(list(columns)).to_batches()

    def line(self, number: int) -> int | None:
        """Where the text file is asked again."""
        return None if self._line is None else self._line(number)


class Streamed(Columns):
    """A file that is read from its beginning for every question, no further than the last row that is wanted.

    Parameters
    ----------
    columns : names of all columns
    read : of some columns all batches
    line : of a row number the line
    """

    def __init__(
        self,
        columns: Sequence[str],
        read: Callable[[Sequence[str]], Iterator[Any]],
        line: Callable[[int], int | None] | None = None,
    ):
        self.columns, self._read, self._line = list(columns), read, line

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """One pass; only the rows that are wanted are kept."""
        pa = library("pyarrow", "a table")
        names = self.columns if columns is None else list(columns)
        wanted, order = np.unique(numbers, return_inverse=True)
        parts: list[Any] = []
        begin = 0
        for batch in self._read(names):
            here = wanted[(wanted >= begin) & (wanted < begin + batch.num_rows)] - begin
            if len(here) or not parts:  # the first one also for its types
                parts.append(batch.take(pa.array(here)))
            begin += batch.num_rows
            if not len(wanted) or begin > wanted[-1]:
                break
        return pa.Table.from_batches(parts).take(pa.array(order.ravel())).combine_chunks()

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """One pass."""
        yield from self._read(list(columns))

    def line(self, number: int) -> int | None:
        """Where the text file is asked again."""
        return None if self._line is None else self._line(number)


class Bare(Records):
    """An array: its features are the columns, unless there are too many without names to look at."""

    def __init__(self, X: Any, names: Sequence[str] | None):
        self._X = X
        self._names = [f"x{j}" for j in range(X.shape[1])] if names is None else list(names)
        self.columns = self._names if X.shape[1] <= SHOWN_FEATURES else []

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """A slice of the array."""
        names = self.columns if columns is None else list(columns)
        if not names:
            return no_columns(len(numbers))
        return _as_table(self._rows(numbers), self._names, names)

    def _rows(self, numbers: IntArray) -> Any:
        return self._X[np.asarray(numbers)]


class Beside(InMemory):
    """Columns in memory, and after them the features of an array with as many rows."""

    def __init__(self, table: Any, array: Bare):
        super().__init__(table)
        self._array = array
        self.columns = self.columns + [name for name in array.columns if name not in table.column_names]

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """From both."""
        names = self.columns if columns is None else list(columns)
        found = super().take(numbers, [name for name in names if name in self.table.column_names])
        features = self._array.take(numbers, [name for name in names if name not in self.table.column_names])
        for name in features.column_names:
            found = found.append_column(name, features.column(name))
        return found.select(names)


def no_columns(n: int) -> Any:
    """A table of n rows and no columns, to which columns can be appended."""
    return library("pyarrow", "a table").table({"": np.zeros(n, bool)}).select([])


def _as_table(block: Any, names: Sequence[str], wanted: Sequence[str]) -> Any:
    rows = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
    return library("pyarrow", "a table").table({name: native(rows[:, names.index(name)]) for name in wanted})


def native(values: Any) -> Any:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)
