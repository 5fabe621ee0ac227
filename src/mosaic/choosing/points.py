"""The distinct points behind the rows of the data, in an order that depends on what they are and not on where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
)
from mosaic.exceptions import InvalidInputError

#: A row is not there more often than this; larger weights say how important it is beside others.
MOST_COPIES = 2.0**53
#: Distances from the centre that differ by less than this share of the largest are equal but for rounding.
ROUNDING = 1e-9


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
            raise InvalidInputError(
                "all sample weights are zero, so there is nothing to represent. Give some point a positive weight."
            )
        largest = float(weights.max())
        if (
            largest > MOST_COPIES or not (weights == np.round(weights)).all()
        ):  # importance, not repetition: ratios matter
            weights = weights / largest
            weights = weights * (len(rows) / weights.sum())
        counted = X if len(rows) == n else X[rows]
        equal = equal_rows(counted)
        first, group = (np.arange(len(rows)), np.arange(len(rows))) if equal is None else equal
        total = np.asarray(np.bincount(group, weights=weights[rows]), np.float64)
        distinct = counted if len(first) == len(rows) else counted[first]
        if pairwise:
            priority = np.random.default_rng(0).permutation(len(first)).astype(np.uint64)
            order = _by_centrality(_pairwise_distances(X, rows[first], total))
        else:
            priority = row_priorities(distinct)
            order = _by_centrality(_centre_distances(distinct, total), priority, row_codes(distinct))
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
        priority, weights = self.priority[among], self.weights[among]
        priority[weights * size >= weights.sum()] = 0  # who is there often is not left out
        return among[np.sort(np.argpartition(priority, size - 1)[:size])]


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


def _by_centrality(distances: FloatArray, *ties: Any) -> IntArray:
    """The nearest to the centre first; what is equal but for rounding by further numbers."""
    spread = float(np.ptp(distances)) or 1.0
    steps = np.round((distances - distances.min()) / (ROUNDING * spread))
    return np.lexsort((*reversed(ties), steps))
