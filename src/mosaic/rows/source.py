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
from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import FileFault, readable
from mosaic.sketch.sources import ArraySource, LocalSource, Source
from mosaic.text import library

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
        from mosaic.sketch.dask import DaskSource

        return DaskSource.of(X)
    if owner == "ray":
        from mosaic.sketch.ray import RaySource

        return RaySource.of(X)
    if hasattr(X, "var_names"):
        names, stored = [str(name) for name in X.var_names], X.X
        if isinstance(stored, np.ndarray) or sp.issparse(stored) or owner_of(stored) in ARRAY_KINDS:
            stored = stored.tocsr() if sp.issparse(stored) else stored
            return StoredArray(stored, ARRAY_KINDS[owner], "adata.X", n_jobs, names)
        fault = f"adata.X is a {type(stored).__name__}, no array in memory or in a file"
        raise InvalidInputError(fault, "Pass it itself, or put what is to be read there: adata.X = adata.layers['counts'].")
    if hasattr(X, "shape") and owner in ARRAY_KINDS:
        return StoredArray(X, ARRAY_KINDS[owner], "X", n_jobs)
    if hasattr(X, "shape") and len(X.shape) == 2 and not hasattr(X, "columns"):
        source = ArraySource(X, "memory map" if isinstance(X, np.memmap) else "array", n_jobs)
        source.names = names
        return source
    raise InvalidInputError(
        f"X must be a table of numbers whose rows can be read; got {type(X).__name__}",
        "Pass an array with two dimensions, such as group[name] of Zarr or HDF5, a path, or a Dask or Ray collection.",
    )


class StoredArray(ArraySource):
    """An array that is stored in chunks of rows, or whatever has slices of them: pieces are whole chunks, small ones several.

    ``where`` is what it is called in messages, or the file that it is in.
    """

    def __init__(self, X: Any, kind: str, where: str | Path, n_jobs: int | None = None, names: Sequence[str] | None = None):
        check_array(X.shape, X.dtype, where)
        if getattr(X, "format", "csr") != "csr":
            fault = f"is stored by columns ({X.format.upper()}), so that every row costs a pass over the file"
            raise fault_of(where, fault, "Read it into memory, or save it as CSR: adata.X = adata.X.tocsr().")
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


def fault_of(where: str | Path, fault: str, remedy: str) -> InvalidInputError:
    """Of a file, or of what an argument is called."""
    return FileFault(where, fault, remedy) if isinstance(where, Path) else InvalidInputError(f"{where} {fault}", remedy)


def check_array(shape: Any, dtype: Any, where: str | Path, what: str = "") -> None:
    """Refuse an array that is no table of real numbers."""
    shape, kind = tuple(int(size) for size in shape or ()), np.dtype(dtype).kind
    if kind not in "fiub":
        said = "objects" if kind == "O" else "text" if kind in "US" else f"{dtype}"
        remedy = "Save it as float64 with numpy.save(file, X.astype(float)), or columns of several types as Parquet."
        raise fault_of(where, f"{what}holds {said}, no real numbers", remedy)
    if len(shape) != 2:
        fault = f"{what}has {len(shape)} dimensions, shape {shape}; rows and columns are needed"
        remedy = "X.reshape(-1, 1) if every number is a point" if len(shape) == 1 else "X.reshape(len(X), -1)"
        raise fault_of(where, fault, f"Save it as a table: {remedy}.")
    if 0 in shape:
        raise fault_of(where, f"{what}is empty, shape {shape}", "Save it again with its rows and columns.")
