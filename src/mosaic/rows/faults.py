"""Faults of files: which file, where in it, what is wrong, and what to do about it."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from mosaic.exceptions import PYTHON, InvalidInputError, MosaicError, Wording
from mosaic.text import printable


class FileFault(InvalidInputError):  # noqa: N818, what it is about is the file, and FileFault says so
    """A file cannot be read, used or written.

    Attributes
    ----------
    file : its path, as it was given
    where : where in it, as "line 7, column 'age'"; None for the file as a whole
    fault : what is wrong, without a full stop
    remedy : what to do

    Examples
    --------
    >>> print(FileFault("people.csv", "'12kg' is not a number", "Correct the cell.", line=7, column="weight"))
    people.csv, line 7, column 'weight': '12kg' is not a number. Correct the cell.
    """

    def __init__(
        self,
        file: str | PathLike[str],
        fault: str,
        remedy: str | None,
        *,
        line: int | None = None,
        column: str | None = None,
        where: str | None = None,
    ):
        super().__init__(fault, remedy)
        self.file = str(file)
        parts = [
            where,
            f"line {line:,}" if line else None,
            f"column {column!r}" if column is not None else None,
        ]
        self.where = ", ".join(part for part in parts if part) or None

    def message(self, wording: Wording = PYTHON) -> str:
        return f"{printable(self.file)}{', ' + self.where if self.where else ''}: {super().message(wording)}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.file, self.fault, self.remedy), vars(self)


class NoSuchFile(FileFault, FileNotFoundError):  # noqa: N818, as FileFault
    """There is no file of this name."""


@contextmanager
def readable(file: str | Path, remedy: str | None = None) -> Iterator[None]:
    """Turn whatever a library says of a file that it cannot read into a fault of that file."""
    try:
        yield
    except MosaicError:
        raise
    except MemoryError as error:
        remedy = "It is damaged, or too large to be read at once; with a lower `memory_budget` most files are read in pieces."
        raise FileFault(file, "asks for more memory than this machine has", remedy) from error
    except PermissionError as error:
        raise not_permitted(file) from error
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}"
        raise damaged(file, f"cannot be read ({said[:300]})", remedy) from error


def damaged(file: str | Path, fault: str, remedy: str | None = None) -> FileFault:
    why = "It is damaged, was not copied completely, has changed since it was opened, or is not what its ending says."
    return FileFault(file, fault, remedy or f"{why} Write or copy it again.")


def not_permitted(file: str | Path) -> FileFault:
    remedy = f"Ask its owner, or use: chmod u+r {Path(file).name}"
    return FileFault(file, "may not be read by you (permission denied)", remedy)


def no_rows(file: str | Path, fault: str = "has no rows") -> FileFault:
    return FileFault(file, fault, "Write it again with its rows, or name another one.")


def nested(file: str | Path) -> FileFault:
    return FileFault(file, "is nested too deeply", "Write it again as a flat table.")


#: Commands that write rows to a pipe, by the address or the name of the database that holds them.
PIPES = {
    r"(?:sqlite:///)?(.+\.(?:db|sqlite3?))": "sqlite3 -csv -header {} 'select * from …'",
    r"(?:duckdb:///)?(.+\.duckdb)": "duckdb -csv {} 'select * from …'",
    r"(postgres(?:ql)?://.+)": "psql {} --csv -c 'select * from …'",
    r"(s3://.+)": "aws s3 cp {} -",
    r"(gs://.+)": "gcloud storage cat {}",
    r"((?:https?|ftp)://.+)": "curl -sSfL {}",
    r"(\w\w+://.+)": "…",
}


def refuse_address(path: str | PathLike[str]) -> None:
    """Refuse an address or a database, with the pipe that brings its rows, and the line for what fsspec reads."""
    scheme, is_address, place = str(path).partition("://")
    for pattern, pipe in PIPES.items():
        if found := re.fullmatch(pattern, str(path)):
            ending = Path(path).suffix[1:]
            if ending in ("parquet", "jsonl", "json", "xlsx", "npy", "zip"):
                format = f" --format {ending}"
            else:
                format = ""
            command = f"{pipe.format(shlex.quote(found[1]))} | mosaic select -{format}"
            remedy = f"Pipe the rows into the command ({command})."
            if is_address and not pipe.endswith("…'"):
                kind = f", format={ending!r}" if ending in ("csv", "feather", "arrow") else ""
                place = str(path) if scheme.startswith("http") else place
                opened = f"pyarrow.dataset.dataset({place!r}{kind}, filesystem=fsspec.filesystem({scheme!r}))"
                remedy = f"{remedy} Or in Python pass {opened}."
            raise FileFault(
                path, "is an address or a database, and nothing is fetched from there", remedy
            )


def check_there(path: Path) -> None:
    """Refuse a path where nothing can be read: missing, closed to us, empty, no file, or a pointer of Git LFS."""
    try:
        if not path.exists():
            hint = f"The folder {path.parent} is not there either. "
            if path.parent.is_dir():
                near = sorted(other.name for other in path.parent.iterdir())[:10_000]
                hint = close_to(path.name, near) or "Check the name. "
            raise NoSuchFile(
                path,
                "there is no such file or folder",
                f"{hint}Paths are relative to {Path.cwd()}.",
            )
        if path.is_dir():
            if not any(path.iterdir()):
                raise no_rows(path, "the folder is empty")
            return
        if not path.is_file():  # reading a pipe would wait for ever, and it cannot be read twice
            raise FileFault(
                path, "is neither a file nor a folder", "Save what it holds to a file first."
            )
        with path.open("rb") as file:
            head = file.read(23)
    except PermissionError as error:
        raise not_permitted(path) from error
    if not head:
        raise no_rows(path, "the file is empty")
    if head == b"version https://git-lfs":
        remedy = f"Fetch the data with: git lfs pull --include {path.name}"
        raise FileFault(path, "is a pointer of Git LFS, not the data itself", remedy)


def close_to(name: str, names: Sequence[str]) -> str:
    """A question that suggests similar names, or an empty text. Letters that look like digits count as these."""
    looks = str.maketrans("oli", "011")
    folded = {other.casefold().translate(looks): other for other in names}
    found = difflib.get_close_matches(name.casefold().translate(looks), list(folded), 3, 0.6)
    return f"Did you mean {' or '.join(repr(folded[f]) for f in found)}? " if found else ""
