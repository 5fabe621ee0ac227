"""What the rows are to people: names, cells of a table, pictures, groups."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic._frames import columns_as_lists, n_rows
from mosaic.data.stacks import thumbnails
from mosaic.exceptions import InvalidInputError

#: Letters of a name that are shown, and that are saved; of a cell; and columns.
LONGEST_NAME, LONGEST_FULL, LONGEST_CELL, MOST_COLUMNS = 80, 500, 200, 12
#: Pixels of a picture's longer side, and of one that is shown beside another.
SIDE, SMALL = 96, 48


@dataclass(frozen=True)
class Subject:
    """Rows of a table, as ``mosaic.data.Table`` gives them; all that it has may be missing.

    Attributes
    ----------
    table : has ``names``, ``rows``, ``pictures`` and says ``has_names``; None where rows are numbers only
    groups : a label for every row, and what they are called together
    file, kind : where the rows come from
    notes : what was assumed about them
    """

    table: Any = None
    groups: Sequence[Any] | None = None
    group_name: str = "group"
    file: str | None = None
    kind: str | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of_table(cls, table: Any) -> Subject:
        """What a table says of itself."""
        name = getattr(table, "group_name", None) or "group"
        return cls(table, table.groups, name, table.path.name, table.kind, list(table.notes))

    def names(self, rows: IntArray) -> list[str] | None:
        """What rows are called; None where they have numbers only."""
        if self.table is None or not self.table.has_names:
            return None
        return [shortened(name, LONGEST_FULL) for name in self.table.names(rows)]

    def numbers(self, rows: IntArray) -> IntArray:
        """Where rows are in the file; not where they are in X, if some were left out."""
        numbers = getattr(self.table, "numbers", None)
        return rows if numbers is None else np.asarray(numbers(rows))

    def cells(self, rows: IntArray) -> tuple[list[str], list[list[str]]]:
        """Headers, and for each row the text of its cells; columns that are no numbers come first."""
        if self.table is None or not len(rows):
            return [], [[] for _ in rows]
        columns = self.table.cells(rows) if isinstance(self.table, Given) else self.table.rows(rows).to_pydict()
        columns = {name: values for name, values in columns.items() if not any(isinstance(v, list) for v in values)}
        columns.pop(getattr(self.table, "id_name", None) or "", None)
        order = sorted(columns, key=lambda name: all(isinstance(v, int | float) or v is None for v in columns[name]))
        order = order[:MOST_COLUMNS]
        texts = [[_text(columns[name][i]) for name in order] for i in range(len(rows))]
        return [shortened(name, LONGEST_NAME) for name in order], texts

    def pictures(self, rows: IntArray, side: int = SIDE) -> list[str | None]:
        """For each row a picture as a data URI."""
        found = None if self.table is None or not len(rows) else self.table.pictures(rows, side)
        return [None] * len(rows) if found is None else [as_uri(picture) for picture in found]


@dataclass(frozen=True)
class Given:
    """A table made of what somebody has in memory: names, columns, images."""

    called: Sequence[Any] | None
    columns: Mapping[str, Sequence[Any]]
    images: Any

    @property
    def has_names(self) -> bool:
        """Whether rows are more than numbers."""
        return self.called is not None

    def names(self, rows: Iterable[int]) -> list[str]:
        """What rows are called."""
        called = [None if self.called is None else self.called[int(row)] for row in rows]
        return [str(row if name is None or name != name else name) for row, name in zip(rows, called, strict=True)]

    def cells(self, rows: IntArray) -> dict[str, list[Any]]:
        """Their cells, column by column."""
        return {name: [values[int(row)] for row in rows] for name, values in self.columns.items()}

    def pictures(self, rows: IntArray, side: int) -> list[bytes] | None:
        """Their pictures."""
        return None if self.images is None else thumbnails([self.images[int(row)] for row in rows], side)


def subject_of(n: int, names: Any = None, columns: Any = None, images: Any = None, groups: Any = None) -> Subject:
    """A subject of n rows from what was given about them."""
    columns = {} if columns is None else columns_as_lists(columns)
    given = {"names": names, "images": images, "groups": groups, **{f"column {c!r}": v for c, v in columns.items()}}
    for what, values in given.items():
        if values is not None and n_rows(values) != n:
            raise InvalidInputError(f"{what} must have one entry for each of {n} rows; got {n_rows(values)}.")
    table = Given(None if names is None else list(names), columns, images)
    group_name = str(getattr(groups, "name", None) or "group")
    return Subject(table, None if groups is None else list(groups), group_name)


def as_uri(picture: bytes | None) -> str | None:
    """A data URI of PNG or JPEG bytes.

    Examples
    --------
    >>> as_uri(b"not a picture")[:22]
    'data:image/png;base64,'
    """
    if picture is None:
        return None
    kind = "jpeg" if picture.startswith(b"\xff\xd8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def shortened(text: Any, longest: int) -> str:
    r"""Text on one line that is not too long; the middle is left out, for names of files differ at their ends.

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


def _text(value: Any) -> str:
    if value is None or value != value:  # missing, or not a number
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return shortened(value, LONGEST_CELL)
