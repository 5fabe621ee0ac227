"""The report about outliers, and what the page does with data: in a real browser."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    hostile,
    invented,
    place_of,
    running_browser,
    saved,
    set_range,
    settled,
    text_of,
    visited,
    with_pictures,
    with_two_layouts,
    without_representatives,
    world,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def names_of_outliers(page: Any) -> list[str]:
    return list(page.locator("#outliers-list .odd:not(.next) .link").all_inner_texts())


def test_threshold_changes_sentence_list_map_histogram_and_file(visit: Any) -> None:
    facts = without_representatives(invented())
    page = visit(facts)
    picture = "() => document.getElementById('map-points').toDataURL()"
    assert text_of(page, "h1") == "20 outliers among 600 points."
    assert names_of_outliers(page) == [item["name"] for item in facts["lowest"][:20]]
    before = page.evaluate(picture)
    set_range(page, "#t-range", 4)
    number = sum(facts["bins"]["rows"][:4])
    assert 0 < number < 20
    assert text_of(page, "h1") == f"{number} outliers among 600 points."
    assert names_of_outliers(page) == [item["name"] for item in facts["lowest"][:number]]
    assert page.evaluate(picture) != before
    assert page.locator("#histogram .low").count() == sum(rows > 0 for rows in facts["bins"]["rows"][:4])
    name, text = saved(page, "#save-outliers")
    assert name == f"outliers-{number}.csv"
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [line["id"] for line in lines] == names_of_outliers(page)
    assert [line["reason"] for line in lines] == [item["reason"] for item in facts["lowest"][:number]]
    found = json.loads(saved(page, "#save-all")[1])
    assert found["n_outliers"] == number
    assert "representatives" not in found
    set_range(page, "#t-range", 0)
    assert text_of(page, "h1") == "No outliers among 600 points."
    page.locator("#t-first").click()
    settled(page)
    assert text_of(page, "h1") == "20 outliers among 600 points."


def test_page_about_outliers_mentions_no_representative(visit: Any) -> None:
    page = visit(without_representatives(invented()))
    page.locator("#outliers-list .link").first.click()
    page.locator("#settings > summary").click()
    settled(page)
    assert "epresentative" not in page.evaluate("document.body.innerText")
    for part in ("#picks", "#number", "#k-range", "#proof"):
        assert page.locator(part).count() == 0


def test_arrow_keys_step_through_the_outliers_of_the_threshold(visit: Any) -> None:
    facts = without_representatives(invented())
    page = visit(facts)
    set_range(page, "#t-range", 4)
    shown = names_of_outliers(page)
    page.locator("#map").focus()
    for name in (*shown, shown[0]):  # and from the last to the first
        page.keyboard.press("ArrowRight")
        settled(page)
        assert text_of(page, "#tip").startswith(name)
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("#detail h3").inner_text() == shown[0]


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_strings_stay_text_on_a_page_about_outliers(visit: Any, width: int) -> None:
    page = visit(without_representatives(hostile(with_pictures(invented()))), width=width)
    page.locator("#outliers-list .link").first.click()
    settled(page)
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_detector_reads_the_same_in_the_page_as_in_python(visit: Any) -> None:
    from mosaic import MOSAICOutlierDetector, datasets
    from mosaic.show import report_html

    X = datasets.blobs_with_gross_outliers().X
    detector = MOSAICOutlierDetector().fit(X)
    page = visit(report_html(detector))
    assert text_of(page, "h1") == detector.facts_.sentence
    rows = {int(button.get_attribute("data-row")) for button in page.locator("#outliers-list .odd:not(.next) .link").all()}
    assert rows == set(np.flatnonzero(detector.is_outlier_).tolist())


def test_first_list_is_folded_until_all_of_it_is_wanted(visit: Any) -> None:
    page = visit(invented())
    box = page.locator("#picks-list .scroll")
    folded = box.bounding_box()["height"]
    assert folded < 400
    page.locator("#unfold").click()
    settled(page)
    assert box.bounding_box()["height"] > folded
    assert page.locator("#unfold").get_attribute("aria-expanded") == "true"
    page.locator("#unfold").click()
    settled(page)
    assert box.bounding_box()["height"] == folded
    set_range(page, "#k-range", 2)
    assert page.locator("#unfold").is_hidden()


def test_columns_that_are_not_compared_are_folded_and_saved_in_the_order_of_the_file(visit: Any) -> None:
    facts = invented() | {"n_compared": 2, "places": [1, 2, 0]}  # the file has kind, width, height
    page = visit(facts)
    heads = page.locator("#picks-list thead th:visible")
    assert heads.all_inner_texts() == ["Rank", "Name", "Stands for", "Why", "width", "height"]
    button = page.locator("#picks .fold-columns")
    assert text_of(page, "#picks .fold-columns") == "Show 1 column that is not compared"
    button.click()
    assert heads.all_inner_texts()[-3:] == ["width", "height", "kind"]
    assert page.locator("#outliers-list thead th:visible").count() == 6
    assert page.locator("#picks .fold-columns").get_attribute("aria-expanded") == "true"
    header, first, *_ = csv.reader(io.StringIO(saved(page, "#save-picks")[1], newline=""))
    assert header == ["rank", "row", "id", "stands_for", "reason", "kind", "width", "height"]
    assert first[5:] == [facts["ranking"][0]["cells"][c] for c in (2, 0, 1)]
    found = json.loads(saved(page, "#save-all")[1])
    assert list(found["representatives"][0]["cells"]) == ["kind", "width", "height"]
    page.locator("#picks-list .link").first.click()
    settled(page)
    assert page.locator("#detail .ignored-cells table").is_hidden()
    page.locator("#detail .ignored-cells summary").click()
    assert "kind" in text_of(page, "#detail .ignored-cells table")


def test_map_is_laid_out_by_neighbours_or_along_axes(visit: Any) -> None:
    facts = with_two_layouts(invented())
    page = visit(facts)
    row = facts["ranking"][3]["row"]
    assert "look alike lie together" in text_of(page, "#map-text")
    page.locator("#map").focus()

    def tip_at() -> float:
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        settled(page)
        assert text_of(page, "#tip").startswith(f"item-{row:04d}")
        box = page.locator("#tip").bounding_box()
        page.keyboard.press("Escape")
        settled(page)
        return float(box["x"] + box["width"] / 2)

    frame = page.locator("#map").bounding_box()
    left = tip_at() - frame["x"]
    page.locator("[data-view='1']").click()
    settled(page)
    assert page.locator("[data-view='1']").get_attribute("aria-pressed") == "true"
    assert page.locator("[data-view='0']").get_attribute("aria-pressed") == "false"
    assert "principal axis 1, principal axis 2" in text_of(page, "#map-text")
    page.locator("#map").focus()
    middle = frame["width"] / 2
    assert (left - middle) * (tip_at() - frame["x"] - middle) < -400  # the axes are mirrored
    assert visit(invented()).locator("[data-view]").count() == 0


def coloured(page: Any, at: tuple[float, float]) -> bool:
    """Whether a place on the map has a colour that is no grey."""
    picture = pytest.importorskip("PIL.Image").open(
        io.BytesIO(page.screenshot(clip={"x": at[0] - 1, "y": at[1] - 1, "width": 3, "height": 3}))
    )
    red, _, blue = np.asarray(picture.convert("RGB"), float).mean(axis=(0, 1))
    return bool(blue - red > 60)


def test_colour_means_rows_of_the_representative_under_the_pointer_or_pinned(visit: Any) -> None:
    invention = world()
    facts, nearest = invention.facts, invention.distance[:, :12].argmin(axis=1)
    facts["groups"] = None
    page = visit(facts)
    pick, belongs = facts["ranking"][10], invention.bins >= 8
    apart = np.where((nearest == 10) & belongs, invention.distance[:, 10], -1.0)
    row = int(apart.argmax())
    member = place_of(page, facts, row)
    other = place_of(page, facts, int(np.where((nearest == 0) & belongs, invention.distance[:, 0], -1.0).argmax()))
    assert not coloured(page, member)
    assert not coloured(page, other)
    page.mouse.move(*place_of(page, facts, pick["row"]))
    settled(page)
    assert coloured(page, member)
    assert not coloured(page, other)
    page.mouse.move(5, 5)
    settled(page)
    assert not coloured(page, member)
    page.locator("#picks-list tr").nth(11).hover()  # its line in the list does the same
    settled(page)
    assert coloured(page, member)
    page.locator("#picks-list .link").nth(10).click()
    page.mouse.move(5, 5)
    settled(page)
    assert coloured(page, place_of(page, facts, row))


def test_rows_without_reason_say_what_they_are_most_like(visit: Any) -> None:
    facts = invented()
    facts["ranking"][0]["reason"] = facts["lowest"][0]["reason"] = ""
    facts["lowest"][0]["count"] = 1.0
    names = [member["name"] for member in facts["ranking"][0]["members"][:3]]
    for options in ({}, {"java_script_enabled": False}):
        page = visit(facts, **options)
        assert f"most like {', '.join(names)}" in text_of(page, "#picks-list tbody tr:first-child")
        assert "no other row looks like it." in text_of(page, "#outliers-list tbody tr:first-child")
