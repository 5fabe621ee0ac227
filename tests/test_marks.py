"""Marks of a report in the next run: rows that are called fine, and what a draw proves of the list of outliers."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, datasets, load

BLOBS = datasets.blobs_with_gross_outliers()
ODD = np.flatnonzero(BLOBS.is_outlier)
FRAME = pd.DataFrame({"id": [f"C{row}" for row in range(400)], "x": BLOBS.X[:, 0], "y": BLOBS.X[:, 1]})


def marks_of(rows, marks, drawn="", status="outlier"):
    """A table as the page saves it."""
    return pd.DataFrame({"row": rows, "id": [f"C{row}" for row in rows], "mark": marks, "status": status, "drawn": drawn})


def told(marks):
    return [text for text in MOSAICOutlierDetector().fit(FRAME, marks=marks).explain() if "arked" in text]


def test_rows_that_are_marked_as_fine_are_no_outliers_for_the_detector_and_the_selector():
    fine = ODD[:2].tolist()
    marks = marks_of([*fine, int(ODD[2])], ["fine", "fine", "wrong"])
    detector = MOSAICOutlierDetector().fit(FRAME, marks=marks)
    assert np.flatnonzero(detector.is_outlier_).tolist() == ODD[2:].tolist()
    assert (detector.predict(FRAME) == np.where(detector.is_outlier_, -1, 1)).all()
    assert "marked as fine" in detector.explain(fine[0]).reason
    model = MOSAIC(10).fit(FRAME, marks=marks)
    assert np.flatnonzero(model.is_outlier_).tolist() == ODD[2:].tolist()
    assert (model.labels_[fine] >= 0).all()
    assert (model.predict(FRAME) == model.labels_).all()


def test_rows_are_found_by_their_names_in_another_order_and_by_their_numbers_where_they_have_none():
    fine = int(ODD[0])
    marks = marks_of([fine], ["fine"])
    turned = FRAME[::-1].reset_index(drop=True)
    model = MOSAICOutlierDetector().fit(turned, marks=marks)
    assert set(turned["id"][model.is_outlier_]) == {f"C{row}" for row in ODD[1:]}
    model = MOSAICOutlierDetector().fit(BLOBS.X, marks=marks)
    assert np.flatnonzero(model.is_outlier_).tolist() == ODD[1:].tolist()
    again = MOSAICOutlierDetector().fit(BLOBS.X, marks=marks.assign(id=np.nan, drawn=None))  # as pandas reads empty columns
    assert (again.is_outlier_ == model.is_outlier_).all()
    gone = pd.concat([marks, marks_of([5], "fine").assign(id="nobody")])
    assert told(gone) == [
        "Marked as fine, and so no outliers: 1 row.",
        "Marked rows that are not in the data: 1.",
        "Of 2 marked outliers 0 are wrong. They are no random draw, so this says nothing of the others.",
    ]


def test_names_with_blanks_that_several_rows_have_or_that_are_missing_are_found_by_what_the_page_shows():
    first, second = ODD[:2].tolist()
    marks = marks_of([first], "fine")
    wide = FRAME.assign(id=[f" C{row}\n" for row in range(400)])
    assert not MOSAICOutlierDetector().fit(wide, marks=marks).is_outlier_[first]
    called = ["same" if row in (first, second) else f"C{row}" for row in range(400)]
    twice = FRAME.drop(columns="id").set_index(pd.Index(called, name="n"))
    again = MOSAICOutlierDetector().fit(twice, marks=marks_of([second], "fine").assign(id="same"))
    assert np.flatnonzero(again.is_outlier_).tolist() == [row for row in ODD if row != second]
    # A page leaves out names that say no more than the number of a row.
    assert not MOSAICOutlierDetector().fit(FRAME, marks=marks.assign(id="")).is_outlier_[first]


@pytest.mark.parametrize("wrong", [30, 27, 1])
def test_thirty_random_marks_bound_the_precision_of_the_list_from_below(wrong):
    marks = marks_of(range(30), ["wrong"] * wrong + ["fine"] * (30 - wrong), "30 of 129")
    sentence = told(marks)[-1]
    assert sentence.startswith(f"Of 30 outliers that were drawn at random from the list of 129, {wrong} are marked as wrong: ")
    share = float(sentence.partition("at least ")[2].partition(" %")[0]) / 100
    # So many or more wrong ones of 30 have the probability 5 % at the exact bound, which is rounded down.
    assert binom.sf(wrong - 1, 30, share) <= 0.05 < binom.sf(wrong - 1, 30, share * 1.1)


def test_no_wrong_mark_proves_nothing_and_a_list_that_is_marked_throughout_is_counted():
    assert "at least 0 % of the list" in told(marks_of(range(30), "fine", "30 of 129"))[-1]
    assert (
        told(marks_of(range(8), ["wrong"] * 5 + ["fine"] * 3, "8 of 8"))[-1]
        == "All 8 outliers of the list are marked, 5 as wrong."
    )


def test_marks_that_are_no_whole_draw_are_only_counted():
    counted = "Of 30 marked outliers 30 are wrong. They are no random draw, so this says nothing of the others."
    some = ["30 of 129"] * 29
    for marks in (
        marks_of(range(30), "wrong"),
        marks_of(range(30), "wrong", [*some, ""]),
        marks_of(range(30), "wrong", [*some, "30 of 130"]),
        marks_of(range(30), "wrong", "yes"),
        marks_of(range(30), "wrong", "30 of 29"),
    ):
        assert told(marks)[-1] == counted
    beside = pd.concat([marks_of(range(30), "wrong", "30 of 129"), marks_of([77], "fine")])
    assert "at least 90 % of the list" in told(beside)[-1]  # marks beside the draw change nothing
    assert len(told(marks_of([3], "fine", status="representative"))) == 1  # and those of other rows say nothing of the list


def test_marks_that_cannot_be_read_are_refused():
    for marks, fault in (
        (marks_of([1], "fine").drop(columns=["drawn", "status"]), "has no column status, drawn"),
        (marks_of([1], "error"), "has the mark 'error'"),
        (marks_of([1, 1], ["fine", "wrong"]), "has 'C1' twice"),
        (marks_of([1], "fine").assign(id="nobody"), "has no row of the data"),
        (marks_of([400], "fine").assign(id=""), "has no row of the data"),
        (marks_of([1], "fine").assign(id="", row="1.5"), "has no row of the data"),
    ):
        with pytest.raises(InvalidInputError, match=fault):
            MOSAIC(5).fit(FRAME, marks=marks)


@pytest.mark.usefixtures("by_passes")
def test_fits_by_passes_and_saved_models_know_the_marks(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    marks_of([int(ODD[0])], ["fine"]).to_csv(tmp_path / "marks.csv", index=False)
    model = MOSAIC(10).fit(tmp_path / "rows.csv", marks=tmp_path / "marks.csv")
    assert not model.is_outlier_[ODD[0]]
    model.save(tmp_path / "model.mosaic")
    assert load(tmp_path / "model.mosaic").predict(FRAME[ODD[0] : ODD[0] + 1])[0] >= 0


def test_the_command_does_not_write_over_the_marks(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    marks_of([3], "fine").to_csv(tmp_path / "marks.csv", index=False)
    before = (tmp_path / "marks.csv").read_text()
    words = ("outliers", tmp_path / "rows.csv", "--marks", tmp_path / "marks.csv", "-o", tmp_path / "marks.csv", "-f")
    ran = run(capsys, *words)
    assert ran.code
    assert "it is the marks, too" in ran.err
    assert (tmp_path / "marks.csv").read_text() == before


def test_the_command_leaves_fine_rows_out_of_its_list_and_says_what_is_proven(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    marks_of(ODD, ["fine", *["wrong"] * 7], "8 of 8").to_csv(tmp_path / "marks.csv", index=False)
    for command in ("outliers", "select"):
        ran = run(capsys, command, tmp_path / "rows.csv", "--marks", tmp_path / "marks.csv", "--json")
        given = json.loads(ran.out)
        assert "All 8 outliers of the list are marked, 7 as wrong." in given["notes"]
        assert given["sentence"].count("7 outliers") == 1
        assert f"C{ODD[0]}" not in [row["id"] for row in given.get("rows", [])]
