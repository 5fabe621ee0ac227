"""Rows are selected from files of 5 GB within the memory budget."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pyarrow")

SIZE = 5_000_000_000
BUDGET = 2 << 30

#: VmHWM, unlike ru_maxrss, does not begin with what the parent had when it forked.
SELECT = """
import re, sys
from mosaic.cli import main

words = "-k 10 --algorithm sketch,n_initial=100 -o picks.csv --report report.html --json"
code = main(["select", sys.argv[1], *words.split()])
status = open("/proc/self/status").read()
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def roomy(tmp_path, monkeypatch):
    """A folder on a disk with room, which is emptied whatever happens."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak of memory is read of /proc")
    if shutil.disk_usage(tmp_path).free < 15e9:
        pytest.skip("less than 15 GB of disk are free")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    yield tmp_path
    shutil.rmtree(tmp_path)


def written(path, head, block, size=SIZE):
    """A block of bytes, as often as it takes."""
    times = -(-size // len(block))
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(block)
    return times


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_a_selection_from_5_gb_stays_within_the_budget(roomy, ending):
    rng = np.random.default_rng(0)
    crowd = rng.integers(0, 10, 20_000)
    X = (8 * rng.normal(size=(10, 100))[crowd] + rng.normal(size=(20_000, 100))).round(3)
    file = roomy / f"wide.{ending}"
    if ending == "csv":
        block = "".join(",".join(map(repr, row)) + "\n" for row in X.tolist()).encode()
        head = ",".join(f"f{j}" for j in range(100)).encode() + b"\n"
        times = written(file, head, block)
    else:
        times = -(-SIZE // X.nbytes)
        np.lib.format.open_memmap(file, "w+", X.dtype, (times * len(X), 100)).flush()
        stored = np.load(file, mmap_mode="r+")
        for i in range(times):
            stored[i * len(X) : (i + 1) * len(X)] = X
        del stored
    assert file.stat().st_size >= SIZE
    done = subprocess.run([sys.executable, "-c", SELECT, str(file)], capture_output=True, text=True, cwd=roomy, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["file"]["rows"] == times * len(X)
    assert int(done.stderr.splitlines()[-1]) < BUDGET
    assert {int(crowd[pick["row"] % len(X)]) for pick in answer["picks"]} == set(range(10))
    assert (roomy / "picks.csv").read_text().count("\n") == 11
    assert (roomy / "report.html").stat().st_size < 3_000_000
    assert not list((roomy / "scratch").iterdir())
