"""Structured outliers: natural images among the Frey faces, AUC and F1 against their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.paper._figures import Panel, draw
from experiments.paper._lines import MEASURES, Line, Measure, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "structured"


def table(lines: Sequence[Line], measure: Measure) -> str:
    """Mean ± spread over seeds of a measure, methods × ratios."""
    mine = latest(lines, ITEM)
    columns = {f"{ratio:g}": (column, measure) for (ratio,), column in cells(mine, measure, ["ratio"]).items()}
    return table_of_columns(columns, in_table_order((line["method"] for line in mine), mine), tiers(mine))


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Means over seeds against the ratio, a panel for each measure."""
    mine = latest(lines, ITEM)
    panels = []
    for measure in MEASURES[ITEM]:
        series: dict[str, tuple[list[float], list[float]]] = {}
        for (ratio,), column in cells(mine, measure, ["ratio"]).items():
            for method, cell in column.items():
                if cell.mean is not None:
                    series.setdefault(method, ([], []))
                    series[method][0].append(ratio)
                    series[method][1].append(cell.mean)
        panels.append(Panel(measure.title, series))
    return draw(panels, tiers(mine), path, columns=3)
