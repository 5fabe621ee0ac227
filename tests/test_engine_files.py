"""Rows read of files give, bit for bit, what the same rows in memory give, however they are stored."""

from __future__ import annotations

import gc
import pickle
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.rows import FileFault, open_source, read
from mosaic.sketch.sources import ArraySource

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
anndata = pytest.importorskip("anndata")

NAMES = ["c", "a", "b"]
X = np.random.default_rng(0).normal(size=(40_001, 3)) * np.array([1.0, 1e6, 1e-6])
X[np.abs(X) < 0.1 * X.std(axis=0)] = 0.0  # so that sparse formats have something to leave out
SIZES = [777, 5000, BLOCK_ROWS, 20_001, 100_000]


@dataclass(frozen=True)
class Weighted:
    """Sums whose last bits depend on the order of the rows, on their numbers and on how they lie in memory."""

    def map_block(self, rows, start):
        weights = np.sin(np.arange(start, start + len(rows)))[:, None]
        return {"sum": (weights * rows).sum(axis=0), "first": np.array([start]), "single": rows.dtype == np.float32}

    def merge(self, left, right):
        first = np.concatenate([left["first"], right["first"]])
        return {"sum": left["sum"] + right["sum"], "first": first, "single": left["single"] and right["single"]}


def open_file(X, n_jobs=None):
    """A source of the rows of X; no file is small enough for memory."""
    if isinstance(X, (str, Path)):
        table = read(X, memory_budget=16)
        X = table.X
    return open_source(X, n_jobs)


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


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
        pq.write_table(
            table(values[cuts[i] : cuts[i + 1]]), folder / "points" / f"part-{i}.parquet", row_group_size=size
        )
    (folder / "points" / "_SUCCESS").touch()
    return folder / "points"


def zarr_path(values, folder, size):
    zarr.create_array(folder / "points.zarr", data=values, chunks=(min(size, len(values)), 2))
    return folder / "points.zarr"


def zarr_by_columns(values, folder, size):
    shape = {"shape": values.shape, "dtype": values.dtype, "chunks": (min(size, len(values)), 2)}
    array = zarr.create_array(folder / "points", zarr_format=2, order="F", **shape)
    array[:] = values
    return array


def zarr_in_shards(values, folder, size):
    return zarr.create_array(folder / "points.zarr", data=values, chunks=(500, 3), shards=(10_000, 3))


def hdf5(values, folder, size):
    chunks = (size, 2) if size < len(values) else None
    return h5py.File(folder / "points.h5", "w").create_dataset("in/points", data=values, chunks=chunks)


def annotated(values):
    return anndata.AnnData(values, var=pd.DataFrame(index=NAMES))


def h5ad(values, folder, size):
    annotated(values).write_h5ad(folder / "points.h5ad")
    return folder / "points.h5ad"


def h5ad_sparse(values, folder, size):
    return h5ad(sp.csr_matrix(values), folder, size)


STORED = [npy, parquet, parquet_folder, zarr_path, zarr_by_columns, zarr_in_shards, hdf5, h5ad, h5ad_sparse]
CHUNKED = [parquet, parquet_folder, zarr_path, zarr_by_columns, hdf5]


# ------------------------------------------------------------------------------------------------ the same to the last bit


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("store", STORED)
def test_pass_over_a_file_gives_what_the_array_in_memory_gives(store, n_jobs, tmp_path):
    source = open_file(store(X, tmp_path, 5000), n_jobs)
    assert (source.n, source.n_features, source.n_jobs) == (*X.shape, n_jobs)
    agree(source.run(Weighted()), ArraySource(X).run(Weighted()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("store", CHUNKED)
def test_size_of_row_groups_and_chunks_does_not_matter(store, size, tmp_path):
    source = open_file(store(X, tmp_path, size), 2)
    agree(source.run(Weighted()), ArraySource(X).run(Weighted()))
    agree(source.run(Weighted()), ArraySource(X).run(Weighted()))


@pytest.mark.parametrize("store", STORED)
def test_single_precision_stays_single(store, tmp_path):
    single = X.astype(np.float32)
    found = open_file(store(single, tmp_path, 5000)).run(Weighted())
    assert found["single"]
    agree(found, ArraySource(single).run(Weighted()))


@pytest.mark.parametrize("store", STORED)
def test_integers_become_double(store, tmp_path):
    whole = np.clip(X, -100, 100).astype(np.int32)
    agree(open_file(store(whole, tmp_path, 5000)).run(Weighted()), ArraySource(whole.astype(float)).run(Weighted()))


@pytest.mark.parametrize("store", STORED)
def test_source_that_was_pickled_reads_the_same(store, tmp_path):
    source = open_file(store(X, tmp_path, 5000))
    if store is hdf5:
        source.X.file.flush()
        source.X = h5py.File(reopened(source.X), "r")["in/points"]
    copy = pickle.loads(pickle.dumps(source))
    again = pickle.loads(pickle.dumps(copy))
    agree(copy.run(Weighted()), ArraySource(X).run(Weighted()))
    agree(again.run(Weighted()), ArraySource(X).run(Weighted()))


def reopened(dataset):
    path = dataset.file.filename
    dataset.file.close()
    return path


# ------------------------------------------------------------------------------------------------ NumPy


def test_npy_in_fortran_order_is_a_memory_map(tmp_path):
    columns = np.asfortranarray(X)
    source = open_file(str(npy(columns, tmp_path, None)))
    assert source.kind == "memory map"
    assert source.names is None
    agree(source.run(Weighted()), ArraySource(columns).run(Weighted()))


# ------------------------------------------------------------------------------------------------ Parquet


def test_parquet_gives_columns_of_numbers_and_their_names(tmp_path):
    columns = {
        "name": ["Ada", "Max", None],
        "whole": pa.array([1, None, 3], pa.int8()),
        "large": pa.array([2**64 - 1, 2**53 + 1, 0], pa.uint64()),
        "half": pa.array([0.5, None, 1.5], pa.float16()),
        "single": pa.array([0.5, None, 1.5], pa.float32()),
        "day": pd.date_range("2020", periods=3),
        "member": [True, None, False],
        "price": [Decimal("0.10"), None, Decimal("12.30")],
        "level": pa.array(["a", "b", "a"]).dictionary_encode(),
        "empty": pa.nulls(3),
        "inside": [{"x": 1.0}] * 3,
        "list": [[1.0]] * 3,
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet", row_group_size=2)
    source = open_file(tmp_path / "people.parquet")
    assert source.kind == "Parquet file"
    assert {"whole", "large", "day", "level"} <= set(source.names)
    assert not {"name", "empty", "inside", "list"} & set(source.names)
    rows = source.read(0, 3)
    assert np.isfinite(rows).all()
    assert rows.dtype == np.float64
    numbers = ["whole", "large", "half", "single", "member", "price"]
    full = {name: pa.table(columns)[name].take([0, 2]) for name in ["name", *numbers]}
    pq.write_table(pa.table(full), tmp_path / "people.parquet", row_group_size=2)
    source = open_file(tmp_path / "people.parquet")
    assert source.names == numbers
    rows = source.read(0, 2)
    np.testing.assert_array_equal(rows, [[1, 2.0**64, 0.5, 0.5, 1, 0.1], [3, 0, 1.5, 1.5, 0, 12.3]])
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous


def test_single_precision_values_stay_so(tmp_path):
    pq.write_table(pa.table({"x": pa.array([1.5, 2.5], pa.float32())}), tmp_path / "x.parquet")
    rows = open_file(tmp_path / "x.parquet").read(0, 2)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[1.5], [2.5]])


def test_columns_are_found_by_their_whole_name(tmp_path):
    words = table(X[:5], ["a", "a.b", "a.b.c"]).add_column(1, "a.name", [["Ada"] * 5])
    pq.write_table(words, tmp_path / "x.parquet")
    source = open_file(tmp_path / "x.parquet")
    assert source.names == ["a", "a.b", "a.b.c"]
    np.testing.assert_array_equal(source.read(0, 5), X[:5])


@pytest.mark.parametrize("index", ["number", None])
def test_index_that_pandas_has_saved_is_no_feature_and_categories_are_levels(index, tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.5, 4.0, 3.0]}, index=pd.Index([7, 3, 9, 4], name=index))
    frame.to_parquet(tmp_path / "x.parquet")
    source = open_file(tmp_path / "x.parquet")
    assert source.names == ["x"]
    np.testing.assert_array_equal(source.read(0, 4), [[1.0], [2.5], [4.0], [3.0]])
    frame["c"] = pd.Categorical([10, 20, 30, 10])
    frame = pd.concat([frame] * 3)
    frame.to_parquet(tmp_path / "x.parquet")
    assert len(pq.read_schema(tmp_path / "x.parquet").names) == 3
    source = open_file(tmp_path / "x.parquet")
    assert source.names == ["x", *["c"] * 5]  # three levels, others, missing
    rows = source.read(0, 4)
    assert (rows[:, 1:4] > 0).sum(axis=1).tolist() == [1, 1, 1, 1]


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


def test_folder_is_single_only_where_all_files_are(tmp_path):
    pq.write_table(table(X[:5].astype(np.float32)), tmp_path / "a.parquet")
    assert open_file(tmp_path).read(0, 5).dtype == np.float32
    pq.write_table(table(X[5:9]), tmp_path / "b.parquet")
    rows = open_file(tmp_path).read(0, 9)
    np.testing.assert_array_equal(rows, np.concatenate([X[:5].astype(np.float32), X[5:9]], dtype=np.float64))


@pytest.mark.parametrize("group", [1000, BLOCK_ROWS, 40_001])
def test_rows_come_in_parts_of_a_block_at_most_however_large_row_groups_are(group, tmp_path):
    parts = list(open_file(parquet(X, tmp_path, group)).stream())
    assert max(len(rows) for _, rows in parts) <= BLOCK_ROWS
    assert [start for start, _ in parts] == np.cumsum([0, *(len(rows) for _, rows in parts[:-1])]).tolist()
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), X)


def test_only_row_groups_that_are_asked_for_are_read(tmp_path):
    path = parquet(X, tmp_path, 20_000)
    source = open_file(path)
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(1).column(1)
    begin = min(filter(None, [column.dictionary_page_offset, column.data_page_offset]))
    content[begin : begin + 2000] = b"garbage!" * 250
    path.write_bytes(content)
    np.testing.assert_array_equal(source.read(0, 20_000), X[:20_000])
    np.testing.assert_array_equal(source.read(40_000, 40_001), X[40_000:])
    with pytest.raises(FileFault, match=f"{re.escape(str(path))}: cannot be read.*damaged"):
        source.run(Weighted())


def test_files_of_a_folder_without_rows_need_not_have_all_columns_as_numbers(tmp_path):
    pq.write_table(table(X[:5]), tmp_path / "a.parquet")
    none = pa.table({name: pa.array([], pa.string()) for name in NAMES})
    pq.write_table(none, tmp_path / "b.parquet")
    np.testing.assert_array_equal(open_file(tmp_path).read(0, 5), X[:5])


def test_folder_with_partitions_is_refused(tmp_path):
    (tmp_path / "year=2020").mkdir()
    pq.write_table(table(X[:5]), tmp_path / "year=2020" / "a.parquet")
    with pytest.raises(FileFault, match=r"year=2020.a\.parquet.*without partitions"):
        open_file(tmp_path)


# ------------------------------------------------------------------------------------------------ Zarr and HDF5


@pytest.mark.parametrize("store", [zarr_path, zarr_by_columns, hdf5])
@pytest.mark.parametrize(("size", "step"), [(777, 8547), (5000, 10_000), (BLOCK_ROWS, BLOCK_ROWS), (20_001, 20_001)])
def test_pieces_are_whole_chunks_and_at_least_a_block(store, size, step, tmp_path):
    pieces = list(open_file(store(X, tmp_path, size)).pieces())
    assert [start for start, _ in pieces] == list(range(0, len(X), step))
    assert [stop for _, stop in pieces] == [*range(step, len(X), step), len(X)]


def test_kinds_are_named_as_a_person_would(tmp_path):
    assert open_file(zarr_path(X, tmp_path, 5000)).kind == "Zarr array"
    assert open_file(hdf5(X, tmp_path, 5000)).kind == "HDF5 data set"
    assert open_file(h5ad(X, tmp_path, 5000)).kind == "AnnData file"
    assert open_file(annotated(X)).kind == "AnnData"


def test_zarr_groups_are_refused_with_what_is_in_them(tmp_path):
    group = zarr.open_group(tmp_path / "all.zarr", mode="w")
    with pytest.raises(InvalidInputError, match="is a Zarr group without any array"):
        open_source(group)
    group.create_array("points", data=X[:5])
    group.create_group("inner").create_array("more", data=X[:5])
    with pytest.raises(InvalidInputError, match=r"is a Zarr group of the arrays inner/more, points;.*Open the group"):
        open_source(group)


@pytest.mark.parametrize("version", [2, 3])
def test_an_array_within_a_zarr_group_has_a_path_of_its_own(version, tmp_path):
    group = zarr.open_group(tmp_path / "all", mode="w", zarr_format=version)
    group.create_group("inner").create_array("more", data=X[:5])
    np.testing.assert_array_equal(open_file(tmp_path / "all" / "inner" / "more").read(1, 3), X[1:3])


def test_hdf5_groups_are_refused_with_what_is_in_them(tmp_path):
    with h5py.File(tmp_path / "all.h5", "w") as file:
        for number in range(25):
            file[f"in/points{number:02}"] = X[:5]
        with pytest.raises(InvalidInputError, match=r"an HDF5 group of the arrays in/points00, .*points19 and 5 more;"):
            open_source(file)
        np.testing.assert_array_equal(open_source(file["in/points03"]).read(1, 3), X[1:3])


def test_arrays_that_are_no_table_of_numbers_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"two dimensions.*\(5,\)"):
        open_file(zarr.array(X[:5, 0]))
    with pytest.raises(InvalidInputError, match=r"real numbers.*complex"):
        open_file(zarr.array(X[:5] * 1j))
    with pytest.raises(InvalidInputError, match=r"at least one point.*\(0, 3\)"):
        open_file(zarr.array(X[:0]))
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["names"] = [["Ada"], ["Max"]]
        file["nothing"] = h5py.Empty("f8")
        with pytest.raises(InvalidInputError, match=r"real numbers.*object"):
            open_file(file["names"])
        with pytest.raises(InvalidInputError, match=r"two dimensions.*\(\)"):
            open_file(file["nothing"])


def test_damaged_chunk_is_found_in_the_pass(tmp_path):
    path = zarr_path(X, tmp_path, 20_001)
    (path / "c" / "1" / "0").write_bytes(b"garbage")
    with pytest.raises(FileFault, match=f"{re.escape(str(path))}: cannot be read"):
        open_file(path).run(Weighted())


# ------------------------------------------------------------------------------------------------ AnnData

MATRICES = {
    "dense": lambda A: A,
    "Fortran order": np.asfortranarray,
    "CSR": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC": sp.csc_matrix,
}


@pytest.mark.parametrize("matrix", MATRICES)
def test_annotated_data_in_memory_gives_its_rows_and_names(matrix):
    adata = annotated(MATRICES[matrix](X))
    for source in (open_source(adata, 2), pickle.loads(pickle.dumps(open_source(adata, 2)))):
        assert source.names == NAMES
        assert source.n_jobs == 2
        agree(source.run(Weighted()), ArraySource(X).run(Weighted()))


@pytest.mark.parametrize("matrix", ["dense", "CSR"])
def test_annotated_data_that_stays_in_its_file_gives_its_rows_and_names(matrix, tmp_path):
    annotated(MATRICES[matrix](X)).write_h5ad(tmp_path / "points.h5ad")
    source = open_source(anndata.read_h5ad(tmp_path / "points.h5ad", backed="r"))
    gc.collect()  # nobody else holds the file
    assert source.names == NAMES
    agree(source.run(Weighted()), ArraySource(X).run(Weighted()))
    agree(pickle.loads(pickle.dumps(source)).run(Weighted()), ArraySource(X).run(Weighted()))


@pytest.mark.parametrize("matrix", ["dense", "CSR"])
def test_views_of_annotated_data_and_what_is_in_them_give_their_rows(matrix):
    view = annotated(MATRICES[matrix](X))[10:20, ["b", "c"]]
    assert open_source(view).names == ["b", "c"]
    np.testing.assert_array_equal(open_source(view).read(2, 5), X[12:15, [2, 0]])
    np.testing.assert_array_equal(open_source(view.X).read(2, 5), X[12:15, [2, 0]])


def test_h5ad_takes_names_of_features_and_leaves_layers_where_they_are(tmp_path, monkeypatch):
    adata = annotated(X[:50])
    adata.layers["other"] = -X[:50]
    adata.write_h5ad(tmp_path / "points.h5ad")
    read, read_elem = [], anndata.io.read_elem
    monkeypatch.setattr(anndata.io, "read_elem", lambda element: read.append(element.name) or read_elem(element))
    source = open_file(tmp_path / "points.h5ad")
    assert source.names == NAMES
    assert not [name for name in read if name.startswith(("/X", "/layers"))]


def test_annotated_data_without_rows_to_read_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"adata\.X is None.*layers"):
        open_file(anndata.AnnData(obs=pd.DataFrame(index=["p"])))
    annotated(sp.csc_matrix(X)).write_h5ad(tmp_path / "points.h5ad")
    message = r"stored by columns \(CSC\).*tocsr"
    with pytest.raises(FileFault, match=rf"points\.h5ad: is {message}"):
        open_file(tmp_path / "points.h5ad")
    with pytest.raises(InvalidInputError, match=message):
        open_file(anndata.read_h5ad(tmp_path / "points.h5ad", backed="r"))
    anndata.AnnData(obs=pd.DataFrame(index=["p"])).write_h5ad(tmp_path / "empty.h5ad")
    with pytest.raises(FileFault, match=r"empty\.h5ad: has no array 'X'"):
        open_file(tmp_path / "empty.h5ad")


# ------------------------------------------------------------------------------------------------ what is no file to read


@pytest.mark.parametrize("name", ["points.npy", "points.parquet", "points.zarr", "points.h5ad", "points.xyz"])
def test_missing_file_is_not_found(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"{re.escape(str(tmp_path / name))}: there is no such file"):
        open_source(tmp_path / name)


@pytest.mark.parametrize("name", ["points.h5", "points"])
def test_other_kinds_of_file_are_refused_with_those_that_are_read(name, tmp_path):
    (tmp_path / name).write_text("1,2")
    with pytest.raises(FileFault, match=rf"{name}: .*Known are \.csv, .*\.parquet"):
        open_source(str(tmp_path / name))


@pytest.mark.parametrize("name", ["points.npy", "points.parquet", "points.zarr", "points.h5ad"])
def test_garbage_is_refused_with_its_path_and_what_the_library_says(name, tmp_path):
    (tmp_path / name).write_bytes(b"garbage" * 1000)
    with pytest.raises(FileFault, match=rf"{re.escape(str(tmp_path / name))}: cannot be read \(.+: .+\)\. It is"):
        open_source(tmp_path / name)


@pytest.mark.parametrize("store", [npy, parquet, h5ad])
def test_file_that_ends_too_early_is_refused(store, tmp_path):
    path = store(X, tmp_path, 5000)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(FileFault, match=f"{re.escape(str(path))}: (cannot be read|is cut off)"):
        open_file(path)


def test_rows_of_a_file_that_was_converted_are_read_as_long_as_somebody_has_the_source(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    np.savetxt(tmp_path / "points.csv", X[:9000], delimiter=",", header="c,a,b", comments="", fmt="%.17g")
    source = open_file(tmp_path / "points.csv")
    gc.collect()
    assert source.names == NAMES
    agree(source.run(Weighted()), ArraySource(X[:9000]).run(Weighted()))
    agree(pickle.loads(pickle.dumps(source)).run(Weighted()), ArraySource(X[:9000]).run(Weighted()))
    gc.collect()
    assert list(scratch.iterdir())
    del source
    gc.collect()
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("store", "module"), [(parquet, "pyarrow.parquet"), (zarr_path, "zarr"), (h5ad, "h5py"), (h5ad, "anndata.io")]
)
def test_library_that_is_not_installed_is_named(store, module, tmp_path, monkeypatch):
    path = store(X[:50], tmp_path, 10)
    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    message = f"{re.escape(str(path))} is read with {package}, which is not installed. Use: pip install {package}"
    with pytest.raises(MissingDependencyError, match=message):
        open_file(path)


def test_library_that_a_worker_lacks_is_named(tmp_path, monkeypatch):
    source = pickle.loads(pickle.dumps(open_file(h5ad_sparse(X[:50], tmp_path, None))))
    monkeypatch.setitem(sys.modules, "anndata.io", None)
    with pytest.raises(MissingDependencyError, match=r"anndata, which is not installed"):
        source.read(0, 50)


def test_a_file_that_asks_for_more_memory_than_there_is_is_refused_with_the_remedy(tmp_path, monkeypatch):
    source = open_file(zarr_path(X, tmp_path, 5000))

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(zarr.Array, "__getitem__", full)
    with pytest.raises(FileFault, match=r"asks for more memory than this machine has.*memory_budget"):
        source.read(0, 50)


def test_other_objects_are_refused():
    with pytest.raises(InvalidInputError, match="X must be a table of numbers whose rows can be read; got dict"):
        open_source({})
    dask_like = type("Array", (), {"__module__": "dask.array", "shape": (3, 3)})()
    adata = type("AnnData", (), {"__module__": "anndata", "X": dask_like, "var_names": NAMES})()
    with pytest.raises(InvalidInputError, match=r"adata\.X is a Array.*Pass adata\.X itself"):
        open_source(adata)


def test_threads_of_an_open_source_are_those_that_are_asked_for(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "x.parquet")
    source = open_file(tmp_path / "x.parquet", 1)
    again = open_source(source, 2)
    assert (again.n_jobs, source.n_jobs) == (2, 1)  # the one of the user stays as it is
    assert open_source(source) is source


def test_a_library_that_is_missing_is_called_as_it_is_installed(monkeypatch):
    from mosaic.text import library

    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError, match="pip install pillow"):
        library("PIL.Image", "a picture")
