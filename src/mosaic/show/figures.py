"""Figures of the facts of a fit: the map, the coverage curve, and the distribution of effective counts.

They need matplotlib, ``pip install 'mosaic-select[plots]'``, which is imported when the first one is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.choosing import counted
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.facts import Map
from mosaic.facts.map import framed, thinned
from mosaic.show.ask import facts_of

#: Paul Tol's light scheme, which stays distinct for colour-blind readers; grey marks points without a colour.
LIGHT = ("#77AADD", "#EEDD88", "#EE8866", "#44BB99", "#FFAABB", "#AAAA00", "#99DDFF", "#BBCC33")
GREY, INK, QUIET, ALARM, SECOND = "#BBBBBB", "#222222", "#4477AA", "#CC3311", "#EE7733"
#: Points of the map that are drawn, at most.
MOST_POINTS = 2000
#: Places for a number around its marker, in order of preference, as (right, up).
NUMBER_PLACES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (1, 0), (0, -1), (-1, 0))
#: Features whose ranges differ by more than this factor are drawn to two scales.
MOST_UNEQUAL_SIDES = 5.0
#: With more representatives than this, their markers and numbers are smaller.
MANY_REPRESENTATIVES = 60
#: Bars have a logarithmic scale if the highest bar is this many times as high as the highest bar of outliers.
MOST_UNEQUAL_BARS = 50
#: Where the outlier threshold comes from.
THRESHOLD_RULES = {
    "alone": "rows below are alone",
    "valley": "a valley in the distribution",
    "contamination": "from contamination",
    "threshold": "from op_threshold",
}


def plot_map(model: Any, *, ax: Any = None) -> Any:
    """Draw the data in the plane, coloured by representative; representatives are numbered by rank, outliers are crosses.

    Outliers that are too far away for one frame are drawn at its edge. Neighbouring representatives have different colours;
    distant ones may share one.

    Parameters
    ----------
    model : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    ax : axes to draw on, by default those of a new figure

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAIC, datasets, show
    >>> ax = show.plot_map(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X))
    >>> ax.get_title(loc="left")
    '20 representatives of 400 points, 8 outliers'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    facts = facts_of(model)
    ax = _new_axes() if ax is None else ax
    chart = facts.map
    status = np.array(chart.status)
    place = {int(row): i for i, row in enumerate(chart.row)}
    chosen = np.array([place[pick.row] for pick in facts.picks], np.intp)
    kept = np.arange(len(status))
    if len(kept) > MOST_POINTS:
        kept = thinned(chosen, kept, chart.effective_count, MOST_POINTS, np.random.default_rng(0))
    frame = framed(np.column_stack([chart.x, chart.y]), status != "outlier")
    xy = frame.low + frame.shares * (frame.high - frame.low)
    odd, ordinary = kept[status[kept] == "outlier"], np.setdiff1d(kept[status[kept] != "outlier"], chosen)
    ax.set(xlabel=chart.axes[0], ylabel=chart.axes[1])
    ax.spines[["top", "right"]].set_visible(False)
    if chart.method != "features":  # coordinates along principal axes have no unit
        ax.set(xticks=[], yticks=[])
    sides = frame.high - frame.low
    if MOST_UNEQUAL_SIDES * sides.min() >= sides.max():
        ax.set_aspect("equal", adjustable="datalim")  # the kernel measures all features in one unit
    part = "" if len(kept) == len(status) else f" ({len(kept):,} of {len(status):,} points shown)"
    few, handles = len(chosen) <= MANY_REPRESENTATIVES, {}
    if len(chosen):
        style = {"s": 46 if few else 22, "c": INK, "edgecolors": "white", "linewidths": 1.0, "zorder": 5}
        handles["representative"] = ax.scatter(*xy[chosen].T, **style)
    if len(ordinary):
        size = float(np.clip(26.0 * np.sqrt(300.0 / len(kept)), 8.0, 26.0))
        text = f"belongs{part}" if facts.detects else f"coloured by its representative{part}"
        colours = _colours(chart, xy[chosen], ordinary)
        handles[text] = ax.scatter(*xy[ordinary].T, s=size, c=colours, linewidths=0, alpha=0.85, zorder=2)
    if len(odd):
        text = "outlier (at the edge: farther out)" if frame.outside[odd].any() else "outlier"
        handles[text] = ax.scatter(*xy[odd].T, s=26, c=ALARM, marker="x", linewidths=1.1, zorder=3)
    _head(ax, facts.title, handles)
    _number(ax, xy[chosen], size=8.0 if few else 6.5, reach=5.0 if few else 3.5)
    return ax


def _colours(chart: Map, chosen: FloatArray, points: IntArray) -> list[str]:
    """For each point the colour of its representative: the one whose nearest earlier representative is farthest away."""
    of_rank = np.zeros(len(chosen) + 1, np.intp)
    for i in range(len(chosen)):
        nearest = np.full(len(LIGHT), np.inf)
        np.minimum.at(nearest, of_rank[:i], np.linalg.norm(chosen[:i] - chosen[i], axis=1))
        of_rank[i] = int(np.argmax(nearest))
    return [GREY if label < 0 else LIGHT[of_rank[label]] for label in chart.label[points]]


def _number(ax: Any, points: FloatArray, *, size: float, reach: float) -> None:
    """Write its rank beside each marker, in the first free place; without a free place, it is left out."""
    ax.figure.draw_without_rendering()  # layout and aspect move points, so distances are measured afterwards
    unit = ax.figure.dpi / 72.0
    pixels = ax.transData.transform(points) if len(points) else points
    boxes = np.column_stack([pixels - 0.7 * reach * unit, pixels + 0.7 * reach * unit])  # texts do not cover markers
    for i in range(len(points)):
        text = str(i + 1)
        half = 0.5 * unit * np.array([0.66 * size * len(text), 0.9 * size])
        for place in NUMBER_PLACES:
            shift = np.array(place) * (half + 0.75 * reach * unit)
            box = np.concatenate([pixels[i] + shift - half, pixels[i] + shift + half])
            overlaps = ((box[:2] < boxes[:, 2:]) & (box[2:] > boxes[:, :2])).all(axis=1)
            if not np.delete(overlaps, i).any() and ax.bbox.padded(2).contains(*(pixels[i] + shift)):
                boxes = np.vstack([boxes, box])
                style = {"ha": "center", "va": "center", "fontsize": size, "color": INK, "fontweight": "bold", "zorder": 6}
                ax.annotate(text, points[i], shift / unit, textcoords="offset points", **style)
                break


def plot_coverage(model: Any, *, ax: Any = None) -> Any:
    """Draw coverage and similarity by the number of representatives, with the suggested number and the chosen one.

    Parameters
    ----------
    model : fitted MOSAIC or MOSAICSampler
    ax : axes to draw on, by default those of a new figure

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAIC, datasets, show
    >>> ax = show.plot_coverage(MOSAIC(20).fit(datasets.swiss_roll(300)))
    >>> ax.get_xlabel()
    'number of representatives, k'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    facts = facts_of(model)
    curve, share, k = facts.curve, facts.coverage, len(facts.picks)
    if curve is None or share is None:
        raise InvalidInputError(f"a {type(model).__name__} has no curve", "Fit MOSAIC, which has one.")
    ax = _new_axes() if ax is None else ax
    numbers = np.arange(1, len(curve.row) + 1)
    style: dict[str, Any] = {"linewidth": 2.0, "marker": "o" if len(numbers) == 1 else None}
    (coverage,) = ax.plot(numbers, curve.coverage, color=QUIET, **style)
    (similarity,) = ax.plot(numbers, curve.similarity, color=SECOND, **style)
    handles = {
        "coverage: share of the points that k representatives express": coverage,
        "mean similarity to the nearest of k": similarity,
        f"chosen: k = {k:,}, coverage {100 * share:.0f} %": ax.axvline(k, color=INK, linewidth=1.2, zorder=1),
    }
    if curve.suggested is not None:
        line = ax.axvline(curve.suggested, color="#777777", linewidth=1.8, linestyle=":", zorder=1)
        handles[f"suggested: k = {curve.suggested}"] = line
    ax.plot([k], [curve.coverage[k - 1]], "o", color=QUIET, markeredgecolor="white", markersize=8, clip_on=False)
    ax.set(xlim=(0.0, len(numbers) * 1.01), ylim=(0.0, 1.01), xlabel="number of representatives, k")
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    _head(ax, f"Coverage by {counted(k, 'representative')} of {counted(facts.n_rows, 'point')}", handles, columns=2)
    return ax


def plot_outliers(model: Any, *, ax: Any = None) -> Any:
    """Draw a histogram of the effective counts (how many rows look like a row), with the outlier threshold.

    Parameters
    ----------
    model : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
    ax : axes to draw on, by default those of a new figure

    Returns
    -------
    The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAICOutlierDetector, datasets, show
    >>> ax = show.plot_outliers(MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X))
    >>> ax.get_title(loc="left")
    '8 outliers among 400 points'
    >>> matplotlib.pyplot.close(ax.figure)
    """
    facts = facts_of(model)
    part = facts.outliers
    ax = _new_axes() if ax is None else ax
    edges, belonging, outlying = np.array(part.edges), np.array(part.belonging), np.array(part.outlying)
    style = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.6}
    bars = (
        ax.bar(edges[:-1], belonging, color=QUIET, **style),
        ax.bar(edges[:-1], outlying, bottom=belonging, color=ALARM, **style),
    )
    found = counted(part.n, "outlier") if part.n else "No outliers"
    kept = f", {part.protected:,} of them in groups" if part.protected else ""
    handles = ({found: bars[1]} if part.n else {}) | {f"{facts.n_rows - part.n:,} belong{kept}": bars[0]}
    if part.threshold is not None:
        line = ax.axvline(part.threshold, color=INK, linewidth=1.2, linestyle="--")
        handles[f"threshold {part.threshold:.3g}: {THRESHOLD_RULES[part.rule]}"] = line
    highest = int((belonging + outlying).max())
    if highest > MOST_UNEQUAL_BARS * outlying.max() > 0:
        ax.set_yscale("log")
        ax.set_ylim(0.5, 1.5 * highest)
    else:
        ax.set_ylim(0.0, 1.05 * highest)
        ax.yaxis.get_major_locator().set_params(integer=True)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _count_axis(ax, min(edges[0], part.threshold or edges[0]), max(edges[-1], part.threshold or 0.0))
    ax.set(xlabel="how many rows look like a row, itself included (effective count)", ylabel="points")
    ax.spines[["top", "right"]].set_visible(False)
    _head(ax, f"{found} among {counted(facts.n_rows, 'point')}", handles)
    return ax


def _count_axis(ax: Any, low: float, high: float) -> None:
    """A logarithmic axis that shows counts between these, with a few round numbers on it."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    ax.set_xlim(low * (low / high) ** 0.01, high * (high / low) ** 0.01)
    steps: tuple[float, ...] = (1,) if high / low > 3000 else (1, 2, 5)
    if high / low < 10:
        steps = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [s * 10.0**p for p in range(-12, 10) for s in steps if low <= s * 10.0**p <= high]
    ax.set_xticks(ticks, [f"{tick:,.4g}" if tick < 1000 else f"{tick:,.0f}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        remedy = "Use: pip install 'mosaic-select[plots]'"
        raise MissingDependencyError("figures need matplotlib, which is not installed", remedy) from error
    return plt.figure(figsize=(8.0, 5.5), layout="constrained").add_subplot()


def _head(ax: Any, title: str, handles: dict[str, Any], *, columns: int = 3) -> None:
    """The title above the axes on the left, and the legend between title and axes, so that neither covers data."""
    place = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0), "borderaxespad": 0.2, "frameon": False}
    ax.legend(list(handles.values()), list(handles), ncols=columns, fontsize="small", **place)
    ax.set_title(title, loc="left", pad=6 + 16 * -(-len(handles) // columns), fontweight="bold")
