"""What a source of rows promises: how many there are, of how many columns, and to run a pass over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from mosaic.exceptions import InvalidInputError
from mosaic.passes import BLOCK_ROWS, Node, Small, Task, merge_all, merge_nodes

#: Called now and then during a pass with the number of rows done so far.
Watch: TypeAlias = Callable[[int], None]


class Source(ABC):
    """Rows of numbers, wherever they are, and somebody who maps them. Scheduling only: what is computed is the task's.

    Attributes
    ----------
    kind : what it is, as a person would say it: "Dask array", "Parquet file"
    n : number of rows
    n_features : number of columns
    names : of the columns, where they have names
    files : those that the rows are in, where they are in files; if one changes between passes, the fit is refused
    """

    kind: str
    n: int
    n_features: int
    names: Sequence[str] | None = None
    files: Sequence[Path] = ()

    @abstractmethod
    def run(self, task: Task, *, watch: Watch | None = None) -> Small:
        """Map all rows, in blocks, and merge what comes of them (see ``passes``).

        Parameters
        ----------
        task : what to do
        watch : is told how far the pass is
        """


def check_shape(n: int, n_features: int, name: str = "X") -> None:
    """Refuse data without rows or without columns."""
    if n == 0 or n_features == 0:
        raise InvalidInputError(
            f"{name} must have at least one point and one feature; got shape ({n}, {n_features})",
            "Pass data that has both.",
        )


def as_rows(rows: Any) -> Any:
    """Rows as a dense, aligned array of float32 or float64 in C order; other numbers become float64, sparse rows dense.

    Order and alignment matter: of the same numbers in another order, or at odd addresses, as they may have come over a
    network, sums have other last bits.
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


@cache
def _linear_algebra_libraries() -> ThreadpoolController:
    """BLAS as it is loaded. To look for it takes milliseconds."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread: several would get into the way of our own, and round sums differently than one.

    A process has one such limit, which belongs to the thread that set it first. So whoever starts a pass sets it around the
    pass, for threads of its own, and workers in other processes set it for theirs.
    """
    limit: AbstractContextManager[Any] = _linear_algebra_libraries().limit(limits=1)
    return limit


def map_run(task: Task, rows: Any, start: int) -> list[Node[Small]]:
    """Nodes of the consecutive blocks that begin with row ``start``; of sparse rows no more than a block is dense at a time.

    If there are 2^m whole blocks, and as many times some whole number before them, that is one node.
    """
    with one_thread():
        blocks = ((a, as_rows(rows[a : a + BLOCK_ROWS])) for a in range(0, rows.shape[0], BLOCK_ROWS))
        return merge_nodes(task.merge, ((0, task.map_block(block, start + a)) for a, block in blocks))


def merge_runs(task: Task, runs: Iterable[list[Node[Small]]]) -> list[Node[Small]]:
    """Nodes of neighbouring runs as those of one."""
    with one_thread():
        return merge_nodes(task.merge, chain.from_iterable(runs))


def merge_last(task: Task, runs: Iterable[list[Node[Small]]]) -> Small:
    """What the pass returns, from the nodes of all runs."""
    with one_thread():
        return merge_all(task.merge, chain.from_iterable(runs))
