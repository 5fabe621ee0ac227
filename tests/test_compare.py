"""What changed between two tables, near copies, and how columns are compared: in Python as on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import mosaic
from cli_runs import run
from mixed_tables import customers
from mosaic import InvalidInputError, MemoryBudgetError

pyarrow = pytest.importorskip("pyarrow")


def two_clusters(sizes, seed=0):
    noise = np.random.default_rng(seed).normal(size=(sum(sizes), 2))
    return pd.DataFrame(10.0 * np.repeat([[0.0, 0.0], [1.0, 0.0]], sizes, axis=0) + noise, columns=["x", "y"])


def test_compare_counts_the_rows_of_each_representative_in_both_tables():
    before, after = two_clusters([150, 50]), two_clusters([40, 160], seed=1)
    found = mosaic.compare(before, after, n_representatives=2)
    model = found.model
    here, there = model.explain_new(before), model.explain_new(after)
    for row, share, other in zip(found.rows, found.share, found.share_in_other, strict=True):
        assert share == np.mean(here.representative == row)
        assert other == np.mean(there.representative == row)
    assert sorted(model.representative_indices_) == sorted(found.rows)
    assert found.outlier_shares == (here.is_outlier.mean(), there.is_outlier.mean())
    assert found.n_rows == (200, 200)
    assert found.p_value < 0.01
    assert found.changes[0].column == "x"
    assert str(found).startswith("The other rows differ, most in x (p < 0.001). Outliers: ")


def test_compare_puts_the_largest_change_first():
    found = mosaic.compare(two_clusters([150, 50]), two_clusters([40, 160], seed=1), n_representatives=6)
    changes = np.abs(found.share_in_other - found.share)
    assert (np.diff(changes) <= 0).all()
    assert changes[0] > 0


def test_rows_of_one_kind_differ_no_more_than_by_chance():
    """At a level of 1 % hardly any of forty draws is said to differ."""
    differ = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        differ += mosaic.compare(rng.normal(size=(120, 2)), rng.normal(size=(120, 2)), n_representatives=4).p_value < 0.01
    assert differ <= 3


def test_other_rows_may_all_be_outliers():
    far = pd.DataFrame({"x": [500.0] * 3, "y": [500.0] * 3})
    found = mosaic.compare(two_clusters([150, 50]), far, n_representatives=2)
    assert found.outlier_shares[1] == 1.0
    assert (found.share_in_other == 0).all()


def test_compare_takes_a_budget_in_words_whatever_the_rows_are():
    dataset = pytest.importorskip("pyarrow.dataset")
    tables = [pyarrow.Table.from_pandas(two_clusters([40, 40], seed)) for seed in (0, 1)]
    found = mosaic.compare(*map(dataset.dataset, tables), n_representatives=2, memory_budget="500MB")
    assert found.n_rows == (80, 80)


def test_compare_needs_the_columns_of_the_first_table():
    with pytest.raises(InvalidInputError, match=r"^other lacks 'y', by which rows are compared; it has x\. "):
        mosaic.compare(two_clusters([30, 30]), two_clusters([30, 30])[["x"]])
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(InvalidInputError, match=r"^other lacks 'x2', .*; it has x0, x1\. "):
        mosaic.compare(X, X[:, :2])
    with pytest.raises(InvalidInputError, match=r"^other lacks 'x0', 'x1', 'x2', .*; it has x, y\. "):
        mosaic.compare(X, two_clusters([30, 30]))
    with pytest.raises(InvalidInputError, match=r"^other .*has 3 features, but MOSAIC is expecting 2"):
        mosaic.compare(X[:, :2], X)


@pytest.mark.parametrize(
    "bad", [None, 5, mosaic.MOSAIC(3), [1, 2, 3], np.zeros((4, 4, 4)), np.zeros((0, 3)), 1j * np.ones((9, 3))]
)
def test_what_has_no_rows_and_columns_of_numbers_is_refused(bad):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(InvalidInputError, match=r"^other must"):
        mosaic.compare(X, bad)
    with pytest.raises(InvalidInputError, match=r"^X must"):
        mosaic.compare(bad, X)
    with pytest.raises(InvalidInputError, match=r"^X must"):
        mosaic.columns(bad)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"x": [1.0]}, r"is a dict\. Pass a data frame: pandas\.DataFrame\({}\)"),
        (pd.Series([1.0, 2.0]), r"is a single column\. Pass a data frame: {}\.to_frame\(\)"),
        (["one text"], r"is a list of texts\."),
        (two_clusters([3, 3])[:0], r"has no rows\."),
        (two_clusters([3, 3])[:0].assign(city=[]), r"has no rows\."),
    ],
)
def test_what_is_no_table_with_rows_is_refused_by_its_name(bad, said):
    for name, pair in {"X": (bad, two_clusters([30, 30])), "other": (two_clusters([30, 30]), bad)}.items():
        with pytest.raises(InvalidInputError, match=f"^{name} {said.format(name)}"):
            mosaic.compare(*pair)


def test_what_is_no_change_of_one_column_is_told_in_a_pipe_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    signs = np.repeat([-8.0, 8.0], 100)
    for name, sign in (("along.csv", 1), ("across.csv", -1)):
        noise = np.random.default_rng(0).normal(size=(200, 2))
        pd.DataFrame(np.column_stack([signs, sign * signs]) + noise, columns=["x", "y"]).to_csv(name, index=False)
    ran = run(capsys, "compare", "along.csv", "across.csv")
    assert (ran.code, "note: The other rows differ" in ran.err) == (0, True)
    assert "The other rows differ" not in run(capsys, "compare", "along.csv", "across.csv", "--quiet").err


def test_copies_of_rows_that_stay_in_a_collection_are_refused_with_the_remedy():
    frames = pytest.importorskip("dask.dataframe")
    with pytest.raises(InvalidInputError, match=r"Dask .* are not\. Take them there first: X\.compute\(\)"):
        mosaic.dedup(frames.from_pandas(two_clusters([30, 30]), npartitions=2))


def test_a_fault_of_the_other_file_is_told_of_it(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    frame = two_clusters([30, 30])
    frame.to_csv(first, index=False)
    frame.assign(x=1e300).to_csv(second, index=False)
    with pytest.raises(InvalidInputError, match=r"second\.csv: has numbers larger than 1e\+100.* in row 0, column 'x'"):
        mosaic.compare(first, second)


def test_dedup_looks_at_columns_of_vectors():
    vectors = np.random.default_rng(0).normal(size=(60, 4))
    vectors[58], vectors[59] = vectors[1] + 1e-7, vectors[0]
    found = mosaic.dedup(pd.DataFrame({"v": vectors.tolist()}))
    assert (found.rows.tolist(), found.copy_of.tolist()) == ([58, 59], [1, 0])
    assert (found.is_exact.tolist(), found.differs) == ([False, True], ("v", ""))
    tables = pd.DataFrame({"v": [[1.0, 2.0], [9.0, 9.0], [3.0, 4.0], [1.0, 2.0]], "n": [1, 1, 2, 1]})
    assert mosaic.dedup(tables).rows.tolist() == [3]  # the second row has another vector


def test_dedup_finds_copies_of_copies_once_and_names_the_first():
    X = mosaic.datasets.swiss_roll(300)
    found = mosaic.dedup(np.vstack([X, X[7], X[7] + 1e-7, X[40]]))
    assert (found.rows.tolist(), found.copy_of.tolist()) == ([300, 301, 302], [7, 7, 40])
    assert (len(found), str(found)) == (3, "3 copies among 303 rows: 2 exact, 1 near.")
    assert len(mosaic.dedup(X)) == 0
    with pytest.raises(InvalidInputError, match="near must be a finite number > 0"):
        mosaic.dedup(X, near=0)


def test_dedup_refuses_rows_that_are_read_in_passes(tmp_path, capsys):
    np.save(tmp_path / "many.npy", np.random.default_rng(0).normal(size=(200_000, 30)))
    with pytest.raises(MemoryBudgetError, match="Raise memory_budget"):
        mosaic.dedup(str(tmp_path / "many.npy"), memory_budget="40MB")
    pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 8))).to_csv(tmp_path / "many.csv", index=False)
    with pytest.raises(MemoryBudgetError, match=r"this CSV file are not\. Raise memory_budget"):
        mosaic.dedup(str(tmp_path / "many.csv"), memory_budget="1MB")
    ran = run(capsys, "dedup", str(tmp_path / "many.csv"), "--memory-budget", "1MB")
    assert (ran.code, "Raise --memory-budget" in ran.err) == (5, True)


def test_the_file_without_its_copies_may_go_to_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,5\n1,2\n2,9\n")
    for more in ((), ("-o", "copies.csv", "-q")):
        assert run(capsys, "dedup", "x.csv", "--keep", "-", *more).out == "a,b\n1,2\n3,5\n2,9\n"
    assert (tmp_path / "copies.csv").read_text().startswith("a,b,mosaic_row")
    for more in (("-o", "-"), ("--json",)):
        ran = run(capsys, "dedup", "x.csv", "--keep", "-", *more)
        assert (ran.code, "is written to standard output, too" in ran.err + ran.out) == (4, True)


@pytest.mark.parametrize("column", [[7.0] * 4, ["the same text in every row of the table"] * 4])
def test_rows_that_are_all_equal_are_copies_of_the_first(column):
    found = mosaic.dedup(pd.DataFrame({"a": column, "b": ["u"] * 4}))
    assert (found.copy_of.tolist(), found.is_exact.all(), found.equal_cells[0]) == ([0, 0, 0], True, "2 of 2")


def test_whole_numbers_that_are_near_are_no_exact_copies():
    numbers = np.random.default_rng(0).integers(0, 10**9, (300, 3))
    numbers[-1] = numbers[5] + 1
    found = mosaic.dedup(pd.DataFrame(numbers, columns=list("abc")))
    assert (found.copy_of.tolist(), found.is_exact.tolist(), found.equal_cells) == ([5], [False], ())


@pytest.mark.filterwarnings("ignore:Not compared:mosaic.SelectionWarning")
def test_python_says_what_the_commands_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = customers(300)
    pd.concat([frame, frame.iloc[[7]].assign(customer_id="X1")]).to_csv("here.csv", index=False)
    customers(200).to_csv("there.csv", index=False)

    def answer(*words):
        ran = run(capsys, *words, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    assert answer("columns", "here.csv")["columns"] == [column._asdict() for column in mosaic.columns("here.csv")]
    copies = mosaic.dedup("here.csv", near=0.2)
    told = answer("dedup", "here.csv", "--near", "0.2")
    assert told["sentence"] == str(copies) == "1 copy among 301 rows: 1 exact, 0 near."
    assert (
        [(row["mosaic_row"], row["mosaic_copy_of_row"]) for row in told["copies"]]
        == [(300, 7)]
        == [(copies.rows[0], copies.copy_of[0])]
    )
    found = mosaic.compare("here.csv", "there.csv", n_representatives=5)
    told = answer("compare", "here.csv", "there.csv", "-k", "5")
    assert told["sentence"] == str(found)
    assert told["p_value"] == found.p_value
    assert [(pick["row"], pick["share"], pick["share_in_other"]) for pick in told["picks"]] == [
        *zip(found.rows.tolist(), found.share.tolist(), found.share_in_other.tolist(), strict=True)
    ]
