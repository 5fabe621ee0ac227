"""Effective counts: how many rows look like a row, found by small programs on random parts of the data.

A program on b points x_i with weights ω_i leaves q_y(i) = k(y, x_i) − Σ_j k(y, x_j) r_ji of the similarity of y and x_i, what is
not already expressed by the rows r_j, j ∈ S, of its solution. m_y = Σ_i ω_i |q_y(i)| / max_i |q_y(i)|, y itself among the i, is
the effective number of points that look like y: 1 if it is alone, b if all are alike. On the support it is the paper's measure,
m = (n − 1)(1 − OP) + 1. With η the solution of the design form,

    r(y) = P k_S(y),  P = (K_SS + diag(1/(lam η)))⁻¹,
    q_y(i) = k(y, x_i) − k_S(y)ᵀ P k_S(x_i),  q_y(y) = k(y, y) − k_S(y)ᵀ P k_S(y),

so a count costs b similarities and b·|S| products, for a row of the data and for a new one alike. Several programs on
different points are asked, and the geometric mean of their counts is the answer.

Notes
-----
1. The paper has one program on all points and the measure for rows with r_j ≠ 0. Small programs on random parts, and the measure
   for every point, are ours; ``mosaic.solve`` and ``mode="paper"`` have the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray, Seed, row_blocks, subsample_of_weights
from mosaic.kernels import Kernel
from mosaic.problem import DesignProblem, critical_lam, weighted_gram
from mosaic.working_set import solve_design

#: Programs, points of each, and their strength for similarities whose diagonal is 1 on average.
PROGRAMS, PROGRAM_SIZE, STRENGTH = 4, 128, 10.0
#: Relative gap that the small programs are solved to.
GAP = 3e-4
#: Eigenvalues of a similarity below this share of the largest are rounding.
ROUNDING = 1e-12
#: Points at less than this share of their squared lengths from one another are the same.
SAME = 1e-9


@dataclass(frozen=True)
class Program:
    """One small program: its points among the reference points, their weights, S, P, and P K_S."""

    points: slice
    weights: FloatArray
    support: IntArray
    P: FloatArray
    R: FloatArray

    def log_counts(self, K: FloatArray, own: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Log m of points with similarities K to the program's points and ``own`` to themselves."""
        at_support = K[:, self.support]
        itself = np.maximum(own - np.einsum("ij,ij->i", at_support @ self.P, at_support), 0.0)
        Q = np.abs(K - at_support @ self.R)
        known, place = _same(K, own, diagonal)
        Q[known, place] = itself[known]  # what it has in common with itself, which a kernel need not know (precomputed)
        is_new = np.ones(len(K))
        is_new[known] = 0.0
        largest = np.maximum(Q.max(axis=1, initial=0.0), itself)
        total = Q @ self.weights + is_new * itself
        return np.asarray(np.log(np.divide(total, largest, out=np.ones(len(K)), where=largest > 0).clip(1.0)))


def _same(K: FloatArray, own: FloatArray, diagonal: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of a row and a program's point that are the same; rows that are near to nobody are not looked at twice."""
    nearest = (K - 0.5 * diagonal).max(axis=1, initial=-np.inf)
    rows = np.flatnonzero(own - 2.0 * nearest <= SAME * (own + diagonal.max(initial=0.0)))
    lengths = own[rows, None] + diagonal
    found, place = np.nonzero(lengths - 2.0 * K[rows] <= SAME * lengths)
    return rows[found], place


@dataclass(frozen=True)
class EffectiveCounts:
    """Counts of any points, by programs on random parts of the data.

    Attributes
    ----------
    reference : the similarity over the points of all programs, one program after the other
    places : their numbers among the points that they were drawn from
    programs : what they have found
    total : weight of the points that a point could resemble, the mean over the programs

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> kernel = make_kernel(X, "rbf", gamma=0.5)
    >>> counts = EffectiveCounts.of(kernel, np.ones(500))
    >>> counts.at(np.array([[0.0, 0.0], [100.0, 0.0]])).round().tolist()
    [31.0, 1.0]
    """

    reference: Kernel
    places: IntArray
    programs: tuple[Program, ...]
    total: float

    @classmethod
    def of(
        cls, kernel: Kernel, weights: FloatArray, random_state: Seed = 0, size: int | None = None
    ) -> EffectiveCounts:
        """Draw the parts, of ``size`` points, and solve the programs. ``weights`` say how often the kernel's points count.

        Notes
        -----
        1. Points are drawn by their number, so the answer depends on the order of the points and not of the data's rows.
        """
        rng = np.random.default_rng(random_state)
        size = PROGRAM_SIZE if size is None else int(size)
        n_programs = PROGRAMS if kernel.n > size else 1
        drawn = [subsample_of_weights(weights, size, rng) for _ in range(n_programs)]
        # Of a sample each point counts as often as it is there: how often in proportion to the others.
        drawn = [
            (some, stands * (len(some) / len(weights) if len(some) < len(weights) else 1.0)) for some, stands in drawn
        ]
        places = np.concatenate([some for some, _ in drawn])
        reference = kernel.take(places)
        programs, start = [], 0
        for some, counted in drawn:
            part = slice(start, start + len(some))
            programs.append(_solve(reference, part, counted))
            start = part.stop
        return cls(reference, places, tuple(programs), float(np.mean([program.weights.sum() for program in programs])))

    def of_points(self, kernel: Kernel, members: IntArray) -> FloatArray:
        """Counts of some of the points that the parts were drawn from, ``kernel`` being the similarity between these."""
        own = kernel.diagonal()
        counts = np.empty(len(members))
        for rows in row_blocks(len(members), len(self.places)):
            counts[rows] = self._counts(kernel.block(members[rows], self.places), own[members[rows]])
        return counts

    def at(self, Y: Any) -> FloatArray:
        """Counts of new points, each as if it were added to the data alone; a point of the data counts as itself."""
        counts = np.empty(Y.shape[0])
        for rows in row_blocks(Y.shape[0], self.reference.n):
            counts[rows] = self._counts(self.reference.cross(Y[rows]), self.reference.diagonal_at(Y[rows]))
        return counts

    def _counts(self, K: FloatArray, own: FloatArray) -> FloatArray:
        diagonal = self.reference.diagonal()
        logs = [p.log_counts(K[:, p.points], own, diagonal[p.points]) for p in self.programs]
        return np.asarray(np.exp(np.mean(logs, axis=0)))


def _solve(reference: Kernel, part: slice, weights: FloatArray) -> Program:
    """The program on one part of the reference points."""
    members = np.arange(part.start, part.stop)
    kernel = reference.take(members)
    lam = STRENGTH / (float(kernel.diagonal().mean()) or 1.0)  # points without length have no strength
    K = kernel.block(members - part.start, members - part.start)
    F = _factor(K)
    problem = DesignProblem(F, weighted_gram(F, weights), lam)
    solved = lam > critical_lam(problem)
    eta: FloatArray = solve_design(problem, tol=GAP).value if solved else np.zeros(len(members))
    support = np.flatnonzero(eta)
    eta, K = eta[support], K[support]
    P = np.linalg.inv(K[:, support] + np.diag(1.0 / (lam * eta))) if len(support) else np.zeros((0, 0))
    return Program(part, weights, support, P, P @ K)


def _factor(K: FloatArray) -> FloatArray:
    """F with F Fᵀ = K, by the eigenvalues that are more than rounding; of few points that costs next to nothing."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
