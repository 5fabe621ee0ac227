"""What a saved model keeps of its rows: their names, and the cells of some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.arrays.blocks import NO_ROWS, IntArray, lowest_first
from mosaic.choosing import Selection, with_outliers
from mosaic.rows.roles import Request, Roles
from mosaic.rows.rows import Rows
from mosaic.rows.tables import Outside, table_of, values_of
from mosaic.text import Library, jsonable

pa = Library("pyarrow")
types = Library("pyarrow.types")

#: Cells that are kept, at most: of picks, then of outliers, then of other rows. Picks are kept whatever their number.
MOST_CELLS = 100_000


@dataclass(frozen=True)
class SavedRows(Outside):
    """Names of the rows that a fit has in memory, and cells of picks, outliers and, in a small table, of all rows.

    ``named`` are the numbers of the rows with ``ids``, ``listed`` of those with ``cells``, both ascending. By ``options`` of
    ``mosaic.read`` another file of such rows is read.
    """

    file: str
    kind: str
    n: int
    id_name: str | None = None
    ids: tuple[str, ...] | None = None
    group_name: str | None = None
    named: IntArray = field(default_factory=NO_ROWS.copy)
    listed: IntArray = field(default_factory=NO_ROWS.copy)
    kept: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Rows, selection: Selection) -> SavedRows:
        """Of rows and what was found in them."""
        selection = with_outliers(selection)
        in_memory = selection.data.rows_in_data(np.arange(len(selection.data.points.point_of)))
        odd = selection.data.rows_in_data(
            lowest_first(selection.outliers_in_memory, selection.counts_in_memory)
        )
        wanted = list(dict.fromkeys([*selection.rows.tolist(), *odd.tolist(), *in_memory.tolist()]))
        flat = [
            c.name
            for c in rows.cells(wanted[:1]).schema
            if c.name != rows.id_name
            and not types.is_nested(c.type)
            and not types.is_binary(c.type)
        ]
        most = max(MOST_CELLS // max(len(flat), 1), len(selection.rows))
        listed = np.sort(np.array(wanted[:most], np.intp))
        cells = rows.cells(listed, flat)
        in_memory = np.sort(np.asarray(in_memory, np.intp))
        return cls(
            file=rows.kind if rows.path is None else rows.path.name,
            kind=rows.kind,
            n=rows.n,
            id_name=(rows.id_name or "index") if rows.has_names else None,
            ids=tuple(rows.names(in_memory)) if rows.has_names else None,
            group_name=rows.group_name,
            named=in_memory,
            listed=listed,
            kept={
                name: tuple(jsonable(value) for value in values_of(cells.column(name)))
                for name in flat
            },
            options=rows.options,
            notes=tuple(rows.notes),
        )

    def as_rows(self) -> Rows:
        """The rows again, without numbers; cells that were not kept are missing."""
        group = () if self.group_name is None else (self.group_name,)
        request = Request(Path(self.file), kind=self.kind, group=group)
        return Rows(request, self, roles=Roles(id_name=self.id_name), notes=list(self.notes))

    @property
    def columns(self) -> list[str]:
        return [*([] if self.id_name is None else [self.id_name]), *self.kept]

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """Cells, missing ones as null; names are known of all rows in memory."""
        found = {}
        for name in columns:
            if name == self.id_name:
                known, values = (self.named, self.ids or ())
            else:
                known, values = (self.listed, self.kept[name])
            place = dict(zip(known.tolist(), values, strict=True))
            found[name] = pa.array([place.get(number) for number in np.asarray(rows).tolist()])
        return table_of(found, len(rows))
