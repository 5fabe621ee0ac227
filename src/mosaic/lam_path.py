"""Solutions along lam, the strength that gives a wanted number of rows, and the bound for k.

The bound. For any k candidates S and ridge g > 0 let err_g(S) = min over R with rows in S of
tr((I − R)ᵀ K (I − R)) + g ‖R‖²_F, which is tr K − tr(K_S (K_SS + g I)⁻¹ K_Sᵀ): the part of the data that S cannot
express. Every E = M⁻¹T, whatever strength it came from, proves for *all* S of size k at once

    err_g(S) ≥ ⟨E,T⟩² / (‖E‖² + (k/g) · max_j z_j²) + outside.

Proof: let θ = u·E/max z, so ‖θᵀ f_j‖ ≤ u for all j. Then ‖T − FᵀR‖² ≥ 2⟨θ, T⟩ − 2⟨θ, FᵀR⟩ − ‖θ‖², where
⟨θ, FᵀR⟩ ≤ u Σ_j ‖r_j‖, and g‖r_j‖² − 2u‖r_j‖ ≥ −u²/g for each of the k rows. Maximise over u.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from mosaic._arrays import FloatArray, IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.problem import DesignProblem, DualPoint, critical_lam
from mosaic.solvers import Solution
from mosaic.working_set import solve_design


@dataclass(frozen=True)
class Bound:
    """Three numbers of one E, and the ridge g: a lower bound for err_g of every set, whatever its size.

    Examples
    --------
    >>> Bound(inner=6.0, energy=2.0, largest_score=1.0, ridge=1.0).at(4)
    6.0
    """

    inner: float  # ⟨E, T⟩
    energy: float  # ‖E‖²
    largest_score: float  # max_j z_j over all candidates
    ridge: float
    outside: float = 0.0

    def at(self, k: int) -> float:
        """⟨E,T⟩² / (‖E‖² + (k/g) max z²) + outside ≤ err_g(S) for every S of k candidates."""
        return self.inner**2 / (self.energy + k / self.ridge * self.largest_score**2) + self.outside


@dataclass(frozen=True)
class PathPoint:
    """A solution at one strength, with the three numbers that the bound needs."""

    lam: float
    alpha: float
    solution: Solution
    inner: float  # ⟨E, T⟩
    energy: float  # ‖E‖²
    largest_score: float  # max_j z_j over all candidates

    @property
    def support(self) -> IntArray:
        """Candidates with a non-zero row."""
        return np.flatnonzero(self.solution.value)

    def dual_point(self, problem: DesignProblem) -> DualPoint:
        """E, for the problem that this solves."""
        return problem.with_lam(self.lam).dual_point(self.solution.value)

    def bounds(self, ridge: float, outside: float = 0.0) -> Bound:
        """What it proves of sets of any size."""
        return Bound(self.inner, self.energy, self.largest_score, ridge, outside)

    def bound(self, k: int, ridge: float, outside: float = 0.0) -> float:
        """⟨E,T⟩² / (‖E‖² + (k/g) max z²) + outside ≤ err_g(S) for every S of k candidates."""
        return self.bounds(ridge, outside).at(k)


def _path_point(problem: DesignProblem, lam_crit: float, solution: Solution) -> PathPoint:
    point = problem.dual_point(solution.value)
    # Over all candidates: screening is safe for the program, but the bound speaks of every set.
    largest = float(problem.scores(point.E).max())
    return PathPoint(problem.lam, problem.lam / lam_crit, solution, point.inner, point.fit * problem.lam, largest)


def lam_path(
    problem: DesignProblem,
    alphas: Sequence[float],
    *,
    tol: float = 1e-3,
    initial: IntArray | None = None,
    callback: Callable[[PathPoint], None] | None = None,
) -> list[PathPoint]:
    """Solutions at lam = alpha · lam_crit for increasing alpha, each started from the one before.

    Examples
    --------
    >>> import numpy as np
    >>> F = np.random.default_rng(0).normal(size=(60, 4))
    >>> path = lam_path(DesignProblem(F, F.T @ F, 1.0), [2.0, 5.0, 20.0])
    >>> [point.solution.gap <= 1e-3 for point in path]
    [True, True, True]
    """
    lam_crit = critical_lam(problem)
    points: list[PathPoint] = []
    start: FloatArray | None = None
    for alpha in sorted(float(a) for a in alphas):
        if not alpha > 1:
            raise InvalidInputError(f"alpha must be > 1 (a multiple of the critical strength); got {alpha:g}.")
        at = problem.with_lam(alpha * lam_crit)
        solution = solve_design(at, tol=tol, initial=initial, start=start)
        start = solution.value
        points.append(_path_point(at, lam_crit, solution))
        if callback is not None:
            callback(points[-1])
    return points


def smallest_lam(
    problem: DesignProblem,
    n_rows: int,
    *,
    tol: float = 1e-3,
    precision: float = 0.02,
    initial: IntArray | None = None,
) -> PathPoint:
    """The smallest strength, to a relative ``precision``, whose solution has at least ``n_rows`` rows.

    The number of rows is not exactly monotone in lam; the answer has enough of them, and the strength 1 + precision
    below it had fewer.
    """
    if not 1 <= n_rows <= problem.n:
        raise InvalidInputError(f"n_rows must lie between 1 and the number of candidates {problem.n}; got {n_rows}.")
    lam_crit = critical_lam(problem)

    def at(log_alpha: float, start: FloatArray | None) -> PathPoint:
        scaled = problem.with_lam(float(np.exp(log_alpha)) * lam_crit)
        return _path_point(scaled, lam_crit, solve_design(scaled, tol=tol, initial=initial, start=start))

    low, high = 0.0, np.log(2.0)
    best = at(high, None)
    while len(best.support) < n_rows:
        if high > np.log(1e8):
            raise InvalidInputError(
                f"no strength up to 1e8 times the critical one gives {n_rows} rows; the data supports {len(best.support)}. "
                "Points that others express exactly never get a row of their own: ask for fewer, or narrow the kernel."
            )
        low, high = high, high + np.log(2.0)
        best = at(high, best.solution.value)
    while high - low > np.log1p(precision):
        middle = 0.5 * (low + high)
        trial = at(middle, best.solution.value)
        if len(trial.support) >= n_rows:
            best, high = trial, middle
        else:
            low = middle
    return best


def bound_for_k(
    problem: DesignProblem, k: int, *, ridge: float = 1.0, tol: float = 1e-3, initial: IntArray | None = None
) -> float:
    """A lower bound for err_g of every set of k candidates.

    Examples
    --------
    >>> import numpy as np
    >>> F = np.random.default_rng(0).normal(size=(40, 3))
    >>> problem = DesignProblem(F, F.T @ F, 1.0)
    >>> 0 < bound_for_k(problem, 5) <= ridge_error(F, F.T @ F, np.arange(5), 1.0)
    True
    """
    return best_for_k(problem, k, ridge=ridge, tol=tol, initial=initial).bound(k, ridge, problem.outside)


def best_for_k(
    problem: DesignProblem, k: int, *, ridge: float = 1.0, tol: float = 1e-3, initial: IntArray | None = None
) -> PathPoint:
    """The solution at nearly the strength whose bound for k is the best.

    The best strength has lam · g · Σ_j ‖r_j(lam)‖ = k: there the derivative of c g (2 D(1/(c g)) − c k) by c vanishes, since
    dD/dlam is half the misfit. It is looked for on few candidates; the bound holds at any strength.
    """
    if not 1 <= k <= problem.n:
        raise InvalidInputError(f"k must lie between 1 and the number of candidates {problem.n}; got {k}.")
    if not ridge > 0:
        raise InvalidInputError(f"ridge must be > 0; got {ridge}.")
    lam_crit = critical_lam(problem)
    few = problem.restrict(_some_candidates(problem.n, initial))

    def excess(log_alpha: float) -> float:
        lam = float(np.exp(log_alpha)) * lam_crit
        total = float(solve_design(few.with_lam(lam), tol=0.01, thin=False).row_norms.sum())
        return float(np.log(max(lam * ridge * total, 1e-12 * k) / k))

    low, high = np.log(1.05), np.log(1e4)
    log_alpha = low if excess(low) >= 0 else high if excess(high) <= 0 else brentq(excess, low, high, xtol=0.02)
    at = problem.with_lam(float(np.exp(log_alpha)) * lam_crit)
    solution = solve_design(at, tol=tol, initial=initial, thin=False)
    return _path_point(at, lam_crit, solution)


def _some_candidates(n: int, initial: IntArray | None, size: int = 300) -> IntArray:
    """Pivots of a factorisation, which are spread over the data, or a random few."""
    if n <= size:
        return np.arange(n)
    if initial is not None and len(initial) >= size:
        return np.sort(initial[:size])
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def ridge_error(F: FloatArray, C: FloatArray, chosen: IntArray, ridge: float, outside: float = 0.0) -> float:
    """err_g(S) = tr C − tr(F_S C F_Sᵀ (F_S F_Sᵀ + g I)⁻¹) + outside: what S cannot express."""
    S = np.asarray(F[chosen], np.float64)
    inner = S @ C @ S.T
    factor = cho_factor(S @ S.T + ridge * np.eye(len(S)), lower=True)
    # err_g is the minimum of fit + g‖R‖²; at the minimum it equals tr C − tr(F_S C F_Sᵀ (F_S F_Sᵀ + g I)⁻¹).
    return float(np.trace(C)) - float(np.trace(cho_solve(factor, inner))) + outside
