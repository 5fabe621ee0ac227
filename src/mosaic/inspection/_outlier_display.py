"""The distribution of effective counts, and where outliers end."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mosaic.inspection._drawing import ALARM, INK, QUIET, axes_or_new, bare, head
from mosaic.inspection.facts import Summary, counted
from mosaic.inspection.summaries import summarise

#: Where the threshold comes from, in few words.
RULES = {
    "alone": "rows below are alone",
    "valley": "a valley in the distribution",
    "contamination": "the share that was given",
    "threshold": "as it was set",
}
#: Bars are drawn on a logarithmic scale if the highest is so many times higher than the highest one of outliers.
MOST_UNEQUAL = 50


class OutlierDisplay:
    """Histogram of the effective counts: how many rows look like a row, and from which count on rows belong.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary of any estimator

    Attributes
    ----------
    ax_, figure_ : where it was drawn
    belonging_, outlying_ : the bars
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

    ax_: Any
    figure_: Any
    belonging_: Any
    outlying_: Any
    threshold_: Any

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
        return cls(summarise(estimator)).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : axes to draw on, by default those of a new figure
        **kwargs : for the bars of both sides

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
        kept = f", {part.protected:,} of them as groups" if part.protected else ""
        handles, labels = [self.belonging_], [f"{facts.n_points - facts.n_outliers:,} belong{kept}"]
        if facts.n_outliers:
            handles, labels = [self.outlying_, *handles], [title, *labels]
        self.threshold_ = None
        if part.threshold is not None:
            self.threshold_ = ax.axvline(part.threshold, color=INK, linewidth=1.2, linestyle="--")
            handles.append(self.threshold_)
            labels.append(f"threshold {part.threshold:.3g}: {RULES[part.rule]}")
        highest = int((belonging + outlying).max())
        if highest > MOST_UNEQUAL * outlying.max() > 0:
            ax.set_yscale("log")
            ax.set_ylim(0.5, 1.5 * highest)
        else:
            ax.set_ylim(0.0, 1.05 * highest)
            ax.yaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _count_axis(ax, [*edges, part.threshold or edges[0]])
        ax.set(xlabel="effective count: rows that look like a row, itself included", ylabel="points")
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
