"""Checks of settings that are single values. Each returns the value, or raises an error with value, fault and remedy.

Also the words that settings take: the command line offers them before NumPy is imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from mosaic.exceptions import InvalidInputError
from mosaic.parameters import Diffusion, Polynomial

#: Names that ``mosaic.kernels.make_kernel`` knows.
KERNELS = ("rbf", "laplacian", "polynomial", "linear", "cosine", "diffusion", "precomputed")
#: Values of other parameters that take one of a few words.
CHOICES = {"algorithm": ("paper", "sketch"), "outliers": ("reject", "keep", "report")}


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least ``least``; True and False do not count as numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_optional_whole_number(parameter: str, value: Any, at_least: int, remedy: str | None = None) -> None:
    if value is not None and not is_whole(value, at_least):
        fault = f"must be a whole number >= {at_least} or None"
        raise InvalidInputError(fault, remedy, parameter=parameter, value=_as_python(value))


def whole_number(parameter: str, value: Any, *, at_least: int = 1, remedy: str | None = None) -> int:
    """Check a whole number; booleans are refused.

    Examples
    --------
    >>> whole_number("max_iter", 2.5)
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: max_iter must be a whole number >= 1; got 2.5.
    """
    if not is_whole(value, at_least):
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
    """Check a finite number. Bounds are included (``at_least``, ``at_most``) or excluded (``above``, ``below``).

    Examples
    --------
    >>> real_number("coverage", 1.5, at_least=0, at_most=1, meaning="a share", remedy="Leave it at None.")
    Traceback (most recent call last):
    mosaic.exceptions.InvalidInputError: coverage must be a finite number between 0 and 1 (a share); got 1.5. Leave it at None.
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    met = {
        ">=": (at_least, at_least is None or number >= at_least),
        ">": (above, above is None or number > above),
        "<=": (at_most, at_most is None or number <= at_most),
        "<": (below, below is None or number < below),
    }
    if math.isfinite(number) and all(is_met for _, is_met in met.values()):
        return number
    limits = " and ".join(f"{sign} {bound:g}" for sign, (bound, _) in met.items() if bound is not None)
    if at_least is not None and at_most is not None:
        limits = f"between {at_least:g} and {at_most:g}"
    fault = " ".join(part for part in ("must be a finite number", limits, f"({meaning})" if meaning else "") if part)
    raise InvalidInputError(fault, remedy, parameter=parameter, value=_as_python(value))


def as_bytes(budget: Any) -> float | None:
    """A memory budget in bytes, from a number or text: units are kB, MB, GB, TB, or KiB, MiB, GiB, TiB (also K, M, G, T).

    Examples
    --------
    >>> as_bytes("1GiB"), as_bytes("1.5g"), as_bytes("500 MB"), as_bytes("1024"), as_bytes(2e9), as_bytes(None)
    (1073741824.0, 1610612736.0, 500000000.0, 1024.0, 2000000000.0, None)
    """
    if budget is None:
        return None
    value = float(budget) if isinstance(budget, Real) and not isinstance(budget, bool) else math.nan
    if isinstance(budget, str):
        written = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(i?b?)|b?)", budget.strip().lower())
        if written is not None:
            value = float(written[1]) * (1000 if written[3] == "b" else 1024) ** (" kmgt".index(written[2] or " "))
    if not (math.isfinite(value) and value > 0):
        fault = "must be a number of bytes > 0, or text such as 2GiB, 500MB or 1000000"
        remedy = "By default it is a quarter of the free memory."
        raise InvalidInputError(fault, remedy, parameter="memory_budget", value=_as_python(budget))
    return value


def one_of(parameter: str, value: Any, allowed: Sequence[str], remedy: str | None = None) -> str:
    """Check that the value is one of the allowed words."""
    if not (isinstance(value, str) and value in allowed):
        *others, last = map(repr, allowed)
        raise InvalidInputError(f"must be {', '.join(others)} or {last}", remedy, parameter=parameter, value=value)
    return value


def check_kernel(kernel: Any) -> None:
    """Refuse all but kernels with settings, the names of kernels, and functions."""
    if (isinstance(kernel, str) and kernel in KERNELS) or callable(kernel) or isinstance(kernel, Polynomial | Diffusion):
        return
    fault = f"must be {', '.join(map(repr, KERNELS))}, Polynomial(…), Diffusion(…) or a function of two sets of points"
    raise InvalidInputError(fault, "Leave it at 'rbf'.", parameter="kernel", value=kernel)


def check_strength(alpha: Any, lam: Any) -> None:
    """Refuse a strength that is no number, one that selects nothing, and both at once. None means the default."""
    if alpha is not None and lam is not None:
        fault = f"give `alpha` or `lam`, not both; got alpha={alpha!r} and lam={lam!r}"
        raise InvalidInputError(fault, "Leave one of them at None.")
    if lam is not None:
        real_number("lam", lam, above=0)
    if alpha is not None:
        meaning, remedy = "a multiple of the critical strength", "At 1 or below nothing is selected."
        real_number("alpha", alpha, above=1, meaning=meaning, remedy=remedy)


def check_seed(random_state: Any) -> None:
    is_generator = type(random_state).__name__ in ("Generator", "RandomState")  # NumPy is not imported here
    if not (random_state is None or is_generator or is_whole(random_state, 0)):
        fault = "must be a whole number >= 0, a generator or None"
        raise InvalidInputError(fault, "Leave it at 0.", parameter="random_state", value=random_state)


def check_jobs(n_jobs: Any) -> Any:
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        fault = "must be a whole number other than 0, or None"
        raise InvalidInputError(fault, "Use -1 for all cores.", parameter="n_jobs", value=n_jobs)
    return n_jobs


def _as_python(value: Any) -> Any:
    """A NumPy scalar as a Python number, so that messages show 0.5 and not np.float64(0.5)."""
    return value.item() if getattr(value, "ndim", None) == 0 else value
