"""Reading rows: what kind of file it is, and which function reads that kind."""

from __future__ import annotations

import os
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
from mosaic.rows.arrow import (
    COMPRESSIONS,
    in_its_encoding,
    open_feather,
    open_json_lines,
    open_parquet,
)
from mosaic.rows.faults import FileFault, check_there, nested, refuse_address
from mosaic.rows.images import PICTURES, open_images
from mosaic.rows.packed import PACKED, STANDARD_INPUT, files_of, spooled
from mosaic.rows.roles import Progress, Request
from mosaic.rows.rows import Rows
from mosaic.rows.text_tables import open_text_table, open_workbook
from mosaic.rows.write import Scratch
from mosaic.text import library


class Kind(NamedTuple):
    """A kind of file: its name as a person would say it, who reads it, the packages for that, and arguments of ``read`` that only
    some kinds take.
    """

    name: str
    open: Callable[[Request], Rows]
    packages: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


_CSV, _JSON = ("pyarrow.csv",), ("pyarrow.json",)
_SHEETS, _ARROW, _PARQUET = ("python_calamine", "pyarrow"), ("pyarrow.ipc",), ("pyarrow.parquet",)
#: Kinds of files by their ending. A further kind is a line here and a function that reads it.
KINDS = {
    ".csv": Kind("CSV file", open_text_table, _CSV, ("encoding",)),
    ".tsv": Kind("tab-separated file", open_text_table, _CSV, ("encoding",)),
    ".tab": Kind("tab-separated file", open_text_table, _CSV, ("encoding",)),
    ".txt": Kind("text file", open_text_table, _CSV, ("encoding",)),
    ".xlsx": Kind("Excel workbook", open_workbook, _SHEETS, ("sheet",)),
    ".xls": Kind("Excel workbook", open_workbook, _SHEETS, ("sheet",)),
    ".ods": Kind("OpenDocument sheets", open_workbook, _SHEETS, ("sheet",)),
    ".parquet": Kind("Parquet file", open_parquet, _PARQUET),
    ".feather": Kind("Feather file", open_feather, _ARROW),
    ".arrow": Kind("Arrow file", open_feather, _ARROW),
    ".jsonl": Kind("JSON lines", open_json_lines, _JSON, ("encoding",)),
    ".ndjson": Kind("JSON lines", open_json_lines, _JSON, ("encoding",)),
    ".npy": Kind("NumPy array", open_npy),
    ".npz": Kind("NumPy archive", open_npz, (), ("array",)),
    ".h5ad": Kind("AnnData file", open_h5ad, ("h5py", "anndata.io", "pyarrow"), ("array",)),
    ".zarr": Kind("Zarr array", open_zarr, ("zarr",), ("array",)),
}
#: All endings by which a file is known, with those of compressed text.
TEXTS = [ending for ending, kind in KINDS.items() if "encoding" in kind.takes]
ENDINGS = (*KINDS, *PACKED, *(ending + packed for ending in TEXTS for packed in COMPRESSIONS))
#: Kinds of folders; Zarr arrays are among the kinds above.
FOLDERS = {
    ".parquet": Kind("Parquet folder", open_parquet, _PARQUET),
    "images": Kind(
        "images in a folder", open_images, ("PIL.Image", "pyarrow"), ("image_size", "colour")
    ),
}


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
    encoding: str | None = None,
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
    path : .csv, .tsv, .txt, .jsonl (also .gz, .bz2, .zst), .json, .xlsx, .xls, .ods, .parquet, .feather, .arrow, .npy, .npz,
        .h5ad, .zarr, one of these in a .zip or .xz, a folder of Parquet files, a folder of pictures; a pattern such as
        ``"folder/*.csv"``; a named pipe, ``"-"`` for standard input
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
    encoding : how a text is encoded, such as ``"cp1251"``, if it is neither UTF-8, UTF-16 nor Windows-1252
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
        remedy = f"Known are {', '.join(ending[1:] for ending in (*KINDS, *PACKED))}."
        raise InvalidInputError(
            "must be the ending of a known kind of file", remedy, parameter="format", value=format
        )
    try:
        "".encode(encoding or "utf-8")
    except LookupError as error:
        fault, remedy = "is the name of no encoding", "Write one as in 'cp1252'."
        raise InvalidInputError(fault, remedy, parameter="encoding", value=encoding) from error
    if not isinstance(path, str | PathLike):
        fault = f"must be the name of a file, and is of type {type(path).__name__}"
        remedy = "Rows in memory are passed to a fit as they are."
        raise InvalidInputError(fault, remedy, parameter="path")
    if path == "":  # as a variable of a shell that is not set
        raise FileFault(
            "''", "is the name of no file", "Name one, or '.' for the folder where you are."
        )
    file = Path(STANDARD_INPUT if str(path) == "-" else path)
    files: list[Path] = []
    is_stream = str(path) == "-" or (os.path.exists(file) and file.is_fifo())
    if not is_stream:
        refuse_address(path)
        files = files_of(file)
        for each in files or [file]:
            check_there(each)
    request = Request(
        file,
        files,
        budget_of(as_bytes(memory_budget)),
        encoding=encoding,
        sheet=sheet,
        id=id,
        columns=[columns] if isinstance(columns, str) else columns,
        exclude_columns=[exclude_columns] if isinstance(exclude_columns, str) else exclude_columns,
        embedding=embedding,
        group=[group] if isinstance(group, str) else group or (),
        weight=weight,
        array=array,
        image_size=image_size,
        colour=colour,
        progress=progress,
    )
    ending = None if format is None else f".{format}"
    if is_stream:
        ending = ending or (file.suffix if file.suffix in ENDINGS else ".csv")
        return _open_inside(request, lambda folder: spooled(file, folder), ending)
    return _open(replace(request, ending=ending or kind_of(files[0] if files else file)))


def kind_of(file: Path) -> str:
    """The ending that says how a file or folder is read; "images" for a folder of pictures."""
    ending = file.suffix.lower()
    if file.is_dir():
        if ending == ".zarr" or any(
            (file / mark).exists() for mark in ("zarr.json", ".zarray", ".zgroup")
        ):
            return ".zarr"
        endings = {one.suffix.lower() for one in file.rglob("*") if one.name[0] not in "._"}
        if ".parquet" in endings and endings.intersection(PICTURES):
            remedy = "Name one of the Parquet files, or move the pictures to a folder of their own."
            raise FileFault(file, "holds both Parquet files and pictures", remedy)
        return ".parquet" if ".parquet" in endings else "images"
    if ending in COMPRESSIONS:
        ending = Path(file.stem).suffix.lower() + ending
    if ending == ".mosaic":
        raise FileFault(file, "is a saved model, and rows are needed", "Name the file of the rows.")
    if ending not in ENDINGS:
        raise FileFault(
            file,
            f"files that end in {ending!r} are not known"
            if ending
            else "a name without an ending says nothing of the file",
            f"Known are {', '.join((*KINDS, *PACKED))}, folders of Parquet files and of pictures. "
            "Rename it if it is one of these, or convert it, for example with pandas.",
        )
    return ending


def _open(request: Request) -> Rows:
    """By the function that reads this kind of file, if the packages for it are there."""
    file, ending = request.path, request.ending
    base = ending.rsplit(".", 1)[0] if ending.endswith(tuple(COMPRESSIONS)) else ending
    if base in PACKED:
        return _open_inside(request, lambda folder: PACKED[base](request, folder))
    kind = FOLDERS.get(base, KINDS.get(base)) if file.is_dir() else KINDS[base]
    assert kind is not None
    for name in ("array", "sheet", "encoding", "image_size", "colour"):
        if name not in kind.takes and getattr(request, name) != getattr(Request, name):
            fault = f"`{name}` means nothing for this kind of file ({kind.name})"
            raise FileFault(file, fault, "Leave it out.")
    if request.files and kind.open not in (open_text_table, open_parquet):
        remedy = "Join them first, or name one of them."
        raise FileFault(
            file, "stands for several files that are neither text tables nor Parquet", remedy
        )
    for package in kind.packages:
        library(package, file)
    request = replace(request, kind=kind.name)
    try:
        rows = in_its_encoding(request, kind.open)
    except RecursionError as error:  # of libraries that look at its types
        raise nested(file) from error
    if "pyarrow" in sys.modules:  # it keeps what reading took for a while
        library("pyarrow", file).default_memory_pool().release_unused()
    return rows


def _open_inside(
    request: Request, lay_out: Callable[[Path], Path], ending: str | None = None
) -> Rows:
    """Rows of a stream or of something packed: of the file that ``lay_out`` writes to a temporary folder."""
    with Scratch(request.path) as scratch:
        with scratch.writing():
            inside = lay_out(scratch.folder)
        try:
            check_there(inside)
            if {request.path.suffix, inside.suffix} <= {".zip", ".xz"}:
                raise FileFault(inside, "is packed more than once", "Unpack it first.")
            rows = _open(replace(request, path=inside, ending=ending or kind_of(inside)))
        except FileFault as fault:
            fault.file = str(request.path) if fault.file == str(inside) else fault.file
            raise
    rows.request = replace(rows.request, path=request.path)
    rows.closers.append(scratch.close)
    return rows
