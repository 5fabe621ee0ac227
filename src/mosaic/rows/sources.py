"""From what a user has to a source of rows; stored arrays, which stay in their file, and sources without some of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.door import check_shape
from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import FileFault, readable
from mosaic.sketch.sources import ArraySource, LocalSource, Source
from mosaic.text import library, listed

#: Packages whose frames are in memory, although some of them are Arrow streams, too.
FRAMES = ("pandas", "polars", "narwhals", "modin", "cudf")
#: Packages whose arrays are read in slices, and what these are called.
ARRAY_KINDS = {"zarr": "Zarr array", "h5py": "HDF5 data set", "anndata": "AnnData"}


def is_source(X: Any) -> bool:
    """Whether X is read in passes and not taken into memory as a whole: a path, a collection on a cluster …

    Memory maps are arrays; whether they are taken into memory depends on their size.
    """
    if isinstance(X, np.ndarray) or sp.issparse(X):  # of whatever subclass
        return False
    return isinstance(X, (str, PathLike, Source)) or owner_of(X) in ("dask", "ray", *ARRAY_KINDS) or is_stream(X)


def is_stream(X: Any) -> bool:
    """Whether rows are got from X as an Arrow stream: results of DuckDB and ADBC, Hugging Face ``datasets``, and their like.

    Data frames in memory are none, although some of them can be read as streams.
    """
    owner = owner_of(X)
    if owner in FRAMES or isinstance(X, (type, np.ndarray, Source)):
        return False
    if owner == "pyarrow":
        return type(X).__name__ in ("RecordBatchReader", "RecordBatch")
    return hasattr(X, "__arrow_c_stream__") or (owner == "datasets" and hasattr(X, "with_format"))


def open_source(X: Any, n_jobs: int | None = None) -> Source:
    """A source of the rows of X.

    Parameters
    ----------
    X : array, CSR matrix, memory map; path or stream of rows that :func:`mosaic.rows.open_table` reads; Zarr array, HDF5 data
        set, AnnData; Dask array or data frame; Ray data set
    n_jobs : threads of this machine; clusters have their own workers

    Examples
    --------
    >>> import numpy as np
    >>> source = open_source(np.eye(3))
    >>> source.kind, source.n, source.n_features
    ('array', 3, 3)
    """
    names = None
    if isinstance(X, (str, PathLike)) or is_stream(X):
        from mosaic.rows.opening import read_file

        table = read_file(X)
        X, names = table.X, table.feature_names
    if isinstance(X, LocalSource) and n_jobs is not None:
        X = copy(X)
        X.n_jobs = n_jobs
    if isinstance(X, Source):
        return X
    if owner_of(X) == "dask":
        from mosaic.sketch.dask import DaskSource

        return DaskSource.of(X)
    if owner_of(X) == "ray":
        from mosaic.sketch.ray import RaySource

        return RaySource.of(X)
    if owner_of(X) in ARRAY_KINDS:
        return _open_stored(X, n_jobs)
    if hasattr(X, "shape") and len(X.shape) == 2 and not hasattr(X, "columns"):
        source = ArraySource(X, "memory map" if isinstance(X, np.memmap) else "array", n_jobs)
        source.names = names
        return source
    raise InvalidInputError(
        f"X must be a table of numbers whose rows can be read; got {type(X).__name__}",
        "Pass an array with two dimensions, a path, or a Dask or Ray collection.",
    )


class StoredArray(ArraySource):
    """An array that is stored in chunks of rows: pieces are whole chunks, small ones several at a time.

    Parameters
    ----------
    X : anything of two dimensions with slices of rows
    kind : what it is, as a person would say it
    where : what it is called in messages, or the file that it is in
    n_jobs : threads that read and map
    names : of its columns
    """

    def __init__(
        self, X: Any, kind: str, where: str | Path, n_jobs: int | None = None, names: Sequence[str] | None = None
    ):
        check_stored(X, where)
        super().__init__(X, kind, n_jobs)
        self.where, self.names = where, names
        self.files = [where] if isinstance(where, Path) and where.is_file() else []
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
            if isinstance(self.X, InFile):
                self.X = self.X.open()
            return super().read(start, stop)

    def close(self) -> None:
        """Close the HDF5 file of the array, if it is in one."""
        close = getattr(getattr(_handle(self.X), "file", None), "close", None)
        if close is not None:
            close()

    def __getstate__(self) -> dict[str, Any]:
        # HDF5 handles belong to a process; another one opens the file itself when it reads.
        handle = _handle(self.X)
        in_file = owner_of(handle) == "h5py"
        X = InFile(handle.file.filename, handle.name) if in_file else self.X
        return self.__dict__ | {"X": X}


@dataclass(frozen=True)
class InFile:
    """Where an array is in an HDF5 file."""

    path: str
    name: str

    def open(self) -> Any:
        """The array, or a sparse data set of AnnData."""
        h5py = library("h5py", self.path)
        stored = h5py.File(self.path, "r")[self.name]
        return stored if isinstance(stored, h5py.Dataset) else library("anndata.io", self.path).sparse_dataset(stored)


class SelectedRows(LocalSource):
    """The rows of another source, without some of them.

    Parameters
    ----------
    source : of all rows
    dropped : numbers of the rows that are left out, in order
    """

    def __init__(self, source: LocalSource, dropped: IntArray):
        self.kind, self.names, self.n_jobs = source.kind, source.names, source.n_jobs
        self.n_features, self.buffers = source.n_features, source.buffers
        self.files = source.files
        self.n, self._source, self._dropped = source.n - len(dropped), source, np.asarray(dropped)
        # For every dropped row, how many of the rows that are left come before it.
        self._kept_before = self._dropped - np.arange(len(dropped))

    def stream(self) -> Iterator[tuple[int, Any]]:
        """Rows of the other source, as far as they are left."""
        for start, rows in self._source.stream():
            before, behind = np.searchsorted(self._dropped, [start, start + rows.shape[0]])
            left = np.delete(rows, self._dropped[before:behind] - start, axis=0)
            if left.shape[0]:
                yield start - int(before), left

    def read(self, start: int, stop: int) -> Any:
        """Rows of the other source, less those that are left out."""
        first, last = self._number(start), self._number(stop - 1)
        inside = self._dropped[(self._dropped >= first) & (self._dropped <= last)]
        return np.delete(self._source.read(first, last + 1), inside - first, axis=0)

    def release(self, n_rows: int) -> None:
        """What the other source does."""
        self._source.release(self._source.n if n_rows == self.n else self._number(n_rows))

    def _number(self, row: int) -> int:
        """Number in the other source of a row that is left."""
        return row + int(np.searchsorted(self._kept_before, row, side="right"))


def check_stored(X: Any, where: str | Path) -> None:
    """Refuse an array that is no table of real numbers with rows to slice."""

    def refused(fault: str, remedy: str) -> InvalidInputError:
        return (
            FileFault(where, fault, remedy)
            if isinstance(where, Path)
            else InvalidInputError(f"{where} {fault}", remedy)
        )

    shape = tuple(X.shape or ())
    if len(shape) != 2:
        remedy = "X.reshape(-1, 1)" if len(shape) == 1 else "X.reshape(len(X), -1)"
        raise refused(
            f"must have two dimensions, points and features; got shape {shape}", f"Save it as a table, e.g. {remedy}."
        )
    if X.dtype.kind not in "fiub":
        raise refused(
            f"must hold real numbers; got dtype {X.dtype}",
            "Save it as float64, or columns of several types as Parquet.",
        )
    if getattr(X, "format", "csr") != "csr":
        raise refused(
            f"is stored by columns ({X.format.upper()}), so that every row costs a pass over the file",
            "Read it into memory, or save it as CSR: adata.X = adata.X.tocsr().",
        )
    check_shape(shape, str(where))


def _open_stored(X: Any, n_jobs: int | None) -> Source:
    """A source of the rows of a ``zarr.Array``, ``h5py.Dataset`` or ``anndata.AnnData``, or of an array that AnnData holds.

    Notes
    -----
    1. Of AnnData only X is read, CSR or dense.
    """
    owner = owner_of(X)
    if hasattr(X, "var_names"):
        return _open_anndata(X, n_jobs)
    if owner == "zarr" and hasattr(X, "members"):
        raise _is_group(
            "a Zarr group", [name for name, member in X.members(max_depth=None) if hasattr(member, "chunks")]
        )
    if owner == "h5py" and hasattr(X, "visititems"):
        arrays: list[str] = []
        X.visititems(lambda name, member: arrays.append(name) if hasattr(member, "chunks") else None)
        raise _is_group("an HDF5 group", arrays)
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return StoredArray(X.tocsr() if sp.issparse(X) else X, "array", "X", n_jobs)
    if not hasattr(X, "shape"):
        raise InvalidInputError(
            f"X is a {type(X).__name__}, of which no rows are read",
            "Pass a path, a Zarr array, an HDF5 data set or an AnnData.",
        )
    return StoredArray(X, ARRAY_KINDS[owner], "X", n_jobs)


def _open_anndata(adata: Any, n_jobs: int | None) -> Source:
    X = adata.X
    if X is None:
        raise InvalidInputError(
            "adata.X is None", "Put what is to be read there, for example adata.X = adata.layers['counts']."
        )
    if not (isinstance(X, np.ndarray) or sp.issparse(X) or owner_of(X) in ARRAY_KINDS):
        raise InvalidInputError(
            f"adata.X is a {type(X).__name__}, no array in memory or in a file", "Pass adata.X itself."
        )
    X = X.tocsr() if sp.issparse(X) else X
    return StoredArray(X, "AnnData", "adata.X", n_jobs, [str(name) for name in adata.var_names])


def owner_of(X: Any) -> str:
    """The package that the type of X comes from."""
    return type(X).__module__.partition(".")[0]


def _handle(X: Any) -> Any:
    """What knows the file of an array; sparse data sets of AnnData are groups."""
    return getattr(X, "group", X)


def _is_group(kind: str, arrays: list[str]) -> InvalidInputError:
    inside = f"of the arrays {listed(sorted(arrays))}" if arrays else "without any array"
    return InvalidInputError(
        f"X is {kind} {inside}; rows are read of one array", "Open the group and pass one, as in group[name]."
    )
