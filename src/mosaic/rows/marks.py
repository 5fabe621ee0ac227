"""What a reader of a report marked as fine or wrong, and what that proves of the list of outliers."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from mosaic.arrays.blocks import IntArray
from mosaic.choosing.certificate import counted
from mosaic.exceptions import InvalidInputError
from mosaic.rows.rows import Rows
from mosaic.text import at_least, listed

TextArray: TypeAlias = NDArray[np.object_]

#: Columns of marks.csv that are read; it has those of the rows, too.
COLUMNS = ("row", "id", "mark", "status", "drawn")


def read_marks(marks: object, rows: Rows) -> dict[str, Any]:
    """The arguments of ``Constraints.read`` for what a page saved as marks.csv: the rows that are called fine, and sentences."""
    table = Rows.of(marks).table
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        fault = f"has no column {listed(missing)}"
        raise InvalidInputError(fault, "Save marks from a report.", parameter="marks")
    cells = {name: np.array(table.texts(name), object) for name in COLUMNS}
    strange = set(cells["mark"]) - {"fine", "wrong"}
    if strange:
        fault = f"has the mark {min(strange)!r}"
        raise InvalidInputError(fault, "A mark is fine or wrong.", parameter="marks")
    found = places(cells["row"], cells["id"], rows)
    is_there = (found >= 0) & (found < rows.n)
    if not is_there.any():
        remedy = "Give marks of a page about these rows: `id` is what a row is called, `row` its number if it has no name."
        raise InvalidInputError("has no row of the data", remedy, parameter="marks")
    there, times = np.unique(found[is_there], return_counts=True)
    if times.max() > 1:
        again = rows.names(there[times > 1])[0]
        raise InvalidInputError(f"has {again!r} twice", "Keep one line a row.", parameter="marks")
    fine = found[is_there & (cells["mark"] == "fine")]
    notes = [f"Marked as fine, and so no outliers: {counted(len(fine), 'row')}."]
    if not is_there.all():
        notes.append(f"Marked rows that are not in the data: {np.count_nonzero(~is_there):,}.")
    is_listed = cells["status"] == "outlier"
    if is_listed.any():
        notes.append(precision(cells["mark"][is_listed], cells["drawn"][is_listed]))
    return {"fine": np.sort(fine), "notes": tuple(notes)}


def places(numbers: TextArray, ids: TextArray, rows: Rows) -> IntArray:
    """Where rows are that are called so, or have these numbers if they have no names; −1 where no row, or no single one, is."""
    found = np.array([int(text) if text.isdecimal() else -1 for text in numbers], np.intp)
    names = rows.row_names()
    if names is None:
        return found
    called = [" ".join(name.split()) for name in names.names]  # as the page shows them
    times = Counter(called)
    place = {name: row for row, name in enumerate(called) if times[name] == 1}
    for mark, name in enumerate(" ".join(name.split()) for name in ids):
        is_so_called = 0 <= found[mark] < rows.n and called[found[mark]] == name
        if name and not is_so_called:
            found[mark] = place.get(name, -1)
    return found


def precision(marks: TextArray, drawn: TextArray) -> str:
    """What marked outliers say of their list: if x of m that were drawn at random are wrong, with 95 % confidence at least the
    share p of the list is, where x or more of m have the probability 5 %, I_p(x, m − x + 1) = 0.05. ``drawn`` is "30 of 129" for
    rows of the draw; unless all of it is marked, marks are no random draw, and only their numbers are told.
    """
    is_wrong = marks == "wrong"
    is_drawn = drawn != ""
    draw = re.fullmatch(r"(\d+) of (\d+)", "; ".join(set(drawn[is_drawn])))
    if draw is None or not int(draw[1]) == is_drawn.sum() <= int(draw[2]):
        told = f"Of {len(marks):,} marked outliers {is_wrong.sum():,} are wrong."
        return f"{told} They are no random draw, so this says nothing of the others."
    m, n = map(int, draw.groups())
    x = int(is_wrong[is_drawn].sum())
    if m == n:
        return f"All {n:,} outliers of the list are marked, {x:,} as wrong."
    share = float(betaincinv(x, m - x + 1, 0.05)) if x else 0.0
    told = f"Of {m:,} outliers that were drawn at random from the list of {n:,}, {x:,} are marked as wrong"
    return f"{told}: with 95 % confidence at least {at_least(share)} of the list are."
