"""A fit by passes over data that is not taken into memory: a sample is, and the program is that of all rows.

Outliers, choosing and explanations are those of a fit in memory, on a random sample and the candidates that came in; only
the program, its solution and its certificate speak of all rows, and answers for all rows are given when they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._arrays import (
    FloatArray,
    IntArray,
    Prepare,
    refuse_missing,
    row_codes,
    row_norms_squared,
    row_priorities,
    subsample,
)
from mosaic.bounds import MOST_KEPT, ROUNDING, Largest, Spectrum
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
from mosaic.encoding import DesignRows, Encoding, EqualPoints
from mosaic.engines import Journal, Source
from mosaic.estimators._base import Narrator
from mosaic.estimators._plan import Plan
from mosaic.estimators._proof import strength, warn_of_gap
from mosaic.estimators._reading import seed_of
from mosaic.exceptions import InvalidInputError
from mosaic.factor import Factor
from mosaic.kernels import PointKernel
from mosaic.lam_path import best_for_k, bound_tolerance
from mosaic.outliers import EffectiveCounts
from mosaic.passes import PerRow, Small, TakeRows, Task, Together
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
    symmetric,
    triangle,
    with_rows,
)
from mosaic.solvers import Status

#: Parameters that an answer does not depend on.
NO_MATTER = ("verbose", "checkpoint", "n_jobs", "memory_budget", "warm_start", "strategy", "max_rank", "max_iter")
#: The draw of the sample does not depend on the seed of the user, so that other seeds see the same rows.
DRAW = 0
#: Why a model that was saved cannot answer.
GONE = "not asked for before this model was saved or copied, and its rows do not come with it."


def select_by_passes(
    estimator: Any, settings: Settings, source: Source, quotas: Any, constraints: dict[str, Any], narrator: Narrator
) -> Selection:
    """The selection of data that is read in passes. ``estimator`` has the sizes of the passes, and the path of a checkpoint."""
    n = source.n
    k = settings.number(n)
    plan = Plan.of(estimator, settings, n, source.n_features, k)
    demanded = {name: known(value) for name, value in {"quotas": quotas, **constraints}.items()}
    narrator.expect(n, plan.n_rounds)
    journal = open_journal(estimator, source, plan, narrator.on_pass, demanded)
    seed = journal.remember("seed", seed_of(estimator.random_state))
    free = quotas is None and all(value is None for value in constraints.values())
    whole = None if free else Constraints.read(n, quotas=quotas, **constraints)
    fetched = rows_to_fetch(whole, k, plan.sample)
    must = np.zeros(0, np.intp) if whole is None else whole.must
    sketch, geometry, n_drawn = sketch_of(settings, journal, plan, fetched, must, seed, narrator.on_round)
    kernel, sample = geometry.kernel, sketch.sample
    assert isinstance(kernel, PointKernel)
    proof = ByPasses(n, journal, sketch, geometry.prepare, settings.tol)
    everyone = np.arange(len(sample))
    weights = sample.weights * (n / float(sample.weights.sum()))
    points = Points(everyone, everyone, weights, row_priorities(kernel.X))
    checked = constraints_in_memory(sketch, whole)
    counting = None
    if settings.mode != "paper":
        narrator.say("effective counts")
        drawn = np.arange(n_drawn)  # those that came in later are odd ones, or of groups that were named
        counting = EffectiveCounts.of(kernel.take(drawn), how_often(sample.take(drawn)), seed)
    material = Material(
        n_rows=n,
        points=points,
        geometry=geometry,
        constraints=checked,
        counting=counting,
        sample=everyone,
        seed=seed,
        proof=proof,
        absent=kernel.X[:0],
        row_numbers=sample.first,
    )
    warn_of_gap(material.encoding, settings.tol, "Raise n_initial or n_rounds, or widen the kernel (a smaller gamma).")
    narrator.say("choosing")
    return replace(choose(material, settings), ask_all_rows=proof.answers)


@dataclass(frozen=True)
class ByPasses:
    """The program of all rows, what it proves, and what is said of all rows. A model that was saved has no journal."""

    n: int
    journal: Journal | None
    sketch: Sketch
    prepare: Prepare
    tol: float

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "journal": None}

    @property
    def is_possible(self) -> bool:
        """Whether the rows can still be read."""
        return self.journal is not None

    def encoding(self, material: Material) -> Encoding:
        """The program's solution as an encoding of the points in memory, which stand for all."""
        kernel = material.kernel
        assert isinstance(kernel, PointKernel)
        return encoding_of(self.sketch, kernel, self.n, self.tol)

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """What is proven about the picks, for all rows: one more pass, for what they leave and for the bound."""
        if self.journal is None:
            # An AttributeError would be taken for there being no such property.
            raise InvalidInputError(f"certificate_ was {GONE} Fit again, and ask for it before saving.")
        sketch, chosen, kernel = self.sketch, selection.chosen, selection.kernel
        assert isinstance(kernel, PointKernel)
        k = len(chosen)
        trace = sketch.certificate.scale / (0.5 * sketch.problem.lam)
        ridge = trace / self.n
        whole = DesignProblem(features(sketch.basis, kernel), sketch.problem.C, 1.0)
        best = best_for_k(whole, k, ridge=ridge, tol=bound_tolerance(sketch.missed / trace), initial=sketch.candidates)
        point = best.dual_point(whole)
        picks = Basis(kernel.take(chosen), np.eye(k, order="F"))
        tasks: dict[str, Task] = {
            "gram": GramSum(picks, self.prepare),
            "scores": LargestScores(sketch.basis, triangle(point.E), max(k, MOST_KEPT), self.prepare),
        }
        found = self.journal.run(f"bound for {_digest(chosen)}", Together(tasks))
        K, gram = kernel.block(chosen, chosen), symmetric(found["gram:G"])
        error = trace - float(np.trace(np.linalg.solve(K + ridge * np.eye(k), gram)))
        lengths = Largest((float(found["scores:longest"]),))
        bounds = replace(
            best.bounds(ridge, -ROUNDING * float(np.finfo(np.float64).eps) * trace),
            scores=Largest.of(found["scores:values"], max(k, MOST_KEPT)),
            spectrum=Spectrum.of_factor(sketch.problem.C, None, lengths),
        )
        plain = min(_without_ridge(K, gram, trace), error)  # a price never lowers what is left
        return SelectionCertificate(sketch.certificate, k, error, bounds, selection.decisions, trace, plain)

    def answers(self, selection: Selection) -> Answers:
        """What is said of all rows: one pass."""
        if self.journal is None:
            raise AttributeError(
                f"labels_, is_outlier_, effective_count_ and representation_error_ were {GONE} "
                "predict, score_samples and transform answer for rows that are passed to them."
            )
        found = self.journal.run("answers for all rows", PerRow(RowAnswers(selection)), keep=False)
        own, first = selection.answers_in_memory, self.sketch.sample.first
        # What comes from other processes may be read-only; of the points in memory, constraints are known.
        values = {name: np.array(found[name]) for name in Answers._fields}
        for name, value in values.items():
            value[first] = getattr(own, name)
        return Answers(**values)


@dataclass(frozen=True)
class RowAnswers:
    """What a selection says of any rows."""

    selection: Selection

    def __call__(self, rows: Any, start: int) -> Small:
        """For the rows of a block."""
        prepare = self.selection.material.geometry.prepare
        return self.selection.answers_at(prepare(np.asarray(rows)))._asdict()


@dataclass(frozen=True)
class FiniteRows:
    """Refuses rows with missing or infinite values, with their numbers in the data."""

    names: tuple[str, ...] | None

    def __call__(self, rows: Any, start: int) -> None:
        """Raise if one is not finite."""
        refuse_missing(rows, self.names, first_row=start)


def open_journal(
    estimator: Any,
    source: Source,
    plan: Plan,
    tell: Callable[[str, int, float], None] | None,
    demanded: dict[str, Any],
) -> Journal:
    """The journal of a fit, with all that its answer depends on."""
    path = estimator.checkpoint
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidInputError(f"checkpoint must be the path of a file, or None; got {path!r}.")
        if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
            raise InvalidInputError(
                f"checkpoint={str(path)!r} cannot be written: it must be a file in a folder that exists. Name such a file."
            )
    settings = {k: v for k, v in estimator.get_params(deep=False).items() if k not in NO_MATTER}
    if not isinstance(estimator.random_state, Integral):  # the seed that it gave is remembered
        settings["random_state"] = type(estimator.random_state).__name__
    sizes = {"n_initial": plan.n_initial, "n_added": plan.n_added, "n_rounds": plan.n_rounds, "sample": plan.sample}
    return Journal(source, path, {name: _plain(value) for name, value in (settings | demanded | sizes).items()}, tell)


def _plain(value: Any) -> Any:
    """A value as JSON knows it, equal for equal ones."""
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', repr(value))}"
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def sketch_of(
    settings: Settings,
    journal: Journal,
    plan: Plan,
    fetched: IntArray,
    must: IntArray,
    seed: int,
    callback: Callable[[SketchRound], None] | None,
) -> tuple[Sketch, Geometry, int]:
    """The rounds: sample, similarity, program. The similarity is over the points in memory, ``fetched`` rows among them.

    The first of these points, in the order that a fit in memory has, were drawn; their number comes last.
    """
    source = journal.source
    names = None if source.names is None else tuple(source.names)
    sample = draw(journal.run, source.n, plan.sample, DRAW, FiniteRows(names))
    weights = sample.weights
    prepare = preparation_of(sample.rows, None if (weights == weights[0]).all() else weights, settings)
    sample = sample.prepared(prepare)
    sample = sample.take(Points.of(prepare(sample.rows), sample.weights).first)
    rows, everyone = prepare(sample.rows), np.arange(len(sample))
    points = Points(everyone, everyone, sample.weights, row_priorities(rows))
    geometry = geometry_of(rows, points, settings, prepare, names, seed)
    kernel = geometry.kernel
    assert isinstance(kernel, PointKernel)
    first = None
    if settings.mode == "paper":
        first = np.sort(np.random.default_rng(seed).permutation(len(sample))[: plan.n_initial])
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
        tol=settings.tol,
        first=first,
        rule="error" if settings.mode == "paper" else "violation",
        prepare=prepare,
        seed=seed,
        callback=callback,
    )
    if len(fetched):
        sketch = replace(sketch, sample=_with_fetched(journal, sketch.sample, prepare, fetched, must))
    return sketch, replace(geometry, kernel=kernel.over(prepare(sketch.sample.rows))), len(sample)


def how_often(sample: Sample) -> FloatArray:
    """How often each of some drawn points counts: a rare one as often as it is there, a frequent one in proportion to these."""
    return np.asarray(sample.weights / (sample.weights / sample.counts).max())


def _with_fetched(journal: Journal, sample: Sample, prepare: Prepare, fetched: IntArray, must: IntArray) -> Sample:
    """The sample, with rows that were named; each is called by the number that it was named with."""
    rows = journal.run("rows that were named", TakeRows(fetched))["rows"]
    order = np.argsort(~np.isin(fetched, must), kind="stable")  # of equal rows, one that must be included
    codes, where = np.unique(row_codes(prepare(rows))[order], return_index=True)
    named = with_rows(rows[order[where]], codes, fetched[order[where]])
    with_copies = replace(counted(journal.run, "copies of rows that were named", named, prepare), first=named.first)
    return sample.named(with_copies)


def encoding_of(sketch: Sketch, kernel: PointKernel, n: int, tol: float = 1e-3) -> Encoding:
    """The program's solution as an encoding of the points in memory, which stand for all."""
    solved = sketch.solution.status in (Status.CONVERGED, Status.TRIVIAL)
    status = Status.KERNEL_ERROR if solved and sketch.certificate.gap > tol else sketch.solution.status
    F = features(sketch.basis, kernel)
    pivots = sketch.pivots
    residual = np.maximum(kernel.diagonal() - row_norms_squared(F), 0.0)
    residual[pivots] = 0.0
    trace = sketch.certificate.scale / (0.5 * sketch.problem.lam)
    factor = Factor(F, pivots, residual, trace, sketch.missed, "rank")
    eta = sketch.solution.value
    used = np.flatnonzero(eta)
    members = sketch.candidates[used]
    influence = np.zeros(kernel.n)
    influence[members] = sketch.solution.row_norms[used]
    return Encoding(
        influence=influence,
        lam=sketch.problem.lam,
        alpha=sketch.problem.lam / sketch.lam_crit,
        row_norm="l2",
        status=status,
        n_iter=sketch.n_iter,
        certificate=sketch.certificate,
        kernel=kernel,
        factor=factor,
        groups=EqualPoints.trivial(kernel.n),
        weights=sketch.sample.counts.astype(np.float64),
        members=members,
        member_rows=DesignRows(F, members, sketch.problem.restrict(used), eta[used], None, np.zeros(0, np.intp)),
        stands_for=sketch.sample.weights * (n / float(sketch.sample.weights.sum())),
    )


def rows_to_fetch(whole: Constraints | None, k: float | None, limit: int) -> IntArray:
    """Rows that must be in memory, in order: those that must be included, and enough of candidates and of each group.

    What is named by few is not in a random sample of many.
    """
    if whole is None:
        return np.zeros(0, np.intp)
    kept = [whole.must]
    if not whole.allowed.all() and whole.allowed.mean() < 0.5:
        may = np.flatnonzero(whole.allowed)
        kept.append(may[subsample(len(may), limit // 2, DRAW)])
    if whole.quotas is not None:
        each = min(limit // (2 * len(whole.names)) + 1, int(8 * (k or 100)))
        for group in range(len(whole.names)):
            members = np.flatnonzero((whole.group == group) & whole.allowed)
            kept.append(members[subsample(len(members), each, DRAW)])
    return np.unique(np.concatenate(kept))


def constraints_in_memory(sketch: Sketch, whole: Constraints | None) -> Constraints:
    """What was demanded of rows, for the points in memory, each called by one of its rows."""
    if whole is None:
        return Constraints.read(len(sketch.sample))
    first = sketch.sample.first
    twins = np.setdiff1d(whole.must, first)
    if len(twins):
        raise InvalidInputError(
            f"must_include names row {int(twins[0])}, which is equal to another one that it names. Name one of them."
        )
    order = np.argsort(first)
    must = order[np.searchsorted(first[order], whole.must)]
    return Constraints(whole.allowed[first], must, whole.group[first], whole.names, whole.quotas)


def _without_ridge(K: FloatArray, gram: FloatArray, trace: float) -> float:
    """Tr − tr(K⁺ G) between the chosen, G = Σ_i k_i k_iᵀ. Directions of less than 1e-8 of the largest, in which sums of so many
    rows are rounding, explain nothing, which errs upwards.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(K), np.finfo(np.float64).tiny))
    w, U = np.linalg.eigh(scale[:, None] * K * scale)
    root = scale[:, None] * U[:, w > 1e-8 * w[-1]]
    explained = np.einsum("ij,ij->j", root, gram @ root) / w[w > 1e-8 * w[-1]]
    return max(trace - float(explained.sum()), 0.0)


def _digest(chosen: IntArray) -> str:
    return f"{int(row_codes(chosen[None, :].astype(np.float64))[0]):016x}"


def known(value: Any) -> str | None:
    """A short name for a constraint, equal for equal ones."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return repr(sorted(value.items(), key=repr))
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        array = np.unique(array.astype(str), return_inverse=True)[1]
    return f"{array.shape} {int(row_codes(array.reshape(1, -1).astype(np.float64))[0]):016x}"
