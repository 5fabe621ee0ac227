"""What a set of points explains, however it was chosen. For derivations see docs/math/coverage.md."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, solve_triangular

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks, row_blocks
from mosaic.arrays.threads import one_thread
from mosaic.arrays.xp import on_host, squares_of_rows, to_device_of
from mosaic.door import as_indices, as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel

__all__ = ["explained_share", "unexplained", "unexplained_along"]


@one_thread()
def unexplained(kernel: Kernel, chosen: ArrayLike) -> FloatArray:
    """err_i = k_ii − k_iSᵀ K_SS⁻¹ k_iS ≥ 0: the part of each point that the chosen points S cannot express.

    It is the squared distance of φ(x_i) from the span of the chosen. A singular K_SS (copies among the chosen) is inverted on its
    range.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 4.0]]), "linear")
    >>> unexplained(kernel, [0, 1]).round(9)
    array([ 0.,  0., 16.])
    """
    chosen = _members(kernel, chosen)
    root, errors = root_of_inverse(kernel, chosen), np.array(kernel.diagonal(), np.float64)

    def explain(rows: slice) -> None:
        errors[rows] = left_by(root, kernel.device_block(rows, chosen), errors[rows])

    in_blocks(explain, len(errors), max(len(chosen), 1), on=kernel.X)
    return errors


def root_of_inverse(kernel: Kernel, chosen: ArrayLike) -> FloatArray:
    """B with B Bᵀ = K_SS⁻¹, on the range of K_SS scaled to unit diagonal, so that a threshold ignores units."""
    chosen = _members(kernel, chosen)
    A = kernel.block(chosen, chosen)
    A = 0.5 * (A + A.T)
    size = np.maximum(np.diagonal(A), 0.0)
    scale = np.divide(1.0, np.sqrt(size), out=np.zeros(len(A)), where=size > 0)
    w, U = eigh(scale[:, None] * A * scale) if len(A) else (np.zeros(0), A)
    keep = w > 1e-12 * w.max(initial=0.0)
    return np.asarray(scale[:, None] * U[:, keep] / np.sqrt(w[keep]))


def left_by(root: FloatArray, K: Any, own: FloatArray) -> FloatArray:
    """k_ii − ‖Bᵀ k_iS‖² ≥ 0 for rows with similarities K to the chosen and ``own`` to themselves; B is ``root_of_inverse``."""
    return np.asarray(np.maximum(own - on_host(squares_of_rows(K @ to_device_of(K, root))), 0.0))


@one_thread()
def unexplained_along(kernel: Kernel, ranked: ArrayLike, weights: FloatArray) -> FloatArray:
    """Σ_i ω_i err_i for the first 1, 2, 3, … of the ranked points: tr − cumulated Σ_i ω_i (L⁻¹ k_Ri)_j², LLᵀ = K_RR."""
    ranked = as_indices(ranked, kernel.n, "ranked")
    kept, L = _independent(kernel.block(ranked, ranked))
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


def explained_share(kernel: Kernel, chosen: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """1 − Σ_i ω_i err_i / Σ_i ω_i k_ii: the share of all points that the chosen can express, R² in feature space.

    Parameters
    ----------
    kernel : similarity of the points
    chosen : row numbers or mask
    sample_weight : how much each point counts

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.random.default_rng(0).normal(size=(300, 2)), "rbf", gamma=0.5)
    >>> explained_share(kernel, range(5)) < explained_share(kernel, range(20)) < 1
    True
    """
    errors = unexplained(kernel, chosen)
    weights: FloatArray = np.ones(kernel.n)
    if sample_weight is not None:
        weights = as_weights(sample_weight, kernel.n)
        if not weights.any():
            fault = "must have a positive entry; all are 0, so there is nothing to explain"
            raise InvalidInputError(fault, parameter="sample_weight")
        weights = weights / float(weights.max())  # only ratios matter
    total = float(weights @ kernel.diagonal())
    return 1.0 - float(weights @ errors) / total if total > 0 else 1.0


def _members(kernel: Kernel, chosen: ArrayLike) -> IntArray:
    if not isinstance(kernel, Kernel):
        fault = f"must be a Kernel; got {type(kernel).__name__}"
        raise InvalidInputError(fault, "Make one by mosaic.kernels.make_kernel(X, 'rbf').", parameter="kernel")
    return as_indices(chosen, kernel.n, "chosen")
