"""Columns of a table as numbers, so that distances between rows are sums of differences between columns.

‖z(a) − z(b)‖² = Σ_c d_c(a, b)²,    one term for each column c.

Every kind of column has one rule, so that no column drowns the others; ``mosaic.rows.kinds`` has them.

- **number**: (x − median) / spread, the spread of the middle nine tenths; of positive and skewed ones log(1 + x/q).
- **category**: different levels a and b are at d² = (z_a² + z_b²) / 2, where a normal value is beyond ±z_l as often as l occurs.
- **date or time**: days, as numbers, and points on a circle for cycles in which rows gather.
- **text** that does not repeat: principal axes of its counts of three letters, or of words if it is long, scaled so that two
  texts differ as two levels do.
- **missing**: in the middle of its column, and apart from every value that is there.

Identifiers, codes, constants, copies and lists are left out. Ours; ``docs/decisions/0025`` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.rows.frames import Values, is_feature_name
from mosaic.rows.kinds import NEVER_SEEN, Category, Column, Number, Text, is_long, quoted
from mosaic.rows.text_values import NEARLY_ALL, written_dates, written_numbers
from mosaic.text import listed

#: Column names that say that numbers are codes.
CODE_NAMES = re.compile(
    r"(^|[_\s.])(phone|tel|telephone|mobile|fax|zip|zipcode|postcode|postal_code|plz|iban|ssn|isbn|ean|sku)($|[_\s.])", re.I
)


@dataclass(frozen=True)
class LeftOut:
    """A column that is not compared, why, and, if a user would expect it to be compared, what to do."""

    name: str
    why: str
    remedy: str | None = None


@dataclass(frozen=True)
class TableEncoder:
    """How the columns of a table become numbers. One rule for data frames and files, and for new rows.

    Attributes
    ----------
    columns : the rules of the columns that are compared
    left_out : the columns that are not, and why
    notes : what was assumed, such as that a cell that is no number is missing
    texts, text_rows : for explanations, cells of fit that cannot be read from their code, and the numbers of their rows,
        ascending; None for all rows
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Mapping[str, Values] = field(default_factory=dict, repr=False, compare=False)
    text_rows: IntArray | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        cells: Mapping[str, Values],
        *,
        keep: Sequence[str] = (),
        place: Callable[[int], str] = "row {}".format,
        weights: FloatArray | None = None,
    ) -> TableEncoder:
        """The rule for every column. ``keep`` are left out only if they are constant, ``place`` is what a row is called in notes.
        ``weights`` count in medians, spreads and shares; whether values repeat is a matter of rows, however often they count.
        """
        rows = None if weights is None or (weights == 1).all() else np.flatnonzero(weights > 0)
        weights = None if rows is None or weights is None else weights[rows]
        if weights is not None and not (weights == np.round(weights)).all():  # no repetitions: then they are 1 on average
            weights = weights * (len(weights) / weights.sum())
        columns: list[Column] = []
        left_out: list[LeftOut] = []
        alike: dict[tuple[Any, ...], list[Column]] = {}
        for name in cells:
            values = cells[name] if rows is None else cells[name].take(rows)
            rule = rule_of(name, values, forced=name in keep, weights=weights)
            if isinstance(rule, LeftOut):
                left_out.append(rule)
                continue
            others = alike.setdefault(_signature(rule, values), [])
            copied = (other.name for other in others if _is_copy(rule.encode(cells[name]), other.encode(cells[other.name])))
            twin = None if name in keep else next(copied, None)
            if twin is not None:
                left_out.append(LeftOut(name, f"says the same as {twin!r}", f"leave out {twin!r} instead"))
                continue
            others.append(rule)
            columns.append(rule)
        unread = (_unread(c, cells[c.name], place, weights is not None) for c in columns if isinstance(c, Number))
        return cls(tuple(columns), tuple(left_out), tuple(filter(None, unread)))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def blocks(self) -> dict[str, slice]:
        ends = np.cumsum([column.width for column in self.columns])
        return {c.name: slice(int(end) - c.width, int(end)) for c, end in zip(self.columns, ends, strict=True)}

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def number_names(self) -> list[str]:
        return [column.name for column in self.columns for _ in range(column.width)]

    def encode(self, cells: Mapping[str, Values]) -> FloatArray:
        if not self.columns:
            shown = listed([f"{column.name!r} {column.why}" for column in self.left_out])
            raise InvalidInputError(f"no column says anything about a row: {shown}", "Pass other columns.")
        # One column after the other into its place: all of them and the whole would take twice the memory.
        rows = np.empty((len(cells[self.columns[0].name]), self.width))
        for column, where in zip(self.columns, self.blocks.values(), strict=True):
            rows[:, where] = column.encode(cells[column.name])
        return rows

    @property
    def unreadable(self) -> list[str]:
        """Columns with cells that cannot be read from their code: texts, rare values, and what is no number or date."""
        return [column.name for column in self.columns if column.has_texts]

    def with_texts(self, cells: Mapping[str, Values], rows: IntArray | None = None) -> TableEncoder:
        """The same, with the cells of fit that cannot be read from their code, of all rows or of some, in ascending order."""
        texts = {name: cells[name] for name in self.unreadable if cells[name].codes is not None}
        return replace(self, texts=texts, text_rows=rows)

    def with_gaps(self, names: Collection[str]) -> TableEncoder:
        """The same, for columns in which values are missing in rows that it was not found with."""
        columns = (
            replace(column, missing=column.missing or NEVER_SEEN)
            if column.name in names and not isinstance(column, Category)
            else column
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def reading(self, name: str, z: FloatArray, row: int | None = None) -> tuple[str, str, str, bool]:
        """Of a row with the numbers z in this column: its cell as it is read, "61", "'premium'", "missing"; what is usual, "19 to
        88"; the side of the middle that it is on, "high", "early"; and whether it is unusual. Without a range, two are empty.
        """
        known, text = self.texts.get(name), None
        if known is not None and row is not None:
            place = row if self.text_rows is None else int(np.searchsorted(self.text_rows, row))
            if self.text_rows is None or row in self.text_rows[place : place + 1]:
                text = known.text(place)
        column = next(column for column in self.columns if column.name == name)
        side = column.contrast(z) if isinstance(column, Number) else ""
        return column.value(z, text), column.usually, side, column.is_unusual(z)

    def describe(self) -> tuple[str, ...]:
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            kinds.setdefault(column.how, []).append(column.name)
        used = "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items())
        return (f"Compared as {used}.", *not_compared(self.left_out), *self.notes)


def not_compared(columns: Sequence[LeftOut]) -> list[str]:
    return [f"Not compared: {listed([f'{column.name} ({column.why})' for column in columns])}."] if columns else []


def encoder_of(
    cells: Mapping[str, Values],
    keep: Sequence[str] = (),
    place: Callable[[int], str] = "row {}".format,
    weights: FloatArray | None = None,
) -> TableEncoder | None:
    """How columns become numbers; None where those that say something about a row are numbers without missing values, true or
    false among them, so that they are taken as they are.
    """
    for name, values in cells.items():
        is_plain = values.kind in ("number", "truth") and not values.missing.any()
        if not is_plain and not isinstance(rule_of(name, values, forced=name in keep), LeftOut):
            return TableEncoder.of(cells, keep=keep, place=place, weights=weights)
    return None


def rule_of(name: str, values: Values, *, forced: bool = False, weights: FloatArray | None = None) -> Column | LeftOut:
    """What kind of column this is; one that is ``forced`` is left out only if it is constant or no values can be compared."""
    there = int((~values.missing).sum())
    if values.kind == "other":
        return LeftOut(name, "holds lists or structures", "make columns of the numbers in it")
    if not there:
        return LeftOut(name, "has no values")
    if not forced and not is_feature_name(name):
        repeats = len(values.as_levels()[0]) < there
        remedy = "rename it if it says something about a row" if repeats and values.codes is None else None
        return LeftOut(name, "has the name of an id", remedy)
    by_kind = _rule_of_numbers if values.codes is None else _rule_of_levels
    return by_kind(name, values, forced, np.ones(len(values)) if weights is None else weights)


def _rule_of_numbers(name: str, values: Values, forced: bool, weights: FloatArray) -> Column | LeftOut:
    assert values.numbers is not None
    x, n = values.numbers, len(values)
    distinct = np.unique(x[np.isfinite(x)])
    if len(distinct) <= 1 and not values.missing.any():
        return LeftOut(name, "is the same in every row")
    if not len(distinct):
        return LeftOut(name, "has no values")
    if values.kind == "moment":
        return Number.of(name, x, weights, dates=True)
    if not forced and (distinct == np.round(distinct)).all():
        if CODE_NAMES.search(name):
            return LeftOut(name, "holds codes, as its name says", "rename it if it holds amounts, or convert it to text")
        if len(distinct) == n > 2 and np.ptp(distinct) == n - 1 and bool((np.diff(x) == 1).all()):
            return LeftOut(name, "counts the rows")
    if len(distinct) <= 2:
        return Category.of(name, *values.as_levels(), weights)
    return Number.of(name, x, weights)


def _rule_of_levels(name: str, values: Values, forced: bool, weights: FloatArray) -> Column | LeftOut:
    levels, codes = values.levels, values.codes
    assert codes is not None
    there = int((codes >= 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    if np.count_nonzero(counts) == 1 and there == len(codes):
        return LeftOut(name, "is the same in every row")
    if values.kind == "text":
        for dates, written_as in ((False, written_numbers), (True, written_dates)):
            written = None if CODE_NAMES.search(name) and not dates else written_as(levels, counts)
            x = None if written is None else values.of_levels(written.read(levels))
            # A number with two values is a category.
            if x is not None and len(np.unique(x[np.isfinite(x)])) > (1 if dates else 2):
                unread = int((np.isnan(x) & ~values.missing).sum())
                return Number.of(name, x, weights, written, dates=dates, unread=unread)
        if is_long(levels) and len(levels) > 2:
            return Text.of(name, levels, codes, weights, long=True)
        if not forced:
            hardly_repeated = len(levels) > 0.5 * there  # as names, numbers or codes of something are
            if hardly_repeated and _mostly(r"\+?[\d\s()./-]{7,20}", levels):
                return LeftOut(name, "holds phone numbers or codes")
            if _mostly(r"\S+@\S+\.\S+|https?://\S+|www\.\S+", levels):
                return LeftOut(name, "holds e-mail or web addresses")
            if len(levels) == there > 1:
                return LeftOut(name, "is different in every row, as names are")
            if hardly_repeated and _mostly(r"(?=.*\d)[\w./:-]+", levels):
                return LeftOut(name, "holds codes, hardly any of which repeats", "keep the part of the codes that repeats")
    rule = Category.of(name, levels, codes, weights)
    rare, present = rule.shares[-2] * weights.sum(), weights[codes >= 0].sum()
    return Text.of(name, levels, codes, weights) if rare > present / 2 and there > 2 else rule


def _mostly(pattern: str, texts: Sequence[str]) -> bool:
    return len(list(filter(re.compile(pattern).fullmatch, texts))) >= NEARLY_ALL * len(texts)


def _unread(column: Number, values: Values, place: Callable[[int], str], weighted: bool) -> str | None:
    """What is said of text in a column of numbers or dates, and of infinite numbers."""
    if values.codes is None or column.written is None:
        infinite = 0 if values.numbers is None else int(np.isinf(values.numbers).sum())
        return f"{infinite:,} infinite numbers of {column.name!r} count as missing." if infinite else None
    if not weighted and round(column.missing * len(values)) == int(values.missing.sum()):  # every text was read
        return None
    rows = np.flatnonzero(np.isnan(values.of_levels(column.written.read(values.levels))) & ~values.missing)
    if not len(rows):
        return None
    what, row = "number" if column.has_time is None else "date", int(rows[0])
    said = f"1 cell of {column.name!r} is not a {what} and counts as missing"
    if len(rows) > 1:
        said = f"{len(rows):,} cells of {column.name!r} are not {what}s and count as missing, the first"
    return f"{said}: {quoted(str(values.text(row)))} in {place(row)}."


def _signature(rule: Column, values: Values) -> tuple[Any, ...]:
    """Numbers of some rows, to six digits, that are the same for copies of a column, and next to never for others."""
    n = len(values)
    some = rule.encode(values.take(np.linspace(0, n - 1, min(n, 64)).astype(np.intp)))
    some = np.abs(some) if rule.width == 1 else some
    return (rule.width, (np.round(some, 6) + 0.0).tobytes())


def _is_copy(a: FloatArray, b: FloatArray) -> bool:
    same = bool(np.allclose(a, b, atol=1e-9))
    return same or (a.shape[1] == 1 and bool(np.allclose(a, -b, atol=1e-9)))
