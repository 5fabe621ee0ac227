"""Choosing: find the outliers and the candidates, then choose the representatives. It can be repeated with other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mosaic.arrays.blocks import (
    NO_ROWS,
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
from mosaic.choosing.settings import Settings, is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.text import at_least, listed

#: Largest number of representatives that is suggested.
MOST_AUTOMATIC = 100
#: Number of points to be covered, unless k picks need more.
USUAL_TARGETS = 10_000
#: An earlier pick is exchanged where that adds more than this part of what a pick adds on average (``docs/guides/more_rows``).
CLEARLY_BETTER = 0.1


def choose(data: FitData, settings: Settings) -> Selection:
    found = flag_only(data, settings)
    constraints = data.constraints
    why = ""
    if settings.mode == "paper":
        return _choose_like_the_paper(found)
    k = settings.number(data.n_rows)
    least = max(len(constraints.must), 1)
    if k is not None and k > data.n_rows:
        fault = f"is more than there are points (n_samples = {data.n_rows})"
        raise InvalidInputError(fault, "Ask for fewer.", parameter="n_representatives", value=k)
    k = constraints.fixed_total if k is None else k
    if settings.coverage is not None:
        if k is not None:
            fault = f"`coverage={settings.coverage:g}` and quotas that add up to {k:,} each say how many to choose"
            raise InvalidInputError(fault, "Give one of them.")
        return _as_many_as_needed(found, settings.coverage)
    if k is None:
        k, why = Chooser(found, MOST_AUTOMATIC).suggested()
        if least > k:
            k = least
            why = "those that must be included"
    chooser = Chooser(found, k)
    picks = chooser.picks()
    changes = () if constraints.start is None else chooser.changes(picks)
    return replace(chooser.improved(picks), changes=changes, why_so_many=why)


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
    """Up to ``limit`` rows by gain, ``go_on``: after those of the selection."""
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


def _as_many_as_needed(found: Selection, share: float) -> Selection:
    """The selection of as many picks as this coverage needs: the first of a ranking, where covers by 2, 4, 8, … are tried; within
    quotas as many, and then more as long as these do not reach it.
    """
    constraints = found.data.constraints
    point_of = found.data.points.point_of
    k = 2
    while True:
        chooser = Chooser(found, k)
        rows, gains = chooser.ranked(k, earlier_first=True)
        coverage = found.measure.along(point_of[rows])
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
        chooser = Chooser(found, k)
        picks = chooser.picks()
        coverage = found.measure.along(point_of[picks.rows])
        if coverage[-1] >= share:
            break
        k += max(k // 20, 1)
    half = int(np.argmax(coverage >= share / 2)) + 1
    why = f"as many as a coverage of {100 * share:g} % needs (half of that needs {half:,})"
    changes = () if constraints.start is None else chooser.changes(picks)
    return replace(found, members=picks.rows, gains=picks.gains, changes=changes, why_so_many=why)


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

    @cached_property
    def rejected(self) -> BoolArray:
        rejects = self.selection.settings.outliers == "reject"
        if rejects:
            return self.selection.is_outlier
        return np.zeros(self.selection.data.points.n, dtype=bool)

    @cached_property
    def pool(self) -> IntArray:
        """Rows that may be chosen, by point, one of each group: one that must be, else an earlier pick, else the first copy."""
        data = self.selection.data
        constraints = self.selection.data.constraints
        must = constraints.must
        point_of = data.points.point_of
        numbers, copies = np.unique(point_of[must], return_counts=True)
        if (copies > 1).any():
            first, second = data.rows_in_data(
                must[point_of[must] == numbers[np.argmax(copies > 1)]]
            )[:2]
            fault = f"names `row {int(first)}` and `row {int(second)}`, which are equal"
            raise InvalidInputError(fault, "Name one of them.", parameter="must_include")
        may = ~self.rejected
        start = NO_ROWS if constraints.start is None else constraints.start
        rows = np.flatnonzero(constraints.allowed & (point_of >= 0))
        rows = np.setdiff1d(rows[may[point_of[rows]]], must)
        rows = np.concatenate([must, start[np.isin(start, rows)], np.setdiff1d(rows, start)])
        kinds = point_of[rows] * len(constraints.names) + constraints.group[rows]
        rows = rows[np.sort(np.unique(kinds, return_index=True)[1])]
        return np.asarray(rows[np.lexsort((rows, point_of[rows]))])

    @cached_property
    def targets(self) -> IntArray:
        """Points that are not rejected; of many, a sample that is large enough for k picks."""
        most = max(USUAL_TARGETS, round(TARGETS_FOR_A_PICK * self.k))
        return self.selection.data.points.sample(np.flatnonzero(~self.rejected), most)

    @cached_property
    def weights(self) -> FloatArray:
        everyone = self.selection.data.points.weights
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
        points = self.selection.data.points
        constraints = self.selection.data.constraints
        pool = self.pool
        sizes = np.bincount(
            constraints.group[pool], points.weights[points.point_of[pool]], len(constraints.names)
        )
        return constraints.slots(
            self.k, candidates, points.point_of[candidates], np.asarray(sizes, np.float64)
        )

    def picks(self) -> Picks:
        """K rows and their gains, by the objective with exchanges, within the quotas; earlier picks are taken first."""
        settings = self.selection.settings
        points = self.selection.data.points
        k = self.k
        constraints = self.selection.data.constraints
        candidates = self.candidates(k)
        slots = self.slots(candidates)
        constraints.check_room(slots, candidates, points.spread(self.rejected, False))
        objective = self.objective(slots.twins)
        n_forced = len(slots.forced)
        replaced = []
        while True:
            old = self._earlier(objective, slots, candidates)
            chosen, gains = objective.ranked(replace(slots, forced=[*slots.forced, *old]))
            if len(chosen) < slots.room.sum():  # groups compete for equal rows
                asked = slots.room.sum()
                fault = f"{asked} representatives are asked for, and {len(chosen)} found: of equal rows only one is chosen"
                raise InvalidInputError(fault, "Ask for fewer.")
            # If the number is read off the curve, the picks stay those of the curve.
            if settings.coverage is None:
                worth = np.zeros(len(candidates))
                worth[old] = CLEARLY_BETTER * sum(gains) / len(gains)
                exchanged = objective.exchanged(chosen, slots, worth if old else None)
                pairs = zip(chosen, exchanged, strict=True)
                replaced = [
                    (int(candidates[a]), int(candidates[b]))
                    for a, b in pairs
                    if a in old and a not in exchanged
                ]
                chosen, gains = in_order(objective, exchanged, n_forced)
            lacking = self._for_groups(slots, chosen)
            if not lacking:
                break
            slots = replace(slots, forced=[*slots.forced, *lacking])
        return Picks(candidates[chosen], np.array(gains) / self.weights.sum(), tuple(replaced))

    def improved(self, picks: Picks) -> Selection:
        """The selection with these picks, moved to the middle of their rows in the larger sample if there is one."""
        found = self.selection
        constraints = self.selection.data.constraints
        found = replace(found, members=picks.rows, gains=picks.gains)
        if found.data.larger is None:
            return found
        stays = np.isin(picks.rows, constraints.must)
        if constraints.start is not None:
            stays |= np.isin(picks.rows, constraints.start)
        moved = with_moved_picks(found, self.cover, stays)
        if moved is found:
            return found
        chooser = Chooser(moved, self.k)
        order, gains = in_order(
            chooser.objective(moved.chosen), list(range(len(picks.rows))), len(constraints.must)
        )
        return replace(
            moved, members=moved.members[order], gains=np.array(gains) / chooser.weights.sum()
        )

    def ranked(self, most: int, *, earlier_first: bool = False) -> tuple[IntArray, FloatArray]:
        """Up to this many rows by the objective and their gains, without quotas."""
        data = self.selection.data
        candidates = self.candidates(most)
        slots = data.constraints.slots(
            len(candidates), candidates, data.points.point_of[candidates]
        )
        objective = self.objective(slots.twins)
        if earlier_first:
            slots = replace(
                slots, forced=[*slots.forced, *self._earlier(objective, slots, candidates)]
            )
        chosen, gains = objective.ranked(slots, most)
        return candidates[chosen], np.array(gains) / self.weights.sum()

    def suggested(self) -> tuple[int, str]:
        """How many picks to take, and why: all of few distinct rows, one row for each clear cluster, or √(n/2)."""
        n = float(self.weights.sum())
        pool = max(len(self.pool), 1)
        data = self.selection.data
        usual = int(np.clip(round((n / 2.0) ** 0.5), 1, MOST_AUTOMATIC))
        if usual >= pool:
            return pool, "one for each distinct row that may be chosen"
        some = self.targets[subsample(len(self.targets), 1000, data.seed)]
        if len(some) < FEWEST_FOR_CLUSTERS:
            return (
                usual,
                f"fewer than {FEWEST_FOR_CLUSTERS} distinct rows show no clusters, so √(n/2), a rule of thumb",
            )
        squared = data.kernel.distances(some, some) ** (2.0 / data.kernel.order)
        number, between = number_of_clusters(squared, min(MOST_AUTOMATIC, pool))
        if number == 1:
            return usual, "no clusters are clear, so √(n/2), a rule of thumb"
        return (
            number,
            f"as many as there are clear clusters ({percent(between)} of their rows are between two)",
        )

    def _earlier(self, objective: Location, slots: Slots, candidates: IntArray) -> list[int]:
        """Earlier picks that may be chosen again, as candidates, best first: as many as there are places for them."""
        constraints = self.selection.data.constraints
        points = self.selection.data.points.point_of
        if constraints.start is None:
            return []
        earlier = set(
            zip(
                points[constraints.start].tolist(),
                constraints.group[constraints.start].tolist(),
                strict=True,
            )
        )
        known = zip(slots.twins.tolist(), constraints.group[candidates].tolist(), strict=True)
        old = [
            place
            for place, point in enumerate(known)
            if point in earlier and place not in slots.forced
        ]
        few = slots.among([*slots.forced, *old], slots.forced)
        return objective.ranked(few)[0][len(slots.forced) :] if old else []

    def _for_groups(self, slots: Slots, chosen: Sequence[int]) -> list[int]:
        """For each kept group that has no pick, and at least as many rows as a pick stands for, the candidate that represents it
        best, as far as there is room for more.
        """
        if self.selection.groups is None:
            return []
        groups = self.selection.groups.group
        weights = self.selection.data.points.weights
        sizes = np.bincount(groups.clip(0), weights)
        group_of = groups[slots.twins]
        found = []
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
            found.append(best)
            room[slots.of[best]] -= 1
        return found

    def changes(self, found: Picks) -> tuple[str, ...]:
        """What became of the earlier picks, and what that does to the mean similarity to the nearest pick, in sentences."""
        data = self.selection.data
        cover = self.cover
        constraints = data.constraints
        point_of = data.points.point_of
        start = data.constraints.start
        chosen = point_of[found.rows]
        assert start is not None

        def called(row: int) -> str:
            return data.called(int(data.rows_in_data(np.array([row]))[0]))

        def similarity(points: IntArray) -> float:
            S = on_host(cover.between(self.targets, points))
            return float(self.weights @ S.max(axis=1, initial=0.0)) / float(self.weights.sum())

        again = [row for row in start.tolist() if point_of[row] >= 0 and point_of[row] in chosen]
        kept = list({int(point_of[row]): row for row in reversed(again)}.values())[::-1]
        told = [
            f"{len(kept):,} of {counted(len(start) + len(constraints.gone), 'earlier pick')} kept."
        ]
        now = similarity(chosen)
        before = similarity(np.unique(point_of[start[point_of[start] >= 0]]))
        if found.replaced:
            without = [
                similarity(np.where(chosen == point_of[new], point_of[old], chosen))
                for old, new in found.replaced
            ]
            pairs = zip(found.replaced, without, strict=True)
            shown = [
                f"{called(old)} → {called(new)} (+{now - then:.2g})" for (old, new), then in pairs
            ]
            told.append(f"Replaced, with what that adds to the mean similarity: {listed(shown)}.")
        dropped: dict[str, list[str]] = {}
        for row in start.tolist():
            if row in kept or row in dict(found.replaced):
                continue
            if point_of[row] < 0:
                why = "since their weight is 0"
            elif point_of[row] in point_of[kept]:
                why = "since they are equal to another pick"
            elif not constraints.allowed[row]:
                why = "since they may not be chosen"
            elif self.rejected[point_of[row]]:
                why = "since they are outliers now"
            else:
                why = "since there is no place for them"
            dropped.setdefault(why, []).append(called(row))
        told += [f"Not kept, {why}: {listed(rows)}." for why, rows in dropped.items()]
        if constraints.gone:
            told.append(f"Not among the rows any more: {listed(constraints.gone)}.")
        alone = f"with the earlier picks alone it is {before:.4g}"
        return (*told, f"The mean similarity to the nearest pick is {now:.4g}; {alone}.")

    def eligible(self, k: int) -> IntArray:
        """The rows of the pool without those that are just above a valley of the counts: some of them are outliers. They are no
        candidates as long as there are others.
        """
        data = self.selection.data
        cut = self.selection.cut
        pool = self.pool
        belongs = ~self.rejected
        if cut.rule != "valley" or data.constraints.quotas is not None or belongs.all():
            return pool
        is_sure = data.counts[data.points.point_of[pool]] >= just_above(
            cut.count, data.counts[belongs]
        )
        is_sure |= np.isin(pool, data.constraints.must)
        if self.selection.groups is not None:
            is_sure |= self.selection.groups.members[data.points.point_of[pool]]
        return pool[is_sure] if is_sure.sum() >= k else pool

    def candidates(self, k: int) -> IntArray:
        """The eligible rows that are compared: all; of many, those of each group with the lowest priorities."""
        points = self.selection.data.points
        constraints = self.selection.data.constraints
        pool = self.eligible(k)
        most = max(MOST_SIMILARITIES // max(len(self.targets), 1), CANDIDATES_FOR_A_PICK * k)
        if len(pool) <= most:
            return pool
        kept = [constraints.must]
        groups = np.unique(constraints.group[pool])
        if constraints.start is not None:
            kept.append(np.intersect1d(constraints.start, pool))
        for group in groups:
            members = pool[constraints.group[pool] == group]
            size = max(most // len(groups), 2 * k)
            order = points.sampling_order(points.point_of[members], size)
            kept.append(members[np.argsort(order, kind="stable")[:size]])
        rows = np.unique(np.concatenate(kept))
        return rows[np.lexsort((rows, points.point_of[rows]))]


def in_order(
    objective: Location, chosen: list[int], n_forced: int
) -> tuple[list[int], list[float]]:
    """The chosen, ranked: each adds most to those before it. Forced ones come first; of equal gains, the first candidate wins."""
    return objective.ranked(
        Slots.free(objective.n_candidates, len(chosen)).among(chosen, chosen[:n_forced])
    )


def _choose_like_the_paper(found: Selection) -> Selection:
    """Algorithm 1: rank non-zero rows by influence, prune near ones, reject outliers; keep the first k if k is given."""
    data = found.data
    settings = found.settings
    cut = found.cut
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
    if (
        settings.op_threshold is None and low.all()
    ):  # the kernel is so narrow that every point stands alone
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
    return replace(found, cut=cut, members=data.points.first[kept], gains=influence[kept])


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
