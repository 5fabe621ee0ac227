"""Rules for kinds of columns: how numbers, dates, categories and texts become numbers, and how these are read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.choosing.geometry import MIDDLE_THIRD
from mosaic.exceptions import InvalidInputError
from mosaic.rows.frames import Values
from mosaic.rows.text_values import CURRENCY, ISO, Written
from mosaic.text import figure

#: Share of the rows below which a level is rare.
RARE_LEVEL = 0.01
#: Letters from which a level has likely misspellings.
LEAST_LETTERS = 5
#: Texts that the axes of a column are found with.
TEXT_ROWS = 5000
#: Share of the rows up to which levels that are not common, and words, are hardly ever seen.
HARDLY_EVER = 1e-3
#: A text stands apart if fewer of its words are in other texts than this share of what is usual.
SHARED_WORDS = 1 / 3
#: Hash places of words, of words or letters as TF-IDF counts them, and of those of texts that stand apart, also from one another.
WORD_PLACES, COUNTED_PLACES, APART_PLACES = 2**20, 2**12, 8
#: What numbers that stand apart from all others of their column are moved by, in deviations: their row is then alone.
APART = 20.0
#: The middle nine tenths of a normal distribution, in deviations; the quantiles that bound it.
NINE_TENTHS, MIDDLE = 3.290, (0.05, 0.5, 0.95)
#: Share of the rows that what was never seen counts as.
NEVER_SEEN = 1e-4
#: Characters of scripts that put no spaces between words, each of which is one: Thai, Lao, kana, Chinese characters.
NO_SPACES = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
#: Cycles, the time of the day first, and their lengths in days.
CYCLES = {"time": 1.0, "weekday": 7.0, "season": 365.2425}

# A rule makes ``width`` numbers a row, which ``encode`` gives for every row. ``value`` is the cell of a row as it is read from
# its numbers, with what is written in it, if that is known; ``how`` says what the rule is. ``missing`` is the share of missing
# values in fit; one more number says what is missing.


@dataclass(frozen=True)
class Number:
    """A column of numbers, or of dates as days since 1970: (t(x) − middle) / spread, t the identity or log(1 + x/unit).

    Dates also have a point on a circle for each of the ``cycles`` that show; ``has_time`` is None for numbers. ``usual`` is the
    middle nine tenths of x, ``possible`` the range outside of which numbers stand apart, ``written`` how text is read as numbers.
    ``unread`` is how many cells are infinite, or no numbers or dates, ``unlike`` how many are written unlike the others; such
    cells stand apart if they are no more than ``few``.
    """

    name: str
    middle: float
    spread: float
    unit: float | None
    usual: tuple[float, float]
    missing: float
    written: Written | None = None
    has_time: bool | None = None
    cycles: tuple[str, ...] = ()
    possible: tuple[float, float] = (-np.inf, np.inf)
    unread: int = 0
    unlike: int = 0
    few: float = 1.0

    @classmethod
    def of(
        cls,
        name: str,
        x: FloatArray,
        strange: FloatArray,
        weights: FloatArray,
        written: Written | None = None,
        dates: bool = False,
    ) -> Number:
        """Of what ``read_cells`` gives."""
        finite = np.isfinite(x)
        there, w = x[finite], weights[finite]
        unit = _unit_of_logarithm(there, w)
        low, _, high = quantiles(there, MIDDLE, w, nearest=True)
        t = there if unit is None else np.log1p(there / unit)
        bottom, middle, top = quantiles(t, MIDDLE, w)
        spread = float(top / NINE_TENTHS - bottom / NINE_TENTHS)
        if not spread:
            spread = (
                float(np.sqrt(np.average((t - np.average(t, weights=w)) ** 2, weights=w))) or 1.0
            )
        return cls(
            name,
            float(middle),
            spread,
            unit,
            usual=(float(low), float(high)),
            missing=float(weights[~finite].sum() / weights.sum()),
            written=written,
            has_time=bool((there % 1).any()) if dates else None,
            cycles=tuple(cycle for cycle in CYCLES if dates and _gathers(there, w, CYCLES[cycle])),
            possible=possible_range(there[w > 0], of_new_rows=not dates),
            unread=int(np.count_nonzero(strange > 0)),
            unlike=int(np.count_nonzero(strange < 0)),
            few=max(1.0, RARE_LEVEL * len(x)),
        )

    @property
    def has_texts(self) -> bool:
        return self.written is not None

    @property
    def width(self) -> int:
        return 2 + 2 * len(self.cycles)

    @property
    def how(self) -> str:
        if self.has_time is not None:
            return " and ".join(["date", *self.cycles])
        return "number" if self.unit is None else "number, by its logarithm"

    def read(self, values: Values) -> tuple[FloatArray, FloatArray]:
        return read_cells(values, self.written or Written("." if self.has_time is None else ISO))

    def encode(self, values: Values) -> FloatArray:
        """What is missing is in the middle. A circle has diameter √2."""
        x, strange = self.read(values)
        gone = ~np.isfinite(x)
        x = np.where(gone, 0.0, x)
        apart = APART * ((x > self.possible[1]) * 1.0 - (x < self.possible[0]))
        gaps = gone * _length(self.missing)
        if self.unread <= self.few:
            gaps = np.where(strange > 0, APART, gaps)
        if self.unlike <= self.few:
            gaps = np.where(strange < 0, -APART, gaps)
        columns = [np.where(gone, 0.0, self._deviations(x) + apart), gaps]
        for cycle in self.cycles:
            turn = 2 * np.pi * x / CYCLES[cycle]
            columns += [
                np.where(gone, 0.0, np.sqrt(0.5) * part) for part in (np.cos(turn), np.sin(turn))
            ]
        return np.column_stack(columns)

    def _deviations(self, x: FloatArray) -> FloatArray:
        t = x if self.unit is None else np.sign(x) * np.log1p(np.abs(x) / self.unit)
        return (t - self.middle) / self.spread

    def decode(self, z: FloatArray) -> float:
        """The number of a row, from its code; NaN where it is missing."""
        if z[1] > 0:
            return float("nan")
        low, high = self._deviations(np.array(self.possible))
        t = self.middle + self.spread * float(
            z[0] - APART * (float(z[0] > high) - float(z[0] < low))
        )
        x = t if self.unit is None else float(np.sign(t) * self.unit * np.expm1(abs(t)))
        return 0.0 if abs(x) < 1e-12 * max(map(abs, self.usual)) else x  # what rounding leaves of 0

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """As it is written, if that is known; dates always as in ISO 8601."""
        x, what = self.decode(z), "number" if self.has_time is None else "date"
        if np.isnan(x) and text is not None:
            return f"{quoted(text)}, which is not a {what}"
        if np.isnan(x):
            return "missing" if z[1] < APART / 2 else f"is not a finite {what}"
        if z[1] < 0:
            unlike = "" if text is None or self.written is None else self.written.difference(text)
            return f"{self.shown(x) if text is None else quoted(text)}, which {unlike or 'is written unlike the others'}"
        return self.shown(x) if text is None or self.has_time is not None else text.strip()

    @property
    def usually(self) -> str:
        return " to ".join(map(self.shown, self.usual))

    def contrast(self, z: FloatArray) -> str:
        low, medium, high = (
            ("low", "medium", "high") if self.has_time is None else ("early", "middle", "late")
        )
        if z[1]:
            return ""
        if abs(z[0]) <= MIDDLE_THIRD * NINE_TENTHS and not self.is_unusual(z):
            return medium
        return high if z[0] > 0 else low

    def is_unusual(self, z: FloatArray) -> bool:
        if 0 < z[1] < APART / 2:
            return self.missing < RARE_LEVEL
        return bool(z[1]) or not self.usual[0] <= self.decode(z) <= self.usual[1]

    def shown(self, x: float) -> str:
        if self.has_time is None:
            unit = "" if self.written is None else self.written.unit
            if unit == "%":
                return f"{figure(100 * x)}%"
            if not unit or unit[-1] in CURRENCY:
                return f"{unit}{figure(x)}"
            if len(unit) == 3 and unit.isupper():
                return f"{unit} {figure(x)}"
            return f"{figure(x)} {unit}"
        seconds = np.datetime64(0, "s") + np.timedelta64(round(x * 86400), "s")
        if self.has_time:
            return str(seconds).replace("T", " ")
        return str(seconds.astype("datetime64[D]"))


def read_cells(values: Values, written: Written) -> tuple[FloatArray, FloatArray]:
    """Cells as numbers, and 1 where one is infinite or cannot be read, −1 where it is written unlike the others."""
    if values.numbers is not None:
        return values.numbers, np.isinf(values.numbers) * 1.0
    numbers, unlike = written.parsed(values.levels)
    x = values.of_levels(numbers)
    unread = ~np.isfinite(x) & ~values.missing
    return x, unread * 1.0 - (values.of_levels(unlike.astype(np.float64)) == 1)


def possible_range(x: FloatArray, *, of_new_rows: bool = True) -> tuple[float, float]:
    """The range outside of which at most 1 % of the numbers stand apart: t(next) − t(end) ≥ t(end) − t(median), at either end.

    t is the logarithm if nearly all numbers are positive, else asinh of deviations, so that heavy tails do not stand apart. What
    is not positive counts as half of the least difference d of two numbers; below 0 it must also be apart by half as much as the
    end is from the median. ``next`` is taken to be nearer by d: of counts, the next one may be rare without standing apart.
    Where no number does, the range is that of numbers which would, if they came later (``of_new_rows``).
    """
    x = np.sort(x)
    distinct = np.unique(x)
    most = int(RARE_LEVEL * len(x))
    if len(distinct) < 3 or not most:
        return -np.inf, np.inf
    step, median, positive = float(np.diff(distinct).min()), float(np.median(x)), bool(x[most] > 0)
    low, high = quantiles(x, MIDDLE[::2], np.ones(len(x)))
    spread = float(high - low) / NINE_TENTHS or float(x.std())

    def t(v: float) -> float:
        if not positive:
            return float(np.arcsinh((v - median) / spread))
        return float(
            np.log(v) if v > step / 2 else np.log(step / 2) - np.log1p(max(-v, 0.0) / step)
        )

    def t_inverse(u: float) -> float:
        if not positive:
            return float(median + spread * np.sinh(u))
        return float(np.exp(u) if u > np.log(step / 2) else -step * np.expm1(np.log(step / 2) - u))

    def end(sign: float) -> float:
        tail = x[: most + 1][::-1] if sign < 0 else x[-most - 1 :]  # outwards
        for last, following in zip(tail[:-1].tolist(), tail[1:].tolist(), strict=True):
            half, gap = abs(t(last) - t(median)), abs(t(following - sign * step) - t(last))
            is_far = following >= 0 or not positive or last - following >= (median - last) / 2
            if half > 0 and abs(following - last) > step and gap >= half and is_far:
                return float(last + following) / 2
        last = float(tail[-1])
        if not of_new_rows or t(last) == t(median):
            return sign * float("inf")
        beyond = t_inverse(2 * t(last) - t(median)) + sign * step
        return min(beyond, last - (median - last) / 2) if positive and beyond < 0 else beyond

    return end(-1.0), end(1.0)


def _gathers(days: FloatArray, weights: FloatArray, length: float) -> bool:
    """Whether dates gather at a part of a cycle of so many days, and do not all fall on one place of it."""
    if np.ptp(days) < 2 * length or len(np.unique(days % length)) == 1:
        return False
    # The mean of their points on the circle is long.
    return bool(np.abs(np.average(np.exp(2j * np.pi * days / length), weights=weights)) >= 0.2)


@dataclass(frozen=True)
class Category:
    """A column of levels: one number for each, √(z_l²/2) at its own level and 0 elsewhere.

    ``levels`` are those that are common, most frequent first; ``shares`` are of all rows: of the levels, of all others together,
    and of missing values. Rows of others are alone if these are hardly ever seen (``apart``), those of likely misspellings also
    if most others are such (``misspelt``).
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    apart: bool = False
    misspelt: bool = False

    how: ClassVar[str] = "category"
    usually: ClassVar[str] = ""

    @classmethod
    def of(cls, name: str, levels: Sequence[str], codes: IntArray, weights: FloatArray) -> Category:
        counts = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(levels))
        n = float(weights.sum())
        order = sorted(
            np.flatnonzero(counts).tolist(), key=lambda place: (-counts[place], levels[place])
        )
        common = [place for place in order if counts[place] >= max(2, RARE_LEVEL * n)]
        others = order[len(common) :]
        shares = [*counts[common], counts[others].sum(), n - counts.sum()]
        rule = cls(
            name,
            tuple(levels[place] for place in common),
            tuple(float(share) / n for share in shares),
        )
        rare = [place for place in others if rule.likely(levels[place]) is None]
        apart = bool(common and others and counts[rare].sum() <= max(1.0, HARDLY_EVER * n))
        return replace(rule, apart=apart, misspelt=apart or 2 * len(rare) <= len(others))

    @property
    def width(self) -> int:
        return len(self.shares)

    @cached_property
    def _spellings(self) -> dict[str, str]:
        long = [
            level
            for level in self.levels
            if len(level) >= LEAST_LETTERS and not any(map(str.isdigit, level))
        ]
        return {spelling: level for level in reversed(long) for spelling in spellings(level)}

    def likely(self, level: str) -> str | None:
        """The common level that a rare one is a likely misspelling of."""
        return next(
            (
                self._spellings[spelling]
                for spelling in spellings(level)
                if spelling in self._spellings
            ),
            None,
        )

    def encode(self, values: Values) -> FloatArray:
        """Levels that are rare or new are "other"."""
        known = {level: place for place, level in enumerate(self.levels)}
        levels, codes = values.as_levels()
        # As another table may write them.
        otherwise = {"true": "1", "false": "0", "1": "true", "0": "false"}
        places = [
            known.get(level, known.get(otherwise.get(level, level), len(known))) for level in levels
        ]
        lengths = _length(np.array(self.shares))
        lengths[-2] = APART if self.apart else lengths[-2]
        numbers = np.diag(lengths)[[*places, -1]]  # of each level, and last what is missing
        for number, level in enumerate(levels):
            if places[number] == len(known) and self.misspelt and self.likely(level) is not None:
                # Apart from other misspellings, too.
                numbers[number, :-2] = (
                    np.random.default_rng(crc32(level.encode())).integers(-1, 2, len(known)) * APART
                )
                numbers[number, -2] = APART
        return numbers[codes]

    @property
    def has_texts(self) -> bool:
        return self.shares[-2] > 0

    def meant(self, z: FloatArray, text: str) -> str | None:
        """The common level that this rare one is a likely misspelling of."""
        return self.likely(text) if z[-2] else None

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """Rare levels have no code of their own."""
        if z[-1] > 0:
            return "missing"
        if not z[-2]:
            return repr(self.levels[int(np.argmax(z))])
        if text is None:
            return "is a rare value"
        likely = self.meant(z, text)
        return f"{quoted(text)}, which is rare{'' if likely is None else f' and likely means {likely!r}'}"

    def is_unusual(self, z: FloatArray) -> bool:
        return bool(z[-2]) or self.shares[int(np.argmax(z))] < RARE_LEVEL


def spellings(level: str) -> set[str]:
    """A text in small letters and without each of its letters but the first; those of two texts that differ by a letter that is
    missing, added, wrong or in another place have one in common.
    """
    text = level.casefold().strip()
    return {text, *(text[:i] + text[i + 1 :] for i in range(1, len(text)))}


@dataclass(frozen=True)
class Text:
    """A column of texts that differ: principal axes of TF-IDF counts of three letters, or of words if ``long``, and a place
    for texts that stand apart. ``shared`` are words (or three letters) that are not hardly ever seen; of the words of a text at
    least the share ``least`` is among them, or it stands apart.
    """

    name: str
    weights: FloatArray = field(repr=False, compare=False)
    axes: FloatArray = field(repr=False, compare=False)
    centre: FloatArray = field(repr=False, compare=False)
    scale: float
    missing: float
    shared: IntArray = field(repr=False, compare=False)
    least: float
    long: bool = False

    has_texts: ClassVar[bool] = True
    usually: ClassVar[str] = ""

    @classmethod
    def of(
        cls,
        name: str,
        levels: Sequence[str],
        codes: IntArray,
        weights: FloatArray,
        *,
        long: bool = False,
    ) -> Text:
        """The order of texts does not matter. Weights count as whole repetitions."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.preprocessing import normalize

        there = np.repeat(
            codes[codes >= 0], np.clip(np.rint(weights[codes >= 0]), 1, TEXT_ROWS).astype(np.intp)
        )
        texts = sorted(levels[code] for code in there.tolist())
        if len(texts) > TEXT_ROWS:
            texts = [
                texts[row]
                for row in np.random.default_rng(0).choice(len(texts), TEXT_ROWS, replace=False)
            ]
        words = _words(texts, long)
        counts = _counted(words, COUNTED_PLACES)
        tfidf = TfidfTransformer().fit(counts)
        weighted = tfidf.transform(counts)
        with np.errstate(
            invalid="ignore", divide="ignore"
        ):  # texts without a letter or word have no variance to be divided by
            svd = TruncatedSVD(min(100 if long else 8, weighted.shape[0] - 1), random_state=0).fit(
                weighted
            )
        Z = normalize(svd.transform(weighted)) if long else svd.transform(weighted)
        centre = Z.mean(axis=0)
        scale = _scale_of(Z - centre, np.ones(len(Z)))
        missing = float(weights[codes < 0].sum() / weights.sum())
        # A copy shares every word.
        is_new = [i == 0 or texts[i] != texts[i - 1] for i in range(len(texts))]
        different = words[np.flatnonzero(is_new)]
        in_texts = np.bincount(different.indices, minlength=WORD_PLACES)
        shared = np.flatnonzero(in_texts > max(1.0, HARDLY_EVER * different.shape[0]))
        least = SHARED_WORDS * float(np.median(_share_in(different, shared)))
        return cls(
            name,
            tfidf.idf_,
            svd.components_.astype(np.float32),
            centre,
            scale,
            missing,
            shared,
            least,
            long,
        )

    @property
    def how(self) -> str:
        return f"text, by its {'words' if self.long else 'letters'}"

    @property
    def width(self) -> int:
        return len(self.centre) + APART_PLACES + 1

    def encode(self, values: Values) -> FloatArray:
        from sklearn.preprocessing import normalize

        levels, codes = values.as_levels()
        Z = np.zeros((len(levels) + 1, self.width))  # the last row is for missing texts
        if levels:
            words = _words(levels, self.long)
            found = (
                normalize(_counted(words, COUNTED_PLACES) @ sp.diags_array(self.weights))
                @ self.axes.T
            )
            Z[:-1, : len(self.centre)] = (
                (normalize(found) if self.long else found) - self.centre
            ) / self.scale
            apart = np.flatnonzero(_share_in(words, self.shared) < self.least)
            Z[apart, len(self.centre) : -1] = _own_places(words[apart])
        Z[-1, -1] = _length(self.missing)
        return Z[codes]

    def value(self, z: FloatArray, text: str | None = None) -> str:
        """Texts cannot be read from their code."""
        if z[-1] > 0:
            return "missing"
        written = "is unlike others" if text is None else quoted(text)
        if not z[len(self.centre) : -1].any():
            return written
        return f"{written}, few of whose {'words' if self.long else 'letters'} are in other rows"

    def is_unusual(self, z: FloatArray) -> bool:
        return True  # no text is usual


@dataclass(frozen=True)
class Embedding:
    """A column of vectors: their differences from the mean, scaled so that two rows differ as two levels do."""

    name: str
    centre: FloatArray = field(repr=False, compare=False)
    scale: float
    missing: float

    how: ClassVar[str] = "embedding"
    has_texts: ClassVar[bool] = False
    usually: ClassVar[str] = ""

    @classmethod
    def of(cls, name: str, values: Values, weights: FloatArray) -> Embedding:
        assert values.numbers is not None
        vectors, w = values.numbers[~values.missing], weights[~values.missing]
        centre = np.average(vectors, axis=0, weights=w)
        return cls(
            name,
            centre,
            _scale_of(vectors - centre, w),
            float(weights[values.missing].sum() / weights.sum()),
        )

    @property
    def width(self) -> int:
        return len(self.centre) + 1

    def encode(self, values: Values) -> FloatArray:
        there = ~values.missing
        vectors = np.zeros(0) if values.numbers is None else values.numbers[there]
        if values.kind == "other" or (there.any() and vectors.shape[1:] != self.centre.shape):
            fault = f"column {self.name!r} must hold lists of {len(self.centre):,} finite numbers, as it did in fit"
            raise InvalidInputError(fault, "Compute its embedding again in the same way.")
        Z = np.zeros((len(there), self.width))
        if there.any():
            Z[there, :-1] = (vectors - self.centre) / self.scale
        Z[~there, -1] = _length(self.missing)
        return Z

    def value(self, z: FloatArray, text: str | None = None) -> str:
        return "missing" if z[-1] > 0 else "is unlike others"

    def is_unusual(self, z: FloatArray) -> bool:
        return True  # no vector is usual


Column: TypeAlias = Number | Category | Text | Embedding


def _scale_of(Z: FloatArray, weights: FloatArray) -> float:
    """√(2 mean ‖z‖²), by which the distances of rows are 1 on average; 1 if all are equal."""
    return float(np.sqrt(2 * np.average((Z**2).sum(axis=1), weights=weights))) or 1.0


def quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _length(share: Any) -> Any:
    """√(max(z², 1) / 2), where a normal value is beyond ±z with the probability ``share``, at least 1 in 10 000."""
    return np.sqrt(np.maximum(ndtri(np.maximum(share, NEVER_SEEN) / 2) ** 2, 1.0) / 2)


def is_long(texts: Sequence[str]) -> bool:
    """Whether half of the texts have at least eight words."""
    return bool(np.median([len(text.split()) for text in texts[:TEXT_ROWS]]) >= 8)


def _words(texts: Sequence[str], long: bool) -> Any:
    """How often each text has the words, or three letters, of each place: texts × places, sparse."""
    from sklearn.feature_extraction.text import HashingVectorizer

    words = {"token_pattern": rf"[{NO_SPACES}]|[^\W{NO_SPACES}]+"}  # also those of one letter
    parts: dict[str, Any] = words if long else {"analyzer": "char_wb", "ngram_range": (3, 3)}
    return HashingVectorizer(
        n_features=WORD_PLACES, alternate_sign=False, norm=None, **parts
    ).transform(texts)


def _counted(words: sp.csr_array, places: int) -> Any:
    """The same with fewer places."""
    counts = words.tocoo()
    return sp.csr_array(
        (counts.data, (counts.row, counts.col % places)), shape=(words.shape[0], places)
    )


def _share_in(words: sp.csr_array, shared: IntArray) -> FloatArray:
    """The share of the different words of each text that are among the shared ones; 0 for a text without a word."""
    is_shared = np.zeros(WORD_PLACES)
    is_shared[shared] = 1.0
    return np.asarray((words > 0) @ is_shared / np.maximum(np.diff(words.indptr), 1))


def _own_places(words: sp.csr_array) -> FloatArray:
    """Points at the distance APART from 0, each in a direction of its own words, in which all texts without a word have one."""
    found = _counted(words, 2 * APART_PLACES).toarray()
    found = found[:, :APART_PLACES] - found[:, APART_PLACES:]
    found[~found.any(axis=1), 0] = 1.0
    return np.asarray(APART * found / np.linalg.norm(found, axis=1, keepdims=True))


def quantiles(
    x: FloatArray, shares: Sequence[float], weights: FloatArray, *, nearest: bool = False
) -> FloatArray:
    """Quantiles of numbers; a weight of 2 is the same as a number twice."""
    if (weights == 1).all():
        return np.quantile(x, shares, method="nearest" if nearest else "linear")
    order = np.argsort(x, kind="stable")
    ends = np.cumsum(weights[order])
    # In the numbers as often as they count, sorted.
    place = np.maximum(np.asarray(shares) * (ends[-1] - 1.0), 0.0)
    low = np.rint(place) if nearest else np.floor(place)

    def at(places: FloatArray) -> FloatArray:
        return x[order][np.minimum(np.searchsorted(ends, places, side="right"), len(x) - 1)]

    return at(low) if nearest else at(low) + (place - low) * (at(low + 1) - at(low))


def _unit_of_logarithm(there: FloatArray, weights: FloatArray) -> float | None:
    """The unit q of log(1 + x/q) where numbers are never negative and that makes them clearly more symmetric; else None."""
    if there.min() < 0 or len(np.unique(there)) <= 10:  # a scale of few steps
        return None
    positive = there > 0
    unit = float(quantiles(there[positive], MIDDLE[:1], weights[positive])[0])
    with np.errstate(over="ignore"):
        t = np.log1p(there / unit)
    less = np.isfinite(t).all() and _asymmetry(t, weights) < _asymmetry(there, weights) - 0.2
    return unit if less else None


def _asymmetry(x: FloatArray, weights: FloatArray) -> float:
    """|q05 + q95 − 2 q50| / (q95 − q05), between 0 and 1."""
    low, median, high = quantiles(x, MIDDLE, weights)
    return float(abs(low + high - 2 * median) / (high - low)) if high > low else 0.0
