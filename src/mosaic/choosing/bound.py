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
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mosaic.arrays.blocks import BLOCK_ENTRIES, BoolArray, FloatArray, IntArray
from mosaic.arrays.xp import on_host
from mosaic.choosing.cover import Slots

#: Steps at most, and steps among the working candidates between two looks at all candidates.
MOST_STEPS, STEPS_BETWEEN_LOOKS = 400, 20
#: Weight of the last direction in a step, and steps without progress after which steps become half as long.
MEMORY, PATIENCE = 0.6, 10
#: A step makes progress if it takes this part of bound − value away.
LEAST_PROGRESS = 0.01
#: The search ends where so many looks took less than this part of bound − value away, unless steps are still so long.
LOOKS_WITHOUT_PROGRESS, LEAST_PROGRESS_OF_LOOKS, LONG_STEPS = 3, 0.05, 0.2
#: Candidates that a look calls to the working ones, for each pick, and at least.
CALLED_FOR_A_PICK, FEWEST_CALLED = 2, 48
#: Of double precision.
EPS = float(np.finfo(np.float64).eps)
NO_TARGETS = np.zeros(0, np.int32)
#: Candidates that are out are forgotten once fewer than this share of those that are looked at is left.
SHARE_LEFT = 0.6


@dataclass(frozen=True)
class CoverBound:
    """What is proven about the cover of k picks, for the similarities that they were compared by.

    ``value`` is Σ_i ω_i max_{j∈picks} s_ij, ``least_value`` less than that by all rounding, ``bound`` at least that of every set
    that may be chosen, ``thresholds`` the u that prove it, and ``prices`` the ρ of all candidates there, 0 for those that may not
    be chosen. Every set that covers as much as the picks has all candidates of ``in_every_best`` and none of ``in_no_better``.
    ``is_only_best``: of the sets that may be chosen, no other covers as much as the picks.
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


def bound_of(S: Any, weights: FloatArray, slots: Slots, picks: Sequence[int], *, steps: int = MOST_STEPS) -> CoverBound:
    """The bound for similarities S of targets to candidates, on any device, and picks, which need not obey the slots."""
    S, weights, chosen = np.asfortranarray(on_host(S)), np.asarray(weights, np.float64), np.asarray(picks, np.intp)
    own = S[:, chosen].astype(np.float64)
    covered = own.max(axis=1)
    value, error = float(weights @ covered), _rounding(len(S), int(slots.room.sum()))
    slack = error * float(weights @ np.abs(covered))
    least_value, most_value = value - slack, value + slack
    u, floor = _first_thresholds(S, own)
    dual = everyone = _Dual.above(floor, S, weights, slots)
    is_pick = _mask(chosen, S.shape[1])
    is_open, in_every_best = _mask(dual.candidates, S.shape[1]), np.zeros_like(is_pick)
    is_working = is_pick & is_open
    bounds, thresholds, size, done = [np.inf], u, 1.0, 0
    while True:
        look = dual.look(u, error)
        if look.bound < bounds[-1]:
            thresholds = u
        bounds.append(min(look.bound, bounds[-1]))
        in_every_best[dual.candidates[look.without < least_value]] = True
        is_open[dual.candidates[look.with_it < least_value]] = False
        is_closed = not (is_open & ~is_pick).any()
        if is_closed or done >= steps or _is_stuck(bounds, value, size):
            break
        is_working[dual.candidates[look.calls]] = True
        is_working &= is_open
        is_left = is_open[dual.candidates]
        if is_left.mean() < SHARE_LEFT:
            dual = dual.among(is_left)
        u, size = _descend(dual.among(is_working[dual.candidates]), u, floor, value, size)
        done += STEPS_BETWEEN_LOOKS
    bound = most_value if is_closed else max(bounds[-1], most_value)
    rho = np.zeros(S.shape[1])
    rho[everyone.candidates] = everyone.prices(thresholds, np.float64)
    return CoverBound(value, least_value, bound, thresholds, rho, in_every_best, ~is_open, is_closed)


def prices(S: Any, weights: FloatArray, u: FloatArray) -> FloatArray:
    """ρ_j = Σ_i ω_i (s_ij − u_i)₊ of all candidates."""
    S = on_host(S)
    return np.array([weights @ np.maximum(column.astype(np.float64) - u, 0.0) for column in S.T])


def bounds_for_all(rho: FloatArray, weights: FloatArray, u: FloatArray) -> FloatArray:
    """Upper bounds of the cover of 1, 2, 3, … candidates: Σ_i ω_i u_i + ρ_(1) + … + ρ_(k), one u for every k."""
    sums = np.cumsum(np.sort(rho)[::-1])
    slack = _rounding(len(u), len(rho)) * (float(weights @ np.abs(u)) + sums)
    return np.asarray(float(weights @ u) + sums + slack)


def _rounding(n: int, k: int) -> float:
    return 4.0 * (n + k + 8) * EPS


def _mask(places: IntArray, n: int) -> BoolArray:
    found = np.zeros(n, dtype=bool)
    found[places] = True
    return found


def _first_thresholds(S: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The first u, half way between the best and the second best similarity to the picks, and a floor that u stays above: the
    third best. For one pick the floor is the least of all similarities, where the bound is exact.
    """
    k = own.shape[1]
    if k == 1:
        least = S.min(axis=1).astype(np.float64)
        return least, least
    first, second, third = (np.partition(own, k - place, axis=1)[:, k - place] for place in (1, 2, min(3, k)))
    return 0.5 * (first + second), 0.5 * (second + third) if k > 2 else 2.0 * second - first


def _is_stuck(bounds: list[float], value: float, size: float) -> bool:
    if len(bounds) <= LOOKS_WITHOUT_PROGRESS or size >= LONG_STEPS:
        return False
    return bounds[-1 - LOOKS_WITHOUT_PROGRESS] - bounds[-1] < LEAST_PROGRESS_OF_LOOKS * (bounds[-1] - value)


@dataclass(frozen=True)
class _Look:
    """The bound at some u, bounds for sets with and for sets without each candidate, and candidates to work with."""

    bound: float
    with_it: FloatArray
    without: FloatArray
    calls: IntArray


@dataclass(frozen=True)
class _Dual:
    """D(u) of some candidates: their similarities above a floor that u stays above, column after column, with their targets, and
    the slots that they take. Those in ``kind`` with the same number are copies in one slot.
    """

    candidates: IntArray
    values: FloatArray
    target: NDArray[np.integer[Any]]
    start: IntArray
    weights: FloatArray
    slot: IntArray
    kind: IntArray
    is_forced: BoolArray
    room: IntArray  # beside those that are forced

    @classmethod
    def above(cls, floor: FloatArray, S: FloatArray, weights: FloatArray, slots: Slots) -> _Dual:
        forced = np.asarray(slots.forced, np.intp)
        room = slots.room - np.bincount(slots.of[forced], minlength=len(slots.room))
        is_forced = _mask(forced, S.shape[1])
        may_be = is_forced | ((room[slots.of] > 0) & ~np.isin(slots.twins, slots.twins[forced]))
        candidates, low = np.flatnonzero(may_be), floor.astype(S.dtype)
        targets = [np.flatnonzero(S[:, candidate] > low).astype(np.int32) for candidate in candidates]
        values = [S[rows, candidate] for rows, candidate in zip(targets, candidates, strict=True)]
        start = np.cumsum([0, *map(len, targets)])
        pairs = np.column_stack([slots.of, slots.twins])[candidates]
        kind = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        target, joined = np.concatenate([NO_TARGETS, *targets]), np.concatenate([np.zeros(0, S.dtype), *values])
        return cls(candidates, joined, target, start, weights, slots.of[candidates], kind, is_forced[candidates], room)

    def among(self, is_kept: BoolArray) -> _Dual:
        """The same for some of the candidates."""
        kept, lengths = np.flatnonzero(is_kept), np.diff(self.start)
        entries = np.repeat(is_kept, lengths)
        start = np.cumsum([0, *lengths[kept]])
        few = {name: getattr(self, name)[kept] for name in ("candidates", "slot", "kind", "is_forced")}
        return replace(self, values=self.values[entries], target=self.target[entries].astype(np.intp), start=start, **few)

    def prices(self, u: FloatArray, dtype: DTypeLike) -> FloatArray:
        """ρ_j of all candidates, with differences in some precision, and sums in double."""
        rho, limits = np.zeros(len(self.candidates)), u.astype(dtype)
        is_even = bool((self.weights == self.weights[0]).all())
        filled = np.flatnonzero(np.diff(self.start))
        ends = np.searchsorted(self.start[filled], np.arange(0, len(self.values) + BLOCK_ENTRIES, BLOCK_ENTRIES))
        for first, last in pairwise(ends):
            here = filled[first:last]
            if not len(here):
                continue
            entries = slice(self.start[here[0]], self.start[here[-1] + 1])
            target = self.target[entries]
            above = np.subtract(self.values[entries], limits[target], dtype=dtype)
            np.maximum(above, 0.0, out=above)
            if not is_even:
                above *= self.weights[target].astype(dtype)
            rho[here] = np.add.reduceat(above, self.start[here] - entries.start, dtype=np.float64)
        return rho * self.weights[0] if is_even else rho

    def best(self, rho: FloatArray) -> BoolArray:
        """The forced candidates, and the largest ρ of every slot, of copies one."""
        order = np.flatnonzero(~self.is_forced)
        order = order[np.argsort(-rho[order], kind="stable")]
        order = order[np.sort(np.unique(self.kind[order], return_index=True)[1])]
        order = order[np.argsort(self.slot[order], kind="stable")]
        slot = self.slot[order]
        rank = np.arange(len(order)) - np.searchsorted(slot, slot)
        return self.is_forced | _mask(order[rank < self.room[slot]], len(rho))

    def look(self, u: FloatArray, error: float) -> _Look:
        """D(u) in double precision. A set with a candidate that is not among the best has it instead of one of its slot, which is
        at least the least of these; a set without one of the best has at most the next.
        """
        rho = self.prices(u, np.float64)
        is_best = self.best(rho)
        total = float(rho[is_best].sum())
        slack = error * (float(self.weights @ np.abs(u)) + total)
        bound = float(self.weights @ u) + total + slack
        least, following = np.full(len(self.room), np.inf), np.zeros(len(self.room))
        is_taken = is_best & ~self.is_forced
        np.minimum.at(least, self.slot[is_taken], rho[is_taken])
        least[np.bincount(self.slot[is_taken], minlength=len(self.room)) < self.room] = 0.0
        np.maximum.at(following, self.slot[~is_best], rho[~is_best])
        with_it = bound + rho - least[self.slot] + slack
        with_it[is_best] = np.inf
        without = bound - rho + following[self.slot] + slack
        without[~is_best] = np.inf
        without[self.is_forced] = -np.inf
        number = max(CALLED_FOR_A_PICK * int(is_best.sum()), FEWEST_CALLED)
        highest = np.argsort(-rho, kind="stable")[:number]
        calls = np.flatnonzero(is_best | _mask(highest, len(rho)) | (rho > least[self.slot]))
        return _Look(bound, with_it, without, calls)


def _descend(dual: _Dual, u: FloatArray, floor: FloatArray, value: float, size: float) -> tuple[FloatArray, float]:
    """Steps u ← max(u − size (D(u) − F) v / Σ_i ω_i v_i², floor), v_i a mean of 1 − #{best j: s_ij > u_i}, the slopes of D / ω_i.
    The u with the lowest D, and the size of the next steps.
    """
    weights, lengths, precision = dual.weights, np.diff(dual.start), dual.values.dtype
    lowest, best_u, direction, idle = np.inf, u, None, 0
    for _ in range(STEPS_BETWEEN_LOOKS):
        rho = dual.prices(u, precision)
        is_best = dual.best(rho)
        bound = float(weights @ u) + float(rho[is_best].sum())
        idle = 0 if bound < lowest - LEAST_PROGRESS * max(lowest - value, 0.0) else idle + 1
        if bound < lowest:
            lowest, best_u = bound, u
        if idle == PATIENCE:
            u, size, direction, idle = best_u, 0.5 * size, None, 0
            continue
        entries = np.repeat(is_best, lengths)
        target = dual.target[entries]
        is_above = dual.values[entries] > u[target]
        slope = 1.0 - np.bincount(target[is_above], minlength=len(u))
        direction = slope if direction is None else MEMORY * direction + (1.0 - MEMORY) * slope
        length = float(weights @ direction**2)
        if not length > 0:
            break
        u = np.maximum(u - size * max(bound - value, 0.0) / length * direction, floor)
    return best_u, size
