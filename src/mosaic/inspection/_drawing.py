"""Functions that the displays share: matplotlib, colours, frames, titles, numbers beside markers, grids of pictures."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.exceptions import MissingDependencyError

#: Paul Tol's light scheme, which stays distinct for colour-blind readers; grey marks points without a colour.
LIGHT = ("#77AADD", "#EEDD88", "#EE8866", "#44BB99", "#FFAABB", "#AAAA00", "#99DDFF", "#BBCC33")
GREY, INK, QUIET, ALARM, SECOND = "#BBBBBB", "#222222", "#4477AA", "#CC3311", "#EE7733"
#: Places for a number around its marker, in order of preference, as (right, up).
NUMBER_PLACES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (1, 0), (0, -1), (-1, 0))
#: The frame contains all outliers unless they would make it this many times wider or higher.
WIDEST_FRAME = 2.0
#: Outliers beyond the frame are drawn at this share of the way to it, where their crosses are not cut off.
EDGE_SHARE = 0.96
#: Pictures side by side.
PICTURE_COLUMNS = 5


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "displays need matplotlib, which is not installed", "Use: pip install 'mosaic-select[plots]'"
        ) from error
    return plt


def axes_or_new(ax: Any) -> Any:
    """The given axes, or those of a new figure."""
    plt = pyplot()
    return plt.figure(figsize=(8.0, 5.0), layout="constrained").add_subplot() if ax is None else ax


def head(ax: Any, title: str, handles: list[Any], labels: list[str], *, columns: int = 3) -> None:
    """The title above the axes on the left, and the legend between title and axes, so that neither covers data."""
    from matplotlib.legend_handler import HandlerTuple

    rows = -(-len(handles) // columns)
    if handles:
        ax.legend(
            handles,
            labels,
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.0)},
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            borderaxespad=0.2,
            ncols=columns,
            frameon=False,
            fontsize="small",
            handletextpad=0.4,
            columnspacing=1.4,
        )
    ax.set_title(title, loc="left", pad=6 + 16 * rows, fontweight="bold")


def bare(ax: Any) -> None:
    """Remove the upper and right spines."""
    ax.spines[["top", "right"]].set_visible(False)


def distinct_colours(points: FloatArray) -> IntArray:
    """A colour number for each point: the colour whose nearest earlier point is farthest away.

    Examples
    --------
    >>> distinct_colours(np.array([[0.0, 0.0], [1.0, 0.0], [0.1, 0.0]])).tolist()
    [0, 1, 2]
    """
    colours = np.zeros(len(points), np.intp)
    for i in range(len(points)):
        nearest = np.full(len(LIGHT), np.inf)
        np.minimum.at(nearest, colours[:i], np.linalg.norm(points[:i] - points[i], axis=1))
        colours[i] = int(np.argmax(nearest))
    return colours


def frame(
    inside: FloatArray, outside: FloatArray, ratio: float | None
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Corners of a frame, the outside points moved into it towards its centre, and which of them were moved.

    The frame contains all points, unless the outside ones would make it more than twice as wide or high; then it leaves a
    margin around the inside ones, and distant points are moved to its edge.

    Parameters
    ----------
    inside, outside : points that must stay where they are, and points that may be moved
    ratio : ratio of width to height that the frame is widened to, if any

    Examples
    --------
    >>> low, high, moved, far = frame(np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[20.0, 10.0], [0.5, 0.0]]), None)
    >>> high.tolist(), moved.round(2).tolist(), far.tolist()
    ([1.5, 1.5], [[1.44, 0.72], [0.5, 0.0]], [True, False])
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    side = high - low
    side = np.where(side > 0, side, side.max() if side.max() > 0 else 1.0)
    together = np.concatenate([inside, outside])
    fits = bool((np.ptp(together, axis=0) <= WIDEST_FRAME * side).all())
    if fits:
        low, high = together.min(axis=0), together.max(axis=0)
    half, centre = 0.5 * (high - low) + (0.05 if fits else 0.25) * side, 0.5 * (low + high)
    if ratio is not None:
        half = np.maximum(half, half[::-1] * np.array([ratio, 1.0 / ratio]))
    beyond = np.abs((outside - centre) / (EDGE_SHARE * half)).max(axis=1, initial=0.0)
    far = (beyond > 1.0) & (not fits)
    outside = np.where(far[:, None], centre + (outside - centre) / np.maximum(beyond, 1.0)[:, None], outside)
    return centre - half, centre + half, outside, far


def number_markers(ax: Any, points: FloatArray, texts: list[str], *, size: float, reach: float) -> list[Any]:
    """Write a text beside each marker, in the first free place; without a free place, the text is left out.

    Parameters
    ----------
    ax : axes, with their final limits
    points : markers, the most important first
    texts : one for each marker
    size : font size, in typographical points
    reach : distance from the centre of a marker to its text, in typographical points
    """
    from matplotlib import patheffects

    ax.figure.draw_without_rendering()  # layout and aspect move points, so distances are measured afterwards
    unit = ax.figure.dpi / 72.0
    pixels = ax.transData.transform(points)
    halo = [patheffects.withStroke(linewidth=1.8, foreground="white")]
    boxes = np.column_stack([pixels - 0.7 * reach * unit, pixels + 0.7 * reach * unit])  # texts do not cover markers
    written = []
    for i, text in enumerate(texts):
        half = 0.5 * unit * np.array([0.66 * size * len(text), 0.9 * size])
        for right, up in NUMBER_PLACES:
            shift = np.array([right, up]) * (half + 0.75 * reach * unit)
            box = np.concatenate([pixels[i] + shift - half, pixels[i] + shift + half])
            apart = (box[:2] >= boxes[:, 2:]) | (box[2:] <= boxes[:, :2])
            apart[i] = True
            if not apart.any(axis=1).all() or not ax.bbox.padded(2).contains(*(pixels[i] + shift)):
                continue
            boxes = np.vstack([boxes, box])
            written.append(
                ax.annotate(
                    text,
                    points[i],
                    shift / unit,
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=size,
                    color=INK,
                    fontweight="bold",
                    path_effects=halo,
                    zorder=6,
                )
            )
            break
    return written


class PictureBlock(NamedTuple):
    """Pictures under one title: their rows in the data, and the text above each."""

    title: str
    rows: list[int]
    texts: list[str]


def new_figure(plt: Any, blocks: list[Any], images: Any) -> tuple[Any, Any, list[Any]]:
    """A figure, the axes of its map, and to the right of them axes for each block of pictures."""
    figure = plt.figure(figsize=(11.0 if blocks else 8.0, 6.0), layout="constrained")
    if not blocks:
        return figure, figure.add_subplot(), []
    heights = [_grid(block, images)[1] for block in blocks]
    grid = figure.add_gridspec(1, 2, width_ratios=[1.8, 1.0])
    beside = grid[0, 1].subgridspec(len(blocks), 1, height_ratios=heights)
    return figure, figure.add_subplot(grid[0, 0]), [figure.add_subplot(beside[i, 0]) for i in range(len(blocks))]


def axes_beside(ax: Any, blocks: list[Any], images: Any) -> list[Any]:
    """Axes for pictures to the right of axes in an existing figure."""
    heights = np.array([_grid(block, images)[1] for block in blocks])
    tops = 1.0 - np.concatenate([[0.0], np.cumsum(heights) / max(heights.sum(), 1.0)])
    return [ax.inset_axes((1.05, low, 0.5, 0.9 * (high - low))) for high, low in pairwise(tops)]


def _grid(block: PictureBlock, images: Any) -> tuple[float, float]:
    """Distance between rows of pictures, and height of the grid, in widths of a picture."""
    step = images.shape[1] / images.shape[2] + (0.42 if any(block.texts) else 0.14)
    return step, step * -(-len(block.rows) // PICTURE_COLUMNS)


def draw_pictures(ax: Any, images: Any, block: PictureBlock, cmap: str) -> None:
    """Draw the pictures of a block in a grid, from the left and from the top, each with width 1."""
    shown = [np.asarray(images[row]) for row in block.rows]
    low, high = min(float(image.min()) for image in shown), max(float(image.max()) for image in shown)
    step, height = _grid(block, images)
    above = step - shown[0].shape[0] / shown[0].shape[1]
    style = {"cmap": cmap, "vmin": low, "vmax": high, "interpolation": "nearest"}
    for i, (image, text) in enumerate(zip(shown, block.texts, strict=True)):
        left, top = 1.14 * (i % PICTURE_COLUMNS), -step * (i // PICTURE_COLUMNS) - above
        ax.imshow(image, extent=(left, left + 1.0, top - step + above, top), **style)
        if text:
            ax.text(left + 0.5, top + 0.04, text, ha="center", va="bottom", fontsize=7.5, fontweight="bold", color=INK)
    ax.set(xlim=(-0.05, 1.14 * PICTURE_COLUMNS - 0.09), ylim=(-height - 0.02, 0.0), xticks=[], yticks=[])
    ax.set_aspect("equal", anchor="NW")
    ax.spines[:].set_visible(False)
    ax.set_title(block.title, loc="left", fontsize="medium", pad=2)
