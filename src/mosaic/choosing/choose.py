"""Choosing: find the outliers and the candidates, then choose the representatives. It can be repeated with other thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, rescale_weights, subsample
from mosaic.arrays.xp import on_host
from mosaic.choosing.budget import MOST_SIMILARITIES
from mosaic.choosing.changes import Changes
from mosaic.choosing.objectives import Cover, Pick, Similar, Slots, without_rounding
from mosaic.choosing.outliers import NOBODY, Cut, KeptGroups, cut_for_share, find_groups, find_outliers, just_above
from mosaic.choosing.points import Material
from mosaic.choosing.selection import Selection, is_low, outlier_points
from mosaic.choosing.settings import Settings, is_auto
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel

#: Largest number of representatives that is suggested, and smallest number of rows of a cluster.
MOST_AUTOMATIC, ROWS_OF_A_CLUSTER = 100, 4
#: Clusters are clear from this mean silhouette on: rows are three times as near to their own pick as to the next.
CLEAR = 2 / 3
#: Largest number of rows whose silhouettes are averaged.
SILHOUETTE_ROWS = 1000
#: Largest number of points to be covered.
MOST_TARGETS = 10_000
#: An earlier pick is exchanged where that adds more than this part of what a pick adds on average (``docs/guides/more_rows``).
CLEARLY_BETTER = 0.1
#: Diversity pruning: the setting of the paper's first author in later work. No paper states a threshold for OP; ours rejects
#: points with m < 2, which stand for themselves only, unless all points are such.
PAPER_DIVERSITY, PAPER_SMALLEST_COUNT = 0.95, 2.0


def choose(material: Material, settings: Settings) -> Selection:
    """Find the outliers and choose the representatives, by the rule of the mode."""
    cut, groups = flag(material, settings)
    if settings.mode == "paper":
        return _choose_like_the_paper(material, settings, cut)
    chooser = Chooser(material, settings, cut, groups)
    k = settings.number(material.n_rows)
    if k is not None and k > material.n_rows:
        fault = f"is more than there are points (n_samples = {material.n_rows})"
        raise InvalidInputError(fault, "Ask for fewer.", parameter="n_representatives", value=k)
    if k is None:
        k = material.constraints.fixed_total
    must, suggested = len(material.constraints.must), None
    if k is not None:
        found = chooser.picks(k)
    elif (share := settings.coverage) is not None or settings.min_support is not None:
        found = chooser.supported(settings.min_support or 1.0) if share is None else chooser.explaining(share)
        if material.constraints.quotas is not None or len(found.rows) < max(must, 1):
            found = chooser.picks(max(len(found.rows), must, 1))
    else:
        suggested = chooser.suggested()
        found = chooser.picks(max(suggested.k, must))
    chosen = material.points.group[found.rows]
    changes = None if material.constraints.start is None else chooser.changes(found)
    silhouette = None if suggested is None else suggested.silhouette
    return Selection(material, settings, found.rows, chosen, found.gains, cut, groups, changes=changes, silhouette=silhouette)


def flag_only(material: Material, settings: Settings) -> Selection:
    """Find the outliers; choose no representatives."""
    cut, groups = flag(material, settings)
    nobody = np.zeros(0, np.intp)
    return Selection(material, settings, nobody, nobody, np.zeros(0), cut, groups)


def rank(selection: Selection, limit: int, *, go_on: bool = False) -> tuple[IntArray, FloatArray, FloatArray]:
    """Up to ``limit`` rows, ranked by their gain, with the similarity and the explained share of each prefix.

    The outliers are those of the selection. With ``go_on``, the ranking starts with the rows of the selection.
    """
    material, settings = selection.material, selection.settings
    if go_on:
        material = material.with_constraints(replace(material.constraints, must=selection.members))
    chooser = Chooser(material, settings, selection.cut, selection.groups)
    rows, gains = chooser.ranked(min(limit, len(chooser.pool)), len(selection.rows) or limit)
    share = ExplainedShare(material.kernel, chooser.targets, chooser.weights)
    return rows, np.cumsum(gains), np.array([share.add(int(point)) for point in material.points.group[rows]])


def suggested_number(selection: Selection) -> int:
    """The number of representatives that is suggested for the points of a selection."""
    return Chooser(selection.material, selection.settings, selection.cut, selection.groups).suggested().k


def curve_settings(settings: Settings) -> Settings:
    """The same settings, with the number of representatives left to the coverage curve."""
    changes: dict[str, Any] = {"n_representatives": "auto", "coverage": None, "min_support": None}
    return replace(settings, **changes)


def flag(material: Material, settings: Settings) -> tuple[Cut, KeptGroups | None]:
    """The cut, and the groups of outliers that are kept because they are large enough."""
    points = material.points
    if settings.outliers == "keep":
        return NOBODY, None
    if settings.mode == "paper":
        n = points.total
        count = PAPER_SMALLEST_COUNT if settings.op_threshold is None else n - settings.op_threshold * (n - 1.0)
        return Cut(count, "threshold"), None
    kernel, counts, groups = material.kernel, material.counts, None
    if is_auto(settings.contamination):
        cut, groups = find_outliers(counts, kernel, material.seed)
    else:
        cut = cut_for_share(counts, points.weights, float(settings.contamination))
    if settings.min_group is not None:
        groups = find_groups(kernel, is_low(material, settings, cut), points.weights, settings.min_group)
    return cut, groups


class Suggestion(NamedTuple):
    """A number of picks, and the mean silhouette that speaks for it; 0 if no number stands out."""

    k: int
    silhouette: float


class Picks(NamedTuple):
    """Rows, their gains, and pairs of an earlier pick and the row that took its place."""

    rows: IntArray
    gains: FloatArray
    replaced: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Chooser:
    """Chooses rows that are not outliers, within the constraints, to represent the points that belong."""

    material: Material
    settings: Settings
    cut: Cut
    groups: KeptGroups | None

    @cached_property
    def rejected(self) -> BoolArray:
        """Mask of the outliers if they are to be rejected, else all false."""
        if self.settings.outliers == "reject":
            return outlier_points(self.material, self.settings, self.cut, self.groups)
        return np.zeros(self.material.points.n, dtype=bool)

    @cached_property
    def doubtful(self) -> BoolArray:
        """Mask of the points just above a valley, where some outliers are."""
        counts, belongs = self.material.counts, ~self.rejected
        if self.cut.rule != "valley" or belongs.all():
            return np.zeros(len(belongs), dtype=bool)
        return np.asarray(belongs & (counts < just_above(self.cut.count, counts[belongs])))

    @cached_property
    def pool(self) -> IntArray:
        """Rows that may be chosen, in the order of the points. Each point has one row per group: a must-include row if there
        is one, else an earlier pick, else the first copy.
        """
        points, constraints = self.material.points, self.material.constraints
        must, group = constraints.must, points.group
        absent = must[group[must] < 0]
        if len(absent):
            fault = f"names `row {int(absent[0])}`, whose `sample_weight` is 0"
            raise InvalidInputError(fault, "Give it a weight.", parameter="must_include")
        numbers, copies = np.unique(group[must], return_counts=True)
        if (copies > 1).any():
            first, second = self.material.rows_in_data(must[group[must] == numbers[np.argmax(copies > 1)]])[:2]
            fault = f"names `row {int(first)}` and `row {int(second)}`, which are equal"
            raise InvalidInputError(fault, "Name one of them.", parameter="must_include")
        may = ~self.rejected
        start = np.zeros(0, np.intp) if constraints.start is None else constraints.start
        if constraints.allowed.all() and len(constraints.names) == 1 and not len(must) and not len(start):
            return points.first[np.flatnonzero(may)]
        rows = np.flatnonzero(constraints.allowed & (group >= 0))
        rows = np.setdiff1d(rows[may[group[rows]]], must)
        rows = np.concatenate([must, start[np.isin(start, rows)], np.setdiff1d(rows, start)])
        kinds = group[rows] * len(constraints.names) + constraints.group[rows]
        return self._in_order_of_points(rows[np.sort(np.unique(kinds, return_index=True)[1])])

    def _in_order_of_points(self, rows: IntArray) -> IntArray:
        return np.asarray(rows[np.lexsort((rows, self.material.points.group[rows]))])

    @cached_property
    def targets(self) -> IntArray:
        """Points that are not rejected; at most ``MOST_TARGETS`` of them."""
        return self.material.points.sample(np.flatnonzero(~self.rejected), MOST_TARGETS)

    @cached_property
    def weights(self) -> FloatArray:
        """Number of rows that each target stands for."""
        everyone = self.material.points.weights
        weights: FloatArray = everyone[self.targets]
        if len(self.targets) < np.count_nonzero(~self.rejected):
            weights = rescale_weights(weights, MOST_TARGETS, float(everyone[~self.rejected].sum()))
        return weights

    def picks(self, k: int) -> Picks:
        """K rows and their gains, chosen by the objective with exchanges, within the quotas.

        Earlier picks are taken first, and an exchange for one of them must be worth it (``CLEARLY_BETTER``).
        """
        constraints, points, settings = self.material.constraints, self.material.points, self.settings
        candidates, pool = self._candidates(k), self.pool
        sizes = np.bincount(constraints.group[pool], points.weights[points.group[pool]], len(constraints.names))
        slots = constraints.slots(k, candidates, dict(zip(constraints.names, sizes.tolist(), strict=True)))
        slots = self._who_may_fill(slots, candidates)
        constraints.check_room(slots, candidates, self.material.for_rows(self.rejected, False))
        objective = self._objective(slots.twins, k)
        old = self._earlier(objective, slots, candidates)
        chosen, gains = self._greedy(objective, replace(slots, forced=[*slots.forced, *old]))
        # If the number is read off the curve, the picks stay those of the curve. For earlier picks the suggestion only says how
        # many there are; coverage and support are those of the picks themselves.
        given = not is_auto(settings.n_representatives)
        no_number = settings.coverage is None and settings.min_support is None
        replaced: list[tuple[int, int]] = []
        if given or (old and no_number):
            worth = np.zeros(len(candidates))
            worth[old] = CLEARLY_BETTER * sum(gains) / len(gains)
            exchanged = objective.exchanged(chosen, slots, worth if old else None)
            pairs = zip(chosen, exchanged, strict=True)
            replaced = [(int(candidates[a]), int(candidates[b])) for a, b in pairs if a in old and a not in exchanged]
            chosen, gains = in_order(objective, exchanged, len(slots.forced))
        return Picks(candidates[chosen], np.array(gains) / self.weights.sum(), tuple(replaced))

    def ranked(
        self, k: int, covers: float, until_explained: float | None = None, *, earlier_first: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Up to k rows by the objective and their gains, without quotas, until candidates run out or enough is explained.

        ``covers`` is the number of picks that the cover is for. With ``earlier_first``, earlier picks come before others.
        """
        candidates = self._candidates(min(k, MOST_AUTOMATIC))
        slots = self._who_may_fill(Slots.free(len(candidates), min(k, len(candidates))), candidates)
        objective = self._objective(slots.twins, covers)
        least = len(slots.forced)
        if earlier_first:
            slots = replace(slots, forced=[*slots.forced, *self._earlier(objective, slots, candidates)])
        chosen, gains = self._greedy(objective, slots, until_explained, least)
        return candidates[chosen], np.array(gains) / self.weights.sum()

    def suggested(self) -> Suggestion:
        """How many picks to take: as many as there are clear clusters, else √(n/2), a rule of thumb.

        Clusters are clear if rows are three times as near to their pick as to the next one, by the mean of 1 − d₁/d₂ (the medoid
        silhouette), and their number is that of the largest mean.
        """
        n, pool = float(self.weights.sum()), len(self.pool)
        most = min(MOST_AUTOMATIC, pool, len(self.targets) // ROWS_OF_A_CLUSTER)
        if most > 1:
            picks = self.material.points.group[self.ranked(most, most)[0]]
            some = self.targets[subsample(len(self.targets), SILHOUETTE_ROWS, self.material.seed)]
            kernel = self.material.kernel
            found = silhouettes(kernel.distances(some, picks) ** (1.0 / kernel.order))
            if len(found) and found.max() >= CLEAR:
                return Suggestion(2 + int(found.argmax()), float(found.max()))
        return Suggestion(int(np.clip(round((n / 2.0) ** 0.5), 1, max(min(MOST_AUTOMATIC, pool), 1))), 0.0)

    def explaining(self, share: float) -> Picks:
        """The first picks of a ranking that explain this share of the targets: covers by 2, 4, 8, … picks are tried."""
        k = 2
        while True:
            rows, gains = self.ranked(len(self.pool), k, share, earlier_first=True)
            if len(rows) <= k or k >= len(self.pool):
                return Picks(rows, gains)
            k *= 2

    def _earlier(self, objective: Similar, slots: Slots, candidates: IntArray) -> list[int]:
        """Earlier picks that may be chosen again, as candidates, best first: as many as there are places for them."""
        start = self.material.constraints.start
        if start is None:
            return []
        points, group = self.material.points.group, self.material.constraints.group
        earlier = set(zip(points[start].tolist(), group[start].tolist(), strict=True))
        known = zip(slots.twins.tolist(), group[candidates].tolist(), strict=True)
        old = [place for place, point in enumerate(known) if point in earlier and place not in slots.forced]
        among = [*slots.forced, *old]
        few = Slots(slots.of[among], slots.room, slots.twins[among], range(len(slots.forced)))
        ranked = list(objective.among(among).greedy(few)) if old else []
        return [among[pick.candidate] for pick in ranked[len(slots.forced) :]]

    def changes(self, found: Picks) -> Changes:
        """What became of the earlier picks."""
        material, constraints = self.material, self.material.constraints
        assert constraints.start is not None
        cover = self.cover(len(found.rows))
        group, start, chosen = material.points.group, constraints.start, material.points.group[found.rows]
        kept = [row for row in start.tolist() if group[row] >= 0 and group[row] in chosen]
        kept = list({int(group[row]): row for row in reversed(kept)}.values())[::-1]
        replaced = dict(found.replaced)
        dropped = [(row, self._why_not(row, kept)) for row in start.tolist() if row not in (*kept, *replaced)]

        def similarity(points: IntArray) -> float:
            S = on_host(cover.between(self.targets, points))
            return float(self.weights @ S.max(axis=1, initial=0.0)) / float(self.weights.sum())

        now = similarity(chosen)
        gains = [
            (old, new, now - similarity(np.where(chosen == group[new], group[old], chosen))) for old, new in replaced.items()
        ]
        there = np.unique(group[start[group[start] >= 0]])
        return Changes(
            len(start) + len(constraints.gone),
            tuple(kept),
            tuple(gains),
            tuple(dropped),
            constraints.gone,
            similarity(there),
            now,
        )

    def _why_not(self, row: int, kept: Sequence[int]) -> str:
        """Why an earlier pick is not chosen again."""
        point = int(self.material.points.group[row])
        if point < 0:
            return "since their weight is 0"
        if point in self.material.points.group[list(kept)]:
            return "since they are equal to another pick"
        if not self.material.constraints.allowed[row]:
            return "since they may not be chosen"
        return "since they are outliers now" if self.rejected[point] else "since there is no place for them"

    def supported(self, smallest: float) -> Picks:
        """The most picks of a ranking such that each is the nearest pick of at least ``smallest`` points."""
        kernel, weights = self.material.kernel, self.weights
        if weights.sum() < smallest:
            n = self.material.n_rows
            fault = f"is more than all {weights.sum():g} points that belong (n_samples = {n})"
            raise InvalidInputError(fault, "Lower it.", parameter="min_support", value=smallest)
        most = max(1, min(len(self.pool), int(weights.sum() / smallest)))
        rows, gains = self.ranked(most, most, earlier_first=True)
        if not len(rows):
            return Picks(rows, gains)
        places = self.material.points.group[rows]
        lengths = kernel.diagonal()[places]  # the measure is that of labels_
        D = without_rounding(lengths - 2.0 * kernel.block(self.targets, places), float(lengths.max()))
        enough, nearest, best = 1, np.zeros(len(D), np.intp), D[:, 0].copy()
        for k in range(1, len(rows)):
            closer = D[:, k] < best
            nearest[closer], best[closer] = k, D[closer, k]
            if np.bincount(nearest, weights=weights, minlength=k + 1).min() >= smallest:
                enough = k + 1
        return Picks(rows[:enough], gains[:enough])

    def _candidates(self, k: int) -> IntArray:
        """The rows of the pool that are compared: all; of a large pool, those of each group with the lowest priorities."""
        points, constraints, pool = self.material.points, self.material.constraints, self.pool
        sure = pool[~self.doubtful[points.group[pool]] | np.isin(pool, constraints.must)]
        if constraints.quotas is None and len(sure) >= k:
            pool = sure
        most = max(MOST_SIMILARITIES // max(len(self.targets), 1), 2 * k)
        if len(pool) <= most:
            return pool
        kept, groups = [constraints.must], np.unique(constraints.group[pool])
        if constraints.start is not None:
            kept.append(np.intersect1d(constraints.start, pool))
        for group in groups:
            members = pool[constraints.group[pool] == group]
            size = max(most // len(groups), 2 * k)
            order = points.sampling_order(points.group[members], size)
            kept.append(members[np.argsort(order, kind="stable")[:size]])
        return self._in_order_of_points(np.unique(np.concatenate(kept)))

    def _who_may_fill(self, slots: Slots, candidates: IntArray) -> Slots:
        """The slots, with the candidate rows marked that are copies or must be chosen."""
        forced = [int(np.flatnonzero(candidates == row)[0]) for row in self.material.constraints.must]
        return replace(slots, twins=self.material.points.group[candidates], forced=forced)

    def cover(self, k: float) -> Cover:
        """The similarity of a cover by k picks."""
        return Cover.of(self.material.kernel, self.targets, self.weights, k)

    def _objective(self, places: IntArray, k: float) -> Similar:
        """The objective that compares candidates, given as points, for k picks."""
        return Similar(self.cover(k).between(self.targets, places), self.weights)

    def _greedy(
        self, objective: Similar, slots: Slots, until_explained: float | None = None, least: int = 0
    ) -> tuple[list[int], list[float]]:
        """Candidates one after another, must-include rows first; at least so many."""
        picks = objective.greedy(slots)
        if until_explained is not None:
            picks = self._until_explained(picks, slots, until_explained, least)
        found = list(picks)
        return [pick.candidate for pick in found], [pick.gain for pick in found]

    def _until_explained(self, picks: Iterator[Pick], slots: Slots, enough: float, least: int) -> Iterator[Pick]:
        """The picks needed to explain this share of the points that belong, at least so many."""
        belongs = np.flatnonzero(~self.rejected)
        share = ExplainedShare(self.material.kernel, belongs, self.material.points.weights[belongs])
        for number, pick in enumerate(picks, 1):
            yield pick
            if share.add(int(slots.twins[pick.candidate])) >= enough and number >= least:
                return


def in_order(objective: Similar, chosen: list[int], n_forced: int) -> tuple[list[int], list[float]]:
    """The chosen, ranked: each adds most to those before it. Forced ones come first; of equal gains, the first candidate wins."""
    chosen = chosen[:n_forced] + sorted(chosen[n_forced:])
    ranked = list(objective.among(chosen).greedy(Slots.free(len(chosen), len(chosen), range(n_forced))))
    return [chosen[pick.candidate] for pick in ranked], [pick.gain for pick in ranked]


class ExplainedShare:
    """1 − Σ_i ω_i e_i / Σ_i ω_i k_ii while picks come in, e_i = k_ii − ‖projection on the picks‖² (a pivoted Cholesky)."""

    def __init__(self, kernel: Kernel, targets: IntArray, weights: FloatArray):
        self.kernel, self.targets, self.weights = kernel, targets, weights
        diagonal = kernel.diagonal()
        self.residual = diagonal[targets].astype(np.float64)
        self.total = float(weights @ self.residual)
        self.noise = 1e-12 * float(diagonal.max())
        self.F = np.empty((len(targets), 16))  # columns of the factor; grows when full
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
        else:  # earlier picks express it already, so its column of the factor is zero
            self.L[k, k], self.F[:, k] = np.inf, 0.0
        self.picks.append(pick)
        return self.value

    @property
    def value(self) -> float:
        """The share so far."""
        return 1.0 - float(self.weights @ np.maximum(self.residual, 0.0)) / self.total if self.total > 0 else 1.0


def silhouettes(D: FloatArray) -> FloatArray:
    """Mean of 1 − d₁/d₂ over the rows, d₁ and d₂ the distances to the nearest and second nearest pick, for 2, 3, … picks.

    ``D`` are distances, rows × picks. Picks are taken away one by one, each time the one whose rows are sent least far away. Rows
    that are picks say nothing and are left out.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 9.0, 9.1, 9.2])
    >>> silhouettes(np.abs(X[:, None] - X[[1, 4, 7, 8]])).round(2).tolist()
    [0.9, 0.98, 0.88]
    """
    D = D[D.min(axis=1) > 0]
    found: list[float] = []
    rows = np.arange(len(D))
    while D.shape[1] > 1 and len(D):
        two = np.argpartition(D, 1, axis=1)[:, :2]
        first, second = D[rows, two[:, 0]], D[rows, two[:, 1]]
        found.append(float(np.mean(1.0 - first / second)))
        farther = np.bincount(two[:, 0], second - first, D.shape[1])
        D = np.delete(D, int(farther.argmin()), axis=1)
    return np.array(found[::-1])


def _choose_like_the_paper(material: Material, settings: Settings, cut: Cut) -> Selection:
    """Algorithm 1: rank non-zero rows by influence, prune near ones, reject outliers; keep the first k if k is given."""
    influence = material.solved.influence
    located = np.flatnonzero(influence)
    located = located[np.argsort(-influence[located], kind="stable")]
    share = PAPER_DIVERSITY if is_auto(settings.diversity) else float(settings.diversity)
    novel = located
    if share < 1 and len(located) > 1:
        own = material.kernel.diagonal()[located]
        squared = own[:, None] + own - 2.0 * material.kernel.block(located, located)
        novel = located[prune_similar(np.sqrt(np.maximum(squared, 0.0)), share)]
    low = cut.below(material.counts[novel])
    if settings.op_threshold is None and low.all():  # the kernel is so narrow that every point stands alone
        cut, low = NOBODY, np.zeros_like(low)
    kept = novel[~low] if settings.outliers == "reject" else novel
    if not len(kept):
        raise InvalidInputError(
            f"nothing is left: {len(located)} rows are not zero, {len(novel)} of them novel, and all stand for fewer than "
            f"{cut.count:.3g} points",
            "Raise `op_threshold`, lower `alpha`, or widen the kernel.",
        )
    k = settings.number(material.n_rows)
    kept = kept if k is None else kept[:k]
    return Selection(material, settings, material.points.first[kept], kept, influence[kept], cut, None)


def prune_similar(distances: FloatArray, share: float) -> IntArray:
    """Candidates, given in the order of influence, that are not too near to a more influential candidate that is kept.

    For each candidate i that is kept so far, its distances to all candidates are summed, largest first, until they exceed
    ``share`` of their total. The remaining candidates, the nearest ones, are removed if they come after i.

    Notes
    -----
    1. The paper names the distance but no rule. This is the rule of sparse modelling representative selection (SMRS),
       which the same first author used in later work with distances in the kernel's feature space and share = 0.95.
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
