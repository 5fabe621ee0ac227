"""Arrays: NumPy's own files, SciPy's sparse ones, Zarr and AnnData; and from what a user has to a source of rows."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mosaic.arrays.blocks import check_numbers, check_shape
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import ArraySource, Source
from mosaic.choosing.budget import may_load
from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import FileFault, readable
from mosaic.rows.frames import cells_of
from mosaic.rows.roles import Request, Roles, check_names, check_weight, refuse_columns
from mosaic.rows.rows import Rows
from mosaic.rows.tables import InMemory
from mosaic.text import Library, listed

zarr = Library("zarr")
h5py = Library("h5py")
io = Library("anndata.io")

#: Packages whose arrays are read in slices, and what these are called.
ARRAY_KINDS = {"zarr": "Zarr array", "h5py": "HDF5 data set", "anndata": "AnnData"}

#: Rows by which it is seen whether an array holds counts.
LOOKED_AT = 100


def owner_of(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def arrow_kind(X: object) -> str | None:
    """What X of pyarrow is called if its rows are still to be read; None for all else."""
    kinds = ("Dataset", "Scanner", "ParquetFile", "RecordBatchReader")
    for each in type(X).__mro__:
        if owner_of(X) == "pyarrow" and each.__name__ in kinds:
            return f"pyarrow {each.__name__}"
    return None


def is_stored(X: object) -> bool:
    """Whether X is an array or a collection that stays where it is. Memory maps are arrays."""
    return (
        isinstance(X, Source)
        or arrow_kind(X) is not None
        or owner_of(X) in ("dask", "ray", "pyspark", *ARRAY_KINDS)
    )


def stored_source(X: Any) -> Source | None:
    """The rows of a Zarr array, HDF5 data set or AnnData; None for all else."""
    if isinstance(X, Source):
        return X
    owner = owner_of(X)
    if owner == "anndata" and hasattr(X, "var_names"):
        stored = X.X.tocsr() if sp.issparse(X.X) else X.X
        return StoredArray(
            stored, ARRAY_KINDS[owner], "adata.X", [str(name) for name in X.var_names]
        )
    if owner in ARRAY_KINDS:
        if not hasattr(X, "shape"):
            remedy = "Pass an array with two dimensions, such as group[name]."
            raise InvalidInputError(f"X must be an array of rows; got {type(X).__name__}", remedy)
        return StoredArray(X, ARRAY_KINDS[owner], "X")
    return None


def hint_at_components(X: Any, obsm: Collection[str]) -> list[str]:
    """A sentence on principal components that are there beside counts, which differ by their sums above all."""
    if "X_pca" not in obsm or not X.shape[0]:
        return []
    some = X[: min(X.shape[0], LOOKED_AT)]
    some = some.data if sp.issparse(some) else np.asarray(some)
    if not some.any() or (some < 0).any() or (some != np.round(some)).any():
        return []
    return [
        "X holds counts, which are compared as they are; obsm['X_pca'] has their principal components."
    ]


class StoredArray(ArraySource):
    """An array that is stored in chunks of rows; pieces are whole chunks. ``where`` is its file, or what messages call it."""

    def __init__(self, X: Any, kind: str, where: str | Path, names: Sequence[str] | None = None):
        if getattr(X, "format", "csr") != "csr":
            fault = f"{where} is stored by columns ({X.format.upper()}), so that every row costs a pass over the file"
            raise InvalidInputError(
                fault, "Read it into memory, or save it as CSR: adata.X = adata.X.tocsr()."
            )
        check_numbers(X.dtype)
        super().__init__(X, kind)
        self.where = where
        self.names = names
        self.files = [where] if isinstance(where, Path) and where.is_file() else []
        chunks = getattr(X, "chunks", None)
        chunk = int(chunks[0]) if chunks else 1
        self._step = chunk * -(-BLOCK_ROWS // chunk)

    def pieces(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self.n, self._step):
            yield start, min(start + self._step, self.n)

    def read(self, start: int, stop: int) -> Any:
        with readable(self.where):
            return super().read(start, stop)

    def close(self) -> None:
        handle = getattr(self.X, "group", self.X)  # sparse data sets of AnnData are groups
        if hasattr(handle, "file"):
            handle.file.close()


def check_array(shape: Sequence[int], dtype: DTypeLike, path: Path) -> None:
    try:
        check_numbers(np.dtype(dtype))
        check_shape(tuple(shape))
    except InvalidInputError as error:
        raise FileFault(
            path, error.fault, error.remedy or "Save it again, as a table of numbers."
        ) from error


def open_npy(request: Request) -> Rows:
    """A .npy file. Whole numbers, and floats of more than a quarter of the budget, are mapped into memory."""
    with readable(request.path):
        with request.path.open("rb") as file:
            check_array(*header_of(file), request.path)
        X = np.load(request.path, mmap_mode="r", allow_pickle=False)
        # What is mapped must not be cut off later, or the system ends the process; so a small file is read at once. Whole
        # numbers stay mapped, as they would be converted to numbers of eight bytes otherwise.
        if X.dtype.kind == "f" and may_load(X.nbytes, request.budget):
            X = np.array(X)
    return _array_rows(request, X)


def open_npz(request: Request) -> Rows:
    """A .npz file: its one array of two dimensions, the one that is named, or a sparse matrix."""
    path = request.path
    shapes = {}
    with readable(path):
        with zipfile.ZipFile(path) as packed:
            for member in packed.namelist():
                if member.endswith(".npy"):
                    with packed.open(member) as file:
                        shapes[member[:-4]] = header_of(file)
        if (
            set(shapes) >= {"format", "shape", "data"} and request.array is None
        ):  # as scipy.sparse.save_npz writes it
            return _array_rows(request, _as_csr(request, sp.load_npz(path)), "sparse matrix (npz)")
    name = _chosen(request, {key: shape for key, (shape, _) in shapes.items()})
    shape, dtype = shapes[name]
    check_array(shape, dtype, path)
    size = float(np.prod(shape)) * dtype.itemsize
    remedy = "Raise `memory_budget`, or save the array as .npy, which is read in pieces."
    request.refuse_beyond_half(size, f"array {name!r} takes {size / 1e9:.1f} GB,", remedy)
    with readable(path), np.load(path, allow_pickle=False) as stored:
        return _array_rows(request, stored[name])


def open_zarr(request: Request) -> Rows:
    path = request.path
    with readable(path):
        node = zarr.open(str(path), mode="r")
        if hasattr(node, "members") and node.attrs.get("encoding-type") == "anndata":
            return _annotated(request, "AnnData folder (Zarr)", node)
        if hasattr(node, "members"):
            members = dict(node.members(max_depth=None))
            shapes = {
                name: members[name].shape
                for name in sorted(members)
                if hasattr(members[name], "chunks")
            }
            node = members[_chosen(request, shapes)]
        if may_load(_bytes(node), request.budget):
            return _array_rows(request, node[:])
    return _array_rows(request, StoredArray(node, request.kind, path))


def open_h5ad(request: Request) -> Rows:
    with readable(request.path):
        store = h5py.File(request.path, "r")
    with store:
        return _annotated(request, request.kind, store)


def _array_rows(
    request: Request,
    X: Any,
    kind: str = "",
    names: list[str] | None = None,
    notes: Sequence[str] = (),
    obs: InMemory | None = None,
) -> Rows:
    """Rows of an array, memory map, sparse matrix or source. Columns of ``obs`` are shown instead of the features."""
    request = replace(request, kind=kind or request.kind)
    if not isinstance(X, StoredArray):
        check_array(X.shape, X.dtype, request.path)
        if sp.issparse(X):
            X = sp.csr_array(X)
            X.sum_duplicates()
        if X.dtype.kind != "f" and not isinstance(X, np.memmap):
            X = X.astype(np.float64)
    if obs is None:
        refuse_columns(request)
        return Rows.of_array(request, X, array_names=names, notes=list(notes))
    roles = Roles(id_name=request.id or obs.columns[0])
    return Rows.of_array(request, X, obs, array_names=names, notes=list(notes), roles=roles)


def _as_csr(request: Request, X: Any) -> Any:
    """A sparse matrix as CSR, if all of its indices are right; otherwise ``ValueError``."""
    # Its entries by row and column and then as CSR, and some numbers a row and a column.
    need = 24.0 * X.nnz + 32.0 * sum(X.shape)
    remedy = "Raise `memory_budget`, or save it as .npy or .h5ad, which are read in pieces."
    request.refuse_beyond_half(need, f"needs about {need / 1e9:.1f} GB to be read,", remedy)
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    return X.tocsr()


def header_of(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a .npy file. Versions 2 and 3 differ in names of fields only, which numbers have not."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0
    else:
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _chosen(request: Request, shapes: dict[str, tuple[int, ...]]) -> str:
    """The name of the array that is asked for, of the only one of two dimensions, or of the only one at all."""
    if request.array is not None:
        if request.array not in shapes:
            raise request.unknown("array", request.array, list(shapes))
        return request.array
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(tables) == 1 or len(shapes) == 1:
        return (tables or list(shapes))[0]
    inside = listed([f"{name} {shape}" for name, shape in shapes.items()]) or "none"
    fault = f"has {'several arrays' if tables else 'no array'} of two dimensions: {inside}"
    raise FileFault(
        request.path,
        fault,
        "Name the one that is meant with `array`." if shapes else "Save one in it.",
    )


def _annotated(request: Request, kind: str, store: Any) -> Rows:
    """AnnData, wherever it is stored: only the array that is asked for and obs are read."""
    path = request.path
    name = request.array or "X"
    names = None
    with readable(path, "It is no AnnData file, or damaged. Write it again with anndata."):
        arrays = [
            "X",
            *(
                f"{part}/{key}"
                for part in ("layers", "obsm")
                if part in store
                for key in store[part]
            ),
        ]
        arrays = [known for known in arrays if known in store]
        if name not in arrays:
            raise request.unknown("array", name, arrays)
        obs = _table_of_obs(io.read_elem(store["obs"]))
    of_obs = replace(request, id=None, group=(), weight=None)
    refuse_columns(of_obs, "its numbers are an array, of which no columns are chosen")
    check_names(request, obs.columns, "column of obs")
    check_weight(request, obs)
    with readable(path):
        if not name.startswith("obsm/") and "var" in store and "_index" in store["var"].attrs:
            names = [str(name) for name in io.read_elem(store["var"][store["var"].attrs["_index"]])]
        node = store[name]
        if may_load(_bytes(node), request.budget):
            X = io.read_elem(node)
            if hasattr(X, "to_numpy"):  # a frame, whose columns have names
                X, names = X.to_numpy(), [str(column) for column in X.columns]
            X = _as_csr(request, X) if sp.issparse(X) else np.ascontiguousarray(X)
        else:
            # anndata.read_h5ad(backed="r") would take everything but X into memory, layers as large as X among them.
            if path.is_file():
                node = h5py.File(path, "r")[name]
            if not hasattr(node, "chunks"):
                node = io.sparse_dataset(node)
            X = StoredArray(node, kind, path, names)
    notes = [f"The numbers are those of {name}."]
    if name == "X":
        with readable(path):
            notes = hint_at_components(
                X.X if isinstance(X, StoredArray) else X,
                [known.removeprefix("obsm/") for known in arrays],
            )
    rows = _array_rows(request, X, kind, names, notes, obs)
    if request.id is not None:
        rows.check_ids()
    rows.closers += [X.close] if isinstance(X, StoredArray) else []
    return rows


def _table_of_obs(obs: Any) -> InMemory:
    """obs, with its index as the first column."""
    obs = obs.set_axis(list(map(str, obs.columns)), axis=1).set_axis(list(map(str, obs.index)))
    name = str(obs.index.name or "obs_names")
    while name in obs.columns:
        name += "_"
    held = float(obs.memory_usage(deep=True).sum())
    return InMemory(cells_of(obs.reset_index(names=name)), held=held)


def _bytes(node: Any) -> float:
    """What an array takes in memory, dense or sparse; frames are read as a whole, as obs is."""
    if hasattr(node, "dtype"):
        return float(np.prod(node.shape) * node.dtype.itemsize)
    if "data" not in node:
        return 0.0
    return float(
        np.prod(node["data"].shape) * (node["data"].dtype.itemsize + node["indices"].dtype.itemsize)
    )
