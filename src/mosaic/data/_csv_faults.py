"""A second look at a text table that could not be read: which line, which column, what to do."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mosaic._files import library
from mosaic.data._bytes import open_stream, wrong_encoding
from mosaic.data._cells import MISSING, NUMBER
from mosaic.data._csv import TextTable, long_cells
from mosaic.data._faults import FileFault

#: Share of the cells of a column of text that are numbers, from which on the others are taken for mistakes.
MOSTLY = 0.5


def line_of(table: TextTable, number: int) -> int | None:
    """The line that a row begins on, counted from 1: quoted line breaks and empty lines count, and so does the header."""
    with suppress(csv.Error, OSError), long_cells(), open_stream(table.path) as stream:
        reader = table.reader(stream)
        begin, left = 1, number + int(table.has_header)
        for record in reader:
            if record:  # an empty line is no row
                if left == 0:
                    return begin
                left -= 1
            begin = reader.line_num + 1
    return None


def explain(table: TextTable, error: Exception, numbers: Sequence[str] = (), after: int = 0) -> FileFault:
    """What is wrong with a file that pyarrow refuses.

    Parameters
    ----------
    table : how the file is written
    error : what pyarrow says
    numbers : columns that were read as numbers
    after : rows before which all is well
    """
    fault = wrong_encoding(table.path) or _ragged(table)
    if fault is None and numbers:
        fault = _no_number(table, numbers, after)
    if fault is not None:
        return fault
    said = " ".join(str(error).split())
    return FileFault(table.path, f"cannot be read as a table ({said[:300]})", "Write it again as CSV in UTF-8.")


def mostly_numbers(table: TextTable, columns: dict[str, Any], exact: Sequence[str] = ()) -> None:
    """Refuse text that is numbers but for some cells: computing without that column is hardly what is wanted.

    Parameters
    ----------
    table : how the file is written
    columns : of text, by name
    exact : columns that the user wants to compute with, whatever their share of numbers
    """
    compute = library("pyarrow.compute", table.path)
    for name, column in columns.items():
        kinds = _kinds(table, column)
        filled = len(column) - compute.sum(kinds["missing"], min_count=0).as_py()
        good = compute.sum(kinds["number"], min_count=0).as_py()
        if name in exact or (filled and good >= MOSTLY * filled):
            row = compute.index(kinds["odd"], True).as_py()
            if row >= 0:
                raise _odd_cell(table, name, column[row].as_py(), row, good, filled)


def _odd_cell(table: TextTable, name: str, value: str, row: int, good: int, filled: int) -> FileFault:
    shown = value if len(value) <= 40 else value[:40] + "…"
    share = f", as {good:,} of {filled:,} cells of this column are" if good else ""
    return FileFault(
        table.path,
        f"{shown!r} is not a number{share}",
        "Correct the cell (a missing number is an empty cell or NA), or do not compute with the column: --exclude-columns "
        f"{_shell(name)}",
        line=line_of(table, row),
        column=name,
    )


def _kinds(table: TextTable, column: Any) -> dict[str, Any]:
    """Of every cell whether it is a number, missing, or neither."""
    pa, compute = library("pyarrow", table.path), library("pyarrow.compute", table.path)
    if column.type != pa.string():
        column = column.cast(pa.string())
    cells = compute.fill_null(compute.utf8_trim_whitespace(column), "")
    missing = compute.is_in(cells, value_set=pa.array(sorted(MISSING)))
    pattern = NUMBER if table.decimal == "." else NUMBER.replace(r"\.", table.decimal)
    number = compute.and_(compute.match_substring_regex(cells, f"^(?:{pattern})$"), compute.invert(missing))
    return {"number": number, "missing": missing, "odd": compute.invert(compute.or_(number, missing))}


def _no_number(table: TextTable, numbers: Sequence[str], after: int) -> FileFault | None:
    """The first cell, in a column of numbers, that is none. Rows before ``after`` are known to be good."""
    pa, compute = library("pyarrow", table.path), library("pyarrow.compute", table.path)
    begin = 0
    for batch in table.batches(dict.fromkeys(numbers, pa.string()), numbers):
        if begin + batch.num_rows > after:
            first: tuple[int, str, str] | None = None
            for name in numbers:
                row = compute.index(_kinds(table, batch.column(name))["odd"], True).as_py()
                if row >= 0 and (first is None or row < first[0]):
                    first = row, name, batch.column(name)[row].as_py()
            if first is not None:
                return _odd_cell(table, first[1], first[2], begin + first[0], 0, 0)
        begin += batch.num_rows
    return None


def _ragged(table: TextTable) -> FileFault | None:
    """The first record that has more or fewer cells than the first one."""
    width = len(table.names)
    with long_cells(), open_stream(table.path) as stream:
        reader = table.reader(stream, strict=True)
        begin = 1
        while True:
            try:
                record = next(reader)
            except StopIteration:
                return None
            except csv.Error as error:
                # At the end of the file, or in a cell longer than any text: what follows an open quotation mark.
                if "unexpected end" in str(error) or "field larger" in str(error):
                    return _unclosed(table, begin)
                record = []  # something behind a closed one, which pyarrow does not mind
            if record and len(record) != width:
                # No text has so many line breaks in a file that is wrong.
                many = reader.line_num > begin + 5
                return _unclosed(table, begin) if many else _wrong_width(table, begin, len(record))
            begin = reader.line_num + 1


def _wrong_width(table: TextTable, line: int, found: int) -> FileFault:
    expected, cells = len(table.names), "cell" if found == 1 else "cells"
    of = "as the header has" if table.has_header else "as the first line has"
    return FileFault(
        table.path,
        f"has {found} {cells} instead of {expected}, {of}",
        "Correct the line; a cell that holds the delimiter or a line break must be in quotation marks.",
        line=line,
    )


def _unclosed(table: TextTable, line: int) -> FileFault:
    return FileFault(
        table.path,
        "a quotation mark is opened and not closed",
        'Close it, or write a quotation mark inside of a text twice: "".',
        line=line,
    )


def _shell(name: str) -> str:
    """A name as a shell takes it."""
    return name if name.replace("_", "").isalnum() else "'" + name.replace("'", "'\\''") + "'"
