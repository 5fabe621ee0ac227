"""Drift between two months: is there an alarm when nothing has changed, when a kind of customers leaves, when cells are mixed up?

Data: two tables of 1500 customers, made on the spot, three draws; the share of them that give an alarm (p < 0.05) is shown.
Instead: a Kolmogorov-Smirnov or χ² test for each column, and Bonferroni.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas
from _jobs import customers, mean_of_draws, mosaic_json, print_table
from scipy.stats import chi2_contingency, ks_2samp


def by_mosaic(january, february):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "january.csv", Path(folder) / "february.csv"]
        january.to_csv(files[0], index=False)
        february.to_csv(files[1], index=False)
        told = mosaic_json("compare", *files, "-k", 12)
    return told["p_value"]


def by_column(january, february):
    least = 1.0
    for name in january.columns.drop("customer_id"):
        old, new = january[name], february[name]
        if name == "joined":
            old, new = pandas.to_datetime(old).astype("int64"), pandas.to_datetime(new).astype("int64")
        if old.dtype.kind == "i":
            least = min(least, ks_2samp(old, new).pvalue)
        else:
            counts = pandas.DataFrame({"old": old.value_counts(), "new": new.value_counts()}).fillna(0)
            least = min(least, chi2_contingency(counts).pvalue)
    return least * (january.shape[1] - 1)


@mean_of_draws
def figures(seed):
    january, february = customers(1500, 2 * seed), customers(1500, 2 * seed + 1)
    leaves = february[(february["kind"] != "business") | (np.arange(1500) % 3 == 0)]
    mixed = february.assign(income=np.random.default_rng(seed).permutation(february["income"]))
    months = {"nothing changed": february, "a kind leaves": leaves, "cells mixed up": mixed}
    lines = {"MOSAIC, mosaic compare": {}, "a test for each column": {}}
    for what, month in months.items():
        tables = january.drop(columns="kind"), month.drop(columns="kind")
        lines["MOSAIC, mosaic compare"][what] = by_mosaic(*tables) < 0.05
        lines["a test for each column"][what] = by_column(*tables) < 0.05
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
