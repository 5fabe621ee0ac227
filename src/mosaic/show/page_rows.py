"""How the page shows rows: names, cells of a table, pictures and groups, within the limits of the page size."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.frames import columns_as_lists, n_rows
from mosaic.rows.images import thumbnails

#: Largest number of characters of a shown name, of a saved name and of a cell, and of columns.
LONGEST_NAME, LONGEST_FULL_NAME, LONGEST_CELL, MOST_COLUMNS = 80, 500, 200, 12
#: Longer side of a picture in a list, in pixels.
PICTURE_SIDE = 96


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

    def cells(self, rows: IntArray, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        return {name: [self._columns[name][row] for row in rows.tolist()] for name in columns or self._columns}

    def pictures(self, rows: IntArray, side: int) -> list[bytes] | None:
        return None if self._images is None else thumbnails([self._images[row] for row in rows.tolist()], side)


class Cells(NamedTuple):
    """Columns as they are shown, the texts of each row, how many of the first are compared, and the place of each in the file."""

    columns: list[str]
    texts: list[list[str]]
    n_compared: int
    places: list[int]


def names_of(rows_of: Any, rows: IntArray) -> list[str] | None:
    """Names of rows, None if rows have only numbers."""
    return [shortened(name, LONGEST_FULL_NAME) for name in rows_of.names(rows)] if rows_of.has_names else None


def cells_of(rows_of: Any, rows: IntArray) -> Cells:
    """The text of each row's cells; columns that rows are compared by come first, otherwise in the order of the file."""
    columns: dict[str, list[Any]] = {}
    if len(rows):
        found = rows_of.cells(rows)
        columns = found if isinstance(found, dict) else found.to_pydict()
    columns.pop(rows_of.id_name or "", None)
    columns = {name: values for name, values in columns.items() if not [v for v in values if isinstance(v, list)]}
    compared = set(rows_of.feature_names or ()) & set(columns) or set(columns)
    order = sorted(columns, key=lambda name: name not in compared)[:MOST_COLUMNS]
    place = {name: i for i, name in enumerate(columns)}
    return Cells(
        [shortened(name, LONGEST_NAME) for name in order],
        [[_cell_text(columns[name][i]) for name in order] for i in range(len(rows))],
        sum(name in compared for name in order),
        [place[name] for name in order],
    )


def pictures_of(rows_of: Any, rows: IntArray, side: int = PICTURE_SIDE) -> list[str | None]:
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
    r"""Text on one line of limited length; the middle is left out, because names of files often differ at their ends.

    Examples
    --------
    >>> shortened("a very long name", 7), shortened("bad\udcffname", 40)
    ('a v…ame', 'bad?name')
    """
    line = " ".join(str(text).encode("utf-8", "replace").decode().split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[: longest - 1 - half]}…{line[-half:]}"


def _cell_text(value: Any) -> str:
    if value is None or value != value:  # missing, or not a number
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return shortened(value, LONGEST_CELL)


def within(texts: list[str | None], limit: int) -> list[str | None]:
    """The first texts that together take at most ``limit`` bytes of a page; None for the others.

    Examples
    --------
    >>> within(["123", None, "45678", "9"], 8)
    ['123', None, '45678', None]
    """
    sizes = np.cumsum([0 if text is None else page_bytes(text) for text in texts])
    return [text if size <= limit else None for text, size in zip(texts, sizes.tolist(), strict=True)]


def cells_within(cells: Cells, limit: int) -> Cells:
    """Cells that take at most ``limit`` bytes of a page: they are shortened first, then the last columns are dropped.

    Examples
    --------
    >>> cells_within(Cells(["a", "b"], [["12", "x" * 100]], 2, [0, 1]), 60).texts
    [['12', 'xxxxxxxxxxxxx…xxxxxxxxxxxx']]
    """
    longest = LONGEST_CELL
    while cells.columns and page_bytes(cells.texts) > limit:
        if longest > 16:
            longest = longest // 2 + 1
            cells = cells._replace(texts=[[shortened(cell, longest) for cell in row] for row in cells.texts])
        else:
            columns, texts, n_compared, places = cells
            cells = Cells(columns[:-1], [row[:-1] for row in texts], min(n_compared, len(columns) - 1), places[:-1])
    return cells


def page_bytes(value: Any) -> int:
    """Bytes that a text, or anything as JSON, takes in a page, where ``<`` is written with six characters.

    Examples
    --------
    >>> page_bytes("a<b"), page_bytes(["<"])
    (8, 10)
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode()) + 5 * text.count("<")
