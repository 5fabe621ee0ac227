"""Why a detector calls a row an outlier or not."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np

from mosaic.choosing import (
    ColumnReason,
    OfRow,
    Selection,
    columns_of,
    fetch_rows,
    odd_columns,
    oddities,
    percent,
    prepared_row,
    where_in_memory,
)
from mosaic.exceptions import InvalidInputError
from mosaic.rows.names import as_row
from mosaic.text import NO_NAMES, html_card, html_table

#: Where the threshold of a detector comes from.
DETECTOR_RULES = {
    "alone": "rows below it are alone",
    "valley": "a valley in the distribution separates the counts below it",
    "contamination": "contamination sets the share of rows below it",
}


@dataclass(frozen=True)
class OutlierExplanation(OfRow):
    """One row and what a detector says about it.

    Attributes
    ----------
    index : row of the data
    status : "outlier" or "belongs"
    reason : why, in a sentence
    score : log of the effective count, scikit-learn's ``score_samples``
    effective_count : number of rows that look like it, among those that it was compared with
    outlier_probability : the paper's OP
    count_threshold : effective count below which rows are outliers; None if there is no threshold
    rule : where the threshold came from: "valley", "alone", "contamination" or "none"
    n_lower : rows with a lower count
    columns : of an outlier, the columns that make up most of the distance from the nearest row that belongs, what the row has in
        them, and their share of it; empty where columns have no names
    name : of the row; None where rows have none
    """

    index: int
    status: Literal["outlier", "belongs"]
    reason: str
    score: float
    effective_count: float
    outlier_probability: float
    count_threshold: float | None
    rule: str
    n_lower: int
    columns: tuple[tuple[str, str, float], ...] = ()
    name: str | None = None

    def _repr_html_(self) -> str:
        threshold = "none" if self.count_threshold is None else f"{self.count_threshold:.3g}"
        facts = [("rows that look like it", f"{self.effective_count:.3g}"), ("threshold", threshold)]
        facts += [("rows with fewer", f"{self.n_lower:,}")]
        columns = [(name, value, percent(share)) for name, value, share in self.columns]
        return html_card(
            f"{self.called}: {self.status}",
            html_table(["", ""], facts),
            html_table(["column", "value", "share of the distance"], columns),
            text=[f"{self.reason[0].upper()}{self.reason[1:]}"],
        )


def explain_detected(detector: Any, i: int | str) -> OutlierExplanation:
    """The explanation of row i for a fitted detector."""
    names, i = detector.row_names_, as_row(i, detector.row_names_)
    counts = detector.effective_count_
    n = len(counts)
    if isinstance(i, bool) or not isinstance(i, Integral) or not -n <= int(i) < n:
        remedy = NO_NAMES if isinstance(i, str) else None
        raise InvalidInputError(f"must be a row number between 0 and {n - 1}", remedy, parameter="i", value=i)
    i = int(i) % n
    count, rule = float(counts[i]), str(detector.threshold_rule_)
    threshold = count_threshold(detector)
    status: Literal["outlier", "belongs"] = "outlier" if detector.is_outlier_[i] else "belongs"
    shown, total = f"{count:.3g}", detector.selection_.material.count_total
    says = (
        "no other row looks like it" if shown == "1" else f"{shown} of {total:,.0f} rows look like it, itself included"
    )
    why = (
        "there is no threshold"
        if threshold is None
        else f"the threshold is {threshold:.3g}, and {DETECTOR_RULES[rule]}"
    )
    score = float(np.log(count))
    protected = detector.selection_.protected
    at = where_in_memory(detector.selection_, i)
    if protected is not None and at >= 0 and protected[at] and threshold is not None:
        score = detector.offset_
        group = (
            f"one of a group of at least {detector.min_group:g} rows" if detector.min_group else "near to other rows"
        )
        why = f"that is below the threshold {threshold:.3g}, but it is {group}"
    reasons: tuple[ColumnReason, ...] = ()
    if status == "outlier":
        selection: Selection = detector.selection_
        columns = columns_of(selection, detector.table_, getattr(detector, "feature_names_in_", None))
        if columns is not None and selection.usual is not None:
            point = int(selection.material.points.group[at]) if at >= 0 else -1
            own = prepared_row(selection, at) if at >= 0 else fetch_rows(selection, [i])[i]
            reasons = odd_columns(selection, columns, own, i, point)
    says = f"{oddities(reasons)}. {says[0].upper()}{says[1:]}" if reasons else says
    return OutlierExplanation(
        index=i,
        status=status,
        reason=f"{'an outlier' if status == 'outlier' else 'belongs'}: {says}; {why}.",
        score=score,
        effective_count=count,
        outlier_probability=float(detector.outlier_probability_[i]),
        count_threshold=threshold,
        rule=rule,
        n_lower=int((counts < count).sum()),
        columns=tuple((reason.column, reason.value, reason.share) for reason in reasons),
        name=None if names is None else names[i],
    )


def count_threshold(estimator: Any) -> float | None:
    """The effective count below which rows are outliers, None if there is no threshold."""
    cut = estimator.selection_.cut
    return float(cut.count) if cut.count > 0 else None
