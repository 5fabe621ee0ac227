"""Files out: under a temporary name first, renamed when all is written, so that nobody ever sees half a file."""

from __future__ import annotations

import io
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

from mosaic.engines._reading import library
from mosaic.io._faults import FileFault

#: Endings that rows are written with, and what they are called.
WRITABLE = {
    ".csv": "CSV",
    ".tsv": "tab-separated",
    ".parquet": "Parquet",
    ".feather": "Feather",
    ".arrow": "Arrow",
    ".json": "JSON",
    ".jsonl": "JSON lines",
}
REPLACE = "Use --force (in Python force=True) to replace it, or name another file."


def write_rows(path: str | PathLike[str], table: Any, *, force: bool = False) -> None:
    """Write a table of rows, in the way that the ending says.

    Columns keep their types. Columns of lists, such as embeddings, are left out of .csv and .tsv files, which cannot hold
    them.

    Parameters
    ----------
    path : ends in .csv, .tsv, .parquet, .feather, .arrow, .json (a list of records) or .jsonl
    table : ``pyarrow.Table``
    force : replace what is there

    Raises
    ------
    FileFault
        if the file exists and ``force`` is not set, its folder is missing or closed, or the ending says nothing.
    """
    target = Path(path)
    check_output(target, force, rows=True)
    write = _writer(target)
    with replacing(target, force=force) as temporary:
        write(table, temporary)


def csv_bytes(table: Any, delimiter: str = ",") -> bytes:
    r"""A table as CSV; strings are quoted where one of them needs it. Columns of lists are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> csv_bytes(pa.table({"name": ["Ada", "Max"], "age": [36, 41]}))
    b'name,age\nAda,36\nMax,41\n'
    """
    pa, csv = library("pyarrow", "CSV"), library("pyarrow.csv", "CSV")
    flat = table.select([i for i, field in enumerate(table.schema) if not _is_nested(field.type)])
    flat = pa.table([_plain(column) for column in flat.columns], names=flat.column_names) if flat.num_columns else flat
    stream = io.BytesIO()
    # A lone empty cell without quotes would be an empty line, which readers skip.
    for style in ("none", "needed") if flat.num_columns > 1 else ("needed",):
        stream = io.BytesIO(_header(flat.column_names, delimiter))
        stream.seek(0, io.SEEK_END)
        options = csv.WriteOptions(delimiter=delimiter, quoting_style=style, include_header=False)
        try:
            csv.write_csv(flat, stream, options)
            break
        except pa.ArrowInvalid:
            if style == "needed":
                raise
    return stream.getvalue()


def check_output(path: str | PathLike[str], force: bool = False, *, rows: bool = False) -> None:
    """Refuse, before the long work, an output that could not be written after it.

    Parameters
    ----------
    path : of rows (see ``write_rows``) or of an HTML page
    force : replace what is there
    rows : rows will be written to it, so that it may not be a page

    Raises
    ------
    FileFault
        if it exists and ``force`` is not set, if its folder is missing or closed, or if its ending does not say how.
    """
    target = Path(path)
    if target.is_dir():
        raise FileFault(target, "is a folder", f"Name a file in it, for example {target / 'picks.csv'}.")
    if target.exists() and not force:
        raise FileFault(target, "exists already", REPLACE)
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileFault(target, f"its folder {folder} does not exist", f"Make it first: mkdir -p '{folder}'")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileFault(target, f"its folder {folder} may not be written to by you", "Name a file in another folder.")
    if target.exists() and not os.access(target, os.W_OK):
        raise FileFault(target, "may not be written to by you", f"Use: chmod u+w '{target}', or name another file.")
    _check_ending(target)
    if rows:
        _writer(target)


@contextmanager
def replacing(path: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A temporary name in the same folder, which becomes the file once the block is left without an error.

    What was there before stays as it is until then, and for good if anything goes wrong, be it Ctrl-C or a power cut. A
    symbolic link stays one; the file that it names is replaced. The new file has the rights of the old one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "picks.txt")) as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     Path(folder, "picks.txt").read_text()
    'all of it'
    """
    target = Path(path).resolve()
    if target.exists() and not force:
        raise FileFault(path, "exists already", REPLACE)
    # The ending is kept, since some writers look at it.
    temporary = target.with_name(f".{target.stem[:100]}.{secrets.token_hex(4)}.part{target.suffix}")
    with _ending_on_signal():
        try:
            # Opened here, so that a folder that is closed or full is known before anything is written to it.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            yield temporary
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o7777)
            _sync(temporary)
            if target.exists() and not force:  # somebody else was quicker
                raise FileFault(path, "exists already", REPLACE)
            os.replace(temporary, target)
            _sync(target.parent)
        except FileFault:
            raise
        except OSError as error:
            if error.filename is not None and Path(str(error.filename)) not in (temporary, target):
                raise
            raise FileFault(
                path, f"cannot be written ({error.strerror or error})", "Free some space, or name a file elsewhere."
            ) from error
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _ending_on_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP leave the block as Ctrl-C does, by an exception, so that temporary files are removed."""
    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Handlers of others, and signals that are ignored (nohup), are left alone.
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _sync(path: Path) -> None:
    """What is written reaches the disk before it gets its name; folders cannot be synced on every system."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        os.close(handle)


def _check_ending(target: Path) -> None:
    ending = target.suffix.lower()
    if ending in (".npy", ".npz"):
        raise FileFault(
            target,
            f"{ending} files hold numbers only; ids and other columns would be lost",
            f"Name a file that ends in {', '.join(WRITABLE)}.",
        )
    if ending not in (*WRITABLE, ".html", ".htm"):
        said = (
            f"the ending {target.suffix!r} does not say how" if ending else "a name without an ending does not say how"
        )
        raise FileFault(target, f"{said} to write it", f"Name a file that ends in {', '.join(WRITABLE)} or .html.")


def _writer(target: Path) -> Callable[[Any, Path], None]:
    ending = target.suffix.lower()
    if ending not in WRITABLE:
        raise FileFault(
            target, f"rows are not written to {ending} files", f"Name a file that ends in {', '.join(WRITABLE)}."
        )
    if ending in (".csv", ".tsv"):
        delimiter = "," if ending == ".csv" else "\t"
        return lambda table, path: _put(path, csv_bytes(table, delimiter))
    if ending == ".parquet":
        return lambda table, path: library("pyarrow.parquet", target).write_table(table, path)
    if ending in (".feather", ".arrow"):
        return lambda table, path: library("pyarrow.feather", target).write_feather(table, str(path))
    return lambda table, path: _put(path, _json(table, ending == ".jsonl"))


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _json(table: Any, by_lines: bool) -> bytes:
    import json

    records = [
        json.dumps({key: _json_value(value) for key, value in record.items()}, ensure_ascii=False, allow_nan=False)
        for record in table.to_pylist()
    ]
    text = "".join(record + "\n" for record in records) if by_lines else "[\n" + ",\n".join(records) + "\n]\n"
    return text.encode()


def _json_value(value: Any) -> Any:
    """What JSON can hold: NaN and infinite become null, dates and other things their text."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _is_nested(kind: Any) -> bool:
    types = library("pyarrow.types", "CSV")
    return bool(types.is_nested(kind))


def _plain(column: Any) -> Any:
    """Categories as their values, since CSV has none."""
    types = library("pyarrow.types", "CSV")
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _header(names: list[str], delimiter: str) -> bytes:
    """The first line, quoted where needed."""
    import csv

    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
    return line.getvalue().encode()
