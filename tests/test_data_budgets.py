"""Files are read within the memory budget: wide ones, those in one row group, mixed ones; and CSV files of very many columns."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

import mosaic
from mosaic.arrays.passes import BLOCK_ROWS, PerRow
from mosaic.choosing.budget import memory_needed
from mosaic.exceptions import MemoryBudgetError
from mosaic.rows import read
from mosaic.rows.build import TableSource

#: Opens a file, passes over its rows, and prints the rise of resident memory in bytes.
RISE = """
import sys
from pathlib import Path
from mosaic.rows import read
from mosaic.arrays.passes import PerRow

def resident(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))

with read(sys.argv[1]) as small:  # what is loaded at the first use is no part of the rise
    small.cells([0])
before = resident("VmRSS:")
with read(sys.argv[2], memory_budget=float(sys.argv[3])) as table:
    assert table.X.run(PerRow(lambda rows, start: {"first": rows[:, 0].copy()}))["first"].shape == (table.n,)
    table.cells([0, table.n - 1])
print(resident("VmHWM:") - before)
"""


def table_of(X):
    return pa.table({f"x{j}": column for j, column in enumerate(X.T)})


def in_python(*words):
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read of /proc")


@on_linux
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wide_file_of_many_rows_is_opened_and_passed_over_within_the_budget(ending, tmp_path, rng):
    table = table_of(rng.normal(size=(100_000, 64)).round(3))  # 51 MB of numbers
    for name, rows in (("small", table.slice(0, 50)), ("large", table)):
        if ending == "csv":
            write_csv(rows, tmp_path / f"{name}.csv")
        else:
            pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=len(table))
    rise = in_python("-c", RISE, tmp_path / f"small.{ending}", tmp_path / f"large.{ending}", "120e6").stdout
    assert int(rise) < 1.1 * 120e6


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["wide CSV file", "wide Parquet file", "Parquet file", "mixed CSV file"])
def test_fit_and_certificate_of_a_file_stay_within_the_budget(shape):
    done = in_python(Path(__file__).parents[1] / "benchmarks" / "budgets.py", shape)
    assert float(done.stdout.splitlines()[-1].split("|")[-2]) <= 1.1


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


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_a_selection_from_5_gb_stays_within_the_budget(tmp_path, monkeypatch, rng, ending):
    if shutil.disk_usage(tmp_path).free < 15e9:
        pytest.skip("less than 15 GB of disk are free")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    crowd = rng.integers(0, 10, 20_000)
    X = (8 * rng.normal(size=(10, 100))[crowd] + rng.normal(size=(20_000, 100))).round(3)
    file, head, block = tmp_path / f"wide.{ending}", b"", X.tobytes()
    if ending == "csv":
        head = ",".join(f"f{j}" for j in range(100)).encode() + b"\n"
        block = "".join(",".join(map(repr, row)) + "\n" for row in X.tolist()).encode()
    times = -(-5_000_000_000 // len(block))
    try:
        with file.open("wb") as stream:
            if ending == "npy":
                header = {"descr": "<f8", "fortran_order": False, "shape": (times * len(X), 100)}
                np.lib.format.write_array_header_1_0(stream, header)
            stream.write(head)
            for _ in range(times):
                stream.write(block)
        done = in_python("-c", SELECT, file)
    finally:
        file.unlink()
    answer = json.loads(done.stdout)
    assert answer["file"]["rows"] == times * len(X)
    assert int(done.stderr.splitlines()[-1]) < 2 << 30
    assert {int(crowd[pick["row"] % len(X)]) for pick in answer["picks"]} == set(range(10))
    assert (tmp_path / "picks.csv").read_text().count("\n") == 11
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
    assert not list((tmp_path / "scratch").iterdir())


def test_a_block_of_rows_that_is_larger_than_the_budget_is_refused_with_the_sizes(tmp_path, rng):
    pq.write_table(table_of(rng.normal(size=(BLOCK_ROWS, 200))), tmp_path / "wide.parquet")
    with pytest.raises(MemoryBudgetError, match=r"8,192 rows × 200 columns .* takes about .* MiB.*budget is 19 MiB"):
        read(tmp_path / "wide.parquet", memory_budget=2e7)
    with read(tmp_path / "wide.parquet", memory_budget=6e7) as table:
        assert table.n == BLOCK_ROWS


def test_what_a_file_takes_in_memory_is_not_there_for_the_fit(tmp_path, rng):
    X = rng.normal(size=(400, 200))
    pq.write_table(table_of(X), tmp_path / "points.parquet")
    budget = memory_needed(400, 400, 8, 200)
    with read(tmp_path / "points.parquet", memory_budget=budget) as table:
        assert table.held == pytest.approx(2 * X.nbytes, rel=0.1)
    assert mosaic.estimate(X, memory_budget=budget).strategy == "exact"
    assert mosaic.estimate(tmp_path / "points.parquet", memory_budget=budget).strategy == "low-rank"
    more = {"memory_budget": budget + 2.2 * X.nbytes}
    array, file = mosaic.estimate(X, **more), mosaic.estimate(tmp_path / "points.parquet", **more)
    assert file.strategy == "exact"
    assert file.memory - array.memory == pytest.approx(2 * X.nbytes, rel=0.1)


def test_mixed_columns_whose_numbers_take_far_more_than_their_cells_are_encoded_in_passes(tmp_path, rng):
    n = 20_000
    kinds = {f"kind{j}": rng.choice([f"level {i}" for i in range(30)], n) for j in range(4)}
    write_csv(pa.table({"size": rng.normal(size=n).round(3), **kinds}), tmp_path / "mixed.csv")
    with read(tmp_path / "mixed.csv") as whole, read(tmp_path / "mixed.csv", memory_budget=3e7) as table:
        assert isinstance(table.X, TableSource)
        assert table.X.n_features == whole.X.shape[1] > 100
        np.testing.assert_array_equal(table.X.read(0, n), whole.X)
        rows = table.X.run(PerRow(lambda rows, start: {"rows": rows}))["rows"]
        np.testing.assert_array_equal(rows, whole.X)
        assert table.encoder == whole.encoder


def test_estimate_of_passes_counts_what_reading_takes(tmp_path, rng):
    X = rng.normal(size=(20_000, 10))
    np.save(tmp_path / "points.npy", X)
    pq.write_table(table_of(X), tmp_path / "points.parquet")
    array = mosaic.estimate(X, algorithm="sketch", memory_budget=2e8)
    mapped = mosaic.estimate(np.load(tmp_path / "points.npy", mmap_mode="r"), algorithm="sketch", memory_budget=2e8)
    assert mapped.memory - array.memory == X.nbytes
    packed = mosaic.estimate(tmp_path / "points.parquet", algorithm="sketch", memory_budget=2e8)
    assert packed.memory > array.memory


def test_columns_of_a_wide_csv_file_may_change_their_kind_further_down(tmp_path):
    cells = np.array([[f"{i}.{j}" for j in range(40)] for i in range(1, 6)])
    cells[:, 5] = ["1.5", "blue", "blue", "red", "blue"]  # texts below a fraction
    cells[2, 6] = "7"  # a whole number below fractions
    cells[4, 8] = ""  # missing
    cells[:, 9] = [f"00{i}" for i in range(1, 6)]  # codes
    lines = [",".join(row) for row in ([f"x{j}" for j in range(40)], *cells)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    with read(tmp_path / "wide.csv") as table:
        shown = table.cells(range(5))
    assert shown.column("x5").to_pylist() == ["1.5", "blue", "blue", "red", "blue"]
    assert shown.column("x6").to_pylist() == [1.6, 2.6, 7.0, 4.6, 5.6]
    assert shown.column("x8").to_pylist() == [1.8, 2.8, 3.8, 4.8, None]
    assert shown.column("x9").to_pylist() == ["001", "002", "003", "004", "005"]
