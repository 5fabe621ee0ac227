"""What is in the report, in a real browser: lists, files that it saves, hostile strings, no JavaScript."""

import csv
import io
import json
import re

import numpy as np
import pytest

from e2e.pages import HOSTILE, hostile, invented, unpacked, with_pictures
from mosaic import MOSAIC, datasets
from mosaic.show import report_html

pytestmark = pytest.mark.xdist_group("browser")


def test_downloads_hold_what_is_shown(visit):
    facts = hostile(invented())
    facts["columns"] = ["width, height", 'a "quoted" one', "kind"]
    page = visit(facts)
    page.set(k=7)
    picks, lowest = facts["ranking"][:7], facts["lowest"][:20]

    name, text = page.saved("#save-picks")
    assert name == "representatives-7.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["rank", "row", "id", "stands_for", "reason", *facts["columns"]]
    assert [[row[2], *row[4:]] for row in rows] == [[pick["name"], pick["reason"], *pick["cells"]] for pick in picks]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(int(row[3]) for row in rows) == 580

    name, text = page.saved("#save-outliers")
    assert name == "outliers-20.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["row", "id", "effective_count", "reason", *facts["columns"]]
    found = [(int(row[0]), row[1], float(row[2]), row[3]) for row in rows]
    assert found == [(item["row"], item["name"], item["count"], item["reason"]) for item in lowest]

    name, text = page.saved("#save-all")
    assert name == "selection.json"
    selection = json.loads(text)
    assert (selection["k"], selection["n_outliers"]) == (7, 20)
    assert [pick["row"] for pick in selection["representatives"]] == [pick["row"] for pick in picks]
    assert [item["row"] for item in selection["outliers"]] == [item["row"] for item in lowest]
    assert selection["representatives"][0]["cells"] == dict(zip(facts["columns"], picks[0]["cells"], strict=True))


def test_rows_that_would_be_next_come_after_all_outliers_only(page):
    def shown():
        return len(page.outliers()), page.count("#outliers-list tr.next")

    assert shown() == (20, 4)
    assert page.hides("#more-outliers")
    rows = np.cumsum(page.facts["bins"]["rows"])
    threshold = int(np.searchsorted(rows, 25)) + 1
    n = int(rows[threshold - 1])
    assert 24 < n <= 50
    page.set(t=threshold)
    assert shown() == (24, 0)
    page.click("#more-outliers")
    assert shown() == (n, 4)
    assert page.outliers() == [item["name"] for item in page.facts["lowest"][:n]]
    page.set(t=8)
    assert shown() == (20, 4)


def test_outliers_beyond_the_list_are_saved_with_cells_and_how_many_look_like_them(visit):
    facts = invented()
    facts["lowest"] = facts["lowest"][:5]
    _, lines = visit(facts).saved_rows("#save-outliers")
    assert len(lines) == 20
    column = facts["map_columns"][2]
    kinds = [column["texts"][code] for code in unpacked(column["codes"], "u2")]
    assert [line["kind"] for line in lines] == [kinds[int(line["row"])] for line in lines]
    assert all("of 128 rows look like it." in line["reason"] for line in lines[5:])


def test_groups_are_counted_at_k_and_threshold(page):
    page.set(9, 20)
    groups, shown = page.facts["groups"], [pick for pick in page.facts["ranking"][:9] if pick["bin"] >= 20]
    for g, row in enumerate(page.locator("#groups-body tr").all()):
        line = row.locator("th, td").all_inner_texts()
        expected = [groups["rows"][g], sum(pick["group"] == g for pick in shown), sum(groups["low"][g][:20])]
        assert [line[0], line[1], line[3], line[5]] == [f"kind {g}", *(str(number) for number in expected)]


def test_pictures_make_cards(visit):
    page = visit(with_pictures(invented()))
    assert page.count("#picks-list li:visible") == 12
    assert page.attribute("#picks-list img", "src") == page.facts["ranking"][0]["picture"]
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth === 32)")
    page.set(k=4)
    assert page.count("#picks-list li:visible") == 4


def test_page_works_without_optional_facts(visit):
    facts = invented()
    facts.update(groups=None, file=None, columns=[], map_columns=[], suggested=None)
    facts["map"].update(group=None, names=None)
    facts["bound"] = None
    facts["settings"] |= {"command": None, "notes": []}
    for item in [*facts["ranking"], *facts["lowest"]]:
        item.update(cells=[], name=None, group=-1)
    page = visit(facts)
    page.set(3, 9)
    assert page.text() == "2 representatives of 600 rows; 21 outliers set aside."
    assert f"row {facts['ranking'][0]['row']}" in page.text("#picks-list")
    page.click("#picks-list .link")


def of_a_sample():
    """The facts of a million rows of which the page has six hundred."""
    facts = invented() | {"n": 1_000_000, "scaled": True, "n_outliers": 33_000, "is_estimate": True, "has_lowest": False}
    facts["bins"]["exact"] = 0
    facts["map"] |= {"of": 40_000, "n_outside": 3}
    return facts


def test_thinned_map_and_scaled_numbers_are_marked(visit):
    page = visit(of_a_sample())
    assert "600 of 40,000 points shown" in page.text("#map-text")
    assert "3 points beyond the frame are drawn at its edge" in page.text("#map-text")
    assert "coverage 88.0 % of at most 91.7 %; about 33,000 outliers set aside" in page.text()
    assert page.text("#t-text").startswith("About 33,000 rows with an effective count below 2")
    told = "This page and the files that it saves have 20 of about 33,000, those in the sample. Others may be odder."
    assert told in page.text("#outliers-list")
    assert all(text.startswith("about ") for text in page.stands_for())
    assert all(text.startswith("about ") for text in page.texts("#groups-body td:last-child"))
    assert not any(
        text.startswith("about ") for text in page.texts("#groups-body td:nth-child(2)")
    )  # groups of all rows are known
    page.locator("#search").fill("nobody")
    assert page.text("#matches") == "No row has this. The page has 600 rows of 1,000,000."


def test_numbers_of_outliers_are_exact_as_far_as_all_of_them_are_known(visit):
    facts = of_a_sample() | {"n_outliers": 20, "is_estimate": False, "has_lowest": True}
    facts["bins"]["exact"] = facts["bins"]["threshold"]
    page = visit(facts)
    assert page.text().endswith("; 20 outliers set aside.")
    assert (page.text("#outliers-tally"), page.text("#t-first")) == ("20", "Found: 20 outliers")
    assert page.text("#t-text").startswith("20 rows with an effective count below 2")
    assert "This page and the files" not in page.text("#outliers-list")
    assert all(text.startswith("about ") for text in page.stands_for())
    page.set(t=7)
    assert "about" not in page.text().partition(";")[2]
    page.set(t=9)
    assert re.search(r"; about \d+ outliers set aside", page.text())
    assert page.text("#t-text").startswith("About ")
    assert page.text("#outliers-tally").startswith("about ")


def test_hostile_strings_are_shown_as_text(visit):
    page = visit(hostile(invented()))
    page.click("#settings summary")
    for _ in range(5):
        page.press("ArrowRight", "Enter", at="#map")
    assert page.evaluate("window.pwned") is None
    assert page.count("img") == 0  # what claims to be a picture and is none is not shown
    assert page.evaluate("document.scripts.length") == 2
    everything = page.evaluate("document.body.textContent")
    for text in HOSTILE.values():
        assert text in everything
    assert page.title() == HOSTILE["script"]
    assert page.text().startswith("12")


def test_policy_lets_no_other_script_or_style_in(page):
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.pwned = 1";
            document.body.append(script);
            document.body.setAttribute("onclick", "window.pwned = 2");
            document.body.setAttribute("style", "display: none");
            document.body.click();
        }"""
    )
    page.evaluate("fetch('https://example.invalid/').catch(() => 0)")
    assert page.evaluate("window.pwned") is None
    assert page.locator("h1").is_visible()
    assert len([text for text in page.heard if "Content Security Policy" in text]) >= 4
    assert not [text for text in page.heard if text.startswith("request")]
    page.heard.clear()


def test_page_is_readable_without_javascript(visit):
    page = visit(invented(), java_script_enabled=False)
    assert page.text().endswith("coverage 88.0 % of at most 91.7 %; 20 outliers set aside.")
    assert (page.count("#picks-list tbody tr"), page.count("#outliers-list tbody tr")) == (12, 20)
    assert page.facts["ranking"][3]["reason"] in page.text("#picks-list")
    assert page.locator("noscript").is_visible()
    for control in ("#map", "#k-range", "#save-picks", "#theme"):
        assert page.hides(control)


@pytest.mark.parametrize("outliers", ["reject", "report", "keep"])
def test_real_fit_reads_the_same_in_the_page_as_in_the_model(visit, outliers):
    X = datasets.blobs_with_gross_outliers().X
    model = MOSAIC(20, outliers=outliers).fit(np.vstack([X, X[:50]]))
    page = visit(report_html(model))
    assert " of at most " in page.text()
    assert re.sub(r" of at most [\d.]+ %", "", page.text()) == model.facts_.sentence
    assert page.stands_for() == [str(number) for number in np.bincount(model.labels_[model.labels_ >= 0], minlength=20)]
    page.set(k=6)
    n_outliers = 8 + sum(model.is_outlier_[400:]) if outliers == "reject" else 0
    assert sum(int(number) for number in page.stands_for()) == 450 - n_outliers
