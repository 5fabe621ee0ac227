"""The certificate of a choice of rows: how much they cover, what no others cover more than, and what random ones do.

All is about the rows that belong, given who was called an outlier, and about the reach h of the cover. Of many rows it is about
those that are compared: targets and candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.xp import on_host
from mosaic.choosing.bound import EPS, bound_of, bounds_for_all
from mosaic.choosing.budget import MOST_SIMILARITIES, budget_of
from mosaic.choosing.certificate import counted
from mosaic.choosing.choose import Chooser
from mosaic.choosing.cover import Cover, FacilityLocation, Slots
from mosaic.choosing.settings import Constraints
from mosaic.exceptions import MemoryBudgetError
from mosaic.text import at_least, at_most, html_card, html_table, readable_size

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Random choices that every choice is compared with, and exchanges that are named.
RANDOM_CHOICES, NAMED_EXCHANGES = 48, 3
#: Picks are called no better than random from this share of random choices on that cover as much.
LIKE_RANDOM = 0.05
#: The least share that is told: what is smaller than 0.001 % is "within 0.001 %", and nothing is "at least" less.
LEAST_SHARE = 1e-5
#: Numbers of picks that a certificate has bounds for.
MOST_BOUNDS = 1000


class NamedExchange(NamedTuple):
    """A pick, the row that may take its place, and what that adds to the mean similarity."""

    out: int
    into: int
    gain: float
    sentence: str


@dataclass(frozen=True)
class CoverCertificate:
    """How close a choice is to the best of its size, in the mean similarity exp(−d / h) of rows to the nearest of the chosen.

    Attributes
    ----------
    k : number of rows that were chosen
    value : mean similarity of the rows that belong to the nearest of them
    bound : no k rows that may be chosen have a larger one
    gap : the share of the best that is missed, at most
    is_best : whether it is proven that no other k rows cover as much
    shortfall : the share of the best that is missed, at least, which exchanges show
    random, best_random : mean and largest value of ``n_random`` random choices of k rows; ``n_random_as_good`` cover as much
    exchanges : the exchanges of one row that add most: ``out``, ``into``, ``gain`` and ``sentence``
    bounds : for 1, 2, 3, … rows, the value that so many cannot exceed
    reach : h, in the distance of the kernel
    n_targets, n_candidates, n_rows : distinct rows that are covered, that may be chosen, and that belong
    is_about_all : whether all rows that belong are covered, and all that may be chosen are compared; else the proof is about a
        sample of them
    n_outliers : rows that were set aside
    constrained : whether the choice had to obey constraints, which are then those of the best, too
    confidence : of a proof for all rows from random ones; None where the proof is certain
    notes : what is odd about the rows that were chosen, in sentences

    Notes
    -----
    1. Any set of rows is bounded by one dual vector (``docs/math/cover.md``); slack for rounding is contained.
    """

    k: int
    value: float
    bound: float
    gap: float
    is_best: bool
    shortfall: float
    random: float
    best_random: float
    n_random: int
    n_random_as_good: int
    exchanges: tuple[NamedExchange, ...]
    bounds: tuple[float, ...] = field(repr=False)
    reach: float
    n_targets: int
    n_candidates: int
    n_rows: int
    is_about_all: bool
    n_outliers: int
    constrained: bool = False
    confidence: float | None = None
    notes: tuple[str, ...] = ()

    def least_number(self, similarity: float) -> int | None:
        """So many rows at least are needed for this mean similarity; None if more than there are bounds for."""
        return next((k for k, bound in enumerate(self.bounds, 1) if bound >= similarity), None)

    def __str__(self) -> str:
        number = "row" if self.k == 1 else f"{self.k:,}"
        others = f"no other row{self._scope} covers" if self.k == 1 else f"no other {self.k:,} rows{self._scope} cover"
        if self.is_best:
            verdict = f"Proven: {others} more."
        elif self.shortfall >= LEAST_SHARE and self.exchanges:
            below = f"At least {at_least(self.shortfall)} below the best {number}{self._scope}"
            verdict = f"{below}: {self.exchanges[0].sentence} first."
        elif self.confidence is not None:
            confident = f"With {100 * self.confidence:.0f} % confidence within {at_most(self.gap)}"
            verdict = f"{confident} of the best {number} of all {counted(self.n_rows, 'row')}."
        else:
            verdict = f"Provably within {at_most(self.gap)} of the best {number}{self._scope}."
        return f"{verdict} {self._beside_random}".strip()

    __repr__ = __str__

    @property
    def _scope(self) -> str:
        if self.is_about_all:
            return " within the constraints" if self.constrained else ""
        return " of those compared"

    @property
    def _beside_random(self) -> str:
        as_good, n = self.n_random_as_good, self.n_random
        if self.n_candidates <= self.k or not n:
            return ""
        if as_good >= LIKE_RANDOM * n:
            return f"No better than random: {as_good} of {n} cover as much."
        if as_good:
            return f"{as_good} of {n} random choices cover{'s' * (as_good == 1)} as much."
        below = 1.0 - self.random / self.value
        return f"Random choices are {at_least(below)} below." if below >= LEAST_SHARE else ""

    def details(self) -> str:
        """The certificate with its numbers, and what it is about, in sentences."""
        others = "for any row" if self.k == 1 else f"for any {self.k:,} rows"
        told = [
            str(self),
            f"A row is covered as far as the nearest of the chosen resembles it: by exp(−d / {self.reach:.4g}).",
            f"The mean is at least {number_at_least(self.value)} here, and {others} at most {number_at_most(self.bound)}.",
            f"For {self.n_random} random choices of {self.k:,} it is {self.random:.4g}, for the best {self.best_random:.4g}.",
        ]
        if self.exchanges:
            gains = "; ".join(f"{each.sentence} (+{each.gain:.2g})" for each in self.exchanges)
            told.append(f"Exchanges that each add most: {gains}.")
        if self.shortfall >= LEAST_SHARE:
            told.append(f"The best is missed by at least {at_least(self.shortfall)} and at most {at_most(self.gap)}.")
        outliers = counted(self.n_outliers, "outlier")
        told.append(
            f"The proof is about the {counted(self.n_rows, 'distinct row')} that belong, given {outliers} and this reach."
        )
        if self.confidence is not None:
            failures = f"at most once in {1 / (1 - self.confidence):.0f} draws of these it is wrong"
            told.append(f"All were compared with {self.n_targets:,} random ones: {failures}.")
        if not self.is_about_all:
            compared = f"{self.n_candidates:,} of them as choices for {self.n_targets:,}"
            told.append(f"It compares a sample, {compared}, and says nothing about other rows.")
        if self.constrained:
            told.append("The constraints of the fit hold for these rows, and for all that they are compared with.")
        return " ".join([*told, *self.notes])

    def _repr_html_(self) -> str:
        rows = [(each.out, each.into, f"{each.gain:.2g}") for each in self.exchanges]
        table = html_table(("take out", "take in", "adds"), rows)
        return html_card(str(self), table, text=[self.details().removeprefix(str(self)).strip()])


class Outside(NamedTuple):
    """Rows that are not in memory: their numbers in the data, and the rows, prepared."""

    numbers: IntArray
    rows: Any


def certificate_of(selection: Selection, members: IntArray | None = None, outside: Outside | None = None) -> CoverCertificate:
    """The certificate of the choice of a fit, or of other rows, some of which may not be in memory: within the constraints of the
    fit if they obey these.
    """
    constraints, chosen = selection.data.constraints, selection.members if members is None else members
    may_obey = outside is None and (constraints.quotas is None or len(chosen) == len(selection.members))
    if members is None or may_obey or not constraints.are_given:
        compared = Compared.of(selection, chosen, outside)
        if members is None or compared.obeys or not constraints.are_given:
            return compared.certificate(constrained=constraints.are_given)
    free = Constraints.read(len(selection.data.points.point_of))
    unconstrained = replace(selection, data=replace(selection.data, constraints=free))
    return Compared.of(unconstrained, chosen, outside).certificate(constrained=False)


@dataclass(frozen=True)
class Compared:
    """What chosen rows are compared with: candidates, by their numbers in the data, the slots that they take, and the
    similarities of targets to them. ``picks`` are the places of the chosen among the candidates, once each; those that may not be
    chosen are in the last slot, which has no room. ``known`` is another choice of as many, none without one.
    """

    selection: Selection
    k: int
    candidates: IntArray
    slots: Slots
    cover: FacilityLocation
    picks: list[int]
    known: list[int]
    reach: float
    n_rows: int
    is_about_all: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, selection: Selection, chosen: IntArray, outside: Outside | None = None) -> Compared:
        k = len(chosen) + (0 if outside is None else len(outside.numbers))
        chooser, data = Chooser(selection, k), selection.data
        points, constraints = data.points, data.constraints
        eligible, few = chooser.eligible(k), chooser.candidates(k)
        known = np.intersect1d(selection.members, eligible) if k == len(selection.members) else few[:0]
        # Of equal rows, candidates have one.
        kinds = points.point_of * len(constraints.names) + constraints.group
        standing_for = dict(zip(kinds[eligible].tolist(), eligible.tolist(), strict=True))
        rows = [standing_for.get(kind, row) for kind, row in zip(kinds[chosen].tolist(), chosen.tolist(), strict=True)]
        allowed = np.unique(np.concatenate([few, known, np.intersect1d(rows, eligible)]))
        allowed = allowed[np.lexsort((allowed, points.point_of[allowed]))]
        candidates = np.concatenate([allowed, np.setdiff1d(rows, allowed)])
        sizes = np.bincount(
            constraints.group[chooser.pool], points.weights[points.point_of[chooser.pool]], len(constraints.names)
        )
        slots = constraints.slots(k, candidates, points.point_of[candidates], np.asarray(sizes, np.float64))
        is_allowed = np.arange(len(candidates)) < len(allowed)
        cover, place = chooser.cover, {row: place for place, row in enumerate(candidates.tolist())}
        _check_room(len(chooser.targets), len(candidates), k, selection)
        S = on_host(cover.between(chooser.targets, slots.twins))
        picks, numbers, notes = (
            [place[row] for row in dict.fromkeys(rows)],
            data.rows_in_data(candidates),
            _notes(selection, chosen),
        )
        of, twins = slots.of, slots.twins
        if outside is not None:
            S = np.hstack([S, _similarities(cover, chooser.targets, outside.rows).astype(S.dtype)])
            is_outlier = selection.outliers_at(outside.rows) & selection.rejects
            notes += tuple(f"{_called(selection, row)} is an outlier." for row in outside.numbers[is_outlier].tolist())
            picks += range(len(numbers), len(numbers) + len(outside.numbers))
            numbers, is_allowed = np.append(numbers, outside.numbers), np.append(is_allowed, ~is_outlier)
            of, twins = np.append(of, np.zeros(len(is_outlier), np.intp)), np.append(twins, points.n + np.arange(len(is_outlier)))
        slots = replace(slots, of=np.where(is_allowed, of, len(slots.room)), room=np.append(slots.room, 0), twins=twins)
        n_rows = data.n_rows - selection.n_outliers if selection.is_sampled else int(np.count_nonzero(~chooser.rejected))
        is_about_all = len(few) == len(eligible) and len(chooser.targets) == n_rows
        objective = FacilityLocation(np.asfortranarray(S), chooser.weights)
        others = [place[row] for row in known.tolist()]
        return cls(selection, k, numbers, slots, objective, picks, others, cover.reach, n_rows, is_about_all, notes)

    @property
    def obeys(self) -> bool:
        """Whether the chosen obey the constraints."""
        taken = np.bincount(self.slots.of[self.picks], minlength=len(self.slots.room))
        has_forced = bool(np.isin(np.asarray(self.slots.forced, np.intp), self.picks).all())
        return len(self.picks) == self.k and has_forced and bool((taken <= self.slots.room).all())

    def certificate(self, *, constrained: bool) -> CoverCertificate:
        found = bound_of(self.cover.S, self.cover.weights, self.slots, self.picks)
        total, drawn = float(self.cover.weights.sum()) or 1.0, self._random_values()
        exchanges = self._exchanges(total, 1e-6 * found.value)
        reached = max(self._values([self._improved() if exchanges else self.picks, self.known or self.picks]))
        is_allowed = self.slots.room[self.slots.of] > 0
        bounds = bounds_for_all(found.prices[is_allowed], self.cover.weights, found.thresholds)
        return CoverCertificate(
            k=self.k,
            value=found.value / total,
            bound=min(found.bound / total * (1.0 + 4.0 * len(self.cover.weights) * EPS), 1.0),  # no similarity is larger
            gap=found.gap,
            is_best=found.is_only_best,
            shortfall=max(1.0 - found.value / reached - 1e-9, 0.0) if reached > 0 else 0.0,
            random=float(np.mean(drawn)) / total,
            best_random=max(drawn) / total,
            n_random=len(drawn),
            n_random_as_good=int(np.count_nonzero(np.array(drawn) >= found.value)),
            exchanges=exchanges,
            bounds=tuple(np.minimum(bounds[:MOST_BOUNDS] / total * (1.0 + 4.0 * len(self.cover.weights) * EPS), 1.0).tolist()),
            reach=self.reach,
            n_targets=len(self.cover.weights),
            n_candidates=len(np.unique(self.slots.twins[is_allowed])),
            n_rows=self.n_rows,
            is_about_all=self.is_about_all,
            n_outliers=self.selection.n_outliers if self.selection.rejects else 0,
            constrained=constrained,
            notes=self.notes,
        )

    def _values(self, sets: Sequence[Sequence[int]]) -> list[float]:
        S, weights = self.cover.S, self.cover.weights
        return [float(weights @ S.T[list(chosen)].max(axis=0)) for chosen in sets]

    def _random_values(self) -> list[float]:
        """What random choices of the same size cover that obey the same constraints."""
        slots, rng = self.slots, np.random.default_rng(0)
        forced = np.asarray(slots.forced, np.intp)
        room = slots.room - np.bincount(slots.of[forced], minlength=len(slots.room))
        is_free = (room[slots.of] > 0) & ~np.isin(slots.twins, slots.twins[forced])
        members = [np.flatnonzero(is_free & (slots.of == slot)) for slot in range(len(room))]
        members = [each[np.unique(slots.twins[each], return_index=True)[1]] for each in members]
        draws = []
        for _ in range(RANDOM_CHOICES):
            drawn = [rng.choice(each, min(number, len(each)), replace=False) for each, number in zip(members, room, strict=True)]
            draws.append(np.concatenate([forced, *drawn]).tolist())
        return self._values(draws)

    def _exchanges(self, total: float, least: float) -> tuple[NamedExchange, ...]:
        data, found = self.selection.data, []
        for pick, candidate, gain in self.cover.best_exchanges(self.picks, self.slots, NAMED_EXCHANGES):
            if gain > least:
                out, into = self.candidates[[pick, candidate]].tolist()
                sentence = f"exchange {data.called(out)} for {data.called(into)}"
                found.append(NamedExchange(out, into, gain / total, sentence))
        return tuple(found)

    def _improved(self) -> list[int]:
        """A better choice that may be made: the picks that may be chosen, completed, and exchanged as long as that helps."""
        may_stay = [pick for pick in self.picks if self.slots.room[self.slots.of[pick]] > 0 and pick not in self.slots.forced]
        complete = self.cover.ranked(replace(self.slots, forced=[*self.slots.forced, *may_stay]))[0]
        return self.cover.exchanged(complete, self.slots)


def _similarities(cover: Cover, targets: IntArray, rows: Any) -> FloatArray:
    """s_ij, targets × rows that are not in memory."""
    D = cover.kernel.take(targets).distances_at(rows) * cover.reach**-cover.kernel.order
    return np.asarray(cover.similarities(D).T)


def _check_room(targets: int, candidates: int, k: int, selection: Selection) -> None:
    """Similarities in single precision, and a quarter as much for those above the floor; as many as a fit has are allowed."""
    needed, budget = 5.0 * targets * candidates, budget_of(selection.settings.memory_budget)
    if needed > max(budget, 6.0 * MOST_SIMILARITIES):
        fault = f"the certificate of {k:,} picks needs about {readable_size(needed)}, the budget is {readable_size(budget)}"
        raise MemoryBudgetError(fault, "Raise `memory_budget`, or certify fewer.")


def _called(selection: Selection, row: int) -> str:
    return selection.data.called(row) if selection.data.row_names is not None else f"Row {row}"


def _notes(selection: Selection, chosen: IntArray) -> tuple[str, ...]:
    """Rows that were chosen although they are outliers, or equal to others that were."""
    data, told = selection.data, []
    first: dict[int, int] = {}
    numbers = data.rows_in_data(chosen).tolist()
    for row, point in zip(numbers, data.points.point_of[chosen].tolist(), strict=True):
        before = first.setdefault(point, row)
        if before != row:
            told.append(f"{_called(selection, row)} is equal to {data.called(before)}: one of them adds nothing.")
        elif selection.is_outlier[point]:
            told.append(f"{_called(selection, row)} is an outlier.")
    return tuple(told)


def number_at_most(value: float) -> str:
    return _four_digits(value, ROUND_CEILING)


def number_at_least(value: float) -> str:
    return _four_digits(value, ROUND_FLOOR)


def _four_digits(value: float, how: str) -> str:
    """A number as Python writes it, 0.02 for the double nearest to that, rounded in one direction."""
    exact = Decimal(repr(float(value)))
    unit = Decimal(1).scaleb(exact.adjusted() - 3)
    return f"{exact.quantize(unit, how, Context(prec=100)).normalize():f}" if exact else "0"
