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
from mosaic.arrays.passes import BlockResult, PerRow, Task
from mosaic.arrays.sources import ArraySource, Passes
from mosaic.arrays.xp import is_on_device, on_host, rows_of
from mosaic.choosing import FitData, Selection
from mosaic.choosing.selection import Question
from mosaic.exceptions import InvalidInputError


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
        X = rows_of(data.kernel.X, points.point_of) if self.X is None else self.X
        prepare = _as_it_is if self.X is None else data.geometry.prepare
        if is_on_device(X):
            return (lambda name, task: task.map_block(X, 0)), prepare
        source = ArraySource(X)
        return (lambda name, task: source.run(task)), prepare

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if sp.issparse(self.X) or is_on_device(self.X):
            return np.asarray(question(selection, selection.data.geometry.prepare(self.X)))
        return answers_by_pass(selection, question, ArraySource(self.X).run)


def _as_it_is(rows: Any) -> Any:
    return rows


def answers_by_pass(selection: Selection, question: Question, run: Callable[[Task], BlockResult]) -> FloatArray:
    return np.asarray(run(PerRow(partial(_answers_at, selection, question)))["answer"])


def _answers_at(selection: Selection, question: Question, rows: Any, start: int) -> BlockResult:
    return {"answer": question(selection, selection.data.geometry.prepare(np.asarray(rows)))}


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
