"""Picks improved on more rows than they were chosen from: each moves to the middle of the rows that it stands for.

The middle of a cell, the rows nearest to a pick, is where Σ_i ω_i exp(−d(x_i, c) / h) is largest. Its gradient is 0 at
c = Σ_i w_i x_i / Σ_i w_i with w_i = ω_i exp(−d_i / h) / d_i, which is iterated (Weiszfeld's steps, for the similarity of the
cover). In the end, the nearest row that may be chosen takes the place of each pick, if all together cover the rows better than
before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks
from mosaic.arrays.codes import KnownRows
from mosaic.arrays.xp import Matrix, on_host, rows_of, stacked
from mosaic.choosing.answers import outliers_at
from mosaic.choosing.cover import CACHED_SIMILARITIES, Cover
from mosaic.choosing.selection import Selection
from mosaic.kernels import PointKernel

#: Steps of the centres. Thirty cover at most half a per cent more.
STEPS = 10
#: The smallest distance of a row from its centre, in units of the reach: a row at the centre itself does not hold it there.
LEAST_DISTANCE = 1e-3


@dataclass(frozen=True)
class Improvement:
    """Rows ``X``, dense or CSR in host memory, with weights; ``kind`` of each row says which picks it may replace, -1 none; and
    the cover of these rows.
    """

    cover: Cover
    X: Matrix
    weights: FloatArray
    kind: IntArray

    def moved(self, picks: IntArray, stays: BoolArray) -> IntArray:
        """Rows that cover all rows better than these picks, in their order; the same picks if there are none."""
        centres = rows_of(self.X, picks)
        for _ in range(STEPS):
            cell, distance = self._cells(centres)
            pull = self.weights * np.exp(-distance) / np.maximum(distance, LEAST_DISTANCE)
            centres = self._middles(cell, pull, centres, stays)
        cell, distance = self._cells(centres)
        found = self._nearest_rows(cell, distance, picks, stays)
        return found if self._covered(found) > (1.0 + 1e-6) * self._covered(picks) else picks

    def _cells(self, centres: Any) -> tuple[IntArray, FloatArray]:
        """For each row the nearest centre, and the distance to it in units of the reach."""
        n = self.X.shape[0]
        order = self.cover.kernel.order
        cell = np.empty(n, np.intp)
        distance = np.empty(n)
        distances = self._kernel.over(centres).in_single_at(self.cover.reach)

        def compare(rows: slice) -> None:
            D = distances(rows_of(self.X, rows))
            cell[rows] = D.argmin(axis=1)
            distance[rows] = D[np.arange(len(D)), cell[rows]] ** (1.0 / order)

        in_blocks(compare, n, centres.shape[0], CACHED_SIMILARITIES)
        return cell, distance

    def _middles(self, cell: IntArray, pull: FloatArray, centres: Any, stays: BoolArray) -> Any:
        """Σ_i w_i x_i / Σ_i w_i over each cell; centres that stay, or have no rows, are as they were."""
        k = centres.shape[0]
        n = len(cell)
        total = np.bincount(cell, pull, k)
        moves = (total > 0) & ~stays
        share = pull / np.where(total > 0, total, 1.0)[cell]
        sums = sp.csr_array((share, (cell, np.arange(n))), shape=(k, n)) @ self.X
        if sp.issparse(self.X):
            keep, move = (sp.diags_array(mask.astype(np.float64)) for mask in (~moves, moves))
            return sp.csr_array(keep @ centres + move @ sums)
        return np.where(moves[:, None], sums, centres)

    def _nearest_rows(
        self, cell: IntArray, distance: FloatArray, picks: IntArray, stays: BoolArray
    ) -> IntArray:
        """For each centre the nearest row of its cell that may replace its pick, or the pick."""
        may = np.flatnonzero(
            (self.kind >= 0) & (self.kind == self.kind[picks][cell]) & ~stays[cell]
        )
        order = may[np.lexsort((may, distance[may], cell[may]))]
        cells, first = np.unique(cell[order], return_index=True)
        found = picks.copy()
        found[cells] = order[first]
        while (clash := (found != picks) & np.isin(found, picks[found == picks])).any():
            found[clash] = picks[clash]  # a row that is the pick of another cell
        return found

    def _covered(self, rows: IntArray) -> float:
        return float(self.weights @ np.exp(-self._cells(rows_of(self.X, rows))[1]))

    @property
    def _kernel(self) -> PointKernel:
        kernel = self.cover.kernel
        assert isinstance(kernel, PointKernel)
        return replace(kernel, X=on_host(rows_of(kernel.X, slice(0, 1))))


def with_moved_picks(found: Selection, cover: Cover, stays: BoolArray) -> Selection:
    """The selection with picks from the larger sample of its rows, if these cover it better; some picks stay."""
    data = found.data
    larger = found.data.larger
    assert larger is not None
    assert data.row_numbers is not None
    X = on_host(data.geometry.prepare(larger.rows))
    belongs = ~outliers_at(found, X) if found.rejects else np.ones(len(larger.numbers), dtype=bool)
    kind = np.where(belongs & larger.allowed, larger.group, -1)
    places = KnownRows.of(larger.numbers).find(found.rows)
    is_there = places >= 0
    # Rows that constraints name, or that were drawn for a group, need not be in the larger sample: such picks stay.
    outside = found.members[~is_there]
    places[~is_there] = len(kind) + np.arange(len(outside))
    X = stacked(X, on_host(rows_of(found.kernel.X, data.points.point_of[outside])))
    weights = np.append(larger.weights * belongs, np.zeros(len(outside)))
    kind = np.append(kind, np.full(len(outside), -1))
    moved = Improvement(cover, X, weights, kind).moved(places, stays | ~is_there)
    if (moved == places).all():
        return found
    rows = np.append(larger.numbers, found.rows[~is_there])[moved]
    new = moved[~np.isin(rows, data.row_numbers)]
    groups = found.groups
    data = data.with_rows(new) if len(new) else data
    assert data.row_numbers is not None
    if groups is not None:
        added = found.cut.below(data.counts[found.data.points.n :])
        groups = replace(groups, group=np.append(groups.group, np.where(added, -1, 0)))
    moved_to = replace(
        found, data=data, groups=groups, members=np.searchsorted(data.row_numbers, rows)
    )
    return moved_to if len(np.unique(moved_to.chosen)) == len(rows) else found
