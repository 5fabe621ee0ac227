"""predict: which representatives of a saved model stand for the rows of a file, and which of these are outliers."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from mosaic.choosing import counted
from mosaic.cli.answers import Model, PlacedRow, PredictAnswer, Row, write_answer
from mosaic.cli.faults import writing
from mosaic.cli.options import NEW_ROWS
from mosaic.cli.saved import rows_of
from mosaic.cli.session import Session, check_outputs, opened
from mosaic.cli.terminal import MOST_ROWS, ProgressBar, write, write_end, write_table, write_wrapped
from mosaic.estimators import load
from mosaic.rows import Rows, read, write_rows


def predict(args: Namespace) -> int:
    """``mosaic predict``."""
    check_outputs(args, "output")
    model = load(args.model)
    if hasattr(args, "n_jobs"):
        model.n_jobs = args.n_jobs
    with opened(args, lambda bar: open_new_rows(model, args, bar)) as session:
        session.bar.update("looking at all rows")
        new = model.explain_new(session.table)
        picks = rows_of(model, args.model)
        rows = np.unique(new.representative[new.representative >= 0])
        numbers, names = picks.numbers(rows), picks.names(rows) if picks.has_names else [None] * len(rows)
        pick_of = {int(row): Row(int(number), name) for row, number, name in zip(rows, numbers, names, strict=True)}
        table = _table(session, new, [pick_of.get(int(row)) for row in new.representative])
        outputs = {}
        if args.output is not None:
            with writing(args.output):
                write_rows(args.output, table, force=args.force, as_written=args.as_written)
            outputs["rows"] = args.output
        answer = PredictAnswer(
            file=session.file,
            model=Model(args.model, type(model).__name__, model.selection_.n_rows, len(model.selection_.rows)),  # type: ignore[arg-type]
            sentence=_sentence(new, len(pick_of)),
            n_outliers=int(new.is_outlier.sum()),
            rows=_rows(session, new, pick_of) if args.json or sys.stdout.isatty() else [],
            notes=session.notes,
            outputs=outputs,
        )
    if args.json:
        write_answer("predict", answer)
    elif sys.stdout.isatty():
        _write(answer)
    else:
        session.print_rows(table)
    return 0


def open_new_rows(model: Any, args: Namespace, bar: ProgressBar) -> Rows:
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
    return read(
        args.file,
        **options,
        encoder=model.table_,
        numbers_only=model.table_ is None and not elsewhere,
        progress=bar.on_read,
    )


def _sentence(new: Any, n_picks: int) -> str:
    odd = int(new.is_outlier.sum())
    outliers = "no outliers" if not odd else counted(odd, "outlier")
    by = f", represented by {counted(n_picks, 'row')} of the model" if n_picks else ""
    return f"{counted(len(new), 'new row')}{by}; {outliers}."


def _table(session: Session, new: Any, picks: list[Row | None]) -> Any:
    """One line for each row of the file."""
    everybody = np.arange(len(new))
    return pa.table(
        {
            "row": session.numbers(everybody),
            "name": session.table.names(everybody),
            "representative_row": pa.array([None if pick is None else pick.row for pick in picks], pa.int64()),
            "representative": pa.array(
                [None if pick is None else pick.id or str(pick.row) for pick in picks], pa.string()
            ),
            "similarity": pa.array(new.similarity, from_pandas=True),
            "representation_error": pa.array(new.representation_error, from_pandas=True),
            "is_outlier": new.is_outlier,
            "effective_count": new.effective_count,
            "reason": pa.array(new.reason, pa.string()),
        }
    )


def _rows(session: Session, new: Any, pick_of: dict[int, Row]) -> list[PlacedRow]:
    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return [
        PlacedRow(
            own.row,
            own.id,
            representative=pick_of.get(int(new.representative[i])),
            similarity=number(new.similarity[i]),
            representation_error=number(new.representation_error[i]),
            is_outlier=bool(new.is_outlier[i]),
            effective_count=float(new.effective_count[i]),
            reason=new.reason[i],
        )
        for i, own in enumerate(session.rows(np.arange(len(new))))
    ]


def _write(answer: PredictAnswer) -> None:
    """Write to a terminal: the sentence, the representatives by the number of new rows, and the oddest rows."""
    write_wrapped(answer.sentence)
    stands_for = Counter((row.representative.row, row.representative.id) for row in answer.rows if row.representative)
    if stands_for:
        similarity: dict[Any, list[float]] = {key: [] for key in stands_for}
        for row in answer.rows:
            if row.representative is not None and row.similarity is not None:
                similarity[row.representative.row, row.representative.id].append(row.similarity)
        named = any(name is not None for _, name in stands_for)
        headers = ["row of the model", *(["id"] if named else []), "new rows", "mean similarity"]
        cells = [
            [row, *([name] if named else []), number, f"{np.mean(similarity[row, name]):.3g}"]
            for (row, name), number in stands_for.most_common(MOST_ROWS)
        ]
        write()
        write_table(headers, cells, numbers={0, len(headers) - 2, len(headers) - 1})
        if len(stands_for) > MOST_ROWS:
            write(
                f"… and {len(stands_for) - MOST_ROWS:,} more{'' if answer.outputs else '; -o placed.csv keeps them all'}."
            )
    odd = sorted((row for row in answer.rows if row.is_outlier), key=lambda row: row.effective_count)
    if odd:
        named = any(row.id is not None for row in odd)
        headers = ["new row", *(["id"] if named else []), "effective count", "why it is an outlier"]
        cells = [
            [row.row, *([row.id] if named else []), f"{row.effective_count:.3g}", row.reason] for row in odd[:MOST_ROWS]
        ]
        write()
        write_table(headers, cells, numbers={0, len(headers) - 2})
        if len(odd) > MOST_ROWS:
            write(f"… and {len(odd) - MOST_ROWS:,} more{'' if answer.outputs else '; -o placed.csv keeps them all'}.")
    write_end(answer.notes, answer.outputs)
