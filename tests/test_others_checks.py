"""The checks that imbalanced-learn and PyOD run on their own estimators, on ours."""

import numpy as np
import pytest
from imblearn.utils.estimator_checks import estimator_checks_generator
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from mosaic import MOSAICOutlierDetector, MOSAICSampler
from mosaic.estimators.adapters import PyODDetector

pytestmark = pytest.mark.slow

#: MOSAICSampler draws fewer rows and does not balance classes: y may be missing, or of one class.
NO_BALANCING = {
    "check_samplers_one_label": "one class can be represented",
    "check_samplers_fit": "fit knows no classes, so there is no sampling_strategy_",
}


CHECKS = {check.func.__name__: check for _, check in estimator_checks_generator(MOSAICSampler(10))}


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - NO_BALANCING))
def test_sampler_passes_the_checks_of_imbalanced_learn(name):
    CHECKS[name](MOSAICSampler(10))


@pytest.mark.parametrize("name", sorted(NO_BALANCING))
def test_checks_that_do_not_apply_are_the_ones_about_balancing(name):
    with pytest.raises(AssertionError):
        CHECKS[name](MOSAICSampler(10))


# PyOD: what its test of every detector asks, for ours.


@pytest.fixture(scope="module")
def data():
    generate = pytest.importorskip("pyod.utils.data").generate_data
    return generate(n_train=200, n_test=100, contamination=0.1, random_state=42)


@pytest.fixture(scope="module")
def detector(data):
    return PyODDetector(contamination=0.1).fit(data[0])


def test_scores_find_the_outliers(data, detector):
    _, X_test, _, y_test = data
    assert roc_auc_score(y_test, detector.decision_function(X_test)) >= 0.8


def test_labels_of_new_rows(data, detector):
    labels, confidence = detector.predict(data[1], return_confidence=True)
    assert set(labels) <= {0, 1}
    assert confidence.shape == labels.shape
    assert 0 <= confidence.min() <= confidence.max() <= 1


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities(data, detector, method):
    found = detector.predict_proba(data[1], method=method)
    assert found.shape == (100, 2)
    assert 0 <= found.min() <= found.max() <= 1
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_fit_predict(data, detector):
    with pytest.warns(FutureWarning, match="deprecated"):  # by PyOD itself
        np.testing.assert_array_equal(clone(detector).fit_predict(data[0]), detector.labels_)


def test_clone_keeps_the_settings():
    pytest.importorskip("pyod")
    copy = clone(PyODDetector(contamination=0.2, detector=MOSAICOutlierDetector(tol=1e-2)))
    assert copy.contamination == 0.2
    assert copy.detector.tol == 1e-2


def test_fitted_detector_as_one_of_pyod_keeps_its_threshold(data):
    fitted = MOSAICOutlierDetector().fit(data[0])
    face = fitted.to_pyod()
    np.testing.assert_array_equal(face.predict(data[1]), (1 - fitted.predict(data[1])) // 2)
    np.testing.assert_array_equal(face.labels_, fitted.is_outlier_)


def test_its_scores_combine_with_those_of_other_detectors(data):
    pytest.importorskip("pyod")
    from pyod.models.knn import KNN
    from pyod.utils.utility import standardizer

    X, X_test, _, y_test = data
    detectors = [KNN().fit(X), PyODDetector().fit(X)]
    scores = standardizer(np.column_stack([detector.decision_function(X_test) for detector in detectors]))
    assert roc_auc_score(y_test, scores.mean(axis=1)) >= 0.8
