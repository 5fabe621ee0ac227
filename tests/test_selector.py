"""MOSAIC, the estimator: how many it chooses, whom it rejects, and what becomes of the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler, Paper, datasets, metrics
from mosaic.choosing.choose import Chooser
from mosaic.kernels import make_kernel

GROSS = datasets.blobs_with_gross_outliers()
ROLL = datasets.swiss_roll(250)
CLOUD = np.random.default_rng(0).normal(size=(200, 4))
DIGITS = load_digits().data[:600]
SETS = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD, "digits": DIGITS}


def reached(S, chosen):
    """Mean over the rows of S of the similarity to the nearest of the first 1, 2, 3, … chosen."""
    return np.maximum.accumulate(S[:, chosen], axis=1).mean(axis=0)


# What the front page promises


@pytest.mark.parametrize("seed", range(10))
def test_gross_outliers_are_flagged_and_none_is_chosen(seed):
    data = datasets.blobs_with_gross_outliers(random_state=seed)
    model = MOSAIC(n_representatives=20).fit(data.X)
    assert len(model.representative_indices_) == 20
    assert not data.is_outlier[model.representative_indices_].any()
    assert model.is_outlier_[data.is_outlier].all()
    assert model.is_outlier_[~data.is_outlier].sum() <= 1
    assert (model.labels_[data.is_outlier] == -1).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", ["auto", 20])
def test_honest_sparse_cluster_is_no_crowd_of_outliers(seed, k):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(0.0, 0.5, size=(200, 10)), rng.normal(6.0, 2.0, size=(200, 10))])
    model = MOSAIC(k).fit(X)
    assert model.is_outlier_.mean() < 0.03
    assert (model.representative_indices_ >= 200).any()


# How many


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("centres", [8, 12])
def test_number_of_clear_blobs_is_found(seed, centres):
    X, y = make_blobs(50 * centres, centers=centres, n_features=10, random_state=seed)
    model = MOSAIC().fit(X)
    assert centres <= model.n_representatives_ <= centres + 2
    assert set(y[model.representative_indices_]) == set(range(centres))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_coverage_is_reached_and_one_fewer_does_not_reach_it(share, name, kernel):
    X = SETS[name]
    model = MOSAIC(coverage=share, kernel=kernel).fit(X)
    similarity = make_kernel(X, kernel, gamma=model.gamma_ or 1.0)
    belongs, chosen = (~model.is_outlier_).astype(float), model.representative_indices_
    covered = metrics.explained_share(similarity, chosen, sample_weight=belongs)
    assert model.coverage_ == pytest.approx(covered, abs=1e-9)
    assert covered >= share - 1e-9
    if len(chosen) > 1:
        assert metrics.explained_share(similarity, chosen[:-1], sample_weight=belongs) < share


@pytest.mark.parametrize("kernel", ["rbf", "linear", "polynomial"])
@pytest.mark.parametrize("support", [1, 5, 12.5, 60])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_every_representative_has_the_support_asked_for(name, support, kernel):
    X = SETS[name]
    model = MOSAIC(min_support=support, kernel=kernel).fit(X)
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_representatives_)
    assert sizes.min() >= support


def test_support_that_is_asked_for_does_not_make_outliers():
    """Who is an outlier does not depend on how many are asked for, or how."""
    model = MOSAIC(min_support=2).fit(CLOUD)
    assert model.is_outlier_.mean() <= 0.02
    np.testing.assert_array_equal(model.is_outlier_, MOSAIC(5).fit(CLOUD).is_outlier_)


def test_quotas_say_how_many_if_nothing_else_does():
    halves = np.arange(200) % 2
    model = MOSAIC().fit(CLOUD, groups=halves, quotas={0: 3, 1: 4})
    assert np.bincount(halves[model.representative_indices_]).tolist() == [3, 4]


# Outliers


def test_reported_outliers_may_be_chosen():
    """One that resembles nobody adds one point of 400 and comes where no other adds more."""
    report = MOSAIC(100, outliers="report").fit(GROSS.X)
    keep = MOSAIC(100, outliers="keep").fit(GROSS.X)
    assert (report.is_outlier_ == GROSS.is_outlier).all()
    np.testing.assert_array_equal(report.representative_indices_, keep.representative_indices_)
    assert np.isin(np.flatnonzero(GROSS.is_outlier), report.representative_indices_).all()
    S = rbf_kernel(GROSS.X, gamma=report.gamma_)
    gains = np.diff(reached(S, report.representative_indices_))
    assert gains[-1] < 1 / 400
    few = MOSAIC(12, outliers="report").fit(GROSS.X).representative_indices_
    assert not GROSS.is_outlier[few].any()
    assert np.diff(reached(S, few)).min() > 1 / 400
    assert (report.labels_ >= 0).all()
    np.testing.assert_array_equal(report.predict(GROSS.X), report.labels_)
    assert not keep.is_outlier_.any()
    assert keep.outlier_threshold_ == 0.0


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_declared_share_is_flagged_the_oddest_first(share):
    model = MOSAIC(10, contamination=share).fit(GROSS.X)
    flagged = np.flatnonzero(model.is_outlier_)
    assert len(flagged) == round(share * 400)
    assert set(flagged) == set(np.argsort(model.effective_count_)[: len(flagged)])
    assert not MOSAIC(10, contamination=0).fit(GROSS.X).is_outlier_.any()


def test_outlier_probability_is_the_measure_of_the_paper():
    """OP = (n‖r‖_∞ − ‖r‖₁) / ((n − 1)‖r‖_∞) of the rows of R, written out."""
    K = rbf_kernel(GROSS.X, gamma=1.0)
    model = MOSAIC(10, algorithm=Paper(alpha=20.0), kernel="precomputed", outliers="keep", tol=1e-7).fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=20.0, tol=1e-7)
    rows = np.flatnonzero(encoding.influence)
    R = np.abs(encoding.rows(rows))
    largest, n = R.max(axis=1), len(K)
    expected = (n * largest - R.sum(axis=1)) / ((n - 1) * largest)
    np.testing.assert_allclose(model.outlier_probability_[rows], expected, atol=1e-3)
    assert model.explain(int(rows[0])).outlier_probability == model.outlier_probability_[rows[0]]
    with pytest.raises(AttributeError, match=r"algorithm='paper' only\. Use effective_count_"):
        MOSAIC(10).fit(GROSS.X).outlier_probability_  # noqa: B018
    np.testing.assert_array_equal(np.flatnonzero(model.influence_), rows)


def test_new_point_far_away_is_an_outlier_and_one_in_the_midst_is_not():
    model = MOSAIC(20).fit(GROSS.X)
    centre = GROSS.X[model.representative_indices_[0]] + 1e-3
    far = np.array([1e4, -1e4])
    assert model.predict([far, centre]).tolist() == [-1, 0]
    odd, usual = model.score_samples([far, centre])
    assert odd < np.log(model.outlier_threshold_) < usual
    assert odd == pytest.approx(0.0, abs=1e-9)  # it would stand for itself alone


@pytest.mark.slow
def test_quotas_of_rare_groups_are_kept_in_large_data_within_bounds_of_memory():
    """Of more rows than can be compared a part is drawn, but of every group enough for its quota."""
    X = np.random.default_rng(0).normal(size=(18_000, 3))
    rare = np.where(np.arange(18_000) % 3600 == 7, "rare", "common")
    model = MOSAIC(12, outliers="keep").fit(X, groups=rare, quotas={"rare": 5, "common": 7})
    assert (rare[model.representative_indices_] == "rare").sum() == 5
    reached = MOSAIC(coverage=0.5, outliers="keep").fit(X)
    assert reached.n_representatives_ <= 60
    assert reached.coverage_ >= 0.5


@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud", "digits", "scattered"])
def test_selector_and_detector_call_the_same_rows_outliers(name, contamination):
    scattered = datasets.contaminate(datasets.trefoil(300, random_state=0), 0.5, random_state=1).X
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD, "digits": DIGITS, "scattered": scattered}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mosaic.SelectionWarning)
        selector = MOSAIC(10, contamination=contamination).fit(X)
        detector = MOSAICOutlierDetector(contamination).fit(X)
    np.testing.assert_array_equal(selector.is_outlier_, detector.is_outlier_)
    np.testing.assert_array_equal(selector.effective_count_, detector.effective_count_)
    assert selector.selection_.cut == detector.selection_.cut
    new = X[:50] + 0.1
    np.testing.assert_array_equal(selector.score_samples(new), detector.score_samples(new))
    np.testing.assert_array_equal(selector.predict(new) == -1, detector.predict(new) == -1)


def test_doubtful_points_are_chosen_last_and_not_left_out():
    X = datasets.contaminate(load_digits().data[:300] / 16.0, 0.3, kind="far", random_state=0).X
    with pytest.warns(mosaic.SelectionWarning, match=r"\d\d of 390 rows \(2\d %\) are taken for outliers"):
        model = MOSAIC(10).fit(X)
    warnings.simplefilter("ignore", mosaic.SelectionWarning)
    counts, cut = model.effective_count_, model.selection_.cut
    belongs = ~model.is_outlier_
    doubtful = belongs & (counts < np.sqrt(cut.count * np.median(counts[belongs])))
    assert doubtful.any()
    assert not doubtful[model.representative_indices_].any()
    again = MOSAIC(10).fit(X, exclude=np.flatnonzero(model.is_outlier_)[:1])
    np.testing.assert_array_equal(again.representative_indices_, model.representative_indices_)
    belong = int((~model.is_outlier_).sum())
    assert model.rethreshold(n_representatives=belong).n_representatives_ == belong
    assert model.rethreshold(n_representatives="auto", coverage=0.98).coverage_ >= 0.98


def test_tight_clusters_do_not_make_outliers_of_all_others():
    digits = load_digits().data[:600] / 16.0
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.uniform(digits.min(axis=0) - 0.5, digits.max(axis=0) + 0.5, size=(3, 64)), 100, axis=0)
    model = MOSAIC(20).fit(np.vstack([digits, rng.normal(centres, 0.02)]))
    assert model.is_outlier_[:600].mean() < 0.02
    assert (model.representative_indices_ >= 600).mean() < 0.3


def covered_by(model):
    """Mean similarity of the rows that belong to the nearest of the first 1, 2, 3, … picks, by the cover of all of them."""
    selection = model.selection_
    chooser = Chooser(selection)
    S = np.asarray(chooser.cover(len(selection.chosen)).between(chooser.targets, selection.chosen))
    return np.maximum.accumulate(S, axis=1).T @ chooser.weights / chooser.weights.sum()


def test_constraints_survive_exchanges():
    """Required rows stay and come first, in their order; excluded ones stay out; quotas stay filled."""
    groups = np.arange(200) % 3
    model = MOSAIC(30).fit(CLOUD, must_include=[11, 4], exclude=[0], groups=groups, quotas={0: 5, 1: 10, 2: 15})
    chosen = model.representative_indices_
    assert chosen[:2].tolist() == [11, 4]
    assert 0 not in chosen
    assert np.bincount(groups[chosen]).tolist() == [5, 10, 15]
    np.testing.assert_allclose(np.cumsum(model.selection_.gains), covered_by(model), rtol=1e-6)
    assert (np.diff(model.selection_.gains[2:]) <= 1e-12).all()


# The paper's algorithm


def naive_algorithm_1(K, encoding, share, threshold):
    """Non-zero rows by influence; of these, the novel ones; of these, the ones that are no outliers. Plain loops."""
    n = len(K)
    located = sorted(np.flatnonzero(encoding.influence), key=lambda j: -encoding.influence[j])
    gone = set()
    for place, i in enumerate(located):
        if i in gone:
            continue
        distance = {j: np.sqrt(max(K[i, i] + K[j, j] - 2 * K[i, j], 0.0)) for j in located}
        total, running = sum(distance.values()), 0.0
        for j in sorted(located, key=lambda j: -distance[j]):
            running += distance[j]
            if share < 1 and running > share * total and located.index(j) > place:
                gone.add(j)
    kept = []
    for i in located:
        row = np.abs(encoding.rows([i])[0])
        probability = (n * row.max() - row.sum()) / ((n - 1) * row.max())
        if i not in gone and probability <= threshold:
            kept.append(i)
    return kept, len(located), len(gone)


@pytest.mark.parametrize(
    ("paper", "outliers", "share", "threshold"),
    [
        (Paper(), "reject", 0.95, 1 - 1 / 159),
        (Paper(op_threshold=0.97), "reject", 0.95, 0.97),
        (Paper(diversity=0.7), "reject", 0.7, 1 - 1 / 159),
        (Paper(diversity=1.0, alpha=30.0), "reject", 1.0, 1 - 1 / 159),
        (Paper(), "keep", 0.95, 2.0),
    ],
)
def test_paper_is_algorithm_1_as_written(paper, outliers, share, threshold):
    X = np.vstack([ROLL[:150] / 5.0, 100.0 * np.random.default_rng(0).normal(size=(10, 3))])
    K = rbf_kernel(X, gamma=0.5)
    model = MOSAIC(algorithm=paper, outliers=outliers, kernel="precomputed", tol=1e-8).fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=paper.alpha or 10.0, tol=1e-8)
    expected, n_located, n_pruned = naive_algorithm_1(K, encoding, share, threshold)
    assert model.representative_indices_.tolist() == expected
    assert 0 < len(expected) <= n_located
    assert (n_pruned > 0) == (share < 1)
    if outliers != "keep":
        assert not (model.representative_indices_ >= 150).any()
    few = MOSAIC(4, algorithm=paper, outliers=outliers, kernel="precomputed", tol=1e-8).fit(K)
    assert few.representative_indices_.tolist() == expected[:4]


def test_paper_mode_has_the_settings_of_later_work():
    model = MOSAIC(algorithm="paper").fit(CLOUD)
    assert model.alpha_ == pytest.approx(10.0)
    assert model.gamma_ == pytest.approx(1.0 / (10.0 * CLOUD.var(axis=0).mean() ** 2))


@pytest.mark.parametrize(
    "constraint", [{"must_include": [0]}, {"exclude": [0]}, {"candidates": range(9)}, {"groups": [0, 1] * 100}]
)
def test_paper_mode_refuses_constraints(constraint):
    with pytest.raises(InvalidInputError, match=r"knows no constraints\. Leave algorithm at None"):
        MOSAIC(algorithm="paper").fit(CLOUD, **constraint)


# Rows out of anything


def test_selected_rows_come_as_what_they_were():
    model = MOSAIC(6).fit(CLOUD)
    rows = model.representative_indices_
    np.testing.assert_array_equal(model.select(CLOUD), CLOUD[rows])
    names = [f"image{i}.png" for i in range(200)]
    assert model.select(names) == [names[i] for i in rows]
    frame = pd.DataFrame({"name": names}, index=np.arange(200) + 1000)
    pd.testing.assert_frame_equal(model.select(frame), frame.iloc[rows])
    table = pl.DataFrame({"name": names})
    assert model.select(table).equals(table[rows])
    images = np.arange(200 * 6).reshape(200, 2, 3)
    np.testing.assert_array_equal(model.select(images), images[rows])


@pytest.mark.parametrize("rows", [CLOUD[:199], ["a"] * 201, pd.DataFrame({"a": [1]})])
def test_selecting_from_other_rows_than_those_of_fit_is_refused(rows):
    with pytest.raises(InvalidInputError, match=f"X must have the 200 rows of fit, in their order; it has {len(rows)}"):
        MOSAIC(6).fit(CLOUD).select(rows)


# Talking


def test_nothing_is_said_unless_asked(capfd):
    MOSAIC(5).fit(CLOUD)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [MOSAIC, MOSAICSampler])
def test_progress_goes_to_stderr_and_not_to_stdout(capsys, kind):
    kind(5, verbose=True).fit(CLOUD)
    said, told = capsys.readouterr()
    assert said == ""
    lines = told.splitlines()
    assert all(line.startswith(f"[{kind.__name__}]") for line in lines)
    stages = [line.split(" s  ")[1].split(",")[0] for line in lines]
    assert stages == ["similarities", "effective counts", "choosing", "5 representatives"]


@pytest.mark.parametrize("model", [MOSAIC(5), MOSAICSampler(5), MOSAICOutlierDetector()], ids=lambda m: type(m).__name__)
def test_a_refused_refit_leaves_the_model_as_it_was(model):
    frame = pd.DataFrame({"x": CLOUD[:, 0], "y": CLOUD[:, 1], "kind": np.where(CLOUD[:, 2] > 0, "a", "b")})
    model.fit(frame)
    before = {name: getattr(model, name) for name in ("table_", "n_features_in_", "feature_names_in_", "selection_")}
    refused = {
        "an array": (CLOUD[:, :2], {"sample_weight": -np.ones(200)}),
        "another frame": (frame.rename(columns={"x": "z"}), {"sample_weight": -np.ones(200)}),
        "numbers that are missing": (np.full((200, 2), np.nan), {}),
    }
    for X, arguments in refused.values():
        with pytest.raises(InvalidInputError):
            model.fit(X, **arguments)
        assert all(getattr(model, name) is value for name, value in before.items())
    assert str(model.explain(3))


def test_a_first_fit_that_is_refused_sets_nothing():
    model = MOSAIC(5)
    with pytest.raises(InvalidInputError):
        model.fit(CLOUD, sample_weight=-np.ones(200))
    assert vars(model) == vars(MOSAIC(5))


@pytest.mark.parametrize(("share", "k"), [(0.05, 20), (0.0001, 1), (np.float32(0.5), 200)])
def test_share_of_the_points_is_a_number_of_them(share, k):
    assert MOSAIC(share).fit(GROSS.X).n_representatives_ == k


def test_nobody_is_an_outlier_where_outliers_are_kept():
    model = MOSAIC(5, outliers="keep", contamination=0.3).fit(GROSS.X)
    assert not model.is_outlier_.any()
    assert (model.labels_ >= 0).all()
    assert (model.predict(100.0 * GROSS.X) >= 0).all()


def test_as_many_are_chosen_as_have_the_support_which_is_weight():
    X, _ = make_blobs([30, 30, 30], centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    for support, weight, k in ((30, 1, 3), (31, 1, 1), (60, 2, 3), (61, 2, 1)):
        model = MOSAIC(min_support=support, outliers="keep").fit(X, sample_weight=np.full(90, weight))
        assert model.n_representatives_ == k, (support, weight)
        assert np.bincount(model.labels_, minlength=k).min() * weight >= support
