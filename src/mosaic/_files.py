"""Functions that all modules for files share: optional packages, names and sizes in messages, JSON and HTML, signals.

It imports the standard library only, because the command line imports it before it prints its first line.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from mosaic.exceptions import MissingDependencyError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Signals that ask a process to end.
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))
#: Number of names that a message lists at most.
LISTED = 20


def library(name: str, where: object) -> Any:
    """A module of an optional package.

    Parameters
    ----------
    name : name of the module, such as ``"pyarrow.parquet"``
    where : file or task that needs the module, for the message

    Raises
    ------
    MissingDependencyError
        if the package is not installed. The message says how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("PIL", "pillow").replace("_", "-")  # the name that pip knows
        raise MissingDependencyError(
            f"{where} is read with {package}, which is not installed", f"Use: pip install {package}"
        ) from error


class Library:
    """A module of an optional package, imported when one of its names is first used.

    Examples
    --------
    >>> Library("json").loads("[1, 2]")
    [1, 2]
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # somebody looks at the object, not at the package
            raise AttributeError(attribute)
        found = getattr(library(self._name, "The data"), attribute)
        setattr(self, attribute, found)  # tables of many columns ask for it again and again
        return found


def listed(names: list[str]) -> str:
    """Names for a message, at most 20 of them.

    Examples
    --------
    >>> listed(["age", "height"])
    'age, height'
    """
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]], most: int | None = None) -> str:
    """A table in HTML, for notebooks: cells are escaped, colours are those of the page. Empty without rows.

    Parameters
    ----------
    head : titles of the columns
    rows : cells
    most : largest number of rows that are shown

    Examples
    --------
    >>> html_table(["row"], [["<b>"], ["c"]], most=1).count("<tr>"), "&lt;b&gt;" in html_table(["row"], [["<b>"]])
    (3, True)
    """
    if not rows:
        return ""
    shown: list[Sequence[object]] = list(rows[:most])
    if len(shown) < len(rows):
        shown.append(["", f"and {len(rows) - len(shown):,} more"][-len(head) :])
    cell = 'style="text-align:left;padding:2px 10px 2px 0;vertical-align:top"'
    lines = "".join(f"<tr>{''.join(f'<td {cell}>{escape(str(c))}</td>' for c in row)}</tr>" for row in shown)
    titles = "".join(f'<th scope="col" {cell}>{escape(name)}</th>' for name in head)
    return f'<table style="border-collapse:collapse"><tr>{titles}</tr>{lines}</table>'


def html_card(title: str, *parts: str, text: Sequence[str] = ()) -> str:
    """A small block for notebooks: a title, sentences, and parts in HTML side by side.

    Examples
    --------
    >>> html_card("5 > 4", text=["So it is."]).count("<p")
    2
    """
    head = f'<p style="margin:0 0 6px;font-size:115%;font-weight:600">{escape(title)}</p>'
    said = "".join(f'<p style="margin:0 0 4px;max-width:60em">{escape(sentence)}</p>' for sentence in text)
    inside = "".join(part for part in parts if part)
    return (
        f'<div class="mosaic-card" style="margin:4px 0 8px">{head}{said}'
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{inside}</div></div>'
    )


def printable(text: str) -> str:
    r"""The text with characters that would move the cursor, colour the terminal or turn the writing round written out.

    Examples
    --------
    >>> print(printable("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


#: What JSON may hold as it is, and terminals and browsers take for commands or line breaks.
_CONTROLS = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def json_text(value: Any, **settings: Any) -> str:
    r"""JSON in which letters are written as they are, and all control characters, those of C1 among them, are escaped.

    Examples
    --------
    >>> print(json_text({"é": "\x9b31m"}))
    {"é": "\u009b31m"}
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, **settings).translate(_CONTROLS)


def readable_size(size: float) -> str:
    """A number of bytes with a unit, the largest in which it is at least 1.

    Examples
    --------
    >>> readable_size(80_000_128), readable_size(1536), readable_size(17)
    ('76 MiB', '1.5 KiB', '17 bytes')
    """
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = 0
    while size >= 1024 and power < len(units) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.0f} {units[power]}" if size >= 10 or power == 0 else f"{size:.1f} {units[power]}"


def jsonable(value: Any) -> Any:
    """The value as JSON types: non-finite numbers become null; dates and other objects become text.

    Examples
    --------
    >>> from datetime import date
    >>> jsonable({"a": float("nan"), 1: (date(2020, 2, 3), b"x", 1.5), "kernel": jsonable})
    {'a': None, '1': ['2020-02-03', 'x', 1.5], 'kernel': 'mosaic._files.jsonable'}
    """
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # NumPy's numbers and arrays
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(entry) for entry in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "__qualname__"):  # functions and classes
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "as_integer_ratio"):  # float, Decimal, Fraction
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    if hasattr(value, "total_seconds"):  # a time span
        return value.total_seconds()
    # The standard representation holds an address, which differs from run to run.
    return type(value).__qualname__ if " at 0x" in repr(value) else str(value)


_supervisor: int | None = None


def watched_by(pipe: int) -> None:
    """Tell a supervisor at the other end of a pipe what happens here (``mosaic.cli.supervision``)."""
    global _supervisor
    _supervisor = pipe


def end_if_watched(code: int) -> None:
    """End this process at once if a supervisor watches it, who removes what is left. Taking Python down may last a second."""
    if _supervisor is not None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def announce(path: object) -> None:
    """Tell the supervisor, if there is one, of a temporary file or folder, which it removes after a crash."""
    _tell(b"+" + os.fsencode(str(path)))


def _tell(said: bytes) -> None:
    if _supervisor is not None:
        with suppress(OSError):
            os.write(_supervisor, said + b"\0")


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Context in which SIGTERM and SIGHUP raise SystemExit(128 + number), so that temporary files are removed.

    SIGINT raises KeyboardInterrupt, as ever; a supervisor is told of all three. Handlers set elsewhere and ignored signals
    (nohup ignores SIGHUP) stay. Outside the main thread this does nothing. A signal that comes again is ignored as long as the
    exception of the first is on its way; it is raised anew where a library has swallowed that. What else is raised after a
    signal is its consequence, as the ImportError of a module that was interrupted while it was loaded.
    """
    raised: list[BaseException] = []

    def leave(number: int, frame: FrameType | None) -> None:
        _tell(b"!")
        if not raised or not _is_under_way(raised[-1]):
            raised.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
            raise raised[-1]

    ours: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        plain = (signal.SIG_DFL, signal.default_int_handler)
        ours = {number: handler for number, handler in handlers.items() if handler in plain}
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    except Exception as error:
        if not raised:
            raise
        raise raised[-1] from error
    finally:
        for number, handler in ours.items():
            # A supervisor sends its signal again until this process ends, which must find time to say why it does.
            signal.signal(number, signal.SIG_IGN if raised and _supervisor is not None else handler)


def _is_under_way(error: BaseException) -> bool:
    """Whether this exception is being handled, or others are while it is."""
    handled = sys.exception()
    while handled is not None and handled is not error:
        handled = handled.__context__
    return handled is not None


@contextmanager
def signals_wait() -> Iterator[None]:
    """Context in which SIGTERM, SIGHUP and SIGINT wait until it is left; for a few short steps that belong together."""
    arrived: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        _tell(b"!")
        arrived.append(number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in SIGNALS}
    answered = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in answered:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in answered.items():
            signal.signal(number, handler)
        for number in arrived[:1]:
            signal.raise_signal(number)


def hidden_beside(target: Path, kind: str) -> Path:
    """A name in the folder of a file that shows whose it is. It is short, since the file's may be as long as names can be."""
    return target.with_name(f".mosaic-{zlib.crc32(os.fsencode(target.name)):08x}{kind}")


class Temporary:
    """A new file beside another one, which takes its place when it is complete.

    It is locked as long as its process lives. What a killed process has left for the same file is not locked, and is removed.

    Parameters
    ----------
    target : the file whose place it will take
    ending : of its name; some libraries look at it
    """

    def __init__(self, target: Path, ending: str = ""):
        self.target, self._lock, self._is_there = target, None, True  # type: tuple[Path, int | None, bool]
        try:
            with signals_wait():
                for number in count():
                    self.path = hidden_beside(target, f"-{number}.part{ending}")
                    if self._begin():
                        break
                announce(self.path)
        except (KeyboardInterrupt, SystemExit):  # a signal that has waited
            self.close()
            raise

    def _begin(self) -> bool:
        """Make and lock the file; False if another process uses this name."""
        try:
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        except FileExistsError:
            return remove_if_left(self.path) and self._begin()
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = handle
        except BlockingIOError:  # another process takes it for one that was left
            return False
        except OSError:  # a file system without locks
            pass
        finally:
            if self._lock is None:
                os.close(handle)
        return self._lock is None or _is_at(self._lock, self.path)

    def put_in_place(self, force: bool = True) -> None:
        """Give it the name of the target. A file that is there is replaced with ``force`` only."""
        if not force:
            try:
                os.link(self.path, self.target)  # unlike renaming, it refuses to replace
                return
            except FileExistsError:
                raise
            except OSError:  # file systems without links
                if self.target.exists():
                    raise FileExistsError(self.target) from None
        os.replace(self.path, self.target)
        self._is_there = False

    def close(self) -> None:
        """Remove it unless it has become the target."""
        if self._is_there:
            self.path.unlink(missing_ok=True)
            self._is_there = False
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_if_left(path: Path) -> bool:
    """Remove the file of a process that is no more; False if it is in use."""
    if fcntl is None:
        return False
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(handle, path):
            path.unlink(missing_ok=True)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
