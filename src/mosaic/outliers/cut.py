"""From effective counts to a decision: which rows do not belong.

The paper's measure OP = (n − m)/(n − 1) is close to 1 for everybody when the kernel is narrow, so decisions are made on
log m. Left to itself, one rule decides for the selector and for the detector:

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.stats import binom

from mosaic._arrays import BoolArray, FloatArray, subsample
from mosaic.kernels import Kernel

Rule: TypeAlias = Literal["alone", "valley", "contamination", "threshold", "none"]

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
LARGEST_SHARE = 0.55
#: What the right-hand side of a valley must hold of all points.
SMALLEST_REST = 0.1
#: Up to this share of the rows a crowd is rejected for its low counts alone; a larger one is kept if it keeps to itself. A
#: rejection of more than this share is warned of.
CROWD_SHARE = 0.05
#: Others that look like a typical member of a crowd of outliers, m − 1, as a share of those that look like a typical other
#: row. Two kinds of honest rows, one a little denser than the other, have a valley between them, too.
HALF_AS_MANY = 0.5
#: Neighbours that are looked at, the share of them that are members if a crowd keeps to itself, and members that are asked.
NEIGHBOURS, KEEPS_TO_ITSELF, ASKED = 10, 0.8, 500


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
    return (best_cut, best_p) if (counts < best_cut).mean() <= LARGEST_SHARE else (0.0, 1.0)


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
    asked = asked[subsample(len(asked), ASKED, random_state)]
    distances = kernel.distances(asked, np.arange(kernel.n))
    distances[np.arange(len(asked)), asked] = np.inf
    most = min(NEIGHBOURS, kernel.n - 1)
    nearest = np.argpartition(distances, most - 1, axis=1)[:, :most]
    return float(members[nearest].mean())
