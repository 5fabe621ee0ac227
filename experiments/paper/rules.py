"""Rules by which runs decide a claim; they look at the numbers only.

A rule gives readings, one for each way to understand what the text leaves open (a dimension, a classifier, a ratio). Each of them
holds, fails, is level, stays open or has no numbers. Level: the runs cannot tell two numbers apart, since their mean difference,
run by run, is within its standard error, or since both are at the best that there is. A claim is reproduced if all of its
readings hold that can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from experiments.items import AMBIENT, DETECTION_RIVALS, SCALABLE, TABLE_AMBIENT, UNREFINED, VARIANTS, ambient
from experiments.paper import faces, running_time
from experiments.paper._lines import (
    AUC,
    CENTRE,
    CLASS_BALANCE,
    EQUAL,
    F1_INLIER,
    LIGHT_GROUPS,
    NEAREST,
    OUTLIER_SHARE,
    SVM,
    Cell,
    Column,
    Line,
    Measure,
    cells,
    label,
    latest,
    ranks,
    tiers,
)
from experiments.paper._markdown import number_range
from experiments.paper.running_time import Outcome

#: From the one that decides first to the one that decides last.
ORDER: tuple[Outcome, ...] = ("fails", "open", "level", "holds", "absent")
#: The method as the paper has it, the defaults of this library, and what the paper compares with.
HERO, DEFAULT = "MOSAIC (paper)", "MOSAIC"
SELECTION_RIVALS = ("SMRS", "DS3", "SSM", "K-medoids", "M-kmeans")
#: "Substantially" fewer: at most so many times the other's number. The text gives none.
SUBSTANTIAL = 0.5
#: "Not much" accuracy, and the distance up to which two F1 are the same.
LITTLE, NEAR = 0.02, 0.05
#: Two numbers this close to the best that there is are level; MOSAIC() is behind where it is worse by more than this.
LEVEL = 0.005
#: F1 of the paper's table, by contestant, at one to five outliers per inlier.
PRINTED = {
    "MOSAIC (paper)": (0.930, 0.889, 0.851, 0.816, 0.796),
    "FDR (surrogate)": (0.889, 0.779, 0.566, 0.449, 0.380),
    "L1-KPCA": (0.907, 0.741, 0.601, 0.509, 0.309),
    "RML (surrogate)": (0.828, 0.639, 0.533, 0.454, 0.347),
}
EXPLAINED = Measure("explained_share", "explained share of the inliers")
REDUNDANCY = Measure("redundancy", "redundancy", higher=False)
PICKS = Measure("n_picks", "picks")
RANK = Measure("rank", "mean rank", higher=False)
OWN, OWN_INLIERS = Measure("own_outliers", "own share of outliers"), Measure("own_inliers", "own share of inliers")
PART, PART_REPEATED = (
    Measure("part_inliers", "part of inliers"),
    Measure("part_repeated", "part of repeated outliers", higher=False),
)
ERROR_MEAN, ERROR_MAX = Measure("error_mean", "mean error", higher=False), Measure("error_max", "largest error", higher=False)


@dataclass(frozen=True)
class Reading:
    """One way to understand a claim: what came out, the numbers of the paper's method, of the one to beat and of MOSAIC(), and
    the standard error of the difference between the first two.
    """

    name: str
    outcome: Outcome
    paper: float | None = None
    other: float | None = None
    whose: str = ""
    default: float | None = None
    words: str = ""
    error: float | None = None


@dataclass(frozen=True)
class Found:
    """What the runs say of a claim."""

    readings: tuple[Reading, ...] = ()
    digits: int = 2
    #: Whether more is better, for telling where MOSAIC() is behind; None where it takes no part.
    higher: bool | None = None
    #: The figure in words, where ranges of the readings' numbers would not say it; and what follows it.
    words: str = ""
    note: str = ""
    #: The verdict, where only one of the readings can be what the paper did.
    one: str = ""

    @property
    def status(self) -> str:
        """Reproduced, not reproduced, in some readings, level, or why this cannot be told.

        Examples
        --------
        >>> Found((Reading("k = 10", "holds"), Reading("k = 30", "fails"), Reading("k = 100", "level"))).status
        'in 1 of 2 readings, 1 level'
        >>> Found((Reading("k = 10", "holds"), Reading("k = 30", "level"))).status
        'reproduced, 1 level'
        """
        outcomes = [reading.outcome for reading in self.readings if reading.outcome != "absent"]
        held, level = outcomes.count("holds"), outcomes.count("level")
        telling = len(outcomes) - level
        if self.one or not outcomes:
            return self.one or "no runs"
        if not telling:
            return "level"
        some = f"in {held} of {telling} readings" if held else "not reproduced" if "fails" in outcomes else "cannot be told"
        return ("reproduced" if held == telling else some) + (f", {level} level" if level else "")

    @property
    def behind(self) -> bool:
        """Whether MOSAIC() is behind the paper's method or the one to beat, in a reading."""
        sign = 1.0 if self.higher else -1.0
        return self.higher is not None and any(
            sign * (value - reading.default) > LEVEL
            for reading in self.readings
            if reading.default is not None
            for value in (reading.paper, reading.other)
            if value is not None
        )


def told(values: Sequence[float], bar: float = 0.0) -> tuple[Outcome, float]:
    """Whether the mean over runs is above a bar, level where it is within a standard error of it; and this error.

    Examples
    --------
    >>> told([1.0, 3.0]), told([1.0, 3.0], bar=2.5), told([0.0])
    (('holds', 1.0), ('level', 1.0), ('level', 0.0))
    """
    cell = Cell(tuple(values), len(values), len(values))
    error = (cell.spread or 0.0) / len(values) ** 0.5
    above = fmean(values) - bar
    return "level" if abs(above) <= error + EQUAL else "holds" if above > 0 else "fails", error


def contest(
    columns: Mapping[str, Column],
    measure: Measure,
    rivals: Sequence[str],
    tier: Mapping[str, str],
    *,
    substantial: float = 1.0,
    hero: str = HERO,
) -> tuple[Reading, ...]:
    """For each column whether the hero's mean is better than that of each rival, and at most ``substantial`` times it.

    Where only a surrogate is as good, this says nothing about the original: open.
    """
    return tuple(_against_all(name, column, measure, rivals, tier, substantial, hero) for name, column in columns.items())


def _against_all(
    name: str, column: Column, measure: Measure, rivals: Sequence[str], tier: Mapping[str, str], substantial: float, hero: str
) -> Reading:
    mine = _values(column, hero)
    others = {m: values for m in rivals if (values := _values(column, m))}
    if not mine or not others:
        return Reading(name, "absent")
    sign, best = (1.0, 1.0) if measure.higher else (-1.0, 0.0)
    found: dict[str, tuple[Outcome, float]] = {}
    for method, values in others.items():
        outcome, error = told([sign * (a - b) for a, b in zip(mine, values, strict=False)])  # the runs that both have
        if all(abs(fmean(each) - best) <= LEVEL for each in (mine, values)):
            outcome = "level"
        if outcome == "holds" and substantial < 1 and fmean(mine) > substantial * fmean(values):
            outcome = "fails"
        if outcome != "holds" and tier[method] == "surrogate":
            outcome = "open"
        found[method] = outcome, error
    first = min(others, key=lambda m: (ORDER.index(found[m][0]), -sign * fmean(others[m])))
    outcome, error = found[first]
    whose = label(first, tier[first])
    absent = ", ".join(method for method in rivals if method in column and method not in others)
    words = f"without {absent}: runs lack an answer" if absent else ""
    return Reading(name, outcome, fmean(mine), fmean(others[first]), whose, _mean(column, DEFAULT), words, error)


def _values(column: Column, method: str) -> tuple[float, ...]:
    """One number a run, of a method that has all of them."""
    cell = column.get(method)
    return cell.values if cell is not None and cell.complete else ()


def _mean(column: Column, method: str) -> float | None:
    values = _values(column, method)
    return fmean(values) if values else None


def _columns(lines: Sequence[Line], measure: Measure, by: str, heading: str) -> dict[str, Column]:
    return {heading.format(value): column for (value,), column in cells(lines, measure, [by]).items()}


def _whole(lines: Sequence[Line], measure: Measure) -> Column:
    """One cell a method, over all runs."""
    return next(iter(cells(lines, measure, []).values()), {})


def _with_picks(readings: Iterable[Reading], picks: Mapping[str, Column]) -> Found:
    """The readings, and how many rows the paper's method picks in them."""
    known = tuple(readings)
    counts = [_mean(picks[r.name], HERO) for r in known if r.paper is not None]
    return Found(known, digits=3, note=f"{number_range(counts, 0)} picks" if counts else "")


def fewer_outliers(lines: Sequence[Line], name: str) -> Found:
    """The share of outliers among the picks, mean over ratios, in each dimension."""
    mine = latest(lines, "robustness")
    sets = {"frey": "560 dimensions"} if name == "frey" else {ambient(name, d): f"{d} dimensions" for d in sorted(AMBIENT)}
    columns, picks = (
        {heading: each.get((dataset,), {}) for dataset, heading in sets.items()}
        for each in (cells(mine, m, ["dataset"]) for m in (OUTLIER_SHARE, PICKS))
    )
    readings = contest(columns, OUTLIER_SHARE, SELECTION_RIVALS, tiers(mine), substantial=SUBSTANTIAL)
    return replace(_with_picks(readings, picks), higher=False)


def all_at_once(lines: Sequence[Line]) -> Found:
    """The mean rank over explained share, redundancy and share of outliers, on the manifolds of each dimension, run by run."""
    mine = [line for line in latest(lines, "robustness") if line["dataset"] != "frey"]
    columns = {}
    for d in sorted(AMBIENT):
        here = [line for line in mine if line["dataset"].endswith(f"/{d}")]
        each = [
            (column, m.higher) for m in (EXPLAINED, REDUNDANCY, OUTLIER_SHARE) for column in cells(here, m, ["dataset"]).values()
        ]
        columns[f"{d} dimensions"] = _ranked(each, HERO) | {m: c for m, c in _ranked(each, DEFAULT).items() if m == DEFAULT}
    return Found(contest(columns, RANK, SELECTION_RIVALS, tiers(mine)), digits=1, higher=False)


def _ranked(columns: Sequence[tuple[Column, bool]], ours: str) -> dict[str, Cell]:
    """One of ours and the rivals, by their mean rank in each run that all of them have."""
    taking = [m for m in (ours, *SELECTION_RIVALS) if all(_values(column, m) for column, _ in columns)]
    runs = min((len(_values(column, m)) for column, _ in columns for m in taking), default=0)
    each = []
    for run in range(runs):
        of_run = [ranks({m: Cell((_values(c, m)[run],), 1, 1) for m in taking}, higher) for c, higher in columns]
        each.append({m: fmean(found[m] for found in of_run) for m in taking})
    return {m: Cell(tuple(one[m] for one in each), runs, runs) for m in taking}


def accuracy(lines: Sequence[Line], rivals: Sequence[str]) -> Found:
    """Accuracy, mean over sets, for each classifier and number of representatives."""
    mine = [line for line in latest(lines, "classification") if line["method"] not in VARIANTS]
    columns, picks = {}, {}
    for measure in (NEAREST, SVM):
        for (k,), column in cells(mine, measure, ["k"]).items():
            columns[f"{measure.title}, k = {k}"] = column
            picks[f"{measure.title}, k = {k}"] = cells(mine, PICKS, ["k"])[k,]
    return replace(_with_picks(contest(columns, NEAREST, rivals, tiers(mine)), picks), higher=True)


def little_lost(lines: Sequence[Line]) -> Found:
    """How much less accurate the scalable variant is than the method it stands for, run by run."""
    readings = []
    for measure in (NEAREST, SVM):
        column = _whole(latest(lines, "classification"), measure)
        full, scalable = (_values(column, m) for m in (HERO, SCALABLE))
        if not (full and scalable):
            readings.append(Reading(measure.title, "absent"))
            continue
        outcome, error = told([LITTLE + b - a for a, b in zip(full, scalable, strict=False)])
        readings.append(Reading(measure.title, outcome, fmean(scalable), fmean(full), "on all points", error=error))
    return Found(tuple(readings), digits=3)


def refined(lines: Sequence[Line]) -> Found:
    """The errors of all rows after refinement, against as many candidates that are all random."""
    mine = latest(lines, "classification")
    readings: list[Reading] = []
    for measure in (ERROR_MEAN, ERROR_MAX):
        readings += contest({measure.title: _whole(mine, measure)}, measure, (UNREFINED,), tiers(mine), hero=SCALABLE)
    return Found(tuple(replace(r, default=None) for r in readings), digits=3)


def slower(lines: Sequence[Line], pairs: Mapping[str, tuple[str, Sequence[str]]]) -> Found:
    """For each set and each (hero, rivals): seconds of each rival as multiples of the hero's, where they can be compared last."""
    return _timed(lines, pairs, running_time.much_slower)


def as_fast(lines: Sequence[Line], pairs: Mapping[str, tuple[str, Sequence[str]]]) -> Found:
    """Neither is much slower than the other."""
    return _timed(lines, pairs, running_time.similar)


def _timed(
    lines: Sequence[Line], pairs: Mapping[str, tuple[str, Sequence[str]]], judged: Callable[[running_time.Time], Outcome]
) -> Found:
    mine = latest(lines, running_time.ITEM)
    tier, readings, least = tiers(mine), [], dict[str, tuple[float, str]]()
    for dataset, (name, (hero, rivals)) in product(sorted({line["dataset"] for line in mine}), pairs.items()):
        found = running_time.times([line for line in mine if line["dataset"] == dataset])
        outcomes: list[tuple[Outcome, float, str]] = []
        for rival in rivals:
            pair = running_time.compared(found.get(rival, {}), found.get(hero, {}))
            if pair is not None:
                n, ratio = pair
                outcome = judged(ratio)
                outcome = "open" if outcome == "fails" and tier[rival] == "surrogate" else outcome
                outcomes.append((outcome, ratio.low, f"{label(rival, tier[rival])} takes {ratio.text} times as long (n = {n})"))
        worst: Outcome = min((outcome for outcome, *_ in outcomes), key=ORDER.index, default="absent")
        words = "; ".join(text for *_, text in outcomes)
        readings.append(
            Reading(f"{running_time.SETS[dataset]}, {name}" if name else running_time.SETS[dataset], worst, words=words)
        )
        if outcomes:
            _, low, text = min(outcomes, key=lambda one: one[1])
            least[name] = min(least.get(name, (low, text)), (low, text))
    return Found(tuple(readings), words="; ".join(f"{name}: {text}" if name else text for name, (_, text) in least.items()))


def equal_shares(lines: Sequence[Line]) -> Found:
    """Class balance, and the share of draws in which every subject is picked, against picks at random."""
    mine = latest(lines, "faces")
    hit, subjects = (_whole(mine, m) for m in (faces.SUBJECTS_HIT, faces.SUBJECTS))
    every = {
        m: replace(c, values=tuple(float(a == b) for a, b in zip(c.values, subjects[m].values, strict=True)))
        for m, c in hit.items()
    }
    columns = {"class balance": _whole(mine, CLASS_BALANCE), "draws with every subject": every}
    readings = contest(columns, CLASS_BALANCE, ("random",), tiers(mine))
    words = [f"{r.name} {r.paper:.2f} (random picks {r.other:.2f}) ± {r.error:.2f}" for r in readings if r.paper is not None]
    return Found(readings, higher=True, words="; ".join(words))


def every_light(lines: Sequence[Line]) -> Found:
    """The share of (subject, light) that is picked must be 1 in every run: of each subject a face under each light."""
    column = _whole(latest(lines, "faces"), LIGHT_GROUPS)
    values, chance, ours = _values(column, HERO), _mean(column, "random"), _mean(column, DEFAULT)
    if not values:
        return Found((Reading("", "absent"),))
    full = sum(value > 1 - EQUAL for value in values)
    _, error = told(values)
    words = f"{fmean(values):.2f} ± {error:.2f} of the 15 groups are picked, all of them in {full} of {len(values)} runs"
    words += "" if chance is None else f"; random picks: {chance:.2f}"
    outcome: Outcome = "holds" if full == len(values) else "fails"
    return Found((Reading("", outcome, fmean(values), chance, "random", ours, error=error),), higher=True, words=words)


def fairest(lines: Sequence[Line]) -> Found:
    """Class balance and groups of light, against the others."""
    mine = latest(lines, "faces")
    columns = {m.title: _whole(mine, m) for m in (CLASS_BALANCE, LIGHT_GROUPS)}
    return Found(contest(columns, LIGHT_GROUPS, SELECTION_RIVALS, tiers(mine)), higher=True)


def matches(lines: Sequence[Line]) -> Found:
    """AUC of patches against the mask, photograph by photograph, and that of a map of the centre, which looks at none."""
    mine = latest(lines, "saliency")
    column, centre = _whole(mine, AUC), _whole(mine, CENTRE)
    both = {**column, "its centre": centre[HERO]} if HERO in centre else column
    (reading,) = contest({"": both}, AUC, ("its centre",), {"its centre": ""})
    return Found((reading,), higher=True)


def separates(lines: Sequence[Line]) -> Found:
    """The AUC of OP must be above ½ in each case."""
    readings = []
    for name, mine in _detected(lines):
        cases = list(cells(mine, AUC, ["dataset", "ratio"]).values())
        found = [(*told(values, 0.5), fmean(values)) for column in cases if (values := _values(column, HERO))]
        ours = [mean for column in cases if (mean := _mean(column, DEFAULT)) is not None]
        if not found:
            readings.append(Reading(name, "absent"))
            continue
        outcome, error, least = min(found, key=lambda one: one[2])
        readings.append(Reading(name, outcome, least, None, "", min(ours, default=None), "the least of all cases", error))
    return Found(tuple(readings), higher=True)


def _detected(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    return [("swiss roll", latest(lines, "f1_table")), ("Frey faces", latest(lines, "structured"))]


def by_themselves(lines: Sequence[Line]) -> Found:
    """The share of its own representation that an outlier is, in the case where it is least."""
    readings = []
    for name, mine in _detected(lines):
        cases = list(zip(*(cells(mine, m, ["dataset", "ratio"]).values() for m in (OWN, OWN_INLIERS)), strict=True))
        found = [(fmean(v), v, _mean(inliers, HERO)) for column, inliers in cases if (v := _values(column, HERO))]
        if not found:
            readings.append(Reading(name, "absent"))
            continue
        least, values, other = min(found, key=lambda one: one[0])
        outcome, error = told(values, 0.5)
        readings.append(Reading(name, outcome, least, other, "inliers", words="the least of all cases", error=error))
    return Found(tuple(readings))


def weakly(lines: Sequence[Line]) -> Found:
    """The part that repeated outliers have in representing the inliers, against that of the inliers, in each dimension."""
    mine = latest(lines, "f1_table")
    readings: list[Reading] = []
    for name, dataset in table_sets().items():
        here = [line for line in mine if line["dataset"] == dataset]
        part, repeated = (_whole(here, m) for m in (PART, PART_REPEATED))
        both = {HERO: repeated[HERO], "an inlier": part[HERO]} if HERO in part and HERO in repeated else {}
        readings += contest({name: both}, PART_REPEATED, ("an inlier",), {"an inlier": ""}, substantial=SUBSTANTIAL)
    return Found(tuple(readings))


def detection(lines: Sequence[Line], item: str, measures: Sequence[Measure], sets: Mapping[str, str], *, at_once: bool) -> Found:
    """Better than each rival, with its settings chosen or left as they are: by set, by measure, by ratio or all at once."""
    readings: list[Reading] = []
    for tuned in (True, False):
        mine = latest(lines, item) if tuned else with_defaults(lines, item)
        for (name, dataset), measure in product(sets.items(), measures):
            columns = _columns([line for line in mine if line["dataset"] == dataset], measure, "ratio", "{:g}")
            each = contest(columns, measure, DETECTION_RIVALS, tiers(mine))
            parts = [name, measure.title if len(measures) > 1 else "", "" if tuned else "settings of the authors"]
            heading = ", ".join(filter(None, parts))
            readings += [_worst(heading, each)] if at_once else [replace(r, name=f"{heading}, {r.name}") for r in each]
    return Found(tuple(readings), digits=3, higher=True)


def with_defaults(lines: Sequence[Line], item: str) -> list[Line]:
    """Lines of an item in which the rivals have the settings of their authors."""
    name = {"structured": "structured_defaults", "f1_table": "f1_defaults"}[item]
    others = [line for line in latest(lines, item) if line["method"] not in DETECTION_RIVALS]
    return [*others, *({**line, "item": item} for line in latest(lines, name))] if latest(lines, name) else []


def _worst(name: str, each: Sequence[Reading]) -> Reading:
    """The reading of all ratios at once: it fails where one does, and holds where one does that can tell."""
    order: tuple[Outcome, ...] = ("fails", "open", "holds", "level", "absent")
    if not each:
        return Reading(name, "absent")
    worst = min(each, key=lambda r: (order.index(r.outcome), (r.paper or 0.0) - (r.other or 0.0)))
    level = ", ".join(r.name for r in each if r.outcome == "level")
    words = f"least lead at ratio {worst.name}" + (f", level at {level}" if level else "")
    return replace(worst, name=name, words=words)


def table_sets() -> dict[str, str]:
    """The readings of the table's dimension: name → set."""
    return {f"{d} dimensions": ambient("swiss_roll", d) for d in TABLE_AMBIENT}


def falls(lines: Sequence[Line]) -> Found:
    """The others' F1 falls from the smallest to the largest ratio, and by more than that of the paper's method."""
    readings: list[Reading] = []
    fall = Measure("fall", "fall of F1", higher=False)
    for tuned in (True, False):
        mine = latest(lines, "f1_table") if tuned else with_defaults(lines, "f1_table")
        for name, dataset in table_sets().items():
            columns = list(_columns([line for line in mine if line["dataset"] == dataset], F1_INLIER, "ratio", "{:g}").values())
            heading = name if tuned else f"{name}, settings of the authors"
            lost = {}
            for method in (HERO, DEFAULT, *DETECTION_RIVALS) if len(columns) > 1 else ():
                before, after = (_values(columns[place], method) for place in (0, -1))
                values = tuple(a - b for a, b in zip(before, after, strict=False))
                lost[method] = Cell(values, len(values), len(values))
            readings += contest({heading: lost}, fall, DETECTION_RIVALS, tiers(mine))
    return Found(tuple(readings), digits=3, higher=False)


def as_printed(lines: Sequence[Line], method: str = HERO, *, defaults: bool = False) -> Found:
    """The largest distance of a method from the table's numbers, over ratios: at most ``NEAR``, in one of the dimensions."""
    readings = []
    for tuned in (True, False) if defaults else (True,):
        mine = latest(lines, "f1_table") if tuned else with_defaults(lines, "f1_table")
        for name, dataset in table_sets().items():
            columns = _columns([line for line in mine if line["dataset"] == dataset], F1_INLIER, "ratio", "{:g}")
            pairs = [(_values(columns.get(str(i), {}), method), value) for i, value in enumerate(PRINTED[method], 1)]
            if all(values for values, _ in pairs):
                gap, values = max((abs(fmean(values) - value), values) for values, value in pairs)
                outcome: Outcome = "holds" if gap <= NEAR + EQUAL else "fails"
                words = ", ".join(f"{fmean(values):.3f} ({value:.3f})" for values, value in pairs)
                heading = name if tuned else f"{name}, settings of the authors"
                readings.append(Reading(heading, outcome, gap, words=words, error=told(values)[1]))
    if not readings:
        return Found((Reading("", "absent"),))
    nearest = min(readings, key=lambda reading: reading.paper or 0.0)
    words = (
        f"at most {nearest.paper:.3f} ± {nearest.error:.3f} apart in {nearest.name}: {nearest.words.replace(' (', ' (paper ', 1)}"
    )
    agreeing = " or ".join(r.name.partition(" ")[0] for r in readings if r.outcome == "holds")
    one = f"agrees if the dimension is {agreeing}" if agreeing else "not reproduced"
    return Found(tuple(readings), digits=3, words=words, one=one)
