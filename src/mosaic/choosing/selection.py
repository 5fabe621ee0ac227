"""The result of a fit: findings and decisions, in one object that everything else reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mosaic.arrays.blocks import NO_ROWS, BoolArray, FloatArray, IntArray, in_blocks, row_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import Matrix, on_host, rows_of
from mosaic.choosing.certificate import counted
from mosaic.choosing.cover import CACHED_SIMILARITIES
from mosaic.choosing.coverage import Coverage
from mosaic.choosing.explain import Decisions, decisions
from mosaic.choosing.geometry import UsualRows
from mosaic.choosing.outliers import CROWD_SHARE, ROUNDING, Cut, KeptGroups, outlier_probability
from mosaic.choosing.points import FitData, Solved, once
from mosaic.choosing.settings import Settings, is_auto
from mosaic.kernels import DiffusionKernel, Kernel, PointKernel
from mosaic.parameters import fields_of
from mosaic.program.encoding import Certificate
from mosaic.text import listed

if TYPE_CHECKING:
    from mosaic.choosing.cover_certificate import CoverCertificate

#: Outliers that are brought into memory beside a sample.
MOST_OUTLIERS = 5000
#: Distances in single precision are compared again where one is at most this multiple of another, or both are below the second.
NEARLY_AS_NEAR = np.float32(1.01)
SMALLEST_IN_SINGLE = np.float32(1e-30)


@dataclass(frozen=True)
class Selection:
    """The findings and decisions of a fit. Row numbers are those of the data; points are its distinct rows in memory.

    Attributes
    ----------
    rows : representatives, ranked
    members, chosen : the same as numbers of rows in memory, and of points
    gains : how much each adds to the mean similarity between the points that belong and their nearest pick; in paper mode,
        influence
    cut : the effective count below which rows are outliers, and the rule that gave it
    groups : outliers that are kept because they form a group, None without any
    changes : what became of the picks of an earlier fit, in sentences
    why_so_many : why an automatic number is what it is, in words; empty if the number was given
    data, settings, computed : points, similarity, constraints and counts; the parameters; what has been computed so far

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> selection = MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).selection_
    >>> len(selection.rows), selection.cut.rule, selection.n_outliers
    (20, 'alone', 8)
    """

    data: FitData = field(repr=False)
    settings: Settings
    cut: Cut
    groups: KeptGroups | None = field(default=None, repr=False)
    members: IntArray = field(default_factory=NO_ROWS.copy)
    gains: FloatArray = field(default_factory=lambda: np.zeros(0), repr=False)
    changes: tuple[str, ...] = field(default=(), repr=False)
    why_so_many: str = field(default="", repr=False)
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        # Answers for rows that are not in memory are kept, because a copy cannot read the rows.
        kept = {
            name: value
            for name, value in self.computed.items()
            if name == "certificate" or self.is_sampled
        }
        return fields_of(self) | {"computed": kept}

    @property
    def rows(self) -> IntArray:
        return self.data.rows_in_data(self.members)

    @cached_property
    def chosen(self) -> IntArray:
        return self.data.points.point_of[self.members]

    @property
    def n_rows(self) -> int:
        return self.data.n_rows

    @property
    def is_sampled(self) -> bool:
        """Whether the points are a sample of many rows; then numbers of rows are scaled up."""
        return self.data.row_numbers is not None

    @property
    def kernel(self) -> Kernel:
        return self.data.kernel

    @cached_property
    def chosen_kernel(self) -> Kernel:
        return self.kernel.take(self.chosen)

    @once
    def certificate(self) -> CoverCertificate | Certificate:
        """What is proven about the choice; for the paper's algorithm about its program."""
        if self.settings.mode == "paper":
            return self.data.solved.certificate
        from mosaic.choosing.cover_certificate import certificate_of  # it chooses, too

        found = certificate_of(self, self.rows)
        # Of a sample, picks are the best for more rows than are compared.
        return replace(found, shortfall=0.0, exchanges=()) if self.is_sampled else found

    @property
    def is_proven(self) -> bool:
        """Whether the certificate has been computed."""
        return "certificate" in self.computed

    def proven_of(self, row: int) -> str:
        """What the certificate proves about a row, in a sentence; empty where it proves nothing, or has not been computed."""
        proof = self.computed.get("certificate") if self.settings.mode != "paper" else None
        return "" if proof is None else str(proof.about(row))

    @property
    def has_cut(self) -> bool:
        """Whether any row could be an outlier."""
        return self.settings.outliers != "keep" and self.cut.count > 1.0

    @property
    def rejects(self) -> bool:
        return self.settings.outliers == "reject" and self.has_cut

    @cached_property
    def is_outlier(self) -> BoolArray:
        """Mask of the points that are below the cut, not in a group that is kept, and not to be included in any case."""
        data = self.data
        if self.settings.outliers == "keep":
            return np.zeros(data.points.n, dtype=bool)
        low = self.cut.below(data.counts)
        low[data.points.point_of[data.constraints.must]] = False
        return low if self.groups is None else low & ~self.groups.members

    @cached_property
    def labels(self) -> IntArray:
        """For each point, the position of its representative; -1 for rejected outliers, or if there are no representatives."""
        kernel = self.kernel
        chosen = self.chosen
        if not len(chosen):
            return np.full(kernel.n, -1, np.intp)

        def exact(points: IntArray) -> FloatArray:
            return kernel.distances(points, chosen)

        labels = _nearest(
            kernel.n, len(chosen), kernel.in_single(chosen, kernel.unit), exact, kernel.X
        )
        if self.settings.outliers == "reject":
            labels[self.is_outlier] = -1
        labels[chosen] = np.arange(len(chosen))
        return labels

    @cached_property
    def measure(self) -> Coverage:
        return Coverage(self.kernel, self.data.points.weights * ~self.is_outlier)

    @cached_property
    def errors(self) -> FloatArray:
        """For each point, its distance to the nearest representative, in units of the mean distance to the best single row."""
        return self.measure.errors(self.chosen)

    @cached_property
    def coverage(self) -> float:
        return float(self.measure.along(self.chosen)[-1]) if len(self.chosen) else 0.0

    @property
    def outlier_share(self) -> float:
        """Share of the rows that are outliers; estimated from the sample if there is one."""
        return float(self.data.points.weights[self.is_outlier].sum() / self.data.points.total)

    @property
    def is_estimated(self) -> bool:
        """Whether the number of outliers is scaled up from a sample; it is exact once all rows have been looked at."""
        return self.is_sampled and "outlier_mask" not in self.computed

    @property
    def n_outliers(self) -> int:
        """Number of rows that are outliers, which all who tell it read here."""
        return (
            round(self.outlier_share * self.n_rows)
            if self.is_estimated
            else int(self.outlier_mask.sum())
        )

    @property
    def n_protected(self) -> int:
        """Number of rows below the cut that are kept because they form a group; estimated from the sample if there is one."""
        return 0 if self.protected is None else round(float(self.rows_for[self.protected].sum()))

    @cached_property
    def rows_for(self) -> FloatArray:
        """For each row in memory, how many rows of the data it stands for: 1, or more in a sample."""
        group = self.data.points.point_of
        weights = self.data.points.weights
        if not self.is_sampled:
            return np.ones(len(group))
        return np.asarray(
            weights[group] / np.bincount(group)[group] * (self.n_rows / weights.sum())
        )

    @cached_property
    def stands_for(self) -> FloatArray:
        """For each representative, how many rows of the data it stands for, itself included."""
        labels = self.labels_in_memory
        belongs = labels >= 0
        sums = np.bincount(labels[belongs], self.rows_for[belongs], len(self.rows))
        return np.asarray(sums, np.float64)

    # Prepared rows, which need not be rows of the data

    def places_at(self, Y: Matrix) -> FloatArray:
        """Columns: position of the representative (-1), similarity to it (NaN), error, effective count, 1 for outliers."""
        counts = self.data.counts_at(Y)
        flagged = self.outliers_at(Y, counts)
        labels = self._labels_at(Y, flagged)
        similarity = np.full(len(counts), np.nan)
        for rows in row_blocks(len(counts) if len(self.chosen) else 0, len(self.chosen)):
            K = self.similarities_at(rows_of(Y, rows))
            label = labels[rows]
            similarity[rows] = np.where(label >= 0, K[np.arange(len(K)), label], np.nan)
        return np.column_stack([labels, similarity, self.errors_at(Y), counts, flagged])

    def outliers_at(self, Y: Matrix, counts: FloatArray | None = None) -> BoolArray:
        """Mask of the outliers. Rows near a group that is kept, and rows equal to a must-include row, are none."""
        if not self.has_cut:
            return np.zeros(Y.shape[0], dtype=bool)
        flagged = self.data.below(Y, self.cut.count) if counts is None else self.cut.below(counts)
        odd = np.flatnonzero(flagged)
        if self.groups is not None and len(odd):
            flagged[odd[self.groups.near(rows_of(Y, odd))]] = False
        must = self.data.points.point_of[self.data.constraints.must]
        if len(must) and len(odd):
            apart = self.kernel.take(must).distances_at(rows_of(Y, odd))
            flagged[odd[(apart <= 0).any(axis=1)]] = False
        return flagged

    def labels_at(self, Y: Matrix) -> IntArray:
        """The positions of their representatives; -1 for outliers, or if there are no representatives."""
        return self._labels_at(
            Y, self.outliers_at(Y) if self.rejects and len(self.chosen) else None
        )

    def _labels_at(self, Y: Matrix, flagged: BoolArray | None) -> IntArray:
        kernel = self.chosen_kernel
        n = Y.shape[0]
        if not len(self.chosen):
            return np.full(n, -1, np.intp)
        single = kernel.in_single_at(kernel.unit)
        # A pick stands for itself, whatever the rounding. A diffusion kernel has neighbours of rows, not rows.
        is_known = isinstance(kernel, PointKernel) and not isinstance(kernel, DiffusionKernel)
        known = KnownRows.of(row_codes(kernel.X)) if is_known else None

        def exact(rows: IntArray) -> FloatArray:
            new = rows_of(Y, rows)
            D = kernel.distances_at(new)
            if known is not None and isinstance(kernel, PointKernel):
                place = known.find(row_codes(kernel.over(new).X))
                itself = np.flatnonzero(place >= 0)
                D[itself, place[itself]] = -1.0
            return D

        labels = _nearest(n, kernel.n, lambda rows: single(rows_of(Y, rows)), exact, kernel.X)
        if flagged is not None and self.rejects:
            labels[flagged] = -1
        return labels

    def errors_at(self, Y: Matrix) -> FloatArray:
        return self.measure.errors_at(self.chosen_kernel, Y)

    def similarities_at(self, Y: Matrix) -> FloatArray:
        return self.chosen_kernel.cross(Y)

    def counts_at(self, Y: Matrix) -> FloatArray:
        return self.data.counts_at(Y)

    def counts_of_outliers_at(self, Y: Matrix) -> FloatArray:
        """Infinite for rows that belong."""
        counts = self.counts_at(Y)
        return np.where(self.outliers_at(Y, counts), counts, np.inf)

    def errors_of_belonging_at(self, Y: Matrix) -> FloatArray:
        """NaN for outliers."""
        return np.where(self.outliers_at(Y), np.nan, self.errors_at(Y))

    # Rows of the data

    def _of_rows(self, values: Any, at: Callable[[Any], Any]) -> Any:
        """Values of their points for the rows in memory; rows without weight are answered ``at`` as new rows."""
        group = self.data.points.point_of
        found = np.asarray(values)[group]
        absent = group < 0
        if absent.any():
            found[absent] = at(self.data.absent)
        return found

    @cached_property
    def counts_of_rows(self) -> FloatArray:
        return np.asarray(self._of_rows(self.data.counts, self.data.counts_at))

    @cached_property
    def outlier_rows(self) -> BoolArray:
        return np.asarray(self._of_rows(self.is_outlier, self.outliers_at))

    def _of_all_rows(self, in_memory: Any, question: Question) -> Any:
        """Answers for all rows of the data; of a sample, by a pass. Rows in memory have those of their points, which respect the
        constraints.
        """
        if not self.is_sampled:
            return in_memory
        answers = np.array(
            self.data.all_rows.answers(self, question)
        )  # arrays from other processes may be read-only
        answers[self.data.row_numbers] = in_memory
        return answers

    @cached_property
    def labels_in_memory(self) -> IntArray:
        return np.asarray(self._of_rows(self.labels, self.labels_at), np.intp)

    @cached_property
    def errors_in_memory(self) -> FloatArray:
        return np.asarray(self._of_rows(self.errors, self.errors_at))

    @once
    def labels_of_rows(self) -> IntArray:
        labels = np.asarray(self._of_all_rows(self.labels_in_memory, Selection.labels_at), np.intp)
        if self.rejects and len(self.chosen):
            self.computed["outlier_mask"] = labels < 0  # without another pass
        return labels

    @once
    def errors_of_rows(self) -> FloatArray:
        return np.asarray(self._of_all_rows(self.errors_in_memory, Selection.errors_at))

    @once
    def effective_count(self) -> FloatArray:
        return np.asarray(self._of_all_rows(self.counts_of_rows, Selection.counts_at))

    @once
    def outlier_mask(self) -> BoolArray:
        if not self.has_cut:
            return np.zeros(self.n_rows, dtype=bool)
        return np.asarray(self._of_all_rows(self.outlier_rows, Selection.outliers_at), bool)

    def with_outliers(self) -> Selection:
        """The same findings, of a sample with the outliers of all rows in memory, ``MOST_OUTLIERS`` with the lowest counts: one
        pass looks for them. The selection itself where all rows are in memory, or can no longer be read.
        """
        data = self.data
        kernel = self.kernel
        can_join = isinstance(kernel, PointKernel) and not isinstance(kernel, DiffusionKernel)
        if data.row_numbers is None or not (
            self.has_cut and can_join and data.all_rows.is_possible
        ):
            return self
        in_memory = np.where(self.outlier_rows, self.counts_of_rows, np.inf)
        counts = np.asarray(self._of_all_rows(in_memory, Selection.counts_of_outliers_at))
        self.computed["outlier_mask"] = counts < np.inf
        lowest = np.argsort(counts, kind="stable")[: min(MOST_OUTLIERS, self.n_outliers)]
        new = np.setdiff1d(lowest, data.row_numbers)
        if not len(new):
            return self
        joined = data.joined(new, data.all_rows.rows(new, data), allowed=False, group=0)
        kept = self.groups
        if kept is not None:
            kept = replace(kept, group=np.pad(kept.group, (0, len(new))))
        assert joined.row_numbers is not None
        members = np.searchsorted(joined.row_numbers, self.rows)
        return replace(self, data=joined, groups=kept, members=members)

    @property
    def program(self) -> Solved:
        """What the paper's algorithm chose by; the other one solves no program of all rows."""
        if self.settings.mode != "paper":
            rest = "mosaic.solve solves the program of any rows, with a certificate."
            raise AttributeError(
                f"influence_, lam_, alpha_ and n_iter_ exist with algorithm='paper' only. {rest}"
            )
        return self.data.solved

    @property
    def influence(self) -> FloatArray:
        """For each row of the data, the norm of its row in the encoding; copies share it equally."""
        points = self.data.points
        copies = np.bincount(points.point_of[points.point_of >= 0], minlength=points.n)
        return np.asarray(points.spread(self.program.influence / copies, 0.0))

    @property
    def outlier_probability(self) -> FloatArray:
        """The paper's OP of every row, in paper mode. With counts of 128 rows it would be near 1 for every row."""
        if self.settings.mode != "paper":
            rest = "Use effective_count_, how many rows look like each row, or is_outlier_."
            raise AttributeError(f"outlier_probability_ exists with algorithm='paper' only. {rest}")
        return outlier_probability(self.effective_count, self.data.count_total)

    @property
    def protected(self) -> BoolArray | None:
        """Mask of the rows in memory with low counts that are kept, near to other rows or in a group; None without any."""
        return (
            None
            if self.groups is None
            else np.asarray(self.data.points.spread(self.groups.members, False), bool)
        )

    @property
    def kept_groups(self) -> IntArray:
        """For each row in memory the number of its group that is kept, 1 for the largest; 0 or less for rows of none."""
        points = self.data.points
        group = np.zeros(points.n, np.intp) if self.groups is None else self.groups.group
        return np.asarray(points.spread(group, 0))

    @property
    def kept_rows(self) -> tuple[IntArray, ...]:
        """The row numbers of each group that is kept although its counts are low, the largest first; of a sample, its rows."""
        group = self.kept_groups
        return tuple(
            self.data.rows_in_data(np.flatnonzero(group == number))
            for number in range(1, group.max() + 1)
        )

    @property
    def kept_sentence(self) -> str:
        sizes = np.bincount(self.kept_groups.clip(0), self.rows_for)[1:]
        told = listed([f"{size:,.0f}" for size in sizes])
        groups = (
            f"A group of {told} rows" if len(sizes) == 1 else f"{len(sizes)} groups of {told} rows"
        )
        verb = "is" if len(sizes) == 1 else "are"
        return (
            f"{groups} that few rows look like {verb} kept; selection_.kept_rows has their numbers."
        )

    @cached_property
    def usual(self) -> UsualRows | None:
        """The rows that belong, which reasons compare others with; None where the kernel does not compare columns."""
        return UsualRows.of(self)

    @property
    def decisions(self) -> Decisions:
        return decisions(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know before trusting the answer."""
        settings = self.settings
        n = self.n_rows
        found = []
        if settings.mode == "paper":
            k = settings.number(n)
            m = len(self.rows)
            if k is None or m >= k:
                return ()
            located = int(np.count_nonzero(self.data.solved.influence))
            return (
                f"{k} representatives were asked for, and {counted(m, 'row')} left: of {counted(located, 'row')} with influence, "
                "the others are near to a more influential one (`diversity`) or outliers (`op_threshold`). Ask for fewer, "
                "raise `alpha`, or leave `algorithm` at None.",
            )
        if (
            is_auto(settings.contamination)
            and settings.outliers != "keep"
            and self.outlier_share > CROWD_SHARE
        ):
            share = f"{self.n_outliers:,} of {n:,} rows ({100 * self.outlier_share:.0f} %)"
            found.append(
                f"{share} are taken for outliers: a crowd that few rows look like. If they belong, set "
                "`outliers='keep'` or `min_group`; if you know their share, set `contamination`."
            )
        if self.kept_rows:
            found.append(f"{self.kept_sentence} If that is noise, set `contamination`.")
        return tuple(found)


def _nearest(
    n: int,
    k: int,
    single: Callable[[IntArray], Any],
    exact: Callable[[IntArray], FloatArray],
    on: Any,
) -> IntArray:
    """The nearest of k picks for each of n rows, of equally near ones the first: by distances in single precision, and by exact
    ones for rows that have two picks nearly as near.
    """
    labels = np.empty(n, np.intp)

    def compare(part: slice) -> None:
        rows = np.arange(part.start, part.stop)
        D = on_host(single(rows))
        labels[part] = D.argmin(axis=1)
        nearest = D[np.arange(len(D)), labels[part]]
        limit = np.maximum(NEARLY_AS_NEAR * nearest, SMALLEST_IN_SINGLE)
        close = np.flatnonzero(np.count_nonzero(limit[:, None] >= D, axis=1) != 1)
        if len(close):
            D = exact(rows[close])
            labels[rows[close]] = ((1.0 + ROUNDING) * D.min(axis=1)[:, None] >= D).argmax(axis=1)

    in_blocks(compare, n, k, CACHED_SIMILARITIES, on=on)
    return labels


#: A method of ``Selection`` that answers for prepared rows.
Question: TypeAlias = Callable[[Selection, Any], Any]
