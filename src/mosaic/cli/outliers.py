"""outliers: rows that few others look like."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.choosing.budget import budget_of
from mosaic.cli.answers import Certificate, JudgedRow, OutliersAnswer, write_answer
from mosaic.cli.faults import writing
from mosaic.cli.options import DETECTOR_SETTINGS
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
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, explain_rows
from mosaic.inspection import summary
from mosaic.rows import is_source, write_rows

#: Share of the memory budget up to which all rows are read into memory.
SHARE_FOR_ROWS = 0.25


def outliers(args: Namespace) -> int:
    """``mosaic outliers``."""
    check_outputs(args, "output", "report", "save")
    with opened(args) as session:
        model = _fit(session)
        session.bar.update("looking at all rows")
        counts, odd = np.asarray(model.effective_count_), np.asarray(model.is_outlier_)
        found = np.flatnonzero(odd)
        found = found[np.argsort(counts[found], kind="stable")]
        rows = np.arange(session.table.n) if args.all else found
        explained = explain_rows(model, found.tolist(), session.table)
        # A fit by passes says what became of an outlier, too; here nothing is rejected.
        reasons = {
            row: f"an outlier: {told.reason.partition(': ')[2]}"
            for row, told in zip(found.tolist(), explained, strict=True)
        }
        columns = session.table.cells(rows)
        judged = {
            "row": session.numbers(rows),
            "score": np.log(counts[rows]),
            "effective_count": counts[rows],
            "is_outlier": odd[rows],
            "reason": [reasons.get(int(row)) for row in rows],
        }
        table = with_columns(columns, {f"mosaic_{name}": values for name, values in judged.items()})
        judged["id"] = session.ids(rows)
        facts, outputs = summary(model, certificate=False, parts=()), {}
        if args.output is not None:
            with writing(args.output):
                session.notes.extend(
                    left_out(write_rows(args.output, table, force=args.force, as_written=args.as_written))
                )
            outputs["outliers"] = args.output
        if args.save is not None:
            session.save(model, args.save)
            outputs["model"] = args.save
        if args.report is not None:
            write_page(session, model, args.report, representatives=False)
            outputs["report"] = args.report
        if args.json:
            judged["values"] = values_of(columns)
    if args.json:
        by_row = zip(*judged.values(), strict=True)
        answer = OutliersAnswer(
            file=session.file,
            sentence=_sentence(len(found), session.table.n),
            n_outliers=len(found),
            rule=facts.outliers.rule,
            count_threshold=facts.outliers.threshold,
            estimator=facts.estimator,  # type: ignore[arg-type]
            rows=[JudgedRow(**dict(zip(judged, cells, strict=True))) for cells in by_row],
            certificate=Certificate(**vars(facts.certificate)),
            settings=settings_of(facts),
            notes=session.notes,
            outputs=outputs,
        )
        write_answer("outliers", answer)
    elif sys.stdout.isatty():
        write(_sentence(len(found), session.table.n))
        if len(found):
            _write_oddest(judged, named=session.table.has_names, is_kept=args.output is not None)
        for text in facts.settings["sentences"][-1:]:
            write_wrapped(text)
        write_end(session.notes, outputs)
    else:
        session.print_rows(table)
    return 0


def _fit(session: Session) -> Any:
    """Fit the detector, or, if the rows do not fit into memory, the selector, which finds outliers by passes."""
    X, weights = session.table.X, session.table.weights
    settings = session.settings(DETECTOR_SETTINGS)
    budget = budget_of(settings.get("memory_budget"))
    is_large = not sp.issparse(X) and weights is None and getattr(X, "nbytes", 0) > SHARE_FOR_ROWS * budget
    model: Any
    if is_source(X) or is_large:
        session.notes.append(
            f"{session.table.path.name} is too large to be taken into memory, so a sample of the rows decides below "
            "which count rows are outliers. A larger --memory-budget may change that."
        )
        if settings.pop("max_samples", None) is not None:
            session.notes.append("--max-samples is for data in memory; it was not used.")
        model = MOSAIC(algorithm="sketch", **settings)
    else:
        model = MOSAICOutlierDetector(**settings)
    model.fit(session.table, **({} if weights is None else {"sample_weight": weights}))
    return model


def _sentence(n: int, of: int) -> str:
    found = "No outliers" if n == 0 else f"{n:,} {'outlier' if n == 1 else 'outliers'}"
    return f"{found} among {of:,} {'point' if of == 1 else 'points'}."


def _in_columns(reason: str) -> str:
    """The columns that a reason names, without how many rows look like the row, which has a column of its own.

    Examples
    --------
    >>> _in_columns("age 999, usual 19 to 88. No other row looks like it; the threshold is 1.35.")
    'age 999, usual 19 to 88'
    >>> _in_columns("no other row looks like it; the threshold is 1.35.")
    ''
    """
    return reason.rpartition(". ")[0]


def _write_oddest(judged: dict[str, Any], *, named: bool, is_kept: bool) -> None:
    """Write a table of the outliers with the lowest scores, lowest first."""
    odd = [i for i in np.argsort(judged["score"], kind="stable").tolist() if judged["is_outlier"][i]]
    why = [_in_columns(str(judged["reason"][i]).partition(": ")[2]) for i in odd[:MOST_ROWS]]
    has_columns = any(why)
    headers = ["row", *(["id"] if named else []), "look like it", *(["why"] if has_columns else [])]
    cells = [
        [
            judged["row"][i],
            *([judged["id"][i]] if named else []),
            f"{judged['effective_count'][i]:.3g}",
            *([reason] if has_columns else []),
        ]
        for i, reason in zip(odd, why, strict=False)
    ]
    write()
    write_table(headers, cells, numbers={0, headers.index("look like it")})
    if len(odd) > MOST_ROWS:
        write(f"… and {len(odd) - MOST_ROWS:,} more{'' if is_kept else '; -o outliers.csv keeps them all'}.")
    write()
