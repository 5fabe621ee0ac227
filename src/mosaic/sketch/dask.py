"""Dask: chunks are cut into runs of whole blocks, which the active scheduler maps and merges by a tree of tasks."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import lru_cache
from math import isnan
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from mosaic._frames import numeric_part, to_matrix
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Node, Task
from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.sketch.engine import Source, Watch, as_rows, check_shape, map_run, merge_last, merge_runs
from mosaic.text import readable_size

#: Runs that one task merges, a power of two.
FAN_IN = 8
#: Topic under which workers log the runs that they have finished.
TOPIC = "mosaic"
#: Dask's setting for the size of a graph, in bytes, above which a client warns.
LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


class DaskSource(Source):
    """Rows of a Dask array, or of the columns of a Dask dataframe that hold numbers.

    Parameters
    ----------
    rows : Dask array of two dimensions whose chunks have known lengths; dense or sparse
    kind : name of the collection in messages
    names : names of the columns
    """

    def __init__(self, rows: Any, kind: str, names: Sequence[str] | None = None):
        self.n, self.n_features, self.kind, self.names = int(rows.shape[0]), int(rows.shape[1]), kind, names
        check_shape(self.n, self.n_features)
        # Runs are about as long as the chunks, so that a worker holds about as much in memory as the user planned.
        self._run_rows = BLOCK_ROWS << (max(1, max(rows.chunks[0]) // BLOCK_ROWS).bit_length() - 1)
        rows = rows.map_blocks(as_sliceable, meta=np.empty((0, 0), rows.dtype))
        # Not "p2p", Dask's other method: with it, all rows are sent again if a worker is lost.
        self._runs = rows.rechunk((self._run_rows, -1), method="tasks")

    @classmethod
    def of(cls, X: Any) -> DaskSource:
        """A source of the rows of a Dask collection. Only unknown lengths of chunks are computed."""
        import dask.array as da

        if isinstance(X, da.Array):
            if X.ndim != 2:
                raise InvalidInputError(
                    f"X must have two dimensions, points and features; got a Dask array of shape {X.shape}",
                    "Reshape it.",
                )
            as_rows(np.empty((0, 0), X.dtype))
            if any(isnan(size) for size in X.shape):
                X = X.copy()  # compute_chunk_sizes changes it in place
                with cluster_faults():
                    X.compute_chunk_sizes()
            return cls(X, "Dask array")
        numbers = numeric_part(getattr(X, "_meta", None))
        if not hasattr(numbers, "columns"):
            raise InvalidInputError(
                f"X must be a Dask array or a Dask dataframe; got a Dask {type(X).__name__}",
                "Convert it, for example with dask.array.from_delayed or Bag.to_dataframe.",
            )
        columns = list(numbers.columns)
        # Column-oriented formats read one column for the lengths.
        with cluster_faults():
            lengths = tuple(int(length) for length in X[columns[:1]].map_partitions(len).compute())
        rows = X[columns].map_partitions(to_matrix, meta=to_matrix(numbers))
        rows = da.Array(rows.dask, rows.name, (lengths, (len(columns),)), meta=rows)
        return cls(rows, "Dask dataframe", [str(column) for column in columns])

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        """Run a task for each run of blocks and a tree of mergers. Dask replaces lost workers."""
        import cloudpickle
        from dask.base import get_scheduler
        from dask.delayed import delayed

        name, payload = f"mosaic-map-{uuid4().hex}", cloudpickle.dumps(task)
        # The graph holds the task once, so that it survives the loss of a worker. It is sent as bytes: arrays that are sent
        # directly may end up at unaligned addresses, where products round differently.
        shared = delayed(payload, name=f"task-{name}", traverse=False)
        mapped = self._runs.map_blocks(
            map_chunk, payload=shared, run_rows=self._run_rows, report=name, name=name, meta=np.empty((0, 0), object)
        )
        merged = delayed(merge_parts, pure=False)
        runs = list(mapped.to_delayed().ravel())
        while len(runs) > FAN_IN:
            runs = [merged(merge_runs, shared, runs[i : i + FAN_IN]) for i in range(0, len(runs), FAN_IN)]
        whole = merged(merge_last, shared, runs)
        left, rows_done = dict(enumerate(self._runs.chunks[0])), 0

        def finished(run: int) -> None:
            """Count a run; runs of a lost worker, which are repeated, count once."""
            nonlocal rows_done
            if watch is not None and run in left:
                rows_done += left.pop(run)
                watch(rows_done)

        client = getattr(get_scheduler(), "__self__", None)
        with one_thread():
            if hasattr(client, "subscribe_topic"):
                part = self._run_rows * self.n_features * self._runs.dtype.itemsize
                with cluster_faults(f"; a part has {min(self._run_rows, self.n):,} rows, {readable_size(part)}"):
                    result = _on_cluster(client, whole, len(payload), name, finished)
            else:
                result = _on_this_machine(whole, name, finished)
        if watch is not None and left:  # the last messages of workers may arrive too late
            watch(self.n)
        return result


def _on_this_machine(whole: Any, name: str, finished: Callable[[int], None]) -> BlockResult:
    from dask.callbacks import Callback

    def count(key: Any, *_: Any) -> None:
        if isinstance(key, tuple) and key[0] == name:
            finished(key[1])

    with Callback(posttask=count):
        result: BlockResult = whole.compute()
    return result


def _on_cluster(client: Any, whole: Any, task_bytes: int, name: str, finished: Callable[[int], None]) -> BlockResult:
    """Wait for the result of a pass; an interruption cancels the pass."""
    import dask
    from dask.utils import parse_bytes

    events: SimpleQueue[int | None] = SimpleQueue()

    def hear(event: tuple[float, tuple[str, int]]) -> None:
        _, (of, run) = event
        if of == name:
            events.put(run)

    client.subscribe_topic(TOPIC, hear)
    try:
        # Clients warn of large graphs. Raise the limit by the size of the task: a large task is fine, rows in the graph are not.
        with dask.config.set({LARGE_GRAPH: parse_bytes(dask.config.get(LARGE_GRAPH, "10MB")) + task_bytes}):
            future = client.compute(whole)
        try:
            future.add_done_callback(lambda _: events.put(None))
            while (run := events.get()) is not None:
                finished(run)
            result: BlockResult = future.result()
        except BaseException:
            if future.done():
                future.release()  # the traceback would keep it, and the cluster its result
            else:
                future.cancel()
            raise
    finally:
        with suppress(Exception):  # a client that was closed meanwhile
            client.unsubscribe_topic(TOPIC)
    return result


@contextmanager
def cluster_faults(part: str = "") -> Iterator[None]:
    """Say what a loss of workers or of the scheduler means, and what to do about it.

    Parameters
    ----------
    part : what is known of the size of a part, as the end of a sentence
    """
    try:
        yield
    except CancelledError as error:
        raise MosaicError(
            "the Dask cluster has dropped a pass: its scheduler was restarted or closed, or somebody cancelled the work",
            "Fit again once the cluster is up.",
        ) from error
    except Exception as error:
        distributed = sys.modules.get("distributed")
        if distributed is None or not isinstance(error, distributed.KilledWorker):
            raise
        limit = error.last_worker.memory_limit
        may = f"may use {readable_size(limit)} of memory" if limit else "has no memory limit"
        raise MosaicError(
            f"{error.allowed_failures + 1} workers of the Dask cluster have died of the same part of a pass, most likely because "
            f"they ran out of memory. The last one, {error.last_worker.address}, {may}{part}",
            "Give each worker more memory (memory_limit=… of LocalCluster, dask worker --memory-limit …), or make the chunks "
            "of X smaller (X.rechunk). If that does not help, the logs of the workers say what ended them.",
        ) from error


def as_sliceable(chunk: Any, block_info: Any = None) -> Any:
    """A chunk whose rows can be sliced, after a check that it has the expected number of rows."""
    (start, stop), _ = block_info[0]["array-location"]
    if chunk.shape[0] != stop - start:
        raise InvalidInputError(
            f"the chunk of X that should hold rows {start} … {stop - 1} has {chunk.shape[0]} rows",
            "Call X.compute_chunk_sizes(), or persist X if it differs every time it is computed.",
        )
    return sp.csr_matrix(chunk) if sp.issparse(chunk) else chunk


@lru_cache(maxsize=1)
def _task(payload: bytes) -> Any:
    """The task of the current pass, unpickled once per process."""
    return pickle.loads(payload)


def map_chunk(
    rows: Any, payload: bytes, run_rows: int, report: str, block_id: tuple[int, int]
) -> list[Node[BlockResult]]:
    """Map a run, and notify the client if this is a worker of a cluster."""
    nodes = map_run(_task(payload), rows, block_id[0] * run_rows)
    if (distributed := sys.modules.get("distributed")) is not None:
        with suppress(ValueError):  # not a worker
            distributed.get_worker().log_event(TOPIC, [report, block_id[0]])
    return nodes


def merge_parts(merge: Callable[[Task, Any], Any], payload: bytes, runs: list[list[Node[BlockResult]]]) -> Any:
    """Merge several runs into one."""
    return merge(_task(payload), runs)
