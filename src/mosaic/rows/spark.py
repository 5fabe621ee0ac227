"""Spark: executors do the jobs for the partitions of a data frame, by ``mapInArrow``. Nothing is shuffled but what they give."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Any

from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.parts import Collection, InParts, Job

#: Results that are merged at a time, by an executor or here.
MERGED = 64
FOUND = "number long, found binary"


class InSpark(Collection):
    """The partitions of a Spark data frame, in their order. It is computed once: as long as it is needed, executors keep it, in
    memory or on their disks.
    """

    kind = "Spark dataframe"

    def __init__(self, X: Any):
        if not (X.storageLevel.useMemory or X.storageLevel.useDisk):
            X = X.select("*")  # another one, so that the user's own is not released
            weakref.finalize(self, release, X.persist()).atexit = False
        self._frame, self.n_parts = X, X.rdd.getNumPartitions()
        self.empty = X.limit(0).toArrow()

    def run(self, job: Job, parts: Sequence[int] | None = None) -> Any:
        from pyspark.sql import functions

        payload = pickle.dumps(job)
        chosen = None if parts is None else frozenset(parts)
        most = MERGED

        def merge(table: Any) -> Any:
            return merged(payload, most, table)

        found = self._frame.mapInArrow(partial(of_partition, payload, self.empty, chosen), FOUND)
        left = self.n_parts
        while left > most:
            group = functions.floor(functions.col("number") / most)
            found = found.groupBy(group).applyInArrow(merge, FOUND)
            left = -(-left // most)
        return partitions_merged(job, [(row["number"], row["found"]) for row in found.collect()])


def collection_of(X: Any, budget: float | None) -> InParts:
    if not hasattr(X, "mapInArrow"):
        raise InvalidInputError(
            f"X must be a Spark dataframe; got {type(X).__name__}",
            "Convert it, for example with rdd.toDF.",
        )
    return InParts(InSpark(X), budget)


def release(frame: Any) -> None:
    with suppress(Exception):  # the session may be over
        frame.unpersist()


def of_partition(
    payload: bytes, empty: Any, chosen: frozenset[int] | None, batches: Iterator[Any]
) -> Iterator[Any]:
    import pyarrow as pa
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    if chosen is not None and number not in chosen:
        return
    there = list(batches)
    part = pa.Table.from_batches(there) if there else empty
    yield answer(number, lambda: pickle.loads(payload).of_part(part, number))


def merged(payload: bytes, most: int, table: Any) -> Any:
    found = list(zip(table["number"].to_pylist(), table["found"].to_pylist(), strict=True))
    import pyarrow as pa

    return pa.Table.from_batches(
        [answer(min(found)[0] // most, lambda: partitions_merged(pickle.loads(payload), found))]
    )


def answer(number: int, work: Any) -> Any:
    """What comes of work, or the error that it raises, of which Spark would send the text alone."""
    import pyarrow as pa

    try:
        with one_thread():
            found = work()
    except MosaicError as error:
        found = error
    return pa.RecordBatch.from_pydict({"number": [number], "found": [pickle.dumps(found)]})


def partitions_merged(job: Job, found: list[tuple[int, bytes]]) -> Any:
    results = [pickle.loads(small) for _, small in sorted(found)]
    for result in results:
        if isinstance(result, MosaicError):
            raise result
    return reduce(job.merge, results)
