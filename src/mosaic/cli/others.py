"""outliers, predict, explain, path and estimate."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

import mosaic
from mosaic.choosing import MOST_AUTOMATIC, counted
from mosaic.choosing.budget import budget_of
from mosaic.cli.answers import (
    CurvePoint,
    EstimateAnswer,
    ExplainAnswer,
    JudgedRow,
    Model,
    OutliersAnswer,
    PathAnswer,
    PlacedRow,
    PredictAnswer,
    Row,
)
from mosaic.cli.options import DETECTOR_SETTINGS, NEW_ROWS
from mosaic.cli.run import Run, check_outputs, opened, opened_or_loaded, rows_of_model, values_of, with_columns
from mosaic.cli.terminal import MOST_ROWS, ProgressBar, visible, write, write_end, write_table, write_wrapped
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, explain_model, load
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts
from mosaic.facts.facts import finite
from mosaic.rows import is_source, read
from mosaic.text import Library

pa = Library("pyarrow")
#: Share of the memory budget up to which all rows are read into memory.
SHARE_FOR_ROWS = 0.25
#: Length of a bar for all of the data.
BAR_WIDTH = 40


# ----------------------------------------------------------------------------------------------------------- outliers


def outliers(args: Namespace) -> int:
    """``mosaic outliers``."""
    check_outputs(args, "output", "report", "save")
    with opened(args) as run:
        model = _detector(run)
        run.bar.update("looking at all rows")
        counts, odd = np.asarray(model.effective_count_), np.asarray(model.is_outlier_)
        found = np.flatnonzero(odd)
        found = found[np.argsort(counts[found], kind="stable")]
        rows = np.arange(run.table.n) if args.all else found
        # A fit by passes says what became of an outlier, too; here nothing is rejected.
        told = (f"an outlier: {one.reason.partition(': ')[2]}" for one in explain_model(model, found.tolist(), run.table))
        reasons = dict(zip(found.tolist(), told, strict=True))
        judged = {
            "row": run.numbers(rows),
            "score": np.log(counts[rows]).tolist(),
            "effective_count": counts[rows].tolist(),
            "is_outlier": odd[rows].tolist(),
            "reason": [reasons.get(int(row)) for row in rows],
        }
        columns, facts = run.table.cells(rows), Facts(model, run.table, outliers_only=True)
        table = with_columns(columns, {f"mosaic_{name}": values for name, values in judged.items()})
        run.write_rows("outliers", args.output, lambda: table)
        run.save(model, args.save)
        run.write_page(facts, args.report)
        judged |= {"name": run.ids(rows), "values": values_of(columns) if args.json else [{}] * len(rows)}
    cut = model.selection_.cut
    answer = OutliersAnswer(
        run.file,
        f"{counted(len(found), 'outlier') if len(found) else 'No outliers'} among {counted(run.table.n, 'point')}.",
        run.notes,
        run.outputs,
        len(found),
        cut.rule,
        float(cut.count) if cut.count > 0 else None,
        type(model).__name__,
        [JudgedRow(**dict(zip(judged, cells, strict=True))) for cells in zip(*judged.values(), strict=True)],
        list(facts.decisions),
        facts.settings,
    )
    return run.finish(answer, _write_outliers, table)


def _detector(run: Run) -> Any:
    """Fit the detector, or, if the rows do not fit into memory, the selector, which finds outliers by passes."""
    X, weights = run.table.X, run.table.weights
    settings = run.settings(DETECTOR_SETTINGS)
    budget = budget_of(settings.get("memory_budget"))
    is_large = not sp.issparse(X) and weights is None and getattr(X, "nbytes", 0) > SHARE_FOR_ROWS * budget
    model: Any
    if is_source(X) or is_large:
        run.notes.append(
            f"{run.table.path.name} is too large to be taken into memory, so a sample of the rows decides below "
            "which count rows are outliers. A larger --memory-budget may change that."
        )
        if settings.pop("max_samples", None) is not None:
            run.notes.append("--max-samples is for data in memory; it was not used.")
        model = MOSAIC(algorithm="sketch", **settings)
    else:
        model = MOSAICOutlierDetector(**settings)
    return model.fit(run.table, **({} if weights is None else {"sample_weight": weights}))


def _write_outliers(answer: OutliersAnswer) -> None:
    write(answer.sentence)
    odd = sorted((row for row in answer.rows if row.is_outlier), key=lambda row: row.score)
    if odd:
        write()
        columns: dict[str, list[Any]] = {
            "row": [row.row for row in odd],
            "id": [row.name or "" for row in odd],
            "look like it": [row.effective_count for row in odd],
            # The columns that a reason names, without how many rows look like the row, which has a column of its own.
            "why": [str(row.reason).partition(": ")[2].rpartition(". ")[0] for row in odd],
        }
        write_table(columns, "" if "outliers" in answer.outputs else "; -o outliers.csv keeps them all")
        write()
    write_wrapped(answer.decisions[-1])
    write_end(answer.notes, answer.outputs)


# ------------------------------------------------------------------------------------------------------------ predict


def predict(args: Namespace) -> int:
    """``mosaic predict``."""
    check_outputs(args, "output")
    model = load(args.model)
    if hasattr(args, "n_jobs"):
        model.n_jobs = args.n_jobs
    with opened(args, lambda bar: _open_new_rows(model, args, bar)) as run:
        run.bar.update("looking at all rows")
        new, picks = model.explain_new(run.table), rows_of_model(model, args.model)
        known = np.unique(new.representative[new.representative >= 0])
        names = picks.names(known) if picks.has_names else [None] * len(known)
        called = zip(picks.numbers(known), names, strict=True)
        pick_of = {int(row): Row(int(number), name) for row, (number, name) in zip(known, called, strict=True)}
        everybody = np.arange(len(new))
        rows = [
            PlacedRow(number, name, pick_of.get(int(by)), finite(similarity), finite(error), bool(odd), float(count), why)
            for number, name, by, similarity, error, count, odd, why in zip(
                run.numbers(everybody), run.ids(everybody), *vars(new).values(), strict=True
            )
        ]  # fmt: skip
        table = _placed_table(rows)
        run.write_rows("rows", args.output, lambda: table)
    n_outliers, saved = int(new.is_outlier.sum()), model.selection_
    by = f", represented by {counted(len(pick_of), 'row')} of the model" if pick_of else ""
    outliers = counted(n_outliers, "outlier") if n_outliers else "no outliers"
    answer = PredictAnswer(
        run.file,
        f"{counted(len(new), 'new row')}{by}; {outliers}.",
        run.notes,
        run.outputs,
        Model(args.model, type(model).__name__, saved.n_rows, len(saved.rows)),
        n_outliers,
        rows,
    )
    return run.finish(answer, _write_placed, table)


def _open_new_rows(model: Any, args: Namespace, bar: ProgressBar) -> Any:
    """The file of new rows, read as that of the fit was: the same columns, in the same order, with the same rules."""
    kept = getattr(model, "kept_rows_", None)
    options = {} if kept is None else dict(kept.options)
    options |= {name: getattr(args, name) for name in NEW_ROWS if hasattr(args, name) and name != "n_jobs"}
    names = getattr(model, "feature_names_in_", None) if model.table_ is None else model.table_.names
    if "embeddings" in options:
        options.pop("embedding", None)
    elsewhere = "embedding" in options or "embeddings" in options
    if names is not None and not elsewhere:
        options["columns"] = [str(name) for name in names]
    plain = model.table_ is None and not elsewhere
    return read(args.file, **options, encoder=model.table_, numbers_only=plain, progress=bar.on_read)


def _placed_table(rows: list[PlacedRow]) -> Any:
    """One line for each row of the file."""
    kinds = {"reason": pa.string(), "similarity": pa.float64(), "representation_error": pa.float64()}
    picks = [row.representative for row in rows]
    columns: dict[str, Any] = {
        "row": [row.row for row in rows],
        "name": [row.name or str(row.row) for row in rows],
        "representative_row": pa.array([None if pick is None else pick.row for pick in picks], pa.int64()),
        "representative": pa.array([None if p is None else p.name or str(p.row) for p in picks], pa.string()),
    }
    for name in ("similarity", "representation_error", "is_outlier", "effective_count", "reason"):
        columns[name] = pa.array([getattr(row, name) for row in rows], kinds.get(name))
    return pa.table(columns)


def _write_placed(answer: PredictAnswer) -> None:
    """Write to a terminal: the sentence, the representatives by the number of new rows, and the oddest rows."""
    write_wrapped(answer.sentence)
    more = "" if answer.outputs else "; -o placed.csv keeps them all"
    stands_for = Counter(row.representative for row in answer.rows if row.representative is not None)
    if stands_for:
        picks = [pick for pick, _ in stands_for.most_common()]
        similarity = {
            pick: [row.similarity or 0.0 for row in answer.rows if row.representative == pick] for pick in picks[:MOST_ROWS]
        }
        columns: dict[str, list[Any]] = {
            "row of the model": [pick.row for pick in picks],
            "id": [pick.name or "" for pick in picks],
            "new rows": [stands_for[pick] for pick in picks],
            "mean similarity": [float(np.mean(similarity.get(pick, [0.0]))) for pick in picks],
        }
        write()
        write_table(columns, more)
    odd = sorted((row for row in answer.rows if row.is_outlier), key=lambda row: row.effective_count)
    if odd:
        columns = {
            "new row": [row.row for row in odd],
            "id": [row.name or "" for row in odd],
            "effective count": [row.effective_count for row in odd],
            "why it is an outlier": [row.reason or "" for row in odd],
        }
        write()
        write_table(columns, more)
    write_end(answer.notes, answer.outputs)


# ------------------------------------------------------------------------------------------------------------ explain


def explain(args: Namespace) -> int:
    """``mosaic explain``."""
    with opened_or_loaded(args) as (run, saved):
        rows = [run.table.find(name) for name in args.rows] + [run.row_of(number) for number in args.row]
        model = run.fit() if saved is None else saved
        decisions, explained = list(model.explain()), explain_model(model, rows, run.table)
        sentence = Facts(model, run.table).sentence
        answer = ExplainAnswer(run.file, sentence, run.notes, run.outputs, decisions, explained)

    def show(answer: ExplainAnswer) -> None:
        for line in [str(each) for each in answer.rows] or answer.decisions:
            write(visible(line))
        run.say_notes()

    return run.finish(answer, show)


# -------------------------------------------------------------------------------------------------- path and estimate


def path(args: Namespace) -> int:
    """``mosaic path``."""
    check_outputs(args, "output")
    most = args.max_representatives
    if most < 1:
        raise InvalidInputError("must be at least 1", parameter="max_representatives", value=most)
    with opened(args) as run:
        limit = max(most, MOST_AUTOMATIC)
        curve = mosaic.path(run.table, max_representatives=limit, fit_params=run.constraints(), **run.settings())
        rows = curve.indices[:most]
        points = [
            CurvePoint(number, name, k, float(similarity), float(coverage))
            for k, (number, name, similarity, coverage) in enumerate(
                zip(run.numbers(rows), run.ids(rows), curve.similarity, curve.coverage, strict=False), 1
            )
        ]
        names = ("k", "row", "name", "similarity", "coverage")
        kinds = {"name": pa.string()}
        table = pa.table({name: pa.array([getattr(p, name) for p in points], kinds.get(name)) for name in names})
        run.write_rows("curve", args.output, lambda: table)
    k = int(curve.suggested)
    covers = "representative, which covers" if k == 1 else "representatives, which cover"
    sentence = f"Suggested: {k} {covers} {100 * curve.coverage[k - 1]:.1f} % of {run.table.n:,} points."

    def show(answer: PathAnswer) -> None:
        write_wrapped(sentence)
        write()
        shown = [point for point in points if point.k in (1, 2, 5, 10, 20, 50, 100, k, len(points))]
        bars = ["█" * round(BAR_WIDTH * point.coverage) for point in shown]
        write_table({"k": [p.k for p in shown], "coverage": [f"{100 * p.coverage:.0f} %" for p in shown], "": bars}, "")
        write_end(answer.notes, answer.outputs)

    return run.finish(PathAnswer(run.file, sentence, run.notes, run.outputs, k, points), show, table)


def estimate(args: Namespace) -> int:
    """``mosaic estimate``."""
    with opened(args) as run:
        settings = {name: value for name, value in run.settings().items() if name != "verbose"}
        cost = mosaic.estimate(run.table, **settings)

    def show(answer: EstimateAnswer) -> None:
        write(answer.sentence)
        run.say_notes()

    return run.finish(EstimateAnswer(run.file, str(cost), run.notes, run.outputs, asdict(cost)), show)
