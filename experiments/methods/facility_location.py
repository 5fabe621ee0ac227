"""Facility location: greedily increase the sum over all points of the similarity to the most similar pick.

Own code. With ``similarity="squared distance"`` it chooses what the package apricot chooses by default; a test says so.
"""

from __future__ import annotations

import heapq
from typing import Any, Literal

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, FloatArray, IntArray, distances, gaussian, points, square

LARGEST = 10_000


def greedy(S: FloatArray, k: int) -> IntArray:
    """argmax_j Σ_i max(s_ij − max_{c∈chosen} s_ic, 0), k times, for symmetric S ≥ 0; the first of equals.

    Lazy: gains only ever fall, so a candidate whose gain, computed anew, still exceeds the old gains of all others is best.
    """
    covered = np.zeros(len(S))
    heap = [(-gain, j, 0) for j, gain in enumerate(S.sum(axis=1).tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < k:
        gain, j, known_at = heapq.heappop(heap)
        if known_at < len(chosen):
            gain = -float(np.maximum(S[j] - covered, 0.0).sum())
            heapq.heappush(heap, (gain, j, len(chosen)))
            continue
        chosen.append(j)
        np.maximum(covered, S[j], out=covered)
    return np.array(chosen, dtype=np.intp)


def similarities(X: FloatArray, similarity: str, width: float, seed: int) -> FloatArray:
    """s_ij = max d − d_ij, its like for squared distances, or a Gaussian kernel."""
    if similarity == "rbf":
        return square(gaussian(X, width, seed))
    D = distances(X) ** (2 if similarity == "squared distance" else 1)
    return np.asarray(D.max() - D)


def select(
    X: Any,
    k: int,
    seed: int,
    similarity: Literal["distance", "squared distance", "rbf"] = "distance",
    width: float = 1.0,
) -> Picks:
    """max_S Σ_i max_{j∈S} s_ij, one pick after another. With distances this is the first phase of PAM."""
    return Picks(greedy(similarities(points(X, k, LARGEST), similarity, width, seed), k))


SELECTORS = (
    Selector(
        "facility location",
        "peer",
        select,
        (
            {"similarity": "distance"},
            {"similarity": "squared distance"},
            *({"similarity": "rbf", **width} for width in WIDTHS),
        ),
        LARGEST,
        "Nemhauser, Wolsey, Fisher 1978; Minoux 1978; Schreiber, Bilmes, Noble: apricot, JMLR 2020",
    ),
)
