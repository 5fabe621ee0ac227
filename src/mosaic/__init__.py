"""MOSAIC: which few points stand for the rest, which do not belong, and how good that answer is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic import datasets, metrics, rows, show
    from mosaic.choosing import Selection
    from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, estimate, load, path
    from mosaic.exceptions import (
        ConvergenceWarning,
        InvalidInputError,
        MemoryBudgetError,
        MissingDependencyError,
        MosaicError,
        NotPositiveSemidefiniteError,
        SelectionWarning,
    )
    from mosaic.kernels import EffectiveCount
    from mosaic.parameters import Diffusion, Paper, Polynomial, Sketch
    from mosaic.program.encoding import Certificate, Encoding
    from mosaic.program.solve import solve
    from mosaic.rows import read

__version__ = "0.1.0.dev0"

__all__ = [
    "MOSAIC",
    "Certificate",
    "ConvergenceWarning",
    "Diffusion",
    "EffectiveCount",
    "Encoding",
    "InvalidInputError",
    "MOSAICOutlierDetector",
    "MOSAICSampler",
    "MemoryBudgetError",
    "MissingDependencyError",
    "MosaicError",
    "NotPositiveSemidefiniteError",
    "Paper",
    "Polynomial",
    "Selection",
    "SelectionWarning",
    "Sketch",
    "datasets",
    "estimate",
    "load",
    "metrics",
    "path",
    "read",
    "rows",
    "show",
    "solve",
]

# Where each name lives. It is imported when it is first asked for: the command line answers before scikit-learn is there.
_HOMES = {
    "mosaic.choosing": ("Selection",),
    "mosaic.program.encoding": ("Certificate", "Encoding"),
    "mosaic.estimators": ("MOSAIC", "MOSAICOutlierDetector", "MOSAICSampler", "estimate", "load", "path"),
    "mosaic.exceptions": (
        "ConvergenceWarning",
        "InvalidInputError",
        "MemoryBudgetError",
        "MissingDependencyError",
        "MosaicError",
        "NotPositiveSemidefiniteError",
        "SelectionWarning",
    ),
    "mosaic.kernels": ("EffectiveCount",),
    "mosaic.parameters": ("Diffusion", "Paper", "Polynomial", "Sketch"),
    "mosaic.program.solve": ("solve",),
    "mosaic.rows": ("read",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in __all__:
        value = import_module(f"mosaic.{name}")
    else:
        raise AttributeError(f"module 'mosaic' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
