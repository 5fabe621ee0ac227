"""What the estimators do with the data before anything else: read it, and check it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from mosaic._arrays import Prepare, refuse_masked, refuse_missing
from mosaic._frames import column_names, numeric_part, to_matrix
from mosaic.choosing import Settings, as_weights, preparation_of
from mosaic.exceptions import InvalidInputError


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A finite float matrix, dense or CSR. ``reset`` in fit; later the features must be those of fit.

    Frames give their columns of numbers; other columns are ids, which are not computed with.
    """
    refuse_masked(X)
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
    return matrix


def read_prepared(estimator: Any, X: Any, sample_weight: ArrayLike | None, settings: Settings) -> tuple[Any, Prepare]:
    """For fit: the rows, prepared, and what was done to them."""
    matrix = read_rows(estimator, X, reset=True)
    if settings.kernel == "precomputed" and matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"a precomputed similarity must be square; got shape {matrix.shape}. "
            "To pass points instead of similarities, choose a kernel such as kernel='rbf'."
        )
    weights = None if sample_weight is None else as_weights(sample_weight, matrix.shape[0])
    counted = matrix
    if weights is not None and not weights.all() and weights.any():
        counted, weights = matrix[weights > 0], weights[weights > 0]
    prepare = preparation_of(counted, weights if weights is not None and weights.any() else None, settings)
    return prepare(matrix), prepare


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InvalidInputError(f"random_state must be a whole number >= 0, a generator or None; got {random_state!r}.")
