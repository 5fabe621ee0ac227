"""What a machine can carry: ranks that fit into memory, estimates that come true, and files that are read within the budget."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from pyarrow.csv import write_csv

import mosaic
from mosaic.arrays.passes import BLOCK_ROWS, PerRow
from mosaic.choosing import Settings
from mosaic.choosing.budget import DECISION_SAMPLE, available_memory, budget_of, memory_of_fit, memory_of_program
from mosaic.choosing.plan import Plan, Shape, memory_of_sample, plan_of
from mosaic.estimators import MOSAIC
from mosaic.exceptions import MemoryBudgetError
from mosaic.parameters import Paper, Sketch
from mosaic.rows import Encoder, read
from sources import open_source


@pytest.mark.parametrize(("n", "max_rank", "rank"), [(300, None, 300), (1500, None, 500), (1500, 700, 700), (300, 700, 300)])
def test_rank_is_full_for_few_points_and_otherwise_500_or_what_was_given(n, max_rank, rank):
    X = np.zeros((n, 10))
    needed = memory_of_program(n, rank, 8, 10)
    paper = Paper(max_rank=max_rank)
    assert mosaic.estimate(X, algorithm=paper, memory_budget=needed).memory == needed
    fault = rf"{n:,} rows × 10 features with a factor of rank {rank} need about .*; the budget is .* Lower max_rank"
    with pytest.raises(MemoryBudgetError, match=fault):
        mosaic.estimate(X, algorithm=paper, memory_budget=0.99 * needed)


def test_sparse_points_take_the_memory_of_their_entries(rng):
    full = 20_000 * 2000 * 8.0
    assert memory_of_fit(20_000, 8, 2000, size=full) == memory_of_fit(20_000, 8, 2000)
    assert memory_of_fit(20_000, 8, 2000, size=0.02 * full) < 0.25 * memory_of_fit(20_000, 8, 2000)
    assert memory_of_program(20_000, 500, 8, 2000, size=0.02 * full) < 0.5 * memory_of_program(20_000, 500, 8, 2000)
    few, many = (sp.random_array((3000, 400), density=share, rng=rng, format="csr") for share in (0.01, 0.5))
    assert mosaic.estimate(few).memory < mosaic.estimate(many).memory


def test_estimate_reads_as_a_sentence():
    assert str(Plan(123_456, 1234.5 * 2**20)) == "123,456 rows, in memory: about 1.2 GiB"
    assert str(Plan(10**6, 2**30, 1)) == "1,000,000 rows, 1 pass: about 1.0 GiB"
    cluster = Plan(10**6, 2**30, 1, read=2**40, moved=2**31)
    assert str(cluster) == "1,000,000 rows, 1 pass: about 1.0 GiB; 1.0 TiB are read, 2.0 GiB move"


def test_fit_in_memory_is_refused_beyond_the_budget_that_it_needs_and_plans_no_program(rng):
    X = rng.normal(size=(1500, 10))
    needed = mosaic.estimate(X).memory
    assert mosaic.estimate(X, memory_budget=1.01 * needed).memory == needed
    with pytest.raises(MemoryBudgetError, match=r"1,500 rows × 10 features need about .*; the budget is .* Raise memory_budget"):
        mosaic.estimate(X, memory_budget=0.99 * needed)
    paper = mosaic.estimate(X, algorithm="paper")
    assert (paper.memory > needed, paper.passes) == (True, 0)
    few, many = (mosaic.estimate(X, algorithm=Paper(sketch=Sketch(n_initial=r))).memory for r in (100, 1000))
    assert few < many
    with pytest.raises(MemoryBudgetError, match=r"1,500 rows × 10 features with a factor of rank 1,100 need .* Lower n_initial"):
        mosaic.estimate(X, algorithm=Paper(sketch=Sketch(n_initial=1000)), memory_budget=0.99 * many)


def test_the_paper_is_for_rows_in_memory_and_says_how_large_they_are(tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (100_000, 8))
    fault = "for rows in memory; 100,000 rows × 8 features are 6.1 MiB, and may be a quarter of the budget, 4.8 MiB. Leave algo"
    for X in (rows, tmp_path / "X.npy", open_source(rows)):
        for algorithm in ("paper", Paper(sketch=Sketch())):
            with pytest.raises(MemoryBudgetError, match=fault):
                MOSAIC(5, algorithm=algorithm, memory_budget=2e7).fit(X)
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(100, 2)))
    found, whole = (MOSAIC(5, algorithm="paper").fit(X) for X in (tmp_path / "few.npy", np.load(tmp_path / "few.npy")))
    np.testing.assert_array_equal(found.influence_, whole.influence_)


def settings_of(budget):
    return Settings.of(MOSAIC(20, memory_budget=budget))


@pytest.mark.parametrize("d", [10, 30, 64])
def test_many_rows_find_a_way_through_a_small_budget(d):
    enough = memory_of_sample(DECISION_SAMPLE, d)
    assert plan_of(settings_of(enough), Shape(200_000, d, "cluster")).sample == DECISION_SAMPLE
    assert plan_of(settings_of(0.9 * enough), Shape(200_000, d, "cluster")).sample < DECISION_SAMPLE
    with pytest.raises(MemoryBudgetError, match=r"200,000 rows × 64 features by passes with 2,048 points in memory need about"):
        plan_of(settings_of(1e7), Shape(200_000, 64, "cluster"))


def test_a_plan_stays_within_its_budget_and_a_larger_one_is_not_refused_where_a_smaller_one_is_enough():
    """The sample that decides becomes smaller first; picks are improved on as many rows as there is room for."""
    X = np.zeros((200_000, 8))
    plans = [mosaic.estimate(X, n_representatives=20, memory_budget=1e6 * size) for size in (60, 90, 95, 100, 105, 200, 400)]
    assert all(plan.memory <= 1e6 * size for plan, size in zip(plans, (60, 90, 95, 100, 105, 200, 400), strict=True))
    assert plans[0].sample < plans[-1].sample == DECISION_SAMPLE
    assert 0 < plans[0].larger < plans[-1].larger


def test_passes_use_no_more_threads_than_the_budget_has_room_for():
    def threads(budget, d=16):
        found = plan_of(settings_of(budget), Shape(200_000, d, "cluster")).threads
        assert found == 1 or memory_of_sample(DECISION_SAMPLE, d) + found * 8.0 * 8192 * d <= budget  # a block of rows for each
        return found

    assert threads(4e9) > threads(2e9) > 16
    assert threads(4e9, d=2000) < threads(4e9)
    assert threads(1.001 * memory_of_sample(DECISION_SAMPLE, 16)) == 1


GIB = 2**30


GROUP = "sys/fs/cgroup/pod"
LIMITS = {
    "nothing": ({"proc/self/cgroup": "0::/user.slice\n"}, 8 * GIB),
    "no limit": ({f"{GROUP}/memory.max": "max\n", f"{GROUP}/memory.current": "1\n", f"{GROUP}/memory.stat": ""}, 8 * GIB),
    "a container": ({f"{GROUP}/memory.max": f"{2 * GIB}\n", f"{GROUP}/memory.current": f"{GIB}\n"}, 1.5 * GIB),
}
# The limit of any group above counts; pages of files are given up when there is need.
LIMITS["a container"][0][f"{GROUP}/memory.stat"] = f"anon 5\ninactive_file {GIB // 2}\n"


@pytest.mark.parametrize("inside", ["/pod", "/pod/container"])
@pytest.mark.parametrize(("files", "free"), LIMITS.values(), ids=LIMITS)
def test_free_memory_is_what_the_machine_or_a_container_leaves(tmp_path, monkeypatch, files, free, inside):
    memory = f"MemTotal: 9 kB\nMemAvailable: {8 * GIB // 1024} kB\n"
    for name, text in {"proc/meminfo": memory, "proc/self/cgroup": f"0::{inside}\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_memory(tmp_path) == free
    assert available_memory(tmp_path / "nothing") >= GIB // 4  # a machine that says nothing: what it was built with
    monkeypatch.setattr("mosaic.choosing.budget.available_memory", lambda: 4.0 * GIB)
    assert (budget_of(None), budget_of(5e8)) == (GIB, 5e8)  # a quarter of what is free, or what is given


#: Opens a file, passes over its rows, and prints the rise of resident memory in bytes.
RISE = """
import sys
from mosaic.arrays.passes import PerRow
from mosaic.cli import main
from mosaic.choosing import plan
from mosaic.estimators import fit
from mosaic.rows import Encoder, arrow, read

kind, small, large, budget = sys.argv[1:]

def resident(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))

def work(file):
    if kind == "select":
        words = f"-k 10 --memory-budget {budget} -o {file}.picks.csv --report {file}.html -q"
        assert main(["select", file, *words.split()]) == 0
    else:
        with read(file, memory_budget=float(budget)) as table:
            if table.stays:
                source = Encoder.fit(table).source(table)
                assert source.run(PerRow(lambda rows, start: {"first": rows[:, 0].copy()}))["first"].shape == (table.n,)
            table.cells([0, table.n - 1])

arrow.leaves_room = lambda *sizes, **how: False
for module in (fit, plan):  # small files, too, are read in passes
    module.needs_a_pass = lambda settings, rows: rows.place != "array"
work(small)  # what is loaded at the first use is no part of the rise
before = resident("VmRSS:")
work(large)
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
@pytest.mark.parametrize("kind", ["pass", pytest.param("select", marks=pytest.mark.slow)])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_a_wide_file_of_many_rows_is_passed_over_and_selected_from_within_the_budget(kind, ending, tmp_path, rng):
    X = rng.normal(size=(100_000 if kind == "pass" else 400_000, 64)).round(3)  # 51 MB of numbers, or 205
    files = [tmp_path / f"{name}.{ending}" for name in ("small", "large")]
    for path, rows in zip(files, (X[:300], X), strict=True):
        if ending == "csv":
            write_csv(table_of(rows), path)
        elif ending == "parquet":
            pq.write_table(table_of(rows), path, row_group_size=len(rows))
        else:
            np.save(path, rows)
    budget = 120e6 if kind == "pass" else 250e6
    assert int(in_python("-c", RISE, kind, *files, int(budget)).stdout) < 1.1 * budget
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"small", "large"}


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["wide CSV file", "wide Parquet file", "npy by passes", "mixed CSV file"])
def test_fit_and_certificate_of_a_file_stay_within_the_budget(shape):
    done = in_python(Path(__file__).parents[1] / "benchmarks" / "budgets.py", shape)
    assert float(done.stdout.splitlines()[-1].split("|")[-2]) <= 1.1


def test_a_block_of_rows_that_is_larger_than_the_budget_is_refused_with_the_sizes(tmp_path, rng):
    pq.write_table(table_of(rng.normal(size=(BLOCK_ROWS, 200))), tmp_path / "wide.parquet")
    with pytest.raises(MemoryBudgetError, match=r"8,192 rows × 200 columns .* takes about .* MiB.*budget is 19 MiB"):
        read(tmp_path / "wide.parquet", memory_budget=2e7)
    with read(tmp_path / "wide.parquet", memory_budget=6e7) as table:
        assert table.n == BLOCK_ROWS


def test_what_a_file_takes_in_memory_is_a_part_of_the_estimate(tmp_path, rng):
    X = rng.normal(size=(400, 200))
    pq.write_table(table_of(X), tmp_path / "points.parquet")
    budget = memory_of_program(400, 400, 8, 200)
    with read(tmp_path / "points.parquet", memory_budget=budget) as table:
        assert table.held == pytest.approx(X.nbytes, rel=0.1)  # and the numbers made of them as much
    array, file = (mosaic.estimate(rows, memory_budget=budget) for rows in (X, tmp_path / "points.parquet"))
    assert file.memory - array.memory == pytest.approx(2 * X.nbytes, rel=0.1)


def test_mixed_columns_whose_numbers_take_far_more_than_their_cells_are_encoded_in_passes(tmp_path, rng):
    n = 20_000
    kinds = {f"kind{j}": rng.choice([f"level {i}" for i in range(30)], n) for j in range(4)}
    write_csv(pa.table({"size": rng.normal(size=n).round(3), **kinds}), tmp_path / "mixed.csv")
    with read(tmp_path / "mixed.csv") as whole, read(tmp_path / "mixed.csv", memory_budget=8e7) as table:
        expected, encoder = Encoder.fit(whole).matrix(whole), Encoder.fit(table)
        source = encoder.source(table)
        assert source.n_features == expected.shape[1] > 100
        np.testing.assert_array_equal(source.read(0, n), expected)
        rows = source.run(PerRow(lambda rows, start: {"rows": rows}))["rows"]
        np.testing.assert_array_equal(rows, expected)
        assert encoder == Encoder.fit(whole)
        assert mosaic.estimate(table, memory_budget=8e7).passes == 1


@pytest.mark.usefixtures("by_passes")
def test_estimate_of_passes_counts_what_reading_takes(tmp_path, rng):
    X = rng.normal(size=(20_000, 10))
    np.save(tmp_path / "points.npy", X)
    pq.write_table(table_of(X), tmp_path / "points.parquet")
    array = mosaic.estimate(open_source(X), memory_budget=2e8)
    mapped = mosaic.estimate(np.load(tmp_path / "points.npy", mmap_mode="r"), memory_budget=2e8)
    assert mapped.memory - array.memory == X.nbytes
    packed = mosaic.estimate(tmp_path / "points.parquet", memory_budget=2e8)
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
