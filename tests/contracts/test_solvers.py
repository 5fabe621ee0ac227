"""Promises that every solver keeps."""

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

import mosaic
from mosaic.kernels import KERNELS, make_kernel
from mosaic.program import SolverName
from mosaic.program.problem import DesignProblem, RowProgram, critical_lam
from mosaic.program.solvers import FIRST_ORDER, InteriorPoint, Status, run
from oracles import conic_solution, exact_factor, lasso_solution, objective

SOLVERS = get_args(SolverName)
SIMILARITIES = [*KERNELS, "callable"]


def test_every_name_of_a_solver_has_its_method():
    assert {*SOLVERS} == {"auto", *FIRST_ORDER}


def points(n=24, d=3):
    return np.random.default_rng(3).normal(size=(n, d))


def settings(kernel, X):
    """(what to pass, keyword arguments, the matrix K it means)."""
    if kernel == "precomputed":
        K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
        return K, {"kernel": "precomputed"}, K
    if kernel == "callable":

        def k(A, B):
            return (1 + A @ B.T) ** 2

        return X, {"kernel": k}, k(X, X)
    if kernel == "distances":
        D = np.abs(X[:, None] - X[None]).sum(-1)
        return D, {"kernel": "distances", "gamma": 0.3}, np.exp(-0.3 * D)
    if kernel == "haversine":
        X = X[:, :2]
    if kernel == "tanimoto":
        X = abs(X)
    arguments = {"kernel": kernel}
    return X, arguments, make_kernel(X, kernel).block(slice(None), np.arange(len(X)))


@pytest.mark.parametrize("kernel", SIMILARITIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_gap_closes_for_every_solver(solver, kernel):
    X, arguments, K = settings(kernel, points())
    encoding = mosaic.solve(X, **arguments, alpha=4.0, solver=solver, tol=1e-6, max_iter=200_000)
    assert encoding.status is Status.CONVERGED
    assert encoding.dual_gap <= 1e-6
    R = encoding.rows(np.arange(len(K)))
    value = objective(K, R, encoding.lam)
    assert encoding.certificate.dual * (1 - 1e-9) <= value <= encoding.certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("kernel", SIMILARITIES)
def test_agrees_with_multitask_lasso(kernel):
    X, arguments, K = settings(kernel, points())
    lam = 4.0 / np.linalg.norm(K, axis=1).max()
    best = objective(K, lasso_solution(K, lam), lam)
    for solver in ("auto", *FIRST_ORDER):
        encoding = mosaic.solve(X, **arguments, lam=lam, solver=solver, tol=2e-9, max_iter=500_000)
        value = objective(K, encoding.rows(np.arange(len(K))), lam)
        assert value == pytest.approx(best, rel=1e-8), solver


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_agrees_with_cvxpy(norm):
    X, _, K = settings("rbf", points(16))
    F = exact_factor(K)
    order = 2 if norm == "l2" else 1
    lam = 4.0 / np.linalg.norm(K, order, axis=1).max()
    program = RowProgram(F, F.T, lam, norm)
    best = program.bounds(conic_solution(program))
    assert best.primal - best.dual < 1e-7 * program.scale
    for solver in ("auto", *FIRST_ORDER):
        encoding = mosaic.solve(X, lam=lam, solver=solver, row_norm=norm, tol=5e-9, max_iter=500_000)
        value = objective(K, encoding.rows(np.arange(len(K))), lam, norm)
        assert value == pytest.approx(best.primal, rel=1e-8), solver


@pytest.mark.parametrize("alpha", [1.01, 3.0, 30.0, 3000.0])
def test_interior_point_needs_at_most_25_steps(alpha, roll_kernel):
    for K in (roll_kernel, roll_kernel**0.05, roll_kernel**20):
        F = exact_factor(K)
        problem = DesignProblem(F, F.T @ F, 1.0)
        problem = problem.with_lam(alpha * critical_lam(problem))
        found = run(InteriorPoint(), problem, tol=1e-6, max_iter=25)
        assert found.status is Status.CONVERGED


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_running_out_of_iterations_is_said_and_the_best_is_kept(name, roll_kernel):
    F = exact_factor(roll_kernel)
    found = run(FIRST_ORDER[name], RowProgram(F, F.T, 1.0), tol=1e-12, max_iter=35)
    assert found.status is Status.MAX_ITER
    assert "max_iter" in found.status.value
    assert found.iterations == 35
    gaps = [run(FIRST_ORDER[name], RowProgram(F, F.T, 1.0), tol=1e-12, max_iter=steps).gap for steps in (0, 10, 20, 30)]
    assert all(b <= a for a, b in pairwise([*gaps, found.gap]))


@pytest.mark.parametrize("row_norm", ["l2", "linf"])
@pytest.mark.parametrize("solver", FIRST_ORDER)
def test_no_solver_certifies_what_it_has_not_reached(solver, row_norm):
    """Iterates that overshoot have ⟨E,T⟩ < 0; taking 1/max z as the only limit of s would put the dual above the primal."""
    angles = np.arange(8) * np.pi / 4
    corners = np.column_stack([np.cos(angles), np.sin(angles), np.ones(8)])
    X = np.vstack([corners, np.random.default_rng(0).dirichlet(np.ones(8), size=20) @ corners])
    arguments = {"kernel": "linear", "lam": 20.0, "row_norm": row_norm}
    encoding = mosaic.solve(X, **arguments, solver=solver, tol=1e-5, max_iter=100_000)
    assert encoding.status is Status.CONVERGED
    assert encoding.dual_gap >= -1e-12
    other = mosaic.solve(X, **arguments, tol=1e-5, max_iter=100_000)
    assert encoding.certificate.primal == pytest.approx(other.certificate.primal, abs=2e-5 * other.certificate.scale)
