"""objective="explained": picks for what the certificate bounds."""

from __future__ import annotations

import numpy as np
import pytest

from mosaic import MOSAIC, InvalidInputError, datasets

CLOUD = np.random.default_rng(0).normal(size=(60, 3))
GROSS = datasets.blobs_with_gross_outliers()


@pytest.mark.parametrize("k", [3, 10, 30])
def test_picks_leave_less_unexplained_than_those_for_similarity(k):
    similar = MOSAIC(k).fit(GROSS.X)
    explained = MOSAIC(k, objective="explained").fit(GROSS.X)
    assert explained.certificate_.error < similar.certificate_.error
    assert explained.certificate_.excess < similar.certificate_.excess
    assert explained.selection_.gains.sum() < similar.selection_.gains.sum()
    assert len(set(explained.representative_indices_.tolist())) == k
    assert not GROSS.is_outlier[explained.representative_indices_].any()


def test_constraints_hold():
    groups = np.arange(len(GROSS.X)) % 3
    model = MOSAIC(9, objective="explained")
    model.fit(GROSS.X, groups=groups, quotas={0: 2, 1: 3, 2: 4}, must_include=[5, 7], exclude=[1, 2, 3])
    picks = model.representative_indices_
    assert np.bincount(groups[picks]).tolist() == [2, 3, 4]
    assert {5, 7} <= set(picks.tolist())
    assert not {1, 2, 3} & set(picks.tolist())
    few = MOSAIC(4, objective="explained").fit(CLOUD, candidates=range(10, 20)).representative_indices_
    assert set(few.tolist()) <= set(range(10, 20))


def test_copies_are_not_chosen_twice_and_weights_count():
    X = np.repeat(CLOUD[:12], 3, axis=0)
    model = MOSAIC(8, objective="explained", outliers="keep").fit(X)
    assert len(np.unique(X[model.representative_indices_], axis=0)) == 8
    heavy = MOSAIC(1, objective="explained", outliers="keep").fit(
        CLOUD, sample_weight=np.where(np.arange(60) == 7, 500.0, 1.0)
    )
    assert heavy.representative_indices_.tolist() == [7]


@pytest.mark.parametrize("number", [{"coverage": 0.8}, {"min_support": 5}, {"n_representatives": "auto"}])
def test_the_number_can_be_left_open(number):
    model = MOSAIC(objective="explained", **number).fit(CLOUD)
    assert 1 <= model.n_representatives_ <= 60
    if "coverage" in number:
        assert model.coverage_ >= 0.8


def test_the_objective_can_change_afterwards():
    again = MOSAIC(5).fit(CLOUD).rethreshold(objective="explained")
    fresh = MOSAIC(5, objective="explained").fit(CLOUD)
    np.testing.assert_array_equal(again.representative_indices_, fresh.representative_indices_)
    assert "unexplained" in " ".join(fresh.explain())


def test_order_of_rows_does_not_matter():
    order = np.random.default_rng(3).permutation(len(CLOUD))
    first = MOSAIC(7, objective="explained").fit(CLOUD).representative_indices_
    second = MOSAIC(7, objective="explained").fit(CLOUD[order]).representative_indices_
    np.testing.assert_array_equal(first, order[second])


def test_by_passes_it_is_the_same_objective():
    model = MOSAIC(10, objective="explained", algorithm="sketch").fit(GROSS.X)
    plain = MOSAIC(10, algorithm="sketch").fit(GROSS.X)
    assert model.certificate_.error < plain.certificate_.error
    assert 0 < model.certificate_.bound_without_ridge < model.certificate_.error_without_ridge


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInputError, match=r"objective is not for algorithm='paper'.*; got 'explained'"):
        MOSAIC(5, objective="explained", algorithm="paper").fit(CLOUD)
    with pytest.raises(InvalidInputError, match="objective must be 'similar' or 'explained'; got 'both'"):
        MOSAIC(5, objective="both").fit(CLOUD)
