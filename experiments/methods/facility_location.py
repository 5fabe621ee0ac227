"""Facility location: greedily increase the sum over all points of the similarity to the most similar pick.

Own code. With ``similarity="squared distance"`` it chooses what the package apricot chooses by default; a test says so. A second
contestant goes on where the first ends: it exchanges picks as long as that raises the sum.

facility location: Nemhauser, Wolsey, Fisher 1978; Minoux 1978; Schreiber, Bilmes, Noble: apricot, JMLR 2020.
facility location with exchanges: Nemhauser, Wolsey, Fisher 1978; exchanges: Teitz, Bart 1968.
"""

from __future__ import annotations

import heapq
from typing import Any, Literal

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, FloatArray, IntArray, distances, gaussian, generator, points, square
from mosaic.arrays.blocks import row_blocks
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import RBF, EffectiveCount, resolve_gamma

LARGEST, LARGEST_WITH_EXCHANGES = 10_000, 5000
#: Points that a point resembles, itself included, at least: below, almost nobody would resemble anybody.
FEWEST = 1.5
#: An exchange must raise the sum by this share of it; less is rounding.
RISE = 1e-10


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
    X: Any, k: int, seed: int, similarity: Literal["distance", "squared distance", "rbf"] = "distance", width: float = 1.0
) -> Picks:
    """max_S Σ_i max_{j∈S} s_ij, one pick after another. With distances this is the first phase of PAM."""
    return Picks(greedy(similarities(points(X, k, LARGEST), similarity, width, seed), k))


def bandwidth(X: FloatArray, k: int, seed: int) -> float:
    """γ at which a typical point resembles n/k points, at least 1.5 and at most n/2; that of the median distance if none does.

    There is none where a typical point has more copies than that.
    """
    n, kernel = len(X), RBF(X)
    try:
        return resolve_gamma(kernel, EffectiveCount(max(min(n / k, n / 2), FEWEST)), generator(seed))
    except InvalidInputError:
        return resolve_gamma(kernel, "median", generator(seed))


def nearest_two(S: FloatArray, chosen: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """For each point, the place in ``chosen`` of its most similar pick, that similarity, and the second largest one."""
    near = S[:, chosen]
    first = near.argmax(axis=1)
    everyone = np.arange(len(S))
    s1 = near[everyone, first]
    near[everyone, first] = 0.0  # who has one pick only has nothing without it
    return first, s1, near.max(axis=1)


def exchange_gains(C: FloatArray, first: IntArray, s1: FloatArray, s2: FloatArray, k: int) -> FloatArray:
    """How much Σ_i max_{j∈S} s_ij grows if candidate c takes the place of pick m, for all c and m at once.

    Parameters
    ----------
    C : similarities ≥ 0 of candidates (rows) to all points
    first, s1, s2 : of the points, see ``nearest_two``
    k : number of picks

    Notes
    -----
    gain_cm = Σ_i (c_i − s1_i)₊ − Σ_{i∈m} (s1_i − s2_i) + Σ_{i∈m} (clip(c_i, s2_i, s1_i) − s2_i), where i ∈ m are the points
    whose most similar pick is m: what c adds, less what is lost with m, plus what c makes good of that.
    """
    H = np.zeros((len(s1), k))
    H[np.arange(len(s1)), first] = 1.0
    lost, gains = (s1 - s2) @ H, np.empty((len(C), k))
    for rows in row_blocks(*C.shape):
        added = np.maximum(C[rows] - s1, 0.0).sum(axis=1, keepdims=True)
        gains[rows] = added - lost + (np.clip(C[rows], s2, s1) - s2) @ H
    return gains


def exchanged(S: FloatArray, chosen: IntArray) -> IntArray:
    """The picks after the best exchange of one of them, again and again until none raises the sum."""
    chosen = chosen.copy()
    while True:
        first, s1, s2 = nearest_two(S, chosen)
        # A pick that takes the place of another, or its own, gains nothing: such exchanges need not be ruled out.
        gains = exchange_gains(S, first, s1, s2, len(chosen))
        candidate, place = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[candidate, place] <= RISE * s1.sum():
            return chosen
        chosen[place] = candidate


def select_and_exchange(X: Any, k: int, seed: int) -> Picks:
    """max_S Σ_i max_{j∈S} exp(−γ ‖x_i − x_j‖²), greedily, then by exchanges; whoever comes in takes the rank of who leaves."""
    X = points(X, k, LARGEST_WITH_EXCHANGES)
    S = square(RBF(X, bandwidth(X, k, seed)))
    return Picks(exchanged(S, greedy(S, k)))


SELECTORS = (
    Selector(
        "facility location",
        "peer",
        select,
        ({"similarity": "distance"}, {"similarity": "squared distance"}, *({"similarity": "rbf", **width} for width in WIDTHS)),
        LARGEST,
    ),
    Selector("facility location with exchanges", "peer", select_and_exchange, largest=LARGEST_WITH_EXCHANGES),
)
