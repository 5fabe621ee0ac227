"""Figures of a summary: the map of a selection, the coverage curve, and the distribution of effective counts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray
from mosaic.choosing import counted
from mosaic.exceptions import InvalidInputError
from mosaic.inspection._drawing import (
    ALARM,
    GREY,
    INK,
    LIGHT,
    QUIET,
    SECOND,
    PictureBlock,
    axes_beside,
    axes_or_new,
    bare,
    distinct_colours,
    draw_pictures,
    frame,
    head,
    new_figure,
    number_markers,
    pyplot,
)
from mosaic.inspection.facts import PointMap, Summary
from mosaic.inspection.summaries import summary as summarise
from mosaic.rows.frames import n_rows

#: Features whose ranges differ by more than this factor are drawn to two scales.
MOST_UNEQUAL_SIDES = 5.0
#: With more representatives than this, their markers and numbers are smaller.
MANY_REPRESENTATIVES = 60
#: Largest number of pictures of representatives, and of outliers.
MOST_PICTURES, MOST_OUTLIER_PICTURES = 40, 10
#: Bars have a logarithmic scale if the highest bar is this many times as high as the highest bar of outliers.
MOST_UNEQUAL_BARS = 50
#: Where the outlier threshold comes from.
THRESHOLD_RULES = {
    "alone": "rows below are alone",
    "valley": "a valley in the distribution",
    "contamination": "from contamination",
    "threshold": "from op_threshold",
}


class SelectionDisplay:
    """The data in the plane, coloured by representative; representatives are numbered by rank, outliers are crosses.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary with a map
    images : one picture for each row of the data, n × height × width or n × height × width × 3 or 4; those of the
        representatives are shown beside the map, and those of the lowest outliers below them

    Attributes
    ----------
    ax_, figure_ : axes and figure of the map
    points_, representatives_, outliers_ : its markers, None where there are none
    numbers_ : ranks that are written beside their markers
    picture_axes_ : list of the axes with pictures

    Notes
    -----
    1. Ranks count from 1, as on the page of a report; ``labels_`` count from 0.
    2. Outliers that are too far away for one frame are drawn at its edge, in their direction.
    3. There are eight colours. Neighbouring representatives have different ones; distant ones may share one.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import SelectionDisplay
    >>> data = datasets.blobs_with_gross_outliers()
    >>> display = SelectionDisplay.from_estimator(MOSAIC(20).fit(data.X))
    >>> display.ax_.get_title(loc="left")
    '20 representatives of 400 points, 8 outliers'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    ax_: Any
    figure_: Any
    points_: Any
    representatives_: Any
    outliers_: Any
    numbers_: list[Any]
    picture_axes_: list[Any]

    def __init__(self, summary: Summary, *, images: ArrayLike | None = None):
        self.summary = summary
        self.images = images

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        images: ArrayLike | None = None,
        max_points: int = 2000,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the map of a fitted estimator.

        Parameters
        ----------
        estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
        X : the data of ``fit``; optional, only its number of rows is checked
        images : a picture for each row of the data
        max_points, random_state : rows on the map, and the seed that draws them, as in ``summary``
        ax : axes to draw on, by default those of a new figure
        **kwargs : for ``plot``
        """
        facts = summarise(
            estimator, X, certificate=False, parts=("map",), max_points=max_points, random_state=random_state
        )
        return cls(facts, images=images).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, numbered: bool = True, image_cmap: str = "gray", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes to draw on, by default those of a new figure
        numbered : whether to write ranks beside representatives
        image_cmap : colour map of pictures without colours; "gray_r" for dark ink on white
        **kwargs : for the scatter of the points that are neither representatives nor outliers

        Returns
        -------
        self
        """
        chart = self.summary.map
        if chart is None:
            raise InvalidInputError("the summary has no map", "Make it with 'map' among `parts`.")
        images = self._checked_images()
        plt = pyplot()
        blocks = [] if images is None else self._picture_blocks()
        if ax is None:
            figure, ax, self.picture_axes_ = new_figure(plt, blocks, images)
        else:
            figure, self.picture_axes_ = ax.figure, axes_beside(ax, blocks, images)
        self.ax_, self.figure_ = ax, figure
        for beside, block in zip(self.picture_axes_, blocks, strict=True):
            draw_pictures(beside, images, block, image_cmap)
        xy, far = self._draw_points(chart, kwargs)
        head(ax, self.summary.title, *self._legend(chart, far))
        by_rank = self._by_rank(chart)
        few = len(by_rank) <= MANY_REPRESENTATIVES
        texts = [str(rank) for rank in range(1, len(by_rank) + 1)]
        style = {"size": 8.0, "reach": 5.0} if few else {"size": 6.5, "reach": 3.5}
        self.numbers_ = number_markers(ax, xy[by_rank], texts, **style) if numbered else []
        return self

    def _by_rank(self, chart: PointMap) -> list[int]:
        """Places of the representatives in the lists of the map, by rank."""
        place = {row: i for i, row in enumerate(chart.row)}
        return [place[r.row] for r in self.summary.representatives or []]

    def _draw_points(self, chart: PointMap, kwargs: dict[str, Any]) -> tuple[FloatArray, bool]:
        """Draw the markers. Returns where all points are drawn, and whether some are farther out than drawn."""
        xy, status = np.column_stack([chart.x, chart.y]), np.array(chart.status)
        odd, chosen = status == "outlier", self._by_rank(chart)
        ratio = self._prepare_axes(chart, xy[~odd] if not odd.all() else xy)
        low, high, xy[odd], far = frame(xy[~odd] if not odd.all() else xy, xy[odd], ratio)
        ordinary = ~odd
        ordinary[chosen] = False
        colours = np.full(len(xy), GREY, dtype=object)
        if chart.label is not None:
            label = np.array(chart.label)
            palette = np.array(LIGHT, dtype=object)[distinct_colours(xy[chosen])]
            colours[label >= 0] = palette[label[label >= 0]]
        self.points_ = self.representatives_ = self.outliers_ = None
        if ordinary.any():
            style = {
                "s": _marker_size(len(xy)),
                "c": colours[ordinary].tolist(),
                "linewidths": 0,
                "alpha": 0.85,
                "zorder": 2,
            }
            self.points_ = self.ax_.scatter(*xy[ordinary].T, **(style | kwargs))
        if odd.any():
            self.outliers_ = self.ax_.scatter(*xy[odd].T, s=26, c=ALARM, marker="x", linewidths=1.1, zorder=3)
        if chosen:
            size = 46 if len(chosen) <= MANY_REPRESENTATIVES else 22
            self.representatives_ = self.ax_.scatter(
                *xy[chosen].T, s=size, c=INK, marker="o", edgecolors="white", linewidths=1.0, zorder=5
            )
        # Limits stay automatic, so that a resized figure can widen them to keep one scale.
        self.ax_.set_xlim(low[0], high[0], auto=True)
        self.ax_.set_ylim(low[1], high[1], auto=True)
        return xy, bool(far.any())

    def _prepare_axes(self, chart: PointMap, inside: FloatArray) -> float | None:
        """Label the axes. Returns their ratio of width to height if both directions have one scale."""
        ax, sides = self.ax_, np.ptp(inside, axis=0)
        ax.set_xlabel(chart.axes[0])
        ax.set_ylabel(chart.axes[1])
        bare(ax)
        if chart.method != "features":  # coordinates along principal axes have no unit
            ax.set(xticks=[], yticks=[])
        if 0 < MOST_UNEQUAL_SIDES * sides.min() < sides.max():
            return None
        ax.set_aspect("equal", adjustable="datalim")  # the kernel measures all features in one unit
        head(ax, self.summary.title, [ax.spines["left"]], [""])  # reserves the room of the legend
        ax.figure.draw_without_rendering()
        return float(ax.bbox.width / ax.bbox.height)

    def _legend(self, chart: PointMap, far: bool) -> tuple[list[Any], list[str]]:
        from matplotlib.lines import Line2D

        def handle(colour: str, marker: str = "o") -> Any:
            return Line2D([], [], linestyle="none", color=colour, marker=marker, markersize=5.5)

        entries: list[tuple[Any, str]] = []
        n, shown = self.summary.n_points, len(chart.row)
        part = "" if shown == n else f" ({shown:,} of {n:,} points shown)"
        if self.representatives_ is not None:
            entries.append((handle(INK), "representative"))
        if self.points_ is not None and chart.label is None:
            entries.append((handle(GREY), f"belongs{part}"))
        elif self.points_ is not None:
            some = tuple(handle(colour) for colour in LIGHT[: min(3, len(self.summary.representatives or []))])
            entries.append((some, f"coloured by its representative{part}"))
        if self.outliers_ is not None:
            entries.append((handle(ALARM, "x"), "outlier (at the edge: farther out)" if far else "outlier"))
        return [entry[0] for entry in entries], [entry[1] for entry in entries]

    def _checked_images(self) -> Any:
        if self.images is None:
            return None
        images, n = self.images if hasattr(self.images, "shape") else np.asarray(self.images), self.summary.n_points
        shape = tuple(images.shape)
        if n_rows(images) != n or not (len(shape) == 3 or (len(shape) == 4 and shape[3] in (3, 4))):
            raise InvalidInputError(
                f"must be {n} pictures, with shape ({n}, height, width) or ({n}, height, width, 3 or 4); got shape {shape}",
                "Reshape rows of pixels to pictures.",
                parameter="images",
            )
        return images

    def _picture_blocks(self) -> list[PictureBlock]:
        chosen = self.summary.representatives or []
        first = "Representatives" if len(chosen) <= MOST_PICTURES else f"The first {MOST_PICTURES} representatives"
        odd, n = self.summary.outliers.lowest[:MOST_OUTLIER_PICTURES], self.summary.n_outliers
        second = "Outliers" if len(odd) == n else f"{len(odd)} of {n:,} outliers"
        shown = chosen[:MOST_PICTURES]
        blocks = [
            PictureBlock(first, [r.row for r in shown], [str(r.rank + 1) for r in shown]),
            PictureBlock(second, [o.row for o in odd], [""] * len(odd)),
        ]
        return [block for block in blocks if block.rows]


def _marker_size(n: int) -> float:
    """Area of a marker: from 26 for a few hundred points down to 8 for thousands."""
    return float(np.clip(26.0 * np.sqrt(300.0 / max(n, 1)), 8.0, 26.0))


class CoverageDisplay:
    """Coverage and similarity by the number of representatives, with the suggested number and the chosen one.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary with a curve

    Attributes
    ----------
    ax_, figure_ : its axes and figure
    lines_ : the two curves, coverage first
    chosen_, suggested_ : vertical lines at the chosen and at the suggested number
    dot_ : marker on the curve of the coverage at the chosen number; None if the curve is shorter

    Notes
    -----
    1. The curve adds one row after the other, as ``mosaic.path`` does. A fit then exchanges rows, so what they
       cover differs a little from the curve at their number; the legend says how much it is.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAIC, datasets
    >>> from mosaic.inspection import CoverageDisplay
    >>> display = CoverageDisplay.from_estimator(MOSAIC(20).fit(datasets.swiss_roll(300)))
    >>> display.ax_.get_xlabel()
    'number of representatives, k'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, summary: Summary):
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve of a fitted MOSAIC or MOSAICSampler.

        Parameters
        ----------
        estimator : fitted MOSAIC or MOSAICSampler
        ax : axes to draw on, by default those of a new figure
        **kwargs : for ``plot``
        """
        return cls(summarise(estimator, certificate=False, parts=("curve",))).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes to draw on, by default those of a new figure
        **kwargs : for both curves

        Returns
        -------
        self
        """
        facts, curve = self.summary, self.summary.curve
        if curve is None or facts.n_representatives is None or facts.coverage is None:
            raise InvalidInputError(f"the summary of this {facts.estimator} has no curve", "Fit MOSAIC, which has one.")
        ax = axes_or_new(ax)
        self.ax_, self.figure_ = ax, ax.figure
        k, share = facts.n_representatives, facts.coverage
        style = {"linewidth": 2.0, "solid_capstyle": "round"} | ({"marker": "o"} if len(curve.k) == 1 else {})
        (coverage,) = ax.plot(curve.k, curve.coverage, **(style | {"color": QUIET} | kwargs))
        (similarity,) = ax.plot(curve.k, curve.similarity, **(style | {"color": SECOND} | kwargs))
        self.lines_ = [coverage, similarity]
        self.chosen_ = ax.axvline(k, color=INK, linewidth=1.2, zorder=1)
        self.suggested_ = ax.axvline(curve.suggested, color="#777777", linewidth=1.8, linestyle=":", zorder=1)
        self.dot_ = None
        if k <= len(curve.k):
            dot: dict[str, Any] = {"marker": "o", "color": QUIET, "markeredgecolor": "white", "markersize": 8}
            (self.dot_,) = ax.plot([k], [curve.coverage[k - 1]], **dot, clip_on=False, zorder=4)
        ax.set(xlim=(0.0, max(curve.k[-1], k) * 1.01), ylim=(0.0, 1.01), xlabel="number of representatives, k")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        ax.set_axisbelow(True)
        bare(ax)
        title = f"Coverage by {counted(k, 'representative')} of {counted(facts.n_points, 'point')}"
        labels = [
            "coverage: share of the points that k representatives express",
            "mean similarity to the nearest of k",
            f"chosen: k = {k:,}, coverage {100 * share:.0f} %",
            f"suggested: k = {curve.suggested}",
        ]
        head(ax, title, [*self.lines_, self.chosen_, self.suggested_], labels, columns=2)
        return self


class OutlierDisplay:
    """Histogram of the effective counts (how many rows look like a row), with the outlier threshold.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary of any estimator

    Attributes
    ----------
    ax_, figure_ : its axes and figure
    belonging_, outlying_ : bars of the rows that belong, and of the outliers
    threshold_ : vertical line at the threshold, None if there is none

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mosaic import MOSAICOutlierDetector, datasets
    >>> from mosaic.inspection import OutlierDisplay
    >>> display = OutlierDisplay.from_estimator(MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X))
    >>> display.ax_.get_title(loc="left")
    '8 outliers among 400 points'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, summary: Summary):
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the effective counts of a fitted estimator.

        Parameters
        ----------
        estimator : fitted MOSAIC, MOSAICSampler or MOSAICOutlierDetector
        ax : axes to draw on, by default those of a new figure
        **kwargs : for ``plot``
        """
        return cls(summarise(estimator, certificate=False, parts=())).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes to draw on, by default those of a new figure
        **kwargs : for all bars

        Returns
        -------
        self
        """
        facts, part = self.summary, self.summary.outliers
        ax = axes_or_new(ax)
        self.ax_, self.figure_ = ax, ax.figure
        edges = np.exp(part.edges)
        style = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.6} | kwargs
        belonging, outlying = np.array(part.belonging), np.array(part.outlying)
        self.belonging_ = ax.bar(edges[:-1], belonging, **({"color": QUIET} | style))
        self.outlying_ = ax.bar(edges[:-1], outlying, bottom=belonging, **({"color": ALARM} | style))
        title = counted(facts.n_outliers, "outlier") if facts.n_outliers else "No outliers"
        kept = f", {part.protected:,} of them in groups" if part.protected else ""
        handles, labels = [self.belonging_], [f"{facts.n_points - facts.n_outliers:,} belong{kept}"]
        if facts.n_outliers:
            handles, labels = [self.outlying_, *handles], [title, *labels]
        self.threshold_ = None
        if part.threshold is not None:
            self.threshold_ = ax.axvline(part.threshold, color=INK, linewidth=1.2, linestyle="--")
            handles.append(self.threshold_)
            labels.append(f"threshold {part.threshold:.3g}: {THRESHOLD_RULES[part.rule]}")
        highest = int((belonging + outlying).max())
        if highest > MOST_UNEQUAL_BARS * outlying.max() > 0:
            ax.set_yscale("log")
            ax.set_ylim(0.5, 1.5 * highest)
        else:
            ax.set_ylim(0.0, 1.05 * highest)
            ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _count_axis(ax, [*edges, part.threshold or edges[0]])
        ax.set(xlabel="how many rows look like a row, itself included (effective count)", ylabel="points")
        bare(ax)
        head(ax, f"{title} among {counted(facts.n_points, 'point')}", handles, labels)
        return self


def _count_axis(ax: Any, counts: list[float]) -> None:
    """A logarithmic axis that shows these counts, with a few round numbers on it."""
    from matplotlib.ticker import NullLocator

    ax.set_xscale("log")
    low, high = min(counts), max(counts)
    ax.set_xlim(low * (low / high) ** 0.01, high * (high / low) ** 0.01)
    steps: tuple[float, ...] = (1,) if high / low > 3000 else (1, 2, 5)
    if high / low < 10:
        steps = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [s * 10.0**p for p in range(-12, 10) for s in steps if low <= s * 10.0**p <= high]
    ax.set_xticks(ticks, [f"{tick:,.4g}" if tick < 1000 else f"{tick:,.0f}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
