"""Promises that every similarity keeps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from mosaic.kernels import make_kernel

X = np.random.default_rng(1).normal(size=(40, 5))
WIDE = np.random.default_rng(1).normal(size=(40, 30))  # more features than the coordinate loop takes
NAMES = ["rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed", "callable"]


def product(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) ** 2


def build(name, X):
    if name == "precomputed":
        K = np.exp(-0.2 * pairwise.euclidean_distances(np.asarray(X.todense() if sp.issparse(X) else X), squared=True))
        return make_kernel(sp.csr_array(K) if sp.issparse(X) else K.astype(X.dtype), "precomputed")
    return make_kernel(X, product if name == "callable" else name)


def matrix(kernel):
    return kernel.columns(np.arange(kernel.n))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [X, WIDE], ids=["few", "many"])
def test_diagonal_columns_and_blocks_are_parts_of_one_psd_matrix(name, data):
    kernel = build(name, data)
    K = matrix(kernel)
    assert K.shape == (40, 40)
    assert kernel.n == 40
    np.testing.assert_allclose(kernel.diagonal(), np.diagonal(K), rtol=1e-12)
    chosen = np.array([7, 3, 30])
    np.testing.assert_allclose(kernel.columns(chosen), K[:, chosen], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.block(slice(5, 11), chosen), K[5:11][:, chosen], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.block(chosen, chosen), K[np.ix_(chosen, chosen)], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(K, K.T, rtol=1e-10, atol=1e-13)
    w = np.linalg.eigvalsh(K)
    assert w[0] >= -1e-10 * w[-1]
    factor = kernel.explicit_factor()
    if factor is not None:
        factor = factor.toarray() if sp.issparse(factor) else factor
        np.testing.assert_allclose(factor @ factor.T, K, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_sparse_equals_dense(name):
    data = np.where(np.abs(WIDE) > 0.8, WIDE, 0.0)
    dense, sparse = build(name, data), build(name, sp.csr_array(data))
    np.testing.assert_allclose(matrix(sparse), matrix(dense), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sparse.diagonal(), dense.diagonal(), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_stays_single_and_agrees(name):
    single, double = build(name, X.astype(np.float32)), build(name, X.astype(np.float32).astype(np.float64))
    if name != "diffusion":  # the graph has no precision
        assert matrix(single).dtype == np.float32
    np.testing.assert_allclose(matrix(single), matrix(double), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("data", [X, WIDE], ids=["few", "many"])
def test_kernels_equal_scikit_learn(data):
    gamma = 0.05
    cases = {
        "rbf": pairwise.rbf_kernel(data, gamma=gamma),
        "laplacian": pairwise.laplacian_kernel(data, gamma=gamma),
        "polynomial": pairwise.polynomial_kernel(data, gamma=gamma, degree=3, coef0=1.0),
        "linear": data @ data.T,
        "cosine": pairwise.cosine_similarity(data),
    }
    for name, expected in cases.items():
        np.testing.assert_allclose(matrix(make_kernel(data, name, gamma=gamma)), expected, rtol=1e-9, atol=1e-12)


def test_gaussian_process_kernels_are_callables():
    kernel = make_kernel(X, gaussian_process.RBF(1.5))
    np.testing.assert_allclose(matrix(kernel), gaussian_process.RBF(1.5)(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(), 1.0)
