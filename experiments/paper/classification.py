"""Classification with representatives: accuracy of classifiers that know the classes of k rows."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.items import CLASSIFIED, VARIANTS
from experiments.paper._lines import MEASURES, Line, cells, in_table_order, latest, ranked, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "classification"
FULL = "MOSAIC (paper)"


def parts(lines: Sequence[Line]) -> list[str]:
    """Mean ± spread over runs, methods × (classifier, k), over all sets and for each; and what the scalable variant loses."""
    everything = latest(lines, ITEM)
    mine = ranked(everything)
    methods, tier = in_table_order(mine), tiers(everything)
    found = [
        "Each set is split 70/10/20 for every run; picks come from 600 of the training rows, settings are chosen on the "
        "validation part, accuracies are those on the test part."
    ]
    names = [name for name in CLASSIFIED if any(line["dataset"] == name for line in mine)]
    for title, sets in (("Mean over all sets", names), *((name, [name]) for name in names)):
        here = [line for line in mine if line["dataset"] in sets]
        columns = {
            f"{measure.title}, k = {k}": (column, measure)
            for measure in MEASURES[ITEM]
            for (k,), column in cells(here, measure, ["k"]).items()
        }
        found += [f"### {title}", table_of_columns(columns, methods, tier)]
    both = [line for line in everything if line["method"] in (FULL, *VARIANTS)]
    columns = {
        f"{measure.title}, {name}": (column, measure)
        for measure in MEASURES[ITEM]
        for (name,), column in cells(both, measure, ["dataset"]).items()
    }
    words = (
        "Means over k and runs. The text states neither how many candidates there are, nor how many are added, nor in how many "
        "rounds: here 100, 10 and 3. Not refined: 120 random candidates."
    )
    return [*found, "### Accuracy of the scalable variant", words, table_of_columns(columns, [FULL, *VARIANTS], tier)]
