"""Outliers: the effective count of each row, the cut below which rows are outliers, and groups that are kept.

**Effective counts** are the geometric mean of m_y = Σ_i ω_i |q_y(i)| / max_i |q_y(i)|, y itself among the i, over small programs
on random parts x_i of the data: the number of points that look like y, 1 if it is alone. q is what the solution η on the support
S leaves of the similarity, q_y(i) = k(y, x_i) − k_S(y)ᵀ P k_S(x_i) with P = (K_SS + diag(1/(lam η)))⁻¹ (``docs/math/counts``).

**The cut** is made on log m, by one rule for selector and detector whatever the share of the rows below it:

1. A valley separates a crowd of low counts (``find_valley``), if its typical count is in the far tail of the rest and its typical
   row farther from its tenth nearest than nine tenths of the rest. Linked pieces of it (``find_pieces``) are groups and kept if
   they have a middle of their own and are of no higher dimension than the rest (``is_group``); then what is left is looked at
   again. If nothing is a group, the crowd is rejected, unless it is of no higher dimension than the rest and its rows are one
   another's neighbours even if all others were nearer by a quarter.
2. Along a line (one column, a curve) no piece is a group, and a crowd is rejected only if it is of higher dimension than the
   rest.
3. Without a valley, rows that are alone and in no group are rejected; where ordinary rows may be alone, too (heavy tails, lines,
   mixed tables, around a group, or over 5 % are alone), they must be far from their tenth nearest. If over 5 % are, nobody is
   rejected.
4. ``min_group`` keeps other groups of outliers that are linked: among one another's five nearest rows.

The paper has one program on all points and a measure for rows with r_j ≠ 0; small programs, the measure for every point, the cut
and the groups are ours. ``docs/constants.md`` names the data on which the numbers were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtr, ndtri

from mosaic.arrays.blocks import (
    NO_ROWS,
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    in_blocks,
    row_blocks,
    subsample,
    subsample_of_weights,
)
from mosaic.arrays.xp import (
    Matrix,
    asarray_like,
    cholesky,
    namespace,
    on_host,
    rows_of,
    solve_with,
    to_device_of,
    with_diagonal,
    with_entries,
)
from mosaic.exceptions import InvalidInputError, NotPositiveSemidefiniteError
from mosaic.kernels import DISTANCES, Kernel, check_similarities
from mosaic.parameters import fields_of
from mosaic.program.problem import DesignProblem, critical_lam, weighted_gram
from mosaic.program.working_set import solve_design

#: Number of small programs, points in each, and their strength (lam) for similarities whose diagonal is 1 on average.
PROGRAMS = 4
PROGRAM_SIZE = 128
PROGRAM_STRENGTH = 10.0
#: Differences of squared distances below this share of them are rounding.
ROUNDING = 1e-9
#: The same for counts, computed in single precision where that is possible, and for similarities of rows that may be equal.
ROUNDING_OF_COUNTS = 1e-4
NEARLY_SAME = 1e-5
#: A row is alone if its count is below the first number, or below the second and in the far tail of the counts, which ends so
#: many deviations (the third) below the median.
ALONE = 1.1
NEARLY_ALONE = 2.0
FAR_BELOW = 2.5
#: Largest p-value of a valley, of which many are tested, and widths of these, as shares of the range of log m.
VALLEY_LEVEL = 1e-5
VALLEY_WIDTHS = np.array([0.03, 0.05, 0.08, 0.12, 0.18, 0.25])
#: Largest share of rows that is rejected unless it is given: a little more than half, so that one point decides no even split.
LARGEST_OUTLIER_SHARE = 0.55
#: Largest share of rows that are rejected for being alone. Rejecting more than this share gives a warning.
CROWD_SHARE = 0.05
#: A row is far if its tenth nearest row is so many deviations farther than usual.
NEIGHBOURS = 10
FAR = 3.6
#: A crowd stands apart if its members are one another's neighbours even if all other rows were nearer by this factor.
APART = 1.25
#: Fewer linked rows are no group and are judged one by one. Two rows are linked if the distance is less than this times either's
#: tenth nearest distance in the crowd.
SMALLEST_GROUP = 12
LINKED_WITHIN = 1.5
#: Rows of a lower dimension are along a line.
DIMENSION_OF_A_LINE = 1.5
#: A group has at least this share of the rows around its middle, and less than this times the dimension of the rest.
OWN_SHARE = 0.5
HIGHER_DIMENSION = 1.8
#: Rows of a crowd that are linked to one another, others being linked to these, and rows that tell what a crowd is like.
MOST_LINKED = 1000
MOST_ASKED = 200
#: Two outliers are linked if each is among this many nearest rows of the other.
LINKED_NEIGHBOURS = 5
#: Similarities that are computed at once: a megabyte, which stays in the cache of one core.
BLOCK = 1 << 17


@dataclass(frozen=True)
class CountingPrograms:
    """Effective counts of any points, by programs on random parts of the data: ``reference`` is the similarity over the points of
    all programs, ``places`` their numbers. ``weights`` ω_i and ``strengths`` lam η_i are programs × points, ``complement`` I − R
    is programs × points × points. ``total`` is the weight of the points that a point could resemble, the mean over the programs.
    """

    reference: Kernel
    places: IntArray
    weights: FloatArray
    strengths: FloatArray
    complement: FloatArray
    total: float
    is_exact: bool = False  # whether to count in double precision alone

    def __getstate__(self) -> dict[str, Any]:
        return fields_of(self)  # without what is computed from these

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        weights: FloatArray,
        random_state: Seed = 0,
        size: int | None = None,
        tol: float = 3e-4,
    ) -> CountingPrograms:
        """Draw parts of ``size`` points by number, in proportion to their weights, and solve their programs to a gap ``tol``."""
        rng = np.random.default_rng(random_state)
        size = PROGRAM_SIZE if size is None else int(size)
        n_programs = PROGRAMS if kernel.n > size else 1
        drawn = [subsample_of_weights(weights, size, rng) for _ in range(n_programs)]
        # The weights of a sample are scaled by its share of the points: each point counts in proportion to its copies.
        drawn = [(some, stands * (len(some) / len(weights))) for some, stands in drawn]
        places = np.concatenate([some for some, _ in drawn])
        reference = kernel.take(places)
        check_similarities(float(reference.diagonal().max()), kernel.dtype)
        # Every draw has the same number of points.
        counted = np.array([stands for _, stands in drawn])
        parts = np.arange(len(places)).reshape(counted.shape)
        solved = [
            _solve(reference, part, stands, tol)
            for part, stands in zip(parts, counted, strict=True)
        ]
        strengths, complement = (np.array(found) for found in zip(*solved, strict=True))
        return cls(
            reference, places, counted, strengths, complement, float(counted.sum(axis=1).mean())
        )

    def of_points(self, kernel: Kernel) -> FloatArray:
        """Counts of the points that the parts were drawn from; ``kernel`` is between these."""
        if self._in_single is not None:
            return self.at(kernel.X)
        own = kernel.diagonal()
        parts = self.places.reshape(self.weights.shape)

        def count(rows: slice) -> FloatArray:
            logs = [
                self._exact_logs(p, kernel.device_block(rows, part), own[rows])
                for p, part in enumerate(parts)
            ]
            return np.asarray(np.exp(np.mean(logs, axis=0)))

        return self._in_blocks(kernel.n, count)

    def at(self, Y: Matrix) -> FloatArray:
        """Counts of new points, each as if it alone were added to the data; a point of the data keeps its count."""
        return self._in_blocks(Y.shape[0], lambda rows: np.exp(self._mean_logs(rows_of(Y, rows))))

    def below(self, Y: Matrix, count: float) -> BoolArray:
        """Whether counts of new points are below this one. No log m is negative, so few programs decide most points."""
        least = np.log(max(count, 1.0))

        def compare(rows: slice) -> BoolArray:
            new = rows_of(Y, rows)
            found = self._mean_logs(new, least + ROUNDING_OF_COUNTS)
            close = np.flatnonzero(np.abs(found - least) <= ROUNDING_OF_COUNTS)
            if len(close) and self._in_single is not None:
                found[close] = replace(self, is_exact=True)._mean_logs(rows_of(new, close))
            return np.asarray(found < least)

        return self._in_blocks(Y.shape[0], compare) > 0

    def _in_blocks(self, n: int, answer: Callable[[slice], Any]) -> FloatArray:
        return np.concatenate(
            [np.zeros(0), *in_blocks(answer, n, self.weights.shape[1], BLOCK, on=self.reference.X)]
        )

    @cached_property
    def _references(self) -> list[Kernel]:
        return [
            self.reference.take(part)
            for part in np.arange(len(self.places)).reshape(self.weights.shape)
        ]

    @cached_property
    def _in_single(self) -> list[Callable[[Any], Any]] | None:
        """The similarities of new rows to the points of each program in single precision, where there is such a way."""
        found = [
            way
            for reference in self._references
            if (way := reference.cross_in_single()) is not None
        ]
        return found if found and not self.is_exact else None

    def _mean_logs(self, new: Any, enough: float = np.inf) -> FloatArray:
        """The mean of log m over the programs; of as many programs as make it larger than ``enough``."""
        programs = len(self.weights)
        sums = np.zeros(new.shape[0])
        undecided = np.arange(new.shape[0])
        for program, reference in enumerate(self._references):
            if not len(undecided):
                break
            rows = new if len(undecided) == len(sums) else rows_of(new, undecided)
            if self._in_single is None:
                sums[undecided] += self._exact_logs(
                    program, reference.device_cross(rows), reference.diagonal_at(rows)
                )
            else:
                sums[undecided] += self._logs_in_single(program, rows)
            undecided = undecided[sums[undecided] <= programs * enough]
        return sums / programs

    def _logs_in_single(self, program: int, rows: Any) -> FloatArray:
        """Log m in single precision; in double precision for rows that may be points of the program."""
        assert self._in_single is not None
        K = self._in_single[program](rows)
        same = np.flatnonzero(K.max(axis=1) >= 1.0 - NEARLY_SAME)
        none = NO_ROWS
        logs = self._logs(program, K, np.ones(len(K)), none, none)
        if len(same):
            some = rows_of(rows, same)
            reference = self._references[program]
            logs[same] = self._exact_logs(
                program, reference.device_cross(some), reference.diagonal_at(some)
            )
        return logs

    def _exact_logs(self, program: int, K: Matrix, own: FloatArray) -> FloatArray:
        return self._logs(program, K, own, *_same(K, own, self._references[program].diagonal()))

    def _logs(
        self, program: int, K: Matrix, own: FloatArray, known: IntArray, place: IntArray
    ) -> FloatArray:
        """Log m of rows with similarities K to the points of a program and ``own`` to themselves; ``known`` rows are such points,
        at ``place``.
        """
        xp = namespace(K)
        rows = np.arange(K.shape[0])
        left = K @ asarray_like(K, self.complement[program])
        # k_Sᵀ P k_S, since P (K_SS + diag(lam η)⁻¹) = I makes P k_S the lam η multiple of what is left of k_S.
        explained = (left * K) @ asarray_like(K, self.strengths[program])
        itself = np.maximum(own - on_host(explained), 0.0)
        # The similarity to itself, which a given kernel need not hold.
        Q = np.abs(left, out=left) if isinstance(left, np.ndarray) else xp.abs(left)
        columns = np.full(len(rows), -1)
        columns[known] = place
        if isinstance(Q, np.ndarray):
            Q[known, place] = itself[known]
        elif len(known):  # rows without such a place have column -1, which is none
            Q = with_entries(Q, to_device_of(Q, columns), asarray_like(Q, itself))
        largest = np.maximum(on_host(xp.max(Q, axis=1)), itself)
        total = on_host(Q @ asarray_like(Q, self.weights[program])) + np.where(
            columns < 0, itself, 0.0
        )
        counts = np.divide(total, largest, out=np.ones(len(rows)), where=largest > 0)
        return np.asarray(np.log(counts.clip(1.0)))


def _same(K: Matrix, own: FloatArray, diagonal: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of a row and a program's point that are the same; K is rows × points."""
    longest = float(diagonal.max())
    varies = bool((diagonal != longest).any())
    nearest = on_host(
        namespace(K).max(K - to_device_of(K, 0.5 * diagonal) if varies else K, axis=1)
    )
    apart = own - 2.0 * nearest if varies else own + longest - 2.0 * nearest
    row = np.flatnonzero(apart <= ROUNDING * (own + longest))
    if not len(row):
        return row, row
    near = on_host(rows_of(K, row))
    lengths = own[row, None] + diagonal
    found, place = np.nonzero(lengths - 2.0 * near <= ROUNDING * lengths)
    return row[found], place


def _solve(
    reference: Kernel, members: IntArray, weights: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray]:
    """Lam η and I − R of the program on some of the reference points."""
    everyone = np.arange(len(members))
    kernel = reference.take(members)
    # 1 if all points have length 0.
    lam = PROGRAM_STRENGTH / (float(kernel.diagonal().mean()) or 1.0)
    K = _refused_if_no_similarity(kernel.block(everyone, everyone))
    F = _factor(K)
    if F.shape[1] < len(K):
        K = F @ F.T
    problem = DesignProblem(
        F, weighted_gram(F, weights), lam, square=bool(np.abs(weights - 1.0).max() < 1e-12)
    )
    solved = lam > critical_lam(problem)
    eta: FloatArray = solve_design(problem, tol=tol).value if solved else np.zeros(len(members))
    support = np.flatnonzero(eta)
    complement = np.eye(len(K))
    if len(support):
        inner = with_diagonal(K[np.ix_(support, support)], 1.0 / (lam * eta[support]))
        complement[support] -= solve_with(cholesky(inner), K[support])
    return lam * eta, complement


def _refused_if_no_similarity(K: FloatArray) -> FloatArray:
    """K, symmetric; refused if a row resembles another more than both resemble themselves."""
    K, own = 0.5 * (K + K.T), K.diagonal()
    beyond = K - 0.5 * (own[:, None] + own)
    if beyond.max(initial=0.0) > 1e-6 * float(np.abs(K).max()):
        i, j = divmod(int(beyond.argmax()), len(K))
        fault = f"a row resembles another by {K[i, j]:g}, and both resemble themselves by {own[i]:g} and {own[j]:g}"
        raise NotPositiveSemidefiniteError(fault, DISTANCES)
    return K


def _factor(K: FloatArray) -> FloatArray:
    """F with F Fᵀ = K: by Cholesky, or from the eigenvalues above rounding where others are not: without negative ones."""
    rounding = 1e-12  # as a share of the largest eigenvalue
    try:
        cholesky(with_diagonal(K.copy(), -rounding * float(np.abs(K).sum(axis=1).max())))
        return np.asarray(cholesky(K.copy()))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(K)
        kept = values > rounding * max(float(values[-1]), 0.0)
        return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def outlier_probability(counts: FloatArray, n: float) -> FloatArray:
    """OP = (n − m)/(n − 1), the paper's measure, between 0 (stands for all points) and 1 (only for itself)."""
    return np.asarray(np.clip((n - counts) / max(n - 1.0, 1.0), 0.0, 1.0))


@dataclass(frozen=True)
class Cut:
    """Points with an effective count below ``count`` are outliers, by this rule."""

    count: float
    rule: Literal["alone", "valley", "contamination", "threshold", "none"]

    def below(self, counts: FloatArray) -> BoolArray:
        return counts < self.count


NO_OUTLIERS = Cut(0.0, "none")


def cut_for_share(counts: FloatArray, weights: FloatArray, share: float) -> Cut:
    """The cut with a given share of the weight below it, as nearly as possible without splitting equal counts."""
    order = np.argsort(counts, kind="stable")
    values = counts[order]
    below = np.cumsum(weights[order])
    # A cut may follow each of these. Counts that differ by rounding only, such as those of two points that are alone together,
    # are equal.
    steps = np.flatnonzero(values[1:] > values[:-1] * (1.0 + ROUNDING_OF_COUNTS))
    none = Cut(0.0, "contamination")
    if not len(steps):
        return none
    miss = np.abs(below[steps] - share * below[-1])
    best = int(np.argmin(miss))
    if share * below[-1] < miss[best]:  # no outliers at all is nearer to the share
        return none
    at = steps[best]
    return Cut(float(np.sqrt(values[at] * values[at + 1])), "contamination")


def find_valley(counts: FloatArray) -> tuple[float, float]:
    """The count at the foot of the clearest valley of log m, and its p-value: the larger of P(B or fewer of A + B) and of B + C
    by Bin(·, ½), A, B, C the numbers of points in [t − w, t], (t, t + w] and the fullest window of width w to the right of it.
    Where the density grows from t − w to its mode, B is at least as likely as A to receive a point, and so on the way down from a
    mode.
    """
    u = np.sort(np.log(counts))
    # Points that are equal up to rounding have equal counts and are counted once; points that are alone are all counted.
    u = u[np.append(True, (np.diff(u) > ROUNDING_OF_COUNTS) | (u[1:] <= np.log(ALONE)))]
    n = len(u)
    span = float(u[-1] - u[0])
    if span <= 0:
        return 0.0, 1.0
    spread = np.linspace(0, n - 1, 400).astype(int)
    places = np.union1d(np.arange(min(n, 400)), spread)
    t = u[places]
    best_p = 1.0
    best_cut = 0.0
    for w in span * VALLEY_WIDTHS:
        start = np.searchsorted(u, t - w, "left")
        foot = np.searchsorted(u, t, "right")
        far = np.searchsorted(u, t + w, "right")
        A = foot - start
        B = far - foot
        in_window = np.searchsorted(u, u + w, "right") - np.arange(n)
        fullest_from = np.maximum.accumulate(in_window[::-1])[::-1]
        C = np.where(far < n, fullest_from[np.minimum(far, n - 1)], 0)
        p = np.maximum(bdtr(B, A + B, 0.5), bdtr(B, B + C, 0.5))
        at = int(np.argmin(p))
        if p[at] < best_p:
            best_p = float(p[at])
            best_cut = float(np.exp(0.5 * (t[at] + u[min(foot[at], n - 1)])))
    # A valley with too many points below it is not moved to an allowed place: that would cut a crowd in two.
    return (best_cut, best_p) if (counts < best_cut).mean() <= LARGEST_OUTLIER_SHARE else (0.0, 1.0)


class Piece(NamedTuple):
    """Linked points: all of them, and those that new ones are compared with, which reach so far."""

    members: IntArray
    frame: IntArray
    reach: FloatArray


def find_outliers(
    counts: FloatArray, kernel: Kernel, random_state: int = 0, *, mixed: bool = False
) -> tuple[Cut, KeptGroups | None]:
    """The cut that the counts of distinct points and their distances suggest, and rows below it that are kept."""
    groups: list[Piece] = []
    others = np.ones(len(counts), dtype=bool)
    # Along a line every tail is a piece of its own, and counts of tails have valleys: only noise is a crowd there.
    usual = _some(others, random_state, MOST_ASKED)
    is_line = len(usual) > SMALLEST_GROUP and dimension(kernel, usual) < DIMENSION_OF_A_LINE
    while (cut := find_crowd(counts, others, kernel, random_state)) is not None:
        low = others & cut.below(counts)
        found = [] if is_line else honest_groups(kernel, low, random_state)
        if not found:
            break
        groups += found
        others[np.concatenate([group.members for group in found])] = False
    if cut is not None and not keeps_to_itself(kernel, low, random_state, is_line):
        return cut, KeptGroups.of(kernel, low, groups)
    tail = far_tail(counts[others], 0.1)
    cut = Cut(float(np.clip(tail, ALONE, NEARLY_ALONE)), "alone")
    low = others & cut.below(counts)
    if low.all() or not low.any():
        return (NO_OUTLIERS if low.any() else cut), KeptGroups.of(kernel, low, groups)
    _, far = usual_distances(kernel, others & ~low, random_state)
    found = [] if is_line else honest_groups(kernel, low, random_state)
    for group in found:
        low[group.members] = False
    # Where tails are heavy, many rows are alone, along a line, in mixed tables and around groups, ordinary rows are alone, too.
    also_near = mixed or is_line or tail < ALONE or low.mean() > CROWD_SHARE or groups or found
    alone = np.flatnonzero(low) if also_near else NO_ROWS
    near = alone[tenth_nearest(kernel, alone) <= far]
    low[near] = False
    if low.mean() > CROWD_SHARE:
        cut = NO_OUTLIERS
    return cut, KeptGroups.of(
        kernel, low, groups + found, Piece(near, near, np.full(len(near), far))
    )


def find_crowd(
    counts: FloatArray, others: BoolArray, kernel: Kernel, random_state: int
) -> Cut | None:
    """The valley below which a crowd of the other rows is far from all of them; None without any."""
    count, p = find_valley(counts[others])
    low = others & (counts < count)
    rest = others & ~low
    # No count is below 1, so those of far rows pile up there where tails are heavy, and a valley follows that is no gap.
    if p >= VALLEY_LEVEL or np.median(counts[low]) >= far_tail(counts[rest], 0.25):
        return None
    high, _ = usual_distances(kernel, rest, random_state)
    # A valley may also cut off the edge of a cluster.
    typical = np.median(tenth_nearest(kernel, _some(low, random_state)))
    return Cut(count, "valley") if typical > high else None


def honest_groups(kernel: Kernel, low: BoolArray, random_state: int) -> list[Piece]:
    pieces = find_pieces(kernel, np.flatnonzero(low), random_state)
    return [piece for piece in pieces if is_group(kernel, piece, low, random_state)]


def find_pieces(kernel: Kernel, crowd: IntArray, random_state: int) -> list[Piece]:
    """The connected components of a crowd, of at least a dozen, x and y linked if d(x, y) ≤ 1.5 min(t(x), t(y)), t the distance
    to the tenth nearest in the crowd. Of a large crowd a sample is linked; others belong to a piece that reaches them.
    """
    drawn = subsample(len(crowd), MOST_LINKED, random_state)
    if len(drawn) < SMALLEST_GROUP:
        return []
    frame = crowd[drawn]
    D = kernel.distances(frame, frame)
    np.fill_diagonal(D, np.inf)
    reach = LINKED_WITHIN**kernel.order * np.partition(D, NEIGHBOURS - 1, axis=1)[:, NEIGHBOURS - 1]
    linked = sp.csr_array(np.minimum(reach[:, None], reach) >= D)
    number = np.full(len(crowd), -1)
    number[drawn] = connected_components(linked, directed=False)[1]
    left = np.flatnonzero(number < 0)
    for part in row_blocks(len(left), len(frame), BLOCK):
        D = kernel.distances(crowd[left[part]], frame)
        nearest = D.argmin(axis=1)
        is_reached = D[np.arange(len(D)), nearest] <= reach[nearest]
        number[left[part]] = np.where(is_reached, number[drawn[nearest]], -1)
    large = np.flatnonzero(np.bincount(number[number >= 0]) >= SMALLEST_GROUP)
    places = [number[drawn] == piece for piece in large]
    return [
        Piece(crowd[number == piece], frame[at], reach[at])
        for piece, at in zip(large, places, strict=True)
    ]


def is_group(kernel: Kernel, piece: Piece, low: BoolArray, random_state: int) -> bool:
    """Whether a piece of the low rows is of no higher dimension than the rest and has a middle of its own: at least half of all
    rows in the balls around its ten densest rows with half of the piece in them.
    """
    asked = piece.frame[subsample(len(piece.frame), MOST_ASKED, random_state)]
    D = np.sort(kernel.distances(asked, asked), axis=1)
    densest = np.argsort(D[:, min(NEIGHBOURS, len(asked) - 1)], kind="stable")[:NEIGHBOURS]
    radius = D[densest, len(asked) // 2]
    in_ball = kernel.distances(asked[densest], np.arange(kernel.n)) <= radius[:, None]
    own = in_ball[:, piece.members].sum(axis=1) / in_ball.sum(axis=1)
    return bool(own.mean() >= OWN_SHARE) and not is_of_higher_dimension(
        kernel, asked, low, random_state
    )


def keeps_to_itself(kernel: Kernel, low: BoolArray, random_state: int, is_line: bool) -> bool:
    asked = _some(low, random_state, MOST_ASKED)
    is_own = is_line or own_neighbours(kernel, low, asked).mean() >= OWN_SHARE
    return bool(is_own) and not is_of_higher_dimension(kernel, asked, low, random_state)


def is_of_higher_dimension(
    kernel: Kernel, asked: IntArray, low: BoolArray, random_state: int
) -> bool:
    """Whether the dimension of these rows is 1.8 times that of as many rows that are not low, the mean of five samples."""
    rest = np.flatnonzero(~low)
    found: list[float] = []
    for draw in range(5):
        sample = rest[subsample(len(rest), len(asked), random_state + draw)]
        # Where the rest are clusters, the rows of a sample have their neighbours in other ones: as many rows that are near, too.
        many = rest[subsample(len(rest), MOST_LINKED, random_state + draw)]
        near = many[np.argsort(kernel.distances(sample[:1], many)[0], kind="stable")[: len(asked)]]
        found.append(max(dimension(kernel, sample), dimension(kernel, near)))
    return bool(dimension(kernel, asked) >= HIGHER_DIMENSION * np.mean(found))


def dimension(kernel: Kernel, points: IntArray) -> float:
    """1 / mean log(t_k / t_j) over the points and j < k = 10, t_j the distance to the j-th nearest of them (Levina and Bickel).

    It is nearly 0 if all distances are equal, and ∞ for fewer than three points.
    """
    if len(points) < 3:
        return np.inf
    D = kernel.distances(points, points)
    np.fill_diagonal(D, np.inf)
    most = min(NEIGHBOURS, len(points) - 1)
    t = np.sort(np.partition(D, most - 1, axis=1)[:, :most], axis=1)
    farthest = np.maximum(t[:, -1:], np.finfo(float).tiny)
    logs = np.log(farthest / np.maximum(t[:, :-1], ROUNDING * farthest))
    return kernel.order / float(max(logs.mean(), ROUNDING))


def just_above(count: float, others: FloatArray) -> float:
    """The end of the doubtful counts above a valley: the geometric mean of its foot and the median of the others."""
    return float(np.sqrt(count * np.median(others)))


def far_tail(counts: FloatArray, share: float) -> float:
    """The end of the far tail of log m: 2.5 deviations below the median, a deviation from the quantile of this share."""
    low, middle = np.quantile(np.log(counts), [share, 0.5])
    return float(np.exp(middle + FAR_BELOW * (middle - low) / ndtri(share)))


def tenth_nearest(kernel: Kernel, points: IntArray) -> FloatArray:
    """The distance of each of these points to its tenth nearest point, or to the farthest of fewer."""
    place = min(NEIGHBOURS, kernel.n - 1) - 1
    found = np.empty(len(points))
    for part, D in _to_others(kernel, points):
        found[part] = np.partition(D, place, axis=1)[:, place]
    return found


def _to_others(kernel: Kernel, points: IntArray) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of these points, and their distances to all points, ∞ to themselves."""
    for part in row_blocks(len(points), kernel.n, BLOCK):
        D = kernel.distances(points[part], np.arange(kernel.n))
        D[np.arange(len(D)), points[part]] = np.inf
        yield part, D


def usual_distances(kernel: Kernel, rest: BoolArray, random_state: int) -> tuple[float, float]:
    """The tenth nearest distance that a tenth of these rows exceeds, and that beyond which a row is far."""
    found = tenth_nearest(kernel, _some(rest, random_state))
    middle, high, higher = np.log(
        np.maximum(np.quantile(found, [0.5, 0.9, 0.95]), np.finfo(float).tiny)
    )
    return float(np.exp(high)), float(
        np.exp(middle + FAR * max(higher - middle, ROUNDING) / ndtri(0.95))
    )


def _some(members: BoolArray, random_state: int, size: int = 500) -> IntArray:
    """A sample that says what is usual."""
    inside = np.flatnonzero(members)
    return inside[subsample(len(inside), size, random_state)]


def own_neighbours(kernel: Kernel, members: BoolArray, asked: IntArray) -> FloatArray:
    """For each of these points, the share of its ten nearest that are members, if all others were nearer by a quarter."""
    most = min(NEIGHBOURS, kernel.n - 1)
    found = np.empty(len(asked))
    for part, D in _to_others(kernel, asked):
        D[:, ~members] /= APART**kernel.order
        found[part] = members[np.argpartition(D, most - 1, axis=1)[:, :most]].mean(axis=1)
    return found


@dataclass(frozen=True)
class KeptGroups:
    """Points that are kept whatever their counts: ``group`` is 1, 2, … for members of groups, the largest first, -1 for others
    that are kept, and 0 for points that are not. ``kernel`` is between some of them, which reach rows within these distances.
    """

    group: IntArray
    kernel: Kernel
    reach: FloatArray

    @classmethod
    def of(
        cls, kernel: Kernel, outliers: BoolArray, groups: Sequence[Piece], near: Piece | None = None
    ) -> KeptGroups | None:
        """These groups, and points that are near to others; nobody reaches an outlier. None if there are no such points."""
        # Of equal size, the one found first.
        groups = sorted(groups, key=lambda piece: -len(piece.members))
        pieces = [*groups, near] if near is not None else groups
        if not sum(len(piece.members) for piece in pieces):
            return None
        group = np.zeros(kernel.n, dtype=np.intp)
        for number, piece in enumerate(groups, 1):
            group[piece.members] = number
        if near is not None:
            group[near.members] = -1
        outside = np.flatnonzero(outliers & (group == 0))
        frame, reach = (np.concatenate([piece[field] for piece in pieces]) for field in (1, 2))
        for part in row_blocks(len(frame), len(outside)):
            apart = kernel.distances(frame[part], outside).min(axis=1, initial=np.inf)
            reach[part] = np.minimum(reach[part], (1.0 - 1e-6) * apart)
        return cls(group, kernel.take(frame), reach)

    @property
    def members(self) -> BoolArray:
        return np.asarray(self.group != 0)

    def near(self, Y: Matrix) -> BoolArray:
        """Mask of the new points that are within the reach of a member."""
        near = np.zeros(Y.shape[0], dtype=bool)
        for part in row_blocks(Y.shape[0], self.kernel.n):
            near[part] = (
                self.kernel.distances_at(rows_of(Y, part)) <= self.reach * (1.0 + ROUNDING)
            ).any(axis=1)
        return near


def find_groups(
    kernel: Kernel, low: BoolArray, weights: FloatArray, smallest: float
) -> KeptGroups | None:
    """The groups of at least ``smallest`` points, copies counted, among the outliers."""
    sizes, reach = group_sizes(kernel, low, weights)
    members = np.flatnonzero(sizes >= smallest)
    return KeptGroups.of(kernel, low, [], Piece(members, members, reach[members]))


def group_sizes(
    kernel: Kernel, low: BoolArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For each outlier the size of its group and the distance of its farthest link; 0 for other points."""
    outliers = np.flatnonzero(low)
    if len(outliers) > 5000:
        fault = f"looks for groups among 5,000 outliers at most, and there are {len(outliers):,}"
        raise InvalidInputError(
            fault, "Lower `contamination`, or leave `min_group` out.", parameter="min_group"
        )
    sizes = np.zeros(len(low))
    reach = np.zeros(len(low))
    if not len(outliers) or kernel.n < 2:
        return sizes, reach
    most = min(LINKED_NEIGHBOURS, kernel.n - 1)
    place = np.full(kernel.n, -1, np.intp)
    place[outliers] = np.arange(len(outliers))
    named = []
    for part, D in _to_others(kernel, outliers):
        nearest = np.argpartition(D, most - 1, axis=1)[:, :most]
        row, near = np.nonzero(low[nearest])
        other = nearest[row, near]
        named.append((part.start + row, place[other], D[row, other]))
    a, b, apart = (np.concatenate(parts) for parts in zip(*named, strict=True))
    mutual = np.isin(a * len(outliers) + b, b * len(outliers) + a)
    a = a[mutual]
    b = b[mutual]
    links = sp.coo_array((np.ones(len(a)), (a, b)), shape=(len(outliers), len(outliers)))
    group = connected_components(links, directed=False)[1]
    sizes[outliers] = np.bincount(group, weights=weights[outliers])[group]
    np.maximum.at(reach, outliers[a], apart[mutual])
    return sizes, reach
