"""A fit by passes over data that stays out of memory: only a sample is in memory, and the program is that of all rows.

Outliers, choice and explanations are those of a fit in memory, on a random sample and the candidates that were added; only
the program, its solution and its certificate cover all rows. Answers for all rows are computed on first access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray, refuse_missing, subsample
from mosaic._codes import row_codes, row_priorities
from mosaic._units import Prepare
from mosaic.bounds import EPS_OF_A_BOUND, MOST_KEPT_SCORES, Largest, Spectrum, best_for_k
from mosaic.choosing import (
    Answers,
    Constraints,
    Geometry,
    Material,
    Points,
    Selection,
    SelectionCertificate,
    Settings,
    choose,
    geometry_of,
    preparation_of,
)
from mosaic.encoding import Encoding
from mosaic.engines import Journal, Source
from mosaic.estimators._base import Narrator
from mosaic.estimators._proof import strength, warn_of_gap
from mosaic.estimators._reading import NamedRows, seed_of, with_table
from mosaic.estimators._strategy import Plan
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import PointKernel
from mosaic.outliers import EffectiveCounts
from mosaic.passes import PerRow, Small, TakeRows, Together
from mosaic.problem import DesignProblem
from mosaic.sketch import (
    Basis,
    GramSum,
    LargestScores,
    Sample,
    Sketch,
    SketchRound,
    counted,
    draw,
    features,
    run_sketch,
    triangle,
    with_rows,
)

#: Parameters of an estimator that its answer does not depend on.
WITHOUT_EFFECT = ("verbose", "checkpoint", "n_jobs", "memory_budget", "warm_start", "strategy", "max_rank", "max_iter")
#: Seed of the sample. It does not depend on the user's seed, so that all seeds see the same rows.
SAMPLE_SEED = 0
#: Why a saved model cannot answer.
GONE = "not computed before this model was saved or copied, and a saved model does not hold the rows"


def select_by_passes(
    source: Source,
    settings: Settings,
    plan: Plan,
    parameters: Mapping[str, Any],
    quotas: Any,
    constraints: dict[str, Any],
    narrator: Narrator,
    read: NamedRows | None = None,
) -> Selection:
    """The selection of data that is read in passes.

    Parameters
    ----------
    source, settings, plan : rows, settings of the fit, sizes of the passes
    parameters : parameters of the estimator, including the checkpoint, which is valid for equal parameters only, and random_state
    quotas, constraints : arguments of ``fit``
    narrator : reports the progress
    read : of a file or a data frame, how columns became numbers, and the names of the rows
    """
    n, random_state = source.n, parameters["random_state"]
    demanded = {"quotas": quotas, **constraints}
    depends = {name: value for name, value in parameters.items() if name not in WITHOUT_EFFECT}
    if not isinstance(random_state, Integral):  # the seed drawn from it is stored in the journal
        depends["random_state"] = type(random_state).__name__
    narrator.expect(n, plan.n_rounds)
    journal = Journal(source, parameters["checkpoint"], depends | demanded | asdict(plan), narrator.on_pass)
    seed = journal.remember("seed", seed_of(random_state))
    free = all(value is None for value in demanded.values())
    whole = None if free else Constraints.read(n, **demanded)
    sketch, geometry, n_drawn = sketch_of(settings, journal, plan, whole, seed, narrator.on_round)
    geometry = geometry if read is None else with_table(geometry, read.table, read.told)
    kernel, sample = geometry.kernel, sketch.sample
    assert isinstance(kernel, PointKernel)
    proof = ByPasses(n, journal, sketch, geometry.prepare, settings.gap)
    everyone = np.arange(len(sample))
    counting = None
    if settings.mode != "paper":
        narrator.say("effective counts")
        drawn = sample.take(everyone[:n_drawn])  # points added later are no random sample
        # A rare point counts with its number of copies, a frequent one in proportion to rare ones.
        how_often = drawn.weights / (drawn.weights / drawn.counts).max()
        counting = EffectiveCounts.of(kernel.take(everyone[:n_drawn]), how_often, seed)
    material = Material(
        n_rows=n,
        points=Points(everyone, everyone, sample.standing_for(n), row_priorities(kernel.X)),
        geometry=geometry,
        constraints=_constraints_in_memory(sample, whole),
        counting=counting,
        sample=everyone,
        seed=seed,
        proof=proof,
        absent=kernel.X[:0],
        row_numbers=sample.first,
        row_names=None if read is None else read.names_of_rows(sample.first),
    )
    advice = "Raise `n_initial` or `n_rounds`, or widen the kernel (a smaller `gamma`)."
    warn_of_gap(material.encoding, settings.gap, advice)
    narrator.say("choosing")
    return choose(material, settings)


@dataclass(frozen=True)
class ByPasses:
    """The program of all rows, its certificate, and answers for all rows. A copy has neither rows nor matrices."""

    n: int
    journal: Journal | None
    sketch: Sketch | None
    prepare: Prepare
    tol: float

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "journal": None, "sketch": None}

    @property
    def is_possible(self) -> bool:
        """Whether the rows can still be read."""
        return self.journal is not None

    def rows(self, numbers: IntArray) -> Any:
        """Rows with these numbers, which are in ascending order, prepared; one pass reads them."""
        assert self.journal is not None
        found = self.journal.run("rows that are explained", TakeRows(numbers), keep=False)
        return self.prepare(found["rows"])

    def encoding(self, material: Material) -> Encoding:
        """The program's solution as an encoding of the points in memory, which stand for all rows."""
        if self.sketch is None:
            raise InvalidInputError("the encoding is not kept in a model that was saved or copied", "Fit again.")
        assert isinstance(material.kernel, PointKernel)
        return self.sketch.encoding(material.kernel, self.n, self.tol)

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """The certificate of the picks for all rows; one more pass computes their error and the bound."""
        if self.journal is None or self.sketch is None:
            # An AttributeError would look as if the property did not exist.
            raise InvalidInputError(f"certificate_ was {GONE}", "Fit again, and read it before saving.")
        sketch, chosen, kernel = self.sketch, selection.chosen, selection.kernel
        assert isinstance(kernel, PointKernel)
        k = len(chosen)
        trace = sketch.certificate.scale / (0.5 * sketch.problem.lam)
        ridge = trace / self.n
        whole = DesignProblem(features(sketch.basis, kernel), sketch.problem.C, 1.0)
        best, E = best_for_k(whole, k, ridge=ridge, initial=sketch.candidates)
        U = triangle(E)
        task = Together(
            {
                "gram": GramSum(Basis(kernel.take(chosen), np.eye(k, order="F")), self.prepare),
                "scores": LargestScores(sketch.basis, U, max(k, MOST_KEPT_SCORES), self.prepare),
            }
        )
        code = int(row_codes(chosen[None, :].astype(np.float64))[0])
        found = self.journal.run(f"bound for {code:016x}", task)
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
            sketch.certificate, k, error, bounds, selection.decisions, trace, without_ridge, constrained
        )

    def answers(self, selection: Selection) -> Answers:
        """Answers for all rows, computed in one pass."""
        if self.journal is None or self.sketch is None:
            raise AttributeError(
                f"labels_, is_outlier_, effective_count_ and representation_error_ were {GONE}. "
                "predict, score_samples and transform answer for rows that are passed to them."
            )
        found = self.journal.run("answers for all rows", PerRow(partial(_answers_at, selection)), keep=False)
        own, first = selection.answers_in_memory, self.sketch.sample.first
        # Copies, since arrays from other processes may be read-only. Answers for the points in memory respect the constraints.
        values = {name: np.array(found[name]) for name in Answers._fields}
        for name, value in values.items():
            value[first] = getattr(own, name)
        return Answers(**values)


def _answers_at(selection: Selection, rows: Any, start: int) -> Small:
    """The answers of a selection for any rows."""
    return selection.answers_at(selection.material.geometry.prepare(np.asarray(rows)))._asdict()


def _refuse_missing(names: tuple[str, ...] | None, rows: Any, start: int) -> None:
    """Refuse rows with missing or infinite values, with their numbers in the data."""
    refuse_missing(rows, names, first_row=start)


def sketch_of(
    settings: Settings,
    journal: Journal,
    plan: Plan,
    whole: Constraints | None,
    seed: int,
    callback: Callable[[SketchRound], None] | None,
) -> tuple[Sketch, Geometry, int]:
    """The sketch, the geometry over the points in memory, with rows that constraints name, and the number of points drawn.

    The drawn points come first, in the same order as in a fit in memory.
    """
    source = journal.source
    names = None if source.names is None else tuple(source.names)
    sample = draw(journal.run, source.n, plan.sample, SAMPLE_SEED, partial(_refuse_missing, names))
    weights = sample.weights
    prepare = preparation_of(sample.rows, None if (weights == weights[0]).all() else weights, settings)
    sample = sample.prepared(prepare)
    sample = sample.take(Points.of(prepare(sample.rows), sample.weights).first)
    rows, everyone = prepare(sample.rows), np.arange(len(sample))
    points = Points(everyone, everyone, sample.weights, row_priorities(rows))
    geometry = geometry_of(rows, points, settings, prepare, names, seed)
    kernel = geometry.kernel
    assert isinstance(kernel, PointKernel)
    paper = settings.mode == "paper"
    alpha, lam = strength(settings)
    sketch = run_sketch(
        journal.run,
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
        prepare=prepare,
        seed=seed,
        callback=callback,
    )
    if whole is not None:
        sketch = replace(sketch, sample=_with_named_rows(journal, sketch.sample, prepare, whole, settings, plan.sample))
    return sketch, replace(geometry, kernel=kernel.over(prepare(sketch.sample.rows))), len(sample)


def _with_named_rows(
    journal: Journal, sample: Sample, prepare: Prepare, whole: Constraints, settings: Settings, limit: int
) -> Sample:
    """The sample, with rows that constraints name; each of these keeps the row number by which it was named.

    The must-include rows are added, and enough candidates and members of each group, since a random sample may hold too few of
    them.
    """
    numbers = [whole.must]
    if not whole.allowed.all() and whole.allowed.mean() < 0.5:
        may = np.flatnonzero(whole.allowed)
        numbers.append(may[subsample(len(may), limit // 2, SAMPLE_SEED)])
    if whole.quotas is not None:
        each = min(limit // (2 * len(whole.names)) + 1, int(8 * (settings.number(journal.source.n) or 100)))
        for group in range(len(whole.names)):
            members = np.flatnonzero((whole.group == group) & whole.allowed)
            numbers.append(members[subsample(len(members), each, SAMPLE_SEED)])
    fetched: IntArray = np.unique(np.concatenate(numbers))
    if not len(fetched):
        return sample
    rows = journal.run("rows that were named", TakeRows(fetched))["rows"]
    order = np.argsort(~np.isin(fetched, whole.must), kind="stable")  # of equal rows, take one that must be included
    codes, where = np.unique(row_codes(prepare(rows))[order], return_index=True)
    named = with_rows(rows[order[where]], codes, fetched[order[where]])
    with_copies = replace(counted(journal.run, "copies of rows that were named", named, prepare), first=named.first)
    return sample.named(with_copies)


def _constraints_in_memory(sample: Sample, whole: Constraints | None) -> Constraints:
    """The constraints, for the points in memory; each point is identified by one of its rows."""
    if whole is None:
        return Constraints.read(len(sample))
    twins = np.setdiff1d(whole.must, sample.first)
    if len(twins):
        raise InvalidInputError(
            f"names `row {int(twins[0])}`, which is equal to another row that it names",
            "Name one of them.",
            parameter="must_include",
        )
    order = np.argsort(sample.first)
    must = order[np.searchsorted(sample.first[order], whole.must)]
    return Constraints(whole.allowed[sample.first], must, whole.group[sample.first], whole.names, whole.quotas)


def _without_ridge(K: FloatArray, gram: FloatArray, trace: float) -> float:
    """Tr − tr(K⁺ G) between the chosen, G = Σ_i k_i k_iᵀ. Directions with eigenvalues below 1e-8 of the largest, where sums over
    many rows are rounding errors, are taken to explain nothing, so the result errs upwards.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(K), np.finfo(np.float64).tiny))
    w, U = np.linalg.eigh(scale[:, None] * K * scale)
    root = scale[:, None] * U[:, w > 1e-8 * w[-1]]
    explained = np.einsum("ij,ij->j", root, gram @ root) / w[w > 1e-8 * w[-1]]
    return max(trace - float(explained.sum()), 0.0)
