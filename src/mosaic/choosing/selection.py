"""The result of a fit: findings and decisions, in one object that everything else reads."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.xp import on_host, rows_of
from mosaic.choosing.certificate import SelectionCertificate
from mosaic.choosing.changes import Changes
from mosaic.choosing.objectives import without_rounding
from mosaic.choosing.outliers import CROWD_SHARE, Cut, KeptGroups, outlier_probability
from mosaic.choosing.points import Material, once
from mosaic.choosing.settings import Settings, is_auto
from mosaic.kernels import DiffusionKernel, Kernel, PointKernel
from mosaic.metrics import left_by, root_of_inverse, unexplained
from mosaic.program.encoding import Certificate, Encoding

if TYPE_CHECKING:
    from mosaic.choosing.explain import Decisions, UsualRows


class Answers(NamedTuple):
    """Answers for rows: effective counts, outliers, the representative of each row, and the unexplained share of each row."""

    effective_count: FloatArray
    is_outlier: BoolArray
    labels: IntArray
    representation_error: FloatArray

    def at(self, row: int) -> Answers:
        """Those of one row."""
        some: list[Any] = [values[[row]] for values in self]
        return Answers(*some)


@dataclass(frozen=True)
class Selection:
    """The findings and decisions of a fit. Row numbers are those of the data; points are its distinct rows in memory.

    Attributes
    ----------
    rows : representatives, ranked
    gains : how much each adds to the mean similarity between the points that belong and their nearest pick; in paper mode,
        influence
    chosen : the points of the representatives
    cut : the effective count below which rows are outliers, and the rule that gave it
    settings : the parameters of the fit
    material : points, similarity, constraints and counts
    groups : outliers that are kept because they form a group, None without ``min_group``
    changes : what became of the picks of an earlier fit, None without one
    silhouette : mean silhouette that speaks for an automatic number, 0 if no number stands out; None if it was given
    certificate : what is proven; the first access solves the program
    computed : what has been computed so far

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> selection = MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).selection_
    >>> len(selection.rows), selection.cut.rule, selection.n_outliers
    (20, 'alone', 8)
    >>> print(selection.decisions[0])
    Columns are taken as they are.
    """

    material: Material = field(repr=False)
    settings: Settings
    #: The representatives as numbers of rows in memory; ``rows`` has their row numbers in the data.
    members: IntArray
    chosen: IntArray
    gains: FloatArray = field(repr=False)
    cut: Cut
    groups: KeptGroups | None = field(default=None, repr=False)
    changes: Changes | None = field(default=None, repr=False)
    silhouette: float | None = field(default=None, repr=False)

    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy keeps; it computes the rest again when it is asked for."""
        if self.is_sampled and self.is_solved and self.material.proof.is_possible:
            self.influence  # noqa: B018
        # Answers for rows that are not in memory are kept, because a copy cannot read the rows.
        kept = {name: value for name, value in self.computed.items() if name == "certificate" or self.is_sampled}
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"computed": kept}

    @property
    def rows(self) -> IntArray:
        """Row numbers of the representatives in the data, ranked."""
        return self.material.rows_in_data(self.members)

    @property
    def n_rows(self) -> int:
        """Number of rows of the data."""
        return self.material.n_rows

    @property
    def is_sampled(self) -> bool:
        """Whether the points are a sample of many rows; then numbers of rows are scaled up."""
        return self.material.row_numbers is not None

    @property
    def kernel(self) -> Kernel:
        """The similarity between the points, by which representatives were chosen."""
        return self.material.kernel

    @cached_property
    def chosen_kernel(self) -> Kernel:
        """The similarity to the representatives."""
        return self.kernel.take(self.chosen)

    @property
    def encoding(self) -> Encoding:
        """The certified encoding; the first access solves the program."""
        return self.material.encoding

    @property
    def program_certificate(self) -> Certificate:
        """The certificate of the program."""
        return self.material.solved.certificate

    @once
    def certificate(self) -> SelectionCertificate:
        """The certificate of the program and of the choice."""
        found: SelectionCertificate = self.material.proof.certificate(self)
        return found

    @property
    def is_solved(self) -> bool:
        """Whether the program has been solved."""
        return self.material.is_solved

    @property
    def is_proven(self) -> bool:
        """Whether the certificate has been computed."""
        return "certificate" in self.computed

    @property
    def can_be_proven(self) -> bool:
        """Whether the certificate exists or can be computed: a model that was saved after a fit by passes has no rows."""
        return self.is_proven or self.material.proof.is_possible

    @property
    def takes_passes(self) -> bool:
        """Whether certificate and answers take passes over rows that are not in memory."""
        return self.material.proof.by_passes

    @property
    def rejects(self) -> bool:
        """Whether outliers have no representative."""
        return self.settings.outliers == "reject" and self.cut.count > 1.0

    @cached_property
    def is_outlier(self) -> BoolArray:
        """Mask of the points that are below the cut, not in a group that is kept, and not to be included in any case."""
        return outlier_points(self.material, self.settings, self.cut, self.groups)

    @cached_property
    def nearest(self) -> IntArray:
        """For each point, the position of the nearest representative, outlier or not; -1 if there are no representatives."""
        nearest = np.full(self.kernel.n, -1, np.intp)
        if not len(self.chosen):
            return nearest

        def compare(rows: slice) -> None:
            nearest[rows] = self._nearest(self.kernel.block(rows, self.chosen))

        in_blocks(compare, self.kernel.n, len(self.chosen), on=self.kernel.X)
        nearest[self.chosen] = np.arange(len(self.chosen))
        return nearest

    @cached_property
    def labels(self) -> IntArray:
        """For each point, the position of its representative; -1 for rejected outliers, or if there are no representatives."""
        labels = self.nearest.copy()
        if self.settings.outliers == "reject" and len(self.chosen):
            labels[self.is_outlier] = -1
            labels[self.chosen] = np.arange(len(self.chosen))
        return labels

    def _nearest(self, K: FloatArray) -> IntArray:
        """The nearest representative, by the distance k_jj − 2 k_ij (+ k_ii)."""
        lengths = self.chosen_kernel.diagonal()
        return np.asarray(without_rounding(lengths - 2.0 * K, float(lengths.max())).argmin(axis=1))

    @cached_property
    def errors(self) -> FloatArray:
        """For each point, the share of it that the representatives cannot express."""
        return _share(unexplained(self.kernel, self.chosen), self.kernel.diagonal())

    @cached_property
    def coverage(self) -> float:
        """Share of the points that belong which the representatives express."""
        weights, lengths = self.material.points.weights * ~self.is_outlier, self.kernel.diagonal()
        total = float(weights @ lengths)
        return 1.0 - float(weights @ unexplained(self.kernel, self.chosen)) / total if total > 0 else 1.0

    @cached_property
    def outlier_share(self) -> float:
        """Share of the rows that are outliers; estimated from the sample if there is one."""
        weights = self.material.points.weights
        return float(weights[self.is_outlier].sum() / weights.sum())

    @property
    def n_outliers(self) -> int:
        """Number of rows that are outliers; estimated from the sample if there is one."""
        return round(self.outlier_share * self.n_rows) if self.is_sampled else int(self.outlier_rows.sum())

    def answers_at(self, Y: Any) -> Answers:
        """Answers for prepared rows, which need not be rows of the data."""
        counts = self.material.counts_at(Y)
        flagged = self.outliers_at(Y, counts)
        return Answers(counts, flagged, *self._represented_at(Y, flagged, labels=True, errors=True))

    def outliers_at(self, Y: Any, counts: FloatArray) -> BoolArray:
        """Mask of the outliers among prepared rows with these counts.

        Rows near a group that is kept, and rows equal to a must-include row, are not outliers.
        """
        flagged = self.cut.below(counts) if self.settings.outliers != "keep" else np.zeros(len(counts), dtype=bool)
        odd = np.flatnonzero(flagged)
        if self.groups is not None and len(odd):
            flagged[odd[self.groups.near(rows_of(Y, odd))]] = False
        must = self.material.points.group[self.material.constraints.must]
        if len(must) and len(odd):
            flagged[odd[(self.kernel.take(must).distances_at(rows_of(Y, odd)) <= 0).any(axis=1)]] = False
        return flagged

    def labels_at(self, Y: Any, flagged: BoolArray | None = None) -> IntArray:
        """For each prepared row, the position of its representative; -1 for outliers, or if there are no representatives."""
        if self.rejects and flagged is None and len(self.chosen):
            flagged = self.outliers_at(Y, self.material.counts_at(Y))
        return self._represented_at(Y, flagged, labels=True)[0]

    def errors_at(self, Y: Any) -> FloatArray:
        """For each prepared row, the share of it that the representatives cannot express."""
        return self._represented_at(Y, errors=True)[1]

    def _represented_at(
        self, Y: Any, flagged: BoolArray | None = None, *, labels: bool = False, errors: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Labels and errors of prepared rows, those that are asked for, from similarities that are computed once."""
        label, error = np.full(Y.shape[0], -1, np.intp), np.ones(Y.shape[0])
        if not len(self.chosen):
            return label, error
        kernel, root = self.chosen_kernel, self._root if errors else None

        def compare(rows: slice) -> None:
            new = rows_of(Y, rows)
            K, own = kernel.device_cross(new), kernel.diagonal_at(new)
            if root is not None:
                error[rows] = _share(left_by(root, K, own), own)
            if labels:
                label[rows] = self._labels(on_host(K), new, own, None if flagged is None else flagged[rows])

        in_blocks(compare, Y.shape[0], kernel.n, on=kernel.X)
        return label, error

    def _labels(self, K: FloatArray, new: Any, own: FloatArray, flagged: BoolArray | None) -> IntArray:
        """Labels of prepared rows with similarities K to the representatives and ``own`` to themselves."""
        labels = self._nearest(K)
        if self._known is not None and isinstance(self.chosen_kernel, PointKernel):
            # A pick stands for itself, even if all similarities are 1.
            place = self._known.find(row_codes(self.chosen_kernel.over(new).X))
            labels[place >= 0] = place[place >= 0]
        if flagged is not None and self.rejects:
            odd = np.flatnonzero(flagged)
            distance = (self.chosen_kernel.diagonal() - 2.0 * K[odd]).min(axis=1) + own[odd]
            labels[odd[distance > 1e-12 * np.abs(own[odd])]] = -1  # a representative stands for itself
        return labels

    @cached_property
    def _known(self) -> KnownRows | None:
        """The representatives by their codes. A diffusion kernel has neighbours of rows, and a given similarity has none."""
        kernel = self.chosen_kernel
        if isinstance(kernel, DiffusionKernel) or not isinstance(kernel, PointKernel):
            return None
        return KnownRows.of(row_codes(kernel.X))

    @cached_property
    def _root(self) -> FloatArray:
        """The root of the inverse similarity between the representatives, from which errors are computed."""
        return root_of_inverse(self.chosen_kernel, np.arange(len(self.chosen)))

    def places_at(self, Y: Any) -> FloatArray:
        """For each prepared row, five columns: the position of its representative (-1 without one), the similarity to it, the
        share that the representatives cannot express, the effective count, and 1 for outliers.
        """
        counts, flagged, labels, errors = self.answers_at(Y)
        similarity = np.full(len(labels), np.nan)

        def compare(rows: slice) -> None:
            known = rows.start + np.flatnonzero(labels[rows] >= 0)
            similarity[known] = self.chosen_kernel.cross(rows_of(Y, known))[np.arange(len(known)), labels[known]]

        if len(self.chosen):
            in_blocks(compare, len(labels), len(self.chosen), on=self.chosen_kernel.X)
        errors = errors if len(self.chosen) else similarity
        return np.column_stack([labels, similarity, errors, counts, flagged])

    def similarities_at(self, Y: Any) -> FloatArray:
        """Similarities of prepared rows to the representatives."""
        return self.chosen_kernel.cross(Y)

    def log_counts_at(self, Y: Any) -> FloatArray:
        """Log of the effective counts of prepared rows."""
        return np.log(self.material.counts_at(Y))

    def explained_at(self, Y: Any) -> FloatArray:
        """For each prepared row, two columns: the amount that the representatives express, and its total k_ii."""
        diagonal = self.chosen_kernel.diagonal_at(Y)
        return np.column_stack([(1.0 - self.errors_at(Y)) * diagonal, diagonal])

    @once
    def answers(self) -> Answers:
        """Answers for all rows of the data; of a sample, the first access makes a pass over the rows."""
        found: Answers = self.material.proof.answers(self) if self.is_sampled else self.answers_in_memory
        return found

    @cached_property
    def counts_of_rows(self) -> FloatArray:
        """Effective counts of the rows in memory; rows without weight are counted as new rows."""
        material = self.material
        counts, absent = material.for_rows(material.counts, 1.0), material.points.group < 0
        if absent.any():
            counts[absent] = material.counts_at(material.absent)
        return np.asarray(counts)

    @cached_property
    def outlier_rows(self) -> BoolArray:
        """Mask of the rows in memory that are outliers."""
        material = self.material
        flagged, absent = material.for_rows(self.is_outlier, False).astype(bool), material.points.group < 0
        if absent.any():
            flagged[absent] = self.outliers_at(material.absent, self.counts_of_rows[absent])
        return np.asarray(flagged)

    @cached_property
    def answers_in_memory(self) -> Answers:
        """Answers for the rows in memory."""
        material = self.material
        labels, errors = material.for_rows(self.labels, -1).astype(np.intp), material.for_rows(self.errors, 0.0)
        absent = material.points.group < 0
        if absent.any():  # rows without weight are treated as new rows
            labels[absent] = self.labels_at(material.absent, self.outlier_rows[absent])
            errors[absent] = self.errors_at(material.absent)
        return Answers(self.counts_of_rows, self.outlier_rows, labels, errors)

    @once
    def influence(self) -> FloatArray:
        """For each row of the data, the norm of its row in the encoding; copies share it equally."""
        return self.material.proof.influence(self.material)

    @property
    def outlier_probability(self) -> FloatArray:
        """The paper's OP of every row."""
        return outlier_probability(self.effective_count, self.material.count_total)

    @property
    def effective_count(self) -> FloatArray:
        """Effective count of every row of the data."""
        return self.answers.effective_count if self.is_sampled else self.counts_of_rows

    @property
    def outlier_mask(self) -> BoolArray:
        """Mask of the rows of the data that are outliers."""
        return self.answers.is_outlier if self.is_sampled else self.outlier_rows

    @property
    def protected(self) -> BoolArray | None:
        """Mask of the rows in memory that are kept because they form a group; None without ``min_group``."""
        return None if self.groups is None else np.asarray(self.material.for_rows(self.groups.members, False), bool)

    @cached_property
    def usual(self) -> UsualRows | None:
        """The rows that belong, which reasons compare others with; None where the kernel does not compare columns."""
        from mosaic.choosing.explain import UsualRows  # it reads selections

        return UsualRows.of(self)

    @property
    def decisions(self) -> Decisions:
        """The decisions made for the user, and the reasons, in sentences."""
        from mosaic.choosing.explain import decisions  # imported here: that module imports this one

        return decisions(self)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know before trusting the answer."""
        material, settings = self.material, self.settings
        if settings.mode == "paper":
            return ()
        found, n = [], material.n_rows
        share = self.outlier_share
        if is_auto(settings.contamination) and settings.outliers != "keep" and share > CROWD_SHARE:
            found.append(
                f"{self.n_outliers:,} of {n:,} rows ({100 * share:.0f} %) are taken for outliers: a crowd that few rows look "
                "like. If they belong, set `outliers='keep'` or `min_group`; if you know their share, set `contamination`."
            )
        if len(self.chosen) and self.cut.sparse_group > 0 and (material.counts[self.chosen] >= self.cut.sparse_group).all():
            found.append(
                f"{100 * self.crowd_share:.0f} % of {n:,} rows are a sparse crowd, noise or a group, without a representative. "
                "Ask for more representatives, or, if they are outliers, set `contamination`."
            )
        return tuple(found)

    @property
    def crowd_share(self) -> float:
        """Share of the rows that are a sparse crowd, noise or a group, and are kept; 0 without one."""
        weights = self.material.points.weights
        return float(weights[self.material.counts < self.cut.sparse_group].sum() / weights.sum())

    @property
    def crowd(self) -> IntArray:
        """Row numbers of the sparse crowd."""
        return np.flatnonzero(self.effective_count < self.cut.sparse_group)


def is_low(material: Material, settings: Settings, cut: Cut) -> BoolArray:
    """Mask of the points that are below the cut and not to be included in any case."""
    if settings.outliers == "keep":
        return np.zeros(material.points.n, dtype=bool)
    low = cut.below(material.counts)
    low[material.points.group[material.constraints.must]] = False
    return low


def outlier_points(material: Material, settings: Settings, cut: Cut, groups: KeptGroups | None) -> BoolArray:
    """Mask of the points that are low and not in a group that is kept."""
    low = is_low(material, settings, cut)
    return low if groups is None else low & ~groups.members


def _share(left: FloatArray, lengths: FloatArray) -> FloatArray:
    """Left / lengths, 0 where the length is 0."""
    return np.asarray(np.divide(left, lengths, out=np.zeros(len(left)), where=lengths > 0))
