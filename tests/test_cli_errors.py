"""What goes wrong is said once, in words, with the exit code that the help lists."""

import json
import shlex
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from cli_runs import command, environment, run, run_apart
from mosaic import MOSAIC
from mosaic.exceptions import InvalidInputError, MemoryBudgetError, MissingDependencyError


@pytest.fixture
def faulty(folder):
    """The folder, with files that something is wrong with, and files in folders."""
    X = np.load(folder / "points.npy")
    X[17, 1] = np.nan
    np.save(folder / "holes.npy", X)
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n4,5\n")
    (folder / "taken.csv").write_text("mine")
    lines = (folder / "points.csv").read_text().splitlines()
    lines[9] = lines[8].replace("p7", "p8")
    times = ["times", *(str(i % 2) for i in range(400))]
    (folder / "twins.csv").write_text("".join(f"{line},{w}\n" for line, w in zip(lines, times, strict=True)))
    (folder / "parts").mkdir()
    (folder / "array.zarr").mkdir()
    write_table(pa.table({"x": [1.0, 2.0]}), folder / "parts" / "one.parquet")
    return folder


def fit_raises(monkeypatch, error):
    def fit(self, X, **constraints):
        raise error

    monkeypatch.setattr(MOSAIC, "fit", fit)


EXIT = {"usage": 2, "input": 3, "output": 4, "memory": 5, "missing": 6, "interrupted": 130}
FAULTS = [
    # the command, kind, words of the message
    ("select nope.csv", "input", ["nope.csv", "no such file"]),
    ("select holes.npy -k 5", "input", ["holes.npy", "17"]),
    ("select points.csv -k 1000", "usage", ["1000", "more than there are points"]),
    ("select points.csv -k 5 --must-include q7", "usage", ["'q7'", "column 'id'"]),
    ("explain points.npy --row 400", "usage", ["--row must lie in 0 … 399", "400"]),
    ("path points.npy --max-representatives 0", "usage", ["max-representatives", "0"]),
    ("select points.csv -k 5 -o taken.csv", "output", ["taken.csv", "exists", "--force"]),
    ("select points.csv -k 5 -o no/picks.csv", "output", ["no/picks.csv", "folder"]),
    ("select points.csv -k 5 -o picks.xyz", "output", [".xyz"]),
    ("select points.csv -k 5 --report picks.csv", "output", ["picks.csv", "Name a file that ends in .html"]),
    ("select points.csv -k 5 -o points.csv --force", "output", ["points.csv", "the input"]),
    ("compare points.csv taken.csv -o taken.csv --force", "output", ["taken.csv", "the other file"]),
    ("select points.csv -o a.csv --labels ./a.csv", "output", ["a.csv", "--output"]),
    ("select points.npy --memory-budget 10kB", "memory", ["KiB", "Raise --memory-budget"]),
    ("select points.npy --memory-budget 850kB", "memory", ["--memory-budget", "MiB"]),
    ("select points.csv --must-include p7 --exclude p7", "usage", ["--exclude", "p7 (row 7)"]),
    ("select twins.csv --must-include p3 p7 p8 --columns x,y", "usage", ["p7 (row 7) and p8 (row 8), which"]),
    ("select twins.csv --weight times --must-include p3 p6", "usage", ["p6 (row 6), whose --weight is 0"]),
    ("select points.csv -k 2 --must-include p1 p2 p3", "usage", ["names 3 rows", "only 2"]),
    ("select points.csv -k 2 --quotas equal", "usage", ["--quotas need groups", "Give --group"]),
    *(
        (f"select points.csv -k {k}", "usage", ["-k must be a whole number >= 1, a share", f"got {told}"])
        for k, told in (
            ("many", "'many'"),
            ("1.0", "1.0"),
            ("1.5", "1.5"),
            ("100%", "1.0"),
            ("%", "'%'"),
            ("-3", "-3"),
            ("yes", "True"),
        )
    ),
    ("select points.csv --coverage nan", "usage", ["--coverage", "got nan"]),
    ("select points.csv --contamination inf", "usage", ["--contamination", "got inf"]),
    ("select points.csv --gamma wide", "usage", ["--gamma", "'wide'"]),
    ("select points.csv --scale maybe", "usage", ["--scale must be 'auto'", "'maybe'"]),
    ("select points.csv --memory-budget 2", "usage", ["--memory-budget is 2 bytes", "Write the unit, as in 2GB."]),
    ("select points.csv --memory-budget lots", "usage", ["--memory-budget must be a number of bytes > 0", "'lots'"]),
    (
        "select points.csv --group kind_id --quotas [1]",
        "usage",
        ["--quotas must be 'proportional', 'equal', a whole number", "'[1]'"],
    ),
    ("select points.csv -k 2 --colour", "input", ["points.csv", "--colour means nothing for this kind of file (CSV file)"]),
    (
        "outliers points.npy --image-size 8",
        "input",
        ["points.npy", "--image-size means nothing for this kind of file (NumPy array)"],
    ),
    ("select parts -k 1 -o parts/two.parquet", "output", ["parts/two.parquet", "lies in the input, "]),
    ("report array.zarr -o array.zarr/report.html", "output", ["lies in the input, "]),
]


PARTS = {"kind", "message", "parameter", "value", "fault", "remedy", "file", "where", "exit_code"}


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("words", "kind", "said"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_says_what_it_is_and_ends_with_its_code(faulty, capsys, words, kind, said):
    before = contents(faulty)
    ran = run(capsys, *words.split())
    assert (ran.code, ran.out) == (EXIT[kind], "")
    (line,) = ran.err.splitlines()
    assert line.startswith("mosaic: error: ")
    assert all(word in line for word in said)
    told = run(capsys, *words.split(), "--json")
    assert (told.code, told.err) == (EXIT[kind], "")
    error = json.loads(told.out)["error"]
    assert error.keys() == PARTS
    assert (error["kind"], error["exit_code"]) == (kind, EXIT[kind])
    assert all(word in error["message"] for word in said)
    assert contents(faulty) == before


def test_an_error_in_json_has_its_parts(faulty, capsys):
    def error_of(*words):
        return json.loads(run(capsys, *words, "--json").out)["error"]

    error = error_of("path", "points.csv", "--max-representatives", "0")
    assert (error["parameter"], error["value"], error["fault"]) == ("--max-representatives", "0", "must be a whole number >= 1")
    assert error["message"] == "--max-representatives must be a whole number >= 1; got 0."
    assert (error["file"], error["where"]) == (None, None)
    error = error_of("select", "points.csv", "--quotas", "equal")
    assert (error["parameter"], error["fault"]) == ("--quotas", "need groups")
    assert error["remedy"] == "Give --group."
    error = error_of("select", "ragged.csv")
    assert error["file"].endswith("ragged.csv")
    assert "line 3" in error["where"]
    assert error["fault"]
    assert error["remedy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("slect points.csv", "there is no command 'slect'. Did you mean select?"),
        ("outlier points.csv", "there is no command 'outlier'. Did you mean outliers?"),
        ("points.csv -k 5", "Did you mean mosaic select points.csv?"),
        ("fit points.csv", "There are demo, select, outliers"),
        ("select", "FILE"),
        ("select points.csv --kernle rbf", "there is no option --kernle. Did you mean --kernel"),
        ("select points.csv --contaminaton 0.05", "there is no option --contaminaton. Did you mean --contamination?"),
        ("select points.csv --out picks.csv", "Did you mean --output or --outliers?"),
        ("select points.csv --mode paper", "Did you mean --algorithm paper?"),
        ("select points.csv --alpha 5", "Did you mean --algorithm paper,alpha=…?"),
        ("select points.csv --n-neighbors=4", "Did you mean --kernel diffusion,n_neighbors=…?"),
        ("select points.csv other.csv", "'other.csv' is one word too many"),
        ("select points.csv -k 5 --coverage 0.9", "not allowed with argument"),
        ("select points.csv --kernel fbr", "invalid choice: 'fbr'"),
        ("select points.csv --quotas {a:1}", "argument --quotas: invalid setting value: '{a:1}'"),
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


@pytest.mark.parametrize(
    ("error", "kind", "file", "said"),
    [
        (InvalidInputError("must have 2 columns", "Add one.", parameter="X"), "input", "points.csv", "points.csv must"),
        (InvalidInputError("`sample_weight` and `groups` differ from `X`"), "usage", None, "--weight and --group differ from"),
        (InvalidInputError("`n_representatives`", "Use `scale=True`, `colour=True`."), "usage", None, "-k. Use --scale yes, --c"),
        (InvalidInputError("names `row 7`", parameter="must_include"), "usage", None, "--must-include names p7 (row 7)"),
        (MemoryBudgetError("`algorithm='paper'` needs 9 MiB"), "memory", None, "--algorithm paper needs 9 MiB."),
        (InvalidInputError("a sentence about tol and row 7."), "usage", None, "a sentence about tol and row 7."),
        (InvalidInputError("`candidates` are few"), "usage", None, "candidates are few."),
        (InvalidInputError("see `row 7` and `row 4000`"), "usage", None, "see p7 (row 7) and row 4000."),
        (MissingDependencyError("A report needs Jinja2."), "missing", None, "A report needs Jinja2."),
        (MemoryError(), "memory", None, "the machine has no more memory"),
        (KeyboardInterrupt(), "interrupted", None, "no half-written file is left"),
    ],
    ids=repr,
)
def test_errors_of_the_library_name_options_ids_and_the_file(folder, capsys, monkeypatch, error, kind, file, said):
    fit_raises(monkeypatch, error)
    ran = run(capsys, "select", "points.csv")
    assert (ran.code, said in ran.err) == (EXIT[kind], True)
    told = json.loads(run(capsys, "select", "points.csv", "--json").out)["error"]
    assert (told["kind"], told["file"], told["exit_code"]) == (kind, file, EXIT[kind])
    assert said in told["message"]
    assert "`" not in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "streams", "code", "said"),
    [
        ("estimate points.npy --json", "> /dev/full", 4, "No space left on device"),
        ("slect --json", "> /dev/full", 2, "there is no command 'slect'"),
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
    done = run_apart("select", "points.npy", "-k", "3")
    assert (done.returncode, done.stdout) == (6, "")
    assert "Use: pip install pyarrow" in done.stderr


@pytest.mark.parametrize("asked", [True, False])
def test_a_fault_of_ours_says_so_and_shows_the_traceback_when_asked(folder, capsys, monkeypatch, asked):
    fit_raises(monkeypatch, RuntimeError("two and two"))
    ran = run(capsys, "select", "points.csv", *(["--debug"] if asked else []))
    assert ran.code == 1
    assert "mosaic: error: a bug in MOSAIC: RuntimeError: two and two." in ran.err
    assert ("Traceback" in ran.err) == asked


def test_shares_may_be_written_in_percent(folder, capsys):
    for option, share, percent in (("-k", "0.05", "5%"), ("--contamination", "0.02", "2%"), ("--coverage", "0.9", "90%")):
        told = [json.loads(run(capsys, "select", "points.csv", option, given, "--json").out) for given in (share, percent)]
        assert told[0]["picks"] == told[1]["picks"]


def test_help_is_a_word_as_well_and_so_is_the_version(folder, capsys):
    assert run(capsys, "help").out == run(capsys, "--help").out
    assert run(capsys, "help", "select").out == run(capsys, "select", "--help").out
    assert run(capsys, "-V").out == run(capsys, "--version").out
