"""What goes to stdout: JSON for programs, CSV into pipes, a readable answer to people. Nothing else in the library prints."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from mosaic.cli._first_line import visible
from mosaic.cli._signals import say

#: Rows of a table that a terminal is shown.
MOST_ROWS = 20


def write(text: str = "") -> None:
    """A line on stdout."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A sentence on stderr."""
    say(f"note: {visible(text)}")


def write_bytes(content: bytes) -> None:
    """What programs read, which is UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a replacement that takes text only
        sys.stdout.write(content.decode())
    else:
        stream.write(content)
        stream.flush()


def write_json(answer: dict[str, Any]) -> None:
    """One object on one line; never NaN or Infinity, which are no JSON."""
    text = json.dumps(plain_value(answer), ensure_ascii=False, allow_nan=False)
    # Half a character, as in names of files that are not UTF-8, becomes an escape that JSON knows, too.
    write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def plain_value(value: Any) -> Any:
    """What JSON can hold: of numbers the finite ones, of dates and all else their text.

    Examples
    --------
    >>> plain_value({"a": float("nan"), 1: (date(2020, 2, 3), b"x", Decimal("1.5"))})
    {'a': None, '1': ['2020-02-03', 'x', 1.5]}
    """
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def write_csv(table: Any) -> None:
    """A table as CSV on stdout. Columns of lists, which CSV cannot hold, are left out, as in files."""
    from mosaic.data import csv_bytes

    write_bytes(csv_bytes(table))


def width() -> int:
    """Columns of the terminal."""
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


def write_table(headers: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[int] = ()) -> None:
    """A table whose last column takes what the terminal leaves; columns of ``numbers`` are flush right."""
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    right = set(numbers)
    room = width()
    widths = [max([len(header), *(len(row[j]) for row in cells)]) for j, header in enumerate(headers)]
    widths = [min(w, max(room // 3, 8)) if j < len(headers) - 1 else w for j, w in enumerate(widths)]
    left = room - sum(widths[:-1]) - 2 * (len(headers) - 1)
    widths[-1] = max(min(widths[-1], left), 8)
    for row in [list(headers), *cells]:
        texts = [shortened(cell, w) for cell, w in zip(row, widths, strict=True)]
        padded = [t.rjust(w) if j in right else t.ljust(w) for j, (t, w) in enumerate(zip(texts, widths, strict=True))]
        write("  ".join(padded).rstrip())


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning.

    Examples
    --------
    >>> shortened("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def write_wrapped(text: str, start: str = "") -> None:
    """A sentence, in as many lines as it takes."""
    write(textwrap.fill(visible(text), width(), initial_indent=start, subsequent_indent=" " * len(start)))


def left_out(columns: list[str]) -> list[str]:
    """What is to be said about columns that were not written.

    Examples
    --------
    >>> left_out([]), left_out(["vector"])
    ([], ['Not written, since CSV cannot hold lists: vector. A .parquet file keeps them.'])
    """
    return (
        [f"Not written, since CSV cannot hold lists: {', '.join(columns)}. A .parquet file keeps them."]
        if columns
        else []
    )


def write_notes(notes: Iterable[str]) -> None:
    """Notes at the end of a readable answer."""
    for text in notes:
        write_wrapped(text, "note: ")
