"""The plan of a fit: which rows decide, whether the others are read in a pass, and the memory that this takes.

Rows in memory are taken as they are, and of many a sample decides. Rows of a file are loaded where that leaves room for a fit,
otherwise one pass draws the sample; so it does for rows on a cluster, unless they are few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import scipy.sparse as sp

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.arrays.xp import free_memory, is_on_device, numpy_dtype
from mosaic.choosing.budget import (
    DECISION_SAMPLE,
    EXACT_SIZE,
    LARGER_SAMPLE,
    LARGER_SAMPLE_ENTRIES,
    LARGEST_RANK,
    LESS_MEMORY,
    TARGETS_FOR_A_PICK,
    budget_of,
    leaves_room,
    may_load,
    memory_of_fit,
    memory_of_many_picks,
    memory_of_program,
    memory_on_device,
    refuse_beyond,
)
from mosaic.choosing.draw import BUCKETS, most_of_part
from mosaic.choosing.settings import Settings
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.kernels import POINT_KERNELS
from mosaic.text import readable_size

#: Where rows are: arrays and tables in memory, arrays mapped from a file, other files of this machine, a cluster.
Place: TypeAlias = Literal["array", "table", "map", "file", "cluster"]
#: Smallest number of points in memory.
SMALLEST_SAMPLE = 2048
#: Copies of the larger sample: as it is drawn, from two parts of the rows, prepared, and with picks that are not in it.
COPIES_OF_LARGER = 4.0
#: Rows of a block whose similarities to the picks are in memory at a time.
ROWS_AT_ONCE = 1024
#: Bytes that a row of a draw takes beside its numbers: where it is, its priority, its kind and its copies.
BYTES_OF_A_DRAWN_ROW = 32


@dataclass(frozen=True)
class Shape:
    """How many rows, of how many numbers, and where. ``held`` are bytes that their file takes in memory already, and ``buffers``
    those that reading it takes; ``array`` are the numbers, if they are in memory. On a cluster they are in ``n_parts`` parts, and
    each number has ``in_parts`` bytes.
    """

    n: int
    n_features: int
    place: Place = "array"
    is_weighted: bool = False
    held: float = 0.0
    buffers: float = 0.0
    array: Any = None
    n_parts: int = 0
    in_parts: int = 8

    @property
    def size(self) -> float:
        """Bytes of the numbers in memory."""
        X = self.array
        if sp.issparse(X):
            return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
        return float(self.n * self.n_features * self.itemsize)

    @cached_property
    def itemsize(self) -> int:
        return self.in_parts if self.array is None else numpy_dtype(self.array).itemsize

    @cached_property
    def on_device(self) -> bool:
        return self.array is not None and is_on_device(self.array)

    def __str__(self) -> str:
        return f"{self.n:,} rows × {self.n_features:,} features"


@dataclass(frozen=True)
class Plan:
    """What a fit will do and cost; ``mosaic.estimate`` gives it before a fit.

    Attributes
    ----------
    n_rows : number of rows
    memory : bytes at the peak of the fit, beyond the data that is passed in
    passes : 1 if the rows are read in a pass, 0 if they are in memory
    read, moved : bytes of numbers that workers of a cluster read in a pass, and that they send of them; 0 elsewhere
    sample : rows that decide; all of few
    larger : rows that picks are improved on, 0 if they are not
    threads : the most that a pass may use
    """

    n_rows: int
    memory: float
    passes: int = 0
    sample: int = 0
    larger: int = 0
    threads: int | None = None
    read: float = 0.0
    moved: float = 0.0

    @property
    def is_sampled(self) -> bool:
        return self.sample < self.n_rows

    def __str__(self) -> str:
        passes = "1 pass" if self.passes else "in memory"
        said = f"{self.n_rows:,} rows, {passes}: about {readable_size(self.memory)}"
        if not self.read:
            return said
        return f"{said}; {readable_size(self.read)} are read, {readable_size(self.moved)} move"


def plan_of(settings: Settings, rows: Shape, *, passes: bool | None = None) -> Plan:
    """The plan of a fit, with a pass or without one, if that is known; an error with the numbers if the budget is too small."""
    if needs_a_pass(settings, rows) if passes is None else passes:
        refuse_passes(settings, rows)
        plan = _plan_of_pass(settings, rows)
    elif settings.mode == "paper":
        plan = Plan(rows.n, _memory_of_paper(settings, rows), sample=rows.n)
    else:
        plan = _plan_in_memory(settings, rows)
    return replace(plan, memory=plan.memory + rows.held + plan.passes * rows.buffers)


def needs_a_pass(settings: Settings, rows: Shape) -> bool:
    if rows.place == "array":
        return False
    budget = budget_of(settings.memory_budget)
    n = rows.n
    d = rows.n_features
    is_paper = settings.mode == "paper"
    if rows.place == "table":
        return not (rows.is_weighted or is_paper or may_load(8.0 * n * d, budget))
    has_room = leaves_room(n, d, budget)
    if rows.place == "map":
        return compares_any(settings) and not (rows.is_weighted or has_room)
    loads = has_room and (is_paper or rows.place == "file")
    return not loads and n > sample_size(settings, n, d)


def compares_any(settings: Settings) -> bool:
    """Whether the similarity of any two rows is known, so that a sample can decide."""
    return callable(settings.kernel) or settings.kernel in POINT_KERNELS


def refuse_passes(settings: Settings, rows: Shape) -> None:
    instead = "Pass an array in memory."
    if settings.mode == "paper":
        budget = budget_of(settings.memory_budget)
        numbers = readable_size(8.0 * rows.n * rows.n_features)
        fault = f"the paper's algorithm is for rows in memory; {rows} are {numbers}, "
        fault += f"and may be a quarter of the budget, {readable_size(budget / 4)}"
        raise MemoryBudgetError(fault, "Leave `algorithm` at None, or read a sample of the rows.")
    if not compares_any(settings):
        known = (
            f"the kernels {', '.join(map(repr, POINT_KERNELS))} or a function of two sets of points"
        )
        got = f"got {settings.kernel!r}, which needs all points at once"
        raise InvalidInputError(f"rows that are read in passes need {known}; {got}", instead)
    if rows.is_weighted:
        fault = "rows that are read in passes have no `sample_weight`; copies of a row are counted"
        raise InvalidInputError(fault, instead)


def _plan_in_memory(settings: Settings, rows: Shape) -> Plan:
    n = rows.n
    d = rows.n_features
    numbers = 24.0 * n  # of every row, where a sample decides
    decisive = min(sample_size(settings, n, d, numbers), n)
    sample = decisive if compares_any(settings) else n
    is_sampled = sample < n
    larger = larger_sample_size(settings, n, d, sample) if is_sampled else 0
    picks = _memory_of_picks(settings, rows, sample, larger)
    if rows.on_device:
        memory = memory_on_device(sample, 0, rows.itemsize, d)
    elif is_sampled and not sp.issparse(rows.array):
        memory = memory_of_sample(sample, d)
    else:
        memory = memory_of_fit(decisive, rows.itemsize, d, rows.size * decisive / n)
    memory += numbers if is_sampled else 0.0
    refuse_beyond(_budget_for(settings, rows), rows, memory, LESS_MEMORY)
    return Plan(n, memory + picks, 0, sample, larger)


def _plan_of_pass(settings: Settings, rows: Shape) -> Plan:
    n = rows.n
    d = rows.n_features
    sample = min(sample_size(settings, n, d), n)
    larger = larger_sample_size(settings, n, d, sample) if sample < n else 0
    picks = _memory_of_picks(settings, rows, sample, larger)
    needed = memory_of_sample(sample, d)
    budget = budget_of(settings.memory_budget)
    what = f"{rows} by passes with {sample:,} points in memory"
    refuse_beyond(budget, what, needed, "Raise `memory_budget`, or use fewer columns.")
    # Threads whose rows and similarities to the picks the budget holds beside all else.
    k = settings.number(n) or 0
    threads = max(1, int((budget - needed) / (8.0 * (BLOCK_ROWS * d + 2 * ROWS_AT_ONCE * k))))
    plan = Plan(n, needed + picks, 1, sample, larger, threads)
    if not rows.n_parts:
        return plan
    drawn = min(most_of_part(max(sample, larger), 1 / rows.n_parts), n / rows.n_parts)
    of_part = drawn * (rows.itemsize * d + BYTES_OF_A_DRAWN_ROW) + BUCKETS
    return replace(plan, read=float(rows.itemsize * n * d), moved=rows.n_parts * of_part)


def _memory_of_paper(settings: Settings, rows: Shape) -> float:
    rank = rank_for(settings, rows.n)  # numbers are double
    if rows.on_device:
        memory = memory_on_device(rows.n, rank, 8, rows.n_features)
    else:
        memory = memory_of_program(rows.n, rank, 8, rows.n_features, rows.size)
    remedy = "Lower `max_rank`." if settings.sketch is None else "Lower `n_initial`."
    what = f"{rows} with a factor of rank {rank:,}"
    refuse_beyond(_budget_for(settings, rows), what, memory, remedy)
    return memory


def _budget_for(settings: Settings, rows: Shape) -> float:
    """The budget, of the device on which the rows are; by default a fit uses three quarters of what is free there."""
    if settings.memory_budget is None and rows.on_device:
        free = free_memory(rows.array)
        if free is not None:
            return 0.75 * free
    return budget_of(settings.memory_budget)


def _memory_of_picks(settings: Settings, rows: Shape, sample: int, larger: int) -> float:
    """Bytes for many picks, and for a larger sample that they are improved on; an error if they do not fit into the budget."""
    k = settings.number(rows.n) or 0
    many = memory_of_many_picks(sample, k)
    if many:
        needed = many + memory_of_fit(sample, 8, rows.n_features)
        what = f"{k:,} representatives of {rows}"
        remedy = "Raise `memory_budget`, or ask for fewer."
        refuse_beyond(budget_of(settings.memory_budget), what, needed, remedy)
    return many + COPIES_OF_LARGER * 8 * larger * rows.n_features


def rank_for(settings: Settings, n: int) -> int:
    """Columns of the factor of n points: with a sketch one for each candidate, by default full rank for few points."""
    sketch = settings.sketch
    if sketch is not None:
        return min(n, sketch.n_initial + (sketch.n_rounds - 1) * sketch.n_added)
    return min(n, settings.max_rank or (n if n <= EXACT_SIZE else LARGEST_RANK))


def sample_size(settings: Settings, n: int, n_features: int, beside: float = 0.0) -> int:
    """Rows that a fit of many is decided with. Only a budget that is given and cannot hold them makes them fewer; ``beside`` are
    bytes that are used for something else.
    """
    least = TARGETS_FOR_A_PICK * (settings.number(n) or 0)
    size = max(DECISION_SAMPLE, least)
    while settings.memory_budget is not None and size > max(SMALLEST_SAMPLE, least):
        if memory_of_sample(min(size, n), n_features) + beside <= settings.memory_budget:
            break
        size = max(size // 2, SMALLEST_SAMPLE, least)
    return size


def larger_sample_size(settings: Settings, n: int, n_features: int, sample: int) -> int:
    """Rows of the same pass that picks are improved on; 0 if they are not."""
    width = max(n_features, 1)
    size = min(n, LARGER_SAMPLE, LARGER_SAMPLE_ENTRIES // width)
    if settings.memory_budget is not None:
        left = settings.memory_budget - memory_of_sample(sample, n_features)
        own = left / 8.0  # the rest is for what reads the rows
        size = min(size, int(own / (COPIES_OF_LARGER * 8 * width)))
    return max(size, 0)


def memory_of_sample(size: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes: that of the sample, or of the pass that draws it and holds up to three samples."""
    points = 8.0 * size * n_features
    blocks = 4.0 * 8 * BLOCK_ROWS * n_features
    return max(memory_of_fit(size, 8, n_features) + points, 3.0 * points + blocks)
