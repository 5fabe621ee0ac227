"""A similarity matrix given by the user, checked and used like any other kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpstrf

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.door import largest_entry
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels.points import ALL_POINTS, Kernel, Rows, check_similarities, dense

#: Largest number of points for which a matrix is tested for definiteness.
DEFINITENESS_TEST_SIZE = 5000
#: Side of the tiles in which a matrix is compared with its transpose; two tiles fit into the cache.
TILE_SIDE = 256
#: Pivots that a partial factor takes at once, and random vectors that measure its error.
PIVOTS_AT_ONCE, ERROR_PROBES = 64, 4


@dataclass(frozen=True)
class Whole:
    """The matrix that a kernel was taken from: its size, the points that were taken, its diagonal, and its rows.

    ``rows`` is None if the diagonal is constant, because rows need not be recognised then.
    """

    n: int
    places: IntArray
    diagonal: FloatArray
    rows: KnownRows | None


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A similarity matrix given by the user, checked for shape, symmetry and (up to 5000 points) definiteness.

    A new point is given by its similarities to all points of the matrix, in their order, one row each.

    Notes
    -----
    1. The row of a new point lacks its similarity to itself; ``diagonal_at`` returns the median of the diagonal of the whole
       matrix. This is exact if the diagonal is constant, as for normalised similarities. Rows of the matrix are recognised and
       get their own entry.
    2. After ``take`` a new point's row still has an entry for every point of the whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Precomputed(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]]))
    >>> kernel.take(np.array([2, 0])).cross(np.array([[0.7, 0.6, 0.1]])).tolist()
    [[0.1, 0.7]]
    """

    K: Any
    #: None for a whole matrix. A part of a checked matrix is not checked again: it passes up to rounding.
    part_of: Whole | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.part_of is not None:
            return
        K = self.K
        if K.shape[0] != K.shape[1]:
            raise InvalidInputError(
                f"a precomputed similarity must be square; got shape {K.shape}",
                "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
            )
        _check_symmetric(K)
        diagonal = self.diagonal()
        if diagonal.min() < 0:
            j = int(diagonal.argmin())
            raise NotPositiveSemidefiniteError(
                f"a similarity must be positive semi-definite; its diagonal entry {j} is {diagonal[j]:g}",
                "If this is a distance matrix D, pass np.exp(-gamma * D**2) instead.",
            )
        check_similarities(largest_entry(K), self.dtype)
        if self.n <= DEFINITENESS_TEST_SIZE:
            _check_definite(K, float(diagonal.sum()))

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.K.dtype
        return dtype

    @property
    def points(self) -> Any:
        return self.K

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return dense(self.K[rows][:, columns]).astype(np.float64, copy=False)

    def columns(self, columns: IntArray) -> FloatArray:
        return dense(self.K[:, columns])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.K.diagonal(), dtype=np.float64)

    def take(self, indices: IntArray) -> Precomputed:
        chosen = np.arange(self.n)[indices]
        return Precomputed(self.K[chosen][:, chosen], replace(self._whole, places=self._whole.places[chosen]))

    def cross(self, Y: Any, columns: Rows = ALL_POINTS) -> FloatArray:
        self._check_new(Y)
        return dense(Y[:, self._whole.places[columns]]).astype(np.float64, copy=False)

    def diagonal_at(self, Y: Any) -> FloatArray:
        self._check_new(Y)
        whole = self._whole
        own = np.full(Y.shape[0], float(np.median(whole.diagonal)))
        if whole.rows is not None:
            found = whole.rows.find(row_codes(Y))
            own[found >= 0] = whole.diagonal[found[found >= 0]]
        return own

    @cached_property
    def _whole(self) -> Whole:
        if self.part_of is not None:
            return self.part_of
        diagonal = self.diagonal()
        rows = KnownRows.of(row_codes(self.K)) if np.ptp(diagonal) else None
        return Whole(self.n, np.arange(self.n), diagonal, rows)

    def _check_new(self, Y: Any) -> None:
        if Y.shape[1] != self._whole.n:
            raise InvalidInputError(
                f"with `kernel='precomputed'` new points are given by their similarities to all {self._whole.n} points "
                f"of the matrix, so Y must have {self._whole.n} columns; it has {Y.shape[1]}",
                "Compute the similarities to the points that were left out as well.",
            )


def _check_symmetric(K: Any) -> None:
    worst, (i, j) = _asymmetry(K)
    if worst == 0:
        return
    size = max(float(K.max()), -float(K.min()), float(np.finfo(K.dtype).tiny))
    if worst > 100 * np.finfo(K.dtype).eps * size:
        raise NotPositiveSemidefiniteError(
            f"a precomputed similarity must be symmetric; K[{i}, {j}] = {K[i, j]:g} but K[{j}, {i}] = {K[j, i]:g}",
            "Use (K + K.T) / 2 if the difference is noise.",
        )


def _asymmetry(K: Any) -> tuple[float, tuple[int, int]]:
    """The largest |K_ij − K_ji| and its place, tile by tile; equal tiles are skipped."""
    if sp.issparse(K):
        difference = abs(K - K.T)
        i, j = divmod(int(difference.argmax()), K.shape[1])
        return float(difference.max()), (i, j)
    worst, where = 0.0, (0, 0)
    for top in range(0, len(K), TILE_SIDE):
        for left in range(top, len(K), TILE_SIDE):
            tile, other = (
                K[top : top + TILE_SIDE, left : left + TILE_SIDE],
                K[left : left + TILE_SIDE, top : top + TILE_SIDE].T,
            )
            if np.array_equal(tile, other):
                continue
            difference = np.abs(tile - other)
            place = int(difference.argmax())
            if float(difference.flat[place]) > worst:
                i, j = divmod(place, tile.shape[1])
                worst, where = float(difference.flat[place]), (top + i, left + j)
    return worst, where


def _check_definite(K: Any, trace: float) -> None:
    """Accept K if it is F Fᵀ up to rounding or K + tolerance has a Cholesky factor; otherwise check its eigenvalues."""
    given = K.toarray() if sp.issparse(K) else K
    tolerance = 100 * float(np.finfo(K.dtype).eps) * trace
    if _is_low_rank_gram(given, tolerance):
        return
    shifted = np.array(given, dtype=np.float64, order="C")
    shifted[np.diag_indices_from(shifted)] += tolerance
    if dpotrf(shifted.T, lower=1, overwrite_a=1, clean=0)[1] == 0:
        return
    eigenvalues = np.linalg.eigvalsh(given.astype(np.float64))
    if eigenvalues[0] < -tolerance:
        raise NotPositiveSemidefiniteError(
            f"a similarity must be positive semi-definite; the smallest eigenvalue is {eigenvalues[0]:.3g} "
            f"and the largest {eigenvalues[-1]:.3g}",
            "If this is a distance matrix D, pass np.exp(-gamma * D**2); otherwise clip the negative eigenvalues.",
        )


def _is_low_rank_gram(K: FloatArray, tolerance: float) -> bool:
    """Whether K = F Fᵀ + Δ with at most n/4 columns and ‖Δ‖_F ≤ 2 tolerance, so that no eigenvalue is below −2 tolerance.

    F is a pivoted Cholesky factor, which takes n·rank² operations instead of n³/3. If K is indefinite, Δ can have a zero
    diagonal without being zero; so ‖Δ‖²_F is estimated by the mean of ‖Δg‖² over normal vectors g. An error ten times as large
    passes with a probability of 1e-7. False proves nothing: the rank may be higher.
    """
    n, rank = len(K), 0
    Ft = np.empty((n // 4, n))
    diagonal = K.diagonal().astype(np.float64)
    trace, left = float(diagonal.sum()), diagonal
    while (rest := float(left.sum())) > tolerance:
        # The trace of the residual falls ever more slowly. If it has not fallen by its share now, it will not fall in time.
        if rest > trace * (tolerance / trace) ** (rank / max(len(Ft), 1)):
            return False
        largest = np.argpartition(-left, PIVOTS_AT_ONCE - 1)[:PIVOTS_AT_ONCE] if n > PIVOTS_AT_ONCE else np.arange(n)
        chosen = Ft[:rank, largest]
        gram = K[np.ix_(largest, largest)] - chosen.T @ chosen
        L, order, found, _ = dpstrf(gram, lower=1, tol=0.1 * float(left[largest].max()))
        if found == 0 or rank + found > len(Ft):
            return False
        pivots = largest[order[:found] - 1]
        rows = K[pivots] - Ft[:rank, pivots].T @ Ft[:rank]
        new = dtrsm(1.0, L[:found, :found], rows, lower=1)
        Ft[rank : rank + found] = new
        rank += found
        left = left - np.einsum("ij,ij->j", new, new)
        left[pivots] = 0.0
        if left.min() < -tolerance:
            return False
        left = np.maximum(left, 0.0)
    G = np.random.default_rng(0).standard_normal((n, ERROR_PROBES))
    ΔG = K @ G - Ft[:rank].T @ (Ft[:rank] @ G)
    return float(np.vdot(ΔG, ΔG)) <= ERROR_PROBES * (2.0 * tolerance) ** 2
