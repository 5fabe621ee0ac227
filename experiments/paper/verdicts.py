"""What the paper claims, what we measure, and whether the two agree, by rules that look at the numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from experiments.items import CLASSIFIED
from experiments.paper import classification, f1_table, faces, robustness, running_time, saliency, scalable
from experiments.paper._lines import (
    EQUAL,
    MEASURES,
    OUTLIER_SHARE,
    Cell,
    Column,
    Line,
    cells,
    label,
    latest,
    mean_ranks,
    tiers,
)
from experiments.paper._markdown import escaped
from experiments.paper._markdown import table as markdown

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
NOT_STATED, NO_RUNS = "cannot be told (setting not stated)", "cannot be told (numbers missing)"
#: The method as the paper has it, and what the paper compares it with.
HERO = "MOSAIC (paper)"
SELECTION_RIVALS = ("SMRS", "DS3", "SSM", "K-medoids", "M-kmeans")
DETECTION_RIVALS = ("FDR (surrogate)", "L1-KPCA", "RML (surrogate)")
OURS = ("MOSAIC", HERO)
RULES = f"""\
- A claim is about {HERO}, against the baselines that the paper names: {", ".join(SELECTION_RIVALS)} (a surrogate) for selection,
  {", ".join(DETECTION_RIVALS)} for detection. Of these, a baseline without all its numbers in a case is left out there.
- It holds where the mean of {HERO} is strictly better than that of each of them. Where it loses to a surrogate only, this
  says nothing about the original: open.
- What the paper leaves unstated (number of picks, classifier, positive class, ambient dimension) gives several readings of a
  claim. It holds in all of those that have numbers: *{REPRODUCED}*; fails in all: *{NOT_REPRODUCED}*; else
  *{NOT_STATED}*.
- That FDR is second stays open at best: there is a surrogate of it only. F1 falls by its mean at the smallest ratio less that at
  the largest. Numbers agree with the paper's if all of them do within the tolerance of `experiments/expected/paper_numbers.json`.
- The scalable variant is compared with the method that it stands for, and has no rank. Much time is a ratio of at least
  {running_time.MUCH:g}, at the largest n that can be compared. Little accuracy, which the paper only implies, is a loss of
  at most {scalable.LITTLE:g} as a mean over k, seeds and sets.
- *Who wins* is over all contestants, by mean rank over the cases of the claim."""

Outcome: TypeAlias = Literal["holds", "fails", "open", "absent"]


@dataclass(frozen=True)
class Verdict:
    """One line of the table of verdicts."""

    item: str
    claim: str
    status: str
    measurement: str
    who_wins: str


@dataclass(frozen=True)
class Reading:
    """One way to understand a claim: what came out, and the numbers in words."""

    name: str
    outcome: Outcome
    words: str


def decide(readings: Sequence[Reading]) -> str:
    """All hold, all fail, or the answer depends on what is not stated; readings without numbers do not count.

    Examples
    --------
    >>> decide([Reading("k = 10", "holds", ""), Reading("k = 30", "fails", "")])
    'cannot be told (setting not stated)'
    """
    outcomes = {reading.outcome for reading in readings} - {"absent"}
    if not outcomes:
        return NO_RUNS
    if outcomes == {"holds"}:
        return REPRODUCED
    return NOT_REPRODUCED if outcomes == {"fails"} else NOT_STATED


def duel(column: Column, higher: bool, rivals: Sequence[str], tier: Mapping[str, str]) -> tuple[Outcome, str]:
    """Whether the hero's mean is strictly better than that of each rival, and the best of them."""
    hero = column[HERO].mean if HERO in column and column[HERO].complete else None
    others = {m: c.mean for m, c in column.items() if m in rivals and c.complete and c.mean is not None}
    if hero is None or not others:
        return "absent", _why_absent(column)
    sign = 1.0 if higher else -1.0
    ahead = [m for m, mean in others.items() if sign * (hero - mean) <= EQUAL]
    known = [m for m in ahead if tier[m] != "surrogate"]  # one of these, if any, decides; so it is the one shown
    first = max(known or others, key=lambda m: sign * others[m])
    words = f"{HERO} {hero:.3f}, {label(first, tier[first])} {others[first]:.3f}"
    left_out = [label(m, tier[m]) for m in column if m in rivals and m not in others]
    if left_out:
        words += f", without {', '.join(left_out)}"
    return ("fails" if known else "open" if ahead else "holds"), words


def _why_absent(column: Column) -> str:
    reasons = column[HERO].reasons if HERO in column else ()
    return f"{HERO}: {'; '.join(reasons)}" if reasons else "no runs to compare"


def reading(
    name: str, columns: Mapping[str, Column], higher: bool, rivals: Sequence[str], tier: Mapping[str, str]
) -> Reading:
    """The claim in all columns at once: the worst of their outcomes, and the first column that has it."""
    duels = {heading: duel(column, higher, rivals, tier) for heading, column in columns.items()}
    order: tuple[Outcome, ...] = ("absent", "fails", "open", "holds")
    for outcome in order:
        for heading, (found, words) in duels.items():
            if found == outcome:
                return Reading(name, outcome, f"{heading}: {words}" if heading else words)
    return Reading(name, "absent", "no runs")


def verdicts(lines: Sequence[Line]) -> list[Verdict]:
    """One for each claim, items without runs included."""
    lines = latest(lines)
    return [
        Verdict(*faces.verdict(lines)),
        *_robustness(lines),
        *_classification(lines),
        _scalable(lines),
        *(Verdict(*found) for found in running_time.verdict(lines)),
        Verdict(*saliency.verdict(lines)),
        *_structured(lines),
        *_f1(lines),
    ]


def table(lines: Sequence[Line]) -> str:
    """The verdicts as a table."""
    header = ["item", "the paper's claim", "verdict", "measured", "who wins"]
    rows = [[v.item, v.claim, f"**{v.status}**", v.measurement, v.who_wins] for v in verdicts(lines)]
    return markdown(header, [[escaped(text) for text in row] for row in rows], left=len(header))


def who_wins(columns: Sequence[tuple[Column, bool]], tier: Mapping[str, str]) -> str:
    """The best by mean rank, and the places of the two of ours."""
    ranking = mean_ranks(columns)
    if not ranking:
        return "—"
    top = min(ranking.values())
    winners = [label(m, tier[m]) for m, rank in ranking.items() if rank - top <= EQUAL]
    named = ", ".join(winners[:3]) + (f" and {len(winners) - 3} others" if len(winners) > 3 else "")
    words = [f"{named} (mean rank {top:.1f} of {len(ranking)})"]
    for mine in OURS:
        if mine not in ranking:
            words.append(f"{mine} has no rank")
        elif ranking[mine] - top > EQUAL:
            place = 1 + sum(rank < ranking[mine] - EQUAL for rank in ranking.values())
            words.append(f"{mine} is number {place} ({ranking[mine]:.1f})")
    return "; ".join(words)


def _verdict(item: str, claim: str, readings: Sequence[Reading], winners: str) -> Verdict:
    return Verdict(item, claim, decide(readings), _words(readings), winners)


def _words(readings: Sequence[Reading]) -> str:
    """The numbers of one reading; of several, in how many the claim holds, and three where it does not."""
    if not readings:
        return "no runs of this item"
    if len(readings) == 1:
        return readings[0].words
    against = [r for r in readings if r.outcome != "holds"]
    shown = "; ".join(f"{r.outcome} for {r.name} ({r.words})" for r in against[:3])
    more = f"; and {len(against) - 3} more" if len(against) > 3 else ""
    held = f"holds in {len(readings) - len(against)} of {len(readings)} readings"
    return f"{held}: {shown}{more}" if against else f"{held}; {readings[0].name}: {readings[0].words}"


def _robustness(lines: Sequence[Line]) -> list[Verdict]:
    mine = latest(lines, "robustness")
    tier, columns = tiers(mine), cells(mine, OUTLIER_SHARE, ["dataset"])
    found = []
    for dataset, title in robustness.TITLES.items():
        column = columns.get((dataset,), {})
        one = [reading("", {"": column}, False, SELECTION_RIVALS, tier)] if column else []
        winners = who_wins([(column, False)], tier) if column else "—"
        claim = f"{title}: fewer outliers among the picks than with any other method."
        found.append(_verdict("robustness", claim, one, winners))
    return found


def _classification(lines: Sequence[Line]) -> list[Verdict]:
    tier, found = tiers(lines), []
    for dataset in dict.fromkeys((*CLASSIFIED, *classification.sets_of(lines))):
        columns = classification.columns_of(lines, dataset)
        each = [
            reading(heading, {"": column}, measure.higher, SELECTION_RIVALS, tier)
            for heading, (column, measure) in columns.items()
        ]
        winners = who_wins([(column, measure.higher) for column, measure in columns.values()], tier)
        claim = f"{dataset}: a classifier taught by the representatives is more accurate than with other methods."
        found.append(_verdict("classification", claim, each, winners))
    return found


def _scalable(lines: Sequence[Line]) -> Verdict:
    """The paper does not state the classifier: each is a reading."""
    each = []
    for measure in MEASURES[classification.ITEM]:
        found = scalable.loss(lines, measure)
        if found is not None:
            name, most = scalable.worst(lines, measure)
            words = (
                f"{found.scalable:.3f}, {HERO} {found.full:.3f}, loss {found.value:.3f} (most on {name}: {most:.3f})"
            )
            each.append(Reading(measure.title, "holds" if found.little else "fails", words))
    claim = "The scalable variant loses little accuracy."
    return Verdict("classification", claim, decide(each), _all_words(each), "—")


def _all_words(readings: Sequence[Reading]) -> str:
    return "; ".join(f"{r.name} {r.words}" for r in readings) or "no runs of the scalable variant"


def _structured(lines: Sequence[Line]) -> list[Verdict]:
    mine = latest(lines, "structured")
    tier = tiers(mine)
    steady, second, everything = [], [], []
    for measure in MEASURES["structured"]:
        by_ratio = cells(mine, measure, ["ratio"])
        if not by_ratio:
            continue
        named = {f"ratio {ratio:g}": column for (ratio,), column in by_ratio.items()}
        steady.append(reading(measure.title, named, measure.higher, DETECTION_RIVALS, tier))
        everything += [(column, measure.higher) for column in named.values()]
        second.append(_second_place(measure.title, [(column, measure.higher) for column in named.values()]))
    winners = who_wins(everything, tier)
    return [
        _verdict("structured outliers", "Better than all others at every ratio.", steady, winners),
        _verdict("structured outliers", "FDR is second, and falls behind as outliers grow in number.", second, winners),
    ]


def _second_place(name: str, columns: Sequence[tuple[Column, bool]]) -> Reading:
    """Open at best: of FDR there is a surrogate only."""
    rows = (HERO, *DETECTION_RIVALS)
    ranking = mean_ranks([({m: c for m, c in column.items() if m in rows}, higher) for column, higher in columns])
    fdr = DETECTION_RIVALS[0]
    if fdr not in ranking or HERO not in ranking:
        return Reading(name, "absent", "no runs to compare")
    return Reading(name, "open", f"the surrogate has mean rank {ranking[fdr]:.1f} of {len(ranking)}")


def _f1(lines: Sequence[Line]) -> list[Verdict]:
    mine = latest(lines, "f1_table")
    tier = tiers(mine)
    first, falls, numbers, everything = [], [], [], []
    for dataset in f1_table.sets_of(mine):
        here = [line for line in mine if line["dataset"] == dataset]
        for measure in MEASURES["f1_table"]:
            columns = {ratio: column for (ratio,), column in cells(here, measure, ["ratio"]).items()}
            name = f"dimension {f1_table.dimension_of(dataset)}, {measure.title}"
            named = {f"ratio {ratio:g}": column for ratio, column in columns.items()}
            first.append(reading(name, named, True, DETECTION_RIVALS, tier))
            falls.append(reading(name, {"fall of F1": fall(columns)}, False, DETECTION_RIVALS, tier))
            numbers.append(agreement(name, columns))
            everything += [(column, True) for column in columns.values()]
    winners = who_wins(everything, tier)
    tolerance = f1_table.paper_numbers()["tolerance"]
    return [
        _verdict("F1 table", "Highest F1 at every ratio from 1 to 5.", first, winners),
        _verdict("F1 table", "The others lose more F1 than it does as outliers grow in number.", falls, winners),
        _verdict("F1 table", f"Its F1 are those of the table, within {tolerance:g} at every ratio.", numbers, winners),
    ]


def fall(columns: Mapping[float, Column]) -> Column:
    """Mean F1 at the smallest ratio − mean F1 at the largest, for each method."""
    start, end = columns[min(columns)], columns[max(columns)]
    found = {}
    for method in start:
        pair = [c.mean for c in (start[method], end.get(method)) if c is not None and c.complete and c.mean is not None]
        values = (pair[0] - pair[1],) if len(pair) == 2 and len(columns) > 1 else ()
        found[method] = Cell(values, 1, len(values))
    return found


def agreement(name: str, columns: Mapping[float, Column]) -> Reading:
    """Whether max over ratios of |our mean − the paper's number| ≤ tolerance, for the paper's method."""
    paper = f1_table.paper_numbers()
    (row,) = (row for row in paper["rows"] if row["contestant"] == HERO)
    gaps = {}
    for ratio, expected in zip(paper["ratios"], row["f1"], strict=True):
        cell = columns.get(ratio, {}).get(HERO)
        if cell is not None and cell.complete and cell.mean is not None:
            gaps[ratio] = (abs(cell.mean - expected), cell.mean, expected)
    if not gaps:
        return Reading(name, "absent", "no numbers at the paper's ratios")
    ratio = max(gaps, key=lambda r: gaps[r][0])
    gap, ours, expected = gaps[ratio]
    outcome: Outcome = "holds" if gap <= paper["tolerance"] + EQUAL else "fails"
    return Reading(name, outcome, f"at most {gap:.3f} apart, at ratio {ratio:g}: {ours:.3f}, paper {expected:.3f}")
