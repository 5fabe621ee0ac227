"""Errors as one line of text or as JSON, and the exit code of each kind."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from mosaic.cli.options import in_options
from mosaic.cli.parser import UsageError
from mosaic.cli.terminal import discard_output, say, visible, write_json
from mosaic.exceptions import PYTHON, InvalidInputError, MissingDependencyError, MosaicError, NotWrittenError, Wording

#: Exit codes by kind of fault.
CODES = {"unexpected": 1, "usage": 2, "input": 3, "output": 4, "memory": 5, "missing": 6, "interrupted": 130}


def command_line(file: str | None = None, called: Callable[[int], str] = PYTHON.row) -> Wording:
    """The wording of the command line: parameters are options, X is the file, and ``called`` names rows."""
    return Wording(lambda name, value: file if name == "X" and file is not None else in_options(name, value), called)


def fault_of(error: BaseException, wording: Wording, file: str | None) -> dict[str, Any]:
    """The parts of an exception in the wording of the command line; ``file`` is the input file."""
    kind, message = _kind_and_message(error)
    parts = {name: getattr(error, name, None) for name in ("parameter", "value", "fault", "remedy", "file", "where")}
    if isinstance(error, MosaicError):
        message = error.message(wording)
        parts |= {name: wording(str(parts[name])) for name in ("fault", "remedy") if parts[name] is not None}
    if parts["parameter"] == "X":
        parts |= {"parameter": None, "file": file}
    elif parts["parameter"] is not None:
        parts["parameter"] = wording.parameter(parts["parameter"], None)
    code = int(error.code or 1) if isinstance(error, SystemExit) else CODES[kind]
    return {"kind": kind, "message": message, **parts, "exit_code": code}


def _kind_and_message(error: BaseException) -> tuple[str, str]:
    """The kind of a fault, and what is said about it; errors of the library say it themselves."""
    lacks = error.name if isinstance(error, ModuleNotFoundError) and error.name else "mosaic"
    match error:
        case SystemExit():  # raised by a signal
            name = signal.Signals(int(error.code or 0) - 128).name
            return "interrupted", f"interrupted by {name}; no half-written file is left"
        case KeyboardInterrupt():
            return "interrupted", "interrupted; no half-written file is left"
        case UsageError():
            return "usage", str(error)
        case MissingDependencyError():
            return "missing", ""
        case NotWrittenError():
            return "output", ""
        case MemoryError():  # MemoryBudgetError is one
            said = f" ({error})" if str(error) else ""
            return "memory", f"the machine has no more memory{said}. Lower --memory-budget, or take fewer rows or columns"
        case InvalidInputError():
            return "input" if hasattr(error, "file") or error.parameter == "X" else "usage", ""
        case OSError():  # reading has errors of its own
            room = "Make room, or write elsewhere; TMPDIR is for temporary files"
            return "output", f"{error.filename or 'writing'}: {error.strerror or error}. {room}"
        case ModuleNotFoundError() if lacks.partition(".")[0] != "mosaic":
            return "missing", f"{lacks} is not installed: pip install 'mosaic-select[cli]'"
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "unexpected", f"a fault of ours, {what}. With --debug the traceback is shown; please report it"


def answer_fault(error: BaseException, args: Namespace | None, words: list[str]) -> int:
    """Say what went wrong, on stderr or as JSON on stdout, and return the exit code."""
    file = getattr(args, "file", None)
    # An error while the file was open has been told with the names of its rows.
    found: dict[str, Any] = getattr(error, "told", None) or fault_of(error, command_line(file), file)
    code: int = found["exit_code"]
    if os.environ.get("MOSAIC_DEBUG", "0") not in ("", "0") or "--debug" in words:
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
    usage, command = (error.usage, error.command) if isinstance(error, UsageError) else ("", "mosaic")
    head = "" if found["kind"] == "interrupted" else "error: "
    say(f"{usage}{command}: {head}{message}{'' if message.endswith(('.', '?', '!')) else '.'}")
    return code
