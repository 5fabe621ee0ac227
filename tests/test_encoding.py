"""What an encoding says, against the same things computed from the full n×n matrices."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

import mosaic
from mosaic.kernels import make_kernel
from oracles import objective


def matrix(X, **arguments):
    return make_kernel(X, **arguments).block(slice(None), np.arange(len(X)))


def counts_of(K, R, lam):
    Q = np.abs(lam * K @ (np.eye(len(K)) - R))
    return Q.sum(axis=1) / Q.max(axis=1)


@pytest.mark.parametrize(("alpha", "tol"), [(10.0, 1e-2), (10.0, 1e-3), (10.0, 1e-4), (10.0, 1e-6), (100.0, 5e-3), (1e3, 1e-3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_certificate_holds_for_the_true_kernel(alpha, tol, seed):
    X = make_swiss_roll(600, random_state=seed)[0]
    K = matrix(X, kernel="rbf")
    encoding = mosaic.solve(X, alpha=alpha, tol=tol, random_state=seed)
    certificate = encoding.certificate
    assert encoding.dual_gap <= tol
    assert certificate.kernel_error > 1e-10  # the kernel was really approximated
    value = objective(K, encoding.rows(np.arange(600)), encoding.lam)
    assert value <= certificate.primal * (1 + 1e-10)
    best = mosaic.solve(K, kernel="precomputed", lam=encoding.lam, tol=1e-9).certificate
    assert certificate.dual <= best.primal * (1 + 1e-9)
    assert value >= best.dual * (1 - 1e-9)
    assert certificate.scale == pytest.approx(0.5 * encoding.lam * np.trace(K))


def test_rows_and_counts_match_their_definitions():
    X = make_swiss_roll(300, random_state=0)[0]
    encoding = mosaic.solve(X, alpha=6.0, tol=1e-8)
    R = encoding.rows(np.arange(300))
    np.testing.assert_allclose(encoding.influence, np.linalg.norm(R, axis=1), rtol=1e-8)
    np.testing.assert_allclose(encoding.effective_count, counts_of(matrix(X, kernel="rbf"), R, encoding.lam), rtol=1e-5)
    # On the support this is the paper's ratio of row norms.
    rows = np.abs(encoding.rows(encoding.support))
    np.testing.assert_allclose(encoding.effective_count[encoding.support], rows.sum(1) / rows.max(1), rtol=1e-5)
    assert (np.diff(encoding.influence[encoding.support]) <= 0).all()
    outside = np.setdiff1d(np.arange(300), encoding.support)
    assert len(outside)
    assert not encoding.influence[outside].any()
    assert not encoding.rows(outside).any()
    told = repr(mosaic.solve(X))
    assert re.match(r"Encoding of 300 points by .*provably within 0\.0.*kernel error.*alpha=10", told, re.S), told


def test_duplicates_share_weight_and_equal_multiplicities(rng):
    X = rng.normal(size=(60, 2))
    counts = rng.integers(1, 6, size=60)
    owner = np.repeat(np.arange(60), counts)
    shuffled = rng.permutation(len(owner))
    many = mosaic.solve(X[owner][shuffled], gamma=0.7, alpha=5.0, tol=1e-9)
    few = mosaic.solve(X, gamma=0.7, alpha=5.0, tol=1e-9, sample_weight=counts)
    assert many.lam == pytest.approx(few.lam, rel=1e-9)
    assert many.certificate.primal == pytest.approx(few.certificate.primal, rel=1e-9)
    gathered = np.bincount(owner[shuffled], weights=many.influence, minlength=60)
    np.testing.assert_allclose(gathered, few.influence, atol=1e-5)
    np.testing.assert_allclose(many.influence, (few.influence / counts)[owner][shuffled], atol=1e-5)
    np.testing.assert_allclose(many.effective_count, few.effective_count[owner][shuffled], rtol=1e-6)
    R = many.rows(np.arange(len(owner)))
    K = matrix(X[owner][shuffled], kernel="rbf", gamma=0.7)
    assert objective(K, R, many.lam) == pytest.approx(many.certificate.primal, rel=1e-6)


def test_linf_encoding_matches_its_definitions(rng):
    X = rng.normal(size=(40, 2))
    encoding = mosaic.solve(X, alpha=4.0, row_norm="linf", tol=1e-7)
    K = matrix(X, kernel="rbf")
    assert encoding.lam == pytest.approx(4.0 / np.abs(K).sum(axis=1).max(), rel=1e-6)
    R = encoding.rows(np.arange(40))
    np.testing.assert_allclose(encoding.influence, np.abs(R).max(axis=1))
    zero = encoding.influence == 0
    assert 0 < zero.sum() < 40
    np.testing.assert_allclose(encoding.effective_count[zero], counts_of(K, R, encoding.lam)[zero], rtol=1e-5)
    rows = np.abs(R[~zero])
    np.testing.assert_allclose(encoding.effective_count[~zero], rows.sum(1) / rows.max(1))
    assert objective(K, R, encoding.lam, "linf") <= encoding.certificate.primal * (1 + 1e-9)
    assert encoding.dual_gap <= 1e-7


def test_counts_of_large_data_are_estimated_from_a_sample():
    """At 20 000 points, n² times the rank is more than is computed; 300 points are compared with sums over all targets."""
    X = make_swiss_roll(20_000, random_state=0)[0]
    encoding = mosaic.solve(X, tol=1e-3)
    F, support, some = encoding.factor.F, encoding.support, np.arange(0, 20_000, 67)
    assert 20_000.0**2 * encoding.factor.rank > 2e10
    Q = np.abs(F[some] @ (F.T - F[support].T @ encoding.rows(support)))
    exact = Q.sum(axis=1) / Q.max(axis=1)
    assert not np.allclose(encoding.effective_count[some], exact, rtol=1e-6)
    assert np.median(np.abs(encoding.effective_count[some] / exact - 1)) < 0.1
