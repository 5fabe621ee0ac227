"""Rows of the answer, as tables: all their columns, and what MOSAIC says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mosaic.cli._fitting import Work
from mosaic.inspection import Summary


def with_columns(table: Any, columns: dict[str, Any]) -> Any:
    """The table with more columns at its end; a name that is taken gets a trailing underscore.

    Examples
    --------
    >>> with_columns(pa.table({"a": [1], "b": [2]}), {"a": [3], "c": [4]}).column_names
    ['a', 'b', 'a_', 'c']
    """
    for name, values in columns.items():
        while name in table.column_names:
            name += "_"
        table = table.append_column(name, pa.array(values))
    return table


def values_of(table: Any) -> list[dict[str, Any]]:
    """Each row as a mapping, without columns of lists, for JSON."""
    found: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        try:
            values = column.to_pylist()
        except (ValueError, OverflowError):  # the year 14645, say, for which Python has no date
            values = column.cast(pa.string()).to_pylist()
        for row, value in zip(found, values, strict=True):
            row[name] = value
    return found


def settings_of(summary: Summary) -> dict[str, Any]:
    """How the answer was found, for JSON."""
    said = summary.settings
    parameters = {name: value for name, value in said["parameters"].items() if name != "verbose"}
    return {
        "parameters": parameters,
        **{name: said[name] for name in ("alpha", "lam", "gamma", "sentences", "versions")},
    }


def picks_table(work: Work, summary: Summary, rows: Any) -> Any:
    """The representatives by rank, as ``mosaic select`` writes them; ``rows`` are their columns."""
    picks = summary.representatives or []
    said = {
        "mosaic_rank": [pick.rank + 1 for pick in picks],
        "mosaic_row": work.numbers([pick.row for pick in picks]),
        "mosaic_stands_for": [pick.stands_for for pick in picks],
        "mosaic_effective_count": [pick.effective_count for pick in picks],
        "mosaic_reason": [pick.reason for pick in picks],
    }
    return with_columns(rows, said)


def labels_table(work: Work, model: Any) -> Any:
    """For every row who stands for it; nobody for outliers that were set aside."""
    everybody = np.arange(work.table.n)
    picks = model.representative_indices_
    labels = np.asarray(model.labels_)
    nobody = labels < 0
    names = np.array(work.table.names(picks), dtype=object)
    return pa.table(
        {
            "row": work.numbers(everybody),
            "name": work.table.names(everybody),
            "representative_row": pa.array(np.array(work.numbers(picks))[labels], mask=nobody),
            "representative": pa.array(names[labels], pa.string(), mask=nobody),
            "is_outlier": np.asarray(model.is_outlier_),
            "effective_count": np.asarray(model.effective_count_, np.float64),
        }
    )
