"""What MOSAIC proves: the certificate of the choice, the one program behind it, and where it starts from."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, Paper, datasets

GROSS = datasets.blobs_with_gross_outliers()
CLOUD = np.random.default_rng(0).normal(size=(200, 4))
DIGITS = load_digits().data[:600]


def test_certificate_of_the_paper_belongs_to_the_choice_and_is_refined_after_the_fit():
    model = MOSAIC(10, algorithm=Paper(alpha=20.0)).fit(DIGITS)
    first = model.certificate_
    assert model.certificate_ is first
    second = model.rethreshold(algorithm__tol=1e-5).certificate_
    assert second.gap <= 1e-5 < first.gap
    assert first.bound < second.bound <= second.error == first.error
    assert first.bound > 0.97 * second.bound
    fewer = model.rethreshold(n_representatives=5).certificate_
    assert (first.k, fewer.k) == (10, 5)
    assert fewer.error > first.error
    assert fewer.bound > first.bound


def test_solution_is_that_of_the_exact_layer():
    K = rbf_kernel(CLOUD, gamma=0.3)
    model = MOSAIC(5, algorithm=Paper(alpha=30.0, tol=1e-9), kernel="precomputed").fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=30.0, tol=1e-9)
    np.testing.assert_allclose(model.influence_, encoding.influence, atol=1e-3)
    np.testing.assert_allclose(model.effective_count_, encoding.effective_count, rtol=1e-3)
    assert (model.lam_, model.alpha_) == (pytest.approx(encoding.lam), pytest.approx(30.0))
    assert model.certificate_.encoding.primal == pytest.approx(encoding.certificate.primal, rel=1e-8)
    assert model.selection_.data.is_solved  # in the fit
    assert model.certificate_.encoding is model.selection_.data.encoding.certificate


@pytest.mark.parametrize("solver", ["interior-point", "admm", "fista", "admm-paper"])
def test_any_solver_serves(solver):
    X = CLOUD[:60]
    model = MOSAIC(5, algorithm=Paper(alpha=5.0, solver=solver), gamma=0.3).fit(X)
    assert model.certificate_.gap <= 1e-3
    tight = MOSAIC(5, algorithm=Paper(alpha=5.0, tol=1e-5), gamma=0.3).fit(X)
    np.testing.assert_allclose(np.log(model.effective_count_), np.log(tight.effective_count_), atol=0.1)
    if solver != "interior-point":
        with pytest.warns(mosaic.ConvergenceWarning, match="above the tolerance 0.001"):
            MOSAIC(algorithm=Paper(solver=solver, max_iter=3), gamma=0.3).fit(X)


@pytest.mark.parametrize("name", ["influence_", "lam_", "alpha_", "n_iter_"])
def test_only_the_paper_has_a_program_of_all_rows(name):
    model = MOSAIC(5).fit(CLOUD)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=r"exist with algorithm='paper' only\. mosaic\.solve solves the program of any rows"):
        getattr(model, name)
    assert not hasattr(MOSAIC(), name)
    assert hasattr(MOSAIC(5, algorithm="paper").fit(CLOUD[:40]), name)


def test_copies_share_the_influence_of_their_point_and_rows_without_weight_have_none():
    X = CLOUD[:40]
    settings = {"algorithm": Paper(alpha=5.0), "gamma": 0.3, "outliers": "keep", "scale": False}
    weights = np.ones(41)
    weights[:4], weights[40] = 3.0, 0.0
    weighted = MOSAIC(**settings).fit(np.concatenate([X, X[:1]]), sample_weight=weights)
    whole = MOSAIC(**settings).fit(np.concatenate([X, X[:4], X[:4]]))
    assert weighted.influence_[40] == 0
    assert weighted.influence_[:4].any()
    np.testing.assert_allclose(whole.influence_[4:40], weighted.influence_[4:40], rtol=1e-9)
    for copies in (whole.influence_[:4], whole.influence_[40:44], whole.influence_[44:]):
        np.testing.assert_allclose(3.0 * copies, weighted.influence_[:4], rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_certificate_of_the_paper_bounds_every_choice_of_the_same_size(seed):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    model = MOSAIC(2, outliers="keep", algorithm="paper", gamma=0.5).fit(X)
    certificate, k = model.certificate_, len(model.representative_indices_)
    K, g = rbf_kernel(X, gamma=0.5), certificate.ridge

    def error(S):
        S = list(S)
        return np.trace(K) - np.trace(K[:, S] @ np.linalg.solve(K[np.ix_(S, S)] + g * np.eye(k), K[S]))

    errors = [error(S) for S in combinations(range(12), k)]
    chosen = error(model.representative_indices_)
    assert certificate.error == pytest.approx(chosen, rel=1e-9)
    assert certificate.bound <= min(errors) * (1 + 1e-9)
    assert certificate.excess == pytest.approx(chosen / certificate.bound - 1)
    assert certificate.excess >= chosen / min(errors) - 1 >= 0


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (1.03, "Provably close to the best: the error of these 5"),
        (1.2, "Provably good: the error of these 5"),
        (1.8, "How close these 5 are"),
    ],
)
def test_certificate_of_the_paper_says_how_good_the_choice_is_in_at_most_thirty_words(error, verdict):
    certificate = MOSAIC(5, algorithm="paper").fit(CLOUD).certificate_
    assert certificate.k == 5
    judged = replace(certificate, error=error * certificate.bound)
    assert str(judged).startswith(verdict)
    assert len(str(judged).split()) <= 30
    assert ("%" in str(judged)) == (error < 1.25)
