"""What a kernel promises, and how kernels that are computed from points keep it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray, IntArray, row_blocks
from mosaic.exceptions import InvalidInputError

Rows: TypeAlias = slice | IntArray

#: All points of a kernel, in their order.
ALL = slice(None)


class Kernel(ABC):
    """A positive semi-definite similarity between ``n`` points, K_ij = k(x_i, x_j), that new points y can be put to.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[0.0], [1.0], [3.0]]), "rbf", gamma=1.0)
    >>> kernel.block(slice(0, 2), np.array([0, 2])).round(3).tolist()
    [[1.0, 0.0], [0.368, 0.018]]
    >>> kernel.take(np.array([2, 0])).cross(np.array([[2.0]])).round(3).tolist()
    [[0.368, 0.018]]
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of points."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Precision of the data, in which ``columns`` answers."""

    @abstractmethod
    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        """K[rows][:, columns] in float64."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """K_jj for every j, in float64."""

    @abstractmethod
    def take(self, indices: IntArray) -> Kernel:
        """The same similarity over these points only, numbered anew; it holds copies of their rows and no others."""

    @abstractmethod
    def cross(self, Y: Any, columns: Rows = ALL) -> FloatArray:
        """k(y_i, x_j), len(Y) × len(columns), in float64 for new points Y, checked by ``as_points``, and own points j."""

    @abstractmethod
    def diagonal_at(self, Y: Any) -> FloatArray:
        """k(y_i, y_i) in float64 for new points Y, checked by ``as_points``."""

    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        """k_ii + k_jj − 2 k_ij between own points, or another distance that orders them alike; never negative."""
        diagonal = self.diagonal()
        return np.asarray(
            np.maximum(diagonal[rows][:, None] + diagonal[columns] - 2.0 * self.block(rows, columns), 0.0)
        )

    def distances_at(self, Y: Any) -> FloatArray:
        """The same between new points and own ones, len(Y) × n."""
        return np.asarray(np.maximum(self.diagonal_at(Y)[:, None] + self.diagonal() - 2.0 * self.cross(Y), 0.0))

    def columns(self, columns: IntArray) -> FloatArray:
        """K[:, columns], n × len(columns), in the precision of the data."""
        result = np.empty((self.n, len(columns)), dtype=self.dtype)
        for rows in row_blocks(self.n, len(columns)):
            result[rows] = self.block(rows, columns)
        return result

    def explicit_factor(self) -> Any | None:
        """F with K = F Fᵀ where the data gives one at no cost, else None."""
        return None

    def features_at(self, Y: Any) -> Any:
        """Rows f_y with k(y, x_j) = f_yᵀ f_j for new points, where ``explicit_factor`` gives the f_j."""
        raise NotImplementedError


@dataclass(frozen=True)
class PointKernel(Kernel):
    """A kernel computed from the rows of ``X``, in float64 whatever the precision of X.

    A kind of kernel says what it is for two sets of rows (``_between``), for a row and itself (``_with_itself``) and,
    if it keeps something else than the points as given, how new points become such rows (``_prepared``).
    """

    X: Any

    @abstractmethod
    def _between(self, A: Any, B: Any) -> FloatArray:
        """k(a_i, b_j) for float64 rows, dense or CSR, both as X is. Leaves A and B as they are."""

    @abstractmethod
    def _with_itself(self, A: Any) -> FloatArray:
        """k(a_i, a_i) for rows of any precision, dense or CSR."""

    def _prepared(self, Y: Any) -> Any:
        """New points as float64 rows of the kind that X holds."""
        return in_format_of(self.X, Y)

    def _rows(self, rows: Rows) -> Any:
        """Own rows as float64, CSR staying CSR."""
        return self.X[rows].astype(np.float64)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return self._between(self._rows(rows), self._rows(columns))

    def diagonal(self) -> FloatArray:
        return self._with_itself(self.X)

    def take(self, indices: IntArray) -> Self:
        return replace(self, X=self.X[np.arange(self.n)[indices]])

    def over(self, Y: Any) -> Self:
        """The same similarity over other points, checked by ``as_points``."""
        return replace(self, X=self._prepared(Y))

    def cross(self, Y: Any, columns: Rows = ALL) -> FloatArray:
        return self._between(self._prepared(Y), self._rows(columns))

    def diagonal_at(self, Y: Any) -> FloatArray:
        return self._with_itself(self._prepared(Y))


def dense(A: Any) -> FloatArray:
    """A dense or sparse matrix as a dense one."""
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def in_format_of(X: Any, Y: Any) -> Any:
    """Y in float64, dense or CSR as X is; another number of features than that of X is refused."""
    if Y.shape[1] != X.shape[1]:
        raise InvalidInputError(
            f"new points must have the {X.shape[1]} features of the points that the kernel was made from; "
            f"Y has {Y.shape[1]}. Pass the same columns in the same order."
        )
    Y = Y.astype(np.float64)
    if sp.issparse(X):
        return sp.csr_array(Y)
    return dense(Y)


def product(A: Any, B: Any) -> FloatArray:
    """A Bᵀ, dense, for A and B both dense or both CSR. Of two CSR matrices the one with fewer rows is made dense."""
    if not sp.issparse(A):
        return np.asarray(A @ B.T)
    if A.shape[0] < B.shape[0]:
        return np.asarray(B @ A.toarray().T).T
    return np.asarray(A @ B.toarray().T)
