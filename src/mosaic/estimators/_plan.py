"""Sizes of a fit by passes, what they cost, and which settings passes are not for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from mosaic.budget import DECISION_SAMPLE as SAMPLE
from mosaic.budget import DEFAULT_BUDGET
from mosaic.choosing import Settings
from mosaic.exceptions import InvalidInputError, MemoryBudgetError

#: Points in memory for each representative that is wanted, beyond ``SAMPLE``; fewer, if they take more than these bytes.
SAMPLE_A_PICK, SAMPLE_BYTES, SMALLEST_SAMPLE = 8, 1 << 28, 2048
#: Candidates at first: at most, at least, and the multiplications that summing their Gram matrix may take.
MOST_CANDIDATES, FEWEST_CANDIDATES, MOST_WORK = 500, 100, 1e12
#: A round adds this part of the first candidates.
ADDED = 10
#: Rounds of the paper's variant, where nobody says how many.
PAPER_ROUNDS = 3
#: Kernels between points that a pass can put new points to.
BY_PASSES = ("rbf", "laplacian", "polynomial", "linear", "cosine")


@dataclass(frozen=True)
class Plan:
    """Sizes of a fit by passes: points in memory, candidates at first, candidates that a round adds, and rounds."""

    sample: int
    n_initial: int
    n_added: int
    n_rounds: int | None

    @classmethod
    def of(cls, estimator: Any, settings: Settings, n: int, n_features: int, k: int | None) -> Plan:
        """What the estimator asks for, or what n and the memory budget suggest."""
        budget = settings.memory_budget or DEFAULT_BUDGET
        sample = min(max(SAMPLE, SAMPLE_A_PICK * (k or 0)), max(SMALLEST_SAMPLE, SAMPLE_BYTES // (8 * n_features)))
        _whole("n_initial", estimator.n_initial, 2)
        _whole("n_added", estimator.n_added, 1)
        _whole("n_rounds", estimator.n_rounds, 1)
        r = estimator.n_initial
        if r is None:
            r = int(np.clip(np.sqrt(MOST_WORK / n), FEWEST_CANDIDATES, MOST_CANDIDATES))
            while r > FEWEST_CANDIDATES and memory_by_passes(sample, r, n_features) > budget:
                r = int(0.9 * r)
        r = min(int(r), n)
        needed = memory_by_passes(min(sample, n), r, n_features)
        if needed > budget:
            raise MemoryBudgetError(
                f"passes with {r:,} candidates over {n_features:,} features need about {needed / 2**20:,.0f} MiB; the budget "
                f"is {budget / 2**20:,.0f} MiB. Raise memory_budget or lower n_initial."
            )
        rounds = estimator.n_rounds
        if rounds is None and settings.mode == "paper":
            rounds = PAPER_ROUNDS
        added = max(r // ADDED, 1) if estimator.n_added is None else int(estimator.n_added)
        return cls(min(sample, n), r, added, rounds)


def memory_by_passes(sample: int, r: int, n_features: int) -> float:
    """Bytes at the peak: points and their features thrice, the solver's matrices, sums on the tree, and blocks of rows."""
    solver = 5.0 * 8 * min(sample, max(3000, 4 * r)) ** 2
    return 3.0 * 8 * sample * (n_features + r) + solver + 16.0 * 8 * r * r + 4.0 * 8 * 8192 * n_features


def work_by_passes(n: int, plan: Plan) -> float:
    """Multiplications of one round: a Gram sum, two triangular products, kernel columns twice, and programs on the sample."""
    r = float(plan.n_initial)
    return n * r * (1.5 * r + 100.0) + 60.0 * plan.sample * r * r + 1e10


def refuse_what_passes_cannot(settings: Settings, sample_weight: Any) -> None:
    """Say it, where passes are not for these settings."""
    kernel, instead = settings.kernel, "Use strategy='low-rank' on an array in memory."
    if isinstance(kernel, str) and kernel not in BY_PASSES:
        raise InvalidInputError(
            f"strategy='sketch' takes the kernels {', '.join(map(repr, BY_PASSES))} or a function of two sets of points; got "
            f"{kernel!r}, which needs all points at once. {instead}"
        )
    if sample_weight is not None:
        raise InvalidInputError(f"strategy='sketch' takes no sample_weight; copies of a row are counted. {instead}")
    if settings.solver not in ("auto", "interior-point"):
        raise InvalidInputError(
            f"strategy='sketch' is solved by interior point; got solver={settings.solver!r}. Use solver='auto'."
        )


def _whole(name: str, value: Any, smallest: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < smallest):
        raise InvalidInputError(f"{name} must be a whole number >= {smallest} or None; got {value!r}.")
