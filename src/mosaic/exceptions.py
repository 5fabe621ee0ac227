"""The errors and warnings of the library. Each error has parts: what it is about, the value, the fault and the remedy."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

_NOT_GIVEN = object()


class Wording(NamedTuple):
    """How a message names a parameter (with its value as text, or None) and a row: as in Python, or as on a command line."""

    parameter: Callable[[str, str | None], str]
    row: Callable[[int], str]

    def __call__(self, text: str) -> str:
        def worded(mention: re.Match[str]) -> str:
            if mention["row"] is None:
                return self.parameter(mention["name"], mention["value"])
            return self.row(int(mention["row"]))

        # A parameter, a parameter with a value, or a row, between backticks: `tol`, `kernel='rbf'`, `row 7`.
        return re.sub(
            r"`(?:row (?P<row>\d+)|(?P<name>[A-Za-z_][\w\[\]]*)(?:=(?P<value>[^`]*))?)`",
            worded,
            text,
        )


PYTHON = Wording(
    lambda name, value: name if value is None else f"{name}={value}", lambda row: f"row {row}"
)


class MosaicError(Exception):
    """Base class of all errors of this library.

    ``fault`` says what is wrong; with a ``parameter``, it continues its name: "must be > 0". ``value`` was given for it,
    ``remedy`` says what to do, in sentences. Texts mention other parameters and rows between backticks, so that a front end can
    use other names: ```tol```, ```kernel='rbf'```, ```row 7```. ``str`` uses the names of Python.

    Examples
    --------
    >>> print(MosaicError("must be > 0", "Leave `tol` at 1e-4.", parameter="tol", value=-1))
    tol must be > 0; got -1. Leave tol at 1e-4.
    """

    def __init__(
        self,
        fault: str = "",
        remedy: str | None = None,
        *,
        parameter: str | None = None,
        value: object = _NOT_GIVEN,
    ):
        super().__init__(fault)
        self.fault, self.remedy, self.parameter = fault.removesuffix("."), remedy, parameter
        self.value = None if value is _NOT_GIVEN else repr(value)

    def message(self, wording: Wording = PYTHON) -> str:
        subject = "" if self.parameter is None else f"`{self.parameter}` "
        got = "" if self.value is None else f"; got {self.value}"
        end = "" if self.fault.endswith(("?", "!")) else "."
        remedy = "" if self.remedy is None else f" {self.remedy}"
        return f"{wording(subject)}{wording(self.fault)}{got}{end}{wording(remedy)}"

    def __str__(self) -> str:
        return self.message() if self.fault else ""


class InvalidInputError(MosaicError, ValueError):
    """The data or a setting cannot be used as given."""


class NoNumbersError(InvalidInputError, TypeError):
    """The data holds objects that are no numbers."""


class NotWrittenError(InvalidInputError):
    """A file cannot be written: its folder is missing or closed, it exists already, or the disk is full."""


class NotPositiveSemidefiniteError(InvalidInputError):
    """The similarity is not symmetric positive semi-definite, so the program is not convex."""


class MemoryBudgetError(MosaicError, MemoryError):
    """The work does not fit into its memory budget. Raised before allocating."""


class MissingDependencyError(MosaicError, ImportError):
    """An optional package is needed and not installed."""


class MosaicWarning(UserWarning):
    """Base class of all warnings of this library. Texts mention parameters and rows as those of errors do."""

    def message(self, wording: Wording = PYTHON) -> str:
        return wording(super().__str__())

    def __str__(self) -> str:
        return self.message()


class ConvergenceWarning(MosaicWarning):
    """The result is usable, but its certified gap is larger than the tolerance asked for."""


class SelectionWarning(MosaicWarning):
    """The result is usable, but something about the data should be known before it is used."""


def warn(text: str, kind: type[MosaicWarning] = SelectionWarning) -> None:
    """Give a warning at the line of the user: of the first caller outside this package and those that call it for the user."""
    frame, level, skipped = sys._getframe(1), 2, ("mosaic", "sklearn", "functools", "contextlib")
    while (
        frame.f_back is not None
        and str(frame.f_globals.get("__name__")).partition(".")[0] in skipped
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(kind(text), stacklevel=level)
