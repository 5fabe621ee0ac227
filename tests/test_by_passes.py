"""MOSAIC by passes: the same answer wherever the rows are, what it says of all of them, and what it cannot do."""

import copy
import os
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import mosaic
from mosaic import MOSAIC, InvalidInputError, MemoryBudgetError, Paper, Sketch
from mosaic.arrays.sources import LocalSource, Passes
from mosaic.choosing import plan
from mosaic.choosing.draw import BUCKETS
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS
from mosaic.choosing.plan import needs_a_pass
from mosaic.estimators import fit
from sources import never_load, open_source

N = 10_000


def blobs(n, n_outliers=30, seed=0):
    """Ten blobs, and points far from all and from one another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 12.0 * rng.normal(size=(10, 4))[np.arange(n) % 10]
    outliers = np.sort(rng.choice(n, n_outliers, replace=False))
    v = rng.normal(size=(n_outliers, 4))
    X[outliers] = 200.0 * v / np.linalg.norm(v, axis=1, keepdims=True) * rng.uniform(1, 3, (n_outliers, 1))
    return X.astype(np.float32), outliers


X, OUTLIERS = blobs(N)
ROWS = open_source(X)
#: Without the search for outliers, which takes most of the time.
PLAIN = {"gamma": 0.02, "outliers": "keep"}


@pytest.fixture(scope="module", autouse=True)
def few_rows_decide():
    """A smaller sample, so that fewer rows are many; all sources are read in passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "DECISION_SAMPLE", 3000)
        never_load(patch)
        yield


@pytest.fixture(scope="module")
def model():
    return MOSAIC(20).fit(ROWS)


@pytest.fixture(scope="module")
def plain():
    return MOSAIC(20, **PLAIN).fit(ROWS)


def test_representatives_are_clean_and_of_every_kind_and_all_rows_are_answered_for(model):
    assert len(np.unique(model.representative_indices_)) == 20
    assert len(np.unique(model.representative_indices_ % 10)) == 10
    np.testing.assert_array_equal(np.flatnonzero(model.is_outlier_), OUTLIERS)
    assert (model.labels_[OUTLIERS] == -1).all()
    belongs = np.setdiff1d(np.arange(N), OUTLIERS)
    kind = model.representative_indices_[model.labels_[belongs]] % 10
    assert (kind == belongs % 10).mean() > 0.99
    np.testing.assert_array_equal(model.labels_[model.representative_indices_], np.arange(20))
    assert model.representation_error_[model.representative_indices_].max() < 1e-9
    np.testing.assert_array_equal(model.predict(X[:500]), model.labels_[:500])
    np.testing.assert_allclose(np.exp(model.score_samples(X[:500])), model.effective_count_[:500], rtol=ROUNDING_OF_COUNTS)


def test_certificate_is_about_the_rows_that_were_compared(model):
    chosen = model.certificate_
    assert not chosen.is_about_all
    assert chosen.n_targets < chosen.n_rows == N - chosen.n_outliers
    assert chosen.n_outliers == pytest.approx(len(OUTLIERS), abs=10)  # an estimate until all rows have been looked at
    assert "of those compared" in str(chosen)
    assert chosen.gap < 0.01
    assert model.certify(np.random.default_rng(0).choice(N, 20, replace=False)).shortfall > 0.05


def same(a, b):
    np.testing.assert_array_equal(a.representative_indices_, b.representative_indices_)
    np.testing.assert_array_equal(a.selection_.data.counts, b.selection_.data.counts)
    assert (a.gamma_, a.coverage_, a.certificate_) == (b.gamma_, b.coverage_, b.certificate_)


@pytest.fixture(scope="module")
def npy(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X)
    return path


def test_memory_maps_files_and_collections_give_what_memory_gives(plain, npy):
    for rows in (np.load(npy, mmap_mode="r"), npy):
        same(MOSAIC(20, **PLAIN).fit(rows), plain)
    np.testing.assert_array_equal(plain.predict(npy), plain.predict(X))
    np.testing.assert_allclose(plain.transform(npy), plain.transform(X), rtol=1e-12)
    np.testing.assert_allclose(plain.score_samples(str(npy)), plain.score_samples(X), rtol=1e-9)
    assert plain.score(npy) == pytest.approx(plain.score(X), rel=1e-9)
    np.save(npy.with_name("narrow.npy"), X[:, :3])
    with pytest.raises(InvalidInputError, match="has 3 columns of numbers, the data of fit had 4"):
        plain.predict(npy.with_name("narrow.npy"))
    da = pytest.importorskip("dask.array")
    np.testing.assert_array_equal(plain.predict(da.from_array(X[:9000], chunks=(4000, 4))), plain.predict(X[:9000]))


def test_columns_of_a_file_are_found_by_name_and_those_of_a_source_must_be_in_order(tmp_path):
    frame = pd.DataFrame(X[:2000], columns=list("abcd"))
    frame.to_parquet(tmp_path / "fit.parquet")
    frame[list("badc")].to_parquet(tmp_path / "new.parquet")
    found = MOSAIC(5, **PLAIN).fit(open_source(tmp_path / "fit.parquet"))
    with pytest.raises(InvalidInputError, match="X has the columns b, a, d, c; those of fit were a, b, c, d"):
        found.predict(open_source(tmp_path / "new.parquet"))
    expected = found.predict(tmp_path / "fit.parquet")
    np.testing.assert_array_equal(found.predict(tmp_path / "new.parquet"), expected)
    np.testing.assert_array_equal(found.predict(frame[list("badc")]), expected)


def test_rows_and_directions_are_compared_by_passes_as_in_memory(tmp_path):
    """Eight kinds of directions in 64 columns, lengths that say nothing, and every hundredth row once more, twice as long."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(6000, 64)) + 2.0 * rng.normal(size=(8, 64))[np.arange(6000) % 8]
    rows *= rng.uniform(0.8, 1.2, (6000, 1))
    rows = np.concatenate([rows, 2.0 * rows[::100]]).astype(np.float32)
    for data, k in ((X[:9000], 20), (rows, 16)):  # of which all are in the sample
        passes, memory = MOSAIC(k).fit(open_source(data)), MOSAIC(k).fit(data)
        for name in ("representative_indices_", "labels_", "is_outlier_", "gamma_", "outlier_threshold_", "coverage_"):
            np.testing.assert_array_equal(getattr(passes, name), getattr(memory, name))
        np.testing.assert_allclose(passes.effective_count_, memory.effective_count_, rtol=1e-4)
    assert passes.selection_.data.geometry.prepare.directions
    assert "compared by their direction" in str(passes.explain())
    new = 3.0 * rows[:200] + 0.01
    np.testing.assert_array_equal(passes.predict(new), memory.predict(new))
    np.testing.assert_array_equal(passes.transform(new), memory.transform(new))
    np.testing.assert_allclose(passes.score_samples(new), memory.score_samples(new), atol=1e-5)
    np.save(tmp_path / "rows.npy", rows)
    same(clone(passes).fit(tmp_path / "rows.npy"), passes)


def test_copies_are_one_point_and_chosen_by_the_number_that_they_are_demanded_with():
    rows = np.repeat(X[:500], 20, axis=0)
    found = MOSAIC(8, **PLAIN).fit(open_source(rows))
    assert len(np.unique(rows[found.representative_indices_], axis=0)) == 8
    assert (found.representative_indices_ % 20 == 0).all()  # the first of its copies
    found = MOSAIC(5, **PLAIN).fit(open_source(rows), must_include=[63])
    assert found.representative_indices_[0] == 63
    assert 60 not in found.representative_indices_
    with pytest.raises(InvalidInputError, match="names row 60 and row 63, which are equal"):
        MOSAIC(5, **PLAIN).fit(open_source(rows), must_include=[60, 63])


def test_demands_on_rows_are_met_among_many_rows(model, monkeypatch):
    must = [int(OUTLIERS[3]), 17]
    found = MOSAIC(20).fit(ROWS, must_include=must, exclude=model.representative_indices_)
    assert found.representative_indices_[:2].tolist() == must
    assert not np.isin(model.representative_indices_, found.representative_indices_).any()
    assert not found.is_outlier_[must].any()
    assert not found.rethreshold(outliers="keep").is_outlier_.any()
    monkeypatch.setattr(plan, "DECISION_SAMPLE", 2000)
    named = np.array([5, 1700, 4567, 7_345, 9_900])
    found = MOSAIC(4, **PLAIN).fit(ROWS, candidates=named)
    assert np.isin(found.representative_indices_, named).all()
    group = np.zeros(N, int)
    group[[77, 5_000, 9_500]] = 1
    found = MOSAIC(6, **PLAIN).fit(ROWS, groups=group, quotas={1: 2})
    assert (group[found.representative_indices_] == 1).sum() == 2


def test_frequent_points_count_in_proportion_to_the_sample(monkeypatch):
    """How many look like a row is the same for a sample of 600 rows and for all of them."""
    data = np.concatenate([X[:3000], np.repeat(X[:1] + 5.0, 3000, axis=0)])
    whole = MOSAIC(5, gamma=0.02).fit(data)
    monkeypatch.setattr(plan, "DECISION_SAMPLE", 600)
    monkeypatch.setattr(plan, "SMALLEST_SAMPLE", 600)
    found = MOSAIC(5, gamma=0.02).fit(open_source(data))
    ours, theirs = found.selection_.data.counting, whole.selection_.data.counting
    heaviest = [(c.weights.max(axis=1) / c.weights.sum(axis=1)).max() for c in (ours, theirs)]
    np.testing.assert_allclose(heaviest, 0.5, atol=0.01)
    assert ours.total == pytest.approx(theirs.total, rel=0.01)


def test_saved_models_answer_for_rows_that_they_are_shown(plain):
    fitted = clone(plain).fit(ROWS)
    saved = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(saved.predict(X[:300]), fitted.predict(X[:300]))
    np.testing.assert_array_equal(saved.transform(X[:10]), fitted.transform(X[:10]))
    for other in (saved, copy.deepcopy(fitted)):
        for name in ("labels_", "effective_count_", "representation_error_"):
            assert not hasattr(other, name)
            with pytest.raises(AttributeError, match=r"labels_, .* was not computed before this model was saved or copied"):
                getattr(other, name)
        assert other.certificate_ == fitted.certificate_
    assert saved.rethreshold(n_representatives=7).n_representatives_ == 7
    wanted = fitted.labels_, fitted.certificate_.bound
    again = pickle.loads(pickle.dumps(fitted))
    for found, expected in zip((again.labels_, again.certificate_.bound), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_each_answer_for_all_rows_takes_a_pass_that_nobody_makes_unasked(plain):
    fitted = clone(plain).fit(ROWS)
    passes = fitted.selection_.data.all_rows.passes
    made, run = [], passes.run
    passes.run = lambda name, task: made.append(name) or run(name, task)
    few = fitted.rethreshold(n_representatives=0.0005)
    assert few.n_representatives_ == round(0.0005 * N)
    assert not few.selection_.is_proven
    few.representative_indices_, few.coverage_, few.explain()
    assert made == []
    assert few.labels_.max() == few.n_representatives_ - 1
    made.clear()
    fitted.labels_, fitted.is_outlier_, fitted.effective_count_, fitted.representation_error_  # noqa: B018
    assert made == 3 * ["answers for all rows"]  # nobody looks for outliers
    assert fitted.certificate_.gap < 0.02
    fitted.labels_, fitted.is_outlier_, fitted.effective_count_, fitted.representation_error_  # noqa: B018
    assert made == 3 * ["answers for all rows"]


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_a_row_that_is_not_in_memory_is_read_alone(kind, tmp_path, monkeypatch):
    if kind == "npy":
        np.save(tmp_path / "rows.npy", X)
    else:
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=1000)
    monkeypatch.setattr(plan, "leaves_room", lambda *args: False)
    fitted = MOSAIC(20).fit(tmp_path / f"rows.{kind}")
    row = int(np.setdiff1d(np.arange(N), fitted.selection_.data.row_numbers)[0])
    whole = MOSAIC(20).fit(X)
    read, seen = LocalSource.run, []
    monkeypatch.setattr(LocalSource, "run", lambda self, task, **how: seen.append(task) or read(self, task, **how))
    assert fitted.explain(row).effective_count == pytest.approx(whole.explain(row).effective_count, rel=ROUNDING_OF_COUNTS)
    assert seen == []


def test_selected_rows_are_those_of_the_data(model, npy):
    np.testing.assert_array_equal(model.select(X), X[model.representative_indices_])
    np.testing.assert_array_equal(model.select(npy), X[model.representative_indices_])
    np.save(npy.with_name("few.npy"), X[:500])
    for other in (X[:-1], npy.with_name("few.npy")):
        with pytest.raises(InvalidInputError, match=f"X must have the {N} rows of fit"):
            model.select(other)
    in_memory = MOSAIC(3).fit(X[:500])
    np.testing.assert_array_equal(in_memory.select(npy.with_name("few.npy")), X[:500][in_memory.representative_indices_])
    np.save(npy.with_name("other.npy"), np.arange(2 * N).reshape(N, 2))  # other facts about the same rows
    np.testing.assert_array_equal(model.select(npy.with_name("other.npy"))[:, 0], 2 * model.representative_indices_)


def test_explanations_speak_of_rows_of_the_data(model):
    first, known = int(model.representative_indices_[0]), model.selection_.data.row_numbers
    told = model.explain(first)
    assert (told.row, told.rank, told.status) == (first, 1, "representative")
    assert all(model.labels_[row] == 0 for row in told.members)
    told = model.explain(int(known[0]))
    assert told.represented_by in model.representative_indices_
    assert f"row {told.represented_by} stands for it" in str(told)
    unknown = int(np.setdiff1d(np.arange(N), known)[0])
    told = model.explain(unknown)  # it is read again
    assert told.represented_by == model.representative_indices_[model.labels_[unknown]]
    assert told.effective_count == pytest.approx(model.effective_count_[unknown])
    assert told.representation_error == pytest.approx(model.representation_error_[unknown])
    with pytest.raises(InvalidInputError, match=f"row {unknown} is not among the .* rows that this model was saved with"):
        copy.deepcopy(model).explain(unknown)
    assert "Decided on a sample of" in str(model.explain())


def test_path_speaks_of_rows_of_the_data():
    curve = mosaic.path(ROWS, max_representatives=25)
    assert len(curve.indices) == 25
    assert curve.indices.max() > 3_000  # not numbers of points in memory
    assert len(np.unique(curve.indices[:10] % 10)) == 10


@pytest.mark.parametrize(("n", "passes"), [(500, 0), (3000, 0), (1_000_000, 1)])
def test_a_memory_map_is_read_in_passes_where_it_does_not_fit_into_memory(tmp_path, monkeypatch, n, passes):
    for module in (plan, fit):
        monkeypatch.setattr(module, "needs_a_pass", needs_a_pass)
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (n, 8))
    assert mosaic.estimate(rows, memory_budget=1e8).passes == passes
    assert mosaic.estimate(np.asarray(rows), memory_budget=1e8).passes == 0


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"kernel": "diffusion"}, "read in passes need the kernels 'rbf', .* got 'diffusion'"),
        ({"kernel": "precomputed"}, "which needs all points at once"),
        ({"algorithm": Paper(sketch=Sketch(n_initial=1))}, "n_initial must be a whole number >= 2"),
        ({"algorithm": Paper(sketch=Sketch(n_added=0))}, "n_added must be a whole number >= 1"),
        ({"algorithm": Paper(sketch=Sketch(n_rounds=1.5))}, "n_rounds must be a whole number >= 1"),
        ({"algorithm": Sketch()}, r"must be None, 'paper' or Paper\(…\); got Sketch\(\)\. A Sketch is for Paper\("),
        ({"algorithm": "best"}, "algorithm must be None, 'paper' .*; got 'best'"),
        ({"memory_budget": 1e6}, "the budget is 977 KiB. Raise memory_budget, or use fewer columns"),
        ({"algorithm": "paper", "memory_budget": 1e5}, r"is for rows in memory; 2,000 rows × 4 features are 62 KiB, .* 24 KiB"),
    ],
)
def test_what_passes_cannot_do_is_refused(settings, fault):
    with pytest.raises((InvalidInputError, MemoryBudgetError), match=fault):
        MOSAIC(5, **settings).fit(open_source(X[:2000]))


@pytest.mark.parametrize("kernel", ["laplacian", "polynomial", "linear", "cosine", lambda A, B: (1.0 + A @ B.T / 100.0) ** 2])
def test_other_kernels_work(kernel):
    data = X[:9000].astype(np.float64) if callable(kernel) else X[:9000]
    found = MOSAIC(10, kernel=kernel).fit(open_source(data))
    assert found.n_representatives_ == 10
    assert 0 <= found.certificate_.gap < 0.5


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(plan, "LARGER_SAMPLE", plan.DECISION_SAMPLE)
    """What is kept of a pass is counted in nodes and pieces, not in rows."""
    largest, run = [], Passes.run

    def watched(self, name, task):
        small = run(self, name, task)
        largest.append(sum(np.asarray(value).nbytes for value in small.values()))
        return small

    monkeypatch.setattr(Passes, "run", watched)
    for n in (80_000, 160_000):
        MOSAIC(5, **PLAIN).fit(open_source(blobs(n)[0])).certificate_  # noqa: B018
    # Of the sample rows, and four numbers of each; and how many rows are in each bucket of priorities.
    assert max(largest) <= plan.DECISION_SAMPLE * (4 * 4 + 4 * 8) + 8 * BUCKETS


def test_a_file_with_missing_values_or_that_changes_between_passes_is_refused(tmp_path, monkeypatch):
    bad = X.copy()
    bad[7_654, 2] = np.nan
    np.save(tmp_path / "x.npy", bad)
    for rows in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r")):
        with pytest.raises(InvalidInputError, match=r"X\[7654, 2\] = nan, in row 7654, column 2"):
            MOSAIC(5, **PLAIN).fit(rows)
    np.save(tmp_path / "x.npy", X)
    task = Passes.run

    def run(self, name, *rest):
        os.utime(tmp_path / "x.npy", ns=(0, 0))  # as if somebody had written to it
        return task(self, name, *rest)

    monkeypatch.setattr(Passes, "run", run)
    with pytest.raises(InvalidInputError, match=r"x\.npy has changed while it was read in passes"):
        MOSAIC(20).fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
