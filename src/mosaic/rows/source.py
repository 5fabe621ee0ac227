"""From what a user has to a source of rows; and stored arrays, which stay in their file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

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


def owner_of(X: Any) -> str:
    """The package that the type of X comes from."""
    return type(X).__module__.partition(".")[0]


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
    X : array, CSR matrix, memory map; path or stream of rows that :func:`mosaic.read` reads; Zarr array, HDF5 data
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
        from mosaic.rows.open import read

        rows = read(X)
        X, names = rows.X, rows.feature_names
    if isinstance(X, LocalSource) and n_jobs is not None:
        X = copy(X)
        X.n_jobs = n_jobs
    if isinstance(X, Source):
        return X
    owner = owner_of(X)
    if owner == "dask":
        from mosaic.rows.dask import DaskSource

        return DaskSource.of(X)
    if owner == "ray":
        from mosaic.rows.ray import RaySource

        return RaySource.of(X)
    if owner in ARRAY_KINDS:
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
    """An array that is stored in chunks of rows, or whatever has slices of them: pieces are whole chunks, small ones several.

    ``where`` is what it is called in messages, or the file that it is in.
    """

    def __init__(self, X: Any, kind: str, where: str | Path, n_jobs: int | None = None, names: Sequence[str] | None = None):
        _check_stored(X, where)
        super().__init__(X, kind, n_jobs)
        self.where, self.names = where, names
        self.files = [where] if isinstance(where, Path) and where.is_file() else []
        chunks = getattr(X, "chunks", None)
        chunk = int(chunks[0]) if chunks else 1
        self._step = chunk * -(-BLOCK_ROWS // chunk)

    def pieces(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self.n, self._step):
            yield start, min(start + self._step, self.n)

    def read(self, start: int, stop: int) -> Any:
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
        return self.__dict__ | {"X": InFile(handle.file.filename, handle.name) if in_file else self.X}


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


def _handle(X: Any) -> Any:
    """What knows the file of an array; sparse data sets of AnnData are groups."""
    return getattr(X, "group", X)


def _check_stored(X: Any, where: str | Path) -> None:
    """Refuse an array that is no table of real numbers with rows to slice."""
    shape = tuple(X.shape or ())
    fault = remedy = None
    if len(shape) != 2:
        fault = f"must have two dimensions, points and features; got shape {shape}"
        remedy = f"Save it as a table, e.g. {'X.reshape(-1, 1)' if len(shape) == 1 else 'X.reshape(len(X), -1)'}."
    elif X.dtype.kind not in "fiub":
        fault = f"must hold real numbers; got dtype {X.dtype}"
        remedy = "Save it as float64, or columns of several types as Parquet."
    elif getattr(X, "format", "csr") != "csr":
        fault = f"is stored by columns ({X.format.upper()}), so that every row costs a pass over the file"
        remedy = "Read it into memory, or save it as CSR: adata.X = adata.X.tocsr()."
    if fault is not None and isinstance(where, Path):
        raise FileFault(where, fault, remedy)
    if fault is not None:
        raise InvalidInputError(f"{where} {fault}", remedy)
    check_shape(shape, str(where))


def _open_stored(X: Any, n_jobs: int | None) -> Source:
    """A source of the rows of a ``zarr.Array``, ``h5py.Dataset`` or of X of an ``anndata.AnnData``, CSR or dense."""
    owner, kind, where = owner_of(X), None, "X"
    names: list[str] | None = None
    if hasattr(X, "var_names"):
        X, kind, where, names = X.X, "AnnData", "adata.X", [str(name) for name in X.var_names]
        if X is None:
            remedy = "Put what is to be read there, for example adata.X = adata.layers['counts']."
            raise InvalidInputError("adata.X is None", remedy)
        if not (isinstance(X, np.ndarray) or sp.issparse(X) or owner_of(X) in ARRAY_KINDS):
            fault = f"adata.X is a {type(X).__name__}, no array in memory or in a file"
            raise InvalidInputError(fault, "Pass adata.X itself.")
    elif hasattr(X, "members") or hasattr(X, "visititems"):
        arrays: list[str] = []
        if owner == "zarr":
            arrays = [name for name, member in X.members(max_depth=None) if hasattr(member, "chunks")]
        else:
            X.visititems(lambda name, member: arrays.append(name) if hasattr(member, "chunks") else None)
        inside = f"of the arrays {listed(sorted(arrays))}" if arrays else "without any array"
        fault = f"X is {'a Zarr' if owner == 'zarr' else 'an HDF5'} group {inside}; rows are read of one array"
        raise InvalidInputError(fault, "Open the group and pass one, as in group[name].")
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return StoredArray(X.tocsr() if sp.issparse(X) else X, kind or "array", where, n_jobs, names)
    if not hasattr(X, "shape"):
        fault = f"X is a {type(X).__name__}, of which no rows are read"
        raise InvalidInputError(fault, "Pass a path, a Zarr array, an HDF5 data set or an AnnData.")
    return StoredArray(X, kind or ARRAY_KINDS[owner], where, n_jobs, names)
