"""Columns and rows of data frames of all libraries, and of what else has rows."""

import re
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from mosaic import MOSAIC, datasets
from mosaic.exceptions import InvalidInputError
from mosaic.rows import Encoder, Rows
from mosaic.rows.frames import cells_of, is_feature_name, n_rows, take_rows

PEOPLE = {
    "name": ["Ada", "Max", "Eva"],
    "height": [1.7, 1.8, 1.9],
    "town": ["Graz", "Linz", "Graz"],
    "age": [36, 41, 29],
    "member": [True, False, True],
}
NUMBERS = np.array([[1.7, 36, 1], [1.8, 41, 0], [1.9, 29, 1]])


def frames() -> list:
    pandas = pd.DataFrame(PEOPLE, index=pd.Index([7, 3, 7], name="key")).astype({"town": "category"})
    return [pytest.param(pandas, id="pandas"), pytest.param(pl.DataFrame(PEOPLE), id="polars")]


def features(X) -> list[str]:
    return [name for name in cells_of(X).numbers() if is_feature_name(name)]


@pytest.mark.parametrize("X", frames())
def test_columns_of_numbers_are_a_matrix_by_rows_and_those_that_are_missing_are_named(X):
    assert features(X) == ["height", "age", "member"]
    matrix = cells_of(X).only(features(X)).matrix()
    np.testing.assert_array_equal(matrix, NUMBERS)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(cells_of(X).only(["age", "height"]).matrix(), NUMBERS[:, [1, 0]])
    encoder = Encoder((), ("age", "weight"), 2)
    with pytest.raises(InvalidInputError, match=r"^column 'weight' was there in fit and is missing now; X has 'name', "):
        encoder.matrix(Rows.of(X))
    with pytest.raises(InvalidInputError, match=r"^column 'weight' was there in fit and is missing now, like 'iq'; X has"):
        Encoder((), ("weight", "age", "iq"), 3).matrix(Rows.of(X))
    with pytest.raises(InvalidInputError, match="column 'name' is of type String"):
        cells_of(X).only(["height", "name"]).matrix()


def test_dates_durations_categories_lists_and_structs_are_no_numbers_and_spans_of_time_are_compared():
    times = pd.date_range("2020", periods=2)
    X = pd.DataFrame({"d": times, "u": times - times[0], "c": pd.Categorical([1, 2]), "p": times.to_period(), "x": [1, 2]})
    X["l"] = [[1], [2]]
    assert features(X) == ["x"]
    Y = pl.DataFrame({"d": list(times.date), "u": [timedelta(0), timedelta(1)], "l": [[1], [2]], "s": [{"a": 1}, {"a": 2}]})
    Y = Y.with_columns(c=pl.Series(["a", "b"], dtype=pl.Categorical), b=pl.Series([b"", b"1"]), n=pl.lit(None), x=pl.lit(1))
    assert features(Y) == ["x"]
    minutes = np.random.default_rng(0).permutation(60)
    for library in (pd.DataFrame, pl.DataFrame):
        Z = library({"x": np.sin(np.arange(60)), "wait": [timedelta(minutes=int(m)) for m in minutes]})
        assert MOSAIC(5).fit(Z).encoder_.names == ["x", "wait"]
        np.testing.assert_array_equal(cells_of(Z)["wait"].numbers, 60.0 * minutes)


def objects(*values, index=None) -> pd.DataFrame:
    index = range(len(values)) if index is None else index
    return pd.DataFrame({"o": pd.Series(values, dtype=object, index=index), "b": np.arange(float(len(values)))})


DAYS = pd.date_range("2020", periods=3)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (objects(1, 2.5, None, index=[5, 5, 2]), [1, 2.5, np.nan]),
        (objects(np.int8(1), pd.NA, np.float32(0.5)), [1, np.nan, 0.5]),
        (objects(True, None, np.False_), [1, np.nan, 0]),
        (pl.DataFrame({"o": pl.Series([1, None, np.nan], dtype=pl.Object), "b": [0, 1, 2]}), [1, np.nan, np.nan]),
        (objects(1, 2, "x"), None),
        (objects(None, "a", np.nan, 2.5, index=list("kkkk")), None),
        (objects(1, np.timedelta64(1, "s")), None),
        (pl.DataFrame({"o": pl.Series([1, None, "x"], dtype=pl.Object), "b": [1, 2, 3]}), None),
        *((objects(*values), None) for values in (["a", np.nan, None], [[1], {"a": 1}, None], DAYS, DAYS - DAYS[0])),
    ],
)
def test_column_of_plain_numbers_kept_as_objects_is_converted_and_one_of_other_objects_is_not(X, expected):
    assert features(X) == (["b"] if expected is None else ["o", "b"])
    if expected is not None:
        np.testing.assert_array_equal(cells_of(X).matrix(), np.column_stack([expected, [0, 1, 2]]))


def test_column_names_that_are_no_strings_pass():
    X = pd.DataFrame({0: ["a", "b"] * 20, 10: range(40), 20: pd.Series([3, 5, 1, 2] * 10, dtype=object)})
    assert features(X) == ["10", "20"]
    assert cells_of(X).only(["20", "10"]).matrix()[:2].tolist() == [[3, 0], [5, 1]]
    model = MOSAIC(3).fit(X[[10, 20]])
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(X[[10, 20]]), model.labels_)
    levels = pd.DataFrame([["a", 1]], columns=pd.MultiIndex.from_tuples([("u", "v"), ("u", "w")]))
    assert features(levels) == ["('u', 'w')"]


def test_single_precision_stays_only_where_all_columns_have_it_and_sparse_columns_become_csr():
    singles = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    for X in (pd.DataFrame(singles), pl.DataFrame(singles), pd.DataFrame(singles).astype("Float32")):
        assert cells_of(X).matrix().dtype == np.float32
    for other in (np.float64, np.int8, bool):
        assert cells_of(pd.DataFrame(singles | {"c": np.ones(2, other)})).matrix().dtype == np.float64
    assert cells_of(pd.DataFrame({"a": np.ones(2, np.float16)})).matrix().dtype == np.float64
    X = pd.DataFrame.sparse.from_spmatrix(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [np.nan, 0.0]]), columns=["a", "b"])
    matrix = cells_of(X).only(["a", "b"]).matrix()
    assert (matrix.format, matrix.nnz) == ("csr", 2)
    np.testing.assert_array_equal(matrix.toarray(), X.to_numpy())
    assert cells_of(X.astype(pd.SparseDtype(np.float32, 0))).matrix().dtype == np.float32
    assert isinstance(cells_of(X.astype(pd.SparseDtype(float, np.nan))).matrix(), np.ndarray)


def test_arrow_tables_are_frames():
    pa = pytest.importorskip("pyarrow")
    X = pa.table(PEOPLE | {"price": pa.array([Decimal(1), None, Decimal(3)]), "none": pa.nulls(3)})
    assert features(X) == ["height", "age", "member", "price"]
    np.testing.assert_array_equal(cells_of(X).only(features(X)).matrix(), np.column_stack([NUMBERS, [1, np.nan, 3]]))
    assert take_rows(X, [2, 0, 2])["name"].to_pylist() == ["Eva", "Ada", "Eva"]
    assert n_rows(X) == n_rows(X["age"]) == 3
    with pytest.raises(InvalidInputError, match="more than one is called 'age'"):
        cells_of(X.append_column("age", pa.nulls(3)))


ROWS = np.array([2, 0, 2])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_rows_of_every_sparse_format_are_taken(kind):
    for X in (sp.csr_array(NUMBERS).asformat(kind), sp.csr_matrix(NUMBERS).asformat(kind)):
        taken = take_rows(X, ROWS)
        assert sp.issparse(taken)
        assert isinstance(taken, sp.sparray) == isinstance(X, sp.sparray)
        np.testing.assert_array_equal(taken.toarray(), NUMBERS[ROWS])
        assert n_rows(X) == 3
    assert taken.format == (kind if kind in ("csr", "csc", "lil") else "csr")


def test_rows_of_frames_arrays_and_lists_are_taken_by_position(tmp_path):
    X = frames()[0].values[0]
    pd.testing.assert_frame_equal(take_rows(X, ROWS), X.iloc[[2, 0, 2]])
    taken = take_rows(pd.Series(list("abc"), index=[2, 1, 0]), ROWS)
    assert (taken.tolist(), taken.index.tolist()) == (["c", "a", "c"], [0, 2, 0])
    assert take_rows(pl.Series(list("abc")), ROWS).to_list() == ["c", "a", "c"]
    np.save(tmp_path / "X.npy", NUMBERS)
    mapped = take_rows(np.load(tmp_path / "X.npy", mmap_mode="r"), ROWS)
    assert type(mapped) is np.ndarray
    np.testing.assert_array_equal(mapped, NUMBERS[ROWS])
    assert type(take_rows(NUMBERS.view(np.matrix), ROWS)) is np.matrix
    assert take_rows(np.ma.masked_equal([1, 2, 3], 3), ROWS).mask.tolist() == [True, False, True]
    assert take_rows(["a", [1], None], ROWS) == [None, "a", None]
    assert take_rows(("a", "b", "c"), [2, 0, 2]) == ["c", "a", "c"]


def test_row_numbers_are_checked():
    rows = Rows.of(pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}))
    assert (rows.names([]), rows.names([2, 0, 2]), rows.names(np.array([True, False, True]))) == ([], ["c", "a", "c"], ["a", "c"])
    wrong = {"0 … 2; got 0 … 3": [0, 3], "0 … 2; got -1 … 1": [1, -1], "length 3 as a mask": [True, False], "float64": [0.0, 1.0]}
    for match, numbers in wrong.items():
        with pytest.raises(InvalidInputError, match=match):
            rows.names(numbers)


def test_arrays_need_no_dataframe_library_and_facts_no_matplotlib():
    code = """
import sys
import numpy as np
import sklearn.base, sklearn.utils.validation  # which may load them for purposes of its own
theirs = set(sys.modules)
from mosaic.rows.frames import cells_if_frame, n_rows, take_rows
before = "narwhals" in sys.modules
assert cells_if_frame(np.eye(3)) is None
assert n_rows(take_rows(np.eye(3), [0, 2])) == 2
assert ("narwhals" in sys.modules) == before, "narwhals was imported for an array"
loaded = {"pandas", "polars", "pyarrow"} & (set(sys.modules) - theirs)
assert not loaded, loaded
from mosaic import MOSAIC, show
MOSAIC(2).fit(np.eye(9)).facts_.map
assert "matplotlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "anndata"])
def test_picks_say_their_rank_how_many_rows_they_stand_for_and_why(library):
    X = datasets.blobs_with_gross_outliers().X
    module = pytest.importorskip(library)
    frame = pd.DataFrame(X, columns=["x", "y"], index=[f"r{i % 50}" for i in range(len(X))])  # an index with repeated values
    data = {
        "pandas": lambda: frame,
        "polars": lambda: module.from_pandas(frame),
        "pyarrow": lambda: module.table(dict(frame)),
        "anndata": lambda: module.AnnData(X, obs=pd.DataFrame({"batch": 1}, index=[f"cell{i}" for i in range(len(X))])),
    }[library]()
    model = MOSAIC(6).fit(data)
    plain, told = model.select(data), model.select(data, with_reasons=True)
    if library == "anndata":
        np.testing.assert_array_equal(told.X, X[model.representative_indices_])
        assert list(plain.obs_names) == [f"cell{i}" for i in model.representative_indices_]
        plain, told = plain.obs, told.obs
    names = list(told.column_names if library == "pyarrow" else told.columns)
    assert names[:-3] == list(plain.column_names if library == "pyarrow" else plain.columns)
    columns = {name: (told[name].to_pylist() if library == "pyarrow" else list(told[name])) for name in names[-3:]}
    assert columns == {
        "mosaic_rank": [1, 2, 3, 4, 5, 6],
        "mosaic_stands_for": np.bincount(model.labels_[model.labels_ >= 0]).tolist(),
        "mosaic_reason": [pick.reason for pick in model.facts_.picks],
    }
    if library == "pandas":
        pd.testing.assert_frame_equal(told[["x", "y"]], frame.iloc[model.representative_indices_])
        assert "mosaic_rank_" in model.select(frame.assign(mosaic_rank=0), with_reasons=True)
        with pytest.raises(InvalidInputError, match=r"with_reasons needs the columns of a data frame; X is a ndarray"):
            model.select(X, with_reasons=True)


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_answers_for_new_rows_are_a_table(library):
    frame = pd.DataFrame(datasets.blobs_with_gross_outliers().X, columns=["x", "y"])
    new = pd.DataFrame({"x": [2.5, 2.5], "y": [0.0, 99.0]}, index=["near", "far"])
    if library == "polars":
        frame, new = (pytest.importorskip("polars").from_pandas(each) for each in (frame, new))
    elif library == "array":
        frame, new = frame.to_numpy(), new.to_numpy()
    found = MOSAIC(5).fit(frame).explain_new(new)
    table = found.to_frame()
    assert type(table).__module__.split(".")[0] == ("polars" if library == "polars" else "pandas")
    assert list(table["is_outlier"]) == [False, True]
    assert list(table["representative"]) == found.representative.tolist()
    assert [text if isinstance(text, str) else None for text in table["reason"]] == found.reason  # pandas 3 has NaN for none
    if library == "pandas":
        assert list(table.index) == ["near", "far"]
    assert repr(found) == "2 new rows, 1 outlier; to_frame() is the table."
    html = found._repr_html_()
    assert html.count("<tr>") == 3
    assert "effective count" in html
    assert not re.search(r">(None|nan)<", html)
