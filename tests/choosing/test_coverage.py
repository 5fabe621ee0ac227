"""Coverage and its bounds against their definition, every subset, and what all who tell them say."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import mosaic
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, datasets
from mosaic.choosing.coverage import Coverage
from mosaic.kernels import make_kernel

BLOBS = datasets.blobs_with_gross_outliers()
CLOUD = np.random.default_rng(0).normal(size=(200, 4))


def by_hand(D, chosen, weights):
    """1 − mean distance to the nearest of the chosen / mean distance to the best single row."""
    return 1.0 - (weights @ D[:, chosen].min(axis=1)) / (weights @ D).min()


@pytest.mark.parametrize(("kernel", "metric"), [("rbf", "euclidean"), ("laplacian", "cityblock"), ("linear", "euclidean")])
def test_coverage_is_how_much_nearer_rows_are_to_their_picks_than_to_the_best_single_row(kernel, metric):
    model = MOSAIC(6, kernel=kernel).fit(BLOBS.X)
    X, belongs, picks = BLOBS.X, ~model.is_outlier_, model.representative_indices_
    D = cdist(X[belongs], X[belongs], metric)
    place = np.searchsorted(np.flatnonzero(belongs), picks)
    assert model.coverage_ == pytest.approx(by_hand(D, place, np.ones(len(D))), rel=1e-9)
    errors = cdist(X, X[picks], metric).min(axis=1) / D.mean(axis=0).min()
    np.testing.assert_allclose(model.representation_error_, errors, rtol=1e-6, atol=1e-9)
    assert model.coverage_ == pytest.approx(1.0 - model.representation_error_[belongs].mean(), rel=1e-9)
    assert model.score(X) == pytest.approx(model.coverage_, rel=1e-6)


def test_rows_count_as_often_as_their_weights_say(rng):
    X, weights = rng.normal(size=(60, 3)), rng.integers(1, 5, 60).astype(float)
    model = MOSAIC(5, outliers="keep", scale=False).fit(X, sample_weight=weights)
    assert model.coverage_ == pytest.approx(by_hand(cdist(X, X), model.representative_indices_, weights), rel=1e-9)
    assert model.coverage_ == pytest.approx(1.0 - np.average(model.representation_error_, weights=weights), rel=1e-9)
    copies = np.repeat(X, weights.astype(int), axis=0)
    assert MOSAIC(5, outliers="keep", scale=False).fit(copies).coverage_ == pytest.approx(model.coverage_, rel=1e-9)


@pytest.mark.parametrize("algorithm", [None, "paper"])
def test_coverage_means_the_same_for_every_algorithm_and_does_not_depend_on_the_bandwidth(algorithm):
    model = MOSAIC(5, algorithm=algorithm, outliers="keep", scale=False).fit(CLOUD)
    assert model.coverage_ == pytest.approx(by_hand(cdist(CLOUD, CLOUD), model.representative_indices_, np.ones(200)), rel=1e-9)
    assert model.facts_.curve.coverage[len(model.representative_indices_) - 1] == pytest.approx(model.coverage_)


def test_equal_rows_are_covered_by_any_of_them():
    model = MOSAIC(1).fit(np.ones((9, 2)))
    assert model.coverage_ == 1.0
    np.testing.assert_array_equal(model.representation_error_, 0.0)
    assert model.score(np.ones((1, 2))) == 1.0


def test_a_score_needs_a_row_that_belongs():
    with pytest.raises(InvalidInputError, match="X has no row that belongs"):
        MOSAIC(5).fit(BLOBS.X).score(np.full((2, 2), 1e3))


def test_of_many_rows_the_best_single_one_is_among_those_in_the_middle(monkeypatch):
    exact = MOSAIC(20).fit(BLOBS.X).coverage_
    monkeypatch.setattr("mosaic.choosing.coverage.MOST_PAIRS", 400 * 40)
    model = MOSAIC(20).fit(BLOBS.X)
    assert exact - 0.01 < model.coverage_
    assert mosaic.path(BLOBS.X).bound is None


# Bounds


def small_problem(seed):
    """Points, some of them twice, weights, some of them zero, and which of the points may be chosen."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) * 10.0 ** rng.integers(-3, 4)
    X[int(n * 0.8) :] = X[0] + 1e-3 * seed % 2
    weights = rng.integers(0, 4, n) * rng.choice([1.0, 0.37])
    weights[0] = 1.0
    return X.astype([np.float32, np.float64][seed % 2]), weights, rng


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine"])
def test_no_rows_have_more_than_the_bound_of_their_number(kernel):
    tight = []
    for seed in range(150):
        X, weights, rng = small_problem(seed)
        similar = make_kernel(X + (kernel == "cosine"), kernel, gamma=1.0)
        measure = Coverage(similar, weights)
        D = similar.distances(slice(None), np.arange(len(X))) ** (1.0 / similar.order)
        candidates = np.sort(rng.choice(len(X), max(len(X) - 2, 1), replace=False))
        ranked = rng.permutation(candidates)
        bounds, along = measure.bounds(candidates, ranked, 1 + seed % len(ranked)), measure.along(ranked)
        for k in range(1, len(candidates) + 1):
            least = min(weights @ D[:, list(some)].min(axis=1) for some in combinations(candidates, k))
            scale = (weights @ D[:, weights > 0]).min()
            best = 1.0 - least / scale if scale > 0 else 1.0 if least <= 0 else -np.inf
            assert bounds[k - 1] >= best
            assert bounds[k - 1] >= along[k - 1]
            tight.append(bounds[k - 1] - best if scale > 0 else 0.0)
    assert np.median(tight) < 0.02


@pytest.mark.parametrize("constraints", [{}, {"exclude": [0, 1, 2]}, {"must_include": [7]}, {"groups": np.arange(14) % 2}])
def test_the_bound_of_a_curve_is_true_for_every_number_within_the_constraints(constraints, rng):
    X = rng.normal(size=(14, 2))
    curve = mosaic.path(X, fit_params=constraints, outliers="keep", scale=False)
    may, must = np.setdiff1d(np.arange(14), constraints.get("exclude", [])), constraints.get("must_include", [])
    D = cdist(X, X)
    for k in range(1, len(curve.indices) + 1):
        sets = [list(some) for some in combinations(may, k) if set(must) <= set(some)]
        best = max(by_hand(D, some, np.ones(14)) for some in sets)
        assert best <= curve.bound[k - 1] <= 1.0
    assert curve.bound[-1] == pytest.approx(curve.coverage[-1], abs=1e-6)


def test_the_bound_is_near_the_curve_for_every_number():
    curve = mosaic.path(BLOBS.X)
    assert (curve.bound >= curve.coverage).all()
    assert (curve.bound - curve.coverage)[4:].max() < 0.05
    assert np.median(curve.bound - curve.coverage) < 0.01


def test_fewer_rows_than_are_needed_at_least_do_not_reach_a_coverage():
    curve = mosaic.path(BLOBS.X)
    for share in (0.3, 0.6, 0.8, 0.9):
        least = curve.least_number(share)
        assert least <= MOSAIC(coverage=share).fit(BLOBS.X).n_representatives_
        assert MOSAIC(least - 1).fit(BLOBS.X).coverage_ < share
    assert curve.least_number(0.9999) is None  # more than are on the curve


# As many as needed


@pytest.mark.parametrize("constraints", [{}, {"must_include": [1, 8, 30]}, {"groups": np.arange(200) % 3, "quotas": "equal"}])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_a_coverage_is_reached_also_within_constraints(share, constraints):
    model = MOSAIC(coverage=share).fit(CLOUD, **constraints)
    assert model.coverage_ >= share
    assert f"as many as a coverage of {100 * share:g} % needs" in str(model.explain())


def test_a_coverage_of_everything_takes_every_distinct_row_that_belongs():
    X = np.vstack([CLOUD[:40], CLOUD[:10]])
    model = MOSAIC(coverage=1.0, outliers="keep").fit(X)
    assert (model.coverage_, model.n_representatives_) == (1.0, 40)


def test_a_coverage_out_of_reach_is_refused_with_what_is_reached():
    few = {"candidates": np.arange(5)}
    with pytest.raises(InvalidInputError, match=r"coverage cannot be reached: all 5 rows .* reach (\d+) %; got 0\.9") as refused:
        MOSAIC(coverage=0.9).fit(CLOUD, **few)
    reached = float(str(refused.value).split("reach ")[1].split(" %")[0]) / 100
    assert MOSAIC(coverage=reached).fit(CLOUD, **few).coverage_ >= reached
    with pytest.raises(InvalidInputError, match=r"`?coverage=0\.5`? and quotas that add up to 5 each say how many"):
        MOSAIC(coverage=0.5).fit(CLOUD, groups=np.arange(200) % 2, quotas={0: 3, 1: 2})


def test_without_representatives_there_is_no_coverage():
    selection = MOSAICOutlierDetector().fit(BLOBS.X).selection_
    np.testing.assert_array_equal(selection.errors_of_rows, 1.0)
    assert selection.coverage == 0.0
