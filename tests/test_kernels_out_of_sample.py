"""Kernels at points that they were not made from, and kernels over some of their points."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise

from mosaic import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels import DiffusionKernel, Precomputed, make_kernel
from mosaic.kernels.diffusion import heat_features
from mosaic.kernels.points import FEW_FEATURES
from mosaic.parameters import Diffusion

GAMMA = 0.05
ORACLES = {
    "rbf": lambda Y, X: pairwise.rbf_kernel(Y, X, gamma=GAMMA),
    "laplacian": lambda Y, X: pairwise.laplacian_kernel(Y, X, gamma=GAMMA),
    "polynomial": lambda Y, X: pairwise.polynomial_kernel(Y, X, gamma=GAMMA, degree=3, coef0=1.0),
    "linear": pairwise.linear_kernel,
    "cosine": pairwise.cosine_similarity,
}
FORMATS = {"dense": np.asarray, "csr": sp.csr_array}


def some_points(rng, n, d):
    """About half of the entries are zero, no row is."""
    X = rng.normal(size=(n, d))
    X[:, 1:] *= rng.random((n, d - 1)) < 0.5
    return X


@pytest.mark.parametrize("d", [3, FEW_FEATURES + 1], ids=["few", "many"])
@pytest.mark.parametrize("of_X", FORMATS)
@pytest.mark.parametrize("of_Y", FORMATS)
@pytest.mark.parametrize("name", ORACLES)
def test_new_points_equal_scikit_learn(rng, name, of_X, of_Y, d):
    X, Y = some_points(rng, 25, d), some_points(rng, 8, d)
    kernel = make_kernel(FORMATS[of_X](X), name, gamma=GAMMA)
    new, own = FORMATS[of_Y](Y), np.array([20, 0, 7])
    np.testing.assert_allclose(kernel.cross(new), ORACLES[name](Y, X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel.take(own).cross(new), ORACLES[name](Y, X[own]), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal_at(new), np.diagonal(ORACLES[name](Y, Y)), rtol=1e-10)


def test_laplacian_of_many_sparse_points_is_put_together_from_blocks(rng):
    X = sp.random_array((150, 5000), density=0.002, rng=rng, format="csr")
    Y = sp.random_array((3, 5000), density=0.002, rng=rng, format="csr")
    expected = pairwise.laplacian_kernel(Y.toarray(), X.toarray(), gamma=GAMMA)
    np.testing.assert_allclose(make_kernel(X, "laplacian", gamma=GAMMA).cross(Y), expected, rtol=1e-12)


@pytest.mark.parametrize("name", [*ORACLES, "diffusion"])
def test_another_number_of_features_is_refused(rng, name):
    kernel = make_kernel(rng.normal(size=(9, 4)), name)
    for question in (kernel.cross, kernel.diagonal_at, kernel.take(np.arange(3)).cross):
        with pytest.raises(InvalidInputError, match=r"must have the 4 features .* Y has 3\. Pass the same columns"):
            question(np.ones((2, 3)))


@pytest.mark.parametrize("of_X", FORMATS)
@pytest.mark.parametrize("of_Y", FORMATS)
def test_a_function_gets_new_points_in_the_format_of_the_old(rng, of_X, of_Y):
    seen = []

    def function(A, B):
        seen.append((sp.issparse(A), sp.issparse(B), A.shape, B.shape))
        return np.zeros((A.shape[0], B.shape[0]))

    kernel = make_kernel(FORMATS[of_X](rng.normal(size=(8, 2))), function)
    kernel.cross(FORMATS[of_Y](rng.normal(size=(5, 2))))
    assert seen == [(of_X == "csr", of_X == "csr", (5, 2), (8, 2))]


def test_a_part_of_an_accepted_matrix_is_not_refused_for_its_noise():
    K = np.diag([1e6, 0.0, 0.0])
    K[1, 2] = K[2, 1] = 1e-9  # far below the rounding of the whole, all there is of the part
    with pytest.raises(NotPositiveSemidefiniteError):
        Precomputed(K[1:, 1:]).refuse_indefinite()
    np.testing.assert_array_equal(Precomputed(K).take(np.array([1, 2])).block(slice(None), np.arange(2)), K[1:, 1:])


def mean_of_neighbours(G, X, Y, k):
    """By brute force: unit rows of the mean feature of the k nearest points."""
    rows = []
    for y in Y:
        mean = G[np.argsort(((X - y) ** 2).sum(axis=1))[:k]].mean(axis=0)
        rows.append(mean / np.linalg.norm(mean))
    return np.array(rows)


@pytest.mark.parametrize("of_X", FORMATS)
@pytest.mark.parametrize("of_Y", FORMATS)
@pytest.mark.parametrize("k", [1, 6])
def test_diffusion_gives_new_points_the_mean_of_their_neighbours(rng, of_X, of_Y, k):
    X, Y = some_points(rng, 40, 4), some_points(rng, 9, 4)
    kernel = make_kernel(FORMATS[of_X](X), Diffusion(k, 3))
    assert isinstance(kernel, DiffusionKernel)
    G = heat_features(X, n_neighbors=k, time=3).toarray()
    H = mean_of_neighbours(G, X, Y, k)
    new, own = FORMATS[of_Y](Y), np.array([33, 2])
    np.testing.assert_allclose(kernel.cross(new), H @ G.T, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kernel.take(own).cross(new), H @ G[own].T, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal_at(new), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kind", FORMATS)
def test_diffusion_tells_a_point_of_the_graph_from_one_very_near_to_it(rng, kind):
    X = some_points(rng, 40, 4) + 100.0 * (np.arange(4) == 0)
    kernel = make_kernel(FORMATS[kind](X), Diffusion(5))
    G = heat_features(X, n_neighbors=5).toarray()
    Y = X[[11, 11]]
    Y[1, 0] *= 1 + 1e-15
    found = kernel.cross(FORMATS[kind](Y))
    np.testing.assert_allclose(found[0], G[11] @ G.T, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[1], mean_of_neighbours(G, X, X[[11]], 5)[0] @ G.T, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", FORMATS)
def test_diffusion_of_a_point_with_many_copies_takes_the_row_of_one_of_them_and_survives_pickling(kind):
    X = np.repeat(np.arange(4.0)[:, None], 5, axis=0)
    kernel = make_kernel(FORMATS[kind](X), Diffusion(3))
    rows = kernel.block(np.arange(10, 15), np.arange(20))
    found = kernel.cross(FORMATS[kind](np.array([[2.0]])))
    assert np.abs(rows - found).max(axis=1).min() < 1e-12
    new = FORMATS[kind](np.array([[2.2], [0.4]]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).cross(new), kernel.cross(new))


@pytest.mark.parametrize("kind", FORMATS)
def test_diffusion_with_fewer_points_than_neighbours_uses_all_of_them(kind):
    X = np.array([[0.0], [1.0], [4.0]])
    G = heat_features(X).toarray()
    Y = np.array([[0.7]])
    found = make_kernel(FORMATS[kind](X), "diffusion").cross(FORMATS[kind](Y))
    np.testing.assert_allclose(found, mean_of_neighbours(G, X, Y, 3) @ G.T, rtol=1e-12)
    alone = make_kernel(FORMATS[kind](X[1:2]), "diffusion")
    np.testing.assert_array_equal(alone.cross(FORMATS[kind](Y)), [[1.0]])


@pytest.mark.parametrize("of", FORMATS)
def test_rows_of_a_precomputed_matrix_know_their_own_length_and_others_get_the_median(rng, of):
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(5, 4))
    K = X @ X.T
    whole = Precomputed(FORMATS[of](K))
    part = whole.take(np.array([7, 2, 9]))
    for kernel in (whole, part, part.take(np.array([1]))):
        np.testing.assert_array_equal(kernel.diagonal_at(FORMATS[of](K)), np.diagonal(K))
        np.testing.assert_array_equal(kernel.diagonal_at(FORMATS[of](Y @ X.T)), np.median(np.diagonal(K)))
        for question in (kernel.cross, kernel.diagonal_at):
            with pytest.raises(InvalidInputError, match="all 30 points of the matrix, so Y must have 30 columns; it has 2"):
                question(np.ones((3, 2)))
