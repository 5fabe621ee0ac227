"""Text tables and workbooks: how they are written (delimiter, header, decimal comma), and where they are wrong.

Cells are read as text. A column is whole numbers, numbers, true or false, or text, as all of its cells are.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.exceptions import MosaicError
from mosaic.rows.arrow import check_text, in_its_encoding, open_stream, rows_of_batches
from mosaic.rows.faults import FileFault, no_rows, readable
from mosaic.rows.roles import Request, check_names
from mosaic.rows.rows import Rows
from mosaic.rows.tables import InMemory
from mosaic.rows.text_values import MISSING_CELLS, NEARLY_ALL, number_pattern
from mosaic.text import Library, listed

if TYPE_CHECKING:
    import pyarrow

pa, pc, arrow = (Library(f"pyarrow{module}") for module in ("", ".compute", ".csv"))
calamine = Library("python_calamine")

#: Bytes that are parsed at a time, at most.
PARSED_BYTES = 1 << 22
#: Bytes of the longest row that is read.
LONGEST_ROW = 1 << 26
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
#: Kinds of columns: whole numbers that would lose zeros or digits are codes, and stay text beside others of their like.
CellKind: TypeAlias = Literal["empty", "whole", "code", "fraction", "truth", "text"]


class OtherKindsError(MosaicError):
    """Cells further down are of another kind than those of the first rows."""


@dataclass
class TextTable:
    """How a text file holds a table.

    ``skipped`` are the empty lines before the first, which holds the names if the file ``has_header``. ``kinds`` are those of the
    columns in the rows that were read. Without a ``delimiter`` every line is a cell. ``others`` are further files of such rows.
    """

    request: Request
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    skipped: int
    row_bytes: float
    notes: list[str]
    kinds: list[CellKind] = field(default_factory=list)
    others: Sequence[TextTable] = ()

    def batches(self) -> Iterator[Any]:
        """The cells of this file and of the others, as text."""
        for part in (self, *self.others):
            yield from part._batches() if part.delimiter else part._lines()

    def _lines(self) -> Iterator[Any]:
        """Lines as cells of one column. Empty ones are left out, as they are by pyarrow."""
        check_text(self.request)
        with readable(self.request.path), open_stream(self.request) as stream:
            lines = (
                line.rstrip("\r\n")
                for line in io.TextIOWrapper(stream, "utf-8-sig", newline="\n")
                if line.strip()
            )
            while block := list(islice(lines, BLOCK_ROWS)):
                yield pa.record_batch({self.names[0]: block})

    def _batches(self) -> Iterator[Any]:
        request = self.request
        path = request.path
        # At least 64 KiB, and a small share of the budget, as pyarrow reads blocks ahead.
        block = max(min(PARSED_BYTES, max(1 << 16, request.budget / 512)), 64 * self.row_bytes)
        options = {
            "read_options": arrow.ReadOptions(
                block_size=int(min(block, LONGEST_ROW)),
                column_names=self.names,
                skip_rows=self.skipped,
                skip_rows_after_names=int(self.has_header),
                use_threads=len(self.names)
                < 1000,  # threads that share thousands of columns take longer than one
            ),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string())
            ),
        }
        size = path.stat().st_size
        last = ""
        with (
            readable(path),
            path.open("rb", buffering=0) as raw,
            open_stream(request, raw) as stream,
        ):
            try:
                for batch in arrow.open_csv(stream, **options):
                    if batch.num_rows:
                        last = batch.column(len(self.names) - 1)[-1].as_py()
                        yield batch
                    if request.progress is not None:
                        request.progress(min(raw.tell(), size), size)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise self._fault(str(error)) from error
        self._check_end(last)

    def _check_end(self, last: str) -> None:
        """Refuse a file that ends in an open quotation mark, which pyarrow takes for closed; ``last`` is the cell after it."""
        before = self.delimiter if len(self.names) > 1 else "\n"
        doubled = last.replace('"', '""')
        wanted = f'{before}"{doubled}'.encode()
        end = b""
        with readable(self.request.path), open_stream(self.request) as stream:
            if stream.seekable():
                stream.seek(max(stream.size() - len(wanted), 0))
            while block := stream.read(1 << 20):
                end = (end + block)[-len(wanted) :]
        if end == wanted:
            raise self._fault("the file ends in it")

    def typed(self) -> Iterator[Any]:
        """All rows, as cells of the kinds that the first ones have. If others differ, all kinds are found before it is told."""
        changed = False
        for batch in self.batches():
            before: list[CellKind] = self.kinds or ["empty"] * len(self.names)
            found = list(map(self._parsed, self.names, before, batch.columns))
            kinds = [_either(kind, other) for kind, (other, _) in zip(before, found, strict=True)]
            changed = changed or (bool(self.kinds) and kinds != self.kinds)
            self.kinds = kinds
            if not changed:
                yield self._batch(batch.columns, found)
        if changed:
            raise OtherKindsError("The first rows do not show the kinds of all columns.")

    def _batch(self, columns: list[Any], found: list[tuple[CellKind, Any]]) -> Any:
        """Columns of text as cells of the kinds that are known, as far as they are not found yet."""
        cells = [
            cells if was == kind else self._cast(column, kind)
            for column, (was, cells), kind in zip(columns, found, self.kinds, strict=True)
        ]
        return pa.RecordBatch.from_arrays(cells, names=self.names)

    def _parsed(self, name: str, before: CellKind, column: pyarrow.Array) -> tuple[CellKind, Any]:
        """What the cells of a column are, and the cells as such: as they are written, or without blanks and marks of missing."""
        if before == "text":
            return "text", column
        if before == "fraction":
            with suppress(pa.ArrowInvalid):
                return "fraction", self._as(column, "fraction")
        request = self.request
        is_computed = name in (*(request.columns or ()), request.weight)
        if not is_computed and request.is_name(name):
            return self._parsed_names(column)
        if (found := self._parsed_numbers(name, column, column, is_computed)) is not None:
            return found
        cells = filled(column)
        if cells.null_count == len(cells):
            return "empty", pa.nulls(len(column))
        if (found := self._parsed_numbers(name, column, cells, is_computed)) is not None:
            return found
        truth = self._tried(cells, "truth")
        return ("text", column) if truth is None else ("truth", truth)

    def _parsed_names(self, column: pyarrow.Array) -> tuple[CellKind, Any]:
        """The cells of a column of names: whole numbers if they are written as such, or else text."""
        whole = self._tried(column, "whole")
        if whole is not None and whole.cast(pa.string()).equals(column):
            return "whole", whole
        is_empty = not pc.any(pc.not_equal(column, "")).as_py()
        return ("empty", pa.nulls(len(column))) if is_empty else ("text", column)

    def _parsed_numbers(
        self, name: str, column: pyarrow.Array, cells: pyarrow.Array, is_computed: bool
    ) -> tuple[CellKind, Any] | None:
        """The cells of a column if all are numbers, else None. Codes stay as they are written unless the user computes with them:
        whole numbers that begin with a zero, or have more digits than an integer holds.
        """
        numbers = self._tried(cells, "whole")
        if numbers is not None:
            kind: CellKind = "whole"
            is_same = numbers.cast(pa.string()).equals(cells)
            is_code = not is_same and _any(cells, r"^[-+]?0\d")
        else:
            numbers = self._tried(cells, "fraction")
            if numbers is None:
                return None
            if name != self.request.weight and self._has_thousands(cells):
                return "text", column
            kind = "fraction"
            is_long = any(abs(end or 0.0) >= 2**63 for end in pc.min_max(numbers).as_py().values())
            are_digits = pc.match_substring_regex(cells, r"^[-+]?\d+$")
            is_code = is_long and pc.all(are_digits).as_py()
        if not is_code:
            return kind, numbers
        kind = "fraction" if is_computed else "code"
        return kind, self._cast(column, kind)

    def _has_thousands(self, cells: pyarrow.Array) -> bool:
        """Whether signs may stand before thousands and not before fractions: three digits follow nearly all, 987 has none."""
        pattern = rf"^[-+]?(0|[1-9]\d{{0,2}}({re.escape(self.decimal)}\d{{3}})?)$"
        for some in (cells.slice(0, 64), cells):
            if (pc.mean(pc.match_substring_regex(some, pattern)).as_py() or 0.0) < NEARLY_ALL:
                return False
        return _any(cells, re.escape(self.decimal)) and _any(cells, r"^[-+]?\d+$")

    def _cast(self, column: pyarrow.Array, kind: CellKind) -> Any:
        """A column of text as cells of a kind that all of them are."""
        if kind == "empty":
            return pa.nulls(len(column))
        if kind in ("code", "text"):
            return column
        cells = self._tried(column, kind)
        return self._as(filled(column), kind) if cells is None else cells

    def _tried(self, cells: pyarrow.Array, kind: CellKind) -> Any:
        """The cells as those of a kind, None where one is none. Some are tried first, as a cast that fails takes long."""
        with suppress(pa.ArrowInvalid):
            if len(cells) > 64:
                self._as(cells.slice(0, 64), kind)
            return self._as(cells, kind)
        return None

    def _as(self, cells: pyarrow.Array, kind: CellKind) -> Any:
        if kind == "fraction" and self.decimal == ",":
            if pc.any(pc.match_substring(cells, ".")).as_py():
                raise pa.ArrowInvalid("a point in numbers with a decimal comma")
            cells = pc.replace_substring(cells, ",", ".")
        return cells.cast({"whole": "int64", "fraction": "float64", "truth": "bool"}[kind])

    def line_of(self, number: int) -> int | None:
        """The line that a row begins on, counted from 1: quoted line breaks and empty lines count, and so does the header."""
        with suppress(csv.Error, OSError):
            if self.others or not self.delimiter:
                return None
            return next(
                (line for line, _ in islice(self._records(), number + int(self.has_header), None)),
                None,
            )
        return None

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        with open_stream(self.request) as stream:
            yield from csv_records(
                io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline=""), self.delimiter
            )

    def _fault(self, said: str) -> FileFault:
        """What is wrong with a file that pyarrow refuses: the first record of the wrong length, or an open quotation mark."""
        path = self.request.path
        expected = len(self.names)
        line = 1
        cells = [""]
        breaks = 0
        check_text(self.request)
        with suppress(csv.Error):  # a cell that is too long
            for line, cells in self._records():  # noqa: B007
                breaks = "".join(cells).count("\n")
                if len(cells) != expected or breaks > 5:
                    break
        if cells[-1].endswith("\n") or breaks > 5 or len(cells) == expected:
            what = f"a quotation mark is opened and not closed, or a cell is too long ({' '.join(said.split())[:300]})"
            return FileFault(
                path, what, 'Close it, or write a quotation mark in a text twice: "".', line=line
            )
        count = f"has {len(cells)} {'cell' if len(cells) == 1 else 'cells'} instead of {expected}"
        remedy = "Correct the line; a cell that holds the delimiter or a line break must be in quotation marks."
        like = "as the header has" if self.has_header else "as the first line has"
        return FileFault(path, f"{count}, {like}", remedy, line=line)


def open_text_table(request: Request) -> Rows:
    """A .csv or .tsv file, compressed or not. It is read twice if the kinds of columns change after the first block."""
    parts = []
    for path in request.files or [request.path]:
        with readable(path):
            parts.append(in_its_encoding(replace(request, path=path), sniff_csv))
    text, *text.others = parts
    for other in text.others:
        if (other.names, other.decimal) != (text.names, text.decimal):
            fault = f"has other columns or another decimal sign than {text.request.path.name}: {listed(other.names)}"
            raise FileFault(
                other.request.path, fault, "Name files that are written in the same way."
            )
    check_names(request, text.names)
    request = replace(request, dialect=(text.delimiter or ",", text.decimal))
    more: dict[str, Any] = {"notes": text.notes, "line": text.line_of}
    try:
        return rows_of_batches(request, text.typed(), **more)
    except OtherKindsError:
        again = (
            text._batch(batch.columns, [("text", column) for column in batch.columns])
            for batch in text.batches()
        )
        return rows_of_batches(request, again, **more)


def _either(one: CellKind, other: CellKind) -> CellKind:
    if "empty" in (one, other) or one == other:
        return other if one == "empty" else one
    if {one, other} <= {"whole", "code", "fraction"}:
        return "fraction" if "fraction" in (one, other) else "code"
    return "text"


def _any(cells: pyarrow.Array, pattern: str) -> bool:
    """Whether a pattern is found in any of the cells."""
    return bool(pc.any(pc.match_substring_regex(cells, pattern)).as_py())


def filled(column: pyarrow.Array) -> Any:
    """Cells of text without the blanks around them, missing ones as null."""
    cells = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(cells, value_set=pa.array(sorted(MISSING_CELLS))), None, cells)


def sniff_csv(request: Request) -> TextTable:
    path = request.path
    ending = request.ending.partition(".")[2].partition(".")[0]
    head = b""
    step = 1 << 18
    whole = False
    with open_stream(request) as stream:
        while not whole and head.count(b"\n") <= 2 and len(head) <= LONGEST_ROW:
            more = stream.read(step)
            head += more
            whole = len(more) < step
            step = len(head)
    check_text(request, len(head))
    text = head.decode("utf-8-sig", errors="ignore")  # it may end within a letter
    lines = text if whole else text[: text.rfind("\n") + 1] or text
    if not lines.strip():
        raise FileFault(
            path, "holds nothing but empty lines", "Write it again, or name another one."
        )
    if ending in ("tsv", "tab"):
        delimiter: str | None = "\t"
    else:
        delimiter = _delimiter_of(lines, is_strict=ending == "txt")
    has_one_cell = delimiter is None and ending == "txt"
    if has_one_cell and not all(is_number_cell(line, ".") for line in lines.split("\n")[1:-1]):
        said = "Every line is a text; there is no header."
        return TextTable(request, "", ".", ["text"], False, 0, 0.0, [said])
    delimiter = delimiter or ","
    records = _first_records(lines, delimiter)
    if not records:
        fault = f"its first line is longer than {LONGEST_ROW >> 20} MiB, which is the longest that is read, or no text"
        raise FileFault(path, fault, "Write it again with line breaks, or as Parquet.", line=1)
    if not whole and len(records) > 1:
        records = records[:-1]  # may end in the middle of a quoted text
    decimal = "," if delimiter != "," and _has_decimal_comma(records) else "."
    notes = []
    if delimiter != "," and ending in ("csv", "txt"):
        notes.append(f"Cells are separated by a {DELIMITERS.get(delimiter, 'blank')}.")
    if decimal == ",":
        notes.append("Numbers are written with a decimal comma.")
    names, has_header = names_and_header(records[0], decimal, notes)
    if has_header and whole and len(records) == 1:
        raise no_rows(path, "has a header and no rows")
    skipped = next(i for i, line in enumerate(io.StringIO(lines, newline="")) if line.strip("\r\n"))
    return TextTable(
        request,
        delimiter,
        decimal,
        names,
        has_header,
        skipped,
        len(lines.encode()) / len(records),
        notes,
    )


def csv_records(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """For every record that is not empty, the line that it begins on, and its cells, as long as those that pyarrow reads."""
    limit = csv.field_size_limit(LONGEST_ROW)
    begun = 1
    try:
        reader = csv.reader(lines, delimiter=delimiter)
        for record in reader:
            if record:
                yield begun, record
            begun = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _first_records(text: str, delimiter: str) -> list[list[str]]:
    records: list[list[str]] = []
    with suppress(csv.Error):
        records.extend(cells for _, cells in csv_records(io.StringIO(text, newline=""), delimiter))
    return records


def is_number_cell(cell: str, decimal: str) -> bool:
    return re.fullmatch(number_pattern(decimal), cell.strip()) is not None


def _delimiter_of(text: str, is_strict: bool) -> str | None:
    """Of comma, semicolon, tab and bar the one that cuts the first lines into equally many cells, numbers if possible.

    In strict files, which may hold sentences, it cuts all of them so, and may be a blank between numbers.
    """
    best = (0.0, 1)
    found = None
    least = 1.0 if is_strict else 0.8
    number = re.compile("|".join(f"(?:{number_pattern(decimal)})" for decimal in ".,"))
    for candidate in (*DELIMITERS, *(" " * is_strict)):
        rows = _first_records(text[:20_000], candidate)
        rows = rows[: max(1, min(50, len(rows) - 1))]
        width = len(rows[0]) if rows else 1
        if width == 1 or sum(len(row) == width for row in rows) < least * len(rows):
            continue
        cells = [cell.strip() for row in rows for cell in row]
        numbers = len(list(filter(number.fullmatch, cells))) / len(cells)
        if (numbers, width) > best and (candidate != " " or numbers >= 0.5):
            best = (numbers, width)
            found = candidate
    return found


def _has_decimal_comma(records: list[list[str]]) -> bool:
    cells = [cell.strip() for record in records for cell in record]
    patterns = r"[-+]?\d+,\d+([eE][-+]?\d+)?", r"[-+]?\d*\.\d+([eE][-+]?\d+)?"
    commas, points = (
        len(list(filter(re.compile(pattern).fullmatch, cells))) for pattern in patterns
    )
    return commas > points


def names_and_header(first: list[str], decimal: str, notes: list[str]) -> tuple[list[str], bool]:
    cells = [cell.strip() for cell in first]
    said = [cell for cell in cells if cell not in MISSING_CELLS or not cell]
    if said and all(is_number_cell(cell, decimal) for cell in said):
        called = f"columns are called x0 … x{len(cells) - 1}"
        notes.append(f"The first line holds numbers only, so that there is no header; {called}.")
        return [f"x{i}" for i in range(len(cells))], False
    odd = [cell for cell in cells if is_number_cell(cell, decimal) and not cell.isdecimal()]
    if odd:
        taken = f"The first line is taken as header, although it holds a number, {odd[0]}."
        notes.append(f"{taken} Put names of the columns there.")
    if "" in cells:
        free = "index" if cells[0] == "" and "index" not in cells else "column_1"
        cells = [cell or (free if i == 0 else f"column_{i + 1}") for i, cell in enumerate(cells)]
    return cells, True


def open_workbook(request: Request) -> Rows:
    """A sheet of a workbook; its first row that is not empty names the columns. python-calamine runs no formulas."""
    path = request.path
    with readable(
        path, "It is damaged or no workbook. Save it again, as Excel workbook or as CSV."
    ):
        size = path.stat().st_size
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                size = sum(member.file_size for member in packed.infolist())
        remedy = "Save the sheet as CSV, which is read in pieces, or raise `memory_budget`."
        # A byte of XML takes up to eight while it is read.
        request.refuse_beyond_half(
            8 * size, f"unpacks to {size / 1e6:,.0f} MB, which takes", remedy
        )
        book = calamine.CalamineWorkbook.from_path(str(path))
        sheets = list(book.sheet_names)
        name = request.sheet if request.sheet is not None else next(iter(sheets), None)
        if name not in sheets:
            raise request.unknown("sheet", name or "", sheets, "sheet")
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    request = replace(request, others=[other for other in sheets if other != name])
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise request.fault(f"its sheet {name!r} is empty", "Write it again with its rows.")
    notes = []
    if len(sheets) > 1:
        notes.append(
            f"Rows are those of the sheet {name!r}, one of {len(sheets)}: {listed(sheets)}."
        )
    names, has_header = names_and_header([_text(cell) for cell in rows[0]], ".", notes)
    body = rows[1:] if has_header else rows
    if not body:
        raise request.fault(
            f"its sheet {name!r} has a header and no rows", "Write it again with its rows."
        )
    check_names(request, names)
    columns = {name: _column([row[j] for row in body]) for j, name in enumerate(names)}
    return Rows.of_table(request, InMemory.of_arrow(pa.table(columns)), notes=notes)


def _column(cells: list[Any]) -> Any:
    """Cells with one type for all of them: numbers, whole where all are; dates; or else text. Empty cells are missing."""
    cells = [None if cell == "" else cell for cell in cells]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        column = pa.array(cells, pa.float64())
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int64())
        return column
    return pa.array(
        cells if len(kinds) <= 1 else [None if cell is None else _text(cell) for cell in cells]
    )


def _text(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return f"{cell:g}"
    return str(cell)
