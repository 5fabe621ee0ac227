"""Every number of the judge against one that was worked out by hand or in another way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from experiments.datasets import Case
from experiments.judge import judge_outliers, judge_selection, measure, redundancy
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import make_kernel

pytestmark = pytest.mark.slow


def make(X, y=None, is_outlier=None, X_test=None, y_test=None):
    X = np.asarray(X, np.float64)
    X = X[:, None] if X.ndim == 1 else X
    X_test = np.zeros((0, X.shape[1])) if X_test is None else np.asarray(X_test, np.float64).reshape(-1, X.shape[1])
    return Case(
        "by hand",
        X,
        None if y is None else np.asarray(y),
        np.zeros(len(X), bool) if is_outlier is None else np.asarray(is_outlier, bool),
        X_test,
        None if y_test is None else np.asarray(y_test),
        np.arange(len(X)),
    )


@pytest.fixture
def line():
    """Inliers at 0, 1 (class 0) and 2, 3 (class 1), an outlier at 10; test points of class 0, 0, 1, 1."""
    return make([0, 1, 2, 3, 10], [0, 0, 1, 1, -1], [0, 0, 0, 0, 1], [0.4, 1.4, 1.8, 9.0], [0, 0, 1, 1])


def test_outlier_share_counts_picked_outliers_among_the_picks(line):
    assert judge_selection(line, [0, 4])["outlier_share"] == 0.5
    assert judge_selection(line, [0, 1, 2])["outlier_share"] == 0.0
    assert judge_selection(line, [4])["outlier_share"] == 1.0


def test_nearest_neighbour_accuracy_is_that_of_the_labelled_picks(line):
    # Picks at 0 (class 0) and 2 (class 1): 0.4 → 0 right, 1.4 → 1 wrong, 1.8 → 1 right, 9 → 1 right.
    assert judge_selection(line, [0, 2])["accuracy_1nn"] == 0.75
    # Picks at 1 and 2: 1.4 is nearer to 1, all right.
    assert judge_selection(line, [1, 2])["accuracy_1nn"] == 1.0


def test_picked_outliers_teach_nothing(line):
    with_outlier, without = judge_selection(line, [0, 2, 4]), judge_selection(line, [0, 2])
    # The outlier at 10 is nearest to 9: had it a class of its own, that test point would be lost.
    assert with_outlier["accuracy_1nn"] == without["accuracy_1nn"] == 0.75
    assert with_outlier["accuracy_svm"] == without["accuracy_svm"]


def test_svm_separates_half_way_between_the_classes_next_to_each_other(line):
    # Between 1 and 3 the border is 2: 1.8 is taken for class 0, the other three are right.
    assert judge_selection(line, [0, 1, 3])["accuracy_svm"] == 0.75
    assert judge_selection(line, [0, 1, 2, 3])["accuracy_svm"] == 1.0


def test_svm_does_not_depend_on_the_units_of_the_data(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[y == 1] += 1.0
    parts = [make(X[:30] * unit, y[:30], X_test=X[30:] * unit, y_test=y[30:]) for unit in (1.0, 2.0**20, 2.0**-20)]
    accuracies = {judge_selection(part, range(20))["accuracy_svm"] for part in parts}
    assert len(accuracies) == 1


def test_explained_share_is_that_of_the_inliers_with_the_median_kernel_of_the_inliers(line):
    # Squared distances of the inliers are 1, 1, 1, 4, 4, 9: the median is 2.5.
    K = rbf_kernel(line.X, gamma=1 / 2.5)
    S = [0, 2]
    explained = [K[i, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S, i]) for i in range(4)]
    assert judge_selection(line, S)["explained_share"] == pytest.approx(sum(explained) / 4)


def test_what_is_explained_is_the_same_in_any_unit(rng):
    X = rng.normal(size=(60, 4))
    small, large = judge_selection(make(X), [0, 1, 2]), judge_selection(make(1000 * X + 5), [0, 1, 2])
    for number in ("explained_share", "redundancy"):
        assert small[number] == pytest.approx(large[number])


def test_class_balance_is_the_entropy_as_a_share_of_the_largest():
    y = [0, 0, 0, 1, 1, 2, 3]
    case = make(np.arange(7.0), y)
    # Shares ½, ¼, ¼ of four classes: (½·1 + ¼·2 + ¼·2) bits of 2.
    verdict = judge_selection(case, [0, 1, 3, 5])
    assert verdict["class_balance"] == pytest.approx(0.75)
    assert (verdict["classes_hit"], verdict["classes"]) == (3, 4)
    assert judge_selection(case, [0, 3, 5, 6])["class_balance"] == pytest.approx(1.0)
    assert judge_selection(case, [0, 1])["class_balance"] == 0.0


def test_redundancy_of_two_picks_is_their_squared_similarity(line):
    # 1 − 1 / (K⁻¹)_jj = k² for two points of unit length; the kernel is exp(−d² / 2.5).
    assert judge_selection(line, [0, 2])["redundancy"] == pytest.approx(np.exp(-4 / 2.5) ** 2)
    assert judge_selection(line, [0])["redundancy"] == 0.0


@pytest.mark.parametrize("picks", [[0, 0], [5], [-1], [0.5], [[0, 1]]])
def test_picks_that_are_no_distinct_rows_are_the_fault_of_the_method(line, picks):
    with pytest.raises(InvalidInputError, match=r"picks .* The method is at fault"):
        judge_selection(line, picks)


def test_outlier_numbers_with_ties_are_those_worked_out_by_hand():
    # Outliers 3, 4 against inliers 1, 2, 4.
    verdict = judge_outliers([0, 0, 0, 1, 1], [1, 2, 4, 3, 4])
    assert verdict["auc"] == pytest.approx(4.5 / 6)  # of six pairs 4 are right and one is a tie
    # Two are flagged, the two of score 4, of which one is an outlier.
    assert verdict["f1_outlier_true_share"] == pytest.approx(1 / 2)


def test_f1_both_ways_round_is_that_worked_out_by_hand():
    verdict = judge_outliers([0, 0, 0, 1], [1, 2, 3, 3], np.array([False, False, True, True]))
    # The outlier shares its score: precision 1/2, recall 1.
    assert verdict["f1_outlier_best"] == pytest.approx(2 / 3)
    # Calling all inliers: precision 3/4, recall 1; keeping the tie out: 1 and 2/3, which is 4/5.
    assert verdict["f1_inlier_best"] == pytest.approx(6 / 7)
    assert verdict["f1_outlier_own"] == pytest.approx(2 / 3)
    assert verdict["f1_inlier_own"] == pytest.approx(4 / 5)
    assert verdict["flagged_share"] == 0.5


def test_best_f1_is_that_of_brute_force(rng):
    truth = rng.uniform(size=100) < 0.3
    scores = rng.integers(0, 12, 100) + 2 * truth

    def f1(positive, chosen):
        return 2 * (positive & chosen).sum() / (positive.sum() + chosen.sum())

    verdict = judge_outliers(truth, scores)
    assert verdict["f1_outlier_best"] == pytest.approx(max(f1(truth, scores >= t) for t in scores))
    assert verdict["f1_inlier_best"] == pytest.approx(max(f1(~truth, scores <= t) for t in scores))
    pairs = scores[truth][:, None] - scores[~truth]
    assert verdict["auc"] == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)


def test_measure_returns_the_result_and_passes_errors_on():
    result, seconds = measure(divmod, 7, 2)
    assert result == (3, 1)
    assert seconds >= 0
    with pytest.raises(ZeroDivisionError):
        measure(divmod, 7, 0)


def test_redundancy_is_the_mean_r_squared_of_each_on_the_others(rng):
    X = rng.normal(size=(8, 5)) * rng.uniform(0.01, 100, size=(8, 1))
    chosen = [0, 2, 3, 6]
    shares = []
    for j in chosen:
        others = X[[i for i in chosen if i != j]].T
        left = X[j] - others @ np.linalg.lstsq(others, X[j], rcond=None)[0]
        shares.append(1 - left @ left / (X[j] @ X[j]))
    kernel = make_kernel(X, "linear")
    assert redundancy(kernel, chosen) == pytest.approx(np.mean(shares), rel=1e-9)
    assert redundancy(kernel, range(8)) == pytest.approx(1.0, abs=1e-9)  # eight points in five dimensions
    assert redundancy(make_kernel(np.eye(4), "linear"), range(4)) == pytest.approx(0.0, abs=1e-12)


def test_redundancy_counts_copies_as_redundant_and_leaves_the_others_alone(rng):
    X = np.concatenate([np.eye(4), np.eye(4)[:1], np.zeros((1, 4))])
    kernel = make_kernel(X, "linear")
    assert redundancy(kernel, [0, 1, 2, 4]) == pytest.approx(0.5, abs=1e-9)  # the two copies; 1 and 2 are independent
    assert redundancy(kernel, [0, 5]) == pytest.approx(0.5)  # nothing of the zero point is missing
    assert redundancy(kernel, [1]) == redundancy(kernel, []) == 0.0
