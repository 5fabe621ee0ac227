"""Rare groups: which outliers min_group protects, in both estimators, for new points, and in the summary."""

import numpy as np
import pytest

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS, find_groups, group_sizes
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import EffectiveCount, make_kernel


@pytest.fixture(scope="module")
def crowded():
    """A curve among scattered points, six of which are a tight group far out, and who is of the group."""
    rng = np.random.default_rng(0)
    curve = datasets.trefoil(300, random_state=0)
    noise = rng.uniform(curve.min(), curve.max(), size=(60, 3))
    group = curve.max(axis=0) + 3.0 + 0.05 * rng.normal(size=(6, 3))
    return np.concatenate([curve, noise, group]), np.arange(366) >= 360


# Links


def plain_sizes(X, low):
    """Links and groups said once more: each among the five nearest of the other, and whoever can be reached by links."""
    D = ((X[:, None] - X) ** 2).sum(-1)
    np.fill_diagonal(D, np.inf)
    near = [set(np.argsort(row)[:5].tolist()) for row in D]
    sizes = np.zeros(len(X))
    for start in np.flatnonzero(low):
        found, left = {int(start)}, [int(start)]
        while left:
            i = left.pop()
            new = {j for j in near[i] if low[j] and i in near[j]} - found
            found |= new
            left += new
        sizes[start] = len(found)
    return sizes


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize("seed", range(4))
def test_sizes_are_those_of_the_components_of_mutual_nearest_rows(seed, name):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 1 if name == "laplacian" else 3))  # one column: the same order of distances
    low = rng.random(120) < 0.3
    sizes, reach = group_sizes(make_kernel(X, name, gamma=0.3), low, np.ones(120))
    np.testing.assert_array_equal(sizes, plain_sizes(X, low))
    assert len(np.unique(sizes)) > 3
    for smallest in (2, 4):
        groups = find_groups(make_kernel(X, name, gamma=0.3), low, np.ones(120), smallest)
        if groups is None:
            assert sizes.max() < smallest
            continue
        np.testing.assert_array_equal(groups.members, sizes >= smallest)
        np.testing.assert_array_equal(groups.near(X[low]), groups.members[low])  # of the outliers exactly the members
    assert find_groups(make_kernel(X, name, gamma=0.3), np.zeros(120, bool), np.ones(120), 2) is None
    assert (reach[sizes <= 1] == 0).all()
    assert (reach[sizes > 1] > 0).all()


def test_sparse_group_is_found_however_narrow_the_kernel_is(rng):
    X = np.vstack([rng.normal(size=(1000, 2)), 200.0 + 30.0 * rng.normal(size=(20, 2))])
    low = np.arange(1020) >= 1000
    for gamma in (1e-4, 0.3, 100.0):  # at the last, all similarities of the group underflow
        groups = find_groups(make_kernel(X, "rbf", gamma=gamma), low, np.ones(1020), 10)
        assert groups.members[low].mean() >= 0.9  # at its rim, a point may be nobody's neighbour
        np.testing.assert_array_equal(groups.near(X[low]), groups.members[low])
        assert not groups.near(np.array([[-500.0, -500.0], [5000.0, 0.0]])).any()


def test_copies_count_as_members_and_too_many_outliers_are_refused(crowded):
    X, in_group = crowded
    kernel, low, weights = make_kernel(X, "rbf", gamma=0.5), np.arange(366) >= 300, np.ones(366)
    assert not find_groups(kernel, low, weights, 7).members[in_group].any()
    weights[in_group] = 2.0
    assert find_groups(kernel, low, weights, 7).members[in_group].all()
    many = make_kernel(np.arange(5001.0)[:, None], "rbf", gamma=1.0)
    with pytest.raises(InvalidInputError, match="min_group looks for groups among 5,000 outliers at most, and there are 5,001"):
        find_groups(many, np.ones(5001, dtype=bool), np.ones(5001), 5)


def test_tight_pair_beside_a_group_does_not_join_it_as_new_points(rng):
    """They are near a member, but have one another, and so are no group: whether asked as known or as new points."""
    inner = 30.0 + np.array([[0.0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [5, 0]])
    knot = 30.0 + np.array([4.0, 0.9]) + 1e-3 * rng.normal(size=(6, 2))
    X = np.vstack([rng.normal(size=(100, 2)), inner, knot])
    low = np.arange(len(X)) >= 100
    sizes, _ = group_sizes(make_kernel(X, "rbf", gamma=0.1), low, np.ones(len(X)))
    groups = find_groups(make_kernel(X, "rbf", gamma=0.1), low, np.ones(len(X)), sizes[-1])
    np.testing.assert_array_equal(groups.near(X[low]), groups.members[low])


# In the estimators


@pytest.mark.parametrize("make", [lambda **s: MOSAIC(10, **s), lambda **s: MOSAICOutlierDetector(**s)])
def test_sparse_fifth_that_a_known_share_condemns_is_protected_by_the_size_of_its_group(make):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1200, 5)), 20.0 + 3.0 * rng.normal(size=(300, 5))])
    sparse = np.arange(1500) >= 1200
    condemned = make(contamination=0.2).fit(X)
    assert condemned.is_outlier_[sparse].mean() > 0.95
    protected = make(contamination=0.2, min_group=20).fit(X)
    assert protected.is_outlier_[sparse].mean() < 0.1
    np.testing.assert_array_equal(protected.predict(X) == -1, protected.is_outlier_)


ESTIMATORS = {
    "selector": lambda **settings: MOSAIC(10, gamma=EffectiveCount(40.0), contamination=0.18, **settings),
    "detector": lambda **settings: MOSAICOutlierDetector(0.18, **settings),
}


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_group_of_enough_points_is_protected_and_points_that_are_nobody_s_neighbours_are_not(make, crowded):
    X, in_group = crowded
    lonely = X.max(axis=0) + np.array([[40.0, 0.0, 0.0], [0.0, 40.0, 0.0], [0.0, 0.0, 40.0]])
    both, last = np.vstack([X, lonely]), np.arange(369) >= 366
    in_group = np.append(in_group, [False] * 3)
    without = make().fit(both)
    assert without.is_outlier_[in_group].all()
    protected = make(min_group=5).fit(both)
    assert not protected.is_outlier_[in_group].any()
    assert protected.is_outlier_[last].all()
    assert not (protected.is_outlier_ & ~without.is_outlier_).any()
    assert make(min_group=100).fit(both).is_outlier_[in_group].all()


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_new_points_and_rows_without_weight_within_a_protected_group_belong_too(make, crowded):
    X, in_group = crowded
    new = np.vstack([X[in_group].mean(axis=0), X.max(axis=0) + 50.0])
    free, kept = make().fit(X), make(min_group=5).fit(X)
    np.testing.assert_array_equal(free.predict(new) == -1, [True, True])
    np.testing.assert_array_equal(kept.predict(new) == -1, [False, True])
    np.testing.assert_array_equal(kept.predict(X) == -1, kept.is_outlier_)
    assert free.facts_.outliers.protected == 0
    protected = kept.facts_.outliers.protected
    assert protected >= in_group.sum()
    assert kept.explain()[-1] == f"{protected} more would be outliers but are in groups of at least 5."
    both, weights = np.vstack([X, new[:1]]), np.append(np.random.default_rng(1).uniform(0.5, 1.5, len(X)), 0.0)
    weighted = make(min_group=4).fit(both, sample_weight=weights)
    assert not weighted.is_outlier_[:-1][in_group].any()
    assert not weighted.is_outlier_[-1]
    assert weighted.predict(both)[-1] != -1


def test_scores_of_the_detector_know_of_protection_and_rethreshold_gives_what_a_fit_gives(crowded):
    X, _ = crowded
    detector = MOSAICOutlierDetector(0.18, min_group=5).fit(X)
    np.testing.assert_array_equal(detector.decision_function(X) < 0, detector.is_outlier_)
    np.testing.assert_array_equal(detector.predict(X), np.concatenate([detector.predict(x[None]) for x in X]))
    again, fresh = ESTIMATORS["selector"]().fit(X).rethreshold(min_group=5), ESTIMATORS["selector"](min_group=5).fit(X)
    np.testing.assert_array_equal(again.is_outlier_, fresh.is_outlier_)


def test_pyod_and_explanation_know_of_protection(crowded):
    X, in_group = crowded
    detector = MOSAICOutlierDetector(0.18, min_group=5).fit(X)
    pytest.importorskip("pyod")
    adapter = detector.to_pyod()
    np.testing.assert_array_equal(adapter.decision_scores_ > adapter.threshold_, adapter.labels_ == 1)
    np.testing.assert_allclose(adapter.decision_scores_, adapter.decision_function(X), atol=ROUNDING_OF_COUNTS)
    why = detector.explain(int(np.flatnonzero(in_group)[0]))
    assert "one of a group of at least 5" in why.reason


@pytest.mark.parametrize("wrong", [1, 0, -3, "five", True, np.nan])
def test_wrong_sizes_are_refused_and_paper_mode_knows_no_groups(wrong, rng):
    X = rng.normal(size=(30, 2))
    for estimator in (MOSAIC(5, min_group=wrong), MOSAICOutlierDetector(min_group=wrong)):
        with pytest.raises(InvalidInputError, match="min_group must be"):
            estimator.fit(X)
    with pytest.raises(InvalidInputError, match="min_group"):
        MOSAIC(5, algorithm="paper", min_group=5).fit(X)
