"""Rows read of files give, bit for bit, what the same rows in memory give, however they are stored."""

import gc
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.sources import ArraySource
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.rows import FileFault, read
from sources import open_source
from tasks import Sums, X, agree

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
anndata = pytest.importorskip("anndata")

NAMES = ["c", "a", "b"]


def open_file(X, n_jobs=None):
    """A source of the rows of X; no file is small enough for memory."""
    return open_source(read(X, memory_budget=16) if isinstance(X, Path) else X, n_jobs)


def table(values, names=NAMES):
    return pa.table({name: values[:, j] for j, name in enumerate(names)})


def annotated(values):
    obs = pd.DataFrame({"depth": np.arange(values.shape[0])}, index=[f"cell{i}" for i in range(values.shape[0])])
    return anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=NAMES))


def store(kind, values, folder, size=5000):
    """What such a file is opened by: its path, or a dataset in it."""
    path = folder / f"points.{kind}"
    if kind == "npy":
        np.save(path, values)
    elif kind == "parquet":
        pq.write_table(table(values), path, row_group_size=size)
    elif kind == "folder":
        path.mkdir()
        cuts = [0, 100, 100, 9000, 30_000, len(values)]  # the second file is empty
        for i in range(5):
            pq.write_table(table(values[cuts[i] : cuts[i + 1]]), path / f"part-{i}.parquet", row_group_size=size)
        (path / "_SUCCESS").touch()
    elif kind == "zarr":
        zarr.create_array(path, data=values, chunks=(min(size, len(values)), 2))
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("in/points", data=values, chunks=(size, 2) if size < len(values) else None)
        return h5py.File(path, "r")["in/points"]
    else:
        annotated(sp.csr_matrix(values) if kind == "sparse.h5ad" else values).write_h5ad(path)
    return path


STORED = ["npy", "parquet", "folder", "zarr", "h5", "h5ad", "sparse.h5ad"]


@pytest.mark.parametrize("size", [777, 5000, BLOCK_ROWS, 100_000])
@pytest.mark.parametrize("kind", STORED)
def test_pass_over_a_file_gives_what_the_array_in_memory_gives_whatever_the_size_of_its_chunks(kind, size, tmp_path):
    one = open_file(store(kind, X, tmp_path, size), 1)
    two = open_source(one, 2)
    assert (one.n_jobs, two.n_jobs) == (1, 2)  # the one of the user stays as it is
    for source in (one, one, two):
        assert (source.n, source.n_features) == X.shape
        agree(source.run(Sums()))


@pytest.mark.parametrize("kind", STORED)
def test_single_precision_stays_single(kind, tmp_path):
    single = X.astype(np.float32)
    agree(open_file(store(kind, single, tmp_path)).run(Sums()), ArraySource(single).run(Sums()))


def test_files_of_a_folder_come_in_the_order_of_their_names_with_columns_in_any_order_and_without_partitions(tmp_path):
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
    (tmp_path / "all" / "year=2020").mkdir(parents=True)
    pq.write_table(table(X[:5]), tmp_path / "all" / "year=2020" / "a.parquet")
    with pytest.raises(FileFault, match=r"year=2020.a\.parquet.*without partitions"):
        open_file(tmp_path / "all")


@pytest.mark.parametrize("group", [1000, BLOCK_ROWS, 40_001])
def test_rows_come_in_parts_of_a_block_at_most_however_large_row_groups_are(group, tmp_path):
    parts = list(open_file(store("parquet", X, tmp_path, group)).stream())
    assert max(len(rows) for _, rows in parts) <= BLOCK_ROWS
    assert [start for start, _ in parts] == np.cumsum([0, *(len(rows) for _, rows in parts[:-1])]).tolist()
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), X)


def test_what_is_no_table_of_numbers_is_refused_with_what_to_pass_instead(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["names"] = [["Ada"], ["Max"]]
        file["in/points"] = X[:5]
        for bad, told in (
            (zarr.array(X[:5, 0]), r"X must have two dimensions .* got shape \(5,\)"),
            (zarr.array(X[:5] * 1j), r"X must hold real numbers; got dtype complex128"),
            (zarr.array(X[:0]), r"X must have at least one point .* got shape \(0, 3\)"),
            (file["names"], r"X must hold real numbers; got dtype object"),
            (file, r"got File\. .*group\[name\]"),
            (file["in"], r"got Group\. .*group\[name\]"),
            (zarr.open_group(tmp_path / "all.zarr", mode="w"), r"got Group\. .*group\[name\]"),
            ({}, r"X is a dict\. Pass a data frame"),
        ):
            with pytest.raises(InvalidInputError, match=told):
                open_source(bad)


def test_damaged_chunk_is_found_in_the_pass(tmp_path):
    path = store("zarr", X, tmp_path, 20_001)
    (path / "c" / "1" / "0").write_bytes(b"garbage")
    with pytest.raises(FileFault, match=f"{re.escape(str(path))}: cannot be read"):
        open_file(path).run(Sums())


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
    for source in given:
        assert (source.names, source.n_jobs) == (NAMES, 2)
        agree(source.run(Sums()))


def test_rows_of_a_file_that_was_converted_are_read_as_long_as_somebody_has_the_source(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    np.savetxt(tmp_path / "points.csv", X[:9000], delimiter=",", header="c,a,b", comments="", fmt="%.17g")
    source = open_file(tmp_path / "points.csv")
    gc.collect()
    assert source.names == NAMES
    agree(source.run(Sums()), ArraySource(X[:9000]).run(Sums()))
    gc.collect()
    assert list(scratch.iterdir())
    del source
    gc.collect()
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("kind", "module"), [("parquet", "pyarrow.parquet"), ("zarr", "zarr"), ("h5ad", "h5py"), ("h5ad", "anndata.io")]
)
def test_library_that_is_not_installed_is_named(kind, module, tmp_path, monkeypatch):
    path, package = store(kind, X[:50], tmp_path, 10), module.partition(".")[0]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"{package}, which is not installed\. Use: pip install {package}"):
        open_file(path)
