"""Effective counts: small programs against the encoding, against formulas written out again, and what must not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic.choosing.outliers import PROGRAM_SIZE, PROGRAMS, ROUNDING_OF_COUNTS, CountingPrograms
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import make_kernel

#: A gap of the small programs that leaves no doubt.
EXACTLY = {"tol": 1e-8}


def counts_of(X, name="rbf", *, weights=None, seed=0, tol=3e-4, **settings):
    """Counts of the points themselves, and what counts."""
    kernel = make_kernel(X, name, **settings)
    counting = CountingPrograms.of(kernel, np.ones(kernel.n) if weights is None else weights, seed, tol=tol)
    return counting.of_points(kernel), counting


# One program against the encoding


@pytest.mark.parametrize("gamma", [0.1, 1.0])
@pytest.mark.parametrize("n", [2, 100, PROGRAM_SIZE])
def test_count_is_the_sum_of_a_row_of_k_times_i_minus_r_over_its_largest_entry(rng, n, gamma):
    X, order = rng.normal(size=(n, 3)), rng.permutation(n)
    K = rbf_kernel(X, gamma=gamma)
    R = mosaic.solve(X, kernel="rbf", gamma=gamma, lam=10.0, tol=1e-8).rows(np.arange(n))
    Q = np.abs(K @ (np.eye(n) - R))
    counts = counts_of(X, **EXACTLY, gamma=gamma)[0]
    rtol = 1e-5 if n <= 100 else 1e-3
    np.testing.assert_allclose(counts, Q.sum(axis=1) / Q.max(axis=1), rtol=rtol)
    np.testing.assert_allclose(counts_of(X[order], **EXACTLY, gamma=gamma)[0], counts[order], rtol=rtol)


def test_at_the_gap_that_they_are_solved_to_counts_are_right_to_a_few_per_cent(rng):
    X = rng.normal(size=(100, 3))
    encoding = mosaic.solve(X, kernel="rbf", gamma=0.1, lam=10.0, tol=1e-8)
    error = np.abs(counts_of(X, gamma=0.1)[0] / encoding.effective_count - 1.0)
    assert np.median(error) < 0.03
    assert error.max() < 0.25


def test_new_point_is_counted_as_if_it_were_added(rng):
    """r(y) solves min_r lam/2 ‖φ(y) − Φ r‖² + ½ Σ_j r_j²/‖r_j‖, and the point itself is one more that looks like it."""
    X, Y = rng.normal(size=(100, 3)), 2.0 * rng.normal(size=(20, 3))
    encoding = mosaic.solve(X, kernel="rbf", gamma=0.2, lam=10.0, tol=1e-8)
    S = encoding.support
    k_y, K_SS = rbf_kernel(Y, X, gamma=0.2), rbf_kernel(X[S], gamma=0.2)
    r_y = np.linalg.solve(10.0 * K_SS + np.diag(1.0 / encoding.influence[S]), 10.0 * k_y[:, S].T).T
    others = np.abs(k_y - k_y[:, S] @ encoding.rows(S))
    itself = 1.0 - (r_y * k_y[:, S]).sum(axis=1)
    expected = (others.sum(axis=1) + itself) / np.maximum(others.max(axis=1), itself)
    np.testing.assert_allclose(counts_of(X, **EXACTLY, gamma=0.2)[1].at(Y), expected, rtol=1e-3)


# Known and new points


@pytest.mark.parametrize("n", [40, PROGRAM_SIZE, 500])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "polynomial", "cosine"])
def test_point_of_the_data_has_the_same_count_when_it_comes_as_a_new_one(rng, name, n):
    X = rng.normal(size=(n, 4))
    counts, counting = counts_of(X, name)
    np.testing.assert_allclose(counting.at(X), counts, rtol=1e-9)


def test_point_of_the_data_has_the_same_count_whether_or_not_a_program_has_drawn_it(rng):
    """In the plane points are everywhere, so a point beside one that was drawn has nearly its count and one more."""
    X = rng.normal(size=(2000, 2))
    counts, counting = counts_of(X, gamma=0.3)
    drawn = np.isin(np.arange(2000), counting.places)
    assert np.median(counts[drawn]) == pytest.approx(np.median(counts[~drawn]), rel=0.1)


def test_same_seed_gives_the_same_counts_and_another_one_similar_ones(rng):
    X = rng.normal(size=(1000, 3))
    one, again, other = (counts_of(X, gamma=0.2, seed=seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert np.corrcoef(np.log(one), np.log(other))[0, 1] > 0.8


def test_up_to_the_size_of_a_program_one_is_asked_and_the_seed_does_not_matter(rng):
    X = rng.normal(size=(PROGRAM_SIZE, 3))
    one, counting = counts_of(X, gamma=0.2, seed=1)
    assert len(counting.weights) == 1
    np.testing.assert_array_equal(one, counts_of(X, gamma=0.2, seed=2)[0])
    assert len(counts_of(rng.normal(size=(PROGRAM_SIZE + 1, 3)))[1].weights) == PROGRAMS


# Weights


def test_copies_count_like_weights(rng):
    X, times = rng.normal(size=(40, 3)), rng.integers(1, 4, 40)
    by_weight, counting = counts_of(X, **EXACTLY, gamma=0.2, weights=times.astype(float))
    encoding = mosaic.solve(np.repeat(X, times, axis=0), kernel="rbf", gamma=0.2, lam=10.0, tol=1e-8)
    np.testing.assert_allclose(np.repeat(by_weight, times), encoding.effective_count, rtol=1e-4)
    np.testing.assert_allclose(counting.at(X), by_weight, rtol=1e-9)
    assert counting.total == times.sum()


def test_points_that_are_equal_but_for_rounding_count_as_copies_do(rng):
    X = rng.normal(size=(60, 3))
    nearly = np.vstack([X, X[0] + 20.0 + 1e-7 * rng.normal(size=(10, 3))])
    counts, counting = counts_of(nearly, gamma=0.2)
    np.testing.assert_allclose(counts[60:], 10.0, rtol=1e-3)
    weights = np.append(np.ones(60), 10.0)
    assert counts_of(np.vstack([X, X[0] + 20.0]), gamma=0.2, weights=weights)[0][-1] == pytest.approx(10.0, rel=1e-3)
    np.testing.assert_allclose(counting.at(nearly), counts, rtol=1e-6)


@pytest.mark.parametrize("times", [1, 3])
def test_sample_of_many_points_counts_each_as_often_as_it_is_there(rng, times):
    """Weights that are all the same are no more than ones: a program has 128 points, and none can resemble more."""
    counts, counting = counts_of(rng.normal(size=(600, 2)), gamma=0.3, weights=np.full(600, float(times)))
    assert counting.total == pytest.approx(times * PROGRAM_SIZE)
    assert counts.max() < times * PROGRAM_SIZE


# What a count means


@pytest.mark.parametrize("n", [50, 700])
def test_point_that_is_alone_has_a_count_of_one_and_one_in_the_middle_of_a_crowd_the_highest(rng, n):
    X = np.vstack([rng.normal(size=(n, 3)), [[1e3, 0.0, 0.0]]])
    counts, counting = counts_of(X, gamma=0.2)
    assert counts[-1] == pytest.approx(1.0, abs=1e-6)
    assert counting.at(np.array([[0.0, -1e3, 0.0]])) == pytest.approx(1.0, abs=1e-6)
    assert (counts >= 1.0).all()
    found = counting.at(np.array([[0.0, 0, 0], [2.0, 0, 0], [4.0, 0, 0], [8.0, 0, 0]]))
    assert (np.diff(found) < 0).all()


def test_single_points_count_themselves_and_points_without_length_one(rng):
    assert counts_of(np.ones((1, 2)))[0].tolist() == [1.0]
    assert counts_of(np.ones((1, 2)), weights=np.array([7.0]))[0] == pytest.approx(7.0)
    X = np.vstack([rng.normal(size=(30, 3)), np.zeros((1, 3))])
    assert counts_of(X, "linear")[0][-1] == 1.0
    with pytest.raises(InvalidInputError, match="no candidate resembles any target"):
        counts_of(np.zeros((5, 3)), "linear")


# What must not matter


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**10])
@pytest.mark.parametrize("n", [90, 400])
def test_unit_of_a_linear_kernel_does_not_matter(rng, unit, n):
    X = rng.normal(size=(n, 4)) + 1.0
    np.testing.assert_allclose(counts_of(unit * X, "linear")[0], counts_of(X, "linear")[0], rtol=1e-6)


@pytest.mark.parametrize("n", [90, 400])
def test_precomputed_similarities_and_sparse_points_count_as_the_points_behind_them_do(rng, n):
    X, Y = (rng.normal(size=(rows, 8)) * (rng.random((rows, 8)) < 0.5) for rows in (n, 12))
    counts, counting = counts_of(X, gamma=0.2)
    given, of_matrix = counts_of(rbf_kernel(X, gamma=0.2), "precomputed")
    sparse, of_sparse = counts_of(sp.csr_array(X), gamma=0.2)
    np.testing.assert_allclose(given, counts, rtol=ROUNDING_OF_COUNTS)
    np.testing.assert_allclose(sparse, counts, rtol=ROUNDING_OF_COUNTS)
    np.testing.assert_allclose(of_matrix.at(rbf_kernel(Y, X, gamma=0.2)), counting.at(Y), rtol=ROUNDING_OF_COUNTS)
    np.testing.assert_allclose(of_sparse.at(sp.csr_array(Y)), counting.at(Y), rtol=ROUNDING_OF_COUNTS)
    for K in (rbf_kernel(X, gamma=0.2), (X + 1.0) @ (X + 1.0).T):  # of the second, the lengths differ
        known, of_matrix = counts_of(K, "precomputed")
        np.testing.assert_allclose(of_matrix.at(K), known, rtol=ROUNDING_OF_COUNTS)
