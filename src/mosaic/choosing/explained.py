"""Picks for the quantity of the certificate: err_g(S), what k picks leave unexplained of the points that belong.

With targets i (weights ω), candidates j and residual similarities r = K − K_·S (K_SS + gI)⁻¹ K_S·, taking in candidate j lowers
err_g(S) = Σ_i ω_i r_ii by Σ_i ω_i r_ij² / (r_jj + g). Greedy picks take the largest; then picks are exchanged while that lowers
err_g further. With B = (K_SS + gI)⁻¹ and its column b_p, the residual without pick p is r + x yᵀ/b_pp, x = K_·S b_p on targets
and y = K_·S b_p on candidates, so that all exchanges are weighed at once, from the rows K_S·ᵀ diag(ω) K of the picks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.choosing.cover import Pick, Slots, without_rounding
from mosaic.kernels import Kernel

#: Multiplications of all exchanges, at most: some seconds of one core.
MOST_EXCHANGE_WORK = 5e10


@dataclass(frozen=True)
class Explaining:
    """What choosing for err_g needs: similarities K between targets and candidates, weights of targets, and the ridge g."""

    kernel: Kernel
    places: IntArray
    K: FloatArray
    weights: FloatArray
    ridge: float

    @classmethod
    def of(cls, kernel: Kernel, targets: IntArray, places: IntArray, weights: FloatArray, ridge: float) -> Explaining:
        """For targets and candidates that are points of a kernel."""
        return cls(kernel, places, kernel.block(targets, places), weights, ridge)

    @cached_property
    def lengths(self) -> FloatArray:
        """k_jj of the candidates."""
        return self.kernel.diagonal()[self.places]

    @cached_property
    def sums(self) -> FloatArray:
        """Σ_i ω_i k_ij² of every candidate j."""
        return np.asarray(np.einsum("i,ij,ij->j", self.weights, self.K, self.K, optimize=True))

    def among(self, candidate: int) -> FloatArray:
        """Similarities of a candidate to all candidates."""
        return np.asarray(self.kernel.block(self.places[[candidate]], self.places)[0])

    def toward(self, column: FloatArray) -> FloatArray:
        """Σ_i ω_i c_i k_ij for every candidate j."""
        return np.asarray((self.weights * column) @ self.K)


def explain_most(
    problem: Explaining,
    slots: Slots,
    *,
    twins: IntArray,
    forced: Sequence[int] = (),
    last: IntArray | None = None,
    too_similar: BoolArray | None = None,
) -> Iterator[Pick]:
    """Candidates one after another, each the one that lowers err_g most, until the slots are full. Arguments as in ``cover``.

    Examples
    --------
    Two close points and one apart: after one of the two, the other explains next to nothing more.

    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> kernel = make_kernel(np.array([[0.0], [0.1], [0.2], [3.0]]), "rbf", gamma=1.0)
    >>> everyone = np.arange(4)
    >>> problem = Explaining.of(kernel, everyone, everyone, np.ones(4), ridge=1.0)
    >>> [pick.candidate for pick in explain_most(problem, Slots.free(4, 2), twins=everyone)]
    [1, 3]
    """
    K, weights, room = problem.K, problem.weights, slots.room.copy()
    n_targets, n_candidates = K.shape
    closed = np.zeros(n_candidates, dtype=bool)
    order = np.zeros(n_candidates, np.intp) if last is None else last
    left, sums = problem.lengths.copy(), problem.sums.copy()  # r_jj and Σ_i ω_i r_ij²
    V, A = np.empty((n_targets, 16)), np.empty((16, n_candidates))  # r = K − V A
    scale, s = float(weights @ K.max(axis=1, initial=0.0)), 0

    def choose(candidate: int) -> Pick:
        nonlocal V, A, s
        if s == len(A):
            V, A = np.hstack([V, np.empty_like(V)]), np.vstack([A, np.empty_like(A)])
        own = A[:s, candidate].copy()
        row, column = problem.among(candidate) - own @ A[:s], K[:, candidate] - V[:, :s] @ own
        h = problem.toward(column) - (V[:, :s].T @ (weights * column)) @ A[:s]
        price = max(float(row[candidate]), 0.0) + problem.ridge
        gain = max(float(h[candidate]), 0.0) / price
        V[:, s], A[s] = column / np.sqrt(price), row / np.sqrt(price)
        sums[:] += (row / price) ** 2 * h[candidate] - 2.0 * (row / price) * h
        left[:] -= A[s] ** 2
        s += 1
        room[slots.of[candidate]] -= 1
        closed[twins == twins[candidate]] = True
        if too_similar is not None:
            closed[too_similar[candidate]] = True
        return Pick(candidate, gain)

    for candidate in forced:
        yield choose(candidate)
    while True:
        free = ~closed & (room[slots.of] > 0)
        if not free.any():
            return
        free &= order == order[free].min()
        gains = np.maximum(sums, 0.0) / (np.maximum(left, 0.0) + problem.ridge)
        yield choose(int(np.where(free, without_rounding(gains, scale), -np.inf).argmax()))


def exchange(
    problem: Explaining,
    chosen: Sequence[int],
    slots: Slots,
    *,
    twins: IntArray,
    fixed: Sequence[int] = (),
    barred: BoolArray | None = None,
) -> list[int]:
    """Exchange picks for other candidates while that lowers err_g, the best exchange each time. Arguments as in ``improve``."""
    picks = list(chosen)
    if not picks:
        return picks
    k, (n_targets, n_candidates) = len(picks), problem.K.shape
    stays = np.isin(picks, np.asarray(fixed, np.intp))
    closed = np.zeros(n_candidates, dtype=bool) if barred is None else barred
    least = 1e-9 * float(problem.weights @ problem.K.max(axis=1, initial=0.0))
    Q = np.array([problem.among(pick) for pick in picks])
    P = np.array([problem.toward(problem.K[:, pick]) for pick in picks])
    for _ in range(int(MOST_EXCHANGE_WORK / (n_candidates * (6.0 * k * k + n_targets)))):
        gains = _exchange_gains(Q, P, picks, problem)
        gains[stays] = -np.inf
        gains[:, closed | np.isin(twins, twins[picks])] = -np.inf
        gains[slots.of[picks][:, None] != slots.of] = -np.inf
        place, candidate = divmod(int(without_rounding(gains, 1e10 * least).argmax()), n_candidates)
        if not gains[place, candidate] > least:
            break
        picks[place] = candidate
        Q[place], P[place] = problem.among(candidate), problem.toward(problem.K[:, candidate])
    return picks


def _exchange_gains(Q: FloatArray, P: FloatArray, picks: Sequence[int], problem: Explaining) -> FloatArray:
    """What every exchange lowers err_g by, picks × candidates; Q = K_S·, P = K_S·ᵀ diag(ω) K.

    Without pick p, Σ_i ω_i r_ij² grows by 2 y_j (xᵀDr_j)/b_pp + y_j² (xᵀDx)/b_pp², r_jj by y_j²/b_pp, and err_g by xᵀDx/b_pp.
    """
    g, G = problem.ridge, P[:, picks]
    B = np.linalg.inv(Q[:, picks] + g * np.eye(len(picks)))
    Y = B @ Q
    across = P - G @ Y  # K_·Sᵀ D r
    sums = problem.sums - np.einsum("ij,ij->j", P + across, Y)
    left = problem.lengths - np.einsum("ij,ij->j", Q, Y)
    b = np.diagonal(B)[:, None]
    lost = np.einsum("ij,ij->i", B @ G, B)[:, None] / b
    Z = Y / b
    taken = np.maximum(sums + 2.0 * Z * (B @ across) + Z * Z * (lost * b), 0.0)
    return np.asarray(taken / (np.maximum(left + Z * Y, 0.0) + g) - lost)
