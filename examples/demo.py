"""Digits: which images stand for the rest, how far that is from optimal, and which images resemble nobody."""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits

import mosaic
from mosaic.kernels import EffectiveCount
from mosaic.lam_path import bound_for_k, ridge_error
from mosaic.problem import DesignProblem

SHADES = " .:-=+*#%@"


def draw(images: np.ndarray) -> str:
    """8×8 images side by side, as text."""
    lines = []
    for row in range(8):
        cells = ("".join(SHADES[int(v * 9 / 16)] * 2 for v in image[row]) for image in images)
        lines.append("  ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Solve, certify, and show the answer."""
    digits = load_digits()
    X = digits.data
    start = time.perf_counter()
    # A representative should resemble about forty images: that is all there is to choose.
    encoding = mosaic.solve(X, gamma=EffectiveCount(40.0), alpha=3.0)
    seconds = time.perf_counter() - start
    print(f"{encoding!r}\nSolved in {seconds:.1f} s.\n")

    top = encoding.support[:6]
    print("The six most influential images, and how many images each stands for:\n")
    print(draw(digits.images[top]))
    print("  ".join(f"{f'a {digits.target[j]}, for {encoding.effective_count[j]:.0f}':<16}" for j in top), "\n")

    strange = np.argsort(encoding.effective_count)[:6]
    print("The six that resemble the fewest others:\n")
    print(draw(digits.images[strange]))
    print("  ".join(f"{f'a {digits.target[j]}, for {encoding.effective_count[j]:.0f}':<16}" for j in strange), "\n")

    F, k = np.asarray(encoding.factor.F), 50
    C = F.T @ F
    bound = bound_for_k(DesignProblem(F, C, 1.0), k, initial=encoding.factor.pivots)
    influential = ridge_error(F, C, encoding.support[:k], 1.0)
    random = ridge_error(F, C, np.random.default_rng(0).choice(len(X), k, replace=False), 1.0)
    print(f"What {k} images cannot express of {len(X)} (ridge 1), as a share of the least that any {k} must leave:")
    print(
        f"  the most influential: {influential / bound:.3f}    random: {random / bound:.3f}    any at all: at least 1"
    )


if __name__ == "__main__":
    main()
