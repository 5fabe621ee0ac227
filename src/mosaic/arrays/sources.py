"""Sources of rows: they know the number of rows and columns, and make passes over the rows, here in threads of one machine."""

from __future__ import annotations

import mmap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from mosaic.arrays.blocks import IntArray, check_numbers, check_shape
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, TakeRows, Task, merge_all
from mosaic.arrays.threads import one_thread, thread_imap, using_threads
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import check_jobs

#: Called from time to time during a pass with the number of rows done so far.
Watch: TypeAlias = Callable[[int], None]

#: More rows than these are taken in a pass, which reads every piece once.
FEW_ROWS = 16
#: Bytes of a memory map that may be read before its pages are released.
MAPPED_BYTES = 1 << 26


class Source(ABC):
    """Rows of numbers, wherever they are, and the scheduling of passes over them. The task does the computation."""

    #: In messages: "Dask array", "Parquet file".
    kind: str
    n: int
    n_features: int
    #: Of the columns.
    names: Sequence[str] | None = None
    #: That hold the rows; if one changes between passes, the fit raises an error.
    files: Sequence[Path] = ()
    #: Bytes that reading takes in this process beside the blocks of rows, for estimates.
    buffers: float = 0.0
    #: Threads of this process that a pass may use, None for any number.
    most_threads: int | None = None

    @abstractmethod
    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult: ...

    def take(self, numbers: IntArray) -> Any:
        """The rows with these numbers, which are in ascending order."""
        return self.run(TakeRows(numbers))["rows"]


class Passes:
    """Makes passes over a source, and raises an error if a file has changed since the first; ``tell`` is called with the name of
    a pass, the share of the rows that is done, and rows per second.
    """

    def __init__(self, source: Source, tell: Callable[[str, float, float], None]):
        self.source = source
        self.tell = tell
        self.stamps = [_stamp(file) for file in source.files]

    def run(self, name: str, task: Task) -> BlockResult:
        started = time.monotonic()

        def watch(rows: int) -> None:
            self.tell(name, rows / self.source.n, rows / max(time.monotonic() - started, 1e-9))

        result = self.source.run(task, watch=watch)
        self._check_files()
        return result

    def take(self, numbers: IntArray) -> Any:
        rows = self.source.take(numbers)
        self._check_files()
        return rows

    def _check_files(self) -> None:
        for file, stamp in zip(self.source.files, self.stamps, strict=True):
            if _stamp(file) != stamp:
                raise InvalidInputError(
                    f"{file} has changed while it was read in passes, which must all see the same rows",
                    "Fit again when no process writes to it.",
                )


def _stamp(file: Path) -> tuple[int, int] | None:
    """Size and modification time of a file; None if it no longer exists."""
    return (file.stat().st_size, file.stat().st_mtime_ns) if file.exists() else None


class LocalSource(Source):
    """Rows that this machine can read in pieces, by ``read``, and ``pieces`` or ``stream`` of subclasses."""

    n_jobs: int | None = None

    def pieces(self) -> Iterator[tuple[int, int]]:
        """First row and row after the last of every piece, in order: a block, or the unit in which the file is read."""
        for start in range(0, self.n, BLOCK_ROWS):
            yield start, min(start + BLOCK_ROWS, self.n)

    @abstractmethod
    def read(self, start: int, stop: int) -> Any: ...

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

    def take(self, numbers: IntArray) -> Any:
        """The rows with these numbers; of few, only pieces that hold them are read."""
        if len(numbers) > FEW_ROWS:
            return super().take(numbers)
        found = [np.empty((0, self.n_features))]
        for first, last in self.pieces():
            here = numbers[(numbers >= first) & (numbers < last)]
            if len(here):
                rows = self.read(int(here[0]), int(here[-1]) + 1)
                found.append(np.asarray(rows[here - here[0]]))
        return np.concatenate(found[1:] or found)

    def run(self, task: Task, *, watch: Watch | None = None) -> BlockResult:
        check_jobs(self.n_jobs)
        # Threads that each have a block: two, or more if they hold at most 64 MiB. A single block is divided among all threads.
        few = 1 if self.n <= BLOCK_ROWS else max(2, (1 << 26) // (8 * BLOCK_ROWS * self.n_features))
        most = few if self.most_threads is None else min(few, self.most_threads)

        def map_block(block: tuple[int, Any]) -> BlockResult:
            start, rows = block
            return task.map_block(rows, start)

        def results() -> Iterator[BlockResult]:
            for number, result in enumerate(thread_imap(map_block, self._blocks(), most), 1):
                done = min(number * BLOCK_ROWS, self.n)
                self.release(done)
                if watch is not None:
                    watch(done)
                yield result

        with using_threads(effective_n_jobs(self.n_jobs)):
            return merge_all(task.merge, results())

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        """First row and rows of every block, in order. Pieces are cut into blocks; the rest of one is joined with the next."""
        waiting: list[Any] = []
        for first, rows in self.stream():
            cuts = range(BLOCK_ROWS - first % BLOCK_ROWS, rows.shape[0], BLOCK_ROWS)
            starts = [first, *(first + cut for cut in cuts)]
            for start, part in zip(starts, np.split(rows, cuts), strict=True):
                stop = start + part.shape[0]
                if stop % BLOCK_ROWS and stop < self.n:
                    waiting.append(part.copy())  # a slice would keep the whole piece in memory
                    continue
                yield (
                    start - start % BLOCK_ROWS,
                    np.concatenate([*waiting, part]) if waiting else part,
                )
                waiting.clear()


class ArraySource(LocalSource):
    """An array in memory, dense or CSR, a memory map of one, or anything else of two dimensions that has slices of rows."""

    def __init__(self, X: Any, kind: str = "array"):
        check_shape(X.shape)
        self.X = X
        self.kind = kind
        self.n, self.n_features = (int(size) for size in X.shape)
        self._released = 0
        if isinstance(X, np.memmap):
            self.buffers = float(min(X.nbytes, MAPPED_BYTES))
            self.files = [] if X.filename is None else [Path(X.filename)]

    def read(self, start: int, stop: int) -> Any:
        return dense_rows(self.X[start:stop])

    def release(self, n_rows: int) -> None:
        """Release pages of a memory map that have been read; until then they count as memory of the process."""
        is_of_file = isinstance(self.X, np.memmap) and self.X.mode in ("r", "r+")
        if not is_of_file or not hasattr(mmap, "MADV_DONTNEED"):
            return
        held = abs(n_rows - self._released) * self.n_features * self.X.itemsize
        if held > MAPPED_BYTES or n_rows == self.n:
            self._released = n_rows
            self.X._mmap.madvise(mmap.MADV_DONTNEED)


def dense_rows(rows: Any) -> Any:
    """Rows as a dense array of float32 or float64, in C order and aligned, on which the last bits of sums depend."""
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows)
    check_numbers(rows.dtype)
    single = rows.dtype.kind == "f" and rows.dtype.itemsize == 4
    return np.require(rows, np.float32 if single else np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def map_part(task: Task, rows: Any, start: int) -> BlockResult:
    """The result for consecutive rows that begin with row ``start``; of sparse ones, one block at a time is made dense."""
    with one_thread():
        blocks = (slice(a, a + BLOCK_ROWS) for a in range(0, rows.shape[0], BLOCK_ROWS))
        return merge_all(
            task.merge,
            (task.map_block(dense_rows(rows[block]), start + block.start) for block in blocks),
        )
