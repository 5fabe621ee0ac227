"""Make a kernel from its name. Rules for the bandwidth γ: spread of the data, distances, or number of similar points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq

from mosaic.arrays.blocks import FloatArray, Seed, subsample
from mosaic.arrays.xp import Matrix, is_on_device, on_host
from mosaic.door import as_points
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import points
from mosaic.kernels.diffusion import DiffusionKernel
from mosaic.kernels.points import POINT_KERNELS, RBF, STATIONARY_KERNELS, Kernel, StationaryKernel
from mosaic.kernels.precomputed import Distances, Precomputed
from mosaic.parameters import (
    PAIRWISE,
    Diffusion,
    Parameters,
    Polynomial,
    check_kernel,
    name_of,
    real_number,
)

#: Number of points between which ``gamma="median"`` takes the median distance.
MEDIAN_SAMPLE = 2000


@dataclass(frozen=True)
class EffectiveCount:
    """Bandwidth rule: the ``quantile`` of Σ_i k(x_i, x_j)² over the points j equals ``m0``.

    With a unit diagonal Σ_i k_ij² is the effective number of points that resemble j, itself included. Use a high quantile if many
    points may be outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = make_kernel(X, "rbf", gamma=EffectiveCount(12.0))
    >>> float(np.round(np.median((kernel.block(slice(None), np.arange(200)) ** 2).sum(axis=0)), 3))
    12.0
    """

    m0: float
    quantile: float = 0.5

    def __post_init__(self) -> None:
        real_number("m0", self.m0, above=1, meaning="a point always resembles itself")
        real_number("quantile", self.quantile, above=0, below=1)


Gamma: TypeAlias = float | Literal["scale", "median"] | EffectiveCount
Similarity: TypeAlias = str | Parameters | Callable[[Any, Any], Any]


def make_kernel(
    X: Matrix, kernel: Similarity = "rbf", *, gamma: Gamma = "scale", random_state: Seed = 0
) -> Kernel:
    """The similarity named ``kernel`` between the rows of ``X`` (or ``X`` itself, when precomputed).

    Parameters
    ----------
    X : array or CSR matrix, n × d (n × n for ``"precomputed"`` and ``"distances"``)
    kernel : one of ``mosaic.kernels.KERNELS``, or one with its settings (``Polynomial(degree=2)``), or a function f(A, B)
    gamma : float, "scale", "median" or EffectiveCount
        For stationary kernels and polynomial. ``"scale"`` is 1 / (d · variance) (1 / (d · deviation) for laplacian),
        ``"median"`` is 1 / median distance, both in the distance of the kernel; of given distances ``"scale"`` is that, too.
    random_state : seed of the subsample that data-dependent bandwidth rules use for large n

    Examples
    --------
    >>> import numpy as np
    >>> kernel = make_kernel(np.array([[0.0], [1.0], [3.0]]), "rbf", gamma=1.0)
    >>> kernel.block(slice(None), np.array([0])).round(3).ravel().tolist()
    [1.0, 0.368, 0.0]
    """
    check_kernel(kernel)
    X = as_points(to_kernel_device(X, kernel), "K" if kernel in PAIRWISE else "X")
    match kernel:
        case "precomputed":
            return Precomputed(X)
        case "distances":
            given = Distances(X)
            rule = "median" if gamma == "scale" else gamma
            return replace(given, gamma=resolve_gamma(given, rule, random_state))
        case "cosine":
            return points.Cosine(points.normalised_rows(X))
        case "diffusion" | Diffusion():
            graph = kernel if isinstance(kernel, Diffusion) else Diffusion()
            return DiffusionKernel.of(X, graph.n_neighbors, graph.time)
        case "polynomial" | Polynomial():
            formula = kernel if isinstance(kernel, Polynomial) else Polynomial()
            if isinstance(gamma, EffectiveCount) or gamma == "median":
                fault = "must be a number or 'scale' for a polynomial kernel"
                raise InvalidInputError(
                    fault, "Leave it at 'scale'.", parameter="gamma", value=gamma
                )
            return points.PolynomialKernel(
                X, resolve_gamma(RBF(X), gamma), formula.degree, formula.coef0
            )
        case str() if kernel in STATIONARY_KERNELS:
            wide = stationary(X, kernel)
            return replace(wide, gamma=resolve_gamma(wide, gamma, random_state))
        case str() if kernel in POINT_KERNELS:
            made = POINT_KERNELS[kernel](X)
            made.check(X)
            return made
    assert callable(kernel)
    return points.FromCallable(X, kernel)


def stationary(X: Matrix, kernel: str, gamma: float = 1.0) -> StationaryKernel:
    """A stationary kernel at a bandwidth that is known."""
    made = STATIONARY_KERNELS[kernel](X, gamma)
    made.check(X)
    return made


def to_kernel_device(X: Matrix, kernel: Any) -> Any:
    """X as given, or as a NumPy array if it is on a device and the kernel is not computed there."""
    if not is_on_device(X):
        return X
    is_computed_there = not callable(kernel) and name_of(kernel) in POINT_KERNELS
    return X if is_computed_there else on_host(X)


def resolve_gamma(
    kernel: StationaryKernel | Distances, gamma: Gamma, random_state: Seed = 0
) -> float:
    """The number γ of a bandwidth rule (see ``make_kernel``); 1 for constant data, which has no scale."""
    if isinstance(gamma, EffectiveCount):
        return _effective_count_gamma(kernel, gamma, np.random.default_rng(random_state))
    if isinstance(gamma, str):
        if gamma == "scale":
            spread = variance(kernel.X)
            spread = spread if kernel.order == 2 else float(np.sqrt(spread))
            return 1.0 / (kernel.X.shape[1] * spread) if spread > 0 else 1.0
        if gamma == "median":
            rows = subsample(kernel.n, MEDIAN_SAMPLE, np.random.default_rng(random_state))
            D = kernel.distances(rows, rows)
            typical = float(np.median(D[np.triu_indices(len(rows), 1)])) if len(rows) > 1 else 0.0
            # Below, the inverse is hardly a float.
            return 1.0 / typical if typical >= 1e-300 else 1.0
        fault = "must be a number, 'scale', 'median' or EffectiveCount(m0)"
        raise InvalidInputError(fault, parameter="gamma", value=gamma)
    return real_number(
        "gamma", gamma, above=0, meaning="or a rule: 'scale', 'median', EffectiveCount(m0)"
    )


def _effective_count_gamma(
    kernel: StationaryKernel | Distances, rule: EffectiveCount, rng: np.random.Generator
) -> float:
    """Solve quantile_j(1 + Σ_{i≠j} k_ij²) = m0 for γ, for 512 of 2048 points; their sums are scaled up to n."""
    n = kernel.n
    if rule.m0 >= n:
        raise InvalidInputError(
            f"must be smaller than the number of points {n}", parameter="m0", value=rule.m0
        )
    others = subsample(n, 2048, rng)
    D = kernel.distances(others, others[subsample(len(others), 512, rng)])
    D[D < 1e-300] = 0.0
    if not D.any():
        return 1.0
    scale = (n - 1) / (len(others) - 1)
    rate = decay_rate(D, np.full(len(others), scale), rule.quantile, rule.m0 - 1.0 + scale)
    if rate == np.inf:
        raise InvalidInputError(
            f"no bandwidth gives an effective count of {rule.m0:g}: at the {rule.quantile:g} quantile there are "
            "at least that many copies of a point",
            "Raise m0 or remove duplicates.",
        )
    return rate


def decay_rate(D: FloatArray, weights: FloatArray, quantile: float, target: float) -> float:
    """The rate r with quantile_j(Σ_i ω_i exp(−2 r d_ij)) = target; ∞ if none is large enough."""
    apart = D[(D > 0) & (np.inf > D)]
    unit = float(np.median(apart[:: len(apart) // MEDIAN_SAMPLE + 1]))
    values = np.empty_like(D)

    @cache
    def excess(log_rate: float) -> float:
        np.multiply(D, -2.0 * np.exp(log_rate) / unit, out=values)
        sums = weights @ np.exp(values, out=values)
        return float(np.log(np.quantile(sums, quantile) / target))

    # The excess falls, and the rate is near 1 in this unit. These are logarithms of rates.
    largest = 64.0
    before = 0.0
    at = float(np.sign(excess(0.0)))
    while excess(before) * excess(at) > 0 and abs(at) < largest:
        before = at
        at = 2.0 * at
    if excess(before) * excess(at) < 0:
        at = brentq(excess, min(before, at), max(before, at), xtol=1e-10)
    return float(np.exp(at)) / unit if at < largest or excess(at) <= 0 else np.inf


def variance(X: Matrix) -> float:
    """Variance of all entries, as in scikit-learn's gamma='scale'."""
    if sp.issparse(X):
        size = X.shape[0] * X.shape[1]
        mean = float(X.mean())
        squares = ((X.data.astype(np.float64) - mean) ** 2).sum() + (size - X.nnz) * mean**2
        return float(squares / size)
    return float(on_host(X).var(dtype=np.float64))
