"""The paper's table of F1: the swiss roll with repetitive outliers, and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.items import TABLE_RATIOS
from experiments.paper._lines import F1_INLIER, Line, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns
from experiments.paper.rules import PRINTED, with_defaults

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
        for here, words in ((mine, ""), (with_defaults(lines, ITEM), "The paper's rivals with the settings of their authors:")):
            here = [line for line in here if line["dataset"] == dataset]
            methods = in_table_order(
                {line["method"] for line in here} & ({*PRINTED, "MOSAIC"} if words else {*tiers(here)}), here
            )
            columns = {f"{r:g}": (column, F1_INLIER) for (r,), column in cells(here, F1_INLIER, ["ratio"]).items()}
            if methods:
                found += [*([words] if words else []), table_of_columns(columns, methods, tiers(here), beside=beside)]
    return found
