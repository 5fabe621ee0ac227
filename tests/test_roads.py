"""Every road to a fit and to answers gives the same: frames, files, open files, Dask, arrays."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

import mosaic
from mixed_tables import TABLES, customers
from mosaic import (
    MOSAIC,
    InvalidInputError,
    MOSAICOutlierDetector,
    MOSAICSampler,
    NotPositiveSemidefiniteError,
    Paper,
    SelectionWarning,
)
from small_tables import SMALL_TABLES

pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def columns_may_be_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        yield


def shops(n=120, shift=0.0):
    rng = np.random.default_rng(int(shift))
    return pd.DataFrame(
        {
            "id": [f"C{i}" for i in range(n)],
            "x": rng.normal(size=n) + shift,
            "y": 3.0 * rng.normal(size=n) - shift,
            "kind": rng.choice(["red", "green", "blue"], n),
            "shop": rng.choice(["u", "v"], n),
            "count": rng.integers(1, 4, n),
        }
    )


def as_csv(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(frame, folder):
    frame.to_parquet(folder / "t.parquet", index=False)
    return folder / "t.parquet"


def as_dask(frame, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


ROADS = {
    "frame": lambda frame, folder: frame,
    "csv": as_csv,
    "parquet": as_parquet,
    "dask": as_dask,
    "open file": lambda frame, folder: mosaic.read(as_parquet(frame, folder)),
}


def answers(model, X):
    told = model.explain_new(X)
    return [model.predict(X), model.transform(X), model.score_samples(X), model.score(X), told.is_outlier, told.reason]


ALL_TABLES = TABLES | {name: lambda name=name: SMALL_TABLES[name] for name in SMALL_TABLES}
QUICK = [
    "customers",
    "visits",
    "gaps",
    "whole with gaps",
    "truth with gaps",
    "marks of missing",
    "days with gaps",
    "amounts",
    "thousands",
    "units",
    "ids",
    "odd names",
]


@pytest.fixture(
    scope="module", params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ALL_TABLES]
)
def of_frame(request):
    frame = ALL_TABLES[request.param]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        return frame, MOSAIC(6).fit(frame)


@pytest.mark.parametrize("road", [road for road in ROADS if road != "frame"])
def test_a_table_gives_one_answer_on_every_road(of_frame, road, tmp_path):
    frame, expected = of_frame
    X = ROADS[road](frame, tmp_path)
    model = MOSAIC(6).fit(X)
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(model.is_outlier_, expected.is_outlier_)
    picks, others = (fitted.facts_.picks for fitted in (model, expected))
    if road != "dask" or "link" not in frame:  # a column that is not called as ids are names rows in memory only
        assert [(pick.name, pick.reason) for pick in picks] == [(pick.name, pick.reason) for pick in others]
    chosen = model.select(X)
    assert (chosen.column_names, chosen.num_rows) == (list(frame.columns), 6)
    if "y" in frame:
        np.testing.assert_allclose(chosen["y"].to_numpy(), frame["y"].to_numpy()[model.representative_indices_])
    new = frame.iloc[::-1].head(40).reset_index(drop=True)
    for one, two in zip(answers(expected, new), answers(model, ROADS[road](new, tmp_path)), strict=True):
        if isinstance(one, list):
            assert one == two
        else:
            np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)  # counts are in single precision


@pytest.mark.parametrize("road", ROADS)
def test_new_rows_are_encoded_as_the_fit_was_wherever_they_come_from(road, tmp_path):
    model, detector = MOSAIC(5).fit(shops()), MOSAICOutlierDetector().fit(shops())
    new = shops(60, shift=4.0)
    X = ROADS[road](new, tmp_path)
    np.testing.assert_array_equal(model.predict(X), model.predict(new))
    np.testing.assert_array_equal(detector.score_samples(X), detector.score_samples(new))
    assert model.score(X) == model.score(new)
    assert len(np.unique(model.predict(new))) > 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_groups_and_weights_that_a_file_was_read_with_count_in_the_fit(ending, tmp_path):
    path = ROADS[ending](shops(), tmp_path)
    expected = MOSAIC(6).fit(shops(), groups="shop", sample_weight="count", quotas="equal")
    with mosaic.read(path, group="shop", weight="count") as rows:
        model = MOSAIC(6).fit(rows, quotas="equal")
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    assert model.selection_.data.constraints.names == ("u", "v")
    with mosaic.read(path) as rows:  # named later
        later = MOSAIC(6).fit(rows, groups="shop", sample_weight="count", quotas="equal")
    np.testing.assert_array_equal(later.representative_indices_, expected.representative_indices_)


@pytest.mark.parametrize("road", ["csv", "parquet", "dask", "open file"])
def test_select_gives_the_cells_of_a_file(road, tmp_path):
    frame = shops()
    X = ROADS[road](frame, tmp_path)
    model = MOSAIC(3).fit(X)
    chosen = model.select(X)
    pd.testing.assert_frame_equal(chosen.to_pandas(), frame.iloc[model.representative_indices_].reset_index(drop=True))
    assert model.select(X, with_reasons=True).column_names[-1] == "mosaic_reason"
    sampler = MOSAICSampler(3)
    rows, labels = sampler.fit_resample(X, frame["kind"].to_numpy())
    assert rows.column("kind").to_pylist() == labels.tolist()


def test_a_column_without_any_value_changes_nothing(tmp_path):
    frame = shops()[["x", "y"]]
    expected = MOSAIC(5).fit(frame)
    for column in (pd.Series([None] * 120, dtype=float), pd.Series([None] * 120, dtype=object)):
        empty = frame.assign(never=column)
        for road in ROADS:
            model = MOSAIC(5).fit(ROADS[road](empty, tmp_path))
            np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
            assert model.feature_names_in_.tolist() == ["x", "y"]


def test_what_is_left_out_is_told_with_ids_groups_and_weights():
    model = MOSAIC(5).fit(shops(), groups="shop", sample_weight="count")
    assert {column.name: column.why for column in model.encoder_.left_out} == {
        "id": "names the rows",
        "shop": "the group of each row",
        "count": "how often each row counts",
    }


def test_a_list_of_labels_names_columns_only_if_all_are_there():
    three = pd.DataFrame({"a": [0.0, 1.0, 5.0], "b": [1.0, 0.0, 7.0]})
    model = MOSAIC(3, outliers="keep").fit(three, groups=["u", "v", "w"])
    assert model.selection_.data.constraints.names == ("u", "v", "w")
    with pytest.raises(InvalidInputError, match="groups names the column 'u', which X does not have"):
        MOSAIC(3, outliers="keep").fit(three, groups=["u", "v"])


@pytest.mark.parametrize(
    ("X", "told"),
    [
        ({"a": [1.0, 2.0], "b": [3.0, 4.0]}, r"X is a dict\. Pass a data frame"),
        ([{"a": 1.0}, {"a": 2.0}], r"X is a list of dicts\. Pass a data frame"),
        (["one text", "another"], r"X is a list of texts\. Pass a data frame"),
        (pd.Series(["one text", "another"]), r"X is a single column\. Pass a data frame: X\.to_frame\(\)"),
        (pd.Series([1.0, 2.0]), r"X is a single column\. Pass a data frame: X\.to_frame\(\)"),
        (np.zeros((4, 3, 2)), "X is no table of numbers"),
        (np.zeros((4, 3), complex), "X is no table of numbers: Complex data not supported"),
        (np.array([[object(), 1.0]] * 4), "X holds what is no number"),
        ([[1.0, 2.0], [3.0]], "X must be a rectangular array of numbers"),
        (np.array([["2024-01-01"], ["NaT"]], "M8[D]"), r"X must hold numbers; got dtype datetime64\[D\]\. Pass a data frame"),
    ],
    ids=[
        "dict",
        "dicts",
        "texts",
        "series of texts",
        "series of numbers",
        "3 dimensions",
        "complex",
        "objects",
        "ragged",
        "dates",
    ],
)
@pytest.mark.parametrize("model", [MOSAIC(2), MOSAICOutlierDetector()], ids=lambda model: type(model).__name__)
def test_what_is_no_table_is_refused_at_the_door(model, X, told):
    with pytest.raises(InvalidInputError, match=told) as refused:
        model.fit(X)
    assert "\n" not in str(refused.value)


KERNELS = {
    "distances": lambda A, B: ((A[:, None] - B[None]) ** 2).sum(axis=2),
    "tanh": lambda A, B: np.tanh(A @ B.T - 1.0),
    "sin": lambda A, B: np.sin(50.0 * A @ B.T),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("model", [MOSAIC(4), MOSAICOutlierDetector()], ids=lambda model: type(model).__name__)
def test_a_function_that_is_no_similarity_is_refused(name, model):
    X = np.random.default_rng(0).normal(size=(600, 3))
    with pytest.raises(NotPositiveSemidefiniteError, match=r"a row resembles another by .*, and both resemble themselves by"):
        model.set_params(kernel=KERNELS[name]).fit(X)


def test_that_sparse_columns_are_not_divided_by_their_spread_is_said():
    income = np.c_[np.eye(5)[RNG.integers(0, 5, 300)], 1e4 * RNG.random(300)]
    assert MOSAIC(4).fit(income).explain()[0].startswith("Columns are divided by their spread")
    with pytest.warns(SelectionWarning, match=r"A few columns dominate all distances.*MaxAbsScaler, or set scale=False"):
        model = MOSAIC(4).fit(sp.csr_array(income))
    said = "Columns are taken as they are: those of a sparse matrix are not divided by their spread."
    assert model.explain()[0] == said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MOSAIC(4).fit(sp.csr_array(income[:, :5])).explain()[0] == said
        assert MOSAIC(4, scale=False).fit(sp.csr_array(income)).explain()[0] == "Columns are taken as they are."
        MOSAIC(4).fit(sp.csr_array(RNG.poisson(2.0 / np.arange(1, 401), (300, 400))))


def test_a_refused_change_of_parameters_has_changed_nothing():
    paper = Paper(alpha=2.0)
    model = MOSAIC(5, algorithm=paper)
    with pytest.raises(InvalidInputError):
        model.set_params(n_representatives=9, algorithm__alpha=3.0, algorithm__none=1)
    with pytest.raises(InvalidInputError):
        MOSAIC(5).set_params(n_representatives=9, algorithm__alpha=3.0)
    assert (model.n_representatives, model.algorithm.alpha) == (5, 2.0)
    assert model.set_params(algorithm__alpha=3.0).algorithm.alpha == 3.0


def test_a_mask_of_candidates_is_counted_by_the_rows_that_it_names():
    mask = np.arange(20) < 2
    with pytest.raises(InvalidInputError, match="of 20, candidates leave 2 and exclude takes 2 away"):
        MOSAIC(1).fit(RNG.normal(size=(20, 2)), candidates=mask, exclude=[0, 1])


def test_reading_what_is_known_leaves_the_threads_of_the_process_alone(monkeypatch):
    model = MOSAIC(3).fit(RNG.normal(size=(60, 2)))
    monkeypatch.setattr("mosaic.estimators.progress.using_threads", lambda count: pytest.fail("it computes"))
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        assert model.gamma_ > 0
        assert (model.row_names_, model.column_scale_) == (None, None)
        assert [library["num_threads"] for library in threadpool_info()] == before


def test_rows_of_all_kinds_know_their_number_names_and_cells(tmp_path):
    for road in ROADS:
        rows = mosaic.rows.Rows.of(ROADS[road](shops(), tmp_path))
        assert (rows.n, rows.names([3, 5]), rows.find("C7"), rows.has_names) == (120, ["C3", "C5"], 7, True)
        assert rows.cells([0, 2], ["id", "kind"]).to_pandas().equals(shops().loc[[0, 2], ["id", "kind"]].reset_index(drop=True))
    array = mosaic.rows.Rows.of(np.zeros((4, 2)))
    assert (array.n, array.names([1]), array.has_names, array.stays) == (4, ["1"], False, False)


def test_customers_in_a_file_that_stays_on_the_disk_are_those_in_memory(tmp_path, by_passes):
    frame = customers(3000)
    frame.to_parquet(tmp_path / "c.parquet")
    expected, model = MOSAIC(6).fit(frame), MOSAIC(6).fit(tmp_path / "c.parquet")
    assert mosaic.estimate(tmp_path / "c.parquet").passes == 1
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(model.predict(tmp_path / "c.parquet"), expected.predict(frame))
