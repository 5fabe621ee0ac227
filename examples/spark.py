"""Passes over a Spark dataframe: a recipe to copy, not part of the package. It needs pyspark 4, pyarrow and Java.

Give the source to anything that takes one::

    frame = numbered(spark.read.parquet("points.parquet")).persist()
    source = SparkSource(frame)

Executors import this file too: on a cluster, send it to them with spark.sparkContext.addPyFile.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from mosaic.arrays.blocks import check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Task
from mosaic.arrays.sources import Source, Watch, map_run, merge_last
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.rows.frames import to_matrix

#: Rows that an executor maps at a time: a power of two of blocks.
RUN_ROWS = 16 * BLOCK_ROWS


def numbered(frame: Any, row: str = "row") -> Any:
    """A dataframe with a column of row numbers, from 0 on, in the order that its rows have now.

    The numbers of a frame that has no fixed order are others every time it is computed; persist or write it then.
    """
    from pyspark.sql.types import LongType, StructType

    schema = StructType([*frame.schema.fields]).add(row, LongType(), nullable=False)
    return frame.rdd.zipWithIndex().map(lambda pair: (*pair[0], pair[1])).toDF(schema)


def run_on_spark(frame: Any, task: Task, *, n: int | None = None, row: str = "row") -> BlockResult:
    """Bring neighbouring rows together in runs of whole blocks, map each where it is, and merge what they gave here.

    Parameters
    ----------
    frame : dataframe with the columns and one of row numbers, each of 0 … n − 1 once, in any order
    task : what to do
    n : number of rows; by default they are counted
    row : name of the column of row numbers
    """
    from pyspark.sql import functions

    columns, n = columns_of_numbers(frame, row), frame.count() if n is None else n

    def mapped(table: Any) -> Any:
        import pyarrow as pa

        table = table.sort_by(row)
        numbers = table.column(row).to_numpy()
        start = int(numbers[0]) // RUN_ROWS * RUN_ROWS
        try:
            if not np.array_equal(numbers, np.arange(start, min(start + RUN_ROWS, n))):
                raise InvalidInputError(
                    f"the column {row!r} does not hold each number from 0 to {n - 1} once", "Use numbered(X)."
                )
            found: Any = map_run(task, to_matrix(table, columns), start)
        except MosaicError as error:  # Spark would send its text alone
            found = error
        return pa.table({"start": [start], "found": [pickle.dumps(found)]})

    runs = frame.select(*columns, row).groupBy(functions.floor(functions.col(row) / RUN_ROWS))
    answers = sorted(runs.applyInArrow(mapped, "start long, found binary").collect())
    found = [pickle.loads(answer["found"]) for answer in answers]
    for part in found:
        if isinstance(part, MosaicError):
            raise part
    return merge_last(task, found)


def columns_of_numbers(frame: Any, row: str = "row") -> list[str]:
    """The features: all columns of numbers but the one of row numbers."""
    from pyspark.sql.types import BooleanType, NumericType

    kinds = {field.name: field.dataType for field in frame.schema.fields}
    if row not in kinds:
        raise InvalidInputError(f"X has no column {row!r} of row numbers, only {', '.join(kinds)}", "Use numbered(X).")
    return [name for name, kind in kinds.items() if name != row and isinstance(kind, NumericType | BooleanType)]


class SparkSource(Source):
    """Rows of a Spark dataframe, in the order of a column of row numbers; other columns of numbers are the features."""

    kind = "Spark dataframe"

    def __init__(self, frame: Any, row: str = "row"):
        self.frame, self.row, self.names = frame, row, columns_of_numbers(frame, row)
        self.n, self.n_features = frame.count(), len(self.names)
        check_shape((self.n, self.n_features))

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        """One job. Lost executors are Spark's to replace."""
        result = run_on_spark(self.frame, task, n=self.n, row=self.row)
        if watch is not None:
            watch(self.n)
        return result
