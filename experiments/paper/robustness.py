"""Robustness of selection: the share of outliers among the picks against their ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.paper._figures import Panel, draw
from experiments.paper._lines import OUTLIER_SHARE, Line, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns
from experiments.paper.f1_table import dimension_of

ITEM = "robustness"
#: The panels of the paper's figure, and the dimension that is drawn of those that it may have.
TITLES = {
    "sphere": "Sphere, uniform outliers",
    "trefoil": "Trefoil, uniform outliers",
    "swiss_roll": "Swiss roll, repetitive outliers",
    "frey": "Frey faces, natural images",
}
DRAWN = 50


def parts(lines: Sequence[Line]) -> list[str]:
    """Mean ± spread over runs of the mean over ratios of (outliers picked / picked): methods × dimensions, for each set."""
    mine = latest(lines, ITEM)
    columns, methods = cells(mine, OUTLIER_SHARE, ["dataset"]), in_table_order(mine)
    found = [
        "Share of outliers among 20 picks of 300 inliers and 0.1 to 1 times as many outliers, mean over the ratios; less is "
        f"better. The figure is for {DRAWN} dimensions."
    ]
    for kind, title in TITLES.items():
        names = sorted((name for (name,) in columns if name.partition("/")[0] == kind), key=dimension_of)
        headed = {_heading(name): (columns[name,], OUTLIER_SHARE) for name in names}
        found += [f"### {title}", table_of_columns(headed, methods, tiers(mine))] if headed else []
    return found


def _heading(name: str) -> str:
    return "560 dimensions" if name == "frey" else f"{dimension_of(name)} dimensions"


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Means over runs against the ratio, a panel for each set."""
    mine = latest(lines, ITEM)
    columns = cells(mine, OUTLIER_SHARE, ["dataset", "ratio"])
    panels = []
    for kind, title in TITLES.items():
        drawn = {
            ratio: column for (name, ratio), column in columns.items() if name in (f"{kind}/{DRAWN}", {"frey": kind}.get(kind))
        }
        panels += [Panel(title, drawn, "outliers among picks")] if drawn else []
    return draw(panels, tiers(mine), path)
