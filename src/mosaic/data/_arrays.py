"""Arrays in: NumPy's own files, SciPy's sparse ones and Matrix Market."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic._files import library, listed
from mosaic.data._columns import ColumnChoices
from mosaic.data._faults import FileFault, readable, unknown_name
from mosaic.data._framed import Frame, annotated, check_beside, finite
from mosaic.data._spool import Spool
from mosaic.data.records import Bare, Beside, Records, native
from mosaic.data.stacks import StackTable, is_stack
from mosaic.data.table import Table

Shapes: TypeAlias = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]

#: What scipy.sparse.save_npz writes besides the numbers.
SPARSE_MARKS = {"format", "shape", "data"}


def open_npy(path: Path, choices: ColumnChoices, budget: float) -> Table:
    """A .npy file, mapped into memory whatever its size."""
    with readable(path):
        X = _mapped(path, path)
    return array_table(path, "NumPy array", X, choices, budget)


def open_npz(path: Path, choices: ColumnChoices, budget: float, array: str | None) -> Table:
    """A .npz file: its one array of two dimensions, the one that is named, or a sparse matrix.

    An array of more than a quarter of the budget is unpacked to a temporary file and mapped into memory.
    """
    with readable(path):
        shapes = _shapes(path)
        if set(shapes) >= SPARSE_MARKS and array is None:
            return array_table(path, "sparse matrix (npz)", sp.load_npz(path).tocsr(), choices, budget)
    name = _chosen(path, shapes, array)
    shape, dtype = shapes[name]
    check_array(path, shape, dtype, f"array {name!r}")
    beside = _beside(path, shapes, shape[0])
    size = float(np.prod(shape)) * dtype.itemsize
    if size <= budget / 4:
        with readable(path), np.load(path, allow_pickle=False) as stored:
            X = stored[name]
        return array_table(path, "NumPy archive", X, choices, budget, beside=beside)
    with Spool(path, int(np.prod(shape[1:])), dtype, size) as spool:
        with readable(path), zipfile.ZipFile(path) as packed, packed.open(name + ".npy") as member:
            spool.unpack(member)
            X = _mapped(spool.path, path)
        return array_table(path, "NumPy archive", X, choices, budget, spool, beside=beside)


def _beside(path: Path, shapes: Shapes, n: int) -> Any:
    """Arrays of one entry for each row, such as labels, as a ``pyarrow.Table``; None where there are none."""
    names = [key for key, (shape, dtype) in shapes.items() if shape == (n,) and dtype.kind in "fiubU"]
    if not names:
        return None
    with readable(path), np.load(path, allow_pickle=False) as stored:
        return library("pyarrow", path).table({name: native(stored[name]) for name in names})


def open_matrix_market(path: Path, choices: ColumnChoices, budget: float) -> Table:
    """A .mtx file, as CSR or, where it is written in full, as an array."""
    from scipy.io import mminfo, mmread

    with readable(path, "Write it again, for example with scipy.io.mmwrite."):
        n, d, filled, form, kind, _ = mminfo(path)
        if kind == "complex":
            raise FileFault(path, "holds complex numbers", "Save real and imaginary parts as columns of their own.")
        need = 8.0 * n * d if form == "array" else 24.0 * filled
        if need > budget / 2:
            raise FileFault(
                path,
                f"its {filled:,} numbers need about {need / 1e9:.1f} GB to be read, more than half of the memory budget",
                "Raise --memory-budget, or save it in a format that is read in pieces: dense as .npy, sparse as .h5ad.",
            )
        X = mmread(path)
        X = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)
    check_array(path, X.shape, X.dtype)
    return array_table(path, "Matrix Market file", X, choices, budget)


def array_table(
    path: Path,
    kind: str,
    X: Any,
    choices: ColumnChoices,
    budget: float,
    spool: Spool | None = None,
    records: Records | None = None,
    names: Sequence[str] | None = None,
    beside: Any = None,
    **known: Any,
) -> Table:
    """A table of an array: its rows have no names, unless records or columns beside it give them.

    Pictures in an array are rows of as many numbers as they have pixels.
    """
    check_array(path, X.shape, X.dtype)
    stack = X if is_stack(X.shape) else None
    if stack is not None:
        X = X.reshape(len(X), -1)
        size = " × ".join(str(size) for size in stack.shape[1:])
        known["notes"] = [
            *known.get("notes", ()),
            f"Rows are shown as pictures of {size} pixels, {X.shape[1]:,} numbers.",
        ]
    if sp.issparse(X):
        X = sp.csr_array(X)
        X.sum_duplicates()
    shown = X
    if X.dtype.kind != "f" and not isinstance(X, np.memmap):
        X = X.astype(np.float64)
    frame = None
    if beside is not None:
        records = Beside(beside, Bare(shown, names))
        frame = Frame(path, kind, beside.schema, records, beside)
        check_beside(
            frame, choices, "array of one entry for each row", "Leave the option out, or save it as CSV or Parquet."
        )
        known["id_name"] = choices.id
    elif records is None:
        refuse_columns(path, choices)
    numbers = finite(path, X, names, lambda number: None, choices.drop_missing, budget / 4)

    def clean() -> None:
        for one in (numbers.clean, None if spool is None else spool.close):
            if one is not None:
                one()

    made = (Table if stack is None else StackTable)(
        path,
        kind,
        numbers.X,
        Bare(shown, names) if records is None else records,
        feature_names=names,
        dropped=numbers.dropped,
        notes=[*known.pop("notes", ()), *numbers.notes],
        clean=clean,
        **known,
    )
    if isinstance(made, StackTable):
        made._stack = stack
    return made if frame is None else annotated(made, frame, choices)


def check_array(path: Path, shape: Sequence[int], dtype: Any, what: str = "the array") -> None:
    """Refuse what is no table of real numbers."""
    if np.dtype(dtype).kind not in "fiub":
        said = "objects" if np.dtype(dtype).kind == "O" else "text" if np.dtype(dtype).kind in "US" else f"{dtype}"
        raise FileFault(
            path,
            f"{what} holds {said}, no real numbers",
            "Save it as float64 with numpy.save(file, X.astype(float)), or columns of several types as Parquet.",
        )
    if len(shape) != 2 and not is_stack(shape):
        remedy = "X.reshape(-1, 1) if every number is a point" if len(shape) == 1 else "X.reshape(len(X), -1)"
        raise FileFault(
            path,
            f"{what} has {len(shape)} dimensions, shape {tuple(int(size) for size in shape)}; rows and columns are needed",
            f"Save it as a table: {remedy}.",
        )
    if 0 in shape:
        raise FileFault(
            path,
            f"{what} is empty, shape {tuple(int(size) for size in shape)}",
            "Save it again with its rows and columns.",
        )


def refuse_columns(path: Path, choices: ColumnChoices, what: str = "is an array, whose columns have no names") -> None:
    """An array has no columns that could be named, and neither have pictures."""
    given = {**{f"--{part}": column for column, part in choices.named.items()}, "--columns": choices.columns}
    given["--exclude-columns"] = choices.exclude_columns
    for option, value in given.items():
        if value is not None:
            raise FileFault(
                path,
                f"{what} ({option})",
                "Save it with names, as CSV or Parquet, or leave this option out.",
            )


def _mapped(path: Path, shown: Path) -> Any:
    """A .npy file as a memory map, after a look at what it holds."""
    with path.open("rb") as file:
        shape, dtype = _header(file)
        begin = file.tell()
    check_array(shown, shape, dtype)
    expected, found = begin + int(np.prod(shape)) * dtype.itemsize, path.stat().st_size
    if found < expected:
        raise FileFault(
            shown,
            f"is cut off: {found:,} bytes instead of {expected:,} for shape {shape}",
            "Copy or write it again; it was not written completely.",
        )
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _shapes(path: Path) -> Shapes:
    """Names, shapes and types of the arrays of a .npz file, without reading them."""
    found = {}
    with zipfile.ZipFile(path) as packed:
        for member in packed.namelist():
            if member.endswith(".npy"):
                with packed.open(member) as file:
                    found[member[:-4]] = _header(file)
    return found


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a .npy file. Versions 2 and 3 differ in names of fields only, which numbers have not."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _chosen(path: Path, shapes: Shapes, array: str | None) -> str:
    """The array that is meant."""
    if array is not None:
        if array not in shapes:
            raise unknown_name(path, "array", array, list(shapes))
        return array
    tables = [name for name, (shape, _) in shapes.items() if len(shape) == 2]
    tables = tables or [name for name, (shape, _) in shapes.items() if is_stack(shape)]
    if len(tables) == 1:
        return tables[0]
    if len(shapes) == 1:
        return next(iter(shapes))  # its shape is refused elsewhere, with a remedy
    inside = listed([f"{name} {shape}" for name, (shape, _) in shapes.items()]) or "none"
    many = "several arrays of" if tables else "no array of"
    raise FileFault(
        path,
        f"has {many} two dimensions: {inside}",
        "Name the one that is meant: --array NAME" if shapes else "Save one in it.",
    )
