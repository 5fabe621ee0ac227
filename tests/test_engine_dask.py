"""Chunks of a Dask collection give, bit for bit, what the same rows in memory give, whoever maps them and however often."""

import _thread
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from mosaic import MOSAIC
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import ArraySource
from mosaic.exceptions import InvalidInputError, MosaicError
from tasks import Refusing, Sums, X, agree

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from mosaic.rows.dask import DaskSource, InDask  # noqa: E402

pytestmark = pytest.mark.xdist_group("dask")  # one cluster for all

#: Chunks of single rows, of whole blocks, of several blocks, and an empty one.
RAGGED = (1, 1, 8190, 1, 0, 20_000, 8192, 2, 3614)


@dataclass(frozen=True)
class Heavy(Sums):
    """A task of which Dask would warn if it were sent with every block."""

    ballast: bytes = np.random.default_rng(0).bytes(12_000_000)


@contextmanager
def workers(n_workers):
    """Processes of this machine that a client of this process sends its work to."""
    with (
        distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.fixture(scope="module")
def cluster():
    with workers(2) as cluster:
        yield cluster


def nothing_is_left_on(cluster):
    """Soon after a pass has ended."""
    patience = time.monotonic() + 20
    while (left := [key for key in cluster.scheduler.tasks if "mosaic" in str(key)]) and time.monotonic() < patience:
        time.sleep(0.05)
    return not left


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.parametrize("chunks", [(333, 3), (BLOCK_ROWS, 3), (20_000, 3), (RAGGED, 3), (5000, 2), (RAGGED, 1)], ids=str)
def test_chunks_of_any_size_give_what_the_array_gives(chunks, scheduler):
    source = DaskSource.of(da.from_array(X, chunks=chunks))
    assert (source.n, source.n_features, source.names) == (40_001, 3, None)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        agree(source.run(Sums()))


@pytest.mark.parametrize("layout", [np.asfortranarray, sp.csr_array, sp.coo_matrix, sp.csc_matrix, "f4", "i8", "u1", "?"])
@pytest.mark.parametrize("width", [2, 3])
def test_chunks_of_any_layout_and_type_give_what_the_array_gives(layout, width):
    is_type = isinstance(layout, str)
    given = np.abs(X * [50.0, 1e-5, 1e7]).astype(layout) if is_type else X
    chunks = da.from_array(given, chunks=(7000, width))
    with dask.config.set(scheduler="threads", num_workers=4):
        found = DaskSource.of(chunks if is_type else chunks.map_blocks(layout)).run(Sums())
    agree(found, ArraySource(given).run(Sums()))


def test_a_data_frame_is_a_table_whose_partitions_stay_where_they_are():
    frame = pd.DataFrame({"a": X[:, 0], "name": "Ada", "b": np.arange(len(X)), "c": X[:, 1] > 0, 4: X[:, 2]})
    frame["d"] = pd.array(np.arange(len(X)) % 5, dtype="Int64")
    frame.loc[7, "d"] = None
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 0, "high", "low"))
    table = InDask(dd.from_pandas(frame, npartitions=7))
    assert (table.n, table.columns, table.levels) == (len(X), ["a", "name", "b", "c", "4", "d", "kind"], ["kind"])
    assert table.missing(["a", "d"]).tolist() == [0, 1]
    blocks = list(table.blocks(["b", "4"], 100, len(X) - 100))
    assert np.concatenate([cells.columns["b"].to_numpy() for cells in blocks]).tolist() == list(range(100, len(X) - 100))
    rows = [len(X) - 1, 3, 7, 3]
    assert table.take(rows, ["b", "kind", "d"]).to_pydict() == {
        "b": rows,
        "kind": frame["kind"][rows].tolist(),
        "d": [number if row != 7 else None for row, number in zip(rows, np.array(rows) % 5, strict=True)],
    }
    assert table.texts("d", np.array([7, 8])) == ["", "3"]
    numbers = ["a", "b", "4", "c"]
    source = table.encoded(lambda cells: cells.only(numbers).matrix(), numbers)
    agree(source.run(Sums()), ArraySource(frame[["a", "b", 4, "c"]].to_numpy(float)).run(Sums()))


def test_lengths_that_are_unknown_are_computed():
    lazy = da.from_array(X, chunks=(5000, 2))
    lazy = lazy[lazy[:, 0] > 0]
    agree(DaskSource.of(lazy).run(Sums()), ArraySource(X[X[:, 0] > 0]).run(Sums()))
    assert np.isnan(lazy.chunks[0]).all()  # the collection is left as it is


def test_threads_of_blas_change_nothing_and_are_as_many_as_before():
    wide = np.random.default_rng(0).normal(size=(9000, 500))
    source = DaskSource.of(da.from_array(wide, chunks=(1500, 500)))
    with threadpool_limits(1):
        expected = ArraySource(wide).run(Sums())
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        with dask.config.set(scheduler="threads", num_workers=4):
            agree(source.run(Sums()), expected)
        assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.mark.parametrize("size", [20_000, 1000], ids=["whole blocks", "blocks that are joined"])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_fault_that_the_task_finds_comes_out_as_it_is_and_a_chunk_of_other_rows_than_were_promised_is_one(size, scheduler):
    rows = da.from_array(X, chunks=(size, 3))
    with dask.config.set(scheduler=scheduler):
        with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
            DaskSource.of(rows).run(Refusing())
        with pytest.raises(InvalidInputError, match=r"rows \d+ … \d+999 has 900 rows.*compute_chunk_sizes"):
            DaskSource.of(rows.map_blocks(lambda rows: rows[:900], dtype=float)).run(Sums())


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (lambda: da.zeros((4, 3, 2)), r"two dimensions.*\(4, 3, 2\).*Reshape"),
        (lambda: da.from_array(np.array([["a", "b"]])), r"real numbers.*<U1.*drop"),
        (lambda: da.zeros((0, 3)), r"at least one point.*\(0, 3\)"),
        (lambda: da.zeros((3, 2))[:, da.zeros(2) > 0], r"at least one.*feature.*\(3, 0\)"),
        (lambda: da.zeros((3, 2))[da.zeros(3) > 0], r"at least one point.*\(0, 2\)"),
        (lambda: dd.from_pandas(pd.DataFrame({"name": ["Ada"]}), npartitions=1), r"no column of numbers.*name \(String\)"),
        (lambda: dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)[[]], r"at least one point and one feature.*\(1, 0\)"),
        (lambda: (dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)).query("a > 2"), r"at least one point.*\(0, 1\)"),
        (lambda: dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)["a"], r"got a Dask Series.*to_frame"),
        (lambda: dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1).index, r"array or a Dask dataframe; got.*Index"),
        (lambda: dask.delayed(1), r"Dask array or a Dask dataframe; got a Dask Delayed"),
    ],
)
def test_collections_without_rows_of_numbers_are_refused(bad, fault):
    with pytest.raises(InvalidInputError, match=fault):
        MOSAIC(2).fit(bad())


def test_a_cluster_gives_what_the_array_gives_says_when_it_is_done_and_keeps_nothing(cluster):
    for given in (da.from_array(X, chunks=(9999, 2)), da.from_array(X, chunks=(RAGGED, 3))):
        seen = []
        agree(DaskSource.of(given).run(Sums(), watch=seen.append))
        assert seen == [len(X)]
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        DaskSource.of(da.from_array(X, chunks=(1000, 3))).run(Refusing())
    agree(DaskSource.of(da.from_array(X, chunks=(1000, 3))).run(Heavy()))
    assert nothing_is_left_on(cluster)


def later(seconds, work):
    timer = threading.Timer(seconds, work)
    timer.start()
    return timer


@pytest.mark.slow
def test_an_interrupted_pass_is_cancelled_on_the_cluster(cluster):
    source = DaskSource.of(da.from_array(X, chunks=(BLOCK_ROWS, 3)))
    later(0.5, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        source.run(Sums(seconds=1.0))
    assert nothing_is_left_on(cluster)
    agree(source.run(Sums()))


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_worker_that_is_killed_changes_nothing(n_workers):
    with workers(n_workers) as cluster:
        victim = min(nanny.pid for nanny in cluster.workers.values())
        timer = later(0.7, lambda: os.kill(victim, signal.SIGKILL))
        agree(DaskSource.of(da.from_array(X, chunks=(2500, 3))).run(Sums(seconds=0.5)))
        assert timer.finished.is_set()  # it was in the middle


class Fatal(Sums):
    def map_block(self, rows, start):
        if start == 2 * BLOCK_ROWS:
            os._exit(9)
        return super().map_block(rows, start)


@pytest.mark.slow
def test_workers_that_die_again_and_again_are_told_with_the_size_of_a_part_and_the_remedy():
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), workers(1), pytest.raises(MosaicError) as caught:
        DaskSource.of(da.from_array(X, chunks=(2500, 3))).run(Fatal())
    assert "a part has 8,192 rows, 192 KiB" in caught.value.fault
    assert "--memory-limit" in caught.value.remedy
    assert "rechunk" in caught.value.remedy


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_ends_the_pass_in_words():
    def restart():
        with suppress(OSError):  # the client may be closed before the restart is complete
            client.restart(wait_for_workers=False)

    with workers(1):
        client = distributed.get_client()
        source = DaskSource.of(da.from_array(X, chunks=(2500, 3)))
        later(0.7, restart)
        with pytest.raises(MosaicError, match="has dropped a pass: its scheduler was restarted or closed") as caught:
            source.run(Sums(seconds=1.0))
        assert "Fit again once the cluster is up" in caught.value.remedy
