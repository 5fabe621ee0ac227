"""The program of the paper, its certificate, and the influence of rows."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, Paper

CLOUD = np.random.default_rng(0).normal(size=(200, 4))


def test_solution_is_that_of_the_exact_layer():
    K = rbf_kernel(CLOUD, gamma=0.3)
    model = MOSAIC(5, algorithm=Paper(alpha=30.0, tol=1e-9), kernel="precomputed").fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=30.0, tol=1e-9)
    np.testing.assert_allclose(model.influence_, encoding.influence, atol=1e-3)
    np.testing.assert_allclose(model.effective_count_, encoding.effective_count, rtol=1e-3)
    assert (model.lam_, model.alpha_) == (pytest.approx(encoding.lam), pytest.approx(30.0))
    assert model.certificate_.primal == pytest.approx(encoding.certificate.primal, rel=1e-8)
    assert str(model.certificate_).startswith("provably within 0.00")
    assert model.rethreshold(n_representatives=2).certificate_ == model.certificate_  # it is about the program


@pytest.mark.parametrize("solver", ["auto", "admm", "fista"])
def test_any_solver_serves(solver):
    X = CLOUD[:60]
    model = MOSAIC(5, algorithm=Paper(alpha=5.0, solver=solver, tol=1e-3), gamma=0.3).fit(X)
    assert model.certificate_.gap <= 1e-3
    tight = MOSAIC(5, algorithm=Paper(alpha=5.0, tol=1e-5), gamma=0.3).fit(X)
    np.testing.assert_allclose(np.log(model.effective_count_), np.log(tight.effective_count_), atol=0.1)
    if solver != "auto":
        with pytest.warns(mosaic.ConvergenceWarning, match="above the tolerance 1e-10"):
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
