"""Standard input, and files whose name does not say what they are: they are given a name that does, in a temporary folder."""

from __future__ import annotations

import bz2
import os
import shutil
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO

from mosaic.rows.faults import FileFault
from mosaic.rows.writing import MORE_ROOM, Scratch

#: What standard input is called in messages.
STANDARD_INPUT = "standard input"
#: Bytes that show what a file is.
FIRST_BYTES = 1 << 16
#: How kinds of files begin; what begins otherwise is CSV.
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"FEA1": ".feather",
    b"\x93NUMPY": ".npy",
    b"\x89HDF": ".h5ad",
    b"PK\x03\x04": ".zip",
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\x28\xb5\x2f\xfd": ".zst",
}


def ending_by_bytes(head: bytes) -> str:
    """The ending that files have that begin so.

    Examples
    --------
    >>> ending_by_bytes(b"PAR1..."), ending_by_bytes(b'{"a": 1}'), ending_by_bytes(b"a,b")
    ('.parquet', '.jsonl', '.csv')
    """
    ending = next((ending for magic, ending in BEGINNINGS.items() if head.startswith(magic)), "")
    if ending == ".zip":
        first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        workbook = first.startswith((b"[Content_Types]", b"xl/", b"_rels/", b"docProps/"))
        return ".npz" if first.endswith(b".npy") else ".xlsx" if workbook else ".zip"
    if ending in (".gz", ".bz2"):
        inner = b""
        with suppress(zlib.error, OSError, EOFError):
            unpack = zlib.decompressobj(31) if ending == ".gz" else bz2.BZ2Decompressor()
            inner = unpack.decompress(head, FIRST_BYTES)
        return ending_by_bytes(inner) + ending
    if ending == ".zst":
        return ".csv.zst"
    return ending or (".jsonl" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else ".csv")


def spooled(format: str | None, stream: IO[bytes] | None = None) -> tuple[Scratch, Path]:
    """Standard input as a temporary file, and the folder that it is in. It takes at most half of the room on the disk.

    Parameters
    ----------
    format : what it is, such as ``"csv"``; by default as its first bytes say
    stream : to read instead of standard input
    """
    if stream is None:
        if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
            remedy = "Pipe rows into the command, as in: cat points.csv | mosaic select -"
            raise FileFault(STANDARD_INPUT, "there is none to read, only a keyboard", remedy)
        stream = sys.stdin.buffer
    head = stream.read(FIRST_BYTES)
    if not head:
        raise FileFault(STANDARD_INPUT, "it is empty", "Look at the command before the pipe: it has written nothing.")
    with Scratch(Path(STANDARD_INPUT), 1) as scratch:
        file = scratch.folder / f"stdin{ending_by_bytes(head) if format is None else '.' + format}"
        room, written = shutil.disk_usage(scratch.folder).free // 2, 0
        with scratch.writing(), file.open("wb") as laid_out:
            block = head
            while block:
                written += laid_out.write(block)
                if written > room:
                    said = f"has more than {room / 1e9:.1f} GB, half of what is free in {scratch.folder.parent}"
                    raise FileFault(STANDARD_INPUT, said, MORE_ROOM)
                block = stream.read(1 << 20)
        return scratch, file


def renamed(path: Path, format: str) -> tuple[Scratch, Path]:
    """A link to a file, with an ending that says what it is, and the folder that it is in."""
    with Scratch(path, 1) as scratch:
        link = scratch.folder / f"{path.stem or 'data'}.{format}"
        os.symlink(path.resolve(), link)
        return scratch, link
