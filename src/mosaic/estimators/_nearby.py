"""A second look at outliers, with a kernel so narrow that a point resembles five others.

The kernel in which a representative resembles its share of the points sees who is far from all. Points that lie scattered
between the branches of a curve or the folds of a sheet are near to many; only a narrow kernel tells them from the others. It
is asked first whether it sees two kinds of points at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, subsample
from mosaic.counts import CountModel
from mosaic.encoding import Encoding
from mosaic.estimators._points import Distinct
from mosaic.kernels import RBF, EffectiveCount, resolve_gamma
from mosaic.outliers import Cut, find_cut
from mosaic.program import encode
from mosaic.tuning import memory_needed
from mosaic.wishes import Wishes

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
    """Effective counts of all distinct points, their encoding and kernel, the model for new points, and the valley."""

    counts: FloatArray
    encoding: Encoding
    kernel: RBF
    model: CountModel
    cut: Cut


def look_nearby(
    rows: Any,
    points: Distinct,
    *,
    tol: float,
    max_rank: int | None = None,
    memory_budget: float | None = None,
    random_state: int = 0,
) -> Look | None:
    """Counts in the narrow kernel, if a valley divides them; None if nothing speaks for two kinds of points.

    A narrow kernel has full rank. Where the limits do not allow that, there is no second look.

    Parameters
    ----------
    rows : distinct points, dense or CSR
    points : their weights and codes
    tol : relative gap of the encoding
    max_rank, memory_budget : the user's limits, if any
    random_state : seed of the sample
    """
    some = subsample(points.n, SAMPLE, random_state)
    size = len(some)
    if size < FEWEST or (max_rank is not None and max_rank < size):
        return None
    if memory_budget is not None and memory_needed(size, size, 8, rows.shape[1]) > memory_budget:
        return None
    narrow = RBF(rows[some])
    gamma = resolve_gamma(narrow, EffectiveCount(NEIGHBOURS), random_state)
    wishes = Wishes.read(size, points.weights[some])
    encoding = encode(RBF(rows[some], gamma), lam=LAM, tol=tol, wishes=wishes, random_state=random_state)
    cut = find_cut(encoding.effective_count, encoding.kernel, random_state=random_state)
    if cut.rule != "valley" or cut.p_value > LEVEL:
        return None
    model = encoding.count_model(points.codes[some])
    counts = np.empty(points.n)
    counts[some] = encoding.effective_count
    others = np.setdiff1d(np.arange(points.n), some)
    if len(others):
        counts[others] = model.counts(rows[others])
    return Look(counts, encoding, RBF(rows, gamma), model, cut)
