"""Small tables, each with one kind of column that roads to a fit may read in ways of their own."""

import numpy as np
import pandas as pd

N = 150


def small_tables():
    """Data frames by what is in them."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=N), 3.0 * rng.normal(size=N)
    colours, shop = rng.choice(["red", "green", "blue"], N), rng.choice(["u", "v"], N)
    days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"))
    moments = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3 * 10**7, N), "s")
    there, whole, truth = rng.random(N) > 0.1, rng.integers(0, 50, N), rng.random(N) < 0.3
    words = rng.choice(["pump", "valve", "pipe", "hose", "seal", "cap"], (N, 4))
    columns = {
        "numbers": {"x": x},
        "gaps": {"x": np.where(there, x, np.nan)},
        "whole": {"a": whole, "b": rng.integers(-5, 5, N)},
        "whole with gaps": {"a": pd.array(pd.Series(whole, dtype=object).where(there, None), "Int64")},
        "large whole": {"a": rng.integers(10**12, 10**13, N)},
        "truth": {"t": truth},
        "truth with gaps": {"t": pd.array(pd.Series(truth, dtype=object).where(there, None), "boolean")},
        "category": {"c": colours},
        "category type": {"c": pd.Categorical(colours)},
        "category with gaps": {"c": pd.Series(colours, dtype=object).where(there, None)},
        "marks of missing": {"c": rng.choice(["red", "NA", "-", "blue"], N)},
        "days": {"d": days},
        "days with gaps": {"d": days.where(there)},
        "days as text": {"d": days.dt.strftime("%d.%m.%Y")},
        "moments": {"d": moments},
        "amounts": {"p": [f"{price:,.2f} €" for price in rng.lognormal(6, 1, N)]},
        "percent": {"p": [f"{share:.1f}%" for share in 100 * rng.random(N)]},
        "texts": {"t": [" ".join(four) for four in words]},
        "ids": {"id": [f"C{i}" for i in range(N)], "x": x},
        "whole ids": {"id": np.arange(10_000, 10_000 + N), "x": x},
        "codes": {"zip": [f"{code:05d}" for code in rng.integers(1000, 1020, N)]},
        "constant": {"c": np.ones(N), "x": x},
        "copies": {"x": x, "x2": x, "shop": shop},
        "never": {"x": x, "never": pd.Series([None] * N, dtype=object), "shop": shop},
        "added": {"mosaic_rank": np.arange(N), "x": x, "shop": shop},
        "skewed": {"a": rng.lognormal(0, 2, N), "shop": shop},
        "wide": {f"g{j}": rng.normal(size=N) for j in range(60)},
        "odd names": {'ä,"': x, "c\nd": shop, "b b": whole},
        "tiny": {"a": 1e-12 * rng.lognormal(0, 2, N)},
        "huge": {"a": 1e15 * rng.random(N)},
        "hardly any": {"a": np.where(rng.random(N) < 0.97, np.nan, x)},
        "rare level": {"c": np.where(np.arange(N) == 7, "odd", colours)},
        "levels alone": {"c": colours, "shop": shop},
        "yes and no": {"c": rng.choice(["yes", "no", "Yes"], N)},
        "letters with gaps": {"c": rng.choice(["Y", "N", ""], N)},
        "blanks": {"c": rng.choice([" red", "red ", "blue"], N)},
        "quotation marks": {"c": rng.choice(['say "hi"', "a, b", "c;d", "line\nbreak"], N)},
        "other scripts": {"c": rng.choice(["Ærø", "日本", "🙂", "é"], N)},
        "markup": {"c": rng.choice(["<b>x</b>", "&amp;", "<script>"], N)},
        "order": {"c": pd.Categorical(rng.choice(["low", "mid", "high"], N), ["low", "mid", "high"], ordered=True)},
        "zones": {"d": pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert("Europe/Berlin")},
        "moments as text": {"d": pd.Series(moments).dt.strftime("%Y-%m-%d %H:%M:%S")},
        "American days": {"d": days.dt.strftime("%m/%d/%Y")},
        "old days": {"d": [f"{year}-01-{day:02d}" for year, day in zip(whole + 1500, rng.integers(1, 28, N), strict=True)]},
        "commas": {"p": [f"{price:,.2f}".translate(str.maketrans(",.", ".,")) for price in rng.lognormal(7, 1, N)]},
        "currencies": {"p": [f"{sign}{price:.2f}" for sign, price in zip(rng.choice(["$", "€"], N), 100 * there, strict=True)]},
        "units": {"p": [f"{mass:.1f} kg" for mass in rng.normal(70, 9, N)]},
        "parentheses": {"p": [f"({-money})" if money < 0 else f"{money}" for money in rng.integers(-900, 900, N)]},
        "percent with gaps": {"p": pd.Series([f"{share} %" for share in whole], dtype=object).where(there, None)},
        "counter": {"a": np.arange(N), "shop": shop},
        "years": {"year": rng.integers(1990, 2024, N)},
        "long texts": {
            "t": [" ".join(rng.choice(["late", "good", "bad", "never", "pump", "valve", "cap"], 12)) for _ in range(N)]
        },
        "thousands": {"p": [f"{sales:,.0f}".replace(",", ".") for sales in rng.lognormal(7, 1, N)]},
    }
    return {name: pd.DataFrame(some | {"y": y}) for name, some in columns.items()}


SMALL_TABLES = small_tables()
