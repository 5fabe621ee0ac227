"""What is asked of rows; which of their columns are compared, which one names the rows, what is left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mosaic.exceptions import InvalidInputError
from mosaic.rows.faults import FileFault, close_to
from mosaic.rows.frames import holds_vectors, id_names_among, is_added, looks_like_id, tells_apart
from mosaic.rows.rules import LeftOut, rule_of
from mosaic.rows.tables import InMemory, Table
from mosaic.text import listed

if TYPE_CHECKING:
    from narwhals.dtypes import DType

#: Is called now and then with the bytes done and their total.
Progress: TypeAlias = Callable[[int, int], None]


#: The path of rows that come from no file.
NO_FILE = Path("X")


@dataclass(frozen=True)
class Request:
    """The arguments of :func:`mosaic.read`, with the memory in bytes, and how the file is read and called. Rows that come from no
    file have the path ``NO_FILE``. ``files`` are those of a pattern, ``others`` the sheets of a workbook that are not read.
    ``dialect`` says how text tables are written: between cells, and before fractions.
    """

    path: Path = NO_FILE
    files: Sequence[Path] = ()
    budget: float = float("inf")
    kind: str = ""
    ending: str = ""
    encoding: str | None = None
    dialect: tuple[str, str] = (",", ".")
    id: str | None = None
    columns: Sequence[str] | None = None
    exclude_columns: Sequence[str] | None = None
    embedding: str | None = None
    group: Sequence[str] = ()
    weight: str | None = None
    array: str | None = None
    sheet: str | None = None
    others: Sequence[str] = ()
    image_size: int = 32
    colour: bool = False
    progress: Progress | None = None

    @property
    def named(self) -> dict[str, str]:
        """Columns that have a role of their own, and the parameter that names it."""
        given = {"id": self.id, "weight": self.weight, "embedding": self.embedding}
        named = {column: parameter for parameter, column in given.items() if column is not None}
        return named | dict.fromkeys(self.group, "group")

    def is_name(self, column: str) -> bool:
        """Whether a column names rows or groups, also by what it is called."""
        return column in (self.id, *self.group) or looks_like_id(column)

    @property
    def is_of_file(self) -> bool:
        return self.path is not NO_FILE

    def fault(
        self, said: str, remedy: str, column: str | None = None, **where: Any
    ) -> InvalidInputError:
        """What is wrong with the rows: of a file with its name, of others as what X has."""
        if self.others and column is None:
            remedy = f"{remedy} Or name another sheet (`sheet`): {listed(self.others)}."
        if self.is_of_file:
            return FileFault(self.path, said, remedy, column=column, **where)
        if column is None:
            return InvalidInputError(said, remedy, parameter="X")
        return InvalidInputError(f"column {column!r} {said}", remedy)

    def refuse_beyond_half(self, needed: float, said: str, remedy: str) -> None:
        """Refuse what is read at once, if that takes more than half of the budget."""
        if needed > self.budget / 2:
            raise FileFault(self.path, f"{said} more than half of the memory budget", remedy)

    def unknown(
        self, what: str, name: str, names: Sequence[str], parameter: str | None = None
    ) -> InvalidInputError:
        """The fault of a column or an array (``what``) that is not there; the remedy lists those that are."""
        there = f"It has {listed(list(names))}." if names else f"It has no {what}s with names."
        by = "" if parameter is None else f" (`{parameter}`)"
        return self.fault(f"has no {what} {name!r}{by}", close_to(name, names) + there)


@dataclass(frozen=True)
class Roles:
    """What is done with the columns of a table: those that may be ``compared``, of these those that are asked for by name, the
    column of ids, and the others with the reason.
    """

    compared: tuple[str, ...] = ()
    asked_for: frozenset[str] = frozenset()
    id_name: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


def roles_of(request: Request, table: Table, *, has_names: bool) -> Roles:
    """Decide what every column is for.

    Columns are compared, except those that mosaic itself or pandas (its index) has added, or that the request gives another role.
    One names the rows, unless they have names already (``has_names``).
    """
    names = list(table.columns)
    check_names(request, names)
    check_weight(request, table)
    asked_for, chosen = _matching(request, "columns", names)
    _, excluded = _matching(request, "exclude_columns", names)
    asked_for -= excluded
    free = [name for name in names if name in asked_for or name not in {*excluded, *request.named}]
    added = [name for name in free if is_added(name) and name not in asked_for]
    free = without(free, added)
    index: Sequence[str] = getattr(table, "index", ())
    id_name = request.id
    notes = []
    if id_name is None and not has_names:
        id_name, note = _column_of_names(table, without(free, asked_for), index)
        notes += note
    compared = free if request.columns is None else [name for name in free if name in chosen]
    if request.embedding is not None:
        compared = []
    compared = [name for name in compared if name in asked_for or name not in {id_name, *index}]
    for name in asked_for:
        refuse_structures(request, table, name)
    why = dict.fromkeys(request.group, "the group of each row")
    why |= {} if request.weight is None else {request.weight: "how often each row counts"}
    why |= {} if id_name is None else {id_name: "names the rows"}
    why |= dict.fromkeys(added, "was added by mosaic itself") | dict.fromkeys(
        set(index) - {id_name}, "is the index"
    )
    left_out = [LeftOut(name, why[name]) for name in names if name in why and name not in compared]
    return Roles(tuple(compared), frozenset(asked_for), id_name, tuple(left_out), tuple(notes))


def refuse_structures(request: Request, table: Table, name: str) -> None:
    import narwhals.stable.v2 as nw

    kind = table.kinds()[name]
    if (kind.is_nested() and not holds_vectors(kind)) or kind == nw.Binary:
        remedy = "Convert it to numbers first; a column of lists is named with `embedding`."
        raise request.fault(
            f"holds {kind}, which rows cannot be compared by (`columns`)", remedy, name
        )


def without(names: Sequence[str], others: Collection[str | None]) -> list[str]:
    gone = set(others)
    return [name for name in names if name not in gone]


def check_names(request: Request, names: Sequence[str], what: str = "column") -> None:
    """Refuse two columns of one name, and columns in the request that are not there; ``what`` is one of them called."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        fault = f"has more than one column called {twice[0]!r}"
        raise request.fault(fault, "Rename them or leave out all but one when the file is written.")
    for name, parameter in request.named.items():
        if name not in names:
            raise request.unknown(what, name, names, parameter)


def check_weight(request: Request, table: Table) -> None:
    if request.weight is None:
        return
    kind = table.kinds()[request.weight]
    if not is_number(kind):
        raise request.fault(
            f"holds {kind}, and weights must be numbers (`weight`)",
            "Name another column.",
            request.weight,
        )


def is_number(kind: DType) -> bool:
    """Whether a type of narwhals is that of real numbers, or of true and false."""
    import narwhals.stable.v2 as nw

    return bool(kind.is_numeric() or kind == nw.Boolean)


def refuse_columns(
    request: Request, what: str = "is an array, whose columns have no names"
) -> None:
    """Refuse names of columns where columns have none, as in arrays and pictures."""
    given = {parameter: column for column, parameter in request.named.items()}
    given |= {name: getattr(request, name) for name in ("columns", "exclude_columns")}
    for parameter, value in given.items():
        if value is not None:
            remedy = "Leave this out, or save it with names of columns, as CSV or Parquet."
            raise request.fault(f"{what} (`{parameter}`)", remedy)


def _matching(request: Request, parameter: str, names: Sequence[str]) -> tuple[set[str], set[str]]:
    """Columns that are named outright, and those that are named or match a pattern."""
    exact: set[str] = set()
    matched: set[str] = set()
    there = set(names)
    for pattern in getattr(request, parameter) or ():
        if pattern in there:
            found = {pattern}
        else:
            found = {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            raise request.unknown("column", pattern, names, parameter)
        exact |= found & {pattern}
        matched |= found
    return exact, matched


def _column_of_names(
    table: Table, free: Sequence[str], index: Sequence[str]
) -> tuple[str | None, list[str]]:
    """The column that names the rows: of different values and called as ids are, or else any other text of different values."""
    import narwhals.stable.v2 as nw

    kinds = table.kinds()
    texts = (nw.String, nw.Categorical, nw.Enum, nw.Object)
    single = [name for name in free if is_number(kinds[name]) or kinds[name] in texts]
    by_name = list(
        dict.fromkeys([*(name for name in index if name in single), *id_names_among(single)])
    )
    if not isinstance(table, InMemory):
        if not by_name:
            return None, []
        said = f"Rows are named by column {by_name[0]!r}; whether all of its values differ was not checked, as they are many."
        return by_name[0], [f"{said} Name another one with `id`."]
    others = without([name for name in single if kinds[name] in texts], by_name)
    for name in (*by_name, *others):
        if names_rows(table, name, by_values=name in others):
            why = ", which is not compared"
            keep = ", or compare it by naming it in `columns`"
            if name in others:
                why = ", whose values are all different"
                keep = ""
            return name, [
                f"Rows are named by column {name!r}{why}. Name another one with `id`{keep}."
            ]
    return None, []


def names_rows(table: InMemory, name: str, *, by_values: bool) -> bool:
    """Whether a column tells rows apart and, if it is not called as ids are, is not numbers or dates that are written as text."""
    cells = table.cells([name])
    if not tells_apart(cells.columns[name]) or cells[name].kind in ("other", "vector"):
        return False
    return not by_values or isinstance(rule_of(name, cells[name]), LeftOut)
