"""Contestants, one a file. A file defines ``SELECTORS``, ``DETECTORS`` or ``SOLVERS``, tuples of what it offers.

``all_*`` collect them. ``SELECTOR_VARIANTS`` and ``DETECTOR_VARIANTS`` are ours without one of its rules, and no contestants.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: Ours; a baseline of the paper whose definition is known; a tool that users use; a stand-in for a baseline whose definition
#: could not be found, which must not be quoted under the original name without saying so.
Tier = Literal["ours", "paper", "peer", "surrogate"]


class CannotRun(Exception):
    """A method cannot take a case; the message says why and goes into the table."""


@dataclass(frozen=True)
class Picks:
    """Row numbers, ranked, at most k of them, and scores of outlyingness where the method has some (high is odd)."""

    indices: NDArray[np.intp]
    #: Computes e_j / k_jj of every row, where the method represents all rows by few candidates.
    errors: Callable[[], NDArray[np.floating[Any]]] | None = None


@dataclass(frozen=True)
class Scores:
    """Outlyingness of every row, high is odd, and the method's own decision if it has a threshold."""

    values: NDArray[np.floating[Any]]
    flagged: NDArray[np.bool_] | None = None
    #: R of the paper's program, where the method has it.
    R: NDArray[np.floating[Any]] | None = None


@dataclass(frozen=True)
class Selector:
    """``run(X, k, seed, **settings)`` gives Picks. ``grid`` holds the settings to be chosen on validation data."""

    name: str
    tier: Tier
    run: Callable[..., Picks] = field(repr=False)
    grid: tuple[Mapping[str, Any], ...] = ({},)
    #: Points that the method can take before it needs hours or more memory than a laptop has.
    largest: int = 20_000


@dataclass(frozen=True)
class Detector:
    """``run(X, seed, **settings)`` gives Scores."""

    name: str
    tier: Tier
    run: Callable[..., Scores] = field(repr=False)
    grid: tuple[Mapping[str, Any], ...] = ({},)
    largest: int = 20_000


def all_selectors() -> dict[str, Selector]:
    """Every selector, by name."""
    return {method.name: method for method in _collect("SELECTORS")}


def all_detectors() -> dict[str, Detector]:
    """Every detector, by name."""
    return {method.name: method for method in _collect("DETECTORS")}


def all_solvers() -> dict[str, Selector]:
    """Every algorithm for the paper's program, by name; in comparisons of running time only."""
    return {method.name: method for method in _collect("SOLVERS")}


def all_selector_variants() -> dict[str, Selector]:
    """Our selector without one of its rules, by name; in the ablation only."""
    return {method.name: method for method in _collect("SELECTOR_VARIANTS")}


def all_detector_variants() -> dict[str, Detector]:
    """Our detector without one of its rules, by name; in the ablation only."""
    return {method.name: method for method in _collect("DETECTOR_VARIANTS")}


def _collect(attribute: str) -> list[Any]:
    found: list[Any] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        found.extend(getattr(import_module(f"{__name__}.{module}"), attribute, ()))
    names = [method.name for method in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RuntimeError(f"two methods have the name {sorted(twice)[0]!r}")
    return found
