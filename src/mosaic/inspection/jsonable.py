"""From whatever a setting may be to what JSON can hold."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np


def finite(value: Any) -> float | None:
    """A float, or None where it is none that JSON knows.

    Examples
    --------
    >>> finite(np.float32(0.5)), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """None, booleans, finite numbers and strings as they are, containers of them rebuilt, functions and others by name.

    Examples
    --------
    >>> plain({"tol": np.float64(0.5), "k": np.int64(3), "lam": float("inf"), "kernel": plain})
    {'tol': 0.5, 'k': 3, 'lam': None, 'kernel': 'mosaic.inspection.jsonable.plain'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(entry) for entry in value]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    # The standard representation holds an address, which is another one tomorrow.
    return type(value).__qualname__ if " at 0x" in repr(value) else repr(value)


def versions() -> dict[str, str]:
    """Of the library and of what its numbers depend on."""
    import scipy
    import sklearn

    import mosaic  # here, as mosaic itself may still be importing this module

    modules = (mosaic, np, scipy, sklearn)
    return {module.__name__: str(module.__version__) for module in modules} | {"python": platform.python_version()}
