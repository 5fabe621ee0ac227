"""Reasons in the user's columns: which of them make a row odd, and which are typical of a representative.

The kernel compares rows by a distance that is a sum over columns, d(x, y) = Σ_c d_c(x, y), with d_c = Σ_{j ∈ c} |x_j − y_j|^p
over the numbers j of column c, p = 2 for the Gaussian kernel and 1 for the Laplacian one. So d_c is what the distance falls by if
column c is left out.

- An outlier is compared with the nearest row that belongs; the columns that make up most of that distance are named.
- A representative is compared with the mean of the rows that belong; columns in which it is farther from it than rows are on
  average are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray, in_double, row_blocks
from mosaic.choosing.selection import Selection
from mosaic.kernels import PointKernel, StationaryKernel

#: Columns that a reason names, at most, and the share of the distance from which on no further ones are named.
MOST_NAMED_COLUMNS, MOST_OF_DISTANCE = 3, 0.75
#: What is usual: the middle nine tenths.
USUAL_QUANTILES = (0.05, 0.95)


class TableColumns(Protocol):
    """Columns of a table, each a block of the numbers that rows are compared by (``mosaic.rows.encoder.TableEncoder``)."""

    @property
    def blocks(self) -> Mapping[str, slice]:
        """Where the numbers of each column are."""

    def value(self, name: str, z: FloatArray, row: int | None = None) -> str:
        """The cell of a row as it is read, from its numbers."""

    def usually(self, name: str) -> str:
        """What is usual in a column; empty where there is no range."""

    def contrast(self, name: str, z: FloatArray) -> str:
        """On which side of the middle a row is; empty where there are no sides."""


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers that are taken as they are, or divided by their spread: by name, with what is usual in them."""

    names: tuple[str, ...]
    low: FloatArray
    middle: FloatArray
    high: FloatArray

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """One number each."""
        return {name: slice(j, j + 1) for j, name in enumerate(self.names)}

    def value(self, name: str, z: FloatArray, row: int | None = None) -> str:
        """The number."""
        return figure(float(z[0]))

    def usually(self, name: str) -> str:
        """The middle nine tenths."""
        j = self.names.index(name)
        return f"{figure(self.low[j])} to {figure(self.high[j])}"

    def contrast(self, name: str, z: FloatArray) -> str:
        """Above or below the mean."""
        return "high" if z[0] > self.middle[self.names.index(name)] else "low"


class ColumnReason(NamedTuple):
    """A column, what a row has in it, what is usual there, on which side that is, and its share of the distance."""

    column: str
    value: str
    usual: str
    side: str
    share: float

    @property
    def as_oddity(self) -> str:
        """As in "age 999, usual 19 to 88; income missing"."""
        usual = f", usual {self.usual}" if self.usual and self.value != "missing" else ""
        return f"{self.column} {self.value}{usual}"

    @property
    def as_contrast(self) -> str:
        """As in "high age (61, usual 19 to 88), segment 'premium'"."""
        if not self.side:
            return f"{self.column} {self.value}"
        return f"{self.side} {self.column} ({self.value}, usual {self.usual})"


@dataclass(frozen=True)
class UsualRows:
    """The rows that belong, which others are compared with; of many, the sample.

    Attributes
    ----------
    points : their numbers among the points
    kernel : the similarity between them
    middle : their mean
    apart : mean over them of |x_j − middle_j|^p
    low, high : the middle nine tenths of each number
    """

    points: IntArray
    kernel: Any
    middle: FloatArray
    apart: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, selection: Selection) -> UsualRows | None:
        """Those of a selection; None where the kernel does not compare columns, or no row belongs."""
        kernel, material = selection.kernel, selection.material
        if not isinstance(kernel, StationaryKernel) or sp.issparse(kernel.X) or material.geometry.prepare.directions:
            return None
        points = np.flatnonzero(~selection.is_outlier)
        weights = material.points.weights[points]
        if not weights.sum() > 0:
            return None
        middle, apart, low, high = (np.empty(kernel.X.shape[1]) for _ in range(4))
        for part in row_blocks(len(middle), len(points)):  # of columns
            X = in_double(kernel.X[points, part])
            middle[part] = np.average(X, axis=0, weights=weights)
            apart[part] = np.average(np.abs(X - middle[part]) ** kernel.order, axis=0, weights=weights)
            low[part], high[part] = np.quantile(X, USUAL_QUANTILES, axis=0, method="nearest")
        return cls(points, kernel.take(points), middle, apart, low, high)


def columns_of(selection: Selection, table: TableColumns | None, names: Sequence[Any] | None) -> TableColumns | None:
    """The columns that a fit compared; None where they have no names."""
    usual = selection.usual
    if table is not None or names is None or usual is None or len(names) != len(usual.middle):
        return table
    prepare = selection.material.geometry.prepare
    low, middle, high = (prepare.undone(v) for v in (usual.low, usual.middle, usual.high))
    return NumberColumns(tuple(str(name) for name in names), low, middle, high)


def row_of_point(selection: Selection, point: int) -> FloatArray:
    """A point as the kernel compares it."""
    kernel = selection.kernel
    assert isinstance(kernel, PointKernel)
    return np.asarray(in_double(kernel.X[[point]])).ravel()


def odd_columns(
    selection: Selection, columns: TableColumns | None, row: FloatArray, number: int, point: int = -1
) -> tuple[ColumnReason, ...]:
    """The columns that make up most of the distance of a prepared row from the nearest other row that belongs.

    Parameters
    ----------
    selection : what was fitted
    columns : of its rows; nothing is said without them
    row, number, point : the prepared row, its number in the data, and its number among the points; -1 if it is none
    """
    usual = selection.usual
    if columns is None or usual is None:
        return ()
    distances = usual.kernel.distances_at(row[None, :]).ravel()
    distances[usual.points == point] = np.inf
    if not np.isfinite(distances.min()):
        return ()
    nearest = in_double(usual.kernel.X[[int(distances.argmin())]]).ravel()
    shares = shares_of_columns(np.abs(row - nearest) ** usual.kernel.order, columns)
    found: list[ColumnReason] = []
    for name in sorted(shares, key=lambda name: -shares[name])[:MOST_NAMED_COLUMNS]:
        if shares[name] > 0 and sum(reason.share for reason in found) < MOST_OF_DISTANCE:
            found.append(_reason(selection, columns, row, number, name, shares[name]))
    return tuple(found)


def typical_columns(
    selection: Selection, columns: TableColumns | None, row: FloatArray, number: int
) -> tuple[ColumnReason, ...]:
    """The columns in which a prepared row is farther from the mean than rows are on average, farthest first."""
    usual = selection.usual
    if columns is None or usual is None:
        return ()
    apart = np.abs(row - usual.middle) ** usual.kernel.order
    shares = shares_of_columns(apart, columns)
    usually = shares_of_columns(usual.apart, columns, float(apart.sum()))
    far = [name for name in shares if shares[name] > usually[name]]
    far.sort(key=lambda name: -shares[name])
    return tuple(_reason(selection, columns, row, number, name, shares[name]) for name in far[:MOST_NAMED_COLUMNS])


def shares_of_columns(apart: FloatArray, columns: TableColumns, total: float | None = None) -> dict[str, float]:
    """What each column is of a sum over numbers, or of another total."""
    total = (float(apart.sum()) if total is None else total) or 1.0
    blocks = columns.blocks
    sums = np.add.reduceat(apart, [block.start for block in blocks.values()]) if blocks else apart
    return dict(zip(blocks, (sums / total).tolist(), strict=True))


def _reason(
    selection: Selection, columns: TableColumns, row: FloatArray, number: int, name: str, share: float
) -> ColumnReason:
    block = columns.blocks[name]
    z = selection.material.geometry.prepare.undone(row[block], block)
    return ColumnReason(name, columns.value(name, z, number), columns.usually(name), columns.contrast(name, z), share)


def figure(x: float) -> str:
    """A number as a person would write it.

    Examples
    --------
    >>> figure(998.9999999), figure(1234567.8), figure(0.012345), figure(2.5)
    ('999', '1,234,568', '0.01235', '2.5')
    """
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e15 else f"{x:.4g}"
