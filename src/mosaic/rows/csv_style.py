"""How text tables are written: delimiter, header, decimal comma; which cells are numbers, missing, or would lose digits."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from mosaic.rows.text import open_stream
from mosaic.text import Library

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

NUMBER = r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|(?i:inf(inity)?))"
#: What pyarrow takes as missing in a column of numbers, apart from nothing at all.
MISSING_CELLS = frozenset({"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "-NaN", "-nan"})
MISSING_CELLS |= {"N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
WHOLE_NUMBER = r"^[-+]?\d+$"
#: A cell that begins with a zero that a number would lose.
LEADING_ZERO = re.compile(r"\s*0\d")
#: Bytes at the beginning of a file that show how it is written.
INSPECTED_BYTES = 1 << 18
#: Bytes of the longest row that is read.
LONGEST_ROW = 1 << 26
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


def is_number_text(cell: str, decimal: str) -> bool:
    """Whether a cell is a number.

    Examples
    --------
    >>> is_number_text("-1.5e3", "."), is_number_text("1,5", ","), is_number_text("12kg", ".")
    (True, True, False)
    """
    return _number(decimal).fullmatch(cell.strip()) is not None


@cache
def _number(decimal: str) -> re.Pattern[str]:
    return re.compile(NUMBER.replace(r"\.", re.escape(decimal)))


def as_numbers(column: Any, decimal: str = ".", floats: bool = True) -> Any:
    """Text as numbers where nothing is lost; otherwise the text.

    Integers if every value is written as the integer would be. Other whole numbers, of more digits than an integer holds
    or with leading zeros, are names. What is left are floats, if they are wanted, with empty cells as missing; otherwise
    every cell counts as it is written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [as_numbers(pa.chunked_array([cells])).type for cells in (["1", "2"], ["1", "2.5"], ["1", "02"], ["1", "b"])]
    [DataType(int64), DataType(double), DataType(string), DataType(string)]
    """
    cells = filled_cells(column)
    if cells.null_count == len(cells):
        return column
    try:
        if not floats or pc.all(pc.match_substring_regex(cells, WHOLE_NUMBER)).as_py():
            whole = cells.cast(pa.int64())
            written = pc.fill_null(cells if floats else column, "")
            same = pc.equal(pc.fill_null(whole.cast(pa.string()), ""), written)
            return whole if pc.all(same).as_py() else column
        if decimal != ".":
            cells = pc.replace_substring(cells, decimal, ".")
        return cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return column


def filled_cells(column: Any) -> Any:
    """Cells of text without the blanks around them, missing ones as null."""
    cells = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(cells, value_set=pa.array(sorted(MISSING_CELLS))), None, cells)


def cell_kinds(column: Any, decimal: str) -> tuple[Any, Any]:
    """Two masks: which cells of text are numbers, and which are missing."""
    cells = pc.fill_null(pc.utf8_trim_whitespace(column.cast(pa.string())), "")
    missing = pc.is_in(cells, value_set=pa.array(sorted(MISSING_CELLS)))
    pattern = NUMBER if decimal == "." else NUMBER.replace(r"\.", decimal)
    return pc.and_(pc.match_substring_regex(cells, f"^(?:{pattern})$"), pc.invert(missing)), missing


def loses_digits(column: Any, kind: Any) -> bool:
    """Whether text that would be numbers of this type is whole numbers that lose digits so.

    Examples
    --------
    >>> import pyarrow as pa
    >>> loses_digits(pa.array(["00501", "NA"]), pa.int64()), loses_digits(pa.array(["501"]), pa.int64())
    (True, False)
    """
    cells = filled_cells(column)
    if cells.null_count == len(cells) or not pc.all(pc.match_substring_regex(cells, WHOLE_NUMBER)).as_py():
        return False
    # Whole numbers are read as integers, unless one of them is too long.
    return bool(types.is_floating(kind) or pc.any(pc.match_substring_regex(cells, r"^[-+]?0\d")).as_py())


def beginning(path: Path) -> tuple[bytes, bool]:
    """The first lines of a file, at least two of them, and whether that is all of it."""
    head, step = b"", INSPECTED_BYTES
    with open_stream(path) as stream:
        while True:
            more = stream.read(step)
            head += more
            if len(more) < step or head.count(b"\n") > 2 or len(head) > LONGEST_ROW:
                return head, len(more) < step
            step = len(head)


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the csv module read cells as long as those that pyarrow reads."""
    limit = csv.field_size_limit(LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def records_of(text: str, delimiter: str) -> list[list[str]]:
    """Records of the first lines that are not empty, as far as they can be read."""
    records: list[list[str]] = []
    with suppress(csv.Error), long_cells():
        records.extend(record for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if record)
    return records


def delimiter_of(text: str) -> str:
    """Of comma, semicolon, tab and bar the one that cuts the first lines into equally many cells, numbers if possible."""
    best, found = (0.0, 1), ","
    for candidate in DELIMITERS:
        rows = records_of(text[:20_000], candidate)
        rows = rows[: max(1, min(50, len(rows) - 1))]
        width = len(rows[0]) if rows else 1
        if width == 1 or sum(len(row) == width for row in rows) < 0.8 * len(rows):
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(is_number_text(cell, ".") or is_number_text(cell, ",") for cell in cells) / len(cells)
        if (numbers, width) > best:
            best, found = (numbers, width), candidate
    return found


def has_decimal_comma(records: list[list[str]]) -> bool:
    """Whether more cells are numbers with a decimal comma than with a point."""
    cells = [cell.strip() for record in records for cell in record]
    commas = sum(bool(re.fullmatch(r"[-+]?\d+,\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    return commas > points


def names_of(first: list[str], decimal: str, notes: list[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds them."""
    cells = [cell.strip() for cell in first]
    filled = [cell for cell in cells if cell not in MISSING_CELLS or not cell]
    if filled and all(is_number_text(cell, decimal) for cell in filled):
        notes.append(
            f"The first line holds numbers only, so that there is no header; columns are called x0 … x{len(cells) - 1}."
        )
        return [f"x{i}" for i in range(len(cells))], False
    odd = [cell for cell in cells if is_number_text(cell, decimal) and not cell.isdecimal()]
    if odd:
        notes.append(
            f"The first line is taken as header, although it holds a number, {odd[0]}. Put names of the columns there."
        )
    if "" in cells:
        free = "index" if cells[0] == "" and "index" not in cells else "column_1"
        cells = [cell or (free if i == 0 else f"column_{i + 1}") for i, cell in enumerate(cells)]
    return cells, True


def has_leading_zeros(cells: list[str]) -> bool:
    """Whether cells are whole numbers, some of which begin with a zero that a number would lose."""
    filled = [cell.strip() for cell in cells if cell.strip() not in MISSING_CELLS]
    return any(re.fullmatch(r"0\d+", cell) for cell in filled) and all(cell.isdecimal() for cell in filled)
