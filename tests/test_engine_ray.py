"""A Ray data set gives what the same rows in memory give, in whatever order its blocks are done, and is computed once."""

import itertools
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clusters import SKEWED, folder_of, same_fit, table
from mosaic import MOSAIC
from mosaic.arrays.passes import PerRow, TakeRows
from mosaic.exceptions import InvalidInputError
from mosaic.rows import Rows
from sources import open_source
from tasks import X, odd, same_passes

pa = pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),  # one cluster for all
    # Ray Data warns of settings that it makes itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
]


@dataclass(frozen=True)
class Dying(TakeRows):
    """Kills the process that maps one block, the first time."""

    notes: Path = Path()

    def map_block(self, rows, start):
        if start == 0 and not self.notes.exists():
            self.notes.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().map_block(rows, start)


@dataclass(frozen=True)
class Slow(TakeRows):
    def map_block(self, rows, start):
        time.sleep(5)
        return super().map_block(rows, start)


@pytest.fixture(autouse=True, scope="module")
def cluster():
    settings = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    here = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}}
    ray.init(**settings, object_store_memory=150_000_000, runtime_env=here)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture
def few_rows_decide(monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 3000)
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)


@pytest.mark.parametrize("k", [1, 17, [1, 2, 8192, 8193, 8193, 30_000]], ids=str)  # one is empty
def test_any_number_of_blocks_gives_what_the_array_gives(k):
    source = open_source(ray.data.from_numpy(np.array_split(X, k)))
    assert (source.kind, source.n, source.n_features, source.names) == ("Ray data set", 40_001, 3, None)
    same_passes(source, X)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?"])
def test_vectors_of_any_type_give_what_the_array_gives(dtype):
    other = np.abs(X[:9000] * [50.0, 1e-5, 1e7]).astype(dtype)
    same_passes(open_source(ray.data.from_numpy(np.array_split(other, 3))), other)


@pytest.mark.usefixtures("few_rows_decide")
@pytest.mark.parametrize("kind", ["numbers", "mixed", "vectors"])
def test_a_folder_of_files_with_empty_skewed_and_single_row_parts_gives_what_the_frame_gives(kind, tmp_path):
    frame = table(kind)
    given = ray.data.read_parquet(str(folder_of(frame, tmp_path / "rows")))
    model = same_fit(given, frame)
    assert model.select(given).column_names == list(frame.columns)


@pytest.mark.usefixtures("few_rows_decide")
def test_groups_of_a_column_give_what_the_frame_gives():
    frame = table("mixed")
    given = ray.data.from_pandas([frame.iloc[a:b] for a, b in itertools.pairwise(SKEWED)])
    same_fit(given, frame, groups="city", quotas="equal")


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
def test_few_rows_that_come_with_the_first_read_give_what_the_frame_gives(kind, tmp_path):
    frame = table(kind)
    same_fit(ray.data.read_parquet(str(folder_of(frame, tmp_path / "rows"))), frame)


def test_a_data_set_is_computed_once_in_its_order(tmp_path):
    values = table("numbers")

    def rows(batch):
        number = int(batch["id"][0])
        (tmp_path / f"{number}-{time.time_ns()}").touch()
        time.sleep(1.0 if number == 0 else 0.0)  # the first one is done last
        return values.iloc[number * 1500 : (number + 1) * 1500].to_dict("list")

    data = ray.data.range(6, override_num_blocks=6).map_batches(rows, batch_size=None)
    same_fit(data, values)
    assert len(list(tmp_path.iterdir())) <= 7  # Ray looks for the columns in the first block
    assert not data.context.execution_options.preserve_order  # as the user has left it


def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    found = open_source(ray.data.from_numpy(np.array_split(X, 4))).run(Dying(np.arange(len(X)), tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(found["rows"], X)


def test_an_interrupted_pass_frees_the_cluster(monkeypatch):
    source = open_source(ray.data.from_numpy(np.array_split(X, 20)))

    def interrupt(reference):
        time.sleep(2)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ray, "get", interrupt)
        with pytest.raises(KeyboardInterrupt):
            source.run(Slow(np.arange(3)))
    patience = time.monotonic() + 30
    while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < patience:
        time.sleep(0.1)
    assert ray.available_resources()["CPU"] == 2


def test_other_columns_and_faults_are_told():
    odd_columns = [pa.table({"a": [1.0, 2.0], "b": [0.5, 1.5]}), pa.table({"a": [1.0], "z": [0.5]})]
    with pytest.raises(InvalidInputError, match=r"part \d of X has other columns than X says: '[bz]'"):
        Rows.of(ray.data.from_arrow(odd_columns)).n  # noqa: B018
    other_types = [pa.table({"a": [1.0, 2.0], "b": [None, None]}), pa.table({"a": ["x"], "b": [0.5]})]
    with pytest.raises(InvalidInputError, match="columns of different types"):
        Rows.of(ray.data.from_arrow(other_types))
    halves = [pa.table({"a": np.arange(20.0), "b": [None] * 20}), pa.table({"a": np.arange(20), "b": np.arange(20.0)})]
    same_fit(ray.data.from_arrow(halves), pa.concat_tables(halves, promote_options="permissive"))
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        open_source(ray.data.from_numpy(np.array_split(X, 4))).run(PerRow(odd))


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (lambda: ray.data.from_numpy(np.zeros((4, 3, 2))), r"'data' .*shape \(3, 2\); vectors are needed\. Reshape"),
        (lambda: ray.data.from_pandas(pd.DataFrame({"name": ["Ada"]})), r"no column of numbers .* it has name"),
        (lambda: ray.data.from_items([]), r"at least one point"),
        (lambda: ray.data.from_numpy(np.zeros((0, 3))), r"at least one point"),
        (lambda: ray.data.from_numpy(np.zeros((3, 2))).iterator(), r"must be a ray\.data\.Dataset; got DataIterator"),
    ],
)
def test_data_without_rows_of_numbers_are_refused(bad, fault):
    with pytest.raises(InvalidInputError, match=fault):
        MOSAIC(2).fit(bad())


def test_answers_per_part_as_the_guide_has_them():
    model = MOSAIC(5).fit(table("numbers"))
    told = ray.data.from_pandas(table("numbers")).map_batches(lambda batch: {"pick": model.predict(batch)}, batch_format="pandas")
    assert [row["pick"] for row in told.take_all()] == model.predict(table("numbers")).tolist()
