from __future__ import annotations

import subprocess
import sys
import tracemalloc
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
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
    X = pd.DataFrame(
        {"d": times, "u": times - times[0], "c": pd.Categorical([1, 2]), "p": times.to_period(), "x": [1, 2]}
    )
    X["l"] = [[1], [2]]
    assert list(numeric_part(X).columns) == ["x"]
    Y = pl.DataFrame(
        {"d": list(times.date), "u": [timedelta(0), timedelta(1)], "l": [[1], [2]], "s": [{"a": 1}, {"a": 2}]}
    )
    Y = Y.with_columns(
        c=pl.Series(["a", "b"], dtype=pl.Categorical), b=pl.Series([b"", b"1"]), n=pl.lit(None), x=pl.lit(1)
    )
    assert numeric_part(Y).columns == ["x"]


def test_every_width_of_number_is_computed_with():
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    dtypes = [*integers, "float16", "float32", "float64", "longdouble", "bool", "Sparse[float64]"]
    dtypes += ["Int8", "UInt64", "Float32", "boolean"]
    X = pd.DataFrame({dtype: pd.Series([1, 0]).astype(dtype) for dtype in dtypes})
    assert numeric_part(X) is X
    np.testing.assert_array_equal(to_matrix(X), np.tile([[1.0], [0.0]], len(dtypes)))
    wide = [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Boolean, pl.Decimal(10, 2)]
    Y = pl.DataFrame({str(dtype): pl.Series([1, 0, None]).cast(dtype) for dtype in wide})
    assert numeric_part(Y) is Y
    np.testing.assert_array_equal(to_matrix(Y), np.tile([[1.0], [0.0], [np.nan]], len(wide)))


@pytest.mark.parametrize("X", frames())
def test_scikit_learn_finds_the_names_of_the_columns_of_numbers(X):
    estimator = BaseEstimator()
    validate_data(estimator, numeric_part(X), skip_check_array=True)
    assert estimator.feature_names_in_.tolist() == ["height", "age", "member"]
    assert estimator.n_features_in_ == 3
    again = numeric_part(X[["age", "member", "name", "height"]], names=estimator.feature_names_in_)
    validate_data(estimator, again, reset=False, skip_check_array=True)
    np.testing.assert_array_equal(to_matrix(again), NUMBERS)


@pytest.mark.parametrize("X", frames())
def test_named_columns_are_taken_in_the_order_of_the_names(X):
    assert list(numeric_part(X, names=["age", "height"]).columns) == ["age", "height"]
    np.testing.assert_array_equal(to_matrix(numeric_part(X, names=["age", "height"])), NUMBERS[:, [1, 0]])


@pytest.mark.parametrize("X", frames())
def test_named_columns_that_are_missing_are_named(X):
    with pytest.raises(
        InvalidInputError, match=r"^column 'weight' was there in fit and is missing now; X has 'name', "
    ):
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


def test_what_is_no_frame_is_returned_as_it_is(tmp_path):
    np.save(tmp_path / "X.npy", NUMBERS)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for X in (
        NUMBERS,
        NUMBERS.tolist(),
        NUMBERS.view(np.matrix),
        sp.coo_array(NUMBERS),
        mapped,
        pd.Index([1]),
        "X",
        None,
    ):
        assert numeric_part(X, names=["a"]) is X
        assert to_matrix(X) is X
        assert column_names(X) is None


def test_frame_of_numbers_alone_is_not_copied():
    for X in (pd.DataFrame(NUMBERS, columns=list("abc")), pl.DataFrame(NUMBERS)):
        assert numeric_part(X) is X
        assert numeric_part(X, names=column_names(X)) is X


def test_matrix_does_not_share_memory_with_the_frame():
    X = pd.DataFrame(NUMBERS, columns=list("abc"))
    assert not np.shares_memory(to_matrix(X), X.to_numpy())
    assert to_matrix(X).flags.writeable


# ------------------------------------------------------------------------------------------------------- objects


def objects(*values, index=None) -> pd.DataFrame:
    index = range(len(values)) if index is None else index
    return pd.DataFrame({"o": pd.Series(values, dtype=object, index=index), "b": np.arange(float(len(values)))})


@pytest.mark.parametrize(
    ("X", "where"),
    [
        (objects(1, 2, "x"), r"row 2 \(counted from 0\) holds 'x', row 0 holds 1\."),
        (
            objects(None, "a", np.nan, 2.5, index=list("kkkk")),
            r"row 1 \(counted from 0\) holds 'a', row 3 holds 2\.5\.",
        ),
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


@pytest.mark.parametrize("value", [1j, np.complex128(1j), 10**400], ids=lambda value: type(value).__name__)
def test_numbers_that_no_float_holds_are_refused(value):
    with pytest.raises(InvalidInputError, match=r"column 'o' .* row 1 \(counted from 0\) holds "):
        numeric_part(objects(1, value))


def test_objects_without_a_number_are_identifiers():
    days = pd.date_range("2020", periods=3)
    for values in (
        ["a", np.nan, None],
        [[1], {"a": 1}, None],
        list(days),
        list(days - days[0]),
        [np.timedelta64(1)] * 3,
    ):
        assert list(numeric_part(objects(*values)).columns) == ["b"]


def test_complex_columns_are_refused():
    with pytest.raises(InvalidInputError, match="column 'z' is complex"):
        numeric_part(pd.DataFrame({"z": [1j, 2j], "b": [1, 2]}))


# -------------------------------------------------------------------------------------------------------- refusals


def test_data_that_is_not_in_memory_is_refused():
    lazy = pl.LazyFrame(PEOPLE)
    for function in (numeric_part, to_matrix, column_names, n_rows):
        with pytest.raises(
            InvalidInputError, match=r"^X is a LazyFrame; all rows are needed in memory. Call .collect\(\) first"
        ):
            function(lazy)
    with pytest.raises(
        InvalidInputError, match=r"^X is a LazyFrame; all rows are needed in memory. Call .collect\(\) first"
    ):
        take_rows(lazy, [0])


def test_queries_of_other_libraries_are_refused_with_their_own_remedy():
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(
        InvalidInputError,
        match=r"X is a DuckDBPyRelation; all rows are needed in memory. Call .df\(\) or .pl\(\) first",
    ):
        numeric_part(duckdb.sql("select 1 as a"))


@pytest.mark.parametrize("X", [pd.Series([1.0, 2.0]), pl.Series([1.0, 2.0])], ids=["pandas", "polars"])
def test_series_are_refused_with_a_remedy_that_works(X):
    with pytest.raises(InvalidInputError, match=r"X is a Series.*X\.to_frame\(\)"):
        numeric_part(X)
    np.testing.assert_array_equal(to_matrix(numeric_part(X.to_frame())), [[1.0], [2.0]])


@pytest.mark.parametrize("X", frames())
def test_frame_without_numbers_is_refused_with_its_columns_and_types(X):
    with pytest.raises(
        InvalidInputError, match=r"no column of numbers, only 'name' \(String\), 'town' \(.*OneHotEncoder"
    ):
        numeric_part(X[["name", "town"]])


def test_frame_without_columns_is_refused():
    for X in (pd.DataFrame(index=[1, 2]), pl.DataFrame()):
        with pytest.raises(InvalidInputError, match="X has no columns"):
            numeric_part(X)


def test_columns_of_the_same_name_are_refused_by_name():
    X = pd.DataFrame(np.ones((2, 4)), columns=["a", "b", "a", "c"])
    for function in (numeric_part, to_matrix, column_names):
        with pytest.raises(InvalidInputError, match="more than one is called 'a'"):
            function(X)


def test_matrix_of_identifiers_is_refused():
    with pytest.raises(InvalidInputError, match="points must hold numbers only; column 'digits' is of type String"):
        to_matrix(pl.DataFrame({"x": [1.0], "digits": ["12"]}), "points")


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


def test_frame_without_rows_keeps_its_columns():
    for X in (pd.DataFrame(PEOPLE).iloc[:0], pl.DataFrame(PEOPLE).head(0)):
        assert list(numeric_part(X).columns) == ["height", "age", "member"]
        assert to_matrix(numeric_part(X)).shape == (0, 3)
        assert n_rows(X) == 0
        assert list(take_rows(X, []).columns) == list(PEOPLE)


def test_single_precision_stays_only_where_all_columns_have_it():
    singles = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    for X in (pd.DataFrame(singles), pl.DataFrame(singles), pd.DataFrame(singles).astype("Float32")):
        assert to_matrix(X).dtype == np.float32
    for other in (np.float64, np.int8, bool):
        assert to_matrix(pd.DataFrame(singles | {"c": np.ones(2, other)})).dtype == np.float64
    assert to_matrix(pd.DataFrame({"a": np.ones(2, np.float16)})).dtype == np.float64


def test_wide_and_long_frames_are_filled_in_completely(rng):
    for shape in ((9000, 19), (3, 8), (1, 1), (5000, 16)):
        X = rng.normal(size=shape)
        for frame in (pd.DataFrame(X), pl.DataFrame(X), pd.DataFrame(np.asfortranarray(X))):
            np.testing.assert_array_equal(to_matrix(frame), X)


def test_sparse_columns_filled_with_zeros_become_csr():
    X = pd.DataFrame.sparse.from_spmatrix(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [np.nan, 0.0]]), columns=["a", "b"])
    matrix = to_matrix(numeric_part(X.assign(name=["x", "y", "z"])))
    assert matrix.format == "csr"
    assert matrix.nnz == 2
    np.testing.assert_array_equal(matrix.toarray(), X.to_numpy())
    assert to_matrix(X.astype(pd.SparseDtype(np.float32, 0))).dtype == np.float32
    assert isinstance(to_matrix(X.astype(pd.SparseDtype(float, np.nan))), np.ndarray)


def test_frames_of_narwhals_itself_stay_what_they_are():
    nw = pytest.importorskip("narwhals")
    X = nw.from_native(pl.DataFrame(PEOPLE))
    assert isinstance(numeric_part(X), nw.DataFrame)
    assert isinstance(take_rows(X, [1]), nw.DataFrame)
    np.testing.assert_array_equal(to_matrix(numeric_part(X)), NUMBERS)


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


# --------------------------------------------------------------------------------------------------- missing values


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"id": list("abc"), "i": pd.array([1, 2, 3], "Int64"), "x": pd.array([1, None, None], "Int64")}),
        pd.DataFrame(
            {"id": list("abc"), "i": [1, 2, 3], "x": pd.array([0.5, pd.NA, pd.NA], "Float64")}, index=[9, 9, 9]
        ),
        pd.DataFrame({"id": list("abc"), "i": [1, 2, 3], "x": pd.array([True, None, None], "boolean")}),
        pd.DataFrame({"id": list("abc"), "i": [1, 2, 3], "x": [1.0, np.nan, np.nan]}),
        pl.DataFrame({"id": list("abc"), "i": [1, 2, 3], "x": [1, None, None]}),
        pl.DataFrame({"id": list("abc"), "i": [1, 2, 3], "x": [True, None, None]}),
        pl.DataFrame({"id": list("abc"), "i": [1, 2, 3], "x": [1.0, None, float("nan")]}),
    ],
)
def test_missing_values_are_located_by_row_and_column_name(X):
    part = numeric_part(X)
    with pytest.raises(InvalidInputError) as caught:
        check_entries(to_matrix(part), column_names(part))
    message = str(caught.value)
    assert "entries that are not: 2 NaN." in message
    assert "X[1, 1] = nan, in row 1, column 'x'" in message
    assert "sklearn.impute.SimpleImputer" in message
    assert "inf" not in message


@given(
    arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.integers(1, 200), st.integers(1, 4)),
        elements=st.sampled_from([0.0, 1.0, -2.0, np.nan, np.inf, -np.inf]),
        fill=st.just(1.0),
    )
)
def test_entries_at_fault_are_counted_and_the_first_is_found(X):
    bad = np.argwhere(~np.isfinite(X))
    for matrix in (X, np.asfortranarray(X), *([] if X.dtype == np.float16 else [sp.csr_array(X), sp.coo_array(X)])):
        if not len(bad):
            assert check_entries(matrix, None) is None
            continue
        with pytest.raises(InvalidInputError) as caught:
            check_entries(matrix, None, "points")
        (i, j), message = bad[0], str(caught.value)
        assert f"points[{i}, {j}] = {X[i, j]}, in row {i}, column {j}, counted from 0." in message
        assert (f"{np.isnan(X).sum()} NaN" in message) == np.isnan(X).any() == ("SimpleImputer" in message)
        assert (f" {np.isinf(X).sum()} inf." in message) == np.isinf(X).any() == ("Replace inf" in message)


def test_fault_behind_many_blocks_is_found():
    X = np.ones((300_000, 2))
    X[299_999, 1] = X[150_000, 0] = np.inf
    X[299_999, 0] = np.nan
    for matrix in (X, sp.csr_array(X)):
        with pytest.raises(InvalidInputError, match=r"1 NaN, 2 inf\. The first is X\[150000, 0\] = inf, in row 150000"):
            check_entries(matrix, None)


def test_rows_without_entries_do_not_shift_the_location():
    X = sp.csr_array((np.array([1.0, np.nan]), np.array([0, 2]), np.array([0, 0, 1, 1, 1, 2])), shape=(5, 3))
    with pytest.raises(InvalidInputError, match=r"X\[4, 2\] = nan, in row 4, column 'c'"):
        check_entries(X, ["a", "b", "c"])


def test_large_finite_numbers_and_integers_are_no_fault():
    for X in (
        np.full((3, 2), 1e100),
        np.full((3, 2), -1e100),
        np.ones((2, 2), int),
        np.zeros((0, 3)),
        np.ones((2, 2), bool),
    ):
        check_entries(X, None)
        check_entries(sp.csr_array(X), None)


def test_clean_data_is_checked_without_a_temporary_of_its_size():
    for X in (np.ones((1_000_000, 2)), np.ones((1_000_000, 2), np.float32), np.full((1_000_000, 2), 1e100)):
        tracemalloc.start()
        check_entries(X, None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < X.size / 2  # a mask takes one byte an entry


# ------------------------------------------------------------------------------------------------------------- rows

ROWS = np.array([2, 0, 2])


def test_pandas_rows_keep_index_types_and_categories():
    X = frames()[0].values[0]
    taken = take_rows(X, ROWS)
    pd.testing.assert_frame_equal(taken, X.iloc[[2, 0, 2]])
    assert taken.index.tolist() == [7, 7, 7]
    assert taken["name"].tolist() == ["Eva", "Ada", "Eva"]
    assert taken["town"].cat.categories.tolist() == ["Graz", "Linz"]


def test_polars_rows_keep_order_types_and_categories():
    X = pl.DataFrame(PEOPLE).with_columns(pl.col("town").cast(pl.Enum(["Graz", "Linz", "Wien"])))
    taken = take_rows(X, ROWS)
    assert taken.schema == X.schema
    assert taken.rows() == [X.row(2), X.row(0), X.row(2)]


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


class OnlyAnArray:
    def __array__(self, dtype=None, copy=None):
        return np.array(NUMBERS, dtype=dtype)


def test_rows_of_whatever_becomes_an_array_are_taken():
    np.testing.assert_array_equal(take_rows(OnlyAnArray(), ROWS), NUMBERS[ROWS])
    assert n_rows(OnlyAnArray()) == 3


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


def test_what_has_no_rows_is_refused():
    for X in (np.float64(1.0), "abc", None):
        with pytest.raises(InvalidInputError, match="X must have rows"):
            n_rows(X)


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
