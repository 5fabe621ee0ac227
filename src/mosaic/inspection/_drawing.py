"""What the displays share: matplotlib when it is there, colours, and room for what is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.exceptions import MissingDependencyError

#: Paul Tol's light scheme, which stays distinct for the colour-blind; its grey is left for what has no colour.
LIGHT = ("#77AADD", "#EEDD88", "#EE8866", "#44BB99", "#FFAABB", "#AAAA00", "#99DDFF", "#BBCC33")
GREY, INK, QUIET, ALARM, SECOND = "#BBBBBB", "#222222", "#4477AA", "#CC3311", "#EE7733"
#: Places for a number around its marker, in the order of preference, as (right, up).
AROUND = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (1, 0), (0, -1), (-1, 0))
#: Data are framed together with their outliers unless that makes the frame this many times wider or higher.
WIDEST_FRAME = 2.0
#: Part of the way to the frame where those beyond it are drawn: a cross on the very edge would be cut in half.
EDGE = 0.96


def pyplot() -> Any:
    """matplotlib.pyplot, or how to get it."""
    try:
        import matplotlib
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "displays draw with matplotlib, which is not installed. Use: pip install 'mosaic-select[plots]'"
        ) from error
    del matplotlib
    return plt


def axes_or_new(ax: Any) -> Any:
    """The axes, or, without any, those of a new figure."""
    plt = pyplot()
    return plt.figure(figsize=(8.0, 5.0), layout="constrained").add_subplot() if ax is None else ax


def head(ax: Any, title: str, handles: list[Any], labels: list[str], *, columns: int = 3) -> None:
    """The title on the left above the axes, and below it the legend: outside of the data, whatever the axes are part of."""
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
    """Without the lines that enclose nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def distinct_colours(points: FloatArray) -> IntArray:
    """A number of a colour for each point, in order: that whose nearest earlier bearer is farthest away.

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
    """Corners of a frame, the outside points moved into it along the ray to its centre, and which of them were moved.

    The frame holds all points, unless the outside ones would make it more than twice as wide or high; then it leaves a
    margin around the inside ones and the far ones are on its edge.

    Parameters
    ----------
    inside, outside : points that must be seen where they are, and points that need not
    ratio : width to height that the frame is widened to, if any

    Examples
    --------
    >>> low, high, moved, far = frame(np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[20.0, 10.0], [0.5, 0.0]]), None)
    >>> high.tolist(), moved.round(2).tolist(), far.tolist()
    ([1.5, 1.5], [[1.44, 0.72], [0.5, 0.0]], [True, False])
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    side = high - low
    side = np.where(side > 0, side, side.max() if side.max() > 0 else 1.0)
    everyone = np.concatenate([inside, outside])
    fits = bool((np.ptp(everyone, axis=0) <= WIDEST_FRAME * side).all())
    if fits:
        low, high = everyone.min(axis=0), everyone.max(axis=0)
    half, centre = 0.5 * (high - low) + (0.05 if fits else 0.25) * side, 0.5 * (low + high)
    if ratio is not None:
        half = np.maximum(half, half[::-1] * np.array([ratio, 1.0 / ratio]))
    beyond = np.abs((outside - centre) / (EDGE * half)).max(axis=1, initial=0.0)
    far = (beyond > 1.0) & (not fits)
    outside = np.where(far[:, None], centre + (outside - centre) / np.maximum(beyond, 1.0)[:, None], outside)
    return centre - half, centre + half, outside, far


def number_markers(ax: Any, points: FloatArray, texts: list[str], *, size: float, reach: float) -> list[Any]:
    """Write beside each marker what it is called, on the first side where there is room; nothing where there is none.

    Parameters
    ----------
    ax : axes, with their final limits
    points : markers, the most important first
    texts : what to write
    size : of the letters, in typographical points
    reach : from the centre of a marker to the text, in typographical points
    """
    from matplotlib import patheffects

    ax.figure.draw_without_rendering()  # layout and aspect move points; distances are measured after that
    unit = ax.figure.dpi / 72.0
    pixels = ax.transData.transform(points)
    halo = [patheffects.withStroke(linewidth=1.8, foreground="white")]
    boxes = np.column_stack([pixels - 0.7 * reach * unit, pixels + 0.7 * reach * unit])  # markers are not written on
    written = []
    for i, text in enumerate(texts):
        half = 0.5 * unit * np.array([0.66 * size * len(text), 0.9 * size])
        for right, up in AROUND:
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
