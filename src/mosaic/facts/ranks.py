"""The ranking behind a choice: the representatives in order, the rows that would come next, and the rows of each; bins of counts.

Along a ranking the representative of a point changes only when a nearer one is added, and then to that one; the last such rank
below k is its representative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import NO_ROWS, BoolArray, FloatArray, IntArray, row_blocks
from mosaic.choosing import Ranking, Selection, rank
from mosaic.choosing.outliers import ROUNDING
from mosaic.kernels import Kernel


class RowsInMemory:
    """How many rows of the data each row in memory stands for, outliers for as many as there are, others for all others;
    ``copies`` is the same for points.
    """

    def __init__(self, selection: Selection):
        group = selection.data.points.point_of
        self.weight_of: FloatArray = selection.rows_for.copy()
        odd = selection.outliers_in_memory
        if selection.is_sampled:
            for rows, number in (
                (odd, selection.n_outliers),
                (~odd, selection.n_rows - selection.n_outliers),
            ):
                self.weight_of[rows] *= number / (self.weight_of[rows].sum() or 1.0)
        copies = np.bincount(group + 1, self.weight_of, selection.data.points.n + 1)
        self.copies: FloatArray = np.asarray(copies[1:], np.float64)
        self.n_without_weight = int((group < 0).sum())


def histogram_edges(values: FloatArray, threshold: float | None) -> FloatArray:
    """Edges t + j·w of about 120 equal bins, fewer for few values; t is the threshold, or the lowest value if there is none."""
    low = float(values.min())
    high = float(values.max())
    start = low if threshold is None else threshold
    width = (high - low) / np.clip(2 * int(np.sqrt(len(values))), 10, 120)
    if width < 1e-9:  # all values are equal, and a bar needs a width
        width = 0.1
    first = int(np.floor((low - start) / width))
    last = int(np.ceil((high - start) / width))
    edges = start + width * np.arange(first, max(last, first + 1) + 1)
    # Rounding must not lose the extremes.
    edges[0], edges[-1] = (min(edges[0], low), max(edges[-1], high))
    return np.asarray(edges)


@dataclass(frozen=True)
class CountBins:
    """Bins of the effective counts, that of each point (``of``) and row in memory, and the one that begins at the threshold.
    Points that ``must`` be included, are called fine or are in a group are ``safe``: never outliers; so are ``safe_rows``.
    """

    edges: FloatArray
    threshold: int
    of: IntArray
    of_row: IntArray
    must: BoolArray
    safe: BoolArray
    safe_rows: BoolArray

    def sums(self, weights: FloatArray) -> FloatArray:
        return np.asarray(
            np.bincount(self.of_row, weights=weights, minlength=len(self.edges) - 1), np.float64
        )


def bins_of(selection: Selection) -> CountBins:
    data = selection.data
    cut = float(selection.cut.count)
    group = data.points.point_of
    of_rows = selection.counts_in_memory
    counts = np.append(data.counts, of_rows[group < 0])
    log_edges = histogram_edges(np.log(counts), np.log(cut) if cut > 0 else None)
    edges = np.exp(log_edges)
    threshold = 0
    edges[0], edges[-1] = min(edges[0], counts.min()), max(edges[-1], counts.max())
    if cut > 0 and (counts < cut).any():
        threshold = int(np.abs(log_edges - np.log(cut)).argmin())
        edges[threshold] = cut
    bins = edges[1:-1]  # the first and the last bin have what is beyond
    of = np.searchsorted(bins, data.counts, "right")
    of_row = np.searchsorted(bins, of_rows, "right")
    must = np.zeros(len(of), dtype=bool)
    must[data.never_outliers] = True
    safe = must if selection.groups is None else must | np.asarray(selection.groups.members)
    safe_rows = np.where(group < 0, (of_rows < cut) & ~selection.outliers_in_memory, safe[group])
    return CountBins(edges, threshold, of, of_row, must, safe, safe_rows)


NO_RANKING = Ranking(NO_ROWS, NO_ROWS, np.zeros(0), np.zeros(0))


def ranking_of(selection: Selection, suggested: int) -> Ranking:
    """The representatives by rank, and twice as many that would come next, at least up to 20 and the suggested number."""
    k = len(selection.rows)
    longest = (
        k if selection.settings.mode == "paper" else max(k, min(2 * k, k + 100), 20, suggested)
    )
    return rank(selection, longest, go_on=True)


@dataclass(frozen=True)
class Changes:
    """The ranks at which points change their representative; ``stands_for`` is how many rows each stands for, 0 from rank k
    on.

    moves : (R + 1) × R, sparse: number of rows that rank j takes over from rank i; last row: rows that had no representative
    end, ranks : the ranks at which shown point i changes are ``ranks[end[i − 1] : end[i]]``
    members : for each rank, the most similar points that it stands for at any k, as places among the shown points
    """

    moves: sp.csc_array
    end: IntArray
    ranks: IntArray
    members: list[IntArray]
    stands_for: FloatArray


def changes_of(
    kernel: Kernel, ranked: IntArray, copies: FloatArray, shown: IntArray, k: int, aside: BoolArray
) -> Changes:
    """Follow all points along the ranking, by the distance of labels; those ``aside`` have no representative."""
    n_ranks = len(ranked)
    place = np.full(kernel.n, -1, np.intp)
    if not n_ranks:
        return Changes(sp.csc_array((1, 0)), np.zeros(len(shown), np.intp), ranked, [], np.zeros(0))
    place[shown] = np.arange(len(shown))
    own = np.full(kernel.n, -1, np.intp)
    own[ranked] = np.arange(n_ranks)
    moves = np.zeros((n_ranks + 1, n_ranks))
    stands_for = np.zeros(n_ranks)
    kept: list[tuple[IntArray, IntArray, FloatArray]] = []
    for rows in row_blocks(kernel.n, n_ranks):
        points = np.arange(kernel.n)[rows]
        # In steps, so that distances that differ by rounding only are equal.
        D = np.round(
            np.log(np.maximum(kernel.distances(points, ranked), np.finfo(float).tiny)) / ROUNDING
        )
        mine = np.flatnonzero(own[points] >= 0)
        D[mine, own[points[mine]]] = -np.inf
        stands_for += np.bincount(
            D[:, :k].argmin(axis=1), weights=copies[points] * ~aside[points], minlength=n_ranks
        )
        changes = np.ones(D.shape, dtype=bool)
        changes[:, 1:] = D[:, 1:] < np.minimum.accumulate(D, axis=1)[:, :-1]
        who, to = np.nonzero(changes)
        before = np.where(np.diff(who, prepend=-1) > 0, n_ranks, np.roll(to, 1))
        np.add.at(moves, (before, to), copies[points[who]])
        on_map = place[points[who]] >= 0
        who = who[on_map]
        to = to[on_map]
        kept.append((place[points[who]], to, D[who, to]))
    at, to, distance = (np.concatenate(each) for each in zip(*kept, strict=True))
    order = np.lexsort((at, distance, to))
    firsts = np.searchsorted(to[order], np.arange(n_ranks + 1))
    members = []
    for j, point in enumerate(ranked.tolist()):
        # Six are listed, and one may be the ranked point itself.
        near = at[order[firsts[j] : firsts[j + 1]][:7]]
        members.append(near[near != place[point]][:6])
    order = np.lexsort((to, at))
    end = np.cumsum(np.bincount(at, minlength=len(shown)))
    return Changes(sp.csc_array(moves), end, to[order], members, stands_for)
