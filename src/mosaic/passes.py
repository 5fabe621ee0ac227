"""One pass over the rows of some data: the same blocks, merged in the same order, whoever does it.

Floating-point sums depend on their order. So that one core and a cluster give the same numbers, rows are cut into blocks of a
fixed size by their row numbers, every block is mapped to something small, and the small things are merged along a fixed
binary tree over the block numbers: node (level, i) is the merger of nodes (level − 1, 2i) and (level − 1, 2i + 1). Nodes on
the right edge have no sibling; which ones they are depends on the number of blocks alone, and they are merged from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from mosaic._arrays import IntArray

#: What is left of the rows of one block or many: named arrays, so that it can be sent and saved as it is.
Small: TypeAlias = dict[str, Any]
#: Rows of a block. Few enough that a block and its kernel columns fit into memory a few times, and many enough that
#: merging two nodes costs little next to mapping a block.
BLOCK_ROWS = 8192

Value = TypeVar("Value")
#: A node of the tree: its level, and what its blocks became.
Node: TypeAlias = tuple[int, Value]


class Task(Protocol):
    """What a pass does: pure functions of rows and of what they have become. It is sent to workers, so it is picklable."""

    def map_block(self, rows: Any, start: int) -> Small:
        """Something small from the rows of one block, the first of which is row ``start`` of the data."""

    def merge(self, left: Small, right: Small) -> Small:
        """Two neighbours as one; ``left`` holds the lower row numbers."""


def merge_nodes(merge: Callable[[Value, Value], Value], nodes: Iterable[Node[Value]]) -> list[Node[Value]]:
    """Neighbouring nodes in their order, siblings merged until none are left. The first must be a left child, or the root.

    Values may be promises of values, as long as ``merge`` takes them. At most one node of every level is held at a time.
    """
    merged: list[Node[Value]] = []
    for level, value in nodes:
        while merged and merged[-1][0] == level:
            value, level = merge(merged.pop()[1], value), level + 1
        merged.append((level, value))
    return merged


def merge_all(merge: Callable[[Value, Value], Value], nodes: Iterable[Node[Value]]) -> Value:
    """One value from nodes that hold all blocks, in their order.

    Examples
    --------
    >>> merge_all("({} {})".format, [(0, block) for block in "abcdefg"])
    '((((a b) (c d)) (e f)) g)'
    """
    return reduce(merge, (value for _, value in merge_nodes(merge, nodes)))


@dataclass(frozen=True)
class PerRow:
    """A pass that keeps something of every row, in their order: arrays with a row for each row of the data."""

    function: Callable[[Any, int], Small]

    def map_block(self, rows: Any, start: int) -> Small:
        """What the function says of these rows, the first of which is row ``start``."""
        return self.function(rows, start)

    def merge(self, left: Small, right: Small) -> Small:
        """One after the other."""
        return {name: np.concatenate([left[name], right[name]]) for name in left}


@dataclass(frozen=True)
class TakeRows:
    """A pass that brings some rows, named by their numbers in ascending order."""

    numbers: IntArray

    def map_block(self, rows: Any, start: int) -> Small:
        """Those of them that are in this block."""
        here = self.numbers[(self.numbers >= start) & (self.numbers < start + rows.shape[0])]
        return {"rows": np.asarray(rows[here - start])}

    def merge(self, left: Small, right: Small) -> Small:
        """One after the other."""
        return {"rows": np.concatenate([left["rows"], right["rows"]])}


@dataclass(frozen=True)
class Together:
    """Several tasks in one pass. Of task ``name``, the value ``key`` is called ``name:key``."""

    tasks: dict[str, Task]

    def map_block(self, rows: Any, start: int) -> Small:
        """What each of them makes of a block."""
        return self._named({name: task.map_block(rows, start) for name, task in self.tasks.items()})

    def merge(self, left: Small, right: Small) -> Small:
        """What each of them makes of two."""
        return self._named({name: task.merge(own(left, name), own(right, name)) for name, task in self.tasks.items()})

    def _named(self, found: dict[str, Small]) -> Small:
        return {f"{name}:{key}": value for name, small in found.items() for key, value in small.items()}


def own(small: Small, name: str) -> Small:
    """What one of several tasks has found."""
    return {key.removeprefix(f"{name}:"): value for key, value in small.items() if key.startswith(f"{name}:")}
