"""Questions about rows beside one another: what changed between two tables, and which rows are copies of others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.arrays.codes import rows_equal
from mosaic.arrays.xp import on_host
from mosaic.choosing import counted, percent
from mosaic.door import as_points
from mosaic.estimators.fit import numbers_of
from mosaic.estimators.fitted import NewRows
from mosaic.estimators.selector import MOSAIC
from mosaic.exceptions import PYTHON, InvalidInputError, MemoryBudgetError
from mosaic.parameters import as_bytes, real_number
from mosaic.rows import Encoder, Rows
from mosaic.rows.copies import NEAR_NUMBERS, ComparedCells, copies_of_pictures, settled
from mosaic.rows.drift import KINDS_OF_TESTS, LEVEL, Change, Drift, chi2, columns_tested, drift_of
from mosaic.rows.faults import close_to
from mosaic.rows.kinds import Embedding
from mosaic.rows.tables import InMemory
from mosaic.text import listed


@dataclass(frozen=True)
class Comparison:
    """What changed between the rows of a fit and other rows.

    Attributes
    ----------
    changes : columns, values and pairs of columns that moved, those that moved most first: ``column``, ``what``, ``before``,
        ``after``, ``p_value``, ``share`` of the rows, and ``test``
    moves_on : columns that only move on, such as dates and counters, which are not compared
    rows : the representatives, by how much the share of the rows that they stand for has changed
    share, share_in_other : of all rows, and of all other rows, those that each of them stands for
    outlier_shares : outliers among the rows, and among the other rows
    n_rows : how many rows there are, and how many other rows
    p_value : how often chance alone makes as large a difference between rows of one kind, at most
    model : the fitted estimator
    """

    changes: tuple[Change, ...]
    moves_on: tuple[str, ...]
    rows: IntArray
    share: FloatArray
    share_in_other: FloatArray
    outlier_shares: tuple[float, float]
    n_rows: tuple[int, int]
    p_value: float
    model: MOSAIC

    def __str__(self) -> str:
        verdict = "The other rows differ no more than by chance"
        if self.changes:
            columns = dict.fromkeys(change.column for change in self.changes)
            verdict = f"The other rows differ, most in {listed(list(columns), 5)}"
        elif self.p_value < LEVEL:
            verdict = "The other rows differ in which rows there are, not in one column"
        aside = ""
        if self.moves_on:
            aside = f" {listed(self.moves_on)} only move{'s' * (len(self.moves_on) == 1)} on."
        share, share_in_other = map(percent, self.outlier_shares)
        n, n_other = self.n_rows
        outliers = (
            f"{share} of {counted(n, 'row')}, {share_in_other} of {counted(n_other, 'other row')}"
        )
        return f"{verdict} ({p_text(self.p_value)}).{aside} Outliers: {outliers}."

    __repr__ = __str__


def p_text(p: float) -> str:
    return "p < 0.001" if p < 1e-3 else f"p = {p:.2g}"


def _counts(placed: NewRows, picks: IntArray) -> IntArray:
    """Rows of each pick, and last the outliers."""
    return np.asarray((placed.representative[:, None] == np.append(picks, -1)).sum(axis=0), np.intp)


def compare(
    X: object, other: object, *, fit_params: dict[str, Any] | None = None, **settings: Any
) -> Comparison:
    """What changed between X and other rows with the same columns: which columns moved, and which representatives grew or shrank.

    The answer prints as sentences. It has the columns, values and pairs of columns that moved in ``changes``, each with its test,
    and columns that only move on in ``moves_on``. For each representative, those of the largest change first, it has the row
    number in ``rows``, and in ``share`` and ``share_in_other`` the rows that it stands for.

    Parameters
    ----------
    X, other : as for ``MOSAIC.fit``
    fit_params : arguments of ``MOSAIC.fit``: sample_weight, must_include, …
    **settings : parameters of ``MOSAIC``

    Examples
    --------
    >>> import mosaic
    >>> X = mosaic.datasets.swiss_roll(300)
    >>> print(mosaic.compare(X, X[X[:, 0] > 0.0], n_representatives=5))  # doctest: +ELLIPSIS
    The other rows differ, most in x0 (p < 0.001). Outliers: 0 % of 300 rows, 0 % of ... other rows.
    """
    budget = as_bytes(settings.get("memory_budget"))
    rows = Rows.of(X, memory_budget=budget)
    with faults_of("other"):
        others = Rows.of(other, memory_budget=budget)
    drift = moved_columns(rows, others)
    rows = drift.staying(rows)
    model = MOSAIC(**settings).fit(rows, **(fit_params or {}))
    picks = model.selection_.rows
    here = model.explain_new(rows)
    with faults_of("other", others):
        there = model.explain_new(others)
    counts = _counts(here, picks)
    other_counts = _counts(there, picks)
    share = counts[:-1] / len(here)
    share_in_other = other_counts[:-1] / len(there)
    order = np.argsort(-np.abs(share_in_other - share), kind="stable")
    # Where all columns only move on, so do the rows.
    of_rows = 1.0 if drift.is_all else KINDS_OF_TESTS * chi2(counts, other_counts)[0]
    return Comparison(
        changes=drift.changes,
        moves_on=drift.moves_on,
        rows=picks[order],
        share=share[order],
        share_in_other=share_in_other[order],
        outlier_shares=(float(here.is_outlier.mean()), float(there.is_outlier.mean())),
        n_rows=(len(here), len(there)),
        p_value=min(drift.p_value, of_rows),
        model=model,
    )


def moved_columns(rows: Rows, others: Rows) -> Drift:
    """What moved from ``rows`` to ``others``, which must have the columns that are compared."""
    for name, each in {"X": rows, "other": others}.items():
        with faults_of(name, each):
            if each.array is not None and not each.stays:
                as_points(each.array, name)
    there = others.table.columns
    missing = [column for column in columns_tested(rows) if column not in there]
    with faults_of("other", others):
        if missing:
            names = listed(list(map(repr, missing)))
            has = listed(there) or "no columns"
            fault = f"lacks {names}, by which rows are compared; it has {has}"
            remedy = f"{close_to(missing[0], there)}Add or rename columns."
            raise InvalidInputError(fault, remedy, parameter="X")
    return drift_of(rows, others)


@contextmanager
def faults_of(name: str, rows: Rows | None = None) -> Iterator[None]:
    """Context in which faults of X are those of other rows: of their file, or of the parameter with this name."""
    try:
        yield
    except InvalidInputError as error:
        if error.parameter not in ("X", name):
            raise
        fault = PYTHON(error.fault)
        remedy = re.sub(r"\bX\b", name, error.remedy or "")
        if rows is not None and rows.request.is_of_file:
            raise rows.request.fault(fault, remedy) from error
        raise InvalidInputError(fault, remedy or None, parameter=name) from error


@dataclass(frozen=True)
class Copies:
    """Rows that repeat an earlier one.

    Attributes
    ----------
    rows : the copies
    copy_of : for each the first row that it repeats, which is none itself
    is_exact : whether all cells that are compared are equal
    equal_cells, differs : of tables how many these are, and the others with both values; empty for other rows
    n_rows : number of all rows
    encoder : how columns are read
    """

    rows: IntArray
    copy_of: IntArray
    is_exact: BoolArray
    equal_cells: tuple[str, ...]
    differs: tuple[str, ...]
    n_rows: int
    encoder: Encoder

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        n_exact = int(self.is_exact.sum())
        copies = "1 copy" if len(self) == 1 else f"{len(self):,} copies"
        return f"{copies} among {counted(self.n_rows, 'row')}: {n_exact:,} exact, {len(self) - n_exact:,} near."

    __repr__ = __str__

    @property
    def kept(self) -> IntArray:
        """All other rows."""
        return np.setdiff1d(np.arange(self.n_rows), self.rows)


def dedup(
    X: object, *, near: float | None = None, memory_budget: float | str | None = None
) -> Copies:
    """Rows that repeat an earlier one, exactly or nearly: cells of tables, words of texts, pictures that were turned, numbers.

    ``mosaic.rows.copies`` has the rules. Numbers are near copies if they are nearer than ``near`` × the distance at which a row
    usually has ten neighbours, and nearer than by chance: in d dimensions, one row in a thousand has a neighbour within
    1e-4^(1/d) of that distance r10. Half as many neighbours are within r5 = 2^(-1/d) r10, which gives d. The rules are ours.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``, in memory
    near : how much copies may differ: the share of the cells of tables (0.2 by default), 1 − the cosine of long texts (0.4),
        1 − the correlation of pictures (0.03), a share of the distance of numbers (0.1)
    memory_budget : as for ``MOSAIC``

    Examples
    --------
    >>> import numpy as np
    >>> import mosaic
    >>> X = mosaic.datasets.swiss_roll(300)
    >>> found = mosaic.dedup(np.vstack([X, X[7] + 1e-6]))
    >>> print(found, found.rows, found.copy_of)
    1 copy among 301 rows: 0 exact, 1 near. [300] [7]
    """
    rows = Rows.of(X, memory_budget=as_bytes(memory_budget))
    table = rows.table
    has_cells = rows.array is None and rows.request.embedding is None
    compared = None
    if has_cells and isinstance(table, InMemory):
        compared = ComparedCells(table.cells(rows.roles.compared))
    is_constant = compared is not None and compared.is_constant
    encoder = Encoder() if is_constant else Encoder.fit(rows)
    has_numbers = all(isinstance(column, Embedding) for column in encoder.columns)
    is_of_numbers = has_numbers and not is_constant and rows.pictures_of is None
    if near is not None:
        real_number("near", near, above=0, below=math.inf if is_of_numbers else 1.0)
    if rows.stays:
        fault = f"copies are looked for in memory, where the rows of this {rows.kind} are not"
        if rows.request.is_of_file:
            raise MemoryBudgetError(fault, "Raise `memory_budget`.")
        raise InvalidInputError(fault, "Take them there first: X.compute(), X.to_pandas().")
    original = np.full(rows.n, -1)
    numbers: Any = None
    if compared is not None:
        original = compared.copies(None if is_of_numbers else near)
    if rows.pictures_of is not None:
        side = rows.request.image_size
        numbers = rows.array[:, :-2]
        original = copies_of_pictures(numbers.reshape(rows.n, side, side, -1), near)
    elif is_of_numbers:
        model = MOSAIC(1, outliers="keep", memory_budget=memory_budget).fit(rows)
        numbers = on_host(model.selection_.data.geometry.prepare(numbers_of(model, rows)))
        original = settled(original, _near_numbers(numbers, near))
    copies = np.flatnonzero(original >= 0)
    of = original[copies]
    if compared is None or not compared.names:
        is_exact = rows_equal(numbers[copies], numbers[of])
        return Copies(copies, of, is_exact, (), (), rows.n, encoder)
    unlike = compared.unlike(copies, of)
    is_exact = np.array([not columns for columns in unlike], bool)
    m = len(compared.names)
    equal_cells = tuple(f"{m - len(columns)} of {m}" for columns in unlike)
    both = zip(rows.cells(copies).to_pylist(), rows.cells(of).to_pylist(), unlike, strict=True)
    differs = []
    for a, b, columns in both:  # lists are too long to be shown
        cells = [c if isinstance(a[c], list) else f"{c}: {a[c]} / {b[c]}" for c in columns]
        differs.append("; ".join(cells))
    return Copies(copies, of, is_exact, equal_cells, tuple(differs), rows.n, encoder)


def _near_numbers(X: Any, share: float | None) -> IntArray:
    """Pairs of rows that are nearly equal, the earlier first."""
    search = NearestNeighbors().fit(X)
    radius = 0.0
    if X.shape[0] > 10:
        half, usual = np.median(search.kneighbors(n_neighbors=10)[0][:, [4, 9]], axis=0)
        by_chance = 1e-4 ** (np.log(usual / half) / np.log(2.0)) if half > 0 else 1.0
        if share is not None and share > by_chance:
            fault = f"has no effect above {by_chance:.2g}, where rows are near by chance"
            raise InvalidInputError(fault, "Give a lower share.", parameter="near", value=share)
        radius = float(usual * min(NEAR_NUMBERS if share is None else share, by_chance))
    pairs = np.column_stack(search.radius_neighbors_graph(X, radius).nonzero())
    return pairs[pairs[:, 0] < pairs[:, 1]]
