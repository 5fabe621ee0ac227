"""All data of the page, as plain data. The page draws it for any k and threshold."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import IntArray
from mosaic.choosing import counted
from mosaic.exceptions import PYTHON
from mosaic.facts import Curve, Facts
from mosaic.facts.listed import USUALLY_LISTED, Groups, groups_of, lowest_rows, ranked_rows
from mosaic.facts.map import Plane, framed
from mosaic.rows import Rows
from mosaic.show.page_columns import (
    columns_of_rows,
    columns_shown,
    lines_of,
    map_columns,
    packed,
    page_bytes,
)
from mosaic.text import LONGEST_NAME, shortened

#: The curve of a detector.
NO_CURVE = Curve([], [], [], None, None)

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
    curve = facts.curve or NO_CURVE
    groups = groups_of(facts, rows.groups)
    file = None
    if rows.path is not None:
        file = {"name": shortened(rows.path.name, 200), "kind": rows.kind}
    shown, lists = _lists(facts, rows, groups)
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
        "coverage": [round(share, 8) for share in curve.coverage],
        "bound": curve.bound,
        "suggested": curve.suggested,
        "moves": _moves(facts),
        "bins": {
            "edges": [float(f"{edge:.6g}") for edge in bins.edges],
            "rows": _numbers(bins.sums(weights)),
            "safe": _numbers(bins.sums(weights * bins.safe_rows)),
            "threshold": bins.threshold,
            "exact": facts.exact_bins,
            "grouped": selection.n_protected,
            "must": round(float(facts.rows.copies[bins.must].sum())),
        },
        "map": _map(facts, rows, groups),
        "groups": _groups(facts, groups, rows),
        **_settings(facts, rows, command, certificate),
    }
    return page | {"map_columns": map_columns(rows, facts.row_of_point[facts.shown], shown, page)}


def _groups(facts: Facts, groups: Groups | None, rows: Rows) -> Part | None:
    if groups is None:
        return None
    return {
        "column": shortened(rows.group_name or "group"),
        "labels": groups.names,
        "rows": _numbers(groups.sizes),
        "is_estimate": facts.scaled and rows.groups is None,
        "low": [_numbers(counts) for counts in groups.low],
    }


def _lists(facts: Facts, rows: Rows, groups: Groups | None) -> tuple[list[str], Part]:
    """The columns that are shown; the ranked rows, and those with the lowest counts, with names, cells and pictures within limits
    of bytes.
    """
    ranked = ranked_rows(facts)
    lowest = lowest_rows(facts)
    listed = ranked + lowest
    points = np.array([each.point for each in listed], np.intp)
    numbers = facts.row_of_point[np.concatenate([points, *(each.beside for each in listed)])]
    own = numbers[: len(listed)]
    others = numbers[len(listed) :]

    cells = columns_of_rows(rows, own)
    if rows.index is None and rows.id_name is not None:
        cells.pop(rows.id_name)
    is_outlier = facts.complete.is_outlier
    first = [column for each in lowest if is_outlier[each.point] for column in each.at_fault]
    compared = set(facts.feature_names or cells)
    shown, about = columns_shown(cells, compared, list(dict.fromkeys(first)))
    lines = lines_of(cells, shown, len(listed))

    names = within(names_of(rows, numbers), limit=200_000)
    long_names = zip(names_of(rows, own, longest=500), names, strict=False)
    full = within([name if name != short else None for name, short in long_names], limit=80_000)
    pictures = within(
        [*pictures_of(rows, own, side=96), *pictures_of(rows, others, side=48)], limit=650_000
    )
    called = [
        {"row": row, "name": name, "picture": picture}
        for row, name, picture in zip(numbers.tolist(), names, pictures, strict=True)
    ]
    members = iter(called[len(listed) :])
    counts = facts.complete.data.counts
    bins = facts.bins
    entries: list[Part] = [
        called[i]
        | {
            "full": full[i],
            "count": float(f"{counts[each.point]:.4g}"),
            "bin": int(bins.of[each.point]),
            "safe": bool(bins.safe[each.point]),
            "group": -1 if groups is None else int(groups.of_point[each.point]),
            "copies": 1 if facts.scaled else int(facts.rows.copies[each.point]),
            "cells": lines[i],
            "faults": [shown.index(name) for name in each.at_fault if name in shown],
            "cause": shortened(each.cause),
            "reason": each.reason,
            "members": list(islice(members, len(each.beside))),
        }
        for i, each in enumerate(listed)
    ]
    for entry, number in zip(entries, facts.changes.stands_for.tolist(), strict=False):
        entry["stands_for"] = round(number)
    # Few cells are in the page a second time, for readers without JavaScript.
    about |= {"static_cells": page_bytes(lines) <= 100_000, "static_rows": USUALLY_LISTED}
    return shown, about | {"ranking": entries[: len(ranked)], "lowest": entries[len(ranked) :]}


def _map(facts: Facts, rows: Rows, groups: Groups | None) -> Part:
    shown = facts.shown
    bins = facts.bins
    copies = facts.rows.copies
    view = _view(facts, facts.plane)
    other = None
    if facts.plane.method != "features":
        other = view
        view = _view(facts, facts.neighbours)
    left_out = np.setdiff1d(np.arange(len(copies)), shown)
    numbers = facts.row_of_point[shown]
    names = names_of(rows, numbers) if rows.has_names else None
    return {
        **view,
        "other": other,
        "n": len(shown),
        "of": len(copies),
        "row": packed(numbers, "u4"),
        "bin": packed(bins.of[shown], "u1"),
        "safe": packed(bins.safe[shown], "u1") if bins.safe.any() else None,
        "copies": packed(np.round(copies[shown]), "u4") if (copies != 1).any() else None,
        "group": None if groups is None else packed(groups.of_point[shown], "i2"),
        "names": None if names is None or page_bytes(names) > 400_000 else names,
        "history": packed(facts.changes.ranks, "u2"),
        "history_end": packed(facts.changes.end, "u4"),
        # The number of lowest bins whose points are all on the map.
        "low_complete": int(bins.of[left_out].min(initial=len(bins.edges) - 1)),
    }


def _view(facts: Facts, plane: Plane) -> Part:
    frame = framed(plane.points, facts.belongs)
    steps = np.round(65535 * frame.shares)
    corners = np.column_stack([frame.low, frame.high])
    return {
        "method": plane.method,
        "axes": [shortened(name) for name in plane.axes],
        "range": [float(f"{edge:.6g}") for edge in corners.ravel()],
        "n_outside": int(frame.outside.sum()),
        "x": packed(steps[:, 0], "u2"),
        "y": packed(steps[:, 1], "u2"),
    }


def _moves(facts: Facts) -> list[list[tuple[int, float]]]:
    """For each rank, pairs of an earlier rank and the number of rows taken over from it; -1 for rows that had none."""
    moves = facts.changes.moves
    n_ranks = moves.shape[1]
    pairs = []
    for start, end in pairwise(moves.indptr.tolist()):
        before = moves.indices[start:end]
        ranks = np.where(before < n_ranks, before, -1).tolist()
        pairs.append(list(zip(ranks, _numbers(moves.data[start:end]), strict=True)))
    return pairs


def _settings(facts: Facts, rows: Rows, command: str | None, certificate: bool) -> Part:
    """What is proven, and the settings to repeat the fit."""
    proven = facts.certificate if certificate else facts.known_certificate
    notes = [note for note in rows.notes if note not in facts.decisions]
    absent = facts.rows.n_without_weight
    if absent:
        notes.append(
            f"{counted(absent, 'row')} without weight {'was' if absent == 1 else 'were'} not compared with others."
        )
    about = facts.settings
    parameters = about["parameters"]
    seed = str(parameters.pop("random_state", None))
    parameters.pop("verbose", None)
    settings = {
        "sentences": [PYTHON(sentence) for sentence in facts.decisions],
        "parameters": [
            [name, shortened(json.dumps(value), 200)] for name, value in parameters.items()
        ],
        "versions": list(about["versions"].items()),
        "seed": seed,
        "command": command,
        "notes": [PYTHON(note) for note in notes],
    }
    return {"proof": proven.details or proven.sentence, "settings": settings}


def _numbers(values: ArrayLike) -> list[float]:
    """Whole numbers as integers, others with one digit after the point."""
    return [
        int(value) if value.is_integer() else round(value, 1)
        for value in np.asarray(values, np.float64).tolist()
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
