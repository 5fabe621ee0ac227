"""Numbers and dates that are written as text: how a column writes them is found once, and so they are read in every row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray

#: What stands for a missing number in a text table.
MISSING_CELLS = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "-NaN", "-nan", "N/A", "NA", "NULL", "NaN",
     "n/a", "nan", "null")
)  # fmt: skip
#: Share of the values that are alike in a column of numbers, dates, phone numbers, addresses or codes.
NEARLY_ALL = 0.95
#: Share of the cells from which numbers below a thousand, without a sign, say that a sign stands before thousands.
TELLING = 0.01
#: Texts of a column that a way of writing dates is tried with first.
TRIED_DATES = 50
ISO = "ISO 8601"
#: Signs of currencies.
CURRENCY = "$€£¥₹₽₩₺₫₴₦฿"
#: A unit that is a word: kg, °C, km/h, m², zł, kr.
_WORD = r"°|°?[^\W\d_]{1,12}(?:/[^\W\d_]{1,12})?[²³.]?"
_NUMBER = re.compile(
    rf"\s*(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?P<before>[A-Z]{{0,3}}[{CURRENCY}]|[A-Z]{{3}}\s|(?:Rs|Rp|RM|Fr|kr)\.?)?\s*"
    rf"(?P<inner>[-+−])?(?P<digits>\d[\d.,'’\s\u00a0\u202f]*|[.,]\d+)(?P<power>[eE][-+]?\d+)?(?P<last>(?<=\d)[-−])?"
    rf"\s*(?P<after>[{CURRENCY}%]|[A-Z]{{3}}|(?P<word>{_WORD}))?\s*\)?\s*"
)
_BLANKS = re.compile(r"[\s'’\u00a0\u202f]")
#: Digits of which the sign may stand before thousands or before a fraction, and whole numbers with signs before thousands.
_UNCLEAR, _GROUPED = (
    re.compile(r"[1-9]\d{0,2}[.,]\d{3}"),
    re.compile(r"\d{1,3}([., ]\d{2,3})*[., ]\d{3}"),
)


@dataclass(frozen=True)
class Written:
    """How a column writes numbers or dates. ``form`` is the sign before fractions of most numbers; of dates ``ISO``, or as for
    ``strptime``. ``or_iso``: some dates are written as in ISO 8601 instead, as where two systems were joined. ``unit``: the
    currency of most numbers, or "%".
    """

    form: str
    or_iso: bool = False
    unit: str = ""

    def read(self, texts: Sequence[str]) -> FloatArray:
        """Texts as numbers, or as days since 1970; NaN where one is none."""
        return self.parsed(texts)[0]

    def parsed(self, texts: Sequence[str]) -> tuple[FloatArray, BoolArray]:
        """The same, and whether a number is written unlike the others. Each is read by its own form, where that is clear."""
        unlike = np.zeros(len(texts), bool)
        if self.form not in (".", ","):
            days = np.array([_days(text, self.form) for text in texts], np.float64)
            return np.where(
                np.isnan(days), Written(ISO).read(texts), days
            ) if self.or_iso else days, unlike
        numbers = np.full(len(texts), np.nan)
        for place, match in enumerate(map(_NUMBER.fullmatch, texts)):
            if match is not None:
                numbers[place] = _number(match, self.form)
                unlike[place] = bool(self._difference(match))
        return numbers, unlike & np.isfinite(numbers)

    def difference(self, text: str) -> str:
        """How a number is written unlike the others, as in "has a decimal comma"."""
        match = _NUMBER.fullmatch(text)
        return "" if match is None else self._difference(match)

    def _difference(self, match: re.Match[str]) -> str:
        decimal, unit = _decimal_of(_digits(match)), _unit_of(match)
        both_have_one = "" not in (unit, self.unit)
        if unit != self.unit and (both_have_one or match["word"] or "%" in (unit, self.unit)):
            return f"is in {unit}" if unit else "is not in %"
        if decimal not in ("", self.form):
            return f"has a decimal {'comma' if decimal == ',' else 'point'}"
        return ""


@cache
def number_pattern(decimal: str) -> str:
    d = re.escape(decimal)
    return rf"[-+]?(\d+{d}?\d*([eE][-+]?\d+)?|{d}\d+([eE][-+]?\d+)?|(?i:inf(inity)?))"


def written_numbers(texts: Sequence[str], counts: IntArray) -> Written | None:
    """How these texts, each there so many times, are written: with thousands separators, currencies, units, percent signs,
    brackets for negative ones. None where they are no numbers. Codes are none: digits that begin with a zero, or are more than
    18, and numbers after which many words come, as in 12a and 12b.
    """
    found = [_NUMBER.fullmatch(text) for text in texts]
    decimals, units, unclear = Counter[str](), Counter[str](), Counter[str]()
    codes, zeros, short = 0, 0, 0.0
    for match, count in zip(found, counts.tolist(), strict=True):
        if match is None:
            continue
        digits = _digits(match)
        decimals[_decimal_of(digits)] += count
        units[_unit_of(match)] += count
        if _UNCLEAR.fullmatch(digits):
            unclear[digits[-4]] += count
        elif digits.isdigit():
            short += count if len(digits) <= 3 else -np.inf
            codes += len(digits) > 18 or re.match(r"0\d", digits) is not None
        zeros += re.match(r"0\d", digits) is not None
    if codes or zeros > (1 - NEARLY_ALL) * len(texts):
        return None
    unit = max(units, key=lambda unit: (units[unit], unit), default="")
    for sign, other in (".,", ",."):
        if short > TELLING * counts.sum() and decimals[sign] <= (1 - NEARLY_ALL) * unclear[sign]:
            # 987 beside 1.234 and 12.345: from a thousand on there is a sign.
            decimals[other] += unclear[sign]
    written = Written("," if decimals[","] > decimals["."] else ".", unit=unit)
    is_of_unit = [
        match is not None and (not match["word"] or _unit_of(match) == unit) for match in found
    ]
    return written if _nearly_all(np.isfinite(written.read(texts)) & is_of_unit, counts) else None


def _digits(match: re.Match[str]) -> str:
    return _BLANKS.sub(" ", match["digits"].strip())


def _unit_of(match: re.Match[str]) -> str:
    return "".join((match[place] or "").strip(" .") for place in ("before", "after"))


def _decimal_of(digits: str) -> str:
    """The sign before the fraction of a number; empty where it has none, or could be read either way, as 1.234."""
    signs = re.sub(r"[\d ]", "", digits)
    if len(signs) < 2:
        return "" if _UNCLEAR.fullmatch(digits) else signs
    if len(set(signs)) == 2:
        return signs[-1]
    return "," if signs[0] == "." else "."


def _number(match: re.Match[str], decimal: str) -> float:
    digits = _digits(match)
    decimal = _decimal_of(digits) or decimal
    whole, _, fraction = digits.partition(decimal)
    is_grouped = whole.isdigit() or not whole or _GROUPED.fullmatch(whole)
    if not is_grouped or not (fraction.isdigit() or not fraction):  # such as 1.2.3
        return float("nan")
    value = float(re.sub("[., ]", "", whole) + "." + fraction + (match["power"] or ""))
    signs = [match[place] for place in ("sign", "inner", "last")]
    negative = bool(match["open"]) or "-" in signs or "−" in signs
    return (-value if negative else value) * (0.01 if match["after"] == "%" else 1.0)


def written_dates(texts: Sequence[str], counts: IntArray) -> Written | None:
    """How these texts, each there so many times, are written; None where they are no dates."""
    if not any(char.isdigit() for text in texts[:TRIED_DATES] for char in text):
        return None
    days = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y")
    forms = (*days, "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M")
    alone = _best(map(Written, (ISO, *forms)), texts, counts)
    if alone is None:
        return _best((Written(form, or_iso=True) for form in forms), texts, counts)
    return replace(alone, or_iso=alone.form != ISO)  # a single 2025-12-24 is a date, too


def _best(tried: Iterable[Written], texts: Sequence[str], counts: IntArray) -> Written | None:
    """The way of writing dates by which most of these texts are read; None where none reads nearly all."""
    best, most = None, 0
    for dates in tried:
        known = np.isfinite(dates.read(texts[:TRIED_DATES]))
        if known.mean() < NEARLY_ALL and (len(texts) <= TRIED_DATES or known.mean() < 0.8):
            continue  # too few of the first texts are read
        known = np.isfinite(dates.read(texts))
        if int(known.sum()) > most and _nearly_all(known, counts):
            best, most = dates, int(known.sum())
    return best


def _days(text: str, form: str) -> float:
    if len(text) < len("1.1.24") or text.isdigit():
        return float("nan")
    try:
        moment = (
            datetime.fromisoformat(text) if form == ISO else datetime.strptime(text.strip(), form)
        )
        moment = moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta(0))
    except (ValueError, OverflowError):
        return float("nan")
    return (moment - datetime(1970, 1, 1)).total_seconds() / 86400.0


def _nearly_all(known: BoolArray, counts: IntArray) -> bool:
    return bool(known.mean() >= NEARLY_ALL or np.average(known, weights=counts) >= NEARLY_ALL)
