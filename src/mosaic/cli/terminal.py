"""Output to stdout and stderr: first line, progress, text, tables. No other module prints."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Self, TextIO

from mosaic.text import json_text, jsonable, printable, readable_size

#: Rows of a table that a terminal shows.
MOST_SHOWN = 20
#: Exit code if the output is no longer read: 128 plus the number of SIGPIPE.
BROKEN_PIPE = 141


def first_line(args: Namespace) -> None:
    """Write the name and size of the file to a terminal, before large packages are imported."""
    if args.quiet or args.json or args.command == "completion" or not sys.stderr.isatty():
        return
    file = getattr(args, "file", "1,886 pictures")
    size = ""
    with suppress(OSError):  # opening the file will raise the error
        size = "" if os.path.isdir(file) else f" ({readable_size(os.path.getsize(file))})"
    say(f"mosaic: opening {visible(file)}{size} …")


def visible(text: str) -> str:
    """The text on one line, with characters that would move the cursor or colour the terminal written out."""
    return printable("".join(" " if c.isspace() else c for c in text))


def say(text: str) -> None:
    """Write a line to stderr; if that fails, nobody can be told."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def write(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def write_bytes(content: bytes) -> None:
    """Write output for programs, always as UTF-8."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:  # a replacement stream that takes only text
        sys.stdout.write(content.decode())


def write_json(command: str, answer: dict[str, Any]) -> None:
    """Write one object on one line, without NaN and Infinity, which are not JSON."""
    text = json_text({"schema": f"mosaic/{command}/1", **jsonable(answer)})
    # Invalid characters, as in names of files that are not UTF-8, become JSON escapes.
    write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def discard_output(stream: TextIO) -> None:
    """Discard all further output to a broken stream, because the interpreter flushes it once more at exit."""
    with suppress(OSError, ValueError):  # a stream without a file number, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width() -> int:
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


def write_wrapped(text: str, start: str = "") -> None:
    write(
        textwrap.fill(
            visible(text), width(), initial_indent=start, subsequent_indent=" " * len(start)
        )
    )


def write_table(columns: Mapping[str, Sequence[Any]], more: str) -> None:
    """Write the first rows of a table, by column, without columns that say nothing; ``more`` says where further rows are."""
    columns = {
        name: values
        for name, values in columns.items()
        if any(value not in (None, "") for value in values)
    }
    last = list(columns)[-1]
    n = len(columns[last])
    lines = [""] * (min(n, MOST_SHOWN) + 1)
    for name, values in columns.items():
        cells = [name, *map(_cell, values[:MOST_SHOWN])]
        room = width() - len(lines[0]) if name == last else width() // 3
        size = min(max(map(len, cells)), max(room, 8))
        shown = [cell if len(cell) <= size else f"{cell[: size - 1]}…" for cell in cells]
        padded = str.ljust if isinstance(values[0], str) else str.rjust
        lines = [f"{line}{padded(cell, size)}  " for line, cell in zip(lines, shown, strict=True)]
    for line in lines:
        write(line.rstrip())
    if n > MOST_SHOWN:
        write(f"… and {n - MOST_SHOWN:,} more{more}.")


def _cell(value: object) -> str:
    return visible(f"{value:.3g}" if isinstance(value, float) else str(value))


class ProgressBar:
    """A line on stderr, if that is a terminal and ``quiet`` is not set, which is overwritten and disappears at the end."""

    def __init__(self, quiet: bool):
        self.is_shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.stage = ""
        self.text = ""
        self.started = time.monotonic()
        self.written = 0.0
        self.ended = Event()
        self.clock = Thread(target=self._move, daemon=True)

    def __enter__(self) -> Self:
        self.update("opening")
        if self.is_shown:
            self.clock.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        if self.is_shown:
            self.clock.join()
        self._write("")

    def _move(self) -> None:
        """Show the time that a long stage has taken so far."""
        while not self.ended.wait(0.2):
            self._draw()

    def update(self, stage: str, text: str | None = None, share: float | None = None) -> None:
        now = time.monotonic()
        if (
            not self.is_shown
            or stage == "done"
            or (stage == self.stage and now - self.written < 0.1)
        ):
            return
        self.stage = stage
        self.written = now
        bar = "" if share is None else f"{'━' * round(24 * share):<24} {100 * share:3.0f} %  "
        self.text = f"{bar}{visible(text or stage)}"
        self._draw()

    def _draw(self) -> None:
        self._write(f"{time.monotonic() - self.started:5.1f} s  {self.text}"[: width() - 1])

    def _write(self, line: str) -> None:
        if self.is_shown:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def on_read(self, done: float, total: float | None) -> None:
        of = "" if total is None else f" of {readable_size(total)}"
        self.update(
            "reading", f"reading, {readable_size(done)}{of}", done / total if total else None
        )
