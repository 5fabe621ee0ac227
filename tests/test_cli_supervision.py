"""Signals and crashes within a call of a library, of which Python itself knows nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runs import default_signals
from mosaic.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="one process only")

LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has /proc, and ends children with parents"
)
#: A command whose library does not return, or crashes, with the lock of Python held and a temporary folder open.
STUCK = """
import atexit, ctypes, sys, time
from pathlib import Path
import mosaic.cli.session as session
from mosaic.cli import main
from mosaic.data.writing import Scratch

def stuck(path, **options):
    scratch = Scratch(Path(path), 1)
    Path("ready").touch()
    if "crash" in path:
        ctypes.string_at(0)
    if "other" in path:
        atexit.register(time.sleep, 1000)  # Python is not taken down, which may last
        try:
            time.sleep(1000)
        except BaseException:
            raise ImportError("initialization failed") from None
    if "swallow" in path:
        try:
            time.sleep(1000)
        except BaseException:
            pass
        try:
            time.sleep(1000)
        finally:
            time.sleep(1.5)  # the signal comes again, and does not disturb
            Path("tidy").touch()
    while True:
        ctypes.PyDLL(None).sleep(1000)

session.open_table = stuck
sys.exit(main())
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "stuck.py").write_text(STUCK)
    started = []

    def begin(*words: str) -> subprocess.Popen[bytes]:
        with default_signals():
            child = subprocess.Popen(
                [sys.executable, "stuck.py", *words],
                cwd=tmp_path,
                env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        started.append(child)
        while not (tmp_path / "ready").exists():
            assert child.poll() is None
            time.sleep(0.02)
        return child

    yield begin
    for child in started:
        child.kill()
        child.communicate()  # closes the pipes as well


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_ends_a_command_that_is_stuck_in_a_library(start, tmp_path, name, code):
    child = start("select", "points.csv", "-k", "3")
    child.send_signal(getattr(signal, name))
    _, err = child.communicate(timeout=600)
    assert child.returncode == code
    assert err.decode().startswith("mosaic: interrupted")
    assert err.count(b"\n") == 1
    assert not list(Path(tmp_path, "tmp").iterdir())


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_of_which_a_library_makes_another_error_is_told_as_a_signal(start, name, code):
    child = start("select", "other.csv", "-k", "3")
    child.send_signal(getattr(signal, name))
    _, err = child.communicate(timeout=600)
    assert child.returncode == code
    assert err.decode().startswith("mosaic: interrupted")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_that_a_library_swallows_ends_the_command_and_lets_it_tidy_up(start, tmp_path, name, code):
    child = start("select", "swallow.csv", "-k", "3")
    child.send_signal(getattr(signal, name))
    _, err = child.communicate(timeout=600)
    assert child.returncode == code
    assert err.decode().startswith("mosaic: interrupted")
    assert err.count(b"\n") == 1
    assert (tmp_path / "tidy").exists()
    assert not list(Path(tmp_path, "tmp").iterdir())


def test_a_crash_of_a_library_is_told_in_words(start, tmp_path):
    child = start("select", "crash.csv", "-k", "3", "--json")
    out, _ = child.communicate(timeout=600)
    assert child.returncode == 3
    told = json.loads(out)["error"]
    assert told["file"] == "crash.csv"
    assert "SIGSEGV" in told["message"]
    assert not list(Path(tmp_path, "tmp").iterdir())


@LINUX
def test_a_command_that_the_system_kills_says_that_memory_ran_out(start):
    child = start("select", "points.csv", "-k", "3")
    (worker,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(int(worker), signal.SIGKILL)
    _, err = child.communicate(timeout=600)
    assert child.returncode == 5
    assert b"memory ran out" in err


@LINUX
def test_a_killed_command_leaves_no_process_behind(start):
    child = start("select", "points.csv", "-k", "3")
    (worker,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    child.kill()
    child.wait()
    for _ in range(500):
        status = Path(f"/proc/{worker}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            return
        time.sleep(0.02)
    pytest.fail("the process that did the work is still there")


def test_a_signal_before_the_words_are_understood_is_told_of(monkeypatch, capsys):
    def interrupted(words):
        raise SystemExit(128 + signal.SIGTERM)

    monkeypatch.setattr("mosaic.cli.parse", interrupted)
    assert main(["select", "points.npy"]) == 143
    assert capsys.readouterr().err == "mosaic: interrupted by SIGTERM; no half-written file is left.\n"
