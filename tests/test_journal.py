"""Long work is not lost: checkpoints, resuming after a kill or Ctrl-C, data that has changed, files that are no checkpoints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mosaic import MOSAIC, InvalidInputError, datasets
from mosaic.data import open_source, open_table
from mosaic.engines import Journal
from mosaic.estimators._strategy import memory_by_passes
from mosaic.passes import BLOCK_ROWS
from mosaic.sketch import GramSum

N_BLOCKS = 6
N = 5 * BLOCK_ROWS + 77
X = np.random.default_rng(0).normal(size=(N, 4))


class Moments:
    """Two sums, and a count of the blocks that were mapped in this process."""

    def __init__(self, power=2, stop_at=None, error=KeyboardInterrupt):
        self.power, self.stop_at, self.error, self.mapped = power, stop_at, error, 0

    def map_block(self, rows, start):
        if self.stop_at is not None and start >= self.stop_at:
            raise self.error
        self.mapped += 1
        return {"sum": rows.sum(axis=0), "power": (rows**self.power).sum(axis=0)}

    def merge(self, left, right):
        return {name: left[name] + right[name] for name in left}


def fresh(path, data=X, **settings):
    return Journal(open_source(data), path, {"seed": 0, **settings})


def test_a_pass_is_made_once(tmp_path):
    book, task = fresh(tmp_path / "state"), Moments()
    first = book.run("moments", task)
    assert book.run("moments", task) is first
    assert task.mapped == N_BLOCKS
    again = Moments()
    found = fresh(tmp_path / "state").run("moments", again)
    assert again.mapped == 0
    for name in first:
        np.testing.assert_array_equal(found[name], first[name], strict=True)


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fresh(None).run("moments", Moments())
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_after_its_last_finished_pass(tmp_path):
    path, whole = tmp_path / "state", fresh(None).run("third", Moments(power=3))
    book = fresh(path)
    book.run("second", Moments())
    with pytest.raises(KeyboardInterrupt, match=r"in the pass 'third'. The passes before it are in .*state; fit again"):
        book.run("third", Moments(power=3, stop_at=3 * BLOCK_ROWS))
    again, known, task = fresh(path), Moments(), Moments(power=3)
    again.run("second", known)
    found = again.run("third", task)
    assert (known.mapped, task.mapped) == (0, N_BLOCKS)
    for name in whole:
        np.testing.assert_array_equal(found[name], whole[name], strict=True)


def test_a_pass_that_fails_leaves_what_was_done_before(tmp_path):
    fresh(tmp_path / "state").run("second", Moments())
    content = (tmp_path / "state").read_bytes()
    with pytest.raises(ZeroDivisionError):
        fresh(tmp_path / "state").run("third", Moments(power=3, stop_at=2 * BLOCK_ROWS, error=ZeroDivisionError))
    assert (tmp_path / "state").read_bytes() == content


def test_what_is_large_is_not_kept(tmp_path):
    book = fresh(tmp_path / "state")
    book.run("moments", Moments(), keep=False)
    assert not (tmp_path / "state").exists()
    task = Moments()
    book.run("moments", task)
    assert task.mapped == N_BLOCKS


def test_other_data_is_refused(tmp_path):
    fresh(tmp_path / "state").run("moments", Moments())
    changed = X.copy()
    changed[12345, 2] = np.nextafter(changed[12345, 2], 9.0)
    with pytest.raises(InvalidInputError, match=r"the data differs from what the earlier passes in .*state read"):
        fresh(tmp_path / "state", changed)
    with pytest.raises(InvalidInputError, match="the data differs from what the earlier passes in"):
        fresh(tmp_path / "state", X[::-1].copy())  # the same rows in another order
    with pytest.raises(InvalidInputError, match=rf"was written with rows={N}, now it is {N - 1}"):
        fresh(tmp_path / "state", X[:-1])


def test_data_that_changes_between_passes_is_refused(tmp_path):
    data = X.copy()
    book = fresh(tmp_path / "state", data)
    book.run("first", Moments())
    data[-1, 0] += 1.0
    with pytest.raises(
        InvalidInputError, match=r"the data differs from what the earlier passes in .* read.*no process writes to"
    ):
        book.run("second", Moments(power=3))


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_file_that_changes_between_passes_is_refused_without_a_checkpoint_too(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"

    def write(rows):
        if kind == "npy":
            np.save(path, rows)
        else:
            pa = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(pa.table(dict(zip("abcd", rows.T, strict=True))), path)

    write(X)
    source = open_source(np.load(path, mmap_mode="r")) if kind == "npy" else open_table(path, memory_budget=1e5).X
    book = Journal(source)
    book.run("first", Moments())
    write(X[::-1])
    with pytest.raises(
        InvalidInputError, match=r"rows.* has changed while it was read in passes.*when no process writes"
    ):
        book.run("second", Moments())


def test_without_a_checkpoint_rows_are_mapped_by_the_task_alone():
    class Seen:
        """A source that notes what it is given to do."""

        n, n_features, files, tasks = N, 4, (), []

        def run(self, task, *, watch=None):
            self.tasks.append(task)
            return {}

    task = Moments()
    Journal(Seen()).run("moments", task)
    assert Seen.tasks == [task]


def test_other_settings_are_refused_by_name(tmp_path):
    fresh(tmp_path / "state", gamma=0.5).run("moments", Moments())
    with pytest.raises(
        InvalidInputError, match=r"was written with gamma=0.5, now it is 0.25. Go back to those settings"
    ):
        fresh(tmp_path / "state", gamma=0.25)
    with pytest.raises(InvalidInputError, match=r"seed=0, now it is 1 \(and 1 more differences\)"):
        fresh(tmp_path / "state", gamma=0.25, seed=1)


def _empty(path):
    path.write_bytes(b"")


def _garbage(path):
    path.write_bytes(np.random.default_rng(0).bytes(5000))


def _cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def _other(path):
    np.savez(path.with_suffix(".npz"), header=np.frombuffer(json.dumps({"format": "soup"}).encode(), np.uint8))
    path.with_suffix(".npz").replace(path)


def _number_changed(path):
    """A checkpoint whose archive is sound, with another number in it."""
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["moments/sum"][0] = np.nextafter(arrays["moments/sum"][0], np.inf)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _settings_changed(path):
    with np.load(path) as stored:
        arrays = dict(stored)
    header = arrays["header"].tobytes().replace(b'"seed": 0', b'"seed": 1')
    with path.open("wb") as file:
        np.savez(file, **(arrays | {"header": np.frombuffer(header, np.uint8)}))


@pytest.mark.parametrize("damage", [_empty, _garbage, _cut, _other, _number_changed, _settings_changed])
def test_damaged_files_and_other_files_are_refused(tmp_path, damage):
    path = tmp_path / "state"
    fresh(path).run("moments", Moments())
    damage(path)
    with pytest.raises(
        InvalidInputError, match=r"state is not a checkpoint, or is damaged: .*Delete it to start again"
    ):
        fresh(path)


def test_a_damaged_byte_is_noticed_or_changes_nothing(tmp_path):
    """Some bytes of an archive mean nothing, such as the time that it was written."""
    path, few = tmp_path / "state", X[:100]
    expected = fresh(path, few).run("moments", Moments())
    content, refused = path.read_bytes(), 0
    positions = range(0, len(content), 7)
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            found = fresh(path, few).run("moments", Moments())
        except InvalidInputError as error:
            assert "state is not a checkpoint, or is damaged" in str(error)  # noqa: PT017
            refused += 1
        else:
            for name in expected:
                np.testing.assert_array_equal(found[name], expected[name], strict=True)
    assert refused > len(positions) / 2


def test_another_layout_is_refused(tmp_path):
    path = tmp_path / "state"
    fresh(path).run("moments", Moments())
    with np.load(path) as stored:
        header = stored["header"].tobytes().replace(b'"version": 2', b'"version": 3')
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(header, np.uint8))
    with pytest.raises(InvalidInputError, match=r"checkpoint of version 3; this is version 2. Delete it"):
        fresh(path)


def test_a_checkpoint_that_cannot_be_written_is_named_and_leaves_the_old_one_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "state"
    book = fresh(path)
    book.run("moments", Moments())
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(
        InvalidInputError, match=r"checkpoint cannot be written: No space left on device; got '.*state'\. Make room"
    ):
        book.run("more", Moments(power=3))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


# --- a whole fit

FIT = """
import sys, numpy as np
from mosaic import MOSAIC
X = np.load(sys.argv[1], mmap_mode="r")
model = MOSAIC(8, strategy="sketch", n_initial=60, n_rounds=2, tol=1e-9, checkpoint=sys.argv[2]).fit(X)
np.savez(sys.argv[3], rows=model.representative_indices_, gap=model.selection_.program_certificate.gap,
         influence=model.selection_.encoding.influence, coverage=model.coverage_, lam=model.lam_)
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    np.save(folder / "X.npy", datasets.swiss_roll(120_000, random_state=0).astype(np.float32))
    started = time.monotonic()
    run_fit(folder, "undisturbed").communicate()
    with np.load(folder / "undisturbed.npz") as file:
        return folder, dict(file), time.monotonic() - started


def run_fit(folder, name):
    command = [
        sys.executable,
        "-c",
        FIT,
        str(folder / "X.npy"),
        str(folder / f"{name}.state"),
        str(folder / f"{name}.npz"),
    ]
    return subprocess.Popen(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)


def assert_survives(stored, name, rng, kills, sent=signal.SIGKILL):
    folder, expected, seconds = stored
    for _ in range(kills):
        process = run_fit(folder, name)
        try:
            process.wait(timeout=rng.uniform(0.15, 0.95) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            process.wait()
        process.stderr.close()
        if (folder / f"{name}.npz").exists():  # it was done before the blow fell
            break
    message = run_fit(folder, name).communicate()[1]
    assert (folder / f"{name}.npz").exists(), message
    with np.load(folder / f"{name}.npz") as found:
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value, strict=True)


def test_a_fit_that_is_killed_ends_where_an_undisturbed_one_does(stored):
    assert_survives(stored, "killed", np.random.default_rng(0), 2)


@pytest.mark.slow
def test_twenty_kills_at_random_moments(stored):
    rng = np.random.default_rng(1)
    for number in range(20):
        assert_survives(stored, f"killed{number}", rng, 1)


def test_ctrl_c_leaves_a_checkpoint_and_a_message(tmp_path):
    data, path = datasets.swiss_roll(40_000, random_state=0), tmp_path / "state"
    settings = {"strategy": "sketch", "n_initial": 50, "n_rounds": 1, "checkpoint": path}

    summed = GramSum.map_block

    def interrupted(self, rows, start):
        if start >= 3 * BLOCK_ROWS:
            raise KeyboardInterrupt
        return summed(self, rows, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GramSum, "map_block", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"in the pass 'gram 0'. The passes before it are in .*state"):
            MOSAIC(5, **settings).fit(data)
    resumed, whole = MOSAIC(5, **settings).fit(data), MOSAIC(5, **(settings | {"checkpoint": None})).fit(data)
    np.testing.assert_array_equal(resumed.representative_indices_, whole.representative_indices_)
    assert resumed.selection_.program_certificate == whole.selection_.program_certificate


def test_a_checkpoint_of_other_settings_is_refused_by_fit(tmp_path):
    data, path = datasets.swiss_roll(3000, random_state=0), tmp_path / "state"
    MOSAIC(5, strategy="sketch", n_initial=40, checkpoint=path).fit(data)
    with pytest.raises(InvalidInputError, match=r"was written with n_representatives=5, now it is 6"):
        MOSAIC(6, strategy="sketch", n_initial=40, checkpoint=path).fit(data)
    with pytest.raises(InvalidInputError, match="was written with must_include=None"):
        MOSAIC(5, strategy="sketch", n_initial=40, checkpoint=path).fit(data, must_include=[3])
    MOSAIC(5, strategy="sketch", n_initial=40, checkpoint=path, n_jobs=2, verbose=False).fit(data)


def test_results_of_another_task_are_refused(tmp_path, monkeypatch):
    """Another release would choose other candidates, and sums for one set of them are no sums for another."""
    data, path = datasets.swiss_roll(3000, random_state=0), tmp_path / "state"
    settings = {"strategy": "sketch", "n_initial": 40, "checkpoint": path, "gamma": 0.01, "outliers": "keep"}
    MOSAIC(5, **settings).fit(data)
    monkeypatch.setattr("mosaic.sketch.rounds.SAMPLE_GAP", 0.2)
    with pytest.raises(InvalidInputError, match=r"the pass 'gram 0' in .*state was made for another task"):
        MOSAIC(5, **settings).fit(data)


def test_a_budget_that_changes_the_plan_is_refused(tmp_path):
    data, path = datasets.swiss_roll(3000, random_state=0), tmp_path / "state"
    MOSAIC(5, strategy="sketch", checkpoint=path).fit(data)
    less = memory_by_passes(3000, 3000, 300, 3)
    with pytest.raises(InvalidInputError, match=r"was written with sample=3000, now it is 2048"):
        MOSAIC(5, strategy="sketch", checkpoint=path, memory_budget=less).fit(data)


def test_numpy_numbers_and_functions_are_known_again(tmp_path):
    data, path = np.random.default_rng(0).normal(size=(2000, 3)), tmp_path / "state"
    settings = {"strategy": "sketch", "n_initial": 20, "checkpoint": path, "kernel": quadratic, "outliers": "keep"}
    one = MOSAIC(np.int64(5), **settings).fit(data)
    two = MOSAIC(5, **settings).fit(data)
    np.testing.assert_array_equal(one.representative_indices_, two.representative_indices_)
    header = json.loads(np.load(path)["header"].tobytes())
    assert "0x" not in header["settings"]["kernel"]


def quadratic(A, B):
    return (1.0 + A @ B.T) ** 2


def test_an_array_is_no_checkpoint(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(InvalidInputError, match=r"X.npy is not a checkpoint, or is damaged"):
        fresh(tmp_path / "X.npy")


@pytest.mark.parametrize("state", [None, np.random.default_rng(5)])
def test_a_seed_that_was_drawn_is_drawn_once(tmp_path, state):
    data = datasets.swiss_roll(3000, random_state=0)
    settings = {"strategy": "sketch", "n_initial": 40, "gamma": 0.01, "outliers": "keep"}
    one, two = (MOSAIC(5, random_state=state, checkpoint=tmp_path / "state", **settings).fit(data) for _ in range(2))
    np.testing.assert_array_equal(one.representative_indices_, two.representative_indices_)
    assert one.selection_.material.seed == two.selection_.material.seed
    other = MOSAIC(5, random_state=state, **settings).fit(data)
    assert other.selection_.material.seed != one.selection_.material.seed


@pytest.mark.parametrize("path", ["nowhere/state", ".", 7])
def test_a_checkpoint_that_cannot_be_is_refused_before_anything_is_done(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match="checkpoint"):
        MOSAIC(5, strategy="sketch", checkpoint=path).fit(X)
