"""Choosing, once the program is solved: outliers, candidates, picks. It can be done again with other thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray, subsample
from mosaic.estimators._demands import Demands
from mosaic.estimators._groups import Groups, find_groups
from mosaic.estimators._points import Distinct
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel
from mosaic.metrics import shared_information_distance
from mosaic.outliers import NOBODY, Cut, cut_for_share, find_cut
from mosaic.selection import (
    ExplainedShare,
    Slots,
    cover,
    improve,
    knee,
    prune_similar,
    similarities,
    without_rounding,
)
from mosaic.tuning import MOST_SIMILARITIES, neighbours_wanted
from mosaic.view import view_similarities

Mode: TypeAlias = Literal["auto", "paper"]

#: The knee of the coverage curve is looked for among this many picks.
MOST_AUTOMATIC = 100
#: Candidates that are compared, at most, where more would be possible.
MOST_CANDIDATES = 5000
#: Of more rows than this, so many that have no row in the encoding are candidates, too. Who expresses a crowd best is at its
#: edge, and of many points few are needed for that; who is most similar to it is in its midst (docs/decisions/0020).
LARGE_POOL, MIDST = 5000, 2000
#: The later setting of the paper's first author for diversity pruning. A threshold for OP is stated nowhere; ours:
#: a point with m < 2 stands for nobody besides itself, unless that holds for all.
PAPER_DIVERSITY, PAPER_SMALLEST_COUNT = 0.95, 2.0


@dataclass(frozen=True)
class Wants:
    """How many representatives, of what kind: the parameters that can change without solving again."""

    n_representatives: Any = "auto"
    coverage: float | None = None
    min_support: float | None = None
    outliers: str = "reject"
    contamination: Any = "auto"
    diversity: Any = "auto"
    min_group: float | None = None
    op_threshold: float | None = None
    mode: str = "auto"

    def __post_init__(self) -> None:
        _one_of("mode", self.mode, ("auto", "paper"))
        _one_of("outliers", self.outliers, ("reject", "keep", "report"))
        k = self.n_representatives
        whole = isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1
        share = isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) < 1
        if not (whole or share or (isinstance(k, str) and k == "auto")):
            raise InvalidInputError(
                f"n_representatives must be a whole number >= 1, a share between 0 and 1, or 'auto'; got {k!r}."
            )
        if self.contamination != "auto":
            _number(
                "contamination", self.contamination, 0.0, 0.5, "the share of outliers; at most half can be outliers"
            )
        if self.diversity != "auto":
            _number("diversity", self.diversity, 0.0, 1.0, "the smallest shared information distance between two picks")
        if self.coverage is not None:
            _number("coverage", self.coverage, 0.0, 1.0, "the share of the data to be explained")
        if self.min_support is not None:
            _number("min_support", self.min_support, 1.0, np.inf, "the number of points a representative stands for")
        if self.min_group is not None:
            _number("min_group", self.min_group, 2.0, np.inf, "the number of points that make a group")
        if self.op_threshold is not None:
            _number(
                "op_threshold", self.op_threshold, 0.0, 1.0, "the outlier probability above which a row is rejected"
            )
            if self.mode != "paper":
                raise InvalidInputError(
                    f"op_threshold={self.op_threshold} is for mode='paper'; otherwise use contamination=, "
                    "or leave it at 'auto'."
                )
        wishes = {
            "coverage": self.coverage,
            "min_support": self.min_support,
            "n_representatives": None if k == "auto" else k,
        }
        given = [f"{name}={value}" for name, value in wishes.items() if value is not None]
        if len(given) > 1:
            raise InvalidInputError(f"{' and '.join(given)} each say how many to choose. Give one of them.")
        if self.mode == "paper" and self.min_group is not None:
            raise InvalidInputError("mode='paper' knows no min_group; use mode='auto'.")
        if self.mode == "paper" and (self.coverage is not None or self.min_support is not None):
            raise InvalidInputError(
                f"mode='paper' knows no {given[0].split('=')[0]}; use n_representatives, or mode='auto'."
            )

    def number(self, n_rows: float) -> int | None:
        """K, if it is said."""
        k = self.n_representatives
        if k == "auto":
            return None
        return int(k) if isinstance(k, Integral) else max(1, round(float(k) * n_rows))


@dataclass(frozen=True)
class Solved:
    """What solving has found out about distinct points: all that choosing needs."""

    points: Distinct
    kernel: Kernel = field(repr=False)
    influence: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    demands: Demands = field(repr=False)
    random_state: int
    #: Weight of the points that one could stand for, and the cut that the counts came with, if any.
    count_total: float
    cut: Cut | None = None
    #: The points as vectors, if their similarity is left to us; None if it is the user's.
    vectors: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Choice:
    """Rows in the order of their rank, the distinct points that they are, who is an outlier and why.

    ``gains`` is what each pick added to the mean similarity of the points that belong to their nearest pick.
    """

    rows: IntArray
    points: IntArray
    gains: FloatArray
    cut: Cut
    is_outlier: BoolArray
    groups: Groups | None = None


@dataclass(frozen=True)
class _Participants:
    """Rows that may be chosen, distinct points to be covered with their weights, who is rejected, and who comes last."""

    pool: IntArray
    targets: IntArray
    weights: FloatArray
    rejected: BoolArray
    doubtful: BoolArray

    @classmethod
    def of(cls, solved: Solved, wants: Wants, cut: Cut, flagged: BoolArray) -> _Participants:
        """Who takes part, once the outliers are known."""
        rejected = flagged if wants.outliers == "reject" else np.zeros_like(flagged)
        pool = _pool(solved, rejected)
        targets, weights = _targets(solved, rejected, min(len(pool), MOST_CANDIDATES))
        return cls(pool, targets, weights, rejected, _doubtful(solved, cut, rejected))


def choose(solved: Solved, wants: Wants) -> Choice:
    """Representatives, by the rule of the mode."""
    cut, flagged, groups = flag(solved, wants)
    if wants.mode == "paper":
        return _choose_like_the_paper(solved, wants, cut, flagged)
    who = _Participants.of(solved, wants, cut, flagged)
    n = len(solved.points.group)
    k = wants.number(n)
    if k is None:
        k = solved.demands.fixed_total
    elif k > n:
        raise InvalidInputError(
            f"n_representatives={k} is more than there are points (n_samples = {n}). Ask for fewer."
        )
    if k is None and wants.coverage is not None:
        most = min(len(who.pool), MOST_CANDIDATES)
        rows, gains = _cover_with(solved, wants, most, who, as_far_as=True, until_explained=wants.coverage)
        if solved.demands.quotas is None:
            return Choice(rows, solved.points.group[rows], gains, cut, flagged, groups)
        k = len(rows)
    elif k is None:
        k = _number_of_picks(solved, wants, who)
    rows, gains = _cover_with(solved, wants, k, who)
    return Choice(rows, solved.points.group[rows], gains, cut, flagged, groups)


def rank(
    solved: Solved, wants: Wants, limit: int, choice: Choice, *, go_on: bool = False
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Up to ``limit`` rows in the order of what they add, with the similarity and the explained share of each prefix.

    Outliers are those of the choice. To go on, its rows come first, as they are.
    """
    if go_on:
        solved = replace(solved, demands=replace(solved.demands, must=choice.rows))
    who = _Participants.of(solved, wants, choice.cut, choice.is_outlier)
    rows, gains = _cover_with(solved, wants, min(limit, len(who.pool)), who, as_far_as=True)
    share = ExplainedShare(solved.kernel, who.targets, who.weights)
    return rows, np.cumsum(gains), np.array([share.add(int(point)) for point in solved.points.group[rows]])


def flag(solved: Solved, wants: Wants) -> tuple[Cut, BoolArray, Groups | None]:
    """The cut, for distinct points whether they are outliers, and groups that are none for their number.

    What must be included is vouched for by the user.
    """
    points, counts = solved.points, solved.counts
    if wants.outliers == "keep":
        cut = NOBODY
    elif wants.mode == "paper":
        n = points.total
        count = PAPER_SMALLEST_COUNT if wants.op_threshold is None else n - wants.op_threshold * (n - 1.0)
        cut = Cut(count, "threshold")
    elif wants.contamination == "auto":
        cut = solved.cut or find_cut(counts, solved.kernel, random_state=solved.random_state)
    else:
        cut = cut_for_share(counts, points.weights, float(wants.contamination))
    flagged = cut.below(counts)
    flagged[points.group[solved.demands.must]] = False
    groups = None
    if wants.min_group is not None and wants.outliers != "keep":
        groups = find_groups(solved.kernel, flagged, points.weights, wants.min_group, random_state=solved.random_state)
        flagged &= ~groups.members
    return cut, flagged, groups


def _doubtful(solved: Solved, cut: Cut, rejected: BoolArray) -> BoolArray:
    """Distinct points that are no outliers and yet are chosen last.

    Where a valley divides outliers from others, some of the former are on its other side: those with a count below the
    geometric mean of the cut and the median of the others.
    """
    if cut.rule != "valley" or not rejected.any():
        return np.zeros_like(rejected)
    return np.asarray(~rejected & (solved.counts < np.sqrt(cut.count * np.median(solved.counts[~rejected]))))


def _pool(solved: Solved, rejected: BoolArray) -> IntArray:
    """Rows that may be chosen: of the copies of a point within a group the first, must-include rows before others."""
    points, demands = solved.points, solved.demands
    may = demands.allowed & (points.group >= 0)
    may &= ~points.spread(rejected, True)
    rows = np.concatenate([demands.must, np.setdiff1d(np.flatnonzero(may), demands.must)])
    without = demands.must[points.group[demands.must] < 0]
    if len(without):
        raise InvalidInputError(
            f"must_include names row {int(without[0])}, whose sample_weight is 0. Give it a weight."
        )
    copies = np.unique(points.group[demands.must], return_counts=True)
    if (copies[1] > 1).any():
        twins = demands.must[points.group[demands.must] == copies[0][np.argmax(copies[1] > 1)]]
        raise InvalidInputError(
            f"must_include names rows {int(twins[0])} and {int(twins[1])}, which are equal: name one of them."
        )
    kinds = points.group[rows] * len(demands.names) + demands.group[rows]
    return rows[np.sort(np.unique(kinds, return_index=True)[1])]


def _targets(solved: Solved, rejected: BoolArray, n_candidates: int) -> tuple[IntArray, FloatArray]:
    """Distinct points to be covered and their weights; a sample, if all of them against all candidates are too many."""
    belong = np.flatnonzero(~rejected)
    some = subsample(len(belong), max(1000, MOST_SIMILARITIES // max(n_candidates, 1)), solved.random_state)
    weights = solved.points.weights[belong[some]]
    return belong[some], weights * (solved.points.weights[belong].sum() / weights.sum())


def _candidates(solved: Solved, pool: IntArray, k: int, *, anyone: bool = False) -> IntArray:
    """Rows with a non-zero row in the encoding, if they suffice for k; else, or for ``anyone``, the whole pool.

    Of too large a pool the most influential and a random part of each group, large enough for k of that group.
    """
    points, demands = solved.points.group, solved.demands
    located = pool[(solved.influence[points[pool]] > 0) | np.isin(pool, demands.must)]
    chosen = located if not anyone and len(np.unique(points[located])) >= k else pool
    if len(pool) > LARGE_POOL and chosen is located:
        others = np.setdiff1d(pool, located)
        chosen = np.concatenate(
            [located, _canonical(solved, others)[subsample(len(others), MIDST, solved.random_state)]]
        )
    if len(chosen) <= MOST_CANDIDATES:
        return _canonical(solved, chosen)
    by_influence = np.argsort(-solved.influence[points[chosen]], kind="stable")
    kept = [chosen[by_influence[: MOST_CANDIDATES // 2]], demands.must]
    others = _canonical(solved, chosen[by_influence[MOST_CANDIDATES // 2 :]])
    groups = np.unique(demands.group[others])
    for group in groups:
        members = others[demands.group[others] == group]
        size = max(MOST_CANDIDATES // 2 // len(groups), 2 * k)
        kept.append(members[subsample(len(members), size, solved.random_state)])
    return _canonical(solved, np.unique(np.concatenate(kept)))


def _canonical(solved: Solved, rows: IntArray) -> IntArray:
    """Rows in the order of their distinct points: ties are then broken by what points are and not by where they stand."""
    return rows[np.lexsort((rows, solved.points.group[rows]))]


def _number_of_picks(solved: Solved, wants: Wants, who: _Participants) -> int:
    """K where it is left to the data: as many as have support, or the knee of the curve."""
    n_must = len(solved.demands.must)
    if wants.min_support is not None:
        return max(_supported(solved, wants, who), n_must)
    _, gains = _cover_with(solved, wants, min(len(who.pool), MOST_AUTOMATIC), who, as_far_as=True)
    return max(knee(np.cumsum(gains)), n_must, 1)


def _supported(solved: Solved, wants: Wants, who: _Participants) -> int:
    """The largest number of picks each of which is the nearest for at least ``min_support`` points."""
    smallest, weights = float(wants.min_support or 1.0), who.weights
    if weights.sum() < smallest:
        raise InvalidInputError(
            f"min_support={smallest:g} is more than all {weights.sum():g} points that belong "
            f"(n_samples = {len(solved.points.group)}). Lower it."
        )
    limit = max(1, min(len(who.pool), int(weights.sum() / smallest), MOST_CANDIDATES))
    rows, _ = _cover_with(solved, wants, limit, who, as_far_as=True)
    places = solved.points.group[rows]
    lengths = solved.kernel.diagonal()[places]  # the measure is that of labels_
    D = without_rounding(lengths - 2.0 * solved.kernel.block(who.targets, places), float(lengths.max()))
    enough, nearest, best = 1, np.zeros(len(D), np.intp), D[:, 0].copy()
    for k in range(1, len(rows)):
        closer = D[:, k] < best
        nearest[closer], best[closer] = k, D[closer, k]
        if np.bincount(nearest, weights=weights, minlength=k + 1).min() >= smallest:
            enough = k + 1
    return enough


def _cover_with(
    solved: Solved,
    wants: Wants,
    k: int,
    who: _Participants,
    *,
    as_far_as: bool = False,
    until_explained: float | None = None,
) -> tuple[IntArray, FloatArray]:
    """Up to k rows and their gains. ``as_far_as`` ignores quotas and stops quietly where candidates end."""
    demands, points = solved.demands, solved.points
    pool, targets, weights = who.pool, who.targets, who.weights
    sizes = np.bincount(demands.group[pool], weights=points.weights[points.group[pool]], minlength=len(demands.names))
    named = dict(zip(demands.names, sizes.tolist(), strict=True))
    # Where distances decide, those with influence may not suffice however many they are.
    anyone = wants.diversity != "auto"
    candidates = _candidates(solved, pool, k, anyone=anyone)
    slots = Slots.free(len(candidates), k) if as_far_as else demands.slots(k, candidates, named)
    if not as_far_as and _short(slots, points.group[candidates]):
        candidates = _candidates(solved, pool, k, anyone=True)
        slots = demands.slots(k, candidates, named)
        demands.check_room(slots, k, points.group[candidates], candidates, points.spread(who.rejected, False))
    elif not as_far_as:
        demands.check_room(slots, k, points.group[candidates], candidates, np.zeros(len(points.group), dtype=bool))
    places = points.group[candidates]
    S = _similarities(solved, wants, targets, places)
    too_similar = None
    if wants.diversity != "auto":
        too_similar = shared_information_distance_matrix(solved.kernel, places) < float(wants.diversity)
    share = ExplainedShare(solved.kernel, targets, weights) if until_explained is not None else None
    forced = [int(np.flatnonzero(candidates == row)[0]) for row in demands.must]
    gains: list[float] = []
    doubtful = who.doubtful[places]
    # Those that are candidates for a large k only come last, so that the ranking is one and the same whatever k is.
    for_large_k = (solved.influence[places] == 0) & (len(pool) <= LARGE_POOL)
    last = np.where(for_large_k, 2, doubtful.astype(np.intp))
    chosen = []
    for pick in cover(S, weights, slots, twins=places, forced=forced, last=last, too_similar=too_similar):
        chosen.append(pick.candidate)
        gains.append(pick.gain)
        if share is not None and share.add(int(places[pick.candidate])) >= (until_explained or 0.0):
            break
    # Where the number is read off the curve, the picks are the curve's, a prefix of one ranking.
    if not as_far_as and too_similar is None and wants.n_representatives != "auto":
        chosen = improve(S, weights, chosen, slots, twins=places, fixed=forced, barred=doubtful)
        chosen, gains = _in_order(S, weights, chosen, len(forced))
    rows = [candidates[c] for c in chosen]
    if len(rows) < k and not as_far_as:
        raise InvalidInputError(
            f"{k} representatives are wanted, but after {len(rows)} no point is left that differs from them by "
            f"diversity={wants.diversity}. Lower diversity or n_representatives."
        )
    return np.array(rows, np.intp), np.array(gains) / weights.sum()


def _similarities(solved: Solved, wants: Wants, targets: IntArray, places: IntArray) -> FloatArray:
    """Those of the view, if the similarity is left to us; else the user's."""
    if solved.vectors is None:
        return similarities(solved.kernel, targets, places)
    n = solved.points.total
    k = wants.number(len(solved.points.group)) or solved.demands.fixed_total
    expected: float = k or n / neighbours_wanted(n, None)
    if wants.min_support is not None:
        expected = n / wants.min_support
    return view_similarities(solved.vectors, targets, places, expected, random_state=solved.random_state)


def _in_order(S: FloatArray, weights: FloatArray, chosen: list[int], n_forced: int) -> tuple[list[int], list[float]]:
    """The chosen, each the one that adds most to those before it; forced ones first. Ties as in ``cover``."""
    chosen = chosen[:n_forced] + sorted(chosen[n_forced:])
    alone = np.arange(len(chosen))
    ranked = cover(S[:, chosen], weights, Slots.free(len(chosen), len(chosen)), twins=alone, forced=range(n_forced))
    found = [(chosen[pick.candidate], pick.gain) for pick in ranked]
    return [c for c, _ in found], [gain for _, gain in found]


def shared_information_distance_matrix(kernel: Kernel, places: IntArray) -> FloatArray:
    """Normalised distances between points that may repeat (copies of one point in several groups)."""
    distinct, back = np.unique(places, return_inverse=True)
    return shared_information_distance(kernel, distinct, distinct)[np.ix_(back, back)]


def _short(slots: Slots, places: IntArray) -> bool:
    """Whether some slot has fewer distinct candidates than places."""
    return any(len(np.unique(places[slots.of == s])) < room for s, room in enumerate(slots.room))


def _choose_like_the_paper(solved: Solved, wants: Wants, cut: Cut, flagged: BoolArray) -> Choice:
    """Algorithm 1: non-zero rows by influence, novel ones by distance, outliers out; the first k if k is given."""
    located = np.flatnonzero(solved.influence)
    located = located[np.argsort(-solved.influence[located], kind="stable")]
    share = PAPER_DIVERSITY if wants.diversity == "auto" else float(wants.diversity)
    novel = located
    if share < 1 and len(located) > 1:
        squared = shared_information_distance(solved.kernel, located, located, normalised=False)
        novel = located[prune_similar(np.sqrt(squared), share)]
    if wants.op_threshold is None and flagged[novel].all():  # so narrow a kernel that everybody stands alone
        cut, flagged = NOBODY, np.zeros_like(flagged)
    kept = novel[~flagged[novel]] if wants.outliers == "reject" else novel
    if not len(kept):
        raise InvalidInputError(
            f"nothing is left: {len(located)} rows are not zero, {len(novel)} of them novel, and all stand for fewer than "
            f"{cut.count:.3g} points. Raise op_threshold, lower alpha, or widen the kernel."
        )
    k = wants.number(len(solved.points.group))
    kept = kept if k is None else kept[:k]
    return Choice(solved.points.first[kept], kept, solved.influence[kept], cut, flagged)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise InvalidInputError(f"{name} must be {' or '.join(repr(a) for a in allowed)}; got {value!r}.")


def _number(name: str, value: Any, low: float, high: float, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        bounds = f"between {low:g} and {high:g}" if np.isfinite(high) else f">= {low:g}"
        raise InvalidInputError(f"{name} must be a number {bounds} ({meaning}); got {value!r}.")
