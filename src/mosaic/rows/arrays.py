"""Arrays: NumPy's own files, SciPy's sparse ones, Zarr and AnnData."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.rows.columns import FeatureRows, add_groups_and_weights, check_beside
from mosaic.rows.faults import FileFault, check_unpacked, readable, unknown_name
from mosaic.rows.features import Request, refuse_columns
from mosaic.rows.images import is_stack, thumbnails
from mosaic.rows.sources import InFile, SelectedRows, StoredArray
from mosaic.rows.table import Bare, InMemory, Table, native
from mosaic.rows.writing import Scratch
from mosaic.sketch.sources import ArraySource
from mosaic.text import Library, listed

pa, zarr, h5py, io = Library("pyarrow"), Library("zarr"), Library("h5py"), Library("anndata.io")

Shapes: TypeAlias = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]

#: What scipy.sparse.save_npz writes besides the numbers.
SPARSE_MARKS = {"format", "shape", "data"}
#: What Zarr puts into the folder of an array or a group, in its third and its second format.
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup")


def open_npy(request: Request) -> Table:
    """A .npy file. Whole numbers, and floats of more than a quarter of the budget, are mapped into memory."""
    with readable(request.path):
        X = _mapped(request, request.path)
    return array_table(request, X)


def open_npz(request: Request) -> Table:
    """A .npz file: its one array of two dimensions, the one that is named, or a sparse matrix.

    An array of more than a quarter of the budget is unpacked to a temporary file and mapped into memory.
    """
    path = request.path
    with readable(path):
        shapes = _shapes(path)
        if set(shapes) >= SPARSE_MARKS and request.array is None:
            return array_table(request, _as_csr(request, sp.load_npz(path)), kind="sparse matrix (npz)")
    name = _chosen(request, {key: shape for key, (shape, _) in shapes.items()})
    shape, dtype = shapes[name]
    check_array(request, shape, dtype, f"array {name!r}")
    beside = _beside(path, shapes, shape[0])
    size = float(np.prod(shape)) * dtype.itemsize
    if size <= request.budget / 4:
        with readable(path), np.load(path, allow_pickle=False) as stored:
            X = stored[name]
        return array_table(request, X, beside=beside)
    check_unpacked(path, size, path.stat().st_size, request.budget)
    with Scratch(path, size) as scratch:
        file = scratch.folder / "numbers.npy"
        with readable(path), zipfile.ZipFile(path) as packed, packed.open(name + ".npy") as member:
            with scratch.writing(), file.open("wb") as unpacked:
                shutil.copyfileobj(member, unpacked, 1 << 20)
            X = _mapped(request, file)
        return array_table(request, X, beside=beside, clean=scratch.close)


def open_zarr(request: Request) -> Table:
    """A Zarr array, one array of a group, or AnnData in Zarr."""
    path = request.path
    with readable(path):
        store = zarr.open(str(path), mode="r")
        if hasattr(store, "members") and store.attrs.get("encoding-type") == "anndata":
            return _annotated(request, "AnnData folder (Zarr)", store)
        node = store
        if hasattr(store, "members"):
            members = dict(store.members(max_depth=None))
            shapes = {name: members[name].shape for name in sorted(members) if hasattr(members[name], "chunks")}
            node = members[_chosen(request, shapes, "is a Zarr group with", others=False)]
        check_array(request, node.shape, node.dtype)
        if _bytes(node) <= request.budget / 4:
            return array_table(request, node[:])
        check_unpacked(path, _bytes(node), node.nbytes_stored(), request.budget)
    return array_table(request, StoredArray(node, request.kind, path))


def open_h5ad(request: Request) -> Table:
    """An .h5ad file: X or another array of it, with the columns of obs."""
    with readable(request.path):
        store = h5py.File(request.path, "r")
    with store:
        return _annotated(request, request.kind, store)


def array_table(
    request: Request,
    X: Any,
    *,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    beside: Any = None,
    annotated: bool = False,
    id_name: str | None = None,
    notes: Sequence[str] = (),
    clean: Callable[[], None] | None = None,
) -> Table:
    """A table of an array. Its rows have no names, unless columns beside it give them.

    Pictures in an array are rows of as many numbers as they have pixels.

    Parameters
    ----------
    request : what the user asks for
    X : array, memory map, sparse matrix, or source
    kind : what it is; that of the request, if None
    names : of the features
    beside : ``pyarrow.Table`` of columns with a value for each row
    annotated : whether these are all that is known of a row, so that features are not shown as columns
    id_name : the column among these that names the rows
    notes : what was assumed so far
    clean : removes temporary files
    """
    stack, shown = None, X
    if not isinstance(X, StoredArray):
        check_array(request, X.shape, X.dtype)
        if is_stack(X.shape):
            size = " × ".join(str(side) for side in X.shape[1:])
            stack, X = X, X.reshape(len(X), -1)
            shown = X
            notes = [*notes, f"Rows are shown as pictures of {size} pixels, {X.shape[1]:,} numbers."]
        if sp.issparse(X):
            shown = X = sp.csr_array(X)
            X.sum_duplicates()
        if X.dtype.kind != "f" and not isinstance(X, np.memmap):
            X = X.astype(np.float64)
    if beside is None:
        refuse_columns(request)
    elif not annotated:
        what = "array of one entry for each row"
        check_beside(request, beside, what, "Leave this out, or save it as CSV or Parquet.")
    records = InMemory(beside) if annotated else Bare(shown, names, beside)
    seen = FeatureRows(request, names, records.place, records.n)
    X = _without_missing(request, X, seen)
    table = Table(
        request.path,
        request.kind if kind is None else kind,
        X,
        records,
        feature_names=names,
        id_name=id_name or (None if beside is None else request.id),
        notes=[*notes, *seen.notes],
        dropped=seen.dropped,
        pictures=None if stack is None else lambda numbers, side: thumbnails(stack[numbers], side),
        clean=clean,
    )
    if beside is not None:
        add_groups_and_weights(table, request, InMemory(beside))
    return table


def _without_missing(request: Request, X: Any, seen: FeatureRows) -> Any:
    """X without rows in which numbers are missing, which stay where they are if X is large."""
    if isinstance(X, StoredArray):
        if request.drop_missing:  # otherwise the fit finds missing numbers on its first pass, and names the row
            for start, stop in X.pieces():
                seen.see(X.read(start, stop))
        return SelectedRows(X, seen.dropped) if len(seen.dropped) else X
    seen.see(X)
    n, dropped = X.shape[0], seen.dropped
    if not len(dropped):
        return X
    if sp.issparse(X) or float(n - len(dropped)) * X.shape[1] * X.dtype.itemsize <= request.budget / 4:
        return X[np.delete(np.arange(n), dropped)]
    return SelectedRows(ArraySource(X, "memory map"), dropped)


def check_array(request: Request, shape: Sequence[int], dtype: Any, what: str = "the array") -> None:
    """Refuse an array that is no table of real numbers and no row of pictures."""
    path, kind = request.path, np.dtype(dtype).kind
    if kind not in "fiub":
        said = "objects" if kind == "O" else "text" if kind in "US" else f"{dtype}"
        raise FileFault(
            path,
            f"{what} holds {said}, no real numbers",
            "Save it as float64 with numpy.save(file, X.astype(float)), or columns of several types as Parquet.",
        )
    shape = tuple(int(size) for size in shape)
    if len(shape) != 2 and not is_stack(shape):
        remedy = "X.reshape(-1, 1) if every number is a point" if len(shape) == 1 else "X.reshape(len(X), -1)"
        raise FileFault(
            path,
            f"{what} has {len(shape)} dimensions, shape {shape}; rows and columns are needed",
            f"Save it as a table: {remedy}.",
        )
    if 0 in shape:
        raise FileFault(path, f"{what} is empty, shape {shape}", "Save it again with its rows and columns.")


def _as_csr(request: Request, X: Any) -> Any:
    """A sparse matrix as CSR, if all of its indices are right; otherwise ``ValueError``."""
    n, d = X.shape
    need = 24.0 * X.nnz + 32.0 * (
        n + d
    )  # its entries by row and column and then as CSR, and some numbers a row and a column
    if need > request.budget / 2:
        raise FileFault(
            request.path,
            f"its {n:,} × {d:,} numbers, {X.nnz:,} of them written, need about {need / 1e9:.1f} GB to be read, more than "
            "half of the memory budget",
            "Raise `memory_budget`, or save it in a format that is read in pieces: dense as .npy, sparse as .h5ad.",
        )
    if hasattr(X, "check_format"):
        X.check_format(full_check=True)
    return X.tocsr()


def _beside(path: Path, shapes: Shapes, n: int) -> Any:
    """Arrays of one entry for each row, such as labels, as a ``pyarrow.Table``; None where there are none."""
    names = [key for key, (shape, dtype) in shapes.items() if shape == (n,) and dtype.kind in "fiubU"]
    if not names:
        return None
    with readable(path), np.load(path, allow_pickle=False) as stored:
        return pa.table({name: native(stored[name]) for name in names})


def _mapped(request: Request, file: Path) -> Any:
    """A .npy file as a memory map, if it holds a table of numbers and all of it is there."""
    with file.open("rb") as opened:
        shape, dtype = _header(opened)
        begin = opened.tell()
    check_array(request, shape, dtype)
    expected, found = begin + int(np.prod(shape)) * dtype.itemsize, file.stat().st_size
    if found < expected:
        raise FileFault(
            request.path,
            f"is cut off: {found:,} bytes instead of {expected:,} for shape {shape}",
            "Copy or write it again; it was not written completely.",
        )
    # What is mapped must not be cut off later, or the system ends the process; so a small file is read at once. Whole numbers
    # stay mapped, as they would be converted to numbers of eight bytes otherwise.
    is_small = dtype.kind == "f" and expected - begin <= request.budget / 4
    return np.load(file, mmap_mode=None if is_small else "r", allow_pickle=False)


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


def _chosen(request: Request, shapes: dict[str, tuple[int, ...]], said: str = "has", others: bool = True) -> str:
    """The name of the array that is asked for, or of the only one of two dimensions; if there is none, one of ``others``.

    These are pictures, and a single array of any shape, which is refused elsewhere with a remedy.
    """
    if request.array is not None:
        if request.array not in shapes:
            raise unknown_name(request.path, "array", request.array, list(shapes))
        return request.array
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    if others and not tables:
        tables = [name for name, shape in shapes.items() if is_stack(shape) or len(shapes) == 1]
    if len(tables) == 1:
        return tables[0]
    inside = listed([f"{name} {shape}" for name, shape in shapes.items()]) or "none"
    raise FileFault(
        request.path,
        f"{said} {'several arrays' if tables else 'no array'} of two dimensions: {inside}",
        "Name the one that is meant with `array`." if shapes else "Save one in it.",
    )


def _annotated(request: Request, kind: str, store: Any) -> Table:
    """AnnData, wherever it is stored: only the array that is asked for and obs are read."""
    path = request.path
    name = "X" if request.array is None else request.array
    with readable(path, "It is no AnnData file, or damaged. Write it again with anndata."):
        _refuse_elsewhere(request, store, ["obs"])
        if path.is_file():
            held = sum(_bytes(node) for part in ("obs", "var") if part in store for node in _nodes(store[part]))
            check_unpacked(path, held, path.stat().st_size, request.budget)
        obs = io.read_elem(store["obs"])
        arrays = ["X", *(f"{part}/{key}" for part in ("layers", "obsm") if part in store for key in store[part])]
        if name in arrays and (name != "X" or name in list(store)):
            _refuse_elsewhere(request, store, [name])
        arrays = [known for known in arrays if known in store]
    if name not in arrays:
        raise unknown_name(path, "array", name, arrays)
    beside, id_name = _obs_table(obs)
    remedy = "Name another array with `array`, for example `array='obsm/X_pca'`."
    check_beside(request, beside, "column of obs", remedy)
    clean = None
    with readable(path):
        names = _var_names(store) if name == "X" or name.startswith("layers/") else None
        node = store[name]
        if path.is_file():
            check_unpacked(path, _bytes(node), path.stat().st_size, request.budget)
        if _bytes(node) <= request.budget / 4:
            X = io.read_elem(node)
            if hasattr(X, "to_numpy"):  # a frame, whose columns have names
                X, names = X.to_numpy(), [str(column) for column in X.columns]
            X = _as_csr(request, X) if sp.issparse(X) else np.ascontiguousarray(X)
        else:
            # anndata.read_h5ad(backed="r") would take everything but X into memory, layers as large as X among them.
            if kind == request.kind:
                stored = InFile(str(path), name).open()
            else:
                stored = node if hasattr(node, "chunks") else io.sparse_dataset(node)
            X = StoredArray(stored, kind, path, names=names)
            clean = X.close
    return array_table(
        request,
        X,
        kind=kind,
        names=names,
        beside=beside,
        annotated=True,
        id_name=request.id or id_name,
        notes=[] if name == "X" else [f"The numbers are those of {name}."],
        clean=clean,
    )


def _refuse_elsewhere(request: Request, store: Any, names: Sequence[str]) -> None:
    """Refuse parts of an HDF5 file that lead to another file: links, and arrays whose numbers are stored elsewhere."""
    if type(store).__module__.partition(".")[0] != "h5py":  # Zarr has no such links
        return
    for name in names:
        path = ""
        for part in name.split("/"):
            path = f"{path}/{part}"
            if isinstance(store.get(path, getlink=True), h5py.ExternalLink):
                raise _elsewhere(request, name)
        for node in _nodes(store[path]):
            if node.external or node.is_virtual:
                raise _elsewhere(request, name)


def _nodes(node: Any) -> list[Any]:
    """The arrays of a group of an HDF5 file, or the array itself."""
    if isinstance(node, h5py.Dataset):
        return [node]
    found: list[Any] = []
    node.visititems(lambda _, inner: found.append(inner))
    return [inner for inner in found if isinstance(inner, h5py.Dataset)]


def _elsewhere(request: Request, name: str) -> FileFault:
    fault = f"its {name!r} leads to another file, which is not followed"
    return FileFault(request.path, fault, "Write the data itself into the file.")


def _obs_table(obs: Any) -> tuple[Any, str]:
    """Columns of obs, its index first, and what the index is called."""
    name = str(obs.index.name or "obs_names")
    while name in obs.columns:
        name += "_"
    columns = {name: pa.array([str(value) for value in obs.index])}
    for column in obs.columns:
        values = obs[column]
        if isinstance(values.dtype, np.dtype):
            values = native(values)
        try:
            columns[str(column)] = pa.Array.from_pandas(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # objects of several kinds
            columns[str(column)] = pa.array([str(value) for value in obs[column]])
    return pa.table(columns), name


def _var_names(store: Any) -> list[str] | None:
    if "var" not in store or "_index" not in store["var"].attrs:
        return None
    return [str(name) for name in io.read_elem(store["var"][store["var"].attrs["_index"]])]


def _bytes(node: Any) -> float:
    """What an array takes in memory, dense or sparse; frames are read as a whole, as obs is."""
    if hasattr(node, "dtype"):
        return float(np.prod(node.shape) * node.dtype.itemsize)
    if "data" not in node:
        return 0.0
    return float(np.prod(node["data"].shape) * (node["data"].dtype.itemsize + node["indices"].dtype.itemsize))
