"""How the page shows rows: names, cells of a table, pictures and groups, within the limits of the page size."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mosaic._frames import columns_as_lists, n_rows
from mosaic.arrays.blocks import IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.rows.images import thumbnails

#: Largest number of characters of a shown name, of a saved name and of a cell, and of columns.
LONGEST_NAME, LONGEST_FULL_NAME, LONGEST_CELL, MOST_COLUMNS = 80, 500, 200, 12
#: Longer side of a picture in a list, in pixels.
PICTURE_SIDE = 96


class Cells(NamedTuple):
    """Columns as they are shown, the texts of each row, how many of the first are compared, and the place of each in the file."""

    columns: list[str]
    texts: list[list[str]]
    n_compared: int
    places: list[int]


@dataclass(frozen=True)
class RowDetails:
    """Details of rows, which are given by their numbers in the fitted data.

    Attributes
    ----------
    names_of : names of some rows, None if rows have only numbers
    columns_of : cells of some rows, as a mapping from columns to values
    pictures_of : pictures of some rows as PNG or JPEG bytes, with this longer side in pixels; None if there are none
    numbers_of : numbers of some rows in the file, which differ from those in the data if rows were left out
    compared : names of the columns that rows are compared by, None if they have no names
    groups, group_name : a label for every row, and the name of the labels
    file, kind : name and kind of the file that the rows come from
    notes : assumptions about the rows
    """

    names_of: Callable[[IntArray], Sequence[Any]] | None = None
    columns_of: Callable[[IntArray], dict[str, list[Any]]] = lambda rows: {}
    pictures_of: Callable[[IntArray, int], Sequence[bytes | None] | None] = lambda rows, side: None
    numbers_of: Callable[[IntArray], Any] = lambda rows: rows
    compared: Sequence[str] | None = None
    groups: Sequence[Any] | None = None
    group_name: str = "group"
    file: str | None = None
    kind: str | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of_table(cls, table: Any) -> RowDetails:
        """Details from a ``mosaic.rows.Rows``."""

        def columns(rows: IntArray) -> dict[str, list[Any]]:
            found: dict[str, list[Any]] = table.cells(rows).to_pydict()
            found.pop(table.id_name or "", None)
            return found

        return cls(
            table.names if table.has_names else None,
            columns,
            table.pictures,
            table.numbers,
            table.feature_names,
            table.groups,
            table.group_name or "group",
            table.path.name,
            table.kind,
            list(table.notes),
        )

    @classmethod
    def of_arrays(
        cls, n: int, names: Any, columns: Any, images: Any, groups: Any, compared: Sequence[str] | None
    ) -> RowDetails:
        """Details of n rows from arrays and frames with one entry for each row; all may be None."""
        columns = {} if columns is None else columns_as_lists(columns)
        given = [("names", names), ("images", images), ("groups", groups), *(("columns", v) for v in columns.values())]
        for parameter, values in given:
            if values is not None and n_rows(values) != n:
                raise InvalidInputError(
                    f"must have one entry for each of {n} rows; got {n_rows(values)}",
                    "Give one for each row of the fitted data, in their order.",
                    parameter=parameter,
                )
        called = None if names is None else list(names)

        def names_of(rows: IntArray) -> list[Any]:
            found = [(row, (called or {})[row]) for row in rows.tolist()]
            return [row if name is None or name != name else name for row, name in found]  # NaN is no name

        return cls(
            None if called is None else names_of,
            lambda rows: {name: [values[row] for row in rows.tolist()] for name, values in columns.items()},
            lambda rows, side: None if images is None else thumbnails([images[row] for row in rows.tolist()], side),
            compared=compared,
            groups=None if groups is None else list(groups),
            group_name=str(getattr(groups, "name", None) or "group"),
        )

    def names(self, rows: IntArray) -> list[str] | None:
        """Names of rows, None if rows have only numbers."""
        return None if self.names_of is None else [shortened(name, LONGEST_FULL_NAME) for name in self.names_of(rows)]

    def numbers(self, rows: IntArray) -> IntArray:
        """Numbers of rows in the file."""
        return np.asarray(self.numbers_of(rows))

    def cells(self, rows: IntArray) -> Cells:
        """The text of each row's cells; columns that rows are compared by come first, otherwise in the order of the file."""
        columns = self.columns_of(rows) if len(rows) else {}
        columns = {name: values for name, values in columns.items() if not any(isinstance(v, list) for v in values)}
        compared = set(self.compared or ()) & set(columns) or set(columns)
        order = sorted(columns, key=lambda name: name not in compared)[:MOST_COLUMNS]
        place = {name: i for i, name in enumerate(columns)}
        return Cells(
            [shortened(name, LONGEST_NAME) for name in order],
            [[_cell_text(columns[name][i]) for name in order] for i in range(len(rows))],
            sum(name in compared for name in order),
            [place[name] for name in order],
        )

    def pictures(self, rows: IntArray, side: int = PICTURE_SIDE) -> list[str | None]:
        """A picture for each row, as a data URI."""
        found = self.pictures_of(rows, side) if len(rows) else None
        return [None] * len(rows) if found is None else [data_uri(picture) for picture in found]


def data_uri(picture: bytes | None) -> str | None:
    """A data URI of PNG or JPEG bytes.

    Examples
    --------
    >>> data_uri(b"not a picture")[:22]
    'data:image/png;base64,'
    """
    if picture is None:
        return None
    kind = "jpeg" if picture.startswith(b"\xff\xd8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


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
