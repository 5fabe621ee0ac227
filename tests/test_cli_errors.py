"""What goes wrong is said once, in words, with the exit code that the help lists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import numpy as np
import pytest

from cli_runs import command, environment, run
from mosaic import MOSAIC
from mosaic.cli import CODES
from mosaic.cli.parser import EXIT_CODES
from mosaic.cli.run import UNREADABLE
from mosaic.exceptions import InvalidInputError, MemoryBudgetError, MissingDependencyError

pa = pytest.importorskip("pyarrow")
for module in ("pyarrow.parquet", "jinja2", "PIL"):
    pytest.importorskip(module)


def holes(folder):
    X = np.load(folder / "points.npy")
    X[17, 1] = np.nan
    np.save(folder / "holes.npy", X)


def ragged(folder):
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n4,5\n")


def taken(folder):
    (folder / "picks.csv").write_text("mine")


def twins(folder):
    lines = (folder / "points.csv").read_text().splitlines()
    lines[9] = lines[8].replace("p7", "p8")
    times = ["times", *(str(i % 2) for i in range(400))]
    (folder / "twins.csv").write_text("".join(f"{line},{w}\n" for line, w in zip(lines, times, strict=True)))


def stores(folder):
    (folder / "parts").mkdir()
    (folder / "array.zarr").mkdir()
    pa.parquet.write_table(pa.table({"x": [1.0, 2.0]}), folder / "parts" / "one.parquet")


def nothing(folder):
    """All is there."""


FAULTS = [
    # what is prepared, the command, kind, exit code, words of the message
    (nothing, "select nope.csv", "input", 3, ["nope.csv", "no such file"]),
    (holes, "select holes.npy -k 5", "input", 3, ["holes.npy", "17"]),
    (ragged, "select ragged.csv -k 2", "input", 3, ["ragged.csv", "line 3"]),
    (nothing, "select points.csv --columns hieght", "input", 3, ["hieght", "points.csv"]),
    (nothing, "select points.csv -k 1000", "usage", 2, ["1000", "more than there are points"]),
    (nothing, "select points.csv -k 5 --contamination 0.9", "usage", 2, ["contamination", "0.9"]),
    (nothing, "select points.csv -k 5 --must-include q7", "usage", 2, ["'q7'", "column 'id'"]),
    (nothing, "explain points.npy --row 400", "usage", 2, ["no row 400", "the last one is 399"]),
    (nothing, "path points.npy --max-representatives 0", "usage", 2, ["max-representatives", "0"]),
    (taken, "select points.csv -k 5 -o picks.csv", "output", 4, ["picks.csv", "exists", "--force"]),
    (nothing, "select points.csv -k 5 -o no/picks.csv", "output", 4, ["no/picks.csv", "folder"]),
    (nothing, "select points.csv -k 5 -o picks.npy", "output", 4, ["picks.npy"]),
    (nothing, "select points.csv -k 5 -o picks.xyz", "output", 4, [".xyz"]),
    (nothing, "select points.csv -k 5 --report picks.csv", "output", 4, ["HTML", "picks.html"]),
    (nothing, "select points.csv -k 5 -o points.csv --force", "output", 4, ["points.csv", "the input"]),
    (nothing, "select points.csv -o a.csv --labels ./a.csv", "output", 4, ["a.csv", "--output"]),
    (nothing, "select points.npy --memory-budget 10kB", "memory", 5, ["KiB", "Raise --memory-budget"]),
    (nothing, "select points.npy --algorithm sketch --memory-budget 850kB", "memory", 5, ["--memory-budget", "MiB"]),
    (nothing, "select points.csv --must-include p7 --exclude p7", "usage", 2, ["--exclude", "p7 (row 7)"]),
    (nothing, "path points.csv --must-include p7 --exclude p7", "usage", 2, ["--exclude", "p7 (row 7)"]),
    (twins, "select twins.csv --must-include p3 p7 p8 --columns x,y", "usage", 2, ["p7 (row 7) and p8 (row 8), which"]),
    (twins, "select twins.csv --weight times --must-include p3 p6", "usage", 2, ["p6 (row 6), whose --weight is 0"]),
    (nothing, "select points.csv -k 2 --must-include p1 p2 p3", "usage", 2, ["names 3 rows", "only 2"]),
    (nothing, "select points.csv -k 2 --quotas equal", "usage", 2, ["--quotas need groups", "Give --group"]),
    (nothing, "select points.csv -k 2 --colour", "usage", 2, ["--colour is for", "points.csv"]),
    (nothing, "outliers points.npy --image-size 8", "usage", 2, ["--image-size is for", "points.npy"]),
    (stores, "select parts -k 1 -o parts/two.parquet", "output", 4, ["parts/two.parquet", "lies in the input, "]),
    (stores, "report array.zarr -o array.zarr/report.html", "output", 4, ["lies in the input, "]),
]


PARTS = {"kind", "message", "parameter", "value", "fault", "remedy", "file", "where", "exit_code"}


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("prepare", "words", "kind", "code", "said"), FAULTS, ids=[fault[1] for fault in FAULTS])
def test_a_fault_says_what_it_is_and_ends_with_its_code(folder, capsys, prepare, words, kind, code, said):
    prepare(folder)
    before = contents(folder)
    ran = run(capsys, *words.split())
    assert (ran.code, ran.out) == (code, "")
    lines = ran.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("mosaic: error: ")
    assert all(word in lines[0] for word in said)
    told = run(capsys, *words.split(), "--json")
    assert (told.code, told.err) == (code, "")
    found = json.loads(told.out)
    assert found["error"].keys() == PARTS
    assert (found["error"]["kind"], found["error"]["exit_code"]) == (kind, code)
    assert all(word in found["error"]["message"] for word in said)
    assert contents(folder) == before


def test_an_error_in_json_has_its_parts(folder, capsys):
    error = json.loads(run(capsys, "path", "points.csv", "--max-representatives", "0", "--json").out)["error"]
    assert (error["parameter"], error["value"], error["fault"]) == ("--max-representatives", "0", "must be at least 1")
    assert error["message"] == "--max-representatives must be at least 1; got 0."
    assert (error["file"], error["where"]) == (None, None)
    error = json.loads(run(capsys, "select", "points.csv", "--quotas", "equal", "--json").out)["error"]
    assert (error["parameter"], error["fault"]) == ("--quotas", "need groups")
    assert error["remedy"] == "Give --group, one label for every row."


def test_a_fault_in_a_file_is_told_by_its_parts(folder, capsys):
    ragged(folder)
    error = json.loads(run(capsys, "select", "ragged.csv", "--json").out)["error"]
    assert error["file"].endswith("ragged.csv")
    assert "line 3" in error["where"]
    assert error["fault"]
    assert error["remedy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("slect points.csv", "invalid choice: 'slect'"),
        ("select", "FILE"),
        ("select points.csv --kernle rbf", "there is no option --kernle. Did you mean --kernel"),
        ("select points.csv --mode paper", "Did you mean --algorithm paper?"),
        ("select points.csv --alpha 5", "Did you mean --algorithm paper,alpha=…?"),
        ("select points.csv --n-neighbors=4", "Did you mean --kernel diffusion,n_neighbors=…?"),
        ("select points.csv other.csv", "'other.csv' is one word too many"),
        ("select points.csv -k many", "'many' is not a number or 'auto'"),
        ("select points.csv -k 1.0", "write 1 for one"),
        ("select points.csv -k 1.5", "neither a whole number of rows nor a share"),
        ("select points.csv -k -3", "'-3' is neither a number of rows, at least 1, nor a share"),
        ("select points.csv -k nan", "'nan' is not a number or 'auto'"),
        ("select points.csv -k 5 --coverage 0.9", "not allowed with argument"),
        ("select points.csv --kernel fbr", "invalid choice: 'fbr'"),
        ("select points.csv --memory-budget lots", "'lots' must be a number of bytes > 0"),
        ("select points.csv --scale maybe", "'maybe' is not 'auto', 'yes' or 'no'"),
        ("select points.csv --quotas [1]", "is not 'proportional', 'equal', a number such as 10 or a JSON object"),
        ("select points.csv --columns a,,b", "has an empty name"),
        ("select points.csv --cover 0.5", "there is no option --cover"),
    ],
)
def test_wrong_usage_is_told_with_the_usage(folder, capsys, words, said):
    ran = run(capsys, *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("usage: mosaic ")
    assert said in ran.err
    error = json.loads(run(capsys, *words.split(), "--json").out)["error"]
    assert (error["kind"], error["exit_code"]) == ("usage", 2)
    assert said in error["message"]


def test_outputs_are_checked_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.setattr(MOSAIC, "fit", lambda *args, **more: pytest.fail("the work has begun"))
    for option in ("-o no/picks.csv", "--report no/report.html", "--labels no/labels.csv"):
        assert run(capsys, "select", "points.csv", *option.split()).code == 4
    assert run(capsys, "report", "points.csv", "-o", "no/report.html").code == 4


def test_a_row_that_is_named_twice_counts_once(folder, capsys, monkeypatch):
    def fit(self, X, must_include):
        assert must_include.tolist() == [3, 5]
        raise KeyboardInterrupt

    monkeypatch.setattr(MOSAIC, "fit", fit)
    assert run(capsys, "select", "points.csv", "--must-include", "p3", "p5", "p3").code == 130


def test_an_error_of_the_fit_names_rows_by_their_ids(folder, capsys, monkeypatch):
    def fit(self, X, **constraints):
        fault = "names `row 7`, which is equal to another row that it names"
        raise InvalidInputError(fault, "Give it a `sample_weight`.", parameter="must_include")

    monkeypatch.setattr(MOSAIC, "fit", fit)
    ran = run(capsys, "select", "points.csv")
    said = "--must-include names p7 (row 7), which is equal to another row that it names. Give it a --weight."
    assert ran.err == f"mosaic: error: {said}\n"


@pytest.mark.parametrize(
    ("error", "kind", "file", "said"),
    [
        (InvalidInputError("must have 2 columns", "Add one.", parameter="X"), "input", "points.csv", "points.csv must"),
        (InvalidInputError("`sample_weight` and `groups` differ from `X`"), "usage", None, "--weight and --group differ from"),
        (InvalidInputError("n", "Use `scale=True`, `colour=True`."), "usage", None, "--scale yes, --colour."),
        (MemoryBudgetError("`algorithm='paper'` needs 9 MiB"), "memory", None, "--algorithm paper needs 9 MiB."),
        (InvalidInputError("a sentence about tol and row 7."), "usage", None, "a sentence about tol and row 7."),
        (InvalidInputError("`candidates` are few"), "usage", None, "candidates are few."),
        (InvalidInputError("see `row 7` and `row 4000`"), "usage", None, "see p7 (row 7) and row 4000."),
    ],
)
def test_errors_of_the_library_name_options_ids_and_the_file(folder, capsys, monkeypatch, error, kind, file, said):
    def fit(self, X, **constraints):
        raise error

    monkeypatch.setattr(MOSAIC, "fit", fit)
    ran = run(capsys, "select", "points.csv")
    assert said in ran.err
    told = json.loads(run(capsys, "select", "points.csv", "--json").out)["error"]
    assert (told["kind"], told["file"]) == (kind, file)
    assert said in told["message"]
    assert "`" not in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "streams", "code", "said"),
    [
        ("estimate points.npy --json", "> /dev/full", 4, "No space left on device"),
        ("slect --json", "> /dev/full", 2, "invalid choice"),
        ("slect", "2> /dev/full", 2, ""),
    ],
)
def test_streams_that_cannot_be_written_do_not_change_the_exit_code(folder, words, streams, code, said):
    line = f"{shlex.join(command(*words.split()))} {streams}"
    done = subprocess.run(["bash", "-c", line], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.slow
def test_without_pyarrow_it_is_pyarrow_that_is_missing(folder):
    (folder / "pyarrow.py").write_text('raise ModuleNotFoundError("No module named pyarrow", name="pyarrow")\n')
    words = command("select", "points.npy", "-k", "3")
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (6, "")
    assert "Use: pip install pyarrow" in done.stderr


def test_a_report_without_its_library_is_no_fault_of_the_output(folder, capsys, monkeypatch):
    def lacking(*args, **more):
        raise MissingDependencyError("A report needs Jinja2: pip install 'mosaic-select[report]'.")

    monkeypatch.setattr("mosaic.cli.run.write_report", lacking)
    ran = run(capsys, "report", "points.csv", "-k", "3", "-q")
    assert ran.code == 6
    assert "Jinja2" in ran.err


@pytest.mark.parametrize("how", ["option", "environment", "not at all"])
def test_a_fault_of_ours_says_so_and_shows_the_traceback_when_asked(folder, capsys, monkeypatch, how):
    def broken(self, X, **constraints):
        raise RuntimeError("two and two")

    monkeypatch.setattr(MOSAIC, "fit", broken)
    monkeypatch.setenv("MOSAIC_DEBUG", "1" if how == "environment" else "0")
    ran = run(capsys, "select", "points.csv", *(["--debug"] if how == "option" else []))
    assert ran.code == 1
    assert "mosaic: error: a fault of ours, RuntimeError: two and two." in ran.err
    assert ("Traceback" in ran.err) == (how != "not at all")


def test_a_hostile_file_name_does_not_reach_the_terminal(folder, capsys):
    ran = run(capsys, "select", "no\x1b[31m.csv")
    assert ran.code == 3
    assert "\x1b" not in ran.err


def test_help_lists_the_exit_codes():
    assert {int(code) for code in re.findall(r"^  (\d+) +", EXIT_CODES, re.MULTILINE)} == {0, *CODES.values(), UNREADABLE}


@pytest.mark.parametrize(
    ("error", "code", "kind", "said"),
    [
        (MemoryError(), 5, "memory", "the machine has no more memory"),
        (KeyboardInterrupt(), 130, "interrupted", "no half-written file is left"),
    ],
)
def test_what_ends_a_fit_is_told_in_json_too(folder, capsys, monkeypatch, error, code, kind, said):
    def fit(self, X, **constraints):
        raise error

    monkeypatch.setattr(MOSAIC, "fit", fit)
    ran = run(capsys, "select", "points.csv", "--json")
    told = json.loads(ran.out)["error"]
    assert (ran.code, told["exit_code"], told["kind"]) == (code, code, kind)
    assert said in told["message"]
