"""What makes rows alike: the bandwidth does what it says, and rows are compared by direction where their length says nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.arrays.blocks import Prepare
from mosaic.choosing import Points, Settings, geometry_of, preparation_of
from mosaic.choosing.geometry import bandwidth, compares_directions
from mosaic.kernels import RBF
from mosaic.kernels.points import Laplacian

DIGITS = load_digits().data


def geometry(X, **settings):
    given = Settings(**settings)
    prepare = preparation_of(X, None, given)
    Y = prepare(X)
    return geometry_of(Y, Points.of(Y), given, prepare, None, 0)


def resembled(kernel):
    """Σ_i k_ij² for every point j: how many points resemble it."""
    return (kernel.block(slice(None), np.arange(kernel.n)) ** 2).sum(axis=0)


# Bandwidth

DATA = {
    "roll": datasets.swiss_roll(400),
    "cloud": np.random.default_rng(0).normal(size=(400, 10)),
    "heavy tails": np.random.default_rng(0).standard_t(3, size=(400, 3)),
    "digits": DIGITS[:400],
}


@pytest.mark.parametrize("kind", [RBF, Laplacian])
@pytest.mark.parametrize("X", DATA.values(), ids=DATA.keys())
def test_upper_quartile_of_points_resembles_a_fifth_of_all(X, kind):
    counts = resembled(kind(X, bandwidth(kind(X))))
    assert np.quantile(counts, 0.75) == pytest.approx(0.2 * len(X), rel=1e-4)


def test_bandwidth_does_not_depend_on_the_number_of_representatives():
    gammas = {MOSAIC(k).fit(DATA["cloud"]).gamma_ for k in (2, 10, 50)}
    assert len(gammas) == 1
    assert gammas == {MOSAICOutlierDetector().fit(DATA["cloud"]).gamma_}


@pytest.mark.parametrize("kind", [RBF, Laplacian])
def test_bandwidth_follows_the_unit_of_the_data(kind):
    X, power = DATA["cloud"], 2 if kind is RBF else 1
    assert bandwidth(kind(1000.0 * X)) == pytest.approx(bandwidth(kind(X)) / 1000.0**power, rel=1e-5)


def test_bandwidth_of_many_points_is_that_of_a_sample_of_them():
    X = np.random.default_rng(0).normal(size=(6000, 3))
    assert geometry(X).gamma == pytest.approx(bandwidth(RBF(X)), rel=0.1)


def test_outliers_hardly_change_the_bandwidth():
    X = DATA["cloud"]
    far = np.vstack([X, 1e6 * np.random.default_rng(1).normal(size=(20, 10))])
    assert bandwidth(RBF(far)) == pytest.approx(bandwidth(RBF(X)), rel=0.2)


def test_two_points_and_points_that_are_nearly_equal_have_a_bandwidth(rng):
    assert bandwidth(RBF(np.array([[0.0], [2.0]]))) > 0
    mostly = np.vstack([1e-30 * rng.normal(size=(300, 3)), rng.normal(size=(700, 3))])
    assert 0 < bandwidth(RBF(mostly)) < 100
    MOSAIC(5).fit(mostly)


def test_constant_rows_have_a_geometry():
    assert geometry(np.full((20, 3), 4.0)).kernel.n == 1


def test_users_bandwidth_is_taken_as_it_is():
    assert geometry(DATA["cloud"], gamma=0.3).gamma == 0.3
    assert geometry(DATA["cloud"], kernel="linear").gamma is None


# Directions


def words(rng, n=200, d=400, share=0.02):
    """Counts of words, some rows long and others short."""
    return rng.poisson(share * rng.uniform(0.5, 2.0, size=(n, 1)), size=(n, d)).astype(float)


def test_word_counts_are_recognised_dense_and_sparse(rng):
    X = words(rng)
    assert compares_directions(X)
    assert compares_directions(sp.csr_array(X))
    assert compares_directions(np.log1p(X))


def test_embeddings_are_recognised_even_with_a_column_of_one_sign(rng):
    X = rng.normal(size=(200, 64)) * rng.uniform(0.5, 2.0, size=(200, 1))
    assert compares_directions(X)
    assert compares_directions(X.astype(np.float32))
    X[:, :3] = np.abs(X[:, :3])
    assert compares_directions(X)


@pytest.mark.parametrize(
    "X",
    [
        DIGITS,
        np.random.default_rng(0).random((100, 500)),
        np.random.default_rng(0).normal(size=(200, 49)),
        np.random.default_rng(0).normal(size=(200, 64)) + 3.0,
        (np.random.default_rng(0).random((200, 400)) < 0.2) * 1.0,
        -words(np.random.default_rng(0)),
        words(np.random.default_rng(0), d=40),
    ],
    ids=["digits", "fractions", "few columns", "a mean of its own", "many words", "negative counts", "few words"],
)
def test_other_rows_are_not_compared_by_direction(X):
    assert not compares_directions(X)
    assert not compares_directions(sp.csr_array(X))
    assert not geometry(X).prepare.directions


def test_rows_are_divided_by_their_length_and_rows_of_zeros_stay(rng):
    X = words(rng)
    X[[4, 9]] = 0.0
    for make in (np.asarray, sp.csr_array):
        prepare = preparation_of(make(X), None, Settings())
        assert prepare.directions
        Y = prepare(make(X))
        Y = Y.toarray() if sp.issparse(Y) else Y
        lengths = np.linalg.norm(Y, axis=1)
        np.testing.assert_allclose(lengths[X.any(axis=1)], 1.0)
        assert not Y[[4, 9]].any()
        assert X.max() > 1  # the caller's rows are as they were


def test_length_of_a_row_does_not_matter_where_directions_are_compared(rng):
    X = rng.normal(size=(150, 64))
    longer = X * 2.0 ** rng.integers(-1, 1, size=(150, 1))
    one, other = MOSAIC(6).fit(X), MOSAIC(6).fit(longer)
    np.testing.assert_array_equal(np.sort(one.representative_indices_), np.sort(other.representative_indices_))
    np.testing.assert_array_equal(one.predict(4.0 * X), one.predict(X))


def test_where_some_rows_are_much_longer_length_tells_something(rng):
    X = rng.normal(size=(150, 64))
    X[:5] *= 10.0
    model = MOSAIC(6).fit(X)
    assert not model.selection_.material.geometry.prepare.directions
    assert model.is_outlier_[:5].all()


def test_decisions_say_that_directions_are_compared(rng):
    assert geometry(words(rng)).decisions[0].startswith("Rows are compared by their direction")
    assert geometry(DIGITS).decisions[0] == "Columns are taken as they are."
    for estimator in (MOSAIC(5), MOSAICOutlierDetector()):
        assert estimator.fit(rng.normal(size=(120, 64))).explain()[0].startswith("Rows are compared by their direction")


@pytest.mark.parametrize("settings", [{"scale": False}, {"kernel": "linear"}, {"gamma": 0.5}, {"mode": "paper"}])
def test_what_the_user_has_chosen_is_meant_for_rows_as_they_are(rng, settings):
    assert not preparation_of(rng.normal(size=(100, 64)), None, Settings(**settings)).directions


def test_preparation_divides_columns_first_and_rows_then(rng):
    X, scale = rng.normal(size=(10, 3)), np.array([1.0, 2.0, 4.0])
    divided = X / scale
    np.testing.assert_allclose(Prepare(scale, True)(X), divided / np.linalg.norm(divided, axis=1)[:, None])
    np.testing.assert_allclose(Prepare(scale, True)(sp.csr_array(X)).toarray(), Prepare(scale, True)(X))
    assert Prepare()(X) is X
