"""The points that Algorithm 3 has in memory, and the numbers of their copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosaic.arrays.blocks import FloatArray
from mosaic.arrays.codes import row_codes
from mosaic.arrays.passes import BlockResult, Task
from mosaic.arrays.scaling import Prepare

#: Rows are compared without any preparation.
AS_THEY_ARE = Prepare()


@dataclass(frozen=True)
class Sample:
    """Distinct points, prepared, with their codes, the first row of each, and the number of rows equal to it.

    ``weights`` are the numbers of rows that the points stand for: copies and, in a random sample, points that were not drawn.
    """

    rows: FloatArray
    codes: NDArray[np.uint64]
    first: NDArray[np.int64]
    counts: FloatArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: Any) -> Sample:
        return Sample(*(part[places] for part in vars(self).values()))

    def standing_for(self, n: int) -> FloatArray:
        """The number of the n rows that each point stands for: the weights, scaled to the sum n."""
        return np.asarray(self.weights * (n / float(self.weights.sum())))

    def with_more(self, other: Sample) -> Sample:
        """These points, and the points of the other sample that are not among them."""
        new = ~np.isin(other.codes, self.codes)
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sample(*(np.concatenate([mine, theirs[new]]) for mine, theirs in both))


def with_rows(rows: FloatArray, codes: NDArray[np.uint64], first: NDArray[np.int64]) -> Sample:
    """Points that were not drawn; each stands for itself only."""
    return Sample(rows, codes, first, np.ones(len(codes)), np.ones(len(codes)))


def counted(run: Callable[[str, Task], BlockResult], name: str, points: Sample, prepare: Prepare = AS_THEY_ARE) -> Sample:
    """Points that were not drawn, by the codes of their prepared rows, with the number of copies and the first row of each."""
    if not len(points):
        return points
    order = np.argsort(points.codes)
    copies = run(name, Copies(points.codes[order], prepare))
    counts = copies["counts"].astype(np.float64)
    return replace(points.take(order), first=copies["first"], counts=counts, weights=counts)


@dataclass(frozen=True)
class Copies:
    """The number of prepared rows equal to each point, and the first of them; points are given by their codes, sorted."""

    codes: NDArray[np.uint64]
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> BlockResult:
        codes = row_codes(self.prepare(rows))
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        found = np.flatnonzero(self.codes[place] == codes)
        counts = np.bincount(place[found], minlength=len(self.codes))
        first = np.full(len(self.codes), np.iinfo(np.int64).max)
        np.minimum.at(first, place[found], found + start)
        return {"counts": counts, "first": first}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        return {"counts": left["counts"] + right["counts"], "first": np.minimum(left["first"], right["first"])}
