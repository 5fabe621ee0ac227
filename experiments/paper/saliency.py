"""Salient objects: whether patches that do not belong to the others are those of the object in the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from experiments import judge
from experiments.datasets import MissingData, Picture, picture
from experiments.paper._figures import Words, paste
from experiments.paper._lines import (
    AUC,
    F_BEST,
    MAE,
    MEASURES,
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
from experiments.paper._markdown import ABSENT, table_of_columns
from mosaic._arrays import FloatArray

ITEM = "saliency"
NAME, CLAIM = "salient objects", "Patches flagged as outliers match the salient regions."
COLUMNS = (
    AUC,
    F_BEST,
    Measure("f", "adaptive F"),
    Measure("precision", "precision"),
    Measure("recall", "recall"),
    MAE,
    Measure("f_own", "F of its own flags"),
)
#: AUC from which on patches match the object, and below which they do not.
MATCH, NO_MATCH = 0.8, 0.6
#: Maps of the figure, besides that of the best other method; and how many pictures it has.
SHOWN, PICTURES = ("MOSAIC", "MOSAIC (paper)"), 4
#: Pixels that a patch gets in the figure; between panels; above them.
ZOOM, GAP, HEAD = 3, 6, 20
GREYS = 32
#: Bytes of the figure: photos need more than curves do.
LARGEST = 100_000


def table(lines: Sequence[Line]) -> str:
    """Mean ± spread over pictures: methods × what the judge says of their maps."""
    mine = latest(lines, ITEM)
    each = {measure: _column(mine, measure) for measure in COLUMNS}
    columns = {m.title: (each[m], m) for m in COLUMNS if any(cell.values for cell in each[m].values())}
    return table_of_columns(columns, in_table_order((line["method"] for line in mine), mine), tiers(mine))


def baselines(lines: Sequence[Line]) -> str:
    """What the same judge says, of the same pictures, of maps that look at none of them; "" if the set is not at hand.

    Everything is salient: s = 0 for all, so that every threshold takes all pixels. The centre is: v = −‖(i, j) − centre‖₂, in
    units of half the height and half the width.
    """
    numbers = sorted({line["seed"] for line in latest(lines, ITEM)})
    try:
        pictures = [picture(number) for number in numbers]
    except MissingData:
        return ""
    maps: dict[str, Callable[[Picture], FloatArray]] = {
        "all of it": lambda p: np.zeros(len(p.X)),
        "its centre": _centre,
    }
    words = []
    for name, function in maps.items():
        found = [judge.judge_saliency(p, function(p)) for p in pictures]
        numbers_of = {m: [v for verdict in found if (v := verdict[m.name]) is not None] for m in MEASURES[ITEM]}
        means = [f"{m.title} {fmean(values):.3f}" for m, values in numbers_of.items() if values]
        if means:
            words.append(f"{name} {', '.join(means)}")
    return f"A map that calls salient, whatever the picture, has: {'; '.join(words)}." if words else ""


def verdict(lines: Sequence[Line]) -> tuple[str, str, str, str, str]:
    """Item, claim, status, measurement, who wins.

    The paper shows a few pictures that it chose, and no number. The claim holds if the mean over pictures of the AUC of the
    paper's method is at least 0.8, fails if it is below 0.6, where 0.5 is chance, and is open between the two.
    """
    from experiments.paper.verdicts import HERO, Outcome, Reading, decide, who_wins  # which imports this module

    mine = latest(lines, ITEM)
    columns = [(_column(mine, measure), measure.higher) for measure in MEASURES[ITEM]]
    winners = who_wins(columns, tiers(mine)) if mine else ABSENT
    cell = _column(mine, AUC).get(HERO)
    if cell is None or cell.mean is None or not cell.complete:
        reasons = "; ".join(cell.reasons) if cell is not None else ""
        words = (f"{HERO}: {reasons}" if reasons else f"no runs of {HERO}") if mine else "no runs of this item"
        return NAME, CLAIM, decide([]), words, winners
    outcome: Outcome = "holds" if cell.mean >= MATCH else "fails" if cell.mean < NO_MATCH else "open"
    words = f"{HERO}: mean AUC {cell.mean:.3f} over {len(cell.values)} pictures (from {MATCH} on it holds, "
    return NAME, CLAIM, decide([Reading("", outcome, words)]), f"{words}below {NO_MATCH} it fails)", winners


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


def _centre(photo: Picture) -> FloatArray:
    rows, columns = photo.grid
    i, j = np.mgrid[:rows, :columns].reshape(2, -1)
    return np.asarray(-np.hypot((2 * i + 1) / rows - 1.0, (2 * j + 1) / columns - 1.0))
