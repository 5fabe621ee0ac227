"""Leaving politely: when somebody ends the command, and when nobody reads on."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

#: Exit codes of a command that was ended by a signal are 128 + its number.
BY_SIGNAL = 128
BROKEN_PIPE = BY_SIGNAL + 13


class Ended(BaseException):
    """Somebody asked the process to end; ``code`` is its exit code."""

    def __init__(self, number: int):
        super().__init__(number)
        self.code = BY_SIGNAL + number


def _raise(number: int, frame: FrameType | None) -> None:
    raise Ended(number)


@contextmanager
def ending_politely() -> Iterator[None]:
    """Within, a request to end unwinds the stack, so that temporary files are removed on the way."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return
    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # nohup ignores SIGHUP, and so do we then.
    before = {number: signal.getsignal(number) for number in wanted if signal.getsignal(number) == signal.SIG_DFL}
    for number in before:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def flush_or_leave(code: int, broken: bool = False) -> int:
    """Flush what was written; where nobody reads any more, leave without a word."""
    try:
        if not broken:
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        pass
    leave(sys.stdout)
    return BROKEN_PIPE


def say(text: str) -> None:
    """A line on stderr; where that cannot be written either, nothing more can be said."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        leave(sys.stderr)


def leave(stream: TextIO) -> None:
    """Let what is written to a broken stream go into nothing: the interpreter flushes once more when it ends."""
    with suppress(OSError, ValueError):  # a stream without a number, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
