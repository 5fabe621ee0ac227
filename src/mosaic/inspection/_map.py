"""The map of an estimator: which rows are shown, what they are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.estimators._points import read_points
from mosaic.inspection._explain import check_estimator
from mosaic.inspection._parts import CurvePart, PointMap, RowStatus
from mosaic.inspection._plane import Plane, plane_of_coordinates, plane_of_features, plane_of_kernel

#: Part of the rows shown that outliers may take.
OUTLIER_SHARE = 0.25


def point_map(
    estimator: Any, X: Any, names: Sequence[Any] | None, curve: CurvePart | None, max_points: int, seed: int
) -> PointMap | None:
    """The map of a fitted estimator; None for a detector, which keeps no points, if X is not given."""
    rng = np.random.default_rng(seed)
    counts, is_outlier = estimator.effective_count_, estimator.is_outlier_
    if check_estimator(estimator):
        if X is None:
            return None
        usable, none = np.ones(len(counts), dtype=bool), np.zeros(0, np.intp)
        rows = shown_rows(usable, is_outlier, counts, none, max_points, rng)
        plane, status = _detected_plane(estimator, X, rows, rng), np.where(is_outlier[rows], "outlier", "belongs")
        label = error = None
    else:
        rows, status, plane = _selected_plane(estimator, curve, max_points, rng)
        label, error = estimator.labels_[rows].tolist(), estimator.representation_error_[rows].tolist()
    known: list[RowStatus] = status.tolist()
    points = plane.points
    if (
        plane.method == "features" and estimator.column_scale_ is not None
    ):  # back in the units that the axes are named in
        points = points * estimator.column_scale_
    return PointMap(
        method=plane.method,
        axes=list(plane.axes),
        row=rows.tolist(),
        x=points[:, 0].tolist(),
        y=points[:, 1].tolist(),
        status=known,
        label=label,
        effective_count=counts[rows].tolist(),
        representation_error=error,
        name=None if names is None else [str(names[row]) for row in rows],
    )


def _selected_plane(
    model: Any, curve: CurvePart | None, max_points: int, rng: np.random.Generator
) -> tuple[IntArray, Any, Plane]:
    """Rows, their status and their coordinates. Whoever is on the curve is on the map: another k shows other rows."""
    solved, is_outlier = model._solved, model.is_outlier_
    always = np.union1d(model.representative_indices_, [] if curve is None else curve.row).astype(np.intp)
    rows = shown_rows(solved.points.group >= 0, is_outlier, model.effective_count_, always, max_points, rng)
    status = np.where(is_outlier[rows], "outlier", "represented").astype(object)
    status[np.isin(rows, model.representative_indices_)] = "representative"
    belongs: BoolArray = status != "outlier"
    names = _feature_names(model)
    return (
        rows,
        status,
        plane_of_kernel(solved.kernel, solved.points.group[rows], model._choice.points, belongs, names, rng),
    )


def _detected_plane(detector: Any, X: Any, rows: IntArray, rng: np.random.Generator) -> Plane:
    matrix = read_points(detector, X, reset=False)[rows]
    belongs = ~detector.is_outlier_[rows]
    if isinstance(detector.kernel, str) and detector.kernel in ("rbf", "laplacian", "diffusion"):
        return plane_of_features(matrix, belongs, _feature_names(detector), rng)
    model = detector._scales.near.model
    A = model.pivots.features_at(matrix) if model.triangle is None else model.map(matrix)[0]
    return plane_of_coordinates(A, belongs, "similarity", rng)


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
