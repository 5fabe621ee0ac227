"""Rules by which runs decide a claim; they look at the numbers only.

A rule gives readings, one for each way to understand what the text leaves open (a dimension, a classifier, a ratio), and each
of them holds, fails, stays open or has no numbers. A claim is reproduced if all of its readings hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, TypeAlias

from experiments.items import AMBIENT, DETECTION_RIVALS, FLAT, SCALABLE, TABLE_AMBIENT, ambient
from experiments.paper import faces, running_time
from experiments.paper._lines import (
    AUC,
    CLASS_BALANCE,
    EQUAL,
    F1_INLIER,
    F1_OUTLIER,
    FIELDS,
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
    mean_ranks,
    tiers,
)
from experiments.paper._markdown import ABSENT

Outcome: TypeAlias = Literal["holds", "fails", "open", "absent"]
#: The method as the paper has it, the defaults of this library, and what the paper compares with.
HERO, DEFAULT = "MOSAIC (paper)", "MOSAIC"
SELECTION_RIVALS = ("SMRS", "DS3", "SSM", "K-medoids", "M-kmeans")
#: "Substantially" fewer: at most so many times the other's number. The text gives none.
SUBSTANTIAL = 0.5
#: "Not much" accuracy, and the distance up to which two F1 are the same.
LITTLE, NEAR = 0.02, 0.05
#: MOSAIC() is behind where it is worse by more than this.
LEVEL = 0.005
#: AUC from which on patches match an object, and below which they do not; 0.5 is chance.
MATCH, NO_MATCH = 0.8, 0.6
#: Class balance from which on subjects are picked about equally often: of 15 picks 6, 3, 3, 2 and 1 have 0.907.
BALANCED = 0.9
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


@dataclass(frozen=True)
class Reading:
    """One way to understand a claim: what came out, the number of the paper's method, of the one to beat, and of MOSAIC()."""

    name: str
    outcome: Outcome
    paper: float | None = None
    other: float | None = None
    whose: str = ""
    default: float | None = None
    words: str = ""


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
    beside: tuple[Reading, ...] = ()

    @property
    def status(self) -> str:
        """Reproduced, not reproduced, in some readings, or why this cannot be told.

        Examples
        --------
        >>> Found((Reading("k = 10", "holds"), Reading("k = 30", "fails"))).status
        'in 1 of 2 readings'
        """
        outcomes = [reading.outcome for reading in self.readings if reading.outcome != "absent"]
        if not outcomes:
            return "no runs"
        held = outcomes.count("holds")
        if held == len(outcomes):
            return "reproduced"
        if "holds" in outcomes:
            return f"in {held} of {len(outcomes)} readings"
        return "not reproduced" if "fails" in outcomes else "cannot be told"

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
    found = []
    for name, column in columns.items():
        mine, ours = _mean(column, hero), _mean(column, DEFAULT)
        others = {m: mean for m in rivals if (mean := _mean(column, m)) is not None}
        if mine is None or not others:
            found.append(Reading(name, "absent"))
            continue
        sign = 1.0 if measure.higher else -1.0
        beaten = {m: sign * (mine - v) > EQUAL and (measure.higher or mine <= substantial * v) for m, v in others.items()}
        known = [m for m in others if not beaten[m] and tier[m] != "surrogate"]
        outcome: Outcome = "fails" if known else "holds" if all(beaten.values()) else "open"
        first = max(known or others, key=lambda m: sign * others[m])
        found.append(Reading(name, outcome, mine, others[first], label(first, tier[first]), ours))
    return tuple(found)


def _mean(column: Column, method: str) -> float | None:
    """The mean of a method that has all its runs."""
    cell = column.get(method)
    return cell.mean if cell is not None and cell.complete else None


def _columns(lines: Sequence[Line], measure: Measure, by: str, heading: str) -> dict[str, Column]:
    return {heading.format(value): column for (value,), column in cells(lines, measure, [by]).items()}


def fewer_outliers(lines: Sequence[Line], name: str) -> Found:
    """The share of outliers among the picks, mean over ratios, in each dimension; three dimensions beside."""
    mine = latest(lines, "robustness")
    columns, picks = ({key[0]: c for key, c in cells(mine, m, ["dataset"]).items()} for m in (OUTLIER_SHARE, PICKS))

    def decided(sets: Mapping[str, str]) -> tuple[Reading, ...]:
        known = {heading: columns[dataset] for heading, dataset in sets.items() if dataset in columns}
        each = contest(known, OUTLIER_SHARE, SELECTION_RIVALS, tiers(mine), substantial=SUBSTANTIAL)
        counts = {r.name: _mean(picks[sets[r.name]], HERO) for r in each}
        return tuple(replace(r, words=f"{counts[r.name]:.0f} picks") if r.paper is not None else r for r in each)

    if name == "frey":
        readings, beside = decided({"560 dimensions": name}), decided({})
    else:
        readings = decided({f"{d} dimensions": ambient(name, d) for d in AMBIENT})
        beside = decided({f"{FLAT} dimensions": name})
    counted = [float(r.words.split()[0]) for r in readings if r.words]
    note = f"{number_range(counted, 0)} picks of 20" if counted else ""
    return Found(readings, digits=3, higher=False, beside=beside, note=note)


def all_at_once(lines: Sequence[Line]) -> Found:
    """The mean rank over explained share, redundancy and share of outliers, on the manifolds of each dimension."""
    mine = [line for line in latest(lines, "robustness") if line["dataset"] != "frey"]
    readings = []
    for d in AMBIENT:
        here = [line for line in mine if line["dataset"].endswith(f"/{d}")]
        rows = (HERO, DEFAULT, *SELECTION_RIVALS)
        columns = [
            ({m: c for m, c in column.items() if m in rows}, measure.higher)
            for measure in (EXPLAINED, REDUNDANCY, OUTLIER_SHARE)
            for column in cells(here, measure, ["dataset"]).values()
        ]
        paper = mean_ranks([({m: c for m, c in column.items() if m != DEFAULT}, higher) for column, higher in columns])
        ours = mean_ranks([({m: c for m, c in column.items() if m != HERO}, higher) for column, higher in columns])
        others = {m: rank for m, rank in paper.items() if m != HERO}
        if not others or any(_mean(column, HERO) is None for column, _ in columns):
            readings.append(Reading(f"{d} dimensions", "absent"))
            continue
        first = min(others, key=others.__getitem__)
        holds = paper[HERO] < others[first] - EQUAL
        tier = tiers(here)
        outcome: Outcome = "holds" if holds else "open" if tier[first] == "surrogate" else "fails"
        whose = label(first, tier[first])
        readings.append(Reading(f"{d} dimensions", outcome, paper[HERO], others[first], whose, ours.get(DEFAULT)))
    return Found(tuple(readings), digits=1, higher=False)


def accuracy(lines: Sequence[Line], rivals: Sequence[str]) -> Found:
    """Accuracy, mean over sets, for each classifier and number of representatives."""
    mine = [line for line in latest(lines, "classification") if line["method"] != SCALABLE]
    columns: dict[str, tuple[Column, Measure]] = {}
    for measure in (NEAREST, SVM):
        for (k,), column in cells(mine, measure, ["k"]).items():
            columns[f"{measure.title}, k = {k}"] = (column, measure)
    named = {name: column for name, (column, _) in columns.items()}
    picks = {f"k = {k}": _mean(column, HERO) for (k,), column in cells(mine, PICKS, ["k"]).items()}
    readings = []
    for reading in contest(named, NEAREST, rivals, tiers(mine)):
        count = picks.get(reading.name.rpartition(", ")[2])
        readings.append(reading if count is None else replace(reading, words=f"{count:.0f} picks"))
    return Found(tuple(readings), digits=3, higher=True)


def little_lost(lines: Sequence[Line]) -> Found:
    """Accuracy of the scalable variant and of the method it stands for, mean over the runs that both have."""
    readings = []
    for measure in (NEAREST, SVM):
        both: list[dict[tuple[object, ...], float]] = [{}, {}]
        for line in latest(lines, "classification"):
            value = line.get("verdict", {}).get(measure.name)
            if line["method"] in (HERO, SCALABLE) and value is not None:
                both[line["method"] == SCALABLE][tuple(line[name] for name in (*FIELDS, "seed"))] = value
        common = both[0].keys() & both[1].keys()
        if not common:
            readings.append(Reading(measure.title, "absent"))
            continue
        full, scalable = (fmean(values[place] for place in common) for values in both)
        outcome: Outcome = "holds" if full - scalable <= LITTLE + EQUAL else "fails"
        readings.append(Reading(measure.title, outcome, scalable, full, "on all points"))
    return Found(tuple(readings), digits=3)


def slower(lines: Sequence[Line], hero: str, rivals: Sequence[str]) -> Found:
    """Seconds of each rival as multiples of the hero's, at the largest number of points that can be compared."""
    found, tier = running_time.times(lines), tiers(latest(lines, "running_time"))
    readings, ratios = [], {}
    for rival in rivals:
        pair = running_time.slower(found.get(rival, {}), found.get(hero, {}))
        if pair is None:
            readings.append(Reading(rival, "absent"))
            continue
        n, ratio = pair
        outcome: Outcome = running_time.outcome(ratio)
        if outcome == "fails" and tier[rival] == "surrogate":
            outcome = "open"
        text = f"{label(rival, tier[rival])} takes {ratio.text} times as long (n = {n})"
        ratios[text] = ratio.low
        readings.append(Reading(label(rival, tier[rival]), outcome, words=text))
    return Found(tuple(readings), words=min(ratios, key=ratios.__getitem__, default=""))


def all_slower(lines: Sequence[Line], heroes: Sequence[str], rivals: Sequence[str]) -> Found:
    """A reading for each algorithm that may be meant: all rivals must be much slower than it. The figure is the fastest one's."""
    readings, words = [], []
    for hero in heroes:
        each = slower(lines, hero, rivals)
        outcomes = {reading.outcome for reading in each.readings} - {"absent"}
        order: tuple[Outcome, ...] = ("fails", "open", "holds")
        outcome: Outcome = next((o for o in order if o in outcomes), "absent")
        readings.append(Reading(hero, outcome, words="; ".join(r.words for r in each.readings if r.words)))
        words += [f"{hero}: {each.words}"] if each.words else []
    return Found(tuple(readings), words="; ".join(words))


def as_fast(lines: Sequence[Line], heroes: Sequence[str], rival: str) -> Found:
    """Neither is much slower than the other."""
    found, readings = running_time.times(lines), []
    for hero in heroes:
        pair = running_time.slower(found.get(rival, {}), found.get(hero, {}))
        if pair is None:
            readings.append(Reading(hero, "absent"))
            continue
        n, ratio = pair
        similar = ratio.low > 1 / running_time.MUCH and ratio.high < running_time.MUCH
        text = f"{rival} takes {ratio.text} times as long (n = {n})"
        readings.append(Reading(hero, "holds" if similar else "fails", words=text))
    return Found(tuple(readings), words="; ".join(f"{r.name}: {r.words}" for r in readings if r.words))


def equal_shares(lines: Sequence[Line]) -> Found:
    """Every subject is picked in every run, and the mean class balance is at least 0.9."""
    column = _whole(latest(lines, "faces"), CLASS_BALANCE)
    hit, subjects = (_whole(latest(lines, "faces"), m) for m in (faces.SUBJECTS_HIT, faces.SUBJECTS))
    mine = _mean(column, HERO)
    if mine is None:
        return Found((Reading("", "absent"),))
    missed = sum(h < s for h, s in zip(hit[HERO].values, subjects[HERO].values, strict=True))
    words = f"class balance {mine:.2f}, a subject missed in {missed} of {len(hit[HERO].values)} runs"
    holds = not missed and mine >= BALANCED
    ours = _mean(column, DEFAULT)
    return Found((Reading("", "holds" if holds else "fails", mine, None, "", ours),), higher=True, words=words)


def every_light(lines: Sequence[Line]) -> Found:
    """The share of (subject, light) that is picked must be 1 in every run: of each subject a face under each light."""
    column = _whole(latest(lines, "faces"), LIGHT_GROUPS)
    mine, chance, ours = (_mean(column, m) for m in (HERO, "random", DEFAULT))
    if mine is None:
        return Found((Reading("", "absent"),))
    full = sum(value > 1 - EQUAL for value in column[HERO].values)
    words = f"{mine:.2f} of the 15 groups are picked, all of them in {full} of {len(column[HERO].values)} runs"
    words += "" if chance is None else f"; random picks: {chance:.2f}"
    outcome: Outcome = "holds" if full == len(column[HERO].values) else "fails"
    return Found((Reading("", outcome, mine, chance, "random", ours),), higher=True, words=words)


def fairest(lines: Sequence[Line]) -> Found:
    """Class balance and groups of light, against the others."""
    mine = latest(lines, "faces")
    columns = {m.title: _whole(mine, m) for m in (CLASS_BALANCE, LIGHT_GROUPS)}
    return Found(contest(columns, LIGHT_GROUPS, SELECTION_RIVALS, tiers(mine)), higher=True)


def _whole(lines: Sequence[Line], measure: Measure) -> Column:
    """One cell a method, over all runs."""
    return next(iter(cells(lines, measure, []).values()), {})


def matches(lines: Sequence[Line]) -> Found:
    """The mean over photographs of the AUC of patches against the mask."""
    column = _whole(latest(lines, "saliency"), AUC)
    mine, ours = _mean(column, HERO), _mean(column, DEFAULT)
    if mine is None:
        return Found((Reading("", "absent"),))
    outcome: Outcome = "holds" if mine >= MATCH else "fails" if mine < NO_MATCH else "open"
    words = f"mean AUC {mine:.2f} over {len(column[HERO].values)} photographs"
    return Found((Reading("", outcome, mine, None, "", ours),), higher=True, words=words)


def separates(lines: Sequence[Line]) -> Found:
    """The AUC of OP must be above ½ in each case."""
    named = {"swiss roll": latest(lines, "f1_table"), "Frey faces": latest(lines, "structured")}
    readings = []
    for name, mine in named.items():
        each = list(cells(mine, AUC, ["dataset", "ratio"]).values())
        values = [mean for column in each if (mean := _mean(column, HERO)) is not None]
        ours = [mean for column in each if (mean := _mean(column, DEFAULT)) is not None]
        if not values:
            readings.append(Reading(name, "absent"))
            continue
        outcome: Outcome = "holds" if min(values) > 0.5 else "fails"
        readings.append(Reading(name, outcome, min(values), None, "", min(ours) if ours else None))
    least = number_range([r.paper for r in readings], 2)
    return Found(tuple(readings), higher=True, words=f"least AUC {least}" if least != ABSENT else "")


def detection(lines: Sequence[Line], item: str, measures: Sequence[Measure], sets: Mapping[str, str]) -> Found:
    """Better than each rival at every ratio: by set, by measure, and with the rivals' settings chosen or left as they are."""
    readings: list[Reading] = []
    for tuned in (True, False):
        mine = with_defaults(lines, item) if not tuned else latest(lines, item)
        tier = tiers(mine)
        for name, dataset in sets.items():
            here = [line for line in mine if line["dataset"] == dataset]
            for measure in measures:
                columns = _columns(here, measure, "ratio", "{:g}")
                each = contest(columns, measure, DETECTION_RIVALS, tier)
                heading = ", ".join(filter(None, [name, measure.title if len(measures) > 1 else ""]))
                readings.append(_worst(f"{heading}{'' if tuned else ', settings of the authors'}", each))
    return Found(tuple(readings), digits=3, higher=True)


def with_defaults(lines: Sequence[Line], item: str) -> list[Line]:
    """Lines of an item in which the rivals have the settings of their authors."""
    name = {"structured": "structured_defaults", "f1_table": "f1_defaults"}[item]
    others = [line for line in latest(lines, item) if line["method"] not in DETECTION_RIVALS]
    return [*others, *({**line, "item": item} for line in latest(lines, name))] if latest(lines, name) else []


def _worst(name: str, each: Sequence[Reading]) -> Reading:
    """The reading of all ratios at once: the ratio with the worst outcome, of equal ones where the lead is least."""
    order: tuple[Outcome, ...] = ("absent", "fails", "open", "holds")
    if not each:
        return Reading(name, "absent")
    worst = min(each, key=lambda r: (order.index(r.outcome), (r.paper or 0.0) - (r.other or 0.0)))
    return Reading(name, worst.outcome, worst.paper, worst.other, worst.whose, worst.default, f"least lead at ratio {worst.name}")


def second(lines: Sequence[Line]) -> Found:
    """Open at best: there is a surrogate of FDR only."""
    mine = latest(lines, "structured")
    fdr = DETECTION_RIVALS[0]
    columns = _columns(mine, AUC, "ratio", "{:g}")
    values = [mean for column in columns.values() if (mean := _mean(column, fdr)) is not None]
    if not values:
        return Found((Reading("", "absent"),))
    words = f"AUC of the surrogate {values[0]:.2f} at the smallest ratio, {values[-1]:.2f} at the largest"
    return Found((Reading("", "open", words=words),), words=words)


def table_sets() -> dict[str, str]:
    """The readings of the table's dimension: name → set."""
    return {f"{d} dimensions": ambient("swiss_roll", d) for d in TABLE_AMBIENT}


def falls(lines: Sequence[Line]) -> Found:
    """The others' F1 falls from the smallest to the largest ratio, and by more than that of the paper's method."""
    readings = []
    for tuned in (True, False):
        mine = latest(lines, "f1_table") if tuned else with_defaults(lines, "f1_table")
        for name, dataset in table_sets().items():
            here = [line for line in mine if line["dataset"] == dataset]
            columns = {ratio: column for (ratio,), column in cells(here, F1_INLIER, ["ratio"]).items()}
            heading = name if tuned else f"{name}, settings of the authors"
            if len(columns) < 2:
                readings.append(Reading(heading, "absent"))
                continue
            start, end = columns[min(columns)], columns[max(columns)]
            lost = {}
            for method in (HERO, DEFAULT, *DETECTION_RIVALS):
                before, after = _mean(start, method), _mean(end, method)
                if before is not None and after is not None:
                    lost[method] = Cell((before - after,), 1, 1)
            measure = Measure("fall", "fall of F1", higher=False)
            readings += contest({heading: lost}, measure, DETECTION_RIVALS, tiers(mine))
    return Found(tuple(readings), higher=False)


def as_printed(lines: Sequence[Line], method: str = HERO, *, defaults: bool = False) -> Found:
    """The largest distance of a method from the table's numbers, over ratios: at most ``NEAR``."""
    readings = []
    for tuned in (True, False) if defaults else (True,):
        mine = latest(lines, "f1_table") if tuned else with_defaults(lines, "f1_table")
        for name, dataset in table_sets().items():
            here = [line for line in mine if line["dataset"] == dataset]
            columns = {ratio: column for (ratio,), column in cells(here, F1_INLIER, ["ratio"]).items()}
            pairs = [(_mean(columns.get(float(i), {}), method), value) for i, value in enumerate(PRINTED[method], 1)]
            gaps = [abs(mean - value) for mean, value in pairs if mean is not None]
            if len(gaps) == len(PRINTED[method]):
                outcome: Outcome = "holds" if max(gaps) <= NEAR + EQUAL else "fails"
                words = ", ".join(f"{mean:.3f} ({value:.3f})" for mean, value in pairs)
                heading = name if tuned else f"{name}, settings of the authors"
                readings.append(Reading(heading, outcome, max(gaps), words=words))
    if not readings:
        return Found((Reading("", "absent"),))
    nearest = min(readings, key=lambda reading: reading.paper or 0.0)
    words = f"at most {nearest.paper:.3f} apart in {nearest.name}: {nearest.words.replace(' (', ' (paper ', 1)}"
    return Found(tuple(readings), digits=3, words=words)


def number_range(values: Sequence[float | None], digits: int) -> str:
    """Least and largest, or the one number that both are.

    Examples
    --------
    >>> number_range([0.1, None, 0.26], 1), number_range([0.11, 0.12], 1), number_range([], 2)
    ('0.1 to 0.3', '0.1', '—')
    """
    known = [value for value in values if value is not None]
    if not known:
        return ABSENT
    low, high = (f"{round(value, digits) + 0.0:.{digits}f}" for value in (min(known), max(known)))  # no −0
    return low if low == high else f"{low} to {high}"


STRUCTURED_MEASURES = (AUC, F1_OUTLIER, F1_INLIER)
