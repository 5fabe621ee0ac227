"""Parquet: rows are stored in groups, every group column by column. A group is read as a whole, and once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._files import library, listed, readable
from mosaic.engines.base import check_shape
from mosaic.engines.local import LocalSource
from mosaic.exceptions import InvalidInputError
from mosaic.passes import BLOCK_ROWS

#: Columns of a row group are read bit by bit, not as a whole before the first row is decoded.
LITTLE = {"pre_buffer": False, "buffer_size": 1 << 16}


class ParquetSource(LocalSource):
    """A Parquet file, or the files of a folder in the order of their names: pieces are row groups, small ones several at once.

    Columns of integers, floats, booleans and decimals are read, missing values as NaN; float32 where all columns are. All
    other columns identify a row, as in :func:`mosaic._frames.numeric_part`; so do the index and the categories of pandas.

    Parameters
    ----------
    path : of a file or a folder
    n_jobs : threads that read and map
    columns : of numbers, those that are read, in this order; all, if None
    """

    names: list[str]

    def __init__(self, path: Path, n_jobs: int | None = None, columns: Sequence[str] | None = None):
        self.kind, self.n_jobs = "Parquet folder" if path.is_dir() else "Parquet file", n_jobs
        found = [(file, *_head(file, columns)) for file in parquet_files(path)]
        found = [(file, head, kinds) for file, head, kinds in found if head.num_rows] or found[:1]
        self.names = list(found[0][2])
        for file, _, kinds in found:
            if odd := set(kinds) ^ set(self.names):
                raise InvalidInputError(
                    f"{file} and {found[0][0].name} differ in their columns of numbers: {listed(sorted(odd))}. Write all files "
                    "of the folder with the same columns and types."
                )
        self._files = [(file, head) for file, head, _ in found]
        self._groups = [(i, g) for i, (_, head) in enumerate(self._files) for g in range(head.num_row_groups)]
        self._ends = np.cumsum([self._files[i][1].row_group(g).num_rows for i, g in self._groups], dtype=np.int64)
        self.n, self.n_features = sum(head.num_rows for _, head in self._files), len(self.names)
        check_shape(self.n, self.n_features, str(path))
        single = all(kind == "float" for _, _, kinds in found for kind in kinds.values())
        self._dtype = np.dtype(np.float32 if single else np.float64)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Whole row groups, as many as make a block."""
        begin = 0
        for end in self._ends.tolist():
            if end - begin >= BLOCK_ROWS or end == self.n > begin:
                yield begin, end
                begin = end

    def read(self, start: int, stop: int) -> Any:
        """Rows of the groups that hold them, by a file handle of its own, so that threads do not share one."""
        rows = np.full(
            (stop - start, self.n_features), np.nan, self._dtype
        )  # what a damaged file holds back is missing
        known = 0
        first, last = np.searchsorted(self._ends, [start, stop - 1], "right")
        skip = start - (int(self._ends[first - 1]) if first else 0)
        for i, groups in groupby(self._groups[first : last + 1], key=lambda group: group[0]):
            file, head = self._files[i]
            with readable(file), library("pyarrow.parquet", file).ParquetFile(file, metadata=head, **LITTLE) as opened:
                # In batches, so that a large group is not held twice.
                for batch in opened.iter_batches(BLOCK_ROWS, [g for _, g in groups], self.names, use_threads=False):
                    part = batch.slice(min(skip, len(batch)), len(rows) - known)
                    for j, name in enumerate(self.names):
                        rows[known : known + len(part), j] = _numbers(part.column(name), self._dtype)
                    known, skip = known + len(part), max(0, skip - len(batch))
        return rows


def parquet_files(path: Path) -> list[Path]:
    """The files of a folder, in the order of their names; a file alone."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() == ".parquet" and file.is_file())
    files = [file for file in files if file.name[0] not in "._"]
    if not files:
        raise InvalidInputError(f"{path} is a folder without any .parquet file. Pass the folder that they are in.")
    nested = next((file for file in files if file.parent != path), None)
    if nested is not None:
        raise InvalidInputError(
            f"{path} has Parquet files in folders of its own, {nested.relative_to(path)} for one, whose names may be data. "
            "Write it without partitions, all files in one folder."
        )
    return files


def row_names(schema: Any) -> list[str]:
    """Columns that pandas has written as the index of a frame."""
    pandas = schema.pandas_metadata or {"index_columns": []}
    return [index for index in pandas["index_columns"] if isinstance(index, str)]


def _head(file: Path, wanted: Sequence[str] | None = None) -> tuple[Any, dict[str, str]]:
    """What a file says of its row groups, and the names and types of its columns of numbers, or of those that are wanted."""
    parquet, types = library("pyarrow.parquet", file), library("pyarrow.types", file)
    with readable(file), parquet.ParquetFile(file) as opened:
        head, schema = opened.metadata, opened.schema_arrow
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise InvalidInputError(
            f"{file} has more than one column called {twice[0]!r}. Rename them or drop all but one."
        )
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    pandas = schema.pandas_metadata or {"columns": []}
    others = [column.get("field_name") for column in pandas["columns"] if column["pandas_type"] == "categorical"]
    others += row_names(schema)
    columns = [field for field in schema if field.name not in others and any(kind(field.type) for kind in kinds)]
    if not columns and head.num_rows:
        found = listed([f"{field.name} ({field.type})" for field in schema]) or "none at all"
        raise InvalidInputError(
            f"{file} has no column of numbers, only {found}. Convert the columns that stand for numbers, for example with "
            "pandas.to_numeric, and save it again."
        )
    names = {field.name: str(field.type) for field in columns}
    if wanted is None:
        return head, names
    absent = [name for name in wanted if name not in names]
    if absent:
        raise InvalidInputError(
            f"{file} has no columns of numbers called {listed(absent)}; it has {listed(list(names))}. Check the names."
        )
    return head, {name: names[name] for name in wanted}


def _numbers(column: Any, dtype: np.dtype[Any]) -> Any:
    """A column as NumPy's numbers, missing ones as NaN. Integers that float64 does not hold are rounded."""
    return column.cast("float" if dtype == np.float32 else "double", safe=False).to_numpy(zero_copy_only=False)
