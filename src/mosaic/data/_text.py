"""Text tables in, those that fit into memory and those that do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic._arrays import IntArray
from mosaic._files import library, listed
from mosaic.data._bytes import Progress, wrong_encoding
from mosaic.data._cells import as_numbers, filled_cells, loses_digits
from mosaic.data._columns import ColumnChoices, check_names, is_number
from mosaic.data._csv import TextTable, look_at
from mosaic.data._csv_faults import explain, line_of
from mosaic.data._faults import FileFault, readable
from mosaic.data._framed import Frame, table_of
from mosaic.data._streams import table_of_stream
from mosaic.data.records import InMemory, Streamed
from mosaic.data.table import Table


def open_text_table(path: Path, kind: str, choices: ColumnChoices, budget: float, progress: Progress | None) -> Table:
    """A .csv or .tsv file, compressed or not.

    Parameters
    ----------
    path, kind : of the file
    choices : what the user says of its columns
    budget : bytes of memory. A file whose numbers would take more than an eighth of it, or whose text more than a sixth, is
        read block by block: read as a whole it takes four times as much while types are found
    progress : is told how far reading is
    """
    with readable(path):
        text = look_at(path)
        text = replace(text, choices=choices)
        text = replace(text, zeros=tuple(name for name in text.zeros if name not in text.computed))
        size = text.size()
    check_names(path, list(text.names), choices)
    column_bytes = 8 * size / text.row_bytes
    if column_bytes * len(text.names) > budget / 8 or size > budget / 6:
        return table_of_stream(_large(text, kind, choices, column_bytes, progress), choices, budget)
    table, lossy = _read(text)
    if progress is not None:
        progress(path.stat().st_size, path.stat().st_size)
    if not table.num_rows:
        raise FileFault(path, "has a header and no rows", "Write it again with its rows, or name another one.")
    records = InMemory(table, lambda number: line_of(text, number))
    frame = Frame(
        path, kind, table.schema, records, table, notes=[*text.notes, *digits_note([*text.zeros, *lossy])], text=text
    )
    return table_of(frame, choices, budget / 4)


class WrittenRows(Streamed):
    """Rows of a text file that is not in memory: read as they are written, and made numbers when few are left."""

    def __init__(self, text: TextTable, numbers: Sequence[str]):
        pa = library("pyarrow", text.path)
        kinds = dict.fromkeys(text.names, pa.string())
        super().__init__(
            text.names, lambda columns: _explained(text, kinds, columns), lambda number: line_of(text, number)
        )
        self._text, self._numbers = text, numbers

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """One pass."""
        table = super().take(numbers, columns)
        return self._text.converted(table, [name for name in table.column_names if name in self._numbers])


def _read(text: TextTable) -> tuple[Any, list[str]]:
    pa = library("pyarrow", text.path)
    with readable(text.path):
        try:
            table, lossy = text.read()
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise explain(text, error) from error
        _refuse_bytes(text, table)
    return table, lossy


def digits_note(names: Sequence[str]) -> list[str]:
    """What is said of whole numbers that are kept as text."""
    return (
        [f"Read as text, since their whole numbers would lose digits or zeros: {listed(list(names))}."] if names else []
    )


def _refuse_bytes(text: TextTable, table: Any) -> None:
    """What is not UTF-8 is read as bytes."""
    types = library("pyarrow.types", text.path)
    if any(types.is_binary(field.type) for field in table.schema):
        raise wrong_encoding(text.path) or FileFault(text.path, "is not UTF-8", "Write it again in UTF-8.")


def _large(text: TextTable, kind: str, choices: ColumnChoices, column_bytes: float, progress: Progress | None) -> Frame:
    """Columns of a file whose types are those of its first block."""
    pa = library("pyarrow", text.path)
    first = next(_explained(text, dict.fromkeys(text.texts, pa.string()), None), None)
    if first is None or not first.num_rows:
        raise FileFault(text.path, "has a header and no rows", "Write it again with its rows, or name another one.")
    _refuse_bytes(text, first)
    suspects = text.suspects(first)
    raw: Any = next(_explained(text, dict.fromkeys(suspects, pa.string()), suspects)) if suspects else None
    lossy = [name for name in suspects if loses_digits(raw.column(name), first.schema.field(name).type)]
    sample = text.converted(pa.Table.from_batches([first]), text.texts)
    text = replace(text, zeros=(*text.zeros, *lossy))
    for name in lossy:
        sample = sample.set_column(sample.schema.get_field_index(name), name, [raw.column(name)])
    for name, found in _types_further_down(text, sample.schema).items():
        sample = sample.set_column(sample.schema.get_field_index(name), name, pa.nulls(sample.num_rows, found))
    numbers = [field.name for field in sample.schema if is_number(field.type)]
    flags = {field.name for field in sample.schema if field.type == pa.bool_()}

    def stream(columns: list[str], numeric: list[str]) -> Iterator[Any]:
        counted = set(numeric)
        # Whole numbers of the first block may have fractions further down.
        kinds = {c: pa.bool_() if c in flags else pa.float64() if c in counted else pa.string() for c in columns}
        return _explained(text, kinds, columns, progress)

    return Frame(
        text.path,
        kind,
        sample.schema,
        WrittenRows(text, numbers),
        expected=column_bytes,
        notes=[*text.notes, *digits_note(text.zeros)],
        text=text,
        sample=sample,
        stream=stream,
    )


def _types_further_down(text: TextTable, schema: Any) -> dict[str, Any]:
    """Types of columns that are empty in the first block, from the first block that holds something of them."""
    pa = library("pyarrow", text.path)
    empty = [field.name for field in schema if field.type == pa.null()]
    found: dict[str, Any] = {}
    for batch in _explained(text, dict.fromkeys(empty, pa.string()), empty) if empty else ():
        for name in set(empty) - set(found):
            cells = batch.column(name)
            if filled_cells(cells).null_count < len(cells):
                found[name] = as_numbers(cells, text.decimal).type
        if len(found) == len(empty):
            break
    return found


def _explained(
    text: TextTable, kinds: dict[str, Any], columns: Sequence[str] | None, progress: Progress | None = None
) -> Iterator[Any]:
    """Blocks of a text file; what is wrong with it is looked for once more."""
    pa = library("pyarrow", text.path)
    done = 0
    with readable(text.path):
        try:
            for batch in text.batches(kinds, columns, progress):
                yield batch
                done += batch.num_rows
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            # Cells of true and false are no numbers, and no mistakes either.
            numbers = [name for name, kind in kinds.items() if kind not in (pa.string(), pa.bool_())]
            raise explain(text, error, numbers, done) from error
