"""Opening a file: what kind it is, and which function reads that kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from mosaic.checks import as_bytes
from mosaic.choosing.budget import budget_of
from mosaic.exceptions import InvalidInputError
from mosaic.rows.arrays import ZARR_MARKS, open_h5ad, open_npy, open_npz, open_zarr
from mosaic.rows.csv_files import open_text_table
from mosaic.rows.excel import open_workbook
from mosaic.rows.faults import FileFault, check_there, refuse_address, there_to_the_end
from mosaic.rows.features import Progress, Request
from mosaic.rows.images import PICTURES, open_images
from mosaic.rows.mixed import TableEncoder
from mosaic.rows.parquet import open_feather, open_parquet
from mosaic.rows.sources import is_stream
from mosaic.rows.spool import STANDARD_INPUT, renamed, spooled
from mosaic.rows.streams import open_rows
from mosaic.rows.table import Table
from mosaic.rows.text import COMPRESSIONS, ending_of, open_json_lines, open_text
from mosaic.text import library


class Kind(NamedTuple):
    """A kind of file: its name as a person would say it, who reads it, the packages for that, and how it may be compressed."""

    name: str
    open: Callable[[Request], Table]
    packages: tuple[str, ...] = ()
    compressions: tuple[str, ...] = ()


#: Kinds of files by their ending. A further kind is a line here and a function that reads it.
KINDS = {
    ".csv": Kind("CSV file", open_text_table, ("pyarrow.csv",), tuple(COMPRESSIONS)),
    ".tsv": Kind("tab-separated file", open_text_table, ("pyarrow.csv",), tuple(COMPRESSIONS)),
    ".tab": Kind("tab-separated file", open_text_table, ("pyarrow.csv",), tuple(COMPRESSIONS)),
    ".xlsx": Kind("Excel workbook", open_workbook, ("python_calamine", "pyarrow")),
    ".parquet": Kind("Parquet file", open_parquet, ("pyarrow.parquet",)),
    ".feather": Kind("Feather file", open_feather, ("pyarrow.feather",)),
    ".arrow": Kind("Arrow file", open_feather, ("pyarrow.ipc",)),
    ".jsonl": Kind("JSON lines", open_json_lines, ("pyarrow.json",), tuple(COMPRESSIONS)),
    ".ndjson": Kind("JSON lines", open_json_lines, ("pyarrow.json",), tuple(COMPRESSIONS)),
    ".npy": Kind("NumPy array", open_npy),
    ".npz": Kind("NumPy archive", open_npz),
    ".h5ad": Kind("AnnData file", open_h5ad, ("h5py", "anndata.io", "pyarrow")),
    ".zarr": Kind("Zarr array", open_zarr, ("zarr",)),
    ".txt": Kind("text, line by line", open_text, ("pyarrow",), tuple(COMPRESSIONS)),
    ".zip": Kind("images in a zip file", open_images, ("PIL.Image", "pyarrow")),
}
#: Kinds whose columns are not asked for by name.
WITHOUT_COLUMNS = (".npy", ".npz", ".h5ad", ".zarr", ".txt", ".zip")
#: Endings of kinds that may be compressed.
_COMPRESSED = [ending + packing for ending, kind in KINDS.items() for packing in kind.compressions]
#: What the kinds are called where they are folders.
FOLDERS = {".parquet": "Parquet folder", ".zip": "images in a folder"}


def open_table(
    path: Any,
    *,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    exclude_columns: Sequence[str] | None = None,
    embedding: str | None = None,
    embeddings: str | PathLike[str] | None = None,
    group: str | None = None,
    weight: str | None = None,
    array: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    image_size: int = 32,
    colour: bool = False,
    drop_missing: bool = False,
    memory_budget: float | str | None = None,
    progress: Progress | None = None,
    encoder: TableEncoder | None = None,
    numbers_only: bool = False,
) -> Table:
    r"""Open a file of rows: numbers to fit, and the names and columns that belong to them.

    Rows are compared by their columns, whatever these hold: numbers, categories, dates, texts; missing values are a value of
    their own. Numbers without gaps and without others beside them are taken as they are, otherwise every column has the rule of
    its kind (``mosaic.rows.mixed``). Ids, constants and copies are left out. Files that are large for the budget stay on the
    disk: their numbers are mapped into memory or read in passes.

    Parameters
    ----------
    path : .csv, .tsv (also .gz, .bz2, .zst), .xlsx, .parquet, .feather, .arrow, .jsonl, .npy, .npz, .h5ad, .zarr, .txt with
        ``embeddings``, a folder of Parquet files, a folder or .zip of pictures; ``"-"`` for standard input. Or, instead of a
        path, an Arrow stream: a DuckDB relation, the reader of an ADBC cursor, a data set of Hugging Face
    id : column that names the rows. By default one of different values that is called id, name, key, … or ends in ``_id``,
        or else a text of different values
    columns : columns to compare rows by, by name or pattern (``"gene_*"``); by default all but those that are called as ids are,
        begin with ``mosaic_``, or have a part of their own (id, group, weight). A column that is named here is compared anyway
    exclude_columns : columns that rows are not compared by, by name or pattern
    embedding : column that holds a list of numbers, which are the features
    embeddings : another file with as many rows, whose numbers are the features. If it has the column of ids too, these must be
        the same, in the same order
    group, weight : columns that say which group a row belongs to, and how much it counts
    array : which array of an .npz, .zarr or .h5ad file: ``"layers/counts"``, ``"obsm/X_pca"``
    sheet : which sheet of an .xlsx file, by default the first
    format : what kind of file it is, such as ``"csv"``, if its name does not say so; by default, standard input is looked at
    image_size : side of pictures, in pixels
    colour : pictures in colour and not in grey
    drop_missing : leave out rows with missing or infinite numbers
    memory_budget : bytes, or text such as "500MB"; by default a quarter of what is free
    progress : is called now and then with the bytes done and their total
    encoder : how columns become numbers, if a model knows it (``table_``)
    numbers_only : columns of numbers are compared and no others, and none of them may be missing

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
    ...     with open_table(Path(folder, "people.csv")) as table:
    ...         print(table.kind, table.feature_names, table.names([1]), table.X.tolist())
    CSV file ['height', 'age'] ['Max'] [[1.7, 36.0], [1.8, 41.0]]
    """
    given = dict(locals())
    if format is not None and f".{format}" not in {*KINDS, *_COMPRESSED}:
        remedy = f"Known are {', '.join(ending[1:] for ending in KINDS)}."
        raise InvalidInputError("must be the ending of a known kind of file", remedy, parameter="format", value=format)
    if not is_stream(path) and (str(path) == "-" or format is not None):
        return _open_renamed(
            path, format, {name: value for name, value in given.items() if name not in ("path", "format")}
        )
    file, stream = _named(path)
    budget = budget_of(as_bytes(memory_budget))
    if embedding is not None and embeddings is not None:
        raise InvalidInputError("`embedding` and `embeddings` are both given", "Name a column or a file, not both.")
    ending = "" if stream is not None else kind_of(file)
    has_arrays = ending in (".npz", ".zarr", ".h5ad")
    if array is not None and not has_arrays and embeddings is None:
        raise FileFault(file, "has no arrays to choose from (`array`)", "Leave it out.")
    if sheet is not None and ending != ".xlsx":
        raise FileFault(file, "has no sheets to choose from (`sheet`)", "Leave it out.")
    request = Request(
        file,
        stream=stream,
        sheet=sheet,
        id=id,
        columns=[columns] if isinstance(columns, str) else columns,
        exclude_columns=[exclude_columns] if isinstance(exclude_columns, str) else exclude_columns,
        embedding=embedding,
        group=group,
        weight=weight,
        array=array if has_arrays else None,
        image_size=image_size,
        colour=colour,
        drop_missing=drop_missing,
        elsewhere=embeddings is not None,
        encoder=encoder,
        numbers_only=numbers_only,
        budget=budget,
        progress=progress,
    )
    table = _open(request, ending)
    table.group_name, table.weight_name = group, weight
    given = {"embedding": embedding, "array": array, "image_size": image_size, "colour": colour}
    table.options = {name: value for name, value in given.items() if value not in (None, 32, False)}
    if embeddings is None:
        return table
    try:
        _named(embeddings)
        numbers = Request(
            Path(embeddings),
            array=None if has_arrays else array,
            drop_missing=drop_missing,
            numbers_only=True,
            budget=budget,
            progress=progress,
        )
        return _with_embeddings(table, numbers)
    except BaseException:
        table.close()
        raise


def _named(path: Any) -> tuple[Path, Any]:
    """A path that is there, and None; or what a stream is called, and the stream."""
    if is_stream(path):
        return Path(type(path).__name__), path
    refuse_address(path)
    check_there(Path(path))
    return Path(path), None


def _open_renamed(path: str | PathLike[str], format: str | None, options: dict[str, Any]) -> Table:
    """Standard input, or a file whose name does not say what it is, by way of a name that does."""
    shown = STANDARD_INPUT if str(path) == "-" else str(path)
    if shown != STANDARD_INPUT:
        _named(path)
    scratch, file = spooled(format) if shown == STANDARD_INPUT else renamed(Path(path), str(format))
    try:
        table = open_table(file, **options)
    except FileFault as fault:
        scratch.close()
        if fault.file == str(file):
            fault.file = shown
        raise
    except BaseException:
        scratch.close()
        raise
    table.path = Path(shown)
    table.at_close(scratch.close)
    return table


def kind_of(file: Path) -> str:
    """The ending that says how a file or folder is read; pictures in a folder are as those in a .zip."""
    if file.is_dir():
        if file.suffix.lower() == ".zarr" or any((file / mark).exists() for mark in ZARR_MARKS):
            return ".zarr"
        return _kind_of_folder(file)
    ending, packing = ending_of(file), file.suffix.lower()
    if ending not in KINDS or (packing in COMPRESSIONS and packing not in KINDS[ending].compressions):
        shown = "".join(file.suffixes[-2:]) if packing in COMPRESSIONS else file.suffix
        said = (
            f"files that end in {shown!r} are not known"
            if shown
            else "a name without an ending says nothing of the file"
        )
        raise FileFault(
            file,
            said,
            f"Known are {', '.join(KINDS)}, folders of Parquet files and of pictures. Rename it if it is one of these, or "
            "convert it, for example with pandas.",
        )
    return ending


def _kind_of_folder(folder: Path) -> str:
    """Parquet files lie in the folder itself; pictures may lie in folders of their own."""

    def holds(endings: Sequence[str], files: Iterable[Path]) -> bool:
        return any(one.suffix.lower() in endings and one.name[0] not in "._" for one in files)

    if holds([".parquet"], folder.iterdir()):
        if holds(PICTURES, folder.iterdir()):
            raise FileFault(
                folder,
                "holds both Parquet files and pictures",
                "Name one of the Parquet files, or move the pictures to a folder of their own.",
            )
        return ".parquet"
    # Parquet files in folders of their own are refused where they are read, with the reason.
    return ".zip" if holds(PICTURES, folder.rglob("*")) or not holds([".parquet"], folder.rglob("*")) else ".parquet"


def _open(request: Request, ending: str | None = None) -> Table:
    """By the function that reads this kind of file, if the packages for it are there."""
    file = request.path
    if request.stream is not None:
        library("pyarrow", file)
        return open_rows(replace(request, kind="Arrow stream"))
    ending = kind_of(file) if ending is None else ending
    kind = KINDS[ending]
    for package in kind.packages:
        library(package, file)
    with there_to_the_end(file):
        table = kind.open(replace(request, kind=FOLDERS.get(ending, kind.name) if file.is_dir() else kind.name))
    if "pyarrow" in sys.modules:  # it keeps what reading took for a while
        library("pyarrow", file).default_memory_pool().release_unused()
    return table


def _with_embeddings(table: Table, request: Request) -> Table:
    """The same rows, with the numbers of another file."""
    file = request.path
    numbers = _open(request)
    try:
        named = table.id_name in numbers.columns and numbers.feature_names is not None
        if named and numbers.id_name != table.id_name:
            numbers.close()
            numbers = _open(replace(request, id=table.id_name))
        n = numbers.n + numbers.n_dropped
        if n != table.n:
            raise FileFault(
                file,
                f"has {n:,} rows, {table.path.name} has {table.n:,}",
                "Compute the embeddings again, a row for each, in the same order.",
            )
        if named:
            table.check_same_names(numbers)
    except BaseException:
        numbers.close()
        raise
    table.take_numbers_of(numbers)
    table.notes.append(f"The numbers are those of {file}, {numbers.n_features:,} for each row.")
    return table


def read_file(
    path: Any,
    memory_budget: float | None = None,
    *,
    encoder: TableEncoder | None = None,
    numbers_only: bool = False,
    columns: Sequence[str] | None = None,
    group: str | None = None,
    weight: str | None = None,
) -> Table:
    """A file for a fit, or new rows for a model; temporary files stay as long as its X.

    Parameters
    ----------
    path, memory_budget : as for :func:`open_table`
    encoder : how columns become numbers, if a model knows it
    numbers_only : columns of numbers are compared and no others, and none of them may be missing
    columns : those that a model knows, in its order; others are ignored. Without effect where columns have no names
    group, weight : columns of groups and of weights, which are not compared
    """
    file, stream = _named(path)
    budget = budget_of(memory_budget)
    columns = None if stream is None and kind_of(file) in WITHOUT_COLUMNS else columns
    table = _open(
        Request(
            file,
            stream=stream,
            encoder=encoder,
            numbers_only=numbers_only,
            columns=columns,
            group=group,
            weight=weight,
            budget=budget,
        )
    )
    table.keep_files()
    return table
