"""Text files: decompressed by their name, refused where they are not UTF-8; and files of one text a line."""

from __future__ import annotations

import codecs
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from mosaic._files import Library
from mosaic.data.columns import table_in_memory
from mosaic.data.faults import FileFault, readable
from mosaic.data.records import InMemory
from mosaic.data.request import Request
from mosaic.data.table import Table

pa = Library("pyarrow")

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: Bytes at the beginning of a file that show whether it is text at all.
FIRST_BYTES = 1 << 16


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
    compression = COMPRESSIONS.get(path.suffix.lower())
    # A name in bytes, since not every one is UTF-8.
    stream = pa.OSFile(os.fsencode(path)) if raw is None else pa.PythonFile(raw, mode="r")
    return stream if compression is None else pa.CompressedInputStream(stream, compression)


def decoded(path: Path, head: bytes) -> str:
    """The beginning of a file as text, be it cut off within a letter."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = f"Convert it: iconv -f utf-16 -t utf-8 '{path.name}' > utf8-{path.name}"
        raise FileFault(path, "is written in UTF-16", remedy, line=1)
    if b"\0" in head:
        raise FileFault(
            path,
            "holds zero bytes: it is no text but a binary file",
            "Give it the ending of what it is, such as .parquet or .npy, or write it as text.",
            line=head[: head.index(b"\0")].count(b"\n") + 1,
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    return head.decode("utf-8-sig", errors="ignore")


def wrong_encoding(path: Path) -> FileFault | None:
    """The fault of a file that is not UTF-8, with its first wrong byte; None where all bytes are right."""
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
                offset, name = done - len(pending) + error.start, path.name
                return FileFault(
                    path,
                    f"byte {offset:,} (0x{data[error.start]:02x}) is not UTF-8",
                    f"If it is Latin-1 or Windows-1252, convert it: iconv -f latin1 -t utf-8 '{name}' > 'utf8-{name}'",
                    line=line + data[: error.start].count(b"\n"),
                )
            if not block:
                return None
            line, done = line + block.count(b"\n"), done + len(block)


def not_utf8(path: Path) -> FileFault:
    """The fault of a file that is known not to be UTF-8."""
    return wrong_encoding(path) or FileFault(path, "is not UTF-8", "Write it again in UTF-8.")


def open_text(request: Request) -> Table:
    """A .txt file: one text a line. Its numbers come from another file."""
    path = request.path
    if not request.elsewhere:
        raise FileFault(
            path,
            "is text, which has no numbers to compute with",
            "Text needs an embedding: numbers made of it by a language model, a row for every line, in a file of their own: "
            "`embeddings='FILE.npy'`.",
        )
    with open_stream(path) as stream:
        decoded(path, stream.read(FIRST_BYTES))
    with readable(path), open_stream(path) as stream:
        try:
            lines = [line.rstrip("\r\n") for line in io.TextIOWrapper(stream, "utf-8-sig", newline=None)]
        except UnicodeDecodeError as error:
            raise not_utf8(path) from error
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    return table_in_memory(request, InMemory(pa.table({"text": lines}), lambda number: number + 1))
