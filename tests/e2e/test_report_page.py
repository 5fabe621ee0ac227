"""The report in a real browser: what hands do to it and what it answers."""

from __future__ import annotations

import base64
import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    HOSTILE,
    World,
    doubled,
    hostile,
    invented,
    place_of,
    protected,
    running_browser,
    set_range,
    settled,
    text_of,
    thinned,
    unpacked,
    until,
    value_of,
    visited,
    with_pictures,
    world,
)

pytestmark = pytest.mark.xdist_group("browser")


def stands_for(page: Any) -> list[str]:
    """The third column of the table of picks, as far as it is shown."""
    rows = page.locator("#picks-list tbody tr:visible td:nth-child(3) > span:first-child")
    return [text.replace(",", "") for text in rows.all_inner_texts()]


def saved(page: Any, button: str) -> tuple[str, str]:
    """Name and text of the file that a button saves."""
    with page.expect_download() as download:
        page.locator(button).click()
    return download.value.suggested_filename, download.value.path().read_bytes().decode("utf-8")


def test_sentence_says_who_stands_for_what_and_what_is_proven(visit: Any) -> None:
    page = visit(invented())
    assert text_of(page, "h1") == (
        "12 representatives stand for 88.0 % of 600 points; 20 outliers set aside; provably within 2.8 % of the best 12."
    )
    assert page.title() == "12 representatives of 600 points"


def test_slider_changes_sentence_list_curve_and_slider_text(visit: Any) -> None:
    page = visit(invented())
    before = page.locator("#curve .needle").get_attribute("x1")
    set_range(page, "#k-range", 5)
    assert text_of(page, "h1") == (
        "5 representatives stand for 61.5 % of 600 points; 20 outliers set aside; the proof is for 12."
    )
    assert page.locator("#picks-list tbody tr:visible").count() == 5
    assert float(page.locator("#curve .needle").get_attribute("x1")) < float(before)
    assert text_of(page, "#curve .value") == "61.5 %"
    assert value_of(page, "#k-number") == "5"
    assert "5 representatives" in page.locator("#k-range").get_attribute("aria-valuetext").replace("\u00a0", " ")
    set_range(page, "#k-range", 30)
    assert page.locator("#picks-list tbody tr:visible").count() == 30


def test_proof_for_every_k_is_said_where_it_is_known(visit: Any) -> None:
    facts = invented()
    facts["certificate"]["excesses"] = [0.5 - 0.01 * j for j in range(29)] + [None]
    page = visit(facts)
    set_range(page, "#k-range", 1)
    assert text_of(page, "h1").endswith("provably within 50 % of the best one.")
    set_range(page, "#k-range", 30)
    assert text_of(page, "h1").endswith("the proof is for 12.")


@pytest.mark.parametrize("k", [1, 2, 7, 12, 30])
def test_rows_that_each_stands_for_are_those_that_are_nearest_to_it(visit: Any, k: int) -> None:
    invention = world()
    page = visit(invention.facts)
    set_range(page, "#k-range", k)
    expected = invention.stands_for(k, invention.facts["bins"]["threshold"])
    assert sum(expected) == 580
    assert stands_for(page) == [str(number) for number in expected]


def test_rows_are_exact_on_a_thinned_map_as_far_as_all_low_counts_are_on_it(visit: Any) -> None:
    invention = world()
    ranked = [pick["row"] for pick in invention.facts["ranking"]]
    kept = np.flatnonzero((invention.bins < 16) | (np.arange(600) % 2 == 0) | np.isin(np.arange(600), ranked))
    page = visit(thinned(invention.facts, kept, low_complete=16))
    assert stands_for(page) == [str(number) for number in invention.stands_for(12, 8)]
    set_range(page, "#t-range", 8)
    set_range(page, "#k-range", 20)
    assert stands_for(page) == [str(number) for number in invention.stands_for(20, 8)]
    set_range(page, "#t-range", 4)
    assert stands_for(page) == [str(number) for number in invention.stands_for(20, 4)]
    set_range(page, "#t-range", 24)
    assert any(text.startswith("about ") for text in stands_for(page))


def test_rows_of_struck_picks_are_estimated_on_a_thinned_map_and_none_is_lost(visit: Any) -> None:
    invention = world()
    for j in (3, 4, 5, 6, 7):
        invention.facts["ranking"][j]["bin"] = 8
    kept = np.flatnonzero((invention.bins < 16) | (np.arange(600) % 2 == 0))
    page = visit(thinned(invention.facts, kept, low_complete=16))
    set_range(page, "#k-range", 20)
    set_range(page, "#t-range", 9)
    texts = [text for text in stands_for(page) if text != "–"]
    assert len(texts) == 14
    assert all(text.startswith("about ") for text in texts)
    assert abs(sum(int(text.removeprefix("about ")) for text in texts) - 579) <= 7  # half a row of rounding each


def test_equal_rows_are_one_point_and_are_counted_all(visit: Any) -> None:
    invention = world()
    page = visit(doubled(invention.facts))
    assert "40 outliers set aside" in text_of(page, "h1")
    assert "20 points, 40 rows." in text_of(page, "#outliers-list")
    _, text = saved(page, "#save-outliers")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [line["copies"] for line in lines] == ["2"] * 20
    assert stands_for(page) == [str(2 * number) for number in invention.stands_for(12, 8)]
    set_range(page, "#t-range", 0)
    assert stands_for(page) == [str(2 * number) for number in invention.stands_for(12, 0)]


def test_outliers_that_are_only_reported_stay_with_their_representatives(visit: Any) -> None:
    invention = world()
    facts = reported(invention)
    page = visit(facts)
    assert "20 outliers reported" in text_of(page, "h1")
    set_range(page, "#t-range", 9)
    assert page.locator("#picks-list .struck").count() == 0
    assert stands_for(page) == [str(number) for number in invention.stands_for(12, 0)]
    assert page.locator("#outliers-tally").inner_text() == "21"
    # The choice is the same, so is what is proven; what it covers of those who belong is known at the fit's threshold only.
    assert text_of(page, "h1") == (
        "12 representatives of 600 points; 21 outliers reported; provably within 2.8 % of the best 12."
    )


def reported(invention: World) -> dict[str, Any]:
    """The facts of a fit that reports outliers and rejects none."""
    for pick, number in zip(invention.facts["ranking"], invention.stands_for(12, 0), strict=False):
        pick["stands_for"] = number
    return invention.facts | {"outliers": "report"}


def test_reported_outlier_shows_its_representative(visit: Any) -> None:
    invention = world()
    facts = reported(invention)
    page = visit(facts)
    item = facts["lowest"][0]
    rank = int(invention.distance[item["row"], :12].argmin())
    assert f"Representative {rank + 1} stands for it." in text_of(page, "#outliers-list tr.odd:first-child")
    ends = [place_of(page, facts, row) for row in (item["row"], facts["ranking"][rank]["row"])]
    middle = (ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2
    assert not ink_near(page, *middle)
    page.mouse.click(*ends[0])
    settled(page)
    name = facts["ranking"][rank]["name"]
    assert f"Outlier {name} stands for it (representative {rank + 1})" in text_of(page, "#detail")
    assert page.locator("#detail .chip").first.inner_text() == name
    assert ink_near(page, *middle)


def ink_near(page: Any, x: float, y: float) -> bool:
    """Whether something is drawn over the points close to a place on the screen."""
    uri = page.evaluate("document.getElementById('map-marks').toDataURL()")
    picture = pytest.importorskip("PIL.Image").open(io.BytesIO(base64.b64decode(uri.split(",")[1])))
    box = page.locator("#map-marks").bounding_box()
    column, row = round(x - box["x"]), round(y - box["y"])
    return bool(np.asarray(picture.getchannel("A"))[row - 3 : row + 4, column - 3 : column + 4].any())


def test_sentence_says_nothing_of_outliers_where_nobody_looked(visit: Any) -> None:
    invention = world()
    facts = reported(invention) | {"outliers": "keep", "n_outliers": 0}
    facts["bins"]["threshold"] = 0
    expected = "12 representatives stand for 88.0 % of 600 points; provably within 2.8 % of the best 12."
    assert text_of(visit(facts, java_script_enabled=False), "h1") == expected
    page = visit(facts)
    assert text_of(page, "h1") == expected
    assert "Nobody has looked for outliers" in text_of(page, "#outliers")
    assert text_of(page, "#histogram .value") == "none"
    assert page.locator("#t-first").count() == 0
    set_range(page, "#t-range", 9)
    assert text_of(page, "h1") == expected
    assert page.locator("#t-count").inner_text() == "21"
    assert page.locator("#outliers-list tr.odd:not(.next)").count() == 12
    assert stands_for(page) == [str(number) for number in invention.stands_for(12, 0)]


def test_rows_that_are_never_outliers_are_counted_and_told_by_their_reason(visit: Any) -> None:
    invention = world()
    low = [item["row"] for item in invention.facts["lowest"]]
    kept = [*low[:3], *low[5:7]]
    facts = protected(invention, low[:3], low[5:7])
    page = visit(facts)
    assert "15 outliers set aside" in text_of(page, "h1")
    assert text_of(page, "#t-text").endswith(
        "Never outliers, whatever their count: 3 rows that belong to groups, 2 rows that had to be included."
    )
    columns = [b for b in range(8) if facts["bins"]["rows"][b] > facts["bins"]["safe"][b]]
    assert page.locator("#histogram .low").count() == len(columns)
    assert sum(int(text) for text in page.locator("#groups-body td:last-child").all_inner_texts()) == 15
    listed = page.locator("#outliers-list tr.odd .link").all_inner_texts()
    assert not {f"item-{row:04d}" for row in kept} & set(listed)
    page.mouse.move(*place_of(page, facts, low[0]))
    settled(page)
    assert "Never an outlier" in text_of(page, "#tip")
    assert "stands for it" in text_of(page, "#tip")
    for threshold in (3, 20):
        set_range(page, "#t-range", threshold)
        expected = sum(b < threshold for i, b in enumerate(invention.bins) if i not in kept)
        assert page.locator("#t-count").inner_text() == str(expected)
    set_range(page, "#t-range", 8)
    set_range(page, "#k-range", 9)
    assert stands_for(page) == [str(number) for number in invention.stands_for(9, 8)]
    set_range(page, "#t-range", 0)
    assert "Never" not in text_of(page, "#t-text")


def test_pick_that_had_to_be_included_is_never_struck(visit: Any) -> None:
    invention = world()
    row = invention.facts["ranking"][2]["row"]
    page = visit(protected(invention, [], [row]))
    set_range(page, "#t-range", 9)
    assert page.locator("#picks-list .struck").count() == 0
    assert "12 representatives" in text_of(page, "h1")
    assert "1 row that had to be included" in text_of(page, "#t-text")
    assert "group" not in text_of(page, "#t-text")


def test_first_view_has_the_numbers_of_the_fit(visit: Any) -> None:
    facts = invented()
    for pick in facts["ranking"]:
        pick["stands_for"] += 100  # as if the map could not tell
    page = visit(facts)
    assert stands_for(page) == [str(pick["stands_for"]) for pick in facts["ranking"][:12]]
    _, text = saved(page, "#save-picks")
    assert [int(line["stands_for"]) for line in csv.DictReader(io.StringIO(text, newline=""))] == [
        pick["stands_for"] for pick in facts["ranking"][:12]
    ]
    set_range(page, "#k-range", 11)
    assert sum(int(number) for number in stands_for(page)) == 580


@pytest.mark.parametrize(
    ("excess", "text"),
    [
        (0.0281, "2.8 %"),
        (0.9999, "100 %"),
        (0.00123456, "0.12 %"),
        (4e-6, "less than 0.001 %"),
        (0.0, "0 %"),
        (1.2, None),
        (None, None),
    ],
)
def test_proof_is_said_in_two_digits_and_only_where_it_says_something(visit: Any, excess: Any, text: Any) -> None:
    facts = invented()
    facts["certificate"] |= {"excess": excess, "excesses": [excess] * 30}
    for options in ({}, {"java_script_enabled": False}):
        said = text_of(visit(facts, **options), "h1")
        end = f"set aside; provably within {text} of the best 12." if text else "20 outliers set aside."
        assert said.endswith(end), options
    page = visit(facts)
    set_range(page, "#k-range", 9)
    assert text_of(page, "h1").endswith(f"within {text} of the best 9." if text else "20 outliers set aside.")


def test_text_of_the_proof_says_whom_it_is_about(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    assert text_of(page, "#proof") == facts["certificate"]["sentence"]
    elsewhere = "For the chosen 12: these 12 leave at most 2.8 % more unexplained than the best possible 12 would."
    set_range(page, "#k-range", 9)
    assert text_of(page, "#proof") == elsewhere
    set_range(page, "#k-range", 12)
    assert text_of(page, "#proof") == facts["certificate"]["sentence"]
    set_range(page, "#t-range", 4)
    assert text_of(page, "#proof") == elsewhere


def test_number_field_buttons_and_curve_move_the_same_k(visit: Any) -> None:
    page = visit(invented())
    page.locator("#k-number").fill("9")
    page.keyboard.press("Enter")
    assert value_of(page, "#k-range") == "9"
    page.locator("#k-more").click()
    page.locator("#k-more").click()
    page.locator("#k-less").click()
    assert value_of(page, "#k-range") == "10"
    page.locator("#k-knee").click()
    assert value_of(page, "#k-range") == "7"
    page.locator("#k-first").click()
    assert value_of(page, "#k-range") == "12"
    box = page.locator("#curve").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 60)
    assert value_of(page, "#k-range") == "30"


@pytest.mark.parametrize("typed", ["-3", "0", "9999", "2.5", ""])
def test_number_field_takes_complete_and_valid_numbers_only(visit: Any, typed: str) -> None:
    page = visit(invented())
    page.evaluate(
        """() => {
            window.seen = [];
            const heard = () => window.seen.push(document.getElementById("k-range").value);
            new MutationObserver(heard).observe(document.getElementById("sentence"), { childList: true });
        }"""
    )
    page.locator("#k-number").focus()
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    settled(page)
    for key in "15":
        page.keyboard.press(key)
        settled(page)
    page.keyboard.press("Enter")
    assert value_of(page, "#k-range") == "15"
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type(typed)
    page.locator("#k-number").blur()
    assert value_of(page, "#k-number") == "15"
    assert page.evaluate("window.seen") == ["15"]
    page.locator("#k-number").focus()
    page.keyboard.press("ArrowUp")
    assert value_of(page, "#k-range") == "16"


def test_knee_that_was_chosen_is_said_once(visit: Any) -> None:
    page = visit(invented() | {"knee": 12})
    assert page.locator("#k-first").inner_text() == "Chosen: 12, the knee of the curve"
    assert page.locator("#k-knee").count() == 0
    assert page.locator("#curve .knee").count() == 1


def test_threshold_moves_outliers_at_once(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    for threshold in (0, 4, 20, 40):
        set_range(page, "#t-range", threshold)
        outliers = sum(facts["bins"]["rows"][:threshold])
        assert f"{outliers} outliers set aside" in text_of(page, "h1") or (
            outliers == 0 and "no outliers" in text_of(page, "h1")
        )
        assert page.locator("#t-count").inner_text() == str(outliers)
        assert page.locator("#outliers-tally").inner_text() == str(outliers)
        assert page.locator("#histogram .low").count() == sum(rows > 0 for rows in facts["bins"]["rows"][:threshold])
    assert "0 representatives" in text_of(page, "h1")
    assert page.locator("#save-picks").get_attribute("aria-disabled") == "true"
    page.locator("#save-picks").press("Enter")  # and nothing is saved
    page.locator("#t-first").click()
    settled(page)
    assert "20 outliers set aside; provably" in text_of(page, "h1")


@pytest.mark.parametrize("threshold", [0, 5, 9, 20])
def test_rows_follow_the_threshold_too(visit: Any, threshold: int) -> None:
    invention = world()
    page = visit(invention.facts)
    set_range(page, "#t-range", threshold)
    expected, struck = invention.stands_for(12, threshold), invention.struck(12, threshold)
    if not any(struck):
        assert stands_for(page) == [str(number) for number in expected]
        return
    # Rows of those that are struck fall to the ones ranked before, which need not be the nearest of the others.
    found = stands_for(page)
    assert [text == "–" for text in found] == struck
    numbers = [text.removeprefix("about ") for text in found if text != "–"]
    assert all(text == "–" or text.startswith("about ") for text in found)
    assert abs(sum(int(number) for number in numbers) - sum(expected)) <= len(numbers)


def test_rows_of_a_struck_pick_do_not_pretend_to_be_exact(visit: Any) -> None:
    """There is a world in which the estimate is wrong: this is one, and it says so."""
    invention = world()
    page = visit(invention.facts)
    set_range(page, "#t-range", 9)
    found = [text.removeprefix("about ") for text in stands_for(page)]
    expected = zip(invention.stands_for(12, 9), invention.struck(12, 9), strict=True)
    assert found != ["–" if out else str(number) for number, out in expected]
    page.mouse.move(*place_of(page, invention.facts, invention.facts["ranking"][0]["row"]))
    settled(page)
    assert f"stands for about {found[0]} rows" in text_of(page, "#tip")


def test_pick_below_the_threshold_is_struck_out_and_leaves_the_selection(visit: Any) -> None:
    facts = invented()
    assert facts["ranking"][2]["bin"] == 8
    page = visit(facts)
    set_range(page, "#t-range", 9)
    row = page.locator("#picks-list tbody tr").nth(2)
    assert "struck" in row.get_attribute("class")
    assert "an outlier at this threshold" in row.inner_text()
    assert text_of(page, "h1") == "11 representatives of 600 points; 21 outliers set aside; the proof is for 12."
    name, text = saved(page, "#save-picks")
    assert name == "representatives-11.csv"
    assert facts["ranking"][2]["name"] not in text


def test_no_share_is_claimed_at_another_threshold_than_the_fits(visit: Any) -> None:
    page = visit(invented())
    for threshold, left in (
        (4, ""),
        (9, "; at this one 11 of them are left"),
        (40, "; at this one none of them are left"),
    ):
        set_range(page, "#t-range", threshold)
        assert "%" not in text_of(page, "h1")
        assert text_of(page, "#k-text").startswith("At the threshold of the fit, the first 12 express 88.0 %")
        assert text_of(page, "#k-text").endswith(f"{left}.") if left else "left" not in text_of(page, "#k-text")
        assert "%" not in page.locator("#k-range").get_attribute("aria-valuetext")
        assert page.locator("#curve").get_attribute("aria-label").startswith("Coverage at the threshold of the fit:")
    assert json.loads(saved(page, "#save-all")[1])["coverage"] is None
    page.locator("#t-first").click()
    settled(page)
    assert text_of(page, "#k-text").startswith("The first 12 express 88.0 % of the points that belong; mean")


def test_threshold_is_dragged_on_the_histogram_and_moved_by_keys(visit: Any) -> None:
    page = visit(invented(), height=1400)
    box = page.locator("#histogram").bounding_box()
    plot = box["width"] - 58
    page.mouse.move(box["x"] + 44 + 0.2 * plot, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 44 + 0.5 * plot, box["y"] + 90, steps=4)
    page.mouse.up()
    assert value_of(page, "#t-range") == "20"
    page.mouse.move(box["x"] + 44, box["y"] + 90)
    assert value_of(page, "#t-range") == "20"
    page.locator("#t-range").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert value_of(page, "#t-range") == "18"


@pytest.mark.parametrize(("chart", "control"), [("#curve", "#k-range"), ("#histogram", "#t-range")])
def test_thumb_of_a_slider_is_right_below_the_needle(visit: Any, chart: str, control: str) -> None:
    page = visit(invented())
    for value in (3, 17, 29):
        set_range(page, control, value)
        box, slider = page.locator(chart).bounding_box(), page.locator(control).bounding_box()
        low, high = (float(page.locator(control).get_attribute(edge)) for edge in ("min", "max"))
        needle = box["x"] + float(page.locator(f"{chart} .needle").get_attribute("x1"))
        thumb = slider["x"] + 14 + (slider["width"] - 28) * (value - low) / (high - low)
        assert abs(needle - thumb) < 1.0


def test_pointer_finds_points_and_says_who_stands_for_them(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    pick = facts["ranking"][10]
    page.mouse.move(*place_of(page, facts, pick["row"]))
    settled(page)
    assert text_of(page, "#tip") == f"{pick['name']} Representative 11, stands for {pick['stands_for']} rows"
    outlier = next(item for item in facts["lowest"] if item["bin"] < 8)
    page.mouse.move(*place_of(page, facts, outlier["row"]))
    settled(page)
    assert text_of(page, "#tip") == f"{outlier['name']} Outlier"
    member = pick["members"][0]
    page.mouse.move(*place_of(page, facts, member["row"]))
    settled(page)
    assert "stands for" in text_of(page, "#tip")
    page.mouse.move(5, 5)
    settled(page)
    assert page.locator("#tip").is_hidden()


def test_tip_stays_inside_the_map(visit: Any) -> None:
    facts = invented()
    page = visit(facts, height=1300)
    box = page.locator("#map").bounding_box()
    x, y = ([int(value) for value in unpacked(facts["map"][axis], "u2")] for axis in "xy")
    for row in (x.index(min(x)), x.index(max(x)), y.index(min(y)), y.index(max(y))):
        page.mouse.move(*place_of(page, facts, row))
        settled(page)
        tip = page.locator("#tip").bounding_box()
        assert box["x"] < tip["x"] < tip["x"] + tip["width"] < box["x"] + box["width"]
        assert box["y"] < tip["y"] < tip["y"] + tip["height"] < box["y"] + box["height"]


def test_click_pins_a_point_and_leads_to_its_neighbours(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    pick = facts["ranking"][7]
    page.mouse.click(*place_of(page, facts, pick["row"]))
    settled(page)
    assert page.locator("#detail h3").inner_text() == pick["name"]
    assert f"stands for {pick['stands_for']} rows" in text_of(page, "#detail")
    assert pick["reason"] in text_of(page, "#detail")
    box = page.locator("#detail").bounding_box()
    assert box["y"] + box["height"] <= 900  # in sight, wherever the page is scrolled to
    assert "lit" in page.locator("#picks-list tbody tr").nth(7).get_attribute("class")
    name = page.locator("#detail .chip").first.inner_text()
    assert name in [member["name"] for member in pick["members"]]
    page.locator("#detail .chip").first.click()
    settled(page)
    assert page.locator("#detail h3").inner_text() == name
    assert f"{pick['name']} stands for it (representative 8)" in text_of(page, "#detail")
    assert page.locator("#detail .chip").first.inner_text() == pick["name"]
    page.locator("#detail .close").click()
    settled(page)
    assert page.locator("#detail").is_hidden()


def test_names_in_lists_pin_rows_on_the_map(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#outliers-list .link").first.click()
    settled(page)
    assert page.locator("#detail h3").inner_text() == facts["lowest"][0]["name"]
    assert "Outlier" in text_of(page, "#detail")
    assert facts["lowest"][0]["reason"] in text_of(page, "#detail")
    assert page.locator("#detail .chip").count() == 0  # nobody stands for it


def test_pinned_representative_is_lit_and_the_others_fade(visit: Any) -> None:
    Image = pytest.importorskip("PIL.Image")
    facts = invented()
    page = visit(facts)
    other = facts["ranking"][0]["members"][0]["row"]
    x, y = place_of(page, facts, other)

    def colour() -> Any:
        picture = Image.open(io.BytesIO(page.screenshot(clip={"x": x - 1, "y": y - 1, "width": 3, "height": 3})))
        return np.asarray(picture.convert("RGB"), float).mean(axis=(0, 1))

    before = colour()
    assert np.abs(before - 255).max() > 50
    page.mouse.click(*place_of(page, facts, facts["ranking"][10]["row"]))
    settled(page)
    assert (colour() - before).sum() > 60  # nearer to the white of the paper


def test_keyboard_walks_along_the_ranking(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#map").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    settled(page)
    name = facts["ranking"][1]["name"]
    assert text_of(page, "#tip").startswith(f"{name} Representative 2")
    assert page.locator("#live").text_content().startswith(name)
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator("#detail h3").inner_text() == name
    assert page.locator("#live").text_content().startswith("Pinned: ")
    page.keyboard.press("Escape")
    settled(page)
    assert page.locator("#detail").is_hidden()
    page.keyboard.press("End")
    settled(page)
    assert "Representative 12" in text_of(page, "#tip")


def test_stepping_in_a_zoomed_map_brings_the_point_into_view(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#map").focus()
    for _ in range(5):
        page.keyboard.press("+")
    assert page.locator("#live").text_content().startswith("Zoomed 7.6 times")
    box = page.locator("#map").bounding_box()
    found = 0
    for j in range(12):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("+")  # about the point, which so stays in sight
        page.keyboard.press("-")
        settled(page)
        name = facts["ranking"][j]["name"]
        assert text_of(page, "#tip").startswith(name)
        tip = page.locator("#tip").bounding_box()
        left, top = tip["x"] - box["x"], tip["y"] - box["y"]
        assert 0 <= left <= box["width"] - tip["width"]
        assert 0 <= top <= box["height"] - tip["height"]
        if left < 8 or left > box["width"] - tip["width"] - 8 or top < 20:
            continue  # beside the point, not above it
        page.mouse.move(2, 2)
        page.mouse.move(tip["x"] + tip["width"] / 2, tip["y"] + tip["height"] + 15)
        settled(page)
        assert text_of(page, "#tip").startswith(name)
        found += 1
    assert found > 6
    page.keyboard.press("0")
    settled(page)
    assert page.locator("#zoom-out").get_attribute("aria-disabled") == "true"


def test_focus_stays_where_it_was(visit: Any) -> None:
    facts = invented()
    page = visit(facts)

    def focused() -> str:
        settled(page)
        return str(page.evaluate("document.activeElement.dataset.row ?? document.activeElement.id"))

    page.locator("#picks-list .link").first.focus()
    page.keyboard.press("Enter")
    settled(page)
    page.locator("#detail .chip").nth(1).focus()
    page.keyboard.press("Enter")
    assert focused() == "detail-title"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "chip"
    odd = page.locator("#outliers-list .link").nth(3)
    odd.focus()
    page.keyboard.press("Enter")
    assert focused() == str(facts["lowest"][3]["row"])
    page.locator("#more-outliers").focus()
    page.keyboard.press("Enter")
    assert focused() == "more-outliers"
    page.locator("#k-less").focus()
    for _ in range(14):
        page.keyboard.press("Enter")
    assert focused() == "k-less"
    assert page.locator("#k-less").get_attribute("aria-disabled") == "true"
    assert value_of(page, "#k-number") == "1"
    page.locator("#zoom-in").focus()
    for _ in range(12):
        page.keyboard.press("Enter")
    assert focused() == "zoom-in"
    page.locator("#let-go").focus()
    page.keyboard.press("Enter")
    assert focused() == "map"


def test_map_zooms_by_keys_and_buttons_and_comes_back(visit: Any) -> None:
    page = visit(invented())
    picture = "() => document.getElementById('map-points').toDataURL()"
    whole = page.evaluate(picture)
    assert page.locator("#zoom-reset[aria-disabled=true]").count() == 1
    page.locator("#map").focus()
    page.keyboard.press("+")
    settled(page)
    assert page.evaluate(picture) != whole
    page.keyboard.press("0")
    settled(page)
    assert page.evaluate(picture) == whole
    page.locator("#zoom-in").click()
    page.locator("#zoom-in").click()
    page.locator("#zoom-out").click()
    settled(page)
    assert page.evaluate(picture) != whole
    page.locator("#zoom-reset").click()
    settled(page)
    assert page.evaluate(picture) == whole


def test_wheel_scrolls_the_page_and_zooms_only_with_control(visit: Any) -> None:
    page = visit(invented())
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.wheel(0, 120)
    until(page, "scrollY > 0")
    assert page.locator("#zoom-reset[aria-disabled=true]").count() == 1
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    until(page, "document.getElementById('zoom-reset').ariaDisabled === 'false'")


def test_dragging_a_zoomed_map_moves_it_and_pins_nothing(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#zoom-in").click()
    settled(page)
    picture = "() => document.getElementById('map-points').toDataURL()"
    before = page.evaluate(picture)
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 360, box["y"] + 340, steps=5)
    page.mouse.up()
    settled(page)
    assert page.evaluate(picture) != before
    assert page.locator("#detail").is_hidden()


def test_fingers_tap_and_pinch(visit: Any) -> None:
    facts = invented()
    page = visit(facts, width=390, height=844, has_touch=True, is_mobile=True)
    page.locator("#map").scroll_into_view_if_needed()
    pick = facts["ranking"][10]
    page.touchscreen.tap(*place_of(page, facts, pick["row"]))
    settled(page)
    assert page.locator("#detail h3").inner_text() == pick["name"]
    page.locator("#detail .close").tap()
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    hand = page.context.new_cdp_session(page)

    def touch(kind: str, spread: float | None) -> None:
        at = [] if spread is None else [{"x": x - spread, "y": y, "id": 0}, {"x": x + spread, "y": y, "id": 1}]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    touch("touchStart", 20)
    for spread in (30, 50, 80):
        touch("touchMove", spread)
    touch("touchEnd", None)
    until(page, "document.getElementById('zoom-reset').ariaDisabled === 'false'")
    assert page.evaluate("visualViewport.scale") == 1


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_lies_on_the_data(visit: Any, width: int) -> None:
    facts = invented()
    page = visit(facts, width=width, height=1000, has_touch=True)
    page.locator("#map").scroll_into_view_if_needed()
    for pick in facts["ranking"]:
        at = list(place_of(page, facts, pick["row"]))
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", at) == "map-marks"
    buttons, data = page.locator(".zoom").bounding_box(), page.locator("#map").bounding_box()
    assert buttons["y"] + buttons["height"] <= data["y"]


def test_downloads_hold_what_is_shown(visit: Any) -> None:
    facts = hostile(invented())
    facts["columns"] = ["width, height", 'a "quoted" one', "kind"]
    page = visit(facts)
    set_range(page, "#k-range", 7)

    name, text = saved(page, "#save-picks")
    assert name == "representatives-7.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["rank", "row", "id", "stands_for", *facts["columns"]]
    assert [row[2] for row in rows] == [pick["name"] for pick in facts["ranking"][:7]]
    assert [row[4:] for row in rows] == [pick["cells"] for pick in facts["ranking"][:7]]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(int(row[3]) for row in rows) == 580

    name, text = saved(page, "#save-outliers")
    assert name == "outliers-20.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["row", "id", "effective_count", "reason", *facts["columns"]]
    lowest = facts["lowest"][:20]
    assert [[int(row[0]), row[1], float(row[2])] for row in rows] == [[i["row"], i["name"], i["count"]] for i in lowest]

    name, text = saved(page, "#save-all")
    assert name == "selection.json"
    selection = json.loads(text)
    assert selection["k"] == 7
    assert selection["n_outliers"] == 20
    assert [pick["row"] for pick in selection["representatives"]] == [pick["row"] for pick in facts["ranking"][:7]]
    assert [item["row"] for item in selection["outliers"]] == [item["row"] for item in lowest]
    assert selection["representatives"][0]["cells"] == dict(
        zip(facts["columns"], facts["ranking"][0]["cells"], strict=True)
    )


def test_outliers_that_are_only_on_the_map_are_saved_too(visit: Any) -> None:
    facts = invented()
    facts["lowest"] = facts["lowest"][:5]
    page = visit(facts)
    assert "Listed are the 5 lowest; the others are on the map, and saved." in text_of(page, "#outliers-list")
    name, text = saved(page, "#save-outliers")
    assert name == "outliers-20.csv"
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert len({row[0] for row in rows}) == 20


def test_files_have_whole_names_or_none(visit: Any) -> None:
    facts = invented()
    whole = "a name that is cut where it is shown"
    facts["lowest"] = facts["lowest"][:5]
    for item in (facts["ranking"][0], facts["lowest"][0]):
        item |= {"name": "a name…shown", "full": whole}
    facts["map"]["names"] = ["a name…shown"] * 600
    page = visit(facts)
    assert page.locator("#picks-list .link").first.inner_text() == "a name…shown"
    picks = list(csv.DictReader(io.StringIO(saved(page, "#save-picks")[1], newline="")))
    assert [line["id"] for line in picks[:2]] == [whole, facts["ranking"][1]["name"]]
    outliers = list(csv.DictReader(io.StringIO(saved(page, "#save-outliers")[1], newline="")))
    assert [line["id"] for line in outliers] == [whole, *[i["name"] for i in facts["lowest"][1:]], *[""] * 15]
    assert "copies" not in outliers[0]
    selection = json.loads(saved(page, "#save-all")[1])
    assert selection["representatives"][0]["id"] == selection["outliers"][0]["id"] == whole


def test_list_of_outliers_is_short_until_more_are_wanted(visit: Any) -> None:
    page = visit(invented())
    odd = page.locator("#outliers-list tr.odd:not(.next)")
    assert odd.count() == 12
    assert page.locator("#outliers-list tr.next").count() == 4
    page.locator("#more-outliers").click()
    settled(page)
    assert odd.count() == 20


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
        assert [line[0], line[1], line[3], line[5]] == [
            f"kind {g}",
            str(facts["groups"]["rows"][g]),
            str(picks),
            str(outliers),
        ]


def test_many_steps_of_a_slider_are_painted_once(visit: Any) -> None:
    page = visit(invented())
    painted = page.evaluate(
        """async () => {
            let times = 0;
            new MutationObserver(() => times++).observe(document.getElementById("sentence"), { childList: true });
            const slider = document.getElementById("k-range");
            for (let k = 1; k <= 30; k++) {
                slider.value = k;
                slider.dispatchEvent(new Event("input"));
            }
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            return times;
        }"""
    )
    assert painted == 1
    assert "30 representatives" in text_of(page, "h1")


def test_pictures_make_cards(visit: Any) -> None:
    facts = with_pictures(invented())
    page = visit(facts)
    assert page.locator("#picks-list li:visible").count() == 12
    assert page.locator("#picks-list img").first.get_attribute("src") == facts["ranking"][0]["picture"]
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth === 32)")
    set_range(page, "#k-range", 4)
    assert page.locator("#picks-list li:visible").count() == 4


def test_page_does_without_what_is_not_there(visit: Any) -> None:
    facts = invented()
    facts.update(groups=None, file=None, columns=[], knee=None)
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


def test_thinned_map_and_scaled_numbers_say_so(visit: Any) -> None:
    facts = invented()
    facts |= {"n": 1_000_000, "scaled": True, "n_outliers": 33_000}
    facts["map"] |= {"of": 40_000, "n_outside": 3}
    page = visit(facts)
    assert "600 of 40,000 points shown" in text_of(page, "#map-text")
    assert "3 lie farther out and are drawn at the edge" in text_of(page, "#map-text")
    assert "of 1,000,000 points; about 33,000 outliers set aside" in text_of(page, "h1")
    assert text_of(page, "#t-text").startswith("About 33,000 rows with an effective count below 2")
    assert "The 20 lowest of about 33,000 are in this page" in text_of(page, "#outliers-list")
    assert all(text.startswith("about ") for text in stands_for(page))


def test_command_is_copied_or_at_least_selected(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#settings summary").click()
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.locator("#copy").click()
    until(page, "document.getElementById('copy').textContent.startsWith('Selected')")
    assert page.evaluate("getSelection().toString()").strip() == facts["settings"]["command"]


def test_strings_that_want_to_be_more_are_text(visit: Any) -> None:
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
    assert text_of(page, "h1").endswith("provably within 2.8 % of the best 12.")
    assert page.locator("#picks-list tbody tr").count() == 12
    assert page.locator("#outliers-list tbody tr").count() == 20
    assert facts["ranking"][3]["reason"] in text_of(page, "#picks-list")
    assert page.locator("noscript").is_visible()
    for hidden in ("#map", "#k-range", "#save-picks", "#theme"):
        assert page.locator(hidden).is_hidden()


def test_cells_are_not_said_twice_where_they_are_many(visit: Any) -> None:
    facts = invented() | {"static_cells": False}
    page = visit(facts, java_script_enabled=False)
    assert page.locator("#picks-list thead th").all_inner_texts() == ["Rank", "Name", "Stands for", "Why"]
    assert page.locator("#outliers-list tbody tr:first-child > *").count() == 3
    assert visit(facts).locator("#picks-list thead th").count() == 7


@pytest.mark.parametrize("outliers", ["reject", "report", "keep"])
def test_real_fit_reads_the_same_in_the_page_as_in_the_model(visit: Any, outliers: str) -> None:
    from mosaic import MOSAIC, datasets
    from mosaic.inspection import summary
    from mosaic.inspection._card import sentence
    from mosaic.report import report_html

    X = datasets.blobs_with_gross_outliers().X
    model = MOSAIC(20, outliers=outliers).fit(np.vstack([X, X[:50]]))
    page = visit(report_html(model))
    assert text_of(page, "h1") == sentence(summary(model))
    assert stands_for(page) == [str(number) for number in np.bincount(model.labels_[model.labels_ >= 0], minlength=20)]
    set_range(page, "#k-range", 6)
    n_outliers = 8 + sum(model.is_outlier_[400:]) if outliers == "reject" else 0
    assert sum(int(number) for number in stands_for(page)) == 450 - n_outliers
