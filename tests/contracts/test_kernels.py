"""Promises that every similarity keeps."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from mosaic import MOSAIC, load
from mosaic.kernels import KERNELS, POINT_KERNELS, make_kernel
from mosaic.parameters import BY_NAME, KERNELS_WITH_SETTINGS, PAIRWISE

X = np.random.default_rng(1).normal(size=(40, 5))
WIDE = np.random.default_rng(1).normal(size=(40, 30))  # more features than the coordinate loop takes
SPARSE = sp.csr_array(np.where(np.abs(WIDE) > 0.8, WIDE, 0.0))
SINGLE = X.astype(np.float32)
KINDS = pytest.mark.parametrize("data", [X, WIDE, SPARSE, SINGLE], ids=["few", "many", "sparse", "single"])
NAMES = [*KERNELS, "callable"]


def product(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) ** 2


def given(name, X):
    """What a user passes for the points X: themselves, places, or their similarities to or distances from one another."""
    if name == "tanimoto":
        return abs(X)
    if name not in ("haversine", "precomputed", "distances"):
        return X
    dense = np.asarray(X.todense() if sp.issparse(X) else X)
    if name == "haversine":
        return dense[:, :2] / (1.0 + np.abs(dense[:, :2])) * np.array([90.0, 180.0], X.dtype)
    if name == "distances":
        return pairwise.manhattan_distances(dense).astype(X.dtype)
    K = np.exp(-0.2 * pairwise.euclidean_distances(dense, squared=True))
    return sp.csr_array(K) if sp.issparse(X) else K.astype(X.dtype)


def build(name, X):
    return make_kernel(given(name, X), product if name == "callable" else name)


def matrix(kernel):
    return kernel.block(slice(None), np.arange(kernel.n))


def test_every_kernel_has_a_name_that_users_can_write():
    assert set(KERNELS) == {*POINT_KERNELS, "diffusion", *PAIRWISE}


@pytest.mark.parametrize("name", KERNELS)
def test_a_fit_uses_the_settings_of_its_kernel_and_is_saved_with_them(name, tmp_path):
    kernel: Any = name
    if name in BY_NAME:
        usual = BY_NAME[name]().get_params()
        kernel = BY_NAME[name](**{key: value + 1 for key, value in usual.items()})
    model = MOSAIC(5, kernel=kernel).fit(given(name, X))
    if name in BY_NAME:
        assert type(kernel) in KERNELS_WITH_SETTINGS
        fitted = model.selection_.kernel
        assert {key: getattr(fitted, key) for key in usual if hasattr(fitted, key)}.items() <= kernel.get_params().items()
    model.save(tmp_path / "a.mosaic")
    again = load(tmp_path / "a.mosaic")
    assert again.kernel == kernel
    np.testing.assert_array_equal(again.transform(given(name, X)), model.transform(given(name, X)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [X, WIDE], ids=["few", "many"])
def test_diagonal_columns_and_blocks_are_parts_of_one_psd_matrix(name, data):
    kernel = build(name, data)
    K = matrix(kernel)
    assert K.shape == (40, 40)
    assert kernel.n == 40
    np.testing.assert_allclose(kernel.diagonal(), np.diagonal(K), rtol=1e-12)
    chosen = np.array([7, 3, 30])
    np.testing.assert_allclose(kernel.block(slice(None), chosen), K[:, chosen], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.block(slice(5, 11), chosen), K[5:11][:, chosen], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.block(chosen, chosen), K[np.ix_(chosen, chosen)], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(K, K.T, rtol=1e-10, atol=1e-13)
    w = np.linalg.eigvalsh(K)
    assert w[0] >= -1e-10 * w[-1]
    if kernel.is_factor:
        factor = kernel.X.toarray() if sp.issparse(kernel.X) else kernel.X
        np.testing.assert_allclose(factor @ factor.T, K, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_sparse_equals_dense_and_single_precision_stays_single_and_agrees(name):
    dense, sparse = build(name, SPARSE.toarray()), build(name, SPARSE)
    np.testing.assert_allclose(matrix(sparse), matrix(dense), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sparse.diagonal(), dense.diagonal(), rtol=1e-9)
    single, double = build(name, SINGLE), build(name, SINGLE.astype(np.float64))
    assert single.dtype == np.float32 or name == "diffusion"  # the graph has no precision
    np.testing.assert_allclose(matrix(single), matrix(double), rtol=2e-5, atol=1e-6)


def close(actual, expected, data):
    """Equal to rounding. The rows of a cosine kernel are kept in the precision of the data."""
    assert actual.dtype == np.float64
    rtol, atol = (1e-6, 1e-6) if data.dtype == np.float32 else (1e-12, 1e-14)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


@KINDS
@pytest.mark.parametrize("name", NAMES)
def test_points_that_come_again_get_their_own_rows_and_new_ones_do_not_look_at_one_another(name, data):
    kernel, points = build(name, data), given(name, data)
    few, many = np.array([31, 2, 17]), np.arange(40)
    close(kernel.cross(points[few]), kernel.block(few, many), data)
    close(kernel.take(few).cross(points), kernel.block(many, few), data)
    close(kernel.diagonal_at(points), kernel.diagonal(), data)
    noise = np.random.default_rng(3).normal(size=data.shape)
    Y = given(name, data + 0.3 * data.multiply(noise).tocsr() if sp.issparse(data) else data + noise)
    together = kernel.cross(Y)
    for i in (0, 25):
        np.testing.assert_allclose(kernel.cross(Y[i : i + 1])[0], together[i], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel.diagonal_at(Y[i : i + 1])[0], kernel.diagonal_at(Y)[i], rtol=1e-12)


@KINDS
@pytest.mark.parametrize("name", NAMES)
def test_distances_order_points_as_the_space_of_the_kernel_does_for_own_and_for_new_points(name, data):
    kernel, points = build(name, data), given(name, data)
    own = kernel.diagonal()
    apart = own[:, None] + own - 2.0 * kernel.block(np.arange(40), np.arange(40))
    D = kernel.distances(np.arange(40), np.arange(40))
    assert (D >= 0).all()
    order = np.argsort(D, axis=None)
    assert (np.diff(apart.ravel()[order]) >= -1e-6 * apart.max()).all()
    np.testing.assert_allclose(kernel.distances_at(points), D, rtol=1e-5, atol=1e-6 * D.max())
    few = np.array([31, 2, 17])
    np.testing.assert_allclose(kernel.take(few).distances_at(points), D[:, few], rtol=1e-5, atol=1e-6 * D.max())


@KINDS
@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_a_kernel_is_a_kernel_with_its_own_numbering(name, data):
    kernel, points = build(name, data), given(name, data)
    chosen, again = np.array([30, 4, 11, 19]), np.array([2, 0])
    part = kernel.take(chosen)
    assert (part.n, part.dtype) == (4, kernel.dtype)
    close(part.block(slice(1, 4), np.array([3, 0])), kernel.block(chosen[1:4], chosen[[3, 0]]), data)
    np.testing.assert_allclose(
        part.block(slice(None), again), kernel.block(slice(None), chosen[again])[chosen], rtol=1e-6, atol=1e-14
    )
    close(part.diagonal(), kernel.diagonal()[chosen], data)
    close(part.cross(points[:7]), kernel.cross(points[:7])[:, chosen], data)
    close(part.diagonal_at(points[:7]), kernel.diagonal_at(points[:7]), data)
    close(part.take(again).cross(points[:7]), kernel.cross(points[:7])[:, chosen[again]], data)
    if kernel.is_factor:
        assert abs(part.X - kernel.X[chosen]).max() == 0


def test_gaussian_process_kernels_are_callables():
    kernel = make_kernel(X, gaussian_process.RBF(1.5))
    np.testing.assert_allclose(matrix(kernel), gaussian_process.RBF(1.5)(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(), 1.0)
    assert kernel.cross(X[:0]).shape == (0, 40)  # some functions refuse no points
