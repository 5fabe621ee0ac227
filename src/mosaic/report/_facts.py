"""All data of the page, as plain data. The page draws it for any k and threshold."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from mosaic.arrays.blocks import BoolArray, IntArray
from mosaic.choosing import (
    Selection,
    columns_of,
    contrasts,
    counted,
    excess,
    odd_columns,
    oddities,
    row_of_point,
    typical_columns,
)
from mosaic.exceptions import InvalidInputError
from mosaic.inspection import Summary, summary
from mosaic.inspection.facts import finite
from mosaic.inspection.projection import Plane, framed, plane_of, plane_of_neighbours, thinned
from mosaic.metrics import unexplained_along
from mosaic.report._details import (
    LONGEST_NAME,
    RowDetails,
    cells_within,
    page_bytes,
    shortened,
    within,
)
from mosaic.report._ranking import Changes, CountBins, FittedPoints, Ranking, changes_of, ranking_of

#: Largest number of points on the map.
MOST_POINTS = 20_000
#: Largest number of groups that are shown; all others are shown as one.
MOST_GROUPS = 40
#: Largest number of listed rows with the lowest counts; on a page without representatives.
MOST_LISTED, MOST_LISTED_ALONE = 100, 300
#: Rows that belong beside a row with a low count, where no columns say what is odd about it; how many rows have them.
USUAL_BESIDE, MOST_WITH_USUAL = 3, 24
#: Longer side of the pictures of similar rows, in pixels.
SMALL_PICTURE_SIDE = 48
#: Bytes of the page for names on the map, names in lists, full names, cells, and pictures.
MAP_NAME_BYTES, LISTED_NAME_BYTES, FULL_NAME_BYTES, CELL_BYTES, PICTURE_BYTES = (
    400_000, 200_000, 80_000, 300_000, 650_000,
)  # fmt: skip
#: Largest size of cells, in bytes, that the page contains a second time for readers without JavaScript.
STATIC_CELL_BYTES = 100_000


@dataclass(frozen=True)
class Found:
    """The data from which the parts of the page are made.

    Attributes
    ----------
    shown : points on the map
    row_of : row of the data that names each point
    group_of : number of the group of that row, -1 without groups
    columns : of the rows, for reasons; None where the kernel does not compare columns or they have no names
    axes : names of the features that rows are compared by; None where these are not the columns
    """

    fitted: FittedPoints
    details: RowDetails
    summary: Summary
    ranking: Ranking
    bins: CountBins
    changes: Changes
    shown: IntArray
    row_of: IntArray
    group_of: IntArray
    columns: Any
    axes: list[str] | None

    @property
    def selection(self) -> Selection:
        """The result of the fit."""
        return self.fitted.selection


def facts_of(
    model: Any,
    details: RowDetails,
    *,
    title: str | None,
    command: str | None,
    certificate: bool,
    max_points: int,
    representatives: bool,
) -> dict[str, Any]:
    """Everything on the page as lists, numbers and strings; many integers as base64 of little-endian bytes."""
    if isinstance(max_points, bool) or not isinstance(max_points, Integral) or max_points < 1:
        raise InvalidInputError(
            "must be a whole number >= 1", "It limits the points on the map.", parameter="max_points", value=max_points
        )
    selection: Selection = model.selection_
    fitted, notes = FittedPoints(selection), list(details.notes)
    certificate = certificate and representatives
    if certificate and not selection.can_be_proven:
        certificate = False
        notes.append("There is no certificate: the model was saved or copied without the rows that the proof needs.")
    if fitted.n_without_weight:
        rows = counted(fitted.n_without_weight, "row")
        notes.append(f"{rows} without weight {'was' if fitted.n_without_weight == 1 else 'were'} ignored.")
    known = summary(model, certificate=certificate, parts=("curve",) if representatives else ())
    k, outliers = len(selection.rows) if representatives else 0, selection.settings.outliers
    suggested = None if selection.settings.mode == "paper" or known.curve is None else known.curve.suggested
    ranking = ranking_of(fitted, suggested or 0) if representatives else Ranking.of_nobody()
    bins = CountBins.of_selection(selection)
    counts, copies = np.asarray(selection.material.counts), fitted.copies
    shown = np.arange(len(counts))
    if len(shown) > max_points:  # the threshold moves among the lowest counts
        rng = np.random.default_rng(selection.material.seed)
        shown = thinned(ranking.points, shown, shown, counts, int(max_points), rng)
    aside = selection.is_outlier & (outliers == "reject")
    changes = changes_of(selection.kernel, ranking.points, copies, shown, k, aside)
    row_of = selection.material.rows_in_data(selection.material.points.first).copy()
    row_of[ranking.points] = selection.material.rows_in_data(ranking.members)
    group_of, groups = _groups(fitted, details, bins, ranking)
    columns = columns_of(selection, model.table_, known.feature_names) if selection.usual is not None else None
    axes = known.feature_names if model.table_ is None else None
    found = Found(fitted, details, known, ranking, bins, changes, shown, row_of, group_of, columns, axes)
    may_be_outlier = np.where(bins.safe, 0.0, copies)
    n_outliers = round(float(bins.sums(may_be_outlier)[: bins.threshold].sum()))
    found_title = (
        f"{counted(n_outliers, 'outlier') if n_outliers else 'No outliers'} among {counted(fitted.n, 'point')}"
    )
    return {
        "title": title or (f"{counted(k, 'representative')} of {counted(fitted.n, 'point')}" if k else found_title),
        "file": None if details.file is None else {"name": shortened(details.file, 200), "kind": details.kind},
        "n": fitted.n,
        "n_features": known.n_features,
        "k": k,
        "n_outliers": n_outliers,
        "compared_with": round(selection.material.count_total),
        "scaled": selection.is_sampled,
        "outliers": outliers,
        **_lists(found),
        "coverage": [round(float(share), 8) for share in ranking.coverage],
        "suggested": suggested if suggested is not None and suggested <= len(ranking.points) else None,
        "moves": _moves(changes),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.sums(copies)),
            "safe": _numbers(bins.sums(copies - may_be_outlier)),
            "threshold": bins.threshold,
            "grouped": round(float(copies[bins.grouped].sum())),
            "must": round(float(copies[bins.must].sum())),
        },
        "map": _map(found),
        "groups": groups,
        "certificate": _certificate(found),
        "settings": _settings(known, notes, command),
    }


def _groups(
    fitted: FittedPoints, details: RowDetails, bins: CountBins, ranking: Ranking
) -> tuple[IntArray, dict[str, Any] | None]:
    """The group of each point, and for each group its rows, and by bin those that may be outliers."""
    labels, of_point = _labels(fitted, details), np.full(len(fitted.copies), -1, np.intp)
    if labels is None:
        return of_point, None
    values, of = np.unique(np.array([shortened(label, LONGEST_NAME) for label in labels]), return_inverse=True)
    sizes = np.bincount(of, weights=fitted.weight_of)
    order = np.argsort(-sizes, kind="stable")
    named = [str(values[i]) for i in order[:MOST_GROUPS]]
    if len(order) > MOST_GROUPS:
        named.append(counted(len(order) - MOST_GROUPS, "other"))
    place = np.empty(len(order), np.intp)
    place[order] = np.minimum(np.arange(len(order)), MOST_GROUPS)
    of = place[of]
    low = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of[fitted.point_of]), fitted.weight_of * ~bins.safe[fitted.point_of])
    of_point[fitted.point_of[::-1]] = of[::-1]  # the first of equal rows
    of_point[ranking.points] = of[np.searchsorted(fitted.members, ranking.members)]
    return of_point, {
        "column": shortened(details.group_name, LONGEST_NAME),
        "labels": named,
        "rows": _numbers(np.bincount(of, weights=fitted.weight_of, minlength=len(named))),
        "low": [_numbers(row) for row in low],
    }


def _labels(fitted: FittedPoints, details: RowDetails) -> Sequence[Any] | None:
    """The group of each member: as given for the report, or else as given to fit."""
    material = fitted.selection.material
    if details.groups is not None:
        return [details.groups[int(row)] for row in material.rows_in_data(fitted.members)]
    names = material.constraints.names
    return None if len(names) < 2 else [names[group] for group in material.constraints.group[fitted.members]]


def _lists(found: Found) -> dict[str, Any]:
    """The ranked rows and the rows with the lowest counts, with names, cells and pictures within the size limits."""
    ranking, bins, changes, details = found.ranking, found.bins, found.changes, found.details
    counts, n_ranks = np.asarray(found.selection.material.counts), len(ranking.points)
    most = min(MOST_LISTED if n_ranks else MOST_LISTED_ALONE, int((~bins.safe).sum()))
    low = np.argsort(np.where(bins.safe, np.inf, counts), kind="stable")[:most]
    points = np.concatenate([ranking.points, low])
    beside = [*(found.shown[places] for places in changes.members), *_usual_beside(found, low)]
    rows = found.row_of[np.concatenate([points, *beside])]
    listed, others = rows[: len(points)], rows[len(points) :]
    pictures = within([*details.pictures(listed), *details.pictures(others, SMALL_PICTURE_SIDE)], PICTURE_BYTES)
    cells = cells_within(details.cells(listed), CELL_BYTES)
    numbers, names = details.numbers(rows).tolist(), details.names(rows)
    short: list[str | None] = [None if names is None else shortened(name, LONGEST_NAME) for name in names or numbers]
    full = [name if name != cut else None for name, cut in zip(names or short, short, strict=True)]
    short, full = within(short, LISTED_NAME_BYTES), within(full, FULL_NAME_BYTES)

    def called(i: int) -> dict[str, Any]:
        return {"row": numbers[i], "name": short[i], "picture": pictures[i]}

    entries: list[dict[str, Any]] = []
    at = len(points)
    for i, point in enumerate(points.tolist()):
        entries.append(
            called(i)
            | {
                "full": full[i],
                "count": float(f"{counts[point]:.4g}"),
                "bin": int(bins.of[point]),
                "safe": bool(bins.safe[point]),
                "group": int(found.group_of[point]),
                "copies": 1 if found.selection.is_sampled else int(found.fitted.copies[point]),
                "cells": cells.texts[i],
                "reason": _why_odd(found, point, int(rows[i])) if i >= n_ranks else _why_chosen(found, i),
                "members": [called(at + j) for j in range(len(beside[i]))],
            }
        )
        at += len(beside[i])
    for j, entry in enumerate(entries[:n_ranks]):
        entry["stands_for"] = round(float(changes.stands_for[j])) if j < len(changes.stands_for) else 0
    return {
        "ranking": entries[:n_ranks],
        "lowest": entries[n_ranks:],
        "columns": cells.columns,
        "n_compared": cells.n_compared,
        "places": cells.places,
        "static_cells": page_bytes(cells.texts) <= STATIC_CELL_BYTES,
    }


def _usual_beside(found: Found, low: IntArray) -> list[IntArray]:
    """The nearest points that belong, for points with low counts, where no columns say what is odd about these."""
    usual = np.intersect1d(np.flatnonzero(~found.selection.is_outlier), found.shown)
    if found.columns is not None or not len(usual):
        return [np.zeros(0, np.intp)] * len(low)
    some, rest = low[:MOST_WITH_USUAL], low[MOST_WITH_USUAL:]
    D = found.selection.kernel.distances(some, usual)
    D[some[:, None] == usual] = np.inf
    order = np.argsort(D, axis=1, kind="stable")[:, : min(USUAL_BESIDE, len(usual) - 1)]
    return [*usual[order], *[np.zeros(0, np.intp)] * len(rest)]


def _why_odd(found: Found, point: int, row: int) -> str:
    """In which columns a point with a low count is odd; empty where columns have no names."""
    selection = found.selection
    if found.columns is None:
        return ""
    odd = oddities(odd_columns(selection, found.columns, row_of_point(selection, point), row, point))
    return f"{odd}." if odd else ""


def _why_chosen(found: Found, rank: int) -> str:
    """What is typical of a ranked row, in a text that is true at any k and threshold; empty where columns have no names."""
    point = int(found.ranking.points[rank])
    if found.bins.must[point]:
        return "must be included."
    selection, reason = found.selection, ""
    if found.columns is not None:
        own = row_of_point(selection, point)
        reason = contrasts(typical_columns(selection, found.columns, own, int(found.row_of[point])))
    elif selection.settings.mode == "paper" and rank < len(selection.gains):
        gain = finite(selection.gains[rank]) or 0.0
        reason = f"its influence, the norm of its row in the encoding, is {gain:.3g}"
    if rank >= len(found.changes.stands_for):
        reason = f"would come next: {reason}" if reason else "would come next"
    return f"{reason}." if reason else ""


def _map(found: Found) -> dict[str, Any]:
    selection, shown, bins, changes = found.selection, found.shown, found.bins, found.changes
    belongs, copies = ~selection.is_outlier[shown], found.fitted.copies
    labels = None if found.axes is None else [shortened(name, LONGEST_NAME) for name in found.axes]
    rng = np.random.default_rng(selection.material.seed)
    plane = plane_of(selection, shown, belongs, labels, rng)
    view, other = _view(plane, belongs), None
    if plane.method != "features":
        start, first = framed(plane.points, belongs).shares, np.flatnonzero(np.isin(shown, found.ranking.points))
        other, view = view, _view(plane_of_neighbours(selection.kernel, shown, first, start, rng), belongs)
    left_out = np.setdiff1d(np.arange(len(copies)), shown)
    rows = found.row_of[shown]
    called = found.details.names(rows)
    if called is not None:
        called = [shortened(name, LONGEST_NAME) for name in called]
        called = called if page_bytes(called) <= MAP_NAME_BYTES else None
    return {
        **view,
        "other": other,
        "n": len(shown),
        "of": len(copies),
        "row": packed(found.details.numbers(rows), "u4"),
        "bin": packed(bins.of[shown], "u1"),
        "safe": packed(bins.safe[shown], "u1") if bins.safe.any() else None,
        "copies": packed(np.round(copies[shown]), "u4") if (copies != 1).any() else None,
        "group": None if (found.group_of < 0).all() else packed(found.group_of[shown], "i2"),
        "names": called,
        "history": packed(changes.ranks, "u2"),
        "history_end": packed(changes.end, "u4"),
        # The number of lowest bins whose points are all on the map.
        "low_complete": int(bins.of[left_out].min()) if len(left_out) else len(bins.edges) - 1,
    }


def _view(plane: Plane, belongs: BoolArray) -> dict[str, Any]:
    """One way to lay out the points of the map."""
    frame = framed(plane.points, belongs)
    steps = np.round(65535 * frame.shares)
    return {
        "method": plane.method,
        "axes": list(plane.axes),
        "range": [float(f"{edge:.6g}") for edges in zip(frame.low, frame.high, strict=True) for edge in edges],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
    }


def _moves(changes: Changes) -> list[list[list[float]]]:
    """For each rank, pairs of an earlier rank and the number of rows taken over from it; -1 for rows that had none."""
    arrivals = changes.moves.tocsc()
    n_ranks = arrivals.shape[1]
    taken = []
    for j in range(n_ranks):
        column = slice(arrivals.indptr[j], arrivals.indptr[j + 1])
        before, rows = arrivals.indices[column].tolist(), _numbers(arrivals.data[column])
        taken.append([[-1 if i == n_ranks else i, number] for i, number in zip(before, rows, strict=True)])
    return taken


def _certificate(found: Found) -> dict[str, Any]:
    """The certificate for the chosen k and, if it is quick to compute, for every other k of the slider.

    One solution of the program bounds the error of sets of any size; the bound is tightest for the chosen k.
    """
    selection, proven, excesses = found.selection, found.summary.certificate, None
    ranked = found.ranking.points
    if proven.excess is not None and not selection.is_sampled and len(ranked) <= found.fitted.most_exact_ranks:
        bounds = selection.certificate.bounds
        left = unexplained_along(selection.kernel, ranked, bounds.ridge, selection.material.points.weights)
        values = [finite(excess(float(error), bounds.at(j))) for j, error in enumerate(left, 1)]
        excesses = [None if value is None else float(f"{value:.3g}") for value in values]
    return {"sentence": proven.sentence, "excess": proven.excess, "excesses": excesses, "ridge": proven.ridge}


def _settings(known: Summary, notes: list[str], command: str | None) -> dict[str, Any]:
    parameters = dict(known.settings["parameters"])
    seed = parameters.pop("random_state", None)
    parameters.pop("verbose", None)
    return {
        "sentences": known.settings["sentences"],
        "parameters": [[name, shortened(json.dumps(value), 200)] for name, value in parameters.items()],
        "versions": [[name, version] for name, version in known.settings["versions"].items()],
        "seed": str(seed),
        "command": command,
        "notes": [note for note in notes if note not in known.settings["sentences"]],
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
    """Whole numbers as integers, others with one digit after the point."""
    return [int(value) if float(value).is_integer() else round(float(value), 1) for value in values]
