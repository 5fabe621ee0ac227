"""Errors as text and as JSON, and the exit code of each kind."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from mosaic.cli.options import in_options
from mosaic.cli.parser import UsageError
from mosaic.cli.terminal import discard_output, say, visible, write_answer
from mosaic.exceptions import PYTHON, InvalidInputError, MissingDependencyError, MosaicError, NotWrittenError, Wording

FaultKind: TypeAlias = Literal["unexpected", "usage", "input", "output", "memory", "missing", "interrupted"]
#: Exit codes by kind of fault.
CODES: dict[FaultKind, int] = {
    "unexpected": 1, "usage": 2, "input": 3, "output": 4, "memory": 5, "missing": 6, "interrupted": 130,
}  # fmt: skip
#: Letters of the longest message.
LONGEST_MESSAGE = 1500
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Fault:
    """What went wrong."""

    kind: Annotated[FaultKind, "each kind has its exit code"]
    message: Annotated[str, "the whole message"]
    parameter: Annotated[str | None, "option that caused the error"]
    value: Annotated[str | None, "value of the option"]
    fault: Annotated[str | None, "what is wrong"]
    remedy: Annotated[str | None, "what to do"]
    file: Annotated[str | None, "file that caused the error"]
    where: Annotated[str | None, "line or column in the file"]
    exit_code: Annotated[int, "1 unexpected, 2 usage, 3 input, 4 output, 5 memory, 6 missing library, 128 + number of the signal"]


@dataclass(frozen=True)
class ErrorAnswer:
    """The answer of a command that has failed."""

    error: Fault


class OutputError(MosaicError):
    """An output file cannot be written."""

    def __init__(self, file: str, fault: str, remedy: str | None = None):
        super().__init__(fault, remedy)
        self.file = file

    def message(self, wording: Wording = PYTHON) -> str:
        return f"{self.file}: {super().message(wording)}"


class RefusedError(Exception):
    """Ends a command. It holds the message of an error, written while the file was open and its rows had names."""

    def __init__(self, fault: Fault):
        super().__init__(fault.message)
        self.fault = fault


def command_line(file: str | None = None, called: Callable[[int], str] = PYTHON.row) -> Wording:
    """The wording of the command line: parameters are options, X is the file, and ``called`` names rows."""
    return Wording(lambda name, value: file if name == "X" and file is not None else in_options(name, value), called)


def fault_of(error: BaseException, wording: Wording | None = None, file: str | None = None) -> Fault:
    """The parts of an exception in the wording of the command line; ``file`` is the input file."""
    if isinstance(error, RefusedError):
        return error.fault
    wording = wording or command_line(file)
    kind, parts = _kind_of(error), vars(error) if isinstance(error, MosaicError) else {}
    told = {name: None if value is None else str(value) for name, value in parts.items()}
    parameter, about_data = told.get("parameter"), told.get("parameter") == "X"
    fault, remedy = (None if told.get(name) is None else wording(str(told[name])) for name in ("fault", "remedy"))
    return Fault(
        kind=kind,
        message=_message(error, kind, wording),
        parameter=None if parameter is None or about_data else wording.parameter(parameter, None),
        value=told.get("value"),
        fault=fault,
        remedy=remedy,
        file=file if about_data else told.get("file"),
        where=told.get("where"),
        exit_code=int(error.code or 1) if isinstance(error, SystemExit) else CODES[kind],
    )


def _kind_of(error: BaseException) -> FaultKind:
    if isinstance(error, KeyboardInterrupt | SystemExit):  # the latter was raised by a signal
        return "interrupted"
    if isinstance(error, OutputError | NotWrittenError) or (isinstance(error, OSError) and error.errno in DISK_FULL):
        return "output"
    if isinstance(error, MemoryError):  # MemoryBudgetError is one
        return "memory"
    module = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if isinstance(error, MissingDependencyError) or module.partition(".")[0] not in ("", "mosaic"):
        return "missing"
    if isinstance(error, InvalidInputError):
        return "input" if hasattr(error, "file") or error.parameter == "X" else "usage"
    return "usage" if isinstance(error, UsageError) else "unexpected"


def _message(error: BaseException, kind: FaultKind, wording: Wording) -> str:
    if isinstance(error, MosaicError):
        return error.message(wording)
    if kind == "interrupted":
        by = f" by {signal.Signals(int(error.code or 0) - 128).name}" if isinstance(error, SystemExit) else ""
        return f"interrupted{by}; no half-written file is left"
    if kind == "memory":
        said = f" ({error})" if str(error) else ""
        return f"the machine has no more memory{said}. Lower --memory-budget, or take fewer rows or columns"
    if isinstance(error, ModuleNotFoundError) and kind == "missing":
        return f"{error.name} is not installed: pip install 'mosaic-select[cli]'"
    if isinstance(error, OSError) and kind == "output":
        return f"writing has failed: {error.strerror or error}. Make room, or write elsewhere; TMPDIR is for temporary files"
    if kind == "unexpected":
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return f"a fault of ours, {what}. With --debug the traceback is shown; please report it"
    return str(error)


def answer_fault(error: BaseException, args: Namespace | None, words: list[str]) -> int:
    """Say what went wrong, on stderr or as JSON on stdout, and return the exit code."""
    found = fault_of(error, file=getattr(args, "file", None))
    if os.environ.get("MOSAIC_DEBUG", "0") not in ("", "0") or (args.debug if args is not None else "--debug" in words):
        say("".join(traceback.format_exception(error)).rstrip())
    if args.json if args is not None else "--json" in words:
        try:
            write_answer("error", ErrorAnswer(found))
            return found.exit_code
        except OSError as broken:  # such as a full disk; then write text
            discard_output(sys.stdout)
            if isinstance(broken, BrokenPipeError):
                return found.exit_code
    command, usage = (error.command, error.usage) if isinstance(error, UsageError) else ("mosaic", "")
    message = "\n".join(visible(line) for line in found.message.splitlines())
    if len(message) > LONGEST_MESSAGE:  # its beginning says what is wrong, its end what to do
        half = LONGEST_MESSAGE // 2 - 2
        message = f"{message[:half]} … {message[-half:]}"
    end = "" if message.endswith((".", "?", "!")) else "."
    say(f"{usage}{command}: {'' if found.kind == 'interrupted' else 'error: '}{message}{end}")
    try:
        sys.stdout.flush()
    except OSError:
        discard_output(sys.stdout)
    return found.exit_code


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Context in which errors about a file become errors about this output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except InvalidInputError as error:
        if not hasattr(error, "file"):
            raise
        raise OutputError(path, error.fault, error.remedy) from error
    except OSError as error:
        remedy = "Make room, or write elsewhere." if error.errno in DISK_FULL else "Write to another place."
        raise OutputError(path, f"it cannot be written: {error.strerror or error}", remedy) from error
