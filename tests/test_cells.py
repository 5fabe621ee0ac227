"""Cells: each number is read by its own form; strange ones are told, in a fit and in new rows; reasons quote them."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import mosaic
from mixed_tables import ERRORS, orders, spoiled
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, SelectionWarning
from mosaic.rows import read

N = 800


def shop(seed=0, n=N):
    """Ages, prices written as text, and cities."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.normal(45, 8, n).clip(20, 70).round()})
    frame["price"] = [f"{price:.2f}" for price in np.exp(rng.normal(4, 0.4, n)).clip(15, 240)]
    frame["city"] = rng.choice(["Rome", "Oslo", "Bern"], n)
    return frame


def written(frame, pattern):
    return [pattern.format(float(price)) for price in frame["price"]]


@pytest.mark.parametrize(
    ("pattern", "cell", "said"),
    [
        ("{:.2f}", "55,00", "price '55,00', which has a decimal comma"),
        ("${:,.2f}", "1.055,00 €", "price '1.055,00 €', which is in €"),
        ("{:.1f}%", "950%", "price 950%, usual "),
        ("€{:.2f}", "€-912.00", "price €-912.00, usual €"),
        ("{:.0f} %", "60", "price '60', which is not in %"),
    ],
)
def test_a_cell_that_is_written_unlike_the_others_is_found_and_moves_none_of_them(pattern, cell, said):
    frame = shop().assign(price=lambda frame: written(frame, pattern))
    expected = MOSAICOutlierDetector().fit(frame).encoder_.columns[1]
    frame.loc[5, "price"] = cell
    detector = MOSAICOutlierDetector().fit(frame)
    assert detector.encoder_.columns[1].usual == pytest.approx(expected.usual, rel=0.02)
    assert detector.is_outlier_[5]
    assert said in detector.explain(5).reason
    assert detector.is_outlier_.sum() <= 3


def test_cells_of_another_form_are_noted_with_their_count_and_are_ordinary_where_there_are_many():
    frame = shop()
    frame.loc[10:49, "price"] = [price.replace(".", ",") for price in frame.loc[10:49, "price"]]
    model = MOSAIC(5).fit(frame)
    said = f"40 cells of 'price' are written unlike the others, the first: {frame.loc[10, 'price']!r} in row 10."
    assert model.encoder_.notes == (said,)
    assert said in model.explain()
    assert not model.is_outlier_[10:50].any()
    plain = MOSAIC(5).fit(shop())
    np.testing.assert_array_equal(model.representative_indices_, plain.representative_indices_)


@pytest.mark.parametrize(("column", "cell", "said"), [("price", "€{}", "is in €"), ("age", "about {}", "is not a number")])
def test_up_to_a_hundredth_of_cells_of_another_currency_or_without_a_number_are_findings(column, cell, said):
    frame = shop().astype({"age": str}).assign(price=lambda frame: written(frame, "${:.2f}"))
    rows = [40, 280, 333, 700]
    frame.loc[rows, column] = [cell.format(value.strip("$")) for value in frame.loc[rows, column]]
    detector = MOSAICOutlierDetector().fit(frame)
    assert any(note.startswith(f"4 cells of {column!r} are ") for note in detector.encoder_.notes)
    assert detector.is_outlier_[rows].all()
    assert all(said in detector.explain(row).reason for row in rows)


def test_texts_that_may_be_read_either_way_are_read_as_most_of_their_column():
    for others, number in ((["7,25", "2,5", "3,75"], "1234"), (["7.25", "2.5", "3.75"], "1.234")):
        frame = shop().assign(price=lambda _, others=others: others * (N // 3) + ["9"] * (N % 3))
        model = MOSAIC(3).fit(frame)
        column, cells = model.encoder_.columns[1], pd.DataFrame({"price": ["1.234", others[0]]})
        assert f"{column.written.read(cells['price'].tolist())[0]:g}" == number


def test_a_single_whole_number_does_not_make_thousands_of_fractions():
    frame = shop().assign(price=[f"{number:.3f}" for number in np.random.default_rng(1).uniform(2, 9, N)])
    frame.loc[5, "price"] = "4"
    _, high = MOSAIC(3).fit(frame).encoder_.columns[1].usual
    assert high < 10


@pytest.mark.parametrize("library", ["pandas", "polars", "parquet", "csv"])
def test_strange_cells_of_new_rows_are_judged_as_in_a_fit_with_reasons_and_a_warning_with_their_count(library, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "y": rng.normal(size=N), "kind": rng.choice(["a", "b"], N)})
    model, new = MOSAIC(10).fit(frame), frame.head(6).copy()
    new.loc[0, "x"], new.loc[1, "y"], new.loc[2, "x"] = np.nan, np.inf, np.nan
    if library == "csv":
        new["y"] = new["y"].astype(object)
        new.loc[3, "y"] = "twelve"
        new.to_csv(tmp_path / "new.csv", index=False)
    elif library == "parquet":
        new.to_parquet(tmp_path / "new.parquet")
    given = new if library == "pandas" else tmp_path / f"new.{library}"
    if library == "polars":
        given = pl.from_pandas(new)
    words = 2 if library == "csv" else 1
    with pytest.warns(SelectionWarning, match=rf"missing, infinite, no numbers .*: 2 of 'x', {words} of 'y'"):
        told = model.explain_new(given)
    assert told.is_outlier[:3].all()
    assert told.reason[0].startswith("x missing")
    assert told.reason[1].startswith(("y is not a finite number", "y 'inf', which is not a number"))
    assert library != "csv" or told.reason[3].startswith("y 'twelve', which is not a number")
    assert not told.is_outlier[4:].any()


def test_rows_in_passes_warn_of_strange_cells_once_a_call(tmp_path):
    frame = shop(n=3000)
    model = MOSAIC(5).fit(frame)
    frame.loc[7, "price"], frame.loc[2999, "age"] = "unknown", np.nan
    frame.to_parquet(tmp_path / "new.parquet")
    with read(tmp_path / "new.parquet", memory_budget=1e4) as rows:
        assert rows.stays
        with pytest.warns(SelectionWarning, match="1 of 'age', 1 of 'price'") as caught:
            told = model.explain_new(rows)
    assert len(caught) == 1
    assert told.is_outlier[[7, 2999]].all()
    assert told.reason[7].startswith("price 'unknown', which is not a number")


def test_infinite_numbers_are_missing_and_noted_in_frames_of_numbers_as_in_mixed_ones():
    rng = np.random.default_rng(1)
    numbers = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    for frame in (numbers, numbers.assign(kind=rng.choice(["u", "v"], N))):
        frame.loc[3, "b"] = -np.inf
        detector = MOSAICOutlierDetector().fit(frame)
        assert detector.encoder_.notes == ("1 cell of 'b' is infinite and counts as missing: row 3.",)
        assert detector.is_outlier_[3]
        assert detector.explain(3).reason.startswith("an outlier: b is not a finite number")
    with pytest.raises(InvalidInputError, match="1 inf"):
        MOSAIC(3).fit(frame[["a", "b", "c"]].to_numpy())


def test_likely_misspellings_are_named_with_what_they_mean_unless_rare_values_are_usual():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.random(3000), "country": rng.choice(["Germany", "France", "Norway"], 3000)})
    typos = ["Germnay", "Gemany", "germany", "Germanyy", "Frnace", "Frence", "Norwy", "Norwai", "Norrway", "Nroway"]
    rows = rng.choice(3000, 50, replace=False)
    frame.loc[rows, "country"] = typos * 5
    detector = MOSAICOutlierDetector().fit(frame)
    assert detector.is_outlier_[rows].all()
    assert detector.is_outlier_.sum() == 50
    assert "country 'Germnay', which is rare and likely means 'Germany'" in detector.explain(int(rows[0])).reason
    said = f"50 cells of 'country' are likely misspelt, the first: {frame.loc[rows.min(), 'country']!r} in row {rows.min()}."
    assert detector.encoder_.notes == (said,)
    new = pd.DataFrame({"x": [0.0, 0.0], "country": ["Nowray", "Norway"]})
    assert detector.explain_new(new).reason[0].startswith("country 'Nowray', which is rare and likely means 'Norway'")
    names = ["Maria", "Daniel", "Martin", "Peter", "Julia"]
    others = ["Marie", "Daniela", "Anna", "Lena", "Otto", "Karl", "Greta", "Emil", "Paul", "Nina", "Ida", "Hans"]
    shares = [0.19] * 5 + [0.05 / 12] * 12
    frame = frame.assign(country=rng.choice(names + others, 3000, p=shares))
    assert not MOSAICOutlierDetector().fit(frame).is_outlier_.any()


def test_numbers_that_rounding_makes_of_zero_are_zero():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.lognormal(10.3, 0.5, N).round(-2), "city": rng.choice(["Rome", "Oslo"], N)})
    frame.loc[4, "income"] = 0.0
    assert "income 0, usual" in MOSAICOutlierDetector().fit(frame).explain(4).reason


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_twelve_of_fourteen_kinds_of_errors_in_orders_are_found_each_for_its_reason_with_few_false_alarms(seed):
    frame, wrong = spoiled(orders(3000, seed), seed)
    detector = MOSAICOutlierDetector().fit(frame)
    for kind, row, column in wrong:
        if kind in ("another country's city", "retired at 19"):  # two cells that contradict each other
            continue
        assert detector.is_outlier_[row], kind
        assert detector.explain(row).columns[0][0] == column, kind
    assert len(ERRORS) == 14
    assert np.delete(detector.is_outlier_, [row for _, row, _ in wrong]).sum() <= 8


def test_reasons_of_ordinary_rows_at_the_ends_are_their_far_values_and_not_chance():
    """Heavy tails of prices and quantities: what is told first is the column that is farthest out."""
    checked = 0
    for seed in range(3):
        rng = np.random.default_rng(50 + seed)
        frame = orders(3000, seed)
        frame["quantity"] = 1 + rng.pareto(1.5, 3000).astype(int)
        price = frame["unit_price"].astype(float) * np.exp(0.3 * rng.standard_t(3, 3000))
        frame["unit_price"] = [f"{one:.2f}" for one in price]
        frame["total"] = [f"€{one:,.2f}" for one in price * frame["quantity"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)  # of a group that is kept
            detector = MOSAICOutlierDetector().fit(frame)
        for row in np.flatnonzero(detector.is_outlier_).tolist():
            told = [name for name, _, _ in detector.explain(row).columns]
            assert set(told) & {"quantity", "unit_price", "total"}, detector.explain(row).reason
            checked += 1
    assert checked >= 50


def test_a_pick_is_told_by_its_cells_and_not_by_the_names_of_others(tmp_path):
    frame = orders(1000, 0)
    pyarrow.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "orders.parquet")
    for given in (frame, tmp_path / "orders.parquet"):
        model = MOSAIC(6).fit(given)
        for row in model.representative_indices_.tolist():
            told = model.explain(row)
            assert "O00" not in told.reason.partition(": ")[2]
            assert told.columns
            assert all(name in told.reason and value in told.reason for name, value, _ in told.columns)
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 600)
    three = pd.DataFrame({"item": np.array(["Phone", "Laptop", "Cable"])[kind], "price": np.array([650, 1200, 25])[kind]})
    three["price"] = three["price"] + rng.normal(0, 3, 600).round(2)
    model = MOSAIC(3).fit(three)
    for row in model.representative_indices_.tolist():
        assert f"item {three.loc[row, 'item']!r}" in model.explain(row).reason
        size = {25: "low", 650: "medium", 1200: "high"}[round(three.loc[row, "price"] / 25) * 25]
        assert f"{size} price (about " in model.explain(row).reason


def as_german(number, digits=2):
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


UNITS = {
    "zł": lambda price: f"{as_german(price)} zł",
    "R$": lambda price: f"R$ {as_german(price)}",
    "US$": lambda price: f"US${price:,.2f}",
    "Rs": lambda price: f"Rs. {price:,.2f}",
    "kr": lambda price: f"{price:.2f} kr.",
    "kg": lambda price: f"{price:.2f} kg",
    "GB": lambda price: f"{price:.2f}GB",
    "°C": lambda price: f"{price:.2f} °C",
    "km/h": lambda price: f"{price:.2f} km/h",
    "m²": lambda price: f"{price:.2f} m²",
}


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_with_a_unit_are_numbers_and_one_of_another_unit_is_found(unit):
    frame = shop()
    prices = frame["price"].astype(float)
    expected = MOSAICOutlierDetector().fit(frame.assign(price=prices))
    frame["price"] = prices.map(UNITS[unit])
    detector = MOSAICOutlierDetector().fit(frame)
    np.testing.assert_array_equal(detector.score_samples(frame), expected.score_samples(frame.assign(price=prices)))
    assert detector.encoder_.columns[1].written.unit == unit
    assert detector.encoder_.notes == ()
    for cell, said in (("55.00 lb", "which is in lb"), ("£55.00", "which is in £"), ("$55k", "which is in $k")):
        changed = frame.copy()
        changed.loc[5, "price"] = cell
        detector = MOSAICOutlierDetector().fit(changed)
        assert detector.is_outlier_.sum() == 1
        assert f"price {cell!r}, {said}" in detector.explain(5).reason


def test_prices_that_all_differ_are_compared_and_do_not_name_the_rows():
    frame = pd.DataFrame(
        {"price": [f"{as_german(37.13 * i)} zł" for i in range(1, 300)], "city": ["Rome", "Oslo", "Bern"] * 99 + ["Rome"] * 2}
    )
    model = MOSAIC(3).fit(frame)
    assert model.encoder_.names == ["price", "city"]
    assert model.row_names_ is None


def test_the_words_after_numbers_are_units_only_where_they_are_the_same():
    streets = pd.DataFrame({"x": np.arange(300.0) ** 0.9, "house": [f"{1 + i % 40}{'abc'[i % 3]}" for i in range(300)]})
    kinds = {column.name: column.how for column in MOSAIC(3).fit(streets).encoder_.columns}
    assert kinds == {"x": "number", "house": "category"}


@pytest.mark.parametrize("odd", [None, "12.5", "7,25"])
def test_thousands_of_whole_numbers_are_told_from_fractions_by_the_numbers_below_a_thousand(odd, tmp_path):
    rng = np.random.default_rng(0)
    sales, prices = np.exp(rng.normal(7, 1.2, N)).round(), rng.lognormal(4, 0.4, N)
    frame = pd.DataFrame({"sales": [as_german(sale, 0) for sale in sales], "price": [as_german(price) for price in prices]})
    low, high = np.quantile(sales, [0.05, 0.95], method="nearest")
    if odd is not None:
        frame.loc[3, "sales"] = odd
    frame.to_csv(tmp_path / "t.csv", sep=";", index=False)
    frame.to_csv(tmp_path / "commas.csv", index=False)
    english = frame.assign(sales=frame["sales"].str.translate(str.maketrans(",.", ".,")))
    english.to_csv(tmp_path / "english.csv", sep=";", index=False)
    for X in (frame, *(tmp_path / name for name in ("t.csv", "commas.csv", "english.csv"))):
        detector = MOSAICOutlierDetector().fit(X)
        assert detector.encoder_.columns[0].usual == pytest.approx((low, high), rel=0.01)
    measured = pd.DataFrame(
        {"x": rng.normal(size=N), "length": [f"{length:.3f}".rstrip("0").rstrip(".") for length in 10 * rng.random(N)]}
    )
    measured.to_csv(tmp_path / "measured.csv", index=False)
    assert MOSAIC(3).fit(measured).encoder_.columns[1].usual[1] < 10
    assert read(tmp_path / "measured.csv").cells([], ["length"]).column(0).type == pa.float64()


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("55.00-", -55.0),
        ("1 055.00", 1055.0),
        ("12'345.5", 12345.5),
        ("1,05,500", 105500.0),
        ("5 5", None),
        ("2024 03 12", None),
        ("1234 5678", None),
        ("55,-", None),
        ("1.2.3", None),
    ],
)
def test_blanks_stand_before_thousands_and_a_sign_may_come_last(cell, number):
    frame = shop()
    frame.loc[5, "price"] = cell
    detector = MOSAICOutlierDetector().fit(frame)
    read_as = detector.encoder_.columns[1].written.read([cell])[0]
    assert read_as == number if number is not None else np.isnan(read_as)
    assert detector.is_outlier_[5]


def test_lists_bytes_and_other_structures_do_not_name_the_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=100), "kind": rng.choice(["a", "b"], 100)})
    for cells in ([object() for _ in range(100)], [{i} for i in range(100)], [[i, "a"] for i in range(100)]):
        with pytest.warns(SelectionWarning, match="'odd' holds lists or structures"):
            model = MOSAIC(3).fit(frame.assign(odd=cells))
        assert model.row_names_ is None


def with_vectors(n=120):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"id": [f"C{i}" for i in range(n)], "x": rng.normal(size=n), "kind": rng.choice(["a", "b"], n)})
    vectors = rng.normal(size=(n, 5))
    vectors[7] = 9.0
    return frame.assign(vector=list(vectors))


def as_polars(frame, folder, kind):
    vectors = pl.Series(frame["vector"].to_list(), dtype=kind)
    return pl.from_pandas(frame.drop(columns="vector")).with_columns(vector=vectors)


def in_parquet(frame, folder):
    frame.to_parquet(folder / "v.parquet")
    return folder / "v.parquet"


VECTORS = {
    "lists": lambda frame, folder: frame.assign(vector=frame["vector"].map(list)),
    "tuples": lambda frame, folder: frame.assign(vector=frame["vector"].map(tuple)),
    "polars lists": lambda frame, folder: as_polars(frame, folder, pl.List(pl.Float64)),
    "polars arrays": lambda frame, folder: as_polars(frame, folder, pl.Array(pl.Float64, 5)),
    "parquet": in_parquet,
    "table": lambda frame, folder: pa.Table.from_pandas(frame),
}


@pytest.mark.parametrize("road", VECTORS)
def test_a_column_of_embeddings_is_compared_on_every_road(road, tmp_path):
    frame = with_vectors()
    expected, X = MOSAIC(5).fit(frame), VECTORS[road](frame, tmp_path)
    model = MOSAIC(5).fit(X)
    assert model.encoder_.describe()[0] == "Compared as number: x; category: kind; embedding: vector."
    np.testing.assert_array_equal(model.representative_indices_, expected.representative_indices_)
    np.testing.assert_allclose(model.transform(X), expected.transform(frame), rtol=1e-6)
    assert model.is_outlier_[7]
    assert "vector is unlike others" in model.explain("C7").reason
    model.save(tmp_path / "m.mosaic")
    np.testing.assert_array_equal(mosaic.load(tmp_path / "m.mosaic").predict(X), model.predict(X))
    vectors = np.array(frame["vector"].to_list())
    alone = MOSAIC(5).fit(VECTORS[road](frame[["id", "vector"]].assign(), tmp_path))
    np.testing.assert_array_equal(alone.representative_indices_, MOSAIC(5).fit(vectors).representative_indices_)


def test_embeddings_may_be_missing_have_one_length_and_count_by_weights():
    frame = with_vectors()
    frame.at[3, "vector"] = None
    detector = MOSAICOutlierDetector().fit(frame)
    assert "vector missing" in detector.explain("C3").reason
    for cell in (np.zeros(4), np.array([0.0, 0.0, 0.0, 0.0, np.inf]), "none"):
        wrong = frame.copy()
        wrong["vector"] = [cell] * len(frame) if len(cell) == 4 else [*frame["vector"][:-1], cell]
        with pytest.raises(InvalidInputError, match="column 'vector' must hold lists of 5 finite numbers, as it did in fit"):
            detector.predict(wrong)
    gone = frame.assign(vector=[None] * len(frame))
    assert (detector.predict(gone) == -1).mean() > 0.9
    twice = frame.loc[np.repeat(np.arange(120), 1 + np.arange(120) % 2)]
    weighted = MOSAIC(5).fit(frame, sample_weight=1 + np.arange(120) % 2).encoder_.columns[-1]
    repeated = MOSAIC(5).fit(twice.drop(columns="id")).encoder_.columns[-1]
    assert (weighted.scale, weighted.missing) == pytest.approx((repeated.scale, repeated.missing))
    np.testing.assert_allclose(weighted.centre, repeated.centre)


def test_cells_of_counts_are_told_of_their_principal_components(tmp_path):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(rng.poisson(2.0, (60, 9)).astype(float), obsm={"X_pca": rng.normal(size=(60, 3))})
    with pytest.warns(SelectionWarning, match=r"X holds counts, .* obsm\['X_pca'\] has their principal components"):
        MOSAIC(3).fit(cells)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert any("obsm['X_pca']" in note for note in read(tmp_path / "cells.h5ad").notes)
    for other in (anndata.AnnData(cells.X), anndata.AnnData(np.log1p(cells.X), obsm=dict(cells.obsm))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            MOSAIC(3).fit(other)


def test_reasons_of_new_rows_quote_values_that_no_row_of_the_fit_has(tmp_path):
    model = MOSAIC(5).fit(shop())
    new = shop().head(3).assign(city=["Paris", "Rome", "Beern"])
    in_parquet(new, tmp_path)
    for X in (new, pl.from_pandas(new), tmp_path / "v.parquet"):
        told = model.explain_new(X)
        assert told.is_outlier.tolist() == [True, False, True]
        assert told.reason[0].startswith("city 'Paris', which is rare")
        assert told.reason[2].startswith("city 'Beern', which is rare")


def test_numbers_beyond_those_of_a_computer_are_infinite_and_told_also_where_gaps_are_usual():
    frame = shop()
    frame.loc[::5, "price"] = None
    model = MOSAIC(5).fit(frame)
    new = frame.iloc[1:4].assign(price=["1e400", "55.00", None])
    with pytest.warns(SelectionWarning, match="1 of 'price'"):
        told = model.explain_new(new)
    assert told.is_outlier.tolist() == [True, False, False]
    assert told.reason[0].startswith("price '1e400', which is not a number")
