"""Passes over a Spark dataframe: a recipe to copy, not part of the package. It needs pyspark, pyarrow and a Java machine.

Give the source to anything that takes one::

    frame = numbered(spark.read.parquet("points.parquet")).persist()
    source = SparkSource(frame)

Executors import this file too: on a cluster, send it to them with spark.sparkContext.addPyFile.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mosaic._frames import numeric_part, to_matrix
from mosaic.engines.base import Source, Watch, as_rows, check_shape
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.passes import Partial, Small, Task, join, map_rows, total


def numbered(frame: Any, row: str = "row") -> Any:
    """A dataframe with a column of row numbers, from 0 on, in the order that its rows have now.

    The numbers of a frame that has no fixed order are others every time it is computed; persist or write it then.
    """
    from pyspark.sql.types import LongType, StructType

    schema = StructType([*frame.schema.fields]).add(row, LongType(), nullable=False)
    return frame.rdd.zipWithIndex().map(lambda pair: (*pair[0], pair[1])).toDF(schema)


def run_on_spark(frame: Any, task: Task, *, n: int | None = None, row: str = "row") -> Small:
    """Map the partitions of a dataframe where they are and join what they gave here.

    Parameters
    ----------
    frame : dataframe with the columns and one of row numbers, each of 0 … n − 1 once. Neighbours should be in the same
        partition: rows that lack the rest of their block are sent here.
    task : what to do
    n : number of rows; by default they are counted
    row : name of the column of row numbers
    """
    columns, n = columns_of_numbers(frame, row), frame.count() if n is None else n

    def mapped(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        known: Partial | MosaicError = Partial(n)
        try:
            with threadpool_limits(1):
                for batch in batches:
                    known = join(task, known, _map_batch(task, pa.Table.from_batches([batch]), columns, n, row))
        except MosaicError as error:  # Spark would send its text alone
            known = error
        yield pa.RecordBatch.from_pydict({"part": [pickle.dumps(known)]})

    parts = [pickle.loads(part) for (part,) in frame.select(*columns, row).mapInArrow(mapped, "part binary").collect()]
    for part in parts:
        if isinstance(part, MosaicError):
            raise part
    with threadpool_limits(1):
        return total(task, reduce(partial(join, task), parts))


def _map_batch(task: Task, table: Any, columns: list[str], n: int, row: str) -> Partial:
    """Map the runs of consecutive row numbers in a batch."""
    numbers = table.column(row).to_numpy()
    order = np.argsort(numbers, kind="stable")
    rows = as_rows(to_matrix(numeric_part(table, names=columns)))[order]
    cuts = [0, *np.flatnonzero(np.diff(numbers[order]) != 1) + 1, len(numbers)]
    runs = (map_rows(task, rows[a:b], int(numbers[order[a]]), n) for a, b in pairwise(cuts) if b > a)
    return reduce(partial(join, task), runs, Partial(n))


def columns_of_numbers(frame: Any, row: str = "row") -> list[str]:
    """The features: all columns of numbers but the one of row numbers."""
    from pyspark.sql.types import BooleanType, NumericType

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    if row not in kinds:
        raise InvalidInputError(f"X has no column {row!r} of row numbers, only {', '.join(kinds)}. Use numbered(X).")
    return [name for name, kind in kinds.items() if name != row and isinstance(kind, NumericType | BooleanType)]


class SparkSource(Source):
    """Rows of a Spark dataframe, in the order of a column of row numbers; other columns of numbers are the features."""

    kind = "Spark dataframe"

    def __init__(self, frame: Any, row: str = "row"):
        self.frame, self.row, self.names = frame, row, columns_of_numbers(frame, row)
        self.n, self.n_features = frame.count(), len(self.names)
        check_shape(self.n, self.n_features)

    def run(self, task: Task, *, resume: Partial | None = None, watch: Watch | None = None) -> Small:
        """One job. Lost executors are Spark's to replace; a pass is never resumed."""
        result = run_on_spark(self.frame, task, n=self.n, row=self.row)
        if watch is not None:
            watch(self.n, None)
        return result
