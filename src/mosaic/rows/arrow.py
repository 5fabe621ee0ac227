"""Tables that pyarrow reads: Parquet, Feather and JSON lines.

What takes more than a part of the memory budget stays in Parquet files; other kinds are converted to a temporary one.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.choosing.budget import leaves_room, may_load
from mosaic.exceptions import MemoryBudgetError, warn
from mosaic.rows.faults import FileFault, damaged, nested, no_rows, readable
from mosaic.rows.frames import Cells, cells_of
from mosaic.rows.roles import Request, check_names
from mosaic.rows.rows import Rows
from mosaic.rows.tables import InMemory, Outside, pandas_columns
from mosaic.rows.write import Scratch
from mosaic.text import Library, readable_size

if TYPE_CHECKING:
    import pyarrow

pa, ipc, pq, types = (Library(f"pyarrow{module}") for module in ("", ".ipc", ".parquet", ".types"))
pyarrow_json = Library("pyarrow.json")

Result = TypeVar("Result")

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: Bytes of a column that are unpacked at a time: a page of values and one of different values, as writers make them by default.
PAGES = 2 << 20
#: Bytes of JSON that are parsed at a time. A record may not be longer.
PARSED_BYTES = 1 << 24
#: Columns in columns of JSON, at most, as in Parquet.
MOST_LEVELS = 100


class OtherEncoding(FileFault):
    """A text is not UTF-8, but ``encoding``; by a guess if there is a ``word`` of it to look at."""

    def __init__(self, *parts: Any, encoding: str, word: str = "", **more: Any):
        super().__init__(*parts, **more)
        self.encoding, self.word = encoding, word


class InParquet(Outside):
    """Rows of one Parquet file, or of several with the same columns. Every file is opened when it is read, and only then.

    ``size`` are the bytes of all rows when they are read, ``pages`` those that are unpacked at a time.
    """

    def __init__(self, path: Path, files: Sequence[Path], scratch: Scratch | None = None):
        opened = []
        for file in files:
            with readable(file), pq.ParquetFile(file) as known:
                opened.append((file, known.metadata, known.schema_arrow))
        first, _, schema = opened[0]
        for file, _, other in opened[1:]:
            if odd := sorted(set(schema.names) ^ set(other.names)):
                fault = f"has other columns than {first.name}: {', '.join(odd[:10])}"
                raise FileFault(file, fault, "Write all files of the folder with the same columns.")
        filled = [one for one in opened if one[1].num_rows]
        if not filled:
            raise no_rows(path)
        schemas = [one[2] for one in filled]
        with readable(path):
            # Two columns of one name are refused later, with their name.
            alike = all(schema.equals(schemas[0]) for schema in schemas)
            schema = (
                schemas[0] if alike else pa.unify_schemas(schemas, promote_options="permissive")
            )
            self.schema = without_views(schema)
        self.columns = list(self.schema.names)
        self.scratch = scratch
        self.index, self.levels = pandas_columns(self.schema)
        self._files = [(file, head) for file, head, _ in filled]
        self.paths = [file for file, _ in self._files]
        self._groups = [
            (i, g) for i, (_, head) in enumerate(self._files) for g in range(head.num_row_groups)
        ]
        groups = [self._files[i][1].row_group(g) for i, g in self._groups]
        self._starts = np.cumsum([0, *(group.num_rows for group in groups)], dtype=np.int64)
        sizes = [group.total_byte_size for group in groups]
        self.n = int(self._starts[-1])
        self.size = sum(sizes)
        self.pages = float(min(max(sizes), PAGES * len(self.schema)))

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Rows from start to stop, in tables of at most a block. Only the row groups that hold them are read."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        first, last = (
            int(g) - 1 for g in np.searchsorted(self._starts, [start, stop - 1], "right")
        )
        skip = start - int(self._starts[first])
        left = stop - start
        for i, groups in groupby(self._groups[first : last + 1], key=lambda group: group[0]):
            file, head = self._files[i]
            # A handle of its own, so that threads do not share one; columns are read in small parts, not as a whole.
            with (
                readable(file),
                pq.ParquetFile(
                    file, metadata=head, pre_buffer=False, buffer_size=1 << 16
                ) as opened,
            ):
                for batch in opened.iter_batches(
                    BLOCK_ROWS, [g for _, g in groups], list(columns), use_threads=False
                ):
                    part = valid(batch).slice(min(skip, batch.num_rows), left)
                    skip = max(0, skip - batch.num_rows)
                    left -= part.num_rows
                    if part.num_rows:
                        yield pa.Table.from_batches([part.select(list(columns)).cast(schema)])
        if left > 0:
            raise damaged(file, f"has {left:,} rows less than it says")
        pa.default_memory_pool().release_unused()  # what is freed stays in the pool otherwise, beside the budget

    def blocks(
        self, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[Cells]:
        for table in self.read(start, self.n if stop is None else stop, columns):
            yield cells_of(table, levels=self.levels)

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        wanted, order = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        parts = [self.schema.empty_table().select(list(columns))]
        for group in np.unique(np.searchsorted(self._starts, wanted, "right")):
            start = int(self._starts[group - 1])
            last = int(wanted[np.searchsorted(wanted, self._starts[group]) - 1])
            for batch in self.read(start, last + 1, columns):
                here = (
                    wanted[slice(*np.searchsorted(wanted, [start, start + batch.num_rows]))] - start
                )
                if len(here):  # a copy, since a slice would keep the whole batch in memory
                    parts.append(batch.take(pa.array(here)))
                start += batch.num_rows
        return (
            pa.concat_tables(parts, promote_options="permissive")
            .take(pa.array(order.ravel()))
            .combine_chunks()
        )


def open_parquet(request: Request) -> Rows:
    """A Parquet file, or the files of a folder in the order of their names; in memory if that leaves room for a fit."""
    store = InParquet(request.path, request.files or _parquet_files(request.path))
    budget = request.budget
    width = len(store.schema)
    rows = min(store.n, BLOCK_ROWS)
    check_names(request, store.columns)
    if may_load(store.size, budget) and leaves_room(store.n, width, budget, copies=2):
        table = pa.concat_tables(store.read(0, store.n, store.columns)).replace_schema_metadata(
            store.schema.metadata
        )
        return Rows.of_table(request, InMemory.of_arrow(table.unify_dictionaries()))
    pages = store.pages
    blocks = 2.0 * 8 * rows * width
    if pages + blocks > max(budget, 8 * PAGES):  # less is there in every process
        raise MemoryBudgetError(
            f"reading {rows:,} rows × {width:,} columns of the Parquet file takes about {readable_size(pages + blocks)}, of "
            f"which pages of a row group take {readable_size(pages)}; the budget is {readable_size(budget)}",
            "Raise `memory_budget`, or write the file with fewer columns or smaller row groups.",
        )
    return Rows.of_table(request, store)


def _parquet_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        file for file in path.rglob("*") if file.suffix.lower() == ".parquet" and file.is_file()
    )
    files = [file for file in files if file.name[0] not in "._"]
    nested = next((file for file in files if file.parent != path), None)
    if nested is not None:
        fault = f"has Parquet files in folders of its own, {nested.relative_to(path)} for one, whose names may be data"
        raise FileFault(path, fault, "Write it without partitions, all files in one folder.")
    return files


def rows_of_batches(
    request: Request,
    batches: Iterable[Any],
    *,
    notes: Sequence[str] = (),
    line: Callable[[int], int | None] | None = None,
) -> Rows:
    """Rows of ``pyarrow.RecordBatch``; those that take much of the budget are laid out in a temporary Parquet file."""
    batches = iter(batches)
    kept = []
    size = 0
    for batch in batches:
        kept.append(batch)
        size += batch.nbytes
        if (
            not may_load(1.5 * size, request.budget) and batch.num_rows
        ):  # a table is joined from its batches
            break
    else:
        if not any(batch.num_rows for batch in kept):
            raise no_rows(request.path)
        table = pa.Table.from_batches(kept).unify_dictionaries()
        return Rows.of_table(request, InMemory.of_arrow(table), notes=list(notes), line=line)
    with Scratch(request.path) as scratch:
        file = scratch.folder / "rows.parquet"
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        with scratch.writing(), pq.ParquetWriter(file, kept[0].schema, **options) as writer:
            for batch in chain(batches, [None]):
                if batch is None or sum(one.num_rows for one in kept) >= BLOCK_ROWS:
                    writer.write_table(pa.Table.from_batches(kept, kept[0].schema), BLOCK_ROWS)
                    kept.clear()
                kept.append(batch)
        pa.default_memory_pool().release_unused()
        store = InParquet(request.path, [file], scratch)
        said = f"The rows are many: all {store.n:,} were written to a temporary Parquet file."
        return Rows.of_table(
            request, store, notes=[*notes, said], line=line, closers=[scratch.close]
        )


def rows_of_arrow(X: Any, request: Request) -> Rows:
    """The rows of a Dataset, Scanner, ParquetFile or RecordBatchReader, which are read once."""
    if hasattr(X, "scanner"):  # a few ahead of what is looked at, wherever they are stored
        X = X.scanner(batch_readahead=4, fragment_readahead=2)
    batches = X
    if hasattr(X, "to_batches"):
        batches = X.to_batches()
    elif hasattr(X, "iter_batches"):
        batches = X.iter_batches()
    remedy = "A file is damaged, or has other types than the first; then open all with the schema of all."
    return rows_of_batches(request, _checked(batches, f"the {request.kind}", remedy))


def open_feather(request: Request) -> Rows:
    path = request.path
    with readable(path):
        file = pa.OSFile(os.fsencode(path))  # not every name is UTF-8
        is_indexed = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = ipc.open_file(file) if is_indexed else ipc.open_stream(file)
    if is_indexed:
        reader = map(reader.get_batch, range(reader.num_record_batches))
    with file:
        return rows_of_batches(request, _checked(reader, path))


def _checked(batches: Any, file: str | Path, remedy: str | None = None) -> Iterator[Any]:
    """Batches that are valid, without views of text."""
    with readable(file, remedy):
        for batch in batches:
            yield valid(batch).cast(without_views(batch.schema))


def without_views(schema: pyarrow.Schema) -> Any:
    """The same columns, without views of text and bytes, which most functions of pyarrow do not take."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return pa.schema(
        [field.with_type(plain.get(field.type, field.type)) for field in schema], schema.metadata
    )


def valid(data: pyarrow.RecordBatch) -> Any:
    """A table or batch, if lengths, offsets, indices and texts in it are right; otherwise ``pyarrow.ArrowInvalid``."""
    data.validate(full=True)
    return data


def open_stream(request: Request, raw: BinaryIO | None = None) -> Any:
    """The bytes of a file, decompressed and in UTF-8 if they are not yet; of an open file if there is one."""
    compression = COMPRESSIONS.get(Path(request.ending).suffix)
    # A name in bytes, since not every one is UTF-8.
    stream = pa.OSFile(os.fsencode(request.path)) if raw is None else pa.PythonFile(raw, mode="r")
    stream = stream if compression is None else pa.CompressedInputStream(stream, compression)
    encoding = request.encoding
    return stream if encoding is None else pa.transcoding_input_stream(stream, encoding, "utf-8")


def in_its_encoding(request: Request, read: Callable[[Request], Result]) -> Result:
    """What is read from a file, again in the encoding that it turns out to have."""
    try:
        return read(request)
    except OtherEncoding as other:
        if other.file != str(request.path) or request.encoding is not None:
            raise
        found = read(replace(request, encoding=other.encoding))
        if other.word:
            said = f"{request.path.name} is not UTF-8 and was read as Windows-1252, with words such as {other.word!r}."
            warn(f"{said} If it is another one, name it with `encoding`.")
        return found


def check_text(request: Request, most: float = float("inf")) -> None:
    """Refuse a file that is not UTF-8, with its first wrong byte; no more than so many bytes of it are looked at.

    A first wrong byte after nothing but ASCII is taken for a letter of Windows-1252, which Latin-1 is a part of.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    done = 0
    path = request.path
    is_ascii = True
    with readable(path), open_stream(request) as stream:
        block = b"."
        while block and done < most:
            block = stream.read(min(most, 1 << 20))
            wide = "" if done else json.detect_encoding(block)
            if wide in ("utf-16", "utf-32"):  # it begins with the mark of such texts
                raise OtherEncoding(path, f"is written in {wide}", None, encoding=wide)
            if not done and b"\0" in block:
                remedy = "Give it the ending of what it is, such as .parquet or .npy, or name the `encoding` of UTF-16."
                line = block[: block.index(b"\0")].count(b"\n") + 1
                raise FileFault(
                    path, "holds zero bytes: it is no text but a binary file", remedy, line=line
                )
            # The beginning of a letter, left over from the block before.
            pending = decoder.getstate()[0]
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                data, start = pending + block, error.start
                fault = f"byte {done - len(pending) + start:,} (0x{data[start]:02x}) is not UTF-8"
                remedy = "Name the encoding that it was saved in with `encoding`, such as cp1252, cp1251 or gb18030."
                where = line + data[:start].count(b"\n")
                if not (is_ascii and data[:start].isascii()):
                    remedy = f"{remedy} Or correct the line: what is before it is UTF-8."
                    raise FileFault(path, fault, remedy, line=where) from error
                words = re.finditer(rb"[\w\x80-\xff]+", data)
                word = next(word[0] for word in words if word.end() > start).decode(
                    "cp1252", "replace"
                )
                raise OtherEncoding(
                    path, fault, remedy, line=where, encoding="cp1252", word=word
                ) from error
            is_ascii = is_ascii and block.isascii()
            line, done = line + block.count(b"\n"), done + len(block)


def open_json_lines(request: Request) -> Rows:
    """A .jsonl file. Of a large one, the first block decides the types of the columns."""
    check_text(request)  # pyarrow takes strings of JSON as they come
    size = request.path.stat().st_size * (1 if request.ending in (".jsonl", ".ndjson") else 5)
    is_small = may_load(2.0 * size, request.budget)  # as text and as a table

    def batches(schema: pyarrow.Schema | None = None) -> Iterator[Any]:
        options = pyarrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer"
        )
        read = pyarrow_json.ReadOptions(block_size=PARSED_BYTES)
        remedy = "Write one object a line, and all values of a column in the same way; a missing one is null."
        with readable(request.path, remedy), open_stream(request) as stream:
            if is_small:
                yield from pyarrow_json.read_json(stream, read, options).to_batches()
            else:
                yield from pyarrow_json.open_json(stream, read, options)

    def kind_of(column: pyarrow.Array) -> Any:
        if types.is_timestamp(column.type):  # dates stay as they are written
            return pa.string()
        # Whole numbers of the first block may have fractions further down, and what is missing there may be numbers.
        whole = types.is_integer(column.type) and not request.is_name(column.name)
        return (
            pa.float64() if not is_small and (whole or types.is_null(column.type)) else column.type
        )

    blocks = list(islice(batches(), None if is_small else 1))
    if not blocks or not blocks[0].num_rows:
        raise no_rows(request.path, "has no records")
    level = blocks[0].schema.types
    for _ in range(MOST_LEVELS):
        level = [kind.field(i).type for kind in level for i in range(kind.num_fields)]
    if level:
        raise nested(request.path)
    schema = pa.schema([(column.name, kind_of(column)) for column in blocks[0].schema])
    found: Iterable[Any] = blocks
    if not is_small or not schema.equals(blocks[0].schema):
        found = (batch.select(list(schema.names)) for batch in batches(schema))
    return rows_of_batches(request, found)
