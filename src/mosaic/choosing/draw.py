"""A random sample of many rows, the same wherever they are.

Every distinct row has a random number, its priority, which is a hash of its entries. The rows with the lowest priorities are the
sample, whatever the order of rows, blocks and engine. A row that is among the lowest of all is among the lowest of every part, so
its copies are counted exactly. Rows with at least n/size copies, and no fewer than 32, are in the sample in any case: where a
bucket of priorities has so many rows that were not drawn, a second pass counts these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import (
    NO_ROWS,
    BoolArray,
    FloatArray,
    IntArray,
    lowest_first,
    rescale_weights,
    row_blocks,
)
from mosaic.arrays.codes import priority, row_codes
from mosaic.arrays.passes import BlockResult, TakeRows, Task, Together
from mosaic.arrays.xp import Matrix, rows_of
from mosaic.choosing.settings import Constraints

# Raises an error if rows are not valid; the number is that of the first row.
Check: TypeAlias = Callable[[Any, int], None]
#: Buckets of priorities: the first 16 of their 64 bits.
BUCKETS = 1 << 16
#: What a draw gives of each row, besides its numbers ("rows").
COLUMNS = ("kinds", "priority", "first", "copies")
#: The last priority.
HIGHEST = np.uint64(np.iinfo(np.uint64).max)


@dataclass
class Draw:
    """A pass that finds, of every kind of rows, the distinct rows with the lowest priorities: ``sizes`` of each kind. All rows
    are of kind 0; ``kinds`` gives each row a second kind, 0 for none. Rows count ``weights`` times; only buckets ``among`` are
    looked at. ``limits``, the highest priorities that may still be among the lowest, only save work; so does ``n``, the number of
    all rows: with it, blocks give no more than the sample may hold of them.
    """

    sizes: tuple[int, ...]
    kinds: IntArray | None = None
    weights: FloatArray | None = None
    among: BoolArray | None = None
    check: Check | None = None
    n: int | None = None
    limits: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.limits = np.full(len(self.sizes), HIGHEST)

    def map_block(self, rows: Any, start: int) -> BlockResult:
        if self.check is not None:
            self.check(rows, start)
        found = self.find(priority(row_codes(rows)), start)
        found = found | {"rows": np.asarray(rows[found["first"] - start])}
        return found if self.n is None else self.fewest(found, rows.shape[0] / self.n)

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        columns = [np.concatenate([left[name], right[name]]) for name in COLUMNS]
        kept, both = self._lowest(*columns)
        complete = min(left.get("complete", HIGHEST), right.get("complete", HIGHEST))
        if complete < HIGHEST:
            is_complete = both["priority"] < complete
            kept = kept[is_complete]
            both = {name: values[is_complete] for name, values in both.items()}
            both["complete"] = complete
        both["buckets"] = np.add(left["buckets"], right["buckets"], dtype=np.float64)
        if left["buckets"].dtype.kind == "u":
            both["buckets"] = _in_few_bytes(both["buckets"])
        if "rows" in left:
            n_left = len(left["first"])
            is_left = kept < n_left
            dtype = np.result_type(left["rows"], right["rows"])
            rows = np.empty((len(kept), *left["rows"].shape[1:]), dtype)
            rows[is_left] = left["rows"][kept[is_left]]
            rows[~is_left] = right["rows"][kept[~is_left] - n_left]
            both["rows"] = rows
        return both if self.n is None else self.fewest(both, float(both["buckets"].sum()) / self.n)

    def fewest(self, found: BlockResult, share: float) -> BlockResult:
        """Of what a part with this share of all rows gives, as much as the sample may hold of it, unless a tenth are copies;
        ``complete`` is the priority from which on rows may be missing.
        """
        found = found | {"buckets": _in_few_bytes(found["buckets"])}
        n = len(found["priority"])
        most = most_of_part(self.sizes[0], share)
        has_copies = found["copies"].sum() > 1.1 * n
        if len(self.sizes) > 1 or n <= most or has_copies:
            return found
        return found | first_of(found, most) | {"complete": found["priority"][most]}

    def find(self, priority: NDArray[np.uint64], start: int) -> BlockResult:
        """What consecutive rows with these priorities have of them, without the rows."""
        stop = start + len(priority)
        bucket = _bucket(priority)
        copies = np.ones(len(priority)) if self.weights is None else self.weights[start:stop]
        may = copies > 0
        if self.among is not None:
            may &= self.among[bucket]
        at = np.flatnonzero(may & (priority <= self.limits[0]))
        kinds = np.zeros(len(at), np.intp)
        if self.kinds is not None:
            own = self.kinds[start:stop]
            again = np.flatnonzero(may & (own > 0) & (priority <= self.limits[own]))
            at = np.append(at, again)
            kinds = np.append(kinds, own[again])
        _, found = self._lowest(kinds, priority[at], at + start, copies[at])
        return found | {"buckets": np.bincount(bucket, copies, BUCKETS)}

    def _lowest(
        self, kinds: IntArray, priority: NDArray[np.uint64], first: IntArray, copies: FloatArray
    ) -> tuple[IntArray, BlockResult]:
        """The lowest of every kind, and their places. Of equal rows, the first comes first."""
        order = np.argsort(priority, kind="stable")
        if self.kinds is not None:
            order = order[np.argsort(kinds[order], kind="stable")]
        kinds = kinds[order]
        priority = priority[order]
        copies = copies[order]
        differs = np.ones(len(order), dtype=bool)
        differs[1:] = (priority[1:] != priority[:-1]) | (kinds[1:] != kinds[:-1])
        starts = np.flatnonzero(differs)
        copies = np.add.reduceat(copies, starts) if len(starts) else copies
        kinds = kinds[starts]
        priority = priority[starts]
        places = order[starts]
        rank = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
        sizes = np.array(self.sizes)
        last = rank == sizes[kinds] - 1
        limits = self.limits.copy()  # workers may have got an array that cannot be changed
        limits[kinds[last]] = np.minimum(limits[kinds[last]], priority[last])
        self.limits = limits
        kept = np.flatnonzero(rank < sizes[kinds])
        places = places[kept]
        return places, {
            "kinds": kinds[kept],
            "priority": priority[kept],
            "first": first[places],
            "copies": copies[kept],
        }


def first_of(found: BlockResult, n: int) -> BlockResult:
    """What was found of the first n rows."""
    return {name: found[name][:n] for name in (*COLUMNS, "rows")}


def most_of_part(size: int, share: float) -> int:
    """The most rows of a sample that a part with this share of all rows is expected to hold."""
    expected = 1.1 * size * min(share, 1.0)
    return int(expected + 8.0 * expected**0.5) + 16


@dataclass(frozen=True)
class Drawn:
    """Rows in memory: a random sample of the distinct rows (``is_drawn``), and rows that constraints name; their ``numbers`` in
    the data, ascending, how many rows are equal to each, and how many it stands for. ``larger`` is a larger sample, if any.
    """

    numbers: IntArray
    rows: Any
    is_drawn: BoolArray
    copies: FloatArray
    weights: FloatArray
    larger: MoreRows | None = None


@dataclass(frozen=True)
class MoreRows:
    """A larger sample of the distinct rows, in the order of their priorities: numbers in the data, rows, how many each stands
    for, whether it may be chosen, and its group.
    """

    numbers: IntArray
    rows: Any
    weights: FloatArray
    allowed: BoolArray
    group: IntArray


def drawn_before(task: Task, found: BlockResult, size: int) -> BlockResult | None:
    """What a look at all rows finds, taken from an earlier draw of ``size`` of them; None if that has not all of it."""
    if not isinstance(task, Together) or "draw" not in task.tasks:
        return None
    draw = task.tasks["draw"]
    named = task.tasks["named"]
    assert isinstance(draw, Draw)
    assert isinstance(named, TakeRows)
    few = draw.sizes[0]
    is_whole = len(found["priority"]) >= few or found.get("complete", HIGHEST) == HIGHEST
    if draw.kinds is not None or few > size or len(named.numbers) or not is_whole:
        return None
    kept = first_of(found, few) | {"buckets": found["buckets"]}
    return {"draw": kept, "named": {"rows": found["rows"][:0]}}


def draw_by_passes(
    run: Callable[[str, Task], BlockResult],
    n: int,
    size: int,
    constraints: Constraints | None = None,
    check: Check | None = None,
    *,
    larger: int = 0,
) -> Drawn:
    """The sample of rows that are read in passes; ``run`` makes a pass, given its name and its task."""
    kinds, sizes, named = _named(n, size, larger, constraints)
    looked: dict[str, BlockResult] = {}

    def look(task: Draw) -> BlockResult:
        if task.among is not None:
            return run("frequent rows", task)
        looked.update(run("look", Together({"draw": task, "named": TakeRows(named)})))
        return looked["draw"]

    found, enough = _find(look, n, size, Draw(sizes, kinds, check=check, n=n))
    numbers, places = np.unique(np.concatenate([found["first"], named]), return_index=True)
    rows = np.concatenate([found["rows"], looked["named"]["rows"]])[places]
    return _drawn(found, numbers, rows, enough, size, named, constraints)


def draw_in_memory(
    X: Matrix,
    size: int,
    constraints: Constraints,
    weights: FloatArray | None = None,
    *,
    larger: int = 0,
) -> Drawn:
    """The sample of the rows of an array, sparse or dense, on whatever device."""
    n = X.shape[0]
    priorities = priority(row_codes(X))
    kinds, sizes, named = _named(n, size, larger, constraints)

    def look(task: Draw) -> BlockResult:
        return reduce(
            task.merge,
            (task.find(priorities[part], part.start) for part in row_blocks(n, 1, 1 << 17)),
        )

    found, enough = _find(look, n, size, Draw(sizes, kinds, weights))
    numbers = np.union1d(found["first"], named)
    return _drawn(found, numbers, rows_of(X, numbers), enough, size, named, constraints)


def _named(
    n: int, size: int, larger: int, constraints: Constraints | None
) -> tuple[IntArray | None, tuple[int, ...], IntArray]:
    """The kinds of rows that constraints make, how many of each are wanted, and the rows that they name."""
    most = max(size, larger)
    if constraints is None:
        return None, (most,), NO_ROWS
    named = np.union1d(np.union1d(constraints.must, constraints.fine), constraints.start)
    if constraints.quotas is None and constraints.allowed.all():
        return None, (most,), named
    kinds = np.where(constraints.allowed, constraints.group + 1, 0)
    # A restricted pool, and every group with a quota, has an eighth of the sample, or their number's part of it.
    each = max(size // max(8, len(constraints.names)), 1)
    return kinds, (most, *[each] * len(constraints.names)), named


def _in_few_bytes(counts: FloatArray) -> Any:
    return counts.astype(np.min_scalar_type(int(counts.max())))


def _bucket(priority: NDArray[np.uint64]) -> IntArray:
    return (priority >> np.uint64(48)).astype(np.intp)


def _find(
    look: Callable[[Draw], BlockResult], n: int, size: int, task: Draw
) -> tuple[BlockResult, float]:
    """What one look at the rows draws, or two where rows that were not drawn may have many copies; and how many are many."""
    found = look(task)
    is_whole = found.get("complete", HIGHEST) == HIGHEST
    if not is_whole and len(found["priority"]) < task.sizes[0]:  # parts were not alike
        found = look(replace(task, n=None))
    # So many rows are rarely in a bucket by chance.
    enough = float(found["buckets"].sum()) * max(1.0 / size, 32 / n)
    sampled = found["kinds"] == 0
    drawn = found["priority"][sampled]
    copies = np.bincount(_bucket(drawn), found["copies"][sampled], BUCKETS)
    not_drawn = found["buckets"] - copies
    is_crowded = not_drawn >= enough
    if is_crowded.any():
        more = look(Draw((n,), None, task.weights, is_crowded))
        new = (more["copies"] >= enough) & ~np.isin(more["priority"], drawn)
        for name in more.keys() - {"buckets", "complete"}:
            found[name] = np.concatenate([found[name], more[name][new]])
    return found, enough


def _drawn(
    found: BlockResult,
    numbers: IntArray,
    rows: Any,
    enough: float,
    size: int,
    named: IntArray,
    constraints: Constraints | None,
) -> Drawn:
    """The ``size`` rows with the lowest priorities and those that are frequent or named, of the found rows with these numbers;
    and all that were found, if they are more.
    """
    total = float(found["buckets"].sum())
    sampled = lowest_first(found["kinds"] == 0, found["priority"])
    first = found["first"][sampled]
    copies = found["copies"][sampled]
    larger = None
    if len(first) > size:
        allowed = np.ones(len(first), dtype=bool)
        group = np.zeros(len(first), np.intp)
        if constraints is not None:
            allowed = constraints.allowed[first]
            group = constraints.group[first]
        stands_for = rescale_weights(copies, total / enough, total)
        drawn = rows_of(rows, np.searchsorted(numbers, first))
        larger = MoreRows(first, drawn, stands_for, allowed, group)
        in_sample = (np.arange(len(first)) < size) | (copies >= enough)
        first = first[in_sample]
        copies = copies[in_sample]
        kept = np.unique(np.concatenate([first, found["first"][found["kinds"] > 0], named]))
        rows = rows_of(rows, np.searchsorted(numbers, kept))
        numbers = kept
    places = np.searchsorted(numbers, first)
    is_drawn = np.zeros(len(numbers), dtype=bool)
    equal = np.ones(len(numbers))
    weights = np.ones(len(numbers))
    is_drawn[places] = True
    equal[places] = copies
    weights[is_drawn] = rescale_weights(equal[is_drawn], total / enough, total)
    return Drawn(numbers, rows, is_drawn, equal, weights, larger)
