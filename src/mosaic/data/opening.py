"""Files in: what kind of file it is, and who reads that kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from mosaic.budget import DEFAULT_BUDGET
from mosaic.data._bytes import COMPRESSIONS, Progress, ending_of
from mosaic.data._columns import ColumnChoices
from mosaic.data._faults import FileFault, check_there
from mosaic.data.table import Table
from mosaic.engines.files import ZARR_MARKS
from mosaic.exceptions import InvalidInputError

#: Endings of the files that are read, and what they are called.
KINDS = {
    ".csv": "CSV file",
    ".tsv": "tab-separated file",
    ".tab": "tab-separated file",
    ".parquet": "Parquet file",
    ".feather": "Feather file",
    ".arrow": "Arrow file",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".npy": "NumPy array",
    ".npz": "NumPy archive",
    ".mtx": "Matrix Market file",
    ".h5ad": "AnnData file",
    ".zarr": "Zarr array",
    ".txt": "text, line by line",
    ".zip": "images in a zip file",
}
#: Endings that may be followed by that of a compression, and of which ones.
COMPRESSED = {".csv": COMPRESSIONS, ".tsv": COMPRESSIONS, ".tab": COMPRESSIONS, ".jsonl": COMPRESSIONS}
COMPRESSED |= {".ndjson": COMPRESSIONS, ".txt": COMPRESSIONS, ".mtx": {".gz": "gzip", ".bz2": "bz2"}}


def open_table(
    path: str | PathLike[str],
    *,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    exclude_columns: Sequence[str] | None = None,
    embedding: str | None = None,
    embeddings: str | PathLike[str] | None = None,
    group: str | None = None,
    weight: str | None = None,
    array: str | None = None,
    image_size: int = 32,
    colour: bool = False,
    drop_missing: bool = False,
    memory_budget: float | None = None,
    progress: Progress | None = None,
) -> Table:
    r"""Open a file of rows: numbers to fit, and the names and columns that belong to them.

    Columns of numbers are features, all others identify a row. Files that are large for the budget stay on the disk: their
    numbers are mapped into memory or read in passes.

    Parameters
    ----------
    path : .csv, .tsv (also .gz, .bz2, .zst), .parquet, .feather, .arrow, .jsonl, .npy, .npz, .mtx, .h5ad, .zarr, .txt with
        ``embeddings``, a folder of Parquet files, a folder or .zip of pictures
    id : column that names the rows. By default one of different values that is called id, name, key, … or ends in ``_id``,
        or else a text of different values
    columns : features, by name or pattern (``"gene_*"``); by default all columns of numbers but those that are called as ids
        are, begin with ``mosaic_``, or have a part of their own (id, group, weight). A column that is named here is one anyway
    exclude_columns : columns that are no features, by name or pattern
    embedding : column that holds a list of numbers, which are the features
    embeddings : another file with as many rows, whose numbers are the features. If it has the column of ids too, these must be
        the same, in the same order
    group, weight : columns that say which group a row belongs to, and how much it counts
    array : which array of an .npz, .zarr or .h5ad file: ``"layers/counts"``, ``"obsm/X_pca"``
    image_size : side of pictures, in pixels
    colour : pictures in colour and not in grey
    drop_missing : leave out rows with missing or infinite numbers, which are refused otherwise
    memory_budget : bytes, 2 GiB by default
    progress : is called now and then with the bytes done and their total

    Raises
    ------
    FileFault
        if the file cannot be read or used. It says where, why, and what to do; options are called there as on the command
        line, ``--exclude-columns`` for ``exclude_columns``.
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
    file = Path(path)
    check_there(file)
    budget = float(DEFAULT_BUDGET if memory_budget is None else memory_budget)
    if not budget > 0:
        raise InvalidInputError(f"memory_budget must be a number of bytes larger than 0; got {memory_budget!r}.")
    if embedding is not None and embeddings is not None:
        raise InvalidInputError("embedding and embeddings are both given. Name a column or a file, not both.")
    choices = ColumnChoices(
        id, _names(columns), _names(exclude_columns), embedding, group, weight, drop_missing, embeddings is not None
    )
    kind = kind_of(file)
    has_arrays = kind in (".npz", ".zarr", ".h5ad")
    if array is not None and not has_arrays and embeddings is None:
        raise FileFault(file, "has no arrays to choose from (--array)", "Leave the option out.")
    table = _open(file, kind, choices, budget, array if has_arrays else None, image_size, colour, progress)
    table.group_name = group
    if embeddings is None:
        return table
    try:
        return _with_embeddings(
            table, Path(embeddings), None if has_arrays else array, drop_missing, memory_budget, progress
        )
    except BaseException:
        table.close()
        raise


def kind_of(file: Path) -> str:
    """The ending that says how a file or folder is read; pictures in a folder are as those in a .zip."""
    if file.is_dir():
        if file.suffix.lower() == ".zarr" or any((file / mark).exists() for mark in ZARR_MARKS):
            return ".zarr"
        return _kind_of_folder(file)
    ending = ending_of(file)
    packing = file.suffix.lower()
    if ending not in KINDS or (packing in COMPRESSIONS and packing not in COMPRESSED.get(ending, ())):
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
    """Parquet files lie in the folder itself, pictures in folders of their own if they like."""

    def holds(endings: Sequence[str], files: Iterable[Path]) -> bool:
        return any(one.suffix.lower() in endings and one.name[0] not in "._" for one in files)

    from mosaic.data._images import PICTURES

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


def _open(
    file: Path,
    kind: str,
    choices: ColumnChoices,
    budget: float,
    array: str | None,
    image_size: int,
    colour: bool,
    progress: Progress | None,
) -> Table:
    """By the one who reads this kind; imported when needed, so that a missing library is missed only then."""
    if kind in (".csv", ".tsv", ".tab"):
        from mosaic.data._text import open_text_table

        return open_text_table(file, KINDS[kind], choices, budget, progress)
    if kind in (".parquet", ".feather", ".arrow"):
        from mosaic.data._stored import open_feather, open_parquet

        if kind == ".parquet":
            return open_parquet(file, choices, budget, progress)
        return open_feather(file, KINDS[kind], choices, budget, progress)
    if kind in (".jsonl", ".ndjson", ".txt"):
        from mosaic.data._lines import open_json_lines, open_text

        return open_text(file, choices, budget) if kind == ".txt" else open_json_lines(file, choices, budget, progress)
    if kind in (".npy", ".npz", ".mtx"):
        from mosaic.data._arrays import open_matrix_market, open_npy, open_npz

        if kind == ".npz":
            return open_npz(file, choices, budget, array)
        return open_npy(file, choices, budget) if kind == ".npy" else open_matrix_market(file, choices, budget)
    if kind in (".zarr", ".h5ad"):
        from mosaic.data._annotated import open_h5ad, open_zarr

        return (open_zarr if kind == ".zarr" else open_h5ad)(file, choices, budget, array)
    from mosaic.data._images import open_images

    return open_images(file, choices, budget, image_size, colour, progress)


def _with_embeddings(
    table: Table, file: Path, array: str | None, drop: bool, budget: float | None, progress: Progress | None
) -> Table:
    """The same rows, with the numbers of another file."""
    known: dict[str, Any] = {"array": array, "drop_missing": drop, "memory_budget": budget, "progress": progress}
    numbers = open_table(file, **known)
    try:
        named = table.id_name in numbers.columns and numbers.feature_names is not None
        if named and numbers.id_name != table.id_name:
            numbers.close()
            numbers = open_table(file, id=table.id_name, **known)
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


def _names(names: Sequence[str] | None) -> Sequence[str] | None:
    return [names] if isinstance(names, str) else names
