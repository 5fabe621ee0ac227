"""Synthetic manifolds and their contamination: data whose geometry and outliers are known exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.integrate import cumulative_trapezoid

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, Seed
from mosaic.checks import one_of, real_number, whole_number
from mosaic.door import as_points
from mosaic.exceptions import InvalidInputError

__all__ = [
    "Contaminated",
    "blobs_with_gross_outliers",
    "contaminate",
    "embed",
    "noise_images",
    "sphere",
    "swiss_roll",
    "trefoil",
    "union",
]

Kind: TypeAlias = Literal[
    "uniform", "repetitive", "dependent", "clustered", "heavy-tailed", "images", "shuffled", "columns", "far"
]

#: Pieces into which a curve is cut to invert its arc length; the error is about the square of 1 / ARC_PIECES.
ARC_PIECES = 4096
#: Clusters of outliers: their standard deviation as a share of the mean side of the box, and the factor by which the box of their
#: centres is wider.
CLUSTER_WIDTH, CLUSTER_BOX = 0.02, 2.0
#: Far outliers: smallest and largest factor for the distance from the mean, and noise in standard deviations of each column.
FAR_FACTORS, FAR_NOISE = (2.0, 4.0), 0.5
#: Points in each blob of ``blobs_with_gross_outliers``, and its outliers: 400 in all.
BLOB_SIZES, GROSS_OUTLIERS = (150, 100, 70, 45, 27), 8


@dataclass(frozen=True)
class Contaminated:
    """Points and the truth about them.

    Attributes
    ----------
    X : inliers and outliers, as rows
    is_outlier : mask of the rows that are outliers
    """

    X: FloatArray
    is_outlier: BoolArray


def sphere(n: int, *, radius: float = 1.0, intrinsic: int = 2, random_state: Seed = 0) -> FloatArray:
    """‖x‖ = radius, x = radius · g / ‖g‖ with g Gaussian in R^(intrinsic + 1): n points, uniform on the sphere.

    Examples
    --------
    >>> from mosaic.datasets import sphere
    >>> sphere(100, intrinsic=4).shape
    (100, 5)
    """
    n, intrinsic = whole_number("n", n), whole_number("intrinsic", intrinsic)
    radius = real_number("radius", radius, above=0)
    return radius * _unit(np.random.default_rng(random_state).normal(size=(n, intrinsic + 1)))


def trefoil(n: int, *, width: float = 0.0, random_state: Seed = 0) -> FloatArray:
    """γ(t) = (sin t + 2 sin 2t, cos t − 2 cos 2t, −sin 3t), t uniform in arc length: n points on the knot, in R³.

    Parameters
    ----------
    n : number of points
    width : radius of the tube that is filled around the knot, x = γ(t) + width · √u · ν, with ν uniform among the
        unit normals of γ at t and u uniform in [0, 1]
    random_state : seed

    Notes
    -----
    The reach of the knot is 0.607: a wider tube touches itself.

    Examples
    --------
    >>> from mosaic.datasets import trefoil
    >>> trefoil(200, width=0.1).shape
    (200, 3)
    """
    n, width = whole_number("n", n), real_number("width", width, at_least=0)
    rng = np.random.default_rng(random_state)
    t = _uniform_in_length(lambda t: np.linalg.norm(_trefoil_velocity(t), axis=1), 0.0, 2 * np.pi, n, rng)
    knot = np.column_stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)])
    if width == 0:
        return knot
    # A Gaussian less its tangential part is uniform in direction among the normals: no frame is needed.
    g, tangent = rng.normal(size=(n, 3)), _unit(_trefoil_velocity(t))
    normal = _unit(g - np.sum(g * tangent, axis=1, keepdims=True) * tangent)
    return np.asarray(knot + width * np.sqrt(rng.uniform(size=(n, 1))) * normal)


def swiss_roll(n: int, *, height: float = 21.0, random_state: Seed = 0) -> FloatArray:
    """(t cos t, h, t sin t), 1.5π ≤ t ≤ 4.5π, 0 ≤ h ≤ height: n points, uniform in the area √(1 + t²) dt dh.

    Notes
    -----
    ``sklearn.datasets.make_swiss_roll`` is uniform in t instead, which makes the outer turns almost three times as
    thin as the inner ones. Here the density is the same everywhere on the roll.

    Examples
    --------
    >>> from mosaic.datasets import swiss_roll
    >>> swiss_roll(300).shape
    (300, 3)
    """
    n, height = whole_number("n", n), real_number("height", height, above=0)
    rng = np.random.default_rng(random_state)
    t = _uniform_in_length(lambda t: np.sqrt(1 + t**2), 1.5 * np.pi, 4.5 * np.pi, n, rng)
    return np.column_stack([t * np.cos(t), rng.uniform(0.0, height, n), t * np.sin(t)])


def union(
    parts: Sequence[ArrayLike], offsets: ArrayLike | Literal["apart"] | None = "apart"
) -> tuple[FloatArray, IntArray]:
    """X = the rows of all parts, x + offset_k for x in part k: several manifolds in one space, and the part of each row.

    Parameters
    ----------
    parts : clouds of points; those with fewer features are padded with zeros
    offsets : one shift for each part, as rows; None shifts nothing; "apart" lines up the balls around the parts
        along the first axis, with gaps as wide as the largest radius

    Returns
    -------
    X : the points, in the order of the parts
    labels : number of the part of each row

    Examples
    --------
    >>> from mosaic.datasets import sphere, trefoil, union
    >>> X, labels = union([trefoil(50), sphere(30, intrinsic=4)])
    >>> X.shape, labels[[0, 49, 50, 79]].tolist()
    ((80, 5), [0, 0, 1, 1])
    """
    clouds = [_dense(part, f"parts[{k}]") for k, part in enumerate(parts)]
    if not clouds:
        raise InvalidInputError("must hold at least one cloud of points; got none", parameter="parts")
    d = max(cloud.shape[1] for cloud in clouds)
    clouds = [np.pad(cloud, ((0, 0), (0, d - cloud.shape[1]))) for cloud in clouds]
    if isinstance(offsets, str):
        if offsets != "apart":
            raise InvalidInputError("must be 'apart', None or an array", parameter="offsets", value=offsets)
        shifts = _apart(clouds)
    else:
        shifts = np.zeros((len(clouds), d)) if offsets is None else _dense(offsets, "offsets")
    if shifts.shape != (len(clouds), d):
        raise InvalidInputError(
            f"must have one row for each of {len(clouds)} parts and {d} columns, the most features of a part; "
            f"got shape {shifts.shape}",
            parameter="offsets",
        )
    X = np.vstack([cloud + shift for cloud, shift in zip(clouds, shifts, strict=True)])
    return X, np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])


def embed(X: ArrayLike, dimension: int, *, noise: float = 0.0, random_state: Seed = 0) -> FloatArray:
    """X Qᵀ + noise · G with Q of orthonormal columns, uniform (Haar), and G Gaussian: the same shape in R^dimension.

    Parameters
    ----------
    X : points
    dimension : number of features of the result, at least that of X
    noise : standard deviation of the noise that is added to each coordinate; 0 keeps all distances
    random_state : seed; the map does not depend on ``noise``

    Examples
    --------
    >>> from mosaic.datasets import embed, sphere
    >>> embed(sphere(100), 50, noise=0.01).shape
    (100, 50)
    """
    X = _dense(X, "X")
    dimension, noise = whole_number("dimension", dimension), real_number("noise", noise, at_least=0)
    if dimension < X.shape[1]:
        raise InvalidInputError(
            f"must be at least the {X.shape[1]} features of X, or distances could not be kept",
            "Reduce X first (for example with sklearn.decomposition.PCA).",
            parameter="dimension",
            value=dimension,
        )
    rng = np.random.default_rng(random_state)
    Q, R = np.linalg.qr(rng.normal(size=(dimension, X.shape[1])))
    Q *= np.where(np.diag(R) < 0, -1.0, 1.0)  # LAPACK's signs depend on Q; only with R_jj > 0 is Q uniform
    embedded = np.asarray(X @ Q.T)
    return embedded + noise * rng.normal(size=embedded.shape)


def contaminate(
    X: ArrayLike,
    amount: float,
    *,
    kind: Kind = "uniform",
    scale: float = 1.0,
    share: float = 0.1,
    clusters: int = 3,
    images: ArrayLike | None = None,
    shuffle: bool = True,
    random_state: Seed = 0,
) -> Contaminated:
    """X and n₂ outliers among its rows, n₂ = amount (an int) or the rounded amount · n₁ (a float).

    Parameters
    ----------
    X : inliers, n₁ of them
    amount : number of outliers if an int, their ratio to the inliers if a float; 1 is one outlier, 1.0 is n₁ of them
    kind : what the outliers are, with c the centre and s the sides of the bounding box of X:

        - "uniform": c + scale · s · u with u uniform in [−½, ½]^d
        - "repetitive": as "uniform", but a share of them are exact copies of others
        - "dependent": as "uniform", but a share of them are mixtures w a + (1 − w) b of two others, w uniform in [0, 1]
        - "clustered": Gaussian clusters of equal size and standard deviation 0.02 · mean(s), their centres uniform
          in the box enlarged by 2 · scale
        - "heavy-tailed": m + r (1 + |z| / 2) v with m the median of X, r its largest distance to a row of X, z Cauchy
          and v uniform on the unit sphere: all farther out than any inlier, some very far
        - "images": rows of ``images``, without replacement
        - "shuffled": rows of X with their entries permuted, each row in its own way; images become noise with
          the right histogram
        - "columns": each entry is drawn from its column of X, independently of the others: every feature is distributed as
          in the data, and none depends on another
        - "far": μ + f (x − μ) + σ/2 · g with μ the mean and σ the standard deviations of the columns of X, x a row of X, f
          uniform in [2, 4] and g Gaussian: most lie two to four times as far from the mean as a row of X

    scale : how much the box is enlarged
    share : share of the outliers that other outliers represent, "repetitive" and "dependent" only; at least one, if > 0
    clusters : number of clusters
    images : images to take outliers from, flattened to the features of X
    shuffle : whether to mix the rows; otherwise inliers come first, in their order
    random_state : seed

    Notes
    -----
    1. "repetitive" is the paper's structured contamination (a tenth of its uniform outliers are repetitive points).
       "dependent" mixes convexly: such outliers are in the linear and in the affine span of others, and in the box.
    2. If the data fill their box, as they may in few dimensions, a uniform outlier can fall among inliers.
    3. "shuffled" leaves out rows with all entries equal, which no permutation changes, and reuses rows when it needs
       more than there are.
    4. With few features, or few different values in them, a row of "columns" may by chance equal a row of X; if the features
       are independent of each other, its rows are not outliers at all.

    Examples
    --------
    >>> from mosaic.datasets import contaminate, embed, swiss_roll
    >>> data = contaminate(embed(swiss_roll(200), 10), 0.5, kind="repetitive")
    >>> data.X.shape, int(data.is_outlier.sum())
    ((300, 10), 100)

    The second feature is twice the first, but not in outliers whose entries come from the columns.

    >>> import numpy as np
    >>> data = contaminate(np.column_stack([np.arange(50), 2 * np.arange(50)]), 0.2, kind="columns")
    >>> twice = data.X[:, 1] == 2 * data.X[:, 0]
    >>> bool(twice[~data.is_outlier].all()), int(twice[data.is_outlier].sum())
    (True, 0)
    """
    X = _dense(X, "X")
    one_of("kind", kind, get_args(Kind))
    if kind == "images" and images is None:
        raise InvalidInputError(
            "`kind='images'` takes its outliers from `images`, which is None", "Pass an array of them."
        )
    if kind != "images" and images is not None:
        fault = f"are used by `kind='images'` only; got `kind={kind!r}`"
        raise InvalidInputError(fault, "Leave out one of the two.", parameter="images")
    scale, share = real_number("scale", scale, above=0), real_number("share", share, at_least=0, below=1)
    clusters, n = whole_number("clusters", clusters), _amount(amount, len(X))
    rng = np.random.default_rng(random_state)
    outliers = X[:0] if n == 0 else _outliers(kind, X, n, scale, share, clusters, images, rng)
    rows = np.vstack([X, outliers.astype(X.dtype)])
    order = rng.permutation(len(rows)) if shuffle else np.arange(len(rows))
    return Contaminated(rows[order], order >= len(X))


def noise_images(n: int, like: ArrayLike, *, random_state: Seed = 0) -> FloatArray:
    """(1 − u) · min + u · max, u uniform in [0, 1]: n images of noise, in the shape and value range of ``like``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mosaic.datasets import noise_images
    >>> noise_images(5, load_digits().images).shape
    (5, 8, 8)
    """
    n, like = whole_number("n", n), np.asarray(like)
    if like.ndim < 2:
        fault = f"must be an array of images, one for each first index; got shape {like.shape}"
        raise InvalidInputError(fault, parameter="like")
    values = _dense(like.reshape(len(like), -1), "like")
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise InvalidInputError(
            f"must hold at least two different values to span a range; all are {low:g}", parameter="like"
        )
    return np.random.default_rng(random_state).uniform(low, high, size=(n, *like.shape[1:]))


def blobs_with_gross_outliers(*, random_state: Seed = 0) -> Contaminated:
    """392 points of five unequal Gaussian blobs in the plane, and 8 outliers 5.5 to 12 data radii away from their mean.

    The outliers lie in eight directions at eight distances, farther from one another than the diameter of the data.

    Examples
    --------
    >>> from mosaic.datasets import blobs_with_gross_outliers
    >>> data = blobs_with_gross_outliers()
    >>> data.X.shape, int(data.is_outlier.sum())
    ((400, 2), 8)
    """
    rng = np.random.default_rng(random_state)
    corners = _on_circle((np.arange(len(BLOB_SIZES)) + rng.uniform()) / len(BLOB_SIZES))
    inliers = rng.normal(4.0 * np.repeat(corners, BLOB_SIZES, axis=0), 0.5)
    centre = inliers.mean(axis=0)
    radius = np.linalg.norm(inliers - centre, axis=1).max()
    # Directions are at least 0.8/8 of a turn apart: 36°, which is 3.4 data radii at a distance of 5.5.
    turns = (np.arange(GROSS_OUTLIERS) + rng.uniform() + rng.uniform(-0.1, 0.1, GROSS_OUTLIERS)) / GROSS_OUTLIERS
    distances = radius * rng.permutation(np.linspace(5.5, 12.0, GROSS_OUTLIERS))
    X = np.vstack([inliers, centre + distances[:, None] * _on_circle(turns)])
    order = rng.permutation(len(X))
    return Contaminated(X[order], order >= len(inliers))


def _uniform_in_length(
    speed: Callable[[FloatArray], FloatArray], start: float, stop: float, n: int, rng: np.random.Generator
) -> FloatArray:
    """Solutions t of s(t) = u, u uniform in [0, s(stop)], where s(t) = ∫_start^t speed."""
    grid = np.linspace(start, stop, ARC_PIECES + 1)
    length = cumulative_trapezoid(speed(grid), grid, initial=0.0)
    return np.asarray(np.interp(rng.uniform(0.0, length[-1], n), length, grid))


def _trefoil_velocity(t: FloatArray) -> FloatArray:
    """The derivative γ'(t), as rows."""
    return np.column_stack([np.cos(t) + 4 * np.cos(2 * t), 4 * np.sin(2 * t) - np.sin(t), -3 * np.cos(3 * t)])


def _unit(A: FloatArray) -> FloatArray:
    """Rows a / ‖a‖."""
    return np.asarray(A / np.linalg.norm(A, axis=1, keepdims=True))


def _apart(clouds: list[FloatArray]) -> FloatArray:
    """Shifts that put the centre of ball k at (Σ_{l<k} (2 ρ_l + gap) + ρ_k) e₁, gap = max ρ."""
    centres = np.array([(cloud.min(axis=0) + cloud.max(axis=0)) / 2 for cloud in clouds])
    radii = np.array([np.linalg.norm(x - c, axis=1).max() for x, c in zip(clouds, centres, strict=True)])
    gap = radii.max() if radii.max() > 0 else 1.0  # single points are also kept apart
    shifts = -centres
    shifts[:, 0] += np.cumsum(2 * radii + gap) - gap - radii
    return shifts


def _on_circle(turns: FloatArray) -> FloatArray:
    """(cos 2πu, sin 2πu) for each u."""
    return np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])


def _outliers(
    kind: Kind,
    X: FloatArray,
    n: int,
    scale: float,
    share: float,
    clusters: int,
    images: ArrayLike | None,
    rng: np.random.Generator,
) -> FloatArray:
    """The rows that ``contaminate`` adds, n ≥ 1 of them."""
    match kind:
        case "uniform":
            return _in_box(X, n, scale, rng)
        case "repetitive" | "dependent":
            return _structured(_in_box(X, n, scale, rng), kind, share, rng)
        case "clustered":
            centres = _in_box(X, clusters, CLUSTER_BOX * scale, rng)[np.arange(n) % clusters]
            return rng.normal(centres, CLUSTER_WIDTH * np.ptp(X, axis=0).mean())
        case "heavy-tailed":
            return _beyond(X, n, rng)
        case "images":
            return _drawn(images, n, X.shape[1], rng)
        case "shuffled":
            return _permuted(X, n, rng)
        case "columns":
            return _recombined(X, n, rng)
        case "far":
            return _moved_away(X, n, rng)


def _in_box(X: FloatArray, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
    """Points c + scale · s · u, u uniform in [−½, ½]^d, for the box of X with centre c and sides s."""
    _check_spans(X)
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    margin = (scale - 1.0) / 2.0 * (high - low)  # zero for scale = 1: then the box is that of X to the last bit
    return rng.uniform(low - margin, high + margin, size=(n, X.shape[1]))


def _structured(outliers: FloatArray, kind: Kind, share: float, rng: np.random.Generator) -> FloatArray:
    """The outliers, the last share of them replaced by a (copies) or by w a + (1 − w) b of those before."""
    n, parents = len(outliers), 1 if kind == "repetitive" else 2
    if share == 0:
        return outliers
    if n <= parents:
        raise InvalidInputError(
            f"`kind={kind!r}` needs at least {parents + 1} outliers; `amount` gives {n}", "Ask for more."
        )
    replaced = min(max(round(share * n), 1), n - parents)
    free = n - replaced
    a = rng.integers(free, size=replaced)
    if kind == "repetitive":
        outliers[free:] = outliers[a]
    else:
        b = (a + rng.integers(1, free, size=replaced)) % free  # any but a
        w = rng.uniform(size=(replaced, 1))
        outliers[free:] = w * outliers[a] + (1 - w) * outliers[b]
    return outliers


def _beyond(X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Points m + r (1 + |z| / 2) v: beyond every inlier, seen from the median m."""
    _check_spans(X)
    median = np.median(X, axis=0)
    farthest = np.linalg.norm(X - median, axis=1).max()
    v = _unit(rng.normal(size=(n, X.shape[1])))
    return np.asarray(median + farthest * (1.0 + 0.5 * np.abs(rng.standard_cauchy(size=(n, 1)))) * v)


def _drawn(images: Any, n: int, features: int, rng: np.random.Generator) -> FloatArray:
    """Different rows of the images, flattened, n of them."""
    images = np.asarray(images)
    if images.ndim > 2:
        images = images.reshape(len(images), -1)
    images = _dense(images, "images")
    if images.shape[1] != features:
        fault = f"must have the {features} features of X; they have {images.shape[1]}"
        raise InvalidInputError(fault, "Resize them first.", parameter="images")
    if len(images) < n:
        fault = f"must hold at least {n} rows; got {len(images)}"
        raise InvalidInputError(fault, "Give more or ask for fewer.", parameter="images")
    return np.asarray(images[rng.choice(len(images), n, replace=False)])


def _permuted(X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Rows of X with permuted entries; none stays unchanged."""
    usable = np.flatnonzero(np.ptp(X, axis=1) > 0)
    if len(usable) == 0:
        raise InvalidInputError(
            "`kind='shuffled'` needs rows with different entries; all rows of X are constant", "Use another kind."
        )
    rounds = -(-n // len(usable))  # ⌈n / usable⌉: every row is used once before any is used again
    originals: FloatArray = X[np.concatenate([rng.permutation(usable) for _ in range(rounds)])[:n]]
    outliers = originals.copy()
    # A permutation leaves such a row unchanged with probability at most 1/2, so this ends soon.
    while len(same := np.flatnonzero((outliers == originals).all(axis=1))):
        outliers[same] = rng.permuted(outliers[same], axis=1)
    return outliers


def _recombined(X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Rows of entries x_ij of X, with i drawn anew for every entry."""
    _check_spans(X)
    if X.shape[1] < 2:
        raise InvalidInputError(
            "`kind='columns'` needs at least two features, or its outliers would be rows of X; X has 1",
            "Use another kind.",
        )
    return np.asarray(np.take_along_axis(X, rng.integers(len(X), size=(n, X.shape[1])), axis=0))


def _moved_away(X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Points μ + f (x − μ) + σ/2 · g, x a random row of X."""
    _check_spans(X)
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    rows = X[rng.integers(len(X), size=n)]
    factors = rng.uniform(*FAR_FACTORS, size=(n, 1))
    return np.asarray(mean + factors * (rows - mean) + FAR_NOISE * deviation * rng.normal(size=rows.shape))


def _check_spans(X: FloatArray) -> None:
    if not np.ptp(X, axis=0).any():
        raise InvalidInputError(
            f"must hold at least two different rows to give outliers a scale; all {len(X)} are equal",
            "Use `kind='images'` or 'shuffled', or more points.",
            parameter="X",
        )


def _dense(X: Any, name: str) -> FloatArray:
    if sp.issparse(X):
        raise InvalidInputError("must be a dense array; got a sparse one", f"Use {name}.toarray().", parameter=name)
    return np.asarray(as_points(X, name))


def _amount(amount: float, n_inliers: int) -> int:
    """Number of outliers: an int is the number itself, a float is multiplied by the number of inliers."""
    if isinstance(amount, Integral):
        return whole_number("amount", amount, at_least=0)
    return round(real_number("amount", amount, at_least=0) * n_inliers)
