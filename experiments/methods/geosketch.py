"""Geometric sketching: cover the data by equal boxes and draw evenly from the boxes that are not empty.

Our implementation of the published idea, not the authors' package.

After Hie, Cho, DeMeo, Bryson, Berger: Geometric sketching, Cell Systems 2019.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh

from experiments.methods import Picks, Selector
from experiments.methods._selecting import FloatArray, IntArray, generator, points

LARGEST = 1_000_000
#: Directions of largest variance that boxes are laid in, the authors' number.
DIRECTIONS = 100
#: Sides that are tried, and the relative deviation from the wanted number of boxes that ends the search.
TRIALS, CLOSE = 60, 0.02


def along_main_directions(X: FloatArray) -> FloatArray:
    """(x − mean) V, V the leading eigenvectors of the covariance, 100 at most.

    Features that are counts have all their points on a few walls of boxes, and no side gives a middling number of boxes.
    """
    Y = X - X.mean(axis=0)
    return np.asarray(Y @ eigh(Y.T @ Y)[1][:, ::-1][:, :DIRECTIONS])


def boxes(X: FloatArray, side: float) -> IntArray:
    """The number of the box ⌊(x − min x)/side⌋ that every point lies in; empty boxes have no number."""
    cells = np.floor((X - X.min(axis=0)) / side).astype(np.int64).view(np.uint64)
    # Sorting rows of many columns is slow; sums with random odd factors modulo 2⁶⁴ tell them apart.
    factors = np.random.default_rng(0).integers(0, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    codes = (cells * factors).sum(axis=1, dtype=np.uint64)
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def covering(X: FloatArray, wanted: int) -> IntArray:
    """Boxes of the side, found by bisection of its logarithm, with which their number is nearest to the wanted one."""
    extent = float(np.ptp(X, axis=0).max())
    best = np.zeros(len(X), np.intp)
    low, high = -40.0, 1.0
    for _ in range(TRIALS if extent > 0 else 0):
        middle = 0.5 * (low + high)
        found = boxes(X, extent * float(np.exp(middle)))
        number = int(found.max()) + 1
        if abs(number - wanted) < abs(int(best.max()) + 1 - wanted):
            best = found
        if abs(number - wanted) <= CLOSE * wanted:
            break
        low, high = (middle, high) if number > wanted else (low, middle)
    return best


def evenly(box: IntArray, k: int, rng: np.random.Generator) -> IntArray:
    """A random point of every box, boxes in random order, then a second of every box that has one, until k are drawn."""
    shuffled = rng.permutation(len(box))
    order = shuffled[np.argsort(box[shuffled], kind="stable")]  # by box, in random order within
    sizes = np.bincount(box)
    turn = np.arange(len(box)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = rng.permutation(len(sizes))[box[order]]
    return np.asarray(order[np.lexsort((place, turn))[:k]])


def select(X: Any, k: int, seed: int, number: Literal["picks", "root"] = "picks") -> Picks:
    """About k boxes, or √n of them, and k points drawn evenly from them."""
    X = points(X, k, LARGEST)
    rng = generator(seed)
    box = covering(along_main_directions(X), k if number == "picks" else max(int(np.sqrt(len(X))), 1))
    return Picks(evenly(box, k, rng))


SELECTORS = (Selector("geosketch", "peer", select, ({"number": "picks"}, {"number": "root"}), LARGEST),)
