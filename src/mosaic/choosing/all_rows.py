"""The proof for all rows where only some were compared: all rows as candidates, random rows as targets (``docs/math/cover.md``).

Let c_i be what the picks cover of row i, J* the best k of all n rows that belong, f_i what these cover of row i, and T m random
rows. J* does not depend on T, so no union over sets is needed: for any 0 < λ < 1, with probability 1 − δ,

    mean(f) − mean(c)  ≤  (1 − exp(−mean_T(g) − log(1/δ) / m)) / λ,      g_i = −log(1 − λ (f_i − c_i)),

by Markov's inequality: the mean of Π_T (1 − λ (f_i − c_i)) is at most (1 − λ mean(f − c))^m. And g is a cover, too, by the
similarities g_ij = −log(1 − λ (s_ij − c_i)), which grow with s_ij: mean_T(g) is at most their bound D(u) for T, with *all* rows
as candidates and any u, even one that depends on T. Drawing costs about √(2 log(1/δ) v / m), v the mean of (f − c)², if λ is
√(2 log(1/δ) / (m v)): little where f_i and c_i go up and down together, more where the best may be other clusters. λ must not
depend on T; the best for other random rows is taken. The picks' own mean(c) comes from a pass over all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, row_blocks
from mosaic.arrays.codes import row_codes
from mosaic.arrays.passes import BlockResult, PerRow, TakeRows
from mosaic.arrays.xp import (
    DEVICE_BLOCK_ENTRIES,
    at_least_zero,
    is_on_device,
    namespace,
    on_host,
    rows_of,
    stacked,
    to_device_of,
)
from mosaic.choosing.answers import outliers_at
from mosaic.choosing.bound import CoverBound, bound_of
from mosaic.choosing.budget import DECISION_SAMPLE, refuse_certificate_beyond
from mosaic.choosing.choose import Chooser
from mosaic.choosing.cover import CACHED_SIMILARITIES, Cover, Slots
from mosaic.choosing.cover_certificate import RANDOM_CHOICES, Chosen, CoverCertificate
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import DiffusionKernel, PointKernel

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: How sure the proof is, and the number of random rows.
CONFIDENCE, RANDOM_ROWS = 0.95, DECISION_SAMPLE
#: √v for which λ are tried, and random rows to try them with.
DIFFERENCES, TRIED_ROWS = (0.05, 0.1, 0.2, 0.4), 4096
#: Looks at all rows, and rows that join the candidates after a look, at most.
MOST_LOOKS, MOST_JOINING = 3, 2048
#: Allowed for similarities in single precision, whose distances are known to 1e-4: s · 0.5e-4 d/h is below this.
SINGLE_PRECISION = 2e-5


def certificate_for_all(
    selection: Selection, rows: IntArray, sample: CoverCertificate
) -> CoverCertificate:
    """The certificate of rows of the data, compared with all others by passes, from that for a sample of these."""
    kernel = selection.kernel
    k = len(rows)
    if not isinstance(kernel, PointKernel) or isinstance(kernel, DiffusionKernel):
        raise InvalidInputError(
            "a proof for all rows needs a similarity of any two rows", "Use another `kernel`."
        )
    chooser = Chooser(selection, k)
    chosen = Chosen.of(selection, rows).prepared(selection)
    everyone = Everyone.of(selection, kernel, Cover(kernel.over(chosen), chooser.cover.reach))
    known = stacked(
        chosen, rows_of(kernel.X, selection.data.points.point_of[chooser.candidates(k)])
    )
    n = len(everyone.belongs)
    m = min(n, RANDOM_ROWS)
    most = known.shape[0] + (MOST_LOOKS - 1) * MOST_JOINING
    refuse_certificate_beyond(selection.settings.memory_budget, k, m, most)
    rate = everyone.targets(min(m, TRIED_ROWS), [k, 1]).best_rate(known, k, m, n)
    targets = everyone.targets(m, [k], rate)
    S = targets.similarities(known)
    random = targets.of_random(S[:, k:], k)
    bound_of_mean = everyone.lowest_bound(targets, S, known, k)
    excess = max(most_above(bound_of_mean, m, n, rate), 0.0)
    covered = float(everyone.covered[everyone.belongs].mean())
    value = covered - SINGLE_PRECISION
    bound = min(covered + excess + SINGLE_PRECISION, 1.0)
    return replace(
        sample,
        value=value,
        bound=bound,
        gap=max(1.0 - value / bound, 0.0),
        is_best=False,
        shortfall=0.0,
        random=covered + float(np.mean(random)),
        n_random_as_good=sum(difference >= 0 for difference in random),
        exchanges=(),
        in_every_best=(),
        in_no_better=(),
        n_targets=m,
        n_candidates=len(everyone.distinct),
        n_rows=n,
        is_about_all=True,
        n_outliers=len(everyone.codes) - n,
        constrained=False,
        confidence=CONFIDENCE if m < n else None,
    )


@dataclass(frozen=True)
class Everyone:
    """All rows of the data beside picks: what these cover of each, its code, which equal rows share, and the rows that belong."""

    selection: Selection
    kernel: PointKernel
    reach: float
    covered: FloatArray
    codes: Any
    belongs: IntArray

    @classmethod
    def of(cls, selection: Selection, kernel: PointKernel, picks: Cover) -> Everyone:
        data = selection.data
        run, prepare = data.all_rows.run_over(data)
        seen = run("what is covered", PerRow(partial(_seen, selection, prepare, picks)))
        belongs = np.flatnonzero(~seen["is_outlier"])
        return cls(selection, kernel, picks.reach, seen["covered"], seen["code"], belongs)

    @cached_property
    def distinct(self) -> IntArray:
        """Of equal rows that belong the first."""
        first = np.unique(self.codes[self.belongs], return_index=True)[1]
        return self.belongs[first]

    def taken(self, numbers: IntArray) -> Any:
        """Some of the rows, in the order of the data, prepared."""
        data = self.selection.data
        run, prepare = data.all_rows.run_over(data)
        return prepare(run("some rows", TakeRows(np.sort(numbers)))["rows"])

    def targets(self, number: int, stream: list[int], rate: float = 0.0) -> Targets:
        """Random rows that belong; another stream of random numbers gives independent ones."""
        rng = np.random.default_rng([self.selection.data.seed, *stream])
        drawn = np.sort(rng.choice(self.belongs, number, replace=False))
        cover = Cover(self.kernel.over(self.taken(drawn)), self.reach)
        return Targets(cover, self.covered[drawn], rate)

    def lowest_bound(self, targets: Targets, S: FloatArray, known: Any, k: int) -> float:
        """min_u D(u) for the targets, all rows as candidates. Those whose prices are largest join S, the similarities to the
        known ones, for another u.
        """
        data = self.selection.data
        run, prepare = data.all_rows.run_over(data)
        joined = row_codes(known)
        lowest = np.inf
        for _ in range(MOST_LOOKS):
            u = bound_for_targets(S, k).thresholds
            price = run("proof for all rows", PerRow(partial(_prices, prepare, targets, u)))[
                "price"
            ][self.distinct]
            order = np.argsort(-price, kind="stable")
            lowest = min(lowest, float(u.mean() + price[order[:k]].sum()))
            new = self.distinct[order[:MOST_JOINING]]
            new = new[~np.isin(self.codes[new], joined)]
            if not len(new):
                break
            S = np.hstack([S, targets.similarities(self.taken(new))])
            joined = np.append(joined, self.codes[new])
        return lowest


def bound_for_targets(S: FloatArray, k: int) -> CoverBound:
    """The bound for targets that count alike; the first k candidates are the picks."""
    return bound_of(S, np.full(len(S), 1.0 / len(S)), Slots.free(S.shape[1], k), range(k))


def most_above(mean: float, m: int, n: int, rate: float) -> float:
    """What mean(f − c) of n rows is at most, with this confidence, if the mean of g over m random ones is at most this. If all
    are targets that is certain, by Jensen's inequality.
    """
    doubt = np.log(1.0 / (1.0 - CONFIDENCE)) / m if m < n else 0.0
    return float(-np.expm1(-mean - doubt)) / rate


@dataclass(frozen=True)
class Targets:
    """Random rows, what the picks cover of them, c, and λ."""

    cover: Cover
    covered: FloatArray
    rate: float

    def best_rate(self, candidates: Any, k: int, m: int, n: int) -> float:
        """The λ for which m other random rows of n may prove most, by the bound for these rows and some candidates."""
        steps = (2.0 * np.log(1.0 / (1.0 - CONFIDENCE)) / m) ** 0.5 / np.array(DIFFERENCES)
        rates = np.minimum(steps, 0.5).tolist()
        similarities = [replace(self, rate=rate).similarities(candidates) for rate in rates]
        excess = [
            most_above(bound_for_targets(S, k).bound, m, n, rate)
            for S, rate in zip(similarities, rates, strict=True)
        ]
        return float(rates[int(np.argmin(excess))])

    def similarities(self, rows: Any) -> FloatArray:
        """g_ij of all targets and some rows."""
        distances = self.cover.kernel.in_single_at(self.cover.reach)
        S = np.asarray(on_host(self.cover.similarities(distances(rows))).T, np.float32)
        return np.asarray(-np.log1p(-self.rate * (S - self.covered.astype(np.float32)[:, None])))

    def of_random(self, S: FloatArray, k: int) -> list[float]:
        """mean_T(f − c) of random choices among candidates with these g_ij."""
        rng = np.random.default_rng(0)
        differences = []
        for _ in range(RANDOM_CHOICES):
            some = rng.choice(S.shape[1], min(k, S.shape[1]), replace=False)
            g = S[:, some].max(axis=1).astype(np.float64)
            differences.append(float(-np.expm1(-g).mean()) / self.rate)
        return differences


def _covered(picks: Cover, rows: Any) -> FloatArray:
    """The similarity of each row to the nearest pick."""
    nearest = np.zeros(rows.shape[0])
    for part, D in _distances(picks, rows, CACHED_SIMILARITIES):
        nearest[part] = on_host(namespace(D).min(D, axis=1))
    return np.exp(-(nearest ** (1.0 / picks.kernel.order)))


def _distances(cover: Cover, rows: Any, entries: int) -> Iterator[tuple[slice, Any]]:
    """(d / h)^order of rows to those of the cover, in blocks, where the rows are: in single precision on the host, in double on a
    device, which does not correct what is near.
    """
    kernel = cover.kernel
    on_device = is_on_device(rows)
    in_single = kernel.in_single_at(cover.reach)
    unit = cover.reach**-kernel.order
    for part in row_blocks(rows.shape[0], kernel.n, DEVICE_BLOCK_ENTRIES if on_device else entries):
        some = rows_of(rows, part)
        yield part, kernel.device_distances_at(some) * unit if on_device else in_single(some)


def _seen(selection: Selection, prepare: Any, picks: Cover, rows: Any, start: int) -> BlockResult:
    """For each row how far it is covered, whether it is an outlier, and its code, which equal rows share."""
    Y = prepare(rows)
    is_outlier = (
        outliers_at(selection, Y) if selection.rejects else np.zeros(rows.shape[0], dtype=bool)
    )
    return {"covered": _covered(picks, Y), "is_outlier": is_outlier, "code": row_codes(Y)}


def _prices(prepare: Any, targets: Targets, u: FloatArray, rows: Any, start: int) -> BlockResult:
    """ρ of each row, from similarities g."""
    Y = prepare(rows)
    order = targets.cover.kernel.order
    rate = targets.rate
    least = targets.covered - np.expm1(-u) / rate  # the s with g = u
    with np.errstate(divide="ignore", invalid="ignore"):
        farthest = np.where(least > 0, (-np.log(least)) ** order, np.inf).astype(np.float32)
    price = np.zeros(Y.shape[0])
    for part, D in _distances(targets.cover, Y, 4 * CACHED_SIMILARITIES):
        if is_on_device(D):
            price[part] = _prices_on_device(targets, u, D)
            continue
        row, target = np.divmod(np.flatnonzero(farthest > D), len(u))
        similar = np.exp(-(D[row, target].astype(np.float64) ** (1.0 / order)))
        above = -np.log1p(-rate * (similar - targets.covered[target])) - u[target]
        price[part] = np.bincount(row, np.maximum(above, 0.0), len(D)) / len(u)
    return {"price": price}


def _prices_on_device(targets: Targets, u: FloatArray, D: Any) -> FloatArray:
    xp = namespace(D)
    covered = to_device_of(D, targets.covered)
    similar = targets.cover.similarities(D)
    above = -xp.log1p(-targets.rate * (similar - covered)) - to_device_of(D, u)
    return np.asarray(on_host(xp.sum(at_least_zero(above), axis=1))) / len(u)
