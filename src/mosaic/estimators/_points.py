"""What the estimators do with the data before anything else: read it, check it, and reduce it to distinct points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from mosaic._arrays import FloatArray, IntArray, as_vector, divided, equal_rows, refuse_missing, row_codes
from mosaic._frames import column_names, numeric_part, to_matrix
from mosaic.estimators._columns import column_scale
from mosaic.exceptions import InvalidInputError


def read_points(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A finite float matrix, dense or CSR. ``reset`` in fit; later the features must be those of fit, and are scaled alike.

    Frames give their columns of numbers; other columns are ids, which are not computed with.
    """
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    X = numeric_part(X, names=names)
    columns = column_names(X)
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if columns is None:
        matrix = validate_data(estimator, X, reset=reset, **settings)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        matrix = check_array(to_matrix(X), estimator=estimator, **settings)
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    refuse_missing(matrix, columns)
    return matrix if reset else divided(matrix, getattr(estimator, "column_scale_", None))


def as_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts."""
    return as_vector(sample_weight, n, "sample_weight", minimum=0.0)


def read_scaled(estimator: Any, X: Any, sample_weight: ArrayLike | None) -> tuple[Any, FloatArray | None]:
    """For fit: the points, and by what their columns were divided."""
    matrix = read_points(estimator, X, reset=True)
    weights = None if sample_weight is None else as_weights(sample_weight, matrix.shape[0])
    counted, absent = matrix, weights is not None and not weights.all()
    if weights is not None and absent and weights.any():
        counted, weights = matrix[weights > 0], weights[weights > 0]
    scale = column_scale(estimator, counted, weights if weights is not None and weights.any() else None)
    return divided(matrix, scale), scale


@dataclass(frozen=True)
class Distinct:
    """The distinct points that count, in an order that depends on the points and not on their rows in the data.

    Copies are solved for once, with their number as weight; a row without weight is as good as absent. Points are ordered
    by an exact hash of their values, so that shuffled rows give the very same problem.
    """

    #: Row in the data of each distinct point (its first), and for every row the number of its point, -1 without weight.
    first: IntArray
    group: IntArray
    weights: FloatArray
    codes: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None, *, pairwise: bool) -> Distinct:
        """Reduce the rows of X; similarities (pairwise) keep their order, because their columns have one."""
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n)
        rows = np.flatnonzero(weights > 0)
        if not len(rows):
            raise InvalidInputError(
                "all sample weights are zero, so there is nothing to represent. Give some point a positive weight."
            )
        if not (weights == np.round(weights)).all():  # importance, not repetition: only ratios matter
            weights = weights * (len(rows) / weights.sum())
        counted = X if len(rows) == n else X[rows]
        equal = equal_rows(counted)
        first, group = (np.arange(len(rows)), np.arange(len(rows))) if equal is None else equal
        codes = row_codes(counted)[first]
        order = np.arange(len(first)) if pairwise else np.argsort(codes, kind="stable")
        number = np.empty(len(first), np.intp)
        number[order] = np.arange(len(first))
        all_groups = np.full(n, -1, np.intp)
        all_groups[rows] = number[group]
        total = np.bincount(all_groups[rows], weights=weights[rows])
        return cls(rows[first[order]], all_groups, np.asarray(total), codes[order])

    @property
    def n(self) -> int:
        """Number of distinct points."""
        return len(self.first)

    @property
    def total(self) -> float:
        """Sum of all weights: the number of points, copies counted."""
        return float(self.weights.sum())

    def spread(self, values: Any, absent: Any) -> Any:
        """Values of distinct points, for every row of the data; rows without weight get ``absent``."""
        return np.where(self.group >= 0, np.asarray(values)[self.group], absent)
