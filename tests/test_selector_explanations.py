"""Why MOSAIC has chosen, rejected or left out a row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mosaic import MOSAIC, InvalidInputError, datasets

GROSS = datasets.blobs_with_gross_outliers()


# Explanations


def check_explanation(model, i, X):
    assert model.explain(i).influence is None or model.selection_.is_solved
    influence = model.influence_[i]
    told = model.explain(i)
    assert told.index == i
    assert told.influence == influence
    assert told.effective_count == model.effective_count_[i]
    assert told.outlier_probability == model.outlier_probability_[i]
    assert told.representation_error == model.representation_error_[i]
    assert told.count_threshold == model.outlier_threshold_
    similarity = rbf_kernel(X[i : i + 1], X[model.representative_indices_], gamma=model.gamma_)[0]
    nearest = np.argsort(-similarity, kind="stable")[:5]
    assert [row for row, _ in told.nearest] == model.representative_indices_[nearest].tolist()
    np.testing.assert_allclose([value for _, value in told.nearest], similarity[nearest], rtol=1e-9)
    label = model.labels_[i]
    assert told.represented_by == (None if label < 0 else model.representative_indices_[label])
    assert told.similarity == (None if label < 0 else pytest.approx(similarity[label]))
    assert str(told) == f"Row {i}: {told.reason}"
    assert told.to_dict()["status"] == told.status
    return told


def test_explanation_of_a_representative():
    model = MOSAIC(20).fit(GROSS.X)
    for place in (0, 7):
        i = int(model.representative_indices_[place])
        told = check_explanation(model, i, GROSS.X)
        assert (told.status, told.rank, told.represented_by) == ("representative", place, i)
        members = np.flatnonzero(model.labels_ == place)
        assert told.stands_for == len(members)
        assert told.members[0] == i
        assert set(told.members) <= set(members.tolist())
        assert told.reason.startswith(f"chosen as number {place + 1} of 20: it stands for {len(members)} rows")


def test_explanation_of_an_outlier():
    model = MOSAIC(20).fit(GROSS.X)
    i = int(np.flatnonzero(GROSS.is_outlier)[3])
    told = check_explanation(model, i, GROSS.X)
    assert (told.status, told.rank, told.stands_for, told.members) == ("outlier", None, 0, ())
    assert told.effective_count < told.count_threshold
    assert told.reason.startswith("rejected as an outlier: it is alone: fewer than 1.35 rows look like it")
    reported = MOSAIC(20, outliers="report").fit(GROSS.X).explain(i)
    assert reported.reason.startswith("reported as an outlier")
    assert reported.represented_by is not None


def test_explanation_of_a_represented_row():
    frame = pd.DataFrame(GROSS.X, columns=["east", "north"])
    model = MOSAIC(20).fit(frame)
    i = int(np.flatnonzero((model.labels_ >= 0) & ~model.get_support())[5])
    told = check_explanation(model, i, GROSS.X)
    assert (told.status, told.rank) == ("represented", None)
    assert f"row {told.represented_by} stands for it" in told.reason
    squares = (GROSS.X[i] - GROSS.X[told.represented_by]) ** 2
    assert dict(told.differs_in) == pytest.approx(
        dict(zip(["east", "north"], squares / squares.sum(), strict=True)), rel=1e-6
    )
    assert told.differs_in[0][1] >= told.differs_in[1][1]


def test_explanation_of_excluded_required_and_weightless_rows():
    free = MOSAIC(5).fit(GROSS.X)
    best, odd = int(free.representative_indices_[0]), int(np.flatnonzero(GROSS.is_outlier)[0])
    model = MOSAIC(5).fit(GROSS.X, exclude=[best], must_include=[odd])
    excluded, required = check_explanation(model, best, GROSS.X), check_explanation(model, odd, GROSS.X)
    assert excluded.status == "represented"
    assert excluded.reason.endswith("It was not allowed to be chosen.")
    assert (required.status, required.rank) == ("representative", 0)
    assert required.reason.endswith("It had to be included.")
    weights = np.ones(400)
    weights[best] = 0
    weightless = check_explanation(MOSAIC(5).fit(GROSS.X, sample_weight=weights), best, GROSS.X)
    assert (weightless.status, weightless.influence) == ("represented", 0.0)


@pytest.mark.parametrize("row", [400, -401, 1.5, True, "first"])
def test_there_is_no_explanation_of_rows_that_are_not_there(row):
    with pytest.raises(InvalidInputError, match="i must be a row number between 0 and 399"):
        MOSAIC(5).fit(GROSS.X).explain(row)


def test_rows_may_be_counted_from_the_end():
    model = MOSAIC(5).fit(GROSS.X)
    assert model.explain(-1) == model.explain(399)
