"""From a fitted estimator to its summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray
from mosaic._frames import n_rows
from mosaic.estimators._choice import MOST_AUTOMATIC, rank
from mosaic.estimators._groups import group_sizes
from mosaic.estimators._solving import seed_of
from mosaic.exceptions import InvalidInputError
from mosaic.inspection._explain import check_estimator, count_threshold, explain_detected
from mosaic.inspection._map import point_map
from mosaic.inspection._parts import (
    CertificatePart,
    CurvePart,
    OutlierPart,
    OutlierRow,
    Representative,
    Summary,
    TradeOff,
)
from mosaic.inspection._plain import finite, plain, versions
from mosaic.selection import knee

#: Outliers that are listed, and bins of the histogram, at most.
MOST_OUTLIERS, MOST_BINS = 50, 40
#: The curve reaches twice the chosen k and no less than this, but not beyond what an automatic choice looks at …
SHORTEST_CURVE = 20
#: … unless more are chosen; their explained share takes time that grows with the square of their number.
LONGEST_CURVE = 1000
#: Sizes of groups that might be protected, and outliers up to which it is tried.
GROUP_SIZES, MOST_IN_GROUPS = (3, 5, 10, 20, 50), 2000
ALL_PARTS = frozenset({"bound", "map", "curve", "groups"})


def summary(
    estimator: Any,
    X: Any = None,
    *,
    names: Sequence[Any] | None = None,
    certificate: bool = True,
    max_points: int = 2000,
    random_state: int = 0,
) -> Summary:
    """What a fit has found, as plain data: all that a report or a picture is made of.

    Parameters
    ----------
    estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    X : what ``fit`` was given. A detector keeps no points, so its map needs X; the others do without
    names : what the rows are called, one for each, if not by their number
    certificate : whether to bound what the best k points would leave, which solves one more program
    max_points : rows on the map. All representatives are among them, outliers take a quarter at most, the others are drawn
    random_state : seed of that draw

    Returns
    -------
    Summary

    Notes
    -----
    1. For kernels that compare distances (rbf, laplacian, diffusion) the map shows two features as they are, and of more the two
       principal axes; for other kernels the principal axes of the kernel's own space, as far as representatives and other
       landmarks, 200 in all, span it. Axes are those of the points that belong. Rows without weight are not on the map.
    2. The curve ignores quotas, as ``mosaic.path`` does. On large data it is estimated from a sample.

    Examples
    --------
    >>> import json
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import summary
    >>> facts = summary(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> facts.title
    '20 representatives of 400 points, 8 outliers'
    >>> len(facts.representatives), facts.map.method, facts.outliers.rule
    (20, 'features', 'isolated')
    >>> json.loads(json.dumps(facts.to_dict()))["n_outliers"]
    8
    """
    parts = ALL_PARTS if certificate else ALL_PARTS - {"bound"}
    return summarise(estimator, X, names=names, max_points=max_points, random_state=random_state, parts=parts)


def summarise(
    estimator: Any,
    X: Any = None,
    *,
    names: Sequence[Any] | None = None,
    max_points: int = 2000,
    random_state: int = 0,
    parts: frozenset[str] = frozenset(),
) -> Summary:
    """The summary with those of its costly parts that are wanted: "bound", "map", "curve", "groups"."""
    if "_passes" in vars(estimator):
        return _by_passes(estimator, names, max_points, random_state, parts)
    detects = check_estimator(estimator)
    n = len(estimator.is_outlier_)
    if X is not None and n_rows(X) != n:
        raise InvalidInputError(f"X must have the {n} rows of fit, in their order; it has {n_rows(X)}.")
    if names is not None and len(names) != n:
        raise InvalidInputError(f"names must have one entry for each of {n} rows; got {len(names)}.")
    names = None if names is None else list(names)  # a series is asked for labels, a list for places
    if not isinstance(max_points, Integral) or max_points < 1:
        raise InvalidInputError(f"max_points must be a whole number >= 1; got {max_points!r}.")
    curve = _curve(estimator) if "curve" in parts and not detects else None
    features = getattr(estimator, "feature_names_in_", None)
    return Summary(
        estimator=type(estimator).__name__,
        n_points=n,
        n_features=int(estimator.n_features_in_),
        feature_names=None if features is None else [str(name) for name in features],
        n_outliers=int(estimator.is_outlier_.sum()),
        n_representatives=None if detects else int(estimator.n_representatives_),
        coverage=None if detects else finite(estimator.coverage_),
        certificate=_detected_certificate(estimator) if detects else _certificate(estimator, "bound" in parts),
        map=point_map(estimator, X, names, curve, max_points, random_state) if "map" in parts else None,
        representatives=None if detects else _representatives(estimator, names),
        outliers=_outliers(estimator, names, parts),
        curve=curve,
        settings=_settings(estimator),
    )


def _by_passes(
    model: Any, names: Sequence[Any] | None, max_points: int, random_state: int, parts: frozenset[str]
) -> Summary:
    """The summary of the points in memory, in rows of the data; the certificate is that of all rows.

    Numbers of outliers and of rows that a pick stands for are scaled up from the sample.
    """
    inner, first, n = model._passes.model, model._passes.sketch.sample.first, model._passes.n
    if names is not None and len(names) != n:
        raise InvalidInputError(f"names must have one entry for each of {n} rows; got {len(names)}.")
    called = None if names is None else [names[int(row)] for row in first]
    facts = summarise(
        inner, None, names=called, max_points=max_points, random_state=random_state, parts=parts - {"bound"}
    )
    weights = model._solved.points.weights
    picks = [
        replace(
            pick,
            row=int(first[pick.row]),
            stands_for=round(float(weights[inner.labels_ == pick.rank].sum())),
            reason=model.explain(int(first[pick.row])).reason,
            members=[int(first[row]) for row in pick.members],
        )
        for pick in facts.representatives or []
    ]
    lowest = [replace(outlier, row=int(first[outlier.row])) for outlier in facts.outliers.lowest]
    return replace(
        facts,
        n_points=n,
        scaled=True,
        n_outliers=round(float(weights[inner.is_outlier_].sum())),
        certificate=_certificate(model, "bound" in parts),
        map=None if facts.map is None else replace(facts.map, row=[int(first[row]) for row in facts.map.row]),
        representatives=picks,
        outliers=replace(facts.outliers, lowest=lowest),
        curve=None if facts.curve is None else replace(facts.curve, row=[int(first[row]) for row in facts.curve.row]),
    )


def _certificate(model: Any, with_bound: bool) -> CertificatePart:
    proven = model._encoding_certificate
    if not with_bound:
        return _detected_certificate(model)
    chosen = model.certificate_
    excess = finite(chosen.excess)
    return CertificatePart(
        gap=finite(proven.gap),
        kernel_error=finite(proven.kernel_error),
        rank=int(proven.rank),
        error=finite(chosen.error),
        bound=finite(chosen.bound),
        excess=excess,
        sentence=str(chosen) if excess is not None else _sentence(proven),
    )


def _detected_certificate(estimator: Any) -> CertificatePart:
    """What is proven about the encoding alone."""
    proven = getattr(estimator, "_encoding_certificate", None) or estimator.certificate_
    gap, error = finite(proven.gap), finite(proven.kernel_error)
    return CertificatePart(gap, error, int(proven.rank), None, None, None, _sentence(proven))


def _sentence(proven: Any) -> str:
    if finite(proven.suboptimality) is None:
        return f"The program behind this is solved to a gap of {100 * proven.gap:.2g} %."
    return f"The program behind this is solved {proven}."


def _representatives(model: Any, names: Sequence[Any] | None) -> list[Representative]:
    found = []
    for place, row in enumerate(model.representative_indices_.tolist()):
        why = model.explain(row)
        found.append(
            Representative(
                rank=place,
                row=row,
                name=_name(names, row),
                stands_for=why.stands_for,
                gain=finite(model._choice.gains[place]),
                influence=why.influence,
                effective_count=why.effective_count,
                is_outlier=bool(model.is_outlier_[row]),
                reason=why.reason,
                members=list(why.members),
            )
        )
    return found


def _outliers(estimator: Any, names: Sequence[Any] | None, parts: frozenset[str]) -> OutlierPart:
    detects = check_estimator(estimator)
    counts, is_outlier = estimator.effective_count_, estimator.is_outlier_
    rows = np.flatnonzero(is_outlier)
    rows = rows[np.argsort(counts[rows], kind="stable")[:MOST_OUTLIERS]].tolist()
    reasons = [(explain_detected(estimator, row) if detects else estimator.explain(row)).reason for row in rows]
    threshold = count_threshold(estimator)
    edges = histogram_edges(np.log(counts), None if threshold is None else float(np.log(threshold)))
    belonging, outlying = (np.histogram(np.log(counts[side]), edges)[0].tolist() for side in (~is_outlier, is_outlier))
    return OutlierPart(
        threshold,
        str(estimator.threshold_rule_ if detects else estimator._choice.cut.rule),
        [
            OutlierRow(row, _name(names, row), float(counts[row]), reason)
            for row, reason in zip(rows, reasons, strict=True)
        ],
        edges.tolist(),
        belonging,
        outlying,
        protected=_protected(estimator, detects),
        trade_off=_trade_off(estimator, detects) if "groups" in parts else [],
    )


def _protected(estimator: Any, detects: bool) -> int:
    if detects:
        return 0 if estimator._protected is None else int(estimator._protected.sum())
    groups, points = estimator._choice.groups, estimator._solved.points
    return 0 if groups is None else int(points.spread(groups.members, False).sum())


def _trade_off(estimator: Any, detects: bool) -> list[TradeOff]:
    """What other sizes of groups would protect."""
    if detects:
        kernel, low, weights = estimator._scales.wide_kernel, estimator._reference_low, estimator._scales.weights
    else:
        choice, points = estimator._choice, estimator._solved.points
        kernel, weights, low = estimator._solved.kernel, points.weights, choice.is_outlier.copy()
        if choice.groups is not None:
            low |= choice.groups.members
    if not 0 < low.sum() <= MOST_IN_GROUPS:
        return []
    seed = seed_of(estimator.random_state) if detects else estimator._solved.random_state
    sizes, _ = group_sizes(kernel, low, weights, random_state=seed)
    return [TradeOff(size, round(float(weights[low & (sizes < size)].sum()))) for size in GROUP_SIZES]


def histogram_edges(values: FloatArray, threshold: float | None, most: int = MOST_BINS) -> FloatArray:
    """Edges t + j·w of equal bins that cover all values; t is the threshold, or the lowest value if there is none.

    There are ``most`` of them, or a few more; fewer for few values.

    Examples
    --------
    >>> histogram_edges(np.array([0.0, 3.0, 4.0]), 1.5).round(3).tolist()
    [-0.1, 0.3, 0.7, 1.1, 1.5, 1.9, 2.3, 2.7, 3.1, 3.5, 3.9, 4.3]
    """
    low, high = float(values.min()), float(values.max())
    start = low if threshold is None else threshold
    width = (high - low) / np.clip(2 * int(np.sqrt(len(values))), 10, most)
    if width < 1e-9:  # all alike: a bar needs a width nevertheless
        width = 0.1
    first, last = int(np.floor((low - start) / width)), int(np.ceil((high - start) / width))
    edges = start + width * np.arange(first, max(last, first + 1) + 1)
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)  # rounding must not lose the extremes
    return np.asarray(edges)


def _curve(model: Any) -> CurvePart:
    """The ranking goes as far as the automatic choice of k looks, so the knee is the one that it would take."""
    k = int(model.n_representatives_)
    wants = replace(model._wanted, n_representatives="auto", coverage=None, min_support=None)
    limit = min(max(k, MOST_AUTOMATIC), LONGEST_CURVE)
    rows, similarity, coverage = rank(model._solved, wants, limit, model._choice)
    best = knee(similarity[:MOST_AUTOMATIC])
    length = min(len(rows), max(2 * k, SHORTEST_CURVE, best), limit)
    return CurvePart(
        list(range(1, length + 1)),
        rows[:length].tolist(),
        similarity[:length].tolist(),
        coverage[:length].tolist(),
        best,
    )


def _settings(estimator: Any) -> dict[str, Any]:
    settings = {
        "parameters": plain(estimator.get_params(deep=False)),
        "alpha": finite(estimator.alpha_),
        "lam": finite(estimator.lam_),
        "gamma": finite(estimator.gamma_),
        "n_iter": int(estimator.n_iter_),
        "sentences": list(estimator.explain()),
        "constraints": None,
        "versions": versions(),
    }
    if not check_estimator(estimator):
        demands = estimator._solved.demands
        settings["constraints"] = {
            "must_include": demands.must.tolist(),
            "n_not_allowed": int((~demands.allowed).sum()),
            "quotas": plain(demands.quotas),
        }
    return settings


def _name(names: Sequence[Any] | None, row: int) -> str | None:
    return None if names is None else str(names[row])
