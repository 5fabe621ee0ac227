"""GCP, a stand-in: coherence pursuit with lengths of paths along the data in place of distances.

Stands in for Sedghi, Atia, Georgiopoulos: Robust Manifold Learning via Conformity Pursuit, IEEE SPL 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import Detector, Scores
from experiments.methods.detect_coherence import scores
from experiments.methods.detect_parts import BANDWIDTHS, Floats, neighbour_graph, path_lengths, points
from mosaic.arrays.blocks import row_blocks

LARGEST = 10_000
WHY = "shortest paths between all n² pairs"
N_NEIGHBORS = 10
#: Points whose paths the median is taken over.
MEDIAN_SOURCES = 200


def conformity(lengths: Floats, width: float) -> Floats:
    """p_i = Σ_j exp(−d_ij²/width)² over the path lengths of every row; points that no path reaches add nothing."""
    return np.asarray(np.exp(-2.0 * lengths**2 / width).sum(axis=1))


def detect(X: Any, seed: int, bandwidth: float = 1.0) -> Scores:
    """Less than others conform: −p_i, paths along the graph of 10 neighbours, width = bandwidth · (median path)²."""
    X = points(X, LARGEST, WHY)
    graph = neighbour_graph(X, N_NEIGHBORS)
    some = np.sort(np.random.default_rng(seed).permutation(len(X))[:MEDIAN_SOURCES])
    sample = path_lengths(graph, some)
    known = sample[np.isfinite(sample) & (sample > 0)]
    width = bandwidth * float(np.median(known)) ** 2
    sums = np.empty(len(X))
    for block in row_blocks(len(X), len(X)):
        sums[block] = conformity(path_lengths(graph, np.arange(len(X))[block]), width) - 1.0
    return scores(np.maximum(sums, 0.0))


DETECTORS = (
    Detector("GCP (surrogate)", "surrogate", detect, tuple({"bandwidth": bandwidth} for bandwidth in BANDWIDTHS), LARGEST),
)
