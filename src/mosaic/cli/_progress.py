"""How far the work is: a bar on a terminal, silence elsewhere; and what the library warns of, as notes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

from mosaic.cli._first_line import readable_size, visible
from mosaic.cli._option_names import in_options


class Bar:
    """A bar on stderr, if that is a terminal, rich is installed and nobody asked for quiet; it is gone when all is done.

    Attributes
    ----------
    verbose : whether the estimator should tell how far it is, because there is no bar
    """

    def __init__(self, quiet: bool):
        self.shown: Any = None
        self.task: Any = None
        self.stage = ""
        self.verbose = False
        if quiet or not sys.stderr.isatty():
            return
        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TaskProgressColumn,
                TextColumn,
                TimeElapsedColumn,
            )
        except ImportError:
            self.verbose = True
            return
        console = Console(stderr=True)
        if console.is_dumb_terminal:  # nothing can be overwritten there
            return
        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn("line"), TimeElapsedColumn(), BarColumn(24), TaskProgressColumn(), text)
        self.shown = Progress(*columns, console=console, transient=True, redirect_stdout=False)

    def __enter__(self) -> Self:
        if self.shown is not None:
            self.task = self.shown.add_task("opening", total=None)
            self.shown.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown is not None:
            self.shown.stop()

    def listen(self, stage: str, text: str, share: float | None) -> None:
        """A fit is in this stage, and this share of it is done."""
        if self.shown is None or stage == "done":
            return
        (task,) = self.shown.tasks
        task.total = None if share is None else 1.0
        # A bar that is full stops its clock, and there may be more to come.
        self.shown.update(self.task, description=visible(text), completed=min(share or 0.0, 0.999))
        if stage != self.stage:
            self.stage = stage
            self.shown.refresh()

    def listening(self) -> AbstractContextManager[None]:
        """Within, fits tell the bar how far they are, if there is one."""
        from mosaic.estimators import listening

        return nullcontext() if self.shown is None else listening(self.listen)

    def read(self, done: float, total: float | None) -> None:
        """So many bytes of the file are read."""
        of = "" if total is None else f" of {readable_size(total)}"
        self.listen("reading", f"reading, {readable_size(done)}{of}", done / total if total else None)

    def say(self, stage: str) -> None:
        """Something else begins."""
        self.listen(stage, stage, None)


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Within, what Python code warns of becomes notes, each once; what only its developers can change is not passed on."""

    def keep(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        text = in_options(" ".join(str(message).split()))
        silent = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning, ImportWarning)
        if not issubclass(category, silent) and text not in notes:
            notes.append(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep
        yield
