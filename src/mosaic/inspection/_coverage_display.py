"""The coverage curve: what more representatives would add."""

from __future__ import annotations

from typing import Any, Self

from mosaic.exceptions import InvalidInputError
from mosaic.inspection._drawing import INK, QUIET, SECOND, axes_or_new, bare, head
from mosaic.inspection.facts import Summary, counted
from mosaic.inspection.summaries import summarise


class CoverageDisplay:
    """Coverage and similarity against the number of representatives, with the knee and the chosen number.

    Usually made by ``from_estimator``.

    Parameters
    ----------
    summary : Summary with a curve

    Attributes
    ----------
    ax_, figure_ : where it was drawn
    lines_ : the two curves, coverage first
    chosen_, knee_ : vertical lines at the chosen number and at the knee

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

    ax_: Any
    figure_: Any
    lines_: list[Any]
    chosen_: Any
    knee_: Any

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
        return cls(summarise(estimator, parts=frozenset({"curve"}))).plot(ax, **kwargs)

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
            raise InvalidInputError(
                f"the summary of this {facts.estimator} has no curve; a selector has one: fit a MOSAIC."
            )
        ax = axes_or_new(ax)
        self.ax_, self.figure_ = ax, ax.figure
        k, share = facts.n_representatives, facts.coverage
        style = {"linewidth": 2.0, "solid_capstyle": "round"} | ({"marker": "o"} if len(curve.k) == 1 else {})
        (coverage,) = ax.plot(curve.k, curve.coverage, **(style | {"color": QUIET} | kwargs))
        (similarity,) = ax.plot(curve.k, curve.similarity, **(style | {"color": SECOND} | kwargs))
        self.lines_ = [coverage, similarity]
        self.chosen_ = ax.axvline(k, color=INK, linewidth=1.2, zorder=1)
        self.knee_ = ax.axvline(curve.knee, color="#777777", linewidth=1.8, linestyle=":", zorder=1)
        ax.plot([k], [share], marker="o", color=QUIET, markeredgecolor="white", markersize=8, clip_on=False, zorder=4)
        ax.set(xlim=(0.0, max(curve.k[-1], k) * 1.01), ylim=(0.0, 1.01), xlabel="number of representatives, k")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        ax.set_axisbelow(True)
        bare(ax)
        title = f"Coverage by {counted(k, 'representative')} of {counted(facts.n_points, 'point')}"
        labels = [
            "coverage: share of the points that k express",
            "mean similarity to the nearest of k",
            f"chosen: k = {k:,}, coverage {100 * share:.0f} %",
            f"knee of the similarity: k = {curve.knee}",
        ]
        head(
            ax,
            title,
            [*self.lines_, self.chosen_, self.knee_],
            labels,
            columns=2,
        )
        return self
