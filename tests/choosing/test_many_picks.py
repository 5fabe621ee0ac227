"""Many picks, and picks of many rows: searched among near candidates, and moved to the middle of their rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import cdist

import mosaic
from mosaic import MOSAIC
from mosaic.choosing.answers import ByPasses
from mosaic.choosing.cover import Cover, FacilityLocation, NearLocation, Slots
from mosaic.exceptions import MemoryBudgetError
from mosaic.kernels import make_kernel

ROWS = np.random.default_rng(0).normal(size=(600, 2))


def mean_distance(X, rows):
    return cdist(X, X[rows]).min(axis=1).mean()


@pytest.mark.parametrize("k", [1023, 1024, 1025])
def test_very_many_picks_are_nearer_than_random_rows(k):
    rng = np.random.default_rng(k)
    X = rng.random((3000, 2))
    picks = MOSAIC(k).fit(X).representative_indices_
    assert len(np.unique(picks)) == k
    assert mean_distance(X, picks) < 0.75 * mean_distance(X, rng.choice(3000, k, replace=False))


@pytest.mark.parametrize("k", [2, 30, 250])
def test_a_row_resembles_as_many_others_as_a_pick_stands_for_however_many_are_picked(k):
    X = np.random.default_rng(0).random((2000, 2))
    similar = np.asarray(Cover.of(make_kernel(X, "rbf"), np.arange(2000), np.ones(2000), k).between(*2 * [np.arange(2000)]))
    np.fill_diagonal(similar, 0.0)
    assert np.median((similar**2).sum(axis=1)) == pytest.approx(2000 / k, rel=0.15)  # by 128 rows


# Among near candidates


def problem(k, weights=None):
    """The same cover of all rows by all rows, with all similarities and with near ones."""
    everyone, weights = np.arange(len(ROWS)), np.ones(len(ROWS)) if weights is None else weights
    cover = Cover.of(make_kernel(ROWS, "rbf"), everyone, weights, k)
    whole = FacilityLocation(np.asarray(cover.between(everyone, everyone)), weights)
    return whole, NearLocation.of(cover, everyone, everyone, weights, k)


def covered(whole, picks):
    return float(whole.weights @ whole.S[:, picks].max(axis=1))


@pytest.mark.parametrize("k", [40, 150])
def test_near_candidates_give_as_good_a_cover_as_all(k, rng):
    whole, near = problem(k, rng.uniform(0.5, 2.0, len(ROWS)))
    slots = Slots.free(len(ROWS), k)
    best = whole.exchanged(whole.ranked(slots)[0], slots)
    greedy, gains = near.ranked(slots)
    picks = near.exchanged(greedy, slots)
    assert len(set(picks)) == k
    assert (np.diff(gains) <= 1e-6 * sum(gains)).all()
    assert covered(whole, picks) > covered(whole, greedy)
    assert covered(whole, picks) >= 0.999 * covered(whole, best)


def test_no_exchange_makes_picks_among_near_candidates_better():
    _, near = problem(60)
    slots = Slots.free(len(ROWS), 60)
    picks = near.exchanged(near.ranked(slots)[0], slots)
    best = np.zeros(len(ROWS))
    now = near_value(near, picks, best)
    for place in range(0, 60, 7):
        others = [pick for pick in picks if pick != picks[place]]
        for candidate in range(0, len(ROWS), 11):
            assert near_value(near, [*others, candidate], best) <= now * (1.0 + 1e-5)


def near_value(near, picks, best):
    best = best.copy()
    for pick in picks:
        targets, values = near.entries(pick)
        best[targets] = np.maximum(best[targets], values)
    return float(near.weights @ best)


def test_places_copies_and_forced_picks_hold_among_near_candidates():
    of = (np.arange(600) % 3 == 0).astype(np.intp)
    twins = np.arange(600) // 2
    slots = Slots(of, np.array([50, 10]), twins, forced=[3, 8, 12])
    _, near = problem(60)
    for picks in (near.ranked(slots)[0], near.exchanged(near.ranked(slots)[0], slots)):
        assert np.bincount(of[picks]).tolist() == [50, 10]
        assert len(np.unique(twins[picks])) == 60
        assert {3, 8, 12} <= set(picks)


def test_an_earlier_pick_stays_among_near_candidates_if_it_is_worth_more():
    _, near = problem(60)
    slots = Slots.free(len(ROWS), 60)
    start = list(range(60))
    worth = np.zeros(600)
    worth[:60] = 1e6
    assert near.exchanged(start, slots, worth) == start
    assert near.exchanged(start, slots) != start


# Moved to the middle of their rows


@pytest.fixture
def sampled(monkeypatch):
    """Decisions are made with 300 rows."""
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 300)


MANY = np.random.default_rng(1).normal(size=(5000, 3))


def test_picks_of_many_rows_are_nearer_than_those_of_a_sample(sampled, monkeypatch):
    moved = MOSAIC(12).fit(MANY)
    np.testing.assert_array_equal(moved.labels_[moved.representative_indices_], np.arange(12))
    assert not moved.is_outlier_[moved.representative_indices_].any()
    assert (np.diff(moved.selection_.gains) <= 1e-9).all()
    monkeypatch.setattr("mosaic.choosing.plan.LARGER_SAMPLE", 0)
    stayed = MOSAIC(12).fit(MANY)
    assert not np.isin(moved.representative_indices_, stayed.selection_.data.row_numbers).all()
    assert mean_distance(MANY, moved.representative_indices_) < 0.98 * mean_distance(MANY, stayed.representative_indices_)


def test_moved_picks_do_not_depend_on_the_order_of_the_rows(sampled, rng):
    order = rng.permutation(len(MANY))
    first, second = (MOSAIC(12).fit(X) for X in (MANY, MANY[order]))
    np.testing.assert_array_equal(first.representative_indices_, order[second.representative_indices_])


def test_moved_picks_respect_the_constraints(sampled):
    groups = np.where(MANY[:, 0] > 0, "high", "low")
    allowed = np.flatnonzero(MANY[:, 1] > -0.5)
    model = MOSAIC(12).fit(MANY, groups=groups, quotas={"high": 9, "low": 3}, must_include=[17, 4711], candidates=allowed)
    picks = model.representative_indices_
    assert (groups[picks] == "high").sum() == 9
    assert {17, 4711} <= set(picks.tolist())
    assert np.isin(picks, np.append(allowed, [17, 4711])).all()
    assert not np.isin(picks, model.selection_.data.sampled.row_numbers).all()  # some have moved


def test_other_thresholds_after_a_move_give_what_a_fresh_fit_gives(sampled):
    again = MOSAIC(12).fit(MANY).rethreshold(n_representatives=7)
    np.testing.assert_array_equal(again.representative_indices_, MOSAIC(7).fit(MANY).representative_indices_)


def test_moved_picks_of_a_file_have_their_own_names(sampled, tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.leaves_room", lambda *args: False)
    table = {"id": [f"C{row}" for row in range(len(MANY))]} | {f"x{j}": MANY[:, j] for j in range(3)}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    with mosaic.read(tmp_path / "rows.parquet", memory_budget=1e5) as rows:
        model = MOSAIC(12).fit(rows)
        assert isinstance(model.selection_.data.all_rows, ByPasses)
        assert model.selection_.data.sampled is not None
        model.save(tmp_path / "model.mosaic")
        for one in (model, model.rethreshold(n_representatives=5), mosaic.load(tmp_path / "model.mosaic")):
            for row in one.representative_indices_.tolist():
                assert one.explain(row).name == f"C{row}"
    np.testing.assert_array_equal(model.representative_indices_, MOSAIC(12).fit(MANY).representative_indices_)


def test_sparse_rows_move_as_dense_ones_do(sampled):
    sp = pytest.importorskip("scipy.sparse")
    X = np.where(np.abs(MANY) > 0.5, MANY, 0.0)
    dense, sparse = MOSAIC(9).fit(X), MOSAIC(9).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.representative_indices_, dense.representative_indices_)


def test_picks_that_do_not_fit_into_the_budget_are_refused_with_numbers():
    with pytest.raises(
        MemoryBudgetError, match=r"2,000 representatives of 20,000 rows × 3 features need about .*MiB; the budget"
    ):
        MOSAIC(2000, memory_budget="100MB").fit(np.random.default_rng(0).random((20_000, 3)))
