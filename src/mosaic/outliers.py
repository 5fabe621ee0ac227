"""From effective counts to a decision: who stands for nobody but itself, and is that a fault or a fashion.

The paper's measure OP = (n − m)/(n − 1) is close to 1 for everybody when the kernel is narrow, so decisions are made on
log m. Left to itself, the rule flags

- points that stand for themselves alone (m ≤ 1.1), and
- a crowd of low counts that a valley in the distribution of log m separates from the rest,

unless those points hold together as well as the others do once they are looked at on their own scale: then they are a
sparse cluster, and no outliers. All three constants are ours; ``docs/decisions/0010`` says what they were tried on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import binom

from mosaic._arrays import BoolArray, FloatArray, IntArray, subsample
from mosaic.kernels import RBF, EffectiveCount, Kernel, Laplacian, make_kernel
from mosaic.program import encode

Rule: TypeAlias = Literal["isolated", "valley", "contamination", "threshold", "none"]

#: A point that stands for at most this many stands for itself alone.
ISOLATED = 1.1
#: A valley must be this improbable in a distribution without one. Many places are tried, hence the small number.
VALLEY_LEVEL = 1e-5
#: Widths of the valleys that are looked for, as shares of the range of log m.
VALLEY_WIDTHS = np.array([0.03, 0.05, 0.08, 0.12, 0.18, 0.25])
#: Outliers are no majority: no more than this share is flagged unless the user says how many there are. A little more than
#: half, so that half and half is not decided by a single point.
LARGEST_SHARE = 0.55
#: What the right-hand side of a valley must hold of all points.
SMALLEST_REST = 0.1
#: From this number on low counts may be a cluster of their own.
SMALLEST_CROWD = 10
#: A crowd is a cluster if its counts on its own scale reach this share of what the others reach on theirs …
COHESION = 0.75
#: … and at least this share of its members' neighbours are members; or half of them, if the crowd is not sparser by this
#: factor than the others are: who of two groups is the odd one cannot be told then.
PURITY, HALF_PURE, SPARSER = 0.75, 0.5, 2.0
#: Points of the larger side that the comparison looks at, those of the smaller that it needs, and neighbours of each.
CROWD_SAMPLE, FEW, NEIGHBOURS = 1000, 100, 10


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

    def below(self, counts: FloatArray) -> BoolArray:
        """True for outliers."""
        return np.asarray(counts < self.count)

    @property
    def reason(self) -> str:
        """Why points below are outliers, as the end of a sentence."""
        return {
            "isolated": f"stands for itself alone (fewer than {self.count:.3g} points)",
            "valley": f"belongs to a separate crowd that stands for fewer than {self.count:.3g} points each "
            f"(p = {self.p_value:.1g})",
            "contamination": f"is among the share that was declared contaminated (fewer than {self.count:.3g} points)",
            "threshold": f"stands for fewer points than the threshold {self.count:.3g}",
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
    if share * below[-1] < miss[best]:  # nobody is nearer to the wish
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
    n, span = len(u), float(u[-1] - u[0])
    if span <= 0:
        return 0.0, 1.0
    most = int(n * (1.0 - SMALLEST_REST))
    places = np.unique(np.concatenate([np.arange(min(most, 400)), np.linspace(0, max(most - 1, 0), 400).astype(int)]))
    t = u[places]
    best_p, best_cut, below = 1.0, 0.0, 0
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
            below = int(foot[at])
    # A valley beyond half is not moved to where it would be allowed: that would cut a crowd in two.
    return (best_cut, best_p) if below <= LARGEST_SHARE * n else (0.0, 1.0)


def find_cut(counts: FloatArray, kernel: Kernel, *, alone: float = ISOLATED, random_state: int = 0) -> Cut:
    """The cut that the counts themselves suggest; nobody, when nothing stands out.

    Parameters
    ----------
    counts : effective counts of distinct points
    kernel : the similarity between them
    alone : count below which a point stands for itself alone
    random_state : seed of the sample that a crowd is judged by
    """
    isolated = Cut(alone, "isolated")
    count, p = find_valley(counts)
    proposals = [Cut(max(count, alone), "valley", p)] if p < VALLEY_LEVEL else []
    crowd = np.zeros(len(counts), dtype=bool)
    for cut in [*proposals, isolated]:
        low = cut.below(counts)
        crowd |= low  # once found to be a cluster, its sparsest members are among their own
        if low.sum() <= LARGEST_SHARE * len(counts) and not is_cluster(kernel, low, crowd, random_state=random_state):
            return cut
    return NOBODY


def is_cluster(kernel: Kernel, low: BoolArray, crowd: BoolArray, *, random_state: int = 0) -> bool:
    """Whether these points hold together on their own scale as well as the others do on theirs, and keep to the crowd.

    Either side gets a kernel of its own whose bandwidth fits it; the medians of their effective counts are compared.
    Scattered noise stays scattered at any scale, or has the others among its neighbours.

    Notes
    -----
    1. Kernels without a bandwidth cannot be rescaled; their low counts are never taken for a cluster.
    """
    members, others = np.flatnonzero(low), np.flatnonzero(~low)
    if min(len(members), len(others)) < SMALLEST_CROWD or not isinstance(kernel, (RBF, Laplacian)):
        return False
    rng = np.random.default_rng(random_state)
    # Both sides are thinned alike: how dense they are is part of how well they hold together.
    rate = min(1.0, CROWD_SAMPLE / max(len(members), len(others)))
    sizes = (max(FEW, round(rate * len(rows))) for rows in (members, others))
    some_members, some_others = (
        rows[subsample(len(rows), size, rng)] for rows, size in zip((members, others), sizes, strict=True)
    )
    wanted = min(20.0, 0.5 * len(some_members), 0.5 * len(some_others))
    if _own_scale_count(kernel, some_members, wanted) < COHESION * _own_scale_count(kernel, some_others, wanted):
        return False
    everyone = subsample(kernel.n, 20_000, rng)
    distances = kernel.distances(some_members, everyone)  # similarities of far points may all be 0
    distances[some_members[:, None] == everyone] = np.inf
    nearest = everyone[np.argpartition(distances, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]]
    purity = float(crowd[nearest].mean())
    if purity >= PURITY or purity < HALF_PURE:
        return purity >= PURITY
    return _spacing(kernel, some_members, everyone) < SPARSER * _spacing(kernel, some_others, everyone)


def _spacing(kernel: RBF | Laplacian, rows: IntArray, everyone: IntArray) -> float:
    """Median distance of these points to their fifth nearest neighbour, as the kernel measures distance."""
    distances = kernel.distances(rows, everyone)
    distances[rows[:, None] == everyone] = np.inf
    spacing = float(np.median(np.partition(distances, NEIGHBOURS // 2 - 1, axis=1)[:, NEIGHBOURS // 2 - 1]))
    return float(np.sqrt(spacing)) if isinstance(kernel, RBF) else spacing


def _own_scale_count(kernel: RBF | Laplacian, rows: IntArray, wanted: float) -> float:
    """Median effective count of these points alone, with a bandwidth at which they resemble ``wanted`` of one another."""
    name = "rbf" if isinstance(kernel, RBF) else "laplacian"
    alone = make_kernel(kernel.X[rows], name, gamma=EffectiveCount(wanted))
    return float(np.median(encode(alone, lam=10.0, tol=1e-3).effective_count))
