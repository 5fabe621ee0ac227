"""Blocks of a Ray data set give, bit for bit, what the same rows in memory give, in whatever order they are done."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import ArraySource
from mosaic.exceptions import InvalidInputError
from sources import open_source
from tasks import Refusing, Sums, X, agree

pa = pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

from mosaic.rows.ray import RaySource  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster for all
    # Ray Data warns of settings that it makes itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
]


@dataclass(frozen=True)
class Dying(Sums):
    """Kills the process that maps one block, the first time."""

    notes: Path = Path()

    def map_block(self, rows, start):
        if start == 2 * BLOCK_ROWS and not self.notes.exists():
            self.notes.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().map_block(rows, start)


@pytest.fixture(autouse=True, scope="module")
def cluster():
    settings = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    here = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}  # workers do not know the folder of the tests
    ray.init(**settings, object_store_memory=150_000_000, runtime_env=here)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def parts(k):
    return ray.data.from_numpy(np.array_split(X, k))


def lazy(function, blocks=6, cpus=1.0):
    """A data set that is computed anew in every pass."""
    return ray.data.range(len(X), override_num_blocks=blocks).map_batches(function, batch_size=None, num_cpus=cpus)


@pytest.mark.parametrize("k", [1, 5, 17, 60, [1, 2, 8192, 8193, 8193, 30_000]], ids=str)  # one is empty
def test_any_number_of_blocks_gives_what_the_array_gives(k):
    source = open_source(parts(k))
    assert isinstance(source, RaySource)
    assert (source.kind, source.n, source.n_features, source.names) == ("Ray data set", 40_001, 3, None)
    seen = []
    agree(source.run(Sums(), watch=seen.append))
    assert (len(seen), seen[-1]) == (5, len(X))  # blocks
    assert seen == sorted(seen)


def test_blocks_that_are_done_in_another_order_give_what_the_array_gives(tmp_path):
    values, armed, others = X, tmp_path / "armed", tmp_path / "others"

    def first_one_last(batch):
        patience = time.monotonic() + 20
        if batch["id"][0] > 0:
            others.touch()
        elif armed.exists():
            while not others.exists() and time.monotonic() < patience:
                time.sleep(0.05)
            time.sleep(0.5)
        return {"x": values[batch["id"]]}

    data = lazy(first_one_last, cpus=0.5)  # two at a time
    source = RaySource.of(data)
    others.unlink()
    armed.touch()
    agree(source.run(Sums()))
    assert not data.context.execution_options.preserve_order  # as the user has left it


def test_vectors_of_any_type_and_columns_of_numbers_of_data_frames_give_what_the_array_gives():
    for dtype in ("f4", "i8", "u1"):
        other = np.abs(X * [50.0, 1e-5, 1e7]).astype(dtype)
        agree(RaySource.of(ray.data.from_numpy(np.array_split(other, 5))).run(Sums()), ArraySource(other).run(Sums()))
    frame = pd.DataFrame({"a": X[:, 0], "name": "Ada", "b": np.arange(len(X)), "c": X[:, 1] > 0, "d": X[:, 2]})
    frame.loc[7, "d"] = np.nan
    numbers = frame.drop(columns="name").to_numpy(dtype=float)
    source = RaySource.of(ray.data.from_pandas([frame[:10_000], frame[10_000:30_000], frame[30_000:]]))
    assert source.names == ["a", "b", "c", "d"]
    agree(source.run(Sums()), ArraySource(np.ascontiguousarray(numbers)).run(Sums()))


def test_items_and_arrow_tables_give_their_numbers_and_missing_ones_are_nan():
    items = [{"name": str(i), "b": i / 3, "a": None if i % 2 else i} for i in range(300)]
    numbers = np.array([[item["b"], np.nan if item["a"] is None else item["a"]] for item in items])
    source = RaySource.of(ray.data.from_items(items, override_num_blocks=7))
    assert source.names == ["b", "a"]
    agree(source.run(Sums()), ArraySource(numbers).run(Sums()))
    first = pa.table({"a": pa.array([1, 2], pa.decimal128(5, 2)), "b": pa.array([0.5, 1.5])})
    second = pa.table({"a": pa.array([3, 4], pa.decimal128(5, 2)), "b": pa.array([None, None], pa.float64())})
    numbers = np.array([[1, 0.5], [2, 1.5], [3, np.nan], [4, np.nan]])
    agree(RaySource.of(ray.data.from_arrow([first, second])).run(Sums()), ArraySource(numbers).run(Sums()))


def test_an_interrupted_pass_frees_the_cluster():
    def interrupt(rows):
        raise KeyboardInterrupt

    values = X
    source = RaySource.of(lazy(lambda batch: {"x": values[batch["id"]]}, blocks=30))
    with pytest.raises(KeyboardInterrupt):
        source.run(Sums(seconds=0.2), watch=interrupt)
    patience = time.monotonic() + 30
    while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < patience:
        time.sleep(0.1)
    assert ray.available_resources()["CPU"] == 2
    agree(source.run(Sums()))


@pytest.mark.parametrize("k", [2, 60], ids=["whole blocks", "blocks that are joined"])
def test_a_worker_that_is_killed_changes_nothing_and_a_fault_that_the_task_finds_comes_out_as_it_is(k, tmp_path):
    task = Dying(notes=tmp_path / "died")
    agree(RaySource.of(parts(k)).run(task))
    assert task.notes.exists()
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$") as caught:
        RaySource.of(parts(k)).run(Refusing())
    assert type(caught.value) is InvalidInputError


def test_data_that_have_other_rows_than_when_they_were_opened_are_refused(tmp_path):
    notes = tmp_path / "opened"
    source = RaySource.of(lazy(lambda batch: {"x": np.ones((len(batch["id"]) - notes.exists(), 2))}))
    notes.touch()
    with pytest.raises(InvalidInputError, match=r"40001 rows when it was opened and has 3999\d now.*materialize"):
        source.run(Sums())


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (lambda: ray.data.from_numpy(np.zeros((4, 3, 2))), r"'data' .*shape \(3, 2\); vectors are needed\. Reshape"),
        (lambda: ray.data.from_pandas(pd.DataFrame({"name": ["Ada"]})), r"no column of numbers .* it has 'name'.*Convert"),
        (lambda: ray.data.from_items([]), r"at least one point"),
        (lambda: ray.data.from_numpy(np.zeros((0, 3))), r"at least one point"),
        (lambda: ray.data.from_numpy(np.zeros((3, 2), dtype="?")).map_batches(both), r"'x'.*'data'.*select_columns"),
        (lambda: "points", r"ray\.data\.Dataset; got str\. Make one"),
    ],
)
def test_data_without_rows_of_numbers_are_refused(bad, fault):
    with pytest.raises(InvalidInputError, match=fault):
        RaySource.of(bad())


def both(batch):
    return {"x": batch["data"], "data": batch["data"][:, 0].astype(int)}
