"""Checks of a file before a library in C reads it, for those libraries that a damaged file can crash.

A fault in such a library ends the whole process, so that no ``try`` helps. What can be checked completely is checked here first:

- Matrix Market: every line of numbers is compared with the grammar (scipy's reader crashes at zero bytes and reads 2.x as 2).
- JSON lines: brackets are counted, outside of texts (pyarrow's parser takes a frame of the stack for each).
- Arrow, Feather, Parquet: pyarrow itself says whether what it has read is valid, before anything is computed from it.

HDF5 is a file system in a file, which nobody can check but the HDF5 library. It reads the file in a child process first, with
limits of time and memory; where that process ends well, the file is read here.
"""

from __future__ import annotations

import bz2
import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from mosaic.data import hdf5_walk
from mosaic.data.faults import FileFault

#: Bytes that are looked at together.
BLOCK = 1 << 20
#: Brackets within brackets; tables need two or three.
DEEPEST_JSON = 100
#: How many times its size a file may hold; text and numbers are seldom packed to less than a fiftieth.
MOST_UNPACKED = 200
#: Seconds of computing that reading an HDF5 file may take, and bytes for which it gets another one.
HDF5_SECONDS, HDF5_RATE = 2, 50_000_000

_REAL = rb"[-+]?+(?:(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+|(?i:inf(?:inity)?+|nan))"
#: What stands on a line of a Matrix Market file, by its form and the kind of its numbers.
_CELLS = {
    ("coordinate", "real"): rb"\d++[ \t]++\d++[ \t]++" + _REAL,
    ("coordinate", "integer"): rb"\d++[ \t]++\d++[ \t]++[-+]?+\d++",
    ("coordinate", "unsigned-integer"): rb"\d++[ \t]++\d++[ \t]++\d++",
    ("coordinate", "pattern"): rb"\d++[ \t]++\d++",
    ("array", "real"): _REAL,
    ("array", "integer"): rb"[-+]?+\d++",
    ("array", "unsigned-integer"): rb"\d++",
}


def check_matrix_market(path: Path, form: str, kind: str) -> None:
    """Refuse a file in which a line is not made of the numbers that its header announces.

    Parameters
    ----------
    path : of the file, which may be compressed
    form, kind : what ``scipy.io.mminfo`` says of it
    """
    cells = _CELLS.get((form, kind))
    if cells is None:
        raise FileFault(path, f"holds numbers of the kind {kind!r}", "Write it again with real numbers.")
    lines = re.compile(rb"(?:[ \t]*+(?:" + cells + rb")?+[ \t\r]*+\n)*+")
    opened: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    done = 0
    with opened.get(path.suffix.lower(), open)(path, "rb") as file:
        for line in file:
            done += 1
            if b"\0" in line:
                raise FileFault(
                    path, "holds zero bytes", "Write it again, for example with scipy.io.mmwrite.", line=done
                )
            if line.strip() and not line.startswith(b"%"):
                break  # the sizes, which mminfo has read
        for block in _whole_lines(file):
            good = lines.match(block)
            end = 0 if good is None else good.end()
            if end < len(block):
                wrong = block[end:].partition(b"\n")[0].decode("utf-8", "replace").strip()
                raise FileFault(
                    path,
                    f"{wrong[:40]!r} is not what the header announces, {form} {kind}",
                    "Correct the line, or write the file again, for example with scipy.io.mmwrite.",
                    line=done + block[:end].count(b"\n") + 1,
                )
            done += block.count(b"\n")


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines; the last line gets a line break."""
    rest = b""
    while block := file.read(BLOCK):
        whole, line_break, rest = (rest + block).rpartition(b"\n")
        if line_break:
            yield whole + b"\n"
    if rest:
        yield rest + b"\n"


def check_json_depth(path: Path, stream: IO[bytes]) -> None:
    """Refuse JSON lines in which brackets are nested deeply, or are not closed on the line that opens them.

    Parameters
    ----------
    path : of the file, for messages
    stream : its bytes
    """
    step = np.zeros(256, np.int8)
    step[list(b"[{")], step[list(b"]}")] = 1, -1
    done = 0
    for block in _whole_lines(stream):
        # What follows a backslash is no end of a text.
        letters = np.frombuffer(block.replace(b"\\\\", b"  ").replace(b'\\"', b"  "), np.uint8)
        quotes, ends = np.cumsum(letters == ord('"'), dtype=np.int32), np.flatnonzero(letters == ord("\n"))
        before = np.r_[np.int32(0), quotes[ends[:-1]]]
        lengths = np.diff(ends, prepend=-1)
        inside = ((quotes - np.repeat(before, lengths)) & 1).astype(bool)
        depth = np.cumsum(np.where(inside, 0, step[letters]), dtype=np.int32)
        deepest = int(depth.max(initial=0))
        wrong = np.flatnonzero((depth[ends] != 0) | (inside[ends]))
        if deepest > DEEPEST_JSON or len(wrong):
            deep = np.searchsorted(ends, np.argmax(depth > DEEPEST_JSON)) if deepest > DEEPEST_JSON else len(ends)
            first = int(min(deep, wrong[0] if len(wrong) else len(ends)))
            if first == deep:
                said = f"has brackets within brackets, more than {DEEPEST_JSON} deep"
                raise FileFault(path, said, "Write one flat object a line.", line=done + first + 1)
            said = "is no JSON (a text, list or object does not end on the line that it begins on)"
            remedy = "Write one JSON object a line; a missing number is null."
            raise FileFault(path, said, remedy, line=done + first + 1)
        done += len(ends)


def check_unpacked(path: Path, unpacked: float, stored: float, budget: float) -> None:
    """Refuse a file that claims to hold far more than its size, if that is large for the budget: a bomb, or an empty promise.

    Parameters
    ----------
    path : of the file, for messages
    unpacked : bytes that its numbers or its text take
    stored : bytes that it takes on the disk
    budget : bytes of memory
    """
    if unpacked > max(budget / 4, MOST_UNPACKED * stored):
        raise FileFault(
            path,
            f"takes {stored / 1e6:,.1f} MB and claims to hold {unpacked / 1e9:,.1f} GB, more than {MOST_UNPACKED} times as much",
            "No real table is packed so tightly: it is damaged, hardly written to, or made to fill memory and disk. If it is "
            "sound, unpack it first.",
        )


def valid(data: Any) -> Any:
    """A table or batch of pyarrow, if lengths, offsets, indices and texts in it are right; otherwise ``pyarrow.ArrowInvalid``."""
    data.validate(full=True)
    return data


def check_hdf5(path: Path, memory: float) -> None:
    """Refuse a file that the HDF5 library crashes on or does not come to an end with.

    Parameters
    ----------
    path : of the file
    memory : the budget, of which reading may take half
    """
    seconds = HDF5_SECONDS + int(path.stat().st_size / HDF5_RATE)
    words = [str(word) for word in (hdf5_walk.__file__, path, seconds, int(memory / 2) + (1 << 29))]
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen([sys.executable, "-P", *words], stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError:  # there is no Python to start, as within other programs
        return
    try:
        code = child.wait(10 * seconds)
    except subprocess.TimeoutExpired:
        code = -1
    finally:
        child.kill()
        child.wait()
    if code < 0 or code == hdf5_walk.NO_MEMORY:
        raise FileFault(
            path,
            "the HDF5 library crashes on it, or does not come to an end with it, or takes all memory",
            "It is damaged. Copy or write it again.",
        )
