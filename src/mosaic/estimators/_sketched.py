"""A fit by passes over data that is not taken into memory: a sample is, and the program is that of all rows.

Choosing, outliers and explanations are those of a fit in memory, on a random sample and the candidates that came in; only
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

from mosaic._arrays import FloatArray, IntArray, divided, refuse_missing, row_codes, row_norms_squared, subsample
from mosaic.encoding import DesignRows, Encoding, Groups
from mosaic.engines import Journal, Source
from mosaic.estimators._certificate import SelectionCertificate
from mosaic.estimators._columns import column_scale
from mosaic.estimators._demands import Demands
from mosaic.estimators._explanation import explain_point
from mosaic.estimators._plan import Plan
from mosaic.estimators._points import Distinct
from mosaic.estimators._settings import Settings, explain_selector
from mosaic.estimators._solving import build_kernel, strength
from mosaic.exceptions import InvalidInputError
from mosaic.factor import Factor
from mosaic.kernels import PointKernel
from mosaic.lam_path import best_for_k
from mosaic.passes import PerRow, Small, TakeRows, Task, Together
from mosaic.problem import DesignProblem
from mosaic.sketch import (
    Basis,
    GramSum,
    Round,
    Scores,
    Sketch,
    counted,
    draw,
    features,
    run_sketch,
    symmetric,
    with_rows,
)
from mosaic.solvers import Status
from mosaic.tuning import neighbours_wanted

#: Parameters that an answer does not depend on.
NO_MATTER = ("verbose", "checkpoint", "n_jobs", "memory_budget", "warm_start", "strategy", "max_rank", "max_iter")


@dataclass(frozen=True)
class FiniteRows:
    """Refuses rows with missing or infinite values, with their numbers in the data."""

    names: tuple[str, ...] | None

    def __call__(self, rows: Any, start: int) -> None:
        """Raise if one is not finite."""
        refuse_missing(rows, self.names, first_row=start)


@dataclass(frozen=True)
class Passes:
    """All that a fit by passes leaves behind: where its rows are, what was summed, and the points in memory.

    ``model`` is a fit in memory of the same class, on those points. A model that was saved has no journal.
    """

    n: int
    journal: Journal | None
    sketch: Sketch
    kernel: PointKernel
    scale: FloatArray | None
    model: Any

    def place(self, row: int) -> int | None:
        """Number of a row among the points in memory."""
        found = np.flatnonzero(self.sketch.sample.first == row)
        return int(found[0]) if len(found) else None


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
    estimator: Any,
    journal: Journal,
    plan: Plan,
    k: float | None,
    fetched: IntArray,
    must: IntArray,
    seed: int,
    callback: Callable[[Round], None] | None,
) -> tuple[Sketch, PointKernel, FloatArray | None]:
    """The rounds: sample, similarity, program. The similarity is over the points in memory, ``fetched`` rows among them."""
    source = journal.source
    names = None if source.names is None else tuple(source.names)
    sample = draw(journal.run, source.n, plan.sample, seed, FiniteRows(names))
    weights = sample.weights
    scale = column_scale(estimator, sample.rows, None if (weights == weights[0]).all() else weights)
    trivial = Distinct(np.arange(len(sample)), np.arange(len(sample)), weights, sample.codes)
    wanted = neighbours_wanted(len(sample), k)
    kernel = build_kernel(estimator, divided(sample.rows, scale), trivial, wanted, plan.n_initial, seed)
    assert isinstance(kernel, PointKernel)
    first = None
    if estimator.mode == "paper":
        first = np.sort(np.random.default_rng(seed).permutation(len(sample))[: plan.n_initial])
    alpha, lam = strength(estimator)
    sketch = run_sketch(
        journal.run,
        kernel.over,
        sample,
        n_initial=plan.n_initial,
        n_added=plan.n_added,
        n_rounds=plan.n_rounds,
        alpha=alpha,
        lam=lam,
        tol=estimator.tol,
        first=first,
        rule="error" if estimator.mode == "paper" else "violation",
        scale=scale,
        seed=seed,
        callback=callback,
    )
    if len(fetched):
        rows = journal.run("rows that were named", TakeRows(fetched))["rows"]
        order = np.argsort(~np.isin(fetched, must), kind="stable")  # of equal rows, one that must be included
        codes, where = np.unique(row_codes(rows)[order], return_index=True)
        named = with_rows(rows[order[where]], codes, fetched[order[where]])
        with_copies = replace(counted(journal.run, "copies of rows that were named", named), first=named.first)
        sketch = replace(sketch, sample=sketch.sample.named(with_copies))
    return sketch, kernel.over(divided(sketch.sample.rows, scale)), scale


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
        groups=Groups.trivial(kernel.n),
        weights=sketch.sample.counts.astype(np.float64),
        members=members,
        member_rows=DesignRows(F, members, sketch.problem.restrict(used), eta[used], None, np.zeros(0, np.intp)),
        stands_for=sketch.sample.weights * (n / float(sketch.sample.weights.sum())),
    )


def points_of(sketch: Sketch, kernel: PointKernel, n: int | None) -> Distinct:
    """The points in memory as distinct ones. With n, weights say for how many rows each stands, else how often it is there."""
    sample, everyone = sketch.sample, np.arange(len(sketch.sample))
    weights = sample.counts.astype(np.float64) if n is None else sample.weights * (n / float(sample.weights.sum()))
    return Distinct(everyone, everyone, weights, row_codes(kernel.X))


def rows_to_fetch(whole: Demands | None, k: float | None, limit: int, seed: int) -> IntArray:
    """Rows that must be in memory, in order: those that must be included, and enough of candidates and of each group.

    What is named by few is not in a random sample of many.
    """
    if whole is None:
        return np.zeros(0, np.intp)
    kept = [whole.must]
    if not whole.allowed.all() and whole.allowed.mean() < 0.5:
        may = np.flatnonzero(whole.allowed)
        kept.append(may[subsample(len(may), limit // 2, seed)])
    if whole.quotas is not None:
        each = min(limit // (2 * len(whole.names)) + 1, int(8 * (k or 100)))
        for group in range(len(whole.names)):
            members = np.flatnonzero((whole.group == group) & whole.allowed)
            kept.append(members[subsample(len(members), each, seed)])
    return np.unique(np.concatenate(kept))


def demands_in_memory(sketch: Sketch, whole: Demands | None) -> Demands:
    """What was demanded of rows, for the points in memory, each called by one of its rows."""
    if whole is None:
        return Demands.read(len(sketch.sample))
    first = sketch.sample.first
    twins = np.setdiff1d(whole.must, first)
    if len(twins):
        raise InvalidInputError(
            f"must_include names row {int(twins[0])}, which is equal to another one that it names. Name one of them."
        )
    order = np.argsort(first)
    must = order[np.searchsorted(first[order], whole.must)]
    return Demands(whole.allowed[first], must, whole.group[first], whole.names, whole.quotas)


def certify_choice(passes: Passes, sentences: tuple[str, ...]) -> SelectionCertificate:
    """What is proven about the picks, for all rows: one more pass, for what they leave and for the bound."""
    sketch, model, n = passes.sketch, passes.model, passes.n
    chosen, kernel = model._choice.points, passes.kernel
    k = len(chosen)
    trace = sketch.certificate.scale / (0.5 * sketch.problem.lam)
    ridge = trace / n
    whole = DesignProblem(features(sketch.basis, kernel), sketch.problem.C, 1.0)
    best = best_for_k(whole, k, ridge=ridge, tol=1e-2, initial=sketch.candidates)
    point = best.dual_point(whole)
    picks = Basis(kernel.take(chosen), np.eye(k, order="F"))
    tasks: dict[str, Task] = {
        "gram": GramSum(picks, passes.scale),
        "scores": Scores.of(sketch.basis, point.E, None, 1, 0, passes.scale),
    }
    assert passes.journal is not None
    found = passes.journal.run(f"certificate {_digest(chosen)}", Together(tasks))
    K = kernel.block(chosen, chosen) + ridge * np.eye(k)
    error = trace - float(np.trace(np.linalg.solve(K, symmetric(found["gram:G"]))))
    largest = max(best.largest_score, float(np.sqrt(found["scores:largest"])))
    bounds = replace(best, largest_score=largest).bounds(ridge)
    return SelectionCertificate(sketch.certificate, k, error, bounds, sentences)


def _digest(chosen: IntArray) -> str:
    return f"{int(row_codes(chosen[None, :].astype(np.float64))[0]):016x}"


@dataclass(frozen=True)
class RowAnswers:
    """What a model on the points in memory says of any rows: counts, labels, errors, and whether they are outliers."""

    model: Any

    def __call__(self, rows: Any, start: int) -> Small:
        """For the rows of a block."""
        answers: Small = self.model._answers(divided(np.asarray(rows), self.model.column_scale_))
        return answers


def answers_for_rows(passes: Passes) -> Small:
    """One pass that asks for all rows."""
    assert passes.journal is not None
    return passes.journal.run("answers for all rows", PerRow(RowAnswers(passes.model)), keep=False)


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


def explain_by_passes(passes: Passes, i: int | None) -> Any:
    """The decisions behind the fit, or the explanation of a row that is in memory, in row numbers of the data."""
    model, first = passes.model, passes.sketch.sample.first
    if i is None:
        drawn = f"A sample of {len(first):,} of {passes.n:,} rows says so; the program is that of all rows."
        return Settings([*explain_selector(model), drawn])
    if isinstance(i, bool) or not isinstance(i, Integral) or not -passes.n <= int(i) < passes.n:
        raise InvalidInputError(f"i must be a row number between 0 and {passes.n - 1}; got {i!r}.")
    row = int(i) % passes.n
    place = passes.place(row)
    if place is None:
        raise InvalidInputError(
            f"row {row} is not among the {len(first):,} rows that were kept in memory, and only these can be explained. "
            "predict, transform and score_samples answer for any row."
        )
    told = explain_point(model, place)
    stands = 0.0 if told.rank is None else float(model._solved.points.weights[model.labels_ == told.rank].sum())
    rows: dict[str, Any] = {
        "index": row,
        "reason": told.reason.replace(" rows;", f" of {len(first):,} rows in memory;")
        if told.rank is not None
        else told.reason,
        "represented_by": None if told.represented_by is None else int(first[told.represented_by]),
        "nearest": tuple((int(first[j]), s) for j, s in told.nearest),
        "members": tuple(int(first[j]) for j in told.members),
        "stands_for": round(stands),
    }
    if told.represented_by is not None:
        rows["reason"] = rows["reason"].replace(
            f"row {told.represented_by} stands", f"row {rows['represented_by']} stands"
        )
    return replace(told, **rows)
