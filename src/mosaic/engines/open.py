"""Make a source of rows from an array, a path or a collection."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.engines.base import Source
from mosaic.engines.local import ArraySource, LocalSource
from mosaic.exceptions import InvalidInputError


def is_source(X: Any) -> bool:
    """Whether X is read in passes instead of being loaded into memory: a path, a collection on a cluster …

    Memory maps are arrays; whether they are loaded into memory depends on their size.
    """
    if isinstance(X, np.ndarray) or sp.issparse(X):  # subclasses included
        return False
    library = type(X).__module__.partition(".")[0]
    return isinstance(X, (str, PathLike, Source)) or library in ("dask", "ray", "zarr", "h5py", "anndata")


def open_source(X: Any, n_jobs: int | None = None) -> Source:
    """A source of the rows of X.

    Parameters
    ----------
    X : array, CSR matrix, memory map; path of any file that :func:`mosaic.data.open_table` reads; Zarr array, HDF5 data set,
        AnnData; Dask array or data frame; Ray data set
    n_jobs : threads of this machine; clusters have their own workers

    Examples
    --------
    >>> import numpy as np
    >>> source = open_source(np.eye(3))
    >>> source.kind, source.n, source.n_features
    ('array', 3, 3)
    """
    names = None
    if isinstance(X, (str, PathLike)):
        from mosaic.data.opening import read_file

        X, names = read_file(X)[:2]
    if isinstance(X, LocalSource) and n_jobs is not None:
        X = copy(X)
        X.n_jobs = n_jobs
    if isinstance(X, Source):
        return X
    library = type(X).__module__.partition(".")[0]
    if library == "dask":
        from mosaic.engines.dask import DaskSource

        return DaskSource.of(X)
    if library == "ray":
        from mosaic.engines.ray import RaySource

        return RaySource.of(X)
    if library in ("zarr", "h5py", "anndata"):
        from mosaic.data.sources import open_object

        return open_object(X, n_jobs)
    if hasattr(X, "shape") and len(X.shape) == 2 and not hasattr(X, "columns"):
        source = ArraySource(X, "memory map" if isinstance(X, np.memmap) else "array", n_jobs)
        source.names = names
        return source
    raise InvalidInputError(
        f"X must be a table of numbers whose rows can be read; got {type(X).__name__}",
        "Pass an array with two dimensions, a path, or a Dask or Ray collection.",
    )
