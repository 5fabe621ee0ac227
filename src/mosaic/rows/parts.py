"""Rows of a collection in parts, as Dask, Ray and Spark have them: a table, and a source of numbers. They stay where they are.

The engine does a job for every part and merges what comes of it. How rows are cut changes nothing: the sample of a fit are the
rows with the lowest hashes, copies of rows are counted, and answers are those of each row.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import IntArray, check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, PerRow, TakeRows, Task
from mosaic.arrays.sources import Source, Watch, dense_rows, map_part
from mosaic.choosing.budget import DECISION_SAMPLE, LARGER_SAMPLE, LARGER_SAMPLE_ENTRIES, budget_of
from mosaic.choosing.draw import Draw, drawn_before
from mosaic.door import check_entries
from mosaic.exceptions import InvalidInputError
from mosaic.rows.frames import Cells, cells_of, is_feature_name
from mosaic.rows.tables import InMemory, Outside
from mosaic.text import Library, listed

pa = Library("pyarrow")

#: Where the numbers of a part's rows begin as long as lengths are not known: its own number times this.
APART = 1 << 40
#: Rows by which a part is known again.
MARKED = 16
#: Parts have at most so many times the mean length, or a second pass may be needed.
SKEW = 4.0


class Job(Protocol):
    """What is done with every part, and how the results of neighbours become one; ``left`` holds the lower rows."""

    def of_part(self, part: Any, number: int) -> Any: ...
    def merge(self, left: Any, right: Any) -> Any: ...


class Collection(ABC):
    """What an engine has to do. ``empty`` is a frame with all columns and no rows; None if parts are arrays."""

    kind: str
    n_parts: int
    empty: Any = None

    @abstractmethod
    def run(self, job: Job, parts: Sequence[int] | None = None) -> Any:
        """Do a job for all parts or some, and merge the results in their order."""


@dataclass(frozen=True)
class Look:
    """The first read: lengths and marks of parts with these ``columns``, how many numbers of each are missing, and a draw."""

    columns: Sequence[str]
    numbers_of: Callable[[Any], Any] | None
    draw: Draw | None
    share: float

    def of_part(self, part: Any, number: int) -> dict[str, Any]:
        found = {
            "lengths": [part.shape[0]],
            "marks": [mark_of(part)],
            "missing": 0,
            "draw": None,
            "is_clean": True,
        }
        odd = sorted(set(cells_of(part)) ^ set(self.columns)) if is_frame(part) else []
        if odd:
            fault = f"part {number:,} of X has other columns than X says: {listed([repr(name) for name in odd], 5)}"
            raise InvalidInputError(fault, "Make all parts with the same columns.")
        if self.numbers_of is None or not part.shape[0]:
            return found
        rows = self.numbers_of(part)
        values = rows.data if sp.issparse(rows) else np.asarray(rows)
        if values.dtype.kind == "f":
            found["missing"] = 0 if sp.issparse(rows) else (~np.isfinite(values)).sum(axis=0)
            try:
                check_entries(rows, None)
            except InvalidInputError:  # with the number of its row, a pass will say so
                found["is_clean"] = False
        if self.draw is not None and found["is_clean"]:
            found["draw"] = self.draw.fewest(map_part(self.draw, rows, number * APART), self.share)
        return found

    def merge(self, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        both = {name: left[name] + right[name] for name in ("lengths", "marks", "missing")}
        is_clean = left["is_clean"] and right["is_clean"]
        draws = [each["draw"] for each in (left, right) if is_clean and each["draw"] is not None]
        draw = (
            self.draw.merge(*draws)
            if self.draw is not None and len(draws) == 2
            else next(iter(draws), None)
        )
        return both | {"draw": draw, "is_clean": is_clean}


#: What became of consecutive rows, or the first row and the rows of a block that is not complete.
Piece: TypeAlias = BlockResult | tuple[int, Any]


@dataclass(frozen=True)
class Mapped:
    """A pass. Last bits of answers depend on blocks, so the rows of one that lies in two parts meet when these are merged; with
    parts of 131 072 rows they are one in sixteen.
    """

    task: Task
    numbers_of: Callable[[Any], Any]
    layout: Layout

    def of_part(self, part: Any, number: int) -> list[Piece]:
        start, n = self.layout.start(part, number), part.shape[0]
        if not n:
            return []
        rows = self.numbers_of(part)
        if not isinstance(self.task, PerRow):
            return [map_part(self.task, rows, start)]
        cuts = sorted({0, n, min(-start % BLOCK_ROWS, n), max(n - (start + n) % BLOCK_ROWS, 0)})
        return self.merge([], [(start + a, rows[a:b]) for a, b in pairwise(cuts)])

    def merge(self, left: list[Piece], right: list[Piece]) -> list[Piece]:
        pieces = left[:]
        for piece in right:
            last = pieces[-1] if pieces else None
            if isinstance(last, tuple) and isinstance(piece, tuple) and piece[0] % BLOCK_ROWS:
                piece = (last[0], joined([last[1], piece[1]]))
                pieces.pop()
            if isinstance(piece, tuple) and self._is_block(*piece):
                piece = map_part(self.task, piece[1], piece[0])
            last = pieces[-1] if pieces else None
            if isinstance(last, dict) and isinstance(piece, dict):
                piece = self.task.merge(last, piece)
                pieces.pop()
            pieces.append(piece)
        return pieces

    def _is_block(self, start: int, rows: Any) -> bool:
        stop = start + rows.shape[0]
        return start % BLOCK_ROWS == 0 and (stop % BLOCK_ROWS == 0 or stop == self.layout.n)


def joined(rows: Sequence[Any]) -> Any:
    return sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)


@dataclass(frozen=True)
class RowsOfParts:
    """Some rows of every part, as a table of Arrow."""

    rows: Mapping[int, IntArray]
    columns: Sequence[str]
    layout: Layout

    def of_part(self, part: Any, number: int) -> Any:
        self.layout.start(part, number)
        return InMemory(cells_of(part)).take(self.rows[number], self.columns)

    def merge(self, left: Any, right: Any) -> Any:
        return together(left, right)


def together(first: Any, second: Any) -> Any:
    """Two tables as one; a column that holds nothing in one of them has the type of the other."""
    try:
        return pa.concat_tables([first, second], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InvalidInputError(
            f"parts of X have columns of different types: {error}", "Convert them first."
        ) from error


@dataclass(frozen=True)
class Layout:
    """Where parts begin, and what they are known by; without marks, their chunks were checked."""

    ends: IntArray
    marks: Sequence[int] | None = None

    @classmethod
    def of(cls, lengths: Sequence[int], marks: Sequence[int] | None = None) -> Layout:
        return cls(np.cumsum([0, *lengths], dtype=np.int64), marks)

    @property
    def n(self) -> int:
        return int(self.ends[-1])

    def start(self, part: Any, number: int) -> int:
        """The first row of a part, if it is the one that was there before."""
        first, last = (
            self.ends[number : number + 2] if number + 1 < len(self.ends) else (self.n, self.n)
        )
        if part.shape[0] != last - first or (
            self.marks is not None and last > first and mark_of(part) != self.marks[number]
        ):
            had = f"had {last - first:,} rows when it was opened, and now it has {part.shape[0]:,}, or others"
            remedy = "Its rows differ from run to run. Keep them before: X.persist() of Dask and Spark, X.materialize() of Ray."
            raise InvalidInputError(f"part {number:,} of X {had}", remedy)
        return int(first)


def mark_of(part: Any) -> int:
    """A number that tells whether a part has the same rows in the same order as before, by some of them."""
    n = part.shape[0]
    places = np.unique(np.linspace(0, max(n - 1, 0), MARKED).astype(np.int64))[:n]
    if not is_frame(part):
        return zlib.crc32(dense_rows(part[places]).tobytes())
    some = InMemory(cells_of(part))
    return zlib.crc32(repr(some.take(places, some.columns).to_pylist()).encode())


def is_frame(part: Any) -> bool:
    return hasattr(part, "columns")


def numbers_in(columns: Sequence[str], levels: Sequence[str], part: Any) -> Any:
    return cells_of(part, levels=levels).only(columns).matrix()


def encoded(encode: Callable[[Cells], Any], levels: Sequence[str], part: Any) -> Any:
    return encode(cells_of(part, levels=levels))


def looked_at(
    collection: Collection,
    numbers_of: Callable[[Any], Any] | None,
    width: int,
    budget: float | None,
) -> tuple[Layout, IntArray, tuple[BlockResult, int] | None]:
    """One read of the collection: how its parts lie, the missing numbers of each column, and a draw with its size."""
    most = max(DECISION_SAMPLE, LARGER_SAMPLE_ENTRIES // max(width, 1))
    size = min(most, LARGER_SAMPLE, int(budget_of(budget) / (32 * width + 1)))
    draw = Draw((size,)) if width and size else None
    columns = [] if collection.empty is None else list(cells_of(collection.empty))
    found = collection.run(Look(columns, numbers_of, draw, SKEW / collection.n_parts))
    layout = Layout.of(found["lengths"], found["marks"])
    missing = np.broadcast_to(found["missing"], width)
    if found["draw"] is None:
        return layout, missing, None
    number, row = np.divmod(found["draw"]["first"], APART)
    return layout, missing, (found["draw"] | {"first": layout.ends[number] + row}, size)


class InParts(Outside):
    """The cells of a collection. Its rows are read for the first time when their number is asked for, or what is missing."""

    def __init__(self, collection: Collection, budget: float | None):
        import narwhals.stable.v2 as nw

        self._collection, self._budget, self.kind = collection, budget, collection.kind
        self.empty = cells_of(collection.empty)
        self.columns = list(self.empty)
        check_shape((1, len(self.columns)))
        self.levels = [
            name for name, kind in self.kinds().items() if kind in (nw.Categorical, nw.Enum)
        ]
        self._draw: tuple[list[str], tuple[BlockResult, int] | None] = ([], None)
        self._missing: dict[str, int] = {}
        self._layout: Layout | None = None

    def kinds(self) -> Mapping[str, Any]:
        return self.empty.kinds

    def look(self, columns: Sequence[str]) -> None:
        """Read all rows, for what is missing in these columns of numbers, and for a draw if these are all that are compared."""
        reads = partial(numbers_in, list(columns), self.levels) if columns else None
        layout, missing, drawn = looked_at(self._collection, reads, len(columns), self._budget)
        check_shape((layout.n, len(self.columns)))
        self._layout = layout
        self._missing |= dict(zip(columns, missing.tolist(), strict=True))
        self._draw = (list(columns), drawn)

    @property
    def layout(self) -> Layout:
        if self._layout is None:
            self.look([])
        assert self._layout is not None
        return self._layout

    @property
    def n(self) -> int:
        return self.layout.n

    def only_numbers(self, columns: Sequence[str]) -> bool:
        """Whether these columns hold numbers, none of which is missing. This reads all rows."""
        plain = [name for name in self.empty.only(columns).numbers() if is_feature_name(name)]
        if set(plain) - set(self._missing):
            self.look(plain)
        return (
            bool(plain)
            and all(name in plain or not is_feature_name(name) for name in columns)
            and not any(self.missing(plain))
        )

    def missing(self, columns: Sequence[str]) -> IntArray:
        """How many values of each column are missing or infinite."""
        if set(columns) - set(self._missing):
            self.look(columns)
        return np.array([self._missing[name] for name in columns], np.intp)

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """The cells of some rows; only they are fetched."""
        if not len(rows) or not columns:
            return InMemory(self.empty).take(rows, columns)
        numbers, back = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        ends = self.layout.ends
        cuts = np.searchsorted(numbers, ends)
        parts = np.flatnonzero(np.diff(cuts)).tolist()
        here = {part: numbers[cuts[part] : cuts[part + 1]] - ends[part] for part in parts}
        return self._collection.run(RowsOfParts(here, columns, self.layout), parts).take(back)

    def encoded(
        self, encode: Callable[[Cells], Any], columns: Sequence[str], width: int, *, has_rules: bool
    ) -> PartsSource:
        """The numbers of the rows, made of these columns where the parts are."""
        drawn = self._draw[1] if not has_rules and self._draw[0] == list(columns) else None
        return PartsSource(
            self._collection, partial(encoded, encode, self.levels), self.layout, width, drawn
        )


class PartsSource(Source):
    """Numbers of the rows of a collection. ``drawn`` is what its first read has drawn, and of how many rows."""

    def __init__(
        self,
        collection: Collection,
        numbers_of: Callable[[Any], Any],
        layout: Layout,
        width: int,
        drawn: tuple[BlockResult, int] | None,
    ):
        self.collection, self.numbers_of, self.layout, self.drawn = (
            collection,
            numbers_of,
            layout,
            drawn,
        )
        self.kind, self.n, self.n_features = collection.kind, layout.n, width
        check_shape((self.n, width))

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        result = None if self.drawn is None else drawn_before(task, *self.drawn)
        if result is None:
            (result,) = self.collection.run(Mapped(task, self.numbers_of, self.layout))
        if watch is not None:
            watch(self.n)
        return result

    def take(self, numbers: IntArray) -> Any:
        """The rows with these numbers; only parts that hold them are read."""
        parts = np.flatnonzero(np.diff(np.searchsorted(numbers, self.layout.ends))).tolist()
        if not parts:
            return np.empty((0, self.n_features))
        (found,) = self.collection.run(
            Mapped(TakeRows(numbers), self.numbers_of, self.layout), parts
        )
        return found["rows"]
