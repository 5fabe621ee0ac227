"""Excel workbooks: one sheet of .xlsx, whose first row that is not empty names the columns.

Read with python-calamine, a parser in Rust that runs no formulas or macros and follows no links. What the archive unpacks to is
checked before: its cells must fit into the memory budget.
"""

from __future__ import annotations

import zipfile
from typing import Any

from mosaic.rows.columns import TextColumns, table_in_memory
from mosaic.rows.csv_style import names_of
from mosaic.rows.faults import FileFault, close_to, no_rows, readable
from mosaic.rows.features import Request
from mosaic.rows.table import InMemory, Table
from mosaic.text import Library, listed

pa, calamine = Library("pyarrow"), Library("python_calamine")

#: Bytes of memory that a byte of the sheet's XML takes while it is read, at most.
GROWTH = 8


def open_workbook(request: Request) -> Table:
    """The sheet that is asked for, or the first one."""
    path = request.path
    with readable(path, "It is damaged or no .xlsx file. Save it again, as Excel workbook or as CSV."):
        with zipfile.ZipFile(path) as packed:
            size = sum(member.file_size for member in packed.infolist())
            if GROWTH * size > request.budget / 2:
                raise FileFault(
                    path,
                    f"unpacks to {size / 1e6:,.0f} MB, which takes more than half of the memory budget",
                    "Save the sheet as CSV, which is read in pieces, or raise `memory_budget`.",
                )
            if (wrong := packed.testzip()) is not None:  # sizes that are not true show here
                raise FileFault(path, f"its part {wrong!r} is damaged", "Save it again.")
        book = calamine.CalamineWorkbook.from_path(str(path))
        sheets = list(book.sheet_names)
        name = request.sheet if request.sheet is not None else next(iter(sheets), None)
        if name not in sheets:
            there = f"It has {listed(sheets)}." if sheets else "It has none."
            raise FileFault(path, f"has no sheet {name!r} (`sheet`)", close_to(name or "", sheets) + there)
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise no_rows(path, f"its sheet {name!r} is empty")
    notes = (
        [] if len(sheets) == 1 else [f"Rows are those of the sheet {name!r}, one of {len(sheets)}: {listed(sheets)}."]
    )
    first = [_text(cell) for cell in rows[0]]
    names, has_header = names_of(first, ".", notes)
    body = rows[1:] if has_header else rows
    if not body:
        raise no_rows(path, f"its sheet {name!r} has a header and no rows")
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise FileFault(path, f"has more than one column called {twice!r}", "Rename them or delete all but one.")
    columns = {name: _column([row[j] for row in body]) for j, name in enumerate(names)}
    return table_in_memory(request, InMemory(pa.table(columns)), TextColumns(notes))


def _column(cells: list[Any]) -> Any:
    """Cells with one type for all of them: numbers, whole where all are; dates; or else text. Empty cells are missing."""
    cells = [None if cell == "" else cell for cell in cells]
    filled = [cell for cell in cells if cell is not None]
    if filled and all(isinstance(cell, float | int) and not isinstance(cell, bool) for cell in filled):
        whole = all(float(cell).is_integer() and abs(cell) < 2**53 for cell in filled)
        return pa.array([None if c is None else int(c) if whole else float(c) for c in cells])
    if len({type(cell) for cell in filled}) <= 1:
        return pa.array(cells)
    return pa.array([None if cell is None else _text(cell) for cell in cells])


def _text(cell: Any) -> str:
    """A cell as it would be written."""
    return f"{cell:g}" if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15 else str(cell)
