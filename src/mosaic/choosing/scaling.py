"""Columns in different units: by what each is divided, so that distances do not mean the largest one alone.

Distances add up squares of differences, so a column in metres next to one in kilometres is all that they see. Left to
itself, an estimator divides columns by their spread if three things hold:

- (Σ s_j²)² / Σ s_j⁴ < 3: all columns together vary like fewer than three,
- the largest spread is at least five times the median one,
- they are no principal components, whose spread is meant: uncorrelated, and in the order of their spread.

Otherwise columns are taken as they are: pixels, words and coordinates share a unit, and those that vary most say most.
Ours; ``docs/decisions/0017`` has the measurements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray, row_blocks, subsample
from mosaic.exceptions import InvalidInputError

#: Columns that all together may vary like, and how many times the median spread the largest one is.
FEW_COLUMNS, LARGEST_TO_MEDIAN = 3.0, 5.0
#: Root mean square of the correlations of uncorrelated columns, in units of what chance makes it; by how much the spread of a
#: component may exceed that of the one before; columns and rows that this is looked up in, at most.
CHANCE, NEXT_SPREAD, LOOKED_AT, ROWS = 2.0, 1.2, 300, 20_000
#: Deviations below this part of the largest entry are rounding.
ROUNDING = 1e-12
#: Where half and nine tenths of a normal distribution lie, in deviations, and the least part of the wider range that a spread is.
HALF, NINE_TENTHS, LEAST_PART = 1.349, 3.290, 0.1


def column_scale(X: Any, weights: FloatArray | None, wish: Any, *, ours: bool) -> FloatArray | None:
    """What columns are divided by; None to leave them as they are.

    Parameters
    ----------
    X : points × features, dense or CSR
    weights : how often each point counts, if not once
    wish : True, False or "auto"
    ours : whether kernel and bandwidth are left to us

    Notes
    -----
    1. A kernel or bandwidth of the user's is meant for the columns as they are, and so is the paper's; sparse data has many
       columns of one kind. There only True divides.
    """
    if not (isinstance(wish, bool | np.bool_) or (isinstance(wish, str) and wish == "auto")):
        raise InvalidInputError(f"scale must be 'auto', True or False; got {wish!r}.")
    if isinstance(wish, str):
        if not ours or sp.issparse(X) or X.shape[1] < 2:
            return None
        deviations = _deviations(X, weights)
        if not unequal(deviations):
            return None
        spreads = _spreads(X, weights, deviations)
        return spreads if unequal(spreads) and not _components(X, weights, deviations) else None
    return _spreads(X, weights, _deviations(X, weights)) if wish else None


def unequal(spreads: FloatArray) -> bool:
    """Whether few columns are all that distances would see.

    Examples
    --------
    >>> import numpy as np
    >>> unequal(np.array([1.0, 2.0, 30.0, 1.0, 1.5])), unequal(np.array([1.0, 2.0, 3.0, 1.0, 1.5]))
    (True, False)
    """
    s = np.sort(spreads[spreads > 0]) / (spreads.max() or 1.0)
    if len(s) < 2:
        return False
    alike = float((s**2).sum()) ** 2 / float((s**4).sum())
    return bool(alike < FEW_COLUMNS and s[(len(s) - 1) // 2] * LARGEST_TO_MEDIAN <= 1.0)


def _deviations(X: Any, weights: FloatArray | None) -> FloatArray:
    """Deviations of the columns, 0 where they are rounding."""
    if sp.issparse(X):
        share = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
        largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
        unit = np.where(largest > 0, largest, 1.0)  # squares of what is divided by it neither overflow nor vanish
        Y = X.astype(np.float64) @ sp.diags_array(1.0 / unit)
        mean = np.asarray(share @ Y).ravel()
        apart = sp.csr_array(Y).copy()
        apart.data = (apart.data - mean[apart.indices]) ** 2
        stored = sp.csr_array((np.ones(len(apart.data)), apart.indices, apart.indptr), shape=apart.shape)
        full = np.bincount(apart.indices, minlength=apart.shape[1]) == apart.shape[0]
        zeros = np.where(
            full, 0.0, 1.0 - np.asarray(share @ stored).ravel()
        )  # rounding would count where the mean is large
        variance = unit**2 * (np.asarray(share @ apart).ravel() + zeros * mean**2)
        found = np.sqrt(np.maximum(np.asarray(variance), 0.0))
        return np.where(found > ROUNDING * largest, found, 0.0)
    deviations = np.empty(X.shape[1])
    for part in row_blocks(X.shape[1], X.shape[0]):  # of columns
        Y = X[:, part].astype(np.float64)
        lowest, largest = Y.min(axis=0), np.abs(Y).max(axis=0)
        Y -= lowest
        span = Y.max(axis=0)  # squares of what is divided by it neither overflow nor vanish
        Y /= np.where(span > 0, span, 1.0)
        mean = np.average(Y, axis=0, weights=weights)
        found = span * np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weights))
        deviations[part] = np.where(found > ROUNDING * largest, found, 0.0)
    return deviations


def _spreads(X: Any, weights: FloatArray | None, deviations: FloatArray) -> FloatArray:
    """Interquartile ranges, which outliers do not widen, as deviations; where most values are equal the deviation, else 1.

    Rounded, so that the order of the rows does not decide on the last digit, and with it on the order of the points.
    """
    spreads = deviations
    if not sp.issparse(X):
        q = np.quantile(X, [0.05, 0.25, 0.75, 0.95], axis=0, weights=weights, method="inverted_cdf").astype(np.float64)
        half, most = (q[2] - q[1]) / HALF, (q[3] - q[0]) / NINE_TENTHS
        spreads = np.select([half > 0, most > 0], [np.maximum(half, LEAST_PART * most), most], deviations)
    mantissa, exponent = np.frexp(np.where((spreads > 0) & (deviations > 0), spreads, 1.0))
    return np.asarray(np.ldexp(np.round(mantissa, 8), exponent))


def _components(X: Any, weights: FloatArray | None, deviations: FloatArray) -> bool:
    """Whether columns are like principal components of this data, or of more or less of it."""
    varying = np.flatnonzero(deviations)
    if (deviations[varying[1:]] > NEXT_SPREAD * deviations[varying[:-1]]).any():
        return False
    columns = varying[subsample(len(varying), LOOKED_AT, 0)]
    rows = subsample(X.shape[0], ROWS, 0)
    Y = X[np.ix_(rows, columns)].astype(np.float64) / deviations[columns]
    C = np.cov(Y, rowvar=False, aweights=None if weights is None else weights[rows])
    scale = np.sqrt(np.diag(C))
    others = (C / np.outer(scale, scale))[~np.eye(len(C), dtype=bool)]
    return bool(np.sqrt(np.mean(others**2)) < CHANCE / np.sqrt(len(rows)))
