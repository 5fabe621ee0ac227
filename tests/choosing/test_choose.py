"""Shares against the metrics, and the paper's pruning, said once more in plain loops."""

import numpy as np
import pytest

from mosaic import MOSAIC
from mosaic.choosing.choose import prune_similar
from mosaic.kernels import make_kernel
from mosaic.metrics import explained_share, unexplained, unexplained_along

# Explained share

LINE = np.linspace(0.0, 1.0, 60)[:, None]  # so smooth that a dozen picks say everything
CLOUD = np.random.default_rng(0).normal(size=(90, 5))
CLOUD[60:] = CLOUD[:30]  # copies, which explain nothing more and disturb nothing after them


@pytest.mark.parametrize(
    ("X", "name"), [(CLOUD, name) for name in ("rbf", "laplacian", "polynomial", "linear", "cosine")] + [(LINE, "rbf")]
)
def test_explained_share_is_that_of_the_metrics_after_every_pick(rng, X, name):
    kernel = make_kernel(X, name, gamma=0.5 if len(X) == 90 else 1.0)
    n = kernel.n
    weights = rng.uniform(0.2, 2.0, n) * (rng.random(n) < 0.7)
    picks = rng.permutation(n)[:40]  # for linear ones all but five depend on others; room is made twice
    found = 1.0 - unexplained_along(kernel, picks, weights) / (weights @ kernel.diagonal())
    expected = [explained_share(kernel, picks[: k + 1], sample_weight=weights) for k in range(40)]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    left = weights @ unexplained(kernel, picks[:15]) / (weights @ kernel.diagonal())
    assert found[14] == pytest.approx(1.0 - left, abs=1e-9)
    assert max(found) <= 1.0 + 1e-12


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
