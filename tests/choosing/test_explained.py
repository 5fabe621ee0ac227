from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mosaic import MOSAIC, InvalidInputError, datasets
from mosaic.choosing.cover import Slots
from mosaic.choosing.explained import Explaining, _exchange_gains, exchange, explain_most
from mosaic.kernels import make_kernel
from mosaic.metrics import unexplained

CLOUD = np.random.default_rng(0).normal(size=(60, 3))
GROSS = datasets.blobs_with_gross_outliers()


def cloud_problem(n=40, ridge=1.0, seed=0):
    rng = np.random.default_rng(seed)
    kernel = make_kernel(rng.normal(size=(n, 2)), "rbf", gamma=0.5)
    targets, candidates = np.arange(n), np.sort(rng.choice(n, n // 2, replace=False))
    weights = rng.uniform(0.5, 3.0, n)
    return Explaining.of(kernel, targets, candidates, weights, ridge)


def error(problem, picks):
    """By the definition, of the targets, which are all points of the kernel here."""
    return float(problem.weights @ unexplained(problem.kernel, problem.places[list(picks)], problem.ridge))


@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_gains_of_picks_are_what_they_lower_the_error_by(ridge):
    problem = cloud_problem(ridge=ridge)
    found = list(explain_most(problem, Slots.free(20, 20), twins=np.arange(20)))
    assert sorted(pick.candidate for pick in found) == list(range(20))
    left = float(problem.weights @ problem.kernel.diagonal())
    for s, pick in enumerate(found, 1):
        now = error(problem, [p.candidate for p in found[:s]])
        assert left - now == pytest.approx(pick.gain, abs=1e-9 * left)
        left = now


def test_each_pick_is_the_one_that_lowers_the_error_most():
    problem = cloud_problem()
    chosen: list[int] = []
    for pick in explain_most(problem, Slots.free(20, 6), twins=np.arange(20)):
        rest = [j for j in range(20) if j not in chosen]
        assert pick.candidate == min(rest, key=lambda j: error(problem, [*chosen, j]))
        chosen.append(pick.candidate)
    assert len(chosen) == 6


@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_every_exchange_is_weighed_by_what_it_does(ridge):
    problem = cloud_problem(ridge=ridge)
    picks = [3, 8, 11, 17]
    Q = np.array([problem.among(pick) for pick in picks])
    P = np.array([problem.toward(problem.K[:, pick]) for pick in picks])
    gains, before = _exchange_gains(Q, P, picks, problem), error(problem, picks)
    for place in range(4):
        for candidate in set(range(20)) - set(picks):
            other = [*picks[:place], candidate, *picks[place + 1 :]]
            assert gains[place, candidate] == pytest.approx(before - error(problem, other), abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_exchanges_lower_the_error_until_none_helps(seed):
    problem = cloud_problem(seed=seed)
    start = [0, 1, 2]
    found = exchange(problem, start, Slots.free(20, 3), twins=np.arange(20))
    assert error(problem, found) < error(problem, start)
    for place, candidate in ((p, c) for p in range(3) for c in set(range(20)) - set(found)):
        other = [*found[:place], candidate, *found[place + 1 :]]
        assert error(problem, other) >= error(problem, found) - 1e-7
    best = min(error(problem, S) for S in combinations(range(20), 3))
    assert error(problem, found) <= 1.05 * best


def test_exchanges_obey_slots_copies_and_what_stays():
    problem = cloud_problem()
    of, twins = np.arange(20) % 2, np.arange(20) // 2 * 2
    slots = Slots(of, np.array([2, 1]))
    barred = np.arange(20) >= 16
    found = exchange(problem, [0, 2, 5], slots, twins=twins, fixed=[2], barred=barred)
    assert found[1] == 2
    assert of[found].tolist() == [0, 0, 1]
    assert len(set(twins[found].tolist())) == 3
    assert not barred[found].any()
    greedy = [pick.candidate for pick in explain_most(problem, slots, twins=twins, forced=[7], last=barred.astype(int))]
    assert greedy[0] == 7
    assert sorted(of[greedy].tolist()) == [0, 0, 1]


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


def test_diversity_holds_and_the_objective_can_change_afterwards():
    model = MOSAIC(5, objective="explained", diversity=0.05).fit(CLOUD)
    K = model.transform(CLOUD[model.representative_indices_])
    assert (1 - K[~np.eye(5, dtype=bool)]).min() >= 0.05
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
    model = MOSAIC(10, objective="explained", strategy="sketch").fit(GROSS.X)
    plain = MOSAIC(10, strategy="sketch").fit(GROSS.X)
    assert model.certificate_.error < plain.certificate_.error
    assert 0 < model.certificate_.bound_without_ridge < model.certificate_.error_without_ridge


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InvalidInputError, match="mode='paper' chooses by influence and knows no objective='explained'"):
        MOSAIC(5, objective="explained", mode="paper").fit(CLOUD)
    with pytest.raises(InvalidInputError, match="objective must be 'similar' or 'explained'; got 'both'"):
        MOSAIC(5, objective="both").fit(CLOUD)
