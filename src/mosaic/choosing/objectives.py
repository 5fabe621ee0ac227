"""The cover that a set of picks optimises, and the search for it: greedy picks, then exchanges.

Picks are taken from *candidates* for *targets*, points with weights ω, to maximise Σ_i ω_i max_{j∈S} s_ij: facility location,
with the similarity of ``Cover``. The gains of greedy picks decrease, so any prefix of a ranking is a good answer to a smaller k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, row_blocks, subsample
from mosaic.arrays.xp import (
    asarray_like,
    at_least_zero,
    empty_on_device_of,
    exponential,
    is_on_device,
    namespace,
    numpy_dtype,
    on_host,
    rows_of,
    with_entries,
)
from mosaic.choosing.budget import MOST_IN_DOUBLE, TARGETS_FOR_A_PICK
from mosaic.kernels import Kernel, decay_rate

#: Distances that the reach of a cover is solved with.
REACH_DISTANCES = 1 << 21
#: Similarities that exchanges work on at once: half a megabyte in single precision, which stays in the cache of one core.
CACHED_SIMILARITIES = 1 << 17


@dataclass(frozen=True)
class Slots:
    """The places to be filled: candidate c takes one of the ``room`` of slot ``of[c]``. Candidates with the same number in
    ``twins`` are copies, of which one at most is chosen; those in ``forced`` are chosen first and stay.
    """

    of: IntArray
    room: IntArray
    twins: IntArray
    forced: Sequence[int] = ()

    @classmethod
    def free(cls, n: int, k: int, forced: Sequence[int] = ()) -> Slots:
        return cls(np.zeros(n, np.intp), np.array([k]), np.arange(n), forced)

    def among(self, places: IntArray) -> Slots:
        """The same places for some of the candidates."""
        forced = np.flatnonzero(np.isin(places, np.asarray(self.forced, np.intp)))
        return Slots(self.of[places], self.room, self.twins[places], forced.tolist())

    def best(self, values: FloatArray) -> IntArray:
        """The forced candidates, and beside them those of every slot that have the largest values, of copies in it the first."""
        is_free = np.ones(len(self.of), dtype=bool)
        is_free[np.asarray(self.forced, np.intp)] = False
        order = np.lexsort((-values, is_free))
        kind = self.of * (self.twins.max(initial=0) + 1) + self.twins
        order = order[np.sort(np.unique(kind[order], return_index=True)[1])]
        order = order[np.argsort(self.of[order], kind="stable")]
        slot = self.of[order]
        rank = np.arange(len(order)) - np.searchsorted(slot, slot)
        return np.sort(order[rank < self.room[slot]])

    def may_replace(self, candidates: slice, picks: Sequence[int]) -> BoolArray:
        """Whether each of these candidates may take the place of each pick, candidates × picks: in its slot, or in that of a pick
        that may not be chosen itself; forced picks stay, and candidates that are picks, or equal to some, are not taken again.
        """
        slot, taken = self.of[candidates], self.of[picks]
        may = (slot[:, None] == taken) | (self.room[taken] == 0)
        may &= ~np.isin(picks, np.asarray(self.forced, np.intp))
        is_new = ~np.isin(self.twins[candidates], self.twins[picks]) & (self.room[slot] > 0)
        return np.asarray(may & is_new[:, None])


@dataclass(frozen=True)
class Cover:
    """s(x, y) = exp(−d(x, y) / h), the similarity of a cover, d the distance of the kernel, √(k_ii + k_jj − 2 k_ij) where it has
    no other. With the reach h, median_i Σ_j ω_j s(x_i, x_j)² = Σ_j ω_j / k over the points that belong: a row resembles as many
    rows as a pick stands for. The form is ours: exp(−d²/h²) gives sparse groups no pick, and a wider one gives outliers picks.
    """

    kernel: Kernel
    reach: float

    @classmethod
    def of(cls, kernel: Kernel, points: IntArray, weights: FloatArray, k: float) -> Cover:
        """The cover of weighted points by k picks; of one pick as of two, since with h = ∞ all rows are alike."""
        some = subsample(len(points), max(1024, round(TARGETS_FOR_A_PICK * k)), 0)
        others, share = points[some], weights[some]
        centres = subsample(len(others), int(np.clip(REACH_DISTANCES // len(others), 32, 128)), 1)
        D = kernel.distances(others[centres], others)
        if kernel.order == 2:
            D = np.sqrt(D, out=D)
        if not D.any():
            return cls(kernel, 1.0)
        D[np.arange(len(D)), centres] = np.inf  # not the row itself, else many picks have no reach
        rate = decay_rate(D.T, share / share.sum(), 0.5, 1.0 / max(k, 2.0))
        return cls(kernel, 1.0 / rate if rate < np.inf else float(D[D > 0].min()) / 30.0)  # ∞: each row resembles copies alone

    def between(self, rows: IntArray, columns: IntArray) -> Any:
        """s_ij, rows × columns, where the points are. Columns are contiguous."""
        is_exact = len(rows) * len(columns) <= MOST_IN_DOUBLE
        dtype = np.float64 if is_exact else np.float32
        S = empty_on_device_of(self.kernel.device_distances(rows[:1], columns[:1]), (len(columns), len(rows)), dtype)
        distances = self._distances_in_double(rows) if is_exact else self.kernel.in_single(rows, self.reach)

        def fill(part: slice) -> None:
            S[part, ...] = self.similarities(distances(columns[part]))

        in_blocks(fill, len(columns), len(rows), CACHED_SIMILARITIES, on=self.kernel.X)
        return S.T

    def _distances_in_double(self, rows: IntArray) -> Callable[[IntArray], Any]:
        """As ``Kernel.in_single``, in double precision."""
        return lambda columns: self.kernel.device_distances(columns, rows) * self.reach**-self.kernel.order

    def similarities(self, D: Any) -> Any:
        """exp(−d / h) from (d / h)^order, which may be overwritten."""
        if self.kernel.order == 2:
            D = D**0.5 if is_on_device(D) else np.sqrt(D, out=D)
        return exponential(-D if is_on_device(D) else np.negative(D, out=D))


def quantised(values: FloatArray, scale: float) -> FloatArray:
    """Values in whole multiples of 1e-10 · scale: those that differ by rounding only become equal, and the first of them wins."""
    return np.asarray(np.round(values / (1e-10 * scale or 1.0)))


@dataclass(frozen=True)
class FacilityLocation:
    """Σ_i ω_i max_{j∈S} s_ij: similarities S of targets to candidates, and weights ω of the targets."""

    S: Any
    weights: FloatArray

    def among(self, chosen: Sequence[int]) -> FacilityLocation:
        """The same objective with these candidates only."""
        return FacilityLocation(rows_of(self.S.T, np.asarray(chosen, np.intp)).T, self.weights)

    def ranked(self, slots: Slots, most: int | None = None) -> tuple[list[int], list[float]]:
        """Candidates, each adding most to Σ_i ω_i max_{j chosen} s_ij, and their gains, until the slots are full.

        A gain never grows, so only those whose last known gain is the largest are computed again; of equal ones the first wins.
        """
        S, weights, room = self.S, asarray_like(self.S, self.weights), slots.room.copy()
        best, maximum = asarray_like(S, np.zeros(S.shape[0])), namespace(S).maximum
        grain = (1e-12 if numpy_dtype(S) == np.float64 else 1e-7) * float(self.weights.sum()) or 1.0
        at_once = S.shape[1] if is_on_device(S) else 64
        gains = on_host(S.T @ weights).astype(np.float64)  # before the first pick, since S ≥ 0
        steps = np.where(room[slots.of] > 0, np.rint(gains / grain), -np.inf)  # −∞ for those that may not be chosen
        is_known = np.ones(len(gains), dtype=bool)

        def gains_of(candidates: IntArray) -> FloatArray:
            if isinstance(S, np.ndarray):
                return np.asarray(np.maximum(S.T[candidates] - best, 0.0) @ weights)
            return on_host(at_least_zero(rows_of(S.T, candidates) - best) @ weights)

        chosen: list[int] = []
        while len(chosen) != most:
            if len(chosen) < len(slots.forced):
                candidate = slots.forced[len(chosen)]
                gains[candidate] = gains_of(np.array([candidate]))[0]
            elif steps.max(initial=-np.inf) == -np.inf:
                break
            else:
                candidate = int(steps.argmax())
                if not is_known[candidate]:
                    asked = np.flatnonzero(~is_known & (steps >= steps[is_known].max(initial=-np.inf)))
                    if len(asked) > at_once:
                        asked = asked[np.argpartition(steps[asked], len(asked) - at_once)[len(asked) - at_once :]]
                    gains[asked] = gains_of(asked)
                    steps[asked] = np.rint(gains[asked] / grain)
                    is_known[asked] = True
                    continue
            best = maximum(best, S[:, candidate])
            room[slots.of[candidate]] -= 1
            steps[(slots.twins == slots.twins[candidate]) | (room[slots.of] <= 0)] = -np.inf
            np.equal(steps, -np.inf, out=is_known)
            chosen.append(candidate)
        return chosen, gains[chosen].tolist()

    def exchanged(self, chosen: Sequence[int], slots: Slots, worth: FloatArray | None = None) -> list[int]:
        """Exchange picks for other candidates while that raises Σ_i ω_i max_{j chosen} s_ij + Σ_{j chosen} worth_j by 1e-9 of it
        (1e-6 in single precision): the best of a block of candidates, of equally good ones the first (FastPAM's decomposition).
        """
        S, weights, picks = self.S, asarray_like(self.S, self.weights), list(chosen)
        n_candidates = S.shape[1]
        if not picks:
            return picks
        nearest = _Nearest.of(S, picks, weights)
        start = float(weights @ nearest.first)
        least = (1e-9 if numpy_dtype(S) == np.float64 else 1e-6) * start
        blocks = row_blocks(n_candidates, 1, 256)
        unchanged = 0
        for _ in range(20):  # a handful of sweeps is usual
            for block in blocks:
                if unchanged == len(blocks):
                    return picks
                gains = nearest.exchange_gains(rows_of(S.T, block))
                if worth is not None:
                    gains += worth[block, None] - worth[picks]
                gains[~slots.may_replace(block, picks)] = -np.inf
                candidate, place = np.unravel_index(int(quantised(gains, 10.0 * start).argmax()), gains.shape)
                unchanged += 1
                if gains[candidate, place] > least:
                    nearest = nearest.after_exchange(S, picks, int(place), block.start + int(candidate))
                    unchanged = 0
        return picks

    def best_exchanges(self, picks: Sequence[int], slots: Slots, number: int) -> list[Exchange]:
        """The exchanges that each add most, of different picks for different candidates; none that adds nothing."""
        nearest = _Nearest.of(self.S, picks, asarray_like(self.S, self.weights))
        found: list[Exchange] = []
        for block in row_blocks(self.S.shape[1], 1, 256):
            gains = nearest.exchange_gains(rows_of(self.S.T, block))
            gains[~slots.may_replace(block, picks)] = -np.inf
            for _ in range(min(number, *gains.shape)):
                candidate, place = np.unravel_index(int(gains.argmax()), gains.shape)
                if not gains[candidate, place] > 0:
                    break
                found.append(Exchange(picks[int(place)], block.start + int(candidate), float(gains[candidate, place])))
                gains[candidate], gains[:, place] = -np.inf, -np.inf
        best: list[Exchange] = []
        for each in sorted(found, key=lambda each: (-each.gain, each.candidate)):
            if len(best) < number and all(each.pick != other.pick for other in best):
                best.append(each)
        return best


class Exchange(NamedTuple):
    """A pick, the candidate that may take its place, and what that adds to the objective."""

    pick: int
    candidate: int
    gain: float


class _Nearest(NamedTuple):
    """For every target the place of its nearest pick, its similarity to that pick, s¹, and to the second nearest, s² (0 if none).
    ``lost`` are the sums of ω (s¹ − s²) over the targets of each pick. ``indicator`` has ω_i in row i, in the column of the pick
    of target i; None for many picks on a CPU.
    """

    weights: Any
    place: Any
    first: Any
    second: Any
    indicator: Any
    lost: FloatArray

    @classmethod
    def of(cls, S: Any, picks: Sequence[int], weights: Any) -> _Nearest:
        return cls._from(weights, len(picks), *_two_nearest(rows_of(S.T, np.asarray(picks, np.intp))))

    @classmethod
    def _from(cls, weights: Any, count: int, place: Any, first: Any, second: Any) -> _Nearest:
        indicator = None
        # Exchanges of few picks are evaluated by matrix products over all targets; those of more, over the few that they change.
        if is_on_device(weights) or count <= 32:
            indicator = with_entries(asarray_like(weights, np.zeros((weights.shape[0], count))), place, weights)
        if is_on_device(weights):
            lost = on_host((first - second) @ indicator)
        else:
            lost = np.bincount(place, weights=weights * (first - second), minlength=count)
        return cls(weights, place, first, second, indicator, np.asarray(lost, np.float64))

    def after_exchange(self, S: Any, picks: list[int], place: int, candidate: int) -> _Nearest:
        """What is nearest once a candidate has taken the place of a pick, in the list as well."""
        old, picks[place] = picks[place], candidate
        if is_on_device(S):  # it has no use for fewer numbers
            return self.of(S, picks, self.weights)
        new, again = S[:, candidate], np.flatnonzero((S[:, old] >= self.second) & (S[:, old] > 0))
        wins = (new > self.first) | ((new == self.first) & (place < self.place))
        places, first = np.where(wins, place, self.place), np.where(wins, new, self.first)
        second = np.where(wins, self.first, np.maximum(new, self.second))
        if len(again):
            places[again], first[again], second[again] = _two_nearest(S[np.ix_(again, np.array(picks))].T)
        return self._from(self.weights, len(picks), places, first, second)

    def exchange_gains(self, C: Any) -> FloatArray:
        """Gain of putting candidate c in the place of pick m, candidates × picks, all at once:

        Σ_i ω_i (s_ci − s¹_i)₊ − Σ_{i nearest to m} ω_i (s¹_i − s²_i) + Σ_{i nearest to m} ω_i (clip(s_ci, s²_i, s¹_i) − s²_i).
        """
        gains, xp = np.empty((C.shape[0], len(self.lost))), namespace(C)

        def gain(rows: slice) -> None:
            if self.indicator is None:
                gains[rows] = self._gains_of_few(C[rows])
                return
            inside = xp.maximum(rows_of(C, rows), self.second)
            kept = xp.minimum(inside, self.first)
            inside -= kept  # (s_ci − s¹_i)₊
            kept -= self.second
            gains[rows] = on_host(kept @ self.indicator + (inside @ self.weights)[:, None])

        in_blocks(gain, C.shape[0], C.shape[1], CACHED_SIMILARITIES, least=32, on=C)
        return gains - self.lost

    def _gains_of_few(self, C: FloatArray) -> FloatArray:
        """The same from the targets with s_ci > s²_i alone: few of them, if there are many picks."""
        (count, n), k = C.shape, len(self.lost)
        where = np.flatnonzero(self.second < C)
        candidate, target = np.divmod(where, n)
        values, first, weights = C.ravel()[where], self.first[target], self.weights[target]
        kept = (np.minimum(values, first) - self.second[target]) * weights
        gained = np.bincount(candidate, np.maximum(values - first, 0.0) * weights, count)
        by_pick = np.bincount(candidate * k + self.place[target], kept, count * k).reshape(count, k)
        return np.asarray(by_pick + gained[:, None], np.float64)


def _two_nearest(chosen: Any) -> tuple[Any, Any, Any]:
    """For every target the place of the nearest pick, and the two largest similarities; ``chosen`` is picks × targets."""
    xp, on_device = namespace(chosen), is_on_device(chosen)

    def compare(targets: slice) -> tuple[Any, Any, Any]:
        T = chosen[:, targets].T if on_device else np.array(chosen[:, targets].T, order="C")
        place, first = xp.argmax(T, axis=1), xp.max(T, axis=1)
        return place, first, xp.max(with_entries(T, place, 0.0), axis=1)

    parts = zip(*in_blocks(compare, chosen.shape[1], chosen.shape[0], CACHED_SIMILARITIES, on=chosen.T), strict=True)
    place, first, second = (xp.concat(part) if len(part) > 1 else part[0] for part in parts)
    return place, first, second
