"""Solutions along lam, and the bound for k.

The bound. Every E = M⁻¹T, whatever strength it came from, proves of *all* sets of k candidates at once how much they leave
(``mosaic.bounds``). The strength matters for how tight that is, and the best one for k is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from mosaic._arrays import FloatArray, IntArray, row_norms_squared
from mosaic.bounds import EXACT, MOST_OPERATIONS, ROUNDING, Bound, Largest, Spectrum, with_residual
from mosaic.exceptions import InvalidInputError
from mosaic.factor import Factor
from mosaic.kernels import Kernel
from mosaic.problem import DesignProblem, DualPoint, critical_lam, weighted_gram
from mosaic.solvers import Solution
from mosaic.working_set import solve_design

#: Relative gap that the program behind a bound is solved to; a gap of 1e-2 would cost a percent of the bound. Where the factor is
#: all that is looked at, a hundredth of what it misses is enough.
BOUND_TOLERANCE, SHARE_OF_MISSED = 1e-4, 0.01
#: Multiplications that a similarity is counted as, at least.
LEAST_WORK = 100


@dataclass(frozen=True)
class PathPoint:
    """A solution at one strength, with the numbers that the bound needs."""

    lam: float
    alpha: float
    solution: Solution
    inner: float  # ⟨E, T⟩
    energy: float  # ‖E‖²
    scores: Largest  # z_j² over all candidates

    @property
    def largest_score(self) -> float:
        """max_j z_j over all candidates."""
        return float(np.sqrt(self.scores.values[0]))

    @property
    def support(self) -> IntArray:
        """Candidates with a non-zero row."""
        return np.flatnonzero(self.solution.value)

    def dual_point(self, problem: DesignProblem) -> DualPoint:
        """E, for the problem that this solves."""
        return problem.with_lam(self.lam).dual_point(self.solution.value)

    def bounds(self, ridge: float, outside: float = 0.0) -> Bound:
        """What it proves of sets of any size."""
        return Bound(self.inner, self.energy, self.scores, ridge, outside)

    def bound(self, k: int, ridge: float, outside: float = 0.0) -> float:
        """⟨E,T⟩² / (‖E‖² + Σ_{k largest} z²/g) + outside ≤ err_g(S) for every S of k candidates."""
        return self.bounds(ridge, outside).at(k)


def _path_point(problem: DesignProblem, lam_crit: float, solution: Solution) -> PathPoint:
    point = problem.dual_point(solution.value)
    # Over all candidates: screening is safe for the program, but the bound speaks of every set.
    scores = Largest.of(problem.scores(point.E) ** 2)
    return PathPoint(problem.lam, problem.lam / lam_crit, solution, point.inner, point.fit * problem.lam, scores)


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
    dD/dlam is half the misfit. It is looked for on few candidates; the bound holds at any strength. (That is the best strength
    where k times the largest z² stands for the k largest, which are about equal at a solution.)
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


def bound_of_points(kernel: Kernel, factor: Factor, weights: FloatArray, k: int, ridge: float) -> Bound:
    """What every set of k points leaves at least, for the kernel as given: dual and spectral bound, from its factor.

    Where n²p or n³ multiplications are affordable (``MOST_OPERATIONS``), the kernel itself is looked at and not only its factor.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.factor import factorize
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.random.default_rng(0).normal(size=(40, 3)), "rbf", gamma=0.5)
    >>> bound = bound_of_points(kernel, factorize(kernel, max_rank=10), np.ones(40), 5, ridge=1.0)
    >>> 20 < bound.at(5) < 40, 5 < bound.without_ridge(5) < 40
    (True, True)
    """
    n, F = kernel.n, factor.F
    C, whole = weighted_gram(F, weights), factor.error <= EXACT * factor.trace
    residual = not whole and float(n) ** 2 * max(factor.rank, LEAST_WORK) <= MOST_OPERATIONS
    tol = bound_tolerance(0.0 if residual else factor.relative_error)
    best = best_for_k(DesignProblem(F, C, 1.0), k, ridge=ridge, tol=tol, initial=factor.pivots)
    rounding = ROUNDING * float(np.finfo(F.dtype).eps) * factor.trace
    if not whole and float(n) ** 3 <= MOST_OPERATIONS:
        spectrum = Spectrum.of_kernel(kernel.block(slice(None), np.arange(n)), weights)
    else:
        G = None if (weights == 1).all() else weighted_gram(F, np.ones(n))
        spectrum = Spectrum.of_factor(C, G, Largest.of(row_norms_squared(F)))
    bound = replace(best.bounds(ridge, -rounding), spectrum=spectrum)
    if not residual:
        return bound
    at, eta = DesignProblem(F, C, best.lam), best.solution.value
    used = np.flatnonzero(eta)
    A = at.restrict(used).solve_M(eta[used], np.asarray(F.T, np.float64))
    return with_residual(kernel, F, weights, A, bound, best.lam, k)


def bound_tolerance(missed: float) -> float:
    """The gap that a program behind a bound is solved to, if its factor misses this share of the kernel.

    Examples
    --------
    >>> bound_tolerance(0.0), bound_tolerance(0.05)
    (0.0001, 0.0005)
    """
    return max(BOUND_TOLERANCE, SHARE_OF_MISSED * missed)


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
