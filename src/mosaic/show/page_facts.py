"""All data of the page, as plain data. The page draws it for any k and threshold."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import NO_ROWS, IntArray, in_double, lowest_first
from mosaic.choosing import cause, contrasts, counted, odd_columns, oddities, typical_columns
from mosaic.exceptions import PYTHON
from mosaic.facts import Facts
from mosaic.facts.facts import finite
from mosaic.facts.map import Plane, framed
from mosaic.rows import Rows
from mosaic.show.page_columns import (
    LONGEST_NAME,
    columns_of_rows,
    columns_shown,
    lines_of,
    map_columns,
    packed,
    page_bytes,
    shortened,
)

#: Rows in the list of outliers: so many, and as many more as are outliers, up to the second number. Readers without JavaScript
#: have the first.
USUALLY_LISTED = 300
MOST_LISTED = 1000
#: Groups by name; all others are shown as one.
MOST_GROUPS = 40

Part: TypeAlias = dict[str, Any]


def page_facts(
    facts: Facts, rows: Rows, title: str | None, command: str | None, certificate: bool
) -> Part:
    """Everything on the page as lists, numbers and strings; many integers as base64 of little-endian
    bytes. ``rows`` has names, cells, pictures and groups: an open file, or what was given beside the fit.
    """
    bins = facts.bins
    selection = facts.complete
    weights = facts.rows.weight_of
    n_known = int(facts.complete.outliers_in_memory.sum())
    group_of, groups = _groups(facts, rows)
    file = None
    if rows.path is not None:
        file = {"name": shortened(rows.path.name, 200), "kind": rows.kind}
    shown, lists = _lists(facts, rows, group_of)
    page = {
        "title": title or facts.title,
        "file": file,
        "n": facts.n_rows,
        "n_features": int(facts.model.n_features_in_),
        "k": facts.k,
        "n_outliers": selection.n_outliers,
        "compared_with": round(selection.data.count_total),
        "scaled": facts.scaled,
        "is_estimate": selection.is_estimated,
        "has_lowest": facts.has_lowest,
        "outliers": selection.settings.outliers,
        **lists,
        "coverage": [round(share, 8) for share in facts.ranking.coverage.tolist()],
        "bound": None if facts.bound is None else facts.bound.tolist(),
        "suggested": facts.suggested if facts.k else None,
        "moves": _moves(facts),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.sums(weights)),
            "safe": _numbers(bins.sums(weights * bins.safe_rows)),
            "threshold": bins.threshold,
            # Up to here all outliers are on the page, so that their numbers are exact.
            "exact": len(bins.edges)
            if not facts.scaled
            else bins.threshold
            if n_known == selection.n_outliers
            else 0,
            "grouped": selection.n_protected,
            "must": round(float(facts.rows.copies[bins.must].sum())),
        },
        "map": _map(facts, rows, group_of),
        "groups": groups,
        **_settings(facts, rows, command, certificate),
    }
    return page | {"map_columns": map_columns(rows, facts.row_of_point[facts.shown], shown, page)}


def _groups(facts: Facts, rows: Rows) -> tuple[IntArray, Part | None]:
    """The group of each point, -1 without groups, and for each group its rows, and by bin those that may be outliers."""
    known = facts.rows
    bins = facts.bins
    data = facts.complete.data
    of_point = np.full(len(known.copies), -1, np.intp)
    names = data.constraints.names
    if rows.groups is not None:
        labels = [
            rows.groups[row] for row in data.rows_in_data(np.arange(len(known.point_of))).tolist()
        ]
    elif len(names) > 1:
        labels = [names[group] for group in data.constraints.group]
    else:
        return of_point, None
    texts = [shortened(label, LONGEST_NAME) for label in labels]
    sizes: Counter[str] = Counter()
    if rows.groups is not None:  # of all rows, not only of those in memory
        for label, number in Counter(map(str, rows.groups)).items():
            sizes[shortened(label, LONGEST_NAME)] += number
    else:
        for text, weight in zip(texts, known.weight_of.tolist(), strict=True):
            sizes[text] += weight
    order = sorted(sizes, key=lambda text: (-sizes[text], text))
    named = order[:MOST_GROUPS]
    if len(order) > MOST_GROUPS:
        named.append(counted(len(order) - MOST_GROUPS, "other"))
    place = {text: min(rank, MOST_GROUPS) for rank, text in enumerate(order)}
    of = np.array([place[text] for text in texts], np.intp)
    low = np.zeros((len(named), len(bins.edges) - 1))
    np.add.at(low, (of, bins.of_row), known.weight_of * ~bins.safe_rows)
    present = np.flatnonzero(known.point_of >= 0)[::-1]
    of_point[known.point_of[present]] = of[present]  # the first of equal rows
    of_point[data.points.point_of[facts.ranked_members]] = of[facts.ranked_members]
    return of_point, {
        "column": shortened(rows.group_name or "group", LONGEST_NAME),
        "labels": named,
        "rows": _numbers(np.bincount(list(place.values()), [sizes[text] for text in place])),
        "is_estimate": facts.scaled and rows.groups is None,
        "low": [_numbers(counts) for counts in low],
    }


def _lists(facts: Facts, rows: Rows, group_of: IntArray) -> tuple[list[str], Part]:
    """The columns that are shown; the ranked rows, and those with the lowest counts, with names, cells and pictures within limits
    of bytes.
    """
    ranked = facts.ranking.points
    bins = facts.bins
    changes = facts.changes
    counts = np.asarray(facts.complete.data.counts)
    n_outliers = int(facts.complete.is_outlier.sum())
    most = max(USUALLY_LISTED, min(n_outliers, MOST_LISTED))
    low = lowest_first(~bins.safe, counts)[:most]
    points = np.concatenate([ranked, low])
    beside = [*(facts.shown[places] for places in changes.members), *_usual_beside(facts, low)]
    numbers = facts.row_of_point[np.concatenate([points, *beside])]
    listed = numbers[: len(points)]
    others = numbers[len(points) :]

    why_odd = _named(facts, odd_columns, low)
    at_fault = [[reason.column for reason in reasons] for reasons in why_odd]
    cells = columns_of_rows(rows, listed)
    if rows.index is None and rows.id_name is not None:
        cells.pop(rows.id_name)
    compared = set(facts.feature_names or cells)
    first = [
        column
        for point, columns in zip(low, at_fault, strict=True)
        if facts.complete.is_outlier[point]
        for column in columns
    ]
    shown, about = columns_shown(cells, compared, list(dict.fromkeys(first)))
    lines = lines_of(cells, shown, len(listed))

    names = within(names_of(rows, numbers), limit=200_000)
    long_names = zip(names_of(rows, listed, longest=500), names, strict=False)
    full = within([name if name != short else None for name, short in long_names], limit=80_000)
    pictures = within(
        [*pictures_of(rows, listed, side=96), *pictures_of(rows, others, side=48)], limit=650_000
    )
    called = [
        {"row": row, "name": name, "picture": picture}
        for row, name, picture in zip(numbers.tolist(), names, pictures, strict=True)
    ]
    reasons = [
        *_why_chosen(facts),
        *(f"{oddities(columns)}." if columns else "" for columns in why_odd),
    ]
    faults = [[] for _ in ranked] + at_fault
    causes = [""] * len(ranked) + [cause(columns) if columns else "" for columns in why_odd]
    ends = len(points) + np.cumsum([len(places) for places in beside])
    entries: list[Part] = [
        called[i]
        | {
            "full": full[i],
            "count": float(f"{counts[point]:.4g}"),
            "bin": int(bins.of[point]),
            "safe": bool(bins.safe[point]),
            "group": int(group_of[point]),
            "copies": 1 if facts.scaled else int(facts.rows.copies[point]),
            "cells": lines[i],
            "faults": [shown.index(name) for name in faults[i] if name in shown],
            "cause": shortened(causes[i], LONGEST_NAME),
            "reason": reasons[i],
            "members": called[ends[i] - len(beside[i]) : ends[i]],
        }
        for i, point in enumerate(points.tolist())
    ]
    for j, entry in enumerate(entries[: len(ranked)]):
        entry["stands_for"] = round(float(changes.stands_for[j])) if j < facts.k else 0
    # Few cells are in the page a second time, for readers without JavaScript.
    about |= {"static_cells": page_bytes(lines) <= 100_000, "static_rows": USUALLY_LISTED}
    return shown, about | {"ranking": entries[: len(ranked)], "lowest": entries[len(ranked) :]}


def _usual_beside(facts: Facts, low: IntArray) -> list[IntArray]:
    """The three nearest points that belong, for the lowest counts, where no columns say what is odd about these points."""
    found = [NO_ROWS] * len(low)
    usual = facts.shown[facts.belongs]
    if facts.columns is None and len(usual):
        some = low[:24]
        D = facts.complete.kernel.distances(some, usual)
        D[some[:, None] == usual] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, : min(3, len(usual) - 1)]
        found[: len(some)] = list(usual[order])
    return found


def _named(facts: Facts, named: Callable[..., list[Any]], points: IntArray) -> list[Any]:
    """What columns say about points; nothing where columns have no names."""
    if facts.columns is None or not len(points):
        return [[] for _ in points]
    kernel: Any = facts.complete.kernel
    return named(
        facts.selection,
        facts.columns,
        in_double(kernel.X[points]),
        facts.row_of_point[points],
        points,
    )


def _why_chosen(facts: Facts) -> list[str]:
    """What is typical of ranked rows, in texts that are true at any k and threshold; empty where columns have no names."""
    selection = facts.selection
    ranked = facts.ranking.points
    data = facts.complete.data
    must = data.points.point_of[data.constraints.must]
    told = []
    for rank, (point, reasons) in enumerate(
        zip(ranked.tolist(), _named(facts, typical_columns, ranked), strict=True)
    ):
        reason = contrasts(reasons)
        if (
            facts.columns is None
            and selection.settings.mode == "paper"
            and rank < len(selection.gains)
        ):
            reason = f"its influence, the norm of its row in the encoding, is {finite(selection.gains[rank]) or 0.0:.3g}"
        if (
            rank < facts.k and facts.picks[rank].columns
        ):  # unusual cells, or those that it shares with its rows
            reason = (
                facts.picks[rank]
                .reason.partition("; ")[2]
                .partition(". It had")[0]
                .removesuffix(".")
            )
        if rank >= facts.k:
            reason = f"would come next: {reason}" if reason else "would come next"
        if point in must:
            reason = "must be included"
        told.append(f"{reason}." if reason else "")
    return told


def _map(facts: Facts, rows: Rows, group_of: IntArray) -> Part:
    shown = facts.shown
    bins = facts.bins
    copies = facts.rows.copies
    planes = [facts.plane]
    if facts.plane.method != "features":
        planes.insert(0, facts.neighbours)
    view, *other = [_view(facts, plane) for plane in planes]
    left_out = np.setdiff1d(np.arange(len(copies)), shown)
    numbers = facts.row_of_point[shown]
    names = names_of(rows, numbers) if rows.has_names else None
    return {
        **view,
        "other": other[0] if other else None,
        "n": len(shown),
        "of": len(copies),
        "row": packed(numbers, "u4"),
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


def _view(facts: Facts, plane: Plane) -> Part:
    frame = framed(plane.points, facts.belongs)
    steps = np.round(65535 * frame.shares)
    corners = np.column_stack([frame.low, frame.high])
    return {
        "method": plane.method,
        "axes": [shortened(name, LONGEST_NAME) for name in plane.axes],
        "range": [float(f"{edge:.6g}") for edge in corners.ravel()],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
    }


def _moves(facts: Facts) -> list[list[list[float]]]:
    """For each rank, pairs of an earlier rank and the number of rows taken over from it; -1 for rows that had none."""
    arrivals = facts.changes.moves
    n_ranks = arrivals.shape[1]
    taken = []
    for j in range(n_ranks):
        column = slice(arrivals.indptr[j], arrivals.indptr[j + 1])
        before = arrivals.indices[column].tolist()
        numbers = _numbers(arrivals.data[column])
        taken.append(
            [[-1 if i == n_ranks else i, number] for i, number in zip(before, numbers, strict=True)]
        )
    return taken


def _settings(facts: Facts, rows: Rows, command: str | None, certificate: bool) -> Part:
    """What is proven, and the settings to repeat the fit."""
    wants_proof = certificate and facts.k > 0
    proven = facts.certificate if wants_proof else facts.known_certificate
    notes = [note for note in rows.notes if note not in facts.decisions]
    absent = facts.rows.n_without_weight
    if absent:
        notes.append(
            f"{counted(absent, 'row')} without weight {'was' if absent == 1 else 'were'} not compared with others."
        )
    parameters = dict(facts.settings["parameters"])
    seed = str(parameters.pop("random_state", None))
    parameters.pop("verbose", None)
    settings = {
        "sentences": [PYTHON(sentence) for sentence in facts.decisions],
        "parameters": [
            [name, shortened(json.dumps(value), 200)] for name, value in parameters.items()
        ],
        "versions": list(facts.settings["versions"].items()),
        "seed": seed,
        "command": command,
        "notes": [PYTHON(note) for note in notes],
    }
    return {"proof": proven.details or proven.sentence, "settings": settings}


def _numbers(values: ArrayLike) -> list[float]:
    """Whole numbers as integers, others with one digit after the point."""
    return [
        int(value) if float(value).is_integer() else round(float(value), 1)
        for value in np.asarray(values)
    ]


# ------------------------------------------------------------------------------------------ names and pictures


def names_of(rows: Rows, numbers: IntArray, longest: int = LONGEST_NAME) -> list[str | None]:
    return [shortened(name, longest) or None for name in rows.ids(numbers)]


def pictures_of(rows: Rows, numbers: IntArray, side: int) -> list[str | None]:
    found = rows.pictures(numbers, side) if len(numbers) else None
    if found is None:
        return [None] * len(numbers)
    return [None if picture is None else _as_link(picture) for picture in found]


def _as_link(picture: bytes) -> str:
    kind = "jpeg" if picture.startswith(b"\xff\xd8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def within(texts: Sequence[str | None], limit: int) -> list[str | None]:
    """The first texts that together take at most ``limit`` bytes of a page; None for the others."""
    sizes = np.cumsum([0 if text is None else page_bytes(text) for text in texts])
    return [
        text if size <= limit else None for text, size in zip(texts, sizes.tolist(), strict=True)
    ]
