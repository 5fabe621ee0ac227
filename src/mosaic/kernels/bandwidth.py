"""Rules for the bandwidth γ: from the spread of the data, its distances, or the number of points that resemble one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from mosaic._arrays import Seed, subsample
from mosaic.exceptions import InvalidInputError
from mosaic.kernels.points import RBF, Laplacian

#: Points that are counted, and points that are asked how many of these resemble them: 8 MB of distances at most.
OTHERS, CENTRES = 2048, 512
#: Log of the largest γ that is tried, times the typical distance: single precision holds it.
LARGEST_LOG = 80.0


@dataclass(frozen=True)
class EffectiveCount:
    """Bandwidth rule: the ``quantile`` of Σ_i k(x_i, x_j)² over the points j equals ``m0``.

    With a unit diagonal Σ_i k_ij² is the effective number of points that resemble j, itself included, so
    this rule is stated in points instead of distances. Use a high quantile when many points may be outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = make_kernel(X, "rbf", gamma=EffectiveCount(12.0))
    >>> float(np.round(np.median((kernel.columns(np.arange(200)) ** 2).sum(axis=0)), 3))
    12.0
    """

    m0: float
    quantile: float = 0.5

    def __post_init__(self) -> None:
        if not self.m0 > 1:
            raise InvalidInputError(f"m0 must be > 1 (a point always resembles itself); got {self.m0}.")
        if not 0 < self.quantile < 1:
            raise InvalidInputError(f"quantile must lie between 0 and 1; got {self.quantile}.")


Gamma: TypeAlias = float | Literal["scale", "median"] | EffectiveCount


def resolve_gamma(kernel: RBF | Laplacian, gamma: Gamma, random_state: Seed = 0) -> float:
    """The number γ behind a bandwidth rule. Constant data has no scale: any bandwidth serves, 1 is returned.

    ``"scale"`` is 1 / (d · variance) for the rbf and 1 / (d · deviation) for the laplacian, ``"median"`` is
    1 / median distance, both as the kernel measures distance; ``EffectiveCount`` is solved for.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_gamma(RBF(np.array([[0.0], [2.0]])), "median")
    0.25
    """
    if isinstance(gamma, EffectiveCount):
        return _effective_count_gamma(kernel, gamma, np.random.default_rng(random_state))
    if isinstance(gamma, str):
        if gamma == "scale":
            spread = variance(kernel.X) if isinstance(kernel, RBF) else float(np.sqrt(variance(kernel.X)))
            return 1.0 / (kernel.X.shape[1] * spread) if spread > 0 else 1.0
        if gamma == "median":
            rows = subsample(kernel.n, 2000, np.random.default_rng(random_state))
            D = kernel.distances(rows, rows)
            typical = float(np.median(D[np.triu_indices(len(rows), 1)])) if len(rows) > 1 else 0.0
            return 1.0 / typical if typical > 0 else 1.0
        raise InvalidInputError(f"gamma must be a number, 'scale', 'median' or EffectiveCount(m0); got {gamma!r}.")
    if isinstance(gamma, bool) or not isinstance(gamma, Real) or not (np.isfinite(gamma) and gamma > 0):
        raise InvalidInputError(f"gamma must be a finite number > 0, or a rule for one; got {gamma!r}.")
    return float(gamma)


def _effective_count_gamma(kernel: RBF | Laplacian, rule: EffectiveCount, rng: np.random.Generator) -> float:
    """Solve quantile_j(1 + Σ_{i≠j} exp(−2γ d_ij)) = m0 for γ; on a subsample sums are scaled up to n."""
    n = kernel.n
    if rule.m0 >= n:
        raise InvalidInputError(f"m0 must be smaller than the number of points {n}; got {rule.m0:g}.")
    others = subsample(n, OTHERS, rng)
    centres = subsample(len(others), CENTRES, rng)
    D = kernel.distances(others, others[centres])
    D[centres, np.arange(len(centres))] = np.inf
    scale = (n - 1) / (len(others) - 1)
    positive = D[np.isfinite(D) & (D > 0)]
    if positive.size == 0:
        return 1.0
    typical = float(np.median(positive))
    D = (D / typical).astype(np.float32)  # counts need no more digits than that
    values = np.empty_like(D)

    def excess(log_gamma: float) -> float:
        np.multiply(D, np.float32(-2.0 * np.exp(log_gamma)), out=values)
        counts = 1.0 + scale * np.exp(values, out=values).sum(axis=0, dtype=np.float64)
        return float(np.log(np.quantile(counts, rule.quantile) / rule.m0))

    low, high = np.log(1e-12), min(np.log(1e3) + np.log(typical) - np.log(float(positive.min())), LARGEST_LOG)
    if excess(low) < 0:
        return float(np.exp(low) / typical)
    if excess(high) > 0:
        raise InvalidInputError(
            f"no bandwidth leaves an effective count of {rule.m0:g}: at least that many copies of a point exist "
            f"at the {rule.quantile:g} quantile. Raise m0 or remove duplicates."
        )
    return float(np.exp(brentq(excess, low, high, xtol=1e-6)) / typical)


def variance(X: Any) -> float:
    """Variance of all entries, as scikit-learn's gamma='scale' takes it."""
    if sp.issparse(X):
        mean = float(X.mean())
        return float(X.multiply(X).mean()) - mean * mean
    return float(X.var(dtype=np.float64))
