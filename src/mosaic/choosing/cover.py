"""From candidates to a set: cover the points that belong, obey every constraint, and rank picks by what they add.

Ours: Σ_i ω_i max_{j∈S} s_ij is increased by one pick after another (facility location), then by exchanges (``improve``). The
gains of the first decrease, so any prefix of a ranking is a good answer to a smaller k. s_ij = 2k_ij/(k_ii + k_jj), one minus
the normalised shared information distance, which is k_ij itself for kernels with unit diagonal and has a meaning for the others.

The paper's: candidates in the order of influence, thinned by the distances between them (``prune_similar``).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mosaic._arrays import BoolArray, FloatArray, IntArray, row_blocks
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel

#: Looks at all candidates for an exchange, at most; a handful is the rule. Candidates that are weighed together.
MOST_SWEEPS, TOGETHER = 20, 256
#: Similarities that are worked on at once: 1 MB in single precision, which stays in the cache of one core.
IN_CACHE = 1 << 18
#: Candidates whose gains are computed anew together.
LOOKED_AT_AGAIN = 16
#: Up to this many similarities are kept in double precision, more in single.
DOUBLE = 1 << 20


class Pick(NamedTuple):
    """A candidate's number, and how much it adds."""

    candidate: int
    gain: float


@dataclass(frozen=True)
class Slots:
    """How many picks are wanted of whom: candidate c takes a place of slot ``of[c]``, and slot s has ``room[s]`` places."""

    of: IntArray
    room: IntArray

    @classmethod
    def free(cls, n_candidates: int, k: int) -> Slots:
        """K places for whoever comes."""
        return cls(np.zeros(n_candidates, np.intp), np.array([k]))


def similarities(kernel: Kernel, rows: IntArray, columns: IntArray) -> FloatArray:
    """s_ij = 2 k_ij / (k_ii + k_jj), at least 0; points without length share nothing. Columns are contiguous."""
    diagonal = kernel.diagonal()
    plain = bool((diagonal == 1.0).all())
    S = np.empty((len(columns), len(rows)), np.float64 if len(rows) * len(columns) <= DOUBLE else np.float32)
    for part in row_blocks(len(columns), len(rows)):
        block = kernel.block(columns[part], rows)
        if not plain:
            lengths = 0.5 * (diagonal[columns[part], None] + diagonal[rows])
            lengths[lengths <= 0] = np.inf
            block = np.divide(block, lengths)
        np.maximum(block, 0.0, out=S[part], casting="same_kind")
    return S.T


def without_rounding(values: FloatArray, scale: float) -> FloatArray:
    """Whole multiples of 1e-10 · scale: what differs by rounding only becomes equal, and the first of equals wins."""
    return np.asarray(np.round(values / (1e-10 * scale or 1.0)))


def cover(
    S: FloatArray,
    weights: FloatArray,
    slots: Slots,
    *,
    twins: IntArray,
    forced: Sequence[int] = (),
    last: IntArray | None = None,
    too_similar: BoolArray | None = None,
) -> Iterator[Pick]:
    """Candidates one after another, each the one that adds most to Σ_i ω_i max_{j chosen} s_ij, until the slots are full.

    Parameters
    ----------
    S : similarities, targets × candidates
    weights : ω of the targets
    slots : places to fill
    twins : candidates with the same number are copies of one point, of which one at most is chosen
    forced : candidates that come first whatever they add
    last : a number for each candidate; it comes when none with a smaller number is left
    too_similar : candidates × candidates, true where both must not be chosen

    Notes
    -----
    1. A candidate's gain never grows, so only those whose last known gain is still the largest are looked at again.
    2. Among equal gains the candidate that comes first wins. Two points that only have each other left gain the same,
       so this is no rare case, and rounding must not decide it.
    """
    best = np.zeros(len(S))
    room = slots.room.copy()
    closed = np.zeros(S.shape[1], dtype=bool)
    grain = (1e-12 if S.dtype == np.float64 else 1e-7) * float(weights.sum()) or 1.0
    weights = weights.astype(S.dtype, copy=False)
    best = best.astype(S.dtype)

    def gain_of(candidate: int) -> float:
        return float(weights @ np.maximum(S[:, candidate] - best, 0.0))

    def choose(candidate: int, gain: float) -> Pick:
        np.maximum(best, S[:, candidate], out=best)
        room[slots.of[candidate]] -= 1
        closed[twins == twins[candidate]] = True
        if too_similar is not None:
            closed[too_similar[candidate]] = True
        return Pick(candidate, gain)

    for candidate in forced:
        yield choose(candidate, gain_of(candidate))
    order = np.zeros(S.shape[1], np.intp) if last is None else last
    steps = np.rint(_gains(S.T, weights, best) / -grain)
    heap = list(zip(order.tolist(), steps.tolist(), range(S.shape[1]), strict=True))
    heapq.heapify(heap)
    fresh = np.zeros(S.shape[1], np.intp)  # the number of picks that a gain was computed for
    picks = 0
    while heap and (room > 0).any():
        later, _, candidate = heapq.heappop(heap)
        if closed[candidate] or room[slots.of[candidate]] <= 0:
            continue  # neither reopens
        if fresh[candidate] == picks:
            yield choose(candidate, gain_of(candidate))
            picks += 1
            continue
        stale = [(later, candidate)]
        while heap and len(stale) < LOOKED_AT_AGAIN and fresh[heap[0][2]] != picks:
            later, _, candidate = heapq.heappop(heap)
            stale.append((later, candidate))
        numbers = [candidate for _, candidate in stale]
        fresh[numbers] = picks
        steps = np.rint(_gains(S.T[numbers], weights, best) / -grain)
        for (later, candidate), step in zip(stale, steps.tolist(), strict=True):
            heapq.heappush(heap, (later, step, candidate))


def improve(
    S: FloatArray,
    weights: FloatArray,
    chosen: Sequence[int],
    slots: Slots,
    *,
    twins: IntArray,
    fixed: Sequence[int] = (),
    barred: BoolArray | None = None,
) -> list[int]:
    """Exchange picks for other candidates while that raises Σ_i ω_i max_{j chosen} s_ij.

    Candidates are weighed for all places at once, a block of them by three matrix products (FastPAM's decomposition), and the
    best exchange of a block is made at once.

    Parameters
    ----------
    S, weights, slots, twins : as in ``cover``
    chosen : candidates to start with, which obey the slots
    fixed : those of them that stay
    barred : candidates that are not taken in

    Notes
    -----
    1. Ends when no exchange raises the sum by 1e-9 of it (1e-6 in single precision), or after ``MOST_SWEEPS`` looks at all.
    2. Of exchanges that are equally good but for rounding, the first is made.

    Examples
    --------
    Greedily, the candidate that resembles all comes first and stays; two that each resemble a half are better:

    >>> import numpy as np
    >>> S = np.array([[0.7, 1.0, 0.0], [0.7, 1.0, 0.0], [0.7, 0.0, 1.0], [0.7, 0.0, 1.0]])
    >>> everyone, slots = {"weights": np.ones(4), "twins": np.arange(3)}, Slots.free(3, 2)
    >>> [pick.candidate for pick in cover(S, slots=slots, **everyone)]
    [0, 1]
    >>> improve(S, chosen=[0, 1], slots=slots, **everyone)
    [2, 1]
    """
    picks = list(chosen)
    k, n_candidates = len(picks), S.shape[1]
    if not k:
        return picks
    weights = weights.astype(S.dtype, copy=False)
    stays = np.isin(picks, np.asarray(fixed, np.intp))
    closed = np.zeros(n_candidates, dtype=bool) if barred is None else barred
    first, second, H, lost = _nearest_picks(S, picks, weights)
    start = float(weights @ first)
    least = (1e-9 if S.dtype == np.float64 else 1e-6) * start
    blocks = [slice(at, min(at + TOGETHER, n_candidates)) for at in range(0, n_candidates, TOGETHER)]
    unchanged = 0
    for _ in range(MOST_SWEEPS):
        for block in blocks:
            if unchanged == len(blocks):
                return picks
            gains = _exchange_gains(S.T[block], weights, H, first, second, lost)
            gains[:, stays] = -np.inf
            gains[closed[block] | np.isin(twins[block], twins[picks])] = -np.inf
            gains[slots.of[block, None] != slots.of[picks]] = -np.inf
            candidate, place = np.unravel_index(int(without_rounding(gains, 10.0 * start).argmax()), gains.shape)
            unchanged += 1
            if gains[candidate, place] > least:
                picks[place] = block.start + int(candidate)
                first, second, H, lost = _nearest_picks(S, picks, weights)
                unchanged = 0
    return picks


def _gains(C: FloatArray, weights: FloatArray, best: FloatArray) -> FloatArray:
    """Σ_i ω_i (s_ci − best_i)₊ for every candidate c."""
    gains = np.empty(len(C))
    for part in row_blocks(*C.shape):
        gains[part] = np.maximum(C[part] - best, 0.0) @ weights
    return gains


def _exchange_gains(
    C: FloatArray, weights: FloatArray, H: FloatArray, first: FloatArray, second: FloatArray, lost: FloatArray
) -> FloatArray:
    """Gain of putting candidate c in the place of pick m, candidates × picks, all at once:

    Σ_i ω_i (s_ci − s¹_i)₊ − Σ_{i nearest to m} ω_i (s¹_i − s²_i) + Σ_{i nearest to m} ω_i (clip(s_ci, s²_i, s¹_i) − s²_i).
    """
    gains = np.empty((len(C), len(lost)))
    for rows in row_blocks(len(C), C.shape[1], IN_CACHE):
        inside = np.maximum(C[rows], second)
        kept = np.minimum(inside, first)
        inside -= kept  # (s_ci − s¹_i)₊
        kept -= second
        gains[rows] = kept @ H
        gains[rows] += (inside @ weights)[:, None]
    return gains - lost


def _nearest_picks(
    S: FloatArray, picks: Sequence[int], weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """For every target the similarity to its nearest pick, s¹, and to the second nearest, s² (0 if none); H, targets × picks, the
    weights at the nearest pick; and Hᵀ(s¹ − s²), what taking each pick away would lose.
    """
    T, rows = np.ascontiguousarray(S[:, picks]), np.arange(len(S))
    nearest = T.argmax(axis=1)
    first = T[rows, nearest]
    T[rows, nearest] = 0.0
    second = T.max(axis=1)
    H = np.zeros_like(T)
    H[rows, nearest] = weights
    lost = np.bincount(nearest, weights=weights * (first - second), minlength=len(picks))
    return first, second, H, np.asarray(lost, np.float64)


class ExplainedShare:
    """1 − Σ_i ω_i e_i / Σ_i ω_i k_ii while picks come in, e_i = k_ii − ‖projection on the picks‖² (a pivoted Cholesky)."""

    def __init__(self, kernel: Kernel, targets: IntArray, weights: FloatArray):
        self.kernel, self.targets, self.weights = kernel, targets, weights
        diagonal = kernel.diagonal()
        self.residual = diagonal[targets].astype(np.float64)
        self.total = float(weights @ self.residual)
        self.noise = 1e-12 * float(diagonal.max())
        self.F = np.empty((len(targets), 16))  # columns of the factor, room for more
        self.L = np.zeros((16, 16))
        self.picks: list[int] = []

    def add(self, pick: int) -> float:
        """The share after one more pick."""
        k, alone = len(self.picks), np.array([pick])
        if k == self.F.shape[1]:
            self.F = np.hstack([self.F, np.empty_like(self.F)])
            self.L = np.pad(self.L, ((0, k), (0, k)))
        values = self.kernel.block(np.array([*self.picks, pick], np.intp), alone).ravel()
        row = solve_triangular(self.L[:k, :k], values[:k], lower=True, check_finite=False) if k else np.zeros(0)
        left = float(values[-1] - row @ row)
        if left > self.noise:
            self.L[k, :k], self.L[k, k] = row, np.sqrt(left)
            column = self.kernel.block(self.targets, alone).ravel() - self.F[:, :k] @ row
            self.F[:, k] = column / self.L[k, k]
            self.residual -= self.F[:, k] ** 2
        else:  # earlier picks express it already; nothing is ever projected on it
            self.L[k, k], self.F[:, k] = np.inf, 0.0
        self.picks.append(pick)
        return self.value

    @property
    def value(self) -> float:
        """The share so far."""
        return 1.0 - float(self.weights @ np.maximum(self.residual, 0.0)) / self.total if self.total > 0 else 1.0


def knee(curve: FloatArray) -> int:
    """The k at which a concave curve v_1, v_2, … is farthest above the chord from (0, 0) to its end.

    Examples
    --------
    >>> import numpy as np
    >>> knee(np.array([0.5, 0.9, 0.92, 0.94, 0.96]))
    2
    """
    if not len(curve) or curve[-1] <= 0:
        return min(len(curve), 1)
    k = np.arange(1, len(curve) + 1)
    return int(k[np.argmax(curve / curve[-1] - k / len(curve))])


def prune_similar(distances: FloatArray, share: float) -> IntArray:
    """Candidates, given in the order of influence, that are not too near to a more influential one that stays.

    For each candidate i that is still there: its distances to all candidates, largest first, are summed until they exceed
    ``share`` of their total; the candidates from there on, the nearest, leave if they come after i.

    Notes
    -----
    1. The paper names the distance and no rule. This is the rule of sparse modelling representative selection (SMRS),
       which the same first author used in later work with distances in the kernel's space and share = 0.95.
    """
    m = len(distances)
    stays = np.ones(m, dtype=bool)
    for i in range(m):
        if not stays[i]:
            continue
        order = np.argsort(-distances[i], kind="stable")
        sums = np.cumsum(distances[i][order])
        if sums[-1] <= 0:  # all others are copies of i
            stays[i + 1 :] = False
            break
        near = order[np.searchsorted(sums, share * sums[-1], side="right") :]
        stays[near[near > i]] = False
    return np.flatnonzero(stays)


def fill_slots(shares: dict[object, float], k: int) -> dict[object, int]:
    """Whole numbers that add up to k and are as near to k·share as possible: the largest remainders are rounded up.

    Examples
    --------
    >>> fill_slots({"a": 0.5, "b": 0.3, "c": 0.2}, 7)
    {'a': 4, 'b': 2, 'c': 1}
    """
    total = sum(shares.values())
    if not total > 0:
        raise InvalidInputError(f"proportions must have a positive sum; got {shares}.")
    exact = {name: k * value / total for name, value in shares.items()}
    whole = {name: int(np.floor(value + 1e-9)) for name, value in exact.items()}
    left = k - sum(whole.values())
    # A stable sort: first come, first served. Equal remainders of different shares differ by rounding.
    for name in sorted(exact, key=lambda name: round(whole[name] - exact[name], 9))[:left]:
        whole[name] += 1
    return whole
