from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from mosaic.door import check_entries
from mosaic.exceptions import InvalidInputError
from mosaic.frames import column_names, n_rows, numeric_part, take_rows, to_matrix

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


# ------------------------------------------------------------------------------------------------ columns of numbers


@pytest.mark.parametrize("X", frames())
def test_columns_of_numbers_are_kept_in_a_frame_of_the_same_kind(X):
    part = numeric_part(X)
    assert type(part) is type(X)
    assert list(part.columns) == ["height", "age", "member"]
    matrix = to_matrix(part)
    np.testing.assert_array_equal(matrix, NUMBERS)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    assert list(X.columns) == list(PEOPLE)


def test_dates_durations_categories_lists_and_structs_are_identifiers():
    times = pd.date_range("2020", periods=2)
    X = pd.DataFrame({"d": times, "u": times - times[0], "c": pd.Categorical([1, 2]), "p": times.to_period(), "x": [1, 2]})
    X["l"] = [[1], [2]]
    assert list(numeric_part(X).columns) == ["x"]
    Y = pl.DataFrame({"d": list(times.date), "u": [timedelta(0), timedelta(1)], "l": [[1], [2]], "s": [{"a": 1}, {"a": 2}]})
    Y = Y.with_columns(c=pl.Series(["a", "b"], dtype=pl.Categorical), b=pl.Series([b"", b"1"]), n=pl.lit(None), x=pl.lit(1))
    assert numeric_part(Y).columns == ["x"]


@pytest.mark.parametrize("X", frames())
def test_named_columns_are_taken_in_the_order_of_the_names(X):
    assert list(numeric_part(X, names=["age", "height"]).columns) == ["age", "height"]
    np.testing.assert_array_equal(to_matrix(numeric_part(X, names=["age", "height"])), NUMBERS[:, [1, 0]])


@pytest.mark.parametrize("X", frames())
def test_named_columns_that_are_missing_are_named(X):
    with pytest.raises(InvalidInputError, match=r"^column 'weight' was there in fit and is missing now; X has 'name', "):
        numeric_part(X, names=["age", "weight"])
    with pytest.raises(InvalidInputError, match=r"^columns 'weight', 'iq' were there in fit and are missing now"):
        numeric_part(X, names=["weight", "age", "iq"])


@pytest.mark.parametrize("X", frames())
def test_named_columns_that_no_longer_hold_numbers_are_refused(X):
    with pytest.raises(InvalidInputError, match="column 'name' held numbers in fit and is of type String now"):
        numeric_part(X, names=["height", "name"])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.Series([None, None], dtype=object, index=[5, 5]), "b": [1, 2]}),
        pd.DataFrame({"a": [pd.NaT, pd.NaT], "b": [1, 2]}),
        pl.DataFrame({"a": [None, None], "b": [1, 2]}),
        pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String), "b": [1, 2]}),
    ],
)
def test_column_without_a_value_is_an_identifier_unless_it_is_named(X):
    assert list(numeric_part(X).columns) == ["b"]
    named = numeric_part(X, names=["b", "a"])
    assert list(named.columns) == ["b", "a"]
    with pytest.raises(InvalidInputError, match=r"2 NaN\. .* in row 0, column 'a'"):
        check_entries(to_matrix(named), column_names(named))


# ------------------------------------------------------------------------------------------------------- objects


def objects(*values, index=None) -> pd.DataFrame:
    index = range(len(values)) if index is None else index
    return pd.DataFrame({"o": pd.Series(values, dtype=object, index=index), "b": np.arange(float(len(values)))})


@pytest.mark.parametrize(
    ("X", "where"),
    [
        (objects(1, 2, "x"), r"row 2 \(counted from 0\) holds 'x', row 0 holds 1\."),
        (objects(None, "a", np.nan, 2.5, index=list("kkkk")), r"row 1 \(counted from 0\) holds 'a', row 3 holds 2\.5\."),
        (objects(True, "yes"), "row 1 .* holds 'yes', row 0 holds True"),
        (objects(*["a"] * 150, 7), r"row 0 \(counted from 0\) holds 'a', row 150 holds 7\."),
        (objects(1, np.timedelta64(1, "s")), "row 1 .* holds .*timedelta.*, row 0 holds 1"),
        (pl.DataFrame({"o": pl.Series([1, None, "x"], dtype=pl.Object), "b": [1, 2, 3]}), "row 2 .* holds 'x'"),
    ],
)
def test_column_that_mixes_numbers_with_other_values_is_refused_and_located(X, where):
    with pytest.raises(InvalidInputError, match=f"^column 'o' mixes numbers .*{where}.* pd.to_numeric"):
        numeric_part(X)
    assert list(numeric_part(X, names=["b"]).columns) == ["b"]  # what is not asked for is not looked at


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (objects(1, 2.5, None, index=[5, 5, 2]), [1, 2.5, np.nan]),
        (objects(np.int8(1), pd.NA, np.float32(0.5)), [1, np.nan, 0.5]),
        (objects(True, None, np.False_), [1, np.nan, 0]),
        (pl.DataFrame({"o": pl.Series([1, None, np.nan], dtype=pl.Object), "b": [0, 1, 2]}), [1, np.nan, np.nan]),
    ],
)
def test_column_of_plain_numbers_kept_as_objects_is_converted(X, expected):
    part = numeric_part(X)
    assert type(part) is type(X)
    np.testing.assert_array_equal(to_matrix(part), np.column_stack([expected, [0, 1, 2]]))
    if isinstance(X, pd.DataFrame):
        assert part.index.equals(X.index)
        assert X["o"].dtype == object


def test_objects_without_a_number_are_identifiers():
    days = pd.date_range("2020", periods=3)
    for values in (["a", np.nan, None], [[1], {"a": 1}, None], list(days), list(days - days[0]), [np.timedelta64(1)] * 3):
        assert list(numeric_part(objects(*values)).columns) == ["b"]


def test_complex_columns_are_refused():
    with pytest.raises(InvalidInputError, match="column 'z' is complex"):
        numeric_part(pd.DataFrame({"z": [1j, 2j], "b": [1, 2]}))


# -------------------------------------------------------------------------------------------------------- refusals


def test_data_that_is_not_in_memory_is_refused():
    lazy = pl.LazyFrame(PEOPLE)
    for function in (numeric_part, to_matrix, column_names, n_rows):
        with pytest.raises(InvalidInputError, match=r"^X is a LazyFrame; all rows are needed in memory. Call .collect\(\) first"):
            function(lazy)
    with pytest.raises(InvalidInputError, match=r"^X is a LazyFrame; all rows are needed in memory. Call .collect\(\) first"):
        take_rows(lazy, [0])


@pytest.mark.parametrize("X", [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])], ids=["pandas", "polars"])
def test_series_are_refused_with_a_remedy_that_works(X):
    with pytest.raises(InvalidInputError, match=r"X is a Series.*X\.to_frame\(\)"):
        numeric_part(X)
    np.testing.assert_array_equal(to_matrix(numeric_part(X.to_frame())), [[1.0], [2.0]])


@pytest.mark.parametrize("X", frames())
def test_frame_without_numbers_is_refused_with_its_columns_and_types(X):
    with pytest.raises(InvalidInputError, match=r"no column of numbers, only 'name' \(String\), 'town' \(.*OneHotEncoder"):
        numeric_part(X[["name", "town"]])


def test_columns_of_the_same_name_are_refused_by_name():
    X = pd.DataFrame(np.ones((2, 4)), columns=["a", "b", "a", "c"])
    for function in (numeric_part, to_matrix, column_names):
        with pytest.raises(InvalidInputError, match="more than one is called 'a'"):
            function(X)


# ------------------------------------------------------------------------------------------------- unusual frames


def test_column_names_that_are_no_strings_pass():
    X = pd.DataFrame({0: ["a", "b"], 10: [1, 2], 20: pd.Series([3, None], dtype=object)})
    part = numeric_part(X)
    assert part.columns.tolist() == [10, 20]
    assert column_names(part) == ["10", "20"]
    np.testing.assert_array_equal(to_matrix(part), [[1, 3], [2, np.nan]])
    np.testing.assert_array_equal(to_matrix(numeric_part(X, names=["20", "10"])), [[3, 1], [np.nan, 2]])
    estimator = BaseEstimator()
    validate_data(estimator, part, skip_check_array=True)
    assert not hasattr(estimator, "feature_names_in_")
    levels = pd.DataFrame([["a", 1]], columns=pd.MultiIndex.from_tuples([("u", "v"), ("u", "w")]))
    assert numeric_part(levels).columns.tolist() == [("u", "w")]


def test_single_precision_stays_only_where_all_columns_have_it():
    singles = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    for X in (pd.DataFrame(singles), pl.DataFrame(singles), pd.DataFrame(singles).astype("Float32")):
        assert to_matrix(X).dtype == np.float32
    for other in (np.float64, np.int8, bool):
        assert to_matrix(pd.DataFrame(singles | {"c": np.ones(2, other)})).dtype == np.float64
    assert to_matrix(pd.DataFrame({"a": np.ones(2, np.float16)})).dtype == np.float64


def test_sparse_columns_filled_with_zeros_become_csr():
    X = pd.DataFrame.sparse.from_spmatrix(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [np.nan, 0.0]]), columns=["a", "b"])
    matrix = to_matrix(numeric_part(X.assign(name=["x", "y", "z"])))
    assert matrix.format == "csr"
    assert matrix.nnz == 2
    np.testing.assert_array_equal(matrix.toarray(), X.to_numpy())
    assert to_matrix(X.astype(pd.SparseDtype(np.float32, 0))).dtype == np.float32
    assert isinstance(to_matrix(X.astype(pd.SparseDtype(float, np.nan))), np.ndarray)


def test_arrow_tables_are_frames():
    pa = pytest.importorskip("pyarrow")
    X = pa.table(PEOPLE | {"price": pa.array([Decimal(1), None, Decimal(3)]), "none": pa.nulls(3)})
    part = numeric_part(X)
    assert isinstance(part, pa.Table)
    assert column_names(part) == ["height", "age", "member", "price"]
    np.testing.assert_array_equal(to_matrix(part), np.column_stack([NUMBERS, [1, np.nan, 3]]))
    assert take_rows(X, [2, 0, 2])["name"].to_pylist() == ["Eva", "Ada", "Eva"]
    assert n_rows(X) == n_rows(X["age"]) == 3
    with pytest.raises(InvalidInputError, match="more than one is called 'age'"):
        numeric_part(X.append_column("age", pa.nulls(3)))
    with pytest.raises(InvalidInputError, match=r"X is a ChunkedArray, .* make it a column of a table"):
        numeric_part(X["age"])


# ------------------------------------------------------------------------------------------------------------- rows

ROWS = np.array([2, 0, 2])


def test_pandas_rows_keep_index_types_and_categories():
    X = frames()[0].values[0]
    taken = take_rows(X, ROWS)
    pd.testing.assert_frame_equal(taken, X.iloc[[2, 0, 2]])
    assert taken.index.tolist() == [7, 7, 7]
    assert taken["name"].tolist() == ["Eva", "Ada", "Eva"]
    assert taken["town"].cat.categories.tolist() == ["Graz", "Linz"]


def test_rows_of_series_are_taken_by_position_not_by_label():
    taken = take_rows(pd.Series(list("abc"), index=[2, 1, 0]), ROWS)
    assert taken.tolist() == ["c", "a", "c"]
    assert taken.index.tolist() == [0, 2, 0]
    assert take_rows(pl.Series(list("abc")), ROWS).to_list() == ["c", "a", "c"]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_rows_of_every_sparse_format_are_taken(kind):
    for X in (sp.csr_array(NUMBERS).asformat(kind), sp.csr_matrix(NUMBERS).asformat(kind)):
        taken = take_rows(X, ROWS)
        assert sp.issparse(taken)
        assert isinstance(taken, sp.sparray) == isinstance(X, sp.sparray)
        np.testing.assert_array_equal(taken.toarray(), NUMBERS[ROWS])
        assert n_rows(X) == 3
    assert taken.format == (kind if kind in ("csr", "csc", "lil") else "csr")


def test_rows_of_arrays_and_lists_are_taken(tmp_path):
    np.save(tmp_path / "X.npy", NUMBERS)
    mapped = take_rows(np.load(tmp_path / "X.npy", mmap_mode="r"), ROWS)
    assert type(mapped) is np.ndarray
    np.testing.assert_array_equal(mapped, NUMBERS[ROWS])
    np.testing.assert_array_equal(take_rows(NUMBERS, ROWS), NUMBERS[ROWS])
    assert type(take_rows(NUMBERS.view(np.matrix), ROWS)) is np.matrix
    assert take_rows(np.ma.masked_equal([1, 2, 3], 3), ROWS).mask.tolist() == [True, False, True]
    assert take_rows(["a", [1], None], ROWS) == [None, "a", None]
    assert take_rows(("a", "b", "c"), [2, 0, 2]) == ["c", "a", "c"]


@pytest.mark.parametrize("X", [NUMBERS, NUMBERS.tolist(), sp.coo_array(NUMBERS), *[p.values[0] for p in frames()]])
def test_row_numbers_are_checked(X):
    assert n_rows(X) == 3
    assert n_rows(take_rows(X, [])) == 0
    with pytest.raises(InvalidInputError, match=r"indices must lie in 0 … 2; got 0 … 3"):
        take_rows(X, [0, 3])
    with pytest.raises(InvalidInputError, match=r"indices must lie in 0 … 2; got -1 … 1"):
        take_rows(X, [1, -1])
    with pytest.raises(InvalidInputError, match=r"np\.flatnonzero\(mask\)"):
        take_rows(X, [True, False, True])
    with pytest.raises(InvalidInputError, match="dtype float64"):
        take_rows(X, [0.0, 1.0])


# ----------------------------------------------------------------------------------------------------------- imports


def test_arrays_need_no_dataframe_library():
    code = """
import sys
import numpy as np
import sklearn.base, sklearn.utils.validation  # which may load them for purposes of its own
theirs = set(sys.modules)
from mosaic.door import check_entries
from mosaic.frames import column_names, n_rows, numeric_part, take_rows, to_matrix
before = "narwhals" in sys.modules
X = numeric_part(np.eye(3))
check_entries(to_matrix(X), column_names(X))
assert n_rows(take_rows(X, [0, 2])) == 2
assert ("narwhals" in sys.modules) == before, "narwhals was imported for an array"
loaded = {"pandas", "polars", "pyarrow"} & (set(sys.modules) - theirs)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
