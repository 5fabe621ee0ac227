"""What the page lists: the ranked rows and those with the lowest counts, why they are there in texts that are true at any k and
threshold, and groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.arrays.blocks import NO_ROWS, FloatArray, IntArray, in_double, lowest_first
from mosaic.choosing import (
    ColumnReason,
    cause,
    contrasts,
    counted,
    odd_columns,
    oddities,
    typical_columns,
)
from mosaic.facts.facts import Facts, finite
from mosaic.text import shortened

#: Rows with the lowest counts: so many, and as many more as are outliers, up to the second number.
USUALLY_LISTED = 300
MOST_LISTED = 1000
#: Groups by name; all others are shown as one.
MOST_GROUPS = 40


@dataclass(frozen=True)
class ListedRow:
    """A point, why it is listed, and points to see beside it; of a rare one the cause, and the columns at fault."""

    point: int
    reason: str
    beside: IntArray
    cause: str = ""
    at_fault: Sequence[str] = ()


def ranked_rows(facts: Facts) -> list[ListedRow]:
    """The ranked rows, and beside each the most similar points that it stands for."""
    ranked = facts.ranking.points
    data = facts.complete.data
    must = data.points.point_of[data.constraints.must]
    gains = facts.selection.gains if facts.selection.settings.mode == "paper" else ()
    columns = _columns_by(typical_columns, facts, ranked)
    listed = []
    for rank, point in enumerate(ranked.tolist()):
        reason = contrasts(columns[rank])
        if facts.columns is None and rank < len(gains):
            influence = finite(gains[rank]) or 0.0
            reason = f"its influence, the norm of its row in the encoding, is {influence:.3g}"
        if rank < facts.k and facts.picks[rank].columns:
            # Unusual cells, or those that it shares with its rows.
            reason = facts.picks[rank].reason.partition("; ")[2].removesuffix(".")
        if rank >= facts.k:
            reason = f"would come next: {reason}" if reason else "would come next"
        if point in must:
            reason = "must be included"
        beside = facts.shown[facts.changes.members[rank]]
        listed.append(ListedRow(point, f"{reason}." if reason else "", beside))
    return listed


def lowest_rows(facts: Facts) -> list[ListedRow]:
    """Those with the lowest counts, and beside some the nearest points that belong."""
    most = np.clip(facts.complete.is_outlier.sum(), USUALLY_LISTED, MOST_LISTED)
    low = lowest_first(~facts.bins.safe, facts.complete.data.counts)[:most]
    listed = []
    for point, columns, beside in zip(
        low.tolist(), _columns_by(odd_columns, facts, low), _usual_beside(facts, low), strict=True
    ):
        reason = f"{oddities(columns)}." if columns else ""
        at_fault = [each.column for each in columns]
        listed.append(ListedRow(point, reason, beside, cause(columns), at_fault))
    return listed


def _usual_beside(facts: Facts, low: IntArray) -> list[IntArray]:
    """The three nearest points that belong, for the lowest counts, where no columns say what is odd about these points."""
    found = [NO_ROWS] * len(low)
    usual = facts.shown[facts.belongs]
    if facts.columns is None and len(usual):
        some = low[:24]
        D = facts.complete.kernel.distances(some, usual)
        D[some[:, None] == usual] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, : min(3, len(usual) - 1)]
        found[: len(some)] = list(usual[order])
    return found


def _columns_by(
    named: Callable[..., list[list[ColumnReason]]], facts: Facts, points: IntArray
) -> list[list[ColumnReason]]:
    """What columns say about points; nothing where columns have no names."""
    if facts.columns is None:
        return [[] for _ in points]
    kernel: Any = facts.complete.kernel
    rows = facts.row_of_point[points]
    return named(facts.selection, facts.columns, in_double(kernel.X[points]), rows, points)


@dataclass(frozen=True)
class Groups:
    """Names of groups, the largest first and the smallest as one, their rows, by bin those that may be outliers, and the group of
    each point.
    """

    names: list[str]
    sizes: FloatArray
    low: FloatArray
    of_point: IntArray


def groups_of(facts: Facts, given: Sequence[object] | None) -> Groups | None:
    """By the labels of all rows that are given, or else by those of the fit; None without any."""
    known = facts.rows
    bins = facts.bins
    data = facts.complete.data
    names = data.constraints.names
    sizes: Counter[str] = Counter()
    if given is not None:
        rows = data.rows_in_data(np.arange(len(known.weight_of))).tolist()
        texts = [shortened(given[row]) for row in rows]
        for label, number in Counter(map(str, given)).items():
            sizes[shortened(label)] += number
    elif len(names) > 1:
        texts = [shortened(names[group]) for group in data.constraints.group]
        for text, weight in zip(texts, known.weight_of.tolist(), strict=True):
            sizes[text] += weight
    else:
        return None
    order = sorted(sizes, key=lambda text: (-sizes[text], text))
    place = {text: min(rank, MOST_GROUPS) for rank, text in enumerate(order)}
    called = order[:MOST_GROUPS]
    if len(order) > MOST_GROUPS:
        called.append(counted(len(order) - MOST_GROUPS, "other"))
    of = np.array([place[text] for text in texts], np.intp)
    low = np.zeros((len(called), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of_row), known.weight_of * ~bins.safe_rows)
    n_rows = np.zeros(len(called))
    np.add.at(n_rows, list(place.values()), [sizes[text] for text in place])
    return Groups(called, n_rows, low, of[facts.place_of_point])
