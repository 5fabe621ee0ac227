"""Estimators that follow scikit-learn's conventions, and the functions ``path`` and ``estimate`` to use before them."""

from mosaic.estimators.curve import CoverageCurve, estimate, path
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.estimators.fitted import explain_model
from mosaic.estimators.progress import listening
from mosaic.estimators.sampler import MOSAICSampler
from mosaic.estimators.saving import load
from mosaic.estimators.selector import MOSAIC

__all__ = [
    "MOSAIC", "CoverageCurve", "MOSAICOutlierDetector", "MOSAICSampler", "estimate", "explain_model", "listening",
    "load", "path",
]  # fmt: skip
