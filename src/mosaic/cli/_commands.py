"""select, report and explain: what is done with a fitted selector."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from mosaic.cli._explanations import explanation_of
from mosaic.cli._faults import writing
from mosaic.cli._first_line import visible
from mosaic.cli._fitting import Work, check_outputs, opened
from mosaic.cli._output import (
    MOST_ROWS,
    left_out,
    write,
    write_csv,
    write_json,
    write_notes,
    write_table,
    write_wrapped,
)
from mosaic.cli._picks import labels_table, picks_table, settings_of, values_of
from mosaic.data import write_rows
from mosaic.inspection import Summary, summary
from mosaic.report import write_report

#: Outliers that a terminal is shown by name.
MOST_NAMED = 8


@dataclass(frozen=True)
class Answer:
    """All that is said about a selection, after the file is closed."""

    summary: Summary
    picks: Any
    numbers: list[int]
    names: list[str | None]
    columns: Any
    outliers: list[dict[str, Any]]
    file: dict[str, Any]
    notes: list[str]
    outputs: dict[str, str]

    @classmethod
    def of(cls, work: Work, model: Any, *, bound: bool) -> Answer:
        """What a fitted model says; with ``bound``, also how far it can be from the best, which takes another program."""
        if bound:
            work.bar.say("certificate")
        with work.using():
            found = summary(model, certificate=bound, parts=())
        rows = [pick.row for pick in found.representatives or []]
        lowest = found.outliers.lowest
        odd = [outlier.row for outlier in lowest]
        outliers = [
            {"row": row, "id": name, "effective_count": outlier.effective_count, "reason": outlier.reason}
            for row, name, outlier in zip(work.numbers(odd), work.names(odd), lowest, strict=True)
        ]
        columns = work.table.rows(rows)
        notes = work.notes
        if model.selection_.material.row_numbers is not None:
            notes.append(
                "Numbers of rows that picks stand for, and of outliers, are scaled up from a sample of the rows."
            )
        return cls(
            found,
            picks_table(work, found, columns),
            work.numbers(rows),
            work.names(rows),
            columns,
            outliers,
            work.file,
            notes,
            {},
        )

    def to_json(self, schema: str) -> dict[str, Any]:
        """As ``--json`` gives it."""
        summary = self.summary
        picks = [
            {
                "rank": pick.rank + 1,
                "row": row,
                "id": name,
                "stands_for": pick.stands_for,
                "effective_count": pick.effective_count,
                "is_outlier": pick.is_outlier,
                "reason": pick.reason,
                "values": values,
            }
            for pick, row, name, values in zip(
                summary.representatives or [], self.numbers, self.names, values_of(self.columns), strict=True
            )
        ]
        found = summary.outliers
        return {
            "schema": schema,
            "file": self.file,
            "sentence": summary.sentence,
            "n_representatives": summary.n_representatives,
            "coverage": summary.coverage,
            "picks": picks,
            "outliers": {
                "n": summary.n_outliers,
                "rule": found.rule,
                "count_threshold": found.threshold,
                "lowest": self.outliers,
            },
            "certificate": vars(summary.certificate),
            "settings": settings_of(summary),
            "notes": self.notes,
            "outputs": self.outputs,
        }

    def write(self) -> None:
        """For people."""
        write_wrapped(self.summary.sentence)
        write()
        self.write_picks()
        if self.outliers:
            write()
            write_wrapped(self._outliers_line())
        write()
        write_wrapped(self.summary.certificate.sentence)
        write_notes(self.notes)
        for what, path in self.outputs.items():
            write(f"{what}: {visible(path)}")

    def write_picks(self) -> None:
        """The first of them, and how to get the others."""
        picks = (self.summary.representatives or [])[:MOST_ROWS]
        rows = self.numbers
        named = any(name is not None for name in self.names)
        headers = ["rank", "row", *(["id"] if named else []), "stands for", "why"]
        cells = [
            [
                pick.rank + 1,
                rows[pick.rank],
                *([self.names[pick.rank]] if named else []),
                pick.stands_for,
                _why(pick.reason),
            ]
            for pick in picks
        ]
        write_table(headers, cells, numbers={0, 1, len(headers) - 2})
        more = len(rows) - len(picks)
        if more > 0:
            kept = "" if "picks" in self.outputs else "; -o picks.csv keeps them all"
            write(f"… and {more} more{kept}.")

    def _outliers_line(self) -> str:
        called = [
            f"row {each['row']}" if each["id"] is None else str(each["id"]) for each in self.outliers[:MOST_NAMED]
        ]
        n = self.summary.n_outliers
        more = f" and {n - len(called):,} more" if n > len(called) else ""
        return f"{n:,} {'outlier' if n == 1 else 'outliers'}, oddest first: {', '.join(called)}{more}."


def _why(reason: str) -> str:
    """What a reason says besides rank and number of rows, which the table has."""
    return reason.partition("; ")[2] or reason


def select(args: Namespace) -> int:
    """``mosaic select``."""
    check_outputs(args, "output", "report", "labels")
    readable = sys.stdout.isatty() and not args.json
    with opened(args) as work:
        model = work.fit()
        answer = Answer.of(work, model, bound=readable or args.json or args.report is not None)
        if args.output is not None:
            with writing(args.output):
                answer.notes.extend(left_out(write_rows(args.output, answer.picks, force=args.force)))
            answer.outputs["picks"] = args.output
        if args.labels is not None:
            work.bar.say("looking at all rows")
            with writing(args.labels):
                write_rows(args.labels, labels_table(work, model), force=args.force)
            answer.outputs["labels"] = args.labels
        if args.report is not None:
            _write_page(work, model, args.report)
            answer.outputs["report"] = args.report
    if args.json:
        write_json(answer.to_json("mosaic/select/1"))
    elif readable:
        answer.write()
    else:
        work.say_notes(answer.notes)
        if args.output is None:
            write_csv(answer.picks)
    return 0


def report(args: Namespace) -> int:
    """``mosaic report``."""
    check_outputs(args, "output")
    readable = sys.stdout.isatty() and not args.json
    with opened(args) as work:
        model = work.fit()
        answer = Answer.of(work, model, bound=True)
        _write_page(work, model, args.output)
        answer.outputs["report"] = args.output
    if args.json:
        write_json(answer.to_json("mosaic/report/1"))
    elif readable:
        answer.write()
    else:
        work.say_notes(answer.notes)
    return 0


def _write_page(work: Work, model: Any, path: str) -> None:
    work.bar.say("report")
    command = shlex.join(["mosaic", *work.args.words])
    with writing(path):
        write_report(model, path, table=work.table, title=work.args.title, command=command, force=work.args.force)


def explain(args: Namespace) -> int:
    """``mosaic explain``."""
    with opened(args) as work:
        rows = [work.table.find(name) for name in args.rows] + [work.row_of(number) for number in args.row or []]
        model = work.fit()
        settings = list(model.explain())
        told = [explanation_of(work, model, row) for row in rows]
        notes, file = work.notes, work.file
    if args.json:
        answer = {"schema": "mosaic/explain/1", "file": file, "settings": settings, "rows": told, "notes": notes}
        write_json(answer)
        return 0
    for line in [f"{each['called']}: {each['reason']}" for each in told] or settings:
        write(visible(line))
    work.say_notes()
    return 0
