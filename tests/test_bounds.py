from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mosaic.arrays.codes import EqualRows
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import make_kernel
from mosaic.program.bounds import Bound, Spectrum, best_for_k, bound_of, dual_bound, largest, strength_for_k, with_residual
from mosaic.program.problem import DesignProblem, critical_lam
from mosaic.program.solve import Program
from mosaic.program.working_set import solve_design
from oracles import ridge_error

RIDGES = (0.01, 0.1, 1.0, 10.0)


def all_errors(K, weights, k, ridge):
    """err_g of every set of k points: Σ ω_i k_ii − tr((K_SS + gI)⁻¹ K_S· D K_·S)."""
    sets = np.array(list(combinations(range(len(K)), k)))
    inner = K[sets[:, :, None], sets[:, None, :]]
    KDK = (K * weights) @ K
    G = KDK[sets[:, :, None], sets[:, None, :]]
    solved = np.linalg.solve(inner + ridge * np.eye(k), G)
    return weights @ np.diagonal(K) - np.trace(solved, axis1=1, axis2=2)


def random_kernel(rng, n):
    """Similarities of a random kind: of few features, smooth, of very different lengths, nearly diagonal, narrow, in clusters."""
    X, kind = rng.normal(size=(n, int(rng.integers(1, 4)))), rng.integers(6)
    if kind == 5:
        X = np.round(X) + 0.05 * X
    near = np.exp(-((X[:, None] - X) ** 2).sum(-1))
    lengths, narrow = 10.0 ** rng.uniform(-1, 1, n), 10.0 ** rng.uniform(-1, 1.5)
    kinds = [X @ X.T, (X @ X.T + 1.0) ** 2, lengths[:, None] * near * lengths, np.eye(n) + 0.1 * near, near**narrow, near**narrow]
    return kinds[kind] / np.diagonal(kinds[kind]).mean()


def random_weights(rng, n):
    return np.ones(n) if rng.random() < 0.5 else rng.uniform(0.1, 5.0, n)


def bound_of_some_design(rng, K, weights, ridge):
    """The bound of an E that nobody has optimised, at random, by the formulas for a limited rank."""
    n = len(K)
    pivots = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)  # F of a factorisation that stops early
    w, U = np.linalg.eigh(K[np.ix_(pivots, pivots)])
    keep = w > 1e-6 * w.max()  # so that rounding of F stays far below what is compared
    F = K[:, pivots] @ (U[:, keep] / np.sqrt(w[keep]))
    lam = 10.0 ** rng.uniform(-1, 2)
    eta = rng.uniform(0, 1, n) * (rng.random(n) < rng.uniform(0.2, 1))
    A = np.linalg.solve(np.eye(F.shape[1]) / lam + (F.T * eta) @ F, F.T)
    E = A * np.sqrt(weights)
    scores = largest(((F @ E) ** 2).sum(axis=1), most=int(rng.integers(1, n + 1)))
    by_factor = Bound(float((E * F.T * np.sqrt(weights)).sum()), float((E**2).sum()), scores, ridge)
    kernel = make_kernel(K, "precomputed")
    return by_factor, with_residual(kernel, F, weights, A, lam, int(rng.integers(1, n + 1)), ridge), F


def spectra(K, F, weights):
    """From the kernel, and from a factor."""
    lengths = largest((F**2).sum(axis=1), most=3)
    alike = bool((weights == 1).all())
    by_factor = Spectrum.of((F.T * weights) @ F, None if alike else F.T @ F, lengths)
    roots = np.sqrt(weights)
    return Spectrum.of(roots[:, None] * K * roots, None if alike else K, largest(np.diagonal(K))), by_factor


@pytest.mark.parametrize(("part", "cases", "sizes"), [*((i, 500, (4, 8)) for i in range(3)), (8, 15, (12, 14))])
def test_bounds_hold_against_every_subset(part, cases, sizes):
    """Fifteen hundred kernels, all sets of all sizes, with and without weights, ranks and ridges of all kinds."""
    rng = np.random.default_rng(part)
    for _ in range(cases):
        n, ridge = int(rng.integers(sizes[0], sizes[1] + 1)), float(rng.choice(RIDGES))
        K, weights = random_kernel(rng, n), random_weights(rng, n)
        by_factor, whole, F = bound_of_some_design(rng, K, weights, ridge)
        total = float(weights @ np.diagonal(K))
        tails = spectra(K, F, weights)
        for k in range(1, n + 1):
            best = all_errors(K, weights, k, ridge).min()
            found = [by_factor.at(k), whole.at(k), *(spectrum.at(k, ridge) for spectrum in tails)]
            assert max(found) <= best + 1e-10 * total
            nearly = all_errors(K, weights, k, 1e-7).min()  # next to no ridge
            assert max(spectrum.tail(k) for spectrum in tails) <= nearly + 1e-8 * total


def solved_for(kernel, k, ridge, max_rank, weights=None, seed=0):
    """The program at the strength for k."""
    weights = np.ones(kernel.n) if weights is None else weights
    program = Program(kernel, weights, EqualRows.trivial(kernel.n), max_rank=max_rank, thin=False, random_state=seed)
    return program.encode(lam=lambda posed: strength_for_k(posed.problem, k, ridge, posed.lam_crit, posed.initial))


@pytest.mark.parametrize("seed", range(40))
def test_bound_of_points_holds_and_says_something(seed):
    """The solved bound of limited rank, for the kernel itself, over all sets of all sizes."""
    rng = np.random.default_rng(seed)
    n, ridge = int(rng.integers(6, 10)), float(rng.choice(RIDGES))
    K, weights = random_kernel(rng, n), random_weights(rng, n)
    kernel = make_kernel(K, "precomputed")
    max_rank = int(rng.integers(2, n + 1))
    total = float(weights @ np.diagonal(K))
    least = np.array([all_errors(K, weights, k, ridge).min() for k in range(1, n)])
    for k in range(1, n):
        bound = bound_of(solved_for(kernel, k, ridge, max_rank, weights, seed), k, ridge)
        assert ([bound.at(other) for other in range(1, n)] <= least + 1e-10 * total).all()  # whatever number it is for
        if ridge >= 1 and (weights == 1).all():
            assert bound.at(k) >= 0.6 * least[k - 1]


def test_bound_of_a_single_precision_factor_stays_one(rng):
    kernel = make_kernel(rng.normal(size=(12, 2)).astype(np.float32), "rbf", gamma=0.3)
    K = kernel.block(slice(None), np.arange(12))
    for k in range(1, 12):
        encoding = solved_for(kernel, k, 1.0, 12)
        assert encoding.factor.F.dtype == np.float32
        assert bound_of(encoding, k, 1.0).at(k) <= all_errors(K, np.ones(12), k, 1.0).min()


@pytest.mark.parametrize("ridge", RIDGES)
def test_spectral_bound_is_exact_for_points_that_share_nothing(ridge):
    spectrum = Spectrum.of(np.eye(30), None, (1.0,))
    for k in (1, 7, 30):
        exact = 30 - k / (1 + ridge)
        assert spectrum.at(k, ridge) == pytest.approx(exact, rel=1e-12)
        assert spectrum.tail(k) == 30 - k
    bound = Bound(2.0, 1.0, (4.0, 1.0, 0.5), 1.0)  # the largest scores count, and not k times the largest
    assert bound.at(3) == pytest.approx(4.0 / 6.5)
    assert bound.at(5) == pytest.approx(4.0 / 7.5)  # those beyond count as much as the last


def test_water_filling_finds_the_minimum(rng):
    """No other division of the same total gives less."""
    λ = np.sort(rng.uniform(0.1, 5, 6))[::-1]
    spectrum = Spectrum(tuple(λ), tuple(λ), (1.0, 0.8, 0.7))
    for k, budget in ((1, 1.0), (2, 1.8), (3, 2.5), (5, 3.9)):
        for g in RIDGES:
            a = rng.dirichlet(np.full(k, 0.7), 20_000) * budget
            a = a[(a <= λ[:k]).all(axis=1)]
            tried = (λ[:k] / (1 + a / g)).sum(axis=1) + λ[k:].sum()
            assert spectrum.at(k, g) <= tried.min()
            assert spectrum.at(k, g) >= 0.97 * tried.min()


def test_each_part_makes_the_bound_tighter(rng):
    X = rng.normal(size=(300, 6))
    kernel = make_kernel(X, "rbf", gamma=0.1)
    encoding = solved_for(kernel, 20, 1.0, 40)
    factor = encoding.factor
    F, C = factor.F, factor.F.T @ factor.F
    whole = bound_of(encoding, 20, 1.0)
    best, _ = best_for_k(DesignProblem(F, C, 1.0), 20, tol=1e-4, initial=factor.pivots)
    by_factor = replace(best, spectrum=Spectrum.of(C, None, largest((F**2).sum(axis=1))))
    assert whole.at(20) > 1.05 * by_factor.at(20)
    assert whole.without_ridge(20) > by_factor.without_ridge(20)
    by_scores = Bound(whole.inner, whole.energy, whole.scores, 0.01)
    by_spectrum = Bound(whole.inner, whole.energy, whole.scores, 0.01, spectrum=whole.spectrum)
    assert by_spectrum.at(20) > 1.5 * by_scores.at(20)


def kernel_problem(rng, n=40):
    K = rbf_kernel(rng.normal(size=(n, 2)), gamma=0.5)
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

    def value(R):
        left = np.eye(len(K)) - R
        return np.trace(left.T @ K @ left) + g * (R**2).sum()

    assert value(R) == pytest.approx(closed, rel=1e-8)
    for _ in range(20):
        other = R.copy()
        other[chosen] += 0.01 * rng.normal(size=(3, len(K)))
        assert value(other) > closed


@pytest.mark.parametrize("ridge", [0.1, 1.0])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_bound_holds_for_every_subset(rng, k, ridge):
    _, problem = kernel_problem(rng, 14)
    least = min(ridge_error(problem.F, problem.C, np.array(S), ridge) for S in combinations(range(14), k))
    assert 0.5 * least < best_for_k(problem, k, ridge=ridge, tol=1e-5)[0].at(k) <= least * (1 + 1e-9)


@pytest.mark.parametrize(("k", "ridge"), [(2, 0.1), (5, 1.0), (12, 0.3)])
def test_strength_of_the_bound_is_the_best_one(rng, k, ridge):
    """lam · g · Σ‖r_j‖ = k, where the derivative of the bound vanishes, beats every strength of a fine grid."""
    _, problem = kernel_problem(rng, 40)
    at = [problem.with_lam(alpha * critical_lam(problem)) for alpha in np.geomspace(1.1, 200.0, 40)]
    best = max(dual_bound(one, solve_design(one, tol=1e-6).value, ridge)[0].at(k) for one in at)
    assert best_for_k(problem, k, ridge=ridge, tol=1e-6)[0].at(k) >= 0.999 * best


def test_targets_that_nothing_resembles_are_refused():
    with pytest.raises(InvalidInputError, match="no candidate resembles any target"):
        critical_lam(DesignProblem(np.zeros((3, 2)), np.eye(2), 1.0))
