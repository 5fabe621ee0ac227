"""Drift: which columns of rows have other values than those of earlier rows, by more than chance, and which only move on.

Each column has tests of its own, and so has each pair of columns that did not move. p-values are times the number of tests
(Bonferroni), of columns and of pairs apart. How much a column moved is a share of the rows, so that all can be put in order.
Ours; ``benchmarks/results/drift.md`` has the measurements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp

from mosaic.arrays.blocks import BoolArray, IntArray
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
    p_value: float
    share: float
    test: str


@dataclass(frozen=True)
class Drift:
    """The changes of which one or more would be found by chance with less than the probability LEVEL, largest first; columns that
    only move on; and the least p-value.
    """

    changes: tuple[Change, ...]
    moves_on: tuple[str, ...]
    p_value: float
    is_all: bool  # whether all columns only move on

    def staying(self, rows: Rows) -> Rows:
        """The rows without columns that only move on, unless all do."""
        if self.is_all or not self.moves_on:
            return rows
        compared = tuple(name for name in rows.roles.compared if name not in self.moves_on)
        return replace(rows, roles=replace(rows.roles, compared=compared))


def columns_tested(rows: Rows) -> Sequence[str]:
    """The columns whose drift is looked for."""
    return rows.table.columns if isinstance(rows.table, InArray) else rows.roles.compared


def drift_of(rows: Rows, others: Rows) -> Drift:
    """What moved from ``rows`` to ``others``, which have the same columns."""
    names = columns_tested(rows)
    deciding = rows.deciding_cells(names)[0] if names else {}
    single: list[Change] = []
    moves_on: list[str] = []
    parts: dict[str, tuple[IntArray, IntArray]] = {}
    for name, values in deciding.items():
        rule = rule_of(name, values, forced=True)
        if isinstance(rule, Embedding) or values.kind == "other":
            continue
        if isinstance(rule, LeftOut):  # the same in every row
            rule = Category(name, (), ())
        old = _read(rule, rows)
        new = _read(rule, others)
        if isinstance(rule, Number) and rule.has_time:
            single.append(_of_levels(name, "hour of the day", _hours(old), _hours(new)))
        if _only_moves_on(rule, old, new):
            moves_on.append(name)
            continue
        single += _changes(rule, old, new)
        if not isinstance(rule, Text):
            parts[name] = _parts(rule, old, old), _parts(rule, new, old)
    single = corrected(single)
    moved = {change.column for change in single if change.p_value < LEVEL}
    still = [name for name in parts if name not in moved][:PAIRED_COLUMNS]
    pairs = corrected([_of_pair(a, b, parts) for a, b in combinations(still, 2)])
    tests = [*single, *pairs]
    found = [change for change in tests if change.p_value < LEVEL]
    return Drift(
        tuple(sorted(found, key=lambda change: -change.share)),
        tuple(moves_on),
        min((change.p_value for change in tests), default=1.0),
        is_all=bool(moves_on) and len(moves_on) == len(names),
    )


def corrected(changes: Sequence[Change]) -> list[Change]:
    """The same with p-values for their number, and for that of the kinds of tests."""
    times = KINDS_OF_TESTS * len(changes)
    return [replace(change, p_value=min(1.0, times * change.p_value)) for change in changes]


def _read(rule: Number | Category | Text, rows: Rows) -> NDArray[Any]:
    """The cells of a column: of numbers what ``Number.read`` gives, else texts, empty where missing."""
    found = []
    for cells in rows.table.blocks([rule.name]):
        values = cells[rule.name]
        if isinstance(rule, Number):
            found.append(np.column_stack(rule.read(values)))
        else:
            levels, codes = values.as_levels()
            found.append(np.array([*levels, ""], object)[codes])
    return np.concatenate(found)


def _there(cells: NDArray[Any]) -> NDArray[Any]:
    """The numbers or texts of the cells that are not missing."""
    return np.asarray(cells[cells != ""] if cells.ndim == 1 else cells[np.isfinite(cells[:, 0]), 0])


def _only_moves_on(rule: Number | Category | Text, *cells: NDArray[Any]) -> bool:
    """Whether dates, or whole numbers that are all different, are later throughout, over a range of a similar length."""
    x, y = map(_there, cells)
    if not isinstance(rule, Number):
        return bool(PERIODS.search(rule.name)) and len(set(x)) == len(set(y)) == 1
    if not len(x) or not len(y):
        return False
    is_counter = y.min() > x.max() and all(
        (each % 1 == 0).all() and len(np.unique(each)) == len(each) for each in (x, y)
    )
    before, after = (np.quantile(each, (0.05, 0.5, 0.95)) for each in (x, y))
    lengths = before[2] - before[0], after[2] - after[0]
    is_later = (
        (after >= before).all()
        and max(lengths) <= SIMILAR * min(lengths)
        and ks_2samp(x, y).pvalue < LEVEL
    )
    return bool(is_later and (is_counter or rule.has_time is not None))


def _changes(
    rule: Number | Category | Text, old: NDArray[Any], new: NDArray[Any]
) -> Iterator[Change]:
    """All tests of one column."""
    name, x, y = rule.name, _there(old), _there(new)
    if not isinstance(rule, Number):
        yield _of_shares(name, "missing", old == "", new == "")
        yield (_of_levels if isinstance(rule, Category) else _of_words)(name, "values", x, y)
        return
    is_odd = [each[:, 1] != 0 for each in (old, new)]
    yield _of_shares(
        name, "missing", *(np.isnan(each[:, 0]) & (each[:, 1] == 0) for each in (old, new))
    )
    yield _of_shares(name, "written unlike the others, or unreadable", *is_odd)
    if not len(x) or not len(y):
        return
    test = ks_2samp(x, y)
    before, after = (f"median {rule.shown(float(np.median(each)))}" for each in (x, y))
    yield Change(
        name,
        "values",
        before,
        after,
        float(test.pvalue),
        float(test.statistic),
        "Kolmogorov-Smirnov",
    )
    low, high = rule.possible
    yield _of_shares(
        name, "apart from the others", *((each < low) | (each > high) for each in (x, y))
    )
    if test.pvalue >= LEVEL:  # else other values repeat, too
        yield _of_levels(name, "single values", x, y, lambda x: rule.shown(float(x)))


def _hours(cells: NDArray[Any]) -> NDArray[Any]:
    return (24 * (_there(cells) % 1)).astype(int)


def _of_pair(a: str, b: str, parts: dict[str, tuple[IntArray, IntArray]]) -> Change:
    """χ² of the sixteen combinations of the parts of two columns."""
    of_both = (4 * first + second for first, second in zip(parts[a], parts[b], strict=True))
    counts = [np.bincount(each, minlength=16) for each in of_both]
    return Change(f"{a} with {b}", "how they go together", "", "", *chi2(*counts))


def _of_shares(name: str, what: str, old: BoolArray, new: BoolArray) -> Change:
    p = fisher_exact([[each.sum(), (~each).sum()] for each in (old, new)]).pvalue
    shares = [float(each.mean()) if len(each) else 0.0 for each in (old, new)]
    before, after = (f"{100 * share:.3g} %" for share in shares)
    return Change(
        name, what, before, after, float(p), abs(shares[1] - shares[0]), "exact test of shares"
    )


def _of_levels(
    name: str, what: str, old: NDArray[Any], new: NDArray[Any], called: Callable[[Any], str] = repr
) -> Change:
    """χ² of values that repeat; the two whose shares changed most are told."""
    levels, codes = np.unique(np.concatenate([old, new]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(levels)) for part in np.split(codes, [len(old)])]
    shares = [100 * each / max(each.sum(), 1) for each in counts]
    most = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:2].tolist()
    before, after = (
        ", ".join(f"{called(levels.tolist()[place])} {of[place]:.3g} %" for place in most)
        for of in shares
    )
    return Change(name, what, before, after, *chi2(*counts))


def _of_words(name: str, what: str, old: NDArray[Any], new: NDArray[Any]) -> Change:
    """The shares of texts with a word: of all words that are not in a few texts only, the one whose share changed most."""
    words = [[set(re.findall(r"\w+", text.casefold())) for text in each] for each in (old, new)]
    before, after = (Counter(chain.from_iterable(each)) for each in words)
    known = sorted(word for word, count in (before + after).items() if count >= FEW_ROWS)

    def moved(word: str) -> float:
        shares = before[word] / max(len(old), 1), after[word] / max(len(new), 1)
        return abs(shares[1] - shares[0]) / float(np.sqrt(sum(shares)))

    most = max(known, key=moved, default="")
    found = _of_shares(
        name,
        f"texts with {most!r}",
        *(np.array([most in one for one in each], bool) for each in words),
    )
    return replace(found, p_value=min(1.0, max(len(known), 1) * found.p_value))


def chi2(old: IntArray, new: IntArray) -> tuple[float, float, str]:
    """The p-value of counts that may be of one distribution, by how much their shares differ, ½ Σ |p − q|, and the test."""
    counts = np.array([old, new])
    few = counts.sum(axis=0) * counts.sum(axis=1).min() < FEW_ROWS * counts.sum() / 2
    counts = np.column_stack([counts[:, ~few], counts[:, few].sum(axis=1)])
    counts = counts[:, counts.any(axis=0)]
    if counts.shape[1] < 2 or not counts.any(axis=1).all():
        return 1.0, 0.0, "χ²"
    shares = counts / counts.sum(axis=1, keepdims=True)
    return (
        float(chi2_contingency(counts, correction=False).pvalue),
        float(np.abs(shares[0] - shares[1]).sum() / 2),
        "χ²",
    )


def _parts(rule: Number | Category, cells: NDArray[Any], old: NDArray[Any]) -> IntArray:
    """The cells of a column in four parts: quarters of the old numbers, or the three most frequent levels and the others."""
    if isinstance(rule, Category):
        parts = {level: place for place, level in enumerate(rule.levels[:3])}
        return np.array([parts.get(text, 3) for text in cells], np.intp)
    return np.searchsorted(np.quantile(_there(old), (0.25, 0.5, 0.75)), cells[:, 0])
