"""Why a row is what it is, for any of the estimators."""

from __future__ import annotations

from typing import Any, overload

from sklearn.utils.validation import check_is_fitted

from mosaic.choosing import Decisions, Explanation
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, OutlierExplanation
from mosaic.exceptions import InvalidInputError


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
def explain(estimator: Any, i: int | str) -> Explanation | OutlierExplanation: ...


def explain(estimator: Any, i: int | str | None = None) -> Explanation | OutlierExplanation | Decisions:
    """Why row i is a representative, an outlier or neither, as plain data that prints as a sentence; or what was decided.

    Parameters
    ----------
    estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    i : row of the data that it was fitted to, by number or, as text, by name; by default the decisions of the fit are explained

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
    check_estimator(estimator)
    return estimator.explain() if i is None else estimator.explain(i)  # type: ignore[no-any-return]
