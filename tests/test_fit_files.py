"""A fit takes whatever file the command takes, and gives what the same rows in memory give."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic import MOSAIC, MOSAICOutlierDetector, Sketch
from mosaic.exceptions import InvalidInputError, SelectionWarning
from mosaic.rows import FileFault, read
from mosaic.rows.open import KINDS

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows():
    """Two clouds, and eight rows far away from both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[150:] += 8
    X[:8] += 40 * np.sign(rng.normal(size=(8, 3))) * (1 + np.arange(8))[:, None]
    return X.round(6)


@pytest.fixture
def frame(rows):
    """The rows, with numbers that identify them and would drown all else."""
    frame = pd.DataFrame(rows, columns=NAMES)
    frame.insert(0, "id", 1_000_000 + 1000 * np.arange(len(rows)))
    return frame


def test_a_file_a_frame_and_the_command_agree_about_what_a_feature_is(rows, frame, tmp_path, capsys, monkeypatch):
    from mosaic.cli import main

    monkeypatch.chdir(tmp_path)
    frame.to_parquet("points.parquet")
    expected = MOSAIC(6).fit(rows)
    assert np.flatnonzero(expected.is_outlier_).tolist() == list(range(8))
    for model in (MOSAIC(6).fit("points.parquet"), MOSAIC(6).fit(frame)):
        np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
        np.testing.assert_array_equal(model.is_outlier_, expected.is_outlier_)
        assert model.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(model.predict(frame), expected.labels_)
    assert main(["select", "points.parquet", "-k", "6", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [pick["row"] for pick in answer["picks"]] == expected.representative_indices_.tolist()
    assert answer["file"]["feature_names"] == NAMES
    detector = MOSAICOutlierDetector().fit("points.parquet")
    assert np.flatnonzero(detector.is_outlier_).tolist() == list(range(8))
    np.testing.assert_array_equal(detector.predict("points.parquet") < 0, expected.is_outlier_)
    frame[["c", "a", "b"]].to_parquet("other.parquet")
    np.testing.assert_array_equal(detector.predict("other.parquet") < 0, expected.is_outlier_)  # found by name
    frame[["c", "a"]].to_parquet("fewer.parquet")
    with pytest.raises(InvalidInputError, match=r"fewer.parquet, column 'b': was there in fit and is missing now"):
        detector.predict("fewer.parquet")


def test_one_warning_names_all_columns_that_might_have_been_compared(frame, tmp_path):
    frame["shop_id"], frame["tags"] = 7, [["new", "red"], ["old"]] * (len(frame) // 2)
    frame.to_parquet(tmp_path / "points.parquet")
    for X in (frame, tmp_path / "points.parquet"):
        with pytest.warns(SelectionWarning) as caught:
            MOSAIC(3).fit(X)
        (told,) = [str(one.message) for one in caught]
        assert "'shop_id' is called as ids are" in told
        assert "'tags' holds lists or structures" in told
        assert "'id'" not in told


def test_a_frame_of_nothing_but_ids_says_how_to_compute_with_them(frame):
    with pytest.raises(InvalidInputError, match=r"it has 'id' .*rename numbers"):
        MOSAIC(3).fit(frame[["id"]])


def test_similarities_may_be_called_as_they_like(rows):
    K = np.exp(-0.1 * ((rows[8:60, None] - rows[None, 8:60]) ** 2).sum(axis=2))
    frame = pd.DataFrame(K, columns=["id", *(f"p{j}" for j in range(51))])
    found = MOSAIC(3, kernel="precomputed").fit(frame)
    np.testing.assert_array_equal(found.representative_indices_, MOSAIC(3, kernel="precomputed").fit(K).representative_indices_)


def save_h5ad(path, rows):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(rows, var=pd.DataFrame(index=NAMES)).write_h5ad(path)


def save_zarr(path, rows):
    pytest.importorskip("zarr").create_array(str(path), data=rows)


FILES = {
    "points.csv": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_csv(path, index=False),
    "points.tsv": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_csv(path, index=False, sep="\t"),
    "points.csv.gz": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_csv(path, index=False),
    "points.jsonl": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_json(
        path, orient="records", lines=True, double_precision=15
    ),
    "points.parquet": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_parquet(path),
    "points.feather": lambda path, rows: pd.DataFrame(rows, columns=NAMES).to_feather(path),
    "points.npy": np.save,
    "points.npz": lambda path, rows: np.savez(path, X=rows),
    "sparse.npz": lambda path, rows: sp.save_npz(path, sp.csr_matrix(rows)),
    "points.h5ad": save_h5ad,
    "points.zarr": save_zarr,
}


def test_every_reader_of_files_has_a_file_here():
    """Workbooks have tests of their own."""
    endings = {ending for name in FILES for ending in KINDS if f".{name.split('.')[1]}" == ending}
    assert {KINDS[ending].open for ending in endings} == {kind.open for kind in KINDS.values()} - {KINDS[".xlsx"].open}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_is_fitted_as_its_rows_are(name, rows, tmp_path):
    path = tmp_path / name
    FILES[name](path, rows)
    expected = MOSAIC(4).fit(sp.csr_matrix(rows) if name.startswith("sparse") else rows)
    found = MOSAIC(4).fit(path)
    np.testing.assert_array_equal(found.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(found.predict(str(path)), expected.predict(rows))
    np.testing.assert_allclose(found.select(path), rows[expected.representative_indices_])
    has_names = name not in ("points.npy", "points.npz", "sparse.npz", "points.zarr")
    assert getattr(found, "feature_names_in_", np.array([])).tolist() == (NAMES if has_names else [])


def test_pictures_are_fitted_as_their_pixels_are(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    album = tmp_path / "album"
    album.mkdir()
    for i in range(40):
        pixels = np.clip(rng.normal(60 if i % 2 else 190, 5, (32, 32)), 0, 255).astype(np.uint8)
        image.fromarray(pixels).save(album / f"{i:02}.png")
    found = MOSAIC(2, outliers="keep").fit(album)
    assert found.n_features_in_ == 32 * 32
    assert sorted(found.representative_indices_ % 2) == [0, 1]


def test_a_file_that_is_large_for_the_budget_is_read_in_passes_with_the_same_answer(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20_000, 3)), rng.normal(size=(20_000, 3)) + 9]).round(4)
    pd.DataFrame(X, columns=NAMES).to_csv(tmp_path / "points.csv", index=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    sizes = {"algorithm": Sketch(n_initial=20, n_rounds=1), "random_state": 0}
    expected = MOSAIC(2, **sizes).fit(X)
    monkeypatch.setattr("mosaic.estimators.reading.read", lambda path, memory_budget: read(path, memory_budget=16))
    found = MOSAIC(2, **sizes).fit(tmp_path / "points.csv")
    assert list(scratch.iterdir())
    np.testing.assert_array_equal(found.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(found.labels_, expected.labels_)  # one more pass, after fit


def test_a_missing_file_is_an_error_of_both_kinds(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        MOSAIC(2).fit(tmp_path / "points.csv")
    with pytest.raises(FileFault, match="there is no such file"):
        MOSAICOutlierDetector().fit(str(tmp_path / "points.csv"))
