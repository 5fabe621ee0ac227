"""What the report looks like in a real browser: width by width, light and dark, on paper, and to those who do not see it."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import pytest

from e2e.pages import hostile, invented, running_browser, set_range, settled, visited, with_pictures  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

WIDTHS = (390, 1280, 1920)
REGIONS = {
    "sentence": "#sentence",
    "map": "#map",
    "slider": "#k-range",
    "curve": "#curve",
    "histogram": "#histogram",
    "groups": "#groups",
    "picks": "#picks",
    "outliers": "#outliers",
    "settings": "#settings",
}
TEXTS = (
    "#sentence", "#sentence strong", ".words", ".brand", ".source", "#theme", "h2", ".tally", "#map-text", "#map-keys",
    ".legend li", "#k-text", "#t-text", "#t-count", "#k-number", "#k-first", "#t-none", "#k-more", ".axis-name", "thead th",
    "tbody th .link", "td.why", "td.num", "tr.next .link", "#save-picks", "#settings h2", ".foot p",
    "#colour", "#colour-choice", "#search", "#matches li", ".mark", ".mark[aria-pressed=true]", "#marked .chip", "#marked-text",
    "#column-charts figcaption", "#unfold", "#detail .comparison td", "#zoom-in", ".struck-note", ".struck .link", "#detail h3",
    "#detail .fine", "#detail .chip", "#tip strong",
)  # fmt: skip
DRAWN = ("#curve .tick", "#curve .value", "#histogram .tick", "#histogram .value", "#column-charts text")


def boxes(page: Any) -> dict[str, dict[str, float]]:
    return {name: page.locator(selector).bounding_box() for name, selector in REGIONS.items()}


def below(lower: dict[str, float], upper: dict[str, float]) -> bool:
    return lower["y"] >= upper["y"] + upper["height"] - 1


def beside(right: dict[str, float], left: dict[str, float]) -> bool:
    return right["x"] >= left["x"] + left["width"] - 1


@pytest.mark.parametrize("width", WIDTHS)
def test_regions_are_where_they_belong_at_every_width(visit: Any, width: int) -> None:
    at = boxes(visit(invented(), width=width))
    for name, box in at.items():
        assert box["width"] > 150, name
        assert box["x"] >= 0, name
        assert box["x"] + box["width"] <= width, name
    for upper, lower in [
        ("sentence", "picks"), ("picks", "map"), ("curve", "histogram"), ("histogram", "outliers"), ("map", "outliers"),
        ("outliers", "groups"), ("groups", "settings"),
    ]:  # fmt: skip
        assert below(at[lower], at[upper]), (upper, lower)
    assert 0 <= at["slider"]["y"] - at["curve"]["y"] - at["curve"]["height"] + 10 < 30
    if width < 1000:
        assert below(at["curve"], at["map"])
    else:
        assert beside(at["curve"], at["map"])
        assert beside(at["histogram"], at["map"])
        assert abs(at["curve"]["x"] - at["histogram"]["x"]) < 1
    if width >= 1600:
        assert at["map"]["width"] > 850
        assert at["picks"]["width"] <= 1680


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("facts", [invented, lambda: hostile(invented()), lambda: hostile(with_pictures(invented()))])
def test_page_never_scrolls_sideways(visit: Any, width: int, facts: Any) -> None:
    page = visit(facts(), width=width)
    page.locator("#settings summary").click()
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    set_range(page, "#t-range", 9)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *")]
            .filter(e => !e.closest(".scroll, #map, .chips-list, svg, .hidden, [hidden]"))
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert wide == []


def test_targets_are_large_enough_for_fingers(visit: Any) -> None:
    page = visit(invented(), width=390, has_touch=True, is_mobile=True)
    small = page.evaluate(
        """() => [...document.querySelectorAll("button, input, summary")]
            .filter(e => e.offsetParent && !e.closest("table"))
            .map(e => [e.id || e.textContent, e.getBoundingClientRect()])
            .filter(([, box]) => box.width < 40 || box.height < 40)
            .map(([name]) => name)"""
    )
    assert small == []
    rows = page.evaluate("() => [...document.querySelectorAll('#picks tr.pick:not([hidden])')].map(e => e.offsetHeight)")
    assert min(rows) >= 40


LUMINANCE = """([selector, isDrawn]) => {
    const rgb = text => text.match(/[\\d.]+/g).map(Number);
    const light = c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
    const luminance = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
    const ground = e => {
        for (; e; e = e.parentElement) {
            const c = rgb(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] === 1) return c;
        }
        return [255, 255, 255];
    };
    return [...document.querySelectorAll(selector)].filter(e => e.getClientRects().length).map(e => {
        const style = getComputedStyle(e);
        const pair = [luminance(rgb(isDrawn ? style.fill : style.color)), luminance(ground(e))].sort((a, b) => b - a);
        return (pair[0] + 0.05) / (pair[1] + 0.05);
    });
}"""


@pytest.mark.parametrize(("scheme", "clicks"), [("light", 0), ("dark", 0), ("dark", 1), ("light", 2)])
def test_text_stands_out_in_both_themes(visit: Any, scheme: str, clicks: int) -> None:
    page = visit(invented(), color_scheme=scheme)
    for _ in range(clicks):
        page.locator("#theme").click()
    set_range(page, "#t-range", 9)
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.keyboard.press("w")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("f")
    page.locator("#columns").scroll_into_view_if_needed()
    page.locator("#search").fill("item-00")
    page.locator("#picks-list tr.pick").nth(5).dispatch_event("pointerenter")
    settled(page)
    for selector in TEXTS + DRAWN:
        ratios = page.evaluate(LUMINANCE, [selector, selector in DRAWN])
        assert ratios, selector
        assert min(ratios) >= 4.5, selector


def test_print_is_light_without_controls_and_with_the_settings(visit: Any) -> None:
    page = visit(with_pictures(invented()), color_scheme="dark")
    page.emulate_media(media="print")
    settled(page)
    for control in (
        "#k-range",
        "#t-range",
        "#k-number",
        "#theme",
        "#save-picks",
        ".zoom",
        "#colour",
        "#search",
        ".mark",
        ".skip",
    ):
        assert page.locator(control).first.is_hidden(), control
    for part in ("#sentence", "#map", "#curve", "#histogram", "#picks-list li:first-child img", "#settings table"):
        assert page.locator(part).first.is_visible(), part
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('#picks-list li')).breakInside") == "avoid"
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="screen")
    settled(page)
    assert not page.locator("#settings table").first.is_visible()


@pytest.mark.parametrize("pictures", [False, True])
def test_print_mentions_what_it_leaves_out(visit: Any, pictures: bool) -> None:
    facts = invented()
    facts |= {"columns": [f"column {c}" for c in range(12)], "n_compared": 12, "places": list(range(12))}
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["cells"] = [str(c) for c in range(12)]
    page = visit(with_pictures(facts) if pictures else facts)
    rows = list(accumulate(facts["bins"]["rows"]))
    threshold = next(t for t, n in enumerate(rows, 1) if n > 24)
    set_range(page, "#t-range", threshold)
    assert page.locator(".print-only").first.is_hidden()
    page.emulate_media(media="print")
    settled(page)

    def said(part: str) -> list[str]:
        return [" ".join(text.split()) for text in page.locator(f"{part} .print-only:visible").all_inner_texts()]

    assert said("#picks") == [f"{9 if pictures else 7} more columns on the page itself."]
    assert said("#outliers") == [
        f"{9 if pictures else 6} more columns on the page itself.",
        f"The lowest 24; {rows[threshold - 1] - 24} more on the page itself.",
    ]
    if not pictures:
        assert page.locator("#picks-list thead th:visible").count() == 9
    page.emulate_media(media="screen")
    page.locator("#more-outliers").click()
    page.emulate_media(media="print")
    settled(page)
    assert len(said("#outliers")) == 1


def test_everything_has_a_name_and_its_place(visit: Any) -> None:
    page = visit(with_pictures(invented()))
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settled(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, a, summary, [role=img], [role=application], [tabindex='0']")]
            .filter(e => !(e.getAttribute("aria-label") || e.textContent.trim() ||
                document.getElementById(e.getAttribute("aria-labelledby") || "-")?.textContent.trim()))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    told = page.evaluate(
        """() => [...document.querySelectorAll("[aria-labelledby], [aria-describedby], [for]")].flatMap(e =>
            ["aria-labelledby", "aria-describedby", "for"].flatMap(a => (e.getAttribute(a) || "").split(" ")))"""
    )
    assert set(told) - {""} <= set(ids)
    assert page.locator("main").count() == page.locator("header.head").count() == page.locator("footer").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("img:not([alt])").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("#live").get_attribute("aria-live") == "polite"


def test_skip_link_and_focus_can_be_seen(visit: Any) -> None:
    page = visit(invented())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "picks"
    for control in ("#theme", "#map", "#k-range", "#k-number", "#save-picks", "#settings summary"):
        page.locator(control).focus()
        page.keyboard.press("Shift")
        style, width = page.locator(control).evaluate("e => [getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]")
        assert (style, width) == ("solid", "3px"), control
