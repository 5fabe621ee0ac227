"""Arrays, cells, pictures and texts with embeddings are tables too, whatever their files are."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic import MOSAIC, Sketch
from mosaic.rows import FileFault, read
from read_files import BUDGETS, TINY, numbers

pa = pytest.importorskip("pyarrow")


def test_npy_files_are_mapped_and_their_features_are_columns(tmp_path, rng):
    X = rng.normal(size=(5, 3))
    np.save(tmp_path / "x.npy", X)
    with read(tmp_path / "x.npy", memory_budget=400) as table:
        assert isinstance(table.X, np.memmap)
    with read(tmp_path / "x.npy") as table:
        assert not isinstance(table.X, np.memmap)  # a small file may be cut off meanwhile
        assert table.kind == "NumPy array"
        assert table.columns == ["x0", "x1", "x2"]
        np.testing.assert_array_equal(table.cells([4, 0])["x2"], X[[4, 0], 2])
    np.save(tmp_path / "wide.npy", rng.normal(size=(5, 51)))
    with read(tmp_path / "wide.npy") as table:
        assert table.columns == []
        rows = table.cells([1, 2, 1])
        assert rows.num_rows == 3
        assert rows.append_column("rank", pa.array([1, 2, 3]))["rank"].to_pylist() == [1, 2, 3]


def test_npz_files_give_their_one_table_or_the_one_that_is_named(tmp_path):
    np.savez(tmp_path / "one.npz", X=np.eye(3), labels=np.arange(3))
    np.savez_compressed(tmp_path / "two.npz", X=np.eye(3), Y=np.ones((2, 2), np.float32))
    with read(tmp_path / "one.npz") as table:
        np.testing.assert_array_equal(numbers(table), np.eye(3))
    with read(tmp_path / "two.npz", array="Y") as table:
        assert table.X.dtype == np.float32
        np.testing.assert_array_equal(numbers(table), np.ones((2, 2)))
    with pytest.raises(FileFault, match=r"more than half of the memory budget.*\.npy"):
        read(tmp_path / "two.npz", array="Y", memory_budget=TINY)
    with pytest.raises(FileFault, match=r"X \(3, 3\), Y \(2, 2\).*with array"):
        read(tmp_path / "two.npz")
    with pytest.raises(FileFault, match="has no array 'Z'"):
        read(tmp_path / "two.npz", array="Z")


def test_sparse_matrices_stay_sparse(tmp_path, rng):
    X = sp.random_array((20, 60), density=0.1, rng=rng, format="csc")
    sp.save_npz(tmp_path / "x.npz", X)
    with read(tmp_path / "x.npz") as table:
        assert table.X.format == "csr"
        np.testing.assert_allclose(table.X.toarray(), X.toarray(), rtol=1e-15)
        assert MOSAIC(n_representatives=2).fit(table.X).n_features_in_ == 60


def annotated(rng, matrix=sp.csr_matrix):
    anndata = pytest.importorskip("anndata")
    counts = rng.poisson(1.0, (6, 5))
    return anndata.AnnData(
        X=matrix(counts.astype(np.float32)),
        obs=pd.DataFrame({"type": pd.Categorical(list("aabbcc")), "depth": np.arange(6.0)}, index=[f"cell{i}" for i in range(6)]),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(5)]),
        layers={"counts": counts},
        obsm={"X_pca": rng.normal(size=(6, 2))},
    )


@BUDGETS
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_cells_are_named_and_their_observations_are_columns(budget, tmp_path, rng):
    data = annotated(rng)
    data.write_h5ad(tmp_path / "cells.h5ad")
    with read(tmp_path / "cells.h5ad", group="type", weight="depth", memory_budget=budget) as table:
        X = table.X.toarray() if budget is None else table.X.read(0, 6)
        np.testing.assert_array_equal(X, data.X.toarray())
        assert table.feature_names == [f"gene{j}" for j in range(5)]
        assert table.names([5]) == ["cell5"]
        assert table.columns == ["obs_names", "type", "depth"]
        assert table.cells([2])["type"].to_pylist() == ["b"]
        assert table.groups.tolist() == list("aabbcc")
        assert table.weights.tolist() == list(range(6))
    for array, expected in (("layers/counts", data.layers["counts"]), ("obsm/X_pca", data.obsm["X_pca"])):
        with read(tmp_path / "cells.h5ad", array=array, memory_budget=budget) as table:
            X = table.X if budget is None else table.X.read(0, 6)
            np.testing.assert_array_equal(X, expected)
            assert (table.feature_names is None) == array.startswith("obsm")
    with pytest.raises(FileFault, match=r"no array 'obsm/X_pcb'. Did you mean 'obsm/X_pca'"):
        read(tmp_path / "cells.h5ad", array="obsm/X_pcb")
    with pytest.raises(FileFault, match="column of obs 'typ'"):
        read(tmp_path / "cells.h5ad", group="typ")


@BUDGETS
@pytest.mark.filterwarnings("ignore")
def test_zarr_arrays_and_groups_are_read(budget, tmp_path, rng):
    zarr = pytest.importorskip("zarr")
    X = rng.normal(size=(7, 3))
    stored = zarr.open_array(str(tmp_path / "x.zarr"), mode="w", shape=X.shape, chunks=(2, 3), dtype="f8")
    stored[:] = X
    with read(tmp_path / "x.zarr", memory_budget=budget) as table:
        np.testing.assert_array_equal(table.X if budget is None else table.X.read(0, 7), X)
        np.testing.assert_array_equal(table.cells([6, 1])["x1"], X[[6, 1], 1])
    group = zarr.open_group(str(tmp_path / "group"), mode="w")
    group["a"], group["b"] = X, X[:2]
    with pytest.raises(FileFault, match=r"a \(7, 3\), b \(2, 3\).*with array"):
        read(tmp_path / "group")
    with read(tmp_path / "group", array="b", memory_budget=budget) as table:
        assert table.n == 2
    with pytest.raises(FileFault, match="no array 'c'"):
        read(tmp_path / "group", array="c")
    del group["b"]
    with read(tmp_path / "group", memory_budget=budget) as table:
        assert table.n == 7
        assert table.cells([]).num_rows == 0
    wide = zarr.open_array(str(tmp_path / "wide.zarr"), mode="w", shape=(3, 60), dtype="f8")
    with read(tmp_path / "wide.zarr", memory_budget=budget) as table:
        assert (table.columns, table.cells([0, 2]).num_rows) == ([], 2)
    wide[:] = np.nan
    with pytest.raises(FileFault, match="missing"):
        read(tmp_path / "wide.zarr", memory_budget=budget, drop_missing=True)
    annotated(rng).write_zarr(tmp_path / "cells.zarr")
    with read(tmp_path / "cells.zarr", memory_budget=budget) as table:
        assert (table.n_features, table.names([1])) == (5, ["cell1"])


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_bad_rows_of_large_arrays_are_left_out_without_a_copy_of_the_others(kind, tmp_path, rng, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    X = rng.normal(size=(20_000, 3))
    X[[0, 3, 50, 8192, 19_999], 1] = np.nan
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        stored = pytest.importorskip("zarr").open_array(str(path), mode="w", shape=X.shape, chunks=(9, 3), dtype="f8")
        stored[:] = X
    good = np.delete(X, [0, 3, 50, 8192, 19_999], axis=0)
    with read(path, drop_missing=True, memory_budget=TINY) as table:
        np.testing.assert_array_equal(numbers(table), good)
        for start, stop in table.X.pieces():
            np.testing.assert_array_equal(table.X.read(start, stop), good[start:stop])
        assert table.X.read(48, 49).tolist() == [good[48].tolist()]
        assert table.names([0, 1, 2, 48, 19_994]) == ["1", "2", "4", "51", "19998"]
        assert not list(scratch.iterdir())
        by_passes = MOSAIC(3, algorithm=Sketch(n_initial=20, n_rounds=1)).fit(table.X)
    in_memory = MOSAIC(3, algorithm=Sketch(n_initial=20, n_rounds=1)).fit(good)
    np.testing.assert_array_equal(by_passes.representative_indices_, in_memory.representative_indices_)


def test_pictures_may_come_with_embeddings_and_are_shown_all_the_same(tmp_path, rng):
    album(tmp_path / "album", rng)
    np.save(tmp_path / "vectors.npy", np.eye(4))
    with read(tmp_path / "album", embeddings=tmp_path / "vectors.npy") as table:
        np.testing.assert_array_equal(numbers(table), np.eye(4))
        assert table.names([2]) == ["b/two.jpg"]
        assert len(table.pictures([2])) == 1
        assert not any("resized" in note for note in table.notes)


@pytest.mark.parametrize("budget", [None, 100], ids=["small", "large"])
def test_embeddings_take_the_place_of_the_numbers_of_a_table(budget, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("key,height,city\na,1.7,Ulm\nb,1.8,Rome\nc,1.6,Ulm\n")
    np.savez(tmp_path / "vectors.npz", v=np.array([[1.0, 2], [np.nan, 3], [4, 5]]), w=np.eye(2))
    options = {"embeddings": tmp_path / "vectors.npz", "array": "v", "group": "city", "memory_budget": budget}
    with pytest.raises(FileFault, match=r"vectors.npz, row 1"):
        read(path, **options)
    with pytest.raises(FileFault, match=r"vectors.npz: has 2 rows, people.csv has 3"):
        read(path, **options | {"array": "w"})
    with read(path, **options, drop_missing=True) as table:
        np.testing.assert_array_equal(numbers(table), [[1, 2], [4, 5]])
        assert table.names([1]) == ["c"]
        assert table.groups.tolist() == ["Ulm", "Ulm"]
        assert table.cells([1])["height"].to_pylist() == [1.6]


def image(rng, shape, kind="PNG", mode=None, **options):
    pillow = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    pixels = rng.integers(0, 65535 if mode == "I;16" else 255, shape, dtype=np.uint16 if mode == "I;16" else np.uint8)
    picture = pillow.fromarray(pixels)
    picture.save(stream, kind, **options)
    return stream.getvalue()


def album(folder, rng):
    files = {"b/two.jpg": image(rng, (90, 130, 3), "JPEG"), "a.png": image(rng, (8, 8)), "b/one.PNG": image(rng, (9, 9, 4))}
    files |= {"deep.png": image(rng, (20, 20), mode="I;16"), ".hidden.png": b"x", "readme.md": b"x"}
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(content)
    return files


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_pictures_are_rows_by_their_file_names(packed, tmp_path, rng):
    pillow = pytest.importorskip("PIL.Image")
    files = album(tmp_path / "album", rng)
    path = tmp_path / "album"
    if packed:
        path = tmp_path / "album.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    seen = []
    with read(path, image_size=4, progress=lambda *done: seen.append(done)) as table:
        assert table.names(range(4)) == ["a.png", "b/one.PNG", "b/two.jpg", "deep.png"]
        assert table.X.shape == (4, 16)
        assert table.X.dtype == np.float32
        assert 0 <= table.X.min() < table.X.max() <= 1
        assert "4 images resized to 4×4, grey." in table.notes
        assert seen[-1][0] == seen[-1][1] > 0
        small, large = table.pictures([0, 2], side=32)
        assert pillow.open(io.BytesIO(small)).size == (8, 8)
        assert max(pillow.open(io.BytesIO(large)).size) == 32
        assert len(table.pictures([0, 1, 2, 3])) == 4
        assert table.find("b/two.jpg") == 2
    with pytest.raises(FileFault, match="more than half of the memory budget"):
        read(path, image_size=4, memory_budget=TINY)
    with read(path, image_size=4, colour=True, group="folder") as table:
        assert table.n_features == 48
        assert table.groups.tolist() == [".", "b", "b", "."]
        assert "4 images resized to 4×4, colour." in table.notes


def test_pictures_are_turned_as_the_camera_was_held_and_transparency_is_white(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    dark_left = np.zeros((8, 8), np.uint8)
    dark_left[:, 4:] = 255
    exif = pillow.Exif()
    exif[0x0112] = 6  # was held upright: the left side is the upper one
    pillow.fromarray(dark_left).save(tmp_path / "turned.png", exif=exif)
    pillow.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "nothing.png")
    with read(tmp_path, image_size=2) as table:
        np.testing.assert_allclose(table.X[0], 1)
        np.testing.assert_allclose(table.X[1].reshape(2, 2), [[0, 0], [1, 1]], atol=0.1)


def test_names_in_a_zip_file_that_lead_elsewhere_are_only_names(tmp_path, rng):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("../../evil.png"), image(rng, (8, 8)))
        archive.writestr(zipfile.ZipInfo("/etc/evil.png"), image(rng, (8, 8)))
    before = set(tmp_path.rglob("*")) | set(tmp_path.parent.glob("*.png"))
    with read(tmp_path / "x.zip") as table:
        assert table.names([0, 1]) == ["../../evil.png", "/etc/evil.png"]
        assert table.pictures([0])[0].startswith(b"\x89PNG")
    assert before == set(tmp_path.rglob("*")) | set(tmp_path.parent.glob("*.png"))
