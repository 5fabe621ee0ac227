"""Errors, as a person and as a program reads them, and the exit code of each kind."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mosaic.cli._first_line import visible
from mosaic.cli._option_names import in_options
from mosaic.cli._parser import UsageError
from mosaic.cli._signals import Ended, leave, say
from mosaic.exceptions import PYTHON, InvalidInputError, MemoryBudgetError, MissingDependencyError, MosaicError, Wording

#: Kinds of faults, and exit codes.
CODES = {"unexpected": 1, "usage": 2, "input": 3, "output": 4, "memory": 5, "missing": 6, "interrupted": 130}
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class OutputError(MosaicError):
    """A file that was asked for cannot be written."""

    def __init__(self, file: str, fault: str, remedy: str | None = None):
        super().__init__(fault, remedy)
        self.file = file

    def message(self, wording: Wording = PYTHON) -> str:
        """Which file, and the other parts."""
        return f"{self.file}: {super().message(wording)}"


class DataError(InvalidInputError):
    """The file can be read, but what is in it cannot be used."""

    def __init__(self, file: str, fault: str):
        super().__init__(fault)
        self.file = file

    def message(self, wording: Wording = PYTHON) -> str:
        """Which file, and the other parts."""
        return f"{self.file}: {super().message(wording)}"


@dataclass(frozen=True)
class Fault:
    """What went wrong: its kind, all of it in words and, where that is known, file, place in it, fault and remedy."""

    kind: str
    message: str
    file: str | None = None
    where: str | None = None
    fault: str | None = None
    remedy: str | None = None
    exit_code: int = 1

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """What an exception says."""
        kind = kind_of(error)
        code = getattr(error, "code", CODES[kind]) if isinstance(error, Ended) else CODES[kind]
        parts = {name: getattr(error, name, None) for name in ("file", "where", "fault", "remedy")}
        told = {name: None if value is None else str(value) for name, value in parts.items()}
        return cls(kind, _message(error, kind), **told, exit_code=code)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` gives it."""
        return {"schema": "mosaic/error/1", "error": vars(self)}


def kind_of(error: BaseException) -> str:
    """The kind of a fault."""
    if isinstance(error, KeyboardInterrupt | Ended):
        return "interrupted"
    if isinstance(error, OutputError) or (isinstance(error, OSError) and error.errno in DISK_FULL):
        return "output"
    if isinstance(error, MemoryError):  # ours among them
        return "memory"
    if isinstance(error, MissingDependencyError) or _is_optional(error):
        return "missing"
    if isinstance(error, DataError) or _is_file_fault(error):
        return "input"
    return "usage" if isinstance(error, UsageError | InvalidInputError) else "unexpected"


def _is_optional(error: BaseException) -> bool:
    """Whether a library of others is not there."""
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    return name.partition(".")[0] not in ("", "mosaic")


def _is_file_fault(error: BaseException) -> bool:
    """Whether reading has failed; where nothing was opened, nothing was read."""
    files = sys.modules.get("mosaic.data")
    return files is not None and isinstance(error, files.FileFault)


def _message(error: BaseException, kind: str) -> str:
    if kind == "interrupted":
        ended = isinstance(error, Ended)
        name = f" by {signal.Signals(error.args[0]).name}" if ended else ""
        return f"interrupted{name}; no half-written file is left"
    if isinstance(error, MemoryError) and not isinstance(error, MemoryBudgetError):
        return f"the machine has no more memory ({error or 'it did not say how much was asked for'}). Lower --memory-budget"
    if isinstance(error, ModuleNotFoundError) and not isinstance(error, MissingDependencyError) and kind == "missing":
        return f"{error.name} is not installed: pip install 'mosaic-select[cli]'"
    if kind == "output" and isinstance(error, OSError):
        return f"writing has failed: {error.strerror or error}. Make room, or write elsewhere; TMPDIR is for what is temporary"
    if kind == "unexpected":
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return f"a fault of ours, {what}. With --debug the traceback is shown; please report it"
    return error.message(OPTIONS) if isinstance(error, MosaicError) else str(error)


def _as_option(name: str, value: str | None) -> str:
    option = "--" + name.replace("_", "-")
    return option if value in (None, "True") else f"{option} {value.strip(chr(39))}"


OPTIONS = Wording(_as_option, PYTHON.row)


def answer_fault(error: BaseException, args: Namespace | None, words: list[str]) -> int:
    """Say what went wrong, on stderr or as JSON on stdout, and return the exit code."""
    found = Fault.of(error)
    if os.environ.get("MOSAIC_DEBUG", "0") not in ("", "0") or (args.debug if args is not None else "--debug" in words):
        say("".join(traceback.format_exception(error)).rstrip())
    if args.json if args is not None else "--json" in words:
        from mosaic.cli._output import write_json

        try:
            write_json(found.to_json())
            return found.exit_code
        except BrokenPipeError:
            leave(sys.stdout)
            return found.exit_code
        except OSError:  # a full disk, say; then in words
            leave(sys.stdout)
    who = error.command if isinstance(error, UsageError) else "mosaic"
    usage = error.usage if isinstance(error, UsageError) else ""
    message = "\n".join(visible(line) for line in found.message.splitlines())
    end = "" if message.endswith((".", "?", "!")) else "."
    start = f"{who}: " if found.kind == "interrupted" else f"{who}: error: "
    say(f"{usage}{start}{message}{end}")
    try:
        sys.stdout.flush()
    except OSError:
        leave(sys.stdout)
    return found.exit_code


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Within, whatever goes wrong with a file is about the output."""
    try:
        yield
    except (InvalidInputError, OSError) as error:
        if isinstance(error, MissingDependencyError | MemoryError | BrokenPipeError | OutputError):
            raise
        if isinstance(error, OSError):
            remedy = "Make room, or write elsewhere." if error.errno in DISK_FULL else "Write to another place."
            raise OutputError(path, f"it cannot be written: {error.strerror or error}.", remedy) from error
        raise OutputError(path, error.fault, error.remedy) from error


@contextmanager
def using(path: str, called: Callable[[int], str]) -> Iterator[None]:
    """Within, a complaint about X is one about the file, parameters are options, and rows are ``called`` by their names."""
    try:
        yield
    except (InvalidInputError, MemoryBudgetError) as error:
        if hasattr(error, "file"):  # reading has failed, which has words of its own
            raise
        text = in_options(str(error))
        if text.startswith("--must-include"):
            text = re.sub(r"\brow (\d+)", lambda row: called(int(row[1])), text)
        if text.startswith("X ") and kind_of(error) == "usage":
            raise DataError(path, text) from error
        error.fault, error.remedy, error.parameter, error.value = text, None, None, None
        raise
