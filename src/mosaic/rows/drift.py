"""Drift: which columns of rows have other values than those of earlier rows, by more than chance, and which only move on.

Each column has tests of its own, and so has each pair of columns that did not move. p-values are times the number of tests
(Bonferroni), of columns and of pairs apart. How much a column moved is a share of the rows, so that all can be put in order.
Ours; ``benchmarks/results/drift.md`` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2 as chi2_of
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.rows.frames import Cells, cells_of
from mosaic.rows.kinds import Category, Embedding, Number, Text
from mosaic.rows.rows import Rows
from mosaic.rows.rules import LeftOut, rule_of
from mosaic.rows.tables import InArray

#: Probability at which files that do not differ are said to.
LEVEL = 0.01
#: Tests are of columns, of pairs of columns, and of which rows there are.
KINDS_OF_TESTS = 3
#: Rows that a value has in both tables together, or it counts as one of the others.
FEW_ROWS = 10
#: Columns of which pairs are compared, the first ones.
PAIRED_COLUMNS = 30
#: How much wider or narrower the range of dates or counters may become that only move on.
SIMILAR = 5.0
#: Columns that are called so and the same in every row say which rows these are.
PERIODS = re.compile(r"year|quarter|month|week|day|date|period|batch", re.I)


@dataclass(frozen=True)
class Change:
    """What a test of one column, or two, says: from what to what it moved, in which share of the rows, and whether by chance."""

    column: str
    what: str
    before: str
    after: str
    share: float
    test: str
    p_value: float


@dataclass(frozen=True)
class Drift:
    """The changes of which one or more would be found by chance with less than the probability LEVEL, largest first; columns that
    only move on; and the least p-value.
    """

    changes: tuple[Change, ...]
    moves_on: tuple[str, ...]
    p_value: float


def drift_of(rows: Rows, others: Rows) -> Drift:
    """What moved from ``rows`` to ``others``, which have the same columns."""
    names = list(rows.roles.compared)
    if isinstance(rows.table, InArray):
        names = list(rows.table.columns)
    if not names or rows.pictures_of is not None:
        return Drift((), (), 1.0)
    deciding = next(_pieces(rows, names)) if isinstance(rows.table, InArray) else rows.deciding_cells(names)[0]
    found: list[Change] = []
    moves_on: list[str] = []
    still: dict[str, list[IntArray]] = {}
    for name in names:
        values = deciding[name]
        rule = rule_of(name, values, forced=True)
        if isinstance(rule, Embedding) or values.kind == "other" or values.missing.all():
            continue
        if isinstance(rule, LeftOut):  # the same in every row
            rule = Category(name, (), (0.0, 0.0))
        both = [_read(rule, each, name) for each in (rows, others)]
        is_period = PERIODS.search(name) and all(len(set(each.tolist())) == 1 for each in both)
        if isinstance(rule, Number) and rule.has_time:
            hours = ((24 * (each[np.isfinite(each[:, 0]), 0] % 1)).astype(int) for each in both)
            found.append(_of_levels(name, "hour of the day", *hours))
        if is_period or _only_moves_on(rule, *both):
            moves_on.append(name)
            continue
        found += _changes(rule, *both)
        parts = _parts(rule, *both)
        if parts is not None:
            still[name] = parts
    found = corrected(found)
    moved = {change.column for change in found if change.p_value < LEVEL}
    together = []
    for a, b in combinations([name for name in still if name not in moved][:PAIRED_COLUMNS], 2):
        cells = [4 * first + second for first, second in zip(still[a], still[b], strict=True)]
        p, share = chi2(*(np.bincount(each, minlength=16) for each in cells))
        together.append(Change(f"{a} with {b}", "how they go together", "", "", share, "χ²", p))
    found += corrected(together)
    told = sorted((change for change in found if change.p_value < LEVEL), key=lambda change: -change.share)
    return Drift(tuple(told), tuple(moves_on), min((change.p_value for change in found), default=1.0))


def corrected(changes: Sequence[Change]) -> list[Change]:
    """The same with p-values for their number, and for that of the kinds of tests."""
    times = KINDS_OF_TESTS * len(changes)
    return [replace(change, p_value=min(1.0, times * change.p_value)) for change in changes]


def _pieces(rows: Rows, names: Sequence[str]) -> Iterator[Cells]:
    assert rows.table is not None
    if isinstance(rows.table, InArray):
        return iter([cells_of(rows.table.take(np.arange(rows.n), names))])
    return rows.table.blocks(names)


def _read(rule: Number | Category | Text, rows: Rows, name: str) -> NDArray[Any]:
    """The cells of a column: of numbers what ``Number.read`` gives, of categories texts, empty where missing, else codes."""
    found = []
    for cells in _pieces(rows, [name]):
        values = cells[name]
        if isinstance(rule, Number):
            found.append(np.column_stack(rule.read(values)))
        else:
            levels, codes = values.as_levels()
            found.append(np.array([*levels, ""], object)[codes])
    return np.concatenate(found)


def _only_moves_on(rule: Number | Category | Text, old: NDArray[Any], new: NDArray[Any]) -> bool:
    """Whether dates, or whole numbers that are all different, are later throughout, over a range of a similar length."""
    if not isinstance(rule, Number):
        return False
    x, y = (each[np.isfinite(each[:, 0]), 0] for each in (old, new))
    if not len(x) or not len(y):
        return False
    is_counter = all((each % 1 == 0).all() and len(np.unique(each)) == len(each) for each in (x, y)) and y.min() > x.max()
    before, after = (np.quantile(each, (0.05, 0.5, 0.95)) for each in (x, y))
    lengths = before[2] - before[0], after[2] - after[0]
    is_later = (after >= before).all() and after[1] > before[1] and max(lengths) <= SIMILAR * min(lengths)
    return bool(is_later and (is_counter or rule.has_time is not None) and float(ks_2samp(x, y).pvalue) < LEVEL)


def _changes(rule: Number | Category | Text, old: NDArray[Any], new: NDArray[Any]) -> Iterator[Change]:
    """All tests of one column."""
    name = rule.name
    if isinstance(rule, Category | Text):
        yield (_of_levels if isinstance(rule, Category) else _of_words)(name, "values", old[old != ""], new[new != ""])
        yield _of_shares(name, "missing", old == "", new == "")
        return
    is_odd = [each[:, 1] != 0 for each in (old, new)]
    gone = [~np.isfinite(each[:, 0]) for each in (old, new)]
    yield _of_shares(name, "missing", gone[0] & ~is_odd[0], gone[1] & ~is_odd[1])
    if is_odd[0].any() or is_odd[1].any():
        yield _of_shares(name, "written unlike the others, or unreadable", *is_odd)
    x, y = (each[~out, 0] for each, out in zip((old, new), gone, strict=True))
    if not len(x) or not len(y):
        return
    test = ks_2samp(x, y)
    before, after = (f"median {rule.shown(float(np.median(each)))}" for each in (x, y))
    yield Change(name, "values", before, after, float(test.statistic), "Kolmogorov-Smirnov", float(test.pvalue))
    low, high = rule.possible
    yield _of_shares(name, "apart from the others", *((each < low) | (each > high) for each in (x, y)))
    if test.pvalue >= LEVEL:  # else other values repeat, too
        yield _of_levels(name, "single values", x, y, rule)


def _of_shares(name: str, what: str, old: BoolArray, new: BoolArray) -> Change:
    counts = [[int(each.sum()), int((~each).sum())] for each in (old, new)]
    before, after = float(old.mean()), float(new.mean())
    p = float(fisher_exact(counts).pvalue)
    return Change(name, what, f"{100 * before:.3g} %", f"{100 * after:.3g} %", abs(after - before), "exact test of shares", p)


def _of_levels(name: str, what: str, old: NDArray[Any], new: NDArray[Any], rule: Number | None = None) -> Change:
    """χ² of values that repeat; the two whose shares changed most are told."""
    levels, codes = np.unique(np.concatenate([old, new]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(levels)) for part in np.split(codes, [len(old)])]
    p, share = chi2(*counts)
    shares = [each / max(each.sum(), 1) for each in counts]
    most = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:2]

    def told(of: FloatArray) -> str:
        called = [rule.shown(float(level)) if rule is not None else repr(level) for level in levels[most].tolist()]
        return ", ".join(f"{level} {100 * of[place]:.3g} %" for level, place in zip(called, most, strict=True))

    return Change(name, what, told(shares[0]), told(shares[1]), share, "χ²", p)


def _of_words(name: str, what: str, old: NDArray[Any], new: NDArray[Any]) -> Change:
    """χ² of the texts with and without a word, for each word that is not in a few texts only; the most surprising one is told."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(binary=True, token_pattern=r"\w+")
    if not any(map(re.compile(r"\w").search, [*old, *new])):
        return Change(name, what, "", "", 0.0, "χ²", 1.0)
    found = vectorizer.fit_transform([*old, *new])
    counts = np.array([np.asarray(part.sum(axis=0)).ravel() for part in (found[: len(old)], found[len(old) :])])
    sizes, together = np.array([[len(old)], [len(new)]]), counts.sum(axis=0)
    expected, shares = together / sizes.sum(), counts / np.maximum(sizes, 1)
    is_tested = np.minimum(together, sizes.sum() - together) >= FEW_ROWS
    spread = np.where(is_tested, expected * (1 - expected) * (1 / np.maximum(sizes, 1)).sum(), np.inf)
    statistic = (shares[1] - shares[0]) ** 2 / spread
    most = int(np.argmax(statistic))
    told = [f"{vectorizer.get_feature_names_out()[most]!r} in {100 * share:.3g} %" for share in shares[:, most]]
    p = min(1.0, is_tested.sum() * float(chi2_of.sf(statistic[most], 1)))
    return Change(name, what, told[0], told[1], float(np.abs(shares[1] - shares[0])[most]), "χ²", p)


def chi2(old: IntArray, new: IntArray) -> tuple[float, float]:
    """The p-value of counts that may be of one distribution, and by how much the shares differ: ½ Σ |p − q|."""
    counts = np.array([old, new])
    few = counts.sum(axis=0) * counts.sum(axis=1).min() < FEW_ROWS * counts.sum() / 2
    together = counts[:, few].sum(axis=1)
    counts = np.column_stack([counts[:, ~few], *([together] if together.any() else [])])
    if counts.shape[1] < 2 or not counts.sum(axis=1).all():
        return 1.0, 0.0
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(chi2_contingency(counts, correction=False).pvalue), float(np.abs(shares[0] - shares[1]).sum() / 2)


def _parts(rule: Number | Category | Text, old: NDArray[Any], new: NDArray[Any]) -> list[IntArray] | None:
    """The cells of a column in four parts: quarters of the old numbers, or the three most frequent levels and the others."""
    if isinstance(rule, Category):
        parts = {level: place + 1 for place, level in enumerate(rule.levels[:3])}
        return [np.array([parts.get(text, 0) for text in each], np.intp) for each in (old, new)]
    if not isinstance(rule, Number):
        return None
    ends = np.nanquantile(np.where(np.isfinite(old[:, 0]), old[:, 0], np.nan), (0.25, 0.5, 0.75))
    return [np.searchsorted(ends, each[:, 0]) for each in (old, new)]
