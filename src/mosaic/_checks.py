"""Checks of settings that are single values: each returns the value, or says what was given, what is wrong and what to do.

Also the words that settings take: the command line offers them before NumPy is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from mosaic.exceptions import InvalidInputError

#: Names that ``mosaic.kernels.make_kernel`` knows.
KERNELS = ("rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed")
#: Values of other parameters that take one of a few words.
CHOICES = {
    "mode": ("auto", "paper"),
    "outliers": ("reject", "keep", "report"),
    "objective": ("similar", "explained"),
    "strategy": ("auto", "exact", "low-rank", "sketch"),
}


def whole_number(parameter: str, value: Any, *, at_least: int = 1, remedy: str | None = None) -> int:
    """A whole number that is no truth value.

    Examples
    --------
    >>> whole_number("max_iter", 100)
    100
    >>> whole_number("max_iter", 2.5)
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: max_iter must be a whole number >= 1; got 2.5.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        fault = f"must be a whole number >= {at_least}"
        raise InvalidInputError(fault, remedy, parameter=parameter, value=_as_python(value))
    return int(value)


def real_number(
    parameter: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    meaning: str | None = None,
    remedy: str | None = None,
) -> float:
    """A finite number within bounds, each of which is included (``at_least``, ``at_most``) or not (``above``, ``below``).

    Examples
    --------
    >>> real_number("tol", 1e-4, above=0)
    0.0001
    >>> real_number("coverage", 1.5, at_least=0, at_most=1, meaning="a share", remedy="Leave it at None.")
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: coverage must be a finite number between 0 and 1 (a share); got 1.5. Leave it at None.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    bounds = {
        ">=": (at_least, at_least is None or number >= at_least),
        ">": (above, above is None or number > above),
        "<=": (at_most, at_most is None or number <= at_most),
        "<": (below, below is None or number < below),
    }
    if not (math.isfinite(number) and all(is_met for _, is_met in bounds.values())):
        limits = " and ".join(f"{sign} {bound:g}" for sign, (bound, _) in bounds.items() if bound is not None)
        if at_least is not None and at_most is not None:
            limits = f"between {at_least:g} and {at_most:g}"
        fault = " ".join(
            ["must be a finite number", *([limits] if limits else []), *([f"({meaning})"] if meaning else [])]
        )
        raise InvalidInputError(fault, remedy, parameter=parameter, value=_as_python(value))
    return number


def one_of(parameter: str, value: Any, allowed: Sequence[str], remedy: str | None = None) -> str:
    """One of some words.

    Examples
    --------
    >>> one_of("row_norm", "l1", ("l2", "linf"))
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: row_norm must be 'l2' or 'linf'; got 'l1'.
    """
    if not (isinstance(value, str) and value in allowed):
        *others, last = map(repr, allowed)
        raise InvalidInputError(f"must be {', '.join(others)} or {last}", remedy, parameter=parameter, value=value)
    return value


def check_strength(alpha: Any, lam: Any) -> None:
    """Refuse a strength that is no number, one at which nothing is selected, and two at once. None leaves it to the library."""
    if alpha is not None and lam is not None:
        raise InvalidInputError(
            f"give `alpha` or `lam`, not both; got alpha={alpha!r} and lam={lam!r}", "Leave one of them at None."
        )
    if lam is not None:
        real_number("lam", lam, above=0)
    if alpha is not None:
        meaning, remedy = "a multiple of the critical strength", "At 1 or below nothing is selected."
        real_number("alpha", alpha, above=1, meaning=meaning, remedy=remedy)


def check_seed(random_state: Any) -> None:
    """Refuse what cannot be the seed of a generator of random numbers."""
    if isinstance(random_state, str | float) or (isinstance(random_state, Integral) and random_state < 0):
        raise InvalidInputError(
            "must be a whole number >= 0, a generator or None", parameter="random_state", value=random_state
        )


def _as_python(value: Any) -> Any:
    """A NumPy scalar as the Python number that it holds, so that messages show 0.5 and not np.float64(0.5)."""
    return value.item() if getattr(value, "ndim", None) == 0 else value
