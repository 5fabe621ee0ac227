"""What is asked of a file: which one, what its columns are for, and how much memory may be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mosaic.budget import DEFAULT_BUDGET

#: Is called now and then with the bytes done and their total.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`mosaic.data.open_table`, with the kind of file and the memory in bytes.

    Attributes
    ----------
    path, kind : of the file or folder; its kind as a person would say it
    budget : bytes of memory
    elsewhere : whether the numbers come from another file, so that no column is needed for them
    """

    path: Path
    kind: str = ""
    id: str | None = None
    columns: Sequence[str] | None = None
    exclude_columns: Sequence[str] | None = None
    embedding: str | None = None
    group: str | None = None
    weight: str | None = None
    array: str | None = None
    image_size: int = 32
    colour: bool = False
    drop_missing: bool = False
    elsewhere: bool = False
    budget: float = DEFAULT_BUDGET
    progress: Progress | None = None

    @property
    def roles(self) -> dict[str, str]:
        """Columns that have a role of their own, and the parameter that names it."""
        given = {"id": self.id, "group": self.group, "weight": self.weight, "embedding": self.embedding}
        return {column: parameter for parameter, column in given.items() if column is not None}
