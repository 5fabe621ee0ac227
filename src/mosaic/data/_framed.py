"""From columns to a table: numbers as one matrix, the row names, groups and weights, and all that may be wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mosaic._files import library
from mosaic.data._columns import ColumnChoices, Layout, all_different, check_weight, is_text, lay_out, matrix_of, plain
from mosaic.data._csv import TextTable
from mosaic.data._csv_faults import mostly_numbers
from mosaic.data._faults import FileFault, unknown_name
from mosaic.data._missing import bad_rows, dropped_note, refuse_bad, without_rows
from mosaic.data.records import Columns
from mosaic.data.table import Table


@dataclass
class Frame:
    """Columns of a file, before it is known what they are for.

    Attributes
    ----------
    path, kind : as of a table
    schema : names and types of the columns
    records : the rows
    memory : all columns as a ``pyarrow.Table``; None where they are too many
    expected : bytes of the numbers of one column, where they are not in memory
    row_names : columns that the file itself says name rows
    notes : what was assumed so far
    text : how a text file is written
    sample : of a file that is not in memory, the first rows
    stream : of some columns all rows, some of the columns as numbers; by default as the records give them
    source : of some columns, something that is read in passes; None where numbers must be laid out on disk
    """

    path: Path
    kind: str
    schema: Any
    records: Columns
    memory: Any = None
    expected: float = 0
    row_names: Sequence[str] = ()
    notes: Sequence[str] = ()
    text: TextTable | None = None
    sample: Any = None
    stream: Callable[[list[str], list[str]], Iterator[Any]] | None = None
    source: Callable[[list[str]], Any] | None = None

    def blocks(self, columns: list[str], numeric: list[str]) -> Iterator[Any]:
        """All rows of some columns, of which some are to be numbers."""
        return self.records.batches(columns) if self.stream is None else self.stream(columns, numeric)


@dataclass
class Numbers:
    """What came of the columns: X and all that has a value for every row of it."""

    X: Any
    dropped: Any = None
    groups: Any = None
    weights: Any = None
    ids: Any = None
    notes: list[str] = field(default_factory=list)
    clean: Callable[[], Any] | None = None


def table_of(frame: Frame, choices: ColumnChoices, limit: float) -> Table:
    """A table of the columns in memory.

    Parameters
    ----------
    frame : the columns
    choices : what the user says of them
    limit : bytes that X may take in memory
    """
    memory = frame.memory
    layout = lay_out(
        frame.path, frame.schema, choices, lambda name: all_different(memory.column(name)), frame.row_names
    )
    check_ids(frame, choices)
    check_cells(frame, layout, choices, memory)
    names: list[str] | None = layout.features
    if choices.embedding is not None:
        X, names = embedded(frame, memory.column(choices.embedding), choices.embedding), None
        layout.notes.append(f"The numbers are those of column {choices.embedding!r}, {X.shape[1]:,} for each row.")
    elif choices.elsewhere:
        X, names = np.zeros((memory.num_rows, 0)), None
    else:
        X = matrix_of(memory.select(layout.features))
    numbers = finite(frame.path, X, names, frame.records.line, choices.drop_missing, limit)
    kept = np.delete(np.arange(memory.num_rows), numbers.dropped) if len(numbers.dropped) else None
    if choices.group is not None:
        numbers.groups = group_values(memory.column(choices.group), kept)
    if choices.weight is not None:
        numbers.weights = weight_values(frame, memory.column(choices.weight), choices.weight, kept)
    return finished(frame, layout, numbers, names)


def finished(frame: Frame, layout: Layout, numbers: Numbers, names: list[str] | None) -> Table:
    """The table itself."""
    return Table(
        frame.path,
        frame.kind,
        numbers.X,
        frame.records,
        feature_names=names,
        id_name=layout.id_name,
        notes=[*frame.notes, *layout.notes, *numbers.notes],
        dropped=numbers.dropped,
        groups=numbers.groups,
        weights=numbers.weights,
        ids=numbers.ids,
        clean=numbers.clean,
    )


def finite(
    path: Path,
    X: Any,
    names: Sequence[str] | None,
    line: Callable[[int], int | None],
    drop: bool,
    limit: float,
) -> Numbers:
    """X without missing or infinite numbers: refused, or their rows left out."""
    bad = bad_rows(X)
    if not len(bad):
        return Numbers(X, bad)
    if not drop:
        raise refuse_bad(path, X[int(bad[0])], int(bad[0]), len(bad), names, line)
    n = X.shape[0]
    X, clean = without_rows(path, X, bad, limit)
    return Numbers(X, bad, notes=[dropped_note(len(bad), n)], clean=clean)


def check_ids(frame: Frame, choices: ColumnChoices) -> None:
    """Refuse ids that the user names and that do not tell rows apart."""
    if choices.id is None:
        return
    compute = library("pyarrow.compute", frame.path)
    column = plain(frame.memory.column(choices.id))
    missing = compute.is_null(column)
    if is_text(column.type):
        missing = compute.or_(missing, compute.equal(compute.fill_null(column, ""), ""))
    row = compute.index(missing, True).as_py()
    if row >= 0:
        raise _id_fault(frame, choices.id, "has no value (--id)", row)
    if compute.count_distinct(column).as_py() == len(column):
        return
    seen: dict[Any, int] = {}
    for number, value in enumerate(column.to_pylist()):
        if value in seen:
            first = place(frame, seen[value])
            raise _id_fault(frame, choices.id, f"{str(value)!r} is also the id of {first} (--id)", number)
        seen[value] = number


def check_beside(frame: Frame, choices: ColumnChoices, what: str, remedy: str) -> None:
    """Refuse columns beside an array that are not there, and a choice among the columns of the array."""
    if choices.columns is not None or choices.exclude_columns is not None or choices.embedding is not None:
        raise FileFault(
            frame.path,
            "its numbers are an array, of which no columns are chosen (--columns, --exclude-columns, --embedding)",
            remedy,
        )
    for column, part in choices.named.items():
        if column not in frame.memory.column_names:
            fault = unknown_name(frame.path, what, column, frame.memory.column_names)
            raise FileFault(frame.path, f"{fault.fault} (--{part})", fault.remedy)
    check_weight(frame.path, choices, {field.name: field.type for field in frame.schema})
    check_ids(frame, choices)


def annotated(made: Table, frame: Frame, choices: ColumnChoices) -> Table:
    """The table of an array, with groups and weights from the columns beside it."""
    kept = made.numbers(np.arange(made.n))
    if choices.group is not None:
        made.groups = group_values(frame.memory.column(choices.group), kept)
    if choices.weight is not None:
        made.weights = weight_values(frame, frame.memory.column(choices.weight), choices.weight, kept)
    return made


def _id_fault(frame: Frame, column: str, fault: str, row: int) -> FileFault:
    line = frame.records.line(row)
    return FileFault(
        frame.path,
        fault,
        "Correct it, or name a column whose values are all different.",
        line=line,
        column=column,
        where=None if line is not None else place(frame, row),
    )


def place(frame: Frame, row: int) -> str:
    """Where a row is: its line in a text file, otherwise its number."""
    line = frame.records.line(row)
    return f"row {row:,} (counted from 0)" if line is None else f"line {line:,}"


def check_cells(frame: Frame, layout: Layout, choices: ColumnChoices, table: Any) -> None:
    """Refuse columns that should be numbers and are text, in text files because of a single cell; and a lack of numbers."""
    exact = [name for name in layout.texts if name in (choices.columns or ())]
    if frame.text is not None:
        mostly_numbers(frame.text, {name: table.column(name) for name in layout.texts}, exact)
    if exact:
        raise FileFault(
            frame.path,
            "holds text, no numbers (--columns)",
            "Convert it to numbers and write the file again; text needs an embedding (--embedding or --embeddings).",
            column=exact[0],
        )
    if layout.nothing is not None:
        raise layout.nothing


def group_values(column: Any, kept: Any = None) -> Any:
    """Of every row the group that it belongs to, as text; the same for 1 and 1.0."""
    whole = (int(v) if isinstance(v, float) and v.is_integer() else v for v in column.to_pylist())
    values = np.array(["" if value is None else str(value) for value in whole], dtype=np.str_)
    return values if kept is None else values[kept]


def weight_values(frame: Frame, column: Any, name: str, kept: Any = None, first: int = 0) -> Any:
    """Of every row how much it counts."""
    weights = matrix_of(library("pyarrow", frame.path).table({name: column})).ravel().astype(np.float64)
    rows = np.arange(len(weights)) if kept is None else kept
    odd = rows[~(np.isfinite(weights[rows]) & (weights[rows] >= 0))]
    if len(odd):
        row = int(odd[0])
        value = "is missing" if np.isnan(weights[row]) else f"is {weights[row]:g}"
        line = frame.records.line(first + row)
        raise FileFault(
            frame.path,
            f"a weight {value} (--weight)",
            "Weights are finite numbers, 0 or larger. Correct it, or name another column.",
            line=line,
            column=name,
            where=None if line is not None else place(frame, first + row),
        )
    return weights[rows]


def embedded(frame: Frame, column: Any, name: str, first: int = 0, length: int | None = None) -> Any:
    """A column of lists of equally many numbers, as a matrix.

    Parameters
    ----------
    frame, name : for messages
    column : the lists
    first : number of the first row
    length : that the lists must have; that of the first one, if None
    """
    pa, types = library("pyarrow", frame.path), library("pyarrow.types", frame.path)
    compute = library("pyarrow.compute", frame.path)
    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise FileFault(
            frame.path,
            f"holds {kind}, no lists of numbers (--embedding)",
            "Name a column of lists, or give the numbers in a file of their own with --embeddings.",
            column=name,
        )
    single = types.is_float32(kind.value_type) or types.is_float16(kind.value_type)
    if not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise FileFault(
            frame.path,
            f"holds lists of {kind.value_type}, not of numbers (--embedding)",
            "Name another column.",
            column=name,
        )
    lengths = np.asarray(compute.fill_null(compute.list_value_length(column), -1).to_numpy(zero_copy_only=False))
    length = int(lengths[0]) if length is None and len(lengths) else length
    odd = np.flatnonzero((lengths != length) | (lengths <= 0))
    if len(odd):
        row, found = int(odd[0]), int(lengths[odd[0]])
        said = "has no list" if found < 0 else f"has {found:,} numbers"
        line = frame.records.line(first + row)
        raise FileFault(
            frame.path,
            f"{said}, other rows have {length:,}" if found != length else f"{said} in its list",
            "All lists of an embedding must have the same length, at least 1. Compute it again for this row.",
            line=line,
            column=name,
            where=None if line is not None else place(frame, first + row),
        )
    flat = compute.list_flatten(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    numbers = flat.cast(pa.float32() if single else pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(numbers.reshape(len(lengths), -1))
