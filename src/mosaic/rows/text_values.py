"""Numbers and dates that are written as text: how a column writes them is found once, and so they are read in every row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
#: Texts of a column that a way of writing dates is tried with first.
TRIED_DATES = 50
ISO = "ISO 8601"
_CURRENCY = "$€£¥₹₽₩₺₫₴₦฿"
_NUMBER = re.compile(
    rf"\s*(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?:[{_CURRENCY}]|[A-Z]{{3}}\s)?\s*(?P<inner>[-+−])?"
    rf"(?P<digits>\d[\d.,'’\s\u00a0\u202f]*|[.,]\d+)(?P<power>[eE][-+]?\d+)?\s*(?:[{_CURRENCY}]|[A-Z]{{3}})?\s*(?P<percent>%)?\s*\)?\s*"
)


@dataclass(frozen=True)
class Written:
    """How a column writes numbers or dates. ``form`` is the sign before fractions of numbers; of dates ``ISO``, or as for
    ``strptime``. ``or_iso``: some dates are written as in ISO 8601 instead, as where two systems were joined.
    """

    form: str
    or_iso: bool = False

    def read(self, texts: Sequence[str]) -> FloatArray:
        """Texts as numbers, or as days since 1970; NaN where one is none."""
        if self.form in (".", ","):
            return np.array([_number(_NUMBER.fullmatch(text), self.form) for text in texts], np.float64)
        days = np.array([_days(text, self.form) for text in texts], np.float64)
        return np.where(np.isnan(days), Written(ISO).read(texts), days) if self.or_iso else days


@cache
def number_pattern(decimal: str) -> str:
    d = re.escape(decimal)
    return rf"[-+]?(\d+{d}?\d*([eE][-+]?\d+)?|{d}\d+([eE][-+]?\d+)?|(?i:inf(inity)?))"


def written_numbers(texts: Sequence[str], counts: IntArray) -> Written | None:
    """How these texts, each there so many times, are written: with thousands separators, currencies, percent signs, brackets for
    negative ones. None where they are no numbers. Codes are none: digits that begin with a zero, or are more than 18.
    """
    found = [_NUMBER.fullmatch(text) for text in texts]
    if not _nearly_all(np.array([match is not None for match in found]), counts):
        return None
    digits = [match["digits"].strip() for match in found if match is not None]
    zeros = [d for d in digits if len(d) > 1 and d[0] == "0" and d[1].isdigit()]
    is_code = any(d.isdigit() for d in zeros) or any(d.isdigit() and len(d) > 18 for d in digits)
    if is_code or len(zeros) > (1 - NEARLY_ALL) * len(digits):
        return None
    form = "," if _decimal_comma(digits) else "."
    numbers = np.array([_number(match, form) for match in found])
    return Written(form) if _nearly_all(np.isfinite(numbers), counts) else None


def _number(match: re.Match[str] | None, decimal: str) -> float:
    if match is None:
        return float("nan")
    digits = re.sub(r"[\s'’\u00a0\u202f]", "", match["digits"])
    digits = digits.replace(".", "").replace(",", ".") if decimal == "," else digits.replace(",", "")
    try:
        value = float(digits + (match["power"] or ""))
    except ValueError:  # such as 1.2.3
        return float("nan")
    signs = (match["sign"] or "") + (match["inner"] or "")
    negative = bool(match["open"]) or "-" in signs or "−" in signs
    return (-value if negative else value) * (0.01 if match["percent"] else 1.0)


def _decimal_comma(digits: Sequence[str]) -> bool:
    both = [d for d in digits if "," in d and "." in d]
    if both:
        return sum(d.rfind(",") > d.rfind(".") for d in both) > len(both) / 2
    commas = [d for d in digits if "," in d]
    if not commas:
        return any(d.count(".") > 1 for d in digits)
    return not all(re.fullmatch(r"\d{1,3}(,\d{3})+", d) for d in commas)


def written_dates(texts: Sequence[str], counts: IntArray) -> Written | None:
    """How these texts, each there so many times, are written; None where they are no dates."""
    if not any(char.isdigit() for text in texts[:TRIED_DATES] for char in text):
        return None
    days = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y")
    forms = (*days, "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M")
    alone, joined = map(Written, (ISO, *forms)), (Written(form, or_iso=True) for form in forms)
    return _best(alone, texts, counts) or _best(joined, texts, counts)


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
        moment = datetime.fromisoformat(text) if form == ISO else datetime.strptime(text.strip(), form)
        moment = moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta(0))
    except (ValueError, OverflowError):
        return float("nan")
    return (moment - datetime(1970, 1, 1)).total_seconds() / 86400.0


def _nearly_all(known: BoolArray, counts: IntArray) -> bool:
    return bool(known.mean() >= NEARLY_ALL or np.average(known, weights=counts) >= NEARLY_ALL)
