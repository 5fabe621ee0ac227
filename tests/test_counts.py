"""Effective counts, of points in the data and of new ones, against sums over the full n×n matrices."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import mosaic
from mosaic.arrays.codes import row_codes
from mosaic.datasets import swiss_roll
from mosaic.kernels import make_kernel
from mosaic.program.encoding import counts_against
from mosaic.program.solve import Program

N = 120
X = swiss_roll(N, random_state=1)
X = (X - X.mean(axis=0)) / X.std()
#: Between the points, and far from them.
NEW = np.vstack([X[:12] + 0.2 * np.random.default_rng(2).normal(size=(12, 3)), 4.0 * X[20:24]])


def cauchy(A, B):
    """1 / (1 + ‖a − b‖²), positive semi-definite."""
    return 1.0 / (1.0 + cdist(A, B, "sqeuclidean"))


KERNELS = {
    "rbf": ("rbf", {"gamma": 1.0}),
    "laplacian": ("laplacian", {"gamma": 0.7}),
    "polynomial": (mosaic.Polynomial(degree=2), {}),
    "linear": ("linear", {}),
    "cosine": ("cosine", {}),
    "diffusion": (mosaic.Diffusion(n_neighbors=6), {}),
    "function": (cauchy, {}),
}
WEIGHTS = {
    "equal": np.ones(N),
    "whole": np.random.default_rng(3).integers(1, 5, N).astype(float),
    "any": np.random.default_rng(4).uniform(0.3, 3.0, N),
}


@pytest.fixture(scope="module", params=[(k, w) for k in KERNELS for w in WEIGHTS], ids="-".join)
def solved(request):
    """An encoding, its kernel, the matrix of all similarities, and the weights."""
    (kernel, settings), weights = KERNELS[request.param[0]], WEIGHTS[request.param[1]]
    encoding = mosaic.solve(X, kernel=kernel, alpha=3.0, tol=1e-10, sample_weight=weights, **settings)
    return encoding, *similarity(X, kernel, **settings), weights


def similarity(X, kernel, **settings):
    kernel = make_kernel(X, kernel, **settings)
    return kernel, kernel.block(slice(None), np.arange(kernel.n))


def ratio(Q, weights):
    """Σ_i ω_i |q_ji| / max_i |q_ji|, at least 1."""
    return np.maximum(np.abs(Q) @ weights / np.abs(Q).max(axis=1), 1.0)


def counted_as_added(kernel, K, encoding, weights, Y):
    """The ratio for k(y, ·) − k(y, S) R_S with an entry of y's own, where r_y minimises
    lam/2 ‖φ_y − Σ_j r_j φ_j‖² + Σ_j r_j² / (2 ‖r_j‖): what the program makes of one more target at given row norms.
    """
    S = encoding.support
    to_S = kernel.cross(Y)[:, S]
    ridge = np.diag(1.0 / encoding.influence[S])
    own_row = np.linalg.solve(encoding.lam * K[np.ix_(S, S)] + ridge, encoding.lam * to_S.T)
    Q = kernel.cross(Y) - to_S @ encoding.rows(S)
    own = kernel.diagonal_at(Y) - np.einsum("ij,ji->i", to_S, own_row)
    return ratio(np.column_stack([Q, own]), np.append(weights, 1.0))


def test_count_is_the_ratio_of_norms_of_the_rows_of_k_times_what_is_left_and_on_the_support_of_the_rows_themselves(solved):
    encoding, _, K, weights = solved
    R = encoding.rows(np.arange(N))
    np.testing.assert_allclose(encoding.effective_count, ratio(K @ (np.eye(N) - R), weights), rtol=1e-6)
    assert len(encoding.support) > 1  # there it is the paper's ratio
    np.testing.assert_allclose(encoding.effective_count[encoding.support], ratio(R[encoding.support], weights), rtol=1e-5)


def test_new_point_is_counted_as_if_added_with_weight_one_and_a_known_one_as_itself(solved):
    encoding, kernel, K, weights = solved
    model = encoding.count_model(row_codes(X))
    expected = counted_as_added(kernel, K, encoding, weights, NEW)
    assert np.ptp(expected) > 0.5  # not all alike
    np.testing.assert_allclose(model.counts(NEW), expected, rtol=1e-4)
    together = model.counts(np.vstack([NEW, X[::-1], NEW]))  # what else comes does not matter
    np.testing.assert_allclose(together[len(NEW) : -len(NEW)], encoding.effective_count[::-1], rtol=1e-9)
    alone = np.concatenate([model.counts(point[None, :]) for point in NEW])
    np.testing.assert_allclose(np.tile(alone, 2), np.delete(together, np.s_[len(NEW) : -len(NEW)]), rtol=1e-9)


def test_copies_are_counted_like_weights(rng):
    times = rng.integers(1, 4, N)
    owner = rng.permutation(np.repeat(np.arange(N), times))
    encoding = mosaic.solve(X[owner], gamma=1.0, alpha=3.0, tol=1e-8)
    _, K = similarity(X[owner], "rbf", gamma=1.0)
    R = encoding.rows(np.arange(len(owner)))
    expected = ratio(K @ (np.eye(len(owner)) - R), np.ones(len(owner)))  # every copy is a column of its own
    np.testing.assert_allclose(encoding.effective_count, expected, rtol=1e-6)
    weighted = mosaic.solve(X, gamma=1.0, alpha=3.0, tol=1e-8, sample_weight=times)
    np.testing.assert_allclose(encoding.effective_count, weighted.effective_count[owner], rtol=1e-4)
    distinct = X[owner][encoding.groups.first]
    new = encoding.count_model(row_codes(distinct)).counts(NEW)
    np.testing.assert_allclose(new, weighted.count_model(row_codes(X)).counts(NEW), rtol=1e-4)


def test_weight_of_a_lonely_point_is_its_count():
    weights = np.ones(N + 1)
    weights[-1] = 7.0
    encoding = mosaic.solve(np.vstack([X, [[50.0, 0.0, 0.0]]]), gamma=1.0, alpha=3.0, sample_weight=weights)
    assert encoding.effective_count[-1] == pytest.approx(7.0)
    light = mosaic.solve(X, gamma=100.0, alpha=3.0, sample_weight=np.full(N, 0.01))
    np.testing.assert_allclose(light.effective_count, 1.0)  # at least one, whatever the weights
    zeros, one = np.zeros((1, 2)), np.ones(1)
    assert counts_against(zeros, zeros, np.zeros(1), one, np.array([0]), np.ones((2, 3)), np.ones(3)) == [1.0]  # a row of zeros


LONELY = np.array([[60.0, 0.0, 0.0], [0.0, -80.0, 0.0], [0.0, 0.0, 100.0]])


@pytest.fixture(scope="module")
def crowd():
    roll = swiss_roll(3000, random_state=0)
    return np.vstack([(roll - roll.mean(axis=0)) / roll.std(), LONELY])


def encoded(X, max_rank=None):
    return Program(make_kernel(X, "rbf", gamma=2.0), np.ones(len(X)), tol=1e-3, max_rank=max_rank).encode(20.0)


@pytest.mark.parametrize("operations", [2e10, 1.0], ids=["all targets", "sampled targets"])
def test_lonely_point_that_the_factor_missed_has_count_one(crowd, operations, monkeypatch):
    monkeypatch.setattr("mosaic.program.encoding.MOST_COUNT_OPERATIONS", operations)
    encoding = encoded(crowd, max_rank=40)
    assert (encoding.factor.residual[-3:] > 0.99).all()
    np.testing.assert_allclose(encoding.effective_count[-3:], 1.0, atol=0.01)
    assert np.median(encoding.effective_count) > 5
    model = encoding.count_model(row_codes(crowd))
    np.testing.assert_allclose(model.counts(LONELY), 1.0, atol=0.01)
    np.testing.assert_allclose(model.counts(2.0 * LONELY), 1.0, atol=0.01)  # and so has one that was never seen


def test_sampled_targets_give_nearly_the_counts_of_all(crowd, monkeypatch):
    encoding, new = encoded(crowd), crowd[:200] + 0.05
    exact = encoding.count_model(row_codes(crowd)).counts(new)
    monkeypatch.setattr("mosaic.program.encoding.MOST_COUNT_OPERATIONS", 2048.0 * len(crowd) * encoding.factor.rank)
    sampled = replace(encoding)  # which has computed nothing yet
    assert sampled.count_model(row_codes(crowd)).left.shape[1] == 2048
    assert not np.array_equal(sampled.effective_count, encoding.effective_count)
    np.testing.assert_allclose(sampled.effective_count, encoding.effective_count, rtol=0.25)
    np.testing.assert_allclose(sampled.count_model(row_codes(crowd)).counts(new), exact, rtol=0.25)
    # The lonely ones count for themselves once, though a sampled target counts for 1.5.
    np.testing.assert_allclose(sampled.effective_count[-3:], 1.0, atol=0.01)
