"""Ray: the blocks of a data set are mapped as they stream out of it, where they are, and what they gave is joined by tasks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cache, partial, reduce
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mosaic._frames import numeric_part, to_matrix
from mosaic.engines.base import Source, Watch, as_rows, check_shape
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.passes import BLOCK_ROWS, Partial, Small, Task, join, map_rows, total

#: Partials that one task joins.
FAN_IN = 4


class RaySource(Source):
    """Rows of a Ray data set.

    Which row a block begins with is known once all before it are there, so blocks are numbered here, in their order, by the
    lengths that come with their references. The rows themselves stay in the object store.

    Parameters
    ----------
    X : the data set
    columns : the ones to take: numbers each, or the only one, of vectors
    n : rows, as X counts them
    n_features : length of the vectors; None if columns are numbers
    """

    kind = "Ray data set"

    def __init__(self, X: Any, columns: Sequence[str], n: int, n_features: int | None = None):
        self.columns, self.vectors = list(columns), n_features is not None
        self.names = None if self.vectors else self.columns
        self.n, self.n_features = n, len(self.columns) if n_features is None else n_features
        check_shape(self.n, self.n_features)
        self.X = X if list(X.columns()) == self.columns else X.select_columns(self.columns)

    @classmethod
    def of(cls, X: Any) -> RaySource:
        """A source of the columns of a data set that hold numbers, or of the one that holds vectors."""
        import pyarrow as pa
        import ray.data

        if not isinstance(X, ray.data.Dataset):
            raise InvalidInputError(
                f"X must be a ray.data.Dataset; got {type(X).__name__}. Make one, for example with ray.data.from_numpy."
            )
        schema, n = X.schema(), int(X.count())
        if schema is None or n == 0:  # then types are not known either
            check_shape(0, 0 if schema is None else len(schema.names))
        # What Arrow has no type for is no number.
        known = [kind if isinstance(kind, pa.DataType) else pa.string() for kind in schema.types]
        kinds = dict(zip(schema.names, known, strict=True))
        tensors = {name: kind for name, kind in kinds.items() if hasattr(kind, "shape") or hasattr(kind, "ndim")}
        rest = pa.schema({name: kind for name, kind in kinds.items() if name not in tensors}).empty_table()
        if not tensors:
            return cls(X, numeric_part(rest).column_names, n)
        return cls(X, list(tensors), n, _width(tensors, _numbers(rest)))

    def run(self, task: Task, *, resume: Partial | None = None, watch: Watch | None = None) -> Small:
        """A task for each block and a tree of joins. Lost workers are Ray's to replace; a pass is never resumed."""
        import ray
        from ray.exceptions import RayTaskError

        shared = ray.put(task)
        levels: list[list[Any]] = []
        under_way: dict[Any, int] = {}
        # Twice as many as there are processors, so that none waits for this loop.
        limit = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        start, done = 0, 0
        try:
            with closing(self._blocks()) as blocks:
                for block, length in blocks:
                    finished, part = _remote(map_block, 2).remote(
                        shared, block, self.columns, self.vectors, start, self.n
                    )
                    under_way[finished] = length
                    start += length
                    _put(levels, part, partial(_remote(join_all).remote, shared))
                    while len(under_way) >= limit:
                        done = _wait(under_way, done, watch)
            while under_way:
                done = _wait(under_way, done, watch)
            if start != self.n:
                raise InvalidInputError(
                    f"X had {self.n} rows when it was opened and has {start} now. Use X.materialize() if every run gives others."
                )
            parts = [part for level in reversed(levels) for part in level]
            result: Small = ray.get(_remote(total_of).remote(shared, *parts))
        except RayTaskError as error:
            if isinstance(error.cause, MosaicError):
                raise error.cause from error
            raise
        finally:
            for finished in under_way:
                ray.cancel(finished)
        return result

    def _blocks(self) -> Generator[tuple[Any, int]]:
        """References to the blocks that have rows, in their order, and their lengths."""
        options = self.X.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            for bundle in self.X.iter_internal_ref_bundles():
                for block, about in zip(bundle.block_refs, bundle.metadata, strict=True):
                    if about.num_rows:
                        yield block, about.num_rows
        finally:
            options.preserve_order = before


def map_block(task: Task, block: Any, columns: list[str], vectors: bool, start: int, n: int) -> tuple[int, Partial]:
    """Map a block of a data set; its length comes as another object, to be asked for without what the rows gave."""
    from ray.data.block import BlockAccessor

    table = BlockAccessor.for_block(block)
    rows = table.to_numpy(columns[0]) if vectors else to_matrix(numeric_part(block, names=columns))
    stop, known = start + rows.shape[0], Partial(n)
    with threadpool_limits(1):
        for first in [start, *range((start // BLOCK_ROWS + 1) * BLOCK_ROWS, stop, BLOCK_ROWS)]:
            last = min(stop, (first // BLOCK_ROWS + 1) * BLOCK_ROWS)
            known = join(task, known, map_rows(task, as_rows(rows[first - start : last - start]), first, n))
    return stop - start, known


def join_all(task: Task, *parts: Partial) -> Partial:
    """Neighbours as one, in their order. Blocks that become whole are mapped here."""
    with threadpool_limits(1):
        return reduce(partial(join, task), parts)


def total_of(task: Task, *parts: Partial) -> Small:
    """What the pass returns."""
    with threadpool_limits(1):
        return total(task, join_all(task, *parts))


@cache
def _remote(function: Any, num_returns: int = 1) -> Any:
    """A function as a Ray task. Actors of the data set must leave it a processor, as they must to Ray's own steps."""
    import ray

    return ray.remote(num_cpus=1, num_returns=num_returns)(function)


def _put(levels: list[list[Any]], part: Any, joined: Any) -> None:
    """Add a part behind all others; where a level is full, its parts are joined into one of the next."""
    for level in levels:
        level.append(part)
        if len(level) < FAN_IN:
            return
        part = joined(*level)
        level.clear()
    levels.append([part])


def _wait(under_way: dict[Any, int], done: int, watch: Watch | None) -> int:
    """Wait for a block, and for what went wrong with it."""
    import ray

    (finished,), _ = ray.wait(list(under_way), num_returns=1)
    done += under_way.pop(finished)
    ray.get(finished)
    if watch is not None:
        watch(done, None)
    return done


def _width(tensors: dict[str, Any], numbers: list[str]) -> int:
    """Length of the vectors, where a data set has one column of them and none of numbers."""
    (name, kind), *more = tensors.items()
    if more or numbers:
        others = ", ".join(repr(other) for other in [*dict(more), *numbers])
        raise InvalidInputError(
            f"X has a column of tensors, {name!r}, and others of numbers: {others}. "
            f"Choose, for example with X.select_columns([{name!r}])."
        )
    shape = getattr(kind, "shape", None)
    if shape is None or len(shape) != 1:
        fault = "different shapes" if shape is None else f"shape {tuple(shape)}"
        raise InvalidInputError(
            f"column {name!r} of X holds tensors of {fault}; vectors are needed. Reshape them with X.map_batches."
        )
    as_rows(np.empty((0, 0), kind.storage_type.value_type.to_pandas_dtype()))
    return int(shape[0])


def _numbers(table: Any) -> list[str]:
    """Columns of numbers; no error where there are none."""
    try:
        return list(numeric_part(table).column_names)
    except InvalidInputError:
        return []
