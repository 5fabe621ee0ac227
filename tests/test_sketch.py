"""Algorithm 3: its candidates, its rounds, its errors and its certificate, against brute force."""

import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, Paper, Sketch, datasets
from mosaic.kernels import RBF, make_kernel
from mosaic.kernels.points import Laplacian, Linear, PolynomialKernel
from mosaic.program.sketch import encode_with_few, misrepresentation
from mosaic.program.solve import Program
from oracles import objective

X = datasets.swiss_roll(300, random_state=1)
K = RBF(X, 0.01).block(slice(None), np.arange(300))
KERNELS = {
    "rbf": RBF(X, 0.01),
    "laplacian": Laplacian(X, 0.05),
    "linear": Linear(X),
    "cosine": make_kernel(X + 5.0, "cosine"),
    "polynomial": PolynomialKernel(X / 10.0, 1.0, 2, 1.0),
    "precomputed": make_kernel(K, "precomputed"),
}
FIRST = np.arange(0, 300, 10)


def sketch(kernel, candidates=FIRST, n_added=8, n_rounds=1, weights=None, lam=None, solver="auto"):
    weights = np.ones(kernel.n) if weights is None else weights
    program = Program(kernel, weights, solver=solver, tol=1e-7)
    return encode_with_few(program, candidates, n_added, n_rounds, 20.0, lam)


def all_of(kernel):
    return kernel.block(slice(None), np.arange(kernel.n))


@pytest.mark.parametrize("name", KERNELS)
def test_value_is_that_of_its_rows_and_the_certificate_holds_for_the_whole_program(name):
    kernel, weights = KERNELS[name], np.where(np.arange(300) < 5, 4.0, 1.0)
    found = sketch(kernel, n_rounds=2, weights=weights)
    R, certificate = found.rows(np.arange(300)), found.certificate
    value = objective(all_of(kernel), R, found.lam, weights=weights)
    assert certificate.primal == pytest.approx(value, rel=1e-6, abs=1e-6 * certificate.scale)
    np.testing.assert_allclose(found.influence, np.sqrt(R**2 @ weights), rtol=1e-5, atol=1e-8)
    whole = Program(kernel, weights, tol=1e-7).encode(lam=found.lam).certificate
    slack = 1e-6 * whole.scale
    assert certificate.dual - slack <= whole.primal
    assert whole.dual <= certificate.primal + slack
    assert certificate.scale == pytest.approx(whole.scale, rel=1e-9)


def test_it_is_the_optimum_of_the_candidates_and_with_all_points_that_of_algorithm_1():
    kernel = KERNELS["rbf"]
    found = sketch(kernel)
    R = found.rows(np.arange(300))
    G = found.lam * (K @ (np.eye(300) - R))  # its rows are r_j/‖r_j‖, or at most 1 long where r_j = 0
    norms, used = np.linalg.norm(R, axis=1), found.support
    assert np.isin(used, FIRST).all()
    np.testing.assert_allclose(G[used], R[used] / norms[used, None], atol=2e-3)
    assert np.linalg.norm(G[FIRST], axis=1).max() < 1 + 1e-3
    whole = sketch(kernel, np.arange(300))
    assert whole.certificate.primal == pytest.approx(
        mosaic.solve(X, gamma=0.01, alpha=20.0, tol=1e-7).certificate.primal, rel=1e-6
    )


@pytest.mark.parametrize("solver", ["admm", "fista"])
def test_any_solver_finds_the_same(solver):
    found, expected = (sketch(KERNELS["rbf"], lam=0.3, solver=name) for name in (solver, "auto"))
    np.testing.assert_allclose(found.influence, expected.influence, atol=1e-3)
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("name", ["rbf", "linear", "precomputed"])
def test_a_round_adds_the_points_that_are_represented_worst_and_drops_none(name):
    kernel = KERNELS[name]
    one = sketch(kernel)
    rest = np.eye(300) - one.rows(np.arange(300))
    errors = np.einsum("ij,ij->j", rest, all_of(kernel) @ rest)
    np.testing.assert_allclose(misrepresentation(one), errors, atol=1e-8 * errors.max())
    errors[FIRST] = -np.inf
    worst = np.argsort(-errors, kind="stable")[:8]
    two, again = sketch(kernel, n_rounds=2), sketch(kernel, np.union1d(FIRST, worst), lam=one.lam)
    np.testing.assert_array_equal(two.influence, again.influence)
    assert (two.lam, two.alpha) == (one.lam, pytest.approx(20.0))
    assert two.certificate.primal <= one.certificate.primal * (1 + 1e-6)


def test_rounds_end_where_every_point_is_a_candidate():
    found = sketch(KERNELS["rbf"], n_added=200, n_rounds=4)
    assert found.certificate.rank > 250
    assert found.certificate.gap < 1e-2


def test_the_estimator_draws_candidates_at_random_and_keeps_them_with_the_seed():
    models = [MOSAIC(5, algorithm=Paper(lam=0.5, sketch=Sketch(40, 5, 2)), gamma=0.01, random_state=seed) for seed in (0, 0, 1)]
    one, same, other = (model.fit(X).influence_ for model in models)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert np.count_nonzero(one) <= 45
    first = np.sort(np.random.default_rng(0).permutation(300)[:40])
    program = Program(RBF(X, 0.01), np.ones(300), tol=1e-10, thin=False)
    points = models[0].selection_.data.points
    found = encode_with_few(program, np.sort(points.first[first]), 5, 2, None, 0.5)
    np.testing.assert_allclose(one, found.influence, atol=1e-4)
