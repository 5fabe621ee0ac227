"""Algorithms as their papers publish them, for running times only: ADMM on a matrix of all points, and a generic convex solver.

One stopping rule for every ADMM: it ends when the two sides of its constraint, and the iterate of one step and the next, differ
by at most ``RESIDUAL`` of its norm. The picks are the k rows of largest norm. What follows in the papers, thinning and outliers,
takes no time beside this and is left out for everybody.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from experiments.methods import CannotRun, Picks, Selector
from experiments.methods._ds3_program import largest_strength
from experiments.methods._selecting import distances, generator, points, square
from experiments.methods.detect_smrs import shortened
from experiments.methods.kmedoids import select as k_medoids
from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import equal_rows
from mosaic.kernels import RBF, resolve_gamma
from mosaic.program.problem import RowProgram

#: Share of ‖C‖ (Frobenius) that constraint and step may differ by, and the most steps.
RESIDUAL, MOST_STEPS = 1e-3, 10_000
#: Strength of the paper's program as a multiple of the critical one, as in ``algorithm="paper"``; and that of SMRS's authors.
ALPHA, SMRS_ALPHA = 10.0, 5.0
#: Strength of DS3 as a share of the largest, at which it has about 20 representatives of these points; its authors' step length.
DS3_SHARE, DS3_STEP = 0.01, 0.1
#: Random candidates, added ones, and rounds of Algorithm 3: few, as the text has it.
CANDIDATES, ADDED, ROUNDS = 100, 10, 3
#: Points that forms with an n×n unknown and a generic solver can take before memory or hours run out.
LARGEST, LARGEST_GENERIC = 10_000, 100
#: Seconds after which the generic solver stops by itself, after the step that it is in: compiled code hears no alarm.
PATIENCE = 20.0


def alternate(
    solve: Callable[[FloatArray], FloatArray], shrink: Callable[[FloatArray], FloatArray], shape: tuple[int, int]
) -> FloatArray:
    """Z ← solve(C − U), C ← shrink(Z + U), U ← U + Z − C, until ‖Z − C‖ and the step of C are at most 10⁻³ ‖C‖."""
    C: FloatArray = np.zeros(shape)
    U = np.zeros(shape)
    for _ in range(MOST_STEPS):
        Z = solve(C - U)
        new = shrink(Z + U)
        U += Z - new
        moved = max(np.linalg.norm(Z - new), np.linalg.norm(new - C))
        C = new
        if moved <= RESIDUAL * np.linalg.norm(C):
            return C
    raise CannotRun(f"took more than {MOST_STEPS} steps")


def on_simplex(V: FloatArray) -> FloatArray:
    """For every column the nearest point z ≥ 0 with 1ᵀz = 1."""
    sizes = -np.sort(-V, axis=0)
    levels = (np.cumsum(sizes, axis=0) - 1.0) / np.arange(1, len(V) + 1)[:, None]
    last = (sizes > levels).sum(axis=0) - 1
    return np.asarray(np.maximum(V - levels[last, np.arange(V.shape[1])], 0.0))


def largest_rows(norms: FloatArray, k: int) -> Picks:
    """The k rows of largest norm, the first of equal ones; fewer where fewer are not zero."""
    ranked = np.argsort(-norms, kind="stable")[:k]
    return Picks(ranked[norms[ranked] > 0])


def gamma_of(X: FloatArray, seed: int) -> float:
    """1 / the median squared distance between distinct rows, as in ``algorithm="paper"``."""
    return resolve_gamma(RBF(X[equal_rows(X).first]), "median", generator(seed))


def encode(K_s: FloatArray, K_c: FloatArray, lam: float) -> FloatArray:
    """R_c of the paper's ADMM with ρ = lam · tr K_s / r: the rows of r candidates for n points; Algorithm 1 where all are."""
    r = len(K_s)
    rho = lam * float(np.trace(K_s)) / r
    inverse = np.linalg.inv(lam * K_s + rho * np.eye(r))
    fixed = lam * K_c.T
    return alternate(lambda V: inverse @ (fixed + rho * V), partial(shortened, by=1.0 / rho), (r, len(K_c)))


def similarities(X: FloatArray, seed: int) -> tuple[FloatArray, float]:
    """K, and lam = 10 / max_j ‖K_j‖. Equal points are not merged."""
    K = square(RBF(X, gamma_of(X, seed)))
    return K, ALPHA / float(np.linalg.norm(K, axis=0).max())


def paper_admm(X: Any, k: int, seed: int) -> Picks:
    """Algorithm 1."""
    K, lam = similarities(points(X, k, LARGEST), seed)
    return largest_rows(np.linalg.norm(encode(K, K, lam), axis=1), k)


def paper_admm_scalable(X: Any, k: int, seed: int) -> Picks:
    """Algorithm 3: r random candidates; in each round the r̂ points with the largest errors become candidates, too."""
    X = points(X, k, LARGEST)
    n = len(X)
    kernel = RBF(X, gamma_of(X, seed))
    chosen: IntArray = generator(seed).permutation(n)[: min(n, CANDIDATES)]
    lam = 0.0
    for round_ in range(ROUNDS):
        K_c = kernel.block(slice(None), chosen)
        K_s = K_c[chosen]
        lam = lam or ALPHA / float(np.linalg.norm(K_c, axis=0).max())
        R = encode(K_s, K_c, lam)
        if round_ < ROUNDS - 1:
            errors = kernel.diagonal() + ((K_s @ R - 2.0 * K_c.T) * R).sum(axis=0)
            errors[chosen] = -np.inf
            chosen = np.append(chosen, np.argsort(-errors, kind="stable")[: min(ADDED, n - len(chosen))])
    return Picks(chosen[largest_rows(np.linalg.norm(R, axis=1), k).indices])


def smrs_admm(X: Any, k: int, seed: int) -> Picks:
    """Min ‖C‖₁₂ + (μ/2) ‖Y − YC‖², 1ᵀC = 1ᵀ, the sums as a further row of the constraint; μ and the step are its authors'."""
    X = points(X, k, LARGEST)
    n, Y = len(X), X - X.mean(axis=0)
    P: FloatArray = Y @ Y.T
    P *= SMRS_ALPHA / np.linalg.norm(P, axis=1).max()
    inverse = np.linalg.inv(P + SMRS_ALPHA * (np.eye(n) + 1.0))

    def solve(V: FloatArray) -> FloatArray:
        Z = inverse @ (P + SMRS_ALPHA * (V[:n] + V[n]))
        return np.vstack([Z, Z.sum(axis=0)])

    def shrink(V: FloatArray) -> FloatArray:
        return np.vstack([shortened(np.asarray(V[:n], np.float64), 1.0 / SMRS_ALPHA), np.ones(n)])

    C = alternate(solve, shrink, (n + 1, n))
    return largest_rows(np.linalg.norm(C[:n], axis=1), k)


def ds3_admm(X: Any, k: int, seed: int) -> Picks:
    """Min ρ Σ_i ‖z_i‖_∞ + tr(DᵀZ), columns of Z on the simplex, at a strength that is not searched for."""
    D = distances(points(X, k, LARGEST))
    D /= max(float(D.max()), np.finfo(np.float64).tiny)
    rows = RowProgram(D, D, 1.0, "linf")
    t = DS3_SHARE * largest_strength(D)[0] / DS3_STEP
    Z = alternate(lambda V: on_simplex(V - D / DS3_STEP), lambda V: rows.prox(V, t), D.shape)
    return largest_rows(np.linalg.norm(Z, axis=1), k)


def generic(X: Any, k: int, seed: int) -> Picks:
    """The paper's program as it stands, handed to CVXPY and Clarabel: interior point, as SeDuMi of the paper's CVX is."""
    X = points(X, k, LARGEST_GENERIC)
    import cvxpy as cp

    K, lam = similarities(X, seed)
    w, U = np.linalg.eigh(K)
    F = (U * np.sqrt(np.maximum(w, 0.0))).T  # K = FᵀF
    R: Any = cp.Variable(K.shape)
    task = cp.Problem(cp.Minimize(0.5 * lam * cp.sum_squares(F - F @ R) + cp.sum(cp.norm(R, 2, axis=1))))
    limits = {"tol_gap_abs": 0.5 * RESIDUAL * lam * len(K), "tol_gap_rel": RESIDUAL, "tol_feas": RESIDUAL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate"
        task.solve(solver=cp.CLARABEL, time_limit=PATIENCE, **limits)
    if task.status == cp.USER_LIMIT:
        raise CannotRun(f"took more than {PATIENCE:g} s")
    return largest_rows(np.linalg.norm(R.value, axis=1), k)


SOLVERS = (
    Selector("paper's ADMM", "ours", paper_admm, largest=LARGEST),
    Selector("paper's ADMM, scalable", "ours", paper_admm_scalable, largest=LARGEST),
    Selector("SMRS (ADMM)", "paper", smrs_admm, largest=LARGEST),
    Selector("DS3 (ADMM)", "paper", ds3_admm, largest=LARGEST),
    Selector("K-medoids (PAM)", "paper", partial(k_medoids, starts=0)),
    Selector("K-medoids (one start)", "paper", partial(k_medoids, starts=1)),
    Selector("CVX reference", "ours", generic, largest=LARGEST_GENERIC),
)
