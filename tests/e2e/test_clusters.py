"""One fit, everywhere: memory, clusters of any size, a worker that is lost on the way."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from mosaic import MOSAIC, Sketch
from mosaic.rows.dask import DaskSource

pytestmark = pytest.mark.slow

N = 60_000
SETTINGS = {"algorithm": Sketch(n_initial=100, n_rounds=2), "gamma": 0.02, "tol": 1e-9}


def data():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(N, 4)) + 12.0 * rng.normal(size=(10, 4))[np.arange(N) % 10]).astype(np.float32)


@pytest.fixture(scope="module")
def expected():
    return MOSAIC(20, **SETTINGS).fit(data())


def assert_same(found, expected):
    np.testing.assert_array_equal(found.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(found.is_outlier_, expected.is_outlier_)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.effective_count_, expected.effective_count_, rtol=1e-9)
    ours, theirs = found.selection_.data.solved.certificate, expected.selection_.data.solved.certificate
    np.testing.assert_allclose([ours.primal, ours.dual], [theirs.primal, theirs.dual], rtol=1e-9)
    np.testing.assert_allclose(found.certificate_.bound, expected.certificate_.bound, rtol=1e-9)


@contextmanager
def cluster_of(n_workers):
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        yield cluster


@pytest.mark.parametrize(("n_workers", "rows"), [(1, 20_000), (2, 7000), (3, 8192)])
def test_dask_with_any_number_of_workers_and_any_chunks(expected, n_workers, rows):
    da = pytest.importorskip("dask.array")
    with cluster_of(n_workers):
        assert_same(MOSAIC(20, **SETTINGS).fit(da.from_array(data(), chunks=(rows, 4))), expected)


def test_a_worker_that_is_killed_in_the_middle_of_a_fit(expected, monkeypatch):
    da = pytest.importorskip("dask.array")
    killed, run = [], DaskSource.run
    with cluster_of(2) as cluster:

        def deadly(self, task, *, watch=None):
            if len(killed) < 2 and type(task).__name__ in ("GramSum", "Scores"):
                killed.append(next(iter(cluster.workers.values())).pid)
                threading.Timer(0.05, os.kill, (killed[-1], signal.SIGKILL)).start()
            return run(self, task, watch=watch)

        monkeypatch.setattr(DaskSource, "run", deadly)
        assert_same(MOSAIC(20, **SETTINGS).fit(da.from_array(data(), chunks=(3000, 4))), expected)
    assert killed


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")  # of Ray's own settings
def test_ray(expected):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", object_store_memory=150_000_000)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        rows = data()
        pieces = ray.data.from_numpy([rows[a : a + 13_000] for a in range(0, N, 13_000)])
        assert_same(MOSAIC(20, **SETTINGS).fit(pieces), expected)
    finally:
        ray.shutdown()
