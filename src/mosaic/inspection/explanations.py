"""Why a row is what it is, for any of the estimators."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Literal, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mosaic.choosing import (
    ColumnReason,
    Decisions,
    Explanation,
    Selection,
    columns_of,
    odd_columns,
    oddities,
    prepared_row,
)
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, MOSAICSampler
from mosaic.exceptions import InvalidInputError

#: Where the threshold of a detector comes from.
DETECTOR_RULES = {
    "alone": "rows below it are alone",
    "valley": "a valley in the distribution separates the counts below it",
    "contamination": "contamination sets the share of rows below it",
}


@dataclass(frozen=True)
class OutlierExplanation:
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

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict of plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"Row {self.index}: {self.reason}"


def check_estimator(estimator: Any) -> bool:
    """Whether a fitted estimator of this library is a detector; anything else is refused."""
    if not isinstance(estimator, MOSAIC | MOSAICSampler | MOSAICOutlierDetector):
        raise InvalidInputError(
            f"must be a fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector; got {type(estimator).__name__}",
            "Pass its last step." if hasattr(estimator, "steps") else "Fit one of these and pass it.",
            parameter="estimator",
        )
    check_is_fitted(estimator)
    return isinstance(estimator, MOSAICOutlierDetector)


@overload
def explain(estimator: Any, i: None = None) -> Decisions: ...


@overload
def explain(estimator: Any, i: int) -> Explanation | OutlierExplanation: ...


def explain(estimator: Any, i: int | None = None) -> Explanation | OutlierExplanation | Decisions:
    """Why row i is a representative, an outlier or neither, as plain data that prints as a sentence; or what was decided.

    Parameters
    ----------
    estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    i : row of the data that it was fitted to; by default the decisions of the fit are explained

    Returns
    -------
    Explanation, or OutlierExplanation for a detector; Decisions without a row

    Examples
    --------
    >>> from mosaic import MOSAICOutlierDetector, datasets
    >>> from mosaic.inspection import explain
    >>> data = datasets.blobs_with_gross_outliers()
    >>> detector = MOSAICOutlierDetector().fit(data.X)
    >>> explain(detector, int(data.is_outlier.argmax())).reason.split(';')[0]
    'an outlier: no other row looks like it'
    """
    if check_estimator(estimator) and i is not None:
        return explain_detected(estimator, i)
    return estimator.explain() if i is None else estimator.explain(i)  # type: ignore[no-any-return]


def explain_detected(detector: Any, i: int) -> OutlierExplanation:
    """The explanation of row i for a fitted detector."""
    counts = detector.selection_.effective_count
    n = len(counts)
    if isinstance(i, bool) or not isinstance(i, Integral) or not -n <= int(i) < n:
        raise InvalidInputError(f"must be a row number between 0 and {n - 1}", parameter="i", value=i)
    i = int(i) % n
    count, rule = float(counts[i]), str(detector.threshold_rule_)
    threshold = count_threshold(detector)
    status: Literal["outlier", "belongs"] = "outlier" if detector.selection_.outlier_mask[i] else "belongs"
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
    if protected is not None and protected[i] and threshold is not None:
        score = detector.offset_
        why = f"that is below the threshold {threshold:.3g}, but it is one of a group of at least {detector.min_group:g} rows"
    reasons: tuple[ColumnReason, ...] = ()
    if status == "outlier":
        selection: Selection = detector.selection_
        columns = columns_of(selection, detector.table_, getattr(detector, "feature_names_in_", None))
        if columns is not None and selection.usual is not None:
            point = int(selection.material.points.group[i])
            reasons = odd_columns(selection, columns, prepared_row(selection, i), i, point)
    says = f"{oddities(reasons)}. {says[0].upper()}{says[1:]}" if reasons else says
    return OutlierExplanation(
        index=i,
        status=status,
        reason=f"{'an outlier' if status == 'outlier' else 'belongs'}: {says}; {why}.",
        score=score,
        effective_count=count,
        outlier_probability=float(detector.selection_.outlier_probability[i]),
        count_threshold=threshold,
        rule=rule,
        n_lower=int((counts < count).sum()),
        columns=tuple((reason.column, reason.value, reason.share) for reason in reasons),
    )


def count_threshold(estimator: Any) -> float | None:
    """The effective count below which rows are outliers, None if there is no threshold."""
    cut = estimator.selection_.cut
    return float(cut.count) if cut.count > 0 else None
