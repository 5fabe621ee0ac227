"""Chunks of a Dask collection give, bit for bit, what the same rows in memory give, whoever maps them and however often."""

import _thread
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from clusters import N, folder_of, same_fit, table
from mosaic import MOSAIC, MOSAICOutlierDetector, estimate
from mosaic.arrays.passes import BLOCK_ROWS, PerRow, TakeRows
from mosaic.arrays.sources import ArraySource
from mosaic.choosing.draw import Draw, draw_by_passes
from mosaic.exceptions import InvalidInputError, MosaicError
from mosaic.text import readable_size
from sources import open_source
from tasks import X, odd, products, same_passes

pa = pytest.importorskip("pyarrow")

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.xdist_group("dask")  # one cluster for all

#: Chunks of single rows, of whole blocks, of several blocks, and an empty one.
RAGGED = (1, 1, 8190, 1, 0, 20_000, 8192, 2, 3614)


@dataclass(frozen=True)
class Heavy(TakeRows):
    """A task of which Dask would warn if it were sent with every part."""

    ballast: bytes = np.random.default_rng(0).bytes(12_000_000)


@dataclass(frozen=True)
class Slow(TakeRows):
    """Every row, slowly."""

    numbers: np.ndarray = field(default_factory=lambda: np.arange(len(X)))
    seconds: float = 0.5

    def map_block(self, rows, start):
        time.sleep(self.seconds)
        return super().map_block(rows, start)


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
    source = open_source(da.from_array(X, chunks=chunks))
    assert (source.kind, source.n, source.n_features, source.names) == ("Dask array", 40_001, 3, None)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        same_passes(source, X)


@pytest.mark.parametrize("layout", [np.asfortranarray, sp.csr_array, sp.coo_matrix, sp.csc_matrix, "f4", "i8", "u1", "?"])
@pytest.mark.parametrize("width", [2, 3])
def test_chunks_of_any_layout_and_type_give_what_the_array_gives(layout, width):
    is_type = isinstance(layout, str)
    given = np.abs(X * [50.0, 1e-5, 1e7]).astype(layout) if is_type else X
    chunks = da.from_array(given, chunks=(7000, width))
    with dask.config.set(scheduler="threads", num_workers=4):
        same_passes(open_source(chunks if is_type else chunks.map_blocks(layout)), given)


class Counted:
    """Parts of a frame, each of which notes that it was read."""

    def __init__(self, frame, parts, notes):
        self.frame, self.notes = frame, notes
        self.cuts = np.linspace(0, len(frame), parts + 1).astype(int)

    def __call__(self, number):
        (self.notes / f"{number}-{uuid4().hex}").touch()
        return self.frame.iloc[self.cuts[number] : self.cuts[number + 1]]

    def __dask_tokenize__(self):
        return uuid4().hex

    def collection(self):
        return dd.from_map(self, range(len(self.cuts) - 1), meta=self.frame.head(0))

    def reads(self):
        return len(list(self.notes.iterdir())) / (len(self.cuts) - 1)


@pytest.fixture
def few_rows_decide(monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 3000)


@pytest.fixture(params=["all rows stay where they are", "few rows come with the first read"])
def first_read(request, monkeypatch):
    if request.param.startswith("all"):
        monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)


def with_ids(frame):
    """Without lists, which Dask makes texts of where it has no types of Arrow."""
    lists = frame.columns.intersection(["place"])
    return frame.drop(columns=lists).assign(order_id=[f"order {i}" for i in range(len(frame))])


@pytest.mark.usefixtures("few_rows_decide", "first_read")
@pytest.mark.parametrize("kind", ["frame", "frame with ids", "array of unknown lengths"])
def test_numbers_are_read_once_by_a_fit_whether_lengths_are_known_or_not(kind, tmp_path):
    frame = table("numbers") if kind != "frame with ids" else with_ids(table("numbers"))
    numbers = Counted(frame, 12, tmp_path)
    given, expected = numbers.collection(), frame
    if kind == "array of unknown lengths":
        given, expected = given.to_dask_array(), frame.to_numpy()
    model, in_memory = MOSAIC(10).fit(given), MOSAIC(10).fit(expected)
    told = [pick.called for pick in model.facts_.picks]
    assert numbers.reads() == 1
    np.testing.assert_array_equal(model.representative_indices_, in_memory.representative_indices_)
    assert told == [pick.called for pick in in_memory.facts_.picks]


@pytest.mark.usefixtures("few_rows_decide")
def test_numbers_beside_a_text_that_is_left_out_are_read_once_beside_the_rows_that_rules_are_found_from(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)
    named = Counted(table("numbers").assign(text=[f"w{i}x" for i in range(N)]), 12, tmp_path)
    model = MOSAIC(10).fit(named.collection())
    assert model.encoder_.names == list("abcd")
    assert named.reads() == 2
    np.testing.assert_array_equal(model.representative_indices_, MOSAIC(10).fit(named.frame).representative_indices_)


@pytest.mark.usefixtures("few_rows_decide")
def test_mixed_columns_of_few_rows_are_read_once_by_all_that_a_model_says(tmp_path):
    mixed = Counted(with_ids(table("mixed")), 12, tmp_path)
    same_fit(mixed.collection(), mixed.frame, groups="city")
    assert mixed.reads() == 1
    assert (estimate(mixed.collection()).passes, estimate(mixed.collection()).read) == (1, 0)


def rare(frame):
    """A table with cells that reasons quote."""
    return with_ids(frame.assign(city=frame["city"].where(np.arange(len(frame)) % 1500 != 7, "Rmoe")))


@pytest.mark.usefixtures("few_rows_decide")
def test_mixed_columns_of_many_rows_are_read_twice_beside_the_stretches_that_rules_are_found_from(tmp_path, monkeypatch):
    frame = rare(table("mixed"))
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)  # all rows decide, as in memory, and are read for it
    mixed = Counted(frame, 12, tmp_path)
    model, in_memory = MOSAIC(10).fit(mixed.collection()), MOSAIC(10).fit(frame)
    assert list(map(str, model.facts_.picks)) == list(map(str, in_memory.facts_.picks))
    assert mixed.reads() == 3
    assert any("'Rmoe', which is rare" in str(outlier) for outlier in model.facts_.outliers.lowest)
    for note in tmp_path.iterdir():
        note.unlink()
    monkeypatch.setattr("mosaic.rows.rows.FEW_ROWS", 500)  # in fifty stretches of ten rows
    parts = Counted(frame, 300, tmp_path)
    MOSAIC(10).fit(parts.collection()).facts_.picks  # noqa: B018
    assert parts.reads() <= 2 + 100 / 300


@pytest.mark.usefixtures("few_rows_decide", "first_read")
@pytest.mark.parametrize("kind", ["numbers", "mixed", "vectors"])
def test_a_folder_of_files_with_empty_skewed_and_single_row_parts_gives_what_the_frame_gives(kind, tmp_path):
    frame = table(kind)
    given = dd.read_parquet(folder_of(frame, tmp_path / "rows"))
    model = same_fit(given, frame)
    columns = list(frame.columns)
    chosen = model.select(given)
    assert chosen.column_names == columns
    expected = frame.iloc[model.representative_indices_]
    assert str(chosen[columns[-1]].to_pylist()) == str(pa.array(expected[columns[-1]]).to_pylist())


@pytest.mark.usefixtures("few_rows_decide", "first_read")
def test_groups_of_a_column_and_rows_that_are_demanded_give_what_the_frame_gives(tmp_path):
    frame = table("mixed")
    given = dd.read_parquet(folder_of(frame, tmp_path / "rows"))
    demanded = {"groups": "city", "quotas": "equal", "must_include": [3, N - 1], "exclude": np.arange(0, N, 7)}
    same_fit(given, frame, **demanded)


@pytest.mark.usefixtures("few_rows_decide")
def test_sparse_chunks_give_what_the_matrix_gives():
    matrix = sp.random(N, 40, 0.1, "csr", rng=np.random.default_rng(0))
    same_fit(da.from_array(matrix.toarray(), chunks=(2100, 17)).map_blocks(sp.csr_matrix), matrix.toarray())


@pytest.mark.usefixtures("few_rows_decide", "first_read")
def test_sparse_columns_of_pandas_categories_and_columns_of_few_bits_give_what_the_frame_gives():
    rng = np.random.default_rng(0)
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.random(N, 4, 0.3, "csr", rng=rng), columns=list("abcd"))
    same_fit(dd.from_pandas(sparse, npartitions=4), sparse)
    mixed = pd.DataFrame(
        {"x": rng.normal(size=N), "level": pd.Categorical(rng.choice([1, 2, 3], N)), "truth": rng.random(N) < 0.1}
    )
    mixed["whole"] = pd.array(rng.integers(0, 9, N), "Int64")
    same_fit(dd.from_pandas(mixed, npartitions=4), mixed)


def test_a_block_gives_about_as_many_rows_as_the_sample_will_hold_of_it():
    rows = np.random.default_rng(0).normal(size=(8192, 3))
    found, few = (Draw((1000,), n=n).map_block(rows, 0) for n in (None, 40_000))
    assert len(found["rows"]) == 1000
    assert 205 < len(few["rows"]) < 500
    np.testing.assert_array_equal(few["rows"], found["rows"][: len(few["rows"])])
    assert few["complete"] == found["priority"][len(few["rows"])]
    copies = np.tile(rows[:2048], (4, 1))  # nobody knows how many of all rows are different
    assert len(Draw((1000,), n=40_000).map_block(copies, 0)["rows"]) == 1000


def test_rows_are_asked_for_again_where_copies_are_in_other_parts():
    rows, names = np.tile(np.random.default_rng(0).normal(size=(10_000, 3)), (8, 1)), []
    source = open_source(da.from_array(rows, chunks=(5000, 3)))

    def run(name, task):
        names.append(name)
        return source.run(task)

    drawn = draw_by_passes(run, len(rows), 4000)
    expected = ArraySource(rows).run(Draw((4000,)))
    assert names == ["look", "look"]
    np.testing.assert_array_equal(drawn.numbers, np.sort(expected["first"]))
    np.testing.assert_array_equal(drawn.copies, np.full(4000, 8.0))


def test_threads_of_blas_change_nothing_and_are_as_many_as_before():
    wide = np.random.default_rng(0).normal(size=(9000, 500))
    source = open_source(da.from_array(wide, chunks=(1500, 500)))
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        with dask.config.set(scheduler="threads", num_workers=4):
            same_passes(source, wide)
        assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.mark.parametrize("size", [20_000, 1000], ids=["whole blocks", "blocks that are joined"])
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_fault_that_the_task_finds_comes_out_as_it_is(size, scheduler):
    with dask.config.set(scheduler=scheduler), pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        open_source(da.from_array(X, chunks=(size, 3))).run(PerRow(odd))


def wider(rows):
    return np.c_[rows, rows[:, :1]]


CHUNKS = da.from_array(X, chunks=(9000, 3))
OTHER = dd.concat([dd.from_pandas(table("numbers", 500), npartitions=2)])


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (lambda: CHUNKS.map_blocks(wider, dtype=float), r"should hold columns 0 … 2 has 4 columns.*map_blocks"),
        (lambda: CHUNKS.rechunk((9000, 2)).map_blocks(wider, dtype=float), r"should hold columns \d … \d has \d columns"),
        (lambda: CHUNKS.map_blocks(lambda rows: rows[:, :2], dtype=float), r"should hold columns 0 … 2 has 2 columns"),
        (lambda: CHUNKS.map_blocks(lambda rows: rows[:, 0], dtype=float), r"should hold columns 0 … 2 has the shape \(\d+,\)"),
        (lambda: CHUNKS.map_blocks(lambda rows: rows[:900], dtype=float), r"rows \d+ … \d+ has 900 rows.*compute_chunk_sizes"),
        (lambda: da.ma.masked_greater(CHUNKS, 2.0), r"\d+ masked entries, which cannot be compared\. Fill them"),
        (lambda: da.where(X[-1, 0] == CHUNKS, np.nan, CHUNKS), r"1 NaN\. The first is X\[40000, 0\].*in row 40000"),
        (
            lambda: OTHER.map_partitions(lambda rows: rows.rename(columns={"b": "z"}), meta=OTHER._meta, enforce_metadata=False),
            r"part \d of X has other columns than X says: 'b', 'z'",
        ),
        (
            lambda: OTHER.map_partitions(lambda rows: rows.assign(a="Ada"), meta=OTHER._meta, enforce_metadata=False),
            r"X must hold numbers only; column 'a'",
        ),
    ],
    ids=["more", "more in one", "fewer", "one dimension", "fewer rows", "masks", "NaN", "names", "types"],
)
def test_nothing_is_cut_and_nothing_ignored(bad, fault):
    with pytest.raises(InvalidInputError, match=fault):
        MOSAIC(3).fit(bad()).labels_  # noqa: B018


def test_rows_that_differ_from_run_to_run_are_refused(monkeypatch):
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)
    random = OTHER.map_partitions(lambda rows: rows.sample(frac=0.9), meta=OTHER._meta, enforce_metadata=False)
    with pytest.raises(InvalidInputError, match=r"part \d of X had \d+ rows when it was opened.*X\.persist\(\)"):
        MOSAIC(3).fit(random).labels_  # noqa: B018


@pytest.mark.usefixtures("few_rows_decide", "first_read")
def test_a_gap_in_the_last_part_of_a_frame_is_compared_as_in_memory():
    frame = table("numbers")
    frame.loc[N - 1, "c"] = np.nan
    same_fit(dd.from_pandas(frame, npartitions=4), frame)


def test_a_part_that_raises_says_what_it_says():
    def fail(rows):
        if rows["a"].iloc[0] == 0.0:  # not the rows that Dask tries it with
            return rows
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        MOSAIC(3).fit(OTHER.map_partitions(fail, meta=OTHER._meta, enforce_metadata=False))


def test_a_dask_array_gets_its_answers_as_one_where_its_chunks_are():
    model, detector = MOSAIC(5).fit(X[:500]), MOSAICOutlierDetector().fit(X[:500])
    chunks = da.from_array(X[:2000], chunks=(300, 2))
    for answer in (model.predict, model.score_samples, model.transform, detector.score_samples, detector.predict):
        found, expected = answer(chunks), answer(X[:2000])
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype, found.numblocks[0]) == (expected.shape, expected.dtype, 7)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-4, atol=1e-6)
    assert model.score(chunks) == pytest.approx(model.score(X[:2000]))
    unknown = model.predict(chunks[chunks[:, 0] > 0])
    np.testing.assert_array_equal(unknown.compute(), model.predict(X[:2000][X[:2000, 0] > 0]))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(chunks[:, :2])


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
        source = open_source(given)
        same_passes(source, X)
        source.run(PerRow(products), watch=seen.append)
        assert seen == [len(X)]
    with pytest.raises(InvalidInputError, match=r"^row 16384 is odd\. Drop it\.$"):
        open_source(da.from_array(X, chunks=(1000, 3))).run(PerRow(odd))
    found = open_source(da.from_array(X, chunks=(1000, 3))).run(Heavy(np.array([5, 40_000])))
    np.testing.assert_array_equal(found["rows"], X[[5, 40_000]])
    assert nothing_is_left_on(cluster)


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows_decide")
def test_four_processes_give_what_one_gives(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.parts.FEW_ROWS", 0)
    with workers(4):
        for kind in ("numbers", "mixed", "vectors"):
            frame = table(kind)
            same_fit(dd.read_parquet(folder_of(frame, tmp_path / kind)), frame)
        matrix = sp.random(N, 40, 0.1, "csr", rng=np.random.default_rng(0))
        same_fit(da.from_array(matrix.toarray(), chunks=(2100, 17)).map_blocks(sp.csr_matrix), matrix.toarray())


def test_the_page_on_scale_says_what_estimate_says_of_a_billion_rows():
    page = (Path(__file__).parents[1] / "docs" / "scale.md").read_text()
    rows = da.zeros((10**9, 768), chunks=(131_072, 768), dtype="f4")
    plan = estimate(rows, n_representatives=100, memory_budget="8G")
    assert f"print(plan)  # {plan}" in page
    assert plan.read == 4 * 768 * 1e9
    call = next(line for line in page.splitlines() if line.startswith("| `fit` |"))
    of_worker, moved, memory = map(readable_size, (plan.read / 100, plan.moved, plan.memory))
    assert f"{readable_size(plan.read)} once (`plan.read`), {of_worker} by each worker" in call
    assert f"{moved} (`plan.moved`)" in call
    assert f"{memory} at the peak (`plan.memory`)" in call
    assert f"| {readable_size(8e9)} |" in next(
        line for line in page.splitlines() if line.startswith("| `labels_`, `is_outlier_` |")
    )


@pytest.mark.usefixtures("few_rows_decide")
def test_workers_move_no_more_than_twice_what_estimate_says(cluster):
    chunks = da.random.default_rng(0).normal(size=(400_000, 16), chunks=(20_000, 16))  # made where they are needed
    plan = estimate(chunks, n_representatives=5)
    client = distributed.get_client()
    before = sum(client.run(sent_by_worker).values())
    MOSAIC(5).fit(chunks)
    assert plan.passes == 1
    assert 0 < sum(client.run(sent_by_worker).values()) - before < 2 * plan.moved


def sent_by_worker(dask_worker):
    return dask_worker.transfer_outgoing_bytes_total


def later(seconds, work):
    timer = threading.Timer(seconds, work)
    timer.start()
    return timer


@pytest.mark.slow
def test_an_interrupted_pass_is_cancelled_on_the_cluster(cluster):
    source = open_source(da.from_array(X, chunks=(BLOCK_ROWS, 3)))
    later(0.5, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        source.run(Slow(seconds=1.0))
    assert nothing_is_left_on(cluster)
    same_passes(source, X)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_worker_that_is_killed_changes_nothing(n_workers):
    with workers(n_workers) as cluster:
        victim = min(nanny.pid for nanny in cluster.workers.values())
        timer = later(0.7, lambda: os.kill(victim, signal.SIGKILL))
        found = open_source(da.from_array(X, chunks=(2500, 3))).run(Slow())
        np.testing.assert_array_equal(found["rows"], X)
        assert timer.finished.is_set()  # it was in the middle


class Fatal(TakeRows):
    def map_block(self, rows, start):
        os._exit(9)


@pytest.mark.slow
def test_workers_that_die_again_and_again_are_told_with_the_size_of_a_part_and_the_remedy():
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), workers(1), pytest.raises(MosaicError) as caught:
        open_source(da.from_array(X, chunks=(2500, 3))).run(Fatal(np.arange(3)))
    assert "a part has 2,500 rows, 59 KiB" in caught.value.fault
    assert "--memory-limit" in caught.value.remedy
    assert "rechunk" in caught.value.remedy


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_ends_the_pass_in_words():
    def restart():
        with suppress(OSError):  # the client may be closed before the restart is complete
            client.restart(wait_for_workers=False)

    with workers(1):
        client = distributed.get_client()
        source = open_source(da.from_array(X, chunks=(2500, 3)))
        later(0.7, restart)
        with pytest.raises(MosaicError, match="has dropped a pass: its scheduler was restarted or closed") as caught:
            source.run(Slow(seconds=1.0))
        assert "Fit again once the cluster is up" in caught.value.remedy
