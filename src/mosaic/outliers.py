"""Who does not belong: how many rows look like a row, from which number on it is an outlier, and groups that are kept.

**Effective counts** are found by small programs on random parts of the data. A program on b points x_i with weights ω_i
leaves q_y(i) = k(y, x_i) − Σ_j k(y, x_j) r_ji of the similarity of y and x_i, what is not already expressed by the rows r_j,
j ∈ S, of its solution. m_y = Σ_i ω_i |q_y(i)| / max_i |q_y(i)|, y itself among the i, is the effective number of points that
look like y: 1 if it is alone, b if all are alike. On the support it is the paper's measure, m = (n − 1)(1 − OP) + 1. With η the
solution of the design form,

    r(y) = P k_S(y),  P = (K_SS + diag(1/(lam η)))⁻¹,
    q_y(i) = k(y, x_i) − k_S(y)ᵀ P k_S(x_i),  q_y(y) = k(y, y) − k_S(y)ᵀ P k_S(y),

so a count costs b similarities and b·|S| products, for a row of the data and for a new one alike. Several programs on
different points are asked, and the geometric mean of their counts is the answer.

**The cut.** The paper's measure OP = (n − m)/(n − 1) is close to 1 for everybody when the kernel is narrow, so decisions are
made on log m. Left to itself, one rule decides for the selector and for the detector:

1. A valley in the distribution of log m separates a crowd of low counts from the rest (``find_valley``), at most half of all, and
   at most half as many others look like its members as like the rest: the crowd is out. If it is more than a twentieth of
   the rows and keeps to itself, four in five of the ten nearest neighbours of its members being members, it is a sparse group,
   and nobody is out.
2. Without a valley, rows that are alone are out: those whose count is below 1.1, or below 2 and in the far tail of the
   counts, log m < median − 2.5·(median − lowest tenth)/1.28; unless they are more than a twentieth of all.

So at most 5 % of the rows are rejected for being alone. On clean data without heavy tails it is about 1 % at most
(``tests/outliers/test_cut.py``), and a valley is found where there is none with a probability below 1e-5 for each place looked
at. Where tails are very heavy (lognormal, Cauchy), counts of what is far out pile up at 1 and there is a valley: more than 5 %
may be out then, with a warning. What the numbers were measured on is in ``docs/constants.md``.

**Groups.** At least g outliers that are one another's neighbours may be a rare kind rather than a fault, however sparse they are.
Two outliers are linked if each is among the five nearest rows of the other, and those that links connect are a group.

Notes
-----
1. The paper has one program on all points and the measure for rows with r_j ≠ 0. Small programs on random parts, the measure for
   every point, the cut and the groups are ours; ``mosaic.solve`` and ``mode="paper"`` have the paper's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

from mosaic._arrays import BoolArray, FloatArray, IntArray, Seed, row_blocks, subsample, subsample_of_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel
from mosaic.problem import DesignProblem, critical_lam, weighted_gram
from mosaic.working_set import solve_design

__all__ = [
    "CROWD_SHARE",
    "NOBODY",
    "Cut",
    "EffectiveCounts",
    "KeptGroups",
    "Rule",
    "cut_for_share",
    "find_cut",
    "find_groups",
    "find_valley",
    "group_sizes",
    "outlier_probability",
    "share_of_own_neighbours",
]

Rule: TypeAlias = Literal["alone", "valley", "contamination", "threshold", "none"]

#: Programs, points of each, and their strength (lam) for similarities whose diagonal is 1 on average.
PROGRAMS, PROGRAM_SIZE, PROGRAM_STRENGTH = 4, 128, 10.0
#: Relative gap that the small programs are solved to.
PROGRAM_GAP = 3e-4
#: Eigenvalues of a similarity below this share of the largest are rounding.
EIGENVALUE_ROUNDING = 1e-12
#: Points at less than this share of their squared lengths from one another are the same.
SAME_POINT = 1e-9
#: A row with at most this count is alone; one with at most the second if that is far below what is usual: so many deviations of a
#: normal distribution, found with the lowest tenth of the counts, which lies 1.28 deviations below the median.
ALONE, NEARLY_ALONE, FAR_BELOW, LOWEST_TENTH = 1.1, 2.0, 2.5, 1.2816
#: A valley must be this improbable in a distribution without one. Many places are tried, hence the small number.
VALLEY_LEVEL = 1e-5
#: Counts that differ by less than this share are those of the same point but for rounding.
SAME_COUNT = 1e-6
#: Widths of the valleys that are looked for, as shares of the range of log m.
VALLEY_WIDTHS = np.array([0.03, 0.05, 0.08, 0.12, 0.18, 0.25])
#: Outliers are no majority: no more than this share is rejected unless the user says how many there are. A little more than
#: half, so that half and half is not decided by a single point.
LARGEST_OUTLIER_SHARE = 0.55
#: What the right-hand side of a valley must hold of all points.
SMALLEST_REST = 0.1
#: Up to this share of the rows a crowd is rejected for its low counts alone; a larger one is kept if it keeps to itself. A
#: rejection of more than this share is warned of.
CROWD_SHARE = 0.05
#: Others that look like a typical member of a crowd of outliers, m − 1, as a share of those that look like a typical other
#: row. Two kinds of honest rows, one a little denser than the other, have a valley between them, too.
HALF_AS_MANY = 0.5
#: Neighbours that are looked at, the share of them that are members if a crowd keeps to itself, and members that are asked.
CROWD_NEIGHBOURS, KEEPS_TO_ITSELF, CROWD_SAMPLE = 10, 0.8, 500
#: Nearest rows among which members of a group find one another.
LINKED_NEIGHBOURS = 5
#: Outliers among which groups are looked for, at most.
MOST_GROUPED_OUTLIERS = 5000


@dataclass(frozen=True)
class SmallProgram:
    """One small program: its points among the reference points, their weights, S, P, and P K_S."""

    points: slice
    weights: FloatArray
    support: IntArray
    P: FloatArray
    R: FloatArray

    def log_counts(self, K: FloatArray, own: FloatArray, diagonal: FloatArray) -> FloatArray:
        """Log m of points with similarities K to the program's points and ``own`` to themselves."""
        at_support = K[:, self.support]
        itself = np.maximum(own - np.einsum("ij,ij->i", at_support @ self.P, at_support), 0.0)
        Q = np.abs(K - at_support @ self.R)
        known, place = _same(K, own, diagonal)
        Q[known, place] = itself[known]  # what it has in common with itself, which a kernel need not know (precomputed)
        is_new = np.ones(len(K))
        is_new[known] = 0.0
        largest = np.maximum(Q.max(axis=1, initial=0.0), itself)
        total = Q @ self.weights + is_new * itself
        return np.asarray(np.log(np.divide(total, largest, out=np.ones(len(K)), where=largest > 0).clip(1.0)))


def _same(K: FloatArray, own: FloatArray, diagonal: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of a row and a program's point that are the same; rows that are near to nobody are not looked at twice."""
    nearest = (K - 0.5 * diagonal).max(axis=1, initial=-np.inf)
    rows = np.flatnonzero(own - 2.0 * nearest <= SAME_POINT * (own + diagonal.max(initial=0.0)))
    lengths = own[rows, None] + diagonal
    found, place = np.nonzero(lengths - 2.0 * K[rows] <= SAME_POINT * lengths)
    return rows[found], place


@dataclass(frozen=True)
class EffectiveCounts:
    """Counts of any points, by programs on random parts of the data.

    Attributes
    ----------
    reference : the similarity over the points of all programs, one program after the other
    places : their numbers among the points that they were drawn from
    programs : what they have found
    total : weight of the points that a point could resemble, the mean over the programs

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> kernel = make_kernel(X, "rbf", gamma=0.5)
    >>> counts = EffectiveCounts.of(kernel, np.ones(500))
    >>> counts.at(np.array([[0.0, 0.0], [100.0, 0.0]])).round().tolist()
    [31.0, 1.0]
    """

    reference: Kernel
    places: IntArray
    programs: tuple[SmallProgram, ...]
    total: float

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        weights: FloatArray,
        random_state: Seed = 0,
        size: int | None = None,
        tol: float = PROGRAM_GAP,
    ) -> EffectiveCounts:
        """Draw the parts and solve the programs.

        Parameters
        ----------
        kernel : similarity of the points that parts are drawn from
        weights : how often each of them counts
        random_state : of the draw
        size : points of each part, ``PROGRAM_SIZE`` by default
        tol : relative gap that programs are solved to

        Notes
        -----
        1. Points are drawn by their number, so the answer depends on the order of the points and not of the data's rows.
        """
        rng = np.random.default_rng(random_state)
        size = PROGRAM_SIZE if size is None else int(size)
        n_programs = PROGRAMS if kernel.n > size else 1
        drawn = [subsample_of_weights(weights, size, rng) for _ in range(n_programs)]
        # Of a sample each point counts as often as it is there: how often in proportion to the others.
        drawn = [
            (some, stands * (len(some) / len(weights) if len(some) < len(weights) else 1.0)) for some, stands in drawn
        ]
        places = np.concatenate([some for some, _ in drawn])
        reference = kernel.take(places)
        programs, start = [], 0
        for some, counted in drawn:
            part = slice(start, start + len(some))
            programs.append(_solve(reference, part, counted, tol))
            start = part.stop
        return cls(reference, places, tuple(programs), float(np.mean([program.weights.sum() for program in programs])))

    def of_points(self, kernel: Kernel, members: IntArray) -> FloatArray:
        """Counts of some of the points that the parts were drawn from, ``kernel`` being the similarity between these."""
        own = kernel.diagonal()
        counts = np.empty(len(members))
        for rows in row_blocks(len(members), len(self.places)):
            counts[rows] = self._counts(kernel.block(members[rows], self.places), own[members[rows]])
        return counts

    def at(self, Y: Any) -> FloatArray:
        """Counts of new points, each as if it were added to the data alone; a point of the data counts as itself."""
        counts = np.empty(Y.shape[0])
        for rows in row_blocks(Y.shape[0], self.reference.n):
            counts[rows] = self._counts(self.reference.cross(Y[rows]), self.reference.diagonal_at(Y[rows]))
        return counts

    def _counts(self, K: FloatArray, own: FloatArray) -> FloatArray:
        diagonal = self.reference.diagonal()
        logs = [p.log_counts(K[:, p.points], own, diagonal[p.points]) for p in self.programs]
        return np.asarray(np.exp(np.mean(logs, axis=0)))


def _solve(reference: Kernel, part: slice, weights: FloatArray, tol: float) -> SmallProgram:
    """The program on one part of the reference points."""
    members = np.arange(part.start, part.stop)
    kernel = reference.take(members)
    lam = PROGRAM_STRENGTH / (float(kernel.diagonal().mean()) or 1.0)  # points without length have no strength
    K = kernel.block(members - part.start, members - part.start)
    F = _factor(K)
    problem = DesignProblem(F, weighted_gram(F, weights), lam)
    solved = lam > critical_lam(problem)
    eta: FloatArray = solve_design(problem, tol=tol).value if solved else np.zeros(len(members))
    support = np.flatnonzero(eta)
    eta, K = eta[support], K[support]
    P = np.linalg.inv(K[:, support] + np.diag(1.0 / (lam * eta))) if len(support) else np.zeros((0, 0))
    return SmallProgram(part, weights, support, P, P @ K)


def _factor(K: FloatArray) -> FloatArray:
    """F with F Fᵀ = K, by the eigenvalues that are more than rounding; of few points that costs next to nothing."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > EIGENVALUE_ROUNDING * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def outlier_probability(counts: FloatArray, n: float) -> FloatArray:
    """OP = (n − m)/(n − 1), the paper's measure, between 0 (stands for all) and 1 (for itself alone).

    Examples
    --------
    >>> import numpy as np
    >>> outlier_probability(np.array([1.0, 51.0, 101.0]), 101).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.asarray(np.clip((n - counts) / max(n - 1.0, 1.0), 0.0, 1.0))


@dataclass(frozen=True)
class Cut:
    """Points with an effective count below ``count`` are outliers; ``rule`` and ``p_value`` say where that came from."""

    count: float
    rule: Rule
    p_value: float = 1.0
    #: The highest count of a crowd that a valley separates and that was kept, since it keeps to itself; 0 if there is none.
    sparse_group: float = 0.0

    def below(self, counts: FloatArray) -> BoolArray:
        """True for outliers."""
        return np.asarray(counts < self.count)

    @property
    def reason(self) -> str:
        """Why points below are outliers, as the end of a sentence."""
        return {
            "alone": f"is alone: fewer than {self.count:.3g} rows look like it",
            "valley": f"belongs to a crowd apart that few rows look like, fewer than {self.count:.3g} (p = {self.p_value:.1g})",
            "contamination": f"is among the share that was declared contaminated (fewer than {self.count:.3g} rows look like it)",
            "threshold": f"is below the threshold: fewer than {self.count:.3g} rows look like it",
            "none": "nothing is an outlier",
        }[self.rule]


NOBODY = Cut(0.0, "none")


def cut_for_share(counts: FloatArray, weights: FloatArray, share: float) -> Cut:
    """The cut that leaves a share of the weight below it, as nearly as the counts allow without splitting equal ones."""
    order = np.argsort(counts, kind="stable")
    values, below = counts[order], np.cumsum(weights[order])
    # A cut may lie behind these. Counts that differ by rounding only, as those of a lonely pair do, are equal.
    steps = np.flatnonzero(values[1:] > values[:-1] * (1.0 + 1e-9))
    if not len(steps):
        return NOBODY
    miss = np.abs(below[steps] - share * below[-1])
    best = int(np.argmin(miss))
    if share * below[-1] < miss[best]:  # to flag nobody is nearer to the share
        return NOBODY
    at = steps[best]
    return Cut(float(np.sqrt(values[at] * values[at + 1])), "contamination")


def find_valley(counts: FloatArray) -> tuple[float, float]:
    """The count at the foot of the clearest valley of log m, and the probability of such a valley where none is.

    For a place t and a width w let A, B, C be the numbers of points in [t − w, t], (t, t + w] and the fullest window of
    that width to the right of it. Where the density grows from t − w to its mode, B is at least as likely as A to receive a
    point, so P(B or fewer of A + B) ≤ Bin(A + B, ½); the same holds for B and C on the way down from a mode. The larger of
    both tail probabilities is the p-value of a valley at (t, w). If the clearest one has most points below it, there is none.
    """
    u = np.sort(np.log(counts))
    # Points that are equal but for rounding have equal counts and say the same thing; those that are alone do not.
    u = u[np.append(True, (np.diff(u) > SAME_COUNT) | (u[1:] <= np.log(ALONE)))]
    n, span = len(u), float(u[-1] - u[0])
    if span <= 0:
        return 0.0, 1.0
    most = int(n * (1.0 - SMALLEST_REST))
    places = np.unique(np.concatenate([np.arange(min(most, 400)), np.linspace(0, max(most - 1, 0), 400).astype(int)]))
    t = u[places]
    best_p, best_cut = 1.0, 0.0
    for w in span * VALLEY_WIDTHS:
        start = np.searchsorted(u, t - w, "left")
        foot, far = np.searchsorted(u, t, "right"), np.searchsorted(u, t + w, "right")
        A, B = foot - start, far - foot
        in_window = np.searchsorted(u, u + w, "right") - np.arange(n)
        fullest_from = np.maximum.accumulate(in_window[::-1])[::-1]
        C = np.where(far < n, fullest_from[np.minimum(far, n - 1)], 0)
        p = np.maximum(binom.cdf(B, A + B, 0.5), binom.cdf(B, B + C, 0.5))
        p[n - far < SMALLEST_REST * n] = 1.0
        at = int(np.argmin(p))
        if p[at] < best_p:
            best_p, best_cut = float(p[at]), float(np.exp(0.5 * (t[at] + u[min(foot[at], n - 1)])))
    # A valley beyond half is not moved to where it would be allowed: that would cut a crowd in two.
    return (best_cut, best_p) if (counts < best_cut).mean() <= LARGEST_OUTLIER_SHARE else (0.0, 1.0)


def find_cut(counts: FloatArray, own_neighbours: Callable[[BoolArray], float]) -> Cut:
    """The cut that the counts themselves suggest; nobody, when nothing stands out.

    Parameters
    ----------
    counts : effective counts of distinct points
    own_neighbours : for a mask of points, the share of their nearest neighbours that are among them
    """
    count, p = find_valley(counts)
    low = counts < max(count, ALONE)
    if p < VALLEY_LEVEL and _is_sparse(counts, low):
        if low.mean() <= CROWD_SHARE or own_neighbours(low) < KEEPS_TO_ITSELF:
            return Cut(max(count, ALONE), "valley", p)
        return Cut(0.0, "none", sparse_group=count)
    count = alone_below(counts)
    return Cut(count, "alone") if (counts < count).mean() <= CROWD_SHARE else NOBODY


def _is_sparse(counts: FloatArray, low: BoolArray) -> bool:
    """Whether at most half as many others look like a typical one of these rows as like one of the rest."""
    return bool(np.median(counts[low]) - 1.0 <= HALF_AS_MANY * (np.median(counts[~low]) - 1.0))


def alone_below(counts: FloatArray) -> float:
    """The count below which a row is alone: between 1.1 and 2, where the far tail of log m ends.

    Examples
    --------
    >>> import numpy as np
    >>> alone_below(np.array([1.5, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.8])).__round__(2)
    2.0
    """
    tenth, middle = np.quantile(np.log(counts), [0.1, 0.5])
    return float(np.clip(np.exp(middle - FAR_BELOW * (middle - tenth) / LOWEST_TENTH), ALONE, NEARLY_ALONE))


def share_of_own_neighbours(kernel: Kernel, members: BoolArray, random_state: int = 0) -> float:
    """Share of the ten nearest neighbours of these points that are among them."""
    asked = np.flatnonzero(members)
    asked = asked[subsample(len(asked), CROWD_SAMPLE, random_state)]
    distances = kernel.distances(asked, np.arange(kernel.n))
    distances[np.arange(len(asked)), asked] = np.inf
    most = min(CROWD_NEIGHBOURS, kernel.n - 1)
    nearest = np.argpartition(distances, most - 1, axis=1)[:, :most]
    return float(members[nearest].mean())


@dataclass(frozen=True)
class KeptGroups:
    """Outliers that are kept because they are a group.

    Attributes
    ----------
    members : mask over all distinct points
    kernel : between the members; of all points, if there are none
    reach : for each member the distance, as the kernel orders points, within which its links are and no other outlier is
    """

    members: BoolArray
    kernel: Kernel
    reach: FloatArray

    def near(self, Y: Any) -> BoolArray:
        """New points that are as close to a member as those that it is linked to."""
        if not self.members.any():
            return np.zeros(Y.shape[0], dtype=bool)
        near = np.zeros(Y.shape[0], dtype=bool)
        for part in row_blocks(Y.shape[0], self.kernel.n):
            near[part] = (self.kernel.distances_at(Y[part]) <= self.reach * (1.0 + 1e-9)).any(axis=1)
        return near


def find_groups(kernel: Kernel, low: BoolArray, weights: FloatArray, smallest: float) -> KeptGroups:
    """KeptGroups of at least ``smallest`` points among those that are low.

    Parameters
    ----------
    kernel : similarity between distinct points
    low : which of them are outliers
    weights : how often each of them counts
    smallest : number of points, copies counted, that make a group

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.concatenate([np.arange(50.0), [200.0, 201.0, 202.0], [400.0]])[:, None]
    >>> kernel = make_kernel(X, "rbf", gamma=1e-4)
    >>> np.flatnonzero(find_groups(kernel, X.ravel() > 100, np.ones(54), 3).members).tolist()
    [50, 51, 52]
    """
    sizes, reach = group_sizes(kernel, low, weights)
    members = sizes >= smallest
    if not members.any():
        return KeptGroups(members, kernel, reach[members])
    inside, outside = np.flatnonzero(members), np.flatnonzero(low & ~members)
    for part in row_blocks(len(inside), len(outside)):
        apart = kernel.distances(inside[part], outside).min(axis=1, initial=np.inf)
        reach[inside[part]] = np.minimum(reach[inside[part]], (1.0 - 1e-6) * apart)
    return KeptGroups(members, kernel.take(inside), reach[members])


def group_sizes(kernel: Kernel, low: BoolArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each point the size of its group among the low ones, 0 for others, and how far away its farthest link is."""
    outliers = np.flatnonzero(low)
    if len(outliers) > MOST_GROUPED_OUTLIERS:
        raise InvalidInputError(
            f"looks for groups among {MOST_GROUPED_OUTLIERS:,} outliers at most, and there are {len(outliers):,}",
            "Lower `contamination`, or leave `min_group` out.",
            parameter="min_group",
        )
    sizes, reach = np.zeros(len(low)), np.zeros(len(low))
    if not len(outliers) or kernel.n < 2:
        return sizes, reach
    most = min(LINKED_NEIGHBOURS, kernel.n - 1)
    place = np.full(kernel.n, -1, np.intp)
    place[outliers] = np.arange(len(outliers))
    named = []
    for part in row_blocks(len(outliers), kernel.n):
        D = kernel.distances(outliers[part], np.arange(kernel.n))
        rows = np.arange(len(D))[:, None]
        D[rows.ravel(), outliers[part]] = np.inf
        nearest = np.argpartition(D, most - 1, axis=1)[:, :most]
        among = low[nearest]
        named.append(
            (np.broadcast_to(part.start + rows, nearest.shape)[among], place[nearest[among]], D[rows, nearest][among])
        )
    a, b, apart = (np.concatenate(parts) for parts in zip(*named, strict=True))
    mutual = np.isin(a * len(outliers) + b, b * len(outliers) + a)
    a, b = a[mutual], b[mutual]
    links = sp.coo_array((np.ones(len(a)), (a, b)), shape=(len(outliers), len(outliers)))
    group = connected_components(links, directed=False)[1]
    sizes[outliers] = np.bincount(group, weights=weights[outliers])[group]
    np.maximum.at(reach, outliers[a], apart[mutual])
    return sizes, reach
