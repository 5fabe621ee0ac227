"""Synthetic data whose geometry and outliers are known exactly.

>>> from mosaic.datasets import blobs_with_gross_outliers
>>> data = blobs_with_gross_outliers()
>>> data.X.shape, int(data.is_outlier.sum())
((400, 2), 8)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import cumulative_trapezoid

from mosaic.arrays.blocks import BoolArray, FloatArray, Seed
from mosaic.parameters import whole_number

__all__ = ["Contaminated", "blobs_with_gross_outliers", "noise_images", "swiss_roll"]


@dataclass(frozen=True)
class Contaminated:
    """Points, and the mask of those that are outliers."""

    X: FloatArray
    is_outlier: BoolArray


def swiss_roll(n: int, *, random_state: Seed = 0) -> FloatArray:
    """(t cos t, h, t sin t), 1.5π ≤ t ≤ 4.5π, 0 ≤ h ≤ 21, uniform in the area √(1 + t²) dt dh, unlike scikit-learn's."""
    n, rng = whole_number("n", n), np.random.default_rng(random_state)
    t = uniform_in_length(lambda t: np.sqrt(1 + t**2), 1.5 * np.pi, 4.5 * np.pi, n, rng)
    return np.column_stack([t * np.cos(t), rng.uniform(0.0, 21.0, n), t * np.sin(t)])


def noise_images(n: int, like: ArrayLike, *, random_state: Seed = 0) -> FloatArray:
    """(1 − u) · min + u · max, u uniform in [0, 1]: n images of noise, in the shape and value range of ``like``."""
    like = np.asarray(like)
    size = (whole_number("n", n), *like.shape[1:])
    return np.random.default_rng(random_state).uniform(float(like.min()), float(like.max()), size)


def blobs_with_gross_outliers(*, random_state: Seed = 0) -> Contaminated:
    """392 points of five unequal Gaussian blobs in the plane, and 8 outliers 5.5 to 12 data radii away from their mean, in eight
    directions at eight distances, farther from one another than the diameter of the data.
    """
    rng = np.random.default_rng(random_state)

    def on_circle(turns: FloatArray) -> FloatArray:
        return np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])

    corners = on_circle((np.arange(5) + rng.uniform()) / 5)
    inliers = rng.normal(4.0 * np.repeat(corners, (150, 100, 70, 45, 27), axis=0), 0.5)
    centre = inliers.mean(axis=0)
    radius = np.linalg.norm(inliers - centre, axis=1).max()
    # Directions are at least 0.8/8 of a turn apart: 36°, which is 3.4 data radii at a distance of 5.5.
    turns = (np.arange(8) + rng.uniform() + rng.uniform(-0.1, 0.1, 8)) / 8
    distances = radius * rng.permutation(np.linspace(5.5, 12.0, 8))
    X = np.vstack([inliers, centre + distances[:, None] * on_circle(turns)])
    order = rng.permutation(len(X))
    return Contaminated(X[order], order >= len(inliers))


def uniform_in_length(
    speed: Callable[[FloatArray], FloatArray],
    start: float,
    stop: float,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Solutions t of s(t) = u, u uniform in [0, s(stop)], where s(t) = ∫_start^t speed."""
    # The error of the inverse is about the square of one piece.
    grid = np.linspace(start, stop, 4097)
    length = cumulative_trapezoid(speed(grid), grid, initial=0.0)
    return np.asarray(np.interp(rng.uniform(0.0, length[-1], n), length, grid))
