"""Dask: partitions of a data frame, or chunks of rows of an array. The active scheduler does the jobs, and merges by a tree."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import lru_cache, reduce
from math import isnan
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import check_numbers
from mosaic.arrays.passes import PerRow
from mosaic.arrays.sources import map_part
from mosaic.arrays.threads import one_thread
from mosaic.door import refuse_masked
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.parts import Collection, InParts, Job, Layout, Opened, PartsSource
from mosaic.text import readable_size

#: Results that one task merges.
FEW = 8


class InDask(Collection):
    """Partitions of a Dask data frame, of the graph that is run, or chunks of rows of an array; ``size`` is what an error says of
    the largest.
    """

    def __init__(self, X: Any, kind: str, empty: Any = None, size: str = ""):
        self.kind, self.empty, self.size = kind, empty, size
        self.parts = np.ravel(X.to_delayed()).tolist()
        self.n_parts = len(self.parts)

    def run(self, job: Job, parts: Sequence[int] | None = None) -> Any:
        import cloudpickle
        import dask
        from dask.delayed import delayed
        from dask.utils import parse_bytes

        with suppress(
            ImportError
        ):  # before its setting is changed: Dask would forget defaults that are loaded meanwhile
            import distributed  # noqa: F401

        name, payload = f"mosaic-{uuid4().hex}", cloudpickle.dumps(job)
        # The graph holds the job once, so that it survives the loss of a worker; as bytes, since arrays that are sent directly
        # may end up at unaligned addresses, where products round differently.
        shared = delayed(payload, name=f"job-{name}", traverse=False)
        mapped, merged = delayed(part_done, pure=False), delayed(parts_merged, pure=False)
        numbers = range(self.n_parts) if parts is None else parts
        found = [
            mapped(shared, self.parts[i], i, dask_key_name=f"part-{name}-{i}") for i in numbers
        ]
        while len(found) > 1:
            found = [merged(shared, found[i : i + FEW]) for i in range(0, len(found), FEW)]
        # Clients warn of large graphs. Raise the limit by the size of the job: a large job is fine, rows in the graph are not.
        limit = "distributed.admin.large-graph-warning-threshold"
        allowed = parse_bytes(dask.config.get(limit, "10MB")) + len(payload)
        with one_thread(), dask.config.set({limit: allowed}), cluster_faults(self.size):
            return found[0].compute()


def collection_of(X: Any, budget: float | None) -> InParts | PartsSource:
    """A table of a Dask data frame, or a source of the rows of an array. Only what is not known of them is computed."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(X, dd.DataFrame):
        return InParts(InDask(X, "Dask dataframe", X._meta), budget)
    if not isinstance(X, da.Array):
        raise InvalidInputError(
            f"X must be a Dask array or a Dask dataframe; got a Dask {type(X).__name__}",
            "Convert it, for example with to_frame, dask.array.from_delayed or Bag.to_dataframe.",
        )
    if X.ndim != 2:
        fault = (
            f"X must have two dimensions, points and features; got a Dask array of shape {X.shape}"
        )
        raise InvalidInputError(fault, "Reshape it.")
    check_numbers(X.dtype)
    if isnan(X.shape[1]):
        X = X.copy()  # compute_chunk_sizes changes it in place
        with cluster_faults():
            X.compute_chunk_sizes()
    width = int(X.shape[1])
    itemsize = X.dtype.itemsize
    rows = of_whole_rows(X)
    if isnan(X.shape[0]):
        chunks = InDask(rows, "Dask array")
        opened = Opened.of(chunks, as_it_is, width, budget)
        return PartsSource(chunks, as_it_is, opened.layout, width, opened, itemsize)
    longest = max(X.chunks[0])
    size = f"; a part has {longest:,} rows, {readable_size(longest * width * itemsize)}"
    chunks = InDask(rows, "Dask array", size=size)
    layout = Layout.of(X.chunks[0])
    return PartsSource(chunks, as_it_is, layout, width, itemsize=itemsize)


def of_whole_rows(X: Any) -> Any:
    return X.map_blocks(checked_chunk, meta=np.empty((0, 0), X.dtype)).rechunk({1: -1})


def answers_of_chunks(X: Any, task: PerRow, none: Any) -> Any:
    """A Dask array of the answers for the rows of X, computed where its chunks are; ``none`` is the answer for no rows."""
    import cloudpickle
    from dask.delayed import delayed

    rows = of_whole_rows(X)
    shared = delayed(cloudpickle.dumps(task), name=f"mosaic-answers-{uuid4().hex}", traverse=False)
    shape: dict[str, Any] = (
        {"drop_axis": 1} if none.ndim == 1 else {"chunks": (rows.chunks[0], none.shape[1:])}
    )
    return rows.map_blocks(
        answers_of_chunk, payload=shared, none=none, dtype=none.dtype, meta=none, **shape
    )


def answers_of_chunk(rows: Any, payload: bytes, none: Any, block_info: Any = None) -> Any:
    start = block_info[0]["array-location"][0][0]
    if rows.shape[0]:
        return map_part(_job(payload), rows, 0 if isnan(start) else start)["answer"]
    return none


def as_it_is(rows: Any) -> Any:
    return rows


def checked_chunk(chunk: Any, block_info: Any = None) -> Any:
    """A chunk whose rows can be sliced, after a check that it is as large as X says, and that nothing in it is masked."""
    refuse_masked(chunk)
    (start, stop), (first, last) = block_info[0]["array-location"]
    rows, columns = chunk.shape if chunk.ndim == 2 else (None, None)
    if columns != last - first:
        has = f"{columns} columns" if chunk.ndim == 2 else f"the shape {chunk.shape}"
        fault = f"a chunk of X that should hold columns {first} … {last - 1} has {has}"
        raise InvalidInputError(fault, "Say so where X is made: map_blocks(…, chunks=…).")
    if not isnan(stop) and rows != stop - start:
        raise InvalidInputError(
            f"the chunk of X that should hold rows {start} … {stop - 1} has {rows} rows",
            "Call X.compute_chunk_sizes(), or persist X if it differs every time it is computed.",
        )
    return sp.csr_matrix(chunk) if sp.issparse(chunk) else np.asarray(chunk)


@lru_cache(maxsize=1)
def _job(payload: bytes) -> Any:
    """The current job, unpickled once per process."""
    return pickle.loads(payload)


def part_done(payload: bytes, part: Any, number: int) -> Any:
    return _job(payload).of_part(part, number)


def parts_merged(payload: bytes, found: list[Any]) -> Any:
    with one_thread():
        return reduce(_job(payload).merge, found)


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
