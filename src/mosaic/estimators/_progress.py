"""Telling how far a long run is: one line that is rewritten on a terminal, a few lines elsewhere, silence when not asked.

Whoever wants more gives scikit-learn callbacks: a pass is a task, and every hundredth part of it a task within. A program
that draws a bar of its own listens (``listening``).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeAlias

from mosaic.program import Progress
from mosaic.sketch import SketchRound

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


__all__ = ["CallbackSupport", "Listener", "Narrator", "listening", "with_callbacks"]

#: Is told the stage of a fit, what is to be said about it, and the share of it that is done, where that is known.
Listener: TypeAlias = Callable[[str, str, float | None], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)

#: Stages of a fit as a person would call them.
STAGES = {"factor": "similarities", "round": "solving", "iteration": "solving", "choose": "choosing"}
#: Parts of a pass that callbacks are told of, at most.
PARTS = 100


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within it, fits tell the listener how far they are; what ``verbose`` would write is not written.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> stages = []
    >>> with listening(lambda stage, text, share: stages.append(stage)):
    ...     model = MOSAIC(10).fit(datasets.swiss_roll(300))
    >>> stages[0], stages[-1]
    ('similarities', 'done')
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Narrator:
    """Writes the stage, its step and what is left to gain to stderr, at most a few times a second, and calls callbacks."""

    def __init__(self, estimator: Any):
        self.estimator = estimator
        self.name, self.listener = type(estimator).__name__, _LISTENER.get()
        self.verbose = bool(estimator.verbose) and self.listener is None
        self.started = self.written = time.monotonic()
        self.live = self.verbose and sys.stderr.isatty()
        self.stage = ""
        self.n, self.most_rounds, self.round = 1, 1, 0
        self.gap: float | None = None
        self.root: Any = None
        self.task: Any = None
        self.task_name, self.parts = "", 0

    def __enter__(self) -> Self:
        if hasattr(self.estimator, "_skl_callbacks"):
            self.root = self.estimator._init_callback_context(max_subtasks=None)
            self.root.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if self.root is not None and kind is None:
            self._end_task()
            self.root.call_on_fit_task_end(estimator=self.estimator)
        self.root = None  # passes that are made later, when somebody asks, are no part of the fit

    @property
    def callback(self) -> Callable[[Progress], None] | None:
        """What the exact layer calls, or None when nobody listens."""
        return self._on_progress if self.verbose or self.listener else None

    def _on_progress(self, progress: Progress) -> None:
        stage = STAGES.get(progress.stage, progress.stage)
        what = "missing" if progress.stage == "factor" else "gap"
        self._write(stage, f"{stage}, step {progress.step}, {what} {progress.gap:.1e}")

    def expect(self, n: int, most_rounds: int | None) -> None:
        """A fit by passes over n rows begins."""
        self.n, self.most_rounds = n, 3 if most_rounds is None else most_rounds

    def on_round(self, done: SketchRound) -> None:
        """A round has ended."""
        self.round, self.gap = done.number + 1, done.gap

    def on_pass(self, name: str, rows: int, seconds: float) -> None:
        """A pass is under way: round, share of the rows, rows a second, bound for the gap, passes left."""
        self._call_back(name, rows)
        passes = {"gram": "sums", "scores": "looking at all rows"}
        what = passes.get(name.split()[0], name)
        left = 2 * (self.most_rounds - self.round) - (name.startswith("scores"))
        where = f"round {self.round + 1}, {what}" if name.split()[0] in passes else what
        gap = "" if self.gap is None else f", gap {self.gap:.1e}"
        speed = f", {rows / seconds:,.0f} rows/s" if seconds > 0.1 else ""
        at_most = f", {left} passes left at most" if left > 0 and name.split()[0] in (*passes, "look") else ""
        share = rows / self.n
        self._write(name, f"{where}: {100 * share:.0f} %{speed}{gap}{at_most}", share)

    def _call_back(self, name: str, rows: int) -> None:
        if self.root is None:
            return
        if name != self.task_name:
            self._end_task()
            self.task = self.root.subcontext(task_name=name, max_subtasks=PARTS)
            self.task.call_on_fit_task_begin(estimator=self.estimator)
            self.task_name, self.parts = name, 0
        while self.task is not None and self.parts < PARTS * rows // self.n:
            part = self.task.subcontext(task_name=f"part of {name}")
            part.call_on_fit_task_begin(estimator=self.estimator)
            part.call_on_fit_task_end(estimator=self.estimator)
            self.parts += 1

    def _end_task(self) -> None:
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self.estimator, metadata={"round": self.round, "gap": self.gap})
            self.task = None

    def say(self, stage: str) -> None:
        """A stage without steps begins."""
        self._write(stage, stage)

    def _write(self, stage: str, text: str, share: float | None = None) -> None:
        if self.listener is not None:
            self.listener(stage, text, share)
        now = time.monotonic()
        if not self.verbose or (stage == self.stage and now - self.written < (0.2 if self.live else 5.0)):
            return
        self.stage, self.written = stage, now
        line = f"[{self.name}] {now - self.started:5.1f} s  {text}"
        sys.stderr.write(f"\r{line:<110}" if self.live else line + "\n")
        sys.stderr.flush()

    def done(self, text: str) -> None:
        """The last word."""
        if self.listener is not None:
            self.listener("done", text, 1.0)
        if self.verbose:
            line = f"[{self.name}] {time.monotonic() - self.started:5.1f} s  {text}"
            sys.stderr.write(f"\r{line:<110}\n" if self.live else line + "\n")
            sys.stderr.flush()
