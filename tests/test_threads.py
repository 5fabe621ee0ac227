"""Threads: the same answers for every number of them, errors that arrive, and a linear algebra library that is left as it was."""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, datasets, solve
from mosaic._threads import available_threads, each, one_thread, using_threads


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


def test_scores_of_a_detector_do_not_depend_on_the_number_of_threads():
    X = datasets.swiss_roll(4000)
    detector = MOSAICOutlierDetector().fit(X)
    with using_threads(1):
        one = detector.score_samples(X)
    with using_threads(4):
        np.testing.assert_array_equal(detector.score_samples(X), one)


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
        each(work, range(50))
    assert sorted(done) == list(range(50))
    assert len(seen) == 3


@pytest.mark.parametrize("bad", [0, 5, 39])
def test_an_error_arrives_and_ends_the_work(bad):
    def work(part):
        threading.Event().wait(0.002)
        if part == bad:
            raise ValueError(f"part {part}")

    with using_threads(4), pytest.raises(ValueError, match=f"part {bad}"):
        each(work, range(40))


def test_parts_of_parts_are_not_divided_again():
    with using_threads(2):
        each(lambda _: each(lambda _: threading.Event().wait(0.001), range(4)), range(8))


def test_a_thread_treats_overflow_as_its_caller_does():
    def work(_):
        threading.Event().wait(0.001)
        np.exp(np.array([1e4]))

    with warnings.catch_warnings(), using_threads(3), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        each(work, range(20))


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


def test_solve_uses_threads_too():
    X = datasets.swiss_roll(6000)
    with using_threads(1):
        one = solve(X, tol=1e-2)
    with using_threads(3):
        three = solve(X, tol=1e-2)
    assert three.certificate.primal == one.certificate.primal


def test_a_forked_process_has_threads_of_its_own():
    script = """
import os, time
from mosaic._threads import each, using_threads
def work(_): time.sleep(0.002)
with using_threads(3):
    each(work, range(20))
child = os.fork()
if child == 0:
    with using_threads(3):
        each(work, range(20))
    os._exit(0)
status = os.waitpid(child, 0)[1]
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
