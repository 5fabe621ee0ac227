"""The checks that imbalanced-learn and PyOD run on their own estimators, on ours."""

import numpy as np
import pytest
from imblearn.utils.estimator_checks import estimator_checks_generator
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from mosaic import MOSAICOutlierDetector, MOSAICSampler
from mosaic.estimators.adapters import PyODDetector

pytestmark = pytest.mark.slow

#: MOSAICSampler draws fewer rows and does not balance classes: y may be of one class.
NO_BALANCING = {"check_samplers_one_label": "one class can be represented"}


CHECKS = {check.func.__name__: check for _, check in estimator_checks_generator(MOSAICSampler(10))}


@pytest.mark.filterwarnings("ignore:.*(label does not fit|were not judged):mosaic.SelectionWarning")  # their classes overlap
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


def test_scores_labels_and_probabilities_of_new_rows(data, detector):
    _, X_test, _, y_test = data
    assert roc_auc_score(y_test, detector.decision_function(X_test)) >= 0.8
    labels, confidence = detector.predict(X_test, return_confidence=True)
    assert set(labels) <= {0, 1}
    assert confidence.shape == labels.shape
    assert 0 <= confidence.min() <= confidence.max() <= 1
    for method in ("linear", "unify"):
        found = detector.predict_proba(X_test, method=method)
        assert found.shape == (100, 2)
        assert 0 <= found.min() <= found.max() <= 1
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    with pytest.warns(FutureWarning, match="deprecated"):  # by PyOD itself
        np.testing.assert_array_equal(clone(detector).fit_predict(data[0]), detector.labels_)
    copy = clone(PyODDetector(contamination=0.2, detector=MOSAICOutlierDetector(max_samples=64)))
    assert (copy.contamination, copy.detector.max_samples) == (0.2, 64)


@pytest.mark.filterwarnings("ignore:A group of:mosaic.SelectionWarning")
def test_a_fitted_detector_keeps_its_threshold_and_its_scores_combine_with_those_of_others(data):
    pytest.importorskip("pyod")
    from pyod.models.knn import KNN
    from pyod.utils.utility import standardizer

    X, X_test, _, y_test = data
    fitted = MOSAICOutlierDetector().fit(X)
    face = fitted.to_pyod()
    np.testing.assert_array_equal(face.predict(X_test), (1 - fitted.predict(X_test)) // 2)
    np.testing.assert_array_equal(face.labels_, fitted.is_outlier_)
    detectors = [KNN().fit(X), PyODDetector().fit(X)]
    scores = standardizer(np.column_stack([detector.decision_function(X_test) for detector in detectors]))
    assert roc_auc_score(y_test, scores.mean(axis=1)) >= 0.8
