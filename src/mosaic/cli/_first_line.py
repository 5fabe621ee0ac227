"""The first sign of life: what is being opened, said before anything heavy is imported."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def sign_of_life(args: Namespace) -> None:
    """On a terminal, say what is being opened and how large it is."""
    if not sys.stderr.isatty():
        return
    if args.command == "demo":
        line = "making 1,886 pictures"
    elif getattr(args, "file", None) is None:
        return
    else:
        line = f"opening {visible(os.fspath(args.file))}{_size(args.file)}"
    sys.stderr.write(f"mosaic: {line} …\n")
    sys.stderr.flush()


def visible(text: str) -> str:
    r"""The text without what would move the cursor or colour the terminal.

    Examples
    --------
    >>> visible("a\x1b[31mb\nc")
    'a�[31mb c'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def readable_size(size: float) -> str:
    """Bytes as a person says them.

    Examples
    --------
    >>> readable_size(80_000_128), readable_size(17)
    ('76 MiB', '17 bytes')
    """
    unit = 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:.1f} {UNITS[unit]}"


def _size(path: str) -> str:
    try:
        return "" if os.path.isdir(path) else f" ({readable_size(os.path.getsize(path))})"
    except OSError:  # opening it will say why
        return ""
