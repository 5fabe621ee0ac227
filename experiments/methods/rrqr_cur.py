"""RRQR and CUR: columns of the data that span it, by pivoted QR, and by leverage.

RRQR: Businger, Golub 1965; Gu, Eisenstat, SISC 1996.
CUR: Mahoney, Drineas: CUR matrix decompositions for improved data analysis, PNAS 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, qr, svd

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, FloatArray, IntArray, gaussian, generator, points, square
from mosaic.kernels import Kernel

LARGEST_QR, LARGEST_CUR = 1_000_000, 5000
#: Columns of which less than this share of the longest is left are in the span of the others.
SPANNED = 1e-10


def pivoted(A: FloatArray, k: int) -> tuple[IntArray, int]:
    """The first k columns in the order of QR with column pivoting, argmax_j ‖(I − QQᵀ) a_j‖.

    When the columns chosen span all others the order is arbitrary. The next round then starts with the columns that are
    left, as if there were no others. That is ours; textbooks stop at the rank.
    """
    chosen, rest = np.zeros(0, np.intp), np.arange(A.shape[1])
    while len(chosen) < k:
        R, order = qr(A[:, rest], mode="r", pivoting=True)
        sizes = np.abs(np.diagonal(R))
        rank = max(int((sizes > SPANNED * max(float(sizes[0]), float(np.finfo(np.float64).tiny))).sum()), 1)
        chosen = np.concatenate([chosen, rest[order[:rank]]])[:k]
        rest = np.delete(rest, order[:rank])
    return chosen


def select_by_qr(X: Any, k: int, seed: int, centred: bool = True) -> Picks:
    """QR with column pivoting of the points as columns. With the features of a Gaussian kernel it would be SSM."""
    X = points(X, k, LARGEST_QR)
    return Picks(pivoted((X - X.mean(axis=0) if centred else X).T, k))


def leverages(X: FloatArray, rank: int, kernel: Kernel | None = None) -> FloatArray:
    """ℓ_j = (1/r) Σ_{ξ≤r} v_jξ² for the r leading right singular vectors of the points as columns, or eigenvectors of K."""
    n = len(X)
    if kernel is None:
        vectors, singular, _ = svd(X - X.mean(axis=0), full_matrices=False)
        vectors, values = vectors[:, :rank], singular[:rank] ** 2
    else:
        values, vectors = eigh(square(kernel), subset_by_index=(n - rank, n - 1))
    vectors = vectors[:, values > SPANNED * float(values.max())]
    if not vectors.shape[1]:  # all points are the mean
        return np.full(n, 1.0 / n)
    return np.asarray((vectors**2).mean(axis=1))


def select_by_leverage(X: Any, k: int, seed: int, width: float | None = None) -> Picks:
    """Draw k points without repetition with probabilities ℓ_j at rank r = k, or d where there are fewer features.

    Notes
    -----
    1. The authors draw about r log r / ε² columns for rank r, with repetition or each by itself; here k are drawn.
    """
    X = points(X, k, LARGEST_CUR)
    weights = leverages(X, k, None if width is None else gaussian(X, width, seed))
    # Ordered by u^(1/ℓ), the largest first, uniform u: successive draws without repetition. Zero weights come last.
    keys = np.log(generator(seed).random(len(X))) / np.maximum(weights, 1e-300)
    return Picks(np.argsort(-keys, kind="stable")[:k])


SELECTORS = (
    Selector("RRQR", "peer", select_by_qr, ({"centred": True}, {"centred": False}), LARGEST_QR),
    Selector("CUR", "peer", select_by_leverage, ({"width": None}, *WIDTHS), LARGEST_CUR),
)
