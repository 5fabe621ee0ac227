"""The result of a fit: one frozen value that gives the same answer however it is asked."""

from dataclasses import FrozenInstanceError
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.choosing.answers import counts_at, errors_at, labels_at, outliers_at
from mosaic.choosing.choose import Chooser
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS

BLOBS = datasets.blobs_with_gross_outliers()


class Answers(NamedTuple):
    effective_count: Any
    is_outlier: Any
    labels: Any
    representation_error: Any


def answers(selection):
    """For all rows of the data."""
    errors = selection.errors_of_rows
    return Answers(selection.effective_count, selection.outlier_mask, selection.labels_of_rows, errors)


def answers_at(selection, Y):
    """For rows that are asked for as new ones."""
    return Answers(*(question(selection, Y) for question in (counts_at, outliers_at, labels_at, errors_at)))


def same(one, other, rtol=ROUNDING_OF_COUNTS):
    """Two sets of answers agree."""
    np.testing.assert_allclose(one.effective_count, other.effective_count, rtol=rtol)
    np.testing.assert_array_equal(one.is_outlier, other.is_outlier)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.representation_error, other.representation_error, atol=1e-7)


# One value


def test_selection_is_frozen_and_estimators_say_what_it_says():
    model, detector = MOSAIC(6).fit(BLOBS.X), MOSAICOutlierDetector().fit(BLOBS.X)
    selection = model.selection_
    with pytest.raises(FrozenInstanceError):
        selection.cut = None
    assert len(selection.rows) == len(selection.chosen) == len(selection.gains) == selection.settings.n_representatives == 6
    assert selection.n_outliers == 8
    assert not selection.is_outlier[selection.chosen].any()
    found = answers(selection)
    np.testing.assert_array_equal(found.labels[selection.rows], np.arange(6))
    np.testing.assert_array_equal(found.labels == -1, found.is_outlier)
    np.testing.assert_array_equal(model.representative_indices_, selection.rows)
    np.testing.assert_array_equal(model.labels_, found.labels)
    for estimator in (model, detector, MOSAIC(40).fit(BLOBS.X)):  # the number chosen changes no count and no outlier
        np.testing.assert_array_equal(estimator.effective_count_, found.effective_count)
        np.testing.assert_array_equal(estimator.is_outlier_, found.is_outlier)


def test_gains_add_up_to_the_mean_similarity_of_the_rows_that_belong():
    model = MOSAIC(6).fit(BLOBS.X)
    selection = model.selection_
    reach = Chooser(selection, 6).cover.reach
    S = np.exp(-cdist(BLOBS.X[~model.is_outlier_], BLOBS.X[model.representative_indices_]) / reach)
    np.testing.assert_allclose(np.cumsum(selection.gains), np.maximum.accumulate(S, axis=1).mean(axis=0), rtol=1e-6)


def test_labels_are_computed_without_errors_and_similarities_of_all_pairs(monkeypatch):
    selection = MOSAIC(7).fit(BLOBS.X).selection_
    for name in ("errors", "errors_at"):
        monkeypatch.setattr(f"mosaic.choosing.coverage.Coverage.{name}", lambda *args: pytest.fail("nobody asked for errors"))
    nearest = cdist(BLOBS.X, BLOBS.X[selection.rows]).argmin(axis=1)
    np.testing.assert_array_equal(selection.labels_of_rows, np.where(BLOBS.is_outlier, -1, nearest))
    np.testing.assert_array_equal(labels_at(selection, BLOBS.X), selection.labels_of_rows)


def test_without_representatives_nobody_stands_for_a_row():
    selection = MOSAICOutlierDetector().fit(BLOBS.X).selection_
    same(answers_at(selection, BLOBS.X), answers(selection))
    assert (answers(selection).labels == -1).all()


NEARLY_EQUAL = {
    "far above their differences": (sp.csr_array(np.random.default_rng(0).normal(size=(10, 16)) + 1e9), {}),
    "of a bandwidth far above their distance": (np.array([[0.0, 1.0], [1.0, 0.0]] * 6), {"gamma": 1e-300}),
}


@pytest.mark.parametrize("name", NEARLY_EQUAL)
def test_a_pick_stands_for_itself_among_picks_that_are_nearly_equal(name):
    X, settings = NEARLY_EQUAL[name]
    model = MOSAIC(2, **settings).fit(X)
    picks = model.representative_indices_
    np.testing.assert_array_equal(model.predict(X)[picks], [0, 1])
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_that_are_equal_but_for_rounding_are_covered_by_one():
    X = np.full((50, 5), 0.7)
    assert MOSAIC(1, kernel="cosine").fit(X).score(X) == 1.0


def test_certificate_is_computed_when_somebody_asks_and_not_before():
    selection = MOSAIC(6).fit(BLOBS.X).selection_
    assert answers(selection).labels is not None
    assert selection.coverage > 0
    assert not selection.is_proven
    assert selection.certificate.k == 6
    assert selection.is_proven


# Known rows asked as new ones

SETTINGS = {
    "as it is": {},
    "reported": {"outliers": "report"},
    "kept": {"outliers": "keep"},
    "a known share": {"contamination": 0.1},
    "groups": {"contamination": 0.1, "min_group": 3},
    "laplacian": {"kernel": "laplacian"},
    "linear": {"kernel": "linear"},
    "paper": {"algorithm": "paper"},
}


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_rows_of_the_data_get_their_own_answers_when_they_are_asked_for_as_new_ones(settings):
    X = np.vstack([BLOBS.X, BLOBS.X[:20]])
    for weights in (None, (np.arange(len(X)) % 10 > 0).astype(float)):
        selection = MOSAIC(6, **settings).fit(X, sample_weight=weights).selection_
        same(answers_at(selection, X), answers(selection))


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_rows_of_a_matrix_get_their_own_answers_too(name):
    X = BLOBS.X[:150] + 20.0
    K = rbf_kernel(X, gamma=0.1) if name == "rbf" else X @ X.T
    selection = MOSAIC(6, kernel="precomputed").fit(K).selection_
    same(answers_at(selection, K), answers(selection), rtol=1e-6)


def test_outlier_that_must_be_included_is_none_whether_asked_as_known_or_as_new():
    odd = np.flatnonzero(BLOBS.is_outlier)[:2]
    for outliers in ("reject", "report"):
        selection = MOSAIC(6, outliers=outliers).fit(BLOBS.X, must_include=odd).selection_
        assert not answers(selection).is_outlier[odd].any()
        same(answers_at(selection, BLOBS.X), answers(selection))


def test_answers_do_not_depend_on_the_batch():
    selection, Y = MOSAIC(6).fit(BLOBS.X).selection_, BLOBS.X[:30] + 0.3
    together = answers_at(selection, Y)
    for i in range(30):
        same(answers_at(selection, Y[i : i + 1]), type(together)(*(values[i : i + 1] for values in together)))


# A sample of many points


@pytest.fixture
def sampled(monkeypatch):
    """Decisions are made with 200 points."""
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 200)


BASE = np.vstack([np.random.default_rng(0).normal(size=(594, 3)), 50.0 * np.eye(3), -50.0 * np.eye(3)])


def test_more_points_than_a_sample_get_consistent_answers_and_the_sample_has_all_that_constraints_name(sampled, rng):
    groups, must = np.where(np.arange(len(BASE)) < 15, "few", "many"), rng.permutation(len(BASE))[:5]
    named = {"groups": groups, "quotas": {"few": 6, "many": 6}, "must_include": must}
    for constraints in ({}, named):
        selection = MOSAIC(12).fit(BASE, **constraints).selection_
        drawn = set(selection.data.row_numbers.tolist())
        assert selection.is_sampled
        assert set(selection.rows) <= drawn
        assert "About " in str(selection.decisions) or not selection.n_outliers
        same(answers_at(selection, BASE), answers(selection))
        np.testing.assert_array_equal(answers(selection).labels[selection.rows], np.arange(12))
        assert "About " not in str(selection.decisions)
    assert {*must.tolist(), *range(15)} <= drawn


def test_groups_are_kept_beyond_the_sample_too(sampled):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(480, 5)), 20.0 + 3.0 * rng.normal(size=(120, 5))])
    sparse = np.arange(600) >= 480
    assert MOSAICOutlierDetector(0.2).fit(X).is_outlier_[sparse].mean() > 0.8
    protected = MOSAICOutlierDetector(0.2, min_group=10).fit(X)
    assert protected.is_outlier_[sparse].mean() < 0.3
    np.testing.assert_array_equal(protected.predict(X) == -1, protected.is_outlier_)


def test_sample_tells_nearly_what_all_points_tell(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    whole = MOSAIC(10).fit(X).selection_
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 500)
    part = MOSAIC(10).fit(X).selection_
    assert part.is_sampled
    assert part.coverage == pytest.approx(whole.coverage, abs=0.03)
    assert part.outlier_share == pytest.approx(whole.outlier_share, abs=0.01)


# One ruler

RULED = {
    "blobs": BLOBS.X,
    "roll": datasets.swiss_roll(300, random_state=0),
    "digits": load_digits().data[:300],
    "cloud": np.random.default_rng(0).normal(size=(300, 16)),
}


@pytest.mark.slow
@pytest.mark.parametrize("X", RULED.values(), ids=RULED.keys())
def test_coverage_does_not_fall_when_more_are_chosen(X):
    found = [MOSAIC(k).fit(X).coverage_ for k in range(1, 21)]
    assert (np.diff(found) >= -1e-3).all()
    assert found[-1] > found[0]


# Other thresholds


@pytest.mark.parametrize(
    "changes",
    [
        {"n_representatives": 4},
        {"n_representatives": 0.05},
        {"coverage": 0.7},
        {"contamination": 0.1},
        {"contamination": 0.1, "min_group": 3},
        {"outliers": "keep"},
        {"outliers": "report"},
    ],
    ids=str,
)
def test_other_thresholds_give_what_a_fresh_fit_gives(changes):
    again = MOSAIC(10).fit(BLOBS.X).rethreshold(**changes)
    number = {"n_representatives": "auto"} if "coverage" in changes else {}
    fresh = MOSAIC(**({"n_representatives": 10} | number | changes)).fit(BLOBS.X)
    np.testing.assert_array_equal(again.representative_indices_, fresh.representative_indices_)
    same(answers(again.selection_), answers(fresh.selection_))
    assert again.explain() == fresh.explain()
    assert again.coverage_ == fresh.coverage_
