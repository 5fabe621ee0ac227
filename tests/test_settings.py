"""What was decided about the data, in sentences that are true."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.inspection import explain, summary
from mosaic.kernels import EffectiveCount, make_kernel
from mosaic.tuning import typical_count

BLOBS = datasets.blobs_with_gross_outliers()


def sentence(estimator, start):
    return next(text for text in estimator.explain() if text.startswith(start))


@pytest.mark.parametrize("count", [5.0, 40.0])
def test_number_of_points_that_one_resembles_is_that_of_the_kernel(count):
    model = MOSAIC(5, gamma=EffectiveCount(count)).fit(BLOBS.X)
    assert f"as it was set; a typical point resembles about {count:.0f} points" in sentence(model, "Bandwidth")
    assert typical_count(model._solved.kernel) == pytest.approx(count, rel=1e-6)
    share = 400 / 8
    assert f"resembles about {share:.0f} points, itself included, its share" in sentence(
        MOSAIC(8).fit(BLOBS.X), "Bandwidth"
    )


def test_wider_kernel_than_wanted_says_why():
    X = np.random.default_rng(0).normal(size=(1200, 12))
    assert "needs a higher rank than is affordable" in sentence(MOSAIC(100, max_rank=60).fit(X), "Bandwidth")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_representatives": 7}, "7 representatives: as was asked for."),
        ({}, "where more of them add little"),
        ({"coverage": 0.8}, "as many as explain 80 %"),
        ({"min_support": 30}, "as many as can each stand for 30 points"),
        ({"mode": "paper"}, "what pruning and outliers leave"),
    ],
)
def test_where_the_number_comes_from(settings, expected):
    assert expected in str(MOSAIC(**settings).fit(BLOBS.X).explain())


def test_quotas_are_asked_for():
    groups = np.repeat(["a", "b"], 200)
    model = MOSAIC(coverage=0.5).fit(BLOBS.X, groups=groups, quotas={"a": 3, "b": 2})
    assert "5 representatives: as was asked for." in model.explain()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "8 outliers: no crowd stands apart"),
        ({"outliers": "keep"}, "Outliers were not looked for."),
        ({"contamination": 0.05}, "20 outliers: effective counts below"),
    ],
)
def test_how_outliers_were_decided_on(settings, expected):
    assert expected in str(MOSAIC(5, **settings).fit(BLOBS.X).explain())


def test_valley_is_told_with_its_probability_and_scale():
    data = datasets.contaminate(datasets.trefoil(300, random_state=0), 0.5, kind="uniform", random_state=1)
    for estimator, narrow in ((MOSAIC(10), True), (MOSAICOutlierDetector(), False)):
        told = estimator.fit(data.X).explain()[-1]
        assert f"{estimator.is_outlier_.sum()} outliers: a valley divides the effective counts (p = " in told
        assert ("a typical point resembles five" in told) == narrow


def test_detector_names_both_scales_of_few_points_too():
    detector = MOSAICOutlierDetector()
    assert "resembles 5 of them, and 80." in detector.fit(BLOBS.X).explain()[1]
    assert "one of 60 reference points resembles 5 of them, and 30." in detector.fit(BLOBS.X[:60]).explain()[1]


@pytest.mark.parametrize(
    "kernel", ["laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed", "function"]
)
def test_every_kernel_is_explained(kernel):
    X = BLOBS.X[:80] + 3.0
    if kernel == "precomputed":
        X = rbf_kernel(X)
    given = rbf_kernel if kernel == "function" else kernel
    for estimator in (MOSAIC(5, kernel=given), MOSAICOutlierDetector(kernel=given)):
        told = explain(estimator.fit(X))
        assert all(text.endswith(".") for text in told)
        assert "affordable" not in str(told)


def test_certificate_and_summary_have_the_same_sentences():
    model = MOSAIC(6).fit(BLOBS.X)
    assert model.certificate_.settings == model.explain()
    assert summary(model, certificate=False).settings["sentences"] == list(model.explain())


def test_typical_count_of_a_kernel_without_unit_diagonal(rng):
    X = rng.normal(size=(50, 3))
    K = X @ X.T
    off = (K / np.diag(K)) ** 2
    np.fill_diagonal(off, 0.0)
    assert typical_count(make_kernel(X, "linear")) == pytest.approx(np.median(1.0 + off.sum(axis=0)))
