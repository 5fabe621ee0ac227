"""Every formula of problem.py against its definition; a flipped sign or a lost factor fails here."""

import numpy as np
import pytest

from mosaic.program.problem import DesignProblem, RowProgram, critical_lam, feasible_scale, primal_dual
from mosaic.program.solvers import FISTA, InteriorPoint, run
from oracles import certify, exact_factor, objective


def random_problem(rng, n=12, p=5, lam=0.7, full=True) -> DesignProblem:
    F = rng.normal(size=(n, p))
    A = rng.normal(size=(p, p + 3))
    return DesignProblem(F, F.T @ F if full else A @ A.T, lam)


def solved(problem: DesignProblem, tol: float = 1e-11) -> np.ndarray:
    return run(InteriorPoint(), problem, tol=tol, max_iter=60).value


def two_phi(problem: DesignProblem, eta: np.ndarray) -> float:
    M = np.eye(problem.p) / problem.lam + problem.F.T @ np.diag(eta) @ problem.F
    return float(np.trace(problem.C @ np.linalg.inv(M)) + eta.sum())


def hessian(at) -> np.ndarray:
    """½ ∇²(2φ)."""
    return np.asarray(at.curvature())


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("n", "p"), [(12, 5), (5, 9)])
def test_gradient_and_hessian_match_finite_differences(rng, n, p, full):
    problem = random_problem(rng, n, p, full=full)
    eta = rng.uniform(0.1, 1.0, size=n)
    at = problem.evaluate(eta)
    h = 1e-5
    for j in range(n):
        e = np.zeros(n)
        e[j] = h
        slope = (two_phi(problem, eta + e) - two_phi(problem, eta - e)) / (2 * h)
        assert slope == pytest.approx(1 - at.v[j], abs=1e-7)
        curvature = (problem.evaluate(eta - e).v - problem.evaluate(eta + e).v) / (2 * h)
        np.testing.assert_allclose(2 * hessian(at)[j], curvature, atol=1e-6 * np.abs(hessian(at)).max())


@pytest.mark.parametrize(("n", "p"), [(12, 5), (5, 9), (8, 8)])
def test_both_spaces_agree(rng, n, p):
    """Features that are zero everywhere change nothing, and neither do zero candidates; they decide in which space we compute."""
    problem = random_problem(rng, n, p, lam=3.0, full=False)
    eta = rng.uniform(1e-6, 1.0, size=n)
    wide = DesignProblem(np.pad(problem.F, ((0, 0), (0, n))), np.pad(problem.C, ((0, n), (0, n))), problem.lam)
    tall = DesignProblem(np.pad(problem.F, ((0, 2 * p), (0, 0))), problem.C, problem.lam)
    assert wide.in_candidate_space
    assert not tall.in_candidate_space
    a, b = tall.evaluate(np.pad(eta, (0, 2 * p), constant_values=0.5)), wide.evaluate(eta)
    assert a.inner == pytest.approx(b.inner, rel=1e-10)
    assert a.fit == pytest.approx(b.fit, rel=1e-8)
    np.testing.assert_allclose(a.v[:n], b.v, rtol=1e-7)
    expected = hessian(b)
    np.testing.assert_allclose(hessian(a)[:n, :n], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_square_shortcut_agrees(rng):
    """And K_SS and K_S: in place of F_S and the targets give the same values, whether Y is narrowed or not."""
    F = rng.normal(size=(9, 7))
    plain, square = DesignProblem(F, F.T @ F, 2.0), DesignProblem(F, F.T @ F, 2.0, square=True)
    eta = rng.uniform(1e-4, 1.0, size=9)
    eta[[2, 5]] = 1e-9, 1e-14  # rows that would cancel
    pairs = [(plain.evaluate(eta), square.evaluate(eta))]
    for chosen in (np.array([0, 3, 4]), np.arange(3, 9)):
        eta = rng.uniform(0.1, 1.0, size=len(chosen))
        small, known = square.restrict(chosen), square.restrict(chosen, for_steps=True)
        assert small.square is False
        pairs.append((small.evaluate(eta), known.evaluate(eta)))
    for a, b in pairs:
        for left, right in zip((*a[:3], hessian(a)), (*b[:3], hessian(b)), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("unit", [1.0, 1e-25, 1e25])
@pytest.mark.parametrize(("n", "p"), [(12, 5), (5, 9), (8, 8)])
def test_single_precision_is_the_same_problem_in_any_unit(rng, n, p, unit):
    F = rng.normal(size=(n, p)) * unit
    eta = rng.uniform(0.01, 1.0, size=n)
    for square in (True, False):
        new, used = (DesignProblem(F, F.T @ F, 2.0 / unit**2, square=square) for _ in range(2))
        b = used.evaluate(eta)  # which knows F Fᵀ from now on, where it is needed
        for problem in (new, used):
            a = problem.single.evaluate(eta)
            assert hessian(a).dtype == np.float32
            for left, right in zip((*a[:3], hessian(a)), (*b[:3], hessian(b)), strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("smallest", [1e-2, 1e-6, 1e-10])
def test_evaluation_is_precise_even_for_tiny_weights(rng, roll_kernel, smallest):
    """The bounds that interior point stops on are those of the plain certificate, to many digits."""
    F = exact_factor(roll_kernel**20)
    eta = smallest ** rng.random(len(F))
    for square in (True, False):
        problem = DesignProblem(F, F.T @ F, 2.0, square=square)
        assert problem.in_candidate_space
        at = problem.evaluate(eta)
        z = np.sqrt(at.v)
        bounds = primal_dual(at.inner, at.fit, float(eta @ z), float(z.max()))
        np.testing.assert_allclose(bounds, certify(problem, eta), rtol=1e-9)


def coefficients(problem, eta, rows, targets):
    """R[rows] for target features t_i (m×p): r_ji = η_j f_jᵀ M⁻¹ t_i, M = I/lam + Fᵀ diag(η) F."""
    M = np.eye(problem.p) / problem.lam + problem.F.T @ (eta[:, None] * problem.F)
    return eta[rows][:, None] * (problem.F[rows] @ np.linalg.solve(M, targets.T))


def test_primal_at_eta_equals_the_paper_objective(rng, roll_kernel):
    """Also in the reduced program of W = diag(η) F M⁻¹ T, whose rows have the norms of those of R."""
    K = roll_kernel
    F = exact_factor(K)
    problem, R0 = DesignProblem(F, F.T @ F, 0.8), np.zeros_like(K)
    assert problem.scale == pytest.approx(objective(K, R0, 0.8), rel=1e-12)
    eta = rng.uniform(0, 1, size=len(K)) * (rng.random(len(K)) < 0.3)
    R, W = (coefficients(problem, eta, np.arange(len(K)), targets) for targets in (F, problem.T.T))
    assert certify(problem, eta).primal == pytest.approx(objective(K, R, 0.8), rel=1e-12)
    np.testing.assert_allclose(np.linalg.norm(R, axis=1), np.linalg.norm(W, axis=1), rtol=1e-9)
    for bounds in (RowProgram(F, F.T, 0.8).bounds(R), RowProgram(F, problem.T, 0.8).bounds(W)):
        np.testing.assert_allclose(bounds, certify(problem, eta), rtol=1e-9)
    eta = np.maximum(eta, 1e-3)
    at = problem.evaluate(eta)
    R = coefficients(problem, eta, np.arange(len(K)), F)
    assert 0.5 * at.fit + eta @ np.sqrt(at.v) == pytest.approx(objective(K, R, 0.8), rel=1e-10)


def test_dual_never_exceeds_primal_and_meets_it_at_the_optimum(rng):
    problem = random_problem(rng, 20, 6, lam=2.0)
    best = certify(problem, solved(problem))
    assert best.primal == pytest.approx(best.dual, rel=1e-9)
    for _ in range(20):
        eta = rng.exponential(size=20) * rng.uniform(0, 2)
        bounds, point = certify(problem, eta), problem.dual_point(eta)
        theta = feasible_scale(point.inner, point.fit, float(problem.scores(point.E).max())) * point.E
        assert np.linalg.norm(problem.F @ theta, axis=1).max() <= 1 + 1e-12
        lagrangian = np.vdot(theta, problem.T) - np.vdot(theta, theta) / (2 * problem.lam)  # its minimum over W and Z
        assert bounds.dual == pytest.approx(lagrangian, rel=1e-12)
        # Both sides against the optimum, so that neither sign can be wrong.
        assert bounds.primal >= best.primal * (1 - 1e-9)
        assert bounds.dual <= best.dual * (1 + 1e-9)


def test_zero_is_optimal_exactly_up_to_lam_crit(roll_kernel):
    F = exact_factor(roll_kernel)
    problem = DesignProblem(F, F.T @ F, 1.0)
    lam_crit = critical_lam(problem)
    assert lam_crit == pytest.approx(1 / np.linalg.norm(roll_kernel, axis=1).max(), rel=1e-8)
    below = problem.with_lam(0.999 * lam_crit)
    zero = np.zeros(problem.n)
    assert certify(below, zero).dual == pytest.approx(certify(below, zero).primal, rel=1e-12)
    above = problem.with_lam(1.05 * lam_crit)
    assert certify(above, solved(above)).primal < above.scale * (1 - 1e-6)


def test_rows_satisfy_the_kkt_conditions(roll_kernel):
    """lam (K(I − R))_j = r_j/‖r_j‖ on the support, norm at most 1 off it."""
    K = roll_kernel
    F = exact_factor(K)
    problem = DesignProblem(F, F.T @ F, 1.0)
    problem = problem.with_lam(5 * critical_lam(problem))
    eta = solved(problem, 1e-13)
    R = coefficients(problem, eta, np.arange(len(K)), F)
    gradient = problem.lam * (K - K @ R)
    norms = np.linalg.norm(R, axis=1)
    active = norms > 1e-4 * norms.max()
    assert 3 < active.sum() < len(K)
    np.testing.assert_allclose(gradient[active], R[active] / norms[active, None], atol=1e-5)
    assert np.linalg.norm(gradient, axis=1).max() <= 1 + 1e-6


def test_sketch_equals_the_program_with_few_candidates(rng, roll_kernel):
    """F := L, C := L⁻¹ K_cᵀ K_c L⁻ᵀ gives the value of candidates ≠ targets, plus lam/2 · (tr K − tr C)."""
    K = roll_kernel
    chosen = np.sort(rng.choice(len(K), 15, replace=False))
    L = np.linalg.cholesky(K[np.ix_(chosen, chosen)])
    half = np.linalg.solve(L, K[chosen])
    C = half @ half.T
    sketch, missed = DesignProblem(L, C, 0.6), 0.3 * float(np.trace(K) - np.trace(C))
    F = exact_factor(K)
    few = DesignProblem(F, F.T @ F, 0.6).restrict(chosen)
    a, b = solved(sketch), solved(few)
    assert certify(sketch, a).primal + missed == pytest.approx(certify(few, b).primal, rel=1e-9)
    assert certify(sketch, a).dual + missed == pytest.approx(certify(few, b).dual, rel=1e-9)
    np.testing.assert_allclose(a, b, atol=1e-4 * a.max())
    R = np.zeros_like(K)
    R[chosen] = coefficients(few, b, np.arange(15), F)
    assert certify(sketch, a).primal + missed == pytest.approx(objective(K, R, 0.6), rel=1e-8)


def test_weights_equal_repeated_points(rng):
    F = rng.normal(size=(10, 4))
    counts = rng.integers(1, 5, size=10)
    repeated = np.repeat(F, counts, axis=0)
    lam = 3 * critical_lam(DesignProblem(repeated, repeated.T @ repeated, 1.0))
    many = DesignProblem(repeated, repeated.T @ repeated, lam)
    few = DesignProblem(F, (F.T * counts) @ F, lam)
    a, b = solved(many), solved(few)
    assert certify(many, a).primal == pytest.approx(certify(few, b).primal, rel=1e-10)
    gathered = np.bincount(np.repeat(np.arange(10), counts), weights=a)
    np.testing.assert_allclose(gathered, b, atol=1e-4 * b.max())
    A = rng.normal(size=(4, 2))
    singular = DesignProblem(F, A @ A.T, 1.0)
    assert singular.T.shape == (4, 2)
    np.testing.assert_allclose(singular.T @ singular.T.T, singular.C, atol=1e-12)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_prox_matches_brute_force(rng, norm):
    program = RowProgram(np.eye(4), np.eye(4), 1.0, norm)
    V = rng.normal(size=(4, 6))
    t = 0.9
    W = program.prox(V, t)
    order = 2 if norm == "l2" else np.inf

    def value(w, v):
        return t * np.linalg.norm(w, order) + 0.5 * ((w - v) ** 2).sum()

    for w, v in zip(W, V, strict=True):
        for _ in range(300):
            assert value(w, v) <= value(w + rng.normal(size=6) * 10 ** rng.uniform(-6, 0), v) + 1e-12


def test_linf_dual_meets_primal(rng, roll_kernel):
    F = exact_factor(roll_kernel[:20, :20])
    program = RowProgram(F, F.T, 0.4, "linf")
    found = run(FISTA(), program, tol=1e-9, max_iter=20_000)
    assert found.gap <= 1e-9
    R = found.value
    assert found.primal == pytest.approx(objective(roll_kernel[:20, :20], R, 0.4, "linf"), rel=1e-10)
    for _ in range(10):
        bounds = program.bounds(R + 0.05 * rng.normal(size=R.shape))
        assert bounds.dual <= found.primal * (1 + 1e-9) <= bounds.primal * (1 + 2e-9)
