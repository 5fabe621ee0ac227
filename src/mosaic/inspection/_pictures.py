"""Pictures beside a map, in a grid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mosaic.inspection._drawing import INK

#: Pictures in a row.
COLUMNS = 5


class Block(NamedTuple):
    """Pictures that belong together: their title, their rows of the data, and what is written above each."""

    title: str
    rows: list[int]
    texts: list[str]


def new_figure(plt: Any, blocks: list[Any], images: Any) -> tuple[Any, Any, list[Any]]:
    """A figure, the axes of its map, and on their right axes for each block of pictures."""
    figure = plt.figure(figsize=(11.0 if blocks else 8.0, 6.0), layout="constrained")
    if not blocks:
        return figure, figure.add_subplot(), []
    heights = [_grid(block, images)[1] for block in blocks]
    grid = figure.add_gridspec(1, 2, width_ratios=[1.8, 1.0])
    beside = grid[0, 1].subgridspec(len(blocks), 1, height_ratios=heights)
    return figure, figure.add_subplot(grid[0, 0]), [figure.add_subplot(beside[i, 0]) for i in range(len(blocks))]


def axes_beside(ax: Any, blocks: list[Any], images: Any) -> list[Any]:
    """Room for pictures on the right of axes that are part of somebody else's figure."""
    heights = np.array([_grid(block, images)[1] for block in blocks])
    tops = 1.0 - np.concatenate([[0.0], np.cumsum(heights) / max(heights.sum(), 1.0)])
    return [ax.inset_axes((1.05, low, 0.5, 0.9 * (high - low))) for high, low in pairwise(tops)]


def _grid(block: Block, images: Any) -> tuple[float, float]:
    """Distance of rows of pictures, and height of all of them, for pictures of width 1."""
    step = images.shape[1] / images.shape[2] + (0.42 if any(block.texts) else 0.14)
    return step, step * -(-len(block.rows) // COLUMNS)


def draw_pictures(ax: Any, images: Any, block: Block, cmap: str) -> None:
    """Pictures in a grid, from the left and from the top, each as high as it is for a width of 1."""
    shown = [np.asarray(images[row]) for row in block.rows]
    low, high = min(float(image.min()) for image in shown), max(float(image.max()) for image in shown)
    step, height = _grid(block, images)
    above = step - shown[0].shape[0] / shown[0].shape[1]
    style = {"cmap": cmap, "vmin": low, "vmax": high, "interpolation": "nearest"}
    for i, (image, text) in enumerate(zip(shown, block.texts, strict=True)):
        left, top = 1.14 * (i % COLUMNS), -step * (i // COLUMNS) - above
        ax.imshow(image, extent=(left, left + 1.0, top - step + above, top), **style)
        if text:
            ax.text(left + 0.5, top + 0.04, text, ha="center", va="bottom", fontsize=7.5, fontweight="bold", color=INK)
    ax.set(xlim=(-0.05, 1.14 * COLUMNS - 0.09), ylim=(-height - 0.02, 0.0), xticks=[], yticks=[])
    ax.set_aspect("equal", anchor="NW")
    ax.spines[:].set_visible(False)
    ax.set_title(block.title, loc="left", fontsize="medium", pad=2)
