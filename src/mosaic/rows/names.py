"""What rows are called, and which row is meant: in Python, a whole number is a row number, and text is a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import close_to
from mosaic.text import NO_NAMES

#: Names of rows that are compared with one that is not there.
COMPARED_NAMES = 100_000


@dataclass(frozen=True)
class RowNames:
    """The names of rows, and where they come from: "column 'id'", "the index".

    ``rows`` are the row numbers of the names, ascending, if only some rows are named; None if all are, in their order.
    """

    names: tuple[str, ...]
    origin: str
    rows: IntArray | None = None

    def __getitem__(self, row: int) -> str:
        return self.names[row if self.rows is None else int(np.searchsorted(self.rows, row))]

    def called(self, row: int) -> str:
        return f"{self[row]} (row {row})"

    def among(self, rows: IntArray) -> RowNames:
        """The names of some of the rows, in ascending order."""
        return replace(self, names=tuple(self[row] for row in rows.tolist()), rows=rows)

    def find(self, name: str) -> int:
        place = only_row(name, self._places.get(name, []), self.origin, self.names[:COMPARED_NAMES])
        return place if self.rows is None else int(self.rows[place])

    def first(self, names: Iterable[str]) -> IntArray:
        """The first row with each of these names, -1 where there is none; all rows must be named."""
        return np.array([self._places.get(name, [-1])[0] for name in names], np.intp)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            places.setdefault(name, []).append(place)
        return places


def only_row(name: str, rows: Sequence[int], origin: str, some: Sequence[str]) -> int:
    """The only one of the rows that are called so; ``some`` are names that there are, to suggest similar ones."""
    if len(rows) > 1:
        fault = f"{len(rows)} rows are called {name!r}, the rows {rows[0]} and {rows[1]} among them"
        raise InvalidInputError(
            fault, "Give the row number, or name rows by a column of different values."
        )
    if not rows:
        raise InvalidInputError(
            f"no row has {name!r} in {origin}", f"{close_to(name, some)}Check the spelling."
        )
    return rows[0]


class Finder(Protocol):
    """What knows the names of rows."""

    def find(self, name: str) -> int: ...


def as_row(given: object, names: Finder | None) -> Any:
    """A row number for a name, which is text; anything else, and all where rows have no names, is returned as it is."""
    if not isinstance(given, str) or names is None:
        return given
    try:
        return names.find(str(given))
    except InvalidInputError as error:
        if given.isdecimal():
            error.remedy = (
                f"{error.remedy} Row number {int(given)} is the number {int(given)}, not text."
            )
        raise


def as_rows(given: Any, names: Finder | None, parameter: str) -> Any:
    """Row numbers for names; a mask and a list of numbers are returned as they are."""
    if given is None or (isinstance(given, np.ndarray) and given.dtype.kind in "biuf"):
        return given
    items = [given] if isinstance(given, str) else list(given) if hasattr(given, "__iter__") else []
    first = next((item for item in items if isinstance(item, str)), None)
    if first is None:
        return given
    if names is None:
        raise InvalidInputError(f"holds the name {str(first)!r}", NO_NAMES, parameter=parameter)
    try:
        return [as_row(item, names) for item in items]
    except InvalidInputError as error:
        error.parameter = None
        error.fault = f"`{parameter}`: {error.fault}"
        raise
