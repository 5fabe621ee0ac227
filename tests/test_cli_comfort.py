"""Completion, one line of notes, progress that moves, and a check of new rows for CI."""

import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control
from sklearn.exceptions import NotFittedError

from cli_runs import run, run_on_terminal, write_points
from mosaic import MOSAICOutlierDetector, load
from mosaic.cli.parser import COMMANDS
from mosaic.cli.terminal import ProgressBar

ODD = 8


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path)
    return tmp_path


def clean(rng, n):
    frame = pd.DataFrame({"id": [f"c{i}" for i in range(n)], "age": rng.integers(18, 90, n), "x": rng.normal(size=n).round(3)})
    frame["city"] = rng.choice(["Rome", "Ulm"], n)
    return frame


# ---- completion


def completed(shell, folder, capsys, words):
    """What a shell offers after these words."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    pytest.importorskip("shtab")
    ran = run(capsys, "completion", shell)
    assert (ran.code, ran.err) == (0, "")
    (folder / "offers").write_text(ran.out)
    *before, last = words
    asks = {
        "bash": 'eval "$(cat offers)"; offer=$(complete -p mosaic | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
        f"COMP_WORDS=(mosaic {' '.join(words)}); COMP_CWORD={len(words)}; $offer mosaic '{last}' '{['mosaic', *before][-1]}'; "
        'printf "%s\\n" "${COMPREPLY[@]}"',
        "fish": f"source ./offers; complete -C 'mosaic {' '.join(words)}'",
        "zsh": 'autoload -U compinit; compinit -u -D; eval "$(cat offers)"; print -r -- $_comps[mosaic]',
    }
    done = subprocess.run([shell, "-c", asks[shell]], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_complete_commands_options_choices_and_files(shell, folder, capsys):
    assert completed(shell, folder, capsys, ["sel"]) == ["select"]
    assert completed(shell, folder, capsys, ["outl"]) == ["outliers"]
    assert completed(shell, folder, capsys, ["select", "--rep"]) == ["--report"]
    assert completed(shell, folder, capsys, ["select", "--outliers", "re"]) == ["reject", "report"]
    assert completed(shell, folder, capsys, ["outliers", "points.c"]) == ["points.csv"]
    assert completed(shell, folder, capsys, ["outliers", "--coverag"]) in ([], [""])  # no option of this command


def test_zsh_takes_the_completion_for_mosaic(folder, capsys):
    assert completed("zsh", folder, capsys, ["sel"]) == ["_shtab_mosaic"]
    text = (folder / "offers").read_text()
    assert [name for name in COMMANDS if f"    {name}:" not in text] == []


def test_completion_needs_no_heavy_package_and_says_what_is_missing(folder, capsys, monkeypatch):
    code = "import sys; from mosaic.cli import main; main(['completion', 'bash']); print('numpy' in sys.modules, file=sys.stderr)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.endswith("False\n")
    monkeypatch.setitem(sys.modules, "shtab", None)
    ran = run(capsys, "completion", "bash")
    assert (ran.code, "pip install shtab" in ran.err) == (6, True)
    assert run(capsys, "completion", "tclsh").code == 2


# ---- notes and progress


def test_what_was_assumed_about_the_file_is_one_line_unless_all_is_asked_for(folder, capsys, monkeypatch):
    def notes(*words):
        out = run_on_terminal(capsys, monkeypatch, *words).out
        return [" ".join(note.split()) for note in out.split("note: ")[1:]]

    words = ("select", "points.csv", "-k", 3)
    assert run(capsys, *words).err == ""  # into a pipe
    told = json.loads(run(capsys, *words, "--json").out)["notes"]
    assert len(told) == 2
    assert run(capsys, *words, "-v").err == "".join(f"note: {note}\n" for note in told)
    (line,) = notes(*words)
    assert line == f"{told[0].partition('. ')[0]} (1 more note with --verbose)."
    assert notes(*words, "--verbose") == told
    assert notes(*words, "--quiet") == []
    warned = notes(*words, "--algorithm", "paper,solver=fista,max_iter=2,tol=1e-9")
    assert len(warned) > 1  # what is wrong with the answer is told in full
    assert any("the certified gap is" in note for note in warned)


def test_a_cell_that_cannot_be_read_is_told_in_one_line_too(folder, capsys, monkeypatch):
    frame = clean(np.random.default_rng(0), 60).astype({"x": object})
    frame.loc[6, "x"] = "oops"
    frame.to_csv(folder / "odd.csv", index=False)
    words = ("select", "odd.csv", "-k", 3)
    told = "is not a number and counts as missing: 'oops' in line 8."
    assert told in run(capsys, *words).err
    assert told in " ".join(run_on_terminal(capsys, monkeypatch, *words).out.split())
    assert told not in run(capsys, *words, "--quiet").err


def test_progress_moves_while_a_stage_takes_long(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar(quiet=False) as bar:
        bar.update("choosing", share=0.5)
        for _ in range(600):
            seen = re.findall(r"([\d.]+) s  (.*?)\r", screen.getvalue() + "\r")
            if len({time for time, text in seen if text.endswith("50 %  choosing")}) > 2:
                break
            bar.ended.wait(0.05)
        else:
            pytest.fail(f"nothing moves: {seen}")
    assert not bar.clock.is_alive()
    assert screen.getvalue().endswith("\r\x1b[K")  # and it is gone in the end


# ---- a check for CI


def test_a_check_stops_at_rows_that_do_not_belong_and_says_why(folder, capsys):
    rng = np.random.default_rng(0)
    clean(rng, 4000).to_csv("good.csv", index=False)
    fine, odd = clean(rng, 50), clean(rng, 50)
    odd.loc[[3, 20], "age"] = [999, -5]
    fine.to_csv("fine.csv", index=False)
    odd.to_csv("odd.csv", index=False)
    ran = run(capsys, "check", "good.csv", "odd.csv", "--save", "gate.mosaic", "-q")
    assert ran.code == ODD
    found = pd.read_csv(io.StringIO(ran.out))
    assert sorted(found["id"]) == ["c20", "c3"]
    np.testing.assert_allclose(found["mosaic_p_value"], 1 / 2001)
    assert found["mosaic_reason"].str.contains("age (?:999|-5), usual").all()
    assert run(capsys, "check", "gate.mosaic", "odd.csv", "-q").out == ran.out  # the saved model is the same
    answer = run(capsys, "check", "gate.mosaic", "fine.csv", "--json")
    told = json.loads(answer.out)
    assert (answer.code, told["n_outliers"], told["rows"], told["n_held_out"], told["false_alarms"]) == (0, 0, [], 2000, 0.05)
    stated = "at most 5 % of files of rows like the 2,000 that were held out have one."
    assert told["sentence"] == f"0 rows of 50 do not belong; {stated}"
    assert run(capsys, "check", "gate.mosaic", "odd.csv", "-o", "found.csv").code == ODD
    assert len(pd.read_csv("found.csv")) == 2


def test_a_check_says_how_few_rows_it_can_tell_and_what_it_needs(folder, capsys):
    rng = np.random.default_rng(1)
    clean(rng, 200).to_csv("good.csv", index=False)
    new = clean(rng, 50)
    new.loc[3, "age"] = 999
    new.to_csv("new.csv", index=False)
    told = run(capsys, "check", "good.csv", "new.csv", "--json")
    assert told.code == 0  # one row in fifty cannot be told by a hundred that were held out
    few = "Fewer than 10 odd rows among 50 cannot be told"
    assert few in json.loads(told.out)["notes"][-1]
    assert few in run(capsys, "check", "good.csv", "new.csv").err  # also where the answer is rows in a pipe
    assert run(capsys, "check", "good.csv", "new.csv", "--false-alarms", "50%", "-q").code == ODD
    assert run(capsys, "outliers", "good.csv", "--save", "fit.mosaic", "-o", "o.csv").code == 0
    ran = run(capsys, "check", "good.csv", "new.csv", "--false-alarms", "0")
    assert (ran.code, "--false-alarms must be a finite number > 0 and < 1" in ran.err) == (2, True)
    ran = run(capsys, "check", "fit.mosaic", "new.csv")
    assert (ran.code, "has no rows that were held out" in ran.err) == (3, True)


def test_a_check_that_no_file_could_fail_is_refused(folder, capsys):
    rng = np.random.default_rng(2)
    for n in (1, 37, 38):
        clean(rng, n).to_csv("good.csv", index=False)
        ran = run(capsys, "check", "good.csv", "good.csv", "--save", "gate.mosaic", "--force")
        told = f"good.csv: with {n // 2} rows held out, no row could be told from chance. Give a table of 38 rows or more"
        assert (ran.code, told in ran.err) == ((3, True) if n < 38 else (0, False))
    ran = run(capsys, "check", "gate.mosaic", "good.csv", "--false-alarms", "1%")
    assert (ran.code, "gate.mosaic: with 19 rows held out, " in ran.err, "or raise --false-alarms" in ran.err) == (3, True, True)
    ran = run(capsys, "check", "good.csv", "gate.mosaic")
    assert (ran.code, "gate.mosaic: is a saved model, and rows are needed" in ran.err) == (3, True)


def test_a_check_names_the_row_of_the_file_that_cannot_be_used(folder, capsys):
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[77, 1] = np.nan
    np.save("good.npy", X)
    assert "X[77, 1] = nan" in run(capsys, "check", "good.npy", "good.npy").err


def test_outliers_fail_the_command_where_that_is_asked_for(folder, capsys):
    assert run(capsys, "outliers", "points.csv", "-q").code == 0
    assert run(capsys, "outliers", "points.csv", "-q", "--fail-on-outliers", "-o", "odd.csv").code == ODD
    assert len(pd.read_csv("odd.csv")) == 8  # which is written
    pd.read_csv("points.csv")[:40].query("abs(x) < 20").to_csv("fine.csv", index=False)
    assert run(capsys, "outliers", "fine.csv", "-q", "--fail-on-outliers").code == 0
    assert run(capsys, "outliers", "points.csv", "-q", "--save", "fit.mosaic", "-o", "o.csv").code == 0
    assert run(capsys, "predict", "fit.mosaic", "points.csv", "-q", "--fail-on-outliers").code == ODD
    assert run(capsys, "predict", "fit.mosaic", "fine.csv", "-q", "--fail-on-outliers").code == 0


@pytest.mark.filterwarnings("ignore:A group of:mosaic.exceptions.SelectionWarning")
@pytest.mark.parametrize(("n_held", "n_new"), [(30, 10), (100, 20), (99, 1)])
def test_clean_files_are_stopped_at_most_as_often_as_is_stated(n_held, n_new):
    """The bound is that of the mean over fits; 300 of them are within three standard errors of it."""
    level, stopped, rng = 0.2, 0, np.random.default_rng(0)
    for _ in range(300):
        X = rng.normal(size=(n_held + 40 + n_new, 2)) * rng.lognormal(size=(n_held + 40 + n_new, 1))
        detector = MOSAICOutlierDetector().fit(X[:40]).hold_out(X[40 : 40 + n_held])
        stopped += bool((false_discovery_control(detector.p_values(X[40 + n_held :])) <= level).any())
    assert stopped / 300 <= level + 3 * np.sqrt(level * (1 - level) / 300)


def test_p_values_are_ranks_and_are_saved(folder):
    X = np.random.default_rng(0).normal(size=(300, 3))
    detector = MOSAICOutlierDetector().fit(X[:150])
    with pytest.raises(NotFittedError, match=r"holds no rows out\. Call hold_out"):
        detector.p_values(X)
    held, new = X[150:250], np.vstack([X[250:], [[50.0, 0.0, 0.0]]])
    found = detector.hold_out(held).p_values(new)
    scores, others = detector.score_samples(held), detector.score_samples(new)
    np.testing.assert_array_equal(found, [(1 + sum(scores <= score)) / 101 for score in others])
    assert found[-1] == 1 / 101
    detector.save("gate.mosaic")
    np.testing.assert_array_equal(load("gate.mosaic").p_values(new), found)
