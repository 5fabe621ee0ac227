"""A similarity matrix given by the user, checked and used like any other kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_double, row_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import Matrix, pivoted_root
from mosaic.door import largest_entry
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels.points import Kernel, Rows, check_similarities


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A similarity matrix given by the user. A new point is given by its similarities to all points of the matrix, also after
    ``take``. It lacks the similarity to itself; ``diagonal_at`` returns the median of the whole diagonal, which is exact if that
    is constant. Rows of the matrix are recognised and get their own entry.
    """

    #: ``_whole`` of the matrix that this is a part of. A part is not checked again: it passes up to rounding.
    taken_from: tuple[IntArray, FloatArray, KnownRows | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.taken_from is not None:
            return
        K = self.X
        if K.shape[0] != K.shape[1]:
            raise InvalidInputError(
                f"a precomputed similarity must be square; got shape {K.shape}",
                "To pass points instead of similarities, choose a kernel such as `kernel='rbf'`.",
            )
        _check_symmetric(K)
        diagonal = self.diagonal()
        if diagonal.min() < 0:
            j = int(diagonal.argmin())
            raise NotPositiveSemidefiniteError(
                f"a similarity must be positive semi-definite; its diagonal entry {j} is {diagonal[j]:g}",
                "If this is a distance matrix D, pass np.exp(-gamma * D**2) instead.",
            )
        check_similarities(largest_entry(K), self.dtype)
        if self.n <= 5000:
            _check_definite(in_double(K), 100 * float(np.finfo(K.dtype).eps) * float(diagonal.sum()))

    def device_block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return in_double(self.X[rows][:, columns])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.X.diagonal(), dtype=np.float64)

    def take(self, indices: IntArray) -> Precomputed:
        chosen = np.arange(self.n)[indices]
        (places, diagonal, known) = self._whole
        return Precomputed(self.X[chosen][:, chosen], (places[chosen], diagonal, known))

    def device_cross(self, Y: Matrix) -> FloatArray:
        self._check_new(Y)
        return in_double(Y[:, self._whole[0]])

    def diagonal_at(self, Y: Matrix) -> FloatArray:
        self._check_new(Y)
        _, diagonal, known = self._whole
        own = np.full(Y.shape[0], float(np.median(diagonal)))
        if known is not None:
            found = known.find(row_codes(Y))
            own[found >= 0] = diagonal[found[found >= 0]]
        return own

    @cached_property
    def _whole(self) -> tuple[IntArray, FloatArray, KnownRows | None]:
        """Places of these points in the matrix that was given, its diagonal, and, unless that is constant, its rows."""
        if self.taken_from is not None:
            return self.taken_from
        diagonal = self.diagonal()
        return np.arange(self.n), diagonal, KnownRows.of(row_codes(self.X)) if np.ptp(diagonal) else None

    def _check_new(self, Y: Matrix) -> None:
        n = len(self._whole[1])
        if Y.shape[1] != n:
            raise InvalidInputError(
                f"with `kernel='precomputed'` new points are given by their similarities to all {n} points of the matrix, "
                f"so Y must have {n} columns; it has {Y.shape[1]}",
                "Compute the similarities to the points that were left out as well.",
            )


def _check_symmetric(K: Matrix) -> None:
    """Refuse |K_ij − K_ji| above rounding."""
    allowed = 100 * np.finfo(K.dtype).eps * largest_entry(K)
    for rows in row_blocks(K.shape[0], K.shape[1]):
        difference = abs(K[rows] - K[:, rows].T)
        if float(difference.max()) > allowed:
            row, j = divmod(int(difference.argmax()), K.shape[1])
            i, j = sorted((rows.start + row, j))
            raise NotPositiveSemidefiniteError(
                f"a precomputed similarity must be symmetric; K[{i}, {j}] = {K[i, j]:g} but K[{j}, {i}] = {K[j, i]:g}",
                "Use (K + K.T) / 2 if the difference is noise.",
            )


def _check_definite(K: FloatArray, tolerance: float) -> None:
    """Accept K if it is F Fᵀ up to rounding, with F a pivoted Cholesky factor; otherwise check its eigenvalues.
    If K is indefinite, Δ = K − F Fᵀ can have a zero diagonal without being zero; so ‖Δ‖²_F is estimated by the mean of ‖Δg‖² over
    four normal vectors g. An error ten times as large as 2 tolerance passes with a probability of 1e-7.
    """
    F = pivoted_root(K, tolerance / len(K))
    G = np.random.default_rng(0).standard_normal((len(K), 4))
    ΔG = K @ G - F @ (F.T @ G)
    if float(np.vdot(ΔG, ΔG)) <= 4 * (2.0 * tolerance) ** 2:
        return
    check_eigenvalues(np.linalg.eigvalsh(K), tolerance)


def check_eigenvalues(eigenvalues: FloatArray, tolerance: float) -> None:
    """Refuse a similarity whose smallest eigenvalue, the first, is below zero by more than rounding."""
    if eigenvalues[0] < -tolerance:
        raise NotPositiveSemidefiniteError(
            f"a similarity must be positive semi-definite; the smallest eigenvalue is {eigenvalues[0]:.3g} "
            f"and the largest {eigenvalues[-1]:.3g}",
            "If this is a distance matrix D, pass np.exp(-gamma * D**2); otherwise clip the negative eigenvalues.",
        )
