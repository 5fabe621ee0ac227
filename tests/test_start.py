"""More rows, same picks: a fit that starts from the picks of an earlier one."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler, Sketch

RNG = np.random.default_rng(0)
OLD = RNG.normal(size=(300, 3))
MORE = np.vstack([OLD, RNG.normal(size=(60, 3))])
#: A crowd where no row was before.
ELSEWHERE = np.vstack([OLD, RNG.normal(size=(300, 3)) * 0.5 + 5])


def kept_of(model):
    """How many earlier picks are kept, of how many, as the model says."""
    (told,) = (told for told in model.explain() if told.endswith("kept."))
    return tuple(int(number) for number in re.findall(r"\d+", told))


def mean_similarity(model):
    return float(model.selection_.gains.sum())


@pytest.fixture(scope="module")
def old():
    return MOSAIC(15).fit(OLD)


def test_earlier_picks_stay_where_others_are_hardly_better(old):
    fresh, model = MOSAIC(15).fit(MORE), MOSAIC(15).fit(MORE, start=old)
    kept = np.isin(old.representative_indices_, model.representative_indices_).sum()
    assert kept >= 14
    assert kept > np.isin(old.representative_indices_, fresh.representative_indices_).sum()
    assert mean_similarity(model) > 0.99 * mean_similarity(fresh)
    assert kept_of(model) == (kept, 15)
    assert f"The mean similarity to the nearest pick is {mean_similarity(model):.4g};" in "\n".join(model.explain())


def test_earlier_picks_go_where_others_are_clearly_better(old):
    fresh, model = MOSAIC(15).fit(ELSEWHERE), MOSAIC(15).fit(ELSEWHERE, start=old)
    kept, n_before = kept_of(model)
    assert (kept < 15, n_before) == (True, 15)
    assert mean_similarity(model) > 0.98 * mean_similarity(fresh)
    told, chosen = "\n".join(model.explain()), set(model.representative_indices_.tolist())
    replaced = re.findall(r"row (\d+) → row (\d+) \(\+(\S+)\)", told)
    assert kept + len(replaced) <= 15
    for gone, new, gain in replaced:
        assert (int(gone) in chosen, int(new) in chosen, float(gain) > 0) == (False, True, True)
    assert replaced
    after, before = re.findall(r"is (\d\.\d+)", told.splitlines()[-2])
    assert float(after) > float(before)
    assert told in "\n".join(model.facts_.decisions)


def test_the_same_rows_give_the_same_picks(old):
    again = MOSAIC(15).fit(OLD, start=old)
    assert set(again.representative_indices_) == set(old.representative_indices_)
    assert "15 of 15 earlier picks kept." in again.explain()


def test_rows_are_found_by_value_in_any_order_and_gone_ones_are_named(old):
    order = np.random.default_rng(1).permutation(len(MORE))
    lost = int(old.representative_indices_[3])
    order = order[order != lost]
    model = MOSAIC(15).fit(MORE[order], start=old)
    again = set(order[model.representative_indices_].tolist())
    assert len(again & set(old.representative_indices_.tolist())) >= 12
    assert kept_of(model)[1] == 15
    assert f"Not among the rows any more: row {lost}." in model.explain()


def test_rows_are_found_by_name_even_where_their_values_have_changed(old):
    names = [f"C{i}" for i in range(len(MORE))]
    columns = ["x", "y", "z"]
    first = MOSAIC(15).fit(pd.DataFrame(OLD, columns=columns, index=names[:300]))
    frame = pd.DataFrame(MORE + 0.01, columns=columns, index=names).sample(frac=1, random_state=0)
    pick = names[int(first.representative_indices_[0])]
    model = MOSAIC(15).fit(frame.drop(index=pick), start=first)
    assert f"Not among the rows any more: {pick} (row {int(first.representative_indices_[0])})." in model.explain()
    assert kept_of(model)[0] >= 13


@pytest.mark.parametrize("k", [5, 25])
def test_another_number(old, k):
    model = MOSAIC(k).fit(MORE, start=old)
    picks = model.representative_indices_
    assert len(picks) == k
    assert np.isin(picks, old.representative_indices_).sum() >= min(k, 15) - 2
    if k < 15:
        assert any("since there is no place for them" in told for told in model.explain())


def test_constraints_hold(old):
    first, second = (int(row) for row in old.representative_indices_[:2])
    must = int(np.setdiff1d(np.arange(300), old.representative_indices_)[7])
    groups = np.where(np.arange(len(MORE)) % 2, "odd", "even")
    model = MOSAIC(15).fit(MORE, start=old, exclude=[first], must_include=[must, second], groups=groups, quotas={"odd": 5})
    picks = model.representative_indices_
    assert must in picks
    assert second in picks
    assert first not in picks
    assert (groups[picks] == "odd").sum() == 5
    assert f"Not kept, since they may not be chosen: row {first}." in model.explain()


def test_an_earlier_pick_that_has_become_an_outlier_goes():
    cloud = np.random.default_rng(4).normal(size=(200, 2))
    X = np.vstack([cloud, [[40.0, 40.0]]])
    old = MOSAIC(5, outliers="keep").fit(X, must_include=[200])
    model = MOSAIC(5).fit(X, start=old)
    assert 200 not in model.representative_indices_
    assert "Not kept, since they are outliers now: row 200." in model.explain()


def test_weights_of_zero(old):
    first = int(old.representative_indices_[0])
    weights = np.ones(len(MORE))
    weights[first] = 0
    model = MOSAIC(15).fit(MORE, start=old, sample_weight=weights)
    assert f"Not kept, since their weight is 0: row {first}." in model.explain()


def test_a_table_of_mixed_columns():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.normal(40, 12, 260), "income": np.exp(rng.normal(9, 1, 260))})
    frame["city"] = rng.choice(["Bonn", "Ulm", "Rome"], 260)
    frame.loc[::9, "age"] = np.nan
    old = MOSAIC(12).fit(frame[:200])
    model = MOSAIC(12).fit(frame, start=old)
    assert "Not among the rows any more" not in "".join(model.explain())
    assert kept_of(model)[0] >= 10
    again = old.fit(frame, start=old)  # its own picks of before
    np.testing.assert_array_equal(again.representative_indices_, model.representative_indices_)


def test_start_may_be_rows_or_names(old):
    by_model = MOSAIC(15).fit(MORE, start=old)
    by_rows = MOSAICSampler(15).fit(MORE, start=old.representative_indices_)
    np.testing.assert_array_equal(by_model.representative_indices_, by_rows.representative_indices_)
    frame = pd.DataFrame(MORE, columns=["x", "y", "z"], index=[f"C{i}" for i in range(len(MORE))])
    by_names = MOSAIC(15).fit(frame, start=[f"C{i}" for i in old.representative_indices_])
    np.testing.assert_array_equal(by_model.representative_indices_, by_names.representative_indices_)


def test_many_rows_are_sampled_and_earlier_picks_are_in_the_sample():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    old = MOSAIC(10).fit(X[:2000])
    model = MOSAIC(10).fit(X, start=old)
    assert kept_of(model)[0] >= 8


def test_what_cannot_be_a_start_is_refused(old):
    with pytest.raises(InvalidInputError, match=r"start must be a fitted MOSAIC or MOSAICSampler, or rows; got MOSAICOut"):
        MOSAIC(5).fit(MORE, start=MOSAICOutlierDetector().fit(OLD))
    with pytest.raises(InvalidInputError, match=r"start is a model, whose picks are looked for among rows in memory"):
        MOSAIC(5, algorithm=Sketch(n_initial=50)).fit(MORE, start=old)
    with pytest.raises(InvalidInputError, match=r"start must lie in 0 … 359; got 3 … 360"):
        MOSAIC(5).fit(MORE, start=[3, 360])
    with pytest.raises(InvalidInputError, match="knows no constraints"):
        MOSAIC(5, algorithm="paper").fit(MORE, start=old)
    K = np.exp(-((OLD[:, None] - OLD) ** 2).sum(axis=2))
    with pytest.raises(InvalidInputError, match=r"since it was given similarities\. Name its picks in must_include"):
        MOSAIC(5, kernel="precomputed").fit(K, start=MOSAIC(5, kernel="precomputed").fit(K))


def test_a_saved_model_is_a_start_by_its_path(old, tmp_path):
    old.save(tmp_path / "old.mosaic")
    expected = MOSAIC(15).fit(MORE, start=old)
    for path in (tmp_path / "old.mosaic", str(tmp_path / "old.mosaic")):
        model = MOSAIC(15).fit(MORE, start=path)
        assert model.explain() == expected.explain()
    with pytest.raises(InvalidInputError, match="there is no such file"):
        MOSAIC(15).fit(MORE, start="gone.mosaic")


@pytest.mark.parametrize("ids", [False, True])
def test_the_command_starts_from_a_saved_model(ids, tmp_path, capsys, monkeypatch):
    """Also where picks are found by the values of a mixed table."""
    pytest.importorskip("pyarrow.csv")
    monkeypatch.chdir(tmp_path)
    more = pd.DataFrame(MORE, columns=list("xyz")).assign(kind=RNG.choice(["red", "blue", None], len(MORE)))
    more = more.assign(id=[f"C{i}" for i in range(len(MORE))]) if ids else more
    more.to_csv("more.csv", index=False)
    more[:300].to_csv("old.csv", index=False)
    assert run(capsys, "select", "old.csv", "-k", 8, "--save", "old.mosaic").code == 0
    answer = json.loads(run(capsys, "select", "more.csv", "-k", 8, "--start", "old.mosaic", "--json").out)
    kept = next(line for line in answer["decisions"] if "earlier picks kept" in line)
    assert int(kept[0]) >= 7
    ran = run(capsys, "select", "more.csv", "-k", 8, "--start", "more.csv")
    assert (ran.code, "more.csv: is no saved model" in ran.err) == (3, True)
