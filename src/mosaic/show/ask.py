"""The facts of a fitted estimator, and why a row is what it is."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mosaic.choosing import Decisions, Explanation
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, MOSAICSampler
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts


def facts_of(model: Any) -> Facts:
    """The facts of a fitted estimator of this library; anything else is refused."""
    if not isinstance(model, MOSAIC | MOSAICSampler | MOSAICOutlierDetector):
        raise InvalidInputError(
            f"must be a fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector; got {type(model).__name__}",
            "Pass its last step." if hasattr(model, "steps") else "Fit one of these and pass it.",
            parameter="estimator",
        )
    check_is_fitted(model)
    return model.facts_


def explain(estimator: Any, i: int | str | None = None) -> Explanation | Decisions:
    """Why row i is a representative, an outlier or neither, as plain data that prints as a sentence; or what was decided.

    Parameters
    ----------
    estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    i : row of the data that it was fitted to, by number or, as text, by name; by default the decisions of the fit are explained

    Returns
    -------
    Explanation, or Decisions without a row

    Examples
    --------
    >>> from mosaic import MOSAICOutlierDetector, datasets, explain
    >>> data = datasets.blobs_with_gross_outliers()
    >>> detector = MOSAICOutlierDetector().fit(data.X)
    >>> explain(detector, int(data.is_outlier.argmax())).reason.split(';')[0]
    'an outlier: no other row looks like it'
    """
    return facts_of(estimator).model.explain(i)  # type: ignore[no-any-return]
