"""The map: which points it shows, and their coordinates in the plane.

For kernels that compare distances between features (rbf, laplacian, diffusion) it shows two features as they are, more by their
principal axes; for others the principal axes of the kernel's own space, in coordinates a_i = K_LL^(−½) k_L(i) for a few landmarks
L (Nyström). Outliers, a few of which would flatten all other points, have no part in the axes.

The neighbour map begins with the axes and moves points: each is drawn to the twelve that are most similar to it, and pushed away
from others that are drawn at random, with the forces of UMAP (McInnes, Healy and Melville, 2018). Trustworthiness (ten
neighbours), axes against neighbours: digits 0.80 and 0.99, a swiss roll 0.91 and 0.99, customers in eight columns 0.80 and 0.85.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_double, row_blocks
from mosaic.arrays.xp import Matrix
from mosaic.choosing import Selection
from mosaic.kernels import DiffusionKernel, Kernel, StationaryKernel, make_kernel

#: Largest number of features with exact principal axes, and number of landmarks for more features or for a kernel.
MOST_LANDMARKS = 200


class Plane(NamedTuple):
    """The method and names of the coordinates, and the two coordinates of each point."""

    method: str
    axes: list[str]
    points: FloatArray


def thinned(always: IntArray, counts: FloatArray, limit: int, rng: np.random.Generator) -> IntArray:
    """About ``limit`` points: ``always``, those with the lowest counts, and a random part of the rest."""
    lowest = np.argsort(counts, kind="stable")[: limit // 4]
    kept = np.union1d(always, lowest)
    others = np.setdiff1d(np.arange(len(counts)), kept)
    room = min(max(limit - len(kept), 0), len(others))
    return np.union1d(kept, rng.choice(others, room, replace=False)).astype(np.intp)


def plane_of(
    selection: Selection,
    points: IntArray,
    belongs: BoolArray,
    names: list[str] | None,
    rng: np.random.Generator,
) -> Plane:
    """Coordinates of points; two features keep the units of the data. The representatives are the first landmarks."""
    kernel = selection.kernel
    chosen = selection.chosen
    if isinstance(kernel, StationaryKernel | DiffusionKernel):
        X = (kernel.graph if isinstance(kernel, DiffusionKernel) else kernel.X)[points]
        if X.shape[1] == 2:
            undone = selection.data.geometry.prepare.undone
            return Plane("features", names or ["x0", "x1"], undone(in_double(X)))
        return principal_plane(X, belongs, "features", rng)
    others = np.setdiff1d(points[belongs], chosen)
    room = min(max(MOST_LANDMARKS - len(chosen), 0), len(others))
    landmarks = np.concatenate([chosen[:MOST_LANDMARKS], rng.choice(others, room, replace=False)])
    return principal_plane(nystroem(kernel, points, landmarks), belongs, "similarity", rng)


def principal_plane(A: Matrix, belongs: BoolArray, of: str, rng: np.random.Generator) -> Plane:
    """(a_i − mean)ᵀ v for the two leading eigenvectors v of the covariance of rows that belong, named with their shares of its
    trace. Of very many columns, dense or CSR, the axes of the projection on a sample of the rows.
    """
    among = np.flatnonzero(belongs) if belongs.any() else np.arange(A.shape[0])
    if not sp.issparse(A):
        A = np.asarray(A, np.float64)
        A = A - A[among].mean(axis=0)  # inner products of points far from 0 would lose digits
    if A.shape[1] > MOST_LANDMARKS:
        landmarks = rng.choice(among, min(MOST_LANDMARKS, len(among)), replace=False)
        A = nystroem(make_kernel(A, "linear"), np.arange(A.shape[0]), landmarks)
    A = in_double(A)
    A = A - A[among].mean(axis=0)
    if A.shape[1] < 2:
        A = np.pad(A, ((0, 0), (0, 2 - A.shape[1])))
    w, V = np.linalg.eigh(A[among].T @ A[among])
    points = A @ V[:, :-3:-1]
    # An axis points to the farthest row that belongs, so the map does not depend on the signs of eigenvectors.
    inside = points[among]
    farthest = inside[np.abs(inside).argmax(axis=0), [0, 1]]
    shares = np.maximum(w[:-3:-1], 0.0) / (np.maximum(w, 0.0).sum() or 1.0)
    axes = [
        f"principal axis {number} ({100 * share:.0f} %)" for number, share in enumerate(shares, 1)
    ]
    return Plane(
        f"principal axes of the {of}", axes, np.asarray(points * np.where(farthest < 0, -1.0, 1.0))
    )


def nystroem(kernel: Kernel, points: IntArray, landmarks: IntArray) -> FloatArray:
    """Rows a_i = K_LL^(−½) k_L(i): a_iᵀa_j is k_ij for landmarks, for other points that of their projections on the landmarks."""
    K = kernel.block(landmarks, landmarks)
    w, U = np.linalg.eigh(0.5 * (K + K.T))
    keep = w > 1e-12 * max(float(w[-1]), 0.0)  # smaller ones are rounding errors
    return np.asarray(kernel.block(points, landmarks) @ (U[:, keep] / np.sqrt(w[keep])))


def plane_of_neighbours(
    kernel: Kernel, points: IntArray, first: IntArray, start: FloatArray, rng: np.random.Generator
) -> Plane:
    """The points moved from where they start, between 0 and 1; of too many, those at ``first``, and others that ``rng`` draws.
    Each of the rest is put between the three nearest of them.
    """
    Y = 10.0 * (2.0 * start - 1.0)  # from −10 to 10, as in UMAP
    moved = np.arange(len(points))
    most = 3000
    if len(points) > most:
        others = np.setdiff1d(moved, first)
        room = max(most - len(first), 0)
        moved = np.union1d(first[:most], rng.choice(others, min(room, len(others)), replace=False))
    if len(moved) > 2:
        near, apart = _nearest(kernel, points[moved], points[moved], min(12, len(moved) - 1))
        Y[moved] = _moved(Y[moved], near, apart, rng)
    rest = np.setdiff1d(np.arange(len(points)), moved)
    if len(rest):
        near, _ = _nearest(kernel, points[rest], points[moved], 3)
        Y[rest] = Y[moved][near].mean(axis=1)
    return Plane("neighbours", [], Y)


def _nearest(
    kernel: Kernel, points: IntArray, among: IntArray, number: int
) -> tuple[IntArray, FloatArray]:
    """For each point the places of the nearest among others, itself left out, and their distances."""
    near = np.empty((len(points), number), np.intp)
    apart = np.empty((len(points), number))
    for rows in row_blocks(len(points), len(among)):
        D = kernel.distances(points[rows], among)
        D[points[rows][:, None] == among] = np.inf
        near[rows] = np.argpartition(D, number - 1, axis=1)[:, :number]
        apart[rows] = np.take_along_axis(D, near[rows], axis=1)
    return near, apart


def _moved(
    Y: FloatArray, near: IntArray, apart: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Steps along the forces −2 w_ij (y_i − y_j) / (1 + q_ij) and 2 (y_i − y_j) / (q_ij (1 + q_ij)), q_ij = ‖y_i − y_j‖², w_ij =
    exp(−d_ij / s_i), s_i the middle one of the distances of i to its neighbours; a pair has the larger of its two weights.
    """
    n, number = near.shape
    steps = 150
    spread = np.median(apart, axis=1, keepdims=True)
    w = np.exp(-np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0))
    point = np.repeat(np.arange(n), number)
    graph = sp.csr_array((w.ravel(), (point, near.ravel())), shape=(n, n))
    pairs = graph.maximum(graph.T).tocoo()
    (i, j) = pairs.coords
    w = pairs.data
    for step in range(steps):
        d = Y[i] - Y[j]
        pull = d * (-2.0 * w / (1.0 + np.einsum("ij,ij->i", d, d)))[:, None]
        force = np.column_stack([np.bincount(i, pull[:, 0], n), np.bincount(i, pull[:, 1], n)])
        for _ in range(8):  # points that each is pushed away from, by 4 at most, as in UMAP
            d = Y - Y[rng.permutation(n)]
            q = np.einsum("ij,ij->i", d, d)
            force += np.clip(d * (2.0 / ((1e-3 + q) * (1.0 + q)))[:, None], -4.0, 4.0)
        Y = Y + (1.0 - step / steps) * np.clip(0.1 * force, -1.0, 1.0)
    return Y


class Frame(NamedTuple):
    """Points as shares of a frame's width and height, the corners of the frame, and which points were moved to its edge."""

    shares: FloatArray
    low: FloatArray
    high: FloatArray
    outside: BoolArray


def framed(points: FloatArray, belongs: BoolArray) -> Frame:
    """A frame with a margin around the points that are not outliers; one distant outlier would flatten all others."""
    inside = points[belongs] if belongs.any() else points
    # Quantiles instead of extremes: with outliers='keep' there may be distant points among them.
    inner, outer = np.quantile(inside, [0.02, 0.98], axis=0)
    room = np.where(outer > inner, outer - inner, np.inf)
    low = np.maximum(inside.min(axis=0), inner - room)
    high = np.minimum(inside.max(axis=0), outer + room)
    room = 0.35 * np.where(high > low, high - low, 1.0)  # the margin, as a share of their extent
    low = np.maximum(low - room, points.min(axis=0))
    high = np.minimum(high + room, points.max(axis=0))
    high = np.where(high > low, high, low + 1.0)
    shares = np.clip((points - low) / (high - low), 0.0, 1.0)
    return Frame(shares, low, high, ((points < low) | (points > high)).any(axis=1))
