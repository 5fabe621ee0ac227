"""MOSAIC, the estimator: how many it chooses, whom it rejects, what it proves and how it says so."""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from mosaic.choosing.cover import similarities
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import mosaic
from mosaic import MOSAIC, InvalidInputError, MemoryBudgetError, MOSAICOutlierDetector, MOSAICSampler, datasets, metrics
from mosaic.budget import memory_needed
from mosaic.choosing import rank
from mosaic.choosing.choose import _in_order
from mosaic.kernels import make_kernel
from mosaic.outliers import cut_for_share, find_cut

GROSS = datasets.blobs_with_gross_outliers()
ROLL = datasets.swiss_roll(250)
CLOUD = np.random.default_rng(0).normal(size=(200, 4))
DIGITS = load_digits().data[:600]


def settled(model):
    """The kernel of a fitted model, for another one."""
    return {"gamma": model.gamma_ or "auto"}


def seen(model, X):
    """Similarities of the points that belong to all points, as choosing sees them."""
    return rbf_kernel(X[~model.is_outlier_], X, gamma=model.gamma_)


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


def test_noise_images_among_digits_are_found_and_digits_are_not():
    noise = datasets.noise_images(30, load_digits().images).reshape(30, -1)
    model = MOSAIC(20).fit(np.vstack([DIGITS, noise]))
    assert model.is_outlier_[600:].sum() >= 28
    assert model.is_outlier_[:600].sum() <= 3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", ["auto", 20])
def test_honest_sparse_cluster_is_no_crowd_of_outliers(seed, k):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(0.0, 0.5, size=(200, 10)), rng.normal(6.0, 2.0, size=(200, 10))])
    model = MOSAIC(k).fit(X)
    assert model.is_outlier_.mean() < 0.03
    assert (model.representative_indices_ >= 200).any()


@pytest.mark.parametrize("k", ["auto", 20])
@pytest.mark.parametrize("name", ["digits", "gaussian", "roll"])
def test_clean_data_has_hardly_any_outliers(name, k):
    clean = {
        "digits": DIGITS,
        "gaussian": np.random.default_rng(0).normal(size=(500, 10)),
        "roll": datasets.swiss_roll(600),
    }
    assert MOSAIC(k).fit(clean[name]).is_outlier_.mean() <= 0.02


# How many


@pytest.mark.parametrize(("share", "k"), [(0.05, 20), (0.01, 4), (0.0001, 1), (np.float32(0.5), 200)])
def test_share_of_the_points_is_a_number_of_them(share, k):
    assert MOSAIC(share).fit(GROSS.X).n_representatives_ == k


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
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    model = MOSAIC(coverage=share, kernel=kernel).fit(X)
    similarity = make_kernel(X, kernel, gamma=model.gamma_ or 1.0)
    belongs, chosen = (~model.is_outlier_).astype(float), model.representative_indices_
    covered = metrics.explained_share(similarity, chosen, sample_weight=belongs)
    assert model.coverage_ == pytest.approx(covered, abs=1e-9)
    assert covered >= share - 1e-9
    if len(chosen) > 1:
        assert metrics.explained_share(similarity, chosen[:-1], sample_weight=belongs) < share
    curve = mosaic.path(X, kernel=kernel, max_representatives=len(chosen))
    np.testing.assert_array_equal(curve.indices, chosen)  # the first that suffice of the one ranking
    assert curve.smallest(share) == len(chosen)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "polynomial"])
@pytest.mark.parametrize("support", [1, 5, 12.5, 60])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_every_representative_has_the_support_asked_for(name, support, kernel):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    model = MOSAIC(min_support=support, kernel=kernel).fit(X)
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_representatives_)
    assert sizes.min() >= support


@pytest.mark.parametrize("weights", [np.ones(250), np.random.default_rng(0).integers(1, 5, 250)])
@pytest.mark.parametrize("support", [8, 60])
def test_as_many_are_chosen_as_have_the_support_which_is_weight(support, weights):
    model = MOSAIC(min_support=support).fit(ROLL, sample_weight=weights)
    assert not model.is_outlier_.any()
    ranking = rank(model.selection_, int(weights.sum() / support))[0]
    K = rbf_kernel(ROLL, ROLL[ranking], gamma=model.gamma_)
    enough = [
        k
        for k in range(1, len(ranking) + 1)
        if np.bincount(K[:, :k].argmax(axis=1), weights, minlength=k).min() >= support
    ]
    assert model.n_representatives_ == max(enough) > 1
    np.testing.assert_array_equal(model.representative_indices_, ranking[: max(enough)])


def test_wish_for_support_does_not_make_outliers():
    """Who is an outlier does not depend on how many are asked for, or how."""
    model = MOSAIC(min_support=2).fit(CLOUD)
    assert model.is_outlier_.mean() <= 0.02
    np.testing.assert_array_equal(model.is_outlier_, MOSAIC(5).fit(CLOUD).is_outlier_)


@pytest.mark.parametrize("wish", [{"n_representatives": 10}, {}, {"coverage": 0.5}])
def test_representatives_are_as_different_as_asked_for(wish):
    model = MOSAIC(diversity=0.4, **wish).fit(CLOUD)
    K = rbf_kernel(CLOUD[model.representative_indices_], gamma=model.gamma_)
    distances = 1.0 - K[np.triu_indices(len(K), 1)]  # 1 − 2k_ij/(k_ii + k_jj), where k_ii = 1
    assert len(distances)
    assert distances.min() >= 0.4
    similarity, free = make_kernel(CLOUD, "rbf", gamma=model.gamma_), MOSAIC(20).fit(CLOUD).representative_indices_
    assert metrics.diversity(similarity, free) < 0.4


def test_more_representatives_than_can_differ_so_much_are_refused():
    with pytest.raises(InvalidInputError, match=r"100 representatives are wanted, but after \d+ no .* diversity=0.9"):
        MOSAIC(100, diversity=0.9).fit(CLOUD)


# Outliers


def test_reported_outliers_may_be_chosen():
    """One that resembles nobody adds one point of 400 and comes where no other adds more."""
    report = MOSAIC(100, outliers="report").fit(GROSS.X)
    keep = MOSAIC(100, outliers="keep").fit(GROSS.X)
    assert (report.is_outlier_ == GROSS.is_outlier).all()
    np.testing.assert_array_equal(report.representative_indices_, keep.representative_indices_)
    assert report.get_support()[GROSS.is_outlier].all()
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


def test_counts_that_differ_by_rounding_only_are_flagged_together():
    counts = np.array([2.0, 2.0 * (1 + 1e-15), 5.0, 6.0, 7.0, 8.0, 9.0, 9.5])
    for share, flagged in ((0.125, 2), (0.05, 0), (0.25, 2), (0.375, 3)):
        assert cut_for_share(counts, np.ones(8), share).below(counts).sum() == flagged


def test_outlier_probability_is_the_measure_of_the_paper():
    """OP = (n‖r‖_∞ − ‖r‖₁) / ((n − 1)‖r‖_∞) of the rows of R, written out."""
    K = rbf_kernel(GROSS.X, gamma=1.0)
    model = MOSAIC(10, mode="paper", kernel="precomputed", alpha=20.0, outliers="keep", tol=1e-7).fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=20.0, tol=1e-7)
    rows = np.flatnonzero(encoding.influence)
    R = np.abs(encoding.rows(rows))
    largest, n = R.max(axis=1), len(K)
    expected = (n * largest - R.sum(axis=1)) / ((n - 1) * largest)
    np.testing.assert_allclose(model.outlier_probability_[rows], expected, atol=1e-3)
    np.testing.assert_array_equal(np.flatnonzero(model.influence_), rows)


def test_new_point_far_away_is_an_outlier_and_one_in_the_midst_is_not():
    model = MOSAIC(20).fit(GROSS.X)
    centre = GROSS.X[model.representative_indices_[0]] + 1e-3
    far = np.array([1e4, -1e4])
    assert model.predict([far, centre]).tolist() == [-1, 0]
    odd, usual = model.score_samples([far, centre])
    assert odd < np.log(model.outlier_threshold_) < usual
    assert odd == pytest.approx(0.0, abs=1e-9)  # it would stand for itself alone


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
    ("settings", "share", "threshold"),
    [
        ({}, 0.95, 1 - 1 / 159),
        ({"op_threshold": 0.97}, 0.95, 0.97),
        ({"diversity": 0.7}, 0.7, 1 - 1 / 159),
        ({"diversity": 1.0, "alpha": 30.0}, 1.0, 1 - 1 / 159),
        ({"outliers": "keep"}, 0.95, 2.0),
    ],
)
def test_paper_mode_is_algorithm_1_as_written(settings, share, threshold):
    X = np.vstack([ROLL[:150] / 5.0, 100.0 * np.random.default_rng(0).normal(size=(10, 3))])
    K = rbf_kernel(X, gamma=0.5)
    model = MOSAIC(mode="paper", kernel="precomputed", tol=1e-8, **settings).fit(K)
    encoding = mosaic.solve(K, kernel="precomputed", alpha=settings.get("alpha", 10.0), tol=1e-8)
    expected, n_located, n_pruned = naive_algorithm_1(K, encoding, share, threshold)
    assert model.representative_indices_.tolist() == expected
    assert 0 < len(expected) <= n_located
    assert (n_pruned > 0) == (share < 1)
    if settings.get("outliers") != "keep":
        assert not (model.representative_indices_ >= 150).any()
    few = MOSAIC(4, mode="paper", kernel="precomputed", tol=1e-8, **settings).fit(K)
    assert few.representative_indices_.tolist() == expected[:4]


def test_paper_mode_has_the_settings_of_later_work():
    model = MOSAIC(mode="paper").fit(CLOUD)
    assert model.alpha_ == pytest.approx(10.0)
    assert model.gamma_ == pytest.approx(1.0 / (10.0 * CLOUD.var(axis=0).mean() ** 2))


@pytest.mark.parametrize(
    "demand", [{"must_include": [0]}, {"exclude": [0]}, {"candidates": range(9)}, {"groups": [0, 1] * 100}]
)
def test_paper_mode_refuses_constraints(demand):
    with pytest.raises(InvalidInputError, match="knows no constraints; use mode='auto'"):
        MOSAIC(mode="paper").fit(CLOUD, **demand)


# What is proven


@pytest.mark.parametrize("seed", range(4))
def test_certificate_bounds_every_choice_of_the_same_size(seed):
    X = np.random.default_rng(seed).normal(size=(12, 2))
    model = MOSAIC(2, outliers="keep").fit(X)
    certificate = model.certificate_
    K, g = rbf_kernel(X, gamma=model.gamma_), certificate.ridge

    def error(S):
        S = list(S)
        return np.trace(K) - np.trace(K[:, S] @ np.linalg.solve(K[np.ix_(S, S)] + g * np.eye(2), K[S]))

    errors = [error(S) for S in combinations(range(12), 2)]
    chosen = error(model.representative_indices_)
    assert g == pytest.approx(1.0)
    assert certificate.error == pytest.approx(chosen, rel=1e-9)
    assert certificate.bound <= min(errors) * (1 + 1e-9)
    assert certificate.bound > 0.5 * min(errors)  # and it says something
    assert certificate.excess == pytest.approx(chosen / certificate.bound - 1)
    assert certificate.excess >= chosen / min(errors) - 1 >= 0
    assert (certificate.k, certificate.gap <= 1e-3) == (2, True)
    assert str(certificate).startswith("These 2 leave at most ")


def test_certificate_belongs_to_the_choice_and_follows_it():
    model = MOSAIC(20).fit(GROSS.X)
    first = model.certificate_
    assert model.certificate_ is first
    second = model.rethreshold(n_representatives=5).certificate_
    assert (first.k, second.k) == (20, 5)
    assert second.error > first.error
    assert second.bound > first.bound
    assert first.gap == second.gap <= model.tol


def test_solution_is_that_of_the_exact_layer():
    K = rbf_kernel(CLOUD, gamma=0.3)
    settings = {"kernel": "precomputed", "alpha": 30.0, "tol": 1e-9}
    model, encoding = MOSAIC(5, **settings).fit(K), mosaic.solve(K, **settings)
    np.testing.assert_allclose(model.influence_, encoding.influence, atol=1e-3)
    paper = MOSAIC(5, mode="paper", **settings).fit(K)
    np.testing.assert_allclose(paper.effective_count_, encoding.effective_count, rtol=1e-3)
    assert (model.lam_, model.alpha_) == (pytest.approx(encoding.lam), pytest.approx(30.0))
    assert model.certificate_.encoding.primal == pytest.approx(encoding.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("solver", ["interior-point", "admm", "fista", "admm-paper"])
def test_any_solver_serves(solver):
    X = CLOUD[:60]
    model = MOSAIC(5, solver=solver, alpha=5.0, mode="paper", gamma=0.3).fit(X)
    assert model.certificate_.gap <= model.tol
    tight = MOSAIC(5, alpha=5.0, tol=1e-5, mode="paper", gamma=0.3).fit(X)
    np.testing.assert_allclose(np.log(model.effective_count_), np.log(tight.effective_count_), atol=0.1)


def test_unfinished_solution_is_announced():
    model = MOSAIC(5, solver="fista", max_iter=3).fit(CLOUD)
    with pytest.warns(mosaic.ConvergenceWarning, match="above the tolerance 0.001"):
        _ = model.certificate_
    with pytest.warns(mosaic.ConvergenceWarning, match="above the tolerance 0.001"):
        MOSAIC(mode="paper", gamma=0.3, solver="fista", max_iter=3).fit(CLOUD)


# Explanations


def check_explanation(model, i, X):
    assert model.explain(i).influence is None or model.selection_.is_solved
    influence = model.influence_[i]
    told = model.explain(i)
    assert told.index == i
    assert told.influence == influence
    assert told.effective_count == model.effective_count_[i]
    assert told.outlier_probability == model.outlier_probability_[i]
    assert told.representation_error == model.representation_error_[i]
    assert told.count_threshold == model.outlier_threshold_
    similarity = rbf_kernel(X[i : i + 1], X[model.representative_indices_], gamma=model.gamma_)[0]
    nearest = np.argsort(-similarity, kind="stable")[:5]
    assert [row for row, _ in told.nearest] == model.representative_indices_[nearest].tolist()
    np.testing.assert_allclose([value for _, value in told.nearest], similarity[nearest], rtol=1e-9)
    label = model.labels_[i]
    assert told.represented_by == (None if label < 0 else model.representative_indices_[label])
    assert told.similarity == (None if label < 0 else pytest.approx(similarity[label]))
    assert str(told) == f"Row {i}: {told.reason}"
    assert told.to_dict()["status"] == told.status
    return told


def test_explanation_of_a_representative():
    model = MOSAIC(20).fit(GROSS.X)
    for place in (0, 7):
        i = int(model.representative_indices_[place])
        told = check_explanation(model, i, GROSS.X)
        assert (told.status, told.rank, told.represented_by) == ("representative", place, i)
        members = np.flatnonzero(model.labels_ == place)
        assert told.stands_for == len(members)
        assert told.members[0] == i
        assert set(told.members) <= set(members.tolist())
        assert told.reason.startswith(f"chosen as number {place + 1} of 20: it stands for {len(members)} rows")


def test_explanation_of_an_outlier():
    model = MOSAIC(20).fit(GROSS.X)
    i = int(np.flatnonzero(GROSS.is_outlier)[3])
    told = check_explanation(model, i, GROSS.X)
    assert (told.status, told.rank, told.stands_for, told.members) == ("outlier", None, 0, ())
    assert told.effective_count < told.count_threshold
    assert told.reason.startswith("rejected as an outlier: it is alone: fewer than 1.35 rows look like it")
    reported = MOSAIC(20, outliers="report").fit(GROSS.X).explain(i)
    assert reported.reason.startswith("reported as an outlier")
    assert reported.represented_by is not None


def test_explanation_of_a_represented_row():
    frame = pd.DataFrame(GROSS.X, columns=["east", "north"])
    model = MOSAIC(20).fit(frame)
    i = int(np.flatnonzero((model.labels_ >= 0) & ~model.get_support())[5])
    told = check_explanation(model, i, GROSS.X)
    assert (told.status, told.rank) == ("represented", None)
    assert f"row {told.represented_by} stands for it" in told.reason
    squares = (GROSS.X[i] - GROSS.X[told.represented_by]) ** 2
    assert dict(told.differs_in) == pytest.approx(
        dict(zip(["east", "north"], squares / squares.sum(), strict=True)), rel=1e-6
    )
    assert told.differs_in[0][1] >= told.differs_in[1][1]


def test_explanation_of_excluded_required_and_weightless_rows():
    free = MOSAIC(5).fit(GROSS.X)
    best, odd = int(free.representative_indices_[0]), int(np.flatnonzero(GROSS.is_outlier)[0])
    model = MOSAIC(5).fit(GROSS.X, exclude=[best], must_include=[odd])
    excluded, required = check_explanation(model, best, GROSS.X), check_explanation(model, odd, GROSS.X)
    assert excluded.status == "represented"
    assert excluded.reason.endswith("It was not allowed to be chosen.")
    assert (required.status, required.rank) == ("representative", 0)
    assert required.reason.endswith("It had to be included.")
    weights = np.ones(400)
    weights[best] = 0
    weightless = check_explanation(MOSAIC(5).fit(GROSS.X, sample_weight=weights), best, GROSS.X)
    assert (weightless.status, weightless.influence) == ("represented", 0.0)


@pytest.mark.parametrize("row", [400, -401, 1.5, True, "first"])
def test_there_is_no_explanation_of_rows_that_are_not_there(row):
    with pytest.raises(InvalidInputError, match="i must be a row number between 0 and 399"):
        MOSAIC(5).fit(GROSS.X).explain(row)


def test_rows_may_be_counted_from_the_end():
    model = MOSAIC(5).fit(GROSS.X)
    assert model.explain(-1) == model.explain(399)


# Choosing again


def test_only_thresholds_can_change_without_a_new_fit():
    model = MOSAIC(5).fit(CLOUD)
    with pytest.raises(InvalidInputError, match="kernel cannot change without a new fit; rethreshold takes n_rep"):
        model.rethreshold(kernel="linear")
    before = model.representative_indices_
    with pytest.raises(InvalidInputError, match="n_representatives must be"):
        model.rethreshold(n_representatives=0)
    np.testing.assert_array_equal(model.representative_indices_, before)
    assert model.n_representatives == 5


def test_choosing_again_keeps_the_demands_of_the_fit():
    model = MOSAIC(5).fit(CLOUD, must_include=[7], exclude=[3, 4])
    again = model.rethreshold(n_representatives=80).representative_indices_
    assert again[0] == 7
    assert not {3, 4} & set(again.tolist())


# Starting from the fit before


@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_second_fit_of_the_same_program_gives_the_same_answer(name):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    model = MOSAIC(20, warm_start=True).fit(X)
    steps, certificate = model.n_iter_, model.certificate_.encoding
    cold = MOSAIC(10).fit(X)
    warm = model.set_params(n_representatives=10).fit(X)
    np.testing.assert_array_equal(warm.representative_indices_, cold.representative_indices_)
    np.testing.assert_array_equal(warm.labels_, cold.labels_)
    np.testing.assert_allclose(warm.effective_count_, cold.effective_count_, rtol=1e-9)
    assert warm.selection_.material.proof.solved
    assert warm.certificate_.encoding is certificate
    assert warm.n_iter_ == steps


@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_warm_start_at_another_strength_proves_as_much_as_a_cold_one(name):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    warm = MOSAIC(20, warm_start=True).fit(X)
    assert warm.n_iter_ >= 1  # nobody starts from a program that was not asked for
    warm.set_params(alpha=120.0).fit(X)
    assert warm.selection_.material.proof.warm is not None
    cold = MOSAIC(20, alpha=120.0).fit(X)
    first, second = warm.certificate_.encoding, cold.certificate_.encoding
    assert max(first.gap, second.gap) <= 1e-3
    assert max(first.dual, second.dual) <= min(first.primal, second.primal)  # both enclose the same optimum
    np.testing.assert_array_equal(warm.representative_indices_, cold.representative_indices_)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"kernel": "polynomial", "coef0": 1.0}, {"coef0": 5.0}),
        ({"kernel": "polynomial", "degree": 3}, {"degree": 2}),
        ({"kernel": "diffusion"}, {"n_neighbors": 4}),
        ({"kernel": "diffusion"}, {"diffusion_time": 1}),
        ({"kernel": "rbf", "gamma": 0.1}, {"gamma": 0.2}),
        ({"kernel": "rbf", "gamma": 0.1}, {"kernel": "laplacian"}),
    ],
)
def test_another_kernel_is_no_warm_start(before, after):
    model = MOSAIC(8, warm_start=True, **before).fit(CLOUD)
    assert model.n_iter_ >= 1
    model.set_params(**after).fit(CLOUD)
    assert model.selection_.material.proof.warm is None
    cold = MOSAIC(8, **{**before, **after}).fit(CLOUD)
    np.testing.assert_allclose(model.effective_count_, cold.effective_count_, rtol=1e-12)
    np.testing.assert_allclose(model.influence_, cold.influence_, rtol=1e-12)
    np.testing.assert_array_equal(model.representative_indices_, cold.representative_indices_)


def test_other_points_or_weights_are_no_warm_start():
    for X, weights in ((CLOUD[::-1] + 1.0, None), (CLOUD, np.arange(200) % 3), (CLOUD[:90], None)):
        warm = MOSAIC(8, warm_start=True).fit(CLOUD)
        assert warm.n_iter_ >= 1
        warm.fit(X, sample_weight=weights)
        assert warm.selection_.material.proof.warm is None
        cold = MOSAIC(8).fit(X, sample_weight=weights)
        np.testing.assert_array_equal(warm.representative_indices_, cold.representative_indices_)
        np.testing.assert_allclose(warm.effective_count_, cold.effective_count_, rtol=1e-12)


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


def test_support_is_a_mask_or_sorted_numbers():
    model = MOSAIC(6).fit(CLOUD)
    mask = model.get_support()
    assert mask.dtype == bool
    assert mask.shape == (200,)
    np.testing.assert_array_equal(np.flatnonzero(mask), np.sort(model.representative_indices_))
    np.testing.assert_array_equal(model.get_support(indices=True), np.flatnonzero(mask))


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


# Limits


def test_too_small_a_budget_is_refused_with_the_numbers():
    with pytest.raises(
        MemoryBudgetError, match=r"200 points × 4 features need about [\d.]+ MiB .* the budget is 0\.095 MiB"
    ):
        MOSAIC(5, memory_budget=1e5).fit(CLOUD)
    with pytest.raises(MemoryBudgetError, match="Raise memory_budget, use float32"):
        mosaic.estimate(CLOUD, memory_budget=1e5)


def test_small_budget_limits_the_rank_and_the_certificate_tells():
    model = MOSAIC(5, memory_budget=memory_needed(200, 60, 8, 4)).fit(CLOUD)
    assert model.certificate_.rank == 60
    assert model.certificate_.kernel_error > 0


@pytest.mark.parametrize("name", ["roll", "gross", "cloud", "digits"])
def test_limits_of_rank_or_memory_change_the_certificate_and_nothing_else(name):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD, "digits": DIGITS}[name]
    free = MOSAIC(10).fit(X)
    budget = memory_needed(len(X), 20, 8, X.shape[1])
    for limits in ({"max_rank": 20}, {"memory_budget": budget}, {"strategy": "low-rank", "max_rank": 20}):
        limited = MOSAIC(10, **limits).fit(X)
        for attribute in ("representative_indices_", "is_outlier_", "effective_count_", "labels_", "coverage_"):
            np.testing.assert_array_equal(getattr(limited, attribute), getattr(free, attribute), err_msg=attribute)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mosaic.ConvergenceWarning)  # a rank of 20 proves little
            assert limited.certificate_.rank == 20
        assert limited.certificate_.error == pytest.approx(free.certificate_.error)
        assert limited.certificate_.bound <= free.certificate_.error


def test_budget_may_be_text():
    told = MOSAIC(5, memory_budget="3.5MiB").fit(CLOUD).certificate_
    assert told.rank == MOSAIC(5, memory_budget=3.5 * 2**20).fit(CLOUD).certificate_.rank < 200
    assert MOSAIC(5, memory_budget="1 GB").fit(CLOUD).certificate_.rank > told.rank
    with pytest.raises(MemoryBudgetError, match=r"the budget is 0\.095 MiB"):
        MOSAIC(5, memory_budget="100kB").fit(CLOUD)


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.int64(3), lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)]
)
def test_same_seed_same_answer(make):
    first, second = (MOSAIC(8, random_state=make()).fit(ROLL) for _ in range(2))
    np.testing.assert_array_equal(first.representative_indices_, second.representative_indices_)
    np.testing.assert_array_equal(first.effective_count_, second.effective_count_)


def test_generator_moves_on_and_none_is_drawn_anew():
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    MOSAIC(8, random_state=rng).fit(ROLL)
    assert rng.bit_generator.state != before
    assert MOSAIC(8, random_state=None).fit(ROLL).n_representatives_ == 8


BAD = [
    ("n_representatives", 0, "whole number >= 1, a share between 0 and 1, or 'auto'; got 0"),
    ("n_representatives", 1.5, "got 1.5"),
    ("n_representatives", True, "got True"),
    ("n_representatives", "many", "got 'many'"),
    ("n_representatives", 201, "n_representatives=201 is more than there are points .n_samples = 200."),
    ("coverage", 1.5, "between 0 and 1 .the share of the data to be explained.; got 1.5"),
    ("coverage", "most", "got 'most'"),
    ("min_support", 0.5, "min_support must be a number >= 1 .*; got 0.5"),
    ("min_support", 1000, "min_support=1000 is more than all 200 points that belong"),
    ("alpha", 1.0, "alpha must be > 1 .*; got 1. At 1 or below nothing is selected"),
    ("alpha", np.nan, "alpha must be > 1"),
    ("lam", 0.0, "lam must be a finite number > 0; got 0"),
    ("kernel", "sigmoid", "kernel must be 'rbf', .*; got 'sigmoid'"),
    ("kernel", 3, "kernel must be 'rbf', .*; got 3"),
    ("gamma", -1.0, "gamma must be a finite number > 0.*; got -1"),
    ("gamma", "wide", "gamma must be a number, 'scale', 'median' or EffectiveCount.*; got 'wide'"),
    ("outliers", "drop", "outliers must be 'reject' or 'keep' or 'report'; got 'drop'"),
    ("contamination", 0.6, "between 0 and 0.5 .*; got 0.6"),
    ("contamination", "lots", "contamination must be .*; got 'lots'"),
    ("diversity", 2.0, "diversity must be a number between 0 and 1 .*; got 2"),
    ("mode", "fast", "mode must be 'auto' or 'paper'; got 'fast'"),
    ("op_threshold", 0.5, "op_threshold=0.5 is for mode='paper'"),
    ("solver", "simplex", "solver must be 'auto', .*; got 'simplex'"),
    ("tol", 0.0, "tol must be a finite number > 0; got 0"),
    ("tol", "tight", "tol must be a finite number > 0; got 'tight'"),
    ("memory_budget", "2 elephants", "text such as '1GiB' or '500MB'; got '2 elephants'"),
    ("memory_budget", "GB", "text such as '1GiB' or '500MB'; got 'GB'"),
    ("memory_budget", "-1GB", "memory_budget must be a finite number of bytes > 0; got '-1GB'"),
    ("memory_budget", 0, "memory_budget must be a finite number of bytes > 0; got 0"),
    ("memory_budget", [1], r"text such as '1GiB', or None; got .1."),
    ("random_state", "dice", "random_state must be a whole number >= 0, a generator or None; got 'dice'"),
    ("random_state", -1, "random_state must be a whole number >= 0, .*; got -1"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD, ids=[f"{name}={value}" for name, value, _ in BAD])
def test_bad_parameters_are_refused_with_the_value(name, value, message):
    with pytest.raises(InvalidInputError, match=message):
        MOSAIC(**{name: value}).fit(CLOUD)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 5.0, "lam": 1.0}, "give alpha or lam, not both; got alpha=5 and lam=1"),
        ({"n_representatives": 3, "coverage": 0.5}, "coverage=0.5 and n_representatives=3 each say how many"),
        ({"coverage": 0.5, "min_support": 3}, "coverage=0.5 and min_support=3 each say how many"),
        ({"mode": "paper", "coverage": 0.5}, "mode='paper' knows no coverage"),
        ({"mode": "paper", "op_threshold": 2.0}, "between 0 and 1 .*; got 2"),
        ({"mode": "paper", "op_threshold": 0.0}, "nothing is left: .* Raise op_threshold"),
        ({"kernel": "polynomial", "degree": 1.5}, "degree must be a whole number >= 1; got 1.5"),
        ({"kernel": "polynomial", "coef0": -1.0}, "coef0 must be >= 0"),
        ({"kernel": "diffusion", "n_neighbors": 0}, "must be >= 1; got 0"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        MOSAIC(**settings).fit(CLOUD)


HALVES = np.arange(200) % 2


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ({"sample_weight": np.zeros(200)}, "all sample weights are zero"),
        ({"sample_weight": -np.ones(200)}, "sample_weight must be >= 0; entry 0 is -1"),
        ({"sample_weight": np.ones(3)}, r"one entry for each of 200 points; got shape \(3,\)"),
        ({"groups": ["a"] * 3}, r"one label for each of 200 rows; got shape \(3,\)"),
        ({"groups": np.where(HALVES, np.nan, 1.0)}, "must not have missing labels; row 1 has none"),
        ({"quotas": {"a": 1}}, "quotas need groups"),
        ({"groups": HALVES, "quotas": {7: 1}}, "quotas name the group 7, which no row has. Groups are 0, 1"),
        ({"groups": HALVES, "quotas": {0: -1}}, "the quota of group 0 must be .*; got -1"),
        ({"groups": HALVES, "quotas": {0: 0.7, 1: 0.7}}, "the shares in quotas add up to 1.4, more than 1"),
        ({"groups": HALVES, "quotas": "all"}, "quotas must be 'proportional', 'equal' or a dict .*; got 'all'"),
        ({"groups": HALVES, "quotas": {0: 9, 1: 9}}, "quotas ask for 18 .0: 9 . 1: 9. and n_representatives for 20"),
        ({"must_include": [200]}, "must_include must lie in 0 … 199; got 200 … 200"),
        ({"must_include": [1, 1]}, "must_include must not repeat a row number"),
        ({"must_include": range(30)}, "must_include names 30 rows and only 20 are wanted"),
        ({"must_include": [5], "exclude": [5]}, "1 rows are in must_include and in exclude, the first is row 5"),
        ({"exclude": range(200)}, "no row may be chosen: of 200, candidates leave 200 and exclude takes 200 away"),
        ({"candidates": []}, "no row may be chosen: of 200, candidates leave 0"),
        ({"candidates": range(7)}, "20 representatives of the data are wanted and 7 can be had: 200 rows"),
        ({"groups": HALVES, "must_include": range(0, 40, 2)}, "must_include names 20 rows of group 0 and only 10"),
        ({"must_include": [0], "sample_weight": np.arange(200)}, "must_include names row 0, whose sample_weight is 0"),
    ],
)
def test_demands_that_cannot_be_met_are_refused_with_the_arithmetic(demands, message):
    with pytest.raises(InvalidInputError, match=message):
        MOSAIC(20).fit(CLOUD, **demands)


def test_quotas_say_how_many_if_nothing_else_does():
    model = MOSAIC().fit(CLOUD, groups=HALVES, quotas={0: 3, 1: 4})
    assert np.bincount(HALVES[model.representative_indices_]).tolist() == [3, 4]


# Before choosing


@pytest.mark.parametrize("gamma", ["auto", 0.5])
def test_curve_says_what_every_number_of_representatives_covers(gamma):
    curve = mosaic.path(GROSS.X, max_representatives=30, gamma=gamma)
    belongs = ~curve.model.is_outlier_
    S = seen(curve.model, GROSS.X)
    kernel = make_kernel(GROSS.X, "rbf", gamma=curve.model.gamma_)
    assert len(curve.indices) == len(curve.similarity) == len(curve.coverage) == 30
    for k in (1, 2, 9, 30):
        chosen = curve.at(k)
        np.testing.assert_array_equal(chosen, curve.indices[:k])
        assert curve.similarity[k - 1] == pytest.approx(S[:, chosen].max(axis=1).mean(), rel=1e-9)
        share = metrics.explained_share(kernel, chosen, sample_weight=belongs.astype(float))
        assert curve.coverage[k - 1] == pytest.approx(share, abs=1e-9)
    assert (np.diff(curve.coverage) >= -1e-12).all()
    assert (np.diff(curve.similarity) >= -1e-12).all()
    assert not GROSS.is_outlier[curve.indices].any()
    assert "up to 30 representatives" in repr(curve)


@pytest.mark.filterwarnings("ignore:.*sparse group:mosaic.SelectionWarning")  # few directions do not reach all
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_curve_agrees_with_the_model_where_the_number_is_read_off_it(name, kernel):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    curve = mosaic.path(X, kernel=kernel)
    assert 1 <= curve.knee <= len(curve.indices)
    assert curve.model.n_representatives_ == curve.knee
    np.testing.assert_array_equal(curve.model.representative_indices_, curve.at(curve.knee))
    for share in (0.3, 0.8):
        k = curve.smallest(share)
        assert curve.coverage[k - 1] >= share
        assert k == 1 or curve.coverage[k - 2] < share
        assert curve.model.rethreshold(coverage=share).n_representatives_ == k


@pytest.mark.filterwarnings("ignore:.*sparse group:mosaic.SelectionWarning")  # few directions do not reach all
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_number_that_is_said_gives_at_least_the_similarity_of_the_curve(name, kernel):
    """Picks are exchanged for a number that is said; the beginning of what they become is still good."""
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    curve = mosaic.path(X, kernel=kernel, **settled(MOSAIC(kernel=kernel).fit(X)))
    belong = np.flatnonzero(~curve.model.is_outlier_)
    S = similarities(make_kernel(X, kernel, gamma=curve.model.gamma_ or 1.0), belong, np.arange(len(X)))
    np.testing.assert_array_equal(curve.model.rethreshold(n_representatives=1).representative_indices_, curve.at(1))
    better = 0
    for k in (3, 10, 25, 100):
        found = reached(S, curve.model.rethreshold(n_representatives=k).representative_indices_)
        assert found[-1] >= curve.similarity[k - 1] * (1 - 1e-12)
        better += found[-1] > curve.similarity[k - 1] * (1 + 1e-6)
        gains = np.diff(found, prepend=0.0)
        assert (np.diff(gains) <= 1e-12).all()
        # The best one of three need not be the best one alone.
        assert (found >= 0.75 * curve.similarity[:k]).all()
    assert better >= 2


@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_number_that_is_said_does_not_change_what_is_similar(name):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    models = [MOSAIC(k).fit(X) for k in ("auto", 1, 3, 10, 25, 100)]
    assert len({model.gamma_ for model in models}) == 1
    for model in models:
        np.testing.assert_array_equal(model.effective_count_, models[0].effective_count_)
        np.testing.assert_array_equal(model.is_outlier_, models[0].is_outlier_)
        found = reached(seen(model, X), model.representative_indices_)
        np.testing.assert_allclose(np.cumsum(model.selection_.gains), found, rtol=1e-9)
    covered = [model.coverage_ for model in models[1:]]
    assert (np.diff(covered) > 0).all()


@pytest.mark.parametrize("name", ["roll", "gross", "cloud"])
def test_choosing_again_another_number_is_a_fresh_fit_with_that_number(name):
    X = {"roll": ROLL, "gross": GROSS.X, "cloud": CLOUD}[name]
    model = MOSAIC(5).fit(X)
    for k in (1, 20, "auto", 0.1):
        again, fresh = model.rethreshold(n_representatives=k), MOSAIC(k).fit(X)
        assert again.get_params() == fresh.get_params()
        for attribute in ("representative_indices_", "labels_", "is_outlier_", "effective_count_", "coverage_"):
            np.testing.assert_array_equal(getattr(again, attribute), getattr(fresh, attribute), err_msg=attribute)
        np.testing.assert_array_equal(again.selection_.gains, fresh.selection_.gains)


def test_wishes_survive_exchanges():
    """Required rows stay and come first, in their order; excluded ones stay out; quotas stay filled."""
    groups = np.arange(200) % 3
    model = MOSAIC(30).fit(CLOUD, must_include=[11, 4], exclude=[0], groups=groups, quotas={0: 5, 1: 10, 2: 15})
    chosen = model.representative_indices_
    assert chosen[:2].tolist() == [11, 4]
    assert 0 not in chosen
    assert np.bincount(groups[chosen]).tolist() == [5, 10, 15]
    found = reached(seen(model, CLOUD), chosen)
    np.testing.assert_allclose(np.cumsum(model.selection_.gains), found, rtol=1e-9)
    assert (np.diff(np.diff(found)[1:]) <= 1e-12).all()


def test_curve_obeys_wishes_for_single_rows():
    curve = mosaic.path(CLOUD, fit_params={"must_include": [11], "exclude": [0]}, max_representatives=200)
    assert curve.indices[0] == 11
    assert len(curve.indices) == 199
    assert 0 not in curve.indices


def test_curve_refuses_what_it_cannot_answer():
    curve = mosaic.path(CLOUD, max_representatives=5)
    for k in (0, 6, -1):
        with pytest.raises(InvalidInputError, match=f"k must lie between 1 and 5; got {k}"):
            curve.at(k)
    with pytest.raises(InvalidInputError, match=r"5 representatives cover 0\.\d+, not 0.99. Ask for a longer path"):
        curve.smallest(0.99)
    with pytest.raises(InvalidInputError, match="takes no coverage; read it off the curve"):
        mosaic.path(CLOUD, coverage=0.5)
    with pytest.raises(InvalidInputError, match="max_representatives must be a whole number >= 1; got 0"):
        mosaic.path(CLOUD, max_representatives=0)


def test_estimate_knows_the_size_of_the_fit():
    told = mosaic.estimate(np.vstack([CLOUD, CLOUD]), n_representatives=10)
    assert (told.n_points, told.strategy) == (200, "exact")
    model = MOSAIC(10).fit(CLOUD)
    assert told.rank == pytest.approx(model.certificate_.rank, rel=0.2)
    assert told.seconds > 0
    assert str(told).startswith("200 distinct points, exact (rank about ")
    assert mosaic.estimate(np.random.default_rng(0).normal(size=(1500, 3))).strategy == "low-rank"


@pytest.mark.slow
def test_estimated_memory_is_about_what_a_fit_and_its_certificate_take():
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    told = mosaic.estimate(X, n_representatives=20).memory
    tracemalloc.start()
    try:
        assert MOSAIC(20).fit(X).certificate_.gap < 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 <= told / peak <= 2.0


def test_quotas_of_rare_groups_are_kept_in_large_data_within_bounds_of_memory(monkeypatch):
    """Of more rows than can be compared a part is drawn, but of every group enough for its quota."""
    monkeypatch.setattr(sys.modules["mosaic.choosing.choose"], "MOST_SIMILARITIES", 60 * 900)
    X = np.random.default_rng(0).normal(size=(900, 3))
    rare = np.where(np.arange(900) % 180 == 7, "rare", "common")
    model = MOSAIC(12, outliers="keep").fit(X, groups=rare, quotas={"rare": 5, "common": 7})
    assert (rare[model.representative_indices_] == "rare").sum() == 5
    reached = MOSAIC(coverage=0.5, outliers="keep").fit(X)
    assert reached.n_representatives_ <= 60
    assert reached.coverage_ >= 0.5


@pytest.mark.slow
def test_a_fit_and_its_certificate_stay_near_their_memory_budget():
    """Peak within a tenth of the budget: the rank is limited, and so is the solver's working set."""
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    tracemalloc.start()
    try:
        assert MOSAIC(20, memory_budget=4e8).fit(X).certificate_.gap < 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 1.1 * 4e8


def test_outliers_do_not_depend_on_when_they_are_asked_for():
    X = np.vstack([GROSS.X, np.random.default_rng(0).uniform(-30, 30, (12, 2))])
    model = MOSAIC(10).fit(X)
    assert 15 < model.is_outlier_.sum() < 21
    for other in ({"contamination": 0.15}, {"outliers": "keep"}):
        later = MOSAIC(10, **other).fit(X).rethreshold(contamination="auto", outliers="reject")
        np.testing.assert_array_equal(later.is_outlier_, model.is_outlier_)
        np.testing.assert_array_equal(later.representative_indices_, model.representative_indices_)


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
    np.testing.assert_array_equal(selector.outlier_probability_, detector.outlier_probability_)
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
    data = datasets.contaminate(digits, 0.5, kind="clustered", random_state=0)
    model = MOSAIC(20).fit(data.X)
    assert model.is_outlier_[~data.is_outlier].mean() < 0.02
    assert data.is_outlier[model.representative_indices_].mean() < 0.3


def test_outliers_are_decided_on_once_in_a_fit(monkeypatch):
    asked = []

    def counting(*arguments, **settings):
        asked.append(len(arguments[0]))
        return find_cut(*arguments, **settings)

    monkeypatch.setattr(sys.modules["mosaic.choosing.choose"], "find_cut", counting)
    MOSAIC().fit(GROSS.X)
    assert len(asked) == 1


# One program


@pytest.fixture
def programs(monkeypatch):
    """Sizes of the programs that are solved, but for those of at most 128 points."""
    sizes, encode = [], mosaic.program.encode

    def counting(kernel, **settings):
        sizes.extend([kernel.n] if kernel.n > 128 else [])
        return encode(kernel, **settings)

    for name, module in list(sys.modules.items()):
        if name.startswith("mosaic") and getattr(module, "encode", None) is encode:
            monkeypatch.setattr(module, "encode", counting)
    return sizes


def test_fit_solves_small_programs_only_and_the_certificate_one_of_all_points_once(programs):
    model = MOSAIC(10).fit(DIGITS)
    assert programs == []
    asked = (
        model.representative_indices_,
        model.labels_,
        model.is_outlier_,
        model.coverage_,
        model.explain(),
        model.explain(3),
    )
    assert len(asked) == 6
    model.predict(DIGITS[:5])
    assert not model.selection_.is_solved
    assert programs == []
    assert model.certificate_.gap <= model.tol
    assert (model.alpha_, model.n_iter_ >= 1, model.influence_.max() > 0) == (
        pytest.approx(mosaic.budget.DEFAULT_ALPHA),
        True,
        True,
    )
    assert programs == [600]
    assert model.rethreshold(n_representatives=20).certificate_.k == 20
    assert programs == [600]
    MOSAICOutlierDetector().fit(DIGITS).predict(DIGITS)
    assert programs == [600]


def test_paper_mode_solves_the_program_of_all_points_in_the_fit_and_no_other(programs):
    model = MOSAIC(mode="paper", gamma=1e-3).fit(DIGITS)
    assert model.selection_.is_solved
    assert model.certificate_.gap <= model.tol
    assert programs == [600]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
def test_certificate_is_for_the_kernel_that_the_picks_were_chosen_in(kernel):
    model = MOSAIC(10, kernel=kernel).fit(GROSS.X)
    selection, certificate = model.selection_, model.certificate_
    similarity = make_kernel(GROSS.X, kernel, gamma=model.gamma_ or 1.0)
    g = similarity.diagonal().mean()
    assert certificate.ridge == pytest.approx(g)
    chosen = metrics.unexplained(selection.kernel, selection.chosen, g).sum()
    assert certificate.error == pytest.approx(chosen, rel=1e-9)
    assert certificate.error == pytest.approx(
        metrics.unexplained(similarity, model.representative_indices_, g).sum(), rel=1e-6
    )
    assert certificate.bound <= certificate.error
    assert selection.encoding.kernel is selection.kernel
