"""What points are in the program: targets with weights, candidates with prices, points that must be included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import FloatArray, IntArray, as_indices, as_vector
from mosaic.encoding import EqualPoints
from mosaic.exceptions import InvalidInputError


@dataclass(frozen=True)
class Roles:
    """What points are in the program, checked: weights as targets, prices as candidates, who may and who must be chosen."""

    weights: FloatArray
    cost: FloatArray | None
    allowed: IntArray
    anchors: IntArray

    @classmethod
    def read(
        cls,
        n: int,
        weight: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        must: ArrayLike | None = None,
    ) -> Roles:
        """Check what the user gave for n points."""
        weights = np.ones(n) if weight is None else as_vector(weight, n, "sample_weight", minimum=0.0)
        if not weights.any():
            raise InvalidInputError(
                "sample_weight must have a positive entry; all are 0, so there is nothing to represent."
            )
        costs = None if cost is None else as_vector(cost, n, "cost", minimum=0.0, strict=True)
        allowed = np.arange(n) if candidates is None else as_indices(candidates, n, "candidates")
        if not len(allowed):
            raise InvalidInputError("candidates must name at least one point; got none.")
        anchors = np.zeros(0, np.intp) if must is None else as_indices(must, n, "must_include")
        return cls(weights, costs, np.sort(allowed), anchors)

    def on(self, groups: EqualPoints) -> Roles:
        """The same roles for distinct points: a group may be chosen if a member may, at its lowest price."""
        cost = None
        if self.cost is not None:
            cost = np.full(len(groups.first), np.inf)
            np.minimum.at(cost, groups.group[self.allowed], self.cost[self.allowed])
        anchors = np.unique(groups.group[self.anchors])
        may = np.zeros(len(groups.first), dtype=bool)
        may[groups.group[self.allowed]] = True
        may[anchors] = False  # they are in already
        allowed = np.flatnonzero(may)
        if not len(allowed):
            raise InvalidInputError(
                "must_include names every candidate, so nothing is left to choose. Name fewer, or more candidates."
            )
        return Roles(self.weights, cost, allowed, anchors)

    def takers(self, groups: EqualPoints) -> FloatArray:
        """1 for the points among which a group's row is shared: those that may be chosen at the group's price."""
        takes = np.zeros(groups.n)
        takes[self.allowed] = 1.0
        if self.cost is not None:
            lowest = np.full(len(groups.first), np.inf)
            np.minimum.at(lowest, groups.group[self.allowed], self.cost[self.allowed])
            takes[self.cost > lowest[groups.group]] = 0.0
        anchored = np.zeros(groups.n, bool)
        anchored[self.anchors] = True
        in_group = np.bincount(groups.group, weights=anchored, minlength=len(groups.first))[groups.group] > 0
        takes[in_group] = anchored[in_group]
        return takes
