"""What the scalable variant loses: accuracy with its representatives less that with those of the method that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from experiments.items import SCALABLE
from experiments.paper._lines import EQUAL, FIELDS, MEASURES, Cell, Line, Measure, cells, latest, number_of
from experiments.paper._markdown import Footnotes, number
from experiments.paper._markdown import table as markdown
from experiments.paper.classification import ITEM, sets_of

FULL, DIFFERENCE = "MOSAIC (paper)", "difference"
#: A mean loss of accuracy up to which little is lost: the paper gives no number.
LITTLE = 0.02


@dataclass(frozen=True)
class Loss:
    """Means over sets of the accuracies, and of what is lost from one to the other."""

    full: float
    scalable: float

    @property
    def value(self) -> float:
        """Positive where the scalable variant is worse."""
        return self.full - self.scalable

    @property
    def little(self) -> bool:
        """Whether it is at most ``LITTLE``.

        Examples
        --------
        >>> Loss(0.5, 0.48).little, Loss(0.5, 0.479).little, Loss(0.5, 0.9).little
        (True, False, True)
        """
        return self.value <= LITTLE + EQUAL


def paired(lines: Sequence[Line], measure: Measure) -> list[Line]:
    """Lines of both methods and of their difference, of the cases and seeds in which both have a number."""
    mine = [line for line in latest(lines, ITEM) if number_of(line, measure) is not None]
    full, scalable = ({_place(line): line for line in mine if line["method"] == m} for m in (FULL, SCALABLE))
    found: list[Line] = []
    for place in full.keys() & scalable.keys():
        both = full[place], scalable[place]
        before, after = (line["verdict"][measure.name] for line in both)
        found += [*both, {**both[1], "method": DIFFERENCE, "verdict": {measure.name: after - before}}]
    return found


def _place(line: Line) -> tuple[object, ...]:
    return tuple(line[name] for name in (*FIELDS, "seed"))


def columns_of(lines: Sequence[Line], measure: Measure) -> dict[str, Mapping[str, Cell]]:
    """Set → cells of both and of the difference: a number a seed, which is a mean over k."""
    by_set = cells(paired(lines, measure), measure, ["dataset"])
    return {name: by_set[name,] for name in sets_of(lines) if (name,) in by_set}


def loss(lines: Sequence[Line], measure: Measure) -> Loss | None:
    """Every set counts once; None without a pair."""
    columns = columns_of(lines, measure).values()
    means = [[column[method].mean for column in columns] for method in (FULL, SCALABLE)]
    full, scalable = ([mean for mean in each if mean is not None] for each in means)
    return Loss(fmean(full), fmean(scalable)) if full and scalable else None


def worst(lines: Sequence[Line], measure: Measure) -> tuple[str, float]:
    """The set on which most is lost, and how much; there must be a pair."""
    columns = columns_of(lines, measure)
    losses = {name: -(column[DIFFERENCE].mean or 0.0) for name, column in columns.items()}
    name = max(losses, key=losses.__getitem__)
    return name, losses[name]


def table(lines: Sequence[Line]) -> str:
    """Sets × (classifier: both, and the difference), means over k and seeds; "" without a pair."""
    each = {measure: columns_of(lines, measure) for measure in MEASURES[ITEM]}
    names = [name for name in sets_of(lines) if any(name in columns for columns in each.values())]
    if not names:
        return ""
    notes, rows = Footnotes(), []
    for name in names:
        row = [name]
        for columns in each.values():
            column = columns.get(name, {})
            row += [number(column.get(FULL), notes), number(column.get(SCALABLE), notes)]
            row.append(_signed(number(column.get(DIFFERENCE), notes)))
        rows.append(row)
    last = ["all sets"]
    for measure in each:
        found = loss(lines, measure)
        last += ["—"] * 3 if found is None else [f"{found.full:.3f}", f"{found.scalable:.3f}", f"{-found.value:+.3f}"]
    headings = [f"{m.title}, {what}" for m in each for what in (FULL, "scalable", DIFFERENCE)]
    text = markdown(["set", *headings], [*rows, last])
    return text + (f"\n{notes.text()}" if notes.text() else "")


def _signed(text: str) -> str:
    return text if text[0] in "-—" else f"+{text}"
