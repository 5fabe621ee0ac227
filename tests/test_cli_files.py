"""Commands about files: columns, compare and dedup."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_runs import run
from mixed_tables import customers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    customers(300).to_csv("customers.csv", index=False)
    return tmp_path


def answer(capsys, *words):
    ran = run(capsys, *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_columns_says_how_each_is_compared_or_why_it_is_not(folder, capsys):
    found = {row["column"]: row for row in answer(capsys, "columns", "customers.csv")["columns"]}
    assert found["income"]["compared_as"] == "number, by its logarithm"
    assert found["signup"]["compared_as"].startswith("date")
    assert found["phone"] == {
        "column": "phone",
        "compared_as": "not compared",
        "usual_or_why_not": "holds phone numbers or codes",
    }
    assert found["age_months"]["usual_or_why_not"] == "says the same as 'age'"
    assert run(capsys, "columns", "customers.csv", "-o", "columns.csv").code == 0
    assert pd.read_csv("columns.csv")["column"].tolist() == list(found)


def test_columns_of_numbers_are_taken_as_they_are(folder, capsys):
    pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [3.0, 1.0, 2.0]}).to_csv("numbers.csv", index=False)
    assert {row["compared_as"] for row in answer(capsys, "columns", "numbers.csv")["columns"]} == {"number, as it is"}


def test_compare_finds_what_stands_for_more_rows_in_the_other_file(folder, capsys):
    rng = np.random.default_rng(0)
    kind, later = np.repeat([0, 1], [150, 50]), np.repeat([0, 1], [50, 150])
    for name, groups in (("before.csv", kind), ("after.csv", later)):
        X = np.column_stack([10.0 * groups, np.zeros(200)]) + rng.normal(size=(200, 2))
        pd.DataFrame(X, columns=["x", "y"]).to_csv(name, index=False)
    same = answer(capsys, "compare", "before.csv", "before.csv", "-k", "2")
    assert all(pick["share"] == pick["share_in_other"] for pick in same["picks"])
    assert same["mean_similarities"][0] == same["mean_similarities"][1]
    picks = answer(capsys, "compare", "before.csv", "after.csv", "-k", "2")["picks"]
    assert sorted(round(pick["share_in_other"] - pick["share"], 2) for pick in picks) == pytest.approx([-0.5, 0.5], abs=0.02)
    pd.DataFrame({"x": [500.0] * 3, "y": [500.0] * 3}).to_csv("far.csv", index=False)
    assert answer(capsys, "compare", "before.csv", "far.csv", "-k", "2")["outlier_shares"][1] == 1.0


def test_compare_refuses_a_file_with_other_columns(folder, capsys):
    pd.DataFrame({"z": [1.0, 2.0]}).to_csv("other.csv", index=False)
    ran = run(capsys, "compare", "customers.csv", "other.csv")
    assert ran.code in (2, 3)
    assert "age" in ran.err


def test_dedup_names_the_row_that_each_near_copy_repeats(folder, capsys):
    frame = customers(300)
    copies = frame.iloc[[7, 7, 40]].assign(customer_id=["X1", "X2", "X3"])
    pd.concat([frame, copies]).to_csv("all.csv", index=False)
    found = answer(capsys, "dedup", "all.csv")
    repeated = [(row["customer_id"], row["mosaic_copy_of"]) for row in found["copies"]]
    assert repeated == [("X1", "C00007"), ("X2", "C00007"), ("X3", "C00040")]
    assert found["sentence"] == "3 near copies among 303 rows."
    assert answer(capsys, "dedup", "customers.csv")["copies"] == []


def test_dedup_finds_rows_that_differ_a_little(folder, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[150:] = X[:50] + 1e-3 * rng.normal(size=(50, 3))
    pd.DataFrame(X, columns=list("abc")).to_csv("near.csv", index=False)
    found = answer(capsys, "dedup", "near.csv")["copies"]
    assert [row["mosaic_row"] for row in found] == list(range(150, 200))
    assert [row["mosaic_copy_of_row"] for row in found] == list(range(50))
