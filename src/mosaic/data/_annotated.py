"""Arrays with annotations: AnnData in HDF5 or Zarr, and plain Zarr arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import IntArray
from mosaic._files import library, listed
from mosaic.data._arrays import array_table, check_array, refuse_columns
from mosaic.data._columns import ColumnChoices
from mosaic.data._faults import FileFault, readable, unknown_name
from mosaic.data._framed import Frame, annotated, check_beside
from mosaic.data._missing import dropped_note, refuse_bad
from mosaic.data._spool import Spool
from mosaic.data.records import Bare, InMemory, Records, native
from mosaic.data.table import Table
from mosaic.engines.files import StoredArray, open_h5ad_array


def open_h5ad(path: Path, choices: ColumnChoices, budget: float, array: str | None) -> Table:
    """An .h5ad file: X or another array of it, with the columns of obs."""
    h5py = library("h5py", path)
    with ExitStack() as stack:
        with readable(path):
            store = stack.enter_context(h5py.File(path, "r"))
        return _annotated(path, "AnnData file", store, choices, budget, array)


def open_zarr(path: Path, choices: ColumnChoices, budget: float, array: str | None) -> Table:
    """A Zarr array, one array of a group, or AnnData in Zarr."""
    zarr = library("zarr", path)
    with readable(path):
        store = zarr.open(str(path), mode="r")
        if hasattr(store, "members") and store.attrs.get("encoding-type") == "anndata":
            return _annotated(path, "AnnData folder (Zarr)", store, choices, budget, array)
        node = _member(path, store, array) if hasattr(store, "members") else store
    refuse_columns(path, choices)
    check_array(path, node.shape, node.dtype)
    if _bytes(node) <= budget / 4:
        with readable(path):
            return array_table(path, "Zarr array", node[:], choices, budget)
    with readable(path):
        source = StoredArray(node, "Zarr array", str(path))
    return _source_table(path, "Zarr array", source, choices, SourceRecords(source))


def _member(path: Path, group: Any, array: str | None) -> Any:
    """The array of a Zarr group that is meant."""
    arrays = {name: member for name, member in group.members(max_depth=None) if hasattr(member, "chunks")}
    if array is not None:
        if array not in arrays:
            raise unknown_name(path, "array", array, sorted(arrays))
        return arrays[array]
    tables = [name for name, member in arrays.items() if len(member.shape) == 2]
    if len(tables) == 1:
        return arrays[tables[0]]
    inside = listed([f"{name} {arrays[name].shape}" for name in sorted(arrays)]) or "none"
    raise FileFault(
        path,
        f"is a Zarr group with {'several arrays' if tables else 'no array'} of two dimensions: {inside}",
        "Name the one that is meant: --array NAME",
    )


def _annotated(path: Path, kind: str, store: Any, choices: ColumnChoices, budget: float, array: str | None) -> Table:
    """AnnData, wherever it is stored: only the array that is meant and obs are read."""
    io = library("anndata.io", path)
    with readable(path, "It is no AnnData file, or damaged. Write it again with anndata."):
        obs = io.read_elem(store["obs"])
    name = "X" if array is None else array
    arrays = ["X", *(f"{part}/{key}" for part in ("layers", "obsm") if part in store for key in store[part])]
    arrays = [known for known in arrays if known in store]
    if name not in arrays:
        raise unknown_name(path, "array", name, arrays)
    table, id_name = _obs_table(obs, path)
    records = InMemory(table)
    frame = Frame(path, kind, table.schema, records, table)
    check_beside(frame, choices, "column of obs", "Name another array with --array, for example --array obsm/X_pca.")
    names = _var_names(io, store) if name == "X" or name.startswith("layers/") else None
    node = store[name]
    notes = [] if name == "X" else [f"The numbers are those of {name}."]
    known: dict[str, Any] = {"id_name": choices.id or id_name}
    if _bytes(node) <= budget / 4:
        with readable(path):
            X = io.read_elem(node)
        if hasattr(X, "to_numpy"):  # a frame, whose columns have names
            X, names = X.to_numpy(), [str(column) for column in X.columns]
        X = X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X)
        made = array_table(path, kind, X, choices, budget, None, records, names, notes=notes, **known)
    else:
        with readable(path):
            if kind == "AnnData file":
                source = open_h5ad_array(path, name, names)
            else:
                stored = node if hasattr(node, "chunks") else io.sparse_dataset(node)
                source = StoredArray(stored, kind, str(path), names=names)
        made = _source_table(path, kind, source, choices, records, names, notes, **known)
    return annotated(made, frame, choices)


def _obs_table(obs: Any, path: Path) -> tuple[Any, str]:
    """Columns of obs, its index first."""
    pa = library("pyarrow", path)
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


def _var_names(io: Any, store: Any) -> list[str] | None:
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


class SourceRecords(Bare):
    """Rows of an array that stays in its file."""

    def __init__(self, source: StoredArray):
        super().__init__(np.zeros((0, source.n_features)), None)
        self._source = source

    def _rows(self, numbers: IntArray) -> Any:
        """One after the other, each from the chunk that it is in."""
        return np.concatenate([self._X, *(self._source.read(int(i), int(i) + 1) for i in numbers)])


def _closing(source: StoredArray) -> Callable[[], None] | None:
    """How to close the HDF5 file of a source, if it has one."""
    handle = getattr(source.X, "group", source.X)
    file = getattr(handle, "file", None)
    return getattr(file, "close", None)


def _source_table(
    path: Path,
    kind: str,
    source: StoredArray,
    choices: ColumnChoices,
    records: Records,
    names: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    **known: Any,
) -> Table:
    """A table whose numbers stay in the file. Rows can be left out only by laying the others out on disk."""
    if not choices.drop_missing:  # the fit finds missing numbers on its first pass, and names the row
        close = _closing(source)
        return Table(path, kind, source, records, feature_names=names, notes=notes, clean=close, **known)
    if not isinstance(getattr(source.X, "ndim", None), int) or hasattr(source.X, "format"):
        raise FileFault(
            path,
            "is sparse and too large for memory, so that rows cannot be left out (--drop-missing)",
            "Raise --memory-budget, or remove these rows when the file is written.",
        )
    dropped = []
    with Spool(path, source.n_features, source.X.dtype, 8.0 * source.n * source.n_features) as spool:
        for start, stop in source.pieces():
            rows = source.read(start, stop)
            good = np.isfinite(rows).all(axis=1)
            dropped.append(start + np.flatnonzero(~good))
            spool.append(rows[good])
        lost = np.concatenate(dropped)
        if not spool.n:
            raise refuse_bad(path, source.read(0, 1)[0], 0, len(lost), names, lambda number: None)
        said = [*notes, dropped_note(len(lost), source.n)] if len(lost) else list(notes)
        X = spool.mapped()
        return Table(path, kind, X, records, feature_names=names, notes=said, dropped=lost, clean=spool.close, **known)
