"""Rows and columns of the report in a real browser: found by name, with cells, in histograms, folded, marked."""

import csv
import io
import json
import re

import pytest

from e2e.pages import invented, unpacked, with_columns

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def unlisted(facts):
    """A row that is on the map only."""
    listed = {item["row"] for item in [*facts["ranking"], *facts["lowest"]]}
    beside = {member["row"] for item in facts["ranking"] for member in item["members"]}
    return next(row for row in range(600) if row not in listed | beside)


def cells_in(facts, row):
    return [column["texts"][unpacked(column["codes"], "u2")[row]] for column in facts["map_columns"]]


def find(page, text):
    page.locator("#search").fill(text)
    page.press("Enter")


def compared(page):
    return [line.locator("th, td").all_inner_texts() for line in page.locator("#detail .comparison tbody tr").all()]


def test_search_lists_matches_and_leads_to_a_row_by_keyboard_and_pointer(page):
    page.locator("#search").fill("ITEM-012")
    options = "#matches [role=option] bdi"
    assert page.texts(options) == [f"item-012{i}" for i in range(8)]
    assert "2 more" in page.text("#matches")
    assert page.attribute("#search", "aria-expanded") == "true"
    page.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert page.attribute("#search", "aria-activedescendant") == "match-2"
    assert page.text("#matches [aria-selected=true]").startswith("item-0122")
    page.press("Enter")
    assert page.text("#detail h3") == "item-0122"
    assert page.hides("#matches")
    page.locator("#search").fill("37")  # a row number comes before names that contain it
    assert page.texts(options)[0] == "item-0037"
    page.click(options, 1)
    assert page.text("#detail h3") == "item-0137"
    cell = page.facts["map_columns"][0]["texts"][unpacked(page.facts["map_columns"][0]["codes"], "u2")[44]]
    page.locator("#search").fill(cell)
    assert "item-0044" in page.texts(options)
    page.locator("#search").fill("nobody")
    assert page.text("#matches") == "No row has this."
    page.press("Enter", "Escape")
    assert page.hides("#matches")
    assert page.text("#detail h3") == "item-0137"


def test_cells_of_any_point_are_beside_those_of_its_representative(page):
    facts, row = page.facts, unlisted(page.facts)
    find(page, f"item-{row:04d}")
    heads, cells = page.texts("#detail .comparison thead th"), cells_in(facts, row)
    pick = facts["ranking"][int(heads[2].removeprefix("Representative ")) - 1]
    assert heads[:2] == ["Column", "This row"]
    assert f"Represented by {pick['name']}" in page.text("#detail")
    lines = [list(line) for line in zip(facts["columns"], cells, pick["cells"], strict=True)]
    assert compared(page) == lines
    assert page.count("#detail .differs") == sum(own != other for _, own, other in lines)
    find(page, pick["name"])
    assert page.texts("#detail .comparison thead th") == ["Column", "This row"]


def test_cells_that_are_not_on_the_page_are_said_to_be_missing(visit):
    facts = invented()
    facts["map_columns"][1] = None
    page = visit(facts)
    find(page, f"item-{unlisted(facts):04d}")
    assert compared(page)[1][1] == "–"
    assert "These cells are not on the page." in page.text("#detail")
    assert page.count("#column-charts figure") == 2


def test_rows_without_reason_say_what_they_are_most_like(visit):
    facts = invented()
    facts["ranking"][0]["reason"] = facts["lowest"][0]["reason"] = ""
    facts["lowest"][0]["count"] = 1.0
    names = [member["name"] for member in facts["ranking"][0]["members"][:3]]
    for runs in (True, False):
        page = visit(facts, java_script_enabled=runs)
        assert f"most like {', '.join(names)}" in page.text("#picks-list tbody tr:first-child")
        assert "no other row looks like it." in page.text("#outliers-list tbody tr:first-child")


def test_first_list_is_folded_until_all_of_it_is_wanted(page):
    folded = page.box("#outliers-list .scroll")["height"]
    assert folded < 700
    page.click("#unfold")
    assert page.box("#outliers-list .scroll")["height"] > folded
    assert page.attribute("#unfold", "aria-expanded") == "true"
    page.click("#unfold")
    assert page.box("#outliers-list .scroll")["height"] == folded
    page.set(t=1)
    assert page.hides("#unfold")


def test_columns_that_are_not_compared_are_folded_and_saved_in_the_order_of_the_file(visit):
    facts = invented() | {"n_compared": 2, "places": [1, 2, 0]}  # the file has kind, width, height
    page = visit(facts)
    heads = "#picks-list thead th:visible"
    assert page.texts(heads) == ["Rank", "Name", "Stands for", "Why", "width", "height"]
    assert page.text("#picks .fold-columns") == "Show 1 column that is not compared"
    page.click("#picks .fold-columns")
    assert page.texts(heads)[-3:] == ["width", "height", "kind"]
    assert page.count("#outliers-list thead th:visible") == 7
    assert page.attribute("#picks .fold-columns", "aria-expanded") == "true"
    header, first, *_ = csv.reader(io.StringIO(page.saved("#save-picks")[1], newline=""))
    assert header == ["rank", "row", "id", "stands_for", "reason", "kind", "width", "height"]
    assert first[5:] == [facts["ranking"][0]["cells"][c] for c in (2, 0, 1)]
    found = json.loads(page.saved("#save-all")[1])
    assert list(found["representatives"][0]["cells"]) == ["kind", "width", "height"]
    page.click("#picks-list .link")
    assert page.hides("#detail .ignored-cells table")
    page.click("#detail .ignored-cells summary")
    assert "kind" in page.text("#detail .ignored-cells table")


def test_histograms_have_all_rows_and_mark_picks_outliers_and_the_pinned_row(page):
    def strokes(kind):
        page.show("#columns")
        path = page.locator("#column-charts figure").first.locator(f"path[class='{kind}']").get_attribute("d")
        return (path or "").count("M")

    facts, third = page.facts, page.locator("#column-charts figure").nth(2)
    page.show("#columns")
    assert page.texts("#column-charts figcaption bdi") == facts["columns"]
    picked = {f"{float(pick['cells'][0]):.2f}" for pick in facts["ranking"][:12]}
    assert len(picked) - 2 <= strokes("rug") <= len(picked)  # of near values the marks may be one
    assert 15 <= strokes("rug warm") <= 20
    assert strokes("pinned") == 0
    page.click("#outliers-list .link")
    assert strokes("pinned") == 1
    page.set(3, 0)
    assert strokes("rug") == 3
    assert strokes("rug warm") == 0
    kinds = [int(text) for text in third.locator(".value").all_text_contents()]
    labels = third.locator("text:not(.value)").all_text_contents()
    chosen = [pick["cells"][2] for pick in facts["ranking"][:3]]
    assert dict(zip(labels, kinds, strict=True)) == {f"kind {g}": chosen.count(f"kind {g}") for g in range(3)}


def test_charts_say_in_words_what_they_show_before_anybody_comes_near(visit):
    ages = [str(20 + row % 40) for row in range(598)] + ["n/a", "-"]
    page = visit(with_columns(invented(), {"age": ages, "kind": ["a", "b", "b"] * 200}))
    labels = [page.attribute("#column-charts svg", "aria-label", nth).replace("\u00a0", " ") for nth in (0, 1)]
    assert re.match(r"Histogram of age: 20 to 59, most often \d+ to \d+, 0.3 % missing. Representatives have \d+, ", labels[0])
    assert labels[1].startswith("Histogram of kind: b 66.7 %, a 33.3 %. Representatives have ")


def test_all_that_the_fit_takes_as_missing_is_one_value_in_charts_and_colours(visit):
    gaps = ["", "NA", "n/a", "-"]
    columns = {
        "visits": [gaps[row % 4] if row < 60 else str(row % 9) for row in range(600)],
        "plan": [gaps[row % 4] if row < 60 else "ab"[row % 2] for row in range(600)],
    }
    page = visit(with_columns(invented(), columns))
    page.show("#columns")
    assert [" ".join(text.split()) for text in page.texts("#column-charts figcaption")] == [
        "visits 10.0 % missing",
        "plan 10.0 % missing",
    ]
    assert page.locator("#column-charts figure").nth(1).locator("text:not(.value)").all_text_contents() == ["a", "b", "missing"]
    page.locator("#colour").select_option(label="plan")
    page.settle()
    assert page.texts("#legend li bdi") == ["a", "b", "missing"]
    find(page, "item-0001")
    assert compared(page)[0][1] == "NA"  # as it is written


def test_cells_at_fault_are_marked_in_the_list_and_beside_the_map(visit):
    facts = invented()
    for item in facts["lowest"]:
        item["faults"] = [1]
    facts["left_out"] = "This page and the files that it saves have 3 of 9 columns, those at fault in outliers first."
    page = visit(facts)
    assert page.texts("#outliers-list .odd:first-child .fault") == [facts["lowest"][0]["cells"][1]] * 2  # first beside the name
    assert page.count("#picks-list .fault") == 0
    assert page.text("#outliers .left-out") == page.text("#picks .left-out") == facts["left_out"]
    page.click("#outliers-list .link")
    assert page.texts("#detail .fault") == [facts["lowest"][0]["cells"][1]]


def test_numbers_dates_and_currency_have_histograms_and_long_texts_none(visit):
    columns = {
        "age": [str(row % 80) for row in range(600)],
        "price": [f"${1000 + row:,}.50" for row in range(600)],
        "day": [f"2024-0{1 + row % 9}-{1 + row % 28:02d}" for row in range(600)],
        "tag": [f"{1 + row % 28}.{1 + row % 12}.2023" for row in range(600)],
        "note": [f"words {row}" for row in range(600)],
        "same": ["1"] * 600,
        "gaps": ["" if row % 4 == 0 else str(row) for row in range(600)],
    }
    page = visit(with_columns(invented(), columns))
    page.show("#columns")
    assert page.texts("#column-charts figcaption bdi") == ["age", "price", "day", "tag", "gaps"]
    ends = [figure.locator("text").all_text_contents() for figure in page.locator("#column-charts figure").all()]
    assert ends[0] == ["0", "79"]
    assert ends[1][0].startswith("1,0")
    assert ends[2:4] == [["2024-01-01", "2024-09-28"], ["2023-01-01", "2023-12-28"]]
    assert "25.0 % missing" in page.text("#column-charts figure:last-child").replace("\u00a0", " ")


def test_marks_are_kept_by_the_browser_for_this_page_and_saved(page):
    facts, row = page.facts, unlisted(page.facts)
    assert page.hides("#marked")
    odd, pick = facts["lowest"][0], facts["ranking"][0]
    page.click("#outliers-list .mark-wrong")
    find(page, f"item-{row:04d}")
    page.click("#detail .mark-fine")
    page.press("Escape", "ArrowRight", "f", at="#map")
    assert page.text("#marked-tally") == "3"
    page.open()
    assert page.texts("#marked-list .chip bdi") == [odd["name"], f"item-{row:04d}", pick["name"]]
    assert page.attribute("#outliers-list .mark-wrong", "aria-pressed") == "true"
    name, lines = page.saved_rows("#save-marks")
    assert name == "marks.csv"
    assert [(line["row"], line["id"], line["mark"], line["status"]) for line in lines] == [
        (str(odd["row"]), odd["name"], "wrong", "outlier"),
        (str(row), f"item-{row:04d}", "fine", ""),
        (str(pick["row"]), pick["name"], "fine", "representative"),
    ]
    assert lines[0]["reason"] == odd["reason"]
    assert [lines[1][column] for column in facts["columns"]] == cells_in(facts, row)
    page.click("#outliers-list .mark-wrong")  # the same mark again takes it away
    page.open()
    assert page.text("#marked-tally") == "2"
    page.click("#remove-marks")
    assert page.hides("#marked")
    assert page.evaluate("Object.keys(localStorage).filter(key => JSON.parse(localStorage[key]).length).length") == 0


def test_another_fit_has_marks_of_its_own_and_marks_work_where_the_browser_keeps_nothing(visit, tmp_path):
    from mosaic.show.page import page_of

    page = visit(invented())
    page.click("#outliers-list .mark-fine")
    (tmp_path / "other.html").write_text(page_of(invented(seed=1)), encoding="utf-8")
    page.url = (tmp_path / "other.html").as_uri()
    page.open()
    assert page.hides("#marked")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    page.click("#outliers-list .mark-fine")
    assert "does not keep them" in page.text("#marked-text")
    assert page.text("#marked-tally") == "1"
