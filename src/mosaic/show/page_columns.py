"""Columns on the page: which ones it shows, their cells in lists, and of the points on the map, for colours and histograms."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import IntArray
from mosaic.choosing import counted
from mosaic.rows import Rows
from mosaic.rows.frames import MISSING_TEXTS
from mosaic.rows.tables import InMemory
from mosaic.text import shortened

#: Largest number of characters of a cell.
LONGEST_CELL = 200
#: Columns that are shown, unless more are at fault in outliers.
USUALLY_SHOWN = 12
#: Characters of all cells in lists, and of a cell that is shown in any case.
LETTERS = 300_000
SHORTEST_CELL = 16
#: Bytes of all data in the page, which keep a page below 1.5 MB: columns that take most are left out if it were more.
DATA_BYTES = 1_150_000
#: Significant digits of numbers, the fewer the smaller the columns; the first is that of cells in lists.
DIGITS = (6, 4, 3)

Columns: TypeAlias = dict[str, list[Any]]


def columns_of_rows(rows: Rows, numbers: IntArray, columns: Sequence[str] | None = None) -> Columns:
    """Columns as lists, without those of lists."""
    columns = rows.columns if columns is None else columns
    if not len(numbers) or not columns:
        return {}
    cells: Columns
    if isinstance(rows.table, InMemory):
        cells = rows.table.cells(columns).some(numbers).lists()
    else:
        cells = rows.cells(numbers, columns).to_pydict()
    return {name: values for name, values in cells.items() if list not in set(map(type, values))}


def columns_shown(
    cells: Columns, compared: Collection[str], at_fault: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """The columns that the page shows, and what it says about them: first those at fault, all of them as far as ``LETTERS``
    allow, then others that are compared, then those that are not.
    """

    def place(name: str) -> tuple[bool, int]:
        return name not in compared, at_fault.index(name) if name in at_fault else len(at_fault)

    n_listed = len(next(iter(cells.values()), []))
    room = LETTERS // (SHORTEST_CELL * max(n_listed, 1))
    shown = sorted(cells, key=place)[: max(USUALLY_SHOWN, min(len(at_fault), room))]
    left_out = ""
    if len(shown) < len(cells):
        left_out = f"This page and the files that it saves have {len(shown)} of {counted(len(cells), 'column')}"
        left_out += ", those at fault in outliers first." if at_fault else "."
    about = {
        "columns": list(map(shortened, shown)),
        "n_compared": len(set(compared).intersection(shown)),
        "places": [list(cells).index(name) for name in shown],
        "left_out": left_out,
    }
    return shown, about


def lines_of(cells: Columns, shown: Sequence[str], n: int) -> list[list[str]]:
    """The texts of the cells of each of n rows, shorter where they are many."""
    longest = int(np.clip(LETTERS / max(n * len(shown), 1), SHORTEST_CELL, LONGEST_CELL))
    texts = [_texts(cells[name], longest=longest) for name in shown]
    return [list(line) for line in zip(*texts, strict=True)] or [[] for _ in range(n)]


def map_columns(
    rows: Rows, numbers: IntArray, shown: list[str], others: dict[str, Any]
) -> list[dict[str, Any] | None]:
    """For each shown column its distinct texts, most frequent first, which of them are missing, and which each row has; None if
    it is left out. ``others`` are the other data of the page. A saved model may have kept cells of some rows only; then its page
    has columns of none.
    """
    kept = getattr(rows.table, "listed", None)
    if not shown or (kept is not None and not np.isin(numbers, kept).all()):
        return [None] * len(shown)
    cells = columns_of_rows(rows, numbers, shown)
    limit = max(DATA_BYTES - _deflated(others), 0)
    for digits in DIGITS:
        found: list[dict[str, Any] | None] = [
            _coded(_texts(cells[name], digits=digits)) for name in shown
        ]
        sizes = [_deflated(column) for column in found]
        if sum(sizes) <= limit:
            break
    while sum(sizes) > limit:
        largest = int(np.argmax(sizes))
        found[largest] = None
        sizes[largest] = 0
    return found


def _deflated(value: object) -> int:
    """Bytes of data in the page, which has base64 of its compressed JSON."""
    return 4 * len(zlib.compress(json.dumps(value).encode())) // 3


def _texts(values: list[Any], *, digits: int = DIGITS[0], longest: int = LONGEST_CELL) -> list[str]:
    if (
        set(map(type, values)) == {float} and np.abs(values).max() < 1e6
    ):  # at once, as most columns are of such numbers
        return [str(text) for text in np.char.mod(f"%.{digits}g", np.array(values))]
    return [_text(value, digits, longest) for value in values]


def _text(value: object, digits: int, longest: int) -> str:
    if value is None or value != value:  # missing, or not a number
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = float(f"{value:.{digits}g}") if digits < DIGITS[0] else value
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return shortened(value, longest)


def _coded(texts: list[str]) -> dict[str, Any]:
    """Distinct texts, most frequent first, and their places for each row, as base64 of little-endian numbers.

    Examples
    --------
    >>> _coded(["a", "b", "b", "n/a"])
    {'texts': ['b', 'a', 'n/a'], 'missing': [2], 'codes': 'AQAAAg==', 'bytes': 1}
    """
    place = {text: code for code, (text, _) in enumerate(Counter(texts).most_common())}
    missing = [code for text, code in place.items() if text in MISSING_TEXTS]
    size = 1 if len(place) <= 256 else 2
    codes = packed([place[text] for text in texts], f"u{size}")
    return {"texts": list(place), "missing": missing, "codes": codes, "bytes": size}


def packed(values: ArrayLike, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(f"<{kind}").tobytes()).decode()


def page_bytes(value: object) -> int:
    """Bytes that a text, or anything as JSON, takes in a page, where ``<`` is written with six characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode()) + 5 * text.count("<")
