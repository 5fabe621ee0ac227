"""Cells of the points on the map, column by column: for what a clicked point has, for colours, and for histograms."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.show.page_facts import LONGEST_CELL, LONGEST_NAME, packed, shortened

#: Bytes of all data in the page, which keep a page below 1.5 MB: columns that take most are left out if it were more.
DATA_BYTES = 1_150_000
#: Significant digits of numbers, the fewer the smaller the columns; the first is that of cells in lists.
DIGITS = (6, 4, 3)


def map_columns(rows_of: Any, rows: IntArray, shown: list[str], others: dict[str, Any]) -> list[dict[str, Any] | None]:
    """For each shown column its distinct texts, most frequent first, and which of them each row has; None if it is left out.

    ``rows_of`` is an open file, or ``GivenRows``; ``shown`` are the columns as the page calls them, ``others`` the other data of
    the page. A saved model may have kept cells of some rows only; then its page has columns of none.
    """
    kept = getattr(getattr(rows_of, "table", None), "listed", None)
    if not shown or (kept is not None and not np.isin(rows, kept).all()):
        return [None] * len(shown)
    names = {shortened(name, LONGEST_NAME): name for name in _lists(rows_of.cells(rows[:0]))}
    columns = list(_lists(rows_of.cells(rows, [names[name] for name in shown])).values())
    limit = max(DATA_BYTES - _deflated(others), 0)
    for digits in DIGITS:
        found: list[dict[str, Any] | None] = [_coded(_texts(values, digits)) for values in columns]
        sizes = [_deflated(column) for column in found]
        if sum(sizes) <= limit:
            break
    while sum(sizes) > limit:
        largest = int(np.argmax(sizes))
        found[largest], sizes[largest] = None, 0
    return found


def _deflated(value: Any) -> int:
    """Bytes of data in the page, which has base64 of its compressed JSON."""
    return 4 * len(zlib.compress(json.dumps(value).encode())) // 3


def _lists(cells: Any) -> dict[str, list[Any]]:
    """Columns as lists, of a mapping or of a ``pyarrow.Table``."""
    return cells if isinstance(cells, dict) else cells.to_pydict()


def _texts(values: list[Any], digits: int) -> list[str]:
    if set(map(type, values)) == {float} and np.abs(values).max() < 1e6:  # at once, as most columns are of such numbers
        return [str(text) for text in np.char.mod(f"%.{digits}g", np.array(values))]
    return [_text(value, digits) for value in values]


def _text(value: Any, digits: int) -> str:
    if value is None or value != value:  # missing, or not a number
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = float(f"{value:.{digits}g}") if digits < DIGITS[0] else value
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return shortened(value, LONGEST_CELL)


def _coded(texts: list[str]) -> dict[str, Any]:
    """Distinct texts, most frequent first, and their places for each row, as base64 of little-endian numbers.

    Examples
    --------
    >>> _coded(["a", "b", "b"])
    {'texts': ['b', 'a'], 'codes': 'AQAA', 'bytes': 1}
    """
    values, codes, counts = np.unique(np.array(texts, object), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    size = 1 if len(order) <= 256 else 2
    return {"texts": values[order].tolist(), "codes": packed(place[codes], f"u{size}"), "bytes": size}
