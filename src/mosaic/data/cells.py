"""Cells of text: which are numbers, which are missing, and which would lose digits as numbers."""

from __future__ import annotations

import re
from typing import Any

from mosaic._files import Library

pa, pc, types = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.types")

NUMBER = r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|(?i:inf(inity)?))"
#: What pyarrow takes as missing in a column of numbers, apart from nothing at all.
MISSING_CELLS = frozenset({"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "-NaN", "-nan"})
MISSING_CELLS |= {"N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"}
WHOLE_NUMBER = r"^[-+]?\d+$"


def is_number_text(cell: str, decimal: str) -> bool:
    """Whether a cell is a number.

    Examples
    --------
    >>> is_number_text("-1.5e3", "."), is_number_text("1,5", ","), is_number_text("12kg", ".")
    (True, True, False)
    """
    return re.fullmatch(NUMBER.replace(r"\.", re.escape(decimal)), cell.strip()) is not None


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
