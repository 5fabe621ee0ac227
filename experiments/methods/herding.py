"""Kernel herding among the data: picks whose mean in the kernel's space follows the mean of all.

Chen, Welling, Smola: Super-samples from kernel herding, UAI 2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import Picks, Selector
from experiments.methods._selecting import WIDTHS, gaussian, points
from mosaic.arrays.blocks import row_blocks

LARGEST = 50_000


def select(X: Any, k: int, seed: int, width: float = 1.0) -> Picks:
    """argmax_{x∉S} (1/n) Σ_i k(x, x_i) − (1/(|S| + 1)) Σ_{s∈S} k(x, s), k times; the first pick is the densest point."""
    kernel = gaussian(points(X, k, LARGEST), width, seed)
    everyone = np.arange(kernel.n)
    mean = np.concatenate([kernel.block(rows, everyone).mean(axis=1) for rows in row_blocks(kernel.n, kernel.n)])
    near_picks = np.zeros(kernel.n)
    chosen: list[int] = []
    for size in range(1, k + 1):
        gains = mean - near_picks / size
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
        near_picks += kernel.block(slice(None), np.array(chosen[-1:]))[:, 0]
    return Picks(np.array(chosen, dtype=np.intp))


SELECTORS = (Selector("herding", "peer", select, WIDTHS, LARGEST),)
