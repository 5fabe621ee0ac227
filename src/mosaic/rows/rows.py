"""Rows: numbers to compute with, and for every row its name and all its cells, in memory or read again when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.frames import row_numbers
from mosaic.rows.faults import FileFault
from mosaic.rows.names import COMPARED_NAMES, RowNames, only_row
from mosaic.rows.roles import without_categories
from mosaic.text import Library, jsonable

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

# The cells of rows are in a store: ``InMemory``, ``InArray``, ``InParquet``, ``SavedRows``. It has ``columns``, ``n`` and
# ``held`` (bytes in memory); ``take(numbers, columns)`` gives some rows as a ``pyarrow.Table``, by their number in the file, and
# ``batches(columns)`` all of them, in order.

#: Cells that are kept, at most: of picks, then of outliers, then of other rows. Picks are kept whatever their number.
MOST_CELLS = 100_000
#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class InMemory:
    """A ``pyarrow.Table``."""

    def __init__(self, table: Any):
        self.table, self.schema = table, table.schema
        self.columns, self.n = list(table.column_names), table.num_rows
        # To ask thousands of short columns takes long, and they hold little.
        self.held = 8.0 * self.n * table.num_columns if self.n < table.num_columns else float(table.nbytes)

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        if not columns:  # without columns pyarrow forgets how many rows are taken
            return no_columns(len(numbers))
        return self.table.select(list(columns)).take(pa.array(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self.table.select(list(columns))

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        yield self.table.select(list(columns)).slice(start, stop - start)


class InArray:
    """An array or source: its features are the columns, unless they are too many to look at; those ``beside`` it come first."""

    def __init__(self, X: Any, names: Sequence[str] | None, beside: Any = None):
        self._X, self._beside = X, beside
        self.n, width = shape_of(X)
        self._names = [f"x{j}" for j in range(width)] if names is None else list(names)
        self._others = [] if beside is None else list(beside.column_names)
        shown = [x for x in self._names if width <= SHOWN_FEATURES and x not in self._others]
        self.columns, self.held = [*self._others, *shown], 0.0

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        numbers, table = np.asarray(numbers), no_columns(len(numbers))
        beside = [name for name in columns if name in self._others]
        if beside:
            table = InMemory(self._beside).take(numbers, beside)
        features = [name for name in columns if name not in self._others]
        if features:
            if hasattr(self._X, "shape"):
                rows = self._X[numbers]
                rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
            else:
                empty = np.zeros((0, self._X.n_features))
                rows = np.concatenate([empty, *(self._X.read(int(i), int(i) + 1) for i in numbers)])
            for name in features:
                table = table.append_column(name, pa.array(native(rows[:, self._names.index(name)])))
        return table.select(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self._beside.select(list(columns))


class Rows:
    """Rows: their numbers as ``MOSAIC.fit`` takes them, their names, and all their cells.

    Made by :func:`mosaic.read`. A context manager; leaving it removes temporary files.

    Attributes
    ----------
    path : of the file or folder
    kind : what it is, as a person would say it: "CSV file", "images in a folder"
    X : float array, memory map, CSR matrix, or a source that is read in passes
    n, n_features : number of rows, and of the columns that they are compared by
    feature_names : names of these columns, None where they have none
    encoder : how they became the numbers in X, a ``mosaic.rows.encoder.TableEncoder``; None where they are numbers as they are
    notes : sentences on what was assumed
    columns : names of what ``cells`` gives
    id_name : the column that names the rows, None where there is none
    groups, group_name : of every row the value of the group column, as text, and its name; None without one
    weights, weight_name : of every row the value of the weight column, and its name; None without one
    left_out : columns of numbers that are no features because they are called as ids are
    options : arguments of ``mosaic.read`` by which another file of such rows is read in the same way
    dropped : numbers in the file, ascending, of rows that were left out because numbers are missing in them
    listed : numbers in the file, ascending, of the rows whose cells a saved model kept; None where all are there
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        X: Any,
        store: Any,
        *,
        feature_names: Sequence[str] | None = None,
        id_name: str | None = None,
        notes: Sequence[str] = (),
        dropped: IntArray | None = None,
        group_name: str | None = None,
        left_out: Sequence[str] = (),
        encoder: Any = None,
        line: Callable[[int], int | None] | None = None,
        pictures: Callable[[IntArray, int], list[bytes]] | None = None,
        close: Callable[[], None] | None = None,
    ):
        self.path, self.kind, self.X = path, kind, X
        self.n, self.n_features = shape_of(X)
        self.encoder = encoder
        if encoder is not None:
            feature_names = encoder.names
            self.n_features = len(encoder.names)
        self.feature_names = None if feature_names is None else [str(name) for name in feature_names]
        self.id_name, self.notes = id_name, list(notes)
        self.groups: Any = None
        self.weights: FloatArray | None = None
        self.group_name, self.left_out = group_name, list(left_out)
        self.weight_name: str | None = None
        self.listed: IntArray | None = None
        self.options: dict[str, Any] = {}
        self._store, self._pictures, self._line = store, pictures, line
        self.columns = list(store.columns)
        self.dropped = np.zeros(0, np.intp) if dropped is None else dropped
        self._closers = [] if close is None else [close]

    @property
    def held(self) -> float:
        """Bytes of the file that are in memory: of its columns, and of the numbers made from them."""
        X = self.X.data if hasattr(self.X, "indptr") else self.X
        return float(self._store.held) + (0 if isinstance(X, np.memmap) else float(getattr(X, "nbytes", 0)))

    @property
    def has_names(self) -> bool:
        """Whether rows are called something else than their number."""
        return self.id_name is not None

    def names(self, rows: ArrayLike) -> list[str]:
        """What these rows are called: their id or file name, else their number, counted from 0 in the file."""
        numbers = self.numbers(rows)
        if self.id_name is None:
            return [str(number) for number in numbers]
        return _texts(self._store.take(numbers, [self.id_name]).column(0))

    def cells(self, rows: ArrayLike, columns: Sequence[str] | None = None) -> Any:
        """These columns of these rows, all of them in the order of the file if not given, as a ``pyarrow.Table``."""
        return self._store.take(self.numbers(rows), columns or self.columns)

    def find(self, name: str) -> int:
        """The row that is called so: by its id, or by its number where rows have no ids.

        Raises
        ------
        InvalidInputError
            if there is none, or more than one.
        """
        last, where = self.n + len(self.dropped) - 1, f"{self.path}: "
        if self.id_name is None:
            found = [int(name)] if str(name).isdecimal() and int(name) <= last else []
            if not found:
                fault = f"there is no row {name!r}; rows have no ids and are called by their numbers, 0 to {last:,}"
                raise InvalidInputError(where + fault, "Name the column of ids with `id`, if there is one.")
        else:
            found, begin = [], 0
            for batch in self._id_batches():
                found += [begin + place for place in _places(batch, str(name))]
                begin += len(batch)
        rows = [number - int(np.searchsorted(self.dropped, number)) for number in found if number not in self.dropped]
        if found and not rows:
            fault = f"row {name!r} was left out, because numbers are missing in it"
            raise InvalidInputError(where + fault, "Fill them in, or name another row.")
        number = " For a row number use `row`." if str(name).isdecimal() and int(name) < self.n else ""
        twice = "Name a column of different values with `id`, or give the row number."
        none = f"Check the spelling, or name the column of ids with `id`.{number}"
        origin = f"column {self.id_name!r}"
        return only_row(name, rows, origin, self._some_names, where=where, remedies=(twice, none))

    def _some_names(self) -> list[str]:
        some: list[str] = []
        for batch in self._id_batches():
            some += _texts(batch.slice(0, COMPARED_NAMES - len(some)))
            if len(some) == COMPARED_NAMES:
                break
        return some

    def row_names(self, rows: IntArray | None = None) -> RowNames | None:
        """The names of all rows, or of some, which are then in ascending order; None where rows have none."""
        if self.id_name is None:
            return None
        rows = None if rows is None else np.sort(rows)
        names = self.names(np.arange(self.n) if rows is None else rows)
        return RowNames(tuple(names), f"column {self.id_name!r}", rows)

    def line(self, row: int) -> int | None:
        """The line of a text file that a row begins on, counted from 1 with the header; None for other files."""
        return None if self._line is None else self._line(int(self.numbers([row])[0]))

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Small pictures of these rows as PNG or JPEG, no larger than side × side; None where rows are no pictures."""
        return None if self._pictures is None else self._pictures(self.numbers(rows), side)

    def numbers(self, rows: ArrayLike) -> IntArray:
        """Row numbers in the file, counted from 0, of rows of X; they differ where rows were left out."""
        numbers = row_numbers(rows, self.n)
        # For every dropped row, how many of the rows that are left come before it.
        kept_before = self.dropped - np.arange(len(self.dropped))
        return numbers + np.searchsorted(kept_before, numbers, side="right")

    def take_numbers_of(self, other: Rows) -> None:
        """Take over the numbers of another file, which has as many rows as this one. It is closed with this one."""
        if self.id_name in other.columns and other.id_name == self.id_name:
            ours = (name for batch in self._id_batches() for name in _texts(batch))
            theirs = (name for batch in other._id_batches() for name in _texts(batch))
            for row, (one, name) in enumerate(zip(ours, theirs, strict=True)):
                if one != name:
                    here = f"row {row:,} (counted from 0) is {name!r} in column {self.id_name!r}"
                    remedy = (
                        f"Write both files in the same order, or leave column {self.id_name!r} out of this one if it "
                        "means something else."
                    )
                    raise FileFault(other.path, f"{here}, that of {self.path.name} {one!r}", remedy)
        self._closers.append(other.close)
        self.X, self.n, self.n_features, self.feature_names = other.X, other.n, other.n_features, other.feature_names
        self.encoder, self.dropped = other.encoder, other.dropped
        kept = other.numbers(np.arange(other.n))
        self.groups = None if self.groups is None else self.groups[kept]
        self.weights = None if self.weights is None else self.weights[kept]
        self.notes += [note for note in other.notes if "left out" in note]

    def at_close(self, close: Callable[[], None]) -> None:
        """Do this, too, when the rows are closed."""
        self._closers.append(close)

    def close(self) -> None:
        """Remove temporary files and let go of others. X may not be used any more."""
        for close in self._closers:
            close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path}: {self.n:,} rows, {self.n_features:,} features>"

    def _id_batches(self) -> Iterator[Any]:
        return (batch.column(0) for batch in self._store.batches([str(self.id_name)]))


@dataclass(frozen=True)
class SavedRows:
    """Names of the rows that a fit has in memory, and cells of picks, outliers and, in a small table, of all rows.

    Attributes
    ----------
    file, kind : name of the file, and what it is, as a person would say it
    n, dropped : number of rows in the file, and the numbers of those that were left out
    n_features, feature_names : of the columns that rows are compared by
    id_name, ids : column that names rows, and the names of ``named``; None where rows have only numbers
    group_name : column of the groups
    named : numbers in the file of the rows in memory, in ascending order
    listed, cells : numbers in the file of the rows whose cells are kept, in ascending order, and these by column
    options : of ``mosaic.read``, those by which another file of such rows is read in the same way
    notes : what was assumed when the file was read
    """

    file: str
    kind: str
    n: int
    dropped: IntArray
    n_features: int
    feature_names: tuple[str, ...] | None
    id_name: str | None
    ids: tuple[str, ...] | None
    group_name: str | None
    named: IntArray
    listed: IntArray
    cells: Mapping[str, tuple[Any, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fits = (self.ids is None) == (self.id_name is None) and (self.ids is None or len(self.ids) == len(self.named))
        for numbers in (self.named, self.listed, self.dropped):
            fits = fits and (not len(numbers) or bool(numbers[0] >= 0 and numbers[-1] < self.n and (np.diff(numbers) > 0).all()))
        if not fits or any(len(values) != len(self.listed) for values in self.cells.values()):
            raise ValueError("kept rows, their names and their cells do not fit together")

    @classmethod
    def of(cls, rows: Rows, selection: Any) -> SavedRows:
        r"""Of rows and the selection (``mosaic.Selection``) that was found in them.

        Examples
        --------
        >>> import tempfile
        >>> from mosaic import MOSAIC, read
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.csv").write_text("id,x,y\na,1,2\nb,1,3\nc,9,9\nd,9,8\n")
        ...     with read(Path(folder, "a.csv")) as rows:
        ...         saved = SavedRows.of(rows, MOSAIC(2, outliers="keep").fit(rows).selection_)
        >>> saved.as_rows().names([0, 3]), saved.as_rows().cells([1]).to_pylist()
        (['a', 'd'], [{'id': 'b', 'x': 1, 'y': 3}])
        """
        in_memory = selection.material.rows_in_data(np.arange(len(selection.material.points.group)))
        odd = np.flatnonzero(selection.outlier_rows)
        odd = selection.material.rows_in_data(odd[np.argsort(selection.counts_of_rows[odd], kind="stable")])
        wanted = list(dict.fromkeys([*selection.rows.tolist(), *odd.tolist(), *in_memory.tolist()]))
        flat = [
            c.name
            for c in rows.cells(wanted[:1]).schema
            if c.name != rows.id_name and not types.is_nested(c.type) and not types.is_binary(c.type)
        ]
        most = max(MOST_CELLS // max(len(flat), 1), len(selection.rows))
        listed = np.sort(np.array(wanted[:most], np.intp))
        cells = rows.cells(listed).select(flat)
        in_memory = np.sort(np.asarray(in_memory, np.intp))
        return cls(
            file=rows.path.name,
            kind=rows.kind,
            n=rows.n + len(rows.dropped),
            dropped=np.asarray(rows.dropped, np.intp),
            n_features=rows.n_features,
            feature_names=None if rows.feature_names is None else tuple(rows.feature_names),
            id_name=rows.id_name,
            ids=tuple(rows.names(in_memory)) if rows.has_names else None,
            group_name=rows.group_name,
            named=np.asarray(rows.numbers(in_memory), np.intp),
            listed=np.asarray(rows.numbers(listed), np.intp),
            cells={name: tuple(jsonable(value) for value in _values(cells.column(name))) for name in flat},
            options=dict(rows.options),
            notes=tuple(rows.notes),
        )

    @classmethod
    def bare(cls, file: str, n: int, n_features: int, feature_names: Any = None) -> SavedRows:
        """Of a model that was saved without a table: n rows that have only numbers."""
        nothing = np.zeros(0, np.intp)
        names = None if feature_names is None else tuple(str(name) for name in feature_names)
        return cls(file, "saved model", n, nothing, n_features, names, None, None, None, nothing, nothing, {})

    def as_rows(self) -> Rows:
        """The rows again, without numbers; cells that were not kept are missing."""
        rows = Rows(
            Path(self.file),
            self.kind,
            np.zeros((self.n - len(self.dropped), 0)),
            self,
            feature_names=self.feature_names,
            id_name=self.id_name,
            notes=self.notes,
            dropped=self.dropped,
            group_name=self.group_name,
        )
        rows.n_features, rows.listed = self.n_features, self.listed
        return rows

    @property
    def columns(self) -> list[str]:
        return [*([] if self.id_name is None else [self.id_name]), *self.cells]

    @property
    def held(self) -> float:
        return 0.0

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """Cells, missing ones as null; names are known of all rows in memory."""
        found = {}
        for name in columns:
            known, values = (self.named, self.ids) if name == self.id_name else (self.listed, self.cells[name])
            place = np.searchsorted(known, numbers)
            there = (place < len(known)) & (known[np.minimum(place, len(known) - 1)] == numbers)
            assert values is not None
            found[name] = pa.array([values[p] if is_there else None for p, is_there in zip(place, there, strict=True)])
        return pa.table(found) if found else no_columns(len(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self.take(np.arange(self.n), columns)


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and features of an array, a matrix or a source."""
    if hasattr(X, "n_features"):
        return int(X.n), int(X.n_features)
    return int(X.shape[0]), int(X.shape[1])


def no_columns(n: int) -> Any:
    """A table of n rows and no columns, to which columns can be appended."""
    return pa.table({"": np.zeros(n, bool)}).select([])


def native(values: Any) -> Any:
    """Numbers as pyarrow takes them: in the order of bytes of this machine, and of no more than 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        return values.astype(np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


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


def _values(column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # such as the year 14645, for which Python has no date
        return list(column.cast(pa.string()).to_pylist())
