"""The paper's table of F1: the swiss roll with repetitive outliers, and the paper's numbers beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.paper._lines import Line, Measure, cells, in_table_order, latest, tiers
from experiments.paper._markdown import table_of_columns

ITEM = "f1_table"
NUMBERS = Path(__file__).parent.parent / "expected" / "paper_numbers.json"


def paper_numbers() -> dict[str, Any]:
    """The paper's table: ratios, tolerance, and rows with the contestant that each belongs to."""
    found: dict[str, Any] = json.loads(NUMBERS.read_text())[ITEM]
    return found


def dimension_of(dataset: str) -> int:
    """Ambient dimension: what stands behind the "/", 3 without.

    Examples
    --------
    >>> dimension_of("swiss_roll"), dimension_of("swiss_roll/10")
    (3, 10)
    """
    return int(dataset.partition("/")[2] or 3)


def sets_of(lines: Sequence[Line]) -> list[str]:
    """The sets that have lines, by ambient dimension."""
    return sorted({line["dataset"] for line in latest(lines, ITEM)}, key=dimension_of)


def table(lines: Sequence[Line], dataset: str, measure: Measure) -> str:
    """Mean ± spread over seeds of F1, methods × ratios, with the paper's number where it gives one."""
    mine = [line for line in latest(lines, ITEM) if line["dataset"] == dataset]
    columns = {f"{ratio:g}": (column, measure) for (ratio,), column in cells(mine, measure, ["ratio"]).items()}
    paper = paper_numbers()
    beside = {
        (row["contestant"], f"{ratio:g}"): f" (paper: {f1:.3f})"
        for row in paper["rows"]
        for ratio, f1 in zip(paper["ratios"], row["f1"], strict=True)
    }
    methods = in_table_order((line["method"] for line in mine), mine)
    return table_of_columns(columns, methods, tiers(mine), beside=beside)
