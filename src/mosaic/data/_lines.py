"""Files with one record or one text a line: JSON lines and plain text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mosaic._files import library
from mosaic.data._bytes import Progress, decoded, open_stream, wrong_encoding
from mosaic.data._columns import ColumnChoices, is_number, looks_like_id
from mosaic.data._faults import FileFault, readable
from mosaic.data._framed import Frame, table_of
from mosaic.data._streams import table_of_stream
from mosaic.data.records import InMemory, Streamed
from mosaic.data.table import Table

#: Bytes that are parsed at a time. A record may not be longer.
BLOCK = 1 << 24


def open_json_lines(path: Path, choices: ColumnChoices, budget: float, progress: Progress | None) -> Table:
    """A .jsonl file: one object a line. Files of more than an eighth of the budget are read block by block."""
    pa, arrow = library("pyarrow", path), library("pyarrow.json", path)
    with open_stream(path) as stream:
        decoded(path, stream.read(1 << 16))
    if (fault := wrong_encoding(path)) is not None:  # pyarrow takes strings of JSON as they come
        raise fault
    options = arrow.ReadOptions(block_size=BLOCK, use_threads=False)
    size = path.stat().st_size * (1 if path.suffix.lower() in (".jsonl", ".ndjson") else 5)

    def parsed(kinds: dict[str, Any]) -> Any:
        known: dict[str, Any] = {
            "read_options": options,
            "parse_options": arrow.ParseOptions(explicit_schema=pa.schema(list(kinds.items()))),
        }
        with open_stream(path) as stream:
            if size <= budget / 8:
                return arrow.read_json(stream, **known)
            return pa.Table.from_batches([next(iter(arrow.open_json(stream, **known)))])

    with readable(path):
        try:
            table = _as_written(parsed, choices)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, StopIteration) as error:
            raise _explained(path, error) from error
    if not table.num_rows:
        raise FileFault(path, "has no records", "Write it again with one object a line, or name another one.")
    if size <= budget / 8:
        table = _whole_as_text(table)
        records = InMemory(table, lambda number: _line_of(path, number))
        frame = Frame(path, "JSON lines", table.schema, records, table)
        return table_of(frame, choices, budget / 4)
    return table_of_stream(_large(path, table, choices, size, progress), choices, budget)


def _as_written(parsed: Callable[[dict[str, Any]], Any], choices: ColumnChoices) -> Any:
    """Records whose dates stay text and whose ids keep their digits: what pyarrow makes something else is read again."""
    pa, types = library("pyarrow", "JSON"), library("pyarrow.types", "JSON")
    first = parsed({})
    kinds = {field.name: pa.string() for field in first.schema if types.is_timestamp(field.type)}
    floats = [f.name for f in first.schema if types.is_float64(f.type) and f.name not in (choices.columns or ())]
    ids = [name for name in floats if name in (choices.id, choices.group) or looks_like_id(name)]
    if not kinds and not ids:
        return first
    try:
        again = parsed({**kinds, **dict.fromkeys(ids, pa.decimal128(38, 0))})
    except pa.ArrowInvalid:  # ids with fractions
        again = parsed(kinds)
    return again.select(first.column_names)  # named ones come first otherwise


def _whole_as_text(data: Any) -> Any:
    """A table or batch whose ids of more digits than integers hold, for which decimals are used, are text."""
    pa, types = library("pyarrow", "JSON"), library("pyarrow.types", "JSON")
    kinds = [(f.name, pa.string() if types.is_decimal(f.type) else f.type) for f in data.schema]
    return data.cast(pa.schema(kinds))


def _large(path: Path, sample: Any, choices: ColumnChoices, size: float, progress: Progress | None) -> Frame:
    """Records of a file whose types are those of its first block."""
    pa, arrow = library("pyarrow", path), library("pyarrow.json", path)
    types = library("pyarrow.types", path)
    names = {choices.id, choices.group}
    names |= {name for name in sample.column_names if looks_like_id(name)}
    # Whole numbers of the first block may have fractions further down, and what is missing there may be numbers.
    kinds = {
        f.name: pa.float64() if types.is_null(f.type) or (types.is_integer(f.type) and f.name not in names) else f.type
        for f in sample.schema
    }

    def read(columns: Sequence[str], progress: Progress | None = None) -> Iterator[Any]:
        parsing = arrow.ParseOptions(
            explicit_schema=pa.schema([(c, kinds[c]) for c in columns]), unexpected_field_behavior="ignore"
        )
        reading = arrow.ReadOptions(block_size=BLOCK)
        total = path.stat().st_size
        with readable(path), path.open("rb", buffering=0) as raw, open_stream(path, raw) as stream:
            try:
                for batch in arrow.open_json(stream, read_options=reading, parse_options=parsing):
                    yield _whole_as_text(batch.select(list(columns)))
                    if progress is not None:
                        progress(min(raw.tell(), total), total)
            except pa.ArrowInvalid as error:
                raise _explained(path, error) from error

    def stream(columns: list[str], numeric: list[str]) -> Iterator[Any]:
        return read(columns, progress)

    records = Streamed(list(kinds), read, lambda number: _line_of(path, number))
    sample = _whole_as_text(sample)
    schema = _whole_as_text(pa.schema(list(kinds.items())).empty_table()).schema
    n_numbers = max(1, sum(is_number(kind) for kind in kinds.values()))
    return Frame(path, "JSON lines", schema, records, expected=size / n_numbers, sample=sample, stream=stream)


def open_text(path: Path, choices: ColumnChoices, budget: float) -> Table:
    """A .txt file: one text a line. Its numbers come from another file."""
    pa = library("pyarrow", path)
    if not choices.elsewhere:
        raise FileFault(
            path,
            "is text, which has no numbers to compute with",
            "Text needs an embedding: numbers made of it by a language model, a row for every line: --embeddings FILE.npy",
        )
    with open_stream(path) as stream:
        decoded(path, stream.read(1 << 16))
    with readable(path), open_stream(path) as stream:
        try:
            lines = [line.rstrip("\r\n") for line in io.TextIOWrapper(stream, "utf-8-sig", newline=None)]
        except UnicodeDecodeError as error:
            raise wrong_encoding(path) or FileFault(path, "is not UTF-8", "Write it again in UTF-8.") from error
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    table = pa.table({"text": lines})
    frame = Frame(path, "text, line by line", table.schema, InMemory(table, lambda number: number + 1), table)
    return table_of(frame, choices, budget / 4)


def _filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    with open_stream(path) as stream:
        for number, line in enumerate(io.TextIOWrapper(stream, "utf-8-sig", errors="replace"), 1):
            if line.strip():
                yield number, line


def _line_of(path: Path, number: int) -> int | None:
    return next((line for i, (line, _) in enumerate(_filled_lines(path)) if i == number), None)


def _explained(path: Path, error: Exception) -> FileFault:
    """The first line that is no object, or whose values are of another kind than those before."""
    kinds: dict[str, tuple[str, int]] = {}
    for number, line in _filled_lines(path):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as wrong:
            remedy = "Write one JSON object a line; a missing number is null."
            return FileFault(path, f"is no JSON ({wrong.msg})", remedy, line=number)
        if not isinstance(record, dict):
            remedy = 'Write one object a line, such as {"id": 1, "height": 1.7}.'
            return FileFault(path, f"holds a {_kind(record)}, no object", remedy, line=number)
        for name, value in record.items():
            kind = _kind(value)
            known, first = kinds.setdefault(name, (kind, number)) if value is not None else (kind, number)
            if kind != known:
                return FileFault(
                    path,
                    f"holds a {kind}, line {first:,} a {known}",
                    "Write all values of a column in the same way; a missing one is null.",
                    line=number,
                    column=name,
                )
    said = " ".join(str(error).split())
    return FileFault(path, f"cannot be read as JSON lines ({said[:300]})", "Write one JSON object a line.")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return names.get(type(value), "missing value")
