"""What is decided on purpose: each test fails if its policy is left out."""

import numpy as np
import pandas as pd
import pytest

from mosaic import MOSAIC, MOSAICOutlierDetector
from mosaic.choosing import Constraints
from mosaic.choosing.cover import Cover
from mosaic.choosing.draw import draw_in_memory
from mosaic.choosing.improve import Improvement
from mosaic.kernels import make_kernel
from mosaic.rows import Encoder, Rows


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_narrow_middle_half_does_not_stretch_a_column_more_than_tenfold(rng):
    """A column of which more than half of the values are nearly equal is divided by a tenth of the spread of nine tenths."""
    narrow = np.concatenate([rng.normal(0.0, 1e-6, 600), rng.normal(0.0, 1.0, 400)])
    X = np.column_stack([rng.normal(size=1000), rng.permutation(narrow)])
    scale = MOSAIC(5, scale=True).fit(X).column_scale_
    low, high = np.quantile(X[:, 1], [0.05, 0.95])
    assert scale[1] == pytest.approx(0.1 * (high - low) / 3.29, rel=1e-3)


@pytest.mark.filterwarnings("ignore::mosaic.exceptions.SelectionWarning")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_just_above_a_valley_are_no_picks_as_long_as_there_are_others(seed):
    """Some rows of noise have counts just above the cut; without the rule one to five of them are picked."""
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([rng.normal(centre, 1.0, (100, 6)) for centre in rng.normal(0.0, 8.0, (6, 6))])
    noise = rng.uniform(clusters.min(), clusters.max(), (60, 6))
    model = MOSAIC(60).fit(np.vstack([clusters, noise]))
    assert model.selection_.cut.rule == "valley"
    assert (model.representative_indices_ < len(clusters)).all()


@pytest.mark.filterwarnings("ignore::mosaic.exceptions.SelectionWarning")
def test_kept_groups_come_largest_first_and_one_has_a_pick_if_it_has_as_many_rows_as_a_pick_stands_for(rng):
    """The smaller group is nearer to the middle and found first."""
    cloud = rng.normal(size=(1000, 5))
    small = 15.0 + 3.0 * rng.normal(size=(30, 5))
    large = -30.0 + 3.0 * rng.normal(size=(60, 5))
    X = np.vstack([cloud, small, large])
    model = MOSAIC(3).fit(X)
    assert [len(rows) > 45 for rows in model.selection_.kept_rows] == [True, False]
    in_small = np.arange(1000, 1030)
    assert not np.isin(model.representative_indices_, in_small).any()
    assert np.isin(MOSAIC(60).fit(X).representative_indices_, in_small).any()


def test_of_equal_rows_an_earlier_pick_is_picked_again(rng):
    X = rng.normal(size=(50, 2))
    first = MOSAIC(3).fit(X).representative_indices_
    doubled = np.vstack([X, X])
    again = MOSAIC(3).fit(doubled, start=first + 50).representative_indices_
    assert sorted(again) == sorted(first + 50)


@pytest.mark.parametrize("seed", [35, 37, 39, 41])
def test_a_pick_does_not_move_to_a_row_that_covers_less(seed):
    """Of rows on a circle, the one that is nearest to their middle is nothing special."""
    X = np.random.default_rng(seed).normal(size=(30, 2))
    X /= np.linalg.norm(X, axis=1)[:, None]
    cover = Cover.of(make_kernel(X, "rbf"), np.arange(30), np.ones(30), 3)
    best = cover.between(np.arange(30), np.arange(30)).sum(axis=0).argmax(keepdims=True)
    improvement = Improvement(cover, X, np.ones(30), np.zeros(30, np.intp))
    assert improvement.moved(best, np.zeros(1, dtype=bool)).tolist() == best.tolist()


def test_an_explanation_names_no_further_columns_once_three_quarters_of_the_distance_are_named(rng):
    X = rng.normal(size=(300, 4))
    X[0] = [60.0, 9.0, 9.0, 0.0]
    X[1] = 30.0
    detector = MOSAICOutlierDetector().fit(pd.DataFrame(X, columns=list("abcd")))
    named = [[column for column, _, _ in detector.explain(row).columns] for row in (0, 1)]
    assert named[0] == ["a"]  # b and c are unusual, too
    assert len(named[1]) == 3


def test_rows_without_weight_do_not_change_how_much_the_others_count(rng):
    """Weights that are no numbers of copies are 1 on average, over the rows that have one."""
    X, weights = rng.normal(size=(300, 2)), rng.uniform(0.5, 1.5, 300)
    alone = MOSAICOutlierDetector().fit(X, sample_weight=weights)
    beside = MOSAICOutlierDetector().fit(np.vstack([X, X + 5.0]), sample_weight=np.append(weights, np.zeros(300)))
    np.testing.assert_allclose(beside.effective_count_[:300], alone.effective_count_)


def test_rows_of_which_there_are_few_copies_are_sampled_as_others_are(rng):
    """Those with 32 copies or more are in every sample."""
    often, single = rng.normal(size=(100, 2)), rng.normal(size=(3000, 2))
    for copies, in_sample in ((10, 16), (40, 100)):
        X = np.vstack([np.repeat(often, copies, axis=0), single])
        drawn = draw_in_memory(X, 500, Constraints.read(len(X)))
        assert np.count_nonzero(drawn.copies == copies) == pytest.approx(in_sample, abs=12)


@pytest.mark.filterwarnings("ignore::mosaic.exceptions.SelectionWarning")
def test_a_cell_that_is_no_number_stands_apart_where_few_are_none(rng):
    """Where many are none, it is a way to write that a number is missing."""
    numbers = [f"{x:.3f}" for x in rng.normal(size=300)]
    odd = []
    for n_unread in (1, 9):
        frame = pd.DataFrame({"a": ["unknown"] * n_unread + numbers[n_unread:], "b": rng.normal(size=300)})
        odd.append(MOSAICOutlierDetector().fit(frame).is_outlier_[:n_unread].mean())
    assert odd[0] == 1.0
    assert odd[1] < 0.5


def test_a_day_of_the_week_is_a_point_on_a_circle_whose_diameter_is_the_root_of_two(rng):
    """Opposite days are as far apart as different levels of a category."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * rng.integers(0, 52, 300) + rng.integers(0, 3, 300), unit="D")
    rows = Rows.of(pd.DataFrame({"day": days, "b": rng.normal(size=300)}))
    encoder = Encoder.fit(rows)
    assert encoder.columns[0].how == "date and weekday"
    circle = encoder.matrix(rows)[:, encoder.blocks["day"]][:, -2:]
    np.testing.assert_allclose((circle**2).sum(axis=1), 0.5)
