"""Our own comparison: standings, halves, variants and the section of the page, from lines that can be checked by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiment_lines import line
from experiments.datasets.real import available_names
from experiments.items import CLASSIFIED, FAST, MORE_CLASSES, adbench_sets, halves, jobs_of
from experiments.job import Job
from experiments.methods import all_detector_variants, all_selector_variants
from experiments.paper import ablation, page, quality
from experiments.paper._lines import FIELDS, NEAREST, cells
from experiments.paper._standings import Interval, interval, standings
from experiments.run import run_job
from experiments.tasks import TASKS

pytestmark = pytest.mark.slow


def accuracies(scores, item="clean", **rest):
    """Lines for {(dataset, k): {method: one accuracy a seed, None for no answer}}."""
    found = []
    for (dataset, k), column in scores.items():
        for method, values in column.items():
            for seed, value in enumerate(values):
                number = {"cannot": "no"} if value is None else {"accuracy_1nn": value}
                found.append(line(item, method, dataset, seed, k=k, **rest, **number))
    return found


def stand(scores):
    return standings(cells(accuracies(scores), NEAREST, FIELDS), higher=True)


def test_ties_share_ranks_and_who_has_no_answer_shares_the_last():
    found = stand(
        {
            ("digits", 10): {"a": [0.5, 0.7], "b": [0.6, 0.6], "c": [0.1, 0.3], "d": [None, 0.9]},
            ("digits", 30): {"a": [0.9, 0.9], "b": [0.8, 0.8], "c": [None, None]},  # d was not run
            ("usps", 10): {"a": [0.2, 0.2], "b": [0.3, 0.3], "c": [0.4, 0.4], "d": [0.5, 0.5]},
            ("orl", 10): {"a": [None, None], "b": [None, None]},  # nobody has an answer: no case
        }
    )
    # a: 1.5, 1, 4; b: 1.5, 2, 3; c: 3, 3.5, 2; d: 4 (one of two seeds), 3.5, 1
    assert {m: s.rank.mean for m, s in found.items()} == pytest.approx({"a": 6.5 / 3, "b": 6.5 / 3, "c": 8.5 / 3, "d": 8.5 / 3})
    assert list(found) == ["a", "b", "c", "d"]
    assert found["a"].score.mean == pytest.approx((0.6 + 0.9 + 0.2) / 3)
    assert found["c"].score.mean == pytest.approx((0.2 + 0.4) / 2)
    assert [(s.lacking, s.cases) for s in found.values()] == [(0, 3), (0, 3), (1, 3), (2, 3)]


def test_interval_holds_the_mean_and_is_a_point_for_equal_datasets():
    rng = np.random.default_rng(1)
    values = {str(i): rng.normal(size=1 + i % 3) for i in range(12)}
    found = interval(values)
    assert found.mean == pytest.approx(np.concatenate(list(values.values())).mean())
    assert found.low < found.mean < found.high
    assert found == interval(values)
    same = interval({name: [0.25, 0.75] for name in "abc"})
    assert (same.low, same.mean, same.high) == pytest.approx((0.5, 0.5, 0.5))
    # It is over datasets: a hundred cases of one set say no more about other sets than one.
    one, many = interval({"a": [0.0], "b": [1.0]}), interval({"a": [0.0] * 100, "b": [1.0] * 100})
    assert one == many == Interval(0.5, 0.0, 1.0)


def test_halves_share_no_set_and_are_all_sets_together():
    both = halves()
    choosing, confirming = both["choosing"], both["confirming"]
    assert not set(choosing) & set(confirming)
    assert sorted((*choosing, *confirming)) == sorted((*CLASSIFIED, *MORE_CLASSES, *adbench_sets()))
    assert set(choosing) | set(confirming) <= set(available_names())
    sets = {job.dataset for item in ("classification", "clean", "spoiled", "adbench") for job in jobs_of(item)}
    assert sets == {*choosing, *confirming}
    assert choosing[:5] == ("digits", "isolet", "orl", "pbmc", "basehock")
    marked = adbench_sets()
    assert (choosing[5:], confirming[5:]) == (tuple(marked[::2]), tuple(marked[1::2]))
    # A case is of a half if its set and its outliers are.
    found = [quality.half_of((name, kind, 1.0, 280, 30)) for name in ("digits", "usps") for kind in ("far", "images", None)]
    assert found == ["choosing", None, "choosing", None, "confirming", "confirming"]


@pytest.mark.parametrize("name", all_selector_variants())
def test_variants_select_on_a_small_case(name):
    record = run_job(Job("ablation", "select", name, "digits", "uniform", 0.2, 60, 6, 0))
    assert record["verdict"]["n_picks"] == 6


@pytest.mark.parametrize("name", all_detector_variants())
def test_variants_detect_on_a_small_case(name):
    record = run_job(Job("ablation", "detect as is", name, "swiss_roll/5", "repetitive", 1.0, 100, None, 0))
    assert 0.5 < record["verdict"]["auc"] <= 1.0


def test_separable_looks_at_the_very_draws_of_spoiled():
    def draws(item):
        return {(job.dataset, job.contamination, job.ratio, job.n, job.seed) for job in jobs_of(item)}

    assert draws("separable") == draws("spoiled")
    assert len(jobs_of("separable")) == 80 * 5 * len(FAST)
    select, detect = jobs_of("spoiled", small=True)[0], jobs_of("separable", small=True)[0]
    one, other = (TASKS[job.task].case(job, False) for job in (select, detect))
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.is_outlier, other.is_outlier)


def test_ablation_runs_variants_and_ours_on_the_same_cases():
    jobs = jobs_of("ablation")
    spoilt = 4 * 3 * 2 + 4 * 2 * 2  # sets, kinds and ratios of either half; natural images are for pictures only
    selection, detection = len(ablation.SELECTION_RULES), len(ablation.DETECTION_RULES)
    assert len(jobs) == selection * 3 * (10 + spoilt) + detection * 2 * 25
    both = {*halves()["choosing"], *halves()["confirming"]}
    assert {job.dataset for job in jobs if job.task in ("classify", "select")} <= both
    for tasks, rules in ((("classify", "select"), ablation.SELECTION_RULES), (("detect as is",), ablation.DETECTION_RULES)):
        mine = [job for job in jobs if job.task in tasks]
        assert {job.method for job in mine} == set(rules)
        each = {m: {(j.task, j.dataset, j.contamination, j.ratio, j.seed) for j in mine if j.method == m} for m in rules}
        assert all(found == each["MOSAIC"] for found in each.values())


def hand_made():
    """Three contestants, two sets of each half, and a few lines of every item of the section."""
    scores = {"MOSAIC": [0.8, 0.8], "TED": [0.7, 0.7], "random": [0.5, None]}
    found = accuracies({("usps", 10): scores, ("mnist", 10): scores}, "classification")
    found += accuracies({("orl", 10): scores, ("yaleb", 10): scores}, "clean")
    for kind, auc in (("uniform", 0.97), ("shuffled", 0.6)):
        share = 0.1 if kind == "uniform" else 0.5
        for dataset, method in (("digits", "MOSAIC"), ("digits", "TED"), ("cifar10", "MOSAIC"), ("cifar10", "TED")):
            worse = 0.2 * (method == "TED")
            number = {"accuracy_1nn": 0.5 - worse, "outlier_share": share + worse}
            found.append(line("spoiled", method, dataset, 0, 1.0, 30, kind=kind, **number))
            found.append(line("separable", "LOF", dataset, 0, 1.0, kind=kind, auc=auc))
            found.append(line("separable", "MOSAIC", dataset, 0, 1.0, kind=kind, auc=auc - 0.1))
    for dataset in adbench_sets()[:2]:
        for method, own in (("MOSAIC", 0.3), ("LOF", 0.4), ("kNN distance", None)):
            number = {"auc": 0.8, "f1_outlier_best": 0.6, "f1_outlier_own": own, "flagged_share": own and 0.1}
            number |= {"f1_outlier_true_share": 0.45} if method == "MOSAIC" else {}  # others ran before there was one
            found.append(line("adbench", method, dataset, **number))
    found += [line("unspoilt", method, "usps", flagged_share=v) for method, v in (("MOSAIC", 0.02), ("LOF", 0.05))]
    for method, value in (("MOSAIC", 0.9), ("no rejection", 0.7)):
        found.append(line("ablation", method, "digits", task="classify", k=30, accuracy_1nn=value, outlier_share=0.0))
        number = {"accuracy_1nn": value / 2, "outlier_share": 1 - value}
        found.append(line("ablation", method, "digits", 0, 1.0, 30, kind="uniform", **number))
    for method, value in (("MOSAIC", 0.9), ("one program", 0.8)):
        found.append(line("ablation", method, adbench_sets()[0], task="detect as is", auc=value))
        found.append(line("ablation", method, adbench_sets()[1], task="detect as is", auc=value - 0.2))
    return found


def test_section_has_every_table_with_the_numbers_of_the_lines(tmp_path):
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in hand_made()))
    page.main(["--folder", str(tmp_path), "--out", str(tmp_path / "results.md")])
    text = (tmp_path / "how_well_we_choose.md").read_text()
    assert "- **choosing half**: digits, isolet, orl, pbmc, basehock, adbench/10_cover," in text
    assert "; added outliers: heavy-tailed, shuffled, images.\n" in text
    assert "4 cases of 4 sets. Without any run: MOSAIC (paper), SMRS," in text
    assert "| MOSAIC | **1.0 [1.0, 1.0]** | **0.800 [0.800, 0.800]** |\n" in text
    assert "| random<sup>1</sup> | 3.0 [3.0, 3.0] | — |" in text
    assert "<sup>1</sup> no answer in 4 of 4 cases." in text
    assert "| TED | 2.0 [2.0, 2.0] | 0.700 [0.700, 0.700] | 2.0 [2.0, 2.0] | 0.700 [0.700, 0.700] |" in text
    # Of both kinds of outliers only the uniform ones can be told apart, and there a tenth of our picks are outliers.
    assert "In 2 of 4 cases a detector" in text
    assert "| MOSAIC | **1.0 [1.0, 1.0]** | **0.100 [0.100, 0.100]** |" in text
    # A set of one half with outliers of the other is in neither half: digits have uniform ones there, cifar10 shuffled ones.
    halves = "**1.0 [1.0, 1.0]** | **0.500 [0.500, 0.500]** | **{0} [{0}, {0}]**"
    assert f"| MOSAIC | {halves.format('0.100')} | {halves.format('0.500')} |" in text
    own = "**0.600 [0.600, 0.600]** | {} | {} | 0.100 [0.100, 0.100] | {}"
    ours = own.format("**0.450 [0.450, 0.450]**", "0.300 [0.300, 0.300]", "**0.020 [0.020, 0.020]**")
    assert f"| MOSAIC | {ours} |" in text
    assert f"| LOF | {own.format('—<sup>1</sup>', '**0.400 [0.400, 0.400]**', '0.050 [0.050, 0.050]')} |" in text
    assert "| no rejection | 0.700 | 0.350 | 0.300 | outliers are not looked for |" in text
    assert "| one program | 0.800 | 0.600 | one program |" in text
    assert "Missing" not in text
