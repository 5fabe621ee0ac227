"""Choosing: who is an outlier, who may be chosen, and who is. It can be done again with other thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray, standing_for_all
from mosaic.budget import MOST_SIMILARITIES
from mosaic.choosing.cover import (
    ExplainedShare,
    Slots,
    cover,
    improve,
    knee,
    prune_similar,
    similarities,
    without_rounding,
)
from mosaic.choosing.explained import Explaining, exchange, explain_most
from mosaic.choosing.material import Material
from mosaic.choosing.selection import Selection, outliers_among, outliers_of_sample
from mosaic.choosing.settings import Settings
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel
from mosaic.metrics import shared_information_distance
from mosaic.outliers import NOBODY, Cut, Groups, cut_for_share, find_cut, find_groups
from mosaic.outliers.cut import share_of_own_neighbours

#: The knee of the coverage curve is looked for among this many picks.
MOST_AUTOMATIC = 100
#: Points to be covered, at most.
MOST_TARGETS = 10_000
#: The later setting of the paper's first author for diversity pruning. A threshold for OP is stated nowhere; ours:
#: a point with m < 2 stands for nobody besides itself, unless that holds for all.
PAPER_DIVERSITY, PAPER_SMALLEST_COUNT = 0.95, 2.0


def choose(material: Material, settings: Settings) -> Selection:
    """Outliers and representatives, by the rule of the mode."""
    cut, groups = flag(material, settings)
    if settings.mode == "paper":
        return _choose_like_the_paper(material, settings, cut)
    who = _Participants.of(material, settings, cut, groups)
    k = settings.number(material.n_rows)
    if k is None:
        k = material.constraints.fixed_total
    elif k > material.n_rows:
        raise InvalidInputError(
            f"n_representatives={k} is more than there are points (n_samples = {material.n_rows}). Ask for fewer."
        )
    must = len(material.constraints.must)
    if k is not None:
        rows, gains = _picks(material, settings, k, who)
    elif settings.coverage is not None:
        rows, gains = _ranked(material, settings, len(who.pool), who, until_explained=settings.coverage)
        if material.constraints.quotas is not None or len(rows) < must:
            rows, gains = _picks(material, settings, max(len(rows), must), who)
    else:
        most = min(len(who.pool), MOST_AUTOMATIC)
        if settings.min_support is not None:
            k = _supported(material, settings, who)
        else:
            k = max(knee(np.cumsum(_ranked(material, settings, most, who)[1])), 1)
        rows, gains = _picks(material, settings, max(k, must), who)
    return Selection(material, settings, rows, material.points.group[rows], gains, cut, groups)


def flag_only(material: Material, settings: Settings) -> Selection:
    """Outliers and no representatives."""
    cut, groups = flag(material, settings)
    nobody = np.zeros(0, np.intp)
    return Selection(material, settings, nobody, nobody, np.zeros(0), cut, groups)


def rank(selection: Selection, limit: int, *, go_on: bool = False) -> tuple[IntArray, FloatArray, FloatArray]:
    """Up to ``limit`` rows in the order of what they add, with the similarity and the explained share of each prefix.

    Outliers are those of the selection. To go on, its rows come first, as they are.
    """
    material, settings = selection.material, selection.settings
    if go_on:
        material = material.with_constraints(replace(material.constraints, must=selection.members))
    who = _Participants.of(material, settings, selection.cut, selection.groups)
    rows, gains = _ranked(material, settings, min(limit, len(who.pool)), who)
    share = ExplainedShare(material.kernel, who.targets, who.weights)
    return rows, np.cumsum(gains), np.array([share.add(int(point)) for point in material.points.group[rows]])


def flag(material: Material, settings: Settings) -> tuple[Cut, Groups | None]:
    """The cut, and groups of outliers that are kept for their number."""
    points, sample = material.points, material.sample
    if settings.outliers == "keep":
        return NOBODY, None
    if settings.mode == "paper":
        n = points.total
        count = PAPER_SMALLEST_COUNT if settings.op_threshold is None else n - settings.op_threshold * (n - 1.0)
        return Cut(count, "threshold"), None
    kernel = material.kernel if not material.is_sampled else material.kernel.take(sample)
    counts = material.sample_counts
    if isinstance(settings.contamination, str):
        cut = find_cut(counts, lambda members: share_of_own_neighbours(kernel, members, material.seed))
    else:
        cut = cut_for_share(counts, material.sample_weights, float(settings.contamination))
    groups = None
    if settings.min_group is not None:
        low = outliers_among(counts, sample, material, settings, cut)
        groups = find_groups(kernel, low, points.weights[sample], settings.min_group)
        members = np.zeros(points.n, dtype=bool)
        members[sample[groups.members]] = True
        groups = replace(groups, members=members)
    return cut, groups


@dataclass(frozen=True)
class _Participants:
    """Rows that may be chosen, points to be covered with their weights, points that are rejected, points that come last."""

    pool: IntArray
    targets: IntArray
    weights: FloatArray
    rejected: BoolArray
    doubtful: BoolArray

    @classmethod
    def of(cls, material: Material, settings: Settings, cut: Cut, groups: Groups | None) -> _Participants:
        points, sample = material.points, material.sample
        rejected = np.zeros(points.n, dtype=bool)
        doubtful = np.zeros(points.n, dtype=bool)
        if settings.outliers == "reject":
            rejected[sample] = outliers_of_sample(material, settings, cut, groups)
            doubtful[sample] = _doubtful(material.sample_counts, cut, rejected[sample])
            if groups is not None:
                doubtful &= ~groups.members
        seen = np.zeros(points.n, dtype=bool)
        seen[sample] = True
        pool = _pool(material, seen & ~rejected)
        belong = sample[~rejected[sample]]
        targets = points.sample(belong, MOST_TARGETS)
        stands_for = np.zeros(points.n)
        stands_for[sample] = material.sample_weights
        weights: FloatArray = stands_for[targets]
        if len(targets) < len(belong):
            weights = standing_for_all(weights, MOST_TARGETS, float(stands_for[belong].sum()))
        return cls(pool, targets, weights, rejected, doubtful)


def _doubtful(counts: FloatArray, cut: Cut, rejected: BoolArray) -> BoolArray:
    """Points that are no outliers and yet are chosen last.

    Where a valley divides outliers from others, some of the former are on its other side: those with a count below the
    geometric mean of the cut and the median of the others.
    """
    if cut.rule != "valley" or not rejected.any() or rejected.all():
        return np.zeros_like(rejected)
    return np.asarray(~rejected & (counts < np.sqrt(cut.count * np.median(counts[~rejected]))))


def _pool(material: Material, may: BoolArray) -> IntArray:
    """Rows that may be chosen, ``may`` saying which points: of the copies of a point within a group the first, must-include
    rows before others, in the order of the points.
    """
    points, constraints = material.points, material.constraints
    must, group = constraints.must, points.group
    without = must[group[must] < 0]
    if len(without):
        raise InvalidInputError(
            f"must_include names row {int(without[0])}, whose sample_weight is 0. Give it a weight."
        )
    numbers, copies = np.unique(group[must], return_counts=True)
    if (copies > 1).any():
        twins = must[group[must] == numbers[np.argmax(copies > 1)]]
        raise InvalidInputError(
            f"must_include names rows {int(twins[0])} and {int(twins[1])}, which are equal: name one of them."
        )
    if constraints.allowed.all() and len(constraints.names) == 1 and not len(must):
        return points.first[np.flatnonzero(may)]
    rows = np.flatnonzero(constraints.allowed & (group >= 0))
    rows = np.concatenate([must, np.setdiff1d(rows[may[group[rows]]], must)])
    kinds = group[rows] * len(constraints.names) + constraints.group[rows]
    rows = rows[np.sort(np.unique(kinds, return_index=True)[1])]
    return np.asarray(rows[np.lexsort((rows, group[rows]))])


def _candidates(material: Material, settings: Settings, who: _Participants, k: int) -> IntArray:
    """The rows of the pool that are compared: all, or of many those with the lowest priorities, enough of each group."""
    points, constraints, pool = material.points, material.constraints, who.pool
    entries = MOST_SIMILARITIES // (2 if settings.objective == "explained" else 1)  # these are in double precision
    most = max(entries // max(len(who.targets), 1), 2 * k)
    if len(pool) <= most:
        return pool
    kept, groups = [constraints.must], np.unique(constraints.group[pool])
    for group in groups:
        members = pool[constraints.group[pool] == group]
        size = max(most // len(groups), 2 * k)
        priority, weights = points.priority[points.group[members]], points.weights[points.group[members]]
        priority[weights * size >= weights.sum()] = 0  # who is there often is not left out
        kept.append(members[np.argsort(priority, kind="stable")[:size]])
    rows = np.unique(np.concatenate(kept))
    return rows[np.lexsort((rows, points.group[rows]))]


def _picks(material: Material, settings: Settings, k: int, who: _Participants) -> tuple[IntArray, FloatArray]:
    """K rows and their gains: by the objective, with exchanges, within quotas."""
    constraints, points = material.constraints, material.points
    candidates = _candidates(material, settings, who, k)
    places = points.group[candidates]
    sizes = np.bincount(
        constraints.group[who.pool], weights=points.weights[points.group[who.pool]], minlength=len(constraints.names)
    )
    slots = constraints.slots(k, candidates, dict(zip(constraints.names, sizes.tolist(), strict=True)))
    constraints.check_room(slots, k, places, candidates, material.for_rows(who.rejected, False))
    S = _compared(material, settings, who, places)
    chosen, gains = _covered(material, settings, S, candidates, slots, who)
    if len(chosen) < k:
        raise InvalidInputError(
            f"{k} representatives are wanted, but after {len(chosen)} no point is left that differs from them by "
            f"diversity={settings.diversity}. Lower diversity or n_representatives."
        )
    # Where a number is read off the curve, or diversity is asked for, the picks are those of the curve.
    if isinstance(settings.diversity, str) and not _reads_curve(settings):
        forced = _forced(constraints.must, candidates)
        barred = who.doubtful[places]
        if isinstance(S, Explaining):
            chosen = exchange(S, chosen, slots, twins=places, fixed=forced, barred=barred)
        else:
            chosen = improve(S, who.weights, chosen, slots, twins=places, fixed=forced, barred=barred)
        chosen, gains = _in_order(S, who.weights, chosen, len(forced))
    return candidates[chosen], _gains(S, who, chosen, gains)


def _ranked(
    material: Material, settings: Settings, k: int, who: _Participants, until_explained: float | None = None
) -> tuple[IntArray, FloatArray]:
    """Up to k rows by the objective and their gains, whatever the quotas, as far as candidates go or enough is explained."""
    candidates = _candidates(material, settings, who, min(k, MOST_AUTOMATIC))
    places = material.points.group[candidates]
    S = _compared(material, settings, who, places)
    slots = Slots.free(len(candidates), min(k, len(candidates)))
    chosen, gains = _covered(material, settings, S, candidates, slots, who, until_explained)
    return candidates[chosen], _gains(S, who, chosen, gains)


def _compared(material: Material, settings: Settings, who: _Participants, places: IntArray) -> FloatArray | Explaining:
    """What the objective compares: similarities of targets and candidates, or what candidates explain of targets."""
    if settings.objective == "similar":
        return similarities(material.kernel, who.targets, places)
    everyone = material.points.weights
    ridge = float(everyone @ material.kernel.diagonal()) / float(everyone.sum())  # that of the certificate
    return Explaining.of(material.kernel, who.targets, places, who.weights, ridge)


def _gains(S: FloatArray | Explaining, who: _Participants, chosen: list[int], gains: list[float]) -> FloatArray:
    """What each of the chosen adds to the mean similarity to the nearest one, whatever they were chosen for."""
    if not isinstance(S, Explaining):
        return np.asarray(np.array(gains) / who.weights.sum())
    nearest = np.maximum.accumulate(similarities(S.kernel, who.targets, S.places[chosen]), axis=1)
    return np.asarray(np.diff(who.weights @ nearest / who.weights.sum(), prepend=0.0))


def _reads_curve(settings: Settings) -> bool:
    return isinstance(settings.n_representatives, str)


def _covered(
    material: Material,
    settings: Settings,
    S: FloatArray | Explaining,
    candidates: IntArray,
    slots: Slots,
    who: _Participants,
    until_explained: float | None = None,
) -> tuple[list[int], list[float]]:
    """Candidates one after another, must-include rows first."""
    places = material.points.group[candidates]
    too_similar = None
    if not isinstance(settings.diversity, str):
        too_similar = _distances_of_copies(material.kernel, places) < float(settings.diversity)
    share = None if until_explained is None else ExplainedShare(material.kernel, who.targets, who.weights)
    forced = _forced(material.constraints.must, candidates)
    chosen: list[int] = []
    gains: list[float] = []
    last = who.doubtful[places].astype(np.intp)
    if isinstance(S, Explaining):
        picks = explain_most(S, slots, twins=places, forced=forced, last=last, too_similar=too_similar)
    else:
        picks = cover(S, who.weights, slots, twins=places, forced=forced, last=last, too_similar=too_similar)
    for pick in picks:
        chosen.append(pick.candidate)
        gains.append(pick.gain)
        enough = share is not None and share.add(int(places[pick.candidate])) >= (until_explained or 0.0)
        if enough and len(chosen) >= len(forced):
            break
    return chosen, gains


def _forced(must: IntArray, candidates: IntArray) -> list[int]:
    return [int(np.flatnonzero(candidates == row)[0]) for row in must]


def _supported(material: Material, settings: Settings, who: _Participants) -> int:
    """The largest number of picks each of which is the nearest for at least ``min_support`` points."""
    smallest, weights = float(settings.min_support or 1.0), who.weights
    if weights.sum() < smallest:
        raise InvalidInputError(
            f"min_support={smallest:g} is more than all {weights.sum():g} points that belong "
            f"(n_samples = {material.n_rows}). Lower it."
        )
    limit = max(1, min(len(who.pool), int(weights.sum() / smallest)))
    rows, _ = _ranked(material, settings, limit, who)
    places = material.points.group[rows]
    lengths = material.kernel.diagonal()[places]  # the measure is that of labels_
    D = without_rounding(lengths - 2.0 * material.kernel.block(who.targets, places), float(lengths.max()))
    enough, nearest, best = 1, np.zeros(len(D), np.intp), D[:, 0].copy()
    for k in range(1, len(rows)):
        closer = D[:, k] < best
        nearest[closer], best[closer] = k, D[closer, k]
        if np.bincount(nearest, weights=weights, minlength=k + 1).min() >= smallest:
            enough = k + 1
    return enough


def _in_order(
    S: FloatArray | Explaining, weights: FloatArray, chosen: list[int], n_forced: int
) -> tuple[list[int], list[float]]:
    """The chosen, each the one that adds most to those before it; forced ones first. Ties as in ``cover``."""
    chosen = chosen[:n_forced] + sorted(chosen[n_forced:])
    alone, slots = np.arange(len(chosen)), Slots.free(len(chosen), len(chosen))
    if isinstance(S, Explaining):
        these = replace(S, places=S.places[chosen], K=S.K[:, chosen])
        ranked = explain_most(these, slots, twins=alone, forced=range(n_forced))
    else:
        ranked = cover(S[:, chosen], weights, slots, twins=alone, forced=range(n_forced))
    found = [(chosen[pick.candidate], pick.gain) for pick in ranked]
    return [c for c, _ in found], [gain for _, gain in found]


def _distances_of_copies(kernel: Kernel, places: IntArray) -> FloatArray:
    """Normalised distances between points that may repeat (copies of one point in several groups)."""
    distinct, back = np.unique(places, return_inverse=True)
    return shared_information_distance(kernel, distinct, distinct)[np.ix_(back, back)]


def _choose_like_the_paper(material: Material, settings: Settings, cut: Cut) -> Selection:
    """Algorithm 1: non-zero rows by influence, novel ones by distance, outliers out; the first k if k is given."""
    influence = material.encoding.influence
    located = np.flatnonzero(influence)
    located = located[np.argsort(-influence[located], kind="stable")]
    share = PAPER_DIVERSITY if isinstance(settings.diversity, str) else float(settings.diversity)
    novel = located
    if share < 1 and len(located) > 1:
        squared = shared_information_distance(material.kernel, located, located, normalised=False)
        novel = located[prune_similar(np.sqrt(squared), share)]
    low = cut.below(material.counts[novel])
    if settings.op_threshold is None and low.all():  # so narrow a kernel that everybody stands alone
        cut, low = NOBODY, np.zeros_like(low)
    kept = novel[~low] if settings.outliers == "reject" else novel
    if not len(kept):
        raise InvalidInputError(
            f"nothing is left: {len(located)} rows are not zero, {len(novel)} of them novel, and all stand for fewer than "
            f"{cut.count:.3g} points. Raise op_threshold, lower alpha, or widen the kernel."
        )
    k = settings.number(material.n_rows)
    kept = kept if k is None else kept[:k]
    return Selection(material, settings, material.points.first[kept], kept, influence[kept], cut, None)


def curve_settings(settings: Settings) -> Settings:
    """The same with the number left to the curve."""
    changes: dict[str, Any] = {"n_representatives": "auto", "coverage": None, "min_support": None}
    return replace(settings, **changes)
