"""Quality of a set of points, however it was chosen: explained share, distances, and similarity of its members.

Every metric is a function of the data (points, or a kernel bound to them) and the chosen row numbers, so sets of different
origin can be compared. For derivations, and the relation of the program to coverage, see docs/math/coverage.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, solve_triangular
from scipy.spatial.distance import cdist

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks, in_double, row_blocks
from mosaic.arrays.threads import one_thread
from mosaic.arrays.xp import on_host, squares_of_rows, to_device_of
from mosaic.checks import real_number
from mosaic.door import as_indices, as_points, as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel

__all__ = [
    "diversity",
    "explained_share",
    "hausdorff_radius",
    "redundancy",
    "shared_information_distance",
    "unexplained",
    "unexplained_along",
]

#: Eigenvalues of K_SS, scaled to unit diagonal, below this share of the largest are rounding errors.
SMALLEST_EIGENVALUE = 1e-12


def __dir__() -> list[str]:
    return __all__


def unexplained(kernel: Kernel, chosen: ArrayLike, ridge: float = 0.0) -> FloatArray:
    """err_i = k_ii − k_iSᵀ (K_SS + g I)⁻¹ k_iS ≥ 0: the part of each point that the chosen points S cannot express.

    Without a ridge g it is the squared distance of φ(x_i) from the span of the chosen; with one the minimum over r of
    ‖φ(x_i) − Σ_j r_j φ(x_j)‖² + g ‖r‖². A singular K_SS (copies among the chosen) is inverted on its range.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 4.0]]), "linear")
    >>> unexplained(kernel, [0, 1]).round(9)
    array([ 0.,  0., 16.])
    """
    return unexplained_at(kernel, chosen, [ridge])[0]


@one_thread()
def unexplained_at(kernel: Kernel, chosen: ArrayLike, ridges: Sequence[float]) -> tuple[FloatArray, ...]:
    """``unexplained`` for several ridges, with similarities that are computed once."""
    chosen = _members(kernel, chosen)
    roots = [root_of_inverse(kernel, chosen, ridge) for ridge in ridges]
    own = np.asarray(kernel.diagonal(), np.float64)
    errors = tuple(own.copy() for _ in roots)

    def explain(rows: slice) -> None:
        K = kernel.device_block(rows, chosen)
        for left, root in zip(errors, roots, strict=True):
            left[rows] = left_by(root, K, left[rows])

    in_blocks(explain, len(own), max(len(chosen), 1), on=kernel.X)
    return errors


def root_of_inverse(kernel: Kernel, chosen: ArrayLike, ridge: float = 0.0) -> FloatArray:
    """B with B Bᵀ = (K_SS + g I)⁻¹, on the range of K_SS."""
    scale, w, U = _unit_spectrum(kernel, _members(kernel, chosen), real_number("ridge", ridge, at_least=0))
    keep = w > SMALLEST_EIGENVALUE * w.max(initial=0.0)
    return np.asarray(scale[:, None] * U[:, keep] / np.sqrt(w[keep]))


def left_by(root: FloatArray, K: Any, own: FloatArray) -> FloatArray:
    """k_ii − ‖Bᵀ k_iS‖² ≥ 0 for rows with similarities K to the chosen and ``own`` to themselves; B is ``root_of_inverse``."""
    return np.asarray(np.maximum(own - on_host(squares_of_rows(K @ to_device_of(K, root))), 0.0))


@one_thread()
def unexplained_along(kernel: Kernel, ranked: ArrayLike, ridge: float, weights: FloatArray) -> FloatArray:
    """Σ_i ω_i err_i for the first 1, 2, 3, … of the ranked points: tr − cumulated Σ_i ω_i (L⁻¹ k_Ri)_j², with LLᵀ = K_RR + g I.

    The leading part of L is the triangle of the leading part of K_RR + g I, so one factor serves all prefixes. Without a ridge,
    the factor leaves out points that earlier points express.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.random.default_rng(0).normal(size=(50, 2)), "rbf", gamma=0.5)
    >>> left = unexplained_along(kernel, [4, 7, 1], 0.1, np.ones(50))
    >>> np.allclose(left[1], unexplained(kernel, [4, 7], 0.1).sum())
    True
    """
    real_number("ridge", ridge, at_least=0)
    ranked = as_indices(ranked, kernel.n, "ranked")
    kept, L = _independent(kernel.block(ranked, ranked) + ridge * np.eye(len(ranked)))
    gained = np.zeros(len(ranked))
    for rows in row_blocks(kernel.n, len(ranked)):
        A = solve_triangular(L, kernel.block(rows, ranked[kept]).T, lower=True, check_finite=False)
        gained[kept] += A**2 @ weights[rows]
    return np.asarray(float(weights @ kernel.diagonal()) - np.cumsum(gained))


def _independent(K: FloatArray) -> tuple[IntArray, FloatArray]:
    """Points that earlier points do not express, and the triangle L of their LLᵀ = K."""
    noise, L = 1e-12 * float(K.diagonal().max(initial=0.0)), np.zeros_like(K)
    kept: list[int] = []
    for j in range(len(K)):
        m = len(kept)
        row = solve_triangular(L[:m, :m], K[kept, j], lower=True, check_finite=False) if m else np.zeros(0)
        left = float(K[j, j] - row @ row)
        if left > noise:
            L[m, :m], L[m, m] = row, np.sqrt(left)
            kept.append(j)
    return np.array(kept, np.intp), L[: len(kept), : len(kept)]


def explained_share(kernel: Kernel, chosen: ArrayLike, *, ridge: float = 0.0, sample_weight: ArrayLike | None = None) -> float:
    """1 − Σ_i ω_i err_i / Σ_i ω_i k_ii: the share of all points that the chosen can express, R² in feature space.

    Parameters
    ----------
    kernel : similarity of the points
    chosen : row numbers or mask
    ridge : price g of coefficients, see ``unexplained``
    sample_weight : how much each point counts

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.random.default_rng(0).normal(size=(300, 2)), "rbf", gamma=0.5)
    >>> explained_share(kernel, range(5)) < explained_share(kernel, range(20)) < 1
    True
    """
    errors = unexplained(kernel, chosen, ridge)
    weights: FloatArray = np.ones(kernel.n)
    if sample_weight is not None:
        weights = as_weights(sample_weight, kernel.n)
        weights = weights / (float(weights.max()) or 1.0)  # only ratios matter
        if not weights.any():
            fault = "must have a positive entry; all are 0, so there is nothing to explain"
            raise InvalidInputError(fault, parameter="sample_weight")
    total = float(weights @ kernel.diagonal())
    return 1.0 - float(weights @ errors) / total if total > 0 else 1.0


def hausdorff_radius(kernel_or_points: Kernel | ArrayLike, chosen: ArrayLike, *, quantile: float = 1.0) -> float:
    """max_i min_{j∈S} d(i, j): the distance within which every point has a chosen point.

    d is √(k_ii + k_jj − 2 k_ij) for a kernel and the Euclidean distance for points.

    Parameters
    ----------
    kernel_or_points : a Kernel, or an array of points
    chosen : row numbers or mask; if none are chosen, the radius is infinite
    quantile : share of the points that must have a chosen point within the radius; below 1, a few far points do not count

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> hausdorff_radius(X, [1]), hausdorff_radius(X, [1], quantile=0.75)
    (8.0, 1.0)
    """
    real_number("quantile", quantile, above=0, at_most=1, remedy="1 asks for every point.")
    if isinstance(kernel_or_points, Kernel):
        kernel, diagonal = kernel_or_points, kernel_or_points.diagonal()
        n = kernel.n

        def distances(rows: slice, members: IntArray) -> FloatArray:
            return np.asarray(np.sqrt(_distances(kernel, diagonal, rows, members, normalised=False)))
    else:
        X = as_points(kernel_or_points)
        n = X.shape[0]

        def distances(rows: slice, members: IntArray) -> FloatArray:
            return np.asarray(cdist(in_double(X[rows]), in_double(X[members])))

    members = as_indices(chosen, n, "chosen")
    if not len(members):
        return float(np.inf)
    nearest = np.empty(n)
    for rows in row_blocks(n, len(members)):
        nearest[rows] = distances(rows, members).min(axis=1)
    nearest[members] = 0.0  # by a kernel, the distance is 0 only up to the square root of rounding
    return float(np.quantile(nearest, quantile, method="inverted_cdf"))


def shared_information_distance(kernel: Kernel, rows: ArrayLike, columns: ArrayLike, *, normalised: bool = True) -> FloatArray:
    """D_ij = k_ii + k_jj − 2 k_ij, divided by k_ii + k_jj if normalised: the information that two points do not share.

    Normalised, 0 means copies and 1 nothing in common; opposed points (k_ij < 0) are further apart, up to 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), "linear")
    >>> shared_information_distance(kernel, [0], [0, 1, 2]).round(3)
    array([[0. , 0.2, 1. ]])
    """
    some, others = _members(kernel, rows, "rows"), _members(kernel, columns, "columns")
    return _distances(kernel, kernel.diagonal(), some, others, normalised=normalised)


def _distances(
    kernel: Kernel, diagonal: FloatArray, rows: slice | IntArray, columns: IntArray, *, normalised: bool
) -> FloatArray:
    """k_ii + k_jj − 2 k_ij between some points, never below 0; as a share of k_ii + k_jj if normalised."""
    total = diagonal[rows, None] + diagonal[columns]
    D = np.maximum(total - 2.0 * kernel.block(rows, columns), 0.0)
    return np.asarray(np.divide(D, total, out=np.zeros_like(D), where=total > 0) if normalised else D)


def diversity(kernel: Kernel, chosen: ArrayLike) -> float:
    """min_{i≠j∈S} 1 − 2 k_ij / (k_ii + k_jj): the normalised shared information distance of the two most similar.

    0 if two of the chosen are copies; 1.0 if fewer than two are chosen, since then nothing is shared.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[0.0], [0.1], [9.0]]), "rbf", gamma=1.0)
    >>> diversity(kernel, [0, 1]) < 0.01 < 0.99 < diversity(kernel, [0, 2])
    True
    """
    members = _members(kernel, chosen)
    if len(members) < 2:
        return 1.0
    smallest, diagonal = np.inf, kernel.diagonal()
    for rows in row_blocks(len(members), len(members)):
        D = _distances(kernel, diagonal, members[rows], members, normalised=True)
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
        smallest = min(smallest, float(D.min()))
    return smallest


def redundancy(kernel: Kernel, chosen: ArrayLike) -> float:
    """Mean over j∈S of 1 − 1/(k_jj (K_SS⁻¹)_jj): the share of a chosen point that the other chosen points express.

    0: the chosen are orthogonal in feature space; 1: each is expressed by the others, as copies are.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), "linear")
    >>> round(redundancy(kernel, [0, 1]), 9), round(redundancy(kernel, [0, 2]), 9), round(redundancy(kernel, [0, 1, 2]), 9)
    (0.5, 0.0, 1.0)
    """
    members = _members(kernel, chosen)
    if not len(members):
        return 0.0
    scale, w, U = _unit_spectrum(kernel, members, 0.0)
    # Not the pseudo-inverse: (K⁻¹)_jj of a point with a part in the null space is infinite, and the floor keeps it very large.
    inverse = (U**2 / np.maximum(w, SMALLEST_EIGENVALUE * w.max())).sum(axis=1)
    # A point that is zero in feature space is expressed by any others.
    return float(np.where(scale > 0, np.clip(1.0 - 1.0 / inverse, 0.0, 1.0), 1.0).mean())


def _unit_spectrum(kernel: Kernel, chosen: IntArray, ridge: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scale d and U diag(w) Uᵀ = diag(d) (K_SS + g I) diag(d), which has unit diagonal: a threshold for w ignores units."""
    A = kernel.block(chosen, chosen)
    A = 0.5 * (A + A.T)
    A[np.diag_indices_from(A)] += ridge
    size = np.maximum(np.diagonal(A), 0.0)
    scale = np.divide(1.0, np.sqrt(size), out=np.zeros(len(A)), where=size > 0)
    if not len(A):
        return scale, np.zeros(0), A
    w, U = eigh(scale[:, None] * A * scale)
    return scale, w, U


def _members(kernel: Kernel, indices: ArrayLike, name: str = "chosen") -> IntArray:
    """Row numbers, checked against the number of points."""
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(
            f"must be a Kernel; got {type(kernel).__name__}",
            "Make one by mosaic.kernels.make_kernel(X, 'rbf').",
            parameter="kernel",
        )
    return as_indices(indices, kernel.n, name)
