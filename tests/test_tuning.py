"""Defaults: bandwidths that do what they say, ranks that fit into memory, estimates that come true."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from mosaic.datasets import embed, swiss_roll
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.factor import factorize
from mosaic.kernels import RBF, EffectiveCount, Laplacian, make_kernel
from mosaic.tuning import (
    DEFAULT_BUDGET,
    EXACT_SIZE,
    KERNEL_MISS,
    LARGEST_RANK,
    MOST_SIMILARITIES,
    MOST_WORK,
    SMALLEST_COUNT,
    SMALLEST_RANK,
    Estimate,
    affordable_rank,
    expected_rank,
    expected_work,
    fit_bandwidth,
    memory_needed,
    neighbours_wanted,
)

# Neighbours


def test_representative_resembles_its_share_of_the_points():
    assert neighbours_wanted(1000, 10) == 100.0
    assert neighbours_wanted(1000, None) == 50.0


@pytest.mark.parametrize("total", [1, 2, 3, 30, 39, 1000, 10**6])
@pytest.mark.parametrize("k", [None, 0.5, 1, 7, 50, 10**6])
def test_number_of_neighbours_has_bounds(total, k):
    found = neighbours_wanted(total, k)
    assert 1 < found <= max(0.5 * total, 1.001)
    assert found >= min(SMALLEST_COUNT, 0.5 * total)


# Rank


def test_small_data_may_have_full_rank():
    for n in (1, 5, SMALLEST_RANK, 100, EXACT_SIZE):
        assert affordable_rank(n, 8, 10, None) == n
    assert affordable_rank(EXACT_SIZE + 1, 8, 10, None) == LARGEST_RANK


@pytest.mark.parametrize("n", [3000, 10**4, 10**5, 10**6])
def test_rank_of_large_data_keeps_work_and_memory_within_bounds(n):
    rank = affordable_rank(n, 8, 10, None)
    assert SMALLEST_RANK <= rank <= LARGEST_RANK
    assert n * rank**2 <= MOST_WORK
    assert memory_needed(n, rank, 8, 10) <= DEFAULT_BUDGET


@pytest.mark.parametrize("n", [50, 1500, 20_000])
def test_rank_grows_with_the_budget_and_never_beyond_it(n):
    least = memory_needed(n, SMALLEST_RANK, 8, 10)
    budgets = least + np.geomspace(1.0, 4.0 * least, 40)
    ranks = [affordable_rank(n, 8, 10, budget) for budget in budgets]
    assert ranks == sorted(ranks)
    assert ranks[0] == SMALLEST_RANK
    assert ranks[-1] > ranks[0]
    for budget, rank in zip(budgets, ranks, strict=True):
        assert memory_needed(n, rank, 8, 10) <= budget


def test_rank_that_the_user_allows_is_overruled_by_the_budget_and_the_number_of_points_only():
    budget = memory_needed(20_000, 50, 8, 10)
    assert affordable_rank(20_000, 8, 10, None, 700) == 700 > affordable_rank(20_000, 8, 10, None)
    assert affordable_rank(20_000, 8, 10, None, 3) == 3
    assert affordable_rank(20_000, 8, 10, budget, 700) == 50
    assert affordable_rank(30, 8, 10, None, 700) == 30


@pytest.mark.parametrize("max_rank", [0, -1, 1.5, "full", True])
def test_wrong_rank_is_refused(max_rank):
    with pytest.raises(InvalidInputError, match="max_rank must be a whole number"):
        affordable_rank(100, 8, 10, None, max_rank)


def test_single_precision_affords_more():
    budget = memory_needed(20_000, 50, 8, 10)
    assert affordable_rank(20_000, 8, 10, budget) == 50
    assert affordable_rank(20_000, 4, 10, budget) >= 100


def test_too_small_a_budget_is_refused_with_the_numbers():
    for n in (20, 5000):
        needed = memory_needed(n, SMALLEST_RANK, 8, 20)
        with pytest.raises(MemoryBudgetError) as caught:
            affordable_rank(n, 8, 20, 0.5 * needed)
        text = str(caught.value)
        assert f"{n:,} points × 20 features" in text
        asked, given = (float(number) for number in re.findall(r"([\d.]+) MiB", text))
        assert asked == pytest.approx(needed / 2**20, rel=0.05)
        assert given == pytest.approx(0.5 * needed / 2**20, rel=0.05)
        assert "memory_budget" in text
        assert affordable_rank(n, 8, 20, needed) == SMALLEST_RANK


def test_memory_is_that_of_points_factor_and_the_largest_guest():
    kept = 300 * 7 * 8 + 2 * 300 * 40 * 8 + 16 * 300 * 8
    assert memory_needed(300, 40, 8, 7) == kept + 4 * 300 * 300 * 8  # the solver's matrices
    n = 100_000
    kept = n * 7 * 8 + 2 * n * 40 * 8 + 16 * n * 8
    assert memory_needed(n, 40, 8, 7) == kept + MOST_SIMILARITIES * 8


# Bandwidth


def typical_count(kernel, gamma):
    K = type(kernel)(kernel.X, gamma).block(slice(None), np.arange(kernel.n))
    return float(np.median((K**2).sum(axis=0)))


DATA = {
    "roll": swiss_roll(500),
    "cloud": np.random.default_rng(0).normal(size=(500, 10)),
    "noisy roll": embed(swiss_roll(500), 20, noise=0.5),
}
everywhere = pytest.mark.parametrize("X", DATA.values(), ids=DATA.keys())
stationary = pytest.mark.parametrize("kind", [RBF, Laplacian])


@everywhere
@stationary
@pytest.mark.parametrize("m0", [3.0, 20.0, 200.0])
def test_typical_point_resembles_as_many_as_wanted_where_any_rank_will_do(X, kind, m0):
    assert typical_count(kind(X), fit_bandwidth(kind(X), m0, len(X))) == pytest.approx(m0, rel=1e-6)


@everywhere
@stationary
@pytest.mark.parametrize("rank", [40, 150])
def test_kernel_is_made_as_wide_as_the_rank_demands_and_not_wider(X, kind, rank):
    gamma = fit_bandwidth(kind(X), 3.0, rank)
    assert typical_count(kind(X), gamma) > 3.0
    miss = factorize(kind(X, gamma), tol=1e-6, max_rank=rank).relative_error
    assert 0.5 * KERNEL_MISS <= miss <= 2.0 * KERNEL_MISS


def test_rank_holds_for_all_points_though_a_sample_was_looked_at():
    X = swiss_roll(4000)
    gamma = fit_bandwidth(RBF(X), 20.0, 60)
    assert factorize(RBF(X, gamma), tol=1e-6, max_rank=60).relative_error <= 2.0 * KERNEL_MISS


def test_rank_that_suffices_changes_nothing():
    kernel = RBF(DATA["roll"])
    assert fit_bandwidth(kernel, 100.0, 100) == fit_bandwidth(kernel, 100.0, 500)


@everywhere
@stationary
def test_bandwidth_does_not_depend_on_the_order_of_rows(X, kind, rng):
    shuffled = X[rng.permutation(len(X))]
    assert fit_bandwidth(kind(shuffled), 20.0, 500) == pytest.approx(fit_bandwidth(kind(X), 20.0, 500), rel=1e-6)
    # Where a sample is factored the draws differ.
    assert fit_bandwidth(kind(shuffled), 20.0, 100) == pytest.approx(fit_bandwidth(kind(X), 20.0, 100), rel=0.2)


@stationary
def test_bandwidth_follows_the_unit_of_the_data(kind):
    X = DATA["cloud"]
    power = 2 if kind is RBF else 1
    for rank in (100, 500):
        gamma = fit_bandwidth(kind(X), 20.0, rank)
        assert fit_bandwidth(kind(1000.0 * X), 20.0, rank) == pytest.approx(gamma / 1000.0**power, rel=1e-6)


def test_same_seed_gives_the_same_bandwidth():
    X = swiss_roll(3000)
    assert fit_bandwidth(RBF(X), 20.0, 50, random_state=7) == fit_bandwidth(RBF(X), 20.0, 50, random_state=7)


def test_sparse_points_have_the_bandwidth_of_dense_ones():
    X = np.where(np.abs(DATA["cloud"]) < 1.0, 0.0, DATA["cloud"])
    for rank in (100, 500):
        dense = fit_bandwidth(RBF(X), 20.0, rank)
        assert fit_bandwidth(RBF(sp.csr_array(X)), 20.0, rank) == pytest.approx(dense, rel=1e-6)


def test_more_neighbours_than_points_fall_back_on_the_median_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    assert fit_bandwidth(RBF(X), 3.0, 3) == pytest.approx(1 / 4)  # squared distances 1, 4, 9
    assert fit_bandwidth(Laplacian(X), 5.0, 3) == pytest.approx(1 / 2)


# Estimates


def test_estimate_reads_as_a_sentence():
    text = str(Estimate("low-rank", 123_456, 700, 1234.5 * 2**20, 12.34))
    assert text == "123,456 distinct points, low-rank (rank about 700): about 1,234 MiB and 12 s"
    assert "about 0.5 MiB" in str(Estimate("exact", 100, 100, 2**19, 0.01))


@pytest.mark.parametrize("n", [600, 2500])
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_expected_rank_of_a_smooth_kernel_is_near_the_real_one(n, tol):
    kernel = make_kernel(swiss_roll(n), "rbf", gamma=EffectiveCount(n / 20))
    real = factorize(kernel, tol=0.25 * tol).rank
    assert real < n / 2
    assert expected_rank(kernel, n, tol) == pytest.approx(real, rel=0.2)


def test_expected_rank_is_never_above_the_highest_allowed():
    kernel = make_kernel(swiss_roll(1500), "rbf", gamma=EffectiveCount(30.0))
    free = expected_rank(kernel, 1500, 1e-3)
    for limit in (1, 16, 50, 1500):
        assert expected_rank(kernel, limit, 1e-3) == min(free, limit)


def test_expected_rank_of_a_sample_without_structure_is_the_highest_allowed(rng):
    kernel = make_kernel(rng.normal(size=(1500, 30)), "rbf", gamma=EffectiveCount(1.5))
    assert expected_rank(kernel, 1400, 1e-3) == 1400


def test_expected_rank_of_few_points_is_at_most_their_number(rng):
    kernel = make_kernel(rng.normal(size=(40, 30)), "rbf", gamma=EffectiveCount(1.5))
    assert expected_rank(kernel, 700, 1e-3) == 40


def test_expected_rank_of_explicit_features_is_their_number(rng):
    assert expected_rank(make_kernel(rng.normal(size=(1500, 6)), "linear"), 700, 1e-3) == 6


def test_work_grows_with_points_and_rank():
    for rank in (16, 100, 700):
        work = [expected_work(n, rank) for n in (5000, 10_000, 10**6)]
        assert work == sorted(work)
    for n in (5000, 10**6):
        work = [expected_work(n, rank) for rank in (16, 100, 700)]
        assert work == sorted(work)
