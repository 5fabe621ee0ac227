"""Columns of a table as numbers, so that distances between rows are sums of differences between columns.

‖z(a) − z(b)‖² = Σ_c d_c(a, b)²,    one term for each column c.

Every kind of column has one rule, so that no column drowns the others; ``mosaic.rows.kinds`` has them.

- **number**: (x − median) / spread, the spread of the middle nine tenths; of positive and skewed ones log(1 + x/q).
- **category**: different levels a and b are at d² = (z_a² + z_b²) / 2, where a normal value is beyond ±z_l as often as l occurs.
- **date or time**: days, as numbers, and points on a circle for cycles in which rows gather.
- **text** that does not repeat: principal axes of its counts of three letters, or of words if it is long, scaled so that two
  texts differ as two levels do.
- **embedding**, a list of equally many numbers in every row: its differences from the mean, scaled likewise.
- **missing**: in the middle of its column, and apart from every value that is there.

Identifiers, codes, constants, copies and other lists are left out. Ours; ``docs/decisions/0025`` has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.sources import ArraySource, LocalSource, Source
from mosaic.choosing import ColumnReason
from mosaic.door import as_points, as_weights
from mosaic.exceptions import InvalidInputError, warn
from mosaic.rows.frames import Cells, Values, holds_vectors, is_feature_name
from mosaic.rows.kinds import APART, Category, Column, Number
from mosaic.rows.parts import InParts
from mosaic.rows.rules import LeftOut, are_copies, notes_of, rule_of, signature_of
from mosaic.rows.tables import InMemory, Table, shape_of
from mosaic.text import listed

if TYPE_CHECKING:
    from mosaic.rows.rows import Rows


@dataclass(frozen=True)
class Encoder:
    """What the columns of rows mean, learned once, and how rows become numbers: those of a fit, and new ones.

    Attributes
    ----------
    columns : the rules of the columns that are compared; none where numbers are taken as they are
    features : these columns then; None where they have no names
    width : how many numbers a row has
    embedding : the column whose lists of numbers are compared
    left_out : the columns that are not compared, and why
    notes : what was assumed, such as that a cell that is no number is missing
    texts, text_rows : for explanations, cells of fit that cannot be read from their code, and the numbers of their rows,
        ascending; None for all rows

    Examples
    --------
    >>> import polars as pl
    >>> from mosaic.rows import Rows
    >>> rows = Rows.of(pl.DataFrame({"id": ["a", "b", "c"], "height": [1.7, 1.8, 1.6], "city": ["Ulm", "Rome", "Ulm"]}))
    >>> encoder = Encoder.fit(rows)
    >>> encoder.names, encoder.matrix(rows).shape
    (['height', 'city'], (3, 5))
    >>> print(*encoder.describe(), sep=" ")
    Compared as number: height; category: city. Not compared: id (names the rows).
    """

    columns: tuple[Column, ...] = ()
    features: tuple[str, ...] | None = None
    width: int = 0
    embedding: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Mapping[str, Values] = field(default_factory=dict, repr=False, compare=False)
    text_rows: IntArray | None = field(default=None, repr=False, compare=False)

    @classmethod
    def fit(cls, rows: Rows, *, as_given: bool = False) -> Encoder:
        """Learn what the columns of rows mean. Of rows outside memory some decide, and gaps are looked for in all of them;
        numbers that are taken ``as_given``, such as similarities, all count.
        """
        roles = rows.roles
        if rows.array is not None:
            names = None if rows.array_names is None else tuple(rows.array_names)
            return cls((), names, shape_of(rows.array)[1], left_out=roles.left_out)
        if (embedding := rows.request.embedding) is not None:
            said = f"The numbers are those of column {embedding!r}, {rows.length_of_lists:,} for each row."
            return cls((), None, rows.length_of_lists, embedding, notes=(said,))
        cells, numbers, complete = rows.deciding_cells(roles.compared)
        plain = cls._of_numbers(rows, cells, as_given)
        if plain is not None:
            return plain
        weights = rows.weights if complete else None
        if weights is not None:
            weights = as_weights(weights, rows.n)
            weights = weights if weights.any() else None
        encoder = cls.of(
            cells,
            keep=list(roles.asked_for),
            place=lambda row: rows.place(int(numbers[row])),
            weights=weights,
        )
        left_out = [*roles.left_out, *encoder.left_out]
        if not encoder.columns:
            shown = listed([f"{column.name!r} {column.why}" for column in left_out])
            fault = f"has no column that says anything about a row: {shown}"
            raise rows.request.fault(fault, "Pass other columns.")
        encoder = replace(encoder, left_out=tuple(left_out))
        if complete:
            return encoder.with_texts(cells.only(encoder.unreadable))
        said = (
            f"How columns are compared was found from {len(numbers):,} rows spread over the file."
        )
        return replace(encoder, notes=(*encoder.notes, said))

    @classmethod
    def _of_numbers(cls, rows: Rows, cells: Cells, as_given: bool) -> Encoder | None:
        """Columns of numbers, taken as they are; None where rules are needed, since one has gaps or others are compared, too."""
        roles = rows.roles
        asked_for = roles.asked_for
        numbers = [
            name
            for name in cells.numbers()
            if as_given or name in asked_for or is_feature_name(name)
        ]
        gaps, empty = gaps_of(rows.table, numbers)
        others = [name for name in roles.compared if name not in (*numbers, *empty)]
        left_out = None
        if as_given or not gaps:
            left_out = all_left_out(cells, [*others, *empty], asked_for)
        if left_out is None and not as_given:
            return None
        if left_out is None:
            left_out = []
            for name in (*others, *empty):
                of_words = [LeftOut(name, "holds no numbers", "this kernel takes nothing else")]
                left_out += all_left_out(cells, [name], asked_for) or of_words
        features = [name for name in numbers if name not in empty]
        if not features:
            raise nothing_left(rows, left_out)
        # scikit-learn knows names that are texts only.
        are_texts = all(isinstance(cells.columns[name].name, str) for name in features)
        names = tuple(features) if are_texts else None
        return cls((), names, len(features), left_out=(*roles.left_out, *left_out))

    @classmethod
    def of(
        cls,
        cells: Cells,
        *,
        keep: Sequence[str] = (),
        place: Callable[[int], str] = "row {}".format,
        weights: FloatArray | None = None,
    ) -> Encoder:
        """The rule for every column. ``keep`` are left out only if they are constant, ``place`` is what a row is called in notes.
        ``weights`` count in medians, spreads and shares; whether values repeat is a matter of rows, however often they count.
        """
        rows = None if weights is None or (weights == 1).all() else np.flatnonzero(weights > 0)
        weights = None if rows is None or weights is None else weights[rows]
        if (
            weights is not None and not (weights == np.round(weights)).all()
        ):  # no repetitions: then they are 1 on average
            weights = weights * (len(weights) / weights.sum())
        columns: list[Column] = []
        left_out: list[LeftOut] = []
        alike: dict[tuple[Any, ...], list[Column]] = {}
        for name in cells:
            values = cells[name] if rows is None else cells[name].take(rows)
            rule = rule_of(name, values, forced=name in keep, weights=weights)
            if isinstance(rule, LeftOut):
                left_out.append(rule)
                continue
            others = alike.setdefault(signature_of(rule, values), [])
            copied = (
                other.name
                for other in others
                if are_copies(rule.encode(cells[name]), other.encode(cells[other.name]))
            )
            twin = None if name in keep else next(copied, None)
            if twin is not None:
                left_out.append(
                    LeftOut(name, f"says the same as {twin!r}", f"leave out {twin!r} instead")
                )
                continue
            others.append(rule)
            columns.append(rule)
        notes = tuple(
            note for column in columns for note in notes_of(column, cells[column.name], place)
        )
        return cls(
            tuple(columns),
            width=sum(c.width for c in columns),
            left_out=tuple(left_out),
            notes=notes,
        )

    @property
    def has_rules(self) -> bool:
        """Whether columns have rules, and are not numbers that are taken as they are."""
        return bool(self.columns)

    @cached_property
    def names(self) -> list[str] | None:
        """The columns that rows are compared by; None where they have no names."""
        if self.columns:
            return [column.name for column in self.columns]
        return None if self.features is None else list(self.features)

    def of_places(self) -> Encoder:
        """The same for latitude and longitude alone, where two columns have such names."""
        names = self.names or []
        latitudes = [name for name in names if name.lower().startswith("lat")]
        longitudes = [name for name in names if name.lower().startswith(("lon", "lng"))]
        if len(latitudes) != 1 or len(longitudes) != 1:
            return self
        places = (*latitudes, *longitudes)
        others = [name for name in names if name not in places]
        others += [column.name for column in self.left_out if column.remedy is not None]
        known = [column for column in self.left_out if column.remedy is None]
        apart = [LeftOut(name, "is neither latitude nor longitude") for name in others]
        return replace(self, features=places, width=2, left_out=(*known, *apart))

    def noting_places(self, rows: Rows) -> Encoder:
        """The same, with a note where two columns seem to be latitude and longitude, by their names and values."""
        if not isinstance(rows.table, InMemory):
            return self
        places = self.of_places()
        if places is self:
            return self
        cells = rows.table.cells(places.features or ())
        if len(cells.numbers()) < 2:
            return self
        latitude, longitude = np.nanmax(np.abs(cells.matrix()), axis=0)
        if not (latitude <= 90.0 and longitude <= 360.0):
            return self
        note = f"{listed(list(map(repr, cells)))} seem to be places: kernel='haversine' compares them alone, on the sphere."
        return replace(self, notes=(*self.notes, note))

    @property
    def blocks(self) -> dict[str, slice]:
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return {
            c.name: slice(end - c.width, end) for c, end in zip(self.columns, ends, strict=True)
        }

    @cached_property
    def number_names(self) -> list[str] | None:
        """For each number of a row the column that it comes from; None where columns have no names."""
        if self.columns:
            return [column.name for column in self.columns for _ in range(column.width)]
        return self.names

    @property
    def read_columns(self) -> list[str]:
        """The columns that are read to make the numbers of a row."""
        return [self.embedding] if self.embedding is not None else self.names or []

    def encode(self, cells: Cells) -> Any:
        """The numbers of rows with these cells: an array, or a sparse matrix if all columns are sparse."""
        if not self.columns:
            return cells.only(self.read_columns or list(cells)).matrix()
        # One column after the other into its place: all of them and the whole would take twice the memory.
        cells = cells.only(self.read_columns)
        rows = np.empty((len(cells.frame), self.width))
        for column, where in zip(self.columns, self.blocks.values(), strict=True):
            rows[:, where] = column.encode(cells[column.name])
        return rows

    def matrix(self, rows: Rows) -> Any:
        """The numbers of rows in memory: an array, also on a device, or a sparse matrix."""
        if rows.stays:
            return self.source(rows).take(np.arange(rows.n))
        if rows.array is not None:
            return self._array_of(rows)
        assert isinstance(rows.table, InMemory)
        return self.encode(rows.table.cells(self.known_columns(rows)))

    def strange_cells(self, Z: FloatArray) -> IntArray:
        """Of each column how many cells of new rows with these numbers are as none was in fit: missing, infinite, without a
        number or date that can be read, or written unlike the others.
        """
        counts = np.zeros(len(self.columns), np.intp)
        for place, (column, block) in enumerate(
            zip(self.columns, self.blocks.values(), strict=True)
        ):
            if isinstance(column, Number) and not column.unread + column.unlike:
                usual_gap = APART / 2 if column.missing else 0.0
                counts[place] = np.count_nonzero(np.abs(Z[:, block.start + 1]) > usual_gap)
        return counts

    def warn_of(self, strange: IntArray) -> None:
        found = [
            f"{count:,} of {column.name!r}"
            for column, count in zip(self.columns, strange.tolist(), strict=True)
            if count
        ]
        if found:
            what = "missing, infinite, no numbers or dates, or written unlike the others"
            warn(f"New rows have cells as none was in fit, which are {what}: {listed(found)}.")

    def source(self, rows: Rows, n_jobs: int | None = None, *, is_new: bool = False) -> Source:
        """The numbers of rows, read in passes; of new ones, the first pass warns of strange cells."""
        if rows.array is None:
            table = rows.table
            if isinstance(table, InParts):
                ids = [] if rows.id_name is None else [rows.id_name]
                source: Source = table.encoded(
                    replace(self, texts={}, text_rows=None).encode,
                    self.known_columns(rows),
                    [*ids, *self.unreadable],
                    self.width,
                    has_rules=self.has_rules,
                )
            else:
                source = EncodedRows(self, rows, is_new)
        elif isinstance(array := self._array_of(rows), Source):
            source = copy(array)
        else:
            source = ArraySource(array, "memory map" if isinstance(array, np.memmap) else "array")
        source.names = self.number_names
        if isinstance(source, LocalSource):
            source.n_jobs = n_jobs
        return source

    def _array_of(self, rows: Rows) -> Any:
        names = rows.array_names
        known = self.names
        if self.columns or self.embedding is not None:
            fitted = ", ".join(map(repr, self.read_columns))
            raise InvalidInputError(
                f"X has no column names; fit was given a table with {fitted}", "Pass a data frame."
            )
        if names is not None and known is not None and list(names) != known:
            fault = f"has the columns {listed(names)}; those of fit were {listed(known)}"
            remedy = (
                "Write them in that order, or pass a data frame, whose columns are found by name."
            )
            raise InvalidInputError(fault, remedy, parameter="X")
        width = shape_of(rows.array)[1]
        if width != self.width and (
            rows.stays or rows.path is not None
        ):  # of other arrays scikit-learn says it
            fault = f"has {width} columns of numbers, the data of fit had {self.width}"
            raise rows.request.fault(fault, "Pass the same columns.")
        return rows.array

    def known_columns(self, rows: Rows) -> list[str]:
        """The columns of rows that are read, all of which must be there."""
        wanted = self.read_columns
        if not wanted and isinstance(rows.table, InMemory):  # fit was given an array
            numbers = rows.table.cells(rows.roles.compared).numbers()
            wanted = [name for name in numbers if is_feature_name(name)]
            if not wanted:
                raise nothing_left(rows, [])
        missing = [name for name in wanted if name not in rows.table.columns]
        if missing:
            has = listed([repr(name) for name in rows.table.columns]) or "no columns"
            first, *others = missing
            like = f", like {listed(list(map(repr, others)))}" if others else ""
            said = f"was there in fit and is missing now{like}; X has {has}"
            raise rows.request.fault(said, "Add or rename the columns, or fit again.", first)
        return wanted

    @property
    def unreadable(self) -> list[str]:
        """Columns with cells that cannot be read from their code: texts, rare values, and what is no number or date."""
        return [column.name for column in self.columns if column.has_texts]

    def with_texts(self, cells: Mapping[str, Values], rows: IntArray | None = None) -> Encoder:
        """The same, with the texts among these cells, of all rows or of some, in ascending order."""
        texts = {name: values for name, values in cells.items() if values.codes is not None}
        return replace(self, texts=texts, text_rows=rows)

    def reading(self, name: str, z: FloatArray, row: int | None = None) -> ColumnReason:
        """What a row with the numbers z has in this column."""
        known = self.texts.get(name)
        text = None
        if known is not None and row is not None:
            place = row if self.text_rows is None else int(np.searchsorted(self.text_rows, row))
            if self.text_rows is None or row in self.text_rows[place : place + 1]:
                text = known.text(place)
        column = next(column for column in self.columns if column.name == name)
        side = column.contrast(z) if isinstance(column, Number) else ""
        value = column.value(z, text)
        cause = name
        if value == "missing":
            cause = f"missing {name}"
        elif text and isinstance(column, Category) and column.meant(z, text):
            cause = f"spelling of {name}"
        return ColumnReason(name, value, column.usually, side, column.is_unusual(z), cause)

    def compared(self, rows: Rows) -> list[ComparedColumn]:
        """How each column of the rows that this was learned from is compared; see ``mosaic.columns``."""
        found = [ComparedColumn(column.name, column.how, column.usually) for column in self.columns]
        if not self.has_rules:
            how = "number, as it is" if rows.pictures_of is None else "picture, by its pixels"
            found = [ComparedColumn(name, how, "") for name in self.names or rows.columns]
        return [
            *found,
            *(ComparedColumn(column.name, "not compared", column.why) for column in self.left_out),
        ]

    def describe(self) -> tuple[str, ...]:
        """How columns are compared, which are not, and what was assumed, in sentences."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            kinds.setdefault(column.how, []).append(column.name)
        used = "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items())
        compared = [f"Compared as {used}."] if kinds else []
        return (*compared, *not_compared(self.left_out), *self.notes)


class ComparedColumn(NamedTuple):
    """How rows are compared by a column, and what is usual in it; or why they are not."""

    column: str
    compared_as: str
    usual_or_why_not: str


def columns(X: object) -> list[ComparedColumn]:
    """How each column of X will be compared, or why it is not, before a fit. X is as for ``MOSAIC.fit``.

    Examples
    --------
    >>> import polars as pl
    >>> import mosaic
    >>> height, name = mosaic.columns(pl.DataFrame({"height": [1.7, 1.8, 1.6], "id": ["a", "b", "c"]}))
    >>> height.compared_as, name.compared_as, name.usual_or_why_not
    ('number, as it is', 'not compared', 'names the rows')
    """
    from mosaic.rows.rows import Rows

    rows = Rows.of(X)
    if rows.array is not None and not rows.stays:
        as_points(rows.array)
    return Encoder.fit(rows).compared(rows)


class EncodedRows(LocalSource):
    """The columns of a table as rows of numbers, made block by block; missing values are NaN, or as their rule says."""

    def __init__(self, encoder: Encoder, rows: Rows, is_new: bool):
        self._is_new = is_new
        self.kind = rows.request.kind
        self.n = rows.n
        self.n_features = encoder.width
        self._table = rows.table
        self._encoder = encoder
        self._columns = encoder.known_columns(rows)
        self.files = getattr(rows.table, "paths", [])
        self.buffers = getattr(rows.table, "pages", 0.0)

    def stream(self) -> Iterator[tuple[int, Any]]:
        known = 0
        strange = np.zeros(len(self._encoder.columns), np.intp)
        for cells in self._table.blocks(self._columns):
            rows = self._encoder.encode(cells)
            if self._is_new:
                strange += self._encoder.strange_cells(rows)
            yield known, rows
            known += len(cells.frame)
        if self._is_new:
            self._encoder.warn_of(strange)
        self._is_new = False

    def read(self, start: int, stop: int) -> Any:
        return np.concatenate(
            [
                self._encoder.encode(cells)
                for cells in self._table.blocks(self._columns, start, stop)
            ]
        )


def not_compared(columns: Sequence[LeftOut]) -> list[str]:
    if columns:
        return [f"Not compared: {listed([f'{column.name} ({column.why})' for column in columns])}."]
    return []


def gaps_of(table: Table, columns: Sequence[str]) -> tuple[set[str], list[str]]:
    """Of columns of numbers those in which some are missing, and those in which all are."""
    if not columns:
        return set(), []
    missing = np.zeros(len(columns), np.intp)
    if isinstance(table, InParts):
        missing = table.missing(columns)  # counted where the rows are
    else:
        for cells in table.blocks(columns):
            matrix = cells.matrix()
            if not hasattr(matrix, "indptr"):
                missing += (~np.isfinite(matrix)).sum(axis=0)
    counts = list(zip(columns, missing.tolist(), strict=True))
    empty = [name for name, count in counts if count == table.n > 0]
    some = {name for name, count in counts if 0 < count < table.n}
    return some, empty


def all_left_out(
    cells: Cells, names: Sequence[str], asked_for: Collection[str]
) -> list[LeftOut] | None:
    """Why each of these columns is not compared; None if one is."""
    left_out = []
    for name in names:
        rule = rule_of(name, cells[name], forced=name in asked_for)
        if not isinstance(rule, LeftOut):
            return None
        left_out.append(rule)
    return left_out


def nothing_left(rows: Rows, left_out: Sequence[LeftOut]) -> InvalidInputError:
    """The error of rows without any column that they can be compared by."""
    kinds = rows.table.kinds()
    shown = listed([f"{name} ({kind})" for name, kind in kinds.items()])
    lists = [name for name, kind in kinds.items() if holds_vectors(kind)]
    why = listed([f"{column.name!r} {column.why}" for column in left_out])
    remedy = "Convert columns that stand for numbers, and rename those that have the name of an id but say something about a row."
    if lists:
        remedy = f"Are these embeddings? Use `embedding={lists[0]!r}`."
    said = f"has no column of numbers to compare rows by; it has {shown or 'no columns'}"
    return rows.request.fault(f"{said}{': ' if why else ''}{why}", remedy)
