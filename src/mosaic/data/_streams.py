"""Columns that do not fit into memory: numbers are laid out in a temporary file, all else stays where it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from mosaic._files import library
from mosaic.data._columns import ColumnChoices, is_number, lay_out, matrix_of
from mosaic.data._faults import FileFault
from mosaic.data._framed import Frame, Numbers, check_cells, embedded, finished, group_values, weight_values
from mosaic.data._missing import dropped_note, refuse_bad
from mosaic.data._spool import Spool
from mosaic.data.table import Table


def table_of_stream(frame: Frame, choices: ColumnChoices, budget: float) -> Table:
    """A table of columns that are read block by block.

    X is what the frame offers for passes, or else a memory map of a temporary file. Names of rows are kept in memory if they
    take no more than a sixteenth of the budget.
    """
    layout = lay_out(frame.path, frame.schema, choices, None, frame.row_names)
    check_cells(frame, layout, choices, frame.sample)
    if choices.id is not None:
        layout.notes.append(
            f"Whether the values of {choices.id!r} are all different was not checked in a file of this size."
        )
    names = None if choices.embedding is not None else layout.features
    if frame.source is not None and names and not choices.drop_missing:
        numbers = Numbers(frame.source(names))
        _by_row(frame, choices, numbers)
    elif names == []:  # numbers come from elsewhere
        numbers = Numbers(np.zeros((_count(frame), 0)))
        _by_row(frame, choices, numbers)
    else:
        numbers = _laid_out(frame, choices, names, layout.id_name, budget)
        numbers.notes.append(
            f"The file is large: {numbers.X.shape[0]:,} × {numbers.X.shape[1]:,} numbers were laid out in a temporary file."
        )
    return finished(frame, layout, numbers, names)


def _laid_out(
    frame: Frame, choices: ColumnChoices, names: list[str] | None, id_name: str | None, budget: float
) -> Numbers:
    """One pass: numbers to the disk, and on the way groups, weights and ids."""
    pa = library("pyarrow", frame.path)
    others = [name for name in (choices.group, choices.weight, id_name) if name is not None]
    wanted = list(dict.fromkeys([*(names if names is not None else [str(choices.embedding)]), *others]))
    numeric = [*(names or []), *([choices.weight] if choices.weight is not None else [])]
    gathered: dict[str, list[Any]] = {"groups": [], "weights": [], "ids": [], "dropped": []}
    # An id that is also a number to compute with is read again as it is written.
    by_name = id_name is not None and id_name not in (names or [])
    seen, id_bytes, spool = 0, 0, None
    try:
        for batch in frame.blocks(wanted, numeric):
            if not batch.num_rows:
                continue
            rows = _matrix(frame, choices, batch, names, seen, None if spool is None else spool.n_features)
            if spool is None:
                spool = _new_spool(frame, rows)
            good = np.isfinite(rows).all(axis=1)
            kept = None
            if not good.all():
                bad = np.flatnonzero(~good)
                if not choices.drop_missing:
                    row = int(bad[0])
                    among = f" of the first {seen + len(rows):,}"
                    raise refuse_bad(frame.path, rows[row], seen + row, len(bad), names, frame.records.line, among)
                gathered["dropped"].append(seen + bad)
                kept = np.flatnonzero(good)
                rows = rows[kept]
            spool.append(rows)
            if choices.group is not None:
                gathered["groups"].append(group_values(batch.column(choices.group), kept))
            if choices.weight is not None:
                weights = weight_values(frame, batch.column(choices.weight), choices.weight, kept, seen)
                gathered["weights"].append(weights)
            if by_name and id_bytes <= budget / 16:
                gathered["ids"].append(batch.column(id_name))
                id_bytes += gathered["ids"][-1].nbytes
            seen += batch.num_rows
        if spool is None or not spool.n:
            raise FileFault(
                frame.path, "no row is left to compute with", "Leave out empty columns with --exclude-columns."
            )
        dropped = np.concatenate(gathered["dropped"]) if gathered["dropped"] else None
        return Numbers(
            spool.mapped(),
            dropped,
            np.concatenate(gathered["groups"]) if choices.group is not None else None,
            np.concatenate(gathered["weights"]) if choices.weight is not None else None,
            pa.chunked_array(gathered["ids"]) if by_name and id_bytes <= budget / 16 else None,
            [] if dropped is None else [dropped_note(len(dropped), seen)],
            spool.close,
        )
    except BaseException:
        if spool is not None:
            spool.close()
        raise


def _new_spool(frame: Frame, rows: Any) -> Spool:
    expected = frame.expected * rows.shape[1] * rows.dtype.itemsize / 8
    return Spool(frame.path, rows.shape[1], rows.dtype, expected)


def _matrix(
    frame: Frame, choices: ColumnChoices, batch: Any, names: list[str] | None, first: int, length: int | None
) -> Any:
    if names is None:
        return embedded(frame, batch.column(choices.embedding), str(choices.embedding), first, length)
    return matrix_of(library("pyarrow", frame.path).Table.from_batches([batch.select(names)]))


def _by_row(frame: Frame, choices: ColumnChoices, numbers: Numbers) -> None:
    """Groups and weights by a pass of their own."""
    if choices.group is not None:
        parts = [group_values(b.column(0)) for b in frame.blocks([choices.group], [])]
        numbers.groups = np.concatenate(parts)
    if choices.weight is not None:
        kind = frame.schema.field(choices.weight).type
        weights, first = [], 0
        for batch in frame.blocks([choices.weight], [choices.weight] if is_number(kind) else []):
            weights.append(weight_values(frame, batch.column(0), choices.weight, None, first))
            first += batch.num_rows
        numbers.weights = np.concatenate(weights)


def _count(frame: Frame) -> int:
    """Rows of a file whose numbers are not wanted."""
    return sum(batch.num_rows for batch in frame.blocks([frame.schema.names[0]], []))
