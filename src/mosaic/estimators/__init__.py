"""Estimators that follow scikit-learn's conventions, and functions beside them, such as ``path``, ``certify``, ``compare``."""

from mosaic.estimators.comparison import Comparison, Copies, compare, dedup
from mosaic.estimators.curve import CoverageCurve, certify, estimate, path
from mosaic.estimators.detector import MOSAICOutlierDetector
from mosaic.estimators.fitted import explain_model
from mosaic.estimators.progress import listening
from mosaic.estimators.sampler import MOSAICSampler
from mosaic.estimators.saving import load
from mosaic.estimators.selector import MOSAIC

__all__ = [
    "MOSAIC", "Comparison", "Copies", "CoverageCurve", "MOSAICOutlierDetector", "MOSAICSampler", "certify", "compare",
    "dedup", "estimate", "explain_model", "listening", "load", "path",
]  # fmt: skip
