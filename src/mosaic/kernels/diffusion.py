"""The heat kernel on the graph of nearest neighbours, and its extension to points that are not on the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from mosaic.arrays.blocks import IntArray, row_blocks
from mosaic.arrays.codes import rows_equal
from mosaic.arrays.xp import Matrix
from mosaic.kernels.points import Linear, in_format_of, normalised_rows, squared_distances
from mosaic.parameters import whole_number


def heat_features(X: Matrix, n_neighbors: int = 10, time: int = 2) -> Any:
    """Rows g_j whose inner products are a heat kernel on the neighbour graph, scaled to unit length.
    W joins every point with its nearest points and is made symmetric; S = D^-½ W D^-½; the lazy walk A = (I + S)/2 = I − L/2 is
    one Euler step of the heat equation for half a unit of time. With G = A^time, K = G Gᵀ ≈ exp(−time · L), and G is sparse.
    """
    n = X.shape[0]
    k = min(whole_number("n_neighbors", n_neighbors), n - 1)
    time = whole_number("time", time)
    if k == 0:
        return sp.csr_array(np.ones((1, 1)))
    found = nearest(X, X, k + 1)
    # With repeated points, a point need not be its own first neighbour, or a neighbour at all.
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    point = np.repeat(np.arange(n), k)
    W = sp.csr_array((np.ones(n * k), (point, found[~own])), shape=(n, n))
    W = W.maximum(W.T)
    half = sp.diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    A = sp.csr_array(0.5 * (sp.eye_array(n) + half @ W @ half))
    G = A
    for _ in range(time - 1):
        G = sp.csr_array(G @ A)
    return normalised_rows(G)


def nearest(X: Matrix, Y: Matrix, k: int, tree: KDTree | None = None) -> IntArray:
    """The k rows of X nearest to every row of Y, nearest first: by a tree, or by all distances for sparse rows."""
    m = Y.shape[0]
    n = X.shape[0]
    if not sp.issparse(X):
        return np.asarray((tree or KDTree(X)).query(Y, k=k)[1]).reshape(m, k)
    X = X.astype(np.float64)
    found = np.empty((m, k), dtype=np.intp)
    for rows in row_blocks(m, n):
        D = squared_distances(Y[rows].astype(np.float64), X)[0]
        part = np.argpartition(D, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(D, part, axis=1), axis=1, kind="stable")
        found[rows] = np.take_along_axis(part, order, axis=1)
    return found


@dataclass(frozen=True)
class DiffusionKernel(Linear):
    """k(x, y) = g(x)ᵀ g(y), the heat kernel on a neighbour graph; ``X`` holds rows g of ``heat_features``.

    A new point's row is g(y) = v / ‖v‖, v = mean of g over the ``n_neighbors`` points of the graph that are nearest to y; this
    extension is ours. If y equals a point of the graph, it has the row of that point, the first that is found of several.
    """

    # All its points, also after ``take``, because any may be near a new point.
    graph: Any = field(repr=False)
    features: Any = field(repr=False)  # their rows g
    n_neighbors: int = 10

    @classmethod
    def of(cls, X: Matrix, n_neighbors: int = 10, time: int = 2) -> Self:
        features = heat_features(X, n_neighbors, time)
        return cls(features, X, features, n_neighbors)

    @cached_property
    def _tree(self) -> KDTree | None:
        return None if sp.issparse(self.graph) else KDTree(self.graph)

    def prepared(self, Y: Matrix) -> Any:
        Y = in_format_of(self.graph, Y)
        m = Y.shape[0]
        n = self.graph.shape[0]
        k = min(self.n_neighbors, n)
        found = nearest(self.graph, Y, k, self._tree)
        # Distances of sparse rows are rounded, so they do not show whether two rows are equal.
        same = np.column_stack([rows_equal(self.graph[column], Y) for column in found.T])
        counts = np.ones((m, k), dtype=bool)
        known = same.any(axis=1)
        counts[known] = same[known].argmax(axis=1)[:, None] == np.arange(k)
        row, place = np.nonzero(counts)
        mean = sp.csr_array((np.ones(len(row)), (row, found[row, place])), shape=(m, n))
        return normalised_rows(sp.csr_array(mean @ self.features), "Y")
