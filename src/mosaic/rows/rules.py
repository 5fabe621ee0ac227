"""What kind of column it is: the rule by which its cells become numbers, or why it is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.rows.frames import Values, is_feature_name
from mosaic.rows.kinds import Category, Column, Embedding, Number, Text, is_long, quoted, read_cells
from mosaic.rows.text_values import NEARLY_ALL, written_dates, written_numbers

#: Column names that say that numbers are codes.
CODE_NAMES = re.compile(
    r"(^|[_\s.])(phone|tel|telephone|mobile|fax|zip|zipcode|postcode|postal_code|plz|iban|ssn|isbn|ean|sku)($|[_\s.])",
    re.I,
)


@dataclass(frozen=True)
class LeftOut:
    """A column that is not compared, why, and, if a user would expect it to be compared, what to do."""

    name: str
    why: str
    remedy: str | None = None


def rule_of(
    name: str, values: Values, *, forced: bool = False, weights: FloatArray | None = None
) -> Column | LeftOut:
    """What kind of column this is; one that is ``forced`` is left out only if it is constant or no values can be compared."""
    there = int((~values.missing).sum())
    weights = np.ones(len(values)) if weights is None else weights
    if values.kind == "other":
        return LeftOut(name, "holds lists or structures", "make columns of the numbers in it")
    if not there:
        return LeftOut(name, "has no values")
    if values.kind == "vector":
        assert values.numbers is not None
        if (values.numbers == values.numbers[0]).all():
            return LeftOut(name, "is the same in every row")
        return Embedding.of(name, values, weights)
    if not forced and not is_feature_name(name):
        repeats = len(values.as_levels()[0]) < there
        if repeats and values.codes is None:
            remedy = "rename it if it says something about a row"
        else:
            remedy = None
        return LeftOut(name, "has the name of an id", remedy)
    by_kind = _rule_of_numbers if values.codes is None else _rule_of_levels
    return by_kind(name, values, forced, weights)


def _rule_of_numbers(
    name: str, values: Values, forced: bool, weights: FloatArray
) -> Column | LeftOut:
    assert values.numbers is not None
    x, n = values.numbers, len(values)
    distinct = np.unique(x[np.isfinite(x)])
    if len(distinct) <= 1 and not values.missing.any():
        return LeftOut(name, "is the same in every row")
    if not len(distinct):
        return LeftOut(name, "has no values")
    if values.kind == "moment":
        return Number.of(name, x, np.zeros(n), weights, dates=True)
    if not forced and (distinct == np.round(distinct)).all():
        if CODE_NAMES.search(name):
            return LeftOut(
                name,
                "holds codes, as its name says",
                "rename it if it holds amounts, or convert it to text",
            )
        if len(distinct) == n > 2 and np.ptp(distinct) == n - 1 and bool((np.diff(x) == 1).all()):
            return LeftOut(name, "counts the rows")
    if len(distinct) <= 2:
        return Category.of(name, *values.as_levels(), weights)
    return Number.of(name, x, np.isinf(x) * 1.0, weights)


def _rule_of_levels(
    name: str, values: Values, forced: bool, weights: FloatArray
) -> Column | LeftOut:
    levels, codes = values.levels, values.codes
    assert codes is not None
    there = int((codes >= 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    if np.count_nonzero(counts) == 1 and there == len(codes):
        return LeftOut(name, "is the same in every row")
    if values.kind == "text":
        for dates, written_as in ((False, written_numbers), (True, written_dates)):
            written = None if CODE_NAMES.search(name) and not dates else written_as(levels, counts)
            if written is None:
                continue
            x, strange = read_cells(values, written)
            # A number with two values is a category.
            if len(np.unique(x[np.isfinite(x)])) > (1 if dates else 2):
                return Number.of(name, x, strange, weights, written, dates=dates)
        if is_long(levels) and len(levels) > 2:
            return Text.of(name, levels, codes, weights, long=True)
        if not forced:
            # As names, numbers or codes of something are.
            hardly_repeated = len(levels) > 0.5 * there
            if hardly_repeated and _mostly(r"\+?[\d\s()./-]{7,20}", levels):
                return LeftOut(name, "holds phone numbers or codes")
            if _mostly(r"\S+@\S+\.\S+|https?://\S+|www\.\S+", levels):
                return LeftOut(name, "holds e-mail or web addresses")
            if len(levels) == there > 1:
                return LeftOut(name, "is different in every row, as names are")
            if hardly_repeated and _mostly(r"(?=.*\d)[\w./:-]+", levels):
                return LeftOut(
                    name,
                    "holds codes, hardly any of which repeats",
                    "keep the part of the codes that repeats",
                )
    rule = Category.of(name, levels, codes, weights)
    rare, present = rule.shares[-2] * weights.sum(), weights[codes >= 0].sum()
    return Text.of(name, levels, codes, weights) if rare > present / 2 and there > 2 else rule


def _mostly(pattern: str, texts: Sequence[str]) -> bool:
    return len(list(filter(re.compile(pattern).fullmatch, texts))) >= NEARLY_ALL * len(texts)


def notes_of(column: Column, values: Values, place: Callable[[int], str]) -> list[str]:
    """What is said of cells that are no numbers or dates, infinite, written unlike the others, or likely misspelt."""
    strange: FloatArray = np.zeros(len(values))
    if isinstance(column, Number) and column.unread + column.unlike:
        _, strange = column.read(values)
    elif isinstance(column, Category) and column.misspelt and values.codes is not None:
        others = [
            level not in column.levels and column.likely(level) is not None
            for level in values.levels
        ]
        strange = -1.0 * (values.of_levels(np.array(others, float)) == 1)
    what = "number" if isinstance(column, Number) and column.has_time is None else "date"
    unread = f"not a {what}", f"not {what}s"
    if values.codes is None:
        unread = "infinite", "infinite"
    unlike = "likely misspelt" if isinstance(column, Category) else "written unlike the others"
    notes = []
    for sign, one, many in (
        (1, f"is {unread[0]} and counts as missing", f"are {unread[1]} and count as missing"),
        (-1, f"is {unlike}", f"are {unlike}"),
    ):
        rows = np.flatnonzero(strange == sign).tolist()
        if not rows:
            continue
        text = values.text(rows[0])
        first = place(rows[0]) if text is None else f"{quoted(text)} in {place(rows[0])}"
        said = f"1 cell of {column.name!r} {one}"
        if len(rows) > 1:
            said = f"{len(rows):,} cells of {column.name!r} {many}, the first"
        notes.append(f"{said}: {first}.")
    return notes


def signature_of(rule: Column, values: Values) -> tuple[Any, ...]:
    """Numbers of some rows, to six digits, that are the same for copies of a column, and next to never for others."""
    n = len(values)
    some = rule.encode(values.take(np.linspace(0, n - 1, min(n, 64)).astype(np.intp)))
    return (rule.width, np.round(np.abs(some), 6).tobytes())


def are_copies(a: FloatArray, b: FloatArray) -> bool:
    """Whether columns are equal, or one is the other with its sign changed."""
    changed = np.column_stack([-b[:, 0], b[:, 1:]])
    return bool(np.allclose(a, b, atol=1e-9) or np.allclose(a, changed, atol=1e-9))
