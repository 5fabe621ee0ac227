"""One machine: rows are read piece by piece, cut into blocks, and mapped by one thread or several."""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, Node, Task, merge_all
from mosaic.arrays.threads import thread_imap, using_threads
from mosaic.checks import check_jobs
from mosaic.exceptions import InvalidInputError
from mosaic.sketch.engine import Source, Watch, as_rows, check_shape

#: Bytes of a memory map that may be read before its pages are released.
MAPPED_BYTES = 1 << 26
#: Bytes of the rows that several threads work on at a time.
BYTES_IN_THREADS = 1 << 26


class LocalSource(Source):
    """Rows that this machine can read in pieces. Subclasses for file formats define ``read``, and ``pieces`` or ``stream``."""

    n_jobs: int | None = None

    def pieces(self) -> Iterator[tuple[int, int]]:
        """First row and row after the last of every piece, in order: a block, or the unit in which the file is read."""
        for start in range(0, self.n, BLOCK_ROWS):
            yield start, min(start + BLOCK_ROWS, self.n)

    @abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Some rows, as a dense float array."""

    def stream(self) -> Iterator[tuple[int, Any]]:
        """All rows in pieces, in order, each with the number of its first row."""
        for first, last in self.pieces():
            rows = self.read(first, last)
            if rows.shape[0] != last - first:
                raise InvalidInputError(
                    f"rows {first} … {last - 1} of the {self.kind} are {rows.shape[0]} now; it has changed since it was opened",
                    "Open it again when no process writes to it.",
                )
            yield first, rows

    def release(self, n_rows: int) -> None:
        """Release the memory that reading this many rows has taken, if any."""

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        """Map the blocks in threads, those of the caller or ``n_jobs``, and merge the results in order."""
        check_jobs(self.n_jobs)

        def work(block: tuple[int, Any]) -> BlockResult:
            start, rows = block
            return task.map_block(rows, start)

        def nodes() -> Iterator[Node[BlockResult]]:
            for number, small in enumerate(thread_imap(work, self._blocks(), self._threads())):
                done = min((number + 1) * BLOCK_ROWS, self.n)
                self.release(done)
                if watch is not None:
                    watch(done)
                yield 0, small

        with using_threads(effective_n_jobs(self.n_jobs)):
            return merge_all(task.merge, nodes())

    def _threads(self) -> int:
        """Threads that each have a block: two, or more if few bytes are held. A single block is divided among all threads."""
        few = 1 if self.n <= BLOCK_ROWS else max(2, BYTES_IN_THREADS // (8 * BLOCK_ROWS * self.n_features))
        return few if self.most_threads is None else min(few, self.most_threads)

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        """First row and rows of every block, in order. Pieces are cut into blocks; the rest of one is joined with the next."""
        waiting: list[Any] = []
        for first, rows in self.stream():
            cuts = range(BLOCK_ROWS - first % BLOCK_ROWS, rows.shape[0], BLOCK_ROWS)
            for start, part in zip([first, *(first + cut for cut in cuts)], np.split(rows, cuts), strict=True):
                stop = start + part.shape[0]
                if stop % BLOCK_ROWS and stop < self.n:
                    waiting.append(part.copy())  # a slice would keep the whole piece in memory
                    continue
                yield start - start % BLOCK_ROWS, np.concatenate([*waiting, part]) if waiting else part
                waiting.clear()


class ArraySource(LocalSource):
    """An array in memory, dense or CSR, a memory map of one, or anything else of two dimensions that has slices of rows."""

    def __init__(self, X: Any, kind: str = "array", n_jobs: int | None = None):
        check_shape(*X.shape)
        self.X, self.kind, self.n_jobs = X, kind, n_jobs
        self.n, self.n_features = (int(size) for size in X.shape)
        self.files = [Path(X.filename)] if isinstance(X, np.memmap) and X.filename is not None else []
        self.buffers = float(min(X.nbytes, MAPPED_BYTES)) if isinstance(X, np.memmap) else 0.0
        self._released = 0

    def read(self, start: int, stop: int) -> Any:
        """A slice of the array."""
        return as_rows(self.X[start:stop])

    def release(self, n_rows: int) -> None:
        """Release pages of a memory map that have been read; until then they count as memory of the process."""
        if not (isinstance(self.X, np.memmap) and self.X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED")):
            return
        if abs(n_rows - self._released) * self.n_features * self.X.itemsize > MAPPED_BYTES or n_rows == self.n:
            self._released = n_rows
            self.X._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
