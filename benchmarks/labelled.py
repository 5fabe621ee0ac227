"""Sets with classes that benchmarks share, in the folder that ``MOSAIC_DATA`` names; the digits come with scikit-learn."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

FILES = {
    "isolet": "isolet_1560.npz",
    "magic": "adbench/22_magic.gamma.npz",
    "MNIST": "mnist_t10k.npz",
    "spam": "adbench/35_SpamBase.npz",
}
#: Sets whose columns have units of their own; all ways see them divided by their spread.
TABLES = ("magic", "spam")


def loaded(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        with np.load(Path(os.environ["MOSAIC_DATA"]) / FILES[name]) as file:
            X, y = file[next(iter(file))], file["y"]
    X = X.reshape(len(X), -1).astype(float)
    X = StandardScaler().fit_transform(X) if name in TABLES else X / np.abs(X).max()
    return X, y.astype(int)
