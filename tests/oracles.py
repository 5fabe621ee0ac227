"""Independent answers: the paper's objective written out, scikit-learn's multi-task lasso, CVXPY, exact factors."""

import warnings

import numpy as np
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

from mosaic.program.problem import RowProgram, primal_dual


def exact_factor(K: np.ndarray) -> np.ndarray:
    w, U = np.linalg.eigh(K)
    keep = w > 1e-14 * w[-1]
    return U[:, keep] * np.sqrt(w[keep])


def objective(K: np.ndarray, R: np.ndarray, lam: float, norm: str = "l2", weights: np.ndarray | None = None) -> float:
    """lam/2 tr((I−R)ᵀK(I−R)) + Σ‖r_j‖, in the plainest way; weights repeat targets."""
    weights = np.ones(len(K)) if weights is None else weights
    left = np.eye(len(K)) - R
    fit = np.einsum("ij,ij,j->", left, K @ left, weights)
    rows = np.sqrt((R**2 * weights).sum(axis=1)) if norm == "l2" else np.abs(R).max(axis=1)
    return float(0.5 * lam * fit + rows.sum())


def lasso_solution(K: np.ndarray, lam: float, tol: float = 1e-13, max_iter: int = 200_000) -> np.ndarray:
    """R by scikit-learn's coordinate descent."""
    F = exact_factor(K)
    model = MultiTaskLasso(alpha=1 / (lam * F.shape[1]), fit_intercept=False, tol=tol, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(F.T, F.T)
    return model.coef_.T


def paper_admm(K_s: np.ndarray, K_c: np.ndarray, lam: float, tol: float = 1e-12) -> np.ndarray:
    """R_c (r×n) by the ADMM of the paper's Algorithm 3, K_s between r candidates, K_c of all n points to them; Algorithm 1 where
    everybody is a candidate. The paper leaves ρ open.
    """
    r, n = K_c.T.shape
    rho = 0.1 * lam * np.trace(K_s) / r
    inverse = np.linalg.inv(lam * K_s + rho * np.eye(r))
    R, Q = np.zeros((r, n)), np.zeros((r, n))
    for _ in range(200_000):
        delta = inverse @ (lam * K_c.T + rho * (R - Q))
        V = delta + Q
        lengths = np.linalg.norm(V, axis=1, keepdims=True)
        new = np.maximum(1.0 - 1.0 / (rho * np.maximum(lengths, 1e-300)), 0.0) * V
        Q = V - new
        moved = max(np.abs(delta - new).max(), np.abs(new - R).max())
        R = new
        if moved < tol:
            return R
    raise AssertionError(f"no solution: a step still moves by {moved:.1e}")


def outlier_probability(R: np.ndarray) -> np.ndarray:
    """(n − ‖r‖₁ / ‖r‖_∞) / (n − 1) of rows that are not zero."""
    n = R.shape[1]
    return (n - np.abs(R).sum(axis=1) / np.abs(R).max(axis=1)) / (n - 1)


def paper_picks(K: np.ndarray, R: np.ndarray, share: float = 0.95, threshold: float | None = None) -> list[int]:
    """Non-zero rows of R by influence; of these the novel ones; of these those that are no outliers. Plain loops.

    The distance is the paper's, k_xx + k_yy − 2 k_xy; the rule for it and the threshold (a row stands for two points) are ours.
    """
    n = len(K)
    threshold = 1.0 - 1.0 / (n - 1) if threshold is None else threshold
    influence = np.linalg.norm(R, axis=1)
    located = sorted(np.flatnonzero(influence), key=lambda j: -influence[j])
    gone = set()
    for place, i in enumerate(located):
        if i in gone:
            continue
        distance = {j: max(K[i, i] + K[j, j] - 2.0 * K[i, j], 0.0) for j in located}
        total, running = sum(distance.values()), 0.0
        for j in sorted(located, key=lambda j: -distance[j]):
            running += distance[j]
            if share < 1 and running > share * total and located.index(j) > place:
                gone.add(j)
    return [int(i) for i in located if i not in gone and outlier_probability(R[[i]])[0] <= threshold]


def algorithm_3(K: np.ndarray, lam: float, first: np.ndarray, n_added: int, n_rounds: int) -> list[np.ndarray]:
    """R (n×n) after each round: the candidates' rows, then the points with the largest e_j become candidates."""
    n, candidates, found = len(K), np.sort(first), []
    for _ in range(n_rounds):
        K_s, K_c = K[np.ix_(candidates, candidates)], K[:, candidates]
        R_c = paper_admm(K_s, K_c, lam)
        R = np.zeros((n, n))
        R[candidates] = R_c
        found.append(R)
        errors = np.diag(K) - 2.0 * (K_c.T * R_c).sum(axis=0) + ((K_s @ R_c) * R_c).sum(axis=0)
        errors[candidates] = -np.inf
        candidates = np.union1d(candidates, np.argsort(-errors, kind="stable")[:n_added])
    return found


def conic_solution(problem: RowProgram) -> np.ndarray:
    """W by CVXPY and Clarabel, for small problems."""
    import cvxpy as cp

    W = cp.Variable(problem.shape)
    rows = cp.norm(W, 2, axis=1) if problem.norm == "l2" else cp.max(cp.abs(W), axis=1)
    value = 0.5 * problem.lam * cp.sum_squares(problem.T - problem.F.T @ W) + cp.sum(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": callers look at the gap
        cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-9, tol_feas=1e-11)
    return np.asarray(W.value)


def gauge(Y: np.ndarray, S: np.ndarray, symmetric: bool = True) -> np.ndarray:
    """min { Σ|c| : Sᵀc = y } for each y, or with c ≥ 0: by how much the hull of S must grow to reach it; ∞ outside its span."""
    corners = np.concatenate([S, -S]) if symmetric else S
    found = [linprog(np.ones(len(corners)), A_eq=corners.T, b_eq=y) for y in Y]
    return np.array([each.fun if each.status == 0 else np.inf for each in found])


def hull_coverage(Y: np.ndarray, chosen: np.ndarray, symmetric: bool = True) -> float:
    """Σ‖y‖ min(1, 1/γ(y)) / Σ‖y‖: the share of the segments from 0 to the points that lies inside the hull of the chosen."""
    lengths = np.linalg.norm(Y, axis=1)
    return float(lengths @ (1.0 / np.maximum(gauge(Y, Y[list(chosen)], symmetric), 1.0)) / lengths.sum())


def certify(problem, eta):
    """Primal and dual value at η ≥ 0, over all candidates: w_j = η_j Eᵀ f_j, so ‖w_j‖ = η_j z_j."""
    point = problem.dual_point(eta)
    z = problem.scores(point.E)
    return primal_dual(point.inner, point.fit, float(eta @ z), float(z.max()))


#: Extended precision, 1e-19: alpha = 1e12 leaves seven digits of it. NumPy has no factorisations in it, so they are written out.
LONG = np.longdouble


def long_kernel(X: np.ndarray, kind: str, gamma: float = 1.0) -> np.ndarray:
    """The similarities of the points as they are, in extended precision; those of "precomputed" are exact."""
    X = X.astype(LONG)
    if kind in ("rbf", "laplacian"):
        apart = abs(X[:, None] - X)
        return np.exp(-LONG(gamma) * (apart**2 if kind == "rbf" else apart).sum(axis=-1))
    products = X if kind == "precomputed" else X @ X.T
    lengths = np.sqrt(np.diagonal(products))
    if kind == "cosine":
        return products / lengths[:, None] / lengths
    return (LONG(gamma) * products + 1) ** 3 if kind == "polynomial" else products


def long_objective(K: np.ndarray, R: np.ndarray, lam: float, weights: np.ndarray) -> LONG:
    left = np.eye(len(K), dtype=LONG) - R
    return LONG(lam) / 2 * (weights * ((K @ left) * left).sum(axis=0)).sum() + np.sqrt((R * R) @ weights).sum()


def long_inverse(B: np.ndarray) -> np.ndarray:
    """By Gauss and Jordan, without pivoting: B is positive definite."""
    A = B.copy()
    for j in range(len(A)):
        pivot, column = 1 / A[j, j], A[:, j].copy()
        row = A[j] * pivot
        row[j], column[j] = pivot, 0
        A[:, j] = 0
        A[j] = 0
        A -= column[:, None] * row
        A[j] = row
    return A


def long_solution(K: np.ndarray, lam: float, weights: np.ndarray, tol: float = 1e-7) -> np.ndarray:
    """R = diag(η) Q by an interior-point method, Q = lam K (I + lam diag(η) K)⁻¹, v_j = Σ_i ω_i q_ji², ∇2φ = 1 − v."""
    n, lam, ω = len(K), LONG(lam), weights.astype(LONG)

    def at(eta):
        d = np.sqrt(eta)
        Q = lam * (long_inverse(np.eye(n, dtype=LONG) + lam * d[:, None] * K * d) * d) @ K / d[:, None]
        Q = (Q + Q.T) / 2
        v = Q**2 @ ω
        inner, z = (ω * np.diagonal(Q)).sum(), np.sqrt(v)
        primal, dual = primal_dual(inner, max(inner - eta @ v, LONG(0)), eta @ z, z.max())
        return Q, v, primal, dual

    def longest(x, step):
        down = step < 0
        return min(LONG(1), (-x[down] / step[down]).min()) if down.any() else LONG(1)

    starts = [np.full(n, LONG(10.0**e) * np.sqrt(ω.sum())) for e in range(-6, 4)]
    eta, zeta = min(starts, key=lambda eta: at(eta)[2]), np.full(n, LONG(0.1))
    best, proven, R = np.inf, 0.0, np.zeros_like(K)
    for _ in range(60):
        Q, v, primal, dual = at(eta)
        if primal < best:
            best, R = primal, eta[:, None] * Q
        proven = max(proven, dual)
        if best - proven <= tol * best:
            break
        H = 2 * Q * ((Q * ω) @ Q) + np.diag(zeta / eta)
        unit = 1 / np.sqrt(np.diagonal(H))
        inverse = long_inverse(H * unit[:, None] * unit + LONG(1e-17) * np.eye(n)) * unit[:, None] * unit
        mean, aim = eta @ zeta / n, 0
        for _ in ("predictor", "corrector"):  # of Mehrotra
            step = inverse @ (v - 1 + aim / eta)
            other = aim / eta - zeta - zeta / eta * step
            a, b = longest(eta, step), longest(zeta, other)
            aim = mean * ((eta + a * step) @ (zeta + b * other) / n / mean) ** 3 - step * other
        eta, zeta = eta + 0.99 * a * step, zeta + 0.99 * b * other
    return R
