"""Effective counts: for how many points a point stands, or would stand, within the data or outside of it.

Row y of lam·K(I − R) is, up to its scale, q_y(i) = f_yᵀ (t_i − F_Sᵀ r_i). For a point with a non-zero row of R it is a
multiple of that row, so m_y = ‖q_y‖₁ / ‖q_y‖_∞ is the paper's measure there, (n − 1)·(1 − OP) + 1; and it is defined for
every other point too, whether it has a zero row or was never seen.

The entry of y itself is what most depends on how well F renders y: the residual Δ_yy of the factor, which no other
point shares, belongs to it. A point that the factor has missed altogether has all of its row in that entry, m_y = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mosaic._arrays import FloatArray, IntArray, in_double, row_blocks, row_codes, row_norms_squared
from mosaic.kernels import Kernel


def counts_against(
    f: FloatArray,
    f_left: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    place: IntArray,
    left: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """m_y = (Σ_{i≠y} ω_i |q_y(i)| + ω_y q_y(y)) / ‖q_y‖_∞, q_y(i) = f_yᵀ left_i, q_y(y) = |f_yᵀ left_y| + Δ_yy; at least 1.

    Parameters
    ----------
    f : rows of F of the points y
    f_left : left_y, one a row
    residual : Δ_yy
    weight : ω_y
    place : number of y among the targets, -1 where it is none of them
    left : left_i of the targets, as columns
    weights : ω_i of the targets, scaled up where they are a sample
    """
    Q = np.abs(f @ left)
    own = np.abs(np.einsum("ij,ij->i", f, f_left)) + residual
    among = np.flatnonzero(place >= 0)
    Q[among, place[among]] = 0.0  # a sampled target stands for many, but y stands for itself only once
    largest = np.maximum(Q.max(axis=1, initial=0.0), own)
    total = Q @ weights + weight * own
    return np.asarray(np.divide(total, largest, out=np.ones(len(f)), where=largest > 0)).clip(1.0)


@dataclass(frozen=True)
class CountModel:
    """What is needed to count for new points: the factor's map, left_i of the targets, and who is known already.

    A point that was in the data keeps its count; a new one is counted as if it had been added, with weight one, to
    the data that the encoding was made for. So an answer depends on the point alone and not on its batch.
    """

    #: The kernel over the pivots only, and L = F[pivots]; for explicit features, the kernel and None.
    pivots: Kernel
    triangle: FloatArray | None
    #: I − F_Sᵀ B, which takes f_y to left_y.
    complement: FloatArray
    left: FloatArray
    weights: FloatArray
    #: Known points: their codes in order, and their counts. These are not computed again, because a kernel need not know
    #: what a known point has in common with itself (precomputed), and rows of must-include points are no multiples of q.
    codes: Any
    known_counts: FloatArray

    def map(self, Y: Any) -> tuple[FloatArray, FloatArray]:
        """f_y = L⁻¹ k(pivots, y) and Δ_yy = k(y, y) − ‖f_y‖²; explicit features leave no residual."""
        if self.triangle is None:
            f = in_double(self.pivots.features_at(Y))
            return f, np.zeros(len(f))
        f = solve_triangular(self.triangle, self.pivots.cross(Y).T, lower=True).T
        return f, np.maximum(self.pivots.diagonal_at(Y) - row_norms_squared(f), 0.0)

    def counts(self, Y: Any) -> FloatArray:
        """m_y for every row of Y."""
        codes = row_codes(Y)
        found = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        result = self.known_counts[found]
        new = np.flatnonzero(self.codes[found] != codes)
        for block in row_blocks(len(new), len(self.weights) + len(self.complement)):
            rows = new[block]
            f, residual = self.map(Y[rows])
            once, nowhere = np.ones(len(f)), np.full(len(f), -1)
            result[rows] = counts_against(f, f @ self.complement.T, residual, once, nowhere, self.left, self.weights)
        return result
