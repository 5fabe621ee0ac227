"""The rows that the page lists, with names, cells and pictures, none of them more than the page can bear."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic.inspection import Summary
from mosaic.report._fit import Bins, Fit
from mosaic.report._ranking import Changes, Ranking
from mosaic.report._subject import LONGEST_CELL, LONGEST_NAME, SMALL, Subject, shortened

#: Rows with the lowest counts that are listed.
MOST_LISTED = 100
#: Bytes of the page for names (of points on the map, of rows that are listed, and of those in full), for cells, and for pictures.
MOST_NAMES, MOST_LISTED_NAMES, MOST_FULL_NAMES, MOST_CELLS, MOST_PICTURES = 400_000, 200_000, 80_000, 300_000, 650_000
#: Bytes of cells up to which they stand in the page a second time, for who has no JavaScript.
MOST_TWICE = 100_000


@dataclass(frozen=True)
class Entries:
    """The ranked, the rows with the lowest counts, headers of their cells, and whether these are few enough to be said twice."""

    ranked: list[dict[str, Any]]
    lowest: list[dict[str, Any]]
    columns: list[str]
    static_cells: bool


def entries_of(
    fit: Fit,
    subject: Subject,
    summary: Summary,
    ranking: Ranking,
    changes: Changes,
    bins: Bins,
    shown: IntArray,
    row_of: IntArray,
    group_of: IntArray,
) -> Entries:
    """All that is listed.

    Parameters
    ----------
    row_of : the row of the data that each distinct point goes by
    group_of : number of its group
    """
    low = np.argsort(np.where(bins.safe, np.inf, fit.counts), kind="stable")[
        : min(MOST_LISTED, int((~bins.safe).sum()))
    ]
    points, n_ranks = np.concatenate([ranking.points, low]), len(ranking.points)
    beside = [shown[found] for found in changes.members]
    everyone = row_of[np.concatenate([points, *beside])]
    names = subject.names(everyone)
    pictures = affordable(
        [*subject.pictures(everyone[: len(points)]), *subject.pictures(everyone[len(points) :], SMALL)]
    )
    columns, cells = fitting(*subject.cells(everyone[: len(points)]))
    numbers = subject.numbers(everyone).tolist()
    short: list[str | None] = [None if names is None else shortened(name, LONGEST_NAME) for name in names or numbers]
    full = [name if name != cut else None for name, cut in zip(names or short, short, strict=True)]
    short, full = affordable(short, MOST_LISTED_NAMES), affordable(full, MOST_FULL_NAMES)

    def called(i: int) -> dict[str, Any]:
        return {"row": numbers[i], "name": short[i], "picture": pictures[i]}

    found: list[dict[str, Any]] = []
    for i, point in enumerate(points.tolist()):
        entry = called(i) | {
            "full": full[i],
            "count": float(f"{fit.counts[point]:.4g}"),
            "bin": int(bins.of[point]),
            "safe": bool(bins.safe[point]),
            "group": int(group_of[point]),
            "copies": 1 if fit.by_passes else int(fit.copies[point]),
            "cells": cells[i],
            "reason": _crowd(float(fit.counts[point]), fit.material.count_total),
        }
        found.append(entry)
    at, picks = len(points), summary.representatives or []
    for rank, members in enumerate(beside):
        chosen = rank < len(picks)
        found[rank]["reason"] = _reason(fit, picks[rank].gain, int(points[rank]), bins) if chosen else NEXT
        found[rank]["stands_for"] = round(float(changes.stands_for[rank])) if chosen else 0
        found[rank]["members"] = [called(i) for i in range(at, at + len(members))]
        at += len(members)
    return Entries(found[:n_ranks], found[n_ranks:], columns, _bytes(cells) <= MOST_TWICE)


def _crowd(count: float, total: float) -> str:
    """What an effective count says.

    Examples
    --------
    >>> _crowd(1.004, 128), _crowd(3.14159, 128)
    ('no other row looks like it.', 'about 3.1 of 128 rows look like it, itself included.')
    """
    if count < 1.05:
        return "no other row looks like it."
    return f"about {count:.2g} of {total:,.0f} rows look like it, itself included."


NEXT = "would come next, adding most to those before it."


def _reason(fit: Fit, gain: float | None, point: int, bins: Bins) -> str:
    """Why it was chosen, in words that stay true whatever k and threshold the page shows."""
    if bins.must[point]:
        return "had to be included."
    if fit.selection.settings.mode == "paper":
        return f"its influence, the norm of its row in the encoding, is {gain or 0.0:.3g}."
    return f"adds {gain or 0.0:.3g} to the mean similarity of the points to their nearest pick."


def affordable(texts: list[str | None], limit: int = MOST_PICTURES) -> list[str | None]:
    """Pictures or names, as long as they are not too many bytes; the first come first.

    Examples
    --------
    >>> affordable(["123", None, "45678", "9"], 8)
    ['123', None, '45678', None]
    """
    sizes = np.cumsum([0 if text is None else bytes_of(text) for text in texts])
    return [text if size <= limit else None for text, size in zip(texts, sizes.tolist(), strict=True)]


def fitting(columns: list[str], cells: list[list[str]], limit: int = MOST_CELLS) -> tuple[list[str], list[list[str]]]:
    """Cells that are not too many bytes: shorter ones, then fewer columns.

    Examples
    --------
    >>> fitting(["a", "b"], [["12", "x" * 100]], 60)
    (['a', 'b'], [['12', 'xxxxxxxxxxxxx…xxxxxxxxxxxx']])
    """
    longest = LONGEST_CELL
    while _bytes(cells) > limit and columns:
        if longest > 16:
            longest = longest // 2 + 1
            cells = [[shortened(cell, longest) for cell in row] for row in cells]
        else:
            columns, cells = columns[:-1], [row[:-1] for row in cells]
    return columns, cells


def _bytes(cells: list[list[str]]) -> int:
    return bytes_of(json.dumps(cells, ensure_ascii=False))


def bytes_of(text: str) -> int:
    """Of a text in the page, where an opening bracket takes six.

    Examples
    --------
    >>> bytes_of("a<b")
    8
    """
    return len(text.encode()) + 5 * text.count("<")
