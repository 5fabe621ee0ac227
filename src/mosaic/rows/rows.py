"""Rows: numbers to compute with, and for every row its name and all its cells, in memory or read again when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.exceptions import InvalidInputError
from mosaic.rows.encoder import LeftOut
from mosaic.rows.frames import row_numbers
from mosaic.rows.names import COMPARED_NAMES, RowNames, only_row
from mosaic.rows.roles import values_of
from mosaic.text import Library, jsonable

pa, types = Library("pyarrow"), Library("pyarrow.types")

# The cells of rows are in a store: ``InMemory``, ``InArray``, ``InParquet``, ``SavedRows``. It has ``columns``, ``n`` and
# ``held`` (bytes in memory); ``take(numbers, columns)`` gives some rows as a ``pyarrow.Table``. All but ``InArray``, which has
# no names, also have ``batches(columns)``, which gives all rows.

NO_ROWS = np.zeros(0, np.intp)
#: Cells that are kept, at most: of picks, then of outliers, then of other rows. Picks are kept whatever their number.
MOST_CELLS = 100_000
#: Features of a bare array are shown as columns if there are no more of them.
SHOWN_FEATURES = 50


class InMemory:
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
        table = self.table.select(list(columns))
        for first in range(start, stop, BLOCK_ROWS):
            yield table.slice(first, min(BLOCK_ROWS, stop - first))


class InArray:
    """An array or source, whose features are the columns, unless they are too many to look at."""

    held = 0.0

    def __init__(self, X: Any, names: Sequence[str] | None):
        self._X, (self.n, width) = X, shape_of(X)
        self.columns = [] if width > SHOWN_FEATURES else [f"x{j}" for j in range(width)] if names is None else list(names)

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        table = no_columns(len(numbers))
        if columns and hasattr(self._X, "shape"):
            rows = self._X[np.asarray(numbers)]
            rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        elif columns:
            empty = np.zeros((0, self._X.n_features))
            rows = np.concatenate([empty, *(self._X.read(int(i), int(i) + 1) for i in numbers)])
        for name in columns:
            table = table.append_column(name, pa.array(native(rows[:, self.columns.index(name)])))
        return table


@dataclass(eq=False, repr=False)
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
    left_out : columns that are not compared, and why
    unreadable : pictures that were left out because they cannot be read, and why
    options : arguments of ``mosaic.read`` by which another file of such rows is read in the same way
    """

    path: Path
    kind: str
    X: Any
    store: Any
    feature_names: list[str] | None = None
    encoder: Any = None
    id_name: str | None = None
    notes: list[str] = field(default_factory=list)
    groups: Any = None
    group_name: str | None = None
    weights: FloatArray | None = None
    weight_name: str | None = None
    left_out: list[LeftOut] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    pictures_of: Callable[[IntArray, int], list[bytes]] | None = None
    closers: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = self.feature_names if self.encoder is None else self.encoder.names
        self.feature_names = None if names is None else [str(name) for name in names]

    @property
    def n(self) -> int:
        return shape_of(self.X)[0]

    @property
    def n_features(self) -> int:
        return shape_of(self.X)[1] if self.encoder is None else len(self.encoder.names)

    @property
    def columns(self) -> list[str]:
        return list(self.store.columns)

    @property
    def held(self) -> float:
        """Bytes of the file that are in memory: of its columns, and of the numbers made from them."""
        X = self.X.data if hasattr(self.X, "indptr") else self.X
        return float(self.store.held) + (0 if isinstance(X, np.memmap) else float(getattr(X, "nbytes", 0)))

    @property
    def has_names(self) -> bool:
        """Whether rows are called something else than their number."""
        return self.id_name is not None

    def names(self, rows: ArrayLike) -> list[str]:
        """What these rows are called: their id or file name, else their number, counted from 0."""
        numbers = row_numbers(rows, self.n)
        if self.id_name is None:
            return [str(number) for number in numbers]
        return _texts(self.store.take(numbers, [self.id_name]).column(0))

    def cells(self, rows: ArrayLike, columns: Sequence[str] | None = None) -> Any:
        """These columns of these rows, all of them in the order of the file if not given, as a ``pyarrow.Table``."""
        return self.store.take(row_numbers(rows, self.n), columns or self.columns)

    def find(self, name: str) -> int:
        """The row that is called so: by its id, or by its number where rows have no ids. One that is not there is refused."""
        if self.id_name is None and str(name).isdecimal() and int(name) < self.n:
            return int(name)
        if self.id_name is None:
            fault = f"there is no row {name!r}; rows have no ids and are called by their numbers, 0 to {self.n - 1:,}"
            raise InvalidInputError(fault, "Name the column of ids with `id`, if there is one.")
        found: list[int] = []
        some: list[str] = []
        begin = 0
        for batch in self.store.batches([self.id_name]):
            texts = _texts(batch.column(0))
            found += [begin + place for place, text in enumerate(texts) if text == str(name)]
            some += texts[: COMPARED_NAMES - len(some)]
            begin += len(texts)
        return only_row(name, found, f"column {self.id_name!r}", some)

    def row_names(self, rows: IntArray | None = None) -> RowNames | None:
        """The names of all rows, or of some, which are then in ascending order; None where rows have none."""
        if self.id_name is None:
            return None
        rows = None if rows is None else np.sort(rows)
        names = self.names(np.arange(self.n) if rows is None else rows)
        return RowNames(tuple(names), f"column {self.id_name!r}", rows)

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Small pictures of these rows as PNG or JPEG, no larger than side × side; None where rows are no pictures."""
        return None if self.pictures_of is None else self.pictures_of(row_numbers(rows, self.n), side)

    def close(self) -> None:
        """Remove temporary files and let go of others. X may not be used any more."""
        for close in self.closers:
            close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path}: {self.n:,} rows, {self.n_features:,} features>"


@dataclass(frozen=True)
class SavedRows:
    """Names of the rows that a fit has in memory, and cells of picks, outliers and, in a small table, of all rows.

    ``named`` are the numbers of the rows with ``ids``, ``listed`` of those with ``cells``, both ascending. By ``options`` of
    ``mosaic.read`` another file of such rows is read.
    """

    file: str
    kind: str
    n: int
    id_name: str | None = None
    ids: tuple[str, ...] | None = None
    group_name: str | None = None
    named: IntArray = field(default_factory=NO_ROWS.copy)
    listed: IntArray = field(default_factory=NO_ROWS.copy)
    cells: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    held: ClassVar[float] = 0.0

    @classmethod
    def of(cls, rows: Rows, selection: Any) -> SavedRows:
        """Of rows and the selection (``mosaic.Selection``) that was found in them."""
        in_memory = selection.data.rows_in_data(np.arange(len(selection.data.points.point_of)))
        odd = np.flatnonzero(selection.outlier_rows)
        odd = selection.data.rows_in_data(odd[np.argsort(selection.counts_of_rows[odd], kind="stable")])
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
            n=rows.n,
            id_name=rows.id_name,
            ids=tuple(rows.names(in_memory)) if rows.has_names else None,
            group_name=rows.group_name,
            named=in_memory,
            listed=listed,
            cells={name: tuple(jsonable(value) for value in values_of(cells.column(name))) for name in flat},
            options=dict(rows.options),
            notes=tuple(rows.notes),
        )

    def as_rows(self, n_features: int = 0, names: Any = None) -> Rows:
        """The rows again, without numbers; cells that were not kept are missing. ``names`` are those of the features."""
        shape = SimpleNamespace(n=self.n, n_features=n_features)
        rows = Rows(Path(self.file), self.kind, shape, self, names, id_name=self.id_name)
        rows.notes, rows.group_name = list(self.notes), self.group_name
        return rows

    @property
    def columns(self) -> list[str]:
        return [*([] if self.id_name is None else [self.id_name]), *self.cells]

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """Cells, missing ones as null; names are known of all rows in memory."""
        found = {}
        for name in columns:
            known, values = (self.named, self.ids or ()) if name == self.id_name else (self.listed, self.cells[name])
            place = dict(zip(known.tolist(), values, strict=True))
            found[name] = pa.array([place.get(number) for number in np.asarray(numbers).tolist()])
        return pa.table(found) if found else no_columns(len(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self.take(np.arange(self.n), columns)


def shape_of(X: Any) -> tuple[int, int]:
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
