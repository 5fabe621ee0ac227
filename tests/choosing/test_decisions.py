"""What was decided about the data, in sentences that are true."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, MOSAICOutlierDetector, SelectionWarning, datasets
from mosaic.kernels import EffectiveCount

BLOBS = datasets.blobs_with_gross_outliers()


def sentence(estimator, start):
    return next(text for text in estimator.explain() if text.startswith(start))


@pytest.mark.parametrize("count", [5.0, 40.0])
def test_bandwidth_that_was_set_is_named_as_such(count):
    for estimator in (MOSAIC(5, gamma=EffectiveCount(count)), MOSAICOutlierDetector(gamma=EffectiveCount(count))):
        estimator.fit(BLOBS.X)
        assert sentence(estimator, "Bandwidth") == f"Bandwidth {estimator.gamma_:.3g}, as it was set."


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_bandwidth_that_was_found_says_how_many_points_resemble_one(kernel):
    n = len(BLOBS.X)
    for estimator in (MOSAIC(8, kernel=kernel), MOSAICOutlierDetector(kernel=kernel)):
        told = sentence(estimator.fit(BLOBS.X), "Bandwidth")
        assert told.startswith(f"Bandwidth {estimator.gamma_:.3g}: ")
        assert f"resembles {0.2 * n:,.0f} of {n:,} points, a fifth of all" in told


def test_bandwidth_of_paper_mode_is_by_its_rule():
    model = MOSAIC(5, algorithm="paper").fit(BLOBS.X)
    assert sentence(model, "Bandwidth") == f"Bandwidth {model.gamma_:.3g}, by the paper's rule."
    assert f"Strength {model.lam_:.3g}, {model.alpha_:.3g} times the critical one" in str(model.explain())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_representatives": 7}, "7 representatives: the number that was given."),
        ({"n_representatives": 1}, "1 representative: the number that was given."),
        ({}, "as many as there are clear clusters"),
        ({"coverage": 0.8}, "as many as explain 80 %"),
        ({"min_support": 30}, "as many as can each stand for 30 points"),
        ({"algorithm": "paper"}, "what pruning and outliers leave"),
    ],
)
def test_where_the_number_comes_from(settings, expected):
    assert expected in str(MOSAIC(**settings).fit(BLOBS.X).explain())


def test_quotas_are_asked_for():
    groups = np.repeat(["a", "b"], 200)
    model = MOSAIC(coverage=0.5).fit(BLOBS.X, groups=groups, quotas={"a": 3, "b": 2})
    assert "5 representatives: the number that was given." in model.explain()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "8 outliers: alone, and far from all neighbours. Of clean rows, about 1 %"),
        ({"outliers": "keep"}, "Outliers were not looked for."),
        ({"contamination": 0.05}, "20 outliers: the share that was given as contaminated."),
    ],
)
def test_how_outliers_were_decided_on(settings, expected):
    assert expected in str(MOSAIC(5, **settings).fit(BLOBS.X).explain())


def test_valley_is_told():
    roll = datasets.embed(datasets.swiss_roll(300, random_state=0), 20, random_state=0)
    data = datasets.contaminate(roll, 0.3, kind="uniform", random_state=1)
    for estimator in (MOSAIC(10), MOSAICOutlierDetector()):
        with pytest.warns(SelectionWarning, match="are taken for outliers"):
            estimator.fit(data.X)
        assert sentence(estimator, f"{estimator.is_outlier_.sum()} outliers: a gap in the effective counts divides them")
        row = int(np.flatnonzero(estimator.is_outlier_)[0])
        assert "It is one of a crowd of such rows." in estimator.explain(row).reason


def test_sparse_group_that_stays_is_told():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(600, 5)), 20.0 + 3.0 * rng.normal(size=(150, 5))])
    model = MOSAIC(10).fit(X)
    assert f"with a count below {model.selection_.cut.sparse_group:.3g}, are a sparse crowd, noise or a group" in str(
        model.explain()
    )


def test_where_many_are_alone_to_be_alone_is_said_not_to_be_odd():
    X = 100.0 * np.random.default_rng(0).normal(size=(60, 3))
    told = str(MOSAICOutlierDetector(gamma=1.0).fit(X).explain())
    assert "No outliers: more than 5 % of the rows are alone, so being alone is not unusual here." in told


def test_groups_that_are_kept_are_counted():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 3)), 30.0 + 3.0 * rng.normal(size=(6, 3))])
    for estimator in (MOSAIC(5, contamination=0.02, min_group=5), MOSAICOutlierDetector(0.02, min_group=5)):
        told = estimator.fit(X).explain()[-1]
        assert told == "6 more would be outliers, if they were not in groups of at least 5."


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("kernel", ["laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed", "function"])
def test_every_kernel_is_explained(kernel):
    X = BLOBS.X[:80] + 3.0
    if kernel == "precomputed":
        X = rbf_kernel(X)
    given = rbf_kernel if kernel == "function" else kernel
    for estimator in (MOSAIC(5, kernel=given), MOSAICOutlierDetector(kernel=given)):
        told = estimator.fit(X).explain()
        assert all(text.endswith(".") for text in told)
        if kernel not in ("laplacian", "polynomial"):
            assert f"Similarity: {'as given' if kernel == 'function' else kernel}, which has no bandwidth." in told


def test_selection_certificate_and_estimator_have_the_same_sentences():
    model = MOSAIC(6).fit(BLOBS.X)
    assert model.explain() == model.selection_.decisions
    assert str(model.explain()).splitlines() == list(model.explain())
