"""The same points in any dress give the same answer, and what are no points is refused with a reason."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS

NAMES = [f"x{j}" for j in range(10)]
X = make_blobs(160, centers=8, n_features=10, random_state=5)[0]
X[np.abs(X) < 2.0] = 0.0  # so that sparse formats have something to leave out
X[:3] = 100.0 * np.random.default_rng(0).normal(size=(3, 10))
NEW = X[20:40] + np.random.default_rng(1).normal(size=(20, 10))
MODEL = MOSAIC(8).fit(X)
ATTRIBUTES = ["representative_indices_", "labels_", "is_outlier_", "effective_count_", "representation_error_", "coverage_"]


def memory_map(A, folder):
    np.save(folder / "points.npy", A)
    return np.load(folder / "points.npy", mmap_mode="r")


DRESSES = {
    "Fortran order": lambda A, folder: np.asfortranarray(A),
    "strided": lambda A, folder: np.repeat(A, 2, axis=1)[:, ::2],
    "read-only": lambda A, folder: np.frombuffer(A.tobytes()).reshape(A.shape),
    "other byte order": lambda A, folder: A.astype(">f8"),
    "objects": lambda A, folder: A.astype(object),
    "lists": lambda A, folder: A.tolist(),
    "memory map": memory_map,
    "CSR array": lambda A, folder: sp.csr_array(A),
    "CSR matrix": lambda A, folder: sp.csr_matrix(A),
    "CSC array": lambda A, folder: sp.csc_array(A),
    "pandas": lambda A, folder: pd.DataFrame(A, columns=NAMES, index=range(1000, 1000 + len(A))),
    "polars": lambda A, folder: pl.DataFrame(A, schema=NAMES),
}


def agree(model, expected, rtol=1e-7, names=ATTRIBUTES):
    for name in names:
        rtol = ROUNDING_OF_COUNTS if name == "effective_count_" else rtol
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=rtol, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("dress", DRESSES)
def test_points_in_any_dress_give_the_same_answer(dress, tmp_path):
    model = MOSAIC(8).fit(DRESSES[dress](X, tmp_path))
    agree(model, MODEL)
    new = DRESSES[dress](NEW, tmp_path)
    np.testing.assert_array_equal(model.predict(new), MODEL.predict(NEW))
    np.testing.assert_allclose(model.transform(new), MODEL.transform(NEW), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.score_samples(new), MODEL.score_samples(NEW), atol=ROUNDING_OF_COUNTS)
    assert model.score(new) == pytest.approx(MODEL.score(NEW), rel=1e-9)


@pytest.mark.parametrize("kernel", ["laplacian", "linear", "polynomial", "cosine", "diffusion"])
def test_sparse_points_give_the_same_answer_with_any_kernel(kernel):
    dense, sparse = MOSAIC(8, kernel=kernel).fit(X), MOSAIC(8, kernel=kernel).fit(sp.csr_array(X))
    agree(sparse, dense, rtol=1e-6)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(NEW)), dense.predict(NEW))
    np.testing.assert_array_equal(sparse.predict(NEW), dense.predict(sp.csr_array(NEW)))


def test_fit_leaves_its_input_as_it_was():
    dense, sparse = X.copy(), sp.csr_array(X)
    unsorted = sp.csr_array((sparse.data.copy(), sparse.indices[::-1].copy(), sparse.indptr.copy()), shape=X.shape)
    before = unsorted.indices.copy()
    for given in (dense, sparse, unsorted):
        MOSAIC(8).fit(given).predict(given)
    np.testing.assert_array_equal(dense, X)
    np.testing.assert_array_equal(sparse.toarray(), X)
    np.testing.assert_array_equal(unsorted.indices, before)


def test_similarities_and_functions_give_the_answer_of_the_points():
    """For the same picks: which they are depends on the distances, that of the similarities or that of the points."""
    K = rbf_kernel(X, gamma=MODEL.gamma_)
    for given, new in ((K, rbf_kernel(NEW, X, gamma=MODEL.gamma_)), (sp.csr_array(K), None)):
        model = MOSAIC(8, kernel="precomputed")
        model.fit(given, must_include=MODEL.representative_indices_)
        np.testing.assert_array_equal(model.representative_indices_, MODEL.representative_indices_)
        np.testing.assert_array_equal(model.labels_, MODEL.labels_)
        np.testing.assert_array_equal(model.is_outlier_, MODEL.is_outlier_)
        np.testing.assert_allclose(model.effective_count_, MODEL.effective_count_, rtol=0.2)  # among other rows
        if new is not None:
            np.testing.assert_array_equal(model.predict(new), MODEL.predict(NEW))
            np.testing.assert_allclose(model.transform(new), MODEL.transform(NEW), rtol=1e-9, atol=1e-12)
    model = MOSAIC(8, kernel=lambda A, B: rbf_kernel(A, B, gamma=MODEL.gamma_))
    agree(model.fit(X, must_include=MODEL.representative_indices_), MODEL, rtol=1e-6, names=ATTRIBUTES[:4])
    D = np.sqrt(2.0 - 2.0 * K)  # what is known of the distances
    single = D[:, ~MODEL.is_outlier_][~MODEL.is_outlier_].mean(axis=0).min()
    errors = D[:, MODEL.representative_indices_].min(axis=1) / single
    np.testing.assert_allclose(model.representation_error_, errors, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.predict(NEW), MODEL.predict(NEW))


def people(library):
    columns = {
        "name": [f"person {i}" for i in range(160)],
        "mail": [f"person.{i % 80}@example.org" for i in range(160)],
        **{name: X[:, j] for j, name in enumerate(NAMES)},
        "city": ["Graz"] * 160,
    }
    if library == "polars":
        return pl.DataFrame(columns, schema_overrides={"city": pl.Categorical})
    frame = pd.DataFrame(columns, index=[f"row {i}" for i in range(160)])
    return frame.astype({"city": "category"})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_that_identify_rows_are_carried_along_and_the_others_are_found_by_their_names(library):
    frame = people(library)
    model = MOSAIC(8).fit(frame)
    agree(model, MODEL)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 10
    chosen = model.select(frame)
    assert type(chosen) is type(frame)
    rows = model.representative_indices_
    if library == "pandas":
        pd.testing.assert_frame_equal(chosen, frame.iloc[rows])
    else:
        assert chosen.equals(frame[rows])
        assert chosen.schema == frame.schema
    for columns in (NAMES[::-1], ["city", *NAMES[5:], "name", *NAMES[:5]]):
        np.testing.assert_array_equal(model.predict(frame[columns]), model.labels_)
        np.testing.assert_allclose(model.transform(frame[columns]), MODEL.transform(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(InvalidInputError, match="column 'x3' was there in fit and is missing now"):
        model.predict(frame[[name for name in NAMES if name != "x3"]])


def test_whole_single_and_missing_types_are_numbers():
    whole = np.random.default_rng(0).integers(0, 50, size=(60, 12))
    for dtype in (np.int8, np.int64, np.uint16, bool):
        agree(MOSAIC(5).fit(whole.astype(dtype)), MOSAIC(5).fit(whole.astype(dtype).astype(np.float64)))
    single = MOSAIC(8).fit(X.astype(np.float32))
    np.testing.assert_array_equal(single.representative_indices_, MODEL.representative_indices_)
    np.testing.assert_allclose(single.effective_count_, MODEL.effective_count_, rtol=0.05)
    np.testing.assert_array_equal(single.predict(NEW.astype(np.float32)), MODEL.predict(NEW))
    np.testing.assert_array_equal(single.predict(X.astype(np.float32)), MODEL.labels_)
    plain = pd.DataFrame({"a": np.arange(50) % 7, "b": np.arange(50) % 11, "c": np.arange(50) % 2 == 0})
    nullable = plain.astype({"a": "Int16", "b": "Float32", "c": "boolean"})
    agree(MOSAIC(5).fit(nullable), MOSAIC(5).fit(plain.astype(float)))
    nullable.loc[4, "a"] = pd.NA
    model = MOSAIC(5).fit(nullable)
    assert model.encoder_.names == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(nullable.astype(float)), model.labels_)


def with_entry(value, column=2):
    bad = X.copy()
    bad[7, column] = value
    return bad


REFUSED = {
    "NaN": (lambda: with_entry(np.nan), r"1 NaN. The first is X\[7, 2\] = nan, in row 7, column 2"),
    "inf": (lambda: with_entry(-np.inf), r"1 inf. The first is X\[7, 2\] = -inf, in row 7, column 2"),
    "NaN, sparse": (lambda: sp.csr_array(with_entry(np.nan, 0)), "1 NaN.*in row 7, column 0"),
    "lazy": (lambda: pl.DataFrame(X, schema=NAMES).lazy(), r"LazyFrame; all rows are needed in memory. .*\.collect\(\)"),
    "no numbers": (lambda: pd.DataFrame({"a": ["one", "two"]}), "X has no column of numbers .*a .String"),
    "twice": (lambda: pd.DataFrame(X[:, :2], columns=["a", "a"]), "more than one is called 'a'"),
    "complex column": (lambda: pd.DataFrame({"a": [1j, 2j], "b": [1.0, 2.0]}), "column 'a' is complex"),
    "series": (lambda: pd.Series([1.0, 2.0]), r"X is a single column\. Pass a data frame: X\.to_frame\(\)"),
    "no rows": (lambda: np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
    "no columns": (lambda: np.empty((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    "one dimension": (lambda: X[0], "Expected 2D array, got 1D array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_are_no_points_is_refused_with_a_reason(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        MOSAIC(8).fit(make())


@pytest.mark.parametrize("method", ["predict", "transform", "score_samples", "score"])
def test_new_points_are_checked_as_the_first_ones_were(method):
    for bad, message in ((with_entry(np.nan), "1 NaN"), (X[:, :9], "9 features.*10 features"), (X[0], "2D array")):
        with pytest.raises(ValueError, match=message):
            getattr(MODEL, method)(bad)


def test_copies_among_similarities_are_found_by_their_rows():
    twice = np.repeat(np.arange(40), 2)
    K = rbf_kernel(X[twice], gamma=0.01)
    model = MOSAIC(30, kernel="precomputed").fit(K)
    assert len(set(twice[model.representative_indices_])) == 30
    np.testing.assert_array_equal(model.labels_[::2], model.labels_[1::2])
    np.testing.assert_array_equal(model.predict(K), model.labels_)
    with pytest.raises(ValueError, match="X has 79 features, but MOSAIC is expecting 80 features"):
        model.predict(K[:, 1:])
    with pytest.raises(InvalidInputError, match=r"must be square; got shape \(160, 10\)"):
        model.fit(X)


CLOUD = np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize("use", [lambda X: mosaic.solve(X), lambda X: MOSAIC(3).fit(X), lambda X: MOSAICOutlierDetector().fit(X)])
def test_masked_entries_are_refused_and_masks_without_any_are_not(use):
    X = np.ma.masked_array(CLOUD, mask=np.zeros_like(CLOUD, bool))
    use(X)
    X[3, 1] = np.ma.masked
    with pytest.raises(InvalidInputError, match="X has 1 masked entries"):
        use(X)


def test_a_number_and_its_text_are_different_groups():
    groups = np.array([1, "1"] * 30, object)
    rows = MOSAIC(4, outliers="keep").fit(CLOUD, groups=groups, quotas={1: 3, "1": 1}).representative_indices_
    assert sorted(rows % 2) == [0, 0, 0, 1]
