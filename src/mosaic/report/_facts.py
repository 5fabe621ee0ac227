"""All that the page shows, as plain data: the page does no more than draw it, and chooses k and threshold among what is here."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.estimators._certificate import excess
from mosaic.inspection import Summary
from mosaic.inspection._card import sentence
from mosaic.inspection._parts import counted
from mosaic.inspection._plain import finite
from mosaic.inspection._plane import framed, plane_of_kernel
from mosaic.inspection._summary import histogram_edges, summarise
from mosaic.metrics import unexplained_along
from mosaic.report._ranking import Changes, Ranking, changes_of, ranking_of
from mosaic.report._subject import LONGEST_NAME, SMALL, Subject, shortened

#: Points on the map, and the part of them that is for the lowest counts, where the threshold moves.
MOST_POINTS, LOW_SHARE = 20_000, 0.25
#: Bins of the histogram, which are also the steps of the threshold.
BINS = 120
#: Rows with the lowest counts that are listed.
MOST_LISTED = 100
#: Bytes that names of points on the map may take, and pictures.
MOST_NAMES, MOST_PICTURES = 600_000, 1_200_000
#: Multiplications that the proof for all k of the slider may take.
MOST_PRODUCTS = 10**10
#: Groups that are told apart; all others are one.
MOST_GROUPS = 40


@dataclass(frozen=True)
class Fit:
    """A fitted selector, in the distinct points that are in memory: all of them, or the sample of a fit by passes."""

    model: Any

    @cached_property
    def inner(self) -> Any:
        """The model of the points in memory."""
        return self.model._passes.model if self.by_passes else self.model

    @property
    def by_passes(self) -> bool:
        """Whether numbers of rows are scaled up from a sample."""
        return "_passes" in vars(self.model)

    @cached_property
    def rows(self) -> IntArray:
        """Row of the data that each distinct point is, its first."""
        first = self.inner._solved.points.first
        return np.asarray(self.model._passes.sketch.sample.first[first] if self.by_passes else first)

    @cached_property
    def copies(self) -> FloatArray:
        """Rows that each distinct point is, or stands for in the sample."""
        points = self.inner._solved.points
        if self.by_passes:
            return np.asarray(points.weights)
        return np.bincount(points.group[points.group >= 0], minlength=points.n).astype(np.float64)

    @property
    def counts(self) -> FloatArray:
        """Effective counts."""
        return np.asarray(self.inner._solved.counts)

    @property
    def is_outlier(self) -> BoolArray:
        """Of the distinct points."""
        return np.asarray(self.inner._choice.is_outlier)


@dataclass(frozen=True)
class Bins:
    """Effective counts in steps; the threshold of the fit is one of the edges."""

    edges: FloatArray
    threshold: int
    of: IntArray
    protected: BoolArray

    @classmethod
    def of_fit(cls, fit: Fit) -> Bins:
        """Bins of the distinct points; who is below the threshold and no outlier all the same is put to the highest counts."""
        counts, cut = fit.counts, float(fit.inner._choice.cut.count)
        log_edges = histogram_edges(np.log(counts), np.log(cut) if cut > 0 else None, BINS)
        edges = np.exp(log_edges)
        edges[0], edges[-1] = min(edges[0], counts.min()), max(edges[-1], counts.max())
        threshold = 0
        if cut > 0:
            threshold = int(np.abs(log_edges - np.log(cut)).argmin()) if (counts < cut).any() else 0
            edges[threshold] = cut if threshold else edges[0]
        of = np.clip(np.searchsorted(edges, counts, "right") - 1, 0, len(edges) - 2)
        protected = (of < threshold) & ~fit.is_outlier
        return cls(edges, threshold, np.where(protected, len(edges) - 2, of), protected)

    def rows(self, copies: FloatArray) -> FloatArray:
        """Rows in each bin."""
        return np.asarray(np.bincount(self.of, weights=copies, minlength=len(self.edges) - 1), np.float64)


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
    fit = Fit(model)
    summary = summarise(model, parts=frozenset({"bound"} if certificate else ()))
    ranking, bins = ranking_of(fit.inner), Bins.of_fit(fit)
    shown = shown_points(fit.counts, ranking.points, max_points, fit.inner._solved.random_state)
    changes = changes_of(fit.inner._solved.kernel, ranking.points, fit.copies, shown)
    group_of, groups = _groups(fit, subject, bins)
    picks, lowest, columns = _entries(fit, subject, summary, ranking, changes, bins, shown, group_of)
    k = len(summary.representatives or [])
    return {
        "title": title or f"{counted(k, 'representative')} of {counted(summary.n_points, 'point')}",
        "sentence": sentence(summary),
        "file": None if subject.file is None else {"name": shortened(subject.file, 200), "kind": subject.kind},
        "n": summary.n_points,
        "n_features": summary.n_features,
        "k": k,
        "n_outliers": summary.n_outliers,
        "scaled": fit.by_passes,
        "rejects": fit.inner._wanted.outliers == "reject",
        "ranking": picks,
        "columns": columns,
        "coverage": _rounded(ranking.coverage, 5),
        "similarity": _rounded(ranking.similarity, 5),
        "knee": ranking.knee,
        "moves": _moves(changes),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.rows(fit.copies)),
            "threshold": bins.threshold,
            "protected": round(float(fit.copies[bins.protected].sum())),
        },
        "lowest": lowest,
        "map": _map(fit, subject, bins, changes, shown, group_of),
        "groups": groups,
        "certificate": _certificate(fit, summary, ranking, k),
        "settings": _settings(summary, subject, command),
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


def _entries(
    fit: Fit,
    subject: Subject,
    summary: Summary,
    ranking: Ranking,
    changes: Changes,
    bins: Bins,
    shown: IntArray,
    group_of: IntArray,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """The ranked, the rows with the lowest counts, and the headers of their cells."""
    chosen = {pick.row: pick for pick in summary.representatives or []}
    low = np.argsort(fit.counts + np.where(bins.protected, np.inf, 0.0), kind="stable")[:MOST_LISTED]
    low = low[np.isfinite(fit.counts[low])]
    points = np.concatenate([ranking.points, low])
    rows, n_ranks = fit.rows[points], len(ranking.points)
    members = [shown[found] for found in changes.members]
    beside = np.concatenate(members) if members else np.zeros(0, np.intp)
    everyone = np.concatenate([rows, fit.rows[beside]])
    names = subject.names(everyone)
    pictures = affordable([*subject.pictures(rows), *subject.pictures(everyone[len(rows) :], SMALL)])
    columns, cells = subject.cells(rows)
    numbers = subject.numbers(everyone).tolist()
    entries = []
    for i, (point, row) in enumerate(zip(points.tolist(), rows.tolist(), strict=True)):
        entries.append(
            {
                "row": numbers[i],
                "name": None if names is None else names[i],
                "reason": _reason(fit, chosen, row, i, n_ranks),
                "count": float(f"{fit.counts[point]:.4g}"),
                "bin": int(bins.of[point]),
                "group": int(group_of[point]),
                "cells": cells[i],
                "picture": pictures[i],
            }
        )
    at = len(points)
    for rank, found in enumerate(members):
        pick = chosen.get(int(rows[rank]))
        entries[rank]["stands_for"] = 0 if pick is None else pick.stands_for
        entries[rank]["beyond"] = pick is None
        entries[rank]["members"] = [
            {"row": numbers[j], "name": None if names is None else names[j], "picture": pictures[j]}
            for j in range(at, at + len(found))
        ]
        at += len(found)
    return entries[:n_ranks], entries[n_ranks:], columns


def _reason(fit: Fit, chosen: dict[int, Any], row: int, place: int, n_ranks: int) -> str:
    """Why, in words that stay true whatever k and threshold the page shows."""
    if place >= n_ranks:
        return str(fit.model.explain(row).reason)
    if row not in chosen:
        return "would come next, adding most to those before it."
    if row in fit.inner._solved.demands.must and not fit.by_passes:
        return "had to be included."
    gain = chosen[row].gain or 0.0
    if fit.inner._wanted.mode == "paper":
        return f"its influence, the norm of its row in the encoding, is {gain:.3g}."
    return f"adds {gain:.3g} to the mean similarity of the points to their nearest pick."


def affordable(pictures: list[str | None], limit: int = MOST_PICTURES) -> list[str | None]:
    """Pictures, as long as they are not too many bytes; the first come first.

    Examples
    --------
    >>> affordable(["123", None, "45678", "9"], 8)
    ['123', None, '45678', None]
    """
    sizes = np.cumsum([0 if picture is None else len(picture) for picture in pictures])
    return [picture if size <= limit else None for picture, size in zip(pictures, sizes.tolist(), strict=True)]


def _groups(fit: Fit, subject: Subject, bins: Bins) -> tuple[IntArray, dict[str, Any] | None]:
    """For each distinct point its group, and the rows of each group by bin."""
    labels = _labels(fit, subject)
    if labels is None:
        return np.full(len(fit.counts), -1), None
    values, of = np.unique(np.array([shortened(label, LONGEST_NAME) for label in labels]), return_inverse=True)
    sizes = np.bincount(of, weights=fit.copies)
    order = np.argsort(-sizes, kind="stable")
    named = [str(values[i]) for i in order[:MOST_GROUPS]]
    if len(order) > MOST_GROUPS:
        named.append(f"{len(order) - MOST_GROUPS} others")
    place = np.empty(len(order), np.intp)
    place[order] = np.minimum(np.arange(len(order)), MOST_GROUPS)
    of = place[of]
    table = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(table, (of, bins.of), fit.copies)
    return of, {
        "column": shortened(subject.group_name, LONGEST_NAME),
        "labels": named,
        "rows": _numbers(table.sum(axis=1)),
        "low": [_numbers(row) for row in table],
    }


def _labels(fit: Fit, subject: Subject) -> Sequence[Any] | None:
    """The group of each distinct point: as given for the report, or as was given to fit."""
    if subject.groups is not None:
        return [subject.groups[int(row)] for row in fit.rows]
    demands = fit.inner._solved.demands
    if len(demands.names) < 2:
        return None
    return [demands.names[group] for group in demands.group[fit.inner._solved.points.first]]


def _map(
    fit: Fit, subject: Subject, bins: Bins, changes: Changes, shown: IntArray, group_of: IntArray
) -> dict[str, Any]:
    inner = fit.inner
    belongs = ~fit.is_outlier[shown]
    names = getattr(inner, "feature_names_in_", None)
    rng = np.random.default_rng(inner._solved.random_state)
    labels = None if names is None else [shortened(name, LONGEST_NAME) for name in names]
    plane = plane_of_kernel(inner._solved.kernel, shown, inner._choice.points, belongs, labels, rng)
    points = plane.points
    if plane.method == "features" and inner.column_scale_ is not None:  # back in the units that the axes are named in
        points = points * inner.column_scale_
    frame = framed(points, belongs)
    steps = np.round(65535 * frame.shares)
    left_out = np.setdiff1d(np.arange(len(fit.counts)), shown)
    rows = fit.rows[shown]
    called = subject.names(rows)
    if called is not None and len(json.dumps(called)) > MOST_NAMES:
        called = None
    return {
        "method": plane.method,
        "axes": list(plane.axes),
        "n": len(shown),
        "of": len(fit.counts),
        "range": [float(f"{edge:.6g}") for edges in zip(frame.low, frame.high, strict=True) for edge in edges],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
        "row": packed(subject.numbers(rows), "u4"),
        "bin": packed(bins.of[shown], "u1"),
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
    if proven.excess is not None and not fit.by_passes and fit.copies.size * len(ranking.points) ** 2 <= MOST_PRODUCTS:
        bounds, solved = fit.model.certificate_.bounds, fit.inner._solved
        left = unexplained_along(solved.kernel, ranking.points, bounds.ridge, solved.points.weights)
        found = [finite(excess(float(error), bounds.at(j))) for j, error in enumerate(left, 1)]
        excesses = [None if value is None else float(f"{value:.3g}") for value in found]
    return {"sentence": proven.sentence, "excess": proven.excess, "excesses": excesses, "gap": proven.gap, "k": k}


def _settings(summary: Summary, subject: Subject, command: str | None) -> dict[str, Any]:
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
        "notes": list(subject.notes),
    }


def packed(values: Any, kind: str) -> str:
    """Base64 of little-endian numbers.

    Examples
    --------
    >>> packed([1, 258], "u2")
    'AQACAQ=='
    """
    return base64.b64encode(np.asarray(values).astype(f"<{kind}").tobytes()).decode()


def _rounded(values: Any, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _numbers(values: FloatArray) -> list[float]:
    """Whole numbers as such, others with one digit."""
    return [int(value) if float(value).is_integer() else round(float(value), 1) for value in values]
