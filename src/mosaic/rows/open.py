"""Reading rows: what kind of file it is, and which function reads that kind."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from mosaic.choosing.budget import budget_of
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import as_bytes
from mosaic.rows.arrays import open_h5ad, open_npy, open_npz, open_zarr
from mosaic.rows.arrow import COMPRESSIONS, open_feather, open_json_lines, open_parquet
from mosaic.rows.faults import FileFault, check_there, refuse_address
from mosaic.rows.images import PICTURES, open_images
from mosaic.rows.roles import Progress, Request
from mosaic.rows.rows import Rows
from mosaic.rows.text_tables import open_text_table, open_workbook
from mosaic.rows.write import Scratch
from mosaic.text import library


class Kind(NamedTuple):
    """A kind of file: its name as a person would say it, who reads it, the packages for that."""

    name: str
    open: Callable[[Request], Rows]
    packages: tuple[str, ...] = ()


#: Kinds of files by their ending. A further kind is a line here and a function that reads it.
KINDS = {
    ".csv": Kind("CSV file", open_text_table, ("pyarrow.csv",)),
    ".tsv": Kind("tab-separated file", open_text_table, ("pyarrow.csv",)),
    ".tab": Kind("tab-separated file", open_text_table, ("pyarrow.csv",)),
    ".xlsx": Kind("Excel workbook", open_workbook, ("python_calamine", "pyarrow")),
    ".parquet": Kind("Parquet file", open_parquet, ("pyarrow.parquet",)),
    ".feather": Kind("Feather file", open_feather, ("pyarrow.ipc",)),
    ".arrow": Kind("Arrow file", open_feather, ("pyarrow.ipc",)),
    ".jsonl": Kind("JSON lines", open_json_lines, ("pyarrow.json",)),
    ".ndjson": Kind("JSON lines", open_json_lines, ("pyarrow.json",)),
    ".npy": Kind("NumPy array", open_npy),
    ".npz": Kind("NumPy archive", open_npz),
    ".h5ad": Kind("AnnData file", open_h5ad, ("h5py", "anndata.io", "pyarrow")),
    ".zarr": Kind("Zarr array", open_zarr, ("zarr",)),
}
#: All endings by which a file is known, with those of compressed text.
ENDINGS = (*KINDS, *(e + packed for e in (".csv", ".tsv", ".tab", ".jsonl", ".ndjson") for packed in COMPRESSIONS))
#: Kinds of folders; Zarr arrays are among the kinds above.
FOLDERS = {
    ".parquet": Kind("Parquet folder", open_parquet, ("pyarrow.parquet",)),
    "images": Kind("images in a folder", open_images, ("PIL.Image", "pyarrow")),
}
#: What standard input is called in messages.
STANDARD_INPUT = "standard input"


def read(
    path: str | PathLike[str],
    *,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    exclude_columns: Sequence[str] | None = None,
    embedding: str | None = None,
    group: str | Sequence[str] | None = None,
    weight: str | None = None,
    array: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    image_size: int = 32,
    colour: bool = False,
    memory_budget: float | str | None = None,
    progress: Progress | None = None,
) -> Rows:
    r"""Read a file of rows, as they are: their cells or numbers, names, groups and weights.

    Rows are compared by their columns, whatever these hold: numbers, categories, dates, texts; missing values are a value of
    their own. Numbers without gaps and without others beside them are taken as they are, otherwise every column has the rule of
    its kind (``mosaic.rows.encoder``). Ids, constants and copies are left out. Files that are large for the budget stay on the
    disk: their numbers are mapped into memory or read in passes.

    Parameters
    ----------
    path : .csv, .tsv (also .gz, .bz2, .zst), .xlsx, .parquet, .feather, .arrow, .jsonl, .npy, .npz, .h5ad, .zarr, a folder of
        Parquet files, a folder of pictures; ``"-"`` for standard input
    id : column that names the rows. By default one of different values that is called id, name, key, … or ends in ``_id``,
        or else a text of different values
    columns : columns to compare rows by, by name or pattern (``"gene_*"``); by default all but those with the name of an id,
        begin with ``mosaic_``, or have a part of their own (id, group, weight). A column that is named here is compared anyway
    exclude_columns : columns that rows are not compared by, by name or pattern
    embedding : column that holds a list of numbers, which are the features
    group : column that says which group a row belongs to, or several: every combination that occurs is a group
    weight : column that says how much a row counts
    array : which array of an .npz, .zarr or .h5ad file: ``"layers/counts"``, ``"obsm/X_pca"``
    sheet : which sheet of an .xlsx file, by default the first
    format : what kind of file it is, such as ``"csv"``, if its name does not say so; standard input is taken as CSV
    image_size : side of pictures, in pixels
    colour : pictures in colour and not in grey
    memory_budget : bytes, or text such as "500MB"; by default a quarter of what is free
    progress : is called now and then with the bytes done and their total

    Raises
    ------
    FileFault
        if the file cannot be read or used. It says where, why, and what to do.
    MissingDependencyError
        if the library that reads this kind of file is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "people.csv").write_text("name,height,age\nAda,1.7,36\nMax,1.8,41\n")
    ...     with read(Path(folder, "people.csv")) as rows:
    ...         print(rows.kind, rows.roles.compared, rows.names([1]), rows.cells([1], ["height"]).to_pylist())
    CSV file ('height', 'age') ['Max'] [{'height': 1.8}]
    """
    if format is not None and f".{format}" not in ENDINGS:
        remedy = f"Known are {', '.join(ending[1:] for ending in KINDS)}."
        raise InvalidInputError("must be the ending of a known kind of file", remedy, parameter="format", value=format)
    group = [group] if isinstance(group, str) else group or ()
    ending = "" if format is None else f".{format}"
    scratch = None
    if str(path) == "-":
        scratch = _spooled()
        ending = ending or ".csv"
        file = scratch.folder / "stdin"
    else:
        refuse_address(path)
        file = Path(path)
        check_there(file)
        ending = ending or kind_of(file)
    base = ending.rsplit(".", 1)[0] if ending.endswith(tuple(COMPRESSIONS)) else ending
    for name, (is_given, what, endings) in {
        "array": (array is not None, "arrays to choose from", (".npz", ".zarr", ".h5ad")),
        "sheet": (sheet is not None, "sheets to choose from", (".xlsx",)),
        "image_size": (image_size != Request.image_size, "pictures", ("images",)),
        "colour": (colour, "pictures", ("images",)),
    }.items():
        if is_given and base not in endings:
            raise FileFault(file, f"has no {what} (`{name}`)", "Leave it out.")
    request = Request(
        file,
        budget_of(as_bytes(memory_budget)),
        ending=ending,
        sheet=sheet,
        id=id,
        columns=[columns] if isinstance(columns, str) else columns,
        exclude_columns=[exclude_columns] if isinstance(exclude_columns, str) else exclude_columns,
        embedding=embedding,
        group=group,
        weight=weight,
        array=array,
        image_size=image_size,
        colour=colour,
        progress=progress,
    )
    try:
        rows = _open(request, base)
    except FileFault as fault:
        if scratch is not None:
            scratch.close()
            fault.file = STANDARD_INPUT if fault.file == str(file) else fault.file
        raise
    if scratch is not None:
        rows.request = replace(rows.request, path=Path(STANDARD_INPUT))
        rows.closers.append(scratch.close)
    return rows


def kind_of(file: Path) -> str:
    """The ending that says how a file or folder is read; "images" for a folder of pictures."""
    ending = file.suffix.lower()
    if file.is_dir():
        if ending == ".zarr" or any((file / mark).exists() for mark in ("zarr.json", ".zarray", ".zgroup")):
            return ".zarr"
        endings = {one.suffix.lower() for one in file.rglob("*") if one.name[0] not in "._"}
        if ".parquet" in endings and endings.intersection(PICTURES):
            remedy = "Name one of the Parquet files, or move the pictures to a folder of their own."
            raise FileFault(file, "holds both Parquet files and pictures", remedy)
        return ".parquet" if ".parquet" in endings else "images"
    if ending in COMPRESSIONS:
        ending = Path(file.stem).suffix.lower() + ending
    if ending not in ENDINGS:
        raise FileFault(
            file,
            f"files that end in {ending!r} are not known" if ending else "a name without an ending says nothing of the file",
            f"Known are {', '.join(KINDS)}, folders of Parquet files and of pictures. Rename it if it is one of these, or "
            "convert it, for example with pandas.",
        )
    return ending


def _open(request: Request, base: str) -> Rows:
    """By the function that reads this kind of file, if the packages for it are there."""
    file = request.path
    kind = FOLDERS.get(base, KINDS.get(base)) if file.is_dir() else KINDS[base]
    assert kind is not None
    for package in kind.packages:
        library(package, file)
    try:
        rows = kind.open(replace(request, kind=kind.name))
    except RecursionError as error:  # of libraries that look at its types
        raise FileFault(file, "is nested too deeply", "Write it again as a flat table.") from error
    except FileNotFoundError as error:
        if isinstance(error, FileFault):
            raise
        raise FileFault(file, "was removed while it was read", "Put it back, and start again.") from error
    if "pyarrow" in sys.modules:  # it keeps what reading took for a while
        library("pyarrow", file).default_memory_pool().release_unused()
    return rows


def _spooled() -> Scratch:
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        remedy = "Pipe rows into the command, as in: cat points.csv | mosaic select -"
        raise FileFault(STANDARD_INPUT, "there is none to read, only a keyboard", remedy)
    with Scratch(Path(STANDARD_INPUT)) as scratch, scratch.writing(), (scratch.folder / "stdin").open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        if not file.tell():
            raise FileFault(STANDARD_INPUT, "it is empty", "Look at the command before the pipe: it has written nothing.")
    return scratch
