"""How choosing sees points: directions against the singular value decomposition, similarities written out again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import ortho_group
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC
from mosaic.kernels import EffectiveCount, make_kernel
from mosaic.view import directions_for, principal_directions, view_similarities


def elongated(n, d, seed=0):
    """Points whose spread is clearly different in every direction, about a point that is not the origin."""
    rng = np.random.default_rng(seed)
    scales = 1.3 ** -np.arange(min(n - 1, d))
    axes = np.linalg.qr(rng.normal(size=(d, len(scales))))[0]
    rows = np.linalg.qr(rng.normal(size=(n, len(scales))) @ np.diag(scales))[0] * scales
    return (rows - rows.mean(axis=0)) @ axes.T * np.sqrt(n) + rng.normal(size=d)


def svd_directions(X, r):
    """Right singular vectors of the centred points, with the largest entry of each positive."""
    V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:r].T
    return V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])])


def typical_count(X, gamma):
    return np.median((rbf_kernel(X, gamma=gamma) ** 2).sum(axis=0))


def gamma_of(S, X, targets, candidates):
    """The γ of exp(−γ‖x_i − x_j‖²), read off the similarities; all pairs must agree on it."""
    D = ((X[targets, None] - X[None, candidates]) ** 2).sum(-1)
    seen = (D > 0) & (S > 1e-200)
    gammas = -np.log(S[seen]) / D[seen]
    np.testing.assert_allclose(gammas, gammas[0], rtol=1e-6)
    return float(gammas[0])


# Directions


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize(("n", "d"), [(60, 8), (8, 8), (9, 30), (30, 9), (2, 5)])
def test_directions_are_the_leading_singular_vectors_of_centred_points(make, n, d):
    X = elongated(n, d)
    r = min(n - 1, d, 5)
    V = principal_directions(make(X), r)
    assert V.shape == (d, r)
    np.testing.assert_allclose(V, svd_directions(X, r), atol=1e-8)
    np.testing.assert_allclose(V.T @ V, np.eye(r), atol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "d", "rank"), [(40, 6, 6), (6, 40, 5)])
def test_there_are_no_more_directions_than_the_points_vary_in(make, n, d, rank):
    X = elongated(n, d)
    assert principal_directions(make(X), 100).shape == (d, rank)
    flat = X.copy()
    flat[:, 1::2] = 0.7  # constant columns
    V = principal_directions(make(flat), 100)
    assert V.shape[1] == min((d + 1) // 2, rank)
    np.testing.assert_allclose(V[1::2], 0.0, atol=1e-7)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, 1e-6])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (1, 4)])
def test_constant_points_have_no_directions(make, value, shape):
    assert principal_directions(make(np.full(shape, value)), 2).shape == (shape[1], 0)


@pytest.mark.parametrize("shape", [(80, 6), (6, 80)])
@pytest.mark.parametrize(("dtype", "shift"), [(np.float32, 3e3), (np.float64, 1e9)])
def test_points_far_from_the_origin_have_the_directions_that_they_have_near_it(shape, dtype, shift):
    X = (elongated(*shape) + shift).astype(dtype)  # what remains of them in this precision
    expected = svd_directions(X.astype(np.float64), 3)
    np.testing.assert_allclose(principal_directions(X, 3), expected, atol=1e-7)


def test_points_are_left_as_they_are():
    X = elongated(20, 30)
    before = X.copy()
    principal_directions(X, 3)
    view_similarities(X, np.arange(20), np.arange(20), 3)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(("k", "r"), [(1, 20), (2.5, 20), (3, 21), (30, 30), (100, 53)])
def test_more_picks_look_in_more_directions(k, r):
    assert directions_for(k) == r


# Similarities


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("k", [2, 4.5, 20, 40])
@pytest.mark.parametrize("d", [1, 3, 18, 20])
def test_few_features_are_seen_as_they_are_and_a_typical_target_resembles_its_share(make, k, d):
    X = np.random.default_rng(d).normal(size=(120, d))
    targets, candidates = np.arange(0, 120, 2), np.arange(5, 95)
    S = view_similarities(make(X), targets, candidates, k)
    gamma = gamma_of(S, X, targets, candidates)
    np.testing.assert_allclose(S, rbf_kernel(X[targets], X[candidates], gamma=gamma), rtol=1e-6, atol=1e-12)
    assert typical_count(X[targets], gamma) == pytest.approx(max(60 / k, 1.5), rel=1e-5)


@pytest.mark.parametrize("k", [0.5, 1])
def test_nobody_need_resemble_more_than_half(k):
    X = np.random.default_rng(0).normal(size=(50, 2))
    everyone = np.arange(50)
    gamma = gamma_of(view_similarities(X, everyone, everyone, k), X, everyone, everyone)
    assert typical_count(X, gamma) == pytest.approx(25, rel=1e-5)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", [(150, 40), (60, 200)])
def test_many_features_are_seen_in_the_leading_directions_of_the_targets(make, shape):
    X = elongated(*shape)
    targets, candidates = np.arange(0, shape[0], 2), np.arange(10, 50)
    S = view_similarities(make(X), targets, candidates, 6)
    Z = X @ svd_directions(X[targets], 22)
    np.testing.assert_allclose(S, rbf_kernel(Z[targets], Z[candidates], gamma=gamma_of(S, Z, targets, candidates)))
    gamma = gamma_of(S, Z, targets, candidates)
    assert typical_count(Z[targets], gamma) == pytest.approx(len(targets) / 6, rel=1e-5)


@pytest.mark.parametrize("d", [5, 40])
def test_rotation_shift_scale_and_constant_columns_do_not_matter(d):
    X = elongated(90, d)
    targets, candidates = np.arange(70), np.arange(20, 90)
    expected = view_similarities(X, targets, candidates, 5)
    rotated = X @ ortho_group.rvs(d, random_state=0)
    padded = np.hstack([np.full((90, 3), 0.3), X, np.full((90, 40), -2.0)])
    for other in (rotated, X + 10.0, 1e3 * X, 1e-5 * X, padded, X[:, ::-1]):
        np.testing.assert_allclose(view_similarities(other, targets, candidates, 5), expected, rtol=1e-5, atol=1e-9)


def test_noise_in_many_features_hides_no_groups():
    """Two groups whose distance in one feature is little beside that of any two points in a thousand others."""
    groups = np.arange(120) % 2
    X = np.random.default_rng(0).normal(size=(120, 1000))
    X[:, 0] += 15.0 * groups
    everyone, same = np.arange(120), groups[:, None] == groups
    gamma = make_kernel(X, "rbf", gamma=EffectiveCount(60.0)).gamma
    seen, plain = view_similarities(X, everyone, everyone, 2), rbf_kernel(X, gamma=gamma)
    contrasts = [S[same & ~np.eye(120, dtype=bool)].mean() - S[~same].mean() for S in (seen, plain)]
    assert contrasts[0] > 2 * contrasts[1] > 0


@pytest.mark.parametrize("d", [4, 50])
def test_single_precision_gives_nearly_the_same_in_double_precision(d):
    X = elongated(80, d)
    everyone = np.arange(80)
    double, single = (view_similarities(Y, everyone, everyone, 8) for Y in (X, X.astype(np.float32)))
    assert single.dtype == double.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [3, 60])
def test_single_target_resembles_itself_and_two_see_one_another(make, d):
    X = make(elongated(5, d))
    one = view_similarities(X, np.array([2]), np.array([2, 4]), 1)
    assert one.shape == (1, 2)
    assert one[0, 0] == 1.0
    assert 0 <= one[0, 1] <= 1
    two = view_similarities(1e4 * X, np.array([2, 4]), np.array([2, 4]), 1)
    np.testing.assert_allclose(two, [[1.0, np.exp(-1.0)], [np.exp(-1.0), 1.0]], rtol=1e-9)


def test_middle_one_of_three_is_chosen_on_any_scale():
    for scale in (1e-6, 1.0, 1e6):
        X = scale * np.array([[0.0], [1.2], [2.2]])
        S = view_similarities(X, np.arange(3), np.arange(3), 1)
        assert S.sum(axis=0).argmax() == 1


@pytest.mark.parametrize("d", [2, 30])
def test_copies_resemble_one_another_completely_even_more_of_them_than_wanted(d):
    distinct = np.random.default_rng(0).normal(size=(12, d))
    X, everyone = np.repeat(distinct, 5, axis=0), np.arange(60)
    S = view_similarities(X, everyone, everyone, 30)  # two are wanted where five are equal
    assert np.isfinite(S).all()
    np.testing.assert_allclose(S.reshape(12, 5, 12, 5)[np.arange(12), :, np.arange(12), :], 1.0, atol=1e-6)
    blocks = S[::5, ::5]
    assert blocks[~np.eye(12, dtype=bool)].max() > 1e-3  # and others are no strangers
    assert blocks[~np.eye(12, dtype=bool)].max() < 1


def test_constant_points_are_all_the_same():
    for d in (3, 40):
        S = view_similarities(np.full((9, d), 0.1), np.arange(9), np.arange(4), 2)
        np.testing.assert_allclose(S, 1.0, atol=1e-9)


@pytest.mark.parametrize("k", [60, 90, 150, 180])
def test_points_that_differ_only_where_nobody_looks_are_no_reason_to_refuse(k):
    """Sixty groups far apart; within them, differences too small to be among the leading directions."""
    X = np.hstack([np.repeat(10.0 * np.eye(60), 6, axis=0), np.tile(1e-3 * np.eye(6), (60, 1))])
    chosen = MOSAIC(k, outliers="keep").fit(X).representative_indices_
    assert len(chosen) == k
    assert len(set((chosen // 6).tolist())) == 60


def test_sample_of_many_targets_shows_the_same_directions(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 60)) * np.where(np.arange(60) < 20, 10.0, 1e-3)
    everyone = np.arange(400)
    expected = view_similarities(X, everyone, everyone, 2)
    monkeypatch.setattr("mosaic.view.SAMPLE", 100)
    np.testing.assert_allclose(view_similarities(X, everyone, everyone, 2, random_state=3), expected, atol=1e-3)


# The estimator


def test_view_is_for_similarities_that_are_left_to_us():
    X = np.random.default_rng(0).normal(size=(100, 30))
    ours = [MOSAIC(5).fit(Y)._solved.vectors is not None for Y in (X, sp.csr_array(X), X.astype(np.float32))]
    theirs = [{"gamma": 0.1}, {"gamma": "scale"}, {"kernel": "laplacian"}, {"kernel": "linear"}]
    assert all(ours)
    assert not any(MOSAIC(5, **settings).fit(X)._solved.vectors is not None for settings in theirs)


def test_sparse_points_are_chosen_as_dense_ones_are():
    X = np.random.default_rng(0).normal(size=(100, 60))
    X[np.abs(X) < 1] = 0.0
    dense, sparse = MOSAIC(8).fit(X), MOSAIC(8).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.representative_indices_, dense.representative_indices_)
