"""All that the page shows, as plain data: the page does no more than draw it, and chooses k and threshold among what is here."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray
from mosaic.choosing import excess
from mosaic.exceptions import InvalidInputError
from mosaic.inspection import Summary
from mosaic.inspection.facts import counted
from mosaic.inspection.jsonable import finite
from mosaic.inspection.projection import framed, plane_of_kernel
from mosaic.inspection.summaries import summarise
from mosaic.metrics import unexplained_along
from mosaic.report._entries import MOST_NAMES, bytes_of, entries_of
from mosaic.report._fit import Bins, Fit
from mosaic.report._ranking import Changes, Ranking, affordable_for_all, changes_of, ranking_of
from mosaic.report._subject import LONGEST_NAME, Subject, shortened

#: Points on the map, and the part of them that is for the lowest counts, where the threshold moves.
MOST_POINTS, LOW_SHARE = 20_000, 0.25
#: Groups that are told apart; all others are one.
MOST_GROUPS = 40


def facts_of(
    model: Any,
    subject: Subject,
    *,
    title: str | None = None,
    command: str | None = None,
    certificate: bool = True,
    max_points: int = MOST_POINTS,
) -> dict[str, Any]:
    """Everything on the page, in lists, numbers, strings, and base64 of little-endian integers where there are many."""
    if isinstance(max_points, bool) or not isinstance(max_points, Integral) or max_points < 1:
        raise InvalidInputError(f"max_points must be a whole number >= 1; got {max_points!r}.")
    fit, notes = Fit(model), list(subject.notes)
    if certificate and not fit.selection.can_be_proven:
        certificate = False
        notes.append(
            "Nothing is proven here about the number: the model was saved or copied, and its rows did not come with it."
        )
    if fit.n_without_weight:
        notes.append(f"{counted(fit.n_without_weight, 'row')} without weight took no part and are in no number here.")
    summary = summarise(model, parts=frozenset({"curve"} | ({"bound"} if certificate else set())))
    k = len(summary.representatives or [])
    knee = None if fit.selection.settings.mode == "paper" or summary.curve is None else summary.curve.knee
    ranking, bins = ranking_of(fit, knee or 0), Bins.of_fit(fit)
    shown = shown_points(fit.counts, ranking.points, int(max_points), fit.material.seed)
    aside = fit.is_outlier & (fit.outliers == "reject")
    changes = changes_of(fit.kernel, ranking.points, fit.copies, shown, k, aside)
    row_of = fit.rows(fit.points.first)
    row_of[ranking.points] = fit.rows(ranking.members)
    group_of, groups = _groups(fit, subject, bins, ranking)
    entries = entries_of(fit, subject, summary, ranking, changes, bins, shown, row_of, group_of)
    may_be = np.where(bins.safe, 0.0, fit.copies)
    return {
        "title": title or f"{counted(k, 'representative')} of {counted(fit.n, 'point')}",
        "file": None if subject.file is None else {"name": shortened(subject.file, 200), "kind": subject.kind},
        "n": fit.n,
        "n_features": summary.n_features,
        "k": k,
        "n_outliers": round(float(bins.rows(may_be)[: bins.threshold].sum())),
        "scaled": fit.by_passes,
        "outliers": fit.outliers,
        "ranking": entries.ranked,
        "columns": entries.columns,
        "static_cells": entries.static_cells,
        "coverage": [round(float(share), 8) for share in ranking.coverage],
        "similarity": [round(float(value), 5) for value in ranking.similarity],
        "knee": knee if knee is not None and knee <= len(ranking.points) else None,
        "moves": _moves(changes),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.rows(fit.copies)),
            "safe": _numbers(bins.rows(fit.copies - may_be)),
            "threshold": bins.threshold,
            "grouped": round(float(fit.copies[bins.grouped].sum())),
            "must": round(float(fit.copies[bins.must].sum())),
        },
        "lowest": entries.lowest,
        "map": _map(fit, subject, bins, changes, shown, row_of, group_of),
        "groups": groups,
        "certificate": _certificate(fit, summary, ranking, k),
        "settings": _settings(summary, notes, command),
    }


def shown_points(counts: FloatArray, ranked: IntArray, limit: int, seed: int) -> IntArray:
    """Everybody, if no more than ``limit``; else the ranked, those with the lowest counts, and a random part of the others."""
    n = len(counts)
    if n <= limit:
        return np.arange(n)
    lowest = np.argsort(counts, kind="stable")[: int(LOW_SHARE * limit)]
    kept = np.union1d(ranked, lowest)
    others = np.setdiff1d(np.arange(n), kept)
    room = min(max(limit - len(kept), 0), len(others))
    return np.union1d(kept, np.random.default_rng(seed).choice(others, room, replace=False))


def _groups(fit: Fit, subject: Subject, bins: Bins, ranking: Ranking) -> tuple[IntArray, dict[str, Any] | None]:
    """For each distinct point the group of the row that it goes by, and rows of each group, by bin those that may be outliers."""
    labels, first = _labels(fit, subject), np.full(fit.points.n, -1, np.intp)
    if labels is None:
        return first, None
    values, of = np.unique(np.array([shortened(label, LONGEST_NAME) for label in labels]), return_inverse=True)
    sizes = np.bincount(of, weights=fit.weight_of)
    order = np.argsort(-sizes, kind="stable")
    named = [str(values[i]) for i in order[:MOST_GROUPS]]
    if len(order) > MOST_GROUPS:
        named.append(f"{len(order) - MOST_GROUPS} others")
    place = np.empty(len(order), np.intp)
    place[order] = np.minimum(np.arange(len(order)), MOST_GROUPS)
    of = place[of]
    low = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of[fit.point_of]), fit.weight_of * ~bins.safe[fit.point_of])
    first[fit.point_of[::-1]] = of[::-1]  # of copies the first
    first[ranking.points] = of[np.searchsorted(fit.members, ranking.members)]
    return first, {
        "column": shortened(subject.group_name, LONGEST_NAME),
        "labels": named,
        "rows": _numbers(np.bincount(of, weights=fit.weight_of, minlength=len(named))),
        "low": [_numbers(row) for row in low],
    }


def _labels(fit: Fit, subject: Subject) -> Sequence[Any] | None:
    """The group of each row in memory that counts: as given for the report, or as was given to fit."""
    if subject.groups is not None:
        return [subject.groups[int(row)] for row in fit.rows(fit.members)]
    demands = fit.material.constraints
    return None if len(demands.names) < 2 else [demands.names[group] for group in demands.group[fit.members]]


def _map(
    fit: Fit, subject: Subject, bins: Bins, changes: Changes, shown: IntArray, row_of: IntArray, group_of: IntArray
) -> dict[str, Any]:
    inner = fit.model
    belongs = ~fit.is_outlier[shown]
    names = getattr(inner, "feature_names_in_", None)
    rng = np.random.default_rng(fit.material.seed)
    labels = None if names is None else [shortened(name, LONGEST_NAME) for name in names]
    plane = plane_of_kernel(fit.kernel, shown, fit.selection.chosen, belongs, labels, rng)
    points = plane.points
    if plane.method == "features" and inner.column_scale_ is not None:  # back in the units that the axes are named in
        points = points * inner.column_scale_
    frame = framed(points, belongs)
    steps = np.round(65535 * frame.shares)
    left_out = np.setdiff1d(np.arange(fit.points.n), shown)
    rows = row_of[shown]
    called = subject.names(rows)
    if called is not None:
        called = [shortened(name, LONGEST_NAME) for name in called]
        called = called if bytes_of(json.dumps(called, ensure_ascii=False)) <= MOST_NAMES else None
    return {
        "method": plane.method,
        "axes": list(plane.axes),
        "n": len(shown),
        "of": fit.points.n,
        "range": [float(f"{edge:.6g}") for edges in zip(frame.low, frame.high, strict=True) for edge in edges],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
        "row": packed(subject.numbers(rows), "u4"),
        "bin": packed(bins.of[shown], "u1"),
        "safe": packed(bins.safe[shown], "u1") if bins.safe.any() else None,
        "copies": packed(np.round(fit.copies[shown]), "u4") if (fit.copies != 1).any() else None,
        "group": None if (group_of < 0).all() else packed(group_of[shown], "i2"),
        "names": called,
        "history": packed(changes.ranks, "u2"),
        "history_end": packed(changes.end, "u4"),
        # All rows below a threshold of so many bins are on the map.
        "low_complete": int(bins.of[left_out].min()) if len(left_out) else len(bins.edges) - 1,
    }


def _moves(changes: Changes) -> list[list[list[float]]]:
    """For each rank, from whom it takes over how many rows; -1 for those that had nobody."""
    arrivals = changes.moves.tocsc()
    n_ranks = arrivals.shape[1]
    taken = []
    for j in range(n_ranks):
        part = slice(arrivals.indptr[j], arrivals.indptr[j + 1])
        before, rows = arrivals.indices[part].tolist(), _numbers(arrivals.data[part])
        taken.append([[-1 if i == n_ranks else i, number] for i, number in zip(before, rows, strict=True)])
    return taken


def _certificate(fit: Fit, summary: Summary, ranking: Ranking, k: int) -> dict[str, Any]:
    """What is proven for the chosen k and, where it is no long work, for every other k of the slider.

    One solution bounds what sets of any size leave; it is tightest for the chosen k.
    """
    proven, excesses = summary.certificate, None
    if proven.excess is not None and not fit.by_passes and affordable_for_all(fit, len(ranking.points)):
        bounds = fit.selection.certificate.bounds
        left = unexplained_along(fit.kernel, ranking.points, bounds.ridge, fit.points.weights)
        found = [finite(excess(float(error), bounds.at(j))) for j, error in enumerate(left, 1)]
        excesses = [None if value is None else float(f"{value:.3g}") for value in found]
    ridge = None if proven.ridge is None else f"{proven.ridge:.3g}"
    return {"sentence": proven.sentence, "excess": proven.excess, "excesses": excesses, "k": k, "ridge": ridge}


def _settings(summary: Summary, notes: list[str], command: str | None) -> dict[str, Any]:
    settings = summary.settings
    parameters = {
        name: value for name, value in settings["parameters"].items() if name not in ("verbose", "random_state")
    }
    return {
        "sentences": settings["sentences"],
        "parameters": [[name, shortened(json.dumps(value), 200)] for name, value in parameters.items()],
        "versions": [[name, version] for name, version in settings["versions"].items()],
        "seed": str(settings["parameters"].get("random_state")),
        "command": command,
        "notes": notes,
    }


def packed(values: Any, kind: str) -> str:
    """Base64 of little-endian numbers.

    Examples
    --------
    >>> packed([1, 258], "u2")
    'AQACAQ=='
    """
    return base64.b64encode(np.asarray(values).astype(f"<{kind}").tobytes()).decode()


def _numbers(values: Any) -> list[float]:
    """Whole numbers as such, others with one digit."""
    return [int(value) if float(value).is_integer() else round(float(value), 1) for value in values]
