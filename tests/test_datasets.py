"""Synthetic data against what they claim: geometry, uniformity, and which rows are outliers."""

from __future__ import annotations

import dataclasses
from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist
from scipy.stats import ks_2samp, kstest, spearmanr
from sklearn.datasets import load_digits, make_swiss_roll

from mosaic import datasets
from mosaic.datasets import (
    Contaminated,
    blobs_with_gross_outliers,
    contaminate,
    embed,
    noise_images,
    sphere,
    swiss_roll,
    trefoil,
    union,
)
from mosaic.exceptions import InvalidInputError

KINDS = get_args(datasets.Kind)
SEEDS = range(50)


def n_distinct(X):
    return len(np.unique(X, axis=0))


def spoil(X, amount, kind, **arguments):
    if kind == "images":
        arguments["images"] = np.random.default_rng(99).normal(size=(500, X.shape[1]))
    return contaminate(X, amount, kind=kind, **arguments)


def in_order(X, amount, kind, **arguments):
    """The outliers alone."""
    return spoil(X, amount, kind, shuffle=False, **arguments).X[len(X) :]


def dense_trefoil(n=60_001):
    """The knot as a fine polygon, and the length of the polygon up to each corner."""
    t = np.linspace(0, 2 * np.pi, n)
    knot = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    steps = np.linalg.norm(np.diff(knot, axis=0), axis=1)
    return knot, np.concatenate([[0.0], np.cumsum(steps)])


def roll_area(points):
    """Share of the roll's area that is wound inside of each point, from the length of Archimedes' spiral."""
    s = lambda t: 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))  # noqa: E731
    inner, outer = s(1.5 * np.pi), s(4.5 * np.pi)
    return (s(np.hypot(points[:, 0], points[:, 2])) - inner) / (outer - inner)


# ---------------------------------------------------------------------------------------------------- manifolds


@pytest.mark.parametrize(("intrinsic", "radius"), [(1, 1.0), (2, 3.0), (7, 0.1)])
def test_sphere_has_its_radius_and_dimension(intrinsic, radius):
    X = sphere(200, radius=radius, intrinsic=intrinsic)
    assert X.shape == (200, intrinsic + 1)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), radius, rtol=1e-12)


def test_sphere_is_uniform():
    # Archimedes: on the 2-sphere every coordinate is uniform in [−1, 1].
    X = sphere(4000, random_state=1)
    for coordinate in X.T:
        assert kstest(coordinate, "uniform", args=(-1, 2)).pvalue > 1e-3


def test_trefoil_lies_on_the_knot():
    X = trefoil(500)
    assert X.shape == (500, 3)
    # Corners of the polygon are 5e-4 apart, so points on the knot are within half of that.
    assert cKDTree(dense_trefoil()[0]).query(X)[0].max() < 3e-4


def test_trefoil_is_uniform_in_arc_length():
    knot, length = dense_trefoil()
    position = length[cKDTree(knot).query(trefoil(20_000))[1]] / length[-1]
    assert kstest(position, "uniform").pvalue > 1e-3
    # The knot is three equal lobes: folded upon one another they would show a parameter uniform in the angle.
    assert kstest(3 * position % 1, "uniform").pvalue > 1e-3
    angle = np.random.default_rng(0).integers(len(knot), size=20_000)
    assert kstest(3 * length[angle] / length[-1] % 1, "uniform").pvalue < 1e-6


def test_trefoil_fills_a_tube_of_its_width():
    knot, length = dense_trefoil()
    X = trefoil(4000, width=0.4)
    distance, nearest = cKDTree(knot).query(X)
    assert distance.max() < 0.4 + 1e-6
    assert kstest((distance / 0.4) ** 2, "uniform").pvalue > 1e-3  # uniform in the normal disc
    tangent = np.gradient(knot, length, axis=0)[nearest]
    normal = (X - knot[nearest]) / distance[:, None]
    assert np.abs(np.sum(normal * tangent, axis=1))[distance > 0.05].max() < 0.02
    assert np.abs(normal.mean(axis=0)).max() < 0.05


def test_swiss_roll_lies_on_the_roll():
    X = swiss_roll(500, height=7.0)
    assert X.shape == (500, 3)
    t = np.hypot(X[:, 0], X[:, 2])
    assert t.min() >= 1.5 * np.pi
    assert t.max() <= 4.5 * np.pi
    np.testing.assert_allclose(X[:, [0, 2]], np.stack([t * np.cos(t), t * np.sin(t)], axis=1), atol=1e-10)
    assert X[:, 1].min() >= 0
    assert 6.5 < X[:, 1].max() <= 7


def test_swiss_roll_is_uniform_in_area_and_that_of_sklearn_is_not():
    X = swiss_roll(4000)
    assert kstest(roll_area(X), "uniform").pvalue > 1e-3
    assert kstest(X[:, 1] / 21.0, "uniform").pvalue > 1e-3
    assert kstest(roll_area(make_swiss_roll(4000, random_state=0)[0]), "uniform").pvalue < 1e-6


def test_union_pads_labels_and_shifts():
    A, B = np.arange(4.0).reshape(2, 2), np.arange(9.0).reshape(3, 3)
    X, labels = union([A, B], offsets=[[10, 0, 5], [0, -1, 0]])
    assert labels.tolist() == [0, 0, 1, 1, 1]
    np.testing.assert_array_equal(X[:2], [[10, 1, 5], [12, 3, 5]])
    np.testing.assert_array_equal(X[2:], B - [0, 1, 0])
    np.testing.assert_array_equal(union([A, B], offsets=None)[0][2:], B)
    assert A.tolist() == [[0, 1], [2, 3]]


def test_union_apart_keeps_clouds_apart_and_in_shape():
    parts = [sphere(60, radius=0.3) + 5, swiss_roll(80), trefoil(50), np.zeros((1, 2)), sphere(40, intrinsic=4)]
    X, labels = union(parts)
    assert X.shape == (231, 5)
    radius = np.array([np.linalg.norm(part - (part.min(0) + part.max(0)) / 2, axis=1).max() for part in parts])
    for k, part in enumerate(parts):
        np.testing.assert_allclose(pdist(X[labels == k]), pdist(part), atol=1e-9)
        for j in range(k):
            assert cdist(X[labels == k], X[labels == j]).min() > 0.5 * max(radius[k], radius[j])
    centres = np.array([(X[labels == k].min(axis=0) + X[labels == k].max(axis=0)) / 2 for k in range(len(parts))])
    np.testing.assert_allclose(centres[:, 1:], 0, atol=1e-12)
    gaps = np.diff(centres[:, 0]) - radius[1:] - radius[:-1]
    np.testing.assert_allclose(gaps, max(radius), rtol=1e-12)


def test_union_apart_separates_single_points():
    X, _ = union([np.ones((1, 2)), np.ones((1, 2))])
    assert pdist(X)[0] > 0.5


@pytest.mark.parametrize("dimension", [3, 4, 40])
def test_embedding_keeps_distances(dimension):
    X = swiss_roll(60)
    embedded = embed(X, dimension, random_state=3)
    assert embedded.shape == (60, dimension)
    np.testing.assert_allclose(pdist(embedded), pdist(X), rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(embedded, axis=1), np.linalg.norm(X, axis=1), rtol=1e-12)


def test_embedding_adds_noise_of_the_given_level_in_every_coordinate():
    X = sphere(2000)
    noise = embed(X, 20, noise=0.3) - embed(X, 20)
    np.testing.assert_allclose(noise.std(axis=0), 0.3, rtol=0.1)
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert abs(noise.mean()) < 0.01


def test_embedding_is_uniform_among_rotations_and_reflections():
    maps = np.array([embed(np.eye(3), 3, random_state=seed) for seed in range(600)])
    # Every entry of a Haar matrix of order 3 is uniform in [−1, 1]; QR alone leaves the first one negative.
    for entry in maps.reshape(600, 9).T:
        assert kstest(entry, "uniform", args=(-1, 2)).pvalue > 1e-4
    assert abs(np.mean(np.linalg.det(maps))) < 4 / np.sqrt(600)


# ------------------------------------------------------------------------------------------------ contamination


@pytest.mark.parametrize("kind", KINDS)
def test_shuffled_rows_stay_aligned_with_the_truth(kind):
    X = embed(swiss_roll(40), 5)
    data = spoil(X, 30, kind)
    assert data.X.shape == (70, 5)
    assert data.is_outlier.dtype == bool
    assert data.is_outlier.sum() == 30
    np.testing.assert_array_equal(np.unique(data.X[~data.is_outlier], axis=0), np.unique(X, axis=0))
    assert cdist(data.X[data.is_outlier], X).min() > 0
    assert 0 < np.flatnonzero(data.is_outlier).mean() < 50  # not all at the end, where they are made


@pytest.mark.parametrize("kind", KINDS)
def test_without_shuffling_inliers_come_first_in_their_order(kind):
    X = swiss_roll(40)
    data = spoil(X, 10, kind, shuffle=False)
    np.testing.assert_array_equal(data.X[:40], X)
    assert data.is_outlier.tolist() == [False] * 40 + [True] * 10


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, 0), (1, 1), (np.int64(7), 7), (0.0, 0), (0.1, 4), (1.0, 40), (5.0, 200), (np.float32(0.5), 20)],
)
def test_amount_is_a_number_if_int_and_a_ratio_if_float(amount, expected):
    data = contaminate(sphere(40), amount)
    assert data.X.shape == (40 + expected, 3)
    assert data.is_outlier.sum() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_no_seed_is_degenerate(kind):
    X = embed(trefoil(30), 4)
    for seed in SEEDS:
        data = spoil(X, 1.0, kind, random_state=seed)
        assert np.isfinite(data.X).all()
        assert n_distinct(data.X) == (57 if kind == "repetitive" else 60)


@pytest.mark.parametrize("make", [sphere, trefoil, swiss_roll, lambda n, **seed: trefoil(n, width=0.2, **seed)])
def test_no_seed_makes_a_degenerate_manifold(make):
    for seed in SEEDS:
        X = make(100, random_state=seed)
        assert np.isfinite(X).all()
        assert n_distinct(X) == 100
        assert np.linalg.matrix_rank(X - X.mean(axis=0)) == 3


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_uniform_outliers_fill_the_enlarged_box(scale):
    X = swiss_roll(200) + np.array([0, 100, -7])
    low, high = X.min(axis=0), X.max(axis=0)
    centre, half = (low + high) / 2, scale * (high - low) / 2
    for seed in SEEDS:
        inside = (in_order(X, 50, "uniform", scale=scale, random_state=seed) - centre) / half
        assert np.abs(inside).max() <= 1 + 1e-12
    many = (in_order(X, 4000, "uniform", scale=scale) - centre) / half
    for coordinate in many.T:
        assert kstest(coordinate, "uniform", args=(-1, 2)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("share", "n", "copies"), [(0.1, 50, 5), (0.1, 2, 1), (0.5, 40, 20), (0.99, 10, 9), (0.0, 9, 0)]
)
def test_repetitive_outliers_are_copies_of_other_outliers(share, n, copies):
    for seed in SEEDS:
        outliers = in_order(sphere(30), n, "repetitive", share=share, random_state=seed)
        assert n_distinct(outliers) == n - copies


def test_dependent_outliers_are_mixtures_of_two_others():
    X = embed(sphere(200), 60, noise=0.5)
    for seed in SEEDS:
        outliers = in_order(X, 40, "dependent", share=0.25, random_state=seed)
        assert np.linalg.matrix_rank(outliers) == 30
        assert (outliers >= X.min(axis=0)).all()
        assert (outliers <= X.max(axis=0)).all()
        weights = np.linalg.lstsq(outliers[:30].T, outliers[30:].T, rcond=None)[0]
        assert ((np.abs(weights) > 1e-8).sum(axis=0) == 2).all()
        assert weights.min() > -1e-8
        np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-8)


@pytest.mark.parametrize("clusters", [1, 3, 4])
def test_clustered_outliers_are_tight_and_in_the_wider_box(clusters):
    X = embed(swiss_roll(200), 6)
    low, high = X.min(axis=0), X.max(axis=0)
    deviation = 0.02 * (high - low).mean()
    for seed in SEEDS:
        outliers = in_order(X, 120, "clustered", clusters=clusters, random_state=seed)
        groups = [outliers[k::clusters] for k in range(clusters)]
        within = np.mean([group.var(axis=0, ddof=1) for group in groups]) ** 0.5
        assert within == pytest.approx(deviation, rel=0.15)
        centres = np.array([group.mean(axis=0) for group in groups])
        assert (np.abs(centres - (low + high) / 2) <= (high - low) + deviation).all()
        assert clusters == 1 or pdist(centres).min() > deviation


def test_clusters_spread_over_twice_the_box():
    X = sphere(300)
    centres = in_order(X, 3000, "clustered", clusters=3000)
    beyond = (np.abs(centres) > 1).mean(axis=0)
    np.testing.assert_allclose(beyond, 0.5, atol=0.05)


def test_heavy_tailed_outliers_lie_beyond_every_inlier_in_all_directions():
    X = swiss_roll(200) + 50
    median = np.median(X, axis=0)
    farthest = np.linalg.norm(X - median, axis=1).max()
    for seed in SEEDS:
        distances = np.linalg.norm(in_order(X, 40, "heavy-tailed", random_state=seed) - median, axis=1)
        assert distances.min() > farthest
    outside = in_order(X, 4000, "heavy-tailed") - median
    distances = np.linalg.norm(outside, axis=1)
    # r (1 + |z| / 2): half of all |z| are below 1; a tenth are above 6.3.
    assert np.median(distances / farthest) == pytest.approx(1.5, rel=0.05)
    assert np.quantile(distances / farthest, 0.9) == pytest.approx(1 + 6.314 / 2, rel=0.1)
    for coordinate in (outside / distances[:, None]).T:
        assert kstest(coordinate, "uniform", args=(-1, 2)).pvalue > 1e-3


def test_image_outliers_are_different_rows_of_the_images(rng):
    X, images = rng.normal(size=(30, 12)), rng.normal(size=(25, 3, 4))
    outliers = contaminate(X, 25, kind="images", images=images, shuffle=False).X[30:]
    np.testing.assert_array_equal(np.unique(outliers, axis=0), np.unique(images.reshape(25, 12), axis=0))
    few = contaminate(X, 5, kind="images", images=images.reshape(25, 12), shuffle=False).X[30:]
    assert n_distinct(few) == 5
    assert cdist(few, images.reshape(25, 12)).min(axis=1).max() == 0


def test_permuted_outliers_keep_their_entries_and_change_their_order(rng):
    X = rng.normal(size=(30, 2))  # two features: half of all permutations change nothing
    for seed in SEEDS:
        outliers = in_order(X, 30, "shuffled", random_state=seed)
        np.testing.assert_array_equal(np.unique(outliers, axis=0), np.unique(X[:, ::-1], axis=0))
    digits = load_digits().data[:100]
    outliers = in_order(digits, 250, "shuffled")
    counts = np.zeros(100)
    histograms = np.sort(digits, axis=1)
    for row in outliers:
        same = (np.sort(row) == histograms).all(axis=1)
        assert same.any()
        assert not (row == digits[same]).all(axis=1).any()
        counts[same] += 1
    assert counts.min() >= 2  # every row is used before any is used again


def test_entries_from_columns_keep_the_margins_and_destroy_dependence(rng):
    x = rng.exponential(size=400)
    X = np.column_stack([x, x**2, 5 - x + 0.1 * rng.normal(size=400)])
    for seed in SEEDS:
        outliers = in_order(X, 100, "columns", random_state=seed)
        assert all(np.isin(column, own).all() for column, own in zip(outliers.T, X.T, strict=True))
    outliers = in_order(X, 4000, "columns")
    for column, own in zip(outliers.T, X.T, strict=True):
        assert ks_2samp(column, own).pvalue > 1e-3
        assert len(np.unique(column)) == 400
    assert np.abs(spearmanr(X).statistic).min() > 0.95
    assert np.abs(spearmanr(outliers).statistic - np.eye(3)).max() < 4 / np.sqrt(4000)


def test_far_outliers_are_rows_two_to_four_times_as_far_from_the_mean(rng):
    deviations = np.array([1.0, 5.0, 0.2, 0.0])
    X = rng.normal(size=(500, 4)) * deviations + np.array([0.0, 100.0, -3.0, 7.0])
    outliers = in_order(X, 4000, "far")
    ratio = outliers.std(axis=0)[:3] / X.std(axis=0)[:3]
    # E f² = 28/3 for f uniform in [2, 4], and the noise adds a quarter of the variance: √(28/3 + 1/4) = 3.096
    np.testing.assert_allclose(ratio, np.sqrt(28 / 3 + 1 / 4), rtol=0.05)
    assert np.abs(outliers[:, 3] - 7).max() < 1e-9  # a feature that is the same everywhere stays so
    np.testing.assert_allclose(outliers.mean(axis=0), X.mean(axis=0), atol=0.25 * deviations.max())

    def distances(rows):
        return np.linalg.norm((rows - X.mean(axis=0))[:, :3] / X.std(axis=0)[:3], axis=1)

    assert np.median(distances(outliers)) > 2.5 * np.median(distances(X))
    for seed in SEEDS:
        few = distances(in_order(X, 50, "far", random_state=seed))
        assert np.median(few) > np.quantile(distances(X), 0.9)


def test_far_outliers_lie_in_the_directions_of_rows(rng):
    """In many dimensions the noise is small beside the row that is moved: its direction can be told, and the factor with it."""
    X = rng.choice([-1.0, 1.0], size=(40, 2000)) + 3.0
    own, mean = X - X.mean(axis=0), X.mean(axis=0)
    away = in_order(X, 300, "far") - mean
    products = away @ own.T / np.square(own).sum(axis=1)
    factors, sources = products.max(axis=1), products.argmax(axis=1)
    assert len(np.unique(sources)) == 40
    assert kstest(factors, "uniform", args=(2, 2)).pvalue > 1e-3
    noise = away - factors[:, None] * own[sources]
    np.testing.assert_allclose(noise.std(), 0.5 * own.std(), rtol=0.02)


def test_permuted_outliers_leave_out_constant_rows():
    X = np.vstack([np.zeros((20, 3)), [[1.0, 2.0, 2.0]]])
    outliers = in_order(X, 6, "shuffled")
    np.testing.assert_array_equal(np.sort(outliers, axis=1), np.tile([1.0, 2.0, 2.0], (6, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_contamination_keeps_float32_and_leaves_its_input_alone(kind):
    X = swiss_roll(30).astype(np.float32)
    before = X.copy()
    data = spoil(X, 10, kind)
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(X, before)
    data.X[:] = 0
    np.testing.assert_array_equal(X, before)


def test_noise_images_fill_the_value_range():
    images = load_digits().images
    noise = noise_images(200, images)
    assert noise.shape == (200, 8, 8)
    assert kstest(noise.ravel()[:4000], "uniform", args=(0, 16)).pvalue > 1e-3
    assert noise_images(3, images.reshape(-1, 64) - 20).max() < -4


def test_blobs_have_eight_outliers_far_from_the_data_and_from_one_another():
    for seed in SEEDS:
        data = blobs_with_gross_outliers(random_state=seed)
        assert data.X.shape == (400, 2)
        assert data.is_outlier.sum() == 8
        inliers, outliers = data.X[~data.is_outlier], data.X[data.is_outlier]
        centre = inliers.mean(axis=0)
        radius = np.linalg.norm(inliers - centre, axis=1).max()
        distances = np.linalg.norm(outliers - centre, axis=1)
        assert distances.min() > 5 * radius
        assert np.diff(np.sort(distances)).min() > 0.5 * radius
        assert pdist(outliers).min() > pdist(inliers).max()
        assert n_distinct(data.X) == 400
        assert not data.is_outlier[-8:].all()


def test_blobs_are_five_of_unequal_sizes():
    for seed in SEEDS:
        data = blobs_with_gross_outliers(random_state=seed)
        blobs = fcluster(linkage(data.X[~data.is_outlier], "average"), 5, "maxclust")
        assert sorted(np.bincount(blobs)[1:]) == [27, 45, 70, 100, 150]


# ------------------------------------------------------------------------------------------------- house rules

MAKERS = {
    "sphere": lambda seed: sphere(20, random_state=seed),
    "trefoil": lambda seed: trefoil(20, width=0.1, random_state=seed),
    "swiss_roll": lambda seed: swiss_roll(20, random_state=seed),
    "embed": lambda seed: embed(np.eye(3), 5, noise=0.1, random_state=seed),
    "noise_images": lambda seed: noise_images(5, np.eye(3), random_state=seed),
    "blobs_with_gross_outliers": lambda seed: blobs_with_gross_outliers(random_state=seed).X,
    **{kind: lambda seed, kind=kind: spoil(swiss_roll(20), 10, kind, random_state=seed).X for kind in KINDS},
}


@pytest.mark.parametrize("name", MAKERS)
def test_same_seed_same_data_and_other_seed_other_data(name):
    make = MAKERS[name]
    np.testing.assert_array_equal(make(5), make(5))
    np.testing.assert_array_equal(make(5), make(np.random.default_rng(5)))
    assert (make(5) != make(6)).any()
    generator = np.random.default_rng(5)
    assert (make(generator) != make(generator)).any()
    assert (make(None) != make(None)).any()


def test_everything_random_is_among_the_tested_makers():
    assert set(datasets.__all__) - set(MAKERS) == {"Contaminated", "contaminate", "union"}


def test_contaminated_is_frozen():
    data = Contaminated(np.zeros((1, 1)), np.zeros(1, bool))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.X = np.ones((1, 1))


X3 = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sphere(0), "n must be a whole number >= 1; got 0"),
        (lambda: sphere(2.5), "n must be a whole number >= 1; got 2.5"),
        (lambda: sphere(True), "n must be a whole number"),
        (lambda: sphere(5, intrinsic=0), "intrinsic must be a whole number >= 1; got 0"),
        (lambda: sphere(5, radius=0), "radius must be a finite number > 0; got 0"),
        (lambda: trefoil(-1), "n must be a whole number >= 1; got -1"),
        (lambda: trefoil(5, width=-0.1), "width must be a finite number >= 0; got -0.1"),
        (lambda: swiss_roll(0), "n must be"),
        (lambda: swiss_roll(5, height=np.nan), "height must be a finite number > 0; got nan"),
        (lambda: union([]), "at least one"),
        (lambda: union([X3, np.zeros(4)]), r"parts\[1\] must have two dimensions"),
        (lambda: union([X3], offsets="far"), "'apart', None or an array; got 'far'"),
        (lambda: union([X3, X3], offsets=[[1, 2]]), r"2 parts and 3 columns.*got shape \(1, 2\)"),
        (lambda: embed(X3, 2), "at least the 3 features of X.*got 2"),
        (lambda: embed(X3, 5, noise=-1.0), "noise must be a finite number >= 0; got -1"),
        (lambda: embed(sp.csr_array(X3), 5), "dense"),
        (lambda: embed(X3 * np.nan, 5), "finite"),
        (lambda: contaminate(X3, -1), "amount must be a whole number >= 0; got -1"),
        (lambda: contaminate(X3, -0.5), "amount must be a finite number >= 0; got -0.5"),
        (lambda: contaminate(X3, np.inf), "amount must be a finite"),
        (lambda: contaminate(X3, "half"), "amount must be a finite number.*got 'half'"),
        (lambda: contaminate(X3, True), "amount must be a whole number"),
        (lambda: contaminate(X3, 2, kind="gaussian"), "'uniform', 'repetitive', .*'far'; got 'gaussian'"),
        (lambda: contaminate(X3, 2, scale=0), "scale must be a finite number > 0; got 0"),
        (lambda: contaminate(X3, 2, share=1.0), "share must be a finite number >= 0 and < 1; got 1"),
        (lambda: contaminate(X3, 2, clusters=0), "clusters must be a whole number >= 1; got 0"),
        (lambda: contaminate(X3, 2, kind="images"), "images, which is None"),
        (lambda: contaminate(X3, 2, images=X3), "kind='images' only; got kind='uniform'"),
        (lambda: contaminate(X3, 2, kind="images", images=X3[:, :2]), "3 features of X; they have 2"),
        (lambda: contaminate(X3, 6, kind="images", images=X3), "at least 6 rows; got 4"),
        (lambda: contaminate(X3, 1, kind="repetitive"), "at least 2 outliers; amount gives 1"),
        (lambda: contaminate(X3, 2, kind="dependent"), "at least 3 outliers; amount gives 2"),
        (lambda: contaminate(np.ones((4, 3)), 2), "two different rows"),
        (lambda: contaminate(np.ones((4, 3)), 2, kind="heavy-tailed"), "two different rows"),
        (lambda: contaminate(np.ones((4, 3)), 2, kind="shuffled"), "constant"),
        (lambda: contaminate(np.ones((4, 3)), 2, kind="columns"), "two different rows"),
        (lambda: contaminate(np.ones((4, 3)), 2, kind="far"), "two different rows"),
        (lambda: contaminate(X3[:, :1], 2, kind="columns"), "two features.*X has 1"),
        (lambda: noise_images(0, X3), "n must be"),
        (lambda: noise_images(2, np.arange(3)), r"got shape \(3,\)"),
        (lambda: noise_images(2, np.ones((2, 2))), "all are 1"),
    ],
)
def test_bad_input_is_refused_with_its_value(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
