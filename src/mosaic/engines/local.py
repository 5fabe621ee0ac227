"""One machine: rows that are read piece by piece, mapped by one thread or several."""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from mosaic.engines.base import Source, Watch, as_rows, check_shape
from mosaic.exceptions import InvalidInputError
from mosaic.passes import BLOCK_ROWS, Partial, Small, Task, join, map_rows, total

#: Bytes of a memory map that may have been read before its pages are handed back.
MAPPED = 1 << 26


class LocalSource(Source):
    """Rows that this machine can read in pieces. A kind of file says how (``pieces``, ``read``)."""

    n_jobs: int | None = None

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, int]]:
        """First row and the row behind the last one of every piece, in order: about a block, or what can be read at once."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """One of the pieces, as a dense float array."""

    def release(self, n_rows: int) -> None:
        """Hand back memory that reading these many rows has taken, if any."""

    def run(self, task: Task, *, resume: Partial | None = None, watch: Watch | None = None) -> Small:
        """Pieces in their order, so that what is known of the first m rows is always a state to go on from."""
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise InvalidInputError(f"n_jobs must be a whole number other than 0, or None; got {self.n_jobs!r}.")
        done = Partial(self.n) if resume is None else resume
        begin = known_rows(done)
        left = [(a, b) for a, b in self.pieces() if b > begin]
        # One thread of BLAS: several would get into the way of our own, and round differently than one.
        with threadpool_limits(1):
            for stop, part in self._mapped(task, left, begin):
                done = join(task, done, part)
                self.release(stop)
                if watch is not None:
                    watch(stop, done)
            return total(task, done)

    def _mapped(self, task: Task, pieces: list[tuple[int, int]], begin: int) -> Iterator[tuple[int, Partial]]:
        if effective_n_jobs(self.n_jobs) == 1:
            for start, stop in pieces:
                yield stop, self._map(task, max(start, begin), stop)
            return
        results = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator", pre_dispatch="2*n_jobs")(
            delayed(self._map)(task, max(start, begin), stop) for start, stop in pieces
        )
        for (_, stop), part in zip(pieces, results, strict=True):
            yield stop, part

    def _map(self, task: Task, start: int, stop: int) -> Partial:
        return map_rows(task, self.read(start, stop), start, self.n)


def known_rows(partial: Partial) -> int:
    """How many of the first rows are in, where rows have come in their order."""
    return partial.rows_mapped + sum(int(rows.shape[0]) for pieces in partial.pieces.values() for _, rows in pieces)


class ArraySource(LocalSource):
    """An array in memory, dense or CSR, a memory map of one, or anything else of two dimensions that has slices of rows."""

    def __init__(self, X: Any, kind: str = "array", n_jobs: int | None = None):
        check_shape(*X.shape)
        self.X, self.kind, self.n_jobs = X, kind, n_jobs
        self.n, self.n_features = (int(size) for size in X.shape)
        self._read = 0

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Blocks."""
        for start in range(0, self.n, BLOCK_ROWS):
            yield start, min(start + BLOCK_ROWS, self.n)

    def read(self, start: int, stop: int) -> Any:
        """A slice."""
        return as_rows(self.X[start:stop])

    def release(self, n_rows: int) -> None:
        """Pages of a memory map that have been read count as memory of the process until they are handed back."""
        if not (isinstance(self.X, np.memmap) and self.X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED")):
            return
        if abs(n_rows - self._read) * self.n_features * self.X.itemsize > MAPPED or n_rows == self.n:
            self._read = n_rows
            self.X._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
