"""Values of options, from words to what the estimators take."""

from __future__ import annotations

import csv
import json
import re
from argparse import ArgumentTypeError
from typing import Any

FACTORS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def number_or(*words: str) -> Any:
    """A reader of numbers, whole ones as such, that knows some words, too.

    Examples
    --------
    >>> read = number_or("auto")
    >>> read("50"), read("0.05"), read("auto")
    (50, 0.05, 'auto')
    """

    def read(text: str) -> Any:
        if text in words:
            return text
        for kind in (int, float):
            try:
                value = kind(text)
            except ValueError:
                continue
            if value - value == 0:  # neither infinite nor NaN
                return value
        known = " or ".join(["a number", *(repr(word) for word in words)])
        raise ArgumentTypeError(f"{text!r} is not {known}")

    return read


def count_or_share(text: str) -> Any:
    """How many: a whole number, a share below 1, or "auto".

    Examples
    --------
    >>> count_or_share("50"), count_or_share("1e1"), count_or_share("0.05")
    (50, 10, 0.05)
    """
    value = number_or("auto")(text)
    if not isinstance(value, float) or value < 1:
        return value
    if value == 1:
        raise ArgumentTypeError(f"{text!r} may be one row or all of them; write 1 for one, or their number for all")
    if value != int(value):
        raise ArgumentTypeError(f"{text!r} is neither a whole number of rows nor a share below 1")
    return int(value)


def number(text: str) -> float:
    """A finite number."""
    return float(number_or()(text))


def yes_or_no(text: str) -> Any:
    """True and False, or "auto"."""
    known = {"auto": "auto", "yes": True, "no": False}
    if text not in known:
        raise ArgumentTypeError(f"{text!r} is not 'auto', 'yes' or 'no'")
    return known[text]


def size(text: str) -> float:
    """Bytes; with a unit of 1000 (kB, MB, GB, TB) or of 1024 (KiB, MiB, GiB, TiB, and K, M, G, T alone).

    Examples
    --------
    >>> size("2GiB"), size("500MB"), size("1.5G"), size("1024")
    (2147483648.0, 500000000.0, 1610612736.0, 1024.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?b?)", text.strip().lower())
    if found is None or (found[3] in ("i", "ib") and not found[2]):
        raise ArgumentTypeError(f"{text!r} is not a size such as 2GiB, 500MB or 1000000")
    base = 1000.0 if found[3] == "b" else 1024.0
    value: float = float(found[1]) * base ** FACTORS[found[2]]
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} is no room at all; give a size such as 2GiB")
    return value


def names(text: str) -> list[str]:
    """Names with commas between; a name with a comma stands in double quotes.

    Examples
    --------
    >>> names('age,"height, cm",x*')
    ['age', 'height, cm', 'x*']
    """
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name; write names with commas between, such as age,height,x*")
    return found


def quotas(text: str) -> Any:
    """A word, or a JSON object from group to number or share.

    Examples
    --------
    >>> quotas("equal"), quotas('{"a": 5, "b": 0.2}')
    ('equal', {'a': 5, 'b': 0.2})
    """
    if text in ("proportional", "equal"):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        raise ArgumentTypeError(
            f"{text!r} is not 'proportional', 'equal' or a JSON object such as '{{\"a\": 5, \"b\": 0.2}}'"
        )
    return found
