"""More rows, same picks: a fit that starts from the picks of an earlier one."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler
from sources import open_source

RNG = np.random.default_rng(0)
OLD = RNG.normal(size=(300, 3))
MORE = np.vstack([OLD, RNG.normal(size=(60, 3))])
#: A crowd where no row was before.
ELSEWHERE = np.vstack([OLD, RNG.normal(size=(300, 3)) * 0.5 + 5])


def kept_of(model):
    (told,) = (told for told in model.explain() if told.endswith("kept."))
    return tuple(int(number) for number in re.findall(r"\d+", told))


@pytest.fixture(scope="module")
def old():
    return MOSAIC(15).fit(OLD)


def test_earlier_picks_stay_where_others_are_hardly_better(old):
    fresh, model = MOSAIC(15).fit(MORE), MOSAIC(15).fit(MORE, start=old)
    kept = np.isin(old.representative_indices_, model.representative_indices_).sum()
    assert kept >= 14
    assert kept > np.isin(old.representative_indices_, fresh.representative_indices_).sum()
    assert model.selection_.gains.sum() > 0.99 * fresh.selection_.gains.sum()
    assert kept_of(model) == (kept, 15)
    again = MOSAIC(15).fit(OLD, start=old)
    assert (len(again.representative_indices_), kept_of(again)) == (15, (15, 15))
    for k in (5, 25):
        other = MOSAIC(k).fit(MORE, start=old)
        assert np.isin(other.representative_indices_, old.representative_indices_).sum() >= min(k, 15) - 2
        assert any("since there is no place for them" in told for told in other.explain()) == (k < 15)
    itself = MOSAIC(15).fit(OLD)
    np.testing.assert_array_equal(itself.fit(MORE, start=itself).representative_indices_, model.representative_indices_)
    many = np.vstack([MORE, np.random.default_rng(3).normal(size=(40_000, 3))])  # of which a sample is drawn
    assert kept_of(MOSAIC(15).fit(many, start=old))[0] >= 13
    assert f"The mean similarity to the nearest pick is {model.selection_.gains.sum():.4g};" in "\n".join(model.explain())


def test_earlier_picks_go_where_others_are_clearly_better(old):
    fresh, model = MOSAIC(15).fit(ELSEWHERE), MOSAIC(15).fit(ELSEWHERE, start=old)
    kept, n_before = kept_of(model)
    assert (kept < 15, n_before) == (True, 15)
    assert model.selection_.gains.sum() > 0.98 * fresh.selection_.gains.sum()
    told, chosen = "\n".join(model.explain()), set(model.representative_indices_.tolist())
    replaced = re.findall(r"row (\d+) → row (\d+) \(\+(\S+)\)", told)
    assert kept + len(replaced) <= 15
    for gone, new, gain in replaced:
        assert (int(gone) in chosen, int(new) in chosen, float(gain) > 0) == (False, True, True)
    assert replaced
    after, before = re.findall(r"is (\d\.\d+)", told.splitlines()[-2])
    assert float(after) > float(before)
    assert told in "\n".join(model.facts_.decisions)


def test_rows_are_found_by_value_or_name_in_any_order_and_gone_ones_are_named(old):
    order = np.random.default_rng(1).permutation(len(MORE))
    lost = int(old.representative_indices_[3])
    order = order[order != lost]
    model = MOSAIC(15).fit(MORE[order], start=old)
    again = set(order[model.representative_indices_].tolist())
    assert len(again & set(old.representative_indices_.tolist())) >= 12
    assert kept_of(model)[1] == 15
    assert f"Not among the rows any more: row {lost}." in model.explain()
    mixed = pd.DataFrame(MORE, columns=list("xyz")).assign(kind=np.where(np.arange(len(MORE)) % 3, "a", "b"))
    model = MOSAIC(15).fit(mixed, start=MOSAIC(15).fit(mixed[:300]))
    assert (kept_of(model)[0] >= 13, "Not among the rows" in "".join(model.explain())) == (True, False)
    names, columns = [f"C{i}" for i in range(len(MORE))], ["x", "y", "z"]  # by name even where their values have changed
    first = MOSAIC(15).fit(pd.DataFrame(OLD, columns=columns, index=names[:300]))
    frame = pd.DataFrame(MORE + 0.01, columns=columns, index=names).sample(frac=1, random_state=0)
    model = MOSAIC(15).fit(frame.drop(index=f"C{lost}"), start=first)
    assert f"Not among the rows any more: C{lost} (row {lost})." in model.explain()
    assert kept_of(model)[0] >= 13


def test_constraints_hold_and_picks_that_may_not_or_cannot_stay_are_named(old):
    first, second, third = (int(row) for row in old.representative_indices_[:3])
    must = int(np.setdiff1d(np.arange(300), old.representative_indices_)[7])
    groups = np.where(np.arange(len(MORE)) % 2, "odd", "even")
    constraints = {"exclude": [first], "must_include": [must, second], "groups": groups, "quotas": {"odd": 5}}
    model = MOSAIC(15).fit(MORE, start=old, sample_weight=1.0 * (np.arange(len(MORE)) != third), **constraints)
    picks = model.representative_indices_
    assert {must, second} <= set(picks)
    assert not {first, third} & set(picks)
    assert (groups[picks] == "odd").sum() == 5
    assert f"Not kept, since they may not be chosen: row {first}." in model.explain()
    assert f"Not kept, since their weight is 0: row {third}." in model.explain()
    odd = np.vstack([OLD, [[40.0, 40.0, 40.0]]])
    model = MOSAIC(5).fit(odd, start=MOSAIC(5, outliers="keep").fit(odd, must_include=[300]))
    assert 300 not in model.representative_indices_
    assert "Not kept, since they are outliers now: row 300." in model.explain()


def test_an_earlier_pick_that_is_equal_to_another_one_is_told_as_such():
    model = MOSAIC(5).fit(np.vstack([OLD, OLD[7]]), start=[7, 300, 20])
    assert kept_of(model)[1] == 3
    assert "Not kept, since they are equal to another pick: row 300." in model.explain()


def test_start_may_be_a_model_its_path_rows_or_names(old, tmp_path):
    old.save(tmp_path / "old.mosaic")
    frame = pd.DataFrame(MORE, columns=["x", "y", "z"], index=[f"C{i}" for i in range(len(MORE))])
    by_model = MOSAIC(15).fit(MORE, start=old)
    for found in (
        MOSAIC(15).fit(MORE, start=tmp_path / "old.mosaic"),
        MOSAIC(15).fit(MORE, start=str(tmp_path / "old.mosaic")),
        MOSAICSampler(15).fit(MORE, start=old.representative_indices_),
        MOSAIC(15).fit(frame, start=[f"C{i}" for i in old.representative_indices_]),
    ):
        np.testing.assert_array_equal(found.representative_indices_, by_model.representative_indices_)


@pytest.mark.usefixtures("by_passes")
def test_what_cannot_be_a_start_is_refused(old):
    with pytest.raises(InvalidInputError, match=r"start must be a fitted MOSAIC or MOSAICSampler, or rows; got MOSAICOut"):
        MOSAIC(5).fit(MORE, start=MOSAICOutlierDetector().fit(OLD))
    with pytest.raises(InvalidInputError, match=r"start is a model, whose picks are looked for among rows in memory"):
        MOSAIC(5).fit(open_source(MORE), start=old)
    with pytest.raises(InvalidInputError, match=r"start must lie in 0 … 359; got 3 … 360"):
        MOSAIC(5).fit(MORE, start=[3, 360])
    with pytest.raises(InvalidInputError, match="there is no such file"):
        MOSAIC(5).fit(MORE, start="gone.mosaic")
    K = np.exp(-((OLD[:, None] - OLD) ** 2).sum(axis=2))
    with pytest.raises(InvalidInputError, match=r"since it was given similarities\. Give the rows of its picks instead"):
        MOSAIC(5, kernel="precomputed").fit(K, start=MOSAIC(5, kernel="precomputed").fit(K))


@pytest.mark.parametrize("ids", [False, True])
def test_the_command_starts_from_a_saved_model(ids, tmp_path, capsys, monkeypatch):
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
