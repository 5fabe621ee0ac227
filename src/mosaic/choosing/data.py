"""From numbers to the input of choosing: points in memory, their geometry and counting programs, and who answers for all rows.

Of many rows in memory a sample decides; rows that stay where they are take one pass, which draws it. Answers for all rows are
computed when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mosaic.arrays.codes import KnownRows, priority, row_codes
from mosaic.arrays.sources import Passes, Source
from mosaic.arrays.xp import Matrix, as_double, rows_of
from mosaic.choosing.answers import AllInMemory, ByPasses
from mosaic.choosing.draw import Drawn, draw_by_passes, draw_in_memory
from mosaic.choosing.geometry import Geometry, geometry_of, preparation_of
from mosaic.choosing.outliers import CountingPrograms
from mosaic.choosing.plan import Plan, rank_for
from mosaic.choosing.points import FitData, Points, copies_of_rows
from mosaic.choosing.settings import Constraints, Settings
from mosaic.door import check_entries
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, warn
from mosaic.kernels import PointKernel
from mosaic.program.encoding import Encoding
from mosaic.program.sketch import encode_with_few
from mosaic.program.solve import Program
from mosaic.program.solvers import Status


@dataclass(frozen=True)
class Builder:
    """Builds the input of choosing. ``names`` are those of the numbers of a row; ``say`` is told how far it is."""

    settings: Settings
    plan: Plan
    seed: int
    names: Sequence[str] | None
    say: Callable[..., None]

    def in_memory(self, matrix: Matrix, weights: Any, constraints: Constraints) -> FitData:
        """The input of choosing from rows in memory: of all, or of a sample of many."""
        self.say("similarities")
        settings = self.settings
        n = matrix.shape[0]
        if weights is not None:
            weights = copies_of_rows(weights, n)
            weightless = constraints.must[weights[constraints.must] == 0]
            if len(weightless):
                fault = f"names `row {int(weightless[0])}`, whose `sample_weight` is 0"
                raise InvalidInputError(fault, "Give it a weight.", parameter="must_include")
        if self.plan.is_sampled:
            drawn = draw_in_memory(
                matrix, self.plan.sample, constraints, weights, larger=self.plan.larger
            )
            return self._of_sample(drawn, n, constraints, AllInMemory(matrix, weights))
        pairwise = settings.pairwise
        if pairwise and matrix.shape[1] != n:
            fault = (
                f"a matrix of similarities or distances must be square; got shape {matrix.shape}"
            )
            remedy = "To pass points instead, choose a kernel such as `kernel='rbf'`."
            raise InvalidInputError(fault, remedy)
        if settings.mode == "paper" and not pairwise:
            matrix = as_double(matrix)  # single precision does not tell which rows of R are zero
        if weights is None or weights.all():
            prepare = preparation_of(matrix, weights, settings)
        else:
            there = weights > 0
            prepare = preparation_of(rows_of(matrix, there), weights[there], settings)
        matrix = prepare(matrix)
        points = Points.of(matrix, weights, pairwise=pairwise)
        geometry = geometry_of(matrix, points, settings, prepare, self.names, self.seed)
        counting = None
        if settings.mode != "paper":
            self.say("effective counts")
            counting = CountingPrograms.of(
                geometry.kernel, points.weights, self.seed, settings.max_samples
            )
        absent = rows_of(matrix, np.flatnonzero(points.point_of < 0))
        data = FitData(n, points, geometry, constraints, counting, self.seed, AllInMemory(), absent)
        if counting is not None:
            return data
        self.say("program")
        return replace(data, encoding=solved_program(settings, data))

    def by_passes(self, source: Source, given: Mapping[str, Any]) -> FitData:
        """The input of choosing from a sample that one pass draws; ``given`` are the arguments of ``Constraints.read``."""
        source.most_threads = self.plan.threads

        def on_pass(name: str, share: float, rate: float) -> None:
            self.say(name, f"{name}: {100 * share:.0f} %, {rate:,.0f} rows/s", share)

        passes = Passes(source, on_pass)
        # Without any, nothing has an entry for every row, of which there may be billions.
        if all(value is None for value in given.values()):
            constraints = None
        else:
            constraints = Constraints.read(source.n, **given)
        check = partial(_check_block, self.names)
        drawn = draw_by_passes(
            passes.run, source.n, self.plan.sample, constraints, check, larger=self.plan.larger
        )
        return self._of_sample(drawn, source.n, constraints, ByPasses(passes))

    def _of_sample(
        self,
        drawn: Drawn,
        n: int,
        constraints: Constraints | None,
        all_rows: AllInMemory | ByPasses,
    ) -> FitData:
        """The points of some of n rows; similarity and effective counts are those of the sample, without rows that were named."""
        everyone = bool(drawn.is_drawn.all())
        rows = drawn.rows if everyone else rows_of(drawn.rows, np.flatnonzero(drawn.is_drawn))
        weights = drawn.weights[drawn.is_drawn]
        count_alike = (weights == weights[0]).all()
        prepare = preparation_of(rows, None if count_alike else weights, self.settings)
        matrix = prepare(rows)
        points = Points.of(matrix, weights)
        points = replace(points, weights=points.weights * (weights.sum() / points.total))
        geometry = geometry_of(matrix, points, self.settings, prepare, self.names, self.seed)
        # A rare point counts with its number of copies, a frequent one in proportion to rare ones.
        rare = float((weights / drawn.copies[drawn.is_drawn]).max())
        self.say("effective counts")
        counting = CountingPrograms.of(
            geometry.kernel, points.weights / rare, self.seed, self.settings.max_samples
        )
        if not everyone:
            points, geometry = _with_named(drawn, points, geometry, prepare(drawn.rows))
        numbers = drawn.numbers
        constraints = (
            Constraints.read(len(numbers)) if constraints is None else constraints.among(numbers)
        )
        absent = rows_of(matrix, slice(0, 0))
        return FitData(
            n,
            points,
            geometry,
            constraints,
            counting,
            self.seed,
            all_rows,
            absent,
            numbers,
            larger=drawn.larger,
        )


def _check_block(names: Sequence[str] | None, rows: Any, start: int) -> None:
    check_entries(rows, names, first_row=start)


def _with_named(
    drawn: Drawn, points: Points, geometry: Geometry, matrix: Matrix
) -> tuple[Points, Geometry]:
    """The points of the sample, then those of rows that were named, which stand for themselves; equal rows are one point."""
    sampled = np.flatnonzero(drawn.is_drawn)
    added = np.flatnonzero(~drawn.is_drawn)
    kernel = geometry.kernel
    assert isinstance(kernel, PointKernel)
    codes = row_codes(rows_of(matrix, added))
    known = KnownRows.of(row_codes(kernel.X))
    point_of = np.empty(len(drawn.numbers), np.intp)
    point_of[sampled] = points.point_of
    point_of[added] = known.find(codes)
    is_new = point_of[added] < 0
    new = added[is_new]
    _, first, of = np.unique(codes[is_new], return_index=True, return_inverse=True)
    point_of[new] = points.n + of
    numbers = np.concatenate([sampled[points.first], new[first]])
    rows = rows_of(matrix, numbers)
    weights = np.concatenate([points.weights, np.bincount(of).astype(np.float64)])
    joined = Points(numbers, point_of, weights, priority(row_codes(rows)))
    return joined, replace(geometry, kernel=kernel.over(rows))


def solved_program(settings: Settings, data: FitData) -> Encoding:
    """The paper's program of the points, solved: Algorithm 1, or Algorithm 3 with a sketch."""
    n = data.points.n
    sketch = settings.sketch
    if settings.row_norm == "linf" and not (data.points.weights == 1).all():
        fault = "takes no weights, and some rows are equal or have one"
        raise InvalidInputError(
            fault, "Leave out copies and `sample_weight`.", parameter="row_norm", value="linf"
        )
    program = Program(
        data.kernel,
        data.points.weights,
        row_norm=settings.row_norm,
        solver=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        max_rank=rank_for(settings, n),
        random_state=data.seed,
        thin=False,
    )
    # By default as the paper's first author in later work.
    alpha = 10.0 if settings.alpha is None and settings.lam is None else settings.alpha
    if sketch is None:
        encoding = program.encode(alpha, settings.lam)
    else:
        first = np.sort(np.random.default_rng(data.seed).permutation(n)[: sketch.n_initial])
        encoding = encode_with_few(
            program, first, sketch.n_added, sketch.n_rounds, alpha, settings.lam
        )
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(0.25, settings.tol):
        fault = f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {settings.tol:g}. {encoding.status.value}"
        warn(fault, ConvergenceWarning)
    return encoding
