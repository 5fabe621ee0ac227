"""From the options of a command to a table and a fitted model."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mosaic.cli._constraints import check_kind, check_options, constraints_of
from mosaic.cli._faults import OPTIONS, OutputError, using, writing
from mosaic.cli._options import FILE_OPTIONS, SETTINGS
from mosaic.cli._output import note
from mosaic.cli._progress import Bar, warnings_as
from mosaic.data import check_output, open_table
from mosaic.data.opening import kind_of
from mosaic.estimators import MOSAIC
from mosaic.exceptions import InvalidInputError


@dataclass
class Work:
    """A table that is open, the bar, and what is to be noted about the work.

    Attributes
    ----------
    args : the options
    table : ``mosaic.data.Table``, or what answers like one
    bar : how far the work is
    warned : what the library warned of
    """

    args: Namespace
    table: Any
    bar: Bar
    warned: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What was assumed about the file, and what the library warned of."""
        return [*map(OPTIONS, self.table.notes), *self.warned]

    @property
    def file(self) -> dict[str, Any]:
        """The data, for JSON."""
        return {
            "path": str(self.table.path),
            "kind": self.table.kind,
            "rows": self.table.n,
            "features": self.table.n_features,
            "feature_names": self.table.feature_names,
        }

    def settings(self, names: tuple[str, ...] = SETTINGS) -> dict[str, Any]:
        """Parameters that were given, and whether the estimator should tell how far it is."""
        given = {name: getattr(self.args, name) for name in names if hasattr(self.args, name)}
        return given | {"verbose": True} if self.bar.verbose else given

    def using(self) -> AbstractContextManager[None]:
        """Within, the library complains in options, names of rows and names of files."""
        return using(str(self.table.path), self.called)

    def fit(self) -> MOSAIC:
        """The selector that the options describe, fitted."""
        constraints = constraints_of(self)
        with self.using():
            model = MOSAIC(**self.settings())
            model.fit(self.table.X, **constraints)
        name_features(model, self.table.feature_names)
        return model

    def numbers(self, rows: Any) -> list[int]:
        """Row numbers in the file, from 0, of rows that were compared; they differ where rows were left out."""
        return [int(row) for row in self.table.numbers(rows)]

    def row_of(self, number: int) -> int:
        """The row that has this number in the file."""
        n = self.table.n
        row = bisect_left(range(n), number, key=lambda i: self.numbers([i])[0])
        if row < n and self.numbers([row]) == [number]:
            return row
        last = self.numbers([n - 1])[0]
        why = "it was left out, since numbers are missing in it" if 0 <= number < last else f"the last one is {last:,}"
        raise InvalidInputError(f"there is no row {number}: {why}. Rows count from 0, without the header.")

    def called(self, row: int) -> str:
        """What a row is called in a sentence."""
        number, name = self.numbers([row])[0], self.names([row])[0]
        return f"row {number}" if name is None else f"{name} (row {number})"

    def names(self, rows: Any) -> list[str | None]:
        """What rows are called."""
        return list(self.table.names(rows)) if self.table.has_names else [None] * len(rows)

    def say_notes(self, notes: list[str] | None = None) -> None:
        """Notes on stderr, where no answer on stdout has them; what was assumed about the file only to a terminal."""
        assumed = set() if sys.stderr.isatty() else set(map(OPTIONS, self.table.notes))
        for text in [] if self.args.quiet else self.notes if notes is None else notes:
            if text not in assumed:
                note(text)


@contextmanager
def opened(args: Namespace) -> Iterator[Work]:
    """The file that the options name, opened; within, a bar is shown and warnings are kept."""
    check_options(args)
    options = {name: getattr(args, name) for name in FILE_OPTIONS if hasattr(args, name)}
    budget = getattr(args, "memory_budget", None)
    warned: list[str] = []
    with (
        Bar(args.quiet or args.json) as bar,
        warnings_as(warned),
        bar.listening(),
        open_table(args.file, **options, memory_budget=budget, progress=bar.read) as table,
    ):
        check_kind(args, table)
        yield Work(args, table, bar, warned)


def check_outputs(args: Namespace, *names: str) -> None:
    """Refuse what cannot be written, and what would replace or join the input, before any work is done."""
    seen = {os.path.realpath(args.file): "the input"}
    for name in ("embeddings", "checkpoint"):
        if getattr(args, name, None) is not None:
            seen[os.path.realpath(getattr(args, name))] = f"--{name}"
    inputs = dict(seen)
    for name in names:
        path = getattr(args, name)
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise OutputError(path, f"it is {seen[place]}, too.", "Give every file a name of its own.")
        for folder, what in inputs.items():
            if _is_within(place, folder):
                raise OutputError(path, f"it lies in {what}, {folder}.", "Write to another folder.")
        seen[place] = f"--{name}"
        page = name == "report" or args.command == "report"
        with writing(path):
            check_page(path, args.force) if page else check_output(path, args.force, rows=True)


def _is_within(place: str, folder: str) -> bool:
    """Whether a file lies in a folder that is read as one table or array; beside pictures it does no harm."""
    inside = os.path.isdir(folder) and Path(place).is_relative_to(folder)
    return inside and kind_of(Path(folder)) in (".parquet", ".zarr")


def check_page(path: str, force: bool) -> None:
    """Refuse a page that cannot be written."""
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise OutputError(path, "a report is an HTML page.", f"Call it {file.with_suffix('.html').name}.")
    check_output(path, force)


def name_features(model: Any, names: list[str] | None) -> None:
    """Let a model that was fitted to a bare array call its features by their names."""
    if names is not None and len(names) == model.n_features_in_:
        model.feature_names_in_ = np.array(names, dtype=object)
