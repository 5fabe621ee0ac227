"""The report about outliers in a real browser: no representatives, a threshold and a list."""

import json

import numpy as np
import pytest

from e2e.pages import invented, without_representatives
from mosaic import MOSAICOutlierDetector, datasets
from mosaic.show import report_html

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_threshold_changes_sentence_list_map_histogram_and_file(visit):
    facts = without_representatives(invented())
    page = visit(facts)
    rows, names = facts["bins"]["rows"], [item["name"] for item in facts["lowest"]]
    assert page.text() == "20 outliers among 600 rows."
    assert page.outliers() == names[:20]
    before = page.pixels()
    page.set(t=4)
    number = sum(rows[:4])
    assert 0 < number < 20
    assert page.text() == f"{number} outliers among 600 rows."
    assert page.outliers() == names[:number]
    assert page.pixels() != before
    assert page.count("#histogram .low") == sum(n > 0 for n in rows[:4])
    name, lines = page.saved_rows("#save-outliers")
    assert name == f"outliers-{number}.csv"
    assert [line["id"] for line in lines] == names[:number]
    assert [line["reason"] for line in lines] == [item["reason"] for item in facts["lowest"][:number]]
    found = json.loads(page.saved("#save-all")[1])
    assert found["n_outliers"] == number
    assert "representatives" not in found
    page.set(t=0)
    assert page.text() == "No outliers among 600 rows."
    page.click("#t-first")
    assert page.text() == "20 outliers among 600 rows."


def test_arrow_keys_step_through_outliers_and_no_representative_is_mentioned(visit):
    page = visit(without_representatives(invented()))
    page.set(t=4)
    shown = page.outliers()
    for name in (*shown, shown[0]):  # and from the last to the first
        page.press("ArrowRight", at="#map")
        assert page.text("#tip").startswith(name)
    page.press("Enter")
    assert page.text("#detail h3") == shown[0]
    page.click("#settings > summary")
    assert "epresentative" not in page.evaluate("document.body.innerText")
    for part in ("#picks", "#number", "#k-range", "#proof"):
        assert page.count(part) == 0


def test_detector_reads_the_same_in_the_page_as_in_python(visit):
    detector = MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X)
    page = visit(report_html(detector))
    assert page.text() == detector.facts_.sentence
    rows = {int(button.get_attribute("data-row")) for button in page.locator("#outliers-list .odd:not(.next) .link").all()}
    assert rows == set(np.flatnonzero(detector.is_outlier_).tolist())
