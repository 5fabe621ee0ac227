"""The command line as a person meets it: seconds to the first sign of life, to the answer, and what the report weighs.

Commands run on a terminal of their own (a pseudo-terminal), each several times; the median is told. A bare Python that
starts and stops stands beside them as the floor.
"""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import header, table, write  # first: it sets the number of threads

import numpy as np  # isort: skip

MOSAIC = str(Path(sys.executable).with_name("mosaic"))
N, D = 1_000_000, 10


def on_a_terminal(command: list[str], folder: Path) -> tuple[float, float, float, int]:
    """Seconds to the first byte and to the end, the processor's among them, and bytes that were shown."""
    before = os.times()
    ours, theirs = pty.openpty()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=folder)
    os.close(theirs)
    first, seen = float("nan"), 0
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        if not seen:
            first = time.perf_counter() - started
        seen += len(part)
    process.wait()
    took = time.perf_counter() - started
    os.close(ours)
    after = os.times()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return first, took, used, seen


def make_data(folder: Path) -> None:
    """A million points in ten dimensions: thirty blobs, and one row in a thousand far from all."""
    rng = np.random.default_rng(0)
    centres = 10 * rng.normal(size=(30, D))
    X = centres[rng.integers(0, 30, N)] + rng.normal(size=(N, D))
    odd = rng.choice(N, N // 1000, replace=False)
    X[odd] = 60 * rng.normal(size=(len(odd), D))
    np.save(folder / "million.npy", X)
    np.save(folder / "hundred-thousand.npy", X[:100_000])
    np.savetxt(folder / "ten-thousand.csv", X[:10_000], delimiter=",", header=",".join(f"f{i}" for i in range(D)), comments="")


def main() -> None:
    """Measure all commands and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    commands = {
        "python -c pass (the floor)": [sys.executable, "-c", "print()"],
        "mosaic --help": [MOSAIC, "--help"],
        "mosaic select ten-thousand.csv -k 50": [MOSAIC, "select", "ten-thousand.csv", "-k", "50"],
        "mosaic report hundred-thousand.npy -k 50": [
            MOSAIC, "report", "hundred-thousand.npy", "-k", "50", "-o", "h.html", "--force",
        ],
        "mosaic select million.npy -k 50 -o picks.csv --report report.html": [
            MOSAIC, "select", "million.npy", "-k", "50", "-o", "picks.csv", "--report", "m.html", "--force",
        ],
        "mosaic demo": [MOSAIC, "demo"],
    }  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder)
        for title, command in commands.items():
            found = [on_a_terminal(command, folder) for _ in range(repeats)]
            first, took, used, _ = (statistics.median(values) for values in zip(*found, strict=True))
            report = {"m.html": "m.html", "h.html": "h.html"}.get(next((c for c in command if c.endswith(".html")), ""))
            page = folder / (report or ("mosaic-demo/report.html" if "demo" in command else "none"))
            size = f"{page.stat().st_size / 1e6:.2f} MB" if page.exists() else ""
            rows.append([f"`{title}`", f"{first:.2f}", f"{took:.1f}", f"{used:.1f}", size])
            print(*rows[-1], sep="  ", flush=True)
    told = (
        f"Seconds on a terminal, median of {repeats} runs: to the first byte that is shown, to the end, and of the processor. "
        f"million.npy has {N:,} × {D} float64 (80 MB): thirty blobs and 0.1 % gross outliers. What else the machine does adds to "
        "all but the processor's seconds."
    )
    head = ["command", "first sign of life", "whole", "processor", "report"]
    write("door.md", f"{header('The command line', ['numpy', 'scikit-learn', 'pyarrow'])}\n{told}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
