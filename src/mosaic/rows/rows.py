"""Rows as they are: what a user has, with names, groups and weights, in memory, in a file, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.sources import Source
from mosaic.arrays.xp import is_on_device, rows_of
from mosaic.choosing.budget import budget_of
from mosaic.door import as_indices
from mosaic.exceptions import InvalidInputError, warn
from mosaic.rows.faults import close_to
from mosaic.rows.frames import (
    Cells,
    cells_if_frame,
    cells_of,
    holds_vectors,
    index_names,
    n_rows,
    take_rows,
)
from mosaic.rows.names import COMPARED_NAMES, RowNames, only_row
from mosaic.rows.parts import FEW_ROWS, InParts
from mosaic.rows.roles import Request, Roles, roles_of
from mosaic.rows.tables import InArray, InMemory, Table, as_texts, rows_at
from mosaic.text import Library, group_label, listed

pc = Library("pyarrow.compute")

#: The parameters of ``fit`` that may name columns.
GROUPS = "groups"
WEIGHTS = "sample_weight"


@dataclass(eq=False, repr=False)
class Rows:
    """Rows as a user has them: columns or an array, never encoded. ``mosaic.rows.encoder.Encoder`` makes numbers of them.

    Made by :func:`mosaic.read`, and by ``Rows.of`` of anything else. A context manager; leaving it removes temporary files.

    Attributes
    ----------
    path : of the file or folder, None for rows that come from none
    kind : what it is, as a person would say it: "CSV file", "images in a folder", "data frame"
    n : number of rows
    columns : names of what ``cells`` gives
    id_name : the column that names the rows, None where there is none
    groups, group_name : of every row the value of the group column, and its name; None without one
    weights : of every row the value of the weight column; None without one
    roles : what is done with the columns of the table
    notes : sentences on what was assumed
    unreadable : pictures that were left out because they cannot be read, and why
    options : arguments of ``mosaic.read`` by which another file of such rows is read in the same way
    """

    request: Request
    table: Table
    #: Numbers that have no columns: a NumPy or device array, a CSR matrix, a memory map, or a source that is read in passes.
    array: Any = None
    array_names: Sequence[str] | None = None
    roles: Roles = field(default_factory=Roles)
    index: RowNames | None = None
    groups: Any = None
    weights: Any = None
    notes: list[str] = field(default_factory=list)
    line: Callable[[int], int | None] | None = None
    unreadable: dict[str, str] = field(default_factory=dict)
    pictures_of: Callable[[IntArray, int], list[bytes]] | None = None
    closers: list[Callable[[], None]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        X: object,
        *,
        groups: object = None,
        weights: object = None,
        memory_budget: float | None = None,
    ) -> Rows:
        """The rows of whatever X is: an array, sparse matrix or memory map; a data frame; AnnData; the path of a file; a Zarr or
        HDF5 array; a Dask or Ray collection. ``groups`` and ``weights`` are values for each row, or names of columns.

        Examples
        --------
        >>> import polars as pl
        >>> rows = Rows.of(pl.DataFrame({"id": ["a", "b"], "x": [1.5, 2.5], "shop": ["u", "v"]}), groups="shop")
        >>> rows.n, rows.names([1]), rows.groups.tolist(), rows.roles.compared
        (2, ['b'], ['u', 'v'], ('x',))
        """
        rows = opened_rows(X, memory_budget)
        return rows if groups is None and weights is None else rows.with_roles(groups, weights)

    @classmethod
    def of_table(cls, request: Request, table: Table, **more: Any) -> Rows:
        """The rows of a table of cells, which are compared by its columns."""
        if isinstance(table, InMemory) and not table.n:
            raise request.fault("has no rows", "Pass a table with rows.")
        roles = roles_of(request, table, has_names="index" in more)
        rows = cls(request, table, roles=roles, **more)
        if request.id is not None and isinstance(table, InMemory):
            rows.check_ids()
        elif request.id is not None:
            rows.notes.append(
                f"Whether the values of {request.id!r} are all different was not checked in a file of this size."
            )
        rows.notes = [*rows.notes, *roles.notes]
        return rows._with_values()

    @classmethod
    def of_array(
        cls, request: Request, array: Any, table: Table | None = None, **more: Any
    ) -> Rows:
        """The rows of an array of numbers; a table shows them, and may name, group and weigh them."""
        shown = InArray(array, more.get("array_names")) if table is None else table
        return cls(request, shown, array, **more)._with_values()

    def _with_values(self) -> Rows:
        """With the groups and weights of the columns that the request names."""
        request = self.request
        table = self.table
        if request.group:
            self.groups = groups_in(table, request.group, as_text=request.is_of_file)
        if request.weight is not None:
            self.weights = self._weights_in(table, request.weight)
        return self

    def with_roles(self, groups: object, weights: object) -> Rows:
        """The same rows, with groups and weights that are given as values or as names of columns, which are then not compared."""
        group = self._columns_named(groups, GROUPS)
        weight = self._columns_named(weights, WEIGHTS)
        rows = self
        if group or weight:
            request = replace(self.request, id=self.id_name, group=group or self.request.group)
            request = replace(request, weight=weight[0] if weight else request.weight)
            if self.array is None:
                roles = roles_of(request, self.table, has_names=self.index is not None)
            else:
                roles = self.roles
            rows = replace(self, request=request, roles=roles)._with_values()
        if groups is not None and not group:
            rows = replace(rows, groups=groups)
        if weights is not None and not weight:
            rows = replace(rows, weights=weights)
        return rows

    def _columns_named(self, given: object, parameter: str) -> list[str]:
        """The columns that a text or a list of texts names; of one text for each row are labels, unless all are columns."""
        if isinstance(given, str):
            names = [given]
        else:
            names = list(given) if isinstance(given, list | tuple) else []
        if (
            not names
            or not all(isinstance(name, str) for name in names)
            or len(set(names)) < len(names)
        ):
            return []
        there = [] if isinstance(self.table, InArray) else self.columns
        missing = [name for name in names if name not in there]
        if missing and len(names) == self.n and not isinstance(given, str):
            return []
        if missing:
            fault = f"names the column {missing[0]!r}, which X does not have"
            if there:
                has = f"It has {listed(there)}."
            else:
                has = "Its columns have no names: give one value for every row."
            raise InvalidInputError(
                fault, f"{close_to(missing[0], there)}{has}", parameter=parameter
            )
        return names

    # ---- what they are

    @property
    def path(self) -> Path | None:
        return self.request.path if self.request.is_of_file else None

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def n(self) -> int:
        return self.table.n

    @property
    def columns(self) -> list[str]:
        return list(self.table.columns)

    @property
    def id_name(self) -> str | None:
        return self.roles.id_name

    @property
    def group_name(self) -> str | None:
        return ", ".join(self.request.group) or None

    @property
    def stays(self) -> bool:
        """Whether the rows stay where they are, and are read in passes or taken into memory."""
        if self.array is not None:
            return isinstance(self.array, Source)
        return not isinstance(self.table, InMemory)

    @property
    def held(self) -> float:
        """Bytes of a file that are in memory."""
        X = self.array.data if hasattr(self.array, "indptr") else self.array
        if not self.request.is_of_file or isinstance(X, np.memmap):
            return self.table.held
        return self.table.held + getattr(X, "nbytes", 0)

    @property
    def options(self) -> dict[str, Any]:
        usual = Request()
        given = {
            name: getattr(self.request, name)
            for name in ("embedding", "array", "image_size", "colour")
        }
        return {name: value for name, value in given.items() if value != getattr(usual, name)}

    # ---- names and cells

    @property
    def has_names(self) -> bool:
        """Whether rows are called something else than their number."""
        return self.index is not None or self.id_name is not None

    def names(self, rows: ArrayLike) -> list[str]:
        """What these rows are called: their id or file name, else their number, counted from 0."""
        numbers = self._numbers(rows)
        if self.index is not None:
            return [self.index[row] for row in numbers.tolist()]
        if self.id_name is None:
            return [str(number) for number in numbers]
        return self.table.texts(self.id_name, numbers)

    def ids(self, rows: ArrayLike) -> list[str]:
        """Their names; empty texts where rows are called by their numbers."""
        return self.names(rows) if self.has_names else [""] * len(self._numbers(rows))

    def cells(self, rows: ArrayLike, columns: Sequence[str] | None = None) -> Any:
        """These columns of these rows, all of them in the order of the file if not given, as a ``pyarrow.Table``."""
        return self.table.take(self._numbers(rows), self.columns if columns is None else columns)

    def _numbers(self, rows: ArrayLike) -> IntArray:
        return as_indices(rows, self.n, "rows", may_repeat=True)

    def find(self, name: str) -> int:
        """The row that is called so: by its id, or by its number where rows have no ids. One that is not there is refused."""
        if not self.has_names and name.isdecimal() and int(name) < self.n:
            return int(name)
        if not self.has_names:
            fault = f"there is no row {name!r}; rows have no ids and are called by their numbers, 0 to {self.n - 1:,}"
            raise InvalidInputError(fault, "Name the column of ids with `id`, if there is one.")
        if self.id_name is None or not self.stays:
            return self._all_names.find(name)
        found: list[int] = []
        some: list[str] = []
        begin = 0
        for cells in self.table.blocks([self.id_name]):
            texts = as_texts(cells.columns[self.id_name])
            found += [begin + place for place, text in enumerate(texts) if text == name]
            some += texts[: COMPARED_NAMES - len(some)]
            begin += len(texts)
        return only_row(name, found, f"column {self.id_name!r}", some)

    @cached_property
    def _all_names(self) -> RowNames:
        return self._names_of(None)

    def row_names(self, rows: IntArray | None = None) -> RowNames | None:
        """The names of all rows, or of some, which are then in ascending order; None where rows have none."""
        if not self.has_names:
            return None
        return self._all_names if rows is None else self._names_of(np.sort(rows))

    def _names_of(self, rows: IntArray | None) -> RowNames:
        if self.index is not None:
            return self.index if rows is None else self.index.among(rows)
        return RowNames(
            tuple(self.names(np.arange(self.n) if rows is None else rows)),
            f"column {self.id_name!r}",
            rows,
        )

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Small pictures of these rows as PNG or JPEG, no larger than side × side; None where rows are no pictures."""
        return None if self.pictures_of is None else self.pictures_of(self._numbers(rows), side)

    def take(self, rows: IntArray) -> Any:
        """Some rows: a ``pyarrow.Table`` of their cells, or an array where the rows of a file are numbers."""
        return self.cells(rows) if self.array is None else rows_at(self.array, rows)

    # ---- what the encoder asks for

    def deciding_cells(self, columns: Sequence[str]) -> tuple[Cells, IntArray, bool]:
        """Cells from which rules are found, the numbers of their rows, and whether these are all: fifty stretches of a file."""
        table = self.table
        if isinstance(table, InMemory):
            return table.cells(columns), np.arange(table.n), True
        if isinstance(table, InParts) and table.only_numbers(columns):
            return table.empty.only(columns), np.arange(0), False
        numbers = np.arange(table.n)
        if table.n > FEW_ROWS:
            length = FEW_ROWS // 50
            starts = np.linspace(0, table.n - length, 50).astype(np.int64)
            numbers = (starts[:, None] + np.arange(length)).ravel()
        levels = getattr(table, "levels", ())
        cells = cells_of(table.take(numbers, list(columns)), levels=levels)
        return cells, numbers, len(numbers) == table.n

    @cached_property
    def length_of_lists(self) -> int:
        """The length that all lists of an embedding have; other lengths are refused, and what is no list of numbers."""
        assert self.request.embedding is not None
        name = self.request.embedding
        seen = 0
        width: int | None = None
        kind = self.table.kinds()[name]
        if not holds_vectors(kind):
            raise self.request.fault(
                f"holds {kind}, no lists of numbers (`embedding`)", "Name a column of lists.", name
            )
        for cells in self.table.blocks([name]):
            lengths = pc.fill_null(
                pc.list_value_length(cells.columns[name].to_native()), 0
            ).to_numpy()
            width = int(lengths[0]) if width is None else width
            odd = np.flatnonzero((lengths != width) | (lengths == 0))
            if len(odd):
                said = f"has {int(lengths[odd[0]]):,} numbers, other rows have {width:,}"
                remedy = "All lists of an embedding must have the same length, at least 1. Compute it again for this row."
                raise self.request.fault(said, remedy, name, where=self.place(seen + int(odd[0])))
            seen += len(lengths)
        return width or 0

    def place(self, row: int) -> str:
        """Where a row is: its line, if that is known, otherwise its number."""
        line = None if self.line is None else self.line(row)
        if line is not None:
            return f"line {line:,}"
        return f"row {row}" if self.path is None else f"row {row:,} (counted from 0)"

    def check_ids(self) -> None:
        first_rows: dict[str, int] = {}
        column = self.request.id
        assert column is not None
        for row, text in enumerate(self.table.texts(column)):
            if text and text not in first_rows:
                first_rows[text] = row
                continue
            if text:
                said = f"{text!r} is also the id of {self.place(first_rows[text])}"
            else:
                said = "has no value"
            remedy = "Correct it, or name a column whose values are all different."
            raise self.request.fault(f"{said} (`id`)", remedy, column, where=self.place(row))

    def _weights_in(self, table: Table, column: str) -> FloatArray:
        weights = np.concatenate(
            [cells.matrix().ravel().astype(np.float64) for cells in table.blocks([column])]
        )
        odd = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(odd) and self.path is not None:
            value = "is missing" if np.isnan(weights[odd[0]]) else f"is {weights[odd[0]]:g}"
            remedy = "Weights are finite numbers, 0 or larger. Correct it, or name another column."
            raise self.request.fault(
                f"a weight {value} (`weight`)", remedy, column, where=self.place(int(odd[0]))
            )
        return np.asarray(weights)

    def close(self) -> None:
        """Remove temporary files and let go of others. Rows may not be used any more."""
        for close in self.closers:
            close()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path or ''}: {self.n:,} rows, {len(self.columns):,} columns>".replace(
            " :", ":"
        )


def groups_in(table: Table, columns: Sequence[str], *, as_text: bool) -> Any:
    """Of every row its group: the value of one column, or what the values of several are together; those of files as text."""
    blocks = [list(cells.columns.values()) for cells in table.blocks(columns)]
    if as_text:
        rows = chain.from_iterable(
            zip(*(column.to_list() for column in block), strict=True) for block in blocks
        )
        return np.array([group_label(*cells) for cells in rows], dtype=np.str_)
    values = [
        np.concatenate([column.to_numpy() for column in parts])
        for parts in zip(*blocks, strict=True)
    ]
    if len(columns) == 1:
        return values[0]
    return np.stack([each.astype(object) for each in values], axis=1)


def opened_rows(X: Any, memory_budget: float | None = None) -> Rows:
    """The only place that asks what X is."""
    from mosaic.rows import arrays, arrow, open  # they make rows

    if isinstance(X, Rows):
        return X
    if isinstance(X, str | PathLike):
        return open.read(X, memory_budget=memory_budget)
    if isinstance(X, np.ndarray) or sp.issparse(X) or is_on_device(X):
        return Rows.of_array(Request(kind="memory map" if isinstance(X, np.memmap) else "array"), X)
    if (kind := arrays.arrow_kind(X)) is not None:
        return arrow.rows_of_arrow(X, Request(kind=kind, budget=budget_of(memory_budget)))
    source: Source | InParts | None = collection(X, memory_budget)
    if isinstance(source, InParts):
        return Rows.of_table(Request(kind=source.kind), source)
    source = arrays.stored_source(X) if source is None else source
    if source is not None and arrays.owner_of(X) == "anndata":
        for sentence in arrays.hint_at_components(X.X, X.obsm):
            warn(sentence)
        names = RowNames(tuple(map(str, X.obs_names)), "obs_names")
        obs = InMemory(cells_of(X.obs.set_axis(list(map(str, X.obs.columns)), axis=1)))
        return Rows.of_array(
            Request(kind="AnnData"), source, obs, array_names=source.names, index=names
        )
    if source is not None:
        return Rows.of_array(Request(kind=source.kind), source, array_names=source.names)
    if isinstance(X, Mapping):
        remedy = "Pass a data frame: pandas.DataFrame(X)."
        raise InvalidInputError("is a dict", remedy, parameter="X")
    cells = cells_if_frame(X)
    if cells is None and hasattr(X, "to_frame"):
        remedy = "Pass a data frame: X.to_frame()."
        raise InvalidInputError("is a single column", remedy, parameter="X")
    if cells is None:
        return Rows.of_array(
            Request(kind=type(X).__name__), X if hasattr(X, "shape") else array_of(X)
        )
    request = Request(kind="data frame")
    table = InMemory(cells)
    index = index_names(cells.frame)
    if index is None:
        return Rows.of_table(request, table)
    texts, is_set = index
    names = RowNames(texts, "the index")
    if is_set:
        return Rows.of_table(request, table, index=names)
    rows = Rows.of_table(request, table)
    is_better = not rows.has_names and len(set(texts)) == len(texts)
    return replace(rows, index=names) if is_better else rows


def collection(X: Any, memory_budget: float | None) -> Source | InParts | None:
    """The rows of what Dask, Ray or Spark holds; None for all else."""
    from mosaic.rows.arrays import owner_of

    engine = {"dask": "dask", "ray": "ray", "pyspark": "spark"}.get(owner_of(X))
    if engine is None:
        return None
    found: Source | InParts = import_module(f"mosaic.rows.{engine}").collection_of(X, memory_budget)
    return found


def array_of(X: Any) -> Any:
    """An array of what is none; lists of texts and of dicts are refused, which are no rows of numbers."""
    kinds = {
        "texts": (str, "pandas.DataFrame({'text': X})"),
        "dicts": (Mapping, "pandas.DataFrame(X)"),
    }
    for what, (kind, remedy) in kinds.items():
        if isinstance(X, list | tuple) and X and isinstance(X[0], kind):
            remedy = f"Pass a data frame: {remedy}."
            raise InvalidInputError(f"is a list of {what}", remedy, parameter="X")
    try:
        return np.asarray(X)
    except ValueError as error:  # lists of different lengths
        raise InvalidInputError(
            f"must be a rectangular array of numbers: {error}", parameter="X"
        ) from error


def chosen_rows(X: Any, rows: IntArray, n: int) -> Any:
    """Some of the n rows of X in its own type; X may be anything with an item for each row, such as texts or pictures."""
    from mosaic.rows.arrays import is_stored, owner_of

    is_anndata = owner_of(X) == "anndata" and hasattr(X, "obs")
    if isinstance(X, Rows | str | PathLike) or (is_stored(X) and not is_anndata):
        opened = opened_rows(X)
    else:
        opened = None
    given = n_rows(X) if opened is None else opened.n
    if given != n:
        raise InvalidInputError(
            f"must have the {n} rows of fit, in their order; it has {given}", parameter="X"
        )
    if opened is not None:
        return opened.take(rows)
    if is_anndata:
        numbers, back = np.unique(rows, return_inverse=True)
        return X[numbers].to_memory()[back].copy()
    return rows_of(X, rows) if is_on_device(X) else take_rows(X, rows)
