"""Parquet: the one place that reads it, for all that asks for columns, rows or blocks; and writes it for large files of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray, IntArray, row_blocks
from mosaic._files import Library
from mosaic.data.faults import FileFault, readable
from mosaic.data.features import Progress, Request, is_list
from mosaic.data.records import Columns
from mosaic.data.scratch import Scratch
from mosaic.engines.local import LocalSource
from mosaic.passes import BLOCK_ROWS

pa, pc, pq, types = (Library(f"pyarrow{module}") for module in ("", ".compute", ".parquet", ".types"))

#: Columns of a row group are read in small parts, not as a whole before the first row is decoded.
SMALL_READS = {"pre_buffer": False, "buffer_size": 1 << 16}
#: Columns that are written side by side into a row-major matrix: one cache line of float64.
COLUMNS_AT_ONCE = 8


def parquet_files(path: Path) -> list[Path]:
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


class ParquetFiles:
    """Rows of one Parquet file, or of several with the same columns. Every file is opened when it is read, and only then.

    Attributes
    ----------
    schema : columns of all files, with types that hold the values of each
    n, size : rows, and bytes of them when they are read
    ends : of every row group, the number of the row behind its last one
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
            raise FileFault(path, "has no rows", "Write it again with its rows, or name another one.")
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
        self.n, self.size = int(self.ends[-1]), sum(group.total_byte_size for group in groups)

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
                    part = batch.slice(min(skip, batch.num_rows), left)
                    skip, left = max(0, skip - batch.num_rows), left - part.num_rows
                    if part.num_rows:
                        yield part.select(list(columns)).cast(schema)

    def read_all(self) -> Any:
        """All rows and columns, as a ``pyarrow.Table``."""
        tables = []
        for file, head in self._files:
            with readable(file), pq.ParquetFile(file, metadata=head) as opened:
                tables.append(opened.read(use_threads=False))
        return pa.concat_tables(tables, promote_options="permissive").cast(self.schema)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Whole row groups, as many as make a block."""
        begin = 0
        for end in self.ends.tolist():
            if end - begin >= BLOCK_ROWS or end == self.n > begin:
                yield begin, end
                begin = end

    def file_bytes(self) -> int:
        """Bytes of the files on disk."""
        return sum(file.stat().st_size for file, _ in self._files)


class ParquetRecords(Columns):
    """Rows of Parquet files: only the row groups that hold them are read.

    Parameters
    ----------
    files : the files
    schema : names and types of the columns as they are shown; those of the files, if None
    shown : turns columns as they are stored into columns as they are shown
    line : of a row number, the line in the text file that the rows come from
    progress : is told how far ``batches`` is
    """

    def __init__(
        self,
        files: ParquetFiles,
        schema: Any = None,
        shown: Callable[[Any], Any] | None = None,
        line: Callable[[int], int | None] | None = None,
        progress: Progress | None = None,
    ):
        super().__init__(files.schema if schema is None else schema, files.n, line)
        self.files, self._shown, self._progress = files, shown, progress

    def take(self, numbers: IntArray, columns: Sequence[str] | None = None) -> Any:
        """By the row groups that they are in."""
        names = self.columns if columns is None else list(columns)
        wanted, order = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        parts = [self.files.schema.empty_table().select(names)]
        ends = self.files.ends
        for group in np.unique(np.searchsorted(ends, wanted, "right")):
            start = int(ends[group - 1]) if group else 0
            for batch in self.files.read(start, int(ends[group]), names):
                here = wanted[(wanted >= start) & (wanted < start + batch.num_rows)] - start
                parts.append(pa.Table.from_batches([batch.take(pa.array(here))]))
                start += batch.num_rows
        table = pa.concat_tables(parts, promote_options="permissive").take(pa.array(order.ravel())).combine_chunks()
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
        self.files = files.paths
        self.names = None if width is not None else list(columns)
        self.n_features = len(columns) if width is None else width
        self._dtype = number_type([files.schema.field(name).type for name in columns])
        #: What keeps a temporary file in its place; it does not travel to other processes.
        self.owner: Any = None

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Whole row groups, as many as make a block."""
        return self._files.pieces()

    def read(self, start: int, stop: int) -> Any:
        """Rows of the groups that hold them."""
        rows = np.full(
            (stop - start, self.n_features), np.nan, self._dtype
        )  # what a damaged file holds back is missing
        known = 0
        for batch in self._files.read(start, stop, self._columns):
            rows[known : known + batch.num_rows] = matrix_of(batch)
            known += batch.num_rows
        return rows

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"owner": None}


def matrix_of(data: Any) -> FloatArray:
    """A table or batch of columns of numbers as a row-major matrix, missing values as NaN; float32 where all columns are.

    A single column of lists of equally many numbers is a matrix, too. Integers that float64 does not hold are rounded.

    Examples
    --------
    >>> import pyarrow as pa
    >>> matrix_of(pa.table({"age": [36, None], "member": [True, False]}))
    array([[36.,  1.],
           [nan,  0.]])
    >>> matrix_of(pa.table({"embedding": [[1.0, 2.0], [3.0, 4.0]]}))
    array([[1., 2.],
           [3., 4.]])
    """
    dtype = number_type([column.type for column in data.columns])
    kind = "float" if dtype == np.float32 else "double"
    if data.num_columns == 1 and is_list(data.schema.field(0).type):
        numbers = pc.list_flatten(data.column(0)).cast(kind, safe=False).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(numbers.reshape(data.num_rows, -1))
    matrix = np.empty((data.num_rows, data.num_columns), dtype)
    # Cache line by cache line: one column after the other would fetch every line of the matrix once for each column.
    for start in range(0, data.num_columns, COLUMNS_AT_ONCE):
        columns = [
            column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
            for column in data.columns[start : start + COLUMNS_AT_ONCE]
        ]
        for rows in row_blocks(len(matrix), COLUMNS_AT_ONCE, 1 << 15):
            for offset, values in enumerate(columns):
                matrix[rows, start + offset] = values[rows]
    return matrix


def number_type(kinds: Sequence[Any]) -> np.dtype[Any]:
    """The type of NumPy that holds columns of these types: float32 where all are of single precision or less."""
    inner = [kind.value_type for kind in kinds if is_list(kind)]
    if inner:
        return np.dtype(np.float32 if all(types.is_float32(k) or types.is_float16(k) for k in inner) else np.float64)
    return np.dtype(np.float32 if kinds and all(types.is_float32(kind) for kind in kinds) else np.float64)


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


def converted(request: Request, batches: Iterator[Any], expected: float) -> tuple[ParquetFiles, Scratch]:
    """Batches of a file that cannot be read in parts, written to a temporary Parquet file in row groups of a block.

    Parameters
    ----------
    request : what is read, for messages
    batches : all rows
    expected : bytes that they will take, roughly
    """
    with Scratch(request.path, expected) as scratch:
        file, writer = scratch.folder / "rows.parquet", None
        try:
            for batch in batches:
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
            raise FileFault(request.path, "has no rows", "Write it again with its rows, or name another one.")
        return ParquetFiles(request.path, [file]), scratch
