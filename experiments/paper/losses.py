"""Where MOSAIC() loses most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from experiments.paper._lines import (
    FIELDS,
    MEASURES,
    Case,
    Column,
    Line,
    Measure,
    best,
    cells,
    label,
    latest,
    ranked,
    tiers,
)
from experiments.paper._markdown import table as markdown

OURS = "MOSAIC"


@dataclass(frozen=True)
class Loss:
    """One case: what MOSAIC() reached, what the best reached, and how far apart these are.

    Attributes
    ----------
    item, case : which; the fields of ``case`` are dataset, contamination, ratio, n, k
    measure : of the judge
    ours, theirs : means over seeds
    winner : who reached ``theirs``
    gap : |theirs − ours| / s, see ``find``
    """

    item: str
    case: Case
    measure: Measure
    ours: float
    theirs: float
    winner: str
    gap: float

    @property
    def setting(self) -> str:
        """The case in words, without what it does not have."""
        dataset, contamination, ratio, n, k = self.case
        words = [dataset]
        if contamination is not None:
            words.append(f"{contamination} outliers, ratio {ratio:g}")
        words += [f"{name} = {value}" for name, value in (("n", n), ("k", k)) if value is not None]
        return ", ".join(words)


def find(lines: Sequence[Line], count: int = 3) -> list[Loss]:
    """The largest gaps (best mean − mean of MOSAIC()) / s_m, each (item, set) at its worst setting only.

    s_m² is the mean over cases of the variance over contestants of their means: a gap of 1 is a typical difference between
    two methods in this measure, so that measures can be compared. Cases in which MOSAIC() has not all its seeds are left out.
    """
    columns = _columns(latest(lines))
    scales = _scales(columns)
    worst: dict[tuple[str, str], Loss] = {}
    for item, case, measure, column in columns:
        mine, winners = column.get(OURS), best(column, measure.higher)
        scale = scales.get(measure.name, 0.0)
        if mine is None or not mine.complete or mine.mean is None or OURS in winners or scale <= 0:
            continue
        theirs = column[winners[0]].mean
        assert theirs is not None  # the best has a mean
        gap = abs(theirs - mine.mean) / scale
        key = item, str(case[0])
        if key not in worst or gap > worst[key].gap:
            worst[key] = Loss(item, case, measure, mine.mean, theirs, winners[0], gap)
    return sorted(worst.values(), key=lambda loss: -loss.gap)[:count]


def table(lines: Sequence[Line], count: int = 3) -> str:
    """The losses, the largest first."""
    tier = tiers(lines)
    rows = [
        [
            loss.item,
            loss.setting,
            loss.measure.title,
            f"{loss.ours:.3f}",
            f"{loss.theirs:.3f} ({label(loss.winner, tier[loss.winner])})",
            f"{loss.gap:.2f}",
        ]
        for loss in find(lines, count)
    ]
    if not rows:
        return "No case in which MOSAIC() is behind another contestant."
    return markdown(["item", "case", "measure", "MOSAIC()", "best", "gap"], rows, left=3)


def _columns(lines: Sequence[Line]) -> list[tuple[str, Case, Measure, Column]]:
    found: list[tuple[str, Case, Measure, Column]] = []
    for item, measures in MEASURES.items():
        mine = [line for line in ranked(lines) if line["item"] == item]
        for measure in measures:
            found += [(item, case, measure, column) for case, column in cells(mine, measure, FIELDS).items()]
    return found


def _scales(columns: Sequence[tuple[str, Case, Measure, Column]]) -> dict[str, float]:
    """s_m of every measure, over all items."""
    variances: dict[str, list[float]] = {}
    for _, _, measure, column in columns:
        means = [cell.mean for cell in column.values() if cell.complete and cell.mean is not None]
        if len(means) > 1:
            variances.setdefault(measure.name, []).append(pvariance(means))
    return {name: math.sqrt(fmean(values)) for name, values in variances.items()}
