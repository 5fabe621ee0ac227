"""Columns of whatever kind as numbers: the cells of a table of pyarrow, and rows in memory whose numbers are made in passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mosaic._frames import frame_columns
from mosaic.arrays.blocks import FloatArray
from mosaic.rows.cells import Cells, Values
from mosaic.rows.features import Layout
from mosaic.rows.mixed import TableEncoder
from mosaic.sketch.sources import LocalSource


class CellsOfTable(Cells):
    """The cells of the columns of a ``pyarrow.Table`` that are compared.

    Parameters
    ----------
    table : the columns
    layout : what the columns are for, and which of them hold categories
    codes : columns of text that are no numbers, whatever they look like
    """

    def __init__(self, table: Any, layout: Layout, codes: Sequence[str] = ()):
        self._table, self._layout, self.n = table, layout, table.num_rows
        there = set(table.column_names)
        compared = table.select([name for name in layout.compared if name in there])
        super().__init__({str(column.name): column for column in frame_columns(compared)})
        self._levels, self._codes = layout.levels, codes

    def read(self, name: str) -> Values:
        """Those of a column."""
        values = super().read(name)
        if name in self._levels:
            return Values("level", None, *values.as_levels())
        return replace(values, kind="code") if name in self._codes and values.kind == "text" else values

    def some(self, start: int, stop: int) -> CellsOfTable:
        """Those of some rows."""
        return CellsOfTable(self._table.slice(start, stop - start), self._layout, self._codes)


class EncodedRows(LocalSource):
    """Rows in memory whose numbers take far more room than their cells, such as categories: they are made block by block.

    Parameters
    ----------
    kind : what it is, as a person would say it
    cells : of all rows
    encoder : how columns become numbers
    """

    def __init__(self, kind: str, cells: CellsOfTable, encoder: TableEncoder):
        self.kind, self._cells, self._encoder = kind, cells, encoder
        self.n, self.n_features, self.names = cells.n, encoder.width, encoder.number_names

    def read(self, start: int, stop: int) -> FloatArray:
        """The numbers of some rows."""
        return self._encoder.encode(self._cells.some(start, stop))
