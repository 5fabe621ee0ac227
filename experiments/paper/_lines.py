"""Lines of results grouped into cells: one number a seed, and why some are not there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from experiments.items import SELECTORS, VARIANTS, runs_of
from experiments.job import Job

Line: TypeAlias = Mapping[str, Any]
Case: TypeAlias = tuple[Any, ...]
#: The fields of a line that make a case.
FIELDS = ("dataset", "contamination", "ratio", "n", "k")
TIERS = ("ours", "paper", "surrogate", "peer")
NOT_RUN = "not run"
#: Means closer than this are equal: sums of the same numbers in another order differ by less.
EQUAL = 1e-12
LONGEST_REASON = 160


@dataclass(frozen=True)
class Measure:
    """A number of the judge, and whether more of it is better."""

    name: str
    title: str
    higher: bool = True


OUTLIER_SHARE = Measure("outlier_share", "share of outliers among the picks", higher=False)
NEAREST, SVM = Measure("accuracy_1nn", "1-NN accuracy"), Measure("accuracy_svm", "SVM accuracy")
AUC = Measure("auc", "AUC")
F1_OUTLIER = Measure("f1_outlier_best", "F1 (positive: outliers)")
F1_INLIER = Measure("f1_inlier_best", "F1 (positive: inliers)")
CLASS_BALANCE = Measure("class_balance", "class balance")
LIGHT_GROUPS = Measure("light_groups_hit", "light groups hit")
#: Of a map that looks at no picture.
CENTRE = Measure("centre", "AUC of the centre")
F_BEST, MAE = Measure("f_best", "best F"), Measure("mae", "MAE", higher=False)
#: What each item is judged by.
MEASURES = {
    "robustness": (OUTLIER_SHARE,),
    "classification": (NEAREST, SVM),
    "structured": (AUC, F1_OUTLIER, F1_INLIER),
    "f1_table": (F1_INLIER, F1_OUTLIER),
    "faces": (CLASS_BALANCE, LIGHT_GROUPS),
    "saliency": (AUC, F_BEST, MAE),
}


@dataclass(frozen=True)
class Cell:
    """The numbers of one method in one case.

    Attributes
    ----------
    values : one a seed
    wanted : seeds of the case, over all methods, less those that the item does not ask of this one
    tried : seeds for which all lines are there, with a number or without
    reasons : why seeds have no number
    """

    values: tuple[float, ...]
    wanted: int
    tried: int
    reasons: tuple[str, ...] = ()

    @property
    def mean(self) -> float | None:
        """Σ v / s over the s seeds that have a number."""
        return fmean(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        """√(Σ (v − mean)² / (s − 1)), the standard deviation over seeds; None for fewer than two."""
        if len(self.values) < 2:
            return None
        mean = fmean(self.values)
        return math.sqrt(math.fsum((v - mean) ** 2 for v in self.values) / (len(self.values) - 1))

    @property
    def complete(self) -> bool:
        """Whether no seed is missing; a mean over fewer seeds is not compared with one over all."""
        return 0 < len(self.values) == self.wanted


Column: TypeAlias = Mapping[str, Cell]


def latest(lines: Iterable[Line], item: str | None = None) -> list[Line]:
    """The last line of every run, of one item or of all, in an order that does not depend on when each run ended."""
    found: dict[Case, Line] = {}
    for line in lines:
        if item is None or line["item"] == item:
            found[tuple(line[name] for name in Job.__dataclass_fields__)] = line
    return [found[key] for key in sorted(found, key=in_order)]


def ranked(lines: Iterable[Line]) -> list[Line]:
    """Without the variants for many points, which are compared with the method that they stand for and have no rank."""
    return [line for line in lines if line["method"] not in VARIANTS]


def in_order(case: Case) -> tuple[tuple[bool, Any], ...]:
    """A key for sorting cases, in which fields may be None."""
    return tuple((value is not None, value) for value in case)


def cells(lines: Iterable[Line], measure: Measure, by: Sequence[str]) -> dict[Case, dict[str, Cell]]:
    """Columns of cells, one for each value of the fields ``by``.

    The number of a seed is the mean over the cases that are left within the column (over ratios, say). It counts only if the
    method has a number in all of them: a mean over the easy ratios would flatter.

    Examples
    --------
    >>> line = dict.fromkeys(("contamination", "n", "k")) | {"item": "a", "task": "select", "method": "m", "dataset": "d"}
    >>> lines = [line | {"seed": 0, "ratio": r, "verdict": {"auc": a}} for r, a in ((0.1, 0.75), (0.2, 0.25))]
    >>> cells(lines, AUC, ["dataset"])["d",]["m"].values
    (0.5,)
    """
    rest = [name for name in FIELDS if name not in by]
    lines = latest(lines)
    order = in_table_order(lines)
    found: dict[Case, dict[str, dict[Case, Line]]] = {}
    for line in lines:
        column = found.setdefault(tuple(line[name] for name in by), {})
        place = (line["seed"], *(line[name] for name in rest))
        column.setdefault(line["method"], {})[place] = line
    columns = {}
    for case in sorted(found, key=in_order):
        places = sorted({place for method in found[case].values() for place in method}, key=in_order)
        mine = found[case]
        columns[case] = {method: _cell(mine[method], _asked(places, mine[method]), measure) for method in order if method in mine}
    return columns


def _asked(places: Sequence[Case], mine: Mapping[Case, Line]) -> list[Case]:
    """The places whose seeds the item asks of a method, whose lines are given."""
    line = next(iter(mine.values()))
    runs = runs_of(line["item"], line["method"])
    return [place for place in places if runs is None or place[0] < runs]


def _cell(mine: Mapping[Case, Line], places: Sequence[Case], measure: Measure) -> Cell:
    """places: (seed, case) that are asked for."""
    values, reasons, tried = [], set(), 0
    seeds = sorted({place[0] for place in places})
    for seed in seeds:
        wanted = [place for place in places if place[0] == seed]
        numbers = [number_of(mine[place], measure) for place in wanted if place in mine]
        present = [number for number in numbers if number is not None]
        tried += len(numbers) == len(wanted)
        if len(present) == len(wanted):
            values.append(fmean(present))
        else:
            reasons |= {why_not(mine.get(place), measure) for place in wanted} - {""}
    return Cell(tuple(values), len(seeds), tried, tuple(sorted(reasons)))


def number_of(line: Line, measure: Measure) -> float | None:
    """The judge's number; None if there is none."""
    value = line.get("verdict", {}).get(measure.name)
    return None if value is None else float(value)


def why_not(line: Line | None, measure: Measure | None = None) -> str:
    """Why a run has no number; "" if it has one. Folders of the machine that ran it are left out."""
    if line is None:
        return NOT_RUN
    if "missing" in line:
        return f"the set {line['dataset']} was not at hand"
    if "cannot" in line:
        text = re.sub(r"(?<!\w)(/[\w.\-]+){2,}", "…", " ".join(str(line["cannot"]).split()))
        return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
    if measure is not None and number_of(line, measure) is None:
        return f"its answer has no {measure.title}"
    return ""


def best(column: Column, higher: bool) -> list[str]:
    """The methods with the best mean, of those that have all seeds; several if they tie."""
    means = {method: cell.mean for method, cell in column.items() if cell.complete and cell.mean is not None}
    if not means:
        return []
    extreme = max(means.values()) if higher else min(means.values())
    return [method for method, mean in means.items() if abs(mean - extreme) <= EQUAL]


def ranks(column: Column, higher: bool) -> dict[str, float]:
    """1 for the best; methods that tie share the mean of their ranks.

    Methods that were tried and have not all numbers share the last ranks, so that none gains by not answering. Methods that
    were not run on all seeds have no rank.
    """
    sign = -1.0 if higher else 1.0
    keys = {m: sign * c.mean for m, c in column.items() if c.complete and c.mean is not None}
    keys |= {m: math.inf for m, c in column.items() if m not in keys and c.tried == c.wanted}
    found = {}
    for method, key in keys.items():
        less = sum(other < key - EQUAL for other in keys.values())
        equal = sum(other == key or abs(other - key) <= EQUAL for other in keys.values())
        found[method] = less + (equal + 1) / 2
    return found


def tiers(lines: Iterable[Line]) -> dict[str, str]:
    """The tier of each method."""
    return {line["method"]: line.get("tier", "peer") for line in lines}


def in_table_order(lines: Iterable[Line]) -> list[str]:
    """The methods: ours, the paper's baselines, surrogates, peers; within them as in the items, then by name."""
    tier = tiers(lines)

    def place(method: str) -> tuple[int, int, str]:
        known = SELECTORS.index(method) if method in SELECTORS else len(SELECTORS)
        return TIERS.index(tier[method]), known, method

    return sorted(tier, key=place)


def label(method: str, tier: str) -> str:
    """The name, and that it is a surrogate where it is one.

    Examples
    --------
    >>> label("M-kmeans", "surrogate"), label("RML (surrogate)", "surrogate"), label("SMRS", "paper")
    ('M-kmeans (surrogate)', 'RML (surrogate)', 'SMRS')
    """
    mark = " (surrogate)"
    return method if tier != "surrogate" or method.endswith(mark) else method + mark
