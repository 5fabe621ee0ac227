"""Estimators that follow scikit-learn's conventions, and the functions ``path`` and ``estimate`` to use before them."""

from typing import Any

from mosaic.estimators.curve import CoverageCurve, estimate, path
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.estimators.fitted import explain_model
from mosaic.estimators.progress import listening
from mosaic.estimators.sampler import MOSAICSampler
from mosaic.estimators.saving import load
from mosaic.estimators.selector import MOSAIC

__all__ = [
    "MOSAIC", "CoverageCurve", "MOSAICOutlierDetector", "MOSAICSampler", "PyODDetector", "estimate", "explain_model", "listening",
    "load", "path",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """PyODDetector, which imports PyOD when it is asked for."""
    if name != "PyODDetector":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mosaic.estimators.adapters import PyODDetector

    return PyODDetector
