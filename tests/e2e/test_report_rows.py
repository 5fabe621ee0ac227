"""Any row of the report in a real browser: found by name, with its cells, coloured by a column, in histograms, marked."""

from __future__ import annotations

import csv
import io
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    coded,
    invented,
    place_of,
    running_browser,
    saved,
    set_range,
    settled,
    text_of,
    unpacked,
    visited,
    with_pictures,
    with_two_layouts,
    without_representatives,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def unlisted(facts: dict[str, Any]) -> int:
    """A row that is on the map only."""
    listed = {item["row"] for item in [*facts["ranking"], *facts["lowest"]]}
    beside = {member["row"] for item in facts["ranking"] for member in item["members"]}
    return next(row for row in range(600) if row not in listed | beside)


def cells_in(facts: dict[str, Any], row: int) -> list[str]:
    return [column["texts"][unpacked(column["codes"], "u2")[row]] for column in facts["map_columns"]]


def find(page: Any, text: str) -> None:
    page.locator("#search").fill(text)
    page.keyboard.press("Enter")
    settled(page)


def lines_of(page: Any, selector: str) -> list[list[str]]:
    return [line.locator("th, td").all_inner_texts() for line in page.locator(f"{selector} tbody tr").all()]


def test_search_lists_matches_and_leads_to_a_row_by_keyboard_and_pointer(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#search").fill("ITEM-012")
    options = page.locator("#matches [role=option] bdi")
    assert options.all_inner_texts() == [f"item-012{i}" for i in range(8)]
    assert "2 more" in text_of(page, "#matches")
    assert page.locator("#search").get_attribute("aria-expanded") == "true"
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert page.locator("#search").get_attribute("aria-activedescendant") == "match-2"
    assert page.locator("#matches [aria-selected=true]").inner_text().startswith("item-0122")
    page.keyboard.press("Enter")
    settled(page)
    assert text_of(page, "#detail h3") == "item-0122"
    assert page.locator("#matches").is_hidden()
    page.locator("#search").fill("37")  # a row number comes before names that contain it
    assert options.first.inner_text() == "item-0037"
    options.nth(1).click()
    settled(page)
    assert text_of(page, "#detail h3") == "item-0137"
    page.locator("#search").fill("nobody")
    assert text_of(page, "#matches") == "No row is called so."
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.locator("#matches").is_hidden()
    assert text_of(page, "#detail h3") == "item-0137"


def test_search_says_how_many_rows_the_page_has(visit: Any) -> None:
    page = visit(invented() | {"n": 1_000_000, "scaled": True})
    page.locator("#search").fill("nobody")
    assert text_of(page, "#matches") == "No row is called so. The page has 600 rows of 1,000,000."


def test_cells_of_any_point_are_beside_those_of_its_representative(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    row = unlisted(facts)
    find(page, f"item-{row:04d}")
    heads = page.locator("#detail .comparison thead th").all_inner_texts()
    rank = int(heads[2].removeprefix("Representative ")) - 1
    pick = facts["ranking"][rank]
    assert heads[:2] == ["Column", "This row"]
    assert f"Represented by {pick['name']}" in text_of(page, "#detail")
    expected = zip(facts["columns"], cells_in(facts, row), pick["cells"], strict=True)
    assert lines_of(page, "#detail .comparison") == [list(line) for line in expected]
    differs = [own != other for own, other in zip(cells_in(facts, row), pick["cells"], strict=True)]
    assert page.locator("#detail .differs").count() == sum(differs)
    find(page, pick["name"])
    assert page.locator("#detail .comparison thead th").all_inner_texts() == ["Column", "This row"]


def test_cells_that_are_not_on_the_page_are_said_to_be_missing(visit: Any) -> None:
    facts = invented()
    facts["map_columns"][1] = None
    page = visit(facts)
    row = unlisted(facts)
    find(page, f"item-{row:04d}")
    assert lines_of(page, "#detail .comparison")[1][1] == "–"
    assert "These cells are not on the page." in text_of(page, "#detail")
    assert page.locator("#column-charts figure").count() == 2


def hues(page: Any) -> np.ndarray:
    return np.array(
        page.evaluate(
            """() => [...Array.from({length: 12}, (_, i) => `hue-${i}`), "card", "warm", "dust"].map(name => {
                const probe = document.body.appendChild(document.createElement("i"));
                probe.style.color = `var(--${name})`;
                const rgb = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
                probe.remove();
                return rgb;
            })"""
        )
    )


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Ottosson's colour space, where distances are about as they are seen; 0.02 is just noticeable side by side."""
    share = rgb / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = light @ np.array([[0.4122, 0.2119, 0.0883], [0.5363, 0.6807, 0.2817], [0.0514, 0.1074, 0.6300]])
    return np.cbrt(cones) @ np.array([[0.2105, 1.9780, 0.0259], [0.7936, -2.4286, 0.7828], [-0.0041, 0.4506, -0.8087]])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_twelve_colours_are_far_apart(visit: Any, scheme: str) -> None:
    found = oklab(hues(visit(invented(), color_scheme=scheme)))
    pairs = [pair for pair in combinations(range(15), 2) if pair[0] < 12]
    assert min(np.linalg.norm(found[a] - found[b]) for a, b in pairs) > 0.14


def test_map_is_coloured_by_any_column_of_few_values(visit: Any) -> None:
    facts = invented()
    size = [str(row % 13) for row in range(600)]
    facts["columns"], facts["map_columns"] = (
        ["width", "height", "size"],
        [*facts["map_columns"][:2], coded(sorted(size, key=int))],
    )
    page = visit(facts)
    menu = page.locator("#colour")
    assert menu.locator("option").all_inner_texts() == ["one colour", "kind", "size"]
    assert menu.evaluate("menu => menu.selectedOptions[0].text") == "kind"
    assert page.locator("#legend").inner_text().count("kind ") == 3
    picture = "() => document.getElementById('map-points').toDataURL()"
    by_kind = page.evaluate(picture)
    menu.select_option(label="size")
    settled(page)
    legend = page.locator("#legend li").all_inner_texts()
    assert legend[2:] == [*(str(i) for i in range(12)), "other values"]
    colours = page.locator("#legend .sample.dot").evaluate_all("dots => dots.map(dot => getComputedStyle(dot).backgroundColor)")
    assert len(set(colours)) == 13
    assert page.evaluate(picture) != by_kind
    menu.select_option(label="one colour")
    settled(page)
    assert "other rows" in text_of(page, "#legend")


def test_histograms_have_all_rows_and_mark_picks_outliers_and_the_pinned_row(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#columns").scroll_into_view_if_needed()
    settled(page)
    assert page.locator("#column-charts figcaption bdi").all_inner_texts() == facts["columns"]

    def strokes(kind: str) -> int:
        path = page.locator("#column-charts figure").first.locator(f"path[class='{kind}']").get_attribute("d")
        return (path or "").count("M")

    picked = {f"{float(pick['cells'][0]):.2f}" for pick in facts["ranking"][:12]}
    assert len(picked) - 2 <= strokes("rug") <= len(picked)  # of near values the marks may be one
    assert 15 <= strokes("rug warm") <= 20
    assert strokes("pinned") == 0
    page.locator("#outliers-list .link").first.click()
    page.locator("#columns").scroll_into_view_if_needed()
    settled(page)
    assert strokes("pinned") == 1
    set_range(page, "#k-range", 3)
    set_range(page, "#t-range", 0)
    page.locator("#columns").scroll_into_view_if_needed()
    settled(page)
    assert strokes("rug") == 3
    assert strokes("rug warm") == 0
    kinds = [int(text) for text in page.locator("#column-charts figure").nth(2).locator(".value").all_text_contents()]
    labels = page.locator("#column-charts figure").nth(2).locator("text:not(.value)").all_text_contents()
    chosen = [pick["cells"][2] for pick in facts["ranking"][:3]]
    assert dict(zip(labels, kinds, strict=True)) == {f"kind {g}": chosen.count(f"kind {g}") for g in range(3)}


def test_numbers_dates_and_currency_have_histograms_and_long_texts_none(visit: Any) -> None:
    facts = invented()
    columns = {
        "age": [str(row % 80) for row in range(600)],
        "price": [f"${1000 + row:,}.50" for row in range(600)],
        "day": [f"2024-0{1 + row % 9}-{1 + row % 28:02d}" for row in range(600)],
        "tag": [f"{1 + row % 28}.{1 + row % 12}.2023" for row in range(600)],
        "note": [f"words {row}" for row in range(600)],
        "same": ["1"] * 600,
        "gaps": ["" if row % 4 == 0 else str(row) for row in range(600)],
    }
    facts |= {"columns": list(columns), "map_columns": [coded(texts) for texts in columns.values()], "n_compared": 7}
    facts["places"] = list(range(7))
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["cells"] = [texts[item["row"]] for texts in columns.values()]
    page = visit(facts)
    page.locator("#columns").scroll_into_view_if_needed()
    settled(page)
    assert page.locator("#column-charts figcaption bdi").all_inner_texts() == ["age", "price", "day", "tag", "gaps"]
    ends = [figure.locator("text").all_text_contents() for figure in page.locator("#column-charts figure").all()]
    assert ends[0] == ["0", "79"]
    assert ends[1][0].startswith("1,0")
    assert ends[2] == ["2024-01-01", "2024-09-28"]
    assert ends[3] == ["2023-01-01", "2023-12-28"]
    assert "25.0 % missing" in text_of(page, "#column-charts figure:last-child").replace("\u00a0", " ")


def test_marks_are_kept_by_the_browser_for_this_page_and_saved(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    assert page.locator("#marked").is_hidden()
    odd = facts["lowest"][0]
    page.locator("#outliers-list .mark-wrong").first.click()
    row = unlisted(facts)
    find(page, f"item-{row:04d}")
    page.locator("#detail .mark-fine").click()
    page.locator("#map").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("f")
    settled(page)
    pick = facts["ranking"][0]
    assert page.locator("#marked-tally").inner_text() == "3"
    page.reload()
    page.locator("html.js").wait_for(state="attached")
    settled(page)
    assert page.locator("#marked-list .chip bdi").all_inner_texts() == [odd["name"], f"item-{row:04d}", pick["name"]]
    assert page.locator("#outliers-list .mark-wrong").first.get_attribute("aria-pressed") == "true"
    name, text = saved(page, "#save-marks")
    assert name == "marks.csv"
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(line["row"], line["id"], line["mark"], line["status"]) for line in lines] == [
        (str(odd["row"]), odd["name"], "wrong", "outlier"),
        (str(row), f"item-{row:04d}", "fine", ""),
        (str(pick["row"]), pick["name"], "fine", "representative"),
    ]
    assert lines[0]["reason"] == odd["reason"]
    assert [lines[1][column] for column in facts["columns"]] == cells_in(facts, row)
    page.locator("#outliers-list .mark-wrong").first.click()  # the same mark again takes it away
    settled(page)
    assert page.locator("#marked-tally").inner_text() == "2"
    other = page.context.new_page()
    other.goto(page.url)
    other.locator("html.js").wait_for(state="attached")
    settled(other)
    assert other.locator("#marked-tally").inner_text() == "2"
    page.locator("#remove-marks").click()
    settled(page)
    assert page.locator("#marked").is_hidden()
    assert page.evaluate("Object.keys(localStorage).filter(key => JSON.parse(localStorage[key]).length).length") == 0


def test_another_fit_has_marks_of_its_own(visit: Any, tmp_path: Any) -> None:
    from mosaic.show.page import page_of

    page = visit(invented())
    page.locator("#outliers-list .mark-fine").first.click()
    settled(page)
    (tmp_path / "other.html").write_text(page_of(invented(seed=1)), encoding="utf-8")
    page.goto((tmp_path / "other.html").as_uri())
    page.locator("html.js").wait_for(state="attached")
    settled(page)
    assert page.locator("#marked").is_hidden()
    visit.heard[:] = [text for text in visit.heard if "other.html" not in text]


def test_marks_work_where_the_browser_keeps_nothing(visit: Any) -> None:
    page = visit(invented())
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    page.locator("#outliers-list .mark-fine").first.click()
    settled(page)
    assert "does not keep them" in text_of(page, "#marked-text")
    assert page.locator("#marked-tally").inner_text() == "1"


def test_columns_beyond_the_edge_of_a_phone_are_reached_within_the_table(visit: Any) -> None:
    facts = invented()
    facts |= {
        "columns": [f"column {c}" for c in range(12)],
        "n_compared": 12,
        "places": list(range(12)),
        "map_columns": [None] * 12,
    }
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["cells"] = [f"value {c}" for c in range(12)]
    page = visit(facts, width=390, height=844, has_touch=True, is_mobile=True)
    for part in ("#picks-list", "#outliers-list"):
        box = page.locator(f"{part} .scroll")
        assert box.evaluate("box => box.scrollWidth > box.clientWidth + 200")
        box.evaluate("box => (box.scrollLeft = box.scrollWidth)")
        settled(page)
        frame = box.bounding_box()
        last = page.locator(f"{part} tbody tr").first.locator("td").last.bounding_box()
        assert frame["x"] <= last["x"] < last["x"] + last["width"] <= frame["x"] + frame["width"] + 1
        name = page.locator(f"{part} tbody th").first.bounding_box()
        assert abs(name["x"] - frame["x"]) < 2  # the name stays in sight
        assert name["width"] < 170
    assert page.evaluate("[scrollX, document.documentElement.scrollWidth]") == [0, 390]


@pytest.mark.parametrize("facts", [invented, lambda: with_two_layouts(invented())])
def test_map_fills_its_frame_on_a_desktop(visit: Any, facts: Any) -> None:
    page = visit(facts(), width=1280)
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
    assert width > 0.85
    assert height > 0.85
    frame, card = page.locator("#map").bounding_box(), page.locator("#map-section").bounding_box()
    assert frame["width"] > 0.9 * card["width"]
