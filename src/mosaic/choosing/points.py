"""The input of choosing: the distinct points of the data, their similarity and effective counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, row_norms_squared
from mosaic.arrays.codes import equal_rows, priority, row_codes
from mosaic.arrays.xp import (
    Matrix,
    as_double,
    is_on_device,
    on_host,
    rows_of,
    stacked,
    to_device_of,
)
from mosaic.choosing.outliers import CountingPrograms
from mosaic.choosing.settings import Constraints
from mosaic.door import as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel, PointKernel
from mosaic.parameters import fields_of
from mosaic.program.encoding import Certificate, CountModel, Encoding

if TYPE_CHECKING:
    from mosaic.choosing.answers import AllInMemory, ByPasses
    from mosaic.choosing.draw import MoreRows
    from mosaic.choosing.geometry import Geometry

Value = TypeVar("Value")


@dataclass(frozen=True)
class Points:
    """The distinct points with weight, ordered by their distance from the centre of all, which depends on no order of the rows.

    ``first`` are the rows of the points, of copies the first, ``point_of`` the points of all rows, -1 without weight. ``weights``
    say how often points count, copies added up; ``priority`` is a random number that depends on the point alone.
    """

    first: IntArray
    point_of: IntArray
    weights: FloatArray
    priority: NDArray[np.uint64]

    @classmethod
    def of(
        cls, X: Matrix, sample_weight: ArrayLike | None = None, *, pairwise: bool = False
    ) -> Points:
        """The distinct points of X (similarities or distances if ``pairwise``), by centrality."""
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else copies_of_rows(sample_weight, n)
        rows = np.flatnonzero(weights > 0)
        counted = X if len(rows) == n else rows_of(X, rows)
        codes = row_codes(counted)
        equal = equal_rows(counted, codes)
        total = equal.sums(weights[rows])
        if pairwise:
            drawn = np.random.default_rng(0).permutation(len(equal.first)).astype(np.uint64)
            apart = _centre_distances_of_pairs(X, rows[equal.first], total)
            order = np.argsort(_in_steps(apart), kind="stable")
        else:
            distinct = counted if equal.is_trivial else rows_of(counted, equal.first)
            drawn = priority(codes[equal.first])
            order = np.lexsort((drawn, _in_steps(_centre_distances(distinct, total))))
        number = np.empty(len(order), np.intp)
        number[order] = np.arange(len(order))
        point_of = np.full(n, -1, np.intp)
        point_of[rows] = number[equal.group]
        return cls(rows[equal.first[order]], point_of, total[order], drawn[order])

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def spread(self, values: Any, absent: Any) -> Any:
        """The value of its point for every row of the data; ``absent`` for rows without weight."""
        return np.where(self.point_of >= 0, np.asarray(values)[self.point_of], absent)

    def sample(self, among: IntArray, size: int) -> IntArray:
        """At most ``size`` of the points ``among``, in their order: frequent points, then those with the lowest priorities."""
        if len(among) <= size:
            return among
        return among[np.sort(np.argpartition(self.sampling_order(among, size), size - 1)[:size])]

    def sampling_order(self, among: IntArray, size: int) -> NDArray[np.uint64]:
        """Numbers by which ``size`` of the points ``among`` are sampled, lowest first; 0 for frequent points, always sampled."""
        priority = self.priority[among]
        weights = self.weights[among]
        total = float(weights.sum())
        if float(weights.max(initial=0.0)) * size < total:
            return priority
        return np.where(weights * size >= total, np.uint64(0), priority)


def copies_of_rows(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts: numbers of copies as they are, other weights so that rows count once on average."""
    weights = as_weights(sample_weight, n)
    largest = float(weights.max(initial=0.0))
    if not largest:
        fault = "is zero for all rows, so there is nothing to represent"
        raise InvalidInputError(
            fault, "Give some row a positive weight.", parameter="sample_weight"
        )
    if largest <= 2.0**53 and (weights == np.round(weights)).all():
        return weights
    weights = weights / largest
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _centre_distances(X: Matrix, weights: FloatArray) -> FloatArray:
    """‖x_i − x̄‖², x̄ the weighted mean, in any unit of X."""
    if is_on_device(X):

        def add(part: slice) -> FloatArray:
            return on_host(to_device_of(X, weights[part]) @ as_double(rows_of(X, part)))

        centre = np.sum(in_blocks(add, X.shape[0], X.shape[1], on=X), axis=0) / weights.sum()
    else:
        centre = np.asarray(weights @ X, np.float64).ravel() / weights.sum()
    distances = np.empty(X.shape[0])

    def measure(part: slice) -> None:
        if sp.issparse(X):
            block = X[part].astype(np.float64)
            distances[part] = block.power(2).sum(axis=1) - 2.0 * (block @ centre) + centre @ centre
        else:
            distances[part] = row_norms_squared(rows_of(X, part) - to_device_of(X, centre))

    in_blocks(measure, X.shape[0], X.shape[1], on=X)
    return distances


def _centre_distances_of_pairs(K: Matrix, members: IntArray, weights: FloatArray) -> FloatArray:
    """k_ii − 2 Σ_j ω_j k_ij / Σ_j ω_j of the members, ‖φ_i − φ̄‖² but for a constant; of distances Σ_j ω_j d_ij likewise."""
    share = np.zeros(K.shape[1])
    share[members] = weights / weights.sum()
    mean = np.asarray(K[members] @ share).ravel()
    diagonal = np.asarray(K.diagonal(), np.float64)
    is_distance = not diagonal.any()
    return 2.0 * mean if is_distance else diagonal[members] - 2.0 * mean


def _in_steps(distances: FloatArray) -> FloatArray:
    """Distances as whole numbers of steps that are larger than rounding: 1e-9 of their range."""
    lowest = float(distances.min())
    return np.round((distances - lowest) / (1e-9 * (float(distances.max()) - lowest or 1.0)))


class once(Generic[Value]):  # noqa: N801 - used as a decorator
    """A property that is computed on first access and kept in ``computed`` of its object."""

    def __init__(self, method: Callable[[Any], Value]):
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, kind: type[Any] | None = None) -> Value:
        name = self.method.__name__
        if name not in owner.computed:
            owner.computed[name] = self.method(owner)
        return owner.computed[name]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Solved:
    """What a saved model keeps of a solved program (``mosaic.Encoding``)."""

    influence: FloatArray
    lam: float
    alpha: float
    n_iter: int
    total: float
    certificate: Certificate


@dataclass(frozen=True)
class FitData:
    """All input of choosing. ``points`` are those in memory: all, or a sample of many, whose weights are numbers of rows that
    they stand for; then ``row_numbers`` are the rows in the data of those in memory, ascending. ``absent`` are rows without
    weight, prepared. ``counting`` is None for the paper's measure, which comes from the ``encoding``, the solved program of the
    points. ``all_rows`` answers for all rows (``mosaic.choosing.answers``). ``larger`` is a larger sample, which picks may be
    taken from, and ``sampled`` the same data without such picks; a copy has none of these three.
    """

    n_rows: int
    points: Points
    geometry: Geometry
    constraints: Constraints
    counting: CountingPrograms | None
    seed: int
    all_rows: AllInMemory | ByPasses = field(repr=False)
    absent: Any = field(repr=False)
    row_numbers: IntArray | None = field(default=None, repr=False)
    row_names: Any = field(default=None, repr=False)
    encoding: Encoding | None = field(default=None, repr=False)
    larger: MoreRows | None = field(default=None, repr=False)
    sampled: FitData | None = field(default=None, repr=False)
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # They come from the encoding.
        kept = ["solved", "counts", "_paper_counts"] if self.counting is None else []
        names = self.row_names
        if self.larger is not None and names is not None and names.rows is not None:
            names = names.among(self.row_numbers)
        computed = {name: getattr(self, name) for name in kept}
        return fields_of(self) | {
            "computed": computed,
            "row_names": names,
            "encoding": None,
            "larger": None,
            "sampled": None,
        }

    @property
    def kernel(self) -> Kernel:
        return self.geometry.kernel

    @property
    def never_outliers(self) -> IntArray:
        """The points that must be included or are called fine."""
        rows = np.union1d(self.constraints.must, self.constraints.fine)
        points = self.points.point_of[rows]
        return points[points >= 0]

    @once
    def solved(self) -> Solved:
        return Solved(**{each.name: getattr(self.encoding, each.name) for each in fields(Solved)})

    @once
    def counts(self) -> FloatArray:
        if self.counting is not None:
            return self.counting.of_points(self.kernel)
        assert self.encoding is not None
        return self.encoding.effective_count

    @property
    def count_total(self) -> float:
        """Weight of the points that a point could resemble."""
        return self.solved.total if self.counting is None else self.counting.total

    def counts_at(self, Y: Matrix) -> FloatArray:
        """Effective counts of prepared rows; rows of the data have the same counts as in the data."""
        return self._paper_counts.counts(Y) if self.counting is None else self.counting.at(Y)

    def below(self, Y: Matrix, count: float) -> BoolArray:
        """Whether effective counts of prepared rows are below this one."""
        if self.counting is None:
            return self._paper_counts.counts(Y) < count
        return self.counting.below(Y, count)

    @once
    def _paper_counts(self) -> CountModel:
        kernel = self.kernel
        if isinstance(kernel, PointKernel):
            X = kernel.X
        else:
            X = kernel.block(slice(None), np.arange(kernel.n))
        assert self.encoding is not None
        return self.encoding.count_model(row_codes(X))

    def with_rows(self, places: IntArray) -> FitData:
        """The same data with rows of the larger sample in memory, too, which stand for themselves."""
        more = self.larger
        assert more is not None
        places = places[np.argsort(more.numbers[places])]
        rows = self.geometry.prepare(rows_of(more.rows, places))
        return self.joined(more.numbers[places], rows, more.allowed[places], more.group[places])

    def joined(
        self, new: IntArray, rows: Any, allowed: BoolArray | bool, group: IntArray | int
    ) -> FitData:
        """The same data with more rows in memory, prepared ones, which stand for themselves; their numbers are ascending."""
        kernel = self.kernel
        points = self.points
        assert self.row_numbers is not None
        assert isinstance(kernel, PointKernel)
        at = np.searchsorted(self.row_numbers, new)
        numbers = np.insert(self.row_numbers, at, new)
        before = np.searchsorted(numbers, self.row_numbers)
        added = np.searchsorted(numbers, new)
        both = replace(kernel, X=stacked(kernel.X, kernel.over(rows).X))
        joined = Points(
            np.concatenate([before[points.first], added]),
            np.insert(points.point_of, at, points.n + np.arange(len(new))),
            np.concatenate([points.weights, np.ones(len(new))]),
            np.concatenate([points.priority, priority(row_codes(rows))]),
        )
        constraints = replace(
            self.constraints,
            allowed=np.insert(self.constraints.allowed, at, allowed),
            group=np.insert(self.constraints.group, at, group),
            must=before[self.constraints.must],
            fine=before[self.constraints.fine],
            start=before[self.constraints.start],
        )
        counts = np.concatenate([self.counts, self.counts_at(rows)])
        geometry = replace(self.geometry, kernel=both)
        return replace(
            self,
            points=joined,
            geometry=geometry,
            constraints=constraints,
            row_numbers=numbers,
            sampled=self,
            computed={"counts": counts},
        )

    def rows_in_data(self, rows: IntArray) -> IntArray:
        return rows if self.row_numbers is None else self.row_numbers[rows]

    def called(self, row: int) -> str:
        return f"row {row}" if self.row_names is None else str(self.row_names.called(row))
