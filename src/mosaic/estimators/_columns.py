"""Columns in different units: by what each is divided, so that distances do not mean the largest one alone.

Distances add up squares of differences, so a column in metres next to one in kilometres is all that they see. Left to
itself, an estimator divides columns by their spread if three things hold:

- (Σ s_j²)² / Σ s_j⁴ < 3: all columns together vary like fewer than three,
- the largest spread is at least five times the median one,
- columns are correlated. Principal components are not, and their spread is meant.

Otherwise columns are taken as they are: pixels, words and coordinates share a unit, and those that vary most say most.
Ours; ``docs/decisions/0017`` has the measurements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray
from mosaic.exceptions import InvalidInputError

#: Columns that all together may vary like, and how many times the median spread the largest one is.
FEW_COLUMNS, LARGEST_TO_MEDIAN = 3.0, 5.0
#: Correlations that are rounding.
UNCORRELATED = 1e-6
#: Where half and nine tenths of a normal distribution lie, in deviations, and the least part of the wider range that a spread is.
HALF, NINE_TENTHS, LEAST_PART = 1.349, 3.290, 0.1


def column_scale(estimator: Any, X: Any, weights: FloatArray | None) -> FloatArray | None:
    """What columns are divided by; None to leave them as they are.

    Parameters
    ----------
    estimator : with ``scale``, ``kernel`` and ``gamma``
    X : points × features, dense or CSR
    weights : how often each point counts, if not once

    Notes
    -----
    1. A kernel or bandwidth of the user's is meant for the columns as they are, and so is the paper's; sparse data has many
       columns of one kind. There only scale=True divides.
    """
    wish = estimator.scale
    if not (isinstance(wish, bool | np.bool_) or (isinstance(wish, str) and wish == "auto")):
        raise InvalidInputError(f"scale must be 'auto', True or False; got {wish!r}.")
    pairwise = isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"
    if isinstance(wish, str):
        ours = all(isinstance(v, str) for v in (estimator.kernel, estimator.gamma)) and estimator.gamma == "auto"
        ours = ours and estimator.kernel in ("rbf", "laplacian") and getattr(estimator, "mode", "auto") == "auto"
        if not ours or sp.issparse(X) or X.shape[1] < 2:
            return None
        deviations = _deviations(X, weights)
        if not unequal(deviations):
            return None
        spreads = _spreads(X, weights, deviations)
        return spreads if unequal(spreads) and not _uncorrelated(X, weights) else None
    if not wish:
        return None
    if pairwise:
        raise InvalidInputError("scale=True divides columns of features; with kernel='precomputed' there are none.")
    return _spreads(X, weights, _deviations(X, weights))


def divided(X: Any, scale: FloatArray | None) -> Any:
    """X / scale, column by column."""
    if scale is None:
        return X
    scale = scale.astype(X.dtype)
    return sp.csr_array(X.multiply(1.0 / scale)) if sp.issparse(X) else X / scale


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
    if not sp.issparse(X):
        mean = np.average(X, axis=0, weights=weights).astype(X.dtype)
        return np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights).astype(np.float64))
    w = np.ones(X.shape[0]) if weights is None else weights
    mean, square = (np.asarray(Y.T @ w).ravel() / w.sum() for Y in (X, X.multiply(X).tocsr()))
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))


def _spreads(X: Any, weights: FloatArray | None, deviations: FloatArray) -> FloatArray:
    """Interquartile ranges, which outliers do not widen, as deviations; where most values are equal the deviation, else 1."""
    if sp.issparse(X):
        return np.where(deviations > 0, deviations, 1.0)
    q = np.quantile(X, [0.05, 0.25, 0.75, 0.95], axis=0, weights=weights, method="inverted_cdf").astype(np.float64)
    half, most = (q[2] - q[1]) / HALF, (q[3] - q[0]) / NINE_TENTHS
    spreads = np.select([half > 0, most > 0], [np.maximum(half, LEAST_PART * most), most], deviations)
    return np.where(spreads > 0, spreads, 1.0)


def _uncorrelated(X: Any, weights: FloatArray | None) -> bool:
    varying = X[:, X.min(axis=0) < X.max(axis=0)].astype(np.float64)
    C = np.cov(varying, rowvar=False, aweights=weights)
    deviations = np.sqrt(np.diag(C))
    correlations = np.abs(C / np.outer(deviations, deviations))
    return bool(correlations[~np.eye(len(C), dtype=bool)].max(initial=0.0) < UNCORRELATED)
