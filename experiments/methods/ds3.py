"""DS3, dissimilarity-based sparse subset selection: an assignment of all points to few, see ``_ds3_program``.

Elhamifar, Sapiro, Sastry: Dissimilarity-based sparse subset selection, TPAMI 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._ds3_program import Solution, largest_strength, solve
from experiments.methods._selecting import FloatArray, IntArray, completed, distances, points, ranking

LARGEST = 1000
#: Rows count whose largest entry reaches this share of the largest of all.
SHARE = 0.1
#: Strengths that are tried on the way to k representatives.
TRIALS = 10
#: Strengths that differ by a smaller share are not told apart: the count leaps by several there.
CLOSEST = 0.02
#: Weakest strength that is tried, as a share of the strongest; below it every point would be its own representative.
WEAKEST = 1e-4


def representatives(Z: FloatArray) -> IntArray:
    """Rows with a largest entry of at least 0.1 of the largest of all, by ℓ₂ norm."""
    largest = Z.max(axis=1)
    ranked = np.argsort(-np.linalg.norm(Z, axis=1), kind="stable")
    return np.asarray(ranked[largest[ranked] >= SHARE * largest.max()])


def reach(D: FloatArray, k: int) -> tuple[Solution, float]:
    """A solution with k representatives, or up to a tenth more, and its ρ/ρ_max.

    Between a ρ with too few and one with too many the next is where a line through log count over log ρ is log k, if that
    is not close to an end; the search starts with counts 1 at ρ_max and n at the weakest strength.
    """
    strongest = largest_strength(D)[0]
    low, high = (np.log(WEAKEST), np.log(len(D))), (0.0, 0.0)
    best: tuple[Any, Any, Any] = ((True, np.inf), None, 0.0)
    prices = None
    for _ in range(TRIALS):
        share = (np.log(k) - high[1]) / max(low[1] - high[1], 1e-12)
        at = high[0] + float(np.clip(share, 0.1, 0.9)) * (low[0] - high[0])
        found = solve(D, float(np.exp(at)) * strongest, prices=prices)
        prices, count = found.prices, len(representatives(found.Z))
        # Some too many are dropped by rank; too few would have to be completed by rows that represent nobody.
        best = min(best, ((count < k, abs(count - k)), found, at), key=lambda trial: trial[0])
        low, high = (low, (at, np.log(count))) if count < k else ((at, np.log(count)), high)
        if k <= count <= 1.1 * k or high[0] - low[0] < CLOSEST:
            break
    return best[1], float(np.exp(best[2]))


def select(X: Any, k: int, seed: int) -> Picks:
    """The strength that gives k representatives; the first k by norm if it gives more, completed by norm if fewer."""
    X = points(X, k, LARGEST)
    D = distances(X)
    if not D.any():
        return Picks(ranking(np.zeros(len(X)), seed)[:k])
    solution, _ = reach(D / D.max(), k)
    found = representatives(solution.Z)
    picks = completed(found, ranking(np.linalg.norm(solution.Z, axis=1), seed), k)
    return Picks(picks)


SELECTORS = (Selector("DS3", "paper", select, largest=LARGEST),)
