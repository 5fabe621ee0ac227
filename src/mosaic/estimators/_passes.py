"""A fit of data that stays where it is: one pass draws the rows that are decided with, the rest is as in memory.

The program of all rows, its certificate, and answers for all rows take further passes, made when they are asked for. In paper
mode, which chooses by the program, it is solved in the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import priority, row_codes
from mosaic.arrays.passes import TakeRows, Together
from mosaic.choosing import (
    Answers,
    Constraints,
    Drawn,
    Geometry,
    Material,
    Points,
    Selection,
    SelectionCertificate,
    Settings,
    choose,
    draw_by_passes,
)
from mosaic.door import check_entries
from mosaic.estimators._base import Narrator
from mosaic.estimators._material import geometry_of_sample, material_of_sample
from mosaic.estimators._proof import GONE, answers_by_pass, strength, warn_of_gap
from mosaic.estimators._reading import NamedRows, seed_of, with_table
from mosaic.estimators._strategy import Plan
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import PointKernel
from mosaic.program.bounds import EPS_OF_A_BOUND, MOST_KEPT_SCORES, Largest, Spectrum, best_for_k
from mosaic.program.encoding import Encoding
from mosaic.program.problem import DesignProblem
from mosaic.sketch import Basis, GramSum, LargestScores, Sample, Sketch, features, run_sketch, triangle
from mosaic.sketch.sources import Passes, Source


def select_by_passes(
    source: Source,
    settings: Settings,
    plan: Plan,
    random_state: Any,
    constraints: dict[str, Any],
    narrator: Narrator,
    read: NamedRows | None = None,
) -> Selection:
    """The selection of data that is read in passes.

    Parameters
    ----------
    source, settings, plan : rows, settings of the fit, sizes of the passes
    random_state : of the estimator
    constraints : arguments of ``Constraints.read``
    narrator : reports the progress
    read : of a file or a data frame, how columns became numbers, and the names of the rows
    """
    n, seed = source.n, seed_of(random_state)
    passes = Passes(source, narrator.on_pass)
    names = None if source.names is None else tuple(source.names)
    free = all(value is None for value in constraints.values())
    whole = Constraints.read(n, **constraints)
    drawn = draw_by_passes(passes.run, n, plan.sample, None if free else whole, partial(_refuse_missing, names))
    proof = ByPasses(n, settings, plan, passes, drawn)
    table, told = (None, ()) if read is None else (read.table, read.told)
    if settings.mode == "paper":
        material = _material_of_paper(proof, drawn, seed, names, read)
    else:
        row_names = None if read is None else read.names_of_rows(drawn.numbers)
        material = material_of_sample(drawn, n, settings, whole, seed, proof, narrator, names, table, told, row_names)
    narrator.say("choosing")
    return choose(material, settings)


def _material_of_paper(
    proof: ByPasses, drawn: Drawn, seed: int, names: Sequence[str] | None, read: NamedRows | None
) -> Material:
    """The material of Algorithm 3: the points of the sample, and those that the rounds have added."""
    geometry, points, matrix = geometry_of_sample(drawn, proof.settings, names, seed)
    assert isinstance(geometry.kernel, PointKernel)
    sample = proof.solve(points, geometry, seed).sample
    geometry = replace(geometry, kernel=geometry.kernel.over(sample.rows))
    order = np.argsort(sample.first)
    return Material(
        n_rows=proof.n,
        points=Points(np.argsort(order), order, sample.standing_for(proof.n), priority(row_codes(sample.rows))),
        geometry=geometry if read is None else with_table(geometry, read.table, read.told),
        constraints=Constraints.read(len(sample)),
        counting=None,
        seed=seed,
        proof=proof,
        absent=matrix[:0],
        row_numbers=sample.first[order],
        row_names=None if read is None else read.names_of_rows(sample.first[order]),
    )


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
    cache: dict[str, Sketch] = field(default_factory=dict, repr=False)

    by_passes: ClassVar[bool] = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "passes": None, "drawn": None, "cache": {}}

    @property
    def is_possible(self) -> bool:
        """Whether the rows can still be read."""
        return self.passes is not None

    def rows(self, numbers: IntArray, material: Material) -> Any:
        """Rows with these numbers, which are in ascending order, prepared; one pass reads them."""
        assert self.passes is not None
        return material.geometry.prepare(self.passes.run("rows that are explained", TakeRows(numbers))["rows"])

    def sketch(self, material: Material) -> Sketch:
        """What Algorithm 3 finds with the points of the sample; the first call makes its passes."""
        if not self.cache:
            if self.passes is None:
                raise InvalidInputError("the encoding is not kept in a model that was saved or copied", "Fit again.")
            self.solve(material.points, material.geometry, material.seed)
        return self.cache["sketch"]

    def solve(self, points: Points, geometry: Geometry, seed: int) -> Sketch:
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
        advice = "Raise `n_initial` or `n_rounds`, or widen the kernel (a smaller `gamma`)."
        warn_of_gap(encoding, self.settings.gap, advice)
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """The certificate of the picks for all rows; after those of Algorithm 3, one more pass gives error and bound."""
        if self.passes is None:
            # An AttributeError would look as if the property did not exist.
            raise InvalidInputError(f"certificate_ was {GONE}", "Fit again, and read it before saving.")
        certificate = selection.program_certificate
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
        lengths = Largest((float(found["scores:longest"]),))
        bounds = replace(
            best,
            outside=-EPS_OF_A_BOUND * float(np.finfo(np.float64).eps) * trace,
            scores=Largest.of(found["scores:values"], max(k, MOST_KEPT_SCORES)),
            spectrum=Spectrum.of_factor(sketch.problem.C, None, lengths),
        )
        without_ridge = min(_without_ridge(K, gram, trace), error)  # a ridge never lowers the error
        constrained = selection.material.constraints.are_given
        return SelectionCertificate(
            certificate, k, error, bounds, selection.decisions, trace, without_ridge, constrained
        )

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


def _refuse_missing(names: tuple[str, ...] | None, rows: Any, start: int) -> None:
    """Refuse rows with missing or infinite values, with their numbers in the data."""
    check_entries(rows, names, first_row=start)


def _without_ridge(K: FloatArray, gram: FloatArray, trace: float) -> float:
    """Tr − tr(K⁺ G) between the chosen, G = Σ_i k_i k_iᵀ. Directions with eigenvalues below 1e-8 of the largest, where sums over
    many rows are rounding errors, are taken to explain nothing, so the result errs upwards.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(K), np.finfo(np.float64).tiny))
    w, U = np.linalg.eigh(scale[:, None] * K * scale)
    root = scale[:, None] * U[:, w > 1e-8 * w[-1]]
    explained = np.einsum("ij,ij->j", root, gram @ root) / w[w > 1e-8 * w[-1]]
    return max(trace - float(explained.sum()), 0.0)
