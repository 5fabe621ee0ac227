"""What choosing starts from: points, their similarity, who looks like how many others. Thresholds come later and can change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mosaic._arrays import FloatArray, IntArray, row_codes, standing_for_all
from mosaic.budget import SAMPLE
from mosaic.choosing.constraints import Constraints
from mosaic.choosing.geometry import Geometry
from mosaic.choosing.points import Points
from mosaic.encoding import CountModel, Encoding
from mosaic.kernels import Kernel, PointKernel
from mosaic.outliers import EffectiveCounts

#: Of a restricted pool or of a group with a quota, points that are looked at in any case.
FROM_A_GROUP = 2000


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

    @cached_property
    def sample_weights(self) -> FloatArray:
        """For how many rows each point of the sample stands."""
        weights = self.points.weights[self.sample]
        return standing_for_all(weights, SAMPLE, self.points.total) if self.is_sampled else weights

    @cached_property
    def sample_counts(self) -> FloatArray:
        """Effective counts of the sample."""
        return self.counts if self.counting is None or not self.is_sampled else self._counts(self.sample)

    @cached_property
    def counts(self) -> FloatArray:
        """Effective counts of all points in memory."""
        if self.counting is None:
            return np.asarray(self.encoding.effective_count)
        return self._counts(np.arange(self.points.n))

    def _counts(self, members: IntArray) -> FloatArray:
        assert self.counting is not None
        return self.counting.of_points(self.kernel, members)

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
        for name in ("encoding", "sample_weights", "sample_counts", "counts", "_paper_counts"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other


def points_to_look_at(points: Points, constraints: Constraints) -> IntArray:
    """All points, or of many a sample, with enough of those that constraints name."""
    everyone = np.arange(points.n)
    if points.n <= SAMPLE:
        return everyone
    kept = [points.sample(everyone, SAMPLE), points.group[constraints.must]]
    if not constraints.allowed.all():
        kept.append(points.sample(_points_of(points, constraints.allowed), FROM_A_GROUP))
    if constraints.quotas is not None:
        for group in range(len(constraints.names)):
            members = _points_of(points, (constraints.group == group) & constraints.allowed)
            kept.append(points.sample(members, FROM_A_GROUP))
    found = np.unique(np.concatenate(kept))
    return found[found >= 0]


def _points_of(points: Points, rows: Any) -> IntArray:
    found = np.unique(points.group[np.flatnonzero(rows)])
    return found[found >= 0]
