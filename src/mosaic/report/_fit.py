"""A fitted selector as the report sees it: the distinct points in memory, the rows that they are, and steps of their counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray
from mosaic.choosing import Material, Selection
from mosaic.inspection.summaries import histogram_edges

#: Bins of the histogram, which are also the steps of the threshold.
BINS = 120


@dataclass(frozen=True)
class Fit:
    """A fitted selector, in the distinct points that are in memory: all of them, or the sample of a fit by passes.

    Rows without weight take no part in a fit, and none here.
    """

    model: Any

    @property
    def selection(self) -> Selection:
        """What was found and decided."""
        found: Selection = self.model.selection_
        return found

    @property
    def material(self) -> Material:
        """Points, similarity and constraints."""
        return self.selection.material

    @property
    def by_passes(self) -> bool:
        """Whether numbers of rows are scaled up from a sample."""
        return self.material.row_numbers is not None

    @property
    def points(self) -> Any:
        """The distinct points."""
        return self.material.points

    @cached_property
    def members(self) -> IntArray:
        """Rows in memory that count, by their number there."""
        return np.flatnonzero(self.points.group >= 0)

    @cached_property
    def point_of(self) -> IntArray:
        """The distinct point that each of the members is."""
        return np.asarray(self.points.group[self.members])

    @cached_property
    def weight_of(self) -> FloatArray:
        """Rows of the data that each of the members stands for: one, or more in a sample."""
        return np.asarray(self.points.weights) if self.by_passes else np.ones(len(self.members))

    @cached_property
    def copies(self) -> FloatArray:
        """Rows of the data that each distinct point is."""
        return np.asarray(np.bincount(self.point_of, self.weight_of, self.points.n), np.float64)

    @property
    def n(self) -> int:
        """Rows of the data that count."""
        return self.material.n_rows if self.by_passes else len(self.members)

    @property
    def n_without_weight(self) -> int:
        """Rows of the data that do not."""
        return 0 if self.by_passes else len(self.points.group) - len(self.members)

    def rows(self, members: IntArray) -> IntArray:
        """Rows of the data, from rows in memory."""
        return np.asarray(self.material.rows_in_data(members))

    @property
    def kernel(self) -> Any:
        """Similarity between distinct points."""
        return self.selection.kernel

    @property
    def counts(self) -> FloatArray:
        """Effective counts."""
        return np.asarray(self.material.counts)

    @property
    def is_outlier(self) -> BoolArray:
        """Of the distinct points."""
        return np.asarray(self.selection.is_outlier)

    @property
    def outliers(self) -> str:
        """What becomes of them: "reject", "report" or "keep"."""
        return self.selection.settings.outliers


@dataclass(frozen=True)
class Bins:
    """Effective counts in steps; the threshold of the fit is one of the edges.

    Attributes
    ----------
    edges : of the bins, as counts
    threshold : number of the bin that begins at the threshold, 0 if there is none
    of : the bin of each distinct point
    must, grouped : points that are no outliers whatever their count, since they had to be included or are a group
    """

    edges: FloatArray
    threshold: int
    of: IntArray
    must: BoolArray
    grouped: BoolArray

    @classmethod
    def of_fit(cls, fit: Fit) -> Bins:
        """Bins of the distinct points."""
        counts, choice = fit.counts, fit.selection
        cut = float(choice.cut.count)
        log_edges = histogram_edges(np.log(counts), np.log(cut) if cut > 0 else None, BINS)
        edges, threshold = np.exp(log_edges), 0
        edges[0], edges[-1] = min(edges[0], counts.min()), max(edges[-1], counts.max())
        if cut > 0 and (counts < cut).any():
            threshold = int(np.abs(log_edges - np.log(cut)).argmin())
            edges[threshold] = cut
        of = np.clip(np.searchsorted(edges, counts, "right") - 1, 0, len(edges) - 2)
        must = np.zeros(len(counts), dtype=bool)
        must[fit.points.group[fit.material.constraints.must]] = True
        grouped = np.zeros_like(must) if choice.groups is None else np.asarray(choice.groups.members) & ~must
        return cls(edges, threshold, of, must, grouped)

    @property
    def safe(self) -> BoolArray:
        """Points that are never outliers."""
        return self.must | self.grouped

    def rows(self, weights: FloatArray) -> FloatArray:
        """Sums of the weights of points, for each bin."""
        return np.asarray(np.bincount(self.of, weights=weights, minlength=len(self.edges) - 1), np.float64)
