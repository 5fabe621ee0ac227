"""Decisions about outliers: shares, valleys, crowds, and what the automatic cut makes of clean and spoilt data."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from mosaic import MOSAIC, MOSAICOutlierDetector, SelectionWarning, datasets
from mosaic.choosing.outliers import (
    LARGEST_OUTLIER_SHARE,
    NO_OUTLIERS,
    VALLEY_LEVEL,
    Cut,
    cut_for_share,
    dimension,
    far_tail,
    find_outliers,
    find_valley,
    outlier_probability,
    own_neighbours,
    tenth_nearest,
)
from mosaic.kernels import make_kernel

DIGITS = load_digits().data


# The paper's measure and cuts


def test_outlier_probability_is_the_paper_s_measure_and_the_point_on_a_cut_is_no_outlier():
    counts = np.array([0.5, 1.0, 3.0, 50.0, 100.0, 101.0])
    found = outlier_probability(counts, 100.0)
    np.testing.assert_allclose(found, np.clip((100.0 - counts) / 99.0, 0.0, 1.0))
    assert outlier_probability(np.array([1.0]), 1.0) == [0.0]  # the only point is no outlier
    assert found[0] == found[1] == 1.0
    assert found[-1] == found[-2] == 0.0
    assert (np.diff(found[1:5]) < 0).all()
    assert Cut(2.0, "threshold").below(np.array([1.0, 2.0, 3.0])).tolist() == [True, False, False]
    assert not NO_OUTLIERS.below(np.ones(3)).any()


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


def test_counts_that_differ_by_rounding_only_are_flagged_together():
    counts = np.array([2.0, 2.0 * (1 + 1e-15), 5.0, 6.0, 7.0, 8.0, 9.0, 9.5])
    for share, flagged in ((0.125, 2), (0.05, 0), (0.25, 2), (0.375, 3)):
        assert cut_for_share(counts, np.ones(8), share).below(counts).sum() == flagged


def test_nobody_is_flagged_where_all_counts_are_equal_or_the_share_is_too_small():
    for counts, share in ((np.full(50, 3.0), 0.5), (np.ones(1), 0.5), (np.arange(1.0, 11.0), 0.01)):
        assert cut_for_share(counts, np.ones(len(counts)), share) == Cut(0.0, "contamination")


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
    assert find_valley(1000.0 / counts)[1] >= VALLEY_LEVEL  # a few that stand for very many make no outliers of the rest


def test_valley_follows_the_scale_and_forgets_the_order_of_counts(rng):
    counts = planted(rng)
    cut, p = find_valley(counts)
    for scale in (0.01, 7.0):
        scaled, same_p = find_valley(scale * counts)
        assert scaled == pytest.approx(scale * cut)
        assert same_p == pytest.approx(p)
    assert find_valley(rng.permutation(counts)) == (cut, p)


def test_copies_of_a_few_counts_are_no_crowds_but_many_points_that_are_alone_are_one(rng):
    few = np.array([5.0, 5.1, 5.2, 9.0, 9.1, 9.2, 9.3])
    assert find_valley(np.repeat(few, 50) * (1.0 + 1e-9 * rng.normal(size=350)))[1] >= VALLEY_LEVEL
    counts = np.append(np.ones(60), rng.uniform(10, 20, 340))
    foot, p = find_valley(counts)
    assert p < VALLEY_LEVEL
    assert (counts < foot).sum() == 60
    for too_few in (np.ones(1), np.full(50, 4.0), np.array([1.0, 9.0])):
        assert find_valley(too_few)[1] >= VALLEY_LEVEL


@pytest.mark.parametrize("columns", [3, 30])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_copies_but_for_rounding_are_no_outliers(columns, seed):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(20, columns)), 10, axis=0) + 1e-10 * rng.normal(size=(200, columns))
    assert not MOSAICOutlierDetector().fit(X).is_outlier_.any()


# Distances


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear"])
def test_tenth_nearest_is_that_of_sorted_distances(rng, name):
    X = rng.normal(size=(150, 2))
    kernel = make_kernel(X, name, gamma=1.0) if name != "linear" else make_kernel(X, name)
    D = np.abs(X[:, None] - X).sum(-1) if name == "laplacian" else ((X[:, None] - X) ** 2).sum(-1)
    np.testing.assert_allclose(tenth_nearest(kernel, np.arange(20)), np.sort(D, axis=1)[:20, 10], atol=1e-12)
    three = make_kernel(np.array([[0.0], [1.0], [10.0]]), "rbf", gamma=0.1)  # of few points, the farthest counts
    assert tenth_nearest(three, np.arange(3)).tolist() == [100.0, 81.0, 100.0]


def test_cluster_stands_apart_and_noise_around_the_data_does_not(rng):
    members = np.arange(560) >= 500
    X = np.vstack([rng.normal(size=(500, 5)), 30.0 + 3.0 * rng.normal(size=(60, 5))])
    assert own_neighbours(make_kernel(X, "rbf", gamma=0.05), members, np.flatnonzero(members)).min() == 1.0
    for columns in (5, 100):
        X = np.vstack([rng.normal(size=(500, columns)), rng.uniform(-4, 4, size=(60, columns))])
        assert own_neighbours(make_kernel(X, "rbf", gamma=0.05), members, np.flatnonzero(members)).mean() < 0.5


def test_nearly_equal_distances_do_not_make_noise_a_group(rng):
    """In 50 columns the noise is a little nearer to itself than to the sphere; only a quarter nearer would make it a group."""
    X = datasets.embed(datasets.sphere(1000), 50)
    X = np.vstack([X, rng.uniform(X.min(axis=0), X.max(axis=0), size=(1000, 50))])
    members, D = np.arange(2000) >= 1000, ((X[1000:1100, None] - X) ** 2).sum(-1)
    assert members[np.argsort(D, axis=1)[:, 1:11]].mean() > 0.8
    assert own_neighbours(make_kernel(X, "rbf"), members, np.flatnonzero(members)).mean() < 0.5


# The automatic cut


def test_where_the_far_tail_ends_is_said_in_deviations_of_a_normal_distribution(rng):
    counts = np.exp(0.5 + 0.02 * rng.normal(size=4001))
    for share in (0.1, 0.25):
        assert np.log(far_tail(counts, share)) == pytest.approx(0.5 - 2.5 * 0.02, abs=0.003)


def test_low_counts_are_outliers_unless_they_are_a_group_of_a_dozen(rng):
    counts = np.concatenate([np.full(15, 1.0), rng.uniform(20, 30, 385)])
    X = rng.normal(size=(400, 2))
    for spread in (0.1, 3.0):
        X[:15] = 20.0 + spread * rng.normal(size=(15, 2))
        cut, kept = find_outliers(counts, make_kernel(X, "rbf"))
        assert np.flatnonzero(kept.group == 1).tolist() == list(range(15))
        assert not (cut.below(counts) & ~kept.members).any()
    X[:15] = 100.0 * rng.normal(size=(15, 2))  # around all others
    cut, kept = find_outliers(counts, make_kernel(X, "rbf"))
    assert kept is None
    assert np.flatnonzero(cut.below(counts)).tolist() == list(range(15))
    counts[:4], X[4:15] = 25.0, 20.0 + 0.1 * rng.normal(size=(11, 2))
    cut, kept = find_outliers(counts, make_kernel(X, "rbf"))  # eleven are judged one by one
    assert kept is None or not kept.group.max() > 0


@pytest.mark.parametrize("size", [20, 60, 150])
def test_crowd_is_out_unless_it_is_a_group(rng, size):
    counts = planted(rng, low=size, high=340)
    foot, _ = find_valley(counts)
    low = np.arange(340 + size) < size
    X = np.vstack([rng.uniform(-8, 8, size=(size, 10)), rng.normal(size=(340, 10))])
    cut, kept = find_outliers(counts, make_kernel(X, "rbf"))
    assert cut == Cut(foot, "valley")
    assert kept is None
    X[:size] = 40.0 + 3.0 * rng.normal(size=(size, 10))
    cut, kept = find_outliers(counts, make_kernel(X, "rbf"))
    assert kept.group.tolist() == low.astype(int).tolist()
    assert cut.rule == "alone"


def test_rows_of_higher_dimension_are_noise_even_beside_the_others_and_of_the_same_dimension_a_group(rng):
    """A cube of ten columns beside a plane in ten columns, and another plane."""
    plane = np.hstack([rng.normal(size=(400, 2)), np.zeros((400, 8))])
    counts = planted(rng, low=80, high=400)
    cube = 20.0 + rng.uniform(-5, 5, size=(80, 10))
    cut, kept = find_outliers(counts, make_kernel(np.vstack([cube, plane]), "rbf"))
    assert cut.rule == "valley"
    assert kept is None
    cube[:, 2:] = 20.0
    _, kept = find_outliers(counts, make_kernel(np.vstack([cube, plane]), "rbf"))
    assert (kept.group[:80] == 1).all()


def test_dimension_is_that_of_the_surface_on_which_rows_lie(rng):
    for columns in (1, 2, 5):
        X = rng.uniform(size=(400, columns)) @ np.linalg.qr(rng.normal(size=(20, columns)))[0].T
        found = dimension(make_kernel(X, "rbf", gamma=1.0), np.arange(400))
        assert 0.75 * columns < found < 1.25 * columns


def test_never_more_than_half_are_flagged(rng):
    for share in (0.3, 0.5, 0.51, 0.9, 1.0):
        alone = round(100 * share)
        counts = np.concatenate([np.ones(alone), rng.uniform(20, 30, 100 - alone)])
        X = np.vstack([rng.uniform(-30, 30, size=(alone, 10)), rng.normal(size=(100 - alone, 10))])
        flagged = find_outliers(counts, make_kernel(X, "rbf"))[0].below(counts)
        assert flagged.sum() == (alone if share <= LARGEST_OUTLIER_SHARE else 0)


# On data: the stated rate of false alarms

CLEAN = {
    **{f"normal, {d} columns": lambda n, rng, d=d: rng.normal(size=(n, d)) for d in (2, 5, 16, 64)},
    **{f"uniform, {d} columns": lambda n, rng, d=d: rng.uniform(size=(n, d)) for d in (2, 16)},
    "blobs": lambda n, rng: rng.normal(size=(8, 10))[rng.integers(8, size=n)] * 5.0 + rng.normal(size=(n, 10)),
    "swiss roll": lambda n, rng: datasets.swiss_roll(n, random_state=int(rng.integers(1000))),
    "sphere": lambda n, rng: datasets.sphere(n, random_state=int(rng.integers(1000))),
    "digits": lambda n, rng: DIGITS[rng.permutation(len(DIGITS))[:n]],
}
HEAVY = {
    **{f"t with 3 degrees, {d} columns": lambda n, rng, d=d: rng.standard_t(3, size=(n, d)) for d in (2, 16)},
    **{f"lognormal, {d} columns": lambda n, rng, d=d: rng.lognormal(size=(n, d)) for d in (2, 10)},
    "exponential, 4 columns": lambda n, rng: rng.exponential(size=(n, 4)),
}


@pytest.mark.parametrize("n", [300, pytest.param(1000, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*CLEAN, *HEAVY])
def test_of_clean_rows_fewer_than_one_in_a_hundred_are_rejected_and_hardly_more_with_heavy_tails(name, n):
    samples = [(CLEAN | HEAVY)[name](n, np.random.default_rng(seed)) for seed in range(3)]
    rejected = [MOSAICOutlierDetector().fit(X).is_outlier_.mean() for X in samples]
    if name in CLEAN:
        assert max(rejected) < 0.01
    else:
        assert np.mean(rejected) <= 0.03


@pytest.mark.parametrize("draw", HEAVY.values(), ids=HEAVY.keys())
def test_gross_errors_are_found_among_heavy_tails(draw):
    rng = np.random.default_rng(0)
    X = draw(1000, rng)
    X[:10] = 30.0 * X[:10] + 100.0 * rng.normal(size=(10, X.shape[1]))
    assert MOSAICOutlierDetector().fit(X).is_outlier_[:10].all()


@pytest.mark.parametrize("columns", [10, 50])
@pytest.mark.parametrize(("clusters", "seed"), [(80, 2), (150, 0)])
def test_no_cluster_is_rejected_where_there_are_many(clusters, seed, columns):
    for d in (2, columns):
        X, y = make_blobs(3000, n_features=d, centers=clusters, cluster_std=0.3, center_box=(-30, 30), random_state=seed)
        flagged = MOSAICOutlierDetector().fit(X).is_outlier_
        assert max(flagged[y == cluster].mean() for cluster in range(clusters)) < 0.5
        assert flagged.mean() <= 0.01


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("n", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("columns", [10, 20, 50, 100])
@pytest.mark.parametrize("manifold", [datasets.sphere, datasets.trefoil, datasets.swiss_roll])
def test_noise_around_a_manifold_is_found_and_gets_no_representative(manifold, columns, n):
    rng = np.random.default_rng(0)
    honest = datasets.embed(manifold(n, random_state=0), columns, random_state=0)
    for ratio in (0.1, 0.5):
        noise = rng.uniform(honest.min(axis=0), honest.max(axis=0), size=(round(ratio * n), columns))
        model = MOSAIC(20).fit(np.vstack([honest, noise]))
        assert model.is_outlier_[n:].mean() > 0.7
        assert not model.is_outlier_[:n].any()
        assert (model.representative_indices_ < n).all()


@pytest.mark.parametrize("columns", [2, 5, 10])
def test_lognormal_columns_are_treated_alike_with_and_without_a_category_beside_them(columns):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    X = rng.lognormal(size=(2000, columns))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)]).assign(kind=rng.choice(list("abc"), 2000))
    array, mixed = (MOSAICOutlierDetector().fit(each).is_outlier_.mean() for each in (X, frame))
    assert max(array, mixed) <= 0.02


def spoilt(kind, seed):
    roll = datasets.embed(datasets.swiss_roll(300, random_state=seed), 20, noise=0.5, random_state=seed)
    if kind == "gross":
        return datasets.blobs_with_gross_outliers(random_state=seed)
    if kind == "images":
        images = datasets.noise_images(20, DIGITS[:500], random_state=seed)
        return datasets.Contaminated(np.vstack([DIGITS[:500], images]), np.arange(520) >= 500)
    return datasets.contaminate(roll, 0.2, kind=kind, random_state=seed)


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["uniform", "repetitive", "images", "gross"])
def test_planted_outliers_are_found_and_the_others_left_in_peace(kind, seed):
    data = spoilt(kind, seed)
    flagged = MOSAICOutlierDetector().fit(data.X).is_outlier_
    assert flagged[data.is_outlier].mean() >= 0.8
    assert flagged[~data.is_outlier].mean() <= 0.02


@pytest.mark.parametrize("columns", [2, 5, 50])
@pytest.mark.parametrize("size", [12, 40, 300])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_group_of_any_size_is_kept_and_told_with_its_rows(size, spread, columns):
    rng = np.random.default_rng(size)
    X = np.vstack([rng.normal(size=(1500 - size, columns)), 20.0 + spread * rng.normal(size=(size, columns))])
    in_group = np.arange(1500) >= 1500 - size
    for estimator in (MOSAIC(10), MOSAICOutlierDetector()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(X)
        assert estimator.is_outlier_[in_group].mean() < 0.1
        assert estimator.is_outlier_[~in_group].mean() < 0.01
        for rows in estimator.selection_.kept_rows:  # a group as tight as the rest need not have low counts
            assert in_group[rows].all()
            told = f"A group of {len(rows)} rows that few rows look like is kept"
            assert told in str(caught[0].message)
            assert told in str(estimator.explain())
        if spread > 1:
            (rows,) = estimator.selection_.kept_rows
            assert len(rows) > 0.9 * size
        np.testing.assert_array_equal(estimator.predict(X) == -1, estimator.is_outlier_)
        if size > 12:  # new rows of the group are judged as it is
            new = 20.0 + spread * rng.normal(size=(100, columns))
            assert (estimator.predict(new) == -1).mean() < 0.1


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
def test_gross_outliers_and_noise_beside_a_group_are_out_and_two_groups_are_told_apart():
    rng = np.random.default_rng(0)
    rest, first, second = rng.normal(size=(1000, 5)), 20.0 + 2.0 * rng.normal(size=(60, 5)), -25.0 + rng.normal(size=(30, 5))
    gross = 200.0 * rng.normal(size=(6, 5))
    detector = MOSAICOutlierDetector().fit(np.vstack([rest, first, second, gross]))
    assert [len(rows) for rows in detector.selection_.kept_rows] == [60, 30]
    assert np.flatnonzero(detector.is_outlier_).tolist() == list(range(1090, 1096))
    surface = datasets.embed(datasets.sphere(1000), 20)
    noise = rng.uniform(surface.min(axis=0), surface.max(axis=0), size=(300, 20))
    group = 3.0 + 0.2 * datasets.embed(datasets.sphere(60), 20)
    for rows in (slice(None), slice(None, None, -1)):  # whatever their order
        X, is_noise = np.vstack([surface, group, noise])[rows], (np.arange(1360) >= 1060)[rows]
        detector = MOSAICOutlierDetector().fit(X)
        assert detector.is_outlier_[is_noise].mean() > 0.95
        assert detector.is_outlier_[~is_noise].mean() < 0.01


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.3, 0.5])
def test_noise_among_digits_is_found_at_every_share(share):
    rng = np.random.default_rng(1)
    noise = rng.uniform(0, 16, size=(round(share * len(DIGITS)), 64))
    flagged = MOSAICOutlierDetector().fit(np.vstack([DIGITS, noise])).is_outlier_
    assert flagged[len(DIGITS) :].mean() > 0.92
    assert flagged[: len(DIGITS)].mean() < 0.01


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
def test_kept_group_of_the_rows_of_a_pick_has_a_pick_within_quotas_and_constraints():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(570, 5)), 20.0 + rng.normal(size=(30, 5))])
    in_group, half = np.arange(600) >= 570, np.arange(600) % 2
    for k in (20, 25, 40):
        picks = MOSAIC(k).fit(X).representative_indices_
        assert len(picks) == k
        assert in_group[picks].any()
    picks = MOSAIC(25).fit(X, groups=half, quotas={0: 4}, must_include=[3, 5]).representative_indices_
    assert len(picks) == 25
    assert (half[picks] == 0).sum() == 4
    assert {3, 5} <= set(picks.tolist())
    assert in_group[picks].any()
    assert not in_group[MOSAIC(25).fit(X, exclude=np.flatnonzero(in_group)).representative_indices_].any()


@pytest.mark.parametrize("n", [300, 1000, 3000])
def test_normal_data_of_one_column_has_one_outlier_in_a_hundred_at_most(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        draws = [np.random.default_rng(seed).normal(size=(n, 1)) for seed in range(20)]
        flagged = [MOSAICOutlierDetector().fit(X).is_outlier_.mean() for X in draws]
    assert np.mean(flagged) <= 0.01


def test_crowd_that_is_rejected_is_told_and_warned_of_with_its_size_and_a_remedy():
    data = spoilt("uniform", 0)
    for estimator in (MOSAIC(10), MOSAICOutlierDetector()):
        remedy = "rows .* are taken for outliers: .* set outliers='keep' or min_group"
        with pytest.warns(SelectionWarning, match=remedy) as caught:
            estimator.fit(data.X)
        odd = np.flatnonzero(estimator.is_outlier_)
        assert f"{len(odd)} of {len(data.X)} rows" in str(caught[0].message)
        assert f"{len(odd)} outliers: a valley in the effective counts separates them" in str(estimator.explain())
        assert "Many rows" not in estimator.explain(int(odd[0])).reason


def test_up_to_a_twentieth_and_a_share_that_was_declared_are_not_warned_of(rng):
    MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X)  # warnings are errors
    MOSAICOutlierDetector(contamination=0.3).fit(rng.normal(size=(200, 3)))
    MOSAIC(5, contamination=0.3).fit(rng.normal(size=(200, 3)))


def test_points_off_the_subspace_of_the_others_are_found_by_a_linear_similarity():
    data = datasets.contaminate(datasets.embed(datasets.swiss_roll(200), 20), 0.2)
    with pytest.warns(SelectionWarning, match="are taken for outliers"):
        flagged = MOSAICOutlierDetector(kernel="linear").fit(data.X).is_outlier_
    assert flagged[data.is_outlier].mean() >= 0.8
    assert not flagged[~data.is_outlier].any()


def test_gross_outliers_beside_large_groups_are_out_though_only_some_rows_of_these_are_linked(rng):
    cluster = np.sort(rng.choice(12, 12_000, p=np.geomspace(1, 100, 12) / np.geomspace(1, 100, 12).sum()))
    X = 8.0 * rng.normal(size=(12, 30))[cluster] + rng.uniform(0.3, 2.0, 12)[cluster, None] * rng.normal(size=(12_000, 30))
    far = rng.normal(size=(15, 30))
    X = np.vstack([X, 600.0 * far / np.linalg.norm(far, axis=1, keepdims=True) * rng.uniform(1, 3, (15, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        flagged = MOSAICOutlierDetector().fit(X).is_outlier_
    assert flagged[-15:].all()
    assert flagged[:-15].mean() <= 0.01
