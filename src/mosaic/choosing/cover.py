"""The cover that a set of picks optimises, and the search for it: greedy picks, then exchanges.

Picks are taken from *candidates* for *targets*, points with weights ω, to maximise Σ_i ω_i max_{j∈S} s_ij: facility location,
with the similarity of ``Cover``. The gains of greedy picks decrease, so any prefix of a ranking is a good answer to a smaller k.

The search is one (``Location``), on all similarities (``FacilityLocation``), or on those to near candidates (``NearLocation``):
with k picks among 4 k candidates, the pick of a target is one of its nearest. A floor f_i, the similarity of a target to about
its 64th nearest candidate, changes no choice then: Σ_i ω_i max_j s_ij = Σ_i ω_i f_i + Σ_i ω_i max_j (s_ij − f_i)₊ as soon as
every target has a pick above its floor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, row_blocks, subsample
from mosaic.arrays.xp import (
    Matrix,
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
#: Exchanges end after so many sweeps over the candidates; a handful is usual.
MOST_SWEEPS = 20
#: The floor of a target is its similarity to the candidate at this rank among a part of the candidates, half as many as picks.
#: Above it are about as many of all candidates as there are for twice this number of picks.
FLOOR_RANK = 8


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
    def free(cls, n: int, k: int) -> Slots:
        return cls(np.zeros(n, np.intp), np.array([k]), np.arange(n))

    def among(self, candidates: Sequence[int], forced: Sequence[int] = ()) -> Slots:
        """The same places for these candidates only."""
        of = np.full(len(self.of), len(self.room))
        of[candidates] = self.of[candidates]
        return Slots(of, np.append(self.room, 0), self.twins, forced)

    def renumbered(self, candidates: IntArray) -> Slots:
        """The same places for these candidates only, which are then numbered from 0."""
        forced = np.flatnonzero(np.isin(candidates, np.asarray(self.forced, np.intp)))
        return Slots(self.of[candidates], self.room, self.twins[candidates], forced.tolist())

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


class Exchanges:
    """Picks that are exchanged for other candidates within the slots: in the slot of the pick, or for a pick that may not be
    chosen itself. Forced picks stay, and candidates that are picks, or equal to some, are not taken again.
    """

    def __init__(self, slots: Slots, picks: Sequence[int]):
        self.slots = slots
        self.picks = np.array(picks, np.intp)
        self.is_taken = np.zeros(int(slots.twins.max(initial=0)) + 1, dtype=bool)
        self.is_taken[slots.twins[self.picks]] = True
        stays = np.isin(self.picks, np.asarray(slots.forced, np.intp))
        of = slots.of[self.picks]
        every = np.arange(len(slots.room))[:, None]
        # By the slot of the candidate that would come.
        self.may_leave = ((every == of) | (slots.room[of] == 0)) & ~stays

    def may_be(self, candidates: slice) -> BoolArray:
        """Whether each of these candidates may take the place of each pick, candidates × picks."""
        slot = self.slots.of[candidates]
        is_new = ~self.is_taken[self.slots.twins[candidates]] & (self.slots.room[slot] > 0)
        return np.asarray(self.may_leave[slot] & is_new[:, None])

    def make(self, place: int, candidate: int) -> int:
        """Put a candidate in the place of a pick, which is returned."""
        old = int(self.picks[place])
        self.picks[place] = candidate
        self.is_taken[self.slots.twins[old]] = False
        self.is_taken[self.slots.twins[candidate]] = True
        self.may_leave[:, place] = np.arange(len(self.slots.room)) == self.slots.of[candidate]
        return old


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
        """The cover of weighted points by k picks. One pick has the reach of two: its own is ∞, where all rows are alike."""
        some = subsample(len(points), max(1024, round(TARGETS_FOR_A_PICK * k)), 0)
        others = points[some]
        share = weights[some]
        centres = subsample(len(others), int(np.clip(REACH_DISTANCES // len(others), 32, 128)), 1)
        D = kernel.distances(others[centres], others)
        if kernel.order == 2:
            D = np.sqrt(D, out=D)
        if not D.any():
            return cls(kernel, 1.0)
        D[np.arange(len(D)), centres] = np.inf  # not the row itself, else many picks have no reach
        rate = decay_rate(D.T, share / share.sum(), 0.5, 1.0 / max(k, 2.0))
        # ∞: each row resembles copies alone.
        return cls(kernel, 1.0 / rate if rate < np.inf else float(D[D > 0].min()) / 30.0)

    def between(self, rows: IntArray, columns: IntArray) -> Any:
        """s_ij, rows × columns, where the points are. Columns are contiguous."""
        kernel = self.kernel
        is_exact = len(rows) * len(columns) <= MOST_IN_DOUBLE
        dtype = np.float64 if is_exact else np.float32
        one = kernel.device_distances(rows[:1], columns[:1])
        S = empty_on_device_of(one, (len(columns), len(rows)), dtype)
        if is_exact:
            distances = self._distances_in_double(rows)
        else:
            distances = kernel.in_single(rows, self.reach)

        def fill(part: slice) -> None:
            S[part, ...] = self.similarities(distances(columns[part]))

        in_blocks(fill, len(columns), len(rows), CACHED_SIMILARITIES, on=kernel.X)
        return S.T

    def _distances_in_double(self, rows: IntArray) -> Callable[[IntArray], Any]:
        """As ``Kernel.in_single``, in double precision."""
        return lambda columns: (
            self.kernel.device_distances(columns, rows) * self.reach**-self.kernel.order
        )

    def similarities(self, D: Matrix) -> Any:
        """exp(−d / h) from (d / h)^order, which may be overwritten."""
        if self.kernel.order == 2:
            D = D**0.5 if is_on_device(D) else np.sqrt(D, out=D)
        return exponential(-D if is_on_device(D) else np.negative(D, out=D))


def quantised(values: FloatArray, scale: float) -> FloatArray:
    """Values in whole multiples of 1e-10 · scale: those that differ by rounding only become equal, and the first of them wins."""
    return np.round(values / (1e-10 * scale or 1.0))


class Exchange(NamedTuple):
    """The place of a pick, the candidate that may take it, and what that adds to the objective."""

    place: int
    candidate: int
    gain: float


class Nearest(NamedTuple):
    """For every target the place of its nearest pick, its similarity to that pick, s¹, and to the second nearest, s² (0 if none).
    ``lost`` are the sums of ω (s¹ − s²) over the targets of each pick. ``indicator`` has ω_i in row i, in the column of the pick
    of target i, where exchanges are evaluated by matrix products.
    """

    place: Any
    first: Any
    second: Any
    lost: FloatArray
    indicator: Any = None


class Location(ABC):
    """Σ_i ω_i max_{j∈S} s_ij, ω the ``weights``, and the search for a set S."""

    weights: FloatArray
    #: Candidates whose exchanges are compared with one another.
    block: ClassVar[int] = 1

    @property
    def at_once(self) -> int:
        """Number of gains that are computed at once."""
        return 1

    @property
    def rounding(self) -> float:
        """Gains that differ by less than this part of the sum are equal."""
        return 1e-6

    @property
    @abstractmethod
    def n_candidates(self) -> int: ...

    @abstractmethod
    def nothing(self) -> Any:
        """What no pick covers of each target."""

    @abstractmethod
    def with_pick(self, best: Any, candidate: int) -> Any:
        """What is covered of each target with one more candidate, ``best`` without it."""

    @abstractmethod
    def alone(self) -> FloatArray:
        """What each candidate covers alone."""

    @abstractmethod
    def gains(self, candidates: Sequence[int], best: Any) -> FloatArray:
        """Σ_i ω_i (s_ic − best_i)₊ of some candidates c."""

    @abstractmethod
    def nearest(self, picks: IntArray) -> Nearest: ...

    @abstractmethod
    def after_exchange(self, nearest: Nearest, picks: IntArray, place: int, old: int) -> Nearest:
        """What is nearest once the pick at a place has taken that of an old one."""

    @abstractmethod
    def exchange_gains(self, nearest: Nearest, candidates: slice) -> FloatArray:
        """Gain of putting candidate c in the place of pick m, candidates × picks, all at once:

        Σ_i ω_i (s_ci − s¹_i)₊ − Σ_{i nearest to m} ω_i (s¹_i − s²_i) + Σ_{i nearest to m} ω_i (clip(s_ci, s²_i, s¹_i) − s²_i).
        """

    def ranked(self, slots: Slots, most: int | None = None) -> tuple[list[int], list[float]]:
        """Candidates, each adding most to Σ_i ω_i max_{j chosen} s_ij, and their gains, until the slots are full.

        A gain never grows, so only those whose last known gain is the largest are computed again; of equal ones the first wins.
        """
        grain = 0.1 * self.rounding * float(self.weights.sum()) or 1.0
        gains = self.alone()
        best = self.nothing()
        room = slots.room.copy()
        chosen: list[int] = []
        taken: set[int] = set()

        def choose(candidate: int) -> None:
            nonlocal best
            best = self.with_pick(best, candidate)
            room[slots.of[candidate]] -= 1
            taken.add(twins[candidate])
            chosen.append(candidate)

        of = slots.of.tolist()
        twins = slots.twins.tolist()
        for candidate in slots.forced[:most]:
            gains[candidate] = self.gains([candidate], best)[0]
            choose(candidate)
        known_at = [0] * len(gains)  # the number of picks when a gain was computed
        queue = [
            (-step, candidate) for candidate, step in enumerate(np.rint(gains / grain).tolist())
        ]
        heapify(queue)
        at_once = self.at_once
        while queue and len(chosen) != most:
            asked: list[int] = []
            while queue and len(asked) < at_once:
                candidate = queue[0][1]
                may_be_chosen = room[of[candidate]] > 0 and twins[candidate] not in taken
                if may_be_chosen and known_at[candidate] == len(chosen):
                    break
                heappop(queue)
                if may_be_chosen:
                    asked.append(candidate)
            if asked:
                gains[asked] = self.gains(asked, best)
                for candidate, step in zip(
                    asked, np.rint(gains[asked] / grain).tolist(), strict=True
                ):
                    known_at[candidate] = len(chosen)
                    heappush(queue, (-step, candidate))
            elif queue:
                choose(heappop(queue)[1])
        return chosen, gains[chosen].tolist()

    def exchanged(
        self, chosen: Sequence[int], slots: Slots, worth: FloatArray | None = None
    ) -> list[int]:
        """Exchange picks for other candidates while that raises Σ_i ω_i max_{j chosen} s_ij + Σ_{j chosen} worth_j by 1e-9 of it
        (1e-6 in single precision): the best of a block of candidates, of equally good ones the first (FastPAM's decomposition).
        """
        exchanges = Exchanges(slots, chosen)
        picks = exchanges.picks
        if not len(picks):
            return []
        nearest = self.nearest(picks)
        start = float(asarray_like(nearest.first, self.weights) @ nearest.first)
        blocks = row_blocks(self.n_candidates, 1, self.block, least=1)
        unchanged = 0
        for block in blocks * MOST_SWEEPS:
            if unchanged == len(blocks):
                break
            unchanged += 1
            may = exchanges.may_be(block)
            if not may.any():
                continue
            gains = self.exchange_gains(nearest, block)
            if worth is not None:
                gains += worth[block, None] - worth[picks]
            gains[~may] = -np.inf
            if gains.max() <= self.rounding * start:
                continue
            candidate, place = np.unravel_index(
                int(quantised(gains, 10.0 * start).argmax()), gains.shape
            )
            old = exchanges.make(int(place), block.start + int(candidate))
            nearest = self.after_exchange(nearest, picks, int(place), old)
            unchanged = 0
        return [int(pick) for pick in picks]

    def best_exchanges(self, picks: Sequence[int], slots: Slots, number: int) -> list[Exchange]:
        """The exchanges that add most, best first, each of another pick for another candidate; none that adds nothing. For each
        pick, only its best candidates can be among them, as many as are asked for.
        """
        exchanges = Exchanges(slots, picks)
        nearest = self.nearest(exchanges.picks)
        places = np.arange(len(picks))
        candidates: list[IntArray] = []
        values: list[FloatArray] = []
        for block in row_blocks(self.n_candidates, 1, self.block, least=1):
            gains = self.exchange_gains(nearest, block)
            gains[~exchanges.may_be(block)] = -np.inf
            for _ in range(number):
                best = gains.argmax(axis=0)
                candidates.append(block.start + best)
                values.append(gains[best, places])
                gains[best, places] = -np.inf
        found: list[Exchange] = []
        for at in np.argsort(-np.array(values), axis=None, kind="stable"):
            turn, place = divmod(int(at), len(picks))
            each = Exchange(place, int(candidates[turn][place]), float(values[turn][place]))
            if len(found) == number or not each.gain > 0:
                break
            if all(
                each.place != other.place and each.candidate != other.candidate for other in found
            ):
                found.append(each)
        return found


@dataclass(frozen=True)
class FacilityLocation(Location):
    """All similarities S of targets to candidates, on any device."""

    S: Matrix
    weights: FloatArray
    block: ClassVar[int] = 256

    @property
    def at_once(self) -> int:
        return 1024 if is_on_device(self.S) else 16

    @property
    def rounding(self) -> float:
        return 1e-9 if numpy_dtype(self.S) == np.float64 else 1e-6

    @property
    def n_candidates(self) -> int:
        return int(self.S.shape[1])

    def nothing(self) -> Any:
        return asarray_like(self.S, np.zeros(self.S.shape[0]))

    def with_pick(self, best: Any, candidate: int) -> Any:
        return namespace(self.S).maximum(best, self.S[:, candidate])

    def alone(self) -> FloatArray:
        return on_host(self.S.T @ asarray_like(self.S, self.weights)).astype(np.float64)

    def gains(self, candidates: Sequence[int], best: Any) -> FloatArray:
        more = at_least_zero(rows_of(self.S.T, np.array(candidates)) - best)
        return on_host(more @ asarray_like(self.S, self.weights))

    def nearest(self, picks: IntArray) -> Nearest:
        return self._nearest(len(picks), *_two_nearest(rows_of(self.S.T, picks)))

    def _nearest(self, count: int, place: Any, first: Any, second: Any) -> Nearest:
        weights = asarray_like(self.S, self.weights)
        indicator = None
        # Exchanges of few picks are evaluated by matrix products over all targets; those of more, over the few that they change.
        if is_on_device(weights) or count <= 32:
            indicator = with_entries(
                asarray_like(weights, np.zeros((weights.shape[0], count))), place, weights
            )
        if is_on_device(weights):
            lost = on_host((first - second) @ indicator)
        else:
            lost = np.bincount(place, weights=weights * (first - second), minlength=count)
        return Nearest(place, first, second, np.asarray(lost, np.float64), indicator)

    def after_exchange(self, nearest: Nearest, picks: IntArray, place: int, old: int) -> Nearest:
        S = self.S
        if is_on_device(S):  # it has no use for fewer numbers
            return self.nearest(picks)
        new = S[:, picks[place]]
        again = np.flatnonzero((S[:, old] >= nearest.second) & (S[:, old] > 0))
        wins = (new > nearest.first) | ((new == nearest.first) & (place < nearest.place))
        places = np.where(wins, place, nearest.place)
        first = np.where(wins, new, nearest.first)
        second = np.where(wins, nearest.first, np.maximum(new, nearest.second))
        if len(again):
            places[again], first[again], second[again] = _two_nearest(S[np.ix_(again, picks)].T)
        return self._nearest(len(picks), places, first, second)

    def exchange_gains(self, nearest: Nearest, candidates: slice) -> FloatArray:
        C = rows_of(self.S.T, candidates)
        xp = namespace(self.S)
        gains = np.empty((C.shape[0], len(nearest.lost)))
        weights = asarray_like(C, self.weights)

        def gain(rows: slice) -> None:
            if nearest.indicator is None:
                gains[rows] = self._gains_of_few(nearest, C[rows])
                return
            inside = xp.maximum(rows_of(C, rows), nearest.second)
            kept = xp.minimum(inside, nearest.first)
            inside -= kept  # (s_ci − s¹_i)₊
            kept -= nearest.second
            gains[rows] = on_host(kept @ nearest.indicator + (inside @ weights)[:, None])

        in_blocks(gain, C.shape[0], C.shape[1], CACHED_SIMILARITIES, least=32, on=C)
        return gains - nearest.lost

    def _gains_of_few(self, nearest: Nearest, C: FloatArray) -> FloatArray:
        """The same, but for what is lost, from the targets with s_ci > s²_i alone: few of them, if there are many picks."""
        (count, n) = C.shape
        k = len(nearest.lost)
        where = np.flatnonzero(nearest.second < C)
        candidate, target = np.divmod(where, n)
        values = C.ravel()[where]
        first = nearest.first[target]
        weights = self.weights[target]
        kept = (np.minimum(values, first) - nearest.second[target]) * weights
        gained = np.bincount(candidate, np.maximum(values - first, 0.0) * weights, count)
        by_pick = np.bincount(candidate * k + nearest.place[target], kept, count * k).reshape(
            count, k
        )
        return np.asarray(by_pick + gained[:, None], np.float64)


def _two_nearest(chosen: Matrix) -> tuple[Any, Any, Any]:
    """For every target the place of the nearest pick, and the two largest similarities; ``chosen`` is picks × targets."""
    xp = namespace(chosen)
    on_device = is_on_device(chosen)

    def compare(targets: slice) -> tuple[Any, Any, Any]:
        T = chosen[:, targets].T if on_device else np.array(chosen[:, targets].T, order="C")
        place = xp.argmax(T, axis=1)
        first = xp.max(T, axis=1)
        return place, first, xp.max(with_entries(T, place, 0.0), axis=1)

    parts = zip(
        *in_blocks(compare, chosen.shape[1], chosen.shape[0], CACHED_SIMILARITIES, on=chosen.T),
        strict=True,
    )
    place, first, second = (xp.concat(part) if len(part) > 1 else part[0] for part in parts)
    return place, first, second


@dataclass(frozen=True)
class NearLocation(Location):
    """Similarities above the floors of the targets, s_ij − f_i. Those of candidate c, at ``starts[c]`` to ``starts[c + 1]``, are
    the ``values`` of the ``targets`` near to it. For each target, ``near`` has its candidates, and ``near_values`` the values,
    padded with one more candidate and 0.
    """

    weights: FloatArray
    starts: IntArray
    targets: IntArray
    values: FloatArray
    near: IntArray
    near_values: FloatArray

    @classmethod
    def of(
        cls, cover: Cover, targets: IntArray, candidates: IntArray, weights: FloatArray, k: int
    ) -> NearLocation:
        distances = cover.kernel.in_single(candidates, cover.reach)
        every = max(min(2 * len(candidates) // k, len(candidates) // FLOOR_RANK), 1)
        rank = min(FLOOR_RANK, len(candidates)) - 1

        def find(part: slice) -> tuple[IntArray, IntArray, FloatArray]:
            D = np.asarray(on_host(distances(targets[part])))
            floor = np.partition(D[:, ::every], rank, axis=1)[:, rank, None]
            target, candidate = np.nonzero(floor > D)
            values = cover.similarities(D[target, candidate]) - cover.similarities(floor[target, 0])
            return (
                (target + part.start).astype(np.int32),
                candidate.astype(np.int32),
                values.astype(np.float32),
            )

        parts = in_blocks(
            find, len(targets), len(candidates), CACHED_SIMILARITIES, on=cover.kernel.X
        )
        target, candidate, values = (np.concatenate(found) for found in zip(*parts, strict=True))
        n = len(candidates)
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

    @property
    def n_candidates(self) -> int:
        return len(self.starts) - 1

    def entries(self, candidate: int) -> tuple[IntArray, FloatArray]:
        here = slice(self.starts[candidate], self.starts[candidate + 1])
        return self.targets[here], self.values[here]

    def nothing(self) -> FloatArray:
        return np.zeros(len(self.weights))

    def with_pick(self, best: FloatArray, candidate: int) -> FloatArray:
        targets, values = self.entries(candidate)
        best[targets] = np.maximum(best[targets], values)
        return best

    def alone(self) -> FloatArray:
        owner = np.repeat(np.arange(self.n_candidates), np.diff(self.starts))
        covered = self.weights[self.targets] * self.values
        return np.bincount(owner, covered, self.n_candidates).astype(np.float64)

    def gains(self, candidates: Sequence[int], best: FloatArray) -> FloatArray:
        found = []
        for candidate in candidates:
            targets, values = self.entries(candidate)
            found.append(self.weights[targets] @ np.maximum(values - best[targets], 0.0))
        return np.array(found)

    def _two_nearest(
        self, targets: Any, picks: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """As ``_two_nearest`` for these targets; place 0 where no pick is near."""
        place_of = np.full(self.n_candidates + 1, -1)
        place_of[picks] = np.arange(len(picks))
        places = place_of[self.near[targets]]
        values = np.where(places >= 0, self.near_values[targets], 0.0)
        rows = np.arange(len(values))
        at = values.argmax(axis=1)
        first = values[rows, at]
        values[rows, at] = 0.0
        return places[rows, at].clip(0), first, values.max(axis=1)

    def _lost(self, nearest: Sequence[Any], targets: Any, k: int) -> FloatArray:
        place, first, second = (values[targets] for values in nearest[:3])
        return np.asarray(
            np.bincount(place, self.weights[targets] * (first - second), k), np.float64
        )

    def nearest(self, picks: IntArray) -> Nearest:
        found = self._two_nearest(slice(None), picks)
        return Nearest(*found, self._lost(found, slice(None), len(picks)))

    def after_exchange(self, nearest: Nearest, picks: IntArray, place: int, old: int) -> Nearest:
        changed = np.union1d(self.entries(old)[0], self.entries(int(picks[place]))[0])
        before = self._lost(nearest, changed, len(picks))
        for values, new in zip(nearest, self._two_nearest(changed, picks), strict=False):
            values[changed] = new
        nearest.lost[:] += self._lost(nearest, changed, len(picks)) - before
        return nearest

    def exchange_gains(self, nearest: Nearest, candidates: slice) -> FloatArray:
        targets, values = self.entries(candidates.start)
        first = nearest.first[targets]
        second = nearest.second[targets]
        weights = self.weights[targets]
        inside = np.maximum(values, second)
        kept = np.minimum(inside, first)
        by_pick = np.bincount(nearest.place[targets], weights * (kept - second), len(nearest.lost))
        return np.asarray(by_pick - nearest.lost + weights @ (inside - kept))[None]
