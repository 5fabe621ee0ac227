"""Kill the command at random moments, with SIGKILL, SIGTERM, SIGHUP and SIGINT, and see that nothing is lost.

    OPENBLAS_NUM_THREADS=1 python fuzz/kills.py                  # 100 kills
    OPENBLAS_NUM_THREADS=1 python fuzz/kills.py --kills 10       # a short look

``mosaic select`` with four outputs, half of the time over old ones, is killed while it writes. Every output must be as
it was or complete, and after SIGTERM and its like they are all old or all new. Every fifth time it runs to the end.

No temporary file may be left after SIGTERM and its like, or after a run that ends. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import mosaic.cli.select  # noqa: F401, so that forks need not import it
from mosaic.cli import main

OUTPUTS = "select few.npy -k 5 -o picks.csv --labels labels.csv --report report.html --save model.mosaic -q --force"
NAMES = ("picks.csv", "labels.csv", "report.html", "model.mosaic")
SENT = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Command:
    """``mosaic …`` in a fork of this process, which has imported everything already, so that kills fall into the work."""

    def __init__(self, words: list[str], folder: Path):
        self.errors = folder / "tmp" / f"stderr-{time.monotonic_ns()}"
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            os.chdir(folder)
            tempfile.tempdir = str(folder / "tmp")
            for number in SENT[1:]:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(self.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            sys.argv = ["mosaic", *words]
            code = main()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, this long at most."""
        until = time.monotonic() + seconds
        while self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                return False
            else:
                time.sleep(0.001)
        return True

    def said(self) -> str:
        """What it wrote to stderr until its end."""
        if not self.ends_within(300):
            os.kill(self.pid, signal.SIGKILL)
            self.ends_within(60)
            return "it did not end"
        found = self.errors.read_text() if self.errors.exists() else ""
        self.errors.unlink(missing_ok=True)
        return found


class Trials:
    """Runs of the command in a folder, and what was wrong with them."""

    def __init__(self, folder: Path, seed: int):
        self.folder, self.random = folder, random.Random(seed)
        self.kills, self.ended, self.wrong = dict.fromkeys(SENT, 0), 0, list[str]()
        self.left: set[str] = set()
        (folder / "tmp").mkdir()

    def start(self, words: str) -> Command:
        """The command in another process."""
        return Command(words.split(), self.folder)

    def finish(self, words: str) -> None:
        """Run it to its end."""
        process = self.start(words)
        said = process.said()
        self.check(process.returncode == 0 and not said, f"exit code {process.returncode} undisturbed: {said!r}")
        self.check_tidy("after a run that ended")

    def kill(self, process: Command) -> tuple[int | None, str]:
        """Send a signal; which one, None if the command had ended before, and what it said."""
        sent = self.random.choices(SENT, weights=(3, 1, 1, 1))[0]
        if process.returncode is None:
            os.kill(process.pid, sent)
        said = process.said()
        if process.returncode == 0:
            self.ended += 1
            return None, said
        self.kills[sent] += 1
        expected = -sent if sent == signal.SIGKILL else 128 + sent
        # Before the command has set its handlers, a signal ends Python itself.
        self.check(process.returncode in (expected, -sent), f"exit code {process.returncode} after {sent.name}: {said}")
        if process.returncode == 128 + sent:
            self.check(said.count("\n") == 1, f"after {sent.name} it says {said!r}")
            self.check_tidy(f"after {sent.name}", but=self.left)
        self.left = set(self.temporary())
        return sent, said

    def temporary(self) -> list[str]:
        """Temporary files that are there."""
        files = [path for path in self.folder.iterdir() if path.name.startswith(".mosaic-") or ".part" in path.name]
        return [path.name for path in (*files, *(self.folder / "tmp").iterdir())]

    def check_tidy(self, when: str, but: set[str] = frozenset()) -> None:
        """No temporary files but those that were there before."""
        found = sorted(set(self.temporary()) - but)
        self.check(not found, f"{when} there is {found}")

    def check(self, is_right: bool, fault: str) -> None:
        """Note a fault."""
        if not is_right:
            self.wrong.append(fault)
            print(f"  WRONG: {fault}", flush=True)

    def verdict(self, what: str, started: float) -> bool:
        """Print one line; whether all is well."""
        told = ", ".join(f"{n} by {sent.name}" for sent, n in self.kills.items())
        print(
            f"{what}: {sum(self.kills.values())} kills ({told}) in {time.monotonic() - started:.0f} s, {self.ended} too late; "
            f"{len(self.wrong)} faults",
            flush=True,
        )
        return not self.wrong


def outputs(trials: Trials, kills: int) -> bool:
    """Kill while files are written; every file is as it was, or complete."""
    folder = trials.folder
    np.save(folder / "few.npy", np.random.default_rng(0).normal(size=(1000, 4)))
    began = time.monotonic()
    trials.finish(OUTPUTS)
    whole = contents(folder)
    mixed = in_time = 0
    writing = 0.5  # seconds from the first temporary file to the end; learnt from runs that end
    while sum(trials.kills.values()) < kills:
        old = None if trials.random.random() < 0.5 else b"old"
        for name in NAMES:
            (folder / name).write_bytes(old) if old else (folder / name).unlink(missing_ok=True)
        before = temporary_files(folder)
        process = trials.start(OUTPUTS)
        while not process.ends_within(0) and temporary_files(folder) <= before:
            time.sleep(0.001)
        first = time.monotonic()
        if process.ends_within(trials.random.uniform(0.0, 1.1) * writing):
            writing = 0.5 * writing + 0.5 * (time.monotonic() - first)
        sent, _ = trials.kill(process)
        now = contents(folder)
        for name in NAMES:
            trials.check(now[name] in (old, whole[name]), f"{name} is neither old nor complete after {sent}")
        new = sum(now[name] == whole[name] for name in NAMES)
        trials.check(sent is not None or new == len(NAMES), f"{new} of {len(NAMES)} outputs after a run that ended")
        in_time += sent is not None
        if 0 < new < len(NAMES):
            mixed += 1
            trials.check(sent == signal.SIGKILL, f"{new} of {len(NAMES)} outputs after {sent}")
        if in_time % 5 == 4:
            trials.finish(OUTPUTS)
            trials.check(contents(folder) == whole, "the outputs differ after a run that ended")
    trials.finish(OUTPUTS)
    trials.check(contents(folder) == whole, "the outputs differ after the last run")
    print(f"outputs: SIGKILL fell between two of the renames {mixed} times, which nobody can prevent")
    return trials.verdict("outputs", began)


def temporary_files(folder: Path) -> set[int]:
    """Temporary files that are there, by number: one that is made anew has the same name."""
    return {entry.inode() for entry in os.scandir(folder) if entry.name.startswith(".mosaic-")}


def contents(folder: Path) -> dict[str, bytes | None]:
    """The outputs, without the time at which they were made."""
    found: dict[str, bytes | None] = {}
    for name in NAMES:
        path = folder / name
        found[name] = re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", b"", path.read_bytes()) if path.exists() else None
    return found


def all_trials() -> int:
    """0 if all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        good = outputs(Trials(Path(folder), args.seed), args.kills)
    print(f"kills: {'all is well' if good else 'FAILED'}")
    return not good


if __name__ == "__main__":
    sys.exit(all_trials())
