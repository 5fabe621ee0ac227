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
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, row_blocks
from mosaic.arrays.codes import row_codes
from mosaic.arrays.passes import BlockResult, PerRow, TakeRows
from mosaic.arrays.xp import DEVICE_BLOCK_ENTRIES, at_least_zero, is_on_device, namespace, on_host, rows_of, stacked, to_device_of
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


def certificate_for_all(selection: Selection, rows: IntArray, sample: CoverCertificate) -> CoverCertificate:
    """The certificate of rows of the data, compared with all others by passes, from that for a sample of these."""
    data, kernel, k = selection.data, selection.kernel, len(rows)
    if not isinstance(kernel, PointKernel) or isinstance(kernel, DiffusionKernel):
        raise InvalidInputError("a proof for all rows needs a similarity of any two rows", "Use another `kernel`.")
    run, prepare = data.all_rows.run_over(data)

    def taken(numbers: IntArray) -> Any:
        return prepare(run("some rows", TakeRows(np.sort(numbers)))["rows"])

    chooser, chosen = Chooser(selection, k), Chosen.of(selection, rows).prepared(selection)
    picks = Cover(kernel.over(chosen), chooser.cover.reach)
    seen = run("what is covered", PerRow(partial(_seen, selection, prepare, picks)))
    belongs = np.flatnonzero(~seen["is_outlier"])
    distinct = belongs[np.unique(seen["code"][belongs], return_index=True)[1]]
    n, m = len(belongs), min(len(belongs), RANDOM_ROWS)
    drawn = np.sort(np.random.default_rng([data.seed, k]).choice(belongs, m, replace=False))
    candidates = stacked(chosen, rows_of(kernel.X, data.points.point_of[chooser.candidates(k)]))
    tried = np.random.default_rng([data.seed, k, 1]).choice(belongs, min(m, TRIED_ROWS), replace=False)
    tried = np.sort(tried)
    trial = Targets(Cover(kernel.over(taken(tried)), chooser.cover.reach), seen["covered"][tried], 0.0)
    rate = trial.best_rate(candidates, k, m, n)
    targets = Targets(Cover(kernel.over(taken(drawn)), chooser.cover.reach), seen["covered"][drawn], rate)
    most = candidates.shape[0] + (MOST_LOOKS - 1) * MOST_JOINING
    refuse_certificate_beyond(selection.settings.memory_budget, k, m, most)
    S, joined, bound = targets.similarities(candidates), row_codes(candidates), np.inf
    rng, others = np.random.default_rng(0), S[:, k:]
    size = min(k, others.shape[1])
    random = [targets.difference(others[:, rng.choice(others.shape[1], size, replace=False)]) for _ in range(RANDOM_CHOICES)]
    for _ in range(MOST_LOOKS):
        found = bound_for_targets(S, k)
        price = run("proof for all rows", PerRow(partial(_prices, prepare, targets, found.thresholds)))["price"][distinct]
        order = np.argsort(-price, kind="stable")
        bound = min(bound, float(found.thresholds.mean() + price[order[:k]].sum()))
        new = distinct[order[:MOST_JOINING]]
        new = new[~np.isin(seen["code"][new], joined)]
        if not len(new):
            break
        S, joined = np.hstack([S, targets.similarities(taken(new))]), np.append(joined, seen["code"][new])
    excess = most_above(bound, m, n, targets.rate)
    covered = float(seen["covered"][belongs].mean())
    value = covered - SINGLE_PRECISION
    highest = min(covered + max(excess, 0.0) + SINGLE_PRECISION, 1.0)
    return replace(
        sample,
        value=value,
        bound=highest,
        gap=max(1.0 - value / highest, 0.0),
        is_best=False,
        shortfall=0.0,
        random=covered + float(np.mean(random)),
        n_random_as_good=sum(difference >= 0 for difference in random),
        exchanges=(),
        in_every_best=(),
        in_no_better=(),
        n_targets=m,
        n_candidates=len(distinct),
        n_rows=n,
        is_about_all=True,
        n_outliers=len(seen["is_outlier"]) - n,
        constrained=False,
        confidence=CONFIDENCE if m < n else None,
    )


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
        excess = [most_above(bound_for_targets(S, k).bound, m, n, rate) for S, rate in zip(similarities, rates, strict=True)]
        return float(rates[int(np.argmin(excess))])

    def similarities(self, rows: Any) -> FloatArray:
        """g_ij of all targets and some rows."""
        distances = self.cover.kernel.in_single_at(self.cover.reach)
        S = np.asarray(on_host(self.cover.similarities(distances(rows))).T, np.float32)
        return np.asarray(-np.log1p(-self.rate * (S - self.covered.astype(np.float32)[:, None])))

    def difference(self, S: FloatArray) -> float:
        """mean_T(f − c) of a choice with these g_ij."""
        return float(-np.expm1(-S.max(axis=1).astype(np.float64)).mean()) / self.rate


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
    kernel, on_device = cover.kernel, is_on_device(rows)
    in_single, unit = kernel.in_single_at(cover.reach), cover.reach**-kernel.order
    for part in row_blocks(rows.shape[0], kernel.n, DEVICE_BLOCK_ENTRIES if on_device else entries):
        some = rows_of(rows, part)
        yield part, kernel.device_distances_at(some) * unit if on_device else in_single(some)


def _seen(selection: Selection, prepare: Any, picks: Cover, rows: Any, start: int) -> BlockResult:
    """For each row how far it is covered, whether it is an outlier, and its code, which equal rows share."""
    Y = prepare(rows)
    is_outlier = selection.outliers_at(Y) if selection.rejects else np.zeros(rows.shape[0], dtype=bool)
    return {"covered": _covered(picks, Y), "is_outlier": is_outlier, "code": row_codes(Y)}


def _prices(prepare: Any, targets: Targets, u: FloatArray, rows: Any, start: int) -> BlockResult:
    """ρ of each row, from similarities g."""
    Y, order, rate = prepare(rows), targets.cover.kernel.order, targets.rate
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
    xp, covered = namespace(D), to_device_of(D, targets.covered)
    similar = targets.cover.similarities(D)
    above = -xp.log1p(-targets.rate * (similar - covered)) - to_device_of(D, u)
    return np.asarray(on_host(xp.sum(at_least_zero(above), axis=1))) / len(u)
