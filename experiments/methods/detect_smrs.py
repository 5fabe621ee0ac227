"""SMRS: representatives of the row-sparse affine self-representation; those that only represent themselves are odd.

Elhamifar, Sapiro, Vidal: See All by Looking at a Few, CVPR 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.methods import CannotRun, Detector, Scores
from experiments.methods.detect_parts import Floats, points
from mosaic.arrays.blocks import row_blocks

LARGEST = 100_000
WHY = "every of some hundred iterations takes n·r² steps for data of rank r"
#: n·r² above which an hour does not suffice.
MOST_WORK = 2e10
TOLERANCE, MOST_ITERATIONS = 1e-7, 5000
#: Score of a row of zeros, which has no index: below every index.
NO_ROW = -1.0


@dataclass(frozen=True)
class SelfRepresentation:
    """C = B Vᵀ for an orthonormal n×(r+1) matrix V, and how it was reached."""

    B: Floats
    V: Floats
    converged: bool

    def rows(self, indices: Any) -> Floats:
        """Some rows of C."""
        return np.asarray(self.B[indices] @ self.V.T)


def self_representation(
    X: Floats, alpha: float, max_iter: int = MOST_ITERATIONS, tolerance: float = TOLERANCE
) -> SelfRepresentation:
    """Minimise Σ_i ‖c_i‖₂ + (μ₁/2)‖Y − Y C‖_F² subject to 1ᵀC = 1ᵀ, for centred Y (columns are points), by ADMM.

    μ₁ = α / max_i ‖y_iᵀY‖₂, penalty μ₂ = α. One iteration, with G = μ₁YᵀY + μ₂I + μ₂11ᵀ:
    Z = G⁻¹(μ₁YᵀY + μ₂C − Λ + μ₂11ᵀ + 1ℓ); C = rows of Z + Λ/μ₂, shortened by 1/μ₂; Λ += μ₂(Z − C); ℓ += μ₂(1ᵀ − 1ᵀZ).

    Notes
    -----
    The rows of YᵀY and 1ᵀ span a space with orthonormal basis V = [1/√n, U], Y = W diag(s) Uᵀ. All iterates have their
    rows in it, and Euclidean row norms do not depend on the basis: the n×n iterates are these n×(r+1) ones times Vᵀ.
    The mean absolute entry, which the original stops by, is at most ‖·‖_F / n; it stops by the latter.
    """
    n = len(X)
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = s > max(1e-10 * s[0], 1e-14 * np.abs(X).max())
    V = np.column_stack([np.full(n, n**-0.5), U[:, kept]])
    if n * V.shape[1] ** 2 > MOST_WORK:
        raise CannotRun(f"{n:,} points of rank {V.shape[1] - 1:,} would take hours: {WHY}")
    eigenvalues = np.concatenate([[0.0], s[kept] ** 2])
    KV = V * eigenvalues  # YᵀY V
    mu2 = alpha
    critical = float(np.sqrt(np.einsum("ij,ij->i", KV, KV)).max())
    mu1 = alpha / critical if critical > 0 else 0.0  # equal points: nothing to fit
    spectrum = mu1 * eigenvalues + mu2
    spectrum[0] += mu2 * n
    correction = V * (1.0 / spectrum - 1.0 / mu2)  # G⁻¹ = I/μ₂ + correction Vᵀ
    ones = np.zeros(V.shape[1])  # 1ᵀV
    ones[0] = np.sqrt(n)
    C, multiplier, affine = np.zeros_like(V), np.zeros_like(V), np.zeros_like(ones)
    converged = False
    for _ in range(max_iter):
        right = mu1 * KV + mu2 * C - multiplier + (mu2 * ones + affine)
        Z = right / mu2 + correction @ (V.T @ right)
        C = shortened(Z + multiplier / mu2, 1.0 / mu2)
        missing = ones - Z.sum(axis=0)
        multiplier += mu2 * (Z - C)
        affine += mu2 * missing
        converged = bool(np.linalg.norm(Z - C) <= tolerance * n and np.linalg.norm(missing) <= tolerance * np.sqrt(n))
        if converged:
            break
    return SelfRepresentation(C, V, converged)


def shortened(A: Floats, by: float) -> Floats:
    """a_i · max(0, 1 − by/‖a_i‖) for every row."""
    lengths = np.sqrt(np.einsum("ij,ij->i", A, A))
    return np.asarray(A * np.maximum(0.0, 1.0 - by / np.maximum(lengths, np.finfo(np.float64).tiny))[:, None])


def row_sparsity_index(rows: Floats) -> Floats:
    """rsi_i = (n‖c_i‖_∞ − ‖c_i‖₁) / ((n − 1)‖c_i‖₁): 1 for a single entry, 0 for a constant row, none (−1) for zeros."""
    n = rows.shape[1]
    total, largest = np.abs(rows).sum(axis=1), np.abs(rows).max(axis=1)
    used = total > 0
    index = np.full(len(rows), NO_ROW)
    index[used] = (n * largest[used] - total[used]) / ((n - 1) * total[used])
    return index


def detect(X: Any, seed: int, alpha: float = 5.0) -> Scores:
    """Index of every representative; all other points share the lowest score. No threshold is known for it."""
    found = self_representation(points(X, LARGEST, WHY), alpha)
    used = np.flatnonzero(found.B.any(axis=1))
    values = np.full(len(found.B), NO_ROW)
    for block in row_blocks(len(used), len(values)):
        values[used[block]] = row_sparsity_index(found.rows(used[block]))
    return Scores(values)


DETECTORS = (Detector("SMRS", "paper", detect, tuple({"alpha": alpha} for alpha in (2.0, 5.0, 10.0, 20.0, 50.0)), LARGEST),)
