"""Outputs of a command: each appears when it is complete, and a signal or a full disk leaves no half-written file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli_runs import default_signals, environment, run
from mosaic.cli import main
from mosaic.data import replacing

OUTPUTS = {"-o": "picks.csv", "--labels": "labels.csv", "--report": "report.html", "--save": "model.mosaic"}
PASSES = ("--strategy", "sketch", "--n-initial", "20", "--n-rounds", "1", "-k", "3")
SIGNALS = [("SIGINT", 130), ("SIGTERM", 143)]


def words_of(outputs):
    return [word for pair in outputs.items() for word in pair]


def signalled(code, words, folder, name):
    """Exit code and stderr of a program that says when it waits for a signal."""
    with default_signals():
        child = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(getattr(signal, name))
        _, err = child.communicate(timeout=600)
    finally:
        child.kill()
        child.wait()
    return child.returncode, err


def test_two_writers_of_one_file_do_not_touch_each_other(tmp_path):
    with replacing(tmp_path / "one.txt", force=True) as first:
        first.write_text("first")
        with pytest.raises(FileNotFoundError), replacing(tmp_path / "one.txt", force=True):
            Path("not there").read_text()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"one.txt": "first"}


@pytest.mark.parametrize("failing", OUTPUTS)
def test_an_output_that_fails_is_named_and_the_others_are_complete(folder, capsys, monkeypatch, failing):
    there, replace = sorted(os.listdir()), os.replace

    def full(source, target):
        if Path(target).name == OUTPUTS[failing]:
            raise OSError(28, "No space left on device", source)
        replace(source, target)

    monkeypatch.setattr("mosaic.door.os.replace", full)
    ran = run(capsys, "select", "points.csv", "-k", "3", *words_of(OUTPUTS), "-q", "--json")
    told = json.loads(ran.out)["error"]
    assert (ran.code, told["kind"], told["file"]) == (4, "output", OUTPUTS[failing])
    assert {*os.listdir()} - {*there} == {*list(OUTPUTS.values())[: list(OUTPUTS).index(failing)]}


#: A command that waits for a signal while it writes the last output.
WAITING = """
import os, sys, time
from mosaic.cli import main

def wait(source, target, replace=os.replace):
    if target.suffix == ".mosaic":
        print("waiting", flush=True)
        time.sleep(600)
    replace(source, target)

os.replace = wait
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), SIGNALS)
def test_a_signal_leaves_what_was_there_and_no_temporary_file(folder, name, code):
    before = sorted(os.listdir())
    Path("model.mosaic").write_text("old")
    words = ["select", "points.csv", "-k", "3", "-o", "picks.csv", "--save", "model.mosaic", "--force", "-q"]
    ended, err = signalled(WAITING, words, folder, name)
    assert (ended, err.count("\n")) == (code, 1)
    assert err.startswith("mosaic: interrupted")
    assert sorted(os.listdir()) == sorted([*before, "model.mosaic", "picks.csv"])
    assert Path("model.mosaic").read_text() == "old"


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.setattr("mosaic.cli.session.open_table", lambda *args, **more: pytest.fail("the work has begun"))
    ran = run(capsys, "select", "points.npy", *PASSES, "--checkpoint", "no/state")
    assert ran.code == 4
    assert "--checkpoint cannot be written: it must be a file in a folder that exists; got 'no/state'" in ran.err
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    ran = run(capsys, "select", "points.npy", *PASSES, "--checkpoint", "state", "--json")
    told = json.loads(ran.out)["error"]
    assert (ran.code, told["kind"], told["parameter"]) == (4, "output", "--checkpoint")
    assert "may not be written to by you" in told["message"]


def test_a_disk_that_is_full_later_is_a_fault_of_the_checkpoint_too(folder, capsys, monkeypatch):
    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    before = sorted(os.listdir())
    ran = run(capsys, "select", "points.npy", *PASSES, "--checkpoint", "state", "-o", "picks.csv", "-q")
    assert ran.code == 4
    assert "--checkpoint cannot be written: No space left on device; got 'state'. Make room" in ran.err
    assert sorted(os.listdir()) == before


SLOW = """
import sys, time
from mosaic.cli import main
from mosaic.sketch import GramSum

def wait(self, rows, start):
    print("waiting", flush=True)
    time.sleep(600)

GramSum.map_block = wait
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), SIGNALS)
def test_the_last_line_after_a_signal_names_the_checkpoint_and_the_work_goes_on(folder, name, code, capsys):
    words = ["select", "points.npy", *PASSES, "--checkpoint", "state", "-q"]
    ended, err = signalled(SLOW, words, folder, name)
    assert ended == code
    assert err.splitlines()[-1].endswith("The finished passes are in state; the same command continues from there.")
    assert run(capsys, *words).out == run(capsys, *words[:-3], "-q").out


def test_a_signal_before_the_words_are_understood_names_the_checkpoint_too(tmp_path, monkeypatch, capsys):
    def interrupted(words):
        raise SystemExit(128 + signal.SIGTERM)

    monkeypatch.setattr("mosaic.cli.parse", interrupted)
    (tmp_path / "state").touch()
    words = ["select", "points.npy", "--checkpoint", str(tmp_path / "state")]
    assert main(words) == 143
    assert f"in {tmp_path / 'state'}; the same command continues" in capsys.readouterr().err
    assert main(words[:2]) == 143
    assert capsys.readouterr().err == "mosaic: interrupted by SIGTERM; no half-written file is left.\n"
