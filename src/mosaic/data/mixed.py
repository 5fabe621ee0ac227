"""Columns of a table as numbers, so that distances between rows are sums of differences between columns.

‖z(a) − z(b)‖² = Σ_c d_c(a, b)²,    one term for each column c.

Every kind of column has one rule, so that no column drowns the others:

- **number**: (x − median) / spread. The spread is the range of the middle nine tenths, divided by that of a normal
  distribution with deviation 1. Numbers that are never negative and far from symmetric are compared by log(1 + x/q), q the
  5 % quantile of the positive ones.
- **category** (text with levels that repeat, true/false, numbers with two values): different levels a and b are at
  d² = (z_a² + z_b²) / 2, where a normal value is beyond ±z_l as often as the level l occurs, and z_l² is at least 1. So a
  level that is hardly ever there is as odd as a number that is hardly ever there. Levels of fewer than 1 % of the rows are
  one level, "other".
- **date or time**: days, as numbers; and the time of day, the weekday and the season, as points on a circle, where rows
  gather at some part of it.
- **text** that does not repeat: the principal axes of its counts of three letters (TF-IDF), scaled so that two texts
  differ as much as two levels do.
- **missing**: in the middle of its column, and apart from every value that is there: a level of its own of a category.

Identifiers, codes, constants and copies of other columns are left out, and so is what cannot be compared, such as lists.
Ours; ``docs/decisions/0025`` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy.special import ndtri

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic._files import listed
from mosaic._frames import frame_columns, is_feature_name, numpy_column
from mosaic.choosing.reasons import figure
from mosaic.data.written import Dates, Numbers

#: Share of the rows below which a level is rare.
RARE_LEVEL = 0.01
#: Share of the values that must look alike for a column to be one of phone numbers, addresses or codes.
NEARLY_ALL = 0.95
#: Share of the values that differ from all others, above which texts are names, numbers or codes of something.
HARDLY_REPEATED = 0.5
#: By how much the asymmetry of a column falls if logarithms are worth it; it is 0 for symmetric values and 1 at most.
LESS_ASYMMETRIC = 0.2
#: Different values up to which a column of numbers is a scale of few steps, whose logarithm is not taken.
FEW_STEPS = 10
#: Length of the mean of points on the circle from which on rows gather at a part of it.
GATHERED = 0.2
#: Principal axes of a text column, the texts that they are found with, and the places that letters are hashed to.
TEXT_AXES, TEXT_ROWS, TEXT_HASHES = 8, 5000, 2**12
#: The middle nine tenths of a normal distribution, in deviations; the quantiles that bound it.
NINE_TENTHS, MIDDLE = 3.290, (0.05, 0.5, 0.95)
#: Share of the rows that what was never seen counts as.
NEVER_SEEN = 1e-4
#: Units of time of Arrow, how many are a day.
UNITS_OF_A_DAY = {"D": 1.0, "s": 8.64e4, "ms": 8.64e7, "us": 8.64e10}
#: Lengths of cycles, in days, and their names.
CYCLES = {"time of day": 1.0, "weekday": 7.0, "season": 365.2425}
#: Rows by which copies of columns are recognised before they are compared as a whole, and their digits.
COPY_ROWS, COPY_DIGITS = 64, 6
#: Letters of a text that an explanation quotes.
QUOTED_LETTERS = 40
#: Levels that another table may write otherwise.
SAME_LEVELS = {"true": "1", "false": "0", "1": "true", "0": "false"}
#: Texts that stand for a missing value.
MISSING_TEXTS = frozenset(("", " ", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-"))
#: Column names that say that numbers are codes.
CODE_NAMES = re.compile(
    r"(^|[_\s.])(phone|tel|telephone|mobile|fax|zip|zipcode|postcode|postal_code|plz|iban|ssn|isbn|ean|sku)($|[_\s.])",
    re.I,
)
PHONE = re.compile(r"\+?[\d\s()./-]{7,20}")
ADDRESS = re.compile(r"\S+@\S+\.\S+|https?://\S+|www\.\S+")
CODE = re.compile(r"(?=.*\d)[\w./:-]+")


# --- Cells of a column ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """The cells of a column: numbers, NaN where missing, or texts as numbers of levels, -1 where missing.

    Attributes
    ----------
    kind : "number", "moment" (numbers are days since 1970), "text", "code" (text that is no number whatever it looks like),
        "level" (categories), "truth" (true or false), "other"
    numbers : of every row, unless it is text
    levels : the different texts
    codes : of every row its place among the levels
    """

    kind: str
    numbers: FloatArray | None = None
    levels: tuple[str, ...] = ()
    codes: IntArray | None = None

    @property
    def missing(self) -> BoolArray:
        """Which rows have no value."""
        if self.codes is not None:
            return np.asarray(self.codes < 0)
        assert self.numbers is not None
        return np.isnan(self.numbers)

    def __len__(self) -> int:
        return len(self.missing)

    def as_levels(self) -> tuple[tuple[str, ...], IntArray]:
        """Texts and their places; numbers are written out."""
        if self.codes is not None:
            return self.levels, self.codes
        assert self.numbers is not None
        distinct, codes = np.unique(self.numbers, return_inverse=True)
        found = tuple(f"{number:.15g}" for number in distinct if not np.isnan(number))
        return found, np.where(self.missing, -1, codes.ravel())

    def text(self, row: int) -> str | None:
        """What is written in a row; None where nothing is or where it is a number."""
        return None if self.codes is None or self.codes[row] < 0 else self.levels[self.codes[row]]


def cells_of(X: Any, names: Sequence[str] | None = None) -> dict[str, Values]:
    """The cells of the columns of a data frame, all of them or those that are named.

    Examples
    --------
    >>> import polars as pl
    >>> cells = cells_of(pl.DataFrame({"age": [36, None], "city": ["Bonn", "Ulm"]}))
    >>> cells["age"].numbers, cells["city"].levels
    (array([36., nan]), ('Bonn', 'Ulm'))
    """
    return {str(column.name): values_of(column) for column in frame_columns(X, names)}


def values_of(column: Any) -> Values:
    """The cells of a narwhals series."""
    import narwhals.stable.v2 as nw

    kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
    if kind in (nw.Categorical, nw.Enum):
        return _with_kind("level", _coded(column.cast(nw.String).to_list(), column.is_null().to_numpy()))
    if kind == nw.Object or (native == np.dtype(object)):
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind == nw.String:
        if hasattr(column.to_native(), "dictionary_encode"):
            return _coded_by_arrow(column.to_native())
        return _coded(column.to_list(), column.is_null().to_numpy())
    if kind == nw.Boolean:
        numbers = np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
        return Values("truth", None, ("false", "true"), np.where(np.isnan(numbers), -1, numbers).astype(np.intp))
    if kind in (nw.Date, nw.Datetime):
        if hasattr(column.to_native(), "dictionary_encode"):
            return Values("moment", _days_of_arrow(column.to_native()))
        stamps = column.dt.timestamp("us").cast(nw.Float64).to_numpy()
        return Values("moment", np.asarray(stamps, np.float64) / 8.64e10)
    if kind == nw.Duration:
        return Values("number", np.asarray(column.dt.total_seconds().cast(nw.Float64).to_numpy(), np.float64))
    if kind == nw.Time:
        return _values_of_objects(column.to_list(), np.asarray(column.is_null().to_numpy(), bool))
    if kind.is_numeric() or getattr(native, "kind", None) in ("f", "i", "u", "b"):
        return Values("number", np.asarray(numpy_column(column), np.float64))
    empty = bool(column.is_null().all())
    return Values("number" if empty else "other", np.full(len(column), np.nan))


def _days_of_arrow(column: Any) -> FloatArray:
    """Days since 1970 of dates and times of Arrow, of whatever unit; those beyond the year 9999 are known, too."""
    import pyarrow as pa

    stored = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    numbers = column.cast(stored).to_numpy(zero_copy_only=False).astype(np.float64)
    unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(column.type)) or column.type.unit
    return np.asarray(np.floor(numbers / 1e3) / 8.64e10 if unit == "ns" else numbers / UNITS_OF_A_DAY[unit])


def _values_of_objects(objects: Sequence[Any], missing: BoolArray) -> Values:
    """Python objects: numbers where all of them are, structures where one is; else what they are written as."""
    there = [cell for cell, gone in zip(objects, missing, strict=True) if not gone]
    kinds = set(map(type, there))
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return _with_kind("truth", _coded([str(cell).lower() for cell in objects], missing))
    if kinds and all(issubclass(kind, time) for kind in kinds):
        seconds = [
            cell.hour * 3600.0 + cell.minute * 60.0 + cell.second if isinstance(cell, time) else np.nan
            for cell in objects
        ]
        return Values("number", np.array(seconds))
    if all(issubclass(kind, Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64) for kind in kinds):
        try:
            return Values(
                "number", np.array([np.nan if m else float(o) for o, m in zip(objects, missing, strict=True)])
            )
        except OverflowError:  # whole numbers beyond 1e308 are written out
            pass
    if any(not issubclass(kind, str | Real | Decimal | np.bool_ | date | time | bytes) for kind in kinds):
        return Values("other", np.full(len(objects), np.nan))
    return _coded(objects, missing)


def _with_kind(kind: str, values: Values) -> Values:
    return replace(values, kind=kind)


def _coded(cells: Sequence[Any], missing: Any) -> Values:
    """Different texts in the order in which they come, and for each cell its place among them."""
    places: dict[str, int] = {}
    codes = np.full(len(cells), -1, np.intp)
    for row, (cell, gone) in enumerate(zip(cells, missing, strict=True)):
        if gone or cell is None or cell != cell:
            continue
        text = cell if isinstance(cell, str) else str(cell)
        if text not in MISSING_TEXTS:
            codes[row] = places.setdefault(text, len(places))
    return Values("text", None, tuple(places), codes)


def _coded_by_arrow(column: Any) -> Values:
    """The same for a column of Arrow, whose own function for it is a hundred times as fast."""
    import pyarrow as pa

    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = encoded.cast(pa.large_string()).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    levels = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    kept = [level not in MISSING_TEXTS for level in levels]
    if all(kept):
        return Values("text", None, tuple(levels), codes)
    places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return Values("text", None, tuple(level for level, keep in zip(levels, kept, strict=True) if keep), places[codes])


# --- Rules for columns ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A column of numbers: (t(x) − middle) / spread, t the identity or log(1 + x/unit).

    Attributes
    ----------
    name : of the column
    middle, spread : of t(x)
    unit : of the logarithm, None for none
    usual : the middle nine tenths of x
    missing : the share of missing values in fit; if there were any, a second number says so
    written : how the numbers are written, if they are text
    """

    name: str
    middle: float
    spread: float
    unit: float | None
    usual: tuple[float, float]
    missing: float
    written: Numbers | None = None

    kind: ClassVar[str] = "number"

    @classmethod
    def of(cls, name: str, x: FloatArray, written: Numbers | None = None) -> Number:
        """The rule for these numbers."""
        there = x[np.isfinite(x)]
        unit = _unit_of_logarithm(there)
        low, _, high = np.quantile(there, MIDDLE, method="nearest")
        t = there if unit is None else np.log1p(there / unit)
        bottom, middle, top = np.quantile(t, MIDDLE)
        spread = float(top - bottom) / NINE_TENTHS or float(t.std()) or 1.0
        return cls(name, float(middle), spread, unit, (float(low), float(high)), 1 - len(there) / len(x), written)

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return 1 + (self.missing > 0)

    def encode(self, values: Values) -> FloatArray:
        """The numbers of every row. What is missing and never was in fit is in the middle."""
        return self.encode_numbers(self._numbers(values))

    def encode_numbers(self, x: FloatArray) -> FloatArray:
        """The same for numbers."""
        gone = ~np.isfinite(x)
        x = np.where(gone, 0.0, x)
        t = x if self.unit is None else np.sign(x) * np.log1p(np.abs(x) / self.unit)
        z = np.where(gone, 0.0, (t - self.middle) / self.spread)
        return np.column_stack([z, gone * _length(self.missing)]) if self.missing else z[:, None]

    def decode(self, z: FloatArray) -> float:
        """The number of a row, from its code; NaN where it is missing."""
        if self.missing and z[1] > 0.5 * float(_length(self.missing)):
            return float("nan")
        t = self.middle + self.spread * float(z[0])
        return t if self.unit is None else float(np.sign(t) * self.unit * np.expm1(abs(t)))

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """The cell of a row as it is read, from its code."""
        x = self.decode(z)
        return "missing" if np.isnan(x) else figure(x)

    @property
    def usually(self) -> str:
        """What is usual, in words."""
        return f"{figure(self.usual[0])} to {figure(self.usual[1])}"

    def contrast(self, z: FloatArray) -> str:
        """On which side of the middle a row is; empty where it is missing."""
        return "" if np.isnan(self.decode(z)) else "high" if z[0] > 0 else "low"

    def how(self) -> str:
        """The rule in words."""
        return "number" if self.unit is None else "number, by its logarithm"

    def _numbers(self, values: Values) -> FloatArray:
        if values.codes is None:
            assert values.numbers is not None
            return values.numbers
        written = Numbers() if self.written is None else self.written
        return _of_levels(written.read(values.levels), values.codes)


@dataclass(frozen=True)
class Moment:
    """A column of dates or times: a number of days, and the cycles that show.

    Attributes
    ----------
    name : of the column
    days : the rule for the number of days since 1970
    cycles : names of the cycles
    has_time : whether there are times of the day
    written : how dates are written, if they are text
    """

    name: str
    days: Number
    cycles: tuple[str, ...]
    has_time: bool
    written: Dates | None = None

    kind: ClassVar[str] = "date"

    @classmethod
    def of(cls, name: str, x: FloatArray, written: Dates | None = None) -> Moment:
        """The rule for these days."""
        there = x[np.isfinite(x)]
        has_time = bool((there % 1).any())
        cycles = []
        for cycle, length in CYCLES.items():
            if np.ptp(there) < 2 * length or (length == 1.0 and not has_time):
                continue
            if np.abs(np.exp(2j * np.pi * there / length).mean()) >= GATHERED and len(np.unique(there % length)) > 1:
                cycles.append(cycle)
        return cls(name, Number.of(name, x), tuple(cycles), has_time, written)

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return self.days.width + 2 * len(self.cycles)

    def encode(self, values: Values) -> FloatArray:
        """The numbers of every row; a circle has diameter √2."""
        if values.codes is None:
            assert values.numbers is not None
            x = values.numbers
        else:
            x = _of_levels((Dates() if self.written is None else self.written).read(values.levels), values.codes)
        blocks = [self.days.encode_numbers(x)]
        gone = ~np.isfinite(x)
        for cycle in self.cycles:
            turn = 2 * np.pi * np.where(gone, 0.0, x) / CYCLES[cycle]
            circle = np.column_stack([np.cos(turn), np.sin(turn)]) * np.sqrt(0.5)
            blocks.append(np.where(gone[:, None], 0.0, circle))
        return np.hstack(blocks)

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """The cell of a row as it is read, from its code."""
        days = self.days.decode(z)
        return "missing" if np.isnan(days) else self._date(days)

    @property
    def usually(self) -> str:
        """What is usual, in words."""
        return f"{self._date(self.days.usual[0])} to {self._date(self.days.usual[1])}"

    def contrast(self, z: FloatArray) -> str:
        """On which side of the middle a row is; empty where it is missing."""
        return {"high": "late", "low": "early"}.get(self.days.contrast(z), "")

    def how(self) -> str:
        """The rule in words."""
        return " and ".join(["date", *self.cycles])

    def _date(self, days: float) -> str:
        seconds = np.datetime64(0, "s") + np.timedelta64(round(days * 86400), "s")
        return str(seconds).replace("T", " ") if self.has_time else str(seconds.astype("datetime64[D]"))


@dataclass(frozen=True)
class Category:
    """A column of levels: one number for each, √(z_l²/2) at its own level and 0 elsewhere.

    Attributes
    ----------
    name : of the column
    levels : those that are common, most frequent first
    shares : of all rows, of the levels, of all others together, and of missing values
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]

    kind: ClassVar[str] = "category"
    usually: ClassVar[str] = ""

    @classmethod
    def of(cls, name: str, levels: Sequence[str], codes: IntArray) -> Category:
        """The rule for these levels."""
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        n = len(codes)
        order = sorted(range(len(levels)), key=lambda place: (-counts[place], levels[place]))
        common = [place for place in order if counts[place] >= max(2, RARE_LEVEL * n)]
        other = counts.sum() - counts[common].sum()
        shares = [*(counts[common] / n), other / n, (n - counts.sum()) / n]
        return cls(name, tuple(levels[place] for place in common), tuple(float(share) for share in shares))

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return len(self.shares)

    def encode(self, values: Values) -> FloatArray:
        """The numbers of every row. Levels that are rare or new are "other"."""
        known = {level: place for place, level in enumerate(self.levels)}
        levels, codes = values.as_levels()
        found = [known.get(level, known.get(SAME_LEVELS.get(level, level), len(known))) for level in levels]
        table = np.array([*found, len(known) + 1], np.intp)
        places = table[codes]  # -1 is the last one
        return np.asarray((places[:, None] == np.arange(self.width)) * _length(np.array(self.shares)))

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """The cell of a row as it is read, from its code; rare levels have no code of their own."""
        place = int(np.argmax(z))
        if place == self.width - 1:
            return "missing"
        if place < len(self.levels):
            return repr(self.levels[place])
        return "is a rare value" if text is None else f"{_quoted(text)}, which is rare"

    def contrast(self, z: FloatArray) -> str:
        """Categories have no sides."""
        return ""

    def how(self) -> str:
        """The rule in words."""
        rare = "" if not self.shares[-2] else ", rare ones together"
        return f"category of {len(self.levels)} levels{rare}"


@dataclass(frozen=True)
class Text:
    """A column of texts that differ: principal axes of TF-IDF counts of three letters.

    Attributes
    ----------
    name : of the column
    weights : of three letters
    axes, centre, scale : of the principal axes
    missing : the share of missing values in fit; if there were any, a last number says so
    """

    name: str
    weights: FloatArray = field(repr=False, compare=False)
    axes: FloatArray = field(repr=False, compare=False)
    centre: FloatArray = field(repr=False, compare=False)
    scale: float
    missing: float

    kind: ClassVar[str] = "text"
    usually: ClassVar[str] = ""

    @classmethod
    def of(cls, name: str, levels: Sequence[str], codes: IntArray) -> Text:
        """The rule for these texts; their order does not matter."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        texts = sorted(levels[code] for code in codes[codes >= 0])
        if len(texts) > TEXT_ROWS:
            texts = [texts[row] for row in np.random.default_rng(0).choice(len(texts), TEXT_ROWS, replace=False)]
        counts = _letters(texts)
        tfidf = TfidfTransformer().fit(counts)
        weighted = tfidf.transform(counts)
        svd = TruncatedSVD(min(TEXT_AXES, weighted.shape[0] - 1), random_state=0).fit(weighted)
        Z = svd.transform(weighted)
        centre = Z.mean(axis=0)
        scale = float(np.sqrt(2 * ((Z - centre) ** 2).sum(axis=1).mean())) or 1.0
        return cls(name, tfidf.idf_, svd.components_, centre, scale, float((codes < 0).mean()))

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return len(self.centre) + (self.missing > 0)

    def encode(self, values: Values) -> FloatArray:
        """The numbers of every row."""
        import scipy.sparse as sp
        from sklearn.preprocessing import normalize

        levels, codes = values.as_levels()
        weighted = (
            normalize(_letters(levels) @ sp.diags_array(self.weights)) if levels else np.zeros((0, len(self.weights)))
        )
        Z = np.vstack([(weighted @ self.axes.T - self.centre) / self.scale, np.zeros(len(self.centre))])[codes]
        return np.column_stack([Z, (codes < 0) * _length(self.missing)]) if self.missing else Z

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """The cell of a row as it is read; letters cannot be read from their code."""
        if self.missing and z[-1] > 0.5 * float(_length(self.missing)):
            return "missing"
        return "is unlike others" if text is None else _quoted(text)

    def contrast(self, z: FloatArray) -> str:
        """Texts have no sides."""
        return ""

    def how(self) -> str:
        """The rule in words."""
        return "text, by its letters"


Column: TypeAlias = Number | Moment | Category | Text


@dataclass(frozen=True)
class LeftOut:
    """A column that is not compared, why, and whether a user would expect it to be."""

    name: str
    why: str
    expected: bool = False


def _quoted(text: str) -> str:
    return repr(text if len(text) <= QUOTED_LETTERS else text[:QUOTED_LETTERS] + "…")


def _length(share: Any) -> Any:
    """√(max(z², 1) / 2), where a normal value is beyond ±z with the probability ``share``, at least 1 in 10 000."""
    return np.sqrt(np.maximum(ndtri(np.maximum(share, NEVER_SEEN) / 2) ** 2, 1.0) / 2)


def _letters(texts: Sequence[str]) -> Any:
    """Counts of three letters."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), n_features=TEXT_HASHES, alternate_sign=False, norm=None
    )
    return hashing.transform(texts)


def _unit_of_logarithm(there: FloatArray) -> float | None:
    """The unit q of log(1 + x/q) where numbers are never negative and that makes them more symmetric; else None."""
    if there.min() < 0 or len(np.unique(there)) <= FEW_STEPS:
        return None
    unit = float(np.quantile(there[there > 0], MIDDLE[0]))
    with np.errstate(over="ignore"):
        t = np.log1p(there / unit)
    return unit if np.isfinite(t).all() and _asymmetry(t) < _asymmetry(there) - LESS_ASYMMETRIC else None


def _asymmetry(x: FloatArray) -> float:
    """|q05 + q95 − 2 q50| / (q95 − q05)."""
    low, median, high = np.quantile(x, MIDDLE)
    return float(abs(low + high - 2 * median) / (high - low)) if high > low else 0.0


def _of_levels(numbers: FloatArray, codes: IntArray) -> FloatArray:
    """Numbers of levels, for every row; NaN where there is no level."""
    return np.append(numbers, np.nan)[codes]


# --- Tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableEncoder:
    """How the columns of a table become numbers. One rule for data frames and files, and for new rows.

    Attributes
    ----------
    columns : the rules of the columns that are compared
    left_out : the columns that are not, and why
    notes : what was assumed, such as that a cell that is no number is missing
    texts : of the rows of fit, cells that cannot be read from their code, for explanations

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [36, 41, None, 28], "city": ["Bonn", "Ulm", "Bonn", "Ulm"]})
    >>> encoder = TableEncoder.of(cells_of(people))
    >>> encoder.blocks
    {'age': slice(0, 2, None), 'city': slice(2, 6, None)}
    >>> encoder.encode(cells_of(people)).shape
    (4, 6)
    >>> print(*encoder.describe())
    Compared as number: age; category: city.
    """

    columns: tuple[Column, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Mapping[str, Values] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        cells: Mapping[str, Values],
        *,
        keep: Sequence[str] = (),
        ids: Sequence[str] | None = None,
        place: Callable[[int], str] = "row {}".format,
        told: Sequence[str] = (),
    ) -> TableEncoder:
        """The rule for every column.

        Parameters
        ----------
        cells : of the columns
        keep : columns that are not left out unless they are constant
        ids : columns that name rows; by default those that are called as ids are
        place : of a row number, what the row is called in notes
        told : columns of which nothing is said if cells of them are no numbers, since it was said already
        """
        ids = [name for name in cells if not is_feature_name(name)] if ids is None else ids
        columns: list[Column] = []
        left_out: list[LeftOut] = []
        seen: dict[tuple[Any, ...], list[tuple[str, FloatArray]]] = {}
        for name, values in cells.items():
            rule = rule_of(name, values, forced=name in keep, is_id=name in ids)
            if isinstance(rule, LeftOut):
                left_out.append(rule)
                continue
            block = rule.encode(values)
            alike = seen.setdefault(_signature(block), [])
            twin = next((other for other, numbers in alike if name not in keep and _is_copy(block, numbers)), None)
            if twin is not None:
                left_out.append(LeftOut(name, f"says the same as {twin!r}", expected=True))
                continue
            alike.append((name, block))
            columns.append(rule)
        asked = [column for column in columns if column.name not in told]
        notes = tuple(note for column in asked if (note := _unread(column, cells[column.name], place)) is not None)
        return cls(tuple(columns), tuple(left_out), notes)

    @property
    def names(self) -> list[str]:
        """The columns that are compared."""
        return [column.name for column in self.columns]

    @property
    def blocks(self) -> dict[str, slice]:
        """Where the numbers of each column are."""
        ends = np.cumsum([column.width for column in self.columns])
        return {c.name: slice(int(end) - c.width, int(end)) for c, end in zip(self.columns, ends, strict=True)}

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(column.width for column in self.columns)

    @property
    def number_names(self) -> list[str]:
        """For each number, the column that it comes from."""
        return [column.name for column in self.columns for _ in range(column.width)]

    def encode(self, cells: Mapping[str, Values]) -> FloatArray:
        """Rows × numbers."""
        return np.hstack([column.encode(cells[column.name]) for column in self.columns])

    def with_texts(self, cells: Mapping[str, Values]) -> TableEncoder:
        """The same, with the cells of the rows of fit that cannot be read from their code."""
        unreadable = [c for c in self.columns if isinstance(c, Text) or (isinstance(c, Category) and c.shares[-2] > 0)]
        return replace(self, texts={c.name: cells[c.name] for c in unreadable if cells[c.name].codes is not None})

    def with_gaps(self, names: Collection[str]) -> TableEncoder:
        """The same, for columns in which values are missing in rows that it was not found with."""

        def with_gap(column: Column) -> Column:
            if column.name not in names:
                return column
            if isinstance(column, Moment):
                return replace(column, days=replace(column.days, missing=column.days.missing or NEVER_SEEN))
            return column if isinstance(column, Category) else replace(column, missing=column.missing or NEVER_SEEN)

        return replace(self, columns=tuple(map(with_gap, self.columns)))

    def value(self, name: str, z: FloatArray, row: int | None = None) -> str:
        """The cell of a row as it is read: "61", "'premium'", "missing"; z are the numbers of this column."""
        known = self.texts.get(name)
        return self._by_name(name).value(z, None if known is None or row is None else known.text(row))

    def usually(self, name: str) -> str:
        """What is usual in a column, "19 to 88"; empty where there is no range."""
        return self._by_name(name).usually

    def contrast(self, name: str, z: FloatArray) -> str:
        """On which side of the middle of its column a row is: "high", "early"; empty where there are no sides."""
        return self._by_name(name).contrast(z)

    def describe(self) -> tuple[str, ...]:
        """What was used, how, and what was left out and why, in sentences."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            kinds.setdefault(column.how().partition(" of ")[0], []).append(column.name)
        used = "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items())
        told = [f"Compared as {used}."]
        if self.left_out:
            told.append(f"Not compared: {listed([f'{column.name} ({column.why})' for column in self.left_out])}.")
        return (*told, *self.notes)

    def _by_name(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def encoder_of(
    columns: Iterable[tuple[str, Callable[[], Values]]],
    keep: Sequence[str] = (),
    place: Callable[[int], str] = "row {}".format,
    told: Sequence[str] = (),
) -> TableEncoder | None:
    """How columns become numbers; None where those that say something about a row are numbers without missing values, true or
    false among them, so that they are taken as they are.

    Parameters
    ----------
    columns : name and cells of each; the cells are asked for twice, so that not all of them need to be in memory
    keep : columns that are not left out unless they are constant
    place, told : of a row number, what the row is called in notes; columns whose cells are not noted
    """
    columns = list(columns)
    if all(_is_plain(name, cells(), name in keep) for name, cells in columns):
        return None
    return TableEncoder.of({name: cells() for name, cells in columns}, keep=keep, place=place, told=told)


def _is_plain(name: str, values: Values, forced: bool) -> bool:
    """Whether a column holds numbers without missing values, or is not compared."""
    if not forced and not is_feature_name(name):
        return True
    if values.kind in ("number", "truth") and not values.missing.any():
        return True
    return bool(values.missing.all()) or isinstance(rule_of(name, values, forced=forced), LeftOut)


def encoder_of_frame(X: Any) -> TableEncoder | None:
    """The same for a data frame.

    Examples
    --------
    >>> import polars as pl
    >>> encoder_of_frame(pl.DataFrame({"name": ["Ada", "Max"], "age": [36, 41]})) is None
    True
    >>> encoder_of_frame(pl.DataFrame({"name": ["Ada", "Max"], "age": [36, None]})).names
    ['age']
    """
    return encoder_of([(str(column.name), partial(values_of, column)) for column in frame_columns(X)])


def rule_of(name: str, values: Values, *, forced: bool = False, is_id: bool = False) -> Column | LeftOut:
    """What kind of column this is.

    Parameters
    ----------
    name, values : of the column
    forced : it is asked for, and left out only if it is constant or no values can be compared
    is_id : it names rows
    """
    there = int((~values.missing).sum())
    if values.kind == "other":
        return LeftOut(name, "holds lists or structures", expected=True)
    if not there:
        return LeftOut(name, "has no values")
    if is_id and not forced:
        repeats = len(values.as_levels()[0]) < there
        return LeftOut(name, "is called as ids are", expected=repeats and values.codes is None)
    return _rule_of_numbers(name, values, forced) if values.codes is None else _rule_of_levels(name, values, forced)


def _rule_of_numbers(name: str, values: Values, forced: bool) -> Column | LeftOut:
    assert values.numbers is not None
    x, n = values.numbers, len(values)
    distinct = np.unique(x[np.isfinite(x)])
    if len(distinct) <= 1 and not values.missing.any():
        return LeftOut(name, "is the same in every row")
    if not len(distinct):
        return LeftOut(name, "has no values")
    if values.kind == "moment":
        return Moment.of(name, x)
    whole = bool((distinct == np.round(distinct)).all())
    if whole and not forced:
        if CODE_NAMES.search(name):
            return LeftOut(name, "holds codes: numbers that name something", expected=True)
        if len(distinct) == n > 2 and np.ptp(distinct) == n - 1 and bool((np.diff(x) == 1).all()):
            return LeftOut(name, "counts the rows")
    if len(distinct) <= 2:
        return Category.of(name, *values.as_levels())
    return Number.of(name, x)


def _rule_of_levels(name: str, values: Values, forced: bool) -> Column | LeftOut:
    levels, codes = values.levels, values.codes
    assert codes is not None
    there = int((codes >= 0).sum())
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    used = np.flatnonzero(counts)
    if len(used) == 1 and there == len(codes):
        return LeftOut(name, "is the same in every row")
    if values.kind in ("text", "code"):
        written = None if values.kind == "code" or CODE_NAMES.search(name) else Numbers.of(levels, counts)
        if written is not None:
            numbers = _of_levels(written.read(levels), codes)
            if len(np.unique(numbers[np.isfinite(numbers)])) > 2:
                return Number.of(name, numbers, written)
        dates = None if values.kind == "code" else Dates.of(levels, counts)
        if dates is not None:
            days = _of_levels(dates.read(levels), codes)
            if len(np.unique(days[np.isfinite(days)])) > 1:
                return Moment.of(name, days, dates)
        if not forced:
            hardly_repeated = len(levels) > HARDLY_REPEATED * there
            if hardly_repeated and _mostly(PHONE, levels):
                return LeftOut(name, "holds phone numbers or codes")
            if _mostly(ADDRESS, levels):
                return LeftOut(name, "holds addresses of mail or of the web")
            if len(levels) == there > 1:
                return LeftOut(name, "is different in every row, as names are")
            if hardly_repeated and _mostly(CODE, levels):
                return LeftOut(name, "holds codes, hardly any of which repeats", expected=True)
    rule = Category.of(name, levels, codes)
    if rule.shares[-2] * len(codes) > there / 2 and there > 2:
        return Text.of(name, levels, codes)
    return rule


def _mostly(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return sum(pattern.fullmatch(text) is not None for text in texts) >= NEARLY_ALL * len(texts)


def _unread(column: Column, values: Values, place: Callable[[int], str]) -> str | None:
    """What is said of text in a column of numbers or dates, and of infinite numbers."""
    found = unread_cells(column, values)
    if found is not None:
        row, text, count = found
        what = "date" if isinstance(column, Moment) else "number"
        return f"{as_missing(count, f'no {what}', column.name)}: {_quoted(text)} in {place(row)}."
    infinite = 0 if values.numbers is None else int(np.isinf(values.numbers).sum())
    return f"{infinite:,} infinite numbers of {column.name!r} count as missing." if infinite else None


def as_missing(count: int, what: str, column: str) -> str:
    """The beginning of a sentence on cells that count as missing.

    Examples
    --------
    >>> as_missing(1, "no number", "age"), as_missing(2, "no number", "age")
    ("1 cell of 'age' is no number and counts as missing", "2 cells of 'age' are no number and count as missing, the first")
    """
    if count == 1:
        return f"1 cell of {column!r} is {what} and counts as missing"
    return f"{count:,} cells of {column!r} are {what} and count as missing, the first"


def unread_cells(column: Column, values: Values) -> tuple[int, str, int] | None:
    """Cells of a column of numbers or dates that are neither: row and text of the first, and their number; None without any."""
    if not isinstance(column, Number | Moment) or values.codes is None or column.written is None:
        return None
    odd = np.isnan(column.written.read(values.levels))
    rows = np.flatnonzero(np.append(odd, False)[values.codes])
    return (int(rows[0]), str(values.text(int(rows[0]))), len(rows)) if len(rows) else None


def _signature(block: FloatArray) -> tuple[Any, ...]:
    """Numbers that are the same for copies of a column, and next to never for others."""
    some = block[np.linspace(0, len(block) - 1, min(len(block), COPY_ROWS)).astype(np.intp)]
    some = np.abs(some) if block.shape[1] == 1 else some
    return (block.shape[1], (np.round(some, COPY_DIGITS) + 0.0).tobytes())


def _is_copy(a: FloatArray, b: FloatArray) -> bool:
    same = bool(np.allclose(a, b, atol=1e-9))
    return same or (a.shape[1] == 1 and bool(np.allclose(a, -b, atol=1e-9)))
