"""Facility location for many picks: of each target, only the candidates that are near to it are kept.

With k picks among 4 k candidates, the pick of a target is one of its nearest candidates. A floor f_i, the similarity of a
target to about its 64th nearest candidate, therefore changes no choice: Σ_i ω_i max_j s_ij = Σ_i ω_i f_i + Σ_i ω_i max_j
(s_ij − f_i)₊ as soon as every target has a pick above its floor. The search is that of ``FacilityLocation``, on a few entries
for each target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks
from mosaic.arrays.xp import on_host
from mosaic.choosing.objectives import CACHED_SIMILARITIES, Cover, Slots

#: The floor of a target is its similarity to the candidate at this rank among some of them, of which there are half as many as
#: picks: above it are as many candidates as there are for this many picks, twice the rank.
FLOOR_RANK = 8


@dataclass(frozen=True)
class NearLocation:
    """Σ_i ω_i max_{j∈S} (s_ij − f_i)₊. The entries of candidate c, places ``starts[c]`` to ``starts[c + 1]``, are the ``targets``
    near to it and the ``values`` s_ij − f_i. For each target, ``near`` has its candidates, and ``near_values`` the values, padded
    with one more candidate and 0.
    """

    weights: FloatArray
    starts: IntArray
    targets: IntArray
    values: FloatArray
    near: IntArray
    near_values: FloatArray

    @classmethod
    def of(cls, cover: Cover, targets: IntArray, candidates: IntArray, weights: FloatArray, k: int) -> NearLocation:
        distances = cover.kernel.in_single(candidates, cover.reach)
        every = max(min(2 * len(candidates) // k, len(candidates) // FLOOR_RANK), 1)
        rank = min(FLOOR_RANK, len(candidates)) - 1

        def find(part: slice) -> tuple[IntArray, IntArray, FloatArray]:
            D = np.asarray(on_host(distances(targets[part])))
            floor = np.partition(D[:, ::every], rank, axis=1)[:, rank, None]
            target, candidate = np.nonzero(floor > D)
            values = cover.similarities(D[target, candidate]) - cover.similarities(floor[target, 0])
            return (target + part.start).astype(np.int32), candidate.astype(np.int32), values.astype(np.float32)

        parts = in_blocks(find, len(targets), len(candidates), CACHED_SIMILARITIES, on=cover.kernel.X)
        target, candidate, values = (np.concatenate(found) for found in zip(*parts, strict=True))
        return cls._from(weights, len(candidates), target, candidate, values)

    @classmethod
    def _from(cls, weights: FloatArray, n: int, target: IntArray, candidate: IntArray, values: FloatArray) -> NearLocation:
        """From entries in the order of their targets, for n candidates."""
        first = np.searchsorted(target, np.arange(len(weights)))
        width = np.bincount(target, minlength=1).max()
        near = np.full((len(weights), width), n, np.int32)
        near_values = np.zeros((len(weights), width), np.float32)
        place = np.arange(len(target)) - first[target]
        near[target, place] = candidate
        near_values[target, place] = values
        order = np.argsort(candidate, kind="stable")
        starts = np.searchsorted(candidate[order], np.arange(n + 1))
        return cls(weights, starts, target[order], values[order], near, near_values)

    def among(self, chosen: Sequence[int]) -> NearLocation:
        """The same objective with these candidates only."""
        number = np.full(len(self.starts), -1)
        number[list(chosen)] = np.arange(len(chosen))
        target, place = np.nonzero(number[self.near] >= 0)
        candidate = number[self.near[target, place]]
        return self._from(self.weights, len(chosen), target, candidate, self.near_values[target, place])

    def entries(self, candidate: int) -> tuple[IntArray, FloatArray]:
        here = slice(self.starts[candidate], self.starts[candidate + 1])
        return self.targets[here], self.values[here]

    def ranked(self, slots: Slots, most: int | None = None) -> tuple[list[int], list[float]]:
        """As ``FacilityLocation.ranked``: candidates, each adding most to those before it, and their gains."""
        grain = 1e-7 * float(self.weights.sum()) or 1.0
        owner = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        gains = np.bincount(owner, self.weights[self.targets] * self.values, len(self.starts) - 1)
        queue = [(-step, candidate) for candidate, step in enumerate(np.rint(gains / grain).tolist())]
        heapify(queue)
        best, room, taken = np.zeros(len(self.weights)), slots.room.copy(), set()
        chosen: list[int] = []
        found: list[float] = []

        def gain_of(candidate: int) -> float:
            targets, values = self.entries(candidate)
            return float(self.weights[targets] @ np.maximum(values - best[targets], 0.0))

        def choose(candidate: int, gain: float) -> None:
            targets, values = self.entries(candidate)
            best[targets] = np.maximum(best[targets], values)
            room[slots.of[candidate]] -= 1
            taken.add(int(slots.twins[candidate]))
            chosen.append(candidate)
            found.append(gain)

        for candidate in slots.forced:
            choose(candidate, gain_of(candidate))
        while queue and len(chosen) != most and room.any():
            candidate = queue[0][1]
            if room[slots.of[candidate]] <= 0 or int(slots.twins[candidate]) in taken:
                heappop(queue)
                continue
            gain = gain_of(candidate)
            fresh = (-float(np.rint(gain / grain)), candidate)
            if fresh != queue[0]:
                heapreplace(queue, fresh)  # it comes again when no other may gain more
                continue
            heappop(queue)
            choose(candidate, gain)
        return chosen[:most], found[:most]

    def exchanged(self, chosen: Sequence[int], slots: Slots, worth: FloatArray | None = None) -> list[int]:
        """As ``FacilityLocation.exchanged``: each candidate in turn takes the place of the pick whose exchange gains most."""
        picks = np.array(chosen, np.intp)
        worth = np.zeros(len(self.starts) - 1) if worth is None else worth
        place_of = np.full(len(self.starts), -1, np.intp)  # of candidates among the picks
        place_of[picks] = np.arange(len(picks))
        is_taken = np.zeros(int(slots.twins.max(initial=0)) + 1, dtype=bool)
        is_taken[slots.twins[picks]] = True
        stays = np.isin(picks, np.asarray(slots.forced, np.intp))
        nearest = self._nearest(np.arange(len(self.weights)), place_of)
        apart = self.weights * (nearest.first - nearest.second)
        lost: FloatArray = np.bincount(nearest.place, apart, len(picks) + 1)[: len(picks)].astype(np.float64)
        least = 1e-6 * float(self.weights @ nearest.first)
        several = len(slots.room) > 1
        unchanged = 0
        for candidate in np.tile(np.arange(len(self.starts) - 1), 20).tolist():  # a handful of sweeps is usual
            if unchanged == len(self.starts) - 1:
                break
            unchanged += 1
            if is_taken[slots.twins[candidate]]:
                continue
            gained, loss = self._exchange(candidate, nearest, lost)
            loss += worth[picks] - worth[candidate]
            loss[stays if not several else stays | (slots.of[picks] != slots.of[candidate])] = np.inf
            place = int(loss.argmin()) if len(loss) else 0
            if not len(loss) or gained - loss[place] <= least:
                continue
            old, picks[place] = int(picks[place]), candidate
            is_taken[slots.twins[old]] = False
            is_taken[slots.twins[candidate]] = True
            place_of[old], place_of[candidate] = -1, place
            changed = np.union1d(self.entries(old)[0], self.entries(candidate)[0])
            self._move(changed, nearest, lost, place_of)
            unchanged = 0
        return [int(pick) for pick in picks]

    def _exchange(self, candidate: int, nearest: Nearest, lost: FloatArray) -> tuple[float, FloatArray]:
        """Σ_i ω_i (s_ci − s¹_i)₊, and for each pick what is lost if the candidate takes its place."""
        targets, values = self.entries(candidate)
        few = values > nearest.second[targets]
        targets, values = targets[few], values[few]
        first, second, weights = nearest.first[targets], nearest.second[targets], self.weights[targets]
        gained = float(weights @ np.maximum(values - first, 0.0))
        loss = np.append(lost, 0.0)  # the last is of targets without a pick
        np.subtract.at(loss, nearest.place[targets], weights * (np.minimum(values, first) - second))
        return gained, loss[:-1]

    def _move(self, targets: IntArray, nearest: Nearest, lost: FloatArray, place_of: IntArray) -> None:
        """Find the two nearest picks of these targets again."""
        weights, n = self.weights[targets], len(lost) + 1
        before = np.bincount(nearest.place[targets], weights * (nearest.first - nearest.second)[targets], n)
        new = self._nearest(targets, place_of, len(lost))
        for values, found in zip(nearest, new, strict=True):
            values[targets] = found
        lost += (np.bincount(new.place, weights * (new.first - new.second), n) - before)[:-1]

    def _nearest(self, targets: IntArray, place_of: IntArray, n_picks: int | None = None) -> Nearest:
        places = place_of[self.near[targets]]
        values = np.where(places >= 0, self.near_values[targets], 0.0)
        at = values.argmax(axis=1)
        rows = np.arange(len(targets))
        first = values[rows, at]
        values[rows, at] = 0.0
        n_picks = int(place_of.max()) + 1 if n_picks is None else n_picks
        return Nearest(np.where(first > 0, places[rows, at], n_picks), first, values.max(axis=1))


class Nearest(NamedTuple):
    """For each target the place of its nearest pick, or the number of picks if none is near, and the two largest values."""

    place: IntArray
    first: FloatArray
    second: FloatArray
