"""The certificate of a choice of rows: how much they cover, what no others cover more than, and what random ones do.

All is about the rows that belong, given who was called an outlier, and about the reach h of the cover. Of many rows it is about
those that are compared: targets and candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import BoolArray, IntArray
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import on_host, rows_of, stacked
from mosaic.choosing.answers import outliers_at
from mosaic.choosing.bound import EPS, bound_of
from mosaic.choosing.budget import TARGETS_FOR_A_PICK, refuse_certificate_beyond
from mosaic.choosing.certificate import counted
from mosaic.choosing.choose import Chooser
from mosaic.choosing.cover import FacilityLocation, Slots
from mosaic.choosing.explain import where_in_memory
from mosaic.choosing.settings import Constraints
from mosaic.exceptions import InvalidInputError
from mosaic.text import at_least, at_most, html_card, html_table

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Random choices that every choice is compared with, and exchanges that are named.
RANDOM_CHOICES, NAMED_EXCHANGES = 48, 3
#: Picks are called no better than random from this share of random choices on that cover as much.
LIKE_RANDOM = 0.05
#: The least share that is told: what is smaller than 0.001 % is "within 0.001 %", and nothing is "at least" less.
LEAST_SHARE = 1e-5


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
    random : mean value of ``n_random`` random choices of k rows; ``n_random_as_good`` cover as much
    exchanges : the exchanges of one row that add most: ``out``, ``into``, ``gain`` and ``sentence``
    in_every_best, in_no_better : rows that are in every choice of k, and in none, that covers as much
    reach : h, in the distance of the kernel
    n_targets, n_candidates : distinct rows that are covered, and that may be chosen
    n_rows : rows that belong
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
    n_random: int
    n_random_as_good: int
    exchanges: tuple[NamedExchange, ...]
    in_every_best: tuple[int, ...] = field(repr=False)
    in_no_better: tuple[int, ...] = field(repr=False)
    reach: float
    n_targets: int
    n_candidates: int
    n_rows: int
    is_about_all: bool
    n_outliers: int
    constrained: bool = False
    confidence: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        is_one = self.k == 1
        best = f"best {'row' if is_one else f'{self.k:,}'}{self._scope}"
        surely = "Provably"
        if self.confidence is not None:
            surely = f"With {100 * self.confidence:.0f} % confidence"
        verdict = f"{surely} within {at_most(self.gap)} of the {best}."
        if self.is_best:
            others = f"row{self._scope} covers" if is_one else f"{self.k:,} rows{self._scope} cover"
            verdict = f"Proven: no other {others} more."
        elif self.shortfall >= LEAST_SHARE and self.exchanges:
            below = f"At least {at_least(self.shortfall)} below the {best}"
            verdict = f"{below}: {self.exchanges[0].sentence} first."
        return f"{verdict} {self._beside_random}".strip()

    __repr__ = __str__

    @property
    def _scope(self) -> str:
        if not self.is_about_all:
            return " of those compared"
        if self.confidence is not None:
            return f" of all {counted(self.n_rows, 'row')}"
        return " within the constraints" if self.constrained else ""

    @property
    def _beside_random(self) -> str:
        as_good = self.n_random_as_good
        n = self.n_random
        if self.n_candidates <= self.k:
            return ""
        if as_good >= LIKE_RANDOM * n:
            return f"No better than random: {as_good} of {n} cover as much."
        if as_good:
            return f"{as_good} of {n} random choices cover{'s' * (as_good == 1)} as much."
        below = 1.0 - self.random / self.value
        return f"Random choices are {at_least(below)} below." if below >= LEAST_SHARE else ""

    def about(self, row: int) -> str:
        """What is proven about a row, in a sentence; empty if nothing is."""
        choice = f"choice of {self.k:,}{self._scope}"
        if self.is_about_all and row in self.in_every_best:
            return f"Proven: every {choice} that covers as much has this row, or an equal one."
        if self.is_about_all and row in self.in_no_better:
            return f"Proven: no {choice} with this row covers as much."
        return ""

    def details(self) -> str:
        """The certificate with its numbers, and what it is about, in sentences."""
        others = "for any row" if self.k == 1 else f"for any {self.k:,} rows"
        value = _four_digits(self.value, ROUND_FLOOR)
        bound = _four_digits(self.bound, ROUND_CEILING)
        said = [
            str(self),
            f"A row is covered as far as the nearest of the chosen resembles it: by exp(−d / {self.reach:.4g}).",
            f"The mean is at least {value} here, and {others} at most {bound}.",
            f"For {self.n_random} random choices of {self.k:,} it is {self.random:.4g}.",
        ]
        if self.exchanges:
            gains = "; ".join(f"{each.sentence} (+{each.gain:.2g})" for each in self.exchanges)
            said.append(f"Exchanges that each add most: {gains}.")
        if self.shortfall >= LEAST_SHARE:
            most = f"at most {at_most(self.gap)}"
            said.append(f"The best is missed by at least {at_least(self.shortfall)} and {most}.")
        about = "about " if not self.is_about_all and self.n_outliers else ""  # counted in a sample
        given = f"{about}{counted(self.n_outliers, 'outlier')} and this reach"
        rows = counted(self.n_rows, "row")
        said.append(f"The proof is about the {rows} that belong, given {given}.")
        if self.confidence is not None:
            failures = f"at most once in {1 / (1 - self.confidence):.0f} draws of these it is wrong"
            said.append(f"All were compared with {self.n_targets:,} random ones: {failures}.")
        if not self.is_about_all:
            compared = f"{self.n_candidates:,} of them as choices for {self.n_targets:,}"
            said.append(f"It compares a sample, {compared}, and says nothing about other rows.")
        if self.constrained:
            others = "for all that they are compared with"
            said.append(f"The constraints of the fit hold for these rows, and {others}.")
        return " ".join([*said, *self.notes])

    def _repr_html_(self) -> str:
        rows = [(each.out, each.into, f"{each.gain:.2g}") for each in self.exchanges]
        table = html_table(("take out", "take in", "adds"), rows)
        return html_card(str(self), table, text=[self.details().removeprefix(str(self)).strip()])


@dataclass(frozen=True)
class Chosen:
    """Rows of the data that were chosen: the places of those in memory, and the numbers of others, which are read, prepared."""

    members: IntArray
    others: IntArray
    read: Any

    @classmethod
    def of(cls, selection: Selection, rows: IntArray) -> Chosen:
        data = selection.data
        if not len(rows):
            raise InvalidInputError("are no rows", "Name one at least.", parameter="picks")
        places = np.array([where_in_memory(selection, row) for row in rows.tolist()])
        members = places[places >= 0]
        others = np.sort(rows[places < 0])
        absent = members[data.points.point_of[members] < 0]
        if len(absent):
            fault = f"hold `row {int(data.rows_in_data(absent)[0])}`, whose `sample_weight` is 0"
            raise InvalidInputError(fault, "Leave it out, or give it a weight.", parameter="picks")
        if not len(others):
            return cls(members, others, None)
        if not data.all_rows.is_possible:
            fault = f"hold `row {int(others[0])}`, which is not among the rows that this model was saved with"
            remedy = "Use the model that was fitted, or mosaic.certify."
            raise InvalidInputError(fault, remedy, parameter="picks")
        read = data.all_rows.rows(others, data)
        X = selection.kernel.X
        are_many = TARGETS_FOR_A_PICK * len(rows) > X.shape[0]
        if are_many and not np.isin(row_codes(read), row_codes(X)).all():
            fault = f"are {len(rows):,} rows, some of them outside the {X.shape[0]:,} that this fit compared"
            remedy = "Use mosaic.certify, which compares more rows for more picks."
            raise InvalidInputError(fault, remedy, parameter="picks")
        return cls(members, others, read)

    @property
    def k(self) -> int:
        return len(self.members) + len(self.others)

    def prepared(self, selection: Selection) -> Any:
        """All of them as rows of the kernel."""
        kernel = selection.kernel
        here = rows_of(kernel.X, selection.data.points.point_of[self.members])
        return here if self.read is None else stacked(here, self.read)


def certificate_of(selection: Selection, rows: IntArray) -> CoverCertificate:
    """The certificate of rows of the data: within the constraints of the fit if they obey these."""
    constraints = selection.data.constraints
    chosen = Chosen.of(selection, rows)
    fits_quotas = constraints.quotas is None or chosen.k == len(selection.members)
    if constraints.are_given and fits_quotas and not len(chosen.others):
        compared = Compared.of(selection, chosen)
        if compared.obeys:
            return compared.certificate(constrained=True)
    free = Constraints.read(len(selection.data.points.point_of))
    unconstrained = replace(selection, data=replace(selection.data, constraints=free))
    return Compared.of(unconstrained, chosen).certificate(constrained=False)


@dataclass(frozen=True)
class Compared:
    """What chosen rows are compared with: candidates, by their numbers in the data, the slots that they take, and the
    similarities of targets to them. ``rows`` are the chosen, and ``picks`` their places among the candidates, equal rows at one
    place; those that may not be chosen are in the last slot, which has no room.
    """

    selection: Selection
    rows: IntArray
    candidates: IntArray
    slots: Slots
    cover: FacilityLocation
    picks: list[int]
    reach: float
    is_about_all: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, selection: Selection, chosen: Chosen) -> Compared:
        k = chosen.k
        data = selection.data
        points = data.points
        chooser = Chooser(selection, k)
        targets = chooser.targets
        eligible = chooser.eligible(k)
        few = chooser.candidates(k)
        # Of equal rows, candidates have one.
        kinds = points.point_of * len(data.constraints.names) + data.constraints.group
        equal = KnownRows.of(kinds[eligible]).find(kinds[chosen.members])
        members = np.where(equal >= 0, eligible[equal], chosen.members)
        known = np.intersect1d(np.append(members, selection.members), eligible)
        allowed = chooser.by_point(np.union1d(few, known))
        candidates = np.append(allowed, np.setdiff1d(members, allowed))
        memory_budget = selection.settings.memory_budget
        refuse_certificate_beyond(memory_budget, k, len(targets), len(candidates))
        slots = chooser.slots(candidates)
        cover = chooser.cover
        S = on_host(cover.between(targets, slots.twins))
        is_outlier = np.zeros(0, dtype=bool)
        if chosen.read is not None:
            D = cover.kernel.take(targets).distances_at(chosen.read)
            read = cover.similarities(D * cover.reach**-cover.kernel.order)
            S = np.hstack([S, np.asarray(read.T, S.dtype)])
            is_outlier = outliers_at(selection, chosen.read) & selection.rejects
        # The candidates in memory, then the rows that were read, each a point of its own in the first slot.
        n_read = len(is_outlier)
        numbers = np.append(data.rows_in_data(candidates), chosen.others)
        of = np.append(slots.of, np.zeros(n_read, np.intp))
        twins = np.append(slots.twins, points.n + np.arange(n_read))
        is_allowed = np.append(np.arange(len(candidates)) < len(allowed), ~is_outlier)
        places = KnownRows.of(candidates).find(members).tolist()
        notes = [
            f"{_called(selection, row)} is an outlier."
            for row in chosen.others[is_outlier].tolist()
        ]
        is_about_all = not selection.is_sampled and len(few) == len(eligible)
        is_about_all &= len(targets) == np.count_nonzero(~chooser.rejected)
        return cls(
            selection,
            rows=np.append(data.rows_in_data(chosen.members), chosen.others),
            candidates=numbers,
            slots=replace(
                slots,
                of=np.where(is_allowed, of, len(slots.room)),
                room=np.append(slots.room, 0),
                twins=twins,
            ),
            cover=FacilityLocation(np.asfortranarray(S), chooser.weights),
            picks=[*places, *range(len(candidates), len(numbers))],
            reach=cover.reach,
            is_about_all=is_about_all,
            notes=(*_notes(selection, chosen.members), *notes),
        )

    @property
    def obeys(self) -> bool:
        """Whether the chosen obey the constraints."""
        slots = self.slots
        distinct = set(self.picks)
        taken = np.bincount(slots.of[self.picks], minlength=len(slots.room))
        has_room = bool((taken <= slots.room).all())
        return has_room and len(distinct) == len(self.picks) and distinct.issuperset(slots.forced)

    def certificate(self, *, constrained: bool) -> CoverCertificate:
        found = bound_of(self.cover.S, self.cover.weights, self.slots, self.picks)
        total = float(self.cover.weights.sum()) or 1.0
        rng = np.random.default_rng(0)
        random = [self.slots.best(rng.random(len(self.candidates))) for _ in range(RANDOM_CHOICES)]
        drawn = np.array([self._value(choice) for choice in random])
        exchanges = self._exchanges(total, 1e-6 * found.value)
        reached = self._value(self._improved()) if exchanges else found.value
        is_allowed = self.slots.room[self.slots.of] > 0
        n_rows, n_outliers = self._counted_rows
        # No similarity is larger than 1.
        bound = min(found.bound * (1.0 + 4.0 * len(self.cover.weights) * EPS) / total, 1.0)
        return CoverCertificate(
            k=len(self.picks),
            value=found.value / total,
            bound=bound,
            gap=found.gap,
            is_best=found.is_only_best,
            shortfall=max(1.0 - found.value / reached - 1e-9, 0.0) if reached > 0 else 0.0,
            random=float(drawn.mean()) / total,
            n_random=len(drawn),
            n_random_as_good=int(np.count_nonzero(drawn >= found.value)),
            exchanges=exchanges,
            in_every_best=self._numbers(found.in_every_best & is_allowed),
            in_no_better=self._numbers(found.in_no_better & is_allowed),
            reach=self.reach,
            n_targets=len(self.cover.weights),
            n_candidates=len(np.unique(self.slots.twins[is_allowed])),
            n_rows=n_rows - n_outliers,
            is_about_all=self.is_about_all,
            n_outliers=n_outliers,
            constrained=constrained,
            notes=self.notes,
        )

    @property
    def _counted_rows(self) -> tuple[int, int]:
        """Rows, of those in memory the ones with a weight, and how many of them are set aside."""
        selection = self.selection
        if selection.is_sampled:
            n_rows = selection.n_rows
            n_outliers = selection.n_outliers
        else:
            has_weight = selection.data.points.point_of >= 0
            n_rows = int(has_weight.sum())
            n_outliers = int((selection.outlier_mask & has_weight).sum())
        return n_rows, n_outliers if selection.rejects else 0

    def _value(self, chosen: ArrayLike) -> float:
        return float(self.cover.weights @ self.cover.S.T[np.asarray(chosen)].max(axis=0))

    def _exchanges(self, total: float, least: float) -> tuple[NamedExchange, ...]:
        data = self.selection.data
        named = []
        best = self.cover.best_exchanges(self.picks, self.slots, NAMED_EXCHANGES)
        for place, candidate, gain in best:
            if gain > least:
                out = int(self.rows[place])
                into = int(self.candidates[candidate])
                sentence = f"exchange {data.called(out)} for {data.called(into)}"
                named.append(NamedExchange(out, into, gain / total, sentence))
        return tuple(named)

    def _improved(self) -> list[int]:
        """A better choice that may be made: the picks that may be chosen, completed, or candidates chosen one after the other,
        whatever is better, exchanged as long as that helps.
        """
        slots = self.slots
        may_stay = [pick for pick in self.picks if slots.room[slots.of[pick]] > 0]
        forced = list(dict.fromkeys([*slots.forced, *may_stay]))
        complete = self.cover.ranked(replace(slots, forced=forced))[0]
        anew = self.cover.ranked(slots)[0]
        return self.cover.exchanged(max(complete, anew, key=self._value), slots)

    def _numbers(self, is_meant: BoolArray) -> tuple[int, ...]:
        return tuple(self.candidates[is_meant].tolist())


def _called(selection: Selection, row: int) -> str:
    return selection.data.called(row) if selection.data.row_names is not None else f"Row {row}"


def _notes(selection: Selection, chosen: IntArray) -> tuple[str, ...]:
    """Rows that were chosen although they are outliers, or equal to others that were."""
    data = selection.data
    notes = []
    first: dict[int, int] = {}
    rows = data.rows_in_data(chosen).tolist()
    points = data.points.point_of[chosen].tolist()
    for row, point in zip(rows, points, strict=True):
        before = first.setdefault(point, row)
        called = _called(selection, row)
        if before != row:
            equal = f"is equal to {data.called(before)}: one of them adds nothing"
            notes.append(f"{called} {equal}.")
        elif selection.is_outlier[point]:
            notes.append(f"{called} is an outlier.")
    return tuple(notes)


def _four_digits(value: float, rounding: str) -> str:
    """A number as Python writes it, 0.02 for the double nearest to that, rounded in one direction."""
    return f"{Context(4, rounding).create_decimal(repr(float(value))).normalize():f}"
