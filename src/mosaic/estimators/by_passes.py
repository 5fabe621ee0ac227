"""A fit of data that stays where it is: one pass draws the rows that are decided with, the rest is as in memory.

The program of all rows, its certificate, and answers for all rows take further passes, made when they are asked for. The paper's
algorithm, which chooses by the program, solves it in the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import row_codes
from mosaic.arrays.passes import BLOCK_ROWS, TakeRows, Together
from mosaic.choosing import Answers, Drawn, Geometry, Material, Points, Selection, SelectionCertificate, Settings
from mosaic.choosing.budget import DECISION_SAMPLE, budget_of, memory_of_fit, memory_of_proof
from mosaic.estimators.in_memory import answers_by_pass, strength, warn_of_gap
from mosaic.exceptions import InvalidInputError, MemoryBudgetError
from mosaic.kernels import PointKernel
from mosaic.parameters import Sketch
from mosaic.program.bounds import EPS_OF_A_BOUND, MOST_KEPT_SCORES, Spectrum, best_for_k, largest
from mosaic.program.encoding import Encoding
from mosaic.program.problem import DesignProblem
from mosaic.sketch.blocks import ROWS_AT_ONCE, Basis, GramSum, LargestScores, Sample, triangle
from mosaic.sketch.rounds import MOST_ROUNDS, features, run_sketch
from mosaic.sketch.rounds import Sketch as SolvedSketch
from mosaic.sketch.sources import Passes
from mosaic.text import readable_size

#: Points in memory for each representative, where that is more than ``DECISION_SAMPLE``, and smallest number of points.
SAMPLE_A_PICK, SMALLEST_SAMPLE = 8, 2048
#: Largest and smallest number of candidates at first, and the multiplications that the sum of their Gram matrix may take.
MOST_FIRST_CANDIDATES, FEWEST_FIRST_CANDIDATES, MOST_MULTIPLICATIONS = 500, 100, 1e12
#: A round adds the number of first candidates divided by this; default number of rounds of the paper's algorithm.
ADDED_PART, PAPER_ROUNDS = 10, 3
#: Why a saved model cannot answer.
GONE = "not computed before this model was saved or copied, and a saved model does not hold the rows"


def sample_size(settings: Settings, n: int, n_features: int) -> int:
    """Rows that a fit of many is decided with. Only a budget that is given and cannot hold them makes them fewer."""
    least = SAMPLE_A_PICK * (settings.number(n) or 0)
    size = max(DECISION_SAMPLE, least)
    while settings.memory_budget is not None and size > max(SMALLEST_SAMPLE, least):
        if memory_by_passes(min(size, n), FEWEST_FIRST_CANDIDATES, n_features) <= settings.memory_budget:
            break
        size = max(size // 2, SMALLEST_SAMPLE, least)
    return size


def memory_of_sample(size: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes: that of the sample, with its rows as they were read and blocks of others, or the pass
    that draws it, with up to three such samples while parts of them are merged.
    """
    points, blocks = 8.0 * size * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    return max(memory_of_fit(size, 8, n_features) + points, 3.0 * points + blocks)


def memory_by_passes(sample: int, r: int, n_features: int) -> float:
    """Bytes at the peak of a fit by passes or of its certificate."""
    points, blocks = 8.0 * sample * n_features, 4.0 * 8 * BLOCK_ROWS * n_features
    proof = memory_of_proof(sample, r, 8, n_features) + points + 16.0 * 8 * r * r + blocks
    return max(memory_of_sample(sample, n_features), proof)


@dataclass(frozen=True)
class Plan:
    """Sizes of a fit by passes: points in memory; for Algorithm 3 candidates at first, those that a round adds, and rounds."""

    sample: int
    n_initial: int
    n_added: int
    n_rounds: int | None

    @classmethod
    def of(cls, settings: Settings, n: int, n_features: int) -> Plan:
        """The sizes that the user gave, or those that fit the numbers of rows and columns and the memory budget.

        To fit the budget, first the points in memory are halved, down to ``SMALLEST_SAMPLE``, then candidates are left out.
        """
        asked = settings.sketch or Sketch()
        budget, sample = budget_of(settings.memory_budget), min(sample_size(settings, n, n_features), n)
        usual = np.clip(np.sqrt(MOST_MULTIPLICATIONS / n), FEWEST_FIRST_CANDIDATES, MOST_FIRST_CANDIDATES)
        r = min(int(asked.n_initial or usual), n)
        fewest = min(FEWEST_FIRST_CANDIDATES, n) if asked.n_initial is None else r
        while r > fewest and memory_by_passes(sample, r, n_features) > budget:
            r = max(fewest, int(0.9 * r))
        needed = memory_by_passes(sample, r, n_features)
        if needed > budget:
            raise MemoryBudgetError(
                f"{n:,} rows × {n_features:,} features need about {readable_size(needed)} at the least, by passes with {r:,} "
                f"candidates and {sample:,} points in memory; the budget is {readable_size(budget)}",
                f"Raise `memory_budget`{', or use fewer columns' if asked.n_initial is None else ' or lower `n_initial`'}.",
            )
        rounds = PAPER_ROUNDS if settings.mode == "paper" else None
        return cls(sample, r, int(asked.n_added or max(r // ADDED_PART, 1)), asked.n_rounds or rounds)

    def threads(self, settings: Settings, n: int, n_features: int) -> int:
        """Threads whose rows, similarities and sums the budget holds beside all else, at least one."""
        r = max(self.n_initial, settings.number(n) or 0)
        spare = budget_of(settings.memory_budget) - memory_by_passes(self.sample, self.n_initial, n_features)
        return max(1, int(spare / (8.0 * (BLOCK_ROWS * n_features + 2 * ROWS_AT_ONCE * r + 2 * r * r))))

    @property
    def most_passes(self) -> int:
        """Passes of Algorithm 3 and of the bound at most: two for each round, one between two rounds, and one."""
        return 3 * (self.n_rounds or MOST_ROUNDS)


@dataclass(frozen=True)
class ByPasses:
    """The program of all rows, its certificate, and answers for all rows. A copy has no rows, and cannot compute them.

    Attributes
    ----------
    n, settings, plan : number of rows, settings of the fit, sizes of the program
    passes : makes them; None in a copy
    drawn : the rows in memory; None in a copy
    cache : holds what Algorithm 3 has found
    """

    n: int
    settings: Settings
    plan: Plan
    passes: Passes | None = field(default=None, repr=False)
    drawn: Drawn | None = field(default=None, repr=False)
    cache: dict[str, SolvedSketch] = field(default_factory=dict, repr=False)

    by_passes: ClassVar[bool] = True

    def __getstate__(self) -> dict[str, Any]:
        gone: dict[str, Any] = {"passes": None, "drawn": None, "cache": {}}
        return {"n": self.n, "settings": self.settings, "plan": self.plan} | gone

    @property
    def is_possible(self) -> bool:
        return self.passes is not None

    def rows(self, numbers: IntArray, material: Material) -> Any:
        """Rows with these numbers, which are in ascending order, prepared; one pass reads them."""
        assert self.passes is not None
        return material.geometry.prepare(self.passes.run("rows that are explained", TakeRows(numbers))["rows"])

    def sketch(self, material: Material) -> SolvedSketch:
        """What Algorithm 3 finds with the points of the sample; the first call makes its passes."""
        if not self.cache:
            if self.passes is None:
                raise InvalidInputError("the encoding is not kept in a model that was saved or copied", "Fit again.")
            self.solve(material.points, material.geometry, material.seed)
        return self.cache["sketch"]

    def solve(self, points: Points, geometry: Geometry, seed: int) -> SolvedSketch:
        """Algorithm 3, with the points of the sample, which come first."""
        kernel, drawn, settings, plan = geometry.kernel, self.drawn, self.settings, self.plan
        assert isinstance(kernel, PointKernel)
        assert drawn is not None
        assert self.passes is not None
        sampled = drawn.is_drawn
        copies = np.asarray(np.bincount(points.group[sampled], drawn.copies[sampled]), np.float64)
        drawn_points = slice(0, len(copies))
        X, first = kernel.X[drawn_points], drawn.numbers[points.first[drawn_points]]
        sample = Sample(X, row_codes(X), first, copies, points.weights[drawn_points])
        paper, (alpha, lam) = settings.mode == "paper", strength(settings)
        found = run_sketch(
            self.passes.run,
            kernel.over,
            sample,
            n_initial=plan.n_initial,
            n_added=plan.n_added,
            n_rounds=plan.n_rounds,
            alpha=alpha,
            lam=lam,
            tol=settings.gap,
            first=np.sort(np.random.default_rng(seed).permutation(len(sample))[: plan.n_initial]) if paper else None,
            rule="error" if paper else "violation",
            prepare=geometry.prepare,
            seed=seed,
        )
        self.cache["sketch"] = found
        return found

    def encoding(self, material: Material) -> Encoding:
        """The program's solution as an encoding of the points of Algorithm 3, which stand for all rows."""
        sketch, kernel = self.sketch(material), material.kernel
        assert isinstance(kernel, PointKernel)
        encoding = sketch.encoding(kernel.over(sketch.sample.rows), self.n, self.settings.gap)
        if self.settings.mode == "paper":
            warn_of_gap(encoding, self.settings.gap, "Raise `n_initial` or `n_rounds`, or widen the kernel (a smaller `gamma`).")
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """The certificate of the picks for all rows; after those of Algorithm 3, one more pass gives error and bound."""
        if self.passes is None:
            # An AttributeError would look as if the property did not exist.
            raise InvalidInputError(f"certificate_ was {GONE}", "Fit again, and read it before saving.")
        certificate = selection.material.solved.certificate
        sketch, chosen, kernel = self.sketch(selection.material), selection.chosen, selection.kernel
        assert isinstance(kernel, PointKernel)
        k, prepare = len(chosen), selection.material.geometry.prepare
        trace = certificate.scale / (0.5 * sketch.problem.lam)
        ridge = trace / self.n
        whole = DesignProblem(features(sketch.basis, kernel.over(sketch.sample.rows)), sketch.problem.C, 1.0)
        best, E = best_for_k(whole, k, ridge=ridge, initial=sketch.candidates)
        U = triangle(E)
        task = Together(
            {
                "gram": GramSum(Basis(kernel.take(chosen), np.eye(k, order="F")), prepare),
                "scores": LargestScores(sketch.basis, U, max(k, MOST_KEPT_SCORES), prepare),
            }
        )
        found = self.passes.run("bound", task)
        K, gram = kernel.block(chosen, chosen), found["gram:G"]
        error = trace - float(np.trace(np.linalg.solve(K + ridge * np.eye(k), gram)))
        lengths = (float(found["scores:longest"]),)
        bounds = replace(
            best,
            outside=-EPS_OF_A_BOUND * float(np.finfo(np.float64).eps) * trace,
            scores=largest(found["scores:best"]["values"], max(k, MOST_KEPT_SCORES)),
            spectrum=Spectrum.of(sketch.problem.C, None, lengths),
        )
        without_ridge = min(_without_ridge(K, gram, trace), error)  # a ridge never lowers the error
        constrained = selection.material.constraints.are_given
        return SelectionCertificate(certificate, k, error, bounds, selection.decisions, trace, without_ridge, constrained)

    def answers(self, selection: Selection) -> Answers:
        """Answers for all rows, computed in one pass."""
        if self.passes is None:
            raise AttributeError(
                f"labels_, is_outlier_, effective_count_ and representation_error_ were {GONE}. "
                "predict, score_samples and transform answer for rows that are passed to them."
            )
        return answers_by_pass(selection, self.passes.run)

    def influence(self, material: Material) -> FloatArray:
        """For each row the norm of its row in the encoding; only points that Algorithm 3 has in memory have one."""
        influence = np.zeros(self.n)
        influence[self.sketch(material).sample.first] = material.solved.influence
        return influence


def _without_ridge(K: FloatArray, gram: FloatArray, trace: float) -> float:
    """Tr − tr(K⁺ G) between the chosen, G = Σ_i k_i k_iᵀ. Directions with eigenvalues below 1e-8 of the largest, where sums over
    many rows are rounding errors, are taken to explain nothing, so the result errs upwards.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(K), np.finfo(np.float64).tiny))
    w, U = np.linalg.eigh(scale[:, None] * K * scale)
    root = scale[:, None] * U[:, w > 1e-8 * w[-1]]
    explained = np.einsum("ij,ij->j", root, gram @ root) / w[w > 1e-8 * w[-1]]
    return max(trace - float(explained.sum()), 0.0)
