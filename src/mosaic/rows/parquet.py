"""Tables that know their types: Parquet, Feather and Arrow. Larger files of other kinds are converted to Parquet, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.passes import BLOCK_ROWS
from mosaic.choosing.budget import leaves_room
from mosaic.exceptions import MemoryBudgetError
from mosaic.rows.columns import (
    NO_TEXT,
    FeatureRows,
    TextColumns,
    finished_table,
    found_encoder,
    matrix_of,
    number_type,
    place_name,
    table_in_memory,
)
from mosaic.rows.encoded import CellsOfTable
from mosaic.rows.faults import FileFault, check_unpacked, no_rows, readable
from mosaic.rows.features import Layout, Progress, Request, check_names, lay_out, nothing_left
from mosaic.rows.mixed import TableEncoder
from mosaic.rows.sources import SelectedRows
from mosaic.rows.table import InMemory, Records, Table, place_of
from mosaic.rows.writing import Scratch
from mosaic.sketch.sources import LocalSource
from mosaic.text import Library, readable_size

pa, ipc, pq, types = (Library(f"pyarrow{module}") for module in ("", ".ipc", ".parquet", ".types"))

#: Columns of a row group are read in small parts, not as a whole before the first row is decoded.
SMALL_READS = {"pre_buffer": False, "buffer_size": 1 << 16}

#: Bytes of a column that are unpacked at a time: a page of values and one of different values, as writers make them by default.
PAGES = 2 << 20
#: Rows from which the rules of columns are found where not all are in memory, and the stretches of the file that they are in.
DECIDING_ROWS, STRETCHES = 50_000, 50


def open_parquet(request: Request) -> Table:
    """A Parquet file, or the files of a folder in the order of their names.

    What leaves too little of the budget for a fit, or takes more than a quarter of it, stays in the file: X is then a source that
    is read in passes.
    """
    files = ParquetFiles(request.path, _parquet_files(request.path))
    check_unpacked(request.path, 8.0 * files.n * len(files.schema), files.file_bytes(), request.budget)
    check_names(request, list(files.schema.names))
    if files.size > request.budget / 4 or not leaves_room(files.n, len(files.schema), request.budget, copies=2):
        files.check_room(request.budget)
        layout = lay_out(request, files.schema)
        return table_of_parquet(request, ParquetRecords(files, progress=request.progress), layout)
    return table_in_memory(request, InMemory(files.read_all()))


def open_feather(request: Request) -> Table:
    """A Feather or Arrow file. Files of more than a sixth of the budget, which may be compressed, are converted to Parquet."""
    path = request.path
    size = path.stat().st_size
    with readable(path), _open_batches(path) as reader:
        schema = without_views(reader.schema)
        if size <= request.budget / 6:
            table = valid(reader.read_all()).cast(schema)
            if not table.num_rows:
                raise no_rows(path)
            return table_in_memory(request, InMemory(table))
    layout = lay_out(request, schema)

    def batches() -> Iterator[Any]:
        with readable(path), _open_batches(path) as reader:
            indexed = hasattr(reader, "num_record_batches")
            for batch in map(reader.get_batch, range(reader.num_record_batches)) if indexed else reader:
                if batch.num_rows:
                    yield valid(batch).cast(schema)

    return table_by_conversion(request, layout, batches(), size)


def table_of_parquet(
    request: Request,
    records: ParquetRecords,
    layout: Layout,
    seen: FeatureRows | None = None,
    text: TextColumns = NO_TEXT,
    scratch: Scratch | None = None,
) -> Table:
    """A table whose rows stay in Parquet files. How columns become numbers is found from a part of the rows.

    Parameters
    ----------
    request, records : what the user asks for, and the rows
    layout : what the columns are for
    seen : what is known about the features, if all rows were looked at already
    text : of a text file, what its reader knows about the columns
    scratch : the temporary folder that the files are in
    """
    if request.id is not None:
        layout.notes.append(
            f"Whether the values of {request.id!r} are all different was not checked in a file of this size."
        )
    if seen is None:
        seen = FeatureRows(request, layout.features, records.place, records.n)
        if layout.features and (request.drop_missing or request.embedding is not None or layout.compared):
            for batch in records.batches(layout.features):
                seen.see_columns(batch, later=bool(layout.compared))
    encoder = None
    if layout.compared:
        sample, numbers = _spread_rows(records.files, layout.compared, seen.dropped)
        cells = CellsOfTable(sample, layout, text.codes)
        encoder = found_encoder(
            request,
            layout,
            cells,
            lambda row: place_name(records.place(int(numbers[row]))),
            seen.gaps,
            text,
        )
    if encoder is None and not request.elsewhere:
        seen.check()
        if not layout.features:
            raise nothing_left(request, layout)
    X: Any = np.zeros((records.n, 0))
    if layout.features or encoder is not None:
        if encoder is None:
            X = ParquetSource(request.kind, records.files, layout.features, seen.width)
        else:
            X = EncodedSource(request.kind, records.files, encoder, layout, text.codes)
            if len(sample) < records.n:
                said = f"How columns are compared was found from {len(sample):,} rows spread over the file."
                layout.notes.append(said)
        X.owner = scratch
        if len(seen.dropped):
            X = SelectedRows(X, seen.dropped)
        if scratch is not None and leaves_room(X.n, X.n_features, request.budget):
            X = X.read(0, X.n)
    return finished_table(request, records, layout, X, seen, text.notes, encoder, scratch)


def table_by_conversion(
    request: Request,
    layout: Layout,
    batches: Iterator[Any],
    expected: float,
    *,
    shown: Callable[[Any], Any] | None = None,
    line: Callable[[int], int | None] | None = None,
    text: TextColumns = NO_TEXT,
) -> Table:
    """A table of a file that is read only from its beginning to its end: it is converted to a temporary Parquet file first.

    Parameters
    ----------
    request : what the user asks for
    layout : what the columns are for
    batches : all rows
    expected : bytes that they will take, roughly
    shown : turns the columns of the batches into columns as they are shown
    line : of a row number, the line in a text file
    text : of a text file, what its reader knows about the columns
    """
    seen, writer = FeatureRows(request, layout.features, lambda number: place_of(number, line)), None
    with Scratch(request.path, expected) as scratch:
        file = scratch.folder / "rows.parquet"
        try:
            for batch in batches:
                if layout.features and batch.num_rows:
                    seen.see_columns(batch.select(layout.features), later=bool(layout.compared))
                with scratch.writing():
                    if writer is None:
                        writer = pq.ParquetWriter(
                            file, batch.schema, compression="none", use_dictionary=False, write_statistics=False
                        )
                    writer.write_batch(batch, row_group_size=BLOCK_ROWS)
        finally:
            if writer is not None:
                with scratch.writing():
                    writer.close()
        if writer is None:
            raise no_rows(request.path)
        files = ParquetFiles(request.path, [file])
        said = f"The file is large: its {files.n:,} rows were converted to a temporary Parquet file."
        records = ParquetRecords(files, shown, line)
        return table_of_parquet(request, records, layout, seen, replace(text, notes=[*text.notes, said]), scratch)


class ParquetFiles:
    """Rows of one Parquet file, or of several with the same columns. Every file is opened when it is read, and only then.

    Attributes
    ----------
    schema : columns of all files, with types that hold the values of each
    n, size : rows, and bytes of them when they are read
    ends : of every row group, the number of the row behind its last one
    pages : bytes that are unpacked at a time, of all columns
    """

    def __init__(self, path: Path, files: Sequence[Path]):
        opened = []
        for file in files:
            with readable(file), pq.ParquetFile(file) as known:
                opened.append((file, known.metadata, known.schema_arrow))
        first, _, schema = opened[0]
        for file, _, other in opened[1:]:
            if odd := sorted(set(schema.names) ^ set(other.names)):
                raise FileFault(
                    file,
                    f"has other columns than {first.name}: {', '.join(odd[:10])}",
                    "Write all files of the folder with the same columns.",
                )
        filled = [one for one in opened if one[1].num_rows]
        if not filled:
            raise no_rows(path)
        schemas = [one[2] for one in filled]
        with readable(path):
            # Two columns of one name are refused later, with their name.
            alike = all(schema.equals(schemas[0]) for schema in schemas)
            self.schema = without_views(
                schemas[0] if alike else pa.unify_schemas(schemas, promote_options="permissive")
            )
        self._files = [(file, head) for file, head, _ in filled]
        self.paths = [file for file, _ in self._files]
        self._groups = [(i, g) for i, (_, head) in enumerate(self._files) for g in range(head.num_row_groups)]
        groups = [self._files[i][1].row_group(g) for i, g in self._groups]
        self.ends = np.cumsum([group.num_rows for group in groups], dtype=np.int64)
        sizes = [group.total_byte_size for group in groups]
        self.n, self.size = int(self.ends[-1]), sum(sizes)
        self.pages = float(min(max(sizes), PAGES * len(self.schema)))

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Iterator[Any]:
        """Rows from start to stop, in batches of at most a block. Only the row groups that hold them are read."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        first, last = (int(g) for g in np.searchsorted(self.ends, [start, stop - 1], "right"))
        skip, left = start - (int(self.ends[first - 1]) if first else 0), stop - start
        for i, groups in groupby(self._groups[first : last + 1], key=lambda group: group[0]):
            file, head = self._files[i]
            # A handle of its own, so that threads do not share one.
            with readable(file), pq.ParquetFile(file, metadata=head, **SMALL_READS) as opened:
                for batch in opened.iter_batches(BLOCK_ROWS, [g for _, g in groups], list(columns), use_threads=False):
                    part = valid(batch).slice(min(skip, batch.num_rows), left)
                    skip, left = max(0, skip - batch.num_rows), left - part.num_rows
                    if part.num_rows:
                        yield part.select(list(columns)).cast(schema)

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """Rows with these numbers, which are in ascending order, as a ``pyarrow.Table``."""
        parts = [self.schema.empty_table().select(list(columns))]
        for group in np.unique(np.searchsorted(self.ends, numbers, "right")):
            start = int(self.ends[group - 1]) if group else 0
            last = int(numbers[np.searchsorted(numbers, self.ends[group]) - 1])
            for batch in self.read(start, last + 1, columns):
                here = numbers[slice(*np.searchsorted(numbers, [start, start + batch.num_rows]))] - start
                if len(here):  # a copy, since a slice would keep the whole batch in memory
                    parts.append(pa.Table.from_batches([batch.take(pa.array(here))]))
                start += batch.num_rows
        return pa.concat_tables(parts, promote_options="permissive")

    def read_all(self) -> Any:
        """All rows and columns, as a ``pyarrow.Table``; batch by batch, which takes less memory than at once."""
        return pa.Table.from_batches(self.read(0, self.n, self.schema.names), self.schema).unify_dictionaries()

    def check_room(self, budget: float) -> None:
        """Refuse files of which a single block of rows does not fit into the budget: unpacked pages, columns, and numbers."""
        width, rows = len(self.schema), min(self.n, BLOCK_ROWS)
        pages, blocks = self.pages, 2.0 * 8 * rows * width
        if pages + blocks > max(budget, 8 * PAGES):  # less is there in every process
            raise MemoryBudgetError(
                f"reading {rows:,} rows × {width:,} columns of the Parquet file takes about {readable_size(pages + blocks)}, of "
                f"which pages of a row group take {readable_size(pages)}; the budget is {readable_size(budget)}",
                "Raise `memory_budget`, or write the file with fewer columns or smaller row groups.",
            )

    def file_bytes(self) -> int:
        """Bytes of the files on disk."""
        return sum(file.stat().st_size for file, _ in self._files)


class ParquetRecords(Records):
    """Rows of Parquet files: only the row groups that hold them are read.

    Parameters
    ----------
    files : the files
    shown : turns columns as they are stored into columns as they are shown
    line : of a row number, the line in the text file that the rows come from
    progress : is told how far ``batches`` is
    """

    def __init__(
        self,
        files: ParquetFiles,
        shown: Callable[[Any], Any] | None = None,
        line: Callable[[int], int | None] | None = None,
        progress: Progress | None = None,
    ):
        super().__init__(files.schema.names, files.n, line)
        self.files, self._shown, self._progress = files, shown, progress

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """By the row groups that they are in."""
        wanted, order = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        table = self.files.take(wanted, columns).take(pa.array(order.ravel())).combine_chunks()
        return table if self._shown is None else self._shown(table)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """One block after the other."""
        done, total = 0, self.files.file_bytes()
        for batch in self.files.read(0, self.n, columns):
            table = pa.Table.from_batches([batch])
            yield table if self._shown is None else self._shown(table)
            done += batch.num_rows
            if self._progress is not None:
                self._progress(int(total * done / self.n), total)


class ParquetSource(LocalSource):
    """Columns of Parquet files as rows of numbers, missing values as NaN; float32 where all columns are.

    Parameters
    ----------
    kind : what it is, as a person would say it
    files : the files
    columns : of numbers, those that are read, in this order; or one column of lists of equally many numbers
    width : length of the lists
    """

    def __init__(self, kind: str, files: ParquetFiles, columns: Sequence[str], width: int | None = None):
        self.kind, self.n, self._files, self._columns = kind, files.n, files, list(columns)
        self.files, self.buffers = files.paths, files.pages
        self.names = None if width is not None else list(columns)
        self.n_features = len(columns) if width is None else width
        self._dtype = number_type([files.schema.field(name).type for name in columns])
        #: What keeps a temporary file in its place; it does not travel to other processes.
        self.owner: Any = None

    def stream(self) -> Iterator[tuple[int, Any]]:
        """One batch after the other: a row group may be larger than memory allows."""
        known = 0
        for batch in self._files.read(0, self.n, self._columns):
            yield known, self.matrix(batch)
            known += batch.num_rows
        for start in range(known, self.n, BLOCK_ROWS):  # what a damaged file holds back is missing
            yield start, np.full((min(BLOCK_ROWS, self.n - start), self.n_features), np.nan, self._dtype)

    def read(self, start: int, stop: int) -> Any:
        """Rows of the groups that hold them."""
        rows, known = np.full((stop - start, self.n_features), np.nan, self._dtype), 0
        for batch in self._files.read(start, stop, self._columns):
            rows[known : known + batch.num_rows] = self.matrix(batch)
            known += batch.num_rows
        return rows

    def matrix(self, batch: Any) -> FloatArray:
        """The numbers of some rows."""
        return matrix_of(batch)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"owner": None}


class EncodedSource(ParquetSource):
    """Columns of Parquet files of whatever kind, as numbers.

    Parameters
    ----------
    kind : what it is, as a person would say it
    files : the files
    encoder : how columns become numbers
    layout : of the columns
    codes : columns of text that are no numbers, whatever they look like
    """

    def __init__(
        self, kind: str, files: ParquetFiles, encoder: TableEncoder, layout: Layout, codes: Sequence[str] = ()
    ):
        super().__init__(kind, files, encoder.names)
        self.names, self.n_features, self._dtype = encoder.number_names, encoder.width, np.dtype(np.float64)
        self._encoder, self._layout, self._codes = encoder, layout, codes

    def matrix(self, batch: Any) -> FloatArray:
        """The numbers of some rows."""
        cells = CellsOfTable(pa.Table.from_batches([batch]), self._layout, self._codes)
        return self._encoder.encode(cells)


def _spread_rows(files: ParquetFiles, columns: Sequence[str], dropped: IntArray) -> tuple[Any, IntArray]:
    """Rows of these columns from which rules are found, and their numbers: all, or stretches that are spread over the file."""
    starts, length = np.zeros(1, np.int64), files.n
    if files.n > DECIDING_ROWS:
        length = DECIDING_ROWS // STRETCHES
        starts = np.linspace(0, files.n - length, STRETCHES).astype(np.int64)
    numbers = (starts[:, None] + np.arange(length)).ravel()
    kept = np.setdiff1d(numbers, dropped)
    return files.take(kept, columns), kept


def without_views(schema: Any) -> Any:
    """The same columns, without views of text and bytes, which most functions of pyarrow do not take."""

    def simple(kind: Any) -> Any:
        if types.is_string_view(kind):
            return pa.large_string()
        if types.is_binary_view(kind):
            return pa.large_binary()
        if types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, simple(kind.value_type), kind.ordered)
        if types.is_list(kind) or types.is_large_list(kind):
            return (pa.list_ if types.is_list(kind) else pa.large_list)(simple(kind.value_type))
        return kind

    return pa.schema([field.with_type(simple(field.type)) for field in schema], schema.metadata)


def _parquet_files(path: Path) -> list[Path]:
    """The files of a folder, in the order of their names; a file alone."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".parquet" and file.is_file())
    files = [file for file in files if file.name[0] not in "._"]
    nested = next((file for file in files if file.parent != path), None)
    if nested is not None:
        raise FileFault(
            path,
            f"has Parquet files in folders of its own, {nested.relative_to(path)} for one, whose names may be data",
            "Write it without partitions, all files in one folder.",
        )
    return files


def _open_batches(path: Path) -> Any:
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


def valid(data: Any) -> Any:
    """A table or batch of pyarrow, if lengths, offsets, indices and texts in it are right; otherwise ``pyarrow.ArrowInvalid``."""
    data.validate(full=True)
    return data
