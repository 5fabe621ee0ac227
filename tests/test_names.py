"""Rows by their names, and groups and weights by the names of columns: in data frames, open tables and files alike."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector
from mosaic.exceptions import SelectionWarning
from mosaic.rows import read

N = 120
NAMES = [f"C{i}" for i in range(N)]


def people():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(170, 10, N), "age": rng.normal(40, 12, N)})
    return frame.assign(segment=rng.choice(["a", "b", "c"], N), weight=rng.integers(1, 4, N))


def by_index(frame):
    return frame.set_axis(NAMES, axis=0)


def by_column(frame):
    return frame.assign(customer_id=NAMES)


def annotated(frame):
    frame = by_index(frame)
    return pytest.importorskip("anndata").AnnData(frame[["height", "age"]], obs=frame[["segment", "weight"]])


KINDS = {
    "index": by_index,
    "column": by_column,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(by_column(frame)),
    "AnnData": annotated,
    "Arrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(by_column(frame), preserve_index=False),
}
ARGUMENTS = {"groups": "segment", "sample_weight": "weight", "must_include": ["C17", "C40"], "exclude": ["C3"]}


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_the_same_as_row_numbers_and_columns_the_same_as_their_values(kind):
    frame = people()
    given = {"groups": frame["segment"], "sample_weight": frame["weight"], "must_include": [17, 40], "exclude": [3]}
    expected = MOSAIC(9).fit(frame[["height", "age"]], quotas="equal", **given)
    model = MOSAIC(9).fit(KINDS[kind](frame), quotas="equal", **ARGUMENTS)
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    assert (list(model.feature_names_in_), model.row_names_[17]) == (["height", "age"], "C17")
    assert model.explain("C17") == model.explain(17)
    assert expected.row_names_ is None
    if kind == "AnnData":
        for fitted in (model, MOSAICOutlierDetector().fit(annotated(frame))):
            with pytest.raises(InvalidInputError, match="those of fit were"):
                fitted.predict(annotated(frame)[:, ::-1])


def test_a_file_and_an_open_table_know_names_too(tmp_path):
    frame = by_column(people())
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    expected = MOSAIC(9).fit(frame, **ARGUMENTS).representative_indices_
    model = MOSAIC(9).fit(path, **ARGUMENTS)
    np.testing.assert_array_equal(model.representative_indices_, expected)
    assert str(model.explain("C17")).startswith("C17 (row 17): chosen")
    with read(path, group="segment", weight="weight") as table:
        np.testing.assert_array_equal(MOSAIC(9).fit(table, **ARGUMENTS).representative_indices_, expected)
        of_the_file = MOSAIC(9).fit(table, must_include=["C17", "C40"], exclude=["C3"])  # its groups and weights count
        np.testing.assert_array_equal(of_the_file.representative_indices_, expected)
    with read(path) as table:
        np.testing.assert_array_equal(MOSAIC(9).fit(table, **ARGUMENTS).representative_indices_, expected)
    with pytest.raises(InvalidInputError, match=r"no row has 'C999' in column 'customer_id'"):
        MOSAIC(9).fit(path, must_include=["C999"])
    passes = MOSAIC(5, scale=False).fit(path, must_include=["C17"])
    assert (passes.representative_indices_[0], passes.explain("C17").name) == (17, "C17")


def test_columns_with_a_role_are_named_as_not_compared():
    plain = MOSAIC(5).fit(people(), groups="segment", sample_weight="weight")
    assert plain.explain()[0] == ("Not compared: segment (the group of each row), weight (how often each row counts).")
    mixed = MOSAIC(5).fit(people().assign(city=["Bonn", "Ulm"] * (N // 2)), groups="segment")
    assert "segment (the group of each row)" in " ".join(mixed.encoder_.describe())
    assert "segment" not in mixed.feature_names_in_
    compared = MOSAIC(5).fit(people(), groups=people()["segment"])  # values are compared all the same
    assert "segment" in compared.feature_names_in_


def test_where_names_come_from():
    frame = people()[["height", "age"]]

    def origin(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            names = MOSAIC(3).fit(X).row_names_
        return None if names is None else (names.origin, names[1])

    assert origin(frame) is None
    assert origin(frame.to_numpy()) is None
    assert origin(frame.set_axis(range(N), axis=0)) is None
    assert origin(by_index(frame)) == ("the index", "C1")
    assert origin(by_column(frame)) == ("column 'customer_id'", "C1")
    assert origin(frame.assign(label=NAMES)) == ("column 'label'", "C1")  # different in every row
    filtered = frame.set_axis(range(100, 100 + N), axis=0)
    assert origin(filtered) == ("the index", "101")
    assert origin(by_column(filtered)) == ("column 'customer_id'", "C1")
    assert origin(by_column(filtered.rename_axis("number"))) == ("the index", "101")
    assert origin(frame.assign(id=[1] * N)) is None
    assert origin(frame.assign(id=np.arange(N) + 10**17)) == ("column 'id'", str(10**17 + 1))  # no digit is lost


def test_whole_numbers_are_row_numbers_and_text_is_a_name():
    frame = people()[["height", "age"]].set_axis(range(50, 50 + N), axis=0)
    model = MOSAIC(5).fit(frame)
    assert (model.explain(60).row, model.explain("60").row) == (60, 10)
    assert str(model.explain("60")).startswith("60 (row 10): ")
    assert MOSAIC(5).fit(frame, must_include=["60", 3]).representative_indices_[:2].tolist() == [10, 3]
    with pytest.raises(InvalidInputError, match=r"no row has '7' in the index\..* Row number 7 is the number 7, not text"):
        model.explain("7")


def test_names_of_rows_and_columns_that_are_not_there_or_several_times_are_refused_with_near_ones():
    frame = by_index(people()[["height", "age"]])
    model, rows = MOSAIC(5).fit(frame), frame.to_numpy()
    for name, told in {"C1111": r"Did you mean 'C111'", "c17": r"Did you mean 'C17'"}.items():
        with pytest.raises(InvalidInputError, match=f"no row has '{name}' in the index. {told}"):
            model.explain(name)
    with pytest.raises(InvalidInputError, match=r"row number between 0 and 119; got 'C4'\. Rows have no names"):
        MOSAIC(5).fit(rows).explain("C4")
    for X, constraint, told in (
        (frame, {"exclude": ["C1", "X"]}, r"^exclude: no row has 'X' in the index"),
        (frame.rename(index={"C5": "C4"}), {"must_include": "C4"}, r"must_include: 2 rows are called 'C4', the rows 4 and 5"),
        (rows, {"must_include": ["C4"]}, r"must_include holds the name 'C4'\. Rows have no names"),
        (people(), {"groups": "segmnt"}, r"groups names the column 'segmnt', which X does not have\. Did you mean"),
        (people(), {"groups": ["segment", "shops"]}, r"groups names the column 'shops', which X does not have"),
        (people(), {"groups": ["a", "b", "a"]}, r"groups must have one label for each of 120 rows; got shape \(3,\)"),
        (rows, {"sample_weight": "w"}, r"sample_weight names the column 'w', which X does not have\. Its columns have no names"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            MOSAIC(5).fit(X, **constraint)


def test_a_detector_knows_names_and_weights_and_a_pickled_model_too():
    frame = by_index(people()).drop(columns="segment")
    frame.loc["C7", ["age", "weight"]] = 999, 1
    detector = MOSAICOutlierDetector().fit(frame, sample_weight="weight")
    told = detector.explain("C7")
    assert told.status == "outlier"
    assert str(told).startswith("C7 (row 7): an outlier: age 999")
    assert told == detector.explain(7) == pickle.loads(pickle.dumps(detector)).explain("C7")
    assert list(detector.feature_names_in_) == ["height", "age"]
    model = MOSAIC(5).fit(frame.drop(columns="weight"))
    pick = int(model.representative_indices_[0])
    assert f">C{pick}</td>" in model._repr_html_()
    told = next(told for told in map(model.explain, range(N)) if told.status == "represented")
    assert f"C{told.represented_by} (row {told.represented_by}) stands for it" in told.reason


def test_warnings_of_fit_are_at_the_line_of_the_user():
    frame = people()[["height", "age"]].assign(id=[1, 2] * (N // 2))
    with pytest.warns(SelectionWarning, match="'id' has the name of an id") as caught:
        MOSAIC(5).fit(frame)
    assert {warning.filename for warning in caught} == {__file__}
    spread, place = (np.repeat([[rest], [group]], [320, 40], axis=0) for rest, group in ((1.0, 3.0), (0.0, 30.0)))
    crowd = place + spread * np.random.default_rng(0).normal(size=(360, 2))
    with pytest.warns(SelectionWarning, match=r"A group of \d+ rows") as caught:
        MOSAIC(5).fit(crowd)
    assert {warning.filename for warning in caught} == {__file__}


def picks_by_group(model):
    given = model.selection_.data.constraints
    return dict(zip(given.names, np.bincount(given.group[model.representative_indices_]).tolist(), strict=True))


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "parquet", "open"])
def test_every_combination_of_several_columns_is_a_group_and_so_are_rows_without_a_label(kind, tmp_path):
    rng = np.random.default_rng(0)
    frame = people().drop(columns="weight").assign(shop=rng.choice(["Rome", "Oslo", None], N))
    names = ["segment", "shop"]
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv", index=False)
    data = {"pandas": frame, "csv": tmp_path / "x.csv", "parquet": tmp_path / "x.parquet"}.get(kind)
    if data is None:
        data = pytest.importorskip("polars").from_pandas(frame) if kind == "polars" else read(tmp_path / "x.csv", group=names)
    expected = {f"{segment}, {shop}": 2 for segment in "abc" for shop in ("Oslo", "Rome", "missing")}
    model = MOSAIC().fit(data, groups=names, quotas=2)
    assert picks_by_group(model) == expected
    assert "segment (the group of each row), shop (the group of each row)" in model.explain()[0]
    if kind != "open":
        assert picks_by_group(MOSAIC().fit(data, groups="shop", quotas=3)) == {"Oslo": 3, "Rome": 3, "missing": 3}
        one = MOSAIC(5).fit(data, groups=names, quotas={"a, missing": 4})
        assert picks_by_group(one)["a, missing"] == 4


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, pd.NaT])
def test_labels_of_other_kinds_may_be_missing(nothing):
    labels = np.array([1, 2, nothing] * 40, dtype=object)
    model = MOSAIC().fit(people()[["height", "age"]], groups=labels, quotas={1: 1, 2: 2, "missing": 3})
    assert picks_by_group(model) == {1: 1, 2: 2, "missing": 3}
