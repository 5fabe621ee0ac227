"""A temporary folder for what does not fit into memory. It is removed when nobody needs it any more."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from mosaic.data.faults import FileFault

MORE_ROOM = "Free some space, or point the environment variable TMPDIR to a larger disk."


class Scratch:
    """A temporary folder in TMPDIR. ``close`` removes it; so do an error within its block and the end of Python.

    Parameters
    ----------
    path : the file that the numbers come from, for messages
    expected : bytes that will be written; refused where the disk has less
    """

    def __init__(self, path: Path, expected: float):
        place = Path(tempfile.gettempdir())
        free = shutil.disk_usage(place).free
        if expected > 0.95 * free:
            raise FileFault(
                path,
                f"about {expected / 1e9:.1f} GB of numbers must be laid out on disk; {place} has {free / 1e9:.1f} GB left",
                f"{MORE_ROOM} Or convert it to .parquet or .npy.",
            )
        self.path, self.folder = path, Path(tempfile.mkdtemp(prefix="mosaic-"))
        self._finalizer = weakref.finalize(self, _remove, self.folder, os.getpid())

    def close(self) -> None:
        """Remove the folder. What is mapped from it may not be used any more."""
        self._finalizer()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an error of the disk into a fault that says what to do."""
        try:
            yield
        except OSError as error:
            raise FileFault(
                self.path,
                f"its numbers cannot be laid out in {self.folder.parent} ({error.strerror or error})",
                MORE_ROOM,
            ) from error

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the folder after an error; otherwise it is still needed."""
        if kind is not None:
            self.close()


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork ends before its parent does
        shutil.rmtree(folder, ignore_errors=True)
