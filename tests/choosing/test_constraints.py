"""Quotas as whole numbers of picks, and rows that must be chosen."""

import numpy as np
import pytest

from mosaic import MOSAIC, InvalidInputError
from mosaic.choosing.settings import whole_numbers


def test_no_other_numbers_are_nearer_to_the_shares(rng):
    for _ in range(100):
        shares, k = rng.uniform(size=3), int(rng.integers(0, 12))
        exact = k * shares / shares.sum()
        numbers = whole_numbers(dict(enumerate(shares)), k)
        found = np.array(list(numbers.values()))
        assert list(numbers) == [0, 1, 2]
        assert found.sum() == k
        assert (np.abs(found - exact) < 1).all()
        others = [np.array([a, b, k - a - b]) for a in range(k + 1) for b in range(k + 1 - a)]
        assert np.abs(found - exact).sum() == pytest.approx(min(np.abs(other - exact).sum() for other in others))


def test_whole_numbers_stay_as_they_are_and_equal_remainders_are_rounded_up_in_the_order_given():
    assert whole_numbers({"a": 0.1, "b": 0.2, "c": 0.7}, 10) == {"a": 1, "b": 2, "c": 7}
    assert whole_numbers({"a": 3.0, "b": 0.0, "c": 3.0}, 4) == {"a": 2, "b": 0, "c": 2}
    assert whole_numbers(dict.fromkeys("abc", 1.0), 4) == {"a": 2, "b": 1, "c": 1}
    assert whole_numbers(dict.fromkeys("abc", 1.0), 5) == {"a": 2, "b": 2, "c": 1}
    # 4/3 and 1/3 have the same remainder, though not in floating point.
    assert whole_numbers({"a": 4.0, "b": 1.0, "c": 1.0}, 2) == {"a": 2, "b": 0, "c": 0}


@pytest.mark.parametrize("shares", [{}, {"a": 0.0, "b": 0.0}, {"a": float("nan")}])
def test_shares_without_a_sum_are_refused(shares):
    with pytest.raises(InvalidInputError, match="positive sum"):
        whole_numbers(shares, 3)


def test_rows_that_must_be_chosen_are_chosen_however_few_rows_have_the_coverage(rng):
    X = rng.normal(size=(60, 2))
    chosen = MOSAIC(coverage=0.01, outliers="keep").fit(X, must_include=[3, 17, 41]).representative_indices_
    assert {3, 17, 41} <= set(chosen.tolist())
