"""The program of rows in memory, solved on first access, the certificate that it gives, and answers for all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import EqualRows
from mosaic.arrays.passes import BlockResult, PerRow, Task
from mosaic.arrays.xp import is_on_device, on_host, rows_of
from mosaic.choosing import CERTIFIED_GAP, Answers, Material, Points, Selection, SelectionCertificate, Settings
from mosaic.choosing.budget import DEFAULT_ALPHA
from mosaic.exceptions import ConvergenceWarning, warn
from mosaic.kernels import Kernel, PointKernel
from mosaic.metrics import unexplained_at
from mosaic.program.bounds import bound_of, strength_for_k
from mosaic.program.encoding import Encoding
from mosaic.program.solve import PosedProblem, Program
from mosaic.program.solvers import Status
from mosaic.rows import open_source

#: A strength, or how it is found once the program is posed; None where alpha says it.
Strength: TypeAlias = float | Callable[[PosedProblem], float] | None
#: A certified gap above this gives a warning, even if only memory limits it.
WEAK_GAP = 0.25
#: Strength, as a multiple of the critical one, that the paper's first author used in later work.
PAPER_ALPHA = 10.0


def strength(settings: Settings) -> tuple[float | None, float | None]:
    """Alpha and lam for ``encode``: as given, or the default multiple of the critical strength."""
    if settings.alpha is None and settings.lam is None:
        return (PAPER_ALPHA if settings.mode == "paper" else DEFAULT_ALPHA), None
    return settings.alpha, settings.lam


@dataclass(frozen=True)
class InMemory:
    """The program over all distinct points, whose rows are in memory."""

    settings: Settings
    max_rank: int
    # If choosing has a sample only: all rows as they were given, how often each counts (None for once), and their points.
    X: Any = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)
    cache: dict[str, tuple[Points, Kernel]] = field(default_factory=dict, repr=False)

    by_passes: ClassVar[bool] = False
    is_possible: ClassVar[bool] = True

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"cache": {}}  # a copy starts anew

    def rows(self, numbers: IntArray, material: Material) -> Any:
        return on_host(material.geometry.prepare(rows_of(self.X, numbers)))

    def everyone(self, material: Material) -> tuple[Points, Kernel]:
        """All distinct points, and their similarity; those of choosing, if it has them all."""
        if self.X is None:
            return material.points, material.kernel
        if not self.cache:
            assert isinstance(material.kernel, PointKernel)
            matrix = material.geometry.prepare(self.X)
            points = Points.of(matrix, self.weights, central_first=False)
            self.cache["everyone"] = points, material.kernel.over(rows_of(matrix, points.first))
        return self.cache["everyone"]

    def encoding(self, material: Material) -> Encoding:
        return self._solve(material, self.settings, self.settings.gap, *strength(self.settings))

    def _solve(self, material: Material, settings: Settings, gap: float, alpha: float | None, lam: Strength) -> Encoding:
        """The certified encoding; warns if the solver did not finish or the certificate is weak."""
        points, kernel = self.everyone(material)
        encoding = Program(
            kernel,
            points.weights,
            EqualRows.trivial(kernel.n),
            solver=settings.solver,
            tol=gap,
            max_iter=settings.max_iter,
            max_rank=self.max_rank,
            thin=not callable(lam),
            random_state=material.seed,
        ).encode(alpha, lam)
        warn_of_gap(encoding, gap)
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """A bound for every choice of k points, from the program at the strength for k, and the gap of the program; if rows were
        chosen by the program, the gap is that of this program and not of the one for k.
        """
        material, settings, k = selection.material, selection.settings, len(selection.chosen)
        points, kernel = self.everyone(material)
        weights, chosen = points.weights, points.group[selection.rows]
        total = float(weights @ kernel.diagonal())
        ridge = total / float(weights.sum())
        with_ridge, without = unexplained_at(kernel, chosen, [ridge, 0.0])

        def lam(posed: PosedProblem) -> float:
            return strength_for_k(posed.problem, k, ridge, posed.lam_crit, posed.initial)

        program = self._solve(material, replace(settings, solver="auto"), settings.tol or CERTIFIED_GAP, None, lam)
        given = program
        if settings.mode == "paper":
            refined = settings.gap != self.settings.gap
            given = self._solve(material, settings, settings.gap, *strength(settings)) if refined else selection.material.encoding
        error, free_error, bound = float(weights @ with_ridge), float(weights @ without), bound_of(program, k, ridge)
        constrained = material.constraints.are_given
        return SelectionCertificate(given.certificate, k, error, bound, selection.decisions, total, free_error, constrained)

    def answers(self, selection: Selection) -> Answers:
        """Answers for all rows, in the blocks of a pass."""
        if sp.issparse(self.X) or is_on_device(self.X):
            return _with_own(selection, selection.answers_at(selection.material.geometry.prepare(self.X)))
        source = open_source(self.X)
        return answers_by_pass(selection, lambda name, task: source.run(task))

    def influence(self, material: Material) -> FloatArray:
        """For each row, the norm of its row in the encoding; copies share it equally."""
        points, _ = self.everyone(material)
        copies = np.bincount(points.group[points.group >= 0], minlength=points.n)
        return np.asarray(points.spread(material.solved.influence / copies, 0.0))


def answers_by_pass(selection: Selection, run: Callable[[str, Task], BlockResult]) -> Answers:
    """Answers for all rows, from one pass over them."""
    return _with_own(selection, Answers(**run("answers for all rows", PerRow(partial(_answers_at, selection)))))


def _with_own(selection: Selection, found: Answers) -> Answers:
    """The same answers; rows in memory have those of their points, which respect the constraints."""
    values: list[Any] = [np.array(each) for each in found]  # arrays from other processes may be read-only
    for value, own in zip(values, selection.answers_in_memory, strict=True):
        value[selection.material.row_numbers] = own
    return Answers(*values)


def _answers_at(selection: Selection, rows: Any, start: int) -> BlockResult:
    return selection.answers_at(selection.material.geometry.prepare(np.asarray(rows)))._asdict()


def warn_of_gap(encoding: Encoding, tol: float, advice: str | None = None) -> None:
    """Warn if the solver did not finish or the certified gap is large; ``advice`` replaces the usual advice."""
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(WEAK_GAP, tol):
        advice = advice or encoding.status.value
        warn(ConvergenceWarning(f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {advice}"))
