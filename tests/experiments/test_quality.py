"""Our own comparison: standings, halves, variants and the section of the page, from lines that can be checked by hand."""

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


def test_section_has_the_numbers_of_the_lines(tmp_path):
    scores = {"MOSAIC": [0.8, 0.8], "TED": [0.7, 0.7], "random": [0.5, None]}
    lines = accuracies({("usps", 10): scores, ("mnist", 10): scores}, "classification")
    lines += accuracies({("orl", 10): scores, ("yaleb", 10): scores}, "clean")
    for dataset, kind, share in (("digits", "uniform", 0.1), ("digits", "shuffled", 0.3), ("usps", "shuffled", 0.5)):
        lines.append(line("spoiled", "MOSAIC", dataset, 0, 1.0, 30, kind=kind, accuracy_1nn=0.5, outlier_share=share))
        lines.append(line("separable", "LOF", dataset, 0, 1.0, kind=kind, auc=0.97 if kind == "uniform" else 0.6))
    for method, own in (("MOSAIC", 0.3), ("LOF", 0.4)):
        number = {"auc": 0.8, "f1_outlier_best": 0.6, "f1_outlier_own": own, "flagged_share": 0.1}
        lines.append(line("adbench", method, adbench_sets()[0], **number))
        lines.append(line("ablation", "no rejection" if own > 0.3 else method, "digits", task="classify", k=30, accuracy_1nn=own))
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    page.main(["--folder", str(tmp_path), "--out", str(tmp_path / "results.md")])
    text = (tmp_path / "how_well_we_choose.md").read_text()
    first = "**1.0 [1.0, 1.0]** | **0.500 [0.500, 0.500]**"
    for expected in (
        "- **choosing half**: digits, isolet, orl, pbmc, basehock, adbench/10_cover,",
        "4 cases of 4 sets, 2 runs of each. Without any run: MOSAIC (paper), SMRS,",
        "| MOSAIC | **1.0 [1.0, 1.0]** | **0.800 [0.800, 0.800]** |\n",
        "| random<sup>1</sup> | 3.0 [3.0, 3.0] | — |",
        "<sup>1</sup> no answer in 4 of 4 cases.",
        "In 1 of 3 cases a detector",  # those that can be told apart
        f"| MOSAIC | {first} | **0.100 [0.100, 0.100]** | {first} | **0.500 [0.500, 0.500]** |",  # outliers of their own half
        "| LOF | **0.600 [0.600, 0.600]** | — | **0.400 [0.400, 0.400]** | 0.100 [0.100, 0.100] |",
        "| no rejection | **0.400** |",
    ):
        assert expected in text
