"""Natural images in the shape of other images, as the outliers that they are among those."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from experiments.datasets.real import load
from mosaic.arrays.blocks import FloatArray
from mosaic.exceptions import InvalidInputError

#: Sets that natural images are taken from, in this order.
SOURCES = ("cifar10", "bsds")
#: Weights of red, green and blue in the brightness (ITU-R BT.601).
LUMA = (0.299, 0.587, 0.114)


@lru_cache(maxsize=1)
def natural_images(shape: tuple[int, ...]) -> FloatArray:
    """All natural images there are, in the shape (grey if it has two entries), flattened, with values in [0, 1]; kept.

    Parameters
    ----------
    shape : height and width, or height, width and 3
    """
    parts = []
    for name in SOURCES:
        dataset = load(name)
        pictures = dataset.X.reshape(len(dataset.X), *(dataset.image_shape or ()))
        resized = resize(grey(pictures) if len(shape) == 2 else pictures, shape[:2])
        parts.append(resized.reshape(len(resized), -1))
    return np.concatenate(parts)


def grey(images: FloatArray) -> FloatArray:
    """0.299 R + 0.587 G + 0.114 B for every pixel of n × h × w × 3.

    Examples
    --------
    >>> grey(np.ones((5, 4, 3, 3))).shape
    (5, 4, 3)
    """
    return np.asarray(images @ np.array(LUMA))


def resize(images: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Mean over the box that each new pixel covers in the largest centred window of the new proportions.

    Along one axis, with boxes of length s that start at a: new_i = (1/s) Σ_j |[a + i s, a + (i+1) s] ∩ [j, j+1]| old_j.
    Enlarging repeats pixels and mixes them where boxes straddle two.

    Parameters
    ----------
    images : n × h × w, or n × h × w × channels
    shape : new height and width

    Examples
    --------
    >>> resize(np.array([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]]), (1, 1))  # the window is 2 × 2
    array([[[3.5]]])
    """
    if images.ndim not in (3, 4) or len(shape) != 2 or min(shape) < 1:
        raise InvalidInputError(
            f"images must be n × h × w, with channels or without, and shape two numbers >= 1; "
            f"got shapes {images.shape} and {shape}."
        )
    side = min(images.shape[1] / shape[0], images.shape[2] / shape[1])  # of the square that a new pixel covers
    rows, columns = (_overlaps(old, new, side) for old, new in zip(images.shape[1:3], shape, strict=True))
    return np.asarray(np.einsum("ij,njk...,lk->nil...", rows, images, columns, optimize=True))


def _overlaps(old: int, new: int, side: float) -> FloatArray:
    """Shares of each of the old pixels in the boxes of the new ones, new × old; rows sum to 1."""
    starts = (old - new * side) / 2 + side * np.arange(new)[:, None]
    left = np.arange(old)
    overlap = np.minimum(starts + side, left + 1) - np.maximum(starts, left)
    shares = np.maximum(overlap, 0.0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
