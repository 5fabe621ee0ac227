"""Kernels that are a formula of two points: rbf, laplacian, linear, cosine, polynomial, and any function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from mosaic._arrays import FloatArray, IntArray, row_blocks, row_norms_squared
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels.base import PointKernel, Rows, product

#: Up to this many features a loop over coordinates beats a matrix product, and it does not cancel. Where points are few, it
#: costs little, so that small matrices are exact whatever the number of features.
FEW_FEATURES, FEW_PRODUCTS = 16, 1 << 22
#: Rows that the centre is found with.
CENTRE_ROWS = 1001


class _StationaryKernel(PointKernel):
    """k(x, y) = exp(−γ · distance(x, y)), with unit diagonal."""

    gamma: float

    @abstractmethod
    def _distances(self, A: Any, B: Any) -> FloatArray:
        """The distance in the exponent, as a new array."""

    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        """The distance in the exponent between own points."""
        return self._distances(self._rows(rows), self._rows(columns))

    def distances_at(self, Y: Any) -> FloatArray:
        """The distance in the exponent between new points and own ones."""
        return self._distances(self._prepared(Y), self._rows(slice(None)))

    def _between(self, A: Any, B: Any) -> FloatArray:
        D = self._distances(A, B)
        D *= -self.gamma
        return np.exp(D, out=D)

    def _with_itself(self, A: Any) -> FloatArray:
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class RBF(_StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₂²)."""

    gamma: float = 1.0

    @cached_property
    def _centre(self) -> FloatArray:
        """Distances do not change under a shift, rounding does: ‖x‖² − 2xᵀy + ‖y‖² cancels least about the middle.

        It is the median of some rows: a mean would be moved far away from most points by a few wild ones.
        """
        some = self.X[:: -(-self.n // CENTRE_ROWS)]
        return np.asarray(np.median(some.astype(np.float64), axis=0))

    def _distances(self, A: Any, B: Any) -> FloatArray:
        if not sp.issparse(A):
            if A.shape[1] <= FEW_FEATURES or A.size * B.shape[0] <= FEW_PRODUCTS:
                return np.asarray(cdist(A, B, "sqeuclidean"))
            A, B = A - self._centre, B - self._centre  # a shift would fill a sparse matrix
        return squared_distances(A, B)


@dataclass(frozen=True)
class Laplacian(_StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₁)."""

    gamma: float = 1.0

    def _distances(self, A: Any, B: Any) -> FloatArray:
        if not sp.issparse(A):
            return np.asarray(cdist(A, B, "cityblock"))
        A = A.toarray()
        D = np.empty((B.shape[0], A.shape[0]))
        for part in row_blocks(*B.shape):  # B may be all points; dense, they need not fit into memory
            cdist(B[part].toarray(), A, "cityblock", out=D[part])
        return D.T


@dataclass(frozen=True)
class Linear(PointKernel):
    """k(x, y) = xᵀy."""

    def _between(self, A: Any, B: Any) -> FloatArray:
        return product(A, B)

    def _with_itself(self, A: Any) -> FloatArray:
        return squared_lengths(A)

    def explicit_factor(self) -> Any | None:
        return self.X

    def features_at(self, Y: Any) -> Any:
        return self._prepared(Y)


@dataclass(frozen=True)
class Cosine(Linear):
    """k(x, y) = xᵀy / (‖x‖ ‖y‖). ``X`` holds rows that have unit length already (see ``normalised_rows``)."""

    def _prepared(self, Y: Any) -> Any:
        return normalised_rows(super()._prepared(Y), "Y")


@dataclass(frozen=True)
class Polynomial(Linear):
    """k(x, y) = (γ xᵀy + c₀)^degree, positive semi-definite for integer degree ≥ 1 and c₀ ≥ 0."""

    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.degree, Real) or self.degree != int(self.degree) or self.degree < 1:
            raise InvalidInputError(f"degree must be a whole number >= 1; got {self.degree!r}.")
        if self.coef0 < 0:
            raise InvalidInputError(
                f"coef0 must be >= 0 for a positive semi-definite polynomial kernel; got {self.coef0}."
            )

    def _between(self, A: Any, B: Any) -> FloatArray:
        return self._power(super()._between(A, B))

    def _with_itself(self, A: Any) -> FloatArray:
        return self._power(super()._with_itself(A))

    def _power(self, products: FloatArray) -> FloatArray:
        return np.asarray((self.gamma * products + self.coef0) ** self.degree)

    def explicit_factor(self) -> Any | None:
        return None


@dataclass(frozen=True)
class FromCallable(PointKernel):
    """Any function ``f(A, B)`` that returns the len(A) × len(B) similarities between two sets of rows.

    An optional ``f.diag(A)``, as scikit-learn's Gaussian-process kernels have it, is used where it exists.
    """

    function: Callable[[Any, Any], Any]

    def _between(self, A: Any, B: Any) -> FloatArray:
        values = np.asarray(self.function(A, B), dtype=np.float64)
        expected = (A.shape[0], B.shape[0])
        if values.shape != expected:
            raise InvalidInputError(
                f"the kernel function returned shape {values.shape} for {expected[0]} and {expected[1]} points; "
                f"it must return {expected}, one row for each point of its first argument."
            )
        if not np.isfinite(values).all():
            i, j = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
            raise InvalidInputError(
                f"the kernel function returned {values[i, j]} for a pair of points; it must be finite."
            )
        return values

    def _with_itself(self, A: Any) -> FloatArray:
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(A.astype(np.float64)), dtype=np.float64)
        pieces = [np.zeros(0)]
        for start in range(0, A.shape[0], 64):
            part = A[start : start + 64].astype(np.float64)
            square = self._between(part, part)
            worst = float(np.abs(square - square.T).max())
            if worst > 1e-6 * float(np.abs(square).max()):
                raise NotPositiveSemidefiniteError(
                    f"the kernel function is not symmetric: f(A, B) and f(B, A).T differ by {worst:g}. "
                    "Use (f(A, B) + f(B, A).T) / 2."
                )
            pieces.append(np.diagonal(square))
        return np.concatenate(pieces)


def squared_lengths(A: Any) -> FloatArray:
    """‖a_i‖₂² in float64 for every row, dense or CSR."""
    A = A.astype(np.float64, copy=False)
    if sp.issparse(A):
        return np.asarray(A.power(2).sum(axis=1)).ravel()
    return row_norms_squared(A)


def squared_distances(A: Any, B: Any) -> FloatArray:
    """‖a_i − b_j‖₂² = ‖a_i‖² − 2 a_iᵀb_j + ‖b_j‖² for float64 rows, both dense or both CSR; never negative."""
    D = product(A, -2.0 * B)
    D += squared_lengths(A)[:, None]
    D += squared_lengths(B)
    return np.asarray(np.maximum(D, 0.0, out=D))


def normalised_rows(X: Any, name: str = "X") -> Any:
    """x_i / ‖x_i‖₂ for every row, in the precision of X; a zero row has no direction and is refused.

    Examples
    --------
    >>> import numpy as np
    >>> normalised_rows(np.array([[0.0, 2.0], [5.0, 0.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    lengths = np.sqrt(squared_lengths(X))
    if not lengths.all():
        zero = np.flatnonzero(lengths == 0)
        raise InvalidInputError(
            f"kernel='cosine' needs points with a direction; {len(zero)} rows are zero, the first is row "
            f"{int(zero[0])} of {name}. Drop these rows or use kernel='linear'."
        )
    scale = (1.0 / lengths).astype(X.dtype)
    return sp.csr_array(sp.diags_array(scale) @ X) if sp.issparse(X) else X * scale[:, None]
