"""Arrays, cells and pictures are tables too, whatever their files are."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic import MOSAIC
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
    zarr.open_array(str(tmp_path / "wide.zarr"), mode="w", shape=(3, 60), dtype="f8")
    with read(tmp_path / "wide.zarr", memory_budget=budget) as table:
        assert (table.columns, table.cells([0, 2]).num_rows) == ([], 2)
    annotated(rng).write_zarr(tmp_path / "cells.zarr")
    with read(tmp_path / "cells.zarr", memory_budget=budget) as table:
        assert (table.n_features, table.names([1])) == (5, ["cell1"])


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


def test_pictures_are_rows_by_their_file_names(tmp_path, rng):
    pillow = pytest.importorskip("PIL.Image")
    path, seen = tmp_path / "album", []
    album(path, rng)
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
