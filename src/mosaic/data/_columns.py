"""Which columns are numbers to compute with, which one names the rows, and what was assumed in saying so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mosaic._files import library, listed
from mosaic._frames import to_matrix
from mosaic.data._faults import FileFault, unknown_name

#: Columns that are called so name rows, most likely first; so do those that end in ``_id``.
ID_NAMES = ("id", "uuid", "key", "index", "name")
#: How columns begin that were added to rows when they were chosen; they say nothing of a point.
ADDED = "mosaic_"
#: Letters of a text that still is a name.
LONGEST_NAME = 100


@dataclass(frozen=True)
class ColumnChoices:
    """What the user says of the columns."""

    id: str | None = None
    columns: Sequence[str] | None = None
    exclude_columns: Sequence[str] | None = None
    embedding: str | None = None
    group: str | None = None
    weight: str | None = None
    drop_missing: bool = False
    #: Numbers come from another file, so that no column is needed for them.
    elsewhere: bool = False

    @property
    def named(self) -> dict[str, str]:
        """Columns that have a part of their own, and the part."""
        parts = {"id": self.id, "group": self.group, "weight": self.weight, "embedding": self.embedding}
        return {column: part for part, column in parts.items() if column is not None}


@dataclass
class Layout:
    """What is done with the columns of a table."""

    features: list[str]
    id_name: str | None
    #: Columns that the user did not leave out by name: of these, text that is mostly numbers is a fault.
    texts: list[str]
    notes: list[str] = field(default_factory=list)
    #: Raised where no feature is left, unless cells say why.
    nothing: FileFault | None = None


def is_number(kind: Any) -> bool:
    """Whether a type of pyarrow holds real numbers: integers, floats, booleans, decimals."""
    types = library("pyarrow.types", "a table")
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def is_text(kind: Any) -> bool:
    """Whether a type of pyarrow holds strings, be it as categories."""
    types = library("pyarrow.types", "a table")
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    view = getattr(types, "is_string_view", lambda kind: False)
    return bool(types.is_string(kind) or types.is_large_string(kind) or view(kind))


def plain(column: Any) -> Any:
    """Categories as their values."""
    types = library("pyarrow.types", "a table")
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def all_different(column: Any) -> bool:
    """Whether every row has a value of its own, and none too long for a name."""
    compute = library("pyarrow.compute", "a table")
    if column.null_count or not len(column):
        return False
    if is_text(column.type):
        column = plain(column)
        lengths = compute.min_max(compute.utf8_length(column)).as_py()
        if lengths["min"] == 0 or lengths["max"] > LONGEST_NAME:
            return False
    return bool(compute.count_distinct(column).as_py() == len(column))


def matrix_of(table: Any) -> Any:
    """Columns of numbers as one matrix; decimals of other widths than 128 bits are no numbers to data frames."""
    pa, types = library("pyarrow", "a table"), library("pyarrow.types", "a table")
    other = [types.is_decimal(field.type) and not types.is_decimal128(field.type) for field in table.schema]
    kinds = [(f.name, pa.float64() if odd else f.type) for f, odd in zip(table.schema, other, strict=True)]
    return to_matrix(table.cast(pa.schema(kinds)) if any(other) else table)


def looks_like_id(name: str) -> bool:
    """Whether a column is called as ids are.

    Examples
    --------
    >>> looks_like_id("ID"), looks_like_id("patient_id"), looks_like_id("width")
    (True, True, False)
    """
    folded = name.casefold()
    return folded in ID_NAMES or folded.endswith("_id")


def lay_out(
    path: Path,
    schema: Any,
    choices: ColumnChoices,
    distinct: Callable[[str], bool] | None,
    row_names: Sequence[str] = (),
) -> Layout:
    """Decide what every column is for.

    Parameters
    ----------
    path : for messages
    schema : ``pyarrow.Schema``
    choices : what the user says
    distinct : whether all values of a column are there and different; None where nobody can look at all rows
    row_names : columns that the file itself says name rows, as the index of pandas
    """
    names = list(schema.names)
    check_names(path, names, choices)
    exact, chosen = _matching(path, "columns", choices.columns, names)
    _, left_out = _matching(path, "exclude-columns", choices.exclude_columns, names)
    kinds = {f.name: f.type for f in schema}
    numbers = {name for name in names if is_number(kinds[name]) and name not in row_names}
    # What is named in --columns is computed with, whatever else it is for.
    free = [name for name in names if name in exact - left_out or name not in {*left_out, *choices.named}]
    added = [name for name in free if name.startswith(ADDED) and name not in exact]
    free = [name for name in free if name not in added]
    layout = Layout([], choices.id, [])
    if choices.id is None:
        _choose_id(layout, [name for name in free if name not in exact], kinds, distinct, row_names)
    _no_text(path, choices, exact, kinds, numbers)
    if choices.embedding is not None or choices.elsewhere:
        return layout
    inside = free if choices.columns is None else [name for name in free if name in chosen]
    # Numbers that are called as ids are say nothing of a point, even if they repeat; text may hold whatever it likes.
    ids = [name for name in inside if name not in exact and (looks_like_id(name) or name in row_names)]
    layout.texts = [name for name in inside if is_text(kinds[name]) and name not in ids]
    inside = [name for name in inside if name in exact or name != layout.id_name]
    ids = [name for name in ids if name != layout.id_name]
    layout.features = [name for name in inside if name in numbers and name not in ids]
    if not layout.features:
        layout.nothing = _nothing_left(path, schema, numbers)
    if added:
        layout.notes.append(f"Not computed with, since mosaic itself has added them: {listed(added)}.")
    if ids:
        layout.notes.append(
            f"Not computed with, since they are called as ids are: {listed(ids)}. Name numbers among them in --columns to "
            "compute with them."
        )
    carried = [name for name in inside if name not in numbers and name not in ids]
    if carried:
        layout.notes.append(f"Not computed with, since they are no columns of numbers: {listed(carried)}.")
    return layout


def check_names(path: Path, names: list[str], choices: ColumnChoices) -> None:
    """Columns must have names of their own, and those that the user names must be there."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileFault(
            path,
            f"has more than one column called {twice[0]!r}",
            "Rename them or leave out all but one when the file is written.",
        )
    for name, part in choices.named.items():
        if name not in names:
            fault = unknown_name(path, "column", name, names)
            raise FileFault(path, f"{fault.fault} (--{part})", fault.remedy)


def _matching(path: Path, option: str, patterns: Sequence[str] | None, names: list[str]) -> tuple[set[str], set[str]]:
    """Columns that are named outright, and those that are named or match."""
    exact: set[str] = set()
    matched: set[str] = set()
    for pattern in patterns or ():
        found = {pattern} if pattern in names else {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            fault = unknown_name(path, "column", pattern, names)
            raise FileFault(path, f"{fault.fault} (--{option})", fault.remedy)
        exact |= found & {pattern}
        matched |= found
    return exact, matched


def _choose_id(
    layout: Layout,
    free: list[str],
    kinds: dict[str, Any],
    distinct: Callable[[str], bool] | None,
    row_names: Sequence[str],
) -> None:
    """A column of different values that is called as ids are, or any other text of different values."""
    single = [name for name in free if is_text(kinds[name]) or is_number(kinds[name])]
    by_name = [name for name in row_names if name in single]
    by_name += [name for known in ID_NAMES for name in single if name.casefold() == known and name not in by_name]
    by_name += [name for name in single if looks_like_id(name) and name not in by_name]
    for name in by_name:
        if distinct is None:
            layout.id_name = name
            layout.notes.append(
                f"Rows are named by column {name!r}, because of what it is called; whether its values are all different was not "
                "checked in a file of this size. Name another one with --id."
            )
            return
        if distinct(name):
            layout.id_name = name
            layout.notes.append(
                f"Rows are named by column {name!r}, which is not computed with. Name another one with --id, or compute with it "
                "by naming it in --columns."
            )
            return
    if distinct is None:
        return
    for name in free:
        if is_text(kinds[name]) and name not in by_name and distinct(name):
            layout.id_name = name
            layout.notes.append(
                f"Rows are named by column {name!r}, whose values are all different. Name another one with --id."
            )
            return


def _no_text(path: Path, choices: ColumnChoices, exact: set[str], kinds: dict[str, Any], numbers: set[str]) -> None:
    """Columns that the user wants to compute with must be numbers."""
    for name in exact if choices.embedding is None and not choices.elsewhere else ():
        if name not in numbers and not is_text(kinds[name]):  # text is looked at cell by cell
            raise FileFault(
                path,
                f"holds {kinds[name]}, no numbers (--columns)",
                "Convert it to numbers first; a column of lists is named with --embedding.",
                column=name,
            )
    check_weight(path, choices, kinds)


def check_weight(path: Path, choices: ColumnChoices, kinds: dict[str, Any]) -> None:
    """Weights must be numbers."""
    if choices.weight is not None and not is_number(kinds[choices.weight]):
        raise FileFault(
            path,
            f"weights must be numbers; the column holds {kinds[choices.weight]} (--weight)",
            "Name another column.",
            column=choices.weight,
        )


def _nothing_left(path: Path, schema: Any, numbers: set[str]) -> FileFault:
    found = listed([f"{f.name} ({f.type})" for f in schema])
    types = library("pyarrow.types", path)
    lists = [
        f.name
        for f in schema
        if types.is_list(f.type) or types.is_fixed_size_list(f.type) or types.is_large_list(f.type)
    ]
    if lists:
        return FileFault(
            path,
            f"has no column of numbers to compute with, only {found}",
            f"Are these embeddings? Use --embedding {lists[0]}.",
        )
    if numbers:
        said = f"no column of numbers is left to compute with; it has {found}"
        return FileFault(path, said, "Name some with --columns, or leave fewer out with --exclude-columns.")
    return FileFault(
        path,
        f"has no column of numbers, only {found}",
        "If the cells stand for numbers, write them plainly: 10 and not 10 %. Text needs an embedding: numbers made of it by a "
        "language model, in a column of lists (--embedding COLUMN) or in a file with as many rows (--embeddings FILE.npy).",
    )
