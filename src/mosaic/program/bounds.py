"""Lower bounds for the error that every set of k candidates leaves: a dual and a spectral bound; the larger counts.

For candidates S and ridge g > 0 let err_g(S) = min over R with rows in S of Σ_i ω_i (‖y_i − Σ_j r_ji y_j‖² + g ‖r_i‖²), which is
tr(C (I + A/g)⁻¹) with C = Σ_i ω_i y_i y_iᵀ and A = Σ_{j∈S} y_j y_jᵀ. For every S of k distinct points

    dual:      err_g(S) ≥ ⟨E,T⟩² / (‖E‖² + (sum of the k largest z_j²)/g),   z_j = ‖Eᵀ y_j‖, for any E;
    spectral:  err_g(S) ≥ min Σ_i λ_i/(1 + a_i/g) over a with k entries, 0 ≤ a_i ≤ μ_i, Σ a_i ≤ sum of the k largest k_jj,

where λ are the eigenvalues of C and μ those of K, both decreasing. As g → 0 the second becomes Σ_{i>k} λ_i, the bound for least
squares without a ridge. Proofs: docs/math/bound.md.

Every E = M⁻¹T gives a dual bound, and the strength decides how tight it is. The error of a set for K = F Fᵀ + Δ, Δ ⪰ 0, is at
least its error for F Fᵀ, so bounds for a factor hold for the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from scipy.linalg import eigvalsh
from scipy.optimize import brentq, minimize_scalar

from mosaic.arrays.blocks import FloatArray, IntArray, row_blocks, row_norms_squared, subsample
from mosaic.arrays.xp import numpy_dtype, on_host
from mosaic.kernels import Kernel
from mosaic.program.encoding import DesignRows, Encoding
from mosaic.program.problem import DesignProblem, critical_lam, weighted_gram
from mosaic.program.working_set import solve_design

#: Number of scores and lengths that are kept, largest first; all others are replaced by the last one kept.
MOST_KEPT_SCORES = 1000
#: Multiplications up to which a bound uses the kernel itself and not only its factor: n²p for scores, n³ for eigenvalues. One or
#: two seconds on one core; at rank 500 this allows 3,400 points, for eigenvalues 1,800.
MOST_BOUND_OPERATIONS = 6e9
#: Rounding: every bound is lowered by this many eps of the factor's precision, times tr K, where factorisations stop.
EPS_OF_A_BOUND = 50.0


def largest(values: Any, most: int = MOST_KEPT_SCORES) -> tuple[float, ...]:
    """The largest of some numbers ≥ 0, in descending order."""
    values = np.asarray(values, np.float64)
    if len(values) > most:
        values = np.partition(values, len(values) - most)[len(values) - most :]
    return tuple(np.sort(values)[::-1].tolist())


def sum_of_largest(kept: tuple[float, ...], k: int) -> float:
    """Upper bound of the sum of the k largest: numbers that were not kept count as much as the last one kept."""
    return float(sum(kept[:k]) + max(k - len(kept), 0) * kept[-1])


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues λ of C = Σ ω_i y_i y_iᵀ and μ of K, both descending, and the lengths k_jj, for the kernel or a factor."""

    targets: tuple[float, ...]
    candidates: tuple[float, ...]
    lengths: tuple[float, ...]  # the ``largest``

    @classmethod
    def of(cls, C: FloatArray, G: FloatArray | None, lengths: tuple[float, ...]) -> Self:
        """Of a factor, C = Σ ω_i f_i f_iᵀ and G = Σ_j f_j f_jᵀ; of all similarities, D^½ K D^½ and K. G is None if it is C."""
        targets = _descending(C)
        return cls(targets, targets if G is None else _descending(G), lengths)

    def at(self, k: int, ridge: float) -> float:
        """Least Σ_i λ_i/(1 + a_i/g), by water-filling: a_i = s √λ_i − g, at least 0, at most μ_i, with s so that Σ a_i = Σ k_jj.

        The result is the dual value at that level, Σ_i min_a (λ_i/(1 + a/g) + ν a) − ν Σ k_jj with ν = g/s², which is a lower
        bound at any level.
        """
        λ, μ = np.array(self.targets[:k]), np.array(self.candidates[:k])
        λ, μ = λ[λ > 0], μ[: len(λ)][λ > 0]
        budget, rest, roots = sum_of_largest(self.lengths, k), self.tail(k), np.sqrt(λ)
        if μ.sum() <= budget:
            return float((λ / (1.0 + μ / ridge)).sum()) + rest
        # Σ a_i is piecewise linear in s: entry i begins to grow at g/√λ_i and is full at (g + μ_i)/√λ_i.
        levels, slopes = np.concatenate([ridge / roots, (ridge + μ) / roots]), np.concatenate([roots, -roots])
        order = np.argsort(levels)
        levels, slopes = levels[order], np.cumsum(slopes[order])
        s = float(np.interp(budget, np.cumsum(np.append(0.0, slopes[:-1] * np.diff(levels))), levels))
        a, ν = np.clip(s * roots - ridge, 0.0, μ), ridge / s**2
        return float(max((λ / (1.0 + a / ridge) + ν * a).sum() - ν * budget, 0.0)) + rest

    def tail(self, k: int) -> float:
        """Σ_{i>k} λ_i: the least error of any k directions."""
        return float(sum(self.targets[k:]))


def _descending(A: FloatArray) -> tuple[float, ...]:
    """Eigenvalues of a symmetric positive semi-definite matrix, largest first; values at rounding level are 0."""
    found = eigvalsh(A)[::-1]
    found[found < len(A) * np.finfo(np.float64).eps * found[0]] = 0.0
    return tuple(found.tolist())


@dataclass(frozen=True)
class Bound:
    """A lower bound for err_g of sets of any size: the numbers of one E, the ridge g, and eigenvalues if known."""

    inner: float  # ⟨E, T⟩
    energy: float  # ‖E‖²
    scores: tuple[float, ...]  # the ``largest`` z_j² of all candidates
    ridge: float
    outside: float = 0.0  # error that no candidate can remove, minus possible rounding
    spectrum: Spectrum | None = None

    def at(self, k: int) -> float:
        """The better of ⟨E,T⟩² / (‖E‖² + Σ_{k largest} z²/g) and the spectral bound, + outside ≤ err_g(S) for all S of k."""
        best = self.inner**2 / (self.energy + sum_of_largest(self.scores, k) / self.ridge)
        if self.spectrum is not None:
            best = max(best, self.spectrum.at(k, self.ridge))
        return max(best + self.outside, 0.0)

    def without_ridge(self, k: int) -> float:
        """Σ_{i>k} λ_i + outside ≤ err_0(S) for all S of k: least squares without a ridge."""
        return max((0.0 if self.spectrum is None else self.spectrum.tail(k)) + self.outside, 0.0)


def with_residual(kernel: Kernel, F: FloatArray, weights: FloatArray, A: FloatArray, lam: float, k: int, ridge: float) -> Bound:
    """The bound of θ = [E; c Δ^½ D^½] for the kernel itself, K = F Fᵀ + Δ, from A = M⁻¹ Fᵀ, which has E = A D^½:

    ⟨θ,T⟩ = ⟨E,T⟩ + c tr ΔD,   ‖θ‖² = ‖E‖² + c² tr ΔD,   z_j² = Σ_i ω_i (f_iᵀ M⁻¹ f_j + c Δ_ij)².

    It holds for every c; the best c for k is used.
    """
    n = kernel.n
    sums = np.zeros((3, n))  # of G², GΔ and Δ², G = F M⁻¹ Fᵀ, over the targets
    for rows in row_blocks(n, n):
        right = np.arange(rows.start, n)  # G and Δ are symmetric
        G = F[rows] @ A[:, right]
        Δ = kernel.block(rows, right) - F[rows] @ F[right].T
        beyond = weights[right].copy()
        beyond[: len(G)] = 0.0
        for found, product in zip(sums, (G * G, G * Δ, Δ * Δ), strict=True):
            found[right] += weights[rows] @ product
            found[rows] += product @ beyond
    a, b, d = sums
    inner_F, energy_F = float(weights @ np.einsum("ij,ji->i", F, A)), float(weights @ np.einsum("ij,ij->j", A, A))
    missed = float(weights @ np.maximum(kernel.diagonal() - np.einsum("ij,ij->i", F, F), 0.0))

    def at(c: float) -> tuple[float, float, FloatArray]:
        return inner_F + c * missed, energy_F + c * c * missed, np.maximum(a + 2.0 * c * b + c * c * d, 0.0)

    def value(c: float) -> float:
        inner, energy, z2 = at(c)
        return float(-(inner**2) / (energy + np.partition(z2, n - k)[n - k :].sum() / ridge))

    c = float(minimize_scalar(value, bounds=(0.0, 2.0 * lam), method="bounded", options={"xatol": 1e-3 * lam}).x)
    inner, energy, z2 = at(c)
    return Bound(inner, energy, largest(z2), ridge)


def dual_bound(problem: DesignProblem, eta: FloatArray, ridge: float) -> tuple[Bound, FloatArray]:
    """The bound of E = M(η)⁻¹T for sets of any size, and E."""
    point = problem.dual_point(eta)
    # Over all candidates: screening is safe for the program, but the bound is for every set.
    scores = largest(problem.scores(point.E) ** 2)
    return Bound(point.inner, point.fit * problem.lam, scores, ridge), point.E


def best_for_k(
    problem: DesignProblem, k: int, *, ridge: float = 1.0, tol: float = 1e-3, initial: IntArray | None = None
) -> tuple[Bound, FloatArray]:
    """The bound that is nearly the best for k, from a solution at its strength, and its E; ``tol`` costs 0.02 to 0.2 % of it."""
    at = problem.with_lam(strength_for_k(problem, k, ridge, critical_lam(problem), initial))
    return dual_bound(at, solve_design(at, tol=tol, initial=initial, thin=False).value, ridge)


def strength_for_k(problem: DesignProblem, k: int, ridge: float, lam_crit: float, initial: IntArray | None) -> float:
    """Nearly the strength whose bound for k is the best. It has lam · g · Σ_j ‖r_j(lam)‖ = k.

    There the derivative of c g (2 D(1/(c g)) − c k) by c vanishes, if the sum of the k largest z² is k times the largest, as it
    nearly is at a solution. It is searched on few candidates, pivots or a random sample; the bound holds at any strength.
    """
    some = subsample(problem.n, 100, 0) if initial is None or len(initial) < 100 else np.sort(initial[:100])
    few = problem.restrict(some if problem.n > 100 else np.arange(problem.n), for_steps=True)

    @cache
    def excess(log_alpha: float) -> float:
        nonlocal few
        few = few.with_lam(float(np.exp(log_alpha)) * lam_crit)  # it takes over what the last one computed
        total = float(solve_design(few, tol=0.01, thin=False).row_norms.sum())
        return float(np.log(max(few.lam * ridge * total, 1e-12 * k) / k))

    low, high = np.log(1.05), np.log(1e4)
    log_alpha = low if excess(low) >= 0 else high if excess(high) <= 0 else brentq(excess, low, high, xtol=0.3)
    return float(np.exp(log_alpha)) * lam_crit


def bound_of(encoding: Encoding, k: int, ridge: float) -> Bound:
    """A lower bound for the error of every set of k points, tight for an encoding at the strength of ``strength_for_k``. It uses
    the kernel itself where that is affordable, otherwise its factor.
    """
    kernel, factor, weights, rows = encoding.kernel, encoding.factor, encoding.weights, encoding.member_rows
    assert isinstance(rows, DesignRows)
    n, F, C = kernel.n, factor.F, rows.design.C
    whole = factor.error <= 1e-9 * factor.trace
    alike = bool((weights == 1).all())
    rounding = EPS_OF_A_BOUND * float(np.finfo(numpy_dtype(F)).eps) * factor.trace
    if not whole and float(n) ** 3 <= MOST_BOUND_OPERATIONS:
        K, roots = kernel.block(slice(None), np.arange(n)), np.sqrt(weights)
        spectrum = Spectrum.of(K if alike else roots[:, None] * K * roots, None if alike else K, largest(np.diagonal(K)))
    else:
        spectrum = Spectrum.of(C, None if alike else weighted_gram(F, np.ones(n)), largest(row_norms_squared(F)))
    if whole or float(n) ** 2 * max(factor.rank, 100) > MOST_BOUND_OPERATIONS:  # a similarity counts as 100 at least
        eta = np.zeros(n)
        eta[encoding.members] = rows.eta
        bound, _ = dual_bound(DesignProblem(F, C, encoding.lam), eta, ridge)
    else:
        F = np.asarray(on_host(F), np.float64)
        bound = with_residual(kernel, F, weights, rows.design.solve_M(rows.eta, F.T), encoding.lam, k, ridge)
    return replace(bound, outside=-rounding, spectrum=spectrum)
