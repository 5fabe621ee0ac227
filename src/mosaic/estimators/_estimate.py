"""Questions before choosing: how many representatives to take, and what a fit will cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray, IntArray
from mosaic._checks import whole_number
from mosaic._devices import numpy_dtype
from mosaic._files import html_card, html_table
from mosaic._threads import one_thread
from mosaic.budget import (
    Estimate,
    expected_rank,
    expected_work,
    memory_of_fit,
    memory_of_proof,
    memory_on_device,
    span_of_members,
    work_of_choosing,
    work_on_device,
)
from mosaic.choosing import CERTIFIED_GAP, EXPLAINED, Points, Settings, geometry_of, knee, percent, rank
from mosaic.estimators._reading import read_named, read_prepared, seed_of
from mosaic.estimators._selector import MOSAIC
from mosaic.estimators._strategy import Plan, memory_by_passes, rank_for, read_for, size_of
from mosaic.exceptions import InvalidInputError


@dataclass(frozen=True)
class CoverageCurve:
    """The coverage of 1, 2, 3, … representatives. The sets are nested: the set for k is the first k of ``indices``.

    Attributes
    ----------
    indices : row numbers, ranked by their gain
    similarity : mean similarity of the points that belong to their nearest representative, for each k
    coverage : share of the points that belong which the first k express, for each k
    knee : k at which ``similarity`` turns from steep to flat; n_representatives="auto" takes this k
    model : the fitted estimator of the curve; ``rethreshold(n_representatives=k)`` gives that of any k, with exchanges, so that
        its picks need not be the first k of ``indices``
    """

    indices: IntArray
    similarity: FloatArray
    coverage: FloatArray
    knee: int
    model: MOSAIC

    def at(self, k: int) -> IntArray:
        """The set of k representatives."""
        if not 1 <= k <= len(self.indices):
            fault = f"must lie between 1 and {len(self.indices)}"
            raise InvalidInputError(fault, "Ask for a longer path.", parameter="k", value=k)
        return self.indices[:k]

    def smallest(self, coverage: float) -> int:
        """The smallest k that covers this share."""
        enough = np.flatnonzero(self.coverage >= coverage)
        if not len(enough):
            fault = f"{len(self.indices)} representatives cover {self.coverage[-1]:.3f}, not {coverage:g}"
            raise InvalidInputError(fault, "Ask for a longer path.")
        return int(enough[0]) + 1

    def __repr__(self) -> str:
        return (
            f"CoverageCurve up to {len(self.indices)} representatives: coverage {self.coverage[0]:.3f} … "
            f"{self.coverage[-1]:.3f}, knee at {self.knee}"
        )

    def _repr_html_(self) -> str:
        k, n = self.knee, len(self.indices)
        shown = sorted({min(number, n) for number in (1, 2, 5, 10, 20, 50, 100, k, n)})
        rows = [(m, percent(self.similarity[m - 1]), percent(self.coverage[m - 1])) for m in shown]
        many = "representative covers" if k == 1 else "representatives cover"
        title = f"The knee is at {k}: {k} {many} {percent(self.coverage[k - 1])}, and more of them add little."
        head = ["k", "mean similarity to the nearest", "coverage"]
        return html_card(title, _curve(self.coverage, k), html_table(head, rows), text=[EXPLAINED])


def _curve(coverage: FloatArray, knee: int, width: int = 300, height: int = 140) -> str:
    """The curve as a small picture, with a dot at the knee."""
    x = np.linspace(0, width, len(coverage) + 1)
    y = height * (1 - np.concatenate([[0.0], coverage]))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f'<svg width="{width}" height="{height}" viewBox="-6 -6 {width + 12} {height + 12}" role="img" '
        f'aria-label="Coverage for 1 to {len(coverage)} representatives">'
        f'<path d="M0 0V{height}H{width}" fill="none" stroke="currentColor" stroke-opacity=".25"/>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<circle cx="{x[knee]:.1f}" cy="{y[knee]:.1f}" r="4.5" fill="#0b6e99" stroke="#fff"/></svg>'
    )


@one_thread()
def path(
    X: Any, *, max_representatives: int = 100, fit_params: dict[str, Any] | None = None, **settings: Any
) -> CoverageCurve:
    """The coverage curve of X: the representatives for every k, and the knee, beyond which more add little.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    max_representatives : largest length of the curve
    fit_params : arguments of ``MOSAIC.fit``: sample_weight, must_include, …; quotas are ignored
    **settings : parameters of ``MOSAIC`` other than the number of representatives

    Returns
    -------
    CoverageCurve

    Notes
    -----
    1. One ranking serves all k, so the set for k may differ from that of ``MOSAIC(k)``, whose picks are exchanged until no
       exchange makes the points more similar to them.

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
            fault = "is not for path, which shows all numbers at once"
            raise InvalidInputError(fault, "Read it off the curve.", parameter=name, value=settings[name])
    whole_number("max_representatives", max_representatives)
    model = MOSAIC(**settings).fit(X, **(fit_params or {}))
    must = len(model.selection_.material.constraints.must)
    if must > max_representatives:
        fault = f"names {must} rows, and `max_representatives` is {max_representatives}"
        raise InvalidInputError(fault, "Name fewer, or raise it.", parameter="must_include")
    rows, similarity, coverage = rank(model.selection_, max_representatives)
    return CoverageCurve(model.selection_.material.rows_in_data(rows), similarity, coverage, knee(similarity), model)


def estimate(X: Any, **settings: Any) -> Estimate:
    """The strategy, rank, memory and rough time of ``MOSAIC(**settings).fit(X)``, without running it.

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
        If the fit needs more than ``memory_budget``; the message has the numbers.

    Examples
    --------
    >>> import mosaic
    >>> print(mosaic.estimate(mosaic.datasets.swiss_roll(800), n_representatives=20))  # doctest: +ELLIPSIS
    800 distinct points, exact (rank about ...): about ... MiB and ... s, and for the certificate ... MiB and ... s
    """
    model = MOSAIC(**settings)
    checked = Settings.of(model)
    read = read_named(model, X, checked.memory_budget)
    checked = checked if read is None else read.rest(checked)
    held = (
        0.0 if read is None or read.file is None or read.file is X else read.file.held
    )  # the fit reads the file itself
    strategy, data = read_for(model, checked, X, None, read)
    if strategy == "sketch":
        sizes = {name: getattr(model, name) for name in ("n_initial", "n_added", "n_rounds")}
        plan = Plan.of(checked, data.n, data.n_features, **sizes)
        memory = (
            held + data.buffers + memory_by_passes(data.n, plan.sample, plan.n_initial, data.n_features, promised=False)
        )
        work = plan.multiplications(data.n) + work_of_choosing(plan.sample, data.n_features)
        return Estimate("sketch", data.n, plan.n_initial, memory, work / _speed(), 0.0)
    matrix, prepare = read_prepared(model, data, None, checked)
    points = Points.of(matrix, None, pairwise=checked.kernel == "precomputed")
    itemsize, n_features, size = numpy_dtype(matrix).itemsize, matrix.shape[1], size_of(matrix)
    max_rank = rank_for(checked, strategy, points.n, matrix)
    kernel = geometry_of(matrix, points, checked, prepare, None, seed_of(model.random_state)).kernel
    rank_expected, speed = expected_rank(kernel, max_rank, checked.tol or CERTIFIED_GAP), _speed()
    how: Literal["exact", "low-rank"] = "exact" if max_rank >= points.n else "low-rank"
    if kernel.on_device:
        memory, seconds = memory_on_device(points.n, rank_expected, itemsize, n_features), work_on_device(points.n)
        return Estimate(how, points.n, rank_expected, memory[0], seconds[0] / speed, seconds[1] / speed, memory[1])
    entries = 4.0 * matrix.nnz / matrix.shape[0] if sp.issparse(matrix) else n_features
    fewest, most = span_of_members(points.n, rank_expected)
    proof = partial(memory_of_proof, points.n, rank_expected, itemsize, n_features, size)
    return Estimate(
        how,
        points.n,
        rank_expected,
        held + memory_of_fit(points.n, itemsize, n_features, size),
        work_of_choosing(points.n, entries) / speed,
        *(
            value
            for m in (most, fewest)
            for value in (expected_work(points.n, rank_expected, m) / speed, held + proof(members=m))
        ),
    )


def _speed() -> float:
    """Multiplications per second of a matrix product on one core of this machine, the best of some that are measured now."""
    A, times = np.ones((400, 400)), []
    with one_thread():
        for _ in range(5):
            started = time.process_time()
            A = A @ A / 400.0
            times.append(time.process_time() - started)
    return 400.0**3 / max(min(times), 1e-9)
