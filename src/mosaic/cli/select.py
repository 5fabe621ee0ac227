"""select and report: representatives of a file as rows, as JSON, as text, as a page and as a saved model."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np
import pyarrow as pa

from mosaic.choosing.explain import PICK_COLUMNS
from mosaic.cli.answers import Pick, SelectAnswer
from mosaic.cli.run import Run, check_outputs, opened, opened_or_loaded, values_of, with_columns
from mosaic.cli.terminal import write, write_end, write_table, write_wrapped
from mosaic.facts import Facts

#: Number of outliers whose names a terminal shows.
MOST_NAMED = 8
UNPROVEN = "The certificate takes more passes over the rows; --report and --save make them."
SCALED = "Numbers of represented rows and of outliers are scaled up from a sample of the rows."


def select(args: Namespace) -> int:
    """``mosaic select``."""
    check_outputs(args, "output", "report", "labels", "save")
    with opened(args) as run:
        model = run.fit()
        bound = args.report is not None or args.save is not None  # a saved model keeps its certificate
        if not bound and (args.json or sys.stdout.isatty()):
            bound = not model.selection_.material.proof.by_passes
            run.notes.extend([] if bound else [UNPROVEN])
        facts = Facts(model, run.table)
        answer, picks = answer_of(run, facts, bound=bound)
        run.write_rows("picks", args.output, lambda: picks)
        run.write_rows("labels", args.labels, lambda: _labels_table(run, model))
        run.write_page(facts, args.report)
        run.save(model, args.save)
    return run.finish(answer, write_selected, picks)


def report(args: Namespace) -> int:
    """``mosaic report``."""
    check_outputs(args, "output")
    with opened_or_loaded(args) as (run, saved):
        facts = Facts(run.fit() if saved is None else saved, run.table)
        answer, _ = answer_of(run, facts, bound=True)
        run.write_page(facts, args.output)
    if not args.json and not sys.stdout.isatty():
        run.say_notes()
        return 0
    return run.finish(answer, write_selected)


def answer_of(run: Run, facts: Facts, *, bound: bool) -> tuple[SelectAnswer, Any]:
    """The answer of a fitted model, and the table of its picks; with ``bound``, which solves one more program."""
    if bound:
        run.bar.update("certificate")
    certificate = facts.certificate if bound and not facts.detects else facts.known_certificate
    if facts.scaled:
        run.notes.append(SCALED)
    columns = run.table.cells([] if facts.detects else facts.selection.rows)
    answer = SelectAnswer(
        run.file,
        facts.sentence,
        run.notes,
        run.outputs,
        facts.coverage,
        [Pick(**vars(pick), values=values) for pick, values in zip(facts.picks, values_of(columns), strict=True)],
        facts.outliers,
        certificate,
        list(facts.decisions),
        facts.settings,
    )
    added = {f"mosaic_{name}": [getattr(pick, name) for pick in facts.picks] for name in PICK_COLUMNS}
    return answer, with_columns(columns, added)


def _labels_table(run: Run, model: Any) -> Any:
    """The table of every row with its representative; null for outliers that were set aside."""
    run.bar.update("looking at all rows")
    everybody, picks = np.arange(run.table.n), model.selection_.rows
    labels = np.asarray(model.labels_)
    without = labels < 0
    names = np.array(run.table.names(picks), dtype=object)
    return pa.table(
        {
            "row": run.numbers(everybody),
            "name": run.table.names(everybody),
            "representative_row": pa.array(np.array(run.numbers(picks))[labels], mask=without),
            "representative": pa.array(names[labels], pa.string(), mask=without),
            "is_outlier": np.asarray(model.is_outlier_),
            "effective_count": np.asarray(model.effective_count_, np.float64),
        }
    )


def write_selected(answer: SelectAnswer) -> None:
    """Write to a terminal: the sentence, the first picks, the lowest outliers, the certificate, notes and files."""
    write_wrapped(answer.sentence)
    write()
    if answer.picks:
        # A reason begins with rank and number of rows, which have their own columns.
        columns: dict[str, list[Any]] = {
            "rank": [pick.rank for pick in answer.picks],
            "row": [pick.row for pick in answer.picks],
            "id": [pick.name or "" for pick in answer.picks],
            "stands for": [pick.stands_for for pick in answer.picks],
            "why": [pick.reason.partition("; ")[2] or pick.reason for pick in answer.picks],
        }
        write_table(columns, "" if "picks" in answer.outputs else "; -o picks.csv keeps them all")
    n = answer.outliers.n
    called = [one.name or f"row {one.row}" for one in answer.outliers.lowest[:MOST_NAMED]]
    if called:
        others = f" and {n - len(called):,} more" if n > len(called) else ""
        write()
        write_wrapped(f"{n:,} {'outlier' if n == 1 else 'outliers'}, oddest first: {', '.join(called)}{others}.")
    write()
    write_wrapped(answer.certificate.sentence)
    write_end(answer.notes, answer.outputs)
