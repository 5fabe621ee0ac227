"""A second process watches over a command: it ends within a second of a signal, and a crash of a library is told in words.

Python answers a signal between two of its own instructions. A library that computes for minutes, or for ever, makes it wait; a
library that crashes takes Python along. So the command does its work in a child process. The parent waits, passes signals on,
ends a child that does not answer them, removes its temporary files, and says what has happened. Where the system cannot fork,
there is one process, and none of this.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from types import FrameType

from mosaic import _files
from mosaic.exceptions import InvalidInputError, MosaicError

#: Seconds until a signal is passed on, if the child has not had it itself, as Ctrl-C does; and until a silent child is ended.
PASSED_ON, ENDED = 0.1, 0.4
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class LibraryCrashError(InvalidInputError):
    """A library has ended the process; the fault is that of the file."""

    def __init__(self, file: str, number: int):
        super().__init__(
            f"a library has crashed while it was read or computed with ({signal.Signals(number).name})",
            "It is damaged, or has changed meanwhile: copy or write it again. If it is sound, please report it.",
        )
        self.file = file

    def message(self, *wording: object) -> str:
        """The file, then the other parts."""
        return f"{self.file}: {super().message()}"


class KilledError(MosaicError, MemoryError):
    """The system has ended the process."""


def supervised(args: Namespace) -> int | None:
    """Go on in a child process, where it returns None; here return the exit code of the child once it has ended.

    Raises
    ------
    SystemExit, KeyboardInterrupt
        if a signal has ended it.
    LibraryCrashError, KilledError
        if it has crashed or was killed.
    """
    if not hasattr(os, "fork") or not hasattr(args, "file"):
        return None
    inward, outward = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent, child = os.getpid(), os.fork()
    if not child:
        os.close(inward)
        os.set_blocking(outward, False)
        _files.watched_by(outward)
        _die_with(parent)
        return None
    os.close(outward)
    os.set_blocking(inward, False)
    watch = _Watch(child, inward)
    code = watch.wait()
    if not 0 <= code < 128 or watch.signal is not None:
        watch.clean()
    if code >= 0:
        return code
    if watch.signal is not None or -code in {getattr(signal, name, None) for name in SIGNALS}:
        number = watch.signal or -code
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
    if -code == signal.SIGKILL:
        raise KilledError(
            "the system has ended the command, most likely because memory ran out", "Lower `memory_budget`."
        )
    raise LibraryCrashError(args.file, -code)


class _Watch:
    """Waits for the child, and answers signals meanwhile."""

    def __init__(self, child: int, pipe: int):
        self.child, self.pipe, self.signal = child, pipe, None  # type: tuple[int, int, int | None]
        self._told, self._passed_on = b"", False

    def wait(self) -> int:
        """The exit code of the child, negative if a signal has ended it."""
        known = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in known}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._later)
        for number in known:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, self._arrived)
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            signal.setitimer(signal.ITIMER_REAL, PASSED_ON)

    def _later(self, number: int, frame: FrameType | None) -> None:
        """The child gets the signal, and is ended if it does not answer; if it does, it gets the signal until it has ended.

        It may take its time, to save what it has. A library may have swallowed its answer, an exception.
        """
        self._listen()
        if self.signal is None:
            return
        has_answered = b"!\0" in self._told
        if self._passed_on or not has_answered:
            with suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL if self._passed_on and not has_answered else self.signal)
        self._passed_on = True
        signal.setitimer(signal.ITIMER_REAL, ENDED)

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            while said := os.read(self.pipe, 1 << 16):
                self._told += said

    def clean(self) -> None:
        """Remove temporary files and folders of a child that could not do so, and show the cursor again."""
        self._listen()
        for word in self._told.split(b"\0"):
            if word.startswith(b"+"):
                path = os.fsdecode(word[1:])
                shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else _files.remove_if_left(Path(path))
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\r\x1b[K")


def _die_with(parent: int) -> None:
    """On Linux the system ends the child when its parent is killed."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)
