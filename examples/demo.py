"""Digits with noise among them: twenty images that stand for the rest, the ones that do not belong, and how good that is."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from mosaic import MOSAIC, datasets

SHADES = " .:-=+*#%@"


def draw(images: np.ndarray) -> str:
    """8×8 images side by side, as text."""
    lines = []
    for row in range(8):
        cells = ("".join(SHADES[int(v * 9 / 16)] * 2 for v in image[row]) for image in images)
        lines.append("  ".join(cells))
    return "\n".join(lines)


def main(picture: Path) -> None:
    """Select, reject, certify, and show the answer."""
    digits = load_digits()
    noise = datasets.noise_images(len(digits.data) // 20, digits.data)
    X = np.vstack([digits.data, noise])
    what = [f"a {label}" for label in digits.target] + ["noise"] * len(noise)
    print(f"{len(digits.data)} digits and {len(noise)} images of noise. Nothing else is said about which is which.\n")

    start = time.perf_counter()
    model = MOSAIC(n_representatives=20, verbose=sys.stderr.isatty()).fit(X)
    seconds = time.perf_counter() - start

    picks = model.representative_indices_
    print(f"20 representatives in {seconds:.1f} s: {', '.join(f'{i} ({what[i]})' for i in picks)}\n")
    print(draw(X[picks[:6]].reshape(-1, 8, 8)))
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=len(picks))
    print("  ".join(f"{f'{what[i]}, for {sizes[k]}':<16}" for k, i in enumerate(picks[:6])), "\n")

    found = np.flatnonzero(model.is_outlier_)
    caught = int((found >= len(digits.data)).sum())
    print(f"{len(found)} outliers found: {caught} of {len(noise)} images of noise, {len(found) - caught} digits.")
    if len(found):
        print(f"  {model.explain(int(found[0]))}")
    print(f"  {model.explain(int(picks[0]))}\n")
    print(model.certificate_)

    from mosaic.inspection import SelectionDisplay

    display = SelectionDisplay.from_estimator(model, X, images=X.reshape(-1, 8, 8), image_cmap="gray_r")
    display.figure_.savefig(picture, dpi=150)
    print(f"\nThe picture is in {picture}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "mosaic-demo.png"))
