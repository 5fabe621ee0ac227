"""Figures show what the facts say."""

import sys

import matplotlib
import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, datasets, show
from mosaic.exceptions import InvalidInputError, MissingDependencyError
from mosaic.show import figures

matplotlib.use("Agg")
from matplotlib import pyplot as plt

BLOBS = datasets.blobs_with_gross_outliers()


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax):
    """Offsets of the markers of a map, by the word that begins their entry in the legend."""
    marks = [np.asarray(mark.get_offsets()) for mark in ax.collections]
    return {text.split()[0]: points for text, points in zip(legend(ax), marks, strict=True)}


def test_map_has_every_representative_outlier_and_point_once_in_the_colour_of_its_representative(model):
    ax = show.plot_map(model)
    found = drawn(ax)
    np.testing.assert_allclose(found["representative"], BLOBS.X[model.representative_indices_])
    assert (len(found["outlier"]), len(found["coloured"])) == (8, 400 - 8 - 12)
    assert ax.get_title(loc="left") == "12 representatives of 400 rows, 8 outliers"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    assert legend(ax)[-1] == "outlier (at the edge: farther out)"
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert ((found["outlier"] > [left, bottom]) & (found["outlier"] < [right, top])).all()
    ax.figure.draw_without_rendering()  # the aspect moves points
    unit = ax.transData.transform([[0.0, 0.0], [1.0, 1.0]])
    assert np.ptp(unit[:, 0]) == pytest.approx(np.ptp(unit[:, 1]))
    colours, chart = ax.collections[1].get_facecolors(), model.facts_.map
    labels = model.labels_[chart.row[np.array(chart.status) == "represented"]]
    assert len({(label % 8, *colour) for label, colour in zip(labels.tolist(), colours.tolist(), strict=True)}) == 8


@pytest.mark.parametrize(("k", "numbered"), [(1, 1), (60, 60), (61, 0)])
def test_numbers_beside_markers_are_ranks(k, numbered):
    model = MOSAIC(k).fit(BLOBS.X)
    numbers = show.plot_map(model).texts
    assert [text.get_text() for text in numbers] == [str(i) for i in range(1, numbered + 1)]
    for text, row in zip(numbers, model.representative_indices_, strict=False):
        np.testing.assert_allclose(text.xy, BLOBS.X[row])


def test_coverage_marks_the_choice_and_the_suggestion(model, detector, monkeypatch):
    _, ax = plt.subplots()
    assert show.plot_coverage(model, ax=ax) is ax
    curve = model.facts_.curve
    coverage, similarity, bound, chosen, dot, suggested = ax.get_lines()
    np.testing.assert_array_equal(coverage.get_ydata(), curve.coverage)
    np.testing.assert_array_equal(similarity.get_ydata(), curve.similarity)
    np.testing.assert_array_equal(bound.get_ydata(), curve.bound)
    assert (set(chosen.get_xdata()), set(suggested.get_xdata())) == ({12}, {curve.suggested})
    assert dot.get_xydata().tolist() == [[12, curve.coverage[11]]]
    assert f"chosen: k = 12, coverage {100 * model.coverage_:.0f} %" in legend(ax)
    with pytest.raises(InvalidInputError, match="MOSAICOutlierDetector has no curve"):
        show.plot_coverage(detector)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"a figure needs matplotlib, .* Use: pip install matplotlib"):
        show.plot_coverage(model)


def test_a_path_is_drawn_with_its_bound_where_there_is_one_and_without_a_choice(monkeypatch):
    path = mosaic.path(BLOBS.X, max_representatives=30)
    ax = show.plot_coverage(path)
    assert [line.get_ydata().tolist() for line in ax.get_lines()[:3]] == [
        each.tolist() for each in (path.coverage, path.similarity, path.bound)
    ]
    assert ax.get_title(loc="left") == "Coverage by 1 to 30 representatives of 400 rows"
    assert not any("chosen" in text for text in legend(ax))
    monkeypatch.setattr("mosaic.choosing.coverage.MOST_PAIRS", 1)
    assert "no k rows have a higher coverage" not in legend(show.plot_coverage(mosaic.path(BLOBS.X, max_representatives=30)))


@pytest.mark.parametrize("which", ["model", "detector"])
def test_outliers_are_drawn_on_their_side_of_the_threshold_if_there_is_one(which, request, monkeypatch):
    fitted = request.getfixturevalue(which)
    ax = show.plot_outliers(fitted)
    belonging, outlying = ax.containers
    assert (sum(bar.get_height() for bar in belonging), sum(bar.get_height() for bar in outlying)) == (392, 8)
    threshold = fitted.selection_.cut.count
    assert set(ax.get_lines()[0].get_xdata()) == {threshold}
    assert all(bar.get_x() + bar.get_width() <= threshold * (1 + 1e-9) for bar in outlying if bar.get_height())
    assert legend(ax) == ["8 outliers", "392 belong", f"threshold {threshold:.3g} (alone)"]
    assert ax.get_yscale() == "linear"
    monkeypatch.setattr(figures, "MOST_UNEQUAL_BARS", 2)
    assert show.plot_outliers(fitted).get_yscale() == "log"  # few outliers among many points stay visible
    ax = show.plot_outliers(MOSAIC(3, outliers="keep").fit(BLOBS.X))
    assert (ax.get_title(loc="left"), legend(ax)) == ("No outliers among 400 rows", ["400 belong"])
    assert not ax.get_lines()


def test_a_model_draws_its_map_of_neighbours_beside_the_curve_and_a_detector_its_counts(detector):
    model = MOSAIC(6).fit(datasets.swiss_roll(200))
    left, right = model.plot()
    places = drawn(left)
    rows = model.facts_.map.row.tolist()
    at = [rows.index(row) for row in model.representative_indices_]
    np.testing.assert_allclose(places["representative"], model.facts_.neighbours.points[at])
    assert (left.get_xlabel(), right.get_xlabel()) == ("", "number of representatives, k")
    assert left.figure is right.figure
    flat, _ = MOSAIC(6).fit(BLOBS.X).plot()  # two features are drawn as they are
    assert (flat.get_xlabel(), flat.get_ylabel()) == ("x0", "x1")
    assert {word: len(points) for word, points in drawn(show.plot_map(detector)).items()} == {"belongs": 392, "outlier": 8}
    other = show.plot_map(MOSAIC(3).fit(np.random.default_rng(0).normal(size=(80, 2)) * [1.0, 1000.0]))
    assert (other.get_aspect(), "outlier" in drawn(other)) == ("auto", False)
    assert detector.plot().get_title(loc="left") == "8 outliers among 400 rows"
