"""Synthetic manifolds and their contamination: data whose geometry and outliers are known exactly.

>>> from mosaic.datasets import contaminate, embed, swiss_roll
>>> data = contaminate(embed(swiss_roll(200), 50, noise=0.01), 0.5, kind="repetitive")
>>> data.X.shape, int(data.is_outlier.sum())
((300, 50), 100)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import cumulative_trapezoid

from mosaic.arrays.blocks import BoolArray, FloatArray, Seed
from mosaic.door import as_points
from mosaic.parameters import one_of, real_number, whole_number

__all__ = [
    "Contaminated",
    "blobs_with_gross_outliers",
    "contaminate",
    "embed",
    "noise_images",
    "sphere",
    "swiss_roll",
    "trefoil",
]


@dataclass(frozen=True)
class Contaminated:
    """Points, and the mask of those that are outliers."""

    X: FloatArray
    is_outlier: BoolArray


def sphere(n: int, *, random_state: Seed = 0) -> FloatArray:
    """Points x = g / ‖g‖ with g Gaussian in R³, uniform on the unit sphere."""
    g = np.random.default_rng(random_state).normal(size=(whole_number("n", n), 3))
    return np.asarray(g / np.linalg.norm(g, axis=1, keepdims=True))


def trefoil(n: int, *, random_state: Seed = 0) -> FloatArray:
    """γ(t) = (sin t + 2 sin 2t, cos t − 2 cos 2t, −sin 3t), t uniform in arc length: n points on the knot, in R³."""

    def speed(t: FloatArray) -> FloatArray:
        x, y, z = np.cos(t) + 4 * np.cos(2 * t), 4 * np.sin(2 * t) - np.sin(t), -3 * np.cos(3 * t)
        return np.asarray(np.sqrt(x**2 + y**2 + z**2))

    t = _uniform_in_length(
        speed, 0.0, 2 * np.pi, whole_number("n", n), np.random.default_rng(random_state)
    )
    return np.column_stack(
        [np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)]
    )


def swiss_roll(n: int, *, random_state: Seed = 0) -> FloatArray:
    """(t cos t, h, t sin t), 1.5π ≤ t ≤ 4.5π, 0 ≤ h ≤ 21, uniform in the area √(1 + t²) dt dh, unlike scikit-learn's."""
    n, rng = whole_number("n", n), np.random.default_rng(random_state)
    t = _uniform_in_length(lambda t: np.sqrt(1 + t**2), 1.5 * np.pi, 4.5 * np.pi, n, rng)
    return np.column_stack([t * np.cos(t), rng.uniform(0.0, 21.0, n), t * np.sin(t)])


def embed(
    X: ArrayLike, dimension: int, *, noise: float = 0.0, random_state: Seed = 0
) -> FloatArray:
    """X Qᵀ + noise · G with Q of orthonormal columns, uniform (Haar), and G Gaussian: the same shape in R^dimension."""
    X, noise = np.asarray(as_points(X)), real_number("noise", noise, at_least=0)
    whole_number(
        "dimension",
        dimension,
        at_least=X.shape[1],
        remedy="With fewer columns than X has, distances are not kept.",
    )
    rng = np.random.default_rng(random_state)
    Q, R = np.linalg.qr(rng.normal(size=(dimension, X.shape[1])))
    # LAPACK's signs depend on Q; only with R_jj > 0 is Q uniform.
    Q *= np.where(np.diag(R) < 0, -1.0, 1.0)
    embedded = np.asarray(X @ Q.T)
    return embedded + noise * rng.normal(size=embedded.shape)


def contaminate(
    X: ArrayLike,
    amount: float,
    *,
    kind: Literal["uniform", "repetitive", "far"] = "uniform",
    shuffle: bool = True,
    random_state: Seed = 0,
) -> Contaminated:
    """X and outliers among its rows.

    Parameters
    ----------
    X : inliers
    amount : number of outliers if an int, their ratio to the inliers if a float; 1 is one outlier, 1.0 as many as inliers
    kind : "uniform" in the bounding box of X, or "repetitive", where a tenth of these are copies of others (the paper's); "far":
        μ + f (x − μ) + σ/2 · g with μ the mean and σ the deviations of X, x a row of X, f uniform in [2, 4] and g Gaussian
    shuffle : whether to mix the rows; otherwise inliers come first, in their order
    random_state : seed
    """
    X = np.asarray(as_points(X))
    one_of("kind", kind, ("uniform", "repetitive", "far"))
    if isinstance(amount, Integral):
        n = whole_number("amount", amount, at_least=0)
    else:
        n = round(real_number("amount", amount, at_least=0) * len(X))
    rng = np.random.default_rng(random_state)
    if kind == "far":
        mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        rows = X[rng.integers(len(X), size=n)]
        factors = rng.uniform(2.0, 4.0, size=(n, 1))
        outliers = mean + factors * (rows - mean) + 0.5 * deviation * rng.normal(size=rows.shape)
    else:
        outliers = rng.uniform(X.min(axis=0), X.max(axis=0), size=(n, X.shape[1]))
        if kind == "repetitive" and n > 1:
            copies = max(round(0.1 * n), 1)
            outliers[n - copies :] = outliers[rng.integers(n - copies, size=copies)]
    rows = np.vstack([X, outliers.astype(X.dtype)])
    order = rng.permutation(len(rows)) if shuffle else np.arange(len(rows))
    return Contaminated(rows[order], order >= len(X))


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


def _uniform_in_length(
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
