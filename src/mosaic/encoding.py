"""The rows of R* that matter, asked for when needed: influence, rows, effective counts, errors, certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mosaic._arrays import FloatArray, IntArray, row_blocks
from mosaic.factor import Factor
from mosaic.kernels import Kernel
from mosaic.problem import RowNorm
from mosaic.solvers import Status

#: Multiplications that computing all effective counts may take before targets are sampled (some ten seconds).
MOST_OPERATIONS = 2e11


@dataclass(frozen=True)
class Certificate:
    """What is proven about an encoding, for the kernel that the user asked for.

    Attributes
    ----------
    primal : value of the program at the encoding (an upper bound of it, where the kernel was approximated)
    dual : lower bound for the optimum
    scale : value of the program at R = 0
    gap : (primal − dual) / scale
    kernel_error : tr(K − F Fᵀ) / tr K, contained in the gap
    rank : columns of F
    """

    primal: float
    dual: float
    scale: float
    kernel_error: float
    rank: int

    @property
    def gap(self) -> float:
        """Relative duality gap, approximation of the kernel included."""
        return (self.primal - self.dual) / self.scale

    @property
    def suboptimality(self) -> float:
        """(primal − dual) / dual: the value is at most this share above the optimum."""
        return max(self.primal - self.dual, 0.0) / self.dual if self.dual > 0 else np.inf

    def __str__(self) -> str:
        kernel = (
            "exact kernel"
            if self.kernel_error < 1e-12
            else f"kernel error {self.kernel_error:.1e} at rank {self.rank} included"
        )
        return f"provably within {100 * self.suboptimality:.2g} % of the optimum ({kernel})"


@dataclass(frozen=True)
class Groups:
    """Equal points are solved for once: ``first[g]`` is a point of group g, ``group[i]`` the group of point i."""

    first: IntArray
    group: IntArray

    @classmethod
    def trivial(cls, n: int) -> Groups:
        """Every point by itself."""
        return cls(np.arange(n), np.arange(n))

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.group)


@dataclass(frozen=True)
class Encoding:
    """The solved program: who represents whom, how strongly, and how close to the optimum.

    Attributes
    ----------
    influence : ‖r_j‖ for every point, zero for most; equal points share
    support : points with a non-zero row, most influential first
    lam, alpha : strength, absolute and as a multiple of the critical one
    status : how the solver ended
    n_iter : steps of the solver
    certificate : what is proven
    """

    influence: FloatArray
    lam: float
    alpha: float
    row_norm: RowNorm
    status: Status
    n_iter: int
    certificate: Certificate
    kernel: Kernel = field(repr=False)
    factor: Factor = field(repr=False)
    #: Distinct points, their weights as targets, and how rows are made: R[members] = maps @ Fᵀ (ℓ₂) or given (ℓ_∞).
    groups: Groups = field(repr=False)
    weights: FloatArray = field(repr=False)
    members: IntArray = field(repr=False)
    #: How many members, the first ones, are must-include points with free rows.
    n_free: int = field(repr=False)
    maps: FloatArray | None = field(repr=False)
    given_rows: FloatArray | None = field(repr=False)

    @cached_property
    def support(self) -> IntArray:
        """Points with a non-zero row, most influential first."""
        used = np.flatnonzero(self.influence)
        return used[np.argsort(-self.influence[used], kind="stable")]

    @property
    def dual_gap(self) -> float:
        """Relative duality gap for the user's kernel."""
        return self.certificate.gap

    def rows(self, indices: IntArray) -> FloatArray:
        """R[indices], len(indices) × n: how much each of these points takes part in representing every point."""
        indices = np.atleast_1d(np.asarray(indices, np.intp))
        groups = self.groups.group[indices]
        rows = np.zeros((len(indices), self.groups.n))
        place = {int(g): k for k, g in enumerate(self.members)}
        found = np.array([place.get(int(g), -1) for g in groups], np.intp)
        known = (found >= 0) & (self.influence[indices] > 0)
        if known.any():
            rows[known] = self._member_rows(found[known])[:, self.groups.group] * self._share[indices[known], None]
        return rows

    def _member_rows(self, places: IntArray) -> FloatArray:
        """Rows of R over distinct points for some members, before equal points share them."""
        if self.given_rows is not None:
            return self.given_rows[places]
        assert self.maps is not None
        return np.asarray(self.maps[places] @ self.factor.F.T)

    @cached_property
    def _share(self) -> FloatArray:
        """Part of its group's row that falls to each point."""
        copies = np.bincount(self.groups.group, weights=self.influence > 0, minlength=len(self.groups.first))
        return np.where(self.influence > 0, 1.0 / np.maximum(copies[self.groups.group], 1), 0.0)

    def _residual_maps(self) -> FloatArray:
        """A with Q = lam · K (I − R) = F A Fᵀ on distinct points, the symmetric matrix whose row j is r_j / η_j."""
        p = self.factor.rank
        A = self.lam * np.eye(p)
        if self.maps is not None and len(self.members):
            A -= self.lam * np.asarray(self.factor.F[self.members], np.float64).T @ self.maps
        return A

    @cached_property
    def effective_count(self) -> FloatArray:
        """m_j = ‖q_j‖₁ / ‖q_j‖_∞ for every point: the effective number of points that j stands (or would stand) for.

        q_j is row j of lam·K(I − R). A non-zero row of R is a multiple of it, so this is the paper's measure
        (OP_j = (n − m_j)/(n − 1)), and it is defined for points with a zero row as well.

        Notes
        -----
        1. The extension to zero rows is ours. Must-include points and the non-zero rows of ℓ_∞ encodings use r_j itself.
        2. Where n²·rank is too large the sums run over a fixed random sample of the targets, scaled up.
        """
        F, n = self.factor.F, len(self.groups.first)
        weights, targets = self.weights, F
        if float(n) * n * self.factor.rank > MOST_OPERATIONS:
            size = max(1000, int(MOST_OPERATIONS / (n * self.factor.rank)))
            sample = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
            targets = F[sample]
            weights = self.weights[sample] * (self.weights.sum() / self.weights[sample].sum())
        A = self._residual_maps().astype(F.dtype)
        correction = None
        if self.given_rows is not None:
            correction = self.lam * self.given_rows
        counts = np.empty(n)
        for rows in row_blocks(n, len(targets)):
            left = F[rows] @ A
            Q = left @ targets.T
            if correction is not None:
                Q = Q - (F[rows] @ F[self.members].T) @ correction
            np.abs(Q, out=Q)
            own = np.abs(np.einsum("ij,ij->i", left, F[rows])) if correction is None else 0.0
            largest = np.maximum(Q.max(axis=1), own)
            # The own entry counts once even where the sample missed it.
            counts[rows] = np.divide(Q @ weights, largest, out=np.ones(len(Q)), where=largest > 0)
        counts = np.maximum(counts, 1.0)
        # Free rows have q_j = 0, and ℓ_∞ rows are no multiples of q_j: these are taken as they are.
        exact = np.arange(self.n_free if self.given_rows is None else len(self.members))
        for places in np.split(exact, range(16, len(exact), 16)):
            if len(places):
                R = np.abs(self._member_rows(places))
                counts[self.members[places]] = (R @ self.weights) / R.max(axis=1)
        return np.asarray(counts[self.groups.group])

    @cached_property
    def representation_error(self) -> FloatArray:
        """e_i = k_ii − 2 k_iᵀ r_i + r_iᵀ K r_i for every point i, with r_i its column of R, on the kernel itself."""
        members, F = self.members, self.factor.F
        errors = self.kernel.diagonal()
        K_members = self.kernel.block(members, members)
        for rows in row_blocks(len(F), max(len(members), 1)):
            if self.given_rows is not None:
                R = self.given_rows[:, rows].T
            else:
                assert self.maps is not None
                R = F[rows].astype(np.float64) @ self.maps.T
            errors[rows] += np.einsum("ij,ij->i", R @ K_members - 2.0 * self.kernel.block(rows, members), R)
        return np.asarray(np.maximum(errors, 0.0)[self.groups.group])

    def __repr__(self) -> str:
        n, k = self.groups.n, len(self.support)
        return (
            f"Encoding of {n:,} points by {k:,}: {self.certificate}. "
            f"alpha={self.alpha:.3g}, lam={self.lam:.3g}, {self.status.name.lower()} in {self.n_iter} steps."
        )
