"""The settings of a fit, checked, as one value: everything below the estimators reads these and not an estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from mosaic.exceptions import InvalidInputError

#: Bytes in the units that a memory budget may be given in.
UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}

SOLVERS = ("auto", "interior-point", "fista", "admm", "admm-paper", "reference")


@dataclass(frozen=True)
class Settings:
    """All parameters of an estimator that an answer depends on; what a detector does not have is at its default.

    ``Settings.of(estimator)`` reads and checks them.
    """

    n_representatives: Any = "auto"
    coverage: float | None = None
    min_support: float | None = None
    outliers: str = "reject"
    contamination: Any = "auto"
    diversity: Any = "auto"
    objective: str = "similar"
    min_group: float | None = None
    op_threshold: float | None = None
    mode: str = "auto"
    kernel: Any = "rbf"
    gamma: Any = "auto"
    scale: Any = "auto"
    degree: int = 3
    coef0: float = 1.0
    n_neighbors: int = 10
    diffusion_time: int = 2
    alpha: float | None = None
    lam: float | None = None
    solver: Any = "auto"
    tol: float = 1e-3
    max_iter: int = 10_000
    max_rank: int | None = None
    memory_budget: float | None = None
    max_samples: int | None = None

    def __post_init__(self) -> None:
        _one_of("mode", self.mode, ("auto", "paper"))
        _one_of("outliers", self.outliers, ("reject", "keep", "report"))
        _one_of("objective", self.objective, ("similar", "explained"))
        k = self.n_representatives
        whole = isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1
        share = isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) < 1
        if not (whole or share or (isinstance(k, str) and k == "auto")):
            raise InvalidInputError(
                f"n_representatives must be a whole number >= 1, a share between 0 and 1, or 'auto'; got {k!r}."
            )
        if not (isinstance(self.contamination, str) and self.contamination == "auto"):
            _number(
                "contamination", self.contamination, 0.0, 0.5, "the share of outliers; at most half can be outliers"
            )
        if not (isinstance(self.diversity, str) and self.diversity == "auto"):
            _number("diversity", self.diversity, 0.0, 1.0, "the smallest shared information distance between two picks")
        if self.coverage is not None:
            _number("coverage", self.coverage, 0.0, 1.0, "the share of the data to be explained")
        if self.min_support is not None:
            _number("min_support", self.min_support, 1.0, np.inf, "the number of points a representative stands for")
        if self.min_group is not None:
            _number("min_group", self.min_group, 2.0, np.inf, "the number of points that make a group")
        if self.op_threshold is not None:
            _number(
                "op_threshold", self.op_threshold, 0.0, 1.0, "the outlier probability above which a row is rejected"
            )
            if self.mode != "paper":
                raise InvalidInputError(
                    f"op_threshold={self.op_threshold} is for mode='paper'; otherwise use contamination=, "
                    "or leave it at 'auto'."
                )
        if not (
            isinstance(self.tol, Real) and not isinstance(self.tol, bool) and np.isfinite(self.tol) and self.tol > 0
        ):
            raise InvalidInputError(f"tol must be a finite number > 0; got {self.tol!r}.")
        for name in ("alpha", "lam"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                raise InvalidInputError(f"{name} must be a number or None; got {value!r}.")
        if self.lam is not None and not (np.isfinite(self.lam) and self.lam > 0):
            raise InvalidInputError(f"lam must be a finite number > 0; got {self.lam}.")
        if self.alpha is not None and not (np.isfinite(self.alpha) and self.alpha > 1):
            raise InvalidInputError(
                f"alpha must be > 1 (a multiple of the critical strength); got {self.alpha:g}. At 1 or below nothing is selected."
            )
        if self.max_rank is not None and not (
            isinstance(self.max_rank, Integral) and not isinstance(self.max_rank, bool) and self.max_rank >= 1
        ):
            raise InvalidInputError(f"max_rank must be a whole number >= 1 or None; got {self.max_rank!r}.")
        m = self.max_samples
        if m is not None and not (isinstance(m, Integral) and not isinstance(m, bool) and m >= 2):
            raise InvalidInputError(f"max_samples must be a whole number >= 2 or None; got {m!r}.")
        if not (isinstance(self.solver, str) and self.solver in SOLVERS):
            raise InvalidInputError(
                f"solver must be {', '.join(map(repr, SOLVERS[:-1]))} or {SOLVERS[-1]!r}; got {self.solver!r}."
            )
        self._check_together()

    def _check_together(self) -> None:
        """Parameters that do not go together."""
        k = self.n_representatives
        numbers = {
            "coverage": self.coverage,
            "min_support": self.min_support,
            "n_representatives": None if isinstance(k, str) else k,
        }
        given = [f"{name}={value}" for name, value in numbers.items() if value is not None]
        if len(given) > 1:
            raise InvalidInputError(f"{' and '.join(given)} each say how many to choose. Give one of them.")
        if self.alpha is not None and self.lam is not None:
            raise InvalidInputError(f"give alpha or lam, not both; got alpha={self.alpha:g} and lam={self.lam:g}.")
        if self.mode == "paper" and self.objective != "similar":
            raise InvalidInputError(
                f"mode='paper' chooses by influence and knows no objective={self.objective!r}; use mode='auto'."
            )
        if self.mode == "paper" and self.min_group is not None:
            raise InvalidInputError("mode='paper' knows no min_group; use mode='auto'.")
        if self.mode == "paper" and (self.coverage is not None or self.min_support is not None):
            raise InvalidInputError(
                f"mode='paper' knows no {given[0].split('=')[0]}; use n_representatives, or mode='auto'."
            )

    @classmethod
    def of(cls, estimator: Any, **changes: Any) -> Self:
        """The settings of an estimator, with some of them changed."""
        given = estimator.get_params(deep=False) | changes
        given = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        return cls(**(given | {"memory_budget": as_bytes(given.get("memory_budget"))}))

    @property
    def similarity_is_ours(self) -> bool:
        """Whether kernel and bandwidth are left to us."""
        names = isinstance(self.kernel, str) and isinstance(self.gamma, str)
        return names and self.kernel in ("rbf", "laplacian") and self.gamma == "auto" and self.mode == "auto"

    def number(self, n_rows: float) -> int | None:
        """K, if it is said."""
        k = self.n_representatives
        if isinstance(k, str):
            return None
        return int(k) if isinstance(k, Integral) else max(1, round(float(k) * n_rows))


def as_bytes(budget: Any) -> float | None:
    """A memory budget in bytes, from a number or from text with a unit.

    Examples
    --------
    >>> as_bytes("1GiB"), as_bytes("500 MB"), as_bytes(2e9), as_bytes(None)
    (1073741824.0, 500000000.0, 2000000000.0, None)
    """
    if budget is None:
        return None
    if isinstance(budget, str):
        number = budget.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = budget.strip()[len(number) :].lower() or "b"
        try:
            value = float(number) * UNITS[unit]
        except (ValueError, KeyError):
            raise InvalidInputError(
                f"memory_budget must be bytes as a number, or text such as '1GiB' or '500MB'; got {budget!r}."
            ) from None
    elif isinstance(budget, bool) or not isinstance(budget, Real):
        raise InvalidInputError(
            f"memory_budget must be a number of bytes, text such as '1GiB', or None; got {budget!r}."
        )
    else:
        value = float(budget)
    if not (np.isfinite(value) and value > 0):
        raise InvalidInputError(f"memory_budget must be a finite number of bytes > 0; got {budget!r}.")
    return value


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise InvalidInputError(f"{name} must be {' or '.join(repr(a) for a in allowed)}; got {value!r}.")


def _number(name: str, value: Any, low: float, high: float, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        bounds = f"between {low:g} and {high:g}" if np.isfinite(high) else f">= {low:g}"
        raise InvalidInputError(f"{name} must be a number {bounds} ({meaning}); got {value!r}.")
