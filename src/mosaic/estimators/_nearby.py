"""A second look at outliers, with a kernel so narrow that a point resembles five others.

The kernel in which a representative resembles its share of the points sees who is far from all. Points that lie scattered
between the branches of a curve or the folds of a sheet are near to many; only a narrow kernel tells them from the others. It
is asked first whether it sees two kinds of points at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray, subsample_of_weights
from mosaic.counts import CountModel
from mosaic.encoding import Encoding
from mosaic.estimators._points import Distinct
from mosaic.estimators._solving import encode_exactly, left_to_us
from mosaic.kernels import RBF, Kernel
from mosaic.outliers import Cut, find_cut

#: Points that a typical one resembles, and strength.
NEIGHBOURS, LAM = 5.0, 30.0
#: Distinct points that the counts are made with; others are counted as if they were added.
SAMPLE = 1000
#: Fewer points show no valley.
FEWEST = 50
#: A valley must be this improbable in a distribution without one: less than for the first look, since this is another one.
LEVEL = 1e-6


@dataclass(frozen=True)
class Look:
    """What effective counts are taken from: the counts of all distinct points, and all that they depend on.

    Attributes
    ----------
    counts : of the distinct points
    encoding, kernel : which they belong to
    model : counts of other points
    total : weight of the points that one could stand for
    cut : where a valley divides the counts; None to look for it in the counts
    """

    counts: FloatArray
    encoding: Encoding
    kernel: Kernel
    model: CountModel
    total: float
    cut: Cut | None = None


def look_twice(estimator: Any, kernel: Kernel, encoding: Encoding, points: Distinct, seed: int) -> Look:
    """The counts of the encoding, or those of the narrow kernel if a valley divides them more clearly.

    The narrow kernel is ours to choose only where the user has left bandwidth and strength open.

    Parameters
    ----------
    estimator : with ``gamma``, ``alpha``, ``lam``, ``solver``, ``tol``, ``max_iter``, ``max_rank``, ``memory_budget``
    kernel, encoding : of the distinct points
    points : their weights and codes
    seed : of the sample
    """
    first = Look(encoding.effective_count, encoding, kernel, encoding.count_model(points.codes), encoding.total)
    if not (left_to_us(estimator) and isinstance(kernel, RBF)):
        return first
    some, _ = subsample_of_weights(points.weights, SAMPLE, seed)  # who is there often is not left out
    near = _narrow(estimator, kernel.X, points, some, seed)
    if near is None or near.cut is None:
        return first
    # Both on the same points: of more, a valley would be more significant.
    rival = find_cut(first.counts[some], kernel.take(some), random_state=seed)
    return near if near.cut.p_value < rival.p_value else first


def _narrow(estimator: Any, rows: Any, points: Distinct, some: IntArray, seed: int) -> Look | None:
    """Counts in the narrow kernel, if a valley divides them; None if nothing speaks for two kinds of points.

    A narrow kernel has full rank. Where the limits do not allow that, there is no second look.
    """
    if len(some) < FEWEST:
        return None
    weights = points.weights[some]
    encodings = encode_exactly(estimator, rows[some], weights, [(NEIGHBOURS, LAM)], seed)
    if encodings is None:
        return None
    (encoding,) = encodings
    cut = find_cut(encoding.effective_count, encoding.kernel, random_state=seed)
    if cut.rule != "valley" or cut.p_value > LEVEL:
        return None
    model = encoding.count_model(points.codes[some])
    counts = np.empty(points.n)
    counts[some] = encoding.effective_count
    others = np.setdiff1d(np.arange(points.n), some)
    if len(others):
        counts[others] = model.counts(rows[others])
    gamma: float = encoding.kernel.gamma  # type: ignore[attr-defined]
    return Look(counts, encoding, RBF(rows, gamma), model, float(weights.sum()), cut)
