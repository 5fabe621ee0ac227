"""Robustness of selection: the share of outliers among the picks against their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.paper._figures import Panel, draw
from experiments.paper._lines import OUTLIER_SHARE, Line, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "robustness"
#: The panels of the paper's figure.
TITLES = {
    "sphere": "Sphere, uniform outliers",
    "trefoil": "Trefoil, uniform outliers",
    "swiss_roll": "Swiss roll, repetitive outliers",
    "frey": "Frey faces, natural images",
}


def table(lines: Sequence[Line]) -> str:
    """Mean ± spread over seeds of the mean over ratios of (outliers picked / picked): methods × sets."""
    mine = latest(lines, ITEM)
    columns = cells(mine, OUTLIER_SHARE, ["dataset"])
    named = {dataset: (columns[dataset,], OUTLIER_SHARE) for dataset in sets_of(mine)}
    return table_of_columns(named, in_table_order((line["method"] for line in mine), mine), tiers(mine))


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Means over seeds against the ratio, a panel for each set."""
    mine = latest(lines, ITEM)
    columns = cells(mine, OUTLIER_SHARE, ["dataset", "ratio"])
    panels = []
    for dataset in sets_of(mine):
        series: dict[str, tuple[list[float], list[float]]] = {}
        for (name, ratio), column in columns.items():
            for method, cell in column.items():
                if name == dataset and cell.mean is not None:
                    series.setdefault(method, ([], []))
                    series[method][0].append(ratio)
                    series[method][1].append(cell.mean)
        panels.append(Panel(TITLES.get(dataset, dataset), series, "outliers among picks"))
    return draw(panels, tiers(mine), path)


def sets_of(lines: Sequence[Line]) -> list[str]:
    """The sets that have lines, those of the paper's figure first."""
    found = {line["dataset"] for line in lines}
    return [name for name in TITLES if name in found] + sorted(found - set(TITLES))
