"""The recipe for Spark gives, bit for bit, what the same rows in memory give."""

import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from mosaic.arrays.sources import ArraySource
from mosaic.exceptions import InvalidInputError
from tasks import Refusing, Sums, X, agree

pytest.importorskip("pyarrow")
pyspark = pytest.importorskip("pyspark")

from examples.spark import SparkSource, numbered, run_on_spark  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))  # workers know these tests
        builder = pyspark.sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
        yield session
        session.stop()
        pyspark.SparkContext._gateway.shutdown()
        pyspark.SparkContext._gateway.proc.stdin.close()
        pyspark.SparkContext._gateway.proc.wait(30)


@pytest.fixture(scope="module")
def frame(spark):
    table = pd.DataFrame(X, columns=list("abc")).assign(name="Ada", row=np.arange(len(X)))
    return spark.createDataFrame(table)


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_partitions_of_neighbours_give_what_the_array_gives(frame, partitions):
    source = SparkSource(frame.repartitionByRange(partitions, "row"))
    assert (source.n, source.n_features, source.names) == (40_001, 3, ["a", "b", "c"])
    agree(source.run(Sums()))


def test_rows_may_be_scattered_over_partitions_and_get_numbers_in_their_order(frame):
    agree(run_on_spark(frame.repartition(3), Sums()))
    seen = []
    agree(SparkSource(numbered(frame.orderBy("row").drop("row"))).run(Sums(), watch=seen.append))
    assert seen == [len(X)]


def test_missing_and_other_numbers_are_taken_as_in_any_data_frame(spark):
    rows = [(0, 1, True, None), (1, 2, False, 0.5), (2, None, True, 1.5)]
    source = SparkSource(spark.createDataFrame(rows, "row long, a int, b boolean, c double"))
    numbers = np.array([[1, 1, np.nan], [2, 0, 0.5], [np.nan, 1, 1.5]])
    agree(source.run(Sums()), ArraySource(numbers).run(Sums()))


def test_frames_without_row_numbers_or_numbers_are_refused_and_a_fault_of_the_task_comes_out_as_it_is(frame):
    with pytest.raises(InvalidInputError, match=r"no column 'row'.*numbered"):
        SparkSource(frame.drop("row"))
    with pytest.raises(InvalidInputError, match=r"one feature; got shape \(40001, 0\)"):
        SparkSource(frame.select("name", "row"))
    with pytest.raises(InvalidInputError, match=r"'row' does not hold each number from 0 to 29999 once. Use numbered"):
        run_on_spark(frame.where("row != 7"), Sums())
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        SparkSource(frame.repartitionByRange(2, "row")).run(Refusing())
