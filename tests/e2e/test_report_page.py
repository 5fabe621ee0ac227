"""The report in a real browser: the number, the threshold, and what is said at them."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from e2e.pages import (  # noqa: F401
    World,
    doubled,
    invented,
    place_of,
    protected,
    running_browser,
    saved,
    set_range,
    settled,
    stands_for,
    text_of,
    thinned,
    value_of,
    visited,
    world,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_sentence_says_coverage_outliers_and_proof(visit: Any) -> None:
    page = visit(invented())
    assert text_of(page, "h1") == (
        "12 representatives cover 88.0 % of 600 points; 20 outliers set aside; "
        "provably at most 2.8 % more unexplained than by the best 12."
    )
    assert page.title() == "12 representatives of 600 points"


def test_slider_changes_sentence_list_curve_and_slider_text(visit: Any) -> None:
    page = visit(invented())
    before = page.locator("#curve .needle").get_attribute("x1")
    set_range(page, "#k-range", 5)
    assert text_of(page, "h1") == ("5 representatives cover 61.5 % of 600 points; 20 outliers set aside; the proof is for 12.")
    assert page.locator("#picks-list tbody tr:visible").count() == 5
    assert float(page.locator("#curve .needle").get_attribute("x1")) < float(before)
    assert text_of(page, "#curve .value") == "61.5 %"
    assert value_of(page, "#k-number") == "5"
    assert "5 representatives" in page.locator("#k-range").get_attribute("aria-valuetext").replace("\u00a0", " ")
    set_range(page, "#k-range", 30)
    assert page.locator("#picks-list tbody tr:visible").count() == 30


def test_proof_is_shown_for_every_k_where_it_is_known(visit: Any) -> None:
    facts = invented()
    facts["certificate"]["excesses"] = [0.2 - 0.005 * j for j in range(29)] + [None]
    page = visit(facts)
    set_range(page, "#k-range", 1)
    assert text_of(page, "h1").endswith("provably at most 20 % more unexplained than by the best one.")
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


def test_equal_rows_are_one_point_and_all_counted(visit: Any) -> None:
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
    # The choice and its certificate stay the same; coverage is known at the threshold of the fit only.
    assert text_of(page, "h1") == (
        "12 representatives of 600 points; 21 outliers reported; provably at most 2.8 % more unexplained than by the best 12."
    )


def reported(invention: World) -> dict[str, Any]:
    """The facts of a fit that reports outliers and rejects none."""
    for pick, number in zip(invention.facts["ranking"], invention.stands_for(12, 0), strict=False):
        pick["stands_for"] = number
    return invention.facts | {"outliers": "report"}


def test_rows_that_are_never_outliers_are_counted_by_reason(visit: Any) -> None:
    invention = world()
    low = [item["row"] for item in invention.facts["lowest"]]
    kept = [*low[:3], *low[5:7]]
    facts = protected(invention, low[:3], low[5:7])
    page = visit(facts)
    assert "15 outliers set aside" in text_of(page, "h1")
    assert text_of(page, "#t-text").endswith(
        "Never outliers, whatever their count: 3 rows near to others or in a group, 2 rows that must be included."
    )
    columns = [b for b in range(8) if facts["bins"]["rows"][b] > facts["bins"]["safe"][b]]
    assert page.locator("#histogram .low").count() == len(columns)
    assert sum(int(text) for text in page.locator("#groups-body td:last-child").all_inner_texts()) == 15
    listed = page.locator("#outliers-list tr.odd .link").all_inner_texts()
    assert not {f"item-{row:04d}" for row in kept} & set(listed)
    page.mouse.move(*place_of(page, facts, low[0]))
    settled(page)
    assert "Never an outlier" in text_of(page, "#tip")
    assert "Represented by" in text_of(page, "#tip")
    for threshold in (3, 20):
        set_range(page, "#t-range", threshold)
        expected = sum(b < threshold for i, b in enumerate(invention.bins) if i not in kept)
        assert page.locator("#t-count").inner_text() == str(expected)
    set_range(page, "#t-range", 8)
    set_range(page, "#k-range", 9)
    assert stands_for(page) == [str(number) for number in invention.stands_for(9, 8)]
    set_range(page, "#t-range", 0)
    assert "Never" not in text_of(page, "#t-text")


def test_representative_that_must_be_included_is_never_struck(visit: Any) -> None:
    invention = world()
    row = invention.facts["ranking"][2]["row"]
    page = visit(protected(invention, [], [row]))
    set_range(page, "#t-range", 9)
    assert page.locator("#picks-list .struck").count() == 0
    assert "12 representatives" in text_of(page, "h1")
    assert "1 row that must be included" in text_of(page, "#t-text")
    assert "group" not in text_of(page, "#t-text")


def test_text_of_the_proof_says_which_k_it_is_about(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    page.locator("#settings > summary").click()
    assert text_of(page, "#proof") == facts["certificate"]["sentence"]
    elsewhere = "For the chosen 12: provably good: these 12 leave at most 2.8 % more unexplained than any other."
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
    page.locator("#k-suggested").click()
    assert value_of(page, "#k-range") == "7"
    page.locator("#k-first").click()
    assert value_of(page, "#k-range") == "12"
    box = page.locator("#curve").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 60)
    assert value_of(page, "#k-range") == "30"


def test_threshold_moves_outliers_at_once(visit: Any) -> None:
    facts = invented()
    page = visit(facts)
    for threshold in (0, 4, 20, 40):
        set_range(page, "#t-range", threshold)
        outliers = sum(facts["bins"]["rows"][:threshold])
        assert f"{outliers} outliers set aside" in text_of(page, "h1") or (outliers == 0 and "no outliers" in text_of(page, "h1"))
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
    # Rows of a struck representative go to the one before it in their history, which need not be the nearest.
    found = stands_for(page)
    assert [text == "–" for text in found] == struck
    numbers = [text.removeprefix("about ") for text in found if text != "–"]
    assert all(text == "–" or text.startswith("about ") for text in found)
    assert abs(sum(int(number) for number in numbers) - sum(expected)) <= len(numbers)


def test_rows_after_striking_a_representative_are_marked_as_estimates(visit: Any) -> None:
    """In this example the estimates differ from the exact numbers, and the page marks them with "about"."""
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


def test_sentence_does_not_mention_outliers_where_they_were_not_looked_for(visit: Any) -> None:
    invention = world()
    facts = reported(invention) | {"outliers": "keep", "n_outliers": 0}
    facts["bins"]["threshold"] = 0
    expected = "12 representatives cover 88.0 % of 600 points; provably at most 2.8 % more unexplained than by the best 12."
    assert text_of(visit(facts, java_script_enabled=False), "h1") == expected
    page = visit(facts)
    assert text_of(page, "h1") == expected
    assert "Outliers were not looked for." in text_of(page, "#outliers")
    set_range(page, "#t-range", 9)
    assert text_of(page, "h1") == expected
    assert stands_for(page) == [str(number) for number in invention.stands_for(12, 0)]


def test_first_view_has_the_numbers_of_the_fit(visit: Any) -> None:
    facts = invented()
    for pick in facts["ranking"]:
        pick["stands_for"] += 100  # as if the map could not tell
    page = visit(facts)
    assert stands_for(page) == [str(pick["stands_for"]) for pick in facts["ranking"][:12]]
    set_range(page, "#k-range", 11)
    assert sum(int(number) for number in stands_for(page)) == 580


@pytest.mark.parametrize(("excess", "text"), [(0.00123456, "0.12 %"), (4e-6, "less than 0.001 %"), (1.2, None)])
def test_proof_has_two_digits_and_is_left_out_above_a_hundred_percent(visit: Any, excess: Any, text: Any) -> None:
    facts = invented()
    facts["certificate"] |= {"excess": excess, "excesses": [excess] * 30}
    proof = f"provably at most {text} more unexplained than by the best" if text else "20 outliers set aside."
    for options in ({}, {"java_script_enabled": False}):
        assert text_of(visit(facts, **options), "h1").endswith(f"{proof} 12." if text else proof), options
    page = visit(facts)
    set_range(page, "#k-range", 9)
    assert text_of(page, "h1").endswith(f"{proof} 9." if text else proof)


def test_no_share_is_claimed_at_another_threshold_than_the_fits(visit: Any) -> None:
    page = visit(invented())
    for threshold, left in ((4, ""), (9, "; at the current threshold 11 of them are left"), (40, "none of them are left")):
        set_range(page, "#t-range", threshold)
        assert "%" not in text_of(page, "h1")
        assert text_of(page, "#k-text").startswith("At the threshold of the fit, the first 12 representatives cover 88.0 %")
        assert text_of(page, "#k-text").endswith(f"{left}.") if left else "left" not in text_of(page, "#k-text")
        assert "%" not in page.locator("#k-range").get_attribute("aria-valuetext")
    assert json.loads(saved(page, "#save-all")[1])["coverage"] is None
