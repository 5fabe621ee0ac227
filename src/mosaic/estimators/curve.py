"""Questions before choosing: how many representatives to take, and what a fit will cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.threads import one_thread
from mosaic.choosing import CoverCertificate, Settings, coverage_bounds, rank
from mosaic.choosing.plan import Plan
from mosaic.estimators.fit import take
from mosaic.estimators.selector import MOSAIC
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import whole_number


@dataclass(frozen=True)
class CoverageCurve:
    """The coverage of 1, 2, 3, … representatives. The sets are nested: the set for k is the first k of ``indices``.

    Attributes
    ----------
    indices : row numbers, ranked by their gain
    similarity : mean similarity of the points that belong to their nearest representative, for each k
    coverage : that of the first k, for each k (``MOSAIC.coverage_``); below 0 where the first row is farther from the others, on
        average, than the best single row: one that must be included, or that was chosen for its similarity
    bound : for each k, what no k rows exceed that may be chosen; None for more than about 3000 distinct rows, which are not all
        compared
    suggested : the k that n_representatives="auto" takes
    model : the fitted estimator of the curve; ``rethreshold(n_representatives=k)`` gives that of any k, with exchanges, so that
        its picks need not be the first k of ``indices``
    """

    indices: IntArray
    similarity: FloatArray
    coverage: FloatArray
    suggested: int
    model: MOSAIC

    @cached_property
    @one_thread()
    def bound(self) -> FloatArray | None:
        selection = self.model.selection_
        if selection.is_sampled:
            return None
        return coverage_bounds(selection, self.indices)

    def least_number(self, coverage: float) -> int | None:
        """So many rows at least are needed for a coverage; None if that is not proven for any number on the curve.

        Examples
        --------
        >>> import mosaic
        >>> curve = mosaic.path(mosaic.datasets.swiss_roll(300))
        >>> 1 < curve.least_number(0.5) <= 1 + int((curve.coverage < 0.5).sum())
        True
        """
        enough = np.zeros(0) if self.bound is None else np.flatnonzero(self.bound >= coverage)
        return int(enough[0]) + 1 if len(enough) else None

    def at(self, k: int) -> IntArray:
        """The set of k representatives."""
        if not 1 <= k <= len(self.indices):
            fault = f"must lie between 1 and {len(self.indices)}"
            raise InvalidInputError(fault, "Ask for a longer path.", parameter="k", value=k)
        return self.indices[:k]

    def __repr__(self) -> str:
        shares = f"coverage {self.coverage[0]:.3f} … {self.coverage[-1]:.3f}"
        number = f"up to {len(self.indices)} representatives"
        return f"CoverageCurve {number}: {shares}, {self.suggested} suggested"


def refuse_numbers(settings: dict[str, Any], where: str, remedy: str) -> None:
    """Refuse settings that say how many to choose."""
    for name in ("n_representatives", "coverage"):
        if name in settings:
            raise InvalidInputError(
                f"is not for {where}", remedy, parameter=name, value=settings[name]
            )


@one_thread()
def path(
    X: object,
    *,
    max_representatives: int = 100,
    fit_params: dict[str, Any] | None = None,
    **settings: Any,
) -> CoverageCurve:
    """The ``CoverageCurve`` of X: the representatives for every k, and the number that is suggested.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    max_representatives : largest length of the curve
    fit_params : arguments of ``MOSAIC.fit``: sample_weight, must_include, …; quotas are ignored
    **settings : parameters of ``MOSAIC`` other than the number of representatives

    Examples
    --------
    >>> import mosaic
    >>> curve = mosaic.path(mosaic.datasets.swiss_roll(300))
    >>> len(curve.at(curve.suggested)) == curve.suggested
    True
    """
    refuse_numbers(settings, "path, which shows all numbers at once", "Read it off the curve.")
    whole_number("max_representatives", max_representatives)
    model = MOSAIC(**settings).fit(X, **(fit_params or {}))
    must = len(model.selection_.data.constraints.must)
    if must > max_representatives:
        fault = f"names {must} rows, and `max_representatives` is {max_representatives}"
        raise InvalidInputError(fault, "Name fewer, or raise it.", parameter="must_include")
    ranking = rank(model.selection_, max_representatives)
    rows = model.selection_.data.rows_in_data(ranking.members)
    suggested = min(len(model.selection_.rows), len(rows))
    return CoverageCurve(rows, ranking.similarity, ranking.coverage, suggested, model)


def certify(
    X: object, picks: ArrayLike, *, fit_params: dict[str, Any] | None = None, **settings: Any
) -> CoverCertificate:
    """How good anybody's choice of rows of X is, beside the best of its size and beside random ones (``MOSAIC.certify``).

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    picks : row numbers or names of rows, or a mask
    fit_params : arguments of ``MOSAIC.fit``: sample_weight, exclude, …
    **settings : parameters of ``MOSAIC`` other than the number of representatives

    Examples
    --------
    >>> import mosaic
    >>> print(mosaic.certify(mosaic.datasets.swiss_roll(300), [3, 50, 90]).k)
    3
    """
    refuse_numbers(settings, "certify, which takes the number of `picks`", "Leave it out.")
    given = np.atleast_1d(np.asarray(picks, dtype=object if isinstance(picks, str) else None))
    k = int(given.sum()) if given.dtype == np.bool_ else given.size
    try:
        model = MOSAIC(max(k, 1), **settings).fit(X, **(fit_params or {}))
    except InvalidInputError:
        # So many rows may not be there to be chosen; any other fault is met again.
        model = MOSAIC(**settings).fit(X, **(fit_params or {}))
    return model.certify(picks)


def estimate(X: object, **settings: Any) -> Plan:
    """The plan of ``MOSAIC(**settings).fit(X)``: the memory that it takes, and whether it reads the rows in a pass.

    Raises ``MemoryBudgetError`` if the fit needs more than ``memory_budget``; the message has the numbers.

    Examples
    --------
    >>> import mosaic
    >>> print(mosaic.estimate(mosaic.datasets.swiss_roll(800), n_representatives=20))  # doctest: +ELLIPSIS
    800 rows, in memory: about ... MiB
    """
    model = MOSAIC(**settings)
    return take(model, X, Settings.of(model)).plan
