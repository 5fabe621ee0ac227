"""How points look to a representative: in the few directions in which the points that belong differ most.

k picks can tell k groups apart, and groups differ in few directions; in the others, points differ by noise, which in many
dimensions is most of their distance. So similarities for choosing are those between projections on the leading principal
directions. Ours; ``docs/decisions/0014`` has the measurements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from mosaic._arrays import FloatArray, IntArray, in_double, subsample
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import FEW_FEATURES, RBF, EffectiveCount, resolve_gamma

#: Directions that are looked at: so many, and one for so many picks.
DIRECTIONS, PICKS_A_DIRECTION = 20, 3
#: Points that the directions are found with, at most.
SAMPLE = 2000
#: γ times the largest squared distance from the mean, at most: squared distances are exact to some 1e-15 of it.
FINEST = 1e13


def directions_for(k: float) -> int:
    """Number of directions, 20 + k/3."""
    return DIRECTIONS + int(k // PICKS_A_DIRECTION)


def principal_directions(X: Any, r: int) -> FloatArray:
    """V, d × r: the leading eigenvectors of CᵀC, C = X − 1x̄ᵀ, from the smaller of both products.

    Where rows are fewer than columns, V = Cᵀ U σ⁻¹ for the eigenvectors U and eigenvalues σ² of CCᵀ. Directions without
    variance are left out. Signs are those that make the largest entry of a direction positive.

    Parameters
    ----------
    X : points, dense or CSR
    r : number of directions, at most

    Examples
    --------
    >>> import numpy as np
    >>> principal_directions(np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.1, 1.0]]), 1).round(2).ravel().tolist()
    [1.0, 0.02, 0.0]
    """
    n, d = X.shape
    X = X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    noise = np.finfo(np.float64).eps * n * float(mean @ mean)
    if not sp.issparse(X):  # what is subtracted first does not cancel later; it would fill a sparse matrix
        X, mean, noise = X - mean, np.zeros(d), np.finfo(np.float64).eps * noise
    if d <= n:
        gram = in_double(X.T @ X) - n * np.outer(mean, mean)
    else:
        along = np.asarray(X @ mean).ravel()
        gram = in_double(X @ X.T) - along[:, None] - along + mean @ mean
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[max(size - r, 0), size - 1])
    kept = values > max(1e-10 * float(values[-1]), n * noise)
    V = vectors[:, kept][:, ::-1]
    if d > n:
        V = (in_double(X.T @ V) - np.outer(mean, V.sum(axis=0))) / np.sqrt(values[kept][::-1])
    largest = np.abs(V).argmax(axis=0)
    return np.asarray(V * np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0))


def view_similarities(
    X: Any, targets: IntArray, candidates: IntArray, k: float, *, random_state: int = 0
) -> FloatArray:
    """s_ij = exp(−γ ‖Vᵀ(x_i − x_j)‖²), targets × candidates, with γ such that a typical target resembles n/k others.

    Parameters
    ----------
    X : points, dense or CSR
    targets : points to be represented, which the directions and the bandwidth are found with
    candidates : points that may represent them
    k : number of picks that is expected
    random_state : of the sample that stands for too many points

    Notes
    -----
    1. Where there are no more features than directions, V = I.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> view_similarities(X, np.arange(4), np.array([0, 3]), 2).round(2).tolist()
    [[1.0, 0.11], [0.94, 0.21], [0.21, 0.94], [0.11, 1.0]]
    """
    r = directions_for(k)
    if X.shape[1] > r:
        V = principal_directions(X[targets[subsample(len(targets), SAMPLE, random_state)]], r)
        if not V.shape[1]:  # a single target: all that it can say is that there is no difference
            V = np.zeros((X.shape[1], 1))
        seen = [in_double(X[rows] @ V) for rows in (targets, candidates)]
    else:
        seen = [in_double(X[rows]) for rows in (targets, candidates)]
    both = RBF(np.concatenate(seen), _bandwidth(seen[0], len(targets) / k, random_state))
    return both.block(np.arange(len(targets)), len(targets) + np.arange(len(candidates)))


def _bandwidth(Z: FloatArray, wanted: float, random_state: int) -> float:
    """γ at which a typical point resembles ``wanted`` (from 1.5 to half of all), or twice, four times, … as many.

    More, where so many coincide in the view that no bandwidth, or one that only rounding decides on, tells them apart.
    """
    n, kernel = len(Z), RBF(Z)
    farthest = float(((Z - Z.mean(axis=0)) ** 2).sum(axis=1).max())
    wanted = min(max(wanted, 1.5), 0.5 * n)
    while 1.0 < wanted <= 0.5 * n:
        try:
            gamma = resolve_gamma(kernel, EffectiveCount(wanted), random_state)
        except InvalidInputError:  # that many are equal
            gamma = float("inf")
        few = Z.shape[1] <= FEW_FEATURES  # their distances do not cancel
        if gamma * farthest <= FINEST or (few and np.isfinite(gamma)):
            return gamma
        wanted *= 2.0
    return resolve_gamma(kernel, "median", random_state)
