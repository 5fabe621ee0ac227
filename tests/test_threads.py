"""Threads: the same answers for every number of them, errors that arrive, and a linear algebra library that is left as it was."""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

from mosaic import MOSAIC, InvalidInputError, Sketch, datasets
from mosaic.arrays.threads import available_threads, one_thread, thread_imap, thread_map, using_threads
from mosaic.estimators.progress import threads_of
from mosaic.facts import Facts
from mosaic.metrics import unexplained


def library_sizes():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("n", [300, 3000, 20_000])
def test_the_answer_does_not_depend_on_the_number_of_threads(n):
    X = datasets.swiss_roll(n)
    one, three = (MOSAIC(20, n_jobs=jobs).fit(X) for jobs in (1, 3))
    np.testing.assert_array_equal(one.representative_indices_, three.representative_indices_)
    np.testing.assert_array_equal(one.effective_count_, three.effective_count_)
    np.testing.assert_array_equal(one.labels_, three.labels_)
    assert one.certificate_.error == three.certificate_.error
    assert one.certificate_.bound == three.certificate_.bound
    assert one.certificate_.gap == three.certificate_.gap
    np.testing.assert_array_equal(one.predict(X[:500]), three.predict(X[:500]))


def test_passes_use_the_threads_of_a_fit_and_the_answer_does_not_depend_on_their_number():
    X = datasets.swiss_roll(40_000)
    one, three = (MOSAIC(20, algorithm=Sketch(n_initial=60, n_rounds=2), n_jobs=jobs).fit(X) for jobs in (1, 3))
    with using_threads(2):
        default = MOSAIC(20, algorithm=Sketch(n_initial=60, n_rounds=2)).fit(X)
        _ = default.labels_, default.certificate_
    for other in (three, default):
        np.testing.assert_array_equal(one.representative_indices_, other.representative_indices_)
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_array_equal(one.effective_count_, other.effective_count_)
        np.testing.assert_array_equal(one.representation_error_, other.representation_error_)
        for name in ("error", "bound", "gap"):
            assert getattr(one.certificate_, name) == getattr(other.certificate_, name)


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
def test_an_error_ends_work_in_order_before_parts_are_taken_that_nobody_needs(bad):
    taken = []

    def parts():
        for i in range(40):
            taken.append(i)
            yield i

    def work(part):
        if part == bad:
            raise ValueError(f"part {part}")

    with using_threads(3), pytest.raises(ValueError, match=f"part {bad}"):
        list(thread_imap(work, parts()))
    assert len(taken) <= bad + 4


@pytest.mark.parametrize("bad", [0, 5, 39])
def test_an_error_arrives_and_ends_the_work(bad):
    def work(part):
        threading.Event().wait(0.002)
        if part == bad:
            raise ValueError(f"part {part}")

    with using_threads(4), pytest.raises(ValueError, match=f"part {bad}"):
        thread_map(work, range(40))


def test_parts_of_parts_are_not_divided_again():
    with using_threads(2):
        thread_map(lambda _: thread_map(lambda _: threading.Event().wait(0.001), range(4)), range(8))


def test_a_thread_treats_overflow_as_its_caller_does():
    def work(_):
        threading.Event().wait(0.001)
        np.exp(np.array([1e4]))

    with warnings.catch_warnings(), using_threads(3), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        thread_map(work, range(20))


def test_the_library_has_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = library_sizes()
        with using_threads(2):
            assert set(library_sizes()) == {1}
        assert library_sizes() == before


def test_limits_of_several_callers_end_with_the_last():
    with threadpool_limits(2, user_api="blas"):
        before, first, second = library_sizes(), one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(library_sizes()) == {1}
        second.__exit__(None, None, None)
        assert library_sizes() == before


def test_by_default_as_many_threads_as_the_library_would_use():
    with threadpool_limits(1, user_api="blas"):
        assert available_threads() == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
def test_wrong_numbers_of_jobs_are_refused(n_jobs):
    with pytest.raises(InvalidInputError, match="n_jobs"):
        MOSAIC(n_jobs=n_jobs).fit(np.eye(5))


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
            lambda: model.influence_,
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


def test_limits_may_end_in_another_thread_than_they_began_in():
    with threadpool_limits(2, user_api="blas"):
        before, entered, left = library_sizes(), threading.Event(), threading.Event()

        def hold():
            with one_thread():
                entered.set()
                left.wait(10)

        thread = threading.Thread(target=hold)
        with one_thread():
            thread.start()
            entered.wait(10)
        assert set(library_sizes()) == {1}
        left.set()
        thread.join()
        assert library_sizes() == before


def test_a_budget_has_room_for_as_many_threads_as_it_has_hundreds_of_megabytes():
    assert threads_of(MOSAIC(n_jobs=4)) == 4
    assert threads_of(MOSAIC(n_jobs=4, memory_budget="200MB")) == 2
