"""The report in a real browser: the number, the threshold, and what is said at them."""

import json

import numpy as np
import pytest

from e2e.pages import doubled, invented, protected, thinned, world

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def texts(numbers):
    return [str(number) for number in numbers]


def reported(invention):
    """The facts of a fit that reports outliers and rejects none."""
    for pick, number in zip(invention.facts["ranking"], invention.stands_for(12, 0), strict=False):
        pick["stands_for"] = number
    return invention.facts | {"outliers": "report"}


def test_slider_changes_sentence_list_curve_and_slider_text(page):
    assert page.text() == "12 representatives of 600 rows, coverage 88.0 % of at most 91.7 %; 20 outliers set aside."
    assert page.title() == "12 representatives of 600 rows"
    before = page.attribute("#curve .needle", "x1")
    page.set(k=5)
    assert page.text() == "5 representatives of 600 rows, coverage 61.5 % of at most 73.1 %; 20 outliers set aside."
    assert page.text("#k-text").startswith("The first 5 representatives have a coverage of 61.5 % of at most 73.1 %.")
    assert page.count("#picks-list tbody tr:visible") == 5
    assert float(page.attribute("#curve .needle", "x1")) < float(before)
    assert page.text("#curve .value") == "61.5 %"
    assert page.value("#k-number") == "5"
    assert "5 representatives" in page.attribute("#k-range", "aria-valuetext").replace("\u00a0", " ")
    page.set(k=30)
    assert page.count("#picks-list tbody tr:visible") == 30


def test_number_field_buttons_and_curve_move_the_same_k(page):
    page.locator("#k-number").fill("9")
    page.press("Enter")
    assert page.value("#k-range") == "9"
    for button, expected in (("#k-more", 10), ("#k-more", 11), ("#k-less", 10), ("#k-suggested", 7), ("#k-first", 12)):
        page.click(button)
        assert page.value("#k-range") == str(expected)
    box = page.box("#curve")
    page.mouse.click(box["x"] + box["width"] - 14, box["y"] + 60)
    assert page.value("#k-range") == "30"


@pytest.mark.parametrize(
    ("share", "bound", "told"),
    [
        (0.88, None, "88.0 %"),
        (0.88, 0.88001, "88.0 % of at most 88.1 %"),
        (0.9996, 0.9999, "99.9 % of at most 100 %"),
        (-0.0312, 0.0, "-3.1 % of at most 0 %"),
        (-0.0001, 1e-9, "0 % of at most 0.1 %"),
        (1.0, 1.0, "100 % of at most 100 %"),
    ],
)
def test_coverage_is_rounded_and_its_bound_is_rounded_up_with_and_without_scripts(visit, share, bound, told):
    facts = invented() | {"coverage": [share] * 30, "bound": None if bound is None else [bound] * 30}
    expected = f"{{}} representatives of 600 rows, coverage {told}; 20 outliers set aside."
    assert visit(facts, java_script_enabled=False).text() == expected.format(12)
    page = visit(facts)
    assert page.text() == expected.format(12)
    page.set(k=9)
    assert page.text() == expected.format(9)
    assert page.count("#curve .bound") == (bound is not None)
    assert "Thin line" in page.text("#number") if bound is not None else "Thin line" not in page.text("#number")


def test_the_bound_is_drawn_above_the_curve_for_every_number(page):
    def heights(line):
        return np.array([float(point.split()[1]) for point in page.attribute(line, "d")[1:].split("L")])

    bound, curve = heights("#curve .bound"), heights("#curve .beyond")
    assert len(bound) == len(curve) == 30
    assert (bound < curve).all()  # pixels are counted from above


def test_text_of_the_proof_says_which_k_it_is_about(page):
    page.click("#settings > summary")
    here = page.facts["proof"]
    elsewhere = f"For the chosen 12: {here[0].lower()}{here[1:]}"
    assert page.text("#proof") == here
    for k, t, expected in ((9, 8, elsewhere), (12, 8, here), (12, 4, elsewhere)):
        page.set(k, t)
        assert page.text("#proof") == expected


def test_rows_that_each_stands_for_are_those_that_are_nearest_to_it(page):
    invention = world()
    for k in (1, 2, 7, 12, 30):
        page.set(k=k)
        assert sum(invention.stands_for(k)) == 580
        assert page.stands_for() == texts(invention.stands_for(k))


def test_rows_follow_the_threshold_too_and_are_estimates_where_a_representative_is_struck(page):
    """Rows of a struck representative go to the one before it in their history, which need not be the nearest."""
    invention = world()
    for threshold in (0, 5, 9, 20):
        page.set(t=threshold)
        expected, struck, found = invention.stands_for(12, threshold), invention.struck(12, threshold), page.stands_for()
        if not any(struck):
            assert found == texts(expected)
            continue
        assert [text == "–" for text in found] == struck
        assert all(text == "–" or text.startswith("about ") for text in found)
        numbers = [text.removeprefix("about ") for text in found if text != "–"]
        assert abs(sum(int(number) for number in numbers) - sum(expected)) <= len(numbers)
        assert numbers != texts(number for number, out in zip(expected, struck, strict=True) if not out)
    page.point(page.facts["ranking"][0]["row"])
    assert f"stands for about {numbers[0]} rows" in page.text("#tip")


def test_rows_are_exact_on_a_thinned_map_as_far_as_all_low_counts_are_on_it(visit):
    invention = world()
    ranked = [pick["row"] for pick in invention.facts["ranking"]]
    kept = np.flatnonzero((invention.bins < 16) | (np.arange(600) % 2 == 0) | np.isin(np.arange(600), ranked))
    page = visit(thinned(invention.facts, kept, low_complete=16))
    for k, threshold in ((12, 8), (20, 8), (20, 4)):
        page.set(k, threshold)
        assert page.stands_for() == texts(invention.stands_for(k, threshold))
    page.set(t=24)
    assert any(text.startswith("about ") for text in page.stands_for())


def test_first_view_has_the_numbers_of_the_fit(visit):
    facts = invented()
    for pick in facts["ranking"]:
        pick["stands_for"] += 100  # as if the map could not tell
    page = visit(facts)
    assert page.stands_for() == texts(pick["stands_for"] for pick in facts["ranking"][:12])
    page.set(k=11)
    assert sum(int(number) for number in page.stands_for()) == 580


def test_equal_rows_are_one_point_and_all_counted(visit):
    invention = world()
    page = visit(doubled(invention.facts))
    assert "40 outliers set aside" in page.text()
    assert "20 points, 40 rows." in page.text("#outliers-list")
    assert [line["copies"] for line in page.saved_rows("#save-outliers")[1]] == ["2"] * 20
    for threshold in (8, 0):
        page.set(t=threshold)
        assert page.stands_for() == texts(2 * number for number in invention.stands_for(12, threshold))


def test_outliers_that_are_only_reported_stay_with_their_representatives(visit):
    invention = world()
    page = visit(reported(invention))
    assert "20 outliers reported" in page.text()
    page.set(t=9)
    assert page.count("#picks-list .struck") == 0
    assert page.stands_for() == texts(invention.stands_for(12, 0))
    assert page.text("#outliers-tally") == "21"
    # The choice and its certificate stay the same; coverage is known at the threshold of the fit only.
    assert page.text() == "12 representatives of 600 rows; 21 outliers reported."


def test_sentence_does_not_mention_outliers_where_they_were_not_looked_for(visit):
    invention = world()
    facts = reported(invention) | {"outliers": "keep", "n_outliers": 0}
    facts["bins"]["threshold"] = 0
    expected = "12 representatives of 600 rows, coverage 88.0 % of at most 91.7 %."
    assert visit(facts, java_script_enabled=False).text() == expected
    page = visit(facts)
    assert page.text() == expected
    assert "Outliers were not looked for." in page.text("#outliers")
    page.set(t=9)
    assert page.text() == expected
    assert page.stands_for() == texts(invention.stands_for(12, 0))


def test_rows_that_are_never_outliers_are_counted_by_reason(visit):
    invention = world()
    low = [item["row"] for item in invention.facts["lowest"]]
    kept = [*low[:3], *low[5:7]]
    facts = protected(invention, low[:3], low[5:7])
    page = visit(facts)
    assert "15 outliers set aside" in page.text()
    reasons = "3 rows near other rows or in a group, 2 rows marked as fine or to be included."
    assert page.text("#t-text").endswith(f"Never outliers, however low their count: {reasons}")
    columns = [b for b in range(8) if facts["bins"]["rows"][b] > facts["bins"]["safe"][b]]
    assert page.count("#histogram .low") == len(columns)
    assert sum(int(text) for text in page.texts("#groups-body td:last-child")) == 15
    assert not {f"item-{row:04d}" for row in kept} & set(page.texts("#outliers-list tr.odd .link"))
    page.point(low[0])
    assert "Never an outlier" in page.text("#tip")
    assert "Represented by" in page.text("#tip")
    for threshold in (3, 20):
        page.set(t=threshold)
        expected = sum(b < threshold for i, b in enumerate(invention.bins) if i not in kept)
        assert page.text("#t-count") == str(expected)
    page.set(9, 8)
    assert page.stands_for() == texts(invention.stands_for(9))
    page.set(t=0)
    assert "Never" not in page.text("#t-text")


def test_representative_that_must_be_included_is_never_struck(visit):
    invention = world()
    page = visit(protected(invention, [], [invention.facts["ranking"][2]["row"]]))
    page.set(t=9)
    assert page.count("#picks-list .struck") == 0
    assert "12 representatives" in page.text()
    assert "1 row marked as fine or to be included" in page.text("#t-text")
    assert "group" not in page.text("#t-text")


def test_threshold_moves_outliers_at_once_and_claims_no_share(page):
    rows = page.facts["bins"]["rows"]
    left = {0: "", 4: "", 9: "; at the current threshold 11 of them are left.", 40: "none of them are left."}
    for threshold, end in left.items():
        page.set(t=threshold)
        outliers = sum(rows[:threshold])
        assert (f"{outliers} outliers set aside" if outliers else "no outliers") in page.text()
        assert page.text("#t-count") == page.text("#outliers-tally") == str(outliers)
        assert page.count("#histogram .low") == sum(n > 0 for n in rows[:threshold])
        assert "%" not in page.text() + page.attribute("#k-range", "aria-valuetext")
        told = page.text("#k-text")
        assert told.startswith("At the threshold of the fit, the first 12 representatives have a coverage of 88.0 %")
        assert told.endswith(end) if end else "left" not in told
    assert json.loads(page.saved("#save-all")[1])["coverage"] is None
    assert "0 representatives" in page.text()
    assert page.attribute("#save-picks", "aria-disabled") == "true"
    page.press("Enter", at="#save-picks")  # and nothing is saved
    page.click("#t-first")
    assert "coverage 88.0 % of at most 91.7 %; 20 outliers set aside." in page.text()


def test_pick_below_the_threshold_is_struck_out_and_leaves_the_selection(page):
    struck = page.facts["ranking"][2]
    assert struck["bin"] == 8
    page.set(t=9)
    assert "struck" in page.attribute("#picks-list tbody tr", "class", 2)
    assert "an outlier at this threshold" in page.texts("#picks-list tbody tr")[2]
    assert page.text() == "11 representatives of 600 rows; 21 outliers set aside."
    name, text = page.saved("#save-picks")
    assert name == "representatives-11.csv"
    assert struck["name"] not in text
