"""Tables as text: CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from typing import Any

from mosaic._files import library
from mosaic.data._columns import is_number, plain


def csv_bytes(table: Any, delimiter: str = ",") -> bytes:
    r"""A table as CSV; cells are quoted where they need it. Columns of lists are left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> csv_bytes(pa.table({"name": ["Ada", "Max"], "age": [36, 41]}))
    b'name,age\nAda,36\nMax,41\n'
    """
    pa, compute = library("pyarrow", "CSV"), library("pyarrow.compute", "CSV")
    left_out = unwritable(table)
    flat = table.select([i for i, name in enumerate(table.column_names) if name not in left_out]).combine_chunks()
    head = _header(flat.column_names, delimiter)
    if not flat.num_rows or not flat.num_columns:
        return head
    cells = [_quoted(column, delimiter, flat.num_columns == 1) for column in flat.columns]
    between = pa.scalar(delimiter, pa.large_string())
    lines = compute.binary_join_element_wise(*cells, between, null_handling="replace", null_replacement="")
    return head + "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def unwritable(table: Any) -> list[str]:
    """Columns that CSV cannot hold: lists and other nested values."""
    types = library("pyarrow.types", "CSV")
    return [field.name for field in table.schema if types.is_nested(field.type)]


def _quoted(column: Any, delimiter: str, alone: bool) -> Any:
    """Cells of a column as they are written."""
    pa, compute = library("pyarrow", "CSV"), library("pyarrow.compute", "CSV")
    text = _as_text(column)
    if is_number(column.type):
        return compute.fill_null(text, '""') if alone else text
    needed = compute.match_substring_regex(text, f'["\r\n{delimiter}]')
    # An empty text is told from a missing one; and a lone cell of nothing would be an empty line, which readers skip.
    if alone or column.null_count:
        text = compute.fill_null(text, "") if alone else text
        needed = compute.or_(compute.fill_null(needed, False), compute.equal(text, ""))
    marks = pa.scalar('"', pa.large_string())
    inside = compute.replace_substring(text, '"', '""')
    empty = pa.scalar("", pa.large_string())
    return compute.if_else(needed, compute.binary_join_element_wise(marks, inside, marks, empty), text)


def _as_text(column: Any) -> Any:
    """Values as text; bytes that are no text as hexadecimal digits."""
    pa = library("pyarrow", "CSV")
    column = plain(column)
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not isinstance(column.type, pa.BaseExtensionType):
            return column.cast(pa.string()).cast(pa.large_string())
    values = (value.hex() if isinstance(value, bytes) else value for value in column.to_pylist())
    return pa.chunked_array([pa.array([None if value is None else str(value) for value in values], pa.large_string())])


def json_bytes(table: Any, by_lines: bool) -> bytes:
    """A table as JSON: a list of records, or one record a line."""
    records = [
        json.dumps({key: _json_value(value) for key, value in record.items()}, ensure_ascii=False, allow_nan=False)
        for record in _records(table)
    ]
    text = "".join(record + "\n" for record in records) if by_lines else "[\n" + ",\n".join(records) + "\n]\n"
    return text.encode()


def _records(table: Any) -> list[dict[str, Any]]:
    """Rows as Python's values; dates that Python does not know as text."""
    try:
        return list(table.to_pylist())
    except (OverflowError, ValueError):
        types = library("pyarrow.types", "JSON")
        for i, field in enumerate(table.schema):
            if types.is_temporal(field.type):
                table = table.set_column(i, field.name, _as_text(table.column(i)))
        return list(table.to_pylist())


def _json_value(value: Any) -> Any:
    """What JSON can hold: NaN and infinite become null, dates and other things their text."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _header(names: list[str], delimiter: str) -> bytes:
    """The first line, quoted where needed."""
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
    return line.getvalue().encode()
