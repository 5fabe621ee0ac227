"""Tables that know their types: Parquet, Feather and Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mosaic._files import Library
from mosaic.data.columns import refuse_text, table_by_conversion, table_in_memory, table_of_parquet
from mosaic.data.faults import FileFault, readable
from mosaic.data.features import Request, is_number, lay_out
from mosaic.data.parquet import ParquetFiles, ParquetRecords, parquet_files, without_views
from mosaic.data.records import InMemory
from mosaic.data.table import Table

pa, ipc = Library("pyarrow"), Library("pyarrow.ipc")


def open_parquet(request: Request) -> Table:
    """A Parquet file, or the files of a folder in the order of their names.

    Numbers or columns that take more than a quarter of the budget stay in the file: X is then a source that is read in
    passes.
    """
    files = ParquetFiles(request.path, parquet_files(request.path))
    index, categories = pandas_columns(files.schema)
    n_numbers = sum(is_number(field.type) for field in files.schema)
    if 8 * files.n * n_numbers > request.budget / 4 or files.size > request.budget / 4:
        layout = lay_out(request, files.schema, None, index, categories)
        refuse_text(request, layout, files.schema)
        return table_of_parquet(request, ParquetRecords(files, progress=request.progress), layout)
    return table_in_memory(request, InMemory(files.read_all()), index=index, categories=categories)


def open_feather(request: Request) -> Table:
    """A Feather or Arrow file. Files of more than a sixth of the budget, which may be compressed, are converted to Parquet."""
    path = request.path
    size = path.stat().st_size
    with readable(path), _opened(path) as reader:
        schema = without_views(reader.schema)
        if size <= request.budget / 6:
            table = reader.read_all().cast(schema)
            if not table.num_rows:
                raise FileFault(path, "has no rows", "Write it again with its rows, or name another one.")
            return table_in_memory(request, InMemory(table), index=pandas_columns(schema)[0])
    layout = lay_out(request, schema, None, pandas_columns(schema)[0])
    refuse_text(request, layout, schema)

    def batches() -> Iterator[Any]:
        with readable(path), _opened(path) as reader:
            indexed = hasattr(reader, "num_record_batches")
            for batch in map(reader.get_batch, range(reader.num_record_batches)) if indexed else reader:
                if batch.num_rows:
                    yield batch.cast(schema)

    return table_by_conversion(request, layout, batches(), size)


def pandas_columns(schema: Any) -> tuple[list[str], list[str]]:
    """Columns that pandas has written as the index of a frame, and those that are categories in it."""
    pandas = schema.pandas_metadata or {"index_columns": [], "columns": []}
    index = [name for name in pandas["index_columns"] if isinstance(name, str)]
    return index, [c["field_name"] for c in pandas["columns"] if c["pandas_type"] == "categorical" and c["field_name"]]


def _opened(path: Path) -> Any:
    """Reader of the batches of an Arrow file, with or without an index of them."""
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
