"""A random sample of distinct points, drawn in one pass, independent of the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosaic._arrays import FloatArray, IntArray
from mosaic._codes import row_codes
from mosaic._units import Prepare
from mosaic.passes import Small, TakeRows, Task

#: Raises an error if rows are not valid; the number is that of the first row.
Check: TypeAlias = Callable[[Any, int], None]
#: Rows are compared without any preparation.
AS_THEY_ARE = Prepare()


@dataclass(frozen=True)
class Sample:
    """Distinct points with their codes, the first row of each, and the number of rows equal to it.

    ``weights`` are the numbers of rows that the points stand for: copies and, in a random sample, points that were not drawn.
    """

    rows: FloatArray
    codes: NDArray[np.uint64]
    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: Any) -> Sample:
        """The points at these places."""
        return Sample(*(part[places] for part in vars(self).values()))

    def standing_for(self, n: int) -> FloatArray:
        """The number of the n rows that each point stands for: the weights, scaled to the sum n."""
        return np.asarray(self.weights * (n / float(self.weights.sum())))

    def prepared(self, prepare: Prepare) -> Sample:
        """The sample with the codes of prepared rows; points that become equal are merged, with the first of their rows."""
        codes = row_codes(prepare(self.rows))
        by_row = np.argsort(self.first, kind="stable")
        distinct, where, back = np.unique(codes[by_row], return_index=True, return_inverse=True)
        if len(distinct) == len(codes):
            return replace(self, codes=codes)
        places = by_row[where]
        counts = np.bincount(back, self.counts[by_row]).astype(np.int64)
        weights = np.asarray(np.bincount(back, self.weights[by_row]), np.float64)
        return Sample(self.rows[places], distinct, self.first[places], counts, weights)

    def with_more(self, other: Sample) -> Sample:
        """These points, and the points of the other sample that are not among them."""
        new = ~np.isin(other.codes, self.codes)
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sample(*(np.concatenate([mine, theirs[new]]) for mine, theirs in both))

    def named(self, other: Sample) -> Sample:
        """These points and those of the other sample, which keep the row numbers that they are given with."""
        both = self.with_more(other)
        first = both.first.copy()
        order = np.argsort(both.codes)
        first[order[np.searchsorted(both.codes[order], other.codes)]] = other.first
        return replace(both, first=first)


def draw(run: Callable[[str, Task], Small], n: int, size: int, seed: int, check: Check | None = None) -> Sample:
    """A random sample of the distinct points among n rows, including all points with at least n/size copies.

    It takes two passes: one draws, one counts the copies; and a third one where frequent points were not drawn. The weight of a
    frequent point is the number of its copies; the other points stand for all other rows, in proportion to their copies.
    """
    found = run("look", FirstPass(size, seed, check))
    codes = np.union1d(found["codes"], found["often_codes"])
    drawn = np.isin(codes, found["codes"])
    copies = run("copies", Copies(codes))
    counts, first = copies["counts"], copies["first"]
    frequent = counts * size >= n
    kept = drawn | frequent
    weights = counts.astype(np.float64)
    others = kept & ~frequent
    if others.any():
        weights[others] *= (n - counts[frequent].sum()) / counts[others].sum()
    rows, missing = found["rows"], np.flatnonzero(frequent & ~drawn)
    if len(missing):
        order = np.argsort(first[missing])
        taken = run("frequent points", TakeRows(first[missing][order]))["rows"]
        both = np.concatenate([np.flatnonzero(drawn), missing[order]])
        rows = np.concatenate([rows, taken])[np.argsort(both)]
    return Sample(rows, codes[kept], first[kept], counts[kept], weights[kept])


def with_rows(rows: FloatArray, codes: NDArray[np.uint64], first: NDArray[np.int64]) -> Sample:
    """Points that were not drawn; each stands for itself only."""
    return Sample(rows, codes, first, np.ones(len(codes), np.int64), np.ones(len(codes)))


def counted(run: Callable[[str, Task], Small], name: str, points: Sample, prepare: Prepare = AS_THEY_ARE) -> Sample:
    """Points that were not drawn, by the codes of their prepared rows, with the number of copies and the first row of each."""
    if not len(points):
        return points
    order = np.argsort(points.codes)
    copies = run(name, Copies(points.codes[order], prepare))
    counts = copies["counts"]
    return replace(points.take(order), first=copies["first"], counts=counts, weights=counts.astype(np.float64))


def priority(codes: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A random number for each code that depends on the code and the seed alone (the finaliser of splitmix64)."""
    h = codes + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % 2**64)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(h ^ (h >> np.uint64(31)))


@dataclass(frozen=True)
class FirstPass:
    """A first pass: a random sample of the distinct points, and all frequent points.

    Every distinct point has a random number, and the points with the smallest numbers are the sample, so it does not depend on
    the order of the rows. Points with more than n/size copies are found by counters that rarer points decrease
    (Misra and Gries): no such point is missed, and some rarer points may be among those found.
    """

    size: int
    seed: int
    check: Check | None = None

    def map_block(self, rows: Any, start: int) -> Small:
        """The sample of a block, and its counters. ``check`` raises an error if a row is not valid."""
        if self.check is not None:
            self.check(rows, start)
        codes, first, counts = np.unique(row_codes(rows), return_index=True, return_counts=True)
        drawn = self._drawn(codes)
        return {"codes": codes[drawn], "rows": np.asarray(rows[first[drawn]]), **self._often(codes, counts)}

    def merge(self, left: Small, right: Small) -> Small:
        """Merge the samples and the counters."""
        often, back = np.unique(np.concatenate([left["often_codes"], right["often_codes"]]), return_inverse=True)
        counts = np.bincount(back, np.concatenate([left["often_counts"], right["often_counts"]])).astype(np.int64)
        codes, where = np.unique(np.concatenate([left["codes"], right["codes"]]), return_index=True)
        drawn = self._drawn(codes)
        # Only rows that stay are copied, the left ones first: all rows of both would take twice the memory.
        codes, where, n_left = codes[drawn], where[drawn], len(left["codes"])
        rows = np.empty((len(where), *left["rows"].shape[1:]), np.result_type(left["rows"], right["rows"]))
        rows[where < n_left] = left["rows"][where[where < n_left]]
        rows[where >= n_left] = right["rows"][where[where >= n_left] - n_left]
        return {"codes": codes, "rows": rows, **self._often(often, counts)}

    def _drawn(self, codes: NDArray[np.uint64]) -> IntArray:
        """Places of the codes with the smallest random numbers, in their order."""
        if len(codes) <= self.size:
            return np.arange(len(codes))
        return np.sort(np.argpartition(priority(codes, self.seed), self.size - 1)[: self.size])

    def _often(self, codes: NDArray[np.uint64], counts: IntArray) -> Small:
        """The largest counters, decreased by the others."""
        if len(codes) > self.size:
            counts = counts - np.partition(counts, len(counts) - self.size - 1)[len(counts) - self.size - 1]
            codes, counts = codes[counts > 0], counts[counts > 0]
        return {"often_codes": codes, "often_counts": counts}


@dataclass(frozen=True)
class Copies:
    """The number of prepared rows equal to each point, and the first of them; points are given by their codes, sorted."""

    codes: NDArray[np.uint64]
    prepare: Prepare = AS_THEY_ARE

    def map_block(self, rows: Any, start: int) -> Small:
        """The counts and first rows in a block."""
        codes = row_codes(self.prepare(rows))
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        found = np.flatnonzero(self.codes[place] == codes)
        counts = np.bincount(place[found], minlength=len(self.codes))
        first = np.full(len(self.codes), np.iinfo(np.int64).max)
        np.minimum.at(first, place[found], found + start)
        return {"counts": counts, "first": first}

    def merge(self, left: Small, right: Small) -> Small:
        """Sum of the counts, minimum of the first rows."""
        return {"counts": left["counts"] + right["counts"], "first": np.minimum(left["first"], right["first"])}
