"""Lines against a ratio, one panel a set or a measure; the same lines give the same file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.paper._lines import TIERS, Cell, Column, label

#: Bytes of a figure in the repository.
LARGEST = 60_000
#: Dots an inch of pictures, which fixes the size of their words.
DOTS = 100
COLOURS = ("tab:green", "tab:purple", "tab:brown", "tab:pink", "tab:olive", "tab:cyan", "black", "goldenrod")
OURS = {"MOSAIC": "tab:blue", "MOSAIC (paper)": "tab:red", "paper's ADMM": "tab:red", "CVX reference": "0.45"}
OURS |= dict.fromkeys(("MOSAIC (paper, scalable)", "paper's ADMM, scalable"), "tab:orange")


@dataclass(frozen=True)
class Panel:
    """One plot: at each number a column, and what is shown of its cells."""

    title: str
    columns: Mapping[Any, Column]
    ylabel: str = ""
    xlabel: str = "outliers : inliers"
    of: Callable[[Cell], float | None] = lambda cell: cell.mean
    is_logarithmic: bool = False

    def series(self, method: str) -> tuple[list[float], list[float]]:
        """Numbers and values of a method, where it has some."""
        cells = {x: column[method] for x, column in self.columns.items() if method in column}
        known = {x: value for x, cell in cells.items() if (value := self.of(cell)) is not None}
        return list(known), list(known.values())


@dataclass(frozen=True)
class Words:
    """A text in a picture: ``left`` and ``top`` are pixels, of its anchor and of the middle of its line."""

    text: str
    left: float
    top: float
    align: Literal["left", "center", "right"] = "left"
    size: float = 8.0
    colour: str = "black"


def style(method: str, tier: str, number: int = 0) -> dict[str, Any]:
    """Ours thick, baselines of the paper solid, surrogates dashed, peers thin and grey. number: among those that need a colour.

    Examples
    --------
    >>> style("LOF", "peer") == {"color": "0.75", "linewidth": 0.7, "zorder": 1}
    True
    """
    if tier == "peer":
        return {"color": "0.75", "linewidth": 0.7, "zorder": 1}
    if tier == "ours":
        return {"color": OURS.get(method, "black"), "linewidth": 2.8, "marker": "o", "markersize": 4, "zorder": 4}
    dashes = {"linestyle": "--"} if tier == "surrogate" else {}
    return {"color": COLOURS[number % len(COLOURS)], "linewidth": 1.4, "marker": ".", "zorder": 3, **dashes}


def draw(panels: Sequence[Panel], tier: Mapping[str, str], path: Path, columns: int = 2) -> Path:
    """Write the figure; peers share one entry of the legend."""
    # The canvas is made by hand: pyplot would ask for a display and keep the figure.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.6 * rows + 0.9), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    order = sorted(
        {m for panel in panels for column in panel.columns.values() for m in column}, key=lambda m: (TIERS.index(tier[m]), m)
    )
    coloured = [method for method in order if tier[method] in ("paper", "surrogate")]
    handles: dict[str, Any] = {}
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(rows, columns, place)
        for method in (method for method in order if panel.series(method)[0]):
            number = coloured.index(method) if method in coloured else 0
            (line,) = axes.plot(*panel.series(method), **style(method, tier[method], number))
            handles.setdefault("peers (see the table)" if tier[method] == "peer" else label(method, tier[method]), line)
        axes.set_title(panel.title, fontsize=9)
        axes.set_xlabel(panel.xlabel, fontsize=8)
        axes.set_ylabel(panel.ylabel, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.25)
        if panel.is_logarithmic:
            axes.loglog()
    if handles:
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=7)
    return _save(figure, path)


def paste(pixels: NDArray[np.uint8], words: Sequence[Words], path: Path, largest: int = LARGEST) -> Path:
    """Write a picture as it is, pixel by pixel, with words on it.

    Parameters
    ----------
    pixels : height × width × 3
    words : texts and where they stand
    path : of the figure
    largest : bytes that it should not exceed
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    height, width = pixels.shape[:2]
    figure = Figure(figsize=(width / DOTS, height / DOTS), dpi=DOTS)
    FigureCanvasAgg(figure)
    figure.figimage(pixels)
    for text in words:
        x, y = text.left / width, 1.0 - text.top / height
        figure.text(x, y, text.text, fontsize=text.size, ha=text.align, va="center", color=text.colour)
    return _save(figure, path, largest)


def _save(figure: Any, path: Path, largest: int = LARGEST) -> Path:
    """A PNG of few colours, without a record of who wrote it and when."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.open(buffer).convert("RGB")
    for colours in (256, 64, 16):  # with few colours, lines of different methods may come to look alike
        image.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= largest:
            break
    return path
