"""Faces of a few subjects under many lights."""

from __future__ import annotations

import numpy as np

from experiments.datasets.cases import Case
from experiments.datasets.real import load

SUBJECTS = 5
#: Stream of random numbers of its own, apart from those of other cases.
PURPOSE = 6


def five_subjects(seed: int) -> Case:
    """All pictures, 59 to 64 each, of five subjects of the Extended Yale Face Database B; no outliers, no test part.

    Parameters
    ----------
    seed : draws the subjects, without replacement, and the order of the pictures

    Notes
    -----
    The rows come in random order: the file has them by subject and, within a subject, by light, and a method that looks at
    the order would see both.
    """
    dataset = load("yaleb")
    assert dataset.y is not None  # the faces have names
    rng = np.random.default_rng([seed, PURPOSE])
    subjects = rng.choice(np.unique(dataset.y), SUBJECTS, replace=False)
    rows = rng.permutation(np.flatnonzero(np.isin(dataset.y, subjects)))
    clean, none = np.zeros(len(rows), np.bool_), rows[:0]
    X, y = dataset.X, dataset.y
    return Case(f"{dataset.name}/5", X[rows], y[rows], clean, X[none], y[none], rows, dataset.image_shape)
