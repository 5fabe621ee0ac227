"""A table: numbers to compute with, and for every row its name and all its columns, in memory or read again when asked for."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic._frames import row_numbers
from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import FileFault
from mosaic.rows.features import without_categories
from mosaic.rows.naming import COMPARED_NAMES, only_row
from mosaic.text import Library

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class Records(ABC):
    """Rows of a file with all their columns, by their number in it, counted from 0.

    Parameters
    ----------
    columns : names of the columns
    n : number of rows
    line : of a row number, the line of a text file that the row begins on; None for files without lines
    """

    def __init__(self, columns: Sequence[str], n: int, line: Callable[[int], int | None] | None = None):
        self.columns, self.n, self._line = list(columns), n, line

    @abstractmethod
    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """Some columns of these rows, in that order, as a ``pyarrow.Table``."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows of some columns, as ``pyarrow.RecordBatch`` or ``pyarrow.Table``, in the order of the file."""

    def line(self, number: int) -> int | None:
        """The line of a text file that a row begins on, counted from 1; None for files without lines."""
        return None if self._line is None else self._line(number)

    def place(self, number: int) -> dict[str, Any]:
        """Where a row is, as arguments of a fault: its line in a text file, otherwise its number."""
        return place_of(number, self._line)

    @property
    def held(self) -> float:
        """Bytes that are in memory."""
        return 0.0


class InMemory(Records):
    """A ``pyarrow.Table``."""

    def __init__(self, table: Any, line: Callable[[int], int | None] | None = None):
        super().__init__(table.column_names, table.num_rows, line)
        self.table = table

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """By number."""
        if not columns:  # without columns pyarrow forgets how many rows are taken
            return _no_columns(len(numbers))
        return self.table.select(list(columns)).take(pa.array(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """All of them at once."""
        yield self.table.select(list(columns))

    @property
    def held(self) -> float:
        """Bytes of the table; to ask thousands of short columns takes long, and they hold little."""
        return 8.0 * self.n * self.table.num_columns if self.n < self.table.num_columns else float(self.table.nbytes)


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
        n, width = shape_of(X)
        self._names = [f"x{j}" for j in range(width)] if names is None else list(names)
        others = [] if beside is None else list(beside.column_names)
        super().__init__([*others, *(x for x in self._names if width <= SHOWN_FEATURES and x not in others)], n)

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """A slice of the array, and rows of the table beside it."""
        others = set() if self._beside is None else set(self._beside.column_names)
        features = [name for name in columns if name not in others]
        table = _no_columns(len(numbers))
        if others:
            table = InMemory(self._beside).take(numbers, [name for name in columns if name in others])
        if features:
            rows = self._rows(np.asarray(numbers))
            for name in features:
                table = table.append_column(name, pa.array(native(rows[:, self._names.index(name)])))
        return table.select(list(columns))

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


def _no_columns(n: int) -> Any:
    """A table of n rows and no columns, to which columns can be appended."""
    return pa.table({"": np.zeros(n, bool)}).select([])


def native(values: Any) -> Any:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


class Table:
    """Rows of a file: their numbers as ``MOSAIC.fit`` takes them, their names, and all their columns.

    Made by :func:`mosaic.rows.open_table`. A context manager; leaving it removes temporary files.

    Attributes
    ----------
    path : of the file or folder
    kind : what it is, as a person would say it: "CSV file", "images in a folder"
    X : float array, memory map, CSR matrix, or a source that is read in passes
    n, n_features : number of rows, and of the columns that they are compared by
    feature_names : names of these columns, None where they have none
    encoder : how they became the numbers in X, a ``mosaic.rows.mixed.TableEncoder``; None where they are numbers as they are
    notes : sentences on what was assumed
    columns : names of what ``rows`` gives
    id_name : the column that names the rows, None where there is none
    groups, group_name : of every row the value of the group column, as text, and its name; None without one
    weights, weight_name : of every row the value of the weight column, and its name; None without one
    left_out : columns of numbers that are no features because they are called as ids are
    options : arguments of ``open_table`` by which another file of such rows is read in the same way
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        X: Any,
        records: Records,
        *,
        feature_names: Sequence[str] | None = None,
        id_name: str | None = None,
        notes: Sequence[str] = (),
        dropped: IntArray | None = None,
        groups: Any = None,
        group_name: str | None = None,
        weights: FloatArray | None = None,
        left_out: Sequence[str] = (),
        encoder: Any = None,
        pictures: Callable[[IntArray, int], list[bytes]] | None = None,
        clean: Callable[[], None] | None = None,
    ):
        self.path, self.kind, self.X = path, kind, X
        self.n, self.n_features = shape_of(X)
        self.encoder = encoder
        if encoder is not None:
            feature_names = encoder.names
            self.n_features = len(encoder.names)
        self.feature_names = None if feature_names is None else [str(name) for name in feature_names]
        self.id_name, self.notes, self.groups, self.weights = id_name, list(notes), groups, weights
        self.group_name, self.left_out = group_name, list(left_out)
        self.options: dict[str, Any] = {}
        self.weight_name: str | None = None
        self._records, self._pictures = records, pictures
        self.columns = list(records.columns)
        self._dropped = np.sort(np.zeros(0, np.intp) if dropped is None else dropped)
        self._cleaners: list[Callable[[], None]] = [] if clean is None else [clean]
        self._finalizer = weakref.finalize(self, _let_go, self._cleaners)

    @property
    def held(self) -> float:
        """Bytes of the file that are in memory: of its columns, and of the numbers made from them."""
        X = self.X.data if hasattr(self.X, "indptr") else self.X
        return self._records.held + (0 if isinstance(X, np.memmap) else float(getattr(X, "nbytes", 0)))

    @property
    def has_names(self) -> bool:
        """Whether rows are called something else than their number."""
        return self.id_name is not None

    def names(self, rows: ArrayLike) -> list[str]:
        """What these rows are called: their id or file name, else their number, counted from 0 in the file."""
        numbers = self.numbers(rows)
        if self.id_name is None:
            return [str(number) for number in numbers]
        return _texts(self._records.take(numbers, [self.id_name]).column(0))

    def rows(self, rows: ArrayLike) -> Any:
        """All columns of these rows, in the order of the file, as a ``pyarrow.Table``."""
        return self._records.take(self.numbers(rows), self.columns)

    def find(self, name: str) -> int:
        """The row that is called so: by its id, or by its number where rows have no ids.

        Raises
        ------
        InvalidInputError
            if there is none, or more than one.
        """
        if self.id_name is None:
            return self._by_number(name)
        found, begin = [], 0
        for batch in self._id_batches():
            found += [begin + place for place in _places(batch, str(name))]
            begin += len(batch)
        rows = [row for row in map(self._row_of, found) if row is not None]
        if found and not rows:
            raise self._left_out(name)
        number = " For a row number use `row`." if str(name).isdecimal() and int(name) < self.n else ""
        twice = "Name a column of different values with `id`, or give the row number."
        none = f"Check the spelling, or name the column of ids with `id`.{number}"
        origin, where = f"column {self.id_name!r}", f"{self.path}: "
        return only_row(name, rows, origin, self._some_names, where=where, remedies=(twice, none))

    def _some_names(self) -> list[str]:
        """Names of the first rows."""
        some: list[str] = []
        for batch in self._id_batches():
            some += _texts(batch.slice(0, COMPARED_NAMES - len(some)))
            if len(some) == COMPARED_NAMES:
                break
        return some

    def line(self, row: int) -> int | None:
        """The line of a text file that a row begins on, counted from 1 with the header; None for other files."""
        return self._records.line(int(self.numbers([row])[0]))

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Small pictures of these rows as PNG or JPEG, no larger than side × side; None where rows are no pictures."""
        return None if self._pictures is None else self._pictures(self.numbers(rows), side)

    @property
    def n_dropped(self) -> int:
        """Rows of the file that were left out, because numbers are missing in them."""
        return len(self._dropped)

    def take_numbers_of(self, other: Table) -> None:
        """Take over the numbers of another table, whose file has as many rows as this one's. It is closed with this one."""
        self._cleaners.append(other.close)
        self.X, self.n, self.n_features, self.feature_names = other.X, other.n, other.n_features, other.feature_names
        self.encoder = other.encoder
        self._dropped = other._dropped
        kept = other.numbers(np.arange(other.n))
        self.groups = None if self.groups is None else self.groups[kept]
        self.weights = None if self.weights is None else self.weights[kept]
        self.notes += [note for note in other.notes if "left out" in note]

    def check_same_names(self, other: Table) -> None:
        """Refuse another table of as many rows, with a column of the same name, whose ids are others or in another order."""
        for row, (ours, theirs) in enumerate(zip(self._all_names(), other._all_names(), strict=True)):
            if ours != theirs:
                raise FileFault(
                    other.path,
                    f"row {row:,} (counted from 0) is {theirs!r} in column {self.id_name!r}, that of {self.path.name} {ours!r}",
                    f"Write both files in the same order, or leave column {self.id_name!r} out of this one if it means something "
                    "else.",
                )

    def _all_names(self) -> Iterator[str]:
        """Names of all rows of the file, those that were left out included."""
        for batch in self._id_batches():
            yield from _texts(batch)

    def close(self) -> None:
        """Remove temporary files and let go of others. X may not be used any more."""
        self._finalizer()

    def at_close(self, clean: Callable[[], None]) -> None:
        """Do this, too, when the table is closed."""
        self._cleaners.append(clean)

    def keep_files(self) -> None:
        """Leave temporary files to those who read X, which may live longer than the table. They go when X goes."""
        self._cleaners.clear()

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path}: {self.n:,} rows, {self.n_features:,} features>"

    def numbers(self, rows: ArrayLike) -> IntArray:
        """Row numbers in the file, counted from 0, of rows of X; they differ where rows were left out."""
        numbers = row_numbers(rows, self.n)
        # For every dropped row, how many of the rows that are left come before it.
        kept_before = self._dropped - np.arange(len(self._dropped))
        return numbers + np.searchsorted(kept_before, numbers, side="right")

    def _row_of(self, number: int) -> int | None:
        """Row of X of a row of the file; None where it was dropped."""
        place = int(np.searchsorted(self._dropped, number))
        return None if number in self._dropped[place : place + 1] else number - place

    def _id_batches(self) -> Iterator[Any]:
        return (batch.column(0) for batch in self._records.batches([str(self.id_name)]))

    def _by_number(self, name: str) -> int:
        last = self.n + self.n_dropped - 1
        number = int(name) if str(name).isdecimal() else -1
        if not 0 <= number <= last:
            raise InvalidInputError(
                f"{self.path}: there is no row {name!r}; rows have no ids and are called by their numbers, 0 to {last:,}",
                "Name the column of ids with `id`, if there is one.",
            )
        row = self._row_of(number)
        if row is None:
            raise self._left_out(name)
        return row

    def _left_out(self, name: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self.path}: row {name!r} was left out, because numbers are missing in it",
            "Fill them in, or name another row.",
        )


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and features of an array, a matrix or a source."""
    if hasattr(X, "n_features"):
        return int(X.n), int(X.n_features)
    return int(X.shape[0]), int(X.shape[1])


def _texts(column: Any) -> list[str]:
    """Values as text, missing ones as nothing."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _places(column: Any, text: str) -> list[int]:
    """Where a value is written so."""
    column = without_categories(column)
    if types.is_integer(column.type) or types.is_large_string(column.type):
        column = column.cast(pa.string())
    if types.is_string(column.type):
        same = pc.fill_null(pc.equal(column, text), False)
        return np.flatnonzero(same.to_numpy(zero_copy_only=False)).tolist()
    return [place for place, value in enumerate(_texts(column)) if value == text]


def _let_go(cleaners: list[Callable[[], None]]) -> None:
    for clean in cleaners:
        clean()
