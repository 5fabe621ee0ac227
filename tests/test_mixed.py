"""Tables of mixed columns: what becomes of each kind of column, the same picks however it comes, and reasons in columns."""

import datetime
import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import mosaic
from cli_runs import run
from mixed_tables import TABLES, customers, planted, visits
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, SelectionWarning
from mosaic.estimators import explain_model
from mosaic.rows import read
from mosaic.rows.encoder import Encoder
from mosaic.rows.frames import cells_of
from mosaic.rows.kinds import Number, possible_range, quantiles
from read_files import learned, numbers

CUSTOMERS = customers(missing=0.25)


def encoded(frame, **options):
    cells = cells_of(frame)
    encoder = Encoder.of(cells, **options)
    return encoder, encoder.encode(cells)


def rule(values, name="x"):
    encoder = Encoder.of(cells_of(pd.DataFrame({name: values})))
    return encoder.columns[0] if encoder.columns else encoder.left_out[0].why


def test_every_column_of_a_customer_table_has_the_rule_of_its_kind():
    encoder, Z = encoded(CUSTOMERS)
    assert encoder.names == ["age", "income", "segment", "city", "signup", "active", "note"]
    kinds = ["number", "number", "category", "category", "date", "category", "text"]
    assert [column.how.split(",")[0] for column in encoder.columns] == kinds
    assert {column.name: column.why for column in encoder.left_out} == {
        "customer_id": "has the name of an id",
        "phone": "holds phone numbers or codes",
        "plan": "is the same in every row",
        "age_months": "says the same as 'age'",
    }
    assert np.isfinite(Z).all()
    assert list(encoder.blocks.values())[-1].stop == encoder.width == len(encoder.number_names) == Z.shape[1]
    said = "\n".join(encoder.describe())
    assert "number, by its logarithm: income" in said or "number: age, income" in said
    assert "phone (holds phone numbers or codes)" in said
    order = np.random.default_rng(1).permutation(len(CUSTOMERS))
    np.testing.assert_allclose(encoded(CUSTOMERS.iloc[order])[1], Z[order], atol=1e-9)


def test_cells_are_read_from_their_numbers():
    encoder, Z = encoded(CUSTOMERS)
    encoder = encoder.with_texts(cells_of(CUSTOMERS))
    read_back = {
        "age": lambda cell: f"{cell:.0f}",
        "income": str,
        "signup": lambda cell: f"{cell[6:]}-{cell[3:5]}-{cell[:2]}",
        "active": lambda cell: repr(str(cell).lower()),
    }
    for row, name in product((0, 7, 250), encoder.blocks):
        said, cell = encoder.reading(name, Z[row, encoder.blocks[name]], row).value, CUSTOMERS.loc[row, name]
        expected = "missing" if cell is None or cell != cell else read_back.get(name, repr)(cell)
        assert (said if name == "income" else said.partition(".")[0]) == expected, name


def test_number_is_measured_from_its_median_in_spreads_and_a_missing_one_is_in_the_middle_and_apart_from_all():
    x = np.random.default_rng(0).normal(50, 4, 2000)
    column = rule(x)
    np.testing.assert_allclose(column.spread, 4, rtol=0.05)
    _, Z = encoded(pd.DataFrame({"x": x}))
    np.testing.assert_allclose(Z[:, 0], (x - np.median(x)) / column.spread)
    assert not Z[:, 1].any()
    x[:40] = np.nan
    _, Z = encoded(pd.DataFrame({"x": x}))
    assert (Z[:40, 0] == 0).all()
    assert len(np.unique(Z[:40, 1])) == 1
    assert (Z[:40, 1] > 0.5).all()
    assert (Z[40:, 1] == 0).all()
    amounts = np.exp(np.random.default_rng(0).normal(5, 1.5, 1000))  # skewed and positive: by their logarithm
    assert rule(amounts).unit == pytest.approx(np.quantile(amounts, 0.05))
    assert rule(np.append(amounts, np.zeros(30))).unit == pytest.approx(np.quantile(amounts, 0.05))
    assert rule(np.append(amounts, -1.0)).unit is column.unit is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_rarer_levels_are_farther_apart_and_rare_and_new_ones_are_one_level(share):
    n = 1000
    rare = round(share * n)
    _, Z = encoded(pd.DataFrame({"x": ["a"] * (n - rare) + ["b"] * rare}))
    expected = sum(max(norm.isf(s / 2) ** 2, 1.0) for s in (1 - share, share)) / 2
    assert ((Z[0] - Z[-1]) ** 2).sum() == pytest.approx(expected)
    encoder, _ = encoded(pd.DataFrame({"x": ["a"] * 500 + ["b"] * 490 + ["c"] * 5 + ["d"] * 5}))
    assert encoder.columns[0].levels == ("a", "b")
    rare, other, new, frequent, missing = encoder.encode(cells_of(pd.DataFrame({"x": ["c", "d", "never seen", "a", None]})))
    np.testing.assert_array_equal([other, new], [rare, rare])
    assert (rare != frequent).any()
    assert (rare != missing).any()


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


def test_dates_of_two_systems_are_read_and_new_rows_as_those_of_fit_were_written():
    days = pd.date_range("2020-01-01", periods=200)
    texts = [day.strftime("%d.%m.%Y" if i % 3 else "%Y-%m-%d") for i, day in enumerate(days)]
    column = rule(texts)
    assert column.how.startswith("date")
    np.testing.assert_array_equal(np.diff(column.written.read(texts)), 1.0)
    few = rule([*texts[:2], *(day.strftime("%d.%m.%Y") for day in days[2:]), "32.13.2022"])
    assert few.written.read([texts[0]]) == column.written.read([texts[0]])  # a single 2020-01-01 is a date, too
    assert few.unread == 1
    assert not rule([f"{i % 7}.{i % 5} or so" for i in range(200)]).how.startswith("date")
    encoder, _ = encoded(pd.DataFrame({"x": ["1.234,5", "2,5", "7,25", "3,0"]}))
    alone = encoder.encode(cells_of(pd.DataFrame({"x": ["1.000"]})))
    assert encoder.reading("x", alone[0]).value == "1000"
    dates, _ = encoded(pd.DataFrame({"x": [f"{day:02d}/06/2024" for day in range(1, 29)]}))
    assert dates.reading("x", dates.encode(cells_of(pd.DataFrame({"x": ["03/04/2024"]})))[0]).value == "2024-04-03"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([f"name {i}" for i in range(50)], "is different in every row"),
        ([7] * 50, "is the same in every row"),
        ([None] * 50, "has no values"),
        (list(range(1, 51)), "counts the rows"),
        ([f"{i}@example.org" for i in range(25)] * 2, "holds e-mail or web addresses"),
        ([[1.0, 2.0], [3.0]] * 25, "holds lists"),
        ([[1.0, 2.0]] * 50, "is the same in every row"),
        ([f"AB-{i % 40}" for i in range(50)], "holds codes, hardly any of which repeats"),
    ],
)
def test_columns_that_say_nothing_are_left_out(values, why):
    assert rule(values).startswith(why)


def test_copies_in_other_units_are_left_out_and_codes_unless_they_are_asked_for():
    x = np.random.default_rng(0).normal(170, 9, 300)
    frame = pd.DataFrame({"cm": x, "inches": x / 2.54, "depth": -x, "other": x**3, "flag": x > 170, "code": (x > 170) * 5})
    assert encoded(frame)[0].names == ["cm", "other", "flag"]
    frame = pd.DataFrame({"zip": np.random.default_rng(0).integers(1e4, 1e5, 90), "x": np.arange(90) % 7})
    assert encoded(frame)[0].names == ["x"]
    assert encoded(frame, keep=["zip"])[0].names == ["zip", "x"]


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def test_numbers_without_gaps_are_taken_as_they_are():
    X = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 30.0, 1.0]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = MOSAIC(6).fit(X)
    frame["name"] = [f"row {i}" for i in range(80)]
    frame["empty"] = np.nan
    frame["kind"] = "all the same"
    for given in (frame, pl.from_pandas(frame), arrow(frame)):
        model = MOSAIC(6).fit(given)
        assert not model.encoder_.has_rules
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
        np.testing.assert_array_equal(model.column_scale_, expected.column_scale_)
        np.testing.assert_array_equal(model.effective_count_, expected.effective_count_)
    assert not expected.encoder_.has_rules


@pytest.mark.parametrize("library", ["pandas", "polars", "Arrow"])
def test_new_rows_may_have_new_levels_and_gaps(library):
    with pytest.warns(SelectionWarning):
        model = MOSAIC(10).fit(CUSTOMERS)
    new = CUSTOMERS.drop(columns=["customer_id", "phone", "age_months"]).head(20)[::-1].copy()
    new["city"] = "Reykjavík"
    new["signup"] = None
    new = new[new.columns[::-1]]
    given = {"pandas": lambda: new, "polars": lambda: pl.from_pandas(new), "Arrow": lambda: arrow(new)}[library]()
    for answer in (model.predict, model.score_samples, model.transform):
        with pytest.warns(SelectionWarning, match="cells as none was in fit.*: 20 of 'signup'"):
            answers = answer(given)
        assert len(answers) == 20
        assert np.isfinite(answers).all()
    with pytest.raises(InvalidInputError, match="column 'income' was there in fit and is missing now"):
        model.predict(new.drop(columns="income"))
    with pytest.raises(InvalidInputError, match="X has no column names; fit was given a table with 'age', 'income'"):
        model.predict(np.zeros((3, 7)))
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x", "y"])
    model = MOSAIC(5).fit(numbers)
    numbers.loc[3, "y"] = np.nan
    with pytest.raises(InvalidInputError, match=r"1 NaN. The first is .* in row 3, column 'y'"):
        model.predict(numbers)


def test_columns_that_a_user_would_miss_and_cells_that_are_no_numbers_are_named():
    frame = CUSTOMERS.assign(zip=np.random.default_rng(0).integers(10**4, 10**5, len(CUSTOMERS)))
    with pytest.warns(SelectionWarning, match="Not compared") as caught:
        MOSAIC(6).fit(frame)
    said = [str(each.message) for each in caught]
    assert len(said) == 1
    assert "'zip' holds codes" in said[0]
    assert "'age_months' says the same as 'age'" in said[0]
    assert not any(name in said[0] for name in ("customer_id", "phone", "plan"))
    frame = pd.DataFrame({"x": [str(i % 90) for i in range(300)], "y": np.arange(300.0) % 17})
    frame.loc[[40, 80], "x"] = ["about 12", "lots"]
    model = MOSAIC(6).fit(frame)
    (said,) = model.encoder_.notes
    assert said == "2 cells of 'x' are not numbers and count as missing, the first: 'about 12' in row 40."
    assert said in model.explain()
    frame = pd.DataFrame({"x": [1.0, np.nan, 2.0], "kind": ["a", "b", "c"]})
    with pytest.raises(InvalidInputError, match=r"no column that says anything about a row: 'kind' .*'x' "):
        MOSAIC(1).fit(frame, sample_weight=[1.0, 0.0, 0.0])


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_planted_oddities_are_flagged_and_their_columns_named(seed):
    frame, oddities = planted(seed, [500, 1000, 2000, 3000][seed])
    row = next(row for row in range(len(frame)) if row not in dict(oddities))
    frame.loc[row, "signup"] = "45.13.2020"  # called what it is, and not missing
    detector, model = MOSAICOutlierDetector().fit(frame), MOSAIC(10).fit(frame)
    for odd, columns in (*oddities, (row, {"signup"})):
        told, other = model.explain(odd), detector.explain(odd)
        assert told.status == other.status == "outlier"
        assert other.columns == told.columns
        assert told.columns[0][0] in columns
    assert "signup '45.13.2020', which is not a date" in told.reason
    assert "'45.13.2020', which is not a date" in model.explain_new(frame.iloc[[row]].reset_index(drop=True)).reason[0]
    assert model.is_outlier_.sum() <= len(oddities) + 12


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_share_of_a_column_is_how_many_more_rows_would_be_like_an_outlier_without_it(kernel):
    """log Σ_i k(y, x_i) without column c, less the same with it, as a share of the sum over all columns."""
    frame, oddities = planted(1)
    model = MOSAIC(10, kernel=kernel).fit(frame)
    Z, power = model.encoder_.encode(cells_of(frame)), 2 if kernel == "rbf" else 1
    usual, checked = Z[~model.is_outlier_], 0
    for row, _ in oddities:
        distances = model.gamma_ * np.abs(usual - Z[row]) ** power
        of_column = {name: distances[:, block].sum(axis=1) for name, block in model.encoder_.blocks.items()}
        alike = logsumexp(-distances.sum(axis=1))
        gains = {name: logsumexp(own - distances.sum(axis=1)) - alike for name, own in of_column.items()}
        told = model.explain(row).columns
        assert told[0][0] == max(gains, key=gains.get)
        for name, _, share in told:
            assert share == pytest.approx(gains[name] / sum(gains.values()), rel=1e-9)
            checked += 1
    assert checked >= 6


@pytest.mark.parametrize("kept", [300, 16_384])
@pytest.mark.usefixtures("by_passes")
def test_rare_values_and_texts_are_told_after_passes(kept, tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", kept)
    frame, oddities = planted(3, 3000)
    frame.loc[frame.index % 2 == 0, "note"] = "paid in time and without a word of complaint"
    path = write(frame, tmp_path, "csv")
    with read(path, memory_budget=1e5) as table:
        model = MOSAIC(8).fit(table)
        model.save(tmp_path / "model.mosaic")
        rare = next(row for row, columns in oddities if columns == {"city"})
        (told,) = explain_model(model, [rare], table)
        assert "city 'Atlantis', which is rare" in told.reason
    for one in (model, mosaic.load(tmp_path / "model.mosaic")):
        told = " ".join(one.explain(row).reason for row in one.representative_indices_.tolist())
        assert "is unlike others" not in told
    new = frame.head(400).assign(city="Reykjavík", age=200)
    with read(write(new, tmp_path, "parquet"), memory_budget=1e4) as table:
        assert table.stays
        reasons = [reason for reason in model.explain_new(table).reason if reason is not None]
    assert any("city 'Reykjavík', which is rare" in reason for reason in reasons)


def write(frame, folder, kind):
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        pa.parquet.write_table(arrow(frame), path)
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
    assert model.encoder_.names == expected.encoder_.names
    ran = run(capsys, "select", path, "-k", "8", "--json")
    answer = json.loads(ran.out)
    assert [pick["row"] for pick in answer["picks"]] == expected.representative_indices_.tolist()
    for pick in answer["picks"]:
        assert pick["reason"] == expected.explain(pick["row"]).reason
    for one in answer["outliers"]["lowest"]:
        assert one["reason"] == expected.explain(one["row"]).reason
    assert answer["file"]["feature_names"] == expected.encoder_.names
    assert any(note.startswith("Compared as ") for note in answer["notes"])


def test_rules_of_a_large_file_are_found_from_a_part_of_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.rows.FEW_ROWS", 1000)
    frame = customers(6000, missing=0.1)
    frame.loc[5990, "segment"] = "never seen in the part"
    with read(write(frame, tmp_path, "csv"), memory_budget=1e5) as table:
        assert any("found from 1,000 rows spread over the file" in note for note in learned(table).notes)
        np.testing.assert_allclose(numbers(table), learned(table).encode(cells_of(frame)), atol=1e-12)
        whole = Encoder.of(cells_of(frame))
        assert learned(table).names == whole.names
        assert learned(table).columns[0].spread == pytest.approx(whole.columns[0].spread, rel=0.1)
    frame = frame[["age", "segment"]].assign(x=np.random.default_rng(0).normal(size=6000))
    frame.loc[5990, "x"] = np.nan  # a gap beyond the rows that decide is apart from all values
    with read(write(frame, tmp_path, "parquet"), memory_budget=1e4) as table:
        block = learned(table).blocks["x"]
        assert np.flatnonzero(numbers(table)[:, block][:, 1]).tolist() == [5990]


def test_texts_that_stand_for_numbers_or_dates_do_not_name_rows(tmp_path):
    rng, days = np.random.default_rng(0), pd.date_range("2020-01-01", periods=200).strftime("%d.%m.%Y")
    amounts = [f"${amount:,.2f}" for amount in rng.permutation(np.arange(200) * 173.37 + 5)]
    frame = pd.DataFrame({"amount": amounts, "day": rng.permutation(days), "kind": rng.choice(["a", "b"], 200)})
    with read(write(frame, tmp_path, "csv")) as table:
        assert (table.id_name, learned(table).names) == (None, ["amount", "day", "kind"])


def repeated(frame, weights):
    return frame.loc[np.repeat(frame.index, weights)].reset_index(drop=True)


def visits_and_ages(n=150):
    """Numbers, skewed ones, categories, dates with a cycle, written numbers, and gaps; no column of names."""
    frame = visits(n)
    frame["spent"] = np.exp(np.random.default_rng(1).normal(3, 1.5, n)).round(2)
    frame["paid"] = [f"${amount:,.2f}" for amount in frame["spent"]]
    frame.loc[::7, "spent"] = np.nan
    return frame


def test_a_weight_of_two_is_the_same_as_the_row_twice_and_rows_of_weight_zero_decide_nothing():
    weights = np.random.default_rng(0).integers(1, 4, 150)
    frame = visits_and_ages()
    once, often = (Encoder.of(cells_of(frame), weights=weights.astype(float)), Encoder.of(cells_of(repeated(frame, weights))))
    assert once.names == often.names
    np.testing.assert_allclose(once.encode(cells_of(frame)), often.encode(cells_of(frame)), atol=1e-9)
    plain = Encoder.of(cells_of(frame))
    assert np.abs(plain.encode(cells_of(frame)) - once.encode(cells_of(frame))).max() > 0.01
    odd = frame.copy()
    odd.loc[100:, "spent"] = 1e6
    odd.loc[100:, "browser"] = "lynx"
    told, expected = Encoder.of(cells_of(odd), weights=1.0 * (np.arange(150) < 100)), Encoder.of(cells_of(frame[:100]))
    np.testing.assert_array_equal(told.encode(cells_of(frame[:100])), expected.encode(cells_of(frame[:100])))


def test_fit_gives_the_same_picks_for_weights_and_for_repetitions(tmp_path):
    weights = np.random.default_rng(0).integers(1, 4, 150)
    frame = visits_and_ages()
    often = MOSAIC(8).fit(repeated(frame, weights))
    expected = np.repeat(np.arange(150), weights)[often.representative_indices_]
    np.testing.assert_array_equal(MOSAIC(8).fit(frame, sample_weight=weights).representative_indices_, expected)
    frame.assign(count=weights).to_csv(tmp_path / "visits.csv", index=False)
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


@pytest.mark.parametrize(
    ("draw", "apart"),
    [
        (lambda rng: rng.normal(size=1000), []),
        (lambda rng: rng.lognormal(3, 1.2, 1000).round(1), []),
        (lambda rng: rng.poisson(0.05, 1000), []),
        (lambda rng: rng.poisson(5, 1000), []),
        (lambda rng: rng.normal(15, 6, 1000).round(1), []),
        (lambda rng: 1 + rng.pareto(1, 1000), []),
        (lambda rng: np.clip(rng.normal(45, 15, 1000), 18, 90).round(), [-1.0, 230.0]),
        (lambda rng: rng.lognormal(10.3, 0.5, 1000).round(-2), [0.0, 9e7]),
    ],
    ids=["normal", "lognormal", "rare counts", "counts", "temperatures", "Pareto", "ages", "incomes"],
)
def test_ends_of_ordinary_columns_do_not_stand_apart_and_impossible_values_do(draw, apart):
    for seed in range(10):
        x = np.asarray(draw(np.random.default_rng(seed)), float)
        low, high = possible_range(x)
        assert low < x.min() < x.max() < high
        for value in apart:
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


def test_impossible_values_of_new_rows_are_outliers_though_fit_had_none():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": np.clip(rng.normal(45, 15, 800), 18, 90).round(), "income": rng.lognormal(10.3, 0.5, 800).round(-2)}
    )
    frame["city"] = rng.choice(["Rome", "Oslo", "Bern"], 800)
    model = MOSAIC(20).fit(frame.iloc[:700])
    new = frame.iloc[700:].reset_index(drop=True)
    before = model.explain_new(new).is_outlier
    new.loc[0, "income"], new.loc[1, "age"], new.loc[2, "age"] = 0.0, -1.0, 400.0
    told = model.explain_new(new)
    assert told.is_outlier[:3].all()
    assert before[3:].sum() == told.is_outlier[3:].sum() <= 2
    assert [told.reason[row].split(", usual")[0] for row in range(3)] == ["income 0", "age -1", "age 400"]
