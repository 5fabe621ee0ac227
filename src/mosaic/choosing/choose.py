"""Choosing: find the outliers and the candidates, then choose the representatives. It can be repeated with other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mosaic.arrays.blocks import (
    BoolArray,
    FloatArray,
    IntArray,
    lowest_first,
    rescale_weights,
    subsample,
)
from mosaic.arrays.xp import on_host
from mosaic.choosing.budget import CANDIDATES_FOR_A_PICK, MOST_SIMILARITIES, TARGETS_FOR_A_PICK
from mosaic.choosing.certificate import counted, percent
from mosaic.choosing.cover import Cover, FacilityLocation, Location, NearLocation, Slots, quantised
from mosaic.choosing.improve import with_moved_picks
from mosaic.choosing.number import FEWEST_FOR_CLUSTERS, number_of_clusters
from mosaic.choosing.outliers import (
    NO_OUTLIERS,
    Cut,
    cut_for_share,
    find_groups,
    find_outliers,
    just_above,
)
from mosaic.choosing.points import FitData
from mosaic.choosing.selection import Selection
from mosaic.choosing.settings import Constraints, Settings, is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.text import at_least, listed

#: Largest number of representatives that is suggested.
MOST_AUTOMATIC = 100
#: Number of points to be covered, unless k picks need more.
USUAL_TARGETS = 10_000
#: An earlier pick is exchanged where that adds more than this part of what a pick adds on average (``docs/guides/more_rows``).
CLEARLY_BETTER = 0.1


def choose(data: FitData, settings: Settings) -> Selection:
    judged = flag_only(data, settings)
    if settings.mode == "paper":
        return _choose_like_the_paper(judged)
    constraints = data.constraints
    k = settings.number(data.n_rows)
    if k is not None and k > data.n_rows:
        fault = f"is more than there are points (n_samples = {data.n_rows})"
        raise InvalidInputError(fault, "Ask for fewer.", parameter="n_representatives", value=k)
    if k is None:
        k = constraints.fixed_total
    if settings.coverage is not None:
        if k is not None:
            fault = f"`coverage={settings.coverage:g}` and quotas that add up to {k:,} each say how many to choose"
            raise InvalidInputError(fault, "Give one of them.")
        return _as_many_as_needed(judged, settings.coverage)
    why = ""
    if k is None:
        k, why = Chooser(judged, MOST_AUTOMATIC).suggested()
        if len(constraints.must) > k:
            k = len(constraints.must)
            why = "those that must be included"
    chooser = Chooser(judged, k)
    picks = chooser.picks()
    return replace(chooser.improved(picks), changes=chooser.changes(picks), why_so_many=why)


def flag_only(data: FitData, settings: Settings) -> Selection:
    """The cut, and the groups of outliers that are kept; no representatives are chosen."""
    if settings.outliers == "keep":
        return Selection(data, settings, NO_OUTLIERS)
    points = data.points
    if settings.mode == "paper":
        n = points.total
        # No paper states a threshold for OP; ours rejects points that stand for themselves only.
        count = 2.0 if settings.op_threshold is None else n - settings.op_threshold * (n - 1.0)
        return Selection(data, settings, Cut(count, "threshold"))
    counts = data.counts
    groups = None
    if is_auto(settings.contamination):
        cut, groups = find_outliers(counts, data.kernel, data.seed, mixed=data.geometry.mixed)
    else:
        cut = cut_for_share(counts, points.weights, float(settings.contamination))
    if settings.min_group is not None:
        low = Selection(data, settings, cut).is_outlier
        groups = find_groups(data.kernel, low, points.weights, settings.min_group)
    return Selection(data, settings, cut, groups)


class Ranking(NamedTuple):
    """Rows in memory by rank, their points, and mean similarity and coverage of the first k for every k."""

    members: IntArray
    points: IntArray
    similarity: FloatArray
    coverage: FloatArray


def rank(selection: Selection, limit: int, *, go_on: bool = False) -> Ranking:
    """Up to ``limit`` rows by gain; with ``go_on``, first those of the selection, then others."""
    k = len(selection.rows) or limit
    data = selection.data
    if go_on:
        constraints = replace(data.constraints, must=selection.members)
        selection = replace(selection, data=replace(data, constraints=constraints))
    chooser = Chooser(selection, k)
    rows, gains = chooser.ranked(min(limit, len(chooser.pool)))
    points = data.points.point_of[rows]
    return Ranking(rows, points, np.cumsum(gains), selection.measure.along(points))


def coverage_bounds(selection: Selection, rows: IntArray) -> FloatArray | None:
    """The coverage that no 1, 2, 3, … rows exceed that may be chosen, as far as rows are ranked; None for many."""
    point_of = selection.data.points.point_of
    pool = Chooser(selection, max(len(rows), 1)).pool
    k = min(len(selection.members), len(rows))
    return selection.measure.bounds(point_of[np.append(pool, rows)], point_of[rows], k)


def suggested_number(selection: Selection) -> int:
    return Chooser(selection, MOST_AUTOMATIC).suggested()[0]


def _as_many_as_needed(judged: Selection, share: float) -> Selection:
    """The selection of as few picks as reach this coverage: the first of a ranking, by the cover of 2, 4, 8, … picks until one
    reaches it. Within quotas so many are chosen, and then more until they reach it, too.
    """
    constraints = judged.data.constraints
    point_of = judged.data.points.point_of
    k = 2
    while True:
        chooser = Chooser(judged, k)
        rows, gains = chooser.ranked(k, earlier_first=True)
        coverage = judged.measure.along(point_of[rows])
        reached = float(coverage[-1]) if len(rows) else 0.0
        if reached >= share and len(rows) >= len(constraints.must):
            break
        if k >= len(chooser.pool):
            fault = f"cannot be reached: all {counted(len(rows), 'row')} that may be chosen reach {at_least(reached)}"
            raise InvalidInputError(
                fault, "Ask for less, or allow more rows.", parameter="coverage", value=share
            )
        k *= 2
    k = max(int(np.argmax(coverage >= share)) + 1, len(constraints.must), 1)
    picks = Picks(rows[:k], gains[:k])
    while constraints.quotas is not None:
        chooser = Chooser(judged, k)
        picks = chooser.picks()
        coverage = judged.measure.along(point_of[picks.rows])
        if coverage[-1] >= share:
            break
        k += max(k // 20, 1)
    half = int(np.argmax(coverage >= share / 2)) + 1
    why = f"as many as a coverage of {100 * share:g} % needs (half of that needs {half:,})"
    changes = chooser.changes(picks)
    return replace(judged, members=picks.rows, gains=picks.gains, changes=changes, why_so_many=why)


class Picks(NamedTuple):
    """Rows, their gains, and pairs of an earlier pick and the row that took its place."""

    rows: IntArray
    gains: FloatArray
    replaced: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Chooser:
    """Chooses k rows within the constraints, to represent the points that belong; outliers are those of the selection."""

    selection: Selection
    k: int

    @property
    def data(self) -> FitData:
        return self.selection.data

    @property
    def constraints(self) -> Constraints:
        return self.data.constraints

    @cached_property
    def rejected(self) -> BoolArray:
        if self.selection.settings.outliers == "reject":
            return self.selection.is_outlier
        return np.zeros(self.data.points.n, dtype=bool)

    @cached_property
    def pool(self) -> IntArray:
        """Rows that may be chosen, by point, one of each group: one that must be, else an earlier pick, else the first copy."""
        constraints = self.constraints
        must = constraints.must
        point_of = self.data.points.point_of
        self._refuse_equal(must)
        start = constraints.start
        rows = np.flatnonzero(constraints.allowed & (point_of >= 0))
        rows = np.setdiff1d(rows[~self.rejected[point_of[rows]]], must)
        by_right = [must, start[np.isin(start, rows)], np.setdiff1d(rows, start)]
        rows = np.concatenate(by_right)
        kinds = point_of[rows] * len(constraints.names) + constraints.group[rows]
        first_of_kind = np.unique(kinds, return_index=True)[1]
        return self.by_point(rows[first_of_kind])

    def _refuse_equal(self, must: IntArray) -> None:
        points = self.data.points.point_of[must]
        numbers, copies = np.unique(points, return_counts=True)
        if (copies > 1).any():
            equal = must[points == numbers[np.argmax(copies > 1)]]
            first, second = self.data.rows_in_data(equal)[:2].tolist()
            fault = f"names `row {first}` and `row {second}`, which are equal"
            raise InvalidInputError(fault, "Name one of them.", parameter="must_include")

    def by_point(self, rows: IntArray) -> IntArray:
        """These rows in the order of their points, equal ones in that of their numbers."""
        return rows[np.lexsort((rows, self.data.points.point_of[rows]))]

    @cached_property
    def targets(self) -> IntArray:
        """Points that are not rejected; of many, a sample that is large enough for k picks."""
        most = max(USUAL_TARGETS, round(TARGETS_FOR_A_PICK * self.k))
        return self.data.points.sample(np.flatnonzero(~self.rejected), most)

    @cached_property
    def weights(self) -> FloatArray:
        everyone = self.data.points.weights
        weights: FloatArray = everyone[self.targets]
        if len(self.targets) < np.count_nonzero(~self.rejected):
            weights = rescale_weights(weights, len(weights), float(everyone[~self.rejected].sum()))
        return weights

    @cached_property
    def cover(self) -> Cover:
        return Cover.of(self.selection.kernel, self.targets, self.weights, self.k)

    def objective(self, points: IntArray) -> Location:
        """The cover of the targets by these points."""
        if len(self.targets) * len(points) > MOST_SIMILARITIES:
            return NearLocation.of(self.cover, self.targets, points, self.weights, self.k)
        return FacilityLocation(self.cover.between(self.targets, points), self.weights)

    def slots(self, candidates: IntArray) -> Slots:
        """The places of k picks among these rows, within the quotas."""
        points = self.data.points
        constraints = self.constraints
        pool = self.pool
        sizes = np.bincount(
            constraints.group[pool], points.weights[points.point_of[pool]], len(constraints.names)
        )
        return constraints.slots(
            self.k, candidates, points.point_of[candidates], np.asarray(sizes, np.float64)
        )

    def picks(self) -> Picks:
        """K rows and their gains, by the objective with exchanges, within the quotas; earlier picks are taken first."""
        candidates = self.candidates(self.k)
        slots = self.slots(candidates)
        rejected = self.data.points.spread(self.rejected, False)
        self.constraints.check_room(slots, candidates, rejected)
        objective = self.objective(slots.twins)
        n_forced = len(slots.forced)
        replaced = []
        while True:
            old = self._earlier(objective, slots, candidates)
            chosen, gains = objective.ranked(replace(slots, forced=[*slots.forced, *old]))
            wanted = slots.room.sum()
            if len(chosen) < wanted:  # groups compete for equal rows
                fault = f"{wanted} representatives are asked for, and {len(chosen)} found: of equal rows only one is chosen"
                raise InvalidInputError(fault, "Ask for fewer.")
            # If the number is read off the curve, the picks stay those of the curve.
            if self.selection.settings.coverage is None:
                worth = np.zeros(len(candidates))
                worth[old] = CLEARLY_BETTER * sum(gains) / len(gains)
                exchanged = objective.exchanged(chosen, slots, worth if old else None)
                replaced = [
                    (int(candidates[before]), int(candidates[after]))
                    for before, after in zip(chosen, exchanged, strict=True)
                    if before in old and before not in exchanged
                ]
                chosen, gains = in_order(objective, exchanged, n_forced)
            lacking = self._for_groups(slots, chosen)
            if not lacking:
                break
            slots = replace(slots, forced=[*slots.forced, *lacking])
        return Picks(candidates[chosen], np.array(gains) / self.weights.sum(), tuple(replaced))

    def improved(self, picks: Picks) -> Selection:
        """The selection with these picks, moved to the middle of their rows in the larger sample if there is one."""
        must = self.constraints.must
        selection = replace(self.selection, members=picks.rows, gains=picks.gains)
        if self.data.larger is None:
            return selection
        stays = np.isin(picks.rows, np.append(must, self.constraints.start))
        moved = with_moved_picks(selection, self.cover, stays)
        if moved is selection:
            return selection
        chooser = Chooser(moved, self.k)
        everyone = list(range(len(picks.rows)))
        order, gains = in_order(chooser.objective(moved.chosen), everyone, len(must))
        return replace(
            moved, members=moved.members[order], gains=np.array(gains) / chooser.weights.sum()
        )

    def ranked(self, most: int, *, earlier_first: bool = False) -> tuple[IntArray, FloatArray]:
        """Up to this many rows by the objective and their gains, without quotas."""
        candidates = self.candidates(most)
        twins = self.data.points.point_of[candidates]
        slots = self.constraints.slots(len(candidates), candidates, twins)
        objective = self.objective(twins)
        if earlier_first:
            earlier = self._earlier(objective, slots, candidates)
            slots = replace(slots, forced=[*slots.forced, *earlier])
        chosen, gains = objective.ranked(slots, most)
        return candidates[chosen], np.array(gains) / self.weights.sum()

    def suggested(self) -> tuple[int, str]:
        """How many picks to take, and why: all of few distinct rows, one row for each clear cluster, or √(n/2)."""
        n = float(self.weights.sum())
        pool = max(len(self.pool), 1)
        usual = int(np.clip(round((n / 2.0) ** 0.5), 1, MOST_AUTOMATIC))
        if usual >= pool:
            return pool, "one for each distinct row that may be chosen"
        thumb = "so √(n/2), a rule of thumb"
        sample = self.targets[subsample(len(self.targets), 1000, self.data.seed)]
        if len(sample) < FEWEST_FOR_CLUSTERS:
            why = f"fewer than {FEWEST_FOR_CLUSTERS} distinct rows show no clusters, {thumb}"
            return usual, why
        kernel = self.data.kernel
        squared = kernel.distances(sample, sample) ** (2.0 / kernel.order)
        number, between = number_of_clusters(squared, min(MOST_AUTOMATIC, pool))
        if number == 1:
            return usual, f"no clusters are clear, {thumb}"
        share = f"{percent(between)} of their rows are between two"
        return number, f"as many as there are clear clusters ({share})"

    def _earlier(self, objective: Location, slots: Slots, candidates: IntArray) -> list[int]:
        """Earlier picks that may be chosen again, as candidates, best first: as many as there are places for them."""
        start = self.constraints.start
        group = self.constraints.group
        kinds = slots.twins * len(self.constraints.names) + group[candidates]
        points = self.data.points.point_of[start]
        is_earlier = np.isin(kinds, points * len(self.constraints.names) + group[start])
        is_earlier[list(slots.forced)] = False
        old = np.flatnonzero(is_earlier).tolist()
        few = slots.among([*slots.forced, *old], slots.forced)
        return objective.ranked(few)[0][len(slots.forced) :] if old else []

    def _for_groups(self, slots: Slots, chosen: Sequence[int]) -> list[int]:
        """For each kept group that has no pick, and at least as many rows as a pick stands for, the candidate that represents it
        best, as far as there is room for more.
        """
        if self.selection.groups is None:
            return []
        groups = self.selection.groups.group
        sizes = np.bincount(groups.clip(0), self.data.points.weights)
        group_of = groups[slots.twins]
        lacking = []
        room = slots.room - np.bincount(slots.of[list(slots.forced)], minlength=len(slots.room))
        for number in range(1, len(sizes)):
            members = np.flatnonzero((group_of == number) & (room[slots.of] > 0))
            is_small = sizes[number] * len(chosen) < self.weights.sum()
            if is_small or not len(members) or number in group_of[chosen]:
                continue
            inside = np.flatnonzero(groups[self.targets] == number)
            similar = self.weights[inside] @ on_host(
                self.cover.between(self.targets[inside], slots.twins[members])
            )
            best = int(members[quantised(similar, float(sizes[number])).argmax()])
            lacking.append(best)
            room[slots.of[best]] -= 1
        return lacking

    def changes(self, picks: Picks) -> tuple[str, ...]:
        """What became of the picks of an earlier fit, if there was one, and what that does to the mean similarity to the nearest
        pick, in sentences.
        """
        start = self.constraints.start
        lost = self.constraints.lost
        if not len(start) and not lost:
            return ()
        point_of = self.data.points.point_of
        chosen = point_of[picks.rows]
        again = start[np.isin(point_of[start], chosen)]
        _, first = np.unique(point_of[again], return_index=True)
        kept = again[first]
        now = self._mean_similarity(chosen)
        said = [f"{len(kept):,} of {counted(len(start) + len(lost), 'earlier pick')} kept."]
        if picks.replaced:
            shown = []
            for old, new in picks.replaced:
                without = np.where(chosen == point_of[new], point_of[old], chosen)
                gain = now - self._mean_similarity(without)
                shown.append(f"{self._called(old)} → {self._called(new)} (+{gain:.2g})")
            said.append(f"Replaced, with what that adds to the mean similarity: {listed(shown)}.")
        dropped: dict[str, list[str]] = {}
        for row in start.tolist():
            if row not in kept and row not in dict(picks.replaced):
                why = self._why_dropped(row, chosen)
                dropped.setdefault(why, []).append(self._called(row))
        said += [f"Not kept, since {why}: {listed(rows)}." for why, rows in dropped.items()]
        if lost:
            said.append(f"Not among the rows any more: {listed(lost)}.")
        there = point_of[start[point_of[start] >= 0]]
        alone = f"with the earlier picks alone it is {self._mean_similarity(np.unique(there)):.4g}"
        return (*said, f"The mean similarity to the nearest pick is {now:.4g}; {alone}.")

    def _why_dropped(self, row: int, chosen: IntArray) -> str:
        """Why an earlier pick is none of the ``chosen`` points any more, or not itself."""
        point = self.data.points.point_of[row]
        if point < 0:
            return "their weight is 0"
        if point in chosen:
            return "they are equal to another pick"
        if not self.constraints.allowed[row]:
            return "they may not be chosen"
        if self.rejected[point]:
            return "they are outliers now"
        return "there is no place for them"

    def _called(self, row: int) -> str:
        return self.data.called(int(self.data.rows_in_data(np.array([row]))[0]))

    def _mean_similarity(self, points: IntArray) -> float:
        """Of the targets to the nearest of these points."""
        S = on_host(self.cover.between(self.targets, points))
        return float(self.weights @ S.max(axis=1, initial=0.0)) / float(self.weights.sum())

    def eligible(self, k: int) -> IntArray:
        """The rows of the pool. Just above a valley of the counts some rows are outliers, too: these rows are left out as long as
        there are k others.
        """
        cut = self.selection.cut
        groups = self.selection.groups
        pool = self.pool
        belongs = ~self.rejected
        if cut.rule != "valley" or self.constraints.quotas is not None or belongs.all():
            return pool
        counts = self.data.counts
        points = self.data.points.point_of[pool]
        is_sure = counts[points] >= just_above(cut.count, counts[belongs])
        is_sure |= np.isin(pool, self.constraints.must)
        if groups is not None:
            is_sure |= groups.members[points]
        return pool[is_sure] if is_sure.sum() >= k else pool

    def candidates(self, k: int) -> IntArray:
        """The eligible rows that are compared: all; of many, those of each group with the lowest priorities."""
        points = self.data.points
        constraints = self.constraints
        pool = self.eligible(k)
        most = max(MOST_SIMILARITIES // max(len(self.targets), 1), CANDIDATES_FOR_A_PICK * k)
        if len(pool) <= most:
            return pool
        kept = [constraints.must, np.intersect1d(constraints.start, pool)]
        groups = np.unique(constraints.group[pool])
        for group in groups:
            members = pool[constraints.group[pool] == group]
            size = max(most // len(groups), 2 * k)
            order = points.sampling_order(points.point_of[members], size)
            kept.append(members[np.argsort(order, kind="stable")[:size]])
        return self.by_point(np.unique(np.concatenate(kept)))


def in_order(
    objective: Location, chosen: list[int], n_forced: int
) -> tuple[list[int], list[float]]:
    """The chosen, ranked: each adds most to those before it. Forced ones come first; of equal gains, the first candidate wins."""
    return objective.ranked(
        Slots.free(objective.n_candidates, len(chosen)).among(chosen, chosen[:n_forced])
    )


def _choose_like_the_paper(judged: Selection) -> Selection:
    """Algorithm 1: rank non-zero rows by influence, prune near ones, reject outliers; keep the first k if k is given."""
    data = judged.data
    settings = judged.settings
    cut = judged.cut
    influence = data.solved.influence
    located = lowest_first(influence != 0, -influence)
    # The setting of the paper's first author in later work.
    share = 0.95 if is_auto(settings.diversity) else float(settings.diversity)
    novel = located
    if share < 1 and len(located) > 1:
        own = data.kernel.diagonal()[located]
        squared = own[:, None] + own - 2.0 * data.kernel.block(located, located)
        novel = located[prune_similar(np.maximum(squared, 0.0), share)]
    low = cut.below(data.counts[novel])
    if settings.op_threshold is None and low.all():
        # The kernel is so narrow that every point stands alone.
        cut = NO_OUTLIERS
        low = np.zeros_like(low)
    kept = novel[~low] if settings.outliers == "reject" else novel
    if not len(kept):
        raise InvalidInputError(
            f"no representative is left: of {len(located)} rows with influence, pruning keeps {len(novel)}, and all of these "
            f"have an effective count below {cut.count:.3g}",
            "Raise `op_threshold`, lower `alpha`, or widen the kernel.",
        )
    kept = kept[: settings.number(data.n_rows)]
    return replace(judged, cut=cut, members=data.points.first[kept], gains=influence[kept])


def prune_similar(distances: FloatArray, share: float) -> IntArray:
    """Candidates, in the order of influence, without those that are too near to a more influential one that is kept: for each of
    these, distances to all are summed, largest first, until they exceed ``share`` of their total, and the rest of the candidates
    after it are removed. The paper names no rule; this is that of SMRS, later work of the same first author.
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
