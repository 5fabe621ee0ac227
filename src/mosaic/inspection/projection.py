"""Where points are in the plane.

Kernels that compare distances between features (rbf, laplacian, and diffusion through its graph of neighbours) show these
features: two as they are, of more the principal axes. All others show the principal axes of the kernel's own space, in
coordinates a_i = K_LL^(−½) k_L(i) for a few landmarks L, the representatives first (Nyström). Principal axes are those of the
points that belong: outliers are put to axes that they had no part in, or a few of them would flatten everybody else.

Why not the kernel's own space for all? Where the kernel is narrow, points at a distance are all orthogonal: blobs become rays
of a star and a swiss roll closes to a ring. More neighbours stay neighbours along the principal axes of the features:
trustworthiness (ten neighbours) 0.95 against 0.89 for a swiss roll, 1.00 against 0.89 for blobs in R¹⁰; where the kernel is
wide it makes no difference, 0.83 for digits either way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import BoolArray, FloatArray, IntArray, in_double
from mosaic.kernels import RBF, Diffusion, Kernel, Laplacian, make_kernel

#: Features up to which principal axes are exact, and landmarks that stand for more features or for a kernel.
MOST_LANDMARKS = 200
#: Part of its extent that a frame goes beyond the points that belong.
MARGIN = 0.35
#: Directions of K_LL with a smaller share than this are rounding and not information.
RELATIVE_CUT = 1e-12


class Plane(NamedTuple):
    """How coordinates were made, what they are called, and one row of two for each point."""

    method: str
    axes: list[str]
    points: FloatArray


def plane_of_kernel(
    kernel: Kernel,
    points: IntArray,
    chosen: IntArray,
    belongs: BoolArray,
    names: list[str] | None,
    rng: np.random.Generator,
) -> Plane:
    """Coordinates of some of a kernel's points; copies may be among them.

    Parameters
    ----------
    kernel : similarity between distinct points
    points : those to be shown
    chosen : representatives, the landmarks of first choice
    belongs : which of ``points`` are no outliers
    names : of the features
    rng : draws further landmarks
    """
    if isinstance(kernel, RBF | Laplacian | Diffusion):
        features = kernel.graph.points if isinstance(kernel, Diffusion) else kernel.X
        return plane_of_features(features[points], belongs, names, rng)
    others = np.setdiff1d(points[belongs], chosen)
    room = min(max(MOST_LANDMARKS - len(chosen), 0), len(others))
    landmarks = np.concatenate([chosen[:MOST_LANDMARKS], rng.choice(others, room, replace=False)])
    return plane_of_coordinates(nystroem(kernel, points, landmarks), belongs, "similarity", rng)


def plane_of_features(X: Any, belongs: BoolArray, names: list[str] | None, rng: np.random.Generator) -> Plane:
    """Two features as they are; of more, or of one, the principal axes."""
    if X.shape[1] == 2:
        return Plane("features", names or ["x0", "x1"], in_double(X))
    return plane_of_coordinates(X, belongs, "features", rng)


def plane_of_coordinates(A: Any, belongs: BoolArray, of: str, rng: np.random.Generator) -> Plane:
    """The two principal axes of coordinates, dense or CSR, named with their shares of the variance."""
    points, shares = principal_axes(_narrow(A, belongs, rng), belongs)
    axes = [f"principal axis {number} ({100 * share:.0f} %)" for number, share in enumerate(shares, 1)]
    return Plane(f"principal axes of the {of}", axes, points)


def _narrow(A: Any, belongs: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Coordinates with the same products in few dense columns; of very many, what a sample of the rows spans."""
    among = np.flatnonzero(belongs) if belongs.any() else np.arange(A.shape[0])
    if not sp.issparse(A):
        A = np.asarray(A, np.float64)
        A = A - A[among].mean(axis=0)  # products of points far from 0 lose what tells them apart
    if A.shape[1] <= MOST_LANDMARKS:
        return in_double(A)
    landmarks = rng.choice(among, min(MOST_LANDMARKS, len(among)), replace=False)
    return nystroem(make_kernel(A, "linear"), np.arange(A.shape[0]), landmarks)


def nystroem(kernel: Kernel, points: IntArray, landmarks: IntArray) -> FloatArray:
    """Rows a_i = K_LL^(−½) k_L(i): a_iᵀa_j is k_ij for landmarks, and what they express of it for others.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 3.0]])
    >>> A = nystroem(make_kernel(X, "linear"), np.arange(3), np.array([0, 1]))
    >>> np.allclose(A @ A.T, X @ X.T)
    True
    """
    K = kernel.block(landmarks, landmarks)
    w, U = np.linalg.eigh(0.5 * (K + K.T))
    keep = w > RELATIVE_CUT * max(float(w[-1]), 0.0)
    return np.asarray(kernel.block(points, landmarks) @ (U[:, keep] / np.sqrt(w[keep])))


def principal_axes(A: FloatArray, belongs: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(a_i − mean)ᵀ v for the two leading eigenvectors v of the covariance of rows that belong, and their shares of its trace.

    An axis points to where the farthest row that belongs is, so the picture does not depend on the signs of eigenvectors.

    Examples
    --------
    >>> A = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0], [9.0, -9.0]])
    >>> points, shares = principal_axes(A, np.array([True, True, True, False]))
    >>> points.round(3)[:3, 0].tolist(), shares.round(3).tolist()
    ([-1.886, -0.471, 2.357], [1.0, 0.0])
    """
    among = belongs if belongs.any() else np.ones(len(A), dtype=bool)
    A = A - A[among].mean(axis=0)
    if A.shape[1] < 2:
        A = np.pad(A, ((0, 0), (0, 2 - A.shape[1])))
    w, V = np.linalg.eigh(A[among].T @ A[among])
    points = A @ V[:, :-3:-1]
    inside = points[among]
    farthest = inside[np.abs(inside).argmax(axis=0), [0, 1]]
    total = float(np.maximum(w, 0.0).sum())
    shares = np.maximum(w[:-3:-1], 0.0) / total if total > 0 else np.zeros(2)
    return np.asarray(points * np.where(farthest < 0, -1.0, 1.0)), shares


class PlotArea(NamedTuple):
    """Points in shares of the width and height of what is shown, its corners, and who is beyond it and put to its edge."""

    shares: FloatArray
    low: FloatArray
    high: FloatArray
    outside: BoolArray


def framed(points: FloatArray, belongs: BoolArray) -> PlotArea:
    """A frame around those who belong, with a margin; a single outlier far away would else flatten everybody.

    Examples
    --------
    >>> frame = framed(np.array([[0.0, 0.0], [1.0, 2.0], [9.0, 1.0]]), np.array([True, True, False]))
    >>> frame.shares.round(2).tolist(), frame.outside.tolist()
    ([[0.0, 0.0], [0.74, 1.0], [1.0, 0.5]], [False, False, True])
    """
    inside = points[belongs] if belongs.any() else points
    # Not from the least to the largest: nobody may have looked for outliers.
    inner, outer = np.quantile(inside, [0.02, 0.98], axis=0)
    room = np.where(outer > inner, outer - inner, np.inf)
    low, high = np.maximum(inside.min(axis=0), inner - room), np.minimum(inside.max(axis=0), outer + room)
    room = MARGIN * np.where(high > low, high - low, 1.0)
    low, high = np.maximum(low - room, points.min(axis=0)), np.minimum(high + room, points.max(axis=0))
    high = np.where(high > low, high, low + 1.0)
    shares = np.clip((points - low) / (high - low), 0.0, 1.0)
    return PlotArea(shares, low, high, ((points < low) | (points > high)).any(axis=1))
