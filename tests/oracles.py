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


def ridge_error(F: np.ndarray, C: np.ndarray, chosen: np.ndarray, ridge: float, outside: float = 0.0) -> float:
    """err_g(S) = tr C − tr(F_S C F_Sᵀ (F_S F_Sᵀ + g I)⁻¹) + outside: the minimum over R of fit + g‖R‖²."""
    S = F[chosen]
    solved = np.linalg.solve(S @ S.T + ridge * np.eye(len(S)), S @ C @ S.T)
    return float(np.trace(C) - np.trace(solved) + outside)


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
