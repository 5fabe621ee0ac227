"""Tables of mixed columns for tests: three of scikit-learn's sets with some columns as categories and cells missing, three that
are generated, and, where their packages are installed (``make test-all``), penguins and cars as they were measured.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def customers(n=1000, seed=0, missing=0.0):
    """Customers with ids, phones, dates, currency, categories, notes, a constant, and ages in years and in months."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    days = pd.to_timedelta(rng.integers(0, 1800, n), "D")
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in range(n)],
            "phone": [f"+49 30 {number}" for number in rng.integers(10**6, 10**7, n)],
            "age": np.clip(rng.normal(30 + 12 * kind, 8), 18, 95).round(),
            "income": [f"${amount:,.2f}" for amount in np.exp(rng.normal(9.5, 0.1, n) + 0.6 * kind)],
            "segment": np.array(["basic", "plus", "premium"])[kind],
            "city": rng.choice(["Berlin", "Paris", "Rome", "Oslo"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "signup": (pd.Timestamp("2019-01-01") + days).strftime("%d.%m.%Y"),
            "active": rng.random(n) < 0.8,
            "note": [" ".join(rng.choice(["late", "delivery", "good", "refund", "call", "vip"], 4)) for _ in range(n)],
            "plan": 1,
        }
    )
    for name in ("age", "income", "city", "note") if missing else ():
        frame.loc[rng.random(n) < missing, name] = None
    frame["age_months"] = 12 * frame["age"]
    return frame


def planted(seed, n=1000):
    """Customers among whom six rows are odd: the table, and row and column of each."""
    rng = np.random.default_rng(100 + seed)
    frame = customers(n, seed).drop(columns="age_months")
    frame["height"] = rng.normal(172, 9, n).round(1)
    frame["weight"] = (frame["height"] - 100 + rng.normal(0, 8, n)).round(1)
    rows = rng.choice(n, 6, replace=False).tolist()
    frame.loc[rows[0], "age"] = 999
    frame.loc[rows[1], "height"] /= 100
    frame.loc[rows[2], "signup"] = "01.01.1900"
    frame.loc[rows[3], "city"] = "Atlantis"
    block = ["age", "income", "height", "weight"]
    frame.loc[rows[4], block] = None
    frame.loc[rows[5], "income"] = "$9,999,999.00"
    return frame, list(zip(rows, [{"age"}, {"height"}, {"signup"}, {"city"}, set(block), {"income"}], strict=True))


def visits(n=600, seed=3):
    """Visits to a page: moments, durations, a browser with rare levels, an address of the web, true or false."""
    rng = np.random.default_rng(seed)
    begin = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D")
    begin += pd.to_timedelta(rng.normal(10, 2, n), "h")
    return pd.DataFrame(
        {
            "begin": begin,
            "seconds": np.exp(rng.normal(3, 1.2, n)).round(1),
            "browser": rng.choice(["A", "B", "C", "rare 1", "rare 2"], n, p=[0.6, 0.3, 0.09, 0.006, 0.004]),
            "link": [f"https://example.org/{i}" for i in range(n)],
            "bought": rng.random(n) < 0.1,
        }
    )


def machines(n=400, seed=4):
    """Machines: a few numbers, one of them with gaps, and a code that repeats."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "model": np.array(["M-10", "M-20"])[kind],
            "hours": np.where(rng.random(n) < 0.25, np.nan, rng.gamma(2.0, 500.0 + 400 * kind)),
            "temperature": rng.normal(60 + 10 * kind, 3),
            "alarms": rng.poisson(1 + kind),
        }
    )


def real():
    """Penguins of the Palmer islands and cars of the seventies, with missing cells, and the species or origin of each row."""
    from palmerpenguins import load_penguins
    from vega_datasets import local_data

    for frame, target in ((load_penguins(), "species"), (local_data.cars().drop(columns="Name"), "Origin")):
        yield pd.factorize(frame[target])[0], frame.drop(columns=target)


TABLES = {"customers": lambda: customers(missing=0.25), "visits": visits, "machines": machines}
