"""Running time: seconds against the number of points, as published and with this library's solver."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median, mode
from typing import Literal, TypeAlias

from experiments.items import SCALABLE
from experiments.paper._figures import Panel, draw
from experiments.paper._lines import NOT_RUN, Cell, Column, Line, Measure, cells, in_table_order, label, latest, number_of, tiers
from experiments.paper._markdown import ABSENT, Footnotes, number_range
from experiments.paper._markdown import table as markdown
from experiments.run import TOO_LONG

ITEM = "running_time"
SECONDS, PICKS = Measure("seconds", "seconds", higher=False), Measure("n_picks", "picks")
#: A ratio of seconds from which one method is much slower than another: the paper gives no number. From ``ABOUT`` on a ratio is
#: told by its power of ten.
MUCH, ABOUT = 3.0, 1000.0
SETS = {"msra_b/patches": "patches", "mnist": "pictures"}
HERO, ADMM, ADMM_SCALABLE, GENERIC = "MOSAIC (paper)", "paper's ADMM", "paper's ADMM, scalable", "CVX reference"
#: Those that the paper calls slower, with the algorithms of their papers and with the fastest that we have; and the one it calls
#: similar.
PUBLISHED_RIVALS = ("SMRS (ADMM)", "DS3 (ADMM)", "K-medoids (PAM)", "M-kmeans")
RIVALS = ("SMRS", "DS3", "K-medoids (one start)", "M-kmeans")
SIMILAR = "SSM"
TABLES = {
    "As published": (ADMM, ADMM_SCALABLE, *PUBLISHED_RIVALS, SIMILAR, GENERIC),
    "With this library's solver": ("MOSAIC", HERO, SCALABLE, *RIVALS, SIMILAR),
}
#: The algorithm that is meant, and whom it is compared with.
ON_ALL = {"as published, on all points": (ADMM, PUBLISHED_RIVALS), "our solver, on all points": (HERO, RIVALS)}
ON_FEW = {"as published, scalable": (ADMM_SCALABLE, PUBLISHED_RIVALS), "our solver, scalable": (SCALABLE, RIVALS)}
EACH = {**ON_FEW, **ON_ALL}
WORDS = """\
Median processor seconds of one thread for picking 20 of n points; methods have their defaults. Patches are 8×8
pixels in colour of MSRA-B photographs, pictures are those of MNIST. As published: every ADMM ends when the two sides of its
constraint, and its last step, differ by at most 10⁻³ of its norm; K-medoids is PAM; Algorithm 3 has 100 random candidates and
adds 10 in each of two further rounds. With this library's solver: the same programs by working set and interior point, DS3 by a
linear program, K-medoids by FasterPAM. Above 1000 points MOSAIC (paper) is not the program of the whole kernel but of a factor of
rank 500. The scalable variant has as many candidates as published.
The processors are Intel Xeon; six runs went on at a time, each on one thread. CVX reference ran on threads of its own at first,
which raised the load, a mean of a minute, to 29 at n = 100 to 500; its runs were made again on one thread.
Below a hundredth of a second the clock is too coarse to compare."""
#: Seconds.
COARSE = 0.01

Outcome: TypeAlias = Literal["fails", "open", "level", "holds", "absent"]


@dataclass(frozen=True)
class Time:
    """Seconds that are known to lie in [low, high]; equal for a number, [limit, ∞] where a run was stopped."""

    low: float
    high: float

    def over(self, other: Time) -> Time:
        """Quotient of two times, as an interval."""
        return Time(self.low / other.high, self.high / other.low)

    @property
    def text(self) -> str:
        """A number, or the bound that there is.

        Examples
        --------
        >>> Time(2.0, 2.0).text, Time(60.0, math.inf).text, Time(0.0, 0.5).text, Time(5489.0, math.inf).text
        ('2.0', '> 60', '< 0.50', 'more than 1000')
        """
        if self.low >= ABOUT:
            return f"more than {10 ** math.floor(math.log10(self.low))}"
        if self.low == self.high:
            return rounded(self.low)
        return f"> {rounded(self.low)}" if math.isinf(self.high) else f"< {rounded(self.high)}"


def rounded(value: float) -> str:
    """Two significant digits, or whole numbers.

    Examples
    --------
    >>> rounded(0.01234), rounded(1.25), rounded(123.4)
    ('0.012', '1.2', '123')
    """
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def parts(lines: Sequence[Line]) -> list[str]:
    """Medians over runs, methods × sizes, and how many rows were picked. Nobody is marked as the best."""
    mine = latest(lines, ITEM)
    found = [f"{WORDS} {machine(mine)}"]
    for (heading, methods), (dataset, name) in product(TABLES.items(), SETS.items()):
        here = [line for line in mine if line["dataset"] == dataset and line["method"] in methods]
        found += [f"### {heading}: {name}", _table(here)] if here else []
    return found


def machine(lines: Sequence[Line]) -> str:
    """The machine of most runs, how busy it was, since processor seconds are longer on a busy one, and whose are of another.

    Examples
    --------
    >>> lines = [{"method": "SSM", "seed": s, "cores": 16, "load": load} for s, load in enumerate((1.2, 5.9))]
    >>> machine([*lines, {"method": "TED", "seed": 0, "cores": 2, "load": 9.0}])
    'Running times are those of a machine with 16 cores and a load of 1 to 6; runs of each: 2. TED ran on one with 2 cores.'
    """
    run = [line for line in lines if "cores" in line]
    cores = mode(line["cores"] for line in run) if run else ABSENT
    busy = number_range([line["load"] for line in run if line["cores"] == cores], 0)
    runs = len({line["seed"] for line in lines})
    others = {line["method"]: line["cores"] for line in run if line["cores"] != cores}
    elsewhere = "".join(f" {method} ran on one with {number} cores." for method, number in others.items())
    return f"Running times are those of a machine with {cores} cores and a load of {busy}; runs of each: {runs}.{elsewhere}"


def _table(mine: Sequence[Line]) -> str:
    columns, tier = _columns(mine), tiers(mine)
    notes, rows = Footnotes(), []
    for method in in_table_order(mine):
        texts = [_text(column.get(method), notes) for column in columns.values()]
        taken = number_range([number_of(line, PICKS) for line in mine if line["method"] == method], 0)
        rows.append([label(method, tier[method]), *texts, taken])
    header = ["method, seconds", *(f"n = {n}" for n in columns), "picks"]
    return markdown(header, rows) + (f"\n{notes.text()}" if notes.text() else "")


def _columns(lines: Sequence[Line]) -> dict[int, Column]:
    return {n: column for (n,), column in cells(lines, SECONDS, ["n"]).items()}


def _middle(cell: Cell | None) -> float | None:
    return median(cell.values) or None if cell is not None and cell.values else None


def _text(cell: Cell | None, notes: Footnotes) -> str:
    if cell is None:
        return ABSENT + notes.mark(NOT_RUN)
    reasons = "; ".join(cell.reasons)
    if not cell.values:
        return ABSENT + notes.mark(reasons)
    seconds = median(cell.values)
    few = "" if cell.complete else notes.mark(f"{len(cell.values)} of {cell.wanted} seeds only: {reasons}")
    return (rounded(seconds) if seconds >= COARSE else f"< {COARSE}") + few


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Medians over seeds against n, both on logarithmic axes."""
    mine, panels = latest(lines, ITEM), []
    for (heading, methods), (dataset, name) in product(TABLES.items(), SETS.items()):
        here = _columns([line for line in mine if line["dataset"] == dataset and line["method"] in methods])
        panels.append(Panel(f"{heading}: {name}", here, "seconds", "points", _middle, is_logarithmic=True))
    return draw(panels, tiers(mine), path)


def times(lines: Sequence[Line]) -> dict[str, dict[int, Time]]:
    """Medians over seeds for each method and size, of those that have a number or were stopped; in order of size.

    A seed that was stopped after L seconds counts as [L, ∞]. Sizes that were refused or not tried are left out.
    """
    found: dict[str, dict[int, list[Time]]] = {}
    for line in sorted(latest(lines, ITEM), key=lambda line: line["n"]):
        value = number_of(line, SECONDS)
        stopped = re.fullmatch(rf"{TOO_LONG} ([\d.]+) s", str(line.get("cannot", "")))
        if value is not None:
            one = Time(value, value)
        elif stopped:
            one = Time(float(stopped[1]), math.inf)
        else:
            continue
        found.setdefault(line["method"], {}).setdefault(line["n"], []).append(one)
    return {
        method: {n: Time(median(t.low for t in some), median(t.high for t in some)) for n, some in sizes.items()}
        for method, sizes in found.items()
    }


def compared(rival: Mapping[int, Time], hero: Mapping[int, Time]) -> tuple[int, Time] | None:
    """(n, seconds of the rival / seconds of the hero) at the largest n where both were run and one has a number."""
    common = [n for n in rival if n in hero and math.isfinite(min(rival[n].high, hero[n].high)) and hero[n].low > 0]
    return (max(common), rival[max(common)].over(hero[max(common)])) if common else None


def much_slower(ratio: Time) -> Outcome:
    """Much slower where the ratio is at least ``MUCH``; open where a run was stopped before this could be told.

    Examples
    --------
    >>> much_slower(Time(3.0, 3.0)), much_slower(Time(2.0, 2.0)), much_slower(Time(2.0, math.inf))
    ('holds', 'fails', 'open')
    """
    return "holds" if ratio.low >= MUCH else "fails" if ratio.high < MUCH else "open"


def similar(ratio: Time) -> Outcome:
    """Neither is much slower than the other."""
    return "holds" if ratio.low > 1 / MUCH and ratio.high < MUCH else "fails"
