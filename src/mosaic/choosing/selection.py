"""The result of a fit: findings and decisions, in one object that everything else reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import on_host, rows_of
from mosaic.choosing.certificate import SelectionCertificate
from mosaic.choosing.explain import Decisions, decisions
from mosaic.choosing.geometry import UsualRows
from mosaic.choosing.objectives import quantised
from mosaic.choosing.outliers import CROWD_SHARE, Cut, KeptGroups, outlier_probability
from mosaic.choosing.points import FitData, once
from mosaic.choosing.settings import Settings, is_auto
from mosaic.kernels import DiffusionKernel, Kernel, PointKernel
from mosaic.metrics import left_by, root_of_inverse, unexplained

if TYPE_CHECKING:
    from mosaic.choosing.cover_certificate import CoverCertificate


class Answers(NamedTuple):
    """Answers for rows: effective counts, outliers, the representative of each row, and the unexplained share of each row."""

    effective_count: FloatArray
    is_outlier: BoolArray
    labels: IntArray
    representation_error: FloatArray


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
    silhouette : mean silhouette that speaks for an automatic number, 0 if no number stands out; None if it was given
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
    members: IntArray = field(default_factory=lambda: np.zeros(0, np.intp))
    gains: FloatArray = field(default_factory=lambda: np.zeros(0), repr=False)
    changes: tuple[str, ...] = field(default=(), repr=False)
    silhouette: float | None = field(default=None, repr=False)
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        if self.is_sampled and self.data.is_solved and self.data.all_rows.is_possible:
            self.influence  # noqa: B018
        # Answers for rows that are not in memory are kept, because a copy cannot read the rows.
        kept = {name: value for name, value in self.computed.items() if name == "certificate" or self.is_sampled}
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"computed": kept}

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
    def certificate(self) -> CoverCertificate | SelectionCertificate:
        """What is proven about the choice; for the paper's algorithm about its program, which the first access solves."""
        if self.settings.mode == "paper":
            return self.data.all_rows.certificate(self)  # type: ignore[no-any-return]
        from mosaic.choosing.cover_certificate import certificate_of  # it chooses, too

        return certificate_of(self)

    @property
    def can_be_certified(self) -> bool:
        """Whether there is what a certificate needs: the rows in memory, or for the paper's algorithm all rows."""
        return self.is_proven or self.settings.mode != "paper" or bool(self.data.all_rows.is_possible)

    @property
    def is_proven(self) -> bool:
        """Whether the certificate has been computed."""
        return "certificate" in self.computed

    @property
    def rejects(self) -> bool:
        return self.settings.outliers == "reject" and self.cut.count > 1.0

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
        kernel, chosen = self.kernel, self.chosen
        labels = np.full(kernel.n, -1, np.intp)
        if not len(chosen):
            return labels

        def compare(rows: slice) -> None:
            labels[rows] = self._nearest(kernel.block(rows, chosen))

        in_blocks(compare, kernel.n, len(chosen), on=kernel.X)
        if self.settings.outliers == "reject":
            labels[self.is_outlier] = -1
        labels[chosen] = np.arange(len(chosen))
        return labels

    def _nearest(self, K: FloatArray) -> IntArray:
        """The nearest representative, by the distance k_jj − 2 k_ij (+ k_ii)."""
        lengths = self.chosen_kernel.diagonal()
        return np.asarray(quantised(lengths - 2.0 * K, float(lengths.max())).argmin(axis=1))

    @cached_property
    def errors(self) -> FloatArray:
        """For each point, the share of it that the representatives cannot express."""
        return _share(unexplained(self.kernel, self.chosen), self.kernel.diagonal())

    @cached_property
    def coverage(self) -> float:
        """Share of the points that belong which the representatives express."""
        amount = self.data.points.weights * ~self.is_outlier * self.kernel.diagonal()
        total = float(amount.sum())
        return 1.0 - float(amount @ self.errors) / total if total > 0 else 1.0

    @property
    def outlier_share(self) -> float:
        """Share of the rows that are outliers; estimated from the sample if there is one."""
        return float(self.data.points.weights[self.is_outlier].sum() / self.data.points.total)

    @property
    def is_estimated(self) -> bool:
        """Whether the number of outliers is scaled up from a sample; it is exact once all rows have been looked at."""
        return self.is_sampled and "answers" not in self.computed

    @property
    def n_outliers(self) -> int:
        """Number of rows that are outliers, which all who tell it read here."""
        return round(self.outlier_share * self.n_rows) if self.is_estimated else int(self.outlier_mask.sum())

    @property
    def n_protected(self) -> int:
        """Number of rows below the cut that are kept because they form a group; estimated from the sample if there is one."""
        return 0 if self.protected is None else round(float(self.rows_for[self.protected].sum()))

    @cached_property
    def rows_for(self) -> FloatArray:
        """For each row in memory, how many rows of the data it stands for: 1, or more in a sample."""
        group, weights = self.data.points.point_of, self.data.points.weights
        if not self.is_sampled:
            return np.ones(len(group))
        return np.asarray(weights[group] / np.bincount(group)[group] * (self.n_rows / weights.sum()))

    # Prepared rows, which need not be rows of the data

    def answers_at(self, Y: Any) -> Answers:
        labels, _, errors, counts, flagged = self.places_at(Y).T
        return Answers(counts, flagged > 0, labels.astype(np.intp), errors)

    def places_at(self, Y: Any) -> FloatArray:
        """Columns: position of the representative (-1), similarity to it (NaN), unexplained share, effective count, 1 for
        outliers.
        """
        counts = self.data.counts_at(Y)
        flagged = self.outliers_at(Y, counts)
        labels, errors, similarity = self._represented_at(Y, flagged)
        return np.column_stack([labels, similarity, errors, counts, flagged])

    def outliers_at(self, Y: Any, counts: FloatArray | None = None) -> BoolArray:
        """Mask of the outliers. Rows near a group that is kept, and rows equal to a must-include row, are none."""
        counts = self.data.counts_at(Y) if counts is None else counts
        flagged = self.cut.below(counts) if self.settings.outliers != "keep" else np.zeros(len(counts), dtype=bool)
        odd = np.flatnonzero(flagged)
        if self.groups is not None and len(odd):
            flagged[odd[self.groups.near(rows_of(Y, odd))]] = False
        must = self.data.points.point_of[self.data.constraints.must]
        if len(must) and len(odd):
            flagged[odd[(self.kernel.take(must).distances_at(rows_of(Y, odd)) <= 0).any(axis=1)]] = False
        return flagged

    def labels_at(self, Y: Any) -> IntArray:
        """The positions of their representatives; -1 for outliers, or if there are no representatives."""
        flagged = self.outliers_at(Y) if self.rejects and len(self.chosen) else None
        return self._represented_at(Y, flagged, errors=False)[0]

    def errors_at(self, Y: Any) -> FloatArray:
        return self._represented_at(Y)[1]

    def similarities_at(self, Y: Any) -> FloatArray:
        return self.chosen_kernel.cross(Y)

    def log_counts_at(self, Y: Any) -> FloatArray:
        return np.log(self.data.counts_at(Y))

    def explained_at(self, Y: Any) -> FloatArray:
        """Two columns: the amount that the representatives express, and its total k_ii."""
        diagonal = self.chosen_kernel.diagonal_at(Y)
        return np.column_stack([(1.0 - self.errors_at(Y)) * diagonal, diagonal])

    def _represented_at(
        self, Y: Any, flagged: BoolArray | None = None, *, errors: bool = True
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Labels, errors if they are asked for, and similarities to the representative, NaN without one."""
        n, kernel = Y.shape[0], self.chosen_kernel
        label, error, similarity = np.full(n, -1, np.intp), np.ones(n), np.full(n, np.nan)
        if not len(self.chosen):
            return label, error, similarity
        root, lengths = self._root if errors else None, kernel.diagonal()
        # A pick stands for itself, even if all similarities are 1. A diffusion kernel has neighbours of rows, not rows.
        is_known = isinstance(kernel, PointKernel) and not isinstance(kernel, DiffusionKernel)
        known = KnownRows.of(row_codes(kernel.X)) if is_known else None

        def compare(rows: slice) -> None:
            new = rows_of(Y, rows)
            similar, own = kernel.device_cross(new), kernel.diagonal_at(new)
            if root is not None:
                error[rows] = _share(left_by(root, similar, own), own)
            K = on_host(similar)
            found = self._nearest(K)
            if known is not None and isinstance(kernel, PointKernel):
                place = known.find(row_codes(kernel.over(new).X))
                found = np.where(place >= 0, place, found)
            if flagged is not None and self.rejects:
                odd = np.flatnonzero(flagged[rows])
                apart = (lengths - 2.0 * K[odd]).min(axis=1) + own[odd]
                found[odd[apart > 1e-12 * np.abs(own[odd])]] = -1  # a representative stands for itself
            label[rows] = found
            similarity[rows] = np.where(found >= 0, K[np.arange(len(K)), found], np.nan)

        in_blocks(compare, n, kernel.n, on=kernel.X)
        return label, error, similarity

    @cached_property
    def _root(self) -> FloatArray:
        return root_of_inverse(self.chosen_kernel, np.arange(len(self.chosen)))

    # Rows of the data

    def _of_rows(self, values: Any, at: Callable[[Any], Any]) -> Any:
        """Values of their points for the rows in memory; rows without weight are answered ``at`` as new rows."""
        group = self.data.points.point_of
        found, absent = np.asarray(values)[group], group < 0
        if absent.any():
            found[absent] = at(self.data.absent)
        return found

    @cached_property
    def counts_of_rows(self) -> FloatArray:
        return np.asarray(self._of_rows(self.data.counts, self.data.counts_at))

    @cached_property
    def outlier_rows(self) -> BoolArray:
        return np.asarray(self._of_rows(self.is_outlier, self.outliers_at))

    @cached_property
    def answers_in_memory(self) -> Answers:
        labels, errors = self._of_rows(self.labels, self.labels_at), self._of_rows(self.errors, self.errors_at)
        return Answers(self.counts_of_rows, self.outlier_rows, labels, errors)

    @once
    def answers(self) -> Answers:
        """Answers for all rows of the data; of a sample, the first access makes a pass over the rows."""
        return self.data.all_rows.answers(self) if self.is_sampled else self.answers_in_memory

    @once
    def influence(self) -> FloatArray:
        """For each row of the data, the norm of its row in the encoding; copies share it equally."""
        return np.asarray(self.data.all_rows.influence(self.data))

    @property
    def outlier_probability(self) -> FloatArray:
        """The paper's OP of every row, in paper mode. With counts of 128 rows it would be near 1 for every row."""
        if self.settings.mode != "paper":
            rest = "Use effective_count_, how many rows look like each row, or is_outlier_."
            raise AttributeError(f"outlier_probability_ exists with algorithm='paper' only. {rest}")
        return outlier_probability(self.effective_count, self.data.count_total)

    @property
    def effective_count(self) -> FloatArray:
        return self.answers.effective_count if self.is_sampled else self.counts_of_rows

    @property
    def outlier_mask(self) -> BoolArray:
        return self.answers.is_outlier if self.is_sampled else self.outlier_rows

    @property
    def protected(self) -> BoolArray | None:
        """Mask of the rows in memory with low counts that are kept, near to other rows or in a group; None without any."""
        return None if self.groups is None else np.asarray(self.data.points.spread(self.groups.members, False), bool)

    @property
    def crowd_share(self) -> float:
        """Share of the rows that are a sparse crowd, noise or a group, and are kept; 0 without one."""
        points = self.data.points
        return float(points.weights[self.data.counts < self.cut.sparse_group].sum() / points.total)

    @property
    def crowd(self) -> IntArray:
        """Row numbers of the sparse crowd."""
        return np.flatnonzero(self.effective_count < self.cut.sparse_group)

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
        settings, n, found = self.settings, self.n_rows, []
        if settings.mode == "paper":
            return ()
        if is_auto(settings.contamination) and settings.outliers != "keep" and self.outlier_share > CROWD_SHARE:
            share = f"{self.n_outliers:,} of {n:,} rows ({100 * self.outlier_share:.0f} %)"
            found.append(
                f"{share} are taken for outliers: a crowd that few rows look like. If they belong, set "
                "`outliers='keep'` or `min_group`; if you know their share, set `contamination`."
            )
        sparse = self.cut.sparse_group
        if len(self.chosen) and sparse > 0 and (self.data.counts[self.chosen] >= sparse).all():
            found.append(
                f"{100 * self.crowd_share:.0f} % of {n:,} rows form a sparse crowd without a representative. If it is a group, "
                "ask for more representatives; if it is noise, set `contamination`."
            )
        return tuple(found)


def _share(left: FloatArray, lengths: FloatArray) -> FloatArray:
    return np.asarray(np.divide(left, lengths, out=np.zeros(len(left)), where=lengths > 0))
