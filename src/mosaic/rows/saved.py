"""What a saved model keeps of the rows that it was fitted to: their names, and the cells of some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.arrays.blocks import IntArray
from mosaic.rows.rows import Rows, no_columns
from mosaic.text import Library, jsonable

pa, types = Library("pyarrow"), Library("pyarrow.types")

#: Cells that are kept, at most: of picks, then of outliers, then of other rows. Picks are kept whatever their number.
MOST_CELLS = 100_000


@dataclass(frozen=True)
class SavedRows:
    """Names of the rows that a fit has in memory, and cells of picks, outliers and, in a small table, of all rows.

    Attributes
    ----------
    file, kind : name of the file, and what it is, as a person would say it
    n, dropped : number of rows in the file, and the numbers of those that were left out
    n_features, feature_names : of the columns that rows are compared by
    id_name, ids : column that names rows, and the names of ``named``; None where rows have only numbers
    group_name : column of the groups
    named : numbers in the file of the rows in memory, in ascending order
    listed, cells : numbers in the file of the rows whose cells are kept, in ascending order, and these by column
    options : of ``mosaic.read``, those by which another file of such rows is read in the same way
    notes : what was assumed when the file was read
    """

    file: str
    kind: str
    n: int
    dropped: IntArray
    n_features: int
    feature_names: tuple[str, ...] | None
    id_name: str | None
    ids: tuple[str, ...] | None
    group_name: str | None
    named: IntArray
    listed: IntArray
    cells: Mapping[str, tuple[Any, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fits = (self.ids is None) == (self.id_name is None) and (self.ids is None or len(self.ids) == len(self.named))
        for numbers in (self.named, self.listed, self.dropped):
            fits = fits and (
                not len(numbers) or bool(numbers[0] >= 0 and numbers[-1] < self.n and (np.diff(numbers) > 0).all())
            )
        if not fits or any(len(values) != len(self.listed) for values in self.cells.values()):
            raise ValueError("kept rows, their names and their cells do not fit together")

    @classmethod
    def of(cls, rows: Rows, selection: Any) -> SavedRows:
        r"""Of rows and the selection (``mosaic.Selection``) that was found in them.

        Examples
        --------
        >>> import tempfile
        >>> from mosaic import MOSAIC, read
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.csv").write_text("id,x,y\na,1,2\nb,1,3\nc,9,9\nd,9,8\n")
        ...     with read(Path(folder, "a.csv")) as rows:
        ...         saved = SavedRows.of(rows, MOSAIC(2, outliers="keep").fit(rows).selection_)
        >>> saved.as_rows().names([0, 3]), saved.as_rows().cells([1]).to_pylist()
        (['a', 'd'], [{'id': 'b', 'x': 1, 'y': 3}])
        """
        in_memory = selection.material.rows_in_data(np.arange(len(selection.material.points.group)))
        odd = np.flatnonzero(selection.outlier_rows)
        odd = selection.material.rows_in_data(odd[np.argsort(selection.counts_of_rows[odd], kind="stable")])
        wanted = list(dict.fromkeys([*selection.rows.tolist(), *odd.tolist(), *in_memory.tolist()]))
        flat = [
            c.name
            for c in rows.cells(wanted[:1]).schema
            if c.name != rows.id_name and not types.is_nested(c.type) and not types.is_binary(c.type)
        ]
        most = max(MOST_CELLS // max(len(flat), 1), len(selection.rows))
        listed = np.sort(np.array(wanted[:most], np.intp))
        cells = rows.cells(listed).select(flat)
        in_memory = np.sort(np.asarray(in_memory, np.intp))
        return cls(
            file=rows.path.name,
            kind=rows.kind,
            n=rows.n + len(rows.dropped),
            dropped=np.asarray(rows.dropped, np.intp),
            n_features=rows.n_features,
            feature_names=None if rows.feature_names is None else tuple(rows.feature_names),
            id_name=rows.id_name,
            ids=tuple(rows.names(in_memory)) if rows.has_names else None,
            group_name=rows.group_name,
            named=np.asarray(rows.numbers(in_memory), np.intp),
            listed=np.asarray(rows.numbers(listed), np.intp),
            cells={name: tuple(jsonable(value) for value in _values(cells.column(name))) for name in flat},
            options=dict(rows.options),
            notes=tuple(rows.notes),
        )

    @classmethod
    def bare(cls, file: str, n: int, n_features: int, feature_names: Any = None) -> SavedRows:
        """Of a model that was saved without a table: n rows that have only numbers."""
        nothing = np.zeros(0, np.intp)
        names = None if feature_names is None else tuple(str(name) for name in feature_names)
        return cls(file, "saved model", n, nothing, n_features, names, None, None, None, nothing, nothing, {})

    def as_rows(self) -> Rows:
        """The rows again, without numbers; cells that were not kept are missing."""
        rows = Rows(
            Path(self.file),
            self.kind,
            np.zeros((self.n - len(self.dropped), 0)),
            self,
            feature_names=self.feature_names,
            id_name=self.id_name,
            notes=self.notes,
            dropped=self.dropped,
            group_name=self.group_name,
        )
        rows.n_features = self.n_features
        return rows

    @property
    def columns(self) -> list[str]:
        return [*([] if self.id_name is None else [self.id_name]), *self.cells]

    @property
    def held(self) -> float:
        return 0.0

    def take(self, numbers: IntArray, columns: Sequence[str]) -> Any:
        """Cells, missing ones as null; names are known of all rows in memory."""
        found = {}
        for name in columns:
            known, values = (self.named, self.ids) if name == self.id_name else (self.listed, self.cells[name])
            place = np.searchsorted(known, numbers)
            there = (place < len(known)) & (known[np.minimum(place, len(known) - 1)] == numbers)
            assert values is not None
            found[name] = pa.array([values[p] if is_there else None for p, is_there in zip(place, there, strict=True)])
        return pa.table(found) if found else no_columns(len(numbers))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield self.take(np.arange(self.n), columns)


def _values(column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # such as the year 14645, for which Python has no date
        return list(column.cast(pa.string()).to_pylist())
