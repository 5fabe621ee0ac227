"""The paper's table of F1: the swiss roll with repetitive outliers, and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.items import TABLE_RATIOS
from experiments.paper._lines import F1_INLIER, Line, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns
from experiments.paper.rules import PRINTED, with_defaults
from experiments.paper.structured import AUTHORS

ITEM = "f1_table"


def dimension_of(dataset: str) -> int:
    """Ambient dimension: what stands behind the "/", 3 without.

    Examples
    --------
    >>> dimension_of("swiss_roll"), dimension_of("swiss_roll/10")
    (3, 10)
    """
    return int(dataset.partition("/")[2] or 3)


def parts(lines: Sequence[Line]) -> list[str]:
    """For each dimension F1 of methods × ratios, with the paper's number where it gives one; then the rivals' defaults."""
    mine = latest(lines, ITEM)
    beside = {
        (method, f"{ratio:g}"): f" (paper: {f1:.3f})"
        for method, printed in PRINTED.items()
        for ratio, f1 in zip(TABLE_RATIOS, printed, strict=True)
    }
    found = [
        "Swiss roll with repetitive outliers, by ratio of outliers to inliers; F1 (positive: inliers) at the best threshold."
    ]
    for dataset in sorted({line["dataset"] for line in mine}, key=dimension_of):
        found.append(f"### {dimension_of(dataset)} dimensions")
        for everything, words in ((mine, []), (with_defaults(lines, ITEM), [AUTHORS])):
            here = [line for line in everything if line["dataset"] == dataset]
            columns = {f"{r:g}": (column, F1_INLIER) for (r,), column in cells(here, F1_INLIER, ["ratio"]).items()}
            if here:
                found += [*words, table_of_columns(columns, in_table_order(here), tiers(here), beside=beside)]
    return found
