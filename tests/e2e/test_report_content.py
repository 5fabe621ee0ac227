"""What is in the report, in a real browser: lists, files that it saves, hostile strings, no JavaScript."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    HOSTILE,
    hostile,
    invented,
    running_browser,
    saved,
    set_range,
    settled,
    stands_for,
    text_of,
    unpacked,
    until,
    visited,
    with_pictures,
)

pytestmark = pytest.mark.xdist_group("browser")


def test_downloads_hold_what_is_shown(visit: Any) -> None:
    facts = hostile(invented())
    facts["columns"] = ["width, height", 'a "quoted" one', "kind"]
    page = visit(facts)
    set_range(page, "#k-range", 7)

    name, text = saved(page, "#save-picks")
    assert name == "representatives-7.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["rank", "row", "id", "stands_for", "reason", *facts["columns"]]
    assert [row[2] for row in rows] == [pick["name"] for pick in facts["ranking"][:7]]
    assert [row[4] for row in rows] == [pick["reason"] for pick in facts["ranking"][:7]]
    assert [row[5:] for row in rows] == [pick["cells"] for pick in facts["ranking"][:7]]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(int(row[3]) for row in rows) == 580

    name, text = saved(page, "#save-outliers")
    assert name == "outliers-20.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["row", "id", "effective_count", "reason", *facts["columns"]]
    lowest = facts["lowest"][:20]
    assert [[int(row[0]), row[1], float(row[2])] for row in rows] == [[i["row"], i["name"], i["count"]] for i in lowest]
    assert [row[3] for row in rows] == [item["reason"] for item in lowest]

    name, text = saved(page, "#save-all")
    assert name == "selection.json"
    selection = json.loads(text)
    assert selection["k"] == 7
    assert selection["n_outliers"] == 20
    assert [pick["row"] for pick in selection["representatives"]] == [pick["row"] for pick in facts["ranking"][:7]]
    assert [item["row"] for item in selection["outliers"]] == [item["row"] for item in lowest]
    assert selection["representatives"][0]["cells"] == dict(zip(facts["columns"], facts["ranking"][0]["cells"], strict=True))


def test_rows_that_would_be_next_come_after_all_outliers_only(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    odd, following = page.locator("#outliers-list tr.odd:not(.next)"), page.locator("#outliers-list tr.next")
    assert (odd.count(), following.count()) == (20, 4)
    assert page.locator("#more-outliers").is_hidden()
    rows = np.cumsum(facts["bins"]["rows"])
    threshold = int(np.searchsorted(rows, 25)) + 1
    n = int(rows[threshold - 1])
    assert 24 < n <= 50
    set_range(page, "#t-range", threshold)
    assert (odd.count(), following.count()) == (24, 0)
    page.locator("#more-outliers").click()
    settled(page)
    assert (odd.count(), following.count()) == (n, 4)
    assert odd.locator(".link").all_inner_texts() == [item["name"] for item in facts["lowest"][:n]]
    set_range(page, "#t-range", 8)
    assert (odd.count(), following.count()) == (20, 4)


def test_outliers_beyond_the_list_are_saved_with_cells_and_how_many_look_like_them(visit: Any) -> None:
    facts = invented()
    facts["lowest"] = facts["lowest"][:5]
    page = visit(facts)
    lines = list(csv.DictReader(io.StringIO(saved(page, "#save-outliers")[1], newline="")))
    assert len(lines) == 20
    column = facts["map_columns"][2]
    kinds = [column["texts"][code] for code in unpacked(column["codes"], "u2")]
    assert [line["kind"] for line in lines] == [kinds[int(line["row"])] for line in lines]
    assert all("of 128 rows look like it." in line["reason"] for line in lines[5:])


def test_groups_are_counted_at_k_and_threshold(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    set_range(page, "#k-range", 9)
    set_range(page, "#t-range", 20)
    lines = [row.locator("th, td").all_inner_texts() for row in page.locator("#groups-body tr").all()]
    shown = [pick for pick in facts["ranking"][:9] if pick["bin"] >= 20]
    for g, line in enumerate(lines):
        picks = sum(pick["group"] == g for pick in shown)
        outliers = sum(facts["groups"]["low"][g][:20])
        assert [line[0], line[1], line[3], line[5]] == [f"kind {g}", str(facts["groups"]["rows"][g]), str(picks), str(outliers)]


def test_pictures_make_cards(visit: Any) -> None:
    facts = with_pictures(invented())
    page = visit(facts)
    assert page.locator("#picks-list li:visible").count() == 12
    assert page.locator("#picks-list img").first.get_attribute("src") == facts["ranking"][0]["picture"]
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth === 32)")
    set_range(page, "#k-range", 4)
    assert page.locator("#picks-list li:visible").count() == 4


def test_page_works_without_optional_facts(visit: Any) -> None:
    facts = invented()
    facts.update(groups=None, file=None, columns=[], map_columns=[], suggested=None)
    facts["map"].update(group=None, names=None)
    facts["certificate"] |= {"excess": None}
    facts["settings"] |= {"command": None, "notes": []}
    for item in [*facts["ranking"], *facts["lowest"]]:
        item.update(cells=[], name=None, group=-1)
    page = visit(facts)
    set_range(page, "#k-range", 3)
    set_range(page, "#t-range", 9)
    assert text_of(page, "h1") == "2 representatives of 600 points; 21 outliers set aside."
    assert f"row {facts['ranking'][0]['row']}" in text_of(page, "#picks-list")
    page.locator("#picks-list .link").first.click()


def test_thinned_map_and_scaled_numbers_are_marked(visit: Any) -> None:
    facts = invented()
    facts |= {"n": 1_000_000, "scaled": True, "n_outliers": 33_000}
    facts["map"] |= {"of": 40_000, "n_outside": 3}
    page = visit(facts)
    assert "600 of 40,000 points shown" in text_of(page, "#map-text")
    assert "3 points beyond the frame are drawn at its edge" in text_of(page, "#map-text")
    assert "of 1,000,000 points; about 33,000 outliers set aside" in text_of(page, "h1")
    assert text_of(page, "#t-text").startswith("About 33,000 rows with an effective count below 2")
    assert "This page and the files that it saves have the lowest 20 of about 33,000." in text_of(page, "#outliers-list")
    assert all(text.startswith("about ") for text in stands_for(page))


def test_hostile_strings_are_shown_as_text(visit: Any) -> None:
    facts = hostile(invented())
    page = visit(facts)
    page.locator("#settings summary").click()
    page.locator("#map").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settled(page)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0  # what claims to be a picture and is none is not shown
    assert page.evaluate("document.scripts.length") == 2
    everything = page.evaluate("document.body.textContent")
    for text in HOSTILE.values():
        assert text in everything
    assert page.title() == HOSTILE["script"]
    assert page.locator("h1").inner_text().startswith("12")


def test_policy_lets_no_other_script_or_style_in(visit: Any) -> None:
    page = visit(invented())
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
    refused = [text for text in visit.heard if "Content Security Policy" in text]
    assert len(refused) >= 4
    assert not [text for text in visit.heard if text.startswith("request")]
    visit.heard.clear()


def test_page_is_readable_without_javascript(visit: Any) -> None:
    facts = invented()
    page = visit(facts, java_script_enabled=False)
    assert text_of(page, "h1").endswith("provably at most 2.8 % more unexplained than by the best 12.")
    assert page.locator("#picks-list tbody tr").count() == 12
    assert page.locator("#outliers-list tbody tr").count() == 20
    assert facts["ranking"][3]["reason"] in text_of(page, "#picks-list")
    assert page.locator("noscript").is_visible()
    for hidden in ("#map", "#k-range", "#save-picks", "#theme"):
        assert page.locator(hidden).is_hidden()


@pytest.mark.parametrize("outliers", ["reject", "report", "keep"])
def test_real_fit_reads_the_same_in_the_page_as_in_the_model(visit: Any, outliers: str) -> None:
    from mosaic import MOSAIC, datasets
    from mosaic.show import report_html

    X = datasets.blobs_with_gross_outliers().X
    model = MOSAIC(20, outliers=outliers).fit(np.vstack([X, X[:50]]))
    page = visit(report_html(model))
    assert text_of(page, "h1") == model.facts_.sentence
    assert stands_for(page) == [str(number) for number in np.bincount(model.labels_[model.labels_ >= 0], minlength=20)]
    set_range(page, "#k-range", 6)
    n_outliers = 8 + sum(model.is_outlier_[400:]) if outliers == "reject" else 0
    assert sum(int(number) for number in stands_for(page)) == 450 - n_outliers
