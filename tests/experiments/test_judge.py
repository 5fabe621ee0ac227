"""Every number of the judge against one that was worked out by hand or in another way."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from experiments.datasets import Case
from experiments.judge import explained_share, judge_outliers, judge_selection, redundancy
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import make_kernel

pytestmark = pytest.mark.slow


def make(X, y=None, is_outlier=None, X_test=None, y_test=None):
    X = np.asarray(X, np.float64).reshape(len(X), -1)
    X_test = np.asarray([] if X_test is None else X_test, np.float64).reshape(-1, X.shape[1])
    clean = np.zeros(len(X), bool) if is_outlier is None else np.asarray(is_outlier, bool)
    y, y_test = (None if labels is None else np.asarray(labels) for labels in (y, y_test))
    return Case("by hand", X, y, clean, X_test, y_test, np.arange(len(X)))


@pytest.fixture
def line():
    """Inliers at 0, 1 (class 0) and 2, 3 (class 1), an outlier at 10; test points of class 0, 0, 1, 1."""
    return make([0, 1, 2, 3, 10], [0, 0, 1, 1, -1], [0, 0, 0, 0, 1], [0.4, 1.4, 1.8, 9.0], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("picks", "expected"),
    [
        ([0, 4], {"outlier_share": 0.5}),
        ([4], {"outlier_share": 1.0, "accuracy_1nn": 0.0}),
        # Of picks at 0 and 2: 0.4 → 0 right, 1.4 → 1 wrong, 1.8 → 1 right, 9 → 1 right.
        ([0, 2], {"outlier_share": 0.0, "accuracy_1nn": 0.75, "accuracy_svm": 0.75}),
        # An outlier teaches nothing: had the one at 10 a class of its own, the test point at 9 would be lost.
        ([0, 2, 4], {"accuracy_1nn": 0.75, "accuracy_svm": 0.75}),
        ([1, 2], {"accuracy_1nn": 1.0}),
        # The linear classifier separates half way between the classes: 1.8 is below 2.
        ([0, 1, 3], {"accuracy_svm": 0.75}),
        ([0, 1, 2, 3], {"accuracy_svm": 1.0}),
    ],
)
def test_outlier_share_and_accuracies_are_those_worked_out_by_hand(line, picks, expected):
    verdict = judge_selection(line, picks)
    assert {name: verdict[name] for name in expected} == expected


def test_units_do_not_matter(rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[y == 1] += 1.0
    some = ("accuracy_svm", "explained_share", "redundancy")
    verdicts = [
        judge_selection(make(X[:40] * unit + 5, y[:40], X_test=X[40:] * unit + 5, y_test=y[40:]), range(20))
        for unit in (1.0, 2.0**20, 2.0**-10)
    ]
    for verdict in verdicts:
        assert [verdict[name] for name in some] == pytest.approx([verdicts[0][name] for name in some])


def test_explained_share_is_that_of_the_inliers_with_the_median_kernel_of_the_inliers(line):
    # Squared distances of the inliers are 1, 1, 1, 4, 4, 9: the median is 2.5.
    K = rbf_kernel(line.X, gamma=1 / 2.5)
    S = [0, 2]
    explained = [K[i, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S, i]) for i in range(4)]
    verdict = judge_selection(line, S)
    assert verdict["explained_share"] == pytest.approx(sum(explained) / 4)
    assert verdict["redundancy"] == pytest.approx(K[0, 2] ** 2)  # 1 − 1 / (K⁻¹)_jj of two points of unit length


def test_class_balance_is_the_entropy_as_a_share_of_the_largest():
    case = make(np.arange(7.0), [0, 0, 0, 1, 1, 2, 3])
    # Shares ½, ¼, ¼ of four classes: (½·1 + ¼·2 + ¼·2) bits of 2.
    verdict = judge_selection(case, [0, 1, 3, 5])
    assert verdict["class_balance"] == pytest.approx(0.75)
    assert (verdict["classes_hit"], verdict["classes"]) == (3, 4)
    assert judge_selection(case, [0, 3, 5, 6])["class_balance"] == pytest.approx(1.0)
    assert judge_selection(case, [0, 1])["class_balance"] == 0.0


@pytest.mark.parametrize("picks", [[0, 0], [5], [0.5]])
def test_picks_that_are_no_distinct_rows_are_the_fault_of_the_method(line, picks):
    with pytest.raises(InvalidInputError, match=r"picks .* The method is at fault"):
        judge_selection(line, picks)


def test_outlier_numbers_are_those_worked_out_by_hand():
    # Outliers 3, 4 against inliers 1, 2, 4. Two are flagged, the two of score 4, of which one is an outlier.
    assert judge_outliers([0, 0, 0, 1, 1], [1, 2, 4, 3, 4])["f1_outlier_true_share"] == pytest.approx(1 / 2)
    verdict = judge_outliers([0, 0, 0, 1], [1, 2, 3, 3], np.array([False, False, True, True]))
    assert verdict["f1_outlier_own"] == pytest.approx(2 / 3)  # precision 1/2, recall 1
    assert verdict["f1_inlier_own"] == pytest.approx(4 / 5)  # 1 and 2/3
    assert verdict["flagged_share"] == 0.5


def test_best_f1_and_auc_are_those_of_brute_force(rng):
    truth = rng.uniform(size=100) < 0.3
    scores = rng.integers(0, 12, 100) + 2 * truth

    def f1(positive, chosen):
        return 2 * (positive & chosen).sum() / (positive.sum() + chosen.sum())

    verdict = judge_outliers(truth, scores)
    assert verdict["f1_outlier_best"] == pytest.approx(max(f1(truth, scores >= t) for t in scores))
    assert verdict["f1_inlier_best"] == pytest.approx(max(f1(~truth, scores <= t) for t in scores))
    pairs = scores[truth][:, None] - scores[~truth]
    assert verdict["auc"] == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)


def test_explained_share_is_what_least_squares_leave_also_with_copies_among_the_chosen(rng):
    X, weights = rng.normal(size=(30, 6)), rng.random(30)
    X[7] = X[3]
    X[9] = 2 * X[3] - X[4]
    kernel = make_kernel(X, "linear")
    for chosen in ([2, 5, 11], [3, 4, 11], [3, 4, 7, 9, 11]):
        left = X.T - X[chosen].T @ np.linalg.lstsq(X[chosen].T, X.T, rcond=None)[0]
        expected = 1 - weights @ (left**2).sum(axis=0) / (weights @ (X**2).sum(axis=1))
        assert explained_share(kernel, chosen, weights) == pytest.approx(expected, rel=1e-9)
    assert explained_share(kernel, [], weights) == 0.0
    assert explained_share(make_kernel(np.zeros((3, 2)), "linear"), [0], np.ones(3)) == 1.0


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


def test_redundancy_counts_copies_as_redundant_and_leaves_the_others_alone():
    X = np.concatenate([np.eye(4), np.eye(4)[:1], np.zeros((1, 4))])
    kernel = make_kernel(X, "linear")
    assert redundancy(kernel, [0, 1, 2, 4]) == pytest.approx(0.5, abs=1e-9)  # the two copies; 1 and 2 are independent
    assert redundancy(kernel, [0, 5]) == pytest.approx(0.5)  # nothing of the zero point is missing
    assert redundancy(kernel, [1]) == redundancy(kernel, []) == 0.0
