"""The interface of kernels, and kernels with a formula: rbf, laplacian, linear, cosine, polynomial, any function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mosaic.arrays import xp
from mosaic.arrays.blocks import (
    LARGEST,
    FloatArray,
    IntArray,
    in_double,
    row_blocks,
    row_lengths,
    scaled_rows,
    squared_lengths,
)
from mosaic.arrays.xp import (
    Matrix,
    as_double,
    at_least_zero,
    is_on_device,
    namespace,
    on_host,
    squares_of_rows,
    sums_of_differences,
    to_device_of,
)
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.parameters import real_number, whole_number

Rows: TypeAlias = slice | IntArray

#: Up to this many features, distances are computed coordinate by coordinate, faster than by a matrix product.
FEW_FEATURES = 16
#: Squared distances that are computed by products are known up to about eps of the squared lengths of both points. Below this
#: multiple of it they may be rounding; where γ times it is more than the second number, they are computed by coordinates.
ROUNDING_OF_DISTANCES = 50.0
ERROR_OF_EXPONENT = 1e-9
#: The largest similarity in single precision, and the inverse of the smallest: sums of squares are floats.
LARGEST_SINGLE_SIMILARITY = 1e15
#: Squared distances by products in single precision are known up to about 1e-6 of the squared lengths of both points. Below this
#: share of these lengths they are computed by coordinates, so that any distance is known up to about 1e-4 of itself.
NEAR_IN_SINGLE = 1e-3
#: Up to this many features, coordinates are faster in any precision.
FEW_IN_SINGLE = 4
#: Similarities below this are 0: products of subnormal numbers take some processors 20 times as long.
SMALLEST_SIMILARITY = 1e-30
#: A degree.
RADIAN = float(np.pi) / 180.0
#: Largest length of a point, in units of the distance, whose products are taken in single precision.
LONGEST_IN_SINGLE = 1e15


@dataclass(frozen=True)
class Kernel(ABC):
    """A similarity between ``n`` points, K_ij = k(x_i, x_j), and to new points y. Names with ``device_``
    answer on the device of the points, others with NumPy arrays, in float64.
    """

    X: Matrix  # the points, or the similarities themselves
    order: ClassVar[int] = 2  # ``distances`` are this power of a distance
    is_factor: ClassVar[bool] = False  # whether K = X Xᵀ

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return xp.numpy_dtype(self.X)

    @abstractmethod
    def device_block(self, rows: Rows, columns: IntArray) -> Any:
        """K[rows][:, columns]."""

    @abstractmethod
    def device_cross(self, Y: Matrix) -> Any:
        """k(y_i, x_j) for new points Y, len(Y) × n."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """K_jj for every j."""

    @abstractmethod
    def diagonal_at(self, Y: Matrix) -> FloatArray:
        """k(y_i, y_i) for new points Y."""

    @abstractmethod
    def take(self, indices: IntArray) -> Kernel:
        """The same similarity over these points only, renumbered, with copies of their rows."""

    def refuse_indefinite(self) -> None:
        """Raise an error if this is known not to be positive semi-definite, which the program needs, and choosing does not."""
        return

    def block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return on_host(self.device_block(rows, columns))

    def cross(self, Y: Matrix) -> FloatArray:
        return on_host(self.device_cross(Y))

    def distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        """k_ii + k_jj − 2 k_ij between own points, or another distance with the same order; 0 where it may be rounding alone: the
        root of that would be 1e-8, enough to choose between points that are alike.
        """
        return on_host(self.device_distances(rows, columns))

    def device_distances(self, rows: Rows, columns: IntArray) -> Any:
        diagonal = self.diagonal()
        return _apart(self.device_block(rows, columns), diagonal[rows], diagonal[columns])

    @property
    def unit(self) -> float:
        """A distance whose powers are floats in single precision."""
        return 1.0

    def in_single(self, columns: IntArray, unit: float) -> Callable[[Rows], Any]:
        """The function that gives (d / unit)^order, rows × columns, in single precision, up to about 1e-4 of it."""
        return lambda rows: xp.as_single(self.device_distances(rows, columns) * unit**-self.order)

    def in_single_at(self, unit: float) -> Callable[[Any], Any]:
        """The same between new points and own points, len(Y) × n."""
        return lambda Y: xp.as_single(self.distances_at(Y) * unit**-self.order)

    def cross_in_single(self) -> Callable[[Any], NDArray[np.float32]] | None:
        """The function that gives k(y_i, x_j) for new points in single precision, up to about 1e-4; None if there is none."""
        return None

    def distances_at(self, Y: Matrix) -> FloatArray:
        """The same distance between new points and own points, len(Y) × n."""
        return on_host(self.device_distances_at(Y))

    def device_distances_at(self, Y: Matrix) -> Any:
        return _apart(self.device_cross(Y), self.diagonal_at(Y), self.diagonal())


@dataclass(frozen=True)
class PointKernel(Kernel):
    """A kernel computed from the rows of ``X``, in float64; ``prepared`` makes new points rows like those of X."""

    def check(self, X: Matrix) -> None:
        """Refuse rows that it cannot compare."""

    @abstractmethod
    def _between(self, A: Matrix, B: Matrix) -> Any:
        """k(a_i, b_j) for float64 rows, dense or CSR like X, which it does not change."""

    @abstractmethod
    def _with_itself(self, A: Matrix) -> Any:
        """k(a_i, a_i) for rows of any precision, dense or CSR."""

    def prepared(self, Y: Matrix) -> Any:
        Y = in_format_of(self.X, Y)
        self.check(Y)
        return Y

    def _rows(self, rows: Rows) -> Any:
        return as_double(xp.rows_of(self.X, rows))

    def device_block(self, rows: Rows, columns: IntArray) -> Any:
        return self._between(self._rows(rows), self._rows(columns))

    def device_cross(self, Y: Matrix) -> Any:
        return self._between(self.prepared(Y), self._rows(slice(None)))

    def diagonal(self) -> FloatArray:
        return on_host(self._with_itself(self.X))

    def diagonal_at(self, Y: Matrix) -> FloatArray:
        return on_host(self._with_itself(self.prepared(Y)))

    def take(self, indices: IntArray) -> Self:
        return replace(self, X=xp.rows_of(self.X, np.arange(self.n)[indices]))

    def over(self, Y: Matrix) -> Self:
        return replace(self, X=self.prepared(Y))


@dataclass(frozen=True)
class StationaryKernel(PointKernel):
    """k(x, y) = exp(−γ · d(x, y)) with d = Σ_j |x_j − y_j|^order."""

    gamma: float = 1.0

    @property
    def unit(self) -> float:
        return float(self.gamma ** (-1.0 / self.order))

    @abstractmethod
    def _distances(self, A: Matrix, B: Matrix) -> Any:
        """D between rows, as a new array; 0 where it may be rounding alone."""

    def _decayed(self, D: Matrix) -> Any:
        with np.errstate(over="ignore"):  # exp(−∞) = 0
            D *= -self.gamma
        return xp.zero_below(xp.exponential(D), SMALLEST_SIMILARITY)

    def device_distances(self, rows: Rows, columns: IntArray) -> Any:
        return self._distances(self._rows(rows), self._rows(columns))

    def device_distances_at(self, Y: Matrix) -> Any:
        return self._distances(self.prepared(Y), self._rows(slice(None)))

    def _between(self, A: Matrix, B: Matrix) -> Any:
        return self._decayed(self._distances(A, B))

    def _with_itself(self, A: Matrix) -> Any:
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class RBF(StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₂²)."""

    @cached_property
    def _centre(self) -> Any:
        """Subtracted from all rows, so that ‖x‖² − 2xᵀy + ‖y‖² loses fewer digits: the median of about 1000 rows."""
        some = xp.host_rows(self.X, np.arange(0, self.n, -(-self.n // 1001)))
        return to_device_of(self.X, np.median(some, axis=0))

    def _distances(self, A: Matrix, B: Matrix) -> Any:
        if _by_coordinates(A, B):
            return cdist(A, B, "sqeuclidean")
        return _certain(*self._by_products(A, B))

    def in_single(self, columns: IntArray, unit: float) -> Callable[[Rows], Any]:
        if not isinstance(self.X, np.ndarray):
            return super().in_single(columns, unit)
        others = SingleRows.of(self.X[columns], self._centre, unit)
        return lambda rows: single_distances(
            SingleRows.of(self.X[rows], self._centre, unit), others
        )

    def in_single_at(self, unit: float) -> Callable[[Any], Any]:
        if not isinstance(self.X, np.ndarray):
            return super().in_single_at(unit)
        own = SingleRows.of(self.X, self._centre, unit)
        return lambda Y: single_distances(SingleRows.of(self.prepared(Y), self._centre, unit), own)

    def cross_in_single(self) -> Callable[[Any], NDArray[np.float32]] | None:
        if not isinstance(self.X, np.ndarray):
            return None
        distances = self.in_single_at(self.unit)
        return lambda Y: np.exp(-distances(Y))

    def _by_products(self, A: Matrix, B: Matrix) -> tuple[Any, Any, Any]:
        """D by products, and the squared lengths of both sets of rows, of which d has the rounding."""
        if not sp.issparse(A):  # a shift would make a sparse matrix dense
            A = A - self._centre
            B = B - self._centre
        return squared_distances(A, B)

    def _between(self, A: Matrix, B: Matrix) -> Any:
        """exp(−γ d). Where γ times the rounding of d is not small, for long rows or large γ, d is computed by coordinates."""
        if _by_coordinates(A, B):
            return self._decayed(cdist(A, B, "sqeuclidean"))
        D, lengths, others = self._by_products(A, B)
        limit = ERROR_OF_EXPONENT / float(np.finfo(np.float64).eps)
        with np.errstate(over="ignore"):
            long_rows = np.flatnonzero(self.gamma * on_host(lengths) > limit)
            long_columns = np.flatnonzero(self.gamma * on_host(others) > limit)
        if is_on_device(D) and len(long_rows) + len(long_columns):
            D = sums_of_differences(A, B, 2)
        elif len(long_rows) + len(long_columns):
            D[long_rows] = _few_distances(A[long_rows], B)
            D[:, long_columns] = _few_distances(B[long_columns], A).T
        return self._decayed(D)


def _apart(K: Matrix, lengths: FloatArray, others: FloatArray) -> Any:
    """k_ii + k_jj − 2 k_ij, from the diagonals of both sides."""
    lengths = to_device_of(K, lengths)
    others = to_device_of(K, others)
    return _certain(at_least_zero((lengths[:, None] + others) - 2.0 * K), lengths, others)


def _certain(D: Matrix, lengths: Any, others: Any) -> Any:
    """D, differences of squared lengths and products; 0 where they may be rounding alone."""
    share = ROUNDING_OF_DISTANCES * float(np.finfo(np.float64).eps)
    if is_on_device(D):
        xp = namespace(D)
        return xp.where(share * (lengths[:, None] + others) >= D, xp.zeros_like(D), D)
    # These are few; the others are larger than any rounding.
    i, j = np.nonzero(share * (lengths[:, None] + others.max(initial=0.0)) >= D)
    D[i, j] *= share * (lengths[i] + others[j]) < D[i, j]
    return D


def _by_coordinates(A: Matrix, B: Matrix) -> bool:
    """Whether distances are sums over coordinates, which is cheap between few points, and not differences of products, which lose
    digits.
    """
    few = A.shape[1] <= FEW_FEATURES or A.shape[0] * A.shape[1] * B.shape[0] <= 1 << 22
    return isinstance(A, np.ndarray) and bool(few)


class SingleRows(NamedTuple):
    """Rows from a centre in some unit, in double and in single precision, and their squared lengths."""

    exact: FloatArray
    rows: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @classmethod
    def of(cls, X: FloatArray, centre: FloatArray, unit: float) -> SingleRows:
        exact = (X - centre) / unit
        with np.errstate(over="ignore"):
            rows = exact.astype(np.float32)
            return cls(exact, rows, squares_of_rows(rows))


def single_distances(A: SingleRows, B: SingleRows) -> NDArray[np.float32]:
    """‖a_i − b_j‖² = ‖a_i‖² − 2 a_iᵀb_j + ‖b_j‖² in single precision; by coordinates where that loses too many digits."""
    longest = max(A.lengths.max(initial=0.0), B.lengths.max(initial=0.0))
    if longest <= LONGEST_IN_SINGLE**2 and A.rows.shape[1] > FEW_IN_SINGLE:
        D = np.asarray((-2.0 * A.rows) @ B.rows.T, np.float32)
        D += A.lengths[:, None]
        D += B.lengths
        near = np.flatnonzero(
            (NEAR_IN_SINGLE * A.lengths)[:, None] + NEAR_IN_SINGLE * B.lengths >= D
        )
        if len(near) <= D.size // 16:
            i, j = np.divmod(near, D.shape[1])
            D[i, j] = squares_of_rows(A.exact[i] - B.exact[j])
            return D
    with np.errstate(over="ignore"):
        return np.asarray(cdist(A.exact, B.exact, "sqeuclidean"), np.float32)


def _few_distances(A: Matrix, B: Matrix, metric: str = "sqeuclidean") -> FloatArray:
    """Distances by coordinates, for a few rows A and any number of rows B, which may not fit into memory when dense."""
    A = in_double(A)
    D = np.empty((A.shape[0], B.shape[0]))
    for part in row_blocks(*B.shape):
        D[:, part] = cdist(A, in_double(B[part]), metric)
    return D


@dataclass(frozen=True)
class Laplacian(StationaryKernel):
    """k(x, y) = exp(−γ ‖x − y‖₁)."""

    order: ClassVar[int] = 1

    def _distances(self, A: Matrix, B: Matrix) -> Any:
        if is_on_device(A):
            return sums_of_differences(A, B, 1)
        return _few_distances(A, B, "cityblock") if sp.issparse(A) else cdist(A, B, "cityblock")


@dataclass(frozen=True)
class Haversine(StationaryKernel):
    """k(x, y) = exp(−γ d), d the angle between two places on a sphere; rows are latitude and longitude in degrees.

    d = 2 arcsin √(sin²(Δφ / 2) + cos φ cos φ' sin²(Δλ / 2)), in radians: 6371 km on Earth. Of this distance, unlike of its
    square, the exponential is positive semi-definite on every sphere (Gangolli 1967).
    """

    order: ClassVar[int] = 1

    def check(self, X: Any) -> None:
        """Refuse rows that are not latitude and longitude in degrees."""
        remedy = "Pass two columns in degrees: latitude, then longitude."
        if X.shape[1] != 2 or sp.issparse(X):
            raise InvalidInputError(
                f"`kernel='haversine'` compares places; got {X.shape[1]} columns", remedy
            )
        latitude, longitude = on_host(abs(X)).max(axis=0, initial=0.0)
        if latitude > 90.0 or longitude > 360.0:
            reach = f"latitudes reach {latitude:.4g}° and longitudes {longitude:.4g}°"
            raise InvalidInputError(f"`kernel='haversine'` compares places; {reach}", remedy)

    def _distances(self, A: Any, B: Any) -> Any:
        xp = namespace(A)
        latitudes = A[:, :1] * RADIAN
        others = B[:, :1].T * RADIAN
        apart = (A[:, 1:] - B[:, 1:].T) * RADIAN
        squares = (
            xp.sin(0.5 * (latitudes - others)) ** 2
            + xp.cos(latitudes) * xp.cos(others) * xp.sin(0.5 * apart) ** 2
        )
        return 2.0 * xp.asin(xp.sqrt(xp.clip(squares, 0.0, 1.0)))


@dataclass(frozen=True)
class Linear(PointKernel):
    """k(x, y) = xᵀy."""

    is_factor: ClassVar[bool] = True

    def _between(self, A: Matrix, B: Matrix) -> Any:
        return product(A, B)

    def _with_itself(self, A: Matrix) -> Any:
        return squared_lengths(A)


@dataclass(frozen=True)
class Cosine(Linear):
    """k(x, y) = xᵀy / (‖x‖ ‖y‖). The rows of ``X`` have unit length (see ``normalised_rows``)."""

    def prepared(self, Y: Matrix) -> Any:
        return normalised_rows(super().prepared(Y), "Y")


@dataclass(frozen=True)
class Tanimoto(PointKernel):
    """k(x, y) = xᵀy / (‖x‖² + ‖y‖² − xᵀy): of sets, as rows of bits, the share of what either has that both have (Jaccard). Empty
    rows are equal. Their distance is 1 − k.

    It is Σ_m (xᵀy)^m / (‖x‖² + ‖y‖²)^m, m ≥ 1: positive semi-definite, since 1 / (a + b)^m ∝ ∫ t^(m−1) e^(−at) e^(−bt) dt.
    """

    order: ClassVar[int] = 1

    def check(self, X: Matrix) -> None:
        """Refuse rows that are no bits or counts."""
        if 0 in X.shape:
            return
        smallest = float(X.min() if sp.issparse(X) else on_host(namespace(X).min(X)))
        if smallest < 0:
            fault = f"`kernel='tanimoto'` compares sets, as rows of bits or counts; the smallest number is {smallest:.3g}"
            remedy = "Use `kernel='cosine'` for numbers that may be negative."
            raise InvalidInputError(fault, remedy)

    def _between(self, A: Any, B: Any) -> Any:
        shared = product(A, B)
        either = squared_lengths(A)[:, None] + squared_lengths(B) - shared
        xp = namespace(shared)
        one = xp.ones_like(shared)
        is_empty = either <= 0
        return xp.where(is_empty, one, shared) / xp.where(is_empty, one, either)

    def _with_itself(self, A: Any) -> Any:
        return np.ones(A.shape[0])

    def device_distances(self, rows: Rows, columns: IntArray) -> Any:
        return 0.5 * super().device_distances(rows, columns)

    def device_distances_at(self, Y: Any) -> Any:
        return 0.5 * super().device_distances_at(Y)


@dataclass(frozen=True)
class PolynomialKernel(Linear):
    """k(x, y) = (γ xᵀy + c₀)^degree, positive semi-definite for integer degree ≥ 1 and c₀ ≥ 0."""

    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0
    is_factor: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # 3.0 is accepted.
        is_whole = isinstance(self.degree, Real) and float(self.degree).is_integer()
        whole_number("degree", int(self.degree) if is_whole else self.degree)
        real_number(
            "coef0", self.coef0, at_least=0, meaning="else the kernel is not positive semi-definite"
        )

    def _between(self, A: Matrix, B: Matrix) -> Any:
        return self._power(super()._between(A, B))

    def _with_itself(self, A: Matrix) -> Any:
        return self._power(super()._with_itself(A))

    def _power(self, products: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            powers = (self.gamma * products + self.coef0) ** self.degree
            if np.isfinite(float(namespace(powers).sum(powers))):
                return powers
        raise InvalidInputError(
            "similarities leave the range of floats",
            "Divide the data by a power of ten, or use a lower `degree` or `gamma`.",
        )


#: Kernels that are a formula of two points, by name: new points can be put to them, so that passes take them, and bandwidths
#: of stationary ones are found by the same rules. A further one is a class, a line here and a name in ``KERNELS``.
STATIONARY_KERNELS: dict[str, type[StationaryKernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "haversine": Haversine,
}
POINT_KERNELS: dict[str, type[PointKernel]] = {
    **STATIONARY_KERNELS,
    "polynomial": PolynomialKernel,
    "linear": Linear,
    "cosine": Cosine,
    "tanimoto": Tanimoto,
}


@dataclass(frozen=True)
class FromCallable(PointKernel):
    """Any function f(A, B) of two sets of rows. ``f.diag(A)``, as scikit-learn's Gaussian-process kernels have it, is used."""

    function: Callable[[Any, Any], Any]

    def _between(self, A: Matrix, B: Matrix) -> Any:
        expected = (A.shape[0], B.shape[0])
        if 0 in expected:  # some functions refuse no points
            return np.zeros(expected)
        values = np.asarray(self.function(A, B), dtype=np.float64)
        if values.shape != expected:
            n, m = expected
            fault = f"the kernel function returned shape {values.shape} for {n} and {m} points; it must return {expected}"
            raise InvalidInputError(fault, "Return one row for each point of its first argument.")
        wrong = values[~(np.abs(values) <= _most(self.dtype))]
        if len(wrong):
            raise InvalidInputError(
                f"the kernel function returned {wrong[0]:g} for a pair of points",
                "Return finite numbers, not too large for their squares to be finite.",
            )
        return values

    def _with_itself(self, A: Matrix) -> Any:
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(A.astype(np.float64)), dtype=np.float64)
        pieces = [np.zeros(0)]
        for start in range(0, A.shape[0], 64):
            part = A[start : start + 64].astype(np.float64)
            square = self._between(part, part)
            worst = float(np.abs(square - square.T).max())
            if worst > 1e-6 * float(np.abs(square).max()):
                raise NotPositiveSemidefiniteError(
                    f"the kernel function is not symmetric: f(A, B) and f(B, A).T differ by {worst:g}",
                    "Use (f(A, B) + f(B, A).T) / 2.",
                )
            pieces.append(np.diagonal(square))
        return np.concatenate(pieces)


def check_similarities(largest: float, dtype: np.dtype[Any]) -> None:
    """Refuse similarities whose largest has a square that is no float."""
    if largest and not 1.0 / _most(dtype) <= largest <= _most(dtype):
        raise InvalidInputError(
            f"similarities are as {'large' if largest > 1 else 'small'} as {largest:.3g}; their squares do not fit {dtype.name}",
            "Divide the data, or similarities that are given, by a power of ten. `gamma`, `degree` and `coef0` also change them.",
        )


def _most(dtype: np.dtype[Any]) -> float:
    return LARGEST_SINGLE_SIMILARITY if dtype == np.float32 else LARGEST


def in_format_of(X: Matrix, Y: Matrix) -> Any:
    """Y in float64, dense or CSR like X. Y must have as many features as X."""
    if Y.shape[1] != X.shape[1]:
        raise InvalidInputError(
            f"new points must have the {X.shape[1]} features of the points that the kernel was made from; Y has {Y.shape[1]}",
            "Pass the same columns in the same order.",
        )
    if is_on_device(X):
        return as_double(Y) if is_on_device(Y) else to_device_of(X, in_double(Y))
    Y = on_host(Y).astype(np.float64)
    return sp.csr_array(Y) if sp.issparse(X) else in_double(Y)


def product(A: Matrix, B: Matrix) -> Any:
    """A Bᵀ, dense, for A and B both dense or both CSR. Of two CSR matrices, the one with fewer rows is made dense."""
    if not sp.issparse(A):
        return A @ B.T
    if A.shape[0] < B.shape[0]:
        return np.asarray(B @ A.toarray().T).T
    return A @ B.toarray().T


def squared_distances(A: Matrix, B: Matrix) -> tuple[Any, Any, Any]:
    """‖a_i − b_j‖₂² = ‖a_i‖² − 2 a_iᵀb_j + ‖b_j‖² for float64 rows, never negative, and the squared lengths of both."""
    lengths = squared_lengths(A)
    others = squared_lengths(B)
    D = product(A, -2.0 * B)
    D += lengths[:, None]
    D += others
    return at_least_zero(D), lengths, others


def normalised_rows(X: Matrix, name: str = "X") -> Any:
    """x_i / ‖x_i‖₂ for every row, in the precision of X."""
    return scaled_rows(X, 1.0 / lengths_of_directions(X, name))


def lengths_of_directions(X: Matrix, name: str = "X") -> FloatArray:
    """‖x_i‖₂ for every row; a zero row has no direction and is refused."""
    lengths = row_lengths(X)
    if not lengths.all():
        zero = np.flatnonzero(lengths == 0)
        raise InvalidInputError(
            f"`kernel='cosine'` needs points with a direction; {len(zero)} rows are zero, "
            f"the first is `row {int(zero[0])}` of {name}",
            "Drop these rows or use `kernel='linear'`.",
        )
    return lengths
