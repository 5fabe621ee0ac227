"""The program of all rows, its certificate, and answers for all rows: of rows in memory, or of data that stays where it is.

All are computed when they are asked for; of data that stays where it is, by passes. A fit of it takes one pass, which draws the
rows that are decided with; the paper's algorithm, which chooses by the program, solves it in the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import EqualRows, row_codes
from mosaic.arrays.passes import BLOCK_ROWS, BlockResult, PerRow, Task, Together
from mosaic.arrays.xp import is_on_device, on_host, rows_of
from mosaic.choosing import CERTIFIED_GAP, Drawn, FitData, Geometry, Points, Selection, SelectionCertificate, Settings
from mosaic.choosing.budget import (
    DECISION_SAMPLE,
    LARGER_SAMPLE,
    LARGER_SAMPLE_ENTRIES,
    TARGETS_FOR_A_PICK,
    budget_of,
    memory_of_fit,
    memory_of_many_picks,
    memory_of_proof,
    refuse_beyond,
)
from mosaic.choosing.selection import Question
from mosaic.exceptions import ConvergenceWarning, InvalidInputError, warn
from mosaic.kernels import PointKernel
from mosaic.metrics import unexplained_at
from mosaic.parameters import Sketch
from mosaic.program.bounds import EPS_OF_A_BOUND, MOST_KEPT_SCORES, Spectrum, best_for_k, bound_of, largest, strength_for_k
from mosaic.program.encoding import Encoding
from mosaic.program.problem import DesignProblem
from mosaic.program.solve import PosedProblem, Program
from mosaic.program.solvers import Status
from mosaic.rows import open_source
from mosaic.sketch.blocks import ROWS_AT_ONCE, Basis, GramSum, LargestScores, Sample, triangle
from mosaic.sketch.rounds import Sketch as SolvedSketch
from mosaic.sketch.rounds import features, run_sketch
from mosaic.sketch.sources import Passes

#: Smallest number of points in memory; of Algorithm 3, of candidates at first, and the usual number of rounds.
SMALLEST_SAMPLE, FEWEST_FIRST_CANDIDATES, USUAL_ROUNDS = 2048, 100, 3
#: Copies of the larger sample: as it is drawn, from two parts of the rows, prepared, and with picks that are not in it.
COPIES_OF_LARGER = 4.0
#: Why a saved model cannot answer.
GONE = "not computed before this model was saved or copied, and a saved model does not hold the rows"


def strength(settings: Settings) -> tuple[float | None, float | None]:
    if settings.alpha is None and settings.lam is None:
        return 10.0, None  # as the paper's first author in later work
    return settings.alpha, settings.lam


@dataclass(frozen=True)
class AllInMemory:
    """Answers for all rows, which are in memory, and the paper's program of their points."""

    settings: Settings
    max_rank: int | None = None  # of the factor of the paper's program
    # If choosing has a sample only: all rows as they were given, how often each counts (None for once), and their points.
    X: Any = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)

    by_passes: ClassVar[bool] = False
    is_possible: ClassVar[bool] = True

    def rows(self, numbers: IntArray, data: FitData) -> Any:
        return on_host(data.geometry.prepare(rows_of(self.X, numbers)))

    def run_over(self, data: FitData) -> tuple[Callable[[str, Task], BlockResult], Callable[[Any], Any]]:
        """What makes passes over all rows, and what prepares the rows that these read."""
        counted = data.points.point_of[data.points.point_of >= 0]
        is_weighted = self.weights is not None
        if self.X is None:
            is_weighted = not np.array_equal(np.bincount(counted, minlength=data.points.n), data.points.weights)
        if is_weighted:
            raise InvalidInputError("a proof for all rows knows no weights", "Fit without `sample_weight`.")
        if self.X is not None:
            source, prepare = open_source(self.X), data.geometry.prepare
            return (lambda name, task: source.run(task)), prepare
        assert isinstance(data.kernel, PointKernel)
        in_memory = open_source(rows_of(data.kernel.X, counted))
        return (lambda name, task: in_memory.run(task)), np.asarray

    def encoding(self, data: FitData) -> Encoding:
        return self._solve(data, self.settings, self.settings.gap, *strength(self.settings))

    def _solve(self, data: FitData, settings: Settings, gap: float, alpha: float | None, lam: Any) -> Encoding:
        how: dict[str, Any] = {"solver": settings.solver, "max_iter": settings.max_iter, "max_rank": self.max_rank}
        how |= {"tol": gap, "thin": not callable(lam), "random_state": data.seed}
        encoding = Program(data.kernel, data.points.weights, EqualRows.trivial(data.points.n), **how).encode(alpha, lam)
        if not callable(lam):  # what a bound for k is worth is said by the certificate itself
            warn_of_gap(encoding, gap)
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """A bound for every choice of k points, from the program at the strength for k, and the gap of the program that chose."""
        data, settings, k = selection.data, selection.settings, len(selection.chosen)
        kernel, weights, chosen = data.kernel, data.points.weights, selection.chosen
        total = float(weights @ kernel.diagonal())
        ridge = total / float(weights.sum())
        with_ridge, without = unexplained_at(kernel, chosen, [ridge, 0.0])

        def lam(posed: PosedProblem) -> float:
            return strength_for_k(posed.problem, k, ridge, posed.lam_crit, posed.initial)

        program = self._solve(data, replace(settings, solver="auto"), settings.tol or CERTIFIED_GAP, None, lam)
        refined = settings.gap != self.settings.gap
        given = self._solve(data, settings, settings.gap, *strength(settings)) if refined else data.encoding
        error, free_error, bound = float(weights @ with_ridge), float(weights @ without), bound_of(program, k, ridge)
        constrained = data.constraints.are_given
        return SelectionCertificate(given.certificate, k, error, bound, total, free_error, constrained)

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if sp.issparse(self.X) or is_on_device(self.X):
            return np.asarray(question(selection, selection.data.geometry.prepare(self.X)))
        return answers_by_pass(selection, question, open_source(self.X).run)


def answers_by_pass(selection: Selection, question: Question, run: Callable[[Task], BlockResult]) -> FloatArray:
    return np.asarray(run(PerRow(partial(_answers_at, selection, question)))["answer"])


def _answers_at(selection: Selection, question: Question, rows: Any, start: int) -> BlockResult:
    return {"answer": question(selection, selection.data.geometry.prepare(np.asarray(rows)))}


def warn_of_gap(encoding: Encoding, tol: float, advice: str | None = None) -> None:
    """Warn if the solver did not finish or the certified gap is large; ``advice`` replaces the usual advice."""
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(0.25, tol):
        advice = advice or encoding.status.value
        warn(ConvergenceWarning(f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {advice}"))


def sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows that a fit of many is decided with. Only a budget that is given and cannot hold them makes them fewer."""
    least = TARGETS_FOR_A_PICK * (settings.number(n) or 0)
    size = max(DECISION_SAMPLE, least)
    r = FEWEST_FIRST_CANDIDATES if settings.mode == "paper" else 0
    while settings.memory_budget is not None and size > max(SMALLEST_SAMPLE, least):
        if memory_by_passes(min(size, n), r, n_features) <= settings.memory_budget:
            break
        size = max(size // 2, SMALLEST_SAMPLE, least)
    return size


def larger_sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows of the same pass that picks are improved on; 0 if they are not."""
    if settings.mode == "paper":
        return 0
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


def memory_by_passes(sample: int, r: int, n_features: int) -> float:
    """The same with Algorithm 3 and r candidates, if any."""
    if not r:
        return memory_of_sample(sample, n_features)
    points, blocks = 8.0 * sample * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    proof = memory_of_proof(sample, r, 8, n_features) + points + 16.0 * 8 * r * r + blocks
    return max(memory_of_sample(sample, n_features), proof)


@dataclass(frozen=True)
class Plan:
    """Points in memory; for Algorithm 3 candidates at first, those that a round adds, and rounds."""

    sample: int
    n_initial: int = 0
    n_added: int = 0
    n_rounds: int = 0

    @classmethod
    def of(cls, settings: Settings, n: int, n_features: int) -> Plan:
        """The sizes that were given, or that fit the rows; for the budget the sample is halved, then candidates are left out."""
        asked = settings.sketch or Sketch()
        budget, sample = budget_of(settings.memory_budget), min(sample_size(settings, n, n_features), n)
        what = f"{n:,} rows × {n_features:,} features by passes with {sample:,} points in memory"
        if settings.mode != "paper":
            remedy = "Raise `memory_budget`, or use fewer columns."
            refuse_beyond(budget, what, memory_of_sample(sample, n_features), remedy)
            return cls(sample)
        # The sum of the Gram matrix of r candidates takes n·r² multiplications, at most 1e12.
        usual = np.clip(np.sqrt(1e12 / n), FEWEST_FIRST_CANDIDATES, 500)
        r = min(int(asked.n_initial or usual), n)
        fewest = min(FEWEST_FIRST_CANDIDATES, n) if asked.n_initial is None else r
        while r > fewest and memory_by_passes(sample, r, n_features) > budget:
            r = max(fewest, int(0.9 * r))
        remedy = f"Raise `memory_budget`{', or use fewer columns' if asked.n_initial is None else ' or lower `n_initial`'}."
        refuse_beyond(budget, f"{what} and {r:,} candidates", memory_by_passes(sample, r, n_features), remedy)
        return cls(sample, r, int(asked.n_added or max(r // 10, 1)), int(asked.n_rounds or USUAL_ROUNDS))

    def memory(self, n_features: int) -> float:
        """Bytes at the peak of the fit."""
        return memory_by_passes(self.sample, self.n_initial, n_features)

    def threads(self, settings: Settings, n: int, n_features: int) -> int:
        """Threads whose rows, similarities and sums the budget holds beside all else, at least one."""
        r = max(self.n_initial, settings.number(n) or 0)
        spare = budget_of(settings.memory_budget) - self.memory(n_features)
        return max(1, int(spare / (8.0 * (BLOCK_ROWS * n_features + 2 * ROWS_AT_ONCE * r + 2 * r * r))))

    @property
    def most_passes(self) -> int:
        """One that draws the points; for Algorithm 3 two for each round, and one between two rounds."""
        return max(3 * self.n_rounds, 1)


@dataclass(frozen=True)
class ByPasses:
    """The program of all rows, its certificate, and answers for all rows. A copy has no rows, and cannot compute them."""

    n: int
    settings: Settings
    plan: Plan
    passes: Passes | None = field(default=None, repr=False)
    drawn: Drawn | None = field(default=None, repr=False)  # the rows in memory
    cache: dict[str, SolvedSketch] = field(default_factory=dict, repr=False)  # what Algorithm 3 has found

    by_passes: ClassVar[bool] = True

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"passes": None, "drawn": None, "cache": {}}

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

    @property
    def sketch(self) -> SolvedSketch:
        """What Algorithm 3 found in the fit."""
        if not self.cache:
            raise InvalidInputError("the encoding is not kept in a model that was saved or copied", "Fit again.")
        return self.cache["sketch"]

    def solve(self, points: Points, geometry: Geometry, seed: int) -> SolvedSketch:
        kernel, drawn, settings, plan = geometry.kernel, self.drawn, self.settings, self.plan
        assert isinstance(kernel, PointKernel) and drawn is not None and self.passes is not None  # noqa: PT018
        sampled = drawn.is_drawn
        copies = np.asarray(np.bincount(points.point_of[sampled], drawn.copies[sampled]), np.float64)
        drawn_points = slice(0, len(copies))
        X, first = kernel.X[drawn_points], drawn.numbers[points.first[drawn_points]]
        sample = Sample(X, row_codes(X), first, copies, points.weights[drawn_points])
        alpha, lam = strength(settings)
        how: dict[str, Any] = {"alpha": alpha, "lam": lam, "tol": settings.gap, "prepare": geometry.prepare}
        how |= {"n_added": plan.n_added, "n_rounds": plan.n_rounds}
        first = np.sort(np.random.default_rng(seed).permutation(len(sample))[: plan.n_initial])
        self.cache["sketch"] = run_sketch(self.passes.run, kernel.over, sample, first, **how)
        return self.cache["sketch"]

    def encoding(self, data: FitData) -> Encoding:
        sketch, kernel = self.sketch, data.kernel
        assert isinstance(kernel, PointKernel)
        encoding = sketch.encoding(kernel.over(sketch.sample.rows), self.n, self.settings.gap)
        warn_of_gap(encoding, self.settings.gap, "Raise `n_initial` or `n_rounds`, or widen the kernel (a smaller `gamma`).")
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """The certificate of the picks for all rows; after those of Algorithm 3, one more pass gives error and bound."""
        if self.passes is None:
            # An AttributeError would look as if the property did not exist.
            raise InvalidInputError(f"certificate_ was {GONE}", "Fit again, and read it before saving.")
        certificate = selection.data.solved.certificate
        sketch, chosen, kernel = self.sketch, selection.chosen, selection.kernel
        assert isinstance(kernel, PointKernel)
        k, prepare = len(chosen), selection.data.geometry.prepare
        trace = certificate.scale / (0.5 * sketch.problem.lam)
        ridge = trace / self.n
        whole = DesignProblem(features(sketch.basis, kernel.over(sketch.sample.rows)), sketch.problem.C, 1.0)
        best, E = best_for_k(whole, k, ridge=ridge, initial=sketch.candidates)
        gram_of_picks = GramSum(Basis(kernel.take(chosen), np.eye(k, order="F")), prepare)
        scores = LargestScores(sketch.basis, triangle(E), max(k, MOST_KEPT_SCORES), prepare)
        found = self.passes.run("bound", Together({"gram": gram_of_picks, "scores": scores}))
        K, gram = kernel.block(chosen, chosen), found["gram:G"]
        error = trace - float(np.trace(np.linalg.solve(K + ridge * np.eye(k), gram)))
        highest = largest(found["scores:best"]["values"], max(k, MOST_KEPT_SCORES))
        spectrum = Spectrum.of(sketch.problem.C, None, (float(found["scores:longest"]),))
        outside = -EPS_OF_A_BOUND * float(np.finfo(np.float64).eps) * trace
        bounds = replace(best, outside=outside, scores=highest, spectrum=spectrum)
        without_ridge = min(_without_ridge(K, gram, trace), error)  # a ridge never lowers the error
        constrained = selection.data.constraints.are_given
        return SelectionCertificate(certificate, k, error, bounds, trace, without_ridge, constrained)

    def answers(self, selection: Selection, question: Question) -> FloatArray:
        if self.passes is None:
            remedy = "predict, score_samples and transform answer for rows that are passed to them."
            raise AttributeError(f"labels_, is_outlier_, effective_count_ or representation_error_ was {GONE}. {remedy}")
        return answers_by_pass(selection, question, partial(self.passes.run, "answers for all rows"))


def _without_ridge(K: FloatArray, gram: FloatArray, trace: float) -> float:
    """Tr − tr(K⁺ G) between the chosen, G = Σ_i k_i k_iᵀ. Directions below 1e-8, rounding errors, explain nothing."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(K), np.finfo(np.float64).tiny))
    w, U = np.linalg.eigh(scale[:, None] * K * scale)
    root = scale[:, None] * U[:, w > 1e-8 * w[-1]]
    explained = np.einsum("ij,ij->j", root, gram @ root) / w[w > 1e-8 * w[-1]]
    return max(trace - float(explained.sum()), 0.0)
