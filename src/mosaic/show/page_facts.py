"""All data of the page, as plain data. The page draws it for any k and threshold."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from mosaic.arrays.blocks import IntArray, in_double
from mosaic.choosing import contrasts, counted, excess, odd_columns, oddities, typical_columns
from mosaic.facts import Facts
from mosaic.facts.facts import finite
from mosaic.facts.map import Plane, framed
from mosaic.metrics import unexplained_along
from mosaic.show.page_columns import map_columns
from mosaic.show.page_rows import LONGEST_NAME, cells_of, cells_within, names_of, page_bytes, pictures_of, shortened, within

#: Largest number of groups that are shown; all others are shown as one.
MOST_GROUPS = 40
#: Largest number of listed rows with the lowest counts.
MOST_LISTED = 300
#: Rows that belong beside a row with a low count, where no columns say what is odd about it; how many rows have them.
USUAL_BESIDE, MOST_WITH_USUAL = 3, 24
#: Longer side of the pictures of similar rows, in pixels.
SMALL_PICTURE_SIDE = 48
#: Bytes of the page for names on the map, names in lists, full names, cells, and pictures.
MAP_NAME_BYTES, LISTED_NAME_BYTES, FULL_NAME_BYTES, CELL_BYTES, PICTURE_BYTES = (400_000, 200_000, 80_000, 300_000, 650_000)
#: Largest size of cells, in bytes, that the page contains a second time for readers without JavaScript.
STATIC_CELL_BYTES = 100_000


def page_facts(facts: Facts, rows_of: Any, title: str | None, command: str | None, certificate: bool) -> dict[str, Any]:
    """Everything on the page as lists, numbers and strings; many integers as base64 of little-endian bytes.

    ``rows_of`` has names, cells, pictures and groups of the rows: an open file, or ``GivenRows``.
    """
    selection, bins, copies, n = facts.selection, facts.bins, facts.rows.copies, facts.rows.n
    k, notes = 0 if facts.detects else len(selection.rows), list(rows_of.notes)
    proven = facts.certificate if certificate and k else facts.known_certificate
    if certificate and k and proven.gap is None:
        notes.append(proven.sentence)
    if facts.rows.n_without_weight:
        rows = counted(facts.rows.n_without_weight, "row")
        notes.append(f"{rows} without weight {'was' if facts.rows.n_without_weight == 1 else 'were'} ignored.")
    may_be_outlier = np.where(bins.safe, 0.0, copies)
    n_outliers = round(float(bins.sums(may_be_outlier)[: bins.threshold].sum()))
    found = counted(n_outliers, "outlier") if n_outliers else "No outliers"
    points = counted(n, "point")
    group_of, groups = _groups(facts, rows_of)
    suggested, ranking = facts.suggested if k else None, facts.ranking
    lists = _lists(facts, rows_of, group_of)
    page = {
        "title": title or (f"{counted(k, 'representative')} of {points}" if k else f"{found} among {points}"),
        "file": None if rows_of.path is None else {"name": shortened(rows_of.path.name, 200), "kind": rows_of.kind},
        "n": n,
        "n_features": int(facts.model.n_features_in_),
        "k": k,
        "n_outliers": n_outliers,
        "compared_with": round(selection.material.count_total),
        "scaled": facts.scaled,
        "outliers": selection.settings.outliers,
        **lists,
        "coverage": [round(float(share), 8) for share in ranking.coverage],
        "suggested": suggested if suggested is not None and suggested <= len(ranking.points) else None,
        "moves": _moves(facts),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.sums(copies)),
            "safe": _numbers(bins.sums(copies - may_be_outlier)),
            "threshold": bins.threshold,
            "grouped": round(float(copies[bins.grouped].sum())),
            "must": round(float(copies[bins.must].sum())),
        },
        "map": _map(facts, rows_of, group_of),
        "groups": groups,
        "certificate": {
            "sentence": proven.details or proven.sentence,
            "excess": proven.excess,
            "excesses": _excesses(facts, proven.excess),
            "ridge": proven.ridge,
        },
        "settings": _settings(facts, notes, command),
    }
    return page | {"map_columns": map_columns(rows_of, facts.row_of_point[facts.shown], lists["columns"], page)}


def _groups(facts: Facts, rows_of: Any) -> tuple[IntArray, dict[str, Any] | None]:
    """The group of each point, -1 without groups, and for each group its rows, and by bin those that may be outliers."""
    rows, bins, material = facts.rows, facts.bins, facts.selection.material
    of_point, names = np.full(len(rows.copies), -1, np.intp), material.constraints.names
    if rows_of.groups is not None:
        labels = [rows_of.groups[int(row)] for row in material.rows_in_data(rows.members)]
    elif len(names) > 1:
        labels = [names[group] for group in material.constraints.group[rows.members]]
    else:
        return of_point, None
    values, of = np.unique(np.array([shortened(label, LONGEST_NAME) for label in labels]), return_inverse=True)
    order = np.argsort(-np.bincount(of, weights=rows.weight_of), kind="stable")
    named = [str(values[i]) for i in order[:MOST_GROUPS]]
    if len(order) > MOST_GROUPS:
        named.append(counted(len(order) - MOST_GROUPS, "other"))
    place = np.empty(len(order), np.intp)
    place[order] = np.minimum(np.arange(len(order)), MOST_GROUPS)
    of = place[of]
    low = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of[rows.point_of]), rows.weight_of * ~bins.safe[rows.point_of])
    of_point[rows.point_of[::-1]] = of[::-1]  # the first of equal rows
    of_point[facts.ranking.points] = of[np.searchsorted(rows.members, facts.ranking.members)]
    return of_point, {
        "column": shortened(rows_of.group_name or "group", LONGEST_NAME),
        "labels": named,
        "rows": _numbers(np.bincount(of, weights=rows.weight_of, minlength=len(named))),
        "low": [_numbers(row) for row in low],
    }


def _lists(facts: Facts, rows_of: Any, group_of: IntArray) -> dict[str, Any]:
    """The ranked rows and the rows with the lowest counts, with names, cells and pictures within the size limits."""
    ranked, bins, changes = facts.ranking.points, facts.bins, facts.changes
    counts, n_ranks = np.asarray(facts.selection.material.counts), len(ranked)
    low = np.argsort(np.where(bins.safe, np.inf, counts), kind="stable")[: min(MOST_LISTED, int((~bins.safe).sum()))]
    points = np.concatenate([ranked, low])
    beside = [*(facts.shown[places] for places in changes.members), *_usual_beside(facts, low)]
    rows = facts.row_of_point[np.concatenate([points, *beside])]
    listed, others = rows[: len(points)], rows[len(points) :]
    pictures = within([*pictures_of(rows_of, listed), *pictures_of(rows_of, others, SMALL_PICTURE_SIDE)], PICTURE_BYTES)
    cells = cells_within(cells_of(rows_of, listed), CELL_BYTES)
    numbers, names = np.asarray(rows_of.numbers(rows)).tolist(), names_of(rows_of, rows)
    short: list[str | None] = [None if names is None else shortened(name, LONGEST_NAME) for name in names or numbers]
    full = [name if name != cut else None for name, cut in zip(names or short, short, strict=True)]
    short, full = within(short, LISTED_NAME_BYTES), within(full, FULL_NAME_BYTES)
    called = [{"row": r, "name": s, "picture": p} for r, s, p in zip(numbers, short, pictures, strict=True)]
    reasons = [*_why_chosen(facts), *_why_odd(facts, low)]
    ends = len(points) + np.cumsum([len(some) for some in beside])
    entries: list[dict[str, Any]] = [
        called[i]
        | {
            "full": full[i],
            "count": float(f"{counts[point]:.4g}"),
            "bin": int(bins.of[point]),
            "safe": bool(bins.safe[point]),
            "group": int(group_of[point]),
            "copies": 1 if facts.scaled else int(facts.rows.copies[point]),
            "cells": cells.texts[i],
            "reason": reasons[i],
            "members": called[ends[i] - len(beside[i]) : ends[i]],
        }
        for i, point in enumerate(points.tolist())
    ]
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


def _usual_beside(facts: Facts, low: IntArray) -> list[IntArray]:
    """The nearest points that belong, for points with low counts, where no columns say what is odd about these."""
    usual = np.intersect1d(np.flatnonzero(~facts.selection.is_outlier), facts.shown)
    if _has_columns(facts) or not len(usual):
        return [np.zeros(0, np.intp)] * len(low)
    some, rest = low[:MOST_WITH_USUAL], low[MOST_WITH_USUAL:]
    D = facts.selection.kernel.distances(some, usual)
    D[some[:, None] == usual] = np.inf
    order = np.argsort(D, axis=1, kind="stable")[:, : min(USUAL_BESIDE, len(usual) - 1)]
    return [*usual[order], *[np.zeros(0, np.intp)] * len(rest)]


def _has_columns(facts: Facts) -> bool:
    return facts.columns is not None and facts.selection.usual is not None


def _prepared(facts: Facts, points: IntArray) -> Any:
    kernel: Any = facts.selection.kernel
    return in_double(kernel.X[points])


def _why_odd(facts: Facts, low: IntArray) -> list[str]:
    """In which columns points with low counts are odd; empty where columns have no names."""
    if not _has_columns(facts):
        return [""] * len(low)
    rows = facts.row_of_point[low]
    reasons = odd_columns(facts.selection, facts.columns, _prepared(facts, low), rows, low)
    return [f"{oddities(some)}." if some else "" for some in reasons]


def _why_chosen(facts: Facts) -> list[str]:
    """What is typical of ranked rows, in texts that are true at any k and threshold; empty where columns have no names."""
    selection, ranked = facts.selection, facts.ranking.points
    typical: list[Any] = [None] * len(ranked)
    if _has_columns(facts) and len(ranked):
        rows = facts.row_of_point[ranked]
        typical = typical_columns(selection, facts.columns, _prepared(facts, ranked), rows)
    told = []
    for rank, (point, reasons) in enumerate(zip(ranked.tolist(), typical, strict=True)):
        reason = "" if reasons is None else contrasts(reasons)
        if reasons is None and selection.settings.mode == "paper" and rank < len(selection.gains):
            reason = f"its influence, the norm of its row in the encoding, is {finite(selection.gains[rank]) or 0.0:.3g}"
        if rank >= len(selection.rows):
            reason = f"would come next: {reason}" if reason else "would come next"
        reason = "must be included" if facts.bins.must[point] else reason
        told.append(f"{reason}." if reason else "")
    return told


def _map(facts: Facts, rows_of: Any, group_of: IntArray) -> dict[str, Any]:
    shown, bins, copies = facts.shown, facts.bins, facts.rows.copies
    view, other = _view(facts, facts.plane), None
    if facts.plane.method != "features":
        view, other = _view(facts, facts.neighbours), view
    left_out = np.setdiff1d(np.arange(len(copies)), shown)
    rows = facts.row_of_point[shown]
    called = names_of(rows_of, rows)
    if called is not None:
        called = [shortened(name, LONGEST_NAME) for name in called]
        called = called if page_bytes(called) <= MAP_NAME_BYTES else None
    return {
        **view,
        "other": other,
        "n": len(shown),
        "of": len(copies),
        "row": packed(rows_of.numbers(rows), "u4"),
        "bin": packed(bins.of[shown], "u1"),
        "safe": packed(bins.safe[shown], "u1") if bins.safe.any() else None,
        "copies": packed(np.round(copies[shown]), "u4") if (copies != 1).any() else None,
        "group": None if (group_of < 0).all() else packed(group_of[shown], "i2"),
        "names": called,
        "history": packed(facts.changes.ranks, "u2"),
        "history_end": packed(facts.changes.end, "u4"),
        # The number of lowest bins whose points are all on the map.
        "low_complete": int(bins.of[left_out].min()) if len(left_out) else len(bins.edges) - 1,
    }


def _view(facts: Facts, plane: Plane) -> dict[str, Any]:
    """One way to lay out the points of the map."""
    frame = framed(plane.points, ~facts.selection.is_outlier[facts.shown])
    steps = np.round(65535 * frame.shares)
    return {
        "method": plane.method,
        "axes": [shortened(name, LONGEST_NAME) for name in plane.axes],
        "range": [float(f"{edge:.6g}") for edges in zip(frame.low, frame.high, strict=True) for edge in edges],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
    }


def _moves(facts: Facts) -> list[list[list[float]]]:
    """For each rank, pairs of an earlier rank and the number of rows taken over from it; -1 for rows that had none."""
    arrivals = facts.changes.moves
    n_ranks, taken = arrivals.shape[1], []
    for j in range(n_ranks):
        column = slice(arrivals.indptr[j], arrivals.indptr[j + 1])
        before, rows = arrivals.indices[column].tolist(), _numbers(arrivals.data[column])
        taken.append([[-1 if i == n_ranks else i, number] for i, number in zip(before, rows, strict=True)])
    return taken


def _excesses(facts: Facts, proven: float | None) -> list[float | None] | None:
    """The excess for every k of the slider, if it is quick to compute: one solution bounds the error of sets of any size."""
    selection, ranked = facts.selection, facts.ranking.points
    if proven is None or facts.scaled or len(ranked) > facts.rows.most_exact_ranks:
        return None
    bounds = selection.certificate.bounds
    left = unexplained_along(selection.kernel, ranked, bounds.ridge, selection.material.points.weights)
    values = [finite(excess(float(error), bounds.at(j))) for j, error in enumerate(left, 1)]
    return [None if value is None else float(f"{value:.3g}") for value in values]


def _settings(facts: Facts, notes: list[str], command: str | None) -> dict[str, Any]:
    settings, decisions = facts.settings, list(facts.decisions)
    parameters = {name: value for name, value in settings.parameters.items() if name not in ("random_state", "verbose")}
    return {
        "sentences": decisions,
        "parameters": [[name, shortened(json.dumps(value), 200)] for name, value in parameters.items()],
        "versions": [[name, version] for name, version in settings.versions.items()],
        "seed": str(settings.parameters.get("random_state")),
        "command": command,
        "notes": [note for note in notes if note not in decisions],
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
