"""Lists of a table in the report in a real browser: outliers first, by cause; order, search, groups; marks and their draw."""

import numpy as np
import pytest

from e2e.pages import invented, unpacked, with_causes, with_columns, with_pictures
from mosaic import MOSAICOutlierDetector, datasets
from mosaic.show import report_html

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture
def table(visit):
    return visit(with_causes(invented()), width=1440, height=900)


def names(page, part="#outliers-list"):
    return page.texts(f"{part} tbody tr:not(.cause, .next) .link")


def in_frame(page, cell, frame):
    inner, outer = cell.bounding_box(), page.box(frame)
    return outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


def test_outliers_of_a_table_come_first_where_there_are_some_and_those_of_pictures_do_not(visit, table):
    assert table.attribute("main > section", "id") == "outliers"
    worst = table.locator("#outliers-list tr.odd").first
    assert table.facts["lowest"][0]["name"] in worst.inner_text()
    assert worst.bounding_box()["y"] < 450  # without scrolling
    assert visit(with_pictures(invented())).attribute("main > section", "id") == "picks"
    facts = invented()
    facts["bins"]["threshold"] = 0
    assert visit(facts | {"outliers": "keep", "n_outliers": 0}).attribute("main > section", "id") == "picks"


def test_outliers_are_listed_by_cause_the_cause_of_the_oddest_first(table):
    facts = table.facts
    assert table.texts("#outliers-list .cause") == ["1 × height", "9 × spelling of kind", "10 × width with height"]
    assert table.text("#causes") == "10 × width with height, 9 × spelling of kind, 1 × height."
    listed = [item["name"] for item in facts["lowest"]]
    assert names(table) == [listed[0], *listed[1:9], *listed[10:18]]  # of 24 lines each cause has eight
    table.click("#outliers-list .cause button")
    assert names(table) == [*listed[:10], *listed[10:18]]
    assert table.attribute("#outliers-list .cause button", "aria-expanded") == "true"
    assert table.evaluate("document.activeElement.dataset.cause") == "spelling of kind"
    table.click("#outliers-list .cause button")
    assert names(table) == [listed[0], *listed[1:9], *listed[10:18]]


@pytest.mark.parametrize("width", [700, 1440])
def test_a_row_is_one_line_and_its_odd_cell_stays_in_sight_where_the_table_is_wider(visit, width):
    facts = with_columns(invented(), {f"column {c}": [f"a long value {c} of many words"] * 600 for c in range(12)})
    for item in facts["lowest"]:
        item["faults"], item["reason"] = [11], "a long reason that is longer than its cell, and goes on for a while"
    page = visit(facts | {"map_columns": [None] * 12}, width=width)
    heights = page.evaluate("() => [...document.querySelectorAll('.lines tbody tr')].map(row => row.offsetHeight)")
    assert max(heights) <= 44
    box = page.locator("#outliers-list .scroll")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth + 200")
    for left in (0, 200, 5000):
        box.evaluate("(box, left) => (box.scrollLeft = left)", left)
        page.settle()
        row = page.locator("#outliers-list tr.odd").first
        assert row.locator(".odd-cell").inner_text() == "column 11a long value 11 of many words"
        assert in_frame(page, row.locator("th"), "#outliers-list .scroll")
        assert in_frame(page, row.locator(".odd-cell"), "#outliers-list .scroll")
        name, odd = row.locator("th").bounding_box(), row.locator(".odd-cell").bounding_box()
        assert odd["x"] >= name["x"] + name["width"] - 1
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_lists_are_sorted_by_any_column_up_down_and_as_at_first(table):
    before = names(table, "#picks-list")
    width = {pick["name"]: float(pick["cells"][0]) for pick in table.facts["ranking"]}
    head = table.locator("#picks-list thead th").nth(4)
    for order in ("ascending", "descending", None):
        head.locator("button").click()
        table.settle()
        assert head.get_attribute("aria-sort") == order
        expected = sorted(before, key=width.get, reverse=order == "descending") if order else before
        assert names(table, "#picks-list") == expected
    table.set(k=5)
    table.click("#picks-list .sort", 1)
    assert names(table, "#picks-list") == sorted(before[:5])
    table.click("#outliers-list .sort", 0)  # an order is one list, without causes
    assert names(table) == sorted(item["name"] for item in table.facts["lowest"][:20])
    assert table.count("#outliers-list .cause") == 0


def test_what_is_missing_comes_last_and_numbers_before_words(visit):
    cells = ["", "10", "9", "b", "$1,000", "a"]
    page = visit(with_columns(invented(), {"x": [cells[row % 6] for row in range(600)]}))
    page.locator("#picks-list thead th").nth(4).locator("button").click()
    page.settle()
    shown = page.texts("#picks-list tbody td:nth-child(5)")
    assert shown == sorted(shown, key=["9", "10", "$1,000", "a", "b", ""].index)
    page.locator("#picks-list thead th").nth(4).locator("button").click()
    page.settle()
    shown = page.texts("#picks-list tbody td:nth-child(5)")
    assert shown == sorted(shown, key=["b", "a", "$1,000", "10", "9", ""].index)


def test_lists_are_searched_by_any_cell_and_filtered_by_group(table):
    facts = table.facts
    odd, picks = facts["lowest"][:20], facts["ranking"][:12]
    table.locator("#outliers input[type=search]").fill(odd[7]["cells"][1])
    table.settle()
    found = [item["name"] for item in odd if any(odd[7]["cells"][1] in cell for cell in [*item["cells"], item["reason"]])]
    assert sorted(names(table)) == sorted(found)
    table.locator("#outliers input[type=search]").fill("SPELLING")
    table.settle()
    assert names(table) == [item["name"] for item in odd[1:10]]  # and all of them
    table.locator("#outliers input[type=search]").fill("nothing has this")
    table.settle()
    assert "No outlier has this." in table.text("#outliers-list")
    assert table.hides("#unfold")
    table.locator("#outliers input[type=search]").fill("")
    for part, items in (("#picks", picks), ("#outliers", odd)):
        table.locator(f"{part} select").select_option(label="kind 1")
        table.settle()
        assert sorted(names(table, f"{part}-list")) == sorted(item["name"] for item in items if item["group"] == 1)


def test_a_list_is_one_tab_stop_and_arrow_keys_step_to_names_and_marks(table):
    def stops(part):
        return table.locator(f"{part} tbody button").evaluate_all("all => all.filter(e => e.offsetParent && !e.tabIndex).length")

    assert (stops("#picks-list"), stops("#outliers-list")) == (1, 1)
    first, second = names(table)[1:3]
    table.locator("#outliers-list tr.odd .link").nth(1).focus()
    held = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    for key, expected in (
        ("ArrowRight", f"Mark {first} as fine"),
        ("ArrowRight", f"Mark {first} as wrong"),
        ("ArrowRight", f"Mark {first} as wrong"),
        ("ArrowDown", f"Mark {second} as wrong"),
        ("ArrowLeft", f"Mark {second} as fine"),
        ("ArrowLeft", second),
        ("ArrowUp", first),
        ("ArrowUp", "9 × spelling of kind"),
    ):
        table.press(key)
        assert table.evaluate(held) == expected
    assert stops("#outliers-list") == 1
    table.press("Tab", "Shift+Tab")
    assert table.evaluate(held) == "9 × spelling of kind"


def test_on_a_phone_rows_are_cards_of_name_odd_cell_and_reason(visit):
    page = visit(with_causes(invented()), width=390, height=844, has_touch=True, is_mobile=True)
    card, item = page.locator("#outliers-list tr.odd").first, page.facts["lowest"][0]
    told = [item["name"], "height", item["cells"][1], item["reason"]]
    places = [" ".join(card.inner_text().split()).index(text) for text in told]
    assert places == sorted(places)
    assert page.hides("#outliers-list thead")
    for part in ("#outliers-list", "#picks-list"):
        assert page.locator(f"{part} .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    small = page.evaluate(
        "() => [...document.querySelectorAll('.lines .mark')].filter(e => e.offsetWidth < 40 || e.offsetHeight < 40).length"
    )
    assert small == 0
    page.locator("#outliers-list .link").first.tap()
    page.settle()
    assert page.text("#detail h3") == item["name"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_map_is_coloured_at_first_by_the_column_that_it_says_most_of(visit):
    facts = invented() | {"groups": None}
    noise = np.random.default_rng(5).choice(["a", "b"], 600).tolist()
    kinds = [column["texts"][code] for column in facts["map_columns"][2:] for code in unpacked(column["codes"], "u2")]

    def colour(columns):
        page = visit(with_columns(dict(facts), columns))
        return page.locator("#colour").evaluate("menu => menu.selectedOptions[0].text")

    assert colour({"noise": noise, "kind": kinds}) == "kind"
    assert colour({"noise": noise}) == "one colour"
    named = visit(with_columns(invented() | {"n": 600}, {"noise": noise, "crowd": kinds}))
    assert named.locator("#colour").evaluate("menu => menu.selectedOptions[0].text") == "kind"  # the groups that were given


def test_a_pin_draws_lines_to_the_listed_rows_only(visit):
    page = visit(invented())
    page.evaluate(
        """() => {
            window.lines = 0;
            const { lineTo } = CanvasRenderingContext2D.prototype;
            CanvasRenderingContext2D.prototype.lineTo = function (...to) { window.lines++; return lineTo.apply(this, to); };
        }"""
    )
    page.locator("#picks-list .link").first.dispatch_event("click")
    page.settle()
    lines = page.evaluate("lines")
    assert 0 < lines == page.count("#detail .company .chip") <= 10


def test_thirty_at_random_are_the_same_every_time_and_marks_say_who_was_drawn(visit):
    facts = invented()
    threshold = int(np.searchsorted(np.cumsum(facts["bins"]["rows"]), 45)) + 1
    page = visit(facts)
    page.set(t=threshold)
    n = int(page.text("#t-count"))
    assert n >= 45
    page.click("#draw")
    drawn = names(page)
    assert len(set(drawn)) == 30
    assert drawn != [item["name"] for item in facts["lowest"][:30]]
    page.click("#draw")
    page.open()
    page.set(t=threshold)
    page.click("#draw")
    assert names(page) == drawn
    page.click("#outliers-list tr.odd .mark-wrong")
    page.click("#draw")
    page.click("#more-outliers")
    other = next(name for name in names(page) if name not in drawn)
    page.locator("#outliers-list tr.odd", has_text=other).locator(".mark-fine").click()
    _, lines = page.saved_rows("#save-marks")
    assert [(line["id"], line["mark"], line["drawn"]) for line in lines] == [
        (drawn[0], "wrong", f"30 of {n}"),
        (other, "fine", ""),
    ]
    assert [line["status"] for line in lines] == ["outlier", "outlier"]


def test_marks_that_a_page_saves_are_read_by_the_next_run(visit, tmp_path):
    pd = pytest.importorskip("pandas")
    X = datasets.blobs_with_gross_outliers().X
    frame = pd.DataFrame({"id": [f"C{row}" for row in range(len(X))], "x": X[:, 0], "y": X[:, 1]})
    frame["status"] = ["open", "done"] * 200
    detector = MOSAICOutlierDetector().fit(frame)
    page = visit(report_html(detector, columns=frame))
    shown = names(page)
    page.click("#outliers-list .mark-fine")
    for place in range(1, len(shown)):
        page.click("#outliers-list tr.odd:not(.next) .mark-wrong", place)
    (tmp_path / "marks.csv").write_text(page.saved("#save-marks")[1])
    again = MOSAICOutlierDetector().fit(frame, marks=tmp_path / "marks.csv")
    assert set(frame["id"][again.is_outlier_]) == set(shown[1:])
    assert "All 8 outliers of the list are marked, 7 as wrong." in again.explain()
    page = visit(report_html(again, columns=frame))
    assert sorted(names(page)) == sorted(shown[1:])
    assert "1 row marked as fine or to be included" in page.text("#t-text")
