"""What kind of column it is: the rule by which its cells become numbers, or why it is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.rows.frames import Values, is_feature_name
from mosaic.rows.kinds import Category, Column, Number, Text, is_long, quoted
from mosaic.rows.text_values import NEARLY_ALL, written_dates, written_numbers

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


def unread_note(column: Number, values: Values, place: Callable[[int], str], weighted: bool) -> str | None:
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


def signature_of(rule: Column, values: Values) -> tuple[Any, ...]:
    """Numbers of some rows, to six digits, that are the same for copies of a column, and next to never for others."""
    n = len(values)
    some = rule.encode(values.take(np.linspace(0, n - 1, min(n, 64)).astype(np.intp)))
    some = np.abs(some) if rule.width == 1 else some
    return (rule.width, (np.round(some, 6) + 0.0).tobytes())


def are_copies(a: FloatArray, b: FloatArray) -> bool:
    same = bool(np.allclose(a, b, atol=1e-9))
    return same or (a.shape[1] == 1 and bool(np.allclose(a, -b, atol=1e-9)))
