"""Optional packages, which are looked for when they are needed, and lists of names in messages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mosaic.exceptions import MissingDependencyError

#: Names that a message lists before it leaves off.
LISTED = 20


def library(name: str, where: object) -> Any:
    """A module of an optional package.

    Parameters
    ----------
    name : of the module, such as ``"pyarrow.parquet"``
    where : the file or task that needs it, for the message

    Raises
    ------
    MissingDependencyError
        if the package is not installed. The message says how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("PIL", "pillow")  # the name that pip knows
        raise MissingDependencyError(
            f"{where} is read with {package}, which is not installed", f"Use: pip install {package}"
        ) from error


class Library:
    """A module of an optional package that is imported when one of its names is first used.

    Examples
    --------
    >>> Library("json").loads("[1, 2]")
    [1, 2]
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(library(self._name, "The data"), attribute)


def listed(names: list[str]) -> str:
    """Names for a message, at most 20 of them.

    Examples
    --------
    >>> listed(["age", "height"])
    'age, height'
    """
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
