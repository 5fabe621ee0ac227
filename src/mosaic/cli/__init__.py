"""The command line: ``mosaic select points.csv -k 50 -o picks.csv --report report.html``.

Only the standard library is imported before the first line is printed.
"""

from __future__ import annotations

import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from mosaic.cli.options import in_options
from mosaic.cli.parser import UsageError, parse
from mosaic.cli.terminal import BROKEN_PIPE, discard_output, first_line, say, visible, write_json
from mosaic.exceptions import (
    PYTHON,
    InvalidInputError,
    MissingDependencyError,
    MosaicError,
    NotWrittenError,
    Wording,
)

__all__ = ["main"]

#: Modules of commands that are not in ``mosaic.cli.commands``.
HOMES = {"columns": "files", "compare": "files", "dedup": "files", "completion": "completion"}
#: Exit codes by kind of fault.
CODES = {
    "unexpected": 1,
    "usage": 2,
    "input": 3,
    "output": 4,
    "memory": 5,
    "missing": 6,
    "interrupted": 130,
}


def main(argv: list[str] | None = None) -> int:
    """Run a command, by default that of the process, and return its exit code; ``mosaic --help`` lists commands and exit codes.

    Examples
    --------
    >>> main(["select", "no-such-file.csv", "--json"])  # doctest: +ELLIPSIS
    {"schema": "mosaic/error/1", "error": {"kind": "input", ...}}
    3
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = None
    code = 0
    if argv is None:  # the command itself, not a call within another program
        signal.signal(signal.SIGTERM, _end)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # characters that the terminal cannot show
    try:
        args = parse(words)
        if args is not None:
            first_line(args)
            home = HOMES.get(args.command, "commands")
            code = getattr(import_module(f"mosaic.cli.{home}"), f"run_{args.command}")(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        discard_output(sys.stdout)
        return BROKEN_PIPE
    except BaseException as error:
        return answer_fault(error, args, words)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as after Ctrl-C, so that temporary files are removed


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within, signals end the command at once: in some damaged files libhdf5 never lets go of the interpreter for ``_end``."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = handlers if handlers[signal.SIGTERM] is _end else {}
    try:
        for number in ours:
            if handlers[number] is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def command_line(file: str | None, called: Callable[[int], str] = PYTHON.row) -> Wording:
    """The wording of the command line: parameters are options, X is the file, and ``called`` names rows."""
    return Wording(
        lambda name, value: file if name == "X" and file is not None else in_options(name, value),
        called,
    )


def fault_of(error: BaseException, wording: Wording, file: str | None) -> dict[str, Any]:
    kind, message = _kind_and_message(error)
    parts = {
        name: getattr(error, name, None)
        for name in ("parameter", "value", "fault", "remedy", "file", "where")
    }
    if isinstance(error, MosaicError):
        message = error.message(wording)
        parts |= {
            name: wording(str(parts[name]))
            for name in ("fault", "remedy")
            if parts[name] is not None
        }
    if parts["parameter"] == "X":
        parts |= {"parameter": None, "file": file}
    elif parts["parameter"] is not None:
        parts["parameter"] = wording.parameter(parts["parameter"], None)
    code = int(error.code or 1) if isinstance(error, SystemExit) else CODES[kind]
    return {"kind": kind, "message": message, **parts, "exit_code": code}


def _kind_and_message(error: BaseException) -> tuple[str, str]:
    lacks = error.name if isinstance(error, ModuleNotFoundError) and error.name else "mosaic"
    match error:
        case SystemExit() | KeyboardInterrupt():  # the first is raised by a signal
            return "interrupted", "interrupted; no half-written file is left"
        case UsageError():
            return "usage", str(error)
        case MissingDependencyError() | NotWrittenError():
            return "output" if isinstance(error, NotWrittenError) else "missing", ""
        case MemoryError():  # MemoryBudgetError is one
            said = f" ({error})" if str(error) else ""
            return (
                "memory",
                f"the machine has no more memory{said}. Lower --memory-budget, or take fewer rows or columns",
            )
        case InvalidInputError():
            return "input" if hasattr(error, "file") or error.parameter == "X" else "usage", ""
        case OSError():  # reading has errors of its own
            room = "Make room, or write elsewhere; TMPDIR is for temporary files"
            return "output", f"{error.filename or 'writing'}: {error.strerror or error}. {room}"
        case ModuleNotFoundError() if lacks.partition(".")[0] != "mosaic":
            return "missing", f"{lacks} is not installed: pip install 'mosaic-select[cli]'"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "unexpected", f"a bug in MOSAIC: {what}. Please report it; --debug shows the traceback"


def answer_fault(error: BaseException, args: Namespace | None, words: list[str]) -> int:
    file = getattr(args, "file", None)
    # An error while the file was open has been told with the names of its rows.
    found: dict[str, Any] = getattr(error, "told", None) or fault_of(
        error, command_line(file), file
    )
    code: int = found["exit_code"]
    if "--debug" in words:
        say("".join(traceback.format_exception(error)).rstrip())
    try:
        if "--json" in words:
            write_json("error", {"error": found})
            return code
        sys.stdout.flush()
    except OSError:  # nobody reads it, or the disk is full; then write text
        discard_output(sys.stdout)
    message = "\n".join(visible(line) for line in found["message"].splitlines())
    if len(message) > 1500:  # its beginning says what is wrong, its end what to do
        message = f"{message[:750]} … {message[-750:]}"
    usage, command = (
        (error.usage, error.command) if isinstance(error, UsageError) else ("", "mosaic")
    )
    head = "" if found["kind"] == "interrupted" else "error: "
    say(f"{usage}{command}: {head}{message}{'' if message.endswith(('.', '?', '!')) else '.'}")
    return code
