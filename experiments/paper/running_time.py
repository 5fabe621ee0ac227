"""Running time: seconds against the number of points, patches of photographs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

from experiments.items import SCALABLE
from experiments.paper._figures import COLOURS, _save, style
from experiments.paper._lines import (
    NOT_RUN,
    Cell,
    Column,
    Line,
    Measure,
    cells,
    in_table_order,
    label,
    latest,
    number_of,
    ranked,
    tiers,
)
from experiments.paper._markdown import ABSENT, Footnotes, escaped
from experiments.paper._markdown import table as markdown
from experiments.run import TOO_LONG

ITEM = "running_time"
SECONDS = Measure("seconds", "seconds", higher=False)
#: A ratio of seconds from which one method is much slower than another: the paper gives no number.
MUCH = 3.0
#: Sizes that the exponent of growth is fitted to, the largest ones.
FITTED = 3
HERO, ADMM, GENERIC, WORKING_SET = "MOSAIC (paper)", "paper's ADMM", "CVX reference", "working set"
#: Those that the paper calls slower, and the one that it calls similar.
RIVALS, SIMILAR = ("SMRS", "DS3", "K-medoids", "M-kmeans"), "SSM"
#: Algorithms for one and the same program, apart from the methods that select.
SOLVERS = {ADMM: "tab:orange", "FISTA": "black", WORKING_SET: "tab:cyan", GENERIC: "0.45"}

Outcome: TypeAlias = Literal["holds", "fails", "open"]


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
        >>> Time(2.0, 2.0).text, Time(60.0, math.inf).text, Time(0.0, 0.5).text
        ('2.0', '> 60', '< 0.50')
        """
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
    """Medians over runs, methods × sizes, and the exponent of growth. Nobody is marked as the best: random draws are."""
    words = (
        "Processor seconds of one thread for picking 20 of n patches (8×8, colour) of photographs, methods with their "
        "defaults; solvers go to a relative gap of 10⁻³. They depend on the machine, and below a hundredth of a second its "
        "clock is too coarse to compare."
    )
    found = scalable_table(lines)
    more = (
        "The ADMM and the working set, which are for all points, prove a gap of 10⁻³. On these patches, whose similarities have "
        "almost full rank, the scalable variant does not where r < n; nor does MOSAIC (paper) beyond n = 1000, where the rank of "
        "its factor of the kernel is limited, and it takes less time for more points. With the default bandwidth half of the "
        "similarities are below 10⁻¹³⁷. Products of such numbers are slow on the processor of these runs: on another one "
        "MOSAIC (paper) takes 1.2 s for n = 1000."
    )
    shown = _table(ranked(latest(lines, ITEM)))
    return [words, shown, *(["### Time of the scalable variant", more, found] if found else [])]


def scalable_table(lines: Sequence[Line]) -> str:
    """The scalable variant and what it should be faster than, and the multiples of its seconds; "" if it was not run."""
    rivals = (HERO, ADMM, WORKING_SET)
    mine = [line for line in latest(lines, ITEM) if line["method"] in (SCALABLE, *rivals)]
    found = times(mine)
    if SCALABLE not in found:
        return ""
    more = [[f"{rival} / scalable", *_ratios(found, rival, _columns(mine)), ABSENT] for rival in rivals]
    return _table(mine, more)


def _ratios(found: Mapping[str, Mapping[int, Time]], rival: str, sizes: Iterable[int]) -> list[str]:
    """Multiples of the seconds of the scalable variant, at each size."""
    each = (slower(_at(found, rival, n), _at(found, SCALABLE, n)) for n in sizes)
    return [ABSENT if pair is None else escaped(pair[1].text) for pair in each]


def _at(found: Mapping[str, Mapping[int, Time]], method: str, n: int) -> dict[int, Time]:
    return {size: time for size, time in found.get(method, {}).items() if size == n}


def _table(mine: Sequence[Line], more: Sequence[Sequence[str]] = ()) -> str:
    columns, tier = _columns(mine), tiers(mine)
    notes, rows = Footnotes(), []
    for method in in_table_order(tier, mine):
        texts = [_text(column.get(method), notes) for column in columns.values()]
        slope = growth({n: _middle(column.get(method)) for n, column in columns.items()})
        rows.append([label(method, tier[method]), *texts, ABSENT if slope is None else f"{slope:.1f}"])
    header = ["method, seconds", *(f"n = {n}" for n in columns), "exponent of n"]
    return markdown(header, [*rows, *more]) + (f"\n{notes.text()}" if notes.text() else "")


def growth(seconds: Mapping[int, float | None]) -> float | None:
    """The slope b of the least-squares line log s = a + b log n through the last three sizes with a number; None for fewer.

    Examples
    --------
    >>> round(growth({10: 7.0, 100: 1.0, 200: 4.0, 400: 16.0}), 6)
    2.0
    """
    known = sorted((n, s) for n, s in seconds.items() if s is not None and s > 0)[-FITTED:]
    if len(known) < FITTED:
        return None
    x, y = ([math.log(pair[side]) for pair in known] for side in (0, 1))
    x_mean, y_mean = math.fsum(x) / len(x), math.fsum(y) / len(y)
    slope = math.fsum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True))
    return slope / math.fsum((a - x_mean) ** 2 for a in x)


def _columns(lines: Sequence[Line]) -> dict[int, Column]:
    return {n: column for (n,), column in cells(lines, SECONDS, ["n"]).items()}


def _middle(cell: Cell | None) -> float | None:
    return median(cell.values) if cell is not None and cell.values else None


def _text(cell: Cell | None, notes: Footnotes) -> str:
    middle = _middle(cell)
    if cell is None:
        return ABSENT + notes.mark(NOT_RUN)
    reasons = "; ".join(_short(cell.reasons))
    if middle is None:
        return ABSENT + notes.mark(reasons)
    few = "" if cell.complete else notes.mark(f"{len(cell.values)} of {cell.wanted} seeds only: {reasons}")
    return rounded(middle) + few


def _short(reasons: Sequence[str]) -> list[str]:
    """Without the size, which stands above the column, so that a reason is one footnote for all sizes.

    Once a seed was stopped the others are not tried; that says nothing more.
    """
    texts = [re.sub(r"(takes at most \d+ points), not \d+", r"\1", reason) for reason in reasons]
    stopped = any(text.startswith(TOO_LONG) for text in texts)
    return list(dict.fromkeys(text for text in texts if not (stopped and text.startswith(f"not tried: {TOO_LONG}"))))


def figure(lines: Sequence[Line], path: Path) -> Path:
    """Medians over seeds against n, both on logarithmic axes; the generic solver grey and dashed, as in the paper."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mine = ranked(latest(lines, ITEM))
    columns, tier = _columns(mine), tiers(mine)
    order = in_table_order(tier, mine)
    coloured = [method for method in order if tier[method] in ("paper", "surrogate")]
    canvas = Figure(figsize=(7.2, 4.8), dpi=90, layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    ends, handles = {}, {}
    for method in order:
        known = [(n, s) for n, column in columns.items() if (s := _middle(column.get(method))) is not None and s > 0]
        if not known:
            continue
        number = coloured.index(method) if method in coloured else 0
        (line,) = axes.plot(*zip(*known, strict=True), **_style(method, tier[method], number))
        if tier[method] == "peer":
            ends[method] = known[-1]
        else:
            handles[label(method, tier[method])] = line
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("points", fontsize=8)
    axes.set_ylabel("seconds", fontsize=8)
    _name_sizes(axes, list(columns))
    _name_ends(axes, ends)
    axes.grid(alpha=0.25)
    if handles:
        canvas.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=7)
    return _save(canvas, path)


def _style(method: str, tier: str, number: int) -> dict[str, Any]:
    """As everywhere; solvers have their own colours and are thinner than the methods that are ours."""
    if method not in SOLVERS:
        # The colours of two baselines would be hard to tell from those of solvers.
        return style(method, tier, number % COLOURS.index("tab:cyan"))
    common = {"color": SOLVERS[method], "linewidth": 1.8, "marker": "s", "markersize": 3, "zorder": 3}
    return {**common, "linestyle": "--" if method == GENERIC else "-"}


def _name_sizes(axes: Any, sizes: Sequence[int]) -> None:
    """Sizes themselves as marks of the axis, in place of powers of ten."""
    from matplotlib.ticker import NullLocator

    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=7)


def _name_ends(axes: Any, ends: Mapping[str, tuple[float, float]], least: float = 0.034) -> None:
    """Names of the peers in the right margin, moved apart: at least this share of the axis between two."""
    low, high = (math.log10(value) for value in axes.get_ylim())
    order = sorted(ends, key=lambda method: ends[method][1])
    places = [(math.log10(ends[method][1]) - low) / (high - low) for method in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + least)
    top = 1.0
    for i in reversed(range(len(places))):  # those that the first pass has pushed over the upper edge come back
        places[i] = min(places[i], top)
        top = places[i] - least
    for method, place in zip(order, places, strict=True):
        axes.annotate(
            method,
            ends[method],
            (1.03, place),
            textcoords="axes fraction",
            fontsize=6.5,
            color="0.4",
            va="center",
            arrowprops={"arrowstyle": "-", "color": "0.8", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
            annotation_clip=False,
        )


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


def slower(rival: Mapping[int, Time], hero: Mapping[int, Time]) -> tuple[int, Time] | None:
    """(n, seconds of the rival / seconds of the hero) at the largest n where both were run and one has a number."""
    common = [n for n in rival if n in hero and math.isfinite(min(rival[n].high, hero[n].high))]
    return (max(common), rival[max(common)].over(hero[max(common)])) if common else None


def outcome(ratio: Time) -> Outcome:
    """Much slower where the ratio is at least ``MUCH``; open where a run was stopped before this could be told.

    Examples
    --------
    >>> outcome(Time(3.0, 3.0)), outcome(Time(2.0, 2.0)), outcome(Time(2.0, math.inf))
    ('holds', 'fails', 'open')
    """
    return "holds" if ratio.low >= MUCH else "fails" if ratio.high < MUCH else "open"
