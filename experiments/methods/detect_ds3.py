"""DS3 with its outlier row: a point is odd if not being represented costs it less than being represented.

The program is that of ``_ds3_program``.

Elhamifar, Sapiro, Sastry: Dissimilarity-based Sparse Subset Selection, IEEE TPAMI 2016.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from experiments.methods import Detector, Scores
from experiments.methods._ds3_program import largest_strength, solve
from experiments.methods.detect_parts import points

LARGEST = 2000
#: Shares closer than this are equal.
TIE = 1e-6
WHY = "hundreds of passes over n×n arrays and a linear program with tens of thousands of pairs"


def detect(X: Any, seed: int, alpha: float = 0.1, beta: float = 1.0, tau: float = 1.0) -> Scores:
    """e_j at ρ = α·ρ_max, cost of standing alone w_j = β exp(−min_{i≠j} d_ij / τ'), d Euclidean over its maximum.

    τ' is tau times the median distance to the nearest neighbour. The authors leave β and τ to the user. A point is flagged
    if the outlier row is the largest entry of its column, the rule by which DS3 assigns points; halves are common, and equal
    shares are not left to rounding: they are not flagged.
    """
    X = points(X, LARGEST, WHY)
    D = cdist(X, X)
    D /= max(D.max(), np.finfo(np.float64).tiny)
    nearest = (D + np.diag(np.full(len(D), np.inf))).min(axis=1)
    unit = float(np.median(nearest[nearest > 0])) if (nearest > 0).any() else 1.0
    found = solve(D, alpha * largest_strength(D)[0], beta * np.exp(-nearest / (tau * unit)))
    return Scores(found.e, found.e > found.Z.max(axis=0) + TIE)


DETECTORS = (
    Detector(
        "DS3",
        "paper",
        detect,
        tuple({"alpha": a, "beta": b, "tau": t} for a, b, t in product((0.01, 0.1), (0.3, 1.0), (1.0, 3.0))),
        LARGEST,
    ),
)
