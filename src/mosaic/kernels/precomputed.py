"""A matrix of similarities, or of distances, given by the user: checked, and used like any other kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray, in_double, row_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import Matrix, pivoted_root, zero_below
from mosaic.door import largest_entry
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels.points import SMALLEST_SIMILARITY, Kernel, Rows, check_similarities

#: What to do with distances that were taken for similarities, and with points.
POINTS = "To pass points instead, choose a kernel such as `kernel='rbf'`."
DISTANCES = "If these are distances, use `kernel='distances'`."


class WholeMatrix(NamedTuple):
    """The matrix that points are a part of: their places in it, its diagonal, and its rows, unless the diagonal is constant."""

    places: IntArray
    diagonal: FloatArray
    known: KnownRows | None


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A similarity matrix given by the user. A new point is given by its similarities to all points of the matrix, also after
    ``take``. It lacks the similarity to itself; ``diagonal_at`` returns the median of the whole diagonal, which is exact if that
    is constant. Rows of the matrix are recognised and get their own entry.
    """

    #: The matrix that this is a part of. A part is not checked again: it passes up to rounding.
    taken_from: WholeMatrix | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.taken_from is None:
            self._check()

    def _check(self) -> None:
        _check_square_and_symmetric(self.X, "K", NotPositiveSemidefiniteError)
        diagonal = self.diagonal()
        if diagonal.min() < 0:
            j = int(diagonal.argmin())
            raise NotPositiveSemidefiniteError(
                f"a similarity must be positive semi-definite; its diagonal entry {j} is {diagonal[j]:g}",
                DISTANCES,
            )
        check_similarities(largest_entry(self.X), self.dtype)

    def refuse_indefinite(self) -> None:
        if self.n <= 5000:
            everyone = np.arange(self.n)
            K = self.block(everyone, everyone)
            _check_definite(K, 100 * float(np.finfo(self.dtype).eps) * float(K.diagonal().sum()))

    def device_block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return in_double(self.X[rows][:, columns])

    def diagonal(self) -> FloatArray:
        return np.asarray(self.X.diagonal(), dtype=np.float64)

    def take(self, indices: IntArray) -> Self:
        chosen = np.arange(self.n)[indices]
        whole = self._whole
        part = whole._replace(places=whole.places[chosen])
        return replace(self, X=self.X[chosen][:, chosen], taken_from=part)

    def device_cross(self, Y: Matrix) -> FloatArray:
        self._check_new(Y)
        return in_double(Y[:, self._whole.places])

    def diagonal_at(self, Y: Matrix) -> FloatArray:
        self._check_new(Y)
        whole = self._whole
        own = np.full(Y.shape[0], float(np.median(whole.diagonal)))
        if whole.known is not None:
            found = whole.known.find(row_codes(Y))
            own[found >= 0] = whole.diagonal[found[found >= 0]]
        return own

    @cached_property
    def _whole(self) -> WholeMatrix:
        if self.taken_from is not None:
            return self.taken_from
        diagonal = self.diagonal()
        known = KnownRows.of(row_codes(self.X)) if np.ptp(diagonal) else None
        return WholeMatrix(np.arange(self.n), diagonal, known)

    def _check_new(self, Y: Matrix) -> None:
        n = len(self._whole.diagonal)
        if Y.shape[1] != n:
            raise InvalidInputError(
                f"with `kernel='precomputed'` new points are given by their similarities to all {n} points of the matrix, "
                f"so Y must have {n} columns; it has {Y.shape[1]}",
                "Compute the similarities to the points that were left out as well.",
            )


@dataclass(frozen=True)
class Distances(Precomputed):
    """k_ij = exp(−γ d_ij) for a matrix of distances; a new point is given by its distances to all points of the matrix.

    Note 1. It need not be positive semi-definite. Choosing asks for distances only; the program refuses what is not.
    """

    order: ClassVar[int] = 1
    gamma: float = 1.0

    def _check(self) -> None:
        D = self.X
        if sp.issparse(D):
            raise InvalidInputError(
                "distances are a dense matrix; got a sparse one",
                "Pass `D.toarray()`, if absent entries are 0.",
            )
        _check_square_and_symmetric(D, "D", InvalidInputError)
        if D.min() < 0 or D.diagonal().any():
            got = f"{D.min():g}, and {abs(D.diagonal()).max():g}"
            fault = f"distances are not negative, and 0 between a row and itself; got {got}"
            remedy = "Clear what rounding left: `np.fill_diagonal(D.clip(0, out=D), 0)`. To pass similarities, use "
            raise InvalidInputError(fault, f"{remedy}`kernel='precomputed'`.")
        check_similarities(largest_entry(D), self.dtype)

    def _check_new(self, Y: Matrix) -> None:
        super()._check_new(Y)
        if Y.min(initial=0.0) < 0:
            raise InvalidInputError(
                f"distances are not negative; the smallest is {Y.min():g}",
                "Pass distances to all points.",
            )

    @property
    def unit(self) -> float:
        return 1.0 / self.gamma

    def device_block(self, rows: Rows, columns: IntArray) -> FloatArray:
        return self._decayed(self.device_distances(rows, columns))

    def device_cross(self, Y: Matrix) -> FloatArray:
        return self._decayed(self.device_distances_at(Y))

    def device_distances(self, rows: Rows, columns: IntArray) -> FloatArray:
        return super().device_block(rows, columns)

    def device_distances_at(self, Y: Matrix) -> FloatArray:
        return super().device_cross(Y)

    def diagonal(self) -> FloatArray:
        return np.ones(self.n)

    def diagonal_at(self, Y: Matrix) -> FloatArray:
        self._check_new(Y)
        return np.ones(Y.shape[0])

    def _decayed(self, D: FloatArray) -> FloatArray:
        return np.asarray(zero_below(np.exp(-self.gamma * D), SMALLEST_SIMILARITY))


def _check_square_and_symmetric(K: Matrix, name: str, error: type[InvalidInputError]) -> None:
    """Refuse |K_ij − K_ji| above rounding; ``name`` is what the matrix is called."""
    what = "matrix of distances" if name == "D" else "similarity"
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(f"a precomputed {what} must be square; got shape {K.shape}", POINTS)
    allowed = 100 * np.finfo(K.dtype).eps * largest_entry(K)
    for rows in row_blocks(K.shape[0], K.shape[1]):
        difference = abs(K[rows] - K[:, rows].T)
        if float(difference.max()) > allowed:
            row, j = divmod(int(difference.argmax()), K.shape[1])
            i, j = sorted((rows.start + row, j))
            got = f"{name}[{i}, {j}] = {K[i, j]:g} but {name}[{j}, {i}] = {K[j, i]:g}"
            raise error(
                f"a precomputed {what} must be symmetric; {got}",
                f"Use ({name} + {name}.T) / 2 if the difference is noise.",
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
            f"{DISTANCES} Otherwise clip the negative eigenvalues.",
        )
