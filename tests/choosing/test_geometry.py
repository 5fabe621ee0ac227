"""What makes rows alike: the bandwidth does what it says, and rows are compared by direction where their length says nothing."""

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


# Bandwidth

DATA = {
    "roll": datasets.swiss_roll(400),
    "cloud": np.random.default_rng(0).normal(size=(400, 10)),
    "heavy tails": np.random.default_rng(0).standard_t(3, size=(400, 3)),
    "digits": DIGITS[:400],
}


@pytest.mark.parametrize("kind", [RBF, Laplacian])
@pytest.mark.parametrize("X", DATA.values(), ids=DATA.keys())
def test_upper_quartile_of_points_resembles_a_fifth_of_all_in_any_unit(X, kind):
    gamma = bandwidth(kind(X))
    kernel = kind(X, gamma)
    counts = (kernel.block(slice(None), np.arange(kernel.n)) ** 2).sum(axis=0)  # Σ_i k_ij²: how many points resemble j
    assert np.quantile(counts, 0.75) == pytest.approx(0.2 * len(X), rel=1e-4)
    assert bandwidth(kind(1000.0 * X)) == pytest.approx(gamma / 1000.0 ** (2 if kind is RBF else 1), rel=1e-5)


def test_bandwidth_does_not_depend_on_the_number_of_representatives():
    gammas = {MOSAIC(k).fit(DATA["cloud"]).gamma_ for k in (2, 10, 50)}
    assert len(gammas) == 1
    assert gammas == {MOSAICOutlierDetector().fit(DATA["cloud"]).gamma_}


def test_bandwidth_of_many_points_is_that_of_a_sample_and_outliers_hardly_change_it(rng):
    X = rng.normal(size=(6000, 3))
    assert geometry(X).gamma == pytest.approx(bandwidth(RBF(X)), rel=0.1)
    far = np.vstack([X[:400], 1e6 * rng.normal(size=(20, 3))])
    assert bandwidth(RBF(far)) == pytest.approx(bandwidth(RBF(X[:400])), rel=0.2)


def test_few_and_nearly_equal_points_have_a_bandwidth_and_the_user_s_is_taken_as_it_is(rng):
    assert bandwidth(RBF(np.array([[0.0], [2.0]]))) > 0
    mostly = np.vstack([1e-30 * rng.normal(size=(300, 3)), rng.normal(size=(700, 3))])
    assert 0 < bandwidth(RBF(mostly)) < 100
    MOSAIC(5).fit(mostly)
    assert geometry(np.full((20, 3), 4.0)).kernel.n == 1
    assert geometry(DATA["cloud"], gamma=0.3).gamma == 0.3
    assert geometry(DATA["cloud"], kernel="linear").gamma is None


# Directions


def words(rng, n=200, d=400, share=0.02):
    """Counts of words, some rows long and others short."""
    return rng.poisson(share * rng.uniform(0.5, 2.0, size=(n, 1)), size=(n, d)).astype(float)


def test_word_counts_and_embeddings_are_recognised(rng):
    X = words(rng)
    embeddings = rng.normal(size=(200, 64)) * rng.uniform(0.5, 2.0, size=(200, 1))
    one_sign = np.c_[np.abs(embeddings[:, :3]), embeddings[:, 3:]]
    for rows in (X, sp.csr_array(X), np.log1p(X), embeddings, embeddings.astype(np.float32), one_sign):
        assert compares_directions(rows)
        assert geometry(rows).decisions[0].startswith("Rows are compared by their direction")
    for settings in ({"scale": False}, {"kernel": "linear"}, {"gamma": 0.5}, {"mode": "paper"}):
        assert not preparation_of(embeddings, None, Settings(**settings)).directions  # the user means rows as they are


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
    assert geometry(X).decisions[0] == "Columns are taken as they are."


def test_rows_are_divided_by_their_length_and_rows_of_zeros_are_like_no_other(rng):
    X = words(rng)
    X[[4, 9]] = 0.0
    for make in (np.asarray, sp.csr_array):
        prepare = preparation_of(make(X), None, Settings())
        assert prepare.directions
        Y = prepare(make(X))
        Y = Y.toarray() if sp.issparse(Y) else Y
        lengths = np.linalg.norm(Y, axis=1)
        np.testing.assert_allclose(lengths, 1.0)
        assert not (np.delete(Y, [4, 9], axis=0) @ Y[4]).any()
        np.testing.assert_array_equal(Y[4], Y[9])
        assert X.max() > 1  # the caller's rows are as they were
    scale = rng.uniform(0.5, 2.0, X.shape[1])
    divided = X[:4] / scale  # columns first, and rows then
    np.testing.assert_allclose(Prepare(scale, True)(X[:4])[:, :-1], divided / np.linalg.norm(divided, axis=1)[:, None])
    np.testing.assert_allclose(Prepare(scale, True)(sp.csr_array(X)).toarray(), Prepare(scale, True)(X))
    assert Prepare()(X) is X


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_an_empty_text_stands_for_nobody(make, rng):
    topics = rng.dirichlet(np.full(2000, 0.02), 10)
    X = np.array([rng.multinomial(20, 0.7 * topic + 0.3 / 2000) for topic in topics[rng.integers(10, size=800)]], float)
    X[[7, 8, 300]] = 0.0
    model = MOSAIC(10).fit(make(X))
    assert "direction" in model.explain()[0]
    assert not np.isin([7, 8, 300], model.representative_indices_).any()


def test_a_vector_of_zeros_is_an_outlier_among_embeddings(rng):
    X = rng.normal(size=(12, 64))[rng.integers(12, size=600)] + 0.3 * rng.normal(size=(600, 64))
    X[[7, 300]] = 0.0
    model = MOSAIC(12).fit(X)
    assert "direction" in model.explain()[0]
    np.testing.assert_array_equal(np.flatnonzero(model.is_outlier_), [7, 300])
    np.testing.assert_array_equal(model.predict(np.zeros((2, 64))), -1)


def test_length_of_a_row_does_not_matter_where_directions_are_compared(rng):
    X = rng.normal(size=(150, 64))
    longer = X * 2.0 ** rng.integers(-1, 1, size=(150, 1))
    one, other = MOSAIC(6).fit(X), MOSAIC(6).fit(longer)
    for estimator in (one, MOSAICOutlierDetector().fit(X)):
        assert estimator.explain()[0].startswith("Rows are compared by their direction")
    np.testing.assert_array_equal(np.sort(one.representative_indices_), np.sort(other.representative_indices_))
    np.testing.assert_array_equal(one.predict(4.0 * X), one.predict(X))


def test_where_some_rows_are_much_longer_length_tells_something(rng):
    X = rng.normal(size=(150, 64))
    X[:5] *= 10.0
    model = MOSAIC(6).fit(X)
    assert not model.selection_.data.geometry.prepare.directions
    assert model.is_outlier_[:5].all()
