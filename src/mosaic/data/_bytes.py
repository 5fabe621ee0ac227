"""Text files as bytes: decompressed by their name, and refused where they are not UTF-8."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from mosaic._files import library
from mosaic.data._faults import FileFault

#: Is told now and then how many bytes are done, and of how many.
Progress: TypeAlias = Callable[[int, int], None]
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def ending_of(path: Path) -> str:
    """The ending of a name, without that of a compression.

    Examples
    --------
    >>> ending_of(Path("points.CSV.gz"))
    '.csv'
    """
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSIONS else path.suffix.lower()


def open_stream(path: Path, raw: BinaryIO | None = None) -> Any:
    """The bytes of a file, decompressed where its name says that it is compressed; of an open file if there is one."""
    pa = library("pyarrow", path)
    compression = COMPRESSIONS.get(path.suffix.lower())
    # A name in bytes, since not every one is UTF-8.
    stream = pa.OSFile(os.fsencode(path)) if raw is None else pa.PythonFile(raw, mode="r")
    return stream if compression is None else pa.CompressedInputStream(stream, compression)


def decoded(path: Path, head: bytes) -> str:
    """The beginning of a file as text, be it cut off within a letter."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileFault(
            path,
            "is written in UTF-16",
            f"Convert it: iconv -f utf-16 -t utf-8 '{path.name}' > utf8-{path.name}",
            line=1,
        )
    if b"\0" in head:
        line = head[: head.index(b"\0")].count(b"\n") + 1
        raise FileFault(
            path,
            "holds zero bytes: it is no text but a binary file",
            "Give it the ending of what it is, such as .parquet or .npy, or write it as text.",
            line=line,
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise wrong_encoding(path) or FileFault(path, "is not UTF-8", "Write it again in UTF-8.") from error
    return head.decode("utf-8-sig", errors="ignore")


def wrong_encoding(path: Path) -> FileFault | None:
    """The first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, done = 1, 0
    with open_stream(path) as stream:
        while True:
            block = stream.read(1 << 20)
            pending = decoder.getstate()[0]  # the beginning of a letter, left over from the block before
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                data = pending + block
                line += data[: error.start].count(b"\n")
                offset = done - len(pending) + error.start
                name = path.name
                return FileFault(
                    path,
                    f"byte {offset:,} (0x{data[error.start]:02x}) is not UTF-8",
                    f"If it is Latin-1 or Windows-1252, convert it: iconv -f latin1 -t utf-8 '{name}' > 'utf8-{name}'",
                    line=line,
                )
            if not block:
                return None
            line, done = line + block.count(b"\n"), done + len(block)
