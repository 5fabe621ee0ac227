"""From a name to a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mosaic._arrays import Seed, as_points
from mosaic.exceptions import InvalidInputError
from mosaic.kernels.bandwidth import Gamma, resolve_gamma, variance
from mosaic.kernels.base import Kernel
from mosaic.kernels.diffusion import Diffusion
from mosaic.kernels.points import RBF, Cosine, FromCallable, Laplacian, Linear, Polynomial, normalised_rows
from mosaic.kernels.precomputed import Precomputed


def make_kernel(
    X: Any,
    kernel: str | Callable[[Any, Any], Any] = "rbf",
    *,
    gamma: Gamma = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    n_neighbors: int = 10,
    time: int = 2,
    random_state: Seed = 0,
) -> Kernel:
    """The similarity named ``kernel`` between the rows of ``X`` (or ``X`` itself, when precomputed).

    Parameters
    ----------
    X : array or CSR matrix, n × d (n × n for ``"precomputed"``)
    kernel : "rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed" or callable
    gamma : float, "scale", "median" or EffectiveCount
        For rbf, laplacian and polynomial. ``"scale"`` is 1 / (d · variance) (1 / (d · deviation) for laplacian),
        ``"median"`` is 1 / median distance, both as the kernel measures distance.
    degree, coef0 : for polynomial
    n_neighbors, time : for diffusion
    random_state : seed of the subsample that data-dependent bandwidth rules use for large n

    Examples
    --------
    >>> import numpy as np
    >>> kernel = make_kernel(np.array([[0.0], [1.0], [3.0]]), "rbf", gamma=1.0)
    >>> kernel.columns(np.array([0])).round(3).ravel().tolist()
    [1.0, 0.368, 0.0]
    """
    X = as_points(X, "K" if kernel == "precomputed" else "X")
    if callable(kernel):
        return FromCallable(X, kernel)
    match kernel:
        case "precomputed":
            return Precomputed(X)
        case "linear":
            return Linear(X)
        case "cosine":
            return Cosine(normalised_rows(X))
        case "diffusion":
            return Diffusion.over(X, n_neighbors, time)
        case "rbf":
            return RBF(X, resolve_gamma(RBF(X), gamma, random_state))
        case "laplacian":
            return Laplacian(X, resolve_gamma(Laplacian(X), gamma, random_state))
        case "polynomial" | "poly":
            if not isinstance(gamma, (int, float)):
                if gamma != "scale":
                    raise InvalidInputError(
                        f"gamma for a polynomial kernel must be a number or 'scale'; got {gamma!r}."
                    )
                spread = variance(X)
                gamma = 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
            return Polynomial(X, float(gamma), degree, coef0)
    raise InvalidInputError(
        f"kernel must be 'rbf', 'laplacian', 'polynomial', 'linear', 'cosine', 'diffusion', 'precomputed' "
        f"or a function of two sets of points; got {kernel!r}."
    )
