"""Text tables: how they are written (delimiter, header, decimal comma), reading them with pyarrow, and where they are wrong."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mosaic._frames import looks_like_id
from mosaic.rows.columns import TextColumns, table_in_memory
from mosaic.rows.csv_style import (
    DELIMITERS,
    LEADING_ZERO,
    LONGEST_ROW,
    as_numbers,
    beginning,
    cell_kinds,
    delimiter_of,
    filled_cells,
    has_decimal_comma,
    has_leading_zeros,
    is_number_text,
    long_cells,
    loses_digits,
    names_of,
    records_of,
)
from mosaic.rows.faults import FileFault, check_unpacked, no_rows, readable
from mosaic.rows.features import Request, check_names, is_number, is_text, lay_out
from mosaic.rows.parquet import table_by_conversion
from mosaic.rows.table import InMemory, Table
from mosaic.rows.text import COMPRESSIONS, decoded, ending_of, not_utf8, open_stream, wrong_encoding
from mosaic.text import Library, listed

pa, pc, arrow, types = (Library(f"pyarrow{module}") for module in ("", ".compute", ".csv", ".types"))

#: Bytes that are parsed at a time, unless rows are so long that few would fit; and the share of the budget that they are at most,
#: since pyarrow reads some blocks ahead, and each takes several times its size while it is parsed.
PARSED_BYTES, PARSED_SHARE = 1 << 22, 512
#: Share of the cells of a text column that are numbers, from which on the others are taken for mistakes.
MOSTLY_NUMBERS = 0.5
#: Line breaks within a row of the wrong length that show an open quotation mark.
BREAKS_OF_AN_OPEN_QUOTE = 5
#: Letters of a cell that a message shows.
SHOWN_LETTERS = 40
NO_ROWS = "has a header and no rows"
#: What pyarrow says of a row that it cannot parse or convert.
PARSE_ERROR = re.compile(
    r"Row #(?P<row>\d+): (?:Expected \d+ columns, got (?P<cells>\d+)(?:: (?P<text>.*))?"
    r"|CSV conversion error to (?P<type>\w+): invalid value '(?P<value>.*)')",
    re.DOTALL,
)


class NoNumber(FileFault):
    """The fault of a cell that is no number in a column of numbers, with the column and what the cell holds."""

    def __init__(self, fault: FileFault, name: str, cell: str):
        super().__init__(fault.file, fault.fault, fault.remedy, line=fault.line, column=name)
        self.name, self.cell = name, cell

    def __reduce__(self) -> tuple[object, ...]:
        return FileFault, (self.file, self.fault, self.remedy), vars(self)


@dataclass(frozen=True)
class TextTable:
    """How a text file holds a table.

    Attributes
    ----------
    request : what is asked of the file
    delimiter, decimal : between cells, and in numbers
    names : of the columns
    has_header : whether the first line that is not empty names them
    skipped : empty lines before it
    notes : what was assumed
    codes : columns of whole numbers that lose digits as numbers: leading zeros, or more digits than an integer holds
    row_bytes : of a row of the first lines, on average
    texts : columns in which cells were found that are no numbers, although those of the first lines are
    fractions : of a table of more columns than rows, the columns whose first cells are numbers with a decimal point
    """

    request: Request
    delimiter: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    skipped: int
    notes: tuple[str, ...]
    codes: tuple[str, ...]
    row_bytes: float
    texts: tuple[str, ...] = ()
    fractions: tuple[str, ...] = ()

    @property
    def computed(self) -> set[str]:
        """Columns that the user computes with: numbers, whatever they look like."""
        return {*(self.request.columns or ()), *([] if self.request.weight is None else [self.request.weight])}

    @property
    def as_written(self) -> list[str]:
        """Columns that are read as they are written: ids and groups, whose zeros and digits count."""
        kept = {self.request.id, *({self.request.group} - self.computed), *self.codes}
        return [name for name in self.names if name in kept or looks_like_id(name)]

    def options(self, kinds: dict[str, Any], columns: Sequence[str] | None, threads: bool = True) -> dict[str, Any]:
        """What pyarrow is told: types of columns, and which columns, all if None."""
        parsed = min(PARSED_BYTES, self.request.budget / PARSED_SHARE)
        return {
            "read_options": arrow.ReadOptions(
                block_size=int(min(max(parsed, 16 * self.row_bytes), LONGEST_ROW)),
                column_names=list(self.names),
                skip_rows=self.skipped,
                skip_rows_after_names=int(self.has_header),
                use_threads=threads,
            ),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                decimal_point=self.decimal,
                column_types=kinds,
                include_columns=None if columns is None else list(columns),
            ),
        }

    def read(self, kinds: dict[str, Any], columns: Sequence[str] | None = None, quotes: bool = True) -> Any:
        """The whole file, as a ``pyarrow.Table``. Looking for line breaks in quotation marks takes longer than reading."""
        # Two threads that share thousands of short columns take twice the time of one.
        options = self.options(kinds, columns, threads=not self.fractions)
        options["parse_options"].newlines_in_values = quotes
        with self.explained(kinds, columns), open_stream(self.request.path) as stream:
            return arrow.read_csv(stream, **options)

    def batches(self, kinds: dict[str, Any], columns: Sequence[str] | None = None, told: bool = False) -> Iterator[Any]:
        """All rows, block by block; of all columns or of some. Whoever waits is told how far it is, if ``told`` says so."""
        path, progress = self.request.path, self.request.progress if told else None
        size = path.stat().st_size
        with (
            self.explained(kinds, columns),
            path.open("rb", buffering=0) as raw,
            open_stream(path, raw) as stream,
            arrow.open_csv(stream, **self.options(kinds, columns)) as reader,
        ):
            for batch in reader:
                yield batch
                if progress is not None:
                    progress(min(raw.tell(), size), size)

    @contextmanager
    def explained(self, kinds: dict[str, Any], columns: Sequence[str] | None) -> Iterator[None]:
        """Turn what pyarrow says of a file into its line, its column and a remedy."""
        with readable(self.request.path):
            try:
                yield
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise self._fault(str(error), kinds, columns) from error

    def _fault(self, said: str, kinds: dict[str, Any], columns: Sequence[str] | None) -> FileFault:
        """What is wrong with a file that pyarrow refuses. Read by one thread, pyarrow counts the rows."""
        path = self.request.path
        if (fault := wrong_encoding(path)) is not None:
            return fault
        with suppress(OSError), open_stream(path) as stream:
            try:
                for _ in arrow.open_csv(stream, **self.options(kinds, columns, threads=False)):
                    pass
            except pa.ArrowInvalid as error:
                said = str(error)
        if (line := self._long_line()) is not None:
            too_long = f"the line is longer than {LONGEST_ROW >> 20} MiB, which is the longest that is read"
            return FileFault(path, too_long, "Cut its cells short, or write the table as Parquet.", line=line)
        unclosed = (
            "a quotation mark is opened and not closed",
            'Close it, or write a quotation mark in a text twice: "".',
        )
        found = PARSE_ERROR.search(said)
        is_parsed = found is not None and found["cells"] is None
        if not is_parsed and (line := self._open_quote()) is not None:
            return FileFault(path, *unclosed, line=line)
        if found is None:
            said = " ".join(said.split())[:300]
            return FileFault(path, f"cannot be read as a table ({said})", "Write it again as CSV in UTF-8.")
        row = int(found["row"]) - 1 - self.skipped - int(self.has_header)
        if found["cells"] is None:
            column = re.search(r"In CSV column #(\d+)", said)
            name = None if column is None else self.names[int(column[1])]
            what = "neither true nor false" if found["type"] == "bool" else "not a number"
            fault = self.odd_cell(name, found["value"], row, what)
            return fault if name is None else NoNumber(fault, name, found["value"])
        line = self.line_of(row)
        if (found["text"] or "").count("\n") > BREAKS_OF_AN_OPEN_QUOTE:
            return FileFault(path, *unclosed, line=line)
        number, expected = int(found["cells"]), len(self.names)
        like = "as the header has" if self.has_header else "as the first line has"
        return FileFault(
            path,
            f"has {number} {'cell' if number == 1 else 'cells'} instead of {expected}, {like}",
            "Correct the line; a cell that holds the delimiter or a line break must be in quotation marks.",
            line=line,
        )

    def odd_cell(self, name: str | None, value: str, row: int, what: str) -> FileFault:
        """The fault of a cell that is no number."""
        instead = "" if name is None else f", or do not compare rows by the column: `exclude_columns={name!r}`"
        return FileFault(
            self.request.path,
            f"{_shown(value)} is {what}",
            f"Correct the cell (a missing number is an empty cell or NA){instead}.",
            line=self.line_of(row),
            column=name,
        )

    def line_of(self, number: int) -> int | None:
        """The line that a row begins on, counted from 1: quoted line breaks and empty lines count, and so does the header."""
        found, wanted = None, number + int(self.has_header)
        with suppress(csv.Error, OSError):
            for line, row in self._rows():
                if row > wanted:
                    return found
                if row == wanted:  # also true of empty lines before it
                    found = line
        return None

    def _long_line(self) -> int | None:
        """The first line that is longer than a row may be, whatever is in it."""
        line, length = 1, 0
        with suppress(OSError), open_stream(self.request.path) as stream:
            while block := stream.read(PARSED_BYTES):
                first = block.find(b"\n")
                length += len(block) if first < 0 else first
                if length > LONGEST_ROW:
                    return line
                if first >= 0:  # lines within a block are shorter than it
                    line, length = line + block.count(b"\n"), len(block) - block.rfind(b"\n") - 1
        return None

    def _open_quote(self) -> int | None:
        """The line of a row that does not end because of its quotation marks."""
        begun = 1
        try:
            for line, _ in self._rows(strict=True):
                begun = line
        except csv.Error as error:
            # At the end of the file, or in a cell longer than any text.
            return begun if "unexpected end" in str(error) or "field larger" in str(error) else None
        return None

    def _rows(self, strict: bool = False) -> Iterator[tuple[int, int]]:
        """For every line that something begins on, before it is read, and at the end: the line, and how many rows came before."""
        with long_cells(), open_stream(self.request.path) as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
            reader, row = csv.reader(lines, delimiter=self.delimiter, strict=strict), 0
            while True:
                line = reader.line_num + 1
                yield line, row
                try:
                    record = next(reader, None)
                except csv.Error as error:
                    if "expected after" not in str(error):
                        raise
                    record = ["text behind a closed quotation mark, which pyarrow does not mind"]
                if record is None:
                    return
                row += bool(record)  # an empty line is no row

    def check_cells(self, table: Any, names: Sequence[str]) -> None:
        """Refuse text that is numbers but for some cells: to leave such a column out is hardly what is wanted."""
        for name in names:
            column = table.column(name)
            if not is_text(column.type):
                continue
            number, missing = cell_kinds(column, self.decimal)
            filled, good = len(column) - (pc.sum(missing).as_py() or 0), pc.sum(number).as_py() or 0
            if filled and good >= MOSTLY_NUMBERS * filled:
                row = pc.index(pc.or_(number, missing), False).as_py()
                if row >= 0:
                    said = f"not a number, as {good:,} of {filled:,} cells of this column are"
                    raise self.odd_cell(name, column[row].as_py(), row, said)

    def may_be_codes(self, table: Any, zeros: bool) -> list[str]:
        """Columns of numbers that may have lost digits: long whole numbers are read as floats, and zeros, if any, are dropped."""
        kinds, computed = [field.type for field in table.schema], self.computed
        floats = [i for i, kind in enumerate(kinds) if types.is_floating(kind)]
        suspects = {i for i, kind in enumerate(kinds) if zeros and types.is_integer(kind)}
        # All at once first: one by one, thousands of columns take seconds.
        if _is_long([chunk for i in floats for chunk in table.column(i).chunks]):
            suspects.update(i for i in floats if _is_long(table.column(i).chunks))
        return [name for i, name in enumerate(table.column_names) if i in suspects and name not in computed]

    def as_shown(self, table: Any, columns: Sequence[str]) -> Any:
        """A table whose text columns of these names are numbers again, where that loses nothing."""
        kept = {self.request.group, *self.codes} - self.computed
        there = set(table.column_names)
        for name in columns:
            if name in there and name not in kept and types.is_string(table.schema.field(name).type):
                ordinary = name in self.computed or not (name == self.request.id or looks_like_id(name))
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, as_numbers(table.column(name), self.decimal, ordinary))
        return table

    def size(self) -> float:
        """Bytes of the text, as far as can be told without reading all of it."""
        path = self.request.path
        size = float(path.stat().st_size)
        if path.suffix.lower() not in COMPRESSIONS:
            return size
        with path.open("rb", buffering=0) as raw, open_stream(path, raw) as stream:
            known = len(stream.read(1 << 24))
            return known * size / max(1, raw.tell()) if known == 1 << 24 else float(known)

    def has_quotes_and_zeros(self) -> tuple[bool, bool]:
        """Whether there are quotation marks, and whether there are cells that begin with 0 and another digit."""
        quotes, zeros, tail = False, False, b"\n"
        zero = re.compile(rb'[\r\n"' + re.escape(self.delimiter.encode()) + rb"]0[0-9]")
        with open_stream(self.request.path) as stream:
            while block := stream.read(PARSED_BYTES):
                quotes = quotes or b'"' in block
                zeros = zeros or zero.search(tail + block) is not None
                tail = block[-2:]
        return quotes, zeros


def open_text_table(request: Request) -> Table:
    """A .csv or .tsv file, compressed or not.

    A file whose numbers would take more than an eighth of the budget, or whose text more than a sixth, is converted to a
    temporary Parquet file: read as a whole it takes four times as much while types are found.
    """
    with readable(request.path):
        text = how_it_is_written(request)
        size = text.size()
    numbers = 8 * size / text.row_bytes * len(text.names)
    check_names(request, list(text.names))
    if request.path.suffix.lower() in COMPRESSIONS:
        check_unpacked(request.path, max(size, numbers), request.path.stat().st_size, request.budget)
    if numbers > request.budget / 8 or size > request.budget / 6:
        return _open_large(text, size)
    quotes, zeros = text.has_quotes_and_zeros()
    text, table = _read_types(text, partial(text.read, quotes=quotes), zeros)
    if request.progress is not None:
        request.progress(request.path.stat().st_size, request.path.stat().st_size)
    if not table.num_rows:
        raise no_rows(request.path, NO_ROWS)
    known = TextColumns(text.notes, text.codes, check=partial(text.check_cells, table))
    return table_in_memory(request, InMemory(table, text.line_of), known)


def _open_large(text: TextTable, size: float) -> Table:
    """A file that is converted to Parquet: features and weights as numbers, all other columns as they are written."""
    request = text.request

    def first_block(kinds: dict[str, Any], columns: Sequence[str] | None = None) -> Any:
        block = next(text.batches(kinds, columns), None)
        if block is None or not block.num_rows:
            raise no_rows(request.path, NO_ROWS)
        return pa.Table.from_batches([block])

    text, sample = _read_types(text, first_block)
    for name, found in _types_further_down(text, sample.schema).items():
        sample = sample.set_column(sample.schema.get_field_index(name), name, pa.nulls(sample.num_rows, found))
    for name in text.texts:
        sample = sample.set_column(sample.schema.get_field_index(name), name, pa.nulls(sample.num_rows, pa.string()))
    layout = lay_out(request, sample.schema)
    counted = {*layout.features, *([] if request.weight is None else [request.weight])} - {request.embedding}
    # Whole numbers of the first block may have fractions further down.
    kinds = {name: pa.float64() if name in counted else pa.string() for name in text.names}
    kinds |= {field.name: field.type for field in sample.schema if field.type == pa.bool_()}
    kinds |= dict.fromkeys(text.texts, pa.string())
    numbers = [field.name for field in sample.schema if is_number(field.type)]
    whole = [field.name for field in sample.schema if types.is_integer(field.type)]

    def shown(table: Any) -> Any:
        return text.as_shown(_whole_again(table, whole), numbers)

    try:
        return table_by_conversion(
            request,
            layout,
            text.batches(kinds, text.names, told=True),
            size,
            shown=shown,
            line=text.line_of,
            text=TextColumns(text.notes, text.codes, text.texts, partial(text.check_cells, sample)),
        )
    except NoNumber as fault:
        if fault.name not in layout.compared:
            raise
        # The column is read as text, as that of a small file is.
        place = "" if fault.line is None else f" in line {fault.line:,}"
        said = f"Cells of {fault.name!r} that are no numbers count as missing, the first{place}: {_shown(fault.cell)}."
        return _open_large(replace(text, texts=(*text.texts, fault.name), notes=(*text.notes, said)), size)


def _read_types(
    text: TextTable, read: Callable[[dict[str, Any], Sequence[str] | None], Any], zeros: bool = True
) -> tuple[TextTable, Any]:
    """A table with the types that pyarrow finds, apart from columns of whole numbers that would lose digits: they stay text.

    Parameters
    ----------
    text : how the file is written; it is returned with the columns that stay text
    read : reads some columns, all if None, with the types that are given, and others with those that pyarrow finds
    zeros : whether numbers with leading zeros may be among the cells
    """
    kinds = dict.fromkeys(text.as_written, pa.string())
    try:
        table = read(dict.fromkeys(text.fractions, pa.float64()) | kinds, None)
    except FileFault:
        if not text.fractions:
            raise
        table = read(kinds, None)  # further down there are other cells
    if any(types.is_binary(field.type) for field in table.schema):  # what is not UTF-8 is read as bytes
        raise not_utf8(text.request.path)
    suspects, codes = text.may_be_codes(table, zeros), list(text.codes)
    raw: Any = read(dict.fromkeys(suspects, pa.string()), suspects) if suspects else None
    for name in suspects:
        if loses_digits(raw.column(name), table.schema.field(name).type):
            codes.append(name)
            table = table.set_column(table.schema.get_field_index(name), name, raw.column(name))
    table = text.as_shown(table, text.as_written)
    said = f"Read as text, since their whole numbers would lose digits or zeros: {listed(codes)}."
    return replace(text, codes=tuple(codes), notes=(*text.notes, *([said] if codes else []))), table


def _whole_again(table: Any, columns: Sequence[str]) -> Any:
    """A table whose floats of these names are integers, where all of them are whole."""
    there = set(table.column_names)
    for name in columns:
        if name in there and types.is_floating(table.schema.field(name).type):
            with suppress(pa.ArrowInvalid):
                integers = table.column(name).cast(pa.int64())
                table = table.set_column(table.schema.get_field_index(name), name, integers)
    return table


def _types_further_down(text: TextTable, schema: Any) -> dict[str, Any]:
    """Types of columns that are empty in the first block, from the first block that holds something in them."""
    empty = [field.name for field in schema if field.type == pa.null()]
    found: dict[str, Any] = {}
    for batch in text.batches(dict.fromkeys(empty, pa.string()), empty) if empty else ():
        for name in set(empty) - set(found):
            cells = batch.column(name)
            if filled_cells(cells).null_count < len(cells):
                found[name] = as_numbers(cells, text.decimal).type
        if len(found) == len(empty):
            break
    return found


def how_it_is_written(request: Request) -> TextTable:
    """Find out how a text table is written, from its first lines."""
    path = request.path
    head, whole = beginning(path)
    text = decoded(path, head)
    lines = text if whole else text[: text.rfind("\n") + 1] or text
    if not lines.strip():
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    ending = ending_of(path)
    delimiter = "\t" if ending in (".tsv", ".tab") else delimiter_of(lines)
    records = records_of(lines, delimiter)
    if not records:
        fault = f"its first line is longer than {LONGEST_ROW >> 20} MiB, which is the longest that is read, or no text"
        raise FileFault(path, fault, "Write it again with line breaks, or as Parquet.", line=1)
    if not whole and len(records) > 1:
        records = records[:-1]  # may end in the middle of a quoted text
    decimal = "," if delimiter != "," and has_decimal_comma(records) else "."
    notes = []
    if delimiter != "," and ending == ".csv":
        notes.append(f"Cells are separated by a {DELIMITERS[delimiter]}.")
    if decimal == ",":
        notes.append("Numbers are written with a decimal comma.")
    names, has_header = names_of(records[0], decimal, notes)
    if has_header and whole and len(records) == 1:
        raise no_rows(path, NO_ROWS)
    body = records[1:] if has_header else records
    zeros = {j for row in body for j, cell in enumerate(row) if LEADING_ZERO.match(cell)}
    codes = [
        names[j]
        for j in sorted(zeros)
        if j < len(names) and has_leading_zeros([row[j] for row in body if j < len(row)])
    ]
    # pyarrow tries one type after the other in each column, which takes seconds where there are thousands.
    wide = body[0] if body and len(names) > len(body) else []
    fractions = tuple(
        name for name, cell in zip(names, wide, strict=False) if decimal in cell and is_number_text(cell, decimal)
    )
    skipped = next(i for i, line in enumerate(io.StringIO(lines, newline="")) if line.strip("\r\n"))
    row_bytes = len(lines.encode()) / len(records)
    made = TextTable(
        request, delimiter, decimal, tuple(names), has_header, skipped, tuple(notes), (), row_bytes, fractions=fractions
    )
    computed = made.computed
    return replace(made, codes=tuple(name for name in codes if name not in computed))


def _is_long(chunks: list[Any]) -> bool:
    """Whether a number is as large as whole numbers that an integer does not hold."""
    ends = pc.min_max(pa.chunked_array(chunks, pa.float64())).as_py().values() if chunks else ()
    return any(end is not None and abs(end) >= 2**63 for end in ends)


def _shown(cell: str) -> str:
    """What a cell holds, shortened."""
    return repr(cell if len(cell) <= SHOWN_LETTERS else cell[:SHOWN_LETTERS] + "…")
