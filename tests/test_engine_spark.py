"""A Spark data frame gives what the same rows in memory give, on one machine and on executors of their own."""

import gc
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import clusters
from clusters import N, folder_of, same_fit, table
from mosaic import MOSAIC, SelectionWarning
from mosaic.arrays.passes import PerRow, TakeRows
from mosaic.exceptions import InvalidInputError
from mosaic.rows import Rows
from sources import open_source
from tasks import odd, same_passes

pytest.importorskip("pyarrow")
pyspark = pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]


@pytest.fixture(scope="module", params=["local[2]", "local-cluster[2,1,700]"])  # the second: a master and two workers
def spark(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))  # workers know these tests
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 3000)
        patch.setattr("mosaic.rows.parts.FEW_ROWS", 0)  # all rows stay where they are
        builder = pyspark.sql.SparkSession.builder.master(request.param).config("spark.ui.enabled", "false")
        builder = builder.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]).config("spark.executor.memory", "600m")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "1g")
        session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
        yield session
        session.stop()
        pyspark.SparkContext._gateway.shutdown()
        pyspark.SparkContext._gateway.proc.stdin.close()
        pyspark.SparkContext._gateway.proc.wait(30)
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


def parts_of(frame, cuts):
    """A function that makes the rows between the cuts, one part each."""

    def rows(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from frame_batches(frame.iloc[cuts[number] : cuts[number + 1]])

    return rows


def frame_batches(frame):
    import pyarrow as pa

    return pa.Table.from_pandas(frame, preserve_index=False).to_batches(3000)


def spark_frame(spark, frame, cuts=clusters.SKEWED):
    """A Spark data frame whose partitions are these, computed by the executors."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(pa.Schema.from_pandas(frame, preserve_index=False))
    numbers = spark.range(0, len(cuts) - 1, numPartitions=len(cuts) - 1)
    return numbers.mapInArrow(parts_of(frame, cuts), schema)


@pytest.mark.parametrize("kind", ["numbers", "mixed", "vectors"])
def test_empty_skewed_and_single_row_partitions_give_what_the_frame_gives(spark, kind):
    frame = table(kind)
    given = spark_frame(spark, frame)
    assert given.rdd.getNumPartitions() == 7
    model = same_fit(given, frame)
    chosen = model.select(given)
    assert chosen.column_names == list(frame.columns)
    assert str(chosen.to_pandas()[frame.columns[0]].tolist()) == str(
        frame[frame.columns[0]].iloc[model.representative_indices_].tolist()
    )


def test_a_folder_of_files_and_groups_of_a_column_give_what_the_frame_gives(spark, tmp_path):
    frame = table("mixed")
    rows = spark.read.parquet(str(folder_of(frame, tmp_path / "rows")))
    same_fit(rows, rows.toPandas(), groups="city", quotas="equal")


@pytest.mark.parametrize("merged", [2, 64])
def test_passes_give_what_the_array_gives_however_many_results_are_merged_at_a_time(spark, merged, monkeypatch):
    monkeypatch.setattr("mosaic.rows.spark.MERGED", merged)
    frame = table("numbers")
    same_passes(open_source(spark_frame(spark, frame)), frame.to_numpy())


def test_the_frame_of_the_user_is_kept_by_executors_as_long_as_it_is_needed(spark):
    given = spark_frame(spark, table("numbers"))
    gc.collect()  # frames of other tests
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    rows = Rows.of(given)
    assert rows.n == N
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before + 1
    del rows
    gc.collect()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= before
    given.persist()
    rows = Rows.of(given)
    assert rows.n == N
    del rows
    assert given.storageLevel.useMemory


def test_few_rows_come_with_the_first_read_after_which_nothing_is_kept(spark, monkeypatch):
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 50_000)
    gc.collect()  # frames of other tests
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    model = same_fit(spark_frame(spark, table("mixed")), table("mixed"))
    gc.collect()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= before
    assert len(model.labels_) == N


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class Dying(TakeRows):
    """Kills the executor that does the first part, once."""

    notes: Path = Path()

    def map_block(self, rows, start):
        if start == 0 and not self.notes.exists():
            self.notes.touch()
            daemon = parent_of(os.getpid())
            os.kill(parent_of(daemon), signal.SIGKILL)
        return super().map_block(rows, start)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_an_executor_that_is_lost_with_the_rows_that_it_keeps_changes_nothing(spark, tmp_path):
    if spark.sparkContext.master.startswith("local["):
        pytest.skip("the executor is the driver")
    frame = table("numbers")
    source = open_source(spark_frame(spark, frame))
    found = source.run(Dying(np.arange(0, N, 7), tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(found["rows"], frame.to_numpy()[::7])
    same_passes(source, frame.to_numpy())


def test_sparse_vectors_are_named_as_not_compared(spark):
    linalg = pytest.importorskip("pyspark.ml.linalg")
    rows = [(float(i), linalg.Vectors.sparse(5, {i % 5: 1.0})) for i in range(60)]
    given = spark.createDataFrame(rows, ["a", "v"])
    with pytest.warns(SelectionWarning, match="Not compared: 'v' holds lists or structures"):
        assert MOSAIC(3).fit(given).encoder_.names == ["a"]
    with pytest.raises(InvalidInputError, match=r"no column of numbers to compare rows by.*'v' holds lists or structures"):
        MOSAIC(3).fit(given.select("v"))


def test_faults_are_told(spark):
    frame = table("numbers")
    given = spark_frame(spark, frame)
    with pytest.raises(InvalidInputError, match="X must be a Spark dataframe; got RDD"):
        MOSAIC(3).fit(given.rdd)
    with pytest.raises(InvalidInputError, match=r"at least one point and one feature; got shape \(0, 4\)"):
        MOSAIC(3).fit(given.where("a > 1e9"))
    frame = table("numbers", 20_000)
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        open_source(spark_frame(spark, frame, [0, 15_000, 20_000])).run(PerRow(odd))


def test_the_example_runs(tmp_path):
    table("numbers").to_parquet(tmp_path / "rows.parquet")
    example = Path(__file__).parents[1] / "examples" / "spark.py"
    settings = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "MASTER": "local[2]"}
    done = subprocess.run([sys.executable, example, tmp_path / "rows.parquet"], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of 9,000 rows are outliers" in done.stdout
