"""A pass over the rows of the data: the same blocks, merged in the same order, on one core and on a cluster.

Floating-point sums depend on their order, so blocks have a fixed size, every block is mapped to a small result, and the results
are merged along a fixed binary tree: node (level, i) is the merger of nodes (level − 1, 2i) and (level − 1, 2i + 1). Nodes on the
right edge have no sibling; they depend on the number of blocks alone, and are merged from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.xp import is_on_device, rows_of

#: The result for the rows of one block or several: arrays by name, or the results of several tasks.
BlockResult: TypeAlias = dict[str, Any]
#: Rows of a block: few enough that memory holds a few, and enough that merging costs little compared with mapping.
BLOCK_ROWS = 8192

Value = TypeVar("Value")


class Task(Protocol):
    """What a pass does: pure functions of rows and of results. It is sent to workers, so it is picklable."""

    def map_block(self, rows: Any, start: int) -> BlockResult:
        """The result for the rows of one block, the first of which is row ``start`` of the data."""

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        """Merge the results of two neighbours; ``left`` holds the lower row numbers."""


def merge_all(merge: Callable[[Value, Value], Value], values: Iterable[Value]) -> Value:
    """Merge neighbours, at most one node of every level being held at a time: a … g become ((((a b) (c d)) (e f)) g)."""
    merged: list[tuple[int, Value]] = []
    for value in values:
        level = 0
        while merged and merged[-1][0] == level:
            value = merge(merged.pop()[1], value)
            level = level + 1
        merged.append((level, value))
    return reduce(merge, (value for _, value in merged))


@dataclass(frozen=True)
class PerRow:
    """A pass that keeps a result for every row, in their order."""

    function: Callable[[Any, int], BlockResult]

    def map_block(self, rows: Any, start: int) -> BlockResult:
        return self.function(rows, start)

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {name: np.concatenate([left[name], right[name]]) for name in left}


@dataclass(frozen=True)
class TakeRows:
    """A pass that returns the rows with the given numbers, which are in ascending order."""

    numbers: IntArray

    def map_block(self, rows: Any, start: int) -> BlockResult:
        here = self.numbers[(self.numbers >= start) & (self.numbers < start + rows.shape[0])]
        taken = rows_of(rows, here - start)
        return {"rows": taken if is_on_device(taken) else np.asarray(taken)}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {"rows": np.concatenate([left["rows"], right["rows"]])}


@dataclass(frozen=True)
class Together:
    """Several tasks in one pass; the result has that of each by its name."""

    tasks: dict[str, Task]

    def map_block(self, rows: Any, start: int) -> BlockResult:
        return {name: task.map_block(rows, start) for name, task in self.tasks.items()}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {name: task.merge(left[name], right[name]) for name, task in self.tasks.items()}
