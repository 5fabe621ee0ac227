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
from mosaic.engines import Journal, journal, open_source
from mosaic.estimators._plan import memory_by_passes
from mosaic.passes import BLOCK_ROWS, n_blocks
from mosaic.sketch import GramSum

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
    assert task.mapped == n_blocks(N)
    again = Moments()
    found = fresh(tmp_path / "state").run("moments", again)
    assert again.mapped == 0
    for name in first:
        np.testing.assert_array_equal(found[name], first[name], strict=True)


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fresh(None).run("moments", Moments())
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_pass_goes_on_where_it_was(tmp_path):
    path, whole = tmp_path / "state", fresh(None).run("moments", Moments())
    with pytest.raises(KeyboardInterrupt, match=r"in the pass 'moments'. What was done is in .*state; fit again"):
        fresh(path).run("moments", Moments(stop_at=3 * BLOCK_ROWS))
    task = Moments()
    found = fresh(path).run("moments", task)
    assert task.mapped == n_blocks(N) - 3
    for name in whole:
        np.testing.assert_array_equal(found[name], whole[name], strict=True)


def test_state_is_written_during_a_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SAVE_EVERY", 0.0)
    with pytest.raises(ZeroDivisionError):
        fresh(tmp_path / "state").run("moments", Moments(stop_at=2 * BLOCK_ROWS, error=ZeroDivisionError))
    task = Moments()
    fresh(tmp_path / "state").run("moments", task)
    assert task.mapped == n_blocks(N) - 2


def test_what_is_large_is_not_kept(tmp_path):
    book = fresh(tmp_path / "state")
    book.run("moments", Moments(), keep=False)
    assert not (tmp_path / "state").exists()
    task = Moments()
    book.run("moments", task)
    assert task.mapped == n_blocks(N)


def test_other_data_is_refused(tmp_path):
    fresh(tmp_path / "state").run("moments", Moments())
    changed = X.copy()
    changed[12345, 2] = np.nextafter(changed[12345, 2], 9.0)
    with pytest.raises(
        InvalidInputError, match=r"the data is not what earlier passes, of which .*state keeps the results"
    ):
        fresh(tmp_path / "state", changed)
    with pytest.raises(InvalidInputError, match="the data is not what earlier passes"):
        fresh(tmp_path / "state", X[::-1].copy())  # the same rows in another order
    with pytest.raises(InvalidInputError, match=rf"was written with rows={N}, now it is {N - 1}"):
        fresh(tmp_path / "state", X[:-1])


def test_data_that_changes_between_passes_is_refused():
    data = X.copy()
    book = Journal(open_source(data))
    book.run("first", Moments())
    data[-1, 0] += 1.0
    with pytest.raises(InvalidInputError, match="Fit again, on data that nobody writes to"):
        book.run("second", Moments(power=3))


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


def _flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _other(path):
    np.savez(path.with_suffix(".npz"), header=np.frombuffer(json.dumps({"format": "soup"}).encode(), np.uint8))
    path.with_suffix(".npz").replace(path)


@pytest.mark.parametrize("damage", [_empty, _garbage, _cut, _flipped, _other])
def test_damaged_files_and_other_files_are_refused(tmp_path, damage):
    path = tmp_path / "state"
    fresh(path).run("moments", Moments())
    damage(path)
    with pytest.raises(InvalidInputError, match=r"state is no checkpoint, or a damaged one: .*Delete it to begin anew"):
        fresh(path)


def test_a_later_layout_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "VERSION", 2)
    fresh(tmp_path / "state").run("moments", Moments())
    monkeypatch.setattr(journal, "VERSION", 1)
    with pytest.raises(InvalidInputError, match="checkpoint of version 2; this is version 1"):
        fresh(tmp_path / "state")


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "state"
    book = fresh(path)
    book.run("moments", Moments())
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        book.run("more", Moments(power=3))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


# --- a whole fit

FIT = """
import sys, numpy as np
from mosaic import MOSAIC
from mosaic.engines import journal
journal.SAVE_EVERY = 0.05
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
        with pytest.raises(KeyboardInterrupt, match="in the pass 'gram 0'"):
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
    less = memory_by_passes(3000, 300, 3)
    with pytest.raises(InvalidInputError, match=r"was written with n_added=50, now it is \d+ \(and 1 more"):
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
    with pytest.raises(InvalidInputError, match=r"X.npy is no checkpoint, or a damaged one"):
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
