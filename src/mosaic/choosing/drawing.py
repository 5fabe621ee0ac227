"""The rows that a fit of many is decided with: a random sample of the distinct rows, found in one pass, and rows that are named.

Every distinct row has a random number, its priority, which is a hash of its entries. The rows with the lowest priorities are the
sample: the same rows, whatever their order, the blocks that they are read in and the engine that reads them. A row that is among
the lowest of all is among the lowest of every part, so its copies are counted exactly. Rows with at least n/size copies, and no
fewer than 32, are in the sample in any case. They are in buckets of priorities with so many rows; where such a bucket has as many
rows that were not drawn, a second pass counts these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, rescale_weights
from mosaic.arrays.codes import priority, row_codes
from mosaic.arrays.passes import BlockResult, TakeRows, Task, Together, part_of
from mosaic.arrays.xp import rows_of
from mosaic.choosing.settings import Constraints

#: Raises an error if rows are not valid; the number is that of the first row.
Check: TypeAlias = Callable[[Any, int], None]
#: Rows with fewer copies are in the sample only if they are drawn. Buckets rarely have so many rows by chance, so that a second
#: pass is rare.
MANY_COPIES = 32
#: Buckets of priorities, and the bits of a priority that are not the number of its bucket.
BUCKETS, BITS_INSIDE = 1 << 16, 48
#: Rows of an array in memory that are looked at a time.
ROWS_AT_ONCE = 1 << 17
#: A restricted pool, and every group with a quota, has at least this part of the sample, or their number's part of it.
PART_OF_GROUP = 8


@dataclass
class Draw:
    """A pass that finds, of every kind of rows, the distinct rows with the lowest priorities.

    Attributes
    ----------
    sizes : how many of every kind; all rows are of kind 0
    kinds : of every row one more kind, 0 for none
    weights : how often every row counts, once by default; rows that count 0 times are left out
    among : mask of the buckets that are looked at, by default all
    check : is called for the rows of every block
    limits : of every kind the highest priority that may still be among the lowest, which only saves work: no process knows
        more than what it has merged itself
    """

    sizes: tuple[int, ...]
    kinds: IntArray | None = None
    weights: FloatArray | None = None
    among: BoolArray | None = None
    check: Check | None = None
    limits: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.limits = np.full(len(self.sizes), np.iinfo(np.uint64).max)

    def map_block(self, rows: Any, start: int) -> BlockResult:
        """What a block has of them: the first row of each, the number of its copies, and the row itself."""
        if self.check is not None:
            self.check(rows, start)
        found = self.find(priority(row_codes(rows)), start)
        return found | {"rows": np.asarray(rows[found["first"] - start])}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        """The lowest of two parts; only rows that stay are copied."""
        names = ("kinds", "priority", "first", "copies")
        kept, both = self._lowest(*(np.concatenate([left[name], right[name]]) for name in names))
        both["buckets"] = left["buckets"] + right["buckets"]
        if "rows" in left:
            n_left, here = len(left["first"]), kept < len(left["first"])
            rows = np.empty((len(kept), *left["rows"].shape[1:]), np.result_type(left["rows"], right["rows"]))
            rows[here], rows[~here] = left["rows"][kept[here]], right["rows"][kept[~here] - n_left]
            both["rows"] = rows
        return both

    def find(self, priority: NDArray[np.uint64], start: int) -> BlockResult:
        """What consecutive rows with these priorities have of them, without the rows."""
        stop, bucket = start + len(priority), (priority >> np.uint64(BITS_INSIDE)).astype(np.intp)
        copies = np.ones(len(priority)) if self.weights is None else self.weights[start:stop]
        may = copies > 0 if self.among is None else (copies > 0) & self.among[bucket]
        of = [np.flatnonzero(may & (priority <= self.limits[0]))]
        kinds = [np.zeros(len(of[0]), np.intp)]
        if self.kinds is not None:
            more = self.kinds[start:stop]
            of.append(np.flatnonzero(may & (more > 0) & (priority <= self.limits[more])))
            kinds.append(more[of[1]])
        at = np.concatenate(of)
        _, found = self._lowest(np.concatenate(kinds), priority[at], at + start, copies[at])
        return found | {"buckets": np.bincount(bucket, copies, BUCKETS)}

    def _lowest(
        self, kinds: IntArray, priority: NDArray[np.uint64], first: IntArray, copies: FloatArray
    ) -> tuple[IntArray, BlockResult]:
        """The lowest of every kind, and their places. Of equal rows, the first comes first."""
        order = np.argsort(priority, kind="stable")
        if self.kinds is not None:
            order = order[np.argsort(kinds[order], kind="stable")]
        kinds, priority, copies = kinds[order], priority[order], copies[order]
        differs = np.ones(len(order), dtype=bool)
        differs[1:] = (priority[1:] != priority[:-1]) | (kinds[1:] != kinds[:-1])
        starts = np.flatnonzero(differs)
        copies = np.add.reduceat(copies, starts) if len(starts) else copies
        kinds, priority, places = kinds[starts], priority[starts], order[starts]
        rank = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
        sizes = np.array(self.sizes)
        last = rank == sizes[kinds] - 1
        self.limits[kinds[last]] = np.minimum(self.limits[kinds[last]], priority[last])
        kept = np.flatnonzero(rank < sizes[kinds])
        places = places[kept]
        return places, {"kinds": kinds[kept], "priority": priority[kept], "first": first[places], "copies": copies[kept]}


@dataclass(frozen=True)
class Drawn:
    """Rows of the data that are in memory: a random sample of the distinct rows, and rows that constraints name.

    Attributes
    ----------
    numbers : their numbers in the data, in ascending order
    rows : themselves
    is_drawn : mask of the sample
    copies : of rows of the sample the number of rows that are equal to each, itself included; 1 for the others
    weights : of rows of the sample the number of rows that each stands for: its copies, and rows that were not drawn
    """

    numbers: IntArray
    rows: Any
    is_drawn: BoolArray
    copies: FloatArray
    weights: FloatArray


def draw_by_passes(
    run: Callable[[str, Task], BlockResult], n: int, size: int, constraints: Constraints | None = None, check: Check | None = None
) -> Drawn:
    """Of rows that are read in passes; ``run`` makes a pass, given its name and its task."""
    kinds, sizes, named = _named(n, size, constraints)
    tasks: dict[str, Task] = {"draw": Draw(sizes, kinds, check=check), "named": TakeRows(named)}
    looked = run("look", Together(tasks))
    found = part_of(looked, "draw")
    parts = [(found["first"], found["rows"]), (named, part_of(looked, "named")["rows"])]
    enough = float(found["buckets"].sum()) * max(1.0 / size, MANY_COPIES / n)
    often = _often(found, enough)
    if often.any():
        more = _frequent(run("frequent rows", Draw((n,), among=often)), found, enough)
        parts.append((more["first"], more["rows"]))
        found = _joined(found, more)
    numbers, places = np.unique(np.concatenate([first for first, _ in parts]), return_index=True)
    rows = np.concatenate([rows for _, rows in parts])[places]
    return _drawn(found, numbers, rows, enough)


def draw_in_memory(X: Any, size: int, constraints: Constraints, weights: FloatArray | None = None) -> Drawn:
    """Of the rows of an array, sparse or dense, on whatever device."""
    n = X.shape[0]
    kinds, sizes, named = _named(n, size, constraints)
    priorities = priority(row_codes(X))

    def look(task: Draw) -> BlockResult:
        parts = (task.find(priorities[a : a + ROWS_AT_ONCE], a) for a in range(0, n, ROWS_AT_ONCE))
        found = next(parts)
        for part in parts:
            found = task.merge(found, part)
        return found

    found = look(Draw(sizes, kinds, weights))
    enough = float(found["buckets"].sum()) * max(1.0 / size, MANY_COPIES / n)
    often = _often(found, enough)
    if often.any():
        found = _joined(found, _frequent(look(Draw((n,), None, weights, often)), found, enough))
    numbers = np.union1d(found["first"], named)
    return _drawn(found, numbers, rows_of(X, numbers), enough)


def _named(n: int, size: int, constraints: Constraints | None) -> tuple[IntArray | None, tuple[int, ...], IntArray]:
    """The kinds of rows that constraints make, how many of each are wanted, and the rows that they name."""
    if constraints is None:
        return None, (size,), np.zeros(0, np.intp)
    named = constraints.must if constraints.start is None else np.union1d(constraints.must, constraints.start)
    if constraints.quotas is None and constraints.allowed.all():
        return None, (size,), np.unique(named)
    kinds = np.where(constraints.allowed, constraints.group + 1, 0)
    each = max(size // max(PART_OF_GROUP, len(constraints.names)), 1)
    return kinds, (size, *[each] * len(constraints.names)), np.unique(named)


def _often(found: BlockResult, enough: float) -> BoolArray:
    """Mask of the buckets in which rows that were not drawn may have so many copies that they are in the sample in any case."""
    known = found["kinds"] == 0
    drawn = (found["priority"][known] >> np.uint64(BITS_INSIDE)).astype(np.intp)
    return np.asarray(found["buckets"] - np.bincount(drawn, found["copies"][known], BUCKETS) >= enough)


def _frequent(more: BlockResult, found: BlockResult, enough: float) -> BlockResult:
    """The rows with many copies that were not drawn."""
    drawn = found["priority"][found["kinds"] == 0]
    often = (more["copies"] >= enough) & ~np.isin(more["priority"], drawn)
    return {name: more[name][often] for name in more if name != "buckets"}


def _joined(found: BlockResult, more: BlockResult) -> BlockResult:
    names = ("kinds", "priority", "first", "copies")
    return {name: np.concatenate([found[name], more[name]]) for name in names} | {"buckets": found["buckets"]}


def _drawn(found: BlockResult, numbers: IntArray, rows: Any, enough: float) -> Drawn:
    sampled = found["kinds"] == 0
    places = np.searchsorted(numbers, found["first"][sampled])
    is_drawn, copies = np.zeros(len(numbers), dtype=bool), np.ones(len(numbers))
    is_drawn[places], copies[places] = True, found["copies"][sampled]
    weights = np.ones(len(numbers))
    total = float(found["buckets"].sum())
    weights[is_drawn] = rescale_weights(copies[is_drawn], total / enough, total)
    return Drawn(numbers, rows, is_drawn, copies, weights)
