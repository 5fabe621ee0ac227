"""Choosing among labelled rows: within each class, without rows whose label does not fit."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.utils import check_sampling_strategy
from sklearn.datasets import load_digits, load_iris
from sklearn.neighbors import KNeighborsClassifier

from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, MOSAICSampler, SelectionWarning, load, read

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
Y = np.repeat([0, 1, 2], [120, 60, 20])
X = CENTRES[Y] + RNG.normal(size=(200, 2))


def test_rows_whose_label_does_not_fit_are_named_with_the_label_that_would_and_are_not_chosen():
    y = np.array(["a", "b", "c"])[Y]
    y[[3, 130, 190]] = ["b", "c", "a"]
    sampler = MOSAICSampler(20)
    _, few = sampler.fit_resample(X, y)
    assert sampler.suspects_.rows.tolist() == [3, 130, 190]
    assert sampler.suspects_.labels.tolist() == ["b", "c", "a"]
    assert sampler.suspects_.suggested.tolist() == ["a", "b", "c"]
    assert not np.isin(sampler.sample_indices_, [3, 130, 190]).any()
    assert "row 3 has 'b' instead of 'a'" in repr(sampler.suspects_)
    assert dict(zip(*np.unique(few, return_counts=True), strict=True)) == {"a": 12, "b": 6, "c": 2}


def test_a_class_of_suspects_alone_is_not_judged_and_keeps_a_row():
    y = np.zeros(200, int)
    y[[5, 130, 190]] = 1
    sampler = MOSAICSampler(20)
    with pytest.warns(SelectionWarning, match="labels of class 1 were not judged"):
        _, few = sampler.fit_resample(X, y)
    assert len(sampler.suspects_.rows) == 0
    assert (few == 1).sum() == 1


@pytest.mark.parametrize(("strategy", "expected"), [("proportional", [12, 6, 2]), ("equal", [7, 7, 6])])
def test_strategy_divides_the_number_among_the_classes(strategy, expected):
    sampler = MOSAICSampler(20, sampling_strategy=strategy)
    few, labels = sampler.fit_resample(X, Y)
    assert np.bincount(labels).tolist() == expected
    assert sampler.sampling_strategy_ == dict(enumerate(expected))
    assert (few == X[sampler.sample_indices_]).all()
    assert sorted(sampler.representative_indices_) == sorted(sampler.sample_indices_)


@pytest.mark.parametrize("k", [3, 4, 8, 10, 29, 61])
@pytest.mark.parametrize("strategy", ["proportional", "equal"])
def test_the_number_that_is_asked_for_is_the_number_that_is_given_with_a_row_of_each_class(k, strategy):
    rows = np.r_[0:100, 120:130, 180:190]
    _, labels = MOSAICSampler(k, sampling_strategy=strategy).fit_resample(X[rows], Y[rows])
    given = np.bincount(labels)
    assert given.sum() == k
    assert given.min() >= 1
    if strategy == "equal":  # a class has ten rows; the others give what it lacks
        assert given[1:].tolist() == [min(k // 3 + (k % 3 > 1), 10), min(k // 3, 10)]


def test_a_number_below_that_of_the_classes_leaves_some_out_with_a_word():
    with pytest.warns(SelectionWarning, match="No row is chosen of class 2: 2 rows cannot be of all"):
        _, labels = MOSAICSampler(2).fit_resample(X, Y)
    assert labels.tolist() == [0, 1]


UNEVEN = np.repeat(["a", "b", "c"], [120, 60, 20])
OF_IMBALANCED_LEARN = [
    ("majority", UNEVEN),
    ("not minority", UNEVEN),
    ("not majority", UNEVEN),
    ("all", UNEVEN),
    ("auto", UNEVEN),
    ("auto", np.repeat([2, 5, 7], [20, 90, 90])),
    ("majority", np.repeat([2, 5, 7], [20, 90, 90])),
    ({"a": 5, "b": 3}, UNEVEN),
    (lambda y: {label: int((y == label).sum()) // 4 for label in ("a", "b")}, UNEVEN),
    (0.5, np.repeat([0, 1], [150, 50])),
    (0.3, np.repeat([True, False], [45, 155])),
]


@pytest.mark.parametrize(("strategy", "y"), OF_IMBALANCED_LEARN)
def test_strategies_of_imbalanced_learn_mean_what_they_mean_there(strategy, y):
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    expected = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    expected |= check_sampling_strategy(strategy, y, "under-sampling")
    sampler = MOSAICSampler(sampling_strategy=strategy)
    _, few = sampler.fit_resample(CENTRES[codes] + RNG.normal(size=(200, 2)), y)
    assert sampler.sampling_strategy_ == expected
    assert dict(zip(*np.unique(few, return_counts=True), strict=True)) == expected


@pytest.mark.parametrize("strategy", [{0: 0, 1: 0}, lambda y: {0: 0, 1: 0}, True, None])
def test_strategies_that_ask_for_nothing_are_refused(strategy):
    with pytest.raises(InvalidInputError, match=r"sampling_strategy (asks for no row at all|must be a dict)"):
        MOSAICSampler(sampling_strategy=strategy).fit(X, np.repeat([0, 1], [150, 50]))


@pytest.mark.parametrize("strategy", ["minority", 0.0, 1.5, 0.1, {0: -1}, {0: 151}, {9: 1}, lambda y: {9: 1}])
def test_strategies_that_imbalanced_learn_refuses_are_refused(strategy):
    y = np.repeat([0, 1], [150, 50])
    with pytest.raises(ValueError, match=r"class|sampling_strategy"):
        check_sampling_strategy(strategy, y, "under-sampling")
    with pytest.raises(InvalidInputError, match="sampling_strategy"):
        MOSAICSampler(sampling_strategy=strategy).fit(X, y)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=repr)
def test_rows_without_a_label_are_refused_with_their_number(missing):
    y = np.array(["a", "b", "c"], dtype=object)[Y]
    y[[3, 7]] = missing
    with pytest.raises(InvalidInputError, match=r"2 rows have no label\. Leave them out, or name a label for them"):
        MOSAICSampler(9).fit(X, y)


def test_one_warning_names_all_classes_that_are_not_judged():
    y = Y.copy()
    y[[5, 25]], y[[7, 130]] = 3, 4
    with pytest.warns(SelectionWarning, match=r"labels of class 3, 4 were not judged: most of their rows") as told:
        MOSAICSampler(20).fit(X, y)
    assert len(told) == 1


def test_a_rare_class_that_lies_among_others_keeps_all_rows_that_are_asked_for():
    rare = RNG.random(2000) < 0.03
    overlapping = RNG.normal(size=(2000, 4)) + rare[:, None]
    sampler = MOSAICSampler(sampling_strategy={False: 100, True: int(rare.sum())})
    with pytest.warns(SelectionWarning, match="labels of class True were not judged: most of its rows have more neighbours of"):
        _, labels = sampler.fit_resample(overlapping, rare)
    assert (labels.sum(), len(labels)) == (rare.sum(), rare.sum() + 100)
    assert sampler.suspects_.not_judged.tolist() == [True]
    assert not rare[sampler.suspects_.rows].any()


def test_a_rare_label_is_judged_by_the_share_of_its_class():
    """Outvoted by its neighbours, a row of the rarest class stays if its label is more frequent among them than elsewhere."""
    rows = X.copy()
    mixed = [*range(7), *range(180, 184)]  # seven rows of the largest class, and four of the rarest
    rows[mixed] = 20.0 + RNG.normal(size=(11, 2))
    rows[184] = CENTRES[0]
    assert MOSAICSampler(20, suspects="keep").fit(rows, Y).suspects_.rows.tolist() == [184]


def test_suspects_are_dropped_with_a_word_or_kept():
    y = Y.copy()
    wrong = np.argsort(np.linalg.norm(X[:120], axis=1))[:120:30]
    y[wrong] = 2
    asked = {0: 50, 2: 23}
    dropping = MOSAICSampler(sampling_strategy=asked)
    with pytest.warns(SelectionWarning) as caught:
        _, few = dropping.fit_resample(X, y)
    said = [str(warning.message) for warning in caught]
    keep = "If the labels are right, set suspects='keep'."
    assert f"Rows whose label does not fit are left out: 4 of 24 of class 2. {keep}" in said
    assert f"130 rows are chosen instead of 133: with labels that fit there are 20 of class 2. {keep}" in said
    assert np.bincount(few).tolist() == [50, 60, 20]
    keeping = MOSAICSampler(sampling_strategy=asked, suspects="keep")
    _, few = keeping.fit_resample(X, y)
    assert np.bincount(few).tolist() == [50, 60, 23]
    assert keeping.suspects_.rows.tolist() == dropping.suspects_.rows.tolist() == sorted(wrong.tolist())


def test_copies_and_outliers_are_chosen_where_a_class_has_no_other_rows():
    iris, kinds = load_iris(return_X_y=True)  # rows 101 and 142 are equal
    sampler = MOSAICSampler(sampling_strategy={0: 10}, suspects="keep")
    _, few = sampler.fit_resample(iris, kinds)
    assert np.bincount(few).tolist() == [10, 50, 50]
    assert len(sampler.representative_indices_) == 109
    copied = np.vstack([X, X[150:160], [[90.0, 90.0]]])
    labels = np.append(Y, [1] * 10 + [2])
    for asked in ({1: 65}, {2: 20}):
        _, few = MOSAICSampler(sampling_strategy=asked, suspects="keep").fit_resample(copied, labels)
        assert {label: int((few == label).sum()) for label in asked} == asked


def test_fit_finds_what_fit_resample_finds_and_a_fit_without_labels_forgets_it():
    y = Y.copy()
    y[3] = 1
    sampler = MOSAICSampler(20).fit(X, y)
    other = MOSAICSampler(20)
    other.fit_resample(X, y)
    assert sampler.sample_indices_.tolist() == other.sample_indices_.tolist()
    assert sampler.suspects_.rows.tolist() == other.suspects_.rows.tolist() == [3]
    sampler.fit(X)
    assert sampler.sample_indices_.tolist() == MOSAIC(20).fit(X).representative_indices_.tolist()
    assert not hasattr(sampler, "suspects_")


def test_a_refused_fit_leaves_the_fitted_sampler_as_it_was():
    sampler = MOSAICSampler(20).fit(X, Y)
    before = dict(vars(sampler))
    with pytest.raises(InvalidInputError, match="cannot be combined"):
        sampler.fit(X, Y, must_include=[1])
    assert vars(sampler) == before


def test_a_saved_sampler_keeps_suspects_and_numbers(tmp_path):
    y = np.array(["a", "b", "c"])[Y]
    y[3] = "b"
    sampler = MOSAICSampler(20).fit(X, y)
    sampler.save(tmp_path / "few.mosaic")
    loaded = load(tmp_path / "few.mosaic")
    assert repr(loaded.suspects_) == repr(sampler.suspects_) == "<1 label that may be wrong: row 3 has 'b' instead of 'a'>"
    assert loaded.sampling_strategy_ == sampler.sampling_strategy_
    assert loaded.sample_indices_.tolist() == sampler.sample_indices_.tolist()


def test_rows_of_an_open_table_come_back_with_all_their_cells(tmp_path):
    frame = pd.DataFrame({"id": [f"R{i}" for i in range(200)], "x": X[:, 0], "y": X[:, 1]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with read(tmp_path / "rows.csv") as rows:
        few, _ = MOSAICSampler(3).fit_resample(rows)
        both, labels = MOSAICSampler(9).fit_resample(rows, Y)
    assert few.column_names == ["id", "x", "y"]
    assert few["id"].to_pylist() == [f"R{i}" for i in MOSAICSampler(3).fit(frame).sample_indices_]
    assert (both.num_rows, len(labels)) == (9, 9)
    np.save(tmp_path / "rows.npy", X)
    with read(tmp_path / "rows.npy") as rows:
        few, _ = MOSAICSampler(3).fit_resample(rows)
    assert (few == X[MOSAICSampler(3).fit(X).sample_indices_]).all()


def test_classes_choose_for_themselves():
    """The picks of a class are those of its rows alone, wherever the other classes are."""
    both, moved = (MOSAICSampler(sampling_strategy={0: 5, 1: 5}) for _ in range(2))
    both.fit_resample(X[:180], Y[:180])
    moved.fit_resample(X[:180] + 40.0 * Y[:180, None], Y[:180])
    assert set(both.sample_indices_) == set(moved.sample_indices_)


def test_wrong_labels_among_digits_cost_little():
    digits, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(digits))
    train, test = order[:900], order[900:]
    given = labels[train].copy()
    wrong = np.arange(90)
    given[wrong] = (given[wrong] + rng.integers(1, 10, 90)) % 10
    sampler = MOSAICSampler(0.05)
    with pytest.warns(SelectionWarning, match="does not fit are left out"):
        few, few_labels = sampler.fit_resample(digits[train], given)
    found = np.isin(wrong, sampler.suspects_.rows)
    assert found.mean() > 0.85
    assert (sampler.suspects_.rows < 90).mean() > 0.95
    kept = KNeighborsClassifier(1).fit(few, few_labels).score(digits[test], labels[test])
    everything = KNeighborsClassifier(1).fit(digits[train], given).score(digits[test], labels[test])
    assert kept > everything


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_and_their_targets_keep_their_type(library):
    frame = library.DataFrame({"x": X[:, 0], "y": X[:, 1], "shop": np.where(Y == 1, "north", "south")})
    few, labels = MOSAICSampler(9).fit_resample(frame, library.Series(name="kind", **{"data" if library is pd else "values": Y}))
    assert type(few) is library.DataFrame
    assert list(few.columns) == ["x", "y", "shop"]
    assert (type(labels), labels.name, len(labels)) == (library.Series, "kind", 9)


@pytest.mark.parametrize(
    ("settings", "constraints", "message"),
    [
        ({"sampling_strategy": "equal"}, {}, "divides a number, and none is given; got 'equal'. Give n_representatives"),
        ({"n_representatives": 9, "sampling_strategy": "all"}, {}, "says how many to choose, and so does n_representatives"),
        ({"n_representatives": 201}, {}, "n_representatives is more than the 200 rows; got 201. Ask for fewer"),
        ({"suspects": "some"}, {}, "suspects must be 'drop' or 'keep'"),
        ({"sampling_strategy": {7: 1}}, {}, "names 7, which is no class. Classes: 0, 1, 2"),
        ({"sampling_strategy": "some"}, {}, "sampling_strategy"),
        ({"kernel": "precomputed"}, {}, "a matrix of similarities cannot be combined"),
        ({}, {"must_include": [3]}, "must_include cannot be combined with labels"),
    ],
)
def test_what_cannot_be_done_is_said(settings, constraints, message):
    data = X @ X.T + 100 * np.eye(200) if "kernel" in settings else X
    with pytest.raises(InvalidInputError, match=message):
        MOSAICSampler(**settings).fit_resample(data, Y, **constraints)


@pytest.mark.parametrize("column", ["group", "weight"])
def test_groups_and_weights_that_a_file_was_read_with_are_not_dropped_beside_labels(column, tmp_path):
    pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "n": Y + 1}).to_csv(tmp_path / "rows.csv", index=False)
    rows = read(tmp_path / "rows.csv", **{column: "n"})
    name = {"group": "groups", "weight": "sample_weight"}[column]
    with pytest.raises(InvalidInputError, match=f"{name} cannot be combined with labels"):
        MOSAICSampler(9).fit_resample(rows, Y)
    assert len(MOSAICSampler(9).fit(rows).sample_indices_) == 9


def test_the_command_chooses_within_each_class_and_notes_labels_that_do_not_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    y = np.array(["a", "b", "c"])[Y]
    y[3] = "b"
    pd.DataFrame({"id": [f"R{i}" for i in range(200)], "x": X[:, 0], "y": X[:, 1], "kind": y}).to_csv("rows.csv", index=False)
    ran = run(capsys, "select", "rows.csv", "-k", "10", "--label", "kind", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert {pick["values"]["kind"] for pick in answer["picks"]} == {"a", "b", "c"}
    assert "1 row has a label that does not fit: R3 (row 3) is labelled 'b', its neighbours 'a'." in answer["notes"]
    refused = run(capsys, "select", "rows.csv", "--label", "kind", "--group", "kind")
    assert (refused.code, "cannot be combined" in refused.err) == (2, True)


def test_the_command_keeps_suspects_if_it_is_told_and_refuses_options_without_effect(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    y = Y.copy()
    y[np.argsort(np.linalg.norm(X[:120], axis=1))[:120:30]] = 2
    rows = np.r_[0:200, 3, 3]  # and two copies
    pd.DataFrame({"x": X[rows, 0], "y": X[rows, 1], "kind": y[rows]}).to_csv("rows.csv", index=False)
    dropped = json.loads(run(capsys, "select", "rows.csv", "-k", "201", "--label", "kind", "--json").out)
    said = (
        "198 rows are chosen instead of 201: with labels that fit there are 118 of class '0', 60 of class '1', 20 of class '2'."
    )
    assert any(note.startswith(said) and "--suspects keep" in note for note in dropped["notes"])
    assert "2 of the chosen rows are not listed, since they are copies of others." in dropped["notes"]
    assert len(dropped["picks"]) == 196
    kept = json.loads(run(capsys, "select", "rows.csv", "-k", "200", "--label", "kind", "--suspects", "keep", "--json").out)
    assert any(note.startswith("4 rows have labels that do not fit: row ") for note in kept["notes"])
    assert not any("are chosen instead of" in note for note in kept["notes"])
    alone = run(capsys, "select", "rows.csv", "--suspects", "keep")
    assert (alone.code, "--suspects is about the labels of rows. Name their column with --label" in alone.err) == (2, True)
    assert run(capsys, "path", "rows.csv", "--label", "kind").code == 2
