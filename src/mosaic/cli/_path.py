"""path and estimate: what one asks before choosing."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from dataclasses import asdict
from typing import Any

import mosaic
from mosaic.choosing import MOST_AUTOMATIC
from mosaic.cli._constraints import constraints_of
from mosaic.cli._faults import writing
from mosaic.cli._first_line import visible
from mosaic.cli._fitting import check_outputs, opened
from mosaic.cli._options import SETTINGS
from mosaic.cli._output import width, write, write_csv, write_json, write_notes, write_wrapped
from mosaic.data import write_rows
from mosaic.exceptions import InvalidInputError

#: Lines and, at most, columns of the chart.
CHART_HEIGHT, CHART_WIDTH = 10, 72


def path(args: Namespace) -> int:
    """``mosaic path``."""
    import pyarrow as pa

    check_outputs(args, "output")
    most = args.max_representatives
    if most < 1:
        raise InvalidInputError(f"--max-representatives must be at least 1; got {most}.")
    with opened(args) as work:
        constraints = constraints_of(work)
        numbered = ("n_representatives", "coverage", "min_support")
        settings = work.settings(tuple(name for name in SETTINGS if name not in numbered))
        with work.using():
            curve = mosaic.path(
                work.table.X, max_representatives=max(most, MOST_AUTOMATIC), fit_params=constraints, **settings
            )
        rows = curve.indices[:most]
        columns: dict[str, list[Any]] = {
            "k": list(range(1, len(rows) + 1)),
            "row": work.numbers(rows),
            "id": work.names(rows),
            "similarity": curve.similarity[:most].tolist(),
            "coverage": curve.coverage[:most].tolist(),
        }
        table = pa.table({**columns, "id": pa.array(columns["id"], pa.string())})
        if args.output is not None:
            with writing(args.output):
                write_rows(args.output, table, force=args.force)
    # The knee is that of the longer curve, where n_representatives="auto" looks for it.
    k = int(curve.knee)
    sentence = (
        f"The knee is at {k}: {k} {'representative covers' if k == 1 else 'representatives cover'} "
        f"{100 * curve.coverage[k - 1]:.1f} % of {work.table.n:,} points, and more of them add little."
    )
    if args.json:
        points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        outputs = {} if args.output is None else {"curve": args.output}
        answer = {"schema": "mosaic/path/1", "file": work.file, "sentence": sentence, "knee": k, "curve": points}
        write_json({**answer, "notes": work.notes, "outputs": outputs})
    elif sys.stdout.isatty():
        write_wrapped(sentence)
        write()
        for line in chart(columns["coverage"], k, min(width(), CHART_WIDTH)):
            write(line)
        write_notes(work.notes)
        if args.output is not None:
            write(f"curve: {visible(args.output)}")
    else:
        work.say_notes()
        if args.output is None:
            write_csv(table)
    return 0


def chart(coverage: list[float], knee: int, columns: int) -> list[str]:
    """A curve of shares over 1, 2, 3, … as text; the column of the knee is drawn with another sign.

    Examples
    --------
    >>> for line in chart([0.5, 0.75, 1.0], 2, 60)[-3:]:
    ...     print(line)
      10 %  ██ ▓▓ ██
           +--------
           1       3  representatives; knee at 2
    """
    n = len(coverage)
    room = max(columns - 8, 10)
    each = max(1, min(3, room // n))  # columns for one k
    step = max(1, math.ceil(n / room))  # or so many k in a column
    places = list(range(0, n, step))
    lines = []
    for level in range(CHART_HEIGHT, 0, -1):
        floor = (level - 0.5) / CHART_HEIGHT
        cells = ""
        for place in places:
            full = coverage[min(place + step, n) - 1] >= floor
            cells += _cell(full, place < knee <= place + step, each)
        lines.append(f"{100 * level // CHART_HEIGHT:>4} %  {cells}".rstrip())
    extent = len(places) * each
    lines.append(f"       +{'-' * max(extent - 1, 1)}")
    lines.append(f"       1{str(n).rjust(max(extent - 1, 2))}  representatives; knee at {knee}")
    return lines


def _cell(full: bool, is_knee: bool, columns: int) -> str:
    sign = ("▓" if full else "·") if is_knee else ("█" if full else " ")
    return sign * (columns - 1) + " " if columns > 1 else sign


def estimate(args: Namespace) -> int:
    """``mosaic estimate``."""
    with opened(args) as work:
        settings = {name: value for name, value in work.settings().items() if name != "verbose"}
        with work.using():
            cost = mosaic.estimate(work.table.X, **settings)
    if args.json:
        facts = asdict(cost)
        answer = {"schema": "mosaic/estimate/1", "file": work.file, "sentence": str(cost), **facts, "notes": work.notes}
        write_json(answer)
        return 0
    write(str(cost))
    work.say_notes()
    return 0
