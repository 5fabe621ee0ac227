"""What readers of files share: libraries when they are there, and faults that name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from mosaic.exceptions import InvalidInputError, MissingDependencyError, MosaicError

#: Names that a message lists before it leaves off.
LISTED = 20


def library(name: str, where: object) -> Any:
    """The module that reads a file, or how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace(
            "PIL", "pillow"
        )  # which is called otherwise where it is installed from
        raise MissingDependencyError(
            f"{where} is read with {package}, which is not installed. Use: pip install {package}"
        ) from error


@contextmanager
def readable(where: object) -> Iterator[None]:
    """Whatever a library says of a file that it cannot read, with the name of the file."""
    try:
        yield
    except (MosaicError, MemoryError):
        raise
    except Exception as error:
        fault = f"{type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}"
        raise InvalidInputError(
            f"{where} cannot be read ({fault}). It is damaged, has changed since it was opened, or is not what its ending "
            "says. Write it again."
        ) from error


def listed(names: list[str]) -> str:
    """Names for a message, not too many of them.

    Examples
    --------
    >>> listed(["age", "height"])
    'age, height'
    """
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
