"""Files for the tests of the command line, and ways to run it: here, in another process, on a terminal."""

import csv
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mosaic import datasets
from mosaic.cli import main

COLUMNS = 100


def write_points(folder: Path) -> None:
    """400 points, 8 of them gross outliers: with ids, kinds and weights as points.csv, bare as points.npy."""
    X = datasets.blobs_with_gross_outliers().X
    np.save(folder / "points.npy", X)
    with (folder / "points.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "x", "y", "kind_id", "note"])
        for i, (x, y) in enumerate(X.tolist()):
            writer.writerow([f"p{i}", x, y, "ab"[i % 2], f"é, {i}"])


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run(capsys, *words: object) -> Ran:
    """A command in this process."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    return Ran(code, *capsys.readouterr())


def run_on_terminal(capsys, monkeypatch, *words: object) -> Ran:
    """A command in this process, which takes what is captured for a terminal."""
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    return run(capsys, *words)


def environment(**more: str) -> dict[str, str]:
    """Of a command in another process."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm", **more}


def command(*words: object, options: Sequence[str] = ()) -> list[str]:
    """The words that start the command in another process."""
    return [sys.executable, *options, "-m", "mosaic", *(str(word) for word in words)]


def run_apart(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in another process."""
    done = subprocess.run(command(*words), env=environment(**more), capture_output=True, encoding="utf-8", check=False)
    assert "Traceback" not in done.stderr
    return done


@contextmanager
def default_signals() -> Iterator[None]:
    """Within, other processes start with SIGINT and SIGHUP as on a terminal, also where the tests run under nohup or by a
    script's ``&``, which ignore them, and whose children would too.
    """
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def in_terminal(words: list[str], folder: Path, **more: str) -> tuple[int, str]:
    """The exit code of a command that sees a terminal, and all that it writes."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    process = subprocess.Popen(words, cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as screen:  # the error says that the other side is closed
        while chunk := screen.read(1 << 16):
            seen += chunk
    return process.wait(60), seen.decode()
