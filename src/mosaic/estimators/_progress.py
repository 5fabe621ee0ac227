"""Telling how far a long run is: one line that is rewritten on a terminal, a few lines elsewhere, silence when not asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from mosaic.program import Progress

#: Stages of a fit as a person would call them.
STAGES = {"factor": "similarities", "round": "solving", "iteration": "solving", "choose": "choosing"}


class Narrator:
    """Writes the stage, its step and what is left to gain to stderr, at most a few times a second."""

    def __init__(self, name: str, verbose: bool | int):
        self.name, self.verbose = name, bool(verbose)
        self.started = self.written = time.monotonic()
        self.live = self.verbose and sys.stderr.isatty()
        self.stage = ""

    @property
    def callback(self) -> Callable[[Progress], None] | None:
        """What the exact layer calls, or None when nobody listens."""
        return self._on_progress if self.verbose else None

    def _on_progress(self, progress: Progress) -> None:
        stage = STAGES.get(progress.stage, progress.stage)
        what = "missing" if progress.stage == "factor" else "gap"
        self._write(stage, f"{stage}, step {progress.step}, {what} {progress.gap:.1e}")

    def say(self, stage: str) -> None:
        """A stage without steps begins."""
        self._write(stage, stage)

    def _write(self, stage: str, text: str) -> None:
        now = time.monotonic()
        if not self.verbose or (stage == self.stage and now - self.written < (0.2 if self.live else 5.0)):
            return
        self.stage, self.written = stage, now
        line = f"[{self.name}] {now - self.started:5.1f} s  {text}"
        sys.stderr.write(f"\r{line:<79}" if self.live else line + "\n")
        sys.stderr.flush()

    def done(self, text: str) -> None:
        """The last word."""
        if self.verbose:
            line = f"[{self.name}] {time.monotonic() - self.started:5.1f} s  {text}"
            sys.stderr.write(f"\r{line:<79}\n" if self.live else line + "\n")
            sys.stderr.flush()
