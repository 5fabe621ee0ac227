"""Tables of mixed columns: what becomes of each kind of column, the same picks however it comes, and reasons in columns."""

from __future__ import annotations

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import mosaic
from cli_runs import run
from mixed_tables import TABLES, customers, planted, real, visits
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, SelectionWarning, Sketch
from mosaic.estimators import explain_model
from mosaic.rows import read
from mosaic.rows.encoder import TableEncoder, encoder_of
from mosaic.rows.frames import cells_of
from mosaic.rows.kinds import Number, possible_range, quantiles

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
    assert [(column.name, column.how.split(",")[0]) for column in encoder.columns] == [
        ("age", "number"),
        ("income", "number"),
        ("segment", "category"),
        ("city", "category"),
        ("signup", "date"),
        ("active", "category"),
        ("note", "text"),
    ]
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
    assert column.cycles == ("time",)
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
    assert encoder.reading("x", alone[0])[0] == "1000"
    dates, _ = encoded(pd.DataFrame({"x": [f"{day:02d}/06/2024" for day in range(1, 29)]}))
    assert dates.reading("x", dates.encode(cells_of(pd.DataFrame({"x": ["03/04/2024"]})))[0])[0] == "2024-04-03"


def test_dates_of_two_systems_in_one_column_are_read():
    days = pd.date_range("2020-01-01", periods=200)
    texts = [day.strftime("%d.%m.%Y" if i % 3 else "%Y-%m-%d") for i, day in enumerate(days)]
    column = rule(texts)
    assert column.how.startswith("date")
    np.testing.assert_array_equal(np.diff(column.written.read(texts)), 1.0)
    assert not rule([f"{i % 7}.{i % 5} or so" for i in range(200)]).how.startswith("date")


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
    frame = pd.DataFrame({"cm": x, "inches": x / 2.54, "depth": -x, "other": x**3, "flag": x > 170, "code": (x > 170) * 5})
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
            said, cell = encoder.reading(name, Z[row, block], row)[0], CUSTOMERS.loc[row, name]
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


@pytest.mark.parametrize("kept", [300, 16_384])
def test_rare_values_and_texts_are_told_after_passes(kept, tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.estimators.proof.DECISION_SAMPLE", kept)
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


def test_model_of_numbers_refuses_a_file_with_gaps(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "y"])
    model = MOSAIC(5).fit(write(frame, tmp_path, "csv"))
    assert model.table_ is None
    frame.loc[3, "y"] = np.nan
    with pytest.raises(InvalidInputError, match=r"1 NaN. The first is .* in row 3, column 'y'"):
        model.predict(write(frame, tmp_path, "csv"))


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
    once, often = (encoder_of(cells_of(frame), weights=weights.astype(float)), encoder_of(cells_of(repeated(frame, weights))))
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


def test_a_table_without_a_column_that_says_something_is_refused_with_the_reasons():
    frame = pd.DataFrame({"x": [1.0, np.nan, 2.0], "kind": ["a", "b", "c"]})
    with pytest.raises(InvalidInputError, match=r"no column says anything about a row: 'x' .*'kind' "):
        MOSAIC(1).fit(frame, sample_weight=[1.0, 0.0, 0.0])


# What stands apart in one column, and long texts


def odd_customers(seed, n=3000):
    """Customers of whom twelve have one impossible or unreadable cell: the table, and the column of each such row."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 1800, n), "D")
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in range(n)],
            "age": np.clip(rng.normal(45, 15, n), 18, 90).round(),
            "height_cm": rng.normal(171, 9, n).round(1),
            "income": np.exp(rng.normal(10.3, 0.5, n)).round(-2),
            "segment": rng.choice(["basic", "plus", "premium"], n, p=[0.6, 0.3, 0.1]),
            "city": rng.choice(["Bonn", "Ulm", "Jena", "Kiel"], n),
            "joined": (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d"),
            "orders": rng.poisson(5, n),
        }
    )
    cells = [("age", -5), ("age", -1), ("age", 230), ("income", 0), ("income", 0), ("income", 9e7), ("joined", "1900-01-01"),
             ("joined", "2020-13-45"), ("height_cm", 1.74), ("height_cm", 0), ("orders", 900), ("city", "Atlantis")]  # fmt: skip
    rows = rng.choice(n, len(cells), replace=False).tolist()
    for row, (column, value) in zip(rows, cells, strict=True):
        frame.loc[row, column] = value
    return frame, {row: column for row, (column, _) in zip(rows, cells, strict=True)}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("Model", [MOSAIC, MOSAICOutlierDetector])
def test_one_impossible_cell_makes_its_row_an_outlier_and_is_the_reason(Model, seed):
    frame, planted_in = odd_customers(seed)
    model = Model().fit(frame)
    found = set(np.flatnonzero(model.is_outlier_).tolist())
    assert planted_in.keys() <= found
    assert len(found) <= len(planted_in) + 12
    for row, column in planted_in.items():
        assert model.explain(row).columns[0][0] == column


def test_a_cell_that_cannot_be_read_is_called_so_and_not_missing():
    frame, planted_in = odd_customers(0)
    model = MOSAICOutlierDetector().fit(frame)
    row = int(frame.index[frame["joined"] == "2020-13-45"][0])
    assert "joined '2020-13-45', which is no date" in model.explain(row).reason
    assert planted_in[row] == "joined"
    new = frame.iloc[[row]].reset_index(drop=True)
    assert "'2020-13-45', which is no date" in model.explain_new(new).reason[0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=1000),
        lambda rng: rng.lognormal(3, 1.2, 1000).round(1),
        lambda rng: rng.poisson(0.05, 1000),
        lambda rng: rng.poisson(5, 1000),
        lambda rng: rng.normal(15, 6, 1000).round(1),
        lambda rng: 1 + rng.pareto(1, 1000),
    ],
    ids=["normal", "lognormal", "rare counts", "counts", "temperatures", "Pareto"],
)
def test_ends_of_ordinary_columns_do_not_stand_apart(draw):
    for seed in range(10):
        x = np.asarray(draw(np.random.default_rng(seed)), float)
        low, high = possible_range(x)
        assert low < x.min() < x.max() < high


@pytest.mark.parametrize(("value", "beside"), [(-1.0, "age"), (230.0, "age"), (0.0, "income"), (9e7, "income")])
def test_what_stands_apart_is_outside_the_possible_range(value, beside):
    rng = np.random.default_rng(5)
    x = {"age": np.clip(rng.normal(45, 15, 1000), 18, 90).round(), "income": rng.lognormal(10.3, 0.5, 1000).round(-2)}[beside]
    low, high = possible_range(np.append(x, value))
    assert not low <= value <= high
    assert low < x.min() < x.max() < high


def test_long_texts_are_compared_by_their_words():
    rng = np.random.default_rng(0)
    subjects = [["ship", "harbour", "sailor", "anchor", "tide"], ["violin", "sonata", "choir", "melody", "tempo"]]
    kind = np.arange(300) % 2
    words = [[*rng.choice(subjects[k], 9), *rng.choice(["the", "of", "and", "with"], 6)] for k in kind]
    frame = pd.DataFrame({"doc_id": [f"D{i}" for i in range(300)], "text": [" ".join(rng.permutation(some)) for some in words]})
    assert frame["text"].is_unique
    model = MOSAIC(2).fit(frame)
    assert set(kind[model.representative_indices_]) == {0, 1}
    assert len(set(zip(kind.tolist(), model.labels_.tolist(), strict=True))) == 2
    assert model.explain()[0] == "Compared as text, by its words: text."
