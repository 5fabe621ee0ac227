"""Passes that are made once: what each gave is remembered, in a file if one is named, and taken up after an interruption.

The file holds the result of every finished pass. All that comes between passes is computed from these, and the same
computation gives the same numbers, so going on after a kill ends where an undisturbed run would have. With a checkpoint, every
pass takes the fingerprint of the rows on its way, by which data that has changed is recognised; without one, the sizes and
times of files tell.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._arrays import row_codes
from mosaic.engines.base import Source
from mosaic.exceptions import InvalidInputError
from mosaic.passes import Small, Task, Together, own

#: What the file calls itself, and the number of its layout.
FORMAT, VERSION = "mosaic-checkpoint", 2
ANEW = "Delete it to begin anew, or name another file."


class Fingerprint:
    """A pass for the fingerprint of the rows: Σ_i h(row i, i) mod 2⁶⁴."""

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
    """Runs passes over a source by name and keeps what they give.

    Parameters
    ----------
    source : the rows
    path : the checkpoint, a file to keep it in; None for memory only
    settings : all that the passes depend on; a checkpoint that was written under others is refused
    tell : is told about the pass under way: its name, the rows done so far, and the seconds since it began
    """

    def __init__(
        self,
        source: Source,
        path: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        tell: Callable[[str, int, float], None] | None = None,
    ):
        self.source, self.tell = source, tell
        self.path = None if path is None else _checked(path)
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
        """What the pass of this name gives; it is made if it was not made before. What is large is not kept."""
        if keep and self.tasks.setdefault(name, digest := digest_of(task)) != digest:
            raise InvalidInputError(
                f"the pass '{name}' in {self.path} was made for another task: another release has written it, or a machine "
                "that rounds differently",
                "Delete the file to begin anew.",
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
        """The value that was first given under this name: what is drawn at random is drawn once."""
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
                f"interrupted in the pass '{name}'. The passes before it are in {self.path}; fit again with the same data and "
                "settings and the same checkpoint to go on from there."
            ) from None
        for file, stamp in _stamps(self.source).items():
            if self.stamps[file] != stamp:
                raise InvalidInputError(
                    f"{file} has changed while it was read in passes, which must all see the same rows",
                    "Fit again, once nobody writes to it.",
                )
        return small

    def _verify(self, found: Small) -> None:
        """Refuse data that is not what earlier passes have seen."""
        seen = int(found["sum"][0])
        if self.fingerprint is not None and seen != self.fingerprint:
            raise InvalidInputError(
                f"the data is not what earlier passes, of which {self.path} keeps the results, have seen: its fingerprint is "
                f"{seen:016x}, theirs is {self.fingerprint:016x}",
                "Bring back the data as it was, or delete the checkpoint to begin anew, on data that nobody writes to.",
            )
        self.fingerprint = seen

    def _save(self) -> None:
        """Write all that is known under another name, then rename: at every moment the file is whole, old or new."""
        if self.path is None:
            return
        header = {"format": FORMAT, "version": VERSION, "settings": self.settings, "tasks": self.tasks}
        header["fingerprint"] = self.fingerprint
        arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
        arrays |= {f"{name}/{key}": np.asarray(v) for name, small in self.done.items() for key, v in small.items()}
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            with temporary.open("wb") as file:
                np.savez(file, digest=np.array(digest_of(arrays)), **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except BaseException as error:
            with suppress(OSError):
                temporary.unlink()
            if isinstance(error, OSError):
                raise _cannot_be_written(
                    self.path, error.strerror or str(error), "Make room, or name another file."
                ) from error
            raise

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as file, zipfile.ZipFile(file):
                pass  # an array alone can be loaded, too
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            header = json.loads(arrays["header"].tobytes())
            if header["format"] != FORMAT:
                raise ValueError(f"it is a file of the kind {header['format']!r}")
            if header["version"] != VERSION:
                raise InvalidInputError(
                    f"{path} is a checkpoint of version {header['version']}; this is version {VERSION}",
                    "Delete it to begin anew, or go on with the release that wrote it.",
                )
            if str(arrays.pop("digest")) != digest_of(arrays):
                raise ValueError("its content is not what was written")
            theirs, self.fingerprint, self.tasks = (header[key] for key in ("settings", "fingerprint", "tasks"))
        except InvalidInputError:
            raise
        except Exception as error:  # of zip files, of arrays, of JSON: a damaged byte can be anywhere
            raise InvalidInputError(f"{path} is no checkpoint, or a damaged one: {error}", ANEW) from error
        other = [name for name in self.settings | theirs if self.settings.get(name) != theirs.get(name)]
        if other:
            now, then = (side.get(other[0], "unknown") for side in (self.settings, theirs))
            more = f" (and {len(other) - 1} more differences)" if len(other) > 1 else ""
            raise InvalidInputError(
                f"{path} was written with {other[0]}={then}, now it is {now}{more}",
                "Go back to those settings, name another file, or delete this one to begin anew.",
            )
        for name, value in arrays.items():
            if name != "header":
                of, _, key = name.partition("/")
                self.done.setdefault(of, {})[key] = value


def _stamps(source: Source) -> dict[Path, tuple[int, int] | None]:
    """Size and time of the last change of every file that the rows are in; None where one is gone."""
    stamps: dict[Path, tuple[int, int] | None] = {}
    for file in source.files:
        try:
            stat = file.stat()
            stamps[file] = (stat.st_size, stat.st_mtime_ns)
        except OSError:
            stamps[file] = None
    return stamps


def _checked(path: Any) -> Path:
    """The path of a checkpoint, refused before any work is done if no file can be there."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidInputError(
            "must be the path of a file, or None", "Name a file.", parameter="checkpoint", value=path
        )
    if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
        raise _cannot_be_written(path, "it must be a file in a folder that exists", "Name such a file.")
    return Path(path)


def _cannot_be_written(path: Any, reason: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"cannot be written: {reason}", remedy, parameter="checkpoint", value=str(path))


def comparable(value: Any) -> Any:
    """A short value that JSON knows, equal for equal settings and constraints."""
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
    """A digest of all numbers in a task, or in arrays by name; equal for tasks that do the same."""
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
