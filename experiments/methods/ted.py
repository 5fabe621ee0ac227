"""TED, sequential transductive experimental design: the point whose label would tell most about all others.

Yu, Bi, Tresp: Active learning via transductive experimental design, ICML 2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, FloatArray, IntArray, gaussian, points, square

LARGEST = 5000
#: Ridge that is usual with a unit diagonal.
RIDGE = 0.1


def design(K: FloatArray, k: int, ridge: float) -> IntArray:
    """Greedy max_S tr(K_:S (K_SS + μI)⁻¹ K_S:): argmax_j ‖k_j‖²/(k_jj + μ), then K ← K − k_j k_jᵀ/(k_jj + μ), k times.

    A pick is not picked again, though with μ > 0 something is left of it.
    """
    K = K.copy()
    chosen: list[int] = []
    for _ in range(k):
        gains = np.einsum("ij,ij->i", K, K) / (np.diagonal(K) + ridge)
        gains[chosen] = -np.inf
        j = int(gains.argmax())
        chosen.append(j)
        K -= np.outer(K[:, j] / (K[j, j] + ridge), K[j])
    return np.array(chosen, dtype=np.intp)


def select(X: Any, k: int, seed: int, width: float = 1.0) -> Picks:
    """Sequential TED with a Gaussian kernel and μ = 0.1."""
    return Picks(design(square(gaussian(points(X, k, LARGEST), width, seed)), k, RIDGE))


SELECTORS = (Selector("TED", "peer", select, WIDTHS, LARGEST),)
