"""Drift: which of eighteen changes between two months are found, how often like months are said to differ, and what is named.

Two tables, made on the spot, 1500 rows a month: the rule was chosen with orders of a shop; visits to a clinic were looked at
once. Eighteen kinds of changes, three draws each, and of each table fifty pairs of months in which nothing changed. ``mosaic
compare`` is beside a Kolmogorov-Smirnov or χ² test for each column, corrected for their number, dates left out; both say that
months differ at p < 0.01. Named: the column that was changed is among the first two that are named.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, ks_2samp

from mosaic.cli import main as mosaic_command

N, DRAWS, LIKE_PAIRS, LEVEL = 1500, 3, 50, 0.01
NOTES = [
    "paid",
    "late",
    "refund",
    "asked",
    "for",
    "parcel",
    "lost",
    "box",
    "broken",
    "gift",
    "for",
    "friend",
    "call",
    "before",
    "noon",
    "leave",
    "at",
    "door",
    "second",
    "try",
]
ELSEWHERE = ["login", "fails", "token", "expired", "server", "restart", "cache", "stale", "ticket", "merged"]


def orders(seed: int, month: int) -> pd.DataFrame:
    rng = np.random.default_rng([1, seed])
    kind = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    day = np.datetime64("2026-01-01") + 30 * month + rng.integers(0, 30, N)
    return (
        pd.DataFrame(
            {
                "order": 10_000 + 3 * (N * month + np.arange(N)) + rng.integers(0, 3, N),
                "ordered": day.astype(str),
                "amount": np.exp(rng.normal(np.array([3.0, 3.6, 4.0, 4.8])[kind], 0.5)).round(2),
                "weight": rng.normal(np.array([2.0, 4.0, 5.5, 8.0])[kind], 0.7).clip(0.1).round(2),
                "items": 1 + rng.poisson(np.array([1, 2, 2, 5])[kind]),
                "country": rng.choice(["Germany", "France", "Italy", "Spain"], N, p=[0.4, 0.3, 0.2, 0.1]),
                "channel": [
                    rng.choice(["web", "shop", "phone"], p=p)
                    for p in np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]])[kind]
                ],
                "express": rng.random(N) < np.array([0.2, 0.3, 0.4, 0.6])[kind],
                "price": [f"€{price:.2f}" for price in rng.gamma(6, 5, N) + 1],
                "time": [f"{t // 60:02d}:{t % 60:02d}" for t in rng.normal(840, 200, N).clip(0, 1439).astype(int)],
                "note": [" ".join(rng.choice(NOTES, 9)) for _ in range(N)],
                "_kind": kind,
            }
        )
        .drop(columns="time")
        .assign(
            placed=lambda frame: [
                f"{d}T{h:02d}:{m:02d}:00"
                for d, h, m in zip(
                    frame["ordered"], rng.normal(14, 3, N).clip(0, 23).astype(int), rng.integers(0, 60, N), strict=True
                )
            ]
        )
    )


def visits(seed: int, month: int) -> pd.DataFrame:
    rng = np.random.default_rng([2, seed])
    kind = rng.choice(3, N, p=[0.5, 0.35, 0.15])
    day = np.datetime64("2025-06-01") + 30 * month + rng.integers(0, 30, N)
    hour = rng.normal(11, 2.5, N).clip(6, 20).astype(int)
    return pd.DataFrame(
        {
            "visit": 500 + N * month + np.arange(N),
            "pulse": rng.normal(np.array([70, 80, 95])[kind], 8).round(),
            "pressure": rng.normal(np.array([120, 135, 150])[kind], 10).round(),
            "glucose": np.exp(rng.normal(np.array([4.5, 4.7, 5.1])[kind], 0.2)).round(1),
            "stay": rng.poisson(np.array([2, 4, 9])[kind]),
            "ward": [
                rng.choice(["north", "south", "east", "west"], p=p)
                for p in np.array([[0.4, 0.3, 0.2, 0.1], [0.2, 0.4, 0.2, 0.2], [0.1, 0.1, 0.5, 0.3]])[kind]
            ],
            "insurer": rng.choice(["public", "private", "none"], N, p=[0.7, 0.25, 0.05]),
            "smoker": rng.random(N) < np.array([0.2, 0.3, 0.5])[kind],
            "cost": [f"{cost:,.2f} €" for cost in np.exp(rng.normal(6, 0.5, N))],
            "admitted": [f"{d} {h:02d}:{m:02d}" for d, h, m in zip(day, hour, rng.integers(0, 60, N), strict=True)],
            "remark": [" ".join(rng.choice(NOTES, 10)) for _ in range(N)],
            "_kind": kind,
        }
    )


#: Of each table the columns that changes are made in.
TABLES: dict[str, tuple[Callable[[int, int], pd.DataFrame], dict[str, str]]] = {
    "orders": (
        orders,
        {
            "number": "amount",
            "other": "weight",
            "level": "country",
            "group": "channel",
            "truth": "express",
            "money": "price",
            "time": "placed",
            "text": "note",
            "key": "ordered",
        },
    ),
    "visits": (
        visits,
        {
            "number": "glucose",
            "other": "pressure",
            "level": "insurer",
            "group": "ward",
            "truth": "smoker",
            "money": "cost",
            "time": "admitted",
            "text": "remark",
            "key": "visit",
        },
    ),
}


def some(frame: pd.DataFrame, column: str, share: float, of: Callable[[Any], Any], rng: np.random.Generator) -> pd.DataFrame:
    rows = rng.random(len(frame)) < share
    values = frame[column].astype(object).copy()
    values[rows] = [of(value) for value in values[rows]]
    return frame.assign(**{column: values})


def later(moment: str) -> str:
    return str(np.datetime64(moment.replace(" ", "T")) + np.timedelta64(90, "m"))[:16].replace("T", moment[10])


#: Kinds of changes: the column by its role, and what is done.
CHANGES: dict[str, tuple[str, Callable[..., pd.DataFrame]]] = {
    "mean, a quarter of the spread": ("other", lambda f, c, r: f.assign(**{c: (f[c] + 0.25 * f[c].std()).round(2)})),
    "spread, three tenths more": ("other", lambda f, c, r: f.assign(**{c: (f[c].mean() + 1.3 * (f[c] - f[c].mean())).round(2)})),
    "another unit in 5 %": ("number", lambda f, c, r: some(f, c, 0.05, lambda x: 1000 * x, r)),
    "missing in 5 %": ("number", lambda f, c, r: some(f, c, 0.05, lambda x: np.nan, r)),
    "-1 in 3 %": ("number", lambda f, c, r: some(f, c, 0.03, lambda x: -1, r)),
    "rounded to tens": ("number", lambda f, c, r: f.assign(**{c: (f[c] / 10).round() * 10})),
    "one value in 4 %": ("number", lambda f, c, r: some(f, c, 0.04, lambda x: float(f[c].median()), r)),
    "a level more often": ("level", lambda f, c, r: some(f, c, 0.12, lambda x: f[c].value_counts().index[1], r)),
    "a new level, 3 %": ("level", lambda f, c, r: some(f, c, 0.03, lambda x: "elsewhere", r)),
    "a level renamed": ("level", lambda f, c, r: f.assign(**{c: f[c].replace(f[c].value_counts().index[-1], "other")})),
    "small letters in 5 %": ("group", lambda f, c, r: some(f, c, 0.05, str.upper, r)),
    "true more often": ("truth", lambda f, c, r: some(f, c, 0.12, lambda x: True, r)),
    "a decimal comma in 3 %": ("money", lambda f, c, r: some(f, c, 0.03, lambda x: x.replace(",", "").replace(".", ","), r)),
    "another currency in 3 %": ("money", lambda f, c, r: some(f, c, 0.03, lambda x: x.replace("€", "$"), r)),
    "an hour and a half later": ("time", lambda f, c, r: f.assign(**{c: [later(x) for x in f[c]]})),
    "other words in 6 %": ("text", lambda f, c, r: some(f, c, 0.06, lambda x: " ".join(r.choice(ELSEWHERE, 9)), r)),
    "cells mixed up": ("other", lambda f, c, r: f.assign(**{c: r.permutation(f[c])})),
    "a kind of rows leaves": ("", lambda f, c, r: f[(f["_kind"] != f["_kind"].max()) | (np.arange(len(f)) % 3 == 0)]),
}  # fmt: skip


def compared(old: pd.DataFrame, new: pd.DataFrame) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("old.csv", "new.csv")]
        for frame, file in zip((old, new), files, strict=True):
            frame.drop(columns="_kind").to_csv(file, index=False)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            mosaic_command(["compare", *files, "--json"])
        return json.loads(said.getvalue())


def by_column(old: pd.DataFrame, new: pd.DataFrame, aside: tuple[str, ...]) -> float:
    """The least p-value of a test for each column, times their number: numbers by Kolmogorov-Smirnov, others by χ²."""
    found = []
    for name in old.columns.drop(["_kind", *aside]):
        a, b = old[name], new[name]
        numbers = [pd.to_numeric(each, errors="coerce").dropna() for each in (a, b)]
        if all(len(each) > 0.9 * len(whole) for each, whole in zip(numbers, (a, b), strict=True)) and a.dtype != bool:
            found.append(ks_2samp(*numbers).pvalue)
        elif a.nunique() < 50:
            counts = pd.DataFrame({"a": a.value_counts(), "b": b.value_counts()}).fillna(0)
            found.append(chi2_contingency(counts, correction=False).pvalue)
    return min(1.0, min(found) * len(found))


ASIDE = {"orders": ("order", "ordered", "placed"), "visits": ("visit", "admitted")}


def main(names: list[str]) -> None:
    text = [header("Drift", ("scipy", "pandas")), (__doc__ or "").partition("\n\n")[2]]
    for name in names:
        make, columns = TABLES[name]
        rows, sums = [], np.zeros((2, DRAWS), int)
        for kind, (role, change) in CHANGES.items():
            found, by_tests, first = [], [], []
            for draw in range(DRAWS):
                old, new = make(2 * draw, 0), make(2 * draw + 1, 1)
                column = columns.get(role, "")
                changed = change(new, column, np.random.default_rng(draw))
                told = compared(old, changed)
                called = list(dict.fromkeys(part for one in told["changes"] for part in one["column"].split(" with ")))
                found.append(told["p_value"] < LEVEL)
                first.append(column in called[:2])
                by_tests.append(by_column(old, changed, ASIDE[name]) < LEVEL)
            sums += np.array([found, by_tests])
            rows.append([kind, column or "-", f"{sum(found)}", f"{sum(first)}" if column else "-", f"{sum(by_tests)}"])
            print(name, *rows[-1], flush=True)
        pairs = [(make(1000 + 2 * i, 0), make(1001 + 2 * i, 1)) for i in range(LIKE_PAIRS)]
        alarms = sum(compared(*pair)["p_value"] < LEVEL for pair in pairs)
        by_tests_alarms = sum(by_column(*pair, ASIDE[name]) < LEVEL for pair in pairs)
        print(name, "alarms", alarms, by_tests_alarms, sums.tolist(), flush=True)
        rows.append(
            [
                "found of 18, in each draw",
                "",
                *(", ".join(map(str, each)) for each in (sums[0],)),
                "",
                ", ".join(map(str, sums[1])),
            ]
        )
        rows.append([f"false alarms of {LIKE_PAIRS}", "", f"{alarms}", "", f"{by_tests_alarms}"])
        heads = ["change", "in column", "mosaic compare, of 3", "column named", "a test for each column, of 3"]
        text.append(f"## {name}\n\n{table(heads, rows)}")
    if len(names) == len(TABLES):
        write("drift.md", "\n".join(text))


if __name__ == "__main__":
    main(sys.argv[1:] or list(TABLES))
