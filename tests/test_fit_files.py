"""A fit takes whatever file the command takes, and gives what the same rows in memory give."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mosaic import MOSAIC, MOSAICOutlierDetector
from mosaic.exceptions import InvalidInputError, SelectionWarning
from mosaic.rows import FileFault
from mosaic.rows.open import KINDS

pytest.importorskip("pyarrow.parquet")

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
    frame = framed(rows)
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
        assert "'shop_id' has the name of an id" in told
        assert "'tags' holds lists or structures" in told
        assert "'id'" not in told
    with pytest.raises(InvalidInputError, match=r"it has id .*rename those"):
        MOSAIC(3).fit(frame[["id"]])
    for error in (FileNotFoundError, FileFault):
        with pytest.raises(error, match="there is no such file"):
            MOSAIC(2).fit(tmp_path / "points.csv")


def test_similarities_may_be_called_as_they_like(rows):
    K = np.exp(-0.1 * ((rows[8:60, None] - rows[None, 8:60]) ** 2).sum(axis=2))
    frame = pd.DataFrame(K, columns=["id", *(f"p{j}" for j in range(51))], index=[f"C{i}" for i in range(52)])
    found = MOSAIC(3, kernel="precomputed").fit(frame)
    np.testing.assert_array_equal(found.representative_indices_, MOSAIC(3, kernel="precomputed").fit(K).representative_indices_)
    assert found.explain("C8").row == 8


def save_h5ad(path, rows):
    pytest.importorskip("anndata").AnnData(rows, var=pd.DataFrame(index=NAMES)).write_h5ad(path)


def framed(rows):
    return pd.DataFrame(rows, columns=NAMES)


FILES = {
    "points.csv": lambda path, rows: framed(rows).to_csv(path, index=False),
    "points.tsv": lambda path, rows: framed(rows).to_csv(path, index=False, sep="\t"),
    "points.csv.gz": lambda path, rows: framed(rows).to_csv(path, index=False),
    "points.jsonl": lambda path, rows: framed(rows).to_json(path, orient="records", lines=True, double_precision=15),
    "points.parquet": lambda path, rows: framed(rows).to_parquet(path),
    "points.feather": lambda path, rows: framed(rows).to_feather(path),
    "points.npy": np.save,
    "points.npz": lambda path, rows: np.savez(path, X=rows),
    "sparse.npz": lambda path, rows: sp.save_npz(path, sp.csr_matrix(rows)),
    "points.h5ad": save_h5ad,
    "points.zarr": lambda path, rows: pytest.importorskip("zarr").create_array(str(path), data=rows),
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
    chosen = found.select(path)  # cells of a table, numbers of an array
    if hasattr(chosen, "column_names"):
        chosen = chosen.select(NAMES).to_pandas().to_numpy()
    chosen = chosen.toarray() if sp.issparse(chosen) else chosen
    np.testing.assert_allclose(chosen, rows[expected.representative_indices_])
    has_names = name not in ("points.npy", "points.npz", "sparse.npz", "points.zarr")
    assert getattr(found, "feature_names_in_", np.array([])).tolist() == (NAMES if has_names else [])
