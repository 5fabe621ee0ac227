"""What scikit-learn and imbalanced-learn expect of estimators, and how MOSAIC works with their tools."""

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from imblearn.pipeline import Pipeline as SamplerPipeline
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone, is_clusterer, is_outlier_detector
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler, Paper, Polynomial

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X, Y = make_blobs(80, centers=4, n_features=3, random_state=3)
NEW = np.random.default_rng(1).normal(scale=6.0, size=(15, 3))

CONFIGURATIONS = [MOSAIC(), MOSAIC(algorithm="paper"), MOSAIC(kernel="precomputed")]
CONFIGURATIONS += [MOSAICSampler(), MOSAICOutlierDetector()]


#: Checks that cannot pass: of which estimator, why, and the words that show that the cause is this.
NO_OUTLIER = ("the check expects an outlier among three clean blobs", r"ACTUAL: array\(\[1\]\)\s+DESIRED: array\(\[-1,  1\]\)")
EXCEPTIONS = {
    "MOSAICOutlierDetector()": dict.fromkeys(("outliers_train", "outliers_fit_predict"), NO_OUTLIER),
    "MOSAIC(kernel='precomputed')": {
        "positive_only_tag_during_fit": ("less its mean, a similarity is indefinite", r"its diagonal entry \d+ is -"),
        "estimators_nan_inf": ("it predicts for three columns", "X has 3 features, but MOSAIC is expecting 10 features"),
        "clustering": ("it passes points where similarities are due", r"must be square; got shape \(50, 2\)"),
    },
}


def known_exceptions(estimator):
    return {f"check_{name}": why for name, (why, _) in EXCEPTIONS.get(repr(estimator), {}).items()}


@pytest.mark.filterwarnings("ignore:.*taken for outliers:mosaic.SelectionWarning")  # some checks pass zeros for the most part
@pytest.mark.filterwarnings("ignore:.*(label does not fit|were not judged):mosaic.SelectionWarning")  # labels are random
@parametrize_with_checks(CONFIGURATIONS, expected_failed_checks=known_exceptions)
def test_estimator_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("name", "check"), [(name, check) for name, checks in EXCEPTIONS.items() for check in checks])
def test_known_exceptions_have_the_stated_cause(name, check):
    estimator = next(one for one in CONFIGURATIONS if repr(one) == name)
    with pytest.raises((AssertionError, ValueError)) as caught:
        getattr(estimator_checks, f"check_{check}")(type(estimator).__name__, estimator)
    messages, error = [], caught.value
    while error is not None:
        messages.append(str(error))
        error = error.__cause__ or error.__context__
    assert any(re.search(EXCEPTIONS[name][check][1], message) for message in messages), messages


# The same the other way round: without these causes all is well.


def test_clean_blobs_have_no_outlier_unless_there_is_one_or_a_share_is_asked_for():
    blobs = make_blobs(300, random_state=0)[0]
    assert (MOSAICOutlierDetector().fit_predict(blobs) == 1).all()
    assert (MOSAICOutlierDetector(0.1).fit_predict(blobs) == -1).sum() == 30
    spoilt = np.vstack([blobs, [[60.0, -40.0]]])
    np.testing.assert_array_equal(np.flatnonzero(MOSAICOutlierDetector().fit_predict(spoilt) == -1), [300])


def test_cosine_takes_sparse_rows_and_whole_numbers_that_have_a_direction():
    rows = np.random.default_rng(0).integers(0, 3, size=(40, 5))
    rows[:, 0] = 1
    expected = MOSAIC(5, kernel="cosine").fit(rows).representative_indices_
    for given in (sp.csr_array(rows), sp.csr_matrix(rows), rows.astype(np.float32)):
        np.testing.assert_array_equal(MOSAIC(5, kernel="cosine").fit(given).representative_indices_, expected)
    rows[7] = 0
    with pytest.raises(InvalidInputError, match="1 rows are zero, the first is row 7 of X"):
        MOSAIC(5, kernel="cosine").fit(rows)


@pytest.mark.parametrize("estimator", [MOSAIC(kernel="precomputed"), MOSAICOutlierDetector(kernel="precomputed")])
def test_similarities_with_missing_or_infinite_entries_are_refused_in_fit_and_afterwards(estimator):
    K = rbf_kernel(X, gamma=0.1)
    for value, name in ((np.nan, "NaN"), (np.inf, "inf")):
        bad = K.copy()
        bad[0, 0] = value
        with pytest.raises(InvalidInputError, match=name):
            clone(estimator).fit(bad)
        with pytest.raises(InvalidInputError, match=name):
            clone(estimator).fit(K).predict(bad)


# Objects


def test_clone_has_the_parameters_and_nothing_that_was_learned_and_repr_names_what_differs():
    model = MOSAIC(6, kernel="laplacian", contamination=0.1).fit(X)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not [name for name in vars(fresh) if name.endswith("_") or name.startswith("_")]
    np.testing.assert_array_equal(fresh.fit(X).representative_indices_, model.representative_indices_)
    assert repr(MOSAIC()) == "MOSAIC()"
    assert repr(MOSAIC(3, kernel="linear")) == "MOSAIC(kernel='linear', n_representatives=3)"


def test_parameters_are_read_and_written_by_name_and_a_fit_keeps_those_it_was_made_with():
    model = MOSAIC(7)
    assert model.get_params()["n_representatives"] == 7
    assert set(model.get_params()) == set(MOSAICSampler().get_params()) - {"sampling_strategy", "suspects"}
    assert model.set_params(n_representatives=3, kernel="linear") is model
    assert (model.n_representatives, model.kernel) == (3, "linear")
    model = MOSAIC(5, kernel=Polynomial(2), algorithm="paper").set_params(algorithm__alpha=5.0, kernel__degree=4)
    assert (model.algorithm, model.kernel) == (Paper(alpha=5.0), Polynomial(degree=4))
    assert model.get_params()["algorithm__alpha"] == 5.0
    copied = clone(model)
    assert copied.algorithm == model.algorithm
    assert copied.algorithm is not model.algorithm
    model = MOSAIC(5, algorithm=Paper(alpha=5.0), gamma=0.1).fit(X)
    model.algorithm.alpha = 50.0
    assert model.alpha_ == pytest.approx(5.0)


def test_kinds_of_estimators_are_told_by_their_tags_and_the_sampler_does_nothing_but_choose():
    assert is_clusterer(MOSAIC())
    assert is_clusterer(MOSAICSampler())
    assert is_outlier_detector(MOSAICOutlierDetector())
    for kind in (MOSAIC, MOSAICSampler, MOSAICOutlierDetector):
        assert kind().__sklearn_tags__().input_tags.sparse
        assert not kind().__sklearn_tags__().input_tags.pairwise
        assert kind(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    for name in (*ANSWERS, "score"):
        assert hasattr(MOSAIC(), name)
        assert not hasattr(MOSAICSampler(), name)


ANSWERS = ["predict", "transform", "score_samples"]


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "diffusion"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_copies_answer_as_the_original(kernel, duplicate):
    model = MOSAIC(6, kernel=kernel).fit(X)
    twin = duplicate(model)
    for name in ANSWERS:
        np.testing.assert_array_equal(getattr(twin, name)(NEW), getattr(model, name)(NEW))
    assert twin.score(NEW) == model.score(NEW)
    assert twin.certificate_ == model.certificate_
    np.testing.assert_array_equal(twin.rethreshold(n_representatives=4).labels_, model.rethreshold(n_representatives=4).labels_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MOSAIC(alpha=3), r"MOSAIC has no parameter alpha. Did you mean MOSAIC\(algorithm=Paper\(alpha=…\)\)\?"),
        (lambda: MOSAIC(k=3), r"MOSAIC has no parameter k. Did you mean MOSAIC\(n_representatives=…\)\?"),
        (lambda: MOSAIC().set_params(mode="paper"), r"no parameter mode. Did you mean MOSAIC\(algorithm='paper'\)\?"),
        (lambda: MOSAICSampler(coverge=0.5), r"MOSAICSampler has no parameter coverge. Did you mean coverage\?"),
        (lambda: MOSAICOutlierDetector(alpha=3), "MOSAICOutlierDetector has no parameter alpha. It has contamination, "),
        (lambda: Paper(alfa=3), r"Paper has no parameter alfa. Did you mean alpha\?"),
        (lambda: MOSAIC().set_params(algorithm__alpha=3), r"algorithm has no settings.* Set algorithm=Paper\(alpha=…\)"),
    ],
)
def test_a_name_that_is_unknown_is_answered_with_the_one_that_was_meant(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# Tools of scikit-learn


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transform_is_the_similarity_to_the_representatives_by_rank_also_in_frames(library):
    model = MOSAIC(4).fit(X)
    expected = rbf_kernel(NEW, X[model.representative_indices_], gamma=model.gamma_)
    np.testing.assert_allclose(model.transform(NEW), expected, rtol=1e-12)
    np.testing.assert_allclose(model.fit_transform(X)[model.representative_indices_].diagonal(), 1.0, rtol=1e-12)
    frame = model.set_output(transform=library).transform(NEW)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == list(model.get_feature_names_out()) == ["mosaic0", "mosaic1", "mosaic2", "mosaic3"]
    np.testing.assert_allclose(frame.to_numpy(), expected, rtol=1e-12)
    assert len(model.rethreshold(n_representatives=2).transform(NEW).columns) == 2


def test_pipeline_scales_before_it_clusters_and_routes_weights():
    stretched, weights = X * [1.0, 100.0, 0.01], np.random.default_rng(0).integers(0, 4, len(X))
    scaled = StandardScaler().fit_transform(stretched)
    pipeline = make_pipeline(StandardScaler(), MOSAIC(6))
    direct, weighted = MOSAIC(6).fit(scaled), MOSAIC(6).fit(scaled, sample_weight=weights)
    np.testing.assert_array_equal(pipeline.fit_predict(stretched), direct.labels_)
    np.testing.assert_array_equal(pipeline.predict(stretched), direct.labels_)
    assert pipeline.score(stretched) == pytest.approx(direct.score(scaled))
    assert not np.array_equal(weighted.representative_indices_, direct.representative_indices_)
    with config_context(enable_metadata_routing=True):
        step = MOSAIC(6).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), step)
        pipeline.fit(stretched, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].representative_indices_, weighted.representative_indices_)


def test_grid_search_finds_the_settings_with_the_best_held_out_score():
    folds = KFold(3, shuffle=True, random_state=0)
    grid = {"algorithm__alpha": [5.0, 100.0], "gamma": [0.02, 0.1]}
    search = GridSearchCV(MOSAIC(algorithm="paper"), grid, cv=folds).fit(X)
    by_hand = []
    for settings in search.cv_results_["params"]:
        model = MOSAIC(algorithm=Paper(alpha=settings["algorithm__alpha"]), gamma=settings["gamma"])
        by_hand.append(np.mean([model.fit(X[train]).score(X[test]) for train, test in folds.split(X)]))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-12)
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(by_hand))]


def test_score_is_the_coverage_of_held_out_rows_that_belong():
    model = MOSAIC(6, scale=False).fit(X)
    D, belongs = cdist(X, X)[~model.is_outlier_], ~model.is_outlier_
    mean = D[:, belongs].mean(axis=0).min()
    new = NEW[model.predict(NEW) >= 0]
    errors = cdist(new, X[model.representative_indices_]).min(axis=1) / mean
    assert model.score(NEW) == pytest.approx(1.0 - errors.mean(), rel=1e-9)
    assert model.score(X) == pytest.approx(model.coverage_, rel=1e-9)


# Tools of imbalanced-learn


def test_sampler_chooses_what_the_estimator_chooses_and_thins_the_training_data_of_a_classifier_only():
    scaled = StandardScaler().fit_transform(X_IRIS)
    sampler = MOSAICSampler(30)
    X_few, y_few = sampler.fit_resample(scaled)
    np.testing.assert_array_equal(sampler.sample_indices_, MOSAIC(30).fit(scaled).representative_indices_)
    np.testing.assert_array_equal(X_few, scaled[sampler.sample_indices_])
    assert y_few is None
    sampler = MOSAICSampler(30, suspects="keep")
    sampler.fit_resample(scaled, Y_IRIS)
    rows = sampler.sample_indices_
    pipeline = SamplerPipeline([("scale", StandardScaler()), ("few", clone(sampler)), ("fit", LogisticRegression())])
    pipeline.fit(X_IRIS, Y_IRIS)
    direct = LogisticRegression().fit(scaled[rows], Y_IRIS[rows])
    np.testing.assert_array_equal(pipeline.predict(X_IRIS), direct.predict(scaled))
    assert pipeline.score(X_IRIS, Y_IRIS) > 0.9
