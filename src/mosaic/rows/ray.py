"""Ray: the rows of a data set are cut into blocks of the fixed size, which are mapped and merged by tasks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from typing import Any

import numpy as np

from mosaic.arrays.blocks import check_numbers, check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Node, Task, merge_all
from mosaic.arrays.sources import Source, Watch, dense_rows
from mosaic.arrays.threads import one_thread
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.frames import cells_of, features_of, is_feature_name, to_matrix
from mosaic.rows.rules import LeftOut


class RaySource(Source):
    """Rows of a Ray data set: of its columns of numbers, or of a single column of vectors that have ``n_features`` entries.

    The first row number of a stored block is known once the lengths of all blocks before it are known, so rows are numbered here,
    in order, by the lengths that come with the references. The rows themselves stay in the object store.
    """

    kind = "Ray data set"
    left_out: tuple[LeftOut, ...] = ()

    def __init__(self, X: Any, columns: Sequence[str], n: int, n_features: int | None = None):
        self.columns, self.vectors = list(columns), n_features is not None
        self.names = None if self.vectors else self.columns
        self.n, self.n_features = n, len(self.columns) if n_features is None else n_features
        check_shape((self.n, self.n_features))
        self.X = X if list(X.columns()) == self.columns else X.select_columns(self.columns)

    @classmethod
    def of(cls, X: Any) -> RaySource:
        """A source of the columns of a data set that hold numbers, or of the one that holds vectors."""
        import pyarrow as pa
        import ray.data

        if not isinstance(X, ray.data.Dataset):
            raise InvalidInputError(
                f"X must be a ray.data.Dataset; got {type(X).__name__}", "Make one, for example with ray.data.from_numpy."
            )
        schema, n = X.schema(), int(X.count())
        if schema is None or n == 0:  # column types are not known either
            check_shape((0, 0 if schema is None else len(schema.names)))
        # A column without an Arrow type does not hold numbers.
        known = [kind if isinstance(kind, pa.DataType) else pa.string() for kind in schema.types]
        kinds = dict(zip(schema.names, known, strict=True))
        tensors = {name: kind for name, kind in kinds.items() if hasattr(kind, "shape") or hasattr(kind, "ndim")}
        rest = pa.schema({name: kind for name, kind in kinds.items() if name not in tensors}).empty_table()
        source = cls(X, list(tensors), n, _width(tensors, rest)) if tensors else cls(X, features_of(cells_of(rest)), n)
        said = "holds no numbers, which alone are compared of a Ray data set", "pass a data frame to compare it"
        source.left_out = tuple(LeftOut(name, *said) for name in kinds if name not in source.columns and is_feature_name(name))
        return source

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        import ray
        from ray.exceptions import RayTaskError

        shared = ray.put(task)
        under_way: dict[Any, int] = {}
        # Twice as many tasks as processors, so that none waits for this loop.
        limit, done = 2 * max(1, int(ray.cluster_resources().get("CPU", 1))), 0

        def wait_for_one() -> None:
            nonlocal done
            (finished,), _ = ray.wait(list(under_way), num_returns=1)
            done += under_way.pop(finished)
            ray.get(finished)  # raises the error of the task, if any
            if watch is not None:
                watch(done)

        def nodes() -> Iterator[Node[Any]]:
            with closing(self._blocks()) as blocks:
                for start, stop, parts in blocks:
                    finished, small = _remote(map_block, 2).remote(shared, start, *parts)
                    under_way[finished] = stop - start
                    yield 0, small
                    while len(under_way) >= limit:
                        wait_for_one()
            while under_way:
                wait_for_one()

        try:
            result: BlockResult = ray.get(merge_all(partial(_remote(merge).remote, shared), nodes()))
        except RayTaskError as error:
            if isinstance(error.cause, MosaicError):
                raise error.cause from error
            raise
        finally:
            for finished in under_way:
                ray.cancel(finished)
        return result

    def _blocks(self) -> Generator[tuple[int, int, list[Any]]]:
        """For every block, in order: first row, row after the last, and references to its parts."""
        start, parts = 0, []
        with closing(self._stored()) as stored:
            for block, length in stored:
                cuts = list(range(BLOCK_ROWS - start % BLOCK_ROWS, length, BLOCK_ROWS))
                pieces = _remote(cut, 1 + len(cuts)).remote(block, self.columns, self.vectors, cuts)
                for stop, piece in zip([*cuts, length], pieces if cuts else [pieces], strict=True):
                    parts.append(piece)
                    if (start + stop) % BLOCK_ROWS == 0 or start + stop == self.n:
                        yield (start + stop - 1) // BLOCK_ROWS * BLOCK_ROWS, start + stop, parts
                        parts = []
                start += length
        if start != self.n:
            raise InvalidInputError(
                f"X had {self.n} rows when it was opened and has {start} now",
                "Use X.materialize() if its rows differ from run to run.",
            )

    def _stored(self) -> Generator[tuple[Any, int]]:
        """References to the stored blocks that are not empty, in order, and their lengths."""
        options = self.X.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            for bundle in self.X.iter_internal_ref_bundles():
                for block, about in zip(bundle.block_refs, bundle.metadata, strict=True):
                    if about.num_rows:
                        yield block, about.num_rows
        finally:
            options.preserve_order = before


def cut(block: Any, columns: list[str], vectors: bool, cuts: list[int]) -> Any:
    """Rows of a stored block, cut at given rows: one array, or a tuple with one for each part."""
    from ray.data.block import BlockAccessor

    table = BlockAccessor.for_block(block)
    rows = table.to_numpy(columns[0]) if vectors else to_matrix(block, columns)
    return tuple(np.split(rows, cuts)) if cuts else rows


def map_block(task: Task, start: int, *parts: Any) -> tuple[None, BlockResult]:
    """Map a block. The first value only signals completion, so that it can be awaited without fetching the result."""
    with one_thread():
        return None, task.map_block(dense_rows(np.concatenate(parts)), start)


def merge(task: Task, left: BlockResult, right: BlockResult) -> BlockResult:
    with one_thread():
        return task.merge(left, right)


@cache
def _remote(function: Any, num_returns: int = 1) -> Any:
    """A function as a Ray task. Actors of the data set must leave a processor free for it, as for Ray's own steps."""
    import ray

    return ray.remote(num_cpus=1, num_returns=num_returns)(function)


def _width(tensors: dict[str, Any], rest: Any) -> int:
    """Length of the vectors of a data set that has one column of vectors and no columns of numbers."""
    (name, kind), *more = tensors.items()
    numbers = [name for name in cells_of(rest).numbers() if is_feature_name(name)]
    if more or numbers:
        others = ", ".join(repr(other) for other in [*dict(more), *numbers])
        raise InvalidInputError(
            f"X has a column of tensors, {name!r}, and others of numbers: {others}",
            f"Choose, for example with X.select_columns([{name!r}]).",
        )
    shape = getattr(kind, "shape", None)
    if shape is None or len(shape) != 1:
        fault = "different shapes" if shape is None else f"shape {tuple(shape)}"
        raise InvalidInputError(
            f"column {name!r} of X holds tensors of {fault}; vectors are needed", "Reshape them with X.map_batches."
        )
    check_numbers(np.dtype(kind.storage_type.value_type.to_pandas_dtype()))
    return int(shape[0])
