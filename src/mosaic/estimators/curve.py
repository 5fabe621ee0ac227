"""Questions before choosing: how many representatives to take, and what a fit will cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.threads import one_thread
from mosaic.arrays.xp import is_on_device, numpy_dtype
from mosaic.choosing import CERTIFIED_GAP, Constraints, Points, Settings, draw_in_memory, geometry_of, rank
from mosaic.choosing.budget import Estimate, expected_rank, memory_of_fit, memory_of_proof, memory_on_device
from mosaic.estimators.by_passes import Plan, memory_by_passes, memory_of_sample, sample_size
from mosaic.estimators.fit import geometry_of_sample, is_sampled, rank_for, read_data, size_of
from mosaic.estimators.reading import ColumnArguments, prepare_for, read_rows, seed_of, without_scaling
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
    coverage : share of the points that belong which the first k express, for each k
    suggested : the k that n_representatives="auto" takes
    model : the fitted estimator of the curve; ``rethreshold(n_representatives=k)`` gives that of any k, with exchanges, so that
        its picks need not be the first k of ``indices``
    """

    indices: IntArray
    similarity: FloatArray
    coverage: FloatArray
    suggested: int
    model: MOSAIC

    def at(self, k: int) -> IntArray:
        """The set of k representatives."""
        if not 1 <= k <= len(self.indices):
            fault = f"must lie between 1 and {len(self.indices)}"
            raise InvalidInputError(fault, "Ask for a longer path.", parameter="k", value=k)
        return self.indices[:k]

    def __repr__(self) -> str:
        return (
            f"CoverageCurve up to {len(self.indices)} representatives: coverage {self.coverage[0]:.3f} … "
            f"{self.coverage[-1]:.3f}, {self.suggested} suggested"
        )


@one_thread()
def path(X: Any, *, max_representatives: int = 100, fit_params: dict[str, Any] | None = None, **settings: Any) -> CoverageCurve:
    """The ``CoverageCurve`` of X: the representatives for every k, and the number that is suggested.

    Parameters
    ----------
    X : as for ``MOSAIC.fit``
    max_representatives : largest length of the curve
    fit_params : arguments of ``MOSAIC.fit``: sample_weight, must_include, …; quotas are ignored
    **settings : parameters of ``MOSAIC`` other than the number of representatives

    Notes
    -----
    1. One ranking serves all k, so the set for k may differ from that of ``MOSAIC(k)``, whose picks are exchanged until no
       exchange makes the points more similar to them.

    Examples
    --------
    >>> import mosaic
    >>> curve = mosaic.path(mosaic.datasets.swiss_roll(300))
    >>> len(curve.at(curve.suggested)) == curve.suggested
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
    suggested = min(len(model.selection_.rows), len(rows))
    return CoverageCurve(model.selection_.material.rows_in_data(rows), similarity, coverage, suggested, model)


def estimate(X: Any, **settings: Any) -> Estimate:
    """The strategy, rank and memory of ``MOSAIC(**settings).fit(X)``, and how often it reads the rows, without running it.

    Raises ``MemoryBudgetError`` if the fit needs more than ``memory_budget``; the message has the numbers.

    Examples
    --------
    >>> import mosaic
    >>> print(mosaic.estimate(mosaic.datasets.swiss_roll(800), n_representatives=20))  # doctest: +ELLIPSIS
    800 points, exact (rank about ...): about ... MiB, and for the certificate up to ... MiB
    """
    model = MOSAIC(**settings)
    data = read_data(model, X, Settings.of(model), ColumnArguments())
    checked, read, source = data.settings, data.read, data.source
    # The fit reads the file itself.
    held = 0.0 if read is None or read.file is None or read.file is X else read.file.held
    if source is not None:
        plan, taken, d = Plan.of(checked, source.n, source.n_features), held + source.buffers, source.n_features
        proof = taken + memory_by_passes(plan.sample, plan.n_initial, d)
        if checked.mode == "paper":
            return Estimate("sketch", source.n, plan.n_initial, proof, plan.most_passes, proof, 1)
        memory = taken + memory_of_sample(plan.sample, d)
        return Estimate("sketch", source.n, plan.n_initial, memory, 1, proof, plan.most_passes)
    matrix, seed = read_rows(model, X if read is None else read, reset=True), seed_of(model.random_state)
    checked, (n, d) = without_scaling(checked, model.table_), matrix.shape
    itemsize, size = numpy_dtype(matrix).itemsize, size_of(matrix)
    if is_sampled(checked, n, d):
        drawn = draw_in_memory(matrix, sample_size(checked, n, d), Constraints.read(n))
        geometry, points, _ = geometry_of_sample(drawn, checked, None, seed)
        memory = memory_of_sample(points.n, d) + 24.0 * n
    else:
        prepare = prepare_for(matrix, None, checked)
        matrix = prepare(matrix)
        points = Points.of(matrix, None, pairwise=checked.kernel == "precomputed")
        geometry, n = geometry_of(matrix, points, checked, prepare, None, seed), points.n
        memory = memory_of_fit(n, itemsize, d, size)
    max_rank = rank_for(checked, n, matrix)
    rank_expected = expected_rank(geometry.kernel, max_rank, checked.tol or CERTIFIED_GAP)
    how: Literal["exact", "low-rank"] = "exact" if max_rank >= n else "low-rank"
    if is_on_device(geometry.kernel.X):
        fit, proof = (memory_on_device(m, rank_expected, itemsize, d)[i] for i, m in enumerate((points.n, n)))
        return Estimate(how, n, rank_expected, fit, 0, proof)
    proof = held + memory_of_proof(n, rank_expected, itemsize, d, size)
    return Estimate(how, n, rank_expected, held + memory, 0, proof)
