"""What choosing starts from: the distinct points behind the rows of the data, their similarity, and how many look like each.

Thresholds come later and can change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic._arrays import (
    FloatArray,
    IntArray,
    as_vector,
    equal_rows,
    row_blocks,
    row_codes,
    row_norms_squared,
    row_priorities,
    standing_for_all,
)
from mosaic.budget import DECISION_SAMPLE
from mosaic.choosing.settings import Constraints
from mosaic.encoding import CountModel, Encoding
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel, PointKernel
from mosaic.outliers import EffectiveCounts

if TYPE_CHECKING:
    from mosaic.choosing.geometry import Geometry

#: A row is not there more often than this; larger weights say how important it is beside others.
MOST_COPIES = 2.0**53
#: Distances from the centre that differ by less than this share of their range are equal but for rounding.
CENTRALITY_ROUNDING = 1e-9
#: Points of a restricted pool, or of a group with a quota, that the sample for decisions has, at most.
SAMPLED_OF_GROUP = 2000


@dataclass(frozen=True)
class Points:
    """The distinct points that count, those nearest to the centre of all first.

    Copies are solved for once, with their number as weight; a row without weight is as good as absent. The order does not
    depend on the order of rows or columns, on the unit of the data or on its rotation, but for rounding.

    Attributes
    ----------
    first : row in the data of each point, the first of its copies
    group : for every row the number of its point, -1 for rows without weight
    weights : how often each point counts
    priority : a random number for each point that depends on the point alone; the lowest ones are a random sample
    """

    first: IntArray
    group: IntArray
    weights: FloatArray
    priority: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None = None, *, pairwise: bool = False) -> Points:
        """The points behind the rows of X, which are similarities if ``pairwise``."""
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
        rows = np.flatnonzero(weights > 0)
        if not len(rows):
            fault = "is zero for all rows, so there is nothing to represent"
            raise InvalidInputError(fault, "Give some row a positive weight.", parameter="sample_weight")
        largest = float(weights.max())
        if largest > MOST_COPIES or not (weights == np.round(weights)).all():
            # Weights say importance and not repetition: their ratios matter.
            weights = weights / largest
            weights = weights * (len(rows) / weights.sum())
        counted = X if len(rows) == n else X[rows]
        equal = equal_rows(counted)
        first, group = (np.arange(len(rows)), np.arange(len(rows))) if equal is None else equal
        total = np.asarray(np.bincount(group, weights=weights[rows]), np.float64)
        distinct = counted if len(first) == len(rows) else counted[first]
        if pairwise:
            priority = np.random.default_rng(0).permutation(len(first)).astype(np.uint64)
            order = np.argsort(_in_steps(_pairwise_distances(X, rows[first], total)), kind="stable")
        else:
            priority = row_priorities(distinct)
            order = _by_centrality(distinct, _in_steps(_centre_distances(distinct, total)), priority)
        number = np.empty(len(first), np.intp)
        number[order] = np.arange(len(first))
        all_groups = np.full(n, -1, np.intp)
        all_groups[rows] = number[group]
        return cls(rows[first[order]], all_groups, total[order], priority[order])

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.first)

    @property
    def total(self) -> float:
        """Sum of all weights: the number of points, copies counted."""
        return float(self.weights.sum())

    def spread(self, values: Any, absent: Any) -> Any:
        """Values of distinct points, for every row of the data; rows without weight get ``absent``."""
        return np.where(self.group >= 0, np.asarray(values)[self.group], absent)

    def sample(self, among: IntArray, size: int) -> IntArray:
        """At most ``size`` of some points, in their order: frequent ones, then those with the lowest priorities."""
        if len(among) <= size:
            return among
        return among[np.sort(np.argpartition(self.sampling_order(among, size), size - 1)[:size])]

    def sampling_order(self, among: IntArray, size: int) -> NDArray[np.uint64]:
        """Numbers by which ``size`` of some points are sampled, lowest first: 0 for frequent points, which are never left out."""
        priority, weights = self.priority[among], self.weights[among]
        priority[weights * size >= weights.sum()] = 0
        return priority


def as_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts."""
    return as_vector(sample_weight, n, "sample_weight", minimum=0.0)


def _centre_distances(X: Any, weights: FloatArray) -> FloatArray:
    """‖x_i − x̄‖², x̄ the weighted mean."""
    centre = np.asarray(weights @ X, np.float64).ravel() / weights.sum()
    distances = np.empty(X.shape[0])
    for part in row_blocks(*X.shape):
        if sp.issparse(X):
            block = X[part]
            distances[part] = block.power(2).sum(axis=1) - 2.0 * (block @ centre) + centre @ centre
        else:
            distances[part] = row_norms_squared(X[part] - centre)
    return distances


def _pairwise_distances(K: Any, members: IntArray, weights: FloatArray) -> FloatArray:
    """‖φ_i − φ̄‖² but for a constant: k_ii − 2 Σ_j ω_j k_ij / Σ_j ω_j."""
    spread = np.zeros(K.shape[1])
    spread[members] = weights / weights.sum()
    own = np.asarray(K.diagonal(), np.float64)[members]
    return np.asarray(own - 2.0 * np.asarray(K[members] @ spread).ravel())


def _in_steps(distances: FloatArray) -> FloatArray:
    """Distances as whole numbers of steps that are larger than rounding."""
    spread = float(np.ptp(distances)) or 1.0
    return np.asarray(np.round((distances - distances.min()) / (CENTRALITY_ROUNDING * spread)))


def _by_centrality(X: Any, steps: FloatArray, priority: NDArray[np.uint64]) -> IntArray:
    """The nearest to the centre first, then by priority; by their bits where these are the same, which is next to never."""
    order = np.lexsort((priority, steps))
    tied = (np.diff(steps[order]) == 0) & (np.diff(priority[order]) == 0)
    return np.lexsort((row_codes(X), priority, steps)) if tied.any() else order


class Proof(Protocol):
    """Solves the program of the points, once, when it is asked for, and proves how good a choice is."""

    @property
    def is_possible(self) -> bool:
        """Whether all rows that a proof needs are at hand."""

    def encoding(self, material: Material) -> Encoding:
        """The certified encoding."""

    def certificate(self, selection: Any) -> Any:
        """What is proven of the chosen."""


@dataclass(frozen=True)
class Material:
    """All that choosing needs.

    Attributes
    ----------
    n_rows : rows of the data
    points : the distinct points in memory
    geometry : their similarity
    constraints : on rows in memory
    counting : how many rows look like a row; None for the paper's measure, which is the encoding's
    sample : numbers of the points that decisions are made with: all, or of many a sample with all that constraints name
    seed : of what is drawn
    proof : solves the program when somebody asks
    absent : rows without weight, prepared
    row_numbers : of data that is read in passes, the row of each row in memory
    """

    n_rows: int
    points: Points
    geometry: Geometry
    constraints: Constraints
    counting: EffectiveCounts | None
    sample: IntArray
    seed: int
    proof: Proof = field(repr=False)
    absent: Any = field(repr=False)
    row_numbers: IntArray | None = field(default=None, repr=False)

    @property
    def kernel(self) -> Kernel:
        """The similarity between the points."""
        return self.geometry.kernel

    @cached_property
    def encoding(self) -> Encoding:
        """The certified encoding of the points; the program is solved when this is first asked for."""
        return self.proof.encoding(self)

    @property
    def is_sampled(self) -> bool:
        """Whether decisions were made with a part of the points in memory."""
        return len(self.sample) < self.points.n

    @property
    def sample_kernel(self) -> Kernel:
        """The similarity between the points of the sample."""
        return self.kernel.take(self.sample) if self.is_sampled else self.kernel

    @cached_property
    def sample_weights(self) -> FloatArray:
        """For how many rows each point of the sample stands."""
        weights = self.points.weights[self.sample]
        return standing_for_all(weights, DECISION_SAMPLE, self.points.total) if self.is_sampled else weights

    @cached_property
    def sample_counts(self) -> FloatArray:
        """Effective counts of the sample."""
        if self.counting is None or not self.is_sampled:
            return self.counts
        return self.counting.of_points(self.kernel, self.sample)

    @cached_property
    def counts(self) -> FloatArray:
        """Effective counts of all points in memory."""
        if self.counting is None:
            return np.asarray(self.encoding.effective_count)
        return self.counting.of_points(self.kernel, np.arange(self.points.n))

    @property
    def count_total(self) -> float:
        """Weight of the points that a point could resemble."""
        return self.encoding.total if self.counting is None else self.counting.total

    def counts_at(self, Y: Any) -> FloatArray:
        """Effective counts of prepared rows; rows of the data have those that they have there."""
        return self._paper_counts.counts(Y) if self.counting is None else self.counting.at(Y)

    @cached_property
    def _paper_counts(self) -> CountModel:
        kernel = self.kernel
        X = kernel.X if isinstance(kernel, PointKernel) else kernel.block(slice(None), np.arange(kernel.n))
        return self.encoding.count_model(row_codes(X))

    def rows_in_data(self, rows: IntArray) -> IntArray:
        """Rows of the data, from rows of what is in memory."""
        return rows if self.row_numbers is None else self.row_numbers[rows]

    def for_rows(self, values: Any, absent: Any) -> Any:
        """Values of points, for every row in memory."""
        return self.points.spread(values, absent)

    def with_constraints(self, constraints: Constraints) -> Material:
        """The same with other constraints; what was computed is kept."""
        other = replace(self, constraints=constraints)
        computed = set(self.__dict__) - set(self.__dataclass_fields__)
        other.__dict__.update({name: self.__dict__[name] for name in computed})
        return other


def decision_sample(points: Points, constraints: Constraints) -> IntArray:
    """The points that decisions are made with: all, or of many a sample, with enough of those that constraints name."""
    everyone = np.arange(points.n)
    if points.n <= DECISION_SAMPLE:
        return everyone
    kept = [points.sample(everyone, DECISION_SAMPLE), points.group[constraints.must]]
    named = [] if constraints.allowed.all() else [constraints.allowed]
    if constraints.quotas is not None:
        named += [(constraints.group == group) & constraints.allowed for group in range(len(constraints.names))]
    for rows in named:
        members = np.unique(points.group[rows])
        kept.append(points.sample(members[members >= 0], SAMPLED_OF_GROUP))
    found = np.unique(np.concatenate(kept))
    return found[found >= 0]
