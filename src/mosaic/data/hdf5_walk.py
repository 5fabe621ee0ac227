"""Run as a script: read an HDF5 file from end to end, so that a file that breaks the HDF5 library breaks this process only.

    python -P hdf5_walk.py FILE SECONDS BYTES

It ends by a signal if the library crashes, or takes more than so many seconds of computing; with 5 if it takes more than so many
bytes; otherwise with 0. It imports nothing of MOSAIC, so that it is there at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

#: Bytes of an array that are read at its beginning and at its end.
PART = 1 << 24
#: Exit code where memory does not suffice.
NO_MEMORY = 5
#: What AnnData looks for by name.
KNOWN = ("X", "obs", "var", "layers", "obsm", "data", "indices", "indptr", "codes", "categories")


@contextmanager
def left_to_the_reader() -> Iterator[None]:
    """Pass over what cannot be read, which the real reader refuses if it needs it; but not over a lack of memory."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or "alloc" in str(error):
            raise MemoryError from error


def walk(group: Any, seen: set[Any]) -> None:
    """Read names, attributes and arrays of a group and of those in it. What cannot be read is left to the real reader."""
    import h5py

    with left_to_the_reader():
        address = h5py.h5o.get_info(group.id).addr
        if address in seen:
            return
        seen.add(address)
    with left_to_the_reader():
        for value in group.attrs.values():
            repr(value)
    if isinstance(group, h5py.Dataset):
        with left_to_the_reader():
            read(group)
        return
    names = dict.fromkeys(KNOWN)  # also found where a damaged list of names does not have them
    with left_to_the_reader():
        names |= dict.fromkeys([group.attrs.get("_index"), *group.attrs.get("column-order", ())])
    with left_to_the_reader():
        names |= dict.fromkeys(group)
    for name in names:
        with left_to_the_reader():
            if isinstance(group.get(name, getlink=True), h5py.HardLink):
                walk(group[name], seen)


def read(stored: Any) -> None:
    """All of a small array, beginning and end of a large one."""
    if stored.external or stored.is_virtual:  # its numbers are in another file
        return
    if not stored.shape:
        stored[()]
        return
    row = stored.dtype.itemsize
    for length in stored.shape[1:]:
        row *= length
    rows = max(1, PART // max(1, row))
    stored[:rows]
    if stored.shape[0] > rows:
        stored[max(rows, stored.shape[0] - rows) :]


def main(path: str, seconds: str, memory: str) -> None:
    """Walk through a file, with limits that the operating system enforces where it can."""
    import h5py

    with suppress(ImportError):  # on Windows
        import resource

        last = int(time.process_time()) + 1 + int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (last, last + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    try:
        with left_to_the_reader(), h5py.File(path, "r") as store:
            walk(store, set())
    except MemoryError:
        sys.exit(NO_MEMORY)


if __name__ == "__main__":
    main(*sys.argv[1:])
