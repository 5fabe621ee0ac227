"""The automatic number: each of few distinct rows, one row for each clear cluster, or a rule of thumb."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from mosaic import MOSAIC
from mosaic.choosing import MOST_AUTOMATIC
from mosaic.choosing.number import CLEAR, DOUBTFUL_ROWS, MIDDLE, ROWS_OF_A_CLUSTER, number_of_clusters, rows_between

pytestmark = pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
THUMB, CLUSTERS = "√(n/2), a rule of thumb", "as many as there are clear clusters"


def blobs(clusters, n, columns, sizes=1.0, *, seed=0, apart=8.0):
    """Normal blobs, their centres at least so many deviations apart, the largest ``sizes`` times as large as the smallest."""
    rng, centres, width = np.random.default_rng(seed), [], apart / np.sqrt(2.0 * columns)
    while len(centres) < clusters:
        centre = rng.normal(0.0, width, columns)
        width *= 1.003
        if all(np.linalg.norm(centre - other) >= apart for other in centres):
            centres.append(centre)
    share = np.geomspace(1.0, sizes, clusters)
    of = np.repeat(np.arange(clusters), np.maximum(n * share / share.sum(), ROWS_OF_A_CLUSTER).astype(int))
    return rng.permutation(np.array(centres)[of] + rng.normal(size=(len(of), columns)))


def cloud(kind, n, columns, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.random(n)
    draws = {
        "normal": lambda: rng.normal(size=(n, columns)),
        "uniform": lambda: rng.random((n, columns)),
        "t": lambda: rng.standard_t(5, size=(n, columns)),
        "exponential": lambda: rng.exponential(size=(n, columns)),
        "line": lambda: np.outer(t, np.arange(1.0, columns + 1)),
        "two lines": lambda: np.column_stack([t, 0.02 * rng.integers(0, 2, n)]),
        "circle": lambda: np.column_stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)]),
        "spiral": lambda: (10 * np.sqrt(t) * np.array([np.cos(10 * np.sqrt(t)), np.sin(10 * np.sqrt(t))])).T,
        "sine": lambda: np.column_stack([6 * t, np.sin(6 * t)]),
        "roll": lambda: np.column_stack([(5 + 9 * t) * np.cos(5 + 9 * t), 21 * rng.random(n), (5 + 9 * t) * np.sin(5 + 9 * t)]),
    }
    return draws[kind]()


def number_and_reason(X, **settings):
    model = MOSAIC(**settings).fit(X)
    return model.n_representatives_, model.selection_.why_so_many


def test_rows_between_clusters_are_those_of_plain_loops(rng):
    X = np.vstack([rng.normal(size=(25, 3)), rng.normal(size=(9, 3)) + 4.0])
    groups, found = [[i] for i in range(len(X))], {}

    def spread(rows):
        return ((X[rows] - X[rows].mean(axis=0)) ** 2).sum()

    while len(groups) > 1:
        centres = [X[group].mean(axis=0) for group in groups]
        shares = []
        for group, centre in zip(groups, centres, strict=True):
            between = 0
            for x in group:
                others = [other for other in centres if other is not centre]
                other = min(others, key=lambda c, x=x: ((X[x] - c) ** 2).sum())
                rest = [y for y in group if y != x]
                lead = ((X[x] - other) ** 2).sum() - ((X[x] - X[rest].mean(axis=0)) ** 2).sum() if rest else 0.0
                between += len(group) < ROWS_OF_A_CLUSTER or lead <= MIDDLE * ((centre - other) ** 2).sum()
            shares.append(between / len(group))
        found[len(groups)] = sum(shares)
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(pairs, key=lambda ab: spread(groups[ab[0]] + groups[ab[1]]) - spread(groups[ab[0]]) - spread(groups[ab[1]]))
        groups[b] += groups.pop(a)
    D = cdist(X, X, "sqeuclidean")
    np.testing.assert_allclose(rows_between(D, 8), [0.0, *(found[k] for k in range(2, 9))])


def test_every_further_cluster_must_be_worth_the_rows_between():
    D = cdist(*[blobs(5, 200, 2)] * 2, "sqeuclidean")
    between = rows_between(D, 12)
    worth = {k: (k - 1) * (CLEAR - DOUBTFUL_ROWS / len(D)) - between[k - 1] for k in range(1, 13)}
    number = max(worth, key=worth.get)
    assert number == 5
    assert number_of_clusters(D, 12) == (number, between[number - 1] / number)


@pytest.mark.parametrize("sizes", [1.0, 8.0])
@pytest.mark.parametrize(("clusters", "n", "columns"), [(2, 400, 2), (5, 400, 15), (12, 1500, 6), (40, 1500, 2), (10, 400, 40)])
def test_clear_clusters_get_a_representative_each(clusters, n, columns, sizes):
    number, reason = number_and_reason(blobs(clusters, n, columns, sizes))
    assert abs(number - clusters) <= 1
    assert CLUSTERS in reason


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "enough"), [(2, 0.9), (6, 0.9), (15, 0.9), (50, 0.7)])
def test_clear_clusters_are_found_in_any_number_of_columns(columns, enough):
    draws = [(k, n, sizes) for k in (2, 3, 7, 20, 40) for n in (400, 1500, 6000) for sizes in (1.0, 8.0)]
    found = [number_and_reason(blobs(k, n, columns, sizes, seed=k + n), n_jobs=1) for k, n, sizes in draws]
    right = [CLUSTERS in why and abs(number - k) <= 1 for (number, why), (k, *_) in zip(found, draws, strict=True)]
    assert np.mean(right) >= enough


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("normal", 1), ("normal", 2), ("normal", 15), ("normal", 50), ("uniform", 1), ("uniform", 2), ("uniform", 15), ("t", 2),
        ("t", 15), ("exponential", 1), ("line", 3), ("two lines", 2), ("circle", 2), ("spiral", 2), ("sine", 2), ("roll", 3),
    ],
)  # fmt: skip
def test_clouds_lines_and_curves_have_no_clear_clusters(kind, columns, n):
    number, reason = number_and_reason(cloud(kind, n, columns))
    assert reason == f"no clusters are clear, so {THUMB}"
    assert number == pytest.approx(np.sqrt(n / 2), abs=1)


def test_two_clusters_on_a_line_are_clear():
    t = np.concatenate([np.random.default_rng(0).normal(size=200), 9.0 + np.random.default_rng(1).normal(size=300)])
    assert number_and_reason(t[:, None])[0] == 2
    assert number_and_reason(np.outer(t, [1.0, 2.0, -1.0]))[0] == 2


def test_stretched_clusters_and_clusters_of_different_spread_are_clear(rng):
    X, of = blobs(6, 900, 5, apart=20.0), np.repeat(np.arange(6), 150)
    turned = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert number_and_reason(X @ turned @ np.diag([3.0, 1.0, 1.0, 1.0, 1.0]) @ turned.T)[0] == 6
    centres = 40.0 * np.eye(6)
    assert number_and_reason(centres[of] + rng.normal(size=(900, 6)) * np.geomspace(0.5, 5.0, 6)[of, None])[0] == 6


def test_rows_far_away_from_all_clusters_are_no_clusters(rng):
    X = blobs(4, 800, 6)
    far = rng.normal(size=(8, 6))
    far *= 300.0 / np.linalg.norm(far, axis=1, keepdims=True)
    assert number_and_reason(np.vstack([X, far]))[0] == 4


@pytest.mark.parametrize("kernel", ["laplacian", "precomputed", "function", "sparse", "directions"])
def test_clusters_are_clear_in_any_similarity(kernel, rng):
    X = blobs(5, 400, 6, seed=3)
    if kernel == "sparse":
        X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    if kernel == "directions":
        X = (8.0 * np.eye(60)[rng.integers(0, 5, 400)] + rng.normal(size=(400, 60))) * rng.uniform(1.0, 2.0, (400, 1))
    settings = {"sparse": {}, "directions": {"kernel": "cosine"}, "laplacian": {"kernel": "laplacian"}}
    settings["function"] = {"kernel": lambda A, B: np.exp(-0.01 * cdist(A, B, "sqeuclidean"))}
    settings["precomputed"] = {"kernel": "precomputed"}
    X = np.exp(-0.01 * cdist(X, X, "sqeuclidean")) if kernel == "precomputed" else X
    assert number_and_reason(X, **settings[kernel])[0] == 5


def test_in_one_column_distances_of_any_order_show_the_same_clusters():
    X = blobs(3, 300, 1, apart=6.0)
    number, reason = number_and_reason(X, outliers="keep")
    assert number == 3
    assert "(2.2 %" in reason
    assert number_and_reason(X, kernel="laplacian", outliers="keep") == (number, reason)


def test_the_number_depends_on_no_order_unit_or_rotation(rng):
    X = blobs(9, 3000, 4, 8.0)
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    expected = number_and_reason(X)
    for other in (rng.permutation(X), 0.125 * X, X @ turned, X + 100.0):
        assert number_and_reason(other)[0] == expected[0]
    assert number_and_reason(rng.permutation(X)) == expected


def test_without_clear_clusters_a_rule_of_thumb_suggests_a_number(rng):
    assert number_and_reason(rng.normal(size=(450, 4))) == (15, f"no clusters are clear, so {THUMB}")
    assert 10 <= number_and_reason(load_digits().data)[0] <= 40
    assert number_and_reason(rng.normal(size=(30_000, 2)))[0] == MOST_AUTOMATIC


@pytest.mark.parametrize("n", [2, 3, 7, 10, 24])
def test_few_rows_show_no_clusters(n):
    expected = max(round((n / 2) ** 0.5), 1), f"fewer than 25 distinct rows show no clusters, so {THUMB}"
    assert number_and_reason(np.arange(float(n))[:, None] ** 2) == expected


def test_few_rows_without_any_between_prove_nothing():
    reasons = [number_and_reason(cloud("circle", 50, 2, seed))[1] for seed in range(60)]
    assert sum(CLUSTERS in reason for reason in reasons) <= 1


@pytest.mark.parametrize(("distinct", "copies"), [(1, 1), (1, 5), (2, 4), (10, 100)])
def test_few_distinct_rows_are_all_taken(distinct, copies, rng):
    X = np.repeat(rng.normal(size=(distinct, 3)), copies, axis=0)
    number, reason = number_and_reason(X)
    assert (number, reason) == (distinct, "one for each distinct row that may be chosen")


def test_rows_that_must_be_included_may_be_more_than_are_suggested(rng):
    model = MOSAIC().fit(rng.normal(size=(60, 3)), must_include=range(12))
    assert "12 representatives: those that must be included." in model.explain()
