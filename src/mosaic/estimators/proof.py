"""Answers for all rows, in memory or where they stay, each computed when it is asked for; and the rows that a fit of many decides
with. A fit of rows that stay where they are takes one pass, which draws these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, PerRow, Task
from mosaic.arrays.sources import Passes
from mosaic.arrays.xp import is_on_device, on_host, rows_of
from mosaic.choosing import FitData, Selection, Settings
from mosaic.choosing.budget import (
    DECISION_SAMPLE,
    LARGER_SAMPLE,
    LARGER_SAMPLE_ENTRIES,
    TARGETS_FOR_A_PICK,
    budget_of,
    memory_of_fit,
    memory_of_many_picks,
    refuse_beyond,
)
from mosaic.choosing.selection import Question
from mosaic.exceptions import InvalidInputError
from mosaic.rows import open_source

#: Smallest number of points in memory.
SMALLEST_SAMPLE = 2048
#: Copies of the larger sample: as it is drawn, from two parts of the rows, prepared, and with picks that are not in it.
COPIES_OF_LARGER = 4.0
#: Rows of a block whose similarities to the picks are in memory at a time.
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class AllInMemory:
    """Answers for all rows, which are in memory."""

    # If choosing has a sample only: all rows as they were given, and how often each counts (None for once).
    X: Any = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    is_possible: ClassVar[bool] = True

    def rows(self, numbers: IntArray, data: FitData) -> Any:
        return on_host(data.geometry.prepare(rows_of(self.X, numbers)))

    def run_over(self, data: FitData) -> tuple[Callable[[str, Task], BlockResult], Callable[[Any], Any]]:
        """What makes passes over all rows, and what prepares the rows that these read."""
        points = data.points
        as_often = np.bincount(points.point_of + 1, minlength=points.n + 1)
        if self.weights is not None or (self.X is None and (as_often != np.append(0, points.weights)).any()):
            raise InvalidInputError("a proof for all rows knows no weights", "Fit without `sample_weight`.")
        source = open_source(rows_of(data.kernel.X, points.point_of) if self.X is None else self.X)
        return (lambda name, task: source.run(task)), np.asarray if self.X is None else data.geometry.prepare

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if sp.issparse(self.X) or is_on_device(self.X):
            return np.asarray(question(selection, selection.data.geometry.prepare(self.X)))
        return answers_by_pass(selection, question, open_source(self.X).run)


def answers_by_pass(selection: Selection, question: Question, run: Callable[[Task], BlockResult]) -> FloatArray:
    return np.asarray(run(PerRow(partial(_answers_at, selection, question)))["answer"])


def _answers_at(selection: Selection, question: Question, rows: Any, start: int) -> BlockResult:
    return {"answer": question(selection, selection.data.geometry.prepare(np.asarray(rows)))}


def sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows that a fit of many is decided with. Only a budget that is given and cannot hold them makes them fewer."""
    least = TARGETS_FOR_A_PICK * (settings.number(n) or 0)
    size = max(DECISION_SAMPLE, least)
    while settings.memory_budget is not None and size > max(SMALLEST_SAMPLE, least):
        if memory_of_sample(min(size, n), n_features) <= settings.memory_budget:
            break
        size = max(size // 2, SMALLEST_SAMPLE, least)
    return size


def larger_sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows of the same pass that picks are improved on; 0 if they are not."""
    size = min(n, LARGER_SAMPLE, LARGER_SAMPLE_ENTRIES // max(n_features, 1))
    if settings.memory_budget is not None:
        used = memory_of_sample(min(sample_size(settings, n, n_features), n), n_features)
        spare = (settings.memory_budget - used) / 8.0  # the rest is for what reads the rows
        size = min(size, int(spare / (COPIES_OF_LARGER * 8 * max(n_features, 1))))
    return max(size, 0)


def memory_of_picks(settings: Settings, n: int, n_features: int) -> float:
    """Bytes for many picks, and for a larger sample that they are improved on; an error if they do not fit into the budget."""
    sample, k = min(sample_size(settings, n, n_features), n), settings.number(n) or 0
    larger = larger_sample_size(settings, n, n_features) if sample < n else 0
    many = memory_of_many_picks(sample, k)
    if many:
        what, needed = (
            f"{k:,} representatives of {n:,} rows × {n_features:,} features",
            many + memory_of_fit(sample, 8, n_features),
        )
        refuse_beyond(budget_of(settings.memory_budget), what, needed, "Raise `memory_budget`, or ask for fewer.")
    return many + COPIES_OF_LARGER * 8 * larger * n_features


def memory_of_sample(size: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes: that of the sample, or of the pass that draws it and holds up to three samples."""
    points, blocks = 8.0 * size * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    return max(memory_of_fit(size, 8, n_features) + points, 3.0 * points + blocks)


def sample_by_passes(settings: Settings, n: int, n_features: int) -> int:
    """Rows in memory of a fit by passes; an error if they do not fit into the budget."""
    sample = min(sample_size(settings, n, n_features), n)
    what = f"{n:,} rows × {n_features:,} features by passes with {sample:,} points in memory"
    needed = memory_of_sample(sample, n_features)
    refuse_beyond(budget_of(settings.memory_budget), what, needed, "Raise `memory_budget`, or use fewer columns.")
    return sample


def threads_by_passes(settings: Settings, sample: int, n: int, n_features: int) -> int:
    """Threads whose rows and similarities to the picks the budget holds beside all else, at least one."""
    spare = budget_of(settings.memory_budget) - memory_of_sample(sample, n_features)
    k = settings.number(n) or 0
    return max(1, int(spare / (8.0 * (BLOCK_ROWS * n_features + 2 * ROWS_AT_ONCE * k))))


@dataclass(frozen=True)
class ByPasses:
    """Answers for all rows, which stay where they are. A copy has no rows, and cannot compute them."""

    passes: Passes | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"passes": None}

    @property
    def is_possible(self) -> bool:
        return self.passes is not None

    def rows(self, numbers: IntArray, data: FitData) -> Any:
        assert self.passes is not None
        return data.geometry.prepare(self.passes.take(numbers))

    def run_over(self, data: FitData) -> tuple[Callable[[str, Task], BlockResult], Callable[[Any], Any]]:
        """What makes passes over all rows, and what prepares the rows that these read."""
        if self.passes is None:
            raise InvalidInputError("a proof for all rows was not made before this model was saved or copied", "Fit again.")
        return self.passes.run, data.geometry.prepare

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if self.passes is None:
            gone = "not computed before this model was saved or copied, and a saved model does not hold the rows"
            remedy = "predict, score_samples and transform answer for rows that are passed to them."
            raise AttributeError(f"labels_, is_outlier_, effective_count_ or representation_error_ was {gone}. {remedy}")
        return answers_by_pass(selection, question, partial(self.passes.run, "answers for all rows"))
