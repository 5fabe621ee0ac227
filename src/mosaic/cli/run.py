"""One run of a command: the open file, what the options say, the notes, and the outputs."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mosaic.choosing import Settings, counted
from mosaic.cli import command_line, ended_by_signals, fault_of
from mosaic.cli.options import CONSTRAINTS, FILE_OPTIONS, SETTINGS
from mosaic.cli.parser import COMMANDS
from mosaic.cli.terminal import (
    ProgressBar,
    say,
    visible,
    write,
    write_bytes,
    write_json,
    write_table,
    write_wrapped,
)
from mosaic.estimators import MOSAIC, MOSAICSampler, listening, load
from mosaic.estimators.fitted import FittedAttributes
from mosaic.exceptions import InvalidInputError, MosaicError, MosaicWarning, Wording
from mosaic.facts import Facts
from mosaic.rows import Encoder, Rows, check_output, csv_bytes, read, write_rows
from mosaic.rows.open import kind_of
from mosaic.rows.saved import SavedRows
from mosaic.rows.write import PAGES, WRITERS, OutputFault
from mosaic.show import write_report
from mosaic.text import listed

if TYPE_CHECKING:
    import pyarrow

#: Exit codes where pictures were left out because they cannot be read, and where rows do not belong.
UNREADABLE, ODD_ROWS = 7, 8
#: Of an answer on a terminal: a sentence, lines, or a table by its columns; nothing where it is empty.
Part: TypeAlias = str | list[str] | Mapping[str, Any]


class Run:
    """An open file (``table``, a ``mosaic.rows.Rows``), the options of the command, its notes, and the paths of its outputs."""

    table: Rows

    def __init__(self, args: Namespace, bar: ProgressBar, saved: FittedAttributes | None):
        self.args = args
        self.bar = bar
        self.saved = saved
        self.encoder: Encoder | None = None if saved is None else saved.encoder_
        self.notes: list[str] = []
        self.outputs: dict[str, str] = {}
        self.assumed: list[str] = []

    @property
    def wording(self) -> Wording:
        return command_line(getattr(self.args, "file", None), self.called)

    def called(self, row: int) -> str:
        if row < self.table.n and self.table.has_names:
            return f"{self.table.names([row])[0]} (row {row})"
        return f"row {row}"

    def settings(self, names: tuple[str, ...] = SETTINGS) -> dict[str, Any]:
        return {name: getattr(self.args, name) for name in names if hasattr(self.args, name)}

    def constraints(self) -> dict[str, Any]:
        args = self.args
        table = self.table
        given = {name: getattr(args, name, None) for name in ("quotas", "start", "marks")}
        found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in ("must_include", "exclude"):
            if hasattr(args, name):  # each row once, however often it is named
                found[name] = np.array(
                    list(dict.fromkeys(table.find(row) for row in getattr(args, name))), np.intp
                )
        return found

    def fit(self) -> Any:
        """The saved model if the file is one, else the selector, fitted with the options."""
        if self.saved is None and hasattr(self.args, "label"):
            return self._fit_classes()
        if hasattr(self.args, "suspects"):
            raise InvalidInputError(
                "is about the labels of rows",
                "Name their column with `label`.",
                parameter="suspects",
            )
        return self.saved or self.known(
            MOSAIC(**self.settings()).fit(self.table, **self.constraints())
        )

    def known(self, model: FittedAttributes) -> Any:
        """A fitted model; what it decided about columns is noted."""
        self.encoder = model.encoder_
        told = [self.wording(note) for note in self.encoder.describe()]
        of_columns = told[: len(told) - len(self.encoder.notes)]  # then come strange cells
        self.assumed = list(dict.fromkeys([*self.assumed, *of_columns]))
        told += model.selection_.data.constraints.notes
        self.notes = list(dict.fromkeys([*self.assumed, *told, *self.notes]))
        return model

    def _fit_classes(self) -> Any:
        """The sampler, fitted to the rows and their labels; rows whose label does not fit are noted."""
        model = MOSAICSampler(**self.settings((*SETTINGS, "suspects")))
        model.fit(
            replace(self.table, groups=None), np.asarray(self.table.groups), **self.constraints()
        )
        self.known(model)
        rows, labels, suggested, _ = (values.tolist() for values in model.suspects_)
        if rows:
            found = zip(rows, labels, suggested, strict=True)
            told = [
                f"{self.called(row)} is labelled {a!r}, its neighbours {b!r}" for row, a, b in found
            ]
            if len(rows) > 1:
                fate = "s have labels that do not fit"
            else:
                fate = " has a label that does not fit"
            self.notes.append(f"{len(rows):,} row{fate}: {listed(told)}.")
        copies = len(model.sample_indices_) - len(model.selection_.rows)
        if copies:
            self.notes.append(
                f"{copies:,} of the chosen rows are not listed, since they are copies of others."
            )
        return model

    def write_rows(self, what: str, path: str | None, rows: pyarrow.Table) -> None:
        if path is not None:
            as_written, dialect = (
                getattr(self.args, "as_written", False),
                self.table.request.dialect,
            )
            left_out = write_rows(
                path, rows, force=self.args.force, as_written=as_written, dialect=dialect
            )
            if left_out:
                self.notes.append(
                    f"Not written, since CSV cannot hold lists: {', '.join(left_out)}. A .parquet file keeps them."
                )
            self.outputs[what] = path

    def write_others(self, facts: Facts) -> None:
        """Write the page and the fitted model, if they are asked for."""
        args = self.args
        if args.report is not None:
            self.bar.update("report")
            command = shlex.join(["mosaic", *args.words])
            write_report(
                facts.model,
                args.report,
                facts=facts,
                force=args.force,
                title=args.title,
                command=command,
            )
            self.outputs["report"] = args.report
        if args.save is not None:
            self.bar.update("saving")
            facts.model.save(args.save, table=self.table, force=args.force)
            self.outputs["model"] = args.save

    @property
    def prints_answer(self) -> bool:
        """Whether the answer is printed, and not only rows as CSV."""
        return bool(self.args.json) or sys.stdout.isatty()

    def finish(self, rows: pyarrow.Table | None, /, *parts: Part, **answer: Any) -> int:
        """Give the answer: as JSON, as parts of text, or the rows as CSV in a pipe, unless they went to a file."""
        args = self.args
        table = self.table
        if args.json:
            encoder = Encoder.fit(table) if self.encoder is None else self.encoder
            names = encoder.names
            file: dict[str, Any] = {"path": str(table.path), "kind": table.kind, "rows": table.n}
            file["features"] = encoder.width if names is None else len(names)
            file["feature_names"] = names
            file |= {"unreadable": table.unreadable} if table.unreadable else {}
            about = {"file": file, "notes": self.notes, "outputs": self.outputs}
            write_json(args.command, {**about, **answer})
        elif rows is not None and (args.to_stdout or not sys.stdout.isatty()):
            self.say_notes()
            if args.to_stdout or args.output is None:
                write_bytes(csv_bytes(rows, *table.request.dialect))
        elif not args.quiet or not (args.output or (rows is None and self.outputs)):
            self.write_parts(parts)
            if sys.stdout.isatty():
                self.write_end()
            else:
                self.say_notes()
        if not self.table.unreadable:
            fails = self.args.command == "check" or getattr(self.args, "fail_on_outliers", False)
            return ODD_ROWS if fails and answer["n_outliers"] else 0
        if self.args.json or self.args.quiet or sys.stdout.isatty():  # else the notes have told it
            lost = visible(listed(list(self.table.unreadable)))
            say(f"mosaic {self.args.command}: left out, because they cannot be read: {lost}")
        return UNREADABLE

    def shown_notes(self) -> list[str]:
        """The notes, with what was assumed about the file in one line, unless ``--verbose`` asks for all."""
        if self.args.quiet or self.args.verbose or not self.assumed:
            return [] if self.args.quiet else self.notes
        first, _, more = self.assumed[0].partition(". ")
        n_more = len(self.assumed) - 1
        if n_more:
            more = f" ({counted(n_more, 'more note')} with --verbose)"
        else:
            more = " (more with --verbose)" if more else ""
        return [
            first.removesuffix(".") + more + ".",
            *(note for note in self.notes if note not in self.assumed),
        ]

    def write_end(self) -> None:
        for text in self.shown_notes():
            write_wrapped(text, "note: ")
        for what, path in self.outputs.items():
            write(f"{what}: {visible(path)}")

    def write_parts(self, parts: Iterable[Part]) -> None:
        """Write sentences, lists of lines, and the first rows of tables, with which option keeps all of them."""
        for number, part in enumerate(filter(len, parts)):
            if number:
                write()
            if isinstance(part, str):
                write_wrapped(part)
            elif isinstance(part, list):
                write("\n".join(map(visible, part)))
            else:
                name = COMMANDS[self.args.command].output
                write_table(part, "" if self.args.output else f"; -o {name} keeps them all")

    def say_notes(self) -> None:
        """Write notes to stderr if no answer on stdout contains them; assumptions about the file only to a terminal."""
        of_file = 0 if sys.stderr.isatty() or self.args.verbose else bool(self.assumed)
        for text in self.shown_notes()[of_file:]:
            say(f"note: {visible(text)}")

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Context in which warnings become notes, each once; warnings for developers are dropped."""

        def keep(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if isinstance(message, MosaicWarning):
                said = message.message(self.wording)
            else:
                said = str(message)
            text = " ".join(said.split())
            if issubclass(category, (UserWarning, RuntimeWarning)) and text not in self.notes:
                self.notes.append(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = keep
            yield


@contextmanager
def opened(args: Namespace, open_: Callable[[ProgressBar], Rows] | None = None) -> Iterator[Run]:
    """Open the file of the options, with a progress bar; warnings become notes, and errors name rows by id."""
    options = {
        name: getattr(args, name)
        for name in (*FILE_OPTIONS, "memory_budget")
        if hasattr(args, name)
    }
    if hasattr(args, "label"):
        if hasattr(args, "group"):
            raise InvalidInputError(
                "cannot be combined with `group`", "Leave one of them out.", parameter="label"
            )
        options["group"] = args.label
    saved = None
    if (
        args.command in ("report", "explain", "certify")
        and Path(args.file).suffix.lower() == ".mosaic"
    ):
        for name in (*SETTINGS, *FILE_OPTIONS, *CONSTRAINTS):
            if hasattr(args, name):
                fault = "means nothing for a saved model, which is fitted and knows its rows"
                raise InvalidInputError(
                    fault, "Leave it out, or name the data instead of the model.", parameter=name
                )
        saved = load(args.file)
    with ProgressBar(args.quiet or args.json) as bar:
        run = Run(args, bar, saved)
        Settings.of(MOSAIC(**run.settings()))  # wrong ones are refused before the file is read
        with run.warnings_as_notes(), listening(bar.update):
            if saved is not None:
                table = rows_of_model(saved, args.file)
            elif open_ is not None:
                table = open_(bar)
            else:
                is_hdf5 = ".h5ad" in (Path(args.file).suffix.lower(), f".{options.get('format')}")
                with ended_by_signals() if is_hdf5 else nullcontext():
                    table = read(args.file, **options, progress=bar.on_read)
            with table:
                run.table = table
                run.assumed = [run.wording(text) for text in table.notes]
                run.notes[:0] = run.assumed
                try:
                    yield run
                except MosaicError as error:
                    error.told = fault_of(error, run.wording, getattr(args, "file", None))  # type: ignore[attr-defined]
                    raise


def rows_of_model(model: FittedAttributes, path: str) -> Rows:
    """The fitted rows as far as the model keeps them: names and some cells, or nothing but their numbers."""
    kept = getattr(model, "kept_rows_", None) or SavedRows(
        Path(path).name, "saved model", model.selection_.n_rows
    )
    return kept.as_rows()


def check_outputs(args: Namespace) -> None:
    """Refuse outputs that cannot be written, or that would replace or become part of the input, before the work begins."""
    to_stdout = [name for name in ("output", "keep") if getattr(args, name) == "-"]
    args.to_stdout = bool(to_stdout)
    to_stdout += ["json"] * args.json
    if args.to_stdout and len(to_stdout) > 1:
        fault = f"--{to_stdout[1]} is written to standard output, too"
        raise OutputFault("-", fault, "Leave one of them out.")
    if args.output == "-":
        args.output = None
    inputs = {
        "the input": "file",
        "the model": "model",
        "the other file": "other",
        "the marks": "marks",
    }
    given = {what: getattr(args, name, None) for what, name in inputs.items()}
    seen = {
        os.path.realpath(each): what
        for what, path in given.items()
        if path is not None
        for each in (path, *glob(path))
    }
    folders = [
        folder
        for folder in seen
        if os.path.isdir(folder) and kind_of(Path(folder)) in (".parquet", ".zarr")
    ]
    for name, endings in {
        "output": WRITERS,
        "report": PAGES,
        "labels": WRITERS,
        "save": (".mosaic",),
        "keep": WRITERS,
    }.items():
        path = getattr(args, name)
        if path in (None, "-"):
            continue
        place = os.path.realpath(path)
        for folder in folders:
            if Path(place).is_relative_to(folder):
                raise OutputFault(
                    path, f"it lies in {seen[folder]}, {folder}", "Write to another folder."
                )
        if place in seen:
            raise OutputFault(
                path, f"it is {seen[place]}, too", "Give every file a name of its own."
            )
        seen[place] = f"--{name}"
        check_output(path, args.force, endings)
