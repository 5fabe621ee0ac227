"""Saved models on the command line, --save, predict, explain and report; and commands about files: columns, compare, dedup."""

import csv
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2_contingency

import mosaic
from cli_runs import run, run_apart, run_on_terminal
from mixed_tables import customers
from mosaic import MOSAIC, datasets
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS
from mosaic.rows.drift import chi2

POINTS = datasets.blobs_with_gross_outliers().X
COLUMNS = [
    "row", "name", "representative_row", "representative", "similarity", "representation_error", "is_outlier",
    "effective_count", "reason",
]  # fmt: skip


@pytest.fixture
def saved(folder, capsys):
    """A folder with a model of points.csv, a detector, and new rows in another order of columns, one of them far away."""
    assert line(capsys, "select points.csv -k 5 --columns x,y --save model.mosaic -o picks.csv").code == 0
    assert line(capsys, "outliers points.csv --columns x,y --save detector.mosaic -o odd.csv").code == 0
    with (folder / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["extra", "y", "x", "id"])
        writer.writerows([i, POINTS[i, 1], POINTS[i, 0], f"n{i}"] for i in range(0, 60, 5))
        writer.writerow([0, 500.0, 0.5, "far"])
    return folder


def line(capsys, words):
    """A command as it is typed."""
    return run(capsys, *words.split())


def read_csv(text):
    return list(csv.DictReader(text.splitlines()))


def test_new_rows_get_their_representative_and_outliers_their_reason(saved, capsys):
    ran = run(capsys, "predict", "model.mosaic", "new.csv")
    assert ran.code == 0
    rows = read_csv(ran.out)
    assert list(rows[0]) == COLUMNS
    model = MOSAIC(5).fit(POINTS)
    new = [*range(0, 60, 5)]
    picks = model.representative_indices_[model.labels_[new]]
    assert [row["representative_row"] for row in rows[:-1]] == [str(pick) for pick in picks]
    assert [row["representative"] for row in rows[:-1]] == [f"p{pick}" for pick in picks]
    assert [row["name"] for row in rows] == [*(f"n{i}" for i in new), "far"]
    similarity = model.transform(POINTS[new])[np.arange(len(new)), model.labels_[new]]
    np.testing.assert_allclose([float(row["similarity"]) for row in rows[:-1]], similarity, rtol=1e-9)
    np.testing.assert_allclose(
        [float(row["effective_count"]) for row in rows[:-1]], model.effective_count_[new], rtol=ROUNDING_OF_COUNTS
    )
    assert [row["is_outlier"] for row in rows] == ["false"] * 12 + ["true"]
    assert [row["reason"] for row in rows[:-1]] == [""] * 12
    far = rows[-1]
    assert far["reason"].startswith("y 500, usual ")
    assert (far["representative"], far["similarity"]) == ("", "")
    found = json.loads(line(capsys, "predict model.mosaic new.csv --json").out)
    assert found["model"] == {"path": "model.mosaic", "estimator": "MOSAIC", "rows": 400, "n_representatives": 5}
    assert found["n_outliers"] == 1
    assert [row["representative"] or "" for row in found["rows"]] == [row["representative"] for row in rows]
    assert list(found["rows"][0]) == COLUMNS


def test_answers_are_those_of_python_and_of_another_process(saved, capsys):
    assert line(capsys, "predict model.mosaic new.csv -o placed.parquet").code == 0
    table = pq.read_table("placed.parquet")
    assert table.column_names == COLUMNS
    assert mosaic.load("model.mosaic").explain_new("points.csv").is_outlier.sum() == 8
    again = read_csv(run_apart("predict", "model.mosaic", "new.csv").stdout)
    assert again == read_csv(run(capsys, "predict", "model.mosaic", "new.csv").out)
    assert table.column("reason").to_pylist()[-1] == again[-1]["reason"]


def test_detector_judges_new_rows_and_a_terminal_shows_them(saved, capsys, monkeypatch):
    rows = read_csv(run(capsys, "predict", "detector.mosaic", "new.csv").out)
    assert [row["is_outlier"] for row in rows] == ["false"] * 12 + ["true"]
    assert {row["representative"] for row in rows} == {""}
    told = line(capsys, "explain detector.mosaic p51 p1").out
    assert "p51 (row 51): an outlier: " in told
    assert "p1 (row 1): belongs: " in told
    ran = run_on_terminal(capsys, monkeypatch, "predict", "model.mosaic", "new.csv")
    for said in ("13 new rows, represented by", "1 outlier.", "row of the model", "y 500, usual"):
        assert said in ran.out


def test_file_in_passes_gets_the_same_answers(saved, capsys):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30_000, 2)) * 3, [[0.5, 500.0]]])
    pq.write_table(pa.table({"y": X[:, 1], "x": X[:, 0], "more": X[:, 0]}), "big.parquet")
    whole = run(capsys, "predict", "model.mosaic", "big.parquet")
    parts = run(capsys, "predict", "model.mosaic", "big.parquet", "--memory-budget", "300KB")
    assert whole.code == parts.code == 0
    assert whole.out == parts.out
    assert read_csv(parts.out)[-1]["reason"].startswith("y 500, usual")


def test_mixed_table_is_read_as_in_the_fit(clients, capsys):
    customers(300, missing=0.1).to_csv("people.csv", index=False)
    new = customers(21, seed=1, missing=0.1).assign(customer_id=[f"N{i}" for i in range(21)])
    new.loc[20, ["age", "city", "income"]] = [999, "Atlantis", "$12.00"]
    new.to_csv("new.csv", index=False)
    assert line(capsys, "select people.csv -k 4 --save people.mosaic").code == 0
    rows = read_csv(run(capsys, "predict", "people.mosaic", "new.csv").out)
    assert rows[-1]["is_outlier"] == "true"
    assert "age 999, usual" in rows[-1]["reason"]
    assert {row["representative"][0] for row in rows if row["representative"]} == {"C"}
    new.drop(columns="city").to_csv("gone.csv", index=False)
    ran = run(capsys, "predict", "people.mosaic", "gone.csv")
    assert ran.code == 3
    assert "gone.csv, column 'city': was there in fit and is missing now" in ran.err


def test_saved_model_is_explained_as_the_fit_was(saved, capsys):
    words = ["p7", "p51", "--row", "191"]
    fresh = run(capsys, "explain", "points.csv", *words, "-k", "5", "--columns", "x,y")
    kept = run(capsys, "explain", "model.mosaic", *words)
    proven = ["Proven: no choice of 5 with this row covers as much.", ""]
    proven.append("Proven: every choice of 5 that covers as much has this row, or an equal one.")
    assert kept.code == 0
    for before, now, more in zip(fresh.out.splitlines(), kept.out.splitlines(), proven, strict=True):
        assert now == f"{before} {more}".strip()  # the certificate is kept as well
    assert run(capsys, "explain", "model.mosaic").out == line(capsys, "explain points.csv -k 5 --columns x,y").out


def test_report_of_a_saved_model_is_that_of_the_fit(saved, capsys):
    fresh, kept = (
        json.loads(line(capsys, f"report {words} --json").out)
        for words in ("points.csv -k 5 --columns x,y -o fresh.html", "model.mosaic -o kept.html")
    )
    for part in ("sentence", "coverage", "picks", "outliers", "certificate", "decisions"):
        assert kept[part] == fresh[part]
    sizes = [(saved / name).stat().st_size for name in ("fresh.html", "kept.html")]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_rows_without_names_are_called_by_number_and_embeddings_are_remembered(folder, capsys):
    model = MOSAIC(5).fit(POINTS)
    model.save("bare.mosaic")
    ran = run(capsys, "explain", "bare.mosaic", "51")
    assert (ran.code, ran.out[:36]) == (0, "Row 51: rejected as an outlier: no o")
    assert line(capsys, "report bare.mosaic -o bare.html").code == 0
    assert line(capsys, "select points.npy -k 5 --save saved.mosaic").code == 0
    picks = [str(model.representative_indices_[label]) if label >= 0 else "" for label in model.labels_]
    table = pa.table({"id": [f"p{i}" for i in range(400)], "vector": [row.tolist() for row in POINTS]})
    pq.write_table(table, "vectors.parquet")
    assert line(capsys, "select vectors.parquet --embedding vector -k 5 --save vectors.mosaic").code == 0
    rows = read_csv(run(capsys, "predict", "vectors.mosaic", "vectors.parquet").out)  # which remembers the column
    assert [row["representative"] for row in rows] == [pick and f"p{pick}" for pick in picks]
    np.save("wide.npy", np.zeros((4, 3)))
    for name in ("bare.mosaic", "saved.mosaic"):
        rows = read_csv(run(capsys, "predict", name, "points.npy").out)
        assert [row["representative_row"] for row in rows] == [row["representative"] for row in rows] == picks
        ran = run(capsys, "predict", name, "wide.npy")
        assert ran.code == 3
        assert "wide.npy: has 3 columns of numbers, the data of fit had 2" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        ("predict cut.mosaic new.csv", 3, "cut.mosaic: is no saved model, or not all of it"),
        ("predict new.csv new.csv", 3, "new.csv: is no saved model. Name the file that --save wrote, which ends in .mosaic."),
        ("explain cut.mosaic p7", 3, "cut.mosaic: is no saved model"),
        ("report cut.mosaic -o a.html", 3, "cut.mosaic: is no saved model"),
        ("predict absent.mosaic new.csv", 3, "there is no such file"),
        ("predict model.mosaic absent.csv", 3, "there is no such file"),
        ("predict model.mosaic", 2, "the following arguments are required: FILE"),
        ("predict model.mosaic new.csv -o new.csv", 4, "it is the input, too"),
        ("predict model.mosaic new.csv -o model.mosaic", 4, "it is the model, too"),
        ("predict model.mosaic new.csv -o picks.csv", 4, "exists already"),
        ("predict model.mosaic new.csv -k 3", 2, "there is no option -k"),
        ("select points.csv -k 3 --save a.zip", 4, "Name a file that ends in .mosaic."),
        ("select points.csv -k 3 --save model.mosaic", 4, "exists already"),
        ("outliers points.csv --save nowhere/a.mosaic", 4, "does not exist"),
        ("explain model.mosaic p7 -k 3", 2, "means nothing for a saved model"),
        ("report model.mosaic --id id", 2, "means nothing for a saved model"),
        ("explain model.mosaic --kernel cosine", 2, "means nothing for a saved model"),
        ("explain model.mosaic p4000", 2, "no row has 'p4000' in column 'id'"),
    ],
)
def test_faults_have_their_exit_code(saved, capsys, words, code, match):
    (saved / "cut.mosaic").write_bytes((saved / "model.mosaic").read_bytes()[:5000])
    ran = run(capsys, *words.split())
    assert (ran.code, match in ran.err) == (code, True), ran.err


@pytest.fixture
def clients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    customers(300).to_csv("customers.csv", index=False)
    return tmp_path


def answer(capsys, *words):
    ran = run(capsys, *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_columns_says_how_each_is_compared_or_why_it_is_not(clients, capsys):
    found = {row["column"]: row for row in answer(capsys, "columns", "customers.csv")["columns"]}
    assert found["income"]["compared_as"] == "number, by its logarithm"
    assert found["signup"]["compared_as"].startswith("date")
    assert [*found["phone"].values()] == ["phone", "not compared", "holds phone numbers or codes"]
    assert found["phone"].keys() == {"column", "compared_as", "usual_or_why_not"}
    assert found["age_months"]["usual_or_why_not"] == "says the same as 'age'"
    assert run(capsys, "columns", "customers.csv", "-o", "columns.csv").code == 0
    assert pd.read_csv("columns.csv")["column"].tolist() == list(found)
    pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [3.0, 1.0, 2.0]}).to_csv("numbers.csv", index=False)
    assert {row["compared_as"] for row in answer(capsys, "columns", "numbers.csv")["columns"]} == {"number, as it is"}
    for name, wide in (("few.npy", 3), ("many.npy", 200)):
        np.save(name, np.random.default_rng(0).normal(size=(20, wide)))
    assert [row["column"] for row in answer(capsys, "columns", "few.npy")["columns"]] == ["x0", "x1", "x2"]
    assert answer(capsys, "columns", "many.npy")["columns"] == []


def test_explain_says_nothing_twice(clients, capsys):
    told = answer(capsys, "explain", "customers.csv", "-k", "5")
    assert told["decisions"][0].startswith("Compared as ")
    assert not {*told["decisions"]} & {*told["notes"]}
    assert any("customer_id" in note for note in told["notes"])


def test_compare_finds_what_stands_for_more_rows_in_the_other_file(clients, capsys):
    rng = np.random.default_rng(0)
    for name, sizes in (("before.csv", [150, 50]), ("after.csv", [50, 150])):
        X = np.column_stack([10.0 * np.repeat([0, 1], sizes), np.zeros(200)]) + rng.normal(size=(200, 2))
        pd.DataFrame(X, columns=["x", "y"]).to_csv(name, index=False)
    same = answer(capsys, "compare", "before.csv", "before.csv", "-k", "2")
    assert same["changes"] == same["moves_on"] == []
    assert all(pick["share"] == pick["share_in_other"] for pick in same["picks"])
    assert same["sentence"].startswith("The other rows differ no more than by chance (p = 1).")
    other = answer(capsys, "compare", "before.csv", "after.csv", "-k", "2")
    assert other["sentence"].startswith("The other rows differ, most in x (p < 0.001).")
    picks = other["picks"]
    assert sorted(round(pick["share_in_other"] - pick["share"], 2) for pick in picks) == pytest.approx([-0.5, 0.5], abs=0.02)
    pd.DataFrame({"x": [500.0] * 3, "y": [500.0] * 3}).to_csv("far.csv", index=False)
    assert answer(capsys, "compare", "before.csv", "far.csv", "-k", "2")["outlier_shares"][1] == 1.0
    ran = run(capsys, "compare", "customers.csv", "far.csv")
    assert ran.code in (2, 3)
    assert "age" in ran.err


def test_dedup_names_the_row_that_each_near_copy_repeats(clients, capsys, rng):
    frame = customers(300)
    copies = frame.iloc[[7, 7, 40]].assign(customer_id=["X1", "X2", "X3"])
    pd.concat([frame, copies]).to_csv("all.csv", index=False)
    found = answer(capsys, "dedup", "all.csv")
    repeated = [(row["customer_id"], row["mosaic_copy_of"]) for row in found["copies"]]
    assert repeated == [("X1", "C00007"), ("X2", "C00007"), ("X3", "C00040")]
    assert found["sentence"] == "3 copies among 303 rows: 3 exact, 0 near."
    assert answer(capsys, "dedup", "customers.csv")["copies"] == []
    X = rng.normal(size=(200, 3))
    X[150:] = X[:50] + 1e-3 * rng.normal(size=(50, 3))
    pd.DataFrame(X, columns=list("abc")).to_csv("near.csv", index=False)
    found = answer(capsys, "dedup", "near.csv")["copies"]
    assert [(row["mosaic_row"], row["mosaic_copy_of_row"]) for row in found] == [(150 + i, i) for i in range(50)]
    assert answer(capsys, "dedup", "near.csv", "--near", "1e-6")["copies"] == []
    assert "--near must be a finite number > 0" in run(capsys, "dedup", "near.csv", "--near", "0").err
    np.save("near.npy", X)
    assert answer(capsys, "dedup", "near.npy")["sentence"] == "50 copies among 200 rows: 0 exact, 50 near."
    np.save("far.npy", X[:150])
    assert answer(capsys, "dedup", "far.npy")["copies"] == []


def test_rows_that_are_near_by_chance_are_no_copies(clients, capsys, rng):
    for d in (1, 2):
        pd.DataFrame(rng.uniform(size=(500, d)), columns=list("xy")[:d]).to_csv("few.csv", index=False)
        assert len(answer(capsys, "dedup", "few.csv")["copies"]) <= 3
    texts = [
        "A B C D E F G H I J",
        "Z Y X W V U T S R Q",
        *(" ".join(rng.choice(["sea", "sun", "sky", "oak"], 12)) for _ in range(40)),
    ]
    pd.DataFrame({"text": texts}).to_csv("texts.csv", index=False)
    found = answer(capsys, "dedup", "texts.csv")["copies"]
    assert not {0, 1} & {row["mosaic_row"] for row in found}


def test_a_saved_detector_certifies_no_picks(clients, capsys):
    assert run(capsys, "outliers", "customers.csv", "--save", "odd.mosaic", "-q", "-o", "odd.csv").code == 0
    ran = run(capsys, "certify", "odd.mosaic", "C00003")
    assert ran.code == 2
    assert "odd.mosaic is a model that chooses no rows. Name the data instead of the model." in ran.err


def test_values_of_few_rows_are_compared_together():
    """The test of many small numbers would find differences where there are none."""
    old, new = np.array([60, 25, 9, 4, 2]), np.array([12, 6, 1, 3, 1])
    expected = (old + new) * new.sum() / (old + new).sum()
    assert (expected < 5).sum() == 3
    together = [[60, 25, 15], [12, 6, 5]]
    assert chi2(old, new)[0] == pytest.approx(chi2_contingency(together, correction=False).pvalue)


SAID = ["the", "caller", "asked", "for", "a", "new", "bill", "and", "was", "helped"]


def month(seed, begin="2026-01-01", n=1200):
    """Calls to a help desk: a counter, moments of a month, minutes, channels, costs and notes."""
    rng = np.random.default_rng(seed)
    moments = np.datetime64(begin) + rng.integers(0, 30, n)
    frame = pd.DataFrame(
        {
            "call": 7000 * (1 + int(begin[5:7])) + np.arange(n),
            "month": begin[:7],
            "begun": [f"{day} {hour:02d}:30" for day, hour in zip(moments, rng.integers(8, 18, n), strict=True)],
            "minutes": rng.lognormal(3, 0.5, n).round(1),
            "waited": rng.lognormal(1, 0.5, n).round(1),
            "channel": rng.choice(["mail", "phone", "chat"], n, p=[0.5, 0.3, 0.2]),
            "cost": [f"€{cost:.2f}" for cost in rng.gamma(3, 10, n)],
            "note": [" ".join(rng.choice(SAID, 9)) for _ in range(n)],
        }
    )
    return frame.assign(waited=(frame["waited"] + 0.1 * frame["minutes"]).round(1))


def changed(frame, rows, column, of):
    cells = frame[column].astype(object).copy()
    cells[rows] = [of(cell) for cell in cells[rows]]
    return frame.assign(**{column: cells})


SOME = np.arange(0, 1200, 20)
CHANGES = {
    "longer": lambda frame: (frame.assign(minutes=1.3 * frame["minutes"]), "minutes", "values", "median 2"),
    "missing": lambda frame: (changed(frame, SOME, "minutes", lambda _: None), "minutes", "missing", "5 %"),
    "unknown": lambda frame: (changed(frame, SOME, "minutes", lambda _: "unknown"), "minutes", "written unlike", "5 %"),
    "in seconds": lambda frame: (changed(frame, SOME, "minutes", lambda x: 60 * x), "minutes", "apart from the others", "4.8"),
    "one value": lambda frame: (changed(frame, SOME, "minutes", lambda _: 20.0), "minutes", "single values", "20 5"),
    "renamed": lambda frame: (frame.replace({"channel": {"chat": "live chat"}}), "channel", "values", "'live chat' 2"),
    "a currency": lambda frame: (changed(frame, SOME, "cost", lambda x: x.replace("€", "$")), "cost", "written unlike", "5 %"),
    "at night": lambda frame: (changed(frame, SOME, "begun", lambda x: x[:11] + "02:30"), "begun", "hour of the day", "2 5 %"),
    "a word": lambda frame: (changed(frame, SOME, "note", lambda x: x + " outage"), "note", "texts with 'outage'", "5 %"),
    "mixed up": lambda frame: (frame.assign(waited=frame["waited"][::-1].array), "minutes with waited", "how they", ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_compare_names_the_column_that_moved_and_sets_aside_what_only_moves_on(kind, folder, capsys):
    month(1).to_csv("january.csv", index=False)
    frame, column, what, after = CHANGES[kind](month(2, "2026-02-01"))
    frame.to_csv("february.csv", index=False)
    told = answer(capsys, "compare", "january.csv", "february.csv", "-k", "8")
    assert told["sentence"].startswith(f"The other rows differ, most in {column} (p < 0.001). call, month, begun only move on.")
    assert told["moves_on"] == ["call", "month", "begun"]
    first = told["changes"][0]
    assert first["column"] == column
    assert first["what"].startswith(what)
    assert after in first["after"]
    assert first["p_value"] < 1e-3
    assert [change["share"] for change in told["changes"]] == sorted((c["share"] for c in told["changes"]), reverse=True)


def test_months_that_differ_in_their_dates_and_counters_alone_do_not_differ(folder, capsys):
    month(1).to_csv("january.csv", index=False)
    month(2, "2026-02-01").to_csv("february.csv", index=False)
    told = answer(capsys, "compare", "january.csv", "february.csv", "-k", "8")
    assert told["sentence"].startswith("The other rows differ no more than by chance (p = ")
    assert told["changes"] == []
    ran = run(capsys, "compare", "january.csv", "february.csv", "-k", "8", "--quiet", "-o", "changes.csv")
    assert ran.code == 0
    assert pd.read_csv("changes.csv").columns.tolist() == ["column", "what", "before", "after", "p_value", "share", "test"]
    for name in ("january", "february"):
        pd.read_csv(f"{name}.csv")[["call"]].to_csv(f"{name}-calls.csv", index=False)
    assert answer(capsys, "compare", "january-calls.csv", "february-calls.csv", "--columns", "call")["p_value"] == 1
    month(2, "2026-02-01").to_parquet("february.parquet")
    by_passes = answer(capsys, "compare", "january.csv", "february.parquet", "-k", "8", "--memory-budget", "100MB")
    assert by_passes["p_value"] == told["p_value"]


def people(n=600):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "name": [f"{a} {b}" for a, b in zip(rng.choice(list("ABCDEFGH"), n), rng.choice(["Kim", "Rossi"], n), strict=True)],
            "street": [f"{rng.choice(['Oak', 'Mill'])} St {rng.integers(1, 99)}" for _ in range(n)],
            "mail": [f"u{number}@x.org" for number in rng.integers(0, 10**6, n)],
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "spent": rng.lognormal(5, 1, n).round(2),
            "orders": rng.poisson(4, n),
            "segment": rng.choice(["basic", "plus"], n),
        }
    )  # fmt: skip


def test_dedup_counts_equal_cells_shows_those_that_differ_and_keeps_the_others(folder, capsys):
    frame = people()
    exact = frame.iloc[[3, 30]].assign(id=[900, 901], name=frame["name"].iloc[[3, 30]].str.upper().array)
    near = frame.iloc[[40]].assign(id=[902], city="Paris")
    pd.concat([frame, exact, near]).to_csv("people.csv", index=False)
    found = answer(capsys, "dedup", "people.csv", "--keep", "clean.csv")
    assert found["sentence"] == "3 copies among 603 rows: 2 exact, 1 near."
    assert [row["mosaic_copy"] for row in found["copies"]] == ["exact", "exact", "near"]
    last = found["copies"][2]
    assert (last["mosaic_row"], last["mosaic_copy_of_row"], last["mosaic_equal_cells"]) == (602, 40, "6 of 7")
    assert last["mosaic_differs"] == f"city: Paris / {frame['city'].iloc[40]}"
    assert pd.read_csv("clean.csv")["id"].tolist() == frame["id"].tolist()
    assert len(answer(capsys, "dedup", "people.csv", "--near", "0.1")["copies"]) == 2
    assert len(answer(capsys, "dedup", "people.csv", "--near", "0.5")["copies"]) == 3


def test_other_customers_with_many_equal_cells_are_no_copies(folder, capsys):
    rng = np.random.default_rng(0)
    levels = {f"c{j}": rng.choice(["yes", "no"], 500, p=[0.9, 0.1]) for j in range(10)}
    pd.DataFrame(levels | {"spent": rng.lognormal(5, 1, 500)}).to_csv("survey.csv", index=False)
    assert answer(capsys, "dedup", "survey.csv")["copies"] == []


def test_texts_that_were_changed_are_copies(folder, capsys):
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in "bcdfglmn" for b in "aeiou" for c in "krstvxz"]
    texts = [" ".join(rng.choice(words, 40)) for _ in range(200)]
    lost = [" ".join(word for word in text.split() if rng.random() > 0.2) for text in texts[:20]]
    longer = [f"{text} {' '.join(rng.choice(words, 12))}" for text in texts[20:40]]
    capitals = [text.upper().replace(" ", ", ") for text in texts[40:60]]
    pd.DataFrame({"text": texts + lost + longer + capitals}).to_csv("texts.csv", index=False)
    found = {(row["mosaic_row"], row["mosaic_copy_of_row"]) for row in answer(capsys, "dedup", "texts.csv")["copies"]}
    assert found == {(200 + i, i) for i in range(60)}
    assert len(answer(capsys, "dedup", "texts.csv", "--near", "0.01")["copies"]) == 20


def test_pictures_that_were_turned_mirrored_or_resized_are_copies(folder, capsys):
    from PIL import Image
    from sklearn.datasets import load_sample_images

    (folder / "album").mkdir()
    whole = Image.fromarray(load_sample_images().images[1])
    parts = [whole.crop((x, y, x + 150, y + 130)) for x in range(0, 480, 160) for y in range(0, 280, 140)]
    for place, part in enumerate(parts):
        part.save(f"album/a{place}.png")
    parts[0].transpose(Image.Transpose.ROTATE_90).save("album/b0.jpg")
    parts[1].transpose(Image.Transpose.FLIP_LEFT_RIGHT).save("album/b1.jpg")
    parts[2].resize((75, 65)).save("album/b2.jpg")
    parts[3].resize((300, 260)).transpose(Image.Transpose.ROTATE_180).save("album/b3.jpg")
    found = answer(capsys, "dedup", "album")["copies"]
    assert [(row["file"], row["mosaic_copy_of"]) for row in found] == [(f"b{i}.jpg", f"a{i}.png") for i in range(4)]
    assert [row["compared_as"] for row in answer(capsys, "columns", "album")["columns"]] == ["picture, by its pixels"]


def test_options_of_dedup_that_would_have_no_effect_are_refused(folder, capsys, rng):
    people().to_csv("people.csv", index=False)
    pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).to_csv("numbers.csv", index=False)
    assert "--near has no effect above 0." in run(capsys, "dedup", "numbers.csv", "--near", "0.5").err
    assert "there is no option --scale" in run(capsys, "dedup", "people.csv", "--scale", "no").err
    assert "--near must be" in run(capsys, "dedup", "people.csv", "--near", "1.5").err
    assert "there is no option --kernel" in run(capsys, "dedup", "people.csv", "--kernel", "cosine").err
