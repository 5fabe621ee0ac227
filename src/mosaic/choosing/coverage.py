"""Coverage: how much nearer rows are to their representatives than to the best single row (``docs/math/coverage.md``).

    coverage(J) = 1 − Σ_i ω_i min_{j∈J} d_ij / min_j Σ_i ω_i d_ij

over the points i that belong, d the distance of the kernel. It never falls when J grows, is 0 for the best single row, and 1
where all points that belong are chosen. The scale, the denominator, does not depend on how many are chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks
from mosaic.arrays.xp import rows_of
from mosaic.choosing.bound import EPS, bound_of, bounds_for_all
from mosaic.choosing.cover import Slots
from mosaic.kernels import Kernel
from mosaic.kernels.points import Rows

#: Pairs of points that are compared for the best single row, and for the bound of a curve: about as many as by a fit.
MOST_PAIRS = 9_000_000
#: Steps towards a bound of the curve, and how many times fewer rows the next one is made for.
STEPS, FEWER = 100, 4


@dataclass(frozen=True)
class Coverage:
    """Coverage of points, which count as often as ``weights`` say: those that do not belong never."""

    kernel: Kernel
    weights: FloatArray

    @cached_property
    def belonging(self) -> IntArray:
        return np.flatnonzero(self.weights)

    @cached_property
    def scale(self) -> float:
        """min_j Σ_i ω_i d_ij; of many points, over those j that are nearest to the mean of all points, which come first."""
        rows = self.belonging
        if not len(rows):
            return 0.0
        some = rows[: max(MOST_PAIRS // len(rows), 1)]
        return float(self._sums(lambda D: D, some).min())

    def along(self, ranked: IntArray) -> FloatArray:
        """The coverage of the first 1, 2, 3, … of these points."""
        return 1.0 - _ratio(
            self._sums(lambda D: np.minimum.accumulate(D, axis=1), ranked), self.scale
        )

    def errors(self, chosen: IntArray) -> FloatArray:
        """min_{j∈J} d_ij of all points, in units of the mean distance to the best single row; 1 if nothing is chosen."""
        return self._errors(lambda rows: self._distances(rows, chosen), self.kernel.n, len(chosen))

    def errors_at(self, chosen: Kernel, Y: Any) -> FloatArray:
        """The same for prepared rows, ``chosen`` the kernel of the chosen points."""
        power = 1.0 / chosen.order
        return self._errors(
            lambda rows: chosen.distances_at(rows_of(Y, rows)) ** power, Y.shape[0], chosen.n
        )

    def bounds(self, candidates: IntArray, ranked: IntArray, k: int) -> FloatArray | None:
        """For 1, 2, 3, … points what so many of the candidates cannot exceed, as far as they are ranked; None for many points.

        It is the bound of ``mosaic.choosing.bound`` with −d for a similarity. One u bounds every number, best near the one it
        was found for: it is looked for at k, at all, a quarter, … of the ranked points, and the lowest counts.
        """
        rows = self.belonging
        candidates = np.unique(candidates)
        if len(rows) * len(candidates) > MOST_PAIRS:
            return None
        if self.scale <= 0:
            return np.ones(len(ranked))
        S = -self._distances(candidates, rows).T
        weights = self.weights[rows]
        places = np.searchsorted(candidates, ranked)
        highest = np.zeros(len(ranked))
        numbers = {1, k}
        most = len(ranked)
        while most:
            numbers.add(most)
            most //= FEWER
        for number in sorted(numbers):
            found = bound_of(
                S,
                weights,
                Slots.free(len(candidates), number),
                places[:number].tolist(),
                steps=STEPS,
            )
            highest = np.minimum(
                highest, bounds_for_all(found.prices, weights, found.thresholds)[: len(ranked)]
            )
        return 1.0 + highest / self.scale * (1.0 - 8.0 * EPS)

    def _distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        return self.kernel.distances(rows, columns) ** (1.0 / self.kernel.order)

    def _sums(self, change: Callable[[FloatArray], FloatArray], columns: IntArray) -> FloatArray:
        """Σ_i ω_i of the changed distances from the points that belong to others."""
        rows = self.belonging

        def add(part: slice) -> FloatArray:
            return self.weights[rows[part]] @ change(self._distances(rows[part], columns))

        parts = in_blocks(add, len(rows), max(len(columns), 1), on=self.kernel.X)
        return np.asarray(np.sum([np.zeros(len(columns)), *parts], axis=0))

    def _errors(self, distances: Callable[[slice], FloatArray], n: int, k: int) -> FloatArray:
        if not k:
            return np.ones(n)
        nearest = np.empty(n)

        def compare(rows: slice) -> None:
            nearest[rows] = distances(rows).min(axis=1)

        in_blocks(compare, n, k, on=self.kernel.X)
        return _ratio(nearest, self.scale / (float(self.weights.sum()) or 1.0))


def _ratio(distances: FloatArray, scale: float) -> FloatArray:
    """Without a scale, all rows that belong are equal: others are infinitely far."""
    return np.divide(distances, scale, out=np.where(distances > 0, np.inf, 0.0), where=scale > 0)
