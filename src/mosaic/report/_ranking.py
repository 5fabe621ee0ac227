"""The ranking behind the slider: the chosen in their order and who would come next, and who stands for whom at every k.

Along a ranking the representative of a point changes only when a nearer one comes in, and then to that one. So the ranks at
which a point changes hands, few of them, say who stands for it at every k: the last of them below k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import BoolArray, FloatArray, IntArray, row_blocks
from mosaic.choosing import rank, without_rounding
from mosaic.kernels import Kernel
from mosaic.metrics import unexplained_along
from mosaic.report._fit import Fit

#: The slider reaches twice as far as the chosen number, but no farther than this beyond it …
MOST_BEYOND = 100
#: … and at least to here.
FEWEST = 20
#: Rows that are named for each rank.
MEMBERS = 6
#: Multiplications that looking at all points for every k of the slider may take.
MOST_PRODUCTS = 4 * 10**9


@dataclass(frozen=True)
class Ranking:
    """Distinct points in their order, the rows in memory that they are, and what each prefix covers."""

    points: IntArray
    members: IntArray
    similarity: FloatArray
    coverage: FloatArray


@dataclass(frozen=True)
class Changes:
    """Who takes whom over from whom.

    Attributes
    ----------
    moves : (R + 1) × R, sparse: rows that rank j takes over from rank i, when it comes in; the last row: those who had nobody
    end, ranks : for each shown point its changes of hands, ``ranks[end[i − 1] : end[i]]``
    members : for each rank the places, among those shown, of the points that are most similar to it of all that it gets
    stands_for : rows of each of the first k, those left aside not counted
    """

    moves: sp.csr_array
    end: IntArray
    ranks: IntArray
    members: list[IntArray]
    stands_for: FloatArray


def ranking_of(fit: Fit, knee: int = 0) -> Ranking:
    """The chosen as they are ranked, and who would come next, as far as the knee at least.

    The paper's rule ranks nobody beyond.
    """
    selection, k = fit.selection, len(fit.selection.rows)
    longest = k if selection.settings.mode == "paper" else max(k, min(2 * k, k + MOST_BEYOND), FEWEST, knee)
    members, similarity, coverage = rank(selection, longest, go_on=True)
    points = fit.points.group[members]
    if affordable_for_all(fit, len(points)):
        belongs = fit.points.weights * (np.ones(fit.points.n) if fit.outliers == "keep" else ~fit.is_outlier)
        coverage = 1.0 - unexplained_along(fit.kernel, points, 0.0, belongs) / float(belongs @ fit.kernel.diagonal())
    else:  # of a sample; what the chosen cover is known
        coverage = coverage + (selection.coverage - coverage[k - 1])
    # The last digits of a prefix that expresses everything are rounding.
    return Ranking(points, members, similarity, np.maximum.accumulate(np.clip(coverage, 0.0, 1.0)))


def affordable_for_all(fit: Fit, n_ranks: int) -> bool:
    """Whether what each prefix leaves is computed for all points."""
    return bool(fit.points.n * n_ranks**2 <= MOST_PRODUCTS)


def changes_of(
    kernel: Kernel, ranked: IntArray, copies: FloatArray, shown: IntArray, k: int, aside: BoolArray
) -> Changes:
    """Follow all points along the ranking, by the distance k_jj − 2 k_ij that labels go by.

    Parameters
    ----------
    kernel : between distinct points
    ranked : points in the order of their rank
    copies : rows that each point stands for
    shown : points whose changes are kept
    k : how many of the ranked were chosen
    aside : points that have no representative
    """
    n_ranks, place = len(ranked), np.full(kernel.n, -1, np.intp)
    place[shown] = np.arange(len(shown))
    own = np.full(kernel.n, -1, np.intp)
    own[ranked] = np.arange(n_ranks)
    lengths = kernel.diagonal()[ranked]
    moves, stands_for = np.zeros((n_ranks + 1, n_ranks)), np.zeros(k)
    kept: list[tuple[IntArray, IntArray]] = []
    nearest = _Nearest(n_ranks)
    for rows in row_blocks(kernel.n, n_ranks):
        points = np.arange(kernel.n)[rows]
        D = without_rounding(lengths - 2.0 * kernel.block(points, ranked), float(lengths.max()))
        mine = np.flatnonzero(own[points] >= 0)
        D[mine, own[points[mine]]] = -np.inf
        stands_for += np.bincount(D[:, :k].argmin(axis=1), weights=copies[points] * ~aside[points], minlength=k)
        changes = np.ones(D.shape, dtype=bool)
        changes[:, 1:] = D[:, 1:] < np.minimum.accumulate(D, axis=1)[:, :-1]
        who, to = np.nonzero(changes)
        before = np.where(np.diff(who, prepend=-1) > 0, n_ranks, np.roll(to, 1))
        np.add.at(moves, (before, to), copies[points[who]])
        there = place[points[who]] >= 0
        kept.append((place[points[who[there]]], to[there]))
        seen = np.flatnonzero(place[points] >= 0)
        nearest.add(D[seen], changes[seen], place[points[seen]])
    at, to = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    order = np.lexsort((to, at))
    end = np.cumsum(np.bincount(at, minlength=len(shown)))
    return Changes(sp.csr_array(moves), end, to[order], nearest.members(place[ranked]), stands_for)


class _Nearest:
    """For each rank, the nearest of the points that ever come to it."""

    def __init__(self, n_ranks: int):
        self.places = [np.zeros(0, np.intp) for _ in range(n_ranks)]
        self.distances = [np.zeros(0) for _ in range(n_ranks)]

    def add(self, D: FloatArray, changes: Any, places: IntArray) -> None:
        for j in range(D.shape[1]):
            mine = np.flatnonzero(changes[:, j])
            if not len(mine):
                continue
            distances = np.concatenate([self.distances[j], D[mine, j]])
            named = np.concatenate([self.places[j], places[mine]])
            best = np.lexsort((named, distances))[: MEMBERS + 1]
            self.distances[j], self.places[j] = distances[best], named[best]

    def members(self, themselves: IntArray) -> list[IntArray]:
        return [found[found != one][:MEMBERS] for found, one in zip(self.places, themselves, strict=True)]
