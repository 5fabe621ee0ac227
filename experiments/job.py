"""One run, as data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Job:
    """One run. ``task`` is a name of ``experiments.tasks``; ``item`` the part of the paper that it serves."""

    item: str
    task: str
    method: str
    dataset: str
    contamination: str | None = None
    ratio: float = 0.0
    n: int | None = None
    k: int | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        """What makes a run the same run."""
        return json.dumps(asdict(self), sort_keys=True)
