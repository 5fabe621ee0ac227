"""A fit at a glance, for notebooks: the sentence, a small map, the first picks. Plain HTML and SVG, which need nothing."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from mosaic.choosing import percent
from mosaic.inspection.facts import PointMap, Summary, counted
from mosaic.inspection.projection import framed
from mosaic.inspection.summaries import summarise

#: Points on the map, and rows in the table.
MOST_POINTS, MOST_ROWS = 500, 6
#: Size of the map, and room at its edge.
WIDTH, HEIGHT, EDGE = 340, 220, 8
CHOSEN, ODD = "#0b6e99", "#c4500b"
CELL = 'style="text-align:left;padding:2px 10px 2px 0"'


def card(estimator: Any) -> str:
    """The compact report of a fitted estimator, as HTML.

    What is proven about k is said if it has been asked for already (``certificate_``): proving it solves one more program.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import card
    >>> html = card(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> "8 outliers set aside" in html, html.count("<svg")
    (True, 1)
    """
    parts = {"map"} | ({"bound"} if estimator.selection_.is_proven else set())
    facts = summarise(estimator, parts=frozenset(parts), max_points=MOST_POINTS)
    map_ = "" if facts.map is None else _svg(facts.map)
    head = f'<p style="margin:0 0 6px;font-size:115%;font-weight:600">{escape(sentence(facts))}</p>'
    return (
        f'<div class="mosaic-card" style="margin:4px 0 8px">{head}'
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{map_}{_table(facts)}</div></div>'
    )


def sentence(facts: Summary) -> str:
    """The answer in one sentence: who stands for how much, how many do not belong, how good that is.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import summary
    >>> sentence(summary(MOSAIC(5).fit(datasets.blobs_with_gross_outliers().X), certificate=False))
    '5 representatives stand for 72.2 % of 400 points; 8 outliers set aside.'
    """
    k = facts.n_representatives
    if k is None:
        return f"{facts.title}."
    text = f"{counted(k, 'representative')} {'stands' if k == 1 else 'stand'} for {100 * (facts.coverage or 0.0):.1f} %"
    text += f" of {counted(facts.n_points, 'point')}"
    text += _on_outliers(facts)
    if facts.certificate.excess is not None and facts.certificate.excess <= 1:
        text += f"; provably within {percent(facts.certificate.excess)} of the best {k if k > 1 else 'one'}"
        text += f" at ridge {facts.certificate.ridge:.3g}"  # the share before it is without one
    return f"{text}."


def _on_outliers(facts: Summary) -> str:
    fate = facts.settings["parameters"]["outliers"]
    if fate == "keep":  # nobody has looked for any
        return ""
    about = "about " if facts.scaled else ""
    done = "set aside" if fate == "reject" else "reported"
    return f"; {about}{counted(facts.n_outliers, 'outlier')} {done}" if facts.n_outliers else "; no outliers"


def _svg(shown: PointMap) -> str:
    """Points as dots, outliers as crosses, representatives large and numbered for whoever hovers."""
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
        f'<path d="{"".join(marks["outlier"])}" stroke="{ODD}" stroke-width="1.5" fill="none"/>'
        f'<g fill="{CHOSEN}" stroke="#fff">{"".join(marks["representative"])}</g></svg>'
    )


def _table(facts: Summary) -> str:
    """The first picks, or of a detector the oddest rows."""
    if facts.representatives is not None:
        head = ("", "row", "stands for")
        rows = [(str(p.rank + 1), p.name or str(p.row), f"{p.stands_for:,}") for p in facts.representatives]
    else:
        head = ("", "row", "effective count")
        rows = [
            (str(i), o.name or str(o.row), f"{o.effective_count:.3g}") for i, o in enumerate(facts.outliers.lowest, 1)
        ]
    if not rows:
        return ""
    lines = "".join(
        f"<tr>{''.join(f'<td {CELL}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS]
    )
    more = (
        f"<tr><td {CELL}></td><td {CELL}>and {len(rows) - MOST_ROWS:,} more</td></tr>" if len(rows) > MOST_ROWS else ""
    )
    titles = "".join(f'<th scope="col" {CELL}>{name}</th>' for name in head)
    return f'<table style="border-collapse:collapse"><tr>{titles}</tr>{lines}{more}</table>'
