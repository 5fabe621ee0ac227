"""Tables of mixed columns: what becomes of each kind of column, the same picks however it comes, and reasons in columns."""

from __future__ import annotations

import datetime
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mosaic
from cli_runs import run
from mixed_tables import TABLES, customers, labelled, planted, real, visits, with_numbers
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, Polynomial, SelectionWarning, Sketch
from mosaic.estimators import explain_model
from mosaic.frames import cells_of
from mosaic.rows import read
from mosaic.rows.encoder import TableEncoder, encoder_of
from mosaic.rows.kinds import Category, Moment, Number, Text, quantiles
from mosaic.show import write_report

CUSTOMERS = customers(missing=0.25)


def encoded(frame, **options):
    cells = cells_of(frame)
    encoder = TableEncoder.of(cells, **options)
    return encoder, encoder.encode(cells)


def rule(values, name="x"):
    encoder = TableEncoder.of(cells_of(pd.DataFrame({name: values})))
    return encoder.columns[0] if encoder.columns else encoder.left_out[0].why


# Kinds of columns


def test_every_column_of_a_customer_table_has_the_rule_of_its_kind():
    encoder, Z = encoded(CUSTOMERS)
    kinds = {column.name: type(column) for column in encoder.columns}
    assert list(kinds) == ["age", "income", "segment", "city", "signup", "active", "note"]
    assert list(kinds.values()) == [Number, Number, Category, Category, Moment, Category, Text]
    assert {column.name: column.why for column in encoder.left_out} == {
        "customer_id": "is called as ids are",
        "phone": "holds phone numbers or codes",
        "plan": "is the same in every row",
        "age_months": "says the same as 'age'",
    }
    assert Z.shape == (1000, encoder.width)
    assert np.isfinite(Z).all()
    assert list(encoder.blocks.values())[-1].stop == encoder.width == len(encoder.number_names)
    said = "\n".join(encoder.describe())
    assert "number, by its logarithm: income" in said or "number: age, income" in said
    assert "phone (holds phone numbers or codes)" in said


def test_number_is_measured_from_its_median_in_spreads():
    x = np.random.default_rng(0).normal(50, 4, 2000)
    column = rule(x)
    np.testing.assert_allclose(column.spread, 4, rtol=0.05)
    _, Z = encoded(pd.DataFrame({"x": x}))
    np.testing.assert_allclose(Z[:, 0], (x - np.median(x)) / column.spread)
    assert Z.shape[1] == 1


def test_outlier_does_not_widen_the_spread():
    x = np.random.default_rng(0).normal(50, 4, 2000)
    spread = rule(x).spread
    x[:10] = 1e9
    assert rule(x).spread == pytest.approx(spread, rel=0.05)


def test_skewed_positive_numbers_are_compared_by_their_logarithm():
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(5, 1.5, 1000))
    assert rule(amounts).unit == pytest.approx(np.quantile(amounts, 0.05))
    assert rule(np.append(amounts, np.zeros(30))).unit == pytest.approx(np.quantile(amounts, 0.05))
    assert rule(np.append(amounts, -1.0)).unit is None
    assert rule(rng.normal(50, 4, 1000)).unit is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_rarer_levels_are_farther_apart(share):
    n = 1000
    rare = round(share * n)
    _, Z = encoded(pd.DataFrame({"x": ["a"] * (n - rare) + ["b"] * rare}))
    from scipy.stats import norm

    expected = sum(max(norm.isf(s / 2) ** 2, 1.0) for s in (1 - share, share)) / 2
    assert ((Z[0] - Z[-1]) ** 2).sum() == pytest.approx(expected)


def test_rare_and_new_levels_are_one_level():
    encoder, _ = encoded(pd.DataFrame({"x": ["a"] * 500 + ["b"] * 490 + ["c"] * 5 + ["d"] * 5}))
    assert encoder.columns[0].levels == ("a", "b")
    new = encoder.encode(cells_of(pd.DataFrame({"x": ["c", "d", "never seen", "a", None]})))
    np.testing.assert_array_equal(new[0], new[2])
    np.testing.assert_array_equal(new[0], new[1])
    assert (new[0] != new[3]).any()
    assert (new[4] != new[0]).any()


def test_missing_number_is_in_the_middle_and_apart_from_all_others():
    x = np.random.default_rng(0).normal(size=400)
    x[:40] = np.nan
    _, Z = encoded(pd.DataFrame({"x": x}))
    assert (Z[:40, 0] == 0).all()
    assert len(np.unique(Z[:40, 1])) == 1
    assert (Z[:40, 1] > 0.5).all()
    assert (Z[40:, 1] == 0).all()


def test_cycles_show_where_rows_gather_in_them():
    moments = visits()["begin"]
    column = rule(moments)
    assert column.cycles == ("time of day",)
    weekends = pd.Series(pd.date_range("2024-01-06", periods=100, freq="7D"))
    assert "weekday" not in rule(pd.concat([weekends, weekends + pd.Timedelta(days=3.5)])).cycles
    assert rule(pd.Series(pd.date_range("2024-01-01", periods=700, freq="D"))).cycles == ()
    summers = [datetime.date(year, 7, day) for year in range(2000, 2020) for day in range(1, 29)]
    assert "season" in rule(summers).cycles


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["$1,234.50", "$7.00", "($12.00)", "$3.25"], [1234.5, 7, -12, 3.25]),
        (["1.234,50 €", "7,50 €", "-3,00 €", "2,25 €"], [1234.5, 7.5, -3, 2.25]),
        (["12 %", "50 %", "7.5 %", "3 %"], [0.12, 0.5, 0.075, 0.03]),
        (["1'000", "2'500", "12'000", "700"], [1000, 2500, 12000, 700]),
        (["EUR 5", "EUR 7", "EUR 9", "EUR 1"], [5, 7, 9, 1]),
    ],
)
def test_numbers_are_read_as_people_write_them(texts, numbers):
    column = rule(texts)
    assert isinstance(column, Number)
    np.testing.assert_allclose(column.written.read(texts), numbers)


def test_new_rows_are_read_as_those_of_fit_were_written():
    encoder, _ = encoded(pd.DataFrame({"x": ["1.234,5", "2,5", "7,25", "3,0"]}))
    alone = encoder.encode(cells_of(pd.DataFrame({"x": ["1.000"]})))
    assert encoder.value("x", alone[0]) == "1000"
    dates, _ = encoded(pd.DataFrame({"x": [f"{day:02d}/06/2024" for day in range(1, 29)]}))
    assert dates.value("x", dates.encode(cells_of(pd.DataFrame({"x": ["03/04/2024"]})))[0]) == "2024-04-03"


def test_dates_of_two_systems_in_one_column_are_read():
    days = pd.date_range("2020-01-01", periods=200)
    texts = [day.strftime("%d.%m.%Y" if i % 3 else "%Y-%m-%d") for i, day in enumerate(days)]
    column = rule(texts)
    assert isinstance(column, Moment)
    np.testing.assert_array_equal(np.diff(column.written.read(texts)), 1.0)
    assert not isinstance(rule([f"{i % 7}.{i % 5} or so" for i in range(200)]), Moment)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([f"name {i}" for i in range(50)], "is different in every row"),
        ([7] * 50, "is the same in every row"),
        ([None] * 50, "has no values"),
        (list(range(1, 51)), "counts the rows"),
        ([f"{i}@example.org" for i in range(25)] * 2, "holds addresses"),
        ([[1.0, 2.0]] * 50, "holds lists"),
        ([f"AB-{i % 40}" for i in range(50)], "holds codes, hardly any of which repeats"),
    ],
)
def test_columns_that_say_nothing_are_left_out(values, why):
    assert rule(values).startswith(why)


def test_numbers_that_are_called_as_codes_are_left_out_unless_they_are_asked_for():
    frame = pd.DataFrame({"zip": np.random.default_rng(0).integers(1e4, 1e5, 90), "x": np.arange(90) % 7})
    assert [column.name for column in encoded(frame)[0].left_out] == ["zip"]
    assert encoded(frame, keep=["zip"])[0].names == ["zip", "x"]


def test_copies_in_other_units_are_left_out():
    x = np.random.default_rng(0).normal(170, 9, 300)
    frame = pd.DataFrame(
        {"cm": x, "inches": x / 2.54, "depth": -x, "other": x**3, "flag": x > 170, "code": (x > 170) * 5}
    )
    encoder, _ = encoded(frame)
    assert encoder.names == ["cm", "other", "flag"]


def test_encoding_does_not_depend_on_the_order_of_rows():
    order = np.random.default_rng(1).permutation(len(CUSTOMERS))
    encoder, Z = encoded(CUSTOMERS)
    other, Z_other = encoded(CUSTOMERS.iloc[order])
    assert other.names == encoder.names
    np.testing.assert_allclose(Z_other, Z[order], atol=1e-9)


def test_cells_are_read_from_their_numbers():
    encoder, Z = encoded(CUSTOMERS)
    encoder = encoder.with_texts(cells_of(CUSTOMERS))
    for row in (0, 7, 250):
        for name, block in encoder.blocks.items():
            said, cell = encoder.value(name, Z[row, block], row), CUSTOMERS.loc[row, name]
            if cell is None or cell != cell:
                assert said == "missing"
            elif name == "age":
                assert float(said) == cell
            elif name == "income":
                assert float(said.replace(",", "")) == pytest.approx(float(cell[1:].replace(",", "")), abs=0.5)
            elif name == "signup":
                assert said == f"{cell[6:]}-{cell[3:5]}-{cell[:2]}"
            elif name == "active":
                assert said == repr(str(cell).lower())
            else:
                assert said == repr(cell)


# Data frames


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.slow
def test_tables_of_other_packages_are_fitted_whatever_they_hold():
    pytest.importorskip("palmerpenguins")
    for _, frame in real():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            model, other = MOSAIC(10).fit(frame), MOSAIC(10).fit(arrow(frame))
        np.testing.assert_array_equal(other.representative_indices_, model.representative_indices_)
        assert not model.is_outlier_[model.representative_indices_].any()
        assert any(model.explain(row).columns for row in model.representative_indices_.tolist())


@pytest.mark.parametrize("name", TABLES)
def test_real_tables_are_fitted_whatever_they_hold(name):
    frame = TABLES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        model = MOSAIC(10).fit(frame)
        same = [MOSAIC(10).fit(other) for other in (pl.from_pandas(frame), arrow(frame))]
    assert len(model.representative_indices_) == 10
    assert not model.is_outlier_[model.representative_indices_].any()
    for other in same:
        np.testing.assert_array_equal(other.representative_indices_, model.representative_indices_)
        np.testing.assert_array_equal(other.is_outlier_, model.is_outlier_)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    assert model.select(frame).equals(frame.iloc[model.representative_indices_])
    assert model.feature_names_in_.tolist() == model.table_.names
    assert model.n_features_in_ == len(model.table_.names)


def gower(frame):
    """Mean over columns of |x − y| / range, or of x ≠ y, where both are there."""
    total, known = np.zeros((len(frame), len(frame))), np.zeros((len(frame), len(frame)))
    for name in frame:
        x, there = frame[name].to_numpy(), frame[name].notna().to_numpy()
        both = there[:, None] & there
        is_text = x.dtype == object
        apart = x[:, None] != x if is_text else np.abs(np.subtract.outer(x, x)) / (np.nanmax(x) - np.nanmin(x))
        total += np.where(both, apart, 0.0)
        known += both
    return total / np.maximum(known, 1)


def medoids(D, k, rng):
    """k-medoids by alternating, the best of 20 starts."""
    best, least = None, np.inf
    for _ in range(20):
        chosen = rng.choice(len(D), k, replace=False)
        for _ in range(50):
            label = D[:, chosen].argmin(axis=1)
            label[chosen] = np.arange(k)  # of equal rows, each stands for itself
            new = np.array(
                [np.flatnonzero(label == j)[D[np.ix_(label == j, label == j)].sum(axis=0).argmin()] for j in range(k)]
            )
            if (new == chosen).all():
                break
            chosen = new
        if D[:, chosen].min(axis=1).sum() < least:
            best, least = chosen, D[:, chosen].min(axis=1).sum()
    return best


def test_picks_tell_classes_apart_about_as_well_as_medoids_of_gower_distances_do():
    ours, theirs = [], []
    for y, frame in labelled():
        D = gower(frame)
        for k in (6, 10, 15):
            model = MOSAIC(k, outliers="keep").fit(frame)
            ours.append((y[model.representative_indices_][model.labels_] == y).mean())
            chosen = medoids(D, k, np.random.default_rng(0))
            theirs.append((y[chosen][D[:, chosen].argmin(axis=1)] == y).mean())
    assert np.mean(ours) >= np.mean(theirs) - 0.01


@pytest.mark.slow
def test_picks_tell_classes_of_real_tables_apart_at_least_as_well_as_medoids_do():
    skrub, kmedoids = pytest.importorskip("skrub"), pytest.importorskip("kmedoids")
    found = []
    for y, frame in (*labelled(), *real()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages, and ours on columns that are left out
            steps = (skrub.TableVectorizer(), SimpleImputer(), StandardScaler())
            vectors = make_pipeline(*steps).fit_transform(frame)
            models = [MOSAIC(k, outliers="keep").fit(frame) for k in (6, 10, 15, 20, 30)]
        distances = (gower(with_numbers(frame)), pairwise_distances(vectors))
        for model in models:
            picks = model.representative_indices_
            accuracies = [(y[picks][model.labels_] == y).mean()]
            for D in distances:
                chosen = kmedoids.fasterpam(D, len(picks), random_state=0).medoids.astype(int)
                accuracies.append((y[chosen][D[:, chosen].argmin(axis=1)] == y).mean())
            found.append(accuracies)
    ours, by_gower, by_vectors = np.mean(found, axis=0)
    assert ours >= max(by_gower, by_vectors)


def test_numbers_without_gaps_are_taken_as_they_are():
    X = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 30.0, 1.0]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = MOSAIC(6).fit(X)
    frame["name"] = [f"row {i}" for i in range(80)]
    frame["empty"] = np.nan
    frame["kind"] = "all the same"
    for given in (frame, pl.from_pandas(frame), arrow(frame)):
        model = MOSAIC(6).fit(given)
        assert model.table_ is None
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
        np.testing.assert_array_equal(model.column_scale_, expected.column_scale_)
        np.testing.assert_array_equal(model.effective_count_, expected.effective_count_)
    assert expected.table_ is None


def test_table_is_not_scaled_again_unless_asked_for():
    model = MOSAIC(6).fit(CUSTOMERS.drop(columns="age_months"))
    assert model.column_scale_ is None
    assert model.explain()[0] == model.table_.describe()[0]
    assert "Columns are taken as they are." not in model.explain()
    asked = MOSAIC(6, scale=True).fit(CUSTOMERS.drop(columns="age_months"))
    assert asked.column_scale_.shape == (asked.table_.width,)


@pytest.mark.parametrize("library", ["pandas", "polars", "Arrow"])
def test_new_rows_may_have_new_levels_and_gaps(library):
    with pytest.warns(SelectionWarning):
        model = MOSAIC(10).fit(CUSTOMERS)
    new = CUSTOMERS.drop(columns=["customer_id", "phone", "age_months"]).head(20)[::-1].copy()
    new["city"] = "Reykjavík"
    new["signup"] = None
    new = new[new.columns[::-1]]
    given = {"pandas": lambda: new, "polars": lambda: pl.from_pandas(new), "Arrow": lambda: arrow(new)}[library]()
    labels = model.predict(given)
    assert labels.shape == (20,)
    assert np.isfinite(model.score_samples(given)).all()
    assert model.transform(given).shape == (20, 10)
    with pytest.raises(InvalidInputError, match="column 'income' was there in fit and is missing now"):
        model.predict(new.drop(columns="income"))
    with pytest.raises(InvalidInputError, match="X has no column names; fit was given a table with 'age', 'income'"):
        model.predict(np.zeros((3, 7)))


def test_detector_has_the_scores_of_the_selector():
    with pytest.warns(SelectionWarning):
        detector, model = MOSAICOutlierDetector().fit(CUSTOMERS), MOSAIC(10).fit(CUSTOMERS)
    np.testing.assert_allclose(detector.score_samples(CUSTOMERS), model.score_samples(CUSTOMERS))
    np.testing.assert_array_equal(detector.predict(CUSTOMERS) == -1, model.is_outlier_)


def test_table_is_read_in_passes_as_in_memory():
    frame = customers(3000).drop(columns="age_months")
    by_passes = MOSAIC(8, algorithm=Sketch(n_initial=100)).fit(frame)
    in_memory = MOSAIC(8).fit(frame)
    assert by_passes.table_ == in_memory.table_
    assert by_passes.gamma_ == pytest.approx(in_memory.gamma_, rel=1e-6)
    assert by_passes.explain()[0] == in_memory.explain()[0]
    assert (by_passes.is_outlier_ == in_memory.is_outlier_).mean() > 0.99
    assert by_passes.predict(frame).shape == (3000,)


def test_model_is_saved_with_its_table():
    frame = CUSTOMERS.drop(columns="age_months")
    model = MOSAIC(6).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    assert again.explain(0) == model.explain(0)
    assert not hasattr(clone(model), "table_")


def test_warning_names_columns_that_a_user_would_miss_and_no_others():
    frame = CUSTOMERS.assign(zip=np.random.default_rng(0).integers(10**4, 10**5, len(CUSTOMERS)))
    with pytest.warns(SelectionWarning, match="Not compared") as caught:
        MOSAIC(6).fit(frame)
    said = [str(each.message) for each in caught]
    assert len(said) == 1
    assert "'zip' holds codes" in said[0]
    assert "'age_months' says the same as 'age'" in said[0]
    assert not any(name in said[0] for name in ("customer_id", "phone", "plan"))


def test_text_in_a_column_of_numbers_is_missing_and_named():
    frame = pd.DataFrame({"x": [str(i % 90) for i in range(300)], "y": np.arange(300.0) % 17})
    frame.loc[[40, 80], "x"] = ["about 12", "lots"]
    model = MOSAIC(6).fit(frame)
    (said,) = model.table_.notes
    assert said == "2 cells of 'x' are no number and count as missing, the first: 'about 12' in row 40."
    assert said in model.explain()


# Reasons


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_planted_oddities_are_flagged_and_their_columns_named(seed):
    frame, oddities = planted(seed, [500, 1000, 2000, 3000][seed])
    detector, model = MOSAICOutlierDetector().fit(frame), MOSAIC(10).fit(frame)
    found = 0
    for row, columns in oddities:
        told = model.explain(row)
        other = detector.explain(row)
        if told.status == "outlier" and other.status == "outlier":
            assert other.columns == told.columns
            found += told.columns[0][0] in columns
    assert found >= 0.9 * len(oddities)


def test_reason_of_an_outlier_is_in_the_units_of_the_user():
    frame, oddities = planted(0)
    model = MOSAIC(10).fit(frame)
    reasons = [model.explain(row).reason for row, _ in oddities]
    assert reasons[0].startswith("rejected as an outlier: age 999, usual 20 to 62. It is alone")
    assert reasons[1].startswith("rejected as an outlier: height 1.777, usual 157")
    assert reasons[2].startswith("rejected as an outlier: signup 1900-01-01, usual 2019-")
    assert reasons[3].startswith("rejected as an outlier: city 'Atlantis', which is rare")
    assert reasons[4].count(" missing") == 3
    assert reasons[5].startswith("rejected as an outlier: income 9,999,999, usual 12,")


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_share_of_a_column_is_what_the_distance_falls_by_without_it(kernel):
    frame, oddities = planted(1)
    model = MOSAIC(10, kernel=kernel).fit(frame)
    Z, power = model.table_.encode(cells_of(frame)), 2 if kernel == "rbf" else 1
    usual = Z[~model.is_outlier_]
    checked = 0
    for row, _ in oddities:
        distances = (np.abs(usual - Z[row]) ** power).sum(axis=1)
        nearest = usual[distances.argmin()]
        for name, _, share in model.explain(row).columns:
            others = np.ones(Z.shape[1], bool)
            others[model.table_.blocks[name]] = False
            without = (np.abs(nearest - Z[row])[others] ** power).sum()
            assert distances.min() - without == pytest.approx(share * distances.min(), rel=1e-9)
            checked += 1
    assert checked >= 6


def test_contrasts_of_a_representative_are_those_to_the_mean_of_all():
    frame = customers().drop(columns="age_months")
    model = MOSAIC(10).fit(frame)
    Z = model.table_.encode(cells_of(frame))
    middle = Z[~model.is_outlier_].mean(axis=0)
    apart = (Z[~model.is_outlier_] - middle) ** 2
    for row in model.representative_indices_.tolist():
        own = (Z[row] - middle) ** 2
        told = model.explain(row)
        assert len(told.columns) <= 3
        for name, _, share in told.columns:
            block = model.table_.blocks[name]
            assert share == pytest.approx(own[block].sum() / own.sum(), rel=1e-9)
            assert own[block].sum() > apart[:, block].sum(axis=1).mean()
        shares = [share for _, _, share in told.columns]
        assert shares == sorted(shares, reverse=True)
        assert "mean similarity" not in told.reason
    some = [model.explain(row) for row in model.representative_indices_.tolist()]
    assert any("income (" in told.reason and ", usual " in told.reason for told in some)


def test_frame_of_numbers_has_reasons_in_its_columns_and_an_array_has_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [5.0, 0.3, 2000.0] + [40.0, 1.0, 30000.0]
    X[7, 0] = 999.0
    frame = pd.DataFrame(X, columns=["age", "ratio", "income"])
    model = MOSAIC(5).fit(frame)
    told = model.explain(7)
    assert told.status == "outlier"
    assert told.reason.startswith("rejected as an outlier: age 999, usual 3")
    Y = X / model.column_scale_
    usual = Y[~model.is_outlier_]
    nearest = usual[((usual - Y[7]) ** 2).sum(axis=1).argmin()]
    assert told.columns[0][2] == pytest.approx((nearest - Y[7])[0] ** 2 / ((nearest - Y[7]) ** 2).sum())
    bare = MOSAIC(5).fit(X)
    assert bare.explain(7).columns == ()
    assert "usual" not in bare.explain(7).reason
    first = bare.explain(int(bare.representative_indices_[0]))
    share = (bare.effective_count_ < first.effective_count).mean()
    assert f"rows; more typical than {100 * share:.2g} % of the rows; most similar: row " in first.reason
    assert [f"row {row}" for row in first.members[1:4]] == first.reason.rstrip(".").partition("similar: ")[2].split(
        ", "
    )
    assert first.gain == bare.selection_.gains[0]


def test_row_is_explained_alike_whether_all_rows_were_counted_before_or_not(monkeypatch):
    monkeypatch.setattr("mosaic.estimators.by_passes.DECISION_SAMPLE", 300)
    frame, oddities = planted(1)
    for options in ({}, {"outliers": "report"}, {"min_group": 2}):
        rows = [row for row, _ in oddities] + [0, 7]
        one, every = MOSAIC(8, **options).fit(frame), MOSAIC(8, **options).fit(frame)
        assert every.selection_.is_sampled
        counts = every.effective_count_
        rows += one.representative_indices_.tolist()
        for row in rows:
            told, expected = one.explain(row).to_dict(), every.explain(row).to_dict()
            for name in ("effective_count", "outlier_probability", "representation_error"):
                assert told.pop(name) == pytest.approx(expected.pop(name), rel=1e-9)
            assert told == expected
        stand = [one.explain(row).stands_for for row in one.representative_indices_.tolist()]
        assert sum(stand) == pytest.approx((every.labels_ >= 0).sum(), rel=0.02)
        np.testing.assert_array_equal(one.effective_count_, counts)


def test_outliers_of_a_file_that_is_read_in_passes_have_reasons_in_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mosaic.estimators.by_passes.DECISION_SAMPLE", 300)
    monkeypatch.setattr("mosaic.cli.others.SHARE_FOR_ROWS", 0.0)
    frame, oddities = planted(3, 3000)
    path = write(frame, tmp_path, "csv")
    assert run(capsys, "outliers", path, "-o", tmp_path / "odd.csv", "-q").code == 0
    odd = pd.read_csv(tmp_path / "odd.csv").set_index("mosaic_row")
    for row, columns in oddities:
        assert any(odd.loc[row, "mosaic_reason"].startswith(f"an outlier: {name} ") for name in columns)
    rare = next(row for row, columns in oddities if columns == {"city"})
    assert "city 'Atlantis', which is rare" in odd.loc[rare, "mosaic_reason"]


@pytest.mark.parametrize("kept", [300, 16_384])
def test_rare_values_and_texts_are_told_after_passes(kept, tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.estimators.by_passes.DECISION_SAMPLE", kept)
    frame, oddities = planted(3, 3000)
    frame.loc[frame.index % 2 == 0, "note"] = "paid in time and without a word of complaint"
    path = write(frame, tmp_path, "csv")
    with read(path, memory_budget=1e5) as table:
        model = MOSAIC(8, algorithm="sketch").fit(table)
        model.save(tmp_path / "model.mosaic")
        rare = next(row for row, columns in oddities if columns == {"city"})
        (told,) = explain_model(model, [rare], table)
        assert "city 'Atlantis', which is rare" in told.reason
    for one in (model, mosaic.load(tmp_path / "model.mosaic")):
        told = " ".join(one.explain(row).reason for row in one.representative_indices_.tolist())
        assert "is unlike others" not in told
    new = frame.head(400).assign(city="Reykjavík", age=200)
    with read(write(new, tmp_path, "parquet"), memory_budget=1e4, encoder=model.table_) as table:
        assert not isinstance(table.X, np.ndarray)
        reasons = [reason for reason in model.explain_new(table).reason if reason is not None]
    assert any("city 'Reykjavík', which is rare" in reason for reason in reasons)


def test_reasons_are_the_same_in_summary_and_report(tmp_path):
    frame, oddities = planted(2)
    model = MOSAIC(10).fit(frame)
    facts = model.facts_
    by_row = {one.row: one.reason for one in facts.outliers.lowest}
    for row, _ in oddities:
        assert by_row[row] == model.explain(row).reason
    assert facts.feature_names == model.table_.names
    write_report(model, tmp_path / "report.html", certificate=False)
    page = (tmp_path / "report.html").read_text()
    assert "age 999, usual " in page
    assert "Compared as number" in page
    assert "to the mean similarity of the points" not in page


# Files


def write(frame, folder, kind):
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        pa.parquet.write_table(arrow(frame), path)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    return path


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_file_frame_and_command_have_the_same_picks_and_reasons(name, kind, tmp_path, capsys):
    frame = TABLES[name]()
    path = write(frame, tmp_path, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        expected, model = MOSAIC(8).fit(frame), MOSAIC(8).fit(path)
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    np.testing.assert_array_equal(model.is_outlier_, expected.is_outlier_)
    assert model.table_.names == expected.table_.names
    ran = run(capsys, "select", path, "-k", "8", "--json")
    answer = json.loads(ran.out)
    assert [pick["row"] for pick in answer["picks"]] == expected.representative_indices_.tolist()
    for pick in answer["picks"]:
        assert pick["reason"] == expected.explain(pick["row"]).reason
    for one in answer["outliers"]["lowest"]:
        assert one["reason"] == expected.explain(one["row"]).reason
    assert answer["file"]["feature_names"] == expected.table_.names
    assert any(note.startswith("Compared as ") for note in answer["notes"])


def test_command_writes_reasons_in_columns(tmp_path, capsys):
    frame, oddities = planted(0)
    path = write(frame, tmp_path, "csv")
    assert run(capsys, "outliers", path, "-o", tmp_path / "odd.csv").code == 0
    odd = pd.read_csv(tmp_path / "odd.csv").set_index("mosaic_row")
    assert odd.loc[oddities[0][0], "mosaic_reason"].startswith("an outlier: age 999, usual 20 to 62. No other row")
    for row, columns in oddities:
        assert any(odd.loc[row, "mosaic_reason"].startswith(f"an outlier: {name} ") for name in columns)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_large_file_has_the_numbers_of_its_encoder(kind, tmp_path):
    frame = customers(3000, missing=0.1)
    path = write(frame, tmp_path, kind)
    with read(path, memory_budget=1e5) as table:
        assert not isinstance(table.X, np.ndarray)
        assert table.feature_names == ["age", "income", "segment", "city", "signup", "active", "note"]
        expected = TableEncoder.of(cells_of(frame))
        assert [type(column) for column in table.encoder.columns] == [type(column) for column in expected.columns]
        X = table.X.read(0, table.n)
        np.testing.assert_allclose(X, table.encoder.encode(cells_of(frame)), atol=1e-12)
        np.testing.assert_allclose(X, expected.encode(cells_of(frame)), atol=1e-12)
        np.testing.assert_allclose(table.X.read(700, 900), X[700:900], atol=1e-12)


def test_rules_of_a_large_file_are_found_from_a_part_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.build.DECIDING_ROWS", 1000)
    frame = customers(6000, missing=0.1)
    frame.loc[5990, "segment"] = "never seen in the part"
    with read(write(frame, tmp_path, "csv"), memory_budget=1e5) as table:
        assert any("found from 1,000 rows spread over the file" in note for note in table.notes)
        np.testing.assert_allclose(table.X.read(0, 6000), table.encoder.encode(cells_of(frame)), atol=1e-12)
        whole = TableEncoder.of(cells_of(frame))
        assert table.encoder.names == whole.names
        assert table.encoder.columns[0].spread == pytest.approx(whole.columns[0].spread, rel=0.1)


def test_gap_beyond_the_rows_that_decide_is_apart_from_all_values(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.build.DECIDING_ROWS", 500)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=9000), "y": rng.normal(size=9000)})
    frame.loc[8000, "x"] = np.nan
    with read(write(frame, tmp_path, "parquet"), memory_budget=1e4) as table:
        X = table.X.read(0, 9000)
    assert table.encoder.blocks["x"] == slice(0, 2)
    assert np.flatnonzero(X[:, 1]).tolist() == [8000]


def test_large_file_is_fitted_in_passes_and_answers_for_new_files(tmp_path):
    frame = customers(4000, missing=0.1).drop(columns="age_months")
    path = write(frame, tmp_path, "csv")
    model = MOSAIC(8, algorithm=Sketch(n_initial=100)).fit(path)
    np.testing.assert_array_equal(model.predict(path), model.labels_)
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    new = frame.drop(columns="customer_id").head(50).assign(city="Reykjavík", signup=None)
    again = write(new, tmp_path, "parquet")
    np.testing.assert_array_equal(model.predict(again), model.predict(new))
    detector = MOSAICOutlierDetector().fit(path)
    np.testing.assert_allclose(detector.score_samples(again), detector.score_samples(new))
    with pytest.raises(InvalidInputError, match="column 'income': was there in fit and is missing now"):
        model.predict(write(new.drop(columns="income"), tmp_path, "parquet"))


def test_model_of_numbers_refuses_a_file_with_gaps(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "y"])
    model = MOSAIC(5).fit(write(frame, tmp_path, "csv"))
    assert model.table_ is None
    frame.loc[3, "y"] = np.nan
    with pytest.raises(InvalidInputError, match=r"line 5, column 'y': a number is missing"):
        model.predict(write(frame, tmp_path, "csv"))


def test_rows_with_missing_numbers_are_dropped_if_asked_for(tmp_path):
    frame = customers(500).drop(columns="age_months")
    frame.loc[[3, 7], "age"] = None
    frame.loc[9, "city"] = None
    with read(write(frame, tmp_path, "csv"), drop_missing=True) as table:
        assert table.n == 498
        assert table.numbers([2, 3, 7]).tolist() == [2, 4, 9]
        np.testing.assert_allclose(table.X, table.encoder.encode(cells_of(frame.drop(index=[3, 7]))), atol=1e-12)


def test_texts_that_stand_for_numbers_or_dates_do_not_name_rows(tmp_path):
    rng = np.random.default_rng(0)
    amounts = [f"${amount:,.2f}" for amount in rng.permutation(np.arange(200) * 173.37 + 5)]
    days = pd.date_range("2020-01-01", periods=200).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"amount": amounts, "day": rng.permutation(days), "kind": rng.choice(["a", "b"], 200)})
    with read(write(frame, tmp_path, "csv")) as table:
        assert table.id_name is None
        assert table.feature_names == ["amount", "day", "kind"]


# Weights


def repeated(frame, weights):
    return frame.loc[np.repeat(frame.index, weights)].reset_index(drop=True)


def visits_and_ages(n=150):
    """Numbers, skewed ones, categories, dates with a cycle, written numbers, and gaps; no column of names."""
    frame = visits(n)
    frame["spent"] = np.exp(np.random.default_rng(1).normal(3, 1.5, n)).round(2)
    frame["paid"] = [f"${amount:,.2f}" for amount in frame["spent"]]
    frame.loc[::7, "spent"] = np.nan
    return frame


def test_a_weight_of_two_is_the_same_as_the_row_twice():
    weights = np.random.default_rng(0).integers(1, 4, 150)
    frame = visits_and_ages()
    once, often = (
        encoder_of(cells_of(frame), weights=weights.astype(float)),
        encoder_of(cells_of(repeated(frame, weights))),
    )
    assert once.names == often.names
    np.testing.assert_allclose(once.encode(cells_of(frame)), often.encode(cells_of(frame)), atol=1e-9)
    plain = encoder_of(cells_of(frame))
    assert np.abs(plain.encode(cells_of(frame)) - once.encode(cells_of(frame))).max() > 0.01


def test_rows_of_weight_zero_decide_nothing():
    frame = visits_and_ages()
    weights = np.ones(150)
    weights[100:] = 0
    odd = frame.copy()
    odd.loc[100:, "spent"] = 1e6
    odd.loc[100:, "browser"] = "lynx"
    told, expected = encoder_of(cells_of(odd), weights=weights), encoder_of(cells_of(frame[:100]))
    np.testing.assert_array_equal(told.encode(cells_of(frame[:100])), expected.encode(cells_of(frame[:100])))


def test_weights_that_are_no_whole_numbers_count_by_their_ratios():
    frame, weights = visits_and_ages(), np.random.default_rng(0).uniform(0.5, 2, 150)
    one, other = (encoder_of(cells_of(frame), weights=scale * weights) for scale in (1.0, 7.0))
    np.testing.assert_allclose(one.encode(cells_of(frame)), other.encode(cells_of(frame)), atol=1e-9)


def test_fit_gives_the_same_picks_for_weights_and_for_repetitions(tmp_path):
    weights = np.random.default_rng(0).integers(1, 4, 150)
    frame = visits_and_ages()
    often = MOSAIC(8).fit(repeated(frame, weights))
    expected = np.repeat(np.arange(150), weights)[often.representative_indices_]
    np.testing.assert_array_equal(MOSAIC(8).fit(frame, sample_weight=weights).representative_indices_, expected)
    with_column = frame.assign(count=weights)
    model = MOSAIC(8).fit(with_column, sample_weight="count")
    np.testing.assert_array_equal(model.representative_indices_, expected)
    with_column.to_csv(tmp_path / "visits.csv", index=False)
    model = MOSAIC(8).fit(tmp_path / "visits.csv", sample_weight="count")
    np.testing.assert_array_equal(model.representative_indices_, expected)


@pytest.mark.parametrize("shares", [[0.05, 0.5, 0.95], [0.0, 1.0], [0.3]])
@pytest.mark.parametrize("nearest", [True, False])
def test_quantiles_of_weighted_numbers_are_those_of_repeated_ones(shares, nearest):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 50):
        x, weights = rng.normal(size=n), rng.integers(1, 5, n)
        expected = np.quantile(np.repeat(x, weights), shares, method="nearest" if nearest else "linear")
        np.testing.assert_allclose(quantiles(x, shares, weights.astype(float), nearest=nearest), expected, atol=1e-12)


# What random cases found


def test_numbers_of_any_size_are_compared_in_a_mixed_table():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=60)
    frames = [pd.DataFrame({"x": numbers * size, "kind": list("abc") * 20}) for size in (1.0, 1e300, 1e-300)]
    picks = [MOSAIC(5).fit(frame).representative_indices_.tolist() for frame in frames]
    assert picks[0] == picks[1] == picks[2]


def test_a_table_without_a_column_that_says_something_is_refused_with_the_reasons():
    frame = pd.DataFrame({"x": [1.0, np.nan, 2.0], "kind": ["a", "b", "c"]})
    with pytest.raises(InvalidInputError, match=r"no column says anything about a row: 'x' .*'kind' "):
        MOSAIC(1).fit(frame, sample_weight=[1.0, 0.0, 0.0])


def test_parameters_of_other_kernels_are_checked_too():
    with pytest.raises(InvalidInputError, match="coef0 must be a finite number"):
        MOSAIC(2, kernel=Polynomial(coef0=[])).fit(np.eye(4))
