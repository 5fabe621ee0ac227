"""The input of choosing: the distinct points of the data, their similarity, and their effective counts.

Thresholds are applied later and can change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks, row_norms_squared
from mosaic.arrays.codes import equal_rows, priority, row_codes
from mosaic.arrays.xp import as_double, is_on_device, on_host, rows_of, to_device_of
from mosaic.choosing.outliers import EffectiveCounts
from mosaic.choosing.settings import Constraints
from mosaic.door import as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel, PointKernel
from mosaic.program.encoding import Certificate, CountModel, Encoding
from mosaic.program.solvers import Status

if TYPE_CHECKING:
    from mosaic.choosing.geometry import Geometry

#: Largest number of copies that a weight can mean; larger weights mean importance relative to other rows.
MOST_COPIES = 2.0**53
#: Distances from the centre that differ by less than this share of their range count as equal.
CENTRALITY_ROUNDING = 1e-9


@dataclass(frozen=True)
class Points:
    """The distinct points with weight, ordered by their distance from the centre of all.

    Equal rows are one point, with their number as its weight; rows without weight are left out. The order does not depend on the
    order of rows and, where no two distances are equal, up to rounding not on that of columns or the rotation of the data.

    Attributes
    ----------
    first : row number of each point in the data, the first of its copies
    group : for every row the number of its point, -1 for rows without weight
    weights : how often each point counts
    priority : a random number for each point that depends on the point alone; the points with the lowest numbers are a
        random sample
    """

    first: IntArray
    group: IntArray
    weights: FloatArray
    priority: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None = None, *, pairwise: bool = False, central_first: bool = True) -> Points:
        """The distinct points of X (similarities if ``pairwise``), by centrality or, which is faster, by priority."""
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else copies_of_rows(sample_weight, n)
        rows = np.flatnonzero(weights > 0)
        counted = X if len(rows) == n else rows_of(X, rows)
        codes = row_codes(counted)
        equal = equal_rows(counted, codes)
        total = equal.sums(weights if len(rows) == n else weights[rows])
        distinct = counted if equal.is_trivial else rows_of(counted, equal.first)
        if pairwise:
            drawn = np.random.default_rng(0).permutation(len(equal.first)).astype(np.uint64)
            order = np.argsort(_in_steps(_pairwise_distances(X, rows[equal.first], total)), kind="stable")
        else:
            drawn = priority(codes if equal.is_trivial else codes[equal.first])
            order = np.lexsort((drawn, _in_steps(_centre_distances(distinct, total)))) if central_first else np.argsort(drawn)
        number = np.empty(len(order), np.intp)
        number[order] = np.arange(len(order))
        if equal.is_trivial and len(rows) == n:  # at many points every step counts
            return cls(order, number, total if sample_weight is None else total[order], drawn[order])
        group = np.full(n, -1, np.intp)
        group[rows] = number[equal.group]
        return cls(rows[equal.first[order]], group, total[order], drawn[order])

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.first)

    @property
    def total(self) -> float:
        """Sum of all weights: the number of points, copies counted."""
        return float(self.weights.sum())

    def spread(self, values: Any, absent: Any) -> Any:
        """The value of its point for every row of the data; ``absent`` for rows without weight."""
        return np.where(self.group >= 0, np.asarray(values)[self.group], absent)

    def sample(self, among: IntArray, size: int) -> IntArray:
        """At most ``size`` of the points ``among``, in their order: frequent points, then those with the lowest priorities."""
        if len(among) <= size:
            return among
        order = self.sampling_order(among, size)
        # Priorities are evenly spread over 64 bits, so those below twice the share that is wanted are usually enough.
        low = np.flatnonzero(order < np.uint64(min(2.0 * size / len(among), 0.5) * 2.0**64))
        few = np.arange(len(among)) if len(low) < size else low
        return among[np.sort(few[np.argpartition(order[few], size - 1)[:size]])]

    def sampling_order(self, among: IntArray, size: int) -> NDArray[np.uint64]:
        """Numbers by which ``size`` of the points ``among`` are sampled, lowest first; 0 for frequent points, always sampled."""
        everyone = len(among) == self.n
        priority, weights = (self.priority, self.weights) if everyone else (self.priority[among], self.weights[among])
        total = float(weights.sum())
        if float(weights.max(initial=0.0)) * size < total:
            return priority
        return np.where(weights * size >= total, np.uint64(0), priority)


def row_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts. Of weights that are no numbers of copies, only ratios matter: the largest is near 1."""
    weights = as_weights(sample_weight, n)
    largest = float(weights.max(initial=0.0))
    is_ordinary = 1.0 / MOST_COPIES <= largest <= MOST_COPIES or largest == 0
    return weights if is_ordinary else np.ldexp(weights, -np.frexp(largest)[1])


def copies_of_rows(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts, at least one of them: numbers of copies as they are, others so that they count once on
    average.
    """
    weights = row_weights(sample_weight, n)
    largest = float(weights.max(initial=0.0))
    if not largest:
        fault = "is zero for all rows, so there is nothing to represent"
        raise InvalidInputError(fault, "Give some row a positive weight.", parameter="sample_weight")
    if largest <= MOST_COPIES and (weights == np.round(weights)).all():
        return weights
    weights = weights / largest
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _centre_distances(X: Any, weights: FloatArray) -> FloatArray:
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


def _pairwise_distances(K: Any, members: IntArray, weights: FloatArray) -> FloatArray:
    """‖φ_i − φ̄‖² up to a constant: k_ii − 2 Σ_j ω_j k_ij / Σ_j ω_j."""
    spread = np.zeros(K.shape[1])
    spread[members] = weights / weights.sum()
    own = np.asarray(K.diagonal(), np.float64)[members]
    return np.asarray(own - 2.0 * np.asarray(K[members] @ spread).ravel())


def _in_steps(distances: FloatArray) -> FloatArray:
    """Distances as whole numbers of steps that are larger than rounding."""
    lowest = float(distances.min())
    spread = float(distances.max()) - lowest or 1.0
    return np.round((distances - lowest) / (CENTRALITY_ROUNDING * spread))


Value = TypeVar("Value")


class once(Generic[Value]):  # noqa: N801 - used as a decorator
    """A property that is computed on first access and kept in ``computed`` of its object, which tells what has been."""

    def __init__(self, method: Callable[[Any], Value]):
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, owner: Any, kind: type[Any] | None = None) -> Value:
        if owner is None:
            return self  # type: ignore[return-value]
        name = self.method.__name__
        if name not in owner.computed:
            owner.computed[name] = self.method(owner)
        return owner.computed[name]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Solved:
    """What is known of a solved program without its matrices; a model that is saved keeps this and not the encoding.

    Attributes are those of ``mosaic.Encoding``.
    """

    influence: FloatArray
    lam: float
    alpha: float
    n_iter: int
    total: float
    status: Status
    certificate: Certificate

    @classmethod
    def of(cls, encoding: Encoding) -> Solved:
        """From the encoding."""
        return cls(**{each.name: getattr(encoding, each.name) for each in fields(cls)})


class Proof(Protocol):
    """Solves the program of the points once, on first access, and proves how good a choice is."""

    #: Whether it reads rows that are not in memory.
    by_passes: ClassVar[bool]

    @property
    def is_possible(self) -> bool:
        """Whether all rows that a proof needs are available."""

    def encoding(self, material: Material) -> Encoding:
        """The certified encoding."""

    def certificate(self, selection: Any) -> Any:
        """The certificate of a choice."""

    def answers(self, selection: Any) -> Any:
        """Answers for all rows."""

    def influence(self, material: Material) -> FloatArray:
        """For each row of the data, the norm of its row in the encoding; copies share it equally."""


class RowLabels(Protocol):
    """The names of rows (``mosaic.rows.names.RowNames``)."""

    def __getitem__(self, row: int) -> str:
        """The name of a row."""

    def called(self, row: int) -> str:
        """The name of a row for a sentence."""

    def find(self, name: str) -> int:
        """The row that is called so."""


@dataclass(frozen=True)
class Material:
    """All input of choosing.

    Attributes
    ----------
    n_rows : number of rows of the data
    points : the distinct points in memory: all, or a sample of many, whose weights are numbers of rows that they stand for
    geometry : their geometry
    constraints : constraints on the rows in memory
    counting : computes effective counts; None for the paper's measure, which comes from the encoding
    seed : seed of random draws
    proof : solves the program on first access
    absent : rows without weight, prepared
    row_numbers : of a sample, the row number in the data of each row in memory, in ascending order; None if all are in memory
    row_names : of the rows; None where they have none
    computed : what has been computed so far
    """

    n_rows: int
    points: Points
    geometry: Geometry
    constraints: Constraints
    counting: EffectiveCounts | None
    seed: int
    proof: Proof = field(repr=False)
    absent: Any = field(repr=False)
    row_numbers: IntArray | None = field(default=None, repr=False)
    row_names: RowLabels | None = field(default=None, repr=False)
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy keeps; it computes the rest again when it is asked for."""
        kept = ["solved"] if self.is_solved else []
        if self.counting is None:  # the counts come from the encoding
            kept += ["counts", "_paper_counts"]
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"computed": {name: getattr(self, name) for name in kept}}

    @property
    def kernel(self) -> Kernel:
        """The similarity between the points."""
        return self.geometry.kernel

    @once
    def encoding(self) -> Encoding:
        """The certified encoding of the points; the first access solves the program."""
        return self.proof.encoding(self)

    @once
    def solved(self) -> Solved:
        """What is known of the solved program; the first access solves it."""
        return Solved.of(self.encoding)

    @property
    def is_solved(self) -> bool:
        """Whether the program has been solved."""
        return "encoding" in self.computed or "solved" in self.computed

    @once
    def counts(self) -> FloatArray:
        """Effective counts of all points in memory."""
        if self.counting is None:
            return np.asarray(self.encoding.effective_count)
        return self.counting.of_points(self.kernel, np.arange(self.points.n))

    @property
    def count_total(self) -> float:
        """Weight of the points that a point could resemble."""
        return self.solved.total if self.counting is None else self.counting.total

    def counts_at(self, Y: Any) -> FloatArray:
        """Effective counts of prepared rows; rows of the data have the same counts as in the data."""
        return self._paper_counts.counts(Y) if self.counting is None else self.counting.at(Y)

    @once
    def _paper_counts(self) -> CountModel:
        kernel = self.kernel
        X = kernel.X if isinstance(kernel, PointKernel) else kernel.block(slice(None), np.arange(kernel.n))
        return self.encoding.count_model(row_codes(X))

    def rows_in_data(self, rows: IntArray) -> IntArray:
        """Row numbers in the data, from numbers of rows in memory."""
        return rows if self.row_numbers is None else self.row_numbers[rows]

    def called(self, row: int) -> str:
        """What a row of the data is called in a sentence: by its name and number, or by its number alone."""
        return f"row {row}" if self.row_names is None else self.row_names.called(row)

    def for_rows(self, values: Any, absent: Any) -> Any:
        """The value of its point for every row in memory; ``absent`` for rows without weight."""
        return self.points.spread(values, absent)

    def with_constraints(self, constraints: Constraints) -> Material:
        """The same material with other constraints; computed values are kept."""
        return replace(self, constraints=constraints)
