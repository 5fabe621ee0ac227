"""Why a row is what it is, in names and numbers of the file."""

from __future__ import annotations

from typing import Any

from mosaic.cli._fitting import Work
from mosaic.exceptions import InvalidInputError


def explanation_of(work: Work, model: Any, row: int) -> dict[str, Any]:
    """What the model says of a row, as plain data."""
    try:
        told = model.explain(row).to_dict()
    except InvalidInputError:
        told = _by_passes(model, row)
    by, reason = told["represented_by"], told["reason"]
    if told["rank"] is None and by is not None:
        reason = reason.replace(f"row {by} stands", f"{work.called(by)} stands")
    name = work.names([row])[0]
    return {
        "row": work.numbers([row])[0],
        "id": name,
        "called": work.called(row),
        "status": told["status"],
        "reason": reason,
        "rank": None if told["rank"] is None else told["rank"] + 1,
        "effective_count": told["effective_count"],
        "outlier_probability": told["outlier_probability"],
        "representation_error": told["representation_error"],
        "represented_by": None if by is None else {"row": work.numbers([by])[0], "id": work.names([by])[0]},
        "similarity": told["similarity"],
        "stands_for": told["stands_for"],
        "members": [
            {"row": number, "id": called}
            for number, called in zip(work.numbers(told["members"]), work.names(told["members"]), strict=True)
        ]
        if told["members"]
        else [],
        "differs_in": [{"feature": feature, "share": share} for feature, share in told["differs_in"]],
    }


def _by_passes(model: Any, row: int) -> dict[str, Any]:
    """Of a row that a fit by passes did not keep: what one more pass says of every row."""
    label, count, error = (
        int(model.labels_[row]),
        float(model.effective_count_[row]),
        float(model.representation_error_[row]),
    )
    by = int(model.representative_indices_[label]) if label >= 0 else None
    odd = bool(model.is_outlier_[row])
    left = f"{100 * error:.0f} % of it are left unexplained by all representatives."
    reason = f"not chosen: row {by} stands for it, and {left}"
    if odd:
        reason = (
            f"an outlier: its effective count is {count:.3g}, and those below {model.outlier_threshold_:.3g} are out."
        )
    return {
        "status": "outlier" if odd else "represented",
        "reason": reason,
        "rank": None,
        "effective_count": count,
        "outlier_probability": float(model.outlier_probability_[row]),
        "representation_error": error,
        "represented_by": by,
        "similarity": None,
        "stands_for": 0,
        "members": (),
        "differs_in": (),
    }
