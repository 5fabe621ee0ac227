"""Classification with representatives: accuracy of classifiers that know the classes of k rows."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.items import CLASSIFIED
from experiments.paper._lines import (
    MEASURES,
    Column,
    Line,
    Measure,
    cells,
    in_table_order,
    label,
    latest,
    mean_ranks,
    ranked,
    tiers,
)
from experiments.paper._markdown import table as markdown
from experiments.paper._markdown import table_of_columns

ITEM = "classification"


def columns_of(lines: Sequence[Line], dataset: str) -> dict[str, tuple[Column, Measure]]:
    """Heading → cells of a set: classifiers × k."""
    mine = [line for line in ranked(latest(lines, ITEM)) if line["dataset"] == dataset]
    return {
        f"{measure.title}, k = {k}": (column, measure)
        for measure in MEASURES[ITEM]
        for (k,), column in cells(mine, measure, ["k"]).items()
    }


def table(lines: Sequence[Line], dataset: str) -> str:
    """Mean ± spread over seeds, methods × (classifier, k), and the mean over these columns of the rank."""
    mine = [line for line in ranked(latest(lines, ITEM)) if line["dataset"] == dataset]
    columns = columns_of(mine, dataset)
    ranking = mean_ranks([(column, measure.higher) for column, measure in columns.values()])
    return table_of_columns(
        columns,
        in_table_order((line["method"] for line in mine), mine),
        tiers(mine),
        {"mean rank": {method: f"{rank:.1f}" for method, rank in ranking.items()}},
    )


def rank_table(lines: Sequence[Line]) -> str:
    """Mean over sets, classifiers and k of the rank, the best first; methods that were not run everywhere are left out."""
    mine = ranked(latest(lines, ITEM))
    columns = [columns_of(mine, dataset) for dataset in sets_of(mine)]
    ranking = mean_ranks([(column, measure.higher) for each in columns for column, measure in each.values()])
    tier = tiers(mine)
    return markdown(["method", "mean rank"], [[label(m, tier[m]), f"{rank:.1f}"] for m, rank in ranking.items()])


def sets_of(lines: Sequence[Line]) -> list[str]:
    """The sets that have lines, in the order of the item."""
    found = {line["dataset"] for line in latest(lines, ITEM)}
    return [name for name in CLASSIFIED if name in found] + sorted(found - set(CLASSIFIED))
