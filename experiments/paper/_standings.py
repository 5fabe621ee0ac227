"""How contestants stand over many cases: mean rank and mean score, each with an interval over datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from experiments.paper._lines import EQUAL, Case, Cell, Column, label, ranks
from experiments.paper._markdown import ABSENT, Footnotes
from experiments.paper._markdown import table as markdown

#: Samples of datasets, their seed, and the share of the means that an interval holds.
DRAWS, SEED, LEVEL = 2000, 0, 0.95
#: Stands for a contestant without an answer, or with some of its seeds only: it was asked, and shares the last ranks.
UNANSWERED = Cell((), 1, 1)


@dataclass(frozen=True)
class Interval:
    """A mean over cases, and where it would lie with other datasets."""

    mean: float
    low: float
    high: float

    def text(self, digits: int) -> str:
        """Examples: 3.1 [2.0, 4.5]."""
        return f"{self.mean:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True)
class Standing:
    """One contestant: mean rank over all cases, mean score over those that it has an answer in (None without any)."""

    rank: Interval
    score: Interval | None
    lacking: int
    cases: int


def standings(columns: Mapping[Case, Column], higher: bool) -> dict[str, Standing]:
    """Every contestant over all cases in which somebody has an answer, the best mean rank first.

    Parameters
    ----------
    columns : case → its column; the first field of a case is the dataset
    higher : whether more is better

    Notes
    -----
    The score of a case is the mean over seeds, and a contestant without all of them has no answer there. A contestant that was
    not run in a case has none either: with fewer cases it would have the rank of the easy ones.
    """
    columns = {case: column for case, column in columns.items() if any(cell.complete for cell in column.values())}
    methods = dict.fromkeys(method for column in columns.values() for method in column)
    places: dict[str, dict[str, list[float]]] = {method: {} for method in methods}
    scores: dict[str, dict[str, list[float]]] = {method: {} for method in methods}
    for case, column in columns.items():
        whole = {m: column[m] if m in column and column[m].complete else UNANSWERED for m in methods}
        for method, rank in ranks(whole, higher).items():
            places[method].setdefault(case[0], []).append(rank)
            mean = whole[method].mean
            if mean is not None:
                scores[method].setdefault(case[0], []).append(mean)
    found = {}
    for method in methods:
        answered = sum(len(values) for values in scores[method].values())
        score = interval(scores[method]) if answered else None
        found[method] = Standing(interval(places[method]), score, len(columns) - answered, len(columns))
    return dict(sorted(found.items(), key=lambda pair: pair[1].rank.mean))


def interval(values: Mapping[str, Sequence[float]]) -> Interval:
    """The mean over all values, and the range of the middle 95 % of the means over datasets drawn with replacement.

    Cases of one dataset resemble each other, so datasets are drawn, with all their cases. Everybody gets the same draws.

    Examples
    --------
    >>> interval({"a": [1.0, 3.0], "b": [2.0]})
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    sums = np.array([fsum(numbers) for numbers in values.values()])
    counts = np.array([len(numbers) for numbers in values.values()])
    drawn = np.random.default_rng(SEED).integers(len(sums), size=(DRAWS, len(sums)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(sums.sum() / counts.sum()), float(low), float(high))


@dataclass(frozen=True)
class Shown:
    """A column of a table of standings: whose, whether the rank or the score, and whether less is better (None: neither)."""

    standings: Mapping[str, Standing]
    of: Callable[[Standing], Interval | None]
    digits: int
    less: bool | None


def rank_column(found: Mapping[str, Standing]) -> Shown:
    """Mean ranks."""
    return Shown(found, lambda standing: standing.rank, 1, less=True)


def score_column(found: Mapping[str, Standing], higher: bool | None) -> Shown:
    """Mean scores; without bold if it is not said what is better."""
    return Shown(found, lambda standing: standing.score, 3, less=None if higher is None else not higher)


def table(columns: Mapping[str, Shown], methods: Sequence[str], tier: Mapping[str, str]) -> str:
    """Contestants × columns. Bold is the best of all contestants, shown or not; a mean over fewer cases never is."""
    notes = Footnotes()
    winners = {heading: _best(column) for heading, column in columns.items()}
    rows = []
    for method in methods:
        row, lacks = [], []
        for heading, column in columns.items():
            standing = column.standings.get(method)
            found = column.of(standing) if standing is not None else None
            text = ABSENT if found is None else found.text(column.digits)
            row.append(f"**{text}**" if method in winners[heading] else text)
            lacks.append("" if standing is None or not standing.lacking else _lack(standing))
        name = label(method, tier.get(method, "peer"))
        if any(lacks) and len(set(lacks)) == 1:  # one remark for the whole row
            name += notes.mark(lacks[0])
        else:
            row = [text + (notes.mark(lack) if lack else "") for text, lack in zip(row, lacks, strict=True)]
        rows.append([name, *row])
    text = markdown(["contestant", *columns], rows)
    return text + (f"\n{notes.text()}" if notes.text() else "")


def _lack(standing: Standing) -> str:
    return f"no answer in {standing.lacking} of {standing.cases} cases"


def _best(column: Shown) -> list[str]:
    """Those with the best mean; a score counts only if it is over all cases."""
    means = {}
    for method, standing in column.standings.items():
        found = column.of(standing)
        if found is not None and (found is standing.rank or not standing.lacking):
            means[method] = found.mean
    if column.less is None or not means:
        return []
    extreme = min(means.values()) if column.less else max(means.values())
    return [method for method, mean in means.items() if abs(mean - extreme) <= EQUAL]
