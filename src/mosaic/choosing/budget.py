"""Memory: what a fit needs, what a budget allows, and the expected cost."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from mosaic.arrays.blocks import BLOCK_ENTRIES
from mosaic.arrays.xp import DEVICE_BLOCK_ENTRIES
from mosaic.exceptions import MemoryBudgetError
from mosaic.program.problem import MOST_SOLVED_WHOLE
from mosaic.program.working_set import MOST_INITIAL_MEMBERS, MOST_MEMBERS
from mosaic.text import readable_size

#: Up to this many distinct points the factor has full rank. For more its rank is limited, since the support grows with it and
#: interior point costs its cube.
EXACT_SIZE = 1000
LARGEST_RANK = 500
#: What to do where a fit needs more than the budget.
LESS_MEMORY = "Raise `memory_budget`, use float32, or fit a random part of the rows."
#: Largest number of distinct points that decisions are made with; of more, a random sample of this size.
DECISION_SAMPLE = 16_384
#: Largest number of rows of a larger sample, which picks are improved on, and of their entries: 256 MB in double precision.
LARGER_SAMPLE = 1 << 17
LARGER_SAMPLE_ENTRIES = 1 << 25
#: Points to be covered, and candidates, for each pick: fewer make the choice worse, more do not make it better.
TARGETS_FOR_A_PICK = 16
CANDIDATES_FOR_A_PICK = 4
#: Bytes of a point that is covered by many picks: about 64 near candidates, each four times while they are found.
BYTES_OF_A_TARGET = 7_000.0
#: Largest number of similarities between targets and candidates (in single precision, 100 MB), and of those in double precision.
MOST_SIMILARITIES = 25_000_000
MOST_IN_DOUBLE = 1 << 16


def budget_of(memory_budget: float | None) -> float:
    """The bytes that a fit may use: those that were given, or a quarter of what is free."""
    return 0.25 * available_memory() if memory_budget is None else float(memory_budget)


def available_memory(root: Path = Path("/")) -> float:
    """Bytes that this process may still take: those that are free on the machine, or that the limits of its container leave."""
    free = [8.0 * 2**30]  # where nobody says
    with suppress(AttributeError, OSError, ValueError):  # sysconf is not known everywhere
        free = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    with suppress(OSError, ValueError):
        lines = (root / "proc/meminfo").read_text().splitlines()
        free = [
            1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
        ] or free
    with suppress(OSError, ValueError):
        mount = root / "sys/fs/cgroup"
        group = mount / (root / "proc/self/cgroup").read_text().strip().rpartition("::")[2].strip(
            "/"
        )
        for place in (group, *group.parents):
            # A container may see its own group as the root. Groups without a limit say "max".
            with suppress(OSError, ValueError):
                stat = dict(
                    line.split() for line in (place / "memory.stat").read_text().splitlines()
                )
                limit = int((place / "memory.max").read_text())
                taken = int((place / "memory.current").read_text())
                # Such pages are given up when there is need.
                given_up = int(stat.get("inactive_file", 0))
                free.append(float(limit - taken + given_up))
            if place == mount:
                break
    return max(min(free), 0.0)


def refuse_beyond(budget: float, what: object, needed: float, remedy: str) -> None:
    """Raise an error with the numbers if more is needed than the budget."""
    if needed > budget:
        fault = f"{what} need about {readable_size(needed)}; the budget is {readable_size(budget)}"
        raise MemoryBudgetError(fault, remedy)


def refuse_certificate_beyond(
    memory_budget: float | None, k: int, targets: int, candidates: int
) -> None:
    """Similarities in single precision, and a quarter as much for those above the floor; as many as a fit has are allowed."""
    budget = max(budget_of(memory_budget), 6.0 * MOST_SIMILARITIES)
    what = f"Certificates of {k:,} picks"
    remedy = "Raise `memory_budget`, or certify fewer."
    refuse_beyond(budget, what, 5.0 * targets * candidates, remedy)


def memory_of_fit(n: int, itemsize: int, n_features: int, size: float | None = None) -> float:
    """Bytes at the peak of a fit: what it keeps (the points and sixteen numbers for each), and the larger of one more copy of the
    points and what choosing takes: distances for the bandwidth, similarities, 1.5 MB for the small programs, and copies in double
    precision of points that are compared. ``size`` is that of the points, if they are sparse.
    """
    points = float(n) * n_features * itemsize if size is None else size
    bandwidth = 3.0 * 8 * min(n, 2048) * min(n, 512)
    similarities = (
        8.0 * n * n if n * n <= MOST_IN_DOUBLE else 4.0 * min(float(n) * n, MOST_SIMILARITIES)
    )
    in_programs = 512 if n > 128 else n
    compared = (
        2.0 * points * (8 / itemsize) * min(n, DECISION_SAMPLE) / n
        + 3.0 * 8 * in_programs * n_features
    )
    return points + 16.0 * 8 * n + max(points, bandwidth + similarities + compared + 1_500_000)


def memory_of_many_picks(n: int, k: int) -> float:
    """Bytes for the candidates near to each point that is covered, where the similarities to all candidates are too many."""
    targets = min(n, round(TARGETS_FOR_A_PICK * k))
    candidates = min(n, round(CANDIDATES_FOR_A_PICK * k))
    return BYTES_OF_A_TARGET * targets if targets * candidates > MOST_SIMILARITIES else 0.0


def memory_of_program(
    n: int, rank: int, itemsize: int, n_features: int, size: float | None = None
) -> float:
    """Bytes at the peak of the paper's algorithm, that of a fit or of its program, a promise: the points, the factor, blocks of
    similarities, and the solver's matrices for the largest working set of m points, m×m (in double and in single precision),
    five m×p and ten p×p.
    """
    is_whole = n <= MOST_INITIAL_MEMBERS or n <= min(MOST_SOLVED_WHOLE, 4 * rank)
    m = float(n if is_whole else min(n, max(MOST_MEMBERS, 4 * rank)))
    solver = 12.0 * m * m + 5.0 * 8 * m * rank + 10.0 * 8 * rank * rank
    blocks = 4.0 * 8 * min(n * rank, BLOCK_ENTRIES)
    points = float(n) * n_features * itemsize if size is None else size
    program = points + 16.0 * 8 * n + float(itemsize) * n * rank + blocks + solver
    return max(memory_of_fit(n, itemsize, n_features, size), program)


def memory_on_device(n: int, rank: int, itemsize: int, n_features: int) -> float:
    """Bytes at the peak on a device, of the fit (a copy of the points, blocks of rows or similarities) or of the paper's program,
    which holds a factor of this rank twice while it grows; within a third of what was measured on one card.
    """
    entries = DEVICE_BLOCK_ENTRIES
    copy = float(n) * n_features * itemsize
    blocks = (
        56 * min(n * n_features, entries),
        16 * min(512 * n, entries),
        24 * min(n * n, MOST_SIMILARITIES),
    )
    proof = 2.0 * itemsize * n * rank + 128.0 * n + 16 * min(n * rank, entries)
    return copy + max(600.0 * n + max(blocks), proof if rank else 0.0)


def may_load(size: float, budget: float) -> bool:
    """Whether data of a file may be loaded: at most a quarter of the budget."""
    return size <= budget / 4


def leaves_room(n: int, n_features: int, budget: float, copies: int = 1) -> bool:
    """Whether numbers that a file is read into, once or twice, take at most a quarter of the budget and leave room for a fit."""
    numbers = 8.0 * n * n_features
    needed = copies * numbers + memory_of_fit(n, 8, n_features)
    return may_load(numbers, budget) and needed <= budget
