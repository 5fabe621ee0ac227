"""Choosing among labelled rows: within each class, without rows whose label does not fit."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from cli_runs import run
from mosaic import InvalidInputError, MOSAICSampler

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


def test_a_class_of_suspects_alone_keeps_a_row():
    y = np.zeros(200, int)
    y[[5, 130, 190]] = 1
    sampler = MOSAICSampler(20)
    _, few = sampler.fit_resample(X, y)
    assert {5, 130, 190} <= set(sampler.suspects_.rows.tolist())
    assert (few == 1).sum() == 1


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("auto", [12, 6, 2]), ("equal", [7, 7, 6]), ({0: 5, 1: 3}, [5, 3, 20]), ({0: 1, 1: 1, 2: 1}, [1, 1, 1])],
)
def test_strategy_divides_the_number_among_the_classes(strategy, expected):
    sampler = MOSAICSampler(20, sampling_strategy=strategy)
    few, labels = sampler.fit_resample(X, Y)
    assert np.bincount(labels).tolist() == expected
    assert (few == X[sampler.sample_indices_]).all()
    assert sorted(sampler.representative_indices_) == sorted(sampler.sample_indices_)


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
    few, few_labels = sampler.fit_resample(digits[train], given)
    found = np.isin(wrong, sampler.suspects_.rows)
    assert found.mean() > 0.9
    assert (sampler.suspects_.rows < 90).mean() > 0.85
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
        ({"n_representatives": 2}, {}, "at least 3, one for each class"),
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


def test_the_command_chooses_within_each_class_and_notes_labels_that_do_not_fit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    y = np.array(["a", "b", "c"])[Y]
    y[3] = "b"
    pd.DataFrame({"id": [f"R{i}" for i in range(200)], "x": X[:, 0], "y": X[:, 1], "kind": y}).to_csv("rows.csv", index=False)
    ran = run(capsys, "select", "rows.csv", "-k", "10", "--label", "kind", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert {pick["values"]["kind"] for pick in answer["picks"]} == {"a", "b", "c"}
    assert (
        "1 row has a label that does not fit, and is left out: R3 (row 3) is labelled 'b', its neighbours 'a'." in answer["notes"]
    )
    refused = run(capsys, "select", "rows.csv", "--label", "kind", "--group", "kind")
    assert (refused.code, "cannot be combined" in refused.err) == (2, True)
