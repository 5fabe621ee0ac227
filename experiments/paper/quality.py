"""Our own comparison: how well every contestant chooses and detects over many sets, and what our rules are worth.

Choices were made on half of the sets, with half of the kinds of outliers, and confirmed on the other half; both are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.items import DECIDING, KINDS, VARIANTS, halves, jobs_of
from experiments.paper import ablation
from experiments.paper._lines import (
    AUC,
    F1_OUTLIER,
    FIELDS,
    NEAREST,
    OUTLIER_SHARE,
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
from experiments.paper._standings import DRAWS, Standing, rank_column, score_column, standings, table

OURS = "MOSAIC"
#: Contestants beside ours in the short tables.
RIVALS = 3
#: Outliers can be told from inliers if a detector's mean AUC is at least this.
SEPARABLE = 0.95
F1_OWN = Measure("f1_outlier_own", "F1 of the own decision")
F1_TRUE_SHARE = Measure("f1_outlier_true_share", "F1, share of outliers known")
FLAGGED = Measure("flagged_share", "share flagged")


@dataclass(frozen=True)
class Family:
    """Cases that are averaged over: the items that they come from, and the measures, the one that orders the table first."""

    title: str
    items: tuple[str, ...]
    measures: tuple[Measure, ...]
    words: str


CLEAN = Family(
    "Selection without outliers",
    ("classification", "clean"),
    (NEAREST,),
    "1-NN accuracy with k = 10, 30 and 100 representatives of at most 600 rows.",
)
SPOILED = Family(
    "Selection among outliers",
    ("spoiled",),
    (NEAREST, OUTLIER_SHARE),
    "30 representatives of 280 rows and of 0.3 or 1 times as many outliers, of five kinds for each set: uniform, columns, far, "
    "shuffled, and natural images among images or heavy-tailed ones among others.",
)
OUTLIERS = Family(
    "Outliers",
    ("adbench",),
    (AUC, F1_OUTLIER),
    "Sets that mark their own outliers; every method with its defaults. F1 is that at the best threshold.",
)


def section(lines: Sequence[Line]) -> str:
    """The section of the page, without its title."""
    lines = latest(lines)
    parts = [_introduction()]
    for family in (CLEAN, SPOILED, OUTLIERS):
        parts += [f"## {family.title}", *_family(lines, family)]
        if family is SPOILED:
            parts += [f"## {SPOILED.title}, where these can be told apart", *_separable(lines)]
    parts += ["## How many outliers there are", *_decisions(lines)]
    parts += ["## What each rule is worth", *ablation.parts(lines)]
    return "\n\n".join(parts)


def _introduction() -> str:
    named = "\n".join(
        f"- **{half} half**: {', '.join(names)}; added outliers: {', '.join(KINDS[half])}." for half, names in halves().items()
    )
    return f"""\
Our own comparison, on more sets than the paper has. A case is a set with a kind and ratio of outliers and a k; its score is the
mean over seeds. Ranks are among all contestants of a case, and ties share them. A contestant without an answer in a case (it
cannot, took too long, or was not run for all seeds) shares the last ranks there, and its mean score is that of the other cases;
footnotes say how many it lacks. In brackets: 95 % of the means over datasets drawn with replacement, {DRAWS} times. Bold is the
best of all contestants.

Rules and constants of MOSAIC() were chosen on half of the sets, with half of the kinds of outliers that are added to them, and
confirmed on the other half:

{named}

Some sets of different halves are related: orl and olivetti show the same people; digits and optdigits, cifar10 and CIFAR10_0,
cardio and Cardiotocography, and landsat, satellite and satimage-2 come from one collection each."""


def columns_of(lines: Sequence[Line], items: Sequence[str], measure: Measure) -> Mapping[Case, Column]:
    """Case → column, over the runs that all of the items have."""
    return cells(_common(lines, items), measure, FIELDS)


def _common(lines: Sequence[Line], items: Sequence[str]) -> list[Line]:
    """Lines of the items, as many runs of each as of the one with the fewest."""
    mine = [line for line in ranked(lines) if line["item"] in items]
    seeds = [{line["seed"] for line in mine if line["item"] == item} for item in items]
    runs = min((len(each) for each in seeds if each), default=0)
    return [line for line in mine if line["seed"] < runs]


def shown(found: Mapping[str, Standing]) -> list[str]:
    """Ours and the best of the others, for the short tables; the best first."""
    rivals = [method for method in found if method != OURS][:RIVALS]
    return [method for method in found if method == OURS or method in rivals]


def _family(lines: Sequence[Line], family: Family) -> list[str]:
    each = {measure: columns_of(lines, family.items, measure) for measure in family.measures}
    found = {measure: standings(columns, measure.higher) for measure, columns in each.items()}
    first = family.measures[0]
    if not found[first]:
        return [_nothing(*family.items)]
    columns = {}
    for measure, standing in found.items():
        columns[f"mean rank, {measure.title}"] = rank_column(standing)
        columns[measure.title] = score_column(standing, measure.higher)
    tier, cases = tiers(lines), [case for case, column in each[first].items() if best(column, first.higher)]
    runs = len({line["seed"] for line in _common(lines, family.items)})
    words = f"{family.words} {len(cases)} cases of {len({case[0] for case in cases})} sets, {runs} runs of each."
    asked = dict.fromkeys(job.method for item in family.items for job in jobs_of(item))
    absent = [label(method, tier.get(method, "peer")) for method in asked if method not in (*found[first], *VARIANTS)]
    if absent:
        words += f" Without any run: {', '.join(absent)}."
    return [words, table(columns, list(found[first]), tier), *_halves(each, tier)]


def half_of(case: Case) -> str | None:
    """The half of a case: that of its set, and of its outliers where some are added. None if these are of different halves."""
    dataset, kind = case[:2]
    for half, names in halves().items():
        if dataset in names and (kind is None or kind in KINDS[half]):
            return half
    return None


def _halves(each: Mapping[Measure, Mapping[Case, Column]], tier: Mapping[str, str]) -> list[str]:
    """The measures on either half, of the first the rank too, for ours and the best three others over all cases."""
    first, *_ = each
    headed, counts = {}, {}
    for half in KINDS:
        for measure, columns in each.items():
            mine = {case: column for case, column in columns.items() if half_of(case) == half}
            found = standings(mine, measure.higher)
            if measure is first:
                counts[half] = sum(bool(best(column, first.higher)) for column in mine.values())
                headed[f"mean rank, {half} half"] = rank_column(found)
            headed[f"{measure.title}, {half} half"] = score_column(found, measure.higher)
    words = f"On either half ({' and '.join(f'{counts[half]} {half}' for half in counts)} cases):"
    if any(half_of(case) is None for case in each[first]):
        words = f"{words[:-1]}; a set of one half with outliers of the other counts in neither, and only in the table above:"
    return [words, table(headed, shown(standings(each[first], first.higher)), tier)]


def separable_cases(lines: Sequence[Line]) -> dict[Case, bool]:
    """(dataset, kind, ratio, n) → whether the best detector's mean AUC is at least 0.95."""
    found = {}
    for case, column in cells(latest(lines, "separable"), AUC, FIELDS[:-1]).items():
        means = [column[method].mean for method in best(column, AUC.higher)]
        if means and means[0] is not None:
            found[case] = means[0] >= SEPARABLE
    return found


def _separable(lines: Sequence[Line]) -> list[str]:
    known = separable_cases(lines)
    if not known:
        return [_nothing("separable")]
    columns = columns_of(lines, SPOILED.items, OUTLIER_SHARE)
    found = standings({c: column for c, column in columns.items() if known.get(c[:-1])}, OUTLIER_SHARE.higher)
    words = (
        f"No rule can avoid outliers that look like inliers. In {sum(known.values())} of {len(known)} cases a detector "
        f"(MOSAIC, kNN distance, isolation forest, LOF or one-class SVM) reaches an AUC of {SEPARABLE}; over these:"
    )
    if not found:
        return [words, _nothing(*SPOILED.items)]
    headed = {"mean rank": rank_column(found), OUTLIER_SHARE.title: score_column(found, OUTLIER_SHARE.higher)}
    return [words, table(headed, shown(found), tiers(lines))]


def _decisions(lines: Sequence[Line]) -> list[str]:
    """Own decisions against the best threshold and the true share, and what is flagged where there is nothing to flag."""
    headed = {}
    for measure, higher in ((F1_OUTLIER, True), (F1_TRUE_SHARE, True), (F1_OWN, True), (FLAGGED, None)):
        found = standings(columns_of(lines, OUTLIERS.items, measure), measure.higher)
        title = "F1 at the best threshold" if measure is F1_OUTLIER else measure.title
        headed[title] = score_column({m: s for m, s in found.items() if m in DECIDING}, higher)
    own = headed[F1_OWN.title].standings
    clean = standings(columns_of(lines, ("unspoilt",), FLAGGED), higher=False)
    headed["share flagged without outliers"] = score_column(clean, higher=False)
    reached = {method: standing.score.mean if standing.score else 0.0 for method, standing in own.items()}
    methods = sorted(own, key=lambda method: -reached[method])
    methods += [method for method in clean if method not in own]
    if not methods:
        return [_nothing(*OUTLIERS.items)]
    words = (
        "Detectors that decide by themselves, by F1 of their decision on the sets that mark their outliers (MOSAIC with "
        'contamination="auto"). For comparison, F1 at the threshold that would have been best, and F1 if as many rows are '
        "flagged as there are outliers. Last, the share of rows flagged in the sets with classes, to which no outliers are "
        "added. Bold is the best of these detectors."
    )
    missing = [] if clean else [_nothing("unspoilt")]
    return [words, table(headed, methods, tiers(lines)), *missing]


def _nothing(*items: str) -> str:
    return f"*Missing: no run of {' or '.join(f'`{item}`' for item in items)} yet.*"
