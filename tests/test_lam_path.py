from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mosaic.exceptions import InvalidInputError
from mosaic.lam_path import bound_for_k, lam_path, ridge_error
from mosaic.problem import DesignProblem, critical_lam


def kernel_problem(rng, n=40):
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    F = np.linalg.cholesky(K + 1e-10 * np.eye(n))
    return K, DesignProblem(F, F.T @ F, 1.0)


def test_ridge_error_matches_its_definition(rng):
    K, problem = kernel_problem(rng)
    chosen, g = np.array([3, 8, 21]), 0.4
    KS, KSS = K[:, chosen], K[np.ix_(chosen, chosen)]
    closed = np.trace(K) - np.trace(KS @ np.linalg.solve(KSS + g * np.eye(3), KS.T))
    assert ridge_error(problem.F, problem.C, chosen, g) == pytest.approx(closed, rel=1e-8)
    # It is the minimum of fit + g‖R‖² over rows in S.
    R = np.zeros_like(K)
    R[chosen] = np.linalg.solve(KSS + g * np.eye(3), KS.T)
    left = np.eye(len(K)) - R

    def value(R):
        left = np.eye(len(K)) - R
        return np.trace(left.T @ K @ left) + g * (R**2).sum()

    assert value(R) == pytest.approx(closed, rel=1e-8)
    for _ in range(20):
        other = R.copy()
        other[chosen] += 0.01 * rng.normal(size=(3, len(K)))
        assert value(other) > closed
    assert left.shape == K.shape


@pytest.mark.parametrize("ridge", [0.1, 1.0])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_bound_holds_for_every_subset(rng, k, ridge):
    _, problem = kernel_problem(rng, 14)
    errors = [ridge_error(problem.F, problem.C, np.array(S), ridge) for S in combinations(range(14), k)]
    bound = bound_for_k(problem, k, ridge=ridge, tol=1e-5)
    assert bound <= min(errors) * (1 + 1e-9)
    assert bound > 0.5 * min(errors)  # and it says something


@pytest.mark.parametrize(("k", "ridge"), [(2, 0.1), (5, 1.0), (12, 0.3)])
def test_strength_of_the_bound_is_the_best_one(rng, k, ridge):
    """lam · g · Σ‖r_j‖ = k, where the derivative of the bound vanishes, beats every strength of a fine grid."""
    _, problem = kernel_problem(rng, 40)
    path = lam_path(problem, np.geomspace(1.1, 200.0, 40), tol=1e-6)
    best = max(point.bound(k, ridge) for point in path)
    assert bound_for_k(problem, k, ridge=ridge, tol=1e-6) >= 0.999 * best


def test_bound_is_at_least_the_one_from_the_dual_value(rng):
    """err_g(S) ≥ c g (2 D(lam) − c k) with lam = 1/(c g), for every c: the closed form is its maximum."""
    _, problem = kernel_problem(rng)
    k, g = 5, 0.5
    point = lam_path(problem, [8.0], tol=1e-9)[0]
    from_grid = []
    for lam in np.geomspace(0.01, 100, 4000):
        # the same dual point at another strength
        D = point.inner / point.largest_score - point.energy / point.largest_score**2 / (2 * lam)
        c = 1 / (lam * g)
        from_grid.append(c * g * (2 * D - c * k))
    assert point.bound(k, g) == pytest.approx(max(from_grid), rel=1e-4)


def test_bound_certifies_greedy_sets(rng):
    _, problem = kernel_problem(rng, 60)
    chosen: list[int] = []
    for _ in range(8):
        rest = [j for j in range(60) if j not in chosen]
        chosen.append(min(rest, key=lambda j: ridge_error(problem.F, problem.C, np.array([*chosen, j]), 1.0)))
    error = ridge_error(problem.F, problem.C, np.array(chosen), 1.0)
    bound = bound_for_k(problem, 8, ridge=1.0)
    assert bound <= error <= 1.2 * bound


def test_outside_adds_to_both_sides(rng):
    _, problem = kernel_problem(rng)
    shifted = DesignProblem(problem.F, problem.C, 1.0, outside=7.0)
    assert bound_for_k(shifted, 4) == pytest.approx(bound_for_k(problem, 4) + 7.0, rel=1e-3)
    chosen = np.arange(4)
    assert ridge_error(problem.F, problem.C, chosen, 1.0, 7.0) == pytest.approx(
        ridge_error(problem.F, problem.C, chosen, 1.0) + 7
    )


def test_path_is_warm_started_and_certified(rng):
    _, problem = kernel_problem(rng, 60)
    seen = []
    points = lam_path(problem, [20.0, 2.0, 6.0], tol=1e-5, callback=seen.append)
    assert [p.alpha for p in points] == pytest.approx([2.0, 6.0, 20.0])
    assert seen == points
    for point in points:
        assert point.solution.gap <= 1e-5
        bounds = problem.with_lam(point.lam).certify(point.solution.value)
        assert bounds.primal == pytest.approx(point.solution.primal, rel=1e-9)
    values = [p.solution.primal for p in points]
    assert values == sorted(values)


def test_bad_requests_are_refused(rng):
    _, problem = kernel_problem(rng)
    with pytest.raises(InvalidInputError, match="alpha must be > 1"):
        lam_path(problem, [0.5])
    with pytest.raises(InvalidInputError, match="k must lie between 1 and"):
        bound_for_k(problem, 41)
    with pytest.raises(InvalidInputError, match="ridge must be > 0"):
        bound_for_k(problem, 3, ridge=0.0)
    with pytest.raises(InvalidInputError, match="no candidate resembles any target"):
        critical_lam(DesignProblem(np.zeros((3, 2)), np.eye(2), 1.0))
