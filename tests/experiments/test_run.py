"""The runner: one line a run, nothing twice, nothing lost, reasons instead of crashes."""

import json
import time
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

import experiments.methods as methods
from experiments.items import ITEMS, jobs_of
from experiments.job import Job
from experiments.methods import CannotRun, Picks, Selector
from experiments.run import _timed, _work, choose_settings, read, run_all, run_job
from experiments.tasks import TASKS

pytestmark = pytest.mark.slow

QUICK = Job("test", "select", "random", "sphere", "uniform", 0.1, 40, 5, 0)


def stand_in(monkeypatch, run, grid=({},), largest=1000):
    """A contestant of the test's own in place of all others."""
    monkeypatch.setattr(methods, "all_selectors", lambda: {"random": Selector("random", "peer", run, grid, largest)})


def test_a_run_has_the_judges_numbers_and_its_settings():
    record = run_job(QUICK)
    assert record["verdict"]["n_picks"] == 5
    assert 0 <= record["verdict"]["outlier_share"] <= 1
    assert record["tier"] == "peer"
    assert json.loads(json.dumps(record)) == record
    found = run_job(Job("test", "detect", "kNN distance", "swiss_roll/5", "uniform", 0.2, 60, None, 1))
    assert found["verdict"]["auc"] > 0.5


def test_what_cannot_run_says_why(monkeypatch):
    def refuses(X, k, seed):
        raise CannotRun("needs a package")

    def breaks(X, k, seed):
        raise ZeroDivisionError("oh")

    def works_on(X, k, seed):
        while time.process_time() < 1e6:
            pass

    stand_in(monkeypatch, refuses)
    assert run_job(QUICK)["cannot"] == "needs a package"
    stand_in(monkeypatch, breaks)
    assert run_job(QUICK)["cannot"] == "ZeroDivisionError: oh"
    stand_in(monkeypatch, works_on)
    assert run_job(QUICK, limit=0.2)["cannot"] == "took more than 0.2 s"
    stand_in(monkeypatch, works_on, largest=10)
    assert "takes at most 10 points" in run_job(QUICK)["cannot"]


def test_a_file_that_comes_later_is_used_and_a_torn_line_is_no_obstacle(monkeypatch, tmp_path):
    job = Job("test", "select", "facility location", "usps", None, 0.0, 40, 5, 0)
    monkeypatch.setenv("MOSAIC_DATA", str(tmp_path / "nowhere"))
    assert "missing" in choose_settings(job)
    for _ in range(2):
        assert run_all([job], workers=1, folder=tmp_path, quiet=True) == 1  # asked again, since the file may have come
    (record, _) = read(tmp_path)
    assert "usps" in record["missing"]
    assert not (tmp_path / "settings.jsonl").exists()
    (tmp_path / "settings.jsonl").write_text('{"for": ["sel')
    assert run_all([job], workers=1, folder=tmp_path, quiet=True) == 1


def test_settings_are_chosen_on_another_draw(monkeypatch):
    """The validation case is not the one that is reported, and the best of the grid wins."""
    seen = []

    def picks(X, k, seed, spread):
        seen.append(X[0, 0])
        order = np.argsort(X[:, 0]) if spread == "one side" else np.random.default_rng(0).permutation(len(X))
        return Picks(order[:k])

    stand_in(monkeypatch, picks, grid=({"spread": "one side"}, {"spread": "all over"}))
    assert choose_settings(QUICK) == {"settings": {"spread": "all over"}}
    run_job(QUICK, {"spread": "all over"})
    draws = [set(seen[:3]), set(seen[3:6]), set(seen[6:])]  # for each of the settings, and of the run
    assert draws[0] == draws[1]
    assert [len(draw) for draw in draws] == [3, 3, 1]
    assert not draws[0] & draws[2]


def test_a_method_without_an_answer_on_the_validation_case_is_not_asked_again(monkeypatch):
    def refuses(X, k, seed, spread):
        raise CannotRun("too many points")

    stand_in(monkeypatch, refuses, grid=({"spread": 1}, {"spread": 2}))
    choice = choose_settings(QUICK)
    assert choice["cannot"].endswith("validation cases: too many points")
    stand_in(monkeypatch, lambda X, k, seed: pytest.fail("was asked"))
    assert _work(QUICK, choice)["cannot"] == choice["cannot"]


def test_runs_are_resumed_and_none_is_done_twice(tmp_path):
    jobs = [Job("test", "select", "farthest point", "sphere", "uniform", 0.1, 30, 3, seed) for seed in range(3)]
    assert run_all(jobs[:2], workers=1, folder=tmp_path, quiet=True) == 2
    path = tmp_path / "test.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-20])  # killed while writing the last line
    assert len(list(read(tmp_path))) == 1
    assert run_all([*jobs, *jobs], workers=1, folder=tmp_path, quiet=True) == 2
    assert run_all(jobs, workers=1, folder=tmp_path, quiet=True) == 0
    seeds = sorted(record["seed"] for record in read(tmp_path))
    assert seeds == [0, 1, 2]
    assert all("numpy" in record["versions"] for record in read(tmp_path))


def test_who_took_too_long_is_not_asked_for_more():
    def submit(work, job, choice):
        future = Future()
        slow = job.n == 20 and choice is None
        answer = choice or ({"cannot": "took more than 60 s"} if slow else {})
        future.set_result({"method": job.method, "dataset": job.dataset, **answer})
        return future

    jobs = [Job("t", "time", "random", "msra_b/patches", None, 0.0, n, 5, 0) for n in (10, 20, 30)]
    found = [line.get("cannot") for line in _timed(jobs, SimpleNamespace(submit=submit), {})]
    assert found == [None, "took more than 60 s", "not tried: took more than 60 s with n = 20"]


@pytest.mark.parametrize("item", ITEMS)
def test_items_name_methods_that_exist_and_the_slice_is_part_of_all(item):
    every, few = jobs_of(item), jobs_of(item, small=True)
    known = {task: set(TASKS[task].methods()) for task in {job.task for job in every}}
    assert all(job.method in known[job.task] for job in every)
    assert {job.key for job in few} <= {job.key for job in every}
    assert 0 < len(few) < len(every)
    seeds: dict[str, set[int]] = {}
    for job in every:
        seeds.setdefault(job.dataset, set()).add(job.seed)
    least = {"ablation": 2, "running_time": 3}.get(item, 5)  # the first compares no contestants
    assert all(len(found) >= least for found in seeds.values())
