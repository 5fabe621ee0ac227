"""Passes that are made once: what each gave is remembered, in a file if one is named, and taken up again after an interruption.

The file holds the result of every pass that is done and, of the one that was under way, what the first rows gave. All that
comes between passes is computed from these, and the same computation gives the same numbers, so going on after
a kill ends where an undisturbed run would have. Data is known by a fingerprint, which every pass takes on its way.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._arrays import row_codes
from mosaic.engines.base import Source
from mosaic.exceptions import InvalidInputError
from mosaic.passes import Partial, Small, Task

#: What the file calls itself, and the number of its layout.
FORMAT, VERSION = "mosaic-checkpoint", 1
#: Seconds after which the state of a pass is written again.
SAVE_EVERY = 20.0
FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Fingerprinted:
    """A task that takes the fingerprint of the rows on its way: Σ_i h(row i, i) mod 2⁶⁴."""

    task: Task

    def map_block(self, rows: Any, start: int) -> Small:
        """What the task makes of a block, and its fingerprint."""
        numbers = np.arange(start + 1, start + 1 + rows.shape[0], dtype=np.uint64)
        h = (row_codes(rows) ^ (numbers * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
        return {
            **self.task.map_block(rows, start),
            FINGERPRINT: (h * h | np.uint64(1)).sum(dtype=np.uint64, keepdims=True),
        }

    def merge(self, left: Small, right: Small) -> Small:
        """What the task makes of two, and the sum of their fingerprints."""
        parts = [{name: value for name, value in side.items() if name != FINGERPRINT} for side in (left, right)]
        return {**self.task.merge(*parts), FINGERPRINT: left[FINGERPRINT] + right[FINGERPRINT]}


class Nothing:
    """A pass for the sake of the fingerprint."""

    def map_block(self, rows: Any, start: int) -> Small:
        """Nothing."""
        return {}

    def merge(self, left: Small, right: Small) -> Small:
        """Nothing."""
        return {}


class Journal:
    """Runs passes over a source by name and keeps what they give.

    Parameters
    ----------
    source : the rows
    path : file to keep it in; None for memory only
    settings : all that the passes depend on, as plain values; a file that was written under others is refused
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
        self.path = None if path is None else Path(path)
        self.settings = {"rows": source.n, "columns": source.n_features, **(settings or {})}
        self.done: dict[str, Small] = {}
        self.tasks: dict[str, str] = {}
        self.fingerprint: Any = None
        self._under_way: tuple[str, Partial] | None = None
        if self.path is not None and self.path.exists():
            self._load(self.path)
            self._verify(self._pass("looking for changes", Nothing(), keep=False))

    def run(self, name: str, task: Task, *, keep: bool = True) -> Small:
        """What the pass of this name gives; it is made if it was not made before. What is large is not kept."""
        identity = identity_of(task)
        if self.tasks.setdefault(name, identity) != identity and keep:
            raise InvalidInputError(
                f"the pass '{name}' in {self.path} was made for another task: another release has written it, or a machine that "
                "rounds differently. Delete the file to begin anew."
            )
        if name in self.done:
            return self.done[name]
        small = self._pass(name, task, keep)
        self._verify(small)
        small = {key: value for key, value in small.items() if key != FINGERPRINT}
        if keep:
            self.done[name], self._under_way = small, None
            self._save()
        return small

    def remember(self, name: str, value: int) -> int:
        """The value that was first given under this name: what is drawn at random is drawn once."""
        return int(self.done.setdefault(name, {"value": np.asarray(value)})["value"])

    def _pass(self, name: str, task: Task, keep: bool) -> Small:
        started = saved = time.monotonic()
        resume = None
        if self._under_way is not None and self._under_way[0] == name:
            resume = self._under_way[1]

        def watch(rows: int, partial: Partial | None) -> None:
            nonlocal saved
            if keep and partial is not None:
                self._under_way = (name, partial)
                if time.monotonic() - saved > SAVE_EVERY:
                    self._save()
                    saved = time.monotonic()
            if self.tell is not None:
                self.tell(name, rows, time.monotonic() - started)

        try:
            return self.source.run(Fingerprinted(task), resume=resume, watch=watch)
        except KeyboardInterrupt:
            if self.path is None or not keep:
                raise
            self._save()
            raise KeyboardInterrupt(
                f"interrupted in the pass '{name}'. What was done is in {self.path}; fit again with the same data and "
                "settings and the same checkpoint to go on from there."
            ) from None

    def _verify(self, small: Small) -> None:
        """Refuse data that is not what earlier passes have seen."""
        seen = int(small[FINGERPRINT][0])
        if self.fingerprint is not None and seen != self.fingerprint:
            remedy = (
                "Bring back the data as it was, or delete the checkpoint to begin anew."
                if self.path is not None and self.path.exists()
                else "Fit again, on data that nobody writes to."
            )
            where = f", of which {self.path} keeps the results," if self.path is not None and self.path.exists() else ""
            raise InvalidInputError(
                f"the data is not what earlier passes{where} have seen: its fingerprint is {seen:016x}, theirs is "
                f"{self.fingerprint:016x}. {remedy}"
            )
        self.fingerprint = seen

    def _save(self) -> None:
        """Write all that is known under another name, then rename: at every moment the file is whole, old or new."""
        if self.path is None:
            return
        header = {"format": FORMAT, "version": VERSION, "settings": self.settings}
        header |= {"fingerprint": self.fingerprint, "tasks": self.tasks}
        arrays = {f"done/{name}/{key}": value for name, small in self.done.items() for key, value in small.items()}
        if self._under_way is not None:
            name, partial = self._under_way
            header["under_way"] = name
            for (level, i), small in partial.nodes.items():
                arrays |= {f"node/{level}/{i}/{key}": value for key, value in small.items()}
            for block, pieces in partial.pieces.items():
                arrays |= {f"piece/{block}/{offset}": rows for offset, rows in pieces}
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            with temporary.open("wb") as file:
                np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _load(self, path: Path) -> None:
        try:
            with path.open("rb") as file, zipfile.ZipFile(file):
                pass  # an array alone can be loaded, too
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                header = json.loads(stored["header"].tobytes())
                arrays = {name: stored[name] for name in stored.files if name != "header"}
            if header["format"] != FORMAT:
                raise ValueError(f"it is a file of the kind {header['format']!r}")
            version, settings, fingerprint, tasks = (header[k] for k in ("version", "settings", "fingerprint", "tasks"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InvalidInputError(
                f"{path} is no checkpoint, or a damaged one: {error}. Delete it to begin anew, or name another file."
            ) from error
        if version != VERSION:
            raise InvalidInputError(
                f"{path} is a checkpoint of version {version}; this is version {VERSION}. "
                "Delete it to begin anew, or go on with the release that wrote it."
            )
        other = [
            name for name in self.settings | header["settings"] if _differs(self.settings, header["settings"], name)
        ]
        if other:
            theirs, ours = (side.get(other[0], "unknown") for side in (settings, self.settings))
            raise InvalidInputError(
                f"{path} was written with {other[0]}={theirs}, now it is {ours}"
                + (f" (and {len(other) - 1} more differences)" if len(other) > 1 else "")
                + ". Go back to those settings, name another file, or delete this one to begin anew."
            )
        self.fingerprint, self.tasks = fingerprint, tasks
        partial = Partial(self.source.n)
        for name, value in arrays.items():
            part, *rest = name.split("/")
            if part == "done":
                self.done.setdefault(rest[0], {})["/".join(rest[1:])] = value
            elif part == "node":
                partial.nodes.setdefault((int(rest[0]), int(rest[1])), {})["/".join(rest[2:])] = value
            else:
                partial.pieces.setdefault(int(rest[0]), []).append((int(rest[1]), value))
        if "under_way" in header:
            self._under_way = (header["under_way"], partial)


def identity_of(task: Any) -> str:
    """A digest of all numbers in a task, equal for tasks that do the same."""
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
            for key, part in value.items():
                digest.update(str(key).encode())
                take(part)
        elif isinstance(value, str | int | float | tuple | None):
            digest.update(repr(value).encode())
        else:  # a model, a function
            digest.update(type(value).__qualname__.encode())

    take(task)
    return digest.hexdigest()[:16]


def _differs(ours: Mapping[str, Any], theirs: Mapping[str, Any], name: str) -> bool:
    plain = json.loads(json.dumps({"ours": ours.get(name), "theirs": theirs.get(name)}))
    return bool(plain["ours"] != plain["theirs"])
