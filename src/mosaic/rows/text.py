"""Text files: decompressed by their name, refused where they are not UTF-8; and files of one text or JSON object a line."""

from __future__ import annotations

import codecs
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mosaic._frames import looks_like_id
from mosaic.rows.columns import table_in_memory
from mosaic.rows.faults import FileFault, readable
from mosaic.rows.features import Request, lay_out
from mosaic.rows.parquet import table_by_conversion
from mosaic.rows.table import InMemory, Table
from mosaic.text import Library

pa, arrow, types = Library("pyarrow"), Library("pyarrow.json"), Library("pyarrow.types")

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: Brackets within brackets; tables need two or three.
DEEPEST_JSON = 100
#: Bytes at the beginning of a file that show whether it is text at all.
FIRST_BYTES = 1 << 16
#: Bytes of JSON that are parsed at a time. A record may not be longer.
PARSED_BYTES = 1 << 24


def ending_of(path: Path) -> str:
    """The ending of a name, without that of a compression.

    Examples
    --------
    >>> ending_of(Path("points.CSV.gz"))
    '.csv'
    """
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSIONS else path.suffix.lower()


def open_stream(path: Path, raw: BinaryIO | None = None) -> Any:
    """The bytes of a file, decompressed where its name says that it is compressed; of an open file if there is one."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    # A name in bytes, since not every one is UTF-8.
    stream = pa.OSFile(os.fsencode(path)) if raw is None else pa.PythonFile(raw, mode="r")
    return stream if compression is None else pa.CompressedInputStream(stream, compression)


def decoded(path: Path, head: bytes) -> str:
    """The beginning of a file as text, be it cut off within a letter."""
    wide = {b"\xff\xfe\0\0": 32, b"\0\0\xfe\xff": 32}.get(
        head[:4], 16 if head[:2] in (b"\xff\xfe", b"\xfe\xff") else None
    )
    if wide is not None:
        remedy = f"Convert it: iconv -f utf-{wide} -t utf-8 '{path.name}' > 'utf8-{path.name}'"
        raise FileFault(path, f"is written in UTF-{wide}", remedy, line=1)
    if b"\0" in head:
        raise FileFault(
            path,
            "holds zero bytes: it is no text but a binary file",
            "Give it the ending of what it is, such as .parquet or .npy, or write it as text.",
            line=head[: head.index(b"\0")].count(b"\n") + 1,
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    return head.decode("utf-8-sig", errors="ignore")


def wrong_encoding(path: Path) -> FileFault | None:
    """The fault of a file that is not UTF-8, with its first wrong byte; None where all bytes are right."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, done = 1, 0
    with open_stream(path) as stream:
        while True:
            block = stream.read(1 << 20)
            pending = decoder.getstate()[0]  # the beginning of a letter, left over from the block before
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                data = pending + block
                offset, name = done - len(pending) + error.start, path.name
                return FileFault(
                    path,
                    f"byte {offset:,} (0x{data[error.start]:02x}) is not UTF-8",
                    f"If it is Latin-1 or Windows-1252, convert it: iconv -f latin1 -t utf-8 '{name}' > 'utf8-{name}'",
                    line=line + data[: error.start].count(b"\n"),
                )
            if not block:
                return None
            line, done = line + block.count(b"\n"), done + len(block)


def not_utf8(path: Path) -> FileFault:
    """The fault of a file that is known not to be UTF-8."""
    return wrong_encoding(path) or FileFault(path, "is not UTF-8", "Write it again in UTF-8.")


def _check_encoding(path: Path) -> None:
    """Refuse a file that is not text in UTF-8."""
    with readable(path):
        with open_stream(path) as stream:
            decoded(path, stream.read(FIRST_BYTES))
        if (fault := wrong_encoding(path)) is not None:
            raise fault


def open_text(request: Request) -> Table:
    """A .txt file: one text a line. Its numbers come from another file."""
    path = request.path
    if not request.elsewhere:
        raise FileFault(
            path,
            "is text, which has no numbers to compute with",
            "Text needs an embedding: numbers made of it by a language model, a row for every line, in a file of their own: "
            "`embeddings='FILE.npy'`.",
        )
    _check_encoding(path)
    with readable(path), open_stream(path) as stream:
        lines = [line.rstrip("\r\n") for line in io.TextIOWrapper(stream, "utf-8-sig", newline=None)]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise FileFault(path, "holds nothing but empty lines", "Write it again, or name another one.")
    return table_in_memory(request, InMemory(pa.table({"text": lines}), lambda number: number + 1))


def open_json_lines(request: Request) -> Table:
    """A .jsonl file. Files of more than an eighth of the budget are converted to a temporary Parquet file."""
    path = request.path
    _check_encoding(path)  # pyarrow takes strings of JSON as they come
    size = path.stat().st_size * (1 if path.suffix.lower() in (".jsonl", ".ndjson") else 5)
    is_small = size <= request.budget / 8

    def parsed(kinds: dict[str, Any]) -> Any:
        known = _options(kinds)
        with open_stream(path) as stream:
            if is_small:
                return arrow.read_json(stream, **known)
            return pa.Table.from_batches([next(iter(arrow.open_json(stream, **known)))])

    with readable(path):
        try:
            table = _as_written(parsed, request)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, StopIteration) as error:
            raise _explained(path, error) from error
    if not table.num_rows:
        raise FileFault(path, "has no records", "Write it again with one object a line, or name another one.")
    level, depth = list(table.schema.types), 0
    while level := [kind.field(i).type for kind in level for i in range(kind.num_fields)]:
        depth += 1
        if depth > DEEPEST_JSON:
            fault = f"has brackets within brackets, more than {DEEPEST_JSON} deep"
            raise FileFault(path, fault, "Write one flat object a line.")
    if is_small:
        return table_in_memory(request, InMemory(_decimals_as_text(table), lambda number: _line_of(path, number)))
    return _open_large(request, table, size)


def _open_large(request: Request, sample: Any, size: float) -> Table:
    """A file that is converted to Parquet. Its types are those of its first block."""
    path = request.path
    ids = {request.id, request.group, *(name for name in sample.column_names if looks_like_id(name))}

    def kind_of(field: Any) -> Any:
        # Whole numbers of the first block may have fractions further down, and what is missing there may be numbers.
        whole = types.is_integer(field.type) and field.name not in ids
        return pa.float64() if whole or types.is_null(field.type) else field.type

    kinds = {field.name: kind_of(field) for field in sample.schema}
    layout = lay_out(request, _decimals_as_text(pa.schema(list(kinds.items())).empty_table()).schema)

    def batches() -> Iterator[Any]:
        total = path.stat().st_size
        with readable(path), path.open("rb", buffering=0) as raw, open_stream(path, raw) as stream:
            try:
                for batch in arrow.open_json(stream, **_options(kinds, "ignore")):
                    yield _decimals_as_text(batch.select(list(kinds)))
                    if request.progress is not None:
                        request.progress(min(raw.tell(), total), total)
            except pa.ArrowInvalid as error:
                raise _explained(path, error) from error

    return table_by_conversion(request, layout, batches(), size, line=lambda number: _line_of(path, number))


def _options(kinds: dict[str, Any], others: str = "infer") -> dict[str, Any]:
    """What pyarrow is told: types of some columns, and what to do with others."""
    schema = pa.schema(list(kinds.items()))
    return {
        "read_options": arrow.ReadOptions(block_size=PARSED_BYTES, use_threads=others == "ignore"),
        "parse_options": arrow.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    }


def _as_written(parsed: Callable[[dict[str, Any]], Any], request: Request) -> Any:
    """Records whose dates stay text and whose ids keep their digits: what pyarrow makes something else is read again."""
    first = parsed({})
    dates = {field.name: pa.string() for field in first.schema if types.is_timestamp(field.type)}
    floats = [f.name for f in first.schema if types.is_float64(f.type) and f.name not in (request.columns or ())]
    ids = [name for name in floats if name in (request.id, request.group) or looks_like_id(name)]
    if not dates and not ids:
        return first
    try:
        again = parsed({**dates, **dict.fromkeys(ids, pa.decimal128(38, 0))})
    except pa.ArrowInvalid:  # ids with fractions
        again = parsed(dates)
    return again.select(first.column_names)  # named ones come first otherwise


def _decimals_as_text(data: Any) -> Any:
    """A table or batch whose ids of more digits than integers hold, for which decimals are used, are text."""
    kinds = [(f.name, pa.string() if types.is_decimal(f.type) else f.type) for f in data.schema]
    return data.cast(pa.schema(kinds))


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
