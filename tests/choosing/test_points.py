"""The distinct points behind rows: what their order and their random numbers depend on, and what they do not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import ortho_group

from mosaic.arrays.codes import priority, row_codes
from mosaic.choosing import Points
from mosaic.exceptions import InvalidInputError

FORMATS = [np.asarray, sp.csr_array]


def lattice():
    """Full of points at the same distance from the centre."""
    return np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)


DATA = {"cloud": np.random.default_rng(0).normal(size=(200, 4)), "lattice": lattice()}


# Order


@pytest.mark.parametrize("make", FORMATS)
def test_nearest_to_the_centre_come_first(rng, make):
    X = rng.normal(size=(100, 3))
    ordered = X[Points.of(make(X)).first]
    distances = np.linalg.norm(ordered - X.mean(axis=0), axis=1)
    assert (np.diff(distances) >= -1e-7).all()


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("X", DATA.values(), ids=DATA.keys())
def test_order_of_rows_does_not_matter_and_sparse_points_are_ordered_as_dense_ones(rng, X, make):
    dense, expected = Points.of(X), Points.of(make(X))
    np.testing.assert_array_equal(expected.first, dense.first)
    np.testing.assert_array_equal(expected.priority, dense.priority)
    for _ in range(5):
        shuffled = X[rng.permutation(len(X))]
        np.testing.assert_array_equal(shuffled[Points.of(make(shuffled)).first], X[dense.first])


def test_order_of_columns_unit_rotation_and_shift_do_not_matter():
    X = DATA["cloud"]
    expected = Points.of(X).first
    moved = [X[:, [2, 0, 3, 1]], 2.0**-30 * X, 1024.0 * X, X @ ortho_group.rvs(4, random_state=0), X + 10.0, -X]
    for other in (*moved, *map(sp.csr_array, moved[:3])):
        np.testing.assert_array_equal(Points.of(other).first, expected)
    np.testing.assert_array_equal(Points.of(X @ X.T, pairwise=True).first, expected)  # similarities


# Copies and weights


@pytest.mark.parametrize("make", FORMATS)
def test_copies_are_one_point_with_their_number_as_weight(rng, make):
    distinct, times = rng.normal(size=(30, 3)), rng.integers(1, 5, 30)
    X = np.repeat(distinct, times, axis=0)[rng.permutation(times.sum())]
    points = Points.of(make(X))
    assert points.n == 30
    assert points.total == len(X)
    np.testing.assert_array_equal(X[points.first][points.point_of], X)
    for number in range(30):
        copies = np.flatnonzero(points.point_of == number)
        assert points.first[number] == copies[0]
        assert points.weights[number] == len(copies)
    by_weight = Points.of(make(distinct), times)
    np.testing.assert_array_equal(distinct[by_weight.first], X[points.first])
    np.testing.assert_array_equal(by_weight.weights, points.weights)
    np.testing.assert_array_equal(by_weight.priority, points.priority)


def test_row_without_weight_is_no_point(rng):
    X, weights = rng.normal(size=(20, 3)), np.ones(20)
    weights[[3, 7]] = 0.0
    points = Points.of(X, weights)
    assert points.n == 18
    assert points.point_of[[3, 7]].tolist() == [-1, -1]
    np.testing.assert_array_equal(X[points.first], np.delete(X, [3, 7], axis=0)[Points.of(np.delete(X, [3, 7], axis=0)).first])
    assert points.spread(np.arange(18), -5)[[3, 7]].tolist() == [-5, -5]
    with pytest.raises(InvalidInputError, match="sample_weight is zero for all rows"):
        Points.of(X, np.zeros(20))


def test_only_ratios_of_weights_that_are_no_whole_numbers_matter(rng):
    X, weights = rng.normal(size=(25, 2)), rng.uniform(0.1, 2.0, 25)
    one, other = Points.of(X, weights), Points.of(X, 7.3 * weights)
    np.testing.assert_allclose(one.weights, other.weights)
    assert one.total == pytest.approx(25)


# Random numbers and samples


def row_priorities(X):
    return priority(row_codes(X))


@pytest.mark.parametrize("make", FORMATS)
def test_number_of_a_row_depends_on_the_row_alone(rng, make):
    X, order = rng.normal(size=(300, 5)), rng.permutation(300)
    expected = row_priorities(make(X))
    np.testing.assert_array_equal(row_priorities(make(X[order])), expected[order])
    np.testing.assert_array_equal(row_priorities(make(np.hstack([X, np.zeros((300, 2))]))), expected)
    for unit in (1.0, 1e-90, 1e90):
        assert len(np.unique(row_priorities(make(unit * X)))) == 300


@pytest.mark.parametrize("make", FORMATS)
def test_lowest_numbers_are_a_random_sample(make):
    """Ranks of the rows of a line are spread as evenly as chance would have it, at every scale."""
    X = np.linspace(0.0, 1.0, 4096)[:, None] + 1.0
    lowest = np.argsort(row_priorities(make(X)))[:1024]
    parts = np.bincount(lowest // 256, minlength=16)
    assert ((parts - 64) ** 2 / 64).sum() < 35.0  # chi-squared with 15 degrees: 1 in 400


@pytest.mark.parametrize("make", FORMATS)
def test_rows_of_zeros_and_ones_are_sampled_whatever_their_number_of_ones(rng, make):
    X = np.unique((rng.random((2000, 40)) < 0.3) * 1.0, axis=0)
    points = Points.of(make(X))
    assert len(np.unique(points.priority)) == points.n
    ones = X[points.first].sum(axis=1)
    sample = points.sample(np.arange(points.n), 500)
    assert ones[sample].mean() == pytest.approx(ones.mean(), abs=0.5)
    assert ones[sample].std() == pytest.approx(ones.std(), rel=0.2)
    hot = np.eye(50)
    assert len(np.unique(row_priorities(make(hot)))) == 50


@pytest.mark.parametrize("heavy", [0, 3, 400])
def test_a_sample_has_the_frequent_points_and_those_with_the_lowest_numbers(rng, heavy):
    X, weights = rng.normal(size=(5000, 3)), np.ones(5000)
    weights[:heavy] = 1000.0
    points = Points.of(X, weights)
    size = 500
    for among in (np.arange(5000), np.arange(1, 5000, 2)):
        weight, first = points.weights[among], points.priority[among].copy()
        first[weight * size >= weight.sum()] = 0
        np.testing.assert_array_equal(points.sample(among, size), among[np.sort(np.argsort(first, kind="stable")[:size])])
        np.testing.assert_array_equal(points.sample(among, len(among)), among)
