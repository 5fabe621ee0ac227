"""Outputs of a command: each appears when it is complete, and a signal or a full disk leaves no half-written file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import default_signals, environment, run
from mosaic.cli import main
from mosaic.rows import replacing

OUTPUTS = {"-o": "picks.csv", "--labels": "labels.csv", "--report": "report.html", "--save": "model.mosaic"}


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

    monkeypatch.setattr("mosaic.rows.write.os.replace", full)
    ran = run(capsys, "select", "points.csv", "-k", "3", *(word for pair in OUTPUTS.items() for word in pair), "-q", "--json")
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_leaves_what_was_there_and_no_temporary_file(folder, name, code):
    before = sorted(os.listdir())
    Path("model.mosaic").write_text("old")
    words = ["select", "points.csv", "-k", "3", "-o", "picks.csv", "--save", "model.mosaic", "--force", "-q"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with default_signals():
        child = subprocess.Popen([sys.executable, "-c", WAITING, *words], env=environment(), **pipes)
    try:
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(getattr(signal, name))
        _, err = child.communicate(timeout=600)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, err.count("\n")) == (code, 1)
    assert err.startswith("mosaic: interrupted")
    assert sorted(os.listdir()) == sorted([*before, "model.mosaic", "picks.csv"])
    assert Path("model.mosaic").read_text() == "old"


def test_a_signal_before_the_words_are_understood_ends_the_command(monkeypatch, capsys):
    def interrupted(words):
        raise SystemExit(128 + signal.SIGTERM)

    monkeypatch.setattr("mosaic.cli.parse", interrupted)
    assert main(["select", "points.npy"]) == 143
    assert capsys.readouterr().err == "mosaic: interrupted; no half-written file is left.\n"
