"""What a machine can carry: ranks that fit into memory, and estimates that come true."""

import numpy as np
import pytest
import scipy.sparse as sp

import mosaic
from mosaic.choosing import Settings
from mosaic.choosing.budget import (
    DECISION_SAMPLE,
    EXACT_SIZE,
    LARGEST_RANK,
    MOST_FACTOR_WORK,
    SMALLEST_RANK,
    Estimate,
    affordable_rank,
    available_memory,
    budget_of,
    memory_needed,
    memory_of_fit,
    useful_rank,
)
from mosaic.estimators import MOSAIC
from mosaic.estimators.proof import Plan, memory_by_passes
from mosaic.exceptions import MemoryBudgetError
from mosaic.parameters import Sketch
from mosaic.text import readable_size


def test_small_data_may_have_full_rank():
    for n in (1, 5, SMALLEST_RANK, 100, EXACT_SIZE):
        assert affordable_rank(n, 8, 10, None) == useful_rank(n) == n
    assert affordable_rank(EXACT_SIZE + 1, 8, 10, None) == LARGEST_RANK
    ranks = [useful_rank(n) for n in (EXACT_SIZE + 1, 10**4, 10**5, 10**6, 10**9)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] == SMALLEST_RANK


@pytest.mark.parametrize("n", [3000, 10**4, 10**5, 10**6])
def test_rank_of_large_data_keeps_work_and_memory_within_bounds(n):
    rank = affordable_rank(n, 8, 10, 2.0**31)
    assert SMALLEST_RANK <= rank <= LARGEST_RANK
    assert n * rank**2 <= MOST_FACTOR_WORK
    assert memory_needed(n, rank, 8, 10) <= 2.0**31


@pytest.mark.parametrize("n", [50, 1500, 20_000])
def test_rank_grows_with_the_budget_and_never_beyond_it(n):
    least = memory_needed(n, SMALLEST_RANK, 8, 10)
    budgets = least + np.geomspace(1.0, 4.0 * least, 40)
    ranks = [affordable_rank(n, 8, 10, budget) for budget in budgets]
    assert ranks == sorted(ranks)
    assert ranks[0] >= SMALLEST_RANK
    assert ranks[-1] > ranks[0] or ranks[-1] == n
    for budget, rank in zip(budgets, ranks, strict=True):
        assert memory_needed(n, rank, 8, 10) <= budget


def test_rank_that_the_user_allows_is_overruled_by_the_budget_and_the_number_of_points_only():
    budget = memory_needed(20_000, 200, 8, 10)
    assert affordable_rank(20_000, 8, 10, None, 700) == 700 > affordable_rank(20_000, 8, 10, None)
    assert affordable_rank(20_000, 8, 10, None, 3) == 3
    assert affordable_rank(20_000, 8, 10, budget, 700) == 200
    assert affordable_rank(30, 8, 10, None, 700) == 30


def test_too_small_a_budget_is_refused_with_the_numbers():
    for n in (20, 5000):
        needed = memory_needed(n, SMALLEST_RANK, 8, 20)
        with pytest.raises(MemoryBudgetError) as caught:
            affordable_rank(n, 8, 20, 0.5 * needed)
        text = str(caught.value)
        assert f"{n:,} points × 20 features" in text
        assert f"need about {readable_size(needed)} at the least" in text
        assert f"the budget is {readable_size(0.5 * needed)}" in text
        assert "memory_budget" in text
        assert affordable_rank(n, 8, 20, needed) >= SMALLEST_RANK


def test_sparse_points_take_the_memory_of_their_entries(rng):
    full = 20_000 * 2000 * 8.0
    assert memory_of_fit(20_000, 8, 2000, size=full) == memory_of_fit(20_000, 8, 2000)
    assert memory_of_fit(20_000, 8, 2000, size=0.02 * full) < 0.25 * memory_of_fit(20_000, 8, 2000)
    assert affordable_rank(20_000, 8, 2000, 4e8, size=0.02 * full) > SMALLEST_RANK
    with pytest.raises(MemoryBudgetError):
        affordable_rank(20_000, 8, 2000, 4e8)
    few, many = (sp.random_array((3000, 400), density=share, rng=rng, format="csr") for share in (0.01, 0.5))
    assert mosaic.estimate(few).memory < mosaic.estimate(many).memory


def test_estimate_reads_as_a_sentence():
    text = str(Estimate("low-rank", 123_456, 700, 1234.5 * 2**20, 0, 2**29))
    assert text == "123,456 points, low-rank (rank at most 700): about 1.2 GiB, and for the certificate up to 512 MiB"
    text = str(Estimate("sketch", 10**6, 400, 2**30, 1, 2**30, 9))
    assert text.startswith("1,000,000 rows, 1 pass: about 1.0 GiB; and for the certificate up to 9 passes (400 candidates)")


def plan_for(budget, d, **settings):
    return Plan.of(Settings.of(MOSAIC(20, memory_budget=budget, **settings)), 200_000, d)


@pytest.mark.parametrize("d", [10, 30, 64])
def test_many_rows_find_a_way_through_a_small_budget(d):
    plan, least = plan_for(2e8, d), plan_for(1.4e8, d)
    assert memory_by_passes(plan.sample, plan.n_initial, d) <= 2e8
    assert plan.n_initial < plan_for(2e9, d).n_initial
    assert least.sample < plan.sample == DECISION_SAMPLE
    with pytest.raises(MemoryBudgetError, match=r"need about .* at the least"):
        plan_for(2e7, 64)


def test_passes_use_no_more_threads_than_the_budget_has_room_for():
    def threads(budget, r, d=16):
        settings = Settings.of(MOSAIC(20, memory_budget=budget, algorithm=Sketch(n_initial=r)))
        plan = Plan.of(settings, 200_000, d)
        one = 8.0 * (8192 * d + r * r)  # at least a block of rows and a sum
        found = plan.threads(settings, 200_000, d)
        assert found == 1 or memory_by_passes(plan.sample, plan.n_initial, d) + found * one <= budget
        return found

    assert threads(2e9, 500) > 16
    assert threads(3e9, 2000) < threads(4e9, 2000) < threads(4e9, 500)
    assert threads(4e9, 500, d=2000) < threads(4e9, 500)
    enough = memory_by_passes(DECISION_SAMPLE, 500, 16)
    assert threads(1.001 * enough, 500) == 1


GIB = 2**30


GROUP = "sys/fs/cgroup/pod"
LIMITS = {
    "nothing": ({"proc/self/cgroup": "0::/user.slice\n"}, 8 * GIB),
    "no limit": ({f"{GROUP}/memory.max": "max\n", f"{GROUP}/memory.current": "1\n", f"{GROUP}/memory.stat": ""}, 8 * GIB),
    # The limit of any group above counts; pages of files are given up when there is need.
    "a container": (
        {
            f"{GROUP}/memory.max": f"{2 * GIB}\n",
            f"{GROUP}/memory.current": f"{GIB}\n",
            f"{GROUP}/memory.stat": f"anon 5\ninactive_file {GIB // 2}\n",
        },
        1.5 * GIB,
    ),
}


@pytest.mark.parametrize("inside", ["/pod", "/pod/container"])
@pytest.mark.parametrize(("files", "free"), LIMITS.values(), ids=LIMITS)
def test_free_memory_is_what_the_machine_or_a_container_leaves(tmp_path, files, free, inside):
    memory = f"MemTotal: 9 kB\nMemAvailable: {8 * GIB // 1024} kB\n"
    for name, text in {"proc/meminfo": memory, "proc/self/cgroup": f"0::{inside}\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_memory(tmp_path) == free


def test_the_default_budget_is_a_quarter_of_what_is_free(monkeypatch, tmp_path):
    assert available_memory(tmp_path) >= GIB // 4  # of a machine that says nothing: what it was built with
    monkeypatch.setattr("mosaic.choosing.budget.available_memory", lambda: 4.0 * GIB)
    assert budget_of(None) == GIB
    assert budget_of(5e8) == 5e8
