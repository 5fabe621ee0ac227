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


CITIES = {
    "Germany": ["Berlin", "Munich", "Hamburg"],
    "France": ["Paris", "Lyon"],
    "Italy": ["Rome", "Milan"],
    "Norway": ["Oslo", "Bergen"],
    "Austria": ["Vienna", "Graz"],
}
ITEMS = {"Phone": (650, 0.4), "Laptop": (1200, 2.2), "Tablet": (420, 0.7), "Cable": (25, 0.1)}
AGES = {"employed": (42, 9), "student": (23, 2.5), "retired": (71, 5), "self-employed": (45, 9)}


def orders(n, seed):
    """Orders: dates, countries and their cities, items, amounts written as text, shares, weights, ratings, jobs and ages."""
    rng = np.random.default_rng(1000 + seed)
    country = rng.choice(list(CITIES), n, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    item = rng.choice(list(ITEMS), n, p=[0.4, 0.25, 0.2, 0.15])
    job = rng.choice(list(AGES), n, p=[0.6, 0.15, 0.15, 0.1])
    quantity = 1 + rng.poisson(0.6, n)
    price, weight = (np.array([ITEMS[one][place] for one in item]) for place in (0, 1))
    price = price * np.exp(rng.normal(0, 0.12, n))
    age, spread = (np.array([AGES[one][place] for one in job]) for place in (0, 1))
    return pd.DataFrame(
        {
            "order_id": [f"O{i:06d}" for i in range(n)],
            "ordered": (np.datetime64("2023-01-01") + rng.integers(0, 700, n)).astype(str),
            "country": country,
            "city": [str(rng.choice(CITIES[one])) for one in country],
            "item": item,
            "quantity": quantity,
            "unit_price": [f"{one:.2f}" for one in price],
            "discount": [f"{one}%" for one in rng.choice([0, 0, 0, 5, 10, 15, 20], n)],
            "total": [f"€{one:,.2f}" for one in price * quantity],
            "weight_kg": (weight * quantity * np.exp(rng.normal(0, 0.1, n))).round(2),
            "rating": rng.choice([1, 2, 3, 4, 5], n, p=[0.03, 0.05, 0.17, 0.4, 0.35]),
            "status": rng.choice(["shipped", "delivered", "returned", "open"], n, p=[0.2, 0.65, 0.1, 0.05]),
            "job": job,
            "age": rng.normal(age, spread).clip(18, 90).round(),
        }
    )


#: Kinds of errors: the column that is wrong, and from the cells of a row those that are put in their place.
ERRORS = {
    "decimal comma": ("unit_price", lambda row: {"unit_price": row["unit_price"].replace(".", ",")}),
    "other currency": ("total", lambda row: {"total": row["total"].replace("€", "$")}),
    "percent": ("discount", lambda _: {"discount": "950%"}),
    "negative": ("total", lambda _: {"total": "€-912.00"}),
    "country misspelt": ("country", lambda row: {"country": row["country"][:2] + row["country"][3:]}),
    "status misspelt": ("status", lambda row: {"status": row["status"][:-2] + row["status"][-1:]}),
    "no date": ("ordered", lambda _: {"ordered": "2024-13-45"}),
    "year 1900": ("ordered", lambda _: {"ordered": "1900-01-01"}),
    "quantity": ("quantity", lambda _: {"quantity": 5000}),
    "grams": ("weight_kg", lambda row: {"weight_kg": 1000 * row["weight_kg"]}),
    "rating": ("rating", lambda _: {"rating": 55}),
    "a word": ("unit_price", lambda _: {"unit_price": "see note"}),
    "another country's city": ("city", lambda row: {"city": "Oslo" if row["country"] != "Norway" else "Rome"}),
    "retired at 19": ("age", lambda _: {"job": "retired", "age": 19.0}),
}


def spoiled(frame, seed, each=2):
    """The table with errors of all kinds, and for each its kind, row and column."""
    frame, rows = frame.copy(), np.random.default_rng(seed).choice(len(frame), each * len(ERRORS), replace=False).tolist()
    wrong = []
    for kind, (column, of_row) in ERRORS.items():
        for _ in range(each):
            row = rows.pop()
            for name, value in of_row(frame.loc[row]).items():
                frame.loc[row, name] = value
            wrong.append((kind, row, column))
    return frame, wrong
