"""The coverage curve, and choosing again with other thresholds."""

import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, InvalidInputError, datasets, metrics
from mosaic.choosing.choose import Chooser
from mosaic.choosing.cover import Cover
from mosaic.kernels import make_kernel

GROSS = datasets.blobs_with_gross_outliers()
CLOUD = np.random.default_rng(0).normal(size=(200, 4))


@pytest.mark.parametrize("gamma", ["auto", 0.5])
def test_curve_says_what_every_number_of_representatives_covers(gamma):
    curve = mosaic.path(GROSS.X, max_representatives=30, gamma=gamma)
    belongs = ~curve.model.is_outlier_
    kernel = make_kernel(GROSS.X, "rbf", gamma=curve.model.gamma_)
    reach = Chooser(curve.model.selection_, curve.suggested).cover.reach
    S = Cover(kernel, reach).between(np.flatnonzero(belongs), np.arange(400))
    assert len(curve.indices) == len(curve.similarity) == len(curve.coverage) == 30
    for k in (1, 2, 9, 30):
        chosen = curve.at(k)
        np.testing.assert_array_equal(chosen, curve.indices[:k])
        assert curve.similarity[k - 1] == pytest.approx(S[:, chosen].max(axis=1).mean(), rel=1e-6)
        share = metrics.explained_share(kernel, chosen, sample_weight=belongs.astype(float))
        assert curve.coverage[k - 1] == pytest.approx(share, abs=1e-9)
    assert (np.diff(curve.coverage) >= -1e-12).all()
    assert (np.diff(curve.similarity) >= -1e-12).all()
    assert not GROSS.is_outlier[curve.indices].any()
    assert "up to 30 representatives" in repr(curve)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("X", [datasets.swiss_roll(250), GROSS.X, CLOUD], ids=["roll", "gross", "cloud"])
def test_the_model_of_a_curve_takes_the_suggested_number_and_covers_no_less(X, kernel):
    curve = mosaic.path(X, kernel=kernel)
    assert 1 <= curve.suggested <= len(curve.indices)
    assert curve.model.n_representatives_ == curve.suggested
    assert curve.model.selection_.gains.sum() >= curve.similarity[curve.suggested - 1] - 1e-6  # it has exchanges
    for share in (0.3, 0.8):
        assert curve.model.rethreshold(coverage=share).coverage_ >= share


def test_curve_and_choosing_again_obey_constraints_on_single_rows():
    curve = mosaic.path(CLOUD, fit_params={"must_include": [11], "exclude": [0]}, max_representatives=200)
    again = MOSAIC(5).fit(CLOUD, must_include=[11], exclude=[0]).rethreshold(n_representatives=80).representative_indices_
    assert (len(curve.indices), len(again)) == (199, 80)
    for chosen in (curve.indices, again):
        assert chosen[0] == 11
        assert 0 not in chosen


def test_curve_refuses_what_it_cannot_answer():
    curve = mosaic.path(CLOUD, max_representatives=5)
    for k in (0, 6, -1):
        with pytest.raises(InvalidInputError, match=f"k must lie between 1 and 5; got {k}"):
            curve.at(k)
    with pytest.raises(InvalidInputError, match=r"coverage is not for path, .*; got 0\.5\. Read it off the curve"):
        mosaic.path(CLOUD, coverage=0.5)
    with pytest.raises(InvalidInputError, match="max_representatives must be a whole number >= 1; got 0"):
        mosaic.path(CLOUD, max_representatives=0)
    with pytest.raises(InvalidInputError, match="must_include names 3 rows, and max_representatives is 1"):
        mosaic.path(CLOUD, max_representatives=1, fit_params={"must_include": [3, 7, 11]})


def test_only_thresholds_can_change_without_a_new_fit():
    model = MOSAIC(5).fit(CLOUD)
    with pytest.raises(InvalidInputError, match=r"kernel cannot change without a new fit\. rethreshold takes n_rep"):
        model.rethreshold(kernel="linear")
    before = model.representative_indices_
    with pytest.raises(InvalidInputError, match="n_representatives must be"):
        model.rethreshold(n_representatives=0)
    np.testing.assert_array_equal(model.representative_indices_, before)
    assert model.n_representatives == 5
