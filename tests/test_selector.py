"""MOSAIC, the estimator: how many it chooses, whom it rejects, and what becomes of the rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler, Paper, datasets
from oracles import outlier_probability, paper_admm

GROSS = datasets.blobs_with_gross_outliers()
ROLL = datasets.swiss_roll(250)
CLOUD = np.random.default_rng(0).normal(size=(200, 4))
DIGITS = load_digits().data[:600]
SETS = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD, "digits": DIGITS}


@pytest.mark.parametrize("seed", range(10))
def test_gross_outliers_are_flagged_and_none_is_chosen_also_among_new_rows(seed):
    data = datasets.blobs_with_gross_outliers(random_state=seed)
    model = MOSAIC(n_representatives=20).fit(data.X)
    assert len(model.representative_indices_) == 20
    assert not data.is_outlier[model.representative_indices_].any()
    assert model.is_outlier_[data.is_outlier].all()
    assert model.is_outlier_[~data.is_outlier].sum() <= 1
    assert (model.labels_[data.is_outlier] == -1).all()
    far, centre = np.array([1e4, -1e4]), data.X[model.representative_indices_[0]] + 1e-3
    assert model.predict([far, centre]).tolist() == [-1, 0]
    odd, usual = model.score_samples([far, centre])
    assert odd < np.log(model.outlier_threshold_) < usual
    assert odd == pytest.approx(0.0, abs=1e-9)  # it would stand for itself alone
    assert MOSAIC(0.05).fit(data.X).n_representatives_ == 20


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("centres", [8, 12])
def test_number_of_clear_blobs_is_found(seed, centres):
    X, y = make_blobs(50 * centres, centers=centres, n_features=10, random_state=seed)
    model = MOSAIC().fit(X)
    assert centres <= model.n_representatives_ <= centres + 2
    assert set(y[model.representative_indices_]) == set(range(centres))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_coverage_is_reached_and_one_fewer_does_not_reach_it(name, kernel):
    X = SETS[name]
    for share in (0.3, 0.7):
        model = MOSAIC(coverage=share, kernel=kernel).fit(X)
        assert model.coverage_ >= share
        fewer = model.selection_.measure.along(model.selection_.chosen[:-1])
        assert len(fewer) == 0 or fewer[-1] < share


def test_reported_outliers_may_be_chosen():
    """One that resembles nobody adds one point of 400 and comes where no other adds more."""
    report = MOSAIC(100, outliers="report").fit(GROSS.X)
    keep = MOSAIC(100, outliers="keep").fit(GROSS.X)
    assert (report.is_outlier_ == GROSS.is_outlier).all()
    np.testing.assert_array_equal(report.representative_indices_, keep.representative_indices_)
    assert np.isin(np.flatnonzero(GROSS.is_outlier), report.representative_indices_).all()
    few = MOSAIC(12, outliers="report").fit(GROSS.X).representative_indices_
    assert not GROSS.is_outlier[few].any()
    S = rbf_kernel(GROSS.X, gamma=report.gamma_)
    many = report.representative_indices_
    of_many, of_few = (np.maximum.accumulate(S[:, rows], axis=1).mean(axis=0) for rows in (many, few))
    assert np.diff(of_many)[-1] < 1 / 400 < np.diff(of_few).min()
    assert (report.labels_ >= 0).all()
    np.testing.assert_array_equal(report.predict(GROSS.X), report.labels_)
    assert not keep.is_outlier_.any()
    assert keep.outlier_threshold_ == 0.0
    assert (keep.predict(100.0 * GROSS.X) >= 0).all()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_declared_share_is_flagged_the_oddest_first(share):
    model = MOSAIC(10, contamination=share).fit(GROSS.X)
    flagged = np.flatnonzero(model.is_outlier_)
    assert len(flagged) == round(share * 400)
    assert set(flagged) == set(np.argsort(model.effective_count_)[: len(flagged)])
    assert not MOSAIC(10, contamination=0).fit(GROSS.X).is_outlier_.any()


def test_outlier_probability_is_the_measure_of_the_paper_and_no_other_mode_has_it():
    X = GROSS.X[-80:]
    K = rbf_kernel(X, gamma=1.0)
    model = MOSAIC(algorithm=Paper(alpha=20.0), kernel="precomputed", outliers="keep").fit(K)
    R = paper_admm(K, K, model.lam_)
    rows = np.flatnonzero(R.any(axis=1))
    np.testing.assert_array_equal(np.flatnonzero(model.influence_), rows)
    np.testing.assert_allclose(model.outlier_probability_[rows], outlier_probability(R[rows]), atol=1e-3)
    assert model.explain(int(rows[0])).outlier_probability == model.outlier_probability_[rows[0]]
    with pytest.raises(AttributeError, match=r"algorithm='paper' only\. Use effective_count_"):
        MOSAIC(10).fit(GROSS.X).outlier_probability_  # noqa: B018


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


def test_constraints_survive_exchanges():
    """Required rows stay and come first, in their order; excluded ones stay out; quotas stay filled."""
    groups = np.arange(200) % 3
    model = MOSAIC(30).fit(CLOUD, must_include=[11, 4], exclude=[0], groups=groups, quotas={0: 5, 1: 10, 2: 15})
    chosen = model.representative_indices_
    assert chosen[:2].tolist() == [11, 4]
    assert 0 not in chosen
    assert np.bincount(groups[chosen]).tolist() == [5, 10, 15]
    assert (np.diff(model.selection_.gains[2:]) <= 1e-12).all()
    by_quotas = MOSAIC().fit(CLOUD, groups=groups, quotas={0: 3, 1: 4, 2: 1})  # which say how many if nothing else does
    assert np.bincount(groups[by_quotas.representative_indices_]).tolist() == [3, 4, 1]


def test_selected_rows_come_as_what_they_were():
    model = MOSAIC(6).fit(CLOUD)
    names, images = [f"image{i}.png" for i in range(200)], np.arange(200 * 6).reshape(200, 2, 3)
    assert model.select(names) == [names[i] for i in model.representative_indices_]
    np.testing.assert_array_equal(model.select(images), images[model.representative_indices_])
    for other in (CLOUD[:199], ["a"] * 201, pd.DataFrame({"a": [1]})):
        with pytest.raises(InvalidInputError, match=f"X must have the 200 rows of fit, in their order; it has {len(other)}"):
            model.select(other)


@pytest.mark.parametrize("kind", [MOSAIC, MOSAICSampler])
def test_progress_goes_to_stderr_and_not_to_stdout(capsys, kind):
    kind(5).fit(CLOUD)
    assert capsys.readouterr() == ("", "")
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
    empty = vars(model).copy()
    with pytest.raises(InvalidInputError):
        model.fit(CLOUD, sample_weight=-np.ones(200))
    assert vars(model) == empty
    model.fit(frame)
    before = {name: getattr(model, name) for name in ("encoder_", "n_features_in_", "feature_names_in_", "selection_")}
    for X, weight in ((CLOUD[:, :2], -1.0), (frame.rename(columns={"x": "z"}), -1.0), (np.full((200, 2), np.nan), 1.0)):
        with pytest.raises(InvalidInputError):
            model.fit(X, sample_weight=np.full(200, weight))
        assert all(getattr(model, name) is value for name, value in before.items())
    assert str(model.explain(3))
