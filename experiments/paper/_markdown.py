"""Tables in Markdown, with footnotes for what is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.paper._lines import NOT_RUN, Cell, Column, Measure, best, label

ABSENT = "—"


class Footnotes:
    """Reasons, each with one number, in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        """The mark of the reason, to stand behind a number."""
        return f"<sup>{self._numbers.setdefault(reason, len(self._numbers) + 1)}</sup>"

    def text(self) -> str:
        """All of them, one a line; "" if there are none."""
        return "".join(f"\n<sup>{number}</sup> {escaped(reason)}.  " for reason, number in self._numbers.items())


def escaped(text: str) -> str:
    """Text that does not end a cell of a table, nor starts a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table; the first columns to the left, the others, numbers, to the right.

    Examples
    --------
    >>> print(table(["method", "a"], [["SMRS", "1"]]))
    | method | a |
    | :-- | --: |
    | SMRS | 1 |
    """
    rule = [*[":--"] * left, *["--:"] * (len(header) - left)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def number(cell: Cell | None, notes: Footnotes, bold: bool = False, digits: int = 3) -> str:
    """Mean ± spread, or "—", with a footnote if numbers are missing."""
    if cell is None:
        return ABSENT + notes.mark(NOT_RUN)
    if cell.mean is None:
        return ABSENT + notes.mark("; ".join(cell.reasons))
    text = f"{cell.mean:.{digits}f}"
    if cell.spread is not None:
        text += f" ± {cell.spread:.{digits}f}"
    if bold:
        text = f"**{text}**"
    if not cell.complete:
        text += notes.mark(f"{len(cell.values)} of {cell.wanted} seeds only: {'; '.join(cell.reasons)}")
    return text


def table_of_columns(
    columns: Mapping[str, tuple[Column, Measure]],
    methods: Sequence[str],
    tier: Mapping[str, str],
    extra: Mapping[str, Mapping[str, str]] | None = None,
    beside: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Methods × columns, the best of each column in bold, footnotes below.

    Parameters
    ----------
    columns : heading → cells, and their measure
    methods, tier : rows, and what they are
    extra : further columns, heading → method → text
    beside : (method, heading) → text behind the number
    """
    notes, rows = Footnotes(), []
    winners = {heading: best(column, measure.higher) for heading, (column, measure) in columns.items()}
    for method in methods:
        row = [label(method, tier.get(method, "peer"))]
        for heading, (column, _) in columns.items():
            text = number(column.get(method), notes, method in winners[heading])
            row.append(text + (beside or {}).get((method, heading), ""))
        rows.append([*row, *(texts.get(method, ABSENT) for texts in (extra or {}).values())])
    return table(["method", *columns, *(extra or {})], rows) + (f"\n{notes.text()}" if notes.text() else "")


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
