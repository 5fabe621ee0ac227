"""The result of a fit: findings and decisions, in one object that everything else reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import NO_ROWS, BoolArray, FloatArray, IntArray
from mosaic.choosing.answers import (
    Question,
    counts_at,
    errors_at,
    labels_at,
    nearest_picks,
    of_all_rows,
    outliers_at,
)
from mosaic.choosing.coverage import Coverage
from mosaic.choosing.explain import Decisions, decisions
from mosaic.choosing.geometry import UsualRows
from mosaic.choosing.outliers import Cut, KeptGroups, outlier_probability
from mosaic.choosing.points import FitData, Solved, once
from mosaic.choosing.settings import Settings
from mosaic.kernels import Kernel
from mosaic.parameters import fields_of
from mosaic.program.encoding import Certificate

if TYPE_CHECKING:
    from mosaic.choosing.cover_certificate import CoverCertificate

Value = TypeVar("Value", bound=np.generic)


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
        low[data.never_outliers] = False
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

        labels = nearest_picks(
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
        if self.is_estimated:
            return round(self.outlier_share * self.n_rows)
        return int(self.outlier_mask.sum())

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

    # Rows of the data

    def _of_rows(self, values: NDArray[Value], at: Question) -> NDArray[Value]:
        """Values of their points for the rows in memory; rows without weight are answered as new rows."""
        group = self.data.points.point_of
        found = values[group]
        absent = group < 0
        if absent.any():
            found[absent] = at(self, self.data.absent)
        return found

    @cached_property
    def counts_in_memory(self) -> FloatArray:
        return self._of_rows(self.data.counts, counts_at)

    @cached_property
    def outliers_in_memory(self) -> BoolArray:
        return self._of_rows(self.is_outlier, outliers_at)

    @cached_property
    def labels_in_memory(self) -> IntArray:
        return self._of_rows(self.labels, labels_at)

    @cached_property
    def errors_in_memory(self) -> FloatArray:
        return self._of_rows(self.errors, errors_at)

    @once
    def labels_of_rows(self) -> IntArray:
        labels = of_all_rows(self, self.labels_in_memory, labels_at)
        if self.rejects and len(self.chosen):
            self.computed["outlier_mask"] = labels < 0  # without another pass
        return labels

    @once
    def errors_of_rows(self) -> FloatArray:
        return of_all_rows(self, self.errors_in_memory, errors_at)

    @once
    def effective_count(self) -> FloatArray:
        return of_all_rows(self, self.counts_in_memory, counts_at)

    @once
    def outlier_mask(self) -> BoolArray:
        if not self.has_cut:
            return np.zeros(self.n_rows, dtype=bool)
        return of_all_rows(self, self.outliers_in_memory, outliers_at)

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
        if self.groups is None:
            return None
        return np.asarray(self.data.points.spread(self.groups.members, False), bool)

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

    @cached_property
    def usual(self) -> UsualRows | None:
        """The rows that belong, which reasons compare others with; None where the kernel does not compare columns."""
        return UsualRows.of(self)

    @property
    def decisions(self) -> Decisions:
        return decisions(self)
