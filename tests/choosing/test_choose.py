"""Shares against the metrics, suggested numbers, and the paper's pruning, said once more in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from mosaic import MOSAIC
from mosaic.choosing.choose import MOST_AUTOMATIC, prune_similar, silhouettes
from mosaic.kernels import make_kernel
from mosaic.metrics import explained_share, unexplained, unexplained_along

# Explained share


def shares_of(kernel, targets, weights, picks):
    everyone = np.zeros(kernel.n)
    everyone[targets] = weights
    return 1.0 - unexplained_along(kernel, picks, 0.0, everyone) / (everyone @ kernel.diagonal())


@pytest.mark.parametrize(
    ("name", "settings"), [("rbf", {"gamma": 0.5}), ("laplacian", {}), ("polynomial", {}), ("linear", {}), ("cosine", {})]
)
def test_explained_share_is_that_of_the_metrics_after_every_pick(rng, name, settings):
    X = rng.normal(size=(90, 5))
    kernel = make_kernel(X, name, **settings)
    targets, weights = rng.permutation(90)[:60], rng.uniform(0.2, 2.0, 60)
    everyone = np.zeros(90)
    everyone[targets] = weights
    picks = rng.permutation(90)[:40]  # for linear ones all but five depend on others; room is made twice
    expected = [explained_share(kernel, picks[: k + 1], sample_weight=everyone) for k in range(40)]
    np.testing.assert_allclose(shares_of(kernel, targets, weights, picks), expected, atol=1e-9)


def test_copy_of_a_pick_explains_nothing_more_and_disturbs_nothing_after_it(rng):
    X = rng.normal(size=(30, 2))
    X[[5, 17]] = X[3]
    kernel = make_kernel(X, "rbf", gamma=1.0)
    everyone = np.arange(30)
    found = shares_of(kernel, everyone, np.ones(30), [3, 5, 8, 17, 9, 10])
    expected = shares_of(kernel, everyone, np.ones(30), [3, 8, 9, 10])
    assert found[0] == found[1]
    assert found[2] == found[3]
    np.testing.assert_allclose([found[0], found[2], found[4], found[5]], expected, rtol=1e-12)


def test_nearly_dependent_picks_keep_the_share_accurate():
    X = np.linspace(0.0, 1.0, 60)[:, None]  # so smooth that a dozen picks say everything
    kernel = make_kernel(X, "rbf", gamma=1.0)
    picks = np.random.default_rng(1).permutation(60)[:30]
    found = shares_of(kernel, np.arange(60), np.ones(60), picks)
    for k in (5, 15, 30):
        left = unexplained(kernel, picks[:k]).sum() / 60
        assert found[k - 1] == pytest.approx(1.0 - left, abs=1e-9)
    assert max(found) <= 1.0 + 1e-12


# Suggested numbers


def test_silhouettes_are_those_of_a_plain_elimination(rng):
    D = np.sqrt(((rng.normal(size=(40, 1, 2)) - rng.normal(size=(7, 2))) ** 2).sum(axis=2))
    found, left = [], list(range(7))
    while len(left) > 1:
        nearest = [sorted(left, key=lambda j, i=i: D[i, j])[:2] for i in range(40)]
        found.insert(0, np.mean([1 - D[i, a] / D[i, b] for i, (a, b) in enumerate(nearest)]))
        lost = {j: sum(D[i, b] - D[i, a] for i, (a, b) in enumerate(nearest) if a == j) for j in left}
        left.remove(min(left, key=lost.get))
    np.testing.assert_allclose(silhouettes(D), found)


def blobs(clusters, n, columns, sizes, seed):
    """Clear blobs: their centres are at least nine deviations apart."""
    rng, centres = np.random.default_rng(seed), []
    while len(centres) < clusters:
        centre = rng.uniform(-30.0, 30.0, columns)
        if all(np.linalg.norm(centre - other) > 4.5 for other in centres):
            centres.append(centre)
    weights = np.where(np.arange(clusters) % 2, sizes, 1.0)
    rows = np.maximum((n * weights / weights.sum()).astype(int), 1)
    return make_blobs(rows.tolist(), centers=np.array(centres), cluster_std=0.5, random_state=seed)[0]


@pytest.mark.parametrize("sizes", [1.0, 5.0])
@pytest.mark.parametrize(("n", "columns"), [(500, 2), (500, 10), pytest.param(5000, 2, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("clusters", [3, 5, 10])
def test_clear_clusters_get_a_representative_each(clusters, n, columns, sizes):
    model = MOSAIC().fit(blobs(clusters, n, columns, sizes, seed=0))
    assert abs(len(model.representative_indices_) - clusters) <= 1
    assert any("clear clusters" in line for line in model.explain())


def test_where_no_number_of_clusters_stands_out_a_rule_of_thumb_suggests_one(rng):
    model = MOSAIC().fit(rng.normal(size=(450, 4)))
    assert len(model.representative_indices_) == 15
    assert any("rule of thumb" in line for line in model.explain())
    assert 10 <= len(MOSAIC().fit(load_digits().data).representative_indices_) <= 40
    assert len(MOSAIC().fit(rng.normal(size=(30_000, 2))).representative_indices_) == MOST_AUTOMATIC


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_get_a_suggestion_too(n):
    assert len(MOSAIC().fit(np.arange(float(n))[:, None]).representative_indices_) == max(round((n / 2) ** 0.5), 1)


# Pruning


def plain_pruning(distances, share):
    """The rule, said once more: from each that stays, those after it in the last 1 − share of its distances leave."""
    left = list(range(len(distances)))
    for i in range(len(distances)):
        if i not in left:
            continue
        total = sum(distances[i])
        by_distance = sorted(range(len(distances)), key=lambda j: (-distances[i][j], j))
        summed, near = 0.0, []
        for j in by_distance:
            summed += distances[i][j]
            if summed > share * total or total == 0:
                near.append(j)
        left = [j for j in left if j <= i or j not in near]
    return left


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("share", [0.3, 0.8, 0.95, 0.999])
def test_pruning_follows_its_rule(seed, share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))[rng.integers(0, 25, 30)]  # with copies
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    found = prune_similar(distances, share)
    assert found.tolist() == plain_pruning(distances, share)
    assert found[0] == 0
    assert prune_similar(np.zeros((4, 4)), share).tolist() == [0]  # copies of the most influential


def test_groups_that_share_equal_rows_only_are_refused():
    with pytest.raises(ValueError, match="3 representatives are asked for, and 1 found: of equal rows only one is chosen"):
        MOSAIC(3).fit(np.ones((42, 1)), groups=list("abc") * 14)
