"""All data of the page, as plain data. The page draws it for any k and threshold."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.arrays.blocks import IntArray, in_double
from mosaic.choosing import CoverCertificate, contrasts, counted, odd_columns, oddities, typical_columns
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts
from mosaic.facts.facts import finite
from mosaic.facts.map import Plane, framed
from mosaic.rows.frames import columns_as_lists, n_rows
from mosaic.rows.images import thumbnails

#: Largest number of characters of a shown name and of a cell.
LONGEST_NAME, LONGEST_CELL = 80, 200


def page_facts(facts: Facts, rows_of: Any, title: str | None, command: str | None, certificate: bool) -> dict[str, Any]:
    """Everything on the page as lists, numbers and strings; many integers as base64 of little-endian bytes.

    ``rows_of`` has names, cells, pictures and groups of the rows: an open file, or ``GivenRows``.
    """
    selection, bins, rows_for, n = facts.selection, facts.bins, facts.rows.weight_of, facts.n_rows
    k, notes = facts.k, list(rows_of.notes)
    proven = facts.certificate if certificate and k else facts.known_certificate
    if certificate and k and proven.gap is None:
        notes.append(proven.sentence)
    if facts.rows.n_without_weight:
        rows = counted(facts.rows.n_without_weight, "row")
        notes.append(f"{rows} without weight {'was' if facts.rows.n_without_weight == 1 else 'were'} not compared with others.")
    n_outliers = selection.n_outliers
    found = counted(n_outliers, "outlier") if n_outliers else "No outliers"
    points = counted(n, "row")
    group_of, groups = _groups(facts, rows_of)
    suggested, ranking = facts.suggested if k else None, facts.ranking
    return {
        "title": title or (f"{counted(k, 'representative')} of {points}" if k else f"{found} among {points}"),
        "file": None if rows_of.path is None else {"name": shortened(rows_of.path.name, 200), "kind": rows_of.kind},
        "n": n,
        "n_features": int(facts.model.n_features_in_),
        "k": k,
        "n_outliers": n_outliers,
        "compared_with": round(selection.data.count_total),
        "scaled": facts.scaled,
        "outliers": selection.settings.outliers,
        **_lists(facts, rows_of, group_of),
        "coverage": [round(float(share), 8) for share in ranking.coverage],
        "suggested": suggested if suggested is not None and suggested <= len(ranking.points) else None,
        "moves": _moves(facts),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.sums(rows_for)),
            "safe": _numbers(bins.sums(rows_for * bins.safe_rows)),
            "threshold": bins.threshold,
            "grouped": selection.n_protected,
            "must": round(float(facts.rows.copies[bins.must].sum())),
        },
        "map": _map(facts, rows_of, group_of),
        "groups": groups,
        "certificate": {
            "sentence": proven.details or proven.sentence,
            "excess": proven.excess,
            "excesses": _excesses(facts, proven.excess),
        },
        "settings": _settings(facts, notes, command),
    }


def _groups(facts: Facts, rows_of: Any) -> tuple[IntArray, dict[str, Any] | None]:
    """The group of each point, -1 without groups, and for each group its rows, and by bin those that may be outliers."""
    rows, bins, data = facts.rows, facts.bins, facts.selection.data
    of_point, names = np.full(len(rows.copies), -1, np.intp), data.constraints.names
    if rows_of.groups is not None:
        labels = [rows_of.groups[int(row)] for row in data.rows_in_data(np.arange(len(rows.point_of)))]
    elif len(names) > 1:
        labels = [names[group] for group in data.constraints.group]
    else:
        return of_point, None
    values, of = np.unique(np.array([shortened(label, LONGEST_NAME) for label in labels]), return_inverse=True)
    order = np.argsort(-np.bincount(of, weights=rows.weight_of), kind="stable")
    most = 40  # all other groups are shown as one
    named = [str(values[i]) for i in order[:most]]
    if len(order) > most:
        named.append(counted(len(order) - most, "other"))
    place = np.empty(len(order), np.intp)
    place[order] = np.minimum(np.arange(len(order)), most)
    of = place[of]
    low = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of_row), rows.weight_of * ~bins.safe_rows)
    present = np.flatnonzero(rows.point_of >= 0)[::-1]
    of_point[rows.point_of[present]] = of[present]  # the first of equal rows
    of_point[facts.ranking.points] = of[facts.ranking.members]
    return of_point, {
        "column": shortened(rows_of.group_name or "group", LONGEST_NAME),
        "labels": named,
        "rows": _numbers(np.bincount(of, weights=rows.weight_of, minlength=len(named))),
        "low": [_numbers(row) for row in low],
    }


def _lists(facts: Facts, rows_of: Any, group_of: IntArray) -> dict[str, Any]:
    """The ranked rows and the rows with the lowest counts, with names, cells and pictures within limits of bytes."""
    ranked, bins, changes = facts.ranking.points, facts.bins, facts.changes
    counts, n_ranks = np.asarray(facts.selection.data.counts), len(ranked)
    most = min(300, int((~bins.safe).sum()))
    low = np.argsort(np.where(bins.safe, np.inf, counts), kind="stable")[:most]
    points = np.concatenate([ranked, low])
    beside = [*(facts.shown[places] for places in changes.members), *_usual_beside(facts, low)]
    rows = facts.row_of_point[np.concatenate([points, *beside])]
    listed, others = rows[: len(points)], rows[len(points) :]
    pictures = [*pictures_of(rows_of, listed, side=96), *pictures_of(rows_of, others, side=48)]
    columns, cells = cells_of(facts, rows_of, listed)
    names = within(names_of(rows_of, rows), limit=200_000)
    long_names = zip(names_of(rows_of, listed, longest=500), names, strict=False)
    full = within([name if name != short else None for name, short in long_names], limit=80_000)
    shown = zip(rows.tolist(), names, within(pictures, limit=650_000), strict=True)
    called = [{"row": row, "name": name, "picture": picture} for row, name, picture in shown]
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
            "cells": cells[i],
            "reason": reasons[i],
            "members": called[ends[i] - len(beside[i]) : ends[i]],
        }
        for i, point in enumerate(points.tolist())
    ]
    for j, entry in enumerate(entries[:n_ranks]):
        entry["stands_for"] = round(float(changes.stands_for[j])) if j < len(changes.stands_for) else 0
    lists = {"ranking": entries[:n_ranks], "lowest": entries[n_ranks:]}
    # Few cells are in the page a second time, for readers without JavaScript.
    return lists | columns | {"static_cells": page_bytes(cells) <= 100_000}


def _usual_beside(facts: Facts, low: IntArray) -> list[IntArray]:
    """The three nearest points that belong, for the lowest counts, where no columns say what is odd about these points."""
    usual = np.intersect1d(np.flatnonzero(~facts.selection.is_outlier), facts.shown)
    if _has_columns(facts) or not len(usual):
        return [np.zeros(0, np.intp)] * len(low)
    some, rest = low[:24], low[24:]
    D = facts.selection.kernel.distances(some, usual)
    D[some[:, None] == usual] = np.inf
    order = np.argsort(D, axis=1, kind="stable")[:, : min(3, len(usual) - 1)]
    return [*usual[order], *[np.zeros(0, np.intp)] * len(rest)]


def _has_columns(facts: Facts) -> bool:
    return facts.columns is not None and facts.selection.usual is not None


def _reasons(facts: Facts, named: Callable[..., list[Any]], points: IntArray) -> list[Any]:
    """What columns say about points; None where columns have no names."""
    if not _has_columns(facts) or not len(points):
        return [None] * len(points)
    kernel: Any = facts.selection.kernel
    return named(facts.selection, facts.columns, in_double(kernel.X[points]), facts.row_of_point[points], points)


def _why_odd(facts: Facts, low: IntArray) -> list[str]:
    return [f"{oddities(some)}." if some else "" for some in _reasons(facts, odd_columns, low)]


def _why_chosen(facts: Facts) -> list[str]:
    """What is typical of ranked rows, in texts that are true at any k and threshold; empty where columns have no names."""
    selection, ranked, told = facts.selection, facts.ranking.points, []
    for rank, (point, reasons) in enumerate(zip(ranked.tolist(), _reasons(facts, typical_columns, ranked), strict=True)):
        reason = "" if reasons is None else contrasts(reasons)
        if reasons is None and selection.settings.mode == "paper" and rank < len(selection.gains):
            reason = f"its influence, the norm of its row in the encoding, is {finite(selection.gains[rank]) or 0.0:.3g}"
        if rank >= facts.k:
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
    names = names_of(rows_of, rows) if rows_of.has_names else None
    return {
        **view,
        "other": other,
        "n": len(shown),
        "of": len(copies),
        "row": packed(rows, "u4"),
        "bin": packed(bins.of[shown], "u1"),
        "safe": packed(bins.safe[shown], "u1") if bins.safe.any() else None,
        "copies": packed(np.round(copies[shown]), "u4") if (copies != 1).any() else None,
        "group": None if (group_of < 0).all() else packed(group_of[shown], "i2"),
        "names": None if names is None or page_bytes(names) > 400_000 else names,
        "history": packed(facts.changes.ranks, "u2"),
        "history_end": packed(facts.changes.end, "u4"),
        # The number of lowest bins whose points are all on the map.
        "low_complete": int(bins.of[left_out].min()) if len(left_out) else len(bins.edges) - 1,
    }


def _view(facts: Facts, plane: Plane) -> dict[str, Any]:
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
    certificate = selection.certificate
    if not isinstance(certificate, CoverCertificate) or not certificate.is_about_all:
        return None
    bounds_of_similarity = np.array(certificate.bounds[: len(ranked)])
    return [finite(gap) for gap in np.maximum(1.0 - facts.ranking.similarity / bounds_of_similarity, 0.0)]


def _settings(facts: Facts, notes: list[str], command: str | None) -> dict[str, Any]:
    settings, decisions = facts.settings, list(facts.decisions)
    parameters = {name: value for name, value in settings["parameters"].items() if name not in ("random_state", "verbose")}
    return {
        "sentences": decisions,
        "parameters": [[name, shortened(json.dumps(value), 200)] for name, value in parameters.items()],
        "versions": list(settings["versions"].items()),
        "seed": str(settings["parameters"].get("random_state")),
        "command": command,
        "notes": [note for note in notes if note not in decisions],
    }


def packed(values: Any, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(f"<{kind}").tobytes()).decode()


def _numbers(values: Any) -> list[float]:
    """Whole numbers as integers, others with one digit after the point."""
    return [int(value) if float(value).is_integer() else round(float(value), 1) for value in values]


# ------------------------------------------------------------------------------------------ names, cells and pictures


class GivenRows:
    """Names, columns, pictures and groups that were given beside a fit, asked for as those of an open table are."""

    path: Path | None = None
    kind: str | None = None
    notes: Sequence[str] = ()

    def __init__(self, n: int, names: Any, columns: Any, images: Any, groups: Any):
        self._columns = {} if columns is None else columns_as_lists(columns)
        given = [("names", names), ("images", images), ("groups", groups)]
        for parameter, values in [*given, *(("columns", values) for values in self._columns.values())]:
            if values is not None and n_rows(values) != n:
                raise InvalidInputError(
                    f"must have one entry for each of {n} rows; got {n_rows(values)}",
                    "Give one for each row of the fitted data, in their order.",
                    parameter=parameter,
                )
        self._names, self._images = None if names is None else list(names), images
        self.has_names, self.id_name = names is not None, None
        self.groups, self.group_name = None if groups is None else list(groups), getattr(groups, "name", None)

    def names(self, rows: IntArray) -> list[Any]:
        found = [(row, self._names[row]) for row in rows.tolist()] if self._names is not None else []
        return [row if name is None or name != name else name for row, name in found]  # NaN is no name

    def cells(self, rows: IntArray, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        return {name: [self._columns[name][row] for row in rows.tolist()] for name in columns or self._columns}

    def pictures(self, rows: IntArray, side: int) -> list[bytes] | None:
        return None if self._images is None else thumbnails([self._images[row] for row in rows.tolist()], side)


def names_of(rows_of: Any, rows: IntArray, longest: int = LONGEST_NAME) -> list[str | None]:
    return [shortened(name, longest) for name in rows_of.names(rows)] if rows_of.has_names else [None] * len(rows)


def cells_of(facts: Facts, rows_of: Any, rows: IntArray) -> tuple[dict[str, Any], list[list[str]]]:
    """Twelve columns, those that rows are compared by first, with their places in the file, and the text of each row's cells."""
    columns: dict[str, list[Any]] = {}
    if len(rows):
        found = rows_of.cells(rows)
        columns = found if isinstance(found, dict) else found.to_pydict()
    columns.pop(rows_of.id_name or "", None)
    columns = {name: values for name, values in columns.items() if list not in set(map(type, values))}
    compared = set(facts.feature_names or ()) & set(columns) or set(columns)
    order = sorted(columns, key=lambda name: name not in compared)[:12]
    longest = int(np.clip(300_000 / max(len(rows) * len(order), 1), 16, LONGEST_CELL))  # 300,000 letters in all
    texts = [_texts(columns[name], longest) for name in order]
    about = {
        "columns": [shortened(name, LONGEST_NAME) for name in order],
        "n_compared": len(compared.intersection(order)),
        "places": [list(columns).index(name) for name in order],
    }
    return about, [list(cells) for cells in zip(*texts, strict=True)] or [[] for _ in rows]


def _texts(values: list[Any], longest: int) -> list[str]:
    told = []
    for value in values:
        if value is None or value != value:
            told.append("")
        elif isinstance(value, float):
            told.append(str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}")
        else:
            told.append(shortened(value, longest))
    return told


def pictures_of(rows_of: Any, rows: IntArray, side: int) -> list[str | None]:
    found = rows_of.pictures(rows, side) if len(rows) else None
    if found is None:
        return [None] * len(rows)
    kinds = ["jpeg" if picture and picture.startswith(b"\xff\xd8") else "png" for picture in found]
    return [
        None if picture is None else f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
        for picture, kind in zip(found, kinds, strict=True)
    ]


def shortened(text: Any, longest: int) -> str:
    """Valid text on one line of limited length; the middle is left out, because names of files often differ at their ends."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[: longest - 1 - half]}…{line[-half:]}"


def within(texts: list[str | None], limit: int) -> list[str | None]:
    """The first texts that together take at most ``limit`` bytes of a page; None for the others."""
    sizes = np.cumsum([0 if text is None else page_bytes(text) for text in texts])
    return [text if size <= limit else None for text, size in zip(texts, sizes.tolist(), strict=True)]


def page_bytes(value: Any) -> int:
    """Bytes that a text, or anything as JSON, takes in a page, where ``<`` is written with six characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode()) + 5 * text.count("<")
