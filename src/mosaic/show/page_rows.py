"""How the page shows rows: names, cells of a table and pictures, within the limits of the page size."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.frames import columns_as_lists, n_rows
from mosaic.rows.images import thumbnails

#: Largest number of characters of a shown name, of a saved name and of a cell, of columns, and of characters of all cells.
LONGEST_NAME, LONGEST_FULL_NAME, LONGEST_CELL, MOST_COLUMNS, ALL_CELLS = 80, 500, 200, 12, 300_000


class GivenRows:
    """Names, columns, pictures and groups that were given beside a fit, asked for as those of an open table are."""

    path: Path | None = None
    kind: str | None = None
    notes: Sequence[str] = ()

    def __init__(self, n: int, names: Any, columns: Any, images: Any, groups: Any, compared: Sequence[str] | None):
        self._columns = {} if columns is None else columns_as_lists(columns)
        given = [("names", names), ("images", images), ("groups", groups)]
        for parameter, values in [*given, *(("columns", values) for values in self._columns.values())]:
            if values is not None and n_rows(values) != n:
                raise InvalidInputError(
                    f"must have one entry for each of {n} rows; got {n_rows(values)}",
                    "Give one for each row of the fitted data, in their order.",
                    parameter=parameter,
                )
        self._names, self._images = None if names is None else list(names), images
        self.has_names, self.feature_names, self.id_name = names is not None, compared, None
        self.groups, self.group_name = None if groups is None else list(groups), getattr(groups, "name", None)

    def numbers(self, rows: IntArray) -> IntArray:
        return rows

    def names(self, rows: IntArray) -> list[Any]:
        found = [(row, self._names[row]) for row in rows.tolist()] if self._names is not None else []
        return [row if name is None or name != name else name for row, name in found]  # NaN is no name

    def cells(self, rows: IntArray) -> dict[str, list[Any]]:
        return {name: [values[row] for row in rows.tolist()] for name, values in self._columns.items()}

    def pictures(self, rows: IntArray, side: int) -> list[bytes] | None:
        return None if self._images is None else thumbnails([self._images[row] for row in rows.tolist()], side)


def names_of(rows_of: Any, rows: IntArray, longest: int = LONGEST_NAME) -> list[str | None]:
    """Names of rows, None if they have only numbers."""
    return [shortened(name, longest) for name in rows_of.names(rows)] if rows_of.has_names else [None] * len(rows)


def cells_of(rows_of: Any, rows: IntArray) -> tuple[dict[str, Any], list[list[str]]]:
    """Columns, those that rows are compared by first, with their places in the file, and the text of each row's cells."""
    columns: dict[str, list[Any]] = {}
    if len(rows):
        found = rows_of.cells(rows)
        columns = found if isinstance(found, dict) else found.to_pydict()
    columns.pop(rows_of.id_name or "", None)
    columns = {name: values for name, values in columns.items() if list not in set(map(type, values))}
    compared = set(rows_of.feature_names or ()) & set(columns) or set(columns)
    order = sorted(columns, key=lambda name: name not in compared)[:MOST_COLUMNS]
    longest = int(np.clip(ALL_CELLS / max(len(rows) * len(order), 1), 16, LONGEST_CELL))
    texts = [_texts(columns[name], longest) for name in order]
    about = {
        "columns": [shortened(name, LONGEST_NAME) for name in order],
        "n_compared": len(compared.intersection(order)),
        "places": [list(columns).index(name) for name in order],
    }
    return about, [list(cells) for cells in zip(*texts, strict=True)] or [[] for _ in rows]


def _texts(values: list[Any], longest: int) -> list[str]:
    """Cells of a column; empty where they are missing or not a number."""
    told = []
    for value in values:
        if value is None or value != value:
            told.append("")
        elif isinstance(value, float):
            told.append(str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}")
        else:
            told.append(shortened(value, longest))
    return told


def pictures_of(rows_of: Any, rows: IntArray, side: int) -> list[str | None]:
    """A picture for each row, as a data URI of PNG or JPEG bytes."""
    found = rows_of.pictures(rows, side) if len(rows) else None
    if found is None:
        return [None] * len(rows)
    kinds = ["jpeg" if picture and picture.startswith(b"\xff\xd8") else "png" for picture in found]
    return [
        None if picture is None else f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
        for picture, kind in zip(found, kinds, strict=True)
    ]


def shortened(text: Any, longest: int) -> str:
    """Valid text on one line of limited length; the middle is left out, because names of files often differ at their ends."""
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[: longest - 1 - half]}…{line[-half:]}"


def within(texts: list[str | None], limit: int) -> list[str | None]:
    """The first texts that together take at most ``limit`` bytes of a page; None for the others."""
    sizes = np.cumsum([0 if text is None else page_bytes(text) for text in texts])
    return [text if size <= limit else None for text, size in zip(texts, sizes.tolist(), strict=True)]


def page_bytes(value: Any) -> int:
    """Bytes that a text, or anything as JSON, takes in a page, where ``<`` is written with six characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode()) + 5 * text.count("<")
