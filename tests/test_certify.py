"""What is proven about a choice of rows: the certificate of a fit, and of anybody's picks."""

import json
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import kmeans_plusplus

import mosaic
from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, datasets
from mosaic.choosing.choose import Chooser


def similarities(model, k):
    """Similarities of the rows that belong, to all of them, for k picks, and their weights."""
    chooser = Chooser(model.selection_, k)
    points = model.selection_.data.points
    assert len(chooser.targets) == np.count_nonzero(~chooser.rejected)
    rows = points.first[chooser.targets]
    return rows, np.asarray(chooser.cover.between(chooser.targets, chooser.targets), np.float64), chooser.weights


def values_of_all(S, weights, k):
    sets = np.array(list(combinations(range(S.shape[1]), k)))
    return sets, weights @ S[:, sets].max(axis=-1) / weights.sum()


@pytest.mark.parametrize("seed", range(8))
def test_certificate_is_true_for_every_choice_of_as_many_rows(seed):
    X = np.random.default_rng([seed, 1]).normal(size=(24, 2))
    model = MOSAIC(3, outliers="keep").fit(X)
    certificate = model.certificate_
    rows, S, weights = similarities(model, 3)
    sets, values = values_of_all(S, weights, 3)
    own = np.isin(rows, model.representative_indices_).nonzero()[0]
    assert certificate.value == pytest.approx(values[(sets == own).all(axis=1)][0], rel=1e-12)
    assert certificate.value <= values.max() * (1 + 1e-12)
    assert values.max() <= certificate.bound
    assert certificate.gap >= 1 - certificate.value / values.max()
    assert certificate.shortfall <= 1 - certificate.value / values.max() + 1e-12
    if certificate.is_best:
        assert np.count_nonzero(values >= certificate.value * (1 - 1e-12)) == 1


@pytest.mark.parametrize("seed", range(8))
def test_other_picks_are_certified_against_every_choice(seed):
    rng = np.random.default_rng([seed, 2])
    X = rng.normal(size=(22, 2))
    model = MOSAIC(2, outliers="keep").fit(X)
    picks = rng.choice(22, 3, replace=False)
    certificate = model.certify(picks)
    rows, S, weights = similarities(model, 3)
    sets, values = values_of_all(S, weights, 3)
    own = np.sort([rows.tolist().index(row) for row in picks])
    value = values[(sets == own).all(axis=1)][0]
    assert certificate.value == pytest.approx(value, rel=1e-12)
    assert certificate.shortfall - 1e-12 <= 1 - value / values.max() <= certificate.gap
    for out, into, gain, _ in certificate.exchanges:
        exchanged = np.sort([rows.tolist().index(row) for row in [*np.setdiff1d(picks, [out]), into]])
        assert gain == pytest.approx(values[(sets == exchanged).all(axis=1)][0] - value, rel=1e-9)
    first = certificate.exchanges[0]
    singles = [values[i] for i, chosen in enumerate(sets) if len(np.setdiff1d(chosen, own)) == 1]
    assert value + first.gain == pytest.approx(max(singles), rel=1e-12)


def farthest_points(X, k):
    chosen = [int(((X - X.mean(axis=0)) ** 2).sum(axis=1).argmax())]
    while len(chosen) < k:
        chosen.append(int(((X[:, None] - X[chosen]) ** 2).sum(-1).min(axis=1).argmax()))
    return np.array(chosen)


@pytest.mark.parametrize("name", ["roll", "blobs", "normal", "ring", "outliers"])
def test_certificates_rank_choices_as_their_cover_does_and_call_random_ones_random(name):
    rng = np.random.default_rng(3)
    X = {
        "roll": lambda: datasets.swiss_roll(400),
        "blobs": lambda: rng.normal(size=(400, 4)) + 6 * rng.integers(0, 4, (400, 1)),
        "normal": lambda: rng.normal(size=(400, 6)),
        "ring": lambda: np.column_stack([np.cos(t := rng.uniform(0, 6.3, 400)), np.sin(t)]) + 0.1 * rng.normal(size=(400, 2)),
        "outliers": lambda: datasets.blobs_with_gross_outliers().X,
    }[name]()
    model = MOSAIC(8).fit(X)
    choices = {
        "mosaic": model.representative_indices_,
        "k-means++": kmeans_plusplus(X, 8, random_state=0)[1],
        "farthest": farthest_points(X, 8),
        "random": rng.choice(len(X), 8, replace=False),
    }
    found = {name: model.certify(rows) for name, rows in choices.items()}
    assert found["mosaic"].value == model.certificate_.value
    order = sorted(found, key=lambda name: found[name].value)
    assert order == sorted(found, key=lambda name: -found[name].gap)
    assert order[-1] == "mosaic"
    assert found["mosaic"].gap < 0.01
    assert found["random"].shortfall > 0.02
    several = [model.certify(rng.choice(len(X), 8, replace=False)) for _ in range(12)]
    assert sum("No better than random" in str(each) for each in several) >= 9
    assert "random choices" in str(found["mosaic"]).lower()
    assert found["mosaic"].n_random_as_good == 0
    assert not re.search("random choices .* below", str(found["farthest"])) or found["farthest"].value > found["farthest"].random


def test_sentences_say_what_the_numbers_prove_and_no_more():
    rng = np.random.default_rng(5)
    some = MOSAIC(4).fit(rng.normal(size=(60, 2))).certify([0, 1, 2, 3])
    assert some.exchanges
    for _ in range(2000):
        gap, below = 10.0 ** rng.uniform(-7, -0.01, 2)
        certificate = replace(
            some,
            k=int(rng.integers(1, 2000)),
            gap=max(gap, below),
            shortfall=below if rng.random() < 0.4 else 0.0,
            is_best=bool(rng.random() < 0.2),
            random=some.value * rng.uniform(0.5, 1.1),
            n_random_as_good=int(rng.choice([0, 0, 0, 1, 2, 5, 48])),
            exchanges=some.exchanges if rng.random() < 0.5 else (),
            is_about_all=bool(rng.random() < 0.5),
            constrained=bool(rng.random() < 0.5),
        )
        text = str(certificate)
        assert len(text.split()) <= 30
        assert text.endswith(".")
        if "within" in text.replace("within the", ""):
            assert float(re.search(r"within ([\d.]+) %", text)[1] + "e-2") >= certificate.gap
        if "At least" in text:
            assert float(re.search(r"At least ([\d.]+) %", text)[1] + "e-2") <= certificate.shortfall
            assert "exchange" in text
        if below := re.search(r"Random choices are ([\d.]+) % below", text):
            assert float(below[1] + "e-2") <= 1 - certificate.random / certificate.value
        if as_good := re.search(r"(\d+) of 48", text):
            assert int(as_good[1]) == certificate.n_random_as_good
        assert text.startswith("Proven: no other") == certificate.is_best
        assert ("of those compared" in text) != certificate.is_about_all
        told = certificate.details()
        low, high = re.search(r"at least ([\d.]+) here, and for any (?:[\d,]+ )?rows? at most ([\d.]+)\.", told).groups()
        assert float(low) <= certificate.value
        assert float(high) >= certificate.bound


def test_the_only_best_choice_is_proven_to_be_that():
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    X = (centres[:, None] + np.random.default_rng(0).normal(size=(3, 20, 2))).reshape(-1, 2)
    certificate = MOSAIC(3).fit(X).certificate_
    assert str(certificate).startswith("Proven: no other 3 rows cover more. Random choices are ")
    assert certificate.is_best


@pytest.mark.parametrize("seed", range(4))
def test_explanations_say_what_is_proven_about_a_row_once_the_certificate_is_known(seed):
    rng = np.random.default_rng([seed, 3])
    X = rng.normal(size=(24, 2)) + 4 * rng.integers(0, 3, (24, 1))
    model = MOSAIC(3, outliers="keep").fit(X)
    assert not any(model.explain(row).proven for row in range(24))
    assert not model.selection_.is_proven
    value = model.certificate_.value
    rows, S, weights = similarities(model, 3)
    sets, values = values_of_all(S, weights, 3)
    as_good = [set(rows[chosen].tolist()) for chosen in sets[values >= value * (1 + 1e-12)]]
    as_good.append(set(model.representative_indices_.tolist()))
    said = {row: model.explain(row).proven for row in range(24)}
    out = "Proven: no choice of 3 with this row covers as much."
    inside = "Proven: every choice of 3 that covers as much has this row, or an equal one."
    assert set(said.values()) <= {"", out, inside}
    for row, sentence in said.items():
        assert sentence != out or not any(row in chosen for chosen in as_good)
        assert sentence != inside or all(row in chosen for chosen in as_good)
        assert str(model.explain(row)).endswith(sentence)
    assert list(said.values()).count(out) >= 10


def test_certificate_is_computed_once_and_solves_no_program():
    model = MOSAIC(5).fit(datasets.swiss_roll(300))
    assert not model.selection_.is_proven
    assert model.certificate_ is model.certificate_
    assert not hasattr(model, "influence_")


def test_picks_are_named_by_number_by_name_or_by_a_mask():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), index=[f"C{i}" for i in range(50)])
    model = MOSAIC(4).fit(frame)
    numbers = model.certify([3, 7, 11])
    mask = np.isin(np.arange(50), [3, 7, 11])
    assert [model.certify(["C3", "C7", "C11"]).value, model.certify(mask).value] == [numbers.value] * 2
    assert mosaic.certify(frame, ["C3", "C7", "C11"]).value == numbers.value
    assert "C7 (row 7)" in numbers.details()


def test_outliers_and_equal_rows_among_the_picks_are_named():
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[79], X[5] = [60.0, 60.0], X[4]
    certificate = MOSAIC(4).fit(X).certify([79, 4, 5])
    assert certificate.notes == ("Row 79 is an outlier.", "Row 5 is equal to row 4: one of them adds nothing.")
    assert "Row 79 is an outlier." in certificate.details()
    assert certificate.exchanges[0].out == 79


@pytest.mark.parametrize("picks", [[5, 9, 20], [4, 5, 9], [5, 4, 19], [4, 5, 6]])
def test_exchanges_are_of_the_rows_that_were_named_and_add_what_they_say_beside_their_copies(picks):
    X = np.random.default_rng(0).normal(size=(24, 2))
    X[5] = X[6] = X[4]
    model = MOSAIC(3, outliers="keep").fit(X)
    certificate = model.certify(picks)
    others = np.delete(np.arange(24), picks)

    def value(chosen):
        return model.certify(chosen).value

    gains = {(out, into): value([*np.setdiff1d(picks, [out]), into]) - certificate.value for out in picks for into in others}
    assert certificate.exchanges[0].gain == pytest.approx(max(gains.values()), rel=1e-9)
    for out, into, gain, sentence in certificate.exchanges:
        assert gain == pytest.approx(gains[out, into], rel=1e-9)
        assert sentence == f"exchange row {out} for row {into}"


@pytest.mark.parametrize("seed", [0, 6, 17, 24])
def test_the_exchanges_that_are_named_are_those_that_add_most_of_different_rows(seed):
    rng = np.random.default_rng([seed, 4])
    X = rng.normal(size=(700, 2))
    model = MOSAIC(5, outliers="keep").fit(X)
    picks = rng.choice(700, 5, replace=False)
    rows, S, weights = similarities(model, 5)
    place = {row: at for at, row in enumerate(rows.tolist())}
    own = [place[row] for row in picks.tolist()]
    gains = np.full((5, 700), -np.inf)
    for at in range(5):
        best = S[:, np.delete(own, at)].max(axis=1)
        gains[at] = weights @ np.maximum(S, best[:, None]) - weights @ S[:, own].max(axis=1)
    gains[:, own] = -np.inf
    found = []
    while len(found) < 3:
        at, into = np.unravel_index(gains.argmax(), gains.shape)
        found.append((int(picks[at]), int(rows[into]), gains[at, into] / weights.sum()))
        gains[at], gains[:, into] = -np.inf, -np.inf
    told = [tuple(each[:3]) for each in model.certify(picks).exchanges]
    assert told == [(out, into, pytest.approx(gain, rel=1e-4)) for out, into, gain in found]


@pytest.mark.parametrize(
    ("picks", "said"),
    [
        ([], "are no rows"),
        ([0, 0], "must not repeat"),
        ([0, 99], "must lie in 0 … 29"),
        ([-1], "must lie in 0 … 29"),
        ([0.5], "must be a list of row numbers"),
        (["x"], "holds the name 'x'"),
        ([3], "whose sample_weight is 0"),
    ],
)
def test_picks_that_are_no_rows_are_refused(picks, said):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = MOSAIC(3).fit(X, sample_weight=np.where(np.arange(30) == 3, 0.0, 1.0))
    with pytest.raises(InvalidInputError, match=said):
        model.certify(picks)


def test_more_picks_than_rows_are_refused():
    with pytest.raises(InvalidInputError, match="picks must lie in 0 … 29; got 0 … 39"):
        mosaic.certify(np.random.default_rng(0).normal(size=(30, 2)), np.arange(40))


def test_numbers_are_not_for_certify():
    with pytest.raises(InvalidInputError, match="n_representatives is not for certify"):
        mosaic.certify(np.eye(4), [0], n_representatives=2)


def test_paper_picks_have_the_certificate_of_the_program():
    model = MOSAIC(5, algorithm="paper").fit(datasets.swiss_roll(200))
    assert model.certificate_.gap <= 1e-3
    with pytest.raises(InvalidInputError, match="not for the paper's algorithm"):
        model.certify([0, 1])


@pytest.mark.parametrize("k", [1, 3])
def test_where_nothing_else_can_be_chosen_the_proof_is_trivial(k):
    X = np.random.default_rng(0).normal(size=(k, 2))
    certificate = MOSAIC(k, outliers="keep").fit(X).certificate_
    assert str(certificate) == ("Proven: no other row covers more." if k == 1 else "Proven: no other 3 rows cover more.")
    assert certificate.gap < 1e-12


def test_equal_rows_are_one_candidate():
    certificate = MOSAIC(1).fit(np.ones((20, 3))).certify([4, 7])
    assert certificate.notes == ("Row 7 is equal to row 4: one of them adds nothing.",)
    assert certificate.gap < 1e-12


def test_picks_may_be_more_than_there_are_distinct_rows_or_rows_that_belong():
    equal = mosaic.certify(np.ones((20, 3)), [4, 7])
    assert str(equal) == "Proven: no other 2 rows cover more."
    X = np.vstack([np.random.default_rng(0).normal(size=(80, 2)), [[60.0, 60.0]]])
    everyone = mosaic.certify(X, np.arange(81))
    assert everyone.notes == ("Row 80 is an outlier.",)
    assert everyone.value == 1
    assert everyone.gap < 1e-12


@pytest.mark.parametrize("constraint", ["quotas", "must", "exclude"])
def test_proof_is_about_choices_within_the_constraints(constraint):
    rng = np.random.default_rng(7)
    X, groups = rng.normal(size=(21, 2)), np.arange(21) % 2
    given = {
        "quotas": {"groups": groups, "quotas": {0: 2, 1: 1}},
        "must": {"must_include": [4]},
        "exclude": {"exclude": [0, 1, 2]},
    }
    model = MOSAIC(3, outliers="keep").fit(X, **given[constraint])
    may = {
        "quotas": lambda rows: (groups[rows] == 0).sum() == 2,
        "must": lambda rows: 4 in rows,
        "exclude": lambda rows: not np.isin([0, 1, 2], rows).any(),
    }[constraint]
    certificate = model.certificate_
    rows, S, weights = similarities(model, 3)
    sets, values = values_of_all(S, weights, 3)
    fits = np.array([may(rows[chosen]) for chosen in sets])
    assert certificate.constrained
    assert certificate.value <= values[fits].max() * (1 + 1e-12)
    assert values[fits].max() <= certificate.bound
    assert certificate.bound < values.max() or certificate.gap < 0.02
    assert "within the constraints" in str(certificate)
    breaks = next(rows[chosen] for chosen in sets if not may(rows[chosen]))
    assert not model.certify(breaks).constrained
    assert model.certify(model.representative_indices_).constrained


def test_nothing_is_proven_about_rows_where_a_sample_was_compared():
    model = MOSAIC(2, outliers="keep").fit(np.random.default_rng(0).normal(size=(20_000, 2)))
    assert not model.certificate_.is_about_all
    assert not any(model.explain(row).proven for row in [*model.representative_indices_.tolist(), 0, 1, 2])


def test_sample_is_said_to_be_one():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = MOSAIC(5).fit(X)
    certificate = model.certificate_
    assert not certificate.is_about_all
    assert "the best 5 of those compared" in str(certificate)
    assert "says nothing about other rows" in certificate.details()
    outside = np.setdiff1d(np.arange(20_000), model.selection_.data.row_numbers)[:5]
    rows = np.sort(np.append(outside, model.representative_indices_[0]))
    other = model.certify(rows)
    assert other.value < certificate.value
    assert other.exchanges[0].out in rows
    assert model.certify(outside).exchanges[0].out in outside
    assert model.certify(model.representative_indices_[::-1]) == certificate


def test_many_picks_outside_a_small_sample_are_refused_with_what_to_do():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = MOSAIC(5).fit(X)
    with pytest.raises(InvalidInputError, match=r"are 2,000 rows, some of them outside the 16,384 .* Use mosaic.certify"):
        model.certify(np.arange(2000))


def test_rows_that_belong_and_outliers_are_all_rows(monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 1000)
    X = np.random.default_rng(0).normal(size=(4000, 2))
    X[::400] *= 100
    model = MOSAIC(5).fit(X)
    for_all = model.certify(all_rows=True)
    assert for_all.n_rows + for_all.n_outliers == len(X)
    assert f"given {for_all.n_outliers} outliers" in for_all.details()
    assert "given about " in model.certificate_.details()


def test_rows_without_a_weight_are_not_what_the_proof_is_about():
    X = np.append(np.random.default_rng(0).normal(size=(60, 2)), [[90.0, 90.0], [91.0, 0.0]], axis=0)
    weights = np.r_[np.ones(40), np.zeros(21), 1.0]
    certificate = MOSAIC(3).fit(X, sample_weight=weights).certificate_
    assert (certificate.n_rows, certificate.n_outliers) == (40, 1)


def test_a_better_choice_is_found_from_the_picks_and_from_nothing():
    X = np.random.default_rng(0).normal(size=(400, 4))
    model = MOSAIC(40).fit(X)
    exchanged = model.representative_indices_.copy()
    exchanged[0] = np.setdiff1d(np.arange(400), exchanged)[0]
    best = model.certificate_.value
    assert model.certify(exchanged).shortfall >= 1 - model.certify(exchanged).value / best - 1e-6
    others = model.certify(np.arange(40))
    assert others.shortfall > 0.8 * (1 - others.value / best)


def test_saved_model_certifies_without_the_data(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = MOSAIC(5).fit(X)
    model.save(tmp_path / "m.mosaic")
    again = mosaic.load(tmp_path / "m.mosaic")
    assert str(again.certificate_) == str(model.certificate_)
    assert again.certify([1, 2, 3]).bound == model.certify([1, 2, 3]).bound
    again.save(tmp_path / "n.mosaic")
    assert mosaic.load(tmp_path / "n.mosaic").certificate_ == model.certificate_


def test_the_fit_of_arrays_on_a_device_has_the_same_certificate():
    xp = pytest.importorskip("array_api_strict")
    X = np.random.default_rng(0).normal(size=(120, 3))
    there, here = MOSAIC(6).fit(xp.asarray(X)).certificate_, MOSAIC(6).fit(X).certificate_
    assert there.value == pytest.approx(here.value, rel=1e-5)
    assert there.bound == pytest.approx(here.bound, rel=1e-3)


def test_command_certifies_the_picks_of_select(folder, capsys):
    assert run(capsys, "select", "points.csv", "-k", 5, "-o", "picks.csv").code == 0
    told = run(capsys, "certify", "points.csv", "picks.csv", "--json")
    answer = json.loads(told.out)
    assert told.code == 0
    assert answer["sentence"] == str(MOSAIC(5).fit("points.csv").certificate_)
    assert answer["certificate"]["gap"] < 0.02


@pytest.mark.parametrize(
    ("content", "picks"),
    [("id,why\np1,far\np7,near\n", ["p1", "p7"]), ("mine\np1\np7\n", ["p1", "p7"]), ("id\np1\np7\n", ["p1", "p7"])],
    ids=["a column that is called as in the data", "a list under any name", "a list of ids"],
)
def test_command_certifies_a_file_of_ids(folder, capsys, content, picks):
    (folder / "list.csv").write_text(content)
    from_file, named = run(capsys, "certify", "points.csv", "list.csv"), run(capsys, "certify", "points.csv", *picks)
    assert from_file.code == named.code == 0
    assert from_file.out == named.out


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("id\np1\np1\n", "picks must not repeat a row number; 2 given, 1 distinct"),
        ("a,b\n1,2\n1,3\n", "picks has no column mosaic_row, and none of ids: list.csv"),
        ("id\nnobody\n", "no row has 'nobody' in column 'id'"),
        ("mosaic_row\n400\n", "400"),
    ],
)
def test_command_says_what_is_wrong_with_a_list_of_picks(folder, capsys, content, fault):
    (folder / "list.csv").write_text(content)
    done = run(capsys, "certify", "points.csv", "list.csv")
    assert (done.code, done.out) == (2, "")
    assert fault in done.err
