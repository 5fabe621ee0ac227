"""One pass over the rows of some data, in whatever pieces they come: the same blocks, added in the same order, always.

Floating-point sums depend on their order. So that one core and a cluster give the same numbers, rows are cut into blocks of
a fixed size by their row numbers, every block is mapped to something small, and the small things are merged along a
fixed binary tree over the block numbers: node (level, i) is the merger of nodes (level − 1, 2i) and (level − 1, 2i + 1).
What a worker has seen is a set of nodes, and of pieces of blocks that begin or end in somebody else's share; two such sets are
joined by putting pieces and nodes together wherever they fit. Joining is associative and commutative to the last bit, so
it does not matter who has done what, or in which order, or whose part was lost and computed again by somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from mosaic._arrays import IntArray

#: What is left of rows, or of many blocks of them: named arrays, so that it can be sent and saved as it is.
Small: TypeAlias = dict[str, Any]
#: Rows of a block. Few enough that a block and its kernel columns fit into memory a few times, and many enough that
#: merging two nodes costs little next to mapping a block.
BLOCK_ROWS = 8192


class Task(Protocol):
    """What a pass does: pure functions of rows and of what they have become. It is sent to workers, so it is picklable."""

    def map_block(self, rows: Any, start: int) -> Small:
        """Something small from the rows of one block, the first of which is row ``start`` of the data."""

    def merge(self, left: Small, right: Small) -> Small:
        """Two neighbours as one; ``left`` holds the lower row numbers."""


@dataclass(frozen=True)
class Partial:
    """What is known of some of the n rows: merged nodes of whole blocks, and pieces (offset, rows) of others."""

    n: int
    nodes: dict[tuple[int, int], Small] = field(default_factory=dict)
    pieces: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)

    @property
    def rows_mapped(self) -> int:
        """Rows in whole blocks."""
        ends = [min((i + 1) << level, n_blocks(self.n)) for level, i in self.nodes]
        starts = [i << level for level, i in self.nodes]
        return sum(min(e * BLOCK_ROWS, self.n) - s * BLOCK_ROWS for s, e in zip(starts, ends, strict=True))


def n_blocks(n: int) -> int:
    """Blocks that n rows make."""
    return -(-n // BLOCK_ROWS)


def map_rows(task: Task, rows: Any, start: int, n: int) -> Partial:
    """Consecutive rows, the first of which is row ``start`` of n: whole blocks mapped, the rest kept as it is.

    Examples
    --------
    >>> import numpy as np
    >>> class Sum:
    ...     def map_block(self, rows, start):
    ...         return {"sum": rows.sum(axis=0)}
    ...
    ...     def merge(self, left, right):
    ...         return {"sum": left["sum"] + right["sum"]}
    >>> X = np.random.default_rng(0).normal(size=(30_000, 2))
    >>> whole = total(Sum(), map_rows(Sum(), X, 0, len(X)))
    >>> parts = [map_rows(Sum(), X[a:b], a, len(X)) for a, b in [(20_000, 30_000), (0, 777), (777, 20_000)]]
    >>> joined = join(Sum(), join(Sum(), parts[0], parts[1]), parts[2])
    >>> bool((total(Sum(), joined)["sum"] == whole["sum"]).all())
    True
    """
    partial = Partial(n)
    stop = start + rows.shape[0]
    for block in range(start // BLOCK_ROWS, n_blocks(stop)) if stop > start else ():
        first, last = max(start, block * BLOCK_ROWS), min(stop, (block + 1) * BLOCK_ROWS)
        _add_piece(task, partial, block, first - block * BLOCK_ROWS, rows[first - start : last - start])
    return partial


def join(task: Task, a: Partial, b: Partial) -> Partial:
    """What two partials know together. Neither is changed; no row may be in both."""
    joined = Partial(a.n, dict(a.nodes), {block: list(pieces) for block, pieces in a.pieces.items()})
    for (level, i), small in b.nodes.items():
        _add_node(task, joined, level, i, small)
    for block, pieces in b.pieces.items():
        for offset, rows in pieces:
            _add_piece(task, joined, block, offset, rows)
    return joined


def total(task: Task, partial: Partial) -> Small:
    """The whole, once all rows are in."""
    if partial.pieces or partial.rows_mapped != partial.n:
        raise RuntimeError(f"a pass has seen {partial.rows_mapped:,} of {partial.n:,} rows in whole blocks.")
    # Nodes on the right edge have no sibling. Which ones they are depends on n alone.
    ordered = sorted(partial.nodes, key=lambda node: node[1] << node[0])
    result = partial.nodes[ordered[0]]
    for node in ordered[1:]:
        result = task.merge(result, partial.nodes[node])
    return result


def _add_piece(task: Task, partial: Partial, block: int, offset: int, rows: Any) -> None:
    pieces = sorted([*partial.pieces.pop(block, []), (offset, rows)], key=lambda piece: piece[0])
    size = min(BLOCK_ROWS, partial.n - block * BLOCK_ROWS)
    if sum(part.shape[0] for _, part in pieces) < size:
        # A copy: a slice would keep alive what it was cut from.
        partial.pieces[block] = [(at, part.copy() if at == offset else part) for at, part in pieces]
        return
    whole = pieces[0][1] if len(pieces) == 1 else np.concatenate([part for _, part in pieces])
    _add_node(task, partial, 0, block, task.map_block(whole, block * BLOCK_ROWS))


def _add_node(task: Task, partial: Partial, level: int, i: int, small: Small) -> None:
    """Put a node to the others, merged with its sibling as long as that is there."""
    while (sibling := partial.nodes.pop((level, i ^ 1), None)) is not None:
        small = task.merge(small, sibling) if i % 2 == 0 else task.merge(sibling, small)
        level, i = level + 1, i // 2
    partial.nodes[level, i] = small


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
    """Several tasks in one pass."""

    tasks: dict[str, Task]

    def map_block(self, rows: Any, start: int) -> Small:
        """What each of them makes of a block."""
        return {f"{name}:{k}": v for name, task in self.tasks.items() for k, v in task.map_block(rows, start).items()}

    def merge(self, left: Small, right: Small) -> Small:
        """What each of them makes of two."""
        merged: Small = {}
        for name, task in self.tasks.items():
            parts = [
                {k.partition(":")[2]: v for k, v in side.items() if k.startswith(name + ":")} for side in (left, right)
            ]
            merged |= {f"{name}:{k}": v for k, v in task.merge(*parts).items()}
        return merged
