"""Dask: chunks are mapped where they are, on whatever scheduler is active, and what they gave is joined by a tree of tasks."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial, reduce
from math import isnan
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from mosaic._frames import numeric_part, to_matrix
from mosaic.engines.base import Source, Watch, as_rows, check_shape
from mosaic.exceptions import InvalidInputError
from mosaic.passes import BLOCK_ROWS, Partial, Small, Task, join, map_rows, total

#: Partials that one task joins.
FAN_IN = 4
#: What workers log the chunks under that they have done.
TOPIC = "mosaic"
#: Bytes of a graph above which a client warns.
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


class DaskSource(Source):
    """Rows of a Dask collection.

    Parameters
    ----------
    blocks : one list for each chunk of rows, of its chunks of columns, as Delayed objects that share one graph
    lengths : rows of each chunk
    n_features : number of columns
    kind : what the collection is called
    names : of the columns
    """

    def __init__(
        self,
        blocks: list[list[Any]],
        lengths: Sequence[int],
        n_features: int,
        kind: str,
        names: Sequence[str] | None = None,
    ):
        self.n, self.n_features, self.kind, self.names = int(sum(lengths)), int(n_features), kind, names
        check_shape(self.n, self.n_features)
        self._origin = blocks[0][0]
        starts = np.cumsum([0, *lengths]).tolist()
        #: (first row, row behind the last one, keys) of every chunk that has rows
        self._chunks = [
            (start, stop, [block.key for block in row])
            for start, stop, row in zip(starts, starts[1:], blocks, strict=False)
            if stop > start
        ]

    @classmethod
    def of(cls, X: Any) -> DaskSource:
        """A source of the rows of a Dask array, or of the columns of a Dask dataframe that hold numbers.

        Chunks are dense or SciPy's sparse ones. Where their lengths are unknown, they are computed, and nothing else is.
        """
        import dask.array as da

        if isinstance(X, da.Array):
            return cls._of_array(X)
        numbers = numeric_part(getattr(X, "_meta", None))
        if hasattr(numbers, "columns"):
            return cls._of_frame(X, list(numbers.columns))
        raise InvalidInputError(
            f"X must be a Dask array or a Dask dataframe; got a Dask {type(X).__name__}. "
            "Convert it, for example with dask.array.from_delayed or Bag.to_dataframe."
        )

    @classmethod
    def _of_array(cls, X: Any) -> DaskSource:
        if X.ndim != 2:
            raise InvalidInputError(
                f"X must have two dimensions, points and features; got a Dask array of shape {X.shape}. Reshape it."
            )
        as_rows(np.empty((0, 0), X.dtype))
        if isnan(X.shape[1]):
            raise InvalidInputError(
                f"X has chunks of columns of unknown width: {X.chunks[1]}. Call X.compute_chunk_sizes()."
            )
        if 0 in X.shape:
            check_shape(*X.shape)
        blocks = X.to_delayed().tolist()
        unknown = any(isnan(length) for length in X.chunks[0])
        return cls(blocks, _lengths(blocks) if unknown else X.chunks[0], X.shape[1], "Dask array")

    @classmethod
    def _of_frame(cls, X: Any, columns: list[Any]) -> DaskSource:
        # Formats that store columns read one of them for the lengths.
        lengths = _lengths([[part] for part in X[columns[:1]].to_delayed()])
        blocks = [[part] for part in X[columns].to_delayed()]
        return cls(blocks, lengths, len(columns), "Dask dataframe", [str(column) for column in columns])

    def run(self, task: Task, *, resume: Partial | None = None, watch: Watch | None = None) -> Small:
        """A task for each chunk and a tree of joins. Lost workers are Dask's to replace; a pass is never resumed."""
        import cloudpickle
        from dask.base import get_scheduler

        name, payload = f"mosaic-map-{uuid4().hex}", cloudpickle.dumps(task)
        whole, progress = self._graph(payload, name, tell=watch is not None), _Progress(self._chunks, watch)
        client = getattr(get_scheduler(), "__self__", None)
        with _one_thread():
            if hasattr(client, "subscribe_topic"):
                result = _on_cluster(client, whole, len(payload), name, progress)
            else:
                result = _on_this_machine(whole, name, progress)
        progress.end(self.n)
        return result

    def _graph(self, payload: bytes, name: str, tell: bool) -> Any:
        """The result as a Delayed object. The task is part of the graph once, so that no worker's loss is its loss."""
        layer: dict[Any, Any] = {"task-" + name: (pickle.loads, payload)}
        for i, (start, stop, keys) in enumerate(self._chunks):
            layer[name, i] = (map_chunk, "task-" + name, keys, start, stop, self.n, [name, i] if tell else None)
        parts: list[Any] = [(name, i) for i in range(len(self._chunks))]
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [(f"join-{len(parts)}-{name}", i) for i in range(len(groups))]
            layer |= {key: (join_all, "task-" + name, group) for key, group in zip(parts, groups, strict=True)}
        layer["total-" + name] = (total_of, "task-" + name, parts[0])
        return _delayed(self._origin, layer, "total-" + name)


class _Progress:
    """Rows of the chunks that are done; those of a lost worker, which are done again, count once."""

    def __init__(self, chunks: list[tuple[int, int, list[Any]]], watch: Watch | None):
        self.left = {i: stop - start for i, (start, stop, _) in enumerate(chunks)}
        self.watch, self.rows = watch, 0

    def add(self, chunk: int) -> None:
        if self.watch is not None and chunk in self.left:
            self.rows += self.left.pop(chunk)
            self.watch(self.rows, None)

    def end(self, n: int) -> None:
        if self.watch is not None and self.rows < n:
            self.watch(n, None)


def _on_this_machine(whole: Any, name: str, progress: _Progress) -> Small:
    from dask.callbacks import Callback

    def count(key: Any, *_: Any) -> None:
        if isinstance(key, tuple) and key[0] == name:
            progress.add(key[1])

    with Callback(posttask=count):
        result: Small = whole.compute()
    return result


def _on_cluster(client: Any, whole: Any, task_bytes: int, name: str, progress: _Progress) -> Small:
    """Wait for the result of a pass; whatever interrupts the waiting cancels the pass."""
    import dask
    from dask.utils import parse_bytes

    done: SimpleQueue[int | None] = SimpleQueue()

    def hear(event: tuple[float, tuple[str, int]]) -> None:
        _, (of, chunk) = event
        if of == name:
            done.put(chunk)

    client.subscribe_topic(TOPIC, hear)
    try:
        # Clients warn of large graphs. The task may be large; rows must not be in there.
        with dask.config.set({LARGE_GRAPH: parse_bytes(dask.config.get(LARGE_GRAPH, "10MB")) + task_bytes}):
            future = client.compute(whole)
        try:
            future.add_done_callback(lambda _: done.put(None))
            while (chunk := done.get()) is not None:
                progress.add(chunk)
            result: Small = future.result()
        except BaseException:
            future.cancel()
            raise
    finally:
        client.unsubscribe_topic(TOPIC)
    return result


def map_chunk(task: Task, parts: list[Any], start: int, stop: int, n: int, mark: list[Any] | None = None) -> Partial:
    """Map a chunk of rows, given as its chunks of columns, block by block: of sparse rows no more than a block is dense."""
    parts = [_sliceable(part) for part in parts]
    if any(part.shape[0] != stop - start for part in parts):
        found = ", ".join(str(part.shape[0]) for part in parts)
        raise InvalidInputError(
            f"the chunk of X that should hold rows {start} … {stop - 1} has {found} rows. "
            "Call X.compute_chunk_sizes(), or persist X where it is different every time it is computed."
        )
    known = Partial(n)
    with _one_thread():
        for first in [start, *range((start // BLOCK_ROWS + 1) * BLOCK_ROWS, stop, BLOCK_ROWS)]:
            last = min(stop, (first // BLOCK_ROWS + 1) * BLOCK_ROWS)
            rows = np.concatenate([as_rows(part[first - start : last - start]) for part in parts], axis=1)
            known = join(task, known, map_rows(task, rows, first, n))
    if mark is not None:
        _tell(mark)
    return known


def join_all(task: Task, parts: list[Partial]) -> Partial:
    """Neighbours as one, in their order. Blocks that become whole are mapped here."""
    with _one_thread():
        return reduce(partial(join, task), parts)


def total_of(task: Task, whole: Partial) -> Small:
    """What the pass returns."""
    with _one_thread():
        return total(task, whole)


def _tell(mark: list[Any]) -> None:
    """Let the client know that a chunk is done, where this is a worker of a cluster."""
    if (distributed := sys.modules.get("distributed")) is not None:
        with suppress(ValueError):  # no worker
            distributed.get_worker().log_event(TOPIC, mark)


def _sliceable(part: Any) -> Any:
    if hasattr(part, "columns"):
        part = to_matrix(part)
    return part.tocsr() if sp.issparse(part) else part


def _lengths(blocks: list[list[Any]]) -> list[int]:
    """Rows of each chunk, counted where it is."""
    name = f"mosaic-length-{uuid4().hex}"
    layer: dict[Any, Any] = {(name, i): (_length, row[0].key) for i, row in enumerate(blocks)}
    layer[name] = [(name, i) for i in range(len(blocks))]
    lengths: list[int] = _delayed(blocks[0][0], layer, name).compute()
    return lengths


def _length(part: Any) -> int:
    return int(part.shape[0])


def _delayed(origin: Any, layer: dict[Any, Any], key: str) -> Any:
    """One value of a graph that goes on from another one. Delayed calls would cost the square of the number of chunks."""
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    return Delayed(key, HighLevelGraph.from_collections(key, layer, dependencies=[origin]))


@cache
def _libraries() -> ThreadpoolController:
    """BLAS as it is loaded. To look for it takes milliseconds, as long as to map some hundred rows."""
    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread: several cut, and round, sums differently.

    A process has one such limit, which belongs to the thread that set it first. So the client sets it around a pass, for
    threads of its own, and workers set it for theirs, where Dask has not done so when it started them.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limit
