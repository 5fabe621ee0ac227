"""What is asked of a file; which of its columns are features, which one names the rows, what is left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from mosaic.rows.encoder import LeftOut
from mosaic.rows.faults import FileFault, unknown_name
from mosaic.rows.frames import id_names_among, is_added, looks_like_id
from mosaic.text import Library, listed

types = Library("pyarrow.types")

#: Is called now and then with the bytes done and their total.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`mosaic.read`, with the memory in bytes, and how the file is read and called."""

    path: Path
    budget: float
    kind: str = ""
    ending: str = ""
    id: str | None = None
    columns: Sequence[str] | None = None
    exclude_columns: Sequence[str] | None = None
    embedding: str | None = None
    group: Sequence[str] = ()
    weight: str | None = None
    array: str | None = None
    sheet: str | None = None
    image_size: int = 32
    colour: bool = False
    encoder: Any = None
    numbers_only: bool = False
    progress: Progress | None = None

    @property
    def named(self) -> dict[str, str]:
        """Columns that have a role of their own, and the parameter that names it."""
        given = {"id": self.id, "weight": self.weight, "embedding": self.embedding}
        named = {column: parameter for parameter, column in given.items() if column is not None}
        return named | dict.fromkeys(self.group, "group")


@dataclass
class Roles:
    """What is done with the columns of a table. ``features`` are numbers to compare rows by, or the column of an embedding."""

    schema: Any
    features: list[str] = field(default_factory=list)
    id_name: str | None = None
    #: All columns that may be compared, of whatever kind; none if rows are compared by an embedding or by numbers alone.
    compared: list[str] = field(default_factory=list)
    #: Those that are asked for by name, and those that stand for categories whatever they hold.
    forced: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    #: Columns that are not compared though they may say something about a row.
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_number(kind: Any) -> bool:
    """Whether a type of pyarrow holds real numbers: integers, floats, booleans, decimals."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def is_text(kind: Any) -> bool:
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_list(kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def without_categories(column: Any) -> Any:
    """A column of categories as a column of their values; other columns as they are."""
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def values_of(column: Any) -> list[Any]:
    """The values of a column, as text where Python has none, as for the year 14645."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return list(column.cast("string").to_pylist())


def assign_roles(request: Request, schema: Any, names_rows: Callable[[str], bool] | None = None) -> Roles:
    """Decide what every column is for.

    Columns are compared, except those that are called as ids are, that mosaic itself or pandas (its index) has added, or that the
    request gives another role. ``names_rows``: whether all values are there and different; None where not all rows are looked at.
    """
    names, kinds = list(schema.names), {column.name: column.type for column in schema}
    check_names(request, names)
    check_weight(request, kinds)
    pandas = schema.pandas_metadata or {"index_columns": [], "columns": []}
    index = [name for name in pandas["index_columns"] if isinstance(name, str)]
    levels = [c["field_name"] for c in pandas["columns"] if c["pandas_type"] == "categorical" and c["field_name"]]
    exact, chosen = _matching(request, "columns", names)
    _, left_out = _matching(request, "exclude_columns", names)
    others = {*left_out, *request.named}
    free = [name for name in names if name in exact - left_out or name not in others]
    added = [name for name in free if is_added(name) and name not in exact]
    free = without(free, added)
    roles = Roles(schema, id_name=request.id)
    if request.id is None:
        _choose_id(roles, without(free, exact), kinds, names_rows, index)
    if request.embedding is not None:
        roles.features = [request.embedding]
        return roles
    for name in exact:
        if types.is_nested(kinds[name]) or types.is_binary(kinds[name]) or types.is_large_binary(kinds[name]):
            fault = f"holds {kinds[name]}, which rows cannot be compared by (`columns`)"
            remedy = "Convert it to numbers first; a column of lists is named with `embedding`."
            raise FileFault(request.path, fault, remedy, column=name)
    inside = free if request.columns is None else [name for name in free if name in chosen]
    # Numbers that are called as ids are say nothing about a point, even if they repeat.
    ids = [name for name in inside if name not in exact and (looks_like_id(name) or name in index)]
    inside = [name for name in inside if name in exact or name != roles.id_name]
    features = {name for name in without(inside, {*index, *levels, *ids}) if is_number(kinds[name])}
    # New rows for a model are in the order of its columns.
    ordered = inside if not request.numbers_only or request.columns is None else request.columns
    roles.features = [name for name in ordered if name in features]
    if not request.numbers_only:
        roles.compared = without(inside, ids)
        roles.forced, roles.levels = [name for name in inside if name in exact], levels
    elif not roles.features:
        raise nothing_left(request, schema)
    ids = without(ids, [roles.id_name])
    if added:
        roles.notes.append(f"Not compared, since mosaic itself added them: {listed(added)}.")
    if ids:
        roles.notes.append(
            f"Not compared, since their names are those of ids: {listed(ids)}. Name them in `columns` to compare them."
        )
        why, remedy = "has the name of an id", "name it in `columns` if it says something about a row"
        roles.left_out = [LeftOut(name, why, remedy) for name in ids if is_number(kinds[name])]
    return roles


def without(names: Sequence[str], others: Collection[str | None]) -> list[str]:
    gone = set(others)
    return [name for name in names if name not in gone]


def check_names(request: Request, names: list[str], what: str = "column") -> None:
    """Refuse two columns of one name, and columns in the request that are not there; ``what`` is one of them called."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        fault = f"has more than one column called {twice[0]!r}"
        raise FileFault(request.path, fault, "Rename them or leave out all but one when the file is written.")
    for name, parameter in request.named.items():
        if name not in names:
            raise unknown_name(request.path, what, name, names, parameter)


def check_weight(request: Request, kinds: dict[str, Any]) -> None:
    if request.weight is not None and not is_number(kinds[request.weight]):
        fault = f"weights must be numbers; the column holds {kinds[request.weight]} (`weight`)"
        raise FileFault(request.path, fault, "Name another column.", column=request.weight)


def refuse_columns(request: Request, what: str = "is an array, whose columns have no names") -> None:
    """Refuse names of columns where columns have none, as in arrays and pictures."""
    given = {parameter: column for column, parameter in request.named.items()}
    given |= {name: getattr(request, name) for name in ("columns", "exclude_columns")}
    for parameter, value in given.items():
        if value is not None:
            remedy = "Save it with names, as CSV or Parquet, or leave this out."
            raise FileFault(request.path, f"{what} (`{parameter}`)", remedy)


def _matching(request: Request, parameter: str, names: list[str]) -> tuple[set[str], set[str]]:
    """Columns that are named outright, and those that are named or match a pattern."""
    exact: set[str] = set()
    matched: set[str] = set()
    there = set(names)
    for pattern in getattr(request, parameter) or ():
        found = {pattern} if pattern in there else {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            if request.encoder is not None or request.numbers_only:
                raise column_is_gone(request, pattern)
            raise unknown_name(request.path, "column", pattern, names, parameter)
        exact |= found & {pattern}
        matched |= found
    return exact, matched


def column_is_gone(request: Request, name: str) -> FileFault:
    """Refuses new rows without a column that a model compares."""
    remedy = "Add or rename the column, or fit again."
    return FileFault(request.path, "was there in fit and is missing now", remedy, column=name)


def _choose_id(
    roles: Roles, free: list[str], kinds: dict[str, Any], names_rows: Callable[[str], bool] | None, index: Sequence[str]
) -> None:
    """Take a column of different values that has the name of an id, or else any other text of different values."""
    single = [name for name in free if is_text(kinds[name]) or is_number(kinds[name])]
    by_name = list(dict.fromkeys([*(name for name in index if name in single), *id_names_among(single)]))
    if names_rows is None:
        for name in by_name[:1]:
            roles.id_name = name
            said = f"Rows are named by column {name!r}; whether its values all differ was not checked in a file of this size."
            roles.notes.append(f"{said} Name another one with `id`.")
        return
    texts = without([name for name in free if is_text(kinds[name])], by_name)
    roles.id_name = next(filter(names_rows, [*by_name, *texts]), None)
    if roles.id_name is not None:
        why, keep = ", which is not compared", ", or compare it by naming it in `columns`"
        if roles.id_name in texts:
            why, keep = ", whose values are all different", ""
        roles.notes.append(f"Rows are named by column {roles.id_name!r}{why}. Name another one with `id`{keep}.")


def nothing_left(request: Request, schema: Any) -> FileFault:
    found = listed([f"{column.name} ({column.type})" for column in schema])
    lists = [column.name for column in schema if is_list(column.type)]
    if lists:
        return FileFault(
            request.path, f"has no column of numbers, only {found}", f"Are these embeddings? Use `embedding={lists[0]!r}`."
        )
    if any(is_number(column.type) for column in schema):
        fault = f"no column of numbers is left to compute with; it has {found}"
        return FileFault(request.path, fault, "Name some with `columns`, or leave fewer out with `exclude_columns`.")
    remedy = "Text that differs in every row is taken for names; name it in `columns`, or a column of lists with `embedding`."
    return FileFault(request.path, f"has no column of numbers, only {found}", remedy)
