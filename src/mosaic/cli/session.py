"""One run of a command: the open file, the names of its rows, and the settings and constraints from the options."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.cli.answers import File, Row, Settings
from mosaic.cli.faults import OutputError, RefusedError, command_line, fault_of, writing
from mosaic.cli.options import FILE_OPTIONS, SETTINGS, as_parameters
from mosaic.cli.terminal import ProgressBar, say, visible, write_bytes
from mosaic.estimators import MOSAIC
from mosaic.exceptions import InvalidInputError, MosaicError, MosaicWarning, Wording
from mosaic.inspection import Summary
from mosaic.report import write_report
from mosaic.rows import check_output, csv_bytes, is_source, read
from mosaic.rows.open import kind_of

#: How the names of saved models end.
MODEL_ENDING = ".mosaic"


class Session:
    """An open file, and the options of the command.

    Attributes
    ----------
    args : the options
    bar : the progress bar
    table : ``mosaic.rows.Rows``
    notes : assumptions about the file, then warnings of the library, as sentences
    """

    def __init__(self, args: Namespace, bar: ProgressBar):
        self.args, self.bar = args, bar
        self.table: Any = None
        self.notes: list[str] = []
        self._assumed: list[str] = []

    @property
    def wording(self) -> Wording:
        """How messages name options, rows and the file."""
        return command_line(getattr(self.args, "file", None), self.called)

    def begin(self, table: Any) -> None:
        """Set the open table and its notes."""
        self.table = table
        self._assumed = [self.wording(text) for text in table.notes]
        self.notes[:0] = self._assumed

    # ---------------------------------------------------------------------------------------------------------------- rows

    def numbers(self, rows: Any) -> list[int]:
        """Row numbers in the file, from 0, of compared rows; they differ from their places if rows were left out."""
        return [int(row) for row in self.table.numbers(rows)]

    def ids(self, rows: Any) -> list[str | None]:
        """Names of rows; None if they have only numbers."""
        return list(self.table.names(rows)) if self.table.has_names else [None] * len(rows)

    def rows(self, rows: Any) -> list[Row]:
        """Rows by number and name."""
        return [Row(*each) for each in zip(self.numbers(rows), self.ids(rows), strict=True)]

    def called(self, row: int) -> str:
        """The name of a row for a sentence."""
        if self.table is None or row >= self.table.n:
            return f"row {row}"
        number, name = self.numbers([row])[0], self.ids([row])[0]
        return f"row {number}" if name is None else f"{name} (row {number})"

    def row_of(self, number: int) -> int:
        """The row with this number in the file."""
        n = self.table.n
        row = bisect_left(range(n), number, key=lambda i: self.numbers([i])[0])
        if row < n and self.numbers([row]) == [number]:
            return row
        last = self.numbers([n - 1])[0]
        why = "it was left out because of missing numbers" if 0 <= number < last else f"the last one is {last:,}"
        raise InvalidInputError(f"there is no row {number}: {why}", "Rows count from 0, without the header.")

    @property
    def file(self) -> File:
        """The data, for JSON."""
        table = self.table
        return File(str(table.path), table.kind, table.n, table.n_features, table.feature_names)

    # ------------------------------------------------------------------------------------------------------------- fitting

    def settings(self, names: tuple[str, ...] = SETTINGS) -> dict[str, Any]:
        """Parameters that were given, and ``verbose`` if there is no progress bar."""
        given = as_parameters({name: getattr(self.args, name) for name in names if hasattr(self.args, name)})
        return given | {"verbose": True} if self.bar.verbose else given

    def fit(self) -> MOSAIC:
        """Fit the selector with the options."""
        model = MOSAIC(**self.settings())
        model.fit(self.table, **self.constraints())
        return model

    def save(self, model: Any, path: str) -> None:
        """Write the fitted model, with names and cells of rows."""
        self.bar.update("saving")
        with writing(path):
            model.save(path, table=self.table, force=self.args.force)

    def constraints(self) -> dict[str, Any]:
        """Arguments of ``fit``, with rows numbered among the compared rows."""
        args, table = self.args, self.table
        given = {"sample_weight": table.weights, "groups": table.groups, "quotas": getattr(args, "quotas", None)}
        found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in ("must_include", "exclude"):
            if hasattr(args, name):  # each row once, however often it is named
                found[name] = np.array(list(dict.fromkeys(table.find(row) for row in getattr(args, name))), np.intp)
        self._check_must_include(found)
        return found

    def _check_must_include(self, constraints: dict[str, Any]) -> None:
        """Refuse early what ``fit`` would refuse later, sometimes after much work."""
        must = constraints.get("must_include", np.zeros(0, np.intp))
        both = np.intersect1d(must, constraints.get("exclude", must[:0]))
        if len(both):
            raise InvalidInputError(
                f"`row {both[0]}` is in `must_include` and in `exclude`", "Take it out of one of the two."
            )
        k = getattr(self.args, "n_representatives", None)
        if isinstance(k, int) and len(must) > k:
            fault = f"names {len(must)} rows, and `n_representatives` asks for {k}"
            raise InvalidInputError(fault, "Name fewer or ask for more.", parameter="must_include")
        weights = constraints.get("sample_weight")
        without = must[:0] if weights is None else must[weights[must] == 0]
        if len(without):
            fault = f"names `row {without[0]}`, whose weight is 0"
            raise InvalidInputError(fault, "Give it a weight, or leave it out.", parameter="must_include")
        X = self.table.X
        # The rows of a source are not in memory; fit checks them later.
        if len(must) > 1 and not is_source(X) and getattr(self.args, "kernel", None) != "precomputed":
            rows = X[must].toarray() if sp.issparse(X) else np.asarray(X[must])
            which, copies = np.unique(rows, axis=0, return_inverse=True, return_counts=True)[1:]
            if (copies > 1).any():
                one, other = must[which.ravel() == np.argmax(copies > 1)][:2]
                fault = f"names `row {one}` and `row {other}`, which are equal"
                raise InvalidInputError(fault, "Name one of them.", parameter="must_include")

    # --------------------------------------------------------------------------------------------------------------- notes

    def say_notes(self) -> None:
        """Write notes to stderr if no answer on stdout contains them; assumptions about the file only to a terminal."""
        if self.args.quiet:
            return
        for text in self.notes:
            if sys.stderr.isatty() or text not in self._assumed:
                say(f"note: {visible(text)}")

    def print_rows(self, rows: Any) -> None:
        """Write notes to stderr and, unless they went to a file, the rows to stdout as CSV."""
        self.say_notes()
        if self.args.output is None:
            write_bytes(csv_bytes(rows))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Context in which warnings become notes, each once; warnings for developers are dropped."""
        dropped = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, ImportWarning)

        def keep(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            said = message.message(self.wording) if isinstance(message, MosaicWarning) else str(message)
            text = " ".join(said.split())
            if not issubclass(category, dropped) and text not in self.notes:
                self.notes.append(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = keep
            yield


@contextmanager
def opened(
    args: Namespace, open_: Callable[[ProgressBar], AbstractContextManager[Any]] | None = None
) -> Iterator[Session]:
    """Open the file of the options, with a progress bar; warnings become notes, and errors name rows by id."""
    _check_options(args)
    with ProgressBar(args.quiet or args.json) as bar:
        session = Session(args, bar)
        with session.warnings_as_notes(), bar.listening(), (open_ or _open_file(args))(bar) as table:
            session.begin(table)
            try:
                _check_kind(args, table)
                yield session
            except MosaicError as error:
                raise RefusedError(fault_of(error, session.wording, getattr(args, "file", None))) from error


def _open_file(args: Namespace) -> Callable[[ProgressBar], AbstractContextManager[Any]]:
    options = {name: getattr(args, name) for name in (*FILE_OPTIONS, "memory_budget") if hasattr(args, name)}
    return lambda bar: read(args.file, **options, progress=bar.on_read)


def _check_options(args: Namespace) -> None:
    """Refuse options that have no effect without another option."""
    if getattr(args, "title", None) is not None and getattr(args, "report", "") is None:
        remedy = "Add `report=report.html`, or leave it out."
        raise InvalidInputError("means nothing without `report`", remedy, parameter="title")
    if hasattr(args, "quotas") and not hasattr(args, "group"):
        remedy = "Add `group=COLUMN`, or leave it out."
        raise InvalidInputError("means nothing without `group`", remedy, parameter="quotas")


def _check_kind(args: Namespace, table: Any) -> None:
    """Refuse options for images if the file has none."""
    given = [name for name in ("image_size", "colour") if hasattr(args, name)]
    if given and not table.kind.startswith("images"):
        fault = f"is for folders and zips of images; {table.path} is none"
        raise InvalidInputError(fault, "Leave it out.", parameter=given[0])


def check_outputs(args: Namespace, *names: str) -> None:
    """Refuse outputs that cannot be written, or that would replace or become part of the input, before the work begins."""
    seen = {os.path.realpath(args.file): "the input"}
    for name in ("model", "embeddings"):
        if hasattr(args, name):
            seen[os.path.realpath(getattr(args, name))] = "the model" if name == "model" else f"--{name}"
    inputs = dict(seen)
    for name in names:
        path = getattr(args, name)
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise OutputError(path, f"it is {seen[place]}, too", "Give every file a name of its own.")
        for folder, what in inputs.items():
            if _is_within(place, folder):
                raise OutputError(path, f"it lies in {what}, {folder}", "Write to another folder.")
        seen[place] = f"--{name}"
        is_page = name == "report" or args.command == "report"
        if is_page and Path(path).suffix.lower() not in (".html", ".htm"):
            remedy = f"Call it {Path(path).with_suffix('.html').name}."
            raise OutputError(path, "a report is an HTML page", remedy)
        is_model = name == "save"
        if is_model and Path(path).suffix.lower() != MODEL_ENDING:
            remedy = f"Call it {Path(path).with_suffix(MODEL_ENDING).name}."
            raise OutputError(path, f"the name of a saved model ends in {MODEL_ENDING}", remedy)
        with writing(path):
            check_output(path, args.force, rows=not is_page and not is_model)


def _is_within(place: str, folder: str) -> bool:
    """Whether a file lies in a folder that is read as one table or array; a folder of images ignores other files."""
    inside = os.path.isdir(folder) and Path(place).is_relative_to(folder)
    return inside and kind_of(Path(folder)) in (".parquet", ".zarr")


# ----------------------------------------------------------------------------------------------------------- answers


def write_page(session: Session, model: Any, path: str, **about: Any) -> None:
    """Write the report of a fitted model; ``about`` as for ``mosaic.report.write_report``."""
    session.bar.update("report")
    args = session.args
    command = shlex.join(["mosaic", *args.words])
    with writing(path):
        write_report(model, path, table=session.table, title=args.title, command=command, force=args.force, **about)


def with_columns(table: Any, columns: dict[str, Any]) -> Any:
    """The table with columns appended; a name that exists already gets a trailing underscore.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_columns(pa.table({"a": [1], "b": [2]}), {"a": [3], "c": [4]}).column_names
    ['a', 'b', 'a_', 'c']
    """
    import pyarrow as pa  # here, because some commands read arrays without it

    for name, values in columns.items():
        while name in table.column_names:
            name += "_"
        table = table.append_column(name, pa.array(values))
    return table


def values_of(table: Any) -> list[dict[str, Any]]:
    """Each row as a mapping, without columns of lists, for JSON."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        try:
            columns[name] = column.to_pylist()
        except (ValueError, OverflowError):  # such as the year 14645, for which Python has no date
            columns[name] = column.cast(pa.string()).to_pylist()
    return [{name: values[i] for name, values in columns.items()} for i in range(table.num_rows)]


def settings_of(summary: Summary) -> Settings:
    """The settings of the fit, for JSON."""
    said = summary.settings
    parameters = {name: value for name, value in said["parameters"].items() if name != "verbose"}
    return Settings(parameters, **{name: said[name] for name in ("alpha", "lam", "gamma", "sentences", "versions")})


def left_out(columns: list[str]) -> list[str]:
    """A list with a note about columns that were not written, or an empty list.

    Examples
    --------
    >>> left_out([]), left_out(["vector"])
    ([], ['Not written, since CSV cannot hold lists: vector. A .parquet file keeps them.'])
    """
    said = f"Not written, since CSV cannot hold lists: {', '.join(columns)}. A .parquet file keeps them."
    return [said] if columns else []
