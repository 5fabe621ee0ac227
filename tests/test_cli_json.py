"""What programs read: one JSON object."""

from __future__ import annotations

import json
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cli_runs import run
from mosaic import MOSAIC
from mosaic.exceptions import SelectionWarning

pa = pytest.importorskip("pyarrow")
for module in ("pyarrow.parquet", "jinja2", "PIL"):
    pytest.importorskip(module)


def refuse(word):
    raise AssertionError(f"{word} is no JSON")


#: Keys of the answers, besides those that all have.
KEYS = {
    "select": {"sentence", "coverage", "picks", "outliers", "certificate", "decisions", "settings"},
    "outliers": {"sentence", "n_outliers", "rule", "threshold", "estimator", "rows", "decisions", "settings"},
    "predict": {"sentence", "model", "n_outliers", "rows"},
    "path": {"sentence", "suggested", "curve"},
    "estimate": {"sentence", "estimate"},
    "explain": {"sentence", "decisions", "rows"},
}
KEYS |= {"report": KEYS["select"], "demo": KEYS["select"]}


def answer(ran, command):
    """The object on stdout, which is all that is there."""
    assert ran.out.count("\n") == 1
    found = json.loads(ran.out, parse_constant=refuse)
    assert found["schema"] == f"mosaic/{command}/1"
    assert found.keys() == {"schema", "file", "notes", "outputs", *KEYS[command]}
    assert found["file"].keys() == {"path", "kind", "rows", "features", "feature_names"}
    return found


@pytest.mark.parametrize(
    "words",
    [
        "select points.csv -k 5",
        "select points.csv -k 5 -o picks.csv --report report.html --labels labels.parquet",
        "select points.npy --coverage 0.8 --outliers keep",
        "select points.npy -k 5 --outliers report --contamination 0.2",
        "select points.npy -k 3 --kernel linear --algorithm paper",
        "select points.npy -k 3 --algorithm sketch",
        "outliers points.csv",
        "outliers points.npy --all --contamination 0.1 -o odd.csv",
        "path points.csv --max-representatives 5 -o curve.csv",
        "select points.csv -k 5 --save kept.mosaic",
        "outliers points.csv --save kept.mosaic",
        "predict model.mosaic points.csv",
        "predict detector.mosaic points.csv -o placed.parquet",
        "report model.mosaic",
        "explain model.mosaic p1 p2 p51",
        "explain detector.mosaic p1 p51",
        "estimate points.npy",
        "report points.csv -k 5",
        "explain points.csv p1 p2 p51 -k 5",
        "explain points.npy",
    ],
)
def test_answers_are_one_object(folder, capsys, words):
    if ".mosaic" in words.partition("--save")[0]:
        assert run(capsys, "select", "points.csv", "-k", 5, "--save", "model.mosaic").code == 0
        assert run(capsys, "outliers", "points.csv", "--save", "detector.mosaic").code == 0
    ran = run(capsys, *words.split(), "--json")
    assert (ran.code, ran.err) == (0, "")
    found = answer(ran, words.split()[0])
    for path in found.get("outputs", {}).values():
        assert (folder / path).exists()


def test_the_demo_answers_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn.datasets.load_digits", partial(load_digits, n_class=2))
    found = answer(run(capsys, "demo", "here", "--json"), "demo")
    assert found["outputs"] == {"picks": "here/picks.csv", "report": "here/report.html"}
    assert found["notes"][-1].startswith("18 of 18 images of noise")


def test_an_answer_has_picks_values_outliers_and_certificate(folder, capsys):
    found = answer(run(capsys, "select", "points.csv", "-k", "5", "--json"), "select")
    model = MOSAIC(5).fit(np.load("points.npy"))
    assert [pick["row"] for pick in found["picks"]] == model.representative_indices_.tolist()
    assert [pick["rank"] for pick in found["picks"]] == [1, 2, 3, 4, 5]
    first = found["picks"][0]
    assert first["values"]["note"] == f"é, {first['row']}"
    assert first["name"] == first["values"]["id"] == f"p{first['row']}"
    assert found["file"]["feature_names"] == ["x", "y"]
    assert found["outliers"]["n"] == 8
    assert {each["row"] for each in found["outliers"]["lowest"]} == set(np.flatnonzero(model.is_outlier_).tolist())
    assert found["certificate"]["excess"] == pytest.approx(model.certificate_.excess)
    assert found["coverage"] == pytest.approx(model.coverage_)
    plain = model.facts_.to_dict()
    assert found["picks"][0].keys() == plain["picks"][0].keys() | {"values"}
    for part in ("outliers", "certificate", "settings"):
        assert found[part].keys() == plain[part].keys()
    assert found["settings"]["parameters"]["n_representatives"] == 5
    assert any("column 'id'" in note for note in found["notes"])


def test_warnings_of_the_library_name_options_and_ids(folder, capsys, monkeypatch):
    fit = MOSAIC.fit

    def warning(self, X, **constraints):
        warnings.warn("`row 7` is alone. Lower `min_group`, set `outliers='keep'`.", SelectionWarning, stacklevel=2)
        return fit(self, X, **constraints)

    monkeypatch.setattr(MOSAIC, "fit", warning)
    found = answer(run(capsys, "select", "points.csv", "-k", "3", "--json"), "select")
    assert found["notes"][-1] == "p7 (row 7) is alone. Lower --min-group, set --outliers keep."


def test_values_that_json_cannot_hold_become_null_or_text(folder, capsys):
    lines = (folder / "points.csv").read_text().splitlines()
    text = [f"{lines[0]},odd,day"] + [f"{line},{'inf' if i % 2 else ''},2020-02-0{i % 9 + 1}" for i, line in enumerate(lines[1:])]
    (folder / "odd.csv").write_text("\n".join(text) + "\n")
    found = answer(run(capsys, "select", "odd.csv", "-k", "3", "--exclude-columns", "odd", "--json"), "select")
    assert {pick["values"]["odd"] for pick in found["picks"]} == {None}
    assert all(pick["values"]["day"].startswith("2020-02-0") for pick in found["picks"])


def test_a_date_that_python_does_not_know_is_text_and_no_fault(folder, capsys):
    far = pa.array([400_000_000_000] * 6, pa.timestamp("s"))
    pa.parquet.write_table(pa.table({"x": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2], "day": far}), folder / "far.parquet")
    found = answer(run(capsys, "select", "far.parquet", "-k", "2", "-o", "picks.parquet", "--json"), "select")
    assert {pick["values"]["day"] for pick in found["picks"]} == {"14645-06-30 15:06:40.000"}
