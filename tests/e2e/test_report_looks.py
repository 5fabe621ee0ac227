"""What the report looks like in a real browser: width by width, light and dark, on paper, and to those who do not see it."""

import base64
import io
import re
from itertools import accumulate, combinations, pairwise

import numpy as np
import pytest

from e2e.pages import hostile, invented, with_columns, with_pictures, without_representatives

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

WIDTHS = (390, 1280, 1920)
REGIONS = {name: f"#{name}" for name in ("sentence", "map", "curve", "histogram", "groups", "picks", "outliers", "settings")}
REGIONS["slider"] = "#k-range"
TEXTS = (
    "#sentence", "#sentence strong", ".words", ".brand", ".source", "#theme", "h2", ".tally", "#map-text", "#map-keys",
    ".legend li", "#k-text", "#t-text", "#t-count", "#k-number", "#k-first", "#t-none", "#k-more", ".axis-name", "thead th",
    "tbody th .link", "td.why", "td.num", "tr.next .link", "#save-picks", "#settings h2", ".foot p",
    "#colour", "#colour-choice", "#search", "#matches li", ".mark", ".mark[aria-pressed=true]", "#marked .chip", "#marked-text",
    "#column-charts figcaption", "#unfold", "#detail .comparison td", "#zoom-in", ".struck-note", ".struck .link", "#detail h3",
    "#detail .fine", "#detail .chip", "#tip strong",
)  # fmt: skip
DRAWN = ("#curve .tick", "#curve .value", "#histogram .tick", "#histogram .value", "#column-charts text")


@pytest.mark.parametrize("width", WIDTHS)
def test_regions_are_where_they_belong_at_every_width(visit, width):
    page = visit(invented(), width=width)
    left, top, right, bottom = {}, {}, {}, {}
    for name, selector in REGIONS.items():
        box = page.box(selector)
        left[name], top[name], right[name], bottom[name] = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
        assert right[name] - left[name] > 150, name
        assert 0 <= left[name] <= right[name] <= width, name
    for upper, lower in [
        ("sentence", "outliers"), ("outliers", "map"), ("curve", "histogram"), ("histogram", "picks"), ("map", "picks"),
        ("picks", "groups"), ("groups", "settings"),
    ]:  # fmt: skip
        assert top[lower] >= bottom[upper] - 1, (upper, lower)
    assert 0 <= top["slider"] - bottom["curve"] + 10 < 30
    if width < 1000:
        assert top["curve"] >= bottom["map"] - 1
    else:
        assert min(left["curve"], left["histogram"]) >= right["map"] - 1
        assert abs(left["curve"] - left["histogram"]) < 1
    if width >= 1600:
        assert right["map"] - left["map"] > 850
        assert right["picks"] - left["picks"] <= 1680


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("changes", [(), (hostile,), (with_pictures, hostile), (with_pictures, hostile, without_representatives)])
def test_page_never_scrolls_sideways_and_hostile_strings_stay_text(visit, width, changes):
    facts = invented()
    for change in changes:
        facts = change(facts)
    page = visit(facts, width=width)
    page.click("#settings summary")
    page.press("ArrowRight", "Enter", at="#map")
    page.set(t=9)
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *")]
            .filter(e => !e.closest(".scroll, #map, .chips-list, svg, .hidden, [hidden]"))
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert wide == []


def test_targets_are_large_enough_for_fingers(visit):
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
def test_text_stands_out_in_both_themes(visit, scheme, clicks):
    page = visit(invented(), color_scheme=scheme)
    for _ in range(clicks):
        page.click("#theme")
    page.set(t=9)
    page.press("ArrowRight", "Enter", "w", "ArrowRight", "f", at="#map")
    page.show("#columns")
    page.point()
    page.locator("#outliers-list .mark-wrong").first.hover()
    page.click("#outliers-list .mark-wrong")
    page.locator("#search").fill("item-00")
    page.locator("#picks-list tr.pick").nth(5).dispatch_event("pointerenter")
    page.settle()
    for selector in TEXTS + DRAWN:
        ratios = page.evaluate(LUMINANCE, [selector, selector in DRAWN])
        assert ratios, selector
        assert min(ratios) >= 4.5, selector


HUES = """() => [...Array.from({length: 12}, (_, i) => `hue-${i}`), "card", "warm", "dust"].map(name => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const rgb = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    return rgb;
})"""


def oklab(rgb):
    """Ottosson's colour space, where distances are about as they are seen; 0.02 is just noticeable side by side."""
    share = rgb / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    cones = light @ np.array([[0.4122, 0.2119, 0.0883], [0.5363, 0.6807, 0.2817], [0.0514, 0.1074, 0.6300]])
    return np.cbrt(cones) @ np.array([[0.2105, 1.9780, 0.0259], [0.7936, -2.4286, 0.7828], [-0.0041, 0.4506, -0.8087]])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_twelve_colours_are_far_apart(visit, scheme):
    found = oklab(np.array(visit(invented(), color_scheme=scheme).evaluate(HUES)))
    pairs = [pair for pair in combinations(range(15), 2) if pair[0] < 12]
    assert min(np.linalg.norm(found[a] - found[b]) for a, b in pairs) > 0.14


def test_print_is_light_without_controls_and_with_the_settings(visit):
    page = visit(with_pictures(invented()), color_scheme="dark")
    page.emulate("print")
    controls = ("#k-range", "#t-range", "#k-number", "#theme", "#save-picks", ".zoom", "#colour", "#search", ".mark", ".skip")
    for control in controls:
        assert page.hides(control), control
    for part in ("#sentence", "#map", "#curve", "#histogram", "#picks-list li:first-child img", "#settings table"):
        assert not page.hides(part), part
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('#picks-list li')).breakInside") == "avoid"
    assert page.pdf().startswith(b"%PDF")
    page.emulate("screen")
    assert page.hides("#settings table")


def test_what_was_scrolled_is_printed_from_its_beginning(visit):
    """Chromium prints a scrolled list where it was, with its head over what follows."""

    def printed(page):
        return re.sub(rb"/(CreationDate|ModDate) \([^)]*\)", b"", page.pdf())

    page = visit(invented())
    before = printed(page)
    assert before == printed(page)
    page.evaluate("document.querySelector('#outliers-list .scroll').scrollTo(0, 300)")
    page.settle()
    assert page.evaluate("document.querySelector('#outliers-list .scroll').scrollTop") > 100
    assert printed(page) == before
    assert page.evaluate("document.querySelector('#outliers-list .scroll').scrollTop") > 100


def test_marks_are_printed_on_the_points(visit):
    """Of two canvases above one another Chromium prints the upper one only."""
    Image = pytest.importorskip("PIL.Image")
    page = visit(invented())

    def inked():
        """Pixels as dark as the rings of representatives, which no point is."""
        picture = Image.open(io.BytesIO(base64.b64decode(page.pixels().partition(",")[2])))
        return int((np.asarray(picture.convert("L")) < 45).sum())

    assert inked() == 0
    page.emulate("print")
    assert page.hides("#map-marks")
    assert inked() > 100
    page.emulate("screen")
    assert inked() == 0
    assert not page.hides("#map-marks")


@pytest.mark.parametrize("pictures", [False, True])
def test_print_has_all_listed_rows_and_mentions_the_columns_that_it_leaves_out(visit, pictures):
    facts = with_columns(invented(), {f"column {c}": [str(c)] * 600 for c in range(12)})
    page = visit(with_pictures(facts) if pictures else facts)
    rows = list(accumulate(facts["bins"]["rows"]))
    threshold = next(t for t, n in enumerate(rows, 1) if n > 24)
    page.set(t=threshold)
    assert page.hides(".print-only")
    page.emulate("print")

    def said(part):
        return [" ".join(text.split()) for text in page.texts(f"{part} .print-only:visible")]

    assert said("#picks") == said("#outliers") == [f"{9 if pictures else 7} more columns on the page itself."]
    assert page.count("#outliers-list .odd:not(.next)") == rows[threshold - 1] > 24
    if not pictures:
        assert page.count("#picks-list thead th:visible") == 9
    page.emulate("screen")
    assert page.count("#outliers-list .odd:not(.next)") == 24


def test_everything_has_a_name_and_its_place(visit):
    page = visit(with_pictures(invented()))
    page.press("ArrowRight", "Enter", at="#map")
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
    for once in ("main", "header.head", "footer", "html[lang=en]", "#live[aria-live=polite]"):
        assert page.count(once) == 1
    assert page.count("img:not([alt]), th:not([scope])") == 0


def test_skip_link_and_focus_can_be_seen(page):
    page.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.box(".skip")["y"] >= 0
    page.press("Enter")
    assert page.evaluate("document.activeElement.id") == "outliers"
    for control in ("#theme", "#map", "#k-range", "#k-number", "#save-picks", "#settings summary"):
        page.press("Shift", at=control)
        style, width = page.locator(control).evaluate("e => [getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]")
        assert (style, width) == ("solid", "3px"), control
