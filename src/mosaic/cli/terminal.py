"""What is written to stdout and stderr: first line, progress, text, tables. Nothing else in the library prints."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Self, TextIO

from mosaic._files import readable_size

#: Exit code of a command whose output nobody reads any more: 128 and the number of SIGPIPE.
BROKEN_PIPE = 141
#: Rows of a table that a terminal is shown.
MOST_ROWS = 20


def first_line(args: Namespace) -> None:
    """On a terminal, say what is being opened and how large it is, before anything heavy is imported."""
    if args.quiet or args.json or not sys.stderr.isatty():
        return
    if args.command == "demo":
        say("mosaic: making 1,886 pictures …")
    elif hasattr(args, "file"):
        size = ""
        with suppress(OSError):  # opening it will say why
            size = "" if os.path.isdir(args.file) else f" ({readable_size(os.path.getsize(args.file))})"
        say(f"mosaic: opening {visible(args.file)}{size} …")


def visible(text: str) -> str:
    r"""The text without what would move the cursor or colour the terminal.

    Examples
    --------
    >>> visible("a\x1b[31mb\nc")
    'a�[31mb c'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


# --------------------------------------------------------------------------------------------------------------- streams


def say(text: str) -> None:
    """A line on stderr; where that cannot be written either, nothing more can be said."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        leave(sys.stderr)


def write(text: str = "") -> None:
    """A line on stdout."""
    sys.stdout.write(text + "\n")


def write_bytes(content: bytes) -> None:
    """What programs read, which is UTF-8 whatever the terminal's encoding is."""
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a replacement that takes text only
        sys.stdout.write(content.decode())
    else:
        stream.write(content)
        stream.flush()


def prepare_streams() -> None:
    """Replace streams that are closed, as with ``>&-``, and characters that the terminal does not know."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


def flush_or_leave(code: int) -> int:
    """Flush what was written and return the exit code: another one, and no message, where nobody reads any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        leave(sys.stdout)
        return BROKEN_PIPE
    return code


def leave(stream: TextIO) -> None:
    """Discard what is written to a broken stream from now on: the interpreter flushes it once more when it ends."""
    with suppress(OSError, ValueError):  # a stream without a number, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# ------------------------------------------------------------------------------------------------------- text and tables


def width() -> int:
    """Columns of the terminal."""
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


def write_wrapped(text: str, start: str = "") -> None:
    """A sentence, in as many lines as it takes."""
    write(textwrap.fill(visible(text), width(), initial_indent=start, subsequent_indent=" " * len(start)))


def write_end(notes: Iterable[str], outputs: dict[str, str]) -> None:
    """The end of a readable answer: notes, and the files that were written."""
    for text in notes:
        write_wrapped(text, "note: ")
    for what, path in outputs.items():
        write(f"{what}: {visible(path)}")


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
        texts = [cell if len(cell) <= w else f"{cell[: w - 1]}…" for cell, w in zip(row, widths, strict=True)]
        padded = [t.rjust(w) if j in right else t.ljust(w) for j, (t, w) in enumerate(zip(texts, widths, strict=True))]
        write("  ".join(padded).rstrip())


# -------------------------------------------------------------------------------------------------------------- progress


class ProgressBar:
    """A bar on stderr, if that is a terminal, rich is installed and ``quiet`` is not set; it is gone when all is done.

    Attributes
    ----------
    verbose : whether the estimator should tell how far it is, because there is no bar
    """

    def __init__(self, quiet: bool):
        self.shown: Any = None
        self.task: Any = None
        self.stage = ""
        self.verbose = False
        if quiet or not sys.stderr.isatty():
            return
        try:
            from rich import progress
            from rich.console import Console
        except ImportError:
            self.verbose = True
            return
        console = Console(stderr=True)
        if console.is_dumb_terminal:  # nothing can be overwritten there
            return
        self.shown = progress.Progress(
            progress.SpinnerColumn("line"),
            progress.TimeElapsedColumn(),
            progress.BarColumn(24),
            progress.TaskProgressColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> Self:
        if self.shown is not None:
            self.task = self.shown.add_task("opening", total=None)
            self.shown.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown is not None:
            self.shown.stop()

    def update(self, stage: str, text: str | None = None, share: float | None = None) -> None:
        """The work is in this stage, of which this share is done; ``text`` says more about it."""
        if self.shown is None or stage == "done":
            return
        (task,) = self.shown.tasks
        task.total = None if share is None else 1.0
        # A bar that is full stops its clock, and there may be more to come.
        self.shown.update(self.task, description=visible(text or stage), completed=min(share or 0.0, 0.999))
        if stage != self.stage:
            self.stage = stage
            self.shown.refresh()

    def on_read(self, done: float, total: float | None) -> None:
        """So far this many bytes of the file are read."""
        of = "" if total is None else f" of {readable_size(total)}"
        self.update("reading", f"reading, {readable_size(done)}{of}", done / total if total else None)

    def listening(self) -> AbstractContextManager[None]:
        """Within, fits tell the bar how far they are, if there is one."""
        from mosaic.estimators import listening

        return nullcontext() if self.shown is None else listening(self.update)
