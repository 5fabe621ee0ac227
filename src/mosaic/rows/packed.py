"""What has to be laid out in a temporary folder before it is read: streams, archives, lists in JSON; and patterns of names."""

from __future__ import annotations

import codecs
import json
import lzma
import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

from mosaic.rows.faults import FileFault, readable
from mosaic.rows.roles import Request
from mosaic.text import listed

#: What standard input is called in messages.
STANDARD_INPUT = "standard input"


def files_of(pattern: Path) -> list[Path]:
    """The files that a pattern of names such as ``folder/*.csv`` stands for, by name; none if it is the name of a file."""
    if not has_magic(str(pattern)) or os.path.exists(pattern):
        return []
    files = [
        Path(name) for name in sorted(glob(str(pattern), recursive=True)) if os.path.isfile(name)
    ]
    if not files:
        raise FileFault(
            pattern, "no file has a name like this", f"Paths are relative to {Path.cwd()}."
        )
    for other in files:
        if other.suffix.lower() != files[0].suffix.lower():
            raise FileFault(
                other,
                f"is of another kind than {files[0].name}",
                f"Give {pattern} the ending of one kind.",
            )
    return files


def spooled(path: Path, folder: Path) -> Path:
    """The rows of standard input or of a named pipe, which can be read once only."""
    is_standard = path == Path(STANDARD_INPUT)
    if is_standard and (sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()):
        remedy = "Pipe rows into the command, as in: cat points.csv | mosaic select -"
        raise FileFault(STANDARD_INPUT, "there is none to read, only a keyboard", remedy)
    with nullcontext(sys.stdin.buffer) if is_standard else path.open("rb") as source:
        target = _copied(source, folder, "stream")
    if not target.stat().st_size:
        raise FileFault(
            path, "it is empty", "Look at the command before the pipe: it has written nothing."
        )
    return target


def _copied(source: IO[bytes], folder: Path, name: str) -> Path:
    target = folder / (name if "." in name else f"{name}.csv")
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)
    return target


def from_xz(request: Request, folder: Path) -> Path:
    with readable(request.path), lzma.open(request.path) as source:
        return _copied(source, folder, request.path.stem)


def from_zip(request: Request, folder: Path) -> Path:
    """The one file of an archive; those that the finder of macOS adds do not count."""
    path = request.path
    with readable(path), zipfile.ZipFile(path) as archive:
        names = [
            name
            for name in archive.namelist()
            if not name.endswith("/") and not name.startswith("__MACOSX/")
        ]
        if len(names) != 1:
            pipe = f"unzip -p {shlex.quote(path.name)} {shlex.join(names[:1])} | mosaic select -"
            raise FileFault(
                path,
                f"has {len(names)} files instead of one: {listed(names)}",
                f"Pipe one of them ({pipe})",
            )
        with archive.open(names[0]) as source:
            return _copied(source, folder, Path(names[0]).name)


def from_json(request: Request, folder: Path) -> Path:
    """A list of records as one record a line; a file of lines as it is."""
    path, target = request.path, folder / "records.jsonl"
    with readable(
        path, "Write a list of records, as pandas does with to_json(path, orient='records')."
    ):
        with path.open("rb") as file:
            head = file.read(1 << 10).lstrip(codecs.BOM_UTF8).lstrip()
        if head.startswith(b"{"):
            return Path(shutil.copyfile(path, target))
        pipe = f"Use a pipe (jq -c '.[]' {shlex.quote(path.name)} | mosaic select - --format jsonl)"
        needed = 10.0 * path.stat().st_size  # objects of Python, and the text
        request.refuse_beyond_half(needed, "is a list, which is read at once, and takes", pipe)
        text: Any = path.read_bytes()
        text = text if request.encoding is None else text.decode(request.encoding)
        records = json.loads(text, parse_constant={"NaN": None}.__getitem__)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FileFault(
            path,
            "is no list of records",
            "Write one, as pandas does with to_json(path, orient='records').",
        )
    target.write_text("".join(f"{json.dumps(record)}\n" for record in records), request.encoding)
    return target


#: What lays out the file inside another one, by the ending of the latter.
PACKED: dict[str, Callable[[Request, Path], Path]] = {
    ".xz": from_xz,
    ".zip": from_zip,
    ".json": from_json,
}
