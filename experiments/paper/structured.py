"""Structured outliers: natural images among the Frey faces, AUC and F1 against their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.paper._figures import Panel, draw
from experiments.paper._lines import MEASURES, Line, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns
from experiments.paper.rules import with_defaults

ITEM = "structured"
#: Words above a second table.
AUTHORS = "The paper's rivals with the settings of their authors:"


def parts(lines: Sequence[Line]) -> list[str]:
    """Mean ± spread over runs of each measure, methods × ratios; then the rivals with the settings of their authors."""
    found = []
    for measure in MEASURES[ITEM]:
        found.append(f"### {measure.title}, by ratio of outliers to inliers")
        for mine, words in ((latest(lines, ITEM), []), (with_defaults(lines, ITEM), [AUTHORS])):
            columns = {f"{r:g}": (column, measure) for (r,), column in cells(mine, measure, ["ratio"]).items()}
            if mine:
                found += [*words, table_of_columns(columns, in_table_order(mine), tiers(mine))]
    return found


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Means over seeds against the ratio, a panel for each measure."""
    mine = latest(lines, ITEM)
    panels = [Panel(m.title, {ratio: column for (ratio,), column in cells(mine, m, ["ratio"]).items()}) for m in MEASURES[ITEM]]
    return draw(panels, tiers(mine), path, columns=3)
