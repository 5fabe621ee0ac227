"""Rows of other libraries, batch by batch: query results, data sets, and whatever else is an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.rows.columns import table_in_memory
from mosaic.rows.faults import FileFault, no_rows, readable
from mosaic.rows.features import Request, lay_out
from mosaic.rows.parquet import table_by_conversion, valid, without_views
from mosaic.rows.sources import owner_of
from mosaic.rows.table import InMemory, Table
from mosaic.text import Library, listed

pa = Library("pyarrow")


def open_rows(request: Request) -> Table:
    """The rows of ``request.stream``. Those of more than a sixth of the budget are laid out in a temporary Parquet file."""
    batches, kept, size = _batches(request), [], 0
    for batch in batches:
        kept.append(batch)
        size += batch.nbytes
        if size > request.budget / 6:
            layout = lay_out(request, batch.schema)
            return table_by_conversion(request, layout, chain(kept, batches), size)
    table = pa.Table.from_batches(kept) if kept else None
    if table is None or not table.num_rows:
        raise no_rows(request.path)
    return table_in_memory(request, InMemory(table))


def _batches(request: Request) -> Iterator[Any]:
    """Batches of at most a block, with types that functions of pyarrow take."""
    X = request.stream
    with readable(request.path, "Run the query again, or pass a table in memory."):
        tables: Iterator[Any]
        if isinstance(X, dict):  # splits of Hugging Face ``datasets``, as load_dataset without ``split`` returns them
            fault = f"holds {len(X)} data sets: {listed(list(map(repr, X)))}"
            raise FileFault(request.path, fault, "Pass one of them, as in X[name], or load one with split=name.")
        if owner_of(X) == "datasets":
            tables = (_with_classes(table, X.features) for table in X.with_format("arrow").iter(BLOCK_ROWS))
        elif isinstance(X, pa.RecordBatch):
            tables = iter([pa.Table.from_batches([X])])
        else:
            tables = (pa.Table.from_batches([batch]) for batch in pa.RecordBatchReader.from_stream(X))
        for table in tables:
            yield from valid(table).cast(without_views(table.schema)).combine_chunks().to_batches(BLOCK_ROWS)


def _with_classes(table: Any, features: Any) -> Any:
    """A table of Hugging Face ``datasets`` whose numbered classes are categories with their names."""
    for name, feature in (features or {}).items():
        if hasattr(feature, "int2str") and name in table.column_names:
            numbers = table.column(name).to_pylist()
            cells = [None if number is None or number < 0 else feature.names[number] for number in numbers]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(cells, pa.string()))
    return table
