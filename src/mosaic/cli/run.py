"""One run of a command: the open file, what the options say, the notes, and the outputs."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.cli.faults import command_line, fault_of
from mosaic.cli.options import CONSTRAINTS, FILE_OPTIONS, SETTINGS
from mosaic.cli.terminal import ProgressBar, say, visible, write_bytes, write_json
from mosaic.estimators import MOSAIC, listening, load
from mosaic.exceptions import InvalidInputError, MosaicError, MosaicWarning, Wording
from mosaic.facts import Facts
from mosaic.rows import check_output, csv_bytes, read, write_rows
from mosaic.rows.open import kind_of
from mosaic.rows.rows import SavedRows
from mosaic.rows.write import OutputFault
from mosaic.show import write_report

#: How the names of pages and saved models end, and what is said of other names.
ENDINGS = {
    "report": ((".html", ".htm"), "a report is an HTML page"),
    "save": ((".mosaic",), "the name of a saved model ends in .mosaic"),
}
#: Warnings for developers, which are no notes.
DROPPED_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, ImportWarning)
#: Options that mean nothing without another one, and what that may be.
NEEDED = {"title": ("report", "report.html"), "quotas": ("group", "COLUMN")}


class Run:
    """An open file (``table``, a ``mosaic.rows.Rows``), the options of the command, its notes, and the paths of its outputs."""

    def __init__(self, args: Namespace, bar: ProgressBar):
        self.args, self.bar = args, bar
        self.table: Any = None
        self.notes: list[str] = []
        self.outputs: dict[str, str] = {}
        self._assumed: list[str] = []

    def begin(self, table: Any) -> None:
        """Set the open table and its notes."""
        self.table = table
        self._assumed = [self.wording(text) for text in table.notes]
        self.notes[:0] = self._assumed

    @property
    def wording(self) -> Wording:
        """How messages name options, rows and the file."""
        return command_line(getattr(self.args, "file", None), self.called)

    def called(self, row: int) -> str:
        """The name of a row for a sentence."""
        if self.table is None or row >= self.table.n:
            return f"row {row}"
        number = f"row {self.table.numbers([row])[0]}"
        return f"{self.table.names([row])[0]} ({number})" if self.table.has_names else number

    def ids(self, rows: Any) -> list[str]:
        """Names of rows; empty texts if they have only numbers."""
        return list(self.table.names(rows)) if self.table.has_names else [""] * len(rows)

    def row_of(self, number: int) -> int:
        """The row with this number in the file."""
        n, numbers = self.table.n, self.table.numbers
        row = bisect_left(range(n), number, key=lambda i: int(numbers([i])[0]))
        if row < n and numbers([row])[0] == number:
            return row
        last = int(numbers([n - 1])[0])
        why = "it was left out because of missing numbers" if 0 <= number < last else f"the last one is {last:,}"
        raise InvalidInputError(f"there is no row {number}: {why}", "Rows count from 0, without the header.")

    def settings(self, names: tuple[str, ...] = SETTINGS) -> dict[str, Any]:
        """Parameters that were given."""
        return {name: getattr(self.args, name) for name in names if hasattr(self.args, name)}

    def constraints(self) -> dict[str, Any]:
        """Arguments of ``fit``, with rows numbered among the compared rows."""
        args, table = self.args, self.table
        given = {"sample_weight": table.weights, "groups": table.groups}
        given |= {name: getattr(args, name, None) for name in ("quotas", "start")}
        found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in ("must_include", "exclude"):
            if hasattr(args, name):  # each row once, however often it is named
                found[name] = np.array(list(dict.fromkeys(table.find(row) for row in getattr(args, name))), np.intp)
        return found

    def fit(self) -> MOSAIC:
        """Fit the selector with the options."""
        return MOSAIC(**self.settings()).fit(self.table, **self.constraints())

    # ------------------------------------------------------------------------------------------------------------ outputs

    def write_rows(self, what: str, path: str | None, rows: Any) -> None:
        """Write rows to a file, if there is a path; columns that the file cannot hold are noted."""
        if path is None:
            return
        as_written = getattr(self.args, "as_written", False)
        left_out = write_rows(path, rows, force=self.args.force, as_written=as_written)
        if left_out:
            said = f"Not written, since CSV cannot hold lists: {', '.join(left_out)}. A .parquet file keeps them."
            self.notes.append(said)
        self.outputs[what] = path

    def write_page(self, facts: Facts, path: str | None) -> None:
        if path is None:
            return
        self.bar.update("report")
        about = {"title": self.args.title, "command": shlex.join(["mosaic", *self.args.words])}
        write_report(facts.model, path, facts=facts, force=self.args.force, **about)
        self.outputs["report"] = path

    def save(self, model: Any, path: str | None) -> None:
        """Write the fitted model, with names and cells of rows."""
        if path is None:
            return
        self.bar.update("saving")
        model.save(path, table=self.table, force=self.args.force)
        self.outputs["model"] = path

    @property
    def is_read(self) -> bool:
        """Whether the answer is printed, and not only rows as CSV."""
        return bool(self.args.json) or sys.stdout.isatty()

    def finish(self, show: Callable[[], None], rows: Any = None, /, **answer: Any) -> int:
        """Give the answer: as JSON, as text on a terminal, or the rows as CSV in a pipe, unless they went to a file."""
        if self.args.json:
            table = self.table
            file = {"path": str(table.path), "kind": table.kind, "rows": table.n, "features": table.n_features}
            file["feature_names"] = table.feature_names
            write_json(self.args.command, {"file": file, "notes": self.notes, "outputs": self.outputs, **answer})
        elif sys.stdout.isatty() or rows is None:
            show()
        else:
            self.say_notes()
            if self.args.output is None:
                write_bytes(csv_bytes(rows))
        return 0

    def say_notes(self) -> None:
        """Write notes to stderr if no answer on stdout contains them; assumptions about the file only to a terminal."""
        for text in [] if self.args.quiet else self.notes:
            if sys.stderr.isatty() or text not in self._assumed:
                say(f"note: {visible(text)}")

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Context in which warnings become notes, each once; warnings for developers are dropped."""

        def keep(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            said = message.message(self.wording) if isinstance(message, MosaicWarning) else str(message)
            text = " ".join(said.split())
            if not issubclass(category, DROPPED_WARNINGS) and text not in self.notes:
                self.notes.append(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = keep
            yield


@contextmanager
def opened(args: Namespace, open_: Callable[[ProgressBar], Any] | None = None) -> Iterator[Run]:
    """Open the file of the options, with a progress bar; warnings become notes, and errors name rows by id."""
    for name, (other, example) in NEEDED.items():
        if getattr(args, name, None) is not None and getattr(args, other, None if other == "group" else "") is None:
            remedy = f"Add `{other}={example}`, or leave it out."
            raise InvalidInputError(f"means nothing without `{other}`", remedy, parameter=name)
    options = {name: getattr(args, name) for name in (*FILE_OPTIONS, "memory_budget") if hasattr(args, name)}
    with ProgressBar(args.quiet or args.json) as bar:
        run = Run(args, bar)
        with run.warnings_as_notes(), listening(bar.update):
            table = open_(bar) if open_ is not None else read(args.file, **options, progress=bar.on_read)
            with table:
                run.begin(table)
                try:
                    for name in ("image_size", "colour"):
                        if hasattr(args, name) and not table.kind.startswith("images"):
                            fault = f"is for folders and zips of images; {table.path} is none"
                            raise InvalidInputError(fault, "Leave it out.", parameter=name)
                    yield run
                except MosaicError as error:
                    error.told = fault_of(error, run.wording, getattr(args, "file", None))  # type: ignore[attr-defined]
                    raise


@contextmanager
def opened_or_loaded(args: Namespace) -> Iterator[tuple[Run, Any]]:
    """The run, and the saved model if the file is one; None if a model is to be fitted with the options."""
    if Path(args.file).suffix.lower() != ".mosaic":
        with opened(args) as run:
            yield run, None
        return
    for name in (*SETTINGS, *FILE_OPTIONS, *CONSTRAINTS):
        if hasattr(args, name):
            fault = "means nothing for a saved model, which is fitted and knows its rows"
            raise InvalidInputError(fault, "Leave it out, or name the data instead of the model.", parameter=name)
    model = load(args.file)
    with opened(args, lambda bar: rows_of_model(model, args.file)) as run:
        yield run, model


def rows_of_model(model: Any, path: str) -> Any:
    """The fitted rows as far as the model keeps them: names and some cells, or nothing but their numbers."""
    kept = getattr(model, "kept_rows_", None) or SavedRows(Path(path).name, "saved model", model.selection_.n_rows)
    return kept.as_rows(model.n_features_in_, getattr(model, "feature_names_in_", None))


def check_outputs(args: Namespace, *names: str) -> None:
    """Refuse outputs that cannot be written, or that would replace or become part of the input, before the work begins."""
    inputs = {"the input": args.file, "the model": getattr(args, "model", None)}
    inputs["--embeddings"] = getattr(args, "embeddings", None)
    seen = {os.path.realpath(path): what for what, path in inputs.items() if path is not None}
    folders = [folder for folder in seen if os.path.isdir(folder) and kind_of(Path(folder)) in (".parquet", ".zarr")]
    for name in names:
        path = getattr(args, name)
        if path is None:
            continue
        place, kind = os.path.realpath(path), "report" if args.command == "report" else name
        for folder in folders:
            if Path(place).is_relative_to(folder):
                raise OutputFault(path, f"it lies in {seen[folder]}, {folder}", "Write to another folder.")
        if place in seen:
            raise OutputFault(path, f"it is {seen[place]}, too", "Give every file a name of its own.")
        seen[place] = f"--{name}"
        endings, fault = ENDINGS.get(kind, ((), ""))
        if endings and Path(path).suffix.lower() not in endings:
            raise OutputFault(path, fault, f"Call it {Path(path).with_suffix(endings[0]).name}.")
        check_output(path, args.force, rows=not endings)
