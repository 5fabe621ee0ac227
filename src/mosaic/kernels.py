"""Similarities that can be asked for their diagonal, chosen columns and blocks. None stores n×n unasked.

A kernel is bound to its points, so everything above speaks of row numbers only:
``kernel.block(rows, columns)`` is K[rows][:, columns], computed when asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from mosaic._arrays import FloatArray, IntArray, Seed, as_points, row_blocks, row_norms_squared
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError

#: Up to this many features a loop over coordinates beats a matrix product, and it does not cancel.
FEW_FEATURES = 16
#: Up to this size a precomputed matrix is tested for definiteness before the work starts.
DEFINITENESS_TEST_SIZE = 5000

Rows: TypeAlias = slice | IntArray


@dataclass(frozen=True)
class EffectiveCount:
    """Bandwidth rule: the ``quantile`` of Σ_i k(x_i, x_j)² over the points j equals ``m0``.

    With a unit diagonal Σ_i k_ij² is the effective number of points that resemble j, itself included, so
    this rule is stated in points instead of distances. Use a high quantile when many points may be outliers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = make_kernel(X, "rbf", gamma=EffectiveCount(12.0))
    >>> float(np.round(np.median((kernel.columns(np.arange(200)) ** 2).sum(axis=0)), 3))
    12.0
    """

    m0: float
    quantile: float = 0.5

    def __post_init__(self) -> None:
        if not self.m0 > 1:
            raise InvalidInputError(f"m0 must be > 1 (a point always resembles itself); got {self.m0}.")
        if not 0 < self.quantile < 1:
            raise InvalidInputError(f"quantile must lie between 0 and 1; got {self.quantile}.")


Gamma: TypeAlias = float | Literal["scale", "median"] | EffectiveCount


class Kernel(ABC):
    """A positive semi-definite similarity between ``n`` points."""

    n: int
    dtype: np.dtype[Any]

    @abstractmethod
    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        """K[rows][:, columns] in float64."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """K_jj for every j, in float64."""

    def columns(self, columns: IntArray) -> FloatArray:
        """K[:, columns], n × len(columns), in the precision of the data."""
        result = np.empty((self.n, len(columns)), dtype=self.dtype)
        for rows in row_blocks(self.n, len(columns)):
            result[rows] = self.block(rows, columns)
        return result

    def explicit_factor(self) -> Any | None:
        """F with K = F Fᵀ where the data gives one at no cost, else None."""
        return None


@dataclass(frozen=True)
class PointKernel(Kernel):
    """A kernel computed from the rows of ``X``, in float64 whatever the precision of X."""

    X: Any

    @property
    def n(self) -> int:  # type: ignore[override]
        return int(self.X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def _rows(self, rows: Rows) -> Any:
        """The rows as float64, CSR staying CSR."""
        return self.X[rows].astype(np.float64)

    def _dense(self, rows: Rows) -> FloatArray:
        chosen = self._rows(rows)
        return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen)


class _StationaryKernel(PointKernel):
    """k(x, y) = exp(−γ · distance(x, y)), with unit diagonal."""

    gamma: float

    @abstractmethod
    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        """The distance in the exponent."""

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        D = self.distances(rows, columns)
        D *= -self.gamma
        return np.exp(D, out=D)

    def diagonal(self) -> FloatArray:
        return np.ones(self.n)


@dataclass(frozen=True)
class RBF(_StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₂²)."""

    gamma: float = 1.0

    @cached_property
    def _centre(self) -> FloatArray:
        """Distances do not change under a shift, rounding does: ‖x‖² − 2xᵀy + ‖y‖² cancels least about the mean."""
        if sp.issparse(self.X):
            return np.zeros(self.X.shape[1])
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))

    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        if not sp.issparse(self.X) and self.X.shape[1] <= FEW_FEATURES:
            return np.asarray(cdist(self._dense(rows), self._dense(columns), "sqeuclidean"))
        A, B = self._rows(rows), self._dense(columns) - self._centre
        if sp.issparse(A):
            A_squared = np.asarray(A.multiply(A).sum(axis=1)).ravel()
        else:
            A = A - self._centre
            A_squared = row_norms_squared(A)
        D = np.asarray(A @ (-2.0 * B.T))
        D += A_squared[:, None]
        D += row_norms_squared(B)
        return np.asarray(np.maximum(D, 0.0, out=D))


@dataclass(frozen=True)
class Laplacian(_StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₁)."""

    gamma: float = 1.0

    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        return np.asarray(cdist(self._dense(rows), self._dense(columns), "cityblock"))


@dataclass(frozen=True)
class Linear(PointKernel):
    """k(x, y) = xᵀy."""

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return np.asarray(self._rows(rows) @ self._dense(columns).T)

    def diagonal(self) -> FloatArray:
        if sp.issparse(self.X):
            return np.asarray(self.X.multiply(self.X).sum(axis=1), dtype=np.float64).ravel()
        return row_norms_squared(np.asarray(self.X, dtype=np.float64))

    def explicit_factor(self) -> Any | None:
        return self.X


@dataclass(frozen=True)
class Polynomial(Linear):
    """k(x, y) = (γ xᵀy + c₀)^degree, positive semi-definite for integer degree ≥ 1 and c₀ ≥ 0."""

    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if self.degree != int(self.degree) or self.degree < 1:
            raise InvalidInputError(f"degree must be a whole number >= 1; got {self.degree}.")
        if self.coef0 < 0:
            raise InvalidInputError(
                f"coef0 must be >= 0 for a positive semi-definite polynomial kernel; got {self.coef0}."
            )

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return np.asarray((self.gamma * super().block(rows, columns) + self.coef0) ** self.degree)

    def diagonal(self) -> FloatArray:
        return np.asarray((self.gamma * super().diagonal() + self.coef0) ** self.degree)

    def explicit_factor(self) -> Any | None:
        return None


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A similarity matrix given by the user, checked for shape, symmetry and (up to 5000 points) definiteness."""

    K: Any

    def __post_init__(self) -> None:
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
    def n(self) -> int:  # type: ignore[override]
        return int(self.K.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = self.K.dtype
        return dtype

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        chosen = self.K[rows][:, columns]
        return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, dtype=np.float64)

    def columns(self, columns: IntArray) -> FloatArray:
        chosen = self.K[:, columns]
        return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen)

    def diagonal(self) -> FloatArray:
        return np.asarray(self.K.diagonal(), dtype=np.float64)


@dataclass(frozen=True)
class FromCallable(PointKernel):
    """Any function ``f(A, B)`` that returns the len(A) × len(B) similarities between two sets of rows.

    An optional ``f.diag(A)``, as scikit-learn's Gaussian-process kernels have it, is used where it exists.
    """

    function: Callable[[Any, Any], Any]

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        A, B = self._rows(rows), self._rows(columns)
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

    def diagonal(self) -> FloatArray:
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(self._rows(slice(None))), dtype=np.float64)
        pieces = []
        for start in range(0, self.n, 64):
            rows = np.arange(start, min(start + 64, self.n))
            square = self.block(rows, rows)
            worst = float(np.abs(square - square.T).max())
            if worst > 1e-6 * float(np.abs(square).max()):
                raise NotPositiveSemidefiniteError(
                    f"the kernel function is not symmetric: f(A, B) and f(B, A).T differ by {worst:g}. "
                    "Use (f(A, B) + f(B, A).T) / 2."
                )
            pieces.append(np.diagonal(square))
        return np.concatenate(pieces)


def _normalised_rows(X: Any) -> Any:
    """Rows divided by their length; a zero row has no direction and is refused."""
    lengths = np.sqrt(Linear(X).diagonal())
    if not lengths.all():
        zero = np.flatnonzero(lengths == 0)
        raise InvalidInputError(
            f"kernel='cosine' needs points with a direction; {len(zero)} rows are zero, the first is row {int(zero[0])}. "
            "Drop these rows or use kernel='linear'."
        )
    scale = (1.0 / lengths).astype(X.dtype)
    return sp.csr_array(sp.diags_array(scale) @ X) if sp.issparse(X) else X * scale[:, None]


def heat_features(X: Any, n_neighbors: int = 10, time: int = 2) -> Any:
    """Rows g_j whose inner products are a heat kernel on the neighbour graph, scaled to unit length.

    W joins every point with its ``n_neighbors`` nearest, made symmetric; S = D^-½ W D^-½; the lazy walk
    A = (I + S)/2 = I − L/2 is one Euler step of the heat equation for half a unit of time. With G = A^time,
    K = G Gᵀ ≈ exp(−time · L) is positive semi-definite by construction, and G is sparse.
    """
    n = X.shape[0]
    k = min(n_neighbors, n - 1)
    if n_neighbors < 1 or time < 1:
        raise InvalidInputError(f"n_neighbors and time must be >= 1; got {n_neighbors} and {time}.")
    if k == 0:
        return sp.csr_array(np.ones((1, 1)))
    neighbours = _nearest(X, k)
    W = sp.csr_array((np.ones(n * k), (np.repeat(np.arange(n), k), neighbours.ravel())), shape=(n, n))
    W = W.maximum(W.T)
    half = sp.diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    A = sp.csr_array(0.5 * (sp.eye_array(n) + half @ W @ half))
    G = A
    for _ in range(time - 1):
        G = sp.csr_array(G @ A)
    return _normalised_rows(G)


def _nearest(X: Any, k: int) -> IntArray:
    """The k nearest other points of every point."""
    n = X.shape[0]
    if sp.issparse(X):
        distance = RBF(X)
        found = np.empty((n, k), dtype=np.intp)
        for rows in row_blocks(n, n):
            D = distance.distances(rows, np.arange(n))
            D[np.arange(D.shape[0]), np.arange(rows.start, rows.stop)] = np.inf
            found[rows] = np.argpartition(D, k - 1, axis=1)[:, :k]
        return found
    found = KDTree(X).query(X, k=k + 1)[1]
    # With repeated points the point itself need not come first, nor come at all.
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(n, k))


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
            return Linear(_normalised_rows(X))
        case "diffusion":
            return Linear(heat_features(X, n_neighbors, time))
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
                variance = _variance(X)
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            return Polynomial(X, float(gamma), degree, coef0)
    raise InvalidInputError(
        f"kernel must be 'rbf', 'laplacian', 'polynomial', 'linear', 'cosine', 'diffusion', 'precomputed' "
        f"or a function of two sets of points; got {kernel!r}."
    )


def resolve_gamma(kernel: RBF | Laplacian, gamma: Gamma, random_state: Seed = 0) -> float:
    """The number behind a bandwidth rule. Constant data has no scale: any bandwidth serves, 1 is returned."""
    if isinstance(gamma, EffectiveCount):
        return _effective_count_gamma(kernel, gamma, np.random.default_rng(random_state))
    if isinstance(gamma, str):
        if gamma == "scale":
            variance = _variance(kernel.X)
            spread = variance if isinstance(kernel, RBF) else np.sqrt(variance)
            return 1.0 / (kernel.X.shape[1] * spread) if spread > 0 else 1.0
        if gamma == "median":
            rows = _subsample(kernel.n, 2000, np.random.default_rng(random_state))
            D = kernel.distances(rows, rows)
            typical = float(np.median(D[np.triu_indices(len(rows), 1)])) if len(rows) > 1 else 0.0
            return 1.0 / typical if typical > 0 else 1.0
        raise InvalidInputError(f"gamma must be a number, 'scale', 'median' or EffectiveCount(m0); got {gamma!r}.")
    if not (np.isfinite(gamma) and gamma > 0):
        raise InvalidInputError(f"gamma must be a finite number > 0; got {gamma}.")
    return float(gamma)


def _effective_count_gamma(kernel: RBF | Laplacian, rule: EffectiveCount, rng: np.random.Generator) -> float:
    """Solve quantile_j(1 + Σ_{i≠j} exp(−2γ d_ij)) = m0 for γ; on a subsample sums are scaled up to n."""
    n = kernel.n
    if rule.m0 >= n:
        raise InvalidInputError(f"m0 must be smaller than the number of points {n}; got {rule.m0:g}.")
    others = _subsample(n, 16384, rng)
    centres = _subsample(len(others), 512 if len(others) < n else 2048, rng)
    D = kernel.distances(others, others[centres])
    D[centres, np.arange(len(centres))] = np.inf
    scale = (n - 1) / (len(others) - 1)
    positive = D[np.isfinite(D) & (D > 0)]
    if positive.size == 0:
        return 1.0
    typical = float(np.median(positive))

    def excess(log_gamma: float) -> float:
        counts = 1.0 + scale * np.exp(-2.0 * np.exp(log_gamma) * D).sum(axis=0)
        return float(np.log(np.quantile(counts, rule.quantile) / rule.m0))

    low, high = np.log(1e-12 / typical), np.log(1e3 / float(positive.min()))
    if excess(low) < 0:
        return float(np.exp(low))
    if excess(high) > 0:
        raise InvalidInputError(
            f"no bandwidth leaves an effective count of {rule.m0:g}: at least that many copies of a point exist "
            f"at the {rule.quantile:g} quantile. Raise m0 or remove duplicates."
        )
    return float(np.exp(brentq(excess, low, high, xtol=1e-10)))


def _subsample(n: int, size: int, rng: np.random.Generator) -> IntArray:
    return np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))


def _variance(X: Any) -> float:
    """Variance of all entries, as scikit-learn's gamma='scale' takes it."""
    if sp.issparse(X):
        mean = float(X.mean())
        return float(X.multiply(X).mean()) - mean * mean
    return float(X.var(dtype=np.float64))


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
