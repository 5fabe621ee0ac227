"""What a selection says of rows that are not its points: of new ones, and of all rows of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, row_blocks
from mosaic.arrays.codes import KnownRows, row_codes
from mosaic.arrays.passes import BlockResult, PerRow, Task
from mosaic.arrays.sources import ArraySource, Passes
from mosaic.arrays.xp import Matrix, is_on_device, on_host, rows_of
from mosaic.choosing.cover import CACHED_SIMILARITIES
from mosaic.choosing.outliers import ROUNDING
from mosaic.choosing.points import FitData
from mosaic.door import check_entries
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import DiffusionKernel, PointKernel

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Outliers that are brought into memory beside a sample.
MOST_OUTLIERS = 5000
#: Distances in single precision are compared again where one is at most this multiple of another, or both are below the second.
NEARLY_AS_NEAR = np.float32(1.01)
SMALLEST_IN_SINGLE = np.float32(1e-30)

Value = TypeVar("Value", bound=np.generic)

#: What is asked of a selection about prepared rows.
Question: TypeAlias = Callable[["Selection", Matrix], Any]


def places_at(selection: Selection, Y: Matrix) -> FloatArray:
    """Columns: position of the representative (-1), similarity to it (NaN), error, effective count, 1 for outliers."""
    counts = selection.data.counts_at(Y)
    flagged = outliers_at(selection, Y, counts)
    labels = labels_at(selection, Y, flagged)
    similarity = np.full(len(counts), np.nan)
    for rows in row_blocks(len(counts) if len(selection.chosen) else 0, len(selection.chosen)):
        K = similarities_at(selection, rows_of(Y, rows))
        label = labels[rows]
        similarity[rows] = np.where(label >= 0, K[np.arange(len(K)), label], np.nan)
    return np.column_stack([labels, similarity, errors_at(selection, Y), counts, flagged])


def outliers_at(selection: Selection, Y: Matrix, counts: FloatArray | None = None) -> BoolArray:
    """Mask of the outliers. Rows that are kept are none."""
    if not selection.has_cut:
        return np.zeros(Y.shape[0], dtype=bool)
    flagged = (
        selection.data.below(Y, selection.cut.count)
        if counts is None
        else selection.cut.below(counts)
    )
    odd = np.flatnonzero(flagged)
    if len(odd):
        flagged[odd[kept_at(selection, rows_of(Y, odd))]] = False
    return flagged


def kept_at(selection: Selection, Y: Matrix) -> BoolArray:
    """Mask of the rows that are no outliers whatever their counts: near a group that is kept, or equal to one that must be
    included or is called fine.
    """
    kept = np.zeros(Y.shape[0], dtype=bool)
    if selection.groups is not None:
        kept |= selection.groups.near(Y)
    never = selection.data.never_outliers
    if len(never):
        kept |= (selection.kernel.take(never).distances_at(Y) <= 0).any(axis=1)
    return kept


def labels_at(selection: Selection, Y: Matrix, flagged: BoolArray | None = None) -> IntArray:
    """The positions of their representatives; -1 for outliers (``flagged``), or if there are no representatives."""
    kernel = selection.chosen_kernel
    n = Y.shape[0]
    if not len(selection.chosen):
        return np.full(n, -1, np.intp)
    single = kernel.in_single_at(kernel.unit)
    # A pick stands for itself, whatever the rounding. A diffusion kernel has neighbours of rows, not rows.
    is_known = isinstance(kernel, PointKernel) and not isinstance(kernel, DiffusionKernel)
    known = KnownRows.of(row_codes(kernel.X)) if is_known else None

    def exact(rows: IntArray) -> FloatArray:
        new = rows_of(Y, rows)
        D = kernel.distances_at(new)
        if known is not None and isinstance(kernel, PointKernel):
            place = known.find(row_codes(kernel.over(new).X))
            itself = np.flatnonzero(place >= 0)
            D[itself, place[itself]] = -np.inf
        return D

    labels = nearest_picks(n, kernel.n, lambda rows: single(rows_of(Y, rows)), exact, kernel.X)
    if selection.rejects:
        labels[outliers_at(selection, Y) if flagged is None else flagged] = -1
    return labels


def errors_at(selection: Selection, Y: Matrix) -> FloatArray:
    return selection.measure.errors_at(selection.chosen_kernel, Y)


def similarities_at(selection: Selection, Y: Matrix) -> FloatArray:
    return selection.chosen_kernel.cross(Y)


def counts_at(selection: Selection, Y: Matrix) -> FloatArray:
    return selection.data.counts_at(Y)


def counts_of_outliers_at(selection: Selection, Y: Matrix) -> FloatArray:
    """Infinite for rows that belong."""
    counts = counts_at(selection, Y)
    return np.where(outliers_at(selection, Y, counts), counts, np.inf)


def errors_of_belonging_at(selection: Selection, Y: Matrix) -> FloatArray:
    """NaN for outliers."""
    return np.where(outliers_at(selection, Y), np.nan, errors_at(selection, Y))


def nearest_picks(
    n: int,
    k: int,
    single: Callable[[IntArray], Any],
    exact: Callable[[IntArray], FloatArray],
    on: Any,
) -> IntArray:
    """The nearest of k picks for each of n rows, of equally near ones the first: by distances in single precision, and by exact
    ones for rows that have two picks nearly as near.
    """
    labels = np.empty(n, np.intp)

    def compare(part: slice) -> None:
        rows = np.arange(part.start, part.stop)
        D = on_host(single(rows))
        labels[part] = D.argmin(axis=1)
        nearest = D[np.arange(len(D)), labels[part]]
        limit = np.maximum(NEARLY_AS_NEAR * nearest, SMALLEST_IN_SINGLE)
        close = np.flatnonzero(np.count_nonzero(limit[:, None] >= D, axis=1) != 1)
        if len(close):
            D = exact(rows[close])
            labels[rows[close]] = ((1.0 + ROUNDING) * D.min(axis=1)[:, None] >= D).argmax(axis=1)

    in_blocks(compare, n, k, CACHED_SIMILARITIES, on=on)
    return labels


def of_all_rows(
    selection: Selection, in_memory: NDArray[Value], question: Question
) -> NDArray[Value]:
    """Answers for all rows of the data; of a sample, by a pass. Rows in memory have those of their points, which respect the
    constraints.
    """
    if not selection.is_sampled:
        return in_memory
    answers = np.array(selection.data.all_rows.answers(selection, question), in_memory.dtype)
    answers[selection.data.row_numbers] = in_memory
    return answers


def with_outliers(selection: Selection) -> Selection:
    """The same findings, of a sample with the outliers of all rows in memory, ``MOST_OUTLIERS`` with the lowest counts: one
    pass looks for them. The selection itself where all rows are in memory, or can no longer be read.
    """
    data = selection.data
    kernel = selection.kernel
    can_join = isinstance(kernel, PointKernel) and not isinstance(kernel, DiffusionKernel)
    if data.row_numbers is None or not (
        selection.has_cut and can_join and data.all_rows.is_possible
    ):
        return selection
    in_memory = np.where(selection.outliers_in_memory, selection.counts_in_memory, np.inf)
    counts = of_all_rows(selection, in_memory, counts_of_outliers_at)
    selection.computed["outlier_mask"] = counts < np.inf
    lowest = np.argsort(counts, kind="stable")[: min(MOST_OUTLIERS, selection.n_outliers)]
    new = np.setdiff1d(lowest, data.row_numbers)
    if not len(new):
        return selection
    joined = data.joined(new, data.all_rows.rows(new, data), allowed=False, group=0)
    kept = selection.groups
    if kept is not None:
        kept = replace(kept, group=np.pad(kept.group, (0, len(new))))
    assert joined.row_numbers is not None
    members = np.searchsorted(joined.row_numbers, selection.rows)
    return replace(selection, data=joined, groups=kept, members=members)


@dataclass(frozen=True)
class AllInMemory:
    """Answers for all rows, which are in memory."""

    # If choosing has a sample only: all rows as they were given, and how often each counts (None for once).
    X: Matrix = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    is_possible: ClassVar[bool] = True

    def rows(self, numbers: IntArray, data: FitData) -> Any:
        return on_host(data.geometry.prepare(rows_of(self.X, numbers)))

    def run_over(
        self, data: FitData
    ) -> tuple[Callable[[str, Task], BlockResult], Callable[[Any], Any]]:
        """What makes passes over all rows, and what prepares the rows that these read."""
        points = data.points
        as_often = np.bincount(points.point_of + 1, minlength=points.n + 1)
        if self.weights is not None or (
            self.X is None and (as_often != np.append(0, points.weights)).any()
        ):
            raise InvalidInputError(
                "a proof for all rows knows no weights", "Fit without `sample_weight`."
            )
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


def answers_by_pass(
    selection: Selection,
    question: Question,
    run: Callable[[Task], BlockResult],
    names: Sequence[str] | None = None,
) -> FloatArray:
    """What a selection answers for all rows of a pass; ``names`` are of their columns."""
    return np.asarray(run(answers_task(selection, question, names))["answer"])


def answers_task(
    selection: Selection, question: Question, names: Sequence[str] | None = None
) -> PerRow:
    return PerRow(partial(_answers_at, selection, question, names))


def _answers_at(
    selection: Selection, question: Question, names: Sequence[str] | None, rows: Any, start: int
) -> BlockResult:
    check_entries(rows, names, first_row=start)
    return {"answer": question(selection, selection.data.geometry.prepare(rows))}


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

    def run_over(
        self, data: FitData
    ) -> tuple[Callable[[str, Task], BlockResult], Callable[[Any], Any]]:
        """What makes passes over all rows, and what prepares the rows that these read."""
        if self.passes is None:
            raise InvalidInputError(
                "a proof for all rows was not made before this model was saved or copied",
                "Fit again.",
            )
        return self.passes.run, data.geometry.prepare

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if self.passes is None:
            gone = "not computed before this model was saved or copied, and a saved model does not hold the rows"
            remedy = "predict, score_samples and transform answer for rows that are passed to them."
            raise AttributeError(
                f"labels_, is_outlier_, effective_count_ or representation_error_ was {gone}. {remedy}"
            )
        return answers_by_pass(
            selection, question, partial(self.passes.run, "answers for all rows")
        )
