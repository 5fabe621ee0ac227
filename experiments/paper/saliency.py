"""Salient objects: whether patches that do not belong to the others are those of the object in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments import judge
from experiments.datasets import MissingData, Picture, picture
from experiments.paper._figures import Words, paste
from experiments.paper._lines import (
    AUC,
    CENTRE,
    F_BEST,
    MAE,
    Column,
    Line,
    Measure,
    best,
    cells,
    in_table_order,
    label,
    latest,
    tiers,
)
from experiments.paper._markdown import table_of_columns
from mosaic.arrays.blocks import FloatArray

ITEM = "saliency"
COLUMNS = (AUC, F_BEST, MAE, CENTRE)
#: Maps of the figure, besides that of the best other method; and how many pictures it has.
SHOWN, PICTURES = ("MOSAIC", "MOSAIC (paper)"), 4
#: Pixels that a patch gets in the figure; between panels; above them.
ZOOM, GAP, HEAD = 3, 6, 20
GREYS = 32
#: Bytes of the figure: photos need more than curves do.
LARGEST = 100_000


def parts(lines: Sequence[Line]) -> list[str]:
    """Mean ± spread over pictures: methods × what the judge says of their maps."""
    mine = latest(lines, ITEM)
    each = {measure: _column(mine, measure) for measure in COLUMNS}
    columns = {m.title: (each[m], m) for m in COLUMNS if any(cell.values for cell in each[m].values())}
    words = (
        "Patches of 8×8 pixels, scored within each photograph; mean ± standard deviation over photographs. Objects are mostly in "
        "the middle: a map that does not look at the picture and calls its centre salient has the AUC of the last column."
    )
    return [words, table_of_columns(columns, in_table_order(mine), tiers(mine))]


def figure(lines: Sequence[Line], path: Path) -> Path | None:
    """Photo, mask and maps of the first pictures: those of ours, and of the other method with the highest mean AUC.

    Maps are scaled to [0, 1] as they are judged; white is salient. None if no line has a map or the set is not at hand.
    """
    mine = latest(lines, ITEM)
    maps = {(line["method"], line["seed"]): line["map"] for line in mine if line.get("map")}
    methods = [method for method in SHOWN if any(method == name for name, _ in maps)]
    methods += _best_rival(mine, {name for name, _ in maps})
    numbers = sorted({number for name, number in maps if name in methods})[:PICTURES]
    if not numbers:
        return None
    try:
        rows = [_panels(picture(number), [maps.get((name, number)) for name in methods]) for number in numbers]
    except MissingData:
        return None
    height, width = rows[0][0].shape[:2]
    heads = ["photo", "mask", *(label(method, tiers(mine)[method]) for method in methods)]
    shape = (HEAD + len(rows) * (height + GAP) - GAP, len(heads) * (width + GAP) - GAP, 3)
    canvas = np.full(shape, 255, np.uint8)
    for place, panels in enumerate(rows):
        for column, panel in enumerate(panels):
            top, left = HEAD + place * (height + GAP), column * (width + GAP)
            # Photos of another size are cut.
            canvas[top : top + height, left : left + width][: panel.shape[0], : panel.shape[1]] = panel[:height, :width]
    words = [Words(text, column * (width + GAP) + width / 2, HEAD / 2, "center") for column, text in enumerate(heads)]
    return paste(canvas, words, path, LARGEST)


def _column(lines: Sequence[Line], measure: Measure) -> Column:
    """One cell a method, over all pictures."""
    return next(iter(cells(lines, measure, []).values()), {})


def _best_rival(lines: Sequence[Line], with_map: set[str]) -> list[str]:
    """The method that is not ours and has the highest mean AUC, of those with a map; none if there is none."""
    tier = tiers(lines)
    rivals = {m: cell for m, cell in _column(lines, AUC).items() if tier[m] != "ours" and m in with_map}
    return best(rivals, AUC.higher)[:1]


def _panels(photo: Picture, maps: Sequence[Sequence[float] | None]) -> list[NDArray[np.uint8]]:
    """Photo, mask, and one panel for each map, grey where there is none; ZOOM pixels a patch."""
    rows, columns = photo.grid
    shares = photo.object_pixels / (photo.mask.size / len(photo.X))
    panels = [_small(photo), _grey(shares.reshape(photo.grid))]
    for values in maps:
        v = np.full(len(photo.X), 0.5) if values is None else judge.scaled(np.asarray(values, np.float64))
        panels.append(_grey(v.reshape(rows, columns)))
    return panels


def _small(photo: Picture) -> NDArray[np.uint8]:
    from PIL import Image

    rows, columns = photo.grid
    return np.asarray(Image.fromarray(photo.image).resize((ZOOM * columns, ZOOM * rows), Image.Resampling.LANCZOS))


def _grey(values: FloatArray) -> NDArray[np.uint8]:
    """Values in [0, 1] as squares of ZOOM × ZOOM pixels, of few greys: the file has 256 colours, and photos need most."""
    greys = np.rint(255.0 * np.rint((GREYS - 1) * values) / (GREYS - 1))
    large = np.kron(greys, np.ones((ZOOM, ZOOM)))
    return np.repeat(large.astype(np.uint8)[:, :, None], 3, axis=2)
