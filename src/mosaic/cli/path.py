"""path and estimate: how many rows to choose, and the memory and passes of select."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from dataclasses import asdict

import mosaic
from mosaic.choosing import MOST_AUTOMATIC
from mosaic.cli.answers import CurvePoint, EstimateAnswer, PathAnswer, write_answer
from mosaic.cli.faults import writing
from mosaic.cli.session import check_outputs, opened
from mosaic.cli.terminal import width, write, write_end, write_wrapped
from mosaic.exceptions import InvalidInputError
from mosaic.rows import write_rows

#: Lines of the chart, and its largest number of columns.
CHART_HEIGHT, CHART_WIDTH = 10, 72


def path(args: Namespace) -> int:
    """``mosaic path``."""
    import pyarrow as pa

    check_outputs(args, "output")
    most = args.max_representatives
    if most < 1:
        raise InvalidInputError("must be at least 1", parameter="max_representatives", value=most)
    with opened(args) as session:
        curve = mosaic.path(
            session.table,
            max_representatives=max(most, MOST_AUTOMATIC),
            fit_params=session.constraints(),
            **session.settings(),
        )
        rows = curve.indices[:most]
        points = [
            CurvePoint(row.row, row.id, k, float(similarity), float(coverage))
            for k, (row, similarity, coverage) in enumerate(
                zip(session.rows(rows), curve.similarity, curve.coverage, strict=False), 1
            )
        ]
        names = ("k", "row", "id", "similarity", "coverage")
        table = pa.table(
            {
                name: pa.array([getattr(each, name) for each in points], pa.string() if name == "id" else None)
                for name in names
            }
        )
        if args.output is not None:
            with writing(args.output):
                write_rows(args.output, table, force=args.force)
    k, n = int(curve.suggested), session.table.n
    sentence = (
        f"Suggested: {k} {'representative, which covers' if k == 1 else 'representatives, which cover'} "
        f"{100 * curve.coverage[k - 1]:.1f} % of {n:,} points."
    )
    outputs = {} if args.output is None else {"curve": args.output}
    if args.json:
        write_answer("path", PathAnswer(session.file, sentence, k, points, session.notes, outputs))
    elif sys.stdout.isatty():
        write_wrapped(sentence)
        write()
        for line in chart([point.coverage for point in points], k, min(width(), CHART_WIDTH)):
            write(line)
        write_end(session.notes, outputs)
    else:
        session.print_rows(table)
    return 0


def chart(coverage: list[float], suggested: int, columns: int) -> list[str]:
    """A curve of shares over 1, 2, 3, … as text; the column of the suggested number is drawn in another character.

    Examples
    --------
    >>> for line in chart([0.5, 0.75, 1.0], 2, 60)[-3:]:
    ...     print(line)
      10 %  ██ ▓▓ ██
           +--------
           1       3  representatives; 2 are suggested
    """
    n = len(coverage)
    room = max(columns - 8, 10)
    each = max(1, min(3, room // n))  # columns for one k
    step = max(1, math.ceil(n / room))  # or this many k in a column
    places = list(range(0, n, step))
    lines = []
    for level in range(CHART_HEIGHT, 0, -1):
        cells = ""
        for place in places:
            full = coverage[min(place + step, n) - 1] >= (level - 0.5) / CHART_HEIGHT
            sign = ("▓" if full else "·") if place < suggested <= place + step else ("█" if full else " ")
            cells += sign * (each - 1) + " " if each > 1 else sign
        lines.append(f"{100 * level // CHART_HEIGHT:>4} %  {cells}".rstrip())
    extent = len(places) * each
    lines.append(f"       +{'-' * max(extent - 1, 1)}")
    lines.append(f"       1{str(n).rjust(max(extent - 1, 2))}  representatives; {suggested} are suggested")
    return lines


def estimate(args: Namespace) -> int:
    """``mosaic estimate``."""
    with opened(args) as session:
        settings = {name: value for name, value in session.settings().items() if name != "verbose"}
        cost = mosaic.estimate(session.table, **settings)
    if args.json:
        write_answer("estimate", EstimateAnswer(session.file, str(cost), notes=session.notes, **asdict(cost)))
        return 0
    write(str(cost))
    session.say_notes()
    return 0
