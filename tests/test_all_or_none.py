"""All outputs of a command are there at the end, or none of them is, and what was there before stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import default_signals, environment, run
from mosaic import _files
from mosaic.data import FileFault, all_or_none, replacing

OUTPUTS = {"-o": "picks.csv", "--labels": "labels.csv", "--report": "report.html", "--save": "model.mosaic"}
WRITTEN = ("one.txt", "two.txt", "three.txt")


def write(folder, names=WRITTEN, force=False, text="new"):
    for name in names:
        with replacing(folder / name, force=force) as temporary:
            temporary.write_text(text)


def together(*steps):
    with all_or_none():
        for step in steps:
            step()


def throw(error):
    raise error


def read(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


class TestFiles:
    """``mosaic.data.all_or_none``."""

    @pytest.mark.parametrize("force", [False, True])
    def test_all_get_their_names_at_the_end(self, tmp_path, force):
        if force:
            write(tmp_path, text="old")
        with all_or_none():
            write(tmp_path, force=force)
            assert not force or (tmp_path / "one.txt").read_text() == "old"
            assert force or not (tmp_path / "one.txt").exists()
        assert read(tmp_path) == dict.fromkeys(WRITTEN, "new")

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
    def test_an_error_in_the_block_leaves_what_was_there(self, tmp_path, error):
        write(tmp_path, ["two.txt"], text="old")
        with pytest.raises(error):
            together(lambda: write(tmp_path, force=True), lambda: throw(error))
        assert read(tmp_path) == {"two.txt": "old"}

    def test_a_file_that_failed_is_left_out_if_its_error_was_caught(self, tmp_path):
        with all_or_none():
            write(tmp_path, ["one.txt"])
            with pytest.raises(RuntimeError), replacing(tmp_path / "two.txt"):
                raise RuntimeError
        assert read(tmp_path) == {"one.txt": "new"}

    @pytest.mark.parametrize("failing", range(3))
    @pytest.mark.parametrize("links", [True, False])
    def test_renames_are_undone_when_a_later_one_fails(self, tmp_path, monkeypatch, failing, links):
        write(tmp_path, ["one.txt", "three.txt"], text="old")
        put = _files.Temporary.put_in_place

        def fail(self, force):
            if self.target.name == WRITTEN[failing]:
                raise OSError(5, "Input/output error")
            put(self, force)

        def none(*paths):
            raise OSError(1, "no links here")

        monkeypatch.setattr(_files.Temporary, "put_in_place", fail)
        if not links:
            monkeypatch.setattr(os, "link", none)
        with (
            pytest.raises(FileFault, match=rf"{WRITTEN[failing]}: cannot be written \(Input/output error"),
            all_or_none(),
        ):
            write(tmp_path, force=True)
        assert read(tmp_path) == {"one.txt": "old", "three.txt": "old"}

    def test_a_file_that_appears_meanwhile_is_kept_and_the_others_are_not_written(self, tmp_path):
        with pytest.raises(FileFault, match=r"two\.txt: exists already"):
            together(lambda: write(tmp_path), lambda: (tmp_path / "two.txt").write_text("theirs"))
        assert read(tmp_path) == {"two.txt": "theirs"}

    def test_a_folder_that_is_gone_takes_the_others_along(self, tmp_path):
        (tmp_path / "sub").mkdir()
        with pytest.raises(FileFault, match=r"two\.txt: cannot be written"):
            together(
                lambda: write(tmp_path, ["one.txt"]),
                lambda: write(tmp_path / "sub", ["two.txt"]),
                lambda: shutil.rmtree(tmp_path / "sub"),
            )
        assert read(tmp_path) == {}

    def test_rights_of_replaced_files_are_put_back(self, tmp_path):
        write(tmp_path, ["one.txt"], text="old")
        (tmp_path / "one.txt").chmod(0o640)
        before = (tmp_path / "one.txt").stat()
        with pytest.raises(FileFault, match="exists already"):
            together(
                lambda: write(tmp_path, ["one.txt"], force=True),
                lambda: write(tmp_path, ["two.txt"]),
                lambda: (tmp_path / "two.txt").mkdir(),
            )
        assert (tmp_path / "one.txt").stat().st_ino == before.st_ino
        assert (tmp_path / "one.txt").stat().st_mode == before.st_mode

    def test_a_signal_between_the_renames_waits_for_the_last(self, tmp_path, monkeypatch):
        put = _files.Temporary.put_in_place

        def interrupted(self, force):
            signal.raise_signal(signal.SIGINT)
            put(self, force)

        monkeypatch.setattr(_files.Temporary, "put_in_place", interrupted)
        with default_signals(), pytest.raises(KeyboardInterrupt), all_or_none():
            write(tmp_path)
        assert read(tmp_path) == dict.fromkeys(WRITTEN, "new")


class TestTemporaryFiles:
    """Those that a killed process has left are removed by the next one that writes the same file."""

    LEFT = """
import os, signal, sys
from mosaic.data import replacing
with replacing(sys.argv[1], force=True) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""

    @pytest.mark.skipif(sys.platform == "win32", reason="no locks")
    def test_the_next_run_removes_what_a_killed_one_has_left(self, tmp_path):
        subprocess.run([sys.executable, "-c", self.LEFT, str(tmp_path / "one.txt")], check=False)
        assert len(os.listdir(tmp_path)) == 1
        write(tmp_path, ["one.txt"])
        assert read(tmp_path) == {"one.txt": "new"}

    def test_a_signal_while_it_is_made_leaves_none(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_files, "announce", lambda path: signal.raise_signal(signal.SIGINT))
        with default_signals(), pytest.raises(KeyboardInterrupt):
            write(tmp_path)
        assert read(tmp_path) == {}

    def test_that_of_another_writer_is_not_touched(self, tmp_path):
        with replacing(tmp_path / "one.txt", force=True) as first:
            first.write_text("first")
            with pytest.raises(RuntimeError), replacing(tmp_path / "one.txt", force=True) as second:
                throw(RuntimeError)
            assert first != second
            assert first.read_text() == "first"
        assert read(tmp_path) == {"one.txt": "first"}

    @pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
    def test_a_link_that_somebody_has_put_there_is_not_followed(self, tmp_path):
        with replacing(tmp_path / "one.txt") as temporary:
            temporary.write_text("new")
        (tmp_path / "precious").write_text("precious")
        temporary.symlink_to(tmp_path / "precious")
        write(tmp_path, ["one.txt"], force=True, text="newer")
        assert (tmp_path / "one.txt").read_text() == "newer"
        assert (tmp_path / "precious").read_text() == "precious"


def words_of(outputs):
    return [word for pair in outputs.items() for word in pair]


class TestCommands:
    """Each output fails in turn."""

    @pytest.fixture(autouse=True)
    def place(self, folder):
        (folder / "there").mkdir()
        self.inputs = sorted(os.listdir(folder))
        return folder

    def left(self):
        return sorted(str(path) for path in Path().rglob("*") if path.is_file() and str(path) not in self.inputs)

    @pytest.mark.parametrize("failing", OUTPUTS)
    @pytest.mark.parametrize("how", ["folder removed", "disk full"])
    def test_select_leaves_no_output_if_one_fails(self, capsys, monkeypatch, failing, how):
        outputs = OUTPUTS | {failing: f"there/{OUTPUTS[failing]}"}
        old = [name for flag, name in outputs.items() if flag in ("-o", "--report") and flag != failing]
        for name in old:
            Path(name).write_text("old")
        begin = _files.Temporary.__init__

        def fail(self, target, ending=""):
            if target.name == OUTPUTS[failing]:
                if how == "disk full":
                    raise OSError(28, "No space left on device", str(target))
                shutil.rmtree("there")
            begin(self, target, ending)

        monkeypatch.setattr(_files.Temporary, "__init__", fail)
        ran = run(capsys, "select", "points.csv", "-k", "3", *words_of(outputs), "--force", "-q", "--json")
        told = json.loads(ran.out)["error"]
        assert (ran.code, told["kind"], told["file"]) == (4, "output", outputs[failing])
        assert self.left() == sorted(old)
        assert {Path(name).read_text() for name in old} == {"old"}

    @pytest.mark.parametrize("command", ["outliers points.csv -o rows.csv", "report points.csv -k 3 -o page.html"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_a_failure_after_the_last_output_leaves_none(self, capsys, monkeypatch, command, error):
        def fail(*args, **more):
            raise error

        monkeypatch.setattr("mosaic.cli.outliers.write_page", fail)
        monkeypatch.setattr("mosaic.cli.report.answer_of", fail)
        words = command.split() + (["--report", "page.html"] if command.startswith("outliers") else [])
        assert run(capsys, *words, "-q").code == (130 if error is KeyboardInterrupt else 1)
        assert self.left() == []

    def test_the_demo_keeps_its_old_files(self, capsys, monkeypatch):
        def fail(*args, **more):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("mosaic.cli.demo.write_report", fail)
        (Path("there") / "picks.csv").write_text("old")
        assert run(capsys, "demo", "there", "--force", "-q").code == 4
        assert self.left() == ["there/picks.csv"]
        assert Path("there/picks.csv").read_text() == "old"


#: A command whose last output waits for a signal, when the others are written.
WAITING = """
import sys, time
import mosaic.cli.session as session
from mosaic.cli import main

def wait(self, model, path):
    print("written", flush=True)
    time.sleep(600)

session.Session.save = wait
sys.exit(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129), ("SIGKILL", -9)])
def test_a_signal_between_outputs_leaves_none(folder, name, code):
    before = sorted(os.listdir(folder))
    (folder / "labels.csv").write_text("old")
    words = [sys.executable, "-c", WAITING, "select", "points.csv", "-k", "3", *words_of(OUTPUTS), "--force", "-q"]
    with default_signals():
        child = subprocess.Popen(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"written\n"
        child.send_signal(getattr(signal, name))
        child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == code
    left = sorted(path for path in os.listdir(folder) if name != "SIGKILL" or not path.startswith(".mosaic-"))
    assert left == sorted([*before, "labels.csv"])
    assert (folder / "labels.csv").read_text() == "old"
