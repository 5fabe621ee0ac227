"""Writing files, under a temporary name first; and a temporary folder for what does not fit into memory."""

from __future__ import annotations

import csv
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.exceptions import NotWrittenError, warn
from mosaic.rows.faults import FileFault
from mosaic.rows.tables import values_of
from mosaic.text import Library, json_text, jsonable

if TYPE_CHECKING:
    import pyarrow

pa = Library("pyarrow")
pq = Library("pyarrow.parquet")
feather = Library("pyarrow.feather")
types = Library("pyarrow.types")

#: What writes a table of rows to a path, by the ending of its name; texts with a delimiter and a decimal sign.
WRITERS: dict[str, Callable[[Any, Path, tuple[str, str]], Any]] = {
    ".csv": lambda table, path, dialect: path.write_bytes(csv_bytes(table, *dialect)),
    ".tsv": lambda table, path, dialect: path.write_bytes(csv_bytes(table, "\t", dialect[1])),
    ".parquet": lambda table, path, _: pq.write_table(table, path),
    ".feather": lambda table, path, _: feather.write_feather(table, str(path)),
    ".arrow": lambda table, path, _: feather.write_feather(table, str(path)),
    ".json": lambda table, path, _: path.write_text(
        "[\n" + ",\n".join(_json_records(table)) + "\n]\n", "utf-8"
    ),
    ".jsonl": lambda table, path, _: path.write_text(
        "".join(f"{record}\n" for record in _json_records(table)), "utf-8"
    ),
}
#: Characters that a formula may begin with, also in full width; a number with its sign is none.
FORMULAS = "=+-@\t\r\n＝＋－＠"
NUMBER = re.compile(r"[-+]\d+[.,]?\d*([eE][-+]?\d+)?")
#: How the name of a page ends.
PAGES = (".html", ".htm")
REPLACE = "Use `force=True` to replace it, or name another file."


class OutputFault(FileFault, NotWrittenError):  # noqa: N818, as FileFault
    """A file cannot be written."""


def write_rows(
    path: str | PathLike[str],
    table: pyarrow.Table,
    *,
    force: bool = False,
    as_written: bool = True,
    dialect: tuple[str, str] = (",", "."),
) -> list[str]:
    """Write a table of rows, in the way that the ending says (see ``WRITERS``), and return the names of columns left out: those
    of lists, which .csv and .tsv files cannot hold. A named pipe or device gets CSV. ``dialect`` is the delimiter of CSV, and the
    decimal sign.

    Unless texts stay ``as_written``, an apostrophe is put in .csv and .tsv files before those that a spreadsheet would compute:
    they begin with ``=``, ``+``, ``-``, ``@``, one of these in full width, a tab or a line break, and are no numbers. A
    ``SelectionWarning`` says so.
    """
    target = Path(path)
    check_output(target, force)
    if _is_stream(target):
        target.write_bytes(csv_bytes(table, *dialect))
        return _unwritable(table)
    ending = target.suffix.lower()
    changed = 0
    if ending in (".csv", ".tsv") and not as_written:
        table, changed = escape_formulas(table)
    with replacing(target, force=force) as temporary:
        WRITERS[ending](table, temporary, dialect)
    if changed:
        cells = "1 cell begins" if changed == 1 else f"{changed:,} cells begin"
        said = f"{cells} with =, +, - or @ in {target.name}, which a spreadsheet may compute; an apostrophe was put before."
        warn(f"{said} With `as_written=True` cells stay as they are.")
    return _unwritable(table) if ending in (".csv", ".tsv") else []


def check_output(
    path: str | PathLike[str], force: bool, endings: Collection[str] = tuple(WRITERS)
) -> None:
    """Refuse, before the long work, an output that could not be written after it, or whose name does not end as it should."""
    target = Path(path)
    if ".csv" in endings and _is_stream(target):
        return
    folder = Path(os.path.realpath(target)).parent
    known = f"Name a file that ends in {', '.join(endings)}."
    for wrong, fault, remedy in (
        (
            target.is_dir(),
            "is a folder",
            f"Name a file in it, for example {target / f'mosaic{next(iter(endings))}'}.",
        ),
        (target.exists() and not force, "exists already", REPLACE),
        (
            not folder.is_dir(),
            f"its folder {folder} does not exist",
            f"Make it first: mkdir -p '{folder}'",
        ),
        (
            not os.access(folder, os.W_OK | os.X_OK),
            f"its folder {folder} may not be written to by you",
            "Name another folder.",
        ),
        (
            target.exists() and not os.access(target, os.W_OK),
            "may not be written to by you",
            "Name another file.",
        ),
        (target.suffix.lower() not in endings, "its ending does not say what to write", known),
    ):
        if wrong:
            raise OutputFault(target, fault, remedy)


@contextmanager
def replacing(path: str | PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """A temporary name in the same folder, which becomes the file once the block is left without an error.

    A symbolic link stays one; the file that it names is replaced. The new file has the rights of the old one.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".mosaic-{secrets.token_hex(8)}.part{target.suffix}")
    try:
        yield temporary
        if target.exists() and not force:
            raise OutputFault(path, "exists already", REPLACE)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except OSError as error:
        if isinstance(error, FileFault) or str(error.filename) not in ("None", str(temporary)):
            raise
        remedy = "Free some space, or name a file elsewhere."
        raise OutputFault(path, f"cannot be written ({error.strerror or error})", remedy) from error
    finally:
        temporary.unlink(missing_ok=True)


def escape_formulas(table: pyarrow.Table) -> tuple[Any, int]:
    """A table of which a spreadsheet computes no text, and how many were changed: an apostrophe is put before them."""
    changed = 0

    def inert(text: str | None) -> str | None:
        nonlocal changed
        is_formula = (
            text is not None
            and len(text) > 1
            and text[0] in FORMULAS
            and not NUMBER.fullmatch(text)
        )
        changed += is_formula
        return f"'{text}" if is_formula else text

    for i, column in enumerate(table.columns):
        kind = column.type
        if not (types.is_primitive(kind) or types.is_decimal(kind) or types.is_nested(kind)):
            cells = [inert(text) for text in _as_text(column)]
            table = table.set_column(i, table.column_names[i], pa.array(cells, pa.large_string()))
    return table.rename_columns([inert(name) for name in table.column_names]), changed


def _is_stream(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def csv_bytes(table: pyarrow.Table, delimiter: str = ",", decimal: str = ".") -> bytes:
    """A table as CSV; cells are quoted where they need it, missing ones are empty. Columns of lists are left out."""
    flat = without_lists(table)
    for i, column in enumerate(flat.columns if decimal != "." else ()):
        if types.is_floating(column.type):
            cells = [text and text.replace(".", decimal) for text in _as_text(column)]
            flat = flat.set_column(i, flat.column_names[i], pa.array(cells, pa.string()))
    lines = _Lines()
    writer = csv.writer(lines, delimiter=delimiter)
    writer.writerow(flat.column_names)
    writer.writerows(zip(*(_as_text(column) for column in flat.columns), strict=True))
    return "".join(lines).encode()


class _Lines(list[str]):
    """Lines of CSV that end in a line feed; csv.writer quotes both kinds of line breaks only if lines end in both."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def without_lists(table: pyarrow.Table) -> Any:
    return table.drop_columns(_unwritable(table))


def _unwritable(table: pyarrow.Table) -> list[str]:
    return [field.name for field in table.schema if types.is_nested(field.type)]


def _as_text(column: pyarrow.ChunkedArray) -> list[str | None]:
    """Values as text; bytes that are no text as hexadecimal digits."""
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if isinstance(column.type, pa.BaseExtensionType):  # a cast to text would give its bytes
            raise pa.ArrowNotImplementedError
        return list(column.cast(pa.large_string()).to_pylist())
    return [
        value.hex() if isinstance(value, bytes) else None if value is None else str(value)
        for value in column.to_pylist()
    ]


def records_of(table: pyarrow.Table) -> list[dict[str, Any]]:
    """Every row by the names of its columns."""
    rows = zip(*map(values_of, table.columns), strict=True)
    return [dict(zip(table.column_names, row, strict=True)) for row in rows] or [
        {}
    ] * table.num_rows


def _json_records(table: pyarrow.Table) -> list[str]:
    """Every row as a JSON object; NaN and infinite become null, dates and other things their text."""
    return [json_text(jsonable(record)) for record in records_of(table)]


class Scratch:
    """A temporary folder in TMPDIR. ``close`` removes it; so do an error within its block and the end of Python.

    ``path`` is the file that the numbers come from, for messages.
    """

    def __init__(self, path: Path):
        self.path = path
        self.folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
        self.close = weakref.finalize(self, _remove, self.folder, os.getpid())

    @contextmanager
    def writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            fault = f"its numbers cannot be laid out in {self.folder.parent} ({error.strerror or error})"
            remedy = "Free some space, or point the environment variable TMPDIR to a larger disk."
            raise FileFault(self.path, fault, remedy) from error

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Remove the folder after an error; otherwise it is still needed."""
        if kind is not None:
            self.close()


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork ends before its parent does
        shutil.rmtree(folder, ignore_errors=True)
