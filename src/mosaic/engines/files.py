"""Files of this machine: NumPy, Parquet, Zarr, HDF5 and AnnData, read in the pieces that they are stored in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._files import library, listed, readable
from mosaic.engines.base import Source, check_shape
from mosaic.engines.local import ArraySource
from mosaic.exceptions import InvalidInputError
from mosaic.passes import BLOCK_ROWS

#: What Zarr puts into the folder of an array or a group, in its third and its second format.
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")
KINDS = {"zarr": "Zarr array", "h5py": "HDF5 data set", "anndata": "AnnData"}


def open_file(X: Any, n_jobs: int | None = None) -> Source:
    """A source of the rows of a file, or of something opened by the library that knows its kind.

    Parameters
    ----------
    X : path of a .npy, .parquet, .zarr or .h5ad file, or of a folder of Parquet files, which are read in the order of
        their names; ``zarr.Array``, ``h5py.Dataset``, ``anndata.AnnData``
    n_jobs : threads that read and map

    Raises
    ------
    FileNotFoundError
        if nothing is there.
    InvalidInputError
        if it is another kind of file, damaged, empty or no table of real numbers.
    MissingDependencyError
        if the library that reads it is not installed.

    Notes
    -----
    1. Of Parquet files columns of numbers are read, missing values as NaN; see ``parquet``.
    2. Of AnnData only X is read, CSR or dense. Nothing else of an .h5ad file is taken into memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "points.npy"), np.eye(3))
    ...     source = open_file(Path(folder, "points.npy"))
    >>> source.kind, source.n, source.n_features
    ('memory map', 3, 3)
    """
    if not isinstance(X, (str, os.PathLike)):
        return _open_object(X, n_jobs)
    path = Path(X)
    ending = path.suffix.lower()
    if not path.exists():
        raise FileNotFoundError(f"{X}: there is no such file or folder. Check the path; it is seen from {Path.cwd()}.")
    if ending == ".npy":
        with readable(path):
            mapped = np.lib.format.open_memmap(path, mode="r")
        _check_table(mapped, str(path))
        return ArraySource(mapped, "memory map", n_jobs)
    if ending == ".zarr" or any((path / mark).exists() for mark in ZARR_MARKS):
        zarr = library("zarr", path)
        with readable(path):
            stored = zarr.open(str(path), mode="r")
        return _open_object(stored, n_jobs, str(path))
    if ending == ".h5ad":
        return _open_h5ad(path, n_jobs)
    if ending == ".parquet" or path.is_dir():
        from mosaic.engines.parquet import ParquetSource

        return ParquetSource(path, n_jobs)
    raise InvalidInputError(
        f"{path} ends in {path.suffix!r}; rows are read of .npy, .parquet, .zarr and .h5ad files. Save it as one of these, for "
        "example with pandas.DataFrame.to_parquet; of other HDF5 files open the data set with h5py and pass that."
    )


class StoredArray(ArraySource):
    """An array that is stored in chunks of rows: pieces are whole chunks, small ones several at a time."""

    def __init__(self, X: Any, kind: str, where: str, n_jobs: int | None = None, names: Sequence[str] | None = None):
        _check_table(X, where)
        super().__init__(X, kind, n_jobs)
        self.where, self.names = where, names
        chunks = getattr(X, "chunks", None)
        chunk = int(chunks[0]) if chunks else 1
        self._step = chunk * -(-BLOCK_ROWS // chunk)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Whole chunks, as many as make a block."""
        for start in range(0, self.n, self._step):
            yield start, min(start + self._step, self.n)

    def read(self, start: int, stop: int) -> Any:
        """A slice."""
        with readable(self.where):
            if isinstance(self.X, _InFile):
                self.X = self.X.open()
            return super().read(start, stop)

    def __getstate__(self) -> dict[str, Any]:
        # HDF5 handles belong to a process; another one opens the file itself, once it reads.
        handle = getattr(self.X, "group", self.X)  # sparse data sets of AnnData are groups
        in_file = type(handle).__module__.partition(".")[0] == "h5py"
        return self.__dict__ | ({"X": _InFile(handle.file.filename, handle.name)} if in_file else {})


@dataclass(frozen=True)
class _InFile:
    """Where an array is in an HDF5 file."""

    path: str
    name: str

    def open(self) -> Any:
        h5py = library("h5py", self.path)
        stored = h5py.File(self.path, "r")[self.name]
        return stored if isinstance(stored, h5py.Dataset) else library("anndata.io", self.path).sparse_dataset(stored)


def _open_object(X: Any, n_jobs: int | None, where: str = "X") -> Source:
    owner = type(X).__module__.partition(".")[0]
    if hasattr(X, "var_names"):
        return _open_anndata(X, n_jobs)
    if owner == "zarr" and hasattr(X, "members"):
        arrays = [name for name, member in X.members(max_depth=None) if hasattr(member, "chunks")]
        raise InvalidInputError(_group(where, "a Zarr group", arrays))
    if owner == "h5py" and hasattr(X, "visititems"):
        arrays = []
        X.visititems(lambda name, member: arrays.append(name) if hasattr(member, "chunks") else None)
        raise InvalidInputError(_group(where, "an HDF5 group", arrays))
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return StoredArray(X.tocsr() if sp.issparse(X) else X, "array", where, n_jobs)
    if owner not in KINDS or not hasattr(X, "shape"):
        raise InvalidInputError(
            f"X is a {type(X).__name__}, of which no rows are read. Pass a path, a Zarr array, an HDF5 data set or an AnnData."
        )
    return StoredArray(X, KINDS[owner], where, n_jobs)


def _open_anndata(adata: Any, n_jobs: int | None) -> Source:
    X = adata.X
    if X is None:
        raise InvalidInputError(
            "adata.X is None. Put what is to be read there, for example adata.X = adata.layers['counts']."
        )
    if not (isinstance(X, np.ndarray) or sp.issparse(X) or type(X).__module__.partition(".")[0] in KINDS):
        raise InvalidInputError(
            f"adata.X is a {type(X).__name__}, no array in memory or in a file. Pass adata.X itself."
        )
    X = X.tocsr() if sp.issparse(X) else X
    return StoredArray(X, "AnnData", "adata.X", n_jobs, [str(name) for name in adata.var_names])


def _open_h5ad(path: Path, n_jobs: int | None) -> Source:
    h5py, io = library("h5py", path), library("anndata.io", path)
    with readable(path), h5py.File(path, "r") as file:
        names = [str(name) for name in io.read_elem(file["var"][file["var"].attrs["_index"]])]
    return open_h5ad_array(path, "X", names, n_jobs)


def open_h5ad_array(
    path: Path, name: str, names: Sequence[str] | None = None, n_jobs: int | None = None
) -> StoredArray:
    """Rows of one array of an .h5ad file, dense or CSR; nothing else of it is taken into memory.

    Parameters
    ----------
    path : of the file
    name : of the array in it, as ``"X"`` or ``"layers/counts"``
    names : of its columns
    n_jobs : threads that read and map
    """
    # anndata.read_h5ad(backed="r") would take everything but X into memory, layers as large as X among them.
    with readable(path):
        X = _InFile(str(path), name).open()
    return StoredArray(X, "AnnData file", str(path), n_jobs, names)


def _check_table(X: Any, where: str) -> None:
    """Refuse what is no table of real numbers with rows to slice."""
    shape = tuple(X.shape or ())
    if len(shape) != 2:
        remedy = "X.reshape(-1, 1)" if len(shape) == 1 else "X.reshape(len(X), -1)"
        raise InvalidInputError(
            f"{where} must have two dimensions, points and features; got shape {shape}. Save it as a table, e.g. {remedy}."
        )
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{where} must hold real numbers; got dtype {X.dtype}. Save it as float64, or columns of several types as Parquet."
        )
    if getattr(X, "format", "csr") != "csr":
        raise InvalidInputError(
            f"{where} is stored by columns ({X.format.upper()}), so that every row costs a pass over the file. Read it into "
            "memory, or save it as CSR: adata.X = adata.X.tocsr()."
        )
    check_shape(*shape, where)


def _group(where: str, kind: str, arrays: list[str]) -> str:
    inside = f"of the arrays {listed(sorted(arrays))}" if arrays else "without any array"
    return f"{where} is {kind} {inside}; rows are read of one array. Open the group and pass one, as in group[name]."
