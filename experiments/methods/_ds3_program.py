"""The linear program of DS3 with p = ∞, for its selector and its detector.

min ρ Σ_i ‖z_i‖_∞ + tr(DᵀZ) + wᵀe subject to 1ᵀZ + eᵀ = 1ᵀ, Z ≥ 0, e ≥ 0, where e, the share of a point that nobody
represents, is for outliers only (selection has none). The program is the authors', and so is its optimum; how it is found is
ours, and so is the rule to stop: their ADMM needs thousands of passes over several n × n arrays. Where the optimum is not
unique, as with points that are equal, a vertex is returned (one of the equal points), not a mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from experiments.methods._selecting import FloatArray

BoolArray = NDArray[np.bool_]

#: A solution is returned whose value is proved to be within this share of the optimum, or after so many rounds.
GAP, ROUNDS = 5e-4, 4
#: Steps of the ascent in a round, and weight of the newest direction in it.
STEPS, NEWEST = 300, 0.2
#: The linear program has the rows that the ascent used or that are this close to paying, pairs up to this multiple of a price.
UNUSED, CLOSE, NEAR = 1e-3, 0.01, 1.1
#: Rows that are added to it between rounds.
MISSING = 20


@dataclass(frozen=True)
class Solution:
    """Z and e with their value; prices v of the points, which prove that no value is below ``bound``."""

    Z: FloatArray
    e: FloatArray
    value: float
    prices: FloatArray
    bound: float

    @property
    def gap(self) -> float:
        """(value − bound) / value: the optimum is at most this share lower."""
        return (self.value - self.bound) / max(self.value, np.finfo(np.float64).tiny)


def largest_strength(D: FloatArray) -> tuple[float, int]:
    """ρ_max = max_{i ≠ i*} ½ ‖d_i − d_i*‖₁, from which on i* = argmin_i Σ_j d_ij stands for all, and i*."""
    medoid = int(D.sum(axis=1).argmin())
    return float(0.5 * np.abs(D - D[medoid]).sum(axis=1).max()), medoid


def incomes(D: FloatArray, v: FloatArray) -> FloatArray:
    """h_i = Σ_j max(v_j − d_ij, 0): what a representative earns if every point pays its price less the dissimilarity."""
    margins = v - D
    return np.asarray(np.maximum(margins, 0.0, out=margins).sum(axis=1))


def lower_bound(D: FloatArray, strength: float, v: FloatArray) -> float:
    """L(v) = Σ_j v_j − Σ_i max(h_i − ρ, 0), for v ≤ w: the Lagrangian of 1ᵀZ + eᵀ = 1ᵀ, as no ‖z_i‖_∞ need exceed one."""
    return float(v.sum() - np.maximum(incomes(D, v) - strength, 0.0).sum())


def ascend(
    D: FloatArray, strength: float, w: FloatArray, v: FloatArray, target: float, tol: float, steps: int = STEPS
) -> tuple[FloatArray, FloatArray]:
    """Prices with a higher L(v), and how much every row was used: the volume method, in single precision.

    A supergradient is g_j = 1 − #{i : h_i > ρ, d_ij < v_j}. From the best prices so far, steps follow a running mean of it
    with a length of λ (target − L) / ‖g‖², where λ rises with success and falls after several failures. The target is the
    least value known: the one given, or of everybody at the nearest of the rows with h_i > ρ.
    """
    single, margins = D.astype(np.float32), np.empty(D.shape, np.float32)
    best, highest, mean, use = v, -np.inf, np.zeros(len(v)), np.zeros(len(D))
    pace, failures = 1.0, 0
    for step in range(steps):
        np.subtract(v.astype(np.float32), single, out=margins)
        surplus = np.maximum(margins, 0.0, out=margins).sum(axis=1) - strength
        paying = np.flatnonzero(surplus > 0)
        value = float(v.sum() - surplus[paying].sum())
        gradient = 1.0 - (D[paying] < v).sum(axis=0)
        target = min(target, strength * len(paying) + np.minimum(D[paying].min(axis=0, initial=np.inf), w).sum())
        use *= 1.0 - NEWEST
        use[paying] += NEWEST
        mean = gradient if step == 0 else NEWEST * gradient + (1.0 - NEWEST) * mean
        if value > highest:
            best, highest, failures = v, value, 0
            pace = min(1.1 * pace, 2.0) if gradient @ mean >= 0 else pace
        else:
            failures += 1
            pace, failures = (0.7 * pace, 0) if failures == 8 else (pace, failures)
        if target - highest <= tol * target:
            break
        direction = np.where((best >= w) & (mean > 0), 0.0, mean)
        length = pace * (target - highest) / max(float(direction @ direction), 1e-12)
        v = np.clip(best + length * direction, 0.0, w)
    return best, use


def on_pairs(D: FloatArray, strength: float, w: FloatArray, pairs: BoolArray) -> Solution:
    """The program without all other pairs, which bounds nothing: min ρ Σ_i t_i + Σ d_ij z_ij + wᵀe with z_ij ≤ t_i."""
    n, (sources, targets), alone = len(D), np.nonzero(pairs), np.flatnonzero(np.isfinite(w))
    rows, which = np.unique(sources, return_inverse=True)
    m, size = len(sources), len(sources) + len(alone) + len(rows)
    z, e, t = np.split(np.arange(size), [m, m + len(alone)])
    sums = sp.csr_array((np.ones(m + len(e)), (np.r_[targets, alone], np.r_[z, e])), shape=(n, size))
    signs = np.repeat([1.0, -1.0], m)
    below = sp.csr_array((signs, (np.r_[z, z], np.r_[z, t[which]])), shape=(m, size))
    costs = np.concatenate([D[sources, targets], w[alone], np.full(len(rows), strength)])
    found = linprog(costs, below, np.zeros(m), sums, np.ones(n), method="highs-ds")
    x = np.maximum(found.x, 0.0)
    Z, outside = np.zeros_like(D), np.zeros(n)
    Z[sources, targets], outside[alone] = x[z], x[e]
    return Solution(Z, outside, float(found.fun), np.minimum(found.eqlin.marginals, w), -np.inf)


def solve(
    D: FloatArray,
    strength: float,
    w: FloatArray | None = None,
    prices: FloatArray | None = None,
    tol: float = GAP,
    rounds: int = ROUNDS,
) -> Solution:
    """Minimise ρ Σ_i ‖z_i‖_∞ + tr(DᵀZ) + wᵀe, 1ᵀZ + eᵀ = 1ᵀ, Z ≥ 0, e ≥ 0; without w there is no e.

    Few rows and pairs (i, j) matter. The ascent on L(v) finds them, the program on them alone gives Z, whose value is the
    target of the next ascent, which finds more. This ends when value and bound are within ``tol``, which proves them, or
    after so many rounds, when the gap is larger, mostly because the bound lags.
    """
    w = np.full(len(D), np.inf) if w is None else w
    best = np.minimum(np.sort(D, axis=0)[len(D) // 20] if prices is None else prices, w)
    value = min(strength + float(np.minimum(D, w).sum(axis=1).min()), float(w.sum()))
    found: Solution | None = None
    pairs = np.zeros(D.shape, bool)
    pairs[D.sum(axis=1).argmin()] = np.isinf(w)  # so that who cannot stand alone has somebody in any case
    for _ in range(rounds):
        best, use = ascend(D, strength, w, best, value, tol / 2)
        if found is None or value - lower_bound(D, strength, best) > tol * value:
            rows = np.flatnonzero((use > UNUSED) | (incomes(D, best) >= (1.0 - CLOSE) * strength))
            pairs[rows] |= NEAR * best >= D[rows]
            if len(rows):
                pairs[rows[D[rows].argmin(axis=0)], np.arange(len(D))] = True
            found = on_pairs(D, strength, w, pairs)
            value = found.value
            # Prices of a vertex are wild where pairs are missing, but L is concave: some way towards them it may be higher.
            for share in (1.0, 0.5, 0.25, 0.1):
                best = max(best, best + share * (found.prices - best), key=lambda v: lower_bound(D, strength, v))
        bound = lower_bound(D, strength, best)
        if value - bound <= tol * value:
            break
        # What is missing pays too well between the two prices; of all such rows most would only make the program larger.
        middle = 0.5 * (best + found.prices)
        rows = np.argsort(-incomes(D, middle))[:MISSING]
        pairs[rows] |= middle > D[rows]
    assert found is not None  # there is a first round
    return replace(found, prices=best, bound=bound)
