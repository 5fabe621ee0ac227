"""Faces of five subjects: whether picks are spread over subjects and over lights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import Dataset, MissingData, load
from experiments.paper._figures import Words, paste
from experiments.paper._lines import (
    CLASS_BALANCE,
    EQUAL,
    LIGHT_GROUPS,
    Line,
    Measure,
    cells,
    in_table_order,
    label,
    latest,
    tiers,
)
from experiments.paper._markdown import table_of_columns

ITEM, SET = "faces", "yaleb"
#: Strips of the figure, from above.
SHOWN = ("MOSAIC", "MOSAIC (paper)", "SMRS", "K-medoids")
SUBJECTS_HIT = Measure("classes_hit", "subjects hit")
SUBJECTS = Measure("classes", "subjects")
COLUMNS = (SUBJECTS_HIT, CLASS_BALANCE, LIGHT_GROUPS)
#: Frames of subjects. Red, green, blue, dark yellow, purple: apart from each other for most eyes, and from grey.
FRAMES = ((213, 94, 0), (0, 158, 115), (0, 114, 178), (230, 159, 0), (150, 60, 150))
#: Pixels: around a face, between faces, between subjects, left of a strip, and above it.
FRAME, GAP, BREAK, MARGIN, HEAD = 3, 2, 8, 6, 20


def parts(lines: Sequence[Line]) -> list[str]:
    """Mean ± spread over runs: methods × what the judge says of subjects and lights."""
    mine = latest(lines, ITEM)
    each = {m: next(iter(cells(mine, m, []).values()), {}) for m in COLUMNS}
    columns = {m.title: (column, m) for m, column in each.items() if any(cell.values for cell in column.values())}
    words = "Five subjects at random, fifteen faces picked; a group is a subject under light from the left, the right or ahead."
    return [words, table_of_columns(columns, in_table_order(mine), tiers(mine))]


def figure(lines: Sequence[Line], path: Path) -> Path | None:
    """The picks of a few methods at the first seed, by subject, a frame of one colour for each.

    None if no line has picks or the set is not at hand.
    """
    found = [line for line in latest(lines, ITEM) if line["method"] in SHOWN and line.get("rows")]
    if not found:
        return None
    first = min(line["seed"] for line in found)
    picks = {line["method"]: line["rows"] for line in found if line["seed"] == first}
    try:
        faces = load(SET)
    except MissingData:
        return None
    assert faces.y is not None  # the faces have names
    methods, tier = [method for method in SHOWN if method in picks], tiers(found)
    subjects = sorted({int(faces.y[row]) for rows in picks.values() for row in rows})
    strips = [_strip(faces, picks[method], subjects) for method in methods]
    width = max(strip.shape[1] for strip in strips) + 2 * MARGIN
    height = strips[0].shape[0] + HEAD
    canvas = np.full((height * len(strips) + MARGIN, width, 3), 255, np.uint8)
    words = []
    for place, (method, strip) in enumerate(zip(methods, strips, strict=True)):
        top = place * height
        canvas[top + HEAD : top + height, MARGIN : MARGIN + strip.shape[1]] = strip
        counts = " + ".join(str(sum(int(faces.y[row]) == subject for row in picks[method])) for subject in subjects)
        words.append(Words(f"{label(method, tier[method])}: {counts} faces", MARGIN, top + HEAD / 2))
    return paste(canvas, words, path)


def _strip(faces: Dataset, rows: Sequence[int], subjects: Sequence[int]) -> NDArray[np.uint8]:
    """Faces side by side, of one subject after the other, from light on the right to light on the left."""
    assert faces.y is not None
    assert faces.image_shape is not None
    half = faces.image_shape[1] // 2
    parts: list[NDArray[np.uint8]] = []
    for number, subject in enumerate(subjects):
        images = [faces.X[row].reshape(faces.image_shape) for row in rows if faces.y[row] == subject]
        images.sort(key=lambda image: float(image[:, :half].sum() / max(image.sum(), EQUAL)))
        for place, image in enumerate(images):
            if parts:
                parts.append(_white(parts[0].shape[0], BREAK if place == 0 else GAP))
            parts.append(_framed(image, FRAMES[number % len(FRAMES)]))
    return np.concatenate(parts, axis=1)


def _framed(image: NDArray[np.floating], colour: tuple[int, int, int]) -> NDArray[np.uint8]:
    height, width = image.shape
    framed = np.empty((height + 2 * FRAME, width + 2 * FRAME, 3), np.uint8)
    framed[:] = colour
    framed[FRAME:-FRAME, FRAME:-FRAME] = np.rint(255.0 * np.clip(image, 0.0, 1.0))[:, :, None]
    return framed


def _white(height: int, width: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), 255, np.uint8)
