"""MOSAIC: which few points stand for the rest, which do not belong, and how good that answer is."""

from mosaic.encoding import Certificate, Encoding
from mosaic.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    MemoryBudgetError,
    MissingDependencyError,
    MosaicError,
    NotPositiveSemidefiniteError,
)
from mosaic.kernels import EffectiveCount
from mosaic.program import Progress, solve

__version__ = "0.1.0.dev0"

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "EffectiveCount",
    "Encoding",
    "InvalidInputError",
    "MemoryBudgetError",
    "MissingDependencyError",
    "MosaicError",
    "NotPositiveSemidefiniteError",
    "Progress",
    "solve",
]
