"""What was decided about the data, in sentences that are true."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, MOSAICOutlierDetector, Paper, datasets
from mosaic.kernels import EffectiveCount

BLOBS = datasets.blobs_with_gross_outliers()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"gamma": EffectiveCount(5.0)}, "Bandwidth {gamma:.3g}, as it was set."),
        ({"kernel": "rbf"}, "Bandwidth {gamma:.3g}: so that a point in a dense place resembles 80 of 400 points, a fifth of all"),
        ({"kernel": "laplacian"}, "Bandwidth {gamma:.3g}: so that a point in a dense place resembles 80 of 400 points"),
        ({"kernel": "linear"}, "Similarity: linear, which has no bandwidth."),
        ({"kernel": "cosine"}, "Similarity: cosine, which has no bandwidth."),
        ({"kernel": "diffusion"}, "Similarity: diffusion, which has no bandwidth."),
        ({"kernel": rbf_kernel}, "Similarity: as given, which has no bandwidth."),
        ({"kernel": "precomputed"}, "Similarity: precomputed, which has no bandwidth."),
        ({"kernel": "polynomial"}, "outliers"),
    ],
)
@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
def test_similarity_and_its_bandwidth(settings, expected):
    X = rbf_kernel(BLOBS.X) if settings.get("kernel") == "precomputed" else BLOBS.X + 3.0
    for estimator in (MOSAIC(8, **settings), MOSAICOutlierDetector(**settings)):
        told = estimator.fit(X).explain()
        assert expected.format(gamma=estimator.gamma_ or 0.0) in str(told)
        assert all(text.endswith(".") for text in told)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_representatives": 7}, "7 representatives: the number that was given."),
        ({"n_representatives": 1}, "1 representative: the number that was given."),
        ({}, "as many as there are clear clusters"),
        ({"coverage": 0.8}, "as many as a coverage of 80 % needs"),
        ({"algorithm": "paper"}, "that remain after pruning and without outliers"),
        ({"algorithm": "paper"}, "Bandwidth {model.gamma_:.3g}, by gamma='median'."),
        ({"algorithm": "paper"}, "Strength {model.lam_:.3g}, {model.alpha_:.3g} times the critical one"),
        ({}, "8 outliers: too few similar rows. On clean data this rule rarely flags more than 1 %"),
        ({"outliers": "keep"}, "Outliers were not looked for."),
        ({"contamination": 0.0}, "No outliers: the given contamination."),
        ({"algorithm": Paper(op_threshold=1.0)}, "No outliers: no count is below the threshold."),
        ({"contamination": 0.05}, "20 outliers: the given contamination."),
    ],
)
def test_number_and_outliers_are_told(settings, expected):
    model = MOSAIC(**settings).fit(BLOBS.X)
    assert expected.format(model=model) in str(model.explain())


def test_quotas_are_a_number_that_was_given():
    model = MOSAIC().fit(BLOBS.X, groups=np.repeat(["a", "b"], 200), quotas={"a": 3, "b": 2})
    assert "5 representatives: the number that was given." in model.explain()


def test_where_many_are_alone_to_be_alone_is_said_not_to_be_odd():
    X = 100.0 * np.random.default_rng(0).normal(size=(60, 3))
    told = str(MOSAICOutlierDetector(gamma=1.0).fit(X).explain())
    assert "No outliers: more than 5 % of the rows are alone, so being alone is not unusual here." in told


def test_selection_certificate_and_estimator_have_the_same_sentences():
    model = MOSAIC(6).fit(BLOBS.X)
    assert model.explain() == model.selection_.decisions
    assert str(model.explain()).splitlines() == list(model.explain())
