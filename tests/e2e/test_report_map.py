"""The map of the report in a real browser: pointer, fingers and keys, layouts and colours."""

import numpy as np
import pytest

from e2e.pages import coded, invented, with_two_layouts, world

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_pointer_shows_points_and_their_representatives(page):
    facts = page.facts
    pick = facts["ranking"][10]
    page.point(pick["row"])
    assert page.text("#tip") == f"{pick['name']} Representative 11, stands for {pick['stands_for']} rows"
    outlier = next(item for item in facts["lowest"] if item["bin"] < 8)
    page.point(outlier["row"])
    assert page.text("#tip") == f"{outlier['name']} Outlier"
    listed = {item["row"] for item in [*facts["ranking"], *facts["lowest"]]}
    marks = np.array([page.place_of(ranked["row"]) for ranked in facts["ranking"]])
    others = [row for row in range(600) if row not in listed]
    page.show("#map")
    row = max(others, key=lambda row: np.linalg.norm(marks - page.place_of(row), axis=1).min())
    page.point(row)
    assert page.text("#tip").startswith(f"item-{row:04d} Represented by item-")
    page.point()
    assert page.hides("#tip")


def test_click_pins_a_point_and_leads_to_its_neighbours(page):
    pick = page.facts["ranking"][7]
    page.show("#map")
    page.mouse.click(*page.place_of(pick["row"]))
    page.settle()
    detail = page.text("#detail")
    assert page.text("#detail h3") == pick["name"]
    assert f"stands for {pick['stands_for']} rows" in detail
    assert pick["reason"] in detail
    box, frame = page.box("#detail"), page.box("#map")
    assert box["y"] + box["height"] <= 1400  # in sight
    assert box["x"] >= frame["x"] + frame["width"]  # beside the map
    assert "lit" in page.attribute("#picks-list tbody tr", "class", 7)
    name = page.texts("#detail .chip")[0]
    assert name in [member["name"] for member in pick["members"]]
    page.click("#detail .chip")
    assert page.text("#detail h3") == name
    assert f"Represented by {pick['name']} (representative 8)" in page.text("#detail")
    assert page.texts("#detail .chip")[0] == pick["name"]
    page.click("#detail .close")
    assert page.hides("#detail")
    odd = page.facts["lowest"][0]
    page.click("#outliers-list .link")
    assert page.text("#detail h3") == odd["name"]
    assert "Outlier" in page.text("#detail")
    assert odd["reason"] in page.text("#detail")
    assert page.count("#detail .chip") == 0  # it has no representative


def test_keyboard_walks_along_the_ranking(page):
    page.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", at="#map")
    name = page.facts["ranking"][1]["name"]
    assert page.text("#tip").startswith(f"{name} Representative 2")
    assert page.locator("#live").text_content().startswith(name)
    page.press("Enter")
    assert page.text("#detail h3") == name
    assert page.locator("#live").text_content().startswith("Pinned: ")
    page.press("Escape")
    assert page.hides("#detail")
    page.press("End")
    assert "Representative 12" in page.text("#tip")


def test_map_zooms_by_keys_and_buttons_and_comes_back(page):
    whole = page.pixels()
    assert page.count("#zoom-reset[aria-disabled=true]") == 1
    page.press("+", at="#map")
    assert page.pixels() != whole
    page.press("0")
    assert page.pixels() == whole
    for button in ("#zoom-in", "#zoom-in", "#zoom-out"):
        page.click(button)
    assert page.pixels() != whole
    page.click("#zoom-reset")
    assert page.pixels() == whole


def test_fingers_tap_and_pinch(visit):
    page = visit(invented(), width=390, height=844, has_touch=True, is_mobile=True)
    page.show("#map")
    pick = page.facts["ranking"][10]
    page.touchscreen.tap(*page.place_of(pick["row"]))
    page.settle()
    assert page.text("#detail h3") == pick["name"]
    page.locator("#detail .close").tap()
    box = page.box("#map")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    hand = page.context.new_cdp_session(page.page)

    def touch(kind, spread):
        at = [] if spread is None else [{"x": x - spread, "y": y, "id": 0}, {"x": x + spread, "y": y, "id": 1}]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    touch("touchStart", 20)
    for spread in (30, 50, 80):
        touch("touchMove", spread)
    touch("touchEnd", None)
    page.until("document.getElementById('zoom-reset').ariaDisabled === 'false'")
    assert page.evaluate("visualViewport.scale") == 1


def test_map_is_laid_out_by_neighbours_or_along_axes(visit):
    page = visit(with_two_layouts(invented()))
    row = page.facts["ranking"][3]["row"]
    assert "look alike lie together" in page.text("#map-text")
    middle = page.box("#map")["x"] + page.box("#map")["width"] / 2

    def tip_at():
        page.press(*["ArrowRight"] * 4, at="#map")
        assert page.text("#tip").startswith(f"item-{row:04d}")
        box = page.box("#tip")
        page.press("Escape")
        return box["x"] + box["width"] / 2 - middle

    left = tip_at()
    page.click("[data-view='1']")
    assert [page.attribute(f"[data-view='{view}']", "aria-pressed") for view in (0, 1)] == ["false", "true"]
    assert "principal axis 1, principal axis 2" in page.text("#map-text")
    assert left * tip_at() < -400  # the axes are mirrored
    assert visit(invented()).count("[data-view]") == 0


def test_colour_means_rows_of_the_representative_under_the_pointer_or_pinned_and_others_fade(visit):
    invention = world()
    facts, nearest, belongs = invention.facts, invention.distance[:, :12].argmin(axis=1), invention.bins >= 8
    facts["groups"] = None
    page = visit(facts)
    page.locator("#colour").select_option(label="one colour")
    page.show("#map")
    member, other = (
        int(np.where((nearest == j) & belongs, invention.distance[:, j], -1.0).argmax()) for j in (10, 0)
    )  # those that are farthest from their representatives

    def coloured(row):
        red, _, blue = page.colour_at(page.place_of(row))
        return bool(blue - red > 60)

    before = page.colour_at(page.place_of(other))
    assert np.abs(before - 255).max() > 50
    assert (coloured(member), coloured(other)) == (False, False)
    page.point(facts["ranking"][10]["row"])
    assert (coloured(member), coloured(other)) == (True, False)
    page.point()
    assert not coloured(member)
    page.locator("#picks-list tr.pick").nth(10).dispatch_event("pointerenter")  # its line in the list does the same
    page.settle()
    assert coloured(member)
    page.click("#picks-list .link", 10)
    page.point()
    page.show("#map")
    assert coloured(member)
    assert (page.colour_at(page.place_of(other)) - before).sum() > 60  # nearer to the white of the paper


def test_map_is_coloured_by_any_column_of_few_values(visit):
    facts = invented()
    size = sorted((str(row % 13) for row in range(600)), key=int)
    facts |= {"columns": ["width", "height", "size"], "map_columns": [*facts["map_columns"][:2], coded(size)]}
    page = visit(facts)
    menu = page.locator("#colour")
    assert page.texts("#colour option") == ["one colour", "kind", "size"]
    assert menu.evaluate("menu => menu.selectedOptions[0].text") == "kind"
    assert page.text("#legend").count("kind ") == 3
    by_kind = page.pixels()
    menu.select_option(label="size")
    page.settle()
    assert page.texts("#legend li")[2:] == [*(str(i) for i in range(12)), "other values"]
    colours = page.locator("#legend .sample.dot").evaluate_all("dots => dots.map(dot => getComputedStyle(dot).backgroundColor)")
    assert len(set(colours)) == 13
    assert page.pixels() != by_kind
    menu.select_option(label="one colour")
    page.settle()
    assert "other rows" in page.text("#legend")


@pytest.mark.parametrize("facts", [invented, lambda: with_two_layouts(invented())])
def test_map_fills_its_frame_on_a_desktop(visit, facts):
    page = visit(facts())
    width, height = page.evaluate(
        """() => {
            const canvas = document.getElementById("map-points");
            const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let [x0, x1, y0, y1] = [width, 0, height, 0];
            for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
                const at = 4 * (y * width + x);
                if (data[at] + data[at + 1] + data[at + 2] >= 700) continue;
                [x0, x1, y0, y1] = [Math.min(x0, x), Math.max(x1, x), Math.min(y0, y), Math.max(y1, y)];
            }
            return [(x1 - x0) / width, (y1 - y0) / height];
        }"""
    )
    assert min(width, height) > 0.85
    assert page.box("#map")["width"] > 0.9 * page.box("#map-section")["width"]
