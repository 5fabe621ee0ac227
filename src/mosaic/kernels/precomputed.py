"""A similarity matrix from the user: checked before the work starts, and asked like any other kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray, IntArray, row_blocks, row_codes
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels.base import ALL, Kernel, Rows, dense

#: Up to this size a precomputed matrix is tested for definiteness before the work starts.
DEFINITENESS_TEST_SIZE = 5000


@dataclass(frozen=True)
class Whole:
    """The matrix that a kernel was taken from: its size, the points that were taken, its diagonal, and how to know its rows."""

    n: int
    places: IntArray
    diagonal: FloatArray
    #: Codes of the rows, in order, and the rows that have them; None where the diagonal is constant and nobody needs them.
    codes: Any
    order: IntArray


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A similarity matrix given by the user, checked for shape, symmetry and (up to 5000 points) definiteness.

    A new point is given by its similarities to all points of the matrix, in their order, one row each.

    Notes
    -----
    1. The similarity of a new point to itself is not in its row; ``diagonal_at`` answers with the median of the
       diagonal of the whole matrix. This is exact where the diagonal is constant, as for normalised similarities, and rows of the
       matrix are recognised.
    2. After ``take`` a new point's row still has an entry for every point of the whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Precomputed(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]]))
    >>> kernel.take(np.array([2, 0])).cross(np.array([[0.7, 0.6, 0.1]])).tolist()
    [[0.1, 0.7]]
    """

    K: Any
    #: None for a whole matrix. A part of a matrix that passed the checks passes them up to rounding; they are not run.
    part_of: Whole | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.part_of is not None:
            return
        K = self.K
        if K.shape[0] != K.shape[1]:
            raise InvalidInputError(
                f"a precomputed similarity must be square; got shape {K.shape}. "
                "To pass points instead of similarities, choose a kernel such as kernel='rbf'."
            )
        _check_symmetric(K)
        diagonal = self.diagonal()
        if diagonal.min() < 0:
            j = int(diagonal.argmin())
            raise NotPositiveSemidefiniteError(
                f"a similarity must be positive semi-definite; its diagonal entry {j} is {diagonal[j]:g}. "
                "If this is a distance matrix D, pass np.exp(-gamma * D**2) instead."
            )
        if self.n <= DEFINITENESS_TEST_SIZE:
            _check_definite(K, float(diagonal.sum()))

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.K.dtype
        return dtype

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return dense(self.K[rows][:, columns]).astype(np.float64, copy=False)

    def columns(self, columns: IntArray) -> FloatArray:
        return dense(self.K[:, columns])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.K.diagonal(), dtype=np.float64)

    def take(self, indices: IntArray) -> Precomputed:
        chosen = np.arange(self.n)[indices]
        return Precomputed(self.K[chosen][:, chosen], replace(self._whole, places=self._whole.places[chosen]))

    def cross(self, Y: Any, columns: Rows = ALL) -> FloatArray:
        self._check_new(Y)
        return dense(Y[:, self._whole.places[columns]]).astype(np.float64, copy=False)

    def diagonal_at(self, Y: Any) -> FloatArray:
        self._check_new(Y)
        whole = self._whole
        own = np.full(Y.shape[0], float(np.median(whole.diagonal)))
        if whole.codes is not None:
            codes = row_codes(Y)
            found = np.minimum(np.searchsorted(whole.codes, codes), whole.n - 1)
            known = whole.codes[found] == codes
            own[known] = whole.diagonal[whole.order[found[known]]]
        return own

    @cached_property
    def _whole(self) -> Whole:
        if self.part_of is not None:
            return self.part_of
        diagonal, everyone = self.diagonal(), np.arange(self.n)
        if not np.ptp(diagonal):
            return Whole(self.n, everyone, diagonal, None, everyone)
        codes = row_codes(self.K)
        order = np.argsort(codes)
        return Whole(self.n, everyone, diagonal, codes[order], order)

    def _check_new(self, Y: Any) -> None:
        if Y.shape[1] != self._whole.n:
            raise InvalidInputError(
                f"with kernel='precomputed' new points are given by their similarities to all {self._whole.n} points "
                f"of the matrix, so Y must have {self._whole.n} columns; it has {Y.shape[1]}. "
                "Compute the similarities to the points that were left out as well."
            )


def _check_symmetric(K: Any) -> None:
    if sp.issparse(K):
        difference = abs(K - K.T)
        worst, size = float(difference.max()), float(abs(K).max())
        flat = int(difference.argmax())
        where = (flat // K.shape[1], flat % K.shape[1])
    else:
        worst, size, where = 0.0, 0.0, (0, 0)
        for rows in row_blocks(K.shape[0], K.shape[0]):
            size = max(size, float(np.abs(K[rows]).max()))
            difference = np.abs(K[rows] - K[:, rows].T)
            if float(difference.max()) > worst:
                worst = float(difference.max())
                i, j = (int(k) for k in np.unravel_index(int(difference.argmax()), difference.shape))
                where = (i + rows.start, j)
    if worst > 100 * np.finfo(K.dtype).eps * max(size, np.finfo(K.dtype).tiny):
        i, j = where
        raise NotPositiveSemidefiniteError(
            f"a precomputed similarity must be symmetric; K[{i}, {j}] = {K[i, j]:g} but K[{j}, {i}] = {K[j, i]:g}. "
            "Use (K + K.T) / 2 if the difference is noise."
        )


def _check_definite(K: Any, trace: float) -> None:
    """A Cholesky factor of K + tolerance exists, or the smallest eigenvalue is named."""
    dense = np.array(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
    tolerance = 100 * float(np.finfo(K.dtype).eps) * trace
    dense[np.diag_indices_from(dense)] += tolerance
    try:
        np.linalg.cholesky(dense)
    except np.linalg.LinAlgError:
        dense[np.diag_indices_from(dense)] -= tolerance
        eigenvalues = np.linalg.eigvalsh(dense)
        if eigenvalues[0] < -tolerance:
            raise NotPositiveSemidefiniteError(
                f"a similarity must be positive semi-definite; the smallest eigenvalue is {eigenvalues[0]:.3g} "
                f"and the largest {eigenvalues[-1]:.3g}. If this is a distance matrix D, pass np.exp(-gamma * D**2); "
                "otherwise clip the negative eigenvalues."
            ) from None
