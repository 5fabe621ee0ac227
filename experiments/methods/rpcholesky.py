"""RPCholesky: pivots of a randomly pivoted Cholesky factorisation of a Gaussian kernel.

Chen, Epperly, Tropp, Webber: CPAM 2025.
"""

from __future__ import annotations

from typing import Any

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, gaussian, pivots, points

LARGEST = 1_000_000


def select(X: Any, k: int, seed: int, width: float = 1.0) -> Picks:
    """Draw x with probability proportional to s(x) = k(x, x) − k_S(x)ᵀ K_SS⁻¹ k_S(x), k times."""
    return Picks(pivots(gaussian(points(X, k, LARGEST), width, seed), k, "random", seed))


SELECTORS = (Selector("RPCholesky", "peer", select, WIDTHS, LARGEST),)
