"""Rows read of files give, bit for bit, what the same rows in memory give, however they are stored."""

from __future__ import annotations

import gc
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.rows import FileFault, open_source, read
from mosaic.sketch.sources import ArraySource
from tasks import Sums, X, agree

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
anndata = pytest.importorskip("anndata")

NAMES = ["c", "a", "b"]


def open_file(X, n_jobs=None):
    """A source of the rows of X; no file is small enough for memory."""
    return open_source(read(X, memory_budget=16).X if isinstance(X, Path) else X, n_jobs)


def table(values, names=NAMES):
    return pa.table({name: values[:, j] for j, name in enumerate(names)})


def npy(values, folder, size):
    np.save(folder / "points.npy", values)
    return folder / "points.npy"


def parquet(values, folder, size):
    pq.write_table(table(values), folder / "points.parquet", row_group_size=size)
    return folder / "points.parquet"


def parquet_folder(values, folder, size):
    (folder / "points").mkdir()
    cuts = [0, 100, 100, 9000, 30_000, len(values)]  # the second file is empty
    for i in range(5):
        pq.write_table(table(values[cuts[i] : cuts[i + 1]]), folder / "points" / f"part-{i}.parquet", row_group_size=size)
    (folder / "points" / "_SUCCESS").touch()
    return folder / "points"


def zarr_path(values, folder, size):
    zarr.create_array(folder / "points.zarr", data=values, chunks=(min(size, len(values)), 2))
    return folder / "points.zarr"


def hdf5(values, folder, size):
    with h5py.File(folder / "points.h5", "w") as file:
        file.create_dataset("in/points", data=values, chunks=(size, 2) if size < len(values) else None)
    return h5py.File(folder / "points.h5", "r")["in/points"]


def annotated(values):
    return anndata.AnnData(values, var=pd.DataFrame(index=NAMES))


def h5ad(values, folder, size):
    annotated(values).write_h5ad(folder / "points.h5ad")
    return folder / "points.h5ad"


def h5ad_sparse(values, folder, size):
    return h5ad(sp.csr_matrix(values), folder, size)


STORED = [npy, parquet, parquet_folder, zarr_path, hdf5, h5ad, h5ad_sparse]
# ------------------------------------------------------------------------------------------------ the same to the last bit


@pytest.mark.parametrize("size", [777, 5000, BLOCK_ROWS, 100_000])
@pytest.mark.parametrize("store", STORED)
def test_pass_over_a_file_gives_what_the_array_in_memory_gives_whatever_the_size_of_its_chunks(store, size, tmp_path):
    stored = store(X, tmp_path, size)
    for n_jobs in (1, 2):
        source = open_file(stored, n_jobs)
        assert (source.n, source.n_features, source.n_jobs) == (*X.shape, n_jobs)
        agree(source.run(Sums()))
        agree(source.run(Sums()))
    copy = pickle.loads(pickle.dumps(source))
    agree(copy.run(Sums()))
    agree(pickle.loads(pickle.dumps(copy)).run(Sums()))


@pytest.mark.parametrize("store", STORED)
def test_single_precision_stays_single(store, tmp_path):
    single = X.astype(np.float32)
    agree(open_file(store(single, tmp_path, 5000)).run(Sums()), ArraySource(single).run(Sums()))


# ------------------------------------------------------------------------------------------------ Parquet


def test_files_of_a_folder_come_in_the_order_of_their_names_with_columns_in_any_order(tmp_path):
    mixed = X[:12].copy()
    pq.write_table(table(mixed[8:]), tmp_path / "z.parquet")
    pq.write_table(table(mixed[5:8][:, [2, 0, 1]], ["b", "c", "a"]), tmp_path / "b.PARQUET")
    pq.write_table(table(mixed[:5]), tmp_path / "a.parquet")
    (tmp_path / ".hidden.parquet").write_bytes(b"")
    source = open_file(tmp_path)
    assert source.kind == "Parquet folder"
    assert source.names == NAMES
    np.testing.assert_array_equal(source.read(0, 12), mixed)
    np.testing.assert_array_equal(source.read(3, 9), mixed[3:9])


@pytest.mark.parametrize("group", [1000, BLOCK_ROWS, 40_001])
def test_rows_come_in_parts_of_a_block_at_most_however_large_row_groups_are(group, tmp_path):
    parts = list(open_file(parquet(X, tmp_path, group)).stream())
    assert max(len(rows) for _, rows in parts) <= BLOCK_ROWS
    assert [start for start, _ in parts] == np.cumsum([0, *(len(rows) for _, rows in parts[:-1])]).tolist()
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), X)


def test_folder_with_partitions_is_refused(tmp_path):
    (tmp_path / "year=2020").mkdir()
    pq.write_table(table(X[:5]), tmp_path / "year=2020" / "a.parquet")
    with pytest.raises(FileFault, match=r"year=2020.a\.parquet.*without partitions"):
        open_file(tmp_path)


# ------------------------------------------------------------------------------------------------ Zarr and HDF5


def test_groups_are_refused_with_what_to_pass_instead(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["in/points"] = X[:5]
        for group in (file, file["in"], zarr.open_group(tmp_path / "all.zarr", mode="w")):
            with pytest.raises(InvalidInputError, match=r"got (File|Group)\. .*group\[name\]"):
                open_source(group)
        np.testing.assert_array_equal(open_source(file["in/points"]).read(1, 3), X[1:3])


def test_arrays_that_are_no_table_of_numbers_are_refused(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["names"] = [["Ada"], ["Max"]]
        for array, told in (
            (zarr.array(X[:5, 0]), r"X must have two dimensions .* got shape \(5,\)"),
            (zarr.array(X[:5] * 1j), r"X must hold real numbers; got dtype complex128"),
            (zarr.array(X[:0]), r"X must have at least one point .* got shape \(0, 3\)"),
            (file["names"], r"X must hold real numbers; got dtype object"),
        ):
            with pytest.raises(InvalidInputError, match=told):
                open_source(array)


def test_damaged_chunk_is_found_in_the_pass(tmp_path):
    path = zarr_path(X, tmp_path, 20_001)
    (path / "c" / "1" / "0").write_bytes(b"garbage")
    with pytest.raises(FileFault, match=f"{re.escape(str(path))}: cannot be read"):
        open_file(path).run(Sums())


# ------------------------------------------------------------------------------------------------ AnnData

MATRICES = {
    "dense": lambda A: A,
    "Fortran order": np.asfortranarray,
    "CSR": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC": sp.csc_matrix,
}


@pytest.mark.parametrize("matrix", MATRICES)
def test_annotated_data_in_memory_or_in_its_file_gives_its_rows_and_names(matrix, tmp_path):
    adata = annotated(MATRICES[matrix](X))
    given = [open_source(adata, 2)]
    if matrix in ("dense", "CSR"):
        adata.write_h5ad(tmp_path / "points.h5ad")
        given.append(open_source(anndata.read_h5ad(tmp_path / "points.h5ad", backed="r"), 2))
        gc.collect()  # nobody else holds the file
        view = open_source(adata[10:20, ["b", "c"]])
        assert view.names == ["b", "c"]
        np.testing.assert_array_equal(view.read(2, 5), X[12:15, [2, 0]])
    for source in (*given, *(pickle.loads(pickle.dumps(each)) for each in given)):
        assert (source.names, source.n_jobs) == (NAMES, 2)
        agree(source.run(Sums()))


def test_h5ad_takes_names_of_features_and_leaves_layers_where_they_are(tmp_path, monkeypatch):
    adata = annotated(X[:50])
    adata.layers["other"] = -X[:50]
    adata.write_h5ad(tmp_path / "points.h5ad")
    read, read_elem = [], anndata.io.read_elem
    monkeypatch.setattr(anndata.io, "read_elem", lambda element: read.append(element.name) or read_elem(element))
    source = open_file(tmp_path / "points.h5ad")
    assert source.names == NAMES
    assert not [name for name in read if name.startswith(("/X", "/layers"))]


# ------------------------------------------------------------------------------------------------ what is no file to read


def test_rows_of_a_file_that_was_converted_are_read_as_long_as_somebody_has_the_source(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    np.savetxt(tmp_path / "points.csv", X[:9000], delimiter=",", header="c,a,b", comments="", fmt="%.17g")
    source = open_file(tmp_path / "points.csv")
    gc.collect()
    assert source.names == NAMES
    agree(source.run(Sums()), ArraySource(X[:9000]).run(Sums()))
    agree(pickle.loads(pickle.dumps(source)).run(Sums()), ArraySource(X[:9000]).run(Sums()))
    gc.collect()
    assert list(scratch.iterdir())
    del source
    gc.collect()
    assert not list(scratch.iterdir())


def test_other_objects_are_refused():
    with pytest.raises(InvalidInputError, match="X must be a table of numbers whose rows can be read; got dict"):
        open_source({})


def test_threads_of_an_open_source_are_those_that_are_asked_for(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "x.parquet")
    source = open_file(tmp_path / "x.parquet", 1)
    again = open_source(source, 2)
    assert (again.n_jobs, source.n_jobs) == (2, 1)  # the one of the user stays as it is
    assert open_source(source) is source


@pytest.mark.parametrize(
    ("store", "module"), [(parquet, "pyarrow.parquet"), (zarr_path, "zarr"), (h5ad, "h5py"), (h5ad, "anndata.io")]
)
def test_library_that_is_not_installed_is_named(store, module, tmp_path, monkeypatch):
    path, package = store(X[:50], tmp_path, 10), module.partition(".")[0]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"{package}, which is not installed\. Use: pip install {package}"):
        open_file(path)
