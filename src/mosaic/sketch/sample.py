"""A random sample of distinct points, found in one pass, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosaic._arrays import FloatArray, row_codes
from mosaic.passes import Small


@dataclass(frozen=True)
class Sample:
    """Distinct points with their codes, the row where each comes first, and how many rows are equal to it."""

    rows: FloatArray
    codes: NDArray[np.uint64]
    first: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, small: Small) -> Sample:
        """From what a pass has found."""
        return cls(small["rows"], small["codes"], small["first"], small["counts"])

    def take(self, places: Any) -> Sample:
        """Some of them."""
        return Sample(*(part[places] for part in self._parts()))

    def with_more(self, other: Sample) -> Sample:
        """These, and those of the others that are not among them."""
        new = ~np.isin(other.codes, self.codes)
        pairs = zip(self._parts(), other._parts(), strict=True)
        return Sample(*(np.concatenate([mine, theirs[new]]) for mine, theirs in pairs))

    def _parts(self) -> tuple[Any, ...]:
        return self.rows, self.codes, self.first, self.counts


def priority(codes: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A random number for each code that depends on the code and the seed alone (the finaliser of splitmix64)."""
    h = codes + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % 2**64)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(h ^ (h >> np.uint64(31)))


@dataclass(frozen=True)
class Look:
    """A first pass: a random sample of the distinct points, with exact numbers of copies.

    Every distinct point has a random number, and those with the smallest ones are the sample; so it does not depend on the
    order of the rows, and no copy of a point in it is ever missed.
    """

    size: int
    seed: int
    check: Callable[[Any, int], None] | None = None

    def map_block(self, rows: Any, start: int) -> Small:
        """The sample of a block. ``check`` raises if something is wrong with a row."""
        if self.check is not None:
            self.check(rows, start)
        codes, first, counts = np.unique(row_codes(rows), return_index=True, return_counts=True)
        if len(codes) > self.size:
            kept = np.sort(np.argsort(priority(codes, self.seed), kind="stable")[: self.size])
            codes, first, counts = codes[kept], first[kept], counts[kept]
        return {"codes": codes, "first": first + start, "counts": counts, "rows": np.asarray(rows[first])}

    def merge(self, left: Small, right: Small) -> Small:
        """The sample of both."""
        codes = np.concatenate([left["codes"], right["codes"]])
        codes, where, back = np.unique(
            codes, return_index=True, return_inverse=True
        )  # the first is the one in ``left``
        counts = np.bincount(back, np.concatenate([left["counts"], right["counts"]])).astype(np.int64)
        if len(codes) > self.size:
            kept = np.sort(np.argsort(priority(codes, self.seed), kind="stable")[: self.size])
            codes, where, counts = codes[kept], where[kept], counts[kept]
        first = np.concatenate([left["first"], right["first"]])[where]
        rows = np.concatenate([left["rows"], right["rows"]])[where]
        return {"codes": codes, "first": first, "counts": counts, "rows": rows}
