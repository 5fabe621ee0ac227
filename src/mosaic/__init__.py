"""MOSAIC: which few points stand for the rest, which do not belong, and how good that answer is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mosaic.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    MemoryBudgetError,
    MissingDependencyError,
    MosaicError,
    NotPositiveSemidefiniteError,
    SelectionWarning,
)
from mosaic.parameters import Diffusion, Paper, Polynomial, Sketch

if TYPE_CHECKING:
    from mosaic import datasets, rows, show
    from mosaic.choosing import Selection
    from mosaic.estimators import (
        MOSAIC,
        MOSAICOutlierDetector,
        MOSAICSampler,
        certify,
        compare,
        dedup,
        estimate,
        load,
        path,
    )
    from mosaic.kernels import EffectiveCount
    from mosaic.program.encoding import Certificate, Encoding
    from mosaic.program.solve import solve
    from mosaic.rows import columns, read

__version__ = "0.1.0"

__all__ = [
    "MOSAIC", "Certificate", "ConvergenceWarning", "Diffusion", "EffectiveCount", "Encoding", "InvalidInputError",
    "MOSAICOutlierDetector", "MOSAICSampler", "MemoryBudgetError", "MissingDependencyError", "MosaicError",
    "NotPositiveSemidefiniteError", "Paper", "Polynomial", "Selection", "SelectionWarning", "Sketch", "certify", "columns",
    "compare", "datasets", "dedup", "estimate", "load", "path", "read", "rows", "show", "solve",
]  # fmt: skip

# Where names are that need NumPy or scikit-learn. They are imported when asked for: the command line answers before these are.
_HOMES = {
    **dict.fromkeys(("MOSAIC", "MOSAICOutlierDetector", "MOSAICSampler"), "mosaic.estimators"),
    **dict.fromkeys(
        ("certify", "compare", "dedup", "estimate", "load", "path"), "mosaic.estimators"
    ),
    **dict.fromkeys(("Certificate", "Encoding"), "mosaic.program.encoding"),
    "EffectiveCount": "mosaic.kernels",
    "Selection": "mosaic.choosing",
    **dict.fromkeys(("columns", "read"), "mosaic.rows"),
    "solve": "mosaic.program.solve",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mosaic' has no attribute {name!r}")
    home = _HOMES.get(name)
    globals()[name] = value = (
        getattr(import_module(home), name) if home else import_module(f"mosaic.{name}")
    )
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
