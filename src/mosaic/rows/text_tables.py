"""Text tables and workbooks: how they are written (delimiter, header, decimal comma), and where they are wrong.

Cells are read as text. A column is whole numbers, numbers, true or false, or text, as all of its cells are.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mosaic.exceptions import MosaicError
from mosaic.rows.arrow import COMPRESSIONS, check_encoding, decoded, open_stream, rows_of_batches
from mosaic.rows.build import table_rows
from mosaic.rows.faults import FileFault, check_unpacked, close_to, no_rows, readable
from mosaic.rows.frames import looks_like_id
from mosaic.rows.kinds import MISSING_CELLS, number_pattern, quoted
from mosaic.rows.roles import Request, check_names
from mosaic.rows.rows import InMemory, Rows
from mosaic.text import Library, listed

pa, pc, arrow, types = (Library(f"pyarrow{module}") for module in ("", ".compute", ".csv", ".types"))
calamine = Library("python_calamine")

#: Bytes that are parsed at a time, at most and at least, and the share of the budget that they are between these, since pyarrow
#: reads some blocks ahead.
PARSED_BYTES, LEAST_PARSED, PARSED_SHARE = 1 << 22, 1 << 16, 512
#: Rows that are parsed at a time, at least; columns from which on threads that share them take longer than one.
ROWS_AT_ONCE, MANY_COLUMNS = 64, 1000
#: Bytes at the beginning of a file that show how it is written; bytes of the longest row that is read.
INSPECTED_BYTES, LONGEST_ROW = 1 << 18, 1 << 26
#: Cells of a column that a type is tried with first.
TRIED = 64
#: Line breaks within a row of the wrong length that show an open quotation mark.
BREAKS_OF_AN_OPEN_QUOTE = 5
#: Bytes of memory that a byte of the XML of a workbook takes while it is read, at most.
GROWTH = 8
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
NO_ROWS = "has a header and no rows"
#: Kinds of columns: whole numbers that would lose zeros or digits are codes, and stay text beside others of their like.
EMPTY, WHOLE, CODE, FRACTION, TRUTH, TEXT = "empty", "whole", "code", "fraction", "truth", "text"


@dataclass(frozen=True)
class TextTable:
    """How a text file holds a table.

    Attributes
    ----------
    delimiter, decimal : between cells, and in numbers
    names : of the columns
    has_header : whether the first line that is not empty names them
    skipped : empty lines before it
    notes : what was assumed
    row_bytes : of a row of the first lines, on average
    known : of every column FRACTION, if its first cells are numbers, one with a fraction, so that it is these or text; or None
    """

    request: Request
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    skipped: int
    notes: list[str]
    row_bytes: float
    known: list[str | None]

    def batches(self, kinds: Sequence[str | None], columns: Sequence[int], told: bool = False) -> Iterator[Any]:
        """All rows of these columns, block by block, as cells of these kinds; as text where there is none."""
        request, path = self.request, self.request.path
        types: dict[str | None, Any] = {EMPTY: pa.null(), WHOLE: pa.int64(), FRACTION: pa.float64(), TRUTH: pa.bool_()}
        names = [self.names[j] for j in columns]
        parsed = min(PARSED_BYTES, max(LEAST_PARSED, request.budget / PARSED_SHARE))
        options = {
            "read_options": arrow.ReadOptions(
                block_size=int(min(max(parsed, ROWS_AT_ONCE * self.row_bytes), LONGEST_ROW)),
                column_names=self.names,
                skip_rows=self.skipped,
                skip_rows_after_names=int(self.has_header),
                use_threads=len(names) < MANY_COLUMNS,
            ),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                column_types={name: types.get(kinds[j], pa.string()) for j, name in zip(columns, names, strict=True)},
                include_columns=names,
                decimal_point=self.decimal,
                null_values=sorted(MISSING_CELLS),
            ),
        }
        size = path.stat().st_size
        with readable(path), path.open("rb", buffering=0) as raw, open_stream(request, raw) as stream:
            try:
                for batch in arrow.open_csv(stream, **options):
                    yield batch
                    if told and request.progress is not None:
                        request.progress(min(raw.tell(), size), size)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                if "CSV conversion error" in str(error) and any(kinds):
                    raise OtherCellError from error
                raise self._fault(str(error)) from error

    def parsed(self, name: str, column: Any, computed: bool) -> tuple[str, Any]:
        """What the cells of a column are, and the cells as such; ``computed``: numbers are what the user wants."""
        kind, cells = self._parsed(column, as_written=not computed and _is_named(self.request, name))
        return (FRACTION, self.cast(column, FRACTION)) if computed and kind == CODE else (kind, cells)

    def _parsed(self, column: Any, as_written: bool) -> tuple[str, Any]:
        """As cells are written, without a look at blanks and marks of missing cells; if that fails, with it."""
        if as_written:
            whole = _tried(_integers, column)
            if whole is not None and whole.cast(pa.string()).equals(column):
                return WHOLE, whole
            return (TEXT, column) if pc.any(pc.not_equal(column, "")).as_py() else (EMPTY, pa.nulls(len(column)))
        for again in (False, True):
            cells = filled(column) if again else column
            if again and cells.null_count == len(cells):
                return EMPTY, pa.nulls(len(column))
            fraction = self.decimal in (cells[0].as_py() or "")
            if not fraction and (whole := _tried(_integers, cells)) is not None:
                same = whole.cast(pa.string()).equals(cells)
                zeros = not same and pc.any(pc.match_substring_regex(cells, r"^[-+]?0\d")).as_py()
                return (CODE, column) if zeros else (WHOLE, whole)
            if (numbers := _tried(self._floats, cells)) is not None:
                long = any(abs(end or 0.0) >= 2**63 for end in pc.min_max(numbers).as_py().values())
                # Whole numbers of more digits than an integer holds.
                is_code = long and pc.all(pc.match_substring_regex(cells, r"^[-+]?\d+$")).as_py()
                return (CODE, column) if is_code else (FRACTION, numbers)
        truth = _tried(_booleans, cells)
        return (TEXT, column) if truth is None else (TRUTH, truth)

    def _floats(self, cells: Any) -> Any:
        if self.decimal == ".":
            return cells.cast(pa.float64())
        if pc.any(pc.match_substring(cells, ".")).as_py():
            raise pa.ArrowInvalid("a point in numbers with a decimal comma")
        return pc.replace_substring(cells, ",", ".").cast(pa.float64())

    def cast(self, column: Any, kind: str) -> Any:
        """A column of text as cells of a kind that all of them are."""
        if kind == EMPTY:
            return pa.nulls(len(column))
        if kind not in (WHOLE, FRACTION, TRUTH):
            return column
        function = {WHOLE: _integers, FRACTION: self._floats, TRUTH: _booleans}[kind]
        cells = _tried(function, column)
        return function(filled(column)) if cells is None else cells

    def line_of(self, number: int) -> int | None:
        """The line that a row begins on, counted from 1: quoted line breaks and empty lines count, and so does the header."""
        with suppress(csv.Error, OSError):
            for row, (line, _) in enumerate(self._records(), -int(self.has_header)):
                if row == number:
                    return line
        return None

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """For every record that is not empty, the line that it begins on, and its cells."""
        with long_cells(), open_stream(self.request) as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
            reader, begun = csv.reader(lines, delimiter=self.delimiter), 1
            for record in reader:
                if record:
                    yield begun, record
                begun = reader.line_num + 1

    def _fault(self, said: str) -> FileFault:
        """What is wrong with a file that pyarrow refuses."""
        path, expected = self.request.path, len(self.names)
        check_encoding(self.request)
        odd: tuple[int, list[str]] | None = None
        last: tuple[int, list[str]] = (1, [])
        is_open, what = False, "a quotation mark is opened and not closed"
        try:
            for last in self._records():
                if odd is None and len(last[1]) != expected:
                    odd = last
                    is_open = sum(cell.count("\n") for cell in odd[1]) > BREAKS_OF_AN_OPEN_QUOTE
                    if is_open:
                        break
        except csv.Error:
            is_open, odd = odd is None, odd or (last[0] + 1, [])
            what = f"a cell is longer than {LONGEST_ROW / 2**20:g} MiB, or {what}"
        if not is_open and last[1] and last[1][-1].endswith("\n") and odd in (None, last):
            is_open, odd = True, last
        if is_open and odd is not None:
            remedy = 'Close it, or write a quotation mark in a text twice: "".'
            return FileFault(path, what, remedy, line=odd[0])
        if odd is None:
            said = " ".join(said.split())[:300]
            return FileFault(path, f"cannot be read as a table ({said})", "Write it again as CSV in UTF-8.")
        like, number = "as the header has" if self.has_header else "as the first line has", len(odd[1])
        return FileFault(
            path,
            f"has {number} {'cell' if number == 1 else 'cells'} instead of {expected}, {like}",
            "Correct the line; a cell that holds the delimiter or a line break must be in quotation marks.",
            line=odd[0],
        )


def open_text_table(request: Request) -> Rows:
    """A .csv or .tsv file, compressed or not. A large one is read twice, unless its first lines tell the kinds of all columns."""
    path, budget = request.path, request.budget
    with readable(path):
        text = sniff_csv(request)
        stored = unpacked = float(path.stat().st_size)
    check_names(request, text.names)
    if request.ending.endswith(tuple(COMPRESSIONS)):
        with readable(path), path.open("rb", buffering=0) as raw, open_stream(request, raw) as stream:
            known = len(stream.read(1 << 24))
            unpacked = known * stored / max(1, raw.tell()) if known == 1 << 24 else known
        check_unpacked(path, max(1.0, 8 * len(text.names) / text.row_bytes) * unpacked, stored, budget)
    try:
        return _rows_of(text, unpacked > budget / 6)
    except OtherCellError:
        return _rows_of(text, unpacked > budget / 6, in_python=True)


def _rows_of(text: TextTable, is_large: bool, in_python: bool = False) -> Rows:
    """Rows whose cells pyarrow converts where their kinds are known. If it cannot, all are converted here, which takes longer."""
    request, names = text.request, text.names
    computed = {*(request.columns or ()), request.weight}
    every, as_text = range(len(names)), [None] * len(names)
    known = as_text if in_python else text.known
    asked = [j for j in every if known[j] is None]
    kinds = [kind or EMPTY for kind in known]
    notes, size, row = list(text.notes), 0, 0
    kept: list[tuple[Any, dict[int, tuple[str, Any]]]] = []
    looked_at = asked if is_large else every
    for batch in text.batches(known, looked_at, told=True) if looked_at else ():
        columns = dict(zip(looked_at, batch.columns, strict=True)) if asked else {}
        parsed = {j: text.parsed(names[j], columns[j], names[j] in computed) for j in asked}
        size += batch.nbytes
        is_large = is_large or size > request.budget / 6
        kept = [] if is_large else [*kept, (batch, parsed)]
        for j, (kind, _) in parsed.items():
            if kind == TEXT and kinds[j] in (WHOLE, FRACTION) and is_large:
                notes.append(_odd_cell(text, j, columns[j], row))
            kinds[j] = _either(kinds[j], kind)
        row += batch.num_rows
    if looked_at and not row:
        raise no_rows(request.path, NO_ROWS)

    def converted(batches: Iterable[tuple[Any, dict[int, tuple[str, Any]]]]) -> Iterator[Any]:
        for batch, parsed in batches:
            columns = batch.columns if asked else []
            for j in asked:
                was, cells = parsed.get(j, (None, None))
                columns[j] = cells if was == kinds[j] else text.cast(columns[j], kinds[j])
            yield pa.RecordBatch.from_arrays(columns, names=names) if asked else batch

    found = converted(kept)
    if is_large and in_python:
        found = converted((batch, {}) for batch in text.batches(as_text, every))
    elif is_large:
        found = text.batches(kinds, every, told=not looked_at)
    return rows_of_batches(request, found, notes=notes, line=text.line_of, decimal=text.decimal)


class OtherCellError(MosaicError):
    """A cell is not what pyarrow takes for one of its kind, such as a mark of missing cells between blanks."""


def _is_named(request: Request, name: str) -> bool:
    """Whether the cells of a column name rows or groups."""
    return name in (request.id, request.group) or looks_like_id(name)


def _tried(cast: Callable[[Any], Any], cells: Any) -> Any:
    """The cells as another type, None where one is none. Some are tried first, as a cast that fails does so for every cell."""
    with suppress(pa.ArrowInvalid):
        if len(cells) > TRIED:
            cast(cells.slice(0, TRIED))
        return cast(cells)
    return None


def _integers(cells: Any) -> Any:
    return cells.cast(pa.int64())


def _booleans(cells: Any) -> Any:
    return cells.cast(pa.bool_())


def _either(one: str, other: str) -> str:
    """The kind of a column in which there are cells of two kinds."""
    if other in (one, EMPTY):
        return one
    if one == EMPTY:
        return other
    if {one, other} <= {WHOLE, CODE, FRACTION}:
        return FRACTION if FRACTION in (one, other) else CODE
    return TEXT


def _odd_cell(text: TextTable, j: int, column: Any, before: int) -> str:
    """What is said of the first cell that is no number in a column of numbers."""
    cells = filled(column)
    number = pc.match_substring_regex(pc.fill_null(cells, "0"), f"^(?:{number_pattern(text.decimal)})$")
    row = max(pc.index(number, False).as_py(), 0)
    line = text.line_of(before + row)
    place = "" if line is None else f" in line {line:,}"
    return f"Cells of {text.names[j]!r} that are no numbers count as missing, the first{place}: {quoted(column[row].as_py())}."


def filled(column: Any) -> Any:
    """Cells of text without the blanks around them, missing ones as null."""
    cells = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(cells, value_set=pa.array(sorted(MISSING_CELLS))), None, cells)


def sniff_csv(request: Request) -> TextTable:
    """Find out how a text table is written, from its first lines."""
    path, ending = request.path, request.ending.partition(".")[2].partition(".")[0]
    head, step, whole = b"", INSPECTED_BYTES, False
    with open_stream(request) as stream:
        while not whole and head.count(b"\n") <= 2 and len(head) <= LONGEST_ROW:
            more = stream.read(step)
            head, whole, step = head + more, len(more) < step, len(head) + len(more)
    text = decoded(request, head)
    lines = text if whole else text[: text.rfind("\n") + 1] or text
    if not lines.strip():
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    delimiter = "\t" if ending in ("tsv", "tab") else _delimiter_of(lines)
    records = _records_of(lines, delimiter)
    if not records:
        fault = f"its first line is longer than {LONGEST_ROW >> 20} MiB, which is the longest that is read, or no text"
        raise FileFault(path, fault, "Write it again with line breaks, or as Parquet.", line=1)
    if not whole and len(records) > 1:
        records = records[:-1]  # may end in the middle of a quoted text
    decimal = "," if delimiter != "," and _has_decimal_comma(records) else "."
    notes = []
    if delimiter != "," and ending == "csv":
        notes.append(f"Cells are separated by a {DELIMITERS[delimiter]}.")
    if decimal == ",":
        notes.append("Numbers are written with a decimal comma.")
    names, has_header = names_of(records[0], decimal, notes)
    if has_header and whole and len(records) == 1:
        raise no_rows(path, NO_ROWS)
    skipped = next(i for i, line in enumerate(io.StringIO(lines, newline="")) if line.strip("\r\n"))
    row_bytes = len(lines.encode()) / len(records)
    first = zip(*records[int(has_header) :][:TRIED], strict=False)
    known = [_first_kind(request, name, cells, decimal) for name, cells in zip(names, first, strict=False)]
    known += [None] * (len(names) - len(known))
    return TextTable(request, delimiter, decimal, names, has_header, skipped, notes, row_bytes, known)


def _first_kind(request: Request, name: str, cells: Sequence[str], decimal: str) -> str | None:
    """FRACTION if these first cells of a column are numbers or missing, and one has a fraction; or else None."""
    if not any(decimal in cell for cell in cells) or _is_named(request, name):
        return None
    return FRACTION if all(cell in MISSING_CELLS or is_number(cell, decimal) for cell in cells) else None


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the csv module read cells as long as those that pyarrow reads."""
    limit = csv.field_size_limit(LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _records_of(text: str, delimiter: str) -> list[list[str]]:
    """Records of the first lines that are not empty, as far as they can be read."""
    records: list[list[str]] = []
    with suppress(csv.Error), long_cells():
        records.extend(record for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if record)
    return records


def is_number(cell: str, decimal: str) -> bool:
    return re.fullmatch(number_pattern(decimal), cell.strip()) is not None


def _delimiter_of(text: str) -> str:
    """Of comma, semicolon, tab and bar the one that cuts the first lines into equally many cells, numbers if possible."""
    best, found = (0.0, 1), ","
    for candidate in DELIMITERS:
        rows = _records_of(text[:20_000], candidate)
        rows = rows[: max(1, min(50, len(rows) - 1))]
        width = len(rows[0]) if rows else 1
        if width == 1 or sum(len(row) == width for row in rows) < 0.8 * len(rows):
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(is_number(cell, ".") or is_number(cell, ",") for cell in cells) / len(cells)
        if (numbers, width) > best:
            best, found = (numbers, width), candidate
    return found


def _has_decimal_comma(records: list[list[str]]) -> bool:
    """Whether more cells are numbers with a decimal comma than with a point."""
    cells = [cell.strip() for record in records for cell in record]
    commas = sum(bool(re.fullmatch(r"[-+]?\d+,\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    return commas > points


def names_of(first: list[str], decimal: str, notes: list[str]) -> tuple[list[str], bool]:
    """Names of the columns, and whether the first line holds them."""
    cells = [cell.strip() for cell in first]
    said = [cell for cell in cells if cell not in MISSING_CELLS or not cell]
    if said and all(is_number(cell, decimal) for cell in said):
        called = f"columns are called x0 … x{len(cells) - 1}"
        notes.append(f"The first line holds numbers only, so that there is no header; {called}.")
        return [f"x{i}" for i in range(len(cells))], False
    odd = [cell for cell in cells if is_number(cell, decimal) and not cell.isdecimal()]
    if odd:
        taken = f"The first line is taken as header, although it holds a number, {odd[0]}."
        notes.append(f"{taken} Put names of the columns there.")
    if "" in cells:
        free = "index" if cells[0] == "" and "index" not in cells else "column_1"
        cells = [cell or (free if i == 0 else f"column_{i + 1}") for i, cell in enumerate(cells)]
    return cells, True


def open_workbook(request: Request) -> Rows:
    """A sheet of an Excel workbook, the one that is asked for or the first; its first row that is not empty names the columns.

    Read with python-calamine, a parser in Rust that runs no formulas or macros and follows no links. What the archive unpacks to
    is checked before: its cells must fit into the memory budget.
    """
    path = request.path
    with readable(path, "It is damaged or no .xlsx file. Save it again, as Excel workbook or as CSV."):
        with zipfile.ZipFile(path) as packed:
            size = sum(member.file_size for member in packed.infolist())
            if GROWTH * size > request.budget / 2:
                fault = f"unpacks to {size / 1e6:,.0f} MB, which takes more than half of the memory budget"
                remedy = "Save the sheet as CSV, which is read in pieces, or raise `memory_budget`."
                raise FileFault(path, fault, remedy)
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
    notes = []
    if len(sheets) > 1:
        notes.append(f"Rows are those of the sheet {name!r}, one of {len(sheets)}: {listed(sheets)}.")
    names, has_header = names_of([_text(cell) for cell in rows[0]], ".", notes)
    body = rows[1:] if has_header else rows
    if not body:
        raise no_rows(path, f"its sheet {name!r} has a header and no rows")
    check_names(request, names)
    columns = {name: _column([row[j] for row in body]) for j, name in enumerate(names)}
    return table_rows(request, InMemory(pa.table(columns)), notes=notes)


def _column(cells: list[Any]) -> Any:
    """Cells with one type for all of them: numbers, whole where all are; dates; or else text. Empty cells are missing."""
    cells = [None if cell == "" else cell for cell in cells]
    there = [cell for cell in cells if cell is not None]
    if there and all(isinstance(cell, float | int) and not isinstance(cell, bool) for cell in there):
        whole = all(float(cell).is_integer() and abs(cell) < 2**53 for cell in there)
        return pa.array([None if c is None else int(c) if whole else float(c) for c in cells])
    if len({type(cell) for cell in there}) <= 1:
        return pa.array(cells)
    return pa.array([None if cell is None else _text(cell) for cell in cells])


def _text(cell: Any) -> str:
    """A cell as it would be written."""
    return f"{cell:g}" if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15 else str(cell)
