"""Outliers of more kinds than ``mosaic.datasets.contaminate`` has."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import numpy as np

from mosaic.arrays.blocks import FloatArray
from mosaic.datasets import contaminate as contaminate_simply
from mosaic.exceptions import InvalidInputError

Kind: TypeAlias = Literal["uniform", "repetitive", "far", "heavy-tailed", "images", "shuffled", "columns"]


def outliers_of(X: FloatArray, ratio: float, kind: Kind, images: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """The outliers for X, a ratio of its number of rows.

    - "uniform", "repetitive", "far": see ``mosaic.datasets.contaminate``
    - "heavy-tailed": m + r (1 + |z| / 2) v with m the median of X, r its largest distance to a row of X, z Cauchy and v
      uniform on the unit sphere: all farther out than any inlier, some very far
    - "images": rows of ``images``, without replacement
    - "shuffled": rows of X with their entries permuted, each row in its own way; images become noise of the right histogram
    - "columns": each entry is drawn from its column of X, independently of the others

    Examples
    --------
    The second feature is twice the first, but not in outliers whose entries come from the columns.

    >>> X = np.column_stack([np.arange(50.0), 2 * np.arange(50.0)])
    >>> outliers = outliers_of(X, 0.2, "columns", None, np.random.default_rng(0))
    >>> len(outliers), int((outliers[:, 1] == 2 * outliers[:, 0]).sum())
    (10, 0)
    """
    n, d = round(ratio * len(X)), X.shape[1]
    match kind:
        case "heavy-tailed":
            median = np.median(X, axis=0)
            v = rng.normal(size=(n, d))
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            farthest = np.linalg.norm(X - median, axis=1).max()
            return np.asarray(median + farthest * (1.0 + 0.5 * np.abs(rng.standard_cauchy(size=(n, 1)))) * v)
        case "images":
            if images is None or images.shape[1] != d or len(images) < n:
                raise InvalidInputError(f"`images` must hold at least {n} rows with the {d} features of X.")
            return np.asarray(images[rng.choice(len(images), n, replace=False)])
        case "shuffled":
            return _permuted(X, n, rng)
        case "columns":
            return np.asarray(np.take_along_axis(X, rng.integers(len(X), size=(n, d)), axis=0))
        case _:
            simple = cast(Literal["uniform", "repetitive", "far"], kind)
            return contaminate_simply(X, ratio, kind=simple, shuffle=False, random_state=rng).X[len(X) :]


def _permuted(X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Rows of X with permuted entries; none stays unchanged, and every row is used once before any is used again."""
    usable = np.flatnonzero(np.ptp(X, axis=1) > 0)
    rounds = -(-n // len(usable))
    originals: FloatArray = X[np.concatenate([rng.permutation(usable) for _ in range(rounds)])[:n]]
    outliers = originals.copy()
    # A permutation leaves such a row unchanged with probability at most 1/2, so this ends soon.
    while len(same := np.flatnonzero((outliers == originals).all(axis=1))):
        outliers[same] = rng.permuted(outliers[same], axis=1)
    return outliers
