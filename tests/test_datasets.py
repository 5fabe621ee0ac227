"""Synthetic data against what they claim: geometry, uniformity, and which rows are outliers."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist
from scipy.stats import kstest
from sklearn.datasets import load_digits, make_swiss_roll

from mosaic.datasets import blobs_with_gross_outliers, contaminate, embed, noise_images, sphere, swiss_roll, trefoil
from mosaic.exceptions import InvalidInputError


def roll_area(points):
    """Share of the roll's area that is wound inside of each point, from the length of Archimedes' spiral."""
    s = lambda t: 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))  # noqa: E731
    inner, outer = s(1.5 * np.pi), s(4.5 * np.pi)
    return (s(np.hypot(points[:, 0], points[:, 2])) - inner) / (outer - inner)


def test_sphere_is_uniform_in_area_and_trefoil_in_arc_length():
    X = sphere(4000, random_state=1)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    for coordinate in X.T:  # Archimedes: on the 2-sphere every coordinate is uniform in [−1, 1]
        assert kstest(coordinate, "uniform", args=(-1, 2)).pvalue > 1e-3
    t = np.linspace(0, 2 * np.pi, 60_001)
    knot = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1)
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(knot, axis=0), axis=1))])
    distance, nearest = cKDTree(knot).query(trefoil(20_000))
    assert distance.max() < 5e-4  # corners of the polygon are up to 7e-4 apart
    # The knot is three equal lobes: folded upon one another they would show a parameter uniform in the angle.
    assert kstest(3 * length[nearest] / length[-1] % 1, "uniform").pvalue > 1e-3
    angle = np.random.default_rng(0).integers(len(knot), size=20_000)
    assert kstest(3 * length[angle] / length[-1] % 1, "uniform").pvalue < 1e-6


def test_swiss_roll_is_uniform_in_area_and_that_of_sklearn_is_not():
    X = swiss_roll(4000)
    t = np.hypot(X[:, 0], X[:, 2])
    np.testing.assert_allclose(X[:, [0, 2]], np.stack([t * np.cos(t), t * np.sin(t)], axis=1), atol=1e-10)
    assert kstest(roll_area(X), "uniform").pvalue > 1e-3
    assert kstest(X[:, 1] / 21.0, "uniform").pvalue > 1e-3
    assert kstest(roll_area(make_swiss_roll(4000, random_state=0)[0]), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("dimension", [3, 40])
def test_embedding_keeps_distances_and_is_uniform_among_rotations_and_reflections(dimension):
    X = swiss_roll(60)
    embedded = embed(X, dimension, random_state=3)
    assert embedded.shape == (60, dimension)
    np.testing.assert_allclose(pdist(embedded), pdist(X), rtol=1e-12)
    noise = embed(sphere(2000), dimension, noise=0.3) - embed(sphere(2000), dimension)
    np.testing.assert_allclose(noise.std(axis=0), 0.3, rtol=0.1)
    maps = np.array([embed(np.eye(3), 3, random_state=seed) for seed in range(600)])
    # Every entry of a Haar matrix of order 3 is uniform in [−1, 1]; QR alone leaves the first one negative.
    for entry in maps.reshape(600, 9).T:
        assert kstest(entry, "uniform", args=(-1, 2)).pvalue > 1e-4
    assert abs(np.mean(np.linalg.det(maps))) < 4 / np.sqrt(600)


@pytest.mark.parametrize("kind", ["uniform", "repetitive", "far"])
def test_rows_and_truth_stay_aligned_and_the_input_alone(kind):
    X = embed(swiss_roll(40), 5).astype(np.float32)
    before = X.copy()
    data = contaminate(X, 30, kind=kind)
    assert (data.X.shape, data.X.dtype, data.is_outlier.sum()) == ((70, 5), np.float32, 30)
    np.testing.assert_array_equal(np.unique(data.X[~data.is_outlier], axis=0), np.unique(X, axis=0))
    assert cdist(data.X[data.is_outlier], X).min() > 0
    assert len(np.unique(data.X, axis=0)) == (67 if kind == "repetitive" else 70)
    assert 0 < np.flatnonzero(data.is_outlier).mean() < 50  # not all at the end, where they are made
    in_order = contaminate(X, 30, kind=kind, shuffle=False)
    np.testing.assert_array_equal(in_order.X[:40], X)
    assert in_order.is_outlier.tolist() == [False] * 40 + [True] * 30
    np.testing.assert_array_equal(X, before)
    # A whole number is one of rows, a fraction a share.
    amounts = {0: 0, 1: 1, np.int64(7): 7, 0.1: 4, 5.0: 200, np.float32(0.5): 20}
    assert {amount: contaminate(X, amount, kind=kind).is_outlier.sum() for amount in amounts} == amounts


def test_far_outliers_are_rows_two_to_four_times_as_far_from_the_mean(rng):
    """In many dimensions the noise is small beside the row that is moved: its direction can be told, and the factor with it."""
    X = rng.choice([-1.0, 1.0], size=(40, 2000)) + 3.0
    own, mean = X - X.mean(axis=0), X.mean(axis=0)
    away = contaminate(X, 300, kind="far", shuffle=False).X[40:] - mean
    products = away @ own.T / np.square(own).sum(axis=1)
    factors, sources = products.max(axis=1), products.argmax(axis=1)
    assert len(np.unique(sources)) == 40
    assert kstest(factors, "uniform", args=(2, 2)).pvalue > 1e-3
    noise = away - factors[:, None] * own[sources]
    np.testing.assert_allclose(noise.std(), 0.5 * own.std(), rtol=0.02)


def test_noise_images_fill_the_value_range_and_uniform_outliers_the_box():
    images = load_digits().images
    noise = noise_images(200, images)
    assert noise.shape == (200, 8, 8)
    assert kstest(noise.ravel()[:4000], "uniform", args=(0, 16)).pvalue > 1e-3
    assert noise_images(3, images.reshape(-1, 64) - 20).max() < -4
    X = swiss_roll(200) + np.array([0, 100, -7])
    low, high = X.min(axis=0), X.max(axis=0)
    for coordinate in ((contaminate(X, 4000, shuffle=False).X[200:] - low) / (high - low)).T:
        assert kstest(coordinate, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_blobs_have_eight_outliers_far_from_the_data_and_from_one_another(seed):
    data = blobs_with_gross_outliers(random_state=seed)
    inliers, outliers = data.X[~data.is_outlier], data.X[data.is_outlier]
    assert (inliers.shape, outliers.shape) == ((392, 2), (8, 2))
    centre = inliers.mean(axis=0)
    radius = np.linalg.norm(inliers - centre, axis=1).max()
    distances = np.linalg.norm(outliers - centre, axis=1)
    assert distances.min() > 5 * radius
    assert np.diff(np.sort(distances)).min() > 0.5 * radius
    assert pdist(outliers).min() > pdist(inliers).max()


MAKERS = {
    "sphere": lambda seed: sphere(20, random_state=seed),
    "trefoil": lambda seed: trefoil(20, random_state=seed),
    "swiss_roll": lambda seed: swiss_roll(20, random_state=seed),
    "embed": lambda seed: embed(np.eye(3), 5, noise=0.1, random_state=seed),
    "noise_images": lambda seed: noise_images(5, np.eye(3), random_state=seed),
    "blobs_with_gross_outliers": lambda seed: blobs_with_gross_outliers(random_state=seed).X,
    "contaminate": lambda seed: contaminate(swiss_roll(20), 10, random_state=seed).X,
}


@pytest.mark.parametrize("name", MAKERS)
def test_same_seed_same_data_and_other_seed_other_data(name):
    make = MAKERS[name]
    np.testing.assert_array_equal(make(5), make(np.random.default_rng(5)))
    assert (make(5) != make(6)).any()
    assert (make(None) != make(None)).any()


X3 = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sphere(0), "n must be a whole number >= 1; got 0"),
        (lambda: embed(X3, 2), "dimension must be a whole number >= 3; got 2"),
        (lambda: embed(X3, 5, noise=-1.0), "noise must be a finite number >= 0; got -1"),
        (lambda: contaminate(X3 * np.nan, 5), "finite"),
        (lambda: contaminate(X3, -1), "amount must be a whole number >= 0; got -1"),
        (lambda: contaminate(X3, "half"), "amount must be a finite number.*got 'half'"),
        (lambda: contaminate(X3, 2, kind="gaussian"), "'uniform', 'repetitive' or 'far'; got 'gaussian'"),
        (lambda: contaminate(X3, 2, kind=np.array(["far", "far"])), "'uniform', 'repetitive' or 'far'; got "),
    ],
)
def test_bad_input_is_refused_with_its_value(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
