"""M-kmeans, a stand-in: k-means along the data. Geodesic distances of a neighbour graph, centres that are points.

The name could not be traced to one definition. This is the usual reading where the manifold is unknown: assign to the
nearest centre by geodesic distance, replace the centre by the point of its cell with the least sum of squared distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, completed, generator, points
from experiments.methods.detect_parts import joined, neighbour_graph, path_lengths

LARGEST = 5000
#: Starts, of which the one with the lowest loss counts, and sweeps of one start.
STARTS, SWEEPS = 10, 100
NEIGHBOURS: tuple[dict[str, Any], ...] = tuple({"n_neighbors": number} for number in (5, 10, 20))


def geodesics(X: FloatArray, n_neighbors: int) -> FloatArray:
    """Lengths of shortest paths in the graph that joins points if either is among the nearest of the other.

    Parts that are not connected are joined by their shortest bridges, as in a minimum spanning tree.
    """
    if len(X) == 1:
        return np.zeros((1, 1))
    return path_lengths(joined(neighbour_graph(X, n_neighbors), X), np.arange(len(X)))


def assigned(D: FloatArray, centres: IntArray) -> tuple[IntArray, float]:
    """The nearest centre of every point, and Σ_i min_c d_ic²."""
    to_centres = D[:, centres]
    nearest = to_centres.argmin(axis=1)
    return nearest, float((to_centres[np.arange(len(D)), nearest] ** 2).sum())


def lloyd(D: FloatArray, centres: IntArray, sweeps: int = SWEEPS) -> IntArray:
    """Assign to the nearest centre; make argmin_{c in cell} Σ_{i in cell} d_ic² the centre; until nothing changes."""
    centres = centres.copy()
    for _ in range(sweeps):
        nearest, _ = assigned(D, centres)
        nearest[centres] = np.arange(len(centres))  # of copies, each centre keeps its own cell
        before = centres.copy()
        for c in range(len(centres)):
            cell = np.flatnonzero(nearest == c)
            costs = (D[np.ix_(cell, cell)] ** 2).sum(axis=0)
            best = int(costs.argmin())
            if costs[best] < costs[cell == centres[c]][0]:
                centres[c] = cell[best]
        if np.array_equal(before, centres):
            break
    return centres


def seeding(D: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """k-means++: the next centre is drawn with probability proportional to its squared distance to the nearest one."""
    chosen = [int(rng.integers(len(D)))]
    nearest = D[chosen[0]] ** 2
    while len(chosen) < k and nearest.sum() > 0:
        chosen.append(int(rng.choice(len(D), p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, D[chosen[-1]] ** 2)
    return completed(chosen, rng.permutation(len(D)), k)


def select(X: Any, k: int, seed: int, n_neighbors: int = 10) -> Picks:
    """min_S Σ_i min_{c∈S} d_G(i, c)², the best of ten starts; centres by the size of their cells."""
    D = geodesics(points(X, k, LARGEST), n_neighbors)
    rng = generator(seed)
    found = [lloyd(D, seeding(D, k, rng)) for _ in range(STARTS)]
    centres = min(found, key=lambda centres: assigned(D, centres)[1])
    order = np.argsort(-np.bincount(assigned(D, centres)[0], minlength=k), kind="stable")
    return Picks(centres[order])


SELECTORS = (Selector("M-kmeans", "surrogate", select, NEIGHBOURS, LARGEST),)
