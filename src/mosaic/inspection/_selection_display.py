"""The map of a selection: the data, who stands for them, who does not belong."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mosaic._arrays import FloatArray
from mosaic._frames import n_rows
from mosaic.exceptions import InvalidInputError
from mosaic.inspection._drawing import (
    ALARM,
    GREY,
    INK,
    LIGHT,
    bare,
    distinct_colours,
    frame,
    head,
    number_markers,
    pyplot,
)
from mosaic.inspection._pictures import Block, axes_beside, draw_pictures, new_figure
from mosaic.inspection.facts import PointMap, Summary
from mosaic.inspection.summaries import summarise

#: Features whose ranges differ by more than this are not drawn to one scale.
MOST_UNEQUAL = 5.0
#: More representatives than this get smaller markers and numbers.
CROWD = 60
#: Pictures of representatives and of outliers, at most.
MOST_PICTURES, MOST_ODD_PICTURES = 40, 10


class SelectionDisplay:
    """The data in the plane, coloured by who stands for them, with representatives numbered by rank and outliers crossed out.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary with a map
    images : one picture for each row of the data, n × height × width or n × height × width × 3 or 4; those of the
        representatives are shown beside the map, and those of the oddest outliers below them

    Attributes
    ----------
    ax_, figure_ : where the map was drawn
    points_, representatives_, outliers_ : its markers, None where there are none
    numbers_ : ranks that found room beside their markers
    picture_axes_ : list of the axes with pictures

    Notes
    -----
    1. Ranks count from 0, as ``labels_`` do.
    2. Outliers so far away that they would make the others a speck are drawn at the edge, in their direction.
    3. There are eight colours; neighbours differ, points far from one another may share one.

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
        X : what ``fit`` was given; only a detector needs it
        images : a picture for each row of the data
        max_points, random_state : rows on the map, and seed of their choice, as in ``summary``
        ax : axes to draw on, by default those of a new figure
        **kwargs : for ``plot``
        """
        facts = summarise(estimator, X, max_points=max_points, random_state=random_state, parts=frozenset({"map"}))
        return cls(facts, images=images).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, numbered: bool = True, image_cmap: str = "gray", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes to draw on, by default those of a new figure
        numbered : whether to write ranks beside representatives
        image_cmap : colours of pictures without colours; "gray_r" for dark ink on white
        **kwargs : for the scatter of the points that are neither representatives nor outliers

        Returns
        -------
        self
        """
        chart = self.summary.map
        if chart is None:
            raise InvalidInputError(
                "the summary has no map; a detector keeps no points, so pass X, the data it was fitted to."
            )
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
        few = len(by_rank) <= CROWD
        texts = [str(rank) for rank in range(len(by_rank))]
        style = {"size": 8.0, "reach": 5.0} if few else {"size": 6.5, "reach": 3.5}
        self.numbers_ = number_markers(ax, xy[by_rank], texts, **style) if numbered else []
        return self

    def _by_rank(self, chart: PointMap) -> list[int]:
        """Places of the representatives in the lists of the map, by rank."""
        place = {row: i for i, row in enumerate(chart.row)}
        return [place[r.row] for r in self.summary.representatives or []]

    def _draw_points(self, chart: PointMap, kwargs: dict[str, Any]) -> tuple[FloatArray, bool]:
        """Three kinds of markers. Returns where all points are drawn, and whether some are farther out than drawn."""
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
            size = 46 if len(chosen) <= CROWD else 22
            self.representatives_ = self.ax_.scatter(
                *xy[chosen].T, s=size, c=INK, marker="o", edgecolors="white", linewidths=1.0, zorder=5
            )
        # Left automatic, so that a figure of another size may widen them to keep one scale.
        self.ax_.set_xlim(low[0], high[0], auto=True)
        self.ax_.set_ylim(low[1], high[1], auto=True)
        return xy, bool(far.any())

    def _prepare_axes(self, chart: PointMap, inside: FloatArray) -> float | None:
        """Everything around the data; returns the axes' width to height if both directions are drawn to one scale."""
        ax, sides = self.ax_, np.ptp(inside, axis=0)
        ax.set_xlabel(chart.axes[0])
        ax.set_ylabel(chart.axes[1])
        bare(ax)
        if chart.method != "features":  # their units mean nothing to anybody
            ax.set(xticks=[], yticks=[])
        if 0 < MOST_UNEQUAL * sides.min() < sides.max():
            return None
        ax.set_aspect("equal", adjustable="datalim")  # the kernel measures all features with one ruler
        head(ax, self.summary.title, [ax.spines["left"]], [""])  # takes the room of the legend that is to come
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
                f"images must be {n} pictures, an array of shape ({n}, height, width) or ({n}, height, width, 3 or 4); "
                f"got shape {shape}. Reshape rows of pixels to pictures."
            )
        return images

    def _picture_blocks(self) -> list[Block]:
        chosen = self.summary.representatives or []
        first = "Representatives" if len(chosen) <= MOST_PICTURES else f"The first {MOST_PICTURES} representatives"
        odd = self.summary.outliers.lowest[:MOST_ODD_PICTURES]
        second = (
            "Outliers" if len(odd) == self.summary.n_outliers else f"{len(odd)} of {self.summary.n_outliers:,} outliers"
        )
        shown = chosen[:MOST_PICTURES]
        blocks = [
            Block(first, [r.row for r in shown], [str(r.rank) for r in shown]),
            Block(second, [o.row for o in odd], [""] * len(odd)),
        ]
        return [block for block in blocks if block.rows]


def _marker_size(n: int) -> float:
    """Smaller where there are many, so that they stay apart: from 26 for a few hundred to 8 for thousands."""
    return float(np.clip(26.0 * np.sqrt(300.0 / max(n, 1)), 8.0, 26.0))
