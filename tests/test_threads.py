"""Threads: the same answers for every number of them, errors that arrive, and a linear algebra library that is left as it was."""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

from mosaic import MOSAIC, InvalidInputError, datasets
from mosaic.arrays.threads import available_threads, one_thread, thread_imap, thread_map, using_threads
from mosaic.estimators.progress import threads_of
from mosaic.facts import Facts
from mosaic.metrics import unexplained
from sources import open_source


def library_sizes():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("n", [300, 3000, 20_000, 40_000])
@pytest.mark.usefixtures("by_passes")
def test_the_answer_does_not_depend_on_the_number_of_threads(n):
    """Those of the fit, or of the caller; the largest is fitted by passes."""
    X = datasets.swiss_roll(n)
    rows = open_source(X) if n == 40_000 else X
    one, three = (MOSAIC(20, n_jobs=jobs).fit(rows) for jobs in (1, 3))
    with using_threads(2):
        default = MOSAIC(20).fit(rows)
        _ = default.labels_, default.certificate_
    for other in (three, default):
        for name in ("representative_indices_", "labels_", "effective_count_", "representation_error_"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        for name in ("value", "bound", "gap"):
            assert getattr(one.certificate_, name) == getattr(other.certificate_, name)
        np.testing.assert_array_equal(one.predict(X[:500]), other.predict(X[:500]))


def test_every_part_is_done_once_and_in_several_threads():
    done, seen, arrived = [], set(), threading.Barrier(3)

    def work(part):
        if part > 0:
            seen.add(threading.get_ident())
            if part <= 3:
                arrived.wait(30)  # three threads must be at work at the same time
        else:
            threading.Event().wait(0.01)  # long enough for helpers to be worth while
        done.append(part)

    with using_threads(3):
        thread_map(work, range(50))
    assert sorted(done) == list(range(50))
    assert len(seen) == 3


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parts_in_order_are_held_one_for_each_thread_and_one_more(threads):
    taken = []
    with using_threads(threads):
        for number, found in enumerate(thread_imap(lambda i: -i, iter(lambda: taken.append(0) or len(taken), 41))):
            assert found == -(number + 1)
            assert len(taken) - number <= threads + 1
    assert number == 39


@pytest.mark.parametrize("bad", [0, 5, 39])
def test_an_error_arrives_and_ends_the_work_before_parts_are_taken_that_nobody_needs(bad):
    taken = []

    def work(part):
        threading.Event().wait(0.002)
        if part == bad:
            raise ValueError(f"part {part}")

    with using_threads(3):
        with pytest.raises(ValueError, match=f"part {bad}"):
            thread_map(work, range(40))
        with pytest.raises(ValueError, match=f"part {bad}"):
            list(thread_imap(work, (taken.append(i) or i for i in range(40))))
    assert len(taken) <= bad + 4


def test_a_thread_treats_overflow_as_its_caller_does_and_parts_of_parts_are_not_divided_again():
    def work(_):
        thread_map(lambda _: threading.Event().wait(0.001), range(4))
        np.exp(np.array([1e4]))

    with warnings.catch_warnings(), using_threads(3), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        thread_map(work, range(20))


def test_the_library_has_one_thread_inside_and_as_many_as_before_outside():
    """Whoever ends a limit last, in whatever thread it began."""
    with threadpool_limits(1, user_api="blas"):
        assert available_threads() == 1
    with threadpool_limits(2, user_api="blas"):
        before, first, second = library_sizes(), one_thread(), one_thread()
        with using_threads(2):
            assert set(library_sizes()) == {1}
        assert library_sizes() == before
        for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None)):
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
            assert set(library_sizes()) == {1}
        second.__exit__(None, None, None)
        assert library_sizes() == before


def test_a_forked_process_has_threads_of_its_own():
    script = """
import os, time
from mosaic.estimators.progress import threads_of
from mosaic.arrays.threads import thread_map, using_threads
def work(_): time.sleep(0.002)
with using_threads(3):
    thread_map(work, range(20))
child = os.fork()
if child == 0:
    with using_threads(3):
        thread_map(work, range(20))
    os._exit(0)
status = os.waitpid(child, 0)[1]
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_the_library_has_one_thread_whoever_asks_and_from_whatever_thread():
    seen = []

    def similarity(A, B):
        seen.extend(library_sizes())
        return rbf_kernel(A, B, gamma=0.1)

    X = datasets.swiss_roll(300)
    with threadpool_limits(2, user_api="blas"):
        before = library_sizes()
        model = MOSAIC(5, kernel=similarity).fit(X)
        for ask in (
            lambda: model.certificate_,
            lambda: model.labels_,
            lambda: model.predict(X),
            lambda: model.explain(3),
            lambda: Facts(model).to_dict(),
            lambda: unexplained(model.selection_.kernel, model.selection_.chosen),
        ):
            asked = len(seen)
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
            assert set(seen[asked:]) <= {1}
        assert library_sizes() == before
    assert len(seen) > 20


def test_a_budget_has_room_for_as_many_threads_as_it_has_hundreds_of_megabytes():
    assert (threads_of(MOSAIC(n_jobs=4)), threads_of(MOSAIC(n_jobs=4, memory_budget="200MB"))) == (4, 2)
    with pytest.raises(InvalidInputError, match="n_jobs"):
        MOSAIC(n_jobs=0).fit(np.eye(5))
