"""Writing files: under a temporary name first, renamed when all is written, so that nobody ever sees half a file.

And a temporary folder for what does not fit into memory.
"""

from __future__ import annotations

import csv
import os
import secrets
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from mosaic import door
from mosaic.exceptions import NotWrittenError, SelectionWarning
from mosaic.rows.faults import FileFault
from mosaic.rows.roles import is_text, without_categories
from mosaic.text import Library, json_text

pa, pc, pq = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.parquet")
feather, types = Library("pyarrow.feather"), Library("pyarrow.types")

#: What writes a table of rows to a path, by the ending of its name.
WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    ".csv": lambda table, path: path.write_bytes(csv_bytes(table)),
    ".tsv": lambda table, path: path.write_bytes(csv_bytes(table, "\t")),
    ".parquet": lambda table, path: pq.write_table(table, path),
    ".feather": lambda table, path: feather.write_feather(table, str(path)),
    ".arrow": lambda table, path: feather.write_feather(table, str(path)),
    ".json": lambda table, path: path.write_bytes(_json_bytes(table, by_lines=False)),
    ".jsonl": lambda table, path: path.write_bytes(_json_bytes(table, by_lines=True)),
}
#: How texts begin that a spreadsheet computes. One of these characters alone is none.
COMPUTED = r"^[=+\-@\t\r](?s:.)"
SIGNED_NUMBER = r"^[-+]\d+[.,]?\d*([eE][-+]?\d+)?$"
MORE_ROOM = "Free some space, or point the environment variable TMPDIR to a larger disk."
REPLACE = "Use `force=True` to replace it, or name another file."


class OutputFault(FileFault, NotWrittenError):  # noqa: N818, as FileFault
    """A file cannot be written."""


def write_rows(path: str | PathLike[str], table: Any, *, force: bool = False, as_written: bool = True) -> list[str]:
    """Write a table of rows, in the way that the ending says, and return the names of the columns that were left out.

    Columns keep their types. Columns of lists, such as embeddings, are left out of .csv and .tsv files, which cannot hold
    them.

    Parameters
    ----------
    path : ends in .csv, .tsv, .parquet, .feather, .arrow, .json (a list of records) or .jsonl
    table : ``pyarrow.Table``
    force : replace what is there
    as_written : texts stay as they are, so that they are the same when they are read again. If False, as on the command line, an
        apostrophe is put in .csv and .tsv files before those that a spreadsheet would compute: they begin with ``=``, ``+``,
        ``-``, ``@``, a tab or a carriage return and are no numbers. A ``SelectionWarning`` says how many

    Raises
    ------
    FileFault
        if the file exists and ``force`` is not set, its folder is missing or closed, or the ending says nothing.
    """
    target = Path(path)
    check_output(target, force, rows=True)
    ending = target.suffix.lower()
    changed = 0
    if ending in (".csv", ".tsv") and not as_written:
        table, changed = escape_formulas(table)
    with replacing(target, force=force) as temporary:
        WRITERS[ending](table, temporary)
    if changed:
        cells = "1 cell begins" if changed == 1 else f"{changed:,} cells begin"
        warnings.warn(
            f"{cells} with =, +, - or @ in {target.name}, which a spreadsheet may compute; an apostrophe was put before. "
            "With `as_written=True` cells stay as they are.",
            SelectionWarning,
            stacklevel=2,
        )
    return _unwritable(table) if ending in (".csv", ".tsv") else []


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
        raise OutputFault(target, "is a folder", f"Name a file in it, for example {target / 'picks.csv'}.")
    if target.exists() and not force:
        raise OutputFault(target, "exists already", REPLACE)
    folder = _resolved(target).parent
    if not folder.is_dir():
        raise OutputFault(target, f"its folder {folder} does not exist", f"Make it first: mkdir -p '{folder}'")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputFault(target, f"its folder {folder} may not be written to by you", "Name a file in another folder.")
    if target.exists() and not os.access(target, os.W_OK):
        raise OutputFault(target, "may not be written to by you", f"Use: chmod u+w '{target}', or name another file.")
    ending, known = target.suffix.lower(), f"Name a file that ends in {', '.join(WRITERS)}"
    if ending in (".npy", ".npz"):
        raise OutputFault(target, f"{ending} files hold numbers only; ids and other columns would be lost", f"{known}.")
    if ending not in (*WRITERS, ".html", ".htm", ".mosaic"):
        said = f"the ending {target.suffix!r}" if ending else "a name without an ending"
        raise OutputFault(target, f"{said} does not say how to write it", f"{known} or .html.")
    if rows and ending not in WRITERS:
        raise OutputFault(target, f"rows are not written to {ending} files", f"{known}.")


@contextmanager
def replacing(path: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A temporary name in the same folder, which becomes the file once the block is left without an error.

    What was there before stays as it is until then, and for good if anything goes wrong, be it Ctrl-C or a full disk. A
    symbolic link stays one; the file that it names is replaced. The new file has the rights of the old one.
    """
    target = _resolved(Path(path))
    if target.exists() and not force:
        raise OutputFault(path, "exists already", REPLACE)
    try:
        with door.replacing(target) as temporary:
            yield temporary
            if target.exists() and not force:  # somebody else was quicker
                raise OutputFault(path, "exists already", REPLACE)
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o7777)
    except OSError as error:
        if isinstance(error, FileFault) or str(error.filename) not in ("None", str(temporary)):
            raise
        remedy = "Free some space, or name a file elsewhere."
        raise OutputFault(path, f"cannot be written ({error.strerror or error})", remedy) from error


def _resolved(path: Path) -> Path:
    """The file that a path leads to."""
    try:
        if path.is_symlink():
            path.stat()
    except FileNotFoundError:
        pass  # what a link names may be missing yet
    except OSError as error:
        fault = f"cannot be written ({error.strerror})"
        raise OutputFault(path, fault, "Remove the link, or name another file.") from error
    return path.resolve()


def escape_formulas(table: Any) -> tuple[Any, int]:
    """A table whose texts no spreadsheet computes, and how many were changed: an apostrophe is put before them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table, changed = escape_formulas(pa.table({"name": ["=1+1", "-", "-5", "Ada"], "age": [-1, 2, 3, 4]}))
    >>> table.column("name").to_pylist(), table.column("age").to_pylist(), changed
    (["'=1+1", '-', '-5', 'Ada'], [-1, 2, 3, 4], 1)
    """
    changed, names = 0, list(table.column_names)
    for i, kind in enumerate(table.schema.types):
        if names[i][:1] and names[i][0] in "=+-@\t\r":
            names[i], changed = "'" + names[i], changed + 1
        if not is_text(kind):
            continue
        cells = without_categories(table.column(i)).cast(pa.large_string())
        computed = pc.fill_null(pc.match_substring_regex(cells, COMPUTED), False)
        if pc.any(computed).as_py():
            computed = pc.and_(computed, pc.invert(pc.match_substring_regex(pc.fill_null(cells, ""), SIGNED_NUMBER)))
            changed += pc.sum(computed).as_py() or 0
            apostrophe, nothing = pa.scalar("'", cells.type), pa.scalar("", cells.type)
            marked = pc.binary_join_element_wise(apostrophe, cells, nothing)
            table = table.set_column(i, names[i], pc.if_else(computed, marked, cells))
    return table.rename_columns(names), changed


def csv_bytes(table: Any, delimiter: str = ",") -> bytes:
    r"""A table as CSV; cells are quoted where they need it. Columns of lists are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> csv_bytes(pa.table({"name": ["Ada", "Max"], "age": [36, 41]}))
    b'name,age\nAda,36\nMax,41\n'
    """
    left_out = _unwritable(table)
    flat = table.select([i for i, name in enumerate(table.column_names) if name not in left_out])
    empty = secrets.token_hex(16)  # stands for an empty text where that must be told from a missing one
    columns = []
    for column in flat.columns:
        cells = _as_text(column)
        if is_text(column.type) and column.null_count:
            cells = pc.if_else(pc.equal(cells, ""), empty, cells)
        columns.append(cells.to_pylist())
    lines = _Lines()
    writer = csv.writer(lines, delimiter=delimiter)
    writer.writerow(flat.column_names)
    writer.writerows(zip(*columns, strict=True))
    return "".join(lines).replace(empty, '""').encode()


class _Lines(list[str]):
    """Lines of CSV that end in a line feed; csv.writer quotes both kinds of line breaks only if lines end in both."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _unwritable(table: Any) -> list[str]:
    """Columns that CSV cannot hold: lists and other nested values."""
    return [field.name for field in table.schema if types.is_nested(field.type)]


def _as_text(column: Any) -> Any:
    """Values as text; bytes that are no text as hexadecimal digits."""
    column = without_categories(column)
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not isinstance(column.type, pa.BaseExtensionType):
            return column.cast(pa.large_string())
    values = (value.hex() if isinstance(value, bytes) else value for value in column.to_pylist())
    return pa.chunked_array([pa.array([None if value is None else str(value) for value in values], pa.large_string())])


def _json_bytes(table: Any, by_lines: bool) -> bytes:
    """A table as JSON: a list of records, or one record a line; dates that Python does not know as text."""
    try:
        rows = table.to_pylist()
    except (OverflowError, ValueError):
        for i, field in enumerate(table.schema):
            if types.is_temporal(field.type):
                table = table.set_column(i, field.name, _as_text(table.column(i)))
        rows = table.to_pylist()
    records = [json_text({key: _json_value(value) for key, value in record.items()}) for record in rows]
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


class Scratch:
    """A temporary folder in TMPDIR. ``close`` removes it; so do an error within its block and the end of Python.

    ``path`` is the file that the numbers come from, for messages; ``expected`` are the bytes that will be written.
    """

    def __init__(self, path: Path, expected: float):
        place = Path(tempfile.gettempdir())
        free = shutil.disk_usage(place).free
        if expected > 0.95 * free:
            need = f"about {expected / 1e9:.1f} GB of numbers must be laid out on disk"
            fault = f"{need}; {place} has {free / 1e9:.1f} GB left"
            raise FileFault(path, fault, f"{MORE_ROOM} Or convert it to .parquet or .npy.")
        self.path, self.folder = path, Path(tempfile.mkdtemp(prefix="mosaic-"))
        #: Removes the folder. What is mapped from it may not be used any more.
        self.close = weakref.finalize(self, _remove, self.folder, os.getpid())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an error of the disk into a fault that says what to do."""
        try:
            yield
        except OSError as error:
            fault = f"its numbers cannot be laid out in {self.folder.parent} ({error.strerror or error})"
            raise FileFault(self.path, fault, MORE_ROOM) from error

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Remove the folder after an error; otherwise it is still needed."""
        if kind is not None:
            self.close()


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork ends before its parent does
        shutil.rmtree(folder, ignore_errors=True)
