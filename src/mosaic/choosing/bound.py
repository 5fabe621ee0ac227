"""What no choice of rows can cover more than: the Lagrangian bound of facility location (``docs/math/cover.md``).

For every vector u and every set J that may be chosen, max_{j∈J} s_ij ≤ u_i + Σ_{j∈J} (s_ij − u_i)₊, so that

    F(J) = Σ_i ω_i max_{j∈J} s_ij  ≤  Σ_i ω_i u_i + Σ_{j∈J} ρ_j  ≤  D(u),      ρ_j = Σ_i ω_i (s_ij − u_i)₊,

where D(u) adds up the largest ρ of every slot. Any u gives a bound; subgradient steps look for a u whose bound is low.

Rounding. S and ω ≥ 0 are taken as exact numbers. In double precision, a difference, a product and a sum of n terms that are not
negative, in any order, are together off by less than (n + 2) ε of the exact sum, ε = 2⁻⁵²: so is ρ_j. Σ_i ω_i u_i is off by less
than (n + 1) ε Σ_i ω_i |u_i|, and F in the same way. Allowed for are 4 (n + k + 8) ε (Σ_i ω_i |u_i| + Σ_{j∈J} ρ_j) in D(u), and
4 (n + k + 8) ε Σ_i ω_i |max_j s_ij| in F, which is more than all sums and differences here add up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.arrays.xp import on_host
from mosaic.choosing.cover import Slots

#: Steps at most, and steps among the working candidates between two looks at all candidates.
MOST_STEPS, STEPS_BETWEEN_LOOKS = 400, 20
#: Weight of the last direction in a step, and steps without progress after which steps become half as long.
MEMORY, PATIENCE = 0.6, 10
#: A step makes progress if it takes this part of bound − value away.
LEAST_PROGRESS = 0.01
#: The search ends where steps are shorter than this, of 1 at first.
SHORTEST_STEP = 0.02
#: Candidates that a look calls to the working ones, for each pick, and at least.
CALLED_FOR_A_PICK, FEWEST_CALLED = 2, 48
#: Of double precision.
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CoverBound:
    """What is proven about the cover of k picks, for the similarities that they were compared by.

    ``value`` is Σ_i ω_i max_{j∈picks} s_ij, ``least_value`` less than that by all rounding, ``bound`` at least that of every set
    that may be chosen, ``thresholds`` the u that prove it, and ``prices`` the ρ of all candidates there. Every set that covers as
    much as the picks has all candidates of ``in_every_best`` and none of ``in_no_better``. ``is_only_best``: of the sets that may
    be chosen, no other covers as much as the picks.
    """

    value: float
    least_value: float
    bound: float
    thresholds: FloatArray
    prices: FloatArray
    in_every_best: BoolArray
    in_no_better: BoolArray
    is_only_best: bool

    @property
    def gap(self) -> float:
        """(bound − value) / bound: the share of the best cover that the picks miss, at most; 1 is no more than nothing known."""
        if self.bound <= 0:
            return 0.0 if self.bound <= self.value else 1.0
        return min(max((self.bound - self.least_value) / self.bound * (1.0 + 4.0 * EPS), 0.0), 1.0)


def bound_of(
    S: Any, weights: FloatArray, slots: Slots, picks: Sequence[int], *, steps: int = MOST_STEPS
) -> CoverBound:
    """The bound for similarities S of targets to candidates, on any device, and picks, which need not obey the slots."""
    S = np.asfortranarray(on_host(S))
    weights = np.asarray(weights, np.float64)
    is_pick = _mask(picks, S.shape[1])
    own = S[:, is_pick]
    covered = own.max(axis=1).astype(np.float64)
    value = float(weights @ covered)
    error = _rounding(len(S), int(slots.room.sum()))
    slack = error * float(weights @ np.abs(covered))
    u, floor = _first_thresholds(S, own)
    dual = everyone = _Dual.above(floor, S, weights, slots)
    is_working = is_pick.copy()
    in_every_best = np.zeros_like(is_pick)
    lowest = np.inf
    thresholds = u
    size = 1.0
    for _ in range(0, steps + 1, STEPS_BETWEEN_LOOKS):
        look = dual.look(u, error)
        if look.bound < lowest:
            lowest = look.bound
            thresholds = u
        in_every_best[dual.candidates[look.without < value - slack]] = True
        is_working[dual.candidates[look.called]] = True
        dual = dual.among(look.with_it >= value - slack)
        is_only_best = bool(is_pick[dual.candidates].all())
        if is_only_best or size < SHORTEST_STEP:
            break
        u, size = _descend(dual.among(is_working[dual.candidates]), u, floor, value, size)
    bound = value + slack if is_only_best else max(lowest, value + slack)
    in_no_better = ~_mask(dual.candidates, S.shape[1])
    rho = everyone.prices(thresholds)
    return CoverBound(
        value, value - slack, bound, thresholds, rho, in_every_best, in_no_better, is_only_best
    )


def bounds_for_all(rho: FloatArray, weights: FloatArray, u: FloatArray) -> FloatArray:
    """Upper bounds of the cover of 1, 2, 3, … candidates: Σ_i ω_i u_i + ρ_(1) + … + ρ_(k), one u for every k."""
    sums = np.cumsum(np.sort(rho)[::-1])
    slack = _rounding(len(u), len(rho)) * (float(weights @ np.abs(u)) + sums)
    return float(weights @ u) + sums + slack


def _rounding(n: int, k: int) -> float:
    return 4.0 * (n + k + 8) * EPS


def _mask(places: Sequence[int] | IntArray, n: int) -> BoolArray:
    found = np.zeros(n, dtype=bool)
    found[np.asarray(places, np.intp)] = True
    return found


def _first_thresholds(S: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The first u, half way between the best and the second best similarity to the picks, and a floor that u stays above, half
    way between the second and the third. Where there are fewer picks, the least similarity to any candidate stands for these.
    """
    least = S.min(axis=1)
    best = -np.partition(-np.column_stack([own, least, least]), (0, 1, 2), axis=1)[:, :3]
    first, second, third = best.T.astype(np.float64)
    return 0.5 * (first + second), 0.5 * (second + third)


@dataclass(frozen=True)
class _Look:
    """The bound at some u, bounds for sets with and for sets without each candidate, and candidates to work with."""

    bound: float
    with_it: FloatArray
    without: FloatArray
    called: IntArray


@dataclass(frozen=True)
class _Dual:
    """D(u) of some candidates: their similarities to targets above a floor that u stays above, candidates × targets, and the
    slots that they take.
    """

    candidates: IntArray
    similarities: Any
    weights: FloatArray
    slots: Slots

    @classmethod
    def above(cls, floor: FloatArray, S: FloatArray, weights: FloatArray, slots: Slots) -> _Dual:
        is_above = floor < S.T
        ends = np.append(0, np.cumsum(np.count_nonzero(is_above, axis=1)))
        targets = (np.flatnonzero(is_above) % len(S)).astype(np.int32)
        similarities = sp.csr_array((S.T[is_above], targets, ends), shape=S.T.shape)
        return cls(np.arange(S.shape[1]), similarities, weights, slots)

    def among(self, is_kept: BoolArray) -> _Dual:
        """The same for some of the candidates."""
        if is_kept.all():
            return self
        kept = np.flatnonzero(is_kept)
        return _Dual(
            self.candidates[kept],
            self.similarities[kept],
            self.weights,
            self.slots.renumbered(kept),
        )

    def prices(self, u: FloatArray) -> FloatArray:
        """ρ_j of all candidates."""
        S = self.similarities
        above = u[S.indices]
        np.subtract(S.data, above, out=above)
        np.maximum(above, 0.0, out=above)
        return np.asarray(sp.csr_array((above, S.indices, S.indptr), shape=S.shape) @ self.weights)

    def look(self, u: FloatArray, error: float) -> _Look:
        """D(u). A set with a candidate that is not among the best has it instead of one of its slot, which is at least the least
        of these; a set without one of the best has at most the next.
        """
        rho = self.prices(u)
        slot = self.slots.of
        room = self.slots.room
        best = self.slots.best(rho)
        total = float(rho[best].sum())
        slack = error * (float(self.weights @ np.abs(u)) + total)
        bound = float(self.weights @ u) + total + slack
        taken = np.setdiff1d(best, self.slots.forced)
        others = np.setdiff1d(np.arange(len(rho)), best)
        least = np.full(len(room), np.inf)
        following = np.zeros(len(room))
        np.minimum.at(least, slot[taken], rho[taken])
        np.maximum.at(following, slot[others], rho[others])
        least[np.bincount(slot[best], minlength=len(room)) < room] = 0.0
        with_it = np.full(len(rho), np.inf)
        without = np.full(len(rho), np.inf)
        with_it[others] = bound + rho[others] - least[slot[others]] + slack
        without[taken] = bound - rho[taken] + following[slot[taken]] + slack
        without[np.asarray(self.slots.forced, np.intp)] = -np.inf
        number = max(CALLED_FOR_A_PICK * len(best), FEWEST_CALLED)
        return _Look(
            bound, with_it, without, np.union1d(best, np.argsort(-rho, kind="stable")[:number])
        )


def _descend(
    dual: _Dual, u: FloatArray, floor: FloatArray, value: float, size: float
) -> tuple[FloatArray, float]:
    """Steps u ← max(u − size (D(u) − F) v / Σ_i ω_i v_i², floor), v_i a mean of 1 − #{best j: s_ij > u_i}, the slopes of D / ω_i.
    The u with the lowest D, and the size of the next steps.
    """
    weights = dual.weights
    lowest = np.inf
    best_u = u
    direction = None
    idle = 0
    for _ in range(STEPS_BETWEEN_LOOKS):
        rho = dual.prices(u)
        best = dual.slots.best(rho)
        bound = float(weights @ u) + float(rho[best].sum())
        idle = 0 if bound < lowest - LEAST_PROGRESS * max(lowest - value, 0.0) else idle + 1
        if bound < lowest:
            lowest = bound
            best_u = u
        if idle == PATIENCE:
            u = best_u
            size = 0.5 * size
            direction = None
            idle = 0
            continue
        near = dual.similarities[best]
        slope = 1.0 - np.bincount(near.indices[near.data > u[near.indices]], minlength=len(u))
        direction = slope if direction is None else MEMORY * direction + (1.0 - MEMORY) * slope
        length = float(weights @ direction**2)
        if not length > 0:
            break
        u = np.maximum(u - size * max(bound - value, 0.0) / length * direction, floor)
    return best_u, size
