"""The commands do what they say, and write where they say."""

import base64
import json
import re
import shlex
import subprocess
import warnings
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow.csv import read_csv
from pyarrow.feather import write_feather
from pyarrow.parquet import write_table
from sklearn.datasets import load_digits

import mosaic
from cli_runs import COLUMNS, command, environment, in_terminal, run, run_apart, run_on_terminal
from mosaic import MOSAIC, MOSAICOutlierDetector, Paper, Polynomial, __version__, datasets, load
from mosaic.cli import CODES
from mosaic.cli.options import DETECTOR_SETTINGS, GROUPS, SETTINGS
from mosaic.cli.parser import COMMANDS, command_parser
from mosaic.cli.run import ODD_ROWS, UNREADABLE
from mosaic.exceptions import SelectionWarning
from mosaic.show import report_html

POINTS = datasets.blobs_with_gross_outliers().X
ADDED = ["mosaic_rank", "mosaic_row", "mosaic_stands_for", "mosaic_effective_count", "mosaic_reason"]


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
    found = json.loads(ran.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["schema"] == f"mosaic/{command}/1"
    assert found.keys() == {"schema", "file", "notes", "outputs", *KEYS[command]}
    assert found["file"].keys() == {"path", "kind", "rows", "features", "feature_names"}
    return found


def table_of(ran):
    """The CSV file on stdout."""
    return read_csv(pa.BufferReader(ran.out.encode()))


def options_of(name):
    return {action.dest for action in command_parser(name)._actions}


def test_every_parameter_of_the_estimators_is_an_option():
    assert set(SETTINGS) == set(MOSAIC().get_params()) - {"verbose"}
    assert set(DETECTOR_SETTINGS) == set(MOSAICOutlierDetector().get_params()) - {"verbose"}
    for name in ("select", "report", "explain", "estimate"):
        assert set(SETTINGS) <= options_of(name), name
    assert set(SETTINGS) - {"n_representatives", "coverage"} <= options_of("path")
    assert set(DETECTOR_SETTINGS) <= options_of("outliers")


def test_every_option_has_a_command_and_a_place_in_the_documentation():
    known, text = set.union(*map(options_of, COMMANDS)), (Path(__file__).parents[1] / "docs" / "cli.md").read_text("utf-8")
    options = [option for options in GROUPS.values() for option in options]
    assert [option.dest for option in options if option.dest not in known] == []
    assert [option.dest for option in options if not any(flag in text for flag in option.flags if flag[:2] == "--")] == []


def test_options_reach_the_estimator(folder, monkeypatch, capsys):
    seen = {}

    def fit(self, X, **constraints):
        seen.update(self.get_params(), **constraints)
        raise KeyboardInterrupt

    monkeypatch.setattr(MOSAIC, "fit", fit)
    words = "--kernel polynomial,degree=2,coef0=-0.5 --gamma 0.3 --scale yes --outliers report --contamination 0.1 "
    words += "--memory-budget 1.5GiB --seed 7 --n-jobs -1 -k 0.05 "
    words += "--algorithm paper,alpha=50,diversity=0.2,tol=1e-2 --must-include p3 p5 p3"
    assert run(capsys, "select", "points.csv", *words.split()).code == 130
    given = {
        "kernel": Polynomial(2, -0.5), "gamma": 0.3, "scale": True, "outliers": "report",
        "contamination": 0.1, "memory_budget": "1.5GiB", "random_state": 7,
        "n_jobs": -1, "n_representatives": 0.05,
        "algorithm": Paper(alpha=50, diversity=0.2, tol=0.01),
    }  # fmt: skip

    assert seen["must_include"].tolist() == [3, 5]  # a row that is named twice counts once
    assert {name: seen[name] for name in MOSAIC().get_params(deep=False)} == MOSAIC().get_params(deep=False) | given
    assert run(capsys, "select", "points.csv", "--min-group", "4", "-k", "5%").code == 130
    assert (seen["min_group"], seen["n_representatives"]) == (4, 0.05)


def test_into_a_pipe_goes_csv_and_nothing_else(folder, capsys):
    ran = run(capsys, "select", "points.csv", "-k", "10", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    table = table_of(ran)
    assert table.column_names == ["id", "x", "y", "kind_id", "note", *ADDED]
    model = MOSAIC(10).fit(POINTS)
    assert table["mosaic_row"].to_pylist() == model.representative_indices_.tolist()
    assert table["id"].to_pylist() == [f"p{row}" for row in model.representative_indices_]
    assert table["note"].to_pylist() == [f"é, {row}" for row in model.representative_indices_]
    assert table["mosaic_rank"].to_pylist() == list(range(1, 11))
    assert table["mosaic_stands_for"].to_pylist() == np.bincount(model.labels_[model.labels_ >= 0]).tolist()
    counts = model.effective_count_[model.representative_indices_]
    np.testing.assert_allclose(table["mosaic_effective_count"].to_numpy(), counts)
    assert table["mosaic_reason"][0].as_py().startswith("chosen as number 1 of 10")
    (folder / "taken.csv").write_text((folder / "points.csv").read_text().replace("kind_id", "mosaic_rank", 1))
    header = run(capsys, "select", "taken.csv", "-k", "3", "-q").out.splitlines()[0].split(",")
    assert header[3:6] == ["mosaic_rank", "note", "mosaic_rank_"]


def test_labels_say_of_every_row_who_stands_for_it(folder, capsys):
    assert run(capsys, "select", "points.csv", "-k", "5", "--labels", "labels.csv", "-o", "picks.csv", "-q").code == 0
    labels = read_csv(folder / "labels.csv")
    assert labels.column_names == [
        "row", "name", "representative_row", "representative", "is_outlier", "effective_count",
    ]  # fmt: skip
    model = MOSAIC(5).fit(POINTS)
    wanted = [int(model.representative_indices_[label]) if label >= 0 else None for label in model.labels_]
    assert labels["representative_row"].to_pylist() == wanted
    assert labels["representative"].to_pylist()[:3] == [f"p{row}" for row in wanted[:3]]
    assert labels["name"].to_pylist() == [f"p{i}" for i in range(400)]
    assert labels["is_outlier"].to_pylist() == model.is_outlier_.tolist()


def test_demands_on_rows_and_groups_are_kept(folder, capsys):
    words = ["select", "points.csv", "-k", "6", "-q", "--group", "kind_id", "--quotas", '{"a": 4, "b": 2}']
    picks = table_of(run(capsys, *words, "--must-include", "p1", "p4", "--exclude", "p191", "p68"))
    assert sorted(picks["kind_id"].to_pylist()) == list("aaaabb")
    ids = set(picks["id"].to_pylist())
    assert (ids & {"p1", "p4"}, ids & {"p191", "p68"}) == ({"p1", "p4"}, set())


def test_outliers_are_those_of_the_detector(folder, capsys):
    detector = MOSAICOutlierDetector().fit(POINTS)
    found = table_of(run(capsys, "outliers", "points.csv", "-q"))
    assert set(found["mosaic_row"].to_pylist()) == set(np.flatnonzero(detector.is_outlier_).tolist())
    assert found["mosaic_is_outlier"].to_pylist() == [True] * 8
    assert (np.diff(found["mosaic_score"].to_numpy()) >= 0).all()
    everybody = table_of(run(capsys, "outliers", "points.csv", "--all", "-q"))
    assert everybody["mosaic_row"].to_pylist() == list(range(400))
    np.testing.assert_allclose(everybody["mosaic_score"].to_numpy(), np.log(detector.effective_count_))
    assert everybody["mosaic_is_outlier"].to_pylist() == detector.is_outlier_.tolist()


def test_outliers_have_a_report(folder, capsys):
    ran = run(capsys, "outliers", "points.csv", "--report", "odd.html", "--title", "The <odd> ones", "--json", "-q")
    assert ran.code == 0
    assert json.loads(ran.out)["outputs"] == {"report": "odd.html"}
    page = (folder / "odd.html").read_text("utf-8")
    assert "<title>The &lt;odd&gt; ones</title>" in page
    assert "<odd>" not in page
    assert "mosaic outliers points.csv --report odd.html" in page
    assert "usual" in page  # reasons in columns
    assert 'id="picks"' not in page
    assert run(capsys, "outliers", "points.csv", "--report", "odd.html").code == 4  # it is there already
    assert 'id="picks"' not in report_html(MOSAICOutlierDetector().fit(POINTS))  # that of Python


def test_outliers_of_data_that_is_too_large_are_found_by_passes(folder, capsys, monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 300)
    monkeypatch.setattr("mosaic.choosing.plan.leaves_room", lambda *sizes: False)
    monkeypatch.setattr("mosaic.rows.arrays.may_load", lambda *sizes: False)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    X[::100] += 20.0
    np.save(folder / "large.npy", X)
    ran = run(capsys, "outliers", "large.npy", "--contamination", "0.1", "--report", "odd.html")
    assert ran.code == 0
    assert "too large to be taken into memory" in ran.err
    found = table_of(ran)
    model = MOSAIC(contamination=0.1).fit(X)
    assert set(found["mosaic_row"].to_pylist()) == set(np.flatnonzero(model.is_outlier_).tolist())
    assert all(reason.startswith("an outlier: ") for reason in found["mosaic_reason"].to_pylist())
    page = (folder / "odd.html").read_text("utf-8")
    assert "of the others this page has a sample" in page
    assert 'id="picks"' not in page


def test_the_curve_is_nested_and_suggests_the_automatic_number(folder, capsys, monkeypatch):
    assert run(capsys, "path", "points.csv", "-o", "curve.csv", "-q").out == ""
    curve = read_csv(folder / "curve.csv")
    assert curve.column_names == ["k", "row", "name", "similarity", "coverage", "bound"]
    assert (curve["bound"].to_numpy() >= curve["coverage"].to_numpy()).all()
    assert (np.diff(curve["coverage"].to_numpy()) >= -1e-12).all()
    short = run(capsys, "path", "points.csv", "--max-representatives", "7", "-q").out
    assert short.splitlines() == [line.replace('"', "") for line in (folder / "curve.csv").read_text().splitlines()[:8]]
    ran = run_on_terminal(capsys, monkeypatch, "path", "points.csv", "--max-representatives", "7", "-q")
    path = mosaic.path(POINTS)
    assert ran.out.startswith(f"Suggested: {path.suggested} representatives, coverage ")
    least = [f"{100 * share:g} % needs at least {path.least_number(share)} rows" for share in (0.5, 0.8, 0.9, 0.95)]
    assert f"A coverage of {', '.join(least)}." in " ".join(ran.out.split())


@pytest.mark.usefixtures("by_passes")
def test_certificate_of_a_file_that_is_read_in_passes_is_told_and_kept(folder, capsys):
    words = ("select", "points.csv", "-k", "5", "--json", "--save", "model.mosaic")
    answer = json.loads(run(capsys, *words).out)
    assert answer["certificate"]["gap"] < 0.25
    assert load("model.mosaic").certificate_.gap == answer["certificate"]["gap"]
    assert json.loads(run(capsys, "report", "model.mosaic", "--json").out)["certificate"]["gap"] == answer["certificate"]["gap"]


def test_explain_names_rows_by_their_ids(folder, capsys):
    model = MOSAIC(5).fit(POINTS)
    pick, odd = int(model.representative_indices_[0]), int(np.flatnonzero(model.is_outlier_)[0])
    other = next(i for i in range(400) if model.labels_[i] == 0 and i != pick)
    words = ("explain", "points.csv", f"p{pick}", "-k", "5", f"p{other}", "--row", odd, "-q")
    lines = run(capsys, *words).out.splitlines()
    assert lines[0].startswith(f"p{pick} (row {pick}): chosen as number 1 of 5")
    assert lines[1].startswith(f"p{other} (row {other}): not chosen: p{pick} (row {pick}) stands for it")
    assert lines[2].startswith(f"p{odd} (row {odd}): rejected as an outlier")
    found = json.loads(run(capsys, *words, "--json").out)["rows"]
    assert [row["status"] for row in found] == [model.explain(row).status for row in (pick, other, odd)]
    assert (found[0]["row"], found[0]["rank"], found[0]["stands_for"]) == (pick, 1, int((model.labels_ == 0).sum()))
    assert [row["represented_by"] for row in found[1:]] == [pick, None]
    assert run(capsys, "explain", "points.npy", "-k", "5").out.splitlines() == list(model.explain())  # what was decided


def test_a_terminal_gets_a_short_answer(folder, capsys, monkeypatch):
    out = run_on_terminal(capsys, monkeypatch, "select", "points.csv", "-k", "30", "-o", "picks.csv").out
    lines = out.splitlines()
    assert out.startswith("30 representatives of 400 rows, coverage ")
    assert max(map(len, lines)) <= COLUMNS
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["rank", "row", "name", "stands", "for", "why"]
    assert table[21] == "… and 10 more."
    assert " ".join(out.split()).count("Random choices are") == 1
    for said in ("8 outliers, oddest first: p", "note: Rows are named by column 'id'"):
        assert said in out
    assert lines[-1] == "picks: picks.csv"


@pytest.mark.parametrize(
    ("options", "begins"),
    [(["--quiet"], "5 representatives of 400 rows, coverage "), (["--json"], '{"schema"'), (["--quiet", "-o", "picks.csv"], "")],
)
def test_a_terminal_gets_nothing_but_the_answer_where_that_is_asked_for(folder, capsys, monkeypatch, options, begins):
    ran = run_on_terminal(capsys, monkeypatch, "select", "points.csv", "-k", "5", *options)
    assert (ran.code, ran.err, "note: " in ran.out) == (0, "", False)
    assert ran.out.startswith(begins)
    assert begins or not ran.out


def test_names_cannot_steer_the_terminal(folder, capsys, monkeypatch):
    text = (folder / "points.csv").read_text()
    (folder / "hostile.csv").write_text(re.sub(r"^p(\d+),", "\x1b[2Jp\\1,", text, flags=re.MULTILINE))
    for words in (["select", "-k", "3"], ["outliers"], ["explain", "--row", "3"]):
        ran = run_on_terminal(capsys, monkeypatch, words[0], "hostile.csv", *words[1:], "-q")
        assert (ran.code, "\x1b" in ran.out) == (0, False)


def test_pictures_in_a_folder_are_named_by_their_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    rng = np.random.default_rng(0)
    for i, tone in enumerate(rng.choice([40, 200], 30)):
        Image.fromarray(np.uint8(tone + rng.integers(0, 30, (12, 12)))).save(f"pictures/{i:02d}.png")
    words = ["select", "pictures", "-k", "2", "--image-size", "8", "--report", "page.html", "-o", "picks.csv"]
    ran = run(capsys, *words, "--json")
    assert (ran.code, "8×8" in ran.out) == (0, True)
    picks = read_csv("picks.csv").to_pylist()
    assert all(next(iter(pick.values())) == f"{pick['mosaic_row']:02d}.png" for pick in picks)
    page = (tmp_path / "page.html").read_text()
    assert "data:image/" in page
    assert "mosaic select pictures -k 2" in page


@pytest.mark.slow
def test_output_into_a_pipe_is_utf8_whatever_the_terminal_uses_and_has_no_progress(folder):
    done = run_apart("select", "points.csv", "-k", "3", "--report", "report.html", PYTHONIOENCODING="ascii")
    assert "é, " in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_notes_go_to_stderr_unless_quiet_is_asked_for(folder, capsys):
    words = ["select", "points.csv", "-k", "5", "--algorithm", "paper,solver=fista,max_iter=2,tol=1e-9", "--force"]
    words += ["--report", "page.html"]
    ran = run(capsys, *words, "-o", "picks.csv")
    assert (ran.code, ran.out) == (0, "")
    assert all(line.startswith("note: ") for line in ran.err.splitlines())
    assert "note: the certified gap is " in ran.err
    assert "Warning" not in ran.err
    assert run(capsys, *words, "-o", "picks.csv", "-q").err == ""
    notes = json.loads(run(capsys, *words, "--json").out)["notes"]
    (gap,) = (note for note in notes if "above the tolerance 1e-09" in note)
    assert gap.endswith("raise max_iter, loosen tol, or use solver='auto'.")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_fits_one_screen_and_has_examples_that_work(folder, capsys, name):
    short, full = (run(capsys, name, option).out for option in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 32
    assert f"mosaic {name} --help-all" in short
    assert ("--quiet" in short, "--quiet" in full) == (False, True)
    examples = re.findall(r"^  (mosaic .*)$", short.split("examples:")[1], re.MULTILINE)
    assert examples == list(COMMANDS[name].examples)
    for example in examples if name not in ("demo", "completion") else []:  # which has tests of its own
        again = ["--force"] if name in ("select", "outliers", "path", "predict", "report") else []
        if "model.mosaic" in example and "--save" not in example:
            assert run(capsys, "select", "points.csv", "-k", 10, "--save", "model.mosaic", "--force").code == 0
        if "picks.csv" in example and "-o" not in example:
            assert run(capsys, "select", "points.csv", "-k", 10, "-o", "picks.csv", "--force").code == 0
        assert run(capsys, *shlex.split(example.replace("--group kind", "--group kind_id"))[1:], *again).code == 0


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_lists_commands_and_exit_codes(capsys, words):
    ran = run(capsys, *words)
    assert ran.code == 0
    assert all(name in ran.out for name in COMMANDS)
    assert {int(code) for code in re.findall(r"^  (\d+) ", ran.out, re.MULTILINE)} == {0, *CODES.values(), UNREADABLE, ODD_ROWS}
    assert run(capsys, "--version").out == f"mosaic {__version__}\n"


def test_the_demo_finds_the_noise_and_replaces_its_own_files_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn.datasets.load_digits", partial(load_digits, n_class=2))
    ran = run(capsys, "demo")
    assert ran.code == 0
    assert "18 of 18 images of noise" in ran.err
    picks = read_csv(tmp_path / "mosaic-demo" / "picks.csv")
    assert picks.num_rows == 20
    assert "noise" not in picks["digit"].to_pylist()
    page = tmp_path / "mosaic-demo" / "report.html"
    data = re.search(r'id="facts"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)[1]
    assert b"data:image/png;base64," in zlib.decompress(base64.b64decode(data))
    (tmp_path / "mine").mkdir()
    for name, text in {"report.html": "on mosaic demo", "picks.csv": "id\nimage,digit,mosaic_rank\n"}.items():
        (tmp_path / "mine" / name).write_text(text)
        assert run(capsys, "demo", "mine").code == 4
        assert (tmp_path / "mine" / name).read_text() == text
        (tmp_path / "mine" / name).unlink()
    old = page.stat().st_ino
    found = answer(run(capsys, "demo", "--json"), "demo")
    assert found["outputs"] == {"picks": "mosaic-demo/picks.csv", "report": "mosaic-demo/report.html"}
    assert found["notes"][-1].startswith("18 of 18 images of noise")
    assert page.stat().st_ino != old


def test_the_first_line_comes_before_anything_heavy_is_imported(folder):
    code, seen = in_terminal(command("estimate", "points.npy", options=["-X", "importtime"]), folder)
    assert code == 0
    before, after = seen.split("mosaic: opening points.npy (6.4 KiB) …")
    assert not re.search(r"\b(numpy|scipy|sklearn|pyarrow)\b", before)
    assert re.search(r"\| +numpy\b", after)


@pytest.mark.slow
def test_a_terminal_is_shown_progress_and_then_the_answer(folder):
    code, seen = in_terminal(command("select", "points.csv", "-k", "5"), folder)
    places = [seen.index(word) for word in ("mosaic: opening", "similarities", "5 representatives of")]
    assert places == sorted(places)
    assert (code, "Traceback" in seen) == (0, False)


@pytest.mark.slow
def test_output_that_is_no_longer_read_is_no_error(folder):
    words, pipe = command("estimate", "points.npy", "--json"), subprocess.PIPE
    with subprocess.Popen(words, env=environment(), stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 141


def test_columns_that_csv_cannot_hold_are_named(folder, capsys):
    points = read_csv("points.csv")
    points = points.append_column("vector", pa.array([[1.0, 2.0]] * points.num_rows))
    write_feather(points, "points.feather")
    for name in ("select", "outliers"):
        ran = run(capsys, name, "points.feather", "-o", f"{name}.csv")
        assert ran.code == 0
        assert "CSV cannot hold lists: vector." in ran.err
        assert "vector" not in (folder / f"{name}.csv").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "select points.csv -k 5 -o picks.csv --report report.html --labels labels.parquet",
        "select points.npy --coverage 0.8 --outliers keep",
        "select points.npy -k 5 --outliers report --contamination 0.2",
        "select points.npy -k 3 --kernel linear --algorithm paper",
        "outliers points.npy --all --contamination 0.1 -o odd.csv",
        "path points.csv --max-representatives 5 -o curve.csv",
        "outliers points.csv --save kept.mosaic",
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


def test_an_answer_has_picks_values_outliers_and_certificate(folder, capsys):
    found = answer(run(capsys, "select", "points.csv", "-k", "5", "--json"), "select")
    model = MOSAIC(5).fit(np.load("points.npy"))
    plain = model.facts_.to_dict()
    assert [pick["row"] for pick in found["picks"]] == model.representative_indices_.tolist()
    assert [pick["rank"] for pick in found["picks"]] == [1, 2, 3, 4, 5]
    first = found["picks"][0]
    assert first.keys() == plain["picks"][0].keys() | {"values"}
    assert first["values"]["note"] == f"é, {first['row']}"
    assert first["name"] == first["values"]["id"] == f"p{first['row']}"
    assert found["file"]["feature_names"] == ["x", "y"]
    assert found["outliers"]["n"] == 8
    assert {each["row"] for each in found["outliers"]["lowest"]} == set(np.flatnonzero(model.is_outlier_).tolist())
    numbers = [
        {name: value for name, value in each["certificate"].items() if isinstance(value, float)} for each in (found, plain)
    ]
    assert numbers[0] == pytest.approx(numbers[1])
    assert found["certificate"]["sentence"] == plain["certificate"]["sentence"]
    assert found["coverage"] == pytest.approx(model.coverage_)
    for part in ("outliers", "settings"):
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
    far = pa.array([400_000_000_000] * 6, pa.timestamp("s"))  # a date that Python does not know
    days, odd = pa.array(range(6), pa.date32()), [None, float("inf")] * 3
    write_table(pa.table({"x": [0.0, 0.1, 0.2, 5.0, 5.1, 5.2], "far": far, "day": days, "odd": odd}), folder / "far.parquet")
    words = ("select", "far.parquet", "-k", "2", "--columns", "x", "-o", "picks.parquet", "--json")
    picks = answer(run(capsys, *words), "select")["picks"]
    assert {pick["values"]["far"] for pick in picks} == {"14645-06-30 15:06:40.000"}
    assert {pick["values"]["odd"] for pick in picks} == {None}
    assert all(pick["values"]["day"] == f"1970-01-0{pick['row'] + 1}" for pick in picks)
