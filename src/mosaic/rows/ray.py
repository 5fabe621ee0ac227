"""Ray: a data set is computed once, and its blocks stay in the object store, where tasks do the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial, reduce
from typing import Any

import numpy as np

from mosaic.arrays.blocks import check_numbers, check_shape
from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.frames import cells_of
from mosaic.rows.parts import Collection, InParts, Job, Opened, PartsSource, together


class InRay(Collection):
    """The blocks of a data set as Arrow tables, in their order."""

    kind = "Ray data set"

    def __init__(self, X: Any):
        options = X.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            self._blocks = X.to_arrow_refs()
        finally:
            options.preserve_order = before
        self.n_parts = len(self._blocks)
        self.empty = self.run(Empty()) if self._blocks else None
        if self.empty is None:  # column types are not known either
            check_shape((0, 0))

    def run(self, job: Job, parts: Sequence[int] | None = None) -> Any:
        import ray
        from ray.exceptions import RayTaskError

        shared, empty = ray.put(job), ray.put(self.empty)
        numbers = range(self.n_parts) if parts is None else parts
        tasks = found = [
            _remote(block_done).remote(shared, empty, self._blocks[i], i) for i in numbers
        ]
        while len(found) > 1:
            found = [
                _remote(blocks_merged).remote(shared, *found[i : i + 8])
                for i in range(0, len(found), 8)
            ]
            tasks = tasks + found
        try:
            return ray.get(found[0])
        except BaseException as error:
            for task in tasks:
                ray.cancel(task)
            if isinstance(error, RayTaskError) and isinstance(error.cause, MosaicError):
                raise error.cause from error
            raise


class Empty:
    """A table without rows that has the columns of all parts."""

    def of_part(self, part: Any, number: int) -> Any:
        return part.slice(0, 0) if part.num_columns and part.num_rows else None

    def merge(self, left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else together(left, right)


def collection_of(X: Any, budget: float | None) -> InParts | PartsSource:
    """A table of a data set, or a source of its rows if it has one column, of vectors."""
    import ray.data

    if not isinstance(X, ray.data.Dataset):
        raise InvalidInputError(
            f"X must be a ray.data.Dataset; got {type(X).__name__}",
            "Make one, for example with ray.data.from_numpy.",
        )
    blocks = InRay(X)
    (name, *more) = blocks.empty.column_names
    kind = blocks.empty.schema.field(name).type
    if not more and hasattr(kind, "storage_type"):
        fault = f"column {name!r} of X holds tensors of shape {getattr(kind, 'shape', 'that differs')}; vectors are needed"
        raise InvalidInputError(fault, "Reshape them with X.map_batches.")
    if more or not hasattr(kind, "list_size"):
        return InParts(blocks, budget)
    check_numbers(np.dtype(kind.value_type.to_pandas_dtype()))
    reads = partial(vectors, name)
    opened = Opened.of(blocks, reads, kind.list_size, budget)
    return PartsSource(blocks, reads, opened.layout, kind.list_size, opened)


def vectors(name: str, part: Any) -> Any:
    return cells_of(part).only([name]).matrix()


def block_done(job: Job, empty: Any, block: Any, number: int) -> Any:
    with one_thread():
        part = plain(block)
        if empty is not None and not part.num_rows:  # its types say nothing
            part = empty
        elif empty is not None and set(empty.column_names) == set(part.column_names):
            part = together(empty, part)
        return job.of_part(part, number)


def blocks_merged(job: Job, *found: Any) -> Any:
    with one_thread():
        return reduce(job.merge, found)


def plain(block: Any) -> Any:
    """A block in one chunk, of which Ray makes one for each row, and with lists where it has tensors of its own."""
    import pyarrow as pa

    block = block.combine_chunks()
    for place, field in enumerate(block.schema):
        shape: Sequence[int] = getattr(field.type, "shape", ())
        if len(shape) == 1:
            numbers = pa.concat_arrays(
                [chunk.storage.flatten() for chunk in block.column(place).chunks]
            )
            numbers = numbers.cast(pa.uint8()) if numbers.type == pa.bool_() else numbers
            block = block.set_column(
                place, field.name, pa.FixedSizeListArray.from_arrays(numbers, shape[0])
            )
    return block


@cache
def _remote(function: Any) -> Any:
    """A function as a Ray task. Actors of the data set must leave a processor free for it, as for Ray's own steps."""
    import ray

    return ray.remote(num_cpus=1)(function)
