"""Words in messages, sizes, JSON, HTML and optional packages. The standard library only: the command line begins here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from importlib import import_module
from typing import Any

from mosaic.exceptions import MissingDependencyError

#: What is said where a row is asked for by name and rows have none.
NO_NAMES = "Rows have no names: these come from the index of a data frame, or a column of ids whose values are all different."

#: Largest number of characters of a name that is shown.
LONGEST_NAME = 80


def shortened(text: object, longest: int = LONGEST_NAME) -> str:
    """Valid text on one line of limited length; the middle is left out, because names of files often differ at their ends."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[: longest - 1 - half]}…{line[-half:]}"


def library(name: str, where: object) -> Any:
    """A module of an optional package; ``where`` is the file or task that needs it, for the message."""
    try:
        return import_module(name)
    except ImportError as error:
        # The name that pip knows.
        package = name.partition(".")[0].replace("PIL", "pillow").replace("_", "-")
        fault = f"{where} needs {package}, which is not installed"
        raise MissingDependencyError(fault, f"Use: pip install {package}") from error


class Library:
    """A module of an optional package, imported when one of its names is first used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # somebody looks at the object, not at the package
            raise AttributeError(attribute)
        found = getattr(library(self._name, "The data"), attribute)
        setattr(self, attribute, found)  # tables of many columns ask for it again and again
        return found


def figure(x: float) -> str:
    """A number as a person would write it: 1,234,568 or 0.01235."""
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e15 else f"{x:.4g}"


def at_most(share: float) -> str:
    """An upper bound in percent, rounded up: two significant digits, but all before the point and none beyond thousandths."""
    return _rounded(share, ROUND_CEILING)


def at_least(share: float) -> str:
    """A lower bound in percent, rounded down to the same digits; 0 % below a thousandth."""
    return _rounded(share, ROUND_FLOOR)


def _rounded(share: float, direction: str) -> str:
    if not abs(share) < 1e12:  # infinite, not a number, or as good as that
        return "an unknown share"
    value = 100 * Decimal(repr(float(share)))  # the digits that a float is known by: 1 % for 0.01
    place = min(max(value.adjusted() - 1, -3), 0)
    # + 0 takes the sign of −0 away.
    rounded = value.quantize(Decimal(1).scaleb(place), direction) + 0
    digits = f"{rounded:,f}"
    return f"{digits.rstrip('0').rstrip('.') if place else digits} %"


def listed(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def group_label(*cells: object) -> str:
    """What a group is called, from its cells in one or several columns: "Rome, 1", the same for 1.0; "missing" where none is."""
    whole = (int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells)
    # How None, NaN and the missing values of pandas are written; texts that are written so are labels.
    gone = ("", "None", "nan", "NaN", "NaT", "<NA>")
    return ", ".join(
        "missing" if (text := str(cell)) in gone and not (isinstance(cell, str) and cell) else text
        for cell in whole
    )


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[object]], most: int | None = None
) -> str:
    """A table for notebooks, of ``most`` rows at most: cells are escaped, colours are those of the page. Empty without rows."""
    if not rows:
        return ""
    shown: list[Sequence[object]] = list(rows[:most])
    if len(shown) < len(rows):
        shown.append(["", f"and {len(rows) - len(shown):,} more"][-len(head) :])
    cell = 'style="text-align:left;padding:2px 10px 2px 0;vertical-align:top"'
    lines = "".join(
        f"<tr>{''.join(f'<td {cell}>{escape(str(c))}</td>' for c in row)}</tr>" for row in shown
    )
    titles = "".join(f'<th scope="col" {cell}>{escape(name)}</th>' for name in head)
    return f'<table style="border-collapse:collapse"><tr>{titles}</tr>{lines}</table>'


def html_card(title: str, *parts: str, text: Sequence[str]) -> str:
    """A small block for notebooks: a title, sentences, and parts in HTML side by side."""
    head = f'<p style="margin:0 0 6px;font-size:115%;font-weight:600">{escape(title)}</p>'
    said = "".join(
        f'<p style="margin:0 0 4px;max-width:60em">{escape(sentence)}</p>' for sentence in text
    )
    return (
        f'<div class="mosaic-card" style="margin:4px 0 8px">{head}{said}'
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{"".join(parts)}</div></div>'
    )


def printable(text: str) -> str:
    """The text with characters that would move the cursor, colour the terminal or turn the writing round written out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


#: What JSON may hold as it is, and terminals and browsers take for commands or line breaks.
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def json_text(value: object, **settings: Any) -> str:
    """JSON in which letters are written as they are, and all control characters, those of C1 among them, are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, **settings).translate(_CONTROLS)


def readable_size(size: float) -> str:
    """A number of bytes with a unit, the largest in which it is at least 1."""
    units, power = ("bytes", "KiB", "MiB", "GiB", "TiB"), 0
    while size >= 1024 and power < len(units) - 1:
        size, power = size / 1024, power + 1
    return (
        f"{size:.0f} {units[power]}" if size >= 10 or power == 0 else f"{size:.1f} {units[power]}"
    )


def jsonable(value: Any) -> Any:
    """The value as JSON types: non-finite numbers become null; dates and other objects become text."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(entry) for entry in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "__qualname__"):  # functions and classes
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "as_integer_ratio"):  # float, Decimal, Fraction
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    if hasattr(value, "total_seconds"):  # a time span
        return value.total_seconds()
    # The standard representation holds an address, which differs from run to run.
    return type(value).__qualname__ if " at 0x" in repr(value) else str(value)
