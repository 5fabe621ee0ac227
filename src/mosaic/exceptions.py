"""The errors and warnings of the library. Each message says the value, the fault and the remedy."""

from __future__ import annotations


class MosaicError(Exception):
    """Anything that this library refuses to do."""


class InvalidInputError(MosaicError, ValueError):
    """The data or a setting cannot be used as given."""


class NotPositiveSemidefiniteError(InvalidInputError):
    """The similarity is not symmetric positive semi-definite, so the program is not convex."""


class MemoryBudgetError(MosaicError, MemoryError):
    """The work does not fit into the memory that it was given. Raised before allocating."""


class MissingDependencyError(MosaicError, ImportError):
    """An optional package is needed for what was asked."""


class ConvergenceWarning(UserWarning):
    """The result is usable, but its certified gap is larger than the tolerance asked for."""


class SelectionWarning(UserWarning):
    """The answer is usable, but there is something about the data that whoever uses it should know."""
