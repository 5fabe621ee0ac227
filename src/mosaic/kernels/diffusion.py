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
from mosaic.checks import whole_number
from mosaic.kernels.points import Linear, in_format_of, normalised_rows, squared_distances


def heat_features(X: Any, n_neighbors: int = 10, time: int = 2) -> Any:
    """Rows g_j whose inner products are a heat kernel on the neighbour graph, scaled to unit length.

    W joins every point with its ``n_neighbors`` nearest points and is made symmetric; S = D^-½ W D^-½; the lazy walk
    A = (I + S)/2 = I − L/2 is one Euler step of the heat equation for half a unit of time. With G = A^time,
    K = G Gᵀ ≈ exp(−time · L) is positive semi-definite by construction, and G is sparse.

    Examples
    --------
    >>> import numpy as np
    >>> G = heat_features(np.array([[0.0], [1.0], [5.0], [6.0]]), n_neighbors=1, time=1)
    >>> (G @ G.T).toarray().round(6).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    """
    n = X.shape[0]
    k, time = min(whole_number("n_neighbors", n_neighbors), n - 1), whole_number("time", time)
    if k == 0:
        return sp.csr_array(np.ones((1, 1)))
    neighbours = _nearest(X, k)
    W = sp.csr_array((np.ones(n * k), (np.repeat(np.arange(n), k), neighbours.ravel())), shape=(n, n))
    W = W.maximum(W.T)
    half = sp.diags_array(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    A = sp.csr_array(0.5 * (sp.eye_array(n) + half @ W @ half))
    G = A
    for _ in range(time - 1):
        G = sp.csr_array(G @ A)
    return normalised_rows(G)


@dataclass(frozen=True)
class DiffusionKernel(Linear):
    """k(x, y) = g(x)ᵀ g(y), the heat kernel on a neighbour graph; ``X`` holds rows g of ``heat_features``.

    A new point's row is g(y) = v / ‖v‖, v = mean of g over the ``n_neighbors`` points of the graph that are nearest to
    y. If y equals a point of the graph, it has the row of that point.

    Notes
    -----
    1. The extension to new points is ours: a neighbour graph says nothing about points that are not on it.
    2. If several points of the graph equal y, the first that is found is used; their rows may differ.
    3. ``take`` keeps the whole graph, because any of its points may be near a new one.

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[0.0], [1.0], [5.0], [6.0]]), "diffusion", n_neighbors=1)
    >>> kernel.cross(np.array([[0.4], [5.9]])).round(6).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """

    graph: Graph = field(repr=False)

    @classmethod
    def over(cls, X: Any, n_neighbors: int = 10, time: int = 2) -> Self:
        """The heat kernel between all rows of X."""
        features = heat_features(X, n_neighbors, time)
        return cls(features, Graph(X, features, n_neighbors))

    def _prepared(self, Y: Any) -> Any:
        return self.graph.features_at(Y)


@dataclass(frozen=True)
class Graph:
    """Points and their rows of ``heat_features``, from which rows of new points are made."""

    points: Any
    features: Any
    n_neighbors: int

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("points", "features", "n_neighbors")
        }  # a copy builds its own tree

    @cached_property
    def _search(self) -> _Search:
        return _Search(self.points)

    def features_at(self, Y: Any) -> Any:
        """g(y) = v / ‖v‖, v = mean of g over the nearest points of the graph, or g of the point that equals y."""
        Y = in_format_of(self.points, Y)
        m, n = Y.shape[0], self.points.shape[0]
        k = min(self.n_neighbors, n)
        found = self._search.nearest(Y, k)
        # Distances of sparse rows are rounded, so they do not show whether two rows are equal.
        same = np.column_stack([rows_equal(self.points[column], Y) for column in found.T])
        counts = np.ones((m, k), dtype=bool)
        known = same.any(axis=1)
        counts[known] = same[known].argmax(axis=1)[:, None] == np.arange(k)
        row, place = np.nonzero(counts)
        mean = sp.csr_array((np.ones(len(row)), (row, found[row, place])), shape=(m, n))
        return normalised_rows(sp.csr_array(mean @ self.features), "Y")


@dataclass(frozen=True)
class _Search:
    """Search for nearest points: with a tree for dense points, with all distances for sparse ones."""

    X: Any

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.X)

    def nearest(self, Y: Any, k: int) -> IntArray:
        """The k points nearest to every row of Y, nearest first."""
        m, n = Y.shape[0], self.X.shape[0]
        if not sp.issparse(self.X):
            return np.asarray(self._tree.query(Y, k=k)[1]).reshape(m, k)
        X = self.X.astype(np.float64)
        found = np.empty((m, k), dtype=np.intp)
        for rows in row_blocks(m, n):
            D = squared_distances(Y[rows].astype(np.float64), X)
            part = np.argpartition(D, k - 1, axis=1)[:, :k]
            order = np.argsort(np.take_along_axis(D, part, axis=1), axis=1, kind="stable")
            found[rows] = np.take_along_axis(part, order, axis=1)
        return found


def _nearest(X: Any, k: int) -> IntArray:
    """The k nearest other points of every point."""
    n = X.shape[0]
    found = _Search(X).nearest(X, k + 1)
    # With repeated points, a point need not be its own first neighbour, or a neighbour at all.
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(n, k))
