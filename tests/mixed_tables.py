"""Generated tables of mixed columns, with cells missing and with odd rows."""

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
    """Customers among whom six rows are odd: the table, and row and columns of each."""
    rng = np.random.default_rng(100 + seed)
    frame = customers(n, seed).drop(columns="age_months")
    frame["height"] = rng.normal(172, 9, n).round(1)
    frame["weight"] = (frame["height"] - 100 + rng.normal(0, 8, n)).round(1)
    rows, block = rng.choice(n, 6, replace=False).tolist(), ["age", "income", "height", "weight"]
    odd = {"age": 999, "height": frame.loc[rows[1], "height"] / 100, "signup": "01.01.1900", "city": "Atlantis"}
    for row, (name, value) in zip(rows, odd.items(), strict=False):
        frame.loc[row, name] = value
    frame.loc[rows[4], block] = None
    frame.loc[rows[5], "income"] = "$9,999,999.00"
    return frame, list(zip(rows, [*({name} for name in odd), set(block), {"income"}], strict=True))


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


TABLES = {"customers": lambda: customers(missing=0.25), "visits": visits}
