"""What every set of k candidates leaves unexplained at least: two bounds, of which the better one counts.

For candidates S and ridge g > 0 let err_g(S) = min over R with rows in S of Σ_i ω_i (‖y_i − Σ_j r_ji y_j‖² + g ‖r_i‖²), which is
tr(C (I + A/g)⁻¹) with C = Σ_i ω_i y_i y_iᵀ and A = Σ_{j∈S} y_j y_jᵀ. For every S of k distinct points

    dual:      err_g(S) ≥ ⟨E,T⟩² / (‖E‖² + (sum of the k largest z_j²)/g),   z_j = ‖Eᵀ y_j‖, for any E;
    spectral:  err_g(S) ≥ min Σ_i λ_i/(1 + a_i/g) over a with k entries, 0 ≤ a_i ≤ μ_i, Σ a_i ≤ sum of the k largest k_jj,

where λ are the eigenvalues of C and μ those of K, both decreasing. As g → 0 the second becomes Σ_{i>k} λ_i, the bound for least
squares without a ridge. Proofs: docs/math/bound.md.

Notes
-----
1. Sets leave at least as much of K = F Fᵀ + Δ as they leave of F Fᵀ (Δ ⪰ 0), so bounds for a factor hold for the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh
from scipy.optimize import minimize_scalar

from mosaic._arrays import FloatArray, row_blocks
from mosaic.kernels import Kernel

#: Scores and lengths that are kept, largest first; those that come after count as much as the last one kept.
MOST_KEPT = 1000
#: Multiplications for which the kernel itself is looked at and not only its factor: n²p for scores, n³ for eigenvalues. A second
#: or two of one core; of 500 columns it is 3,400 points, for eigenvalues 1,800.
MOST_OPERATIONS = 6e9
#: A factor that misses a smaller share of the kernel's trace than this is the kernel.
EXACT = 1e-9
#: Every bound is lowered by this multiple of the precision of the factor times tr K, for rounding; factorisations stop there.
ROUNDING = 50.0


@dataclass(frozen=True)
class Largest:
    """The largest of some numbers ≥ 0, in descending order: what the k largest add up to, or a little more.

    Examples
    --------
    >>> few = Largest.of([1.0, 3.0, 2.0], most=2)
    >>> few.values, few.sum(1), few.sum(2), few.sum(4)
    ((3.0, 2.0), 3.0, 5.0, 9.0)
    """

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: ArrayLike, most: int = MOST_KEPT) -> Self:
        """The largest ``most`` of them."""
        descending = -np.sort(-np.asarray(values, np.float64))
        return cls(tuple(descending[:most].tolist()))

    def sum(self, k: int) -> float:
        """Of the k largest; beyond those kept, each counts as much as the last one."""
        beyond = max(k - len(self.values), 0)
        return float(sum(self.values[:k]) + (beyond * self.values[-1] if beyond else 0.0))


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues λ of C = Σ ω_i y_i y_iᵀ and μ of K, both descending, and the lengths k_jj; of the kernel or of a factor.

    Examples
    --------
    For K = I every set of k points leaves ½ of itself at ridge 1 and all of the others, which is what is proven:

    >>> import numpy as np
    >>> spectrum = Spectrum.of_kernel(np.eye(10), np.ones(10))
    >>> round(spectrum.at(4, 1.0), 9), spectrum.tail(4)
    (8.0, 6.0)
    """

    targets: tuple[float, ...]
    candidates: tuple[float, ...]
    lengths: Largest

    @classmethod
    def of_kernel(cls, K: FloatArray, weights: FloatArray) -> Self:
        """From all similarities: eigenvalues of D^½ K D^½, D = diag(ω), and of K."""
        roots = np.sqrt(weights)
        alike = bool((weights == 1).all())
        targets = _descending(K if alike else roots[:, None] * K * roots)
        return cls(targets, targets if alike else _descending(K), Largest.of(np.diagonal(K)))

    @classmethod
    def of_factor(cls, C: FloatArray, G: FloatArray | None, lengths: Largest) -> Self:
        """From C = Σ ω_i f_i f_iᵀ, G = Σ_j f_j f_jᵀ (None if that is C) and the lengths ‖f_j‖²."""
        targets = _descending(C)
        return cls(targets, targets if G is None else _descending(G), lengths)

    def at(self, k: int, ridge: float) -> float:
        """Least Σ_i λ_i/(1 + a_i/g), by water-filling: a_i = s √λ_i − g, at least 0, at most μ_i, with s so that Σ a_i = Σ k_jj.

        Evaluated as the dual value at that level, Σ_i min_a (λ_i/(1 + a/g) + ν a) − ν Σ k_jj with ν = g/s², which is a lower
        bound at any level.
        """
        λ, μ = np.array(self.targets[:k]), np.array(self.candidates[:k])
        λ, μ = λ[λ > 0], μ[: len(λ)][λ > 0]
        budget, rest, roots = self.lengths.sum(k), self.tail(k), np.sqrt(λ)
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
        """Σ_{i>k} λ_i: what any k directions leave at least."""
        return float(sum(self.targets[k:]))


def _descending(A: FloatArray) -> tuple[float, ...]:
    """Eigenvalues of a symmetric positive semi-definite matrix, largest first; rounding is zero."""
    found = eigvalsh(A)[::-1]
    found[found < len(A) * np.finfo(np.float64).eps * found[0]] = 0.0
    return tuple(found.tolist())


@dataclass(frozen=True)
class Bound:
    """A lower bound for err_g of every set, whatever its size: the numbers of one E, the ridge g, and eigenvalues if known.

    Examples
    --------
    >>> Bound(inner=6.0, energy=2.0, scores=Largest((1.0,)), ridge=1.0).at(4)
    6.0
    """

    inner: float  # ⟨E, T⟩
    energy: float  # ‖E‖²
    scores: Largest  # z_j² over all candidates
    ridge: float
    outside: float = 0.0  # what no candidate can express; less what rounding may have added
    spectrum: Spectrum | None = None

    def at(self, k: int) -> float:
        """The better of ⟨E,T⟩² / (‖E‖² + Σ_{k largest} z²/g) and the spectral bound, + outside ≤ err_g(S) for all S of k."""
        best = self.inner**2 / (self.energy + self.scores.sum(k) / self.ridge)
        if self.spectrum is not None:
            best = max(best, self.spectrum.at(k, self.ridge))
        return max(best + self.outside, 0.0)

    def without_ridge(self, k: int) -> float:
        """Σ_{i>k} λ_i + outside ≤ err_0(S) for all S of k: least squares whose coefficients cost nothing."""
        return max((0.0 if self.spectrum is None else self.spectrum.tail(k)) + self.outside, 0.0)


def with_residual(
    kernel: Kernel, F: FloatArray, weights: FloatArray, A: FloatArray, bound: Bound, lam: float, k: int
) -> Bound:
    """The bound of θ = [E; c Δ^½ D^½] for the kernel itself, K = F Fᵀ + Δ, from A = M⁻¹ Fᵀ, which has E = A D^½:

    ⟨θ,T⟩ = ⟨E,T⟩ + c tr ΔD,   ‖θ‖² = ‖E‖² + c² tr ΔD,   z_j² = Σ_i ω_i (f_iᵀ M⁻¹ f_j + c Δ_ij)².

    It holds for every c; this one is the best for k.
    """
    n, F = kernel.n, np.asarray(F, np.float64)
    a, b, d = np.empty(n), np.empty(n), np.empty(n)
    for rows in row_blocks(n, n):
        columns = np.arange(n)[rows]
        G = F @ A[:, columns]
        Δ = kernel.block(slice(None), columns) - F @ F[columns].T
        a[rows], b[rows], d[rows] = weights @ G**2, weights @ (G * Δ), weights @ Δ**2
    missed = float(weights @ np.maximum(kernel.diagonal() - np.einsum("ij,ij->i", F, F), 0.0))

    def at(c: float) -> tuple[float, float, FloatArray]:
        return bound.inner + c * missed, bound.energy + c * c * missed, np.maximum(a + 2.0 * c * b + c * c * d, 0.0)

    def value(c: float) -> float:
        inner, energy, z2 = at(c)
        return float(-(inner**2) / (energy + np.partition(z2, n - k)[n - k :].sum() / bound.ridge))

    c = float(minimize_scalar(value, bounds=(0.0, 2.0 * lam), method="bounded", options={"xatol": 1e-3 * lam}).x)
    inner, energy, z2 = at(c)
    return Bound(inner, energy, Largest.of(z2), bound.ridge, bound.outside, bound.spectrum)
