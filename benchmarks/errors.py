"""Wrong cells: how many of fourteen kinds are found, for the right reason, and how many other rows are flagged.

Two tables, 2000 rows, eight draws, two errors of each kind: customers, and samples of water from five lakes; no rule was chosen
with them. A reason is right if the first column that it names is the wrong one. Beside the detector, which is told nothing, local
outlier factors and an isolation forest get the columns as numbers (dates as days, categories by their frequency, gaps as medians)
and flag as many rows as there are errors.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAICOutlierDetector

N, DRAWS, EACH = 2000, 8, 2


def customers(rng: np.random.Generator) -> pd.DataFrame:
    kind = rng.integers(0, 3, N)
    return pd.DataFrame(
        {
            "customer_id": [f"C{i:05d}" for i in range(N)],
            "age": np.clip(rng.normal(30 + 12 * kind, 8), 18, 95).round(),
            "income": [f"${amount:,.2f}" for amount in np.exp(rng.normal(9.5, 0.15, N) + 0.6 * kind)],
            "height": rng.normal(172, 9, N).round(1),
            "segment": np.array(["basic", "plus", "premium"])[kind],
            "city": rng.choice(["Berlin", "Paris", "Rome", "Vienna"], N, p=[0.4, 0.3, 0.2, 0.1]),
            "joined": (np.datetime64("2019-01-01") + rng.integers(0, 1800, N)).astype(str),
            "discount": [f"{share}%" for share in rng.choice([0, 5, 10, 15, 20], N)],
            "orders": rng.poisson(4 + 3 * kind),
            "note": [
                " ".join(rng.choice(["late", "delivery", "good", "refund", "call", "vip", "box", "again", "today"], 9))
                for _ in range(N)
            ],
        }
    )


def samples(rng: np.random.Generator) -> pd.DataFrame:
    lake = rng.integers(0, 5, N)
    depth = rng.integers(1, 40, N)
    return pd.DataFrame(
        {
            "sample_id": [f"W{i:05d}" for i in range(N)],
            "lake": np.array(["Titicaca", "Ladoga", "Balaton", "Garda", "Vänern"])[lake],
            "taken": (np.datetime64("2021-03-01") + rng.integers(0, 900, N)).astype(str),
            "depth": [f"{metres} m" for metres in depth],
            "ph": rng.normal(7 + 0.3 * lake, 0.2).round(2),
            "oxygen": (11 - 0.15 * depth + rng.normal(0, 0.6, N)).round(2),
            "lead": [f"{content:.2f}".replace(".", ",") for content in rng.lognormal(1, 0.3, N)],
            "cost": [f"€{cost:.2f}" for cost in rng.gamma(20, 4, N)],
            "turbid": [f"{share}%" for share in rng.integers(2, 40, N)],
            "fish": rng.poisson(6, N),
            "method": rng.choice(["probe", "bottle", "pump"], N, p=[0.5, 0.3, 0.2]),
            "crew": rng.choice(["Amundsen", "Bellings", "Cousteau", "Drake"], N),
        }
    )


#: Kinds of errors: the column that is wrong, and what becomes of its cell.
ERRORS: dict[str, tuple[Callable[[np.random.Generator], pd.DataFrame], dict[str, tuple[str, Callable[[Any], Any]]]]] = {
    "customers": (
        customers,
        {
            "age 999": ("age", lambda _: 999),
            "age -1": ("age", lambda _: -1),
            "income in another currency": ("income", lambda cell: cell.replace("$", "€")),
            "income with a decimal comma": ("income", lambda cell: cell.replace(",", "").replace(".", ",")),
            "income as a word": ("income", lambda _: "unknown"),
            "income times a thousand": ("income", lambda cell: f"${1000 * float(cell[1:].replace(',', '')):,.2f}"),
            "height in metres": ("height", lambda cell: round(cell / 100, 2)),
            "segment misspelt": ("segment", lambda cell: cell[:2] + cell[3:]),
            "a city that is none": ("city", lambda _: "Atlantis"),
            "city misspelt": ("city", lambda cell: cell[:-2] + cell[-1] + cell[-2]),
            "the year 1900": ("joined", lambda _: "1900-01-01"),
            "no date": ("joined", lambda _: "2024-13-45"),
            "a discount of 950%": ("discount", lambda _: "950%"),
            "keys that were hit at random": ("note", lambda _: "asdkj qwlek zmxnc poiqw lkasd mnzxc qpwoe alskd zmxnb"),
        },
    ),
    "samples": (
        samples,
        {
            "lake misspelt": ("lake", lambda cell: cell[:1] + cell[2] + cell[1] + cell[3:]),
            "a lake that is none": ("lake", lambda _: "Narnia"),
            "a date in the future": ("taken", lambda _: "2221-05-05"),
            "no date": ("taken", lambda _: "yesterday"),
            "depth in another unit": ("depth", lambda cell: cell.replace("m", "ft")),
            "depth below zero": ("depth", lambda _: "-900 m"),
            "ph times ten": ("ph", lambda cell: round(10 * cell, 1)),
            "oxygen -99": ("oxygen", lambda _: -99),
            "lead with a decimal point": ("lead", lambda cell: cell.replace(",", ".")),
            "lead as a word": ("lead", lambda _: "see note"),
            "cost in another currency": ("cost", lambda cell: cell.replace("€", "£")),
            "turbid without its sign": ("turbid", lambda cell: cell.rstrip("%")),
            "fish 4000": ("fish", lambda _: 4000),
            "crew misspelt": ("crew", lambda cell: cell[:-1]),
        },
    ),
}


def spoiled(make: Any, kinds: dict[str, Any], seed: int) -> tuple[pd.DataFrame, dict[int, tuple[str, str]]]:
    rng = np.random.default_rng(seed)
    frame = make(rng).astype(object)
    rows, wrong = rng.choice(N, EACH * len(kinds), replace=False).tolist(), {}
    for kind, (column, change) in kinds.items():
        for _ in range(EACH):
            row = rows.pop()
            frame.loc[row, column] = change(frame.loc[row, column])
            wrong[row] = kind, column
    return frame.infer_objects(), wrong


def as_numbers(frame: pd.DataFrame) -> np.ndarray:
    columns = []
    for _, values in frame.iloc[:, 1:].items():
        numbers = pd.to_numeric(values.astype(str).str.replace(r"[^\d.\-]", "", regex=True), errors="coerce")
        days = pd.to_datetime(values, errors="coerce", format="%Y-%m-%d") if values.dtype == object else pd.Series([pd.NaT])
        if days.notna().mean() > 0.5:
            numbers = days.astype("int64").where(days.notna())
        elif numbers.notna().mean() < 0.5:
            numbers = values.map(values.value_counts(normalize=True))
        columns.append(numbers.fillna(numbers.median()).to_numpy(float))
    return StandardScaler().fit_transform(np.column_stack(columns))


def main() -> None:
    warnings.simplefilter("ignore")
    text = [header("Wrong cells", ("scikit-learn", "pandas")), (__doc__ or "").partition("\n\n")[2]]
    for name, (make, kinds) in ERRORS.items():
        found, right, sums = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0), []
        for seed in range(DRAWS):
            frame, wrong = spoiled(make, kinds, seed)
            detector = MOSAICOutlierDetector().fit(frame)
            flagged = set(np.flatnonzero(detector.is_outlier_).tolist())
            for row in flagged & wrong.keys():
                kind, column = wrong[row]
                found[kind] += 1
                right[kind] += detector.explain(row).columns[0][0] == column
            X, others = as_numbers(frame), []
            for model in (
                LocalOutlierFactor(n_neighbors=20, contamination=len(wrong) / N),
                IsolationForest(contamination=len(wrong) / N, random_state=seed),
            ):
                others.append(len(set(np.flatnonzero(model.fit_predict(X) < 0).tolist()) & wrong.keys()))
            sums.append([len(flagged & wrong.keys()), len(flagged - wrong.keys()), *others])
            print(name, seed, sums[-1], flush=True)
        number = EACH * len(kinds)
        rows = [[kind, f"{found[kind]} of {EACH * DRAWS}", f"{right[kind]}"] for kind in kinds]
        heads = ["errors", "found", "for the right reason"]
        text.append(f"## {name}\n\n{table(heads, rows)}")
        lines = [["", f"found, of {number}", "other rows that are flagged"]]
        columns = np.array(sums).T.tolist()
        lines += [["MOSAIC, in each draw", ", ".join(map(str, columns[0])), ", ".join(map(str, columns[1]))]]
        lines += [
            [f"{tool}, told the number", ", ".join(map(str, one)), ", ".join(str(number - each) for each in one)]
            for tool, one in zip(("local outlier factors", "isolation forest"), columns[2:], strict=True)
        ]
        text.append(table(lines[0], lines[1:]))
        print("\n".join(text[-2:]), flush=True)
    write("errors.md", "\n".join(text))


if __name__ == "__main__":
    main()
