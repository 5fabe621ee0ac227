"""Figures of the facts of a fit: the map, the coverage curve, and the distribution of effective counts.

They need matplotlib, ``pip install 'mosaic-select[plots]'``, which is imported when the first one is drawn. All take a fitted
estimator and the axes to draw on, by default those of a new figure, and return the axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic.choosing import counted
from mosaic.exceptions import InvalidInputError
from mosaic.facts import facts_of
from mosaic.facts.map import framed
from mosaic.text import library

INK = "#222222"
QUIET = "#4477AA"
ALARM = "#CC3311"
#: Bars have a logarithmic scale if the highest bar is this many times as high as the highest bar of outliers.
MOST_UNEQUAL_BARS = 50


def plot_model(model: object) -> Any:
    """The map of neighbours beside the coverage curve; of a detector, the histogram of counts. See ``MOSAIC.plot``."""
    if facts_of(model).detects:
        return plot_outliers(model)
    axes = _axes(number=2)
    plot_map(model, neighbours=True, ax=axes[0])
    plot_coverage(model, ax=axes[1])
    return axes


def plot_map(model: object, *, neighbours: bool = False, ax: Any = None) -> Any:
    """Draw the data in the plane, coloured by representative; representatives are numbered by rank, outliers are crosses.

    Outliers that are too far away for one frame are drawn at its edge. With more than eight representatives some share a colour.

    ``neighbours``: where there are more than two features, points are laid out so that similar ones lie together, as on the page.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets, show
    >>> show.plot_map(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X)).get_title(loc="left")
    '20 representatives of 400 rows, 8 outliers'
    """
    facts = facts_of(model)
    ax = _axes(ax)
    chart = facts.map
    plane = facts.plane
    status = np.array(chart.status)
    plane = facts.neighbours if neighbours and plane.method != "features" else plane
    chosen = np.searchsorted(facts.shown, facts.ranking.points[: facts.k])
    frame = framed(plane.points, status != "outlier")
    sides = frame.high - frame.low
    xy = frame.low + frame.shares * sides
    odd = np.flatnonzero(status == "outlier")
    ordinary = np.flatnonzero(np.isin(status, ["represented", "belongs"]))
    # Places of neighbours have no axes.
    ax.set(**dict(zip(("xlabel", "ylabel"), plane.axes, strict=False)))
    if plane.method != "features":  # coordinates along principal axes have no unit
        ax.set(xticks=[], yticks=[])
    if sides.max() <= 5.0 * sides.min():
        ax.set_aspect("equal", adjustable="datalim")  # the kernel measures all features in one unit
    few = len(chosen) <= 60
    handles = {}
    if len(chosen):
        style = {
            "s": 46 if few else 22,
            "c": INK,
            "edgecolors": "white",
            "linewidths": 1.0,
            "zorder": 5,
        }
        handles["representative"] = ax.scatter(*xy[chosen].T, **style)
    if len(ordinary):
        size = float(np.clip(26.0 * np.sqrt(300.0 / len(status)), 2.0, 26.0))
        # Paul Tol's light scheme, which stays distinct for colour-blind readers; grey marks points without a colour.
        light = (
            "#77AADD",
            "#EEDD88",
            "#EE8866",
            "#44BB99",
            "#FFAABB",
            "#AAAA00",
            "#99DDFF",
            "#BBCC33",
            "#BBBBBB",
        )
        colours = [light[-1 if label < 0 else label % 8] for label in chart.label[ordinary]]
        text = "belongs" if facts.detects else "coloured by its representative"
        handles[text] = ax.scatter(
            *xy[ordinary].T, s=size, c=colours, linewidths=0, alpha=0.85, zorder=2
        )
    if len(odd):
        text = "outlier (at the edge: farther out)" if frame.outside[odd].any() else "outlier"
        handles[text] = ax.scatter(*xy[odd].T, s=26, c=ALARM, marker="x", linewidths=1.1, zorder=3)
    for number, point in enumerate(xy[chosen] if few else (), 1):
        style = {"fontsize": 8.0, "color": INK, "fontweight": "bold", "zorder": 6}
        ax.annotate(str(number), point, (4, 4), textcoords="offset points", **style)
    return _headed(ax, facts.title, handles)


def plot_coverage(model: Any, *, ax: Any = None) -> Any:
    """Draw coverage, what no k rows exceed, and similarity by the number of representatives, with the suggested number and the
    chosen one. ``model`` may also be the result of ``mosaic.path``, where none is chosen.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets, show
    >>> show.plot_coverage(MOSAIC(20).fit(datasets.swiss_roll(300))).get_xlabel()
    'number of representatives, k'
    """
    is_path = hasattr(model, "least_number")
    facts = facts_of(model.model if is_path else model)
    curve = model if is_path else facts.curve
    if curve is None:
        raise InvalidInputError(
            f"a {type(model).__name__} has no curve", "Fit MOSAIC, which has one."
        )
    ax = _axes(ax)
    numbers = np.arange(1, len(curve.coverage) + 1)
    style: dict[str, Any] = {"linewidth": 2.0, "marker": "o" if len(numbers) == 1 else None}
    (coverage,) = ax.plot(numbers, curve.coverage, color=QUIET, **style)
    (similarity,) = ax.plot(numbers, curve.similarity, color="#EE7733", **style)
    handles = {
        "coverage of k representatives": coverage,
        "mean similarity to the nearest of k": similarity,
    }
    if curve.bound is not None:
        (handles["no k rows have a higher coverage"],) = ax.plot(
            numbers, curve.bound, color=QUIET, linewidth=0.8
        )
    if not is_path:
        share = curve.coverage[facts.k - 1]
        line = ax.axvline(facts.k, color=INK, linewidth=1.2, zorder=1)
        handles[f"chosen: k = {facts.k:,}, coverage {100 * share:.0f} %"] = line
        ax.plot(
            [facts.k],
            [share],
            "o",
            color=QUIET,
            markeredgecolor="white",
            markersize=8,
            clip_on=False,
        )
    if curve.suggested is not None:
        line = ax.axvline(curve.suggested, color="#777777", linewidth=1.8, linestyle=":", zorder=1)
        handles[f"suggested: k = {curve.suggested}"] = line
    ax.set(xlim=(0.0, len(numbers) * 1.01), ylim=(0.0, 1.01), xlabel="number of representatives, k")
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    ax.set_axisbelow(True)
    if is_path:
        chosen = f"1 to {counted(len(numbers), 'representative')}"
    else:
        chosen = counted(facts.k, "representative")
    return _headed(
        ax, f"Coverage by {chosen} of {counted(facts.n_rows, 'row')}", handles, columns=2
    )


def plot_outliers(model: object, *, ax: Any = None) -> Any:
    """Draw a histogram of the effective counts (how many rows look like a row), with the outlier threshold.

    Examples
    --------
    >>> from mosaic import MOSAICOutlierDetector, datasets, show
    >>> detector = MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X)
    >>> show.plot_outliers(detector).get_title(loc="left")
    '8 outliers among 400 rows'
    """
    facts = facts_of(model)
    ax = _axes(ax)
    part = facts.outliers
    edges = np.array(part.edges)
    belonging = np.array(part.belonging)
    outlying = np.array(part.outlying)
    style = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.6}
    belong = ax.bar(edges[:-1], belonging, color=QUIET, **style)
    out = ax.bar(edges[:-1], outlying, bottom=belonging, color=ALARM, **style)
    found = counted(part.n, "outlier") if part.n else "No outliers"
    kept = f", {part.protected:,} of them with few others like them" if part.protected else ""
    handles = ({found: out} if part.n else {}) | {f"{facts.n_rows - part.n:,} belong{kept}": belong}
    if part.threshold is not None:
        line = ax.axvline(part.threshold, color=INK, linewidth=1.2, linestyle="--")
        handles[f"threshold {part.threshold:.3g} ({part.rule})"] = line
    if (belonging + outlying).max() > MOST_UNEQUAL_BARS * outlying.max() > 0:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.5)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_xscale("log")
    ax.xaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    ax.set(
        xlabel="how many rows look like a row, itself included (effective count)", ylabel="points"
    )
    return _headed(ax, f"{found} among {counted(facts.n_rows, 'row')}", handles)


def _axes(ax: Any = None, number: int = 1) -> Any:
    plt = library("matplotlib.pyplot", "a figure")
    if ax is None:
        ax = plt.figure(figsize=(8.0 * number, 5.5), layout="constrained").subplots(1, number)
    for each in np.atleast_1d(ax):
        each.spines[["top", "right"]].set_visible(False)
    return ax


def _headed(ax: Any, title: str, handles: dict[str, Any], *, columns: int = 3) -> Any:
    """The title above the axes on the left, and the legend between title and axes, so that neither covers data."""
    place = {
        "loc": "lower left",
        "bbox_to_anchor": (-0.01, 1.0),
        "borderaxespad": 0.2,
        "frameon": False,
    }
    ax.legend(list(handles.values()), list(handles), ncols=columns, fontsize="small", **place)
    ax.set_title(title, loc="left", pad=6 + 16 * -(-len(handles) // columns), fontweight="bold")
    return ax
