"""The journal makes every pass once: it keeps the results, in a file if one is named, and resumes after an interruption.

The file holds the result of every finished pass. Everything between passes is computed from these results, and the same
computation gives the same numbers, so a resumed run ends with the same answer as an uninterrupted one. With a checkpoint,
every pass also computes the fingerprint of the rows, which detects data that has changed; without one, sizes and modification
times of files detect it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._codes import row_codes
from mosaic.door import replacing
from mosaic.engines.base import Source
from mosaic.exceptions import InvalidInputError, NotWrittenError
from mosaic.passes import Small, Task, Together, own

#: Name of the file format, and the version of its layout.
FORMAT, VERSION = "mosaic-checkpoint", 2
ANEW = "Delete it to start again, or name another file."


class Fingerprint:
    """A pass that computes the fingerprint of the rows: Σ_i h(row i, i) mod 2⁶⁴."""

    def map_block(self, rows: Any, start: int) -> Small:
        """The sum over a block."""
        numbers = np.arange(start + 1, start + 1 + rows.shape[0], dtype=np.uint64)
        h = (row_codes(rows) ^ (numbers * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
        return {"sum": (h * h | np.uint64(1)).sum(dtype=np.uint64, keepdims=True)}

    def merge(self, left: Small, right: Small) -> Small:
        """Sums of sums."""
        return {"sum": left["sum"] + right["sum"]}


class Journal:
    """Runs passes over a source by name and keeps their results.

    Parameters
    ----------
    source : the rows
    path : path of the checkpoint; None to keep results in memory only
    settings : all settings that the passes depend on; a checkpoint that was written with others is refused
    tell : called with the progress of a pass: its name, the number of rows done so far, and the seconds since it began
    """

    def __init__(
        self,
        source: Source,
        path: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        tell: Callable[[str, int, float], None] | None = None,
    ):
        self.source, self.tell = source, tell
        self.path = None if path is None else check_checkpoint(path)
        given = {"rows": source.n, "columns": source.n_features, **(settings or {})}
        self.settings = {name: comparable(value) for name, value in given.items()}
        self.done: dict[str, Small] = {}
        self.tasks: dict[str, str] = {}
        self.fingerprint: int | None = None
        self.stamps = _stamps(source)
        if self.path is not None and self.path.exists():
            self._load(self.path)
            self._verify(self._pass("looking for changes", Fingerprint()))

    def run(self, name: str, task: Task, *, keep: bool = True) -> Small:
        """The result of the pass with this name, which is made if it is not known. ``keep=False`` is for large results."""
        if keep and self.tasks.setdefault(name, digest := digest_of(task)) != digest:
            raise InvalidInputError(
                f"the pass '{name}' in {self.path} was made for another task: another release wrote it, or a machine "
                "that rounds differently",
                "Delete the file to start again.",
            )
        if name in self.done:
            return self.done[name]
        if self.path is None:
            small = self._pass(name, task)
        else:
            both = self._pass(name, Together({"task": task, "fingerprint": Fingerprint()}))
            self._verify(own(both, "fingerprint"))
            small = own(both, "task")
        if keep:
            self.done[name] = small
            self._save()
        return small

    def remember(self, name: str, value: int) -> int:
        """The value that was first given under this name, so that random values are drawn only once."""
        return int(self.done.setdefault(name, {"value": np.asarray(value)})["value"])

    def _pass(self, name: str, task: Task) -> Small:
        started, tell = time.monotonic(), self.tell

        def watch(rows: int) -> None:
            if tell is not None:
                tell(name, rows, time.monotonic() - started)

        try:
            small = self.source.run(task, watch=watch)
        except KeyboardInterrupt:
            if self.path is None or not self.path.exists():
                raise
            raise KeyboardInterrupt(
                f"interrupted in the pass '{name}'. The passes before it are in {self.path}; fit again with the same data, "
                "settings and checkpoint to resume."
            ) from None
        for file, stamp in _stamps(self.source).items():
            if self.stamps[file] != stamp:
                raise InvalidInputError(
                    f"{file} has changed while it was read in passes, which must all see the same rows",
                    "Fit again when no process writes to it.",
                )
        return small

    def _verify(self, found: Small) -> None:
        """Refuse data that differs from what earlier passes read."""
        seen = int(found["sum"][0])
        if self.fingerprint is not None and seen != self.fingerprint:
            raise InvalidInputError(
                f"the data differs from what the earlier passes in {self.path} read: its fingerprint is "
                f"{seen:016x}, theirs is {self.fingerprint:016x}",
                "Restore the data, or delete the checkpoint to start again, on data that no process writes to.",
            )
        self.fingerprint = seen

    def _save(self) -> None:
        """Write all results to a temporary file, then rename it: at every moment the checkpoint is complete, old or new."""
        if self.path is None:
            return
        header = {"format": FORMAT, "version": VERSION, "settings": self.settings, "tasks": self.tasks}
        header["fingerprint"] = self.fingerprint
        arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
        arrays |= {f"{name}/{key}": np.asarray(v) for name, small in self.done.items() for key, v in small.items()}
        try:
            with replacing(self.path.resolve()) as temporary, temporary.open("wb") as file:
                np.savez(file, digest=np.array(digest_of(arrays)), **arrays)
        except OSError as error:
            raise _cannot_be_written(
                self.path, error.strerror or str(error), "Make room, or name another file."
            ) from error

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as file, zipfile.ZipFile(file):
                pass  # refuse other files that np.load can read, such as a single array
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            header = json.loads(arrays["header"].tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']!r}")
            if header["version"] != VERSION:
                raise InvalidInputError(
                    f"{path} is a checkpoint of version {header['version']}; this is version {VERSION}",
                    "Delete it to start again, or resume with the release that wrote it.",
                )
            if str(arrays.pop("digest")) != digest_of(arrays):
                raise ValueError("its content does not match its digest")
            theirs, self.fingerprint, self.tasks = (header[key] for key in ("settings", "fingerprint", "tasks"))
        except InvalidInputError:
            raise
        except Exception as error:  # errors of zip files, arrays or JSON: a damaged byte can be anywhere
            raise InvalidInputError(f"{path} is not a checkpoint, or is damaged: {error}", ANEW) from error
        other = [name for name in self.settings | theirs if self.settings.get(name) != theirs.get(name)]
        if other:
            now, then = (side.get(other[0], "unknown") for side in (self.settings, theirs))
            more = f" (and {len(other) - 1} more differences)" if len(other) > 1 else ""
            raise InvalidInputError(
                f"{path} was written with {other[0]}={then}, now it is {now}{more}",
                "Go back to those settings, name another file, or delete this one to start again.",
            )
        for name, value in arrays.items():
            if name != "header":
                of, _, key = name.partition("/")
                self.done.setdefault(of, {})[key] = value


def _stamps(source: Source) -> dict[Path, tuple[int, int] | None]:
    """Size and modification time of every file that holds rows; None for a file that no longer exists."""
    stamps: dict[Path, tuple[int, int] | None] = {}
    for file in source.files:
        try:
            stat = file.stat()
            stamps[file] = (stat.st_size, stat.st_mtime_ns)
        except OSError:
            stamps[file] = None
    return stamps


def check_checkpoint(path: Any) -> Path:
    """The path of a checkpoint.

    Raises
    ------
    InvalidInputError
        if it is no path.
    NotWrittenError
        if no file can be written there; said before any work is done.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidInputError(
            "must be the path of a file, or None", "Name a file.", parameter="checkpoint", value=path
        )
    folder = Path(path).resolve().parent
    if not folder.is_dir() or Path(path).is_dir():
        raise _cannot_be_written(path, "it must be a file in a folder that exists", "Name such a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _cannot_be_written(path, f"its folder {folder} may not be written to by you", "Name a file elsewhere.")
    return Path(path)


def _cannot_be_written(path: Any, reason: str, remedy: str) -> NotWrittenError:
    return NotWrittenError(f"cannot be written: {reason}", remedy, parameter="checkpoint", value=str(path))


def comparable(value: Any) -> Any:
    """A short value that JSON can store, equal for equal settings and constraints."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, dict):
        return repr(sorted(value.items(), key=repr))
    array = np.asarray(value)
    return digest_of(array.astype(np.float64 if array.dtype.kind in "biuf" else str))


def digest_of(value: Any) -> str:
    """A digest of all numbers in a task, or in a dict of arrays; equal for tasks that compute the same."""
    digest = hashlib.sha256()

    def take(value: Any) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.shape}{value.dtype}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        elif is_dataclass(value) and not isinstance(value, type):
            digest.update(type(value).__name__.encode())
            for part in fields(value):
                take(getattr(value, part.name))
        elif isinstance(value, dict):
            for key, part in sorted(value.items()):
                digest.update(str(key).encode())
                take(part)
        elif isinstance(value, str | int | float | tuple | None):
            digest.update(repr(value).encode())
        else:  # a model, a function
            digest.update(type(value).__qualname__.encode())

    take(value)
    return digest.hexdigest()[:16]
