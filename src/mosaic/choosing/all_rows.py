"""The proof for all rows where only some were compared: all rows as candidates, random rows as targets (``docs/math/cover.md``).

Let J* be the best k of all rows that belong, and T random rows of these. J* does not depend on T, so that what it covers of T
is near to what it covers of all rows, μ, and no union over sets is needed. What it covers of T in the mean is at most D(u), the
bound of T with *all* rows as candidates, for any u, which may depend on T. Similarities lie between 0 and 1; so, with
probability 1 − δ,

    m kl(D(u), μ) ≤ log(1/δ)  or  μ ≤ D(u),      kl(p, q) = p log(p/q) + (1 − p) log((1 − p)/(1 − q)),

which is the sharper of Hoeffding's inequalities, for m rows without replacement. The prices of all rows for T, and
what the picks cover of all rows, come from one pass. It is repeated after rows with large prices have joined the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from mosaic.arrays.blocks import FloatArray, row_blocks
from mosaic.arrays.passes import BlockResult, PerRow, TakeRows, Task
from mosaic.arrays.xp import on_host, rows_of, stacked
from mosaic.choosing.bound import bound_of
from mosaic.choosing.choose import Chooser
from mosaic.choosing.cover import CACHED_SIMILARITIES, Cover, Slots
from mosaic.kernels import PointKernel

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: How sure the proof is, and the number of random rows.
CONFIDENCE, RANDOM_ROWS = 0.95, 4096
#: Looks at all rows, at most, and rows that join the candidates after a look, at most.
MOST_LOOKS, MOST_JOINING = 3, 1024
#: Allowed for similarities in single precision, whose distances are known to 1e-4: s · 0.5e-4 d/h is below this.
SINGLE_PRECISION = 2e-5


@dataclass(frozen=True)
class ProofForAll:
    """What picks cover of all rows that belong, in the mean, and what no k rows exceed, with some confidence."""

    value: float
    bound: float
    n_rows: int
    n_targets: int

    @property
    def gap(self) -> float:
        return min(max(1.0 - self.value / self.bound, 0.0), 1.0) if self.bound > 0 else 0.0


def proof_for_all(
    selection: Selection, chosen: Any, run: Callable[[str, Task], BlockResult], prepare: Callable[[Any], Any]
) -> ProofForAll:
    """The proof for chosen rows, prepared, by passes over all rows of the data, which are prepared after they are read."""
    data, kernel, k = selection.data, selection.kernel, chosen.shape[0]
    assert isinstance(kernel, PointKernel)
    chooser, rng = Chooser(selection, k), np.random.default_rng(data.seed)
    reach = chooser.cover.reach
    numbers = np.sort(rng.choice(data.n_rows, min(RANDOM_ROWS, data.n_rows), replace=False))
    drawn = prepare(run("random rows", TakeRows(numbers))["rows"])
    targets = rows_of(drawn, np.flatnonzero(~_is_outlier(selection, drawn)))
    m = targets.shape[0]
    candidates = stacked(chosen, rows_of(kernel.X, data.points.point_of[chooser.candidates(k)]))
    cover = Cover(kernel.over(targets), reach)
    S, bound, value, n_rows = _similarities(cover, candidates), 1.0, 0.0, 0
    joined = np.zeros(data.n_rows, dtype=bool)
    for _ in range(MOST_LOOKS):
        found = bound_of(S, np.full(m, 1.0 / m), Slots.free(S.shape[1], k), range(k))
        look_at = partial(_look_at, selection, prepare, cover, found.thresholds, Cover(kernel.over(chosen), reach))
        look = run("proof for all rows", PerRow(look_at))
        belongs = ~look["is_outlier"]
        n_rows, value = int(belongs.sum()), float(look["covered"][belongs].mean())
        rho = np.where(belongs, look["price"], 0.0)
        highest = np.sort(rho)[::-1][:k]
        bound = min(bound, float(found.thresholds.mean()) + float(highest.sum()))
        least = np.sort(found.prices)[::-1][:k].min()
        new = np.flatnonzero((rho > least) & ~joined)
        if not len(new) or bound <= value:
            break
        new = np.sort(new[np.argsort(-rho[new], kind="stable")[:MOST_JOINING]])
        joined[new] = True
        S = np.hstack([S, _similarities(cover, prepare(run("rows that join", TakeRows(new))["rows"]))])
    return ProofForAll(value - SINGLE_PRECISION, most_likely(bound + SINGLE_PRECISION, m, n_rows), n_rows, m)


def most_likely(mean: float, m: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The largest μ with m kl(mean, μ) ≤ log(1/δ): the mean of n numbers between 0 and 1 is no larger, with this confidence, if
    that of m random ones is at most ``mean``.
    """
    if m >= n or mean >= 1.0:
        return min(mean, 1.0)
    mean, most = max(mean, 1e-12), float(np.log(1.0 / (1.0 - confidence))) / m

    def excess(mu: float) -> float:
        return float(mean * np.log(mean / mu) + (1.0 - mean) * np.log((1.0 - mean) / (1.0 - mu))) - most

    highest = 1.0 - 1e-15
    return float(brentq(excess, mean, highest, xtol=1e-12)) + 1e-12 if excess(highest) > 0 else 1.0


def _is_outlier(selection: Selection, rows: Any) -> Any:
    return selection.outliers_at(rows) if selection.rejects else np.zeros(rows.shape[0], dtype=bool)


def _similarities(cover: Cover, rows: Any) -> FloatArray:
    """Of the targets to rows, in single precision."""
    distances = cover.kernel.in_single_at(cover.reach)
    return np.asarray(on_host(cover.similarities(distances(rows))).T, np.float32)


def _look_at(
    selection: Selection, prepare: Callable[[Any], Any], targets: Cover, u: FloatArray, picks: Cover, rows: Any, start: int
) -> BlockResult:
    """For each row its price ρ, its similarity to the nearest pick, and whether it is an outlier."""
    Y = prepare(rows)
    n, order = Y.shape[0], targets.kernel.order
    price, covered = np.zeros(n), np.zeros(n)
    with np.errstate(divide="ignore"):
        farthest = ((-np.log(u)) ** order).astype(np.float32)  # beyond, s ≤ u
    to_targets, to_picks = (cover.kernel.in_single_at(cover.reach) for cover in (targets, picks))
    for part in row_blocks(n, len(u), 4 * CACHED_SIMILARITIES):
        some = rows_of(Y, part)
        D = on_host(to_targets(some))
        place = np.flatnonzero(farthest > D)
        row, target = np.divmod(place, len(u))
        similar = np.exp(-(D.ravel()[place].astype(np.float64) ** (1.0 / order)))
        price[part] = np.bincount(row, np.maximum(similar - u[target], 0.0), len(D)) / len(u)
        covered[part] = np.exp(-(on_host(to_picks(some)).min(axis=1).astype(np.float64) ** (1.0 / order)))
    return {"price": price, "covered": covered, "is_outlier": _is_outlier(selection, Y)}
