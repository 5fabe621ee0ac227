"""select: representatives of a file as rows, as JSON, as text, as a page and as a saved model."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np
import pyarrow as pa

from mosaic.cli.answers import Certificate, Outlier, Outliers, Pick, SelectAnswer, write_answer
from mosaic.cli.faults import writing
from mosaic.cli.session import (
    Session,
    check_outputs,
    left_out,
    opened,
    settings_of,
    values_of,
    with_columns,
    write_page,
)
from mosaic.cli.terminal import MOST_ROWS, write, write_end, write_table, write_wrapped
from mosaic.inspection import summary
from mosaic.rows import write_rows

#: Number of outliers whose names a terminal shows.
MOST_NAMED = 8
UNPROVEN = "The certificate takes more passes over the rows; --report and --save make them."
SCALED = "Numbers of represented rows and of outliers are scaled up from a sample of the rows."


def select(args: Namespace) -> int:
    """``mosaic select``."""
    check_outputs(args, "output", "report", "labels", "save")
    readable = sys.stdout.isatty() and not args.json
    with opened(args) as session:
        model = session.fit()
        bound = args.report is not None or args.save is not None  # a saved model keeps its certificate
        if not bound and (readable or args.json):
            bound = not model.selection_.takes_passes
            session.notes.extend([] if bound else [UNPROVEN])
        answer, picks = answer_of(session, model, bound=bound)
        if args.output is not None:
            with writing(args.output):
                session.notes.extend(
                    left_out(write_rows(args.output, picks, force=args.force, as_written=args.as_written))
                )
            answer.outputs["picks"] = args.output
        if args.labels is not None:
            session.bar.update("looking at all rows")
            with writing(args.labels):
                write_rows(args.labels, _labels_table(session, model), force=args.force, as_written=args.as_written)
            answer.outputs["labels"] = args.labels
        if args.report is not None:
            write_page(session, model, args.report)
            answer.outputs["report"] = args.report
        if args.save is not None:
            session.save(model, args.save)
            answer.outputs["model"] = args.save
    if args.json:
        write_answer("select", answer)
    elif readable:
        write_selected(answer)
    else:
        session.print_rows(picks)
    return 0


def answer_of(session: Session, model: Any, *, bound: bool) -> tuple[SelectAnswer, Any]:
    """The answer of a fitted model, and the table of its picks.

    With ``bound`` the answer has the certificate, which solves one more program.
    """
    if bound:
        session.bar.update("certificate")
    facts = summary(model, certificate=bound, parts=())
    if facts.scaled:
        session.notes.append(SCALED)
    chosen, odd = facts.representatives or [], facts.outliers.lowest
    columns = session.table.cells([each.row for each in chosen])
    picks = [
        Pick(
            row.row,
            row.id,
            rank=each.rank + 1,
            stands_for=each.stands_for,
            effective_count=each.effective_count,
            is_outlier=each.is_outlier,
            reason=each.reason,
            values=values,
        )
        for each, row, values in zip(
            chosen, session.rows([each.row for each in chosen]), values_of(columns), strict=True
        )
    ]
    lowest = [
        Outlier(row.row, row.id, each.effective_count, each.reason)
        for each, row in zip(odd, session.rows([each.row for each in odd]), strict=True)
    ]
    answer = SelectAnswer(
        file=session.file,
        sentence=facts.sentence,
        n_representatives=len(picks),
        coverage=facts.coverage or 0.0,
        picks=picks,
        outliers=Outliers(facts.n_outliers, facts.outliers.rule, facts.outliers.threshold, lowest),
        certificate=Certificate(**vars(facts.certificate)),
        settings=settings_of(facts),
        notes=session.notes,
        outputs={},
    )
    added = ("rank", "row", "stands_for", "effective_count", "reason")
    return answer, with_columns(columns, {f"mosaic_{name}": [getattr(p, name) for p in picks] for name in added})


def _labels_table(session: Session, model: Any) -> Any:
    """The table of every row with its representative; null for outliers that were set aside."""
    everybody, picks = np.arange(session.table.n), model.representative_indices_
    labels = np.asarray(model.labels_)
    without = labels < 0
    names = np.array(session.table.names(picks), dtype=object)
    return pa.table(
        {
            "row": session.numbers(everybody),
            "name": session.table.names(everybody),
            "representative_row": pa.array(np.array(session.numbers(picks))[labels], mask=without),
            "representative": pa.array(names[labels], pa.string(), mask=without),
            "is_outlier": np.asarray(model.is_outlier_),
            "effective_count": np.asarray(model.effective_count_, np.float64),
        }
    )


def write_selected(answer: SelectAnswer) -> None:
    """Write to a terminal: the sentence, the first picks, the lowest outliers, the certificate, notes and files."""
    write_wrapped(answer.sentence)
    write()
    named = any(pick.id is not None for pick in answer.picks)
    headers = ["rank", "row", *(["id"] if named else []), "stands for", "why"]
    # A reason begins with rank and number of rows, which have their own columns.
    cells = [
        [
            each.rank,
            each.row,
            *([each.id] if named else []),
            each.stands_for,
            each.reason.partition("; ")[2] or each.reason,
        ]
        for each in answer.picks[:MOST_ROWS]
    ]
    write_table(headers, cells, numbers={0, 1, len(headers) - 2})
    more = len(answer.picks) - len(cells)
    if more > 0:
        write(f"… and {more} more{'' if 'picks' in answer.outputs else '; -o picks.csv keeps them all'}.")
    n = answer.outliers.n
    called = [f"row {each.row}" if each.id is None else each.id for each in answer.outliers.lowest[:MOST_NAMED]]
    if called:
        others = f" and {n - len(called):,} more" if n > len(called) else ""
        write()
        write_wrapped(f"{n:,} {'outlier' if n == 1 else 'outliers'}, oddest first: {', '.join(called)}{others}.")
    write()
    write_wrapped(answer.certificate.sentence)
    write_end(answer.notes, answer.outputs)
