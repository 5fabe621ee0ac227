"""A compact report for notebooks, in HTML and SVG: the sentence, a small map, the first representatives."""

from __future__ import annotations

from html import escape

import numpy as np

from mosaic.choosing import EXPLAINED
from mosaic.facts import Facts
from mosaic.facts.map import framed, thinned
from mosaic.text import html_card, html_table

#: Largest number of points on the map, and of rows in the table.
MOST_POINTS, MOST_ROWS = 500, 6
#: Size of the map and of its margin, in pixels.
WIDTH, HEIGHT, EDGE = 340, 220, 8
REPRESENTATIVE_COLOUR, OUTLIER_COLOUR = "#0b6e99", "#c4500b"


def card(facts: Facts) -> str:
    """The compact report of a fit, as HTML.

    It includes the certificate only if ``certificate_`` was read before, because that solves one more program.
    """
    head, rows = ("", "row", "stands for"), [(p.rank, p.name or p.row, f"{p.stands_for:,}") for p in facts.picks]
    if facts.detects:
        lowest = enumerate(facts.outliers.lowest, 1)
        head, rows = ("", "row", "look like it"), [(i, o.name or o.row, f"{o.effective_count:.3g}") for i, o in lowest]
    words = [] if facts.detects else [EXPLAINED]
    return html_card(facts.sentence, _svg(facts), html_table(head, rows, MOST_ROWS), text=words)


def _svg(facts: Facts) -> str:
    """Points as dots, outliers as crosses, representatives as large dots with their names as tooltips."""
    chart, name_of = facts.map, {pick.row: pick.name for pick in facts.picks}
    status = np.array(chart.status)
    kept = np.arange(len(status))
    if len(kept) > MOST_POINTS:
        always = np.flatnonzero(status == "representative")
        kept = thinned(always, kept, chart.effective_count, MOST_POINTS, np.random.default_rng(0))
    points = np.column_stack([chart.x, chart.y])[kept]
    places = EDGE + framed(points, status[kept] != "outlier").shares * [WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE]
    places[:, 1] = HEIGHT - places[:, 1]
    dots, crosses, picks = [], [], []
    for i, (x, y) in zip(kept.tolist(), places.round(1).tolist(), strict=True):
        if status[i] == "representative":
            name = escape(name_of[int(chart.row[i])] or f"row {chart.row[i]}")
            picks.append(f'<circle cx="{x}" cy="{y}" r="4.5"><title>{name}, representative</title></circle>')
        elif status[i] == "outlier":
            crosses.append(f"M{x - 3} {y - 3}l6 6m0 -6l-6 6")
        else:
            dots.append(f'<circle cx="{x}" cy="{y}" r="1.6"/>')
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Map of the data along {escape(" and ".join(chart.axes))}">'
        f'<rect width="100%" height="100%" fill="none" stroke="currentColor" stroke-opacity=".25"/>'
        f'<g fill="currentColor" fill-opacity=".35">{"".join(dots)}</g>'
        f'<path d="{"".join(crosses)}" stroke="{OUTLIER_COLOUR}" stroke-width="1.5" fill="none"/>'
        f'<g fill="{REPRESENTATIVE_COLOUR}" stroke="#fff">{"".join(picks)}</g></svg>'
    )
