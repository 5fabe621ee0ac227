"""Parameters and constraints of MOSAIC: what is refused, and with which words; limits of memory; seeds."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits

import mosaic
from mosaic import MOSAIC, Diffusion, InvalidInputError, MemoryBudgetError, Paper, Polynomial, datasets

GROSS = datasets.blobs_with_gross_outliers()
ROLL = datasets.swiss_roll(250)
CLOUD = np.random.default_rng(0).normal(size=(200, 4))
DIGITS = load_digits().data[:600]


def test_too_small_a_budget_is_refused_with_the_numbers():
    with pytest.raises(MemoryBudgetError, match=r"200 rows × 4 features need about [\d.]+ MiB; the budget is 98 KiB"):
        MOSAIC(5, memory_budget=1e5).fit(CLOUD)
    with pytest.raises(MemoryBudgetError, match="Raise memory_budget, use float32"):
        mosaic.estimate(CLOUD, memory_budget=1e5)


@pytest.mark.parametrize("X", [ROLL, GROSS.X, CLOUD, DIGITS], ids=["roll", "gross", "cloud", "digits"])
def test_limits_of_memory_change_nothing(X):
    free = MOSAIC(10).fit(X)
    budget = 1.01 * mosaic.estimate(X).memory
    limited = MOSAIC(10, memory_budget=budget).fit(X)
    for attribute in ("representative_indices_", "is_outlier_", "effective_count_", "labels_", "coverage_"):
        np.testing.assert_array_equal(getattr(limited, attribute), getattr(free, attribute), err_msg=attribute)
    assert limited.certificate_ == free.certificate_


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.int64(3), lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)]
)
def test_same_seed_same_answer(make):
    seeds = [make(), make()]
    first, second = (MOSAIC(8, random_state=seed).fit(ROLL) for seed in seeds)
    np.testing.assert_array_equal(first.representative_indices_, second.representative_indices_)
    np.testing.assert_array_equal(first.effective_count_, second.effective_count_)
    if isinstance(seeds[0], np.random.Generator):
        assert seeds[0].bit_generator.state != make().bit_generator.state  # it moves on
    assert MOSAIC(8, random_state=None).fit(ROLL).n_representatives_ == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_representatives": 0}, "whole number >= 1, a share between 0 and 1, or 'auto'; got 0"),
        ({"n_representatives": 201}, "n_representatives is more than there are points .n_samples = 200.; got 201"),
        ({"coverage": 1.5}, "between 0 and 1 .1 needs every row that belongs.; got 1.5"),
        ({"algorithm": Paper(alpha=1.0)}, "alpha must be a finite number > 1 .*; got 1.0. At 1 or below nothing is selected"),
        ({"gamma": -1.0}, "gamma must be a finite number > 0.*; got -1"),
        ({"gamma": "wide"}, "gamma must be a number, 'scale', 'median' or EffectiveCount.*; got 'wide'"),
        ({"outliers": "drop"}, "outliers must be 'reject', 'keep' or 'report'; got 'drop'"),
        ({"contamination": 0.6}, "between 0 and 0.5 .*; got 0.6"),
        ({"algorithm": Paper(diversity=2.0)}, "diversity must be a finite number between 0 and 1 .*; got 2"),
        ({"algorithm": "fast"}, r"algorithm must be None, 'paper' or Paper\(…\); got 'fast'"),
        ({"algorithm": Paper(sketch=3)}, r"sketch must be None or Sketch\(…\); got 3"),
        ({"algorithm": Paper(solver="simplex")}, "solver must be 'auto', .*; got 'simplex'"),
        ({"algorithm": Paper(alpha=5.0, lam=1.0)}, "give alpha or lam, not both; got alpha=5.0 and lam=1.0. Leave one"),
        ({"n_representatives": 3, "coverage": 0.5}, "coverage=0.5 and n_representatives=3 each say how many"),
        (
            {"algorithm": "paper", "coverage": 0.5},
            "coverage is not for algorithm='paper'; got 0.5. Leave algorithm at None, or use n_representatives",
        ),
        ({"algorithm": Paper(op_threshold=2.0)}, "between 0 and 1 .*; got 2"),
        ({"algorithm": Paper(op_threshold=0.0)}, "no representative is left: .* Raise op_threshold"),
        ({"kernel": Polynomial(degree=1.5)}, "degree must be a whole number >= 1; got 1.5"),
        ({"kernel": Diffusion(n_neighbors=0)}, "n_neighbors must be a whole number >= 1; got 0"),
    ],
)
def test_bad_parameters_and_those_that_exclude_one_another_are_refused_with_the_value(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        MOSAIC(**settings).fit(CLOUD)


HALVES = np.arange(200) % 2


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"sample_weight": np.zeros(200)}, "sample_weight is zero for all rows"),
        ({"sample_weight": -np.ones(200)}, "sample_weight must be between 0 and 1e.100; entry 0 is -1"),
        ({"sample_weight": np.ones(3)}, r"one entry for each of 200 points; got shape \(3,\)"),
        ({"groups": np.where(HALVES, np.nan, 1.0), "quotas": {7: 1}}, "which no row has. Groups are 1.0, 'missing'"),
        ({"groups": HALVES, "quotas": 9}, "quotas ask for 18 .0: 9 . 1: 9. and n_representatives for 20"),
        ({"quotas": {"a": 1}}, "quotas need groups. Give groups"),
        ({"groups": HALVES, "quotas": {7: 1}}, "quotas name the group 7, which no row has. Groups are 0, 1"),
        ({"groups": HALVES, "quotas": {0: -1}}, "quotas must be whole numbers >= 0 or shares .*; that of group 0 is -1"),
        ({"groups": HALVES, "quotas": {0: 0.7, 1: 0.7}}, "quotas have shares that add up to 1.4"),
        (
            {"groups": HALVES, "quotas": "all"},
            "quotas must be 'proportional', 'equal', a whole number >= 1, or a dict .*; got 'all'",
        ),
        ({"groups": HALVES, "quotas": {0: 9, 1: 9}}, "quotas ask for 18 .0: 9 . 1: 9. and n_representatives for 20"),
        ({"must_include": [200]}, "must_include must lie in 0 … 199; got 200 … 200"),
        ({"must_include": [1, 1]}, "must_include must not repeat a row number"),
        ({"must_include": range(30)}, "must_include names 30 rows of the data, but only 20 are asked for"),
        ({"must_include": [5], "exclude": [5]}, "1 rows are in must_include and in exclude, the first is row 5"),
        ({"exclude": range(200)}, "no row may be chosen: of 200, candidates leave 200 and exclude takes 200 away"),
        ({"candidates": []}, "no row may be chosen: of 200, candidates leave 0"),
        ({"candidates": range(7)}, "20 representatives of the data are asked for, but 7 are available: 200 rows"),
        ({"groups": HALVES, "must_include": range(0, 40, 2)}, "must_include names 20 rows of group 0, but only 10"),
        ({"must_include": [0], "sample_weight": np.arange(200)}, "must_include names row 0, whose sample_weight is 0"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused_with_the_arithmetic(constraints, message):
    with pytest.raises(InvalidInputError, match=message):
        MOSAIC(20).fit(CLOUD, **constraints)


def test_estimate_knows_the_size_of_the_fit():
    told = mosaic.estimate(np.vstack([CLOUD, CLOUD]), n_representatives=10)
    assert (told.n_rows, told.passes) == (400, 0)
    assert str(told).startswith("400 rows, in memory: about ")


@pytest.mark.slow
@pytest.mark.parametrize("budget", [None, 4e8])
def test_a_fit_and_its_certificate_stay_near_their_estimate_or_their_memory_budget(budget):
    """Peak within a tenth of the budget."""
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    tracemalloc.start()
    try:
        assert MOSAIC(20, memory_budget=budget).fit(X).certificate_.gap < 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if budget:
        assert peak <= 1.1 * budget
    else:
        assert 0.5 <= mosaic.estimate(X, n_representatives=20).memory / peak <= 2.0
