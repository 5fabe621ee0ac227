"""From a fitted estimator to its ``Summary``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.threads import one_thread
from mosaic.choosing import MOST_AUTOMATIC, Selection, curve_settings, rank, suggested_number
from mosaic.choosing.outliers import group_sizes
from mosaic.estimators import count_threshold
from mosaic.exceptions import InvalidInputError
from mosaic.inspection.explanations import check_estimator, explain
from mosaic.inspection.facts import (
    CertificatePart,
    CurvePart,
    OutlierPart,
    OutlierRow,
    Representative,
    Summary,
    TradeOff,
    finite,
    versions,
)
from mosaic.inspection.projection import point_map
from mosaic.rows.frames import n_rows
from mosaic.text import jsonable

#: Largest number of listed outliers, and of bins of the histogram.
MOST_OUTLIERS, MOST_BINS = 50, 40
#: Least number of points of the curve. Usually it has twice as many points as there are representatives.
SHORTEST_CURVE = 20
#: Largest number of points of the curve: the time for the coverage is quadratic in it.
LONGEST_CURVE = 1000
#: Group sizes in the trade-off, and the largest number of outliers for which it is computed.
GROUP_SIZES, MOST_IN_GROUPS = (3, 5, 10, 20, 50), 2000


@one_thread()
def summary(
    estimator: Any,
    X: Any = None,
    *,
    names: Sequence[Any] | None = None,
    certificate: bool = True,
    parts: Collection[str] = ("map", "curve", "groups"),
    max_points: int = 2000,
    random_state: int = 0,
) -> Summary:
    """The facts of a fit as plain data, from which reports and figures are made.

    Parameters
    ----------
    estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    X : the data of ``fit``; optional, only its number of rows is checked
    names : one name for each row; by default those of the fit (``row_names_``), if there are any
    certificate : whether to bound what the best k points would leave unexplained, which solves one more program
    parts : which of the slow parts are computed: "map", "curve", and "groups", the trade-off of ``min_group``
    max_points : rows on the map: all representatives, outliers for at most a quarter, and others drawn at random
    random_state : seed of that draw

    Returns
    -------
    Summary

    Notes
    -----
    1. For kernels that compare distances (rbf, laplacian, diffusion) the map shows two features as they are, and more features
       by two principal axes. For other kernels it shows the principal axes of the kernel's own space, projected on 200
       landmarks, representatives first. Axes are computed without outliers. Rows without weight are not on the map.
    2. The curve ignores quotas, as ``mosaic.path`` does. On large data it is estimated from a sample.
    3. After a fit by passes the summary describes the points in memory by their rows in the data, and numbers of rows are
       scaled up from them.

    Examples
    --------
    >>> import json
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import summary
    >>> facts = summary(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> facts.title
    '20 representatives of 400 points, 8 outliers'
    >>> len(facts.representatives), facts.map.method, facts.outliers.rule
    (20, 'features', 'alone')
    >>> json.loads(json.dumps(facts.to_dict()))["n_outliers"]
    8
    """
    detects = check_estimator(estimator)
    selection: Selection = estimator.selection_
    n = selection.n_rows
    if X is not None and n_rows(X) != n:
        raise InvalidInputError(
            f"must have the {n} rows of fit; it has {n_rows(X)}",
            "Pass the fitted data, or leave it out.",
            parameter="X",
        )
    if names is not None and len(names) != n:
        raise InvalidInputError(
            f"must have one entry for each of {n} rows; got {len(names)}",
            "Give one for each row of the fitted data, in their order.",
            parameter="names",
        )
    # A pandas series is indexed by its labels, a list by position.
    names = estimator.row_names_ if names is None else list(names)
    if isinstance(max_points, bool) or not isinstance(max_points, Integral) or max_points < 1:
        raise InvalidInputError(
            "must be a whole number >= 1", "It limits the points on the map.", parameter="max_points", value=max_points
        )
    curve = _curve(selection) if "curve" in parts and not detects else None
    columns = getattr(estimator, "feature_names_in_", None)
    feature_names = None if columns is None else [str(name) for name in columns]
    axes = feature_names if estimator.table_ is None else None  # numbers that a table became are no columns
    return Summary(
        estimator=type(estimator).__name__,
        n_points=n,
        n_features=int(estimator.n_features_in_),
        feature_names=feature_names,
        n_outliers=selection.n_outliers,
        n_representatives=None if detects else len(selection.rows),
        coverage=None if detects else finite(selection.coverage),
        certificate=_certificate(selection, certificate, detects),
        map=point_map(selection, detects, axes, names, curve, max_points, random_state) if "map" in parts else None,
        representatives=None if detects else _representatives(estimator, names),
        outliers=_outliers(estimator, names, "groups" in parts),
        curve=curve,
        settings=_settings(estimator, detects),
        scaled=selection.is_sampled,
    )


def _certificate(selection: Selection, wanted: bool, detects: bool) -> CertificatePart:
    """The certificate of the representatives, or of the program alone; empty if it is neither wanted nor known."""
    if not wanted and not selection.is_solved and not selection.is_proven:
        return CertificatePart(None, None, None, None, None, None, "The certificate has not been computed.")
    chosen = None if detects or not (wanted or selection.is_proven) else selection.certificate
    proven = selection.program_certificate if chosen is None else chosen.encoding
    gap, error, rank_ = finite(proven.gap), finite(proven.kernel_error), int(proven.rank)
    sentence = f"The program behind this is {proven}."
    if not wanted or chosen is None:
        return CertificatePart(gap, error, rank_, None, None, None, sentence)
    excess = finite(chosen.excess)
    return CertificatePart(
        gap,
        error,
        rank_,
        finite(chosen.error),
        finite(chosen.bound),
        excess,
        sentence if excess is None else str(chosen),
        finite(chosen.ridge),
        finite(chosen.total),
        finite(chosen.error_without_ridge),
        finite(chosen.bound_without_ridge),
    )


def _representatives(model: Any, names: Sequence[Any] | None) -> list[Representative]:
    found, selection = [], model.selection_
    for place, (row, member) in enumerate(zip(selection.rows.tolist(), selection.members.tolist(), strict=True)):
        why = model.explain(row)
        found.append(
            Representative(
                rank=place,
                row=row,
                name=None if names is None else str(names[row]),
                stands_for=why.stands_for,
                gain=finite(selection.gains[place]),
                influence=why.influence,
                effective_count=why.effective_count,
                is_outlier=bool(selection.outlier_rows[member]),
                reason=why.reason,
                members=list(why.members),
            )
        )
    return found


def _outliers(estimator: Any, names: Sequence[Any] | None, with_groups: bool) -> OutlierPart:
    selection: Selection = estimator.selection_
    counts, is_outlier = selection.counts_of_rows, selection.outlier_rows
    odd = np.flatnonzero(is_outlier)
    odd = odd[np.argsort(counts[odd], kind="stable")[:MOST_OUTLIERS]]
    rows = selection.material.rows_in_data(odd).tolist()
    reasons = [explain(estimator, row).reason for row in rows]
    threshold = count_threshold(estimator)
    edges = histogram_edges(np.log(counts), None if threshold is None else float(np.log(threshold)))
    belonging, outlying = (np.histogram(np.log(counts[side]), edges)[0].tolist() for side in (~is_outlier, is_outlier))
    return OutlierPart(
        threshold,
        selection.cut.rule,
        [
            OutlierRow(row, None if names is None else str(names[row]), float(count), reason)
            for row, count, reason in zip(rows, counts[odd], reasons, strict=True)
        ],
        edges.tolist(),
        belonging,
        outlying,
        protected=0 if selection.protected is None else int(selection.protected.sum()),
        trade_off=_trade_off(selection) if with_groups else [],
    )


def _trade_off(selection: Selection) -> list[TradeOff]:
    """Numbers of outliers for other values of ``min_group``."""
    material, low = selection.material, selection.is_outlier.copy()
    if selection.groups is not None:
        low |= selection.groups.members
    if not 0 < low.sum() <= MOST_IN_GROUPS:
        return []
    weights = material.points.weights
    sizes, _ = group_sizes(material.kernel, low, weights)
    return [TradeOff(size, round(float(weights[low & (sizes < size)].sum()))) for size in GROUP_SIZES]


def histogram_edges(values: FloatArray, threshold: float | None, most: int = MOST_BINS) -> FloatArray:
    """Edges t + j·w of equal bins that cover all values; t is the threshold, or the lowest value if there is none.

    There are about ``most`` bins, and fewer for few values.

    Examples
    --------
    >>> histogram_edges(np.array([0.0, 3.0, 4.0]), 1.5).round(3).tolist()
    [-0.1, 0.3, 0.7, 1.1, 1.5, 1.9, 2.3, 2.7, 3.1, 3.5, 3.9, 4.3]
    """
    low, high = float(values.min()), float(values.max())
    start = low if threshold is None else threshold
    width = (high - low) / np.clip(2 * int(np.sqrt(len(values))), 10, most)
    if width < 1e-9:  # all values are equal, and a bar needs a width
        width = 0.1
    first, last = int(np.floor((low - start) / width)), int(np.ceil((high - start) / width))
    edges = start + width * np.arange(first, max(last, first + 1) + 1)
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)  # rounding must not lose the extremes
    return np.asarray(edges)


def _curve(selection: Selection) -> CurvePart:
    """The curve of a ranking. It is long enough to show the suggested number."""
    k = len(selection.rows)
    open_ended = replace(selection, settings=curve_settings(selection.settings))
    limit = min(max(k, MOST_AUTOMATIC), LONGEST_CURVE)
    members, similarity, coverage = rank(open_ended, limit)
    best = min(suggested_number(open_ended), len(members))
    length = min(len(members), max(2 * k, SHORTEST_CURVE, best), limit)
    return CurvePart(
        list(range(1, length + 1)),
        selection.material.rows_in_data(members[:length]).tolist(),
        similarity[:length].tolist(),
        coverage[:length].tolist(),
        best,
    )


def _settings(estimator: Any, detects: bool) -> dict[str, Any]:
    selection: Selection = estimator.selection_
    solved = selection.material.solved if selection.is_solved else None
    settings = {
        "parameters": jsonable(estimator.get_params(deep=False)),
        "alpha": None if solved is None else finite(solved.alpha),
        "lam": None if solved is None else finite(solved.lam),
        "gamma": finite(estimator.gamma_),
        "n_iter": None if solved is None else int(solved.n_iter),
        "sentences": list(estimator.explain()),
        "constraints": None,
        "versions": versions(),
    }
    if not detects:
        constraints = selection.material.constraints
        settings["constraints"] = {
            "must_include": selection.material.rows_in_data(constraints.must).tolist(),
            "n_not_allowed": int((~constraints.allowed).sum()),
            "quotas": jsonable(constraints.quotas),
        }
    return settings
