"""Columns in different units: when they are divided by their spread, by what, and that nothing else changes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from mosaic.choosing import Settings
from mosaic.choosing.geometry import column_scale
from mosaic.exceptions import InvalidInputError

#: Powers of two, so that units add no rounding.
UNITS = np.array([2.0**13, 1.0, 2.0**-7, 1.0, 1.0, 4.0])


@pytest.fixture
def table(rng):
    """A mixture of three kinds in correlated columns of one unit."""
    centres = rng.normal(size=(3, 6)) * 4.0
    return centres[rng.integers(3, size=300)] + rng.normal(size=(300, 6)) @ (np.eye(6) + 0.3)


def scale_of(X, *, weights=None, **settings):
    given = Settings(**settings)
    return column_scale(X, weights, given.scale, ours=given.similarity_is_ours)


@pytest.mark.parametrize("Estimator", [lambda **s: MOSAIC(12, **s), MOSAICOutlierDetector])
def test_units_do_not_matter(Estimator, table):
    in_units = Estimator().fit(table * UNITS)
    alike = Estimator(scale=True).fit(table)
    np.testing.assert_allclose(in_units.column_scale_ / UNITS, alike.column_scale_)
    np.testing.assert_allclose(in_units.effective_count_, alike.effective_count_, rtol=0.02)
    np.testing.assert_array_equal(in_units.is_outlier_, alike.is_outlier_)
    new = table[:20] + 0.1
    np.testing.assert_array_equal(in_units.predict(new * UNITS), alike.predict(new))
    unscaled = Estimator(scale=False).fit(table * UNITS)
    assert unscaled.column_scale_ is None
    if isinstance(alike, MOSAIC):
        picks = [set(model.representative_indices_.tolist()) for model in (in_units, alike, unscaled)]
        assert picks[0] == picks[1] != picks[2]


def test_columns_of_one_unit_are_taken_as_they_are_and_one_wrong_entry_is_no_unit(table, rng):
    assert scale_of(table) is None
    assert scale_of(datasets.swiss_roll(200)) is None
    wrong = table.copy()
    wrong[0, 0] = 1e6
    assert scale_of(wrong) is None
    wrong[:10] += 1e3
    np.testing.assert_allclose(scale_of(wrong, scale=True) * UNITS, scale_of(table * UNITS), rtol=0.3)


def test_principal_components_keep_their_spread_and_independent_columns_of_different_units_do_not(table, rng):
    assert scale_of(rng.normal(size=(300, 5)) * [1.0, 1000.0, 1.0, 5.0, 2.0]) is not None
    X = table * UNITS
    assert scale_of(X) is not None
    components = PCA().fit_transform(X)
    assert scale_of(components) is None
    assert scale_of(components[:-1]) is None
    assert scale_of(components.astype(np.float32)) is None
    assert scale_of(PCA().fit(X[:150]).transform(X[150:])) is None


@pytest.mark.parametrize("constant", [0.1, 333333.3, 0.0])
def test_constant_columns_change_nothing_and_mostly_equal_ones_have_a_deviation(constant, rng):
    X = np.c_[rng.normal(size=(100, 2)), np.full((100, 3), constant)]
    assert scale_of(X) is None
    np.testing.assert_array_equal(scale_of(X, scale=True)[2:], 1.0)
    MOSAICOutlierDetector().fit(X[:, 1:3])
    X[:4, 3] = 7.0
    assert scale_of(X, scale=True)[3] == pytest.approx(X[:, 3].std())


def test_order_of_rows_does_not_matter_where_the_spread_is_a_deviation(rng):
    for _ in range(10):
        rare = (rng.random(200) < 0.02) * rng.normal(size=200)
        X = np.c_[rng.normal(size=(200, 2)) * [30.0, 1.0], rare]
        order = rng.permutation(200)
        one, other = (scale_of(Y, scale=True) for Y in (X, X[order]))
        np.testing.assert_array_equal(one, other)


def test_row_without_weight_does_not_change_the_scale(table, rng):
    weights = np.append(np.ones(len(table)), 0.0)
    for X in (table * UNITS, table):
        fitted = MOSAIC(5).fit(np.vstack([X, 1e6 * np.ones(6)]), sample_weight=weights)
        expected = MOSAIC(5).fit(X).column_scale_
        assert (fitted.column_scale_ is None) == (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(fitted.column_scale_, expected)


@pytest.mark.parametrize(
    "settings",
    [{"gamma": 0.5}, {"kernel": "cosine"}, {"kernel": "linear"}, {"mode": "paper"}, {"scale": False}],
    ids=lambda settings: next(iter(settings)) + "=" + str(next(iter(settings.values()))),
)
def test_what_the_user_has_chosen_is_meant_for_the_columns_as_they_are(settings, table):
    assert scale_of(table * UNITS, **settings) is None
    if "scale" not in settings:
        assert scale_of(table * UNITS, scale=True, **settings) is not None


def test_sparse_columns_are_taken_as_they_are_and_points_recognised_as_dense_ones(table):
    X = sp.csr_array(np.where(table > 1.0, table, 0.0) * UNITS)
    assert scale_of(X) is None
    with pytest.raises(InvalidInputError, match=r"scale divides columns by interquartile ranges.*MaxAbsScaler"):
        MOSAIC(10, scale=True).fit(X)
    detector = MOSAICOutlierDetector(scale=True).fit(table)
    np.testing.assert_array_equal(detector.predict(sp.csr_array(table)), detector.predict(table))
    np.testing.assert_allclose(detector.score_samples(sp.csr_array(table)), detector.score_samples(table))


def test_float32_stays_float32_and_huge_columns_have_a_spread(table):
    model = MOSAIC(10).fit((table * UNITS).astype(np.float32))
    assert model.column_scale_ is not None
    assert model.selection_.kernel.X.dtype == np.float32
    assert np.isfinite(scale_of(table.astype(np.float32) * np.float32([1, 1e20, 1, 1, 1, 1]))).all()


def test_weight_is_repetition_for_the_spread_too(table, rng):
    times = rng.integers(1, 4, len(table))
    repeated = scale_of(np.repeat(table * UNITS, times, axis=0))
    np.testing.assert_allclose(scale_of(table * UNITS, weights=times.astype(float)), repeated)


def test_map_of_two_columns_is_in_their_units(rng):
    X = rng.normal(size=(200, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]]) * [1000.0, 1.0]
    for estimator in (MOSAIC(8), MOSAICOutlierDetector()):
        shown = estimator.fit(X).facts_.map
        assert estimator.column_scale_ is not None
        np.testing.assert_allclose(np.c_[shown.x, shown.y], X[shown.row])


def test_explanation_names_the_columns_that_were_divided(table):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table * UNITS, columns=["income", "age", "b", "c", "d", "e"])
    for estimator in (MOSAIC(8), MOSAICOutlierDetector()):
        assert "income by " in estimator.fit(frame).explain()[0]
    assert MOSAIC(8, scale=False).fit(frame).explain()[0] == "Columns are taken as they are."


@pytest.mark.parametrize("wrong", ["yes", None, 2])
def test_wrong_wish_is_refused_and_similarities_have_no_columns(wrong, table):
    for estimator in (MOSAIC(8, scale=wrong), MOSAICOutlierDetector(scale=wrong)):
        with pytest.raises(InvalidInputError, match="scale must be"):
            estimator.fit(table)
    with pytest.raises(InvalidInputError, match="precomputed"):
        MOSAIC(5, kernel="precomputed", scale=True).fit(table @ table.T)
