"""The interface of a source of rows: it knows the number of rows and columns, and runs a pass over the rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Node, Task, merge_all, merge_nodes
from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError

#: Called from time to time during a pass with the number of rows done so far.
Watch: TypeAlias = Callable[[int], None]


class Source(ABC):
    """Rows of numbers, wherever they are, and the scheduling of passes over them. The task does the computation.

    Attributes
    ----------
    kind : its name in messages: "Dask array", "Parquet file"
    n : number of rows
    n_features : number of columns
    names : names of the columns, if they have any
    files : files that hold the rows, if any; if one changes between passes, the fit raises an error
    buffers : bytes that reading takes in this process beside the blocks of rows, for estimates
    most_threads : threads of this process that a pass may use, None for any number
    """

    kind: str
    n: int
    n_features: int
    names: Sequence[str] | None = None
    files: Sequence[Path] = ()
    buffers: float = 0.0
    most_threads: int | None = None

    @abstractmethod
    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        """Map all rows, in blocks, and merge the results (see ``passes``).

        Parameters
        ----------
        task : maps blocks and merges results
        watch : called with the progress of the pass
        """


class Passes:
    """Makes passes over a source, reports their progress, and raises an error if a file has changed since the first.

    Parameters
    ----------
    source : the rows
    tell : called with the progress of a pass: its name, the share of the rows that is done, and rows per second
    """

    def __init__(self, source: Source, tell: Callable[[str, float, float], None] | None = None):
        self.source, self.tell = source, tell
        self.stamps = [_stamp(file) for file in source.files]

    def run(self, name: str, task: Task) -> BlockResult:
        """The result of a pass."""
        started, tell = time.monotonic(), self.tell

        def watch(rows: int) -> None:
            if tell is not None:
                tell(name, rows / self.source.n, rows / max(time.monotonic() - started, 1e-9))

        small = self.source.run(task, watch=watch)
        for file, stamp in zip(self.source.files, self.stamps, strict=True):
            if _stamp(file) != stamp:
                raise InvalidInputError(
                    f"{file} has changed while it was read in passes, which must all see the same rows",
                    "Fit again when no process writes to it.",
                )
        return small


def _stamp(file: Path) -> tuple[int, int] | None:
    """Size and modification time of a file; None if it no longer exists."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def check_shape(n: int, n_features: int, name: str = "X") -> None:
    """Refuse data without rows or without columns."""
    if n == 0 or n_features == 0:
        raise InvalidInputError(
            f"{name} must have at least one point and one feature; got shape ({n}, {n_features})",
            "Pass data that has both.",
        )


def as_rows(rows: Any) -> Any:
    """Rows as a dense, aligned array of float32 or float64 in C order; other numbers become float64, sparse rows dense.

    Memory order and alignment matter: if the same numbers are in another order, or at unaligned addresses, as after transfer over
    a network, the last bits of sums differ.
    """
    if sp.issparse(rows):
        rows = rows.toarray()
    rows = np.asarray(rows)
    if rows.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"X must hold real numbers; got dtype {rows.dtype}", "Convert or drop the columns that are not numeric."
        )
    single = rows.dtype.kind == "f" and rows.dtype.itemsize == 4
    return np.require(rows, np.float32 if single else np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def map_run(task: Task, rows: Any, start: int) -> list[Node[BlockResult]]:
    """Nodes of the consecutive blocks that begin with row ``start``; of sparse rows, only one block at a time is made dense.

    If there are 2^m whole blocks, and a multiple of 2^m blocks before them, the result is a single node.
    """
    with one_thread():
        blocks = ((a, as_rows(rows[a : a + BLOCK_ROWS])) for a in range(0, rows.shape[0], BLOCK_ROWS))
        return merge_nodes(task.merge, ((0, task.map_block(block, start + a)) for a, block in blocks))


def merge_runs(task: Task, runs: Iterable[list[Node[BlockResult]]]) -> list[Node[BlockResult]]:
    """Merge the nodes of neighbouring runs into those of one run."""
    with one_thread():
        return merge_nodes(task.merge, chain.from_iterable(runs))


def merge_last(task: Task, runs: Iterable[list[Node[BlockResult]]]) -> BlockResult:
    """The result of the pass, from the nodes of all runs."""
    with one_thread():
        return merge_all(task.merge, chain.from_iterable(runs))
