"""The paper's Algorithm 3: solve on few candidates, score all points, add the worst represented ones as candidates, repeat.

With r candidates S, the program over all n targets needs only G = Σ_i k_i k_iᵀ, k_i = k(x_i, S), and tr K from the data. With
K_SS = L Lᵀ it is the design problem with F = L and C = L⁻¹ G L⁻ᵀ, plus the part that S cannot express, tr Δ = tr K − tr C, where
Δ = K − K̂ and K̂_ij = f_iᵀ f_j, f_i = L⁻¹ k_i. The certificate holds for all n points and the kernel itself: for rows of R in S
only, P_K(R) = P_K̂(R) + lam/2 · tr Δ; and K ⪰ K̂, so every dual value for K̂ bounds the optimum for K from below; θ = s E is
feasible there if s z_j ≤ 1 for *all* points j, z_j = ‖Eᵀ f_j‖. A round makes a pass for G and one for z. See docs/math/sketch.md.

Notes
-----
1. The paper's E belongs to the solution on S. Ours comes from the same sums with the whole sample as candidates: E may be
   any matrix, and this one hardly violates the constraints of points that are not in S.
2. Candidates that the solution does not use and that K̂ does not need are dropped before others are added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mosaic.arrays.blocks import FloatArray, IntArray, Prepare, row_norms_squared
from mosaic.arrays.codes import EqualRows
from mosaic.arrays.passes import BlockResult, Task
from mosaic.kernels import PointKernel
from mosaic.program.encoding import Certificate, DesignRows, Encoding
from mosaic.program.factor import Factor
from mosaic.program.problem import DesignProblem, DualPoint, critical_lam, primal_dual
from mosaic.program.solvers import Solution, Status
from mosaic.program.working_set import solve_design
from mosaic.sketch.blocks import AS_THEY_ARE, Basis, GramSum, Sample, Scores, counted, triangle, with_rows


@dataclass(frozen=True)
class Sketch:
    """The result of the rounds."""

    sample: Sample  # the points in memory: a random sample of all, then the points that were added
    candidates: IntArray  # numbers of the points that may have a non-zero row
    basis: Basis
    pivots: IntArray  # numbers of the points of the basis
    problem: DesignProblem  # on the candidates, C summed over all rows
    solution: Solution
    lam_crit: float  # over the points in memory
    missed: float  # tr Δ
    certificate: Certificate  # for all rows and the kernel itself
    rounds: tuple[tuple[int, float], ...] = ()  # the number of candidates of each, and the gap that it reached for all points
    n_iter: int = 0

    def encoding(self, kernel: PointKernel, n: int, tol: float = 1e-3) -> Encoding:
        """The solution as an encoding of the points in memory, which stand for all n rows; ``kernel`` is between them."""
        solved = self.solution.status in (Status.CONVERGED, Status.TRIVIAL)
        F = features(self.basis, kernel)
        residual = np.maximum(kernel.diagonal() - row_norms_squared(F), 0.0)
        residual[self.pivots] = 0.0
        trace = self.certificate.scale / (0.5 * self.problem.lam)
        eta = self.solution.value
        used = np.flatnonzero(eta)
        members = self.candidates[used]
        influence = np.zeros(kernel.n)
        influence[members] = self.solution.row_norms[used]
        return Encoding(
            influence=influence,
            lam=self.problem.lam,
            alpha=self.problem.lam / self.lam_crit,
            status=Status.KERNEL_ERROR if solved and self.certificate.gap > tol else self.solution.status,
            n_iter=self.n_iter,
            certificate=self.certificate,
            kernel=kernel,
            factor=Factor(F, self.pivots, residual, trace, self.missed, True),
            groups=EqualRows.trivial(kernel.n),
            weights=self.sample.counts,
            members=members,
            member_rows=DesignRows(F, members, self.problem.restrict(used), eta[used]),
            stands_for=self.sample.standing_for(n),
        )


class _Solved(NamedTuple):
    """A round's program: on the candidates (primal), and on all points in memory (dual)."""

    few: DesignProblem
    found: Solution
    point: DualPoint
    missed: float
    lam_crit: float
    steps: int


def _solve(
    basis: Basis,
    candidates: IntArray,
    kernel: PointKernel,
    sums: BlockResult,
    alpha: float | None,
    lam: float | None,
    lam_crit: float | None,
    tol: float,
) -> _Solved:
    """C = L⁻¹ G L⁻ᵀ, then η on the candidates, and E from the same sums with all points in memory as candidates."""
    C = solve_triangular(basis.L, solve_triangular(basis.L, sums["G"], lower=True).T, lower=True)
    C = 0.5 * (C + C.T)
    trace = float(sums["trace"])
    missed = max(trace - float(np.trace(C)), 0.0)
    whole = DesignProblem(features(basis, kernel), C, 1.0)
    lam_crit = critical_lam(whole) if lam_crit is None else lam_crit
    whole = whole.with_lam(lam if lam is not None else (alpha or 1.0) * lam_crit)
    few = whole.restrict(candidates)
    aim = max(tol, 0.25 * missed / trace)
    found = solve_design(few, tol=aim)
    start = np.zeros(whole.n)
    start[candidates] = found.value
    on_all = solve_design(whole, tol=aim, initial=candidates, start=start, thin=False)
    return _Solved(few, found, whole.dual_point(on_all.value), missed, lam_crit, found.iterations + on_all.iterations)


def features(basis: Basis, kernel: PointKernel) -> FloatArray:
    """f_i of a kernel's own points, as rows."""
    return np.concatenate([F for _, _, F in basis.features_of(kernel.X, AS_THEY_ARE)])


def run_sketch(
    run: Callable[[str, Task], BlockResult],
    kernel_of: Callable[[FloatArray], PointKernel],
    sample: Sample,
    first: IntArray,
    *,
    n_added: int,
    n_rounds: int,
    alpha: float | None = None,
    lam: float | None = None,
    tol: float = 1e-3,
    prepare: Prepare = AS_THEY_ARE,
) -> Sketch:
    """Algorithm 3, with a random sample of the distinct points; ``kernel_of`` makes the kernel over points.

    ``first`` are the first candidates among the sample, the paper's r; ``n_added`` and ``n_rounds`` are its r̂ and I.
    """
    kernel, candidates = kernel_of(sample.rows), first
    best: Sketch | None = None
    rounds: list[tuple[int, float]] = []
    dual, lam_crit, steps = -np.inf, None, 0
    for number in range(n_rounds):
        basis, pivots, candidates = Basis.of(kernel, candidates)
        sums = run(f"round {number + 1}, sums", GramSum(basis, prepare))
        solved = _solve(basis, candidates, kernel, sums, alpha, lam, lam_crit, tol)
        lam_crit, steps = solved.lam_crit, steps + solved.steps
        used = np.flatnonzero(solved.found.value)
        V = solved.few.restrict(used).solve_M(solved.found.value[used], np.eye(solved.few.p)) / solved.few.lam
        scores = run(f"round {number + 1}, all rows", Scores(basis, triangle(solved.point.E), V, n_added, prepare))
        dual = max(dual, primal_dual(solved.point.inner, solved.point.fit, 0.0, float(np.sqrt(scores["largest"]))).dual)
        trace, missed, strength = float(sums["trace"]), solved.missed, solved.few.lam
        primal = solved.found.primal + 0.5 * strength * missed
        certificate = Certificate(primal, dual, 0.5 * strength * trace, missed / trace, len(pivots))
        if best is None or primal <= best.certificate.primal:
            best = Sketch(sample, candidates, basis, pivots, solved.few, solved.found, lam_crit, missed, certificate)
        rounds.append((len(candidates), certificate.gap))
        if certificate.gap <= tol or number + 1 == n_rounds:
            break
        worst = scores["worst"]
        newcomers = with_rows(prepare(worst["rows"]), worst["codes"], worst["first"])
        newcomers = newcomers.take(np.arange(min(n_added, len(newcomers))))
        newcomers = counted(run, f"round {number + 1}, copies", newcomers, prepare)
        stay = _needed(basis, pivots, candidates, solved, sums, n_added)
        sample = sample.with_more(newcomers)
        kernel = kernel_of(sample.rows)
        candidates = np.union1d(stay, np.flatnonzero(np.isin(sample.codes, newcomers.codes)))
    assert best is not None
    return replace(best, certificate=replace(best.certificate, dual=dual), rounds=tuple(rounds), n_iter=steps)


def _needed(basis: Basis, pivots: IntArray, candidates: IntArray, solved: _Solved, sums: BlockResult, most: int) -> IntArray:
    """Candidates to keep: all but those with a zero row whose removal adds almost nothing to tr Δ. Removing pivot j raises it
    by (K⁻¹ G K⁻¹)_jj / (K⁻¹)_jj, with K the similarity between the pivots.
    """
    A = basis.inverse.T @ basis.inverse  # K⁻¹
    growth = np.einsum("ij,jk,ki->i", A, sums["G"], A, optimize=True) / np.diagonal(A)
    unused = np.isin(pivots, candidates[solved.found.value == 0])
    order = np.flatnonzero(unused)[np.argsort(growth[unused], kind="stable")][:most]
    dropped = order[np.cumsum(growth[order]) <= 0.02 * solved.missed]
    return np.setdiff1d(candidates, pivots[dropped])
