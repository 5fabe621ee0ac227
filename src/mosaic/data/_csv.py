"""Text tables: how they are written (delimiter, header, decimal comma), and reading them with pyarrow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._files import library
from mosaic.data._bytes import COMPRESSIONS, Progress, decoded, ending_of, open_stream
from mosaic.data._cells import MISSING, as_numbers, is_number_text, loses_digits
from mosaic.data._columns import ColumnChoices, looks_like_id
from mosaic.data._faults import FileFault

#: Bytes at the beginning of a file that are looked at to find out how it is written.
LOOKED_AT = 1 << 18
#: Bytes that are parsed at a time, unless rows are so long that few would fit.
BLOCK = 1 << 22
#: Bytes of the longest row that is read.
LONGEST_ROW = 1 << 26
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}


@dataclass(frozen=True)
class TextTable:
    """How a text file holds a table.

    Attributes
    ----------
    path : the file, compressed or not
    delimiter, decimal : between cells, and in numbers
    names : of the columns
    has_header : whether the first line that is not empty names them
    skipped : empty lines before it
    notes : what was assumed
    zeros : columns of whole numbers that lose digits as numbers: leading zeros, or more digits than an integer holds
    row_bytes : of a row of the first lines, on average
    choices : what the user says of the columns
    """

    path: Path
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    skipped: int
    notes: tuple[str, ...]
    zeros: tuple[str, ...]
    row_bytes: float
    choices: ColumnChoices = field(default_factory=ColumnChoices)

    def reader(self, stream: Any, strict: bool = False) -> Any:
        """Records by the csv module of Python, which knows the lines that they are on."""
        lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
        return csv.reader(lines, delimiter=self.delimiter, strict=strict)

    def options(self, types: dict[str, Any], columns: Sequence[str] | None = None) -> dict[str, Any]:
        """What pyarrow is told."""
        arrow = library("pyarrow.csv", self.path)
        return {
            "read_options": arrow.ReadOptions(
                block_size=int(min(max(BLOCK, 16 * self.row_bytes), LONGEST_ROW)),
                column_names=list(self.names),
                skip_rows=self.skipped,
                skip_rows_after_names=int(self.has_header),
            ),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                decimal_point=self.decimal,
                column_types=types,
                include_columns=None if columns is None else list(columns),
            ),
        }

    @property
    def computed(self) -> set[str]:
        """Columns that the user computes with: numbers, whatever they look like."""
        return {*(self.choices.columns or ()), *([] if self.choices.weight is None else [self.choices.weight])}

    @property
    def texts(self) -> list[str]:
        """Columns that are read as they are written: ids and groups, whose zeros and digits count."""
        kept = {self.choices.id, *({self.choices.group} - self.computed), *self.zeros}
        return [name for name in self.names if name in kept or looks_like_id(name)]

    def read(self) -> tuple[Any, list[str]]:
        """The whole file, and which columns had to stay text for their digits; ids of plain whole numbers become integers."""
        pa, arrow = library("pyarrow", self.path), library("pyarrow.csv", self.path)
        quotes, zeros = self._quotes_and_zeros()

        def whole(types: dict[str, Any], columns: Sequence[str] | None = None) -> Any:
            options = self.options(types, columns)
            # Looking for quoted line breaks takes longer than reading; without a quotation mark there are none.
            options["parse_options"].newlines_in_values = quotes
            with open_stream(self.path) as stream:
                return arrow.read_csv(stream, **options)

        table = whole(dict.fromkeys(self.texts, pa.string()))
        suspects = self.suspects(table, zeros)
        raw: Any = whole(dict.fromkeys(suspects, pa.string()), suspects) if suspects else None
        lossy = [name for name in suspects if loses_digits(raw.column(name), table.schema.field(name).type)]
        for name in lossy:
            table = table.set_column(table.schema.get_field_index(name), name, raw.column(name))
        return self.converted(table, self.texts), lossy

    def suspects(self, table: Any, zeros: bool = True) -> list[str]:
        """Columns of numbers that may have lost digits: long whole numbers are read as floats, and zeros, if any, are dropped."""
        compute, types = library("pyarrow.compute", self.path), library("pyarrow.types", self.path)
        found = []
        for column in table.schema:
            if column.name in self.computed:
                continue
            if types.is_floating(column.type):
                ends = compute.min_max(table.column(column.name)).as_py().values()
                if any(end is not None and abs(end) >= 2**63 for end in ends):
                    found.append(column.name)
            elif types.is_integer(column.type) and zeros:
                found.append(column.name)
        return found

    def converted(self, table: Any, columns: Sequence[str]) -> Any:
        """A table whose text columns of these names are numbers again, where that loses nothing."""
        kept = {self.choices.group, *self.zeros} - self.computed
        for name in columns:
            if name not in kept:
                place = table.schema.get_field_index(name)
                ordinary = name in self.computed or not (name == self.choices.id or looks_like_id(name))
                table = table.set_column(place, name, as_numbers(table.column(name), self.decimal, ordinary))
        return table

    def batches(
        self, types: dict[str, Any], columns: Sequence[str] | None = None, progress: Progress | None = None
    ) -> Iterator[Any]:
        """All rows, block by block; of all columns or of some, whose types are known or found in the first block."""
        arrow = library("pyarrow.csv", self.path)
        wanted = None if columns is None else list(columns)
        types = types if wanted is None else {name: types[name] for name in wanted if name in types}
        size = self.path.stat().st_size
        with (
            self.path.open("rb", buffering=0) as raw,
            open_stream(self.path, raw) as stream,
            arrow.open_csv(stream, **self.options(types, wanted)) as reader,
        ):
            for batch in reader:
                yield batch
                if progress is not None:
                    progress(min(raw.tell(), size), size)

    def _quotes_and_zeros(self) -> tuple[bool, bool]:
        """Whether there are quotation marks, and whether there are cells that begin with 0 and another digit."""
        quotes, zeros, before = False, False, b"\n"
        with open_stream(self.path) as stream:
            while block := stream.read(BLOCK):
                quotes = quotes or b'"' in block
                letters = np.frombuffer(before + block, np.uint8)
                places = np.flatnonzero(letters[1:-1] == ord("0")) + 1
                places = places[np.isin(letters[places + 1], list(b"0123456789"))]
                zeros = zeros or bool(np.isin(letters[places - 1], list(b'\r\n"' + self.delimiter.encode())).any())
                before = block[-2:]
        return quotes, zeros

    def size(self) -> float:
        """Bytes of the text, as far as can be told without reading all of it."""
        size = float(self.path.stat().st_size)
        if self.path.suffix.lower() not in COMPRESSIONS:
            return size
        with self.path.open("rb", buffering=0) as raw, open_stream(self.path, raw) as stream:
            known = len(stream.read(1 << 24))
            return known * size / max(1, raw.tell()) if known == 1 << 24 else float(known)


def look_at(path: Path) -> TextTable:
    """Find out how a text table is written, from its first lines."""
    head, whole = _beginning(path)
    text = decoded(path, head)
    lines = text if whole else text[: text.rfind("\n") + 1] or text
    if not lines.strip():
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    ending = ending_of(path)
    delimiter = "\t" if ending in (".tsv", ".tab") else _delimiter(lines)
    records = _records(lines, delimiter)
    if not whole and len(records) > 1:
        records = records[:-1]  # may end in the middle of a quoted text
    decimal = "," if delimiter != "," and _decimal_comma(records) else "."
    notes = []
    if delimiter != "," and ending == ".csv":
        notes.append(f"Cells are separated by a {DELIMITERS[delimiter]}.")
    if decimal == ",":
        notes.append("Numbers are written with a decimal comma.")
    names, has_header = _names(records[0], decimal, notes)
    if has_header and whole and len(records) == 1:
        raise FileFault(path, "has a header and no rows", "Write it again with its rows, or name another one.")
    body = records[1:] if has_header else records
    zeros = [name for name, cells in zip(names, _cells(body, len(names)), strict=True) if _has_leading_zeros(cells)]
    skipped = next(i for i, line in enumerate(io.StringIO(lines, newline="")) if line.strip("\r\n"))
    row_bytes = len(lines.encode()) / len(records)
    return TextTable(path, delimiter, decimal, tuple(names), has_header, skipped, tuple(notes), tuple(zeros), row_bytes)


def _beginning(path: Path) -> tuple[bytes, bool]:
    """The first lines of a file, at least two of them, and whether that is all of it."""
    head, step = b"", LOOKED_AT
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
    before = csv.field_size_limit(LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(text: str, delimiter: str) -> list[list[str]]:
    """Records of the first lines that are not empty, as far as they can be read."""
    records = []
    with suppress(csv.Error), long_cells():
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if record:
                records.append(record)
    return records


def _delimiter(text: str) -> str:
    """Of comma, semicolon, tab and bar the one that cuts the first lines into equally many cells, numbers if possible."""
    best, found = (0.0, 1), ","
    for candidate in DELIMITERS:
        rows = _records(text[:20_000], candidate)
        rows = rows[: max(1, min(50, len(rows) - 1))]
        width = len(rows[0]) if rows else 1
        if width == 1 or sum(len(row) == width for row in rows) < 0.8 * len(rows):
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(is_number_text(cell, ".") or is_number_text(cell, ",") for cell in cells) / len(cells)
        if (numbers, width) > best:
            best, found = (numbers, width), candidate
    return found


def _decimal_comma(records: list[list[str]]) -> bool:
    cells = [cell.strip() for record in records for cell in record]
    commas = sum(bool(re.fullmatch(r"[-+]?\d+,\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    return commas > points


def _names(first: list[str], decimal: str, notes: list[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds them."""
    cells = [cell.strip() for cell in first]
    filled = [cell for cell in cells if cell not in MISSING or not cell]
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


def _cells(records: list[list[str]], width: int) -> list[list[str]]:
    return [[record[j] for record in records if j < len(record)] for j in range(width)]


def _has_leading_zeros(cells: list[str]) -> bool:
    filled = [cell.strip() for cell in cells if cell.strip() not in MISSING]
    return any(re.fullmatch(r"0\d+", cell) for cell in filled) and all(cell.isdecimal() for cell in filled)
