"""How odd a point is, looked at from nearby and from afar.

In a narrow kernel, points that lie scattered between the folds of a sheet stand for few, but a small crowd far from everybody
stands for all of its own. In a wide kernel it is the other way round. So a detector counts in both: five neighbours, and
eighty. Let u = log m at either scale, with mean μ and deviation σ over the reference points. A point's combined count is

    log m = min(u_near, μ_near + σ_near (1 + (u_far − μ_far)/σ_far)),

that is: the count nearby, unless the point is odder by more than one deviation from afar. It is below one where a point is odder
from afar than it could be nearby. Ours; ``docs/decisions/0016`` has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray
from mosaic.counts import CountModel
from mosaic.encoding import Encoding
from mosaic.estimators._points import Distinct
from mosaic.estimators._solving import encode_exactly, left_to_us, warn_of_gap
from mosaic.kernels import Kernel

#: Points that a typical one resembles, and strength, nearby and from afar.
NEAR, NEAR_LAM = 5.0, 30.0
FAR, FAR_LAM = 80.0, 10.0
#: Deviations by which a point must be odder from afar for that to count.
HANDICAP = 1.0
#: Log of the lowest count: lower ones would be 0.
LOWEST = -500.0
#: Fewer points are looked at once.
FEWEST = 10
#: A point is alone if it stands for fewer than so many nearby, or is as odd from afar, and is so many deviations out; no
#: more than this share of all points is called so …
ALONE, TAIL, TAIL_SHARE = 1.2, 1.75, 0.01
#: … unless it stands for at most this many where a typical point stands for dozens, and those who do are no larger a share,
#: or no more: where many are alone, to be alone is not odd.
ALONE_FROM_AFAR, LARGER_SHARE, FEW = 1.01, 0.05, 10.0


@dataclass(frozen=True)
class Scale:
    """Counts at one scale, for the reference points and for others, and what is usual among the former."""

    encoding: Encoding
    model: CountModel
    mean: float
    deviation: float

    @classmethod
    def of(cls, encoding: Encoding, points: Distinct) -> Scale:
        """What an encoding of distinct points says."""
        u = np.log(encoding.effective_count)
        mean = float(np.average(u, weights=points.weights))
        deviation = float(np.sqrt(np.average((u - mean) ** 2, weights=points.weights)))
        return cls(encoding, encoding.count_model(points.codes), mean, max(deviation, 1e-9))

    @property
    def counts(self) -> FloatArray:
        """Those of the reference points."""
        return self.encoding.effective_count


@dataclass(frozen=True)
class Scales:
    """One scale, or two whose counts are made one."""

    near: Scale
    far: Scale | None
    kernel: Kernel
    #: Of the reference points, which one could stand for.
    weights: FloatArray

    @property
    def reference_counts(self) -> FloatArray:
        """Those of the reference points."""
        return self._combined(self.near.counts, self.far.counts if self.far is not None else None)

    def counts(self, Y: Any) -> FloatArray:
        """Of any points; those of the reference keep theirs."""
        return self._combined(self.near.model.counts(Y), self.far.model.counts(Y) if self.far is not None else None)

    def _combined(self, near: FloatArray, far: FloatArray | None) -> FloatArray:
        if far is None or self.far is None:
            return near
        return np.asarray(np.exp(np.maximum(np.minimum(np.log(near), self._from_afar(far)), LOWEST)))

    def _from_afar(self, counts: Any) -> Any:
        assert self.far is not None
        return self.near.mean + self.near.deviation * (HANDICAP + (np.log(counts) - self.far.mean) / self.far.deviation)

    @property
    def wide_kernel(self) -> Kernel:
        """The wider of both kernels."""
        return self.kernel if self.far is None else self.far.encoding.kernel

    def isolated(self) -> float | None:
        """The count below which a point is alone; None for the usual one, where there is one scale.

        At most one in a hundred is far out: that is the rate of false alarms on data without outliers, but for few that are alone
        even from afar.
        """
        if self.far is None:
            return None
        u, weights = np.log(self.reference_counts), self.weights
        order = np.argsort(u, kind="stable")
        below = np.searchsorted(np.cumsum(weights[order]), TAIL_SHARE * weights.sum(), "right")  # so many may be
        rare = float(u[order[min(int(below), len(u) - 1)]])
        tail = min(np.log(ALONE), self.near.mean - TAIL * self.near.deviation)
        afar = float(self._from_afar(ALONE_FROM_AFAR))
        if weights[u < afar].sum() > max(LARGER_SHARE * weights.sum(), FEW):
            afar = -np.inf
        return float(np.exp(max(min(tail, rare), afar)))


def look_from_both(estimator: Any, rows: Any, points: Distinct, seed: int) -> Scales | None:
    """Counts at both scales, where the user has left kernel, bandwidth and strength to us and the limits allow it.

    A narrow kernel has full rank.

    Parameters
    ----------
    estimator : with ``kernel``, ``gamma``, ``alpha``, ``lam``, ``solver``, ``tol``, ``max_iter``, ``max_rank``, ``memory_budget``
    rows : the reference points
    points : their weights and codes
    seed : of the factor
    """
    if not left_to_us(estimator) or points.n < FEWEST:
        return None
    half = 0.5 * points.n
    looks = [(min(NEAR, half), NEAR_LAM), (min(FAR, half), FAR_LAM)]
    encodings = encode_exactly(estimator, rows, points.weights, looks, seed)
    if encodings is None:
        return None
    near, far = encodings
    for encoding in (near, far):
        warn_of_gap(encoding, estimator.tol)
    return Scales(Scale.of(near, points), Scale.of(far, points), near.kernel, points.weights)


def look_once(encoding: Encoding, points: Distinct) -> Scales:
    """Counts at the scale of the user's kernel."""
    return Scales(Scale.of(encoding, points), None, encoding.kernel, points.weights)
