"""Decisions about outliers: shares, valleys, clusters, and what the automatic cut makes of clean and spoilt data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mosaic import datasets
from mosaic.kernels import EffectiveCount, make_kernel
from mosaic.outliers import (
    ISOLATED,
    LARGEST_SHARE,
    NOBODY,
    SMALLEST_CROWD,
    VALLEY_LEVEL,
    Cut,
    cut_for_share,
    find_cut,
    find_valley,
    is_cluster,
    outlier_probability,
)
from mosaic.program import encode


def similar_to_twenty(X, name="rbf"):
    return make_kernel(X, name, gamma=EffectiveCount(20.0))


def counts_of(kernel):
    return encode(kernel, alpha=100.0, tol=1e-3).effective_count


# The paper's measure and cuts


def test_outlier_probability_is_the_paper_s_measure(rng):
    counts = rng.uniform(1.0, 200.0, 50)
    np.testing.assert_allclose(outlier_probability(counts, 200.0), (200.0 - counts) / 199.0)


def test_outlier_probability_stays_between_zero_and_one_and_falls_with_the_count():
    counts = np.array([0.5, 1.0, 3.0, 50.0, 100.0, 101.0])
    found = outlier_probability(counts, 100.0)
    assert found[0] == found[1] == 1.0
    assert found[-1] == found[-2] == 0.0
    assert (np.diff(found[1:5]) < 0).all()


def test_the_only_point_is_no_outlier():
    assert outlier_probability(np.array([1.0]), 1.0) == [0.0]


def test_points_below_the_cut_are_outliers_and_the_one_on_it_is_not():
    assert Cut(2.0, "threshold").below(np.array([1.0, 2.0, 3.0])).tolist() == [True, False, False]
    assert not NOBODY.below(np.ones(3)).any()


@pytest.mark.parametrize("rule", ["isolated", "valley", "contamination", "threshold"])
def test_reason_names_the_count(rule):
    assert "2.5" in Cut(2.5, rule, 1e-7).reason


def test_reason_of_no_cut_is_that_nothing_is_an_outlier():
    assert NOBODY.reason == "nothing is an outlier"


# A share that is known


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.25, 0.5])
def test_share_of_distinct_counts_is_met_to_half_a_point(rng, share):
    counts = rng.permutation(np.geomspace(1.0, 90.0, 200))
    cut = cut_for_share(counts, np.ones(200), share)
    flagged = cut.below(counts)
    assert abs(flagged.sum() - share * 200) <= 0.5
    assert cut.rule == "contamination"
    assert counts[flagged].max() < cut.count < counts[~flagged].min()


def test_share_never_splits_equal_counts_and_is_as_near_as_it_can_be(rng):
    for _ in range(100):
        counts = rng.integers(1, 8, size=30).astype(float)
        weights = rng.integers(1, 4, size=30).astype(float)
        share = rng.uniform(0.01, 0.5)
        flagged = cut_for_share(counts, weights, share).below(counts)
        # Flagging must be "all below some value": compare with every such set, nobody among them.
        possible = [weights[counts < value].sum() for value in np.unique(counts)]
        wanted = share * weights.sum()
        assert weights[flagged].sum() in possible
        assert abs(weights[flagged].sum() - wanted) == pytest.approx(min(abs(p - wanted) for p in possible))


def test_share_is_one_of_weight_and_not_of_rows():
    counts = np.arange(1.0, 11.0)
    weights = np.ones(10)
    weights[0] = 5.0
    assert cut_for_share(counts, weights, 5 / 14).below(counts).sum() == 1
    assert cut_for_share(counts, np.ones(10), 5 / 14).below(counts).sum() == 4


def test_share_of_copies_is_that_of_weights(rng):
    counts, times = rng.uniform(1, 50, 40), rng.integers(1, 5, 40)
    by_weight = cut_for_share(counts, times.astype(float), 0.2)
    by_copies = cut_for_share(np.repeat(counts, times), np.ones(times.sum()), 0.2)
    assert by_weight.count == pytest.approx(by_copies.count)


def test_nobody_is_flagged_where_all_counts_are_equal_or_the_share_is_too_small():
    assert cut_for_share(np.full(50, 3.0), np.ones(50), 0.5) is NOBODY
    assert cut_for_share(np.ones(1), np.ones(1), 0.5) is NOBODY
    assert cut_for_share(np.arange(1.0, 11.0), np.ones(10), 0.01) is NOBODY


# Valleys

UNIMODAL = {
    "normal": lambda rng: rng.normal(size=300),
    "uniform": lambda rng: rng.uniform(size=300),
    "long tail of low counts": lambda rng: -rng.exponential(size=300),
    "long tail of high counts": lambda rng: rng.exponential(size=300),
}


@pytest.mark.parametrize("draw", UNIMODAL.values(), ids=UNIMODAL.keys())
def test_one_mode_is_never_taken_for_two(draw):
    rng = np.random.default_rng(0)
    p_values = [find_valley(np.exp(2.0 + draw(rng)))[1] for _ in range(200)]
    assert min(p_values) >= VALLEY_LEVEL


def planted(rng, low=20, high=380):
    """Counts of which some are about 2 and the rest about 20."""
    return np.exp(np.concatenate([rng.normal(0.7, 0.1, low), rng.normal(3.0, 0.25, high)]))


@pytest.mark.parametrize("seed", range(10))
def test_group_of_low_counts_is_found_and_the_cut_lies_between(seed):
    counts = planted(np.random.default_rng(seed))
    cut, p = find_valley(counts)
    assert p < VALLEY_LEVEL
    assert counts[:20].max() < cut < counts[20:].min()


def test_valley_follows_the_scale_and_forgets_the_order_of_counts(rng):
    counts = planted(rng)
    cut, p = find_valley(counts)
    for scale in (0.01, 7.0):
        scaled, same_p = find_valley(scale * counts)
        assert scaled == pytest.approx(scale * cut)
        assert same_p == pytest.approx(p)
    assert find_valley(rng.permutation(counts)) == (cut, p)


@pytest.mark.parametrize("seed", range(10))
def test_few_points_that_stand_for_very_many_make_no_outliers_of_the_rest(seed):
    _, p = find_valley(1000.0 / planted(np.random.default_rng(seed)))
    assert p >= VALLEY_LEVEL


def test_low_counts_of_more_than_half_are_not_the_odd_ones(rng):
    counts = planted(rng, low=230, high=170)
    cut, p = find_valley(counts)
    assert p >= VALLEY_LEVEL or (counts < cut).mean() <= LARGEST_SHARE


@pytest.mark.parametrize("counts", [np.ones(1), np.full(50, 4.0), np.array([1.0, 9.0])])
def test_too_little_to_see_a_valley_in(counts):
    assert find_valley(counts)[1] >= VALLEY_LEVEL


# Clusters


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("d", [2, 5, 10])
def test_cluster_that_is_four_times_as_wide_is_a_cluster(rng, d, name):
    X = np.vstack([rng.normal(size=(300, d)), 12.0 + 4.0 * rng.normal(size=(60, d))])
    low = np.arange(360) >= 300
    kernel = similar_to_twenty(X, name)
    assert is_cluster(kernel, low, low)
    if name == "rbf":
        counts = counts_of(kernel)
        assert find_valley(counts)[1] < VALLEY_LEVEL  # its counts alone would condemn it
        assert find_cut(counts, kernel) is NOBODY


@pytest.mark.parametrize("seed", range(3))
def test_scattered_noise_is_no_cluster(seed):
    roll = datasets.embed(datasets.swiss_roll(300, random_state=seed), 20, random_state=seed)
    data = datasets.contaminate(roll, 60, random_state=seed)
    assert not is_cluster(similar_to_twenty(data.X), data.is_outlier, data.is_outlier)


def test_tight_points_among_the_others_are_no_cluster_because_their_neighbours_are_not_their_own(rng):
    X = rng.normal(size=(300, 2))
    assert not is_cluster(similar_to_twenty(X), low := np.arange(300) % 6 == 0, low)


def test_a_handful_is_too_small_for_a_cluster_however_tight(rng):
    X = np.vstack([rng.normal(size=(100, 10)), 30.0 + 0.1 * rng.normal(size=(SMALLEST_CROWD, 10))])
    kernel, low = similar_to_twenty(X), np.arange(len(X)) >= 100
    assert is_cluster(kernel, low, low)
    low[-1] = False
    assert not is_cluster(kernel, low, low)


def test_kernel_without_a_bandwidth_has_no_scale_to_judge_a_cluster_by(rng):
    X = np.vstack([rng.normal(size=(100, 2)), 30.0 + rng.normal(size=(50, 2))])
    low = np.arange(150) >= 100
    assert is_cluster(similar_to_twenty(X), low, low)
    assert not is_cluster(make_kernel(X, "linear"), low, low)


# The automatic cut

DIGITS = load_digits().data[:500]


def clean(name, seed):
    rng = np.random.default_rng(seed)
    return {
        "plane": lambda: rng.normal(size=(300, 2)),
        "ten dimensions": lambda: rng.normal(size=(300, 10)),
        "cube": lambda: rng.uniform(size=(300, 3)),
        "roll": lambda: datasets.embed(datasets.swiss_roll(300, random_state=seed), 20, noise=0.5, random_state=seed),
        "sphere": lambda: datasets.sphere(300, random_state=seed),
        "digits": lambda: DIGITS[seed::2],
    }[name]()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["plane", "ten dimensions", "cube", "roll", "sphere", "digits"])
def test_clean_data_has_hardly_an_outlier(name, seed):
    kernel = similar_to_twenty(clean(name, seed))
    counts = counts_of(kernel)
    cut = find_cut(counts, kernel)
    assert cut.below(counts).mean() <= 0.02
    assert cut.rule in ("isolated", "none")


def spoilt(kind, seed):
    if kind == "gross":
        return datasets.blobs_with_gross_outliers(random_state=seed)
    if kind == "images":
        images = datasets.noise_images(50, DIGITS, random_state=seed)
        return datasets.contaminate(DIGITS, 40, kind="images", images=images, random_state=seed)
    if kind == "shuffled":
        return datasets.contaminate(DIGITS, 0.1, kind="shuffled", random_state=seed)
    return datasets.contaminate(clean("roll", seed), 0.2, kind=kind, random_state=seed)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["uniform", "dependent", "heavy-tailed", "images", "shuffled", "gross"])
def test_planted_outliers_are_found_and_the_others_left_in_peace(kind, seed):
    data = spoilt(kind, seed)
    kernel = similar_to_twenty(data.X)
    counts = counts_of(kernel)
    flagged = find_cut(counts, kernel).below(counts)
    assert flagged[data.is_outlier].mean() >= 0.8
    assert flagged[~data.is_outlier].mean() <= 0.02


def test_never_more_than_half_are_flagged(rng):
    kernel = make_kernel(rng.normal(size=(100, 2)), "linear")
    for share in (0.3, 0.5, 0.51, 0.9, 1.0):
        alone = round(100 * share)
        counts = np.concatenate([np.ones(alone), rng.uniform(20, 30, 100 - alone)])
        flagged = find_cut(counts, kernel).below(counts)
        assert flagged.sum() == (alone if share <= LARGEST_SHARE else 0)


def test_lonely_points_are_flagged_and_nearly_lonely_ones_are_not(rng):
    counts = np.concatenate([rng.uniform(20, 30, 97), [1.0, ISOLATED - 0.01, ISOLATED]])
    cut = find_cut(counts, make_kernel(rng.normal(size=(100, 2)), "linear"))
    assert cut.rule == "isolated"
    assert np.flatnonzero(cut.below(counts)).tolist() == [97, 98]


def test_valley_below_the_count_of_lonely_points_is_moved_up_to_it(rng):
    # A steep beginning and a thin bridge to the crowd: the foot of the valley is where the bridge begins.
    counts = np.concatenate([np.ones(60), np.exp(0.02 * np.arange(1, 120)), rng.uniform(18, 20, 340)])
    foot, p = find_valley(counts)
    assert p < VALLEY_LEVEL
    assert foot < ISOLATED
    cut = find_cut(counts, make_kernel(rng.normal(size=(len(counts), 2)), "linear"))
    assert cut == Cut(ISOLATED, "valley", p)


def test_points_off_the_subspace_of_the_others_are_found_by_a_linear_similarity():
    data = datasets.contaminate(datasets.embed(datasets.swiss_roll(200), 20), 0.2)
    kernel = make_kernel(data.X, "linear")
    counts = counts_of(kernel)
    flagged = find_cut(counts, kernel).below(counts)
    assert flagged[data.is_outlier].mean() >= 0.8
    assert not flagged[~data.is_outlier].any()


def test_same_seed_gives_the_same_cut():
    data = spoilt("uniform", 0)
    kernel = similar_to_twenty(data.X)
    counts = counts_of(kernel)
    assert find_cut(counts, kernel, random_state=3) == find_cut(counts, kernel, random_state=3)
