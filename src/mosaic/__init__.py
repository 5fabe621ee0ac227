"""MOSAIC: which few points stand for the rest, which do not belong, and how good that answer is."""

from mosaic import datasets, metrics
from mosaic.encoding import Certificate, Encoding
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, estimate, path
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
    "MOSAIC",
    "Certificate",
    "ConvergenceWarning",
    "EffectiveCount",
    "Encoding",
    "InvalidInputError",
    "MOSAICOutlierDetector",
    "MOSAICSampler",
    "MemoryBudgetError",
    "MissingDependencyError",
    "MosaicError",
    "NotPositiveSemidefiniteError",
    "Progress",
    "datasets",
    "estimate",
    "metrics",
    "path",
    "solve",
]
