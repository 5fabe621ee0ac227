"""Rows of a collection in parts, as Dask, Ray and Spark have them: a table, and a source of numbers. They stay where they are.

The engine does a job for every part and merges what comes of it. How rows are cut changes nothing: the sample of a fit are the
rows with the lowest hashes, copies of rows are counted, and answers are those of each row.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import IntArray, check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, PerRow, TakeRows, Task
from mosaic.arrays.sources import Source, Watch, dense_rows, map_part
from mosaic.choosing.budget import DECISION_SAMPLE, LARGER_SAMPLE, LARGER_SAMPLE_ENTRIES, budget_of
from mosaic.choosing.draw import Draw, drawn_before
from mosaic.exceptions import InvalidInputError
from mosaic.rows.frames import Cells, cells_of, id_names_among, is_feature_name
from mosaic.rows.tables import InMemory, Outside
from mosaic.text import Library, listed

pa = Library("pyarrow")

#: Where the numbers of a part's rows begin as long as lengths are not known: its own number times this.
APART = 1 << 40
#: Rows by which a part is known again.
MARKED = 16
#: Parts have at most so many times the mean length, or a second pass may be needed.
SKEW = 4.0
#: Rows of which all cells come with the first read, and from which the rules of columns are found where there are more.
FEW_ROWS = 50_000


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
class Seen:
    """What the first read finds in consecutive parts; ``cells`` are those of all rows, if they are few."""

    lengths: list[int]
    marks: list[int]
    cells: Any = None
    missing: Any = 0
    is_clean: bool = True
    draw: BlockResult | None = None


@dataclass(frozen=True)
class Look:
    """The first read: lengths and marks of parts with these ``columns``, how many numbers of each are missing, and a draw, with
    the cells of ids; all cells if the collection may have few rows.
    """

    columns: Sequence[str]
    numbers_of: Callable[[Any], Any] | None
    draw: Draw | None
    n_parts: int
    most_rows: int
    most_bytes: float

    def of_part(self, part: Any, number: int) -> Seen:
        n = part.shape[0]
        cells = cells_of(part) if is_frame(part) else None
        odd = [] if cells is None else sorted(set(cells) ^ set(self.columns))
        if odd:
            fault = f"part {number:,} of X has other columns than X says: {listed([repr(name) for name in odd], 5)}"
            raise InvalidInputError(fault, "Make all parts with the same columns.")
        seen = Seen([n], [mark_of(part)])
        if cells is not None and n * self.n_parts <= SKEW * self.most_rows:
            seen = replace(seen, cells=self._few(InMemory(cells).take(np.arange(n), self.columns)))
        if self.numbers_of is None or not n:
            return seen
        rows = self.numbers_of(part)
        values = rows.data if sp.issparse(rows) else np.asarray(rows)
        if values.dtype.kind == "f":
            missing = 0 if sp.issparse(rows) else (~np.isfinite(values)).sum(axis=0)
            seen = replace(seen, missing=missing, is_clean=bool(np.isfinite(values).all()))
        if self.draw is None or not seen.is_clean:
            return seen
        start = number * APART
        draw = self.draw.fewest(map_part(self.draw, rows, start), SKEW / self.n_parts)
        ids = [] if cells is None else id_names_among(self.columns)
        return replace(seen, draw=_with_cells(draw, part, start, ids))

    def merge(self, left: Seen, right: Seen) -> Seen:
        is_clean = left.is_clean and right.is_clean
        draws = [seen.draw for seen in (left, right) if is_clean and seen.draw is not None]
        both_few = left.cells is not None and right.cells is not None
        return Seen(
            left.lengths + right.lengths,
            left.marks + right.marks,
            self._few(together(left.cells, right.cells)) if both_few else None,
            left.missing + right.missing,
            is_clean,
            reduce(self._merged, draws) if draws else None,
        )

    def _few(self, cells: Any) -> Any:
        is_little = len(cells) <= self.most_rows and cells.nbytes <= self.most_bytes
        return cells if is_little else None

    def _merged(self, left: BlockResult, right: BlockResult) -> BlockResult:
        assert self.draw is not None
        return joined_cells(self.draw.merge(left, right), left, right)


def _with_cells(draw: BlockResult, part: Any, start: int, columns: Sequence[str]) -> BlockResult:
    """A draw, with cells of its rows, which are of the part."""
    if not columns:
        return draw
    return draw | {"cells": InMemory(cells_of(part)).take(draw["first"] - start, columns)}


def joined_cells(draw: BlockResult, left: BlockResult, right: BlockResult) -> BlockResult:
    """A draw that was merged of both sides, with the cells of its rows if these have them."""
    if "cells" not in left:
        return draw
    rows = np.concatenate([left["first"], right["first"]])
    order = np.argsort(rows)
    places = order[np.searchsorted(rows, draw["first"], sorter=order)]
    return draw | {"cells": together(left["cells"], right["cells"]).take(places)}


class Loose(NamedTuple):
    """Rows of a block that is not complete, and the number of the first."""

    start: int
    rows: Any


@dataclass(frozen=True)
class Mapped:
    """A pass. Last bits of answers depend on blocks, so the rows of one that lies in two parts meet when these are merged; with
    parts of 131 072 rows they are one in sixteen. A draw comes with these ``columns`` of its rows.
    """

    task: Task
    numbers_of: Callable[[Any], Any]
    layout: Layout
    columns: Sequence[str] = ()

    def of_part(self, part: Any, number: int) -> list[BlockResult | Loose]:
        start, n = self.layout.start(part, number), part.shape[0]
        if not n:
            return []
        rows = self.numbers_of(part)
        if not isinstance(self.task, PerRow):
            found = map_part(self.task, rows, start)
            if "draw" in found:
                found["draw"] = _with_cells(found["draw"], part, start, self.columns)
            return [found]
        cuts = sorted({0, n, min(-start % BLOCK_ROWS, n), max(n - (start + n) % BLOCK_ROWS, 0)})
        return self.merge([], [Loose(start + a, rows[a:b]) for a, b in pairwise(cuts)])

    def merge(
        self, left: list[BlockResult | Loose], right: list[BlockResult | Loose]
    ) -> list[BlockResult | Loose]:
        pieces = left[:]
        for piece in right:
            self._append(pieces, piece)
        return pieces

    def _append(self, pieces: list[BlockResult | Loose], piece: BlockResult | Loose) -> None:
        """Add a piece: to the rows of its block that are there, and what comes of whole blocks to what came of those before."""
        last = pieces[-1] if pieces else None
        if isinstance(piece, Loose):
            if isinstance(last, Loose) and piece.start % BLOCK_ROWS:
                pieces.pop()
                piece = Loose(last.start, joined([last.rows, piece.rows]))
                last = pieces[-1] if pieces else None
            stop = piece.start + piece.rows.shape[0]
            ends_block = stop % BLOCK_ROWS == 0 or stop == self.layout.n
            if piece.start % BLOCK_ROWS or not ends_block:
                # A copy, since a view would keep the whole part in memory.
                pieces.append(Loose(piece.start, piece.rows.copy()))
                return
            piece = map_part(self.task, piece.rows, piece.start)
        if isinstance(last, dict):
            pieces.pop()
            merged = self.task.merge(last, piece)
            if "draw" in merged:
                merged["draw"] = joined_cells(merged["draw"], last["draw"], piece["draw"])
            piece = merged
        pieces.append(piece)


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
    """Where parts begin: part i has the rows from ``bounds[i]`` to ``bounds[i + 1]``. Without ``marks``, which parts are known
    again by, their chunks were checked.
    """

    bounds: IntArray
    marks: Sequence[int] | None = None

    @classmethod
    def of(cls, lengths: Sequence[int], marks: Sequence[int] | None = None) -> Layout:
        return cls(np.cumsum([0, *lengths], dtype=np.int64), marks)

    @property
    def n(self) -> int:
        return int(self.bounds[-1])

    def start(self, part: Any, number: int) -> int:
        """The first row of a part, if it is the one that was there before."""
        first, after = self.bounds[number : number + 2].tolist()
        n = part.shape[0]
        is_same = n == after - first and (
            not n or self.marks is None or mark_of(part) == self.marks[number]
        )
        if not is_same:
            had = f"had {after - first:,} rows when it was opened, and now it has {n:,}, or others"
            remedy = "Its rows differ from run to run. Keep them before: X.persist() of Dask and Spark, X.materialize() of Ray."
            raise InvalidInputError(f"part {number:,} of X {had}", remedy)
        return int(first)

    def parts_with(self, rows: IntArray) -> list[int]:
        """The parts that hold these rows, which are in ascending order."""
        parts = np.unique(np.searchsorted(self.bounds, rows, side="right") - 1)
        return list(map(int, parts))


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


@dataclass(frozen=True)
class Opened:
    """A collection after its first read: how its parts lie, the missing numbers of each column, and a draw with its size."""

    layout: Layout
    missing: IntArray
    draw: BlockResult | None
    size: int
    cells: Any

    @classmethod
    def of(
        cls,
        collection: Collection,
        numbers_of: Callable[[Any], Any] | None,
        width: int,
        budget: float | None,
    ) -> Opened:
        most = max(DECISION_SAMPLE, LARGER_SAMPLE_ENTRIES // max(width, 1))
        memory = budget_of(budget)
        size = min(most, LARGER_SAMPLE, int(memory / (32 * width + 1)))
        draw = Draw((size,)) if width and size else None
        columns = [] if collection.empty is None else list(cells_of(collection.empty))
        seen = collection.run(
            Look(columns, numbers_of, draw, collection.n_parts, FEW_ROWS, memory / 4)
        )
        layout = Layout.of(seen.lengths, seen.marks)
        drawn = seen.draw
        if drawn is not None:
            part, row = np.divmod(drawn["first"], APART)
            drawn = drawn | {"first": layout.bounds[part] + row}
        return cls(layout, np.broadcast_to(seen.missing, width), drawn, size, seen.cells)


class InOnePart(Collection):
    """The cells of all rows, which came with the first read."""

    n_parts = 1

    def __init__(self, kind: str, cells: Any):
        self.kind, self.cells, self.empty = kind, cells, cells.slice(0, 0)

    def run(self, job: Job, parts: Sequence[int] | None = None) -> Any:
        return job.of_part(self.cells, 0)


class InParts(Outside):
    """The cells of a collection. Its rows are read first when their number is asked for, or what is missing. Few rows
    are then in memory; of many, the cells that name and quote those of a draw are ``kept``.
    """

    def __init__(self, collection: Collection, budget: float | None):
        import narwhals.stable.v2 as nw

        self._collection, self._budget, self.kind = collection, budget, collection.kind
        self.empty = cells_of(collection.empty)
        self.columns = list(self.empty)
        check_shape((1, len(self.columns)))
        self.levels = [
            name for name, kind in self.kinds().items() if kind in (nw.Categorical, nw.Enum)
        ]
        self._opened: Opened | None = None
        self._drawn_by: list[str] = []
        self._missing: dict[str, int] = {}
        self._kept: tuple[IntArray, Any] | None = None

    def kinds(self) -> Mapping[str, Any]:
        return self.empty.kinds

    def look(self, columns: Sequence[str]) -> Opened:
        """Read all rows, for what is missing in these columns of numbers, and for a draw if these are all that are compared."""
        reads = partial(numbers_in, list(columns), self.levels) if columns else None
        opened = Opened.of(self._collection, reads, len(columns), self._budget)
        check_shape((opened.layout.n, len(self.columns)))
        self._missing |= dict(zip(columns, opened.missing.tolist(), strict=True))
        self.keep(opened.draw)
        if opened.cells is not None:
            self._collection = InOnePart(self.kind, opened.cells)
            opened = replace(opened, layout=Layout.of([opened.layout.n]))
        self._opened, self._drawn_by = opened, list(columns)
        return opened

    def keep(self, draw: BlockResult | None) -> None:
        """Keep the cells that came with a draw."""
        if draw is not None and "cells" in draw:
            rows, places = np.unique(draw["first"], return_index=True)
            self._kept = rows, draw["cells"].take(places)

    @property
    def layout(self) -> Layout:
        return (self._opened or self.look([])).layout

    @property
    def n(self) -> int:
        return self.layout.n

    @property
    def n_parts(self) -> int:
        """Parts that stay where they are."""
        return 0 if isinstance(self._collection, InOnePart) else self._collection.n_parts

    def only_numbers(self, columns: Sequence[str]) -> bool:
        """Whether these columns hold numbers, none of which is missing. This reads all rows."""
        plain = [name for name in self.empty.only(columns).numbers() if is_feature_name(name)]
        others = [name for name in columns if name not in plain and is_feature_name(name)]
        gaps = self.missing(plain)
        return bool(plain) and not others and not gaps.any()

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
        if self._kept is not None:
            known, cells = self._kept
            if set(columns) <= set(cells.column_names) and np.isin(numbers, known).all():
                return cells.select(columns).take(np.searchsorted(known, numbers)[back])
        bounds = self.layout.bounds
        parts = self.layout.parts_with(numbers)
        cuts = np.searchsorted(numbers, bounds)
        here = {part: numbers[cuts[part] : cuts[part + 1]] - bounds[part] for part in parts}
        return self._collection.run(RowsOfParts(here, columns, self.layout), parts).take(back)

    def encoded(
        self,
        encode: Callable[[Cells], Any],
        columns: Sequence[str],
        quoted: Sequence[str],
        width: int,
        *,
        has_rules: bool,
    ) -> PartsSource:
        """The numbers of the rows, made of these columns where the parts are; a draw brings the cells of ``quoted`` columns."""
        numbers_of = partial(encoded, encode, self.levels)
        source = PartsSource(self._collection, numbers_of, self.layout, width)
        if not has_rules and self._drawn_by == list(columns):
            source.opened = self._opened
        source.quoted, source.keep = quoted, self.keep
        return source


class PartsSource(Source):
    """Numbers of the rows of a collection; ``opened`` has what its first read drew. The cells of ``quoted`` columns that come
    with a draw are given to ``keep``.
    """

    def __init__(
        self,
        collection: Collection,
        numbers_of: Callable[[Any], Any],
        layout: Layout,
        width: int,
        opened: Opened | None = None,
        itemsize: int = 8,
    ):
        self.collection, self.numbers_of, self.layout = collection, numbers_of, layout
        self.n_parts = len(layout.bounds) - 1
        self.kind, self.n, self.n_features = collection.kind, layout.n, width
        self.opened, self.itemsize = opened, itemsize
        self.quoted: Sequence[str] = ()
        self.keep: Callable[[BlockResult | None], None] | None = None
        check_shape((self.n, width))

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        opened = self.opened
        result = None
        if opened is not None and opened.draw is not None:
            result = drawn_before(task, opened.draw, opened.size)
        if result is None:
            (result,) = self.collection.run(Mapped(task, self.numbers_of, self.layout, self.quoted))
            if self.keep is not None:
                self.keep(result.get("draw"))
        if watch is not None:
            watch(self.n)
        return result

    def take(self, numbers: IntArray) -> Any:
        """The rows with these numbers; only parts that hold them are read."""
        if not len(numbers):
            return np.empty((0, self.n_features))
        job = Mapped(TakeRows(numbers), self.numbers_of, self.layout)
        (found,) = self.collection.run(job, self.layout.parts_with(numbers))
        return found["rows"]
