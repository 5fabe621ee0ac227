"""The map of an estimator: which rows are shown, what they are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.inspection.explanations import check_estimator
from mosaic.inspection.facts import CurvePart, PointMap, RowStatus
from mosaic.inspection.projection import plane_of_kernel

#: Part of the rows shown that outliers may take.
OUTLIER_SHARE = 0.25


def point_map(
    estimator: Any, names: Sequence[Any] | None, curve: CurvePart | None, max_points: int, seed: int
) -> PointMap:
    """The map of a fitted estimator: rows in memory, called by their numbers in the data."""
    rng, selection = np.random.default_rng(seed), estimator.selection_
    material, detects = selection.material, check_estimator(estimator)
    counts, is_outlier = selection.counts_of_rows, selection.outlier_rows
    # Whoever is on the curve is on the map: another k shows other rows.
    always = np.union1d(selection.rows, [] if curve is None else curve.row)
    if material.row_numbers is not None:
        always = np.flatnonzero(np.isin(material.row_numbers, always))
    rows = shown_rows(material.points.group >= 0, is_outlier, counts, always.astype(np.intp), max_points, rng)
    status = np.where(is_outlier[rows], "outlier", "belongs" if detects else "represented").astype(object)
    status[np.isin(rows, selection.members)] = "representative"
    belongs: BoolArray = status != "outlier"
    known: list[RowStatus] = status.tolist()
    features = _feature_names(estimator)
    plane = plane_of_kernel(selection.kernel, material.points.group[rows], selection.chosen, belongs, features, rng)
    points, scale = plane.points, material.geometry.prepare.scale
    if plane.method == "features" and scale is not None:  # back in the units that the axes are named in
        points = points * scale
    answers = None if detects else selection.answers_in_memory
    numbers = material.rows_in_data(rows)
    return PointMap(
        method=plane.method,
        axes=list(plane.axes),
        row=numbers.tolist(),
        x=points[:, 0].tolist(),
        y=points[:, 1].tolist(),
        status=known,
        label=None if answers is None else answers.labels[rows].tolist(),
        effective_count=counts[rows].tolist(),
        representation_error=None if answers is None else answers.representation_error[rows].tolist(),
        name=None if names is None else [str(names[row]) for row in numbers],
    )


def _feature_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def shown_rows(
    usable: BoolArray, is_outlier: BoolArray, counts: FloatArray, always: IntArray, limit: int, rng: np.random.Generator
) -> IntArray:
    """All usable rows if no more than ``limit``; else ``always``, the oddest outliers, and of the others a random part."""
    rows = np.flatnonzero(usable)
    if len(rows) <= limit:
        return rows
    outliers = np.setdiff1d(np.flatnonzero(usable & is_outlier), always)
    odd = outliers[np.argsort(counts[outliers], kind="stable")[: int(OUTLIER_SHARE * limit)]]
    kept = np.union1d(always, odd)
    others = np.setdiff1d(rows[~is_outlier[rows]], kept)
    room = min(max(limit - len(kept), 0), len(others))
    return np.union1d(kept, rng.choice(others, room, replace=False)).astype(np.intp)
