"""Numbers that are too many for memory, in a temporary file that is mapped into it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO

import numpy as np

from mosaic._arrays import FloatArray
from mosaic.data._faults import FileFault


class Spool:
    """A temporary .npy file that rows are appended to. It is removed with ``close``, at the latest when Python ends.

    Parameters
    ----------
    source : the file that the rows come from, for messages
    n_features : columns
    dtype : float32 or float64
    expected : bytes that will be written, as far as known; asked of the disk beforehand
    """

    def __init__(self, source: Path, n_features: int, dtype: Any = np.float64, expected: float = 0):
        self.source, self.n, self.n_features, self.dtype = source, 0, n_features, np.dtype(dtype)
        place = Path(tempfile.gettempdir())
        free = shutil.disk_usage(place).free
        if expected > 0.95 * free:
            raise FileFault(
                source,
                f"about {expected / 1e9:.1f} GB of numbers must be laid out on disk; {place} has {free / 1e9:.1f} GB left",
                "Free some space, point the environment variable TMPDIR to a larger disk, or convert it to .parquet or .npy.",
            )
        self._folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
        self.path = self._folder / "numbers.npy"
        self._file = self.path.open("wb")
        self._finalizer = weakref.finalize(self, _remove, self._file, self._folder, os.getpid())
        self._header()

    def close(self) -> None:
        """Remove the file. What is mapped of it may not be used any more."""
        self._finalizer()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the file if anything went wrong; otherwise it is still needed."""
        if kind is not None:
            self.close()

    def append(self, rows: FloatArray) -> None:
        """More rows."""
        try:
            self._file.write(np.ascontiguousarray(rows, self.dtype).data)
        except OSError as error:
            raise FileFault(
                self.source,
                f"its numbers cannot be laid out in {self._folder.parent} ({error.strerror})",
                "Free some space, or point the environment variable TMPDIR to a larger disk.",
            ) from error
        self.n += len(rows)

    def unpack(self, stream: IO[bytes]) -> None:
        """Another .npy file, in the place of this one."""
        self._file.seek(0)
        self._file.truncate()
        shutil.copyfileobj(stream, self._file, 1 << 20)
        self._file.flush()

    def mapped(self) -> np.memmap[Any, np.dtype[Any]]:
        """All rows, read-only, once there are no more to come."""
        self._file.seek(0)
        self._header()
        self._file.close()
        return np.memmap(self.path, self.dtype, "r", self._offset, (self.n, self.n_features))

    def _header(self) -> None:
        # NumPy leaves room in the header for the number of rows to grow.
        head = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.n, self.n_features)}
        np.lib.format.write_array_header_1_0(self._file, head)
        self._offset = self._file.tell()


def _remove(file: BinaryIO, folder: Path, process: int) -> None:
    if os.getpid() != process:  # a fork, which ends before its parent does
        return
    with suppress(OSError):  # a full disk also refuses what is left in the buffer
        file.close()
    shutil.rmtree(folder, ignore_errors=True)
