"""Questions that are asked before choosing: how many representatives, and what it will cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray
from mosaic.estimators._choice import rank
from mosaic.estimators._nearby import SAMPLE
from mosaic.estimators._plan import Plan, memory_by_passes, work_by_passes
from mosaic.estimators._points import Distinct, read_scaled
from mosaic.estimators._selector import MOSAIC
from mosaic.estimators._solving import build_kernel, left_to_us, seed_of
from mosaic.estimators._strategy import rank_for, read_for
from mosaic.exceptions import InvalidInputError
from mosaic.selection import knee
from mosaic.tuning import Estimate, expected_rank, expected_work, memory_needed, neighbours_wanted


@dataclass(frozen=True)
class CoverageCurve:
    """What 1, 2, 3, … representatives cover. The sets are nested: those for k are the first k of ``indices``.

    Attributes
    ----------
    indices : rows, in the order of what they add
    similarity : mean similarity of the points that belong to their nearest representative, for each k
    coverage : share of the points that belong which the first k express, for each k
    knee : k at which ``similarity`` turns from steep to flat, what n_representatives="auto" takes
    model : the fitted estimator behind it, which ``rethreshold(n_representatives=k)`` brings to any k; picks are then
        exchanged, too, and need not be the first k of ``indices``
    """

    indices: IntArray
    similarity: FloatArray
    coverage: FloatArray
    knee: int
    model: MOSAIC

    def at(self, k: int) -> IntArray:
        """The set of k."""
        if not 1 <= k <= len(self.indices):
            raise InvalidInputError(f"k must lie between 1 and {len(self.indices)}; got {k}. Ask for a longer path.")
        return self.indices[:k]

    def smallest(self, coverage: float) -> int:
        """The smallest k that covers this share."""
        enough = np.flatnonzero(self.coverage >= coverage)
        if not len(enough):
            raise InvalidInputError(
                f"{len(self.indices)} representatives cover {self.coverage[-1]:.3f}, not {coverage:g}. Ask for a longer path."
            )
        return int(enough[0]) + 1

    def __repr__(self) -> str:
        return (
            f"CoverageCurve up to {len(self.indices)} representatives: coverage {self.coverage[0]:.3f} … "
            f"{self.coverage[-1]:.3f}, knee at {self.knee}"
        )


def path(
    X: Any, *, max_representatives: int = 100, fit_params: dict[str, Any] | None = None, **settings: Any
) -> CoverageCurve:
    """The coverage curve of X: which representatives to take for every k, and where more of them stop paying.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    max_representatives : length of the curve, at most
    fit_params : for ``MOSAIC.fit``: sample_weight, must_include, …; quotas are ignored
    **settings : parameters of ``MOSAIC`` other than the number of representatives

    Returns
    -------
    CoverageCurve

    Notes
    -----
    1. One ranking serves all k, so the set for k need not be that of ``MOSAIC(k)``, whose bandwidth follows k and whose picks
       are exchanged until no exchange makes the points more similar to them.

    Examples
    --------
    >>> import mosaic
    >>> curve = mosaic.path(mosaic.datasets.swiss_roll(300))
    >>> len(curve.at(curve.knee)) == curve.knee
    True
    >>> bool((curve.coverage[1:] >= curve.coverage[:-1]).all())
    True
    """
    for name in ("n_representatives", "coverage", "min_support"):
        if name in settings:
            raise InvalidInputError(f"path shows all numbers at once and takes no {name}; read it off the curve.")
    if max_representatives < 1:
        raise InvalidInputError(f"max_representatives must be at least 1; got {max_representatives}.")
    model = MOSAIC(**settings).fit(X, **(fit_params or {}))
    rows, similarity, coverage = rank(model._solved, model._wanted, max_representatives, model._choice)
    return CoverageCurve(model._row_numbers(rows), similarity, coverage, knee(similarity), model)


def estimate(X: Any, **settings: Any) -> Estimate:
    """What ``MOSAIC(**settings).fit(X)`` will do and cost: strategy, rank, memory and a rough time, without doing it.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    **settings : parameters of ``MOSAIC``

    Returns
    -------
    Estimate

    Raises
    ------
    MemoryBudgetError
        If the fit does not fit into ``memory_budget``; the message has the numbers.

    Examples
    --------
    >>> import mosaic
    >>> print(mosaic.estimate(mosaic.datasets.swiss_roll(800), n_representatives=20))  # doctest: +ELLIPSIS
    800 distinct points, exact (rank about ...): about ... MiB and ... s
    """
    model = MOSAIC(**settings)
    wants = model._wants()
    strategy, data = read_for(model, X, None)
    if strategy == "sketch":
        plan = Plan.of(model, data.n, data.n_features, wants.number(data.n))
        memory = memory_by_passes(plan.sample, plan.n_initial, data.n_features)
        work = work_by_passes(data.n, plan) + _second_look(model, plan.sample)
        return Estimate("sketch", data.n, plan.n_initial, memory, work / _speed())
    matrix, _ = read_scaled(model, X, None)
    points = Distinct.of(matrix, None, pairwise=model.kernel == "precomputed")
    itemsize, n_features = matrix.dtype.itemsize, matrix.shape[1]
    max_rank = rank_for(model, strategy, points.n, matrix)
    k = points.n / wants.min_support if wants.min_support else wants.number(matrix.shape[0])
    wanted = neighbours_wanted(points.n, k)
    kernel = build_kernel(model, matrix, points, wanted, max_rank, seed_of(model.random_state))
    rank_expected = expected_rank(kernel, max_rank, model.tol)
    return Estimate(
        "exact" if max_rank >= points.n else "low-rank",
        points.n,
        rank_expected,
        memory_needed(points.n, rank_expected, itemsize, n_features),
        (expected_work(points.n, rank_expected) + _second_look(model, points.n)) / _speed(),
    )


def _second_look(model: MOSAIC, n: int) -> float:
    """Multiplications for a look at outliers in a narrow kernel, where the similarity is left to us."""
    size = min(n, SAMPLE)
    return expected_work(size, size) if left_to_us(model) else 0.0


def _speed() -> float:
    """Multiplications a second of a matrix product on this machine, as it is now."""
    A = np.ones((400, 400))
    started = time.perf_counter()
    for _ in range(3):
        A = A @ A / 400.0
    return 3 * 400.0**3 / (time.perf_counter() - started)
