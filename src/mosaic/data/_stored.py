"""Tables that know their types: Parquet, Feather and Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic._files import library
from mosaic.data._bytes import Progress
from mosaic.data._columns import ColumnChoices, is_number
from mosaic.data._faults import FileFault, readable
from mosaic.data._framed import Frame, table_of
from mosaic.data._streams import table_of_stream
from mosaic.data.records import Columns, InMemory, Streamed
from mosaic.data.table import Table
from mosaic.engines.parquet import LITTLE, ParquetSource, parquet_files, row_names
from mosaic.passes import BLOCK_ROWS


def open_parquet(path: Path, choices: ColumnChoices, budget: float, progress: Progress | None) -> Table:
    """A Parquet file, or the files of a folder in the order of their names.

    Numbers or columns that take more than a quarter of the budget stay in the file: X is then a source that is read in
    passes.
    """
    parquet, pa = library("pyarrow.parquet", path), library("pyarrow", path)
    kind = "Parquet folder" if path.is_dir() else "Parquet file"
    with readable(path):
        files = parquet_files(path)
    opened = []
    for file in files:
        with readable(file), parquet.ParquetFile(file) as known:
            opened.append((file, known.metadata, known.schema_arrow))
    _check_alike(opened)
    filled = [one for one in opened if one[1].num_rows]
    if not filled:
        raise FileFault(path, "has no rows", "Write it again with its rows, or name another one.")
    with readable(path):
        schema = plain_schema(pa.unify_schemas([one[2] for one in filled], promote_options="permissive"))
    n = sum(head.num_rows for _, head, _ in filled)
    total = sum(head.row_group(g).total_byte_size for _, head, _ in filled for g in range(head.num_row_groups))
    n_numbers = sum(is_number(field.type) for field in schema)
    if 8 * n * n_numbers > budget / 4 or total > budget / 4:
        records = ParquetRecords([(file, head) for file, head, _ in filled], schema)

        def stream(columns: list[str], numeric: list[str]) -> Iterator[Any]:
            yield from records.watched(columns, progress)

        def source(columns: list[str]) -> Any:
            with readable(path):
                return ParquetSource(path, columns=columns)

        sample = next(records.batches(schema.names), None)
        frame = Frame(path, kind, schema, records, expected=8 * n, row_names=row_names(schema), sample=sample)
        frame.stream, frame.source = stream, source
        return table_of_stream(frame, choices, budget)
    parts = []
    for file, _, _ in filled:
        with readable(file), parquet.ParquetFile(file) as known:
            parts.append(known.read(use_threads=False))
    with readable(path):
        table = pa.concat_tables(parts, promote_options="permissive")
    return _in_memory(path, kind, table, choices, budget)


def open_feather(path: Path, kind: str, choices: ColumnChoices, budget: float, progress: Progress | None) -> Table:
    """A Feather or Arrow file. Files of more than a sixth of the budget, which may be compressed, are read batch by batch."""
    size = path.stat().st_size
    if size <= budget / 6:
        with readable(path), _opened(path) as reader:
            table = reader.read_all()
        if not table.num_rows:
            raise FileFault(path, "has no rows", "Write it again with its rows, or name another one.")
        return _in_memory(path, kind, table, choices, budget)
    with readable(path), _opened(path) as reader:
        schema = plain_schema(reader.schema)

    def read(columns: Sequence[str]) -> Iterator[Any]:
        with readable(path), _opened(path) as reader:
            for batch in _ipc_batches(reader):
                yield batch.cast(schema).select(list(columns))

    sample = next(read(schema.names), None)
    if sample is None:
        raise FileFault(path, "has no rows", "Write it again with its rows, or name another one.")
    bytes_each = size / max(1, sum(is_number(field.type) for field in schema))
    records = Streamed(schema.names, read)
    frame = Frame(path, kind, schema, records, expected=bytes_each, row_names=row_names(schema), sample=sample)
    return table_of_stream(frame, choices, budget)


class ParquetRecords(Columns):
    """Rows of Parquet files: only the row groups that hold them are read, in batches."""

    def __init__(self, files: list[tuple[Path, Any]], schema: Any):
        self._files, self._schema, self.columns = files, schema, list(schema.names)

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """By the row groups that they are in."""
        pa = library("pyarrow", "Parquet")
        names = self.columns if columns is None else list(columns)
        wanted, order = np.unique(numbers, return_inverse=True)
        parts, begin = [self._schema.empty_table().select(names)], 0
        for file, head in self._files:
            groups, first = [], begin
            for g in range(head.num_row_groups):
                size = head.row_group(g).num_rows
                if np.searchsorted(wanted, first) < np.searchsorted(wanted, first + size):
                    groups.append((g, first))
                first += size
            for g, start in groups:
                for batch in self._groups(file, head, [g], names):
                    here = wanted[(wanted >= start) & (wanted < start + batch.num_rows)] - start
                    parts.append(pa.Table.from_batches([batch.take(pa.array(here))]))
                    start += batch.num_rows
            begin = first
        table = pa.concat_tables(parts, promote_options="permissive")
        return table.take(pa.array(order.ravel())).combine_chunks()

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """One group after the other."""
        yield from self.watched(list(columns), None)

    def watched(self, columns: list[str], progress: Progress | None) -> Iterator[Any]:
        """One group after the other, with word of how many bytes are done."""
        total = sum(file.stat().st_size for file, _ in self._files)
        done, rows = 0, sum(head.num_rows for _, head in self._files)
        for file, head in self._files:
            for batch in self._groups(file, head, list(range(head.num_row_groups)), columns):
                yield batch
                done += batch.num_rows
                if progress is not None:
                    progress(int(total * done / rows), total)

    def _groups(self, file: Path, head: Any, groups: list[int], columns: list[str]) -> Iterator[Any]:
        """Some groups of a file, in the types of all files."""
        parquet, pa = library("pyarrow.parquet", file), library("pyarrow", file)
        schema = pa.schema([self._schema.field(name) for name in columns])
        with readable(file), parquet.ParquetFile(file, metadata=head, **LITTLE) as opened:
            for batch in opened.iter_batches(BLOCK_ROWS, groups, columns, use_threads=False):
                yield batch.select(columns).cast(schema)


def plain_schema(schema: Any) -> Any:
    """The same columns, without views of text and bytes, which most functions of pyarrow do not take."""
    pa, types = library("pyarrow", "a table"), library("pyarrow.types", "a table")

    def plainly(kind: Any) -> Any:
        if types.is_string_view(kind):
            return pa.large_string()
        if types.is_binary_view(kind):
            return pa.large_binary()
        if types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, plainly(kind.value_type), kind.ordered)
        if types.is_list(kind) or types.is_large_list(kind):
            return (pa.list_ if types.is_list(kind) else pa.large_list)(plainly(kind.value_type))
        return kind

    return pa.schema([field.with_type(plainly(field.type)) for field in schema], schema.metadata)


def _in_memory(path: Path, kind: str, table: Any, choices: ColumnChoices, budget: float) -> Table:
    table = table.cast(plain_schema(table.schema))
    frame = Frame(path, kind, table.schema, InMemory(table), table, row_names=row_names(table.schema))
    return table_of(frame, choices, budget / 4)


def _check_alike(opened: list[tuple[Path, Any, Any]]) -> None:
    """Files of one folder must have the same columns."""
    first, _, schema = opened[0]
    for file, _, other in opened[1:]:
        if odd := sorted(set(schema.names) ^ set(other.names)):
            raise FileFault(
                file,
                f"has other columns than {first.name}: {', '.join(odd[:10])}",
                "Write all files of the folder with the same columns.",
            )


def _opened(path: Path) -> Any:
    """Reader of the batches of an Arrow file, with or without an index of them."""
    ipc, pa = library("pyarrow.ipc", path), library("pyarrow", path)
    with path.open("rb") as file:
        head = file.read(6)
    if head[:4] == b"FEA1":
        raise FileFault(
            path,
            "is a Feather file of version 1, which is read no more",
            "Write it again with an older pyarrow: write_feather(read_table(file), file, version=2); or as Parquet.",
        )
    stored = pa.OSFile(os.fsencode(path))  # not every name is UTF-8
    return ipc.open_file(stored) if head == b"ARROW1" else ipc.open_stream(stored)


def _ipc_batches(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)
    else:
        yield from reader
