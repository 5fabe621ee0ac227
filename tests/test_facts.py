"""The facts of a fit agree with the estimator, and are plain data; explanations of rows."""

import json
from itertools import product

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
from mosaic import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, datasets, show
from mosaic.choosing import counted, percent
from mosaic.exceptions import InvalidInputError
from mosaic.facts import coverage_text
from mosaic.facts import map as facts_map
from mosaic.facts.map import framed
from mosaic.facts.ranks import histogram_edges

BLOBS = datasets.blobs_with_gross_outliers()


def plain(facts):
    """The facts as JSON, which must hold no tuples, no arrays and no NaN."""
    found = facts.to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def test_facts_agree_with_the_estimator(model):
    facts = model.facts_
    assert model.facts_ is facts
    assert (facts.n_rows, facts.feature_names, facts.coverage) == (400, None, model.coverage_)
    assert facts.title == "12 representatives of 400 rows, 8 outliers"
    assert [pick.row for pick in facts.picks] == model.representative_indices_.tolist()
    for place, pick in enumerate(facts.picks):
        assert pick == model.explain(pick.row)
        assert (pick.rank, pick.gain) == (place + 1, model.selection_.gains[place])
        assert pick.stands_for == (model.labels_ == place).sum()
        assert (model.labels_[list(pick.members)] == place).all()
    part = facts.outliers
    assert {one.row for one in part.lowest} == set(np.flatnonzero(model.is_outlier_))
    assert [one.effective_count for one in part.lowest] == sorted(one.effective_count for one in part.lowest)
    assert all(one == model.explain(one.row) for one in part.lowest)
    assert (part.n, part.threshold, part.rule) == (8, model.outlier_threshold_, "alone")
    assert (sum(part.belonging), sum(part.outlying)) == (392, 8)
    at, counts = part.edges.index(part.threshold), model.effective_count_
    assert sum(part.outlying[at:]) == sum(part.belonging[:at]) == 0
    bars = np.add(part.belonging, part.outlying)[:-1]
    np.testing.assert_array_equal(bars, np.histogram(counts[counts < part.edges[-2]], part.edges[:-1])[0])
    assert set(plain(facts)) >= {"picks", "outliers", "certificate", "curve", "map", "decisions", "settings"}


def test_representatives_stand_for_all_rows_that_are_not_rejected_and_of_a_sample_for_about_as_many(rng):
    model = MOSAIC(12).fit(BLOBS.X)
    np.testing.assert_array_equal(model.stands_for_, np.bincount(model.labels_[model.labels_ >= 0]))
    assert MOSAIC(12, outliers="report").fit(BLOBS.X).stands_for_.sum() == 400
    X = np.append(rng.normal(size=(15_000, 2)), rng.normal(50.0, 1.0, size=(5_000, 2)), axis=0)
    some = MOSAIC(6, outliers="keep").fit(X)
    assert some.selection_.is_sampled
    assert some.stands_for_.sum() == pytest.approx(20_000)
    far = X[some.representative_indices_, 0] > 25
    assert some.stands_for_[far].sum() == pytest.approx(5_000, rel=0.05)


def test_facts_of_many_rows_have_the_lowest_of_all_outliers_and_their_number():
    X = np.random.default_rng(0).normal(size=(17_000, 3))
    X[::500] *= 1000.0
    model = MOSAIC(5).fit(X)
    facts = model.facts_
    found = facts.to_dict("sentence", "outliers")
    odd = np.flatnonzero(model.is_outlier_)
    counts = model.effective_count_[odd]
    assert [one["effective_count"] for one in found["outliers"]["lowest"]] == pytest.approx(np.sort(counts)[:50])
    assert {one["row"] for one in found["outliers"]["lowest"]} <= set(odd.tolist())
    assert found["sentence"].endswith(f"; {len(odd)} outliers set aside.")
    assert (found["outliers"]["n"], sum(found["outliers"]["outlying"])) == (len(odd), len(odd))
    assert set(odd.tolist()) <= set(facts.map.row[np.array(facts.map.status) == "outlier"].tolist())
    assert model.facts_ is facts


def test_certificate_is_solved_when_it_is_read_and_then_in_the_sentence():
    model = MOSAIC(12).fit(BLOBS.X)
    facts = model.facts_
    assert model.fit(BLOBS.X).facts_ is not facts  # a new fit has new facts
    facts = model.facts_
    assert facts.known_certificate.sentence == "The certificate has not been computed."
    share = f"12 representatives of 400 rows, coverage {100 * model.coverage_:.1f} %; 8 outliers set aside."
    assert str(facts) == share
    assert not model.selection_.is_proven
    proof, proven = facts.certificate, model.certificate_
    for name in ("k", "value", "bound", "gap", "is_best", "shortfall", "random", "n_rows", "is_about_all"):
        assert getattr(proof, name) == getattr(proven, name)
    assert proof.sentence == str(proven)
    assert (facts.sentence, str(facts)) == (share, f"{share} {proven}")


def test_map_of_two_features_is_the_data_itself(model):
    chart = model.facts_.map
    assert (chart.method, chart.axes) == ("features", ["x0", "x1"])
    np.testing.assert_array_equal(np.column_stack([chart.x, chart.y]), BLOBS.X[chart.row])
    np.testing.assert_array_equal(chart.label, model.labels_[chart.row])
    np.testing.assert_array_equal(chart.effective_count, model.effective_count_[chart.row])
    status = np.array(chart.status)
    assert set(chart.row[status == "representative"]) == set(model.representative_indices_)
    np.testing.assert_array_equal(status == "outlier", model.is_outlier_[chart.row])


def test_map_of_more_features_shows_the_principal_axes_of_points_that_belong_and_that_of_similarities_kernel_pca():
    X = datasets.embed(BLOBS.X, 5, noise=0.3)
    model = MOSAIC(6).fit(X)
    chart = model.facts_.map
    assert chart.method == "principal axes of the features"
    pca = PCA(2).fit(X[~model.is_outlier_])
    expected = pca.transform(X)[chart.row]
    for axis, values in enumerate((chart.x, chart.y)):
        sign = np.sign(np.dot(values, expected[:, axis]))
        np.testing.assert_allclose(values, sign * expected[:, axis], atol=1e-8 * np.abs(expected).max())
        assert f"{100 * pca.explained_variance_ratio_[axis]:.0f} %" in chart.axes[axis]
    K = rbf_kernel(datasets.swiss_roll(150), gamma=0.01)
    chart = MOSAIC(5, kernel="precomputed", outliers="keep").fit(K).facts_.map
    assert chart.method == "principal axes of the similarity"
    expected = KernelPCA(2, kernel="precomputed").fit_transform(K)[chart.row]  # since landmarks are all points
    np.testing.assert_allclose(np.abs(np.column_stack([chart.x, chart.y])), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_features_far_from_the_origin_have_nearly_their_principal_axes(sparse):
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(700, 2)))[0].T
    X = rng.normal(size=(400, 2)) * [8.0, 4.0] @ plane + 0.01 * rng.normal(size=(400, 700))
    X += 0.1 if sparse else 1e7
    A = sp.csr_array(X) if sparse else X
    points = facts_map.principal_plane(A, np.ones(400, dtype=bool), "features", rng).points
    expected = PCA(2, svd_solver="full").fit_transform(X)
    assert np.abs(np.abs(points) - np.abs(expected)).max() < 0.1


def test_odd_data_and_every_kernel_have_facts_with_a_map():
    words = sp.random_array((80, 400), density=0.05, rng=np.random.default_rng(0), format="csr")
    for X in (np.zeros((3, 2)), np.zeros((1, 3)), np.arange(30.0).reshape(-1, 1), words):
        for estimator in (MOSAIC(1), MOSAICOutlierDetector()):
            plain(estimator.fit(X).facts_)
    roll = datasets.swiss_roll(60)
    for kernel, X in (("rbf", roll), ("cosine", roll), ("precomputed", rbf_kernel(roll, gamma=0.01)), ("diffusion", roll)):
        facts = MOSAIC(2, kernel=kernel).fit(X).facts_
        plain(facts)
        assert np.linalg.matrix_rank(np.column_stack([facts.map.x, facts.map.y])) == 2
        assert facts.map.status.count("representative") == 2
    paper = MOSAIC(algorithm="paper", gamma=1e4).fit(BLOBS.X[:40])
    assert not paper.is_outlier_.any()  # so narrow a kernel that everybody stands alone
    assert plain(paper.facts_)["curve"]["suggested"] is None
    no_bound = MOSAIC(4, kernel="linear", outliers="keep").fit(np.repeat(np.eye(4), 10, axis=0)).facts_
    assert "inf" not in no_bound.certificate.sentence
    plain(no_bound)


def test_curve_begins_with_the_representatives_and_axes_and_rows_have_names(model):
    curve = model.facts_.curve
    assert curve.row[:12] == model.representative_indices_.tolist()
    assert len(curve.row) == len(set(curve.row)) == 24
    assert curve.coverage[11] == pytest.approx(model.coverage_)
    assert curve.coverage == sorted(curve.coverage)
    assert all(bound >= coverage for bound, coverage in zip(curve.bound, curve.coverage, strict=True))
    assert curve.suggested == MOSAIC().fit(BLOBS.X).n_representatives_
    few = MOSAIC(1).fit(BLOBS.X).facts_.curve
    assert len(few.row) == max(20, few.suggested)
    frame = pd.DataFrame(BLOBS.X, columns=["width", "height"]).assign(id=[f"C{i}" for i in range(400)])
    facts = MOSAIC(6).fit(frame).facts_
    assert facts.feature_names == facts.map.axes == ["width", "height"]
    assert all(one.name == f"C{one.row}" for one in (*facts.picks, *facts.outliers.lowest))


@pytest.mark.parametrize("threshold", [None, -3.0, 0.0, 0.123, 2.0, 2.9, 7.0])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_histogram_edges_cover_all_values_in_equal_steps(n, threshold):
    values = np.random.default_rng(n).uniform(0.0, 3.0, n)
    edges = histogram_edges(values, threshold)
    assert np.histogram(values, edges)[0].sum() == n
    np.testing.assert_allclose(np.diff(edges), edges[1] - edges[0], rtol=1e-6)
    assert len(edges) <= 123
    if threshold is not None and values.min() < threshold < values.max():
        assert threshold in edges


def test_settings_say_how_to_do_it_again():
    kernel, gamma, seed = rbf_kernel, mosaic.EffectiveCount(20), np.random.default_rng(0)
    model = MOSAIC(np.int64(5), kernel=kernel, gamma=gamma, random_state=seed)
    model.fit(BLOBS.X, groups=np.arange(400) % 2, quotas={0: 2, 1: 3}, must_include=[7], exclude=[1, 2])
    settings = plain(model.facts_)["settings"]
    parameters = settings["parameters"]
    assert set(parameters) == set(model.get_params(deep=False))
    told = tuple(parameters[name] for name in ("n_representatives", "kernel", "random_state"))
    assert told == (5, "sklearn.metrics.pairwise.rbf_kernel", "Generator")
    assert "EffectiveCount" in parameters["gamma"]
    assert settings["constraints"] == {"must_include": [7], "n_not_allowed": 2, "quotas": {"0": 2, "1": 3}}
    assert set(settings["versions"]) == {"mosaic", "numpy", "scipy", "sklearn", "python"}


def test_a_sampler_has_the_facts_of_the_selector_and_a_detector_what_it_has(model, detector):
    sampler = plain(MOSAICSampler(12).fit(BLOBS.X).facts_)
    selector = plain(model.facts_)
    for name in ("picks", "outliers", "certificate", "curve", "map"):
        assert sampler[name] == selector[name]
    facts = detector.facts_
    assert (facts.picks, facts.curve, facts.coverage) == ((), None, None)
    assert facts.sentence == "8 outliers among 400 rows."
    assert facts.outliers.threshold == pytest.approx(np.exp(detector.offset_))
    assert facts.certificate.sentence == "Nothing is chosen, so there is nothing to prove."
    assert set(facts.map.status) == {"outlier", "belongs"}
    plain(facts)
    with pytest.raises(InvalidInputError, match=r"got Pipeline\. Pass its last step"):
        show.report_html(make_pipeline(StandardScaler(), MOSAIC(3)).fit(BLOBS.X))
    for ask in (
        show.report_html,
        MOSAIC.explain,
        lambda model: model.select(BLOBS.X),
        lambda model: model.rethreshold(min_group=3),
    ):
        with pytest.raises(NotFittedError):
            ask(MOSAIC())
    assert not hasattr(MOSAIC(), "labels_")


def check_explanation(model, i, X=BLOBS.X):
    told, label = model.explain(i), model.labels_[i]
    assert (told.row, told.effective_count, told.outlier_probability) == (i, model.effective_count_[i], None)
    assert told.representation_error == model.representation_error_[i]
    similarity = rbf_kernel(X[i : i + 1], X[model.representative_indices_], gamma=model.gamma_)[0]
    assert told.represented_by == (None if label < 0 else model.representative_indices_[label])
    assert told.similarity == (None if label < 0 else pytest.approx(similarity[label]))
    assert str(told) == f"Row {i}: {told.reason}"
    return told


def test_explanation_of_representatives_and_of_rows_that_they_stand_for(model):
    for place in (0, 7):
        i = int(model.representative_indices_[place])
        told = check_explanation(model, i)
        assert (told.status, told.rank, told.represented_by) == ("representative", place + 1, i)
        members = np.flatnonzero(model.labels_ == place)
        assert told.stands_for == len(members)
        assert told.members[0] == i
        assert set(told.members) <= set(members.tolist())
        assert told.reason.startswith(f"chosen as number {place + 1} of 12: it stands for {len(members)} rows")
    i = int(np.setdiff1d(np.flatnonzero(model.labels_ >= 0), model.representative_indices_)[5])
    told = check_explanation(model, i)
    assert (told.status, told.rank) == ("represented", None)
    assert f"row {told.represented_by} stands for it" in told.reason


def test_explanation_of_an_outlier(model):
    i = int(np.flatnonzero(BLOBS.is_outlier)[3])
    told = check_explanation(model, i)
    assert (told.status, told.rank, told.stands_for, told.members) == ("outlier", None, 0, ())
    assert told.reason.startswith("rejected as an outlier: no other row looks like it. The representative nearest to it is row ")
    reported = MOSAIC(20, outliers="report").fit(BLOBS.X).explain(i)
    assert reported.reason.startswith("reported as an outlier")
    assert reported.represented_by is not None
    many = MOSAIC(150, outliers="report").fit(BLOBS.X)  # reported outliers may be representatives and are marked
    both = {pick.row for pick in many.facts_.picks if pick.is_outlier}
    assert both == set(many.representative_indices_) & set(np.flatnonzero(many.is_outlier_)) != set()


def test_explanation_of_excluded_required_and_weightless_rows():
    free = MOSAIC(5).fit(BLOBS.X)
    best, odd = int(free.representative_indices_[0]), int(np.flatnonzero(BLOBS.is_outlier)[0])
    model = MOSAIC(5).fit(BLOBS.X, exclude=[best], must_include=[odd])
    excluded, required = check_explanation(model, best), check_explanation(model, odd)
    assert excluded.status == "represented"
    assert excluded.reason.endswith("It was not allowed to be chosen.")
    assert (required.status, required.rank) == ("representative", 1)
    assert required.reason.endswith("It had to be included.")
    weights = np.ones(400)
    weights[best] = 0
    assert check_explanation(MOSAIC(5).fit(BLOBS.X, sample_weight=weights), best).status == "represented"


def test_explanation_of_a_detector_says_count_and_rule_and_rows_that_are_not_there_are_refused(model, detector):
    odd, usual = (detector.explain(int(row)) for row in (BLOBS.is_outlier.argmax(), BLOBS.is_outlier.argmin()))
    assert (odd.status, usual.status) == ("outlier", "belongs")
    assert odd.effective_count == detector.effective_count_[odd.row]
    assert str(odd).endswith("an outlier: no other row looks like it.")
    assert "of 128 rows look like it." in str(usual)
    assert odd.representation_error is odd.rank is None
    assert MOSAICOutlierDetector(contamination=1e-3).fit(np.zeros((20, 2))).facts_.outliers.threshold is None
    for fitted, row in product((model, detector), (400, -401, 1.5, True, "first")):
        assert fitted.explain(-1) == fitted.explain(399)
        with pytest.raises(InvalidInputError, match="i must be a row number between 0 and 399"):
            fitted.explain(row)


def test_numbers_in_sentences():
    assert [percent(share) for share in (0.0283, 14.42, 2e-9, 0.0)] == ["2.8 %", "1,442 %", "less than 0.001 %", "0 %"]
    assert [counted(number, "point") for number in (1, 1887)] == ["1 point", "1,887 points"]


def test_one_distant_row_does_not_flatten_the_map_where_outliers_are_not_looked_for(rng):
    X = rng.normal(size=(200, 2))
    X[0] = 1000.0
    facts = MOSAIC(5, outliers="keep").fit(X).facts_
    frame = framed(facts.plane.points, facts.belongs)
    assert facts.map.row[frame.outside].tolist() == [0]
    assert np.ptp(frame.shares[~frame.outside], axis=0).min() > 0.3


def test_a_coverage_below_one_does_not_read_as_everything():
    assert coverage_text(0.9996, 0.9999) == "99.9 % of at most 100 %"
    assert coverage_text(1.0, None) == "100 %"
