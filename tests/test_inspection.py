from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import get_args

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA, KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mosaic
from mosaic import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, datasets
from mosaic.choosing import Explanation
from mosaic.choosing.outliers import Rule
from mosaic.estimators import DETECTOR_RULES
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.inspection import (
    CoverageDisplay,
    OutlierDisplay,
    SelectionDisplay,
    Summary,
    explain,
    jsonable,
    summary,
)
from mosaic.inspection.displays import THRESHOLD_RULES
from mosaic.inspection.facts import share_text
from mosaic.inspection.projection import nystroem, plane_of_features, principal_axes
from mosaic.inspection.summaries import histogram_edges
from mosaic.kernels import make_kernel

matplotlib.use("Agg")
from matplotlib import pyplot as plt

BLOBS = datasets.blobs_with_gross_outliers()


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model() -> MOSAIC:
    """Fitted to 392 points in the plane and 8 gross outliers."""
    return MOSAIC(12).fit(BLOBS.X)


@pytest.fixture(scope="module")
def facts(model: MOSAIC) -> Summary:
    return summary(model)


@pytest.fixture(scope="module")
def detector() -> MOSAICOutlierDetector:
    return MOSAICOutlierDetector().fit(BLOBS.X)


@pytest.fixture(scope="module")
def spatial() -> MOSAIC:
    """Fitted to a swiss roll in R³, which has no outliers."""
    return MOSAIC(8).fit(datasets.swiss_roll(300))


def _survives_json(facts: Summary) -> bool:
    """Whether the facts are the same after a round trip through JSON: no tuples, no arrays, no NaN."""
    return json.loads(json.dumps(facts.to_dict(), allow_nan=False)) == facts.to_dict()


# Summary


def test_summary_of_a_selection_is_plain_data(facts: Summary) -> None:
    assert _survives_json(facts)


def test_summary_agrees_with_the_estimator(model: MOSAIC, facts: Summary) -> None:
    assert (facts.n_points, facts.n_features, facts.feature_names) == (400, 2, None)
    assert facts.n_outliers == model.is_outlier_.sum() == 8
    assert facts.n_representatives == 12
    assert facts.coverage == model.coverage_
    assert [r.row for r in facts.representatives] == model.representative_indices_.tolist()
    for place, one in enumerate(facts.representatives):
        assert one.rank == place
        assert one.stands_for == (model.labels_ == place).sum()
        assert one.effective_count == model.effective_count_[one.row]
        assert one.reason == model.explain(one.row).reason
        assert (model.labels_[one.members] == place).all()
    assert facts.title == "12 representatives of 400 points, 8 outliers"


def test_gains_add_up_to_the_mean_similarity_of_points_to_their_representative(model: MOSAIC) -> None:
    fixed = MOSAIC(12, gamma=model.gamma_).fit(BLOBS.X)
    facts = summary(fixed, certificate=False)
    assert [r.gain for r in facts.representatives] == fixed.selection_.gains.tolist()


def test_certificate_is_that_of_the_estimator(model: MOSAIC, facts: Summary) -> None:
    proven = model.certificate_
    part = facts.certificate
    assert (part.gap, part.kernel_error, part.rank) == (proven.gap, proven.kernel_error, proven.rank)
    assert (part.error, part.bound, part.excess) == (proven.error, proven.bound, proven.excess)
    assert (part.ridge, part.total) == (proven.ridge, proven.total)
    assert (part.error_without_ridge, part.bound_without_ridge) == (
        proven.error_without_ridge,
        proven.bound_without_ridge,
    )
    assert part.sentence == str(proven)


def test_without_certificate_no_further_program_is_solved() -> None:
    fresh = MOSAIC(12).fit(BLOBS.X)
    part = summary(fresh, certificate=False).certificate
    assert not fresh.selection_.is_solved
    assert (part.gap, part.rank, part.error, part.bound, part.excess) == (None, None, None, None, None)
    assert part.sentence == "The certificate has not been computed."
    assert fresh.lam_ > 0  # solves the program, and does not compute the bound
    part = summary(fresh, certificate=False).certificate
    assert not fresh.selection_.is_proven
    assert part.gap == fresh.selection_.program_certificate.gap
    assert "provably within" in part.sentence


def test_sentence_sums_up_representatives_outliers_and_proof(model: MOSAIC, facts: Summary) -> None:
    share, excess = 100 * model.coverage_, 100 * model.certificate_.excess
    assert facts.sentence == (
        f"12 representatives cover {share:.1f} % of 400 points; 8 outliers set aside; "
        f"provably at most {excess:.2g} % more unexplained than by the best 12."
    )
    one = replace(facts, n_representatives=1, n_outliers=1, coverage=0.99999)
    assert one.sentence == (
        "1 representative covers 99.9 % of 400 points; 1 outlier set aside; "
        f"provably at most {excess:.2g} % more unexplained than by the best one."
    )
    estimated = replace(facts, n_outliers=1200, scaled=True, certificate=replace(facts.certificate, excess=1.2))
    assert estimated.sentence.endswith(" of 400 points; about 1,200 outliers set aside.")
    assert [share_text(value) for value in (0.0, 0.5, 1.0)] == ["0 %", "50.0 %", "100 %"]


def test_values_of_any_kind_become_json() -> None:
    values = {
        1: {np.int64(3)},
        "array": np.array([[1.5, np.nan]]),
        "when": [dt.datetime(2020, 2, 3, 4, 5), dt.timedelta(minutes=2), dt.time(1, 2)],
        "price": Decimal("1.5"),
        "bytes": b"caf\xc3\xa9",
        "path": Path("folder/file.csv"),
        "function": rbf_kernel,
        "object": object(),
    }
    assert json.loads(json.dumps(jsonable(values), allow_nan=False)) == {
        "1": [3],
        "array": [[1.5, None]],
        "when": ["2020-02-03T04:05:00", 120.0, "01:02:00"],
        "price": 1.5,
        "bytes": "café",
        "path": str(Path("folder/file.csv")),
        "function": "sklearn.metrics.pairwise.rbf_kernel",
        "object": "object",
    }


def test_infinite_bounds_become_none_and_are_not_mentioned(monkeypatch: pytest.MonkeyPatch, model: MOSAIC) -> None:
    worthless = replace(model.certificate_, bounds=replace(model.certificate_.bounds, inner=0.0, spectrum=None))
    assert worthless.excess == np.inf
    monkeypatch.setitem(model.selection_.__dict__, "certificate", worthless)
    facts = summary(model)
    assert facts.certificate.excess is None
    assert "inf" not in facts.certificate.sentence
    assert _survives_json(facts)


def test_map_of_two_features_is_the_data_itself(model: MOSAIC, facts: Summary) -> None:
    chart = facts.map
    assert (chart.method, chart.axes) == ("features", ["x0", "x1"])
    assert chart.row == list(range(400))
    np.testing.assert_array_equal(np.column_stack([chart.x, chart.y]), BLOBS.X)
    assert chart.label == model.labels_.tolist()
    assert chart.effective_count == model.effective_count_.tolist()
    assert chart.representation_error == model.representation_error_.tolist()
    status = np.array(chart.status)
    assert set(np.flatnonzero(status == "representative")) == set(model.representative_indices_)
    np.testing.assert_array_equal(status == "outlier", model.is_outlier_)


def test_map_of_more_features_shows_the_principal_axes_of_points_that_belong() -> None:
    X = datasets.embed(BLOBS.X, 5, noise=0.3)
    model = MOSAIC(6).fit(X)
    assert model.is_outlier_.sum() == 8
    chart = summary(model, certificate=False).map
    assert chart.method == "principal axes of the features"
    pca = PCA(2).fit(X[~model.is_outlier_])
    expected = pca.transform(X)
    for axis, values in enumerate((chart.x, chart.y)):
        sign = np.sign(np.dot(values, expected[:, axis]))
        np.testing.assert_allclose(values, sign * expected[:, axis], atol=1e-8 * np.abs(expected).max())
    shares = [f"{100 * share:.0f} %" for share in pca.explained_variance_ratio_]
    assert [share in axis for share, axis in zip(shares, chart.axes, strict=True)] == [True, True]


def test_map_of_a_precomputed_similarity_is_kernel_pca_where_landmarks_are_all_points() -> None:
    X = datasets.swiss_roll(150)
    K = rbf_kernel(X, gamma=0.01)
    model = MOSAIC(5, kernel="precomputed", outliers="keep").fit(K)
    chart = summary(model, certificate=False).map
    assert chart.method == "principal axes of the similarity"
    expected = KernelPCA(2, kernel="precomputed").fit_transform(K)
    for axis, values in enumerate((chart.x, chart.y)):
        np.testing.assert_allclose(np.abs(values), np.abs(expected[:, axis]), atol=1e-6)


def test_landmarks_that_span_the_features_keep_all_products() -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    A = nystroem(make_kernel(X, "linear"), np.arange(50), np.arange(10))
    np.testing.assert_allclose(A @ A.T, X @ X.T, atol=1e-10)


def test_copies_among_landmarks_change_nothing() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    A = nystroem(make_kernel(X, "linear"), np.arange(50), np.array([0, 1, 2, 0, 1]))
    np.testing.assert_allclose(A @ A.T, X @ X.T, atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_features_far_from_the_origin_have_nearly_their_principal_axes(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [8.0, 4.0] @ np.linalg.qr(rng.normal(size=(700, 2)))[0].T + 0.01 * rng.normal(
        size=(400, 700)
    )
    X += 0.1 if sparse else 1e7
    points = plane_of_features(sp.csr_array(X) if sparse else X, np.ones(400, dtype=bool), None, rng).points
    expected = PCA(2, svd_solver="full").fit_transform(X)
    assert np.abs(np.abs(points) - np.abs(expected)).max() < 0.1


def test_principal_axes_do_not_depend_on_a_rotation_of_the_coordinates() -> None:
    rng = np.random.default_rng(0)
    A, Q = rng.normal(size=(60, 4)) * [4.0, 3.0, 2.0, 1.0], np.linalg.qr(rng.normal(size=(4, 4)))[0]
    belongs = np.arange(60) < 50
    np.testing.assert_allclose(principal_axes(A @ Q, belongs)[0], principal_axes(A, belongs)[0], atol=1e-9)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "cosine", "precomputed", "diffusion"])
def test_one_or_two_representatives_are_enough_for_a_map(k: int, kernel: str) -> None:
    X = datasets.swiss_roll(60)
    facts = summary(MOSAIC(k, kernel=kernel).fit(rbf_kernel(X, gamma=0.01) if kernel == "precomputed" else X))
    assert _survives_json(facts)
    assert np.linalg.matrix_rank(np.column_stack([facts.map.x, facts.map.y])) == 2
    assert facts.map.status.count("representative") == k


@pytest.mark.parametrize("X", [np.zeros((3, 2)), np.zeros((1, 3)), np.arange(30.0).reshape(-1, 1)])
def test_copies_a_single_point_and_a_single_feature_have_a_summary(X: np.ndarray) -> None:
    model = MOSAIC(1).fit(X)
    facts = summary(model)
    assert _survives_json(facts)
    assert len(facts.map.row) == len(X)
    SelectionDisplay(facts).plot()
    OutlierDisplay(facts).plot()
    CoverageDisplay(facts).plot().figure_.canvas.draw()


def test_sampled_map_holds_all_representatives_the_oddest_outliers_and_no_more_than_asked(model: MOSAIC) -> None:
    chart = summary(model, certificate=False, max_points=60).map
    assert len(chart.row) == 60
    assert chart.row == sorted(set(chart.row))
    assert set(model.representative_indices_) <= set(chart.row)
    assert chart.status.count("outlier") == 8
    np.testing.assert_array_equal(np.column_stack([chart.x, chart.y]), BLOBS.X[chart.row])


def test_outliers_take_a_quarter_of_a_sampled_map_at_most_lowest_counts_first() -> None:
    model = MOSAIC(5, contamination=0.3).fit(BLOBS.X)
    chart = summary(model, certificate=False, max_points=100).map
    shown = np.array(chart.row)[np.array(chart.status) == "outlier"]
    assert len(shown) == 25
    left_out = np.setdiff1d(np.flatnonzero(model.is_outlier_), shown)
    assert len(left_out) > 50
    assert model.effective_count_[shown].max() <= model.effective_count_[left_out].min()


def test_more_representatives_than_room_on_the_map_are_all_shown() -> None:
    facts = summary(MOSAIC(40).fit(BLOBS.X), certificate=False, max_points=10)
    assert facts.map.status.count("representative") == 40


def test_sampling_depends_on_the_seed_alone(model: MOSAIC) -> None:
    rows = [summary(model, certificate=False, max_points=100, random_state=s).map.row for s in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_rows_without_weight_are_not_on_the_map() -> None:
    weight = np.ones(400)
    weight[[3, 5]] = 0.0
    facts = summary(MOSAIC(5).fit(BLOBS.X, sample_weight=weight), certificate=False)
    assert facts.n_points == 400
    assert set(range(400)) - set(facts.map.row) == {3, 5}


def test_curve_is_that_of_the_path(model: MOSAIC) -> None:
    path = mosaic.path(BLOBS.X, gamma=model.gamma_)
    k = path.suggested
    curve = summary(MOSAIC(k, gamma=model.gamma_).fit(BLOBS.X), certificate=False).curve
    length = len(curve.k)
    assert curve.k == list(range(1, length + 1))
    assert curve.row == path.indices[:length].tolist()
    np.testing.assert_allclose(curve.similarity, path.similarity[:length])
    np.testing.assert_allclose(curve.coverage, path.coverage[:length])
    assert curve.suggested == path.suggested


def test_rows_on_the_curve_are_on_the_map_for_any_k(model: MOSAIC) -> None:
    facts = summary(model, certificate=False, max_points=30)
    assert set(facts.curve.row) <= set(facts.map.row)


def test_suggested_is_the_number_that_an_automatic_choice_takes() -> None:
    model = MOSAIC().fit(BLOBS.X)
    assert summary(model, certificate=False).curve.suggested == model.n_representatives_


def test_curve_is_at_least_twenty_long_and_never_shorter_than_the_choice() -> None:
    model = MOSAIC(1).fit(BLOBS.X)
    curve = summary(model, certificate=False).curve
    assert len(curve.k) == max(20, curve.suggested)
    assert len(summary(model.rethreshold(n_representatives=120), certificate=False).curve.k) == 120


def test_paper_mode_that_rejects_nobody_has_a_curve() -> None:
    model = MOSAIC(algorithm="paper", gamma=1e4, outliers="reject").fit(BLOBS.X[:40])
    assert not model.is_outlier_.any()  # so narrow a kernel that everybody stands alone
    facts = summary(model)
    assert len(facts.curve.k) >= 20
    assert _survives_json(facts)


def test_outliers_are_listed_from_the_lowest_count_with_their_reasons(model: MOSAIC, facts: Summary) -> None:
    part = facts.outliers
    assert {o.row for o in part.lowest} == set(np.flatnonzero(model.is_outlier_))
    assert [o.effective_count for o in part.lowest] == sorted(o.effective_count for o in part.lowest)
    assert all(o.reason == model.explain(o.row).reason for o in part.lowest)
    assert (part.threshold, part.rule) == (model.outlier_threshold_, "alone")


def test_histogram_counts_every_row_once_and_does_not_mix_both_sides(model: MOSAIC, facts: Summary) -> None:
    part = facts.outliers
    edges, u = np.array(part.edges), np.log(model.effective_count_)
    assert (sum(part.belonging), sum(part.outlying)) == (392, 8)
    at = part.edges.index(np.log(part.threshold))
    assert sum(part.outlying[at:]) == sum(part.belonging[:at]) == 0
    for j in range(len(edges) - 2):
        assert part.belonging[j] + part.outlying[j] == ((u >= edges[j]) & (u < edges[j + 1])).sum()


def test_rounding_leaves_no_value_outside_of_the_histogram() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        u = rng.uniform(0.0, 3.0, 50)
        assert np.histogram(u, histogram_edges(u, None))[0].sum() == 50


@pytest.mark.parametrize("threshold", [None, -3.0, 0.0, 0.123, 2.0, 2.9, 7.0])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_histogram_edges_cover_all_values_in_equal_steps(n: int, threshold: float | None) -> None:
    u = np.random.default_rng(n).uniform(0.0, 3.0, n)
    edges = histogram_edges(u, threshold)
    assert edges[0] <= u.min()
    assert edges[-1] >= u.max()
    np.testing.assert_allclose(np.diff(edges), edges[1] - edges[0], rtol=1e-6)
    assert len(edges) <= 43
    if threshold is not None and u.min() < threshold < u.max():
        assert threshold in edges


def test_reported_outliers_may_be_representatives_and_are_marked() -> None:
    model = MOSAIC(150, outliers="report").fit(BLOBS.X)
    facts = summary(model, certificate=False)
    both = [r.row for r in facts.representatives if r.is_outlier]
    assert set(both) == set(model.representative_indices_) & set(np.flatnonzero(model.is_outlier_))
    assert both
    status = dict(zip(facts.map.row, facts.map.status, strict=True))
    assert all(status[row] == "representative" for row in both)


def test_settings_say_how_to_do_it_again() -> None:
    model = MOSAIC(
        np.int64(5), kernel=rbf_kernel, gamma=mosaic.EffectiveCount(20), random_state=np.random.default_rng(0)
    )
    model.fit(BLOBS.X, groups=np.arange(400) % 2, quotas={0: 2, 1: 3}, must_include=[7], exclude=[1, 2])
    facts = summary(model, certificate=False)
    assert _survives_json(facts)
    parameters, constraints = facts.settings["parameters"], facts.settings["constraints"]
    assert set(parameters) == set(model.get_params())
    assert parameters["n_representatives"] == 5
    assert parameters["kernel"] == "sklearn.metrics.pairwise.rbf_kernel"
    assert "EffectiveCount" in parameters["gamma"]
    assert parameters["random_state"] == "Generator"
    assert constraints == {"must_include": [7], "n_not_allowed": 2, "quotas": {"0": 2, "1": 3}}
    assert (facts.settings["alpha"], facts.settings["lam"]) == (None, None)  # the program is not solved
    assert all(one.influence is None for one in facts.representatives)
    strength, solved = (model.alpha_, model.lam_), summary(model, certificate=False)
    assert (solved.settings["alpha"], solved.settings["lam"]) == strength
    assert [one.influence for one in solved.representatives] == model.influence_[model.representative_indices_].tolist()
    assert facts.settings["versions"]["mosaic"] == mosaic.__version__
    assert set(facts.settings["versions"]) == {"mosaic", "numpy", "scipy", "sklearn", "python"}


def test_a_frame_gives_its_column_names_to_the_axes_and_names_go_with_the_rows() -> None:
    frame = pd.DataFrame(BLOBS.X, columns=["width", "height"])
    frame["id"] = [f"row {i}" for i in range(400)]
    model = MOSAIC(6).fit(frame)
    shuffled = pd.Series(frame["id"].to_numpy(), index=np.arange(400)[::-1])
    facts = summary(model, frame, names=shuffled, certificate=False)
    assert facts.feature_names == facts.map.axes == ["width", "height"]
    assert all(r.name == f"row {r.row}" for r in facts.representatives)
    assert all(o.name == f"row {o.row}" for o in facts.outliers.lowest)
    assert facts.map.name == [f"row {row}" for row in facts.map.row]
    assert _survives_json(facts)


def test_sampler_has_the_summary_of_the_selector(facts: Summary) -> None:
    sampler = summary(MOSAICSampler(12).fit(BLOBS.X))
    assert sampler.estimator == "MOSAICSampler"
    assert replace(sampler, estimator="MOSAIC") == facts


def test_summary_of_a_detector_has_what_a_detector_has(detector: MOSAICOutlierDetector) -> None:
    facts = summary(detector, BLOBS.X)
    assert _survives_json(facts)
    assert facts.representatives is facts.curve is facts.coverage is facts.n_representatives is None
    assert facts.n_outliers == 8
    assert facts.title == "8 outliers among 400 points"
    assert facts.outliers.threshold == pytest.approx(np.exp(detector.offset_))
    assert facts.outliers.rule == detector.threshold_rule_
    assert {o.row for o in facts.outliers.lowest} == set(np.flatnonzero(detector.is_outlier_))
    assert facts.certificate.gap == detector.certificate_.gap
    np.testing.assert_array_equal(np.array(facts.map.status) == "outlier", detector.is_outlier_)
    assert set(facts.map.status) == {"outlier", "belongs"}
    assert facts.map.label is facts.map.representation_error is None
    np.testing.assert_array_equal(np.column_stack([facts.map.x, facts.map.y]), BLOBS.X)
    assert summary(detector).map == facts.map


@pytest.mark.parametrize("kernel", ["precomputed", "cosine", "polynomial", "diffusion"])
def test_map_of_a_detector_is_that_of_a_selector_with_the_same_kernel(kernel: str) -> None:
    X = datasets.swiss_roll(120)
    X = rbf_kernel(X, gamma=0.01) if kernel == "precomputed" else X
    one = summary(MOSAICOutlierDetector(kernel=kernel).fit(X), X).map
    other = summary(MOSAIC(10, kernel=kernel, outliers="keep").fit(X), certificate=False).map
    assert one.method == other.method
    scale = np.abs(other.x).max()
    for values, expected in ((one.x, other.x), (one.y, other.y)):
        np.testing.assert_allclose(np.abs(values), np.abs(expected), atol=0.02 * scale)  # both know the kernel in part


def test_sparse_data_have_a_map() -> None:
    X = sp.random_array((80, 400), density=0.05, rng=np.random.default_rng(0), format="csr")
    for facts in (summary(MOSAIC(4).fit(X)), summary(MOSAICOutlierDetector(kernel="linear").fit(X), X)):
        assert _survives_json(facts)
        assert len(facts.map.row) == 80


def test_what_cannot_be_summarised_is_refused_with_a_remedy(model: MOSAIC) -> None:
    pipeline = make_pipeline(StandardScaler(), MOSAIC(3)).fit(BLOBS.X)
    with pytest.raises(InvalidInputError, match=r"got Pipeline\. Pass its last step"):
        summary(pipeline)
    with pytest.raises(NotFittedError):
        summary(MOSAIC())
    with pytest.raises(InvalidInputError, match="X must have the 400 rows of fit"):
        summary(model, BLOBS.X[:10])
    with pytest.raises(InvalidInputError, match="names must have one entry for each of 400 rows; got 2"):
        summary(model, names=["a", "b"])
    with pytest.raises(InvalidInputError, match="max_points must be a whole number >= 1; got 0"):
        summary(model, max_points=0)


# Explanations


def test_explanation_of_a_selector_is_its_own(model: MOSAIC) -> None:
    assert explain(model, 3) == model.explain(3)
    assert isinstance(explain(model, 3), Explanation)


def test_explanation_of_a_detector_says_score_threshold_and_rule(detector: MOSAICOutlierDetector) -> None:
    for row in (int(BLOBS.is_outlier.argmax()), int(BLOBS.is_outlier.argmin())):
        why = explain(detector, row)
        assert why.status == ("outlier" if BLOBS.is_outlier[row] else "belongs")
        assert why.score == pytest.approx(detector.score_samples(BLOBS.X[[row]])[0])
        assert why.effective_count == detector.effective_count_[row]
        assert why.outlier_probability == detector.outlier_probability_[row]
        assert (why.count_threshold, why.rule) == (pytest.approx(np.exp(detector.offset_)), "alone")
        assert why.n_lower == (detector.effective_count_ < detector.effective_count_[row]).sum()
        alone = "an outlier: no other row looks like it"
        assert alone in str(why) if BLOBS.is_outlier[row] else "of 128 rows look like it, itself included" in str(why)
        json.dumps(why.to_dict(), allow_nan=False)
    assert explain(detector, -1).index == 399


def test_detector_without_threshold_says_so() -> None:
    detector = MOSAICOutlierDetector(contamination=1e-3).fit(np.zeros((20, 2)))
    assert detector.threshold_rule_ == "none"
    why = explain(detector, 0)
    assert (why.status, why.count_threshold) == ("belongs", None)
    assert "there is no threshold" in why.reason
    assert summary(detector).outliers.threshold is None


@pytest.mark.parametrize("i", [400, -401, 1.5, True, "a"])
def test_number_of_no_row_is_refused(detector: MOSAICOutlierDetector, i: object) -> None:
    with pytest.raises(InvalidInputError, match="i must be a row number between 0 and 399"):
        explain(detector, i)


# Displays


def _offsets(collection: matplotlib.collections.PathCollection) -> np.ndarray:
    return np.asarray(collection.get_offsets())


def test_selection_display_draws_every_representative_outlier_and_point_once(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model)
    np.testing.assert_array_equal(_offsets(display.representatives_), BLOBS.X[model.representative_indices_])
    assert len(_offsets(display.outliers_)) == 8
    assert len(_offsets(display.points_)) == 400 - 8 - 12
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_title(loc="left") == "12 representatives of 400 points, 8 outliers"
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x0", "x1")


def test_numbers_beside_markers_are_ranks(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model)
    assert len(display.numbers_) >= 10
    for text in display.numbers_:
        np.testing.assert_array_equal(text.xy, BLOBS.X[model.representative_indices_[int(text.get_text()) - 1]])
    assert SelectionDisplay.from_estimator(model, numbered=False).numbers_ == []


def test_numbers_do_not_overlap_one_another(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(MOSAIC(60).fit(BLOBS.X))
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent().padded(-1.0) for text in display.numbers_]
    assert len(boxes) > 20
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_points_have_the_colour_of_their_representative(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model)
    ordinary = np.setdiff1d(np.flatnonzero(~model.is_outlier_), model.representative_indices_)
    np.testing.assert_array_equal(_offsets(display.points_), BLOBS.X[ordinary])
    colours = display.points_.get_facecolors()
    for label in range(12):
        assert len(np.unique(colours[model.labels_[ordinary] == label], axis=0)) == 1
    assert len(np.unique(colours, axis=0)) == 8
    chosen = BLOBS.X[model.representative_indices_]
    nearest = (np.linalg.norm(chosen[:, None] - chosen, axis=2) + 1e9 * np.eye(12)).argmin(axis=1)
    of_label = {int(label): tuple(colour) for label, colour in zip(model.labels_[ordinary], colours, strict=True)}
    assert all(of_label[label] != of_label[int(nearest[label])] for label in range(12))


def test_nearest_representatives_never_share_a_colour() -> None:
    X = np.random.default_rng(0).uniform(size=(600, 2))
    model = MOSAIC(60, outliers="keep").fit(X)
    display = SelectionDisplay.from_estimator(model)
    ordinary = np.setdiff1d(np.arange(600), model.representative_indices_)
    colours = dict(zip(model.labels_[ordinary], map(tuple, display.points_.get_facecolors()), strict=True))
    chosen = X[model.representative_indices_]
    nearest = (np.linalg.norm(chosen[:, None] - chosen, axis=2) + 9.0 * np.eye(60)).argmin(axis=1)
    assert len(colours) > 50
    assert all(colours[j] != colours.get(nearest[j]) for j in colours)


def test_far_outliers_are_drawn_within_the_frame_in_their_direction(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model)
    (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
    drawn, true = _offsets(display.outliers_), BLOBS.X[model.is_outlier_]
    assert ((drawn > [left, bottom]) & (drawn < [right, top])).all()
    centre = np.array([left + right, bottom + top]) / 2
    cosine = ((drawn - centre) * (true - centre)).sum(axis=1)
    cosine /= np.linalg.norm(drawn - centre, axis=1) * np.linalg.norm(true - centre, axis=1)
    np.testing.assert_allclose(cosine, 1.0)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["representative", "coloured by its representative", "outlier (at the edge: farther out)"]


def test_near_outliers_are_drawn_where_they_are() -> None:
    model = MOSAIC(5, contamination=0.05).fit(datasets.swiss_roll(300)[:, :2])
    display = SelectionDisplay.from_estimator(model)
    np.testing.assert_allclose(_offsets(display.outliers_), datasets.swiss_roll(300)[model.is_outlier_, :2])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "outlier" in labels
    low, high = np.array([display.ax_.get_xlim(), display.ax_.get_ylim()]).T
    drawn = np.vstack([_offsets(display.points_), _offsets(display.outliers_)])
    assert ((drawn > low) & (drawn < high)).all()


def test_both_directions_have_one_scale_unless_features_differ_too_much(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model)
    display.figure_.canvas.draw()
    unit = display.ax_.transData.transform([[0.0, 0.0], [1.0, 1.0]])
    assert np.ptp(unit[:, 0]) == pytest.approx(np.ptp(unit[:, 1]))
    X = np.random.default_rng(0).normal(size=(80, 2)) * [1.0, 1000.0]
    assert SelectionDisplay.from_estimator(MOSAIC(3).fit(X)).ax_.get_aspect() == "auto"


def test_without_outliers_there_are_no_crosses(spatial: MOSAIC) -> None:
    assert not spatial.is_outlier_.any()
    display = SelectionDisplay.from_estimator(spatial)
    assert display.outliers_ is None
    assert len(_offsets(display.representatives_)) == 8
    assert "outlier" not in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert display.ax_.get_title(loc="left") == "8 representatives of 300 points, no outliers"


@pytest.mark.parametrize("k", [1, 200])
def test_selection_display_draws_one_and_two_hundred(k: int) -> None:
    display = SelectionDisplay.from_estimator(MOSAIC(k).fit(datasets.swiss_roll(300)))
    assert len(_offsets(display.representatives_)) == k
    assert 1 <= len(display.numbers_) <= k
    display.figure_.canvas.draw()


def test_legend_says_when_only_a_part_is_shown(model: MOSAIC) -> None:
    display = SelectionDisplay.from_estimator(model, max_points=100)
    assert len(_offsets(display.points_)) == 100 - 8 - 12
    assert any("(100 of 400 points shown)" in text.get_text() for text in display.ax_.get_legend().get_texts())


@pytest.mark.parametrize("channels", [(), (3,)])
def test_pictures_of_representatives_and_outliers_stand_beside_the_map(
    model: MOSAIC, channels: tuple[int, ...]
) -> None:
    images = np.random.default_rng(0).uniform(size=(400, 4, 6, *channels))
    display = SelectionDisplay.from_estimator(model, images=images)
    chosen, odd = display.picture_axes_
    assert (len(chosen.images), len(odd.images)) == (12, 8)
    for shown, row in zip(chosen.images, model.representative_indices_, strict=True):
        np.testing.assert_allclose(shown.get_array(), images[row])
    assert [text.get_text() for text in chosen.texts] == [str(rank) for rank in range(1, 13)]
    display.figure_.canvas.draw()


def test_pictures_find_room_beside_axes_of_somebody_else(spatial: MOSAIC) -> None:
    figure, (ax, _) = plt.subplots(1, 2, layout="constrained")
    display = SelectionDisplay.from_estimator(spatial, images=np.random.default_rng(0).uniform(size=(300, 5, 5)), ax=ax)
    assert display.ax_ is ax
    assert len(display.picture_axes_) == 1  # there are no outliers
    figure.canvas.draw()


def test_images_of_another_shape_are_refused(model: MOSAIC) -> None:
    for shape in ((400, 64), (399, 8, 8), (400, 8, 8, 2)):
        with pytest.raises(InvalidInputError, match="images must be 400 pictures"):
            SelectionDisplay.from_estimator(model, images=np.zeros(shape))


def test_map_of_a_detector_is_drawn_from_its_data(detector: MOSAICOutlierDetector) -> None:
    display = SelectionDisplay.from_estimator(detector, BLOBS.X)
    assert display.representatives_ is None
    assert (len(_offsets(display.points_)), len(_offsets(display.outliers_))) == (392, 8)


def test_coverage_display_marks_the_choice_and_the_suggestion(model: MOSAIC, facts: Summary) -> None:
    _, ax = plt.subplots()
    display = CoverageDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    coverage, similarity = display.lines_
    np.testing.assert_array_equal(coverage.get_xydata(), np.column_stack([facts.curve.k, facts.curve.coverage]))
    np.testing.assert_array_equal(similarity.get_ydata(), facts.curve.similarity)
    assert set(display.chosen_.get_xdata()) == {12}
    assert set(display.suggested_.get_xdata()) == {facts.curve.suggested}
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"chosen: k = 12, coverage {100 * model.coverage_:.0f} %" in labels
    np.testing.assert_array_equal(display.dot_.get_xydata(), coverage.get_xydata()[[11]])  # on its curve


def test_coverage_display_of_a_detector_is_refused(detector: MOSAICOutlierDetector) -> None:
    with pytest.raises(InvalidInputError, match="MOSAICOutlierDetector has no curve"):
        CoverageDisplay.from_estimator(detector)


@pytest.mark.parametrize("which", ["model", "detector"])
def test_outlier_display_draws_both_sides_and_the_threshold(which: str, request: pytest.FixtureRequest) -> None:
    estimator = request.getfixturevalue(which)
    display = OutlierDisplay.from_estimator(estimator)
    assert sum(bar.get_height() for bar in display.belonging_) == 392
    assert sum(bar.get_height() for bar in display.outlying_) == 8
    assert [bar.get_y() for bar in display.outlying_] == [bar.get_height() for bar in display.belonging_]
    (threshold,) = set(display.threshold_.get_xdata())
    expected = estimator.selection_.cut.count
    assert threshold == pytest.approx(expected)
    assert all(bar.get_x() + bar.get_width() <= threshold * (1 + 1e-9) for bar in display.outlying_ if bar.get_height())
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["8 outliers", "392 belong", f"threshold {expected:.3g}: rows below are alone"]
    display.figure_.canvas.draw()


def test_outlier_display_without_a_threshold_has_no_line() -> None:
    display = OutlierDisplay.from_estimator(MOSAIC(3, outliers="keep").fit(BLOBS.X))
    assert display.threshold_ is None
    assert display.ax_.get_title(loc="left") == "No outliers among 400 points"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["400 belong"]


@pytest.mark.parametrize(
    "settings", [{"contamination": 0.1}, {"algorithm": "paper", "gamma": 1.0}, {"outliers": "report"}]
)
def test_outlier_display_marks_the_threshold_of_every_rule(settings: dict[str, object]) -> None:
    facts = summary(MOSAIC(**settings).fit(BLOBS.X), certificate=False)
    display = OutlierDisplay(facts).plot()
    assert facts.n_outliers > 0
    assert set(display.threshold_.get_xdata()) == {facts.outliers.threshold}


def test_every_threshold_rule_is_explained() -> None:
    assert set(DETECTOR_RULES) == set(get_args(Rule)) - {"none", "threshold"}  # a detector has no threshold to set
    assert set(THRESHOLD_RULES) == set(get_args(Rule)) - {"none"}


def test_few_outliers_among_many_points_stay_visible(facts: Summary) -> None:
    part = replace(facts.outliers, belonging=[1000 * count for count in facts.outliers.belonging])
    assert OutlierDisplay(replace(facts, outliers=part)).plot().ax_.get_yscale() == "log"
    assert OutlierDisplay(facts).plot().ax_.get_yscale() == "linear"


def test_settings_of_the_user_win_over_those_of_the_display(model: MOSAIC) -> None:
    assert SelectionDisplay.from_estimator(model, s=3.0).points_.get_sizes().tolist() == [3.0]
    assert CoverageDisplay.from_estimator(model, linewidth=7.0).lines_[0].get_linewidth() == 7.0
    assert OutlierDisplay.from_estimator(model, edgecolor="black").belonging_[0].get_edgecolor() == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("display", [SelectionDisplay, CoverageDisplay, OutlierDisplay])
def test_missing_matplotlib_is_reported_with_the_remedy(
    display: type, model: MOSAIC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'mosaic-select\[plots\]'"):
        display.from_estimator(model)


def test_importing_and_summarising_does_not_import_matplotlib() -> None:
    code = (
        "import sys, numpy as np\n"
        "from mosaic import MOSAIC\n"
        "from mosaic.inspection import summary, SelectionDisplay\n"
        "SelectionDisplay(summary(MOSAIC(2).fit(np.eye(9)), certificate=False))\n"
        "assert not any(name.split('.')[0] == 'matplotlib' for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
