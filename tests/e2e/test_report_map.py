"""The map of the report in a real browser: pointer, fingers and keys."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from e2e.pages import invented, place_of, running_browser, settled, stands_for, text_of, unpacked, until, value_of, visited  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_pointer_shows_points_and_their_representatives(visit: Any) -> None:
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
    listed = {item["row"] for item in [*facts["ranking"], *facts["lowest"]]}
    marks = np.array([place_of(page, facts, ranked["row"]) for ranked in facts["ranking"]])
    places = {row: np.array(place_of(page, facts, row)) for row in range(600) if row not in listed}
    row = max(places, key=lambda row: np.linalg.norm(marks - places[row], axis=1).min())
    page.mouse.move(*places[row])
    settled(page)
    assert text_of(page, "#tip").startswith(f"item-{row:04d} Represented by item-")
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
    assert box["y"] + box["height"] <= 1400  # in sight
    assert box["x"] >= page.locator("#map").bounding_box()["x"] + page.locator("#map").bounding_box()["width"]  # beside the map
    assert "lit" in page.locator("#picks-list tbody tr").nth(7).get_attribute("class")
    name = page.locator("#detail .chip").first.inner_text()
    assert name in [member["name"] for member in pick["members"]]
    page.locator("#detail .chip").first.click()
    settled(page)
    assert page.locator("#detail h3").inner_text() == name
    assert f"Represented by {pick['name']} (representative 8)" in text_of(page, "#detail")
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
    assert page.locator("#detail .chip").count() == 0  # it has no representative


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
