"""The result of a fit: one frozen value that gives the same answer however it is asked."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.choosing import Selection
from mosaic.choosing.choose import Chooser
from mosaic.kernels import RBF
from mosaic.metrics import explained_share

BLOBS = datasets.blobs_with_gross_outliers()


def same(one, other, rtol=1e-9):
    """Two sets of answers agree."""
    np.testing.assert_allclose(one.effective_count, other.effective_count, rtol=rtol)
    np.testing.assert_array_equal(one.is_outlier, other.is_outlier)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.representation_error, other.representation_error, atol=1e-7)


# One value


def test_selection_is_frozen_and_holds_what_was_found_and_decided():
    selection = MOSAIC(6).fit(BLOBS.X).selection_
    assert isinstance(selection, Selection)
    with pytest.raises(FrozenInstanceError):
        selection.cut = None
    names = {field.name for field in fields(Selection)}
    assert {"material", "settings", "members", "gains", "cut", "groups"} <= names
    assert len(selection.rows) == len(selection.chosen) == len(selection.gains) == 6
    assert selection.settings.n_representatives == 6
    assert selection.n_outliers == selection.answers.is_outlier.sum() == 8
    assert not selection.is_outlier[selection.chosen].any()


def test_estimator_says_what_its_selection_says():
    for estimator in (MOSAIC(6), MOSAICOutlierDetector()):
        estimator.fit(BLOBS.X)
        answers = estimator.selection_.answers
        np.testing.assert_array_equal(estimator.effective_count_, answers.effective_count)
        np.testing.assert_array_equal(estimator.is_outlier_, answers.is_outlier)
        if isinstance(estimator, MOSAIC):
            np.testing.assert_array_equal(estimator.representative_indices_, estimator.selection_.rows)
            np.testing.assert_array_equal(estimator.labels_, answers.labels)


class Noted(RBF):
    """A kernel that notes the rows and the points of the similarities that are computed."""

    computed: ClassVar[list[tuple[int, int]]] = []

    def _between(self, A, B):
        self.computed.append((A.shape[0], B.shape[0]))
        return super()._between(A, B)


def test_labels_and_errors_share_similarities_that_are_computed_once():
    selection = MOSAIC(7).fit(BLOBS.X).selection_
    kernel = Noted(selection.kernel.X, selection.kernel.gamma)
    material = replace(selection.material, geometry=replace(selection.material.geometry, kernel=kernel))
    noted = replace(selection, material=material)
    same(noted.answers_at(BLOBS.X), selection.answers)
    Noted.computed.clear()
    same(noted.answers_at(BLOBS.X), selection.answers)
    assert sum(rows for rows, points in Noted.computed if points == 7) == len(BLOBS.X)


def test_without_representatives_nobody_stands_for_a_row_and_nothing_of_it_is_explained():
    selection = MOSAICOutlierDetector().fit(BLOBS.X).selection_
    same(selection.answers_at(BLOBS.X), selection.answers)
    assert (selection.answers.labels == -1).all()
    np.testing.assert_allclose(selection.answers.representation_error, 1.0)
    assert selection.coverage == pytest.approx(0.0)


def test_selector_and_detector_agree_on_counts_and_outliers():
    one, other = MOSAIC(6).fit(BLOBS.X), MOSAICOutlierDetector().fit(BLOBS.X)
    np.testing.assert_array_equal(one.effective_count_, other.effective_count_)
    np.testing.assert_array_equal(one.is_outlier_, other.is_outlier_)


def test_representatives_stand_for_themselves_and_outliers_have_none():
    selection = MOSAIC(6).fit(BLOBS.X).selection_
    labels = selection.answers.labels
    np.testing.assert_array_equal(labels[selection.rows], np.arange(6))
    np.testing.assert_array_equal(labels == -1, selection.answers.is_outlier)


def test_program_is_solved_when_somebody_asks_and_not_before():
    selection = MOSAIC(6).fit(BLOBS.X).selection_
    assert selection.answers.labels is not None
    assert selection.coverage > 0
    assert not selection.material.is_solved
    assert not selection.is_proven
    assert selection.certificate.k == 6
    assert selection.is_proven
    assert not selection.material.is_solved  # the certificate has a program of its own
    assert selection.material.solved.influence.max() > 0
    assert selection.material.is_solved


def test_coverage_is_the_explained_share_of_the_rows_that_belong():
    selection = MOSAIC(6).fit(BLOBS.X).selection_
    weights = selection.material.points.weights * ~selection.is_outlier
    assert selection.coverage == pytest.approx(explained_share(selection.kernel, selection.chosen, sample_weight=weights))


def test_gains_are_the_mean_similarity_to_the_nearest_pick():
    model = MOSAIC(6).fit(BLOBS.X)
    cover = Chooser(model.selection_).cover(6)
    S = np.exp(-cdist(BLOBS.X[~model.is_outlier_], BLOBS.X[model.representative_indices_]) / cover.reach)
    values = [S[:, : k + 1].max(axis=1).mean() for k in range(6)]
    np.testing.assert_allclose(np.cumsum(model.selection_.gains), values, rtol=1e-6)


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
    selection = MOSAIC(6, **settings).fit(X).selection_
    same(selection.answers_at(X), selection.answers)


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_rows_of_a_matrix_get_their_own_answers_too(name):
    X = BLOBS.X[:150] + 20.0
    K = rbf_kernel(X, gamma=0.1) if name == "rbf" else X @ X.T
    selection = MOSAIC(6, kernel="precomputed").fit(K).selection_
    same(selection.answers_at(K), selection.answers, rtol=1e-6)


def test_outlier_that_must_be_included_is_none_whether_asked_as_known_or_as_new():
    odd = np.flatnonzero(BLOBS.is_outlier)[:2]
    for outliers in ("reject", "report"):
        selection = MOSAIC(6, outliers=outliers).fit(BLOBS.X, must_include=odd).selection_
        assert not selection.answers.is_outlier[odd].any()
        same(selection.answers_at(BLOBS.X), selection.answers)


def test_rows_without_weight_are_answered_as_new_ones():
    weights = np.ones(len(BLOBS.X))
    weights[::10] = 0.0
    selection = MOSAIC(6).fit(BLOBS.X, sample_weight=weights).selection_
    same(selection.answers_at(BLOBS.X), selection.answers)


def test_answers_do_not_depend_on_the_batch():
    selection, Y = MOSAIC(6).fit(BLOBS.X).selection_, BLOBS.X[:30] + 0.3
    together = selection.answers_at(Y)
    for i in range(30):
        same(selection.answers_at(Y[i : i + 1]), type(together)(*(values[i : i + 1] for values in together)))


# A sample of many points


@pytest.fixture
def sampled(monkeypatch):
    """Decisions are made with 200 points."""
    monkeypatch.setattr("mosaic.estimators.proof.DECISION_SAMPLE", 200)


BASE = np.vstack([np.random.default_rng(0).normal(size=(594, 3)), 50.0 * np.eye(3), -50.0 * np.eye(3)])


def test_more_points_than_a_sample_get_consistent_answers(sampled):
    selection = MOSAIC(6).fit(BASE).selection_
    assert selection.is_sampled
    assert selection.kernel.n == 200
    assert set(selection.rows) <= set(selection.material.row_numbers)
    assert "About " in str(selection.decisions) or not selection.n_outliers
    same(selection.answers_at(BASE), selection.answers)
    assert len(selection.answers.labels) == len(BASE)
    np.testing.assert_array_equal(selection.answers.labels[selection.rows], np.arange(6))
    assert "About " not in str(selection.decisions)


def test_sample_tells_nearly_what_all_points_tell(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    whole = MOSAIC(10).fit(X).selection_
    monkeypatch.setattr("mosaic.estimators.proof.DECISION_SAMPLE", 500)
    part = MOSAIC(10).fit(X).selection_
    assert part.is_sampled
    assert part.coverage == pytest.approx(whole.coverage, abs=0.03)
    assert part.outlier_share == pytest.approx(whole.outlier_share, abs=0.01)


def test_sample_has_all_that_constraints_name(sampled, rng):
    groups = np.where(np.arange(len(BASE)) < 15, "few", "many")
    must = rng.permutation(len(BASE))[:5]
    material = MOSAIC(12).fit(BASE, groups=groups, quotas={"few": 6, "many": 6}, must_include=must).selection_.material
    assert np.isin(must, material.row_numbers).all()
    assert np.isin(np.arange(15), material.row_numbers).all()


def test_groups_are_kept_beyond_the_sample_too(sampled):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(480, 5)), 20.0 + 3.0 * rng.normal(size=(120, 5))])
    sparse = np.arange(600) >= 480
    condemned = MOSAICOutlierDetector(0.2).fit(X)
    assert condemned.is_outlier_[sparse].mean() > 0.8
    protected = MOSAICOutlierDetector(0.2, min_group=10).fit(X)
    assert protected.is_outlier_[sparse].mean() < 0.3
    np.testing.assert_array_equal(protected.predict(X) == -1, protected.is_outlier_)


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


def test_outliers_do_not_depend_on_the_number_of_representatives():
    flagged = [MOSAIC(k).fit(BLOBS.X).is_outlier_ for k in (1, 5, 40)]
    assert all((mask == flagged[0]).all() for mask in flagged)


# Other thresholds


@pytest.mark.parametrize(
    "changes",
    [
        {"n_representatives": 4},
        {"n_representatives": 0.05},
        {"coverage": 0.7},
        {"min_support": 30},
        {"contamination": 0.1},
        {"contamination": 0.1, "min_group": 3},
        {"outliers": "keep"},
        {"outliers": "report"},
    ],
    ids=str,
)
def test_other_thresholds_give_what_a_fresh_fit_gives(changes):
    again = MOSAIC(10).fit(BLOBS.X).rethreshold(**changes)
    number = {"n_representatives": "auto"} if {"coverage", "min_support"} & set(changes) else {}
    fresh = MOSAIC(**({"n_representatives": 10} | number | changes)).fit(BLOBS.X)
    np.testing.assert_array_equal(again.representative_indices_, fresh.representative_indices_)
    same(again.selection_.answers, fresh.selection_.answers)
    assert again.explain() == fresh.explain()
    assert again.coverage_ == fresh.coverage_
