"""What is done to rows before they are compared: columns divided by their spread, rows by their length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import LARGEST, LARGEST_IN_SINGLE, FloatArray, in_blocks
from mosaic.arrays.xp import as_double, asarray_like, is_on_device, numpy_dtype, on_host, rows_of, squares_of_rows


def largest_size(X: Any) -> float:
    """The largest size of an entry that may come in, in the precision of X."""
    return LARGEST_IN_SINGLE if numpy_dtype(X) == np.float32 else LARGEST


def squared_lengths(X: Any) -> Any:
    """‖x_i‖₂² in float64 for every row, dense or CSR, on the device of X."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    return squares_of_rows(as_double(X) if is_on_device(X) else X.astype(np.float64, copy=False))


def row_lengths(X: Any) -> FloatArray:
    """‖x_i‖₂ in float64; 0 for rows that are too short to have a direction."""
    squares = in_blocks(lambda rows: on_host(squared_lengths(rows_of(X, rows))), X.shape[0], X.shape[1], on=X)
    lengths = np.sqrt(np.concatenate(squares))
    return np.where(lengths * largest_size(X) >= 1.0, lengths, 0.0)


def scaled_rows(X: Any, factors: FloatArray) -> Any:
    """Each row times its factor, in the precision of X."""
    values = asarray_like(X, factors)
    return sp.csr_array(sp.diags_array(values) @ X) if sp.issparse(X) else X * values[:, None]


@dataclass(frozen=True)
class Prepare:
    """Prepare rows for comparison: divide columns by ``scale``, then rows by their length if ``directions``.

    Examples
    --------
    >>> import numpy as np
    >>> Prepare(np.array([1.0, 2.0]), directions=True)(np.array([[3.0, 8.0], [0.0, 0.0]])).round(9).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    scale: FloatArray | None = None
    directions: bool = False

    def __call__(self, X: Any) -> Any:
        """The prepared rows. Rows of zeros stay zero."""
        X = self._divided(X)
        if not self.directions:
            return X
        lengths = row_lengths(X)
        return scaled_rows(X, 1.0 / np.where(lengths > 0, lengths, 1.0))

    def _divided(self, X: Any) -> Any:
        """X / scale; what is too large after that for a square has the largest size that may come in."""
        if self.scale is None:
            return X
        scale = np.maximum(self.scale, np.finfo(numpy_dtype(X)).smallest_subnormal)
        if is_on_device(X):
            return X / asarray_like(X, scale)
        most = largest_size(X)
        with np.errstate(over="ignore"):
            if not sp.issparse(X):
                Y = X / asarray_like(X, scale)
                return np.clip(Y, -most, most, out=Y)
            Y = X.copy()  # the same quotients as in the dense case, so that known points are recognised
            Y.data = np.clip(Y.data / scale.astype(X.dtype)[Y.indices], -most, most)
        return Y

    def undone(self, values: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Values of prepared rows, in some columns, as the data has them."""
        return values if self.scale is None else values * self.scale[columns]
