"""Questions about rows beside one another: what changed between two tables, and which rows are near copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.neighbors import NearestNeighbors

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.sources import Source
from mosaic.arrays.xp import on_host
from mosaic.choosing import counted, percent
from mosaic.estimators.fit import numbers_of
from mosaic.estimators.fitted import NewRows
from mosaic.estimators.selector import MOSAIC, BaseSelector
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import real_number
from mosaic.rows import Rows

#: Rows of a representative in both tables together, below which it is counted together with others in the test of chance.
FEW_ROWS = 10


@dataclass(frozen=True)
class Comparison:
    """What changed between the rows of a fit and other rows.

    Attributes
    ----------
    rows : the representatives, by how much the share of the rows that they stand for has changed
    share, share_in_other : of all rows, and of all other rows, those that each of them stands for
    outlier_shares : outliers among the rows, and among the other rows
    mean_similarities : of the rows that are no outliers, and of such other rows, to their representatives
    n_rows : how many rows there are, and how many other rows
    p_value : how often chance alone makes as large a difference between rows of one kind
    model : the fitted estimator
    """

    rows: IntArray
    share: FloatArray
    share_in_other: FloatArray
    outlier_shares: tuple[float, float]
    mean_similarities: tuple[float, float]
    n_rows: tuple[int, int]
    p_value: float
    model: BaseSelector

    @classmethod
    def of(cls, model: BaseSelector, X: object, other: object) -> Comparison:
        """By the representatives of a model that was fitted to X."""
        picks = model.selection_.rows
        here, there = model.explain_new(X), model.explain_new(other)
        counts, other_counts = _counts(here, picks), _counts(there, picks)
        share, share_in_other = counts[:-1] / len(here), other_counts[:-1] / len(there)
        order = np.argsort(-np.abs(share_in_other - share), kind="stable")
        return cls(
            rows=picks[order],
            share=share[order],
            share_in_other=share_in_other[order],
            outlier_shares=(float(here.is_outlier.mean()), float(there.is_outlier.mean())),
            mean_similarities=(_mean_similarity(here), _mean_similarity(there)),
            n_rows=(len(here), len(there)),
            p_value=_p_value(np.stack([counts, other_counts])),
            model=model,
        )

    def __str__(self) -> str:
        verdict = "The other rows differ" if self.p_value < 0.01 else "The other rows differ no more than by chance"
        (n, n_other), (odd, odd_other) = self.n_rows, map(percent, self.outlier_shares)
        similar, similar_other = self.mean_similarities
        return (
            f"{verdict} (p = {self.p_value:.2g}). Outliers: {odd} of {counted(n, 'row')}, {odd_other} of "
            f"{counted(n_other, 'other row')}. Mean similarity to the representatives: {similar:.3g}, and {similar_other:.3g} of "
            "other rows."
        )

    __repr__ = __str__


def _counts(placed: NewRows, picks: IntArray) -> FloatArray:
    """Rows of each pick, and last the outliers."""
    counts = [np.count_nonzero(placed.representative == pick) for pick in picks]
    return np.array([*counts, np.count_nonzero(placed.is_outlier)], np.float64)


def _mean_similarity(placed: NewRows) -> float:
    belongs = ~placed.is_outlier
    return float(placed.similarity[belongs].mean()) if belongs.any() else 0.0


def _p_value(counts: FloatArray) -> float:
    """Of the χ² test that two lines of counts have the same shares; those that are few in both together are counted as one."""
    few = counts.sum(axis=0) < FEW_ROWS
    others = counts[:, few].sum(axis=1, keepdims=True)
    table = np.hstack([counts[:, ~few], others]) if others.any() else counts[:, ~few]
    return float(chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


def compare(X: object, other: object, *, fit_params: dict[str, Any] | None = None, **settings: Any) -> Comparison:
    """What changed between X and other rows with the same columns: representatives of X stand for more or fewer rows there.

    The answer prints as sentences. It has for each representative, those of the largest change first, its number in ``rows``, and
    in ``share`` and ``share_in_other`` the rows that it stands for; and ``outlier_shares``, ``mean_similarities``, ``p_value``.

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
    The other rows differ (p = ...). Outliers: 0 % of 300 rows, 0 % of ... other rows. ...
    """
    rows = Rows.of(X, memory_budget=settings.get("memory_budget"))
    return Comparison.of(MOSAIC(**settings).fit(rows, **(fit_params or {})), rows, other)


@dataclass(frozen=True)
class NearCopies:
    """Rows that are nearly equal to an earlier one that is none itself, the first such row of each, and the fitted estimator."""

    rows: IntArray
    copy_of: IntArray
    model: MOSAIC

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        copies = "1 near copy" if len(self) == 1 else f"{len(self):,} near copies"
        return f"{copies} among {counted(self.model.selection_.n_rows, 'row')}."

    __repr__ = __str__


def dedup(X: object, *, near: float = 0.1, **settings: Any) -> NearCopies:
    """Near copies: rows nearer to an earlier one than ``near`` × the distance at which a row usually has ten neighbours.

    The answer has the near copies in ``rows``, and in ``copy_of`` for each the first row that it repeats, which is none itself.
    They are also nearer than by chance: in d dimensions, one row in a thousand has a neighbour within 1e-4^(1/d) of that distance
    r10. Half as many neighbours are within r5 = 2^(-1/d) r10, which gives d. The rule is ours.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``, in memory
    near : a share; long texts with words or sentences changed need about 0.5
    **settings : parameters of ``MOSAIC`` that say how rows are compared: kernel, scale, …

    Examples
    --------
    >>> import numpy as np
    >>> import mosaic
    >>> X = mosaic.datasets.swiss_roll(300)
    >>> found = mosaic.dedup(np.vstack([X, X[7] + 1e-6]))
    >>> print(found, found.rows, found.copy_of)
    1 near copy among 301 rows. [300] [7]
    """
    real_number("near", near, above=0)
    rows = Rows.of(X, memory_budget=settings.get("memory_budget"))
    model = MOSAIC(1, outliers="keep", **settings).fit(rows)
    numbers = numbers_of(model, rows)
    if isinstance(numbers, Source):
        raise InvalidInputError("near copies are looked for in memory, and the rows are too many", "Raise `memory_budget`.")
    points = on_host(model.selection_.data.geometry.prepare(numbers))
    search, radius = NearestNeighbors().fit(points), 0.0
    if points.shape[0] > 10:
        half, usual = np.median(search.kneighbors(n_neighbors=10)[0][:, [4, 9]], axis=0)
        by_chance = 1e-4 ** (np.log(usual / half) / np.log(2.0)) if half > 0 else 1.0
        radius = float(usual * min(near, by_chance))
    copy_of = np.full(points.shape[0], -1, np.intp)
    for row, others in enumerate(search.radius_neighbors(points, radius, return_distance=False)):
        if copy_of[row] < 0:
            later = others[(others > row) & (copy_of[others] < 0)]
            copy_of[later] = row
    copies = np.flatnonzero(copy_of >= 0)
    return NearCopies(copies, copy_of[copies], model)
