"""Dask: a table of partitions, and a source of numbers whose chunks are cut into runs of whole blocks.

The active scheduler maps the runs and merges them by a tree of tasks.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import lru_cache
from math import isnan
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import IntArray, check_numbers, check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Node, Task
from mosaic.arrays.sources import Source, Watch, dense_rows, map_run, merge_last, merge_runs
from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.frames import Cells, cells_of
from mosaic.rows.tables import InMemory
from mosaic.text import Library, readable_size

pd = Library("pandas")


class DaskSource(Source):
    """Rows of a Dask array of two dimensions whose chunks have known lengths."""

    def __init__(self, rows: Any, kind: str):
        self.n, self.n_features, self.kind = int(rows.shape[0]), int(rows.shape[1]), kind
        check_shape((self.n, self.n_features))
        # Runs are about as long as the chunks, so that a worker holds about as much in memory as the user planned.
        self._run_rows = BLOCK_ROWS << (max(1, max(rows.chunks[0]) // BLOCK_ROWS).bit_length() - 1)
        rows = rows.map_blocks(as_sliceable, meta=np.empty((0, 0), rows.dtype))
        # Not "p2p", Dask's other method: with it, all rows are sent again if a worker is lost.
        self._runs = rows.rechunk((self._run_rows, -1), method="tasks")

    @classmethod
    def of(cls, X: Any) -> DaskSource:
        """A source of the rows of a Dask array. Only unknown lengths of chunks are computed."""
        import dask.array as da

        if not isinstance(X, da.Array):
            raise InvalidInputError(
                f"X must be a Dask array or a Dask dataframe; got a Dask {type(X).__name__}",
                "Convert it, for example with to_frame, dask.array.from_delayed or Bag.to_dataframe.",
            )
        if X.ndim != 2:
            fault = f"X must have two dimensions, points and features; got a Dask array of shape {X.shape}"
            raise InvalidInputError(fault, "Reshape it.")
        check_numbers(X.dtype)
        if any(isnan(size) for size in X.shape):
            X = X.copy()  # compute_chunk_sizes changes it in place
            with cluster_faults():
                X.compute_chunk_sizes()
        return cls(X, "Dask array")

    def take(self, numbers: IntArray) -> Any:
        """The rows with these numbers; only chunks that hold them are computed."""
        with one_thread(), cluster_faults():
            return dense_rows(self._runs[numbers].compute())

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        import cloudpickle
        import dask
        from dask.delayed import delayed
        from dask.utils import parse_bytes

        with suppress(ImportError):  # before its setting is changed: Dask would forget defaults that are loaded meanwhile
            import distributed  # noqa: F401

        name, payload = f"mosaic-map-{uuid4().hex}", cloudpickle.dumps(task)
        # The graph holds the task once, so that it survives the loss of a worker. It is sent as bytes: arrays that are sent
        # directly may end up at unaligned addresses, where products round differently.
        shared = delayed(payload, name=f"task-{name}", traverse=False)
        meta = np.empty((0, 0), object)
        mapped = self._runs.map_blocks(map_chunk, payload=shared, run_rows=self._run_rows, name=name, meta=meta)
        merged = delayed(merge_parts, pure=False)
        runs = list(mapped.to_delayed().ravel())
        few = 8  # runs that one task merges, a power of two
        while len(runs) > few:
            runs = [merged(merge_runs, shared, runs[i : i + few]) for i in range(0, len(runs), few)]
        part = readable_size(self._run_rows * self.n_features * self._runs.dtype.itemsize)
        # Clients warn of large graphs. Raise the limit by the size of the task: a large task is fine, rows in the graph are not.
        limit = "distributed.admin.large-graph-warning-threshold"
        allowed = parse_bytes(dask.config.get(limit, "10MB")) + len(payload)
        with (
            one_thread(),
            dask.config.set({limit: allowed}),
            cluster_faults(f"; a part has {min(self._run_rows, self.n):,} rows, {part}"),
        ):
            result: BlockResult = merged(merge_last, shared, runs).compute()
        if watch is not None:
            watch(self.n)
        return result


class InDask:
    """Rows of a Dask data frame: columns are found by the text of their names, and partitions stay where they are."""

    is_whole, held = False, 0.0

    def __init__(self, X: Any):
        import narwhals.stable.v2 as nw

        self._X, self._first = X, cells_of(X._meta)
        self.columns = list(self._first)
        check_shape((1, len(self.columns)))
        # Column-oriented formats read one column for the lengths.
        with cluster_faults():
            lengths = X[X.columns[:1]].map_partitions(len).compute()
        self._ends = np.cumsum([0, *lengths])
        self.n = int(self._ends[-1])
        check_shape((self.n, len(self.columns)))
        self.levels = [name for name, kind in self.kinds().items() if kind in (nw.Categorical, nw.Enum)]

    def kinds(self) -> Mapping[str, Any]:
        return {name: column.dtype for name, column in self._first.columns.items()}

    def _only(self, columns: Sequence[str]) -> Any:
        return self._X[[self._first.columns[name].name for name in columns]]

    def missing(self, columns: Sequence[str]) -> IntArray:
        """How many values of each column are missing."""
        with cluster_faults():
            return np.asarray(self._only(columns).isnull().sum().compute().to_numpy(), np.intp)

    def blocks(self, columns: Sequence[str], start: int = 0, stop: int | None = None) -> Iterator[Cells]:
        last = self.n if stop is None else stop
        for part in range(len(self._ends) - 1):
            begin, end = (int(row) for row in self._ends[part : part + 2])
            if begin < last and start < end:
                with cluster_faults():
                    frame = self._only(columns).partitions[part].compute()
                yield cells_of(frame.iloc[max(start - begin, 0) : last - begin], levels=self.levels)

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """The cells of some rows; only partitions that hold them are computed, and only these rows are fetched."""
        import dask

        numbers, back = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        chosen, cuts = self._only(columns), np.searchsorted(numbers, self._ends)
        here = [(part, numbers[cuts[part] : cuts[part + 1]] - self._ends[part]) for part in np.flatnonzero(np.diff(cuts))]
        found = [chosen.partitions[int(part)].map_partitions(rows_of_frame, of_part, meta=chosen._meta) for part, of_part in here]
        with cluster_faults():
            frames = dask.compute(*found)
        return InMemory(cells_of(pd.concat(frames or [chosen._meta]))).take(back, columns)

    def texts(self, column: str, rows: IntArray | None = None) -> list[str]:
        cells = self.take(np.arange(self.n) if rows is None else rows, [column]).column(0)
        return ["" if value is None else str(value) for value in cells.to_pylist()]

    def encoded(self, encode: Callable[[Cells], Any], columns: Sequence[str]) -> DaskSource:
        """The numbers of the rows, made of these columns where the partitions are."""
        import dask.array as da

        chosen = self._only(columns)
        meta = numbers_of_part(chosen._meta, encode, self.levels)
        rows = chosen.map_partitions(numbers_of_part, encode, self.levels, meta=meta)
        lengths = tuple(int(length) for length in np.diff(self._ends))
        return DaskSource(da.Array(rows.dask, rows.name, (lengths, (meta.shape[1],)), meta=meta), "Dask dataframe")


def rows_of_frame(frame: Any, rows: IntArray) -> Any:
    return frame.iloc[rows]


def numbers_of_part(frame: Any, encode: Callable[[Cells], Any], levels: Sequence[str]) -> Any:
    return encode(cells_of(frame, levels=levels))


@contextmanager
def cluster_faults(part: str = "") -> Iterator[None]:
    """Say what a loss of workers or of the scheduler means, and what to do; ``part`` tells the size of a part."""
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
        raise MosaicError(
            f"{error.allowed_failures + 1} workers of the Dask cluster died on the same part of a pass, most likely because "
            f"they ran out of memory. The last one is {error.last_worker.address}{part}",
            "Give each worker more memory (memory_limit=… of LocalCluster, dask worker --memory-limit …), or make the chunks "
            "of X smaller (X.rechunk).",
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


def map_chunk(rows: Any, payload: bytes, run_rows: int, block_id: tuple[int, int]) -> list[Node[BlockResult]]:
    return map_run(_task(payload), rows, block_id[0] * run_rows)


def merge_parts(merge: Callable[[Task, Any], Any], payload: bytes, runs: list[list[Node[BlockResult]]]) -> Any:
    return merge(_task(payload), runs)
