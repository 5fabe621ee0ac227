"""What several detectors share: checking points, the bandwidth unit, paths along the data."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

from experiments.methods import CannotRun

Floats: TypeAlias = NDArray[np.float64]

#: Contestants that look at pairs of points are run at these multiples of the squared median distance.
BANDWIDTHS = (0.01, 0.03, 0.1, 1.0, 10.0)
#: A dense copy above this size is not made.
MOST_ENTRIES = 500_000_000
#: Points whose pairs the median is taken over; more would not move it.
MEDIAN_POINTS = 2000


def points(X: Any, largest: int, why: str, at_least: int = 3) -> Floats:
    """X as a dense float64 array; CannotRun if it is too large (``why`` says what grows), too small or not finite."""
    n, d = X.shape
    if n > largest:
        raise CannotRun(f"{n:,} points, takes at most {largest:,}: {why}")
    if n < at_least:
        raise CannotRun(f"{n:,} points, needs at least {at_least}")
    if n * d > MOST_ENTRIES:
        raise CannotRun(f"{n:,} × {d:,} entries do not fit into memory as a dense array")
    X = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
    if not np.isfinite(X).all():
        raise CannotRun("has no answer for entries that are missing or infinite")
    return np.asarray(X)


def squared_median_distance(X: Floats, seed: int) -> float:
    """(median of ‖x_i − x_j‖ over pairs of points that differ)², the unit of bandwidths; 1 if no two points differ."""
    if len(X) > MEDIAN_POINTS:
        X = X[np.random.default_rng(seed).choice(len(X), MEDIAN_POINTS, replace=False)]
    distances = pdist(X)
    distances = distances[distances > 0]
    return float(np.median(distances)) ** 2 if len(distances) else 1.0


def gaussian(X: Floats, Y: Floats, width: float) -> Floats:
    """exp(−‖x − y‖²/width), the convention without a factor of two; needs no second array of this size."""
    K = cdist(X, Y, "sqeuclidean")
    K *= -1.0 / width
    return np.asarray(np.exp(K, out=K))


def neighbour_graph(X: Floats, n_neighbors: int) -> sp.csr_array:
    """Distances to the nearest neighbours, without the points themselves; sparse, one row a point.

    Equal points are joined by a path of almost no length: a stored zero might be taken for a missing edge.
    """
    graph = NearestNeighbors(n_neighbors=min(n_neighbors, len(X) - 1)).fit(X).kneighbors_graph(mode="distance")
    longest = graph.data.max(initial=0.0)
    graph.data = np.maximum(graph.data, 1e-12 * longest if longest > 0 else 1e-12)
    return sp.csr_array(graph)


def joined(graph: sp.csr_array, X: Floats) -> sp.csr_array:
    """The graph with bridges between its components: again and again the shortest edge out of the first component."""
    count, label = connected_components(graph, directed=False)
    bridges = []
    inside = label == label[0]
    for _ in range(count - 1):
        here, there = np.flatnonzero(inside), np.flatnonzero(~inside)
        distances, nearest = NearestNeighbors(n_neighbors=1).fit(X[here]).kneighbors(X[there])
        shortest = int(np.argmin(distances[:, 0]))
        bridges.append((here[nearest[shortest, 0]], there[shortest], distances[shortest, 0]))
        inside |= label == label[there[shortest]]
    if not bridges:
        return graph
    rows, columns, lengths = zip(*bridges, strict=True)
    return sp.csr_array(graph + sp.csr_array((lengths, (rows, columns)), shape=graph.shape))


def path_lengths(graph: sp.csr_array, sources: NDArray[np.intp]) -> Floats:
    """Lengths of the shortest paths from some points to all, edges going both ways; inf where there is no path."""
    return np.asarray(dijkstra(graph, directed=False, indices=sources))
