"""The report in a real browser: what hands do to it and what it answers."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    HOSTILE,
    doubled,
    hostile,
    invented,
    place_of,
    running_browser,
    set_range,
    settled,
    text_of,
    thinned,
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
    assert stands_for(page) == [str(2 * number) for number in invention.stands_for(12, 8)]
    set_range(page, "#t-range", 0)
    assert stands_for(page) == [str(2 * number) for number in invention.stands_for(12, 0)]


def test_outliers_that_are_only_reported_stay_with_their_representatives(visit: Any) -> None:
    facts = invented() | {"rejects": False}
    page = visit(facts)
    assert "20 outliers reported" in text_of(page, "h1")
    set_range(page, "#t-range", 9)
    assert page.locator("#picks-list .struck").count() == 0
    assert sum(int(number) for number in stands_for(page)) == 600
    assert page.locator("#outliers-tally").inner_text() == "21"


def test_number_field_buttons_and_curve_move_the_same_k(visit: Any) -> None:
    page = visit(invented())
    page.locator("#k-number").fill("9")
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
    page.locator("#k-number").fill("9999")
    page.locator("#k-number").blur()
    assert value_of(page, "#k-number") == "30"


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
    assert page.locator("#save-picks").is_disabled()
    page.locator("#t-first").click()
    settled(page)
    assert "20 outliers set aside; provably" in text_of(page, "h1")


@pytest.mark.parametrize("threshold", [0, 5, 9, 20])
def test_rows_follow_the_threshold_too(visit: Any, threshold: int) -> None:
    invention = world()
    page = visit(invention.facts)
    set_range(page, "#t-range", threshold)
    expected = invention.stands_for(12, threshold)
    struck = [8 <= pick["bin"] < threshold for pick in invention.facts["ranking"][:12]]
    assert stands_for(page) == ["–" if out else str(number) for number, out in zip(expected, struck, strict=True)]


def test_pick_below_the_threshold_is_struck_out_and_leaves_the_selection(visit: Any) -> None:
    facts = invented()
    assert facts["ranking"][2]["bin"] == 8
    page = visit(facts)
    set_range(page, "#t-range", 9)
    row = page.locator("#picks-list tbody tr").nth(2)
    assert "struck" in row.get_attribute("class")
    assert "an outlier at this threshold" in row.inner_text()
    assert "11 representatives stand for at most 88.0 %" in text_of(page, "h1")
    with page.expect_download() as saved:
        page.locator("#save-picks").click()
    assert saved.value.suggested_filename == "representatives-11.csv"
    assert facts["ranking"][2]["name"] not in saved.value.path().read_text("utf-8")


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


def test_map_zooms_by_keys_and_buttons_and_comes_back(visit: Any) -> None:
    page = visit(invented())
    picture = "() => document.getElementById('map-points').toDataURL()"
    whole = page.evaluate(picture)
    assert page.locator("#zoom-reset").is_disabled()
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
    assert page.locator("#zoom-reset").is_disabled()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    until(page, "!document.getElementById('zoom-reset').disabled")


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
    until(page, "!document.getElementById('zoom-reset').disabled")
    assert page.evaluate("visualViewport.scale") == 1


def test_downloads_hold_what_is_shown(visit: Any) -> None:
    facts = hostile(invented())
    facts["columns"] = ["width, height", 'a "quoted" one', "kind"]
    page = visit(facts)
    set_range(page, "#k-range", 7)

    def saved(button: str) -> tuple[str, str]:
        with page.expect_download() as download:
            page.locator(button).click()
        return download.value.suggested_filename, download.value.path().read_bytes().decode("utf-8")

    name, text = saved("#save-picks")
    assert name == "representatives-7.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["rank", "row", "id", "stands_for", *facts["columns"]]
    assert [row[2] for row in rows] == [pick["name"] for pick in facts["ranking"][:7]]
    assert [row[4:] for row in rows] == [pick["cells"] for pick in facts["ranking"][:7]]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(int(row[3]) for row in rows) == 580

    name, text = saved("#save-outliers")
    assert name == "outliers-20.csv"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["row", "id", "effective_count", "reason", *facts["columns"]]
    lowest = facts["lowest"][:20]
    assert [[int(row[0]), row[1], float(row[2])] for row in rows] == [[i["row"], i["name"], i["count"]] for i in lowest]

    name, text = saved("#save-all")
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
    with page.expect_download() as saved:
        page.locator("#save-outliers").click()
    _, *rows = csv.reader(io.StringIO(saved.value.path().read_text("utf-8"), newline=""))
    assert len({row[0] for row in rows}) == 20


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
    facts.update(map=None, groups=None, file=None, columns=[], knee=None)
    facts["certificate"] |= {"excess": None}
    facts["settings"] |= {"command": None, "notes": []}
    for item in [*facts["ranking"], *facts["lowest"]]:
        item.update(cells=[], name=None, group=-1)
    page = visit(facts)
    set_range(page, "#k-range", 3)
    set_range(page, "#t-range", 9)
    assert text_of(page, "h1") == "2 representatives stand for at most 46.3 % of 600 points; 21 outliers set aside."
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


def test_real_fit_reads_the_same_in_the_page_as_in_the_model(visit: Any) -> None:
    from mosaic import MOSAIC, datasets
    from mosaic.report import report_html

    model = MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X)
    page = visit(report_html(model))
    assert "20 representatives stand for" in text_of(page, "h1")
    assert "8 outliers set aside" in text_of(page, "h1")
    assert stands_for(page) == [str(number) for number in np.bincount(model.labels_[model.labels_ >= 0], minlength=20)]
    set_range(page, "#k-range", 6)
    assert sum(int(number) for number in stands_for(page)) == 392
