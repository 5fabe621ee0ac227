"""A compact report for notebooks, in HTML and SVG: the sentence, a small map, the first representatives."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from mosaic.choosing import EXPLAINED
from mosaic.inspection.facts import PointMap, Summary
from mosaic.inspection.projection import framed
from mosaic.inspection.summaries import summary
from mosaic.text import html_card, html_table

#: Largest number of points on the map, and of rows in the table.
MOST_POINTS, MOST_ROWS = 500, 6
#: Size of the map and of its margin, in pixels.
WIDTH, HEIGHT, EDGE = 340, 220, 8
REPRESENTATIVE_COLOUR, OUTLIER_COLOUR = "#0b6e99", "#c4500b"


def card(estimator: Any) -> str:
    """The compact report of a fitted estimator, as HTML.

    It includes the certificate only if ``certificate_`` was read before, because that solves one more program.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import card
    >>> html = card(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> "8 outliers set aside" in html, html.count("<svg")
    (True, 1)
    """
    facts = summary(estimator, certificate=estimator.selection_.is_proven, parts=("map",), max_points=MOST_POINTS)
    words = [] if facts.representatives is None else [EXPLAINED]
    return html_card(facts.sentence, "" if facts.map is None else _svg(facts.map), _table(facts), text=words)


def _svg(shown: PointMap) -> str:
    """Points as dots, outliers as crosses, representatives as large dots with their names as tooltips."""
    points = np.column_stack([shown.x, shown.y])
    odd = np.array([status == "outlier" for status in shown.status])
    places = EDGE + framed(points, ~odd).shares * [WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE]
    places[:, 1] = HEIGHT - places[:, 1]
    marks: dict[str, list[str]] = {"represented": [], "outlier": [], "representative": []}
    for i, (x, y) in enumerate(places.round(1).tolist()):
        status = shown.status[i]
        name = escape(shown.name[i] if shown.name is not None else f"row {shown.row[i]}")
        if status == "representative":
            marks[status].append(f'<circle cx="{x}" cy="{y}" r="4.5"><title>{name}, representative</title></circle>')
        elif status == "outlier":
            marks[status].append(f"M{x - 3} {y - 3}l6 6m0 -6l-6 6")
        else:
            marks["represented"].append(f'<circle cx="{x}" cy="{y}" r="1.6"/>')
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Map of the data along {escape(" and ".join(shown.axes))}">'
        f'<rect width="100%" height="100%" fill="none" stroke="currentColor" stroke-opacity=".25"/>'
        f'<g fill="currentColor" fill-opacity=".35">{"".join(marks["represented"])}</g>'
        f'<path d="{"".join(marks["outlier"])}" stroke="{OUTLIER_COLOUR}" stroke-width="1.5" fill="none"/>'
        f'<g fill="{REPRESENTATIVE_COLOUR}" stroke="#fff">{"".join(marks["representative"])}</g></svg>'
    )


def _table(facts: Summary) -> str:
    """The first representatives, or the lowest outliers of a detector."""
    if facts.representatives is not None:
        head = ("", "row", "stands for")
        rows = [(str(p.rank + 1), p.name or str(p.row), f"{p.stands_for:,}") for p in facts.representatives]
    else:
        head = ("", "row", "rows that look like it")
        rows = [
            (str(i), o.name or str(o.row), f"{o.effective_count:.3g}") for i, o in enumerate(facts.outliers.lowest, 1)
        ]
    return html_table(head, rows, MOST_ROWS)
