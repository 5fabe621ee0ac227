"""The paper's pruning, said once more in plain loops."""

import numpy as np
import pytest

from mosaic import MOSAIC
from mosaic.choosing.choose import prune_similar

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
