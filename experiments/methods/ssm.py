"""SSM, spectral sampling of manifolds: the point that the span of the picks, in the kernel's space, misses most.

Öztireli, Alexa, Gross: Spectral sampling of manifolds, TOG 2010.
"""

from __future__ import annotations

from typing import Any

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, gaussian, pivots, points

LARGEST = 1_000_000


def select(X: Any, k: int, seed: int, width: float = 1.0) -> Picks:
    """argmax_x s(x) = k(x, x) − k_S(x)ᵀ K_SS⁻¹ k_S(x), k times: the pivots of a greedy Cholesky factorisation of K.

    Notes
    -----
    1. The authors insert every point with s(x) > ε in one pass; for a given number of points the greedy choice is used.
    2. Their kernel for surfaces has the normals in it. Here it is Gaussian in the points alone, and since their bandwidth
       is the wanted density of samples on a surface, which other data do not have, it is a setting.
    3. All points have s = 1 before the first pick, so it is drawn by lot.
    """
    return Picks(pivots(gaussian(points(X, k, LARGEST), width, seed), k, "greedy", seed))


SELECTORS = (Selector("SSM", "paper", select, WIDTHS, LARGEST),)
