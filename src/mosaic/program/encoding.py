"""The results of a solution: influence, rows of R, effective counts of known and new points, errors, certificate.

Effective counts: row y of lam·K(I − R) is, up to its scale, q_y(i) = f_yᵀ (t_i − F_Sᵀ r_i). For a point with a non-zero row of R
it is a multiple of that row, so m_y = ‖q_y‖₁ / ‖q_y‖_∞ is the paper's measure there, (n − 1)·(1 − OP) + 1. It is also defined
for points with a zero row and for new points. The entry of y itself contains the residual Δ_yy of the factor, which no other
point shares: a point that the factor misses entirely has m_y = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mosaic.arrays.blocks import (
    FloatArray,
    IntArray,
    in_double,
    lowest_first,
    row_blocks,
    row_norms_squared,
    subsample_of_weights,
)
from mosaic.arrays.codes import EqualRows, KnownRows, row_codes
from mosaic.arrays.xp import host_rows, numpy_dtype, on_host, rows_of
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel, PointKernel
from mosaic.program.factor import Factor
from mosaic.program.problem import DesignProblem
from mosaic.program.solvers import Status
from mosaic.text import at_most

#: Rounding that a certificate allows for, in eps of the value of R = 0. In 40 problems of 200 to 1500 points, primal and dual in
#: single precision contradicted those in double precision by at most 1/25 of that.
ALLOWED_ROUNDINGS = 32
#: Multiplications up to which effective counts sum over all targets, n²·rank, which take some seconds.
MOST_COUNT_OPERATIONS = 2e10


@dataclass(frozen=True)
class Certificate:
    """Proven bounds of an encoding, for the user's kernel.

    Attributes
    ----------
    primal : value of the program at the encoding (an upper bound if the kernel was approximated)
    dual : lower bound for the optimum
    scale : value of the program at R = 0
    gap : (primal − dual + slack) / scale, never negative; above 1 nothing is known about the optimum
    kernel_error : tr(K − F Fᵀ) / tr K, contained in the gap
    rank : columns of F
    slack : possible rounding error of primal and dual, contained in the gap
    """

    primal: float
    dual: float
    scale: float
    kernel_error: float
    rank: int
    slack: float = 0.0

    @property
    def gap(self) -> float:
        return (max(self.primal - self.dual, 0.0) + self.slack) / self.scale

    @property
    def at_most(self) -> float:
        """Upper bound of the value at the encoding, rounding included."""
        return self.primal + self.slack

    @property
    def at_least(self) -> float:
        """Lower bound of the optimum, rounding included."""
        return max(self.dual - self.slack, 0.0)

    @property
    def suboptimality(self) -> float:
        """(primal − dual + slack) / (dual − slack): the value is at most this share above the optimum."""
        return self.gap * self.scale / self.at_least if self.at_least > 0 else np.inf

    def __str__(self) -> str:
        exact = self.kernel_error < 1e-12
        rounding = self.slack / self.scale
        if exact:
            kernel = "exact kernel"
        else:
            kernel = f"kernel error {self.kernel_error:.1e} at rank {self.rank} included"
        if rounding > 1e-9:
            kernel += f", rounding {rounding:.0e} included"
        if self.gap > 1:
            return f"not certified: nothing is known about the optimum ({kernel})"
        if self.suboptimality > 1:
            value = f"{at_most(self.gap)} of the value of selecting nothing"
            return f"provably within {value}, which says little about the optimum ({kernel})"
        return f"provably within {at_most(self.suboptimality)} of the optimum ({kernel})"

    __repr__ = __str__


@dataclass(frozen=True)
class DesignRows:
    """Rows of R as linear maps of the targets, r_ji = b_jᵀ t_i, b_j = η_j M⁻¹ f_j. ``design`` has no other candidates."""

    F: FloatArray
    design: DesignProblem
    eta: FloatArray

    @cached_property
    def maps(self) -> FloatArray:
        if not len(self.eta):
            return np.zeros((0, self.F.shape[1]))
        solved: FloatArray = self.design.solve_M(self.eta, self.design.F.T).T
        return self.eta[:, None] * solved

    @cached_property
    def complement(self) -> FloatArray:
        """I − F_Sᵀ B, which takes f_i to t_i − F_Sᵀ r_i."""
        return np.eye(self.F.shape[1]) - self.design.F.T @ self.maps

    def part(self, places: IntArray | slice, targets: IntArray | slice) -> FloatArray:
        found: FloatArray = self.maps[places] @ self._own(targets)
        return found

    def left_over(self, targets: IntArray | slice) -> FloatArray:
        """t_i − F_Sᵀ r_i for some targets, as columns."""
        return self.complement @ self._own(targets)

    def _own(self, targets: IntArray | slice) -> FloatArray:
        return on_host(rows_of(self.F, targets)).T

    def gram(self, weights: FloatArray, places: IntArray | slice = slice(None)) -> FloatArray:
        """Σ_i ω_i r_ji r_ki between some rows."""
        maps: FloatArray = self.maps[places]
        return maps @ self.design.C @ maps.T

    def misfit(self) -> float:
        """Σ_i ω_i ‖f_i − F_Sᵀ r_i‖², from the rows themselves and not from the formulas of the elimination."""
        left = self.complement
        return max(float(np.einsum("ij,ij->", left @ self.design.C, left)), 0.0)


@dataclass(frozen=True)
class GivenRows:
    """Rows of R from a solver that computes R itself (ℓ_∞), and the rows of F of their points."""

    F: FloatArray
    members: FloatArray
    R: FloatArray

    def part(self, places: IntArray | slice, targets: IntArray | slice) -> FloatArray:
        return self.R[places][:, targets]

    def left_over(self, targets: IntArray | slice) -> FloatArray:
        return self.F[targets].T - self.members.T @ self.R[:, targets]

    def gram(self, weights: FloatArray, places: IntArray | slice = slice(None)) -> FloatArray:
        R = self.R[places]
        return (R * weights) @ R.T


@dataclass(frozen=True)
class Encoding:
    """The solved program: which points represent which, how strongly, and how close this is to the optimum.

    Attributes
    ----------
    influence : ‖r_j‖ for every point, zero for most; equal points share a row evenly
    support : points with a non-zero row, most influential first
    lam, alpha : strength, absolute and as a multiple of the critical one
    status : how the solver ended
    n_iter : steps of the solver
    certificate : proven bounds
    """

    influence: FloatArray
    lam: float
    alpha: float
    status: Status
    n_iter: int
    certificate: Certificate
    kernel: Kernel = field(repr=False)
    factor: Factor = field(repr=False)
    #: Distinct points, their weights as targets, those with a non-zero row, and the rows.
    groups: EqualRows = field(repr=False)
    weights: FloatArray = field(repr=False)
    members: IntArray = field(repr=False)
    member_rows: DesignRows | GivenRows = field(repr=False)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def support(self) -> IntArray:
        return lowest_first(self.influence != 0, -self.influence)

    @property
    def dual_gap(self) -> float:
        return self.certificate.gap

    def rows(self, indices: IntArray) -> FloatArray:
        """R[indices], len(indices) × n: the coefficients of these points in the representation of every point."""
        group = self.groups.group
        owners = group[np.atleast_1d(np.asarray(indices, np.intp))]
        place = np.full(len(self.groups.first), -1, np.intp)
        place[self.members] = np.arange(len(self.members))
        known = np.flatnonzero(place[owners] >= 0)
        rows = np.zeros((len(owners), self.groups.n))
        if len(known):
            distinct = self.member_rows.part(place[owners[known]], slice(None))
            # Copies share a row.
            rows[known] = distinct[:, group] / np.bincount(group)[owners[known], None]
        return rows

    @cached_property
    def effective_count(self) -> FloatArray:
        """m_j = ‖q_j‖₁ / ‖q_j‖_∞ for every point: the effective number of points that j stands (or would stand) for.

        OP_j = (n − m_j)/(n − 1). The non-zero rows of ℓ_∞ encodings use r_j itself. If n²·rank is too large, the sums run over a
        fixed random sample of the targets, scaled up.
        """
        factor = self.factor
        n = len(self.groups.first)
        targets, weights = self._targets
        left = self._left_over(targets)
        place = np.full(n, -1, np.intp)
        place[targets] = np.arange(len(targets))
        counts = np.empty(n)
        for rows in row_blocks(n, len(targets)):
            f = on_host(rows_of(factor.F, rows))
            own = self._left_over(rows).T
            counts[rows] = counts_against(
                f, own, factor.residual[rows], self.weights[rows], place[rows], left, weights
            )
        if isinstance(self.member_rows, GivenRows):
            sizes = np.abs(self.member_rows.R)
            counts[self.members] = np.maximum(sizes @ self.weights / sizes.max(axis=1), 1.0)
        return counts[self.groups.group]

    @cached_property
    def _targets(self) -> tuple[IntArray, FloatArray]:
        """The distinct points that effective counts sum over, and their weights: all points, or a sample."""
        n = len(self.groups.first)
        if float(n) * n * self.factor.rank <= MOST_COUNT_OPERATIONS:
            return np.arange(n), self.weights
        size = max(1000, int(MOST_COUNT_OPERATIONS / (n * self.factor.rank)))
        return subsample_of_weights(self.weights, size, 0)

    def count_model(self, codes: NDArray[np.uint64]) -> CountModel:
        """The model that counts for any point, new or known. ``codes`` are the ``row_codes`` of the distinct points."""
        if isinstance(self.member_rows, GivenRows):
            fault = "the program of `row_norm='linf'` says nothing of rows that were not in it"
            raise InvalidInputError(fault, "Use `row_norm='l2'`.")
        factor = self.factor
        explicit = not len(factor.pivots)
        targets, weights = self._targets
        return CountModel(
            pivots=self.kernel.take(np.arange(1) if explicit else factor.pivots),
            triangle=None if explicit else host_rows(factor.F, factor.pivots),
            complement=self.member_rows.complement,
            left=self._left_over(targets),
            weights=weights,
            known=KnownRows.of(codes),
            known_counts=self.effective_count[self.groups.first],
        )

    def _left_over(self, targets: IntArray | slice) -> FloatArray:
        """t_i − F_Sᵀ r_i for some distinct targets, as columns (p × len(targets)), in the precision of the factor."""
        return self.member_rows.left_over(targets).astype(numpy_dtype(self.factor.F), copy=False)

    def __repr__(self) -> str:
        return (
            f"Encoding of {self.groups.n:,} points by {len(self.support):,}: {self.certificate}. "
            f"alpha={self.alpha:.3g}, lam={self.lam:.3g}, {self.status.name.lower()} in {self.n_iter} steps."
        )


def counts_against(
    f: FloatArray,
    f_left: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    place: IntArray,
    left: FloatArray,
    weights: FloatArray,
) -> FloatArray:
    """m_y = (Σ_{i≠y} ω_i |q_y(i)| + ω_y q_y(y)) / ‖q_y‖_∞, q_y(i) = f_yᵀ left_i, q_y(y) = |f_yᵀ left_y| + Δ_yy; at least 1.
    ``place`` is that of the points y among the targets, or -1; left_i (columns) and ω_i are scaled up if they are a sample.
    """
    Q = np.abs(f @ left)
    own = np.abs(np.einsum("ij,ij->i", f, f_left)) + residual
    among = np.flatnonzero(place >= 0)
    Q[among, place[among]] = 0.0  # a sampled target counts for many, but y counts itself only once
    largest = np.maximum(Q.max(axis=1, initial=0.0), own)
    total = Q @ weights + weight * own
    return np.asarray(np.divide(total, largest, out=np.ones(len(f)), where=largest > 0)).clip(1.0)


@dataclass(frozen=True)
class CountModel:
    """Effective counts of new points, each counted as if it had been added to the data with weight one: it depends on the point
    alone and not on its batch. A point of the data keeps its count.
    """

    pivots: Kernel  # the kernel over the pivots
    triangle: FloatArray | None  # L = F[pivots]; None for a kernel with explicit features
    complement: FloatArray  # I − F_Sᵀ B, which takes f_y to left_y
    left: FloatArray
    weights: FloatArray
    #: Known points and their counts. They are not recomputed, because a precomputed kernel may lack the similarity of a known
    #: point to itself.
    known: KnownRows
    known_counts: FloatArray

    def counts(self, Y: Any) -> FloatArray:
        found = self.known.find(row_codes(Y))
        result = self.known_counts[found]
        new = np.flatnonzero(found < 0)
        for block in row_blocks(len(new), len(self.weights) + len(self.complement)):
            rows = new[block]
            if self.triangle is None:
                assert isinstance(self.pivots, PointKernel)
                f = in_double(self.pivots.prepared(Y[rows]))
                residual = np.zeros(len(rows))
            else:  # f_y = L⁻¹ k(pivots, y), Δ_yy = k(y, y) − ‖f_y‖²
                f = solve_triangular(self.triangle, self.pivots.cross(Y[rows]).T, lower=True).T
                residual = np.maximum(self.pivots.diagonal_at(Y[rows]) - row_norms_squared(f), 0.0)
            once = np.ones(len(f))
            nowhere = np.full(len(f), -1)
            result[rows] = counts_against(
                f, f @ self.complement.T, residual, once, nowhere, self.left, self.weights
            )
        return result
