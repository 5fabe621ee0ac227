"""One number of outliers for one model, whoever tells it."""

import base64
import json
import re
import zlib

import numpy as np
import pandas as pd
import pytest

from cli_runs import run
from mosaic import MOSAIC, MOSAICOutlierDetector
from mosaic.show import report_html
from sources import never_load, open_source

pytestmark = pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")


def rows(n, odd, group=0):
    """A cloud, rows far from all, and a small group far away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:odd] = 60.0 * rng.uniform(-1, 1, (odd, 3))
    X[odd : odd + group] = 30.0 + 0.5 * rng.normal(size=(group, 3))
    return X


FEW, MANY = rows(600, 12, 6), rows(9000, 90, 40)
WEIGHTS = np.r_[np.zeros(6), np.ones(300), np.full(294, 3.0)]


@pytest.fixture(autouse=True)
def few_rows_decide(monkeypatch):
    """A smaller sample, so that fewer rows are many."""
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 3000)


def number_in(text):
    """The first number of outliers in a text."""
    found = re.search(r"([\d,]+) outlier|[Nn]o outliers", text)
    return int((found[1] or "0").replace(",", "")) if found else 0


def page_of(html):
    return json.loads(zlib.decompress(base64.b64decode(re.search(r'id="facts"[^>]*>(.*?)</script>', html, re.S)[1])))


def numbers(model):
    facts, page = model.facts_, page_of(report_html(model, certificate=False))
    bins, below = page["bins"], slice(0, page["bins"]["threshold"])
    return {
        "explain": number_in(str(model.explain())),
        "facts": facts.outliers.n,
        "title": number_in(facts.title),
        "sentence": number_in(facts.sentence),
        "bars": sum(facts.outliers.outlying),
        "page": page["n_outliers"],
        "bars of the page": round(sum(bins["rows"][below]) - sum(bins["safe"][below])),
    }


CASES = [
    ({}, {}),
    ({"outliers": "report"}, {}),
    ({"outliers": "keep"}, {}),
    ({"contamination": 0.05}, {}),
    ({"min_group": 4}, {}),
    ({"outliers": "report", "min_group": 4}, {"must_include": [0, 13, 300]}),
    ({}, {"must_include": [0, 3, 300]}),
]


@pytest.mark.parametrize(("settings", "constraints"), [*CASES, ({}, {"sample_weight": WEIGHTS})])
def test_all_say_how_many_rows_of_the_mask_are_true(settings, constraints):
    detector = MOSAICOutlierDetector(min_group=settings.get("min_group"))
    detector.fit(FEW, sample_weight=constraints.get("sample_weight"))
    for model in (MOSAIC(8, **settings).fit(FEW, **constraints), detector):
        assert set(numbers(model).values()) == {int(model.is_outlier_.sum())}


@pytest.mark.usefixtures("by_passes")
@pytest.mark.parametrize("source_of", [np.asarray, open_source], ids=["in memory", "by passes"])
@pytest.mark.parametrize(("settings", "constraints"), CASES)
def test_of_a_sample_all_say_one_estimate_and_the_number_once_all_rows_were_looked_at(source_of, settings, constraints):
    model = MOSAIC(8, **settings).fit(source_of(MANY), **constraints)
    (estimate,) = set(numbers(model).values())
    exact = int(model.is_outlier_.sum())
    assert set(numbers(model).values()) == {exact}
    assert abs(estimate - exact) <= 0.25 * exact
    assert "About" not in next(line for line in model.explain() if "utlier" in line)
    if "min_group" in settings:  # the rows that a group keeps from being outliers
        told = int(re.search(r"([\d,]+) more would be outliers", str(model.explain()))[1].replace(",", ""))
        assert told == model.facts_.outliers.protected == page_of(report_html(model))["bins"]["grouped"]


def test_weights_of_a_sample_are_not_numbers_of_rows():
    model = MOSAIC(8).fit(MANY, sample_weight=2.0 + np.arange(len(MANY)) % 2)
    assert len(set(numbers(model).values())) == 1
    assert sum(pick.stands_for for pick in model.facts_.picks) <= len(MANY)
    exact = int(model.is_outlier_.sum())  # looks at all rows
    assert set(numbers(model).values()) == {exact}


@pytest.mark.usefixtures("by_passes")
def test_the_commands_say_the_same_as_their_files_and_pages(tmp_path, capsys, monkeypatch):
    pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(MANY, columns=list("xyz")).to_parquet("many.parquet")
    words = ("many.parquet", "--report", "page.html", "--json", "-f")
    ran = run(capsys, "select", *words, "-k", 8, "--labels", "labels.parquet", "-o", "picks.csv")
    assert ran.code == 0, ran
    answer, labels = json.loads(ran.out), pd.read_parquet("labels.parquet")
    said = [answer["outliers"]["n"], number_in(answer["sentence"]), number_in(" ".join(answer["decisions"]))]
    assert {*said, page_of((tmp_path / "page.html").read_text())["n_outliers"]} == {int(labels["is_outlier"].sum())}
    never_load(monkeypatch)
    answer = json.loads(run(capsys, "outliers", *words).out)
    page = page_of((tmp_path / "page.html").read_text())
    said = [number_in(answer["sentence"]), number_in(answer["decisions"][-2]), page["n_outliers"]]
    assert answer["estimator"] == "MOSAIC"
    assert {*said, len(answer["rows"])} == {answer["n_outliers"]}
